"""Checkpoints between a TF1 tower program under TensorFlow 1.15.5 and the same program in session style."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import tf1_checkpoint_program as original
from tests.tf1_env import required_python

ROOT = Path(__file__).parents[2]
# As in test_tf1_checkpoints: kernels of two releases add up in another order, 2.4e-7 a step was measured.
TOLERANCE = 1e-6

# What a rewriter changes in the program.
CHANGES = [
    ("import tensorflow as tf\n", "import tensorflow as tf\nimport towermigrate.helpers as tm\n"),
    ("v1 = tf.compat.v1\n", "v1 = tf.compat.v1\nv1.disable_v2_behavior()\n"),
    (
        "            v1.set_random_seed(3)\n",
        "            tm.mirror_variables(TOWERS)\n            v1.set_random_seed(3)\n",
    ),
    ("for i in range(TOWERS):", "for i in tm.towers(range(TOWERS)):"),
    ('with tf.device("/cpu:%d" % i), v1', 'with tm.device("/cpu:%d" % i), v1'),
]

# Restores what TensorFlow 1 saved, goes on, saves, goes on.
SESSION = """

def session(folder):
    for kind in KINDS:
        program = Original(kind)
        program.saver.restore(program.session, os.path.join(folder, kind, "model.ckpt-5"))
        restored = program.values()
        losses = program.run(BEFORE, AFTER)
        after = program.values()
        program.saver.save(program.session, os.path.join(folder, kind, "rewritten"))
        write(folder, kind, "session", restored, losses, after)
        losses = program.run(BEFORE + AFTER, BACK)
        write(folder, kind, "session_back", after, losses, program.values())


if __name__ == "__main__":
    session(sys.argv[1])
"""


def rewritten() -> str:
    """The program in session style."""
    text = Path(original.__file__).read_text(encoding="utf-8")
    text = text[: text.index('\n\nif __name__ == "__main__":')]
    for before, after in CHANGES:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text + SESSION


@pytest.fixture(scope="module", params=[2, 4], ids=["2 replicas", "4 replicas"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained by TensorFlow 1, continued in session style, and from there by both."""
    tf1, here = required_python(), tmp_path_factory.mktemp("checkpoints")
    program = here / "program.py"
    program.write_text(rewritten(), encoding="utf-8")
    run([tf1, original.__file__, "train", str(here)])
    devices = {"TOWERMIGRATE_DEVICES": f"cpu:{request.param}", "PYTHONPATH": str(ROOT)}
    run([sys.executable, str(program), str(here)], **devices)
    run([tf1, original.__file__, "go_on", str(here)])
    return here


def run(command: list[str], **variables: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("TF2_BEHAVIOR", "PYTHONPATH")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env={**environment, **variables}
    )
    assert done.returncode == 0, done.stderr[-3000:]


def recorded(folder: Path, kind: str, phase: str) -> Callable[[str], dict[str, Any]]:
    arrays = np.load(folder / kind / f"{phase}.npz")
    return lambda part: {
        name: arrays[name] for name in arrays.files if name.partition("/")[0] == part
    }


def assert_close(actual: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    assert set(actual) == set(expected) and actual
    for name, value in expected.items():
        np.testing.assert_allclose(
            actual[name], value, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.full
@pytest.mark.parametrize("kind", original.KINDS)
def test_session_style_goes_on_where_tensorflow_1_stopped(folder: Path, kind: str) -> None:
    before, here = recorded(folder, kind, "train"), recorded(folder, kind, "session")
    assert_close(here("at"), before("at"), 0.0)
    assert_close(here("losses"), before("losses"), TOLERANCE)
    assert_close(here("after"), before("after"), TOLERANCE)


@pytest.mark.full
@pytest.mark.parametrize("kind", original.KINDS)
def test_tensorflow_1_goes_on_where_session_style_stopped(folder: Path, kind: str) -> None:
    here, then = recorded(folder, kind, "session_back"), recorded(folder, kind, "go_on")
    assert_close(then("at"), here("at"), 0.0)
    assert_close(then("losses"), here("losses"), TOLERANCE)
    assert_close(then("after"), here("after"), TOLERANCE)
