"""Name-based checkpoints between a TF1 tower program and its rewritten form."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from tests.fixtures_run.test_workers import free_ports
from tests.helpers import tf1_checkpoint_program as original
from tests.helpers.rewritten_checkpoint_program import Rewritten
from tests.tf1_env import required_python

v1 = tf.compat.v1
ROOT = Path(__file__).parents[2]
# TensorFlow 1.15's kernels and 2.21's add up in another order: 2.4e-7 a step was measured on values
# of order 1, and Adam divides by the root of small squares.
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def tf1_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Runs a phase of the original, all kinds in one process of TensorFlow 1.15.5."""
    python = required_python()
    folder = tmp_path_factory.mktemp("tf1")

    def run(phase: str) -> Path:
        command = [python, original.__file__, phase, str(folder)]
        # TensorFlow 2 sets it for itself on import, and TensorFlow 1.15 obeys it.
        environment = {k: v for k, v in os.environ.items() if k != "TF2_BEHAVIOR"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return folder

    return run


@pytest.fixture(scope="module")
def trained(tf1_runs: Callable[[str], Path]) -> Path:
    return tf1_runs("train")


@pytest.fixture(scope="module")
def continued(
    trained: Path, tf1_runs: Callable[[str], Path]
) -> tuple[Path, dict[str, tuple[Rewritten, list[Any], list[Any]]]]:
    """Every kind restored, trained and saved here, then continued there and here."""
    runs = {}
    for kind in original.KINDS:
        program = Rewritten(kind, original.TOWERS)
        program.variables.restore_tf1(str(trained / kind), **program.state)
        losses = program.run(original.BEFORE, original.AFTER)
        program.variables.save_tf1(str(trained / kind / "rewritten"), **program.state)
        runs[kind] = program, losses, [program.values()]
    tf1_runs("go_on")
    return trained, runs


def recorded(folder: Path, kind: str, phase: str, part: str) -> dict[str, Any]:
    with np.load(folder / kind / f"{phase}.npz") as arrays:
        return {
            name.removeprefix(f"{part}/"): value
            for name, value in arrays.items()
            if name.startswith(f"{part}/")
        } or {part: arrays[part]}


def assert_close(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(actual) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(
            actual[name], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
        )


@pytest.mark.parametrize(
    ("kind", "towers"),
    [
        *(pytest.param(kind, 2, id=f"{kind}, two towers") for kind in original.KINDS),
        pytest.param("adam", 0, id="adam, no strategy"),
        pytest.param("staged", 0, id="staged, no strategy"),
        pytest.param("adam", 4, id="adam, four towers"),
    ],
)
def test_a_checkpoint_of_tf1_restores_bitwise(trained: Path, kind: str, towers: int) -> None:
    program = Rewritten(kind, towers)
    report = program.variables.restore_tf1(str(trained / kind / "model.ckpt-5"), **program.state)
    assert report.complete, str(report)
    expected = recorded(trained, kind, "train", "at")
    assert set(report.restored) == set(expected) == set(program.variables_by_name())
    for name, variable in program.variables_by_name().items():
        for copy in getattr(variable, "values", [variable]):
            np.testing.assert_array_equal(copy.numpy(), expected[name], err_msg=name)


@pytest.mark.parametrize("kind", list(original.KINDS))
def test_training_goes_on_as_the_original_did(continued: Any, kind: str) -> None:
    folder, runs = continued
    _, losses, [values] = runs[kind]
    assert len(losses) == original.AFTER * len(original.KINDS[kind])
    assert_close({"losses": losses}, recorded(folder, kind, "train", "losses"))
    assert_close(values, recorded(folder, kind, "train", "after"))


@pytest.mark.parametrize("kind", list(original.KINDS))
def test_tf1_goes_on_from_a_checkpoint_saved_here(continued: Any, kind: str) -> None:
    folder, runs = continued
    program, _, [values] = runs[kind]
    for name, value in recorded(folder, kind, "go_on", "at").items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    losses = program.run(original.BEFORE + original.AFTER, original.BACK)
    assert_close({"losses": losses}, recorded(folder, kind, "go_on", "losses"))
    assert_close(program.values(), recorded(folder, kind, "go_on", "after"))


def write(path: Path, values: dict[str, Any], **options: Any) -> str:
    """A checkpoint of TF1's saver with these names and values."""
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.Saver({n: tf.Variable(v) for n, v in values.items()}, **options)
        session.run(v1.global_variables_initializer())
        return str(saver.save(session, str(path)))


class Small:
    """A program of two variables, with Adam's slots or without; 2 towers or none."""

    def __init__(self, towers: int = 0, adam: bool = False) -> None:
        self.strategy = tm.tower_strategy(towers) if towers else tf.distribute.get_strategy()
        with self.strategy.scope():
            self.variables = tm.TowerVariables()
            self.optimizer = v1.train.AdamOptimizer(0.1)

        @self.variables.tower
        def tower() -> Any:
            with v1.variable_scope("net"):
                return sum(v1.get_variable(name, [], initializer=zeros) for name in ("w", "b"))

        def step() -> None:
            grads = tm.tower_gradients(self.optimizer, tower(), self.variables.trainable())
            if adam:
                self.optimizer.apply_gradients(grads)

        run = tf.function(lambda: self.strategy.run(step), autograph=False)
        tm.create_variables(run, strategy=self.strategy)

    def values(self) -> list[float]:
        return [v.numpy().item() for v in self.variables.all()]


def zeros(shape: Any, dtype: Any, **unused: Any) -> Any:
    return tf.zeros(shape, dtype)


W, B = np.float32(1.0), np.float32(2.0)
ADAM = {
    "beta1_power": np.float32(0.5), "beta2_power": np.float32(0.25),
    **{f"net/{name}/Adam": np.float32(3.0) for name in "wb"},
    **{f"net/{name}/Adam_1": np.float32(4.0) for name in "wb"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("saved", "options", "says"),
    [
        pytest.param(
            {"net/w": W},
            {},
            r"in the program, not in the checkpoint \(1\):\n  net/b\n",
            id="a variable that the checkpoint lacks",
        ),
        pytest.param(
            {"net/w": W, "net/b": np.zeros([3], "f")},
            {},
            r"\(1\):\n  net/b: float32 \[\] in the program, float32 \[3\] in the checkpoint",
            id="another shape",
        ),
        pytest.param(
            {"net/w": W, "net/b": np.int64(1)},
            {},
            r"net/b: float32 \[\] in the program, int64 \[\] in the checkpoint",
            id="another dtype",
        ),
        pytest.param(
            {"net/w": W, "net/b": B, "global_step": np.int64(7)},
            {},
            r"in the checkpoint, not in the program \(1\):\n  global_step\nPass .* global_step=",
            id="a global step that was not asked for",
        ),
        pytest.param(
            {"net/w": W, "net/b": B, **ADAM},
            {},
            r"(?s)net/b/Adam is an optimizer's slot .* create_variables",
            id="slots that were not asked for",
        ),
        pytest.param(
            {"train/net/w": W, "train/net/b": B},
            {},
            r"train/net/w may be net/w under an outer scope: pass rename=",
            id="everything under another scope",
        ),
        pytest.param(
            {"net/w": W, "net/b": B, "loss/avg": W},
            {"ignore": "gain"},
            r"(?s)\(1\):\n  loss/avg\nPass ignore=, a regular expression.* or strict=False",
            id="an average of a loss that ignore= does not name",
        ),
    ],
)
def test_strict_restores_nothing_and_lists_what_does_not_match(
    tmp_path: Path, saved: Any, options: Any, says: str
) -> None:
    program = Small()
    path = write(tmp_path / "model.ckpt", saved)
    with pytest.raises(ValueError, match="Nothing was restored") as error:
        program.variables.restore_tf1(path, **options)
    assert re.search(says, str(error.value)), error.value
    assert program.values() == [0.0, 0.0]


@pytest.mark.parametrize("towers", [0, 2], ids=["no strategy", "two towers"])
def test_without_strict_what_matches_is_restored_and_the_rest_reported(
    tmp_path: Path, towers: int
) -> None:
    program = Small(towers)
    path = write(tmp_path / "model.ckpt", {"net/w": W, "net/b": np.zeros([3], "f"), "old": B})
    report = program.variables.restore_tf1(path, strict=False)
    assert program.values() == [1.0, 0.0]
    assert not report.complete
    assert str(report) == (
        f"{path}: restored 1 of the program's variables\n"
        "in the checkpoint, not in the program (1):\n"
        "  old\n"
        "of another shape or dtype (1):\n"
        "  net/b: float32 [] in the program, float32 [3] in the checkpoint"
    )


@pytest.mark.parametrize(
    ("saved", "options", "expected"),
    [
        pytest.param(
            {"net/w": W, "net/b": B, "loss/avg": W}, {"ignore": ".*avg$"}, [1.0, 2.0],
            id="names of the checkpoint ignored",
        ),
        pytest.param(
            {"net/w": W}, {"ignore": "net/b"}, [1.0, 0.0], id="names of the program ignored",
        ),
        pytest.param(
            {"train/net/w": W, "train/net/b": B}, {"rename": "train/{}".format}, [1.0, 2.0],
            id="renamed",
        ),
        pytest.param(
            {"net/w": W, "net/b": B, "net/w/EMA": B, "net/b/EMA": W},
            {"rename": "{}/EMA".format, "ignore": "net/.$"}, [2.0, 1.0],
            id="moving averages into the variables, for evaluation",
        ),
        pytest.param(
            {"shared": W}, {"rename": lambda name: "shared"}, [1.0, 1.0],
            id="one value into two variables",
        ),
    ],
)  # fmt: skip
def test_ignore_and_rename(tmp_path: Path, saved: Any, options: Any, expected: Any) -> None:
    program = Small()
    path = write(tmp_path / "model.ckpt", saved)
    assert program.variables.restore_tf1(path, **options).complete
    assert program.values() == expected


def test_slots_and_other_variables_are_restored_by_name(tmp_path: Path) -> None:
    program = Small(2, adam=True)
    step, rate = tf.Variable(0, name="global_step"), tf.Variable(0.0, name="lr")
    saved = {"net/w": W, "net/b": B, **ADAM, "global_step": np.int32(7), "lr": np.float32(0.5)}
    state: dict[str, Any] = {
        "optimizers": [program.optimizer], "global_step": step, "others": [rate],
    }  # fmt: skip
    report = program.variables.restore_tf1(write(tmp_path / "model.ckpt", saved), **state)
    assert set(report.restored) == set(saved)
    assert (step.numpy(), rate.numpy()) == (7, 0.5)
    w = program.variables.all()[0]
    assert program.optimizer.get_slot(w, "m").numpy() == 3.0
    assert program.optimizer.get_slot(w, "v").numpy() == 4.0
    powers = program.optimizer._get_beta_accumulators()
    assert [power.numpy() for power in powers] == [0.5, 0.25]
    path = program.variables.save_tf1(str(tmp_path / "again"), **state)
    reader = tf.train.load_checkpoint(path)
    assert {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()} == saved


@pytest.mark.parametrize(
    ("place", "options"),
    [
        pytest.param(lambda path: path, {}, id="a prefix"),
        pytest.param(lambda path: Path(path).parent, {}, id="a folder"),
        pytest.param(
            lambda path: path, {"write_version": v1.train.SaverDef.V1}, id="the first file format"
        ),
    ],
)
def test_where_a_checkpoint_may_be(tmp_path: Path, place: Any, options: Any) -> None:
    program = Small()
    path = write(tmp_path / "model.ckpt", {"net/w": W, "net/b": B}, **options)
    report = program.variables.restore_tf1(place(path))
    assert report.path == path
    assert program.values() == [1.0, 2.0]


def objects(folder: Path) -> str:
    return str(tf.train.Checkpoint(w=tf.Variable(1.0)).save(str(folder / "model")))


@pytest.mark.parametrize(
    ("place", "says"),
    [
        pytest.param(lambda f: str(f / "no"), "There is no checkpoint .* Give its prefix", id="no"),
        pytest.param(
            lambda f: write(f / "m", {"w": W}) + ".index", "Give its prefix", id="one of its files"
        ),
        pytest.param(str, "has no file `checkpoint`", id="an empty folder"),
        pytest.param(objects, "written by tf.train.Checkpoint", id="an object-based one"),
    ],
)
def test_what_is_no_checkpoint_of_tf1_is_said(tmp_path: Path, place: Any, says: str) -> None:
    program = Small()
    with pytest.raises(ValueError, match=says):
        program.variables.restore_tf1(place(tmp_path))


def test_calls_that_cannot_work_are_explained(tmp_path: Path) -> None:
    program = Small()
    path = write(tmp_path / "model.ckpt", {"net/w": W, "net/b": B})
    keras = [tf.keras.optimizers.Adam()]
    for call in (program.variables.restore_tf1, program.variables.save_tf1):
        with pytest.raises(TypeError, match="Adam is no TF1 optimizer.*or restore without"):
            call(path, optimizers=keras)
        with pytest.raises(RuntimeError, match="call it eagerly, outside of tf.function"):
            tf.function(lambda call=call: call(path), autograph=False)()
    with tm.tower_strategy(1).scope(), pytest.raises(ValueError, match="create_variables"):
        tm.TowerVariables().restore_tf1(path, global_step=tf.Variable(0), strict=False)
    with pytest.raises(ValueError, match="rename gives net/w and net/b one name"):
        program.variables.save_tf1(path, rename=lambda name: "one")


WORKER = """
import json, os, sys
import towermigrate.helpers as tm
import tensorflow as tf

strategy = tm.tower_strategy(2)
with strategy.scope():
    variables = tm.TowerVariables(batch_norm="mean")

@variables.tower
def tower(x):
    layer = tf.compat.v1.layers.batch_normalization
    return layer(x, momentum=0.0, training=True, name="bn")

index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
step = tf.function(lambda x: strategy.run(tower, (x,)), autograph=False)
step(tf.fill([4, 1], 1.0 + 2 * index))
own = f"{sys.argv[1]}/worker{index}"
variables.save_tf1(own)
tm.tf1_saver(variables).save(f"{own}-saver")
"""


@pytest.mark.full
def test_the_chief_saves_a_mean_over_workers(tmp_path: Path) -> None:
    # Every worker must read the mean; the chief alone would wait for ever.
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    running = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        command = [sys.executable, "-c", WORKER, str(tmp_path)]
        running.append(
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        )
    try:
        ended = [(each.communicate(timeout=120)[1], each.returncode) for each in running]
    finally:
        for each in running:
            each.kill()
    for errors, code in ended:
        assert code == 0, errors[-2000:]
    for prefix in ("worker0", "worker0-saver"):
        assert tf.train.load_variable(str(tmp_path / prefix), "bn/moving_mean").item() == 2.0
    assert not list(tmp_path.glob("worker1*"))


def test_a_partitioned_variable_is_explained(tmp_path: Path) -> None:
    variables = tm.TowerVariables()
    halves = v1.fixed_size_partitioner(2)

    @variables.tower
    def tower() -> Any:
        with v1.variable_scope("net", partitioner=halves):
            return tf.convert_to_tensor(v1.get_variable("w", [4]))

    tf.function(tower, autograph=False)()
    path = write(tmp_path / "model.ckpt", {"net/w": np.zeros(4, np.float32)})
    with pytest.raises(ValueError, match=r"net/w/part_0 is a part .* saved as one, net/w: build"):
        variables.restore_tf1(path)
