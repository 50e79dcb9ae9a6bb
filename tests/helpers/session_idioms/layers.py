"""Layers, batch normalization under each custom, recurrent cells, Keras."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, average, constant, every_variable, idiom


def _normalized(p: Program, kind: str) -> tuple[list[Any], list[list[Any]], Any]:
    """Towers with batch norm: losses, each tower's own update ops, the train op."""
    import tf_slim as slim

    optimizer = tf.train.GradientDescentOptimizer(0.1)
    found, losses, updates = [], [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.name_scope(f"tower_{i}") as scope, tf.variable_scope("n", reuse=i > 0):
            h = tf.layers.dense(x, 3, kernel_initializer=constant(0.2), name="d")
            if kind == "layers":
                h = tf.layers.batch_normalization(h + x, training=True, momentum=0.5, name="bn")
            else:
                h = slim.batch_norm(h + x, is_training=True, decay=0.5, scope="bn", scale=True)
            losses.append(tf.reduce_mean(tf.square(tf.reduce_sum(h, 1, keepdims=True) - y)))
            updates.append(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope))
        found.append(optimizer.compute_gradients(losses[-1]))
    return losses, updates, optimizer.apply_gradients(average(found))


@idiom
def batch_norm_updates_of_the_first_tower(p: Program) -> Any:
    losses, updates, train = _normalized(p, "layers")
    with tf.control_dependencies(updates[0]):
        step = tf.group(train)
    with p.session() as session:
        seen = [session.run([step, losses])[1] for _ in range(2)]
        return seen, every_variable(session), [len(u) for u in updates]


@idiom
def batch_norm_updates_of_the_last_tower(p: Program) -> Any:
    losses, updates, train = _normalized(p, "slim")
    step = tf.group(train, *updates[-1])
    with p.session() as session:
        seen = [session.run([step, losses])[1] for _ in range(2)]
        return seen, every_variable(session), [v.op.name for v in tf.model_variables()]


@idiom
def batch_norm_updates_one_after_another(p: Program) -> Any:
    losses, _, train = _normalized(p, "layers")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with p.session() as session:
        for update in updates:
            session.run(update)
        session.run(train)
        return len(updates), every_variable(session), session.run(losses)


@idiom
def batch_norm_updates_in_towers(p: Program) -> Any:
    import tf_slim as slim

    losses = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.name_scope(f"tower_{i}") as scope, tf.variable_scope("n", reuse=i > 0):
            h = slim.fully_connected(
                x, 3, weights_initializer=constant(0.2), normalizer_fn=slim.batch_norm,
                normalizer_params={"is_training": True, "decay": 0.5}, scope="f",
            )  # fmt: skip
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)):
                losses.append(tf.reduce_mean(tf.square(h - y)))
    with p.session() as session:
        return [(session.run(loss), every_variable(session)) for loss in losses]


@idiom
def batch_norm_updated_in_place(p: Program) -> Any:
    import tf_slim as slim

    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            outs.append(
                slim.batch_norm(x, is_training=True, decay=0.5, updates_collections=None, scope="b")
            )
    with p.session() as session:
        return [(session.run(out), every_variable(session)) for out in outs]


@idiom
def batch_norm_by_hand(p: Program) -> Any:
    from tensorflow.python.training import moving_averages

    training, outs, updates = tf.placeholder(tf.bool, []), [], []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("bn", reuse=i > 0):
            mean = tf.get_variable("mean", [3], initializer=constant(0.0), trainable=False)
            var = tf.get_variable("var", [3], initializer=constant(1.0), trainable=False)
            m, v = tf.nn.moments(x, [0])

            def update(mean: Any = mean, var: Any = var, m: Any = m, v: Any = v) -> Any:
                a = moving_averages.assign_moving_average(mean, m, 0.5, zero_debias=False)
                b = moving_averages.assign_moving_average(var, v, 0.5, zero_debias=False)
                with tf.control_dependencies([a, b]):
                    return tf.identity(m), tf.identity(v)

            m, v = tf.cond(training, update, lambda mean=mean, var=var: (mean + 0.0, var + 0.0))
            outs.append(tf.nn.batch_normalization(x, m, v, None, None, 1e-3))
            updates.append(mean)
    with p.session() as session:
        seen = [session.run(out, {training: True}) for out in outs]
        return seen, every_variable(session), session.run(outs, {training: False})


