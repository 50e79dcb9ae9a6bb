"""How many collectives one training step has: one packed reduction where one is enough.

Counted in the traced graph. The strategies are TensorFlow's own with its default collectives, which
also GPUs and several workers use; helpers that average on one machine's CPUs need none at all.
"""

import collections
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers import averages

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("without_checks")
REPLICAS = 2


def collectives(step: Any) -> dict[str, int]:
    """The collectives of one replica in the graph of a `tf.function`, functions it calls included."""
    graph = step.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    found = collections.Counter(
        node.op.removeprefix("Collective").removesuffix("V2").removesuffix("V3")
        for node in nodes
        if node.op.startswith("Collective")
    )
    assert all(count % REPLICAS == 0 for count in found.values()), found
    return {op: count // REPLICAS for op, count in found.items()}


def shares(opt: Any, loss: Any, variables: Any) -> None:
    opt.apply_gradients(tm.tower_gradients(opt, loss, variables))


def filtered_shares(opt: Any, loss: Any, variables: Any) -> None:
    pairs = tm.tower_gradients(opt, loss, variables, "skip")
    opt.apply_gradients(tm.filter_gradients(pairs, "zeros"))


def clipped_average(opt: Any, loss: Any, variables: Any) -> None:
    pairs = tm.average_gradients(opt.compute_gradients(loss, variables))
    tm.apply_averaged(opt, tm.clip_by_global_norm(pairs, 1.0)[0])


def clipped_towers(opt: Any, loss: Any, variables: Any) -> None:
    pairs, _ = tm.clip_by_global_norm(opt.compute_gradients(loss, variables), 1.0)
    tm.apply_averaged(opt, tm.average_gradients(pairs))


def by_hand(opt: Any, loss: Any, variables: Any) -> None:
    """What is written without `apply_averaged`: the average, and then the optimizer's own sum."""
    grads = [grad for grad, _ in opt.compute_gradients(loss, variables)]
    averaged = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, grads)
    clipped, _ = tf.clip_by_global_norm(averaged, 1.0)
    opt.apply_gradients([(g / REPLICAS, v) for g, v in zip(clipped, variables, strict=True)])


WAYS = [
    pytest.param(shares, 1, id="tower_gradients, apply_gradients: one"),
    pytest.param(filtered_shares, 1, id="comparing the towers for None costs none"),
    pytest.param(clipped_average, 1, id="average, clip, apply_averaged: one"),
    pytest.param(clipped_towers, 1, id="clip each tower, average, apply_averaged: one"),
    pytest.param(by_hand, 2, id="by hand, average, clip, apply_gradients: two"),
]


def step_of(strategy: Any, train: Any, sparse: bool = False) -> Any:
    """A `tf.function` that trains three variables of different shapes, and an embedding."""
    with strategy.scope():
        shapes = ([], [3], [2, 2])
        variables = [tf.Variable(tf.ones(shape)) for shape in shapes]
        if sparse:
            variables.append(tf.Variable(tf.ones([5, 2])))
        opt = v1.train.MomentumOptimizer(0.1, 0.9)

    def tower() -> None:
        loss = tf.add_n([tf.reduce_sum(v**2) for v in variables[:3]])
        if sparse:
            loss += tf.reduce_sum(tf.gather(variables[3], [1, 1]))
        train(opt, loss, variables)

    return tf.function(lambda: strategy.run(tower), autograph=False)


@pytest.fixture
def collective_strategy(monkeypatch: pytest.MonkeyPatch) -> Any:
    # The shortcut for CPUs of one machine would have nothing to count.
    monkeypatch.setattr(averages, "_on_cpus", lambda strategy: False)
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(REPLICAS)])


@pytest.mark.parametrize(("train", "reductions"), WAYS)
def test_reductions_of_one_step(collective_strategy: Any, train: Any, reductions: int) -> None:
    assert collectives(step_of(collective_strategy, train)) == {"Reduce": reductions}


@pytest.mark.parametrize("train", [shares, clipped_average])
def test_a_sparse_gradient_is_gathered_once(collective_strategy: Any, train: Any) -> None:
    # What TensorFlow's optimizer needs for one sparse gradient among dense ones is the measure.
    def plain(opt: Any, loss: Any, variables: Any) -> None:
        opt.apply_gradients(opt.compute_gradients(loss, variables))

    measure = collectives(step_of(collective_strategy, plain, sparse=True))
    assert measure["Reduce"] == 1
    assert measure["Gather"] >= 2  # values and indices
    assert collectives(step_of(collective_strategy, train, sparse=True)) == measure


def test_an_average_on_the_cpus_of_one_machine_needs_no_collective() -> None:
    strategy = tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(REPLICAS)])
    assert collectives(step_of(strategy, clipped_average)) == {}


WORKER = """
import collections, json, sys
import tensorflow as tf
import towermigrate.helpers as tm

strategy = tm.tower_strategy(2)
with strategy.scope():
    w, b = tf.Variable([3.0, 4.0]), tf.Variable(1.0)
    opt = tf.compat.v1.train.GradientDescentOptimizer(1.0)

def shares(loss):
    opt.apply_gradients(tm.tower_gradients(opt, loss, [w, b]))

def clipped_average(loss):
    pairs = tm.average_gradients(opt.compute_gradients(loss, [w, b]))
    tm.apply_averaged(opt, tm.clip_by_global_norm(pairs, 2.5)[0])

found = {}
for train in (shares, clipped_average):
    @tf.function(autograph=False)
    def step():
        def tower():
            scale = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, "float32")
            train(tf.reduce_sum(w * [6.0, 8.0]) * scale)
        strategy.run(tower)
    graph = step.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    count = sum("CollectiveReduce" in node.op for node in nodes)
    step()
    found[train.__name__] = [count, w.numpy().tolist(), b.numpy().tolist()]
print(json.dumps(found), file=sys.stderr)
"""


@pytest.mark.full
def test_two_workers_reduce_once(tmp_path: Path) -> None:
    sockets = [socket.socket() for _ in range(2)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    workers = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    root = str(Path(__file__).parent.parent.parent)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
                ),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        errors = [each.communicate(timeout=120)[1] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0, 0], errors
    for told in errors:
        [line] = [line for line in told.splitlines() if line.startswith("{")]
        # The gradients are 0 and [6, 8]: [3, 4] on average, of norm 5, and half of it when clipped.
        # b is reached by no worker: zeros.
        assert json.loads(line) == {
            "shares": [1, [0.0, 0.0], 1.0],
            "clipped_average": [1, [-1.5, -2.0], 1.0],
        }
