"""Variables: how they are made, named, found, assigned and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, every_variable, idiom


def _shared(p: Program, count: int = 2, **kwargs: Any) -> tuple[Any, list[Any]]:
    """One variable, and what each tower computes of it."""
    outs = []
    for i in p.towers(range(count)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [3, 2], initializer=constant(1.0), **kwargs)
            outs.append(tf.reduce_sum(v) * (i + 1.0))
    return v, outs


@idiom
def names_and_kinds(p: Program) -> Any:
    v, _ = _shared(p)
    u = tf.Variable([1.0, 2.0], name="u")
    return [
        [x.name, x.op.name, x.get_shape().as_list(), x.shape[0].value, x.dtype.base_dtype.name]
        + [isinstance(x, tf.Variable), x in tf.global_variables(), x == x, v == u, v != u]
        + [x.graph is tf.get_default_graph(), x.trainable]
        for x in (v, u)
    ]


@idiom
def names_inside_towers(p: Program) -> Any:
    seen = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [2])
        seen.append([v.name, v.op.name, [x.name for x in tf.trainable_variables()]])
        seen.append([x.op.name for x in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, "q")])
    return seen


@idiom
def keys_of_dicts_and_sets(p: Program) -> Any:
    v, _ = _shared(p)
    with tf.variable_scope("q", reuse=True):
        again = tf.get_variable("v", [3, 2])
    u = tf.Variable(1.0, name="u")
    table = {v: "v", u: "u"}
    return [
        table[again],
        again is v,
        len({v, u, again}),
        [v, u].index(u),
        v in [u],
        sorted({x.op.name for x in tf.global_variables()} - {u.op.name}),
        [x.op.name for x in tf.global_variables() if x not in tf.local_variables()],
    ]


@idiom
def collections_of_variables(p: Program) -> Any:
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            tf.get_variable("a", [2], collections=["mine", tf.GraphKeys.GLOBAL_VARIABLES])
            tf.get_variable("b", [2], trainable=False)
            tf.get_variable("c", [2], collections=[tf.GraphKeys.LOCAL_VARIABLES])
            tf.get_local_variable("d", [2])
    tf.Variable(1.0, collections=["mine"], name="e")
    keys = ["mine", *("variables", "trainable_variables", "local_variables", "model_variables")]
    return {key: [v.op.name for v in tf.get_collection(key)] for key in keys}


@idiom
def variables_before_the_towers(p: Program) -> Any:
    before = tf.get_variable("before", [], initializer=constant(2.0))
    outs = []
    for i in p.towers(range(2)):
        outs.append(before * (i + 1.0))
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, before)])


@idiom
def variables_after_the_towers(p: Program) -> Any:
    _, outs = _shared(p)
    after = tf.get_variable("after", [], initializer=constant(2.0))
    total = tf.add_n(outs) * after
    train = tf.train.AdamOptimizer(0.1).minimize(total)
    with p.session() as session:
        session.run(train)
        return session.run(total), every_variable(session)


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
def tf_variable_in_each_tower(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.name_scope(f"tower_{i}"):
            own = tf.Variable(float(i + 1), name="own")
            outs.append(own * own)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(outs))
    with p.session() as session:
        session.run(train)
        return session.run(outs), every_variable(session)


@idiom
def unnamed_variables(p: Program) -> Any:
    for _ in p.towers(range(2)):
        tf.Variable(1.0)
    tf.Variable(tf.zeros([2]))
    with tf.name_scope("s"):
        tf.Variable(2, trainable=False)
    with tf.variable_scope("t"):
        tf.Variable(2, name="x")
        tf.Variable(2, name="x")
    return [v.name for v in tf.global_variables()], [v.name for v in tf.trainable_variables()]


@idiom
def auto_reuse(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=tf.AUTO_REUSE):
            outs.append(tf.get_variable("v", [], initializer=constant(3.0)) * i)
    with p.session() as session:
        return session.run(outs), [v.op.name for v in tf.global_variables()]


@idiom
def regularizer_of_a_variable(p: Program) -> Any:
    v, outs = _shared(p, regularizer=lambda w: tf.reduce_sum(w * w))
    terms = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    total = tf.add_n(outs + terms)
    with p.session() as session:
        return len(terms), session.run([total, tf.gradients(total, v)])


@idiom
def regularizer_of_a_scope(p: Program) -> Any:
    seen = []
    for i in p.towers(range(2)):
        with tf.name_scope(f"t{i}") as scope:
            with tf.variable_scope("q", reuse=i > 0, regularizer=lambda w: tf.nn.l2_loss(w)):
                tf.get_variable("v", [3], initializer=constant(2.0))
            seen.append(
                [
                    len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)),
                    len(tf.losses.get_regularization_losses(scope)),
                ]
            )
    loss = tf.losses.get_regularization_loss()
    with p.session() as session:
        return seen, session.run([loss, tf.gradients(loss, tf.trainable_variables())])


@idiom
def custom_getter_that_scales(p: Program) -> Any:
    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return tf.identity(getter(name, *args, **kwargs)) * 2.0

    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("cg", reuse=i > 0, custom_getter=getter):
            outs.append(tf.reduce_sum(p.model(x)))
    gradients = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        return session.run([outs, gradients])


@idiom
def half_precision_getter(p: Program) -> Any:
    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        kwargs["dtype"] = tf.float32
        return tf.cast(getter(name, *args, **kwargs), tf.float16, name=name + "_16")

    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("cg", reuse=i > 0, custom_getter=getter):
            outs.append(
                tf.reduce_sum(tf.get_variable("v", [2], tf.float16, constant(0.5))) * (i + 1)
            )
    train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(tf.cast(tf.add_n(outs), tf.float32))
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
def template(p: Program) -> Any:
    net = tf.make_template("net", p.model)
    outs = [tf.reduce_sum(net(x)) for x, _ in p.towers(p.split())]
    with p.session() as session:
        return session.run(outs), [v.op.name for v in tf.global_variables()]


@idiom
def partitioned(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("p", reuse=i > 0, partitioner=tf.fixed_size_partitioner(2)):
            w = tf.get_variable("w", [4, 2], initializer=constant(0.5))
            outs.append(tf.reduce_sum(tf.convert_to_tensor(w)))
    saver, path = tf.train.Saver(), p.folder() + "/m"
    with p.session() as session:
        saver.save(session, path)
        result = session.run(outs), [v.op.name for v in tf.global_variables()]
    return result, tf.train.list_variables(path)


@idiom
def initial_values_of_all_kinds(p: Program) -> Any:
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            tf.get_variable("array", initializer=np.arange(3, dtype="f"))
            tf.get_variable("tensor", None, tf.int32, tf.range(3))
            tf.get_variable("function", [2, 2], initializer=lambda s, dtype, **_: tf.ones(s, dtype))
            tf.get_variable("default_ones", [2], initializer=tf.ones_initializer)
            tf.get_variable("ints", [2], tf.int64, tf.zeros_initializer())
            tf.get_variable("flag", [], tf.bool, constant(True), trainable=False)
            tf.get_variable("text", None, tf.string, tf.constant(["a", "b"]), trainable=False)
    tf.Variable(np.float64(3.5), name="double")
    tf.Variable(lambda: tf.constant(2.0), name="late")
    with p.session() as session:
        return every_variable(session), [v.dtype.base_dtype.name for v in tf.global_variables()]


@idiom
def initial_value_of_another_variable(p: Program) -> Any:
    a = tf.Variable([1.0, 2.0], name="a")
    b = tf.Variable(a.initialized_value() * 2.0, name="b")
    c = tf.Variable(a + 1.0, name="c")
    d = tf.Variable(tf.reduce_sum(b) * 2.0, name="d")
    e = tf.get_variable("e", initializer=a.initialized_value())
    with p.session() as session:
        return session.run([a, b, c, d, e])


@idiom
def same_initial_draw_on_every_replica(p: Program) -> Any:
    outs = []
    for i in p.towers(range(4)):
        with tf.variable_scope("q", reuse=i > 0):
            outs.append(tf.get_variable("v", [5], initializer=tf.random_normal_initializer()) * 1.0)
    with p.session() as session:
        values = session.run(outs)
        return [bool(np.array_equal(values[0], value)) for value in values]


@idiom
def seeded_initial_draw(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            initializer = tf.truncated_normal_initializer(stddev=0.1, seed=7)
            outs.append(tf.get_variable("v", [5], initializer=initializer) * 1.0)
    with p.session() as session:
        return session.run(outs)


@idiom
def assigned_outside(p: Program) -> Any:
    v, outs = _shared(p)
    ops = [v.assign(v * 2.0), v.assign_add(tf.ones([3, 2])), v.assign_sub(tf.ones([3, 2]) * 0.5)]
    more = [tf.assign(v, v + 1.0), tf.assign_add(v, v), tf.assign_sub(v, tf.ones([3, 2]))]
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops + more]


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
    v, outs = _shared(p)
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
    v, outs = _shared(p)
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
    v, outs = _shared(p)
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
def slices(p: Program) -> Any:
    v, outs = _shared(p)
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
    v, outs = _shared(p)
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
    v, outs = _shared(p)
    delta = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]))
    ops = [v.scatter_sub(delta), v.scatter_nd_update([[2]], [[9.0, 9.0]])]
    ops += [v.scatter_nd_add([[0]], [[1.0, 1.0]]), v.scatter_nd_sub([[0]], [[0.5, 1.0]])]
    with p.session() as session:
        return [(session.run(op), session.run(outs)) for op in ops]


@idiom
def loaded_values(p: Program) -> Any:
    v, outs = _shared(p)
    with p.session() as session:
        v.load(np.arange(6.0).reshape(3, 2), session)
        first = session.run(outs)
        with session.as_default():
            v.load(np.ones((3, 2)))
        return first, session.run(outs), session.run(v)


@idiom
def load_without_a_session(p: Program) -> Any:
    v, _ = _shared(p)
    try:
        v.load(np.ones((3, 2)))
    except ValueError as error:
        return str(error)


@idiom
def initialized_values(p: Program) -> Any:
    v, outs = _shared(p)
    value, initial = v.initialized_value(), v.initial_value
    with tf.Session() as session:
        before = session.run([value, initial])
        session.run(tf.global_variables_initializer())
        session.run(v.assign(v * 3.0))
        return before, session.run([value, initial])


@idiom
def initialized_or_not(p: Program) -> Any:
    v, _ = _shared(p)
    u = tf.Variable(1.0, name="u")
    asked = [tf.is_variable_initialized(v), tf.is_variable_initialized(u)]
    missing = tf.report_uninitialized_variables()
    check = tf.assert_variables_initialized()
    with tf.Session() as session:
        seen = [session.run(asked), sorted(session.run(missing))]
        session.run(v.initializer)
        seen += [session.run(asked), sorted(session.run(missing))]
        session.run(tf.variables_initializer([u]))
        seen += [session.run(asked), list(session.run(missing)), session.run(check)]
        return seen


@idiom
def uninitialized_use(p: Program) -> Any:
    _, outs = _shared(p)
    with tf.Session() as session:
        try:
            session.run(outs)
        except tf.errors.FailedPreconditionError:
            return "not initialized"


@idiom
def initialized_again(p: Program) -> Any:
    v, outs = _shared(p)
    up = v.assign_add(tf.ones([3, 2]))
    with p.session() as session:
        session.run(up)
        first = session.run(outs)
        session.run(tf.global_variables_initializer())
        second = session.run(outs)
        session.run(up)
        session.run(v.initializer)
        return first, second, session.run(outs)


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
def colocated(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("n", [2], initializer=constant(1.0))
            with tf.colocate_with(v):
                outs.append(tf.reduce_sum(v * 2.0))
                w = tf.get_variable("w", [2], initializer=constant(2.0))
            with tf.device(v.device):
                outs.append(tf.reduce_sum(v * w))
    with tf.colocate_with(v.op):
        outs.append(v + 1.0)
    with p.session() as session:
        return session.run(outs)


@idiom
def validate_shape_false(p: Program) -> Any:
    size = tf.placeholder_with_default(2, [])
    v = tf.Variable(tf.zeros([size]), validate_shape=False, name="v")
    outs = [tf.reduce_sum(v + 1.0) for _ in p.towers(range(2))]
    with p.session() as session:
        return session.run(outs), v.get_shape().ndims


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
def caching_device(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0, caching_device="/cpu:0"):
            outs.append(tf.get_variable("v", [2], initializer=constant(1.0)) * (i + 1.0))
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, tf.trainable_variables())])


@idiom
def resource_variables_asked_for(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("q", reuse=i > 0, use_resource=True):
            v = tf.get_variable("v", [2], initializer=constant(1.0))
            outs.append(v * (i + 1.0))
    up = v.assign_add([1.0, 1.0])
    with p.session() as session:
        session.run(up)
        return session.run([outs, tf.gradients(outs, v)]), v.op.name


@idiom
def printed(p: Program) -> Any:
    w = tf.get_variable("w", [2, 3])
    u = tf.Variable(1, trainable=False)
    return str(w), f"{u}", repr(w), "%s" % [u]


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
    v, outs = _shared(p)
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


@idiom
def counts_of_parameters(p: Program) -> Any:
    p.tower_losses()
    total = 0
    for v in tf.trainable_variables():
        size = 1
        for dimension in v.get_shape():
            size *= dimension.value
        total += size
    return total, [int(np.prod(v.get_shape().as_list())) for v in tf.global_variables()]


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
    v, outs = _shared(p)
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
