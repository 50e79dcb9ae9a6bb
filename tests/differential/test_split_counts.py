"""Splits by another name of the number of towers, lists that share a line: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

LOOP = "for i in range(2):"
ROWS = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
START = "    tower_grads = []\n"
STEPS = "    step_count = tf.train.get_or_create_global_step()\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"


def split(by: str, towers: str, *before: str) -> tuple[tuple[str, str], ...]:
    """Inputs in as many parts as `by` says, for the towers of a loop over `towers`."""
    named = towers.startswith("enumerate")
    index, device = ("i, device", "device") if named else ("i", "'/gpu:%d' % i")
    lines = "".join(f"    {line}\n" for line in before)
    return (
        (STEPS, lines + STEPS),
        (START, f"    xs, ys = tf.split(X, {by}), tf.split(Y, {by})\n{START}"),
        (LOOP, f"for {index} in {towers}:"),
        ("tf.device('/gpu:%d' % i)", f"tf.device({device})"),
        (ROWS, "x, y = xs[i], ys[i]"),
    )


TAKEN = [
    taken("the length of a list", *split("num", "enumerate(DEVICES)", "num = len(DEVICES)")),
    taken("the length of a list of its own", *split("num", "enumerate(devices)", "devices = ['/gpu:0', '/gpu:1']", "num = len(devices)", "print(num, 'towers')")),
    taken("a number", *split("num", "range(2)", "num = 2")),
    taken("another name", *split("num", "range(many)", "many = 2", "num = many")),
    taken("parts that are dealt", (STEPS, "    num = 2\n" + STEPS), (START, "    parts = list(zip(tf.split(X, num), tf.split(Y, num)))\n" + START), (LOOP, "for i, (x, y) in enumerate(parts):"), (ROWS, "pass")),
    taken("a list that is never read", (START, "    tower_grads, sizes = [], []\n")),
    taken("three lists", (START, "    tower_grads, losses, sizes = [], [], []\n"), (LOSS, LOSS + " " * 20 + "losses.append(loss)\n"), ("[train_op, loss]", "[train_op, mean]"), ("    saver = tf", "    mean = tf.reduce_mean(losses)\n    saver = tf")),
]  # fmt: skip

LEFT = [
    left("another number", "TM208", *split("num", "range(2)", "num = 4")),
    left("a list that grew", "TM208", *split("num", "enumerate(devices)", "devices = ['/gpu:0']", "num = len(devices)", "devices.append('/gpu:1')")),
    left("bound twice", "TM208", *split("num", "range(2)", "num = 1", "num = 2")),
    left("another list", "TM208", *split("num", "enumerate(DEVICES)", "other = ['/gpu:0']", "num = len(other)")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
