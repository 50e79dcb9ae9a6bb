"""Learn with an LSTM whether the sum of a sequence is positive; lengths differ, states are carried by hand."""
from __future__ import division, print_function

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn
from tensorflow.contrib.layers import l2_regularizer
from tensorflow.contrib.rnn import LSTMStateTuple

LENGTH = 6
CELLS = 5
BATCH = 8


def data(number):
    random = np.random.RandomState(number)
    values = random.uniform(-1, 1, [BATCH, LENGTH, 1]).astype(np.float32)
    lengths = random.randint(1, LENGTH + 1, [BATCH])
    for row, length in zip(values, lengths):
        row[length:] = 0
    return values, lengths, (values.sum(axis=(1, 2)) > 0).astype(np.int32)


def model():
    values = tf.placeholder(tf.float32, [None, LENGTH, 1], name='values')
    lengths = tf.placeholder(tf.int32, [None], name='lengths')
    labels = tf.placeholder(tf.int32, [None], name='labels')
    keep = tf.placeholder_with_default(1.0, [], name='keep')
    initializer = tf.random_uniform_initializer(-0.4, 0.4, seed=5)
    with tf.variable_scope('net', initializer=initializer, regularizer=l2_regularizer(0.001)):
        cells = [rnn.DropoutWrapper(rnn.BasicLSTMCell(CELLS), output_keep_prob=keep) for _ in range(2)]
        stacked = rnn.MultiRNNCell(cells)
        zeros = stacked.zero_state(tf.shape(values)[0], tf.float32)
        start = tuple(LSTMStateTuple(c=state.c + 0.1, h=state.h) for state in zeros)
        outputs, _ = tf.nn.dynamic_rnn(stacked, values, lengths, initial_state=start)
        forward, backward = rnn.GRUCell(CELLS), rnn.GRUCell(CELLS)
        both, _, _ = rnn.static_bidirectional_rnn(
            forward, backward, tf.unstack(values, axis=1), dtype=tf.float32, sequence_length=lengths)
        last = tf.concat([outputs[:, -1], both[-1]], axis=1)
        width = last.get_shape()[1].value
        weights = tf.get_variable('weights', [width, 2])
        logits = tf.nn.xw_plus_b(last, weights, tf.get_variable('bias', [2]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    penalty = tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    loss = tf.reduce_mean(losses, keep_dims=False) + penalty
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 10, 0.9)
    optimizer = tf.train.AdamOptimizer(rate)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(zip(clipped, variables), global_step=step)
    return (values, lengths, labels), loss, train_op, width


def main():
    tf.set_random_seed(2)
    inputs, loss, train_op, width = model()
    print('RESULT width %d' % width)
    saver = tf.train.Saver()
    path = os.path.join(tempfile.mkdtemp(), 'model')
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for number in range(10):
            value, _ = sess.run([loss, train_op], dict(zip(inputs, data(number))))
            print('RESULT loss %.5f' % value)
        saver.save(sess, path)
    with tf.Session() as sess:
        saver.restore(sess, path)
        print('RESULT again %.5f' % sess.run(loss, dict(zip(inputs, data(0)))))


if __name__ == '__main__':
    main()
