"""One fault, one program: what raises at one file is a finding of that file, and all other files come out as without it."""

from __future__ import annotations

import ast
import importlib
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towermigrate import reading
from towermigrate.faults import fault
from towermigrate.migrate import plan
from towermigrate.outcome import TreeReport
from towermigrate.rewrite import rewrite_tree
from towermigrate.tree import parse_python

ROOT = Path(__file__).parents[1]
MARK = "faulty_mark"
GOOD = {
    **{
        path.relative_to(ROOT / "fixtures").as_posix(): path.read_text()
        for path in sorted(ROOT.glob("fixtures/mnist_feed/before/**/*.py"))
    },
    "names.py": "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n",
    "old.py": "import tensorflow as tf\nprint 'loss', tf.log(1.0)\n",
    "script.py": "import names\nif __name__ == '__main__':\n    print(names.x)\n",
}
NAMES = f"import tensorflow as tf\nimport names\n{MARK} = tf.placeholder(tf.float32)\n"
SCRIPT = f"{NAMES}if __name__ == '__main__':\n    tf.Session().run({MARK})\n"
OLD = f"import tensorflow as tf\nprint '{MARK}', tf.log(1.0)\n"
BOTH = f"import tensorflow as tf\n{MARK} = [tf.log(i) for i in xrange(3)]\n"
PROGRAM = (ROOT / "towermigrate/demo_program/complete.py").read_text() + f"\n{MARK} = 1\n"


def has_mark(value: Any) -> bool:
    """Whether what a pass is given is, or belongs to, the faulty file."""
    if value is None:
        return False
    if isinstance(value, str):
        return value == "bad.py" or MARK in value
    if isinstance(value, ast.AST):
        return any(isinstance(node, ast.Name) and node.id == MARK for node in ast.walk(value))
    if isinstance(value, list | tuple):
        return any(map(has_mark, value))
    if isinstance(value, frozenset | set):
        return value == {"bad.py"}
    if hasattr(value, "recognition"):
        value = value.recognition
    return any(has_mark(getattr(value, name, None)) for name in ("path", "text", "file"))


def raising(monkeypatch: pytest.MonkeyPatch, pass_: str, error: Exception) -> list[str]:
    """Let a pass raise at the faulty file; gives the list that then says so."""
    module, _, name = pass_.rpartition(".")
    where = importlib.import_module(module)
    right = getattr(where, name)
    raised: list[str] = []

    def wrong(*args: Any, **kwargs: Any) -> Any:
        if any(map(has_mark, args)):
            raised.append(pass_)
            raise error
        return right(*args, **kwargs)

    monkeypatch.setattr(where, name, wrong)
    return raised


def of_others(report: TreeReport) -> Mapping[str, Any]:
    return {
        file.path: (file.status, [p.status for p in file.programs], report.texts.get(file.path))
        for file in report.files
        if file.path != "bad.py"
    }


