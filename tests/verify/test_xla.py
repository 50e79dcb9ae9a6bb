"""`xla:N`: the rewritten program compiled by XLA, and what of it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.verify.converted import CONVERTED, FIXTURES
from towermigrate.verify import VerifyOptions, parse_devices, run_verify
from towermigrate.verify.replayed import Roundings, alike
from towermigrate.verify.trace import Trace
from towermigrate.verify.xla import compiled_said

CLUSTER = "module_000{}.cluster_{}__XlaCompiledKernel_true_.1.before_optimizations.txt"


def test_the_original_runs_on_as_many_plain_devices() -> None:
    spec = parse_devices("xla:4")
    assert (spec.replicas, spec.of_original) == (4, parse_devices("cpu:4"))
    assert spec.environment["TOWERMIGRATE_DEVICES"] == "cpu:4"
    assert "TF_XLA_FLAGS" in spec.environment
    assert "TF_XLA_FLAGS" not in spec.of_original.environment
    for text in ("cpu:2", "gpu:2", "gpu:0,1"):
        assert parse_devices(text).of_original == parse_devices(text)


def trace(tmp_path: Path, clusters: list[str], operations: list[str]) -> Trace:
    (tmp_path / "trace" / "xla").mkdir(parents=True)
    for number, text in enumerate(clusters):
        (tmp_path / "trace" / "xla" / CLUSTER.format(number, number)).write_text(text)
    (tmp_path / "trace" / "xla" / "module_0000.cluster_0.cpu_after_optimizations.txt").write_text(
        ""
    )
    return Trace(tmp_path / "trace", {"operations": operations}, ())


def test_what_was_compiled_is_told_from_what_xla_wrote(tmp_path: Path) -> None:
    made = trace(
        tmp_path,
        [
            '%dot = f32[] dot(), metadata={op_type="MatMul" op_name="a"}',
            'metadata={op_type="Relu"}',
        ],
        ["Const", "MatMul", "Relu", "ScalarSummary", "EagerPyFunc", "AsString"],
    )
    assert compiled_said(made) == (
        "XLA compiled 2 clusters with 2 kinds of operations; not in them, run beside them or gone before: "
        "AsString, ScalarSummary"
    )


def test_where_all_was_compiled_it_is_said(tmp_path: Path) -> None:
    made = trace(tmp_path, ['metadata={op_type="MatMul"}'], ["Const", "MatMul"])
    assert (compiled_said(made) or "").endswith(", all that the steps compute with")


def test_where_nothing_was_compiled_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert compiled_said(trace(tmp_path, [], ["MatMul"])) is None


def test_copies_that_xla_rounds_for_each_replica_are_alike() -> None:
    first = np.array([0.5, -0.12807169556617737], np.float32)
    other = np.array([0.5, -0.12807171046733856], np.float32)  # the next number

    def rounded(value: np.ndarray, runs: int = 1) -> float:
        return Roundings().of("w", value, runs)

    assert alike(first, other, rounded(first))
    assert not alike(first, other, 0)
    assert alike(first, first.copy(), 0)
    assert not alike(first, first * np.float32(1 + 1e-4), rounded(first, 5))
    assert not alike(first, np.array([0.5, np.nan], np.float32), rounded(first, 5))
    whole = np.array([1, 2])
    assert not alike(whole, np.array([1, 3]), rounded(whole, 5))


def test_what_xla_rounds_stays_when_a_number_becomes_small() -> None:
    """Seen of a slot of momentum, which changes its sign: half a rounding of the number of the step before."""
    first = np.array([-0.007024715654551983], np.float32)
    other = np.array([-0.007024685852229595], np.float32)
    large = np.array([0.4], np.float32)
    roundings = Roundings()
    assert not alike(first, other, Roundings().of("w", first, 4))
    roundings.of("w", large, 1)
    roundings.of("v", first, 1)
    assert alike(first, other, roundings.of("w", first, 2))
    assert not alike(first, other, roundings.of("v", first, 2))
    assert not alike(first, first * np.float32(1 + 1e-3), roundings.of("w", first, 3))


@pytest.mark.full
@pytest.mark.parametrize("name", CONVERTED)
def test_the_fixtures_are_equal_under_xla(name: str) -> None:
    report = run_verify(VerifyOptions(FIXTURES / name / "before", devices=("xla:2",), steps=3))
    document = json.dumps(report.to_json(), indent=1)
    assert (report.error, report.exit_code) == (None, 0), document
    (run,) = report.runs
    assert "MatMul" not in (run.note or "").partition("not in them")[2]
    assert "XLA compiled" in (run.note or "")


@pytest.mark.full
def test_a_fault_is_found_under_xla(tree: Path, rewritten: Callable[..., Path]) -> None:
    wrong = rewritten(r"variables\.trainable\(\"second\"\)", "variables.trainable()")
    report = run_verify(VerifyOptions(tree, rewritten=wrong, devices=("xla:2",), steps=2))
    assert report.exit_code == 1, report.to_json()
    assert report.runs[0].first_difference is not None
    assert report.runs[0].first_difference.level == "gradient"
