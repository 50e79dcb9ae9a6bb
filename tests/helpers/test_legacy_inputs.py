"""A TF1 input pipeline of its own for every tower: whose elements come when, and what they summarize."""

from typing import Any

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers import strategy as strategy_module

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def three_towers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_module, "_made", None)
    tm.tower_strategy(3, devices="cpu:3")


def counting(tower: int, rows: int = 2) -> Any:
    """From 10 times the tower on, `rows` numbers."""
    return v1.train.range_input_producer(rows, num_epochs=1, shuffle=False).dequeue() + 10 * tower


def shown(tower: int) -> Any:
    number = counting(tower)
    with tf.name_scope(f"tower_{tower}"):
        v1.summary.scalar("number", number)
    return number


def drawn(batches: Any) -> list[list[int]]:
    return [[int(part) for part in x.values] for (x,) in batches]


@pytest.mark.parametrize("prefetch", [None, 0, 1, 5])
def test_each_tower_draws_of_its_own(prefetch: int | None) -> None:
    batches = tm.per_tower_batches(tm.legacy_inputs(counting, prefetch))
    assert drawn(batches) == [[0, 10, 20], [1, 11, 21]]


def test_the_first_pipeline_that_ends_ends_all() -> None:
    batches = tm.per_tower_batches(tm.legacy_inputs(lambda tower: counting(tower, 3 - tower)))
    assert drawn(batches) == [[0, 10, 20]]


def test_the_spec_is_what_the_towers_have_in_common() -> None:
    def pipeline(tower: int) -> Any:
        return tf.zeros([4, tower + 1]), tf.zeros([2], tf.int32)

    spec = tm.legacy_inputs(pipeline).element_spec
    assert spec == (tf.TensorSpec([4, None], tf.float32), tf.TensorSpec([2], tf.int32))


def test_towers_with_inputs_of_two_types_are_an_error() -> None:
    with pytest.raises(ValueError, match="several types"):
        tm.legacy_inputs(lambda tower: tf.zeros([1], [tf.int32, tf.int64, tf.int32][tower]))


def test_a_pipeline_that_gives_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="returned None"):
        tm.legacy_inputs(lambda tower: None)


def test_what_the_last_tower_summarizes_is_that_of_its_last_batch() -> None:
    own = v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=0.5)])
    batches = tm.per_tower_batches(tm.legacy_inputs(shown, summaries=True))
    for wanted in (20, 21):
        next(batches)
        joined = v1.Summary.FromString(batches.with_summaries(own.SerializeToString()))
        told = {each.tag: each.simple_value for each in joined.value}
        assert told.pop("loss") == 0.5
        assert told["tower_2/number"] == wanted
        # Its queue tells how full it is; nothing of another tower's is there.
        assert all("fraction_of_32_full" in tag for tag in told.keys() - {"tower_2/number"})
        assert len(told) == 2


def test_pipelines_without_summaries_add_nothing() -> None:
    batches = tm.per_tower_batches(tm.legacy_inputs(lambda tower: tf.zeros([1]), summaries=True))
    next(batches)
    assert batches.with_summaries(b"as it was") == b"as it was"


@pytest.mark.parametrize("summaries", [False, True], ids=["not kept", "not drawn yet"])
def test_summaries_that_are_not_there_are_an_error(summaries: bool) -> None:
    batches = tm.per_tower_batches(tm.legacy_inputs(shown, summaries=summaries))
    if not summaries:
        next(batches)
    with pytest.raises(ValueError, match="summaries=True"):
        batches.with_summaries(b"")
