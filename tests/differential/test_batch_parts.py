"""Slices of a dataset's batches: loop style where every batch has just the towers' rows, and neighbours that must not be."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else, takes

PLACEHOLDERS = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
UNFED = (
    "            bx, by = batch(4)\n            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n",
    "            _, value = sess.run([train_op, loss])\n",
)
DATA = (
    "def batch(rows):\n",
    "def rows_of_data():\n    x = np.arange(42).reshape(14, 3) % 5 * np.float32(0.1)\n"
    "    return x.astype(np.float32), x.sum(1, keepdims=True).astype(np.float32)\n\n\ndef batch(rows):\n",
)
SLICES = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
STEPS = ("range(4)", "range(3)")
START = "        sess.run(tf.global_variables_initializer())\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def read(*lines: str) -> tuple[Change, ...]:
    """Inputs of a dataset that these lines make."""
    return (PLACEHOLDERS, "".join(f"    {each}\n" for each in lines)), UNFED, DATA, STEPS


def chained(chain: str) -> tuple[Change, ...]:
    return read(
        f"data = tf.data.Dataset.from_tensor_slices(rows_of_data()){chain}",
        "X, Y = data.make_one_shot_iterator().get_next()",
    )


def made(*lines: str, call: str, of: str = "rows") -> tuple[Change, ...]:
    """A function of the pipeline, and its call."""
    function = (
        f"def pipeline({of}):\n    data = tf.data.Dataset.from_tensor_slices(rows_of_data())\n"
    )
    function += "".join(f"    {each}\n" for each in lines)
    return (
        *read(f"X, Y = {call}"),
        ("def average_gradients(", f"{function}\n\ndef average_gradients("),
    )


NEXT = "return data.make_one_shot_iterator().get_next()"

TAKEN = [
    taken("of data that never ends", *chained(".repeat().batch(4)")),
    taken("shuffled behind it", *chained(".repeat().shuffle(5, seed=3).batch(4).prefetch(1)")),
    taken("the rest dropped", *chained(".batch(4, drop_remainder=True)")),
    taken("the rest dropped, by position, and repeated", *chained(".batch(4, True).repeat()")),
    taken("mapped and batched", *chained(".repeat().apply(tf.data.experimental.map_and_batch(lambda x, y: (x * 2., y), batch_size=4))")),
    taken("line for line", *read("data = tf.data.Dataset.from_tensor_slices(rows_of_data())", "data = data.repeat()", "data = data.batch(4)", "iterator = data.make_one_shot_iterator()", "X, Y = iterator.get_next()")),
    taken("initialised", *read("data = tf.data.Dataset.from_tensor_slices(rows_of_data()).repeat().batch(4)", "iterator = data.make_initializable_iterator()", "X, Y = iterator.get_next()"), (START, START + "        sess.run(iterator.initializer)\n")),
    taken("in numbers of the module", *chained(".repeat().batch(ROWS * TOWERS)"), ("drawn = [0]\n", "drawn = [0]\nROWS = 2\nTOWERS = 2\n"), ("range(2)", "range(TOWERS)"), (SLICES, SLICES.replace("* 2", "* ROWS"))),
    taken("a number beside its product", *chained(".repeat().batch(4)"), ("drawn = [0]\n", "drawn = [0]\nROWS = 2\n"), (SLICES, SLICES.replace("* 2", "* ROWS"))),
    taken("of a function", *made("data = data.repeat().batch(rows)", NEXT, call="pipeline(2 * 2)")),
    taken("of a function with a default", *made("data = data.repeat().batch(rows)", "x, y = data.make_one_shot_iterator().get_next()", "return x, y", call="pipeline()", of="rows=4")),
    taken("of a function, by its keyword", *made("data = data.repeat().batch(rows)", NEXT, call="pipeline(rows=4)", of="rows, more=1")),
    taken("by other bounds", *chained(".repeat().batch(4)"), (SLICES, "x, y = X[i * 2:i * 2 + 2], Y[2 * i:2 * (i + 1)]")),
]  # fmt: skip

LEFT = [
    left("the last batch shorter", "TM227", *chained(".batch(4)")),
    left("the last batch shorter, repeated behind", "TM227", *chained(".batch(4).repeat()")),
    left("repeated twice", "TM227", *chained(".repeat(2).batch(4)")),
    left("never ending, but for a part of it", "TM227", *chained(".repeat().take(10).batch(4)")),
    left("of more rows", "TM227", *chained(".repeat().batch(5)")),
    left("of fewer rows", "TM227", *chained(".repeat().batch(3)")),
    left("changed behind the batch", "TM227", *chained(".repeat().batch(4).map(lambda x, y: (x[:3], y[:3]))")),
    left("perhaps dropped", "TM227", *chained(".batch(4, drop_remainder=DROP)"), ("drawn = [0]\n", "drawn = [0]\nDROP = False\n")),
    left("of a size that changes", "TM227", *read("rows = 4", "data = tf.data.Dataset.from_tensor_slices(rows_of_data()).repeat().batch(rows)", "X, Y = data.make_one_shot_iterator().get_next()", "rows = 2"), (SLICES, SLICES.replace("* 2", "* rows"))),
    left("of a function of other rows", "TM227", *made("data = data.repeat().batch(rows + 1)", NEXT, call="pipeline(4)")),
    left("of a function that binds its rows anew", "TM227", *made("rows = rows + 1", "data = data.repeat().batch(rows)", NEXT, call="pipeline(4)")),
    left("of a function with a number of its own", "TM227", *made("size = 5", "data = data.repeat().batch(size)", NEXT, call="pipeline(4)"), ("    tower_grads = []\n", "    tower_grads = []\n    size = 4\n")),
    left("of a function that chooses", "TM227", *made("if rows > 3:", "    data = data.repeat()", "data = data.batch(rows)", NEXT, call="pipeline(4)")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


def test_the_rest_that_contrib_drops() -> None:
    # Nothing but TensorFlow 1 has it, so it is asked for only.
    takes(chained(".apply(tf.contrib.data.batch_and_drop_remainder(4))"))


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
