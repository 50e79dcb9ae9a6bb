"""Each TM4xx rule: what it finds, and the correct code beside it that it must leave alone."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from towermigrate.findings import RULES
from towermigrate.lint import scan_distribution

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"

HEAD = """\
import tensorflow as tf
import towermigrate.helpers as tm

GLOBAL_BATCH_SIZE = 64
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make_model()
    optimizer = tf.keras.optimizers.SGD(0.1)
    loss_object = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)
    train_loss = tf.keras.metrics.Mean(name="train_loss")
"""

APPLY = """
grads = tape.gradient(loss, model.trainable_variables)
optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""

RUN = """
@tf.function
def distributed_train_step(batch):
    per_replica = strategy.run(train_step, args=(batch,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)
"""


def step(loss: str, after: str = APPLY + "return loss\n", run: str = RUN, before: str = "") -> str:
    """A program whose replicas compute `loss` and apply its gradients."""
    body = textwrap.indent(textwrap.dedent(loss).strip(), " " * 8)
    head = (
        "def train_step(batch):\n    x, labels, mask = batch\n    with tf.GradientTape() as tape:\n"
    )
    head += "        losses = loss_object(labels, model(x, training=True))\n"
    return HEAD + before + head + body + "\n" + textwrap.indent(after, "    ") + run


def rules(program: str, **others: str) -> list[str]:
    sources = {"train.py": program, **{f"{name}.py": text for name, text in others.items()}}
    for text in sources.values():
        ast.parse(text)
    found = scan_distribution(sources)
    return [finding.rule for path in sorted(found) for finding in found[path]]


RIGHT_LOSSES = {
    "average over the global batch": "loss = tf.nn.compute_average_loss(losses)",
    "sum divided by the global batch": "loss = tf.reduce_sum(losses) / GLOBAL_BATCH_SIZE",
    "sum times one over the global batch": "loss = tf.reduce_sum(losses) * (1. / GLOBAL_BATCH_SIZE)",
    "mean divided by the replicas": "loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync",
    "mean times one over the replicas": (
        "loss = tf.reduce_mean(losses) * (1.0 / tf.cast(strategy.num_replicas_in_sync, tf.float32))"
    ),
    "mean of losses that were divided": (
        "loss = tf.reduce_mean(losses / tf.distribute.get_strategy().num_replicas_in_sync)"
    ),
    "mean and regulariser divided together": (
        "loss = tf.reduce_mean(losses) + sum(model.losses)\nloss /= strategy.num_replicas_in_sync"
    ),
    "mean divided where there are several replicas": (
        "loss = tf.reduce_mean(losses)\nif distributed:\n    loss = loss / strategy.num_replicas_in_sync"
    ),
    "mean divided by something unknown": "loss = tf.reduce_mean(losses) / scale",
    "sum that the author means": "loss = tf.reduce_sum(losses)",
    "scaled regulariser": (
        "loss = tf.nn.compute_average_loss(losses)\n"
        "if model.losses:\n"
        "    loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))"
    ),
    "helpers' shares": "loss = tm.global_batch_loss(losses) + tm.regularization_loss(model.losses)",
    "helpers' token loss": "loss = tm.token_normalized_loss(losses, mask)",
    "tokens of all replicas": (
        "tokens = tf.distribute.get_replica_context().all_reduce('SUM', tf.reduce_sum(mask))\n"
        "loss = tf.reduce_sum(losses * mask) / tokens"
    ),
    "a ratio that is no mean": "loss = 1 - tf.reduce_sum(losses * mask) / tf.reduce_sum(labels)",
    "a loss of another module": "loss = compute_loss(labels, x)",
}


@pytest.mark.parametrize("loss", RIGHT_LOSSES.values(), ids=RIGHT_LOSSES)
def test_a_right_loss_has_no_finding(loss: str) -> None:
    assert rules(step(loss)) == []


