"""Averaging and evaluation in files of their own: loop style needs neither any more, and must not lose what imports do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of

START, END = MODEL.index("def average_gradients"), MODEL.index("def batch")
AVERAGES = "import tensorflow as tf\n\n\n" + MODEL[START:END].rstrip() + "\n"
LOOK = """\
import numpy as np


def look(sess, loss, X, Y, x, y):
    values = []
    for k in range(2):
        values.append(sess.run(loss, feed_dict={X: x * k, Y: y}))
    return np.mean(values)
"""
IMPORT = "from averages import average_gradients\n"
SHOWN = "            print('step', step, 'loss', '%.6f' % value)\n"
TOLD = "            print('%.6f' % look(sess, loss, X, Y, bx, by))\n"
LAST = "        print('last %.6f' % look(sess, loss, X, Y, bx * 2, by))\n"
SAVED = "        saver.save(sess, 'ckpt/model')\n"
BEGIN = "if __name__ == '__main__':\n    train()\n"
TWICE = (
    (IMPORT, IMPORT + "from evaluation import look\n"),
    (SHOWN, SHOWN + TOLD),
    (SAVED, LAST + SAVED),
)
AVERAGED = "\n\ndef average_gradients"


def program(*changes: Change) -> Mapping[str, str]:
    """The files of the program with each `(old, new)` applied, in whichever of them it is."""
    head = HEAD.replace("DEVICES", IMPORT + "\nDEVICES", 1)
    model = MODEL[:START] + MODEL[END:]
    files = {
        "train.py": "\n\n".join([head, model, TRAIN, BEGIN]),
        "averages.py": AVERAGES,
        "evaluation.py": LOOK,
        "more.py": "print('more')\n",
        "plain.py": "SIZE = [1, 2]\n",
    }
    for old, new in changes:
        assert any(old in text for text in files.values()), old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def averages(text: str) -> Change:
    """What the file of the averages does beside."""
    return AVERAGED, f"\n{text}" + AVERAGED


def evaluation(text: str) -> Change:
    """What the file of the evaluation does beside."""
    return "import numpy as np\n\n\ndef look", f"import numpy as np\n{text}\n\ndef look"


TAKEN = [
    case("that do nothing"),
    case("an import that prints", averages("print('averages')\n")),
    case("an import that defines a flag", averages("tf.app.flags.DEFINE_integer('more', 4, '')\n"), (SAVED, SAVED + "        print(tf.app.flags.FLAGS.more)\n"), (BEGIN, "if __name__ == '__main__':\n    tf.app.run(lambda _: train())\n")),
    case("an import that sets a seed", averages("import numpy as np\nnp.random.seed(5)\n"), (SAVED, SAVED + "        print('%.6f' % np.random.rand())\n")),
    case("an import that imports what prints", averages("import more\n")),
    case("an import that imports what does nothing", averages("import plain\n")),
    case("an import that fills a list", averages("from plain import SIZE\nSIZE.append(3)\n"), (SAVED, SAVED + "        import plain\n        print(plain.SIZE)\n")),
    case("an import that prints under a condition", averages("if tf.__name__:\n    print('averages')\n")),
    case("an import that prints in a class", averages("class Some(object):\n    print('some')\n")),
    case("an import that is a program too", averages("if __name__ == '__main__':\n    print('averages')\n")),
    case("one name of several", (IMPORT, "from averages import HALF, average_gradients\n"), averages("HALF = 0.5\nprint('averages')\n"), (SAVED, SAVED + "        print(HALF)\n")),
    case("an evaluation in two places", *TWICE),
    case("an evaluation in two places, beside constants", *TWICE, evaluation("SCALE = [1.0, 2.0]\n")),
    case("an evaluation in two places, beside what is printed as a program", *TWICE, evaluation("if __name__ == '__main__':\n    print('evaluation')\n")),
    case("an evaluation in two places that reads its file", *TWICE, evaluation("SCALE = 0.5\n"), ("x * k", "x * k * SCALE")),
]  # fmt: skip

LEFT = [
    other("an evaluation in a file that prints", "TM205", *TWICE, evaluation("print('evaluation')\n")),
    other("an evaluation in a file that sets a seed", "TM205", *TWICE, evaluation("np.random.seed(3)\n")),
    other("an evaluation in a file that imports what prints", "TM205", *TWICE, evaluation("import more\n")),
    other("an evaluation that counts for its file", "TM205", *TWICE, evaluation("seen = 0\n"), ("    values = []\n", "    global seen\n    seen += 1\n    values = []\n")),
    other("an evaluation that is set anew", "TM205", *TWICE, (BEGIN, "if __name__ == '__main__':\n    import evaluation\n    evaluation.look = None\n    train()\n")),
    other("an evaluation in two functions", "TM205", *TWICE, (BEGIN, "def more(sess, loss, X, Y, x, y):\n    return look(sess, loss, X, Y, x, y)\n\n\n" + BEGIN), (LAST, LAST.replace("look(", "more("))),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
