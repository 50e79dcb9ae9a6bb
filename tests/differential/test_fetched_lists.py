"""Lists over the towers that runs fetch: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
FORWARD = "                    out = net(x)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVER = "    saver = tf.train.Saver()\n"
START = "    tower_grads = []\n"

EMPTY = (START, START + "    losses = []\n    outs = []\n")
FILLED = (
    APPENDED,
    APPENDED + "                    losses.append(loss)\n                    outs.append(out)\n",
)
SHOW = "            print(type(values), type(values[0]), len(values), [np.round(v, 5).tolist() for v in values])\n"
FEED = ", feed_dict={X: bx, Y: by})"


def case(name: str, *changes: Change) -> Any:
    return pytest.param((EMPTY, FILLED, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((EMPTY, FILLED, *changes), rule, id=name)


def behind(text: str) -> Change:
    """Statements behind the towers."""
    return (AVERAGED, AVERAGED + text)


def run(fetches: str, target: str = "values", show: str = SHOW) -> Change:
    """Another run of each step."""
    return (RUN, f"            {target} = sess.run({fetches}{FEED}\n" + show + RUN)


BESIDE = (RUN, f"            _, value, values = sess.run([train_op, loss, losses]{FEED}\n" + SHOW)

TAKEN = [
    case("alone", run("losses")),
    case("beside the update and the loss", BESIDE),
    case("beside the update", (RUN, f"            _, values = sess.run([train_op, losses]{FEED}\n            value = values[0]\n" + SHOW)),
    case("in place", (RUN, RUN + f"            print('%.5f' % np.mean(sess.run(losses{FEED}))\n")),
    case("under another name", behind("    shown = losses\n"), run("shown")),
    case("under three names", behind("    shown = losses\n    more = shown\n"), (RUN, f"            _, value, values = sess.run([train_op, loss, more]{FEED}\n" + SHOW)),
    case("of arrays", run("outs")),
    case("two of them", run("[losses, outs]", "more, values"), (SHOW, SHOW.replace("values", "more") + SHOW)),
    case("two of them, whole", run("[losses, losses]", "both", ""), ("losses, losses", "losses, outs"), (RUN, "            print([[np.round(v, 5).tolist() for v in each] for each in both])\n" + RUN)),
    case("in a list of one", run("[losses]", "(values,)")),
    case("in a list of one, used whole", (RUN, f"            values = sess.run([losses]{FEED}[0]\n" + SHOW + RUN)),
    case("a list inside of a list", run("[[losses, loss]]", "((values, _),)")),
    case("a list inside of a list, whole", run("[train_op, [losses, loss]]", "_, both", SHOW.replace("values", "both[0]")), (RUN, f"            value = sess.run(loss{FEED}\n")),
    case("taken apart", run("losses", "first, second", "            print('%.5f %.5f' % (first, second))\n")),
    case("with its value", run("[loss, losses]", "last, values", "            assert last == values[-1]\n" + SHOW)),
    case("of inputs", (FILLED[1], FILLED[1] + "                    inputs.append(x)\n"), (START, START + "    inputs = []\n"), run("inputs")),
    case("beside its mean", behind("    mean_loss = tf.reduce_mean(losses)\n"), run("[mean_loss, losses]", "mean, values", "            print('%.5f' % mean)\n" + SHOW)),
    case("whose value is bound anew for others", behind("    loss = tf.identity(loss)\n"), run("losses")),
    case("that is added to the update", (RUN, f"            value = sess.run([train_op] + losses{FEED}[1]\n")),
    case("that is added to the update, whole", (RUN, f"            got = sess.run([train_op] + losses{FEED}\n            print(type(got), len(got), got[0])\n            values = got[1:]\n            value = values[-1]\n" + SHOW)),
    case("that is added to the update, without it", (RUN, f"            values = sess.run([train_op] + losses{FEED}[1:]\n            value = np.mean(values)\n" + SHOW)),
    case("that is added to two", (RUN, f"            _, value, *values = sess.run([train_op, loss] + losses{FEED}\n" + SHOW)),
    case("that is added to two, whole", (RUN, f"            got = sess.run([train_op] + [loss] + losses{FEED}\n            value, values = got[1], got[2:]\n" + SHOW)),
    case("with a clip of its update", behind("    grads = [(tf.clip_by_value(g, -0.1, 0.1), v) for g, v in grads]\n"), BESIDE),
]  # fmt: skip

LEFT = [
    other("of the first tower", "TM214", (FILLED[1], FILLED[1].replace("                    losses.append", "                    if i == 0:\n                        losses.append")), run("losses")),
    other("in another order", "TM206", (FILLED[1], FILLED[1].replace("losses.append(loss)", "losses.insert(0, loss)")), run("losses")),
    other("that holds other things before", "TM206", ("    losses = []\n", "    losses = [tf.zeros([])]\n"), run("losses")),
    other("that holds other things behind", "TM206", behind("    losses.append(tf.zeros([]))\n"), run("losses")),
    other("that holds other things by another name", "TM209", behind("    shown = losses\n    losses.append(tf.zeros([]))\n"), run("shown")),
    other("that holds other things under another name", "TM206", behind("    shown = losses\n    shown.append(tf.zeros([]))\n"), run("losses")),
    other("that grows by itself", "TM206", behind("    losses += losses\n"), run("losses")),
    other("that is turned round", "TM206", behind("    losses.reverse()\n"), run("losses")),
    other("that is cut", "TM206", behind("    losses.pop()\n"), run("losses")),
    other("whose item is set", "TM206", behind("    losses[0] = losses[1]\n"), run("losses")),
    other("that a function changes", "TM206", ("def batch(rows):\n", "def turn(given):\n    given.reverse()\n    return given\n\n\ndef batch(rows):\n"), behind("    turned = turn(losses)\n"), run("losses")),
    other("that is bound anew", "TM209", behind("    losses = [loss, loss]\n"), run("losses")),
    other("of which a part is run", "TM209", run("losses[:1]")),
    other("that is added to the update in front of it", "TM209", (RUN, f"            value = sess.run(losses + [train_op]{FEED}[1]\n")),
    other("that is added to the update, and taken apart", "TM209", (RUN, f"            _, value, _ = sess.run([train_op] + losses{FEED}\n")),
    other("that is added to others", "TM209", (RUN, f"            value = sess.run([train_op] + losses + outs{FEED}[1]\n")),
    other("that is added to the update, of which part is taken", "TM209", (RUN, f"            values = sess.run([train_op] + losses{FEED}[2:]\n            value = values[0]\n" + SHOW)),
    other("that is added to itself", "TM209", (RUN, f"            values = sess.run([train_op] + losses + losses{FEED}[1:]\n            value = values[0]\n" + SHOW)),
    other("the same list twice", "TM231", run("[losses, losses]", "values, more")),
    other("of gradients", "TM209", run("tower_grads", "values", "            print(len(values))\n")),
    other("of numbers", "TM209", (FILLED[1], FILLED[1].replace("losses.append(loss)", "rows = 2\n                    losses.append(rows)")), (RUN, f"            try:\n                sess.run(losses{FEED}\n            except TypeError:\n                print('no')\n" + RUN)),
    other("of two values of each", "TM211", (FILLED[1], FILLED[1].replace("outs.append(out)", "losses.append(out)")), run("losses")),
    other("that the loop of runs fills too", "TM210", run("losses", "values", SHOW + "            losses.append(loss)\n")),
    other("whose value is bound anew beside it", "TM203", behind("    loss = loss * 2.0\n"), run("[loss, losses]", "last, values", "            print('%.5f' % last)\n" + SHOW)),
    other("that is asked for its size", "TM210", run("losses", "values", SHOW + "            print(len(losses))\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
