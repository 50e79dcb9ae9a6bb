"""Summaries that are read into a message, to which other values come: what loop style takes, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
PRINT = "            print('step', step, 'loss', '%.6f' % value)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FORM = (
    (LOSS, LOSS + "                    tf.summary.scalar('loss', loss)\n"),
    (SAVER, "    merged = tf.summary.merge_all()\n" + SAVER),
    (INIT, INIT + "        writer = tf.summary.FileWriter('log', sess.graph)\n"),
)
PARSED = """\
            summary = tf.Summary()
            summary.ParseFromString(sess.run(merged, {X: bx, Y: by}))
            summary.value.add(tag='rate', simple_value=0.1)
            writer.add_summary(summary, step)
"""


def read(*changes: tuple[str, str]) -> Change:
    text = PARSED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return (PRINT, text + PRINT)


def case(name: str, *changes: Change) -> Any:
    return pytest.param((*FORM, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*FORM, *changes), rule, id=name)


FETCHED = (RUN, RUN.replace("_, value", "_, value, told").replace("loss]", "loss, merged]"))

TAKEN = [
    case("of a run", read()),
    case("of a name", FETCHED, read(("sess.run(merged, {X: bx, Y: by})", "told"))),
    case("of each other step", read(("            summary = tf.Summary()\n", "            summary = tf.Summary()\n            summary.value.add(tag='step', simple_value=step)\n"))),
]  # fmt: skip

LEFT = [
    other("shown", "TM231", read(("            writer", "            print(summary)\n            writer"))),
    other("handed on", "TM231", read(("            writer", "            show(summary)\n            writer")), ("def net(x):\n", "def show(message):\n    print(len(message.value))\n\n\ndef net(x):\n")),
    other("read again", "TM231", read(("            writer", "            print(summary.value[0].tag)\n            writer"))),
    other("of another kind", "TM231", read(("tf.Summary()", "tf.Event().summary"))),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
