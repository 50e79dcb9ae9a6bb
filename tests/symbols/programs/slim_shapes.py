"""Learn to tell bright squares from dark ones with a small slim network, from a TFRecord file, then evaluate it."""
from __future__ import print_function

import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.slim.python.slim.data import dataset_data_provider

flags = tf.app.flags
flags.DEFINE_integer('steps', 5, 'Training steps.')
flags.DEFINE_integer('batch_size', 4, 'Examples in a step.')
FLAGS = flags.FLAGS

SIDE = 8


def write_records(path):
    random = np.random.RandomState(3)
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(16):
            label = number % 2
            pixels = (random.uniform(0, 100, [SIDE, SIDE, 1]) + 120 * label).astype(np.uint8)
            feature = {
                'image/encoded': tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[pixels.tobytes()])),
                'image/format': tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[b'raw'])),
                'image/label': tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def batches(path):
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {
            'image/encoded': tf.FixedLenFeature((), tf.string, default_value=''),
            'image/format': tf.FixedLenFeature((), tf.string, default_value='raw'),
            'image/label': tf.FixedLenFeature([], tf.int64),
        },
        {
            'image': slim.tfexample_decoder.Image(shape=[SIDE, SIDE, 1], channels=1),
            'label': slim.tfexample_decoder.Tensor('image/label'),
        })
    dataset = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 16, {'image': 'a square'})
    provider = dataset_data_provider.DatasetDataProvider(dataset, num_readers=1, shuffle=False)
    image, label = provider.get(['image', 'label'])
    image = tf.to_float(image) / 255.0
    return tf.train.batch([image, label], batch_size=FLAGS.batch_size)


def network(images, is_training):
    with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_initializer=tf.truncated_normal_initializer(stddev=0.3, seed=7),
            weights_regularizer=slim.l2_regularizer(0.001)):
        with slim.arg_scope([slim.batch_norm], is_training=is_training, decay=0.5):
            net = slim.conv2d(images, 4, [3, 3], normalizer_fn=slim.batch_norm, scope='conv')
            net = slim.max_pool2d(net, [2, 2], scope='pool')
            net = slim.flatten(net)
            width = net.get_shape()[1].value
            return slim.fully_connected(net, 2, activation_fn=None, scope='top'), width


def train(path, logdir):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        images, labels = batches(path)
        logits, width = network(images, True)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        loss = tf.losses.get_total_loss()
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        train_op = slim.learning.create_train_op(loss, optimizer, clip_gradient_norm=1.0)
        tf.summary.scalar('loss', loss)
        last = slim.learning.train(
            train_op, logdir, number_of_steps=FLAGS.steps, log_every_n_steps=1)
        print('RESULT width %d' % width)
        print('RESULT loss %.5f' % last)


def evaluate(path, logdir):
    with tf.Graph().as_default():
        images, labels = batches(path)
        logits, _ = network(images, False)
        values, updates = slim.metrics.aggregate_metric_map({
            'accuracy': slim.metrics.streaming_accuracy(tf.argmax(logits, 1), labels),
            'loss': slim.metrics.streaming_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)),
        })
        final = slim.evaluation.evaluate_once(
            '', tf.train.latest_checkpoint(logdir), os.path.join(logdir, 'eval'),
            num_evals=4, eval_op=list(updates.values()), final_op=[values['accuracy'], values['loss']])
        print('RESULT accuracy %.5f' % final[0])
        print('RESULT mean %.5f' % final[1])


def main(_):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, 'squares.tfrecord')
    write_records(path)
    train(path, folder)
    evaluate(path, folder)


if __name__ == '__main__':
    tf.app.run()
