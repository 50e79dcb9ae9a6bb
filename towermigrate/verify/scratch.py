"""The scratch copies that programs run in: what is copied, what is shared with the user's tree, and how much it is.

Every run has a copy of its own, made from the user's tree: a copy shared by two runs (by hard links, say) would hand
on what one of them writes in place. Where the file system can, a copy shares its blocks with the original until
one of them is written (`FICLONE`: btrfs, XFS, bcachefs). Where it cannot, large files, folders that are linked from
outside and what is beside the tree (`../data`) become links to the user's own, but only where the kernel keeps
programs from writing through them (`fence.py`); else all of them are copied. Links within the tree stay so in the copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from towermigrate.verify.fence import asks_guardian, fence_version

_SKIPPED = {".git", ".hg", ".svn", ".towermigrate", "__pycache__", "node_modules"}
LINK_OVER = 8 * 2**20
MAX_COPY = 4 * 2**30
_CLONE = 0x40049409
_MOST_BESIDE = 2000
# One original, run twice, and the rewritten program, of which each worker has its own; more where they differ.
_LEAST_RUNS = 3
_MARGIN = 256 * 2**20


class TooLarge(ValueError):
    """The tree cannot or may not be copied; the message says how large it is and what to do."""


@dataclass
class Survey:
    """What is in a tree: folders, files to be copied with their sizes, and what is linked to the user's own."""

    folders: list[Path] = field(default_factory=list)
    copied: dict[Path, int] = field(default_factory=dict)
    linked: dict[Path, int] = field(default_factory=dict)
    inner: dict[Path, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(self.copied.values())


def is_held() -> bool:
    """Whether the kernel keeps programs from writing through links."""
    return bool(fence_version()) or asks_guardian()


def survey(root: Path, link_over: int = LINK_OVER) -> Survey:
    """What a scratch copy of `root` takes, without version control, virtual environments and what towermigrate keeps.

    Args:
        link_over: larger files (bytes) are linked, where that is safe.
    """
    found, held, top = Survey(), is_held(), root.resolve()
    for folder, folders, files in os.walk(root):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        here = Path(folder)
        found.folders.append(here)
        for path in (here / name for name in sorted(files) + folders):
            if path.is_symlink():
                _survey_link(path, top, found, held)
            elif path.is_file():
                size = path.stat().st_size
                linked = held and (size > link_over or not os.access(path, os.R_OK))
                (found.linked if linked else found.copied)[path] = size
    return found


def _survey_link(path: Path, top: Path, found: Survey, held: bool) -> None:
    said = os.readlink(path)
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):  # it points to nothing, or to itself
        found.inner[path] = said
        return
    parts = real.relative_to(top).parts if real.is_relative_to(top) else None
    if parts is not None and not _SKIPPED & set(parts):
        where = path.parent.resolve()
        found.inner[path] = os.path.relpath(real, where) if os.path.isabs(said) else said
    elif held or not (real.is_file() or real.is_dir()):
        found.linked[path] = _size(real)
    else:
        found.copied[path] = _size(real) if real.is_file() else sum(map(_size, _files(real)))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        yield from (Path(where, name) for name in names)


def copy_files(root: Path, target: Path, link_over: int = LINK_OVER) -> None:
    """Make `target` a scratch copy of `root`, with links to what is beside `root` next to it where that is safe."""
    found = survey(root, link_over)
    target.mkdir(parents=True)
    for folder in found.folders:
        (target / folder.relative_to(root)).mkdir(exist_ok=True)
    for path in found.copied:
        copied = target / path.relative_to(root)
        if path.is_dir():
            shutil.copytree(path, copied, symlinks=True)
        else:
            copy_file(path, copied)
    for path in found.linked:
        (target / path.relative_to(root)).symlink_to(path.resolve())
    for path, said in found.inner.items():
        (target / path.relative_to(root)).symlink_to(said)
    if is_held():
        _link_beside(root.resolve(), target)


def _link_beside(root: Path, target: Path) -> None:
    """So that `../data` is found from within the copy."""
    with contextlib.suppress(OSError):
        for path in sorted(root.parent.iterdir())[:_MOST_BESIDE]:
            beside = target.parent / path.name
            if path != root and not os.path.lexists(beside):
                beside.symlink_to(path)


