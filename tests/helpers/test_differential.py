"""Drawn programs of hand-written steps: each trains as one device does on the whole batch, or says what to write."""

from __future__ import annotations

import collections

import pytest
import tensorflow as tf

pytest.importorskip("keras")

from tests.helpers.differential.compare import Outcome, outcome
from tests.helpers.differential.program import INPUTS, MISTAKES, OPTIMIZERS, SHARES, drawn

_ALL = 2000
_EACH = 100


def _wrong(made: Outcome) -> bool:
    """A program without a mistake must not be refused either."""
    return made.kind in ("wrong", "crash") or (made.kind == "refused" and not made.mistake)


def test_a_sample() -> None:
    made = [outcome(seed) for seed in range(5000, 5040)]
    assert not [each for each in made if _wrong(each)]
    assert {"equal", "refused"} <= {each.kind for each in made}


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, _ALL, _EACH))
def test_all(first: int) -> None:
    made = [outcome(seed) for seed in range(first, first + _EACH)]
    tf.keras.backend.clear_session()
    assert not [each for each in made if _wrong(each)]


def test_the_draw_reaches_all() -> None:
    programs = [drawn(seed) for seed in range(_ALL)]
    for name, values in (
        ("optimizer", OPTIMIZERS),
        ("mistake", ("", *MISTAKES)),
        ("loss", (*SHARES, "own mean")),
        ("input", INPUTS),
        ("mode", ("eager", "function", "xla")),
        ("towers", (1, 2, 4)),
        ("path", ("tower_gradients", "average", "sum of shares", "accumulator")),
    ):
        found = collections.Counter(getattr(each, name) for each in programs)
        assert set(found) == set(values)
        assert min(found.values()) >= 10, found
    sizes = [[len(part) for part in step.ids] for each in programs for step in each.batches[0]]
    assert sum(min(each) == 0 for each in sizes) > 50
    assert sum(max(each) != min(each) for each in sizes) > 200
