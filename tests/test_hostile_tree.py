"""A tree of files that nobody should have: each is named with a reason and left as it is, and the rest is done.

The commands run as a user does who may not read everything, in processes that must end by themselves.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent
PROGRAM = (REPOSITORY / "towermigrate/demo_program/complete.py").read_text()
TF = "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n"
# The superuser may read anything, so the commands run without that right.
UNPRIVILEGED = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    if os.geteuid() == 0
    else []
)
SECONDS = 120  # the whole tree takes a tenth of it


@dataclass(frozen=True)
class Case:
    """A path, what stands there, and what is said of it; `status` is None where nothing is said."""

    path: str
    make: Callable[[Path], object]
    status: str | None
    rule: str | None = None
    because: str = ""
    reported: str = ""
    """The path in the report, where it is not `path`."""


def holds(content: str | bytes) -> Callable[[Path], object]:
    raw = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(raw)


def leads_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def folder_with(name: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.mkdir()
        (path / name).write_text(TF)

    return make


def locked(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def then_lock(path: Path) -> None:
        make(path)
        path.chmod(0)

    return then_lock


def listens(path: Path) -> None:
    """A socket. Its address is a path of at most 107 bytes, so it is made from inside the folder."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def declares(codec: str) -> Callable[[Path], object]:
    return holds(f"# coding: {codec}\n{TF}")


HOSTILE = [
    pytest.param(Case("binary.py", holds(b"\x7fELF\x02tensorflow\x80\xff\x00"), "unparsable", "TM102", "encoding"), id="a binary file"),
    pytest.param(Case("latin.py", holds(b"# caf\xe9\n" + TF.encode()), "unparsable", "TM102", "encoding"), id="bytes that are not UTF-8"),
    pytest.param(Case("codec.py", declares("no-such"), "unparsable", "TM102", "no-such"), id="an unknown encoding"),
    pytest.param(Case("rot.py", declares("rot13"), "unparsable", "TM102", "rot13"), id="an encoding that is none of text"),
    pytest.param(Case("wide.py", declares("utf-16"), "unparsable", "TM102", ""), id="an encoding that Python does not take for source"),
    pytest.param(Case("puny.py", declares("punycode"), "unparsable", "TM102", ""), id="an encoding for host names"),
    pytest.param(Case("nul.py", holds(TF + "\x00"), "unparsable", "TM101", "null"), id="a NUL byte"),
    pytest.param(Case("syntax.py", holds(TF + "def f(:\n"), "unparsable", "TM101", "syntax"), id="a syntax error"),
    pytest.param(Case("tabs.py", holds(TF + "if x:\n\ty = 1\n  z = 1\n"), "unparsable", "TM101", "indent"), id="an indentation that fits none"),
    pytest.param(Case("cut.py", holds(TF + "y = '''"), "unparsable", "TM101", "unterminated"), id="a file that was cut off"),
    pytest.param(Case("emoji.py", holds(TF + "\N{GRINNING FACE} = 1\n"), "unparsable", "TM101", "invalid"), id="an emoji as a name"),
    pytest.param(Case("number.py", holds(f"{TF}y = {'9' * 5000}\n"), "unparsable", "TM101", "limit"), id="a number of 5,000 digits"),
    pytest.param(Case("parentheses.py", holds(f"{TF}y = {'(' * 5000}\n"), "unparsable", "TM101", "parenthes"), id="5,000 open parentheses"),
    pytest.param(Case("minus.py", holds(f"{TF}y = {'-' * 100_000}1\n"), "unparsable", "TM101", "nested too deeply"), id="100,000 minus signs"),
    pytest.param(Case("chain.py", holds(f"{PROGRAM}y = f{'()' * 900}\n"), "unparsable", "TM101", "nested too deeply"), id="a program beside 900 calls of calls"),
    pytest.param(Case("line.py", holds(f"{TF}y = '{'a' * 5_000_000}'\n"), "unparsable", "TM105", "more than 1 MiB"), id="a line of 5 MB"),
    pytest.param(Case("elif.py", holds(TF + "if x: pass\n" + "elif x: pass\n" * 200), "rewritten"), id="200 branches"),
    pytest.param(Case("table.py", holds(f"{TF}y = [{'1,' * 20_000}]\n"), "rewritten"), id="a line of 40 kB"),
    pytest.param(Case("good.py", holds(TF), "rewritten"), id="a good file"),
    pytest.param(Case("program.py", holds(PROGRAM), "rewritten"), id="a tower program"),
    pytest.param(Case("greek.py", holds(TF + "λ = tf.Session()  # \N{GRINNING FACE}\n"), "rewritten"), id="a name in Greek and a comment in emoji"),
    pytest.param(Case("fullwidth.py", holds("import tensorflow as ｔｆ\nx = ｔｆ.placeholder(ｔｆ.float32)\n"), "rewritten"), id="a name that Python reads as another"),
    pytest.param(Case("surrogate.py", holds(TF + "y = '\\ud800'\n"), "rewritten"), id="half a character in a string"),
    pytest.param(Case("empty.py", holds(""), None), id="an empty file"),
    pytest.param(Case("l" * 252 + ".py", holds(TF), "rewritten"), id="a name as long as names can be"),
    pytest.param(Case("new\nline.py", holds(TF), "rewritten"), id="a line end in a name"),
    pytest.param(Case("[red]markup.py", holds(TF), "rewritten"), id="markup in a name"),
    pytest.param(Case("bytes\udcff.py", holds(TF), "rewritten"), id="a name that is not text"),
    pytest.param(Case("folder.py", folder_with("m.py"), "rewritten", reported="folder.py/m.py"), id="a folder named like a file"),
    pytest.param(Case("dangling.py", leads_to("nowhere"), "unchanged", "TM108", "nowhere"), id="a link that leads nowhere"),
    pytest.param(Case("itself.py", leads_to("itself.py"), "unchanged", "TM108", "nowhere"), id="a link to itself"),
    pytest.param(Case("escaping.py", leads_to("../outside.py"), "unchanged", "TM108", "out of the tree"), id="a link to a file elsewhere"),
    pytest.param(Case("elsewhere", leads_to("../outside"), "unchanged", "TM108", "out of the tree"), id="a link to a folder elsewhere"),
    pytest.param(Case("around", leads_to("."), None), id="a link to the tree itself"),
    pytest.param(Case("twin.py", leads_to("good.py"), None), id="a link to a file of the tree"),
    pytest.param(Case("pipe.py", os.mkfifo, "unchanged", "TM108", "not a regular file"), id="a pipe that nobody writes to"),
    pytest.param(Case("socket.py", listens, "unchanged", "TM108", "not a regular file"), id="a socket"),
    pytest.param(Case("locked.py", locked(holds(TF)), "unparsable", "TM105", "Permission denied"), id="a file that may not be read"),
    pytest.param(Case("secret", locked(folder_with("m.py")), "unparsable", "TM105", "Permission denied", "secret/"), id="a folder that may not be read"),
]  # fmt: skip
CASES: list[Case] = [row.values[0] for row in HOSTILE]  # type: ignore[misc]
OUTSIDE = {"outside.py": TF, "outside/m.py": TF}


