"""Assignments: of every kind, in towers and outside of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, every_variable, idiom
from tests.helpers.session_idioms.variables import shared


@idiom
def assigned_outside(p: Program) -> Any:
    v, outs = shared(p)
    ops = [v.assign(v * 2.0), v.assign_add(tf.ones([3, 2])), v.assign_sub(tf.ones([3, 2]) * 0.5)]
    more = [tf.assign(v, v + 1.0), tf.assign_add(v, v), tf.assign_sub(v, tf.ones([3, 2]))]
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops + more]


@idiom
def assigned_where_another_graph_is_the_default_one(p: Program) -> Any:
    v, outs = shared(p)
    with p.session() as session:
        with tf.Graph().as_default():
            value = np.arange(6.0).reshape(3, 2)
            ops = [v.assign(value), v.assign_add(np.ones([3, 2])), v.assign_sub(value)]
        return [(session.run(op), session.run(outs)) for op in ops]


@idiom
def assigned_in_towers(p: Program) -> Any:
    ops, outs = [], []
    for i in p.towers(range(3)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("n", [], initializer=constant(0.0), trainable=False)
            ops.append(tf.assign_add(v, 1.0 + i))
            outs.append(v + 0.0)
    with p.session() as session:
        one_by_one = [session.run(op) for op in ops]
        together = session.run(ops)
        return one_by_one, together, session.run(outs)


@idiom
def results_of_assignments(p: Program) -> Any:
    v, outs = shared(p)
    op = v.assign(v * 2.0)
    named = tf.assign(v, v + 1.0, name="renamed")
    unread = v.assign_add(tf.ones([3, 2]), read_value=False)
    with p.session() as session:
        seen = [session.run(op), session.run(op.op), op.eval(session=session)]
        seen += [session.run(tf.group(op)), session.run([op])[0], session.run({"a": op})]
        seen += [op.get_shape().as_list(), op.dtype.base_dtype.name, session.run("renamed:0")]
        named.op.run(session=session)
        session.run(unread if isinstance(unread, tf.Operation) else unread.op)
        return seen, session.run(outs)


@idiom
def reading_after_an_assignment(p: Program) -> Any:
    v, outs = shared(p)
    done = v.assign_add(tf.ones([3, 2]))
    with tf.control_dependencies([done]):
        after = [v.read_value(), v + 0.0, tf.reduce_sum(v)]
    with tf.control_dependencies([v.assign(done * 2.0)]):
        later = tf.reduce_sum(v)
    with p.session() as session:
        return session.run(after), session.run(later), session.run(outs)


@idiom
def chained_assignments(p: Program) -> Any:
    v = tf.Variable(1.0, name="v")
    with tf.control_dependencies([v.assign_add(1.0)]):
        second = v.assign(v * 10.0)
    with tf.control_dependencies([second]):
        third = tf.assign_sub(v, 3.0)
    outs = [v * float(i + 1) for i in p.towers(range(2))]
    with p.session() as session:
        return session.run(third), session.run(outs), session.run([second, third]), session.run(v)


@idiom
def assigned_from_another_tower(p: Program) -> Any:
    copies = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [3], initializer=constant(0.0), trainable=False)
            copies.append((v.assign(tf.reduce_mean(x, 0)), tf.reduce_sum(v)))
    with p.session() as session:
        session.run(copies[1][0])
        first = session.run([out for _, out in copies])
        session.run(copies[0][0])
        return first, session.run([out for _, out in copies])


@idiom
def assigned_in_a_cond(p: Program) -> Any:
    v, outs = shared(p)
    flag = tf.placeholder(tf.bool, [])
    ones = tf.ones([3, 2])
    out = tf.cond(flag, lambda: v.assign_add(ones), lambda: tf.identity(v) * 100.0)
    nothing = tf.cond(flag, lambda: tf.group(v.assign(ones * 7.0)), tf.no_op)
    with p.session() as session:
        seen = [session.run(out, {flag: f}) for f in (True, False, True)]
        seen.append(session.run(outs))
        session.run(nothing, {flag: False})
        seen.append(session.run(outs))
        session.run(nothing, {flag: True})
        return seen, session.run(outs)


@idiom
def assigned_in_a_cond_of_a_tower(p: Program) -> Any:
    flag, ops, outs = tf.placeholder(tf.bool, []), [], []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("n", [], initializer=constant(1.0), trainable=False)
            ops.append(
                tf.cond(flag, lambda v=v, i=i: v.assign_add(1.0 + i), lambda v=v: tf.identity(v))
            )
            outs.append(v + 0.0)
    with p.session() as session:
        return [session.run(op, {flag: f}) for f in (True, False) for op in ops], session.run(outs)


@idiom
def assigned_in_a_while_loop(p: Program) -> Any:
    ops, outs = [], []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("n", [], initializer=constant(1.0), trainable=False)

            def body(k: Any, v: Any = v) -> Any:
                with tf.control_dependencies([v.assign_add(2.0)]):
                    return k + 1

            ops.append(tf.while_loop(lambda k: k < 3, body, [0]))
            outs.append(v + 0.0)
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops]


@idiom
def slices(p: Program) -> Any:
    v, outs = shared(p)
    parts = [v[0], v[1:, 1], v[..., 0], v[-1, -1]]
    up = v[1].assign([7.0, 8.0])
    gradient = tf.gradients(parts[1], v)
    with p.session() as session:
        seen = session.run([parts, gradient])
        return seen, session.run(up), session.run(v), session.run(outs)


@idiom
def slices_assigned_in_a_tower(p: Program) -> Any:
    ops, outs = [], []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("n", [4], initializer=constant(1.0), trainable=False)
            ops.append(v[i : i + 2].assign([5.0, 6.0]))
            outs.append(v + 0.0)
    with p.session() as session:
        session.run(ops[0])
        session.run(ops[1])
        return session.run(outs), session.run(v)


@idiom
def scatters(p: Program) -> Any:
    v, outs = shared(p)
    row = [[3.0, 4.0]]
    ops = [
        *(tf.scatter_update(v, [1], row), tf.scatter_add(v, [2], row), tf.scatter_sub(v, [0], row)),
        *(tf.scatter_mul(v, [1], row), tf.scatter_div(v, [2], row), tf.scatter_max(v, [0], row)),
        *(tf.scatter_min(v, [1], row), tf.scatter_nd_update(v, [[0]], row)),
        *(tf.scatter_nd_add(v, [[2]], row), tf.scatter_nd_sub(v, [[1]], row)),
    ]
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops]


@idiom
def scatters_in_towers(p: Program) -> Any:
    ops, outs = [], []
    for i in p.towers(range(3)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("e", [5, 2], initializer=constant(1.0), trainable=False)
            ops.append(tf.scatter_add(v, [i], [[i + 1.0, 4.0]]))
            outs.append(tf.reduce_sum(v))
    with p.session() as session:
        for op in ops:
            session.run(op)
        return session.run(outs), session.run(v)


@idiom
def scatter_methods(p: Program) -> Any:
    v, outs = shared(p)
    delta = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]))
    ops = [v.scatter_sub(delta), v.scatter_nd_update([[2]], [[9.0, 9.0]])]
    ops += [v.scatter_nd_add([[0]], [[1.0, 1.0]]), v.scatter_nd_sub([[0]], [[0.5, 1.0]])]
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops]


@idiom
def loaded_values(p: Program) -> Any:
    v, outs = shared(p)
    with p.session() as session:
        v.load(np.arange(6.0).reshape(3, 2), session)
        first = session.run(outs)
        with session.as_default():
            v.load(np.ones((3, 2)))
        return first, session.run(outs), session.run(v)


@idiom
def load_without_a_session(p: Program) -> Any:
    v, _ = shared(p)
    try:
        v.load(np.ones((3, 2)))
    except ValueError as error:
        return str(error)


@idiom
def copied_to_a_target_network(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("online", reuse=i > 0):
            p.model(x)
        with tf.variable_scope("target", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(x)))
    online, target = tf.trainable_variables("online"), tf.trainable_variables("target")
    copy = tf.group(*[t.assign(o * 2.0) for o, t in zip(online, target, strict=True)])
    soft = [tf.assign(t, 0.9 * t + 0.1 * o) for o, t in zip(online, target, strict=True)]
    with p.session() as session:
        session.run(copy)
        first = session.run(outs)
        session.run(soft)
        return first, session.run(outs)


@idiom
def weights_clipped(p: Program) -> Any:
    losses = p.tower_losses()
    train = tf.train.RMSPropOptimizer(0.1).minimize(tf.add_n(losses))
    with tf.control_dependencies([train]):
        clip = tf.group(
            *[v.assign(tf.clip_by_value(v, -0.25, 0.25)) for v in tf.trainable_variables()]
        )
    with p.session() as session:
        session.run(clip)
        return session.run(losses), every_variable(session)


@idiom
def data_dependent_initialization(p: Program) -> Any:
    outs = []
    with tf.variable_scope("init"):
        g = tf.get_variable("g", [1], initializer=constant(1.0))
        scale = g.assign(tf.reshape(tf.reduce_mean(tf.constant(X)), [1]))
        with tf.control_dependencies([scale]):
            start = tf.identity(tf.constant(X) * g)
    for x, _ in p.towers(p.split()):
        with tf.variable_scope("init", reuse=True):
            outs.append(tf.reduce_sum(x * tf.get_variable("g", [1])))
    with p.session() as session:
        session.run(start)
        return session.run(outs)


@idiom
def counted_up(p: Program) -> Any:
    v = tf.Variable(0, name="v", trainable=False)
    up = v.count_up_to(3)
    outs = [v * (i + 1) for i in p.towers(range(2))]
    with p.session() as session:
        seen = [session.run(up) for _ in range(3)]
        try:
            session.run(up)
        except tf.errors.OutOfRangeError:
            seen.append("at its end")
        return seen, session.run(outs)


@idiom(error="only some copies of a mirrored variable are written.*v:0")
def written_through_its_handle(p: Program) -> Any:
    v = tf.Variable(0, name="v", trainable=False, use_resource=True)
    up = tf.count_up_to(v, 3)
    outs = [v * (i + 1) for i in p.towers(range(2))]
    with p.session() as session:
        return session.run(up), session.run(outs)


@idiom
def constrained(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("r", reuse=i > 0):
            w = tf.get_variable(
                "w",
                [3, 1],
                initializer=constant(0.1),
                constraint=lambda w: tf.clip_by_value(w, -0.2, 0.2),
            )
            outs.append(tf.reduce_sum(tf.matmul(x, w)))
    train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(tf.add_n(outs))
    with p.session() as session:
        session.run(train)
        return session.run(w), session.run(outs)


@idiom
def reshaped_by_assignment(p: Program) -> Any:
    v = tf.Variable([1.0, 2.0], validate_shape=False, name="v")
    outs = [tf.reduce_sum(v) * float(i) for i in p.towers(range(2))]
    longer = tf.assign(v, tf.ones([5]), validate_shape=False)
    with p.session() as session:
        first = session.run(outs)
        session.run(longer)
        return first, session.run(outs), session.run(v)


@idiom
def initializers_fed(p: Program) -> Any:
    v, outs = shared(p)
    u = tf.Variable(v.initialized_value() * 2.0, name="u")
    with p.session() as session:
        session.run(v.initializer, {v.initializer.inputs[1]: np.full((3, 2), 5.0)})
        seen = [session.run(outs), v.initializer.type != "", v.initializer.name]
        session.run(u.initializer)
        v.initializer.run()
        return seen, session.run([outs, u])


@idiom
def variables_as_results_of_control_flow(p: Program) -> Any:
    flag, outs = tf.placeholder_with_default(True, []), []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            a = tf.get_variable("a", [2], initializer=constant(1.0))
            b = tf.get_variable("b", [2], initializer=constant(2.0))
        outs.append(tf.cond(flag, lambda a=a: a, lambda b=b: b) * (i + 1.0))
        outs.append(tf.while_loop(lambda x: tf.reduce_sum(x) < 9.0, lambda x, b=b: x * b, [a]))
        outs.append(tf.where([True, False], a, b))
        outs.append(tf.tuple([a, b])[1] + tf.stop_gradient(a))
        with tf.control_dependencies([a, b.op, tf.group(a)]):
            outs.append(tf.identity(b))
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, [a, b])]), session.run(outs, {flag: False})


@idiom
def swapped_and_stacked(p: Program) -> Any:
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([3.0, 4.0], name="b")
    old = tf.identity(a + 0.0)
    with tf.control_dependencies([old]):
        first = a.assign(b + 0.0)
        with tf.control_dependencies([first]):
            swap = b.assign(old)
    outs = [tf.stack([a, b]) * float(i + 1) for i in p.towers(range(2))]
    with p.session() as session:
        session.run(swap)
        return session.run(outs)


@idiom
def assigned_with_casts_and_broadcasts(p: Program) -> Any:
    v, outs = shared(p)
    n = tf.Variable(3, name="n", trainable=False)
    ops = [v.assign(np.ones((3, 2))), v.assign_add([[1, 2], [3, 4], [5, 6]])]
    ops += [n.assign(7), tf.assign_add(n, 2), tf.assign(v, tf.fill([3, 2], tf.cast(n, tf.float32)))]
    said = []
    for bad in (lambda: v.assign(tf.ones([2])), lambda: n.assign(tf.constant(1.5))):
        try:
            bad()
        except (ValueError, TypeError) as error:
            said.append(type(error).__name__)
    with p.session() as session:
        return [session.run(op) for op in ops], session.run([outs, n]), len(said)


@idiom
def assignments_to_what_an_assignment_gives(p: Program) -> Any:
    v, outs = shared(p)
    twice = tf.assign(v.assign(v + 1.0), tf.ones([3, 2]) * 3.0)
    more = tf.assign_add(v.assign(tf.ones([3, 2])), tf.ones([3, 2]) * 0.5)
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in (twice, more)]


@idiom
def dtypes_of_variables(p: Program) -> Any:
    v, _ = shared(p)
    moved = tf.train.MomentumOptimizer(0.1, 0.9)
    moved.apply_gradients([(tf.ones([3, 2]), v)])
    asked = [v, moved.get_slot(v, "momentum"), tf.get_variable("r", [], use_resource=True)]
    said = [
        (each.dtype == tf.float32, each.dtype.name, each.dtype.base_dtype.name) for each in asked
    ]
    said.append([tf.cast(1, v.dtype).dtype.name, (v + 1.0).dtype == tf.float32, "ref" in repr(v)])
    return [str(each) for each in said]
