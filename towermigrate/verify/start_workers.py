"""Start the workers of one rewritten program and see them all to their end.

The child process of `verify` on `workers:N`: `python -m towermigrate.verify.start_workers CONFIG.json`. Each worker is a
process of `replay_tf2.py`, told by `TF_CONFIG` which one it is. All of them are children of this one, so that they are
fenced, limited and ended together. The first that fails ends the others, which would wait for it in their next
collective; which one it was is left in the folder of the recording, and what it said last is what is printed last.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import IO, Any

from towermigrate.verify.probe.recording import FAILED_WORKER

_KEPT_LINES = 60
# A line is passed on in pieces of so many bytes.
_LONGEST = 4000
_LOOK_S = 1.0
_END_S = 10.0


class _Worker:
    """One process, its recording's folder and its last lines."""

    def __init__(self, number: int, config_path: str, config: dict[str, Any]) -> None:
        own = config["workers"][number]
        task = {
            "cluster": {"worker": config["addresses"]},
            "task": {"type": "worker", "index": number},
        }
        self.number = number
        self.recording = Path(own["trace"]) / "meta.json"
        self.last: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "towermigrate.verify.replay_tf2", config_path, str(number)],
            cwd=own["tree"],
            env={**os.environ, "TF_CONFIG": json.dumps(task)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def pass_on(self, stream: IO[bytes], out: IO[bytes], turn: threading.Lock) -> None:
        """Print what the worker prints, its name before each line."""
        name = b"worker %d: " % self.number
        while line := stream.readline(_LONGEST):
            line = line.rstrip(b"\n") + b"\n"
            self.last.append(line)
            with turn:
                out.write(name + line)
                out.flush()


def main(config_path: str) -> int:
    """Run the workers that the configuration names. The exit code: 0 where all of them recorded to their end."""
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    out, turn = sys.stdout.buffer, threading.Lock()
    ended: queue.Queue[_Worker] = queue.Queue()
    workers: list[_Worker] = []
    readers: list[threading.Thread] = []
    failed = None
    try:
        for number in range(len(config["workers"])):
            worker = _Worker(number, config_path, config)
            workers.append(worker)
            arguments = (worker.process.stdout, out, turn)
            readers.append(threading.Thread(target=worker.pass_on, args=arguments, daemon=True))
            waiter = threading.Thread(target=_wait, args=(worker, ended), daemon=True)
            readers[-1].start()
            waiter.start()
        failed = _first_that_fails(workers, ended, out, turn)
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
        for reader in readers:
            reader.join(timeout=_END_S)
    if failed is None:
        return 0
    code = failed.process.returncode
    with turn:
        out.write(b"worker %d ended with code %d; it said last:\n" % (failed.number, code))
        out.writelines(failed.last)
        out.flush()
    said = {"worker": failed.number, "code": code}
    path = Path(config["trace"]) / FAILED_WORKER
    path.write_text(json.dumps(said), encoding="utf-8")
    return 1


def _wait(worker: _Worker, ended: queue.Queue[_Worker]) -> None:
    """Each worker has a thread that waits for it, so that the order of their ends is known."""
    worker.process.wait()
    ended.put(worker)


def _first_that_fails(
    workers: list[_Worker], ended: queue.Queue[_Worker], out: IO[bytes], turn: threading.Lock
) -> _Worker | None:
    """Wait for all workers; the first that ends with an error or leaves no recording, None where all are well."""
    left = set(range(len(workers)))
    waiting: set[int] = set()
    while left:
        try:
            worker = ended.get(timeout=_LOOK_S)
        except queue.Empty:
            done = {each.number for each in workers if each.recording.is_file()}
            for number in sorted(done - waiting if len(done) < len(workers) else ()):
                others = ", ".join(str(each.number) for each in workers if each.number not in done)
                with turn:
                    out.write(
                        f"worker {number} is at its end and waits for worker {others}\n".encode()
                    )
                    out.flush()
            waiting |= done
            continue
        if worker.process.returncode != 0 or not worker.recording.is_file():
            return worker
        left.discard(worker.number)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
