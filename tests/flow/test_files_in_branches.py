"""A file is run once, wherever it is asked for first; programs that import in branches are run by Python and by the interpreter."""

from __future__ import annotations

import importlib.abc
import importlib.util
import random
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tests.flow.probing import covers, interpreted, run
from tests.flow.test_values import OPEN, shown

FILES = {
    "settings": "names = []\ntable = {}\ncounts = [0]\n\nclass Held:\n    pass\n\nheld = Held()\nnumber = 1\n",
    "model": (
        "import settings\nimport layers\nsettings.names.append('model')\nsettings.table['model'] = 1\nsettings.counts[0] += 1\n"
        "settings.held.model = 3\nsettings.number = 2\nparts = [1, 2]\nkinds = {'a': parts}\nsize = 4\n\ndef build(n):\n"
        "    parts.append(n)\n    return n + size\n\nclass Net:\n    depth = 2\n    def up(self):\n        return self.depth + layers.width\n"
    ),
    "layers": "import settings\nsettings.names.append('layers')\nwidth = 7\nmade = []\n\ndef layer(n):\n    made.append(n)\n    return len(made)\n",
}  # fmt: skip


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules in a table of texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name in self.texts else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.texts[module.__name__], module.__name__, "exec"), module.__dict__)


@contextmanager
def importable(texts: Mapping[str, str]) -> Iterator[None]:
    finder = _Finder(texts)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in texts:
            sys.modules.pop(name, None)


ASKED = (
    "import model", "from model import build", "from model import parts", "import layers", "from layers import layer", "import settings",
    "import model as m\nm.size = 9", "import settings\nsettings.number = 5", "import settings\nsettings.held.model = 8",
    "import model\nmodel.build(1)", "from layers import layer\nlayer(3)", "import settings\nsettings.names.append('here')",
)  # fmt: skip
SHOWN = (
    "import settings\nshow(settings.names)", "import settings\nshow(settings.table)", "import settings\nshow(settings.counts)",
    "import settings\nshow(settings.number)", "import settings\nshow(hasattr(settings.held, 'model'))",
    "import settings\nshow(settings.held.model)", "import model\nshow(model.parts)", "import model\nshow(model.kinds)", "import model\nshow(model.size)",
    "from model import build\nshow(build(2))", "import model\nshow(model.Net().up())", "import layers\nshow(layers.made)",
    "from layers import layer\nshow(layer(5))", "from layers import width\nshow(width)", "show(1)",
)  # fmt: skip


def program(seed: int) -> str:
    """Statements that ask for files and show what is in them, in branches, loops, functions and `try`."""
    chance = random.Random(seed)
    lines = ["def use(n):", textwrap.indent(_block(chance, 1), "    ")]
    lines += ["    return n", "def ask():", textwrap.indent(_block(chance, 1), "    ")]
    lines += [_block(chance, 2) for _ in range(3)]
    return "\n".join(lines) + "\n"


def _block(chance: random.Random, depth: int) -> str:
    return "\n".join(_statement(chance, depth) for _ in range(chance.randint(1, 3)))


def _statement(chance: random.Random, depth: int) -> str:
    form = chance.choice("aaassssiiftwc" if depth else "ass")
    if form == "a":
        return chance.choice(ASKED)
    if form == "s":
        return chance.choice(SHOWN)
    if form == "c":
        return chance.choice(("use(1)", "ask()")) if depth == 2 else "show(2)"
    inner = textwrap.indent(_block(chance, depth - 1), "    ")
    other = textwrap.indent(_block(chance, depth - 1), "    ")
    if form == "i":
        return (
            f"if flip():\n{inner}\nelse:\n{other}"
            if chance.random() < 0.6
            else f"if flip():\n{inner}"
        )
    if form == "t":
        return (
            f"try:\n{inner}\n    if flip():\n        raise ValueError\nexcept ValueError:\n{other}"
        )
    if form == "f":
        return f"for k in {chance.choice(('[1, 2]', 'opaque()', 'range(3)'))}:\n{inner}"
    return f"while flip():\n{inner}"


def wrong(text: str, runs: int = 6) -> list[str]:
    """Where Python showed what the interpreter says cannot be."""
    claimed = interpreted(text, **FILES)
    found: list[str] = []
    for seed in range(runs):
        with importable(FILES):
            for line, values in run(text, seed).items():
                claims = claimed.get(line, [])
                found += [
                    f"line {line}: {value!r} of {claims or 'never run'!r}"
                    for value in values
                    if not any(covers(each, value) for each in claims)
                ]
    return found


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_nothing_that_python_shows_is_ruled_out(first: int) -> None:
    found = {seed: wrong(program(seed)) for seed in range(first, first + 100)}
    assert {seed: what[:2] for seed, what in found.items() if what} == {}


@pytest.mark.full
def test_nothing_of_many_programs_is_ruled_out() -> None:
    found = {seed: wrong(program(seed)) for seed in range(10_000, 13_000)}
    assert {seed: what[:2] for seed, what in found.items() if what} == {}


EITHER = "if flip():\n    import model\n    show(model.size)\nelse:\n    import model\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EITHER + "    show(model.size)\n    show(model.kinds['a'][1])\nshow(model.build(1))", [4, 4, 2, 5]),
        (EITHER + "    show(model.Net().up())\n", [4, 9]),
        ("def f():\n    import model\n    return model.build(1)\nif flip():\n    f()\nimport model\nshow(model.size)\nshow(len(model.parts))", [4, OPEN]),
        ("try:\n    import model\n    opaque()\nexcept ValueError:\n    import model\n    show(model.size)\nshow(model.size)", [4, 4]),
        ("if flip():\n    import model\nimport settings\nshow(hasattr(settings.held, 'model'))", [OPEN]),
        ("if flip():\n    import model\nimport settings\nshow(settings.number)\nshow(len(settings.names))", [OPEN, OPEN]),
    ],
)  # fmt: skip
def test_what_is_known_of_a_file_that_a_branch_asks_for(text: str, expected: list[object]) -> None:
    assert shown(text, **FILES) == expected
