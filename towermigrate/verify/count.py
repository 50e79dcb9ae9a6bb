"""Set the tower count in the copies: the one literal behind it, in the original and in the rewritten."""

from __future__ import annotations

import ast

from towermigrate.program import Count, TowerProgram
from towermigrate.verify.probes import Splice, offsets, splice


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
