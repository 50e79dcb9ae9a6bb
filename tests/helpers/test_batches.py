"""Which batch each tower gets from a dataset, a generator or a TF1 pipeline, and what ends it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from tests.fixtures_run.test_workers import free_ports

ROOT = Path(__file__).parents[2]


def parts(value: Any) -> Any:
    return [part.numpy().tolist() for part in value.values]


def test_batches_of_a_dataset_and_of_a_generator(two_towers: Any) -> None:
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(4.0), np.arange(4))).batch(1)
    batches = tm.per_tower_batches(dataset)
    assert [spec.dtype for spec in batches.element_spec] == [tf.float64, tf.int64]
    assert [parts(x) for x, _ in batches] == [[[0.0], [1.0]], [[2.0], [3.0]]]
    plain = tm.per_tower_batches(np.full([n, 2], n, "f") for n in (1, 2))
    assert plain.element_spec == (tf.TensorSpec([None, 2], tf.float32),)
    assert parts(next(plain)[0]) == [[[1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]


@pytest.mark.usefixtures("without_checks")
@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        pytest.param("drop", [[[0, 1], [2, 3]]], id="drop: the last element is not used"),
        pytest.param("empty", [[[0, 1], [2, 3]], [[4], []]], id="empty: one tower gets no rows"),
    ],
)
def test_the_last_elements(two_towers: Any, rest: str, expected: Any) -> None:
    batches = tm.per_tower_batches(tf.data.Dataset.range(5).batch(2), rest=rest)
    assert [parts(x) for (x,) in batches] == expected
    assert next(batches, None) is None


def test_the_last_elements_are_an_error_if_asked() -> None:
    strategy = tm.tower_strategy(4)
    batches = tm.per_tower_batches(tf.data.Dataset.range(6).batch(1), strategy, rest="error")
    next(batches)
    with pytest.raises(ValueError, match="ended with 2 of the 4 elements that a step on 4 towers"):
        next(batches)
    assert next(batches, None) is None


def test_no_rest_is_no_error(two_towers: Any) -> None:
    batches = tm.per_tower_batches(tf.data.Dataset.range(4).batch(1), rest="error")
    assert len(list(batches)) == 2


def test_empty_batches_have_the_first_ones_other_axes() -> None:
    strategy = tm.tower_strategy(4)
    element = ({"ids": np.ones([2, 7], "i"), "mask": np.ones([2, 7, 1], "f")}, np.ones([2], "l"))
    batches = tm.per_tower_batches([element], strategy, rest="empty")
    inputs, labels = next(batches)
    assert [part.shape.as_list() for part in inputs["ids"].values] == [[2, 7], *[[0, 7]] * 3]
    assert [part.shape.as_list() for part in inputs["mask"].values] == [[2, 7, 1], *[[0, 7, 1]] * 3]
    assert [part.dtype for part in labels.values] == [tf.int64] * 4


@pytest.mark.parametrize(
    "step_takes",
    [
        pytest.param(tf.data.Dataset, id="a dataset"),
        pytest.param(iter, id="a plain iterator"),
    ],
)
def test_towers_batches_have_their_own_shapes(two_towers: Any, step_takes: Any) -> None:
    """As many traces as TensorFlow needs to see that sizes vary, not one for each pair of them."""
    shapes = [(1, 5), (4, 2), (3, 3), (2, 7), (1, 1), (6, 2), (2, 2), (5, 4)]
    arrays = [np.full(shape, index, "f") for index, shape in enumerate(shapes)]
    source = (
        iter(arrays)
        if step_takes is iter
        else tf.data.Dataset.from_generator(
            lambda: arrays, output_signature=tf.TensorSpec([None, None])
        )
    )
    traces = []

    @tf.function(autograph=False, reduce_retracing=True)
    def step(x: Any) -> Any:
        traces.append(x)
        return two_towers.run(lambda x: (tf.shape(x), tf.reduce_max(x)), args=(x,))

    found = [tm.as_numpy(step(*batch)) for batch in tm.per_tower_batches(source)]
    assert [tuple(shape) for pair, _ in found for shape in pair] == shapes
    assert [value for _, pair in found for value in pair] == list(range(8))
    assert len(traces) == 2


def test_element_spec_says_what_a_plain_iterator_gives(two_towers: Any) -> None:
    spec = tf.TensorSpec([None, None], tf.float32)
    batches = tm.per_tower_batches([([[1, 2]],), ([[3]],)], element_spec=spec)
    assert batches.element_spec == (spec,)
    (x,) = next(batches)
    assert parts(x) == [[[1.0, 2.0]], [[3.0]]]
    wrong = tm.per_tower_batches([([1],), ([2],)], element_spec=(spec,))
    with pytest.raises(ValueError, match=r"Cannot feed a value of shape \(1,\)"):
        next(wrong)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(lambda _: tm.per_tower_batches([]), "no element to take", id="an empty list"),
        pytest.param(
            lambda _: tm.per_tower_batches([1], rest="skip"),
            "'skip' is not one of drop, empty, error",
            id="no such policy",
        ),
        pytest.param(
            lambda _: next(tm.per_tower_batches([1.0], rest="empty")),
            "a scalar cannot be left empty",
            id="scalars have no rows",
        ),
        pytest.param(
            lambda strategy: tm.per_tower_batches(
                strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
            ),
            "elements are per-tower values already",
            id="a distributed dataset",
        ),
    ],
)
def test_what_gives_no_batches(two_towers: Any, call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call(two_towers)


def test_what_changes_when_the_batch_is_global(two_towers: Any) -> None:
    """The table at the head of `batches.py`, with a dataset of `batch(4)` and nine rows."""
    dataset = tf.data.Dataset.range(9).batch(4)
    per_tower = [parts(x) for (x,) in tm.per_tower_batches(dataset, rest="empty")]
    assert per_tower == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8], []]]

    distributed = list(two_towers.experimental_distribute_dataset(dataset))
    assert [parts(x) for x in distributed] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]]

    own = two_towers.distribute_datasets_from_function(lambda context: dataset)
    assert [parts(x) for x in own] == per_tower

    # By the global size, the second form is the first one.
    as_global = two_towers.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(4 * 2))
    assert [parts(x) for x in as_global] == per_tower

    # The short batch at the end: an empty tower's mean is no number; shares of the global sum are.
    means = two_towers.run(lambda x: tf.reduce_mean(tf.cast(x, tf.float32)), args=distributed[-1:])
    assert np.isnan(tm.mean_over_towers(means))
    shares = two_towers.run(
        lambda x: tf.reduce_sum(tf.cast(x, tf.float32)) / 1.0, args=distributed[-1:]
    )
    assert tm.sum_over_towers(shares).numpy() == 8.0


def test_a_global_batch_of_sequences_is_cut_after_it_was_padded(two_towers: Any) -> None:
    sequences = tf.data.Dataset.range(1, 5).map(lambda n: tf.fill([n], n))
    one_each = tm.per_tower_batches(sequences.padded_batch(2))
    assert [part.shape.as_list() for part in next(one_each)[0].values] == [[2, 2], [2, 4]]
    cut = two_towers.experimental_distribute_dataset(sequences.padded_batch(4))
    assert [part.shape.as_list() for part in next(iter(cut)).values] == [[2, 4], [2, 4]]


@pytest.mark.usefixtures("without_checks")
def test_elements_that_are_dropped_are_an_error_where_checks_are_wanted(
    two_towers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = tf.data.Dataset.range(3).batch(1)
    assert len(list(tm.per_tower_batches(dataset))) == 1
    monkeypatch.setenv("TOWERMIGRATE_CHECKS", "1")
    with pytest.raises(ValueError, match="ended with 1 of the 2 elements"):
        list(tm.per_tower_batches(dataset))
    assert len(list(tm.per_tower_batches(dataset.take(2)))) == 1


_ONE_SOURCE = """
import json, sys
import tensorflow as tf
import towermigrate.helpers as tm
from towermigrate.helpers.strategy import is_chief

