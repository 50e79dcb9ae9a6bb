"""Recurrent cells in the towers: loop style where `static_rnn` and its kin call them."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import MODEL, Change
from tests.differential.spellings import asked_of, none_does_anything_else, takes

NET = MODEL[MODEL.index("def net(x)") : MODEL.index("def average_gradients")]
HEAD = "import tensorflow as tf\n"


def net(*lines: str, initializer: str = "initializer=tf.constant_initializer(0.2)") -> Change:
    """A model of these statements, in which `steps` are the columns of a batch; they bind `last`, of two units."""
    rows = "".join(f"        {line}\n" for line in lines)
    return NET, (
        "def net(x):\n"
        f"    with tf.variable_scope('words', {initializer}):\n"
        "        columns = tf.expand_dims(x, 2)\n"
        "        steps = tf.unstack(columns, num=3, axis=1)\n"
        f"{rows}"
        "        w = tf.get_variable('w', [2, 1])\n"
        "    return tf.matmul(last, w)\n\n\n"
    )


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


LSTM = "cell = tf.nn.rnn_cell.BasicLSTMCell(2)"
STATIC = ("outputs, state = tf.nn.static_rnn(cell, steps, dtype=tf.float32)", "last = outputs[-1]")
DYNAMIC = (
    "outputs, state = tf.nn.dynamic_rnn(cell, columns, dtype=tf.float32)",
    "last = outputs[:, -1]",
)

TAKEN = [
    taken("a cell, step by step", net(LSTM, *STATIC)),
    taken("in a loop of the graph", net(LSTM, *DYNAMIC)),
    taken("with its forget bias", net("cell = tf.nn.rnn_cell.BasicLSTMCell(2, forget_bias=0.5)", *STATIC)),
    taken("a GRU", net("cell = tf.nn.rnn_cell.GRUCell(2)", *DYNAMIC)),
    taken("a plain cell, with an activation", net("cell = tf.nn.rnn_cell.BasicRNNCell(2, activation=tf.nn.relu)", *STATIC)),
    taken("an LSTM with peepholes", net("cell = tf.nn.rnn_cell.LSTMCell(2, use_peepholes=True)", *DYNAMIC)),
    taken("the state itself", net(LSTM, STATIC[0], "last = state.h")),
    taken("two layers", net("cells = [tf.nn.rnn_cell.BasicLSTMCell(2) for _ in range(2)]", "cell = tf.nn.rnn_cell.MultiRNNCell(cells)", *DYNAMIC)),
    taken("from a state of zeros", net(LSTM, "state = cell.zero_state(tf.shape(x)[0], tf.float32)",
          "outputs, state = tf.nn.static_rnn(cell, steps, initial_state=state)", "last = outputs[-1]")),
    taken("both ways", net("fw, bw = tf.nn.rnn_cell.GRUCell(1), tf.nn.rnn_cell.GRUCell(1)",
          "outputs, _, _ = tf.nn.static_bidirectional_rnn(fw, bw, steps, dtype=tf.float32)", "last = outputs[-1]")),
    taken("both ways, in a loop of the graph", net("fw, bw = tf.nn.rnn_cell.GRUCell(1), tf.nn.rnn_cell.GRUCell(1)",
          "outputs, _ = tf.nn.bidirectional_dynamic_rnn(fw, bw, columns, dtype=tf.float32)", "last = tf.concat(outputs, 2)[:, -1]")),
    taken("in a scope of its own name", net(LSTM, STATIC[0].replace("dtype", "scope='decoder', dtype"), STATIC[1])),
    taken("over all outputs", net(LSTM, STATIC[0], "last = tf.add_n(outputs) / 3.0")),
    taken("made by a function", (NET, "def cell_of(size):\n    return tf.nn.rnn_cell.BasicLSTMCell(size)\n\n\n" + net("cell = cell_of(2)", *DYNAMIC)[1])),
]  # fmt: skip

CONTRIB = (
    (HEAD, HEAD + "from tensorflow.contrib import rnn\n"),
    net("cell = rnn.BasicLSTMCell(2)", "outputs, _ = rnn.static_rnn(cell, steps, dtype=tf.float32)", "last = outputs[-1]"),
)  # fmt: skip

LEFT = [
    left("made before the towers", "TM222", net(*STATIC), ("    tower_grads = []\n", f"    tower_grads = []\n    {LSTM}\n"), ("net(x)\n                    loss", "net(x, cell)\n                    loss"),
         ("def net(x):", "def net(x, cell):")),
    left("called by itself", "TM222", net(LSTM, "last, state = cell(steps[0], cell.zero_state(tf.shape(x)[0], tf.float32))")),
    left("a cell of the program's own", "TM222", (NET, "class Own(tf.nn.rnn_cell.BasicLSTMCell):\n    pass\n\n\n" + net("cell = Own(2)", *STATIC)[1])),
    left("that says whether it reuses", "TM222", net("cell = tf.nn.rnn_cell.BasicLSTMCell(2, reuse=tf.AUTO_REUSE)", *STATIC)),
    left("with dropout of a seed", "TM232", net("cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(2), output_keep_prob=0.9, seed=3)", *STATIC)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


def test_those_of_contrib_are_in_loop_style_too() -> None:
    takes(CONTRIB)  # TensorFlow 2, which runs the original above, has no contrib


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
