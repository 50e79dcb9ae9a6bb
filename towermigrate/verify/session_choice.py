"""Whether the program to verify is in session style, which script runs it, and how many towers it makes.

Read from the rewritten text itself, so it holds for what `rewrite` would write, for what it wrote some time ago and
for what was written by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.program import Count
from towermigrate.recognize.count import tower_count
from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.source import Tree
from towermigrate.tree import HELPERS_COPY, entry_script, import_closure, parse_python
from towermigrate.verify.count import CountNotSet, set_count
from towermigrate.verify.probes import Splice, offsets, splice
from towermigrate.verify.tree import NothingToVerify

_CALLS = ("mirror_variables", "towers")


@dataclass(frozen=True)
class SessionProgram:
    """A program in session style: the script that runs it and the rewritten files that hold its towers."""

    entry: str
    paths: tuple[str, ...]


def session_program(
    originals: dict[str, str], rewritten: dict[str, str], entry: str | None
) -> SessionProgram | None:
    """The session style program that `entry` reaches; None where there is none in session style.

    Raises:
        NothingToVerify: several, or no script to run it with.
    """
    holding = [path for path, text in sorted(rewritten.items()) if _tower_calls(text)]
    return chosen(originals, holding, entry) if holding else None


def chosen(
    originals: dict[str, str], holding: list[str], entry: str | None
) -> SessionProgram | None:
    """The program that `entry`, or the one script there is, makes of the files that hold towers.

    Raises:
        NothingToVerify: several, or no script to run it with.
    """
    if entry is not None:
        if entry not in originals:
            raise NothingToVerify(f"--entry {entry}: there is no such file in the tree.")
        reached = import_closure(originals, [entry])
        here = tuple(path for path in holding if path in reached)
        return SessionProgram(entry, here) if here else None
    entries = {path: _entry(originals, path) for path in holding if path in originals}
    scripts = {script for script in entries.values() if script is not None}
    if len(scripts) != 1:
        raise NothingToVerify(
            f"There are tower programs in {', '.join(holding)}, and "
            + (
                f"several scripts run them ({', '.join(sorted(scripts))})"
                if scripts
                else "no single script runs them"
            )
            + "; say with --entry which script to run."
        )
    script = scripts.pop()
    reached = import_closure(originals, [script])
    return SessionProgram(script, tuple(path for path in holding if path in reached))


def _entry(sources: dict[str, str], path: str) -> str | None:
    """The script that runs the towers in `path`: a file may make them when it is imported or run."""
    script = entry_script(sources, path, False)
    if script is not None:
        return script
    importers = [
        other for other in sources if other != path and path in import_closure(sources, [other])
    ]
    return None if importers else path


def _tower_calls(text: str) -> list[ast.Call]:
    """The calls of a text that make towers replicas."""
    if "mirror_variables" not in text and "towers" not in text:
        return []
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names = set(_helpers(tree))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in _CALLS
            and ast.unparse(node.func.value) in names
            or isinstance(node.func, ast.Name)
            and f"{node.func.id}()" in names
        )
    ]


def _helpers(tree: ast.Module) -> Iterator[str]:
    """What a module calls the helpers, and `name()` for what it imports from them by name."""
    modules = ("towermigrate.helpers", HELPERS_COPY)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in modules or alias.name in modules:
                    yield alias.asname or alias.name
                elif node.module in modules and alias.name in _CALLS:
                    yield f"{alias.asname or alias.name}()"


def with_towers(
    originals: dict[str, str], rewritten: dict[str, str], program: SessionProgram, towers: int
) -> tuple[dict[str, str], dict[str, str], str | None]:
    """Both trees with `towers` as the tower count, and why it could not be set, where it could not."""
    counts = _counts(originals, program)
    for path, count in counts:
        if count.value == towers:
            continue
        if count.value is None and count.literal is None and count.kind != "flag":
            found = _set_mirrored(originals, rewritten, path, towers)
            if found is None:
                said = f"{path}: the tower count is {count.expression} ({count.kind})"
                return originals, rewritten, said
            originals, rewritten = found
            continue
        try:
            if count.name is None:
                originals, rewritten = _set_literal(originals, rewritten, path, count, towers)
            else:
                originals, rewritten = set_count(originals, rewritten, path, count, towers)
        except CountNotSet as problem:
            found = _set_argument(originals, rewritten, count, towers)
            if found is None:
                return originals, rewritten, str(problem)
            originals, rewritten = found
    return originals, rewritten, None if counts else "the tower count is not plain in the source"


def _counts(originals: dict[str, str], program: SessionProgram) -> list[tuple[str, Count]]:
    """Each thing that says how many towers there are, once."""
    tree = Tree(originals)
    finder = LoopFinder(tree)
    found: list[tuple[str, Count]] = []
    for path in program.paths:
        file = tree.file(path)
        if file is None:
            continue
        for candidate in finder.loops(file):
            try:
                count = tower_count(tree, file, candidate.loop, candidate.function)
            except (AssertionError, IndexError):
                count = Count(file.module.code_for_node(candidate.loop.iter), "unknown")
            if not any(
                each.literal == count.literal and each.name == count.name for _, each in found
            ):
                found.append((path, count))
    return found


def _set_literal(
    originals: dict[str, str], rewritten: dict[str, str], path: str, count: Count, towers: int
) -> tuple[dict[str, str], dict[str, str]]:
    """`range(2)` as `range(4)` in both; what the rewritten program mirrors its variables over follows."""
    assert count.literal is not None
    span = count.literal
    text = originals[path]
    begins = offsets(text)
    place = (begins[span.line - 1] + span.column, begins[span.end_line - 1] + span.end_column)
    again = rewritten[path]
    begins, rows = offsets(again), again.splitlines(keepends=True)
    edits = []
    for call in _tower_calls(again):
        for node in ast.walk(call):
            if (
                isinstance(node, ast.Constant)
                and type(node.value) is int
                and node.value == count.value
            ):
                column = len(rows[node.lineno - 1].encode()[: node.col_offset].decode())
                start = begins[node.lineno - 1] + column
                edits.append(Splice(start, start + len(str(count.value)), str(towers)))
    return (
        {**originals, path: splice(text, [Splice(*place, str(towers))])},
        {**rewritten, path: splice(again, edits)},
    )


def _set_mirrored(
    originals: dict[str, str], rewritten: dict[str, str], path: str, towers: int
) -> tuple[dict[str, str], dict[str, str]] | None:
    """Set what the rewritten program mirrors its variables over, where a name says it and one integer sets that."""
    names = {
        ast.unparse(call.args[0])
        for call in _tower_calls(rewritten.get(path, ""))
        if ast.unparse(call.func).endswith("mirror_variables")
        and call.args
        and isinstance(call.args[0], (ast.Name, ast.Attribute))
    }
    if len(names) != 1:
        return None
    expression = names.pop()
    count = Count(expression, "constant", expression.rpartition(".")[2])
    done = []
    for where in sorted(originals):
        try:
            done.append(set_count(originals, rewritten, where, count, towers))
        except CountNotSet:
            continue
    return done[0] if len(done) == 1 else None


def _set_argument(
    originals: dict[str, str], rewritten: dict[str, str], count: Count, towers: int
) -> tuple[dict[str, str], dict[str, str]] | None:
    """`train(2)` as `train(4)` in both: the same argument of the same call; None where that is not clear."""
    if count.literal is None:
        return None
    path = count.literal.path
    texts = originals[path], rewritten.get(path, "")
    first, second = (_arguments(text, count.value) for text in texts)
    begins = offsets(texts[0])
    place = begins[count.literal.line - 1] + count.literal.column
    called = next((key for key, places in first.items() if place in places), None)
    if called is None or len(first[called]) != len(second.get(called, [])):
        return None
    places = place, second[called][first[called].index(place)]
    length = len(str(count.value))
    changed = [
        splice(text, [Splice(start, start + length, str(towers))])
        for text, start in zip(texts, places, strict=True)
    ]
    return {**originals, path: changed[0]}, {**rewritten, path: changed[1]}


def _arguments(text: str, value: int | None) -> dict[tuple[str, str], list[int]]:
    """Where each integer `value` stands as an argument, by the function's last name and the argument's place."""
    found: dict[tuple[str, str], list[int]] = {}
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    begins, rows = offsets(text), text.splitlines(keepends=True)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        given = [(str(number), node) for number, node in enumerate(call.args)]
        given += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
        for where, node in given:
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value == value:
                column = len(rows[node.lineno - 1].encode()[: node.col_offset].decode())
                found.setdefault((name, where), []).append(begins[node.lineno - 1] + column)
    return {key: sorted(places) for key, places in found.items()}
