"""The conformance table: every helper in every mode, exact numbers or a reason that is checked."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import towermigrate.helpers as tm
from tests.fixtures_run.test_workers import free_ports
from tests.helpers.conformance import LOCAL, MODES, TPU, WORKERS, Case, Runner, run_cell, tpu
from tests.helpers.conformance_rows import CASES
from tests.helpers.conformance_table import DOCUMENT, table
from tests.tf1_env import required_python
from towermigrate.helpers import strategy as strategy_module
from towermigrate.helpers import tf1

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent

each_row = pytest.mark.parametrize("case", [pytest.param(case, id=case.row) for case in CASES])


@pytest.fixture(autouse=True)
def no_strategy_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_module, "_made", None)


def run_and_check(case: Case, runner: Runner) -> None:
    results = run_cell(case, runner)
    if results is not None:
        case.check(results, runner.towers)


@pytest.mark.parametrize("mode", LOCAL)
@each_row
def test_one_process(case: Case, mode: str, tmp_path: Path) -> None:
    run_and_check(case, Runner(mode, tmp_path))


@each_row
def test_tpu(case: Case, tmp_path: Path) -> None:
    if tpu() is None:
        pytest.skip("no TPU: TensorFlow lists no physical device TPU, and TPU_NAME names none")
    run_and_check(case, Runner(TPU, tmp_path))


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two workers found; one pair of processes runs all rows."""
    folder = tmp_path_factory.mktemp("workers")
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    written = [folder / f"worker{index}.json" for index in range(2)]
    running = []
    for index in range(2):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        environment.pop(strategy_module.DEVICES_VARIABLE, None)
        command = [sys.executable, "-m", "tests.helpers.conformance_worker", folder, written[index]]
        with open(folder / f"worker{index}.log", "w") as log:
            running.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            )
    try:
        wait_for_both(running)
    finally:
        for each in running:
            each.kill()
            each.wait()
    logs = [path.read_text()[-2000:] for path in sorted(folder.glob("*.log"))]
    assert any(path.exists() for path in written), "\n".join(logs)
    return [json.loads(path.read_text()) if path.exists() else {} for path in written]


def wait_for_both(running: list[Any]) -> None:
    """Until both have ended; a worker that is left alone waits for ever in a reduction."""
    until = time.monotonic() + 300
    while any(each.poll() is None for each in running) and time.monotonic() < until:
        if any(each.poll() is not None for each in running):
            until = min(until, time.monotonic() + 20)
        time.sleep(0.1)


@pytest.mark.full
@each_row
def test_two_workers(case: Case, two_workers: list[dict[str, Any]]) -> None:
    for worker in two_workers:
        results = worker.get(case.row, "not run: an earlier row failed, or the other worker")
        assert not isinstance(results, str), results
        assert (results is None) == (WORKERS in case.cannot)
        if results is not None:
            case.check(results, 2)


@pytest.fixture(scope="module")
def tensorflow_1(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What TensorFlow 1.15.5 found, in one process."""
    written = tmp_path_factory.mktemp("tf1") / "results.json"
    command = [required_python(), HERE / "conformance_tf1.py", tf1.__file__, written]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    results: dict[str, Any] = json.loads(written.read_text())
    assert results.pop("version").startswith("1.15")
    return results


@pytest.mark.parametrize("case", [pytest.param(case, id=case.row) for case in CASES if case.tf1])
def test_tensorflow_1(case: Case, tensorflow_1: dict[str, Any]) -> None:
    case.check(tensorflow_1[case.row], 2)


def test_every_helper_has_a_row() -> None:
    assert {name for case in CASES for name in case.covers} == set(tm.__all__)
    assert len({case.row for case in CASES}) == len(CASES)


def test_what_is_promised_for_tensorflow_1_has_a_row() -> None:
    assert {case.covers[0] for case in CASES if case.tf1} == set(tf1.__all__)


def test_reasons_are_for_modes_that_exist() -> None:
    assert all(case.cannot.keys() <= MODES.keys() for case in CASES)


def test_the_document_is_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == table(CASES), (
        "run python -m tests.helpers.conformance_table"
    )
