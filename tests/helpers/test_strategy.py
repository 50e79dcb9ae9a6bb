"""Which devices a program gets, and what it is told when they do not fit."""

import subprocess
import sys
from typing import Any

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers.strategy import DEVICES_VARIABLE


@pytest.mark.parametrize("towers", [1, 2, 4])
def test_one_replica_for_each_tower(towers: int) -> None:
    strategy = tm.tower_strategy(towers)
    assert strategy.num_replicas_in_sync == towers
    assert isinstance(strategy, tf.distribute.MirroredStrategy)


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_VARIABLE, "cpu:3")
    assert tm.tower_strategy(devices="cpu:2").num_replicas_in_sync == 3
    assert tm.tower_strategy(3).num_replicas_in_sync == 3


@pytest.mark.parametrize(
    ("towers", "devices", "says"),
    [
        pytest.param(
            4, "cpu:2", "devices gives 2 devices, but the program has 4 towers", id="too few"
        ),
        pytest.param(2, "gpu:0,1,2", "devices gives 3 devices", id="too many"),
        pytest.param(1, ["CPU:0", "CPU:1"], "devices gives 2 devices", id="a list"),
        pytest.param(0, None, "needs at least one tower", id="none"),
        pytest.param(2, "gpu:0,9", "names GPU 9", id="a GPU that is not here"),
        pytest.param(None, "cpus", "'cpus' is not understood; expected cpu:N", id="no such spec"),
        pytest.param(None, "cpu:0", "is not understood", id="zero CPUs"),
    ],
)
def test_devices_that_do_not_fit(towers: Any, devices: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tm.tower_strategy(towers, devices)


def test_the_environments_wrong_count_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_VARIABLE, "cpu:4")
    with pytest.raises(
        ValueError, match="TOWERMIGRATE_DEVICES gives 4 devices, but the program has 2"
    ):
        tm.tower_strategy(2)


def test_more_devices_than_a_started_tensorflow_has() -> None:
    tf.constant(1.0) + 1.0
    with pytest.raises(
        RuntimeError, match="8 logical CPUs are needed, but TensorFlow has already started"
    ):
        tm.tower_strategy(8)


def test_tower_index(two_towers: Any) -> None:
    assert two_towers.run(tm.tower_index).values == (0, 1)
    with two_towers.scope(), pytest.raises(RuntimeError, match="outside of a tower"):
        tm.tower_index()


def in_a_new_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_keras_3_in_use_is_refused() -> None:
    result = in_a_new_process(
        "import os; os.environ.pop('TF_USE_LEGACY_KERAS', None)\n"
        "import tensorflow as tf; tf.keras.layers; import towermigrate.helpers"
    )
    assert "RuntimeError: Keras 3 is already loaded" in result.stderr


def test_importing_after_tensorflow_is_in_time() -> None:
    result = in_a_new_process(
        "import tensorflow as tf\n"
        "import towermigrate.helpers as tm\n"
        "assert tm.tower_strategy(3).num_replicas_in_sync == 3\n"
        "print(tf.compat.v1.layers.dense.__module__)\n"
        "import tf_keras.legacy_tf_layers.base as moved, tf_keras.src.legacy_tf_layers.base as "
        "there\n"
        "assert moved is there"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("tf_keras.")
