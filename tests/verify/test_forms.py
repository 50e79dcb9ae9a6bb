"""Programs of every form that loop style takes, verified: probes stand where each form has its losses and updates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.grammar import Choices
from tests.differential.program import ENTRY, files_of, settled
from towermigrate.verify import VerifyOptions, run_verify

FAST = ("gradients=minimize_mean",)
FORMS = (
    "gradients=compute_mean",
    "gradients=tf_gradients",
    "gradients=tower_clip",
    "averaging=none_passed",
    "model=batch_norm updates=last",
    "model=slim",
    "loss=regularizer",
    "place=class",
    "place=guard",
    "loop=enumerate",
    "count=len_devices",
    "returns=dict run_place=function",
    "input=placeholders",
    "fetch=nested",
    "fetch=op_run",
    "feed=helper",
)


@pytest.mark.parametrize(
    "form", [*FAST, *(pytest.param(form, marks=pytest.mark.full) for form in FORMS)]
)
def test_it_trains_as_the_original_does(form: str, tmp_path: Path) -> None:
    for name, text in files_of(settled(Choices.parse(f"plain {form}"))).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = run_verify(VerifyOptions(tmp_path, devices=("cpu:2",), steps=3, entry=ENTRY))
    assert report.error is None
    assert report.not_compared == ()
    (run,) = report.runs
    assert run.first_difference is None
    assert report.equal
    # Losses of both towers, at each step: nothing was left out.
    assert run.max_abs["loss"] is not None and run.max_abs["gradient"] is not None


@pytest.mark.full
def test_a_count_that_cannot_be_set_is_that_of_the_towers_made(tmp_path: Path) -> None:
    (text,) = files_of(settled(Choices.parse("plain loop=enumerate"))).values()
    listed = "DEVICES = ['/gpu:0', '/gpu:1']"
    assert listed in text
    text = text.replace(listed, "DEVICES = ['/gpu:%d' % k for k in range(2)]")
    (tmp_path / ENTRY).write_text(text, encoding="utf-8")
    options = VerifyOptions(tmp_path, devices=("cpu:2", "cpu:4"), steps=2, entry=ENTRY)
    report = run_verify(options)
    assert [(run.devices, run.equal) for run in report.runs] == [("cpu:2", True)]
    assert report.error is not None and "It makes 2 by itself" in report.error
