"""Faults in what a stage trains: a variable too few or too many, an optimizer that two stages share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument, last_name


def faults(source: Source) -> Iterator[Fault]:
    if source.loop:
        for call in source.calls("tower_gradients"):
            if len(call.args) > 2:
                yield from _listed(source, call, call.args[2])
    for call in source.calls("compute_gradients", "minimize"):
        listed = argument(call, 1 if last_name(call.func) == "compute_gradients" else 2, "var_list")
        if listed is not None:
            yield from _listed(source, call, listed)
    yield from _shared(source)


def _listed(source: Source, call: ast.Call, listed: ast.expr) -> Iterator[Fault]:
    code = source.code(listed)
    yield from source.fault(
        "variables: one missing",
        "the first variable is not trained",
        call,
        source.replace(listed, f"list({code})[1:]"),
    )
    scoped = listed
    if isinstance(listed, ast.Name):
        scoped = source.assigned(listed.id, call) or listed
    if isinstance(scoped, ast.Call) and not scoped.args and not scoped.keywords:
        return  # All variables as it is.
    everything = "variables.trainable()" if source.loop else "tf.compat.v1.trainable_variables()"
    yield from source.fault(
        "variables: others added",
        "the variables of every scope are trained",
        call,
        source.replace(listed, everything),
    )


def _shared(source: Source) -> Iterator[Fault]:
    """The second of two optimizers that stand in one function is the first."""
    made: dict[ast.AST | None, list[ast.Assign]] = {}
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and last_name(node.value.func).endswith("Optimizer")
        ):
            made.setdefault(source.function(node), []).append(node)
    for group in made.values():
        for first, second in zip(group, group[1:], strict=False):
            yield from source.fault(
                "optimizer: shared by two stages",
                f"{source.code(second.targets[0])} is {source.code(first.targets[0])}",
                second,
                source.replace(second.value, source.code(first.targets[0])),
            )
