"""How many batches are taken from each input: a batch more or less shows in no number, as rows are replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.draws_compare import draws_differences, draws_not_compared

Counts = dict[str, list[int]]


def _meta(counts: Counts) -> dict[str, Any]:
    """What a probe counts, by run, of sources that come as they are first drawn from."""
    length = max(map(len, counts.values()), default=0)
    return {
        "draws_of": {
            str(run): {name: made[run] for name, made in counts.items() if made[run]}
            for run in range(length)
        }
    }


def _judged(
    folder: Path, theirs: Counts, ours: Counts, again: Counts | None = None, **meta: Any
) -> tuple[list[str], list[str]]:
    runs = {f"run_{run:05d}": {"loss/0/0": 0.0} for run in range(3)}
    sides = (theirs, theirs if again is None else again, ours)
    traces = [
        trace(folder / str(number), runs, **_meta(counts), **meta)
        for number, counts in enumerate(sides)
    ]
    both = recorded(traces[0], traces[1])
    found = draws_differences(both, traces[2])
    return (
        [f"{each.name} at {each.step}: {each.expected}, not {each.actual}" for each in found],
        draws_not_compared(both, traces[2]),
    )


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([1, 3, 4], None),
        ([1, 2, 3], "input batches at 1: 2 batches taken for it, not 1 batches taken for it"),
        ([2, 4, 6], "input batches at 0: 1 batches taken for it, not 2 batches taken for it"),
    ],
)
def test_one_iterator(ours: list[int], said: str | None, tmp_path: Path) -> None:
    found, left = _judged(tmp_path, {"queue": [1, 3, 4]}, {"iterator 0": ours})
    assert (found, left) == ([said] if said else [], [])


def test_several_iterators_each_by_its_own(tmp_path: Path) -> None:
    theirs = {"images": [1, 2, 3], "noise": [2, 4, 6]}
    same = {"iterator 0": [2, 4, 6], "iterator 1": [1, 2, 3]}
    assert _judged(tmp_path / "a", theirs, same) == ([], [])
    other = {"iterator 0": [2, 4, 6], "iterator 1": [2, 4, 6]}
    (found,), left = _judged(tmp_path / "b", theirs, other)
    assert found == ("input batches at 0: 1, 1, 1 batches for the runs in turn, not none taken so")
    assert not left
    later = {"images": [1, 2, 3], "noise": [0, 1, 2]}
    assert _judged(tmp_path / "c", later, {"a": [1, 2, 3], "b": [0, 1, 2]}) == ([], [])
    assert len(_judged(tmp_path / "d", later, {"a": [1, 2, 3], "b": [1, 2, 3]})[0]) == 1


def test_queues_that_one_iterator_draws_from_together(tmp_path: Path) -> None:
    theirs = {"images": [1, 2, 3], "labels": [1, 2, 3], "random operations": [1, 2, 3]}
    assert _judged(tmp_path, theirs, {"iterator 0": [1, 2, 3]}) == ([], [])


def test_what_is_random_by_itself_need_not_be_an_iterator(tmp_path: Path) -> None:
    theirs = {"random operations": [1, 2, 3]}
    assert _judged(tmp_path / "a", theirs, {}) == ([], [])
    assert _judged(tmp_path / "b", theirs, {"iterator 0": [1, 2, 3]}) == ([], [])
    assert len(_judged(tmp_path / "c", theirs, {"iterator 0": [2, 4, 6]})[0]) == 1


def test_session_style_has_one_name_for_each(tmp_path: Path) -> None:
    theirs = {"QueueDequeueV2.0": [1, 2, 3], "QueueDequeueV2.1": [2, 4, 6]}
    assert _judged(tmp_path / "a", theirs, theirs, style="session") == ([], [])
    other = {"QueueDequeueV2.0": [1, 2, 3], "QueueDequeueV2.1": [2, 5, 7]}
    (found,), _ = _judged(tmp_path / "b", theirs, other, style="session")
    assert found == (
        "input batches of QueueDequeueV2.1 at 1: 2 batches taken for it, not 3 batches taken for it"
    )


def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    queue, iterator = {"queue": [1, 2, 3]}, {"iterator 0": [2, 4, 6]}
    for number, (theirs, ours, again, meta) in enumerate(
        (
            (queue, {}, None, {}),
            (queue, iterator, {"queue": [1, 2, 4]}, {}),
            (queue, iterator, None, {"draws_unknown": True}),
        )
    ):
        found, (left,) = _judged(tmp_path / str(number), theirs, ours, again, **meta)
        assert not found and left.startswith("number of batches taken: ")