@idiom
def batch_norm_with_inference_towers(p: Program) -> Any:
    losses, updates, train = _normalized(p, "layers")
    evals = []
    for x, _ in p.towers(p.split()):
        with tf.variable_scope("n", reuse=True):
            h = tf.layers.dense(x, 3, name="d")
            evals.append(tf.layers.batch_normalization(h + x, training=False, name="bn"))
    saver, path = tf.train.Saver(), p.folder() + "/m"
    with p.session() as session:
        session.run([train, updates[0]])
        first = session.run(evals)
        saver.save(session, path)
        session.run([train, updates[1]])
        saver.restore(session, path)
        return first, session.run(evals), tf.train.list_variables(path)


@idiom
def averages_of_batch_norm_statistics(p: Program) -> Any:
    average_ = tf.train.ExponentialMovingAverage(0.5)
    _, updates, train = _normalized(p, "slim")
    import tf_slim as slim

    with tf.control_dependencies([train, *updates[0]]):
        step = average_.apply(slim.get_model_variables())
    with p.session() as session:
        session.run(step)
        session.run(step)
        return every_variable(session), sorted(average_.variables_to_restore())


@idiom
def layers_of_all_kinds(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            h = tf.reshape(x, [4, 3, 1, 1])
            h = tf.layers.conv2d(h, 2, 2, padding="same", kernel_initializer=constant(0.1))
            h = tf.layers.conv2d_transpose(h, 2, 2, kernel_initializer=constant(0.1))
            h = tf.layers.max_pooling2d(h, 2, 1)
            h = tf.layers.dropout(tf.layers.flatten(h), 0.5, training=False)
            h = tf.layers.dense(h, 2, tf.nn.tanh, kernel_initializer=constant(0.1))
            h = tf.layers.dense(h, 1, kernel_initializer=constant(0.1))
            outs.append(h)
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, tf.trainable_variables())]), [
            v.op.name for v in tf.global_variables()
        ]


@idiom
def slim_layers(p: Program) -> Any:
    import tf_slim as slim

    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            with slim.arg_scope(
                [slim.conv2d, slim.fully_connected],
                weights_initializer=constant(0.1),
                weights_regularizer=slim.l2_regularizer(0.01),
            ):
                h = slim.conv2d(tf.reshape(x, [4, 3, 1, 1]), 2, 2, scope="conv")
                h = slim.fully_connected(slim.flatten(h), 2, scope="fc")
                outs.append(tf.reduce_sum(h))
    total = tf.add_n(outs) + tf.losses.get_regularization_loss()
    train = tf.train.RMSPropOptimizer(0.01).minimize(total)
    with p.session() as session:
        session.run(train)
        return session.run([outs, total]), every_variable(session)


@idiom
def losses_in_collections(p: Program) -> Any:
    sums, scoped = [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.name_scope(f"tower_{i}") as scope, tf.variable_scope("n", reuse=i > 0):
            tf.losses.mean_squared_error(y, p.model(x))
            tf.losses.absolute_difference(y, p.model(x) if False else y * 2.0, weights=0.5)
            tf.add_to_collection("losses", tf.reduce_sum(x))
            sums.append(tf.losses.get_total_loss(scope=scope))
            scoped.append([t.op.name for t in tf.get_collection("losses", scope)])
    with p.session() as session:
        return session.run([sums, tf.losses.get_total_loss()]), scoped


@idiom
def cells(p: Program) -> Any:
    outs, optimizer = [], tf.train.AdamOptimizer(0.1)
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("r", reuse=i > 0):
            stacked = tf.nn.rnn_cell.MultiRNNCell(
                [
                    tf.nn.rnn_cell.LSTMCell(3, initializer=constant(0.1)),
                    tf.nn.rnn_cell.GRUCell(2, kernel_initializer=constant(0.1)),
                ]
            )
            y, state = tf.nn.dynamic_rnn(stacked, tf.reshape(x, [2, 2, 3]), dtype=tf.float32)
            outs.append(tf.reduce_mean(y * y) + tf.reduce_mean(state[1]))
    train = optimizer.minimize(tf.add_n(outs))
    with p.session() as session:
        session.run(train)
        return session.run(outs), every_variable(session)


@idiom
def static_and_bidirectional_cells(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        x = tf.reshape(x, [2, 2, 3])
        with tf.variable_scope("r", reuse=i > 0):
            made = [tf.nn.rnn_cell.BasicLSTMCell(2, name=n) for n in ("fw", "bw")]
            (a, b), _ = tf.nn.bidirectional_dynamic_rnn(*made, x, dtype=tf.float32)
            cell = tf.nn.rnn_cell.BasicRNNCell(2)
            c, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
            outs.append(tf.reduce_sum(a + b) + tf.reduce_sum(c))
    set_all = [v.assign(tf.ones_like(v) * 0.1) for v in tf.trainable_variables()]
    gradients = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        session.run(set_all)
        return session.run([outs, gradients]), [v.op.name for v in tf.trainable_variables()]


@idiom
def keras_layers(p: Program) -> Any:
    dense = tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.constant(0.3))
    norm = tf.keras.layers.BatchNormalization(momentum=0.5)
    found, optimizer = [], tf.train.GradientDescentOptimizer(0.1)
    for x, _ in p.towers(p.split()):
        loss = tf.reduce_mean(norm(dense(x), training=True) * x[:, :2])
        found.append(optimizer.compute_gradients(loss))
    updates = norm.updates
    train = optimizer.apply_gradients(average(found))
    with p.session() as session:
        session.run(train)
        for update in updates:
            session.run(update)
        return len(updates), every_variable(session)


@idiom
def keras_models(p: Program) -> Any:
    constant_ = tf.keras.initializers.constant(0.3)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(2, kernel_initializer=constant_, input_shape=(3,)),
            tf.keras.layers.Dense(1, kernel_initializer=constant_),
        ]
    )
    losses = []
    for x, y in p.towers(p.split()):
        losses.append(tf.reduce_mean(tf.square(model(x) - y)))
    train = tf.train.AdamOptimizer(0.1).minimize(tf.add_n(losses), var_list=model.trainable_weights)
    with p.session() as session:
        session.run(train)
        return session.run(losses), every_variable(session)


