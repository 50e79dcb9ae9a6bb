"""A network of ReLUs and max-pooling, whole: equal when rewritten, and 2 % in a gradient is a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import tf1_env
from towermigrate.migrate import plan
from towermigrate.verify import VerifyOptions, run_verify

PROGRAM = Path(__file__).parent / "fixtures" / "before" / "pooled.py"
STYLES = ["loop", "session"]


def _trees(folder: Path, style: Any, by: str = "opt.apply_gradients(grads)") -> tuple[Path, Path]:
    """The original, and its rewritten form with another way to apply the gradients."""
    before, after = folder / "before", folder / "after"
    for tree in (before, after):
        tree.mkdir()
    (before / PROGRAM.name).write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    text = plan(before, style=style).report.texts[PROGRAM.name]
    assert text.count("opt.apply_gradients(grads)") == 1
    (after / PROGRAM.name).write_text(
        text.replace("opt.apply_gradients(grads)", by), encoding="utf-8"
    )
    return before, after


@pytest.mark.full
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", range(5))
def test_a_right_rewrite_is_equal_whatever_the_data(tmp_path: Path, style: Any, seed: int) -> None:
    before, after = _trees(tmp_path, style)
    devices = ("cpu:2", "cpu:4")
    report = run_verify(
        VerifyOptions(before, devices, rewritten=after, steps=8, arguments=(str(seed),))
    )
    assert report.exit_code == 0, report.to_json()
    assert report.nondeterministic == ()


FAULTS = {
    "2 % too much": "opt.apply_gradients([(g * 1.02, v) for g, v in grads])",
    "2 % too much of one variable": "opt.apply_gradients("
    "[(g * 1.02 if 'conv1_w' in v.name else g, v) for g, v in grads])",
    "0.01 % too little of one bias": "opt.apply_gradients("
    "[(g * 0.9999 if 'conv2_b' in v.name else g, v) for g, v in grads])",
}


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:2", "cpu:4"])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("by", FAULTS.values(), ids=FAULTS)
def test_a_gradient_that_is_a_little_off_is_found(
    tmp_path: Path, style: Any, by: str, devices: str
) -> None:
    before, after = _trees(tmp_path, style, by)
    report = run_verify(VerifyOptions(before, (devices,), rewritten=after, steps=5))

    assert report.exit_code == 1
    (run,) = report.to_json()["runs"]
    first = run["first_difference"]
    assert (first["step"], first["level"]) == (0, "gradient"), run
    assert report.to_json()["excuses"] == []
    assert any("most steps must be within" in why for why in run["not_excused"]), run


@pytest.mark.full
@pytest.mark.parametrize("style", STYLES)
def test_other_kernels_are_no_other_training(tmp_path: Path, style: Any) -> None:
    before, after = _trees(tmp_path, style)
    python = tf1_env.required_python()
    report = run_verify(VerifyOptions(before, rewritten=after, steps=8, tf1_python=python))
    assert report.exit_code == 0, report.to_json()
