"""A function that builds the graph returns a dict of it, which functions that are called several times are handed."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of, none_does_anything_else

BUILD = (
    TRAIN[: TRAIN.index("    with tf.Session")].replace("def train():", "def build():")
    + "    return {'x': X, 'y': Y, 'train': train_op, 'loss': loss, 'saver': saver}\n"
)
EPOCH = """\
def run_epoch(sess, ops, steps):
    total = 0.0
    for _ in range(steps):
        bx, by = batch(4)
        _, value = sess.run([ops['train'], ops['loss']], feed_dict={ops['x']: bx, ops['y']: by})
        total += value
    return total
"""
MAIN = """\
def train():
    ops = build()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for epoch in range(2):
            total = run_epoch(sess, ops, 2)
            bx, by = batch(4)
            left = sess.run(ops['loss'], feed_dict={ops['x']: bx, ops['y']: by})
            print('epoch', epoch, '%.6f %.6f' % (total, left))
        ops['saver'].save(sess, 'ckpt/model')
        print('draws', drawn[0])
"""
START = "\n\nif __name__ == '__main__':\n    train()\n"
APART = "in two files"


def program(*changes: Change) -> dict[str, str]:
    """The program with each `(old, new)` applied; every `old` must be there."""
    parts = [HEAD, MODEL, BUILD, EPOCH, MAIN + START]
    for old, new in changes:
        if old == APART:
            continue
        assert sum(old in part for part in parts) == 1, old
        parts = [part.replace(old, new) for part in parts]
    if any(old == APART for old, _ in changes):
        head = "import numpy as np\nimport tensorflow as tf\nfrom graph import batch, build, drawn"
        return {"graph.py": "\n\n".join(parts[:3]), "train.py": "\n\n\n".join([head, *parts[3:]])}
    return {"train.py": "\n\n".join(parts)}


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, *changes: Change, rule: str = "TM205") -> object:
    return pytest.param(changes, rule, id=name)


CALL = "            total = run_epoch(sess, ops, 2)\n"
TWICE = (CALL, CALL + "            total += run_epoch(sess, ops, 1)\n")
MADE = "    ops = build()\n"
EVALUATE = (
    ("def train():\n", "def look(sess, ops, x, y):\n    return sess.run(ops['loss'], feed_dict={ops['x']: x, ops['y']: y})\n\n\ndef train():\n"),
    ("sess.run(ops['loss'], feed_dict={ops['x']: bx, ops['y']: by})\n            print", "look(sess, ops, bx, by)\n            print"),
)  # fmt: skip

TAKEN = [
    taken("that is changed", (MADE, MADE + "    ops['loss'] = ops['loss'] * 2.0\n")),
    taken("by a default", ("def run_epoch(sess, ops, steps)", "def run_epoch(sess, ops=None, steps=2)")),
    taken("in one file"),
    taken("in two files", (APART, "")),
    taken("called twice", TWICE),
    taken("called twice, in two files", TWICE, (APART, "")),
    taken("by two functions", *EVALUATE),
    taken("by two functions, in two files", *EVALUATE, (APART, "")),
    taken("by a keyword", (CALL, CALL.replace("sess, ops, 2", "sess, ops=ops, steps=2"))),
    taken("under another name", ("def run_epoch(sess, ops, steps)", "def run_epoch(sess, graph, steps)"), (EPOCH.split("        total += value")[0].split("batch(4)\n")[1], EPOCH.split("        total += value")[0].split("batch(4)\n")[1].replace("ops[", "graph["))),
    taken("where others are called so", (MADE, MADE + "    loss, x = 2.0, 3\n"), ("'%.6f %.6f' % (total, left)", "'%.6f %.6f' % (total * loss, left * x)")),
    taken("on lines of its own", ("    return {'x': X, 'y': Y, ", "    return {\n        'x': X,\n        'y': Y,\n        "), ("'saver': saver}\n", "'saver': saver,\n    }\n")),
    taken("in a function of a function", (CALL, "            def again():\n                return run_epoch(sess, ops, 2)\n            total = again()\n")),
]  # fmt: skip

LEFT = [
    left("that is changed by another", ("    total = 0.0\n", "    total = 0.0\n    ops.setdefault('more', 1)\n")),
    left("that is printed", (MADE, MADE + "    print(sorted(ops))\n")),
    left("that is gone over", (MADE, MADE + "    print([key for key in ops])\n")),
    left("that is kept", (MADE, MADE + "    kept = [ops]\n"), ("print('draws', drawn[0])", "print('draws', drawn[0], len(kept))")),
    left("by a key that is computed", (CALL, CALL + "            print('%.6f' % sess.run(ops['lo' + 'ss'], feed_dict={ops['x']: batch(4)[0], ops['y']: batch(4)[1]}))\n")),
    left("that a function hands on", ("    total = 0.0\n", "    print(len(ops))\n    total = 0.0\n")),
    left("with more in it", ("    return {'x'", "    return {**{}, 'x'")),
    left("with a key twice", ("'loss': loss,", "'loss': loss, 'y': Y,")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
