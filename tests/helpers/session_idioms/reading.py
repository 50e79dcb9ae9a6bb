"""What reads variables: operators, control flow, averages, global steps."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, every_variable, idiom


@idiom
def variable_of_the_second_tower_only(p: Program) -> Any:
    outs = []
    for i in p.towers(range(3)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [], initializer=constant(2.0))
        if i == 1:
            u = tf.get_variable("u", [], initializer=constant(5.0))
            v = v * u
        outs.append(v)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.add_n(outs))
    with p.session() as session:
        session.run(train)
        return session.run(outs), every_variable(session)


@idiom
def averages_getter(p: Program) -> Any:
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.variable_scope("m"):
        p.model(tf.constant(X))
    update = average.apply(tf.trainable_variables())

    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        v = getter(name, *args, **kwargs)
        return average.average(v) if average.average(v) is not None else v

    outs = []
    for _, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("m", reuse=True, custom_getter=getter):
            outs.append(tf.reduce_sum(p.model(x)))
    change = [v.assign(v * 3.0) for v in tf.trainable_variables()]
    with p.session() as session:
        session.run(change)
        before = session.run(outs)
        session.run(update)
        return before, session.run(outs), every_variable(session)


@idiom
def cond_and_while_that_read(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("c", reuse=i > 0):
            w = tf.get_variable("w", [3, 3], initializer=constant(0.3))
            flag = tf.get_variable("f", [], tf.bool, constant(True), trainable=False)
            h = tf.cond(flag, lambda x=x, w=w: tf.matmul(x, w), lambda x=x: x)
            _, h = tf.while_loop(
                lambda k, h: k < 3,
                lambda k, h, w=w: (k + 1, tf.tanh(tf.matmul(h, w))),
                [0, h],
            )
            outs.append(tf.reduce_sum(h))
    gradients = tf.gradients(tf.add_n(outs), [w])
    with p.session() as session:
        first = session.run([outs, gradients])
        session.run(flag.assign(False))
        return first, session.run([outs, gradients])


@idiom
def case_of_variables(p: Program) -> Any:
    step = tf.Variable(0, trainable=False, name="step")
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    choice = tf.case([(step < 1, lambda: a * 10.0), (step < 2, lambda: b * 10.0)], lambda: a + b)
    up = step.assign_add(1)
    outs = [choice * float(i + 1) for i in p.towers(range(2))]
    gradient = tf.gradients(outs, [a, b])
    seen = []
    with p.session() as session:
        for _ in range(3):
            seen.append(session.run([outs, *gradient]))
            session.run(up)
    return seen


@idiom
def map_fn_and_scan_with_variables(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("m", reuse=i > 0):
            w = tf.get_variable("w", [3], initializer=constant(0.3))
            outs.append(tf.reduce_sum(tf.map_fn(lambda row, w=w: row * w, x)))
            outs.append(tf.reduce_sum(tf.scan(lambda a, row, w=w: a * 0.5 + row * w, x)))
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, w)])


@idiom
def global_steps(p: Program) -> Any:
    step = tf.train.get_or_create_global_step()
    again = tf.train.get_global_step()
    up = tf.assign_add(step, 1)
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    flags = [tf.equal(step % 2, 0), step < 2, tf.cast(step, tf.float32) * 0.5]
    outs = [tf.cast(step, tf.float32) * i for i in p.towers(range(2))]
    with p.session() as session:
        seen = []
        for _ in range(3):
            session.run(up)
            seen.append((session.run([rate, flags, outs]), tf.train.global_step(session, step)))
        return seen, again is step, step.dtype.base_dtype.name, session.run(step)


@idiom
def global_steps_of_other_kinds(p: Program) -> Any:
    a = tf.Variable(0, trainable=False, name="global_step")
    b = tf.get_variable("step", [], tf.int32, constant(0), trainable=False)
    c = tf.get_variable("float_step", [], initializer=constant(0.0), trainable=False)
    losses = p.tower_losses()
    train = [
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses), global_step=s)
        for s in (a, b, c)
    ]
    with p.session() as session:
        seen = [session.run([t, s])[1] for t, s in zip(train, (a, b, c), strict=True)]
        return seen, session.run([a, b, c]), [v.op.name for v in tf.global_variables()]


@idiom
def moving_averages(p: Program) -> Any:
    average = tf.train.ExponentialMovingAverage(0.5)
    losses = p.tower_losses()
    variables = tf.trainable_variables()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses))
    with tf.control_dependencies([train]):
        update = average.apply(variables)
    with p.session() as session:
        session.run(update)
        session.run(update)
        return (
            [average.average_name(v) for v in variables],
            session.run([average.average(v) for v in variables]),
            every_variable(session),
            [v.op.name for v in tf.moving_average_variables()],
            sorted(average.variables_to_restore()),
        )


@idiom
def moving_averages_with_steps_and_debias(p: Program) -> Any:
    step = tf.Variable(3, trainable=False, name="step")
    a = tf.train.ExponentialMovingAverage(0.9, step)
    b = tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name="debiased")
    losses = p.tower_losses()
    changes = [v.assign(v + 1.0) for v in tf.trainable_variables()]
    total = tf.add_n(losses)
    updates = [a.apply(tf.trainable_variables()), b.apply([total])]
    with p.session() as session:
        for _ in range(2):
            session.run(updates)
            session.run(changes)
        return session.run(b.average(total)), every_variable(session)


@idiom
def moving_averages_of_losses_in_towers(p: Program) -> Any:
    average = tf.train.ExponentialMovingAverage(0.5, name="avg")
    updates, shown = [], []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y), name=f"loss_{i}")
        with tf.variable_scope(tf.get_variable_scope(), reuse=False):
            updates.append(average.apply([loss]))
            shown.append(average.average(loss))
    with p.session() as session:
        session.run(updates)
        session.run(updates[1])
        return session.run(shown), every_variable(session)


@idiom
def assign_moving_average(p: Program) -> Any:
    from tensorflow.python.training import moving_averages

    v = tf.get_variable("mean", [3], initializer=constant(0.0), trainable=False)
    updates = []
    for x, _ in p.towers(p.split()):
        updates.append(
            moving_averages.assign_moving_average(v, tf.reduce_mean(x, 0), 0.9, zero_debias=False)
        )
    after = moving_averages.assign_moving_average(v, tf.ones([3]), 0.5, zero_debias=True)
    with p.session() as session:
        seen = [session.run(update) for update in updates]
        return seen, session.run(after), every_variable(session)


@idiom
def operators(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [2, 2], initializer=constant([[1.0, 2.0], [3.0, 4.0]]))
        outs += [v + 1, 1 - v, v * v, v / 2, 2 / v, v**2, -v, abs(v), v // 2, v % 2, v < 2]
        outs += [v >= 2, tf.stack([v, v]), tf.concat([v, v], 0), tf.shape(v), tf.size(v), v @ v]
        outs += [tf.nn.embedding_lookup(v, [1]), tf.gather(v, [0, 0]), tf.gather_nd(v, [[1, 1]])]
        outs += [tf.cast(v, tf.int32), tf.transpose(v), tf.zeros_like(v), tf.add_n([v, v])]
    with p.session() as session:
        return session.run(outs)


@idiom
def sharded_embeddings(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            parts = [
                tf.get_variable(f"e{k}", [3, 2], initializer=constant(k + 1.0)) for k in range(2)
            ]
        outs.append(tf.nn.embedding_lookup(parts, [0, 1, 4, 5]))
        outs.append(tf.nn.embedding_lookup(parts, [1, 3], partition_strategy="div"))
        ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 1])
        outs.append(tf.nn.embedding_lookup_sparse(parts[0], ids, None, combiner="mean"))
    train = tf.train.AdamOptimizer(0.1).minimize(tf.add_n([tf.reduce_sum(o * o) for o in outs]))
    with p.session() as session:
        first = session.run(outs)
        session.run(train)
        return first, every_variable(session)


@idiom
def sampled_losses(p: Program) -> Any:
    losses = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("q", reuse=i > 0):
            w = tf.get_variable("w", [10, 3], initializer=constant(0.1))
            b = tf.get_variable("b", [10], initializer=constant(0.0))
        labels = tf.constant([[1], [2], [3], [4]], tf.int64)
        sampled = tf.nn.uniform_candidate_sampler(labels, 1, 10, True, 10, seed=3)
        common = {"num_sampled": 10, "num_classes": 10, "sampled_values": sampled}
        losses.append(tf.reduce_mean(tf.nn.nce_loss(w, b, labels, x, **common)))
        losses.append(tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, x, **common)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses))
    with p.session() as session:
        first = session.run(losses)
        session.run(train)
        return first, every_variable(session)


@idiom
def decay_of_all_variables_in_each_tower(p: Program) -> Any:
    losses = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("q", reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y))
        decay = [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "b" not in v.op.name]
        losses.append(loss + 0.1 * tf.add_n(decay) + tf.global_norm(tf.trainable_variables()))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.add_n(losses) / 2.0)
    with p.session() as session:
        session.run(train)
        return session.run(losses), every_variable(session)
