"""Fed learning rates: a variable in the strategy's scope, which the line before a run sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import libcst as cst

from towermigrate.emit.expressions import may_act, replace
from towermigrate.recognize.analysis import Analysis, Placeholder, Run
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.rates import SCHEDULES, is_pythons
from towermigrate.recognize.refusal import Reasons
from towermigrate.recognize.scope import Item, run_calls
from towermigrate.recognize.settings import dtype_of
from towermigrate.recognize.syntax import assigned, binds, calls, code, reads, statements, walk
from towermigrate.recognize.unchanging import is_unchanging

_MAY_NOT_RUN = (
    cst.Lambda,
    cst.IfExp,
    cst.BooleanOperation,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
)
"""What evaluates a part of itself later, often, or not at all."""
_NUMBERS = ("float", "int", "max", "min", "abs", "round", "pow", "len")
"""Built-in functions that compute of numbers what they give, and do nothing else."""

_NEW_ARRAYS = (
    "np.linspace",
    "np.logspace",
    "np.geomspace",
    "np.arange",
    "np.ones",
    "np.zeros",
    "np.full",
)
_BY_TEXT = re.compile(r"\b(globals|locals|vars|eval|exec|setattr|__dict__|builtins)\b")


def variable(analysis: Analysis, holder: Placeholder, tf: str) -> str:
    """`lr = tf.Variable(0.0, trainable=False)`: no variable of the model, so no checkpoint has it."""
    dtype = dtype_of(analysis.scope, holder)
    more = "" if dtype == "tf.float32" else f", dtype={code(holder.dtype)}"
    return f"{holder.name} = {tf}.Variable(0.0, trainable=False{more})"


def rate(analysis: Analysis, item: Item) -> str:
    """`lr = lambda: 0.1 * tm.value(warm)`: what the author computes in the graph is computed in each step."""
    found = assigned(item.node)
    assert found is not None
    given = found[1]

    def called(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.Name) and analysis.kinds.of_name(node.value) is Kind.SCHEDULE:
            return cst.parse_expression(f"tm.value({node.value})")
        if isinstance(node, cst.Attribute):  # of settings: none of its names is a schedule
            return node
        if isinstance(node, cst.Arg):
            return node.with_changes(value=replace(node.value, called))
        if isinstance(node, cst.Call) and (analysis.file.tf(node.func) or "").endswith(SCHEDULES):
            arguments = [each.with_changes(value=replace(each.value, called)) for each in node.args]
            return cst.parse_expression(f"tm.value({code(node.with_changes(args=arguments))})")
        return None

    return f"{found[0][0]} = lambda: {code(replace(given, called))}"


def set_before(analysis: Analysis, reasons: Reasons) -> dict[int, Run]:
    """The lines, by identity, with a run that is fed settings: what is set is set in the line before.

    What it is set to is evaluated there, in front of all else of the line and of what is fed besides.
    """
    fed = {id(run.call): run for run in analysis.runs if _fed(analysis, run)}
    found: dict[int, Run] = {}
    if not fed:
        return found
    for block in _blocks(analysis.candidate.function or analysis.file.module):
        for number, line in enumerate(block):
            for call in calls(line) if isinstance(line, cst.SimpleStatementLine) else ():
                run = fed.get(id(call))
                if run is None:
                    continue
                why = _late(analysis, block[: number + 1], run) or _elsewhere(analysis, run)
                if why is None:
                    found[id(line)] = run
                else:
                    reasons.say("TM209", analysis.file, call, why)
    missing = fed.keys() - {id(run.call) for run in found.values()}
    for each in missing:
        text = "what is fed here cannot be set in a line before"
        reasons.say("TM209", analysis.file, fed[each].call, text)
    return found


def _fed(analysis: Analysis, run: Run) -> list[str]:
    return [name for name in run.feeds if name in analysis.settings]


def _blocks(whole: cst.CSTNode) -> Iterator[list[cst.BaseStatement]]:
    for node in walk(whole):
        if isinstance(node, cst.Module | cst.IndentedBlock):
            yield list(statements(node))


def _late(analysis: Analysis, block: list[cst.BaseStatement], run: Run) -> str | None:
    """Why a run's line may not be preceded by what it is fed: something else is evaluated first."""
    line = block[-1]
    assert isinstance(line, cst.SimpleStatementLine)
    if len(line.body) > 1 or len(run_calls(line, analysis.kinds)) > 1:
        return "a setting is fed in a line with more than the run"
    inside = {id(node) for node in walk(run.call)}
    for node in walk(line):
        holds = any(each is run.call for each in walk(node))
        if isinstance(node, _MAY_NOT_RUN) and holds:
            return "a setting is fed by a run that may not come to be run"
        if isinstance(node, cst.Call | cst.NamedExpr) and not holds and id(node) not in inside:
            return f"`{code(node)}` is evaluated before a setting is fed"
    return None


