"""Summaries in front of the towers that no run fetches, and collections by TensorFlow's names: what loop style takes, and what not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RATE = "    lr = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n"
LOSS = "loss = tf.reduce_mean(tf.square(out - y))\n"
IN_TOWER = "                    "
SAVER = "    saver = tf.train.Saver()\n"
SHOWN = "            print('step', step"


def front(text: str) -> Change:
    """A rate, and statements behind it, in front of the towers."""
    return OPT, RATE + text + OPT.replace("0.1,", "lr,")


def tower(text: str) -> Change:
    """What a tower does with its loss."""
    return LOSS, LOSS + "".join(IN_TOWER + line + "\n" for line in text.split("\n"))


def written(fetched: str) -> tuple[Change, ...]:
    """A summary that is written in every step."""
    return (
        (SAVER, "    writer = tf.summary.FileWriter('log')\n" + SAVER),
        (SHOWN, f"            writer.add_summary(sess.run({fetched}, {{X: bx, Y: by}}), step)\n{SHOWN}"),
    )  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


UNREAD = front("    tf.summary.scalar('rate', lr)\n")
ADDED = "tf.add_to_collection({0}, loss)\nloss = tf.add_n(tf.get_collection({1}, scope))"

TAKEN = [
    case("of the rate", UNREAD),
    case("with a space in its tag", front("    tf.summary.scalar('learning rate', lr)\n")),
    case("beside one of the towers that is merged", UNREAD, tower("tf.summary.scalar('total', loss)"), (SAVER, "    merged = tf.summary.merge_all()\n" + SAVER), *written("merged")),
    case("beside one of a tower", UNREAD, tower("seen = tf.summary.scalar('total', loss)"), *written("seen")),
    case("losses by TensorFlow's name", tower(ADDED.format(*["tf.GraphKeys.LOSSES"] * 2))),
    case("losses by both names", tower(ADDED.format("tf.GraphKeys.LOSSES", "'losses'"))),
    case("losses by both names, the other way round", tower(ADDED.format("'losses'", "tf.GraphKeys.LOSSES"))),
]  # fmt: skip

LEFT = [
    other("whose tag another has behind the towers", "TM211", UNREAD, (SAVER, "    seen = tf.summary.scalar('rate', loss)\n" + SAVER), *written("seen")),
    other("whose tag a tower has", "TM211", UNREAD, tower("seen = tf.summary.scalar('rate', loss)"), *written("seen")),
    other("beside a tag that is computed", "TM211", UNREAD, (SAVER, "    tag = 'ra' + 'te'\n    seen = tf.summary.scalar(tag, loss)\n" + SAVER), *written("seen")),
    other("that a collection is asked for", "TM219", UNREAD, (SAVER, "    for each in tf.get_collection('summaries'):\n        print(each.name)\n" + SAVER)),
    other("of what it computes itself", "TM211", front("    tf.summary.scalar('rate', tf.sqrt(lr))\n")),
    other("that a session writes by itself", "TM212", UNREAD, ("    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n        sess.run(tf.global_variables_initializer())\n", "    with tf.train.MonitoredTrainingSession(checkpoint_dir='ckpt') as sess:\n"), ("        saver.save(sess, 'ckpt/model')\n", "")),
    other("losses behind the towers", "TM219", tower("tf.add_to_collection(tf.GraphKeys.LOSSES, loss)"), (SAVER, "    total = tf.add_n(tf.get_collection(tf.GraphKeys.LOSSES))\n" + SAVER)),
    other("another collection of TensorFlow's", "TM219", tower("tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, loss)")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
