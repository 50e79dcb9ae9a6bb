"""What single forms become: a line of the small program changed, and lines that the output must hold."""

from __future__ import annotations

import pytest

from tests.recognize.programs import AVERAGE, emit, program


def converted(text: str) -> str:
    emission = emit(text)
    (result,) = emission.results
    assert result.status == "converted", [f.message for f in result.findings]
    return emission.sources["program.py"]


def findings(text: str) -> set[str]:
    (result,) = emit(text).results
    return {f.rule for f in result.findings}


FORMS = [
    pytest.param(
        (),
        [
            "    strategy = tm.tower_strategy(num_gpus)\n    with strategy.scope():\n",
            "    @variables.tower\n    def tower(x):\n",
            "            grads = tm.tower_gradients(opt, loss, variables.trainable())\n",
            "            opt.apply_gradients(grads)\n            return loss\n",
            "        return tm.last_tower(strategy.run(step, args=(x,)))\n",
            "        value = train_step(*tm.shard_batch(np.ones([4, 3]), specs=(x,))).numpy()\n",
        ],
        id="the small program",
    ),
    pytest.param(
        (
            ("parts = tf.split(x, num_gpus)\n", "\n"),
            ("model(parts[i])", "model(x[i * 2:(i + 1) * 2])"),
        ),
        ["*tm.shard_batch(np.ones([4, 3]), batch_size=2, specs=(x,))"],
        id="slices",
    ),
    pytest.param(
        (("parts = tf.split(x, num_gpus)\n", "\n"), ("model(parts[i])", "model(x)")),
        ["*tm.same_batch(np.ones([4, 3]), specs=(x,))"],
        id="the same placeholder in every tower",
    ),
    pytest.param(
        (("compute_gradients(loss)", "compute_gradients(loss, var_list=tf.trainable_variables('model'))"),),
        ["tm.tower_gradients(opt, loss, variables.trainable('model'))"],
        id="scoped var_list",
    ),
    pytest.param(
        (
            ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"),
            ("            tower_grads.append(grads)\n", "            tower_grads.append(grads)\n            losses.append(loss)\n"),
            ("    train_op = ", "    mean_loss = tf.add_n(losses) / num_gpus\n    train_op = "),
            ("[train_op, loss]", "[train_op, mean_loss]"),
        ),
        [
            "            loss = tower(x)\n",
            "            return loss\n        return tm.mean_over_towers(strategy.run(step, args=(x,)))\n",
        ],
        id="the mean of the towers' losses",
    ),
    pytest.param(
        (
            ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"),
            ("            tower_grads.append(grads)\n", "            tower_grads.append(grads)\n            losses.append(loss)\n"),
            ("    train_op = ", "    mean_loss = tf.add_n(losses) / 3\n    train_op = "),
            ("[train_op, loss]", "[train_op, mean_loss]"),
        ),
        [
            "losses = tm.each_tower(strategy.run(step, args=(x,)))\n        mean_loss = tf.add_n(losses) / 3\n",
            "tm.tower_gradients(opt, loss, variables.trainable())",
        ],
        id="a sum over the towers that is no mean",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if 'w' in v.op.name]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        [
            "chosen = [v for v in variables.trainable() if 'w' in tm.op_name(v)]",
            "tm.tower_gradients(opt, loss, chosen)",
        ],
        id="var_list by name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if 'w' in v.name]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        ["chosen = [v for v in variables.trainable() if 'w' in v.name]"],
        id="var_list by a part of the whole name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if v.name.startswith('w')]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        ["chosen = [v for v in variables.trainable() if tm.op_name(v).startswith('w')]"],
        id="var_list by the beginning of the whole name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if 'w' not in v.name or 'b' in v.name]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        ["if 'w' not in v.name or 'b' in v.name]"],
        id="var_list by two parts of the whole name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if v.name == 'w:0']\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        None,
        id="var_list by the whole name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if 'w:' in v.name]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        None,
        id="var_list by the end of the whole name",
    ),
    pytest.param(
        (
            (
                "            grads = opt.compute_gradients(loss)",
                "            chosen = [v for v in tf.trainable_variables() if v.name.endswith('w:0')]\n"
                "            grads = opt.compute_gradients(loss, chosen)",
            ),
        ),
        None,
        id="var_list by another end of the whole name",
    ),
    pytest.param(
        (
            (
                "    train_op = ",
                "    clipped, _ = tf.clip_by_global_norm([g for g, _ in grads], 1.0)\n"
                "    grads = list(zip(clipped, [v for _, v in grads]))\n    train_op = ",
            ),
        ),
        [
            "grads = tm.average_gradients(opt.compute_gradients(loss, variables.trainable()))",
            "clipped, _ = tf.clip_by_global_norm([g for g, _ in grads], 1.0)",
            "tm.apply_averaged(opt, grads)",
        ],
        id="clipping after the average",
    ),
    pytest.param(
        (("_, value = sess.run([train_op, loss]", "value = sess.run([loss]"),
         ("            print(value)", "            sess.run(train_op, feed_dict={x: np.ones([4, 3])})"),),
        [
            "value = [loss_step(*tm.shard_batch(np.ones([4, 3]), specs=(x,))).numpy()]",
            "    @tf.function(autograph=False)\n    def loss_step(x):\n        return tm.last_tower(strategy.run(tower, args=(x,)))\n",
            "train_step(*tm.shard_batch(np.ones([4, 3]), specs=(x,)))\n",
        ],
        id="a list of one fetch stays a list",
    ),
    pytest.param(
        (("            print(value)\n", "            print(value)\n        tf.train.Saver().save(sess, 'x')\n"),),
        ["tm.tf1_saver(variables, optimizers=[opt])\n", "    saver.save('x')\n"],
        id="a saver without a name",
    ),
    pytest.param(
        (
            ("    with tf.Session() as sess:\n", "    saver = tf.train.Saver(max_to_keep=3)\n    with tf.Session() as sess:\n"),
            ("            print(value)\n", "            print(value)\n        saver.save(sess, 'x', global_step=3)\n"),
        ),
        [
            "    tm.create_variables(train_step, x)\n    saver = tm.tf1_saver(variables, optimizers=[opt], max_to_keep=3)\n",
            "    saver.save('x', global_step=3)\n",
        ],
        id="saver",
    ),
    pytest.param(
        (
            (
                "    train_op = opt.apply_gradients(grads)",
                "    noisy = [(g + tf.random_normal(g.shape), v) for g, v in grads]\n"
                "    train_op = opt.apply_gradients(noisy)",
            ),
        ),
        None,
        id="noise on the averaged gradients is refused",
    ),
    pytest.param(
        (("            loss = tf.reduce_mean", "            # The whole of it.\n            loss = tf.reduce_mean"),),
        ["        # The whole of it.\n        loss = tf.reduce_mean"],
        id="comments in the tower stay",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "lines"), FORMS)
