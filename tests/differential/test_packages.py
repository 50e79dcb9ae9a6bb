"""Programs in packages: built in one module, run in another, with imports by dots, by whole modules, by other names."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of, none_does_anything_else

BUILD = (
    TRAIN[: TRAIN.index("    with tf.Session")].replace("def train():", "def build():")
    + "    return train_op, loss, X, Y, saver\n"
)
NET, AVERAGE = MODEL[: MODEL.index("def average_gradients")], MODEL[MODEL.index("def average_gradients") : MODEL.index("def batch")]  # fmt: skip
BATCH = MODEL[MODEL.index("def batch") :]
TF = "import numpy as np\nimport tensorflow as tf\n"
RUN = """\
def main():
    train_op, loss, X, Y, saver = build()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            bx, by = batch(4)
            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
            print('step', step, 'loss', '%.6f' % value)
        saver.save(sess, 'ckpt/model')
        print('draws', drawn[0])
"""
START = "\n\nif __name__ == '__main__':\n    main()\n"
IN_BUILDER = "from .model import net\nfrom .parts.average import average_gradients\n"
IN_RUNNER = "from pkg.graph import build\n"
FILES = {
    "pkg/__init__.py": "",
    "pkg/parts/__init__.py": "",
    "pkg/parts/average.py": f"{TF}\n\n{AVERAGE}",
    "pkg/model.py": f"{TF}\n\n{NET}",
    "pkg/graph.py": f"{TF}{IN_BUILDER}\n\n{BUILD}",
    "data.py": f"{HEAD}\n\n{BATCH}",
    "train.py": f"{TF}from data import batch, drawn\n{IN_RUNNER}\n\n{RUN}{START}",
}

BUILDER, RUNNER, FILE = "the builder's imports", "the runner's imports", "file "


def program(*changes: Change) -> dict[str, str]:
    """The files with each change: the imports of the builder or the runner, a text that one file has, or a file."""
    files = dict(FILES)
    for old, new in changes:
        old = {BUILDER: IN_BUILDER, RUNNER: IN_RUNNER}.get(old, old)
        if old.startswith(FILE):
            files[old.removeprefix(FILE)] = new
            continue
        assert sum(old in text for text in files.values()) == 1, old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


MODULES = (
    FILES["pkg/graph.py"],
    FILES["pkg/graph.py"]
    .replace("net(x)", "model.net(x)")
    .replace("average_gradients(", "means.average_gradients("),
)
CALLED = "    train_op, loss, X, Y, saver = build()\n"
SUM = AVERAGE.replace("reduce_mean", "reduce_sum")


def called(text: str) -> Change:
    return CALLED, CALLED.replace("build()", text)


def modules(text: str) -> Change:
    return FILES["pkg/graph.py"], MODULES[1].replace(IN_BUILDER, text)


AS_MODULE = (
    (FILE + "train.py", "from pkg import trainer\n\ntrainer.main()\n"),
    (FILE + "pkg/trainer.py", f"{TF}from data import batch, drawn\nfrom .graph import build\n\n\n{RUN}"),
)  # fmt: skip

TAKEN = [
    taken("names by dots"),
    taken("names by the package", (BUILDER, "from pkg.model import net\nfrom pkg.parts.average import average_gradients\n")),
    taken("modules by dots", modules("from . import model\nfrom .parts import average as means\n")),
    taken("modules by the package", modules("from pkg import model\nimport pkg.parts.average as means\n")),
    taken("the builder's module", (RUNNER, "from pkg import graph\n"), called("graph.build()")),
    taken("the builder's module by its path", (RUNNER, "import pkg.graph\n"), called("pkg.graph.build()")),
    taken("the builder's module by another name", (RUNNER, "import pkg.graph as made\n"), called("made.build()")),
    taken("the builder by another name", (RUNNER, "from pkg.graph import build as make\n"), called("make()")),
    taken("the builder by another name, beside others", (RUNNER, "from pkg.graph import np as numbers, build as make\n"), called("make()")),
    taken("the package hands the builder on", (FILE + "pkg/__init__.py", "from .graph import build\n"), (RUNNER, "from pkg import build\n")),
    taken("the package hands the runner on", AS_MODULE[1], (FILE + "pkg/__init__.py", "from .trainer import main\n"), (FILE + "train.py", "from pkg import main\n\nmain()\n")),
    taken("a runner in the package", *AS_MODULE),
    taken("a runner in a package of it", AS_MODULE[0], (FILE + "train.py", "from pkg.parts import trainer\n\ntrainer.main()\n"),
          (FILE + "pkg/parts/trainer.py", f"{TF}from data import batch, drawn\nfrom ..graph import build\n\n\n{RUN}")),
    taken("a builder that is no package's own", (FILE + "pkg/__init__.py", "from .graph import build\n")),
    taken("one of a package", (FILE + "pkg/__init__.py", "from .graph import build\n"), (RUNNER, "import pkg\n"), called("pkg.build()")),
    taken("one that two packages hand on", (RUNNER, "from pkg import build as made\n"), called("made()"), (FILE + "pkg/__init__.py", "from .parts import build\n"), (FILE + "pkg/parts/__init__.py", "from pkg.graph import build\n"),
          (BUILDER, "from pkg.model import net\nfrom pkg.parts.average import average_gradients\n")),
    taken("a model that its package hands on", (FILE + "pkg/parts/__init__.py", "from .average import average_gradients as mean\n"), (BUILDER, "from .model import net\nfrom .parts import mean\n"), ("average_gradients(tower_grads)\n    train_op", "mean(tower_grads)\n    train_op")),
    taken("a package of a package hands it on", (FILE + "pkg/__init__.py", "from .parts import build\n"), (FILE + "pkg/parts/__init__.py", "from .graph import build\n"),
          (FILE + "pkg/parts/graph.py", FILES["pkg/graph.py"].replace("from .model", "from ..model").replace("from .parts.average", "from .average")), (FILE + "pkg/graph.py", ""), (RUNNER, "from pkg import build\n")),
    taken("a module of the same name elsewhere", (FILE + "model.py", f"{TF}\n\n{NET.replace('linspace(-0.4', 'linspace(-0.3')}")),
]  # fmt: skip

LEFT = [
    left("a module of the same name beside", "TM229", (BUILDER, "from .model import net\nfrom average import average_gradients\n"),
         (FILE + "pkg/average.py", f"{TF}\n\n{AVERAGE}"), (FILE + "average.py", f"{TF}\n\n{SUM}"), *AS_MODULE),
    left("a folder that is looked at first", "TM229", ("import numpy as np\nimport tensorflow as tf\nfrom data", "import sys\nsys.path.insert(0, 'lib')\nimport numpy as np\nimport tensorflow as tf\nfrom data"),
         (BUILDER, "from .model import net\nfrom average import average_gradients\n"), (FILE + "average.py", f"{TF}\n\n{AVERAGE}"), (FILE + "lib/average.py", f"{TF}\n\n{SUM}")),
    left("a package that calls another module so", "TM229", modules("from . import model\nfrom .parts import average as means\n"),
         (FILE + "pkg/parts/__init__.py", "from . import total as average\n"), (FILE + "pkg/parts/total.py", f"{TF}\n\n{SUM}")),
    left("the package has another name for the builder", "TM205", (FILE + "pkg/__init__.py", "from .graph import build as make\n"), (RUNNER, "from pkg import make\n"), called("make()")),
    left("the package's name for the builder is set", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n"), (FILE + "pkg/parts/__init__.py", "import pkg\n\npkg.build = None\n"), (RUNNER, "from pkg import build\n")),
    left("the package binds the builder anew", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n\nbuild = build\n"), (RUNNER, "from pkg import build\n")),
    left("the package may have another builder", "TM205", (FILE + "pkg/__init__.py", "try:\n    from .fast import build\nexcept ImportError:\n    from .graph import build\n"), (RUNNER, "from pkg import build\n")),
    left("the package's builder is replaced", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n"), (RUNNER, "import pkg\nfrom pkg import build\n\npkg.build = None\n")),
    left("the package's builder is called twice", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n"), (RUNNER, "import pkg\nfrom pkg import build\n"), (CALLED, CALLED + "    with tf.Graph().as_default():\n        pkg.build()\n")),
    left("two names for the builder", "TM205", (RUNNER, "from pkg.graph import build\nfrom pkg.graph import build as make\n"), (CALLED, "    with tf.Graph().as_default():\n        make()\n" + CALLED)),
    left("the package hands it on by another name", "TM205", (RUNNER, "from pkg import make as graph\n"), called("graph()"), (FILE + "pkg/__init__.py", "from pkg.graph import build as make\n")),
    left("the package hands another builder on", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n\nif len(__name__) > 9:\n    from .other import build\n"),
         (FILE + "pkg/other.py", "def build():\n    raise RuntimeError\n"), (RUNNER, "from pkg import build\n")),
    left("the package hands a builder on that it changes", "TM205", (FILE + "pkg/__init__.py", "from .graph import build\n\nbuilt = build\n\n\ndef build():\n    return built()\n"), (RUNNER, "from pkg import build\n")),
    left("the builder by two names", "TM205", (RUNNER, "from pkg.graph import build as make\nfrom pkg.graph import build\n"), called("(make if len(DATA) else build)()"), (BATCH, BATCH + "\n\nDATA = [1]\n"), ("from data import batch, drawn\n", "from data import DATA, batch, drawn\n")),
    left("the builder by a name that is bound anew", "TM205", (RUNNER, "from pkg.graph import build as make\n\nmake = dict(make=make)['make']\n"), called("make()")),
    left("another module that is no package", "TM205", (RUNNER, "from made import build\n"), (FILE + "made.py", "from pkg.graph import build\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