def copy_file(path: Path, target: Path) -> None:
    """A copy with the file's mode and times; its blocks are shared where the file system can."""
    if not clone(path, target):
        shutil.copy2(path, target)
    else:
        shutil.copystat(path, target)


def clone(path: Path, target: Path) -> bool:
    """Make `target` a copy-on-write copy of `path`; False where the file system cannot, and nothing is there."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with path.open("rb") as read, target.open("xb") as written:
            fcntl.ioctl(written.fileno(), _CLONE, read.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def check_size(
    root: Path,
    scratch: Path,
    link_over: int,
    max_copy: int,
    progress: Callable[[str], None],
    workers: int = 1,
) -> None:
    """Say how much will be copied, before it is.

    Args:
        workers: how many processes the rewritten program has, each with a copy of its own.

    Raises:
        TooLarge: it is more than `max_copy` bytes, or than there is space for.
    """
    found = survey(root, link_over)
    size, free = found.size, shutil.disk_usage(scratch).free
    shared = _clones(found, scratch)
    said = f"the scratch copy of each run: {in_words(size)} in {len(found.copied)} files"
    if shared:
        said += ", sharing their blocks with the original ones until they are written"
    if found.linked:
        said += (
            f"; {in_words(sum(found.linked.values()))} in {len(found.linked)} large or outside files and folders are "
            "linked, read-only"
        )
    progress(said)
    if shared:
        return
    largest = ", ".join(
        f"{path.relative_to(root)} ({in_words(each)})"
        for path, each in sorted(found.copied.items(), key=lambda item: -item[1])[:3]
    )
    why = (
        ""
        if is_held()
        else " (this system cannot keep programs from writing through links, so nothing is linked)"
    )
    ways = (
        f"The largest are {largest}{why}. Leave data out of the tree and pass its absolute path to the program "
        "(arguments after --), or "
    )
    if size > max_copy:
        raise TooLarge(
            f"The scratch copy of each run would be {in_words(size)}, and the limit is {in_words(max_copy)}. {ways}allow it "
            f"with --max-copy {in_words(size, option=True)}."
        )
    copies = _LEAST_RUNS - 1 + workers
    if size * copies + _MARGIN > free:
        raise TooLarge(
            f"{copies} scratch copies or more of {in_words(size)} each do not fit where temporary files are: "
            f"{scratch.parent} has {in_words(free)} left. {ways}name another place with TMPDIR."
        )


def _clones(found: Survey, scratch: Path) -> bool:
    """Whether the tree's files can share their blocks with their copies."""
    first = next((path for path, size in found.copied.items() if size and path.is_file()), None)
    if first is None:
        return False
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        return clone(first, Path(folder, "clone"))


def in_words(size: int, *, option: bool = False) -> str:
    """Bytes as people say them; `option`: as an option takes them, rounded up."""
    for unit, much in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size >= much:
            return f"{-(-size // much)}{unit}" if option else f"{size / much:.1f} {unit}iB"
    return f"{size}" if option else f"{size} bytes"


def parse_size(text: str) -> int:
    """Bytes from `500M`, `20G` or a plain number.

    Raises:
        ValueError: it is no size.
    """
    units = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    plain = text.strip().upper().removesuffix("B").removesuffix("I").strip()
    factor = units.get(plain[-1:], 0)
    size = float(plain[:-1] if factor else plain) * (factor or 1)
    if not 0 <= size < float("inf"):
        raise ValueError(text)
    return int(size)


def no_space(error: OSError, scratch: Path) -> str | None:
    """What to say where copying or recording found no space; None where that is not what went wrong."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    free = shutil.disk_usage(scratch).free if scratch.exists() else 0
    return (
        f"There is no space left for scratch copies and recordings: {scratch.parent} has {in_words(free)}. Name "
        "another place with TMPDIR, or compare fewer steps with --steps."
    )


def remove_scratch(folder: Path) -> None:
    """Remove a scratch folder, whatever modes a program gave to what is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for where, folders, _ in os.walk(folder):
        for name in [".", *folders]:
            with contextlib.suppress(OSError):
                if not os.path.islink(os.path.join(where, name)):
                    os.chmod(os.path.join(where, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
