"""Loops over the layers of one model, some of which are placed on a device: they are no tower loops."""

from __future__ import annotations

import libcst as cst

from towermigrate.recognize.syntax import binds, code, reads, small, statements, walk


def places_layer(loop: cst.For, device: cst.With, picked: set[str]) -> bool:
    """Whether a device is one that a layer may have or not, where each layer takes what the layer before gave.

    It is where the same statements stand in both branches of an `if` that asks something of the loop's value, with the
    device and without, and one of them takes what it gave at the turn before. Towers take nothing of each other, and are
    all placed.

    Args:
        loop: the loop.
        device: the `with` that opens the device.
        picked: the names that go by the loop's value.
    """
    for choice in walk(loop.body):
        if not isinstance(choice, cst.If) or not isinstance(choice.orelse, cst.Else):
            continue
        if list(statements(choice.body)) != [device] or not picked & set(reads(choice.test)):
            continue
        inside, outside = statements(device.body), statements(choice.orelse.body)
        if [_words(each) for each in inside] != [_words(each) for each in outside]:
            continue
        handed_on = {name for each in inside for name in _handed_on(each)}
        within = {id(each) for each in walk(choice)}
        others = {
            name
            for each in walk(loop.body)
            if isinstance(each, cst.BaseSmallStatement | cst.For | cst.WithItem) and id(each) not in within
            for name in binds(each)
        }  # fmt: skip
        if handed_on - others - set(reads(loop.target)):
            return True
    return False


def _handed_on(statement: cst.BaseStatement) -> set[str]:
    """The names that a statement binds to what a call gives that is given what they hold: `x = layer(x)`."""
    assign = small(statement)
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call):
        return set()
    given = {name for arg in assign.value.args for name in reads(arg.value)}
    return given & set(binds(statement))


def _words(node: cst.CSTNode) -> str:
    """The text of a statement whatever its lines and indents are."""
    return " ".join(code(node).split())
