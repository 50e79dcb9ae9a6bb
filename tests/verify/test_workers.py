"""`workers:N`: the rewritten program as several processes, their recordings made one, and what becomes of the processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.conftest import HERE
from tests.verify.converted import FIXTURES
from tests.verify.recordings import recording
from towermigrate.verify import VerifyOptions, parse_devices, run_verify, workers
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.doings_compare import doing_differences
from towermigrate.verify.trace import Trace
from towermigrate.verify.worker_traces import merge, worker_differences

WHAT = "the rewritten program on workers:2"
LOOP = r"for step in range\(6\):\n"
# What only worker 1 of the rewritten program does in a step.
ON_ONE = (
    "for step in range(6):\n        import os, signal, time\n"
    "        if step == 1 and '\"index\": 1' in os.environ['TF_CONFIG']:\n            {}\n"
)


# ---- device specs --------------------------------------------------------------------------------


def test_the_original_runs_in_one_process() -> None:
    spec = parse_devices("workers:3")
    assert (spec.kind, spec.replicas, spec.of_original) == ("workers", 3, parse_devices("cpu:3"))
    # Else it would win over TF_CONFIG.
    assert spec.environment["TOWERMIGRATE_DEVICES"] == ""


def test_one_worker_is_bad_usage(tree: Path) -> None:
    with pytest.raises(ValueError, match="workers:2 or more"):
        run_verify(VerifyOptions(tree, devices=("workers:1",)))


def test_free_ports_are_several() -> None:
    found = workers.addresses(5)
    assert len(set(found)) == 5 and all(each.startswith("127.0.0.1:") for each in found)


def test_a_port_that_another_program_took_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    tried = []

    def attempt() -> Trace:
        tried.append((tmp_path / "run").exists())
        if len(tried) < 3:
            raise ChildFailed("Worker 0 failed: UnknownError: Could not start gRPC server.")
        return Trace(tmp_path, {}, ())

    workers.with_free_ports(attempt, tmp_path / "run")
    assert tried == [True, False, False]
    with pytest.raises(ChildFailed, match="ImportError"):
        workers.with_free_ports(lambda: _raise(ChildFailed("ImportError")), tmp_path / "run")


def _raise(error: Exception) -> Any:
    raise error


# ---- one recording of all ------------------------------------------------------------------------


def trace(folder: Path, *changed: dict[str, Any], files: tuple[list[str], ...] = ([], [])) -> Path:
    """What two workers recorded of one training run; `changed` are a worker's arrays that are its own."""
    for number in range(2):
        arrays: dict[str, Any] = {
            f"loss/0/{number}": 1.0 + number,
            f"own/input/{number}/x": np.full(3, number),
            f"incoming/0/{number}/w": np.array([1.0 + number, 2.0], np.float32),
            "gradient/0/w": np.array([1.0 + number, 2.0], np.float32),
            "gradient/0/b": np.array([7.0], np.float32),
            "state/variable/w": np.array([5.0, 6.0], np.float32),
            "output/0": np.float32(3.0),
        }
        arrays.update(changed[number] if number < len(changed) else {})
        initial = {key[8:]: arrays.pop(key) for key in list(arrays) if key.startswith("initial/")}
        own = workers.folder_of(folder, number)
        recording(own, [arrays], initial or {"variable/w": np.zeros(2)}, {"replicas": [number]})
        meta = json.loads((own / "meta.json").read_text())
        meta.update(files=files[number], first_seen={"variable/w": 0})
        (own / "meta.json").write_text(json.dumps(meta))
    return folder


def test_each_tower_comes_from_its_worker_and_shares_are_added_up(tmp_path: Path) -> None:
    made = merge(trace(tmp_path), 2, WHAT)
    arrays = made.arrays(made.runs[0])
    assert sorted(key for key in arrays if not key.startswith("state/")) == [
        "gradient/0/b", "gradient/0/w", "loss/0/0", "loss/0/1", "output/0", "own/input/0/x",
        "own/input/1/x",
    ]  # fmt: skip
    assert arrays["gradient/0/w"].tolist() == [3.0, 4.0]
    # An average that every worker has in hand is no share of it.
    assert arrays["gradient/0/b"].tolist() == [7.0]
    assert made.initial()["variable/w"].tolist() == [0.0, 0.0]
    assert not list(worker_differences(made)) and not made.runs[0].replicas_differ


