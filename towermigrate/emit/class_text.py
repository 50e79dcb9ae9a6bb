"""The text of a class whose methods were read as parts of one function, and its place in its file."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from towermigrate.emit.parting import NotParted, header_of, shifted
from towermigrate.recognize.carried import Carried, mark_in
from towermigrate.recognize.python_scopes import lines_in_texts

Edit = tuple[int, int, list[str]]
"""The first line, the last one, what stands there now."""


def edited(rows: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    """Lines with some of them changed."""
    made = list(rows)
    for first, last, new in sorted(edits, reverse=True):
        made[first - 1 : last] = new
    return made


def class_edits(
    rows: Sequence[str], made: Carried, methods: Mapping[str, list[str] | None]
) -> list[Edit]:
    """What puts the class back where its mark is: all of it there, and nothing where its other methods stood.

    Args:
        rows: the lines of the file of the class.
        methods: the lines of the methods that stood elsewhere, by name.
    """
    tree = ast.parse("\n".join(rows))
    place = next((each.lineno for each in tree.body if _is_class_mark(each)), None)
    if place is None:
        raise NotParted("the place of the class is gone")
    lifted = sorted(
        (
            each
            for each in tree.body
            if isinstance(each, ast.FunctionDef) and each.name in made.lifted
        ),
        key=lambda each: each.lineno,
    )
    whole = dict(methods)
    edits: list[Edit] = []
    empty = made.definition.count("\n")  # the lines that stood for the class, but for its first
    line = place
    for node in lifted:
        assert node.end_lineno is not None
        own = made.lifted[node.name]
        whole[own] = _method(rows, node, made, own)
        edits.append((line + 1, node.end_lineno, []))
        empty -= node.end_lineno - line
        line = node.end_lineno
    last = line
    while empty > 0 and last < len(rows) and not rows[last].strip():
        last, empty = last + 1, empty - 1
    if last > line:
        edits.append((line + 1, last, []))
    edits.append((place, place, _class(made, whole)))
    return edits


def display_text(
    text: str, keys: Sequence[str], values: Mapping[str, str], new: Sequence[str]
) -> list[str]:
    """The statement that makes a dict, with other entries.

    Args:
        text: the author's.
        keys: of the author's entries.
        values: what those are now that are still there, by their keys.
        new: names that are entries too, in place of the first that is gone.
    """
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assign | ast.Return) and isinstance(statement.value, ast.Dict)
    head = (
        "return "
        if isinstance(statement, ast.Return)
        else f"{ast.unparse(statement.targets[0])} = "
    )
    entries: list[str] = []
    left = list(new)
    for key in keys:
        if key in values:
            entries.append(f"'{key}': {values[key]}")
        else:
            entries += [f"'{each}': {each}" for each in left]
            left = []
    entries += [f"'{each}': {each}" for each in left]
    row = f"{head}{{{', '.join(entries)}}}"
    if "\n" not in text and len(row) <= 90:
        return [row]
    return [f"{head}{{", *(f"    {each}," for each in entries), "}"]


def _is_class_mark(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    value = statement.value.value
    return isinstance(value, str) and mark_in(value) == "class"


def _method(rows: Sequence[str], node: ast.FunctionDef, made: Carried, own: str) -> list[str]:
    """A method that stood as a function of the file."""
    start, end = made.methods[own]
    header = header_of(made.definition[start:end])
    depth = len(header[0]) - len(header[0].lstrip(" "))
    whole = ast.parse("\n".join([header[0].lstrip(" "), *header[1:], "    pass"])).body[0]
    assert isinstance(whole, ast.FunctionDef) and node.end_lineno is not None
    holder = whole.args.args[0].arg
    changed = list(rows)
    names = [
        (each.lineno, each.col_offset, each.id)
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id in made.lifted
    ]
    for line, byte, name in sorted(names, reverse=True):
        row = changed[line - 1]
        at = len(row.encode()[:byte].decode())
        if not row.startswith(name, at):
            raise NotParted(f"`{name}` stands in a text")
        changed[line - 1] = f"{row[:at]}{holder}.{made.lifted[name]}{row[at + len(name) :]}"
    inside = lines_in_texts("\n".join(rows))
    body = [
        changed[n - 1] if n in inside else shifted(changed[n - 1], depth)
        for n in range(_begin(node, rows), node.end_lineno + 1)
    ]
    return [*header, *body]


def _begin(node: ast.FunctionDef, rows: Sequence[str]) -> int:
    """The line behind a function's header."""
    return node.lineno + len(header_of("\n".join(rows[node.lineno - 1 : node.end_lineno])))


def _class(made: Carried, methods: Mapping[str, list[str] | None]) -> list[str]:
    """The class with its methods as they are now, without those that nothing of the program calls any more."""
    text, done = "", 0
    gone: list[str] = []
    for name, (start, end) in sorted(made.methods.items(), key=lambda each: each[1]):
        new = methods[name]
        between = made.definition[done:start]
        if new is None:
            if name not in made.lifted.values() or between.strip():
                raise NotParted(f"the method `{name}` is gone")
            gone.append(name)
        else:
            text += between + "\n".join(new)
        done = end
    text += made.definition[done:]
    called = next((name for name in gone if re.search(rf"\b{name}\b", text)), None)
    if called is not None:
        raise NotParted(f"the method `{called}` is gone")
    return text.split("\n")
