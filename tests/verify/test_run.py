"""verify on whole programs: equal where the rewrite is right, exit code 1 and the place where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import tf1_env
from tests.verify.converted import CONVERTED, FIXTURES
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.tree import original_and_rewritten

HERE = Path(__file__).parent / "fixtures"

REPORT_KEYS = {
    "equal", "error", "not_compared", "nondeterministic", "levels", "excuses", "reference", "runs", "protection", "kept_out",
}  # fmt: skip
RUN_KEYS = {
    "devices", "replicas", "equal", "steps", "updates_per_step", "max_abs", "first_difference",
    "diagnosis", "levels", "updates_made", "updates_compared", "not_excused",
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
    assert run["updates_compared"] == {"first_train": 2, "second_train": 2}
    verdicts = {level: each["verdict"] for level, each in run["levels"].items()}
    assert verdicts.pop("initial") in ("equal", "not compared")
    assert set(verdicts.values()) == {"equal"} and len(verdicts) == 7
    assert run["levels"]["gradient"]["steps"] == 4  # two stages in turn
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
        ("first_train", "input"),
        "a tower gets rows that the original gave to another",
        id="one input swapped between the towers",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"AdamOptimizer\(0\.01\)",
        "AdamOptimizer(0.01, beta2=0.99)",
        (None, "initial"),  # Adam's power of it begins with it
        "optimizer hyperparameter: beta2",
        id="another hyperparameter",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"AdamOptimizer\(0\.01\)",
        "AdamOptimizer(0.010001)",
        ("first_train", "update"),
        "optimizer hyperparameter: learning rate",
        id="a learning rate that is off by 1e-4",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"(?s)(reduce_mean\(tf\.abs\(second \+ _y\)\))(.*second_vars, none=\"skip\")",
        r"\1 / 2\2, share=False",
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
    where: tuple[str | None, str],
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
def test_a_loss_that_the_helper_refuses_is_an_error_that_says_so(
    tree: Path, rewritten: Callable[..., Path]
) -> None:
    after = rewritten(r"(reduce_mean\(tf\.abs\(second \+ _y\)\))", r"\1 / 2")
    report = run_verify(VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2))
    assert report.exit_code not in (0, 1)
    assert report.error is not None
    assert "a mean times 1/2" in report.error
    assert "share=False" in report.error


OTHERWISE = [
    pytest.param(r"range\(6\)", "range(1)", "training run", id="it ends early"),
    pytest.param(
        r"other = second_train_step.*\n",
        "other = 0.0\n",
        None,
        id="one stage never trains",
    ),
    pytest.param(
        r"opt\.apply_gradients\(grads\)\n",
        "opt.apply_gradients(grads); opt.apply_gradients(grads)\n",
        "optimizer updates",
        id="every batch updates twice",
        marks=pytest.mark.full,
    ),
    pytest.param(
        r"@tf\.function\(autograph=False\)\n    def first",
        "def first",
        "training run",
        id="a step that is no tf.function, so that nothing of it is seen",
        marks=pytest.mark.full,
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("pattern", "by", "name"), OTHERWISE)
def test_a_program_that_trains_otherwise_is_a_difference(
    tree: Path, rewritten: Callable[..., Path], pattern: str, by: str, name: str | None
) -> None:
    after = rewritten(pattern, by)
    report = run_verify(VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2))

    assert report.exit_code != 0 and not report.equal
    if report.error is None:
        first = report.to_json()["runs"][0]["first_difference"]
        assert name is None or (first["level"], first["name"]) == ("structure", name)


CANNOT = [
    pytest.param(
        r"for step in range\(6\):", "for step in [0, 1 // 0]:", "ZeroDivision", id="raises"
    ),
    pytest.param(
        r"tower_strategy\(NUM_TOWERS\)", "tower_strategy(3)", "3", id="another number of towers"
    ),
    pytest.param(
        r"for step in range\(6\):",
        "import time; time.sleep(600)\n    for step in range(6):",
        "--timeout",
        id="hangs",
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("pattern", "by", "said"), CANNOT)
def test_a_rewritten_program_that_cannot_run_is_an_error(
    tree: Path, rewritten: Callable[..., Path], pattern: str, by: str, said: str
) -> None:
    after = rewritten(pattern, by)
    options = VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2, timeout_s=40)
    report = run_verify(options)

    assert (report.exit_code, report.equal) == (3, False)
    assert said in (report.error or ""), report.error


@pytest.mark.full
def test_numbers_that_are_none_prove_nothing(tree: Path, rewritten: Callable[..., Path]) -> None:
    after = rewritten(r"tf\.square\(first - _y\)", "tf.square(first - _y) * float('nan')")
    path = tree / "shared_adam.py"
    text = path.read_text()
    path.write_text(text.replace("tf.square(first - _y)", "tf.square(first - _y) * float('nan')"))
    report = run_verify(VerifyOptions(tree, rewritten=after, devices=("cpu:2",), steps=2))

    assert report.exit_code == 1
    assert report.runs[0].first_difference is None
    assert any("loss" in item and "not finite" in item for item in report.not_compared)


@pytest.mark.full
@pytest.mark.parametrize("tf1", [False, True], ids=["compat.v1", "TensorFlow 1"])
def test_two_stages_in_one_run_train_in_the_order_of_the_source(tmp_path: Path, tf1: bool) -> None:
    name = "two_at_once.py"
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    text = (HERE / "before" / name).read_text(encoding="utf-8")
    (before / name).write_text(text)
    python = tf1_env.required_python() if tf1 else None
    report = run_verify(VerifyOptions(before, devices=("cpu:2",), steps=3, tf1_python=python))
    assert report.exit_code == 0, report.to_json()
    assert not report.nondeterministic

    swapped = original_and_rewritten(before)[1][name]
    lines = [f"    {v}_train = opt.apply_gradients(average_gradients({v}_grads))\n" for v in "dg"]
    assert "".join(lines) in swapped
    swapped = swapped.replace("".join(lines), "".join(reversed(lines)))
    (after / name).write_text(swapped)
    report = run_verify(
        VerifyOptions(before, rewritten=after, devices=("cpu:2",), steps=3, tf1_python=python)
    )
    assert report.exit_code == 1


@pytest.mark.full
def test_an_original_that_fails_is_an_error_with_its_last_words(tree: Path) -> None:
    path = tree / "shared_adam.py"
    path.write_text(path.read_text().replace("range(6)", "range(1 // 0)"))
    report = run_verify(VerifyOptions(tree, devices=("cpu:2",)))

    assert report.exit_code == 3
    assert "ZeroDivisionError" in (report.error or "")
    assert report.to_json()["equal"] is False


@pytest.mark.full
def test_an_original_that_fails_half_way_is_an_error(tree: Path) -> None:
    path = tree / "shared_adam.py"
    path.write_text(path.read_text().replace("range(6)", "map(lambda n: 1 // (1 - n), (0, 1))"))
    report = run_verify(VerifyOptions(tree, devices=("cpu:2",), steps=5))

    assert (report.exit_code, report.runs) == (3, ())
    assert "ZeroDivisionError" in (report.error or "")


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": ("cpu:0",)},
        {"devices": ()},
        {"steps": 0},
        {"tolerance": -1.0},
        {"tolerance": float("nan")},
        {"tolerance": float("inf")},
        {"timeout_s": 0.0},
    ],
    ids=str,
)
def test_options_that_would_make_nothing_differ(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="device|tolerance|timeout|step"):
        run_verify(replace(VerifyOptions(tmp_path), **changes))


def test_devices_that_verify_cannot_run_on_yet_are_an_error_and_no_verdict(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, devices=("tpu:local",)))

    assert (report.exit_code, report.equal, report.runs) == (3, False, ())
    assert "tpu:local" in (report.error or "")


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
@pytest.mark.parametrize("name", CONVERTED)
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

    assert report.exit_code == 0, report.to_json()
    assert ("repaired" in (report.reference.mode or "")) == (not fixture["runs_before"])
