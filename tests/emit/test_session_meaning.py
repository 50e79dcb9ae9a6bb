"""What a session meant, rule by rule, in the source that is written.

The numbers behind the rules are compared by `verify` on the fixtures; here stands what makes them so. Where loop
style cannot keep a rule (`lines` None), the program keeps its session.
Rules 11 (tower count) and 13 (several workers) live in the helpers and are tested there.
"""

from __future__ import annotations

import pytest

from tests.recognize.programs import program
from towermigrate.rewrite import rewrite_tree

TRAIN_OP = "    train_op = opt.apply_gradients(grads)\n"
SESSION = "    with tf.Session() as sess:\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n"
PRINT = "            print(value)\n"

AVERAGE_BESIDE = (
    "    ema = tf.train.ExponentialMovingAverage(0.9)\n"
    "    update = opt.apply_gradients(grads)\n"
    "    average = ema.apply(tf.trainable_variables())\n"
    "    train_op = tf.group(update, average)\n"
)
AVERAGE_AFTER = (
    "    ema = tf.train.ExponentialMovingAverage(0.9)\n"
    "    update = opt.apply_gradients(grads)\n"
    "    with tf.control_dependencies([update]):\n"
    "        train_op = ema.apply(tf.trainable_variables())\n"
)

RULES = [
    pytest.param(
        ((SESSION, "    saver = tf.train.Saver()\n" + SESSION),
         (PRINT, PRINT + "        saver.save(sess, 'model')\n")),
        ["tm.create_variables(train_step, x)\n", "saver = tm.tf1_saver(variables, optimizers=[opt])"],
        True,
        id="1 variables exist before the first run",
    ),
    pytest.param(
        ((PRINT, "            print(sess.run(loss, feed_dict={x: np.ones([4, 3])}))\n"),),
        ["def loss_step(x):\n        return tm.last_tower(strategy.run(tower, args=(x,)))"],
        False,
        id="2 a run that looks is another step, with no update in it",
    ),
    pytest.param(
        (("    opt = ", "    count = tf.get_variable('count', [], trainable=False)\n    opt = "),
         (TRAIN_OP, "    train_op = opt.apply_gradients(grads, global_step=count)\n"),
         ("[train_op, loss]", "[train_op, count]")),
        ["opt.apply_gradients(grads, global_step=count)\n            return tf.identity(count)"],
        True,
        id="3 a variable fetched beside the update is read after it",
    ),
    pytest.param(
        (("    parts = ", "    y = tf.placeholder(tf.float32, [None, 3])\n    parts = "),
         ("            grads = opt", "            other = tf.reduce_mean(y)\n            grads = opt"),
         (PRINT, "            print(sess.run(other, feed_dict={y: np.ones([4, 3])}))\n")),
        ["tower(tm.unfed(x), y)", "tower(x, tm.unfed(y))"],
        True,
        id="4 an input that is not fed is no zero",
    ),
    pytest.param(
        (("            tower_grads.append(grads)\n", "            tower_grads.append(grads)\n            log.append(1)\n"),),
        None,
        False,
        id="5 a tower that appends outside itself stays in the session",
    ),
    pytest.param(
        (("            grads = opt", "            tf.add_to_collection('seen', loss)\n            grads = opt"),),
        ["    @variables.tower\n", "tf.compat.v1.add_to_collection('seen', loss)"],
        True,
        id="6 collections live inside the tower function, which keeps them apart",
    ),
    pytest.param(
        ((TRAIN_OP, AVERAGE_BESIDE),),
        ["            ema.apply(variables.trainable())\n            opt.apply_gradients(grads)\n"],
        True,
        id="7 an average without a fixed order comes first",
    ),
    pytest.param(
        ((TRAIN_OP, AVERAGE_AFTER),),
        ["            opt.apply_gradients(grads)\n            ema.apply(variables.trainable())\n"],
        True,
        id="7 a fixed order is kept",
    ),
    pytest.param(
        ((PRINT, "            print(sess.run(loss, feed_dict={x: np.ones([4, 3])}), value)\n"),),
        ["value = train_step(*tm.shard_batch(np.ones([4, 3]), specs=(x,))).numpy()", "specs=(x,))).numpy(), value)"],
        False,
        id="8 loops see NumPy values",
    ),
    pytest.param(
        (("    opt = ", "    rng = np.random.RandomState(1)\n    opt = "),),
        ["def train(num_gpus=2):\n    strategy = tm.tower_strategy(num_gpus)\n    rng = "],
        True,
        id="9 the strategy comes first",
    ),
    pytest.param(
        (("    return tf.matmul(x, w)", "    return tf.layers.dense(tf.matmul(x, w), 1, name='d')"),),
        ["import tensorflow as tf\nimport towermigrate.helpers as tm\n"],
        True,
        id="10 the helpers are imported before legacy layers are used",
    ),
    pytest.param(
        (), ["tm.tower_gradients(opt, loss, variables.trainable())"], True,
        id="12 an average that would crash on None gives zeros",
    ),
    pytest.param(
        ((SESSION, "    saver = tf.train.Saver()\n" + SESSION + "        saver.restore(sess, 'old')\n"),),
        None,
        False,
        id="14 a restore that the initialiser overwrote stays in the session",
    ),
    pytest.param(
        ((SESSION, "    saver = tf.train.Saver()\n" + SESSION),
         ("        sess.run(tf.global_variables_initializer())\n",
          "        sess.run(tf.global_variables_initializer())\n        saver.restore(sess, 'old')\n")),
        ["    saver.restore('old')\n"],
        True,
        id="14 a restore reads what the original wrote",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "lines", "once"), RULES)
def test_rule(changes: tuple[tuple[str, str], ...], lines: list[str] | None, once: bool) -> None:
    report = rewrite_tree({"program.py": program(*changes)})
    (result,) = report.programs
    if lines is None:
        assert result.style == "session"
        assert result.not_loop
        return
    assert result.style == "loop", [f.message for f in result.not_loop]
    text = report.texts["program.py"]
    for line in lines:
        assert line in text, text
        if once:
            assert text.count(line) == 1


def test_the_unordered_average_is_said() -> None:
    report = rewrite_tree({"program.py": program((TRAIN_OP, AVERAGE_BESIDE))})
    assert "TM302" in {f.rule for f in report.programs[0].findings}
    report = rewrite_tree({"program.py": program((TRAIN_OP, AVERAGE_AFTER))})
    assert "TM302" not in {f.rule for f in report.programs[0].findings}
