"""Forms that must be refused: each with the one line that makes it another program, and the rule."""

from __future__ import annotations

import textwrap

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
        ("    for i in range(num_gpus):\n", "    for i in range(1, num_gpus):\n"),
        "TM201",
        id="range that starts at 1",
    ),
    pytest.param(
        ("            grads = opt.compute_gradients(loss)\n            tower_grads.append(grads)\n", ""),
        "TM202",
        id="no gradients in the loop",
    ),
    pytest.param(
        ("grad = tf.reduce_mean(tf.concat(grads, 0), 0)", "grad = tf.reduce_max(tf.concat(grads, 0), 0)"),
        "TM203",
        id="the largest instead of the mean",
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
        (
            "    return tf.matmul(x, w)",
            "    return tf.layers.batch_normalization(tf.matmul(x, w), renorm=True, name='bn')",
        ),
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
    assert rule in rules(text)
    assert emit(text).sources == {}


LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"
GRADS = "            grads = opt.compute_gradients(loss)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
SESSION = "        for step in range(10):\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n"

# Each of these once converted to something that trained differently, or failed when it ran.
DIFFERENT = [
    pytest.param(
        LOSS, LOSS + "            if i == 0:\n                loss = loss + 0.1\n", "TM214",
        id="a term added for the first tower only",
    ),
    pytest.param(
        "    tower_grads = []\n", "    w2 = tf.get_variable('w2', [3], regularizer=tf.nn.l2_loss)\n    tower_grads = []\n", "TM217",
        id="a trainable variable outside the towers",
    ),
    pytest.param(
        "for g, _ in grad_and_vars:", "for g, _ in grad_and_vars[:-1]:", "TM203",
        id="the average leaves the last tower out",
    ),
    pytest.param(
        "    average_grads = []\n", "    average_grads = []\n    tower_grads = tower_grads[1:]\n", "TM203",
        id="the average leaves the first tower out",
    ),
    pytest.param(
        "average_grads.append((grad,", "average_grads.append((-grad,", "TM203", id="gradient ascent"
    ),
    pytest.param(
        "        average_grads.append(", "        grad *= 0.5\n        average_grads.append(", "TM203",
        id="gradients halved",
    ),
    pytest.param(
        "        grads = []\n", "        grads = []\n        if 'b' in grad_and_vars[0][1].name:\n            continue\n",
        "TM203", id="the average freezes variables",
    ),
    pytest.param(
        "    return average_grads\n", "    return average_grads[1:]\n", "TM203", id="a variable left out"
    ),
    pytest.param(
        "    train_op = opt.apply_gradients(grads)\n",
        "    train_op = opt.apply_gradients(grads)\n    n = tf.get_variable('n', [], trainable=False)\n"
        "    train_op = tf.group(train_op, tf.assign_add(n, 1.0))\n",
        "TM204", id="an assignment inside tf.group",
    ),
    pytest.param(
        SESSION, SESSION + "            sess.run(tf.global_variables_initializer())\n", "TM209",
        id="variables initialised in the loop",
    ),
    pytest.param("tf.split(x, num_gpus)", "tf.split(x, 4)", "TM208", id="more splits than towers"),
    pytest.param(
        "model(parts[i])", "model(parts[i]) + tf.cast(tf.shape(x)[0], tf.float32)", "TM208",
        id="a part and the whole of an input",
    ),
    pytest.param(
        RUN, "            feed = {x: np.ones([4, 3])}\n            augment(feed)\n"
        "            _, value = sess.run([train_op, loss], feed_dict=feed)\n",
        "TM209", id="the feed_dict is used for something else",
    ),
    pytest.param(AVERAGED, "    tower_grads = tower_grads[1:]\n" + AVERAGED, "TM203", id="a tower dropped before the average"),
    pytest.param(
        GRADS, GRADS + "            loss = loss * 100.0\n", "TM211", id="the loss is scaled after its gradients"
    ),
    pytest.param(AVERAGED, "    loss = loss * 3.0\n    loss = loss + 1.0\n" + AVERAGED, "TM211", id="the loss is bound anew after the loop"),
    pytest.param(
        LOSS, LOSS + "            total = total + loss\n", "TM206", id="a sum handed from tower to tower"
    ),
    pytest.param(
        LOSS, "            if np.random.rand() > 2:\n                pass\n" + LOSS, "TM206",
        id="Python randomness in the tower",
    ),
    pytest.param(
        LOSS, "            l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()] + [0.0])\n" + LOSS,
        "TM219", id="all variables before they are made",
    ),
    pytest.param(
        GRADS, GRADS + "            continue\n", "TM211", id="continue in the tower loop"
    ),
    pytest.param(
        "            tower_grads.append(grads)\n", "            tower_grads.append(grads)\n    else:\n        print('built')\n",
        "TM201", id="else of the tower loop",
    ),
    pytest.param(
        "    train_op = ", "    reg = tf.losses.get_regularization_loss()\n    tf.add(reg, 1.0)\n    train_op = ", "TM219",
        id="a collection behind the towers",
    ),
    pytest.param(
        "    tower_grads = []\n", "    saver = tf.train.Saver()\n    tower_grads = []\n", "TM210",
        id="a saver made before the towers",
    ),
    pytest.param(
        "    train_op = opt.apply_gradients(grads)\n",
        "    train_op = opt.apply_gradients(grads)\n    again = opt.apply_gradients(grads)\n", "TM204",
        id="one average applied twice",
    ),
    pytest.param(
        AVERAGED, "    opt = tf.train.GradientDescentOptimizer(1.0)\n" + AVERAGED, "TM211",
        id="two optimizers of one name",
    ),
    pytest.param("import tensorflow as tf\n", "import tensorflow as tf\nimport tm\n", "TM211", id="the name tm is taken"),
    pytest.param(
        "            print(value)\n", "            print(value, i)\n", "TM210", id="the loop's index after it"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rule"), DIFFERENT)
def test_what_would_train_differently_is_refused(old: str, new: str, rule: str) -> None:
    text = program((old, new))
    assert rule in rules(text), [f.message for r in emit(text).results for f in r.findings]
    assert emit(text).sources == {}


LATE = [
    pytest.param(
        "tf.square(model(parts[i])", "scale * tf.square(model(parts[i])", "    grads = average_gradients(tower_grads)\n",
        "    scale = 5.0\n    grads = average_gradients(tower_grads)\n", "TM210", id="a Python value set anew after the towers",
    ),
    pytest.param(
        "tf.square(model(parts[i])", "step * tf.square(model(parts[i])", "x", "x", "TM210", id="the session loop's variable read in the towers",
    ),
    pytest.param(
        "    train_op = opt.apply_gradients(grads)\n",
        "    train_op = opt.apply_gradients(grads)\n    train_op = tf.tuple([train_op, loss])[1]\n", "x", "x", "TM204",
        id="an update inside another operation",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "old2", "new2", "rule"), LATE)
def test_late_and_lost_values_are_refused(
    old: str, new: str, old2: str, new2: str, rule: str
) -> None:
    text = program((old, new), (old2, new2))
    assert rule in rules(text), [f.message for r in emit(text).results for f in r.findings]


def test_a_module_constant_set_anew_behind_the_towers_is_refused() -> None:
    head, train = program().split("def train(num_gpus=2):\n")
    head = head.replace("    return tf.matmul(x, w)", "    return tf.matmul(x, w) * scale")
    body = textwrap.dedent(train)
    text = head + "num_gpus = 2\nscale = 2.0\n" + body
    assert rules(text) == []
    late = text.replace("with tf.Session() as sess:\n", "scale = 1.0\nwith tf.Session() as sess:\n")
    assert "TM210" in rules(late)


@pytest.mark.parametrize("swapped", [False, True])
def test_updates_of_one_run_stand_in_the_order_of_their_averages(swapped: bool) -> None:
    train = "    train_op = opt.apply_gradients(grads)\n"
    second = "    op2 = opt.apply_gradients(doubled)\n"
    text = program(
        ("    tower_grads = []\n", "    tower_grads = []\n    more = []\n"),
        (
            GRADS,
            GRADS
            + "            twice = opt.compute_gradients(loss * 2.0)\n            more.append(twice)\n",
        ),
        (AVERAGED, AVERAGED + "    doubled = average_gradients(more)\n"),
        (train, second + train if swapped else train + second),
        ("_, value = sess.run([train_op, loss]", "_, _, value = sess.run([train_op, op2, loss]"),
    )
    # Two updates of one run have no order in TF1, so loop style takes neither; only one is told by its averages.
    assert "TM233" in rules(text)
    assert ("TM204" in rules(text)) is swapped
