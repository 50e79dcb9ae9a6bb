"""Files on disk: nothing of the user's is lost, whatever the bytes and whatever happens in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.differential.test_summaries_of_files import program as program_of_files
from towermigrate import keeping
from towermigrate.cli import main
from towermigrate.keeping import originals, save, undo
from towermigrate.listing import list_tree, python_files
from towermigrate.migrate import _encodable
from towermigrate.outcome import FileReport, ProgramReport, TreeReport
from towermigrate.project import (
    ProjectError,
    SourceFile,
    decode,
    read_tree,
)

TF = "import tensorflow as tf\n"


def run(*arguments: str | Path) -> int:
    return (
        CliRunner()
        .invoke(main, [str(part) for part in arguments], catch_exceptions=False)
        .exit_code
    )


BYTES = [
    pytest.param(TF.encode(), "utf-8", id="plain"),
    pytest.param(b"\xef\xbb\xbf" + TF.encode(), "utf-8-sig", id="byte order mark"),
    pytest.param(("# -*- coding: latin-1 -*-\n# caf\xe9\n" + TF).encode("latin-1"), "iso-8859-1", id="latin-1 cookie"),
    pytest.param(TF.replace("\n", "\r\n").encode(), "utf-8", id="CRLF"),
    pytest.param(b"import tensorflow\rx = 1\r\ny = 2\n", "utf-8", id="mixed line ends"),
    pytest.param(TF.encode() + b"x = 1\x0c\ny = 1", "utf-8", id="form feed, no last line end"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "encoding"), BYTES)
def test_bytes_survive_reading_and_writing(raw: bytes, encoding: str) -> None:
    file = decode("m.py", raw)
    assert file.text is not None and not file.text.startswith("\ufeff")
    assert file.encoding == encoding
    assert file.encode(file.text) == raw


@pytest.mark.parametrize(
    "raw", [b"# caf\xe9\n", b"# coding: no-such\n", b"\xef\xbb\xbf# coding: latin-1\n"]
)
def test_what_cannot_be_decoded_is_a_finding(raw: bytes) -> None:
    file = decode("m.py", raw)
    assert file.text is None
    assert file.problem is not None and file.problem.rule == "TM102"


OLD, NEW = b"tf.placeholder(tf.float32)", b"tf.compat.v1.placeholder(tf.float32)"
IMPORT = b"import tensorflow as tf\n"
LATIN = "# \u00e9t\u00e9\n".encode("latin-1")
CYRILLIC = "# \u043c\u043e\u0434\u0435\u043b\u044c\n".encode("koi8-r")
JAPANESE = "# \u5b66\u7fd2\u7387\n".encode("euc-jp")
PROGRAM = (Path(__file__).parent.parent / "towermigrate/demo_program/complete.py").read_bytes()

# What stands in a file around a TensorFlow 1 name; all but the name must survive to the byte.
WRITTEN = [
    pytest.param(IMPORT + b"x = " + OLD + b"\n", id="plain"),
    pytest.param(b"\xef\xbb\xbf" + IMPORT + b"x = " + OLD + b"\n", id="a byte order mark"),
    pytest.param(b"\xef\xbb\xbf# coding: utf-8\n" + IMPORT + b"x = " + OLD + b"\n", id="a byte order mark and a cookie"),
    pytest.param(b"# -*- coding: latin-1 -*-\n" + LATIN + IMPORT + b"x = " + OLD + LATIN, id="latin-1 by a cookie"),
    pytest.param(b"#!/usr/bin/env python\n# vim: set fileencoding=koi8-r :\n" + CYRILLIC + IMPORT + b"s = '" + CYRILLIC[2:-1] + b"'; x = " + OLD + b"\n", id="a cookie in the second line, letters before the name"),
    pytest.param(b"# coding: euc_jp\n" + IMPORT + b"s = '" + JAPANESE[2:-1] + b"', " + OLD + JAPANESE, id="two bytes a letter"),
    pytest.param((IMPORT + b"x = " + OLD + b"\n").replace(b"\n", b"\r\n"), id="CRLF"),
    pytest.param((IMPORT + b"x = " + OLD + b"\n").replace(b"\n", b"\r"), id="CR alone"),
    pytest.param(b'import tensorflow as tf\r\na = 1\rb = """1\r\n2\n"""\n' + OLD + b"\r\n" + OLD + b"\r", id="mixed line ends"),
    pytest.param(IMPORT + b"x = " + OLD, id="no last line end"),
    pytest.param(IMPORT + b"x = " + OLD + b"\n\n \n\t", id="blanks at the end"),
    pytest.param(IMPORT + b"\x0c\n\x0cdef f():\n    \x0c\n    return " + OLD + b"\x0c\n", id="form feeds"),
    pytest.param(IMPORT + b"s = 'a\x0bb\x1c\xc2\x85\xe2\x80\xa8'; x = " + OLD + b"\n", id="what other line ends there are, in a string"),
    pytest.param("import tensorflow as tf\n\u00b5 = '\U0001f600'; x = ".encode() + OLD + "  # \U0001f600\n".encode(), id="letters of four bytes before the name"),
    pytest.param(IMPORT + b"if True:\n\tx = " + OLD + b"\t# tab \n\ty = 1\n", id="tabs"),
    pytest.param(IMPORT + b"x = (1 + \\\n     2); y = " + OLD + b" \n", id="a continued line, blanks at its end"),
]  # fmt: skip


@pytest.mark.parametrize("before", WRITTEN)
def test_all_but_the_names_survives_a_rewrite_and_undo_gives_every_byte_back(
    tmp_path: Path, before: bytes
) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(before)
    path.chmod(mode := 0o751)
    assert run("rewrite", tmp_path) == 0
    assert path.read_bytes() == before.replace(OLD, NEW)
    assert path.stat().st_mode & 0o7777 == mode
    assert run("rewrite", "--check", tmp_path) == 0
    assert run("undo", tmp_path) == 0
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o7777 == mode
    assert os.listdir(tmp_path) == ["m.py"]


@pytest.mark.parametrize(
    ("before", "ends"),
    [
        pytest.param(PROGRAM.replace(b"\n", b"\r\n"), b"\r\n", id="CRLF"),
        pytest.param(b"\xef\xbb\xbf" + PROGRAM, b"\n", id="a byte order mark"),
        pytest.param(b"# coding: latin-1\n" + LATIN + PROGRAM, b"\n", id="latin-1"),
        pytest.param(PROGRAM.rstrip(), b"\n", id="no last line end"),
    ],
)
def test_a_rewritten_tower_program_keeps_encoding_and_line_ends(
    tmp_path: Path, before: bytes, ends: bytes
) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(before)
    assert run("rewrite", tmp_path) == 0
    after = path.read_bytes()
    assert b"@variables.tower" in after
    assert after.count(ends) == after.count(b"\n")
    assert after.startswith(before[:3]) and after.endswith(b"\n") == before.endswith(b"\n")
    assert (LATIN in after) == (LATIN in before)
    compile(after, "m.py", "exec")
    assert run("undo", tmp_path) == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("encoding", "result"),
    [
        pytest.param("ascii", "\u00e9", id="the encoding lacks a letter"),
        pytest.param(
            "iso-8859-1", "\n\n# coding: latin-1\n\u00e9", id="the coding line slipped down"
        ),
        pytest.param("utf-8", "# coding: latin-1\n\u00e9", id="another coding line came in"),
    ],
)
def test_bytes_that_would_be_read_as_another_text_are_not_written(
    encoding: str, result: str
) -> None:
    files = {"m.py": SourceFile("m.py", b"", "x", encoding)}
    program = ProgramReport(1, "f", "loop", "converted", (), ())
    report = TreeReport((FileReport("m.py", "rewritten", (program,)),), {"m.py": result})
    found = _encodable(files, report)
    assert found.texts == {}
    assert (found.files[0].status, found.programs[0].status) == ("refused", "refused")
    assert [finding.rule for finding in found.files[0].findings] == ["TM102"]


# --- which files ---------------------------------------------------------------------------------------------


def grow(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            (root / path).write_text(TF)


LEFT_OUT = [
    pytest.param(".git/m.py", [], None, id="a hidden folder"),
    pytest.param("p/__pycache__/m.py", [], None, id="a cache"),
    pytest.param("node_modules/m.py", [], None, id="packages of node"),
    pytest.param("lib/site-packages/m.py", [], None, id="installed packages"),
    pytest.param("env/m.py", ["env/pyvenv.cfg"], "a virtual environment", id="a virtual environment"),
    pytest.param("env/m.py", ["env/conda-meta/history"], "a virtual environment", id="a conda environment"),
    pytest.param("build/lib/m.py", ["setup.py"], "built by setuptools", id="what setuptools built"),
    pytest.param("towermigrate_helpers/m.py", [], None, id="the copied helpers"),
    pytest.param("out/m.py", ["out/.towermigrate/copy"], "a copy that --out wrote", id="a rewritten copy"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "beside", "reason"), LEFT_OUT)
def test_what_is_not_the_trees_own_is_left_out(
    tmp_path: Path, path: str, beside: list[str], reason: str | None
) -> None:
    grow(tmp_path, path, "own.py", *beside)
    found = list_tree(tmp_path)
    assert path not in found.files and "own.py" in found.files
    assert [one.reason for one in found.left_out] == ([] if reason is None else [reason])


@pytest.mark.parametrize(
    "path", ["build/m.py", "third_party/slim/m.py", "vendor/m.py", "dist/m.py", "x.py/m.py"]
)
def test_a_folder_that_may_hold_sources_is_read(tmp_path: Path, path: str) -> None:
    grow(tmp_path, path)
    assert python_files(tmp_path) == (path,)


def test_links_inside_are_passed_over_and_links_that_lead_out_are_named(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    grow(tmp_path, "outside.py", "elsewhere/m.py", "tree/p/m.py")
    for link, target in {
        "twin.py": "p/m.py", "q": "p", "out.py": "../outside.py", "far": "../elsewhere", "gone.py": "nowhere"
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    (tmp_path / "way").symlink_to(root)
    for way in (root, tmp_path / "way"):
        found = list_tree(way)
        assert found.files == ("p/m.py",)
        assert [one.path for one in found.left_out] == ["far", "gone.py", "out.py"]


PATTERNS = [
    pytest.param({".gitignore": "*_pb2.py\n"}, id="a name anywhere"),
    pytest.param({".gitignore": "/a.py\n"}, id="a path from here"),
    pytest.param({".gitignore": "p/\n"}, id="a folder"),
    pytest.param({".gitignore": "p/*\n!p/b.py\n"}, id="all of a folder but one"),
    pytest.param({".gitignore": "p/\n!p/b.py\n"}, id="a folder is gone for good"),
    pytest.param({".gitignore": "b.py\n", "p/.gitignore": "!b.py\n"}, id="a deeper file has the last word"),
    pytest.param({"p/.gitignore": "/b.py\n"}, id="a deeper file counts from its folder"),
    pytest.param({".gitignore": "**/q/*.py\n"}, id="folders in between"),
    pytest.param({".gitignore": "# b.py\n\n   \n[ab].py\r\n"}, id="comments, blanks and CRLF"),
    pytest.param({".gitignore": "\\!x.py\n!\na[.py\n"}, id="lines that mean nothing"),
    pytest.param({".git/info/exclude": "a.py\n"}, id="the repository's own list"),
    pytest.param({".git/info/exclude": "a.py\n", ".gitignore": "!a.py\n"}, id="the repository's own list comes first"),
]  # fmt: skip


@pytest.mark.parametrize("patterns", PATTERNS)
@pytest.mark.parametrize("start", [".", "p"])
def test_gitignore_is_read_as_git_reads_it(
    tmp_path: Path, patterns: dict[str, str], start: str
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    grow(tmp_path, "a.py", "x_pb2.py", "p/a.py", "p/b.py", "p/q/b.py", "p/q/r/c.py", "q/c.py")
    for path, text in patterns.items():
        (tmp_path / path).write_text(text)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path / start, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    expected = sorted(name for name in listed if name.endswith(".py"))
    ignored = subprocess.run(["git", "check-ignore", "-q", "p"], cwd=tmp_path).returncode == 0
    if start == "p" and ignored:
        expected = ["a.py", "b.py", "q/b.py", "q/r/c.py"]  # asked for by name, so it is read
    assert list(python_files(tmp_path / start)) == expected
    assert len(python_files(tmp_path / start, gitignore=False)) == (7 if start == "." else 4)


@pytest.mark.parametrize(
    ("pattern", "tracked", "found"),
    [
        pytest.param("data\nbuild\n", ["data/reader.py"], ["a.py", "data/reader.py"], id="in a folder"),
        pytest.param("data/\nbuild/\n", ["data/deep/reader.py"], ["a.py", "data/deep/reader.py"], id="deep in a folder"),
        pytest.param("*.py\n", ["a.py"], ["a.py"], id="a name"),
        pytest.param("data\nbuild\n", ["data/notes.txt"], ["a.py"], id="nothing of ours in the folder"),
        pytest.param("data\nbuild\n", [], ["a.py"], id="nothing"),
        pytest.param("build\ndata\n", ["build/é b.py"], ["a.py", "build/é b.py"], id="a name with a blank and an accent"),
        pytest.param("", [], ["a.py", "build/é b.py", "data/deep/reader.py", "data/reader.py"], id="nothing is ignored"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", ["", "src"])
def test_what_git_tracks_is_found_though_it_is_ignored(
    tmp_path: Path, pattern: str, tracked: list[str], found: list[str], start: str
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    root = tmp_path / start
    root.mkdir(exist_ok=True)
    grow(root, "a.py", "data/reader.py", "data/deep/reader.py", "data/notes.txt", "build/é b.py")
    if tracked:
        subprocess.run(["git", "add", "-f", *tracked], cwd=root, check=True)
    (tmp_path / ".gitignore").write_text(pattern)
    assert list(python_files(root)) == found


def test_without_git_nothing_is_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    grow(tmp_path, "a.py", "data/b.py")
    (tmp_path / ".gitignore").write_text("data\n")
    assert python_files(tmp_path) == ("a.py",)
    monkeypatch.setenv("PATH", "")
    assert python_files(tmp_path) == ("a.py",)


@pytest.mark.parametrize("pattern", ["*", "p/", "/p", "q", "c.py", "home\ntmp\nvar\n"])
def test_patterns_say_nothing_of_the_folders_above_theirs(tmp_path: Path, pattern: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    grow(tmp_path, "p/q/a.py", "p/q/r/b.py", "p/q/r/c.py")
    (tmp_path / ".gitignore").write_text("b.py\n")
    (tmp_path / "p/.gitignore").write_text(pattern)
    asked = subprocess.run(["git", "check-ignore", "-q", "p/q"], cwd=tmp_path).returncode == 0
    expected = {"c.py": ("a.py",)}.get(pattern, ("a.py", "r/c.py"))
    assert python_files(tmp_path / "p/q") == (("a.py", "r/b.py", "r/c.py") if asked else expected)


def test_an_ignored_file_or_folder_that_is_asked_for_is_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    grow(tmp_path, "p/a.py", "b.py")
    (tmp_path / "b.py").write_bytes(IMPORT + OLD)
    (tmp_path / ".gitignore").write_text("p/\nb.py\n")
    assert python_files(tmp_path) == ()
    assert python_files(tmp_path / "p") == ("a.py",)
    assert run("rewrite", "--check", tmp_path) == 0
    assert run("rewrite", "--check", "--no-gitignore", tmp_path) == 1
    assert run("rewrite", "--check", tmp_path / "b.py") == 1


def test_a_link_that_is_asked_for_is_not_followed(tmp_path: Path) -> None:
    grow(tmp_path, "a.py")
    (tmp_path / "link.py").symlink_to("a.py")
    assert run("rewrite", tmp_path / "link.py") == 3
    assert (tmp_path / "a.py").read_text() == TF


def test_the_report_names_what_was_left_out(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    grow(root, "a.py", "gen/b.py", "env/c.py", "env/pyvenv.cfg")
    (root / ".gitignore").write_text("gen/\n")
    assert run("scan", root, "--json", tmp_path / "r.json") == 0
    assert json.loads((tmp_path / "r.json").read_text())["left_out"] == [
        {"path": "env/", "reason": "a virtual environment"},
        {"path": "gen/", "reason": "named by .gitignore"},
    ]


def test_a_copy_inside_the_tree_is_not_taken_for_a_part_of_it(tmp_path: Path) -> None:
    grow(tmp_path, "a.py", "p/b.py")
    (tmp_path / "a.py").write_bytes(IMPORT + OLD)
    for _ in range(2):
        assert run("rewrite", tmp_path, "--out", tmp_path / "new") == 0
    assert python_files(tmp_path) == ("a.py", "p/b.py")
    assert python_files(tmp_path / "new") == ("a.py", "p/b.py")
    assert (tmp_path / "new/a.py").read_bytes() == IMPORT + NEW
    assert run("rewrite", tmp_path, "--out", tmp_path) == 3


def test_a_file_without_tensorflow_is_not_read_further(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xff not python")
    assert read_tree(tmp_path, list_tree(tmp_path)) == {}


def test_save_keeps_mode_and_originals(tmp_path: Path) -> None:
    path = tmp_path / "p" / "a.py"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o755)
    save(tmp_path, {"p/a.py": b"new"}, {"p/a.py": b"old"})
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o755
    assert originals(tmp_path) == {"p/a.py": b"old"}
    assert (tmp_path / ".towermigrate/.gitignore").read_text() == "*\n"
    assert sorted(os.listdir(path.parent)) == ["a.py"]


def test_a_second_rewrite_keeps_the_first_original(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    save(tmp_path, {"a.py": b"2"}, {"a.py": b"1"})
    save(tmp_path, {"a.py": b"3"}, {"a.py": b"2"})
    assert originals(tmp_path) == {"a.py": b"1"}
    assert undo(tmp_path).restored == ("a.py",)
    assert (tmp_path / "a.py").read_bytes() == b"1"
    assert not (tmp_path / ".towermigrate").exists()


def test_an_edit_between_two_rewrites_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    save(tmp_path, {"a.py": b"2"}, {"a.py": b"1"})
    (tmp_path / "a.py").write_bytes(b"edited")
    save(tmp_path, {"a.py": b"3"}, {"a.py": b"edited"})
    undo(tmp_path)
    assert (tmp_path / "a.py").read_bytes() == b"edited"
    earlier = list((tmp_path / ".towermigrate/earlier").iterdir())
    assert [path.read_bytes() for path in earlier] == [b"1"]


def test_undo_leaves_an_edited_file_alone_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    save(tmp_path, {"a.py": b"2"}, {"a.py": b"1"})
    (tmp_path / "a.py").write_bytes(b"edited")
    assert undo(tmp_path).edited == ("a.py",)
    assert (tmp_path / "a.py").read_bytes() == b"edited"
    assert undo(tmp_path, force=True).restored == ("a.py",)
    assert (tmp_path / "a.py").read_bytes() == b"1"
    kept = list((tmp_path / ".towermigrate/earlier").iterdir())
    assert [path.read_bytes() for path in kept] == [b"edited"]


@pytest.mark.parametrize("crash_at", range(1, 7))
def test_a_killed_rewrite_leaves_whole_files_and_undo_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    old = {"a.py": b"a1", "b.py": b"b1"}
    new = {"a.py": b"a2", "b.py": b"b2"}
    for path, raw in old.items():
        (tmp_path / path).write_bytes(raw)
    real, count = os.replace, 0

    def killed(source: str, target: str) -> None:
        nonlocal count
        count += 1
        if count == crash_at:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(keeping.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, new, old)
    monkeypatch.undo()
    for path in old:
        assert (tmp_path / path).read_bytes() in (old[path], new[path])
    undo(tmp_path)
    assert {path: (tmp_path / path).read_bytes() for path in old} == old


def test_nothing_is_written_when_a_file_was_edited_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"edited")
    with pytest.raises(ProjectError, match=r"a\.py: was edited"):
        save(tmp_path, {"a.py": b"2"}, {"a.py": b"1"})
    assert not (tmp_path / ".towermigrate").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_the_original_of_a_private_file_is_private(tmp_path: Path) -> None:
    for name, mode in (("secret.py", 0o600), ("plain.py", 0o644)):
        (tmp_path / name).write_bytes(b"1")
        (tmp_path / name).chmod(mode)
    save(tmp_path, {"secret.py": b"2", "plain.py": b"2"}, {"secret.py": b"1", "plain.py": b"1"})
    kept = tmp_path / ".towermigrate/originals"
    assert (kept / "secret.py").stat().st_mode & 0o777 == 0o600
    assert (kept / "plain.py").stat().st_mode & 0o044
    undo(tmp_path)
    assert (tmp_path / "secret.py").stat().st_mode & 0o777 == 0o600


def test_a_damaged_original_is_not_put_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    save(tmp_path, {"a.py": b"2"}, {"a.py": b"1"})
    (tmp_path / ".towermigrate/originals/a.py").write_bytes(b"?")
    with pytest.raises(ProjectError, match="checksum"):
        undo(tmp_path)
    assert (tmp_path / "a.py").read_bytes() == b"2"


def test_a_manifest_cannot_lead_out_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_bytes(b"1")
    save(root, {"a.py": b"2"}, {"a.py": b"1"})
    manifest = root / ".towermigrate/manifest.json"
    document = json.loads(manifest.read_text())
    document["files"]["../out.py"] = document["files"].pop("a.py")
    (root / ".towermigrate/out.py").write_bytes(b"1")
    manifest.write_text(json.dumps(document))
    (tmp_path / "out.py").write_bytes(b"2")
    with pytest.raises(ProjectError):
        undo(root)
    assert (tmp_path / "out.py").read_bytes() == b"2"


def test_a_program_reads_its_settings_in_a_file_that_imports_nothing(tmp_path: Path) -> None:
    for path, text in program_of_files().items():
        (tmp_path / path).write_text(text)
    assert run("rewrite", tmp_path, "--json", tmp_path / "said.json") == 0
    said = json.loads((tmp_path / "said.json").read_text())
    (program,) = [each for file in said["files"] for each in file["programs"]]
    assert (program["style"], program["not_loop"]) == ("loop", [])
