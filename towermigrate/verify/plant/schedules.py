"""Faults in learning-rate schedules, and in the count of the steps that they follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.gradients import applying
from towermigrate.verify.plant.source import Source, argument, last_name

_DECAYS = (
    "exponential_decay",
    "natural_exp_decay",
    "inverse_time_decay",
    "polynomial_decay",
    "piecewise_constant",
    "cosine_decay",
)


def faults(source: Source) -> Iterator[Fault]:
    for call in source.calls(*_DECAYS):
        yield from _schedule(source, call)
    for call in [*applying(source), *source.calls("minimize")]:
        yield from _count(source, call)


def _schedule(source: Source, call: ast.Call) -> Iterator[Fault]:
    place = 0 if last_name(call.func) == "piecewise_constant" else 1
    step = argument(call, place, "x" if place == 0 else "global_step")
    if step is None:
        return
    code = source.code(call)
    shifted = source.replace(step, f"({source.code(step)} + 1)")
    if source.loop:
        # Outside of graphs the step would be read once, so the whole schedule is made at each step.
        moved = code.replace(source.code(step), f"({source.code(step)} + 1)", 1)
        shifted = source.replace(call, f"(lambda: tm.value({moved}))")
    yield from source.fault("schedule: off by one", "the schedule is one step ahead", call, shifted)
    rate = argument(call, 0, "learning_rate")
    if place == 1 and rate is not None:
        yield from source.fault(
            "optimizer: learning rate",
            "the rate that the schedule begins with is multiplied by 1.01",
            call,
            source.wrap(rate, "(", ") * 1.01"),
        )
    decay = argument(call, 3, "decay_rate")
    if place == 1 and decay is not None:
        yield from source.fault(
            "schedule: decay", "the rate falls by more", call, source.wrap(decay, "(", ") * 0.9")
        )


def _count(source: Source, call: ast.Call) -> Iterator[Fault]:
    step = next((k.value for k in call.keywords if k.arg == "global_step"), None)
    if step is None:
        return
    name = source.code(step)
    yield from source.fault(
        "global step: not counted",
        "the update does not count on the global step",
        call,
        source.drop_keyword(call, "global_step"),
    )
    if not source.loop:
        again = f"tf.group({source.code(call)}, tf.compat.v1.assign_add({name}, 1))"
        edit = source.replace(call, again)
    else:
        statement = source.statement(call)
        if not source.can_stand_beside(statement) or isinstance(statement, ast.Return):
            return
        edit = source.after(
            statement,
            "tf.distribute.get_replica_context().merge_call(lambda strategy: strategy.extended.update("
            f"{name}, lambda count: count.assign_add(tf.ones([], count.dtype))))",
        )
    yield from source.fault(
        "global step: counted twice", "the update counts twice on the global step", call, edit
    )