def test_a_variable_that_a_worker_has_otherwise_is_found(tmp_path: Path) -> None:
    made = merge(
        trace(tmp_path, {}, {"state/variable/w": np.array([5.0, 6.5], np.float32)}), 2, WHAT
    )
    assert made.runs[0].replicas_differ == {"variable/w": (1, 6.0, 6.5)}


@pytest.mark.parametrize(
    ("key", "level", "name"),
    [
        ("output/0", "output", "a value that the training run gives back"),
        ("initial/variable/w", "initial", "w"),
    ],
)
def test_what_a_worker_gets_otherwise_is_found(
    key: str, level: str, name: str, tmp_path: Path
) -> None:
    made = merge(trace(tmp_path, {}, {key: np.array([0.0, 4.0], np.float32)}), 2, WHAT)
    (found,) = worker_differences(made)
    assert (found.level, found.replica) == (level, 1)
    assert found.name == f"{name}, which worker 1 has otherwise than the chief"


def test_a_worker_without_a_recording_is_named(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / "worker-1" / "meta.json").unlink()
    with pytest.raises(ChildFailed, match=r"^Worker 1 of the rewritten program on workers:2 ended"):
        merge(tmp_path, 2, WHAT)


def test_a_worker_that_trains_alone_is_named(tmp_path: Path) -> None:
    trace(tmp_path)
    for number in range(2):
        path = tmp_path / f"worker-{number}" / "meta.json"
        meta = json.loads(path.read_text())
        meta["runs"][0]["replicas"] = [0, 1]
        path.write_text(json.dumps(meta))
    with pytest.raises(ChildFailed, match=r"Worker 0 .* trained tower 0, 1 and not tower 0 of 2"):
        merge(tmp_path, 2, WHAT)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["model.ckpt-3.index"], ("written by the chief only", "worker 1 writes one too")),
        (["notes-1.txt"], ("no such file", "notes-1.txt, written by worker 1")),
        (["notes.txt"], None),
    ],
)
def test_what_a_worker_writes_beside_the_chief(
    files: list[str], said: tuple[str, str] | None, tmp_path: Path
) -> None:
    chief = ["model.ckpt-3.index", "notes.txt"]
    made = merge(trace(tmp_path / "made", files=(chief, files)), 2, WHAT)
    original = recording(tmp_path / "original", [])
    original.meta["files"] = chief
    found, _ = doing_differences(original, original, made, within=1e-3)
    assert [(each.expected, each.actual) for each in found] == ([] if said is None else [said])


# ---- whole programs ------------------------------------------------------------------------------


