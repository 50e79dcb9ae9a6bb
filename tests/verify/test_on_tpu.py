"""`tpu`: values enter and leave the replicas of a step beside it. Virtual CPUs stand in for a TPU, as none is here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.verify.converted import CONVERTED, FIXTURES
from towermigrate.verify import VerifyOptions, VerifyReport, parse_devices, run_verify
from towermigrate.verify.probe.recording import read_arrays, read_meta
from towermigrate.verify.tpu_cores import STAND_IN, NoTpu, with_cores


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "cpu:2")


@pytest.mark.parametrize("text", ["tpu", "tpu:local", "tpu:my-pod", "tpu:grpc://10.0.0.2:8470"])
def test_the_original_runs_on_as_many_cpus_as_there_are_cores(text: str, stand_in: None) -> None:
    spec = parse_devices(text)
    assert (spec.kind, spec.replicas, spec.for_loop_style) == ("tpu", 0, True)
    assert spec.environment["TOWERMIGRATE_DEVICES"] == text
    asked = with_cores(spec, VerifyOptions(Path("train.py")))
    assert (asked.text, asked.replicas) == (text, 2)
    assert asked.of_original == parse_devices("cpu:2")


def test_where_no_tpu_is_that_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(NoTpu, match=r"No TPU for tpu:local: .*not found.*tpu-compile:TYPE"):
        with_cores(parse_devices("tpu:local"), VerifyOptions(tmp_path))


def test_a_tpu_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    options = VerifyOptions(tmp_path, timeout_s=0.01)
    with pytest.raises(NoTpu, match=r"tpu did not answer within 0\.01 s"):
        with_cores(parse_devices("tpu"), options)


def test_its_tolerance_is_that_of_bfloat16(tmp_path: Path) -> None:
    assert VerifyOptions(tmp_path).limit_on("tpu") == 1e-2
    assert VerifyOptions(tmp_path, tolerance=1e-3).limit_on("tpu") == 1e-3


def verified(tree: Path, keep: Path | None = None, **more: object) -> VerifyReport:
    options = VerifyOptions(tree, steps=4, tolerance=1e-6, keep=keep, **more)  # type: ignore[arg-type]
    return run_verify(options)


def recorded(folder: Path) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return {
        f"{run['index']}: {key}": array
        for run in read_meta(str(folder))["runs"]
        for key, array in read_arrays(str(folder), f"run_{run['index']:05d}").items()
    }


def test_the_same_is_recorded_as_from_within_the_replicas(tmp_path: Path, stand_in: None) -> None:
    tree = FIXTURES / "builder_apart" / "before"
    report = verified(tree, tmp_path / "kept", devices=("cpu:2", "tpu"))
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    within, left = (
        recorded(tmp_path / "kept" / f"rewritten-{spec}" / "trace") for spec in ("cpu:2", "tpu")
    )
    assert left.keys() == within.keys()
    assert any("loss" in key for key in left) and any("own/input" in key for key in left)
    for key, array in within.items():
        np.testing.assert_array_equal(left[key], array, err_msg=key)
    assert "cpu:2 stood in for one" in (report.runs[1].note or "")
    # What a replica computes asks the host for nothing.
    inside = read_meta(str(tmp_path / "kept" / "rewritten-tpu" / "trace"))["replica_operations"]
    assert "MatMul" in inside
    assert not {"PyFunc", "PyFuncStateless", "EagerPyFunc"} & set(inside)


@pytest.mark.full
def test_a_fault_is_found(tmp_path: Path, stand_in: None) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for path in (FIXTURES / "builder_apart" / "after").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        new = text.replace(
            "tower_gradients(optimizer, loss,", "tower_gradients(optimizer, 2.0 * loss,"
        )
        (wrong / path.name).write_text(new, encoding="utf-8")
    report = verified(FIXTURES / "builder_apart" / "before", rewritten=wrong, devices=("tpu",))
    assert report.exit_code == 1, report.to_json()
    first = report.runs[0].first_difference
    assert first is not None and first.level in ("forward", "gradient")


@pytest.mark.full
@pytest.mark.parametrize("name", [each for each in CONVERTED if each != "builder_apart"])
def test_the_fixtures_are_equal(name: str, stand_in: None) -> None:
    report = verified(FIXTURES / name / "before", devices=("tpu",))
    assert (report.error, report.exit_code) == (None, 0), report.to_json()


@pytest.mark.full
def test_a_fault_of_one_stage_is_found(
    tree: Path, rewritten: Callable[..., Path], stand_in: None
) -> None:
    wrong = rewritten(r"variables\.trainable\(\"second\"\)", "variables.trainable()")
    report = verified(tree, rewritten=wrong, devices=("tpu",))
    assert report.exit_code == 1, report.to_json()
    assert report.runs[0].first_difference is not None
    assert report.runs[0].first_difference.level == "gradient"
