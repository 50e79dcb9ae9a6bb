"""Runs that fetch one tower's value of a list, `losses[0]`: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

START = "    tower_grads = []\n"
MARGIN = " " * 20
GRADS = MARGIN + "tower_grads.append(grads)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SHOWN = "'%.6f' % value)\n"
LISTED = ((START, START + "    losses = []\n"), (GRADS, f"{GRADS}{MARGIN}losses.append(loss)\n"))


def fetched(*items: str) -> tuple[str, str]:
    names = ", ".join(["value", *(f"more_{number}" for number in range(1, len(items)))])
    shown = "".join(
        f"            print('%.6f' % more_{number})\n" for number in range(1, len(items))
    )
    run = RUN.replace("value", names).replace("loss]", f"{', '.join(items)}]")
    return RUN, run + shown


def behind(line: str) -> tuple[str, str]:
    return "    saver =", f"    {line}\n    saver ="


TAKEN = [
    taken("the first", *LISTED, fetched("losses[0]")),
    taken("the second", *LISTED, fetched("losses[1]")),
    taken("the first and the last", *LISTED, fetched("losses[0]", "losses[-1]")),
    taken("all of them one by one", *LISTED, fetched("losses[0]", "losses[1]", "loss")),
    taken("the first by a run that looks", *LISTED, (SHOWN, SHOWN + "            print('%.6f' % sess.run(losses[0], {X: bx, Y: by}))\n")),
    taken("the first of two lists", *LISTED, ("    losses = []\n", "    losses = []\n    outs = []\n"), (f"{MARGIN}losses.append(loss)\n", f"{MARGIN}losses.append(loss)\n{MARGIN}size = tf.reduce_sum(out)\n{MARGIN}outs.append(size)\n"), fetched("losses[0]", "outs[0]")),
    taken("beside their mean", *LISTED, behind("mean = tf.reduce_mean(losses)"), fetched("mean", "losses[1]")),
]  # fmt: skip

LEFT = [
    left("an item by a number that changes", "TM209", *LISTED, fetched("losses[step % 2]")),
    left("of a list that grows", "TM209", *LISTED, behind("losses.append(tf.add_n(losses))"), fetched("losses[0]")),
    left("of a list that is bound anew", "TM209", *LISTED, behind("losses = [tf.add_n(losses)]"), fetched("losses[0]")),
    left("of a list that is turned round", "TM206", *LISTED, behind("losses.reverse()"), fetched("losses[0]")),
    left("of a list that is turned round by another name", "TM206", *LISTED, behind("other = losses; other.reverse()"), fetched("losses[0]")),
    left("an item that is set", "TM206", *LISTED, behind("losses[0] = losses[1]"), fetched("losses[0]")),
    left("of a list that is sorted", "TM206", *LISTED, behind("losses.sort(key=lambda t: t.name, reverse=True)"), fetched("losses[0]")),
    left("of a list that towers fill from its end", "TM206", LISTED[0], (GRADS, f"{GRADS}{MARGIN}losses.insert(0, loss)\n"), fetched("losses[0]")),
    left("of a list that some towers fill", "TM214", LISTED[0], (GRADS, f"{GRADS}{MARGIN}if i == 1:\n{MARGIN}    losses.append(loss)\n"), fetched("losses[0]")),
    left("of a list that begins with something else", "TM217", (START, START + "    losses = [tf.constant(1.0)]\n"), LISTED[1], fetched("losses[0]")),
    left("a gradient", "TM209", *LISTED, (RUN, "            _, value, g = sess.run([train_op, losses[0], tower_grads[0][0][0]], feed_dict={X: bx, Y: by})\n            print('%.6f' % g.sum())\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
