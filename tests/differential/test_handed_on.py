"""Programs whose graph goes from function to function, over several files: built here, run there, stepped elsewhere."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of, none_does_anything_else

BUILD = (
    TRAIN[: TRAIN.index("    with tf.Session")].replace("def train():", "def build():")
    + "    return train_op, loss, X, Y, saver\n"
)
IMPORTS = "import numpy as np\nimport tensorflow as tf\n"
STEP = """\
def one_step(sess, step, train_op, loss, X, Y):
    bx, by = batch(4)
    _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
    print('step', step, 'loss', '%.6f' % value)
"""
RUN = """\
def run(train_op, loss, X, Y, saver):
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            one_step(sess, step, train_op, loss, X, Y)
        saver.save(sess, 'ckpt/model')
        print('draws', drawn[0])
"""
MAIN = """\
def main():
    train_op, loss, X, Y, saver = build()
    run(train_op, loss, X, Y, saver)


if __name__ == '__main__':
    main()
"""
FILES = {
    "graph.py": "\n\n".join([HEAD, MODEL, BUILD]),
    "steps.py": f"{IMPORTS}from graph import batch\n\n\n{STEP}",
    "runner.py": f"{IMPORTS}from graph import batch, drawn\nfrom steps import one_step\n\n\n{RUN}",
    "train.py": f"{IMPORTS}from graph import build\nfrom runner import run\n\n\n{MAIN}",
}

ONE_FILE = "one file"


def program(*changes: Change) -> dict[str, str]:
    """The files with each `(old, new)` applied; every `old` must be in one of them."""
    files = dict(FILES)
    for old, new in changes:
        if old == ONE_FILE:
            return {"train.py": new}
        assert sum(old in text for text in files.values()) == 1, old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def one_file(*changes: Change) -> Change:
    """The change that puts all into the program's own file."""
    text = "\n\n".join([HEAD, MODEL, BUILD, STEP, RUN, MAIN])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return ONE_FILE, text


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, *changes: Change) -> object:
    return pytest.param(changes, "TM205", id=name)


CALLS = "    train_op, loss, X, Y, saver = build()\n    run(train_op, loss, X, Y, saver)\n"
WHOLE = (CALLS, "    run(*build())\n")
IN_LOOP = "            one_step(sess, step, train_op, loss, X, Y)\n"
PHASE = (
    "        for step in range(4):\n" + IN_LOOP,
    "        train_for(sess, 4, train_op, loss, X, Y)\n",
)
TRAINS = (
    "def run(",
    "def train_for(sess, steps, train_op, loss, X, Y):\n    for step in range(steps):\n"
    "        one_step(sess, step, train_op, loss, X, Y)\n\n\ndef run(",
)

TAKEN = [
    taken("a function of another file in each step"),
    taken("of the same file", one_file()),
    taken("through two functions", TRAINS, PHASE),
    taken("through two functions of one file", one_file(TRAINS, PHASE)),
    taken("a tuple handed on whole", WHOLE),
    taken("in one file", one_file(WHOLE)),
    taken("whose names the caller has for something else", (CALLS, "    loss = 3\n    run(*build())\n    print(loss)\n")),
    taken("of an attribute of a module", WHOLE, ("from graph import build\n", "import graph\n"), ("run(*build())", "run(*graph.build())")),
    taken("other names for what is handed on", ("def one_step(sess, step, train_op, loss, X, Y)", "def one_step(session, number, op, cost, a, b)"),
          ("sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n    print('step', step,", "session.run([op, cost], feed_dict={a: bx, b: by})\n    print('step', number,")),
    taken("by keywords", (IN_LOOP, "            one_step(sess, step, train_op=train_op, loss=loss, X=X, Y=Y)\n")),
    taken("a name that both functions have", ("    bx, by = batch(4)\n", "    steps = 4\n    bx, by = batch(steps)\n"), TRAINS, PHASE),
    taken("a value that is given back", ("    print('step', step, 'loss', '%.6f' % value)\n", "    return value\n"),
          (IN_LOOP, "            value = one_step(sess, step, train_op, loss, X, Y)\n            print(step, '%.6f' % value)\n")),
    taken("a class makes the model of a tower", ("def build():\n", "class Model(object):\n    def __init__(self, rows):\n        self.out = net(rows)\n\n\ndef build():\n"),
          ("out = net(x)", "out = Model(x).out")),
]  # fmt: skip

TAKEN += [
    taken("a keyword by the name of what is handed on", (CALLS, "    train_op, axis, X, Y, saver = build()\n    run(train_op, axis, X, Y, saver)\n"),
          ("loss = tf.reduce_mean(tf.square(out - y))", "loss = tf.reduce_mean(tf.reduce_sum(tf.square(out - y), axis=1))")),
    taken("under another name", ("from steps import one_step\n", "from steps import one_step as step_once\n"), ("    one_step(sess", "    step_once(sess")),
    taken("a saver called as the step is", (CALLS, "    train_op, loss, X, Y, step = build()\n    run(train_op, loss, X, Y, step)\n")),
    taken("a text among the arguments", (IN_LOOP, "            one_step(sess, step, train_op, loss, X, Y, 'loss')\n"), ("train_op, loss, X, Y):\n    bx", "train_op, loss, X, Y, name='cost'):\n    bx"), ("print('step', step, 'loss',", "print('step', step, name,")),
]  # fmt: skip

LEFT = [
    left("a function that the caller is given", (CALLS, CALLS.replace("run(train_op", "begin(train_op")), ("def main():\n", "def main(begin=run):\n")),
    left("under the name of the function", ("def main():\n", "def main(run=run):\n")),
    left("imported in one case or the other", ("from steps import one_step\n", "try:\n    from graph import one_step\nexcept ImportError:\n    from steps import one_step\n")),
    left("replaced in its module", ("from runner import run\n", "import runner\nfrom runner import run\n"), (CALLS, "    runner.one_step = runner.one_step\n" + CALLS)),
    left("a text finds it", ("from graph import build\n", "import graph\nfrom graph import build\n"), (CALLS, "    print(hasattr(graph, 'build'))\n" + CALLS)),
    left("called twice", (IN_LOOP, IN_LOOP + IN_LOOP.replace("step, train_op", "-step, train_op"))),
    left("handed on as a function", (IN_LOOP, "            list(map(lambda s: one_step(sess, s, train_op, loss, X, Y), [step]))\n")),
    left("with a decorator", ("def one_step", "def logged(f):\n    return f\n\n\n@logged\ndef one_step")),
    left("a tuple and more", (CALLS, "    run(*build()[:4], saver=None)\n"), ("saver.save(sess, 'ckpt/model')", "print(saver)")),
    left("a tuple of two branches", WHOLE, ("    return train_op, loss, X, Y, saver\n", "    if saver:\n        return train_op, loss, X, Y, saver\n    return ()\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
