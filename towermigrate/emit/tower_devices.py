"""Devices that towers enter: a replica has its own, so they go, or are heard outside of towers only."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from towermigrate.emit.splices import Splices
from towermigrate.recognize.loops import is_device
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import argument, binds, elements, reads, text, walk

_CPU = re.compile(r"(?i)/?(?:/?job:\w+)?(?:/?device:)?/?cpu(?::\d+|:\*)?")
_COLON = re.compile(r"[ \t\f\\\r\n)]*:")


def drop_devices(splices: Splices, body: cst.BaseSuite, values: set[str], alias: str) -> None:
    """Take the devices of the towers out of a loop's body.

    A `with` that only enters the device of its tower goes and its block moves out, other devices that are no plain
    CPU become `tm.device(…)`, which is not heard in a tower.

    Args:
        splices: the edits of the file.
        body: the loop's body.
        values: the names that the loop binds.
        alias: what the helpers are called in the file.
    """
    file = splices.file
    own = made_of(body, values)
    handled: set[int] = set()
    for node in walk(body):
        if isinstance(node, cst.With):
            entered = [
                item
                for item in node.items
                if _enters_device(file, item) and own & set(reads(item.item))
            ]
            if entered and _drop(splices, node, entered):
                handled.update(id(item.item) for item in entered)
    soften_devices(splices, [body], alias, handled)


def soften_devices(
    splices: Splices,
    nodes: Iterable[cst.CSTNode],
    alias: str,
    handled: set[int] = frozenset(),  # type: ignore[assignment]
) -> int:
    """Make `tm.device(…)` of every device below some nodes that is no plain CPU; how many there were."""
    found = 0
    for below in nodes:
        for node in walk(below):
            if not isinstance(node, cst.Call) or id(node) in handled:
                continue
            if is_device(splices.file, node) and not _is_cpu(node):
                splices.replace(*splices.span(node.func), f"{alias}.device")
                found += 1
    return found


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


def _drop(splices: Splices, node: cst.With, entered: list[cst.WithItem]) -> bool:
    """Take items out of a `with`; False where that would lose a comment or move more than lines."""
    whole = splices.text.text
    start, _ = splices.span(node)
    first_item, last_item = splices.span(node.items[0])[0], splices.span(node.items[-1])[1]
    colon = _COLON.match(whole, last_item)
    if colon is None or "#" in whole[start : colon.end()]:
        return False
    kept = [item for item in node.items if item not in entered]
    if kept:
        joined = ", ".join(splices.of(item).rstrip(", \t") for item in kept)
        if "\n" in whole[first_item:last_item] or "\r" in whole[first_item:last_item]:
            return False
        splices.replace(first_item, last_item, joined)
        return True
    line = splices.file.span(node).line
    if not isinstance(node.body, cst.IndentedBlock) or splices.text.indentation(start) is None:
        return False
    header_end = whole.count("\n", 0, colon.end()) + 1 if "\r" not in whole else None
    if header_end is None:
        header_end = next(
            number
            for number in range(line, len(splices.text.starts) + 1)
            if number == len(splices.text.starts) or splices.text.starts[number] >= colon.end()
        )
    first = header_end + 1
    while not splices.text.line(first).strip() or splices.text.line(first).lstrip()[:1] == "#":
        first += 1
    last = splices.file.span(node).end_line
    outer, inner = splices.indentation(line), splices.indentation(first)
    if not inner.startswith(outer) or inner == outer:
        return False
    while last < len(splices.text.starts) and _is_comment_of(splices, last + 1, inner):
        last += 1
    comment = splices.text.line(header_end)[colon.end() - splices.text.starts[header_end - 1] :]
    if comment.strip():
        splices.replace(start, colon.end() + len(comment) - len(comment.lstrip(" \t")), "")
    else:
        splices.remove_lines(line, header_end)
    # Comments between the header and the first statement move with it.
    splices.dedent(first, last, outer)
    if header_end + 1 < first:
        for number in range(header_end + 1, first):
            if splices.text.line(number).strip() and splices.indentation(number).startswith(inner):
                splices.dedent(number, number, outer)
    return True


def _is_comment_of(splices: Splices, line: int, inner: str) -> bool:
    """Whether a line is a comment at the end of a block with this indentation."""
    text = splices.text.line(line)
    return text.lstrip().startswith("#") and splices.indentation(line).startswith(inner)
