"""Notebooks: code cells are rewritten in place, and everything else keeps its bytes."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from towermigrate import notebooks
from towermigrate.cli import main
from towermigrate.notebooks import rewrite_notebook

PROGRAM = (Path(__file__).parent.parent / "towermigrate/demo_program/complete.py").read_text()
IMPORT = "import tensorflow as tf\n"
OUTPUT = {"output_type": "stream", "text": ["tf.placeholder(1) caf\xe9\n"]}


def code(*sources: str, **keys: Any) -> dict[str, Any]:
    """A code cell; its source is a list of lines."""
    lines = "".join(sources).splitlines(keepends=True)
    return {"cell_type": "code", "id": "a1", "outputs": [OUTPUT], "source": lines, **keys}


def notebook(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def messages(text: str) -> list[str]:
    return [f.message for file in rewrite_notebook(text, "n.ipynb").files for f in file.findings]


def rewritten(text: str) -> str:
    """The notebook's new text, which another rewrite must not change."""
    new = rewrite_notebook(text, "n.ipynb").texts.get("n.ipynb", text)
    assert rewrite_notebook(new, "n.ipynb").texts == {}
    return new


CELLS = [
    pytest.param([IMPORT, "tf.log(x)"], [IMPORT, "tf.compat.v1.log(x)"], id="an import counts in later cells"),
    pytest.param([IMPORT, "%matplotlib inline\n!ls tf.log\ntf.log(1)\ntf.log?\n?tf"], [IMPORT, "%matplotlib inline\n!ls tf.log\ntf.compat.v1.log(1)\ntf.log?\n?tf"], id="magics stay"),
    pytest.param([IMPORT, "if a:\n    !pip install \\\n      tf.log\n    tf.log(1)\nfiles = !ls"], [IMPORT, "if a:\n    !pip install \\\n      tf.log\n    tf.compat.v1.log(1)\nfiles = !ls"], id="a command over lines and one with a result"),
    pytest.param([IMPORT, "%%time\ntf.log(1)", "%%bash\ntf.log(1)"], [IMPORT, "%%time\ntf.compat.v1.log(1)", "%%bash\ntf.log(1)"], id="a cell magic, and one whose cell is no Python"),
    pytest.param([IMPORT, "s = '''\n%tf.log\n!x\n'''; tf.log(s)"], [IMPORT, "s = '''\n%tf.log\n!x\n'''; tf.compat.v1.log(s)"], id="what looks like a magic in a text"),
    pytest.param([IMPORT, "for i in range(", "tf.log(1)"], [IMPORT, "for i in range(", "tf.compat.v1.log(1)"], id="a cell that is no Python stays"),
    pytest.param([IMPORT, "", "tf.layers.dense(x, 1)\n"], [IMPORT + "import towermigrate.helpers", "", "tf.compat.v1.layers.dense(x, 1)\n"], id="a line more, and an empty cell"),
    pytest.param([IMPORT, "print 'a', 7 / 2"], [IMPORT, "print('a', 7 // 2)"], id="Python 2"),
    pytest.param([IMPORT, "print 1", "f'{tf.log(1)}'"], [IMPORT, "print 1", "f'{tf.compat.v1.log(1)}'"], id="Python 2 beside Python 3"),
    pytest.param(["x = 1\n"], ["x = 1\n"], id="no TensorFlow"),
]  # fmt: skip


@pytest.mark.parametrize("indent", [1, None], ids=["indented", "on one line"])
@pytest.mark.parametrize(("before", "after"), CELLS)
def test_code_cells_are_rewritten(before: list[str], after: list[str], indent: int | None) -> None:
    text = json.dumps(notebook(*(code(cell) for cell in before)), indent=indent)
    assert [source.rstrip("\n") for source in sources(rewritten(text))] == [
        source.rstrip("\n") for source in after
    ]


LAYOUTS = [
    pytest.param({"indent": 1, "ensure_ascii": False}, id="as Jupyter writes it"),
    pytest.param({"indent": 4}, id="four spaces, escaped"),
    pytest.param({}, id="one line"),
    pytest.param({"indent": "\t", "separators": (",", ":")}, id="tabs and no space after colons"),
]


