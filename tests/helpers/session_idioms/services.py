"""What runs a program: monitored sessions, hooks, Supervisor, queues, datasets, summaries."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.helpers.session_idioms import Program, X, every_variable, idiom


def _training(p: Program) -> tuple[Any, Any, list[Any]]:
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    losses, pairs = p.tower_gradients(optimizer)
    return optimizer.apply_gradients(pairs, step), step, losses


def _events(folder: str) -> list[Any]:
    """Step, tag and value of every scalar in a folder's event files."""
    found = []
    for name in sorted(os.listdir(folder)):
        if "tfevents" in name:
            for event in tf.train.summary_iterator(os.path.join(folder, name)):
                for value in event.summary.value:
                    if value.HasField("simple_value") and "sec" not in value.tag:
                        found.append([event.step, value.tag, value.simple_value])
    return found


@idiom
def monitored_training(p: Program) -> Any:
    folder, seen = p.folder(), []
    for _ in range(2):
        with tf.Graph().as_default():
            p.begin(2)
            train, step, losses = _training(p)
            tf.summary.scalar("loss", losses[1])
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder,
                hooks=[tf.train.StopAtStepHook(num_steps=3)],
                save_checkpoint_steps=2,
                save_summaries_steps=1,
                log_step_count_steps=2,
            ) as session:
                while not session.should_stop():
                    seen.append(session.run([train, step, losses])[1:])
    return seen, _events(folder), sorted(n for n in os.listdir(folder) if n.endswith(".index"))


@idiom
def hooks(p: Program) -> Any:
    train, step, losses = _training(p)
    w = tf.trainable_variables()[0]
    seen: list[Any] = []

    class Own(tf.train.SessionRunHook):
        def begin(self) -> None:
            self.twice = w * 2.0

        def after_create_session(self, session: Any, coord: Any) -> None:
            seen.append(session.run(w))

        def before_run(self, context: Any) -> Any:
            return tf.train.SessionRunArgs({"w": w, "s": step, "l": losses, "t": self.twice})

        def after_run(self, context: Any, values: Any) -> None:
            got = values.results
            seen.append([got["w"], got["s"], got["l"]])

        def end(self, session: Any) -> None:
            seen.append(session.run([step, w]))

    logging = tf.train.LoggingTensorHook({"loss": losses[0], "step": step}, every_n_iter=1)
    nans = tf.train.NanTensorHook(losses[0])
    with tf.train.SingularMonitoredSession(hooks=[Own(), logging, nans]) as session:
        for _ in range(2):
            seen.append(session.run([train, step])[1])
        seen.append(session.raw_session().run(w))
    return seen


@idiom
def scaffold_and_step_functions(p: Program) -> Any:
    train, step, losses = _training(p)
    restored = []
    scaffold = tf.train.Scaffold(
        init_op=tf.global_variables_initializer(),
        saver=tf.train.Saver(tf.global_variables(), max_to_keep=1),
        init_fn=lambda scaffold, session: restored.append(session.run(step)),
        local_init_op=tf.local_variables_initializer(),
    )
    with tf.train.MonitoredTrainingSession(
        scaffold=scaffold, hooks=[tf.train.FinalOpsHook([step, *losses])]
    ) as session:
        value = session.run_step_fn(lambda step_context: step_context.session.run([train, step])[1])
        return restored, value, session.run(losses)


@idiom
def session_managers(p: Program) -> Any:
    train, step, losses = _training(p)
    folder, saver = p.folder(), tf.train.Saver()
    manager = tf.train.SessionManager()
    init = tf.global_variables_initializer()
    session = manager.prepare_session("", init_op=init, saver=saver, checkpoint_dir=folder)
    session.run(train)
    saver.save(session, folder + "/m", global_step=step)
    session.close()
    session, loaded = manager.recover_session("", saver=saver, checkpoint_dir=folder)
    result = loaded, session.run([step, losses])
    session.close()
    return result


@idiom
def supervisor(p: Program) -> Any:
    train, step, losses = _training(p)
    folder = p.folder()
    tf.summary.scalar("loss", losses[0])
    keeper = tf.train.Supervisor(logdir=folder, save_model_secs=60, save_summaries_secs=0)
    seen = []
    with keeper.managed_session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        for _ in range(3):
            if keeper.should_stop():
                break
            seen.append(session.run([train, step, losses])[1:])
        keeper.saver.save(session, folder + "/m", global_step=step)
    return seen, sorted(n for n in os.listdir(folder) if n.endswith("index"))


@idiom
def slim_training(p: Program) -> Any:
    import tf_slim as slim

    losses, folder = [], p.folder()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.variable_scope("net", reuse=i > 0):
            losses.append(tf.losses.mean_squared_error(y, p.model(x)))
    total = tf.losses.get_total_loss()
    step = tf.train.get_or_create_global_step()
    train = slim.learning.create_train_op(total, optimizer, clip_gradient_norm=1.0)
    last = slim.learning.train(
        train, folder, number_of_steps=3, log_every_n_steps=1, global_step=step
    )
    entries = tf.train.load_checkpoint(folder)
    names = sorted(entries.get_variable_to_shape_map())
    return last, {name: entries.get_tensor(name) for name in names}


