"""Options that runs are given, and what is told of them."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

FED = "feed_dict={X: bx, Y: by})"
START = "        sess.run(tf.global_variables_initializer())\n"
END = "        print('draws', drawn[0])\n"
TRACE = "tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)"
NAMED = (START, f"        options = {TRACE}\n        told = tf.RunMetadata()\n" + START)


def given(text: str) -> Change:
    return FED, FED[:-1] + f", {text})"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("that trace", given(f"options={TRACE}")),
    taken("that say more of errors", given("options=tf.RunOptions(report_tensor_allocations_upon_oom=True)")),
    taken("of nothing", given("options=tf.RunOptions()")),
    taken("with a name", NAMED, given("options=options")),
    taken("with what is told", NAMED, given("options=options, run_metadata=told")),
    taken("with what is told alone", NAMED, given("run_metadata=told")),
    taken("on a line of their own", NAMED, given("\n                                options=options,\n                                run_metadata=told,\n                                ")),
    taken("in two runs", NAMED, given("options=options, run_metadata=told"), (END, "        print('%.6f' % sess.run(loss, {X: bx, Y: by}, options=options))\n" + END)),
]  # fmt: skip

LEFT = [
    left("that stop a run", "TM209", given("options=tf.RunOptions(timeout_in_ms=100000)")),
    left("what is told is read", "TM209", NAMED, given("options=options, run_metadata=told"), (END, "        print(len(told.step_stats.dev_stats) > 0)\n" + END)),
    left("what is told is written", "TM209", NAMED, given("options=options, run_metadata=told"), (END, "        tf.summary.FileWriter('logs').add_run_metadata(told, 'last')\n" + END)),
    left("that are set later", "TM209", NAMED, (END, "        options.timeout_in_ms = 100000\n" + END), given("options=options")),
    left("that are chosen", "TM209", NAMED, given("options=options if step % 2 else None")),
    left("that are bound anew", "TM209", NAMED, (END, "        options = None\n" + END), given("options=options")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
