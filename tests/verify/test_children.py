"""Children end, with everything they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from towermigrate.verify.children import ChildFailed, run_child


def test_a_child_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('so far'); raise SystemExit('gone wrong')"]
    with pytest.raises(ChildFailed, match=r"(?s)The child ended with code 1.*so far.*gone wrong"):
        run_child(command, tmp_path, tmp_path / "log", {}, 30, "The child")


def test_a_child_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "log"
    with pytest.raises(ChildFailed, match="past the limit of 2 s"):
        run_child([sys.executable, "-c", code], tmp_path, log, {}, 2, "The child")
    pid = int(log.read_text().split()[0])
    for _ in range(50):
        if not _runs(pid):
            return
        time.sleep(0.1)
    pytest.fail("the grandchild is still there")


def test_a_terminated_parent_takes_its_child_along(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from towermigrate.verify.children import run_child\n"
        "sleeper = 'import os, time; os.write(1, str(os.getpid()).encode() + bytes([10])); time.sleep(60)'\n"
        "run_child([sys.executable, '-c', sleeper], Path('.'), Path('log'), {}, 60, 'It')\n"
    )
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}
    )
    log = tmp_path / "log"
    for _ in range(300):
        if log.exists() and log.read_text().endswith("\n"):
            break
        time.sleep(0.1)
    pid = int(log.read_text())
    parent.terminate()
    assert parent.wait(timeout=30) == 128 + signal.SIGTERM
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_child_does_not_inherit_tensorflow_2_behaviour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF2_BEHAVIOR", "1")
    code = "import os; print(os.environ.get('TF2_BEHAVIOR'))"
    log = tmp_path / "log"
    run_child([sys.executable, "-c", code], tmp_path, log, {}, 30, "The child")
    assert log.read_text().split() == ["None"]


def test_a_killed_parent_leaves_no_process_and_no_scratch_folder(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the guardian is Linux's")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from towermigrate.verify.children import run_child\n"
        "sleeper = 'import os, time; os.fork(); os.write(1, str(os.getpid()).encode() + bytes([10])); time.sleep(60)'\n"
        "command = [sys.executable, '-c', sleeper]\n"
        "run_child(command, Path('scratch'), Path('log'), {}, 60, 'It', scratch=Path('scratch').resolve())\n"
    )
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}
    )
    log = tmp_path / "log"
    for _ in range(300):
        if log.exists() and log.read_text().count("\n") == 2:
            break
        time.sleep(0.1)
    children = [int(line) for line in log.read_text().split()]
    parent.kill()
    parent.wait(timeout=30)
    for _ in range(100):
        if not scratch.exists() and not any(_runs(child) for child in children):
            return
        time.sleep(0.1)
    pytest.fail("something is left")
