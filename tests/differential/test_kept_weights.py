"""Weights that a program keeps by the names of its variables: lists of all of them, run and set, by functions of another file too."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of
from tests.differential.test_batch_norm import LAYERS, READ

BUILD, RUN = TRAIN.split("    with tf.Session", 1)
SESSION = """\
    sess = tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True))
    sess.run(init)
    with sess.as_default():
        print('begins')
        for step in range(4):
            bx, by = batch(4)
            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
            print('step', step, 'loss', '%.6f' % value)
        print('draws', drawn[0])
"""
GRAPH = (
    "def train():\n    graph = tf.Graph()\n    with graph.as_default():\n"
    + textwrap.indent(BUILD.removeprefix("def train():\n"), "    ").replace(
        "saver = tf.train.Saver()", "init = tf.global_variables_initializer()"
    )
    + SESSION
)
WEIGHTS = """\
import numpy as np
import tensorflow as tf


def keep(graph, path):
    session = tf.get_default_session()
    variables = graph.get_collection('variables')
    names = [v.name for v in variables]
    held = dict(zip(names, session.run(variables)))
    np.savez(path, **held)


def take(graph, path):
    session = tf.get_default_session()
    variables = graph.get_collection('variables')
    held = np.load(path)
    for v in variables:
        if v.name not in held:
            print('%s is not there' % v.name)
            continue
        session.run(v.assign(held[v.name]))


def halve():
    session = tf.get_default_session()
    for v in tf.trainable_variables():
        held = session.run(v)
        session.run(v.assign(held * 0.5))
        print(v.op.name, held.shape)


def count(graph, found):
    session = tf.get_default_session()
    for v in graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES):
        found.append(session.run(v).size)
"""
OTHER = """\
import sys

import tensorflow as tf

import weights


def main():
    with tf.Graph().as_default() as graph, tf.Session().as_default():
        tf.get_variable('w', [3, 1])
        weights.take(graph, sys.argv[1])
"""
BEGINS = "        print('begins')\n"
DRAWS = "            bx, by = batch(4)\n"
SAID = "            print('step', step, 'loss', '%.6f' % value)\n"
END = "        print('draws', drawn[0])\n"
LINES = "    for v in held:\n"


def program(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied, in whichever file `old` is."""
    main = "\n\n".join(
        [HEAD.replace("\nDEVICES", "\nimport weights\n\nDEVICES"), MODEL, GRAPH, "if __name__ == '__main__':\n    train()\n"]
    )  # fmt: skip
    texts = {"train.py": main, "weights.py": WEIGHTS, "other.py": OTHER}
    for old, new in changes:
        assert any(old in text for text in texts.values()), old
        texts = {path: text.replace(old, new) for path, text in texts.items()}
    return texts


def at_begin(text: str) -> Change:
    return (BEGINS, BEGINS + textwrap.indent(text, "        ") + "\n")


def each_step(text: str) -> Change:
    return (SAID, SAID + textwrap.indent(text, "            ") + "\n")


def at_end(text: str) -> Change:
    return (END, END + textwrap.indent(text, "        ") + "\n")


def in_graph(text: str) -> str:
    return "with graph.as_default():\n" + textwrap.indent(text, "    ")


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


ADAM = ("MomentumOptimizer(0.1, 0.9)", "AdamOptimizer(0.05)")
KEPT = "if step % 2 == 1:\n    weights.keep(graph, 'weights-%d.npz' % step)"
SUMS = "print(['%s %.6f' % (v.name, sess.run(v).sum()) for v in tf.global_variables()])"
NORMED = (
    LAYERS,
    ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n" + " " * 24 + READ),
    ("        train_op = opt", "        with tf.control_dependencies(updates):\n            train_op = opt"),
)  # fmt: skip
LOOKED = "with np.load('weights-3.npz') as kept:\n    print([(each, '%.6f' % kept[each].sum()) for each in sorted(kept.files)])"
FROM = ("import weights\n", "from weights import keep\n")
START = at_begin("np.savez('first.npz', **{'w:0': np.ones([3, 1]), 'w/Momentum:0': np.ones([3, 1]) * 0.1})\nweights.take(graph, 'first.npz')")  # fmt: skip

