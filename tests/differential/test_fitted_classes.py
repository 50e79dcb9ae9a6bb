"""A class that builds its graph, fits and evaluates, whose methods have parameters and values of the same names."""

from __future__ import annotations

from collections.abc import Mapping

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

EVALUATE = """
    def evaluate(self, sess, x, y):
        return sess.run(self.error, {self.x: x, self.y: y})
"""
TEXT = (
    """import numpy as np
import tensorflow as tf


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)
        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    return averaged


class Regressor(object):
    def __init__(self, towers, rows, rate):
        self.towers = towers
        self.rows = rows
        self.rate = rate
        self.build_graph()

    def inference(self, x):
        first = tf.constant_initializer(np.linspace(-0.4, 0.6, 6).reshape(3, 2))
        last = tf.constant_initializer([[0.3], [-0.2]])
        hidden = tf.layers.dense(x, 2, tf.tanh, kernel_initializer=first, name='hidden')
        return tf.layers.dense(hidden, 1, kernel_initializer=last, name='out')

    def build_graph(self):
        self.step = tf.train.get_or_create_global_step()
        self.x = tf.placeholder(tf.float32, [None, 3], name='x')
        self.y = tf.placeholder(tf.float32, [None, 1], name='y')
        opt = tf.train.MomentumOptimizer(self.rate, 0.9)
        tower_grads = []
        tower_losses = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(self.towers):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('tower_%d' % i):
                        x = self.x[i * self.rows:(i + 1) * self.rows]
                        y = self.y[i * self.rows:(i + 1) * self.rows]
                        out = self.inference(x)
                        loss = tf.reduce_mean(tf.square(out - y))
                        tf.get_variable_scope().reuse_variables()
                        tower_grads.append(opt.compute_gradients(loss))
                        tower_losses.append(loss)
        grads = average_gradients(tower_grads)
        self.train_op = opt.apply_gradients(grads, global_step=self.step)
        self.loss = tf.reduce_mean(tower_losses)
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            out = self.inference(self.x)
        self.error = tf.reduce_mean(tf.abs(out - self.y))
        self.saver = tf.train.Saver(max_to_keep=2)
"""
    + EVALUATE
    + """
    def fit(self, x, y, epochs, folder):
        size = self.towers * self.rows
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            sess.run(tf.global_variables_initializer())
            for epoch in range(epochs):
                total = 0.0
                for start in range(0, len(x), size):
                    feed = {self.x: x[start:start + size], self.y: y[start:start + size]}
                    _, loss = sess.run([self.train_op, self.loss], feed_dict=feed)
                    total += loss
                print('epoch', epoch, '%.6f' % total)
                print('error', '%.6f' % self.evaluate(sess, x, y))
                self.saver.save(sess, folder + '/model', global_step=epoch)


def main():
    x = ((np.arange(36).reshape(12, 3) % 7) * 0.1).astype(np.float32)
    y = x.sum(1, keepdims=True)
    model = Regressor(2, 2, 0.1)
    model.fit(x, y, 2, 'ckpt')


if __name__ == '__main__':
    main()
"""
)
PRINTED = "                print('error', '%.6f' % self.evaluate(sess, x, y))\n"
BEHIND = "                self.saver.save(sess, folder + '/model', global_step=epoch)\n"
ANEW = "            out = self.inference(self.x)\n        self.error = tf.reduce_mean(tf.abs(out - self.y))\n"  # fmt: skip


def program(*changes: Change) -> Mapping[str, str]:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def printed(*lines: str) -> Change:
    return PRINTED, "".join(f"                {each}\n" for each in lines)


def evaluates(text: str) -> Change:
    return EVALUATE, text


def anew(*lines: str) -> Change:
    """What an evaluation builds under `reuse`, and what is made of it."""
    *inside, last = lines
    return ANEW, "".join(f"            {each}\n" for each in inside) + f"        {last}\n"


LATER = """
    def evaluate(self, sess, x, y):
        loss, total = 0.0, 0
        for start in range(0, len(x), 4):
            feed = {self.x: x[start:start + 4], self.y: y[start:start + 4]}
            loss += sess.run(self.error, feed)
            total += 1
        return loss / total
"""
INIT = "            sess.run(tf.global_variables_initializer())\n"
RUN = "                    _, loss = sess.run([self.train_op, self.loss], feed_dict=feed)\n"
FEED = "                    feed = {self.x: x[start:start + size], self.y: y[start:start + size]}\n"
OPENED = "        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"