def mean(grads: str) -> str:
    return step("loss = tf.reduce_mean(losses)", grads)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            mean(
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "grads = [g / strategy.num_replicas_in_sync for g in grads]\n"
                "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
            ),
            id="the gradients are divided",
        ),
        pytest.param(
            mean(
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "grads = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, grads)\n"
                "optimizer.apply_gradients(zip(grads, model.trainable_variables), "
                "experimental_aggregate_gradients=False)\n"
            ),
            id="the gradients are averaged by the author",
        ),
        pytest.param(
            mean(
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "optimizer.apply_gradients(zip(grads, model.trainable_variables), "
                "skip_gradients_aggregation=True)\n"
            ),
            id="the gradients are not summed",
        ),
        pytest.param(
            mean(
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "grads = average(grads)\n"
                "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
            ),
            id="the gradients go through an unknown function",
        ),
        pytest.param(
            mean(
                "grads = tm.tower_gradients(tape, loss, model.trainable_variables)\n"
                "optimizer.apply_gradients(grads)\n"
            ),
            id="the helper divides a tower's loss",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(losses)").replace("MirroredStrategy()", "OneDeviceStrategy('/cpu:0')"),
            id="there is one replica",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(losses)", "train_loss.update_state(loss)\n"),
            id="a mean is only reported",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(losses)", run="train_step(batch)\n"),
            id="nothing is distributed",
        ),
        pytest.param(
            step(
                "loss = tf.nn.compute_average_loss(losses)",
                APPLY + "train_loss.update_state(loss * strategy.num_replicas_in_sync)\n",
            ),
            id="the metric is given the loss times the replicas",
        ),
        pytest.param(
            step(
                "loss = tf.nn.compute_average_loss(losses)",
                run=RUN.replace("SUM, per_replica, axis=None)", "MEAN, per_replica, axis=None) * "
                        "strategy.num_replicas_in_sync"),
            ),
            id="the mean of shares is put right",
        ),
        pytest.param(
            step(
                "loss = tf.reduce_mean(losses)\nscaled = loss / strategy.num_replicas_in_sync",
                APPLY.replace("(loss,", "(scaled,") + "train_loss.update_state(loss)\nreturn loss\n",
                run=RUN.replace("SUM", "MEAN"),
            ),
            id="what is reported is not what is applied",
        ),
        pytest.param(
            HEAD
            + "def train_step(x):\n"
            + textwrap.indent(APPLY.replace("loss,", "f(x),"), "    ")
            + "with strategy.scope():\n    strategy.run(train_step, args=(1,))\n",
            id="a replica's update in the scope",
        ),
        pytest.param(
            HEAD
            + "if hasattr(strategy, 'run'):\n    strategy.run(f)\nelse:\n    strategy.experimental_run_v2(f)\n",
            id="an old name for old releases",
        ),
    ],
)  # fmt: skip
def test_right_programs_have_no_finding(program: str) -> None:
    assert rules(program) == []