@idiom
def basic_training_loop(p: Program) -> Any:
    train, step, _ = _training(p)
    keeper, seen = tf.train.Supervisor(logdir=None), []

    def once(session: Any) -> None:
        seen.append(session.run([train, step])[1])
        if len(seen) == 3:
            keeper.request_stop()

    tf.train.basic_train_loop(keeper, once)
    return seen


@idiom
def queue_runners(p: Program) -> Any:
    queue = tf.FIFOQueue(40, tf.float32, [3])
    put = queue.enqueue_many([tf.constant(np.tile(X, (2, 1)))])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put]))
    outs = []
    batches = [queue.dequeue_many(8) for _ in range(2)]
    for i, batch in p.towers(enumerate(batches)):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(batch)))
    with p.session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        seen = [sorted(session.run(outs)) for _ in range(2)]
        coordinator.request_stop()
        session.run(queue.close(cancel_pending_enqueues=True))
        coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
    return seen


@idiom
def batches_of_slices(p: Program) -> Any:
    x = tf.train.limit_epochs(tf.constant(X), 3)
    batch = tf.train.batch([x], 8, enqueue_many=True)
    outs = []
    for i, part in p.towers(enumerate(tf.split(batch, 2))):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(part)))
    seen = []
    with p.session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(coord=coordinator)
        try:
            while not coordinator.should_stop():
                seen.append(session.run(outs))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return seen


@idiom
def one_shot_iterators(p: Program) -> Any:
    data = tf.data.Dataset.from_tensor_slices(X).repeat().batch(2).map(lambda x: x * 2.0)
    shared = tf.data.make_one_shot_iterator(data)
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(p.model(shared.get_next()))
    own = tf.data.make_one_shot_iterator(data).get_next()
    with p.session() as session:
        seen = [sorted(np.ravel(session.run(outs)).tolist()) for _ in range(2)]
        return seen, session.run(own)


@idiom
def initializable_iterators(p: Program) -> Any:
    source = tf.placeholder(tf.float32, [None, 3])
    data = tf.data.Dataset.from_tensor_slices(source).batch(4)
    iterator = tf.data.make_initializable_iterator(data)
    batch, outs = iterator.get_next(), []
    for i, part in p.towers(enumerate(tf.split(batch, 2))):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(part)))
    seen = []
    with p.session() as session:
        for epoch in range(2):
            session.run(iterator.initializer, {source: X * (epoch + 1)})
            while True:
                try:
                    seen.append(session.run(outs))
                except tf.errors.OutOfRangeError:
                    break
    return seen


@idiom
def feedable_iterators(p: Program) -> Any:
    handle = tf.placeholder(tf.string, [])
    one = tf.data.Dataset.from_tensors(X)
    two = tf.data.Dataset.from_tensors(-X)
    iterators = [tf.data.make_one_shot_iterator(d.repeat()) for d in (one, two)]
    kinds = tf.data.get_output_types(one), tf.data.get_output_shapes(one)
    batch = tf.data.Iterator.from_string_handle(handle, *kinds).get_next()
    outs = []
    for i, part in p.towers(enumerate(tf.split(batch, 2))):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(part)))
    with p.session() as session:
        handles = [session.run(iterator.string_handle()) for iterator in iterators]
        return [session.run(outs, {handle: h}) for h in handles]


@idiom
def summaries(p: Program) -> Any:
    folder, shown = p.folder(), []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.name_scope(f"tower_{i}") as scope, tf.variable_scope("", reuse=i > 0):
            loss = tf.reduce_mean(tf.square(p.model(x) - y))
            tf.summary.scalar("loss", loss)
            shown.append([s.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES, scope)])
            shown.append(scope)
    for v in tf.trainable_variables():
        tf.summary.histogram(v.op.name, v)
        tf.summary.scalar(v.op.name + "/norm", tf.norm(v))
    tf.summary.image("image", tf.reshape(v, [1, 1, 1, 1]))
    tf.summary.text("text", tf.constant("hello"))
    merged = tf.summary.merge_all()
    last = tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES, "tower_1"))
    with p.session() as session:
        writer = tf.summary.FileWriter(folder, session.graph)
        writer.add_graph(tf.get_default_graph())
        writer.add_summary(session.run(merged), 3)
        own = tf.Summary(value=[tf.Summary.Value(tag="own", simple_value=1.5)])
        writer.add_summary(own, 4)
        writer.close()
        parsed = [tf.Summary.FromString(s) for s in session.run([merged, last])]
    tags = [[(value.tag, round(value.simple_value, 5)) for value in s.value] for s in parsed]
    return shown, sorted(tags[0]), tags[1], _events(folder)