@pytest.mark.parametrize(
    ("pass_", "text"),
    [
        pytest.param("towermigrate.reading.file_names", NAMES, id="resolving the names"),
        pytest.param("towermigrate.reading.file_symbols", NAMES, id="changing the names"),
        pytest.param("towermigrate.reading.hints", NAMES, id="looking where towers may be"),
        pytest.param("towermigrate.reading.python2_names", BOTH, id="looking for names of Python 2"),
        pytest.param("towermigrate.python2.port._port", OLD, id="bringing it from Python 2"),
        pytest.param("towermigrate.python2.port.make_lists", OLD, id="a part of bringing it from Python 2"),
        pytest.param("towermigrate.symbols.apply.splice", NAMES, id="putting the edits in"),
        pytest.param("towermigrate.symbols.apply.rewrite_imports", NAMES, id="changing the imports"),
        pytest.param("towermigrate.passes._switched", SCRIPT, id="switching the script"),
        pytest.param("towermigrate.passes.left_behind", SCRIPT, id="looking at what it imports"),
        pytest.param("towermigrate.passes._pass_file", SCRIPT, id="anything around one file"),
        pytest.param("towermigrate.recognize.analyse", PROGRAM, id="understanding its program"),
        pytest.param("towermigrate.passes._program", PROGRAM, id="reporting its program"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    "error", [KeyError("a"), AssertionError(), MemoryError()], ids=["KeyError", "bare", "memory"]
)
def test_a_fault_is_a_finding_of_its_file(
    pass_: str, text: str, processes: int, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 0 if processes == 2 else 10**9)
    alone = of_others(rewrite_tree(GOOD))
    raised = raising(monkeypatch, pass_, error)
    report = rewrite_tree({**GOOD, "bad.py": text})
    assert raised or processes == 2
    assert "bad.py" not in report.texts
    (file,) = (file for file in report.files if file.path == "bad.py")
    assert file.status in ("unparsable", "refused")
    said = [*file.findings, *(finding for one in file.programs for finding in one.findings)]
    assert any(
        finding.rule == "TM100" and type(error).__name__ in finding.message for finding in said
    )
    assert of_others(report) == alone


def test_a_fault_in_writing_one_style_is_a_reason_for_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = of_others(rewrite_tree(GOOD))
    raised = raising(monkeypatch, "towermigrate.emit._emit_program", KeyError("a"))
    report = rewrite_tree({**GOOD, "bad.py": PROGRAM})
    (file,) = (file for file in report.files if file.path == "bad.py")
    (program,) = file.programs
    assert raised and program.style != "loop"
    assert {"TM100", "TM290"} & {each.rule for each in (*program.not_loop, *program.findings)}
    assert of_others(report) == alone


@pytest.mark.parametrize("name", ["surely_unchanged", "parses"])
def test_a_quick_look_that_fails_is_followed_by_a_long_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 0)
    before = rewrite_tree({**GOOD, "bad.py": NAMES})
    raising(monkeypatch, f"towermigrate.reading.{name}", KeyError("a"))
    assert rewrite_tree({**GOOD, "bad.py": NAMES}) == before


@pytest.mark.parametrize(
    "pass_",
    ["towermigrate.lint.scan_distribution", "towermigrate.notebooks.rewrite_notebook"],
)
def test_a_fault_of_a_pass_over_the_tree_is_a_finding_too(
    pass_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good.py").write_text("import tensorflow as tf\ntf.log(1)\n")
    cell = {"cell_type": "code", "source": f"import tensorflow as tf\n{MARK} = tf.log(1)"}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}
    (tmp_path / "bad.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "bad.py").write_text("import tensorflow as tf\ntf.distribute.get_strategy()\n")

    def wrong(sources: Any, wanted: Any = "bad.py", **_: Any) -> Any:
        if "bad.py" in wanted or isinstance(sources, str):
            raise KeyError("a")
        return {}

    module, _, name = pass_.rpartition(".")
    monkeypatch.setattr(importlib.import_module(module), name, wrong)
    migration = plan(tmp_path, distribution=True)
    faults = {
        file.path for file in migration.report.files for f in file.findings if f.rule == "TM100"
    }
    assert faults == {"bad.ipynb" if "notebook" in pass_ else "bad.py"}
    assert "good.py" in migration.report.texts


def test_a_fault_names_the_place_in_our_code_and_is_short() -> None:
    try:
        parse_python("x = (" * 3 + "\0")
    except (SyntaxError, ValueError) as error:
        found = fault("a.py", error, line=7)
    assert re.search(r"\(tree\.py:\d+, parse_python\)", found.message)
    assert (found.path, found.line, found.severity) == ("a.py", 7, "error")
    assert len(fault("a.py", ValueError("long " * 1000)).message) < 300


# What a file may hold that is worse than nonsense.
DEEP = st.integers(1, 2000).flatmap(
    lambda count: st.sampled_from(
        [
            "x = " + "(" * count + "1" + ")" * count,
            "x = " + "[" * count + "tf.log(1)" + "]" * count,
            "print 'a', " + "[" * count + "1" + "]" * count,
            "x = " + "-" * count + "1",
            "x = " + "not " * count + "1",
            "x = f" + "()" * count,
            "x = a" + ".b" * count,
            "x = " + " + ".join(["tf.log(1)"] * count),
            "x = " + "lambda: " * count + "1",
            "x = '" + "a" * count + "'" + " 'b'" * count,
            "\n".join(" " * depth + "if tf:" for depth in range(min(count, 120))) + " pass",
            "if x: pass\n" + "elif tf.log(1): pass\n" * count,
            "for i in range(n):\n with tf.device('/gpu:%d' % i):\n  g = opt.compute_gradients("
            + "f(" * count + "i" + ")" * count + ")\n  gs.append(g)",
        ]
    )
)  # fmt: skip
ODD = st.sampled_from(
    ["\x0c", "\t", "\r", "\x00", "\\", "\\\n", "\\\r\n", "\ufeff", "\u2028", "\x1a", "'''", '"', "#", "\x0b", " \x0c\t", ";", "`x`", "<>", "0777", "ur'a'",
     "# coding: latin-1\n", "# -*- coding: rot13 -*-\n", "é", "\ud800", "print >>x", "exec 'a'", "async = 1", "def async(await): pass", "nonlocal x"]
)  # fmt: skip
LINES = st.sampled_from(
    ["import tensorflow as tf", "x = tf.placeholder(tf.float32)", "from names import *", "with tf.Session() as s: pass",
     "import tensorflow.contrib.slim as slim", "x = x.get_shape()[1].value", "if __name__ == '__main__':", "  tf.app.run()"]
)  # fmt: skip


@st.composite
def monstrous(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.one_of(LINES, ODD, DEEP), min_size=1, max_size=8))
    ends = [draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "", "\\\n"])) for _ in parts]
    return "# tensorflow\n" + "".join(part + end for part, end in zip(parts, ends, strict=True))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(monstrous())
def test_a_monstrous_file_changes_nothing_about_the_others(text: str) -> None:
    few = {path: text for path, text in GOOD.items() if "/" not in path}
    report = rewrite_tree({**few, "bad.py": text})
    assert of_others(report) == of_others(rewrite_tree(few))
    for finding in (f for file in report.files for f in file.findings):
        assert finding.rule != "TM100", finding


def test_many_monstrous_files_at_once_leave_the_others() -> None:
    draw = random.Random(3)
    bad = {
        f"bad{number}.py": "import tensorflow as tf\nx = "
        + "".join(draw.choice("([{)]},:'\"\\ \t\n\r\x0c#tf.x1-") for _ in range(400))
        for number in range(60)
    }
    alone = of_others(rewrite_tree(GOOD))
    together = of_others(rewrite_tree({**GOOD, **bad}))
    assert {path: said for path, said in together.items() if path in alone} == alone
