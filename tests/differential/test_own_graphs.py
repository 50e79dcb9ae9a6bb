"""Other ways to run a program, in the default graph of the process: what loop style gives a graph, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import TRAIN, Change
from tests.differential.loop_programs import program as plain
from tests.differential.spellings import asked_of

MAIN = "if __name__ == '__main__':\n    train()\n"
TEST = '''\
def test(rows):
    """What the model says before it is trained."""
    X = tf.placeholder(tf.float32, [None, 3])
    with tf.variable_scope('model'):
        out = net(X)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        print('said', ['%.6f' % v for v in sess.run(out, feed_dict={X: batch(rows)[0]}).ravel()])
        print(sorted(v.name for v in tf.global_variables()))
        saver.save(sess, 'ckpt/test', write_meta_graph=False)
'''
OTHER = TEST.replace("def test(rows)", "def show(rows)").replace("'said'", "'shown'")
HELPED = TEST.replace("    X = tf.placeholder(tf.float32, [None, 3])\n", "    X = held()\n")
HELD = "def held():\n    return tf.placeholder(tf.float32, [None, 3])\n\n\n"
BODY = "def train():\n    step_count"
RATE = "0.1, 0.9)"


def ways(mode: str, test: str = TEST, ends: str = "") -> Change:
    """A program that is asked to train or to test."""
    text = f"MODE = '{mode}'\n\n\n{test}\n\ndef main():\n    if MODE == 'train':\n        train()\n    else:\n        test(4)\n{ends}"
    return MAIN, text + "\n\nif __name__ == '__main__':\n    main()\n"


def in_turn(*lines: str, test: str = TEST) -> Change:
    return MAIN, test + "\n\nif __name__ == '__main__':\n" + "".join(
        f"    {each}\n" for each in lines
    )


def in_graph(text: str) -> str:
    """The program with its training in a graph of its own."""
    start = text.index("    step_count")
    rows = text[start:].split("\n")
    return (
        text[:start]
        + "    with tf.Graph().as_default():\n"
        + "\n".join(f"    {row}" if row else row for row in rows)
    )


def program(*changes: Change, graph: bool = False) -> dict[str, str]:
    own = [(TRAIN, in_graph(TRAIN))] if graph else []
    files = plain(*own)
    text = files["train.py"]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def of(changes: tuple[Change, ...], graph: bool = False) -> dict[str, str]:
    return program(*changes, graph=graph)


def case(name: str, *changes: Change, graph: bool = False) -> Any:
    return pytest.param((changes, graph), id=name)


def other(name: str, rule: str, *changes: Change, graph: bool = False) -> Any:
    return pytest.param((changes, graph), rule, id=name)


APP = ("\n    main()\n", "\n    tf.app.run()\n"), ("def main():", "def main(_):")

TAKEN = [
    case("a program that trains", ways("train")),
    case("a program that tests", ways("test")),
    case("that TensorFlow begins", ways("train"), *APP),
    case("that TensorFlow begins, tested", ways("test"), *APP),
    case("at the end of the file", in_turn("if len(DEVICES) > 5:", "    train()", "else:", "    test(4)")),
    case("of three ways", ways("show", TEST + "\n\n" + OTHER), ("    else:\n        test(4)\n", "    elif MODE == 'show':\n        show(4)\n    else:\n        test(4)\n")),
    case("behind a training in its own graph", in_turn("train()", "test(4)"), graph=True),
    case("that says something first", ways("test"), ("    if MODE == 'train':\n", "    print('begins', MODE)\n    if MODE == 'train':\n")),
    case("with a helper", ways("test", HELD + HELPED)),
    case("with a number that is computed", ways("test"), ("test(4)", "test(len(DEVICES) * 2)")),
    case("that reads settings", ways("test"), ("def main():\n", "def main():\n    rows = max(2, len(DEVICES))\n"), ("test(4)", "test(rows)")),
    case("with a comment", ways("test"), ("        test(4)\n", "        test(4)  # of four rows\n")),
    case("over two lines", ways("test"), ("        test(4)\n", "        test(\n            4)\n")),
]  # fmt: skip

LEFT = [
    other("that counts the operations of its graph", "TM210", ways("test", TEST.replace("    saver = ", "    print(len(tf.get_default_graph().get_operations()))\n    saver = "))),
    other("that prints a tensor", "TM210", ways("test", TEST.replace("    saver = ", "    print(out)\n    saver = "))),
    other("that prints a shape", "TM210", ways("test", TEST.replace("    saver = ", "    print('shape', X.get_shape())\n    saver = "))),
    other("that prints what a shape is", "TM210", ways("test", TEST.replace("    saver = ", "    said = 'shape %s' % X.shape\n    print(said)\n    saver = "))),
    other("whose helper prints", "TM210", ways("test", HELD.replace("held():", "held():\n    print('held', tf.zeros([2]))") + HELPED)),
    other("behind a training in the same graph", "TM210", in_turn("train()", "test(4)")),
    other("in front of the training", "TM210", in_turn("test(4)", "train()"), graph=True),
    other("twice", "TM210", in_turn("train()", "test(4)", "test(6)"), graph=True),
    other("in a loop", "TM210", in_turn("train()", "for rows in (2, 4):", "    test(rows)", "    tf.reset_default_graph()"), graph=True),
    other("with something behind it that runs", "TM210", ways("test", ends="    print(len(tf.global_variables()))\n")),
    other("with something behind it", "TM210", ways("test", ends="    print('done')\n")),
    other("with a seed", "TM210", ways("test"), ("    if MODE == 'train':\n", "    tf.set_random_seed(3)\n    if MODE == 'train':\n")),
    other("on a device", "TM210", ways("test"), ("        test(4)\n", "        with tf.device('/cpu:0'):\n            test(4)\n")),
    other("in a name scope", "TM210", ways("test"), ("        test(4)\n", "        with tf.name_scope('outer'):\n            test(4)\n")),
    other("whose value is kept", "TM210", ways("test"), ("        test(4)\n", "        found = test(4)\n")),
    other("handed on", "TM210", ways("test"), ("        test(4)\n", "        list(map(test, [4]))\n")),
    other("of a table", "TM210", ways("test"), ("        test(4)\n", "        {'test': test}[MODE](4)\n")),
    other("that resets the graph", "TM210", ways("test", TEST.replace("    X = tf", "    tf.reset_default_graph()\n    X = tf", 1))),
    other("that trains too", "TM210", ways("test", TEST + "    if rows > 9:\n        train()\n")),
    other("that sets a name of the module", "TM210", ways("test", TEST.replace("    X = tf", "    global X\n    X = tf", 1))),
    other("with a thread", "TM210", ways("test", TEST.replace("    X = tf", "    import threading\n    threading.Thread(target=print).start()\n    X = tf", 1))),
    other("that is begun by what is not known", "TM210", ways("test"), ("\n    main()\n", "\n    import launcher\n    launcher.launch(main)\n")),
    other("whose setting is made of itself", "TM210", ways("test"), ("        test(4)\n", "        rows = '4 '\n        rows = rows.strip()\n        test(int(rows))\n")),
    other("whose setting a function makes of itself", "TM210", ways("test", "def stripped():\n    rows = '4 '\n    rows = rows.strip()\n    return rows\n\n\n" + TEST), ("        test(4)\n", "        rows = stripped()\n        test(int(rows.strip()))\n")),
    other("under a condition that is not known", "TM210", ways("test"), ("    if MODE == 'train':\n", "    import setup\n    if setup.trains(MODE):\n")),
    other("that may fail", "TM210", ways("test"), ("        test(4)\n", "        try:\n            test(4)\n        except ValueError:\n            print(tf.global_variables())\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, lambda *given: of(*given))
