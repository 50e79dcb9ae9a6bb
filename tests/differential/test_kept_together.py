"""What a function keeps together, and what a builder returns: tuples, dicts, namedtuples, objects of attributes."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

TRAIN = "def train():\n"
SAVER = "    saver = tf.train.Saver()\n"
BEGIN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
FETCHES = "[train_op, loss], feed_dict={X: bx, Y: by}"
RUN = f"            _, value = sess.run({FETCHES})\n"
PRINT = "            print('step', step, 'loss', '%.6f' % value)\n"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
DRAWN = "drawn = [0]\n"


def case(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def built(returned: str, bound: str = "    ops = build()\n") -> tuple[Change, Change]:
    """The builder as a function of its own."""
    return (
        (TRAIN, "def build():\n"),
        (SAVER + BEGIN, f"{returned}\n\n{TRAIN}{bound}{SAVER}{BEGIN}"),
    )


def local(text: str) -> Change:
    """All in one function."""
    return SAVER, text + SAVER


ITEMS = (FETCHES, "[ops['train_op'], ops['loss']], feed_dict={ops['x']: bx, ops['y']: by}")
ATTRIBUTES = (FETCHES, "[ops.train_op, ops.loss], feed_dict={ops.x: bx, ops.y: by}")
PLACES = (FETCHES, "[ops[0], ops[1]], feed_dict={ops[2]: bx, ops[-1]: by}")
TUPLE = "    return train_op, loss, X, Y\n"
DICT = "    return {'train_op': train_op, 'loss': loss, 'x': X, 'y': Y}\n"
ONE_BY_ONE = """\
    ops['train_op'] = train_op
    ops['loss'] = loss
    ops['x'] = X
    ops['y'] = Y
"""
BY_ATTRIBUTE = """\
    ops.train_op = train_op
    ops.loss = loss
    ops.x, ops.y = X, Y
"""
BACK = "    return ops\n"
NAMEDTUPLE = (DRAWN, "Ops = collections.namedtuple('Ops', 'train_op loss x y')\n" + DRAWN)
COLLECTIONS = ("import numpy as np\n", "import collections\nimport numpy as np\n")
NAMED = (COLLECTIONS, NAMEDTUPLE)
EMPTY = (DRAWN, DRAWN + "\n\nclass Ops(object):\n    pass\n")
KEEPS = """

class Ops(object):
    \"\"\"What is run.\"\"\"

    def __init__(self, train_op, loss, x, y):
        self.train_op = train_op
        self.loss = loss
        self.x = x
        self.y = y
