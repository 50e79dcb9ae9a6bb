"""One small program that trains, prints and saves, to be varied a line at a time: what it does can be compared."""

from __future__ import annotations

HEAD = """\
import numpy as np
import tensorflow as tf

DEVICES = ['/gpu:0', '/gpu:1']
drawn = [0]
"""

MODEL = """\
def init(*shape):
    return tf.constant_initializer(np.linspace(-0.4, 0.6, int(np.prod(shape))).reshape(shape))


def net(x):
    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))
    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
    return tf.matmul(x, w) + b


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)
        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    return averaged


def batch(rows):
    drawn[0] += 1
    x = (np.arange(rows * 3).reshape(rows, 3) * drawn[0] % 7) * 0.1
    return x, x.sum(1, keepdims=True)
"""

TRAIN = """\
def train():
    step_count = tf.train.get_or_create_global_step()
    opt = tf.train.MomentumOptimizer(0.1, 0.9)
    X = tf.placeholder(tf.float32, [None, 3])
    Y = tf.placeholder(tf.float32, [None, 1])
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(2):
            with tf.device('/gpu:%d' % i):
                with tf.name_scope('tower_%d' % i) as scope:
                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]
                    out = net(x)
                    loss = tf.reduce_mean(tf.square(out - y))
                    tf.get_variable_scope().reuse_variables()
                    grads = opt.compute_gradients(loss)
                    tower_grads.append(grads)
    grads = average_gradients(tower_grads)
    train_op = opt.apply_gradients(grads, global_step=step_count)
    saver = tf.train.Saver()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            bx, by = batch(4)
            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
            print('step', step, 'loss', '%.6f' % value)
        saver.save(sess, 'ckpt/model')
        print('draws', drawn[0])
"""

Change = tuple[str, str]


def program(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied; every `old` must be there."""
    text = "\n\n".join([HEAD, MODEL, TRAIN, "if __name__ == '__main__':\n    train()\n"])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}
