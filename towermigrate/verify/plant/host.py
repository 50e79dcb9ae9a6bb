"""Faults in what the host does to variables between the training steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, last_name
from towermigrate.verify.plant.stages import training_statements

_SLOTS = ("Momentum", "Adam", "Adam_1", "RMSProp", "RMSProp_1", "Adagrad")


def faults(source: Source) -> Iterator[Fault]:
    for statement in training_statements(source):
        found = source.counted_loop(statement)
        if found is None:
            continue
        loop, counter = found
        late = source.late_turn(loop, 1)  # what no later step sees changes nothing
        weights, slots = _changes(source, statement)
        for kind, said, change, when in (
            ("host: weights changed", "the weights shrink by 1 %", weights, 2),
            ("late: weights changed", "the weights shrink by 1 %", weights, late),
            ("slots: changed by the host", "the slots shrink by 5 %", slots, 2),
            ("late: slots changed", "the slots shrink by 5 %", slots, late),
        ):
            if change is not None and when is not None:
                yield from source.fault(
                    kind,
                    f"{said} after the step in which {counter} is {when}",
                    statement,
                    source.after(statement, f"if {counter} == {when}:", f"    {change}"),
                )


def _changes(source: Source, statement: ast.stmt) -> tuple[str | None, str | None]:
    """A statement that changes the weights, and one that changes the slots of an optimizer."""
    if source.loop:
        optimizers = _optimizers(source)
        weights = "[v.assign(v * 0.99) for v in variables.trainable()]"
        slots = None
        if optimizers:
            opt = optimizers[0]
            slots = (
                f"[s.assign(s * 0.95) for n in {opt}.get_slot_names() for v in variables.trainable() "
                f"for s in [{opt}.get_slot(v, n)] if s is not None]"
            )
        return weights, slots
    session = next(
        (
            source.code(call.func.value)
            for call in ast.walk(statement)
            if isinstance(call, ast.Call)
            and last_name(call.func) == "run"
            and isinstance(call.func, ast.Attribute)
        ),
        None,
    )
    if session is None or "MonitoredTrainingSession" in source.text:
        return None, None  # Its graph is finished: nothing can be added to it.
    with_graph = f"with {session}.graph.as_default(): {session}.run("
    every = "tf.compat.v1.global_variables()"
    return (
        f"{with_graph}[v.assign(v * 0.99) for v in tf.compat.v1.trainable_variables()])",
        f"{with_graph}[v.assign(v * 0.95) for v in {every} "
        f"if v.op.name.rpartition('/')[2] in {_SLOTS!r}])",
    )


def _optimizers(source: Source) -> list[str]:
    """The names of optimizers that have slots."""
    return [
        source.code(node.targets[0])
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and last_name(node.value.func).endswith("Optimizer")
        and "GradientDescent" not in source.code(node.value.func)
    ]
