"""Dicts of feeds under a name: dealt out to the towers where they are bound, or kept until the runs that are fed them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Analysis, Run
from towermigrate.recognize.syntax import calls, code, walk

_QUIET = frozenset({"print", "len", "float", "int", "str", "range"})
"""Calls that change nothing of what a dict holds, whatever they are given."""


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
        if not isinstance(statement, cst.SimpleStatementLine):
            return False
        if any(isinstance(each, cst.AugAssign | cst.Del) for each in statement.body):
            return False
        for target in walk(statement):
            if isinstance(target, cst.AssignTarget) and not isinstance(
                target.target, cst.Name | cst.Tuple
            ):
                return False
        for call in calls(statement):
            if id(call) in runs:
                waiting.discard(id(call))
            elif code(call.func) not in _QUIET and not code(call.func).endswith(
                ("'.format", '".format')
            ):
                return False
    return not waiting
