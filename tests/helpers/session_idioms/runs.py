"""Runs of a session: what can be fetched and fed."""

from __future__ import annotations

import collections
import re
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, idiom


def _training(p: Program) -> tuple[Any, Any, Any, list[Any]]:
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    losses, pairs = p.tower_gradients(optimizer)
    return optimizer.apply_gradients(pairs, step), step, tf.trainable_variables()[0], losses


@idiom
def variables_beside_the_train_op(p: Program) -> Any:
    train, step, w, losses = _training(p)
    with p.session() as session:
        return [session.run([train, step, w, losses])[1:] for _ in range(4)]


@idiom
def every_structure_of_fetches(p: Program) -> Any:
    train, step, w, losses = _training(p)
    pair = collections.namedtuple("pair", "op rest")
    seen = []
    with p.session() as session:
        seen.append(session.run((train, step))[1])
        seen.append(session.run({"t": train, "s": step, "in": [w, (losses, {"again": step})]}))
        seen.append(session.run(pair(train, [step, {"w": w}])).rest)
        seen.append(session.run([[train], [], [step, step]])[1:])
        seen.append(session.run(collections.OrderedDict([("t", train), ("s", step)]))["s"])
        seen.append(type(session.run(pair(train, step))).__name__)
        seen.append([type(x).__name__ for x in session.run([step, w, losses[0], (step,)])])
        seen.append(session.run([train, None and step, step])[2] if False else session.run(step))
    return seen


@idiom
def by_name(p: Program) -> Any:
    train, step, w, losses = _training(p)
    graph = tf.get_default_graph()
    with p.session() as session:
        seen = [session.run(["w:0", train.name, "global_step:0", losses[1].name])[::2]]
        seen += [session.run([train, "w:0", graph.get_tensor_by_name("b:0")])[1:]]
        seen += [session.run(graph.get_tensor_by_name("w:0"))]
        seen += [session.run(graph.get_tensor_by_name("w:0") * 2.0)]
        seen += [graph.get_tensor_by_name("w:0").name, graph.get_operation_by_name("w").name]
        session.run(graph.get_operation_by_name(train.name))
        return seen, session.run(tf.gradients(losses, graph.get_tensor_by_name("w:0")))


@idiom
def what_aliases_a_variable(p: Program) -> Any:
    train, step, w, _ = _training(p)
    shown = [tf.identity(w), tf.reshape(w, [-1]), w.value(), w.read_value(), tf.squeeze(w)]
    with p.session() as session:
        return [session.run([shown, train, step])[::2] for _ in range(2)]


@idiom
def read_in_the_order_that_is_asked_for(p: Program) -> Any:
    train, step, w, losses = _training(p)
    with tf.control_dependencies([train]):
        after = [tf.identity(step), w * 1.0, tf.reduce_sum(w)]
    with p.session() as session:
        return [session.run([after, losses]) for _ in range(2)]


@idiom
def assignments_beside_each_other(p: Program) -> Any:
    _, step, w, _ = _training(p)
    up, twice = step.assign_add(1), tf.assign(w, w * 2.0)
    with p.session() as session:
        return [session.run([up, step, twice, w]) for _ in range(2)], session.run([w, step])


@idiom
def fed_placeholders_and_tensors(p: Program) -> Any:
    x, keep = tf.placeholder(tf.float32, [None, 3]), tf.placeholder_with_default(1.0, [])
    outs = []
    for i, part in p.towers(enumerate(tf.split(x, 2))):
        with tf.variable_scope("", reuse=i > 0):
            hidden = tf.identity(p.model(part) * keep, name=f"hidden_{i}")
            outs.append(tf.reduce_sum(hidden))
    with p.session() as session:
        seen = [session.run(outs, {x: X}), session.run(outs, {x: X[:4], keep: 0.5})]
        seen.append(session.run(outs, {x: X, hidden: np.ones((4, 1))}))
        seen.append(session.run(outs, {x.name: X, "hidden_0:0": np.ones((4, 1))}))
        try:
            session.run(outs)
        except tf.errors.InvalidArgumentError:
            seen.append("not fed")
        return seen


