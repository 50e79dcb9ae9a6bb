"""A tower program of TF1's time, for test_tf1_checkpoints.py: trains, saves, restores, goes on.

Runs under TensorFlow 1.15.5 on Python 3.7 as `tf1_checkpoint_program.py PHASE FOLDER`. The test imports
`model`, `KINDS` and `batch` from here, so that both programs have them from one place.
"""

import os
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
TOWERS = 2
# Steps before the checkpoint, after it, and after the checkpoint that comes back.
BEFORE, AFTER, BACK = 5, 5, 3

# For each program the optimizers in the order applied, and the scope of each one's variables. The
# learning rate decays with the global step, so that a step that is not restored shows.
KINDS = {
    "adam": [(lambda step: v1.train.AdamOptimizer(rate(step, 1e-2)), None)],
    "momentum": [(lambda step: v1.train.MomentumOptimizer(rate(step, 0.1), 0.9), None)],
    "rmsprop": [
        (
            lambda step: v1.train.RMSPropOptimizer(rate(step, 1e-2), momentum=0.5, centered=True),
            None,
        )
    ],
    "adagrad": [(lambda step: v1.train.AdagradOptimizer(rate(step, 0.1)), None)],
    "staged": [
        (lambda step: v1.train.AdamOptimizer(rate(step, 1e-2)), "head"),
        (lambda step: v1.train.AdamOptimizer(rate(step, 1e-2), beta1=0.5), None),
    ],
}


def rate(step, initial):
    return v1.train.exponential_decay(initial, step, 4, 0.5, staircase=True)


def batch(number):
    """The rows of one step, for all towers."""
    rng = np.random.RandomState(number)
    return rng.normal(size=(8, 4)).astype("f"), rng.normal(size=(8, 1)).astype("f")


def model(x, y):
    """One tower's loss: layers, batch norm, a variable of its own."""
    with v1.variable_scope("body"):
        # A bias before batch norm has no gradient but rounding, which Adam would blow up to steps.
        hidden = v1.layers.dense(x, 6, use_bias=False)
        hidden = v1.layers.batch_normalization(hidden, momentum=0.5, training=True)
    with v1.variable_scope("head"):
        scale = v1.get_variable("scale", [6], initializer=v1.ones_initializer())
        score = v1.layers.dense(tf.nn.relu(hidden) * scale, 1, name="score")
    return tf.reduce_mean(tf.square(score - y))


class Original:
    """The tower graph and its session."""

    def __init__(self, kind):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device("/cpu:0"):
            v1.set_random_seed(3)
            step = v1.train.get_or_create_global_step()
            self.x = v1.placeholder(tf.float32, [None, 4])
            self.y = v1.placeholder(tf.float32, [None, 1])
            stages = [(make(step), scope) for make, scope in KINDS[kind]]
            grads = [[] for _ in stages]
            losses = []
            xs, ys = tf.split(self.x, TOWERS), tf.split(self.y, TOWERS)
            for i in range(TOWERS):
                with tf.device("/cpu:%d" % i), v1.name_scope("tower_%d" % i) as scope_name:
                    with v1.variable_scope(v1.get_variable_scope(), reuse=i > 0):
                        losses.append(model(xs[i], ys[i]))
                    for per_stage, (optimizer, scope) in zip(grads, stages):  # noqa: B905
                        per_stage.append(
                            optimizer.compute_gradients(losses[i], v1.trainable_variables(scope))
                        )
                    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS, scope_name)
            average = tf.train.ExponentialMovingAverage(0.9, step)
            self.train = []
            for per_stage, (optimizer, _) in zip(grads, stages):  # noqa: B905
                averaged = [
                    (tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1])
                    for pairs in zip(*per_stage)  # noqa: B905
                ]
                apply = optimizer.apply_gradients(averaged, global_step=step)
                with tf.control_dependencies([apply] + updates):
                    self.train.append(average.apply(v1.trainable_variables()))
            self.loss = tf.add_n(losses) / TOWERS
            self.variables = {v.op.name: v for v in v1.global_variables()}
            self.saver = v1.train.Saver(v1.global_variables())
            self.initialize = v1.global_variables_initializer()
        config = v1.ConfigProto(device_count={"CPU": TOWERS})
        self.session = v1.Session(graph=self.graph, config=config)

    def run(self, first, steps):
        losses = []
        for number in range(first, first + steps):
            x, y = batch(number)
            for train in self.train:
                fetched = self.session.run([self.loss, train], {self.x: x, self.y: y})
                losses.append(fetched[0])
        return losses

    def values(self):
        return self.session.run(self.variables)


def train(folder):
    for kind in KINDS:
        program = Original(kind)
        program.session.run(program.initialize)
        program.run(0, BEFORE)
        at_checkpoint = program.values()
        os.makedirs(os.path.join(folder, kind))
        program.saver.save(program.session, os.path.join(folder, kind, "model.ckpt"), BEFORE)
        losses = program.run(BEFORE, AFTER)
        write(folder, kind, "train", at_checkpoint, losses, program.values())


def go_on(folder):
    for kind in KINDS:
        program = Original(kind)
        program.saver.restore(program.session, os.path.join(folder, kind, "rewritten"))
        restored = program.values()
        losses = program.run(BEFORE + AFTER, BACK)
        write(folder, kind, "go_on", restored, losses, program.values())


def write(folder, kind, phase, at_checkpoint, losses, after):
    arrays = {"losses": np.array(losses)}
    arrays.update(("at/" + name, value) for name, value in at_checkpoint.items())
    arrays.update(("after/" + name, value) for name, value in after.items())
    np.savez(os.path.join(folder, kind, phase + ".npz"), **arrays)


if __name__ == "__main__":
    {"train": train, "go_on": go_on}[sys.argv[1]](sys.argv[2])
