"""Numbers of towers that are set anew before the towers are built: the strategy has as many replicas as the loop makes towers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

DEVICES = "DEVICES = ['/gpu:0', '/gpu:1']\n"
TRAIN = "def train():\n"
STEP = "    step_count = tf.train.get_or_create_global_step()\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
SETTINGS = "class Settings(object):\n    gpus = 3\n\n\nsettings = Settings()\n"
OF_SETTINGS: tuple[Change, ...] = (
    (DEVICES, SETTINGS + DEVICES),
    ("range(2)", "range(settings.gpus)"),
)
OF_DICT: tuple[Change, ...] = (
    (DEVICES, "CONFIG = {'gpus': 3}\n" + DEVICES),
    ("range(2)", "range(CONFIG['gpus'])"),
)
OF_LIST: tuple[Change, ...] = (
    (DEVICES, "DEVICES = ['/gpu:0', '/gpu:1', '/gpu:2']\n"),
    ("range(2)", "range(len(DEVICES))"),
)
OF_ITEM: tuple[Change, ...] = (
    (DEVICES, "COUNTS = [3]\n" + DEVICES),
    ("range(2)", "range(COUNTS[0])"),
)
OF_HELD: tuple[Change, ...] = (
    (DEVICES, "GPUS = [0, 1, 2]\nCONFIG = {'gpus': GPUS}\n" + DEVICES),
    ("range(2)", "range(len(GPUS))"),
)
OF_MODULE: tuple[Change, ...] = ((DEVICES, "GPUS = 3\n" + DEVICES), ("range(2)", "range(GPUS)"))


def front(*lines: str) -> Change:
    """Statements in front of all that is TensorFlow's."""
    return (STEP, "".join(f"    {line}\n" for line in lines) + STEP)


def function(*lines: str, called: str = "prepare()", given: str = "") -> tuple[Change, ...]:
    """A function of the module with these lines, which the program calls first."""
    text = f"def prepare({given}):\n" + "".join(f"    {line}\n" for line in lines) + "\n\n"
    return (TRAIN, text + TRAIN), front(called)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("an attribute", *OF_SETTINGS, front("settings.gpus = 2")),
    case("an attribute by another name of the object", *OF_SETTINGS, front("chosen = settings", "chosen.gpus -= 1")),
    case("an attribute of the class", *OF_SETTINGS, front("Settings.gpus = 2")),
    case("by a function", *OF_SETTINGS, *function("settings.gpus = 2")),
    case("by a function of what it is given", *OF_SETTINGS, *function("given.gpus = 2", called="prepare(settings)", given="given")),
    case("by a function that another calls", *OF_SETTINGS, (TRAIN, "def cut():\n    settings.gpus = 2\n\n\n" + TRAIN), *function("cut()")),
    case("by a lambda", *OF_SETTINGS, (TRAIN, "prepare = [lambda: settings.__dict__.update(gpus=2)]\n\n\n" + TRAIN), front("prepare[0]()")),
    case("by the object's own dict", *OF_SETTINGS, front("vars(settings)['gpus'] = 2")),
    case("an item", *OF_DICT, front("CONFIG['gpus'] = 2")),
    case("an item by an update", *OF_DICT, front("CONFIG.update(gpus=2)")),
    case("a list", *OF_LIST, front("DEVICES.pop()")),
    case("a list by a slice", *OF_LIST, front("DEVICES[2:] = []")),
    case("a list by another name", *OF_LIST, front("chosen = DEVICES", "chosen.pop()")),
    case("a list that a function is given", *OF_LIST, *function("given.pop()", called="prepare(DEVICES)", given="given")),
    case("a name of the module", *OF_MODULE, *function("global GPUS", "GPUS = 2")),
    case("before the function is called", *OF_SETTINGS, ("    train()\n", "    settings.gpus = 2\n    train()\n")),
    case("an item of a list by another name", *OF_ITEM, front("chosen = COUNTS", "chosen[0] = 2")),
    case("an item that a function sets", *OF_ITEM, *function("given[0] = 2", called="prepare(COUNTS)", given="given")),
    case("a list that another holds", *OF_HELD, front("CONFIG['gpus'].pop()")),
    case("a part of a list that another holds", *OF_HELD, front("del CONFIG['gpus'][1:]", "CONFIG['gpus'] += [5]")),
    case("a list of another, by its name", *OF_HELD[:1], ("range(2)", "range(len(CONFIG['gpus']))"), front("GPUS.pop()")),
    case("a list by a method that is handed on", *OF_LIST, front("list(map(DEVICES.remove, ['/gpu:2']))")),
    case("a list by a library", *OF_LIST, front("import heapq", "heapq.heappop(DEVICES)")),
    case("a set by another name", (DEVICES, "GPUS = {0, 1, 2}\n" + DEVICES), ("range(2)", "range(len(GPUS))"), front("chosen = GPUS", "chosen.discard(2)")),
    case("a dict by another name", (DEVICES, "GPUS = dict(a=0, b=1, c=2)\n" + DEVICES), ("range(2)", "range(len(GPUS))"), front("chosen = GPUS", "chosen.popitem()")),
    case("an array", (DEVICES, "COUNTS = np.array([3])\n" + DEVICES), ("range(2)", "range(COUNTS[0])"), front("np.subtract(COUNTS, 1, out=COUNTS)")),
    case("what a property reads, by another name", *OF_SETTINGS, ("    gpus = 3\n", "    number = 3\n\n    @property\n    def gpus(self):\n        return self.number\n"), front("chosen = settings", "chosen.number = 2")),
    case("what an object computes, by another name", *OF_SETTINGS, ("    gpus = 3\n", "    number = 3\n\n    def __getattr__(self, name):\n        return self.number\n"), front("chosen = settings", "chosen.number = 2")),
    case("what a function reads", (TRAIN, "GPUS = 3\n\n\ndef count():\n    return GPUS\n\n\n" + TRAIN), ("range(2)", "range(count())"), front("global GPUS", "GPUS = 2")),
    case("what a lambda reads", ("range(2)", "range(count())"), front("number = 3", "count = lambda: number", "number = 2")),
    case("a function that counts its calls", (TRAIN, "def count(seen=[1]):\n    seen[0] += 1\n    return seen[0]\n\n\n" + TRAIN), ("range(2)", "range(count())")),
    case("in an expression", ("range(2)", "range(number)"), front("number = 3", "print((number := 2))")),
    case("by a name that is computed", *OF_SETTINGS, front("chosen = settings", "for key in ['gp' + 'us']:", "    setattr(chosen, key, 2)")),
    case("an item by a name that is computed", *OF_DICT, *function("for key, value in new.items():", "    given[key] = value", called="prepare(CONFIG, dict(gpus=2))", given="given, new")),
    case("an item by an update of another", *OF_DICT, *function("given.update(new)", called="prepare(CONFIG, dict(gpus=2))", given="given, new")),
    case("and a function that sets something else", ("range(2)", "range(len(DEVICES))"), *function("np.random.seed(0)")),
]  # fmt: skip

