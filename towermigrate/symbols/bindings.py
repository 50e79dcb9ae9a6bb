"""What one scope binds its names to, and the uses of names that stand for TensorFlow."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

OTHER = "?"
"""What a name is bound to when it is not a TensorFlow name."""
_ROOTS = ("tensorflow", "tf_slim", "towermigrate", "towermigrate_helpers")


@dataclass(frozen=True)
class Brought:
    """The names of TensorFlow that a module of the tree has, with their meanings: those a star takes, and all."""

    star: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


Given = Mapping[tuple[int, str], Brought]
"""What modules of the tree give to a file, by the dots and the name with which it imports them."""
NOTHING: Given = {}


@dataclass
class Scope:
    """One scope and what each of its names is bound to: dotted TensorFlow names, or `OTHER`."""

    node: ast.AST
    parent: Scope | None
    bound: dict[str, set[str]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)

    def bind(self, name: str, meaning: str) -> None:
        self.bound.setdefault(name, set()).add(meaning)

    def lookup(self, name: str) -> set[str]:
        """Every meaning of `name` seen from this scope; empty when nothing in the file binds it."""
        scope: Scope | None = self
        if name in self.outer:
            scope = self.parent
        first = True
        while scope is not None:
            hidden = isinstance(scope.node, ast.ClassDef) and not first
            if name in scope.bound and not hidden and name not in scope.outer:
                return scope.bound[name]
            scope, first = scope.parent, False
        return set()

    def meaning(self, name: str) -> str | None:
        """The one thing of TensorFlow that a name means here, None where it means something else as well."""
        meanings = self.lookup(name)
        if len(meanings) == 1:
            found = next(iter(meanings))
            return None if found == OTHER else found
        return one_meaning(meanings) if meanings else None


@dataclass(frozen=True)
class Use:
    """One name chain that starts at a TensorFlow name: `tf.train.Saver` with `root` the node of `tf`.

    `chain` is the outermost attribute node, `links` the attribute nodes from the inside out, `meaning` what
    the root is bound to, `dotted` the whole name: `tensorflow.train.Saver`.
    """

    root: ast.Name
    links: tuple[ast.Attribute, ...]
    meaning: str
    dotted: str
    scope: Scope

    @property
    def chain(self) -> ast.Name | ast.Attribute:
        return self.links[-1] if self.links else self.root


def is_tensorflow(dotted: str) -> bool:
    """Whether a dotted name is one that the symbol pass follows: TensorFlow's, tf_slim's or our helpers'."""
    return dotted.split(".")[0] in _ROOTS


def import_bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            local = alias.asname or alias.name.split(".")[0]
            origin = alias.name if alias.asname else local
        else:
            local = alias.asname or alias.name
            origin = f"{node.module}.{alias.name}" if node.level == 0 else OTHER
        yield local, origin if is_tensorflow(origin) else OTHER


def chain_of(node: ast.expr) -> tuple[ast.Name, tuple[ast.Attribute, ...]] | None:
    """The root name and the attribute nodes, inside out, of `a.b.c`; None for any other expression."""
    links: list[ast.Attribute] = []
    while isinstance(node, ast.Attribute):
        links.append(node)
        node = node.value
    return (node, tuple(reversed(links))) if isinstance(node, ast.Name) else None


_SAME = (
    ("tensorflow.compat.v1", "tensorflow"),
    ("tf_slim", "tensorflow.contrib.slim"),
    ("tf_slim.layers", "tensorflow.contrib.layers"),
)


def one_meaning(meanings: set[str]) -> str | None:
    """What a name means that is bound to a module and, elsewhere, to what takes its place in TensorFlow 2.

    `try: import tensorflow.compat.v1 as tf` with `except: import tensorflow as tf` is the first under TensorFlow 2.
    """
    for new, old in _SAME:
        plain = {
            each.replace(old, new, 1) if not each.startswith(new) else each for each in meanings
        }
        if len(plain) == 1 and all(each.startswith((new, old)) for each in meanings):
            return plain.pop()
    return None
