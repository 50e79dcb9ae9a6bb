"""A link among what `.towermigrate` keeps: what it leads to is the user's, and stays as it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from towermigrate.keeping import save, undo
from towermigrate.project import ProjectError

OLD, NEW = b"old = 1\n", b"new = 2\n"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes links")


def _tree(root: Path) -> dict[str, bytes]:
    files = {"a.py": OLD, "pkg/b.py": OLD, "notes.txt": b"mine", "pkg/data.csv": b"1,2"}
    for name, raw in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    return files


def _files(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not name.startswith(".towermigrate")
    }


@pytest.mark.parametrize(
    ("link", "target"),
    [
        pytest.param("originals", "..", id="the originals lead to the tree itself"),
        pytest.param("originals", "../../copy", id="the originals lead to a copy of the tree"),
        pytest.param("originals", "../pkg", id="the originals lead to a folder of the tree"),
        pytest.param(
            "originals/pkg", "../../pkg", id="a folder of the originals leads to the tree"
        ),
        pytest.param("earlier", "../pkg", id="the earlier forms lead to the tree"),
    ],
)
@pytest.mark.parametrize("undone", [False, True], ids=["save", "undo"])
def test_what_a_link_in_the_state_leads_to_stays(
    tmp_path: Path, link: str, target: str, undone: bool
) -> None:
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    before, beside = _tree(tree), _tree(copy)
    place = tree / ".towermigrate" / link
    place.parent.mkdir(parents=True)
    os.symlink(target, place)
    try:
        if undone:
            undo(tree)
        else:
            save(tree, {"pkg/b.py": NEW}, {"pkg/b.py": OLD})
    except (ProjectError, OSError):
        assert _files(tree) == before
    else:
        undo(tree)
        assert _files(tree) == before
    assert _files(copy) == beside


def test_undo_goes_on_where_a_file_stands_in_place_of_a_folder(tmp_path: Path) -> None:
    _tree(tmp_path)
    names = ["a.py", "pkg/b.py"]
    save(tmp_path, dict.fromkeys(names, NEW), dict.fromkeys(names, OLD))
    for path in (tmp_path / "pkg").iterdir():
        path.unlink()
    (tmp_path / "pkg").rmdir()
    (tmp_path / "pkg").write_bytes(b"a file now")
    done = undo(tmp_path)
    assert (done.restored, done.edited) == (("a.py",), ("pkg/b.py",))
    assert (tmp_path / "a.py").read_bytes() == OLD
