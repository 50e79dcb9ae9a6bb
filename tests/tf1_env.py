"""A Python that has TensorFlow 1, for the tests that run programs under the real thing.

TensorFlow 1.15 has wheels for CPython 3.6 and 3.7 only, 1.3 (the oldest that `helpers/tf1.py` promises) for
3.6. Where there is such an interpreter (named by TOWERMIGRATE_TF1_PYTHON or TOWERMIGRATE_TF1_OLDEST_PYTHON,
from pyenv, or on the path), an environment is built once and kept in the user's cache. Without one the tests
are skipped, or fail under TOWERMIGRATE_REQUIRE_TF1=1.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Release:
    """A TensorFlow 1 release: what it is installed with, and on which Pythons, the best first."""

    version: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...]
    variable: str


NEWEST = Release(
    "1.15", ("3.7", "3.6"), ("tensorflow==1.15.5", "protobuf<3.21"), "TOWERMIGRATE_TF1_PYTHON"
)
OLDEST = Release(
    "1.3",
    ("3.6",),
    ("tensorflow==1.3.0", "protobuf<3.20", "numpy<1.17"),
    "TOWERMIGRATE_TF1_OLDEST_PYTHON",
)


def required_python(release: Release = NEWEST) -> str:
    """The interpreter; skips the test (or fails it, where TensorFlow 1 is required) when there is none."""
    found = tf1_python(release)
    if found is None:
        pythons = " or ".join(sorted(release.pythons))
        reason = (
            f"no CPython {pythons} found for TensorFlow {release.version} (see tests/tf1_env.py)"
        )
        if os.environ.get("TOWERMIGRATE_REQUIRE_TF1") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@functools.cache
def tf1_python(release: Release = NEWEST) -> str | None:
    """The path of a Python with that TensorFlow, None when it cannot be had."""
    for candidate in _candidates(release):
        if _has(candidate, release):
            return candidate
        if _version(candidate) in release.pythons:
            built = _built(candidate, release)
            if built is not None:
                return built
    return None


def _candidates(release: Release) -> Iterator[str]:
    named = os.environ.get(release.variable)
    if named:
        yield named
        return
    for minor in release.pythons:
        cached = _environment(release, minor) / "bin" / "python"
        if cached.exists():
            yield str(cached)
    root = os.environ.get("PYENV_ROOT") or _output(["pyenv", "root"])
    if root:
        for minor in release.pythons:
            for path in sorted(Path(root, "versions").glob(f"{minor}.*/bin/python"), reverse=True):
                yield str(path)
    for minor in release.pythons:
        on_path = shutil.which(f"python{minor}")
        if on_path:
            yield on_path


def _built(python: str, release: Release) -> str | None:
    folder = _environment(release, _version(python))
    result = folder / "bin" / "python"
    try:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True, capture_output=True)
        for packages in (("pip<24.1",), release.packages):
            install = [result, "-m", "pip", "install", "--quiet", "--upgrade", *packages]
            subprocess.run(install, check=True, capture_output=True, timeout=1200)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(result) if _has(str(result), release) else None


def _environment(release: Release, minor: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "towermigrate" / f"tf{release.version}-py{minor}"


def _version(python: str) -> str:
    return _output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])


def _has(python: str, release: Release) -> bool:
    code = "import pkg_resources as p; print(p.get_distribution('tensorflow').version)"
    return _output([python, "-c", code]).startswith(release.version + ".")


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
