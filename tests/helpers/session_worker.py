"""Runs every idiom in this process and writes what it gave: `python -m tests.helpers.session_worker MODE FILE`.

MODE is `plain`, `resource` (plain, with resource variables) or a number of replicas.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sys
import time
import traceback
import warnings
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import towermigrate.helpers as tm  # noqa: E402
from tests.helpers.session_idioms import Program, load_all  # noqa: E402


class SessionStyle(Program):
    """A rewritten program."""

    plain = False

    def begin(self, num_towers: int | None = None) -> None:
        tm.mirror_variables(num_towers)

    towers = staticmethod(tm.towers)  # type: ignore[assignment]
    device = staticmethod(tm.device)  # type: ignore[assignment]


# What a mode's results say of an idiom's warnings, after its name.
WARNED = " warned"


class _Warnings(logging.Handler):
    """Collects what the helpers warn of."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


def shown(value: Any) -> Any:
    """A result as lists of NumPy and text, so that another process can read it."""
    if isinstance(value, dict):
        return {str(key): shown(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic, int, float, bool)):
        array = np.asarray(value)
        return array if array.dtype.kind in "biuf" else array.tolist()
    return value if isinstance(value, (str, bytes, type(None))) else str(value)


def run_all(mode: str, only: list[str]) -> dict[str, Any]:
    """The result of every idiom, or its error's text."""
    tf.disable_v2_behavior()
    if mode == "resource":
        tf.enable_resource_variables()
    tf.logging.set_verbosity(tf.logging.ERROR)
    program = Program() if mode in ("plain", "resource") else SessionStyle()
    results: dict[str, Any] = {}
    said: list[str] = []
    logging.getLogger("towermigrate").addHandler(_Warnings(said))
    for name, idiom in load_all().items():
        if only and name not in only:
            continue
        graph = tf.Graph()
        begun = time.perf_counter()
        said.clear()
        with graph.as_default(), contextlib.redirect_stderr(open(os.devnull, "w")):
            try:
                program.begin(2)
                results[name] = shown(idiom.run(program))
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)
                lines = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in where][-4:]
                results[name] = f"FAILED {type(error).__name__}: {error} {lines}"
        results[name + WARNED] = "\n".join(said)
        if os.environ.get("TIMES"):
            print(f"{time.perf_counter() - begun:6.2f} {name}")
    return results


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        os.environ["TOWERMIGRATE_DEVICES"] = f"cpu:{sys.argv[1]}"
    found = run_all(sys.argv[1], sys.argv[3:])
    with open(sys.argv[2], "wb") as file:
        pickle.dump(found, file)
    # Threads of monitored sessions and queues may still be waiting.
    os._exit(0)
