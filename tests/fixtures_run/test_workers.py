"""Rule 13: two workers train one rewritten program: the same losses on both, the chief saves and prints."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "fixtures" / "staged_gan_crash" / "after" / "inpaint.py"


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.mark.full
@pytest.mark.parametrize("prints", ["all", "chief"])
def test_two_workers_train_one_program(tmp_path: Path, prints: str) -> None:
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    running = []
    for index in range(2):
        folder = tmp_path / f"worker{index}"
        folder.mkdir()
        environment = {
            **os.environ,
            "TOWERMIGRATE_CHECKS": "1",
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            ),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        }
        environment.pop("TOWERMIGRATE_DEVICES", None)
        environment["TOWERMIGRATE_PRINT"] = prints
        running.append(
            subprocess.Popen(
                [sys.executable, str(PROGRAM), "--num_gpus", "2"],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ended = [(*each.communicate(timeout=240), each.returncode) for each in running]
    finally:
        for each in running:
            each.kill()
    for _, errors, code in ended:
        assert code == 0, errors[-2000:]
    losses = [
        [line for line in out.splitlines() if line.startswith("step ")] for out, _, _ in ended
    ]
    assert len(losses[0]) == 6
    assert losses[1] == (losses[0] if prints == "all" else [])
    saved = [sorted(p.name for p in (tmp_path / f"worker{i}").glob("*.index")) for i in range(2)]
    assert saved[0]
    assert saved[1] == []
