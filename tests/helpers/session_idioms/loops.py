"""Tower loops: any number of towers, any Python around them."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, idiom, trained


def _w(reuse: bool = False, scope: str = "z") -> Any:
    with tf.variable_scope(scope, reuse=reuse):
        return tf.get_variable("w", [], initializer=constant(2.0))


@idiom
def one_tower(p: Program) -> Any:
    return trained(p, tf.train.MomentumOptimizer(0.1, 0.9), count=1)


@idiom
def two_towers(p: Program) -> Any:
    return trained(p, tf.train.MomentumOptimizer(0.1, 0.9))


@idiom
def four_towers(p: Program) -> Any:
    return trained(p, tf.train.MomentumOptimizer(0.1, 0.9), count=4)


@idiom
def eight_towers(p: Program) -> Any:
    return trained(p, tf.train.MomentumOptimizer(0.1, 0.9), count=8)


@idiom
def three_towers_over_a_list(p: Program) -> Any:
    outs = []
    for k, scale in p.towers([(0, 1.0), (1, 2.0), (2, 3.0)]):
        outs.append(_w(k > 0) * scale)
    gradient = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        return session.run([outs, gradient])


@idiom
def two_loops(p: Program) -> Any:
    first = [_w(i > 0) * (i + 1.0) for i in p.towers(range(2))]
    second = []
    for i in p.towers(range(3)):
        second.append(_w(True) * (i + 10.0))
    gradient = tf.gradients(tf.add_n(first) * tf.add_n(second), tf.trainable_variables())
    with p.session() as session:
        return session.run([first, second, gradient])


@idiom
def train_towers_then_eval_towers(p: Program) -> Any:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    losses, gradients = p.tower_gradients(optimizer)
    train = optimizer.apply_gradients(gradients)
    evals = []
    for _, (x, _) in p.towers(enumerate(p.split(4))):
        with tf.variable_scope("", reuse=True):
            evals.append(tf.reduce_sum(p.model(x)))
    with p.session() as session:
        before = session.run(evals)
        session.run(train)
        return before, session.run(evals), session.run(losses)


@idiom
def nested_loops(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        outs.append(_w(i > 0))
        for j in p.towers(range(3)):
            outs.append(_w(True) * (10.0 * i + j))
        outs.append(_w(True) * 100.0)
    gradient = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        return session.run([outs, gradient])


@idiom
def list_comprehension(p: Program) -> Any:
    outs = [_w(i > 0) * i for i in p.towers(range(3))]
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, tf.trainable_variables())])


@idiom
def dict_comprehension_with_condition(p: Program) -> Any:
    outs = {f"t{i}": _w(i > 0) * i for i in p.towers(range(4)) if i != 1}
    with p.session() as session:
        return session.run(outs)


@idiom
def generator_expression(p: Program) -> Any:
    outs = list(_w(i > 0) * i for i in p.towers(range(3)))  # noqa: C400
    after = _w(True) * 7.0
    with p.session() as session:
        return session.run([outs, after])


@idiom
def generator_function_around_the_loop(p: Program) -> Any:
    def towers() -> Any:
        for i in p.towers(range(3)):
            with tf.name_scope(f"tower_{i}") as scope:
                yield i, scope

    outs, scopes = [], []
    for i, scope in towers():
        outs.append(_w(i > 0) * i)
        scopes.append((scope, outs[-1].op.name))
    after = tf.identity(_w(True))
    with p.session() as session:
        return session.run([outs, after]), scopes


@idiom
def generator_left_early(p: Program) -> Any:
    def towers() -> Any:
        for i in p.towers(range(3)):
            with tf.name_scope(f"tower_{i}"):
                yield i

    for i in towers():
        inside = _w(i > 0) * 3.0
        if i == 1:
            break
    after = tf.multiply(_w(True), 5.0)
    with p.session() as session:
        return session.run([inside, after]), inside.op.name, after.op.name


@idiom
def break_then_build(p: Program) -> Any:
    outs = []
    for i in p.towers(range(3)):
        outs.append(_w(i > 0) * i)
        if i == 1:
            break
    late = tf.get_variable("late", [], initializer=constant(4.0))
    with p.session() as session:
        return session.run([outs, late * _w(True)]), late.op.name


@idiom
def continue_in_the_body(p: Program) -> Any:
    outs = []
    for i in p.towers(range(3)):
        if i == 1:
            continue
        outs.append(_w(i > 0) * (i + 1))
    with p.session() as session:
        return session.run(outs)


@idiom
def exception_in_the_body(p: Program) -> Any:
    outs = []
    try:
        for i in p.towers(range(3)):
            with tf.name_scope(f"tower_{i}"), tf.variable_scope("v", reuse=i > 0):
                outs.append(tf.get_variable("w", [], initializer=constant(2.0)) * i)
                if i == 1:
                    raise KeyError(i)
    except KeyError:
        pass
    with tf.name_scope("after"):
        outs.append(tf.get_variable("u", [], initializer=constant(3.0)) + 1.0)
    with p.session() as session:
        return session.run(outs), [x.op.name for x in outs]


@idiom
def return_in_the_body(p: Program) -> Any:
    def build() -> Any:
        for i in p.towers(range(3)):
            with tf.name_scope(f"tower_{i}"):
                out = _w(i > 0) * 3.0
                if i == 1:
                    return out

    out = build()
    after = tf.add(_w(True), 1.0)
    with p.session() as session:
        return session.run([out, after]), after.op.name


@idiom
def loop_with_else(p: Program) -> Any:
    for i in p.towers(range(2)):
        out = _w(i > 0) * i
    else:
        out = out + _w(True)
    with p.session() as session:
        return session.run(out)


@idiom
def iterated_by_hand(p: Program) -> Any:
    turns = iter(p.towers(range(2)))
    outs = []
    while True:
        try:
            i = next(turns)
        except StopIteration:
            break
        outs.append(_w(i > 0) * (i + 1.0))
    outs.append(_w(True) * 9.0)
    with p.session() as session:
        return session.run([outs, tf.gradients(outs, tf.trainable_variables())])


@idiom
def towers_of_a_class(p: Program) -> Any:
    class Trainer:
        def __init__(self) -> None:
            self.losses: list[Any] = []
            self.build()

        def build(self) -> None:
            for self.i in p.towers(range(2)):
                self.losses.append(self.tower())

        def tower(self) -> Any:
            with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
                return p.model(p.split()[self.i][0])

    trainer = Trainer()
    with p.session() as session:
        return session.run(trainer.losses)


@idiom
def loop_under_scopes_and_devices(p: Program) -> Any:
    outs = []
    with tf.device("/cpu:0"), tf.variable_scope("model"), tf.name_scope("towers"):
        for i in p.towers(range(2)):
            with p.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"):
                outs.append(tf.multiply(_w(i > 0), 2.0, name="out"))
        after = tf.get_variable("after", [], initializer=constant(1.0))
    with p.session() as session:
        return (
            session.run([outs, after]),
            [x.op.name for x in outs],
            [v.op.name for v in tf.global_variables()],
        )


@idiom
def begun_under_a_device(p: Program) -> Any:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.name_scope("all"):
        p.begin(2)
        with tf.variable_scope("model"):
            outs = [_w(i > 0) for i in p.towers(range(2))]
        z = tf.constant(1.0, name="z")
        with p.session() as session:
            return session.run([outs, z]), z.op.name, [v.op.name for v in tf.global_variables()]


@idiom
def device_functions(p: Program) -> Any:
    def assign_to(device: str) -> Any:
        def choose(op: Any) -> str:
            return "/cpu:0" if op.type.startswith(("Var", "Read")) else device

        return choose

    outs = []
    for i in p.towers(range(2)):
        with p.device(assign_to(f"/gpu:{i}")):
            outs.append(_w(i > 0) * i)
    with p.session() as session:
        return session.run(outs)


@idiom
def replica_device_setter(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with p.device(
            tf.train.replica_device_setter(0, worker_device="/cpu:0", ps_device="/cpu:0")
        ):
            outs.append(_w(i > 0) * i)
    with p.session() as session:
        return session.run(outs)


@idiom
def cpu_in_a_tower(p: Program) -> Any:
    outs = []
    for i in p.towers(range(2)):
        with p.device(f"/gpu:{i}"), tf.device("/cpu:0"), tf.variable_scope("v", reuse=i > 0):
            w = tf.get_variable("w", [], initializer=constant(2.0))
            with p.device(f"/device:GPU:{i}"):
                outs.append(w * i)
    with p.session() as session:
        return session.run(outs)


@idiom
def under_control_dependencies(p: Program) -> Any:
    count = tf.get_variable("count", [], initializer=constant(0.0), trainable=False)
    outs = []
    for i in p.towers(range(2)):
        with tf.control_dependencies([count.assign_add(1.0)]):
            outs.append(tf.identity(_w(i > 0) * i))
    with p.session() as session:
        return session.run(outs), session.run(count), session.run(outs[0]), session.run(count)


@idiom
def state_fed_back(p: Program) -> Any:
    cells, feeds, states = [], [], []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("rnn", reuse=i > 0):
            before = (tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [4, 3]))
            w = tf.get_variable("w", [3, 3], initializer=constant(0.2))
            state = (tf.tanh(tf.matmul(x + before[0], w)), before[1] + 1.0)
        feeds.append(before)
        states.append(state)
        cells.append(tf.reduce_sum(state[0]))
    with p.session() as session:
        values: Any = [[X[:4] * 0, X[:4] * 0], [X[:4] * 0, X[:4] * 0]]
        seen = []
        for _ in range(3):
            fed = {
                feed: value
                for pair, row in zip(feeds, values, strict=True)
                for feed, value in zip(pair, row, strict=True)
            }
            values, sums = session.run([states, cells], fed)
            seen.append(sums)
        return seen, values


@idiom
def tower_counter_and_appends(p: Program) -> Any:
    seen, n = [], 0
    for i in p.towers(range(3)):
        n += 1
        seen.append((i, n, len(tf.trainable_variables()), len(tf.global_variables())))
        _w(i > 0)
        if not tf.get_variable_scope().reuse:
            tf.add_to_collection("mine", tf.constant(float(i)))
    return seen, len(tf.get_collection("mine"))


@idiom
def reuse_variables_in_the_body(p: Program) -> Any:
    outs = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i, (x, _) in p.towers(enumerate(p.split())):
            with p.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}") as scope:
                outs.append(tf.reduce_sum(p.model(x)))
                tf.add_to_collection("losses", outs[-1])
                tf.get_variable_scope().reuse_variables()
                assert tf.get_collection("losses", scope)[-1] is outs[-1]
    with p.session() as session:
        return session.run(outs), [v.op.name for v in tf.trainable_variables()]


@idiom
def variable_created_twice_without_reuse(p: Program) -> Any:
    try:
        for i in p.towers(range(2)):
            with tf.name_scope(f"tower_{i}"):
                tf.get_variable("w", [2])
    except ValueError as error:
        return str(error)[:45]


@idiom
def reuse_of_what_is_not_there(p: Program) -> Any:
    try:
        for _ in p.towers(range(2)):
            with tf.variable_scope("a", reuse=True):
                tf.get_variable("w", [2])
    except ValueError as error:
        return str(error)[:45]


@idiom
def two_graphs(p: Program) -> Any:
    results = []
    for scale in (1.0, 2.0):
        with tf.Graph().as_default():
            p.begin(2)
            outs = [_w(i > 0) * scale * (i + 1) for i in p.towers(range(2))]
            gradient = tf.gradients(outs, tf.trainable_variables())
            with p.session() as session:
                results.append(session.run([outs, gradient]))
    return results


@idiom
def a_train_graph_and_an_eval_graph_at_once(p: Program) -> Any:
    train_graph, eval_graph = tf.Graph(), tf.Graph()
    with train_graph.as_default():
        p.begin(2)
        optimizer = tf.train.AdamOptimizer(0.1)
        losses, gradients = p.tower_gradients(optimizer)
        train, saver = optimizer.apply_gradients(gradients), tf.train.Saver()
        init = tf.global_variables_initializer()
    with eval_graph.as_default():
        p.begin(2)
        evals, loader = p.tower_losses(), tf.train.Saver()
    path = p.folder() + "/m"
    with tf.Session(graph=train_graph) as one, tf.Session(graph=eval_graph) as other:
        one.run(init)
        seen = []
        for _ in range(2):
            one.run(train)
            loader.restore(other, saver.save(one, path))
            seen.append((one.run(losses), other.run(evals)))
    return seen


@idiom
def plain_graph_beside_a_tower_graph(p: Program) -> Any:
    outs = [_w(i > 0) * (i + 1.0) for i in p.towers(range(2))]
    with tf.Graph().as_default():
        u = tf.get_variable("u", [2], initializer=constant(3.0))
        up = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(u * u))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            plain = [session.run([up, u])[1], session.run(u), type(u).__name__]
    with p.session() as session:
        return plain, session.run(outs)


@idiom
def building_in_a_thread(p: Program) -> Any:
    import threading

    graph, outs = tf.get_default_graph(), []

    def build() -> None:
        with graph.as_default():
            for i in p.towers(range(2)):
                outs.append(_w(i > 0) * (i + 1.0))

    thread = threading.Thread(target=build)
    thread.start()
    thread.join()
    gradient = tf.gradients(outs, tf.trainable_variables())
    with p.session() as session:
        return session.run([outs, gradient])


@idiom
def an_optimizer_in_a_thread(p: Program) -> Any:
    import threading

    graph, done = tf.get_default_graph(), []
    losses = p.tower_losses()

    def build() -> None:
        with graph.as_default():
            done.append(tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.add_n(losses)))

    thread = threading.Thread(target=build)
    thread.start()
    thread.join()
    with p.session() as session:
        session.run(done)
        return session.run(losses), {v.op.name: session.run(v) for v in tf.global_variables()}
