"""Programs under `if __name__ == '__main__':`: those that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of

GUARD = "if __name__ == '__main__':\n"
AS_FUNCTION = ("def train():\n", GUARD)
CALL = ("\n\nif __name__ == '__main__':\n    train()\n", "")
BATCH = "def batch(rows):\n    drawn[0] += 1\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
STEP = "def one_step(sess, train_op, loss, X, Y, bx, by):\n    _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n    return value\n\n\n"
LOOKS = "def looks(session, loss, images, labels):\n    bx, by = batch(4)\n    print('seen', '%.6f' % session.run(loss, feed_dict={images: bx, labels: by}))\n\n\n"


def guarded(*changes: Change) -> dict[str, str]:
    """The program whose function is what the file does as a program."""
    return program(CALL, AS_FUNCTION, *changes)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("as it is"),
    case("by other quotes", (GUARD, 'if __name__ == "__main__":\n')),
    case("with a comment in it", (GUARD, GUARD + "    # The program\n")),
    case("with a function that is given the session", (RUN, "            value = one_step(sess, train_op, loss, X, Y, bx, by)\n"), (BATCH, STEP + BATCH)),
    case("with a function that looks", (RUN, RUN + "            looks(sess, loss, X, Y)\n"), (BATCH, LOOKS + BATCH)),
    case("with two functions", (RUN, "            value = one_step(sess, train_op, loss, X, Y, bx, by)\n            looks(sess, loss, X, Y)\n"), (BATCH, STEP + LOOKS + BATCH)),
    case("with names that functions have for others", (BATCH, BATCH + "    bx = rows\n    assert bx\n")),
]  # fmt: skip

LEFT = [
    other("whose name a function reads", "TM201", (BATCH, BATCH + "    assert step < 4\n")),
    other("whose name a function binds", "TM201", (BATCH, BATCH + "    global bx\n    bx = rows\n")),
    other("whose name the file has", "TM201", ("drawn = [0]\n", "drawn = [0]\nloss = 0\nprint(loss)\n")),
    other("with an `else`", "TM201", ("        print('draws', drawn[0])\n", "        print('draws', drawn[0])\nelse:\n    print('imported')\n")),
    other("that asks more", "TM201", (GUARD, "if __name__ == '__main__' and DEVICES:\n")),
    other("in another block", "TM201", (GUARD, "if DEVICES:\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, guarded)