TAKEN = [
    case("kept by another file's function", each_step(KEPT)),
    case("kept with Adam's", ADAM, each_step(KEPT)),
    case("kept and looked at", ADAM, each_step(KEPT), at_end(LOOKED)),
    case("kept with batch norm", *NORMED, each_step(KEPT), at_end(LOOKED)),
    case("set with batch norm", *NORMED, at_begin(in_graph("for v in tf.global_variables():\n    if 'moving' in v.name:\n        sess.run(v.assign(np.ones(v.shape.as_list()) * 0.25))")), each_step(in_graph(SUMS))),
    case("kept in the end", at_end("weights.keep(graph, path='last.npz')")),
    case("kept by an imported function", FROM, at_end("keep(graph, 'last.npz')")),
    case("kept under a name", at_begin("path = 'weights.npz'"), each_step("weights.keep(graph, path)")),
    case("taken by another file's function", START),
    case("taken and kept", ADAM, START, each_step(KEPT), at_end("weights.take(graph, 'weights-1.npz')\n" + in_graph(SUMS))),
    case("taken under a condition", at_begin("if len(DEVICES) > 5:\n    weights.take(graph, 'first.npz')"), at_end("weights.keep(graph, 'last.npz')")),
    case("set to what they hold, and halved", ("session.run(v.assign(held * 0.5))", "session.run(v.assign(held[::-1] * 0.5))"), each_step("with graph.as_default():\n    weights.halve()")),
    case("counted into a list", at_end("found = []\nweights.count(graph, found)\nprint(found)")),
    case("in the session's own block", ("    with sess.as_default():\n", "    with tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n        sess.run(init)\n"),
         ("    sess = tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True))\n    sess.run(init)\n", ""), at_end("weights.keep(graph, 'last.npz')")),
    case("with a text of what it does", ("def keep(graph, path):\n", "def keep(graph, path):\n    '''Keep what there is.'''\n"), at_end("weights.keep(graph, 'last.npz')")),
    case("with names that the caller has", ("    held = dict", "    step = dict"), ("**held)", "**step)"), each_step(KEPT + "\nprint(step)")),
    case("all run", at_end(in_graph("values = sess.run(tf.global_variables())\nprint(['%.6f' % each.sum() for each in values])"))),
    case("all run by their collection", at_end(in_graph("kept = tf.get_collection('variables')\nfor name, value in zip([v.name for v in kept], sess.run(kept)):\n    print(name, '%.6f' % value.sum())"))),
    case("all run one by one", ADAM, each_step(in_graph(SUMS))),
    case("all run with moving averages", ("    train_op = opt.apply_gradients(grads, global_step=step_count)\n", "    train_op = opt.apply_gradients(grads, global_step=step_count)\n        ema = tf.train.ExponentialMovingAverage(0.9)\n        with tf.control_dependencies([train_op]):\n            train_op = ema.apply(tf.trainable_variables())\n"), each_step(in_graph(SUMS))),
    case("all set", at_begin(in_graph("for v in tf.global_variables():\n    if 'Momentum' in v.name:\n        sess.run(v.assign(np.ones(v.shape.as_list()) * 0.25))")), each_step(in_graph(SUMS))),
    case("some set each step", each_step(in_graph("for v in tf.trainable_variables():\n    if v.op.name == 'b':\n        sess.run(v.assign([step * 0.1]))"))),
    case("the step set", at_begin(in_graph("for v in tf.global_variables():\n    if 'global_step' in v.name:\n        sess.run(v.assign(7))")), each_step(in_graph("print([str(sess.run(v)) for v in tf.global_variables() if 'step' in v.name])"))),
    case("images of another size", ("                        out = net(x)\n", "                        x = tf.reshape(tf.image.resize_images(tf.reshape(x, [-1, 1, 3, 1]), [2, 3]), [-1, 2, 3])[:, 1]\n                        out = net(x)\n")),
]  # fmt: skip

