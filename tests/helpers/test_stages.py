"""Whose turn it is, and where training goes on after a restore."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1


def names(stages: Any, limit: int = 1000) -> str:
    """The first letters of the stages in turn, cycles apart."""
    result: list[str] = []
    cycle = stages.cycle
    for stage in stages:
        if stages.cycle != cycle:
            cycle = stages.cycle
            result.append(" ")
        result.append(stage.name[0])
        if len("".join(result).replace(" ", "")) == limit:
            break
    return "".join(result)


SCHEDULES = [
    pytest.param([("d", 1)], 3, "d d d", id="one stage"),
    pytest.param([("d", 2), ("g", 1)], 3, "ddg ddg ddg", id="n_critic"),
    pytest.param([("a", 2), ("b", 3), ("c", 1)], 2, "aabbbc aabbbc", id="three stages"),
    pytest.param(
        [("d", lambda cycle: 4 if cycle < 2 else 1), ("g", 1)],
        4,
        "ddddg ddddg dg dg",
        id="more in the first cycles",
    ),
    pytest.param(
        [("d", 1), ("g", lambda cycle: cycle % 2)], 4, "d dg d dg", id="left out of every other"
    ),
    pytest.param(
        [("w", lambda cycle: int(cycle == 0)), ("d", 1)], 3, "wd d d", id="only in the first cycle"
    ),
]


@pytest.mark.parametrize(("turns", "cycles", "expected"), SCHEDULES)
def test_turns(turns: Any, cycles: int, expected: str) -> None:
    stages = tm.Stages(*(tm.Stage(*turn) for turn in turns), cycles=cycles)
    assert names(stages) == expected
    assert stages.current is None and stages.cycle == cycles
    assert names(stages) == "", "what has ended stays so"


def test_without_cycles_it_goes_on() -> None:
    stages = tm.Stages(tm.Stage("d", 2), tm.Stage("g", 1))
    assert names(stages, limit=30) == " ".join(["ddg"] * 10)


def test_a_stage_is_the_object_that_was_given_and_calls_its_step() -> None:
    variables = [tf.Variable(1.0)]
    critic = tm.Stage("critic", 1, lambda x, *, y: x + y, "an optimizer", variables)
    assert critic(1, y=2) == 3
    (given,) = tm.Stages(critic, cycles=1)
    assert given is critic and given.var_list is variables and given.optimizer == "an optimizer"
    assert "critic" in repr(critic)


def test_position_is_told_within_the_loop() -> None:
    stages = tm.Stages(tm.Stage("d", 2, lambda: None), tm.Stage("g", 1, lambda: None), cycles=2)
    before, after = [], []
    for stage in stages:
        before.append((stages.cycle, stage.name, stages.iteration))
        stage()
        after.append((stages.cycle, stages.iteration))
    assert before == [(c, *turn) for c in (0, 1) for turn in (("d", 0), ("d", 1), ("g", 0))]
    assert after == [(0, 1), (0, 0), (1, 0), (1, 1), (1, 0), (2, 0)]


# Saving and restoring.


def counted(log: list[str]) -> Any:
    turns = (("d", 3), ("g", 2))
    return tm.Stages(*(tm.Stage(n, k, lambda n=n: log.append(n)) for n, k in turns), cycles=3)


def stopped_after(done: int, where: str, log: list[str]) -> Any:
    stages = counted(log)
    for stage in stages:
        if where == "its start" and len(log) == done:
            break
        if where == "its end, after advance()":
            log.append(stage.name)  # the body does the stage's work without calling it
            stages.advance()
        else:
            stage()
        if where != "its start" and len(log) == done:
            break
    return stages


@pytest.mark.parametrize("where", ["its start", "its end", "its end, after advance()"])
@pytest.mark.parametrize("done", range(1, 15))
def test_saved_anywhere_in_the_body_each_iteration_runs_once(
    tmp_path: Path, done: int, where: str
) -> None:
    log: list[str] = []
    stopped = stopped_after(done, where, log)
    path = tf.train.Checkpoint(stages=stopped).write(str(tmp_path / "checkpoint"))
    again = counted(log)
    tf.train.Checkpoint(stages=again).read(path).assert_consumed()
    assert len(log) == done
    for stage in again:
        stage()
    assert log == list("dddgg" * 3)


def test_an_iteration_that_failed_is_not_counted() -> None:
    log: list[str] = []
    fail_at = [4]

    def step() -> None:
        if len(log) == fail_at[0]:
            fail_at[0] = -1
            raise KeyboardInterrupt
        log.append("x")

    stages = tm.Stages(tm.Stage("d", 3, step), tm.Stage("g", 2, step), cycles=2)
    with pytest.raises(KeyboardInterrupt):
        for stage in stages:
            stage()
    assert (stages.cycle, stages.iteration) == (0, 1), "3 of d, 1 of g"
    for stage in stages:
        stage()
    assert len(log) == 10


def test_a_stage_called_outside_of_its_turn_counts_nothing() -> None:
    d, g = tm.Stage("d", 2, lambda: None), tm.Stage("g", 1, lambda: None)
    stages, others = tm.Stages(d, g), tm.Stages(d, cycles=5)
    d()
    assert stages.iteration == others.cycle == 0
    for stage in stages:
        g()  # a look at the other stage
        assert stages.iteration == 0
        stage()
        stage()  # a second micro-batch of the same iteration
        assert stages.iteration == 1
        break
    assert others.cycle == 0, "the other schedule was not running"
    for stage in stages:
        assert stage is d
        break  # left before its call
    d()
    assert stages.iteration == 1, "nor is this one now"


def test_a_restored_turn_that_became_shorter_is_over(tmp_path: Path) -> None:
    long = tm.Stages(tm.Stage("d", 9), tm.Stage("g", 1))
    for _ in range(5):
        long.advance()
    path = tf.train.Checkpoint(stages=long).write(str(tmp_path / "checkpoint"))
    short = tm.Stages(tm.Stage("d", 3), tm.Stage("g", 1), cycles=2)
    tf.train.Checkpoint(stages=short).restore(path)
    assert names(short) == "g dddg"


def test_a_position_of_other_stages_is_refused(tmp_path: Path) -> None:
    three = tm.Stages(*(tm.Stage(name, 1) for name in "abc"))
    for _ in range(3):
        three.advance()
    path = tf.train.Checkpoint(stages=three).write(str(tmp_path / "checkpoint"))
    for others in ("ab", "cba"):
        stages = tm.Stages(*(tm.Stage(name, 1) for name in others))
        tf.train.Checkpoint(stages=stages).restore(path)
        with pytest.raises(ValueError, match=f"turn 3 of .* stages {', '.join(others)}"):
            next(iter(stages))


def test_an_iterator_that_is_dropped_does_not_disturb_a_later_one() -> None:
    stages = tm.Stages(*(tm.Stage(name, 1, step=lambda: None) for name in "dg"), cycles=2)
    peeking = iter(stages)
    seen = [next(peeking).name]
    for stage in stages:
        peeking.close()  # type: ignore[attr-defined]
        stage()
        seen.append(stage.name)
    assert "".join(seen) == "d" + "dgdg"


# A WGAN-GP of two towers, stopped in the middle of the critic's turn.


class Gan:
    """Critic and generator with an optimizer each, and the stages that train them."""

    def __init__(self) -> None:
        self.strategy = tm.tower_strategy(2)
        with self.strategy.scope():
            self.model = tf.Module()
            self.model.critic = [tf.Variable(tf.fill([2, 4], 0.3)), tf.Variable(tf.ones([4, 1]))]
            self.model.generator = [tf.Variable(tf.eye(2))]
            stages = [
                self.stage("critic", 5, self.critic_loss, v1.train.AdamOptimizer(0.01)),
                self.stage(
                    "generator", 1, self.generator_loss, v1.train.MomentumOptimizer(0.1, 0.9)
                ),
            ]
            self.stages = tm.Stages(*stages)
        self.checkpoint = tf.train.Checkpoint(model=self.model, stages=self.stages)

    def critic(self, x: Any) -> Any:
        first, second = self.model.critic
        return tf.tanh(x @ first) @ second

    def critic_loss(self, noise: Any, real: Any, alpha: Any) -> Any:
        fake = noise @ self.model.generator[0]
        loss = tf.reduce_mean(self.critic(fake)) - tf.reduce_mean(self.critic(real))
        return loss + tm.gradient_penalty(self.critic, real, fake, 10.0, alpha=alpha)

    def generator_loss(self, noise: Any, real: Any, alpha: Any) -> Any:
        return -tf.reduce_mean(self.critic(noise @ self.model.generator[0]))

    def stage(self, name: str, iterations: int, loss: Any, optimizer: Any) -> Any:
        var_list = getattr(self.model, name)

        def tower(*batch: Any) -> Any:
            value = loss(*batch)
            optimizer.apply_gradients(tm.tower_gradients(optimizer, value, list(var_list)))
            return value

        @tf.function(autograph=False)
        def step(*batch: Any) -> Any:
            return tm.mean_over_towers(self.strategy.run(tower, args=batch))

        return tm.Stage(name, iterations, step, optimizer, var_list)

    def train(self, first: int, steps: int) -> list[tuple[str, float]]:
        losses: list[tuple[str, float]] = []
        for stage in self.stages:
            generator = np.random.default_rng(first + len(losses))  # the batch of that iteration
            noise, real = generator.normal(size=[2, 6, 2]).astype("f")
            alpha = generator.uniform(size=6).astype("f")
            losses.append((stage.name, float(stage(*tm.shard_batch(noise, real + 1.0, alpha)))))
            if len(losses) == steps:
                break
        return losses

    def weights(self) -> list[Any]:
        return [copy.numpy() for v in self.model.variables for copy in v.values]


@pytest.mark.parametrize("done", [3, 6, 10], ids=["in turn 1", "after a cycle", "in turn 1 of 2"])
def test_resumed_training_is_bitwise_the_uninterrupted(tmp_path: Path, done: int) -> None:
    whole = Gan()
    losses = whole.train(0, 14)
    assert [name[0] for name, _ in losses] == list("cccccgcccccgcc")
    assert len({loss for _, loss in losses}) == 14

    stopped = Gan()
    assert stopped.train(0, done) == losses[:done]
    path = stopped.checkpoint.write(str(tmp_path / "checkpoint"))
    resumed = Gan()
    with resumed.strategy.scope():
        resumed.checkpoint.read(path)
    assert resumed.train(done, 14 - done) == losses[done:]
    for one, other in zip(whole.weights(), resumed.weights(), strict=True):
        np.testing.assert_array_equal(one, other)


# What is refused.

REFUSED = [
    pytest.param([], {}, "got no stage", id="no stage"),
    pytest.param([("d", 0)], {}, "'d' has 0 iterations", id="no iteration"),
    pytest.param([("d", -1)], {}, "'d' has -1 iterations", id="less than none"),
    pytest.param([("d", 1), ("d", 2)], {}, "2 stages are named 'd'", id="one name twice"),
    pytest.param([("d", 1)], {"cycles": 0}, "cycles is 0", id="no cycle"),
]


@pytest.mark.parametrize(("turns", "options", "message"), REFUSED)
def test_refused(turns: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tm.Stages(*(tm.Stage(*turn) for turn in turns), **options)


def test_a_cycle_without_iterations_does_not_hang() -> None:
    stages = tm.Stages(tm.Stage("d", lambda cycle: 0), tm.Stage("g", lambda cycle: 0))
    with pytest.raises(ValueError, match="No stage has an iteration in cycle"):
        next(iter(stages))


def test_a_stage_without_step_says_so() -> None:
    with pytest.raises(ValueError, match="'critic' has no step to call; give it step="):
        tm.Stage("critic", 1)()


def test_a_loop_inside_a_function_says_where_it_belongs() -> None:
    stages = tm.Stages(tm.Stage("d", 1))

    @tf.function(autograph=False)
    def loop() -> None:
        next(iter(stages))

    with pytest.raises(RuntimeError, match="Loop over the stages in Python"):
        loop()
