"""Dicts of feeds under a name: dealt out to the towers where they are bound, or kept until the runs that are fed them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Analysis, Run
from towermigrate.recognize.syntax import calls, code, walk

_QUIET = frozenset({"print", "len", "float", "int", "str", "range"})
"""Calls that change nothing of what a dict holds, whatever they are given."""
_FORMATS = ("'.format", '".format')


def kept_until_runs(analysis: Analysis) -> set[str]:
    """The names of the dicts behind which something may stand that changes what they hold, or that leaves before the run.

    A dict of feeds holds what it was given, and a run takes it as it is then: only where nothing but such runs stands
    behind the dict is it the same to deal its values out at once.
    """
    scope = analysis.candidate.function or analysis.file.module
    runs = {id(run.call): run for run in analysis.runs}
    at_once: set[str] = set()
    for block in walk(scope):
        if not isinstance(block, cst.IndentedBlock | cst.Module):
            continue
        for number, statement in enumerate(block.body):
            for name, bound in analysis.feed_dicts.items():
                if any(each is bound for each in walk(statement)):
                    if _only_runs_behind(block.body[number + 1 :], name, runs):
                        at_once.add(name)
    return set(analysis.feed_dicts) - at_once


def _only_runs_behind(
    behind: Sequence[cst.BaseStatement | cst.BaseSmallStatement], name: str, runs: dict[int, Run]
) -> bool:
    """Whether all runs that are fed a dict stand in statements of their own directly behind it."""
    waiting = {key for key, run in runs.items() if run.feed_name == name}
    for statement in behind:
        if not waiting:
            return True
        reached = _runs_of(statement, waiting, runs)
        if reached is None:
            return False
        waiting -= reached
    return not waiting


def _runs_of(
    statement: cst.CSTNode | None, waiting: set[int], runs: dict[int, Run]
) -> set[int] | None:
    """The runs of those that a statement makes; None where it may do more, or where not each of its ways makes one."""
    if isinstance(statement, cst.If):
        if not _only_runs(statement.test, runs):
            return None
        ways = [statement.body, statement.orelse]
        found = [_runs_of(way, waiting, runs) for way in ways if way is not None]
        made = [each for each in found if each]
        return set().union(*made) if len(made) == 2 else None
    if isinstance(statement, cst.Else):
        return _runs_of(statement.body, waiting, runs)
    if isinstance(statement, cst.IndentedBlock):
        reached: set[int] = set()
        for each in statement.body:
            more = _runs_of(each, waiting, runs)
            if more is None:
                return None
            reached |= more
        return reached
    if not isinstance(statement, cst.SimpleStatementLine) or not _only_runs(statement, runs):
        return None
    return {id(call) for call in calls(statement)} & waiting


def _only_runs(node: cst.CSTNode, runs: dict[int, Run]) -> bool:
    """Whether nothing is called but runs, and what changes nothing; and nothing is set but names."""
    for each in walk(node):
        if isinstance(
            each, cst.AugAssign | cst.Del | cst.Continue | cst.Break | cst.Return | cst.Raise
        ):
            return False
        if isinstance(each, cst.AssignTarget):
            if not isinstance(each.target, cst.Name | cst.Tuple):
                return False
    for call in calls(node):
        called = code(call.func)
        if id(call) not in runs and called not in _QUIET and not called.endswith(_FORMATS):
            return False
    return True
