"""Run originals: as their author wrote them, on TensorFlow 2's `compat.v1` or on a real TensorFlow 1."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tests.differential.running import Ran, run_program, run_under

CACHE = "TOWER_PROGRAMS_CACHE"
"""Names a folder for what originals did, so that they run once for many versions of the tool."""


def run_original(
    files: Mapping[str, str],
    entry: str,
    scratch: Path,
    tf1_python: str | None,
    *,
    again: bool = False,
) -> Ran:
    """What the author's files do.

    Args:
        tf1_python: a Python with TensorFlow 1; None takes `tensorflow.compat.v1` for `tensorflow`.
        again: run them even where it is known from an earlier run what they do (`CACHE`).
    """
    folder = os.environ.get(CACHE)
    name = hashlib.sha256(repr((sorted(files.items()), tf1_python)).encode()).hexdigest()
    kept = Path(folder, name) if folder else None
    if kept is not None and kept.exists() and not again:
        return cast(Ran, pickle.loads(kept.read_bytes()))
    tree = scratch / "original"
    shutil.rmtree(tree, ignore_errors=True)
    write_tree(tree, files)
    if tf1_python is None:
        ran = run_program(tree, entry, {}, as_tf1=True)
    else:
        ran = run_under(tf1_python, tree, entry)
    if kept is not None and not again:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(ran))
        part.rename(kept)
    return ran


def write_tree(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