strategy = tm.tower_strategy(2)
out = {"chief": is_chief(strategy), "replicas": strategy.num_replicas_in_sync}

def local(value):
    return [part.numpy().tolist() for part in strategy.experimental_local_results(value)]

dataset = tf.data.Dataset.range(8).batch(4)
out["per_tower_batches"] = [local(x) for (x,) in tm.per_tower_batches(dataset)]
out["shard_batch"] = local(tm.shard_batch(list(range(5)), uneven="spread")[0])
for policy in ("AUTO", "OFF"):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    distributed = strategy.experimental_distribute_dataset(dataset.with_options(options))
    out[policy] = [local(x) for x in distributed]
own = strategy.distribute_datasets_from_function(
    lambda context: dataset.shard(context.num_input_pipelines, context.input_pipeline_id))
out["from_function"] = [local(x) for x in own]
json.dump(out, open(sys.argv[1], "w"))
"""


@pytest.mark.full
@pytest.mark.usefixtures("without_checks")
def test_a_chief_and_a_worker_read_one_source(tmp_path: Path) -> None:
    """With one replica each; what the head of `batches.py` says of several workers."""
    chief, worker, evaluator = (f"127.0.0.1:{port}" for port in free_ports(3))
    cluster = {"chief": [chief], "worker": [worker], "evaluator": [evaluator]}
    running = []
    for role in cluster:
        environment = {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}}),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "TOWERMIGRATE_DEVICES": "",
        }
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", _ONE_SOURCE, str(tmp_path / role)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ended = [(each.communicate(timeout=180)[1], each.returncode) for each in running]
    finally:
        for each in running:
            each.kill()
    for errors, code in ended:
        assert code == 0, errors[-2000:]
    found = {role: json.loads((tmp_path / role).read_text()) for role in cluster}
    trainers = [found["chief"], found["worker"]]

    assert [one["chief"] for one in trainers] == [True, False]
    assert [one["replicas"] for one in trainers] == [2, 2]
    assert [one["per_tower_batches"] for one in trainers] == [[[[0, 1, 2, 3]]], [[[4, 5, 6, 7]]]]
    assert [one["shard_batch"] for one in trainers] == [[[0, 1, 2]], [[3, 4]]]
    # Every worker reads all rows and keeps its part of each batch.
    assert [one["AUTO"] for one in trainers] == [
        [[[0, 1]], [[4, 5]]],
        [[[2, 3]], [[6, 7]]],
    ]
    # Every worker goes through all rows: each step trains on the same two, twice.
    assert [one["OFF"] for one in trainers] == [
        [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]],
        [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]],
    ]
    assert [one["from_function"] for one in trainers] == [[[[0, 1, 2, 3]]], [[[4, 5, 6, 7]]]]

    # The evaluator stands alone, with two towers on its own machine.
    assert found["evaluator"]["chief"] and found["evaluator"]["replicas"] == 2
    assert found["evaluator"]["per_tower_batches"] == [[[0, 1, 2, 3], [4, 5, 6, 7]]]


def ragged_rows() -> Any:
    rows = tf.ragged.constant([[1], [2, 3], [4, 5, 6], [7]])
    return tf.data.Dataset.from_tensor_slices(rows).batch(2)


@pytest.mark.parametrize("source", ["dataset", "iterator"])
def test_elements_may_be_ragged(two_towers: Any, source: str) -> None:
    data = ragged_rows()
    batches = tm.per_tower_batches(data if source == "dataset" else iter(list(data)))

    @tf.function(autograph=False)
    def step(rows: Any) -> Any:
        return two_towers.run(lambda rows: tf.reduce_sum(rows.values), args=(rows,))

    tm.create_variables(step, *batches.element_spec)
    assert tm.as_numpy(tm.each_tower(step(*next(batches)))) == [1 + 2 + 3, 4 + 5 + 6 + 7]


def test_elements_may_be_sparse(two_towers: Any) -> None:
    data = tf.data.Dataset.from_tensor_slices(tf.sparse.eye(3)).batch(1)
    batches = tm.per_tower_batches(data, rest="empty")
    sums = two_towers.run(lambda rows: tf.sparse.reduce_sum(rows), args=next(batches))
    assert tm.as_numpy(tm.each_tower(sums)) == [1.0, 1.0]
    with pytest.raises(ValueError, match="a SparseTensor of no rows"):
        next(batches)


def test_ragged_arrays_are_not_split(two_towers: Any) -> None:
    with pytest.raises(ValueError, match="cannot split a RaggedTensor"):
        tm.shard_batch(tf.ragged.constant([[1], [2, 3]]))


_WORKER = """
import json, os
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm

