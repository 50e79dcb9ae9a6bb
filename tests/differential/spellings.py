"""What is asked of lists of spellings: those that loop style takes, and their neighbours that it must not."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.differential import running, trying
from tests.differential.loop_programs import Change, program
from towermigrate.rewrite import rewrite_tree

Program = Callable[..., Mapping[str, str]]


def taken(name: str, *changes: Change) -> object:
    """A row of what loop style takes."""
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    """A neighbour of such a row, and a rule by which loop style leaves it."""
    return pytest.param(changes, rule, id=name)


def takes(changes: tuple[Change, ...], of: Program = program) -> None:
    (result,) = rewrite_tree(of(*changes)).programs
    assert [f"{one.rule} {one.message}" for one in result.not_loop] == []
    assert result.style == "loop"


def leaves(changes: tuple[Change, ...], rule: str, of: Program = program) -> None:
    (result,) = rewrite_tree(of(*changes)).programs
    assert result.style != "loop"
    assert rule in [one.rule for one in result.not_loop]


def all_do_the_same(
    taken: Sequence[Any], of: Program = program, style: trying.Style = "loop", towers: int = 2
) -> None:
    """Every program of pytest's parameters, and its rewritten form, run in a process of their own.

    `of` makes the files of a program of what `pytest.param` was given first. `style` is that of all, `towers` how many
    each has.
    """
    pytest.importorskip("tensorflow")
    wish = trying.Wish(style)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=running.prepare) as pool:
        jobs = {
            str(one.id): pool.submit(trying.try_program, of(*one.values[0]), towers, wish)
            for one in taken
        }
        found = {name: (job.result().outcome, job.result().cause) for name, job in jobs.items()}
    good = (trying.LOOP, trying.SESSION) if style == "auto" else (trying.LOOP,)
    assert {name: one for name, one in found.items() if one[0] not in good or one[1]} == {}


def none_does_anything_else(asked: Sequence[Any], of: Program = program) -> None:
    """Every program of pytest's parameters is run beside what becomes of it, in whichever style that is."""
    pytest.importorskip("tensorflow")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=running.prepare) as pool:
        jobs = {
            str(one.id): pool.submit(trying.try_program, of(*one.values[0]), 2, trying.Wish())
            for one in asked
        }
        found = {name: (job.result().outcome, job.result().cause) for name, job in jobs.items()}
    bad = (trying.WRONG, trying.CRASH, trying.TOOL)
    assert {name: one for name, one in found.items() if one[0] in bad} == {}


def asked_of(
    taken: Sequence[Any], left: Sequence[Any], of: Program = program
) -> tuple[Callable[..., None], Callable[..., None], Callable[[], None]]:
    """The three tests of a table: that loop style takes some, that it leaves others, and that what it takes does the same."""

    @pytest.mark.parametrize("changes", taken)
    def test_it_is_in_loop_style(changes: tuple[Change, ...]) -> None:
        takes(changes, of)

    @pytest.mark.parametrize(("changes", "rule"), left)
    def test_its_neighbour_is_not(changes: tuple[Change, ...], rule: str) -> None:
        leaves(changes, rule, of)

    @pytest.mark.full
    def test_all_of_them_do_the_same_rewritten() -> None:
        all_do_the_same(taken, of)

    return (
        test_it_is_in_loop_style,
        test_its_neighbour_is_not,
        test_all_of_them_do_the_same_rewritten,
    )


def asked_of_all(
    rows: Sequence[Any], neighbours: Sequence[Any], of: Program = program
) -> tuple[Callable[..., None], Callable[..., None], Callable[[], None], Callable[[], None]]:
    """`asked_of`, and that no neighbour does anything else, in whichever style it is."""

    @pytest.mark.full
    def test_no_neighbour_does_anything_else() -> None:
        none_does_anything_else(neighbours, of)

    return (*asked_of(rows, neighbours, of), test_no_neighbour_does_anything_else)
