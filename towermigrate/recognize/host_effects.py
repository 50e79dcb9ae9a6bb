"""What statements do in Python besides giving values: what they print, draw at random and change.

A pipeline that stands in front of the towers is made behind the statements that stay there. Where it and one of these print,
draw of one generator, or one changes what the other reads, they would do so in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.kinds import Kinds
from towermigrate.recognize.own_inputs import reached
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import binds, changes, dotted, parameters, walk

_SAYS = frozenset({"print", "input", "sys.stdout.write", "sys.stderr.write"})
_SAYING = ("logging.", "tensorflow.logging.", "absl.logging.", "warnings.")
_DRAWS = ("numpy.random.", "random.")
_DRAWING = frozenset(
    "choice choices normal permutation rand randint randn random random_sample sample seed shuffle uniform".split()
)


@dataclass(frozen=True)
class Effects:
    """What a statement, and what it calls, does.

    Args:
        kinds: of effects that must stay in their order, each in words.
        changed: the names of what it changes and has not made itself.
        words: all names in it.
    """

    kinds: frozenset[str]
    changed: frozenset[str]
    words: frozenset[str]

    def out_of_order(self, other: Effects) -> str | None:
        """Why two statements may not change places; None where they may."""
        both = self.kinds & other.kinds
        if both:
            return f"both {min(both)}"
        for one, two in ((self, other), (other, self)):
            shared = one.changed & two.words
            if shared:
                return f"one changes `{min(shared)}`, which the other reads"
        return None


def effects_of(kinds: Kinds, node: cst.CSTNode) -> Effects:
    """The effects of a statement, of the functions of the tree that it calls and of the loaders that it makes."""
    does: set[str] = set()
    words: set[str] = set()
    changed = set(changes(node))
    for file, each in _everything(kinds, node):
        if isinstance(each, cst.Name):
            words.add(each.value)
        elif isinstance(each, cst.Call):
            does |= _kinds(file, each)
        elif isinstance(each, cst.FunctionDef):
            changed |= set(changes(each.body)) - set(binds(each.body)) - set(parameters(each))
    return Effects(frozenset(does), frozenset(changed), frozenset(words))


def _everything(kinds: Kinds, node: cst.CSTNode) -> Iterator[tuple[SourceFile, cst.CSTNode]]:
    yield from reached(kinds, node)
    for each in walk(node):
        if isinstance(each, cst.Call):
            loader = kinds.traits.loader(kinds.file, each)
            for method in loader.methods.values() if loader is not None else ():
                yield from reached(kinds, method.node, method.file)


def _kinds(file: SourceFile, call: cst.Call) -> set[str]:
    name = dotted(call.func)
    if name is None:
        return set()
    root, _, rest = name.partition(".")
    full = file.imports.get(root, root) + (f".{rest}" if rest else "")
    if full in _SAYS or full.startswith(_SAYING):
        return {"print"}
    if full.startswith(_DRAWS):
        return {f"draw of `{full.rpartition('.')[0]}`"}
    if rest.rpartition(".")[2] in _DRAWING and root not in file.imports:
        return {"draw of a generator"}  # by whatever name each has it
    return set()
