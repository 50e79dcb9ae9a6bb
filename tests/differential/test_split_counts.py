"""Inputs that are split by a number of the file, where the towers go over the parts themselves."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

ZIPPED = (
    ("for i in range(2):", "for i, (x, y) in enumerate(zip(xs, ys)):"),
    ("                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n", ""),
)


def split(number: str, head: str, more: tuple[Change, ...] = ()) -> tuple[Change, ...]:
    """The program whose towers go over `tf.split(X, number)`, with lines of the file in front."""
    inputs = (
        f"    xs = tf.split(X, {number})\n    ys = tf.split(Y, {number})\n    tower_grads = []\n"
    )
    return ("drawn = [0]\n", f"drawn = [0]\n{head}"), ("    tower_grads = []\n", inputs), *ZIPPED, *more  # fmt: skip


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


MAIN = "if __name__ == '__main__':\n"
TAKEN = [
    taken("a number of the file", *split("NUM", "NUM = 2\n")),
    taken("the number itself", *split("2", "")),
]  # fmt: skip
LEFT = [
    left("a number that a function may set", "TM208", *split("NUM", "NUM = 2\n\n\ndef more():\n    global NUM\n    NUM = 2\n\n\n")),
    left("a number that is set again", "TM208", *split("NUM", "NUM = 4\n", ((MAIN, MAIN + "    NUM = 2\n"),))),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
