"""Ask git what it knows of a tree: work that is not committed, files that it tracks although they are ignored."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def uncommitted(root: Path, *, timeout_s: float = 5.0) -> int:
    """How many files under `root` have changes that git does not hold; 0 without git or an answer in time.

    Untracked files count: nothing but towermigrate's own copy could bring them back.
    """
    # A monitor that the tree's own configuration names would be run by `git status`.
    command = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain", "--", ".")
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return len(done.stdout.splitlines()) if done.returncode == 0 else 0


def tracked_though_ignored(root: Path, *, timeout_s: float = 5.0) -> frozenset[str]:
    """The files under `root` that git tracks and a `.gitignore` names, with forward slashes; none without git."""
    command = ("git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-i", "--exclude-standard", "--", ".")  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    if done.returncode != 0:
        return frozenset()
    return frozenset(os.fsdecode(path) for path in done.stdout.split(b"\0") if path)