@idiom
def keras_losses(p: Program) -> Any:
    losses = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            out = p.model(x)
        losses.append(tf.keras.losses.MeanSquaredError()(y, out))
        losses.append(tf.reduce_mean(tf.keras.losses.mean_absolute_error(y, out)))
    with p.session() as session:
        return session.run(losses)


@idiom
def own_layers(p: Program) -> Any:
    class Scale(tf.layers.Layer):
        def build(self, shape: Any) -> None:
            self.k = self.add_weight("k", [int(shape[-1])], initializer=constant(2.0))
            self.n = self.add_weight("n", [], initializer=constant(0.0), trainable=False)
            self.built = True

        def call(self, x: Any) -> Any:
            self.add_update(self.n.assign_add(1.0))
            self.add_loss(tf.reduce_sum(self.k))
            return x * self.k

    layer, outs = Scale(name="scale"), []
    for x, _ in p.towers(p.split()):
        outs.append(tf.reduce_sum(layer(x)))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    names = [v.name for v in layer.trainable_weights + layer.non_trainable_weights]
    with p.session() as session:
        for update in updates:
            session.run(update)
        return session.run([outs, losses]), names, every_variable(session)


@idiom
def keras_weights(p: Program) -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,), name="d")])
    outs = [tf.reduce_sum(model(x)) for x, _ in p.towers(p.split())]
    with p.session() as session:
        tf.keras.backend.set_session(session)
        shape = [w.shape for w in model.get_weights()]
        model.set_weights([w * 0.0 + 0.5 for w in model.get_weights()])
        first = session.run(outs)
        path = p.folder() + "/w.h5"
        model.save_weights(path)
        model.set_weights([w * 3.0 for w in model.get_weights()])
        second = session.run(outs)
        model.load_weights(path)
        return shape, first, second, session.run(outs), model.get_weights()


@idiom
def slim_batch_norm_of_other_kinds(p: Program) -> Any:
    import tf_slim as slim

    outs, training = [], tf.placeholder_with_default(True, [])
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            a = slim.batch_norm(x, is_training=training, decay=0.5, fused=False, scope="a")
            image = tf.reshape(x, [4, 1, 1, 3])
            b = slim.batch_norm(image, is_training=training, decay=0.5, fused=True, scope="b")
            c = tf.layers.batch_normalization(
                image, training=training, momentum=0.5, fused=True, renorm=False, name="c"
            )
            outs.append(tf.reduce_sum(a * x) + tf.reduce_sum(b * image) + tf.reduce_sum(c * image))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    gradients = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        for update in updates:
            session.run(update)
        return (
            len(updates),
            session.run([outs, gradients]),
            session.run(outs, {training: False}),
            every_variable(session),
        )


@idiom
def dropout_and_noise_with_seeds(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            h = tf.nn.dropout(p.model(x), rate=0.5, seed=5 + i)
        outs.append(h + tf.random_normal([4, 1], seed=i))
    with p.session() as session:
        return [session.run(outs) for _ in range(2)]


@idiom
def slim_lists_variables_as_they_were(p: Program) -> Any:
    import tf_slim as slim

    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("net", reuse=i > 0):
            slim.fully_connected(x, 2, scope="fc")
    tf.get_variable("count", [], tf.int64, initializer=constant(0), use_resource=True)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        total = slim.model_analyzer.analyze_vars(tf.global_variables(), print_info=True)
    return shown.getvalue(), total
