"""Whole programs whose rows come in an order of chance, and seeds: what recorded values hide is found all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verify.planted.programs import lay_out
from towermigrate.migrate import plan
from towermigrate.verify import VerifyOptions, VerifyReport, run_verify

pytestmark = pytest.mark.full
FIXTURES = Path(__file__).parents[2] / "fixtures"
QUEUE = ("cifar_queue", "textures_train.py", "--max_steps=24", "--train_dir=log", "--data_dir=data")
GAN = ("wgan_gp", "rings.py")
BUCKETS = ("transformer_buckets", "mirror.py")
TRAINS = "loss_value = train_step(*next(batches)).numpy()"

FAULTS = [
    pytest.param(
        QUEUE, 20, "textures_input.py", "tf.reshape(labels, [batch_size])",
        "tf.reshape(tf.roll(labels, 1, 0), [batch_size])", "input label_batch", "labels go with other rows", id="labels",
    ),
    pytest.param(
        QUEUE, 6, "textures_input.py", "image = tf.image.per_image_standardization(image)",
        "image = 1.5 * tf.image.per_image_standardization(image)", "input image_batch", "rows are scaled", id="scaled",
    ),
    pytest.param(
        QUEUE, 6, "textures_input.py", "label = tf.cast(", "label = 0 * tf.cast(", "input label_batch",
        "one value in all rows", id="constant",
    ),
    pytest.param(
        QUEUE, 6, "textures_train.py", TRAINS, "next(batches); " + TRAINS, "input batches",
        "another number of batches", id="a batch more",
    ),
    pytest.param(
        QUEUE, 6, "textures_train.py", TRAINS, "batch = next(batches); loss_value = train_step(*batch).numpy()",
        "input of a run that trains nothing", "a run that trains nothing", id="the summary's batch",
    ),
    pytest.param(
        BUCKETS, 6, "mirror.py", "set_random_seed(3)", "set_random_seed(4)", "seed of the graph", "another seed",
        id="graph's seed",
    ),
    pytest.param(
        BUCKETS, 6, "mirror.py", "stddev=0.3, seed=2", "stddev=0.3, seed=1", "seed of the initial value of", "another seed",
        id="variable's seed",
    ),
    pytest.param(
        GAN, 6, "rings.py", "for _ in range(N_CRITIC):", "for _ in range(N_CRITIC - (step >= 3)):", "training run",
        "a step of one stage is skipped", id="a stage less often",
    ),
]  # fmt: skip


def _verified(
    folder: Path, program: tuple[str, ...], steps: int, path: str = "", old: str = "", new: str = ""
) -> VerifyReport:
    name, entry, *arguments = program
    after = FIXTURES / name / "after"
    sources = {
        each.relative_to(after).as_posix(): each.read_text(encoding="utf-8")
        for each in sorted(after.rglob("*.py"))
    }
    if program is BUCKETS:  # in session style, which is the tool's own for it
        sources = dict(plan(FIXTURES / name / "before", style="session").report.texts)
    if path:
        assert sources[path].count(old) == 1
        sources[path] = sources[path].replace(old, new)
        if "batch = next" in new:
            sources[path] = sources[path].replace(
                "summary_step(*next(batches))", "summary_step(*batch)"
            )
    options = VerifyOptions(
        FIXTURES / name / "before",
        devices=("cpu:2",),
        rewritten=lay_out(sources, folder / "rewritten"),
        steps=steps,
        entry=entry,
        arguments=tuple(arguments),
    )
    return run_verify(options)


@pytest.mark.parametrize("program", [QUEUE, GAN, BUCKETS], ids=["queue", "gan", "buckets"])
def test_right_rewrites_are_equal_and_say_what_is_open(
    program: tuple[str, ...], tmp_path: Path
) -> None:
    report = _verified(tmp_path, program, 6)
    assert report.equal, json.dumps(report.to_json(), indent=1)
    assert report.verdict is not None and report.verdict.startswith("equal: ")
    assert ("left open: " in report.verdict) == (program is not GAN)


@pytest.mark.parametrize(("program", "steps", "path", "old", "new", "name", "cause"), FAULTS)
def test_what_recorded_values_hide_is_found(
    program: tuple[str, ...],
    steps: int,
    path: str,
    old: str,
    new: str,
    name: str,
    cause: str,
    tmp_path: Path,
) -> None:
    report = _verified(tmp_path, program, steps, path, old, new)
    assert report.exit_code == 1, json.dumps(report.to_json(), indent=1)
    (run,) = report.runs
    assert run.first_difference is not None and name in run.first_difference.name
    assert cause in run.diagnosis[0].cause
