"""The forms that `tests/benchmark/helper_step.py` times are the guide's in what they compute."""

from __future__ import annotations

from tests.benchmark import helper_step


def test_the_forms_take_the_same_step() -> None:
    ratios = helper_step.compare(2, rounds=1, steps=1)
    assert len(ratios) == 7
    assert all(ratio > 0 for ratio in ratios.values())
