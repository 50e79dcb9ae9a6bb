"""Dicts of a graph's values that are handed to the functions that run them: those that loop style takes, and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import all_do_the_same, leaves, takes
from towermigrate.rewrite import rewrite_tree

STEPS = TRAIN[TRAIN.index("        for step in range(4):\n") :]
BUILDING = TRAIN[: TRAIN.index("    with tf.Session(")]
SESSION = TRAIN[
    TRAIN.index("    with tf.Session(") : TRAIN.index("        for step in range(4):\n")
]
DICT = "    ops = {'train_op': train_op, 'loss': loss, 'x': X, 'y': Y, 'saver': saver}\n"
CALL = "        fit(sess, ops, 4)\n"
RUN = "        _, value = sess.run([ops['train_op'], ops['loss']], feed_dict={ops['x']: bx, ops['y']: by})\n"
FIT = (
    "def fit(sess, ops, steps):\n    for step in range(steps):\n        bx, by = batch(4)\n" + RUN + "        print('step', step, 'loss', '%.6f' % value)\n"
    "    ops['saver'].save(sess, 'ckpt/model')\n    print('draws', drawn[0])\n"
)  # fmt: skip
RETURNED = (
    (BUILDING + DICT + SESSION + CALL, BUILDING.replace("def train():", "def build():") + DICT.replace("ops =", "return") + "\n\ndef train():\n    ops = build()\n" + SESSION + CALL),
)  # fmt: skip


def handing(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied; every `old` must be there."""
    train = BUILDING + DICT + SESSION + CALL
    text = "\n\n".join([HEAD, MODEL, FIT, train, "if __name__ == '__main__':\n    train()\n"])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def behind(text: str) -> Change:
    return (DICT, DICT + text)


TAKEN = [
    case("made where the graph is"),
    case("on lines of its own", (DICT, "    ops = {\n        'train_op': train_op,\n        'loss': loss,\n        'x': X,\n        'y': Y,\n        'saver': saver,\n    }\n")),
    case("by other quotes", (DICT, DICT.replace("'", '"')), ("ops['loss']", 'ops["loss"]')),
    case("under other keys", ("'x'", "'pointclouds_pl'"), ("'y'", "'labels_pl'"), ("'train_op'", "'update'")),
    case("called otherwise where it is read", (FIT, FIT.replace("ops", "given"))),
    case("with what is made in it", ("    saver = tf.train.Saver()\n", ""), ("'saver': saver", "'saver': tf.train.Saver()")),
    case("with settings", ("'saver': saver", "'saver': saver, 'shown': 2 + 2"), ("'loss', '%.6f'", "'loss', ops['shown'], '%.6f'")),
    case("with a value that nobody reads", ("'saver': saver", "'saver': saver, 'step': step_count")),
    case("with a count that each step sets", ("'saver': saver", "'saver': saver, 'count': 0"), (RUN, RUN + "        ops['count'] += 1\n"), ("drawn[0])\n\n\ndef train", "drawn[0], ops['count'])\n\n\ndef train")),
    case("handed on to another", (CALL, "        both(sess, ops)\n"), ("def train():\n", "def both(sess, ops):\n    fit(sess, ops, 4)\n\n\ndef train():\n")),
    case("handed on in each epoch", (CALL, "        for epoch in range(2):\n            print('epoch', epoch)\n            fit(sess, ops, 2)\n")),
    case("handed to two", (CALL, CALL + "        look(sess, ops)\n"), ("def train():\n", "def look(sess, ops):\n    x, y = batch(4)\n    print('%.6f' % sess.run(ops['loss'], feed_dict={ops['x']: x, ops['y']: y}))\n\n\ndef train():\n")),
    case("with a loss under two keys", ("'saver': saver", "'saver': saver, 'again': loss"), ("ops['loss']], feed", "ops['again']], feed")),
    case("with another argument that is new", (CALL, "        steps = 4\n        fit(sess, ops, steps)\n")),
    case("returned", *RETURNED),
    case("returned and handed on at once", *RETURNED, ("    ops = build()\n" + SESSION + CALL, "    fit(build())\n"), ("def fit(sess, ops, steps):\n    for step", "def fit(ops):\n    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n    sess.run(tf.global_variables_initializer())\n    for step"), ("range(steps)", "range(4)")),
    case("returned by its name", *RETURNED, ("    return {'train_op': train_op, 'loss': loss, 'x': X, 'y': Y, 'saver': saver}\n", DICT + "    return ops\n")),
    case("returned and run by the caller", *RETURNED, (FIT + "\n\n", ""), (CALL, "        steps = 4\n" + "".join(f"    {line}\n" for line in FIT.split("\n")[1:-1]))),
    case("with a value of the last tower's own dict", ("                    tower_grads.append(grads)\n", "                    tower_grads.append(grads)\n                    shown = {'loss': loss}\n"), ("'loss': loss, 'x'", "'loss': shown['loss'], 'x'")),
    case("that is updated", behind("    ops.update(more=1)\n")),
    case("whose function is called twice", (CALL, CALL + CALL)),
    case("whose function returns", (CALL, "        print(fit(sess, ops, 4))\n")),
]  # fmt: skip