def test_form(changes: tuple[tuple[str, str], ...], lines: list[str] | None) -> None:
    text = program(*changes)
    if lines is None:
        (result,) = emit(text).results
        assert result.status == "refused"
        return
    output = converted(text)
    for line in lines:
        assert line in output, output
    for leftover in (
        "def average_gradients",
        "tower_grads",
        "tf.device",
        "sess",
        "tf.split",
        "placeholder",
    ):
        assert leftover not in output, leftover


def test_dropping_none_becomes_the_skip_policy() -> None:
    text = program(
        (
            AVERAGE,
            AVERAGE.replace(
                "            grads.append(tf.expand_dims(g, 0))\n",
                "            if g is None:\n                continue\n            grads.append(tf.expand_dims(g, 0))\n"
                "        if not grads:\n            continue\n",
            ),
        )
    )
    assert 'variables.trainable(), none="skip")' in converted(text)


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        pytest.param("from program import average_gradients\n", True, id="imports it"),
        pytest.param("import program as p\np.average_gradients([])\n", True, id="imports the file"),
        pytest.param(
            "import sys\nsys.path.append('../src')\nfrom program import average_gradients\n",
            True,
            id="from where sys.path leads",
        ),
        pytest.param(
            "import importlib\nimportlib.import_module('program').average_gradients([])\n",
            True,
            id="imports it by its name",
        ),
        pytest.param(
            "# The program has the same.\ndef average_gradients(grads): pass\n", False, id="words"
        ),
    ],
)
def test_an_average_that_others_import_stays(other: str, stays: bool) -> None:
    sources = {"src/program.py": program(), "tools/other.py": f"import tensorflow\n{other}"}
    from towermigrate.emit import emit_tree
    from towermigrate.recognize import recognize_tree

    emission = emit_tree(sources, recognize_tree(sources))
    assert ("def average_gradients" in emission.sources["src/program.py"]) is stays


def test_removed_comments_are_listed() -> None:
    text = program(
        ("    with tf.Session() as sess:\n", "    with tf.Session() as sess:\n        # Set up.\n")
    )
    (result,) = emit(text).results
    (lost,) = [f for f in result.findings if f.rule == "TM305"]
    assert "# Set up." in lost.message


def test_emitting_the_output_again_changes_nothing() -> None:
    output = converted(program())
    assert emit(output).sources == {}
    assert emit(output).results == ()
