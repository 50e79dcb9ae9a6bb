"""Training in turns: so many iterations of one stage, so many of the next, then again."""

import dataclasses
import operator
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a `Stages`: how often it runs in its turn, and what it runs with.

    Calling it calls `step` and returns what that returns.

    Args:
      name: what tells it from the other stages.
      iterations: how many iterations its turn has, at least 1; or a function of the cycle's number
        (from 0) that returns it, where 0 leaves the stage out of that cycle.
      step: the function, usually a `tf.function`, that one iteration calls.
      optimizer: the stage's optimizer. `Stages` saves it with its position.
      var_list: the stage's variables, for `step` to use.
    """

    name: str
    iterations: int | Callable[[int], int]
    step: Callable[..., Any] | None = None
    optimizer: Any = None
    var_list: Any = None
    _after_step: list[Callable[["Stage"], None]] = dataclasses.field(
        default_factory=list, init=False, repr=False
    )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One iteration: `step(*args, **kwargs)`.

        Raises:
          ValueError: the stage was made without a `step`.
        """
        if self.step is None:
            raise ValueError(f"Stage {self.name!r} has no step to call; give it step=.")
        result = self.step(*args, **kwargs)
        for listener in self._after_step:
            listener(self)
        return result


class Stages(tf.Module):  # type: ignore[misc]
    """Gives the stage whose turn it is, iteration after iteration, and knows where it is.

    A cycle is one turn of every stage in order: five iterations of the critic, then one of the
    generator. The position is a variable: `tf.train.Checkpoint(stages=stages, …)` saves and
    restores it, so that training goes on in the middle of a turn. The stages' optimizers are saved
    along, their slots too where the checkpoint also holds the variables they belong to. Under a
    strategy restore in its scope: TensorFlow makes the slots at once, elsewhere with one copy only.

    An iteration counts as done when its stage's call has returned. Where the body of the loop
    does not call the stage, it counts at the end of the body; call `advance()` before saving in
    such a body, or the resumed program does that iteration again.

    Args:
      *stages: `Stage`s in the order of their turns.
      cycles: end after so many cycles, those before a restore counted; None goes on for ever.
      name: the module's name.

    Raises:
      ValueError: no stage, two of the same name, a stage of less than one iteration or `cycles`
        less than 1; while iterating, a cycle in which no stage has an iteration, or a restored
        position that these stages do not have.
      RuntimeError: the position is asked for in a `tf.function`: the loop over stages is Python.

    Example:
      >>> stages = Stages(
      ...     Stage("critic", 2, step=lambda x: f"critic on {x}"),
      ...     Stage("generator", 1, step=lambda x: f"generator on {x}"),
      ...     cycles=2,
      ... )
      >>> for batch, stage in enumerate(stages):
      ...     print(stages.cycle, stage(batch))
      0 critic on 0
      0 critic on 1
      0 generator on 2
      1 critic on 3
      1 critic on 4
      1 generator on 5
      >>> wgan = Stage("critic", lambda cycle: 100 if cycle < 25 or cycle % 500 == 0 else 5)

    Source: algorithm 1 of Arjovsky et al., "Wasserstein GAN", and the schedule of its code.
    """

    def __init__(self, *stages: Stage, cycles: int | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        _check(stages, cycles)
        self._stages = stages
        self._cycles = cycles
        self._running: Stage | None = None
        self._loop: object = None
        # One variable, so that a position is never half written: cycle, turn, iterations done in
        # it, and the name of its stage, by which a checkpoint of other stages is known.
        position = [0, 0, 0, _number(stages[0])]
        self._position = tf.Variable(position, trainable=False, dtype=tf.int64, name="position")
        self._optimizers = {
            stage.name: stage.optimizer for stage in stages if stage.optimizer is not None
        }
        for stage in stages:
            stage._after_step.append(self._step_returned)

    def __iter__(self) -> Iterator[Stage]:
        """The stage of each iteration that is left."""
        loop = object()
        while (stage := self.current) is not None:
            self._running, self._loop = stage, loop
            try:
                yield stage
                if self._running is not None:
                    self.advance()
            finally:
                if self._loop is loop:  # and not a later one
                    self._running = None

    @property
    def current(self) -> Stage | None:
        """The stage whose turn it is; None after the last cycle."""
        cycle, turn, _ = self._next()
        ended = self._cycles is not None and cycle >= self._cycles
        return None if ended else self._stages[turn]

    @property
    def cycle(self) -> int:
        """The number of the cycle, from 0: how many are complete."""
        return self._next()[0]

    @property
    def iteration(self) -> int:
        """How many iterations of this turn are done."""
        return self._next()[2]

    def advance(self) -> None:
        """Count one iteration of the current stage as done; an iterating loop does so itself.

        Within a loop's body it counts the iteration that the body is in, which then is not counted
        again.
        """
        cycle, turn, iteration = self._next()
        self._position.assign([cycle, turn, iteration + 1, _number(self._stages[turn])])
        self._running = None

    def _step_returned(self, stage: Stage) -> None:
        if stage is self._running:
            self.advance()

    def _next(self) -> tuple[int, int, int]:
        """The position of the next iteration: turns that are over are passed."""
        if not tf.executing_eagerly():
            raise RuntimeError(
                "The position of Stages was asked for while a graph was being built. Loop over the "
                "stages in Python, and decorate each stage's step with tf.function instead."
            )
        cycle, turn, iteration, name = map(int, self._position.numpy())
        if turn >= len(self._stages) or _number(self._stages[turn]) != name:
            raise ValueError(
                f"The restored position is in turn {turn + 1} of a cycle, and not of one of the "
                f"stages {', '.join(stage.name for stage in self._stages)}. Was the checkpoint "
                "written with other stages, other names or another order?"
            )
        passed = 0
        while iteration >= self._iterations(turn, cycle):
            passed += 1
            if passed > 2 * len(self._stages):
                raise ValueError(
                    f"No stage has an iteration in cycle {cycle}: every iterations= function gave 0."
                )
            turn, iteration = turn + 1, 0
            if turn == len(self._stages):
                cycle, turn = cycle + 1, 0
        return cycle, turn, iteration

    def _iterations(self, turn: int, cycle: int) -> int:
        stage = self._stages[turn]
        given = stage.iterations(cycle) if callable(stage.iterations) else stage.iterations
        return _whole(given, f"Stage {stage.name!r} has {given!r} iterations")


def _whole(number: Any, said: str) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise ValueError(f"{said}; expected a whole number.") from None


def _number(stage: Stage) -> int:
    """A number that stands for the stage's name."""
    return zlib.crc32(stage.name.encode())


def _check(stages: tuple[Stage, ...], cycles: int | None) -> None:
    if not stages:
        raise ValueError("Stages got no stage.")
    names = [stage.name for stage in stages]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{names.count(name)} stages are named {name!r}; names must differ.")
    for stage in stages:
        if callable(stage.iterations):
            continue
        said = f"Stage {stage.name!r} has {stage.iterations!r} iterations"
        if _whole(stage.iterations, said) < 1:
            raise ValueError(
                f"Stage {stage.name!r} has {stage.iterations} iterations; expected at least 1."
            )
    if cycles is not None and _whole(cycles, f"cycles is {cycles!r}") < 1:
        raise ValueError(f"cycles is {cycles}; expected at least 1, or None to go on for ever.")
