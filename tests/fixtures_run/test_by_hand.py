"""Fixtures whose `after/` is written by hand on the helpers: they train to the original's numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import tf1_env

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
NUMBERS = re.compile(r"-?\d+\.\d+")


def _run(python: str, script: Path, folder: Path, *args: str, **environment: str) -> list[float]:
    """The numbers that a program prints."""
    done = subprocess.run(
        [python, str(script), *args],
        cwd=folder,
        env={
            **os.environ,
            "TOWERMIGRATE_CHECKS": "1",
            "PYTHONPATH": str(ROOT) if python == sys.executable else "",
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
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("step ", "epoch "))]
    return [float(number) for line in lines for number in NUMBERS.findall(line)]


@pytest.mark.parametrize(
    "replicas",
    [1, pytest.param(2, marks=pytest.mark.full), 4],
    ids=lambda n: f"{n} replicas",
)
def test_the_tutorial_loop_trains_as_on_one_device(replicas: int, tmp_path: Path) -> None:
    loop = FIXTURES / "custom_loop"
    before = _run(
        sys.executable, loop / "before/tides.py", tmp_path, "--train_dir=a", TF_USE_LEGACY_KERAS="1"
    )
    devices = f"cpu:{replicas}"
    after = [
        _run(
            sys.executable,
            loop / "after/tides.py",
            tmp_path,
            f"--train_dir={train_dir}",
            TOWERMIGRATE_DEVICES=devices,
        )
        for train_dir in ("b", "a")  # from the beginning, and on from the other's checkpoint
    ]
    assert len(before) == 9  # three numbers in each of three epochs
    # Losses of order 0.1, printed with seven digits; sums in another order differ in the last ones.
    np.testing.assert_allclose(after[0], before, rtol=0, atol=1e-6)
    assert after[1][0] < 0.5 * before[0], "the checkpoint of one device was not restored"


def test_token_normalised_towers_go_on_as_the_original_would(tmp_path: Path) -> None:
    tensorflow = pytest.importorskip("tensorflow")
    python = tf1_env.tf1_python()
    if python is None:
        pytest.skip("no CPython 3.7 or 3.6 with TensorFlow 1.15.5")
    program = FIXTURES / "transformer_buckets"
    _run(str(python), program / "before/mirror.py", tmp_path, "--model_dir=original", "--steps=8")
    shutil.copytree(tmp_path / "original", tmp_path / "by_hand")
    before = _run(
        str(python), program / "before/mirror.py", tmp_path, "--model_dir=original", "--steps=5"
    )
    after = _run(
        sys.executable,
        program / "after/mirror.py",
        tmp_path,
        "--model_dir=by_hand",
        "--steps=5",
        TOWERMIGRATE_DEVICES="cpu:2",
    )
    assert len(before) == 5
    # Losses of order 3: float32 itself resolves 2.4e-7 of them.
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-6)
    paths = [
        tensorflow.train.latest_checkpoint(str(tmp_path / folder))
        for folder in ("original", "by_hand")
    ]
    names = [sorted(name for name, _ in tensorflow.train.list_variables(p)) for p in paths]
    assert names[0] == names[1]
    assert "embedding/Adam" in names[0]
    assert "embedding/Adam_1" in names[0]
    for name in names[0]:
        values = [tensorflow.train.load_variable(path, name) for path in paths]
        # Adam divides by the root of its second moment, so that a rounding error of a small
        # gradient shows in the update: of order 1e-6 of the learning rate's 3e-3 a step.
        np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.full
def test_a_critic_written_by_hand_is_the_towers(tmp_path: Path) -> None:
    from towermigrate.verify import VerifyOptions, run_verify

    fixture = FIXTURES / "wgan_gp"
    shutil.copytree(fixture / "before", tmp_path / "tree")
    report = run_verify(
        VerifyOptions(tmp_path / "tree", rewritten=fixture / "by_hand", devices=("cpu:2",), steps=6)
    )
    assert report.not_compared == ()
    (run,) = report.runs
    verdicts = {level.level: level.verdict for level in run.levels}
    # It prints and returns the slopes as well, which verify says.
    assert verdicts.pop("output") == "different"
    assert set(verdicts.values()) == {"equal"}, report.to_json()
    assert run.first_difference is not None and "slopes" in str(run.first_difference.actual)
    # The helper's penalty is the author's formula in another order of operations.
    assert run.max_abs["gradient"] < 1e-5
    assert run.max_abs["loss"] < 1e-6
