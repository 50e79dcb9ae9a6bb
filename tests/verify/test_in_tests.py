"""verify in other people's tests and on their CI servers: `assert_equivalent`, `--junit`."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from towermigrate.cli import main
from towermigrate.reports.junit import verify_junit
from towermigrate.verify import (
    NotEquivalent,
    NotVerified,
    VerifyOptions,
    VerifyReport,
    assert_equivalent,
    asserting,
)
from towermigrate.verify.comparison import Difference
from towermigrate.verify.diagnose import Diagnosis
from towermigrate.verify.report import DeviceReport

RUN = DeviceReport(
    devices="cpu:2", replicas=2, equal=True, steps=5, updates_per_step=1.0, max_abs={}, tolerance=1e-6,
    smallest_tolerance=0.0,
)  # fmt: skip
WRONG = replace(
    RUN,
    devices="cpu:4",
    equal=False,
    stage="critic <1>",
    first_difference=Difference(3, 0, "gradient", "w\x00", 1, 2.0, 4.0, 1.0, "gradient/0/w", 3),
    diagnosis=(Diagnosis("the gradients are summed", "ratio 2 & no other"),),
)


def parsed(report: VerifyReport) -> ElementTree.Element:
    return ElementTree.fromstring(verify_junit(report.to_json(), "src"))


def counts(root: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(root.get(each) for each in ("tests", "failures", "errors"))


def test_every_device_spec_is_a_suite_and_a_difference_a_failure() -> None:
    root = parsed(VerifyReport(False, runs=(RUN, WRONG)))
    assert [suite.get("name") for suite in root] == ["cpu:2", "cpu:4"]
    good, bad = root.findall("testsuite")
    assert counts(good)[1:] == ("0", "0") and counts(bad)[2] == "0"
    (failure, *_) = bad.iter("failure")
    said = failure.text or ""
    assert "step 3, stage critic <1>, level gradient: w, tower 1: expected 2.0, got 4.0" in said
    assert "likely: the gradients are summed. ratio 2 & no other" in said
    assert int(root.get("failures", "0")) == len(list(root.iter("failure")))


def test_what_was_not_compared_is_a_failure_and_what_could_not_be_run_an_error() -> None:
    root = parsed(VerifyReport(False, not_compared=("cpu:2: stage x",), runs=(RUN,)))
    assert counts(root)[1:] == ("1", "0")
    root = parsed(VerifyReport(False, "the original ended\x1b[0m"))
    assert counts(root) == ("1", "0", "1")
    assert [each.text for each in root.iter("error")] == ["the original ended[0m"]


def test_the_levels_of_a_run_are_test_cases() -> None:
    document: dict[str, Any] = VerifyReport(False, runs=(RUN,)).to_json()
    document["runs"][0]["levels"] = {
        "forward": {"verdict": "equal", "why": None},
        "output": {"verdict": "different", "why": None},
        "initial": {"verdict": "not compared", "why": "other values each time"},
    }
    root = ElementTree.fromstring(verify_junit(document, "src"))
    failed = {case.get("name"): case.find("failure") is not None for case in root.iter("testcase")}
    assert failed == {"training": False, "forward": False, "output": True, "initial": False}
    assert [each.get("message") for each in root.iter("skipped")] == ["other values each time"]


def test_the_command_writes_it_where_nothing_could_be_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n")
    file = tmp_path / "junit.xml"
    result = CliRunner().invoke(
        main, ["verify", str(tmp_path), "--devices", "cpu:2", "--junit", str(file)]
    )
    assert result.exit_code == 3
    assert counts(ElementTree.parse(file).getroot()) == ("1", "0", "1")


def given(report: VerifyReport, monkeypatch: pytest.MonkeyPatch) -> list[VerifyOptions]:
    asked: list[VerifyOptions] = []

    def run(options: VerifyOptions) -> VerifyReport:
        asked.append(options)
        return report

    monkeypatch.setattr(asserting, "run_verify", run)
    return asked


def test_an_equal_program_gives_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = VerifyReport(True, runs=(RUN,))
    asked = given(report, monkeypatch)
    assert (
        assert_equivalent(str(tmp_path), tmp_path, devices=["cpu:1", "cpu:4"], steps=20) is report
    )
    assert asked == [
        VerifyOptions(tmp_path, devices=("cpu:1", "cpu:4"), rewritten=tmp_path, steps=20)
    ]


def test_a_difference_fails_the_test_with_the_report_as_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given(VerifyReport(False, runs=(RUN, WRONG)), monkeypatch)
    with pytest.raises(AssertionError, match=re.escape("first difference at step 3")) as caught:
        assert_equivalent("src")
    assert isinstance(caught.value, NotEquivalent) and caught.value.report.runs[1] is WRONG


def test_what_was_not_compared_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    given(VerifyReport(False, not_compared=("cpu:2: stage x",), runs=(RUN,)), monkeypatch)
    with pytest.raises(NotEquivalent, match="not compared: cpu:2: stage x"):
        assert_equivalent("src")


def test_a_program_that_cannot_be_run_is_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n")
    with pytest.raises(NotVerified, match="error: ") as caught:
        assert_equivalent(tmp_path)
    assert not isinstance(caught.value, AssertionError) and caught.value.report.exit_code == 3


@pytest.mark.full
def test_whole_programs(tree: Path, tmp_path: Path) -> None:
    assert assert_equivalent(tree, steps=1).exit_code == 0


def test_the_command_writes_a_page_where_nothing_could_be_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\n")
    file = tmp_path / "page.html"
    result = CliRunner().invoke(
        main, ["verify", str(tmp_path), "--devices", "cpu:2", "--html", str(file)]
    )
    assert result.exit_code == 3
    assert "<b>No verdict</b>" in file.read_text(encoding="utf-8")