LEFT = [
    other("a list by another name behind the optimizer", "TM211", *OF_LIST, front("chosen = DEVICES"), (OPT, OPT + "    chosen.pop()\n")),
    other("behind the optimizer", "TM211", *OF_SETTINGS, (OPT, OPT + "    settings.gpus = 2\n")),
    other("by a function behind the optimizer", "TM211", *OF_SETTINGS, (TRAIN, "def prepare():\n    settings.gpus = 2\n\n\n" + TRAIN), (OPT, OPT + "    prepare()\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


# ---- of another file -----------------------------------------------------------------------------------

MAIN = """\
import numpy as np
import tensorflow as tf

import graph


def main():
    train_op, loss, X, Y = graph.build()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            bx, by = graph.batch(4)
            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
            print('step', step, 'loss', '%.6f' % value)


if __name__ == '__main__':
    main()
"""
BUILD = "    train_op, loss, X, Y = graph.build()\n"
SAVER = "    saver = tf.train.Saver()\n"


def two_files(*changes: Change) -> dict[str, str]:
    """A program whose towers are built in a file of their own, with each `(old, new)` applied where `old` is."""
    (text,) = program(*OF_MODULE).values()
    text = text[: text.index(SAVER)].replace("def train", "def build")
    files = {"graph.py": text + "    return train_op, loss, X, Y\n", "train.py": MAIN}
    for old, new in changes:
        assert sum(old in each for each in files.values()) == 1, old
        files = {path: each.replace(old, new) for path, each in files.items()}
    return files


SET = [
    other("as the module's attribute", "TM205", (BUILD, "    graph.GPUS = 2\n" + BUILD)),
    other("by a text", "TM205", (BUILD, "    setattr(graph, 'GPUS', 2)\n" + BUILD)),
    other("where the program begins", "TM205", ("    main()\n", "    graph.GPUS = 2\n    main()\n")),
    other("when the file is read", "TM205", ("def main():\n", "graph.GPUS = 2\n\n\ndef main():\n")),
]  # fmt: skip
KEPT = [
    case("an object of the other module", ("GPUS = 3\n", SETTINGS), ("range(GPUS)", "range(settings.gpus)"), (BUILD, "    graph.settings.gpus = 2\n" + BUILD)),
    case("a list of the other module", ("GPUS = 3\n", "GPUS = [0, 1, 2]\n"), ("range(GPUS)", "range(len(GPUS))"), (BUILD, "    del graph.GPUS[2]\n" + BUILD)),
]  # fmt: skip

(
    test_several_files_are_in_loop_style,
    test_what_an_import_would_miss_is_not,
    test_those_of_several_files_do_the_same_rewritten,
) = asked_of(KEPT, SET, two_files)


@pytest.mark.full
def test_what_an_import_would_miss_does_nothing_else() -> None:
    none_does_anything_else(SET, two_files)