@idiom
def fed_variables(p: Program) -> Any:
    rate = tf.Variable(0.1, trainable=False, name="rate")
    training = tf.Variable(True, trainable=False, name="training")
    losses, outs = p.tower_losses(), []
    for _ in p.towers(range(2)):
        outs.append(tf.where(training, rate * 2.0, -rate))
    train = tf.train.GradientDescentOptimizer(rate).minimize(tf.add_n(losses))
    with p.session() as session:
        seen = [session.run(outs, {rate: 3.0}), session.run(outs, {rate: 2.0, training: False})]
        seen += [session.run([outs, rate], {"rate:0": 5.0}), session.run(outs)]
        session.run(train, {rate: 0.01})
        return seen, session.run(losses)


@idiom
def fed_variable_that_is_written(p: Program) -> Any:
    w = tf.get_variable("w", [2], initializer=constant(1.0))
    outs = [w * float(i) for i in p.towers(range(2))]
    up = w.assign_add([1.0, 1.0])
    with p.session() as session:
        try:
            session.run([up, outs], {w: [3.0, 3.0]})
        except (tf.errors.InvalidArgumentError, NotImplementedError):
            return "refused"


@idiom
def evaluated(p: Program) -> Any:
    train, step, w, losses = _training(p)
    with p.session() as session:
        first = [w.eval(), step.eval(), losses[0].eval(), w.eval(session=session)]
        train.run()
        train.run(session=session)
        return first, w.eval(), step.eval(session), losses[1].eval()


@idiom
def interactive(p: Program) -> Any:
    train, step, w, losses = _training(p)
    session = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    train.run()
    result = w.eval(), step.eval(), [loss.eval() for loss in losses]
    session.close()
    return result


@idiom
def made_callable(p: Program) -> Any:
    train, step, w, losses = _training(p)
    x = tf.placeholder(tf.float32, [])
    with p.session() as session:
        both = session.make_callable([train, step, w])
        one, op = session.make_callable(losses[0]), session.make_callable(train)
        fed = session.make_callable([x * 2.0, w], [x])
        with_options = session.make_callable([step], accept_options=True)
        return [
            *(both()[1:], one(), op(), both()[1:], fed(3.0)),
            with_options(options=tf.RunOptions(), run_metadata=tf.RunMetadata()),
        ]


@idiom
def partial_runs(p: Program) -> Any:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("z", reuse=i > 0):
            outs.append(tf.get_variable("w", [], initializer=constant(2.0)) * a * (i + 1.0))
    total = tf.add_n(outs) * b
    with p.session() as session:
        handle = session.partial_run_setup([outs[0], total], [a, b])
        first = session.partial_run(handle, outs[0], {a: 3.0})
        return first, session.partial_run(handle, total, {b: first})


@idiom
def options_and_metadata(p: Program) -> Any:
    train, step, w, _ = _training(p)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    with p.session() as session:
        values = session.run([train, step, w], None, options, metadata)[1:]
        return values, len(metadata.step_stats.dev_stats) > 0


@idiom
def sessions_with_configurations(p: Program) -> Any:
    train, step, _, losses = _training(p)
    init = tf.global_variables_initializer()
    seen = []
    for config in (
        None,
        tf.ConfigProto(),
        tf.ConfigProto(allow_soft_placement=True, log_device_placement=False),
        tf.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=1),
        tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)),
    ):
        before = config.SerializeToString() if config is not None else None
        with tf.Session("", config=config) as session:
            session.run(init)
            seen.append(session.run([train, step, losses])[1:])
        assert before == (config.SerializeToString() if config is not None else None)
    return seen


@idiom
def session_of_a_graph_from_outside(p: Program) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        p.begin(2)
        train, step, w, losses = _training(p)
        init = tf.global_variables_initializer()
    session = tf.Session(graph=graph)
    session.run(init)
    result = [session.run([train, step, w, losses, "b:0"])[1:] for _ in range(2)]
    with session.as_default(), graph.as_default():
        result.append(w.eval())
        w.load(np.ones([3, 1]))
        result.append(session.run(losses))
    session.close()
    return result


