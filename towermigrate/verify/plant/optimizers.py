"""Faults in the optimizers: their formula, their numbers, the rate, what their slots begin with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument, last_name

# In place of each, another one that takes a rate alone.
_OTHERS = {
    "AdamOptimizer": "RMSPropOptimizer",
    "RMSPropOptimizer": "AdamOptimizer",
    "MomentumOptimizer": "GradientDescentOptimizer",
    "AdagradOptimizer": "GradientDescentOptimizer",
    "GradientDescentOptimizer": "AdagradOptimizer",
}
# The numbers of each: kind, place, name, the default, and what the fault makes of it.
_NUMBERS = {
    "AdamOptimizer": (
        ("beta", 1, "beta1", "0.9", "0.8"),
        ("beta", 2, "beta2", "0.999", "0.99"),
        ("epsilon", 3, "epsilon", "1e-8", "1e-5"),
    ),
    "RMSPropOptimizer": (
        ("decay", 1, "decay", "0.9", "0.8"),
        ("momentum", 2, "momentum", "0.0", "0.5"),
        ("epsilon", 3, "epsilon", "1e-10", "1e-5"),
    ),
    "MomentumOptimizer": (("momentum", 1, "momentum", "0.9", "0.85"),),
    "AdagradOptimizer": (
        ("initial accumulator", 1, "initial_accumulator_value", "0.1", "0.2"),
    ),
}  # fmt: skip


def faults(source: Source) -> Iterator[Fault]:
    for call in source.calls(*_OTHERS):
        name = last_name(call.func)
        rate = argument(call, 0, "learning_rate")
        if rate is None:
            continue
        yield from _formula(source, call, name, rate)
        for kind, place, keyword, default, other in _NUMBERS.get(name, ()):
            given = argument(call, place, keyword)
            edit = (
                source.add_argument(call, f"{keyword}={other}")
                if given is None
                else source.replace(given, other)
            )
            if given is not None and source.code(given) == other:
                continue
            was = default if given is None else source.code(given)
            yield from source.fault(
                f"optimizer: {kind}", f"{keyword} is {other} in place of {was}", call, edit
            )
        if not _follows_schedule(source, rate):
            yield from source.fault(
                "optimizer: learning rate",
                "the learning rate is multiplied by 1.01",
                call,
                source.wrap(rate, "(", ") * 1.01"),
            )


def _formula(source: Source, call: ast.Call, name: str, rate: ast.expr) -> Iterator[Fault]:
    other = _OTHERS[name]
    function = source.code(call.func)[: -len(name)] + other
    yield from source.fault(
        "optimizer: another",
        f"{other} in place of {name}",
        call,
        source.replace(call, f"{function}({source.code(rate)})"),
    )
    if name == "MomentumOptimizer" and argument(call, 4, "use_nesterov") is None:
        yield from source.fault(
            "optimizer: formula",
            "Nesterov's form of the momentum",
            call,
            source.add_argument(call, "use_nesterov=True"),
        )


def _follows_schedule(source: Source, rate: ast.expr) -> bool:
    """Whether the rate is made by a decay: outside of graphs that is a function, which has no product."""
    made = source.assigned(rate.id, rate) if isinstance(rate, ast.Name) else rate
    return source.loop and isinstance(made, ast.Call)
