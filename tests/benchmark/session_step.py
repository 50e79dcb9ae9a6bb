"""The time of one step in session style against that of the tower graph it was, pairs in one run.

    python tests/benchmark/session_step.py [--towers 2 4] [--rounds 12]

Each program is built twice in one process: plainly under `tf.compat.v1` on virtual CPUs, one for each tower, and
in session style on as many replicas. The two take turns of a few steps each; of the rounds' ratios the median counts.
CPU time stands beside wall time, for machines that do something else as well.
"plus a fetch" also fetches a variable beside the train op, which session style reads in a second run.
The fixed cost is what a step takes where the model is hardly anything: session style updates each variable once, as the
tower graph does, and hands its value to every other replica; a step that computes for 10 ms hardly notices.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

import towermigrate.helpers as tm

Model = Callable[[Any], Any]


def nothing(x: Any) -> Any:
    """One small layer: what is left is the fixed cost."""
    return tf.layers.dense(x[:, :8], 1)


def many_variables(x: Any) -> Any:
    """Forty variables and little to compute."""
    h = x[:, :16]
    for _ in range(20):
        h = tf.layers.dense(h, 16, tf.nn.tanh)
    return h


def deep(x: Any) -> Any:
    """120 variables and some 10 ms to compute: where the updates still show."""
    h = x[:, :64]
    for _ in range(60):
        h = h + tf.layers.dense(h, 64, tf.nn.tanh)
    return h


def lstm(x: Any) -> Any:
    """An LSTM of 12 steps."""
    cell = tf.nn.rnn_cell.LSTMCell(32)
    return tf.nn.dynamic_rnn(cell, tf.reshape(x[:, :768], [-1, 12, 64]), dtype=tf.float32)[0]


def cnn(x: Any) -> Any:
    """Three convolutions, batch norm and a dense layer."""
    h = tf.reshape(x, [-1, 16, 16, 4])
    for filters in (16, 32, 32):
        h = tf.layers.conv2d(h, filters, 3, padding="same")
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=True))
    return tf.layers.dense(tf.layers.flatten(h), 10)


def wide(x: Any) -> Any:
    """Large dense layers: updates of many megabytes."""
    h = tf.layers.dense(x, 1024, tf.nn.relu)
    return tf.layers.dense(tf.layers.dense(h, 1024, tf.nn.relu), 10)


MODELS: dict[str, tuple[Model, int]] = {
    "one layer": (nothing, 8),
    "forty variables": (many_variables, 8),
    "sixty layers": (deep, 512),
    "LSTM": (lstm, 32),
    "CNN": (cnn, 16),
    "larger CNN": (cnn, 64),
    "wide layers": (wide, 64),
}


class Step:
    """A program and its session; `run` takes one step."""

    def __init__(
        self,
        model: Model,
        rows: int,
        count: int,
        begin: Callable[[int], None],
        towers: Callable[[Iterable[int]], Iterator[int]],
        device: Callable[[str], Any],
    ) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            begin(count)
            self.x = tf.placeholder(tf.float32, [rows * count, 1024])
            parts, found = tf.split(self.x, count), []
            step = tf.train.get_or_create_global_step()
            optimizer = tf.train.AdamOptimizer(1e-4)
            for i in towers(range(count)):
                with device(f"/cpu:{i}"), tf.variable_scope("net", reuse=i > 0):
                    loss = tf.reduce_mean(tf.square(model(parts[i])))
                found.append(optimizer.compute_gradients(loss))
            averaged = [
                (tf.add_n([g for g, _ in pairs]) / count, pairs[0][1])
                for pairs in zip(*found, strict=True)
            ]
            self.train = optimizer.apply_gradients(averaged, step)
            self.loss, self.step = loss, step
            init = tf.global_variables_initializer()
        config = tf.ConfigProto(device_count={"CPU": count}, allow_soft_placement=True)
        self.session = tf.Session(graph=self.graph, config=config)
        self.session.run(init)
        self.batch = np.random.RandomState(0).rand(rows * count, 1024).astype("f")

    def run(self, steps: int, with_step: bool) -> tuple[float, float]:
        """Seconds of one step, over some: of wall clock, and of CPU in all threads."""
        fetches = [self.train, self.loss, *([self.step] if with_step else [])]
        begun, before = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.session.run(fetches, {self.x: self.batch})
        spent = time.perf_counter() - begun, time.process_time() - before
        return spent[0] / steps, spent[1] / steps


def compare(name: str, count: int, rounds: int, with_step: bool) -> str:
    """One line of the table."""
    model, rows = MODELS[name]
    plain = Step(model, rows, count, lambda _: None, iter, tf.device)
    session = Step(model, rows, count, tm.mirror_variables, tm.towers, tm.device)
    once, _ = plain.run(3, with_step)
    session.run(3, with_step)
    steps = max(3, min(100, int(0.15 / once)))
    spent: dict[Step, list[tuple[float, float]]] = {plain: [], session: []}
    for turn in range(rounds):
        for program in (plain, session) if turn % 2 else (session, plain):
            spent[program].append(program.run(steps, with_step))
    ratios = [
        statistics.median(b[kind] / a[kind] for a, b in zip(*spent.values(), strict=True))
        for kind in (0, 1)
    ]
    a, b = (statistics.median(wall for wall, _ in each) * 1e3 for each in spent.values())
    for program in spent:
        program.session.close()
    title = f"{name}, plus a fetch" if with_step else name
    return f"{count:6}  {title:30} {a:8.2f} ms {b:8.2f} ms  {ratios[0]:5.2f}  {ratios[1]:5.2f}  {b - a:+6.2f} ms"


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--towers", type=int, nargs="+", default=[2, 4])
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--models", nargs="+", default=list(MODELS))
    asked = arguments.parse_args()
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(f"{'towers':6}  {'program':30} {'tower graph':>11} {'session':>11}  ratio    CPU  more")
    for count in asked.towers:
        for name in asked.models:
            for with_step in (False, True):
                print(compare(name, count, asked.rounds, with_step), flush=True)


if __name__ == "__main__":
    main()
