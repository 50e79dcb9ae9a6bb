"""Statements that only say what the trained variables are called, how many there are, and of what shapes.

They print once behind the graph, and stay where they are: the variables are there, in TF1's order and with its names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from towermigrate.recognize.kinds import Kind, Kinds, builds_graph
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import calls, code, reads, walk
from towermigrate.recognize.tables import lists_trained

_ASKED = ("{}.name", "{}.op.name", "{}.get_shape().as_list()", "{}.shape.as_list()")
"""What may be asked of a variable: the same texts and numbers in TF1 and of a replica's."""

_SIZES = ("{}.get_shape()", "{}.shape")
"""What is the same text, though another object: `print(v.name, v.get_shape())`."""


def described(node: cst.CSTNode, file: SourceFile, kinds: Kinds, scope: cst.CSTNode) -> set[int]:
    """The nodes of a statement that list trained variables or ask for their names; empty where it does more.

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
        return set()
    found: set[int] = set()
    shown = not re.search(r"\b(print|str)\s*=[^=]|\b(def|import|as)\s+(print|str)\b", file.text)
    for one in inner:
        if isinstance(one, cst.For) and lists_trained(one.iter, file):
            if one.orelse is not None or not isinstance(one.target, cst.Name):
                return set()
            asked = _asked(one.target.value, [one.body], shown)
            name = one.target.value
            everywhere = _names(name, [scope]) - _of_comprehensions(name, scope)
            if asked is None or everywhere - _names(name, [one]):
                return set()
            found |= {id(one.iter), *asked}
        elif isinstance(one, cst.BaseSimpleComp | cst.DictComp) and lists_trained(
            one.for_in.iter, file
        ):
            target = one.for_in.target
            if not isinstance(target, cst.Name) or one.for_in.inner_for_in is not None:
                return set()
            made = [one.key, one.value] if isinstance(one, cst.DictComp) else [one.elt]
            asked = _asked(target.value, [*made, *one.for_in.ifs], shown)
            if asked is None:
                return set()
            found |= {id(one.for_in.iter), *asked}
        elif isinstance(one, cst.Call) and code(one.func) == "len" and len(one.args) == 1:
            own = kinds.traits.tree.resolve(file, one.func) is not None or "len" in file.imports
            if lists_trained(one.args[0].value, file) and not own:
                found.add(id(one.args[0].value))
    return found if _only_python(node, file, kinds, found) else set()


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


def _asked(name: str, parts: list[cst.CSTNode], shown: bool) -> set[int] | None:
    """The nodes that ask for the operation's name of a variable; None where anything else is done with it."""
    texts = {text.format(name): text for text in _ASKED}
    sizes = {text.format(name) for text in _SIZES} if shown else set()
    allowed: set[int] = set()
    asked: set[int] = set()
    for part in parts:
        for node in walk(part):
            told = [each for each in _as_texts(node) if code(each) in sizes]
            allowed |= {id(n) for each in told for n in _values(each)}
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


__all__ = ["described"]
