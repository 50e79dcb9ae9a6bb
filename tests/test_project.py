"""Files on disk: nothing of the user's is lost, whatever the bytes and whatever happens in between."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from towermigrate import project
from towermigrate.project import (
    ProjectError,
    decode,
    originals,
    python_files,
    read_tree,
    save,
    undo,
)

TF = "import tensorflow as tf\n"

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


def test_only_the_trees_own_python_files_are_found(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(TF)
    root = tmp_path / "tree"
    for name in ("a.py", "p/b.py", ".git/c.py", ".towermigrate/d.py", "v/e.py", "node_modules/f.py", "__pycache__/g.py", "h.txt"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TF)
    (root / "v/pyvenv.cfg").write_text("")
    (root / "link.py").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    assert list(python_files(root)) == ["a.py", "p/b.py"]


def test_a_file_without_tensorflow_is_not_read_further(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xff not python")
    assert read_tree(tmp_path) == {}


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

    monkeypatch.setattr(project.os, "replace", killed)
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
