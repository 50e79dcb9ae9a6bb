"""Session style, idiom by idiom: a program means the same on mirrored variables as it did without them."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.session_idioms import load_all

ROOT = Path(__file__).parent.parent.parent

# Replicas are added up in another order than towers were, in float32; the idioms' numbers are of the order
# of 1 to 100, and errors of structure (a tower left out, a copy not written) far above this.
ABSOLUTE = 1e-6
RELATIVE = 2e-6

IDIOMS = load_all()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each idiom gives in a mode; one process runs all of them."""
    done: dict[str, Any] = {}

    def of(mode: str) -> dict[str, Any]:
        if mode not in done:
            written = tmp_path_factory.mktemp("idioms") / f"{mode}.pickle"
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            environment.pop("TOWERMIGRATE_DEVICES", None)
            environment.pop("TF_CONFIG", None)
            command = [sys.executable, "-m", "tests.helpers.session_worker", mode, str(written)]
            ran = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200
            )
            assert ran.returncode == 0 and written.exists(), ran.stderr[-3000:]
            done[mode] = pickle.loads(written.read_bytes())
        return done[mode]

    return of


# One process for each number; two replicas in every run of the tests.
@pytest.mark.parametrize(
    "replicas",
    [2, pytest.param(1, marks=pytest.mark.full), pytest.param(4, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("name", IDIOMS)
def test_idiom(name: str, replicas: int, results: Any) -> None:
    idiom = IDIOMS[name]
    expected, found = results("plain")[name], results(str(replicas))[name]
    assert not _failed(expected), expected
    if idiom.error and replicas > 1:
        assert _failed(found) and re.search(idiom.error, found), found
        return
    assert not _failed(found), found
    same(found, expected, name)
    if replicas > 1:
        said = results(str(replicas))[name + " warned"]
        said = re.sub(r"(?m)^.*no GPU is here.*$\n?", "", said)
        assert re.search(idiom.warning, said) if idiom.warning else not said, said


def _failed(result: Any) -> bool:
    return isinstance(result, str) and result.startswith("FAILED ")


def same(found: Any, expected: Any, where: str) -> None:
    """Raise where results differ: structure and text exactly, numbers within the tolerance."""
    if isinstance(expected, dict):
        assert isinstance(found, dict) and list(found) == list(expected), (where, found, expected)
        for key in expected:
            same(found[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), (where, found, expected)
        for index, each in enumerate(expected):
            same(found[index], each, f"{where}[{index}]")
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray), (where, found, expected)
        assert found.shape == expected.shape and found.dtype == expected.dtype, (
            where,
            found,
            expected,
        )
        np.testing.assert_allclose(
            found, expected, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True, err_msg=where
        )
    else:
        assert found == expected, (where, found, expected)


def test_differences_are_found() -> None:
    for found, expected in [
        ({"a": 1}, {"b": 1}),
        ([1.0], [1.0, 2.0]),
        (np.ones(3, "f"), np.ones(3)),
        (np.ones(3), np.ones(3) + 1e-5),
        ("w", "v"),
    ]:
        with pytest.raises(AssertionError):
            same(found, expected, "example")
