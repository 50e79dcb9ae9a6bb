"""`helpers/tf1.py`, as `towermigrate vendor --tf1` copies it, under the TensorFlow releases it is for."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tf1_env
from towermigrate.helpers import tf1
from towermigrate.vendor import vendor_tf1

CHECKS = Path(__file__).parent / "tf1_programs" / "checks.py"
CRASH = Path(__file__).parents[2] / "fixtures" / "staged_gan_crash" / "before" / "inpaint.py"
SOURCE = Path(tf1.__file__).read_text(encoding="utf-8")
NAMES = re.findall(
    r"^def (?!main)(\w+)\(\):", CHECKS.read_text(encoding="utf-8"), flags=re.MULTILINE
)
RELEASES = {"TensorFlow 1.3": tf1_env.OLDEST, "TensorFlow 1.15": tf1_env.NEWEST, "compat.v1": None}


@functools.cache
def python(release: str) -> str:
    found = RELEASES[release]
    return sys.executable if found is None else tf1_env.required_python(found)


def run(release: str, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"}
    environment.pop("PYTHONPATH", None)  # the file stands alone
    return subprocess.run(
        [python(release), "-W", "ignore", *command],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tf1")
    vendor_tf1(root).write()
    return root


@functools.cache
def results(release: str, folder: Path) -> dict[str, str | None]:
    done = run(release, str(CHECKS), str(folder), cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", RELEASES)
def test_in_a_plain_graph(release: str, name: str, folder: Path) -> None:
    problem = results(release, folder)[name]
    assert problem is None, problem


def test_no_check_is_left_out(folder: Path) -> None:
    assert len(NAMES) >= 15
    assert sorted(results("compat.v1", folder)) == sorted(NAMES)


def test_one_line_ends_the_crash_of_the_classic_average_on_none(tmp_path: Path) -> None:
    vendor_tf1(tmp_path).write()
    program = tmp_path / "inpaint.py"
    before = CRASH.read_text(encoding="utf-8")
    program.write_text(before, encoding="utf-8")
    crashed = run("TensorFlow 1.15", "inpaint.py", cwd=tmp_path)
    assert crashed.returncode != 0
    assert "None values not supported" in crashed.stderr

    # After the program's own definition, which it replaces.
    line = "from towermigrate_tf1 import average_gradients\n"
    program.write_text(before.replace("def train(", f"{line}\n\ndef train(", 1), encoding="utf-8")
    done = run("TensorFlow 1.15", "inpaint.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r"step \d+: loss = \d", done.stdout)) == 6
    assert (tmp_path / "inpaint.ckpt-36.index").exists()  # 36 updates, of all three stages


def test_it_is_python_3_5() -> None:
    tree = ast.parse(SOURCE, feature_version=(3, 5))
    later = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef)
    assert [node for node in ast.walk(tree) if isinstance(node, later)] == []
    # A comma after `*args` or `**kwargs` is an error there, and the parser above lets it pass.
    signatures = [node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(a.vararg is None and a.kwarg is None and not a.kwonlyargs for a in signatures)


def test_it_imports_nothing_but_tensorflow_and_typing() -> None:
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported == {"typing", "tensorflow", "tensorflow.compat.v1"}
