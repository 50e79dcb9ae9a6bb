"""Assignments that count on from a variable's old value, one after another.

Batch normalization moves its averages by `v.assign_sub((v - mean) * (1 - decay))`. Where every tower does so in
one run, TF1's towers found, one after another, what the last had left: operations that read a reference variable
saw its memory, and the difference was made where the update was. The copies of a mirrored variable are read
once, at the beginning of the run as a rule, so all towers would start from the same value, and the average move
by `towers * (1 - decay)` of the way. No order can be asked for, as a run may need the last tower's update alone;
so each takes its turn: a lock, the variable read again, the value made again from it, every copy written.
Which tower's turn is first is chance, as it was.

What is made of the variable and of constants alone is another matter: `v.assign(v * 0.9 + mean * 0.1)` multiplied at
the beginning of the run, in every tower, before any of them had assigned. That part is made of a read that every
tower's assignment waits for.

Source: the lock is that of `tf.CriticalSection`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_checks import is_write, written_handle
from towermigrate.helpers._session_graphs import TowerGraph

_NEAR = 8  # operations from a variable to what is assigned to it
_MOST = 40  # operations that are made again
_MOST_LOOKED_AT = 20_000  # operations before or behind an assignment
_SOON = 6  # operations from the beginning of a run to what is used beside a variable's value there
# Each lock has a thread. Variables that share one wait for each other's few operations.
_LOCKS = 4


@dataclass(frozen=True)
class Way:
    """What leads from reads of a variable to a value made of it: operations, each after what it needs."""

    value: Any
    reads: frozenset[Any]
    operations: tuple[Any, ...]

    @property
    def others(self) -> list[Any]:
        """The tensors that the value is made of besides."""
        inside = {*self.reads, *self.operations}
        found = {
            tensor.ref(): tensor
            for each in self.operations
            for tensor in each.inputs
            if tensor.op not in inside
        }
        return list(found.values())

    @property
    def at_once(self) -> frozenset[Any]:
        """The operations that need a read's value and else only constants: they run when a run begins."""
        if not all(_comes_at_once(each) for read in self.reads for each in read.control_inputs):
            return frozenset()
        return frozenset(
            each
            for each in self.operations
            if each.type != "Identity"
            and any(_of_read(tensor) in self.reads for tensor in each.inputs)
            and all(_comes_at_once(before) for before in each.control_inputs)
            and all(
                _of_read(tensor) in self.reads or _comes_at_once(tensor.op)
                for tensor in each.inputs
            )
        )

    @property
    def after(self) -> list[Any]:
        """The operations that these wait for: an assignment, where a read is what it gave."""
        inside = {*self.reads, *self.operations}
        waited = {before for each in inside for before in each.control_inputs}
        return sorted(waited - inside, key=lambda each: str(each.name))


def way_to(value: Any, copies: Sequence[Any]) -> Way | None:
    """How a value is made from a variable whose copies these are; None where it is not, or not simply."""
    handles = {copy.handle.op.name for copy in copies}
    leads: dict[Any, bool] = {}
    operations: list[Any] = []
    reads: set[Any] = set()

    def follow(operation: Any, depth: int) -> bool:
        if operation in leads:
            return leads[operation]
        leads[operation] = False
        if operation.type == "ReadVariableOp":
            if written_handle(operation) in handles:
                reads.add(operation)
                leads[operation] = True
        elif depth < _NEAR and not private.is_control_flow(operation):
            # What comes out of a branch or a loop is taken as it came, whatever was read there.
            if sum(follow(tensor.op, depth + 1) for tensor in operation.inputs):
                leads[operation] = True
                operations.append(operation)
        return leads[operation]

    if not follow(value.op, 0):
        return None
    simple = len(operations) <= _MOST and not any(each.op_def.is_stateful for each in operations)
    return Way(value, frozenset(reads), tuple(operations)) if simple else None


def _of_read(tensor: Any) -> Any:
    """The operation whose memory a tensor is, which is that of a read where one only hands it on."""
    made = tensor.op
    while made.type == "Identity":
        made = made.inputs[0].op
    return made


def _comes_at_once(operation: Any, depth: int = 0) -> bool:
    """Whether an operation is fed, or made of constants and of numbers that are fed, as is the branch that it may be in."""
    if operation.type == "Const":
        return all(_comes_at_once(each, depth + 1) for each in operation.control_inputs)
    if operation.type in ("Placeholder", "PlaceholderWithDefault"):
        shape, of_branch = operation.outputs[0].shape, operation.outputs[0].dtype == tf.bool
        # What decides a branch is one number, whether or not its placeholder was given a shape.
        return bool(depth == 0 or shape.rank == 0 or of_branch and shape.rank is None)
    if operation.type == "ReadVariableOp":  # of another variable: the rate of an average
        return all(_comes_at_once(each, depth + 1) for each in operation.control_inputs)
    if depth > _SOON or operation.op_def.is_stateful or not operation.inputs:
        return False
    return all(_comes_at_once(each, depth + 1) for each in _before(operation))


