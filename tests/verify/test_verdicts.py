"""From recordings to the verdict: what is excused, what --strict makes of it, and what the report says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.verify.recordings import STAGES, TOWERS, recording, relu
from tests.verify.test_excuses import NEAR
from towermigrate.verify import VerifyOptions, doings_compare, run
from towermigrate.verify.amounts import Amount
from towermigrate.verify.devices import DeviceSpec, parse_devices
from towermigrate.verify.inputs import inputs_not_compared
from towermigrate.verify.programs import Recorded
from towermigrate.verify.report import DeviceReport, Reference, VerifyReport, print_report
from towermigrate.verify.rounding import Trial
from towermigrate.verify.run import _Verification
from towermigrate.verify.trace import Trace


@dataclass
class _Recordings:
    """Stands for the two programs: gives what `relu` records."""

    folder: Path
    made: dict[str, Any]
    asked: list[Trial] = field(default_factory=list)

    def run_rewritten(self, recorded: Recorded, spec: DeviceSpec, lockstep: bool) -> Trace:
        return relu(self.folder / f"made-{lockstep}", near=NEAR, free=not lockstep, **self.made)

    def run_moved(self, recorded: Recorded, spec: DeviceSpec, trial: Trial) -> Trace:
        self.asked.append(trial)
        return relu(self.folder / trial.name, near=NEAR, moved=trial, free=trial.adds_up)


def _verdict(
    folder: Path,
    strict: bool = False,
    tolerance: float = 1e-6,
    reference: Reference | None = None,
    **made: Any,
) -> tuple[DeviceReport, list[str], list[str], _Recordings]:
    first = relu(folder / "first", near=NEAR)
    # A second run says only where it is not the first.
    second = recording(folder / "second", [{} for _ in first.runs])
    recorded = Recorded(
        first, second, None, STAGES, {}, reference or Reference(), {}, TOWERS, {}, {}
    )
    options = VerifyOptions(folder, tolerance=tolerance, strict=strict)
    verification = _Verification(options, folder)
    programs = _Recordings(folder, made)
    verification.programs = programs  # type: ignore[assignment]
    report, missing, loose = verification._compare(recorded, parse_devices("cpu:2"))
    loose = [each for each in loose if each not in inputs_not_compared(recorded)]
    return report, missing, loose, programs


def test_a_jump_is_excused_and_stands_in_the_report_with_its_numbers(tmp_path: Path) -> None:
    report, _, loose, programs = _verdict(tmp_path, decides_otherwise=(1,))
    assert report.equal and report.first_difference is None
    assert loose == []
    document = VerifyReport(True, runs=(report,), stages=STAGES).to_json()
    single = [each for each in document["excuses"] if "explained" in each["evidence"]]
    assert {(each["step"], each["stage"], each["level"], each["name"]) for each in single} == {
        (1, "train", "gradient", "w1"),
        (1, "train", "update", "w1"),
        (1, "train", "update", "Momentum/w1"),
    }
    assert all(each["evidence"]["explained"] == 1.0 for each in single)
    levels = document["runs"][0]["levels"]
    assert (levels["gradient"]["verdict"], levels["gradient"]["excused"]) == ("equal", 1)
    assert levels["trajectory"]["excused"] == len(document["excuses"]) - len(single) > 0
    asked = [trial.adds_up for trial in programs.asked]
    # On some processors the first two moves of the free run do not reach as far.
    assert asked in ([False] * 2 + [True] * 2, [False] * 2 + [True] * 4)


def test_strict_excuses_nothing(tmp_path: Path) -> None:
    report, _, _, programs = _verdict(tmp_path, strict=True, decides_otherwise=(1,))
    assert not report.equal and report.excuses == ()
    first = report.first_difference
    assert first is not None and (first.step, first.level, first.name) == (1, "gradient", "w1")
    assert programs.asked == []


@pytest.mark.parametrize("part", [0.02, 1e-4], ids=["2 % too much", "1e-4 too much"])
def test_a_factor_is_a_difference_without_asking_the_original(tmp_path: Path, part: float) -> None:
    report, _, _, programs = _verdict(
        tmp_path, change=lambda step, name, gradient: gradient * (1 + part)
    )
    assert not report.equal
    assert programs.asked == []
    assert any("most steps must be within the tolerance" in why for why in report.not_excused)
    assert report.diagnosis[0].cause == "the loss or its gradients are scaled"


_JITTER = np.random.RandomState(3)
_IRREGULAR = {name: _JITTER.randn(200).astype(np.float32) * 1.5e-6 for name in ("w1", "w2")}


def _at_every_step(step: int, name: str, gradient: Any) -> Any:
    off = np.roll(_IRREGULAR[name], step)[: gradient.size].reshape(gradient.shape)
    return gradient + off * np.abs(gradient).max()


@pytest.mark.parametrize(
    ("reference", "equal"),
    [(Reference(mode="compat.v1"), False), (Reference(mode="TensorFlow 1"), True)],
    ids=["the same kernels", "another TensorFlow"],
)
def test_what_is_off_at_every_step_is_only_excused_against_another_tensorflow(
    tmp_path: Path, reference: Reference, equal: bool
) -> None:
    report, _, _, _ = _verdict(tmp_path, reference=reference, change=_at_every_step)
    assert report.equal == equal, report.not_excused
    gradients = [each for each in report.excuses if each.level == "gradient"]
    assert len(gradients) > 2 if equal else not report.excuses


def _last_place(step: int, name: str, gradient: Any) -> Any:
    return gradient * (1 + 4e-7)


@pytest.mark.parametrize("strict", [False, True])
def test_roundings_that_add_up_are_within_the_tolerance_times_the_updates(
    tmp_path: Path, strict: bool
) -> None:
    report, _, _, _ = _verdict(tmp_path, strict=strict, tolerance=5e-7, change=_last_place)
    trajectory = next(each for each in report.levels if each.level == "trajectory")
    assert report.equal is not strict
    assert (trajectory.largest or 0) > 5e-7
    if strict:
        assert report.first_difference is not None
        assert report.first_difference.level == "trajectory"
        assert trajectory.verdict == "different"
    else:
        assert trajectory.why is not None and "roundings add up" in trajectory.why


def test_what_was_left_out_and_excused_stands_in_the_verdict_line(tmp_path: Path) -> None:
    report, _, _, _ = _verdict(tmp_path, decides_otherwise=(1,))
    text = StringIO()
    print_report(VerifyReport(True, runs=(report,), stages=STAGES), Console(file=text, width=200))
    lines = text.getvalue().rstrip().splitlines()
    assert lines[-1].startswith("equal: the rewritten program trains as the original does")
    assert "not compared: input" in lines[-1]
    freely = sum(each.free_running for each in report.excuses)
    single = len(report.excuses) - freely
    assert f"excused: {single} arrays of single steps and {freely} of the free run" in lines[-1]
    assert any("5 of 5 updates of train" in line for line in lines)
    gradient = next(line for line in lines if " gradient " in line and "cpu:2" in line).split()
    assert gradient[:5] == ["cpu:2", "gradient", "equal", "2", "5"] and gradient[-1] == "1"


def test_inputs_and_files_are_compared_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    for name, where in (("pairing", run), ("file_differences", run)):
        original = getattr(where, name)

        def counted(*args: Any, name: str = name, original: Any = original) -> Any:
            asked.append(name)
            return original(*args)

        monkeypatch.setattr(where, name, counted)
    monkeypatch.setattr(doings_compare, "file_differences", run.file_differences)
    _verdict(tmp_path)
    assert sorted(asked) == ["file_differences", "pairing"]


def test_the_verdict_names_what_was_not_compared_and_not_the_devices() -> None:
    made = DeviceReport("cpu:2", 2, True, 1, 1.0, {}, 1e-6, 0.0)
    report = VerifyReport(False, not_compared=("cpu:2: variable w: nobody looked",), runs=(made,))
    assert "left open: variable w)" in (report.verdict or "")


@pytest.mark.parametrize("stopped", [True, False])
def test_where_it_was_stopped_stands_in_the_verdict_line(tmp_path: Path, stopped: bool) -> None:
    report, _, _, _ = _verdict(tmp_path)
    amount = Amount({"critic": 5, "generator": 1}, {"critic": 5, "generator": 1}, stopped, 5)
    report = replace(report, amount=amount)
    text = StringIO()
    print_report(VerifyReport(True, runs=(report,), stages=STAGES), Console(file=text, width=200))
    last = text.getvalue().rstrip().splitlines()[-1]
    assert ("stopped after 5 updates: --steps all runs to the end" in last) is stopped
