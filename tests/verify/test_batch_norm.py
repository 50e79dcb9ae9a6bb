"""Batch norm's moving averages on all kinds of devices, and checkpoints that hold a slot of roundings alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tf1_env
from tests.differential import test_kept_updates as kept_updates
from tests.differential.loop_programs import Change, program
from tests.differential.test_fed_training import APPLY, FED, FUSED, HOLDER, LAYER, LOOKED, OUT
from tests.differential.test_updates_of_all_towers import (
    FUNCTION,
    IN_FUNCTION,
    NORM,
    OF_SLIM,
    READ,
    SLIM,
    WAIT,
)
from towermigrate.verify import VerifyOptions, run_verify

# A bias stands before the layer: its gradient, and so its slot in the checkpoint, is of roundings alone.
LAST = (NORM, (APPLY, READ.replace("UPDATE_OPS", "UPDATE_OPS, scope") + WAIT + APPLY))
WHETHER = (HOLDER, LAYER, FED, (APPLY, LAST[1][1]), LOOKED)
# The updates of all towers, which the original makes in no order.
WAITED = (APPLY, READ + WAIT + APPLY)
GROUPED = (
    APPLY,
    READ + APPLY.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, *updates)\n",
)
FOUR = (("range(2)", "range(4)"), ("batch(4)", "batch(8)"))
OF_ALL = {
    "of all towers": (NORM, WAITED),
    "in a group": (NORM, GROUPED),
    "fused": ((OUT, FUSED.replace("training=training", "training=True")), WAITED),
    "fed": (HOLDER, LAYER, FED, WAITED, LOOKED),
    "slim's": (SLIM, OF_SLIM, WAITED),
    "in a function": (IN_FUNCTION, FUNCTION, WAITED),
    "waited for by the gradients": (NORM, kept_updates.WAITED),
    "of each tower": (NORM, kept_updates.BEGUN, kept_updates.EACH, kept_updates.WAIT),
    "fetched": (NORM, (APPLY, READ + APPLY), kept_updates.FETCHED),
}


def _is_equal(tree: Path, changes: tuple[Change, ...], devices: str, tf1: str | None) -> None:
    for name, text in program(*changes).items():
        (tree / name).write_text(text)
    report = run_verify(VerifyOptions(tree, devices=(devices,), steps=4, tf1_python=tf1))
    assert report.equal and not report.not_compared, report.to_json()


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:2", "workers:2", "xla:2"])
@pytest.mark.parametrize(
    "changes", [pytest.param(LAST, id="the last tower's"), pytest.param(WHETHER, id="fed")]
)
def test_moving_averages_are_those_of_the_original(
    tmp_path: Path, changes: tuple[Change, ...], devices: str
) -> None:
    _is_equal(tmp_path, changes, devices, None)


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:2", "cpu:4", "workers:2", "xla:2"])
@pytest.mark.parametrize("name", OF_ALL)
def test_updates_of_all_towers_are_put_in_the_order_of_the_rewrite(
    tmp_path: Path, name: str, devices: str
) -> None:
    _is_equal(tmp_path, OF_ALL[name] + (FOUR if devices == "cpu:4" else ()), devices, None)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(OF_ALL.keys() - {"slim's"}))
def test_they_are_in_the_original_of_tensorflow_1_too(tmp_path: Path, name: str) -> None:
    _is_equal(tmp_path, OF_ALL[name], "cpu:2", tf1_env.required_python())
