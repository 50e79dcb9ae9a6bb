"""What `verify` costs on a large program: the memory of every process, and the time of a recorded step.

    python tests/benchmark/verify_cost.py [--width 5000] [--layers 4] [--steps 2] [--batch 2] [--conv] [--devices cpu:2]

The program has LAYERS dense layers of WIDTH x WIDTH (4 x 5000: 100 million parameters), or with --conv LAYERS convolutions
that begin with WIDTH filters, SGD, two towers and BATCH rows for each. It and its rewritten form are run plainly once, for the time of their own steps; then it is verified. A process counts
with the most it had at once of its own (anonymous) memory and, beside it, with the recordings that it had mapped, which
the system takes back when it needs to. Steps are timed by the program itself, without the first.

The plain step is that of each program without a recording, the original's and the rewritten one's. On two idle cores,
in seconds (plain: original, rewritten; recorded: original, a second time, rewritten):

    --conv --width 64 --layers 8 --batch 32        0.162 0.167    0.204 0.231 0.200
    --conv --width 32 --layers 6 --batch 16        0.013 0.014    0.019 0.022 0.031
    --width 1500 --layers 4 --batch 512            0.155 0.150    0.336 0.183 0.191
    --width 1500 --layers 4 --batch 128            0.059 0.055    0.091 0.088 0.103
    --width 1500 --layers 4 --batch 2              0.021 0.020    0.055 0.050 0.067
    --width 32 --layers 3 --batch 16               0.0003 0.0008  0.0015 0.0025 0.0057

A recorded step has to take the gradients and the variables out of TensorFlow and to write or to compare each number once.
So one that hardly computes (a batch of two: each weight is used for two rows) takes 2.3 to 3.3 times as long, and one of a few
hundred numbers the millisecond or more that a file takes. Memory that the system gives out for the first time can take several
times longer than the rest: on a virtual machine the first writer of 72 MB waited 0.15 s, and 0.016 s for memory that had been
used before (the 0.336 above). Memory for 4 x 5000, two steps: the original 3.1 GiB and 0.4 mapped, a second time 3.1 and 1.6,
the rewritten program 2.8 and 1.1, verify itself 1.8 and 3.4.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from towermigrate.verify import VerifyOptions, run_verify

PROGRAM = """
import sys
import time

import numpy as np
import tensorflow as tf

NUM_TOWERS = 2
COLUMNS, WIDTH, LAYERS, BATCH, STEPS = {columns}, {width}, {layers}, {batch}, {steps}


def average_gradients(tower_grads):
    average = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        average.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return average


def main():
    rng = np.random.RandomState(3)
    opt = tf.train.GradientDescentOptimizer(0.01)
    x = tf.placeholder(tf.float32, [None, COLUMNS])
    parts = tf.split(x, NUM_TOWERS)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_TOWERS):
            with tf.device("/gpu:%d" % i):
                with tf.name_scope("tower_%d" % i):
                    h = parts[i]{layers_of_tower}
                    loss = tf.reduce_mean(tf.square(h))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
    train = opt.apply_gradients(average_gradients(tower_grads))
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(STEPS):
            feed = {{x: rng.normal(size=[BATCH * NUM_TOWERS, COLUMNS])}}
            began = time.time()
            _, value = sess.run([train, loss], feed_dict=feed)
            sys.stderr.write("took %f\\n" % (time.time() - began))
            print("step %d: %.6f" % (step, value))


if __name__ == "__main__":
    main()