LEFT = [
    other("of which another name is", "TM205", behind("    more = ops\n    print(len(more))\n")),
    other("that is gone through", "TM205", behind("    for name in sorted(ops):\n        print(name)\n")),
    other("that is asked for a key", "TM205", behind("    print('loss' in ops)\n")),
    other("that is asked with `get`", "TM205", ("ops['loss']], feed", "ops.get('loss')], feed")),
    other("that loses a key", "TM205", behind("    del ops['x']\n"), ("ops['x']", "ops['y']")),
    other("that is read by a name", "TM205", ("ops['loss']], feed", "ops[name]], feed"), ("    for step in range(steps):\n", "    name = 'loss'\n    for step in range(steps):\n")),
    other("that a list holds", "TM205", behind("    kept = [ops]\n    print(len(kept))\n")),
    other("that is copied", "TM205", (CALL, "        fit(sess, dict(ops), 4)\n")),
    other("that is spread", "TM205", (CALL, "        fit(sess, {**ops}, 4)\n")),
    other("that is bound anew", "TM205", behind("    if len(DEVICES) > 5:\n        ops = {}\n")),
    other("that is made in two ways", "TM209", (DICT, "    if len(DEVICES) > 5:\n        ops = {}\n    else:\n    " + DICT)),
    other("whose function keeps it", "TM205", (RUN, RUN + "        kept.append(ops)\n"), ("drawn = [0]\n", "drawn = [0]\nkept = []\n")),
    other("whose function is a value", "TM205", (CALL, "        run = fit\n        run(sess, ops, 4)\n")),
    other("that a function of its own sets", "TM205", (RUN, RUN + "        def more():\n            ops['count'] = step\n        more()\n")),
    other("that a function of its own reads later", "TM205", (CALL, "        def later():\n            fit(sess, ops, 4)\n\n        later()\n")),
    other("with keys that are no names", "TM205", ("'x'", "'the x'")),
    other("with another dict", "TM205", ("    ops = {'train_op': train_op, 'loss': loss, ", "    more = {'loss': loss}\n    ops = {'train_op': train_op, **more, ")),
    other("with a key twice", "TM205", ("'saver': saver", "'saver': saver, 'loss': loss")),
    other("returned early", "TM205", *RETURNED, ("    return {", "    if len(DEVICES) > 5:\n        return {}\n    return {")),
    other("returned from a builder that is called twice", "TM205", *RETURNED, ("    ops = build()\n", "    ops = build()\n    with tf.Graph().as_default():\n        build()\n")),
    other("with a loss that is another one in the loop of runs", "TM209", (RUN, RUN + "        ops['loss'] = ops['loss'] * 2.0\n")),
]  # fmt: skip


@pytest.mark.parametrize("changes", TAKEN)
def test_it_is_in_loop_style(changes: tuple[Change, ...]) -> None:
    takes(changes, handing)


@pytest.mark.parametrize(("changes", "rule"), LEFT)
def test_its_neighbour_is_not(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule, handing)


def test_a_step_stands_in_the_dict_in_place_of_what_it_runs() -> None:
    text = rewrite_tree(handing()).texts["train.py"]
    assert "    ops = {'train_step': train_step, 'x': X, 'y': Y, 'saver': saver}\n" in text
    assert "def fit(ops, steps):\n" in text
    assert "value = ops['train_step'](*tm.shard_batch(bx, by" in text
    assert "    fit(ops, 4)\n" in text


@pytest.mark.full
def test_all_of_them_do_the_same_rewritten() -> None:
    all_do_the_same(TAKEN, handing)
