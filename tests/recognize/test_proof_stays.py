"""Programs in the classic forms stay in loop style: what the proof must not take away."""

from __future__ import annotations

import pytest

from tests.recognize.programs import GRADS, LOSS, program, reasons

START = "    tower_grads = []\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
SESSION = "    with tf.Session() as sess:\n"
PRINT = "            print(value)\n"
MODEL = "    return tf.matmul(x, w)\n"
MODEL_DEF = "def model(x):\n"
SPLIT = "    parts = tf.split(x, num_gpus)\n"
DEVICE = "        with tf.device('/gpu:%d' % i):\n"
SCOPED = "        with tf.device('/gpu:%d' % i), tf.name_scope('tower_%d' % i) as scope:\n"
OPTIMIZER = "    opt = tf.train.GradientDescentOptimizer(0.1)\n"
STEP = "    step_count = tf.train.get_or_create_global_step()\n"
COUNTED = (APPLY, "    train_op = opt.apply_gradients(grads, global_step=step_count)\n")

STAYS = {
    "the small program": [],
    "slices": [(SPLIT, ""), ("model(parts[i])", "model(x[i * 2:(i + 1) * 2])")],
    "the same batch": [(SPLIT, ""), ("model(parts[i])", "model(x)")],
    "a schedule": [
        (OPTIMIZER, STEP + "    lr = tf.train.exponential_decay(0.1, step_count, 5, 0.5)\n    opt = tf.train.AdamOptimizer(lr)\n"),
        COUNTED,
    ],
    "losses in a collection": [
        (DEVICE, SCOPED), (MODEL, "    tf.add_to_collection('losses', 0.1 * tf.nn.l2_loss(w))\n" + MODEL),
        (GRADS, "            loss = loss + tf.add_n(tf.get_collection('losses', scope))\n" + GRADS),
    ],
    "all losses so far, thrown away": [
        (DEVICE, SCOPED), (MODEL_DEF, "def keep(loss):\n    tf.add_to_collection('losses', loss)\n    return tf.add_n(tf.get_collection('losses'))\n\n\n" + MODEL_DEF),
        (GRADS, "            _ = keep(loss)\n            loss = tf.add_n(tf.get_collection('losses', scope))\n" + GRADS),
    ],
    "weight decay of all variables": [
        (LOSS, LOSS + "            loss = loss + tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\n")
    ],
    "clipping": [(AVERAGED, AVERAGED + "    grads = [(tf.clip_by_norm(g, 1.0), v) for g, v in grads]\n")],
    "clipping if asked": [
        ("def train(num_gpus=2):\n", "def train(num_gpus=2, clip=True):\n"),
        (AVERAGED, AVERAGED + "    if clip:\n        grads = [(tf.clip_by_norm(g, 1.0), v) for g, v in grads]\n"),
    ],
    "moving averages behind the update": [
        (APPLY, "    ema = tf.train.ExponentialMovingAverage(0.9)\n    update = opt.apply_gradients(grads)\n"
         "    with tf.control_dependencies([update]):\n        train_op = ema.apply(tf.trainable_variables())\n")
    ],
    "layers": [(MODEL, "    h = tf.layers.dense(x, 4, tf.nn.relu, name='h')\n    return tf.matmul(tf.layers.dense(h, 3, name='o'), w)\n")],
    "layers in a loop": [(MODEL, "    for k in range(3):\n        x = tf.layers.dense(x, 3, name='l%d' % k)\n" + MODEL)],
    "a known size": [(MODEL, "    n = x.get_shape().as_list()[-1]\n    x = tf.reshape(x, [-1, n])\n" + MODEL)],
    "the rank of a shape": [(MODEL, "    if len(x.get_shape()) != 2:\n        x = tf.reshape(x, [-1, 3])\n" + MODEL)],
    "a size when it runs": [(MODEL, "    x = x / tf.cast(tf.shape(x)[0], tf.float32)\n" + MODEL)],
    "an option that is None": [
        (MODEL_DEF, "def model(x, scale=None):\n"), (MODEL, "    if scale is not None:\n        x = x * scale\n" + MODEL)
    ],
    "an option by a text": [
        (MODEL_DEF, "def model(x, act='relu'):\n"), (MODEL, "    if act == 'relu':\n        x = tf.nn.relu(x)\n" + MODEL)
    ],
    "a flag": [(MODEL_DEF, "FLAGS = tf.app.flags.FLAGS\n\n\n" + MODEL_DEF), (MODEL, "    x = x * FLAGS.scale\n" + MODEL)],
    "constants of the module": [(MODEL_DEF, "SIZES = [3, 1]\nSCALE = 2.0\n\n\n" + MODEL_DEF), (MODEL, "    x = x * SCALE * SIZES[1]\n" + MODEL)],
    "an array made before": [
        (START, "    mask = np.ones([3], np.float32)\n    mask[0] = 0.0\n" + START), ("model(parts[i])", "model(parts[i] * mask)")
    ],
    "a dropout without a seed": [(MODEL, "    x = tf.nn.dropout(x, 0.5)\n" + MODEL)],
    "a seeded variable": [("tf.get_variable('w', [3, 1])", "tf.get_variable('w', [3, 1], initializer=tf.random_normal_initializer(seed=1))")],
    "a value of the first tower": [
        (LOSS, LOSS + "            if i == 0:\n                first = loss * 2.0\n"),
        (PRINT, PRINT + "            print(sess.run(first, feed_dict={x: np.ones([4, 3])}))\n"),
    ],
    "a tuple taken apart": [("sess.run([train_op, loss]", "sess.run((train_op, loss)")],
    "a saver": [
        (SESSION, "    saver = tf.train.Saver(max_to_keep=3)\n" + SESSION), (PRINT, PRINT + "            saver.save(sess, 'm', global_step=step)\n")
    ],
    "summaries of the last tower": [
        (DEVICE, SCOPED), (LOSS, LOSS + "            tf.summary.scalar('loss', loss)\n            texts = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)\n"),
        (APPLY, APPLY + "    text = tf.summary.merge(texts)\n    writer = tf.summary.FileWriter('log')\n"),
        (PRINT, PRINT + "            writer.add_summary(sess.run(text, feed_dict={x: np.ones([4, 3])}), step)\n"),
    ],
    "a lambda": [(MODEL, "    act = lambda v: tf.nn.relu(v) * 0.5\n    x = act(x)\n" + MODEL)],
    "lists and dicts of its own": [(MODEL, "    outs = {'a': [x]}\n    more = []\n    more.append(x * 2.0)\n    x = tf.add_n(more + [x])\n" + MODEL)],
    "any arguments": [(MODEL_DEF, "def add(*values):\n    return sum(values)\n\n\n" + MODEL_DEF), (MODEL, "    x = add(x, x)\n" + MODEL)],
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_stays_in_loop_style(name: str) -> None:
    assert reasons(program(*STAYS[name])) == {}
