"""The graph as a program writes it down: with the variables that it has, and not with their copies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from towermigrate.helpers._session_graphs import TowerGraph, mirrored

_log = logging.getLogger("towermigrate")
_LEFT = (
    "The graph is written down with the copies of its variables, which cannot be told from them here. A program that "
    "imports it and trains on, or sets variables, changes the first copies only: the other towers keep what they had."
)


def without_copies(as_graph_def: Callable[..., Any]) -> Callable[..., Any]:
    """`Graph.as_graph_def`, which meta graphs, frozen graphs and event files are made from.

    Whoever reads such a file knows nothing of copies: what trains or sets a variable of the imported graph would leave
    them as they are. So the towers all read the first copy there, as in TF1, and nothing writes the others.
    """

    def of_the_program(self: Any, from_version: Any = None, *args: Any, **kwargs: Any) -> Any:
        made = as_graph_def(self, from_version, *args, **kwargs)
        towers = None if from_version else mirrored(self)
        whole = (
            towers is not None and towers.graph is self and isinstance(made, tf.compat.v1.GraphDef)
        )
        return _folded(towers, made) if towers is not None and whole else made

    return of_the_program


def _folded(towers: TowerGraph, graph_def: Any) -> Any:
    """A graph's definition with every copy's operations replaced by the first copy's.

    It stays as it was, and that is said, where that would make a circle, or write twice.
    """
    first_of = {
        handle: variable.copies[0].handle.op.name
        for handle, (variable, index) in list(towers.variables.items())
        if index
    }
    nodes = {node.name: node for node in graph_def.node}
    same: dict[str, str] = {}
    for name in nodes:
        for handle in _above(name):
            if handle in first_of:
                other = first_of[handle] + name[len(handle) :]
                if other in nodes:
                    same[name] = other
                break
    if not same:
        return graph_def
    if _may_write_inside(graph_def, first_of):
        return _with_copies(graph_def)
    folded = type(graph_def)()
    folded.CopyFrom(graph_def)
    del folded.node[:]
    for name, node in nodes.items():
        if name in same:
            continue
        made = folded.node.add()
        made.CopyFrom(node)
        inputs = list(node.input)
        if inputs and _writes(node.op) and _handle(_name(inputs[0]), nodes) in first_of:
            # The first copy's own write says the same.
            made.op = "NoOp"
            made.attr.clear()
            inputs = [each for each in inputs if each.startswith("^")]
        del made.input[:]
        told = [each for each in (_renamed(each, same) for each in inputs) if each != f"^{name}"]
        made.input.extend(dict.fromkeys(told) if made.op == "NoOp" else _once(told))
        if "_class" in made.attr:
            places = made.attr["_class"].list
            beside = [_beside(each, same) for each in places.s]
            del places.s[:]
            places.s.extend(beside)
    return folded if _has_no_circle(folded.node) else _with_copies(graph_def)


def _with_copies(graph_def: Any) -> Any:
    _log.warning(_LEFT)
    return graph_def


def _may_write_inside(graph_def: Any, first_of: Mapping[str, str]) -> bool:
    """Whether a function of the graph is given a copy, and functions write: the first copy would be written twice."""
    writing = any(_writes(node.op) for each in graph_def.library.function for node in each.node_def)
    return writing and any(
        _name(given) in first_of and any(value.HasField("func") for value in node.attr.values())
        for node in graph_def.node
        for given in node.input
    )


def _handle(name: str, nodes: Mapping[str, Any]) -> str:
    """The variable that is handed to an operation, into a branch or a loop too."""
    while nodes[name].op in ("Enter", "Switch", "Identity"):
        name = _name(nodes[name].input[0])
    return name


def _above(name: str) -> Iterable[str]:
    """The names that a name stands under, its own first."""
    while name:
        yield name
        name = name.rpartition("/")[0]


def _name(given: str) -> str:
    return given.removeprefix("^").partition(":")[0]


def _renamed(given: str, same: dict[str, str]) -> str:
    name = _name(given)
    return given.replace(name, same[name], 1) if name in same else given


def _once(inputs: list[str]) -> list[str]:
    """Values as often as they are given, what is waited for once."""
    values = [each for each in inputs if not each.startswith("^")]
    return [*values, *dict.fromkeys(each for each in inputs if each.startswith("^"))]


def _beside(place: bytes, same: dict[str, str]) -> bytes:
    start, at, name = place.decode().partition("loc:@")
    return f"{start}{at}{same.get(name, name)}".encode()


def _writes(kind: str) -> bool:
    return kind.startswith(
        ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
    ) or kind in (
        "ResourceStridedSliceAssign",
        "ResourceCountUpTo",
    )


def _has_no_circle(nodes: Iterable[Any]) -> bool:
    """Whether the operations can be put in an order; those that end a turn of a loop begin the next one."""
    given = {
        node.name: {_name(each) for each in node.input}
        for node in nodes
        if node.op not in ("NextIteration", "RefNextIteration")
    }
    users: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for name, inputs in given.items():
        inside = [each for each in inputs if each in given]
        left[name] = len(inside)
        for each in inside:
            users.setdefault(each, []).append(name)
    ready = [name for name, count in left.items() if not count]
    done = 0
    while ready:
        done += 1
        for user in users.get(ready.pop(), ()):
            left[user] -= 1
            if not left[user]:
                ready.append(user)
    return done == len(given)
