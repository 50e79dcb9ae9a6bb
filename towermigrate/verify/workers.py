"""`workers:N`: the rewritten program as N processes on this machine, under `MultiWorkerMirroredStrategy`.

Each worker is a whole run of the program, with a scratch copy of its own as on a machine of its own: what every worker
writes (a folder that it clears and makes anew) is not in another one's way, and that only the chief saves can be
seen. One guardian holds them all (`start_workers.py`). Worker k is replica k, so each records its own tower, and
`worker_traces.py` makes one recording of all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from towermigrate.vendor import copy_beside
from towermigrate.verify.children import ChildFailed, Ended
from towermigrate.verify.probe.recording import FAILED_WORKER
from towermigrate.verify.trace import Trace

COMMAND = ["-m", "towermigrate.verify.start_workers"]
# How often another program may take a port between its being found free and the worker's start.
_TRIES = 3
_PORT_TAKEN = re.compile(r"Could not start gRPC server|[Aa]ddress already in use")
_NO_PROXY = ("no_proxy", "NO_PROXY", "no_grpc_proxy")


def addresses(count: int) -> list[str]:
    """As many addresses on this machine whose ports are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    finally:
        for each in sockets:
            each.close()


def with_free_ports(attempt: Callable[[], Trace], folder: Path) -> Trace:
    """What `attempt` gives, which starts workers in `folder`; again where another program took one of their ports."""
    for number in range(_TRIES):
        try:
            return attempt()
        except ChildFailed as problem:
            if number == _TRIES - 1 or not _PORT_TAKEN.search(str(problem)):
                raise
            shutil.rmtree(folder, ignore_errors=True)
    raise AssertionError("unreachable")


def config_of_workers(folder: Path, trees: Iterable[Path], entry: str) -> dict[str, object]:
    """What `start_workers.py` and the workers are told beside what every program is.

    Args:
        folder: the run's.
        trees: the scratch copy of each worker.
        entry: the script, relative to a tree.
    """
    trees = list(trees)
    recordings = [str(folder_of(folder / "trace", number)) for number in range(len(trees))]
    return {
        "addresses": addresses(len(trees)),
        "recordings": recordings,
        "workers": [
            {
                "tree": str(tree),
                "entry": str(tree / entry),
                "helpers": None if (copy := copy_beside(tree, entry)) is None else str(copy),
                "trace": recording,
            }
            for tree, recording in zip(trees, recordings, strict=True)
        ],
    }


def folder_of(trace: Path, worker: int) -> Path:
    """Where a worker's own recording is, in the folder of the whole one."""
    return trace / f"worker-{worker}"


def environment() -> dict[str, str]:
    """What keeps the workers' talk on this machine where a proxy is set for others, and lets all of them print.

    Only what the chief prints is compared, but a worker that fails is to be heard.
    """
    local = "127.0.0.1,localhost"
    heard = {"TOWERMIGRATE_PRINT": "all"}
    return heard | {
        name: ",".join(filter(None, [os.environ.get(name), local]))
        for name in _NO_PROXY
        if os.environ.get(name) != "*"
    }


def failed_worker(trace: Path) -> tuple[int, Ended] | None:
    """The worker that failed first and how it ended; None where none did."""
    try:
        said = json.loads((trace / FAILED_WORKER).read_text(encoding="utf-8"))
        worker, code = int(said["worker"]), int(said["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return worker, Ended(signal=-code) if code < 0 else Ended(code=code)
