"""Run a rewritten program on what was recorded from its original, and record the same things.

The child process of `verify`: `python -m towermigrate.verify.replay_tf2 CONFIG.json`, with the worker's number
behind it where there are several (`start_workers.py`). It listens to the helpers' hooks, wraps the program's own `tf.function`s and TF1 optimizers, and then runs the program as
`__main__`. A *training run* is one call of a `tf.function` whose trace applied gradients. Before each, the
recorded inputs are laid out; before the first (and, in lock-step, before each) the recorded variables and
slots are loaded. The trace has the format of `probe/recording.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from towermigrate.tree import HELPERS_COPY
from towermigrate.verify.probe.between import Between
from towermigrate.verify.probe.draws import Draws
from towermigrate.verify.probe.looked import Looked
from towermigrate.verify.probe.operations import beside_slots, names_of_slots
from towermigrate.verify.probe.outputs import returned
from towermigrate.verify.probe.program import leave, run_program
from towermigrate.verify.probe.randomness import (
    TOWER_STRIDE,
    make_random_ops_stateless,
    seed_of_variable,
)
from towermigrate.verify.probe.recording import (
    TraceWriter,
    first_that_differs,
    read_arrays,
    read_meta,
    relative,
    same,
    wait_for_recordings,
)
from towermigrate.verify.probe.seeds import Seeds
from towermigrate.verify.probe.shuffles import Shuffles
from towermigrate.verify.replayed import (
    Roundings,
    alike,
    copies_of,
    floats_of,
    is_mirrored,
    live_variables,
    operations_of,
    own_inputs,
    plain_name,
    stage_at,
    value_of,
    whole,
)
from towermigrate.verify.wrappers_tf2 import (
    leave_sums_over_replicas_alone,
    wrap_functions,
    wrap_optimizers,
    wrap_run_of_strategies,
)


@dataclass
class _Update:
    """One `apply_gradients` in one replica of a trace: the optimizer and what it was given."""

    optimizer: Any
    variables: list[Any]


@dataclass
class _Trace:
    """What one trace of a step function did, per replica, in order."""

    counter: Any
    computed: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    updates: dict[int, list[_Update]] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    draws: dict[int, int] = field(default_factory=dict)
    outside: int = 0
    of_replica: list[Any] = field(default_factory=list)
    returns_of_replica: bool = False

    def of_first_replica(self) -> list[_Update]:
        """The updates of this process's first replica; each has the same."""
        return self.updates[min(self.updates)] if self.updates else []