"""
KEEPER = (DRAWN, DRAWN + KEEPS)
SPACE = ("import numpy as np\n", "from types import SimpleNamespace\nimport numpy as np\n")
GIVEN = "train_op=train_op, loss=loss, x=X, y=Y"
EPOCH = (
    (TRAIN, "def one_step(sess, step, ops):\n    bx, by = batch(4)\n    _, value = sess.run(" + ATTRIBUTES[1] + ")\n" + PRINT[8:] + "\n\n" + TRAIN),
    ("            bx, by = batch(4)\n" + RUN + PRINT, "            one_step(sess, step, ops)\n"),
)  # fmt: skip


def handed(*changes: Change, more: str = "") -> tuple[Change, ...]:
    """The values in a namedtuple that a function of the step is given."""
    builder, caller = built("    return Ops(train_op, loss, X, Y)\n")
    step = EPOCH[0][1].removesuffix(TRAIN) + more
    return (*NAMED, builder, (caller[0], caller[1].replace(TRAIN, step + TRAIN)), EPOCH[1], *changes)  # fmt: skip


TAKEN = [
    case("the rest by a star", *built(TUPLE, "    train_op, loss, *rest = build()\n"), (FETCHES, "[train_op, loss], feed_dict={rest[0]: bx, rest[1]: by}")),
    case("a star in the middle", *built(TUPLE, "    train_op, *rest, X, Y = build()\n"), (FETCHES, "[train_op, rest[0]], feed_dict={X: bx, Y: by}")),
    case("a rest that is taken apart", *built(TUPLE, "    train_op, loss, *rest = build()\n    X, Y = rest\n")),
    case("a rest that nobody reads", *built("    return train_op, loss, X, Y, opt, grads\n", "    train_op, loss, X, Y, *_ = build()\n")),
    case("dicts in a dict", *built("    return {'train': {'op': train_op, 'loss': loss}, 'inputs': [X, Y]}\n"), (FETCHES, "[ops['train']['op'], ops['train']['loss']], feed_dict={ops['inputs'][0]: bx, ops['inputs'][1]: by}")),
    case("names that cross", *built("    return {'X': Y, 'Y': X, 'loss': train_op, 'train_op': loss}\n", "    ops = build()\n    X = ops['Y']\n    Y = ops['X']\n    train_op = ops['loss']\n    loss = ops['train_op']\n")),
    case("one value by two keys", *built("    return {'train_op': train_op, 'loss': loss, 'cost': loss, 'x': X, 'y': Y}\n"), ITEMS, (PRINT, PRINT + "            print('%.6f' % sess.run(ops['cost'], feed_dict={ops['x']: bx, ops['y']: by}))\n")),
    case("the first of them", *built("    return train_op, loss, X, Y, opt\n", "    train_op, loss, X, Y = build()[:4]\n")),
    case("by places", *built(TUPLE), PLACES),
    case("by places, in a list", *built("    return [train_op, loss, X, Y]\n"), PLACES),
    case("names by places", *built(TUPLE, "    built = build()\n    train_op = built[0]\n    loss = built[1]\n    X = built[2]\n    Y = built[3]\n")),
    case("taken apart later", *built(TUPLE, "    built = build()\n    train_op, loss, X, Y = built\n")),
    case("taken apart in parts", *built(TUPLE, "    built = build()\n    train_op, loss = built[:2]\n    X, Y = built[2:]\n")),
    case("a list", *built("    return [train_op, loss, X, Y]\n", "    train_op, loss, X, Y = build()\n")),
    case("a tuple in a tuple", *built("    return train_op, loss, (X, Y)\n", "    train_op, loss, (X, Y) = build()\n")),
    case("a tuple in a tuple, by its name", *built("    return train_op, loss, (X, Y)\n", "    train_op, loss, inputs = build()\n"), (FETCHES, "[train_op, loss], feed_dict={inputs[0]: bx, inputs[1]: by}")),
    case("a tuple with a name", *built("    ops = (train_op, loss, X, Y)\n    return ops\n", "    train_op, loss, X, Y = build()\n")),
    case("dict()", *built(f"    return dict({GIVEN})\n"), ITEMS),
    case("a dict with a name", *built(DICT.replace("return", "ops =") + BACK), ITEMS),
    case("dict() with a name", *built(f"    ops = dict({GIVEN})\n" + BACK), ITEMS),
    case("a dict, one by one", *built("    ops = {}\n" + ONE_BY_ONE + BACK), ITEMS),
    case("dict(), one by one", *built("    ops = dict()\n" + ONE_BY_ONE + BACK), ITEMS),
    case("a dict, as they are made", *built("    ops['loss'] = loss\n" + BACK), ITEMS, ("    tower_grads = []\n", "    ops = {'x': X, 'y': Y}\n    tower_grads = []\n"), (APPLY, APPLY.replace("train_op", "ops['train_op']"))),
    case("a dict, beside names of their own", *built(BACK), ITEMS, ("    X = tf.", "    ops = {}\n    ops['x'] = X = tf."), ("    Y = tf.", "    Y = ops['y'] = tf."), (APPLY, APPLY + "    ops['train_op'], ops['loss'] = train_op, loss\n")),
    case("a dict of what has no name", *built("    return {'train_op': opt.apply_gradients(grads, global_step=step_count), 'loss': loss, 'x': X, 'y': Y}\n"), (APPLY, ""), ITEMS),
    case("a dict and more", *built("    ops = {'x': X, 'y': Y}\n    ops.update(train_op=train_op, loss=loss)\n" + BACK), ITEMS),
    case("a dict and another", *built("    ops = {'x': X, 'y': Y}\n    ops.update({'train_op': train_op, 'loss': loss})\n" + BACK), ITEMS),
    case("a dict of a tuple", *built("    return {'train_op': train_op, 'loss': loss, 'inputs': (X, Y)}\n", "    ops = build()\n    X, Y = ops['inputs']\n"), (FETCHES, "[ops['train_op'], ops['loss']], feed_dict={X: bx, Y: by}")),
    case("a dict that is ordered", COLLECTIONS, *built("    return collections.OrderedDict([('train_op', train_op), ('loss', loss), ('x', X), ('y', Y)])\n"), ITEMS),
    case("a namedtuple by keywords", *NAMED, *built(f"    return Ops({GIVEN})\n"), ATTRIBUTES),
    case("a namedtuple by keywords in another order", *NAMED, *built("    return Ops(y=Y, x=X, loss=loss, train_op=train_op)\n"), ATTRIBUTES),
    case("a namedtuple", *NAMED, *built("    return Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    case("a namedtuple by places", *NAMED, *built("    return Ops(train_op, loss, X, Y)\n"), PLACES),
    case("a namedtuple taken apart", *NAMED, *built("    return Ops(train_op, loss, X, Y)\n", "    train_op, loss, X, Y = build()\n")),
    case("a namedtuple with a name", *NAMED, *built("    ops = Ops(train_op, loss, X, Y)\n" + BACK), ATTRIBUTES),
    case("a namedtuple of a list of fields", ("import numpy as np\n", "from collections import namedtuple\nimport numpy as np\n"), (DRAWN, "Ops = namedtuple('Ops', ['train_op', 'loss', 'x', 'y'])\n" + DRAWN), *built("    return Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    case("an object that is empty at first", EMPTY, *built("    ops = Ops()\n" + BY_ATTRIBUTE + BACK), ATTRIBUTES),
    case("an object that keeps what it is given", KEEPER, *built("    return Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    case("a namespace", SPACE, *built(f"    return SimpleNamespace({GIVEN})\n"), ATTRIBUTES),
    case("a namespace, one by one", SPACE, *built("    ops = SimpleNamespace()\n" + BY_ATTRIBUTE + BACK), ATTRIBUTES),
    case("a namedtuple that a function is given", *handed()),
    case("a namedtuple that two functions are given", *handed(("            one_step(sess, step, ops)\n", "            one_step(sess, step, ops)\n            look(sess, ops)\n"), more="def look(sess, ops):\n    bx, by = batch(4)\n    print('%.6f' % sess.run(ops.loss, feed_dict={ops.x: bx, ops.y: by}))\n\n\n")),
    case("a namedtuple that is handed on", *handed(("            one_step(sess, step, ops)\n", "            two_steps(sess, step, ops)\n"), more="def two_steps(sess, step, ops):\n    one_step(sess, step, ops)\n\n\n")),
    case("a namedtuple by a keyword", *handed(("one_step(sess, step, ops)\n        saver", "one_step(sess, ops=ops, step=step)\n        saver"))),
    case("one function, a dict", local(DICT.replace("return", "ops =")), ITEMS),
    case("one function, a dict, one by one", local("    ops = {}\n" + ONE_BY_ONE), ITEMS),
    case("one function, a namedtuple", *NAMED, local("    ops = Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    case("one function, a namespace", SPACE, local(f"    ops = SimpleNamespace({GIVEN})\n"), ATTRIBUTES),
    case("one function, an object", EMPTY, local("    ops = Ops()\n" + BY_ATTRIBUTE), ATTRIBUTES),
    case("one function, by places", local("    ops = [train_op, loss, X, Y]\n"), PLACES),
    case("one function, the inputs before the towers", ("    tower_grads = []\n", "    inputs = {'x': X, 'y': Y}\n    tower_grads = []\n"), ("{X: bx, Y: by}", "{inputs['x']: bx, inputs['y']: by}")),
    case("where the caller has the names for something else", *built(DICT, "    ops = build()\n    loss = 2.5\n    X = [1]\n"), ITEMS, (PRINT, PRINT + "            print(loss, X)\n")),
]  # fmt: skip

MADE = "    ops = build()\n"
OF_DICT = (*built(DICT), ITEMS)


def more(text: str) -> tuple[Change, ...]:
    """A dict of which the caller does more."""
    return (*built(DICT, MADE + text), ITEMS)


def of_class(text: str) -> tuple[Change, ...]:
    """An object of another class."""
    return (
        (DRAWN, f"{DRAWN}\n\nclass Ops(object):\n{text}"),
        *built("    ops = Ops()\n" + BY_ATTRIBUTE + BACK),
        ATTRIBUTES,
    )


LEFT = [
    other("a name that is another value behind", "TM205", *built("    ops = {'train_op': train_op, 'loss': loss, 'x': X, 'y': Y}\n    loss = 3\n    print(loss)\n" + BACK), ITEMS),
    other("a rest that is printed", "TM205", *built(TUPLE, "    train_op, loss, *rest = build()\n    print(len(rest))\n"), (FETCHES, "[train_op, loss], feed_dict={rest[0]: bx, rest[1]: by}")),
    other("a rest that is changed", "TM205", *built(TUPLE, "    train_op, loss, *rest = build()\n    rest.reverse()\n    rest.reverse()\n"), (FETCHES, "[train_op, loss], feed_dict={rest[0]: bx, rest[1]: by}")),
    other("every second", "TM205", *built("    return train_op, opt, loss, opt, X, opt, Y\n", "    ops = build()[::2]\n"), PLACES),
    other("by a number that is computed", "TM205", *built(TUPLE, "    ops, at = build(), 1\n"), (FETCHES, "[ops[at - 1], ops[at]], feed_dict={ops[2]: bx, ops[3]: by}")),
    other("a list that another name changes", "TM210", *built("    return [train_op, loss, X, Y]\n", MADE + "    same = ops\n    same[1] = same[1] * 2.0\n"), PLACES),
    other("a list that is changed", "TM210", *built("    return [train_op, loss, X, Y]\n", MADE + "    ops[1] = ops[1] * 2.0\n"), PLACES),
    other("a list that is turned round", "TM210", *built("    return [loss, train_op, Y, X]\n", MADE + "    ops.reverse()\n"), (FETCHES, "[ops[2], ops[3]], feed_dict={ops[0]: bx, ops[1]: by}")),
    other("a tuple and another", "TM205", *built(TUPLE, "    ops = build() + (1,)\n"), (FETCHES, "[ops[0], ops[1]], feed_dict={ops[2]: bx, ops[3]: by}")),
    other("a rest that is deleted", "TM205", *built("    return train_op, loss, X, Y, opt\n", "    made = build()\n    train_op, loss, X, Y, rest = made\n    del rest\n")),
    other("a value that a function binds anew", "TM210", local("    ops = {'train_op': train_op, 'loss': loss, 'x': X, 'y': Y}\n\n    def change():\n        nonlocal loss\n        loss = loss * 3.0\n\n    change()\n"), ITEMS),
    other("a dict that is changed behind", "TM210", *more("    ops['loss'] = ops['loss'] * 2.0\n")),
    other("a dict that a function changes", "TM210", (DRAWN, DRAWN + "\n\ndef change(ops):\n    ops['loss'] = ops['loss'] * 2.0\n"), *more("    change(ops)\n")),
    other("a dict that a method is handed", "TM210", *more("    drawn.append(ops)\n    del drawn[1]\n")),
    other("a dict that has another name too", "TM210", *more("    same = ops\n    same['loss'] = same['loss'] * 2.0\n")),
    other("a dict that is asked", "TM210", *more("    print('more' in ops)\n")),
    other("a dict that is emptied", "TM210", *more("    one = ops.pop('loss')\n    ops['loss'] = one * 2.0\n")),
    other("a dict of which something is deleted", "TM210", *more("    ops['more'] = 1\n    del ops['more']\n")),
    other("a dict that is made anew", "TM210", *more("    ops = dict(ops)\n")),
    other("a dict with a value kept twice", "TM206", *built("    ops = {}\n    ops['loss'] = loss * 2.0\n" + ONE_BY_ONE + BACK), ITEMS),
    other("a dict with a value in one case", "TM206", *built("    ops = {}\n" + ONE_BY_ONE.replace("    ops['loss'] = loss\n", "    if len(tower_grads) > 1:\n        ops['loss'] = loss\n    else:\n        ops['loss'] = loss * 2.0\n") + BACK), ITEMS),
    other("a dict kept in the loop", "TM206", *built("    ops.update(train_op=train_op, x=X, y=Y)\n" + BACK), ITEMS, ("    tower_grads = []\n", "    ops = {}\n    tower_grads = []\n"), ("                    tower_grads.append(grads)\n", "                    tower_grads.append(grads)\n                    ops['loss'] = loss\n")),
    other("a function called dict", "TM210", (DRAWN, DRAWN + "\n\ndef dict(loss, **others):\n    others['loss'] = loss * 2.0\n    return others\n"), *built(f"    return dict({GIVEN})\n"), ITEMS),
    other("a namedtuple whose values are replaced", "TM210", *NAMED, *built("    return Ops(train_op, loss, X, Y)\n", "    ops = build()._replace(loss=None)\n    ops = build() if ops.loss is not None else ops\n"), (FETCHES, "[ops.train_op, ops.train_op], feed_dict={ops.x: bx, ops.y: by}"), (PRINT, "")),
    other("a namedtuple that is asked for its fields", "TM210", *NAMED, *built("    return Ops(train_op, loss, X, Y)\n", MADE + "    print(ops._fields)\n"), ATTRIBUTES),
    other("a namedtuple that is a class of the file", "TM210", *NAMED, (DRAWN, DRAWN + "\n\nclass Ops(Ops):\n    @property\n    def loss(self):\n        return self[1] * 2.0\n"), *built("    return Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    other("a namedtuple of the file's own", "TM210", (DRAWN, DRAWN + "\n\ndef namedtuple(name, fields):\n    import collections\n    return collections.namedtuple(name, fields.split()[::-1])\n\n\nOps = namedtuple('Ops', 'train_op loss x y')\n"), *built("    return Ops(Y, X, loss, train_op)\n"), ATTRIBUTES),
    other("an object with a property", "TM206", *of_class("    @property\n    def loss(self):\n        return self.cost * 2.0\n\n    @loss.setter\n    def loss(self, value):\n        self.cost = value\n")),
    other("an object that looks at what it keeps", "TM206", *of_class("    def __setattr__(self, name, value):\n        object.__setattr__(self, name, value)\n        print('kept', name)\n")),
    other("an object that has more", "TM206", *of_class("    more = 1\n")),
    other("an object that keeps something else", "TM210", (DRAWN, DRAWN + KEEPS.replace("self.loss = loss", "self.loss = loss * 2.0")), *built("    return Ops(train_op, loss, X, Y)\n"), ATTRIBUTES),
    other("an object that keeps them under other names", "TM210", (DRAWN, DRAWN + KEEPS.replace("self.x = x", "self.x = y").replace("self.y = y", "self.y = x")), *built("    return Ops(train_op, loss, Y, X)\n"), ATTRIBUTES),
    other("a namespace that is compared", "TM210", SPACE, *built(f"    return SimpleNamespace({GIVEN})\n", MADE + "    print(ops == ops)\n"), ATTRIBUTES),
    other("an object that is looked into", "TM210", SPACE, *built(f"    return SimpleNamespace({GIVEN})\n", MADE + "    print(sorted(vars(ops)))\n"), ATTRIBUTES),
    other("a function that has it by default", "TM210", *handed(("def one_step(sess, step, ops):", "def one_step(sess, step, ops=None):"))),
    other("a function that is called without it too", "TM210", *handed(("            one_step(sess, step, ops)\n", "            one_step(sess, step, ops)\n            if step > 5:\n                one_step(sess, step, None)\n"))),
    other("a function that is handed on", "TM210", *handed(("            one_step(sess, step, ops)\n", "            list(map(lambda at: one_step(sess, at, ops), [step]))\n            print(one_step.__name__)\n"))),
    other("called twice", "TM210", *built(DICT, MADE + "    tf.reset_default_graph()\n    ops = build()\n"), ITEMS),
    other("one function, a dict that is printed", "TM210", local(DICT.replace("return", "ops =") + "    print(sorted(ops))\n"), ITEMS),
    other("one function, a list that grows", "TM210", local("    ops = [train_op, loss, X]\n    ops.append(Y)\n"), PLACES),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
