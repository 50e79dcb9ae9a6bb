"""Variables made in front of the towers: those of TF1's graph, by name, order, initial value and collection."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1


def weight(shape: list[int]) -> Any:
    return tf.Variable(tf.random.normal(shape, seed=3))


def made() -> list[Any]:
    """Every way to make a variable that a program may have in front of its towers."""
    first = [weight([3, 1]), weight([3, 1]), tf.Variable(np.arange(2.0), name="c")]
    with v1.variable_scope("scope"):
        first += [
            v1.get_variable("w", [2, 2], initializer=v1.truncated_normal_initializer(seed=7)),
            v1.get_variable("again", [2, 2], initializer=v1.truncated_normal_initializer(seed=7)),
            tf.Variable(1.5, name="W"),
            tf.Variable(lambda: tf.random.uniform([2], seed=3), trainable=False, dtype=tf.float32),
        ]
    with v1.variable_scope("scope"):
        first += [tf.Variable([1, 2], name="number"), tf.Variable(tf.ones([1]), name="w")]
    return [*first, v1.get_variable("last", initializer=tf.zeros([3])), weight([1])]


def in_a_graph() -> list[tuple[str, bool, Any]]:
    with tf.Graph().as_default(), v1.Session() as session:
        variables = made()
        session.run(v1.global_variables_initializer())
        return [
            (one.name, one.trainable, value)
            for one, value in zip(variables, session.run(variables), strict=True)
        ]


def owner(strategy: Any) -> Any:
    with strategy.scope():
        return tm.TowerVariables()


@pytest.mark.parametrize("inside", [True, False])
def test_names_and_initial_values_are_those_of_a_tf1_graph(two_towers: Any, inside: bool) -> None:
    variables = owner(two_towers)
    with two_towers.scope() if inside else tf.name_scope("elsewhere"), variables.shared():
        found = made()
    wanted = in_a_graph()
    assert [one.name for one in found] == [name for name, _, _ in wanted]
    assert [one.trainable for one in found] == [trainable for _, trainable, _ in wanted]
    for one, (_, _, value) in zip(found, wanted, strict=True):
        assert one.dtype == value.dtype
        np.testing.assert_array_equal(one.numpy(), value)
        assert isinstance(one, tf.distribute.DistributedValues)
    assert [id(one) for one in variables.all()] == [id(one) for one in found]
    trained = [one.name for one in found if one.trainable]
    assert [one.name for one in variables.trainable()] == trained


def test_two_blocks_go_on_with_one_count(two_towers: Any) -> None:
    variables = owner(two_towers)
    with variables.shared():
        weight([1])
    with variables.shared():
        weight([1])
    assert [one.name for one in variables.all()] == ["Variable:0", "Variable_1:0"]


def test_without_a_strategy() -> None:
    variables = tm.TowerVariables()
    with variables.shared():
        w = tf.Variable(2.0, name="w")
    assert float(tf.function(variables.tower(lambda x: w * x), autograph=False)(3.0)) == 6.0
    assert [one.name for one in variables.trainable()] == ["w:0"]


def test_towers_train_them_and_find_them_in_scopes_and_collections(
    two_towers: Any, tmp_path: Path
) -> None:
    variables = owner(two_towers)
    with two_towers.scope():
        optimizer = v1.train.MomentumOptimizer(0.5, 0.9)
    with variables.shared():
        w = tf.Variable([[1.0], [2.0]], name="w")
        with v1.variable_scope("scope"):
            b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    seen: list[list[str]] = []

    @variables.tower
    def tower(x: Any) -> Any:
        seen.append([one.name for one in v1.trainable_variables()])
        with v1.variable_scope("scope", reuse=True):
            assert v1.get_variable("b", [1]) is b
        more = v1.get_variable("more", [], initializer=v1.ones_initializer())
        return tf.reduce_mean(tf.square(tf.matmul(x, w) * more + b))

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        def one(x: Any) -> Any:
            loss = tower(x)
            optimizer.apply_gradients(tm.tower_gradients(optimizer, loss, variables.trainable()))
            return loss

        return tm.last_tower(two_towers.run(one, args=(x,)))

    x = np.array([[1.0, 0.5], [2.0, -1.0]], np.float32)
    assert float(step(*tm.shard_batch(x))) == 0.0
    assert seen[0] == ["w:0", "scope/b:0"] and seen[1] == ["w:0", "scope/b:0", "more:0"]
    # Of the first tower's loss (1 + 2 / 2)² and the second one's (2 - 2)²: half of the first one's gradient.
    np.testing.assert_allclose(w.numpy(), [[1.0 - 0.5 * 2.0], [2.0 - 0.5 * 1.0]])
    np.testing.assert_allclose(b.numpy(), [-1.0])
    saver = tm.tf1_saver(variables, optimizers=[optimizer])
    saver.save(str(tmp_path / "model"))
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "model"))]
    own = ["more", "scope/b", "w"]
    assert names == sorted([*own, *(f"{name}/Momentum" for name in own)])


def test_what_would_be_lost_or_made_twice_is_an_error(two_towers: Any) -> None:
    variables = owner(two_towers)
    with variables.shared():
        tf.Variable(1.0, name="w")
        v1.get_variable("g", [1])
        with pytest.raises(ValueError, match="g already exists, disallowed"):
            v1.get_variable("g", [1])
        with pytest.raises(ValueError, match="regularizer: its loss would be made in front"):
            v1.get_variable("r", [1], regularizer=tf.nn.l2_loss)
        with pytest.raises(ValueError, match="regularizer: its loss would be made in front"):
            v1.layers.dense(tf.ones([1, 1]), 1, kernel_regularizer=tf.nn.l2_loss)

    def asks() -> Any:
        return v1.get_variable("g", [1])

    step = tf.function(lambda: two_towers.run(variables.tower(asks)), autograph=False)
    with pytest.raises(ValueError, match=re.escape("(It was made in front of the towers.)")):
        step()

    @tf.function(autograph=False)
    def late() -> None:
        with variables.shared():
            pass

    with pytest.raises(RuntimeError, match="entered in a graph or a tf.function"):
        late()


def test_what_is_computed_there_is_no_part_of_a_tower(two_towers: Any) -> None:
    variables = owner(two_towers)
    with variables.shared():
        w = tf.Variable(1.0)
        twice = w * 2.0
    step = tf.function(
        lambda: two_towers.run(variables.tower(lambda: twice + 1.0)), autograph=False
    )
    with pytest.raises(Exception, match="out of scope"):
        step()
