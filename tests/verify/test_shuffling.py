"""Inputs in an order of chance: whether the rewritten program mixes its rows as the original does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.shuffling import asks_for_another_run, inputs_by_chance, shuffling

RUNS, BATCH, TOWERS = 10, 8, 2
DRAWN = RUNS * BATCH * TOWERS
Order = Callable[[Any], Any]
QUEUE, NONE = [["queue", 100, False]], [["queue", 100, True]]


def _mixed_over(size: int, rows: int = 400) -> Order:
    """The order that a buffer gives."""

    def order(rng: Any) -> Any:
        waiting, following, drawn = list(range(size)), size, []
        while len(drawn) < DRAWN:
            drawn.append(waiting.pop(rng.randint(len(waiting))))
            waiting.append(following % rows)
            following += 1
        return np.array(drawn)

    return order


def _in_order(rng: Any) -> Any:
    del rng
    return np.arange(DRAWN)


def _files(count: int, in_turn: bool) -> Order:
    """Files in an order of chance, one after the other or a row of each in turn."""

    def order(rng: Any) -> Any:
        files = np.arange(DRAWN).reshape(count, -1)[rng.permutation(count)]
        return (files.T if in_turn else files).ravel()

    return order


def _races(rng: Any) -> Any:
    """Batches that two threads bring in one order or the other."""
    order = np.arange(DRAWN).reshape(-1, 2, BATCH)
    return np.concatenate([pair[rng.permutation(2)].ravel() for pair in order])


def _traces(folder: Path, name: str, order: Order, seeds: tuple[int, int], shuffles: Any) -> Any:
    data = np.random.RandomState(0).normal(size=(1000, 5)).astype(np.float32)
    found = []
    for number, seed in enumerate(seeds):
        rows = data[order(np.random.RandomState(seed))].reshape(RUNS, TOWERS, BATCH, 5)
        prefix = "" if name == "original" and number == 0 else "own/"
        arrays = {
            f"{'own' if name == 'original' and number else 'run'}_{run:05d}": {
                f"{prefix}input/{tower}/x": rows[run, tower] for tower in range(TOWERS)
            }
            for run in range(RUNS)
        }
        meta = {"inputs_agreed": {f"input/{t}/x": False for t in range(TOWERS)}}
        if name == "original" and number:
            arrays.update({f"run_{run:05d}": {} for run in range(RUNS)})
        found.append(trace(folder / f"{name}{number}", arrays, shuffles=shuffles, **meta))
    return found


def _judged(
    folder: Path,
    theirs: Order,
    ours: Order,
    their_shuffles: Any = QUEUE,
    our_shuffles: Any = NONE,
    seed: int = 0,
) -> tuple[bool, list[str], list[str]]:
    first, second = _traces(folder, "original", theirs, (4 * seed, 4 * seed + 1), their_shuffles)
    made, again = _traces(folder, "made", ours, (4 * seed + 2, 4 * seed + 3), our_shuffles)
    both = recorded(first, second)
    assert inputs_by_chance(both) == ["x"]
    found, left = shuffling(both, made, again)
    return (
        asks_for_another_run(both, made),
        [f"{each.expected} > {each.actual}" for each in found],
        left,
    )


def test_a_shuffle_that_was_taken_away(tmp_path: Path) -> None:
    asked, found, left = _judged(tmp_path, _mixed_over(100), _in_order)
    assert asked and not left
    assert found == [
        "another order in each run, the rows mixed one by one > the same order in each run"
    ]


def test_a_shuffle_of_rows_beside_which_the_files_are_still_shuffled(tmp_path: Path) -> None:
    files = ["rows", 4, False]
    theirs = [files, *QUEUE]
    _, found, left = _judged(tmp_path, _mixed_over(100), _files(4, False), theirs, [files])
    assert len(found) == 1 and not left


def test_a_shuffle_in_python(tmp_path: Path) -> None:
    asked, found, _ = _judged(tmp_path, _mixed_over(100), _in_order, [], [])
    assert asked and len(found) == 1


def test_a_shuffle_that_was_added_where_only_files_were(tmp_path: Path) -> None:
    files = ["rows", 4, False]
    theirs, ours = [files], [files, *QUEUE]
    _, found, _ = _judged(tmp_path, _files(4, False), _mixed_over(100), theirs, ours)
    assert found == [
        "the same order in each run > another order in each run, the rows mixed one by one"
    ]


@pytest.mark.parametrize("larger", [100, 120])
def test_a_far_smaller_buffer(larger: int, tmp_path: Path) -> None:
    ours = [["dataset", 3, False]]
    theirs = [["dataset", larger, False]]
    _, found, left = _judged(tmp_path, _mixed_over(larger), _mixed_over(3), theirs, ours)
    assert found == [f"rows mixed over {larger} of them > rows mixed over 3 of them"] and not left
    _, found, left = _judged(tmp_path / "b", _mixed_over(3), _mixed_over(larger), ours, theirs)
    assert found == [f"rows mixed over 3 of them > rows mixed over {larger} of them"] and not left


def test_rows_that_hardly_come_again_leave_it_open(tmp_path: Path) -> None:
    both = [["queue", 2000, False]], [["queue", 500, False]]
    _, found, left = _judged(tmp_path, _mixed_over(900, 1000), _mixed_over(500, 1000), *both)
    assert not found
    assert left == [
        "shuffling of the inputs: a queue shuffles over 2000 rows in the original, a queue shuffles over 500 rows in the "
        "rewritten program, and the rows that were drawn do not show whether they are mixed as much"
    ]


@pytest.mark.parametrize("shuffles", [QUEUE, []])
def test_what_shuffles_alike_is_alike(shuffles: Any, tmp_path: Path) -> None:
    for seed in range(5):
        asked, found, left = _judged(
            tmp_path / str(seed), _mixed_over(100), _mixed_over(100), shuffles, shuffles, seed
        )
        assert (asked, found, left) == (not shuffles, [], [])


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("ours", [[["dataset", 2, False]], [["dataset", 40, False]], []])
def test_files_that_come_in_the_same_order_twice_by_chance(
    ours: Any, count: int, in_turn: bool, tmp_path: Path
) -> None:
    order = _files(count, in_turn)
    theirs = [["rows", 40, False]] if ours else []
    first, second = _traces(tmp_path, "original", order, (1, 2), theirs)
    for number, seed in enumerate(range(3, 9)):
        made, again = _traces(tmp_path / str(number), "made", order, (seed, seed), ours)
        assert not shuffling(recorded(first, second), made, again)[0]


def test_races_are_no_shuffles(tmp_path: Path) -> None:
    for number, (theirs, ours) in enumerate(((_races, _in_order), (_in_order, _races))):
        asked, found, left = _judged(tmp_path / str(number), theirs, ours, [], [])
        assert (asked, found, left) == (False, [], [])


def test_a_shuffle_by_another_means_is_none_that_lacks(tmp_path: Path) -> None:
    for seed in range(5):
        _, found, left = _judged(
            tmp_path / str(seed), _mixed_over(100), _mixed_over(100), QUEUE, [], seed
        )
        assert not found and left[0].startswith("shuffling of the inputs: ")
