"""Planted faults: the suite is as large and as varied as it says, and `verify` finds what it plants."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.verify.planted.__main__ import run
from tests.verify.planted.expected import class_of, judged, right_classes
from tests.verify.planted.programs import PROGRAMS
from tests.verify.planted.suite import Case, cases, figures, of_kinds, summary
from towermigrate.verify.plant import planted

# Six of several parts of the ladder, in two small programs, one of each style.
SAMPLE = {
    "rule_fetch_order": (
        "gradient: off by 2 %", "replica: contribution lost", "late: gradients after step 5",
    ),
    "gan": (
        "steps: doubled", "clipping: other bounds", "initial: constant",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def all_cases() -> list[Case]:
    return cases()


def test_there_are_enough_faults_over_enough_programs(all_cases: list[Case]) -> None:
    programs = Counter(case.program for case in all_cases)
    assert len(all_cases) >= 200
    assert len(programs) >= 8 and set(programs) == set(PROGRAMS)
    assert len({case.name for case in all_cases}) == len(all_cases)


def test_every_subject_is_there_and_what_shows_late_or_in_one_place_only(
    all_cases: list[Case],
) -> None:
    subjects = Counter(case.fault.kind.partition(":")[0] for case in all_cases)
    assert {
        "gradient", "variables", "optimizer", "schedule", "global step", "moving average", "clipping", "inputs",
        "steps", "stages", "batch norm", "regulariser", "dropout", "noise", "precision", "replica", "host", "slots",
        "initial", "returned", "printed", "files", "events", "late",
    } <= set(subjects)  # fmt: skip
    assert subjects["late"] >= 5 and subjects["slots"] >= 3
    assert subjects["replica"] >= 5 and subjects["files"] + subjects["events"] >= 10


def test_every_fault_changes_the_program_and_has_an_expected_diagnosis(
    all_cases: list[Case],
) -> None:
    for case in all_cases:
        tree = PROGRAMS[case.program].sources()
        text = planted(tree, case.fault)[case.fault.path]
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(tree[case.fault.path])), case.name
        assert right_classes(case.fault.kind), case.name


@pytest.mark.parametrize(
    ("kind", "cause", "verdict"),
    [
        ("gradient: sum for mean", "the division by the number of towers is missing", "right"),
        ("gradient: sum for mean", "the gradients are divided by the number of towers twice", "wrong"),
        ("dropout: rate", "the forward computation differs: randomness, inputs", "right"),
        ("regulariser: left out", "the forward computation differs: randomness, inputs", "vague"),
        ("regulariser: left out", "a term is counted once more (regularisers)", "right"),
        ("initial: stddev", "another initial value: the initializer", "right"),
        ("files: another step", None, "none"),
        ("files: another step", "something new", "unknown"),
        ("steps: one skipped", "a step is skipped: rows come that the original has later", "right"),
        ("inputs: towers swapped", "a tower gets rows that the original gave to another", "right"),
        ("host: weights changed", "what the host does to variables is something else", "right"),
    ],
)  # fmt: skip
def test_diagnoses_are_judged_by_their_class(kind: str, cause: str | None, verdict: str) -> None:
    assert judged(kind, cause) == verdict


def test_a_cause_without_known_words_is_its_own_class() -> None:
    assert class_of("something new") == "something new"


def test_a_sample_is_found(tmp_path: Path) -> None:
    sample = [case for program, kinds in SAMPLE.items() for case in of_kinds(program, kinds)]
    assert len(sample) == 6, [case.name for case in sample]
    outcomes = list(run(sample, tmp_path, 2))

    assert len(outcomes) == 6
    assert all(outcome.found for outcome in outcomes), "\n".join(summary(outcomes))
    assert not [each for each in outcomes if judged(each.kind, each.cause) == "wrong"], "\n".join(
        summary(outcomes)
    )


@pytest.mark.full
def test_nearly_all_are_found_and_most_rightly_diagnosed(
    all_cases: list[Case], tmp_path: Path
) -> None:
    outcomes = list(run(all_cases, tmp_path, 2))
    said = "\n".join(summary(outcomes))
    print(said)
    ran = [each for each in outcomes if each.found is not None]
    assert len(ran) >= 200, said
    assert sum(bool(each.found) for each in ran) >= 0.98 * len(ran), figures(outcomes)
