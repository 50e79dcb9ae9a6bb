"""Run a program in a forked child of a process that has imported TensorFlow already, and keep what it did.

Importing TensorFlow takes seconds, a fork milliseconds. The parent must not have made a session, a device or a
tensor: their threads do not survive a fork.
"""

from __future__ import annotations

import os
import pickle
import re
import runpy
import signal
import subprocess
import sys
import time
import traceback
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SETTINGS = {
    "TF_USE_LEGACY_KERAS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def prepare() -> None:
    """Import what the programs import; once in each process that runs them."""
    os.environ.update(SETTINGS)
    sys.dont_write_bytecode = True
    import tensorflow.compat.v1 as tf
    import tf_keras  # noqa: F401

    import towermigrate.helpers
    import towermigrate.migrate  # noqa: F401

    import tf_slim  # noqa: F401  (behind the helpers, which put back names that it looks for)  # isort: skip

    tf.layers.dense  # noqa: B018  (lazily loaded)
    tf.train.summary_iterator  # noqa: B018


@dataclass(frozen=True)
class Ran:
    """What a program did: its exit status (None where it was stopped), its output, what it left on the disk."""

    status: int | None
    printed: list[str]
    errors: str
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def last_words(self) -> str:
        """The end of the exception that ended it, or of what it wrote to standard error."""
        text = self.errors[self.errors.rfind("Traceback (most recent call last)") :].strip()
        lines = [line for line in text.split("\n") if "/site-packages/" not in line]
        kept = [line for line in lines if not line.startswith(("WARNING:", "Instructions for"))]
        return f"exit status {self.status}\n" + "\n".join(kept[-12:])


def run_program(
    tree: Path, entry: str, environment: dict[str, str], *, as_tf1: bool, timeout_s: float = 60
) -> Ran:
    """Run a script of a tree as `__main__`, in the tree.

    Args:
        as_tf1: let `import tensorflow` give `tensorflow.compat.v1`, without the behaviour of TensorFlow 2.
    """
    record, started = tree.parent / (tree.name + ".pickle"), time.monotonic()
    out, err = tree.parent / (tree.name + ".out"), tree.parent / (tree.name + ".err")
    child = os.fork()
    if child == 0:
        try:
            _child(tree, entry, environment, as_tf1, record, out, err)
        finally:
            os._exit(120)
    status = _awaited(child, started + timeout_s)
    return _ran(status, record, out, err, started)


def run_under(python: str, tree: Path, entry: str, timeout_s: float = 120) -> Ran:
    """`run_program` in a process of its own, of another Python with another TensorFlow."""
    record, started = tree.parent / (tree.name + ".pickle"), time.monotonic()
    out, err = tree.parent / (tree.name + ".out"), tree.parent / (tree.name + ".err")
    command = [python, __file__, *map(str, (tree, entry, record, out, err))]
    environment = {**os.environ, **SETTINGS, "PYTHONPATH": "", "TF2_BEHAVIOR": "0"}
    child = subprocess.Popen(command, env=environment)
    try:
        status = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        status = None
    return _ran(status, record, out, err, started)


def _ran(status: int | None, record: Path, out: Path, err: Path, started: float) -> Ran:
    left = pickle.loads(record.read_bytes()) if record.exists() else {}
    return Ran(
        status,
        out.read_text(encoding="utf-8", errors="replace").splitlines(),
        err.read_text(encoding="utf-8", errors="replace"),
        left.get("checkpoints", {}),
        left.get("events", {}),
        time.monotonic() - started,
    )


def _awaited(child: int, until: float) -> int | None:
    pause = 0.002
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def _child(
    tree: Path,
    entry: str,
    environment: dict[str, str],
    as_tf1: bool,
    record: Path,
    out: Path,
    err: Path,
) -> None:
    for path, to in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), to)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)
    os.environ.update(environment)
    os.chdir(tree)
    sys.argv = [entry]
    sys.path.insert(0, str(tree))
    import tensorflow.compat.v1 as tf

    if as_tf1:
        import tf_slim

        tf.disable_v2_behavior()
        tf.contrib = types.SimpleNamespace(slim=tf_slim, layers=tf_slim)
        sys.modules["tensorflow"] = tf
    status = 0
    try:
        runpy.run_path(entry, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    try:
        left = {"checkpoints": _checkpoints(tree), "events": _events(tree)}
        record.write_bytes(pickle.dumps(left, protocol=4))
    except BaseException:
        traceback.print_exc()
        status = 119
    sys.stderr.flush()
    os._exit(status)


def _checkpoints(tree: Path) -> dict[str, dict[str, Any]]:
    """Every checkpoint's arrays by name."""
    import tensorflow.compat.v1 as tf

    found = {}
    for path in sorted(tree.rglob("*.index")):
        reader = tf.train.load_checkpoint(str(path.with_suffix("")))
        names = reader.get_variable_to_shape_map()
        found[str(path.relative_to(tree))] = {name: reader.get_tensor(name) for name in names}
    return found


def _events(tree: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every folder's events: tag, step and value."""
    import tensorflow.compat.v1 as tf

    found: dict[str, list[tuple[Any, ...]]] = {}
    for path in sorted(tree.rglob("*tfevents*")):
        rows = found.setdefault(str(path.parent.relative_to(tree)), [])
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                number: tuple[float, ...] = ()
                if kind == "simple_value":
                    number = (value.simple_value,)
                elif kind == "histo":
                    one = value.histo
                    number = (one.min, one.max, one.num, one.sum, one.sum_squares)
                elif kind == "tensor":
                    number = tuple(float(x) for x in tf.make_ndarray(value.tensor).ravel())
                if re.search(r"(^|/)fraction_(of|over_\d+_of)_\d+_full$", value.tag):
                    number = ()  # how full a queue is just then, which is its threads' matter
                if value.tag != "global_step/sec":
                    rows.append((value.tag, event.step, *number))
        rows.sort()
    return found


if __name__ == "__main__":  # the child of `run_under`, which may be Python 3.7
    _tree, _entry, _record, _out, _err = sys.argv[1:]
    _child(Path(_tree), _entry, {}, False, Path(_record), Path(_out), Path(_err))
