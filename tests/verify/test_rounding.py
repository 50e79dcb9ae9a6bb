"""Decisions that rounding makes are excused as far as the original itself moves; faults are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.verify.test_compare import STAGES, arrays, recording
from towermigrate.verify import VerifyOptions
from towermigrate.verify.compare import compare
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.rounding import jumps, may_be_rounding
from towermigrate.verify.run import _Verification
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.tree import original_and_rewritten


@pytest.fixture
def original(tmp_path: Path) -> Trace:
    return recording(tmp_path / "original", [arrays(), arrays()])


@pytest.fixture
def allowed(tmp_path: Path, original: Trace) -> dict[str, float]:
    """One decision flips in the second step of the original when its weights move."""
    jumped = arrays(**{"gradient/0/a/w": [0.501, -0.25]})
    moved = recording(tmp_path / "moved", [arrays(), jumped])
    found = jumps(original, moved, STAGES, 1e-5, adds_up=False)
    assert found == {"gradient/0/a/w": pytest.approx(0.002, rel=1e-3)}
    return found


def test_a_jump_at_another_step_is_excused(
    tmp_path: Path, original: Trace, allowed: dict[str, float]
) -> None:
    flipped = arrays(**{"gradient/0/a/w": [0.5, -0.249]})
    actual = recording(tmp_path / "actual", [flipped, arrays()])
    plain = compare(original, actual, STAGES, 1e-5, lockstep=True)
    assert may_be_rounding(plain, adds_up=False)

    result = compare(original, actual, STAGES, 1e-5, lockstep=True, rounding=allowed)

    assert result.differences == []
    assert list(result.excused) == ["gradient/0/a/w"]
    assert result.max_error <= 1e-5


@pytest.mark.parametrize(
    ("key", "value", "asked"),
    [
        pytest.param("gradient/0/a/w", [1.0, -0.5], False, id="no division by two towers"),
        pytest.param("gradient/0/a/w", [0.505, -0.25], True, id="much more than the jump"),
        pytest.param("gradient/0/b", [1.001e-4], True, id="a gradient that does not jump"),
        pytest.param("gradient/0/b", None, False, id="a gradient that is missing"),
    ],
)
def test_a_fault_is_not_excused(
    tmp_path: Path,
    original: Trace,
    allowed: dict[str, float],
    key: str,
    value: list[float] | None,
    asked: bool,
) -> None:
    actual = recording(tmp_path / "actual", [arrays(**{key: value}), arrays()])
    result = compare(original, actual, STAGES, 1e-8, lockstep=True, rounding=allowed)

    assert [difference.key for difference in result.differences] == [key]
    assert may_be_rounding(result, adds_up=False) is asked


@pytest.mark.full
@pytest.mark.parametrize("adds_up", [False, True])
def test_moved_weights_carry_into_gradients_but_are_no_change_themselves(
    tree: Path, tmp_path: Path, adds_up: bool
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    options = VerifyOptions(tree, steps=3, tolerance=1e-4)
    verification = _Verification(options, scratch)
    spec = parse_devices("cpu:2")
    recorded = verification.programs.record(*original_and_rewritten(tree), spec)
    stages = tuple(stage.name for stage in recorded.program.stages)

    found = verification._jumps(recorded, spec, stages, adds_up=adds_up)

    gradients = [error for key, error in found.items() if key.startswith("gradient/")]
    assert gradients and 1e-4 < max(gradients) < 1e-1
    # A weight moves by 1e-4 of its size before each run; that must not pass for what the run did to it.
    first = recorded.first
    weights = {k for k, described in first.variables().items() if described["trainable"]}
    moved = read_trace(next(scratch.glob("original-2-moved*")) / "trace")
    before, after = first.initial(), moved.arrays(moved.runs[0])
    for key in weights:
        change = first.arrays(first.runs[0])["state/" + key] - before[key]
        own = after["state/" + key] - before[key]
        size = np.abs(before[key]).max()
        assert np.abs(own - change).max() <= 0.2 * max(np.abs(change).max(), 1e-5 * size)
