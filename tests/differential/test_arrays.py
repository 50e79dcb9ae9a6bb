"""Arrays that towers compute in NumPy, of numbers of the program's own: what loop style takes and leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

NET = "def net(x):\n"
OUT = "    return tf.matmul(x, w) + b\n"
TABLE = (NET, "TABLE = np.arange(6.0).reshape(2, 3)\n\n\n" + NET)


def weights(*lines: str) -> Change:
    """Statements in the model that make `m`, by which its inputs are weighed."""
    made = "".join(f"    {line}\n" for line in lines)
    return OUT, made + "    return tf.matmul(x * tf.constant(m, tf.float32), w) + b\n"


def case(name: str, *lines: str, more: tuple[Change, ...] = ()) -> Any:
    return pytest.param((*more, weights(*lines)), id=name)


def other(name: str, rule: str, *lines: str, more: tuple[Change, ...] = (TABLE,)) -> Any:
    return pytest.param((*more, weights(*lines)), rule, id=name)


FLAGS = (
    NET,
    "tf.app.flags.DEFINE_float('weight', 0.5, '')\nFLAGS = tf.app.flags.FLAGS\n\n\n" + NET,
)
ARGS = (NET, """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument('--weight', type=float, default=0.5)
args = parser.parse_args()


""" + NET)  # fmt: skip
OBJECT = (NET, """\
class Settings(object):
    def __init__(self):
        self.weight = 0.5


settings = Settings()


""" + NET)  # fmt: skip
GIVEN = (
    ("def train():", "def train(weight):"),
    ("    train()\n", "    train(0.5)\n"),
    ("out = net(x)", "out = net(x, weight)"),
    ("def net(x):", "def net(x, weight):"),
)
MASKS = (
    (NET, """\
class Masks(object):
    def __init__(self, width):
        steps, _ = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, 2))
        self.first = 1.0 - np.clip(20 * (steps - 0.05), 0, 1)
        self.last = np.fliplr(self.first)
        self.rest = 1.0 - self.first - self.last


