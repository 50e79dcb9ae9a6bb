"""Faults that are planted: what the engine makes of small texts, in both styles."""

from __future__ import annotations

import pytest

from towermigrate.verify.plant import Fault, one_of_each_kind, plant, planted

LOOP = """\
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm


def main():
    strategy = tm.tower_strategy(2)
    with strategy.scope():
        step = tf.compat.v1.train.get_or_create_global_step()
        rate = tf.compat.v1.train.exponential_decay(0.1, step, 5, 0.9)
        opt = tf.compat.v1.train.MomentumOptimizer(rate, 0.9)
        other = tf.compat.v1.train.AdamOptimizer(0.01)
        ema = tf.train.ExponentialMovingAverage(0.9)
        variables = tm.TowerVariables()
    tf.compat.v1.set_random_seed(3)

    @variables.tower
    def tower(x):
        w = tf.compat.v1.get_variable('w', [3], initializer=tf.compat.v1.zeros_initializer())
        tf.compat.v1.get_variable('u', initializer=tf.compat.v1.truncated_normal_initializer(seed=1))
        x = tf.compat.v1.layers.dropout(x, rate=0.5, training=True)
        return tf.compat.v1.reduce_mean(x * w) + 0.1 * tf.nn.l2_loss(w)

    @tf.function(autograph=False)
    def train_step(x):
        def one(x):
            loss = tower(x)
            grads = tm.tower_gradients(opt, loss, variables.trainable('net'))
            opt.apply_gradients(grads, global_step=step)
            ema.apply(variables.trainable())
            return loss
        return tm.last_tower(strategy.run(one, args=(x,)))

    saver = tm.tf1_saver(variables, step, optimizers=[opt, other], averages=[ema])
    for number in range(8):
        value = train_step(*tm.shard_batch(np.ones([4, 3]), specs=(x,))).numpy()
        print('step %d: %.4f' % (number, value))
        tf.compat.v1.logging.warning('loss %.4f', value)
        open('log', 'w').write('%d' % number)
    saver.save('./model.ckpt', global_step=number)
"""

SESSION = """\
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm


def main():
    tm.mirror_variables(2)
    x = tf.compat.v1.placeholder(tf.float32, [4, 3])
    xs = tf.split(x, 2)
    opt = tf.compat.v1.train.AdamOptimizer(0.01)
    grads = []
    for i in tm.towers(range(2)):
        h = tf.compat.v1.layers.batch_normalization(xs[i], training=True, momentum=0.9)
        loss = tf.compat.v1.reduce_mean(h)
        grads.append(opt.compute_gradients(loss, var_list=lists))
    clipped, _ = tf.clip_by_global_norm([g for g, _ in mean_of(grads)], 1.0)
    train = opt.apply_gradients(zip(clipped, lists))
    with tf.compat.v1.Session() as sess:
        for number in range(8):
            _, value = sess.run([train, loss], {x: np.ones([4, 3])})
"""

