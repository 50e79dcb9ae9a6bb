"""Variables: how they are made, named, found and initialized."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, constant, every_variable, idiom


def shared(p: Program, count: int = 2, **kwargs: Any) -> tuple[Any, list[Any]]:
    """One variable, and what each tower computes of it."""
    outs = []
    for i in p.towers(range(count)):
        with tf.variable_scope("q", reuse=i > 0):
            v = tf.get_variable("v", [3, 2], initializer=constant(1.0), **kwargs)
            outs.append(tf.reduce_sum(v) * (i + 1.0))
    return v, outs


@idiom
def names_and_kinds(p: Program) -> Any:
    v, _ = shared(p)
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
    v, _ = shared(p)
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
    _, outs = shared(p)
    after = tf.get_variable("after", [], initializer=constant(2.0))
    total = tf.add_n(outs) * after
    train = tf.train.AdamOptimizer(0.1).minimize(total)
    with p.session() as session:
        session.run(train)
        return session.run(total), every_variable(session)


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
    v, outs = shared(p, regularizer=lambda w: tf.reduce_sum(w * w))
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
def initialized_values(p: Program) -> Any:
    v, outs = shared(p)
    value, initial = v.initialized_value(), v.initial_value
    with tf.Session() as session:
        before = session.run([value, initial])
        session.run(tf.global_variables_initializer())
        session.run(v.assign(v * 3.0))
        return before, session.run([value, initial])


@idiom
def initialized_or_not(p: Program) -> Any:
    v, _ = shared(p)
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
    _, outs = shared(p)
    with tf.Session() as session:
        try:
            session.run(outs)
        except tf.errors.FailedPreconditionError:
            return "not initialized"


@idiom
def initialized_again(p: Program) -> Any:
    v, outs = shared(p)
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
def counts_of_parameters(p: Program) -> Any:
    p.tower_losses()
    total = 0
    for v in tf.trainable_variables():
        size = 1
        for dimension in v.get_shape():
            size *= dimension.value
        total += size
    return total, [int(np.prod(v.get_shape().as_list())) for v in tf.global_variables()]
