"""Summaries that only the first tower makes, and `merge_all` of them: loop style where no other tower makes one."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else
from tests.differential.test_merged_summaries import LOSS, MERGE, SAID, WRITE, WRITER, behind
from towermigrate.rewrite import rewrite_tree

BODY = LOSS[LOSS.index("loss") :]
FLAG = ("    tower_grads = []\n", "    tower_grads = []\n    reuse = None\n")
SET = (
    "                    tf.get_variable_scope().reuse_variables()\n",
    "                    reuse = True\n",
)
NET = (
    "                    out = net(x)\n" + LOSS,
    "                    loss = tower_loss(x, y, reuse)\n",
)
FUNCTION = """\
def tower_loss(x, y, reuse=None):
    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):
        out = net(x)
    loss = tf.reduce_mean(tf.square(out - y))
    if reuse is None:
        tf.summary.scalar('tower_loss', loss)
        tf.summary.histogram(
            'out', out)
    return loss


"""
ADDED = ("def batch(rows)", FUNCTION + "def batch(rows)")
FLAGGED = (FLAG, SET, NET, ADDED, MERGE)
BY_INDEX = (
    NET[0],
    "                    loss = tower_loss(x, y, i)\n",
), ("def batch(rows)", FUNCTION.replace("reuse=None", "number").replace("    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):\n        out", "    out").replace("reuse is None", "number == 0") + "def batch(rows)"), MERGE  # fmt: skip
TOLD = "                    if i == 0:\n                        tf.summary.scalar('tower_loss', loss)\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param((*changes, WRITER, WRITE), id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param((*changes, WRITER, WRITE), rule, id=name)


TAKEN = [
    taken("by its number", (LOSS, LOSS + TOLD), MERGE),
    taken("by its number, the other way round", (LOSS, LOSS + TOLD.replace("i == 0", "0 == i")), MERGE),
    taken("two conditions", (LOSS, LOSS + TOLD + TOLD.replace("tower_loss", "again")), MERGE),
    taken("one more behind", (LOSS, LOSS + TOLD), behind("tf.summary.scalar('last', loss)")),
    taken("by a flag, in a function", *FLAGGED),
    taken("by a flag that is not set", *FLAGGED, ("if reuse is None:", "if not reuse:")),
    taken("by a flag that is False", *FLAGGED, ("reuse = None", "reuse = False"), ("reuse=None", "reuse=False"), ("if reuse is None:", "if reuse == False:")),
    taken("by its number, in a function", *BY_INDEX),
    taken("by its number, given by name", *BY_INDEX, ("tower_loss(x, y, i)", "tower_loss(x, y, number=i)")),
    taken("by a flag, in the loop", FLAG, SET, ("                    out = net(x)\n", "                    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):\n                        out = net(x)\n"), (LOSS, LOSS + TOLD.replace("i == 0", "reuse is None")), MERGE),
    taken("with batch-norm updates in the tower", *FLAGGED, ("        out = net(x)\n    loss", "        out = tf.layers.batch_normalization(net(x), training=True, name='bn')\n    loss"), (SET[1], "                    updates = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope))\n" + SET[1]), ("    train_op = opt.apply", "    apply_op = opt.apply"), ("    saver = ", "    with tf.control_dependencies([apply_op, updates]):\n        train_op = tf.no_op(name='train_op')\n    saver = ")),
]  # fmt: skip

LEFT = [
    left("beside one of all towers", "TM219", SAID, (LOSS, LOSS + TOLD.replace("tower_loss", "first")), MERGE),
    left("of the second tower", "TM219", (LOSS, LOSS + TOLD.replace("i == 0", "i == 1")), MERGE),
    left("with another for the rest", "TM219", (LOSS, LOSS + TOLD + "                    else:\n                        tf.summary.scalar('other', loss)\n"), MERGE),
    left("with something else", "TM219", (LOSS, LOSS + TOLD + "                        print('told')\n"), MERGE),
    left("with a value", "TM219", (LOSS, LOSS + TOLD + "                        told = loss * 2.0\n"), MERGE),
    left("under one more condition", "TM219", (LOSS, LOSS + TOLD.replace("i == 0", "i == 0 and drawn[0] == 0")), MERGE),
    left("by a flag that is set in front", "TM219", *FLAGGED, (SET[1], ""), ("                    loss = tower_loss", "                    reuse = True if i else None\n                    loss = tower_loss")),
    left("by a flag that is set under a condition", "TM219", *FLAGGED, (SET[1], "                    if i == 0:\n                        reuse = True\n")),
    left("by a flag that begins set", "TM219", *FLAGGED, ("    reuse = None\n", "    reuse = False\n")),
    left("by a flag of its own", "TM219", *FLAGGED, ("tower_loss(x, y, reuse)", "tower_loss(x, y, True if i else None)")),
    left("in a function that is called twice", "TM219", *FLAGGED, ("    train_op =", "    again = tower_loss(X, Y, True)\n    train_op =")),
    left("by what the function changes", "TM219", *FLAGGED, ("    loss = tf.reduce_mean(tf.square(out - y))\n    if", "    loss = tf.reduce_mean(tf.square(out - y))\n    reuse = reuse or None\n    if")),
    left("by a number that the function changes", "TM219", *BY_INDEX, ("    if number == 0:", "    number = number - 1\n    if number == 0:")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


def test_another_file_may_make_summaries_in_every_tower() -> None:
    text = program(*FLAGGED, WRITER, WRITE)["train.py"]
    start, end = text.index("def init(*shape)"), text.index("def average_gradients")
    model = "import numpy as np\nimport tensorflow as tf\n\n\n" + text[start:end]
    told = model.replace(
        "    return tf.matmul", "    tf.summary.histogram('w', w)\n    return tf.matmul"
    )
    text = text[:start] + text[end:]
    for other, style in ((model, "loop"), (told, "session")):
        files = {"train.py": "from model import net\n" + text, "model.py": other}
        (result,) = rewrite_tree(files).programs
        assert result.style == style


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