@idiom
def several_sessions(p: Program) -> Any:
    train, _, w, _ = _training(p)
    with p.session() as one, p.session() as other:
        one.run(train)
        one.run(train)
        other.run(train)
        return one.run(w), other.run(w)


@idiom
def finalized_graph(p: Program) -> Any:
    train, step, w, losses = _training(p)
    init = tf.global_variables_initializer()
    tf.get_default_graph().finalize()
    with tf.Session() as session:
        session.run(init)
        result = [session.run([train, step, w, losses])[1:] for _ in range(2)]
        w.load(np.ones([3, 1]), session)
        result.append(session.run(losses))
        try:
            tf.constant(1.0)
        except RuntimeError as error:
            result.append(str(error)[:37])
    return result


@idiom
def ops_added_while_running(p: Program) -> Any:
    train, _, w, losses = _training(p)
    seen = []
    with p.session() as session:
        for k in range(3):
            session.run(train)
            session.run(w.assign(w * 0.5))
            seen.append(session.run([tf.reduce_sum(w) * float(k), losses[0]]))
    return seen


@idiom(warning="assigns w:0 .* and reads it")
def threads_that_run(p: Program) -> Any:
    import threading

    w = tf.get_variable("w", [], initializer=constant(0.0), use_resource=True)
    outs = [w * float(i) for i in p.towers(range(2))]
    up = tf.group(w.assign_add(1.0, use_locking=True))
    with p.session() as session:
        graph = tf.get_default_graph()

        def work() -> None:
            with graph.as_default():
                for _ in range(20):
                    session.run([up, outs])

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return session.run([w, outs])


@idiom
def errors_name_what_failed(p: Program) -> Any:
    w = tf.get_variable("w", [2], initializer=constant(1.0))
    outs = []
    for i in p.towers(range(2)):
        with tf.name_scope(f"tower_{i}"):
            outs.append(tf.check_numerics(w / 0.0, "bad", name="checked"))
    with p.session() as session:
        try:
            session.run(outs[0])
        except tf.errors.InvalidArgumentError as error:
            return error.op.name, type(error).__name__


@idiom
def errors_of_feeds(p: Program) -> Any:
    w = tf.get_variable("w", [2], initializer=constant(1.0))
    outs = [w * 2.0 for _ in p.towers(range(2))]
    found: list[Any] = []
    with p.session() as session:
        for key in ("nothing:0", "nothing", "w", "w:1", 3, None):
            try:
                found.append(session.run(outs, {key: [3.0, 4.0]}))
            except Exception as error:
                found.append((type(error).__name__, str(error)[:40]))
        return found, session.run(outs, {"w:0": [3.0, 4.0]})


def uninitialized_in(error: Any) -> str:
    """The variable that an error names; only its own words are alike in all releases."""
    named = re.search(r"Attempting to use uninitialized value ([\w/]+)", error.message)
    return named[1] if named else error.message