class Replay:
    """The listener: `towermigrate.helpers._hooks.Hooks`, and the state of the recording."""

    def __init__(self, config: dict[str, Any], tf: Any) -> None:
        self.tf = tf
        self.config = config
        self.other_shapes: set[str] = set()
        self.has_workers = "recordings" in config
        self.folder: str = config["replay"]
        self.meta = read_meta(self.folder)
        self.runs = {run["index"]: run for run in self.meta["runs"]}
        self.last_run = max(self.runs)
        self.original_runs = max(self.last_run + 1, self.meta.get("training_runs", 0))
        self.trace = TraceWriter(config["trace"])
        self.trace.meta["replays"] = relative(self.folder, config["trace"])
        self.looked = Looked(self.trace.looked, self.trace.asked)
        self.trace.meta.update({"own_inputs": {}, "updates": [], "extra_runs": 0, "first_seen": {}})
        self.looks = 0
        self.sources: list[Any] = []
        self.draws = Draws(self.trace.meta)
        self.trace.meta["looks"] = []
        self.last_inputs: dict[str, Any] = {}
        self.shapes: dict[str, Any] = {}
        self.own_initial: dict[str, Any] = {}
        self.between = Between()
        self.traces: list[tuple[Any, _Trace]] = []
        self.tables: list[Any] = []
        self.roundings = Roundings()
        self.traced = 0
        self.outside: dict[str, list[int]] = {}
        self.given: dict[str, Any] = {}
        self.recorded: dict[str, Any] = {}
        self.collected: dict[str, Any] = {}
        self.counter: Any = None
        self.next_index = 0
        self.loaded: set[str] = set()
        self.recorded_last = True
        self.local = threading.local()
        self.optimizers: list[tuple[int, Any, list[Any]]] = []

    # ---- traces ----------------------------------------------------------------------------------

    def trace_begins(self, graph: Any) -> None:
        """A step function of the program is being traced into `graph`."""
        self.traces.append((graph, _Trace(counter=self.run_counter().read_value())))

    def trace_ends(self, result: Any) -> None:
        """What it returns. A worker's own value is left to the program, as values for each replica are elsewhere."""
        trace = self.here()
        if trace is not None:
            trace.returns_of_replica = any(
                value is each for value in self.tf.nest.flatten(result) for each in trace.of_replica
            )

    def replica_returns(self, result: Any) -> None:
        """`strategy.run` gave the value of a worker's only replica."""
        trace = self.here()
        if trace is not None:
            trace.of_replica += filter(self.tf.is_tensor, self.tf.nest.flatten(result))

    def here(self) -> _Trace | None:
        graph = self.tf.compat.v1.get_default_graph()
        known: Any
        trace: _Trace
        while graph is not None:
            for known, trace in reversed(self.traces):
                if known is graph:
                    return trace
            graph = getattr(graph, "outer_graph", None)
        return None

    def replica(self) -> int | None:
        context = self.tf.distribute.get_replica_context()
        if context is None:
            return None
        identity = context.replica_id_in_sync_group
        value = identity if isinstance(identity, int) else self.tf.get_static_value(identity)
        return None if value is None else int(value)

    # ---- hooks of the helpers --------------------------------------------------------------------

    def created(self, variables: Any) -> None:
        """The variables are found by what the steps use, so nothing is needed here."""

    def tower_begin(
        self, index: int | None, names: tuple[str, ...], args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        trace = self.here()
        if trace is None or index is None:
            return args
        self.local.tower = index
        self.local.draws = 0
        return tuple(
            self._recorded_structure(trace, index, name, value)
            for name, value in zip(names, args, strict=False)
        ) + tuple(args[len(names) :])

    def tower_end(self, index: int | None) -> None:
        self.local.tower = None

    def gradients(
        self, index: int | None, loss: Any, grads_and_vars: list[tuple[Any, Any]]
    ) -> None:
        trace = self.here()
        replica = self.replica()
        if trace is None or replica is None:
            return
        computed = trace.computed.setdefault(replica, [])
        if computed and computed[-1]["hooked"] is False:
            entry = computed[-1]
        elif loss is not None:
            entry = {"optimizer": None, "loss": loss, "used": False}
            computed.append(entry)
        else:
            return
        entry["hooked"] = True
        entry["gradients"] = list(grads_and_vars)
        if loss is not None:
            entry["loss"] = loss

    def applied(
        self, optimizer: Any, grads_and_vars: list[tuple[Any, Any]], averaged: bool
    ) -> None:
        self.record_update(optimizer, list(grads_and_vars), averaged=True)
        self.local.averaged = True

    # ---- what a trace records --------------------------------------------------------------------

    def record_compute(self, optimizer: Any, loss: Any, pairs: Any) -> None:
        trace = self.here()
        replica = self.replica()
        if trace is None or replica is None:
            return
        entry = {"optimizer": optimizer, "loss": loss, "used": False, "hooked": False}
        entry["gradients"] = list(pairs)
        trace.computed.setdefault(replica, []).append(entry)

    def record_update(self, optimizer: Any, pairs: list[tuple[Any, Any]], averaged: bool) -> None:
        trace = self.here()
        replica = self.replica()
        if trace is None or replica is None:
            return
        updates = trace.updates.setdefault(replica, [])
        number = len(updates)
        updates.append(_Update(optimizer, [v for _, v in pairs]))
        kind = "averaged" if averaged else "incoming"
        for gradient, variable in pairs:
            if gradient is not None:
                self._sink(
                    f"{kind}/{number}/{replica}/{plain_name(variable)}",
                    self._dense(gradient, variable),
                )
        entry = self._loss_of(trace.computed.get(replica, []), optimizer)
        if entry is None:
            return
        entry["used"] = True
        if entry["loss"] is not None:
            loss = entry["loss"]() if callable(entry["loss"]) else entry["loss"]
            self._sink(f"loss/{number}/{replica}", self.tf.convert_to_tensor(loss))
        if self.config.get("tower_gradients"):
            for gradient, variable in entry.get("gradients", []):
                if gradient is not None:
                    self._sink(
                        f"tower_gradient/{number}/{replica}/{plain_name(variable)}",
                        self._dense(gradient, variable),
                    )

    @staticmethod
    def _loss_of(computed: list[dict[str, Any]], optimizer: Any) -> dict[str, Any] | None:
        free = [entry for entry in computed if not entry["used"]]
        same = [entry for entry in free if entry["optimizer"] is optimizer]
        return next(iter(same or free), None)

    def _dense(self, gradient: Any, variable: Any) -> Any:
        if isinstance(gradient, self.tf.IndexedSlices):
            shape = self.tf.constant(variable.shape.as_list(), self.tf.int64)
            rows = self.tf.cast(self.tf.expand_dims(gradient.indices, 1), self.tf.int64)
            return self.tf.scatter_nd(rows, gradient.values, shape)
        return gradient

    def _sink(self, key: str, tensor: Any) -> None:
        def keep(value: Any) -> None:
            # Its memory is the tensor's, which TensorFlow does not use for another one as long as it is held.
            self.collected[key] = value
            count = "count/" + key
            self.collected[count] = self.collected.get(count, 0) + 1

        with self.tf.device("/CPU:0"):
            self.tf.numpy_function(keep, [tensor], [])

    def _recorded_structure(self, trace: _Trace, index: int, name: str, value: Any) -> Any:
        """An input, or what a tower is given whole: a tuple, a dict of inputs."""
        if not isinstance(value, tuple | list | dict):
            return self._recorded_input(trace, index, name, value)
        flat = [
            self._recorded_input(trace, index, f"{name}[{number}]", each)
            for number, each in enumerate(self.tf.nest.flatten(value))
        ]
        return self.tf.nest.pack_sequence_as(value, flat)

    def _recorded_input(self, trace: _Trace, index: int, name: str, value: Any) -> Any:
        if not self.tf.is_tensor(value) or isinstance(value, self.tf.IndexedSlices):
            return value
        key = f"input/{index}/{name}"
        trace.inputs.add(key)

        def read(run: Any, own: Any) -> Any:
            del run  # A changing argument, so that the op is never folded into a constant.
            own = np.array(own)
            if not self.given:
                return own
            self.collected["own/" + key] = own
            if key not in self.given:
                self.trace.meta["notes"].append(
                    f"{key} is read here, but the original did not read it in this run"
                )
                return own
            recorded = self.given[key]
            if recorded.shape != own.shape:
                self.other_shapes.add(key)
            return recorded.astype(own.dtype) if recorded.dtype != own.dtype else recorded

        with self.tf.device("/CPU:0"):
            # Stateless, so that TensorFlow prunes it where the step does not read this input.
            replaced = self.tf.numpy_function(
                read, [trace.counter, value], value.dtype, stateful=False
            )
        replaced.set_shape(self._shape_of(key, value))
        return replaced

    def _shape_of(self, key: str, value: Any) -> Any:
        """The shape that is known while a step is traced: of the recorded rows, where the program has fewer or more."""
        if key not in self.shapes:
            arrays = (read_arrays(self.folder, f"run_{index:05d}") for index in sorted(self.runs))
            self.shapes[key] = next((each[key].shape for each in arrays if key in each), None)
        shape = self.shapes[key]
        return value.shape if shape is None or value.shape.is_compatible_with(shape) else shape

    def run_counter(self) -> Any:
        """The number of the training run, read by random ops and inputs; made when TensorFlow may start."""
        if self.counter is None:
            with self.tf.init_scope(), self.tf.device("/CPU:0"):
                self.counter = self.tf.Variable(np.int64(0), name="towermigrate_run")
        return self.counter

    def next_seed(self) -> Any:
        tower: int | None = getattr(self.local, "tower", None)
        trace = self.here()
        if tower is None and trace is not None and self.config.get("hand_written"):
            tower = self.replica() if self.tf.distribute.has_strategy() else None
            if tower is None:
                return self.tf.stack([self._key_outside(trace), trace.counter])
            number = trace.draws[tower] = trace.draws.get(tower, -1) + 1
            return self.tf.stack([self._key(tower, number), trace.counter])
        if tower is None or trace is None:
            return None
        self.local.draws += 1
        return self.tf.stack([self._key(tower, self.local.draws - 1), trace.counter])

    def _key_outside(self, trace: _Trace) -> Any:
        """The key of a draw in no tower: the original's graph counts them, and a function keeps its own when it is traced again."""
        name = next(str(graph.name) for graph, known in self.traces if known is trace)
        keys = self.outside.setdefault(name, [])
        if trace.outside == len(keys):
            keys.append(1 + sum(map(len, self.outside.values())))
        trace.outside += 1
        return self.tf.constant(np.int64(keys[trace.outside - 1]))

    def _key(self, tower: int, number: int) -> Any:
        return self.tf.constant(np.int64((tower + 1) * TOWER_STRIDE + number))

    # ---- a call of a step function ---------------------------------------------------------------

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        concrete = function.get_concrete_function(*args, **kwargs)
        trace = next((known for graph, known in self.traces if graph is concrete.graph), None)
        if trace is None or not trace.updates:
            if self.counter is not None:
                self.counter.assign(0)  # as in the original, where only training runs are counted
            result = self._look(trace, function, args, kwargs)
            self.looked.note(self.next_index, result)
            return result
        index = self.next_index
        self.next_index += 1
        self.trace.meta["training_runs"] = self.next_index
        self.draws.at(index)
        if index >= self.original_runs:
            self.trace.meta["extra_runs"] += 1
            self.finish("steps")
        if index not in self.runs:
            self.recorded_last = False
            self.counter.assign(index)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self._failed(index, error)
                raise
        if index == min(self.runs):
            self.trace.meta["floats"] = floats_of(concrete.graph)
        if self.config.get("xla"):
            self.trace.meta["operations"] = sorted(
                {*self.trace.meta.get("operations", ()), *operations_of(concrete.graph)}
            )
        stages = self.runs[index]["stages"]
        table = self._table(concrete, trace, stages)
        before = f"run_{index - 1:05d}"
        if not self.loaded:
            before = "initial"
        elif not self.recorded_last:
            before = f"before_{index:05d}"
        free = self.loaded and self.recorded_last and not self.config.get("lockstep")
        self._note_own_state(index, table)
        # Running free, only what a stage brings along that runs for the first time.
        wanted = {k: v for k, v in table.items() if not (free and k in self.loaded)}
        self._load(wanted, before)
        if before.startswith("run_"):  # and what the original's host did since
            self._load(wanted, f"before_{index:05d}")
        self.loaded.update(table)
        self.recorded_last = True
        recorded = read_arrays(self.folder, f"run_{index:05d}")
        self.recorded = recorded
        self.given = {key: value for key, value in recorded.items() if key.startswith("input/")}
        self.between.left(
            {}
        )  # The variables' memory is held no longer, so that they are updated in it.
        self.collected = {}
        if self.config.get("hand_written"):
            flat = self.tf.nest.flatten((args, kwargs))
            self.collected.update(own_inputs(self.given, flat, self.config.get("worker", (0, 1))))
        self.counter.assign(index)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            self._failed(index, error)
            raise
        self.given = {}
        self.last_inputs = {k: v for k, v in self.collected.items() if k.startswith("own/")}
        self._save(index, stages, table, trace, result)
        if index >= self.last_run and self.meta["ended"] == "steps":
            self.finish("steps")
        return result

    def _failed(self, index: int, error: Exception) -> None:
        """A step that fails as its rows have another shape than the original's: those are the difference, and end it."""
        if not self.other_shapes or not self.trace.meta["runs"]:
            return
        said = str(error).strip().splitlines() or [type(error).__name__]
        self.trace.meta["notes"].append(
            f"training run {index} failed, as rows have another shape than the original's "
            f"({', '.join(sorted(self.other_shapes)[:3])}): {said[0][:200]}"
        )
        self.finish("steps")

    def _look(self, trace: _Trace | None, function: Any, args: Any, kwargs: Any) -> Any:
        """A call that trains nothing. Where the original's drew its rows, it gets those."""
        given = read_arrays(self.folder, f"look_{self.looks:05d}")
        if trace is None or not given or not self._takes(trace, given):
            return function(*args, **kwargs)
        self.looks += 1
        self.given = given
        self.collected = {}
        try:
            return function(*args, **kwargs)
        finally:
            self.given = {}
            own = {k: v for k, v in self.collected.items() if k.startswith("own/")}
            again = bool(own) and all(same(v, self.last_inputs.get(k)) for k, v in own.items())
            self.trace.meta["looks"].append([self.next_index, again])

    def count_draws(self, iterators: Any) -> None:
        """Count how often the program takes from each iterator of a class of the helpers, by itself or for all towers."""
        following = iterators.__next__

        def counted(iterator: Any) -> Any:
            if getattr(self.local, "taking", False):  # one iterator of another
                return following(iterator)
            if not any(iterator is known for known in self.sources):
                self.sources.append(iterator)
            self.local.taking = True
            try:
                taken = following(iterator)
            finally:
                self.local.taking = False
            number = next(n for n, known in enumerate(self.sources) if known is iterator)
            self.draws.drawn([f"iterator {number}"], trains=True)
            return taken

        iterators.__next__ = counted

    def _takes(self, trace: _Trace, given: dict[str, Any]) -> bool:
        """Whether a call takes all these inputs. A worker sees its own tower's only, and all workers must agree."""
        if not self.has_workers:
            return trace.inputs.issuperset(given)
        named = {key.split("/", 2)[2] for key in trace.inputs}
        return named.issuperset(key.split("/", 2)[2] for key in given)

    def _note_own_state(self, index: int, table: dict[str, Any]) -> None:
        """Keep what the program has by itself: in variables seen for the first time, or changed by the host."""
        values = {key: value_of(container) for key, container in table.items()}
        fresh = {key: value for key, value in values.items() if key not in self.loaded}
        if fresh:
            self.own_initial.update(fresh)
            self.trace.meta["first_seen"].update(dict.fromkeys(fresh, index))
        changed = self.between.changed(values) if self.recorded_last else {}
        if changed:
            self.trace.arrays(f"before_{index:05d}", changed)

    def finish(self, ended: str, error: str | None = None) -> None:
        self.trace.arrays("initial", self.own_initial)
        # Slots of stages that ran late are variables of the original's until then.
        named = {key.partition("/")[2] for key in self.meta["variables"]}
        names = {plain_name(whole(each)) for each in live_variables()}
        self.trace.meta["alive"] = sorted(names & named)
        self.trace.finish(ended, error)
        if self.has_workers and error is None:
            wait_for_recordings(self.config["recordings"])
        leave(0 if error is None else 1)

    def _table(self, concrete: Any, trace: _Trace, stages: list[int]) -> dict[str, Any]:
        """Every variable that training has touched so far, by the original's key for it."""
        for number, update in enumerate(trace.of_first_replica()):
            stage = stages[min(number, len(stages) - 1)]
            known = next((entry for entry in self.optimizers if entry[1] is update.optimizer), None)
            if known is None:
                known = (stage, update.optimizer, [])
                self.optimizers.append(known)
            known[2].extend(v for v in update.variables if not any(v is w for w in known[2]))
        for graph in [concrete.graph, *(graph for graph, _ in self.traces)]:
            for variable in graph.variables:
                self._take(variable)
        if len(self.traces) > self.traced:
            self.traced = len(self.traces)
            self._take_unread()
        names = self._slots_of_later_stages()
        for owner, optimizer, variables in self.optimizers:
            for slot in names_of_slots(optimizer):
                for variable in variables:
                    value = optimizer.get_slot(variable, slot)
                    if value is not None:
                        self._take(value)  # On one replica a trace does not list its slots.
                        key = f"slot/{owner}/{slot}/{plain_name(variable)}"
                        names[id(whole(value))] = key
            for slot, value in beside_slots(optimizer):
                self._take(value)
                names[id(whole(value))] = f"slot/{owner}/{slot}"
        table = {}
        for container in self.tables:
            key = names.get(id(container), "variable/" + plain_name(container))
            if container is not self.counter and key:
                table[key] = container
                self.trace.meta["variables"][key] = {
                    "shape": container.shape.as_list(),
                    "dtype": container.dtype.base_dtype.name,
                    "trainable": bool(container.trainable) and key.startswith("variable/"),
                    "mirrored": is_mirrored(container),
                }
        return table

    def _take_unread(self) -> None:
        """Variables of the original's names that no step reads: what they start with, and that they stay, is compared too."""
        named = {k.partition("/")[2] for k in self.meta["variables"] if k.startswith("variable/")}
        named -= {plain_name(container) for container in self.tables}
        found: dict[str, dict[int, Any]] = {}
        for each in live_variables() if named else ():
            container = whole(each)
            if plain_name(container) in named:
                found.setdefault(plain_name(container), {})[id(container)] = container
        for several in found.values():
            if len(several) == 1:  # of two it is not known which the program means
                self._take(*several.values())

    def _take(self, variable: Any) -> None:
        container = whole(variable)
        if not any(container is known for known in self.tables):
            self.tables.append(container)

    def _slots_of_later_stages(self) -> dict[int, str]:
        """Slots made by traces of stages that have not run: they have no stage's number yet."""
        names = {}
        for _, trace in self.traces:
            for update in trace.of_first_replica():
                for slot in names_of_slots(update.optimizer):
                    for variable in update.variables:
                        names[id(whole(update.optimizer.get_slot(variable, slot)))] = ""
                for _, value in beside_slots(update.optimizer):
                    names[id(whole(value))] = ""
        return names

    def _load(self, table: dict[str, Any], name: str) -> None:
        arrays = read_arrays(self.folder, name)
        for key, container in table.items():
            recorded = arrays.get("state/" + key) if name.startswith("run_") else arrays.get(key)
            if recorded is None or list(recorded.shape) != container.shape.as_list():
                continue
            for component in getattr(container, "values", (container,)):
                component.assign(recorded.astype(component.dtype.as_numpy_dtype))

    def _save(
        self, index: int, stages: list[int], table: dict[str, Any], trace: _Trace, result: Any
    ) -> None:
        arrays: dict[str, Any] = {}
        if not trace.returns_of_replica:
            with contextlib.suppress(
                TypeError, ValueError
            ):  # a value for each replica is no number
                arrays.update(returned(result))
        replicas = sorted(trace.updates)
        executions = 0
        for key, value in self.collected.items():
            kind, _, rest = key.partition("/")
            if kind in ("own", "own_part"):
                arrays[key] = value
            elif kind in ("loss", "tower_gradient"):
                number, _, more = rest.partition("/")
                arrays[f"{kind}/{stage_at(stages, number)}/{more}"] = value
            elif kind in ("incoming", "averaged"):
                number, replica, name = rest.split("/", 2)
                target = f"gradient/{stage_at(stages, number)}/{name}"
                if kind == "averaged":
                    if int(replica) == replicas[0]:
                        arrays[target] = value
                else:
                    arrays[f"incoming/{stage_at(stages, number)}/{replica}/{name}"] = value
        for key in sorted(key for key in arrays if key.startswith("incoming/")):
            _, stage, _, name = key.split("/", 3)
            target = f"gradient/{stage}/{name}"
            arrays[target] = arrays[target] + arrays[key] if target in arrays else arrays[key]
            # What several workers recorded is added up once all of it is there.
            if not self.config.get("tower_gradients") and not self.has_workers:
                del arrays[key]
        executions = max(
            (
                sum(
                    max(
                        (
                            value
                            for key, value in self.collected.items()
                            if re.match(rf"count/(incoming|averaged)/{number}/{replica}/", key)
                        ),
                        default=0,
                    )
                    for number in range(len(trace.updates[replica]))
                )
                for replica in replicas
            ),
            default=0,
        )
        split = {}
        for key, container in table.items():
            if not is_mirrored(container):
                arrays["state/" + key] = value_of(container)
                continue
            components = copies_of(container)
            arrays["state/" + key] = components[0]
            runs = len(self.trace.meta["runs"]) + 1
            within = self.roundings.of(key, components[0], runs) if self.config.get("xla") else 0.0
            if any(not alike(components[0], c, within) for c in components[1:]):
                split[key] = first_that_differs(components)
        self.between.left({k[6:]: v for k, v in arrays.items() if k.startswith("state/")})
        left = self.trace.replayed(index, arrays, self.recorded)
        self.trace.meta["runs"].append(
            {
                "index": index,
                "as_recorded": left,
                "stages": stages,
                "updates": executions,
                "replicas": replicas,
                "replicas_differ": split,
            }
        )


def count_draws(replay: Replay, helpers: str) -> None:
    """Have the iterators of the helpers, or of a copy of them, counted."""
    replay.count_draws(importlib.import_module(f"{helpers}.batches").TowerBatches)
    replay.count_draws(importlib.import_module(f"{helpers}.legacy").LegacyInput)


def main(config_path: str, worker: int | None = None, make: type[Replay] = Replay) -> None:
    """Run the program that the configuration names, or this worker's part of it. Ends the process."""
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    if worker is not None:
        config.update(config["workers"][worker], worker=(worker, len(config["workers"])))
    from towermigrate import helpers  # noqa: F401  (sets up legacy Keras before Keras is loaded)
    from towermigrate.helpers import _hooks

    import tensorflow as tf  # isort: skip

    if config.get("xla"):
        # Else convolutions become ones that only the CPU's library has.
        tf.config.optimizer.set_experimental_options({"remapping": False})
        leave_sums_over_replicas_alone(tf)
    replay = make(config, tf)
    replay.trace.meta["tensorflow"] = tf.__version__
    _hooks.active = replay
    count_draws(replay, "towermigrate.helpers")
    if config["helpers"]:  # a copy that `towermigrate vendor` put into the tree
        sys.path.insert(0, config["helpers"])
        importlib.import_module(f"{HELPERS_COPY}._hooks").active = replay  # type: ignore[attr-defined]
        count_draws(replay, HELPERS_COPY)
        sys.path.pop(0)
    wrap_functions(replay, os.path.realpath(config["tree"]))
    wrap_optimizers(replay)
    if replay.has_workers:
        wrap_run_of_strategies(replay)
    Seeds(replay.trace.meta).install()
    Shuffles(replay.trace.meta).install()
    make_random_ops_stateless(replay.next_seed, seed_of_variable)
    error = run_program(
        config["entry"],
        config["arguments"],
        config.get("fence"),
        lambda: bool(replay.trace.meta["runs"]),
    )
    replay.finish("program" if error is None else "error", error)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
