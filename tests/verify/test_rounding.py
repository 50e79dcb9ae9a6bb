"""Trials move the original's weights, in pairs of opposite ways; whole programs that round otherwise are equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from towermigrate.verify import VerifyOptions
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.probe.variables import move_values
from towermigrate.verify.rounding import Trial, trials
from towermigrate.verify.run import _Verification
from towermigrate.verify.tree import original_and_rewritten


def test_trials_come_in_pairs_that_move_every_weight_both_ways() -> None:
    weights = np.random.RandomState(1).randn(50).astype(np.float32)
    moves = []
    for pair in trials(1e-6, adds_up=False):
        for trial in pair:
            assert abs(trial.size) == 1e-6
            values = {"w": weights.copy()}
            moves.append(move_values(values, ["w"], trial.size, 3 + trial.seed)["w"])
        up, down = moves[-2:]
        assert np.all(up * down <= 0) and np.abs(up).max() > 0
        assert np.allclose(up, -down, atol=1e-7 * np.abs(weights).max())
    assert len({tuple(move) for move in moves}) == 6  # no pair is another again


def test_the_weights_move_no_more_than_roundings_do() -> None:
    assert {t.size for pair in trials(1e-2, adds_up=False) for t in pair} == {1e-5, -1e-5}
    assert [pair[0].size for pair in trials(1e-6, adds_up=True)] == [1e-6, 1e-6, 1e-5]


@pytest.mark.full
@pytest.mark.parametrize("adds_up", [False, True])
def test_moved_weights_carry_into_gradients_but_are_no_change_themselves(
    tree: Path, tmp_path: Path, adds_up: bool
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    verification = _Verification(VerifyOptions(tree, steps=3), scratch)
    spec = parse_devices("cpu:2")
    recorded = verification.programs.record(*original_and_rewritten(tree), spec)

    moved = verification.programs.run_moved(recorded, spec, Trial(0, 1e-4, 0, adds_up))

    assert moved is not None
    first = recorded.first
    run, other = first.runs[0], moved.runs[0]
    off = [
        np.abs(moved.arrays(other)[key] - value).max() / np.abs(value).max()
        for key, value in first.arrays(run).items()
        if key.startswith("gradient/") and np.any(value)
    ]
    assert 1e-6 < max(off) < 1e-1
    # A weight moves by 1e-4 of its size before each run; that must not pass for what the run did to it.
    weights = {k for k, described in first.variables().items() if described["trainable"]}
    before, after = first.initial(), moved.arrays(other)
    for key in weights:
        change = first.arrays(run)["state/" + key] - before[key]
        own = after["state/" + key] - before[key]
        size = np.abs(before[key]).max()
        assert np.abs(own - change).max() <= 0.2 * max(np.abs(change).max(), 1e-5 * size)
