"""Large arrays that a rewritten program has as they were recorded are not written again, and are read all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.benchmark.verify_cost import program
from towermigrate.cli import main
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.probe.recording import TraceWriter, read_arrays, relative
from towermigrate.verify.trace import Trace, read_trace

LARGE = np.linspace(-1, 1, 2**18, dtype=np.float32)


def _recording(folder: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    TraceWriter(str(folder)).arrays("run_00000", arrays)
    return read_arrays(str(folder), "run_00000")


def _replay(tmp_path: Path, made: dict[str, Any], recorded: dict[str, Any]) -> Trace:
    folder = tmp_path / "again" / "trace"
    arrays = _recording(tmp_path / "first" / "trace", recorded)
    writer = TraceWriter(str(folder))
    writer.meta["replays"] = relative(str(tmp_path / "first" / "trace"), str(folder))
    left = writer.replayed(0, made, arrays)
    writer.meta["runs"].append({"index": 0, "stages": [0], "as_recorded": left})
    writer.finish("program")
    return read_trace(folder)


def test_what_is_as_recorded_is_read_from_there(tmp_path: Path) -> None:
    made = {
        "state/variable/w": LARGE,
        "own/input/0/x": LARGE * 2,
        "gradient/0/w": LARGE + 1,
        "small": LARGE[:3],
    }
    recorded = {"state/variable/w": LARGE, "input/0/x": LARGE * 2, "gradient/0/w": LARGE}
    trace = _replay(tmp_path, made, recorded)

    assert trace.runs[0].as_recorded == ("own/input/0/x", "state/variable/w")
    assert set(read_arrays(str(trace.folder), "run_00000")) == {"gradient/0/w", "small"}
    found = trace.arrays(trace.runs[0])
    assert found.keys() == made.keys()
    for key, value in made.items():
        np.testing.assert_array_equal(found[key], value)


@pytest.mark.parametrize(
    ("made", "recorded"),
    [
        (LARGE * 0, -LARGE * 0),
        (LARGE.reshape(2, -1), LARGE),
        (LARGE.astype(np.float64), LARGE),
        (LARGE.view(np.int32), LARGE),
        (np.where(LARGE > 0.9999, np.float32(np.nan), LARGE), LARGE),
        (LARGE.reshape(512, 512).T, LARGE.reshape(512, 512)),
    ],
    ids=["signs of zeros", "shape", "precision", "type", "NaN", "order"],
)
def test_other_bits_are_written(made: Any, recorded: Any, tmp_path: Path) -> None:
    trace = _replay(tmp_path, {"state/variable/w": made}, {"state/variable/w": recorded})

    assert trace.runs[0].as_recorded == ()
    found = read_arrays(str(trace.folder), "run_00000")["state/variable/w"]
    np.testing.assert_array_equal(found, made)
    assert found.dtype == made.dtype


def test_nan_as_recorded_is_left_to_the_recording(tmp_path: Path) -> None:
    broken = np.where(LARGE > 0, np.float32(np.nan), LARGE)
    trace = _replay(tmp_path, {"state/variable/w": broken}, {"state/variable/w": broken})

    assert trace.runs[0].as_recorded == ("state/variable/w",)
    np.testing.assert_array_equal(trace.arrays(trace.runs[0])["state/variable/w"], broken)


def test_a_recording_that_is_gone_is_said(tmp_path: Path) -> None:
    trace = _replay(tmp_path, {"state/variable/w": LARGE}, {"state/variable/w": LARGE})
    (tmp_path / "first" / "trace" / "run_00000.npz").unlink()

    with pytest.raises(ChildFailed, match="The recording in again is damaged"):
        trace.arrays(trace.runs[0])


@pytest.mark.parametrize("style", ["loop", "session"])
def test_whole_programs_with_large_variables(style: str, tmp_path: Path) -> None:
    tree, rewritten, kept = tmp_path / "tree", tmp_path / "rewritten", tmp_path / "kept"
    tree.mkdir()
    text = program(width=600, layers=1, batch=2, steps=3)
    (tree / "train.py").write_text(text, encoding="utf-8")
    command = ["rewrite", str(tree), "--out", str(rewritten), "--style", style]
    assert CliRunner().invoke(main, command).exit_code == 0
    options = VerifyOptions(tree, rewritten=rewritten, devices=("cpu:2",), steps=3)
    report = run_verify(replace(options, keep=kept))

    assert report.exit_code == 0, report.to_json()
    assert set(report.runs[0].max_abs.values()) <= {0, None}
    made = read_trace(kept / "rewritten-cpu:2" / "trace")
    variable = "state/variable/dense_0/kernel"
    assert all(variable in run.as_recorded for run in made.runs)
    assert all(made.arrays(run)[variable].shape == (600, 600) for run in made.runs)

    script = rewritten / "train.py"
    right = script.read_text(encoding="utf-8")
    wrong = right.replace("Optimizer(0.01)", "Optimizer(0.0101)")
    assert wrong != right
    script.write_text(wrong, encoding="utf-8")
    report = run_verify(options)
    assert report.exit_code == 1, report.to_json()
    found = report.runs[0].first_difference
    assert found is not None
    assert (found.step, found.level) == (0, "update")
