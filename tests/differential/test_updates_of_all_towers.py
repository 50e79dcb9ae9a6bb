"""Batch norm's updates of all towers, `tf.get_collection(UPDATE_OPS)` without a scope: what loop style takes, and what not.

Training reads no moving averages, so what most rows print and save is one number. What the averages become had no order
in TensorFlow 1: a program that shows them is compared with all that it could be.
"""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.differential import running, trying
from tests.differential.loop_programs import program
from tests.differential.spellings import all_do_the_same, asked_of, none_does_anything_else
from tests.differential.test_fed_training import (
    APPLY,
    FED,
    FUSED,
    HOLDER,
    LAYER,
    NORMAL,
    OUT,
    PRINT,
    case,
    other,
)
from towermigrate.rewrite import rewrite_tree

READ = "    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n"
WAIT = "    with tf.control_dependencies(updates):\n    "
NORM = (OUT, NORMAL.replace("training=training", "training=True"))
SAVED = ("saver = tf.train.Saver()", "saver = tf.train.Saver(tf.trainable_variables())")
ALONE = APPLY.replace("train_op", "apply_op")
LOOK = "            print('%.5f' % sess.run(loss, {X: bx, Y: by, training: True}))\n"
IN_FUNCTION = (OUT, OUT.replace("net(x)", "normal(net(x))"))
FUNCTION = ("def net(x):\n", "def normal(x):\n    return tf.layers.batch_normalization(x, training=True, name='bn')\n\n\ndef net(x):\n")  # fmt: skip
SLIM = ("import tensorflow as tf\n", "import tensorflow as tf\nimport tf_slim as slim\n")  # fmt: skip
OF_SLIM = (OUT, OUT.replace("net(x)", "slim.batch_norm(net(x), is_training=True, scope='bn')"))
EVALUATION = (
    "    saver =",
    "    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n"
    "        looked = tf.reduce_mean(tf.layers.batch_normalization(net(X), training=TRAINS, name='bn'))\n"
    "    saver =",
)
LOOKED = (PRINT, PRINT + "            print('%.5f' % sess.run(looked, {X: bx}))\n")


TAKEN = [
    case("waited for by its name", NORM, SAVED, (APPLY, READ + WAIT + APPLY)),
    case("waited for where it is read", NORM, SAVED, (APPLY, "    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n    " + APPLY)),
    case("by a text", NORM, SAVED, (APPLY, READ.replace("tf.GraphKeys.UPDATE_OPS", "'update_ops'") + WAIT + APPLY)),
    case("by a keyword", NORM, SAVED, (APPLY, READ.replace("tf.GraphKeys", "key=tf.GraphKeys") + WAIT + APPLY)),
    case("in a group", NORM, SAVED, (APPLY, READ + ALONE + "    train_op = tf.group(apply_op, *updates)\n")),
    case("read in a group", NORM, SAVED, (APPLY, ALONE + "    train_op = tf.group(apply_op, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))\n")),
    case("applied and read in a group", NORM, SAVED, (APPLY, "    train_op = tf.group(opt.apply_gradients(grads, global_step=step_count), *tf.get_collection(tf.GraphKeys.UPDATE_OPS))\n")),
    case("a group of its own", NORM, SAVED, (APPLY, ALONE + "    update_op = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))\n    train_op = tf.group(apply_op, update_op)\n")),
    case("a group that is waited for", NORM, SAVED, (APPLY, "    update_op = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))\n    with tf.control_dependencies([update_op]):\n    " + APPLY)),
    case("waited for by what does nothing", NORM, SAVED, (APPLY, READ + ALONE + "    with tf.control_dependencies(updates + [apply_op]):\n        train_op = tf.no_op(name='train')\n")),
    case("fused", (OUT, FUSED.replace("training=training", "training=True")), SAVED, (APPLY, READ + WAIT + APPLY)),
    case("fed", HOLDER, LAYER, FED, SAVED, (APPLY, READ + WAIT + APPLY), (PRINT, PRINT + LOOK)),
    case("fed, fused", HOLDER, (OUT, FUSED), FED, SAVED, (APPLY, READ + WAIT + APPLY), (PRINT, PRINT + LOOK)),
    case("slim's", SLIM, OF_SLIM, SAVED, (APPLY, READ + WAIT + APPLY)),
    case("a function of the model", IN_FUNCTION, FUNCTION, SAVED, (APPLY, READ + WAIT + APPLY)),
    case("an evaluation that surely trains nothing", NORM, SAVED, (APPLY, READ + WAIT + APPLY), (EVALUATION[0], EVALUATION[1].replace("TRAINS", "False"))),
]  # fmt: skip

