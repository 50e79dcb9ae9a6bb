"""Every fixture's programs run: the original under `tf.compat.v1`, the golden one on virtual CPUs.

This shows that both halves of a fixture are programs that train, and that as many losses come out
of both. That they train to the same numbers is what verify compares.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")  # Python 3.11
pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FIXTURES = sorted(
    path.parent
    for path in (ROOT / "fixtures").glob("*/fixture.toml")
    if 'style = "by_hand"' not in path.read_text(encoding="utf-8")  # those: test_by_hand.py
)

# "loss = 1.41", "Minibatch Loss= 2.31", "critic 0.40289, generator 0.71338"
_LOSS = re.compile(r"(?:loss ?=?|Loss=|critic|generator) (-?\d+\.\d+|-?nan|-?inf)\b")

_V1_HEADER = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nimport tf_slim\n"


def _read(fixture: Path) -> dict[str, object]:
    facts: dict[str, object] = tomllib.loads((fixture / "fixture.toml").read_text(encoding="utf-8"))
    return facts


def _as_v1(text: str) -> str:
    """A TF1 program's text, made to run under `tensorflow.compat.v1` of TensorFlow 2."""
    text = text.replace("import tensorflow as tf\n", _V1_HEADER, 1)
    return text.replace("tf.contrib.slim.", "tf_slim.").replace("tf.contrib.layers.", "tf_slim.")


def _run(
    folder: Path, fixture: dict[str, object], **environment: str
) -> subprocess.CompletedProcess[str]:
    scratch = folder.parent / (folder.name + "_scratch")
    scratch.mkdir()
    args = fixture["args"]
    assert isinstance(args, list)
    return subprocess.run(
        [sys.executable, str(folder / str(fixture["entry"])), *args],
        cwd=scratch,
        env={
            **os.environ,
            "TOWERMIGRATE_CHECKS": "1",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _losses(output: str) -> list[float]:
    return [float(number) for number in _LOSS.findall(output)]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_original_and_golden_program_both_train(fixture: Path, tmp_path: Path) -> None:
    facts = _read(fixture)
    shutil.copytree(fixture / "before", tmp_path / "before")
    for path in (tmp_path / "before").glob("*.py"):
        path.write_text(_as_v1(path.read_text(encoding="utf-8")), encoding="utf-8")
    before = _run(tmp_path / "before", facts, TF_USE_LEGACY_KERAS="1")

    shutil.copytree(fixture / "after", tmp_path / "after")
    after = _run(tmp_path / "after", facts, TOWERMIGRATE_DEVICES="cpu:2")
    assert after.returncode == 0, after.stdout + after.stderr
    after_losses = _losses(after.stdout)
    assert after_losses
    assert all(map(math.isfinite, after_losses)), after.stdout

    if not facts["runs_before"]:
        assert before.returncode == 1
        assert str(facts["error_before"]) in before.stderr
        return
    assert before.returncode == 0, before.stdout + before.stderr
    before_losses = _losses(before.stdout)
    assert all(map(math.isfinite, before_losses)), before.stdout
    assert len(after_losses) == len(before_losses)
