"""Gradients: of every target, in towers and outside of them."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, average, constant, every_variable, idiom


@idiom
def mean_of_the_losses_minimized(p: Program) -> Any:
    losses = p.tower_losses()
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1).minimize(
        tf.add_n(losses) / 2.0, step, colocate_gradients_with_ops=True
    )
    with p.session() as session:
        seen = [session.run([train, losses, step])[1:] for _ in range(3)]
        return seen, every_variable(session)


@idiom
def masked_and_weighted_losses(p: Program) -> Any:
    losses = tf.stack(p.tower_losses(4))
    weights = tf.placeholder(tf.float32, [4])
    total = tf.reduce_sum(tf.boolean_mask(losses * weights, weights > 0)) / tf.reduce_sum(weights)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.apply_gradients(optimizer.compute_gradients(total))
    with p.session() as session:
        for fed in ([1, 0, 2, 0], [0, 0, 0, 1]):
            session.run(train, {weights: fed})
        return session.run(losses), every_variable(session)


@idiom
def one_towers_loss_minimized(p: Program) -> Any:
    losses = p.tower_losses()
    train = [tf.train.AdagradOptimizer(0.1).minimize(loss) for loss in losses]
    with p.session() as session:
        session.run(train[1])
        first = session.run(losses)
        session.run(train[0])
        return first, session.run(losses), every_variable(session)


@idiom
def gradients_in_towers(p: Program) -> Any:
    found = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y))
        variables = tf.trainable_variables()
        found.append(list(zip(tf.gradients(loss, variables), variables, strict=True)))
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(average(found))
    with p.session() as session:
        session.run(train)
        return session.run([[g for g, _ in pairs] for pairs in found]), every_variable(session)


@idiom
def gradients_outside(p: Program) -> Any:
    losses = p.tower_losses(4)
    variables = tf.trainable_variables()
    clipped, norm = tf.clip_by_global_norm(tf.gradients(tf.add_n(losses) / 4.0, variables), 0.3)
    train = tf.train.AdamOptimizer(0.1).apply_gradients(zip(clipped, variables, strict=True))
    with p.session() as session:
        return session.run([norm, train])[0], every_variable(session)


@idiom
def gradients_with_every_argument(p: Program) -> Any:
    losses = p.tower_losses()
    w, b = tf.trainable_variables()
    found = [
        tf.gradients(losses, [w, b], grad_ys=[2.0, 3.0]),
        tf.gradients(losses, [w, b], None, "named", True, True),
        tf.gradients(losses, w, stop_gradients=[b]),
        tf.gradients(tf.square(w) * 2.0 + w * b, [w, b], stop_gradients=[w]),
        tf.gradients(losses, (w, b), aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE),
        tf.gradients(w, w),
        tf.gradients([w * b], [w], unconnected_gradients="zero"),
        tf.gradients(b * 2.0, [w, b], unconnected_gradients=tf.UnconnectedGradients.ZERO),
    ]
    with p.session() as session:
        return session.run(found), tf.gradients(b * 2.0, [w])


@idiom
def gradients_of_values(p: Program) -> Any:
    losses = p.tower_losses()
    w, b = tf.trainable_variables()
    value = tf.convert_to_tensor(w)
    more = tf.reduce_sum(value * 3.0) + tf.reduce_sum(w)
    found = [tf.gradients(losses, w.value()), tf.gradients(more, value), tf.gradients(more, w)]
    apart = [tf.gradients(losses, w.read_value()), tf.gradients(losses, tf.identity(b))]
    with p.session() as session:
        return session.run(found), apart


@idiom
def gradients_of_inputs_and_second_order(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("r", reuse=i > 0):
            w = tf.get_variable("w", [3, 1], initializer=constant(0.1))
        y = tf.reduce_sum(tf.tanh(tf.matmul(x, w)))
        dx, dw = tf.gradients(y, [x, w])
        outs += [dx, dw, tf.gradients(tf.reduce_sum(dx**2), w)[0]]
    outs.append(tf.gradients(tf.reduce_sum(outs[1]) * tf.reduce_sum(outs[4]), w)[0])
    with p.session() as session:
        return session.run(outs), session.run(tf.hessians(y, w)[0])


@idiom
def gradient_penalty(p: Program) -> Any:
    found = []
    optimizer = tf.train.AdamOptimizer(0.1, 0.5)
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("critic", reuse=i > 0):
            h = tf.tanh(p.model(x))
        slopes = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(h, [x])[0]), 1))
        found.append(optimizer.compute_gradients(tf.reduce_mean((slopes - 1.0) ** 2 + h - y)))
    train = optimizer.apply_gradients(average(found))
    with p.session() as session:
        session.run(train)
        return every_variable(session)


@idiom
def embeddings_and_slices(p: Program) -> Any:
    found, optimizer = [], tf.train.AdagradOptimizer(0.1)
    for i in p.towers(range(2)):
        with tf.variable_scope("r", reuse=i > 0):
            e = tf.get_variable("e", [6, 2], initializer=constant(0.5))
        h = tf.nn.embedding_lookup(e, [i, 3, 3])
        found.append(optimizer.compute_gradients(tf.reduce_sum(h * h))[0][0])
    joined = tf.IndexedSlices(
        tf.concat([g.values for g in found], 0) / 2.0, tf.concat([g.indices for g in found], 0)
    )
    train = optimizer.apply_gradients([(joined, e)])
    both = optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(e, [0, 1]) ** 2))
    kinds = [type(g).__name__ for g in found]
    with p.session() as session:
        session.run(train)
        session.run(both)
        return kinds, every_variable(session)


@idiom
def sparse_and_dense_of_several_towers(p: Program) -> Any:
    losses = []
    for i in p.towers(range(3)):
        with tf.variable_scope("r", reuse=i > 0):
            e = tf.get_variable("e", [6, 2], initializer=constant(0.5))
        h = tf.nn.embedding_lookup(e, [i, 3])
        losses.append(tf.reduce_sum(h * h) + (tf.reduce_sum(e) if i == 2 else 0.0))
    sparse, mixed = tf.gradients(losses[:2], e)[0], tf.gradients(losses, e)[0]
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.add_n(losses[:2]))
    with p.session() as session:
        kinds = [isinstance(g, tf.IndexedSlices) for g in (sparse, mixed)]
        dense = session.run([tf.convert_to_tensor(sparse), tf.convert_to_tensor(mixed)])
        session.run(train)
        return kinds, dense, every_variable(session)


@idiom
def none_gradients(p: Program) -> Any:
    optimizer, found = tf.train.MomentumOptimizer(0.1, 0.9), []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            unused = tf.get_variable("unused", [2], initializer=constant(1.0))
            only = tf.get_variable("only", [], initializer=constant(1.0))
            loss = tf.reduce_mean(tf.square(p.model(x) - y))
            if i == 1:
                loss += only * only
        found.append(optimizer.compute_gradients(loss))
    kinds = [[g is None for g, _ in pairs] for pairs in found]
    passed = optimizer.apply_gradients(average(found))
    zeros = [(tf.zeros_like(v) if g is None else g, v) for g, v in average([found[0]])]
    dropped = optimizer.apply_gradients([(g, v) for g, v in zeros if v is not unused])
    with p.session() as session:
        session.run(passed)
        session.run(dropped)
        return kinds, every_variable(session)


@idiom
def no_gradient_at_all(p: Program) -> Any:
    w = tf.get_variable("w", [2])
    said = []
    for pairs in ([(None, w)], []):
        try:
            tf.train.AdamOptimizer(0.1).apply_gradients(pairs)
        except ValueError as error:
            said.append(str(error)[:41])
    try:
        tf.train.AdamOptimizer(0.1).minimize(tf.constant(1.0))
    except ValueError as error:
        said.append(str(error)[:41])
    return said


@idiom
def clipped_in_towers_and_after(p: Program) -> Any:
    optimizer, found = tf.train.GradientDescentOptimizer(0.1), []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            pairs = optimizer.compute_gradients(tf.reduce_mean(tf.square(p.model(x) - y)))
        found.append([(tf.clip_by_norm(g, 1.0 + i), v) for g, v in pairs])
    pairs = [(tf.clip_by_value(g, -0.5, 0.5), v) for g, v in average(found)]
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.6)
    train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs], strict=True))
    with p.session() as session:
        return session.run([train, norm])[1], every_variable(session)


@idiom
def summed_on_the_first_device(p: Program) -> Any:
    found = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y))
        variables = tf.trainable_variables()
        found.append(tf.gradients(loss, variables))
    with p.device("/gpu:0"):
        for other in found[1:]:
            for j in range(len(found[0])):
                found[0][j] += other[j]
    updates = []
    rate = tf.Variable(1.0, name="rate", trainable=False)
    for v, g in zip(variables, found[0], strict=True):
        m = tf.Variable(tf.zeros(v.get_shape()), name=v.name.split(":")[0] + "_m")
        new = 0.9 * m + 0.1 * g
        updates += [m.assign(new), v.assign(v - 0.1 * new / rate)]
    with p.session() as session:
        for _ in range(2):
            session.run(tf.group(*updates))
            session.run(rate.assign_add(1.0))
        return every_variable(session)


@idiom
def stopped_and_selected_variables(p: Program) -> Any:
    losses = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("a", reuse=i > 0):
            h = p.model(x)
        with tf.variable_scope("b", reuse=i > 0):
            losses.append(tf.reduce_mean(tf.square(p.model(x) + tf.stop_gradient(h) * 2 + h - y)))
    optimizer = tf.train.AdamOptimizer(0.1)
    a, b = tf.trainable_variables("a"), tf.get_collection("trainable_variables", scope="b/")
    trains = [
        optimizer.minimize(losses[0], var_list=a),
        optimizer.minimize(losses[1], var_list=b[0]),
    ]
    with p.session() as session:
        for train in trains:
            session.run(train)
        return every_variable(session)


@idiom
def custom_gradients(p: Program) -> Any:
    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 1.0, lambda dy: dy * 2.0

    losses = []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("a", reuse=i > 0):
            losses.append(tf.reduce_mean(tf.square(doubled(p.model(x)) - y)))
    gradients = tf.gradients(losses, tf.trainable_variables())
    with tf.get_default_graph().gradient_override_map({"Identity": "Sign"}):
        pass
    with p.session() as session:
        return session.run(gradients)


@idiom
def gradients_through_cond_and_loops(p: Program) -> Any:
    flag, losses = tf.placeholder_with_default(True, []), []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("c", reuse=i > 0):
            w = tf.get_variable("w", [3, 3], initializer=constant(0.3))
            u = tf.get_variable("u", [3], initializer=constant(0.1))
        h = tf.cond(flag, lambda x=x, w=w: tf.matmul(x, w), lambda x=x, u=u: x * u)
        _, h = tf.while_loop(
            lambda k, h: k < 2, lambda k, h, w=w, u=u: (k + 1, tf.tanh(tf.matmul(h, w) + u)), [0, h]
        )
        losses.append(tf.reduce_sum(h))
    outside = tf.cond(flag, lambda: tf.reduce_sum(w * 2.0), lambda: tf.reduce_sum(u))
    gradients = tf.gradients([*losses, outside], [w, u])
    with p.session() as session:
        return [session.run([losses, gradients], {flag: f}) for f in (True, False)]


@idiom
def loss_scaling_with_a_conditional_update(p: Program) -> Any:
    scale = tf.get_variable("scale", [], initializer=constant(8.0), trainable=False)
    good = tf.get_variable("good", [], tf.int32, constant(0), trainable=False)
    poison = tf.placeholder_with_default(0.0, [])
    optimizer, found = tf.train.MomentumOptimizer(0.1, 0.9), []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y)) + poison
        pairs = optimizer.compute_gradients(loss * scale)
        found.append([(g / scale + poison, v) for g, v in pairs])
    pairs = average(found)
    finite = tf.reduce_all([tf.reduce_all(tf.is_finite(g)) for g, _ in pairs])
    train = tf.cond(finite, lambda: optimizer.apply_gradients(pairs), tf.no_op)
    with tf.control_dependencies([train]):
        change = tf.cond(
            finite,
            lambda: tf.group(good.assign_add(1), scale.assign(scale * 2.0)),
            lambda: tf.group(good.assign(0), scale.assign(scale / 4.0)),
        )
    with p.session() as session:
        seen = []
        for bad in (0.0, float("nan"), 0.0):
            session.run(change, {poison: bad})
            seen.append(every_variable(session))
        return seen


@idiom
def accumulated_over_steps(p: Program) -> Any:
    optimizer = tf.train.AdamOptimizer(0.1)
    losses, pairs = p.tower_gradients(optimizer)
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for _, v in pairs]
    add = [s.assign_add(g) for s, (g, _) in zip(sums, pairs, strict=True)]
    zero = [s.assign(tf.zeros_like(s)) for s in sums]
    train = optimizer.apply_gradients([(s / 2.0, v) for s, (_, v) in zip(sums, pairs, strict=True)])
    with p.session() as session:
        for _ in range(2):
            session.run(add)
            session.run(add)
            session.run(train)
            session.run(zero)
        return session.run(losses), every_variable(session)


@idiom
def handed_over_in_python(p: Program) -> Any:
    losses = p.tower_losses()
    variables = tf.trainable_variables()
    gradients = [tf.gradients(loss, variables) for loss in losses]
    feeds = [tf.placeholder(tf.float32, v.get_shape()) for v in variables]
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(zip(feeds, variables, strict=True))
    with p.session() as session:
        values = session.run(gradients)
        mean = [(a + b) / 2 for a, b in zip(*values, strict=True)]
        session.run(train, dict(zip(feeds, mean, strict=True)))
        return session.run(losses), every_variable(session)
