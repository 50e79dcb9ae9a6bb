"""`tf.train.Checkpoint` of a TowerVariables and of v1 optimizers, across strategies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers import tf1_checkpoint_program as original
from tests.helpers.rewritten_checkpoint_program import Rewritten


def checkpoint(program: Rewritten) -> Any:
    return tf.train.Checkpoint(
        variables=program.variables, optimizers=program.optimizers, step=program.step
    )


def assert_bitwise(program: Rewritten, expected: dict[str, Any]) -> None:
    # tf.train.ExponentialMovingAverage is no object that tf.train.Checkpoint can keep.
    variables = {k: v for k, v in program.variables_by_name().items() if "Average" not in k}
    assert set(variables) == {name for name in expected if "Average" not in name}
    for name, variable in variables.items():
        for copy in getattr(variable, "values", [variable]):
            np.testing.assert_array_equal(copy.numpy(), expected[name], err_msg=name)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], list[Any]]:
    """A checkpoint of two towers, its values, and the losses of the two steps after it."""
    program = Rewritten("adam", 2)
    program.run(0, 3)
    path = checkpoint(program).save(str(tmp_path_factory.mktemp("objects") / "model"))
    return path, program.values(), program.run(3, 2)


@pytest.mark.parametrize("towers", [0, 2, 4], ids="into {} towers".format)
@pytest.mark.parametrize("built", [True, False], ids=["variables there", "restored before them"])
def test_two_towers_restore_bitwise(saved: Any, towers: int, built: bool) -> None:
    path, values, losses = saved
    program = Rewritten("adam", towers, build=built)
    status = checkpoint(program).restore(path)
    if not built:
        with pytest.raises(AssertionError):
            status.assert_consumed()
        program.build()
    status.assert_consumed()
    assert_bitwise(program, values)
    if towers == 2:
        assert program.run(3, 2) == losses


def test_a_checkpoint_passes_from_towers_to_no_strategy_and_on(saved: Any, tmp_path: Path) -> None:
    path, values, _ = saved
    for hop, towers in enumerate([0, 4]):
        program = Rewritten("adam", towers)
        checkpoint(program).restore(path).assert_consumed()
        path = checkpoint(program).save(str(tmp_path / str(hop)))
    assert_bitwise(program, values)


def test_several_optimizers_of_one_variable_keep_their_own_slots(tmp_path: Path) -> None:
    before = Rewritten("staged", 2)
    before.run(0, 2)
    path = checkpoint(before).save(str(tmp_path / "model"))
    after = Rewritten("staged", 2, build=False)
    status = checkpoint(after).restore(path)
    after.build()
    status.assert_consumed()
    assert_bitwise(after, before.values())


def test_evaluation_restores_the_variables_alone(saved: Any) -> None:
    path, values, _ = saved
    program = Rewritten("adam", 0, build=False)
    tf.train.Checkpoint(variables=program.variables).restore(path).expect_partial()

    @tf.function(autograph=False)
    def look(*batch: Any) -> None:
        with program.variables.looking():  # the model's batch norm is always in training
            program.tower(*batch)

    look(*original.batch(0))
    for variable in program.variables.all():
        np.testing.assert_array_equal(variable.numpy(), values[tm.op_name(variable)])


@pytest.mark.parametrize(("policy", "expected"), [("last", 3.0), ("first", 1.0), ("mean", 2.0)])
def test_moving_averages_are_saved_as_the_policy_reads_them(
    two_towers: Any, tmp_path: Path, policy: str, expected: float
) -> None:
    def averages(strategy: Any) -> tuple[Any, Any]:
        with strategy.scope():
            variables = tm.TowerVariables(batch_norm=policy)
        tower = variables.tower(
            lambda x: tf.compat.v1.layers.batch_normalization(x, momentum=0.0, training=True)
        )
        return variables, tf.function(lambda x: strategy.run(tower, (x,)), autograph=False)

    variables, step = averages(two_towers)
    step(*tm.shard_batch(np.array([[1.0], [1.0], [3.0], [3.0]], "f"), strategy=two_towers))
    path = tf.train.Checkpoint(model=variables).save(str(tmp_path / "model"))
    for strategy in (two_towers, tf.distribute.get_strategy()):
        again, step = averages(strategy)
        tm.create_variables(step, tf.TensorSpec([None, 1]), strategy=strategy)
        tf.train.Checkpoint(model=again).restore(path).assert_consumed()
        [mean] = again.all(".*moving_mean")
        for copy in getattr(mean, "values", [mean]):
            assert copy.numpy().item() == expected


def test_a_module_that_holds_them_saves_them(two_towers: Any, tmp_path: Path) -> None:
    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.variables_of_towers = tm.TowerVariables()

    with two_towers.scope():
        model = Model()
    tower = model.variables_of_towers.tower(lambda: tf.compat.v1.get_variable("net/w", [2]))
    tf.function(lambda: two_towers.run(tower), autograph=False)()
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), tmp_path, 2)
    path = manager.save()
    names = [name for name, _ in tf.train.list_variables(path)]
    assert "model/variables_of_towers/net.Sw/.ATTRIBUTES/VARIABLE_VALUE" in names