@dataclass(frozen=True)
class Runs:
    """The tree and what the commands left and said: exit code, output, report."""

    root: Path
    before: dict[str, bytes]
    after: dict[str, bytes]
    undone: dict[str, bytes]
    codes: dict[str, int]
    output: str
    report: dict[str, Any]


def contents(root: Path) -> dict[str, bytes]:
    """Every regular file and link of a tree, as the superuser or the owner sees it."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".towermigrate"]
        for path in (Path(folder, name) for name in names):
            if path.is_symlink():
                found[path.relative_to(root).as_posix()] = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(path.lstat().st_mode) and os.access(path, os.R_OK):
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    if UNPRIVILEGED and shutil.which("setpriv") is None:
        pytest.skip("run by the superuser, whom nothing is hidden from, and without setpriv")
    top = tmp_path_factory.mktemp("hostile")
    root = top / "tree"
    root.mkdir()
    (top / "outside").mkdir()
    for path, text in OUTSIDE.items():
        (top / path).write_text(text)
    for case in CASES:
        case.make(root / case.path)
    before = contents(top)
    codes: dict[str, int] = {}
    output = ""

    def run(*arguments: str) -> None:
        nonlocal output
        done = subprocess.run(
            [*UNPRIVILEGED, sys.executable, "-m", "towermigrate", *arguments],
            cwd=top,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        codes[arguments[0]] = done.returncode
        output += (done.stdout + done.stderr).decode(errors="surrogateescape")

    try:
        run("scan", "tree")
        assert contents(top) == before
        run("rewrite", "tree", "--json", "report.json")
        report = json.loads((top / "report.json").read_bytes())
        (top / "report.json").unlink()
        after = contents(top)
        run("undo", "tree")
        yield Runs(root, before, after, contents(top), codes, output, report)
    finally:
        for case in CASES:
            if case.because == "Permission denied":
                (root / case.path).chmod(0o700)


@pytest.mark.parametrize("case", HOSTILE)
def test_each_file_is_named_with_a_reason(runs: Runs, case: Case) -> None:
    found = {file["path"]: file for file in runs.report["files"]}
    path = case.reported or case.path
    if case.status is None:
        assert path not in found
        return
    assert found[path]["status"] == case.status
    rules = {finding["rule"]: finding["message"] for finding in found[path]["findings"]}
    if case.rule is not None:
        assert list(rules) == [case.rule]
        assert case.because in rules[case.rule]


@pytest.mark.parametrize("case", HOSTILE)
def test_only_what_was_understood_is_changed(runs: Runs, case: Case) -> None:
    path = f"tree/{case.reported or case.path}"
    if case.status != "rewritten":
        assert runs.after.get(path) == runs.before.get(path)
        return
    assert runs.after[path] != runs.before[path]
    ast.parse(runs.after[path])


def test_what_lies_outside_is_not_touched(runs: Runs) -> None:
    for path, text in OUTSIDE.items():
        assert runs.after[path] == text.encode()


def test_undo_puts_everything_back(runs: Runs) -> None:
    assert runs.undone == runs.before
    assert not (runs.root / ".towermigrate").exists()


def test_the_exit_codes_say_that_something_could_not_be_read(runs: Runs) -> None:
    assert runs.codes == {"scan": 3, "rewrite": 3, "undo": 0}


def test_nobody_sees_a_traceback(runs: Runs) -> None:
    assert "Traceback" not in runs.output
    assert "fault of towermigrate" not in runs.output
