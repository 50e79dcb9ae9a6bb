"""Which devices a program gets, and what it is told when they do not fit."""

import subprocess
import sys
from typing import Any

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers import strategy as strategy_module
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
        pytest.param(2, ["GPU:0", "/gpu:9"], "names GPU 9", id="a listed GPU that is not here"),
        pytest.param(2, ["CPU:0", "/cpu:0"], "names CPU 0 more than once", id="one device twice"),
        pytest.param(None, [], "no device is named", id="an empty list"),
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
        RuntimeError, match="9 logical CPUs are needed, but TensorFlow has already started with 8"
    ):
        tm.tower_strategy(9)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param(["CPU:2", "CPU:0"], ["CPU:2", "CPU:0"], id="in the order given"),
        pytest.param(("/cpu:1", "/device:CPU:3"), ["CPU:1", "CPU:3"], id="as TF1 wrote them"),
    ],
)
def test_a_list_of_devices(devices: Any, expected: Any) -> None:
    strategy = tm.tower_strategy(2, devices)
    found = [tf.DeviceSpec.from_string(one) for one in strategy.extended.worker_devices]
    assert [f"{one.device_type}:{one.device_index}" for one in found] == expected
    sums = strategy.run(
        lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0))
    )
    assert [part.numpy() for part in sums.values] == [2.0, 2.0]


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_module, "_said", set())


no_gpu = pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="a GPU is here, and would be taken"
)
with_gpu = pytest.mark.skipif(
    not tf.config.list_physical_devices("GPU"), reason="needs a GPU, and none is here"
)


@no_gpu
@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        pytest.param(
            [(4, None), (4, None)],
            ["towermigrate: no GPU is here: 4 towers on 4 virtual CPUs"],
            id="towers that found no GPU, said once",
        ),
        pytest.param([(1, None)], [], id="one tower on the CPU is not virtual"),
        pytest.param([(4, "cpu:4")], [], id="virtual CPUs that were asked for"),
    ],
)
def test_what_is_said_of_virtual_devices(
    calls: Any, lines: Any, nothing_said: None, caplog: pytest.LogCaptureFixture
) -> None:
    for num_towers, devices in calls:
        tm.tower_strategy(num_towers, devices)
    assert [one.getMessage() for one in caplog.records if one.name == "towermigrate"] == lines


@no_gpu
def test_the_line_shows_without_logging_set_up() -> None:
    result = in_a_new_process("import towermigrate.helpers as tm; tm.tower_strategy(2)")
    assert result.stderr.count("2 towers on 2 virtual CPUs") == 1


@no_gpu
def test_a_gpu_that_is_asked_for_must_be_here() -> None:
    with pytest.raises(ValueError, match="devices='gpu:4': no GPU is here"):
        tm.tower_strategy(4, "gpu:4")


@with_gpu
@pytest.mark.parametrize("devices", ["None", "'gpu:%d' % towers"])
def test_more_towers_than_gpus_split_the_first_one(devices: str) -> None:
    result = in_a_new_process(
        "import tensorflow as tf, towermigrate.helpers as tm\n"
        "towers = len(tf.config.list_physical_devices('GPU')) + 2\n"
        f"strategy = tm.tower_strategy(towers, {devices})\n"
        "total = strategy.run(\n"
        "    lambda: tf.distribute.get_replica_context().all_reduce('SUM', tf.constant(1.0)))\n"
        "assert [float(one) for one in total.values] == [towers] * towers\n"
        "assert len(tf.config.list_logical_devices('GPU')) == towers\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("the first one is split into 3 virtual ones of 2048 MB") == 1


@pytest.mark.parametrize("devices", ["tpu:local", pytest.param("tpu", marks=pytest.mark.full)])
def test_a_tpu_or_an_error_that_says_which_one_is_missing(devices: str) -> None:
    """In a process of its own: what connects to a TPU starts TensorFlow."""
    result = in_a_new_process(
        "import tensorflow as tf, towermigrate.helpers as tm\n"
        f"strategy = tm.tower_strategy(devices={devices!r})\n"
        "total = strategy.run(\n"
        "    lambda: tf.distribute.get_replica_context().all_reduce('SUM', tf.constant(1.0)))\n"
        "assert tm.first_tower(total).numpy() == strategy.num_replicas_in_sync\n"
    )
    if result.returncode:
        missing = "a TPU" if devices == "tpu" else "the TPU 'local'"
        assert f"ValueError: devices asks for {missing}, but it was not found" in result.stderr
        pytest.skip("needs a TPU, and none is here; the error that says so was checked")


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
