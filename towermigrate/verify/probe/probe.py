"""The object that a probed copy calls and that watches `Session.run`.

A *training run* is one `Session.run` whose fetches reach an `apply_gradients` op of a known stage.
"""

# ruff: noqa: UP006, UP035, UP045, B905
# (Python 3.6 has neither `list[int]` nor `int | None` nor `zip(strict=)`.)

import builtins
import collections
import json
import os
import sys
import threading
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .between import Between, Untouched
from .built import Applied, Graph, Plan
from .draws import CHANCE, Draws
from .feeding import POOL
from .looked import Looked
from .operations import UPDATES, closure, is_plain, is_stateful, only_looks
from .ordering import Writes
from .outputs import returned
from .program import leave, run_program
from .randomness import TOWER_STRIDE, make_random_ops_stateless, random_like, seed_of_variable
from .recording import TraceWriter, read_arrays, read_meta, same
from .seeds import Seeds
from .shuffles import Shuffles
from .variables import less, load_values, move_values, read_values, variables_by_key

# Each tower's own gradients only help to name a cause; they are N times as much to write.
_TOWER_GRADIENT_STEPS = 2
# The inputs of so many runs that only look are recorded.
_MOST_LOOKS = 1000


class Probe:
    """The object that a probed copy knows as `_tm_probe_`."""

    def __init__(self, config: Dict[str, Any], tf: Any) -> None:
        self.config = config
        self.tf = tf
        self.trace = TraceWriter(config["trace"])
        self.looked = Looked(self.trace.looked, self.trace.asked)
        self.replay: Optional[str] = config.get("replay")
        self.replay_meta = read_meta(self.replay) if self.replay else None
        self.replay_at: Dict[int, Dict[str, Any]] = {}
        if self.replay_meta is not None:
            self.replay_at = {run["index"]: run for run in self.replay_meta["runs"]}
        self.graphs: Any = collections.OrderedDict()
        self.tower = -1
        self.draws = 0
        self.paused = False
        self.runs = 0
        self.looks = 0
        # By training runs and by those that only look.
        self.drawn = Draws(self.trace.meta)
        self.trace.meta["looks"] = []
        self.trace.meta["towers"] = 0
        self.last_inputs: Dict[str, Any] = {}
        self.updates: Any = collections.Counter()
        self.trace.meta["updates_made"] = self.updates
        self.recorded_last = True
        self.moved: Dict[str, Any] = {}
        self.between = Between()
        self.untouched = Untouched()
        self.initial: Dict[str, Any] = {}
        self.lock = threading.RLock()
        self.local = threading.local()

    # ---- calls spliced into the copy -------------------------------------------------------------

    def _here(self) -> Graph:
        graph = self.tf.get_default_graph()
        if graph not in self.graphs:
            self.graphs[graph] = Graph()
        found: Graph = self.graphs[graph]
        return found

    def begin_tower(self) -> None:
        self.tower += 1
        self.trace.meta["towers"] = max(self.trace.meta["towers"], self.tower + 1)
        self.draws = 0
        self.paused = False
        here = self._here()
        if here.counter is None:
            with self.tf.control_dependencies(None), self.tf.device("/cpu:0"):
                here.counter = self.tf.placeholder_with_default(
                    np.int64(0), [], name="towermigrate_run"
                )

    def end_towers(self) -> None:
        self.tower = -1
        # What the program reads of them may have no place of its own: added to a list by each tower, or waited for.
        here, graph = self._here(), self.tf.get_default_graph()
        for number in self.config.get("last_tower_first", []):
            here.extras.setdefault(number, list(graph.get_collection("update_ops")))

    def input_begin(self) -> None:
        # What an input statement draws is recorded with the input, so it is not counted.
        self.paused = True

    def inputs(self, names: Tuple[str, ...], values: Tuple[Any, ...]) -> None:
        self.paused = False
        for name, value in zip(names, values):
            self.inline(name, value)

    def inline(self, name: str, value: Any) -> Any:
        # One input may be written several times (`x[i]` twice): the same rows, but a tensor each.
        if isinstance(value, self.tf.Tensor):
            self._here().inputs.setdefault((self.tower, name), []).append(value)
        elif isinstance(value, (tuple, list, dict)) and not hasattr(value, "indices"):
            for number, each in enumerate(self.tf.nest.flatten(value)):
                self.inline("%s[%d]" % (name, number), each)
        return value

    def asked(self, name: str, function: Any) -> Any:
        """What gives a tower its input, which is kept whenever it does."""

        def given(*args: Any, **kwargs: Any) -> Any:
            return self.inline(name, function(*args, **kwargs))

        return given

    def compute(self, stages: Tuple[int, ...], function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            here = self._here()
            # Stages that share one call site take turns in each tower.
            calls = [sum(1 for stage, _ in here.losses if stage == each) for each in stages]
            stage = stages[calls.index(min(calls))]
            tower = calls[stages.index(stage)]
            loss = args[0] if args else kwargs.get("loss", kwargs.get("ys"))
            if isinstance(loss, (list, tuple)) and len(loss) == 1:
                loss = loss[0]
            here.losses[(stage, tower)] = loss
            if not isinstance(result, (list, tuple)):
                return result
            pairs = list(result)
            if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                return result
            missing = [v.op.name for g, v in pairs if g is None]
            if missing:
                seen = self.trace.meta.setdefault("none_gradients", {})
                seen.setdefault(str(stage), {})[str(tower)] = missing
                if self.config.get("repair_none"):
                    pairs = [(self.tf.zeros_like(v) if g is None else g, v) for g, v in pairs]
            here.tower_gradients[(stage, tower)] = {
                v.op.name: self._dense(g, v) for g, v in pairs if g is not None
            }
            return pairs if self.config.get("repair_none") and missing else result

        return wrapped

    def loss(self, stage: int, whole: bool, value: Any) -> Any:
        """One tower's loss, of which the mean over the towers is trained: of all its elements where it is `whole`."""
        here = self._here()
        tower = sum(1 for each, _ in here.losses if each == stage)
        here.losses[(stage, tower)] = self.tf.reduce_mean(value) if whole else value
        return value

    def minimize(self, stages: Tuple[int, ...], function: Any) -> Any:
        """`optimizer.minimize`, as TensorFlow's own does it: gradients, then their update."""

        def wrapped(
            loss: Any, global_step: Any = None, var_list: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            optimizer = function.__self__
            named = dict(
                zip(
                    (
                        "gate_gradients",
                        "aggregation_method",
                        "colocate_gradients_with_ops",
                        "name",
                        "grad_loss",
                    ),
                    args,
                )
            )
            named.update(kwargs)
            name = named.pop("name", None)
            pairs = optimizer.compute_gradients(loss, var_list=var_list, **named)
            if all(gradient is None for gradient, _ in pairs):
                return function(
                    loss, global_step, var_list, *args, **kwargs
                )  # it says what is wrong
            update = self.apply(stages, optimizer.apply_gradients)
            return update(pairs, global_step=global_step, name=name)

        return wrapped

    def apply(self, stages: Tuple[int, ...], function: Any) -> Any:
        def wrapped(grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            here = self._here()
            stage = next((each for each in stages if each not in here.applied), stages[-1])
            pairs = list(grads_and_vars)
            gradients = {v.op.name: self._dense(g, v) for g, v in pairs if g is not None}
            together = self.config.get("together", {}).get(str(stage), [stage])
            first = [loss for (each, _), loss in sorted(here.losses.items()) if each in together]
            for (each, _), local in sorted(here.tower_gradients.items()):
                if each in together:
                    first.extend(local.values())
            first.extend(gradients.values())
            # All losses and gradients come before any update, so that they can be fetched in the
            # same run with the values they had before it.
            first = [t for t in first if isinstance(t, self.tf.Tensor) and is_plain(t.op)]
            # Stages that always train together update in the order of the source.
            first += [here.applied[each].op for each in together if each in here.applied]
            begin = len(self.tf.get_default_graph().get_operations())
            with self.tf.control_dependencies(first):
                result = function(pairs, *args, **kwargs)
            op = result if isinstance(result, self.tf.Operation) else getattr(result, "op", None)
            if op is not None:
                here.applied[stage] = Applied(
                    op, getattr(function, "__self__", None), pairs, gradients, begin
                )
                self._order_extras(here)
            return result

        return wrapped

    def extra(self, number: int, value: Any) -> Any:
        here = self._here()
        here.extras[number] = value
        self._order_extras(here)
        return value

    # ---- the order the original leaves open ------------------------------------------------------

    def _order_extras(self, here: Graph) -> None:
        """Put an unordered moving average before the update it is grouped with (the rewrite's order)."""
        for number, stage in self.config.get("before_update", []):
            average = here.extras.get(number)
            applied = here.applied.get(stage)
            if average is None or applied is None:
                continue
            here.extras[number] = None
            if not isinstance(average, self.tf.Operation):
                continue
            graph = self.tf.get_default_graph()
            reached, _ = closure([applied.op], {})
            for op in graph.get_operations()[applied.first_op :]:
                if op in reached and UPDATES.search(op.type):
                    try:
                        op._add_control_inputs([average])
                    except AttributeError:
                        op._add_control_input(average)

    def _order_updates(self, here: Graph, graph: Any) -> None:
        """Make batch norm's updates of all towers from the last tower to the first (the rewrite's order)."""
        if here.in_order:
            return
        here.in_order = True
        for number in self.config.get("last_tower_first", []):
            updates = here.extras.get(number)
            if isinstance(updates, list):
                made = [getattr(update, "op", update) for update in updates]
                writes = Writes(graph)
                writes.put_in_order(writes.last_first(made))

    def _dense(self, gradient: Any, variable: Any) -> Any:
        if isinstance(gradient, self.tf.IndexedSlices):
            shape = self.tf.constant(variable.get_shape().as_list(), self.tf.int64)
            rows = self.tf.cast(self.tf.expand_dims(gradient.indices, 1), self.tf.int64)
            return self.tf.scatter_nd(rows, gradient.values, shape)
        return gradient

    # ---- randomness ------------------------------------------------------------------------------

    def next_seed(self) -> Any:
        if self.tower < 0 or self.paused:
            return None
        here = self.graphs.get(self.tf.get_default_graph())
        if here is None or here.counter is None:
            return None
        key = np.int64((self.tower + 1) * TOWER_STRIDE + self.draws)
        self.draws += 1
        return self.tf.stack([self.tf.constant(key), here.counter])

    # ---- Session.run -----------------------------------------------------------------------------

    def run(
        self,
        original: Any,
        session: Any,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        here = self.graphs.get(session.graph)
        if getattr(self.local, "inside", False):
            return original(session, fetches, feed_dict, options, run_metadata)
        if here is None or not here.applied:
            self.untouched.touched()
            result = original(session, fetches, feed_dict, options, run_metadata)
            return self._note_look(session, fetches, feed_dict, result)
        self._order_updates(here, session.graph)
        plan = self._plan(session, here, fetches, feed_dict)
        if not plan.stages and not plan.only_looks:
            self.untouched.touched()
        looks = plan.drawn and threading.current_thread() is threading.main_thread()
        if not plan.stages and (not looks or self.looks >= _MOST_LOOKS):
            # From here on it is not known how often inputs were drawn.
            self.trace.meta["draws_unknown"] = self.trace.meta.get("draws_unknown") or bool(
                plan.drawn
            )
            result = original(session, fetches, feed_dict, options, run_metadata)
            return self._note_look(session, fetches, feed_dict, result)
        with self.lock:
            self.local.inside = True
            try:
                if not plan.stages:
                    return self._look(
                        original, session, plan, fetches, feed_dict, options, run_metadata
                    )
                return self._train(
                    original, session, here, plan, fetches, feed_dict, options, run_metadata
                )
            finally:
                self.local.inside = False

    def _note_look(self, session: Any, fetches: Any, feed_dict: Any, result: Any) -> Any:
        """Note what a run gave that trains nothing, and give it."""
        self.looked.fed(self.runs, feed_dict)
        if self.looked.is_fixed(session, fetches, feed_dict):
            self.looked.note(self.runs, result)
        return result

    def _plan(self, session: Any, here: Graph, fetches: Any, feed_dict: Any) -> Plan:
        from tensorflow.python.client import session as session_module

        graph = session.graph
        with graph.as_default():
            mapper = session_module._FetchMapper.for_fetch(fetches)
        wanted = mapper.unique_fetches()
        fed: Dict[Any, bool] = {}
        for key in feed_dict or {}:
            parts = [key]
            if not isinstance(key, (self.tf.Tensor, str)):
                parts = [getattr(key, part, None) for part in ("indices", "values", "dense_shape")]
                parts = parts if parts[0] is not None else [key]
            for part in parts:
                if part is not None:
                    tensor = graph.as_graph_element(part, allow_tensor=True, allow_operation=False)
                    fed[tensor.name] = True
        key = (tuple(item.name for item in wanted), tuple(sorted(fed)))
        if key not in here.plans:
            here.plans[key] = self._new_plan(here, wanted, fed)
        plan: Plan = here.plans[key]
        return plan

    def _new_plan(self, here: Graph, wanted: List[Any], fed: Dict[Any, bool]) -> Plan:
        ops = [item if isinstance(item, self.tf.Operation) else item.op for item in wanted]
        reached, cut = closure(ops, fed)
        stages = [stage for stage, applied in here.applied.items() if applied.op in reached]
        fetches: Dict[str, Any] = {}
        feedable: Dict[str, List[Any]] = {}
        drawn: Dict[str, List[Any]] = {}
        if not stages:
            for (tower, name), tensors in here.inputs.items():
                used = [t for t in tensors if t.op in reached and is_plain(t.op)]
                if used and self._sources(used[0], fed):
                    drawn["input/%d/%s" % (tower, name)] = used
        if stages:
            for (tower, name), tensors in here.inputs.items():
                used = [t for t in tensors if t.op in reached or t.name in cut]
                used = [t for t in used if is_plain(t.op)]
                if used:
                    key = "input/%d/%s" % (tower, name)
                    fetches[key] = used[0]
                    feedable[key] = used
            for (stage, tower), loss in here.losses.items():
                if stage in stages and isinstance(loss, self.tf.Tensor) and is_plain(loss.op):
                    fetches["loss/%d/%d" % (stage, tower)] = loss
            for stage in stages:
                for name, gradient in here.applied[stage].gradients.items():
                    if is_plain(gradient.op):
                        fetches["gradient/%d/%s" % (stage, name)] = gradient
            for (stage, tower), local in here.tower_gradients.items():
                if stage in stages and self.config.get("tower_gradients"):
                    for name, gradient in local.items():
                        if is_plain(gradient.op):
                            key = "tower_gradient/%d/%d/%s" % (stage, tower, name)
                            fetches[key] = gradient
        used = [tensors[0] for tensors in (feedable or drawn).values()]
        sources = {each for tensor in used for each in self._sources(tensor, fed)}
        return Plan(stages, fetches, feedable, drawn, sorted(sources), only_looks(reached))

    def _sources(self, tensor: Any, fed: Dict[str, bool]) -> List[str]:
        """What a tensor's value is drawn from: queues and iterators by name, or chance; nothing for what is fed."""
        reached, _ = closure([tensor.op], fed)
        pools = [op.name for op in reached if POOL.search(op.type)]
        if not pools and any(op.type != "Placeholder" and is_stateful(op) for op in reached):
            return [CHANCE]
        return pools

    def _train(
        self,
        original: Any,
        session: Any,
        here: Graph,
        plan: Plan,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        index = self.runs
        self.runs += 1
        self.trace.meta["training_runs"] = self.runs
        self.updates.update(plan.stages)
        try:
            return self._training_run(
                original, session, here, plan, index, fetches, feed_dict, options, run_metadata
            )
        except BaseException:
            # It trained nothing: the inputs ended, say, and the program goes on from there.
            self.untouched.touched()
            self.trace.meta["training_runs"] = self.runs = index
            self.updates.subtract(plan.stages)
            raise

    def _training_run(
        self,
        original: Any,
        session: Any,
        here: Graph,
        plan: Plan,
        index: int,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        wanted = int(self.config["steps"])
        if self.replay_meta is not None:
            record = index in self.replay_at
        else:
            record = any(self.updates[stage] <= wanted for stage in plan.stages)
        feeds = dict(feed_dict or {})
        feeds[here.counter] = np.int64(index)
        if not record:
            self.recorded_last = False
            result = original(session, fetches, feeds, options, run_metadata)
            self.drawn.drawn(plan.sources, trains=True)
            self.drawn.at(index)
            return result

        state = variables_by_key(session.graph, here.applied, self.trace.meta["variables"])
        if not here.initialized:
            self._first_state(original, session, here, state, index)
        elif not self.recorded_last:
            self._resume(original, session, state, index)
        elif not self.config.get("rounding") and not (
            self.untouched.is_since_training(session) and self.between.knows(state)
        ):
            changed = self.between.changed(read_values(self.tf, original, session, state))
            if changed:
                self.trace.arrays("before_%05d" % index, changed)
        self.recorded_last = True
        if self.config.get("rounding"):
            self._round_off(original, session, state, index)

        arrays: Dict[str, Any] = {}
        given: Dict[str, Any] = {}
        if self.replay is not None:
            given = read_arrays(self.replay, "run_%05d" % index)
            if not self.config.get("synthetic"):
                self._compare_own_inputs(original, session, plan, given, feeds, index)
            for key, tensors in plan.feedable.items():
                if key in given:
                    for tensor in tensors:
                        feeds[tensor] = given[key]
        elif self.config.get("synthetic"):
            drawn = {key: tensors[0] for key, tensors in plan.feedable.items()}
            real = original(session, drawn, feed_dict, None, None)
            order = sorted(drawn)
            for key in order:
                array = random_like(np.asarray(real[key]), index * 1009 + order.index(key))
                for tensor in plan.feedable[key]:
                    feeds[tensor] = array
        ours = plan.fetches
        if min(self.updates[stage] for stage in plan.stages) > _TOWER_GRADIENT_STEPS:
            ours = {k: v for k, v in ours.items() if not k.startswith("tower_gradient/")}
        both = {"theirs": fetches, "ours": ours}
        result = original(session, both, feeds, options, run_metadata)
        self.drawn.drawn(plan.sources, trains=True)
        self.drawn.at(index)
        arrays.update(result["ours"])
        self.last_inputs = {k: v for k, v in result["ours"].items() if k.startswith("input/")}
        arrays.update(returned(result["theirs"]))
        if state:
            after = original(session, dict(state), None, None, None)
            self.between.left(after)
            # Less what `_round_off` has added: left is what the runs made of it.
            after = {k: less(v, self.moved[k]) if k in self.moved else v for k, v in after.items()}
            arrays.update({"state/" + key: value for key, value in after.items()})
        if self.replay is not None and not self.config.get("rounding"):
            # A second run says only where it is not the first: states are large.
            arrays = {k: v for k, v in arrays.items() if k not in given or not same(v, given[k])}
        self.trace.arrays("run_%05d" % index, arrays)
        self.untouched.trained(session)
        self.trace.meta["runs"].append({"index": index, "stages": plan.stages})
        self._stop_if_done(here, index, wanted)
        return result["theirs"]

    def _look(
        self,
        original: Any,
        session: Any,
        plan: Plan,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        """A run that trains nothing, on drawn inputs: what it shows is the same only on the same rows."""
        name = "look_%05d" % self.looks
        self.looks += 1
        self.drawn.drawn(plan.sources)
        if self.replay is not None:
            given = read_arrays(self.replay, name)
            feeds = dict(feed_dict or {})
            for key, tensors in plan.drawn.items():
                feeds.update((tensor, given[key]) for tensor in tensors if key in given)
            return original(session, fetches, feeds, options, run_metadata)
        drawn = {key: tensors[0] for key, tensors in plan.drawn.items()}
        both = {"theirs": fetches, "ours": drawn}
        result = original(session, both, feed_dict, options, run_metadata)
        self.trace.arrays(name, result["ours"])
        again = all(same(v, self.last_inputs.get(k)) for k, v in result["ours"].items())
        self.trace.meta["looks"].append([self.runs, again])
        return result["theirs"]

    def _stop_if_done(self, here: Graph, index: int, wanted: int) -> None:
        if self.replay_meta is not None:
            # What the program does after its last training run (files, lines) it is to do again.
            done = index >= max(self.replay_at) and self.replay_meta["ended"] == "steps"
        else:
            done = all(self.updates[stage] >= wanted for stage in range(self.config["stages"]))
        if done:
            self.trace.finish("steps")
            leave(0)

    def _compare_own_inputs(
        self,
        original: Any,
        session: Any,
        plan: Plan,
        given: Dict[str, Any],
        feeds: Any,
        index: int,
    ) -> None:
        """Note which inputs this second run would have had by itself.

        What it draws from queues and iterators is drawn once, as by the run itself, which is given the recorded.
        """
        own = {key: tensors[0] for key, tensors in plan.feedable.items()}
        if not own:
            return
        values = original(session, own, feeds, None, None)  # raises where the program's inputs end
        agreed = self.trace.meta.setdefault("inputs_agreed", {})
        for key, value in values.items():
            agreed[key] = agreed.get(key, True) and key in given and same(value, given[key])
        # What another run draws tells which rows come again (`pairing.py`).
        other = {"own/" + key: value for key, value in values.items() if not agreed[key]}
        if other and not self.config.get("rounding"):
            self.trace.arrays("own_%05d" % index, other)

    # ---- variables -------------------------------------------------------------------------------

    def _round_off(self, original: Any, session: Any, state: Dict[str, Any], index: int) -> None:
        """Move each weight by a part of its size, up or down: how far does that carry?

        Every run starts from the recorded state, or (`rounding_adds_up`) from where the last one ended.
        """
        assert self.replay is not None
        described = self.trace.meta["variables"]
        weights = sorted(
            k for k in state if described[k]["trainable"] and described[k]["dtype"][:5] == "float"
        )
        if self.config.get("rounding_adds_up"):
            values = read_values(self.tf, original, session, {key: state[key] for key in weights})
        else:
            self.moved = {}
            recorded = read_arrays(self.replay, "run_%05d" % (index - 1))
            values = {k[6:]: v for k, v in recorded.items() if k.startswith("state/")}
            values = values or read_arrays(self.replay, "initial")
            values.update(read_arrays(self.replay, "before_%05d" % index))
        weights = [key for key in weights if key in values]
        seed = index + int(self.config.get("rounding_seed", 0))
        added = move_values(values, weights, float(self.config["rounding"]), seed)
        for key, part in added.items():
            self.moved[key] = self.moved.get(key, 0) + part
        load_values(original, session, state, values)

    def _first_state(
        self, original: Any, session: Any, here: Graph, state: Dict[str, Any], index: int
    ) -> None:
        """What the variables of a graph are before its first training run; a later graph may have those of one before it."""
        here.initialized = True
        values = read_values(self.tf, original, session, state)
        self.initial.update({k: v for k, v in values.items() if k not in self.initial})
        self.trace.arrays("initial", self.initial)
        name = "initial" if index == 0 else "before_%05d" % index
        if index:
            self.trace.arrays(name, values)
        if self.replay is not None:
            load_values(original, session, state, read_arrays(self.replay, name))

    def _resume(self, original: Any, session: Any, state: Dict[str, Any], index: int) -> None:
        name = "before_%05d" % index
        if self.replay is not None:
            load_values(original, session, state, read_arrays(self.replay, name))
        else:
            self.trace.arrays(name, read_values(self.tf, original, session, state))


def _patch_sessions(probe: Probe, towers: int) -> None:
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.client import session as session_module

    base: Any = session_module.BaseSession
    init = base.__init__
    run = base.run

    def new_init(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        own = config_pb2.ConfigProto()
        if config is not None:
            own.CopyFrom(config)
        own.allow_soft_placement = True
        own.device_count["CPU"] = max(own.device_count["CPU"], towers)
        init(self, target, graph, own)

    def new_run(
        self: Any,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        return probe.run(run, self, fetches, feed_dict, options, run_metadata)

    base.__init__ = new_init
    base.run = new_run
    probe.untouched.watch(base)


def main(config_path: str) -> None:
    """Run the program that the configuration names. Ends the process."""
    with open(config_path) as file:
        config = json.load(file)
    for path in config.get("python_path", []):
        sys.path.append(path)
    version = ""
    if config.get("compat"):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        __import__("towermigrate.helpers")
        import tensorflow as tensorflow_two

        tf: Any = tensorflow_two.compat.v1
        tf.disable_v2_behavior()
        version = tensorflow_two.__version__
    else:
        import tensorflow as tensorflow_one

        tf = tensorflow_one
        version = tf.__version__
    probe = Probe(config, tf)
    probe.trace.meta["tensorflow"] = version
    vars(builtins)["_tm_probe_"] = probe
    Seeds(probe.trace.meta).install()
    Shuffles(probe.trace.meta).install()
    make_random_ops_stateless(probe.next_seed, seed_of_variable)
    _patch_sessions(probe, config["towers"])
    error = run_program(
        config["entry"],
        config["arguments"],
        config.get("fence"),
        lambda: bool(probe.trace.meta["runs"]),
    )
    probe.trace.finish("program" if error is None else "error", error)
    leave(0 if error is None else 1)
