"""When a run reads a variable that it also writes: as TF1's reference variables showed it, or said.

The value of a reference variable was its memory: what was made from `w` saw what had been assigned to `w` by
the time it ran, though it was handed the value before. The value of a mirrored copy is read once. So what is
built under `tf.control_dependencies`, or together with what was made after the assignment, reads again; and a run in which the order is left open, where TF1 gave
the old value or the new one as the operations came, is told of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_checks import is_write, written_handle
from towermigrate.helpers._session_graphs import TowerGraph, here, mirrored

_log = logging.getLogger("towermigrate")

# What hands a variable's memory on; a reference variable showed what was in it at the end of the run.
SAME_MEMORY = ("Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient")

_READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
_SUMMARIES = ("Summary", "SummaryV2")
# Each set of fetches is looked at once; a program that makes new ones in every step is not slowed down.
_LOOKED_AT = 50
# What uses a value a step from the run's beginning comes before an assignment after a network's gradients, but
# not surely before `step.assign(step + 1)`.
_SOON = 10

_OPEN = (
    "towermigrate: a run assigns %s (%s) and reads it (for %s) in no order that holds for both. Under "
    "TensorFlow 1 that gave the value of before or of after, as the operations came; here it is the one of "
    "before, where it was read earlier in the source. tf.control_dependencies around the read says which."
)
_IN_LOOP = (
    "towermigrate: a run assigns %s (%s), of which a loop was given the value before (%s), and gradients go through the "
    "loop. Under TensorFlow 1 they were made from what the variable held by the time they came, often the new value; here "
    "they are those of the value that the loop was given. tf.stop_gradient around what the loop makes of it says that "
    "none are wanted."
)


def needed_for(elements: Iterable[Any]) -> set[Any]:
    """Every operation that runs where these tensors and operations are asked for."""
    waiting = [element if isinstance(element, tf.Operation) else element.op for element in elements]
    seen = set(waiting)
    while waiting:
        for before in _before(waiting.pop()):
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return seen


def read_behind(tensor: Any) -> Any:
    """The operation that read the variable whose memory a tensor would have been; or None."""
    made = tensor.op
    while made.type in SAME_MEMORY:
        made = made.inputs[0].op
    return made if made.type == "ReadVariableOp" else None


def reads_after_its_controls(create: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for the method of `tf.Graph` that every operation is made by.

    An operation that waits for an assignment, and is given a value that was read without waiting for it,
    reads the variable again, after the assignment: `tf.control_dependencies([d_step])` around the
    gradients of a generator, which go through the discriminator's weights. So does one that is given a
    reference variable together with what waits for its assignment, as gradients are of what a power
    iteration made of the vector that it moves on.
    """

    def _create_op_internal(self: Any, op_type: str, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        towers = mirrored(self)
        if towers is not None and towers.graph is self:
            controls = private.controls_of(self)
            if controls:
                inputs = [_as_of(controls, each, towers) for each in inputs]
            if len(inputs) > 1:
                inputs = _as_of_each_other(inputs, towers)
        made = create(self, op_type, inputs, *args, **kwargs)
        if here.writes is not None and towers is not None and is_write(made):
            here.writes.append(made)
        return made

    return _create_op_internal


def _as_of(controls: set[Any], value: Any, towers: TowerGraph) -> Any:
    """A tensor, or the same made from a new read, if one of `controls` comes after an assignment it misses."""
    if not isinstance(value, tf.Tensor):
        return value
    read = read_behind(value)
    if read is None or private.control_flow(read) is not private.control_flow(towers.graph):
        return value
    variable = towers.variable_of(read.inputs[0])
    if variable is None:
        return value
    bit = _bit_of(variable, towers)
    if not any(_written_above(each, towers) & bit for each in controls):
        return value
    if _written_above(read, towers) & bit and controls <= set(read.control_inputs):
        return value
    return _made_again(value.op).outputs[value.value_index]


def _as_of_each_other(inputs: Sequence[Any], towers: TowerGraph) -> list[Any]:
    """The inputs of an operation, with a new read of what others of them come after an assignment of."""
    found = list(inputs)
    for place, value in enumerate(inputs):
        read = read_behind(value) if isinstance(value, tf.Tensor) else None
        if read is None or private.control_flow(read) is not private.control_flow(towers.graph):
            continue
        variable = towers.variable_of(read.inputs[0])
        if variable is None or not variable.is_reference:
            continue
        bit = _bit_of(variable, towers)
        if _written_above(read, towers) & bit:
            continue
        behind = [
            each.op
            for each in inputs
            if isinstance(each, tf.Tensor) and _written_above(each.op, towers) & bit
        ]
        if behind:
            with towers.graph.control_dependencies(behind):
                found[place] = _made_again(value.op).outputs[value.value_index]
    return found


def _made_again(operation: Any) -> Any:
    inputs = list(operation.inputs)
    if operation.type in SAME_MEMORY:
        inputs[0] = _made_again(inputs[0].op).outputs[inputs[0].value_index]
    attributes = {
        k: v for k, v in operation.node_def.attr.items() if k not in ("_class", "_output_shapes")
    }
    with private.colocate_with(None, ignore_existing=True), tf.device(operation.device):
        return operation.graph.create_op(
            operation.type,
            inputs,
            [output.dtype for output in operation.outputs],
            attrs=attributes,
            name=operation.name.rpartition("/")[2],
        )


def _bit_of(variable: Any, towers: TowerGraph) -> int:
    return 1 << towers.places.setdefault(variable.name, len(towers.places))


def _written_by(operation: Any, towers: TowerGraph) -> int:
    """The bit of the mirrored variable that an operation writes, or 0."""
    if not is_write(operation):
        return 0
    found = towers.variables.get(written_handle(operation))
    return 0 if found is None else _bit_of(found[0], towers)


def _written_above(operation: Any, towers: TowerGraph) -> int:
    """The bits of the variables that are written before an operation, or by it, wherever it runs."""
    known = towers.written_above
    waiting, entered = [operation], set()
    while waiting:
        each = waiting[-1]
        if each in known:
            waiting.pop()
        elif each in entered:
            bits = _written_by(each, towers)
            for before in _before(each):
                bits |= known.get(before, 0)
            known[each] = bits
            waiting.pop()
        else:
            entered.add(each)
            waiting += [
                before for before in _before(each) if before not in known and before not in entered
            ]
    return known[operation]


def _before(operation: Any) -> Iterator[Any]:
    for tensor in operation.inputs:
        yield tensor.op
    yield from operation.control_inputs


def tell_of_races(
    towers: TowerGraph, run: set[Any], fetches: Sequence[Any], targets: Sequence[Any]
) -> None:
    """Warn, once for each variable, where a run writes it and reads it in an order that is left open.

    Not told of is what only summaries show, what the variable's own assignment is made from, and what uses
    the value long before a late assignment.
    """
    if towers.looked_for_races >= _LOOKED_AT:
        return
    towers.looked_for_races += 1
    # Branches and loops are left out: which of them run, and in what order, is not told by the graph.
    writes = {
        op: bit
        for op in run
        if private.control_flow(op) is None and (bit := _written_by(op, towers))
    }
    for variable, _ in towers.variables.values():
        for copy in variable.copies:
            writes.pop(copy.initializer, None)
    if not writes:
        return
    asked = {each if isinstance(each, tf.Operation) else each.op for each in (*fetches, *targets)}
    found = _Ordered(run, writes, asked)
    stacked = {private.control_flow(op).name.encode() for op in run if op.type == "StackPushV2"}
    earliest: dict[int, Any] = {}
    for op, bit in writes.items():
        if bit not in earliest or found.steps[op] < found.steps[earliest[bit]]:
            earliest[bit] = op
    for op in found.operations:
        if op.type not in _READS or private.control_flow(op) is not None:
            continue
        known = towers.variables.get(written_handle(op))
        if known is None or known[0].name in towers.told_of:
            continue
        bit = _bit_of(known[0], towers)
        if bit not in earliest or found.above[op] & bit:
            continue
        write = earliest[bit]
        for user in _users(op, found.after):
            was_memory = known[0].is_reference
            if was_memory and user.type == "Enter" and user.get_attr("frame_name") in stacked:
                towers.told_of.add(known[0].name)
                _log.warning(_IN_LOOP, known[0].name, write.name, user.name)
                break
            if user in writes or user not in found.matters:
                continue
            soon = found.steps[write] < _SOON or found.steps[user] >= found.steps[write]
            if (soon and not found.below[op] & bit) or (was_memory and found.above[user] & bit):
                towers.told_of.add(known[0].name)
                _log.warning(_OPEN, known[0].name, write.name, user.name)
                break


class _Ordered:
    """A run's operations, each after what it needs; loops are cut where they turn.

    `after` are those that need one; `above` and `below` have the bits of what is written before and after
    it; `steps` is the longest way from the run's beginning; `matters` is what leads to a write or a fetch.
    """

    def __init__(self, run: set[Any], writes: dict[Any, int], asked: set[Any]) -> None:
        self.operations = _in_order(run)
        self.after: dict[Any, list[Any]] = {}
        self.above: dict[Any, int] = {}
        self.below: dict[Any, int] = {}
        self.steps: dict[Any, int] = {}
        self.matters: set[Any] = set()
        for op in self.operations:
            bits, steps = writes.get(op, 0), 0
            for before in _before(op):
                bits |= self.above.get(before, 0)
                steps = max(steps, self.steps.get(before, 0) + 1)
                # Who waits for a read does not wait for what uses it, which is when a reference was read.
                if before.type not in _READS or any(each.op is before for each in op.inputs):
                    self.after.setdefault(before, []).append(op)
            self.above[op], self.steps[op] = bits, steps
        for op in reversed(self.operations):
            bits = writes.get(op, 0)
            users = self.after.get(op, ())
            for user in users:
                bits |= self.below.get(user, 0)
            self.below[op] = bits
            leads = op in writes or op in asked or any(user in self.matters for user in users)
            if leads and not op.type.endswith(_SUMMARIES):
                self.matters.add(op)


def _users(read: Any, after: dict[Any, list[Any]]) -> Iterator[Any]:
    """What uses the value that was read, beyond what only hands it on."""
    for each in after.get(read, ()):
        if each.type in SAME_MEMORY and each.inputs[0].op is read:
            yield from _users(each, after)
        elif any(tensor.op is read for tensor in each.inputs):
            yield each


def _in_order(run: set[Any]) -> list[Any]:
    """The operations of a run, each after what it needs; loops are cut where they turn."""
    ordered: list[Any] = []
    done: set[Any] = set()
    entered: set[Any] = set()
    for start in run:
        waiting = [start]
        while waiting:
            each = waiting[-1]
            if each in done:
                waiting.pop()
            elif each in entered:
                done.add(each)
                ordered.append(each)
                waiting.pop()
            else:
                entered.add(each)
                waiting += [before for before in _before(each) if before not in entered]
    return ordered
