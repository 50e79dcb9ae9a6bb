"""Run a rewritten program on a TPU on what was recorded from its original, and record the same things.

`python -m towermigrate.verify.on_tpu CONFIG.json`, in place of `replay_tf2`. There one trace of a step serves every
replica, and what a replica computes is one program of XLA's, which can ask the host for nothing and tell it nothing.
So what is to be recorded leaves a replica as results of `strategy.run` beside the program's own, and what was
recorded from the original enters as arguments. Both are dealt with on the host, in the `tf.function` around the run.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from towermigrate.verify.probe.randomness import TOWER_STRIDE
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.replay_tf2 import Replay, main

_INPUT = "input/"


@dataclass
class _Frame:
    """One trace of a replica: the graph of its function, what entered, and what is to leave, by its key.

    Keys have an empty place for the replica's number.
    """

    graph: Any
    counter: Any
    recorded: dict[str, tuple[Any, Any]]
    leaves: dict[str, Any] = field(default_factory=dict)


class OnTpu(Replay):
    """`Replay` of a strategy whose replicas have no numbers while a step is traced."""

    def __init__(self, config: dict[str, Any], tf: Any) -> None:
        super().__init__(config, tf)
        self.lost: set[str] = set()
        self._known: dict[str, list[np.ndarray[Any, Any] | None]] | None = None
        self._wrap_run()

    # ---- around the replicas ---------------------------------------------------------------------

    def _wrap_run(self) -> None:
        """Have values enter and leave the replicas of a step that is traced."""
        from tensorflow.python.autograph.core import ag_ctx
        from tensorflow.python.autograph.impl import api as autograph
        from tensorflow.python.distribute import distribute_lib

        tf, replay = self.tf, self
        strategies = [distribute_lib.StrategyBase, tf.distribute.TPUStrategy]

        def wrapped(original: Any) -> Any:
            @functools.wraps(original)
            def run(
                strategy: Any, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None
            ) -> Any:
                trace = replay.here()
                if trace is None or getattr(replay.local, "running", False):
                    return original(strategy, fn, args=args, kwargs=kwargs, options=options)
                count = strategy.num_replicas_in_sync
                shape: list[Any] = []
                converted = autograph.tf_convert(
                    fn, ag_ctx.control_status_ctx(), convert_by_default=False
                )

                @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
                def replica(counter: Any, recorded: Any, *own: Any, **named: Any) -> Any:
                    graph = tf.compat.v1.get_default_graph()
                    made = len(graph.get_operations())
                    frame = _Frame(graph, counter, recorded)
                    replay.local.frame = frame
                    try:
                        result = converted(*own, **named)
                    finally:
                        replay.local.frame = None
                    values = tf.nest.flatten(result)
                    shape[:] = [result, [tf.is_tensor(value) for value in values]]
                    tensors = [value for value in values if tf.is_tensor(value)]
                    replay._keep_unread(frame, [*tensors], graph.get_operations()[made:])
                    # A run that returns nothing is no result for a TPU.
                    return {"own": tensors, "leaves": dict(frame.leaves), "ran": tf.constant(0)}

                recorded = replay._entering(count, trace.counter)
                replay.local.running = True
                try:
                    given = original(
                        strategy,
                        replica,
                        args=(trace.counter, recorded, *args),
                        kwargs=kwargs,
                        options=options,
                    )
                finally:
                    replay.local.running = False
                for key, value in given["leaves"].items():
                    replay._leave(key, strategy.experimental_local_results(value))
                first = trace.updates.get(0)
                if first is not None:
                    trace.updates.update(dict.fromkeys(range(count), first))
                for name in list(trace.inputs):
                    rest = name.split("/", 2)[2]
                    trace.inputs.update(f"{_INPUT}{number}/{rest}" for number in range(count))
                result, are_tensors = shape
                tensors = iter(given["own"])
                values = [
                    next(tensors) if is_tensor else value
                    for value, is_tensor in zip(tf.nest.flatten(result), are_tensors, strict=True)
                ]
                return tf.nest.pack_sequence_as(result, values)

            return run

        for each in strategies:
            if "run" in vars(each):
                each.run = wrapped(each.run)

    def _keep_unread(self, frame: _Frame, results: list[Any], operations: list[Any]) -> None:
        """Let inputs that nothing of a step needs stay unread: they may be what must not be read."""
        kinds = {
            *self.trace.meta.get("replica_operations", ()),
            *(each.type for each in operations),
        }
        self.trace.meta["replica_operations"] = sorted(kinds)
        leaving = [value for key, value in frame.leaves.items() if not key.startswith("own/")]
        waiting = [value.op for value in (*results, *leaving) if value.graph is frame.graph]
        waiting += [each for each in operations if each.op_def.is_stateful]
        needed: set[str] = set()
        while waiting:
            each = waiting.pop()
            if each.name not in needed:
                needed.add(each.name)
                waiting += [*each.control_inputs, *(value.op for value in each.inputs)]
        for key, value in list(frame.leaves.items()):
            if key.startswith("own/") and value.op.name not in needed:
                del frame.leaves[key]

    def _entering(self, count: int, counter: Any) -> dict[str, tuple[Any, Any]]:
        """For each input by its name, the recorded rows of all towers, and which towers have some in this run."""
        entering: dict[str, tuple[Any, Any]] = {}
        for name, known in self._recorded_inputs(count).items():
            found = [each for each in known if each is not None]
            if any(each.shape != found[0].shape for each in found):
                raise ValueError(
                    f"The original's towers read `{name}` with different numbers of rows, and a TPU runs one program "
                    "on all of them, of fixed shapes: verify cannot give it these rows. cpu:N and gpu:N can."
                )

            def read(run: Any, name: str = name, like: Any = found[0]) -> tuple[Any, Any]:
                del run  # A changing argument, so that the op is never folded into a constant.
                rows = [self.given.get(f"{_INPUT}{number}/{name}") for number in range(count)]
                has = np.array([each is not None for each in rows])
                return np.stack([np.zeros_like(like) if r is None else r for r in rows]), has

            with self.tf.device("/CPU:0"):
                rows, has = self.tf.numpy_function(
                    read, [counter], [self.tf.as_dtype(found[0].dtype), self.tf.bool]
                )
            rows.set_shape([count, *found[0].shape])
            has.set_shape([count])
            entering[name] = (rows, has)
        return entering

    def _recorded_inputs(self, count: int) -> dict[str, list[np.ndarray[Any, Any] | None]]:
        """By name, an array like those of each tower; None where a tower never read it."""
        if self._known is None:
            self._known = {}
            for index in sorted(self.runs):
                for key, array in read_arrays(self.folder, f"run_{index:05d}").items():
                    if not key.startswith(_INPUT) or array.dtype.kind not in "fiub":
                        continue
                    _, number, name = key.split("/", 2)
                    towers = self._known.setdefault(name, [None] * count)
                    if towers[int(number)] is None:
                        towers[int(number)] = array
        return self._known

    def _leave(self, key: str, values: Any) -> None:
        """On the host: keep what left the replicas under their numbers."""

        def keep(number: int, value: Any) -> None:
            if key.startswith("own/") and not self.given:
                return
            whole = key.format(number)
            self.collected[whole] = np.array(value)
            self.collected["count/" + whole] = 1

        for number, value in enumerate(values):
            with self.tf.device("/CPU:0"):
                self.tf.numpy_function(functools.partial(keep, number), [value], [])

    # ---- inside of a replica ---------------------------------------------------------------------

    def replica(self) -> int | None:
        """The number of the trace, which is the only one on a TPU; nothing that is traced depends on it."""
        frame = self._frame()
        return None if frame is None else super().replica() or 0

    def _frame(self) -> _Frame | None:
        frame: _Frame | None = getattr(self.local, "frame", None)
        return frame

    def _number(self) -> Any:
        """The replica's number, a tensor."""
        context = self.tf.distribute.get_replica_context()
        return self.tf.cast(context.replica_id_in_sync_group, self.tf.int32)

    def _sink(self, key: str, tensor: Any) -> None:
        frame = self._frame()
        if frame is None or tensor.graph is not frame.graph:
            if key not in self.lost:
                self.lost.add(key)
                self.trace.meta["notes"].append(
                    f"{key} is computed in a function or a branch of its own and cannot leave a TPU's replica"
                )
            return
        kind, number, _, *rest = key.split("/")
        frame.leaves["/".join([kind, number, "{}", *rest])] = tensor

    def tower_begin(
        self, index: int | None, names: tuple[str, ...], args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        trace, frame = self.here(), self._frame()
        if trace is None or frame is None:
            return args
        self.local.tower = 0
        self.local.draws = 0
        return tuple(
            self._entered(trace, frame, name, value)
            for name, value in zip(names, args, strict=False)
        ) + tuple(args[len(names) :])

    def _entered(self, trace: Any, frame: _Frame, name: str, value: Any) -> Any:
        tf = self.tf
        if not tf.is_tensor(value) or isinstance(value, tf.IndexedSlices):
            return value
        if name not in frame.recorded:
            return value
        trace.inputs.add(f"{_INPUT}0/{name}")
        frame.leaves[f"own/{_INPUT}{{}}/{name}"] = value
        rows, has = (each[self._number()] for each in frame.recorded[name])
        rows = tf.cast(rows, value.dtype)
        if not value.shape.is_compatible_with(rows.shape):
            return rows  # the verdict is of other shapes
        whole = tf.ensure_shape(value, rows.shape)
        return tf.where(has, rows, whole)

    def next_seed(self) -> Any:
        frame = self._frame()
        tower: int | None = getattr(self.local, "tower", None)
        if frame is None or tower is None:
            return None
        self.local.draws += 1
        number = self.tf.cast(self._number(), self.tf.int64)
        key = (number + 1) * TOWER_STRIDE + (self.local.draws - 1)
        return self.tf.stack([key, frame.counter])


if __name__ == "__main__":
    main(sys.argv[1], make=OnTpu)
