"""The variables and optimizer slots of a graph: name, read, load and move them.

`run` is `Session.run` as TensorFlow has it, without the probe.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

from typing import Any, Dict, List

import numpy as np

from .operations import beside_slots, names_of_slots


def variables_by_key(graph: Any, applied: Any, described: Dict[str, Any]) -> Dict[str, Any]:
    """The variables of a graph by their keys in the recording, those of slots under their stage.

    `applied` are the updates seen so far, by stage; each new variable is added to `described`.
    """
    names: Dict[int, str] = {}
    owners: List[Any] = []
    for stage, update in applied.items():
        optimizer = update.optimizer
        if optimizer is None:
            continue
        if not any(optimizer is known for _, known in owners):
            owners.append((stage, optimizer))
        owner = next(number for number, known in owners if known is optimizer)
        for slot in names_of_slots(optimizer):
            for _, variable in update.pairs:
                value = optimizer.get_slot(variable, slot)
                if value is not None:
                    names[id(value)] = "slot/%d/%s/%s" % (owner, slot, variable.op.name)
        for slot, value in beside_slots(optimizer):
            names[id(value)] = "slot/%d/%s" % (owner, slot)
    state = {}
    trainable = [v.op.name for v in graph.get_collection("trainable_variables")]
    for variable in graph.get_collection("variables"):
        if not hasattr(variable, "initializer"):
            continue
        key = names.get(id(variable), "variable/" + variable.op.name)
        state[key] = variable
        if key not in described:
            described[key] = {
                "shape": variable.get_shape().as_list(),
                "dtype": variable.dtype.base_dtype.name,
                "trainable": variable.op.name in trainable,
            }
    return state


def read_values(tf: Any, run: Any, session: Any, state: Dict[str, Any]) -> Dict[str, Any]:
    """The values of variables; those that the program never initialized are taken out of `state`."""
    try:
        values: Dict[str, Any] = run(session, dict(state), None, None, None)
        return values
    except tf.errors.FailedPreconditionError:
        values = {}
        for key in list(state):
            try:
                values[key] = run(session, state[key], None, None, None)
            except tf.errors.FailedPreconditionError:
                # Never initialized by the program: it is no part of the training.
                del state[key]
        return values


def load_values(run: Any, session: Any, state: Dict[str, Any], values: Dict[str, Any]) -> None:
    """Give the variables of `state` the values that there are for them."""
    feeds = {}
    ops = []
    for key, variable in state.items():
        if key in values:
            feeds[variable.initializer.inputs[1]] = values[key]
            ops.append(variable.initializer)
    run(session, ops, feeds, None, None)


def move_values(values: Dict[str, Any], keys: List[str], part: float, seed: int) -> Dict[str, Any]:
    """Move each number by a part of its size, up or down at random, in place; gives what was added."""
    generator = np.random.RandomState(seed)
    added = {}
    for key in keys:
        exact = values[key]
        way = generator.randint(0, 2, exact.shape) * 2 - 1
        values[key] = (exact * (1 + part * way)).astype(exact.dtype)
        added[key] = values[key].astype(np.float64) - exact
    return added


def less(value: Any, part: Any) -> Any:
    """`value - part` in double precision, in the type of `value`."""
    return (value.astype(np.float64) - part).astype(value.dtype)
