"""The trees that verify runs: what `rewrite` would write with the same settings, or what it wrote."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.recognize.programs import program
from towermigrate.cli import main
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.tree import NothingToVerify, choose_program, original_and_rewritten

HELPER = (
    "import tensorflow as tf\n\n\ndef summed(x):\n    tf.placeholder(tf.float32)\n    return x\n"
)
REFUSED = program(
    (
        "loss = tf.reduce_mean(",
        "with tf.variable_scope('tower_%d' % i):\n                loss = tf.reduce_mean(",
    )
)
NOTEBOOK = json.dumps({
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
               "source": ["import tensorflow as tf\n", "tf.placeholder(tf.float32)"]}],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 4,
})  # fmt: skip
OLD = "import tensorflow as tf\nprint tf.placeholder\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def settings(text: str) -> dict[str, str]:
    return {"pyproject.toml": f"[tool.towermigrate]\n{text}\n"}


TREES = [
    pytest.param({"helper.py": HELPER}, {"helper.py"}, id="no settings"),
    pytest.param(
        {"helper.py": HELPER, **settings("exclude = ['helper.py']")}, set(), id="an excluded file"
    ),
    pytest.param(
        {"helper.py": "# towermigrate: skip-file\n" + HELPER}, set(), id="a comment that says skip-file"
    ),
    pytest.param({"other.py": REFUSED}, set(), id="a refused program beside it"),
    pytest.param(
        {"other.py": REFUSED, **settings("refused = 'symbols'")}, {"other.py"}, id="names of a refused program"
    ),
    pytest.param({"notes.ipynb": NOTEBOOK}, set(), id="a notebook, which no program imports"),
    pytest.param({"old.py": OLD}, {"old.py"}, id="a Python 2 file"),
    pytest.param({"old.py": OLD, **settings("py2 = 'never'")}, set(), id="a Python 2 file that is left alone"),
    pytest.param({"made/a.py": HELPER, ".gitignore": "made/\n"}, set(), id="a file that git ignores"),
    pytest.param(
        {"made/a.py": HELPER, ".gitignore": "made/\n", **settings("gitignore = false")}, {"made/a.py"},
        id="a file that git ignores and the settings do not",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "changed"), TREES)
def test_what_is_run_is_what_rewrite_writes(
    tmp_path: Path, files: dict[str, str], changed: set[str]
) -> None:
    files = {"program.py": program(), **files}
    root, copy = write(tmp_path / "tree", files), write(tmp_path / "copy", files)
    originals, rewritten = original_and_rewritten(root)
    CliRunner().invoke(main, ["rewrite", str(copy)], catch_exceptions=False)

    python = [name for name in files if name.endswith(".py")]
    assert {name for name in python if (copy / name).read_text() != files[name]} == {
        "program.py",
        *changed,
    }
    for name in python:
        assert rewritten.get(name, files[name]) == (copy / name).read_text(encoding="utf-8")
    # After the rewrite the same two trees are found, from what is on the disk.
    assert original_and_rewritten(copy) == (originals, rewritten)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"program.py": "# towermigrate: skip-file\n" + program()}, id="skip-file"),
        pytest.param(
            {"program.py": program(), **settings("exclude = ['program.py']")}, id="excluded"
        ),
    ],
)
def test_a_program_that_stays_as_it_is_gives_nothing_to_compare(
    tmp_path: Path, files: dict[str, str]
) -> None:
    trees = original_and_rewritten(write(tmp_path, files))
    with pytest.raises(NothingToVerify, match=r"\(program.py:\d+\) stay as they are"):
        choose_program(*trees, "program.py")


def test_of_two_programs_the_one_that_is_rewritten_is_compared(tmp_path: Path) -> None:
    files = {"program.py": program(), "left.py": "# towermigrate: skip-file\n" + program()}
    originals, rewritten = original_and_rewritten(write(tmp_path, files))
    # Neither is a script: which one to run must still be said.
    chosen, entry = choose_program(originals, rewritten, "program.py")
    assert (chosen.path, entry) == ("program.py", "program.py")
    with pytest.raises(NothingToVerify, match="stay as they are"):
        choose_program(originals, rewritten, "left.py")


def test_a_refused_program_says_why(tmp_path: Path) -> None:
    with pytest.raises(NothingToVerify, match=r"program.py:\d+: TM252"):
        original_and_rewritten(write(tmp_path, {"program.py": REFUSED}))


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs the extra tf")
def test_settings_that_cannot_be_meant_are_bad_usage(tmp_path: Path) -> None:
    root = write(tmp_path, {"program.py": program(), **settings("exclud = []")})
    result = CliRunner().invoke(main, ["verify", str(root)])
    assert result.exit_code == 2
    assert "exclud" in result.output


@pytest.mark.full
def test_a_program_that_needs_an_excluded_file_rewritten_does_not_run(tree: Path) -> None:
    path = tree / "shared_adam.py"
    path.write_text(path.read_text().replace("import numpy", "import helper\nimport numpy", 1))
    write(tree, {"helper.py": "import tensorflow as tf\n\nlog = tf.log\n"})
    excluded = shutil.copytree(tree, tree.parent / "excluded")
    write(excluded, settings("exclude = ['helper.py']"))
    options = VerifyOptions(tree, devices=("cpu:2",), steps=1)

    assert run_verify(options).exit_code == 0
    assert "has no attribute 'log'" in (run_verify(replace(options, path=excluded)).error or "")
