"""Optimizers: TensorFlow's, the author's own, and several of them."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import (
    Program,
    average,
    constant,
    every_variable,
    idiom,
    trained,
)

_ALL = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(
        0.1, l2_regularization_strength=0.1
    ),
    "proximal_descent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "rate_of_a_tensor": lambda: tf.train.AdamOptimizer(
        tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 2, 0.5)
    ),
}

for _name, _make in _ALL.items():

    def _trained(p: Program, make: Any = _make) -> Any:
        return trained(p, make())

    _trained.__name__ = f"trained_by_{_name}"
    idiom(_trained)

    def _sparsely(p: Program, make: Any = _make) -> Any:
        optimizer, losses = make(), []
        for i in p.towers(range(2)):
            with tf.variable_scope("r", reuse=i > 0):
                e = tf.get_variable("e", [6, 2], initializer=constant(0.5))
            losses.append(tf.reduce_sum(tf.nn.embedding_lookup(e, [i, 3, 3]) ** 2))
        train = optimizer.minimize(tf.add_n(losses))
        with p.session() as session:
            session.run(train)
            session.run(train)
            return every_variable(session)

    _sparsely.__name__ = f"trained_sparsely_by_{_name}"
    idiom(_sparsely)


@idiom
def slots(p: Program) -> Any:
    optimizer = tf.train.AdamOptimizer(0.1)
    _, pairs = p.tower_gradients(optimizer)
    train = optimizer.apply_gradients(pairs, tf.train.get_or_create_global_step())
    w = tf.trainable_variables()[0]
    m = optimizer.get_slot(w, "m")
    with p.session() as session:
        session.run(train)
        return (
            optimizer.get_slot_names(),
            m.op.name,
            session.run(m),
            sorted(v.op.name for v in optimizer.variables()),
            [v.name for v in tf.global_variables()],
            [train.name, train.type != "", isinstance(train, tf.Operation)],
            [op.name for op in tf.get_collection(tf.GraphKeys.TRAIN_OP)],
            session.run(train),
        )


@idiom
def named_updates(p: Program) -> Any:
    optimizer = tf.train.GradientDescentOptimizer(0.1, name="Mine")
    _, pairs = p.tower_gradients(optimizer)
    step = tf.train.get_or_create_global_step()
    with tf.name_scope("train"):
        ops = [optimizer.apply_gradients(pairs), optimizer.apply_gradients(pairs, step, "named")]
        ops.append(optimizer.apply_gradients(pairs, global_step=step))
    return [op.name for op in ops], [op.name for op in tf.get_collection("train_op")]


@idiom
def applied_in_each_tower(p: Program) -> Any:
    optimizer, trains, losses = tf.train.MomentumOptimizer(0.1, 0.9), [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            losses.append(tf.reduce_mean(tf.square(p.model(x) - y)))
        with tf.variable_scope("opt", reuse=tf.AUTO_REUSE):
            trains.append(optimizer.minimize(losses[-1], tf.train.get_or_create_global_step()))
    with p.session() as session:
        for train in (trains[0], trains[1], trains[0]):
            session.run(train)
        return session.run(losses), every_variable(session)


@idiom
def two_optimizers_in_turns(p: Program) -> Any:
    d, g = tf.train.AdamOptimizer(0.1, 0.5, name="D"), tf.train.RMSPropOptimizer(0.05, name="G")
    d_found, g_found, shown = [], [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("gen", reuse=i > 0):
            fake = p.model(x)
        with tf.variable_scope("dis", reuse=i > 0):
            real = p.model(tf.tile(y, [1, 3]))
        with tf.variable_scope("dis", reuse=True):
            made = p.model(tf.tile(fake, [1, 3]))
        d_loss, g_loss = tf.reduce_mean(made - real), -tf.reduce_mean(made)
        variables = tf.trainable_variables()
        d_vars = [v for v in variables if v.name.startswith("dis")]
        g_vars = [v for v in variables if "gen" in v.op.name]
        d_found.append(d.compute_gradients(d_loss, var_list=d_vars))
        g_found.append(g.compute_gradients(g_loss, g_vars))
        shown.append((d_loss, g_loss))
    d_train, g_train = d.apply_gradients(average(d_found)), g.apply_gradients(average(g_found))
    clip = [v.assign(tf.clip_by_value(v, -0.3, 0.3)) for v in d_vars]
    with p.session() as session:
        seen = []
        for _ in range(2):
            for _ in range(2):
                session.run(d_train)
                session.run(clip)
            seen.append(session.run([g_train, shown])[1])
        return seen, every_variable(session)


@idiom
def one_optimizer_for_two_losses(p: Program) -> Any:
    optimizer = tf.train.AdamOptimizer(0.1)
    losses = p.tower_losses()
    with tf.control_dependencies(losses):  # else the second loss may see the new weights
        a = optimizer.minimize(losses[0], var_list=tf.trainable_variables()[:1])
    with tf.control_dependencies([a]):
        both = optimizer.minimize(tf.add_n(losses))
    with p.session() as session:
        session.run(both)
        session.run(a)
        return every_variable(session)


@idiom
def own_optimizer_that_assigns(p: Program) -> Any:
    class Own(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Own")

        def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
            ops = []
            for g, v in pairs:
                m = tf.get_variable(
                    v.name.split(":")[0] + "/m",
                    v.shape.as_list(),
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                new = 0.9 * m + g
                ops += [m.assign(new), v.assign(v - 0.1 * new)]
            if global_step is not None:
                ops.append(global_step.assign(global_step + 1))
            return tf.group(*ops, name=name)

    optimizer = Own()
    losses, pairs = p.tower_gradients(optimizer)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        train = optimizer.apply_gradients(pairs, tf.train.get_or_create_global_step(), "train")
    with p.session() as session:
        session.run(train)
        session.run(train)
        return train.name, session.run(losses), every_variable(session)


class _DenseOnly(tf.train.Optimizer):
    """As TF1 authors wrote them before resource variables: powersign."""

    def __init__(self) -> None:
        super().__init__(False, "DenseOnly")

    def _prepare(self) -> None:
        self._rate = tf.convert_to_tensor(0.1, name="rate")

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        m = self.get_slot(var, "m")
        new = m.assign(tf.maximum(0.9 * m, tf.abs(grad)))
        update = tf.assign_sub(var, self._rate * grad * tf.exp(tf.sign(grad) * tf.sign(new)))
        return tf.group(*[update, new])

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return tf.scatter_sub(var, grad.indices, grad.values * self._rate)


@idiom
def own_optimizer_of_reference_variables(p: Program) -> Any:
    return trained(p, _DenseOnly())


@idiom
def own_sparse_optimizer_of_reference_variables(p: Program) -> Any:
    losses = []
    for i in p.towers(range(2)):
        with tf.variable_scope("r", reuse=i > 0):
            e = tf.get_variable("e", [6, 2], initializer=constant(0.5))
        losses.append(tf.reduce_sum(tf.nn.embedding_lookup(e, [i, 3, 3]) ** 2))
    train = _DenseOnly().minimize(tf.add_n(losses))
    with p.session() as session:
        session.run(train)
        return every_variable(session)


@idiom
def own_optimizer_of_both_kinds(p: Program) -> Any:
    class Both(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(True, "Both")

        def _create_slots(self, var_list: Any) -> None:
            first = min(var_list, key=lambda v: v.name)
            self._create_non_slot_variable(1.0, "power", colocate_with=first)
            for v in var_list:
                self._get_or_make_slot(v, tf.ones_like(v.initialized_value()), "s", self._name)
                self._zeros_slot(v, "m", self._name)

        def _apply(self, grad: Any, var: Any) -> Any:
            m, s = self.get_slot(var, "m"), self.get_slot(var, "s")
            power = self._get_non_slot_variable("power", graph=tf.get_default_graph())
            a = tf.assign(m, 0.9 * m + grad)
            b = tf.assign_add(s, grad * grad)
            return tf.group(tf.assign_sub(var, 0.1 * power * a / tf.sqrt(b)), a, b)

        _apply_dense = _resource_apply_dense = _apply

        def _finish(self, updates: Any, name: Any) -> Any:
            with tf.control_dependencies(updates):
                power = self._get_non_slot_variable("power", graph=tf.get_default_graph())
                with tf.colocate_with(power):
                    after = power.assign(power * 0.5)
            return tf.group(*updates, after, name=name)

    return trained(p, Both())


@idiom
def own_optimizer_around_another(p: Program) -> Any:
    class Lookahead(tf.train.Optimizer):
        def __init__(self, inner: Any) -> None:
            super().__init__(False, "Lookahead")
            self.inner = inner

        def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
            return [(g * 2.0, v) for g, v in self.inner.compute_gradients(*args, **kwargs)]

        def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
            pairs = list(pairs)
            slow = [tf.Variable(v.initialized_value(), trainable=False) for _, v in pairs]
            train = self.inner.apply_gradients(pairs, global_step, name)
            with tf.control_dependencies([train]):
                ops = []
                for s, (_, v) in zip(slow, pairs, strict=True):
                    new = s.assign_add((v - s) * 0.5)
                    ops.append(v.assign(new))
                return tf.group(*ops)

    return trained(p, Lookahead(tf.train.AdamOptimizer(0.1)))


@idiom
def decoupled_weight_decay(p: Program) -> Any:
    class Decayed(tf.train.MomentumOptimizer):
        def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
            pairs = list(pairs)
            with tf.control_dependencies([g for g, _ in pairs]):
                decay = [v.assign(v - 0.01 * v) for _, v in pairs]
            with tf.control_dependencies(decay):
                return super().apply_gradients(pairs, global_step, name)

    return trained(p, Decayed(0.1, 0.9))


@idiom
def keras_style_decay_inside(p: Program) -> Any:
    class Decayed(tf.train.AdamOptimizer):
        def _decay(self, var: Any) -> Any:
            return var.assign_sub(0.01 * var)

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            with tf.control_dependencies([grad]):
                decay = self._decay(var)
            with tf.control_dependencies([decay]):
                return super()._apply_dense(grad, var)

        def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
            with tf.control_dependencies([grad]):
                decay = self._decay(var)
            with tf.control_dependencies([decay]):
                return super()._resource_apply_dense(grad, var)

    return trained(p, Decayed(0.1))


@idiom(error="SyncReplicasOptimizer keeps gradients in accumulators")
def sync_replicas(p: Program) -> Any:
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1
    )
    _, pairs = p.tower_gradients(optimizer)
    return optimizer.apply_gradients(pairs, tf.train.get_or_create_global_step()).name


@idiom
def update_that_reads_its_rate(p: Program) -> Any:
    rate = tf.Variable(0.1, trainable=False, name="rate")
    fed = tf.placeholder(tf.float32, [])
    change = tf.assign(rate, fed)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    losses, pairs = p.tower_gradients(optimizer)
    train = optimizer.apply_gradients(pairs)
    with p.session() as session:
        for value in (0.2, 0.05):
            session.run(change, {fed: value})
            session.run(train)
        return session.run(losses), every_variable(session)


class _OnlyReferences(tf.train.AdamOptimizer):
    """Overrides what TensorFlow asks of reference variables, and leaves the other method as it is."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies([super()._apply_dense(grad * 2.0 + 0.01, var)]):
            return var.assign_sub(0.001 * var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return super()._apply_sparse(tf.IndexedSlices(grad.values * 3.0, grad.indices), var)


@idiom
def adam_with_an_update_of_references(p: Program) -> Any:
    return trained(p, _OnlyReferences(0.1))


@idiom
def adam_with_a_sparse_update_of_references(p: Program) -> Any:
    losses = []
    for i in p.towers(range(2)):
        with tf.variable_scope("r", reuse=i > 0):
            e = tf.get_variable("e", [6, 2], initializer=constant(0.5))
        losses.append(tf.reduce_sum(tf.nn.embedding_lookup(e, [i, 3, 3]) ** 2))
    train = _OnlyReferences(0.1).minimize(tf.add_n(losses))
    with p.session() as session:
        session.run(train)
        return every_variable(session)


@idiom
def momentum_of_another_formula(p: Program) -> Any:
    class Own(tf.train.MomentumOptimizer):
        def _apply_dense(self, grad: Any, var: Any) -> Any:
            m = self.get_slot(var, "momentum")
            new = m.assign(0.5 * m + grad)
            return tf.group(tf.assign_sub(var, 0.1 * new), new)

    return trained(p, Own(0.1, 0.9))


@idiom
def two_formulas_in_one_optimizer(p: Program) -> Any:
    class Own(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Own")

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return tf.assign_sub(var, 0.1 * grad)

        def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
            return var.assign_sub(0.7 * grad)

    return trained(p, Own())


@idiom
def kernels_called_by_the_author(p: Program) -> Any:
    from tensorflow.python.ops import gen_training_ops

    class Own(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Own")

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return gen_training_ops.apply_gradient_descent(var, 0.1, grad).op

        def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
            return gen_training_ops.resource_apply_gradient_descent(var.handle, 0.1, grad)

    return trained(p, Own())


@idiom
def loss_scale_optimizers(p: Program) -> Any:
    experimental = tf.train.experimental
    results = []
    for scale in (8.0, "dynamic"):
        with tf.Graph().as_default():
            p.begin(2)
            optimizer = experimental.MixedPrecisionLossScaleOptimizer(
                tf.train.MomentumOptimizer(0.1, 0.9), scale
            )
            results.append(trained(p, optimizer))
    return results
