"""Batch norm's updates kept in lists, waited for by gradients, or fetched: loop style, and neighbours that must not be.

What the averages become had no order in TensorFlow 1 where there are several towers, so that those programs save only what is
trained. All of them also run with one tower, where the averages are one number, and are compared.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import all_do_the_same, asked_of_all, left, taken
from tests.differential.test_fed_training import APPLY
from tests.differential.test_updates_of_all_towers import ALONE, NORM, READ, SAVED

GRADS = "                    grads = opt.compute_gradients(loss)\n"
START = "    tower_grads = []\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MARGIN = " " * 20
OWN = READ.strip().replace("UPDATE_OPS", "UPDATE_OPS, scope")
WAITING = f"{MARGIN}with tf.control_dependencies(updates):\n    {GRADS}"
WAITED = (GRADS, f"{MARGIN}{OWN}\n{WAITING}")
BEGUN = (START, START + "    updates = []\n")
EACH = (GRADS, f"{GRADS}{MARGIN}{OWN.replace('updates =', 'updates +=')}\n")
WAIT = (APPLY, "    with tf.control_dependencies(updates):\n    " + APPLY)
INNER = (f"{MARGIN}out = tf.layers", f"{MARGIN}with tf.name_scope('inner') as scope:\n{MARGIN}    x = tf.layers.batch_normalization(x, training=True, momentum=0.5, name='bn0')\n{MARGIN}out = tf.layers")  # fmt: skip
FETCHED = (RUN, RUN.replace("[train_op, loss]", "[train_op, loss, updates]").replace("_, value", "_, value, _"))  # fmt: skip


def row(name: str, *changes: Change) -> Any:
    return taken(name, NORM, SAVED, *changes)


def neighbour(name: str, rule: str, *changes: Change) -> Any:
    return left(name, rule, NORM, SAVED, *changes)


TAKEN = [
    row("added to a list", (APPLY, READ + ALONE + "    train_op = tf.group([apply_op] + updates)\n")),
    row("added to a list, with a star", (APPLY, READ + ALONE + "    train_op = tf.group(*(updates + [apply_op]))\n")),
    row("appended to", (APPLY, ALONE + READ + "    updates.append(apply_op)\n    train_op = tf.group(*updates)\n")),
    row("waited for by the gradients", WAITED),
    row("waited for by the gradients where it is read", (GRADS, WAITED[1].replace(f"{MARGIN}{OWN}\n", "").replace("(updates)", "(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope))"))),
    row("waited for by the gradients, of all so far", (GRADS, WAITED[1].replace(", scope", ""))),
    row("of each tower, in a list", BEGUN, EACH, WAIT),
    row("of each tower, extending a list", BEGUN, (GRADS, EACH[1].replace("updates +=", "updates.extend(").replace("scope)", "scope))")), WAIT),
    row("of each tower, in a group", BEGUN, EACH, (APPLY, ALONE + "    train_op = tf.group(apply_op, *updates)\n")),
    row("fetched", (APPLY, APPLY + READ), FETCHED),
    row("fetched, read in front", (APPLY, READ + APPLY), FETCHED),
    row("fetched in the middle", (APPLY, READ + APPLY), (RUN, RUN.replace("[train_op, loss]", "[train_op, updates, loss]").replace("_, value", "_, _, value"))),
    row("fetched first", (APPLY, READ + APPLY), (RUN, RUN.replace("[train_op, loss]", "[updates, train_op, loss]").replace("_, value", "_, _, value"))),
    row("fetched, and the value apart", (APPLY, READ + APPLY), (RUN, "            sess.run([train_op, updates], feed_dict={X: bx, Y: by})\n            value = sess.run(loss, feed_dict={X: bx, Y: by})\n")),
]  # fmt: skip

LEFT = [
    neighbour("the loss waits", "TM207", (GRADS, f"{MARGIN}{OWN}\n{MARGIN}with tf.control_dependencies(updates):\n{MARGIN}    loss = tf.identity(loss)\n{GRADS}")),
    neighbour("waited for by gradients that are shown", "TM207", WAITED, (APPLY, APPLY + "    norm = tf.global_norm([g for g, _ in grads])\n"), (RUN, RUN + "            print('%.5f' % sess.run(norm, {X: bx, Y: by}))\n")),
    neighbour("fetched by one run of two", "TM209", (APPLY, READ + APPLY), (RUN, FETCHED[1] + "            sess.run(train_op, {X: bx, Y: by})\n")),
    neighbour("fetched alone", "TM209", (APPLY, READ + APPLY), (RUN, RUN + "            sess.run(updates, {X: bx, Y: by})\n")),
    neighbour("fetched and read", "TM209", (APPLY, READ + APPLY), (RUN, RUN.replace("[train_op, loss]", "[train_op, loss, updates]").replace("_, value", "_, value, moved") + "            print(moved)\n")),
    neighbour("gradients that wait for a part's", "TM207", INNER, WAITED),
    neighbour("a part's, of each tower", "TM207", INNER, BEGUN, EACH, WAIT),
    neighbour("gradients that wait for no scope's", "TM207", (GRADS, WAITED[1].replace("UPDATE_OPS, scope", "UPDATE_OPS, 'nothing'"))),
    neighbour("of the first towers", "TM207", BEGUN, (GRADS, f"{GRADS}{MARGIN}if i == 0:\n    {EACH[1][len(GRADS):]}"), WAIT),
    neighbour("a list that is counted", "TM223", BEGUN, EACH, (WAIT[0], "    print(len(updates))\n" + WAIT[1])),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)


@pytest.mark.full
def test_the_averages_of_one_tower_are_the_same() -> None:
    rows = [
        taken(str(one.id), *(each for each in one.values[0] if each != SAVED), ("range(2)", "range(1)"))
        for one in TAKEN
    ]  # fmt: skip
    all_do_the_same(rows, towers=1)
