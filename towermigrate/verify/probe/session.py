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

from .between import Untouched
from .draws import Draws
from .feeding import Sources, flatten, packed
from .looked import Looked
from .operations import is_eager
from .ordering import Writes
from .outputs import numbers
from .plans import Plan, make_plan
from .program import leave, run_program
from .randomness import TOWER_STRIDE, make_random_ops_stateless, seed_of_variable
from .recording import TraceWriter, read_arrays, read_meta, relative, same
from .seeds import Seeds
from .seen import PROBE_SCOPE, SeenGraph
from .shuffles import Shuffles
from .starts import Starts
from .state import State
from .taken import Taken
from .telling import describe
from .watching import Watcher

# Each tower's own gradients only help to name a cause; they are N times as much to write.
_TOWER_GRADIENT_STEPS = 2
_DEVICE = re.compile(r"(?:GPU|gpu|CPU|cpu):(\d+)$")


class SessionProbe:
    """What records or replays the training runs of one process."""

    def __init__(self, config: Dict[str, Any], tf: Any) -> None:
        self.config = config
        self.tf = tf
        self.watcher = Watcher(tf, config.get("together", {}), config.get("averages", {}))
        self.trace = TraceWriter(config["trace"])
        self.looked = Looked(self.trace.looked, self.trace.asked)
        self.trace.meta.update(
            style="session",
            stages=[],
            extra_runs=0,
            averages={},
            writes=[],
            reads=[],
        )
        self.replay: Optional[str] = config.get("replay")
        self.replay_at: Dict[int, Dict[str, Any]] = {}
        self.original_runs = 0
        if self.replay is not None:
            meta = read_meta(self.replay)
            self.replay_at = {run["index"]: run for run in meta["runs"]}
            self.trace.meta["replays"] = relative(self.replay, config["trace"])
            self.original_runs = max([*self.replay_at, meta.get("training_runs", 0) - 1]) + 1
        self.original: Any = None
        self.state: Any = None
        self.runs = 0
        self.updates: Any = collections.Counter()
        self.trace.meta["updates_made"] = self.updates
        self.draws = Draws(self.trace.meta)
        self.untouched = Untouched()
        self.recorded_last = True
        self.lock = threading.RLock()
        self.local = threading.local()

    # ---- randomness ------------------------------------------------------------------------------

    def _counted(self) -> Optional[SeenGraph]:
        """What was seen in the default graph, unless that is a function's: it has draws of its own."""
        from tensorflow.python.framework import ops

        graph = self.tf.get_default_graph()
        if is_eager(self.tf) or type(graph) is not ops.Graph:
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
        with self.tf.name_scope(PROBE_SCOPE):
            tower = self._tower() if self.config.get("by_tower") else None
            if tower is None:
                here.draws += 1
                key = here.draws
            else:
                here.tower_draws[tower] = here.tower_draws.get(tower, -1) + 1
                key = (tower + 1) * TOWER_STRIDE + here.tower_draws[tower]
            return self.tf.stack([self.tf.constant(np.int64(key)), here.counter])

    def _tower(self) -> Optional[int]:
        """The tower whose operations are being made, by their device; what has none is no tower's."""
        found = _DEVICE.search(self.tf.constant(0).device)
        return int(found.group(1)) if found else None

    def initial_seed(self) -> Any:
        """By the variable's name: so the same initializer starts from the same values in both programs."""
        here = self._counted()
        if here is None:
            return None
        named = seed_of_variable()
        if named is not None:
            with self.tf.name_scope(PROBE_SCOPE):
                return self.tf.constant(named, self.tf.int64)
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
        self.starts = Starts(self.config, self.trace, self.state, self.replay)
        synthetic = bool(self.config.get("synthetic"))
        self.taken = Taken(self.original, self.trace.meta, self.replay, synthetic)

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
            self._count(session, fetches, feed_dict)
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
        self.untouched.watch(base)

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
            if plan is None or not plan.only_looks:
                self.untouched.touched()
            result = theirs()
            self.looked.fed(self.runs, feed_dict)
            if self.looked.is_fixed(session, fetches, feed_dict):
                self.looked.note(self.runs, result)
            return result
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

    def _count(self, session: Any, fetches: Any, feed_dict: Any) -> None:
        """Count what a run of the program, or of something around its run, draws from the sources of inputs."""
        plan = self._plan(session, fetches, feed_dict)
        if plan is not None and plan.takes:
            self.draws.drawn(plan.takes, bool(plan.stages))

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
        index = self.runs
        self.runs += 1
        self.updates.update(plan.stages)
        try:
            result = self._training_run(session, plan, index, feed_dict, theirs)
            self.trace.meta["training_runs"] = self.runs
            return result
        except BaseException:
            # It trained nothing: the inputs ended, say, and the program goes on from there.
            self.untouched.touched()
            self.runs = index
            self.updates.subtract(plan.stages)
            raise

    def _training_run(
        self, session: Any, plan: Plan, index: int, feed_dict: Any, theirs: Any
    ) -> Any:
        seen = self.watcher.graphs[session.graph]
        feeds = {} if seen.counter is None else {seen.counter: np.int64(index)}
        if not self._is_recorded(plan, index):
            self.recorded_last = False
            self.local.plan = {"of": plan, "feeds": feeds, "fetches": {}}
            returned = theirs()
            self.draws.at(index)
            if self.replay is not None and index >= self.original_runs:
                self.trace.meta["extra_runs"] += 1
                self._finish("steps")
            return returned
        variables = self.state.variables(session.graph, seen)
        fresh = not (seen.initialized and self.recorded_last)
        if index and not seen.initialized:
            self.trace.meta.setdefault("begins", []).append(index)
        seen.initialized = True
        untouched = self.untouched.is_since_training(session)
        self.starts.before(session, variables, index, fresh=fresh, untouched=untouched)
        arrays = self.taken.take(session, seen.sources, plan, feed_dict, feeds, index)  # type: ignore[arg-type]
        running: Dict[str, Any] = {"of": plan, "feeds": feeds, "fetches": self._fetches(plan)}
        self.local.plan = running
        returned = theirs()
        self.draws.at(index)
        arrays.update((k, packed(v)) for k, v in numbers(running.get("result", {})).items())
        after = self.starts.after(session, self.state.variables(session.graph, seen))
        self.untouched.trained(session)
        arrays.update(("state/" + key, value) for key, value in after.items())
        left: List[str] = []
        if self.replay is None or self.config.get("rounding"):
            self.trace.arrays("run_%05d" % index, arrays)
        else:
            first = read_arrays(self.replay, "run_%05d" % index)
            if self.config.get("rewritten"):
                left = self.trace.replayed(index, arrays, first)
            else:
                # A second run says only where it is not the first: states are large.
                other = {k: v for k, v in arrays.items() if k not in first or not same(v, first[k])}
                self.trace.arrays("run_%05d" % index, other)
        self.trace.meta["runs"].append(
            {
                "index": index,
                "as_recorded": left,
                "stages": plan.stages,
                "updates": len(plan.stages),
                "replicas_differ": self.state.differ,
                "own_missing": self.taken.missing,
                "outputs": plan.outputs,
            }
        )
        self.recorded_last = True
        self._stop_if_done(seen, index)
        return returned

    def _is_recorded(self, plan: Plan, index: int) -> bool:
        if self.replay is not None:
            return index in self.replay_at
        return any(self.updates[stage] <= int(self.config["steps"]) for stage in plan.stages)

    def _fetches(self, plan: Plan) -> Dict[str, Any]:
        """What the probe asks for beside the program: inputs as they come, and each tower's gradients at first."""
        left_out = []
        if min(self.updates[stage] for stage in plan.stages) > _TOWER_GRADIENT_STEPS:
            left_out.append("tower_gradient/")
        if self.replay is not None:
            left_out.append("input/")
        return {k: v for k, v in plan.fetches.items() if not k.startswith(tuple(left_out))}

    # ---- the end ---------------------------------------------------------------------------------

    def _stop_if_done(self, seen: SeenGraph, index: int) -> None:
        if self.replay is not None:
            ended = read_meta(self.replay)["ended"]
            done = index >= max(self.replay_at) and ended == "steps"
        else:
            done = all(self.updates[stage] >= self.config["steps"] for stage in seen.updates)
        if done:
            self._finish("steps")

    def _finish(self, ended: str, error: Optional[str] = None) -> None:
        describe(self.watcher.graphs, self.trace.meta)
        self.trace.finish(ended, error)
        leave(0 if error is None else 1)


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
    Seeds(probe.trace.meta).install()
    Shuffles(probe.trace.meta).install()
    make_random_ops_stateless(probe.next_seed, probe.initial_seed)
    error = run_program(
        config["entry"],
        config["arguments"],
        config.get("fence"),
        lambda: bool(probe.trace.meta["runs"]),
    )
    describe(probe.watcher.graphs, probe.trace.meta)
    probe.trace.finish("program" if error is None else "error", error)
    leave(0 if error is None else 1)
