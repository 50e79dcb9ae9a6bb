"""Gradients that a loop appends one by one, functions defined behind the towers: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of_all, left, taken

AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
MADE = APPLIED.replace("(grads", "(made")
FUNCTION = MODEL[MODEL.index("def average_gradients") : MODEL.index("def batch")]


def by_loop(body: str, over: str = "g, v in grads") -> Change:
    """A list that a loop makes of the averaged gradients, and that is applied."""
    rows = "".join(f"        {line}\n" for line in body.split("\n"))
    return (APPLIED, f"    made = []\n    for {over}:\n{rows}{MADE}")


def of_module(*changes: Change) -> dict[str, str]:
    """The program as a script: what it trains with stands in the module, and the average behind the towers."""
    rows = TRAIN.removeprefix("def train():\n").split("\n")
    body = "\n".join(line.removeprefix("    ") for line in rows)
    body = body.replace("grads = average", FUNCTION + "grads = average", 1)
    text = "\n\n".join([HEAD, MODEL.replace(FUNCTION, ""), body])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


TAKEN = [
    taken("scaled", by_loop("made.append((g * 0.5, v))")),
    taken("clipped under a name", by_loop("g = tf.clip_by_value(g, -0.2, 0.2)\nmade.append((g, v))")),
    taken("another name", by_loop("clipped = tf.clip_by_norm(g, 0.2)\nmade.append((clipped, v))")),
    taken("those that are there", by_loop("if g is not None:\n    made.append((tf.clip_by_norm(g, 0.2), v))")),
    taken("and the others", by_loop("if g is not None:\n    made.append((tf.clip_by_norm(g, 0.2), v))\nelse:\n    made.append((g, v))")),
    taken("changed where it is there", by_loop("if g is not None:\n    g = tf.clip_by_norm(g, 0.2)\nmade.append((g, v))")),
    taken("twice", by_loop("made.append((g * 0.5, v))"), (MADE, "    more = []\n    for g, v in made:\n        more.append((tf.clip_by_norm(g, 0.1), v))\n" + MADE.replace("(made", "(more"))),
    taken("pairs by their places", by_loop("made.append((pair[0] * 0.5, pair[1]))", "pair in grads")),
    taken("the mean itself", (AVERAGED + APPLIED, "    made = []\n    for pairs in zip(*tower_grads):\n        grads = [g for g, _ in pairs]\n        made.append((tf.reduce_mean(grads, axis=0), pairs[0][1]))\n" + MADE)),
]  # fmt: skip

LEFT = [
    left("printed on the way", "TM206", by_loop("print(v.name)\nmade.append((g * 0.5, v))")),
    left("only the first", "TM206", by_loop("made.append((g * 0.5, v))\nbreak")),
    left("two for each", "TM206", by_loop("made.append((g * 0.5, v))\nmade.append((g * 0.1, v))")),
    left("put in front", "TM206", by_loop("made.insert(0, (g * 0.5, v))")),
    left("one that the loop left before", "TM206", (APPLIED, "    part = 0.5\n    made = []\n    for g, v in grads:\n        made.append((g * part, v))\n        part = 0.1\n" + MADE)),
    left("changed for some, and kept for the next", "TM206", (APPLIED, "    part = 0.5\n    made = []\n    for g, v in grads:\n        if g is None:\n            part = 0.1\n        made.append((g * part, v))\n" + MADE)),
    left("one gradient for the next", "TM206", (APPLIED, "    last = tf.zeros([3, 1])\n    made = []\n    for g, v in grads:\n        last = last * 0.5 + tf.reduce_sum(g)\n        made.append((g + tf.reduce_sum(last), v))\n" + MADE)),
]  # fmt: skip


SCRIPTS = [
    taken("a function between the towers and its call"),
    taken("two functions", ("train_op = opt", "def applied(grads):\n    return [(g * 0.5, v) for g, v in grads]\n\n\ngrads = applied(grads)\ntrain_op = opt")),
    taken("with a comment", ("def average_gradients", "# The mean over the towers.\ndef average_gradients")),
]  # fmt: skip

BOUND_ANEW = [
    left("a function bound anew", "TM203", ("grads = average", "average_gradients = lambda grads: grads[0]\ngrads = average")),
    left("a function with another before it", "TM203", ("tower_grads = []\n", "tower_grads = []\n\n\ndef average_gradients(grads):\n    return grads[0]\n\n\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
(
    test_a_script_is_in_loop_style,
    test_a_neighbour_of_a_script_is_not,
    test_all_scripts_do_the_same_rewritten,
    test_no_neighbour_of_a_script_does_anything_else,
) = asked_of_all(SCRIPTS, BOUND_ANEW, of_module)
