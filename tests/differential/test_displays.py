"""Updates and means that stand in a dict or a list without a name: displays that loop style takes, and neighbours it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPENDED = "                    tower_grads.append(grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
START = "    tower_grads = []\n"
FEED = ", feed_dict={X: bx, Y: by})"
UPDATE = "opt.apply_gradients(grads, global_step=step_count)"


def made(text: str, fetched: str) -> tuple[Change, ...]:
    """The update as an entry of a display, and a run that picks it out of there."""
    run = f"            _, value = sess.run([{fetched}]{FEED}\n"
    filled = APPENDED + "                    losses.append(loss)\n"
    return (START, START + "    losses = []\n"), (APPENDED, filled), (APPLIED, text), (RUN, run)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("that grows", *made(f"    ops = {{'train': {UPDATE}}}\n    ops['loss'] = loss\n", "ops['train'], ops['loss']")),
    case("beside more", *made(f"    ops = {{'train': {UPDATE}, 'twice': loss * 2.0}}\n", "ops['train'], ops['twice']")),
    case("a dict of one", *made(f"    ops = {{'train': {UPDATE}}}\n", "ops['train'], loss")),
    case("a dict with the mean", *made(f"    ops = {{'train': {UPDATE}, 'loss': tf.reduce_mean(losses)}}\n", "ops['train'], ops['loss']")),
    case("over several lines", *made(f"    ops = {{\n        'train': {UPDATE},\n        'loss': tf.reduce_mean(losses),\n    }}\n", "ops['train'], ops['loss']")),
    case("beside a name", *made(f"    mean = tf.reduce_mean(losses)\n    ops = {{'loss': mean, 'train': {UPDATE}}}\n", "ops['train'], ops['loss']")),
    case("two dicts", *made(f"    ops = {{'main': {UPDATE}}}\n    means = {{'main': tf.reduce_mean(losses)}}\n", "ops['main'], means['main']")),
    case("a key that is no name", *made(f"    ops = {{'train-op': {UPDATE}}}\n", "ops['train-op'], loss")),
    case("a name that is taken", *made(f"    train_op = 1\n    ops = {{'train': {UPDATE}}}\n", "ops['train'], loss"), ("        print('draws'", "        print(train_op)\n        print('draws'")),
    case("of a list", *made(f"    ops = [{UPDATE}]\n", "ops[0], loss")),
]  # fmt: skip

LEFT = [
    other("two updates in one", "TM204", *made(f"    ops = {{'train': {UPDATE}, 'more': {UPDATE}}}\n", "ops['train'], loss")),
    other("a key twice", "TM204", *made(f"    ops = {{'train': {UPDATE}, 'train': loss}}\n", "ops['train'], loss")),
    other("a key that is computed", "TM204", *made(f"    ops = {{'tr' + 'ain': {UPDATE}}}\n", "ops['train'], loss")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
