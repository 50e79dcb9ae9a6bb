"""What files of a tree need of each other under TensorFlow 2, and no rewrite gives them: rules TM109 and TM120."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from towermigrate import tree as imports
from towermigrate.cli import main
from towermigrate.findings import Finding
from towermigrate.listing import list_tree
from towermigrate.migrate import plan
from towermigrate.project import read_tree
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
    """Path, line and column of each finding of a rule, where some files are not to be changed.

    The files without the word are given as those that link others.
    """
    fixed = {path: Finding("TM106", path, 1, 0, "not changed: it is excluded") for path in skipped}
    links = {path: text for path, text in sources.items() if "tensorflow" not in text}
    sources = {path: text for path, text in sources.items() if path not in links}
    report = rewrite_tree(sources, fixed=fixed, links=links)
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
    pytest.param({"a.py": TF + "import old", "old.py": TF + "tf.math.log(1)"}, [], id="it would not change"),
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


AT_MODULE = ("model.py", 5, 8)
GUARDED = "import os\nimport model\nif __name__ == '__main__':\n    model.main()\n"
REFUSED = (
    TF
    + """
opt = tf.train.AdamOptimizer(0.1)
towers = []
for i in range(2):
    with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
        towers.append(opt.compute_gradients(loss(i)))
train = opt.apply_gradients(unknown(towers))
"""
)

LAUNCHED = [
    pytest.param({"run.py": GUARDED}, ["run.py"], [], id="a __main__ test"),
    pytest.param({"run.py": "import model\nmodel.main()\n"}, ["run.py"], [], id="a call of the module's function"),
    pytest.param({"run.py": "from model import main as go\nx = go()\n"}, ["run.py"], [], id="a call of the function, its result kept"),
    pytest.param({"run.py": "def main():\n  import model\n\nmain()\n"}, ["run.py"], [], id="a call of main()"),
    pytest.param({"run.py": "import model\nmodel.main()\n", "b.py": "import run"}, [], [AT_MODULE], id="a call in a file that is imported"),
    pytest.param({"run.py": "import model\nprint(model.main)\n"}, [], [AT_MODULE], id="a call of something else"),
    pytest.param({"run.py": GUARDED, "b.py": GUARDED}, ["b.py", "run.py"], [], id="each of two"),
    pytest.param({"run.py": GUARDED, "b.py": SCRIPT}, ["run.py"], [], id="another script is switched"),
    pytest.param({"run.py": "import p\nif __name__ == '__main__': p.go()", "p/__init__.py": "from .q import (\n  a,  # A\n  go,\n)", "p/q.py": "from model import main as go"}, ["run.py"], [], id="through files without the word"),
    pytest.param({"run.py": GUARDED.replace("model", "b"), "b.py": "x = 1"}, [], [AT_MODULE], id="it does not reach the module"),
    pytest.param({"run.py": "'''\nimport model\n'''\nif __name__ == '__main__': 1"}, [], [AT_MODULE], id="the import stands in a string"),
    pytest.param({"run.py": "import on\n" + GUARDED, "on.py": TF + "tf.compat.v1.disable_v2_behavior()"}, [], [], id="what it imports has the switch"),
    pytest.param({"run.py": GUARDED.replace("model", "b"), "b.py": SCRIPT}, [], [], id="what it imports gets the switch"),
    pytest.param({"run.py": "import b\n" + GUARDED, "b.py": TF + EAGER}, [], [AT_MODULE], id="a part of it runs eagerly: the advice would be wrong"),
    pytest.param({"run.py": "import b\n" + GUARDED, "b.py": REFUSED}, [], [AT_MODULE], id="a part of it was refused: it stays on TensorFlow 1"),
    pytest.param({"run.py": GUARDED.replace("import model", "import model  # towermigrate: ignore[TM119]")}, ["run.py"], [], id="a comment hides it"),
    pytest.param({"run.py": "print 1\n" + GUARDED}, [], [AT_MODULE], id="Python 3 cannot parse it"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "scripts", "places"), LAUNCHED)
def test_a_script_without_the_word_that_runs_a_module(
    sources: dict[str, str], scripts: list[str], places: Places
) -> None:
    tree = {"model.py": MODULE, **sources}
    assert told("TM120", tree) == places
    links = {path: text for path, text in tree.items() if "tensorflow" not in text}
    report = rewrite_tree({p: t for p, t in tree.items() if p not in links}, links=links)
    assert sorted(report.texts.keys() & links.keys()) == scripts
    for path in scripts:
        switch = "import tensorflow as tf\n\ntf.compat.v1.disable_v2_behavior()\n"
        assert report.texts[path].replace(switch, "") == tree[path]
    after = {**tree, **report.texts}
    links = {path: text for path, text in after.items() if "tensorflow" not in text}
    again = rewrite_tree({p: t for p, t in after.items() if p not in links}, links=links)
    assert not again.texts


def test_the_finding_names_the_module_that_is_imported_itself() -> None:
    sources = {"model.py": "import a\n" + MODULE, "a.py": MODULE}
    (found,) = rewrite_tree(sources, links={"run.py": GUARDED}).files[-1].findings
    advice = "that calls for `tf.compat.v1.disable_v2_behavior()` at its start"
    assert (found.rule, found.message) == (
        "TM119",
        f"runs model.py, which needs a graph: {advice}",
    )


def test_the_switch_comes_before_a_module_that_builds_as_it_is_imported() -> None:
    sources = {"model.py": MODULE + "\nseed = tf.set_random_seed(3)\n"}
    launch = "'''A script.'''\nimport os\nimport model\nmodel.main()\n"
    texts = rewrite_tree(sources, links={"run.py": launch}).texts
    switch = "import tensorflow as tf\n\ntf.compat.v1.disable_v2_behavior()\n"
    assert texts["run.py"] == launch.replace("import os", f"{switch}import os")


def test_a_script_that_is_left_alone_says_nothing_and_the_module_does() -> None:
    assert told("TM120", {"model.py": MODULE, "run.py": GUARDED}, ("run.py",)) == [AT_MODULE]


def test_nothing_is_said_of_a_module_that_stays() -> None:
    assert told("TM120", {"model.py": MODULE, "run.py": GUARDED}, ("model.py",)) == []


def test_what_a_refused_program_uses_through_a_file_without_the_word_stays_too() -> None:
    sources = {"train.py": "import middle\n" + REFUSED, "model.py": MODULE}
    report = rewrite_tree(sources, links={"middle.py": "import model\n"})
    assert report.texts == {}
    assert [file.path for file in report.files] == ["model.py", "train.py"]


def test_nothing_is_said_of_scripts_where_one_file_was_asked_for() -> None:
    for file in rewrite_tree({"model.py": MODULE}, only=["model.py"]).files:
        assert not file.findings


TREE = {
    "model.py": MODULE, "run.py": GUARDED, "off.py": GUARDED, "skip.py": "# towermigrate: skip-file\n" + GUARDED,
    "old.py": "import model\nif __name__ == '__main__':\n    print 'a', model.main()\n",
    "notes.py": "import os\n",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "src"
    root.mkdir()
    for name, text in TREE.items():
        (root / name).write_text(text)
    return root


def command(*arguments: str | Path) -> str:
    given = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, given, catch_exceptions=False).output


def test_a_tree_on_disk_has_its_scripts_switched(tree: Path, tmp_path: Path) -> None:
    said = tmp_path / "report"
    output = command("rewrite", tree, "--exclude", "off.py", "--json", said)
    files = {file["path"]: file for file in json.loads(said.read_text())["files"]}
    rules = {path: {each["rule"] for each in file["findings"]} for path, file in files.items()}
    assert rules == {"model.py": set(), "run.py": {"TM119"}, "old.py": {"TM119", "TM121"}}
    assert files["run.py"]["status"] == "rewritten"
    assert files["old.py"]["status"] == "rewritten"  # it was Python 2
    assert "2 TensorFlow files, 3 rewritten" in output
    for name in ("run.py", "old.py"):
        assert "\n\ntf.compat.v1.disable_v2_behavior()\n" in (tree / name).read_text()
    for name in ("off.py", "skip.py", "notes.py"):
        assert (tree / name).read_text() == TREE[name]
    command("undo", tree)
    assert {name: (tree / name).read_text() for name in TREE} == TREE


@pytest.mark.parametrize("kind", ["--sarif", "--html"])
def test_every_report_has_the_script(tree: Path, tmp_path: Path, kind: str) -> None:
    command("scan", tree, kind, tmp_path / "report")
    said = (tmp_path / "report").read_text()
    assert "run.py" in said and "skip.py" not in said


def test_a_script_whose_finding_is_not_wanted_is_switched_all_the_same(
    tree: Path, tmp_path: Path
) -> None:
    command("scan", tree, "--ignore", "TM119", "--json", tmp_path / "report")
    files = json.loads((tmp_path / "report").read_text())["files"]
    assert {file["path"]: len(file["findings"]) for file in files}["run.py"] == 0


def test_only_reported_scripts_are_among_the_files_of_a_migration(tree: Path) -> None:
    assert set(plan(tree).files) == {"model.py", "off.py", "old.py", "run.py"}


NAMED = [
    pytest.param("import a, b.c as d # e", {(0, "a"), (0, "b.c")}, id="import"),
    pytest.param("if x:\n\tfrom a import b as c, d", {(0, "a"), (0, "a.b"), (0, "a.d")}, id="from, in a block"),
    pytest.param("from .import a\nfrom ..b import c", {(1, ""), (1, "a"), (2, "b"), (2, "b.c")}, id="with dots"),
    pytest.param("from a import ( # (b)\r\n  c, # d\r\n  e)", {(0, "a"), (0, "a.c"), (0, "a.e"), (0, "a.b"), (0, "a.d")}, id="in brackets: a comment counts too"),
    pytest.param("from a import b, \\\r\n  c", {(0, "a"), (0, "a.b"), (0, "a.c")}, id="a continued line"),
    pytest.param("x = 'import a'\n#import b\nimported = important(c)", set(), id="none"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "named"), NAMED)
def test_modules_by_the_looks_of_the_lines(text: str, named: set[tuple[int, str]]) -> None:
    assert imports.modules_named(text) == named


LONG = [
    pytest.param("from" + " " * 100_000, id="blanks"),
    pytest.param("from a import (\n" * 20_000, id="open brackets"),
    pytest.param("from a import (" + "#b\n" * 30_000, id="comments"),
    pytest.param("from " + "a." * 50_000, id="a long name"),
    pytest.param("import " + "a , " * 30_000 + "!", id="a long list"),
]


@pytest.mark.parametrize("text", LONG)
def test_no_text_takes_long_to_look_through(text: str) -> None:
    began = time.process_time()
    imports.modules_named(text)
    assert time.process_time() - began < 2


def test_what_programs_may_import_is_read_as_a_link(tmp_path: Path) -> None:
    texts = {
        "a.py": b"import b", "b.py": b"if x:\n    from . import a\n", "tf.py": TF.encode(), "plain.py": b"x = 1\n",
        "latin.py": b"import a  # \xe9", "big.py": b"import a\n" + b"#" * 2**20, "n.ipynb": b"import a\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    listing = list_tree(tmp_path, suffixes=(".py", ".ipynb"))
    files = read_tree(tmp_path, listing, links=True)
    assert {name: file.link for name, file in files.items()} == {
        "a.py": True,
        "b.py": True,
        "plain.py": True,
        "tf.py": False,
    }
    assert set(read_tree(tmp_path, listing)) == {"tf.py"}


def test_one_file_that_was_asked_for_reads_no_scripts(tree: Path) -> None:
    assert "TM120" not in command("scan", tree / "model.py")


@pytest.mark.full
@pytest.mark.parametrize(
    "extra", ["", "seed = tf.get_variable('seed', [])\n"], ids=["late", "early"]
)
def test_a_switched_script_runs(tmp_path: Path, extra: str) -> None:
    (tmp_path / "model.py").write_text(MODULE + extra)
    (tmp_path / "run.py").write_text("import model\n\nmodel.main()\n")

    def output() -> str:
        done = subprocess.run(
            [sys.executable, tmp_path / "run.py"], capture_output=True, text=True, timeout=120
        )
        return done.stdout + done.stderr

    migration = plan(tmp_path)
    migration.apply()
    assert "(1, 1)" in output()
    assert not plan(tmp_path).report.texts


@pytest.mark.parametrize("module", [neighbours, imports], ids=["neighbours", "tree"])
def test_the_examples_of_the_modules(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
