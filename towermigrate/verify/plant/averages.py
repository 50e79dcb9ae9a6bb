"""Faults in moving averages of the variables: decay, order, and none at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.gradients import applying
from towermigrate.verify.plant.source import Source, argument, last_name


def faults(source: Source) -> Iterator[Fault]:
    made = list(source.calls("ExponentialMovingAverage"))
    for call in made:
        decay = argument(call, 0, "decay")
        if decay is not None:
            yield from source.fault(
                "moving average: decay",
                "the decay is multiplied by 0.99",
                call,
                source.wrap(decay, "(", ") * 0.99"),
            )
        count = argument(call, 1, "num_updates")
        if count is not None:
            yield from source.fault(
                "moving average: step",
                "the decay does not follow the step",
                call,
                source.replace(count, "None"),
            )
    if made and source.loop:
        for call in source.calls("apply"):
            yield from _applied(source, call)


def _applied(source: Source, call: ast.Call) -> Iterator[Fault]:
    statement = source.statement(call)
    if not isinstance(statement, ast.Expr) or not source.can_stand_beside(statement):
        return
    yield from source.fault(
        "moving average: not made",
        "the averages do not follow the variables",
        call,
        source.replace(statement, "pass"),
    )
    body = next(
        (
            body
            for node in source.above(statement)
            if isinstance(body := getattr(node, "body", None), list) and statement in body
        ),
        [],
    )
    updates = {source.statement(update) for update in applying(source)}
    place = body.index(statement)
    for other in body[max(place - 1, 0) : place + 2]:
        if other in updates and last_name(call.func) == "apply":
            yield from source.fault(
                "moving average: order",
                "the averages and the update change places",
                call,
                source.replace(statement, source.code(other)),
                source.replace(other, source.code(statement)),
            )
