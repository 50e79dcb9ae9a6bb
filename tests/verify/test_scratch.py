"""Scratch copies: what is copied, what is linked, how much is said, and what is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from towermigrate.verify import VerifyOptions, run_verify, scratch
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.probe.recording import TraceWriter, read_arrays
from towermigrate.verify.scratch import TooLarge, check_size, copy_files, parse_size
from towermigrate.verify.trace import read_trace

held = pytest.mark.skipif(not scratch.is_held(), reason="this system does not keep programs out")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with links of every kind, and data beside it."""
    root = tmp_path / "users" / "tree"
    for folder in ("code", "empty", ".git", "runs/3"):
        (root / folder).mkdir(parents=True)
    (root / "code" / "train.py").write_text("pass")
    (root / ".git" / "head").write_text("head")
    (root / "big.bin").write_bytes(bytes(1000))
    (root / "runs" / "latest").symlink_to("3")
    (root / "absolute").symlink_to(root / "code" / "train.py")
    outside = tmp_path / "users" / "data"
    outside.mkdir()
    (outside / "rows.txt").write_text("rows")
    (root / "data").symlink_to(outside)
    (root / "nowhere").symlink_to("nothing")
    (root / "script.sh").write_text("true")
    (root / "script.sh").chmod(0o755)
    return root


def copied(root: Path, tmp_path: Path) -> Path:
    target = tmp_path / "scratch" / "tree" / root.name
    copy_files(root, target, link_over=500)
    return target


@held
def test_links_within_a_tree_stay_within_its_copy(root: Path, tmp_path: Path) -> None:
    copy = copied(root, tmp_path)
    for name in ("runs/latest", "absolute"):
        assert (copy / name).is_symlink()
        assert (copy / name).resolve().is_relative_to(copy)
    assert (copy / "absolute").read_text() == "pass"
    assert os.readlink(copy / "nowhere") == "nothing"
    assert (copy / "empty").is_dir() and not (copy / ".git").exists()
    assert (copy / "script.sh").stat().st_mode & 0o777 == 0o755
    assert (copy / "script.sh").stat().st_mtime_ns == (root / "script.sh").stat().st_mtime_ns


@held
def test_large_files_and_what_is_outside_are_linked(root: Path, tmp_path: Path) -> None:
    copy = copied(root, tmp_path)
    assert (copy / "big.bin").is_symlink() and (copy / "big.bin").resolve() == root / "big.bin"
    assert (copy / "data" / "rows.txt").read_text() == "rows"
    assert Path(os.path.normpath(copy / ".." / "data" / "rows.txt")).read_text() == "rows"
    assert not (copy / "code" / "train.py").is_symlink()


def test_all_is_copied_where_programs_are_not_kept_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "is_held", lambda: False)
    copy = copied(root, tmp_path)
    assert not (copy / "big.bin").is_symlink() and not (copy / "data").is_symlink()
    assert (copy / "data" / "rows.txt").read_text() == "rows"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["tree"]


def test_the_size_is_said_first_and_has_a_limit(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "is_held", lambda: False)
    monkeypatch.setattr(scratch, "_clones", lambda *_: False)
    said: list[str] = []
    check_size(root, tmp_path, 500, 10**6, said.append)
    assert said == ["the scratch copy of each run: 1012 bytes in 4 files"]
    with pytest.raises(TooLarge, match=r"limit is 900 bytes.*big.bin .1000 bytes.*--max-copy 1012"):
        check_size(root, tmp_path, 500, 900, said.append)
    usage = scratch.shutil.disk_usage(tmp_path)._replace(free=2**28 + 3000)
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(TooLarge, match=r"do not fit.*TMPDIR"):
        check_size(root, tmp_path, 500, 10**6, said.append)


@held
def test_what_is_linked_is_said(root: Path, tmp_path: Path) -> None:
    said: list[str] = []
    check_size(root, tmp_path, 500, 10**6, said.append)
    assert "1000 bytes in 2 large or outside files and folders are linked, read-only" in said[0]


def test_blocks_are_shared_or_nothing_is_left(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("text")
    assert scratch.clone(one, two) == two.exists()
    scratch.copy_file(one, tmp_path / "three")
    assert (tmp_path / "three").read_text() == "text"
    assert (tmp_path / "three").stat().st_mtime_ns == one.stat().st_mtime_ns


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("8M", 2**23), ("1.5g", 3 * 2**29), ("20 GiB", 20 * 2**30)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "much", "-", "1Q", "nan", "-3M", "inf"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


def test_a_tree_that_is_too_large_is_an_error_of_its_own(tree: Path) -> None:
    report = run_verify(VerifyOptions(tree, max_copy=10))
    assert report.exit_code == 3
    assert report.error is not None and "the limit is 10 bytes" in report.error
    assert report.protection is None  # nothing was run


def test_no_space_for_a_copy_is_an_error_of_its_own(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "copy_file", full)
    report = run_verify(VerifyOptions(tree))
    assert report.exit_code == 3
    assert report.error is not None and report.error.startswith("There is no space left for")


def test_large_arrays_are_mapped_and_small_ones_read(tmp_path: Path) -> None:
    arrays = {
        "state/large": np.arange(2**19, dtype=np.float32).reshape(2, -1),
        "state/turned": np.asfortranarray(np.ones((600, 900))),
        "small": np.float32(3),
        "none": np.zeros([0, 4]),
        "words": np.array(["a", "b"], dtype=object),
    }
    writer = TraceWriter(str(tmp_path / "trace"))
    writer.arrays("run_00000", arrays)
    found = read_arrays(str(tmp_path / "trace"), "run_00000")
    assert list(found) == list(arrays)
    for key, array in arrays.items():
        assert np.array_equal(found[key].astype(str), np.asarray(array).astype(str)), key
    assert isinstance(found["state/large"].base, np.memmap)
    assert isinstance(found["state/turned"].base, np.memmap)
    assert not isinstance(found["small"].base, np.memmap)
    found["state/large"][:] = 0  # in this process only
    again = read_arrays(str(tmp_path / "trace"), "run_00000")
    assert again["state/large"][1, -1] == 2**19 - 1
    with np.load(tmp_path / "trace" / "run_00000.npz") as opened:
        np.testing.assert_array_equal(opened["small"], arrays["small"])
        assert "state/large" in str(opened["__large__"])
    # As versions before this one wrote it.
    np.savez(tmp_path / "trace" / "run_00001.npz", **{"state/large": arrays["state/large"]})
    before = read_arrays(str(tmp_path / "trace"), "run_00001")["state/large"]
    np.testing.assert_array_equal(before, arrays["state/large"])
    assert isinstance(before.base, np.memmap)


@pytest.mark.parametrize("damage", ["truncated", "other", "missing", "no description"])
def test_a_damaged_recording_is_no_traceback(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "trace"
    writer = TraceWriter(str(folder))
    writer.arrays("run_00000", {"state/w": np.zeros(2**19)})
    writer.meta["runs"].append({"index": 0, "stages": [0]})
    writer.finish("program")
    path = folder / "run_00000.npz"
    if damage == "truncated":
        os.truncate(path, 2**20)
    elif damage == "other":
        path.write_bytes(b"other" * 1000)
    elif damage == "missing":
        path.unlink()
    else:
        (folder / "meta.json").write_text("[]")
    with pytest.raises(ChildFailed, match="The recording in run is damaged"):
        trace = read_trace(folder)
        trace.arrays(trace.runs[0])