LEFT = [
    other("names of the default graph outside of the towers'", "TM234", at_end("for v in tf.trainable_variables():\n    print(v.name)")),
    other("their number outside of it", "TM210", at_end("print(len(tf.trainable_variables()))")),
    other("all outside of it", "TM223", at_begin("for v in tf.global_variables():\n    print(v.op.name)")),
    other("values outside of it", "TM210", at_end("print([sess.run(v).sum() for v in tf.trainable_variables()])")),
    other("their number in another graph", "TM210", at_end(in_graph("with tf.Graph().as_default():\n    print(len(tf.trainable_variables()))"))),
    other("values of another graph", "TM210", at_end(in_graph("with tf.Graph().as_default():\n    print([sess.run(v).sum() for v in tf.global_variables()])"))),
    other("a list that is read in another graph", "TM209", at_end(in_graph("kept = tf.global_variables()\nwith tf.Graph().as_default():\n    print(len(sess.run(kept)))"))),
    other("in another graph", "TM222", at_end("with tf.Graph().as_default() as more:\n    weights.keep(more, 'last.npz')")),
    other("by a function that gives something", "TM222", ("    np.savez(path, **held)\n", "    np.savez(path, **held)\n    return names\n"), at_end("print(weights.keep(graph, 'last.npz'))")),
    other("by a function that is replaced", "TM222", ("    train()\n", "    weights.keep = print\n    train()\n"), at_end("weights.keep(graph, 'last.npz')")),
    other("where another session may be the default one", "TM222", (END, "        with other_session():\n            weights.keep(graph, 'last.npz')\n" + END), ("def batch(", "def other_session():\n    return tf.Session(graph=tf.Graph())\n\n\ndef batch(")),
    other("without a session", "TM210", ("    with sess.as_default():\n        print('begins')\n", "    if True:\n        print('begins')\n"), at_end("weights.keep(graph, 'last.npz')")),
    other("of a graph that is asked for more", "TM222", ("    held = dict(", "    graph.finalize()\n    held = dict("), at_end("weights.keep(graph, 'last.npz')")),
    other("with what the call before left", "TM210", ("    held = dict(zip(names, session.run(variables)))\n", "    if names:\n        held = dict(zip(names, session.run(variables)))\n"), each_step(KEPT)),
    other("by a function that reads its module", "TM222", ("def keep(", "FOLDER = '.'\n\n\ndef keep("), ("savez(path", "savez(FOLDER + '/' + path"), at_end("weights.keep(graph, 'last.npz')")),
    other("with a default", "TM222", ("def keep(graph, path):", "def keep(graph, path='w.npz'):"), at_end("weights.keep(graph)")),
    other("set to what is of the graph", "TM209", at_end(in_graph("for v in tf.trainable_variables():\n    sess.run(v.assign(tf.zeros(v.shape)))"))),
    other("added to", "TM209", at_end(in_graph("for v in tf.trainable_variables():\n    sess.run(v.assign_add(1.0))"))),
    other("what setting gives", "TM209", at_end(in_graph("for v in tf.trainable_variables():\n    print(sess.run(v.assign(sess.run(v))))"))),
    other("set, and fed", "TM209", at_end(in_graph("for v in tf.trainable_variables():\n    sess.run(v.assign(1.0), feed_dict={})"))),
    other("a list that goes elsewhere", "TM210", at_end(in_graph("kept = tf.global_variables()\nprint(len(sess.run(kept)), kept.pop().name)"))),
    other("compared", "TM210", at_end(in_graph("for v in tf.global_variables():\n    print(sess.run(v).shape, v == v)"))),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
