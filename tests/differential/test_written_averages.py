"""Averages written out behind the towers, and values returned without a name: spellings that loop style takes, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

CALL = "    grads = average_gradients(tower_grads)\n"
DEF = "def batch(rows):\n"
TRAIN = "def train():\n"
SAVER = "    saver = tf.train.Saver()\n"
BEGIN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
MAIN = "if __name__ == '__main__':\n    train()\n"
PAIRS = "    for pairs in zip(*tower_grads):\n"
MEAN = "        g = tf.reduce_mean(tf.stack([each for each, _ in pairs], 0), 0)\n"
APPEND = "        grads.append((g, pairs[0][1]))\n"
LOOP = "    grads = []\n" + PAIRS + MEAN + APPEND
FILLED = """\
    grads = []
    for grad_and_vars in zip(*tower_grads):
        each_grads = []
        for grad, var in grad_and_vars:
            if grad is None:
                grad = tf.zeros_like(var)
            each_grads.append(tf.expand_dims(grad, 0))
        mean = tf.reduce_mean(tf.concat(each_grads, 0), 0)
        grads.append((mean, grad_and_vars[0][1]))
"""


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def written(text: str) -> Change:
    return CALL, text


def deeper(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def apart(returned: str, bound: str) -> tuple[Change, Change]:
    """The builder's own function, which returns what is run."""
    return (
        (TRAIN, "def build():\n"),
        (
            SAVER + BEGIN,
            f"    return {returned}\n\n\n{TRAIN}    {bound} = build()\n" + SAVER + BEGIN,
        ),
    )


def display(
    value: str, over: str = "gv in zip(*tower_grads)", variable: str = "gv[0][1]"
) -> Change:
    """The average as a comprehension where it is used."""
    return written(f"    grads = [({value}, {variable}) for {over}]\n")


def function(value: str) -> Change:
    """The average as a comprehension of a function."""
    text = f"def mean_of(tower_grads):\n    return [({value}, gv[0][1]) for gv in zip(*tower_grads)]\n\n\n"
    return DEF, text + DEF


EACH = "[g for g, _ in gv]"
NAMED = (
    ("        for i in range(2):\n", "        for i in range(NUM):\n"),
    ("drawn = [0]\n", "drawn = [0]\nNUM = 2\n"),
)
BY_FUNCTION = written("    grads = mean_of(tower_grads)\n")

LOOKED_UP: tuple[Change, ...] = (
    ("    return tf.matmul(x, w) + b\n", "    rows = tf.get_variable('rows', [7, 1], initializer=init(7, 1))\n    return tf.matmul(x, w) + b + tf.nn.embedding_lookup(rows, tf.cast(x[:, 0] * 10, tf.int32))\n"),
)  # fmt: skip


TWICE: Change = ("drawn[0] % 7)", "drawn[0] % 3)")
CONTROLLED: Change = (
    "tf.nn.embedding_lookup(rows, tf.cast(x[:, 0] * 10, tf.int32))",
    "tf.cond(x[0, 0] > 0.2, lambda: tf.gather(rows, tf.cast(x[:, 0] * 10, tf.int32)), lambda: 2 * tf.gather(rows, tf.cast(x[:, 1] * 10, tf.int32)))",
)
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"


def sparse(text: str, before: str = "") -> tuple[Change, ...]:
    """An average of which a part is of IndexedSlices, by a function of its own."""
    own = "def mean_of(tower_grads):\n    grads = []\n    for pairs in zip(*tower_grads):\n"
    own += (
        deeper(deeper(text)) + "        grads.append((grad, pairs[0][1]))\n    return grads\n\n\n"
    )
    return (*LOOKED_UP, (DEF, before + own + DEF), BY_FUNCTION)


JOINED = """\
if isinstance(pairs[0][0], tf.IndexedSlices):
    values = tf.concat([g.values for g, _ in pairs], 0) / len(pairs)
    indices = tf.concat([g.indices for g, _ in pairs], 0)
    grad = tf.IndexedSlices(values, indices, dense_shape=pairs[0][0].dense_shape)
else:
    grad = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)
"""
UNIQUE = """\
def unique_rows(values, indices):
    unique, places = tf.unique(indices)
    return tf.unsorted_segment_sum(values, places, tf.shape(unique)[0]), unique


"""
ONCE = JOINED.replace(
    "    grad = tf.Ind", "    values, indices = unique_rows(values, indices)\n    grad = tf.Ind"
)
DENSE = """\
dense = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g, _ in pairs]
grad = tf.add_n(dense) / len(dense)
"""
SUM = "grad = tf.add_n([g for g, _ in pairs])\n"
CLIPPED = (
    "    train_op = opt",
    "    grads = [(tf.clip_by_norm(g, 0.1), v) for g, v in grads]\n    train_op = opt",
)

