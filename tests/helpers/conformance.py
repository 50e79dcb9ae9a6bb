"""The modes that helpers are used in: one `Runner` each, and what a row of the table is.

`conformance_rows` has them; `test_conformance` runs every cell; `conformance_worker` runs the
rows in each of two workers; `conformance_tf1.py` runs those of `helpers/tf1.py` in TensorFlow 1.15.5.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import towermigrate.helpers as tm

EAGER = "eager"
FUNCTION = "tf.function"
EAGER_2 = "Mirrored 2, eager"
MIRRORED_1 = "Mirrored 1"
MIRRORED_2 = "Mirrored 2"
MIRRORED_4 = "Mirrored 4"
XLA = "XLA"
XLA_2 = "XLA, Mirrored 2"
WORKERS = "two workers"
TPU = "TPU"
TF1 = "TF 1.15.5"

LOCAL = (EAGER, FUNCTION, EAGER_2, MIRRORED_1, MIRRORED_2, MIRRORED_4, XLA, XLA_2)
MODES = {
    EAGER: "no strategy, no `tf.function`",
    FUNCTION: "no strategy, the step in a `tf.function`",
    EAGER_2: "`MirroredStrategy` of two towers, no `tf.function`",
    MIRRORED_1: "`MirroredStrategy` of one tower, the step in a `tf.function`",
    MIRRORED_2: "the same of two towers",
    MIRRORED_4: "the same of four towers",
    XLA: "no strategy, the whole step in a `tf.function(jit_compile=True)`",
    XLA_2: "two towers, and what each of them runs up to its gradients and results in a "
    "`tf.function(jit_compile=True)`",
    WORKERS: "`MultiWorkerMirroredStrategy` of two processes on 127.0.0.1, the step in a `tf.function`",
    TPU: "`TPUStrategy`; runs where TensorFlow finds a TPU",
    TF1: "`helpers/tf1.py` in a graph and a session of TensorFlow 1.15.5, two towers",
}

NOT_PROMISED = (
    "needs TensorFlow 2; for TensorFlow 1, `helpers/tf1.py` has `average_gradients` of a list, "
    "`filter_gradients` and `trainable_variables`"
)

Results = dict[str, Any]


@dataclass(frozen=True)
class Cannot:
    """Why a helper is not usable in a mode; `error` is what using it there all the same raises."""

    reason: str
    error: str


@dataclass(frozen=True)
class Case:
    """One row: what uses a helper, and the numbers it must give.

    Args:
      row: the row's title.
      covers: the public names that `use` uses, one or a function with the class it returns.
      use: uses the helper in the mode of a `Runner`; returns named values.
      expect: the same values for that many towers, worked out without TensorFlow.
      cannot: the modes in which the helper is not usable.
      tolerance: the absolute difference allowed. 0 where every number is exact in float32.
      tf1: whether `conformance_tf1.py` runs it with `helpers/tf1.py` as well.
    """

    row: str
    covers: tuple[str, ...]
    use: Callable[[Runner], Results]
    expect: Callable[[int], Results]
    cannot: Mapping[str, Cannot] = field(default_factory=dict)
    tolerance: float = 0.0
    tf1: bool = False

    def check(self, results: Results, towers: int) -> None:
        """Compare what `use` returned with what is expected of so many towers."""
        expected = self.expect(towers)
        assert results.keys() == expected.keys()
        assert expected, "a row that compares nothing"
        for name, value in expected.items():
            found = np.asarray(results[name])
            value = np.asarray(value)
            assert found.shape == value.shape, f"{name}: {found!r}, expected {value!r}"
            if value.dtype.kind in "US":
                assert found.tolist() == value.tolist(), f"{name}: {found}, expected {value}"
            else:
                np.testing.assert_allclose(found, value, rtol=0, atol=self.tolerance, err_msg=name)


class Rows(list[Case]):
    """The rows of one subject."""

    def case(
        self,
        *covers: str,
        expect: Callable[[int], Results],
        row: str | None = None,
        cannot: dict[str, Cannot] | None = None,
        tolerance: float = 0.0,
        tf1: bool = False,
    ) -> Callable[[Callable[[Runner], Results]], None]:
        """Make the decorated function a row, by default with the helper's name."""

        def add(use: Callable[[Runner], Results]) -> None:
            self.append(Case(row or covers[0], covers, use, expect, cannot or {}, tolerance, tf1))

        return add


