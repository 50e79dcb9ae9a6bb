"""A Python that has jax and libtpu, for the tests that compile for a TPU.

It is the one that TOWERMIGRATE_TPU_PYTHON names, this one, or an environment that is built once, from the extra
`tpu-compile` of pyproject.toml, and kept in the user's cache: libtpu is 200 MB to fetch and 600 MB on the disk. Where it
cannot be had the tests are skipped, or fail under TOWERMIGRATE_REQUIRE_TPU_COMPILER=1. Before Python 3.11 they are always
skipped: these releases have nothing for it.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_FIND = "import jax, libtpu"
_TIMEOUT_S = 1200


def required_compiler() -> str:
    """The interpreter; skips the test (or fails it, where the compiler is required) when there is none."""
    if sys.version_info < (3, 11):
        pytest.skip("jax and libtpu need Python 3.11 or later (see tests/tpu_env.py)")
    found = tpu_python()
    if found is None:
        reason = "jax and libtpu are not here and could not be installed (see tests/tpu_env.py)"
        if os.environ.get("TOWERMIGRATE_REQUIRE_TPU_COMPILER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@functools.cache
def tpu_python() -> str | None:
    """The path of a Python with jax and libtpu, None when it cannot be had."""
    named = os.environ.get("TOWERMIGRATE_TPU_PYTHON")
    for candidate in [named] if named else [sys.executable, str(_environment() / "bin" / "python")]:
        if _has(candidate):
            return candidate
    return None if named or sys.version_info < (3, 11) else _built()


def packages() -> list[str]:
    """What the extra `tpu-compile` asks for."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^tpu-compile = \[(.*)\]$", text, re.MULTILINE)
    assert found is not None
    return re.findall(r'"([^"]+)"', found[1])


def _built() -> str | None:
    python = _environment() / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", *packages()]
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", _environment()],
            check=True,
            capture_output=True,
        )
        subprocess.run(install, check=True, capture_output=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(python) if _has(str(python)) else None


def _environment() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = "-".join(each.replace("==", "") for each in packages())
    return cache / "towermigrate" / f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}"


def _has(python: str) -> bool:
    try:
        done = subprocess.run([python, "-c", _FIND], capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
