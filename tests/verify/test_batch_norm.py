"""Batch norm's moving averages on all kinds of devices, and checkpoints that hold a slot of roundings alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.test_fed_training import APPLY, FED, HOLDER, LAYER, LOOKED
from tests.differential.test_updates_of_all_towers import NORM, READ, WAIT
from towermigrate.verify import VerifyOptions, run_verify

# A bias stands before the layer: its gradient, and so its slot in the checkpoint, is of roundings alone.
LAST = (NORM, (APPLY, READ.replace("UPDATE_OPS", "UPDATE_OPS, scope") + WAIT + APPLY))
WHETHER = (HOLDER, LAYER, FED, (APPLY, LAST[1][1]), LOOKED)


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:2", "workers:2", "xla:2"])
@pytest.mark.parametrize(
    "changes", [pytest.param(LAST, id="the last tower's"), pytest.param(WHETHER, id="fed")]
)
def test_moving_averages_are_those_of_the_original(
    tmp_path: Path, changes: tuple[Change, ...], devices: str
) -> None:
    for name, text in program(*changes).items():
        (tmp_path / name).write_text(text)
    report = run_verify(VerifyOptions(tmp_path, devices=(devices,), steps=4))
    assert report.equal and not report.not_compared, report.to_json()
