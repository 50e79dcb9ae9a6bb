"""A class of a GAN as people write it: builds, trains, samples, saves and loads by methods; what loop style takes of it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

BEGUN = "        if self.load('ckpt'):\n            print('loaded')\n"
ENDED = "        self.save('ckpt', counter)\n"
SAVE = """
    def save(self, folder, step):
        if not os.path.exists(folder):
            os.makedirs(folder)
        self.saver.save(self.sess, os.path.join(folder, 'model'), global_step=step)
"""
LOAD = """
    def load(self, folder):
        state = tf.train.get_checkpoint_state(folder)
        if state and state.model_checkpoint_path:
            self.saver.restore(self.sess, state.model_checkpoint_path)
            return True
        return False
"""
SAMPLER = "        self.sampler = self.generator(self.z, True)\n"
LOSSES = "                errD = self.sess.run(self.d_loss, {self.x: x, self.z: z})\n                errG = self.sess.run(self.g_loss, {self.z: z})\n"  # fmt: skip
INIT = "        self.sess.run(tf.global_variables_initializer())\n"
OPENED = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n        gan = GAN(sess, 2, 2, 0.05)\n        gan.train(data, 2)\n"  # fmt: skip
TEXT = (
    """import os

import numpy as np
import tensorflow as tf


def init(*shape):
    return tf.constant_initializer(np.linspace(-0.4, 0.6, int(np.prod(shape))).reshape(shape))


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        averaged.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return averaged


class GAN(object):
    def __init__(self, sess, towers, rows, rate):
        self.sess = sess
        self.towers = towers
        self.rows = rows
        self.rate = rate
        self.build_model()

    def generator(self, z, reuse=False):
        with tf.variable_scope('generator', reuse=reuse):
            h = tf.nn.relu(tf.layers.dense(z, 3, kernel_initializer=init(2, 3), name='g_h0'))
            return tf.nn.tanh(tf.layers.dense(h, 2, kernel_initializer=init(3, 2), name='g_h1'))

    def discriminator(self, x, reuse=False):
        with tf.variable_scope('discriminator', reuse=reuse):
            h = tf.nn.sigmoid(tf.layers.dense(x, 3, kernel_initializer=init(2, 3), name='d_h0'))
            return tf.layers.dense(h, 1, kernel_initializer=init(3, 1), name='d_h1')

    def build_model(self):
        self.x = tf.placeholder(tf.float32, [self.towers * self.rows, 2], name='x')
        self.z = tf.placeholder(tf.float32, [self.towers * self.rows, 2], name='z')
        d_opt = tf.train.AdamOptimizer(self.rate, beta1=0.5)
        g_opt = tf.train.AdamOptimizer(self.rate, beta1=0.5)
        d_tower, g_tower = [], []
        for i in range(self.towers):
            with tf.device('/gpu:%d' % i):
                with tf.name_scope('gpu_%d' % i):
                    x = self.x[i * self.rows:(i + 1) * self.rows]
                    z = self.z[i * self.rows:(i + 1) * self.rows]
                    made = self.generator(z, reuse=i > 0)
                    real = self.discriminator(x, reuse=i > 0)
                    fake = self.discriminator(made, reuse=True)
                    d_loss = tf.reduce_mean(tf.nn.softplus(fake)) + tf.reduce_mean(tf.nn.softplus(-real))
                    g_loss = tf.reduce_mean(tf.nn.softplus(-fake))
                    t_vars = tf.trainable_variables()
                    d_vars = [var for var in t_vars if 'd_' in var.name]
                    g_vars = [var for var in t_vars if 'g_' in var.name]
                    d_tower.append(d_opt.compute_gradients(d_loss, var_list=d_vars))
                    g_tower.append(g_opt.compute_gradients(g_loss, var_list=g_vars))
        self.d_loss = d_loss
        self.g_loss = g_loss
        self.d_optim = d_opt.apply_gradients(average_gradients(d_tower))
        self.g_optim = g_opt.apply_gradients(average_gradients(g_tower))
"""
    + SAMPLER
    + """        self.saver = tf.train.Saver()

    def train(self, data, epochs):
"""
    + INIT
    + """        size = self.towers * self.rows
        counter = 0
        rng = np.random.RandomState(1)
