"""One small tower program, to be varied a line at a time."""

from __future__ import annotations

import textwrap

from towermigrate.emit import Emission, emit_tree
from towermigrate.program import Recognition
from towermigrate.recognize import recognize_tree

AVERAGE = """\
def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = []
        for g, _ in grad_and_vars:
            grads.append(tf.expand_dims(g, 0))
        grad = tf.reduce_mean(tf.concat(grads, 0), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads
"""

MODEL = """\
def model(x):
    with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
        w = tf.get_variable('w', [3, 1])
    return tf.matmul(x, w)
"""

TRAIN = """\
def train(num_gpus=2):
    opt = tf.train.GradientDescentOptimizer(0.1)
    x = tf.placeholder(tf.float32, [None, 3])
    parts = tf.split(x, num_gpus)
    tower_grads = []
    for i in range(num_gpus):
        with tf.device('/gpu:%d' % i):
            loss = tf.reduce_mean(tf.square(model(parts[i])))
            grads = opt.compute_gradients(loss)
            tower_grads.append(grads)
    grads = average_gradients(tower_grads)
    train_op = opt.apply_gradients(grads)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(10):
            _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})
            print(value)
"""

HEAD = "import numpy as np\nimport tensorflow as tf\n\n\n"


def program(*changes: tuple[str, str]) -> str:
    """The small program with each `(old, new)` applied; every `old` must be there."""
    text = HEAD + AVERAGE + "\n\n" + MODEL + "\n\n" + TRAIN
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def recognize(text: str) -> list[Recognition]:
    return recognize_tree({"program.py": textwrap.dedent(text)})


def emit(text: str) -> Emission:
    sources = {"program.py": textwrap.dedent(text)}
    return emit_tree(sources, recognize_tree(sources), style="loop")


def rules(text: str) -> list[str]:
    """Rule ids of the errors that refuse the only program of a text; empty where it converts."""
    emission = emit(text)
    return [f.rule for r in emission.results for f in r.findings if f.severity == "error"]


GRADS = "            grads = opt.compute_gradients(loss)\n"
LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"


def reasons(text: str) -> dict[str, str]:
    """What keeps the only program of a text from loop style: the first message of each rule."""
    (recognition,) = recognize(text)
    found: dict[str, str] = {}
    for finding in recognition.findings:
        found.setdefault(finding.rule, f"{finding.line}: {finding.message}")
    assert (recognition.program is None) is bool(found)
    return found
