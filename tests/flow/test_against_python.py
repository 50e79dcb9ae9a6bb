"""Random programs are run by Python and by the interpreter: nothing that Python shows may be ruled out."""

from __future__ import annotations

import pytest

from tests.flow.probing import known, wrong
from tests.flow.programs import program


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nothing_that_python_shows_is_ruled_out(first: int) -> None:
    found = {seed: wrong(program(seed)) for seed in range(first, first + 50)}
    assert {seed: what[:2] for seed, what in found.items() if what} == {}


@pytest.mark.full
@pytest.mark.parametrize("first", range(10_000, 30_000, 1000))
def test_nothing_of_many_programs_is_ruled_out(first: int) -> None:
    found = {seed: wrong(program(seed)) for seed in range(first, first + 1000)}
    assert {seed: what[:2] for seed, what in found.items() if what} == {}


def test_much_is_known() -> None:
    """An interpreter that claims nothing is never wrong: a third of what is shown must be known whole."""
    counts = [known(program(seed)) for seed in range(100)]
    assert sum(whole for whole, _ in counts) > sum(shown for _, shown in counts) / 3
