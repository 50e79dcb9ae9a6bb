"""Run a rewritten program on one replica, and write down as StableHLO what each of its training steps computes.

The child process of `tpu-compile:TYPE`: `python -m towermigrate.verify.tpu.lower_tf2 CONFIG.json`. It wraps the program's
own `tf.function`s and TF1 optimizers and runs the program as `__main__`. After the first call of a `tf.function` whose
trace applied gradients, that function is traced once more for XLA, and lowered. What stands in the way of that is named
with the line of the program that it comes from (`lines.py`).

With as many replicas as the program has towers it runs to see what shapes each of them takes (`only_shapes`).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from towermigrate.tree import HELPERS_COPY
from towermigrate.verify.probe.program import leave, run_program
from towermigrate.verify.probe.recording import TraceWriter
from towermigrate.verify.tpu.left_out import left_out
from towermigrate.verify.tpu.lines import Blockers, with_lines
from towermigrate.verify.tpu.shapes import shapes_of, with_shapes
from towermigrate.verify.tpu.stablehlo import live_nodes, stablehlo
from towermigrate.verify.wrappers_tf2 import wrap_functions, wrap_optimizers


class Lowering:
    """The listener: `towermigrate.helpers._hooks.Hooks`, and what was lowered so far."""

    def __init__(
        self, config: dict[str, Any], tf: Any, tower_index: Callable[[], int | None]
    ) -> None:
        self.tf = tf
        self.config = config
        self.trace = TraceWriter(config["trace"])
        self.steps: list[dict[str, Any]] = []
        self.trace.meta["steps"] = self.steps
        self.trace.meta["tensorflow"] = tf.__version__
        # The program may replace it, and wrapping it does.
        self.make_function = tf.function
        self.blockers = Blockers(config["tree"], config["helpers"])
        self.local = threading.local()
        self.traces: list[tuple[Any, list[str]]] = []
        self.lowered: list[Any] = []
        self.until = time.monotonic() + config["seconds"]
        self.tower_index = tower_index

    # ---- hooks of the helpers --------------------------------------------------------------------

    def created(self, variables: Any) -> None:
        """Nothing is needed of it."""

    def tower_begin(
        self, index: int | None, names: tuple[str, ...], args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return args

    def tower_end(self, index: int | None) -> None:
        """Nothing is needed of it."""

    def gradients(
        self, index: int | None, loss: Any, grads_and_vars: list[tuple[Any, Any]]
    ) -> None:
        """Nothing is needed of it."""

    def applied(
        self, optimizer: Any, grads_and_vars: list[tuple[Any, Any]], averaged: bool
    ) -> None:
        self.record_update(optimizer, grads_and_vars, averaged)
        self.local.averaged = True

    # ---- what the wrappers tell ------------------------------------------------------------------

    def trace_begins(self, graph: Any) -> None:
        self.traces.append((graph, []))

    def trace_ends(self, result: Any) -> None:
        """Nothing is needed of it."""

    def record_compute(self, optimizer: Any, loss: Any, pairs: Any) -> None:
        """Nothing is needed of it."""

    def record_update(self, optimizer: Any, pairs: Any, averaged: bool) -> None:
        if self.tower_index() not in (0, None):  # each replica's trace tells of the same update
            return
        graph = self.tf.compat.v1.get_default_graph()
        while graph is not None:
            for known, updates in self.traces:
                if known is graph:
                    updates.append(type(optimizer).__name__)
                    return
            graph = getattr(graph, "outer_graph", None)

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """A call of one of the program's functions: it runs, and a new one that trains is lowered."""
        result = function(*args, **kwargs)
        if not any(function is known for known in self.lowered):
            graph = function.get_concrete_function(*args, **kwargs).graph
            updates = next((updates for known, updates in self.traces if known is graph), [])
            if updates:
                self.lowered.append(function)
                self._lower(function, args, kwargs, list(updates))
                if sum(len(step["updates"]) for step in self.steps) >= self.config["stages"]:
                    self.finish("steps")
        if time.monotonic() > self.until:
            self.finish("time")
        return result

    # ---- one step --------------------------------------------------------------------------------

    def _lower(self, function: Any, args: Any, kwargs: Any, updates: list[str]) -> None:
        code = code_of(function.python_function)
        place = [code.co_name, self.blockers.relative(code.co_filename), code.co_firstlineno]
        number = sum(place == [each["step"], each["file"], each["line"]] for each in self.steps)
        step: dict[str, Any] = {
            "step": place[0],
            "file": place[1],
            "line": place[2],
            "number": number,
            "updates": updates,
            "towers": 1,
            "inputs": [],
            "left_out": [],
            "blockers": [],
            "text": None,
        }
        self.steps.append(step)
        if self.config["only_shapes"]:
            step["shapes"] = shapes_of(self.tf, args, kwargs)
            return
        concrete = self._traced_as_one_of_several(function, args, kwargs, step)
        if concrete is None:
            try:
                concrete = self._traced(function, args, kwargs, step)
            except Exception as error:  # whatever the program raises when it is traced for XLA
                step["blockers"] = self.blockers.of_exception(error)
                return
        self._write(concrete, step)

    def _traced(self, function: Any, args: Any, kwargs: Any, step: dict[str, Any]) -> Any:
        compiled = self.make_function(function.python_function, autograph=False, jit_compile=True)
        with left_out(self.tf) as names:
            concrete = compiled.get_concrete_function(*args, **kwargs)
        step["left_out"] = sorted(set(names))
        return concrete

    def _traced_as_one_of_several(
        self, function: Any, args: Any, kwargs: Any, step: dict[str, Any]
    ) -> Any:
        """The step with the shapes that it has where several towers share a batch; None where it takes only its own."""
        for seen in self.config["shapes"]:
            if all(seen[key] == step[key] for key in ("step", "file", "line", "number")):
                others = with_shapes(self.tf, args, kwargs, seen["shapes"])
                if others is None:
                    return None
                try:
                    concrete = self._traced(function, *others, step)
                except Exception:  # the program has the sizes of one tower's batch in its text
                    return None
                step["towers"] = self.config["towers_of_shapes"]
                return concrete
        return None

    def _write(self, concrete: Any, step: dict[str, Any]) -> None:
        specs = self._specs(concrete)
        step["inputs"] = [f"{spec.dtype.name}{spec.shape.as_list()}" for spec in specs]
        step["blockers"] = self.blockers.of_inputs(concrete)
        if step["blockers"]:
            return
        try:
            text = stablehlo(concrete, specs)
        except Exception as error:  # of TensorFlow's bridge, by many classes
            live = live_nodes(concrete.function_def)
            step["blockers"] = self.blockers.of_bridge(str(error), concrete.graph, live)
            return
        step["blockers"] = self.blockers.of_text(text, concrete.graph)
        if not step["blockers"]:
            nodes = self.blockers.lines_of_nodes(concrete.graph)
            step["text"] = f"step_{len(self.steps) - 1:02d}.mlir"
            path = os.path.join(self.config["trace"], step["text"])
            with open(path, "w", encoding="utf-8") as file:
                file.write(with_lines(text, nodes))
            places = {(at["file"], at["line"]): at["source"] for at in nodes.values()}
            step["places"] = [[*place, source] for place, source in places.items()]

    def _specs(self, concrete: Any) -> list[Any]:
        """The arguments' shapes and types. Not their values: those would be folded into what is compiled."""
        count = len(concrete.inputs) - len(concrete.captured_inputs)
        return [self.tf.TensorSpec(each.shape, each.dtype) for each in concrete.inputs[:count]]

    def finish(self, ended: str, error: str | None = None) -> None:
        self.trace.finish(ended, error)
        leave(0 if error is None else 1)


def code_of(function: Any) -> Any:
    """The code of a function of the program, below what was put around it."""
    function = inspect.unwrap(function)
    return getattr(function, "__func__", function).__code__


def main(config_path: str) -> None:
    """Run the program that the configuration names. Ends the process."""
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    from towermigrate import helpers  # noqa: F401  (sets up legacy Keras before Keras is loaded)
    from towermigrate.helpers import _hooks
    from towermigrate.helpers.strategy import static_tower_index

    import tensorflow as tf  # isort: skip

    lowering = Lowering(config, tf, static_tower_index)
    _hooks.active = lowering
    if config["helpers"]:  # a copy that `towermigrate vendor` put into the tree
        sys.path.insert(0, config["helpers"])
        importlib.import_module(f"{HELPERS_COPY}._hooks").active = lowering  # type: ignore[attr-defined]
        sys.path.pop(0)
    wrap_functions(lowering, os.path.realpath(config["tree"]))
    wrap_optimizers(lowering)
    error = run_program(config["entry"], config["arguments"], config.get("fence"))
    lowering.finish("program" if error is None else "error", error)


if __name__ == "__main__":
    main(sys.argv[1])
