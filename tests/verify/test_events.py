"""verify compares event files by tag, step and value; two runs of the original tell what is open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from towermigrate.verify.causes.runs import of_shown
from towermigrate.verify.comparison import Difference
from towermigrate.verify.doings_compare import doing_differences
from towermigrate.verify.events_compare import event_differences, summaries_excused
from towermigrate.verify.probe.events import read_events
from towermigrate.verify.trace import Trace, read_trace

SCALAR = {"log|loss|4": 0.5, "log|loss|8": 0.25}
HISTOGRAM = np.array([10.0, -1.0, 2.0, 5.0, 9.0])


def _trace(folder: Path, events: dict[str, Any], files: list[str] | None = None) -> Trace:
    folder.mkdir()
    meta = {"runs": [], "variables": {}, "printed": [], "files": files or []}
    (folder / "meta.json").write_text(json.dumps(meta))
    np.savez(folder / "events.npz", **{key: np.asarray(value) for key, value in events.items()})
    return read_trace(folder)


def _compared(
    folder: Path, *events: dict[str, Any], within: float | None = 1e-3
) -> tuple[list[Difference], list[str]]:
    folder.mkdir(exist_ok=True)
    traces = [_trace(folder / str(number), each) for number, each in enumerate(events)]
    return doing_differences(*traces, within=within)


@pytest.mark.parametrize(
    ("made", "name", "actual"),
    [
        ({**SCALAR, "log|loss|8": 0.26}, "loss of step 8 in the event file of log", "[0.26]"),
        ({"log|loss|4": 0.5}, "loss of step 8", "the steps 4"),
        ({"log|loss|5": 0.5, "log|loss|8": 0.25}, "loss of step 4", "the steps 5, 8"),
        ({"log|cost|4": 0.5, "log|loss|8": 0.25}, "loss of step 4", "the steps 8"),
        ({"log|cost|4": 0.5, "log|cost|8": 0.25}, "loss of step 4", "the tags cost"),
        ({**SCALAR, "log|more|4": 1.0}, "more of step 4", "[1.0]"),
        ({**SCALAR, "log|loss|8": np.nan}, "loss of step 8", "[nan]"),
    ],
)
def test_what_is_written_otherwise_is_found(
    made: dict[str, Any], name: str, actual: str, tmp_path: Path
) -> None:
    found, loose = _compared(tmp_path, SCALAR, SCALAR, made)
    assert not loose
    assert name in found[0].name and found[0].actual == actual
    assert found[0].level == "output"
    trace = _trace(tmp_path / "trace", made)
    assert "summary" in of_shown(found[0], trace).cause


@pytest.mark.parametrize(
    "made",
    [SCALAR, {**SCALAR, "log|loss|8": 0.25 * (1 + 5e-4)}, {}],
    ids=["the same", "within what roundings make", "no event file was read"],
)
def test_what_is_alike_is_not(made: dict[str, Any], tmp_path: Path) -> None:
    assert _compared(tmp_path, SCALAR, SCALAR, made) == ([], [])


def test_what_the_original_writes_otherwise_each_time_is_said(tmp_path: Path) -> None:
    again = {**SCALAR, "log|loss|8": 0.9}
    made = {**SCALAR, "log|loss|4": 0.7}
    found, loose = _compared(tmp_path, SCALAR, again, made)
    assert not found
    assert loose == ["the summary loss: two runs of the original write other values"]


def test_other_tags_each_time_are_said(tmp_path: Path) -> None:
    found, loose = _compared(tmp_path, SCALAR, {"log|x|1": 1.0}, SCALAR)
    assert not found
    assert "other tags or steps" in loose[0]


def test_excused_roundings_leave_tags_and_steps_to_compare(tmp_path: Path) -> None:
    made = {"log|loss|4": 0.9, "log|loss|9": 0.25}
    found, _ = _compared(tmp_path, SCALAR, SCALAR, made, within=None)
    assert [each.name.partition(" in")[0] for each in found] == [
        "loss of step 8",
        "loss of step 9",
    ]


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ([0, 0, 0, 0, 0], True),
        ([0, 1e-4, 0, 1e-3, 1e-3], True),
        ([1, 0, 0, 0, 0], False),
        ([0, 0, 0.1, 0, 0], False),
        ([0, 0, 0, 1.0, 0], False),
        ([0, 0, 0, 0, 1.0], False),
    ],
)
def test_histograms(change: list[float], alike: bool, tmp_path: Path) -> None:
    wanted = {"log|w|0": HISTOGRAM}
    found, _ = _compared(tmp_path, wanted, wanted, {"log|w|0": HISTOGRAM + change})
    assert (not found) == alike


@pytest.mark.parametrize(
    ("files", "again", "made", "name"),
    [
        (["a", "b"], ["a", "c"], ["a", "d"], "file d"),
        (["a", "b"], ["a", "c"], ["b"], "file a"),
        (["a", "b"], ["a", "c"], ["a", "c"], None),
    ],
)
def test_files_that_both_originals_write_are_compared(
    files: list[str], again: list[str], made: list[str], name: str | None, tmp_path: Path
) -> None:
    lists = enumerate((files, again, made))
    found, loose = doing_differences(
        *(_trace(tmp_path / str(k), {}, each) for k, each in lists), within=1e-3
    )
    assert "differ in b, c" in loose[0]
    assert [each.name for each in found] == ([] if name is None else [name])


def test_event_files_are_read_by_tag_and_step(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow").compat.v1
    with tf.Graph().as_default(), tf.Session() as sess:
        writer = tf.summary.FileWriter(str(tmp_path / "log"))
        scalar = tf.summary.scalar("loss", tf.constant(0.5))
        histogram = tf.summary.histogram("w", tf.constant([1.0, 3.0]))
        for step in (2, 2, 5):
            writer.add_summary(sess.run(scalar), step)
        writer.add_summary(sess.run(histogram), 5)
        writer.close()
    files = [f"log/{path.name}" for path in (tmp_path / "log").iterdir()]
    found = read_events(lambda name: str(tmp_path / name), files)

    assert sorted(found) == ["log|loss|2", "log|loss|2|2", "log|loss|5", "log|w|5"]
    assert found["log|loss|5"] == 0.5
    assert found["log|w|5"].tolist() == [2.0, 1.0, 3.0, 4.0, 10.0]
    assert read_events(lambda name: str(tmp_path / name), ["notes.txt"]) == {}


@pytest.mark.full
def test_images_and_texts_are_read(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    rng = np.random.RandomState(0)
    points = rng.randint(0, 255, [3, 8, 6, 3]).astype(np.uint8)
    smooth = np.cumsum(np.ones([1, 9, 5, 1]), 2).astype(np.uint8)
    writer = tf.summary.create_file_writer(str(tmp_path / "new"))
    with writer.as_default():
        tf.summary.write("said", tf.constant("rate 0.1"), step=2)
    writer.close()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        shown = [
            tf.compat.v1.summary.image(name, each)
            for name, each in (("noise", points), ("smooth", smooth))
        ]
        old = tf.compat.v1.summary.FileWriter(str(tmp_path / "old"))
        for each in shown:
            old.add_summary(session.run(each), 1)
        old.close()
    files = [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("events.*")]
    found = read_events(lambda path: str(tmp_path / path), files)
    assert found["new|said|2"] == b"rate 0.1"
    assert np.array_equal(found["old|noise/image/1|1"], points[1])
    assert np.array_equal(found["old|smooth/image/0|1"], smooth[0])


def test_points_of_images(tmp_path: Path) -> None:
    image = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    near, black = image.copy(), np.zeros_like(image)
    near[0, 0, 0] += 1
    for made, equal in ((image, True), (near, True), (black, False), (image[::-1], False)):
        found, _ = _compared(
            tmp_path / str(len(list(tmp_path.iterdir()))),
            {"log|a|1": image},
            {"log|a|1": image},
            {"log|a|1": made},
        )
        assert (not found) == equal


def test_points_of_images_of_rows_that_are_chance(tmp_path: Path) -> None:
    image = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    events = [{"log|a|1": each} for each in (image, image, image[::-1])]
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(events)]
    traces[1].meta["inputs_agreed"] = {"input/0/x": False}
    found, loose = doing_differences(*traces, within=1e-3)
    assert not found and "the summary a" in loose[0]


def test_how_full_a_queue_is_is_left_open(tmp_path: Path) -> None:
    queue = "log|tower_1/batch/fraction_of_32_full|4"
    wanted = {
        **SCALAR,
        queue: 1.0,
        "log|tower_1/shuffle_batch/fraction_over_16_of_18_full_1|4": 0.5,
    }
    found, loose = _compared(tmp_path, wanted, wanted, {**wanted, queue: 0.5})
    assert not found
    assert [each.rpartition(":")[0] for each in loose] == [
        "the summary tower_1/batch/fraction_of_32_full",
        "the summary tower_1/shuffle_batch/fraction_over_16_of_18_full_1",
    ]


def test_a_queue_that_tells_nothing_is_found(tmp_path: Path) -> None:
    wanted = {**SCALAR, "log|batch/fraction_of_32_full|4": 1.0}
    found, _ = _compared(tmp_path, wanted, wanted, SCALAR)
    assert [each.name for each in found] == [
        "batch/fraction_of_32_full of step 4 in the event file of log"
    ]


# One histogram of twelve, of which at most a third may be excused: what the original's own is with its weights moved decides.
MANY = {f"log|layer{number}|4": HISTOGRAM for number in range(12)}
JUMPED = HISTOGRAM + np.array([0.0, -0.02, 0.0, -0.02, 0.01])


@pytest.mark.parametrize(
    ("made", "moved", "excused"),
    [
        (JUMPED, JUMPED, True),
        (JUMPED, HISTOGRAM + (JUMPED - HISTOGRAM) * 0.6, True),
        (JUMPED, HISTOGRAM + (JUMPED - HISTOGRAM) * 0.4, False),
        (JUMPED, HISTOGRAM, False),
        # Elsewhere than the original jumps.
        (HISTOGRAM + np.array([0.0, 0.0, 0.02, 0.0, 0.0]), JUMPED, False),
        # No rounding makes as much of it, or other values.
        (HISTOGRAM * np.array([1.0, 2.0, 2.0, 2.0, 4.0]), HISTOGRAM * 3, False),
        (HISTOGRAM + np.array([1.0, -0.02, 0.0, 0.0, 0.0]), HISTOGRAM + np.array([1.0, -0.02, 0.0, 0.0, 0.0]), False),
    ],
)  # fmt: skip
def test_a_histogram_jumps_only_as_the_original_does(
    made: Any, moved: Any, excused: bool, tmp_path: Path
) -> None:
    events = (MANY, MANY, {**MANY, "log|layer3|4": made})
    first, second, third = (_trace(tmp_path / str(n), each) for n, each in enumerate(events))
    other = _trace(tmp_path / "moved", {**MANY, "log|layer3|4": moved})
    found = summaries_excused(first, second, third, [other], within=1e-3, moved_by=1e-6)
    assert [each.key for each in found] == ["log|layer3|4"] * excused
    left = event_differences(
        first, second, third, within=1e-3, excused={each.key for each in found}
    )
    assert bool(list(left)) is not excused
    for each in found:
        assert each.level == "output" and each.step == 4
        assert each.evidence["original_moves"] >= each.evidence["off_by"] / 2


def test_not_many_histograms_jump(tmp_path: Path) -> None:
    made = {**MANY, **{f"log|layer{number}|4": JUMPED for number in range(5)}}
    first, second, third = (_trace(tmp_path / str(n), e) for n, e in enumerate((MANY, MANY, made)))
    other = _trace(tmp_path / "moved", made)
    assert not summaries_excused(first, second, third, [other], within=1e-3, moved_by=1e-6)


def test_a_scalar_does_not_jump(tmp_path: Path) -> None:
    made = {**SCALAR, "log|loss|8": 0.251}
    first, second, third = (
        _trace(tmp_path / str(n), each) for n, each in enumerate((SCALAR, SCALAR, made))
    )
    other = _trace(tmp_path / "moved", made)
    assert not summaries_excused(first, second, third, [other], within=1e-3, moved_by=1e-6)
