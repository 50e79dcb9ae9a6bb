"""verify --self-test: faults planted into the program at hand, and a verdict on verify itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.verify.test_session_style import _trees
from towermigrate.cli import main
from towermigrate.verify import VerifyOptions, VerifyReport, self_test
from towermigrate.verify.plant import Fault, plant
from towermigrate.verify.self_test import (
    FaultOutcome,
    SelfTestReport,
    print_self_test,
    run_self_test,
)

FAULT = Fault("steps: doubled", "the training step is made twice", "a.py", 7, ())
PASSED, FAILED = VerifyReport(True), VerifyReport(False, "it cannot run")


@pytest.mark.parametrize(
    ("unchanged", "found", "code"),
    [
        (PASSED, (True, True), 0),
        (PASSED, (True, None), 0),
        (PASSED, (True, False), 1),
        (VerifyReport(False), (), 1),
        (FAILED, (), 3),
    ],
)
def test_exit_codes(unchanged: VerifyReport, found: tuple[bool | None, ...], code: int) -> None:
    outcomes = tuple(FaultOutcome(FAULT, each) for each in found)
    report = SelfTestReport(unchanged, outcomes)
    assert report.exit_code == code
    assert report.to_json()["self_test"]["all_found"] == (code == 0)


def test_nothing_tested_is_no_pass() -> None:
    assert SelfTestReport(PASSED, (), "No fault fits").exit_code == 3


def test_the_table_says_what_was_missed() -> None:
    console = Console(width=150, record=True, file=io.StringIO())
    found = FaultOutcome(FAULT, True, "structure", "training run", ("a step is made twice",))
    print_self_test(SelfTestReport(PASSED, (found, FaultOutcome(FAULT, False))), console)
    text = console.export_text()
    assert "a.py:7" in text and "structure" in text and "a step is made twice" in text
    assert "MISSED: steps: doubled at a.py:7: the training step is made twice" in text
    assert "1 missed of 2 planted faults" in text


def _some(kinds: list[str]) -> Any:
    """An engine that plants these kinds only, and what changes nothing."""

    def make(*args: Any) -> list[Fault]:
        faults = [fault for fault in plant(*args) if fault.kind in kinds]
        return [*faults, Fault("nothing", "nothing is changed", "gan.py", 1, ())]

    return make


@pytest.mark.full
def test_faults_are_planted_into_the_program_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = _trees(tmp_path, "gan")
    monkeypatch.setattr(self_test, "plant", _some(["gradient: sum for mean"]))
    said: list[str] = []
    report = run_self_test(VerifyOptions(before, rewritten=after, steps=2, progress=said.append))

    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["equal"] is True and document["error"] is None
    found, nothing = document["self_test"]["faults"]
    assert (found["found"], found["level"]) == (True, "gradient")
    assert found["place"].startswith("gan.py:")
    assert "division by the number of towers is missing" in found["diagnosis"][0]
    assert (nothing["kind"], nothing["found"]) == ("nothing", False)
    assert report.exit_code == 1
    assert "Fault 2 of 2: nothing" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before"]


def test_the_command_takes_one_tree(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["verify", "--self-test", str(tmp_path), str(tmp_path)])
    assert result.exit_code == 2
    assert "give one PATH" in result.output


def test_no_program_is_an_error_in_json_too(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n")
    file = tmp_path / "report.json"
    result = CliRunner().invoke(main, ["verify", "--self-test", str(tmp_path), "--json", str(file)])
    document = json.loads(file.read_text())
    assert result.exit_code == 3
    assert "nothing was compared" in document["error"]
    assert document["self_test"] == {"all_found": False, "faults": []}


@pytest.mark.full
def test_all_faults_in_a_program_of_loop_style_are_found(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "rule_fetch_order"
    report = run_self_test(
        VerifyOptions(fixture / "before", rewritten=fixture / "after", steps=8, entry="line.py")
    )
    missed = [each.fault for each in report.outcomes if each.found is False]
    assert (report.exit_code, missed) == (0, []), report.to_json()
    assert len(report.outcomes) > 20