TAKEN = [
    case("a comprehension, the sum", display(f"tf.add_n({EACH})")),
    case("a function, the sum", function(f"tf.add_n({EACH})"), BY_FUNCTION),
    case("a function, the sum, clipped", function(f"tf.add_n({EACH})"), BY_FUNCTION, CLIPPED),
    case("rows looked up", *LOOKED_UP),
    case("rows looked up twice", *LOOKED_UP, TWICE),
    case("rows times a number looked up", *LOOKED_UP, ("embedding_lookup(rows,", "embedding_lookup(rows * 2.0,")),
    case("rows looked up by another name", *LOOKED_UP, ("tf.nn.embedding_lookup(", "lookup("), ("drawn = [0]\n", "drawn = [0]\nlookup = tf.gather\n")),
    case("rows looked up in control flow, stacked", *LOOKED_UP, CONTROLLED),
    case("rows looked up, clipped", *LOOKED_UP, CLIPPED),
    case("rows looked up, joined", *sparse(JOINED)),
    case("rows looked up, joined, each row once", *sparse(ONCE, UNIQUE)),
    case("rows looked up, made dense", *sparse(DENSE)),
    case("rows looked up, made dense, clipped", *sparse(DENSE), CLIPPED),
    case("rows looked up, made dense by a function", *sparse("grad = tf.reduce_mean(tf.stack([dense(g) for g, _ in pairs]), 0)\n", "def dense(g):\n    return tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g\n\n\n")),
    case("rows looked up, the sum", *sparse(SUM)),
    case("rows looked up, joined, the sum", *sparse(JOINED.replace(" / len(pairs)", "").replace("reduce_mean", "reduce_sum"))),
    case("a comprehension", display(f"tf.reduce_mean({EACH}, 0)")),
    case("a comprehension, stacked", display(f"tf.reduce_mean(tf.stack({EACH}, axis=0), axis=0)")),
    case("a comprehension, by the number of the gradients", display(f"tf.add_n({EACH}) / len(gv)")),
    case("a comprehension, by a number", display(f"tf.add_n({EACH}) / 2")),
    case("a comprehension, by a float", display("sum(g for g, _ in gv) / 2.0")),
    case("a comprehension, half of it", display(f"tf.add_n({EACH}) * 0.5")),
    case("a comprehension, half of it by a function", display(f"tf.multiply(0.5, tf.add_n({EACH}))")),
    case("a comprehension, by a name", *NAMED, display(f"tf.add_n({EACH}) / float(NUM)")),
    case("a comprehension, beside the first tower's", display(f"tf.reduce_mean({EACH}, 0)", "gv, (_, v) in zip(zip(*tower_grads), tower_grads[0])", "v")),
    case("a comprehension, applied at once", (CALL, ""), ("opt.apply_gradients(grads", f"opt.apply_gradients([(tf.reduce_mean({EACH}, 0), gv[0][1]) for gv in zip(*tower_grads)]")),
    case("a comprehension in lines", display(f"\n        tf.add_n(\n            {EACH}\n        ) / 2", variable="gv[0][1]\n    ")),
    case("a function, by a number", function(f"tf.add_n({EACH}) / 2"), BY_FUNCTION),
    case("a function, by a name", *NAMED, function(f"tf.add_n({EACH}) / NUM"), BY_FUNCTION),
    case("a function, by the devices", ("        for i in range(2):\n", "        for i in range(len(DEVICES)):\n"), function(f"tf.div(tf.add_n({EACH}), float(len(DEVICES)))"), BY_FUNCTION),
    case("in the scope", written(LOOP)),
    case("in the scope, zeros for None", written(FILLED)),
    case("with a comment", written("    # The mean of each gradient.\n    grads = []  # of all\n" + PAIRS + "        # one variable\n" + MEAN + APPEND)),
    case("with something between", written("    grads = []\n    rate = tf.constant(0.1)\n" + PAIRS + MEAN + APPEND)),
    case("under a device", written("    with tf.device('/cpu:0'):\n" + deeper(LOOP))),
    case("with a name that a later loop has too", written(LOOP + "    grads = [(g * 0.5, v) for g, v in grads]\n")),
    case("taken apart", written("    grads = []\n" + PAIRS + "        g = tf.add_n([pair[0] for pair in pairs]) / len(pairs)\n        v = pairs[0][1]\n        grads.append((g, v))\n")),
    case("under another name", written(LOOP.replace("grads.append", "means.append").replace("grads = []", "means = []") + "    grads = means\n")),
    case("with empty lines", written(LOOP.replace(MEAN, MEAN + "\n"))),
    case("returned without a name", *apart("X, Y, opt.apply_gradients(grads, global_step=step_count), loss", "X, Y, train_op, loss"), ("    train_op = opt.apply_gradients(grads, global_step=step_count)\n", "")),
    case("a mean returned under a name of a tower's", *apart("X, Y, train_op, tf.reduce_mean(losses)", "X, Y, train_op, loss"), ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"), ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n                    losses.append(loss)\n")),
    case("a name returned under one of a tower's", *apart("X, Y, train_op, mean", "X, Y, train_op, loss"), ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"), ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n                    losses.append(loss)\n"), (CALL, CALL + "    mean = tf.add_n(losses) / len(losses)\n")),
]  # fmt: skip

