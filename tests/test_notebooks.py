"""Notebooks: code cells are rewritten in place, and everything else keeps its bytes."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate import notebooks
from towermigrate.cli import main
from towermigrate.migrate import plan
from towermigrate.notebooks import Positions, rewrite_notebook

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
    pytest.param([IMPORT, "tf.log(x)"], [IMPORT, "tf.math.log(x)"], id="an import counts in later cells"),
    pytest.param([IMPORT, "%matplotlib inline\n!ls tf.log\ntf.log(1)\ntf.log?\n?tf"], [IMPORT, "%matplotlib inline\n!ls tf.log\ntf.math.log(1)\ntf.log?\n?tf"], id="magics stay"),
    pytest.param([IMPORT, "if a:\n    !pip install \\\n      tf.log\n    tf.log(1)\nfiles = !ls"], [IMPORT, "if a:\n    !pip install \\\n      tf.log\n    tf.math.log(1)\nfiles = !ls"], id="a command over lines and one with a result"),
    pytest.param([IMPORT, "%%time\ntf.log(1)", "%%bash\ntf.log(1)"], [IMPORT, "%%time\ntf.math.log(1)", "%%bash\ntf.log(1)"], id="a cell magic, and one whose cell is no Python"),
    pytest.param([IMPORT, "s = '''\n%tf.log\n!x\n'''; tf.log(s)"], [IMPORT, "s = '''\n%tf.log\n!x\n'''; tf.math.log(s)"], id="what looks like a magic in a text"),
    pytest.param([IMPORT, "for i in range(", "tf.log(1)"], [IMPORT, "for i in range(", "tf.math.log(1)"], id="a cell that is no Python stays"),
    pytest.param([IMPORT, "", "tf.layers.dense(x, 1)\n"], [IMPORT + "import towermigrate.helpers", "", "tf.compat.v1.layers.dense(x, 1)\n"], id="a line more, and an empty cell"),
    pytest.param([IMPORT, "print 'a', 7 / 2"], [IMPORT, "print('a', 7 // 2)"], id="Python 2"),
    pytest.param([IMPORT, "print 1", "f'{tf.log(1)}'"], [IMPORT, "print 1", "f'{tf.math.log(1)}'"], id="Python 2 beside Python 3"),
    pytest.param(["x = 1\n"], ["x = 1\n"], id="no TensorFlow"),
]  # fmt: skip


def test_a_notebook_is_run_as_a_script_is() -> None:
    cells = [IMPORT, "def train():\n    with tf.Session() as sess:\n        sess.run(0)", "train()"]
    text = json.dumps(notebook(*map(code, cells)))
    new = sources(rewritten(text))
    assert new[0] == IMPORT + "\ntf.compat.v1.disable_v2_behavior()\n"
    assert new[1:] == [cells[1].replace("tf.Session", "tf.compat.v1.Session"), "train()"]
    assert messages(text) == []


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
    expected = text[:place] + '"tf.math.log(1)\\n"' + text[place + len('"tf.log(1)\\n"') :]
    assert rewritten(text) == expected


def test_a_source_that_is_one_string() -> None:
    cell = {"cell_type": "code", "source": IMPORT + "tf.log('\xe9')"}
    text = json.dumps(notebook(cell))
    assert rewritten(text) == text.replace("tf.log", "tf.math.log")


def test_version_3_of_the_format() -> None:
    cells = [
        {"cell_type": "code", "language": "python", "input": [IMPORT, "tf.log(1)"]},
        {"cell_type": "code", "language": "bash", "input": ["tf.log(1)"]},
    ]
    text = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3})
    assert rewritten(text) == text.replace("tf.log", "tf.math.log", 1)


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


MARKDOWN = {"cell_type": "markdown", "source": ["One\n", "Two"]}
PLACED = [
    code("%matplotlib inline\n", IMPORT),
    MARKDOWN,
    code("!pip install \\\n", "  caf\xe9\n", "x = '\\t\xe9\U0001f600'; tf.contrib.crf.x()"),
    code("x = 1\n", "for i in"),
    code("\n", "%time tf.log()"),
]
# Rule, cell, line in the cell, column; and the text of the file's line from the column on.
PLACES = [
    ("TM111", 3, 3, 12, "tf.contrib.crf.x()"),
    ("TM126", 4, 2, 0, "for i in"),
    ("TM126", 5, 2, 0, "%time tf.log()"),
]


def test_findings_count_in_their_cells() -> None:
    (file,) = rewrite_notebook(json.dumps(notebook(*PLACED)), "n.ipynb").files
    assert [(f.rule, f.cell, f.line, f.column) for f in file.findings] == [
        place[:4] for place in PLACES
    ]


JUPYTER = {"indent": 1, "ensure_ascii": False}


@pytest.mark.parametrize("string", [False, True], ids=["lines", "one string for each cell"])
@pytest.mark.parametrize("layout", [JUPYTER, {"indent": 4}, {}], ids=["Jupyter", "escaped", "one line"])  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_positions_lead_to_the_text_in_the_file(
    string: bool, layout: dict[str, Any], end: str
) -> None:
    cells = [{**each, "source": "".join(each["source"])} for each in PLACED] if string else PLACED
    text = json.dumps(notebook(*cells), **layout).replace("\n", end)
    positions = Positions(text)
    for _, cell, line, column, there in PLACES:
        row, start = positions.of(cell, line, column)
        assert text.split(end)[row - 1][start:].startswith(there)
    row, start = positions.of(1, 1, 999)
    assert text.split(end)[row - 1][start:].startswith("\\n"), "a column beyond its line is its end"


def test_each_report_says_where_in_a_notebook_a_finding_is(tmp_path: Path) -> None:
    text = json.dumps(notebook(*PLACED), **JUPYTER) + "\n"
    path = tmp_path / "n.ipynb"
    path.write_text(text, encoding="utf-8")
    ways = {way: tmp_path / f"r.{way}" for way in ("json", "sarif", "html")}
    options = [str(part) for way, file in ways.items() for part in (f"--{way}", file)]
    result = CliRunner().invoke(main, ["scan", str(path), *options], catch_exceptions=False)
    page = ways["html"].read_text(encoding="utf-8")
    (file,) = json.loads(ways["json"].read_text())["files"]
    assert [(f["rule"], f["cell"], f["line"], f["column"]) for f in file["findings"]] == [
        place[:4] for place in PLACES
    ]
    results = json.loads(ways["sarif"].read_text())["runs"][0]["results"]
    for (_, cell, line, _, there), told, sarif in zip(
        PLACES, file["findings"], results, strict=True
    ):
        message = told["message"].removeprefix(f"cell {cell}: ")
        assert f"{path.as_posix()}, cell {cell}, line {line}: {message[:20]}" in result.output
        assert f"n.ipynb, cell {cell}, line {line}</code>" in page
        region = sarif["locations"][0]["physicalLocation"]["region"]
        row = text.split("\n")[region["startLine"] - 1]
        assert row[region["startColumn"] - 1 :].startswith(there)
        assert sarif["message"]["text"] == f"cell {cell}, line {line}: {message}"


def test_programs_count_in_their_cells(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(notebook(MARKDOWN, *map(code, parts(PROGRAM)))))
    report = tmp_path / "r.json"
    result = CliRunner().invoke(main, ["scan", str(path), "--json", str(report)])
    (program,) = json.loads(report.read_text())["files"][0]["programs"]
    cell = json.loads(path.read_text())["cells"][program["cell"] - 1]
    assert cell["source"][program["line"] - 1].lstrip().startswith("for ")
    where = f"{path.as_posix()}, cell {program['cell']}, line {program['line']} towers in train"
    assert where in result.output


OTHER = """
def other(parts):
    opt = tf.train.AdamOptimizer(0.1)
    tower_grads = []
    for i in range(2):
        with tf.device("/gpu:%d" % i), tf.variable_scope("tower_%d" % i):
            tower_grads.append(opt.compute_gradients(strange_loss(parts, i)))
    return average_gradients(tower_grads)
