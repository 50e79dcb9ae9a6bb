"""verify on whole programs: equal where the rewrite is right, exit code 1 and the place where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import tf1_env
from towermigrate.verify import VerifyOptions, run_verify

FIXTURES = Path(__file__).parents[2] / "fixtures"

REPORT_KEYS = {"equal", "error", "not_compared", "nondeterministic", "reference", "runs"}
RUN_KEYS = {
    "devices", "replicas", "equal", "steps", "updates_per_step", "max_abs", "first_difference",
    "diagnosis",
}  # fmt: skip
DIFFERENCE_KEYS = {"step", "stage", "level", "name", "replica", "expected", "actual"}


def test_the_rewritten_program_trains_as_the_original_did(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, devices=("cpu:2",), steps=2))

    assert report.error is None
    assert report.exit_code == 0, report.to_json()
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert set(document) == REPORT_KEYS
    assert document["not_compared"] == []
    assert document["reference"]["mode"] == "compat.v1"
    (run,) = document["runs"]
    assert run.keys() >= RUN_KEYS
    assert (run["steps"], run["updates_per_step"], run["replicas"]) == (2, 1.0, 2)
    # Dropout is in the losses: they are equal only with the same draws in both programs.
    assert run["max_abs"]["loss"] < 1e-6
    assert run["max_abs"]["slot"] is not None


FAULTS = [
    pytest.param(
        r"tm\.tower_gradients\(\s*opt, first_loss.*\)",
        "opt.compute_gradients(first_loss, variables.trainable())",
        ("first_train", "gradient"),
        "the division by the number of towers is missing",
        id="no division by the number of towers, which Adam hides",
    ),
    pytest.param(
        r"variables\.trainable\(\"second\"\)",
        "variables.trainable()",
        ("second_train", "gradient"),
        "variable list has variables that the original's has not",
        id="all variables in place of the stage's var_list",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"opt, first_loss, variables\.trainable\(\), none=\"skip\"",
        'opt, first_loss, variables.trainable(), none="zeros"',
        ("first_train", "gradient"),
        "zeros are applied to variables that the stage leaves out",
        id="zeros outside of the stage, with a shared Adam",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"rng\.randint\((.*)\),\n",
        r"np.roll(rng.randint(\1), BATCH),\n",
        ("first_train", "forward"),
        "a tower gets rows that the original gave to another",
        id="one input swapped between the towers",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"AdamOptimizer\(0\.01\)",
        "AdamOptimizer(0.01, beta2=0.99)",
        ("first_train", "update"),
        "optimizer formula or hyperparameter",
        id="another hyperparameter",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"tf\.compat\.v1\.reduce_mean\(tf\.abs\(second \+ _y\)\)",
        "tf.compat.v1.reduce_mean(tf.abs(second + _y)) / 2",
        ("second_train", "forward"),
        "the loss is divided by the number of towers",
        id="a loss that is divided as well",
        marks=pytest.mark.full,
    ),
]


@pytest.mark.parametrize(("pattern", "by", "where", "cause"), FAULTS)
def test_a_planted_fault_is_found_where_it_is(
    tree: Path,
    rewritten: Callable[..., Path],
    pattern: str,
    by: str,
    where: tuple[str, str],
    cause: str,
) -> None:
    after = rewritten(pattern, by)
    report = run_verify(VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2))

    assert report.error is None
    assert report.exit_code == 1
    (run,) = report.to_json()["runs"]
    first = run["first_difference"]
    assert set(first) == DIFFERENCE_KEYS
    assert (first["step"], first["stage"], first["level"]) == (0, *where), run
    assert any(cause in each["cause"] for each in run["diagnosis"]), run["diagnosis"]


@pytest.mark.full
def test_a_program_that_ends_early_is_a_difference(
    tree: Path, rewritten: Callable[..., Path]
) -> None:
    after = rewritten(r"range\(6\)", "range(1)")
    report = run_verify(VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2))

    assert report.exit_code == 1
    assert report.to_json()["runs"][0]["first_difference"]["level"] == "structure"


@pytest.mark.full
def test_an_original_that_fails_is_an_error_with_its_last_words(tree: Path) -> None:
    path = tree / "shared_adam.py"
    path.write_text(path.read_text().replace("range(6)", "range(1 // 0)"))
    report = run_verify(VerifyOptions(tree, devices=("cpu:2",)))

    assert report.exit_code == 3
    assert "ZeroDivisionError" in (report.error or "")
    assert report.to_json()["equal"] is False


def test_devices_that_verify_cannot_run_on_yet_are_an_error_and_no_verdict(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, devices=("tpu-compile:v5e",)))

    assert (report.exit_code, report.equal, report.runs) == (3, False, ())
    assert "tpu-compile:v5e" in (report.error or "")


def test_no_tower_program_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n")
    report = run_verify(VerifyOptions(tmp_path))

    assert report.exit_code == 3
    assert "nothing was compared" in (report.error or "")


@pytest.mark.full
def test_made_up_inputs_and_other_tower_counts(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, devices=("cpu:1", "cpu:4"), steps=2, synthetic=True))

    assert report.exit_code == 0, report.to_json()
    assert [run.replicas for run in report.runs] == [1, 4]


@pytest.mark.full
def test_against_real_tensorflow_1(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, steps=2, tf1_python=tf1_env.required_python()))

    assert report.exit_code == 0, report.to_json()
    assert report.reference.tensorflow == "1.15.5"


@pytest.mark.full
@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in FIXTURES.glob("*/fixture.toml"))
)
def test_fixtures_are_equal(name: str) -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    fixture = tomllib.loads((FIXTURES / name / "fixture.toml").read_text(encoding="utf-8"))
    report = run_verify(
        VerifyOptions(
            FIXTURES / name / "before",
            rewritten=FIXTURES / name / "after",
            devices=("cpu:2",),
            steps=3,
            entry=fixture["entry"],
            arguments=tuple(fixture["args"]),
        )
    )

    if report.error and "were refused" in report.error:
        pytest.skip(report.error)
    assert report.exit_code == 0, report.to_json()
    assert ("repaired" in (report.reference.mode or "")) == (not fixture["runs_before"])