GPUS = (("def train():\n", "N = 2\n\n\ndef train():\n"), ("for i in range(2)", "for i in range(N)"))
GIVEN = (
    ("def train():\n", "def train(count=2):\n"),
    ("for i in range(2)", "for i in range(count)"),
)
COLLECT = "                    grads = opt.compute_gradients(loss)\n                    tower_grads.append(grads)\n"
TUPLES = (
    COLLECT,
    "                    towers.append((opt.compute_gradients(loss), loss, tf.reduce_max(out)))\n",
)
LISTED = ("    tower_grads = []\n", "    towers = []\n")
TAKEN_APART = "    tower_grads, losses, tops = zip(*towers)\n"


BEGUN = "    averaged = []\n"


def filled(mean: str) -> Change:
    return written(
        f"    grads = []\n    for gv in zip(*tower_grads):\n        grads.append(({mean}, gv[0][1]))\n"
    )


TAKEN += [
    case("a sum by the number of towers, in a loop", *GPUS, filled("tf.add_n([g for g, _ in gv]) / N")),
    case("by it as a float", *GPUS, filled("sum(g for g, _ in gv) / float(N)")),
    case("times its inverse", *GPUS, filled("tf.add_n([g for g, _ in gv]) * (1. / N)")),
    case("by what the function is given", *GIVEN, filled("tf.add_n([g for g, _ in gv]) / count")),
    case("by it in a comprehension", *GIVEN, written("    grads = [(tf.add_n([g for g, _ in gv]) / count, gv[0][1]) for gv in zip(*tower_grads)]\n")),
    case("an update made in a group", ("    train_op = opt.apply_gradients(grads, global_step=step_count)\n", "    train_op = tf.group(opt.apply_gradients(grads, global_step=step_count))\n")),
    case("with lists and dicts of its own", (BEGUN, "    own = {'a': 1}\n    own['b'] = own['a']\n    del own['a']\n    kept = [None]\n    kept[0] = 2\n" + BEGUN)),
    case("tuples that are taken apart", LISTED, TUPLES, (CALL, TAKEN_APART + CALL)),
    case("and their losses averaged", LISTED, TUPLES, (CALL, TAKEN_APART + CALL + "    loss = tf.reduce_mean(losses) + tf.add_n(tops)\n")),
]  # fmt: skip