def is_ordered(way: Way, copies: Sequence[Any], behind: Iterable[Any]) -> bool:
    """Whether the author has put a write of the variable behind what is made of it, or before the assignment.

    `old = w + 0.0`, an update that waits for it, and `w.assign(old + 0.5 * (w - old))` after that: made again, `old`
    would be the new value. What cannot be looked through counts as ordered.

    Args:
        behind: what the assignment waits for besides, of `tf.control_dependencies`.
    """
    handles = {copy.handle.op.name for copy in copies}

    def is_reached(start: Iterable[Any], step: Callable[[Any], Iterable[Any]], most: int) -> bool:
        waiting, seen = list(start), set(start)
        while waiting:
            each = waiting.pop()
            if is_write(each) and written_handle(each) in handles:
                return True
            new = {one for one in step(each) if one not in seen}
            seen |= new
            waiting += new
            if len(seen) > most:
                return True
        return False

    mine = [*way.reads, *way.operations]
    waited = [*behind, *way.after]
    if is_reached(mine, private.waiting_for, _MOST_LOOKED_AT):
        return True
    return bool(waited) and is_reached(waited, _before, _MOST_LOOKED_AT)


def _before(operation: Any) -> list[Any]:
    return [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]


def can_wait(towers: TowerGraph) -> bool:
    """Whether what is built here can take a turn: in the graph itself, and in no loop."""
    graph = tf.compat.v1.get_default_graph()
    return towers.graph is graph and not private.is_in_loop(graph)


@contextlib.contextmanager
def turn(towers: TowerGraph, variable: Any, way: Way, done: list[Any]) -> Iterator[Any]:
    """Yields the value, made again in a turn; what is put into `done` belongs to it, and is replaced by its end.

    Nothing in the turn waits for another one: the lock is asked for when all that the value is made of is there.
    The value that the author made is waited for too: it may go elsewhere as well (`speed = 0.9 * m + g`, `m.assign(speed)`
    and `w.assign_sub(rate * speed)`), and is of what the variable was before, as it came before the assignment.
    """
    others = [*way.others, way.value]
    at_once = way.at_once
    early = None
    if at_once:
        early = _read_at_once(variable)
        towers.read_at_once.setdefault(variable.name, []).append(_of_read(early))
    if private.control_flow(towers.graph) is not None:
        # A branch hears only of what is in it.
        others = [tf.identity(each) for each in others]
    with tf.control_dependencies([*others, *way.after]), _on_cpu():
        lock = tf.raw_ops.MutexLock(mutex=_mutex_for(variable, towers))
    with tf.control_dependencies([lock.op]):
        yield _made_again(way, variable, early)
    with tf.control_dependencies(done), _on_cpu():
        done[:] = [tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)]


def _read_at_once(variable: Any) -> Any:
    """The variable as it is when a run begins."""
    with tf.control_dependencies(None), private.colocate_with(None, ignore_existing=True):
        return _read(variable)


def _read(variable: Any) -> Any:
    """The variable's value, in operations that take no name from the program's."""
    with tf.name_scope("in_turn"):
        return variable.read_value()


def put_before_writes(towers: TowerGraph, variable: Any) -> None:
    """Every read of when a run begins comes before all that writes the same copy in turn, of whichever tower."""
    reads = towers.read_at_once.get(variable.name, [])
    for write in towers.written_in_turn.get(variable.name, []):
        known = set(write.control_inputs)
        alike = [each for each in reads if written_handle(each) == written_handle(write)]
        private.run_before(write, [each for each in alike if each not in known])


def _made_again(way: Way, variable: Any, early: Any) -> Any:
    at_once = way.at_once
    with private.colocate_with(None, ignore_existing=True):
        now = _read(variable)
        made = {read: [now] for read in way.reads}

        def given(to: Any, tensor: Any) -> Any:
            if to in at_once and _of_read(tensor) in way.reads:
                return early
            return made[tensor.op][tensor.value_index] if tensor.op in made else tensor

        for each in way.operations:
            with tf.device(each.device):
                again = each.graph.create_op(
                    each.type,
                    [given(each, tensor) for tensor in each.inputs],
                    [output.dtype for output in each.outputs],
                    attrs={
                        k: v
                        for k, v in each.node_def.attr.items()
                        if k not in ("_class", "_output_shapes")
                    },
                    name=f"in_turn/{each.name.rpartition('/')[2]}",
                )
            made[each] = list(again.outputs)
    return made[way.value.op][way.value.value_index]


def _mutex_for(variable: Any, towers: TowerGraph) -> Any:
    place = towers.turns.setdefault(variable.name, len(towers.turns)) % _LOCKS
    if place not in towers.locks:
        with tf.control_dependencies(None), _on_cpu():
            towers.locks[place] = tf.raw_ops.MutexV2(name=f"towermigrate_turns_{place}/")
    return towers.locks[place]


@contextlib.contextmanager
def _on_cpu() -> Iterator[None]:
    with private.colocate_with(None, ignore_existing=True), tf.device("/cpu:0"):
        yield
