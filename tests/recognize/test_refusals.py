"""Forms that must be refused: each with the one line that makes it another program, and the rule."""

from __future__ import annotations

import pytest

from tests.recognize.programs import emit, program, rules


def test_the_small_program_itself_converts() -> None:
    emission = emit(program())
    assert [r.status for r in emission.results] == ["converted"]


REFUSED = [
    pytest.param(
        ("for i in range(num_gpus):", "for i, d in zip(range(num_gpus), 'ab'):"), "TM201", id="zip loop"
    ),
    pytest.param(
        ("    for i in range(num_gpus):\n", "    for i in range(0, num_gpus):\n"),
        "TM201",
        id="range with a start",
    ),
    pytest.param(
        ("            grads = opt.compute_gradients(loss)\n            tower_grads.append(grads)\n", ""),
        "TM202",
        id="no gradients in the loop",
    ),
    pytest.param(
        ("grad = tf.reduce_mean(tf.concat(grads, 0), 0)", "grad = tf.reduce_sum(tf.concat(grads, 0), 0)"),
        "TM203",
        id="sum instead of mean",
    ),
    pytest.param(
        ("grad = tf.reduce_mean(tf.concat(grads, 0), 0)", "grad = tf.reduce_mean(tf.concat(grads, 0))"),
        "TM203",
        id="mean over everything",
    ),
    pytest.param(
        (
            "grad = tf.reduce_mean(tf.concat(grads, 0), 0)",
            "grad = 2 * tf.reduce_mean(tf.concat(grads, 0), 0)",
        ),
        "TM203",
        id="scaled mean",
    ),
    pytest.param(
        ("train_op = opt.apply_gradients(grads)", "train_op = opt.apply_gradients(tower_grads[0])"),
        "TM204",
        id="first tower's gradients applied",
    ),
    pytest.param(
        ("    with tf.Session() as sess:", "    return train_op\n\n\ndef run(sess):\n    if True:"),
        "TM205",
        id="graph and session apart",
    ),
    pytest.param(
        ("            tower_grads.append(grads)\n", "            tower_grads.append(grads)\n            seen.append(loss)\n"),
        "TM206",
        id="appends to an outer list",
    ),
    pytest.param(
        (
            "            grads = opt.compute",
            "            loss += tf.add_n(tf.get_collection('losses'))\n            grads = opt.compute",
        ),
        "TM219",
        id="unscoped collection in the tower",
    ),
    pytest.param(
        ("    return tf.matmul(x, w)", "    return tf.layers.batch_normalization(tf.matmul(x, w))"),
        "TM207",
        id="batch norm",
    ),
    pytest.param(
        ("w = tf.get_variable('w', [3, 1])", "w = tf.Variable(tf.zeros([3, 1]))"),
        "TM218",
        id="a copy of the variables per tower",
    ),
    pytest.param((", reuse=tf.AUTO_REUSE", ""), "TM218", id="nothing shares the variables"),
    pytest.param(
        ("    return tf.matmul(x, w)", "    tf.assign(w, w + 1)\n    return tf.matmul(x, w)"),
        "TM220",
        id="an assignment in the tower",
    ),
    pytest.param(
        ("parts = tf.split(x, num_gpus)", "parts = tf.split(x, num_gpus, 1)"),
        "TM208",
        id="split along the features",
    ),
    pytest.param(
        ("feed_dict={x: np.ones([4, 3])}", "feed_dict=make_feed()"), "TM209", id="computed feed_dict"
    ),
    pytest.param(("[train_op, loss]", "[train_op, loss * 2]"), "TM209", id="fetched expression"),
    pytest.param(("            print(value)", "            print(value, loss)"), "TM210", id="tensor printed"),
    pytest.param(
        ("            loss = tf.reduce", "            if i == 1:\n                x = x * 2\n            loss = tf.reduce"),
        "TM214",
        id="the second tower is another",
    ),
    pytest.param(
        ("    tower_grads = []\n", "    tower_grads = []\n    noise = tf.random_normal([3])\n"),
        "TM211",
        id="unused graph before the towers",
    ),
    pytest.param(
        ("model(parts[i])", "model(parts[i] + noise)", "    tower_grads = []\n", "    tower_grads = []\n    noise = tf.random_normal([3])\n"),
        "TM217",
        id="one random tensor for all towers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule"), REFUSED)
def test_refused(change: tuple[str, ...], rule: str) -> None:
    pairs = [(change[k], change[k + 1]) for k in range(0, len(change), 2)]
    text = program(*pairs)
    assert rules(text)[:1] == [rule]
    assert emit(text).sources == {}
