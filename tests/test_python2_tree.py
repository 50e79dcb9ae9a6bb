"""A Python 2 tree comes over whole: what ran together with a file that only Python 2 parses is Python 2 as well."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from towermigrate.migrate import plan
from towermigrate.outcome import TreeReport
from towermigrate.python2 import in_python3
from towermigrate.rewrite import rewrite_tree

OLD = "print 'a'\n"
TF = "import tensorflow as tf\n"


def rewritten(sources: dict[str, str]) -> tuple[dict[str, str], TreeReport]:
    """All texts after a rewrite, which a second one must leave as they are."""

    def run(sources: dict[str, str]) -> TreeReport:
        links = {
            path: text
            for path, text in sources.items()
            if "tensorflow" not in text and "print '" not in text
        }
        others = {path: text for path, text in sources.items() if path not in links}
        return rewrite_tree(others, links=links)

    report = run(sources)
    after = {**sources, **report.texts}
    assert run(after).texts == {}
    for text in after.values():
        ast.parse(text)
    return after, report


CHANGED = [
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "import cPickle\nxs = xrange(3)\n"}, "data.py", "import pickle as cPickle\nxs = range(3)\n", id="it imports a file without the word"),
    pytest.param({"train.py": TF + OLD + "import a\n", "a.py": "import data\n", "data.py": "xs = xrange(3)\n"}, "data.py", "xs = range(3)\n", id="it does so through another"),
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "import os\nxs = xrange(7 / 2)\n"}, "data.py", "import os\nxs = range(7 // 2)\n", id="divisions of such a file are those of Python 2"),
    pytest.param({"run.py": TF + "import old\nimport data\n", "old.py": OLD, "data.py": "import os\nxs = xrange(3)\n"}, "data.py", "import os\nxs = range(3)\n", id="one script imports both"),
    pytest.param({"run.py": TF + "import old\nxs = xrange(3)\n", "old.py": OLD}, "run.py", TF + "import old\nxs = range(3)\n", id="a file that imports it"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "path", "text"), CHANGED)
def test_what_ran_with_python_2_is_brought_over(
    sources: dict[str, str], path: str, text: str
) -> None:
    after, report = rewritten(sources)
    assert after[path] == text
    (file,) = (file for file in report.files if file.path == path)
    assert file.findings[0].rule == "TM121"


STAYS = [
    pytest.param({"train.py": TF + OLD, "data.py": "import os\nxs = xrange(3)\n"}, "data.py", [], id="nothing imports it"),
    pytest.param({"train.py": TF + "import data\n", "data.py": "import os\nxs = xrange(3)\n"}, "data.py", [], id="nothing is Python 2 for certain"),
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "import os\nxs = range(3)\n"}, "data.py", [], id="it has nothing of Python 2"),
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "import os\nn = 7 / 2\n"}, "data.py", ["TM122"], id="a division may be one of Python 3"),
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "from __future__ import division\nimport os\nn = 7 / 2\n"}, "data.py", [], id="a division that is the same in both"),
    pytest.param({"train.py": TF + OLD + "import data\n", "data.py": "import os\ntry:\n    xrange\nexcept NameError:\n    xrange = range\n"}, "data.py", [], id="it is ready for both"),
    pytest.param({"old.py": OLD + "import data\n", "new.py": TF + "import data\ndef f(x: int): return xrange(x)\n", "data.py": "import os\n"}, "new.py", ["TM127"], id="Python 3 that imports what Python 2 did"),
    pytest.param({"old.py": OLD, "new.py": TF + "import old, data\ndef f(x: int): pass\n", "data.py": "import os\nxs = xrange(3)\n"}, "data.py", [], id="only Python 3 leads to it"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "path", "rules"), STAYS)
def test_what_may_be_python_3_stays(sources: dict[str, str], path: str, rules: list[str]) -> None:
    after, report = rewritten(sources)
    assert after[path] == sources[path]
    found = [
        finding.rule for file in report.files if file.path == path for finding in file.findings
    ]
    assert found == rules


MODEL = "nets/model.py"
RUN = TF + "import nets.model\n" + OLD
IMPORTS = [
    pytest.param("import ops\n", "from . import ops\n", id="a module"),
    pytest.param("import ops as o\n", "from . import ops as o\n", id="under another name"),
    pytest.param("import os, ops, sys\n", "from . import ops; import os, sys\n", id="among others, on as many lines"),
    pytest.param("from ops import conv\n", "from .ops import conv\n", id="a name of it"),
    pytest.param("from ops import *\n", "from .ops import *\n", id="all its names"),
    pytest.param("from sub.x import y\n", "from .sub.x import y\n", id="a package beside it"),
    pytest.param("def f():\n    import ops\n", "def f():\n    from . import ops\n", id="in a function"),
    pytest.param("from . import ops\n", "from . import ops\n", id="with a dot already"),
    pytest.param("import os\n", "import os\n", id="another module"),
    pytest.param("import nets.ops\n", "import nets.ops\n", id="from the root"),
    pytest.param("from __future__ import absolute_import\nimport ops\n", "from __future__ import absolute_import\nimport ops\n", id="it asks for Python 3's way"),
]  # fmt: skip
PACKAGE = {"nets/ops.py": "import os\n", "nets/sub/x.py": "import os\n"}


@pytest.mark.parametrize("old", ["", OLD], ids=["both", "python2"])
@pytest.mark.parametrize(("before", "after"), IMPORTS)
def test_imports_inside_a_package(before: str, after: str, old: str) -> None:
    texts, _ = rewritten({"run.py": RUN, MODEL: before + old, **PACKAGE})
    assert texts[MODEL] == after + old.replace("print 'a'", "print('a')")


UNSURE = [
    pytest.param({MODEL: "import ops\nif __name__ == '__main__':\n    pass\n"}, id="it is a script itself"),
    pytest.param({MODEL: "import ops\n", "nets/eval.py": "import model\nif __name__ == '__main__':\n    pass\n"}, id="a script beside it runs it"),
    pytest.param({MODEL: "import ops\n", "b.py": "import sys\nsys.path.append('nets')\n"}, id="the path is changed"),
    pytest.param({MODEL: "import sub.x\n"}, id="a module of a package, which binds another name"),
]  # fmt: skip


@pytest.mark.parametrize("sources", UNSURE)
def test_an_import_that_may_be_meant_as_it_is_gets_a_finding(sources: dict[str, str]) -> None:
    texts, report = rewritten({"run.py": RUN, **PACKAGE, **sources})
    assert texts[MODEL] == sources[MODEL]
    places = [
        (each.path, each.line)
        for file in report.files
        for each in file.findings
        if each.rule == "TM128"
    ]
    assert places == [(MODEL, 1)]


def test_scripts_of_one_folder_import_each_other_as_before() -> None:
    sources = {"nets/run.py": RUN.replace("nets.", ""), MODEL: "import ops\n", **PACKAGE}
    assert rewritten(sources)[0][MODEL] == "import ops\n"


def test_a_package_of_python_2_runs_under_python_3(tmp_path: Path) -> None:
    files = {
        "run.py": "import pkg.model\nprint 'sum', pkg.model.total()\n# tensorflow\n",
        "pkg/__init__.py": "import data\n",
        "pkg/model.py": "from data import table\ndef total():\n    return sum(v / 2 for k, v in table.iteritems() for _ in xrange(2))\n",
        "pkg/data.py": "import cPickle as pickle\ntable = dict((i, 5) for i in xrange(3))\n",
    }  # fmt: skip
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    plan(tmp_path).apply()
    done = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("sum 15.0\n", "")
    assert not plan(tmp_path).report.texts


def test_originals_run_in_python3_with_all_that_ran_with_them() -> None:
    sources = {
        "train.py": "import tensorflow as tf\nimport nets.layers\nprint 'go'\n",
        "nets/__init__.py": "",
        "nets/layers.py": "import sizes\nfor i in xrange(3): sizes.put(i)\n",
        "nets/sizes.py": "def put(i): pass\n",
        "beside.py": "for i in xrange(3): pass\n",
    }
    found = in_python3(sources)
    assert found["train.py"].endswith("print('go')\n")
    assert found["nets/layers.py"] == "from . import sizes\nfor i in range(3): sizes.put(i)\n"
    assert {path for path in found if found[path] != sources[path]} == {
        "train.py",
        "nets/layers.py",
    }
