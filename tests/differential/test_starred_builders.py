"""Programs whose builder comes by a star, of a file or a package, or is listed in `__all__`: taken, and neighbours."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of, none_does_anything_else

IMPORTS = "import numpy as np\nimport tensorflow as tf\n"
BEGIN = "    with tf.Session("
BUILD = TRAIN[: TRAIN.index(BEGIN)].replace("def train", "def build")
BUILD += "    return train_op, loss, X, Y, saver\n"
RUN = "def train():\n    train_op, loss, X, Y, saver = build()\n" + TRAIN[TRAIN.index(BEGIN) :]
START = "if __name__ == '__main__':\n    train()\n"
GRAPH = "\n\n".join([HEAD, MODEL, BUILD])
STAR = "from graph import *\n"
MAIN = f"{IMPORTS}{STAR}\n\n{RUN}\n\n{START}"
FILE = "file "
ONE = "drawn = [0]\n"


def program(*changes: Change) -> dict[str, str]:
    """The files with each `(old, new)` applied, or a file added; every `old` must be in one of them."""
    files = {"graph.py": GRAPH, "train.py": MAIN}
    for old, new in changes:
        if old.startswith(FILE):
            files[old.removeprefix(FILE)] = new
            continue
        assert sum(old in text for text in files.values()) == 1, old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def case(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def package(init: str, *changes: Change, imports: str) -> tuple[Change, ...]:
    """The builder in a package."""
    empty = (FILE + "graph.py", "VERSION = 1\n")
    return (
        (STAR, imports),
        empty,
        (FILE + "lib/graph.py", GRAPH),
        (FILE + "lib/__init__.py", init),
        *changes,
    )


APART: tuple[Change, ...] = (
    (FILE + "model.py", f"{HEAD}\n\n{MODEL}"),
    (FILE + "graph.py", f"{IMPORTS}from model import *\n\n\n{BUILD}"),
)

TAKEN = [
    case("a file"),
    case("a file, TensorFlow too", (IMPORTS + STAR, STAR)),
    case("a file that lists its names", (ONE, "__all__ = ['batch', 'build', 'drawn']\n" + ONE)),
    case("a file that lists its names, which are imported by themselves", (ONE, "__all__ = ['batch', 'build', 'drawn']\n" + ONE), (STAR, "from graph import batch, build, drawn\n")),
    case("two files", *APART),
    case("two files, both by their stars", *APART, (STAR, "from model import *\n" + STAR)),
    case("with a comment", (STAR, STAR.rstrip() + "  # noqa\n")),
    case("behind another file's", (FILE + "tools.py", "import os\n\n\ndef unused():\n    return os.getpid()\n"), (STAR, "from tools import *\n" + STAR)),
    case("the last of two files that both have it", (FILE + "more.py", "import numpy as np\n\n\ndef build():\n    return np.zeros(5)\n"), (STAR, "from more import *\n" + STAR)),
    case("a package", *package("from .graph import *\n", imports="from lib import batch, build, drawn\n")),
    case("a package, by its star", *package("from .graph import *\n", imports="from lib import *\n")),
    case("a package, by its name", *package("from .graph import *\n", ("build()\n" + RUN[RUN.index("build()\n") + 8 :], ("build()\n" + RUN[RUN.index("build()\n") + 8 :]).replace("build()", "lib.build()").replace("batch(4)", "lib.batch(4)").replace("drawn[0]", "lib.drawn[0]")), imports="import lib\n")),
]  # fmt: skip

LEFT = [
    other("in one case or the other", "TM205", (STAR, "try:\n    from faster import *\nexcept ImportError:\n    from graph import *\n")),
    other("of two files that both have it", "TM205", (FILE + "more.py", "import graph\n\n\ndef build():\n    return graph.build()\n"), (STAR, STAR + "from more import *\n")),
    other("of a file whose list grows", "TM205", (ONE, "__all__ = ['batch', 'drawn']\n__all__ += ['build']\n" + ONE)),
    other("of a file that has a name in one case", "TM205", (ONE, ONE + "if len(DEVICES) > 5:\n    more = 1\n"), (START, START.replace("    train()", "    print('more' if len(DEVICES) < 5 else more)\n    train()"))),
    other("behind a library's", "TM205", (STAR, "from math import *\n" + STAR)),
    other("of a file that sets names by a text", "TM205", (ONE, "globals()['more'] = 1\n" + ONE)),
    other("of a file that gives names when it is asked", "TM205", (ONE, "def __getattr__(name):\n    return name\n\n\n" + ONE)),
    other("of a file that takes names of this one", "TM205", (ONE, ONE + "\n\ndef more():\n    import train\n    return train\n")),
    other("where a text finds it", "TM205", (START, START.replace("    train()", "    print('build' in globals())\n    train()"))),
    other("that is bound anew", "TM205", (STAR, STAR + "\nfirst = build\n\n\ndef build():\n    return first()\n")),
    other("that its module is given another for", "TM205", (STAR, STAR + "import graph\n"), (START, START.replace("    train()", "    graph.build = None\n    train()"))),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
