"""Attributes of the object that builds the towers, as programs keep them: several a statement, None first, returned."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else
from tests.differential.test_carried import LOSS, TRAIN, trainer

PLACES = "        self.X = tf.placeholder(tf.float32, [None, 3])\n        self.Y = tf.placeholder(tf.float32, [None, 1])\n"
APART = "        X = tf.placeholder(tf.float32, [None, 3])\n        Y = tf.placeholder(tf.float32, [None, 1])\n"
OP = "        self.train_op = opt.apply_gradients(grads, global_step=self.step_count)\n"
OWN_OP = OP.replace("self.train_op", "train_op")
SAVER = "        self.saver = tf.train.Saver()\n"
OWN_SAVER = SAVER.replace("self.saver", "saver")
COUNT = "        self.count = 0\n"
BUILD = "        self.build()\n"
BEHIND = OP + SAVER
IN_TOWER = "x, y = self.X[i * 2:(i + 1) * 2], self.Y[i * 2:(i + 1) * 2]"


def case(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def first(*names: str, text: str = "        self.{} = None\n") -> Change:
    """Attributes that are None first."""
    return COUNT, COUNT + "".join(text.format(name) for name in names)


def behind(text: str, before: str = OWN_OP + OWN_SAVER) -> tuple[Change, Change]:
    return (LOSS, ""), (BEHIND, before + text)


BY_NAMES = ((PLACES, APART), (IN_TOWER, IN_TOWER.replace("self.", "")))
RETURNED = (BUILD, "        self.train_op, self.loss, self.saver = self.build()\n")

TAKEN = [
    case("two at once", (PLACES, "        self.X, self.Y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])\n")),
    case("two names at once", *BY_NAMES, ("        tower_grads = []\n", "        self.X, self.Y = X, Y\n        tower_grads = []\n")),
    case("an update among them", *behind("        self.train_op, self.loss, self.saver = train_op, loss, saver\n")),
    case("on two lines", *behind("        self.train_op, self.loss, self.saver = (\n            train_op, loss, saver)\n")),
    case("beside a name", (LOSS, ""), (OP, "        self.loss = cost = loss\n        self.train_op = train_op = opt.apply_gradients(grads, global_step=self.step_count)\n")),
    case("behind a name", (PLACES, "        X = self.X = tf.placeholder(tf.float32, [None, 3])\n        Y = self.Y = tf.placeholder(tf.float32, [None, 1])\n"), (IN_TOWER, IN_TOWER.replace("self.", ""))),
    case("numbers at once", (COUNT, "        self.count = self.turns = 0\n        self.size, self.name = 2, 'towers'\n")),
    case("None first", first("X", "Y", "loss", "train_op", "saver")),
    case("None first, at once", first("X", "loss", text="        self.{} = self.more_{0} = None\n".replace("self.more_{0} = ", ""))),
    case("None first, in one chain", (COUNT, COUNT + "        self.X = self.Y = self.loss = self.train_op = None\n")),
    case("None first, in one tuple", (COUNT, COUNT + "        self.X, self.Y, self.saver = None, None, None\n")),
    case("None first, built in `__init__` itself", first("X", "loss"), ("        self.build()\n\n    def build(self):\n", "")),
    case("None first, then a name", first("X", "Y", "loss"), *BY_NAMES, ("        tower_grads = []\n", "        self.X = X\n        self.Y = Y\n        tower_grads = []\n")),
    case("None first, then a name, in `__init__` itself", first("X", "Y"), ("        self.build()\n\n    def build(self):\n", ""), *BY_NAMES, ("        tower_grads = []\n", "        self.X = X\n        self.Y = Y\n        tower_grads = []\n")),
    case("returned", RETURNED, *behind("        return train_op, loss, saver\n")),
    case("returned without names", RETURNED, (LOSS, ""), (BEHIND, "        return opt.apply_gradients(grads, global_step=self.step_count), loss, tf.train.Saver()\n")),
    case("one returned", (BUILD, "        self.saver = self.build()\n"), (SAVER, OWN_SAVER + "        return saver\n")),
    case("returned, None first", (BUILD, "        self.loss = None\n        self.train_op, self.loss, self.saver = self.build()\n"), *behind("        return train_op, loss, saver\n")),
    case("returned from what is given", (BUILD, "        self.train_op, self.loss, self.saver = self.build(rate)\n"), ("def build(self)", "def build(self, rate)"), ("(self.rate, 0.9)", "(rate, 0.9)"), *behind("        return train_op, loss, saver\n")),
]  # fmt: skip

ASKED = (COUNT, COUNT + "        self.loss = None\n")
INPUT = (COUNT, COUNT + "        self.X = None\n")

# What the object keeps is known where it is asked for in between, too.
TAKEN += [
    case("two that change places", (LOSS, "        self.loss = loss\n        self.first, self.loss = self.loss, self.loss * 2.0\n")),
    case("None that is asked for", ASKED, (BUILD, "        print(self.loss)\n" + BUILD)),
    case("None that a method asks for", ASKED, (BUILD, "        self.tell()\n" + BUILD), (TRAIN, "    def tell(self):\n        print(self.loss)\n\n" + TRAIN)),
    case("None that a function asks for", ASKED, (BUILD, "        tell(self)\n" + BUILD), ("class Trainer", "def tell(trainer):\n    print(trainer.loss)\n\n\nclass Trainer")),
    case("None and something else in one case", ASKED, (LOSS, "        if self.rate > 0:\n            self.loss = loss\n")),
    case("an input that is None that is asked for", INPUT, (BUILD, "        print(self.X)\n" + BUILD)),
    case("an input that is None that a method asks for", INPUT, (BUILD, "        self.tell()\n" + BUILD), (TRAIN, "    def tell(self):\n        print(self.X)\n\n" + TRAIN)),
    case("an input that is None that a function asks for", INPUT, (BUILD, "        tell(self)\n" + BUILD), ("class Trainer", "def tell(trainer):\n    print(trainer.X)\n\n\nclass Trainer")),
]  # fmt: skip

NAMED = (
    *BY_NAMES,
    (
        "        tower_grads = []\n",
        "        self.X = X\n        self.Y = Y\n        tower_grads = []\n",
    ),
)

LEFT = [
    other("None that is asked for, then a name", "TM208", INPUT, (BUILD, "        print(self.X)\n" + BUILD), *NAMED),
    other("None that a method asks for, then a name", "TM208", INPUT, (BUILD, "        self.tell()\n" + BUILD), (TRAIN, "    def tell(self):\n        print(self.X)\n\n" + TRAIN), *NAMED),
    other("None that a kept method asks for, then a name", "TM205", INPUT, (BUILD, "        self.told = self.tell\n        self.told()\n" + BUILD), (TRAIN, "    def tell(self):\n        print(self.X)\n\n" + TRAIN), *NAMED),
    other("None that a function asks for, then a name", "TM208", INPUT, (BUILD, "        tell(self)\n" + BUILD), ("class Trainer", "def tell(trainer):\n    print(trainer.X)\n\n\nclass Trainer"), *NAMED),
    other("None that is asked for in the towers, then a name", "TM211", INPUT, *NAMED[:1], (NAMED[1][0], NAMED[1][1] + "\n                        print(self.X is None)"), ("        self.loss = loss\n", "        self.X = X\n        self.Y = Y\n        self.loss = loss\n")),
    other("two of which one asks for the other", "TM205", (LOSS, ""), (OP, "        self.scale, self.loss = 2.0, loss * self.rate\n" + OP), (COUNT, COUNT + "        self.scale = 1.0\n"), ("self.count += 1\n", "self.count += 1\n                print(vars(self)['scale'])\n")),
    other("a property", "TM206", *behind("        self.train_op, self.loss, self.saver = train_op, loss, saver\n"), (TRAIN, "    @property\n    def loss(self):\n        return self.cost * 2.0\n\n    @loss.setter\n    def loss(self, value):\n        self.cost = value\n\n" + TRAIN)),
    other("a class that looks at what is kept", "TM206", *behind("        self.train_op, self.loss, self.saver = train_op, loss, saver\n"), (TRAIN, "    def __setattr__(self, name, value):\n        print(name)\n        object.__setattr__(self, name, value)\n\n" + TRAIN)),
    other("None that is asked for in the towers", "TM223", ASKED, (IN_TOWER, IN_TOWER + "\n                        print(self.loss is None)")),
    other("None that may be asked for by a text", "TM205", ASKED, (TRAIN, TRAIN + "        print(hasattr(self, 'loss'))\n")),
    other("None that is set again", "TM211", ASKED, (SAVER, SAVER + "        self.first = self.loss\n        self.loss = loss * 2.0\n")),
    other("returned to two", "TM205", RETURNED, *behind("        return train_op, loss, saver\n"), ("    trainer = Trainer(0.1)\n", "    trainer = Trainer(0.1)\n    print(trainer.build is None)\n")),
    other("returned in one case", "TM205", RETURNED, *behind("        if self.rate > 0:\n            return train_op, loss, saver\n        return None, None, None\n")),
    other("returned by the method of another class", "TM205", RETURNED, *behind("        return train_op, loss, saver\n"), ("def main():\n", "class Better(Trainer):\n    def build(self):\n        train_op, loss, saver = Trainer.build(self)\n        return train_op, loss * 2.0, saver\n\n\ndef main():\n"), ("trainer = Trainer(0.1)", "trainer = Better(0.1)")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, trainer)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, trainer)