def named(*lines: str) -> Change:
    """Names that `fit` gives to what the object holds."""
    return INIT, INIT + "".join(f"            {each}\n" for each in lines)


TRAINS = (RUN, RUN.replace("[self.train_op, self.loss]", "[train_op, mean]"))
FEEDS = (FEED, FEED.replace("{self.x:", "{images:").replace("self.y:", "labels:"))
SAVES = ("                self.saver.save(", "                saver.save(")
ERROR = "self.error = tf.reduce_mean(tf.abs(out - self.y))"
TAKEN = [
    taken("in an expression"),
    taken("by a statement", printed("error = self.evaluate(sess, x, y)", "print('error', '%.6f' % error)")),
    taken("twice, of other rows", printed("print('first', '%.6f' % self.evaluate(sess, x[:4], y[:4]))", "print('last', '%.6f' % self.evaluate(sess, x[4:], y[4:]))")),
    taken("a loop with the same names", evaluates(LATER)),
    taken("by keywords", printed("print('error', '%.6f' % self.evaluate(sess, images=x, labels=y))"), evaluates(EVALUATE.replace("x, y)", "images, labels)").replace(": x", ": images").replace(": y", ": labels"))),
    taken("with a default", evaluates(EVALUATE.replace("x, y)", "x, y, times=2)").replace("y})", "y}) * times"))),
    taken("only where it is the last", printed("if epoch == epochs - 1:", "    print('error', '%.6f' % self.evaluate(sess, x, y))")),
    taken("names of what is run", named("train_op = self.train_op", "mean = self.loss"), TRAINS),
    taken("two names at once", named("train_op, mean = self.train_op, self.loss"), TRAINS),
    taken("names of placeholders", named("images, labels = self.x, self.y"), FEEDS),
    taken("a name of the saver", named("saver = self.saver"), SAVES),
    taken("a session of the object by a name", (OPENED, "        self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n        sess = self.sess\n        with sess.as_default():\n")),
    taken("names in front of the session", (OPENED, "        train_op, mean = self.train_op, self.loss\n" + OPENED), TRAINS),
    taken("a setting by a name", named("rows = self.rows"), ("start + size], self.y", "start + 2 * rows], self.y")),
    taken("the evaluation's own name", anew("seen = self.inference(self.x)", ERROR.replace("out", "seen"))),
    taken("bound anew twice", anew("out = self.inference(self.x)", "out = out * 2.0", ERROR)),
    taken("what a tower gives, and then another", anew("out = self.inference(self.x)", "loss = tf.abs(out - self.y)", "self.error = tf.reduce_mean(loss)")),
]  # fmt: skip

LEFT = [
    left("a name of what the class has first", "TM205", ("class Regressor(object):\n", "class Regressor(object):\n    scale = 2.0\n\n"), ("        self.build_graph()\n", "        self.prepare()\n"), ("    def inference(", "    def prepare(self):\n        scale = self.scale\n        self.build_graph()\n        print('scale', scale)\n\n    def inference("), ("        self.saver = tf", "        self.scale = 3.0\n        self.saver = tf")),
    left("a name of what is set from outside", "TM203", named("mean = self.loss"), (RUN, RUN.replace("self.loss", "mean")), ("    model = Regressor(2, 2, 0.1)\n", "    model = Regressor(2, 2, 0.1)\n    model.loss = model.loss * 2.0\n")),
    left("a fit in a loop", "TM205", ("    model.fit(x, y, 2, 'ckpt')\n", "    for _ in range(2):\n        model.fit(x, y, 1, 'ckpt')\n")),
    left("a name of a loss that is set twice", "TM203", named("train_op = self.train_op", "mean = self.loss"), TRAINS, (INIT, INIT + "            self.loss = self.loss * 2.0\n")),
    left("a name that is bound anew", "TM209", named("mean, train_op = self.loss, self.train_op"),  (RUN, RUN.replace("[self.train_op, self.loss]", "[train_op, mean]") + "                    mean = self.error\n")),
    left("a name of a property", "TM205", named("mean, train_op = self.mean, self.train_op"), TRAINS, (EVALUATE, EVALUATE + "\n    @property\n    def mean(self):\n        return self.loss * 2.0\n")),
    left("a placeholder by the towers' names", "TM208", anew("x, y = self.x, self.y", "out = self.inference(x)", ERROR.replace("self.y", "y"))),
    left("what a tower left is read first", "TM211", anew("out = self.inference(out[:, :1] + self.x)", ERROR)),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT, program)
