"""Reads and writes of a variable in one run: what a reference variable showed, or a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, constant, every_variable, idiom


def _two_nets(p: Program) -> tuple[Any, Any, list[Any], list[Any]]:
    """A generator's loss that goes through the discriminator.

    The losses are squares: so each layer's gradients wait for its output, which then has the old weights.
    """
    d_losses, g_losses = [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"):
            with tf.variable_scope("gen", reuse=i > 0):
                w = tf.get_variable("w", [3, 3], initializer=constant(0.3))
                fake = tf.tanh(tf.matmul(x, w))

            def judge(x: Any, reuse: bool) -> Any:
                with tf.variable_scope("dis", reuse=reuse):
                    v = tf.get_variable("v", [3, 4], initializer=constant(0.2))
                    u = tf.get_variable("u", [4, 1], initializer=constant(0.4))
                    return tf.matmul(tf.tanh(tf.matmul(x, v)), u)

            real, made = judge(x * y, i > 0), judge(fake, True)
            d_losses.append(tf.reduce_mean(tf.square(real - 1.0) + tf.square(made)))
            g_losses.append(tf.reduce_mean(tf.square(made - 1.0)))
    variables = tf.trainable_variables()
    return (
        tf.add_n(d_losses),
        tf.add_n(g_losses),
        [v for v in variables if v.op.name.startswith("dis")],
        [v for v in variables if v.op.name.startswith("gen")],
    )


@idiom
def generator_step_after_the_discriminators(p: Program) -> Any:
    # The generator's gradients go through the discriminator's new weights, its loss through the old ones.
    d_loss, g_loss, d_vars, g_vars = _two_nets(p)
    d_train = tf.train.GradientDescentOptimizer(0.5).minimize(d_loss, var_list=d_vars)
    with tf.control_dependencies([d_train]):
        g_train = tf.train.GradientDescentOptimizer(0.5).minimize(g_loss, var_list=g_vars)
    with p.session() as session:
        seen = [session.run([g_train, d_loss, g_loss])[1:] for _ in range(3)]
        return seen, every_variable(session)


@idiom
def generator_step_after_a_group_and_a_no_op(p: Program) -> Any:
    d_loss, g_loss, d_vars, g_vars = _two_nets(p)
    d_train = tf.train.AdamOptimizer(0.5).minimize(d_loss, var_list=d_vars)
    with tf.control_dependencies([tf.group(d_train)]):
        done = tf.no_op()
    with tf.control_dependencies([tf.identity(1.0)]), tf.control_dependencies([done]):
        gradients = tf.gradients(g_loss, g_vars)
    pairs = zip(gradients, g_vars, strict=True)
    g_train = tf.train.GradientDescentOptimizer(0.5).apply_gradients(pairs)
    with p.session() as session:
        seen = [session.run([g_train, d_loss, g_loss])[1:] for _ in range(3)]
        return seen, every_variable(session)


@idiom
def values_handed_on_to_after_an_assignment(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"), tf.variable_scope("n", reuse=i > 0):
            w = tf.get_variable("w", [3, 1], initializer=constant(0.3))
            flat = tf.reshape(tf.stop_gradient(w), [1, 3])
            kept = tf.identity(w)
        if i == 0:
            update = w.assign_add(tf.ones([3, 1]))
        with tf.control_dependencies([update.op]):
            outs += [x * flat, tf.matmul(x, kept), tf.identity(kept)]
    with p.session() as session:
        return session.run(outs), session.run(outs), every_variable(session)


@idiom
def values_of_before_an_assignment(p: Program) -> Any:
    # Multiplied before it, so it keeps the old value though what uses it comes after.
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"), tf.variable_scope("n", reuse=i > 0):
            w = tf.get_variable("w", [3, 1], initializer=constant(0.3))
            old = tf.matmul(x, w)
        with tf.control_dependencies([old]):
            update = w.assign_add(tf.ones([3, 1]) * 0.5)
        with tf.control_dependencies([update]):
            outs += [tf.reduce_sum(old), tf.reduce_sum(tf.matmul(x, w))]
        break
    with p.session() as session:
        return session.run(outs), session.run(outs), every_variable(session)


@idiom
def controls_that_write_something_else(p: Program) -> Any:
    counter = tf.Variable(0.0, trainable=False, name="counter")
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"), tf.variable_scope("n", reuse=i > 0):
            w = tf.get_variable("w", [3, 1], initializer=constant(0.3))
            value = tf.identity(w)
        with tf.control_dependencies([counter.assign_add(1.0)]):
            outs.append(tf.reduce_sum(tf.matmul(x, value)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(outs))
    with p.session() as session:
        session.run(train)
        return session.run(outs), every_variable(session)


@idiom(warning="assigns steps:0 .* and reads it")
def a_step_that_counts_beside_what_reads_it(p: Program) -> Any:
    steps = tf.Variable(0, trainable=False, name="steps")
    for _, (x, _) in p.towers(enumerate(p.split())):
        out = tf.reduce_sum(x) * tf.cast(steps, tf.float32)
    up = steps.assign_add(1)
    with p.session() as session:
        session.run([up, out])  # the old step or the new one
        return every_variable(session)


@idiom(warning="assigns w:0 .* and reads it")
def a_value_that_is_read_beside_an_update_made_of_it(p: Program) -> Any:
    w = tf.get_variable("w", [3, 1], initializer=constant(0.3))
    for _, (x, _) in p.towers(enumerate(p.split())):
        out = tf.reduce_sum(tf.matmul(x, w))
    value = w.value()
    new = w.assign(value * 2.0)
    changed = tf.reduce_sum(new - value)  # nothing, for a reference variable
    with p.session() as session:
        session.run([out, changed])
        return every_variable(session)


@idiom(warning="assigns global_step:0 .* and reads it")
def a_step_that_is_counted_from_itself_beside_its_rate(p: Program) -> Any:
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 1, 0.5)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    losses, pairs = p.tower_gradients(optimizer)
    train = tf.group(optimizer.apply_gradients(pairs), step.assign(step + 1))
    with p.session() as session:
        session.run([train, losses])  # TF1 gives one rate or the next
        return session.run([step, rate])


@idiom
def summaries_beside_an_update(p: Program) -> Any:
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    losses, pairs = p.tower_gradients(optimizer)
    for v in tf.trainable_variables():
        tf.summary.histogram(v.op.name, v)
        tf.summary.scalar(v.op.name + "/mean", tf.reduce_mean(v))
    train = optimizer.apply_gradients(pairs)
    merged = tf.summary.merge_all()
    with p.session() as session:
        for _ in range(2):
            session.run([train, merged, *losses])
        return every_variable(session)


@idiom
def two_updates_in_one_run_read_by_every_tower(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with p.device(f"/gpu:{i}"), tf.variable_scope("n", reuse=i > 0):
            w = tf.get_variable("w", [400], initializer=constant(1.0))
            outs.append(w * 1.0)
    ones = tf.ones([400])
    # Plain TF1 may lose one of two updates that run side by side, unless they lock the variable.
    first = tf.train.GradientDescentOptimizer(0.5, p.plain).apply_gradients([(ones, w)])
    second = tf.train.GradientDescentOptimizer(0.25, p.plain).apply_gradients([(ones, w)])
    third = w.assign_sub(ones * 0.125, use_locking=p.plain)
    seen = []
    with p.session() as session:
        for _ in range(20):
            session.run([first, second, third])
            seen.append(session.run(outs))
    return seen


@idiom
def an_update_that_writes_what_it_was_not_given(p: Program) -> Any:
    class Counting(tf.train.Optimizer):
        """Counts its updates, and keeps a sum, in variables of its own."""

        def __init__(self) -> None:
            super().__init__(False, "Counting")

        def _prepare(self) -> None:
            with tf.variable_scope("own", reuse=tf.AUTO_REUSE):
                self.count = tf.get_variable(
                    "count", [], initializer=constant(0.0), trainable=False
                )
                self.total = tf.get_variable(
                    "total", [3, 1], initializer=constant(0.0), trainable=False
                )

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            total = self.total.assign_add(tf.ones([3, 1]) * tf.reduce_sum(grad))
            return tf.group(
                var.assign_sub(0.1 * grad + 0.0 * tf.reduce_sum(total)), self.count.assign_add(1.0)
            )

        _resource_apply_dense = _apply_dense

    optimizer = Counting()
    losses, pairs = p.tower_gradients(optimizer)
    train = optimizer.apply_gradients(pairs[:1])
    read = [(optimizer.count + 0.0, tf.reduce_sum(optimizer.total)) for _ in p.towers(range(2))]
    with p.session() as session:
        session.run(train)
        session.run(train)
        return session.run([losses, read]), every_variable(session)


@idiom
def an_update_with_a_branch(p: Program) -> Any:
    class Slow(tf.train.Optimizer):
        """Steps in every second update."""

        def __init__(self) -> None:
            super().__init__(False, "Slow")

        def _prepare(self) -> None:
            with tf.variable_scope("own", reuse=tf.AUTO_REUSE):
                self.turn = tf.get_variable("turn", [], tf.int32, constant(0), trainable=False)

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            total = self._zeros_slot(var, "total", "Total")
            added = total.assign_add(grad)

            def step() -> Any:
                with tf.control_dependencies([var.assign_sub(0.1 * total)]):
                    return tf.group(total.assign(total * 0.0))

            with tf.control_dependencies([added]):
                return tf.cond(tf.equal(self.turn.read_value() % 2, 1), step, lambda: tf.no_op())

        _resource_apply_dense = _apply_dense

        def _finish(self, updates: Any, name: Any) -> Any:
            with tf.control_dependencies(updates):
                return tf.group(self.turn.assign_add(1), name=name)

    optimizer = Slow()
    losses, pairs = p.tower_gradients(optimizer)
    train = optimizer.apply_gradients(pairs)
    with p.session() as session:
        seen = []
        for _ in range(4):
            session.run(train)
            seen.append((session.run(losses), every_variable(session)))
        return seen


def _unit(v: Any) -> Any:
    return v / tf.sqrt(tf.reduce_sum(tf.square(v)) + 1e-12)


def _vector(resource: bool = False) -> Any:
    start = constant([[0.5, -1.0, 0.3]])
    return tf.get_variable("u", [1, 3], initializer=start, trainable=False, use_resource=resource)


def _trained(p: Program, weight: Callable[[Any], Any]) -> Any:
    """Two towers that share a matrix; that of the first goes through `weight`."""
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"), tf.variable_scope("net", reuse=i > 0):
            start = constant([[0.4, -0.2, 0.3], [0.1, 0.5, -0.6], [0.2, 0.7, 0.1]])
            w = tf.get_variable("w", [3, 3], initializer=start)
            out = tf.matmul(x, weight(w) if i == 0 else w)
            pairs.append(optimizer.compute_gradients(tf.reduce_mean(tf.square(out - y)), [w]))
    gradient = (pairs[0][0][0] + pairs[1][0][0]) / 2.0
    train = optimizer.apply_gradients([(gradient, pairs[0][0][1])])
    with p.session() as session:
        seen = [session.run([train, gradient])[1] for _ in range(3)]
        return seen, every_variable(session)


@idiom
def gradients_of_a_power_iteration_whose_vector_has_moved_on(p: Program) -> Any:
    def weight(w: Any) -> Any:
        u = _vector()
        v = _unit(tf.matmul(u, w, transpose_b=True))
        moved = _unit(tf.matmul(v, w))
        norm = tf.matmul(tf.matmul(v, w), moved, transpose_b=True)
        with tf.control_dependencies([u.assign(moved)]):
            return w / norm

    return _trained(p, weight)


@idiom
def gradients_of_a_power_iteration_that_is_handed_on_afterwards(p: Program) -> Any:
    def weight(w: Any) -> Any:
        u = _vector()
        v = _unit(tf.matmul(tf.reshape(u, [1, 3]), tf.transpose(w)))
        moved = _unit(tf.matmul(v, w))
        made = w / tf.matmul(tf.matmul(v, w), tf.transpose(moved))
        with tf.control_dependencies([u.assign(moved)]):
            return tf.identity(made)

    return _trained(p, weight)


@idiom
def gradients_of_a_power_iteration_of_a_resource(p: Program) -> Any:
    def weight(w: Any) -> Any:
        u = _vector(resource=True)
        v = _unit(tf.matmul(u, w, transpose_b=True))
        moved = _unit(tf.matmul(v, w))
        with tf.control_dependencies([u.assign(moved)]):
            return w / tf.matmul(tf.matmul(v, w), moved, transpose_b=True)

    return _trained(p, weight)


@idiom(warning="assigns net/u:0 .* of which a loop was given the value before")
def gradients_of_a_power_iteration_in_a_loop(p: Program) -> Any:
    def weight(w: Any) -> Any:
        u = _vector()

        def again(k: Any, u: Any, v: Any) -> Any:
            v = _unit(tf.matmul(u, w, transpose_b=True))
            return k + 1, _unit(tf.matmul(v, w)), v

        start = (tf.constant(0), u, tf.zeros([1, 3]))
        _, moved, v = tf.while_loop(lambda k, u, v: k < 1, again, start)
        with tf.control_dependencies([u.assign(moved)]):
            return w / tf.matmul(tf.matmul(v, w), moved, transpose_b=True)

    _trained(p, weight)  # TF1's gradients are those of the new vector


@idiom
def a_loop_that_is_given_a_variable_and_has_no_gradients(p: Program) -> Any:
    def weight(w: Any) -> Any:
        u = _vector()

        def again(k: Any, u: Any, v: Any) -> Any:
            v = _unit(tf.matmul(u, w, transpose_b=True))
            return k + 1, _unit(tf.matmul(v, w)), v

        start = (tf.constant(0), u, tf.zeros([1, 3]))
        _, moved, v = tf.while_loop(lambda k, u, v: k < 2, again, start)
        moved, v = tf.stop_gradient(moved), tf.stop_gradient(v)
        with tf.control_dependencies([u.assign(moved)]):
            return w / tf.matmul(tf.matmul(v, w), moved, transpose_b=True)

    return _trained(p, weight)


@idiom
def what_was_read_before_together_with_what_comes_after(p: Program) -> Any:
    seen = []
    for i in p.towers(range(2)):
        with p.device(f"/gpu:{i}"), tf.variable_scope("n", reuse=i > 0):
            w = tf.get_variable("w", [3], initializer=constant(1.0))
            before = tf.identity(w)
            kept = w * 1.0
    new = w.assign(w * 3.0 + 1.0)
    made = new * 1.0
    seen += [
        made - before,
        before * made,
        made - kept,
        tf.stack([made, before]),
        before + 0.0 * made,
    ]
    with p.session() as session:
        return session.run(seen[:2]), session.run(seen[3:]), session.run(w)


@idiom
def a_block_with_batch_norm_that_is_applied_twice(p: Program) -> Any:
    # The second time its averages are moved on from what the first has left.
    losses = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with p.device(f"/gpu:{i}"):
            for k in range(2):
                with tf.variable_scope("net", reuse=i + k > 0):
                    w = tf.get_variable("w", [3, 3], initializer=constant(0.3))
                    x = tf.matmul(x, w) + 0.1 * x
                    mean = tf.get_variable("mean", [3], initializer=constant(0.5), trainable=False)
                    batch = tf.reduce_mean(x, 0)
                    if i == 0:
                        moved = mean.assign_sub((mean - batch) * 0.25)
                        with tf.control_dependencies([moved]):
                            x = tf.tanh(x - batch)
            losses.append(tf.reduce_mean(tf.square(x)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses))
    with p.session() as session:
        seen = [session.run([train, losses[0]])[1] for _ in range(3)]
        return seen, every_variable(session)


@idiom
def an_old_weight_in_a_penalty_of_the_new_one(p: Program) -> Any:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    _, pairs = p.tower_gradients(optimizer)
    w = pairs[0][1]
    old = tf.identity(w)
    train = optimizer.apply_gradients(pairs)
    with tf.control_dependencies([train]):
        new = w.read_value() + 0.0
    moved = tf.reduce_sum(tf.square(new - old)), tf.reduce_sum(tf.square(new - (old + 0.0)))
    with p.session() as session:
        return session.run(moved[0]), every_variable(session)