index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tm.tower_strategy(2)

def source():  # every worker has its own, in another order, and one of them ends before the others
    for step in range(3 - index):
        rows = np.full([step + 1, 2], 10 * step + index, np.float32)
        names = np.array([b"row %d of %d" % (row, index) for row in range(step + 1)], object)
        yield rows, names, {"sizes": np.int64(step)}

batches = tm.same_batches(source())
for rows, names, more in batches:
    found = [tm.first_tower(each).numpy().tolist() for each in (rows, more["sizes"])]
    own = strategy.experimental_local_results(names)[0].numpy().tolist()
    print("GOT", json.dumps([*found, [each.decode() for each in own]]), flush=True)
print("GOT end", flush=True)
"""


@pytest.mark.full
def test_same_batches_are_the_first_workers() -> None:
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    running = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        environment = {
            **os.environ, "TF_CONFIG": json.dumps(task), "TOWERMIGRATE_PRINT": "all"
        }  # fmt: skip
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ended = [(*each.communicate(timeout=120), each.returncode) for each in running]
    finally:
        for each in running:
            each.kill()
    expected = [
        [[[10.0 * step] * 2] * (step + 1), step, [f"row {row} of 0" for row in range(step + 1)]]
        for step in range(3)
    ]
    for output, errors, code in ended:
        assert code == 0, errors[-2000:]
        found = [line[4:] for line in output.splitlines() if line.startswith("GOT")]
        assert found.pop() == "end"
        assert [json.loads(line) for line in found] == expected
