"""Programs of every form that loop style takes, verified: probes stand where each form has its losses and updates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.grammar import Choices
from tests.differential.program import ENTRY, files_of, settled
from towermigrate.verify import VerifyOptions, run_verify

FAST = ("gradients=minimize_mean",)
FORMS = (
    "gradients=compute_mean",
    "gradients=tf_gradients",
    "gradients=tower_clip",
    "averaging=none_passed",
    "model=batch_norm updates=last",
    "model=slim",
    "loss=regularizer",
    "place=class",
    "place=guard",
    "loop=enumerate",
    "count=len_devices",
    "returns=dict run_place=function",
    "input=placeholders",
    "fetch=nested",
    "fetch=op_run",
    "feed=helper",
)


@pytest.mark.parametrize(
    "form", [*FAST, *(pytest.param(form, marks=pytest.mark.full) for form in FORMS)]
)
def test_it_trains_as_the_original_does(form: str, tmp_path: Path) -> None:
    for name, text in files_of(settled(Choices.parse(f"plain {form}"))).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = run_verify(VerifyOptions(tmp_path, devices=("cpu:2",), steps=3, entry=ENTRY))
    assert report.error is None
    assert report.not_compared == ()
    (run,) = report.runs
    assert run.first_difference is None
    assert report.equal
    # Losses of both towers, at each step: nothing was left out.
    assert run.max_abs["loss"] is not None and run.max_abs["gradient"] is not None


@pytest.mark.full
def test_a_count_that_cannot_be_set_is_that_of_the_towers_made(tmp_path: Path) -> None:
    (text,) = files_of(settled(Choices.parse("plain loop=enumerate"))).values()
    listed = "DEVICES = ['/gpu:0', '/gpu:1']"
    assert listed in text
    text = text.replace(listed, "DEVICES = ['/gpu:%d' % k for k in range(2)]")
    (tmp_path / ENTRY).write_text(text, encoding="utf-8")
    options = VerifyOptions(tmp_path, devices=("cpu:2", "cpu:4"), steps=2, entry=ENTRY)
    report = run_verify(options)
    assert [(run.devices, run.equal) for run in report.runs] == [("cpu:2", True)]
    assert report.error is not None and "It makes 2 by itself" in report.error


OF_A_CLASS = """\
import numpy as np
import tensorflow as tf


class Trainer:
    def build(self):
        self.x = tf.placeholder(tf.float32, [None, 3])
        self.y = tf.placeholder(tf.float32, [None, 1])
        self.lr = tf.placeholder(tf.float32, [])
        self.opt = tf.train.MomentumOptimizer(self.lr, 0.9)
        xs, ys = tf.split(self.x, 2), tf.split(self.y, 2)
        tower_grads = []
        for i in range(2):
            with tf.device('/gpu:%d' % i), tf.variable_scope('model', reuse=i > 0):
                w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.2))
                loss = tf.reduce_mean(tf.square(tf.matmul(xs[i], w) - ys[i]))
                tower_grads.append(self.opt.compute_gradients(loss))
        grads = []
        for pairs in zip(*tower_grads):
            grads.append((tf.add_n([grad for grad, _ in pairs]) / 2, pairs[0][1]))
        self.train_op = self.opt.apply_gradients(grads)
        self.loss = loss

    def train(self):
        rate = 0.1
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(4):
                x = np.arange(12).reshape(4, 3) * (step + 1) % 7 * 0.1
                feed = {self.x: x, self.y: x.sum(1, keepdims=True), self.lr: rate}
                _, value = sess.run([self.train_op, self.loss], feed_dict=feed)
                print('loss', value)
                rate *= 0.5


trainer = Trainer()
trainer.build()
trainer.train()
"""


@pytest.mark.full
def test_an_input_of_an_attribute_has_one_name_in_both_programs(tmp_path: Path) -> None:
    # The method that trains has a local name `x`, so that the towers' parameter for `self.x` is another one.
    (tmp_path / ENTRY).write_text(OF_A_CLASS, encoding="utf-8")
    report = run_verify(VerifyOptions(tmp_path, devices=("cpu:2",), steps=3, entry=ENTRY))
    assert report.error is None
    (run,) = report.runs
    assert run.first_difference is None and report.equal