# Kind, a text that the fault puts in.
IN_LOOP = [
    ("gradient: sum for mean", "[(g if g is None else tf.math.scalar_mul(2.0, g), v) for g, v in grads]"),
    ("gradient: off by 2 %", "tf.math.scalar_mul(1.02, g)"),
    ("gradient: last tower for mean", "replica_id_in_sync_group, 1), 2.0, 0.0)"),
    ("late: gradients after step 5", "tf.cast(step, tf.int64) >= 6"),
    ("variables: one missing", "list(variables.trainable('net'))[1:]"),
    ("variables: others added", "tm.tower_gradients(opt, loss, variables.trainable())"),
    ("optimizer: shared by two stages", "other = opt\n"),
    ("optimizer: momentum", "MomentumOptimizer(rate, 0.85)"),
    ("optimizer: formula", "MomentumOptimizer(rate, 0.9, use_nesterov=True)"),
    ("optimizer: learning rate", "AdamOptimizer((0.01) * 1.01)"),
    ("schedule: off by one", "(lambda: tm.value(tf.compat.v1.train.exponential_decay(0.1, (step + 1), 5, 0.9)))"),
    ("global step: not counted", "opt.apply_gradients(grads)\n"),
    ("moving average: order", "ema.apply(variables.trainable())\n            opt.apply_gradients("),
    ("inputs: remainder dropped", "(lambda rows: rows[:-2])(np.asarray(np.ones([4, 3])))"),
    ("steps: one skipped", "if number != 2: value = train_step("),
    ("regulariser: counted N times", "0.1 * (2.0 * tf.nn.l2_loss(w))"),
    ("dropout: rate", "rate=(0.5) * 0.9"),
    ("late: weights changed", "if number == 6:\n            [v.assign(v * 0.99)"),
    ("initial: constant", "initializer=tf.compat.v1.constant_initializer(0.01)"),
    ("returned: another tower's", "return tm.first_tower("),
    ("printed: other words", "'So ' + ('step %d: %.4f' % (number, value))"),
    ("files: tensors missing", "tm.tf1_saver(variables, step, averages=[ema])"),
    ("initial: seed of the graph", "set_random_seed((3) + 1)"),
    ("initial: seed of a variable", "seed=(1) + 1"),
    ("logged: other words", "'So ' + ('loss %.4f')"),
    ("files: other contents", "write('+' + ('%d' % number))"),
    ("files: another step", "global_step=(number) + 1"),
]  # fmt: skip
IN_SESSION = [
    ("inputs: same batch for all", "batch_normalization(xs[0],"),
    ("inputs: towers swapped", "batch_normalization(xs[-1 - i],"),
    ("batch norm: training flag", "training=False"),
    ("clipping: missing", "(lambda parts: (parts, tf.linalg.global_norm(parts)))("),
    ("clipping: before the mean", "tf.clip_by_global_norm([g for g, _ in pairs], 1.0)"),
    ("replica: contribution lost", "for g, v in opt.compute_gradients(loss, var_list=lists)]"),
    ("variables: others added", "var_list=tf.compat.v1.trainable_variables()"),
    ("slots: changed by the host", "with sess.graph.as_default(): sess.run("),
    ("returned: something else", "np.multiply(got[1], 1.05)"),
]


@pytest.mark.parametrize(
    ("text", "kind", "put"),
    [(LOOP, *each) for each in IN_LOOP] + [(SESSION, *each) for each in IN_SESSION],
)
def test_a_fault_is_made_where_it_belongs(text: str, kind: str, put: str) -> None:
    found = [fault for fault in plant({"a.py": text}, 2) if fault.kind == kind]
    texts = [planted({"a.py": text}, fault)["a.py"] for fault in found]

    assert put not in text
    assert any(put in each for each in texts), "\n".join(texts) or [
        fault.kind for fault in plant({"a.py": text}, 2)
    ]


def test_a_place_is_a_file_and_a_line() -> None:
    (fault,) = [f for f in plant({"a.py": LOOP}, 2) if f.kind == "optimizer: momentum"]
    assert fault.place == "a.py:11"
    assert LOOP.splitlines()[10].strip().startswith("opt = ")
    assert "0.85" in fault.said


def test_lines_and_text_in_other_alphabets_are_kept() -> None:
    text = LOOP.replace("'step %d", "'étape № %d").replace("print(", "é = 1; print(")
    faults = plant({"a.py": text}, 2)
    (fault,) = [f for f in faults if f.kind == "printed: other words"]
    assert "é = 1; print('So ' + ('étape № %d" in planted({"a.py": text}, fault)["a.py"]


def test_only_the_files_that_run_get_faults() -> None:
    tree = {
        "a.py": LOOP,
        "b.py": LOOP,
        "broken.py": "import tensorflow as tf\n(",
        "c.py": "x = 1\n",
    }
    assert {fault.path for fault in plant(tree, 2)} == {"a.py", "b.py"}
    assert {fault.path for fault in plant(tree, 2, ["b.py", "broken.py"])} == {"b.py"}


def test_one_tower_has_no_faults_of_single_towers() -> None:
    kinds = {fault.kind for fault in plant({"a.py": LOOP}, 1)}
    assert "gradient: off by 2 %" in kinds
    assert not [kind for kind in kinds if "tower" in kind and "swapped" not in kind]


def test_one_of_each_kind_is_the_first() -> None:
    faults = [Fault(kind, "", "a.py", line, ()) for kind, line in (("x", 3), ("y", 1), ("x", 2))]
    assert [(f.kind, f.line) for f in one_of_each_kind(faults)] == [("x", 3), ("y", 1)]
