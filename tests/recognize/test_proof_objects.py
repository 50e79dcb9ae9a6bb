"""Python values from before the towers that a second reading would find changed: iterators, objects with methods."""

from __future__ import annotations

import pytest

from tests.recognize.programs import program, reasons

START = "    tower_grads = []\n"
MODEL = "    return tf.matmul(x, w)\n"
MODEL_DEF = "def model(x):\n"
IMPORT = "import tensorflow as tf\n"
SUMMED = ("tf.square(model(parts[i]))", "sum(scales) * tf.square(model(parts[i]))")

ITERATORS = {
    "iter": "iter([1.0, 2.0])",
    "map": "map(float, [1, 2])",
    "filter": "filter(None, [1.0, 2.0])",
    "reversed": "reversed([1.0, 2.0])",
    "a generator expression": "(float(k) for k in [1, 2])",
    "a file": "open('numbers')",
}


@pytest.mark.parametrize("name", ITERATORS)
def test_an_iterator_that_the_first_tower_uses_up(name: str) -> None:
    found = reasons(program((START, f"    scales = {ITERATORS[name]}\n{START}"), SUMMED))
    assert "TM222" in found, found


@pytest.mark.parametrize("iterable", ["[1.0, 2.0]", "(1.0, 2.0)", "list(map(float, [1, 2]))"])
def test_a_list_is_read_by_every_tower(iterable: str) -> None:
    assert reasons(program((START, f"    scales = {iterable}\n{START}"), SUMMED)) == {}


def test_a_parameter_that_may_be_an_iterator() -> None:
    found = reasons(
        program(("def train(num_gpus=2):\n", "def train(scales, num_gpus=2):\n"), SUMMED)
    )
    assert "TM222" in found, found


COUNTS = """\
class Counter(object):
    n = 0

    {}
        Counter.n += 1
        return float(Counter.n)


counter = Counter()


"""
OBJECTS = {
    "a property": ("@property\n    def value(self):", "counter.value"),
    "a method": ("def value(self):", "counter.value()"),
    "a call": ("def __call__(self):", "counter()"),
    "an operator": ("def __rmul__(self, other):", "2.0 * counter"),
    "an item": ("def __getitem__(self, key):", "counter['a']"),
    "an attribute that is made up": ("def __getattr__(self, name):", "counter.value"),
    "a length": ("def __len__(self):", "len(counter)"),
    "a truth": ("def __bool__(self):", "(2.0 if counter else 1.0)"),
    "a comparison": ("def __lt__(self, other):", "(2.0 if counter < 3 else 1.0)"),
    "a text": ("def __str__(self):", "float(str(counter))"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_that_counts_how_often_it_is_asked(name: str) -> None:
    method, use = OBJECTS[name]
    text = program(
        (MODEL_DEF, COUNTS.format(method) + MODEL_DEF), (MODEL, f"    x = x * {use}\n{MODEL}")
    )
    assert "TM222" in reasons(text), reasons(text)


def test_an_object_that_counts_given_to_the_program() -> None:
    counts = COUNTS.format("@property\n    def value(self):")
    text = program(
        (MODEL_DEF, counts + MODEL_DEF),
        ("def train(num_gpus=2):\n", "def train(num_gpus=2, scale=1.0):\n"),
        ("tf.square(model(parts[i]))", "scale.value * tf.square(model(parts[i]))"),
    )
    assert "TM222" in reasons(text + "\n\ntrain(scale=Counter())\n")


def test_plain_attributes_of_an_object_are_settings() -> None:
    settings = "class Settings(object):\n    scale = 2.0\n\n\nsettings = Settings()\n\n\n"
    text = program(
        (MODEL_DEF, settings + MODEL_DEF), (MODEL, f"    x = x * settings.scale\n{MODEL}")
    )
    assert reasons(text) == {}


@pytest.mark.parametrize("made", ["collections.defaultdict(float)", "itertools.count()"])
def test_collections_that_change_when_they_are_read(made: str) -> None:
    module = made.partition(".")[0]
    text = program(
        (IMPORT, f"{IMPORT}import {module}\n"),
        (MODEL_DEF, f"SEEN = {made}\n\n\n{MODEL_DEF}"),
        (MODEL, f"    x = x * (1.0 + SEEN[0])\n{MODEL}"),
    )
    assert "TM222" in reasons(text), reasons(text)


SCALES = ("tf.square(model(parts[i]))", "scales[0] * tf.square(model(parts[i]))")
PRINT = "            print(value)\n"
ALIASES = {
    "another name": ("    other = scales\n", "other[0] = 0.0"),
    "taken apart": ("    other, _ = scales, 1\n", "other.append(0.0)"),
    "in a dict": ("    box = {'s': scales}\n", "box['s'][0] = 0.0"),
    "in a list": ("    box = [scales]\n", "box[0].clear()"),
    "given back by a function": (
        "    other = max(scales, scales)\n    other = same(scales)\n",
        "other[0] = 0.0",
    ),
    "a default": ("    def lower(v=scales):\n        v[0] *= 0.5\n", "lower()"),
    "a closure": ("    def lower():\n        scales[0] *= 0.5\n", "lower()"),
    "a loop": ("", "for one in [scales]:\n                one[0] = 0.0"),
    "a view": ("    scales = np.ones([3])\n    view = scales[:2]\n", "view[0] = 0.0"),
    "a reshaped view": (
        "    scales = np.ones([3])\n    view = scales.reshape([1, 3])\n",
        "view[0, 0] = 0.0",
    ),
    "an output": ("    scales = np.ones([3])\n", "np.multiply(scales, 0.5, out=scales)"),
    "copied into": ("    scales = np.ones([3])\n", "np.copyto(scales, 0.0)"),
}


@pytest.mark.parametrize("name", ALIASES)
def test_a_list_or_array_that_is_changed_by_another_way(name: str) -> None:
    before, change = ALIASES[name]
    text = program(
        (START, f"    scales = [2.0]\n{before}{START}"),
        SCALES,
        (PRINT, f"{PRINT}            {change}\n"),
        (MODEL_DEF, f"def same(value):\n    return value\n\n\n{MODEL_DEF}"),
    )
    assert "TM224" in reasons(text), reasons(text)


@pytest.mark.parametrize(
    "change",
    [
        "globals()['SCALE'] = 1.0",
        "sys.modules[__name__].SCALE = 1.0",
        "exec('SCALE = 1.0', globals())",
        "vars()['SCALE'] = 1.0",
        "importlib.reload(settings)",
    ],
)
def test_a_module_whose_names_are_set_without_their_spelling(change: str) -> None:
    text = program(
        (IMPORT, f"{IMPORT}import importlib\nimport sys\n"),
        (MODEL_DEF, f"SCALE = 2.0\n\n\n{MODEL_DEF}"),
        (MODEL, f"    x = x * SCALE\n{MODEL}"),
        (PRINT, f"{PRINT}            {change}\n"),
    )
    assert "TM224" in reasons(text), reasons(text)
