"""Checkpoints in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, constant, every_variable, idiom


def _training(p: Program) -> tuple[Any, list[Any]]:
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    losses, pairs = p.tower_gradients(optimizer)
    return optimizer.apply_gradients(pairs, tf.train.get_or_create_global_step()), losses


def _entries(path: str) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@idiom
def saved_and_restored(p: Program) -> Any:
    train, losses = _training(p)
    saver, path = tf.train.Saver(), p.folder() + "/m"
    with p.session() as session:
        session.run(train)
        written = saver.save(session, path)
        first = session.run(losses), every_variable(session)
        session.run(train)
        saver.restore(session, path)
        again = session.run(losses), every_variable(session)
        session.run(train)
        return written[len(path) - 1 :], first, again, session.run(losses), _entries(path)


@idiom
def lists_of_variables(p: Program) -> Any:
    train, losses = _training(p)
    folder = p.folder()
    savers = [
        tf.train.Saver(tf.global_variables()),
        tf.train.Saver(tf.trainable_variables()),
        tf.train.Saver([v for v in tf.global_variables() if "Momentum" not in v.name]),
        tf.train.Saver(set(tf.trainable_variables())),
        tf.train.Saver(var_list=(tf.trainable_variables()[0],)),
    ]
    with p.session() as session:
        session.run(train)
        names = []
        for k, saver in enumerate(savers):
            names.append(sorted(_entries(saver.save(session, f"{folder}/{k}"))))
        seen = []
        for k, saver in enumerate(savers):
            session.run(tf.global_variables_initializer())
            saver.restore(session, f"{folder}/{k}")
            seen.append((session.run(losses), every_variable(session)))
        return names, seen


@idiom
def dicts_of_variables(p: Program) -> Any:
    train, losses = _training(p)
    path = p.folder() + "/m"
    names = {f"old/{v.op.name}": v for v in tf.trainable_variables()}
    saver = tf.train.Saver(names)
    step = tf.train.Saver({"the_step": tf.train.get_global_step()})
    with p.session() as session:
        session.run(train)
        first = session.run(losses)
        saver.save(session, path)
        step.save(session, path + "_step")
        session.run(tf.global_variables_initializer())
        saver.restore(session, path)
        step.restore(session, path + "_step")
        return first, session.run(losses), _entries(path), every_variable(session)


@idiom
def dicts_of_values(p: Program) -> Any:
    train, losses = _training(p)
    path = p.folder() + "/m"
    saver = tf.train.Saver({v.op.name + "/v": v for v in tf.global_variables()}, reshape=True)
    with p.session() as session:
        session.run(train)
        saver.save(session, path)
        session.run(train)
        saver.restore(session, path)
        return session.run(losses), _entries(path)


@idiom
def averages_restored(p: Program) -> Any:
    average = tf.train.ExponentialMovingAverage(0.5)
    train, losses = _training(p)
    with tf.control_dependencies([train]):
        update = average.apply(tf.trainable_variables())
    saver, path = tf.train.Saver(), p.folder() + "/m"
    loader = tf.train.Saver(average.variables_to_restore())
    only = tf.train.Saver(average.variables_to_restore(tf.moving_average_variables()))
    with p.session() as session:
        for _ in range(2):
            session.run(update)
        saver.save(session, path)
        first = session.run(losses)
        loader.restore(session, path)
        second = session.run(losses)
        only.restore(session, path)
        return first, second, every_variable(session), sorted(average.variables_to_restore())


@idiom
def kept_checkpoints(p: Program) -> Any:
    import os

    train, _ = _training(p)
    folder = p.folder()
    saver = tf.train.Saver(
        max_to_keep=2, keep_checkpoint_every_n_hours=100.0, name="mine", filename="x"
    )
    step = tf.train.get_global_step()
    with p.session() as session:
        for _ in range(3):
            session.run(train)
            saver.save(session, folder + "/m", global_step=step, write_meta_graph=False)
        saver.save(session, folder + "/n", 77, latest_filename="other", meta_graph_suffix="graph")
        state = tf.train.get_checkpoint_state(folder)
        last = [os.path.basename(path) for path in saver.last_checkpoints]
        return (
            sorted(os.listdir(folder)),
            last,
            os.path.basename(tf.train.latest_checkpoint(folder)),
            len(state.all_model_checkpoint_paths),
        )


@idiom
def sharded_and_other_formats(p: Program) -> Any:
    train, losses = _training(p)
    folder = p.folder()
    savers = [
        tf.train.Saver(sharded=True),
        tf.train.Saver(restore_sequentially=True, allow_empty=True, pad_step_number=True),
        tf.train.Saver(write_version=tf.train.SaverDef.V1),
    ]
    with p.session() as session:
        session.run(train)
        seen = []
        for k, saver in enumerate(savers):
            path = saver.save(session, f"{folder}/{k}")
            session.run(tf.global_variables_initializer())
            saver.restore(session, path)
            seen.append((session.run(losses), sorted(_entries(path))))
        return seen


@idiom
def meta_graph(p: Program) -> Any:
    train, losses = _training(p)
    saver, path = tf.train.Saver(), p.folder() + "/m"
    tf.add_to_collection("train", train)
    for loss in losses:
        tf.add_to_collection("losses", loss)
    with p.session() as session:
        session.run(train)
        saver.save(session, path)
        session.run(train)
        first = session.run(losses)
    with tf.Graph().as_default() as graph:
        saver = tf.train.import_meta_graph(path + ".meta")
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 8})) as session:
            saver.restore(session, path)
            session.run(tf.get_collection("train")[0])
            second = session.run(tf.get_collection("losses"))
            names = [v.op.name for v in tf.global_variables()]
            values = session.run([f"{name}:0" for name in names])
            doubled = session.run(graph.get_tensor_by_name("w:0") * 2.0)
    return first, second, names, values, doubled


@idiom
def meta_graph_imported_into_a_tower_graph(p: Program) -> Any:
    folder = p.folder()
    with tf.Graph().as_default():
        v = tf.get_variable("old", [2], initializer=constant(3.0))
        tf.identity(v * 2.0, name="doubled")
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(v.initializer)
            saver.save(session, folder + "/m")
    _, losses = _training(p)
    loader = tf.train.import_meta_graph(folder + "/m.meta", import_scope="imported")
    with p.session() as session:
        loader.restore(session, folder + "/m")
        names = ["imported/doubled:0", "imported/old:0"]
        return session.run(names), session.run(losses)


@idiom
def warm_start(p: Program) -> Any:
    path = p.folder() + "/m"
    train, losses = _training(p)
    saver = tf.train.Saver()
    with p.session() as session:
        session.run(train)
        saver.save(session, path)
        first = session.run(losses)
    seen = []
    for mapping in ({"/": "/"}, {"w": "w"}, None):
        with tf.Graph().as_default():
            p.begin(2)
            train, losses = _training(p)
            if mapping is None:
                mapping = {v.op.name: v for v in tf.trainable_variables()}
            tf.train.init_from_checkpoint(path, mapping)
            with p.session() as session:
                seen.append((session.run(losses), every_variable(session)))
    return first, seen


@idiom
def some_entries_by_hand(p: Program) -> Any:
    path = p.folder() + "/m"
    train, losses = _training(p)
    saver = tf.train.Saver()
    reader_ops = []
    with p.session() as session:
        session.run(train)
        saver.save(session, path)
        session.run(train)
        reader = tf.train.NewCheckpointReader(path)
        for v in tf.trainable_variables():
            if reader.has_tensor(v.op.name):
                reader_ops.append(v.assign(reader.get_tensor(v.op.name)))
        session.run(reader_ops)
        return session.run(losses)


@idiom
def slim_assignments(p: Program) -> Any:
    import tf_slim as slim

    path = p.folder() + "/m"
    train, losses = _training(p)
    saver = tf.train.Saver()
    with p.session() as session:
        session.run(train)
        saver.save(session, path)
        session.run(train)
        changed = session.run(losses)
        some = slim.get_variables_to_restore(exclude=["b"])
        slim.assign_from_checkpoint_fn(path, some)(session)
        first = session.run(losses)
        op, feeds = slim.assign_from_checkpoint(path, tf.trainable_variables())
        session.run(op, feeds)
        second = session.run(losses)
        slim.assign_from_values_fn({"w": np.ones((3, 1), "f")})(session)
        return changed, first, second, session.run(losses), [v.op.name for v in some]


@idiom
def partitioned_checkpoint(p: Program) -> Any:
    for i in p.towers(range(2)):
        with tf.variable_scope("p", reuse=i > 0, partitioner=tf.fixed_size_partitioner(2)):
            w = tf.get_variable("w", [4, 2], initializer=constant(0.5))
    out = tf.reduce_sum(tf.convert_to_tensor(w))
    change = [part.assign(part * (k + 2.0)) for k, part in enumerate(tf.global_variables())]
    saver, path = tf.train.Saver(), p.folder() + "/m"
    with p.session() as session:
        session.run(change)
        saver.save(session, path)
        session.run(change)
        changed = session.run(out)
        saver.restore(session, path)
        return changed, session.run(out), _entries(path)


@idiom
def wrong_shapes(p: Program) -> Any:
    path = p.folder() + "/m"
    with tf.Graph().as_default():
        tf.get_variable("w", [5])
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, path)
    train, losses = _training(p)
    said = []
    with p.session() as session:
        for saver in (tf.train.Saver([tf.trainable_variables()[0]]), tf.train.Saver()):
            try:
                saver.restore(session, path)
            except (ValueError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
                said.append("refused")
        return said, session.run(losses)


@idiom
def scaled_up_and_frozen(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.identity(p.model(x), name=f"out_{i}"))
    with p.session() as session:
        frozen = tf.graph_util.convert_variables_to_constants(
            session, tf.get_default_graph().as_graph_def(), ["out_0", "out_1"]
        )
        first = session.run(outs)
    with tf.Graph().as_default():
        tf.import_graph_def(frozen, name="")
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 8})) as session:
            return first, session.run(["out_0:0", "out_1:0"])


@idiom
def saved_model(p: Program) -> Any:
    x, outs = tf.placeholder(tf.float32, [None, 3]), []
    for i in p.towers(range(2)):
        with tf.variable_scope("r", reuse=i > 0):
            outs.append(p.model(x))
    folder = p.folder() + "/saved"
    with p.session() as session:
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": outs[0]})
    with tf.Graph().as_default():
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 8})) as session:
            signature = tf.saved_model.loader.load(session, ["serve"], folder).signature_def
            y = signature["serving_default"].outputs["y"].name
            return session.run(y, {signature["serving_default"].inputs["x"].name: X})
