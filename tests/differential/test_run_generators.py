"""Runs in generators that are read to their end where they are made: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

SHOWN = "'%.6f' % value)\n"
RUNS = "sess.run(loss, feed_dict={X: bx + n, Y: by}) for n in range(2)"
TRAINED = "            print('step', step, 'loss', '%.6f' % value)\n"


def shown(text: str) -> tuple[str, str]:
    return SHOWN, f"{SHOWN}            print('%.6f' % {text})\n"


TAKEN = [
    taken("the sum", shown(f"sum({RUNS})")),
    taken("the sum from a number", shown(f"sum(({RUNS}), 0.5)")),
    taken("the greatest", shown(f"max({RUNS})")),
    taken("a list", shown(f"np.mean(list({RUNS}))")),
    taken("the least of a tuple", shown(f"min(tuple({RUNS}))")),
    taken("evaluated", shown("sum(loss.eval({X: bx + n, Y: by}, session=sess) for n in range(2))")),
    taken("training runs", (TRAINED, "            print('%.6f' % sum(sess.run([train_op, loss], feed_dict={X: bx, Y: by})[1] for n in range(2)))\n")),
]  # fmt: skip

LEFT = [
    left("until one is true", "TM205", shown(f"any(1 < {RUNS})")),
    left("a generator with a name", "TM205", (SHOWN, f"{SHOWN}            seen = ({RUNS})\n            print('%.6f' % next(seen))\n")),
    left("a sum of the program's own", "TM205", shown(f"sum({RUNS})"), ("def train():\n", "def sum(values):\n    return next(values)\n\n\ndef train():\n")),
    left("a function that takes some of them", "TM205", shown(f"next({RUNS})")),
    left("zipped", "TM205", (SHOWN, f"{SHOWN}            print(['%d %.6f' % each for each in zip(range(1), ({RUNS}))])\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
