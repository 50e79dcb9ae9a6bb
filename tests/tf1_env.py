"""A Python that has TensorFlow 1.15, for the tests that run originals under the real thing.

TensorFlow 1.15 has wheels for CPython 3.6 and 3.7 only. Where there is such an interpreter (named by
TOWERMIGRATE_TF1_PYTHON, from pyenv, or on the path), an environment with TensorFlow 1.15.5 is built once and
kept in the user's cache. Without one the tests are skipped, or fail under TOWERMIGRATE_REQUIRE_TF1=1.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_PACKAGES = ("tensorflow==1.15.5", "protobuf<3.21")


def required_python() -> str:
    """The interpreter; skips the test (or fails it, where TensorFlow 1 is required) when there is none."""
    found = tf1_python()
    if found is None:
        reason = "no CPython 3.6 or 3.7 found for TensorFlow 1.15 (see tests/tf1_env.py)"
        if os.environ.get("TOWERMIGRATE_REQUIRE_TF1") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@functools.cache
def tf1_python() -> str | None:
    """The path of a Python with TensorFlow 1.15.5, None when it cannot be had."""
    for candidate in _candidates():
        if _version_of_tensorflow(candidate).startswith("1."):
            return candidate
        if _version(candidate) in ("3.6", "3.7"):
            built = _built(candidate)
            if built is not None:
                return built
    return None


def _candidates() -> Iterator[str]:
    named = os.environ.get("TOWERMIGRATE_TF1_PYTHON")
    if named:
        yield named
        return
    cached = _environment("3.7") / "bin" / "python"
    if cached.exists():
        yield str(cached)
    root = os.environ.get("PYENV_ROOT") or _output(["pyenv", "root"])
    if root:
        for minor in ("3.7", "3.6"):
            for path in sorted(Path(root, "versions").glob(f"{minor}.*/bin/python"), reverse=True):
                yield str(path)
    for name in ("python3.7", "python3.6"):
        on_path = shutil.which(name)
        if on_path:
            yield on_path


def _built(python: str) -> str | None:
    folder = _environment(_version(python))
    result = folder / "bin" / "python"
    try:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True, capture_output=True)
        for packages in (("pip<24.1",), _PACKAGES):
            install = [result, "-m", "pip", "install", "--quiet", "--upgrade", *packages]
            subprocess.run(install, check=True, capture_output=True, timeout=1200)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(result) if _version_of_tensorflow(str(result)).startswith("1.") else None


def _environment(version: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "towermigrate" / f"tf1.15-py{version}"


def _version(python: str) -> str:
    return _output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])


def _version_of_tensorflow(python: str) -> str:
    code = "import pkg_resources as p; print(p.get_distribution('tensorflow').version)"
    return _output([python, "-c", code])


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