TOKENS = "loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(step("loss = tf.reduce_mean(losses)"), ["TM401"], id="mean"),
        pytest.param(
            step(
                "loss = compute_loss(losses)",
                before="def compute_loss(values):\n    total = tf.reduce_mean(values)\n    return 2.0 * total\n",
            ),
            ["TM401"], id="mean made in another function",
        ),
        pytest.param(
            step("loss = tf.reduce_sum(losses) / tf.cast(tf.shape(x)[0], tf.float32)"),
            ["TM401"], id="sum divided by this replica's batch",
        ),
        pytest.param(
            step(
                "loss = tf.reduce_mean(losses)",
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "grads, _ = tf.clip_by_global_norm(grads, 1.0)\n"
                "optimizer.apply_gradients([(g, v) for g, v in zip(grads, model.trainable_variables)])\n",
            ),
            ["TM401"], id="mean whose gradients are clipped",
        ),
        pytest.param(
            step(
                "loss = tf.reduce_mean(losses)",
                "optimizer.minimize(lambda: tf.reduce_mean(losses), model.trainable_variables)\n",
            ),
            ["TM401"], id="mean that is minimised",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(losses)").replace("strategy.run(train_step", "strategy.run(fn=train_step"),
            ["TM401"], id="function given to run by keyword",
        ),
        pytest.param(
            mean(
                "grads = tape.gradient(loss, model.trainable_variables)\n"
                "grads = tf.distribute.get_replica_context().all_reduce('SUM', grads)\n"
                "optimizer.apply_gradients(zip(grads, model.trainable_variables), "
                "experimental_aggregate_gradients=False)\n"
            ),
            ["TM401"], id="mean whose gradients the author sums",
        ),
        pytest.param(step(TOKENS), ["TM402"], id="token mean"),
        pytest.param(
            step("losses *= mask\nloss = tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(mask))"),
            ["TM402"], id="token mean, masked in place",
        ),
        pytest.param(
            step(TOKENS + " / strategy.num_replicas_in_sync"), ["TM402"],
            id="token mean divided by the replicas",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(tf.boolean_mask(losses, mask))"), ["TM402"], id="mean of masked losses"
        ),
        pytest.param(
            step("loss = tf.nn.compute_average_loss(losses)", run=RUN.replace("SUM", "MEAN")),
            ["TM403"], id="mean of shares",
        ),
        pytest.param(
            step("loss = tm.global_batch_loss(losses)", run=RUN.replace("tf.distribute.ReduceOp.SUM", "'MEAN'")),
            ["TM403"], id="mean of shares, said by name",
        ),
        pytest.param(
            step("loss = tf.nn.compute_average_loss(losses)", APPLY.replace("trainable_variables", "variables")),
            ["TM404"], id="gradient of all variables",
        ),
        pytest.param(
            step("loss = tf.nn.compute_average_loss(losses)", APPLY + "train_loss(loss)\n"),
            ["TM405"], id="metric called with a share",
        ),
        pytest.param(
            step("loss = tf.nn.compute_average_loss(losses)\nloss += tf.add_n(model.losses)"),
            ["TM408"], id="regulariser beside a share",
        ),
        pytest.param(
            step(
                "loss = tf.nn.compute_average_loss(losses)\n"
                "loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])"
            ),
            ["TM408"], id="decay of all weights beside a share",
        ),
        pytest.param(
            step("loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync\nloss += sum(model.losses)"),
            ["TM408"], id="regulariser added after the division",
        ),
        pytest.param(
            step("loss = tm.global_batch_loss(losses) / strategy.num_replicas_in_sync"),
            ["TM409"], id="share of a helper divided again",
        ),
        pytest.param(
            step(
                "loss = tm.global_batch_loss(losses) / strategy.num_replicas_in_sync",
                "optimizer.apply_gradients(tm.tower_gradients(tape, loss, model.trainable_variables))\n",
            ),
            ["TM409"], id="share divided again and given to tower_gradients",
        ),
        pytest.param(
            step("loss = tf.nn.compute_average_loss(losses)").replace("reduction=tf.keras.losses.Reduction.NONE", ""),
            ["TM410"], id="default reduction",
        ),
        pytest.param(
            HEAD + "with strategy.scope():\n" + textwrap.indent(APPLY, "    "),
            ["TM407"], id="update in the scope",
        ),
        pytest.param(
            HEAD
            + "def update(loss):\n" + textwrap.indent(APPLY, "    ")
            + "with strategy.scope():\n    update(loss)\n",
            ["TM407"], id="update in a function called in the scope",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_found(program: str, expected: list[str]) -> None:
    assert rules(program) == expected


def test_methods_and_attributes_are_followed() -> None:
    program = """\
import tensorflow as tf

class Trainer:
    def __init__(self, strategy):
        self.strategy = strategy
        with strategy.scope():
            self.loss_object = tf.keras.losses.MeanSquaredError(reduction="none")
            self.loss_metric = tf.keras.metrics.Mean()

    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.loss_metric.update_state(loss)

    def compute_loss(self, x, y):
        losses = self.loss_object(y, self.model(x))
        return tf.reduce_sum(losses) / self.global_batch_size

    def train(self, data):
        for x, y in data:
            self.strategy.run(self.train_step, args=(x, y))
"""
    assert rules(program) == ["TM405"]
    wrong = program.replace(
        "tf.reduce_sum(losses) / self.global_batch_size", "tf.reduce_mean(losses)"
    )
    assert rules(wrong) == ["TM401"]


def test_functions_of_other_files_are_followed() -> None:
    helper = "import tensorflow as tf\ndef mean_loss(x):\n    return tf.reduce_mean(x)\n"
    program = "from losses import mean_loss\n" + step("loss = mean_loss(losses)")
    found = scan_distribution({"train.py": program, "losses.py": helper}, only=["train.py"])
    assert [(f.path, f.line, f.rule) for f in found["losses.py"]] == [("losses.py", 3, "TM401")]


def test_columns_count_characters() -> None:
    program = step("é = 1; loss = tf.reduce_mean(losses)")
    (finding,) = scan_distribution({"train.py": program})["train.py"]
    line = program.splitlines()[finding.line - 1]
    assert line[finding.column :].startswith("tf.reduce_mean")


def test_a_program_that_calls_itself_ends() -> None:
    calls = "\n".join(f"def f{i}(x):\n    return f{i + 1}(x) + f{i + 1}(x)" for i in range(40))
    assert (
        rules(step("loss = f0(losses)", before=calls + "\ndef f40(x):\n    return f0(x)\n")) == []
    )


def test_an_endless_expression_does_not_end_the_scan() -> None:
    deep = "import tensorflow as tf\nstrategy.run(f)\nx = " + " + ".join(["y"] * 900) + "\n"
    found = scan_distribution({"deep.py": deep, "train.py": step("loss = tf.reduce_mean(losses)")})
    assert [f.rule for f in found["train.py"]] == ["TM401"]


@pytest.mark.parametrize("rule", sorted(rule for rule in RULES if rule.startswith("TM4")))
def test_the_examples_of_the_rules_are_true(rule: str) -> None:
    wrong, right = RULES[rule].example.split("# right:\n")
    assert rule in rules(_program(wrong))
    assert rules(_program(right)) == []


def _program(example: str) -> str:
    """An example as a whole: a replica's step, or the code around one."""
    if "strategy.run" in example or "strategy.scope" in example or "experimental_run" in example:
        return step("loss = tf.nn.compute_average_loss(losses)", run=example)
    body = example.replace("per_example", "losses")
    return step(body, "return None\n")


@pytest.mark.parametrize("folder", sorted(FIXTURES.glob("*/after")), ids=lambda p: p.parent.name)
def test_rewritten_fixtures_have_no_finding(folder: Path) -> None:
    texts = {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.py")}
    assert scan_distribution(texts) == {}
