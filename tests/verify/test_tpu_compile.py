"""`tpu-compile:TYPE`: steps compiled for a TPU that is not here, and what stands in the way at the program's line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.tpu_env import required_compiler
from tests.verify.converted import FIXTURES
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.devices import TPU_TYPES
from towermigrate.verify.tpu import compiler
from towermigrate.verify.tpu.spec import compiler_environment
from towermigrate.verify.tree import original_and_rewritten

# ---- compiled for real ---------------------------------------------------------------------------

ACCEPTED = {
    "wgan_gp": ["train_critic_step", "train_generator_step"],
    "staged_gan": ["gen_only_train_step", "discm_only_train_step", "full_train_step"],
    "cifar_queue": ["train_step"],
}

PROGRAM = '''"""One stage on two towers."""

import numpy as np
import tensorflow as tf

NUM_TOWERS = 2


def model(x):
    w = tf.get_variable("w", [4, 3])
    h = tf.matmul(x, w)
    return h


def average_gradients(tower_grads):
    average = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        average.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return average


def main():
    rng = np.random.RandomState(7)
    opt = tf.train.MomentumOptimizer(0.01, 0.9)
    x = tf.placeholder(tf.float32, [None, 4])
    parts = tf.split(x, NUM_TOWERS)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_TOWERS):
            with tf.device("/gpu:%d" % i):
                with tf.name_scope("tower_%d" % i):
                    loss = tf.reduce_mean(tf.square(model(parts[i])))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
    train = opt.apply_gradients(average_gradients(tower_grads))
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            _, value = sess.run([train, loss], feed_dict={x: rng.normal(size=[8, 4])})
            print("step %d: %.6f" % (step, value))


if __name__ == "__main__":
    main()
'''


def original(folder: Path, body: str = "return h") -> Path:
    """A tree with the original, whose model ends in `body`."""
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM.replace("return h\n", body + "\n", 1), "utf-8")
    return folder


def by_hand(tmp_path: Path, body: str) -> tuple[Path, Path]:
    """The original, and its rewritten program with another end of the model, written by hand."""
    tree = original(tmp_path / "tree")
    (text,) = original_and_rewritten(tree)[1].values()
    assert text.count("    return h\n") == 1
    after = tmp_path / "after"
    after.mkdir()
    (after / "train.py").write_text(text.replace("    return h\n", f"    {body}\n"), "utf-8")
    return tree, after


def step_of(tree: Path, after: Path | None = None) -> tuple[dict[str, Any], str]:
    """What verify says of the only step on a v5e, and the text of the line that stands in the way."""
    options = VerifyOptions(
        tree, rewritten=after, devices=("tpu-compile:v5e",), tpu_python=required_compiler()
    )
    report = run_verify(options)
    assert report.error is None
    (run,) = json.loads(json.dumps(report.to_json(), allow_nan=False))["runs"]
    assert report.exit_code == (0 if run["compiled"]["compiles"] else 1)
    assert not report.equal
    (step,) = run["compiled"]["steps"]
    for each in step["blockers"]:
        assert each["file"] == "train.py"
    return step, step["blockers"][0]["source"] if step["blockers"] else ""


@pytest.mark.full
@pytest.mark.parametrize("name", ACCEPTED)
def test_every_stage_of_a_fixture_compiles(name: str) -> None:
    options = VerifyOptions(
        FIXTURES / name / "before",
        devices=("tpu-compile:v5e",),
        tpu_python=required_compiler(),
    )
    report = run_verify(options)
    document = report.to_json()

    assert (report.error, report.exit_code) == (None, 0), json.dumps(document, indent=1)
    # Nothing was compared, so nothing is said to be equal.
    assert document["equal"] is False
    assert set(document["levels"].values()) == {"not compared"}
    (run,) = document["runs"]
    assert run["equal"] is None and "nothing numerical was compared" in run["note"]
    steps = run["compiled"]["steps"]
    assert [step["step"] for step in steps] == ACCEPTED[name]
    for step in steps:
        sizes = step["hbm_bytes"]
        assert step["compiles"] and step["flops"] > 1000 and step["seconds"] > 0
        assert sizes["arguments"] > sizes["aliased"] > 0  # variables are updated where they are
        assert sizes["total"] == sum(sizes.values()) - sizes["total"] - 2 * sizes["aliased"]
        assert step["towers"] == 2


@pytest.mark.full
def test_an_operation_on_strings_is_named_at_its_line(tmp_path: Path) -> None:
    body = (
        "text = tf.strings.as_string(x)\n    return h * tf.reduce_mean(tf.strings.to_number(text))"
    )
    step, source = step_of(*by_hand(tmp_path, body))
    (first, *_) = step["blockers"]
    assert (first["operation"], first["line"]) == ("AsString", 13)
    assert source == "text = tf.strings.as_string(x)"


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "operation"),
    [
        ("return h + tf.reduce_sum(tf.range(tf.reduce_max(x)))", "Range"),
        ("return tf.boolean_mask(h, h[:, 0] > 0.0)", "Reshape"),
    ],
    ids=["a range up to a value", "the gradient of a mask"],
)
def test_a_shape_that_depends_on_values_is_named_at_its_line(
    tmp_path: Path, body: str, operation: str
) -> None:
    tree = original(tmp_path / "tree", body)
    step, source = step_of(tree)
    (first,) = step["blockers"]
    assert first["operation"] == operation and "depends on values" in first["why"]
    name = body.partition("(")[0].rpartition(" ")[2].rpartition(".")[2]
    assert source.startswith("return ") and name in source


@pytest.mark.full
def test_what_only_the_tpu_compiler_refuses_is_named_at_its_line(tmp_path: Path) -> None:
    # XLA on a CPU takes it.
    body = "return h * tf.cast(tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128)))[:, :3], tf.float32)"
    step, source = step_of(*by_hand(tmp_path, body))
    (first,) = step["blockers"]
    assert "c128" in first["why"] and source == body


@pytest.mark.full
def test_what_is_printed_is_left_out_and_sizes_of_values_may_be_bounded(tmp_path: Path) -> None:
    body = 'tf.print("h", h)\n    return h * tf.reduce_mean(tf.unique(tf.round(x)[:, 0])[0])'
    step, _ = step_of(*by_hand(tmp_path, body))
    assert step["compiles"] and step["left_out"] == ["print"]
    # Eight rows for two towers.
    assert (step["inputs"], step["towers"]) == (["float32[4, 4]"], 2)


@pytest.mark.full
def test_an_iterator_in_a_step_is_named_at_its_line(tmp_path: Path) -> None:
    rows = "tf.data.Dataset.from_tensors(np.ones([4, 4], np.float32)).repeat()"
    tree, after = by_hand(tmp_path, "return h")
    path = after / "train.py"
    text = path.read_text("utf-8").replace(
        "def step(x):", "def step(_):\n            x = next(rows)"
    )
    path.write_text(
        text.replace("    @variables.tower", f"    rows = iter({rows})\n    @variables.tower")
    )
    step, source = step_of(tree, after)
    assert step["blockers"][0]["operation"] == "IteratorGetNext" and source == "x = next(rows)"


@pytest.mark.full
def test_beside_numbers_it_is_part_of_the_verdict(tmp_path: Path) -> None:
    tree = original(tmp_path / "tree", "return tf.boolean_mask(h, h[:, 0] > 0.0)")
    devices = ("cpu:2", "tpu-compile:v5e", "tpu-compile:v6e")
    options = VerifyOptions(tree, devices=devices, steps=2, tpu_python=required_compiler())
    report = run_verify(options)
    assert (report.error, report.exit_code, report.equal) == (None, 1, False)
    (run,) = report.runs
    assert run.equal
    assert [each.verdict for each in report.compiled] == [
        "does not compile for v5e",
        "does not compile for v6e",
    ]


DOT = """module {{
  func.func @main(%a: tensor<{n}x{n}xf32>, %b: tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32> {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<{n}x{n}xf32>, tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
    %1 = mhlo.copy %0 : tensor<{n}x{n}xf32>
    return %1 : tensor<{n}x{n}xf32>
  }}
}}
"""


@pytest.mark.full
@pytest.mark.parametrize("name", TPU_TYPES)
def test_figures_are_those_of_the_program_and_memory_is_that_of_the_tpu(
    tmp_path: Path, name: str
) -> None:
    texts = [tmp_path / "small.mlir", tmp_path / "large.mlir"]
    for text, n in zip(texts, (512, 300_000), strict=True):
        text.write_text(DOT.format(n=n))
    job = {"topology": TPU_TYPES[name].topology, "texts": [str(text) for text in texts]}
    job_file = tmp_path / "job.json"
    job_file.write_text(json.dumps({**job, "outcome": str(tmp_path / "outcome.json")}))
    environment = compiler_environment(TPU_TYPES[name], tmp_path)
    script = Path(compiler.__file__)
    subprocess.run(
        [required_compiler(), script, job_file], env=environment, check=True, capture_output=True
    )
    small, large = json.loads((tmp_path / "outcome.json").read_text())["steps"]
    assert small["flops"] == 2 * 512**3
    assert small["hbm_bytes"]["arguments"] == 2 * 4 * 512**2
    assert small["hbm_bytes"]["outputs"] == 4 * 512**2
    # Three times 360 GB.
    assert not large["compiles"] and "HBM" in large["said"]