""" + NET),
)  # fmt: skip

TAKEN = [
    case("a grid", "m, _ = np.meshgrid(np.linspace(0.5, 1, 3), np.ones(1))"),
    case("turned over", "m = np.fliplr(np.arange(3.0)[None]) + np.flipud(np.ones((1, 3)))"),
    case("of an object", "masks = Masks(3)", "m = (masks.first + masks.rest)[:1] + masks.last[1]", more=MASKS),
    case("chosen", "m = np.where(np.arange(3) > 1, 0.5, np.tanh(np.arange(3)))"),
    case("ordered", "m = np.sort(np.sin(np.arange(3.0))) + np.argsort([2.0, 0.0, 1.0])"),
    case("stacked", "m = np.hstack([np.eye(1), np.full((1, 2), 0.5)]) + np.vstack([np.ones(3)])"),
    case("of a table", "m = np.roll(TABLE, 1, axis=0)[:1] * np.mean(TABLE) / np.std(TABLE)", more=(TABLE,)),
    case("a number", "m = float(np.median(TABLE) + np.amax(TABLE) - np.var(TABLE))", more=(TABLE,)),
    case("added to", "m = np.ones(3)", "m += 1.0"),
    case("a copy that is added to", "m = np.array(TABLE[0])", "m *= 2.0", "m -= np.mean(m)", more=(TABLE,)),
    case("a sum that is added to", "m = TABLE[0] + 1.0", "m += TABLE[1]", more=(TABLE,)),
    case("a number that is added to", "m = float(TABLE[0, 1])", "m += 1.0", more=(TABLE,)),
    case("a flag that is added to", "m = FLAGS.weight", "m *= 2.0", more=(FLAGS,)),
    case("an argument of the command line that is added to", "m = args.weight", "m *= 2.0", more=(ARGS,)),
    case("a number of the module that is added to", "m = WEIGHT", "m *= 2.0", more=((NET, "WEIGHT = 0.5\nif len(DEVICES) > 2:\n    WEIGHT = 1.0\n\n\n" + NET),)),
    case("a number of an object that is added to", "m = settings.weight", "m *= 2.0", more=(OBJECT,)),
    case("a number that the program is given that is added to", "m = weight", "m *= 2.0", more=GIVEN),
    case("a kernel", "m = np.outer(np.hanning(5), np.hanning(5))[1:2, 1:4] + np.tri(1, 3)"),
]  # fmt: skip

LEFT = [
    other("drawn", "TM206", "m = np.random.uniform(size=3)"),
    other("read from a file", "TM222", "m = np.load('table.npy')"),
    other("written to a file", "TM222", "m = np.ones(3)", "np.save('m.npy', m)"),
    other("of a tensor", "TM222", "m = np.fliplr(tf.ones([1, 3]))"),
    other("into a table", "TM224", "m = np.sin(TABLE[0], out=TABLE[1])"),
    other("into a row that has a name", "TM222", "row = TABLE[1]", "m = np.sin(TABLE[0], out=row)"),
    other("into a table by its place", "TM222", "m = np.sin(TABLE[0], TABLE[1])"),
    other("a sum into a table by its place", "TM222", "m = np.add(TABLE[0], 1.0, TABLE[1])"),
    other("put into a table", "TM222", "np.put(TABLE, [0], [5.0])", "m = np.sort(TABLE[0])"),
    other("a table that is added to", "TM206", "m = TABLE", "m += 1.0", "m = m[:1]"),
    other("a row of a table that is added to", "TM206", "m = TABLE[0]", "m += 1.0"),
    other("rows of a table that are added to", "TM206", "for m in TABLE:", "    m += 1.0"),
    other("a row that a function adds to", "TM206", "m = add(TABLE[0])", more=(TABLE, (NET, "def add(m):\n    m += 1.0\n    return m\n\n\n" + NET))),
    other("a row that an object adds to", "TM206", "m = Sums(TABLE[0]).m", more=(TABLE, (NET, "class Sums(object):\n    def __init__(self, m):\n        self.m = m\n        self.m += 1.0\n\n\n" + NET))),
    other("one of two tables that is added to", "TM206", "m = np.ones(3) if len(DEVICES) > 2 else TABLE[0]", "m += 1.0"),
    other("a turned view that is changed", "TM206", "m = np.flipud(TABLE)[0]", "m += 1.0"),
    other("a squeezed view that is changed", "TM206", "m = np.squeeze(TABLE[:1])", "m *= 2.0"),
    other("what may be no copy", "TM206", "m = np.array(TABLE[0], copy=False)", "m *= 2.0"),
    other("a view of a table that is set an entry", "TM206", "v = np.fliplr(TABLE)", "v[0, 0] += 3.0", "m = v[0]"),
    other("a view of a view that is sorted", "TM206", "v = np.rot90(TABLE)", "v.sort()", "m = v.T[0]"),
    other("columns of a table that are added to", "TM222", "m = TABLE.T", "m += 1.0", "m = np.sum(m, 1)"),
    other("one of two lists that grows", "TM206", "m = FIRST if len(args) > 2 else LAST", "m += [1.0]", "m = m[-3:]", more=((NET, "FIRST = [1.0, 2.0, 3.0]\nLAST = [1.0, 2.0, 4.0]\nargs = [x for x in DEVICES]\n\n\n" + NET),)),
    other("lists of the command line that grow", "TM206", "m = args.weight", "m *= 2", "m = m[-3:]", more=((NET, ARGS[1].replace("type=float, default=0.5", "nargs=3, type=float, default=[1.0, 2.0, 3.0]")),)),
    other("a table among the arguments of the command line", "TM206", "m = args.table", "m *= 2.0", more=((NET, ARGS[1].replace("\n\n\n" + NET, "\nargs.table = np.ones(3)\n\n\n" + NET)),)),
    other("a table of an object that is added to", "TM206", "m = settings.weight", "m *= 2.0", more=((NET, OBJECT[1].replace("0.5", "np.ones(3)")),)),
    other("a number of an object that may be set to a table", "TM206", "m = settings.weight", "m *= 2.0", more=((NET, "def set_table(settings):\n    settings.weight = np.ones(3)\n\n\n" + OBJECT[1]),)),
    other("a table that the program is given that is added to", "TM206", "m = weight", "m *= 2.0", more=(*GIVEN, ("train(0.5)", "train(np.ones(3))"))),
    other("a list of a flag that grows", "TM206", "m = FLAGS.weight", "m += [1.0]", "m = m[-3:]", more=((NET, FLAGS[1].replace("DEFINE_float('weight', 0.5", "DEFINE_list('weight', '1,2,3'")),)),
    other("what a function is called for", "TM222", "m = np.apply_along_axis(lambda row: row * drawn.append(1), 1, TABLE)"),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