"""


_DENSE = """
                    for n in range(LAYERS):
                        h = tf.layers.dense(h, WIDTH, tf.nn.tanh, name="dense_%d" % n)"""
# Images of 32 x 32: WIDTH filters, and after each second layer twice as many and half the rows and columns.
_CONV = """
                    h = tf.reshape(h, [-1, 32, 32, 3])
                    for n in range(LAYERS):
                        h = tf.layers.conv2d(
                            h, WIDTH << n // 2, 3, 1 + n % 2, "same", activation=tf.nn.relu, name="conv_%d" % n
                        )
                    h = tf.layers.dense(tf.layers.flatten(h), 10, name="logits")"""


def program(width: int, layers: int, batch: int, steps: int, *, convolutions: bool = False) -> str:
    """The text of the program."""
    return PROGRAM.format(
        layers_of_tower=_CONV if convolutions else _DENSE,
        columns=32 * 32 * 3 if convolutions else width,
        width=width,
        layers=layers,
        batch=batch,
        steps=steps,
    )


class Watch:
    """Looks at the memory of this process and of all it starts, ten times a second."""

    def __init__(self) -> None:
        self.own: dict[str, float] = {}
        self.mapped: dict[str, float] = {}
        self.over = False
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.over:
            for process in _tree(os.getpid()):
                self._note(process)
            time.sleep(0.1)

    def _note(self, process: int) -> None:
        try:
            status = Path(f"/proc/{process}/status").read_text()
            words = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            return
        name = "verify" if process == os.getpid() else "guardian"
        for word in words if "guardian" not in " ".join(words) else ():
            if "config.json" in word:
                name = Path(word).parent.name
        for key, kept in (("RssAnon", self.own), ("RssFile", self.mapped)):
            found = re.search(rf"{key}:\s+(\d+)", status)
            size = int(found.group(1)) / 2**20 if found else 0.0
            kept[name] = max(kept.get(name, 0.0), size)


def _tree(process: int) -> list[int]:
    found, ahead = [], [process]
    while ahead:
        found.append(ahead.pop())
        try:
            for task in Path(f"/proc/{found[-1]}/task").iterdir():
                ahead += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _step(output: str) -> float:
    """The median of the steps' times but the first."""
    times = [float(each) for each in re.findall(r"took ([\d.]+)", output)]
    return statistics.median(times[1:] or times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("width", 5000), ("layers", 4), ("steps", 2), ("batch", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--conv", action="store_true", help="convolutions with WIDTH filters")
    parser.add_argument("--devices", default="cpu:2")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        tree, kept, plain = Path(top, "tree"), Path(top, "kept"), Path(top, "plain")
        tree.mkdir()
        plain.mkdir()
        text = program(asked.width, asked.layers, asked.batch, asked.steps, convolutions=asked.conv)
        (tree / "train.py").write_text(text)
        v1 = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()"
        (plain / "train.py").write_text(text.replace("import tensorflow as tf", v1))
        environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
        done = subprocess.run(
            [sys.executable, str(plain / "train.py")],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        rewritten = Path(top, "rewritten")
        rewritten.mkdir()
        (rewritten / "train.py").write_text(text)
        for command in (["-m", "towermigrate", "rewrite", "."], ["train.py"]):
            made = subprocess.run(
                [sys.executable, *command],
                cwd=rewritten,
                env={**environment, "TOWERMIGRATE_DEVICES": asked.devices},
                capture_output=True,
                text=True,
            )
            assert made.returncode == 0, made.stdout + made.stderr
        watch = Watch()
        options = VerifyOptions(
            tree, devices=(asked.devices,), steps=asked.steps, progress=print, keep=kept
        )
        began = time.monotonic()
        report = run_verify(options)
        took = time.monotonic() - began
        watch.over = True
        print(f"equal: {report.equal} {report.error or ''} in {took:.0f} s")
        print(f"plain step: {_step(done.stderr):.4f} s, rewritten: {_step(made.stderr):.4f} s")
        for log in sorted(kept.glob("*/output.txt")):
            print(f"recorded step, {log.parent.name}: {_step(log.read_text()):.4f} s")
        for name in sorted(watch.own):
            print(
                f"memory of {name}: {watch.own[name]:.2f} GiB, and {watch.mapped[name]:.2f} GiB mapped"
            )


if __name__ == "__main__":
    main()