LEFT = [
    other("by another number", "TM204", *GPUS, ("N = 2\n", "N = 2\nM = 3\n"), filled("tf.add_n([g for g, _ in gv]) / M")),
    other("by a number that is bound anew", "TM204", *GIVEN, filled("tf.add_n([g for g, _ in gv]) / count"), ("    tower_grads = []\n", "    tower_grads = []\n    count = count + 0\n")),
    other("tuples that are read whole too", "TM204", LISTED, TUPLES, (CALL, TAKEN_APART + CALL + "    print(type(towers[0]).__name__)\n")),
    other("one that sets an item of the module's", "TM203", (BEGUN, "    drawn[0] += 5\n" + BEGUN)),
    other("one that sets an item under another name", "TM203", (BEGUN, "    seen = drawn\n    seen[0] = 5\n" + BEGUN)),
    other("one that makes a list of the module's grow", "TM203", (BEGUN, "    seen = drawn\n    seen += [5]\n" + BEGUN)),
    other("one that sets an attribute", "TM203", (BEGUN, "    average_gradients.towers = len(tower_grads)\n" + BEGUN), ("print('draws'", "print(average_gradients.towers, 'draws'")),
    other("one that deletes", "TM203", (BEGUN, "    del drawn[1:]\n" + BEGUN)),
    other("tuples whose place is fetched", "TM204", LISTED, TUPLES, (CALL, TAKEN_APART + CALL), (RUN, RUN + "            print(sess.run(losses, feed_dict={X: bx, Y: by}))\n")),
    other("tuples whose place is added to", "TM204", LISTED, TUPLES, (CALL, TAKEN_APART + CALL + "    loss = tf.reduce_mean(losses + (losses[0],))\n")),
    other("tuples whose place a function adds to", "TM204", LISTED, TUPLES, ("def average_gradients", "def mean_of(values):\n    return tf.reduce_mean(values + (values[0],))\n\n\ndef average_gradients"), (CALL, TAKEN_APART + CALL + "    loss = mean_of(losses)\n")),
    other("tuples whose place is cut", "TM204", LISTED, TUPLES, (CALL, TAKEN_APART + CALL + "    print(losses[:0])\n")),
    other("a comprehension, by another number", "TM204", display(f"tf.add_n({EACH}) / 3")),
    other("rows looked up in control flow, joined", "TM204", *sparse(JOINED), CONTROLLED),
    other("rows looked up, joined, and their norm", "TM204", *sparse(JOINED), TWICE, (APPLY, APPLY + "    norm = tf.global_norm([g for g, _ in grads])\n"), (RUN, RUN + "            print('%.6f' % sess.run(norm, feed_dict={X: bx, Y: by}))\n")),
    other("rows looked up, joined and clipped", "TM204", *sparse(JOINED), CLIPPED),
    other("rows looked up, joined and clipped at once", "TM204", *sparse(JOINED), (CALL.replace("average_gradients", "mean_of"), ""), ("opt.apply_gradients(grads", "opt.apply_gradients([(tf.clip_by_norm(g, 0.1), v) for g, v in mean_of(tower_grads)]")),
    other("rows looked up, joined of the first tower", "TM203", *sparse(JOINED.replace("[g.values for g, _ in pairs], 0) / len(pairs)", "[g.values for g, _ in pairs[:1]], 0)"))),
    other("rows looked up, the sum of sparse and the mean of dense ones", "TM203", *sparse(JOINED.replace(" / len(pairs)", ""))),
    other("a comprehension, by a name that is set again", "TM204", *NAMED, ("if __name__", "def more():\n    global NUM\n    NUM = 3\n\n\nif __name__"), display(f"tf.add_n({EACH}) / NUM")),
    other("a comprehension, by a name of the scope", "TM204", ("    tower_grads = []\n", "    tower_grads, number = [], 2\n"), display(f"tf.add_n({EACH}) / number")),
    other("a comprehension, by devices that grow", "TM204", ("        for i in range(2):\n", "        for i in range(len(DEVICES)):\n"), ("    saver = tf", "    DEVICES.append(1)\n    saver = tf"), display(f"tf.add_n({EACH}) / len(DEVICES)")),
    other("a comprehension, of the last tower", "TM204", display("gv[-1][0]")),
    other("a function, by a number of its argument", "TM203", function(f"tf.add_n({EACH}) / 4"), BY_FUNCTION),
    other("a function that is called for others too", "TM203", function(f"tf.add_n({EACH}) / 2"), written("    grads = mean_of(tower_grads)\n    other = mean_of([grads])\n")),
    other("a sum of other weights", "TM203", written(LOOP.replace("[each for each, _ in pairs], 0), 0)", "[each * (k + 1) for k, (each, _) in enumerate(pairs)], 0), 0)"))),
    other("read behind", "TM204", written(LOOP + "    print(len(pairs))\n")),
    other("something read between", "TM204", written("    grads = []\n    count = len(grads)\n" + PAIRS + MEAN + APPEND)),
    other("something of the scope read in it", "TM204", written("    part = 0.5\n" + LOOP.replace("(g, ", "(g * part, "))),
    other("begun with something", "TM204", written(LOOP.replace("grads = []", "grads = [None][1:]"))),
    other("with an else", "TM204", written(LOOP + "    else:\n        print('averaged')\n")),
    other("over some of the towers", "TM204", written(LOOP.replace("zip(*tower_grads)", "zip(*tower_grads[:1])"))),
    other("under a condition", "TM204", written("    if len(tower_grads) > 1:\n" + deeper(LOOP) + "    else:\n        grads = tower_grads[0]\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
