"""Names of Python that a program has for itself, and questions for its names: what loop style takes, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

HEAD = "drawn = [0]\n"
IMPORT = "import numpy as np\n"
LOOP = "        for i in range(2):\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
BACKWARDS = "    return [n - 1 - k for k in [0, 1, 2, 3][:n]]\n"
TELLS = "        print('grads' in {}, 'train_step' in {})\n" + SAVE


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def own(text: str) -> Change:
    return HEAD, HEAD + "\n\n" + text + "\n"


def over(text: str) -> Change:
    return LOOP, f"        for i in {text}:\n"


def tells(text: str) -> Change:
    return SAVE, TELLS.replace("{}", text)


TAKEN = [
    case("xrange of six", (IMPORT, "from six.moves import xrange\n" + IMPORT), over("xrange(2)")),
    case("range of six", (IMPORT, "import six\n" + IMPORT), over("six.moves.range(2)")),
    case("range of builtins", (IMPORT, "from builtins import range\n" + IMPORT)),
    case("xrange as range", (IMPORT, IMPORT + "try:\n    xrange\nexcept NameError:\n    xrange = range\n"), over("xrange(2)")),
    case("a method called range", own("class Kept(object):\n    def range(self):\n        return 2\n")),
]  # fmt: skip

LEFT = [
    other("an own range", "TM229", own("def range(n):\n" + BACKWARDS)),
    other("an own range of another module", "TM229", (IMPORT, IMPORT + "from numpy import arange as range\n")),
    other("an own range as a value", "TM229", own("range = lambda n: [n - 1 - k for k in [0, 1, 2, 3][:n]]")),
    other("an own range of an object", "TM229", own("class Backwards(object):\n    def range(self, n):\n    " + BACKWARDS + "\n\nown = Backwards()"), over("own.range(2)")),
    other("an own enumerate", "TM229", own("def enumerate(given):\n    return [(1, given[1]), (0, given[0])]\n"), (LOOP, "        for i, _ in enumerate(DEVICES):\n")),
    other("an own zip", "TM229", own("def zip(*lists):\n    return [(a, a) for a, b in [(lists[0][k], lists[1][k]) for k in [0, 1]]]\n")),
    other("locals", "TM210", tells("locals()")),
    other("dir", "TM210", tells("dir()")),
    other("vars", "TM210", tells("vars()")),
    other("a frame", "TM210", (IMPORT, "import sys\n" + IMPORT), tells("sys._getframe().f_locals")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
