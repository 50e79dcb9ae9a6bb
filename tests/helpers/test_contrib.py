"""What the helpers have of `tf.contrib`, against TensorFlow 1.15 itself: one program, run by both."""

from __future__ import annotations

import doctest
import functools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.tf1_env import required_python
from towermigrate.helpers import contrib

PROGRAM = """
import json
import sys
import numpy as np
import tensorflow as tf

if tf.__version__.startswith("1."):
    HParams = tf.contrib.training.HParams
    LazyAdam = tf.contrib.opt.LazyAdamOptimizer
    sequence_loss = tf.contrib.seq2seq.sequence_loss
    index_table = tf.contrib.lookup.index_table_from_tensor
    word_table = tf.contrib.lookup.index_to_string_table_from_tensor
    stack = tf.contrib.rnn.stack_bidirectional_dynamic_rnn
    drop, drop_padded = tf.contrib.data.batch_and_drop_remainder, tf.contrib.data.padded_batch_and_drop_remainder
else:
    from towermigrate.helpers import contrib as c
    HParams, LazyAdam, sequence_loss = c.HParams, c.LazyAdamOptimizer, c.sequence_loss
    index_table, word_table = c.index_table_from_tensor, c.index_to_string_table_from_tensor
    stack, drop = c.stack_bidirectional_dynamic_rnn, c.batch_and_drop_remainder
    drop_padded = c.padded_batch_and_drop_remainder
    tf = tf.compat.v1
    tf.disable_v2_behavior()

out = {}

def settings():
    return HParams(rate=0.5, size=3, name="a", on=True, sizes=[1, 2], words=["x", "y"], nothing=None)

def tried(make):
    try:
        return make()
    except (ValueError, TypeError, KeyError, IndexError) as error:
        return type(error).__name__

texts = ["rate=1", "rate=.5,size=7", "size=1.5", "size=x", "on=false", "on=0", "on=maybe", "sizes=[4,5,6]", "sizes[1]=9",
         "sizes=3", "words=[a,b]", "name=x y", "other=1", "size", "name=", "rate=1e-3,on=True", "size=[1,2]", "rate = 2 , size = 4", "words[0]=q", "nothing=3", "on=-1", "on=TRUE"]
out["parsed"] = [tried(lambda: sorted((k, v) for k, v in settings().parse(t).values().items())) for t in texts]
values = [("rate", 2), ("rate", "2"), ("size", 2.5), ("size", True), ("on", 1), ("on", False), ("sizes", [3]), ("sizes", 3), ("name", 3), ("nothing", 4),
          ("rate", np.float32(2.5)), ("rate", np.int32(2)), ("size", np.int64(2)), ("size", np.float32(2.5)), ("on", np.bool_(False))]
out["set"] = [tried(lambda: settings().override_from_dict({k: v}).values()[k]) for k, v in values]
h = settings()
out["shown"] = [str(h), repr(h), h.to_json(sort_keys=True), "rate" in h, "zzz" in h, h.get("rate"), h.get("zzz", 4), h.size]
h.add_hparam("extra", 5)
h.del_hparam("size")
out["changed"] = [sorted(h.values()), tried(lambda: h.add_hparam("rate", 1)), tried(lambda: HParams(a=[]))]

rng = np.random.RandomState(0)
for resource in (False, True):
    with tf.Graph().as_default(), tf.Session() as sess:
        table = tf.get_variable("t", initializer=rng.randn(6, 2).astype("f"), use_resource=resource)
        dense = tf.get_variable("d", initializer=rng.randn(3).astype("f"), use_resource=resource)
        rows = tf.placeholder(tf.int32, [None])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, rows) - 1.0)) + tf.reduce_sum(dense ** 2)
        step = LazyAdam(0.1).minimize(loss)
        sess.run(tf.global_variables_initializer())
        for feed in ([0, 1], [1, 1, 4], [0], [5, 2]):
            sess.run(step, {rows: feed})
        out["adam%d" % resource] = [v.tolist() for v in sess.run([table, dense])]
        out["slots%d" % resource] = [v.op.name for v in tf.global_variables()]
with tf.Graph().as_default(), tf.Session() as sess:
    logits, targets = tf.constant(rng.randn(3, 4, 5).astype("f")), tf.constant(rng.randint(0, 5, (3, 4)))
    weights = tf.constant((rng.rand(3, 4) > 0.4).astype("f"))
    out["losses"] = [sess.run(sequence_loss(logits, targets, weights, a, b)).tolist() for a in (True, False) for b in (True, False)]
    table, few = index_table(["a", "b", "c"]), index_table(tf.constant(["a", "b"]), num_oov_buckets=3)
    numbers = index_table([10, 20], default_value=7, dtype=tf.int64)
    words = word_table(["a", "b"], default_value="?")
    sess.run(tf.tables_initializer())
    asked = tf.constant(["b", "z", "a", "yy", "c"])
    out["places"] = [v.tolist() for v in sess.run([table.lookup(asked), few.lookup(asked), numbers.lookup(tf.constant([20, 30], tf.int64))])]
    out["words"] = [w.decode() for w in sess.run(words.lookup(tf.constant([1, 0, 9], tf.int64)))]
    data = tf.data.Dataset.range(7)
    out["batches"] = [str(data.apply(drop(3)).output_shapes) if hasattr(data, "output_shapes") else str(tf.data.get_output_shapes(data.apply(drop(3))))]
    batch = tf.data.make_one_shot_iterator(data.map(lambda i: tf.fill([i], i)).apply(drop_padded(3, [None]))).get_next()
    out["padded"] = [sess.run(batch).tolist(), sess.run(batch).tolist()]
with tf.Graph().as_default(), tf.Session() as sess:
    cells = lambda: [tf.nn.rnn_cell.GRUCell(3) for _ in range(2)]
    with tf.variable_scope("n", initializer=tf.constant_initializer(0.1)):
        got = stack(cells(), cells(), tf.constant(rng.randn(2, 4, 3).astype("f")), dtype=tf.float32, sequence_length=[4, 2])
    sess.run(tf.global_variables_initializer())
    out["rnn"] = [np.asarray(v).tolist() for v in sess.run(list(got))]
    out["rnn_names"] = sorted(v.op.name for v in tf.global_variables())
print(json.dumps(out))
"""


@functools.cache
def said(python: str) -> dict[str, Any]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-W", "ignore", "-c", PROGRAM],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "part",
    [
        "parsed", "set", "shown", "changed", "slots0", "slots1", "places", "words", "batches", "padded", "rnn_names",
    ],
)  # fmt: skip
def test_what_it_says_is_what_tensorflow_1_said(part: str) -> None:
    assert said(sys.executable)[part] == said(required_python())[part]


@pytest.mark.parametrize("part", ["adam0", "adam1", "losses", "rnn"])
def test_its_numbers_are_those_of_tensorflow_1(part: str) -> None:
    ours, theirs = said(sys.executable)[part], said(required_python())[part]
    for mine, other in zip(ours, theirs, strict=True):
        # Single precision: four steps of Adam, or eight of a cell, round differently in two releases.
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(contrib).failed == 0
