"""Options of runs that change nothing of what a run does: left out, and what would be told of the run where nobody reads it."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    own_calls,
    run_of,
)
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.plain.methods import sessions_of

_OPTIONS, _METADATA = "tf.RunOptions", "tf.RunMetadata"
# Others stop a run that takes long, or say where it runs.
_SAY_ONLY = frozenset({"trace_level", "output_partition_graphs", "report_tensor_allocations_upon_oom"})  # fmt: skip
_LEVELS = ("NO_TRACE", "SOFTWARE_TRACE", "HARDWARE_TRACE", "FULL_TRACE")


def run_options(file: PlainFile) -> list[Change]:
    """`sess.run(…, options=tf.RunOptions(trace_level=…), run_metadata=told)` without them, where `told` is given to runs only."""
    if "RunOptions" not in file.text and "RunMetadata" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        if sessions and not file.finds_names_by_text:
            found += _of_scope(file, scope, sessions, where)
    return found


def _of_scope(file: PlainFile, scope: Scope, sessions: set[str], where: str) -> list[Change]:
    made = {name: each for each in once_in(scope) if (name := only_name(each))}
    found: list[Change] = []
    gone: dict[str, int] = {}
    for call in own_calls(scope):
        run = run_of(call)
        if run is None or ast.unparse(run.func).partition(".")[0] not in sessions:
            continue
        given: list[ast.expr | ast.keyword] = [*run.args, *run.keywords]
        going = [
            each
            for each in run.keywords
            if each.arg in ("options", "run_metadata") and _says_only(file, scope, each, made)
        ]
        told = [each for each in run.keywords if each.arg == "run_metadata" and each not in going]
        # What is told of a run depends on its options.
        for each in () if told else going:
            before = given[given.index(each) - 1]
            start = file.end(before.value if isinstance(before, ast.keyword) else before)
            start += len(")") if file.text[start] == ")" else 0
            between = file.text[start : file.block.offset(each.lineno, each.col_offset)]
            if between.strip() != "," or file.commented(start, file.end(each.value)):
                continue
            found.append(Change(start, file.end(each.value), (), where))
            if isinstance(each.value, ast.Name):
                gone[each.value.id] = gone.get(each.value.id, 0) + 1
    for name, times in gone.items():
        reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
        if len(reads) == times and file.alone(made[name]) is not None:
            found.append(Change(*file.without(made[name]), (), where))
    return found


def _says_only(
    file: PlainFile, scope: Scope, given: ast.keyword, made: dict[str, ast.stmt]
) -> bool:
    value: ast.expr = given.value
    name = value.id if isinstance(value, ast.Name) else ""
    if name:
        statement = made.get(name)
        if not isinstance(statement, ast.Assign) or bindings(scope, name) != 1:
            return False
        if name in file.shared_between_functions:
            return False
        if isinstance(scope, ast.Module) and name in file.words_of_users:
            return False
        reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
        to_runs = [
            one.value
            for each in own_calls(scope)
            if run_of(each) is not None
            for one in each.keywords
            if one.arg == given.arg
        ]
        if not all(any(each is one for one in to_runs) for each in reads):
            return False
        value = statement.value
    if not isinstance(value, ast.Call) or value.args:
        return False
    if given.arg == "run_metadata":
        return bool(name) and ast.unparse(value) == f"{_METADATA}()"
    return ast.unparse(value.func) == _OPTIONS and all(map(_is_said, value.keywords))


def _is_said(option: ast.keyword) -> bool:
    if option.arg not in _SAY_ONLY:
        return False
    match option.value:
        case ast.Constant(value=bool()):
            return option.arg != "trace_level"
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="tf"), attr="RunOptions"), attr=level):  # fmt: skip
            return option.arg == "trace_level" and level in _LEVELS
    return False


__all__ = ["run_options"]
