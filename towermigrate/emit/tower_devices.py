"""Devices that towers enter: a replica has its own, so they go, or are heard outside of towers only."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from towermigrate.emit.splices import Splices
from towermigrate.recognize.acting import may_act
from towermigrate.recognize.loops import is_device
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    argument,
    binds,
    code,
    elements,
    reads,
    statements,
    text,
    walk,
)

_CPU = re.compile(r"(?i)/?(?:/?job:\w+)?(?:/?device:)?/?cpu(?::\d+|:\*)?")
_COLON = re.compile(r"[ \t\f\\\r\n,)]*:")
_BLANKS = re.compile(r"[ \t\f]*")


def drop_devices(splices: Splices, body: cst.BaseSuite, values: set[str], alias: str) -> None:
    """Take the devices of the towers out of a loop's body.

    A `with` that only enters the device of its tower goes and its block moves out, other devices that are no plain
    CPU become `tm.device(…)`, which is not heard in a tower; so do those of functions that do more than name one, and those
    that are looked up.

    Args:
        splices: the edits of the file.
        body: the loop's body.
        values: the names that the loop binds.
        alias: what the helpers are called in the file.
    """
    file = splices.file
    own = made_of(body, values)
    for node in walk(body):
        if isinstance(node, cst.With):
            entered = [
                item
                for item in node.items
                if _enters_device(file, item)
                and own & set(reads(item.item))
                and not may_act(file, item.item)
                and _only_names(item.item)
            ]
            if entered:
                _drop(splices, node, entered)
    soften_devices(splices, body, alias)


def kept_devices(file: SourceFile, loop: cst.For) -> list[str]:
    """The devices, as they are written, that a loop enters for each of its values."""
    own = made_of(loop.body, set(names_of(loop.target)))
    return [
        code(item.item)
        for node in walk(loop.body)
        if isinstance(node, cst.With)
        for item in node.items
        if _enters_device(file, item) and own & set(reads(item.item))
    ]


_NAMES = (
    cst.Name, cst.Attribute, cst.Integer, cst.BinaryOperation, cst.BaseBinaryOp, cst.Call, cst.Arg, cst.Tuple, cst.Element,
    cst.SimpleString, cst.FormattedString, cst.FormattedStringText, cst.FormattedStringExpression, cst.Comma,
    cst.Dot, cst.LeftParen, cst.RightParen, cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.Newline,
    cst.AssignEqual, cst.Comment, cst.EmptyLine, cst.IfExp, cst.Comparison, cst.ComparisonTarget, cst.BaseCompOp,
)  # fmt: skip


def _only_names(device: cst.BaseExpression) -> bool:
    """Whether what names a device looks nothing up: a list may be too short for it, which ended the program."""
    return all(isinstance(each, _NAMES) for each in walk(device))


def soften_devices(splices: Splices, below: cst.CSTNode, alias: str) -> None:
    """Make `tm.device(…)` of every device below a node that is no plain CPU."""
    for node in walk(below):
        if isinstance(node, cst.Call) and is_device(splices.file, node) and not _is_cpu(node):
            splices.replace(*splices.span(node.func), f"{alias}.device")


def made_of(body: cst.CSTNode, values: set[str]) -> set[str]:
    """Some names and every name below that is bound to something made of them."""
    found = set(values)
    while True:
        before = len(found)
        for node in walk(body):
            if isinstance(node, cst.Assign) and found & set(reads(node.value)):
                found |= set(binds(node))
            elif isinstance(node, cst.For) and found & set(reads(node.iter)):
                found |= set(names_of(node.target))
        if len(found) == before:
            return found


def names_of(target: cst.CSTNode) -> list[str]:
    """The names that an assignment target binds: `a`, `(i, (device, part))`."""
    if isinstance(target, cst.Name):
        return [target.value]
    return [name for element in elements(target) or () for name in names_of(element)]


def _enters_device(file: SourceFile, item: cst.WithItem) -> bool:
    call = item.item
    return (
        item.asname is None
        and isinstance(call, cst.Call)
        and is_device(file, call)
        and not _is_cpu(call)
    )


def _is_cpu(call: cst.Call) -> bool:
    device = argument(call, 0, "device_name_or_function") or argument(call, 0, "device_name")
    if isinstance(device, cst.Name) and device.value == "None":
        return True
    named = text(device)
    return named is not None and _CPU.fullmatch(named) is not None


def _drop(splices: Splices, node: cst.With, entered: Sequence[cst.WithItem]) -> None:
    """Take items out of a `with`, and all of it where no other is left; not where that would lose a comment."""
    kept = [item for item in node.items if item not in entered]
    if kept:
        _drop_items(splices, node.items, kept)
        return
    text = splices.text
    start, _ = splices.span(node)
    colon = _COLON.match(text.text, splices.whole(node.items[-1].item)[1])
    if colon is None or "#" in text.text[start : colon.end()] or text.indentation(start) is None:
        return
    if isinstance(node.body, cst.SimpleStatementSuite):
        splices.remove(start, splices.span(node.body.body[0])[0])
        return
    line, header_end = splices.file.line(node), splices.line_of(colon.end())
    first, last = splices.file.line(statements(node.body)[0]), splices.file.span(node).end_line
    outer, inner = splices.indentation(line), splices.indentation(first)
    if not inner.startswith(outer):  # tabs and blanks, which only Python 2 could compare
        return
    last = splices.with_comments(last, inner)
    comment = _BLANKS.match(text.text, colon.end())
    assert comment is not None
    if text.text[comment.end() : comment.end() + 1] == "#":
        splices.remove(start, comment.end())
    else:
        splices.remove(text.starts[line - 1], text.starts[header_end])
    splices.dedent(header_end + 1, last, inner, outer)


def _drop_items(
    splices: Splices, items: Sequence[cst.WithItem], kept: Sequence[cst.WithItem]
) -> None:
    """Take the items of a `with` out that are not kept, each with the comma to its neighbour."""
    places = [splices.whole(item.item) for item in items]
    last_kept = max(index for index, item in enumerate(items) if item in kept)
    for index, item in enumerate(items):
        if item in kept:
            continue
        if index < last_kept:
            start, end = places[index][0], places[index + 1][0]
        else:
            before = items[index - 1].asname
            start = places[index - 1][1] if before is None else splices.whole(before.name)[1]
            end = places[index][1]
        if "#" not in splices.text.text[start:end]:
            splices.remove(start, end)