@idiom
def uninitialized_slots_are_told_of_and_may_be_initialized_then(p: Program) -> Any:
    makers = {
        "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
        "Adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
        "Ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    }
    found = []
    for name, make in makers.items():
        losses = []
        for i in p.towers(range(2)):
            with tf.variable_scope(name, reuse=i > 0):
                w = tf.get_variable("w", [3], initializer=constant(1.0))
                rows = tf.gather(w, [0, 1]) if name == "Adagrad" else w
                losses.append(tf.reduce_sum(tf.square(rows)))
        train, slots = make().minimize(tf.add_n(losses)), []
        with tf.Session() as session:
            session.run(tf.variables_initializer([w]))
            for _ in range(3):
                try:
                    session.run(train)
                except tf.errors.FailedPreconditionError as error:
                    found.append(uninitialized_in(error).rpartition("/")[0])
                    slots = [v for v in tf.global_variables() if v.op.name.startswith(w.op.name)]
                    session.run(tf.variables_initializer([v for v in slots if v is not w]))
            found += [len(slots), session.run(losses)]
    return found


@idiom
def any_operation_tells_of_a_variable_without_a_value(p: Program) -> Any:
    w = tf.get_variable("n/w", [3, 2], initializer=constant(1.0))
    count = tf.get_variable("count", [], tf.int32, initializer=constant(0))
    one, row = tf.ones([3, 2]), [[1.0, 1.0]]
    asked = [w, w + 1.0, tf.gather(w, [0]), w.assign_add(one), tf.scatter_sub(w, [0], row)]
    asked += [tf.scatter_nd_update(w, [[0]], row), w[0].assign([1.0, 1.0]), count.count_up_to(3)]
    for opt in (tf.train.GradientDescentOptimizer(0.1), tf.train.ProximalAdagradOptimizer(0.1)):
        asked.append(opt.apply_gradients([(one, w)]))
    found = []
    with tf.Session() as session:
        for each in asked:
            try:
                session.run(each)
            except tf.errors.OpError as error:
                found.append((type(error).__name__, uninitialized_in(error)))
        branch = tf.cond(tf.constant(True), lambda: w.assign_sub(one), lambda: one)
        try:
            session.run(branch)
        except tf.errors.OpError as error:  # TF1 names the branch's own operation
            found.append(type(error).__name__)
    return found


@idiom
def a_run_that_fails_leaves_all_towers_the_same_values(p: Program) -> Any:
    size = 4_000_000  # so that the failure comes while it is updated
    big = tf.get_variable("big", [size], initializer=tf.zeros_initializer())
    small = tf.get_variable("small", [], initializer=constant(1.0))
    seen = [tf.reduce_max(big) for _ in p.towers(range(2))]
    trained = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.fill([size], 1.0), big)])
    failing = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(tf.constant(1.0), small)])
    found = []
    with tf.Session() as session:
        session.run(tf.variables_initializer([big, small]))
        for _ in range(5):
            try:
                session.run([trained, failing])
            except tf.errors.OpError:
                first, second = session.run(seen)
                found.append(bool(first == second))
    return found


@idiom
def variables_beside_conditional_writes(p: Program) -> Any:
    w = tf.get_variable("w", [], initializer=constant(1.0), trainable=False)
    flag, outs = tf.placeholder(tf.bool, []), [w * i for i in p.towers(range(2))]
    op = tf.cond(flag, lambda: w.assign_add(2.0), lambda: tf.identity(w))

    def body(k: Any) -> Any:
        with tf.control_dependencies([w.assign_add(1.0)]):
            return k + 1

    loop = tf.while_loop(lambda k: k < 3, body, [0])
    scattered = tf.Variable([1.0, 2.0], name="s")
    row = tf.scatter_add(scattered, [0], [5.0])
    with p.session() as session:
        return (
            [session.run([op, w], {flag: f}) for f in (True, False, True)],
            [session.run([loop, w]), session.run([loop, w])[1]],
            session.run([row, scattered, outs])[:2],
        )


@idiom
def random_ops_without_seeds_of_their_own(p: Program) -> Any:
    tf.set_random_seed(7)
    optimizer, found, losses = tf.train.AdamOptimizer(0.1), [], []
    step = tf.train.get_or_create_global_step()
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("n", reuse=i > 0):
            h = tf.layers.dense(x, 4)
            h = tf.layers.dropout(tf.layers.batch_normalization(h, training=True), training=True)
            e = tf.get_variable("e", [5, 4])
            h += tf.nn.embedding_lookup(e, [0, 1, 2, 3]) + tf.random_normal([4])
            losses.append(tf.reduce_mean(tf.square(tf.layers.dense(h, 1))))
        found.append(optimizer.compute_gradients(losses[-1]))
    noise = [tf.random_uniform([2])]
    train = optimizer.apply_gradients(
        [(tf.convert_to_tensor(a[0]) + tf.convert_to_tensor(b[0]), a[1]) for a, b in zip(*found)],  # noqa: B905
        step,
    )
    noise.append(tf.random_normal([2]))
    with p.session() as session:
        return [session.run([train, losses, noise])[1:] for _ in range(2)]