def verified(tree: Path, after: Path, scratch: Path, **options: Any) -> Any:
    """The report of two workers, and that no process is left of them."""
    asked = {"devices": ("workers:2",), "steps": 3, **options}
    report = run_verify(VerifyOptions(tree, rewritten=after, **asked))
    assert not running(scratch)
    return report


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where verify works, so that its processes can be told from others'."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def running(folder: Path) -> list[str]:
    """The commands of the processes that were given a path below `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


def test_two_workers_train_as_two_towers_did(
    tree: Path, rewritten: Callable[..., Path], scratch: Path
) -> None:
    report = verified(tree, rewritten(), scratch, steps=2)
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    (run,) = report.runs
    assert (run.devices, run.replicas) == ("workers:2", 2)
    assert {each.verdict for each in run.levels} == {"equal"}


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["mnist_feed", "cifar_queue", "cifar_same_batch", "staged_gan", "wgan_gp"]
)
def test_the_fixtures_are_equal_on_two_workers(name: str) -> None:
    report = run_verify(VerifyOptions(FIXTURES / name / "before", devices=("workers:2",), steps=3))
    document = json.dumps(report.to_json(), indent=1)
    assert (report.error, report.exit_code) == (None, 0), document
    assert not report.not_compared


@pytest.mark.full
def test_three_workers_and_two_towers_in_one_verify(
    tree: Path, rewritten: Callable[..., Path], scratch: Path
) -> None:
    report = verified(tree, rewritten(), scratch, devices=("cpu:2", "workers:3", "workers:2"))
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    assert [(run.devices, run.replicas) for run in report.runs] == [
        ("cpu:2", 2), ("workers:3", 3), ("workers:2", 2),
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("pattern", "by", "found"),
    [
        pytest.param(
            r"tm\.tower_gradients\(\s*opt, first_loss.*\)",
            "opt.compute_gradients(first_loss, variables.trainable())",
            ("gradient", None),
            id="summed in place of averaged",
        ),
        pytest.param(
            r"return first_loss, second_loss",
            "return first_loss * (1.5 if tm.tower_index() == 1 else 1.0), second_loss",
            ("forward", 1),
            id="the loss of one tower",
        ),
        pytest.param(
            LOOP,
            ON_ONE.format("variables.trainable()[0].assign_add(variables.trainable()[0])"),
            ("update", 1),
            id="a variable that one worker changes",
        ),
        pytest.param(
            LOOP,
            ON_ONE.format("open('extra.txt', 'w').close()"),
            ("output", 1),
            id="a file that one worker writes",
        ),
    ],
)
def test_a_fault_is_found_with_its_worker(
    pattern: str,
    by: str,
    found: tuple[str, int | None],
    tree: Path,
    rewritten: Callable[..., Path],
    scratch: Path,
) -> None:
    report = verified(tree, rewritten(pattern, by), scratch)
    assert (report.error, report.exit_code) == (None, 1), report.to_json()
    first = report.runs[0].first_difference
    assert first is not None and (first.level, first.replica) == found
    if first.level == "gradient":
        assert "division by the number of towers" in report.runs[0].diagnosis[0].cause


@pytest.mark.full
@pytest.mark.parametrize(
    ("does", "said", "limit"),
    [
        pytest.param(
            "print('so far'); os.kill(os.getpid(), signal.SIGKILL)",
            r"(?s)^Worker 1 of the rewritten program on workers:2 was killed \(signal 9.*so far",
            200.0,
            id="is killed",
        ),
        pytest.param(
            "raise KeyError('lost')",
            r"(?s)^Worker 1 of the rewritten program on workers:2 failed: KeyError: 'lost'\..*raise KeyError",
            200.0,
            id="raises",
        ),
        pytest.param(
            "os._exit(0)",
            r"^Worker 1 of the rewritten program on workers:2 ended without a recording",
            200.0,
            id="leaves",
        ),
        pytest.param(
            "time.sleep(600)",
            r"^The rewritten program on workers:2 ran past the limit of 20 s",
            20.0,
            id="hangs",
        ),
        pytest.param(
            "break",
            r"(?s)^The rewritten program on workers:2 ran past.*worker 1 is at its end and waits for worker 0",
            60.0,
            id="ends before the others",
        ),
    ],
)
def test_a_worker_that_does_not_go_on_ends_all_and_is_named(
    does: str,
    said: str,
    limit: float,
    tree: Path,
    rewritten: Callable[..., Path],
    scratch: Path,
) -> None:
    after = rewritten(LOOP, ON_ONE.format(does))
    report = verified(tree, after, scratch, timeout_s=limit)
    assert report.exit_code == 3
    assert re.search(said, report.error or ""), report.error


@pytest.mark.full
def test_a_strategy_of_its_own_is_said(
    tree: Path, rewritten: Callable[..., Path], scratch: Path
) -> None:
    after = rewritten(r"tower_strategy\(NUM_TOWERS\)", "tower_strategy(NUM_TOWERS, 'cpu:2')")
    report = verified(tree, after, scratch)
    assert report.exit_code == 3
    assert "its strategy is not the one of the cluster" in (report.error or "")


@pytest.mark.full
def test_a_taken_port_is_given_up(
    tree: Path, rewritten: Callable[..., Path], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, tries = workers.addresses, []

    def taken(count: int) -> list[str]:
        tries.append(count)
        if len(tries) > 1:
            return found(count)
        return [f"127.0.0.1:{held.getsockname()[1]}", *found(count - 1)]

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        monkeypatch.setattr(workers, "addresses", taken)
        report = verified(tree, rewritten(), scratch)
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    assert tries == [2, 2]


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_verify(
    number: signal.Signals, tree: Path, rewritten: Callable[..., Path], scratch: Path
) -> None:
    after = rewritten(LOOP, ON_ONE.format("time.sleep(600)"))
    command = [sys.executable, "-m", "towermigrate", "verify", str(tree), "--rewritten", str(after)]
    root = str(HERE.parents[2])
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": root}
    verify = subprocess.Popen(
        [*command, "--devices", "workers:2"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A shell's background job, as this may be, ignores SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and verify.poll() is None:
            if sum("replay_tf2" in each for each in running(scratch)) == 2:
                break
            time.sleep(0.1)
        assert verify.poll() is None
        time.sleep(1)
        verify.send_signal(number)
        code = verify.wait(timeout=60)
        assert code == (-9 if number == signal.SIGKILL else 128 + number)
    finally:
        verify.kill()
        verify.wait()
    until = time.monotonic() + 20
    while running(scratch) and time.monotonic() < until:
        time.sleep(0.1)
    assert not running(scratch)