LEFT = [
    other("read in front of the towers", "TM207", NORM, SAVED, ("    tower_grads = []\n", "    tower_grads = []\n" + READ), (APPLY, WAIT + APPLY)),
    other("of one tower and of all", "TM207", NORM, SAVED, (APPLY, READ + READ.replace("updates", "last").replace("UPDATE_OPS", "UPDATE_OPS, scope") + "    with tf.control_dependencies(last):\n        updated = tf.group(*updates)\n    with tf.control_dependencies([updated]):\n    " + APPLY)),
    other("chosen by their names", "TM207", NORM, SAVED, (APPLY, "    updates = [u for u in tf.get_collection(tf.GraphKeys.UPDATE_OPS) if 'bn' in u.name]\n" + WAIT + APPLY)),
    other("of a scope that no tower has", "TM207", NORM, SAVED, (APPLY, READ.replace("UPDATE_OPS", "UPDATE_OPS, 'tower_0'") + WAIT + APPLY)),
    other("an evaluation that may train", "TM207", NORM, SAVED, (APPLY, READ + WAIT + APPLY), (EVALUATION[0], EVALUATION[1].replace("TRAINS", "len(drawn) > 1")), LOOKED),
    other("an evaluation that trains", "TM207", NORM, SAVED, (APPLY, READ + WAIT + APPLY), (EVALUATION[0], EVALUATION[1].replace("TRAINS", "True")), LOOKED),
    other("twice in a tower", "TM207", (OUT, "                    out = normal(normal(net(x)))\n"), FUNCTION, ("name='bn')\n\n\ndef net", "name='bn', reuse=tf.AUTO_REUSE)\n\n\ndef net"), SAVED, (APPLY, READ + WAIT + APPLY)),
    other("more than batch norm's", "TM219", NORM, SAVED, ("                    loss = tf.reduce_mean", "                    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.identity(out))\n                    loss = tf.reduce_mean"), (APPLY, READ + WAIT + APPLY)),
]  # fmt: skip

FOOLING = [
    case("made of what was read before", NORM, SAVED, (APPLY, READ + "    updates = updates[:1]\n" + WAIT + APPLY)),
    case("emptied", NORM, SAVED, (APPLY, READ + "    del updates[:]\n" + WAIT + APPLY)),
    case("waited for by the loss", NORM, SAVED, (APPLY, READ + APPLY + WAIT + "    loss = tf.identity(loss)\n")),
    case("run apart", NORM, SAVED, (APPLY, "    updates = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))\n" + APPLY), (PRINT, PRINT + "            sess.run(updates, {X: bx * 2, Y: by})\n")),
    case("counted", NORM, SAVED, (APPLY, READ + "    print(len(updates))\n" + WAIT + APPLY)),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_that_is_meant_to_fool_does_anything_else() -> None:
    none_does_anything_else([*LEFT[4:6], *FOOLING])


@pytest.mark.full
def test_the_averages_of_one_tower_are_the_same() -> None:
    """There they have an order, and are saved; an update that is lost or made twice would show."""
    rows = [
        case(str(one.id), *(each for each in one.values[0] if each != SAVED), ("range(2)", "range(1)"))
        for one in TAKEN
    ]  # fmt: skip
    all_do_the_same(rows, towers=1)


@pytest.mark.full
def test_averages_become_what_one_order_of_the_updates_gives(tmp_path: Path) -> None:
    """The last tower's update first, each from what the one before it left; the original's may be in any order, or at once."""
    pytest.importorskip("tensorflow")
    files = program(NORM, (APPLY, READ + WAIT + APPLY), ("range(4)", "range(1)"))
    x = ((np.arange(12).reshape(4, 3) % 7) * 0.1) @ np.linspace(-0.4, 0.6, 3) + 0.1
    first, last = x[:2].mean(), x[2:].mean()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=running.prepare) as pool:
        verdict = pool.submit(
            trying.try_program, files, 2, trying.Wish(), tmp_path / "kept"
        ).result()
    assert verdict.style == "loop", verdict
    saved = {
        each.stem: pickle.loads(each.read_bytes())["checkpoints"]["ckpt/model.index"]
        for each in (tmp_path / "kept").glob("*.pickle")
    }
    means = {name: float(one["bn/moving_mean"][0]) for name, one in saved.items()}
    original = means.pop("original")
    possible = [0.25 * last + 0.5 * first, 0.25 * first + 0.5 * last, 0.5 * first + 0.5 * last]
    # Some roundings of float32 (6e-8) of numbers below 1.
    assert min(abs(original - each) for each in possible) < 1e-6
    assert list(means.values()) == [pytest.approx(possible[0], abs=1e-6)]


def test_the_report_says_that_there_is_an_order_now() -> None:
    files = program(NORM, (APPLY, READ + WAIT + APPLY))
    [found] = [each for each in rewrite_tree(files).programs[0].findings if each.rule == "TM316"]
    assert files["train.py"].splitlines()[found.line - 1].strip() == READ.strip()
    alone = rewrite_tree(program(NORM, (APPLY, READ.replace("OPS", "OPS, scope") + WAIT + APPLY)))
    assert "TM316" not in {each.rule for each in alone.programs[0].findings}
