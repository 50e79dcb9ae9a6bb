"""Statements that only say what the variables are called, how many there are, and of what shapes.

They print once behind the graph, and stay where they are: the variables are there, in TF1's order and with its names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.recognize.kinds import Kind, Kinds, builds_graph
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import calls, code, reads, walk
from towermigrate.recognize.tables import lists_all, lists_variables

_ASKED = ("{}.name", "{}.op.name", "{}.get_shape().as_list()", "{}.shape.as_list()")
"""What may be asked of a variable: the same texts and numbers in TF1 and of a replica's."""

_SIZES = ("{}.get_shape()", "{}.shape")
"""What is the same text, though another object: `print(v.name, v.get_shape())`."""

_SHOWN = ("{}", "{}.dtype", *_SIZES)
"""What is the same text of what the helpers show in place of a variable."""


@dataclass
class Described:
    """The nodes of a statement that list variables or ask for their names; none where it does more.

    `shown` are the lists of variables in whose place the helpers show what TF1 said of them.
    """

    nodes: set[int] = field(default_factory=set)
    shown: set[int] = field(default_factory=set)


def described(node: cst.CSTNode, file: SourceFile, kinds: Kinds, scope: cst.CSTNode) -> Described:
    """What a statement does that only says what variables there are.

    Args:
        node: a statement behind the towers.
        file: its file.
        kinds: the kinds of the names so far.
        scope: the function or module around it.
    """
    inner = [n for n in walk(node) if isinstance(n, cst.CSTNode)]
    if any(
        isinstance(
            n, cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.Await | cst.Yield | cst.Return
        )
        for n in inner
    ):
        return Described()
    found = Described()
    prints = not re.search(r"\b(print|str)\s*=[^=]|\b(def|import|as)\s+(print|str)\b", file.text)
    may_show = prints and not _has_resources(kinds.traits.tree, file)

    def ask(name: str, parts: list[cst.CSTNode], listed: cst.CSTNode) -> bool:
        every = lists_all(listed, file)
        asked = None if every else _asked(name, parts, _SIZES if prints else ())
        if asked is None and may_show:
            asked = _asked(name, parts, _SHOWN)
            found.shown.add(id(listed))
            asked = (
                asked if asked is None else set()
            )  # what is shown in their place has an operation
        found.nodes.update({id(listed)} if asked is None else {id(listed), *asked})
        return asked is not None

    for one in inner:
        if isinstance(one, cst.For) and lists_variables(one.iter, file):
            if one.orelse is not None or not isinstance(one.target, cst.Name):
                return Described()
            name = one.target.value
            everywhere = _names(name, [scope]) - _of_comprehensions(name, scope)
            if not ask(name, [one.body], one.iter) or everywhere - _names(name, [one]):
                return Described()
        elif isinstance(one, cst.BaseSimpleComp | cst.DictComp) and lists_variables(
            one.for_in.iter, file
        ):
            target = one.for_in.target
            if not isinstance(target, cst.Name) or one.for_in.inner_for_in is not None:
                return Described()
            made = [one.key, one.value] if isinstance(one, cst.DictComp) else [one.elt]
            if not ask(target.value, [*made, *one.for_in.ifs], one.for_in.iter):
                return Described()
        elif isinstance(one, cst.Call) and code(one.func) == "len" and len(one.args) == 1:
            own = kinds.traits.tree.resolve(file, one.func) is not None or "len" in file.imports
            counted = one.args[0].value
            if lists_variables(counted, file) and not own:
                found.nodes.add(id(counted))
                if lists_all(counted, file):
                    found.shown.add(id(counted))
        elif may_show:
            whole = {id(each) for each in _as_texts(one) if lists_variables(each, file)}
            found.nodes |= whole
            found.shown |= whole
    return found if _only_python(node, file, kinds, found.nodes) else Described()


_RESOURCES = re.compile("resource|keras", re.IGNORECASE)
"""What makes a program's variables others than those that TF1 showed as references."""


def _has_resources(tree: Tree, file: SourceFile) -> bool:
    """Whether a program may have variables that TF1 showed otherwise than as references."""
    seen: set[str] = set()
    waiting = [file.path]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += tree.imports.get(path, ())
    return any(_RESOURCES.search(tree.sources.get(path, "")) for path in seen)


def _names(name: str, parts: list[cst.CSTNode]) -> set[int]:
    return {
        id(n) for part in parts for n in walk(part) if isinstance(n, cst.Name) and n.value == name
    }


def _of_comprehensions(name: str, scope: cst.CSTNode) -> set[int]:
    """Where a name is the own one of a comprehension."""
    own = [
        n
        for n in walk(scope)
        if isinstance(n, cst.BaseComp)
        and isinstance(n.for_in.target, cst.Name)
        and n.for_in.target.value == name
    ]
    # What the first of its lists is made of is read outside of it.
    return _names(name, list(own)) - _names(name, [n.for_in.iter for n in own])


def _asked(name: str, parts: list[cst.CSTNode], told: Sequence[str]) -> set[int] | None:
    """The nodes that ask for the operation's name of a variable; None where anything else is done with it.

    Args:
        name: that of the variable.
        parts: where it is read.
        told: what may be asked where it only becomes a text.
    """
    texts = {text.format(name): text for text in _ASKED}
    sizes = {text.format(name) for text in told}
    allowed: set[int] = set()
    asked: set[int] = set()
    for part in parts:
        for node in walk(part):
            shown = [each for each in _as_texts(node) if code(each) in sizes]
            allowed |= {id(n) for each in shown for n in _values(each)}
            if isinstance(node, cst.Attribute | cst.Call) and code(node) in texts:
                allowed |= {id(n) for n in _values(node)}
                if code(node) == f"{name}.op.name":
                    asked.add(id(node))
    return asked if _names(name, parts) <= allowed else None


def _as_texts(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What an expression shows as `str` does."""
    if isinstance(node, cst.Call):
        of_text = isinstance(node.func, cst.Attribute) and isinstance(
            node.func.value, cst.SimpleString
        )
        if any(each.star for each in node.args):
            return []
        plain = of_text and "!" not in code(node.func) and "[" not in code(node.func)
        if code(node.func) in ("print", "str") or (plain and code(node.func).endswith(".format")):
            return [each.value for each in node.args]
    if (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Modulo)
        and isinstance(node.left, cst.SimpleString)
        and set(re.findall(r"%[^a-zA-Z%]*([a-zA-Z%]+?)(?![a-zA-Z])", node.left.value))
        <= {"s", "d", "%"}
    ):
        if isinstance(node.right, cst.Tuple):
            return [each.value for each in node.right.elements]
        return [node.right]
    return []


def _values(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that a chain of attributes and calls begins with."""
    while isinstance(node, cst.Attribute | cst.Call):
        node = node.value if isinstance(node, cst.Attribute) else node.func
    if isinstance(node, cst.Name):
        yield node


def _only_python(node: cst.CSTNode, file: SourceFile, kinds: Kinds, found: set[int]) -> bool:
    """Whether nothing else of a statement belongs to the graph or to what runs it."""
    if not found:
        return False
    for call in calls(node):
        name = file.tf(call.func)
        if name is not None:
            if id(call) not in found and builds_graph(name):
                return False
            continue
        function = kinds.traits.tree.resolve(file, call.func)
        if function is not None and kinds.traits.builds_graph(function):
            return False
    return all(kinds.of_name(name) in (Kind.PYTHON, Kind.LISTED) for name in reads(node))


__all__ = ["Described", "described"]
