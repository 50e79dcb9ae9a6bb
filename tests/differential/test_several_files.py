"""A program in three files that trains or tests: objects for its inputs and its model, and what else goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.differential.spellings import asked_of

INPUTS = '''\
import numpy as np
import tensorflow as tf


class Pairs(object):
    """Two views of each row."""

    def __init__(self, settings, mode):
        self.settings = settings
        self.first_batch = None
        self.second_batch = None
        rows = np.linspace(-1.0, 1.0, 24 * 16).reshape(24, 4, 4, 1).astype(np.float32)
        row, = tf.train.slice_input_producer([tf.constant(rows)], shuffle=False)
        first, second = self.views(row)
        if mode == 'train':
            self.first_batch, self.second_batch = tf.train.batch([first, second], settings.rows)
        elif mode == 'test':
            self.first_batch = tf.stack([first, second], 0)

    def views(self, row):
        return row * 0.5, tf.image.flip_left_right(row)
'''

MODEL = '''\
from collections import namedtuple

import tensorflow as tf

settings_of = namedtuple('settings', 'rows, size, weight, all_summaries')


class Model(object):
    """Says one view from the other."""

    def __init__(self, settings, mode, first, second, reuse=None, number=0):
        self.settings = settings
        self.first = first
        self.second = second
        self.kept_in = ['model_' + str(number)]
        with tf.variable_scope('model', reuse=reuse):
            self.out = self.layers(first, settings.size)
        if mode == 'test':
            return
        self.losses = [tf.reduce_mean(tf.abs(self.out - second)) / 2 ** k for k in range(2)]
        self.total_loss = tf.add_n(self.losses) + settings.weight * tf.reduce_mean(self.out ** 2)
        self.tell()

    def layers(self, x, size):
        grows = tf.shape(x)[3] != size or size == 9
        out = x
        for k in range(2 if grows else 1):
            kernel = tf.get_variable('kernel_%d' % k, [1, 1, 1, 1], initializer=tf.constant_initializer(0.7))
            out = tf.nn.elu(tf.nn.conv2d(out, kernel, [1, 1, 1, 1], 'SAME'))
        return out

    def tell(self):
        with tf.device('/cpu:0'):
            for k in range(2):
                tf.summary.scalar('loss_of_' + str(k), self.losses[k], collections=self.kept_in)
                if self.settings.all_summaries:
                    tf.summary.image('shown_' + str(k), self.out, max_outputs=1, collections=self.kept_in)
            tf.summary.image('first', self.first, max_outputs=2, collections=self.kept_in)
'''

MAIN = """\
import argparse

import numpy as np
import tensorflow as tf

from inputs import *
from model import *

parser = argparse.ArgumentParser(description='Two views of a row.')
parser.add_argument('--mode', type=str, default='train')
parser.add_argument('--towers', type=int, default=2)
parser.add_argument('--anew', action='store_true')
args = parser.parse_args()


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)
        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    return averaged


def train(settings):
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        step_count = tf.Variable(0, trainable=False)
        rate = tf.train.piecewise_constant(step_count, [2, 4], [0.1, 0.05, 0.01])
        opt = tf.train.AdamOptimizer(rate)
        print('trains with', settings.rows)
        pairs = Pairs(settings, args.mode)
        first = pairs.first_batch
        second = pairs.second_batch
        firsts = tf.split(first, args.towers, 0)
        seconds = tf.split(second, args.towers, 0)
        tower_grads = []
        tower_losses = []
        reuse = None
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(args.towers):
                with tf.device('/gpu:%d' % i):
                    model = Model(settings, args.mode, firsts[i], seconds[i], reuse, i)
                    loss = model.total_loss
                    tower_losses.append(loss)
                    reuse = True
                    grads = opt.compute_gradients(loss)
                    tower_grads.append(grads)
        grads = average_gradients(tower_grads)
        train_op = opt.apply_gradients(grads, global_step=step_count)
        mean_loss = tf.reduce_mean(tower_losses)
        tf.summary.scalar('rate', rate, ['model_0'])
        tf.summary.scalar('mean_loss', mean_loss, ['model_0'])
        merged = tf.summary.merge_all('model_0')
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
        writer = tf.summary.FileWriter('logs', sess.graph)
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
        if args.anew:
            sess.run(step_count.assign(0))
        start = step_count.eval(session=sess)
        for step in range(start, 5):
            _, value = sess.run([train_op, mean_loss])
            print('step', step, 'loss', '%.6f' % value)
            if step and step % 2 == 0:
                writer.add_summary(sess.run(merged), global_step=step)
        saver.save(sess, 'ckpt/model', write_meta_graph=False)


def test(settings):
    pairs = Pairs(settings, args.mode)
    model = Model(settings, args.mode, pairs.first_batch, None)
    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    sess.run(tf.global_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
    for step in range(3):
        out = sess.run(model.out)
        print('step', step, 'says', '%.6f' % out.sum(), out.shape)


def main(_):
    settings = settings_of(rows=4, size=3, weight=0.1, all_summaries=True)
    if args.mode == 'train':
        train(settings)
    elif args.mode == 'test':
        test(settings)


if __name__ == '__main__':
    tf.app.run()
"""

Change = tuple[str, str]


def program(*changes: Change) -> Mapping[str, str]:
    files = {"train.py": MAIN, "inputs.py": INPUTS, "model.py": MODEL}
    for old, new in changes:
        assert any(old in text for text in files.values()), old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


MODE = "'--mode', type=str, default='train'"
ANEW = ("'--anew', action='store_true'", "'--anew', type=bool, default=True")

TAKEN = [
    case("that trains"),
    case("that trains from its first step", ANEW),
    case("that tests", (MODE, MODE.replace("train", "test"))),
]

LEFT = [
    other("that tests what it trained", "TM210", ("        train(settings)\n    elif args.mode == 'test':\n        test(settings)\n", "        train(settings)\n    test(settings)\n    print(len(tf.global_variables()))\n")),
    other("whose model is made twice", "TM219", ("        grads = average_gradients(tower_grads)\n", "        grads = average_gradients(tower_grads)\n        with tf.variable_scope(tf.get_variable_scope()):\n            again = Model(settings, 'train', first, second, True)\n")),
    other("whose inputs print a tensor", "TM208", ("        first, second = self.views(row)\n", "        first, second = self.views(row)\n        print(first)\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