@pytest.mark.parametrize("end", ["\n", "", "\r\n"], ids=["end", "no end", "CRLF"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_but_the_changed_strings_stay(layout: dict[str, Any], end: str) -> None:
    markdown = {"cell_type": "markdown", "metadata": {"z": 1.50, "a": 1e3}, "source": ["tf.log(1)"]}
    book = notebook(code(IMPORT), markdown, code("y = 'caf\xe9'\n", "tf.log(1)\n", "z"))
    text = json.dumps(book, **layout) + end
    if end == "\r\n":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    text = text.replace("1000.0", "1E+3").replace("1.5", "1.50")
    place = text.rindex('"tf.log(1)\\n"')
    expected = text[:place] + '"tf.compat.v1.log(1)\\n"' + text[place + len('"tf.log(1)\\n"') :]
    assert rewritten(text) == expected


def test_a_source_that_is_one_string() -> None:
    cell = {"cell_type": "code", "source": IMPORT + "tf.log('\xe9')"}
    text = json.dumps(notebook(cell))
    assert rewritten(text) == text.replace("tf.log", "tf.compat.v1.log")


def test_version_3_of_the_format() -> None:
    cells = [
        {"cell_type": "code", "language": "python", "input": [IMPORT, "tf.log(1)"]},
        {"cell_type": "code", "language": "bash", "input": ["tf.log(1)"]},
    ]
    text = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3})
    assert rewritten(text) == text.replace("tf.log", "tf.compat.v1.log", 1)


def test_another_language_is_left_alone() -> None:
    text = json.dumps(notebook(code(IMPORT, "tf.log(1)"), kernelspec={"language": "R"}))
    assert rewritten(text) == text


