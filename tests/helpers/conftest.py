"""Eight virtual CPUs for every helper test; a process can only choose that once."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TOWERMIGRATE_CHECKS", "1")

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers import strategy as strategy_module

CPUS = 8


@pytest.fixture(scope="session", autouse=True)
def eight_cpus() -> None:
    """Split the CPU before anything runs."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or []) >= CPUS:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS
        )
    except RuntimeError:
        pytest.skip("another test has started TensorFlow in this process with one CPU")


@pytest.fixture(autouse=True)
def no_devices_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(strategy_module.DEVICES_VARIABLE, raising=False)
    monkeypatch.delenv("TF_CONFIG", raising=False)


@pytest.fixture
def without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions as programs have them, and elements dropped in silence: what `TOWERMIGRATE_CHECKS` adds to or refuses."""
    monkeypatch.setenv("TOWERMIGRATE_CHECKS", "0")


@pytest.fixture
def two_towers() -> object:
    """A strategy of two towers."""
    return tm.tower_strategy(2)
