"""Names that a program has by stars of its own files, and by theirs: what loop style takes and leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

TF = "import tensorflow as tf\n"
HEAD = "import numpy as np\nimport tensorflow as tf\n\n"
NET = """\
def net(x):
    w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.3))
    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
    return tf.matmul(x, w) + b
"""
OTHER = NET.replace("0.3", "-0.2")
COUNTS = """\
SEEN = []


def net(x):
    SEEN.append(len(SEEN))
    w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.3))
    return tf.matmul(x, w) * len(SEEN)
"""
SCALED = NET.replace("+ b\n", "+ b * scale(2.0)\n")
SCALE = "def scale(x):\n    return x * 0.5\n"


def files(*parts: Change) -> Mapping[str, str]:
    """The program, whose `net` comes from elsewhere: texts by the names of their files, and the imports, of no name."""
    text = program()["train.py"]
    start, end = text.index("def net(x)"), text.index("def average_gradients")
    given = dict(parts)
    text = text[:start] + given.pop("own", "") + text[end:]
    imports = given.pop("")
    assert TF in text
    made = {f"{name}.py": HEAD + of if of else "" for name, of in given.items()}
    return {"train.py": text.replace(TF, TF + imports, 1), **made}


def case(name: str, imports: str, **parts: str) -> Any:
    return pytest.param((("", imports), *parts.items()), id=name)


def other(name: str, rule: str, imports: str, **parts: str) -> Any:
    return pytest.param((("", imports), *parts.items()), rule, id=name)


A, B, AB = "from a import *\n", "from b import *\n", "from a import *\nfrom b import *\n"

TAKEN = [
    case("of one file", A, a=NET),
    case("of the last of two", AB, a=NET, b=OTHER),
    case("of the last of two, where the first does more", AB, a=COUNTS, b=NET),
    case("of the first, where the last has none", AB, a=NET, b=SCALE),
    case("handed on", A, a=B, b=NET),
    case("handed on twice", A, a=B, b="from c import *\n", c=NET),
    case("handed on, and bound anew", A, a=f"{B}\n{OTHER}", b=SCALE),
    case("handed on to a function", A, a=f"{B}\n{SCALED}", b=SCALE),
    case("handed on to a function by its name", "from a import net\n", a=f"{B}\n{SCALED}", b="from c import *\n", c=SCALE),
    case("handed on and imported by its name", "from a import net\n", a=B, b=NET),
    case("of a module that hands it on", "import a\n\n\ndef net(x):\n    return a.net_of(x)\n", a=B, b=NET.replace("net", "net_of")),
    case("of the one that lists it", AB, a=NET, b=f"__all__ = ['scale']\n\n\n{SCALE}\n\n{COUNTS}"),
    case("that both files import", AB, a=NET, b=f"import os\n\n{SCALE}"),
]  # fmt: skip

LEFT = [
    other("behind a library's", "TM229", f"from math import *\n{A}", a=NET),
    other("of files that take each other's", "TM222", A, a=f"{B}\n{SCALED}", b=f"{A}\n{SCALE}"),
    other("of the last of two, which does more", "TM206", AB, a=NET, b=COUNTS),
    other("handed on by the last of two, which does more", "TM206", AB, a=NET, b="from c import *\n", c=COUNTS),
    other("handed on, and does more", "TM206", A, a=B, b=COUNTS),
    other("handed on by its name, and does more", "TM206", "from a import net\n", a=B, b=COUNTS),
    other("of one of two", "TM229", "import sys\nif len(sys.argv) > 3:\n    from b import *\nelse:\n    from a import *\n", a=NET, b=OTHER),
    other("that may be a library's", "TM229", f"{A}from somewhere import *\n", a=NET),
    other("handed on, that may be a library's", "TM229", A, a=f"{B}from somewhere import *\n", b=NET),
    other("bound in both", "TM222", A, a=f"{NET}\n\n{B}", b=COUNTS),
    other("that are not listed", "TM222", A, a=B, b=f"__all__ = ['scale']\n\n\n{SCALE}\n\n{NET}"),
    other("that are the file's own", "TM222", A, a=NET.replace("net", "_net") + "\n\ndef other(x):\n    return x\n", own="def net(x):\n    return _net(x)\n\n\n"),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, files)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, files)
