"""TF1's variable scopes, collections, reuse rules and batch norm, one TF1 tower for each call."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1
KEYS = v1.GraphKeys


def ones(name: str, **more: Any) -> Any:
    return v1.get_variable(name, [], initializer=v1.ones_initializer(), **more)


class Program:
    """A tower function under two towers, and what it noted in each trace."""

    def __init__(self, strategy: Any, body: Callable[..., Any], **options: Any) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.variables = tm.TowerVariables(**options)
        self.tower = self.variables.tower(body)
        self.step = tf.function(self._step, autograph=False)

    def _step(self, *args: Any) -> Any:
        return self.strategy.run(self.tower, args=args)

    def run(self, *args: Any) -> Any:
        return tm.as_numpy(tm.last_tower(self.step(*args)))


def test_creation_order_and_names_are_those_of_tf1(two_towers: Any) -> None:
    seen: list[Any] = []

    def tower() -> Any:
        with v1.variable_scope("z"):
            total = ones("w")
        with v1.variable_scope("a"):
            total += ones("w") + ones("fixed", trainable=False)
        seen.append([v.name for v in v1.trainable_variables()])
        assert [v.name for v in v1.global_variables("a")] == ["a/w:0", "a/fixed:0"]
        total += ones("b")
        return total

    program = Program(two_towers, tower)
    with pytest.raises(ValueError, match="No tower has made a variable yet"):
        program.variables.trainable()
    assert program.run() == 4.0
    assert [v.name for v in program.variables.trainable()] == ["z/w:0", "a/w:0", "b:0"]
    assert [v.name for v in program.variables.all()] == ["z/w:0", "a/w:0", "a/fixed:0", "b:0"]
    assert [v.name for v in program.variables.trainable("a|b")] == ["a/w:0", "b:0"]
    # In the middle of the first tower two were there; the second tower found all of them.
    assert seen[:2] == [["z/w:0", "a/w:0"], ["z/w:0", "a/w:0", "b:0"]]


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        pytest.param("Tower_0/a", "Towers share variables.*ask for 'a'", id="a tower's prefix"),
        pytest.param(
            "tower_1/", "ask for all of them, without a scope", id="a tower's prefix alone"
        ),
        pytest.param("GPU3", "ask for all of them, without a scope", id="a tower's name"),
        pytest.param("worker_0/a", "ask for 'a'", id="another prefix of a scope that is there"),
        pytest.param("conv_1/b", "names are those of variable scopes", id="a numbered scope"),
        pytest.param("nothing", "names are those of variable scopes", id="an unknown scope"),
    ],
)
def test_a_scope_that_matches_nothing_is_explained(two_towers: Any, scope: str, says: str) -> None:
    program = Program(two_towers, lambda: ones("a"))
    program.run()
    with pytest.raises(ValueError, match=says):
        program.variables.trainable(scope)
    assert program.variables.all(scope) == []


def twice(**scope: Any) -> Callable[[], Any]:
    def tower() -> Any:
        first = ones("w")
        with v1.variable_scope(v1.get_variable_scope(), **scope):
            return first + ones("w")

    return tower


def missing() -> Any:
    with v1.variable_scope("new", reuse=True):
        return ones("w")


def other_shape() -> Any:
    ones("w")
    with v1.variable_scope("", reuse=True):
        return v1.get_variable("w", [3])


@pytest.mark.parametrize(
    ("tower", "says"),
    [
        pytest.param(twice(), "Variable w already exists, disallowed", id="asked for twice"),
        pytest.param(missing, "Variable new/w does not exist", id="reused before it exists"),
        pytest.param(other_shape, "specified shape .3.* and found shape", id="another shape"),
    ],
)
def test_reuse_errors_are_those_of_tf1(two_towers: Any, tower: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Program(two_towers, tower).run()


@pytest.mark.parametrize("reuse", [True, v1.AUTO_REUSE])
def test_reuse_within_one_tower(two_towers: Any, reuse: Any) -> None:
    program = Program(two_towers, twice(reuse=reuse))
    assert program.run() == 2.0
    assert program.run() == 2.0
    assert len(program.variables.all()) == 1


def test_collections_belong_to_one_tower(two_towers: Any) -> None:
    def tower() -> Any:
        assert v1.get_collection("losses") == []
        with v1.name_scope("tower_%d" % tm.tower_index()) as scope:
            v1.add_to_collection("losses", tf.constant(1.0, name="loss"))
            assert [t.name for t in v1.get_collection("losses", scope)] == [f"{scope}loss:0"]
            assert scope == f"tower_{tm.tower_index()}/"
        ones("w").assign_add(1.0)  # a merge_call: the other tower's trace goes on in between
        assert len(v1.get_collection("losses")) == 1
        return tf.add_n(v1.get_collection("losses"))

    def aggregated() -> Any:
        with v1.variable_scope("", custom_getter=_mean):
            return tower()

    assert Program(two_towers, aggregated).run() == 1.0


def _mean(getter: Any, *args: Any, **kwargs: Any) -> Any:
    return getter(*args, **{**kwargs, "aggregation": tf.VariableAggregation.MEAN})


def test_unnamed_layers_have_the_same_names_in_every_trace_and_tower(two_towers: Any) -> None:
    def tower(x: Any) -> Any:
        return v1.layers.dense(v1.layers.dense(x, 2), 1)

    program = Program(two_towers, tower)
    program.run(*tm.shard_batch(np.ones([2, 3], "f")))
    program.run(*tm.shard_batch(np.ones([6, 3], "f")))
    assert [v.name for v in program.variables.all()] == [
        "dense/kernel:0", "dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0",
    ]  # fmt: skip


def test_every_tower_has_the_regularisation_losses_of_tf1(two_towers: Any) -> None:
    l2 = tf.keras.regularizers.l2(0.5)
    names: dict[int, Any] = {}

    def tower(x: Any) -> Any:
        with v1.name_scope("tower_%d" % tm.tower_index()) as scope:
            with v1.variable_scope("net", regularizer=l2):
                ones("w")
            for reuse in (False, True):
                v1.layers.dense(x, 1, name="d", use_bias=False, kernel_regularizer=l2, reuse=reuse)
            scoped = v1.losses.get_regularization_losses(scope)
        everything = v1.losses.get_regularization_losses()
        assert [id(loss) for loss in variables.regularization_losses()] == [
            id(x) for x in everything
        ]
        names[tm.tower_index()] = [len(everything), len(scoped)]
        return tf.add_n(everything)

    program = Program(two_towers, tower)
    variables = program.variables
    value = program.run(*tm.same_batch(np.ones([1, 1], "f")))
    kernel = variables.all("d/")[0].numpy().item()
    np.testing.assert_allclose(value, 0.5 + 0.5 * kernel**2, rtol=1e-6)
    # A layer's loss has the first tower's name scope, as in TF1, where it was made once.
    assert names == {0: [2, 1], 1: [2, 0]}
    assert len(variables.regularization_losses()) == 2
    assert len(variables.regularization_losses("net")) == 1


def test_an_initial_value_may_be_a_tensor_of_the_trace(two_towers: Any) -> None:
    def tower() -> Any:
        return v1.get_variable("w", initializer=tf.random.normal([2]) * 0.0 + 3.0)

    np.testing.assert_array_equal(Program(two_towers, tower).run(), [3.0, 3.0])


def test_summaries_are_written_in_every_tower(two_towers: Any) -> None:
    def tower() -> Any:
        with v1.name_scope("tower_%d" % tm.tower_index()):
            v1.summary.scalar("loss", tf.constant(2.0))
        return v1.summary.merge(v1.get_collection(KEYS.SUMMARIES))

    summary = v1.Summary.FromString(Program(two_towers, tower).run())
    assert [(value.tag, value.simple_value) for value in summary.value] == [("tower_1/loss", 2.0)]


def slim_batch_norm(x: Any, training: bool) -> Any:
    slim = pytest.importorskip("tf_slim")
    return slim.batch_norm(x, decay=0.5, is_training=training, scope="bn")


def test_scopes_of_arguments_hold_in_their_own_tower(two_towers: Any) -> None:
    slim = pytest.importorskip("tf_slim")
    seen: list[tuple[int, int, bool]] = []

    def tower(x: Any) -> Any:
        def look() -> None:
            held = slim.current_arg_scope()
            seen.append((tm.tower_index(), len(held), "padding" in str(held)))

        look()
        with slim.arg_scope([slim.conv2d], padding="VALID"):
            # TensorFlow goes on with the next tower here.
            tf.distribute.get_replica_context().merge_call(lambda strategy: None)
            look()
        look()
        return x

    program = Program(two_towers, tower)
    with slim.arg_scope([slim.fully_connected], activation_fn=None):
        program.run(*tm.shard_batch(np.ones([4, 4, 4, 1], "f")))
    assert {one[1:] for one in seen} == {(1, False), (2, True)}
    for tower_index in (0, 1):
        own = [one[1:] for one in seen if one[0] == tower_index]
        assert own[:3] == [(1, False), (2, True), (1, False)]
    assert slim.current_arg_scope() == {}


def layers_batch_norm(x: Any, training: bool) -> Any:
    return v1.layers.batch_normalization(x, momentum=0.5, training=training, name="bn")


@pytest.mark.parametrize("normalise", [layers_batch_norm, slim_batch_norm])
@pytest.mark.parametrize(
    ("policy", "expected"), [("last", 1.5), ("first", 0.5), ("all", 1.25), ("mean", 1.0)]
)
def test_moving_averages_take_the_updates_of(
    two_towers: Any, policy: str, expected: float, normalise: Any
) -> None:
    # The towers' batch means are 1 and 3; with momentum 0.5 the moving mean goes half the way from
    # 0.
    looks: list[bool] = []

    def tower(x: Any) -> Any:
        return normalise(x, training=True)

    program = Program(two_towers, tower, batch_norm=policy)
    x = np.concatenate([np.full([2, 4, 4, 1], 1.0), np.full([2, 4, 4, 1], 3.0)]).astype("f")

    @tf.function(autograph=False)
    def look(x: Any) -> Any:
        def step(x: Any) -> Any:
            looks.append(True)
            with program.variables.looking():
                return program.tower(x)

        return two_towers.run(step, args=(x,))

    tm.create_variables(program.step, tf.TensorSpec([None, 4, 4, 1], tf.float32))
    [moving_mean] = program.variables.all(".*moving_mean")
    look(*tm.shard_batch(x))

    @tf.function(autograph=False)
    def look_around(x: Any) -> Any:
        with program.variables.looking():
            return two_towers.run(program.tower, args=(x,))

    look_around(*tm.shard_batch(x))
    assert looks and moving_mean.numpy().item() == 0.0, "a run that only looks changes nothing"
    program.run(*tm.shard_batch(x))
    np.testing.assert_allclose(moving_mean.numpy(), [expected], rtol=1e-6)
    saved = tm.tf1_saver(program.variables).names()
    assert saved["bn/moving_mean"].numpy().item() == moving_mean.numpy().item()


@pytest.mark.parametrize("rows", [[1], [2, 2], [3, 1, 2, 5]])
@pytest.mark.parametrize(
    "form", ["fused", "not fused", "fused and fed", "not fused and fed", "slim"]
)
def test_every_tower_moves_the_averages(form: str, rows: list[int]) -> None:
    strategy = tm.tower_strategy(len(rows), devices=f"cpu:{len(rows)}")
    training = tf.Variable(True)

    def tower(x: Any) -> Any:
        if form == "slim":
            return slim_batch_norm(x, training=True)
        x = x[:, 0, 0, :] if "not fused" in form else x
        trains = training.read_value() if "fed" in form else True
        return v1.layers.batch_normalization(x, momentum=0.5, training=trains)

    program = Program(strategy, tower, batch_norm="all")
    random = np.random.RandomState(0)
    mean = np.zeros(3)
    for step in range(3):
        if step == 1 and "fed" in form:
            training.assign(False)  # nothing moves
        parts = [random.randn(n, 4, 4, 3).astype("f") + i for i, n in enumerate(rows)]
        values = [tf.constant(part) for part in parts]
        program.run(
            values[0]
            if len(rows) == 1
            else strategy.experimental_distribute_values_from_function(
                lambda context, values=values: values[context.replica_id_in_sync_group]
            )
        )
        if step != 1 or "fed" not in form:
            for part in reversed(parts):
                seen = part[:, 0, 0, :] if "not fused" in form else part
                batch = seen.astype("d").mean(tuple(range(seen.ndim - 1)))
                mean = 0.5 * mean + 0.5 * batch
        if step == 1:
            training.assign(True)
        [moving] = program.variables.all(".*moving_mean")
        for one in strategy.experimental_local_results(moving):
            # Products and sums of float32 in another order than one after another: some roundings of 6e-8 of values of 1.
            np.testing.assert_allclose(one.numpy(), mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("normalise", [layers_batch_norm, slim_batch_norm])
def test_a_run_that_only_looks_changes_nothing_without_a_strategy_either(normalise: Any) -> None:
    variables = tm.TowerVariables()
    tower = variables.tower(lambda x: normalise(x, training=True))
    step = tf.function(tower, autograph=False)

    @tf.function(autograph=False)
    def look(x: Any) -> Any:
        with variables.looking():
            return tower(x)

    look(np.ones([2, 4, 4, 1], "f"))
    [moving_mean] = variables.all(".*moving_mean")
    assert moving_mean.numpy().item() == 0.0
    step(np.ones([2, 4, 4, 1], "f"))
    assert moving_mean.numpy().item() == 0.5


def test_inference_in_towers_reads_the_last_towers_average(two_towers: Any) -> None:
    def tower(x: Any, training: bool) -> Any:
        return v1.layers.batch_normalization(
            x, momentum=0.0, training=training, scale=False, center=False, epsilon=0.0, name="bn"
        )

    program = Program(two_towers, lambda x: tower(x, True))
    infer = program.variables.tower(lambda x: tower(x, False))
    # Means 1 and 3, variances 1 and 4.
    x = np.array([[0.0], [2.0], [1.0], [5.0]], "f")
    program.run(*tm.shard_batch(x))

    @tf.function(autograph=False)
    def evaluate(x: Any) -> Any:
        return two_towers.run(infer, args=(x,))

    for part in two_towers.experimental_local_results(
        evaluate(*tm.same_batch(np.array([[5.0]], "f")))
    ):
        np.testing.assert_allclose(part.numpy(), [[1.0]], rtol=1e-6)


def test_a_tower_is_graph_code_of_one_replica(two_towers: Any) -> None:
    program = Program(two_towers, lambda: ones("w"))
    with pytest.raises(RuntimeError, match="was called eagerly"):
        program.tower()
    with two_towers.scope(), pytest.raises(RuntimeError, match="outside of strategy.run"):
        tf.function(program.tower, autograph=False)()
    with pytest.raises(
        ValueError, match="batch_norm is 'both'; expected one of last, first, all, mean"
    ):
        tm.TowerVariables(batch_norm="both")


def test_a_model_outside_reads_what_the_towers_made(two_towers: Any) -> None:
    def body(x: Any) -> Any:
        return x * ones("w")

    program = Program(two_towers, body)
    made = tm.shard_batch([1.0, 2.0])
    program.run(*made)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)])
    @program.variables.model
    def evaluate(x: Any) -> Any:
        return body(x), body(2.0 * x)  # TF1 reuses behind the towers, in one graph

    assert [v.tolist() for v in tm.as_numpy(evaluate(np.ones(3)))] == [[1.0] * 3, [2.0] * 3]
    program.variables.trainable()[0].assign(5.0)
    assert evaluate([1])[0].numpy().tolist() == [5.0]
    assert len(program.variables.all()) == 1


@pytest.mark.parametrize("reuse", [None, False, True, v1.AUTO_REUSE])
def test_a_model_outside_makes_no_variables(two_towers: Any, reuse: Any) -> None:
    program = Program(two_towers, lambda x: x * ones("w"))
    program.run(*tm.shard_batch([1.0, 2.0]))

    @program.variables.model
    def model() -> Any:
        with v1.variable_scope(v1.get_variable_scope(), reuse=reuse):
            return ones("w") + ones("v")

    with pytest.raises(ValueError, match="Variable v does not exist: no tower made it"):
        tf.function(model, autograph=False)()
    assert [v.name for v in program.variables.all()] == ["w:0"]
    with pytest.raises(RuntimeError, match="called eagerly"):
        model()
    with pytest.raises(RuntimeError, match="inside of strategy.run"):
        tf.function(lambda: two_towers.run(model), autograph=False)()


def test_a_name_stands_for_one_variable_where_a_program_is_built_twice(two_towers: Any) -> None:
    first, second = (
        Program(two_towers, lambda: v1.get_variable("w", [], regularizer=tf.nn.l2_loss))
        for _ in range(2)
    )
    first.run()
    second.run()
    for program in (first, second):
        own = program.variables._owned.by_name["w"].variable
        assert program.variables.all() == [own]
        assert program.variables.trainable() == [own]
        assert len(program.variables.regularization_losses()) == 1
    with two_towers.scope():
        assert tm.trainable_variables() == second.variables.all()


def test_variables_of_all_towers_of_a_program_count(two_towers: Any) -> None:
    first = Program(two_towers, lambda: ones("first"))
    second = Program(two_towers, lambda: ones("second"))
    other = Program(tm.tower_strategy(1), lambda: ones("other"))
    for program in (first, second, other):
        program.run()
    assert [v.name for v in second.variables.trainable()] == ["first:0", "second:0"]
    assert [v.name for v in other.variables.trainable()] == ["other:0"]


def test_trainable_variables_are_those_of_the_current_strategy(two_towers: Any) -> None:
    def tower() -> Any:
        with v1.variable_scope("generator"):
            ones("w")
        with v1.variable_scope("discriminator"):
            ones("fixed", trainable=False)
            return ones("w")

    seen: list[Any] = []

    def step() -> Any:
        loss = program.tower()
        seen.append([v.name for v in tm.trainable_variables("dis")])
        return loss

    program = Program(two_towers, tower)
    other = Program(tm.tower_strategy(1), lambda: ones("other"))
    other.run()
    tf.function(lambda: two_towers.run(step), autograph=False)()
    assert seen[0] == seen[1] == ["discriminator/w:0"]
    with two_towers.scope():
        assert [v.name for v in tm.trainable_variables()] == ["generator/w:0", "discriminator/w:0"]
        with pytest.raises(ValueError, match="Towers share variables.*ask for 'discriminator'"):
            tm.trainable_variables("Tower_0/discriminator")
    # Out of every scope it is the strategy made last.
    assert [v.name for v in tm.trainable_variables()] == ["other:0"]


def test_trainable_variables_made_under_no_strategy() -> None:
    variables = tm.TowerVariables()
    tower = variables.tower(lambda: ones("alone"))
    tf.function(tower, autograph=False)()
    with tm.tower_strategy(1).scope(), pytest.raises(ValueError, match="No tower has made a"):
        tm.trainable_variables("alone")
    # A strategy that has no towers does not hide them.
    assert tm.trainable_variables("alone") == variables.all()


def test_trainable_variables_of_a_plain_graph_are_its_collection() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="This graph has no trainable variable yet"):
            tm.trainable_variables()
        for i in range(2):
            with (
                v1.name_scope(f"Tower_{i}"),
                v1.variable_scope(v1.get_variable_scope(), reuse=i > 0),
            ):
                for scope in ("generator", "discriminator"):
                    v1.layers.dense(tf.ones([1, 2]), 1, use_bias=False, name=scope)
        names = ["generator/kernel:0", "discriminator/kernel:0"]
        assert [v.name for v in tm.trainable_variables()] == names
        assert [v.name for v in tm.trainable_variables("disc")] == names[1:]
        with pytest.raises(ValueError, match="Towers share variables.*ask for 'discriminator'"):
            tm.trainable_variables("Tower_0/discriminator")


@pytest.mark.parametrize("towers", [0, 1, 2, 4], ids="{} towers".format)
def test_regularisation_losses_count_each_variable_once(towers: int) -> None:
    slim = pytest.importorskip("tf_slim")
    l2 = tf.keras.regularizers.l2(0.5)

    def tower(x: Any) -> Any:
        for reuse in (False, True):
            with v1.variable_scope("a", reuse=reuse):
                slim.fully_connected(x, 2, weights_regularizer=tf.nn.l2_loss, scope="slim")
            with v1.variable_scope("b", reuse=v1.AUTO_REUSE, regularizer=l2):
                v1.layers.dense(x, 2, name="dense", kernel_regularizer=l2)
                own = v1.get_variable("own", [2])
        counts.append(len(v1.losses.get_regularization_losses()))
        return tf.reduce_sum(own)

    counts: list[int] = []
    strategy = tm.tower_strategy(towers) if towers else tf.distribute.get_strategy()
    with strategy.scope():
        variables = tm.TowerVariables()
    decorated = variables.tower(tower)

    def step(x: Any) -> Any:
        # Two stages in one step call the tower twice; the losses stay those of the variables.
        decorated(x)
        with tf.GradientTape() as tape:
            total = tf.add_n(variables.regularization_losses())
        return total + decorated(x) * 0.0, tape.gradient(total, variables.trainable("b/own"))

    run = tf.function(lambda x: strategy.run(step, (x,)), autograph=False)
    x = tf.ones([3, 2])
    results = strategy.experimental_local_results(run(x))
    expected = 0.0
    for name, value in ((v.name, v.numpy()) for v in variables.all()):
        if "weights" in name or name.startswith("b/"):
            times = 2 if name == "b/dense/kernel:0" else 1
            expected += times * 0.5 * float((value**2).sum())
    [own] = variables.all("b/own")
    for total, [gradient] in results:
        np.testing.assert_allclose(total, expected, rtol=1e-6)  # a sum of few float32
        np.testing.assert_allclose(gradient, own.numpy(), rtol=1e-6)
    # TF1 has five too: the kernel's scope and its layer each have a regulariser.
    assert set(counts) == {5}
    assert len(variables.regularization_losses()) == 5
    assert len(variables.regularization_losses("b/dense/bias")) == 1


def test_all_that_start_from_one_seed_have_its_first_numbers(two_towers: Any) -> None:
    import tf_slim

    kinds = [
        v1.truncated_normal_initializer(stddev=0.1, seed=5),
        v1.glorot_uniform_initializer(seed=5),
        v1.orthogonal_initializer(seed=5),
        tf_slim.xavier_initializer(seed=5),
        v1.glorot_uniform_initializer(),
    ]

    def make() -> list[Any]:
        return [
            v1.get_variable(f"w_{number}_{again}", [3, 3], initializer=kind)
            for number, kind in enumerate(kinds)
            for again in range(2)
        ]

    with tf.Graph().as_default(), v1.Session() as session:
        variables = make()
        session.run(v1.global_variables_initializer())
        wanted = session.run(variables)
    program = Program(two_towers, lambda: tf.add_n([tf.reduce_sum(v) for v in make()]))
    program.run()
    made = [variable.numpy() for variable in program.variables.all()]
    for number in range(8):
        np.testing.assert_array_equal(made[number], wanted[number])
        np.testing.assert_array_equal(made[number], made[number // 2 * 2])
    assert not np.array_equal(made[8], made[9])