@idiom
def summaries_of_gradients(p: Program) -> Any:
    optimizer, found = tf.train.AdamOptimizer(0.1), []
    for i, (x, y) in p.towers(enumerate(p.split())):
        with tf.name_scope(f"tower_{i}"), tf.variable_scope("", reuse=i > 0):
            pairs = optimizer.compute_gradients(tf.reduce_mean(tf.square(p.model(x) - y)))
            for g, v in pairs:
                found.append(tf.summary.scalar(v.op.name + "/gradient", tf.reduce_sum(g)))
    tags = []
    with p.session() as session:
        for text in session.run(found):
            tags += [(v.tag, v.simple_value) for v in tf.Summary.FromString(text).value]
    return [tag for tag, _ in tags], [value for _, value in tags], [s.name for s in found]


@idiom
def prints_and_assertions(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            y = p.model(x)
        with tf.control_dependencies([tf.assert_equal(tf.shape(y)[0], 4)]):
            outs.append(tf.Print(tf.reduce_sum(y), [y], "y"))
    with p.session() as session:
        return session.run(outs)


@idiom
def python_functions(p: Program) -> Any:
    outs = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("", reuse=i > 0):
            y = tf.py_func(lambda a: (a * 2).astype("f"), [p.model(x)], tf.float32)
            outs.append(tf.reduce_sum(y))
    with p.session() as session:
        return session.run(outs)


@idiom
def metrics(p: Program) -> Any:
    values, updates = [], []
    for x, _ in p.towers(p.split()):
        value, update = tf.metrics.mean(x)
        values.append(value)
        updates.append(update)
    accuracy, up = tf.metrics.accuracy([1, 0, 1], [1, 1, 1])
    rmse, rmse_up = tf.metrics.root_mean_squared_error([1.0], [3.0])
    with p.session() as session:
        seen = [session.run(updates) for _ in range(2)]
        session.run([up, rmse_up])
        return (
            seen,
            session.run([values, accuracy, rmse]),
            [v.op.name for v in tf.local_variables()],
            session.run(tf.local_variables()),
            len(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)),
        )


@idiom
def metrics_shared_by_towers(p: Program) -> Any:
    updates = []
    for i, (x, _) in p.towers(enumerate(p.split())):
        with tf.variable_scope("m", reuse=i > 0):
            total = tf.get_variable(
                "total", [], initializer=tf.zeros_initializer(), trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )  # fmt: skip
            updates.append(tf.assign_add(total, tf.reduce_sum(x)))
    reset = tf.variables_initializer(tf.local_variables())
    with p.session() as session:
        seen = [session.run(update) for update in updates]
        session.run(reset)
        return seen, session.run(total)


@idiom
def tables(p: Program) -> Any:
    keys = tf.constant(["a", "b"])
    from tensorflow import lookup

    table = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer(keys, tf.constant([1, 0], tf.int64)), -1
    )
    outs = []
    for i in p.towers(range(2)):
        with tf.variable_scope("", reuse=i > 0):
            e = tf.get_variable("e", [2, 3], initializer=tf.ones_initializer())
            outs.append(tf.nn.embedding_lookup(e, table.lookup(keys)) * (i + 1.0))
    with p.session() as session:
        session.run(tf.tables_initializer())
        return session.run(outs)


@idiom
def resumed(p: Program) -> Any:
    folder, seen = p.folder(), []
    for _ in range(2):
        with tf.Graph().as_default():
            p.begin(2)
            train, step, losses = _training(p)
            saver = tf.train.Saver()
            with p.session() as session:
                state = tf.train.get_checkpoint_state(folder)
                if state and state.model_checkpoint_path:
                    saver.restore(session, state.model_checkpoint_path)
                for _ in range(2):
                    seen.append(session.run([train, step, losses])[1:])
                saver.save(session, folder + "/m", global_step=step)
                seen.append(every_variable(session))
    return seen


@idiom
def files_in_epochs(p: Program) -> Any:
    folder = p.folder()
    path = os.path.join(folder, "a.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for row in X:
            feature = tf.train.Feature(float_list=tf.train.FloatList(value=row.tolist()))
            example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
            writer.write(example.SerializeToString())
    names = tf.train.string_input_producer([path], num_epochs=2, shuffle=False)
    _, text = tf.TFRecordReader().read(names)
    row = tf.parse_single_example(text, {"x": tf.FixedLenFeature([3], tf.float32)})["x"]
    batch = tf.train.batch([row], 4)
    outs = []
    for i, part in p.towers(enumerate(tf.split(batch, 2))):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(part)))
    seen = []
    with p.session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                seen.append(session.run(outs))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return seen, [v.name for v in tf.local_variables()]


@idiom
def monitored_with_epochs_and_local_variables(p: Program) -> Any:
    x = tf.train.limit_epochs(tf.constant(X), 2)
    batch = tf.train.batch([x], 8, enqueue_many=True)
    outs = []
    for i, part in p.towers(enumerate(tf.split(batch, 2))):
        with tf.variable_scope("", reuse=i > 0):
            outs.append(tf.reduce_sum(p.model(part)))
    step = tf.train.get_or_create_global_step()
    up, seen = tf.assign_add(step, 1), []
    with tf.train.MonitoredTrainingSession(save_checkpoint_secs=None) as session:
        while not session.should_stop():
            seen.append(session.run([up, outs, step]))
    return seen