UNREADABLE = [
    pytest.param('{"cells": [', id="no JSON"),
    pytest.param("[]", id="no object"),
    pytest.param('{"metadata": {}}', id="no cells"),
    pytest.param('{"cells": [{"cell_type": "code", "source": 1}]}', id="a source that is no text"),
    pytest.param('{"cells": ' + "[" * 100_000, id="nested without end"),
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_notebook_is_unparsable(text: str) -> None:
    report = rewrite_notebook(text, "n.ipynb")
    assert report.texts == {}
    assert [(file.status, file.findings[0].rule) for file in report.files] == [
        ("unparsable", "TM125")
    ]


def test_findings_name_their_cell() -> None:
    cells = [
        code(IMPORT),
        code("\n", "tf.contrib.crf.x()"),
        code("for i in"),
        code("%time tf.log()"),
    ]
    report = rewrite_notebook(json.dumps(notebook(*cells)), "n.ipynb")
    found = {f.rule: (f.line, f.message) for f in report.files[0].findings}
    assert found["TM111"][0] == 2 and found["TM111"][1].startswith("cell 2: `tf.contrib.crf")
    every = [f.message for f in report.files[0].findings if f.rule == "TM126"]
    assert every[0].startswith("cell 3: ") and every[1].startswith("a magic holds code")


def test_lists_of_lines_name_their_cells() -> None:
    text = json.dumps(notebook(code(IMPORT, "print 1"), code("a\n", "a / b"), code("b / a")))
    assert "cell 2: `/` may be one between integers: line 2 of cell 2, line 1 of cell 3" in messages(text)  # fmt: skip


def parts(program: str) -> list[str]:
    """A program as someone would spread it over cells: each function in its own."""
    return re.split(r"\n(?=def )", program)


@pytest.mark.parametrize("cells", [[PROGRAM], parts(PROGRAM)], ids=["one cell", "many cells"])
def test_a_tower_program_is_converted_in_its_cells(cells: list[str]) -> None:
    text = json.dumps(notebook(*(code(cell) for cell in cells)), indent=1)
    report = rewrite_notebook(text, "n.ipynb")
    assert [program.status for program in report.programs] == ["converted"]
    new = sources(rewritten(text))
    assert len(new) == len(cells)
    assert sum("@variables.tower" in source for source in new) == 1
    assert not any("def average_gradients" in source for source in new)
    assert not any("towermigrate: cell" in source for source in new)


MODULE_LEVEL = [
    IMPORT + "import numpy as np\n",
    """\
def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        average_grads.append((tf.reduce_mean(tf.concat(grads, 0), 0), grad_and_vars[0][1]))
    return average_grads
""",
    """\
x = tf.placeholder(tf.float32, [None, 3])
opt = tf.train.GradientDescentOptimizer(0.1)
splits = tf.split(x, 2)
tower_grads = []
with tf.variable_scope(tf.get_variable_scope()):
    for i in range(2):
        with tf.device('/gpu:%d' % i):
            w = tf.get_variable('w', [3, 1])
            loss = tf.reduce_mean(tf.square(tf.matmul(splits[i], w)))
            tf.get_variable_scope().reuse_variables()
            tower_grads.append(opt.compute_gradients(loss))
""",
    "train_op = opt.apply_gradients(average_gradients(tower_grads))\n",
    "sess = tf.Session()\nsess.run(tf.global_variables_initializer())\n",
    """\
for step in range(5):
    _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})
    print(value)
""",
]


def test_a_program_that_is_spread_over_cells() -> None:
    text = json.dumps(notebook(*map(code, MODULE_LEVEL)), indent=1)
    new = sources(rewritten(text))
    assert [bool(source.strip()) for source in new] == [True, False, True, False, False, True]
    assert new[2].startswith("strategy = tm.tower_strategy(2)\n")
    assert new[5].startswith("for step in range(5):\n    value = train_step(")


def test_a_loop_that_a_comment_cell_parts_is_told_apart() -> None:
    # The function that goes takes its own comments with it, not the cells around it.
    cells = [MODULE_LEVEL[0], "# Mean over the towers.\n" + MODULE_LEVEL[1], "# Towers.", *MODULE_LEVEL[2:]]  # fmt: skip
    new = sources(rewritten(json.dumps(notebook(*map(code, cells)))))
    assert len(new) == len(cells) and "def train_step" in new[3]


def test_a_magic_that_may_run_the_graph_refuses_the_program() -> None:
    text = json.dumps(notebook(code(PROGRAM), code("%time train(sess)")))
    report = rewrite_notebook(text, "n.ipynb")
    assert report.texts == {}
    assert [file.status for file in report.files] == ["refused"]
    assert "may run the graph" in report.files[0].findings[0].message


def test_a_refused_program_keeps_its_notebook() -> None:
    program = PROGRAM.replace("= average_gradients(", "= strange(")
    text = json.dumps(notebook(code(program)))
    report = rewrite_notebook(text, "n.ipynb")
    assert report.refused and report.texts == {}
    assert rewrite_notebook(text, "n.ipynb", refused="symbols").texts


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(notebooks).failed == 0


def test_a_tree_with_notebooks(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / ".ipynb_checkpoints").mkdir(parents=True)
    text = json.dumps(notebook(code(IMPORT, "tf.log('\xe9')")), ensure_ascii=False) + "\n"
    for name in ("a.ipynb", ".ipynb_checkpoints/a-checkpoint.ipynb"):
        (root / name).write_text(text, encoding="utf-8")
    (root / "other.ipynb").write_text(json.dumps(notebook(code("x = 1"))))
    (root / "m.py").write_text(IMPORT + "tf.log(1)\n")

    def run(*arguments: str | Path) -> int:
        return (
            CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False).exit_code
        )

    assert run("rewrite", root, "--json", tmp_path / "r.json") == 0
    found = json.loads((tmp_path / "r.json").read_text())["files"]
    assert [(file["path"], file["status"]) for file in found] == [
        ("a.ipynb", "rewritten"), ("m.py", "rewritten"),
    ]  # fmt: skip
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text.replace("tf.log", "tf.compat.v1.log")  # fmt: skip
    assert (root / ".ipynb_checkpoints/a-checkpoint.ipynb").read_text(encoding="utf-8") == text
    assert run("rewrite", root, "--check") == 0
    assert run("undo", root) == 0
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text
    assert run("rewrite", root / "a.ipynb", "--out", tmp_path / "out") == 0
    assert "compat" in (tmp_path / "out/a.ipynb").read_text(encoding="utf-8")
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text
