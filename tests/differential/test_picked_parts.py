"""Dicts and lists that runs give, of which only parts are read: spellings that loop style takes, and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

AVERAGED = "    grads = average_gradients(tower_grads)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SHOWN = "            print('step', step, 'loss', '%.6f' % value)\n"
END = "        print('draws', drawn[0])\n"
FEED = "feed_dict={X: bx, Y: by}"
SUMMARY = (
    SAVER,
    "    tf.summary.scalar('loss', loss)\n    merged = tf.summary.merge_all()\n    writer = tf.summary.FileWriter('log')\n"
    + SAVER,
)
DICT = "{'op': train_op, 'loss': loss, 'summary': merged}"
WRITTEN = "            writer.add_summary(got['summary'], step)\n"
PICKED = SHOWN.replace("value", "got['loss']")


def run(fetched: str = DICT, behind: str = WRITTEN, shown: str = PICKED) -> tuple[Change, ...]:
    return (RUN, f"            got = sess.run({fetched}, {FEED})\n" + behind), (SHOWN, shown)


def case(name: str, *changes: Change) -> Any:
    return pytest.param((SUMMARY, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((SUMMARY, *changes), rule, id=name)


TAKEN = [
    case("a dict with a summary", *run()),
    case("one that is read behind the loop", *run(), (END, "        print('last', '%.5f' % got['loss'])\n" + END)),
    case("one whose part is read twice", *run(), (SHOWN.replace("value", "got['loss']"), SHOWN.replace("value", "got['loss']") + "            print(type(got['loss']), got['loss'].dtype)\n")),
    case("one of before is read", *run(), (RUN.split("_, value")[0] + "got = sess", "            if step:\n                print('%.5f' % got['loss'])\n            got = sess")),
    case("a list with a summary", *run("[train_op, loss, merged]", WRITTEN.replace("'summary'", "2"), SHOWN.replace("value", "got[1]"))),
    case("a list from its end", *run("[loss, train_op, merged]", WRITTEN.replace("'summary'", "-1"), SHOWN.replace("value", "got[0]"))),
    case("a list of values", (RUN, f"            got = sess.run([loss, train_op], {FEED})\n"), (SHOWN, SHOWN.replace("value", "got[0]"))),
    case("a dict of which one part is read", *run("{'a': train_op, 'b': loss}", "")[:1], (SHOWN, SHOWN.replace("value", "got['b']"))),
]  # fmt: skip

LEFT = [
    other("one that is kept", "TM231", *run(), (END, "        print(sorted(got))\n" + END)),
    other("one that is set", "TM231", *run(behind=WRITTEN + "            got['loss'] = got['loss'] * 2.0\n")),
    other("one of two runs", "TM231", *run(behind=WRITTEN + f"            got = sess.run({{'loss': loss, 'summary': merged}}, {FEED})\n")),
    other("one that a function reads", "TM231", *run(behind=WRITTEN + "            shown = lambda: got['loss']\n", shown=SHOWN.replace("value", "shown()"))),
    other("one whose update is read", "TM231", *run(behind=WRITTEN + "            assert got['op'] is None\n")),
    other("one by a name", "TM231", *run(behind="            key = 'summary'\n            writer.add_summary(got[key], step)\n")),
    other("a summary that is looked into", "TM231", *run(behind=WRITTEN + "            print(len(got['summary']) > 3)\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
