"""Set the tower count in the copies: the one literal behind it, in the original and in the rewritten."""

from __future__ import annotations

import ast
import re

from towermigrate.program import Count, TowerProgram
from towermigrate.verify.probes import Splice, offsets, splice

_LENGTH = re.compile(r"len\((\w+)\)")


class CountNotSet(ValueError):
    """The count cannot be set from outside; the message says what to pass after `--`."""


def with_count(
    original: dict[str, str], rewritten: dict[str, str], program: TowerProgram, towers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Both trees with `towers` as the tower count.

    In the original the literal's position is usually known. Otherwise, and in the rewritten tree, it is
    found by what holds it (a flag's definition, an argument's default, an assignment) and its name.

    Raises:
        CountNotSet: there is no single literal, or the rewritten tree does not have it.
    """
    return set_count(original, rewritten, program.path, program.loop.count, towers)


def set_count(
    original: dict[str, str], rewritten: dict[str, str], where: str, count: Count, towers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """As `with_count`, for the count of a tower loop in the file `where`."""
    if count.value == towers:
        return original, rewritten
    listed = _LENGTH.fullmatch(count.expression)
    if count.literal is None and count.value is None and listed is not None:
        return _set_list(original, rewritten, where, count, listed[1], towers)
    changed, both = dict(original), dict(rewritten)
    if count.literal is not None:
        span = count.literal
        path, text = span.path, original[span.path]
        begins = offsets(text)
        place = (
            begins[span.line - 1] + span.column,
            begins[span.end_line - 1] + span.end_column,
        )
    else:
        path, text = where, original[where]
        place = _only_place(text, path, "original", count, towers)
    changed[path] = splice(text, [Splice(*place, str(towers))])
    again = rewritten.get(path, "")
    both[path] = splice(
        again, [Splice(*_only_place(again, path, "rewritten", count, towers), str(towers))]
    )
    return changed, both


def _set_list(
    original: dict[str, str],
    rewritten: dict[str, str],
    where: str,
    count: Count,
    name: str,
    towers: int,
) -> tuple[dict[str, str], dict[str, str]]:
    """Both trees with so many devices in the list that the towers are counted by."""
    changed, both = dict(original), dict(rewritten)
    for tree, which in ((changed, "original"), (both, "rewritten")):
        text = tree.get(where, "")
        displays = _displays(text, name)
        texts = _as_many(displays[0], towers) if len(displays) == 1 else None
        if texts is None:
            raise CountNotSet(
                f"{where}: the tower count is {count.expression}, and in the {which} program no single list of texts "
                f"that end in a number gives it. Pass what makes it {towers} to the program, after `--`."
            )
        if len(texts) != len(displays[0].elts):
            inside = ", ".join(map(repr, texts))
            closed = f"[{inside}]" if isinstance(displays[0], ast.List) else f"({inside},)"
            tree[where] = splice(text, [Splice(*_place(text, displays[0]), closed)])
    return changed, both


def _displays(text: str, name: str) -> list[ast.List | ast.Tuple]:
    """The lists and tuples of texts that a name is bound to; none where it is bound to anything else too."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    bound = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
    for node in ast.walk(tree):  # `D.append(…)`, `D[0] = …`: more than the display makes the list
        if not isinstance(node, ast.Attribute | ast.Subscript) or (
            isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        ):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == name:
            return []
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.List | ast.Tuple)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return found if sum(not isinstance(n.ctx, ast.Load) for n in bound) == len(found) else []


def _as_many(display: ast.List | ast.Tuple, towers: int) -> list[str] | None:
    """So many texts as these, `/gpu:0` to `/gpu:3` of `/gpu:0` and `/gpu:1`; None where they are no such row."""
    texts = [each.value if isinstance(each, ast.Constant) else None for each in display.elts]
    known = [text for text in texts if isinstance(text, str)]
    if not texts or len(known) != len(texts):
        return None
    if len(known) == towers:
        return known
    prefix = known[0].rstrip("0123456789")
    if known != [f"{prefix}{number}" for number in range(len(known))]:
        return None
    return [f"{prefix}{number}" for number in range(towers)]


def _place(text: str, node: ast.expr) -> tuple[int, int]:
    begins, rows = offsets(text), text.splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        return begins[line - 1] + len(rows[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None and node.end_col_offset is not None
    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)


def _only_place(text: str, path: str, which: str, count: Count, towers: int) -> tuple[int, int]:
    places = _literals(text, count) if count.name else []
    if len(places) != 1:
        raise CountNotSet(
            f"{path}: the tower count is {count.expression} ({count.kind}), and {len(places)} integers set it "
            f"in the {which} program, expected one. Pass what makes it {towers} to the program, after `--`."
        )
    return places[0]


def _literals(text: str, count: Count) -> list[tuple[int, int]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(
                (isinstance(t, ast.Name) and t.id == count.name)
                or (isinstance(t, ast.Attribute) and t.attr == count.name)
                for t in targets
            ):
                found.append(node.value)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args.posonlyargs + node.args.args
            defaults = node.args.defaults
            paired = list(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
            paired += [
                (a, d)
                for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if d
            ]
            found.extend(default for argument, default in paired if argument.arg == count.name)
        elif isinstance(node, ast.Call):
            named = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if any(isinstance(n, str) and n.lstrip("-") == count.name for n in named):
                found.extend(node.args[1:2])
                found.extend(
                    k.value for k in node.keywords if k.arg in ("default", "default_value")
                )
            found.extend(k.value for k in node.keywords if k.arg == count.name)
    lines = offsets(text)
    rows = text.splitlines(keepends=True)
    places = []
    for value in found:
        if isinstance(value, ast.Constant) and type(value.value) is int:
            if count.value is not None and value.value != count.value:
                continue
            row = value.lineno - 1
            column = len(rows[row].encode()[: value.col_offset].decode())
            start = lines[row] + column
            places.append((start, start + len(str(ast.get_source_segment(text, value)))))
    return places