"""
    + BEGUN
    + """        for epoch in range(epochs):
            for number in range(len(data) // size):
                x = data[number * size:(number + 1) * size]
                z = rng.uniform(-1, 1, [size, 2]).astype(np.float32)
                self.sess.run(self.d_optim, feed_dict={self.x: x, self.z: z})
                self.sess.run(self.g_optim, feed_dict={self.z: z})
"""
    + LOSSES
    + """                counter += 1
                print(epoch, number, '%.6f %.6f' % (errD, errG))
        print('%.6f' % self.sess.run(self.sampler, {self.z: z}).mean())
"""
    + ENDED
    + SAVE
    + LOAD
    + """

def main():
    data = ((np.arange(24).reshape(12, 2) % 7) * 0.1).astype(np.float32)
"""
    + OPENED
    + """

if __name__ == '__main__':
    main()
"""
)
COUNTED = """
    def load(self, folder):
        import re
        state = tf.train.get_checkpoint_state(folder)
        if state and state.model_checkpoint_path:
            name = os.path.basename(state.model_checkpoint_path)
            self.saver.restore(self.sess, os.path.join(folder, name))
            return True, int(re.findall('[0-9]+', name)[-1])
        else:
            return False, 0
"""
PAIR = (BEGUN, "        loaded, at = self.load('ckpt')\n        if loaded:\n            counter = at\n            print('loaded', at)\n")  # fmt: skip
AGAIN = (OPENED, OPENED + "        gan.train(data, 1)\n")
OWN = (
    ("__init__(self, sess, ", "__init__(self, "),
    ("        self.sess = sess\n", ""),
    ("        self.saver = tf.train.Saver()\n", "        self.saver = tf.train.Saver()\n        self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n"),
    (OPENED, "    gan = GAN(2, 2, 0.05)\n    gan.train(data, 2)\n"),
)  # fmt: skip
EVERY = (LOSSES, LOSSES + "                if counter % 2 == 1:\n                    self.save('ckpt', counter)\n")  # fmt: skip
EVAL = (LOSSES, "                errD = self.d_loss.eval({self.x: x, self.z: z})\n                errG = self.g_loss.eval({self.z: z})\n")  # fmt: skip
RAN = (INIT, "        tf.global_variables_initializer().run()\n")
SAMPLED = """
    def sample(self, z):
        with tf.variable_scope('generator') as scope:
            scope.reuse_variables()
            h = tf.nn.relu(tf.layers.dense(z, 3, name='g_h0'))
            return tf.nn.tanh(tf.layers.dense(h, 2, name='g_h1'))
"""
OF_SAMPLES = ((SAMPLER, "        self.sampler = self.sample(self.z)\n"), (SAVE, SAMPLED + SAVE))
RESTORED = (ENDED, ENDED + "        print(self.load('ckpt'))\n        print('%.6f' % self.sess.run(self.sampler, {self.z: z}).mean())\n")  # fmt: skip


def program(*changes: Change) -> Mapping[str, str]:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


TAKEN = [
    taken("as it is"),
    taken("a session of its own", *OWN),
    taken("loaded, and from which step", (LOAD, COUNTED), PAIR),
    taken("loaded at the end", RESTORED),
    taken("loaded at the end, and from which step", (LOAD, COUNTED), PAIR, (ENDED, ENDED + "        print(self.load('ckpt'))\n")),
    taken("saved every other step", EVERY),
    taken("saved every other step, in a session of its own", *OWN, EVERY),
    taken("losses by eval", EVAL),
    taken("started by its own run", RAN),
    taken("a method that samples", *OF_SAMPLES),
    taken("all of these", (LOAD, COUNTED), PAIR, EVERY, EVAL, RAN, *OF_SAMPLES),
    taken("loaded in the middle", EVERY, ("                counter += 1\n", "                counter += 1\n                if counter == 4:\n                    print(self.load('ckpt'))\n")),
    taken("loaded in a comprehension", (ENDED, ENDED + "        print([self.load(name) for name in ('ckpt', 'none')])\n")),
    taken("saved by keywords", EVERY, ("self.save('ckpt', counter)", "self.save(step=counter, folder='ckpt')")),
    taken("another saver's name", ("self.saver", "self.keeper"), EVERY),
]  # fmt: skip

LEFT = [
    left("loaded by another name of the object", "TM205", (OPENED, OPENED + "        same = gan\n        print(same.load('ckpt'))\n")),
    left("a saver that is handed on", "TM205", (ENDED, ENDED + "        keep = self.saver\n        keep.save(self.sess, 'ckpt/more')\n"), EVERY, ("        self.saver = tf.train.Saver()\n", "        self.saver = tf.train.Saver()\n        self.saver = self.saver\n")),
    left("a load that sets what is read then", "TM205", (LOAD, LOAD.replace("            return True", "            self.begun = True\n            return True")), ("        self.sess = sess\n", "        self.sess = sess\n        self.begun = False\n"), (ENDED, ENDED + "        print(self.load('ckpt'), self.begun)\n")),
    left("trained twice", "TM205", AGAIN),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT, program)