"""
WITH_OTHER = PROGRAM.replace("\ndef main():", f"{OTHER}\n\ndef main():")


def test_one_program_of_a_notebook_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    whole = json.dumps(notebook(*map(code, parts(WITH_OTHER))), indent=1)
    path.write_text(whole)

    def run(function: str) -> Result:
        return CliRunner().invoke(main, ["rewrite", f"{path}:{function}"], catch_exceptions=False)

    wrong = run("nothing")
    assert wrong.exit_code == 2
    assert "has no function `nothing`; its tower programs: `train`, `other`" in wrong.output
    assert run("other").exit_code == 1 and path.read_text() == whole
    assert run("train").exit_code == 0
    new = sources(path.read_text())
    assert OTHER.strip() in [source.strip() for source in new]
    assert sum("@variables.tower" in source for source in new) == 1


def test_lists_of_lines_name_their_cells() -> None:
    text = json.dumps(notebook(code(IMPORT, "print 1"), code("a\n", "a / b"), code("b / a")))
    assert "`/` may be one between integers: line 2 of cell 2, line 1 of cell 3" in messages(text)


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
    assert [bool(source.strip()) for source in new] == [True, False, True, True, False, True]
    assert new[2].startswith("strategy = tm.tower_strategy(2)\n")
    assert new[3].strip() == "tm.create_variables(train_step, x)"  # where the graph was done
    assert new[5].startswith("for step in range(5):\n    value = train_step(")


def test_a_program_in_session_style_stays_in_its_cells() -> None:
    cells = [*MODULE_LEVEL[:3], "%matplotlib inline\n", *MODULE_LEVEL[3:]]
    cells[4] = cells[4].replace("= opt.apply_gradients(average", "= opt.apply_gradients(strange")
    text = json.dumps(notebook(MARKDOWN, *map(code, cells)), indent=1)
    new = sources(rewritten(text))[1:]
    assert new[0].startswith("import tensorflow as tf\nimport towermigrate.helpers as tm\n")
    assert new[2].startswith("tm.mirror_variables(2)\nx = tf.compat.v1.placeholder(")
    assert "    for i in tm.towers(range(2)):\n        w = tf.compat.v1.get_variable(" in new[2]
    assert new[3] == cells[3] and new[6] == cells[6]
    (program,) = rewrite_notebook(text, "n.ipynb").programs
    assert (program.style, program.cell) == ("session", 4)
    messages = [finding.message for finding in program.findings if finding.rule == "TM310"]
    assert ["from line 1 of cell 4 on" in message for message in messages] == [True]


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
    program = PROGRAM.replace('tf.name_scope("tower_%d" % i)', 'tf.variable_scope("tower_%d" % i)')
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
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text.replace("tf.log", "tf.math.log")  # fmt: skip
    assert (root / ".ipynb_checkpoints/a-checkpoint.ipynb").read_text(encoding="utf-8") == text
    assert run("rewrite", root, "--check") == 0
    assert run("undo", root) == 0
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text
    assert run("rewrite", root / "a.ipynb", "--out", tmp_path / "out") == 0
    assert "tf.math.log" in (tmp_path / "out/a.ipynb").read_text(encoding="utf-8")
    assert (root / "a.ipynb").read_text(encoding="utf-8") == text


def test_pictures_do_not_make_a_notebook_too_large(tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 2**21}}
    cell = code(IMPORT, "tf.log(1.0)\n") | {"outputs": [picture]}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook(cell)), encoding="utf-8")
    report = plan(tmp_path).report
    assert [file.status for file in report.files] == ["rewritten"]
    assert json.loads(report.texts["a.ipynb"])["cells"][0]["outputs"] == [picture]


def test_a_notebook_of_too_much_code_is_named_and_left_alone(tmp_path: Path) -> None:
    cell = code(IMPORT, "a = 1\n" * 2**18)
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook(cell)), encoding="utf-8")
    (file,) = plan(tmp_path).report.files
    assert file.status == "unparsable"
    assert "its code: 1.5 MiB is more than 1 MiB" in file.findings[0].message
