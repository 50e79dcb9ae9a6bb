"""Seeds that are of another graph than the towers': what is seeded in TF1 by itself would start by them in a step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

SEED = "tf.set_random_seed(7)\n"
START = "    step_count = tf.train.get_or_create_global_step()\n"
RESET = "    tf.reset_default_graph()\n"
MAIN = "if __name__ == '__main__':\n    train()\n"
# Of the operation's seed and the graph's, if it has one.
STARTS = ("w = tf.get_variable('w', [3, 1], initializer=init(3, 1))", "w = tf.get_variable('w', [3, 1], initializer=tf.random_normal_initializer(stddev=0.5, seed=3))")  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param((STARTS, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((STARTS, *changes), rule, id=name)


def in_graph(text: str) -> Change:
    """The whole of `train` in a graph of its own, behind a text."""
    return (MAIN, f"def built():\n{text}    with tf.Graph().as_default():\n        train()\n\n\nif __name__ == '__main__':\n    built()\n")  # fmt: skip


TAKEN = [
    case("no graph of its own", (START, "    " + SEED + START)),
    case("a module's seed", ("drawn =", SEED + "drawn =")),
    case("behind a reset", (START, RESET + "    " + SEED + START)),
    case("behind a module's reset", (MAIN, MAIN.replace("    train", RESET + "    train")), (START, "    " + SEED + START)),
    case("both of the module, in this order", ("drawn =", "tf.reset_default_graph()\n" + SEED + "drawn =")),
    case("no seed of a graph", in_graph("")),
    case("in the graph that is entered around", in_graph(""), (START, "    " + SEED + START)),
]  # fmt: skip

LEFT = [
    other("in front of a reset", "TM232", (START, "    " + SEED + RESET + START)),
    other("a module's seed and a reset", "TM232", ("drawn =", SEED + "drawn ="), (START, RESET + START)),
    other("in front of the graph", "TM232", in_graph("    " + SEED)),
    other("a module's seed and a graph", "TM232", ("drawn =", SEED + "drawn ="), in_graph("")),
    other("in front of a module's reset", "TM232", (MAIN, MAIN.replace("    train", "    " + SEED + RESET + "    train"))),
    other("in a function in front of the graph", "TM232", in_graph("    seeded()\n"), ("def net(x)", "def seeded():\n    " + SEED + "\n\ndef net(x)")),
    other("by another name", "TM232", ("drawn =", "seeded = tf.set_random_seed\nseeded(7)\ndrawn ="), (START, RESET + START)),
    other("imported by another name", "TM232", ("drawn =", "from tensorflow import set_random_seed as seeded\nseeded(7)\ndrawn ="), (START, RESET + START)),
    other("a graph that is made by another name", "TM232", ("drawn =", SEED + "made = tf.Graph\ndrawn ="), (MAIN, "if __name__ == '__main__':\n    with made().as_default():\n        train()\n")),
    other("a reset in a function", "TM232", ("drawn =", "def cleared():\n" + RESET + "\n\ndrawn ="), (START, "    " + SEED + "    cleared()\n" + START)),
    other("a graph that is entered by no block", "TM232", (START, "    " + SEED + "    tf.Graph().as_default().__enter__()\n" + START)),
    other("in the block of a graph that is left before the call", "TM232", (MAIN, "if __name__ == '__main__':\n    with tf.Graph().as_default():\n        " + SEED + "        late = train\n    late()\n")),
    other("in a block of a graph beside another call", "TM232", (MAIN, "if __name__ == '__main__':\n    with tf.Graph().as_default():\n        " + SEED + "        if len(drawn) > 1:\n            train()\n    train()\n")),
    other("a reset in a branch", "TM232", (START, "    " + SEED + "    if drawn:\n    " + RESET + START)),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_that_is_left_does_anything_else() -> None:
    none_does_anything_else(LEFT)