class Runner:
    """One mode: its strategy, and how a step runs in it."""

    def __init__(self, mode: str, folder: Path) -> None:
        self.mode = mode
        self.folder = folder
        self.strategy = _strategy(mode)
        self.distributed = mode not in (EAGER, FUNCTION, XLA)

    def under(self, strategy: Any) -> Runner:
        """The same mode under another strategy."""
        other = copy.copy(self)
        other.strategy, other.distributed = strategy, True
        return other

    @property
    def towers(self) -> int:
        """How many towers there are in all processes."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def local(self) -> range:
        """The indices of the towers in this process."""
        if self.mode != WORKERS:
            return range(self.towers)
        worker = self.strategy.cluster_resolver.task_id
        return range(worker, worker + 1)

    @property
    def where(self) -> dict[str, Any]:
        """`strategy=`, which helpers need only where none was made."""
        return {} if self.distributed else {"strategy": self.strategy}

    def scope(self) -> Any:
        """Where variables and optimizers are made."""
        return self.strategy.scope() if self.distributed else contextlib.nullcontext()

    def variable(self, value: Any, name: str | None = None) -> Any:
        """A float32 variable with a copy for each tower."""
        with self.scope():
            return tf.Variable(np.asarray(value, "f"), name=name)

    def sgd(self) -> Any:
        """TF1's gradient descent, at rate 1: a variable moves by its gradient."""
        with self.scope():
            return tf.compat.v1.train.GradientDescentOptimizer(1.0)

    def feed(self, parts: Sequence[Any]) -> Any:
        """A per-tower value, tower i's being `parts[i]`; made without the helpers."""
        tensors = [tf.convert_to_tensor(part) for part in parts]
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: tensors[context.replica_id_in_sync_group]
        )

    def step(
        self,
        function: Callable[..., Any],
        then: Callable[[Any], Any] | None = None,
        after: Callable[[Any], Any] | None = None,
    ) -> Callable[..., Any]:
        """A step that runs `function` in every tower.

        Args:
          function: what a tower runs; compiled in both XLA modes.
          then: what a tower does with the result: updates, and whatever else meets other towers,
            which a function compiled for itself cannot do. One compiled program with `function`
            where there is no strategy.
          after: what the step does with the per-tower result, outside of the towers.
        """
        if self.mode == XLA_2:
            function = tf.function(function, jit_compile=True, autograph=False)

        def tower(*args: Any) -> Any:
            # Its frame keeps a compiled function in the tower: one that strategy.run gets itself is
            # compiled around all towers, which fails on CPUs.
            result = function(*args)
            return result if then is None else then(result)

        def step(*args: Any) -> Any:
            result = self.strategy.run(tower, args=args) if self.distributed else tower(*args)
            return result if after is None else after(result)

        if self.mode in (EAGER, EAGER_2):
            return step
        return tf.function(step, jit_compile=self.mode == XLA or None, autograph=False)

    def each(self, value: Any) -> list[Any]:
        """Every tower's value as NumPy, in order; made without the helpers."""
        if self.mode == WORKERS:
            rows = self.strategy.run(lambda one: one[tf.newaxis], args=(value,))
            return list(self.strategy.gather(rows, axis=0).numpy())
        parts = [part.numpy() for part in self.strategy.experimental_local_results(value)]
        # What is one tensor for all towers (an average), TensorFlow returns once.
        return parts * self.towers if len(parts) == 1 else parts

    def wait(self) -> None:
        """Go on when every worker has come here: files of the chief are written by then."""
        if self.mode == WORKERS:
            self.strategy.reduce("SUM", self.strategy.run(lambda: tf.ones([])), axis=None)


def run_cell(case: Case, runner: Runner) -> Results | None:
    """What `case` gives in a mode; None where it cannot be, once it has failed as the reason says.

    Raises:
      AssertionError: what should fail works, or fails in another way.
    """
    cannot = case.cannot.get(runner.mode)
    if cannot is None:
        return case.use(runner)
    try:
        case.use(runner)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        assert re.search(cannot.error, found), f"expected {cannot.error!r}, got {found}"
        return None
    raise AssertionError(f"{case.row} works in the mode {runner.mode}: take its reason out")


def numbers(towers: int) -> list[float]:
    """What towers are fed: 1, 2, … towers."""
    return [tower + 1.0 for tower in range(towers)]


def tpu() -> str | None:
    """The `devices=` of the TPU that is here, or None."""
    if os.environ.get("TPU_NAME"):
        return f"tpu:{os.environ['TPU_NAME']}"
    return "tpu:local" if tf.config.list_physical_devices("TPU") else None


def _strategy(mode: str) -> Any:
    if mode in (EAGER, FUNCTION, XLA):
        return tf.distribute.get_strategy()
    if mode in (WORKERS, TPU):
        return _of_this_process(tpu() if mode == TPU else None)
    return tm.tower_strategy({MIRRORED_1: 1, MIRRORED_4: 4}.get(mode, 2))


@functools.cache
def _of_this_process(devices: str | None) -> Any:
    """Workers meet, and a TPU is initialised, once."""
    return tm.tower_strategy(devices=devices)
