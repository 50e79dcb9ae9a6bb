"""Run a graph program with a probe that needs to know nothing of it, and record or replay its training.

Used on both sides of a program that keeps its graph and its session: the original, and what `rewrite` made of it in
session style. The probe stands in the process before the program's modules are imported, watches what the
program builds (`watching.py`) and what it runs (`SessionProbe.run`). A *training run* is one `Session.run` whose
fetches reach an update. Self-contained, as all of this package.
"""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import collections
import functools
import json
import os
import re
import sys
import threading
import zlib
from typing import Any, Dict, List, Optional

import numpy as np

from .feeding import Sources, flatten, in_any_order, packed, unpacked
from .ordering import Writes
from .outputs import numbers
from .plans import Plan, make_plan
from .program import leave, run_program
from .randomness import make_random_ops_stateless, random_like
from .recording import TraceWriter, read_arrays, read_meta, same
from .seen import PROBE_SCOPE, SeenGraph
from .state import State
from .variables import less, move_values
from .watching import Watcher

_TOWER_GRADIENT_STEPS = 2
_DEVICE = re.compile(r"(GPU|CPU):(\d+)$", re.IGNORECASE)


class SessionProbe:
    """What records or replays the training runs of one process."""

    def __init__(self, config: Dict[str, Any], tf: Any) -> None:
        self.config = config
        self.tf = tf
        self.watcher = Watcher(tf, config.get("together", {}), config.get("averages", {}))
        self.trace = TraceWriter(config["trace"])
        self.trace.meta.update(
            style="session",
            stages=[],
            extra_runs=0,
            averages={},
            writes=[],
            reads=[],
            shared_inputs=[],
        )
        self.replay: Optional[str] = config.get("replay")
        self.replay_at: Dict[int, Dict[str, Any]] = {}
        if self.replay is not None:
            self.replay_at = {run["index"]: run for run in read_meta(self.replay)["runs"]}
        self.original: Any = None
        self.state: Any = None
        self.runs = 0
        self.updates: Any = collections.Counter()
        self.recorded_last = True
        self.missing: List[str] = []
        self.moved: Dict[str, Any] = {}
        self.theirs: Dict[str, Any] = {}
        self.after: Dict[str, Any] = {}
        self.lock = threading.RLock()
        self.local = threading.local()

    # ---- randomness ------------------------------------------------------------------------------

    def _counted(self) -> Optional[SeenGraph]:
        """What was seen in the default graph, unless that is a function's: it has draws of its own."""
        from tensorflow.python.framework import ops

        graph = self.tf.get_default_graph()
        if self.tf.executing_eagerly() or type(graph) is not ops.Graph:
            return None
        here = self.watcher.here()
        if here.counter is None:
            with self.tf.control_dependencies(None), self.tf.device("/cpu:0"):
                with self.tf.name_scope(PROBE_SCOPE):
                    here.counter = self.tf.placeholder_with_default(
                        np.int64(0), [], name="training_run"
                    )
        return here

    def next_seed(self) -> Any:
        here = self._counted()
        if here is None:
            return None
        here.draws += 1
        with self.tf.name_scope(PROBE_SCOPE):
            return self.tf.stack([self.tf.constant(np.int64(here.draws)), here.counter])

    def initial_seed(self) -> Any:
        """By the variable's name: so the same initializer starts from the same values in both programs."""
        here = self._counted()
        if here is None:
            return None
        scope = self.tf.get_default_graph().get_name_scope()
        number = here.initial_draws.get(scope, 0)
        here.initial_draws[scope] = number + 1
        with self.tf.name_scope(PROBE_SCOPE):
            return self.tf.constant([zlib.crc32(scope.encode("utf-8")), number], self.tf.int64)

    # ---- Session.run -----------------------------------------------------------------------------

    def install(self) -> None:
        """Stand around every session: outside of what others put around `run`, and inside of it."""
        from tensorflow.core.protobuf import config_pb2
        from tensorflow.python.client import session as session_module

        base: Any = session_module.BaseSession
        init, self.original, make_callable = base.__init__, base.run, base.make_callable
        self.state = State(self.tf, self.original, self.trace.meta["variables"])

        def new_init(session: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
            if not self.config.get("rewritten"):
                own = config_pb2.ConfigProto()
                if config is not None:
                    own.CopyFrom(config)
                own.allow_soft_placement = True
                own.device_count["CPU"] = max(own.device_count["CPU"], self.config["towers"])
                config = own
            init(session, target, graph, config)
            session.run = functools.partial(self.run, session)

        def new_run(
            session: Any,
            fetches: Any,
            feed_dict: Any = None,
            options: Any = None,
            run_metadata: Any = None,
        ) -> Any:
            plan = getattr(self.local, "plan", None)
            if plan is None or not self._is_run_of(plan["of"], session, fetches, feed_dict):
                return self.original(session, fetches, feed_dict, options, run_metadata)
            self.local.plan = None
            feeds = flatten(session.graph, feed_dict)
            feeds.update(plan["feeds"])
            both = {"theirs": fetches, "ours": plan["fetches"]}
            result = self.original(session, both, feeds, options, run_metadata)
            plan["result"] = result["ours"]
            return result["theirs"]

        def new_make_callable(
            session: Any, fetches: Any, feed_list: Any = None, accept_options: bool = False
        ) -> Any:
            keys = list(feed_list or [])
            plan = None if accept_options else self._plan(session, fetches, dict.fromkeys(keys))
            if plan is None or not plan.stages:
                return make_callable(session, fetches, feed_list, accept_options)
            return lambda *values: session.run(fetches, dict(zip(keys, values)))  # noqa: B905

        base.__init__, base.run, base.make_callable = new_init, new_run, new_make_callable

    def run(
        self,
        session: Any,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        def theirs() -> Any:
            return type(session).run(session, fetches, feed_dict, options, run_metadata)

        if getattr(self.local, "inside", False):
            return theirs()
        self._put_in_order(session.graph)
        plan = self._plan(session, fetches, feed_dict)
        if plan is None or not plan.stages:
            return theirs()
        with self.lock:
            self.local.inside = True
            try:
                return self._train(session, plan, feed_dict, theirs)
            finally:
                self.local.inside = False
                self.local.plan = None

    def _put_in_order(self, graph: Any) -> None:
        """Before a graph runs at all, while its operations can still be told to wait for others."""
        seen = self.watcher.graphs.get(graph)
        if seen is not None and not seen.in_order:
            seen.in_order = True
            if self.config.get("writes") or self.config.get("reads"):
                writes = Writes(graph)
                writes.reads_first(self.config.get("reads", []))
                writes.put_in_order(self.config.get("writes", []))

    def _is_run_of(self, plan: Plan, session: Any, fetches: Any, feed_dict: Any) -> bool:
        """Whether this is the run that was planned, and none that something around it makes beside it."""
        mine = self._plan(session, fetches, feed_dict)
        return mine is not None and mine.stages == plan.stages

    def _plan(self, session: Any, fetches: Any, feed_dict: Any) -> Optional[Plan]:
        """What a run trains; None where the graph trains nothing, or TensorFlow is to say what is wrong."""
        from tensorflow.python.client import session as session_module

        graph = session.graph
        seen = self.watcher.graphs.get(graph)
        if seen is None or not (seen.updates or seen.computed):
            return None
        try:
            with graph.as_default():
                wanted = session_module._FetchMapper.for_fetch(fetches).unique_fetches()
            fed = {tensor.name: True for tensor in flatten(graph, feed_dict)}
        except (KeyError, TypeError, ValueError, RuntimeError):
            return None
        key = (tuple(item.name for item in wanted), tuple(sorted(fed)))
        if key not in seen.plans:
            if not seen.plans:
                self.watcher.assigned(seen)
            if seen.sources is None:
                seen.sources = Sources(graph)
                seen.writes = Writes(graph)
            seen.plans[key] = make_plan(self.tf, seen, wanted, fed)
        plan: Plan = seen.plans[key]
        return plan

    def _train(self, session: Any, plan: Plan, feed_dict: Any, theirs: Any) -> Any:
        seen = self.watcher.graphs[session.graph]
        index = self.runs
        self.runs += 1
        if self.replay is not None and index > max(self.replay_at):
            self.trace.meta["extra_runs"] += 1
            self._finish("steps")
        wanted = int(self.config["steps"])
        record = any(self.updates[stage] < wanted for stage in plan.stages)
        if self.replay is not None:
            record = index in self.replay_at
        self.updates.update(plan.stages)
        feeds = {} if seen.counter is None else {seen.counter: np.int64(index)}
        if not record:
            self.recorded_last = False
            self.local.plan = {"of": plan, "feeds": feeds, "fetches": {}}
            return theirs()

        variables = self.state.variables(session.graph, seen)
        self._before(session, seen, variables, index)
        given = self._inputs(session, plan, feed_dict, feeds, index)
        ours = dict(plan.fetches)
        if min(self.updates[stage] for stage in plan.stages) > _TOWER_GRADIENT_STEPS:
            ours = {k: v for k, v in ours.items() if not k.startswith("tower_gradient/")}
        if self.replay is not None:
            ours = {k: v for k, v in ours.items() if not k.startswith("input/")}
        running: Dict[str, Any] = {"of": plan, "feeds": feeds, "fetches": ours}
        self.local.plan = running
        returned = theirs()
        arrays = {key: packed(v) for key, v in numbers(running["result"]).items()}
        arrays.update(given)
        variables = self.state.variables(session.graph, seen)
        self.after = self.state.read(session, variables)
        differ = list(self.state.differ)
        # Less what `_round_off` has added: left is what the runs made of it.
        after = {k: less(v, self.moved[k]) if k in self.moved else v for k, v in self.after.items()}
        arrays.update({"state/" + key: value for key, value in after.items()})
        if self.replay is not None and not self.config.get("rewritten"):
            first = read_arrays(self.replay, "run_%05d" % index)
            if not self.config.get("rounding"):
                # A second run says only where it is not the first: states are large.
                arrays = {
                    k: v for k, v in arrays.items() if k not in first or not same(v, first[k])
                }
        self.trace.arrays("run_%05d" % index, arrays)
        self.trace.meta["runs"].append(
            {
                "index": index,
                "stages": plan.stages,
                "updates": len(plan.stages),
                "replicas_differ": differ,
                "own_missing": self.missing,
                "outputs": plan.outputs,
            }
        )
        self.recorded_last = True
        self._stop_if_done(seen, index, wanted)
        return returned

    # ---- inputs ----------------------------------------------------------------------------------

    def _inputs(
        self, session: Any, plan: Plan, feed_dict: Any, feeds: Dict[Any, Any], index: int
    ) -> Dict[str, Any]:
        """Record what is fed, or put the recorded inputs into `feeds` and record what this program had."""
        own_feeds = flatten(session.graph, feed_dict)
        fed = {"input/feed/" + tensor.name: tensor for tensor in own_feeds}
        arrays = {key: packed(own_feeds[tensor]) for key, tensor in fed.items()}
        tensors = {**plan.drawn, **fed}
        if self.replay is None:
            if not self.config.get("synthetic"):
                return arrays
            arrays.update(self._draw(session, plan, own_feeds, feeds))
            for number, key in enumerate(sorted(arrays)):
                array = random_like(arrays[key], index * 1009 + number)
                arrays[key] = array
                feeds[tensors[key]] = unpacked(array)
            return arrays
        recorded = read_arrays(self.replay, "run_%05d" % index)
        given = {k: v for k, v in recorded.items() if k.startswith("input/")}
        mine = {}
        if not self.config.get("synthetic"):
            arrays.update(self._draw(session, plan, own_feeds, feeds))
            agreed: Dict[str, bool] = self.trace.meta.setdefault("inputs_agreed", {})
            self.missing = sorted(set(given) - set(arrays) - set(plan.chance))
            groups: Dict[str, str] = self.watcher.graphs[session.graph].sources.groups  # type: ignore[union-attr]
            shared = in_any_order(arrays, given, groups)
            for group, is_same in shared.items():
                agreed[group] = agreed.get(group, True) and is_same
                if not is_same:
                    mine["own/" + group] = np.zeros(0)
            for key in sorted((set(given) | set(arrays)) - set(plan.chance)):
                if groups.get(key) in shared:
                    continue
                is_same = key in given and key in arrays and same(arrays[key], given[key])
                agreed[key] = agreed.get(key, True) and is_same
                if not is_same and key in arrays:
                    mine["own/" + key] = arrays[key]
            self.trace.meta["shared_inputs"] = sorted(
                set(self.trace.meta["shared_inputs"]) | set(shared)
            )
        tensors.update(plan.chance)
        for key, value in given.items():
            tensor = tensors[key] if key in tensors else self._named(session.graph, key)
            if tensor is not None:
                feeds[tensor] = unpacked(value)
        return mine

    def _draw(
        self, session: Any, plan: Plan, own_feeds: Dict[Any, Any], feeds: Dict[Any, Any]
    ) -> Dict[str, Any]:
        """What queues and iterators give for this run, drawn as often as the run itself would."""
        if not plan.drawn:
            return {}
        values = self.original(session, dict(plan.drawn), {**own_feeds, **feeds}, None, None)
        return {key: packed(value) for key, value in values.items()}

    @staticmethod
    def _named(graph: Any, key: str) -> Any:
        if not key.startswith("input/feed/"):
            return None
        try:
            return graph.get_tensor_by_name(key[len("input/feed/") :])
        except (KeyError, ValueError):
            return None

    # ---- the state before a run ------------------------------------------------------------------

    def _before(self, session: Any, seen: SeenGraph, variables: Dict[str, Any], index: int) -> None:
        """Record what the program did to its variables since the last run, then load what is to be loaded."""
        own = self.state.read(session, variables)
        name = "before_%05d" % index
        first = not seen.initialized
        seen.initialized = True
        if not self.runs - 1:
            name = "initial"
            changed = own
        elif first or not self.recorded_last:
            changed = own
        else:
            changed = {
                k: v for k, v in own.items() if k not in self.after or not same(v, self.after[k])
            }
            changed = {k: v for k, v in changed.items() if k not in self.moved}
        if changed:
            self.trace.arrays(name, changed)
        if self.replay is None:
            return
        recorded = read_arrays(self.replay, name)
        if self.config.get("rounding"):
            self._round_off(session, variables, index, own, recorded)
        elif self.config.get("lockstep"):
            self.theirs.update(recorded)
            self.state.load(session, variables, self.theirs)
            again = read_arrays(self.replay, "run_%05d" % index)
            self.theirs.update({k[6:]: v for k, v in again.items() if k.startswith("state/")})
        elif first or not self.recorded_last:
            self.state.load(session, variables, recorded)

    def _round_off(
        self,
        session: Any,
        variables: Dict[str, Any],
        index: int,
        own: Dict[str, Any],
        recorded: Dict[str, Any],
    ) -> None:
        """Move each weight by a part of its size, up or down: how far does that carry?

        Every run starts from the recorded state, or (`rounding_adds_up`) from where the last one ended.
        """
        assert self.replay is not None
        described = self.trace.meta["variables"]
        weights = sorted(
            k
            for k in variables
            if described[k]["trainable"] and described[k]["dtype"].startswith("float")
        )
        if self.config.get("rounding_adds_up") and self.runs > 1:
            values = {key: own[key] for key in weights}
        else:
            self.moved = {}
            self.theirs.update(recorded)
            values = dict(self.theirs)
            again = read_arrays(self.replay, "run_%05d" % index)
            self.theirs.update({k[6:]: v for k, v in again.items() if k.startswith("state/")})
        weights = [key for key in weights if key in values]
        added = move_values(values, weights, float(self.config["rounding"]), index)
        for key, part in added.items():
            self.moved[key] = self.moved.get(key, 0) + part
        self.state.load(session, variables, values)

    # ---- the end ---------------------------------------------------------------------------------

    def _stop_if_done(self, seen: SeenGraph, index: int, wanted: int) -> None:
        if self.replay is not None:
            ended = read_meta(self.replay)["ended"]
            done = index >= max(self.replay_at) and ended == "steps"
        else:
            done = all(self.updates[stage] >= wanted for stage in seen.updates)
        if done:
            self._finish("steps")

    def _finish(self, ended: str, error: Optional[str] = None) -> None:
        self.describe()
        self.trace.finish(ended, error)
        leave(0 if error is None else 1)

    def describe(self) -> None:
        """Tell of the stages, the devices the towers were put on, and what always trains together."""
        stages: List[Dict[str, Any]] = []
        devices = set()
        graphs: Dict[Any, SeenGraph] = self.watcher.graphs
        for graph, seen in graphs.items():
            plans = [plan for plan in seen.plans.values() if plan.stages]
            for number, update in seen.updates.items():
                mine = [plan for plan in plans if number in plan.stages]
                together = set.intersection(*(set(plan.stages) for plan in mine)) if mine else set()
                stages.append(
                    {
                        "number": number,
                        "name": update.name,
                        "losses": len(update.losses()),
                        "trained": bool(mine),
                        "together": sorted(together),
                    }
                )
                for average in range(len(seen.averages)):
                    if mine and all((average, number) in plan.beside for plan in mine):
                        self.trace.meta["averages"].setdefault(str(number), []).append(average)
            racing = {pair for plan in plans for pair in plan.racing}
            self.trace.meta["writes"] += sorted(
                (name, first, second)
                for name, first, second in racing
                if all(
                    (name, first) in plan.writes or (name, second) not in plan.writes
                    for plan in seen.plans.values()
                )
            )
            beside = {pair for plan in plans for pair in plan.beside_writes}
            self.trace.meta["reads"] += [
                seen.writes.named((name, use, place))  # type: ignore[union-attr]
                for name, use, place in sorted(beside)
                if all(
                    (name, place) not in plan.writes or seen.writes.uses[name][use] in plan.uses  # type: ignore[union-attr]
                    for plan in seen.plans.values()
                )
            ]
            if seen.updates:
                for op in graph.get_operations():
                    found = _DEVICE.search(op.device)
                    if found and not op.name.startswith(PROBE_SCOPE):
                        devices.add(found.group(1).upper() + found.group(2))
        self.trace.meta["stages"] = sorted(stages, key=lambda stage: stage["number"])
        accelerators = sorted(device for device in devices if device.startswith("GPU"))
        self.trace.meta["devices"] = accelerators or sorted(devices)


def main(config_path: str) -> None:
    """Run the program that the configuration names. Ends the process."""
    with open(config_path) as file:
        config = json.load(file)
    for path in config.get("python_path", []):
        sys.path.append(path)
    if config.get("compat"):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        __import__("towermigrate.helpers")
    import tensorflow as tensorflow

    tf: Any = tensorflow
    if config.get("compat") or config.get("rewritten"):
        tf = tensorflow.compat.v1
    if config.get("compat"):
        tf.disable_v2_behavior()
    probe = SessionProbe(config, tf)
    probe.trace.meta["tensorflow"] = tensorflow.__version__
    probe.watcher.install()
    probe.install()
    make_random_ops_stateless(probe.next_seed, probe.initial_seed)
    error = run_program(config["entry"], config["arguments"])
    probe.describe()
    probe.trace.finish("program" if error is None else "error", error)
    leave(0 if error is None else 1)
