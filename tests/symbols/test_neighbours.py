"""What files of a tree need of each other under TensorFlow 2, and no rewrite gives them: rules TM109 and TM120."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from towermigrate.cli import main
from towermigrate.findings import Finding
from towermigrate.rewrite import rewrite_tree
from towermigrate.symbols import neighbours
from towermigrate.symbols.neighbours import tf1_names

TF = "import tensorflow as tf\n"
MODULE = (
    TF
    + """

def main():
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.get_variable("w", [3, 1])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        print(sess.run(tf.matmul(x, w), {x: [[1, 2, 3]]}).shape)
"""
)
SCRIPT = TF + "import model\nif __name__ == '__main__':\n    model.main()\n"
EAGER = "\n\n@tf.function\ndef step():\n    return tf.Variable(1)\n"

Places = list[tuple[str, int, int]]


def told(rule: str, sources: dict[str, str], skipped: tuple[str, ...] = ()) -> Places:
    """Path, line and column of each finding of a rule, where some files are not to be changed."""
    fixed = {path: Finding("TM106", path, 1, 0, "not changed: it is excluded") for path in skipped}
    report = rewrite_tree(sources, fixed=fixed)
    return [
        (finding.path, finding.line, finding.column)
        for file in report.files
        for finding in file.findings
        if finding.rule == rule
    ]


LEFT_BEHIND = [
    pytest.param({"a.py": TF + "import old\ntf.log(1)", "old.py": MODULE}, [("a.py", 2, 0)], id="it uses names of TensorFlow 1"),
    pytest.param({"a.py": TF + "def f():\n  import old", "old.py": MODULE}, [("a.py", 3, 2)], id="a file that needs no change imports it too"),
    pytest.param({"p/a.py": TF + "from . import b, old", "p/b.py": TF + "from .old import main", "p/old.py": MODULE}, [("p/a.py", 2, 0), ("p/b.py", 2, 0)], id="two files import it"),
    pytest.param({"a.py": TF + "import b", "b.py": TF + "import old", "old.py": MODULE}, [("b.py", 2, 0)], id="only where it is imported itself"),
    pytest.param({"a.py": TF + "import old", "old.py": TF + "tf.compat.v1.log(1)"}, [], id="it would not change"),
    pytest.param({"a.py": TF + "import old", "old.py": TF + EAGER}, [], id="it was written for TensorFlow 2"),
    pytest.param({"a.py": TF + "import old  # towermigrate: ignore[TM109]", "old.py": MODULE}, [], id="a comment hides it"),
    pytest.param({"a.py": TF + "tf.log(1)", "old.py": MODULE}, [], id="nobody imports it"),
    pytest.param({"old.py": TF + "import other.old", "other/old.py": MODULE}, [], id="the importing file stays as well"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "places"), LEFT_BEHIND)
def test_an_import_of_a_file_that_stays(sources: dict[str, str], places: Places) -> None:
    kept = tuple(path for path in sources if path.endswith("old.py"))
    assert told("TM109", sources, kept) == places


@pytest.mark.parametrize("comment", ["", "# towermigrate: skip-file\n"], ids=["excluded", "skip-file"])  # fmt: skip
def test_the_finding_says_what_the_file_uses_and_why_it_stays(tmp_path: Path, comment: str) -> None:
    (tmp_path / "old.py").write_text(comment + MODULE)
    (tmp_path / "a.py").write_text(TF + "import old\n")
    given = [] if comment else ["--exclude", "old.py"]
    result = CliRunner().invoke(main, ["scan", str(tmp_path), *given], catch_exceptions=False)
    reason = "a comment in it says skip-file" if comment else "it is excluded"
    said = f"old.py, imported here, still uses `tf.placeholder` and 3 more: {reason}"
    assert f"{tmp_path.as_posix()}/a.py:2:1 {said}" in result.output


NAMES = [
    pytest.param("import tensorflow.contrib.slim as slim\nslim.conv2d(x)", ["tf.contrib.slim.conv2d"], id="tf.contrib"),
    pytest.param("from tensorflow import Session\nSession()\nSession()", ["tf.Session"], id="a name imported by itself, once"),
    pytest.param("import tensorflow as tf\ntf.mul(1, tf.add(2, 3))", ["tf.mul"], id="TensorFlow 0.x"),
    pytest.param("import tensorflow.compat.v1 as tf\ntf.Session()", [], id="compat.v1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names"), NAMES)
def test_names_of_tensorflow_1(text: str, names: list[str]) -> None:
    assert tf1_names(text) == names


UNSWITCHED = [
    pytest.param({"model.py": MODULE}, [("model.py", 5, 8)], id="nothing imports it"),
    pytest.param({"model.py": MODULE, "b.py": TF + "import model"}, [("model.py", 5, 8)], id="no script imports it"),
    pytest.param({"model.py": MODULE, "run.py": SCRIPT}, [], id="a script imports it"),
    pytest.param({"model.py": MODULE, "b.py": "import model  # tensorflow", "run.py": TF + "import b\nb.model.main(tf.Session())"}, [], id="a script imports it through another"),
    pytest.param({"model.py": MODULE, "run.py": TF + "tf.compat.v1.disable_v2_behavior()\nimport model"}, [], id="what imports it has the switch"),
    pytest.param({"model.py": MODULE.replace("    x = ", "    tf.Graph().as_default().__enter__()\n    x = ")}, [], id="it makes its own graph"),
    pytest.param({"model.py": MODULE + EAGER}, [], id="a part of it runs eagerly"),
    pytest.param({"model.py": MODULE + "\nmain()"}, [], id="it is a script itself"),
    pytest.param({"model.py": TF + "def f(): return tf.log(1)"}, [], id="it needs no graph"),
    pytest.param({"model.py": MODULE.replace("[None, 3])", "[None, 3])  # towermigrate: ignore")}, [], id="a comment hides it"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "places"), UNSWITCHED)
def test_a_module_that_no_script_runs(sources: dict[str, str], places: Places) -> None:
    assert told("TM120", sources) == places


def test_nothing_is_said_of_scripts_where_one_file_was_asked_for() -> None:
    for file in rewrite_tree({"model.py": MODULE}, only=["model.py"]).files:
        assert not file.findings


@pytest.mark.full
def test_the_module_fails_as_said_and_runs_as_advised(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(rewrite_tree({"model.py": MODULE}).texts["model.py"])
    run = tmp_path / "run.py"
    launch = "import model\n\nmodel.main()\n"

    def output(text: str) -> str:
        run.write_text(text)
        done = subprocess.run([sys.executable, run], capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    assert "not compatible with eager execution" in output(launch)
    assert "(1, 1)" in output(f"{TF}\ntf.compat.v1.disable_v2_behavior()\n{launch}")


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(neighbours).failed == 0
