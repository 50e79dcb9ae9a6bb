"""Stage 1 of `staged_gan_crash`: zeros leave the discriminator alone, and the generator trains as where None is dropped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "fixtures" / "staged_gan_crash" / "after" / "inpaint.py"

# Runs the rewritten program for so many iterations of stage 1 alone and keeps its variables.
RUN = """
import functools
import sys
import numpy as np
import tensorflow as tf
from towermigrate.helpers import _hooks

class Keep:
    def created(self, variables): self.variables = variables
    def tower_begin(self, index, names, args): return args
    def tower_end(self, index): pass
    def gradients(self, index, loss, grads_and_vars): pass
    def applied(self, optimizer, grads_and_vars, averaged): pass

source, iterations, policy, out = sys.argv[1:]
tf.random.set_seed(3)
_hooks.active = keep = Keep()
text = open(source, encoding="utf-8").read()
if policy == "skip":
    plain = "completion_loss, variables.trainable(),"
    assert plain in text
    text = text.replace(plain, plain + ' none="skip",')
# Initial values that are the same in every run: the layers' own depend on the order of tracing.
assert "tf.compat.v1.layers.dense(" in text
text = text.replace("tf.compat.v1.layers.dense(", "dense(")
initial = tf.compat.v1.random_normal_initializer(stddev=0.3, seed=5)
dense = functools.partial(tf.compat.v1.layers.dense, kernel_initializer=initial)
program = {"__name__": "inpaint", "dense": dense}
exec(compile(text, source, "exec"), program)
program.update(X_ITERATIONS=int(iterations), Y_ITERATIONS=0, Z_ITERATIONS=0)
program["train"](2, 4)
np.savez(out, **{v.name.replace("/", "."): v.numpy() for v in keep.variables.all()})
"""


def variables(folder: Path, iterations: int, policy: str) -> dict[str, np.ndarray]:
    out = folder / f"{policy}{iterations}.npz"
    command = [sys.executable, "-c", RUN, str(PROGRAM), str(iterations), policy, str(out)]
    environment = {
        **os.environ,
        "TOWERMIGRATE_CHECKS": "1",
        "TOWERMIGRATE_DEVICES": "cpu:2",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.full
def test_zeros_move_nothing_that_stage_one_does_not_reach(tmp_path: Path) -> None:
    start = variables(tmp_path, 0, "zeros")
    zeros = variables(tmp_path, 6, "zeros")
    skip = variables(tmp_path, 6, "skip")
    discriminator = [n for n in start if n.startswith("discriminator")]
    generator = [n for n in start if n.startswith("generator")]
    assert len(discriminator) == 4
    assert len(generator) == 4
    for name in discriminator:
        assert np.array_equal(zeros[name], start[name]), name
    for name in generator:
        assert not np.array_equal(zeros[name], start[name]), name
        assert np.array_equal(zeros[name], skip[name]), name
