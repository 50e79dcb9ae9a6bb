"""A program written by hand in loop style, beside an original that only its graph and its session tell of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.comparison import joined_losses, whole_losses
from towermigrate.verify.replayed import own_inputs

# `minimize` of the mean of the towers' losses, in a class: no program that is known from its source.
ORIGINAL = """\
import numpy as np
import tensorflow as tf

TOWERS = 2


class Trainer(object):
    def __init__(self):
        self.x = tf.placeholder(tf.float32, [8, 3])
        parts, losses = tf.split(self.x, TOWERS), []
        for i in range(TOWERS):
            with tf.device("/gpu:%d" % i), tf.variable_scope("net", reuse=i > 0):
                x = parts[i]
                w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
                noisy = x + 0.1 * tf.random_normal([8 // TOWERS, 3])
                losses.append(tf.reduce_mean(tf.square(tf.reduce_sum(noisy * w, 1) - 1.0)))
        self.loss = tf.add_n(losses) / TOWERS
        self.train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(self.loss)


def main():
    random = np.random.RandomState(0)
    trainer = Trainer()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            loss, _ = session.run(
                [trainer.loss, trainer.train], {trainer.x: random.randn(8, 3)})
            print("loss %.5f" % loss)


if __name__ == "__main__":
    main()
"""
BY_HAND = """\
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm

TOWERS = 2
strategy = tm.tower_strategy(TOWERS)
with strategy.scope():
    w = tf.Variable(tf.ones([3]), name="net/w")
    opt = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)


@tf.function(autograph=False)
def train(x):
    def tower(x):
        noisy = x + 0.1 * tf.random.normal([8 // TOWERS, 3])
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(noisy * w, 1) - 1.0))
        opt.apply_gradients(tm.tower_gradients(opt, loss, [w]))
        return loss

    return tm.mean_over_towers(strategy.run(tower, args=(x,)))


random = np.random.RandomState(0)
for _ in range(5):
    loss = train(*tm.shard_batch(random.randn(8, 3).astype("f")))
    print("loss %.5f" % loss.numpy())
"""


def _verified(folder: Path, change: tuple[str, str] | None = None, devices: str = "cpu:2") -> Any:
    made = BY_HAND
    if change is not None:
        assert change[0] in made
        made = made.replace(*change)
    for name, text in (("original", ORIGINAL), ("by_hand", made)):
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(text)
    options = VerifyOptions(
        folder / "original", rewritten=folder / "by_hand", devices=(devices,), steps=5
    )
    return run_verify(options)


def test_all_levels_are_compared(tmp_path: Path) -> None:
    report = _verified(tmp_path)
    assert report.equal, report.to_json()
    assert report.not_compared == ()
    (run,) = report.runs
    verdicts = {level.level: level.verdict for level in run.levels}
    assert set(verdicts.values()) == {"equal"}
    assert {"initial", "input", "forward", "gradient", "update", "output"} <= verdicts.keys()
    # One function of both TensorFlows' kernels, and one order of summation.
    assert run.max_abs["gradient"] < 1e-6


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:4", "xla:2", "workers:2"])
def test_on_other_devices(devices: str, tmp_path: Path) -> None:
    report = _verified(tmp_path, devices=devices)
    assert report.equal and not report.not_compared, report.to_json()
    assert {level.verdict for level in report.runs[0].levels} == {"equal"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "level"),
    [
        pytest.param(("0.1, 0.9", "0.1001, 0.9"), "update", id="rate"),
        pytest.param(("RandomState(0)", "RandomState(1)"), "input", id="data"),
        pytest.param(("tf.ones([3])", "2 * tf.ones([3])"), "initial", id="initial value"),
        pytest.param(("x + 0.1 *", "x + 0.0 *"), "forward", id="noise"),
        pytest.param(("loss, [w])", 'loss, [w], reduce="sum")'), "gradient", id="sum"),
        pytest.param(("range(5)", "range(4)"), "structure", id="a step less"),
        pytest.param(("random.randn(8, 3)", "(1.0001 * random.randn(8, 3))"), "input", id="scaled"),
    ],
)
def test_faults_are_found(change: tuple[str, str], level: str, tmp_path: Path) -> None:
    report = _verified(tmp_path, change)
    assert not report.equal
    (run,) = report.runs
    assert run.first_difference is not None and run.first_difference.level == level


@pytest.mark.full
def test_an_input_that_is_no_argument_is_named(tmp_path: Path) -> None:
    inside = 'train(*tm.shard_batch(random.randn(8, 3).astype("f")))'
    made = ("    loss = " + inside, "    loss = train(*tm.shard_batch("
            'random.randn(8, 3).astype("f").reshape(4, 6)))')  # fmt: skip
    text = BY_HAND.replace("noisy = x +", "noisy = tf.reshape(x, [8 // TOWERS, 3]) +")
    assert made[0] in text
    for name, program in (("original", ORIGINAL), ("by_hand", text.replace(*made))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(program)
    report = run_verify(
        VerifyOptions(tmp_path / "original", rewritten=tmp_path / "by_hand", devices=("cpu:2",))
    )
    assert not report.equal
    assert any("no argument of the steps has its shape" in each for each in report.not_compared)


def test_one_loss_of_all_towers_is_held_against_their_mean_or_the_sum_of_their_shares() -> None:
    of_towers = {f"loss/0/{tower}": np.float32(value) for tower, value in enumerate((1.0, 2.0))}
    for whole in (1.5, 3.0):
        joined = joined_losses({"loss/0/0": np.float32(whole)}, of_towers)
        assert {key: float(value) for key, value in joined.items()} == {"loss/0/0": whole}
    assert joined_losses(of_towers, of_towers) == of_towers


def test_own_inputs_are_told_by_their_values_and_else_by_their_shape() -> None:
    rows = np.arange(8.0).reshape(4, 2)
    recorded = {"input/feed/x:0": rows, "input/feed/rate:0": np.float64(0.5)}
    found = own_inputs(recorded, [rows + 1, rows, np.float64(0.25)])
    np.testing.assert_array_equal(found["own/input/feed/x:0"], rows)
    assert float(found["own/input/feed/rate:0"]) == 0.25
    assert own_inputs(recorded, [rows[:3]]) == {}
    of_worker = own_inputs(recorded, [rows[2:], np.float64(0.5)], (1, 2))
    np.testing.assert_array_equal(of_worker["own_part/1/input/feed/x:0"], rows[2:])
    assert float(of_worker["own/input/feed/rate:0"]) == 0.5


def test_rows_of_several_lengths_on_the_replicas() -> None:
    class PerReplica:
        values = (np.zeros((2, 3)), np.ones((2, 5)))

    found = own_inputs({"input/feed/x:0": np.zeros((2, 5))}, [PerReplica()])
    np.testing.assert_array_equal(found["own/input/feed/x:0"], np.ones((2, 5)))


EAGER = """\
import tensorflow as tf

from towermigrate.verify.replayed import whole

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
add_up = tf.distribute.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=add_up)
with strategy.scope():
    w = tf.Variable(0.0)
alone = tf.Variable(0.0)
assert len(w.values) == 2
assert all(whole(each) is w for each in w.values)
assert whole(w) is w and whole(alone) is alone
"""


def test_a_variable_that_was_made_eagerly_is_known_by_the_copies_of_it() -> None:
    """TF keeps that at their handles; without it lock-step would set one copy and leave the others."""
    pytest.importorskip("tensorflow")
    done = subprocess.run(
        [sys.executable, "-c", EAGER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_losses_that_are_shares_are_whole_where_the_gradients_are() -> None:
    wanted = {
        "loss/0/0": np.float32(2.0),
        "loss/0/1": np.float32(4.0),
        "gradient/0/w": np.float32([1.0, -2.0]),
    }
    shares = {**wanted, "loss/0/0": np.float32(1.0), "loss/0/1": np.float32(2.0)}
    assert whole_losses(wanted, shares) == wanted
    divided = {**shares, "gradient/0/w": np.float32([0.5, -1.0])}
    assert whole_losses(wanted, divided) == divided
    other = {**shares, "loss/0/1": np.float32(3.0)}
    assert whole_losses(wanted, other) == other
