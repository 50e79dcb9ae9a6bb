"""`towermigrate vendor`: programs that run on a copy of the helpers, and nothing of the user's lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from towermigrate.cli import main
from towermigrate.project import decode
from towermigrate.vendor import point, vendor_helpers
from towermigrate.verify import VerifyOptions, run_verify

ROOT = Path(__file__).parent.parent
STAGED = ROOT / "fixtures" / "staged_gan_crash"
HAND_WRITTEN = (
    "import tensorflow as tf\nimport towermigrate.helpers as tm\n\nS = tm.tower_strategy(2)\n"
)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def contents(root: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not name.startswith(".towermigrate/"):
            found[name] = path.read_bytes()
    return found


def alone(script: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run a script where towermigrate cannot be imported."""
    code = (
        "import runpy, sys; sys.modules['towermigrate'] = None; sys.path[0] = '.'; "
        f"sys.argv = [{script!r}]; runpy.run_path({script!r}, run_name='__main__')"
    )
    environment = {**os.environ, "TOWERMIGRATE_DEVICES": "cpu:2", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    shutil.copytree(STAGED / "before", root)
    return root


IMPORTS = [
    pytest.param(
        "import towermigrate.helpers as tm  # ours\r\n",
        "import towermigrate_helpers as tm  # ours\r\n",
        id="the import that rewrite writes",
    ),
    pytest.param(
        "import os, towermigrate.helpers\nX = towermigrate.helpers.value(towermigrate.helpers.y)\n",
        "import os, towermigrate_helpers\nX = towermigrate_helpers.value(towermigrate_helpers.y)\n",
        id="a plain import, and the names that use it",
    ),
    pytest.param(
        "from towermigrate.helpers import (\n    mnist_input as data,\n    unfed)\n",
        "from towermigrate_helpers import (\n    mnist_input as data,\n    unfed)\n",
        id="names from the package",
    ),
    pytest.param(
        "from towermigrate.helpers.mnist_input import read\n",
        "from towermigrate_helpers.mnist_input import read\n",
        id="names from a module of it",
    ),
    pytest.param(
        "def f():\n    é = 1; from towermigrate import helpers as tm\n",
        "def f():\n    é = 1; import towermigrate_helpers as tm\n",
        id="the package from towermigrate, behind a character of two bytes",
    ),
    pytest.param(
        "from towermigrate import helpers\n",
        "import towermigrate_helpers as helpers\n",
        id="the package under its own name",
    ),
    pytest.param(
        "import towermigrate\nfrom .towermigrate.helpers import x\n# import towermigrate.helpers\n",
        "import towermigrate\nfrom .towermigrate.helpers import x\n# import towermigrate.helpers\n",
        id="what is not an import of the helpers stays",
    ),
]


@pytest.mark.parametrize(("before", "after"), IMPORTS)
def test_imports_name_the_copy(before: str, after: str) -> None:
    assert point(before) == (after, [])
    assert point(after) == (after, [])


LEFT = [
    pytest.param(
        "from towermigrate import __version__, helpers\n",
        [(1, "import `helpers` in a statement of its own")],
        id="the helpers and something else in one statement",
    ),
    pytest.param(
        "import importlib\nimportlib.import_module('towermigrate.helpers')\n",
        [(2, "the text 'towermigrate.helpers' names the helpers")],
        id="a module named by a text",
    ),
    pytest.param(
        "import towermigrate\ntowermigrate.helpers.value\n",
        [(2, "`towermigrate.helpers` is used but not imported")],
        id="the helpers used, imported by somebody else",
    ),
]


@pytest.mark.parametrize(("text", "problems"), LEFT)
def test_an_import_that_cannot_be_changed_is_named(
    text: str, problems: list[tuple[int, str]], tmp_path: Path
) -> None:
    assert point(text) == (text, problems)
    (tmp_path / "a.py").write_text(text)
    result = run("vendor", tmp_path, "--json", tmp_path / "v.json")
    assert result.exit_code == 1
    assert f"not changed: {tmp_path}/a.py:{problems[0][0]}: {problems[0][1]}" in result.output
    assert json.loads((tmp_path / "v.json").read_text())["left"] == [
        f"a.py:{line}: {problem}" for line, problem in problems
    ]


def test_files_that_cannot_be_read_as_python_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import towermigrate.helpers\nprint 1\n")
    (tmp_path / "b.py").write_bytes(b"import towermigrate.helpers  # \xff\n")
    result = run("vendor", tmp_path)
    assert result.exit_code == 1
    assert f"not changed: {tmp_path}/a.py: Python cannot parse it" in result.output
    assert f"not changed: {tmp_path}/b.py: cannot be read as text" in result.output


def test_rewrite_vendor_rewrite_undo(staged: Path) -> None:
    before = contents(staged)
    assert run("rewrite", staged).exit_code == 0
    result = run("vendor", staged)
    assert result.exit_code == 0
    assert f"imports changed in {staged}/inpaint.py" in result.output
    vendored = contents(staged)
    assert b"\nimport towermigrate_helpers as tm\n" in vendored["inpaint.py"]
    copies = {name for name in vendored if name.startswith("towermigrate_helpers/")}
    assert {name.split("/")[1] for name in copies} == {
        path.name for path in (ROOT / "towermigrate" / "helpers").glob("*.py")
    }
    assert not any(b"towermigrate.helpers" in vendored[name] for name in copies)

    assert run("vendor", staged).output == "nothing to do\n"
    assert run("rewrite", staged, "--check").exit_code == 0
    assert run("rewrite", staged).exit_code == 0
    assert "towermigrate_helpers" not in run("scan", staged).output
    assert contents(staged) == vendored

    assert run("undo", staged).exit_code == 0
    assert {n: raw for n, raw in contents(staged).items() if n not in copies} == before


def test_a_copy_with_out_takes_the_vendored_helpers_along(staged: Path, tmp_path: Path) -> None:
    assert run("rewrite", staged).exit_code == 0
    assert run("vendor", staged).exit_code == 0
    assert run("rewrite", staged, "--out", tmp_path / "out").exit_code == 0
    assert contents(tmp_path / "out") == contents(staged)


def test_a_vendored_program_runs_without_towermigrate(staged: Path) -> None:
    assert run("rewrite", staged).exit_code == 0
    assert "No module named 'towermigrate.helpers'" in alone("inpaint.py", staged).stderr
    assert run("vendor", staged).exit_code == 0
    done = alone("inpaint.py", staged)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("loss = ") == 6


def test_a_file_that_needs_legacy_keras_gets_no_second_import(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import tensorflow as tf\n\n\ndef f(x):\n    return tf.layers.dense(x, 1)\n"
    )
    assert run("rewrite", tmp_path).exit_code == 0
    assert run("vendor", tmp_path).exit_code == 0
    vendored = contents(tmp_path)
    assert b"import towermigrate_helpers\n" in vendored["model.py"]
    assert run("rewrite", tmp_path).exit_code == 0
    assert contents(tmp_path) == vendored


def test_hand_written_files_get_their_import_back_by_undo(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(HAND_WRITTEN)
    assert run("vendor", tmp_path).exit_code == 0
    assert "import towermigrate_helpers as tm" in (tmp_path / "a.py").read_text()
    assert run("undo", tmp_path).exit_code == 0
    assert (tmp_path / "a.py").read_text() == HAND_WRITTEN


def test_what_was_edited_after_the_rewrite_keeps_its_first_original(staged: Path) -> None:
    original = (staged / "inpaint.py").read_bytes()
    assert run("rewrite", staged).exit_code == 0
    program = staged / "inpaint.py"
    program.write_text(program.read_text() + "# mine\n")
    assert run("vendor", staged).exit_code == 0
    assert "import towermigrate_helpers as tm" in program.read_text()
    result = run("undo", staged)
    assert (result.exit_code, "edited after the rewrite" in result.output) == (3, True)
    assert program.read_text().endswith("# mine\n")
    assert run("undo", "--force", staged).exit_code == 0
    assert program.read_bytes() == original


@pytest.mark.parametrize(("rewritten", "vendored"), [(".", "src"), ("src", ".")])
def test_originals_stay_where_the_rewrite_put_them(
    rewritten: str, vendored: str, tmp_path: Path
) -> None:
    shutil.copytree(STAGED / "before", tmp_path / "src")
    before = (tmp_path / "src" / "inpaint.py").read_bytes()
    assert run("rewrite", tmp_path / rewritten).exit_code == 0
    result = run("vendor", tmp_path / vendored)
    assert result.exit_code == 0
    assert b"towermigrate_helpers" in (tmp_path / "src" / "inpaint.py").read_bytes()
    # Python looks beside a script, not above it.
    assert (f"PYTHONPATH={tmp_path}" in result.output) == (vendored == ".")
    assert run("undo", tmp_path / rewritten).exit_code == 0
    assert (tmp_path / "src" / "inpaint.py").read_bytes() == before


def test_an_edited_copy_is_kept_and_an_old_one_replaced(tmp_path: Path) -> None:
    assert run("vendor", "--tf1", tmp_path).exit_code == 0
    copy = tmp_path / "towermigrate_tf1.py"
    first = copy.read_text()
    assert "SPDX-License-Identifier: Apache-2.0" in first.splitlines()[0]

    copy.write_text(first + "# mine\n")
    result = run("vendor", "--tf1", tmp_path, "--json", tmp_path / "v.json")
    assert result.exit_code == 3
    assert "edited since towermigrate wrote it" in result.output
    assert "edited since" in json.loads((tmp_path / "v.json").read_text())["error"]
    assert copy.read_text() == first + "# mine\n"
    assert run("vendor", "--tf1", "--force", tmp_path).exit_code == 0
    assert copy.read_text() == first
    (kept,) = (tmp_path / ".towermigrate" / "earlier").iterdir()
    assert kept.read_text() == first + "# mine\n"

    # A copy of another release: its own text, and the checksum of that.
    header, old = first.split('"""', 1)
    digest = hashlib.sha256(b'"""old').hexdigest()
    here = hashlib.sha256(('"""' + old).encode()).hexdigest()
    copy.write_text(header.replace(here, digest) + '"""old')
    assert run("vendor", "--tf1", tmp_path).exit_code == 0
    assert copy.read_text() == first


def test_line_ends_that_version_control_changed_are_no_edit(tmp_path: Path) -> None:
    assert run("vendor", "--tf1", tmp_path).exit_code == 0
    copy = tmp_path / "towermigrate_tf1.py"
    copy.write_bytes(copy.read_bytes().replace(b"\n", b"\r\n"))
    assert run("vendor", "--tf1", tmp_path).output == "nothing to do\n"


def test_a_file_of_the_users_own_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    own = tmp_path / "towermigrate_helpers" / "gradients.py"
    own.parent.mkdir()
    own.write_text("mine = 1\n")
    (own.parent / "more.py").write_text("mine = 2\n")
    (tmp_path / "a.py").write_text(HAND_WRITTEN)
    before = contents(tmp_path)
    result = run("vendor", tmp_path)
    assert (result.exit_code, "not written by towermigrate" in result.output) == (3, True)
    assert contents(tmp_path) == before
    assert run("vendor", "--force", tmp_path).exit_code == 0
    assert (own.parent / "more.py").read_text() == "mine = 2\n"


def test_a_module_that_towermigrate_no_longer_has_is_removed(tmp_path: Path) -> None:
    assert run("vendor", tmp_path).exit_code == 0
    folder = tmp_path / "towermigrate_helpers"
    stale = folder / "gone.py"
    shutil.copy(folder / "results.py", stale)
    result = run("vendor", tmp_path)
    assert (result.exit_code, stale.exists()) == (0, False)
    assert "removed 1" in result.output


def test_nothing_is_written_through_a_link_out_of_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "towermigrate_helpers").symlink_to(outside)
    result = run("vendor", tree)
    assert (result.exit_code, "leads out of" in result.output) == (3, True)
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    assert run("vendor", "--tf1", tmp_path / "none").exit_code == 2


def mended(tmp_path: Path) -> None:
    """The crash mended under TensorFlow 1: the program on the copied file."""
    text = (STAGED / "before" / "inpaint.py").read_text()
    start, end = text.index("def average_gradients"), text.index("def train(")
    text = text[:start] + text[end:]
    text = text.replace("as tf\n", "as tf\nfrom towermigrate_tf1 import average_gradients\n", 1)
    (tmp_path / "inpaint.py").write_text(text)
    assert run("vendor", "--tf1", tmp_path).exit_code == 0


def test_a_program_on_an_edited_tensorflow_1_file_is_not_in_loop_style(tmp_path: Path) -> None:
    mended(tmp_path)
    copy = tmp_path / "towermigrate_tf1.py"
    copy.write_text(copy.read_text().replace('none: str = "zeros"', 'none: str = "skip"', 1))
    before, edited = (tmp_path / "inpaint.py").read_text(), copy.read_bytes()
    result = run("rewrite", tmp_path, "--style", "loop")
    assert (result.exit_code, "TM203" in result.output) == (1, True)
    assert (tmp_path / "inpaint.py").read_text() == before
    # In session style its average, as edited, is run as it is.
    assert run("rewrite", tmp_path).exit_code == 0
    after = (tmp_path / "inpaint.py").read_text()
    assert "from towermigrate_tf1 import average_gradients\n" in after and "tm.towers(" in after
    assert copy.read_bytes() == edited


def test_a_program_on_the_tensorflow_1_file_is_migrated_from_there(tmp_path: Path) -> None:
    """First the crash is mended under TensorFlow 1, then the program is rewritten: to the same text."""
    mended(tmp_path)
    copy = (tmp_path / "towermigrate_tf1.py").read_bytes()
    assert run("rewrite", tmp_path).exit_code == 0
    assert (tmp_path / "inpaint.py").read_text() == (STAGED / "after" / "inpaint.py").read_text()
    assert (tmp_path / "towermigrate_tf1.py").read_bytes() == copy
    assert run("rewrite", tmp_path, "--check").exit_code == 0


@pytest.mark.full
def test_verify_follows_a_vendored_program(staged: Path) -> None:
    assert run("rewrite", staged).exit_code == 0
    assert run("vendor", staged).exit_code == 0
    report = run_verify(VerifyOptions(staged, devices=("cpu:2",), steps=1))
    assert (report.error, report.equal) == (None, True)

    # It is the copy that runs: a fault in it shows.
    gradients = staged / "towermigrate_helpers" / "gradients.py"
    text = gradients.read_text()
    assert text.count("def tower_gradients(") == 1
    gradients.write_text(
        text + "\n\ndef _none(*args, **kwargs):\n    return []\n\n\ntower_gradients = _none\n"
    )
    report = run_verify(VerifyOptions(staged, devices=("cpu:2",), steps=1))
    assert not report.equal
    gradients.write_text(text)

    hooks = staged / "towermigrate_helpers" / "_hooks.py"
    hooks.write_text(hooks.read_text().replace("tower_begin", "tower_began"))
    report = run_verify(VerifyOptions(staged, devices=("cpu:2",), steps=1))
    assert "is of another version of towermigrate" in (report.error or "")


def test_the_plan_holds_every_file_once(tmp_path: Path) -> None:
    plan = vendor_helpers(tmp_path)
    assert plan.left == plan.notes == plan.edited == ()
    for name, raw in plan.copies.items():
        assert raw is not None
        assert decode(name, raw).problem is None
