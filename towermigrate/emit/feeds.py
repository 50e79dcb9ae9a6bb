"""Dicts of feeds under a name: dealt out to the towers where they are bound, or kept until the runs that are fed them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Analysis, Run
from towermigrate.recognize.syntax import calls, elements, walk

_PLAIN = (
    cst.Name, cst.Integer, cst.Comparison, cst.ComparisonTarget, cst.BaseCompOp, cst.BooleanOperation, cst.BaseBooleanOp,
    cst.BinaryOperation, cst.BaseBinaryOp, cst.BaseParenthesizableWhitespace, cst.LeftParen, cst.RightParen,
    cst.UnaryOperation, cst.BaseUnaryOp,
)  # fmt: skip
"""What a test may hold that decides which run is made, and does nothing else."""


def kept_until_runs(analysis: Analysis) -> set[str]:
    """The names of the dicts behind which something may stand that changes what they hold, or that leaves before the run.

    A dict of feeds holds what it was given, and a run takes it as it is then: only where nothing but such runs stands
    directly behind the dict is it the same to deal its values out at once.
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
        if not all(isinstance(each, _PLAIN) for each in walk(statement.test)):
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
    if not isinstance(statement, cst.SimpleStatementLine) or not _is_run(statement, runs):
        return None
    return {id(call) for call in calls(statement)} & waiting


def _is_run(statement: cst.SimpleStatementLine, runs: dict[int, Run]) -> bool:
    """Whether a statement is a run and nothing else, what it gives taken apart by names."""
    if len(statement.body) != 1:
        return False
    (only,) = statement.body
    if not isinstance(only, cst.Expr | cst.Assign) or id(only.value) not in runs:
        return False
    if len(calls(statement)) > 1:  # what another run is fed may change what the dict holds
        return False
    targets = only.targets if isinstance(only, cst.Assign) else ()
    return all(
        isinstance(each, cst.Name)
        for target in targets
        for each in (elements(target.target) or [target.target])
    )