def _elsewhere(analysis: Analysis, run: Run) -> str | None:
    """Why what a setting is fed may be another value in the line before the run."""
    names = _fed(analysis, run)
    fed = [run.feeds[name] for name in names]
    others = [value for name, value in run.feeds.items() if name not in names]
    if any(
        isinstance(node, cst.NamedExpr | cst.Await)
        for value in run.feeds.values()
        for node in walk(value)
    ):
        return "what is fed binds a name"
    text = analysis.file.text
    numbers = {name for name in _NUMBERS if is_pythons(text, name)}
    own = _Own(numbers, _unchanging(fed, analysis), _fixed_lists(fed, analysis))
    acts = [value for value in fed if _acts(value, own)]
    asked = {name for value in fed for name in reads(value)}
    for node in walk(analysis.file.module):
        if isinstance(node, cst.Global | cst.Nonlocal):
            shared = asked & {each.name.value for each in node.names}
            if shared and (run.feed_name is not None or any(may_act(value) for value in others)):
                return (
                    f"`{sorted(shared)[0]}`, which a setting is fed, may be set by what else is fed"
                )
    if run.feed_name is None:
        parts = [value for value in fed if _acts(value, own) or _picks(value, own)]
        early = acts and any(_acts(value, own) or _picks(value, own) for value in others)
        if early or parts and any(_acts(value, own) for value in others):
            return f"`{code(parts[0])}` is fed to a setting, and would be evaluated before what else is fed"
        return None
    if any(_acts(value, own) or _picks(value, own) for value in fed):
        return f"`{run.feed_name}` is made before the run, and what it feeds a setting may have changed since"
    made = analysis.feed_dicts[run.feed_name]
    for block in _blocks(analysis.candidate.function or analysis.file.module):
        places = [
            number
            for number, each in enumerate(block)
            if any(node is made or node is run.call for node in walk(each))
        ]
        if len(places) != 2:
            continue
        first, last = places
        between = block[first + 1 : last + 1]
        if isinstance(block[first], cst.SimpleStatementLine) and isinstance(
            block[last], cst.SimpleStatementLine
        ):
            bound = {name for each in between[:-1] for name in binds(each)}
            attributes = any(isinstance(each, cst.Attribute) for one in fed for each in walk(one))
            if not bound & asked and not (attributes and len(between) > 1):
                return None
    return f"`{run.feed_name}` is not made right before the run that it is fed to"


@dataclass(frozen=True)
class _Own:
    """What is known to do nothing but to give a number: Python's functions by their names, settings by their texts, and
    lists of numbers that nothing changes by theirs."""

    functions: Collection[str]
    settings: Collection[str]
    lists: Collection[str]


def _unchanging(values: Collection[cst.BaseExpression], analysis: Analysis) -> set[str]:
    """The texts of settings among some values (`args.lr`) that are the same whenever they are read."""
    found: set[str] = set()
    for each in (node for value in values for node in walk(value)):
        if isinstance(each, cst.Attribute) and isinstance(each.value, cst.Name):
            if is_unchanging(each.attr.value, analysis.tree.sources):
                found.add(code(each))
    return found


def _fixed_lists(values: Collection[cst.BaseExpression], analysis: Analysis) -> set[str]:
    """The names among some values of lists of numbers that are made once, and of which items are read and nothing else."""
    asked = {
        node.value.value
        for value in values
        for node in walk(value)
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name)
    }
    fed = {id(node) for value in values for node in walk(value)}
    return {each for each in asked if _is_fixed_list(each, analysis, fed)}


def _is_fixed_list(name: str, analysis: Analysis, fed: Collection[int]) -> bool:
    sources = analysis.tree.sources
    texts = [text for path, text in sources.items() if path != analysis.file.path]
    if _BY_TEXT.search(analysis.file.text) or any(
        re.search(rf"\b{name}\b", text) for text in texts
    ):
        return False
    nodes = list(walk(analysis.file.module))
    made = [
        node.value
        for node in nodes
        if isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and code(node.targets[0].target) == name
    ]
    written = {id(each) for node in nodes for target in _targets(node) for each in walk(target)}
    picked = [
        node
        for node in nodes
        if isinstance(node, cst.Subscript) and code(node.value) == name and id(node) not in written
    ]
    named = [node for node in nodes if isinstance(node, cst.Name) and node.value == name]
    if len(made) != 1 or not _is_new_list(made[0], analysis):
        return False
    if isinstance(made[0], cst.Call) and any(id(each) not in fed for each in picked):
        return False  # A part of an array is a view, by which others may change it.
    # It stands where it is made and where items are read: nothing else has the list, or changes it.
    return len(named) == 1 + len(picked)


def _targets(node: cst.CSTNode) -> list[cst.CSTNode]:
    match node:
        case cst.AssignTarget() | cst.AugAssign() | cst.AnnAssign() | cst.For() | cst.CompFor():
            return [node.target]
        case cst.NamedExpr():
            return [node.target]
        case cst.AsName():
            return [node.name]
        case cst.Del():
            return [node.target]
    return []


def _is_new_list(value: cst.BaseExpression, analysis: Analysis) -> bool:
    """`[0.1, 0.01]`, `np.linspace(0.1, 0.01, 5)`: nobody else has it, and its items are numbers."""
    if isinstance(value, cst.List | cst.Tuple):
        return all(
            isinstance(each, cst.Element) and isinstance(each.value, cst.Float | cst.Integer)
            for each in value.elements
        )
    return (
        isinstance(value, cst.Call)
        and code(value.func) in _NEW_ARRAYS
        and re.search(r"^import numpy as np$", analysis.file.text, re.MULTILINE) is not None
    )


def _picks(value: cst.CSTNode, own: _Own) -> bool:
    return any(
        isinstance(node, cst.Subscript) and code(node.value) not in own.lists
        for node in walk(value)
    )


def _acts(value: cst.CSTNode, own: _Own) -> bool:
    """Whether evaluating an expression may do something, or give something else at another time."""
    numbers = [
        node
        for node in walk(value)
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value in own.functions
    ]
    known = {id(node) for node in numbers}
    return any(
        isinstance(node, cst.Yield)
        or isinstance(node, cst.Attribute)
        and code(node) not in own.settings
        or isinstance(node, cst.Call)
        and id(node) not in known
        for node in walk(value)
    )
