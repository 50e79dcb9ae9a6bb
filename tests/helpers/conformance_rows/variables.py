"""Rows of the variables that towers share, and of their checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import EAGER, EAGER_2, WORKERS, XLA_2, Results, Rows, Runner, numbers
from tests.helpers.conformance_rows.reasons import GRAPH_CODE, MEETS_TOWERS, NO_TRACE

v1 = tf.compat.v1

ROWS = Rows()


class Program:
    """A tower of TF1 code and Momentum: `x · scale` trained, `generator/kernel` regularised."""

    def __init__(self, run: Runner) -> None:
        with run.scope():
            self.optimizer = v1.train.MomentumOptimizer(1.0, 0.5)
            self.variables = tm.TowerVariables()

        @self.variables.tower
        def tower(x: Any) -> Any:
            ones = v1.ones_initializer()
            with v1.variable_scope("generator"):
                hidden = v1.layers.dense(
                    x,
                    1,
                    use_bias=False,
                    kernel_initializer=ones,
                    kernel_regularizer=lambda kernel: 0.5 * tf.reduce_sum(kernel**2),
                    name="dense",
                )
            with v1.variable_scope("discriminator"):
                return hidden * v1.get_variable("scale", [], initializer=ones)

        def gradient(x: Any) -> Any:
            loss = tf.reduce_mean(tower(x))
            scale = self.variables.trainable("discriminator")
            return tm.tower_gradients(self.optimizer, loss, scale)[0][0]

        def update(grad: Any) -> Any:
            [scale] = self.variables.trainable("discriminator")
            self.optimizer.apply_gradients([(grad, scale)])

        self.tower = tower
        self.step = run.step(gradient, update)
        self.batch = run.feed([[[x]] for x in numbers(run.towers)])
        self.specs = [tf.TensorSpec([1, 1], tf.float32)]

    def scale(self) -> float:
        [scale] = self.variables.trainable("discriminator")
        return float(scale.numpy())


NAMES = ["generator/dense/kernel:0", "discriminator/scale:0"]
EAGER_GRAPH_CODE = {EAGER: GRAPH_CODE, EAGER_2: GRAPH_CODE}


@ROWS.case(
    "TowerVariables",
    expect=lambda n: {
        "values": [[[x]] for x in numbers(n)],
        "names": NAMES,
        "scope": NAMES[:1],
        "regularization": [0.5],
        "scale": 1.0 - (n + 1) / 2,
    },
    cannot=EAGER_GRAPH_CODE,
)
def _(run: Runner) -> Results:
    program = Program(run)
    values = run.step(program.tower)(program.batch)
    program.step(program.batch)
    variables = program.variables
    return {
        "values": run.each(values),
        "names": [v.name for v in variables.trainable()],
        "scope": [v.name for v in variables.all("generator")],
        "regularization": [loss.numpy() for loss in variables.regularization_losses()],
        "scale": program.scale(),
    }


def _moving_means(run: Runner, policy: str, fed: bool = False) -> list[float]:
    """The moving mean after a step that trains and after one that only looks: batches of 1, 2, …, momentum 0.5.

    Where it is `fed`, a tensor tells the layer that it trains, and its updates stand in a condition.
    """
    batch = run.feed([[[x], [x]] for x in numbers(run.towers)])
    with run.scope():
        variables = tm.TowerVariables(batch_norm=policy)

    @variables.tower
    def tower(x: Any) -> Any:
        trains = tf.reduce_any(x > 0.0) if fed else True
        return v1.layers.batch_normalization(x, momentum=0.5, training=trains)

    def look(x: Any) -> Any:
        with variables.looking():
            return tower(x)

    means = []
    for step in (tower, look):
        run.step(step)(batch)
        [mean] = variables.all(".*moving_mean")
        means.append(float(mean.numpy()[0]))
    return means


@ROWS.case(
    "TowerVariables",
    row="TowerVariables with batch normalisation",
    # Half of a mean, and nothing of a step that only looks.
    expect=lambda n: {"of the last": 0.5, "of all": (n + 1) / 4, "after looking": (n + 1) / 4},
    cannot=EAGER_GRAPH_CODE,
)
def _(run: Runner) -> Results:
    last, _looked = _moving_means(run, "last")
    of_all, looked = _moving_means(run, "mean")
    return {"of the last": last / run.towers, "of all": of_all, "after looking": looked}


@ROWS.case(
    "TowerVariables",
    row="TowerVariables with batch normalisation that is fed whether it trains",
    expect=lambda n: {"of the last": n / 2, "of the first": 0.5, "after looking": 0.5},
    cannot=EAGER_GRAPH_CODE,
)
def _(run: Runner) -> Results:
    first, looked = _moving_means(run, "first", fed=True)
    last, _looked = _moving_means(run, "last", fed=True)
    return {"of the last": last, "of the first": first, "after looking": looked}


@ROWS.case(
    "TowerVariables",
    row="TowerVariables with batch normalisation of every tower",
    # One after another, the first tower last: its mean counts a half, that of the second tower a quarter, …
    expect=lambda n: {
        "of every": sum(k / 2**k for k in range(1, n + 1)),
        "after looking": sum(k / 2**k for k in range(1, n + 1)),
    },
    cannot=EAGER_GRAPH_CODE | {XLA_2: MEETS_TOWERS},
)
def _(run: Runner) -> Results:
    every, looked = _moving_means(run, "all")
    return {"of every": every, "after looking": looked}


@ROWS.case(
    "trainable_variables",
    expect=lambda n: {"names": NAMES, "scope": NAMES[1:], "in a tower": NAMES},
    tf1=True,
    cannot=EAGER_GRAPH_CODE,
)
def _(run: Runner) -> Results:
    program = Program(run)
    names: list[str] = []

    def tower(x: Any) -> Any:
        value = program.tower(x)
        names[:] = [v.name for v in tm.trainable_variables()]
        return value

    run.step(tower)(program.batch)
    return {
        "names": [v.name for v in tm.trainable_variables()],
        "scope": [v.name for v in tm.trainable_variables("discriminator")],
        "in a tower": names,
    }


@ROWS.case(
    "create_variables",
    expect=lambda n: {"names": NAMES, "scale": 1.0, "slot": 0.0},
    cannot={EAGER: NO_TRACE, EAGER_2: NO_TRACE},
)
def _(run: Runner) -> Results:
    program = Program(run)
    tm.create_variables(program.step, *program.specs, **run.where)
    [scale] = program.variables.trainable("discriminator")
    slot = program.optimizer.get_slot(scale, "momentum")
    names = [v.name for v in program.variables.trainable()]
    return {"names": names, "scale": program.scale(), "slot": slot.numpy()}


def checkpoint(
    row: str, covers: tuple[str, ...], save_and_restore: Callable[[Runner, Program, str], Any]
) -> None:
    """A row: two steps, the second from a checkpoint of the first, go as far as without it."""

    @ROWS.case(
        *covers,
        row=row,
        # Momentum 0.5: the second step moves by 1.5 gradients.
        expect=lambda n: {"first": 1 - (n + 1) / 2, "second": 1 - 2.5 * (n + 1) / 2},
        cannot=EAGER_GRAPH_CODE,
    )
    def _(run: Runner) -> Results:
        program = Program(run)
        program.step(program.batch)
        first = program.scale()

        def restore() -> None:
            save_and_restore(run, program, str(run.folder / row.replace(" ", "_")))

        restore()
        program.step(program.batch)
        return {"first": first, "second": program.scale()}


def spoil(program: Program) -> None:
    [scale] = program.variables.trainable("discriminator")
    for variable in (scale, program.optimizer.get_slot(scale, "momentum")):
        variable.assign(-9.0)


def _saver(run: Runner, program: Program, path: str) -> None:
    saver = tm.tf1_saver(program.variables, optimizers=[program.optimizer])
    assert isinstance(saver, tm.TF1Saver)
    saver.save(path)
    run.wait()
    spoil(program)
    saver.restore(path)


def _restore_tf1(run: Runner, program: Program, path: str) -> None:
    program.variables.save_tf1(path, optimizers=[program.optimizer])
    run.wait()
    spoil(program)
    report = program.variables.restore_tf1(path, optimizers=[program.optimizer])
    assert isinstance(report, tm.TF1RestoreReport)
    assert len(report.restored) == 3


def _checkpoint(run: Runner, program: Program, path: str) -> None:
    if run.mode == WORKERS:  # every worker writes, the chief what counts
        path += str(run.strategy.cluster_resolver.task_id)
    objects = tf.train.Checkpoint(variables=program.variables, optimizer=program.optimizer)
    path = objects.write(path)
    spoil(program)
    objects.read(path).assert_consumed()


checkpoint("tf1_saver", ("tf1_saver", "TF1Saver"), _saver)
checkpoint("restore_tf1 and save_tf1", ("TF1RestoreReport",), _restore_tf1)
checkpoint("TowerVariables in a Checkpoint", ("TowerVariables",), _checkpoint)
