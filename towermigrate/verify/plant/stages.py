"""Faults in the order and number of the training steps that the host makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, last_name


def faults(source: Source) -> Iterator[Fault]:
    steps = list(training_statements(source))
    for statement in steps:
        yield from source.fault(
            "steps: doubled",
            "the training step is made twice",
            statement,
            source.after(statement, source.code(statement)),
        )
        found = source.counted_loop(statement)
        if found is None:
            continue
        loop, counter = found
        late = source.late_turn(loop, 0)
        yield from source.fault(
            "steps: one skipped",
            f"the training step is left out when {counter} is 2",
            statement,
            source.replace(statement, f"if {counter} != 2: {source.code(statement)}"),
        )
        on_a_line = statement.lineno == (statement.end_lineno or 0)
        if late is not None and isinstance(statement, (ast.Expr, ast.Assign)) and on_a_line:
            yield from source.fault(
                "late: a step doubled",
                f"the training step is made twice when {counter} is {late}",
                statement,
                source.after(
                    statement, f"if {counter} == {late}:", f"    {source.code(statement)}"
                ),
            )
    yield from _in_another_order(source, steps)
    for statement in steps:
        yield from _inner_loop(source, statement)


def training_statements(source: Source) -> Iterator[ast.stmt]:
    """The statements of the host that make a training step."""
    if source.loop:
        names = [
            function.name
            for function in source.functions()
            if any("tf.function" in source.code(each) for each in function.decorator_list)
            and (
                "apply_gradients" in source.code(function)
                or "apply_averaged" in source.code(function)
            )
        ]
        calls = [
            call
            for call in source.calls(*names)
            if not any(
                isinstance(each, ast.Call) and last_name(each.func) == "create_variables"
                for each in source.above(call)
            )
        ]
    else:
        calls = [
            call
            for call in source.calls("run")
            if call.args
            and isinstance(call.func, ast.Attribute)
            and "train" in source.code(call.args[0])
        ]
    seen = []
    for call in calls:
        statement = source.statement(call)
        if source.can_stand_beside(statement) and statement not in seen:
            seen.append(statement)
            if isinstance(statement, (ast.Expr, ast.Assign)):
                yield statement


def _in_another_order(source: Source, steps: list[ast.stmt]) -> Iterator[Fault]:
    for node in ast.walk(source.tree):
        body = getattr(node, "body", None)
        if not isinstance(node, (ast.For, ast.While)) or not isinstance(body, list):
            continue
        here = [
            each for each in body if any(step is each or step in ast.walk(each) for step in steps)
        ]
        for first, second in zip(here, here[1:], strict=False):
            yield from source.fault(
                "stages: in another order",
                "two stages change places",
                first,
                source.replace(first, source.code(second)),
                source.replace(second, source.code(first)),
            )


def _inner_loop(source: Source, statement: ast.stmt) -> Iterator[Fault]:
    """The stage that is trained several times for one update of another."""
    for node in source.above(statement):
        if not isinstance(node, ast.For):
            return
        if (
            isinstance(node.target, ast.Name)
            and node.target.id == "_"
            and isinstance(node.iter, ast.Call)
            and last_name(node.iter.func) == "range"
            and len(node.iter.args) == 1
        ):
            yield from source.fault(
                "stages: one trained less often",
                "one update fewer of this stage for each of the other",
                statement,
                source.wrap(node.iter.args[0], "(", ") - 1"),
            )
