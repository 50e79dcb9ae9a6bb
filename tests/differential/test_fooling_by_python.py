"""Programs that fool by what Python allows: each another way to change, behind the towers' backs, what a tower has read.

In TensorFlow 1 a tower has read it when the graph was built. What is traced later would read what came of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.test_fooling import AVERAGED, behind, case, reading, scales, top
from towermigrate.rewrite import rewrite_tree

LIST = "SCALES = [1.0]"
ARRAY = "SCALES = np.ones(2)"
HOLDER = "SCALES = [1.0]\n\n\nclass Holder(object):\n    "
CONFIG = "class Config(object):\n    scale = 1.0\n\n\ncfg = Config()\n"
SCALE = "def scale(value=1.0):\n    return value\n"


def of(name: str, made: str, read: str, then: str = "pass") -> Any:
    """The towers read `read`, of what `made` made, and `then` changes it."""
    return case(name, top(made), reading(read), behind(then))


# Special methods, which run where none is called by its name.
CLASSES = [
    scales("a metaclass's call", "SCALES = [1.0]\n\n\nclass Shared(type):\n    def __call__(cls):\n        return SCALES\n\n\nclass Current(object, metaclass=Shared):\n    pass", "Current()[0] = 0.5"),
    scales("a metaclass's attribute", "SCALES = [1.0]\n\n\nclass Shared(type):\n    def __getattr__(cls, name):\n        return SCALES\n\n\nclass Current(object, metaclass=Shared):\n    pass", "Current.any[0] = 0.5"),
    scales("`__new__`", HOLDER + "def __new__(cls):\n        return SCALES", "Holder()[0] = 0.5"),
    scales("`__getattr__`", HOLDER + "def __getattr__(self, name):\n        return SCALES", "Holder().any[0] = 0.5"),
    scales("`__getattribute__`", HOLDER + "def __getattribute__(self, name):\n        return SCALES", "Holder().any[0] = 0.5"),
    scales("`__getitem__`", HOLDER + "def __getitem__(self, key):\n        return SCALES", "Holder()['any'][0] = 0.5"),
    scales("`__setitem__`", HOLDER + "def __setitem__(self, key, value):\n        SCALES[0] = value", "Holder()['any'] = 0.5"),
    scales("`__setattr__`", HOLDER + "def __setattr__(self, name, value):\n        SCALES[0] = value", "Holder().any = 0.5"),
    scales("`__delattr__`", HOLDER + "def __delattr__(self, name):\n        SCALES[0] = 0.5", "del Holder().any"),
    scales("`__call__`", HOLDER + "def __call__(self):\n        SCALES[0] = 0.5", "Holder()()"),
    scales("`__enter__`", HOLDER + "def __enter__(self):\n        return SCALES\n\n    def __exit__(self, *error):\n        return False", "with Holder() as held:\n        held[0] = 0.5"),
    scales("`__exit__`", HOLDER + "def __enter__(self):\n        return self\n\n    def __exit__(self, *error):\n        SCALES[0] = 0.5", "with Holder():\n        pass"),
    scales("`__iter__`", HOLDER + "def __iter__(self):\n        return iter([SCALES])", "for held in Holder():\n        held[0] = 0.5"),
    scales("`__iadd__`", HOLDER + "def __iadd__(self, other):\n        SCALES[0] = other\n        return self", "held = Holder()\n    held += 0.5"),
    scales("`__eq__`", HOLDER + "def __eq__(self, other):\n        SCALES[0] = 0.5\n        return True", "_ = Holder() == 1"),
    scales("`__bool__`", HOLDER + "def __bool__(self):\n        SCALES[0] = 0.5\n        return True", "if Holder():\n        pass"),
    scales("`__len__`", HOLDER + "def __len__(self):\n        SCALES[0] = 0.5\n        return 1", "len(Holder())"),
    scales("`__str__`", HOLDER + "def __str__(self):\n        SCALES[0] = 0.5\n        return ''", "'%s' % Holder()"),
    scales("`__format__`", HOLDER + "def __format__(self, spec):\n        SCALES[0] = 0.5\n        return ''", "f'{Holder()}'"),
    scales("`__del__`", HOLDER + "def __del__(self):\n        SCALES[0] = 0.5", "held = Holder()\n    del held"),
    scales("`__init_subclass__`", HOLDER + "def __init_subclass__(cls):\n        SCALES[0] = 0.5", "class Late(Holder):\n        pass"),
    scales("`__set_name__`", HOLDER + "def __set_name__(self, owner, name):\n        SCALES[0] = 0.5", "class Late(object):\n        held = Holder()"),
    scales("a decorator", LIST + "\n\n\ndef halving(function):\n    SCALES[0] = 0.5\n    return function", "@halving\n    def late():\n        pass"),
    scales("the body of a class", LIST, "class Late(object):\n        SCALES[0] = 0.5"),
]  # fmt: skip
# The same list by other names and places, and methods of it that nobody sees called.
NAMES = [
    scales("two names at once", "SCALES = CURRENT = [1.0]", "CURRENT[0] = 0.5"),
    scales("a starred name", LIST, "first, *rest = [SCALES, 1]\n    first[0] = 0.5"),
    scales("a walrus", LIST, "(held := SCALES)[0] = 0.5"),
    scales("the target of a loop", LIST, "for SCALES[0] in (0.5,):\n        pass"),
    scales("the target of a with", LIST + "\nimport contextlib", "with contextlib.nullcontext(0.5) as SCALES[0]:\n        pass"),
    scales("a comprehension", LIST, "[held.insert(0, 0.5) for held in (SCALES,)]"),
    scales("a method by its name", LIST, "getattr(SCALES, 'insert')(0, 0.5)"),
    scales("a method that is kept", LIST + "\nput = SCALES.insert", "put(0, 0.5)"),
    scales("a partial method", LIST + "\nimport functools", "functools.partial(SCALES.insert, 0)(0.5)"),
    scales("a method of the class", LIST, "list.__setitem__(SCALES, 0, 0.5)"),
    scales("an operator's function", LIST + "\nimport operator", "operator.setitem(SCALES, 0, 0.5)"),
    scales("a key for sorting", LIST, "sorted([SCALES], key=lambda held: held.insert(0, 0.5) or 0)"),
    scales("an error's argument", LIST, "try:\n        raise KeyError(SCALES)\n    except KeyError as error:\n        error.args[0][0] = 0.5"),
    scales("a thread", LIST + "\nimport threading", "late = threading.Thread(target=SCALES.insert, args=(0, 0.5))\n    late.start()\n    late.join()"),
    scales("recursion", LIST + "\n\n\ndef halve(depth):\n    if depth == 0:\n        SCALES[0] = 0.5\n    else:\n        halve(depth - 1)", "halve(9)"),
    scales("random", "import random\nSCALES = [1.0, 0.5, 0.25, 2.0]", "random.Random(1).shuffle(SCALES)"),
    scales("eval", LIST, "eval('SCALES.insert(0, 0.5)')"),
    scales("a frame", LIST + "\nimport sys", "sys._getframe().f_globals['SCALES'] = [0.5]"),
    scales("a function's names", LIST, "train.__globals__['SCALES'] = [0.5]"),
    scales("the module by its name", LIST + "\nimport sys", "setattr(sys.modules[__name__], 'SCALES', [0.5])"),
    scales("an array and its view", "BASE = np.ones(4)\nSCALES = BASE[:2]", "BASE[0] = 0.5"),
    scales("an array that is no copy", ARRAY + "\nCURRENT = np.asarray(SCALES)", "CURRENT[0] = 0.5"),
    scales("an array's memory", ARRAY, "memoryview(SCALES)[0] = 0.5"),
    scales("an array's flat form", ARRAY, "SCALES.flat[0] = 0.5"),
    scales("what fills an array", ARRAY, "SCALES.fill(0.5)"),
    scales("what copies into an array", ARRAY, "np.copyto(SCALES, 0.5)"),
]  # fmt: skip
# Other things that are read than a list.
STATES = [
    of("a closure's name", "def cell():\n    held = 1.0\n\n    def get():\n        return held\n\n    def put(new):\n        nonlocal held\n        held = new\n\n    return get, put\n\n\nget, put = cell()", "get()", "put(0.5)"),
    of("a name of the module", "held = 1.0\n\n\ndef halve():\n    global held\n    held = 0.5", "held", "halve()"),
    of("a lambda's free name", "held = 1.0\nget = lambda: held\n\n\ndef halve():\n    global held\n    held = 0.5", "get()", "halve()"),
    of("a function's attribute", SCALE + "\n\nscale.held = 1.0", "scale.held", "scale.held = 0.5"),
    of("a function's default", SCALE, "scale()", "scale.__defaults__ = (0.5,)"),
    of("a function's code", SCALE, "scale()", "scale.__code__ = (lambda value=1.0: value * 0.5).__code__"),
    of("a class's attribute", CONFIG, "cfg.scale", "Config.scale = 0.5"),
    of("the class of an object", CONFIG, "cfg.scale", "type(cfg).scale = 0.5"),
    of("another class for an object", CONFIG + "\n\nclass Half(object):\n    scale = 0.5\n", "cfg.scale", "cfg.__class__ = Half"),
    of("an attribute by object", CONFIG, "cfg.scale", "object.__setattr__(cfg, 'scale', 0.5)"),
    of("an attribute that is gone", CONFIG + "cfg.scale = 2.0\n", "cfg.scale", "del cfg.scale"),
    of("a list in a named tuple", "import collections\nPair = collections.namedtuple('Pair', 'scale')\nPAIR = Pair([1.0])", "PAIR.scale[0]", "PAIR.scale[0] = 0.5"),
    of("a setting of the system", "import os", "float(os.environ.get('SCALE', '1'))", "os.environ['SCALE'] = '0.5'"),
    of("the arguments of the program", "import sys", "float(len(sys.argv))", "sys.argv.append('--more')"),
    of("a function of NumPy", "", "np.float32(np.mean([1.0, 3.0]))", "np.mean = np.max"),
    of("a function of Python", "import builtins", "float(sum([1.0, 3.0]))", "builtins.sum = max"),
    of("a function of TensorFlow", "held = tf.tanh", "tf.tanh(1.0)", "tf.tanh = tf.sigmoid"),
]  # fmt: skip
# What gives another value each time that it is read.
DRAWN = [
    of("an iterator", "HELD = iter([1.0, 0.5, 0.25, 2.0])", "next(HELD)"),
    of("an iterator with an end", "HELD = iter([1.0, 0.5])", "next(HELD, 3.0)"),
    of("a generator", "def giving():\n    held = 1.0\n    while True:\n        yield held\n        held *= 0.5\n\n\nHELD = giving()", "next(HELD)"),
    of("a generator that is sent values", "def giving():\n    held = 1.0\n    while True:\n        held *= (yield held) or 0.5\n\n\nHELD = giving()", "next(HELD)"),
    of("pairs that are used up", "HELD = zip([1.0, 0.5], 'ab')", "sum(each for each, _ in HELD)"),
    of("a map that is used up", "HELD = map(float, '123')", "sum(HELD)"),
    of("a filter that is used up", "HELD = filter(None, [1.0, 0.5])", "sum(HELD)"),
    of("a count", "import itertools\nHELD = itertools.count(1)", "(1.0 / next(HELD))"),
    of("a cycle", "import itertools\nHELD = itertools.cycle([1.0, 0.5, 0.25])", "next(HELD)"),
    of("a list that gets shorter", "HELD = [2.0, 0.25, 0.5, 1.0]", "HELD.pop()"),
    of("a queue", "import collections\nHELD = collections.deque([1.0, 0.5, 0.25])", "HELD.popleft()"),
    of("a default that is made", "import collections\nHELD = collections.defaultdict(lambda: 1.0 / (1 + len(HELD)))", "HELD[len(HELD)]"),
    of("a default that grows", "def growing(held=[]):\n    held.append(1.0)\n    return float(len(held))", "growing()"),
    of("an object's count", "class Config(object):\n    count = 0\n\n    def __call__(self):\n        self.count += 1\n        return 1.0 / self.count\n\n\ncfg = Config()", "cfg()"),
    of("a number of Python's", "import random\nrandom.seed(1)", "random.random()"),
    of("a number of NumPy's", "np.random.seed(1)", "np.random.uniform()"),
]  # fmt: skip
WAYS = [*CLASSES, *NAMES, *STATES, *DRAWN]


def in_style(changes: Iterable[Change]) -> str | None:
    (result,) = rewrite_tree(program(*changes)).programs
    return result.style


@pytest.mark.parametrize("changes", [pytest.param(one.values[0], id=one.id) for one in WAYS])
def test_it_is_not_fooled(changes: tuple[Change, ...]) -> None:
    assert in_style(changes) == "session"


@pytest.mark.full
def test_it_is_for_the_change_that_most_are_not_in_loop_style() -> None:
    """Where everything is left in session style, none of the above says anything."""
    alone = [[each for each in one.values[0] if each[0] != AVERAGED] for one in WAYS]
    assert sum(in_style(changes) == "loop" for changes in alone) >= 45


@pytest.mark.parametrize("made", [LIST, ARRAY, CONFIG])
def test_what_nothing_changes_may_be_read(made: str) -> None:
    assert in_style((top(made), reading("cfg.scale" if made == CONFIG else "SCALES[0]"))) == "loop"
