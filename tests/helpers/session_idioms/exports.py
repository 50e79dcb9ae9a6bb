"""Graphs that are written down, and what programs do with them: meta graphs, frozen and extracted graphs, event files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, constant, every_variable, idiom, trained

_CPUS = {"device_count": {"CPU": 8}, "allow_soft_placement": True}


def _losses(p: Program) -> tuple[Any, Any]:
    """Training with momentum and the sum of the towers' losses, by names."""
    losses, gradients = p.tower_gradients(tf.train.MomentumOptimizer(0.1, 0.9))
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(gradients, name="train")
    return train, tf.add_n(losses, name="total")


def _imported(p: Program, act: Callable[[Any, Any], Any]) -> Any:
    """What `act` gives of a session and the total in a graph that is read from a meta graph."""
    train, total = _losses(p)
    path = p.folder() + "/m"
    with p.session() as session:
        session.run(train)
        tf.train.Saver().save(session, path)
        first = session.run(total)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**_CPUS)) as session:
        loader = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
        loader.restore(session, path)
        total = tf.get_default_graph().get_tensor_by_name("total:0")
        again = session.run(total)
        return first, again, act(session, total), session.run(total), every_variable(session)


@idiom
def imported_and_read(p: Program) -> Any:
    return _imported(p, lambda session, total: sorted(v.op.name for v in tf.global_variables()))


@idiom
def imported_and_trained_on(p: Program) -> Any:
    def act(session: Any, total: Any) -> Any:
        return [session.run("train") for _ in range(3)]

    return _imported(p, act)


@idiom
def imported_and_trained_otherwise(p: Program) -> Any:
    def act(session: Any, total: Any) -> Any:
        step = tf.train.GradientDescentOptimizer(0.1).minimize(total)
        for _ in range(3):
            session.run(step)

    return _imported(p, act)


@idiom
def imported_and_assigned(p: Program) -> Any:
    def act(session: Any, total: Any) -> Any:
        return [session.run(tf.assign(v, tf.ones_like(v) * 0.3)) for v in tf.trainable_variables()]

    return _imported(p, act)


@idiom
def imported_and_loaded(p: Program) -> Any:
    def act(session: Any, total: Any) -> None:
        tf.trainable_variables()[0].load([[1.0], [2.0], [3.0]], session)

    return _imported(p, act)


@idiom
def imported_and_made_first_again(p: Program) -> Any:
    return _imported(p, lambda session, total: session.run(tf.global_variables_initializer()))


@idiom
def imported_and_restored_by_another(p: Program) -> Any:
    folder = p.folder()

    def act(session: Any, total: Any) -> Any:
        saver = tf.train.Saver(tf.trainable_variables())
        session.run(tf.global_variables_initializer())
        written = saver.save(session, folder + "/n")
        session.run("train")
        saver.restore(session, written)

    return _imported(p, act)


@idiom
def imported_with_another_input(p: Program) -> Any:
    x, outs = tf.placeholder(tf.float32, [None, 3], name="x"), []
    for i in p.towers(range(2)):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(p.model(x))
    tf.add_n(outs, name="out")
    path = p.folder() + "/m"
    with p.session() as session:
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**_CPUS)) as session:
        given = tf.ones([2, 3])
        loader = tf.train.import_meta_graph(
            path + ".meta", clear_devices=True, input_map={"x": given}
        )
        loader.restore(session, path)
        return session.run("out:0")


@idiom
def imported_with_a_loop_that_assigns(p: Program) -> Any:
    count = tf.get_variable("count", [], initializer=constant(1.0), use_resource=True)

    def body(k: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(count, 2.0)]):
            return k + 1

    counted = tf.while_loop(lambda k: k < 3, body, [0])
    once = tf.cond(tf.constant(True), lambda: tf.assign_add(count, 10.0), lambda: tf.constant(0.0))
    tf.add_to_collection("acts", counted)
    tf.add_to_collection("acts", once)
    path = p.folder() + "/m"
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(count * 1.0)
    tf.add_n(outs, name="out")
    with p.session() as session:
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**_CPUS)) as session:
        loader = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
        loader.restore(session, path)
        seen = []
        for act in tf.get_collection("acts"):
            session.run(act)
            seen.append(session.run(["out:0", tf.global_variables()[0]]))
        return seen


@idiom(warning="written down with the copies")
def written_down_with_a_function_that_assigns(p: Program) -> Any:
    count = tf.get_variable("count", [], initializer=constant(1.0), use_resource=True)
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(count * 1.0)
    tf.enable_control_flow_v2()
    try:
        once = tf.cond(
            tf.ones([]) > 0, lambda: tf.assign_add(count, 10.0), lambda: count.read_value()
        )
    finally:
        tf.disable_control_flow_v2()
    path = p.folder() + "/m"
    with p.session() as session:
        session.run(once)
        tf.train.Saver().save(session, path)
        return session.run(outs)


def _outs(p: Program) -> None:
    """The towers' results, by names."""
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            tf.identity(p.model(x), name=f"out_{i}")


def _weights(graph: Any) -> list[str]:
    """The variables, or what was made of them, in a graph's definition."""
    kinds = ("Variable", "VariableV2", "VarHandleOp", "Const")
    names = {n.name for n in graph.node if n.op in kinds}
    return sorted(
        names & {f"{name}{copy}" for name in "wb" for copy in ("", "/replica_1", "/replica_2")}
    )


def _frozen(p: Program, outs: list[str], **kwargs: Any) -> Any:
    _outs(p)
    with p.session() as session:
        return tf.graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(), outs, **kwargs
        )


@idiom
def frozen_weights(p: Program) -> Any:
    return _weights(_frozen(p, ["out_0", "out_1"]))


@idiom
def frozen_last_tower(p: Program) -> Any:
    frozen = _frozen(p, ["out_1"])
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**_CPUS)) as session:
        tf.import_graph_def(frozen, name="")
        return _weights(frozen), session.run(["out_1:0", "w:0"])


@idiom
def frozen_but_for_one(p: Program) -> Any:
    frozen = _frozen(p, ["out_0", "out_1"], variable_names_blacklist=["w"])
    return sorted(
        n.name for n in frozen.node if n.op == "Const" and n.name in ("w", "b", "w/replica_1")
    )


@idiom
def frozen_with_other_weights(p: Program) -> Any:
    frozen = _frozen(p, ["out_0", "out_1"])
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**_CPUS)) as session:
        tf.import_graph_def(frozen, name="", input_map={"w:0": tf.ones([3, 1])})
        return session.run(["out_0:0", "out_1:0"])


@idiom
def extracted(p: Program) -> Any:
    _outs(p)
    made = tf.graph_util.extract_sub_graph(tf.get_default_graph().as_graph_def(), ["out_1"])
    return _weights(made)


@idiom
def listed(p: Program) -> Any:
    _losses(p)
    with p.session() as session:
        return _weights(session.graph_def), _weights(tf.train.export_meta_graph().graph_def)


@idiom
def in_an_event_file(p: Program) -> Any:
    _losses(p)
    folder = p.folder()
    with p.session() as session, tf.summary.FileWriter(folder, session.graph):
        pass
    found = []
    for path in tf.gfile.Glob(folder + "/events*"):
        for event in tf.train.summary_iterator(path):
            if event.graph_def:
                found.append(_weights(tf.GraphDef.FromString(event.graph_def)))
    return found


@idiom
def trained_behind_an_export(p: Program) -> Any:
    tf.get_variable("before", [], initializer=constant(1.0))
    tf.train.export_meta_graph()
    found = trained(p, tf.train.AdamOptimizer(0.1))
    tf.train.export_meta_graph()
    return found
