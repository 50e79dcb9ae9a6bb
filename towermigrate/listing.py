"""The Python files of a tree, and what in it is left out and why."""

from __future__ import annotations

import os
import re
import stat
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from towermigrate.tree import HELPERS_COPY

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STATE = ".towermigrate"
COPY_MARK = f"{STATE}/copy"
"""Stands in a folder that `--out` wrote, which may be inside the tree that it is a copy of."""
NOTEBOOK = ".ipynb"

_NOT_SOURCES = frozenset(
    {"__pycache__", "__pypackages__", "node_modules", "site-packages", "dist-packages"}
)


@dataclass(frozen=True)
class LeftOut:
    """A file or folder (its path ends in a slash) that is not read, and the reason.

    `problem` is a link or special file that is not followed, `unreadable` a folder that cannot be read.
    """

    path: str
    reason: str
    problem: bool = False
    unreadable: bool = False

    @property
    def on_purpose(self) -> bool:
        """Whether it is no loss: other people's code, generated code, or named by a `.gitignore`."""
        return not (self.problem or self.unreadable)


@dataclass(frozen=True)
class Listing:
    """Paths relative to the tree's root with forward slashes, sorted."""

    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def python_files(root: Path, *, vendored: bool = False, gitignore: bool = True) -> tuple[str, ...]:
    """The files of `list_tree`."""
    return list_tree(root, vendored=vendored, gitignore=gitignore).files


def list_tree(
    root: Path,
    *,
    vendored: bool = False,
    gitignore: bool = True,
    suffixes: tuple[str, ...] = (".py",),
) -> Listing:
    """Find the Python files under `root`.

    Left out are hidden folders and caches (not worth a word, so not named), virtual environments, packages that
    were installed into the tree, what setuptools built beside a `setup.py` or `pyproject.toml`, and what a
    `.gitignore` names. Code that was copied into the tree, as in `third_party/`, is read like the rest: the
    programs import it, so it must run on TensorFlow 2 too. A link inside the tree leads to a file that is found
    anyway; one that leads out is not ours to write, and neither that nor a pipe or a device is opened.

    `.gitignore` files are read as git reads them, those above `root` up to the repository's too, without asking
    git: a tree that was exported from its repository gives the same files. Only where one of them names something
    is git asked whether it tracks it all the same: such a file is a part of the program and is found.

    Args:
        root: the tree.
        vendored: also find the helpers that `towermigrate vendor` copied into the tree.
        gitignore: leave out what `.gitignore` files name.
        suffixes: how the names of files end.
    """
    files: list[str] = []
    left_out: list[LeftOut] = []
    top = root.resolve()
    start = _prefix(top)
    tracked = _Tracked(top)
    todo = [("", _ignored_above(top) if gitignore else _Ignored())]
    while todo:
        folder, above = todo.pop()  # its path in the tree, with a slash at the end
        try:
            with os.scandir(top / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            left_out.append(LeftOut(folder, f"cannot be read: {error.strerror}", unreadable=True))
            continue
        names = {entry.name for entry in entries}
        ignored = above.and_those_of(top / folder) if ".gitignore" in names and gitignore else above
        for entry in entries:
            path = folder + entry.name
            fits = entry.name.endswith(suffixes)
            if entry.is_symlink():
                reason = _link(top / path, top, fits)
                if reason is not None:
                    left_out.append(LeftOut(path, reason, problem=True))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name.startswith(".") or entry.name in _NOT_SOURCES:
                    continue
                if entry.name == HELPERS_COPY and not vendored:
                    continue
                reason = _not_ours(top / path, names)
                if (
                    reason is None
                    and ignored.covers(f"{start}{path}/")
                    and not tracked.holds_below(f"{path}/", suffixes)
                ):
                    reason = "named by .gitignore"
                if reason is None:
                    todo.append((f"{path}/", ignored))
                else:
                    left_out.append(LeftOut(f"{path}/", reason))
            elif fits and not entry.is_file(follow_symlinks=False):
                left_out.append(LeftOut(path, "not a regular file", problem=True))
            elif fits and ignored.covers(start + path) and not tracked.holds(path):
                left_out.append(LeftOut(path, "named by .gitignore"))
            elif fits:
                files.append(path)
    return Listing(tuple(sorted(files)), tuple(sorted(left_out, key=lambda one: one.path)))


class _Tracked:
    """What git tracks of a tree although it is ignored. Git is asked when it matters, and once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _files(self) -> frozenset[str]:
        from towermigrate.git import tracked_though_ignored

        return tracked_though_ignored(self._root)

    def holds(self, path: str) -> bool:
        return path in self._files

    def holds_below(self, folder: str, suffixes: tuple[str, ...]) -> bool:
        """Whether a file that ends so is tracked in a folder, given with a slash at its end."""
        return any(path.startswith(folder) and path.endswith(suffixes) for path in self._files)


def _prefix(folder: Path) -> str:
    """What the paths of all that is in a folder begin with."""
    return folder.as_posix().rstrip("/") + "/"


def _link(link: Path, top: Path, fits: bool) -> str | None:
    """Why a link is worth a word: it leads out of the tree, or nowhere. None where it is not."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links that lead to each other
        return "a link that leads nowhere" if fits else None
    if target.is_relative_to(top) or not (fits or target.is_dir()):
        return None
    return f"a link that leads out of the tree, to {target}"


def _not_ours(folder: Path, beside: set[str]) -> str | None:
    """Why a folder holds other people's or generated code, None where it does not or cannot be read."""
    try:
        held = set(os.listdir(folder))
    except OSError:
        return None
    if held & {"pyvenv.cfg", "conda-meta"}:
        return "a virtual environment"
    if STATE in held and os.path.exists(folder / COPY_MARK):
        return "a copy that --out wrote"
    if folder.name == "build" and beside & {"setup.py", "pyproject.toml"}:
        if any(name == "lib" or name.startswith("lib.") for name in held):
            return "built by setuptools"
    return None


@dataclass(frozen=True)
class _Ignored:
    """The patterns of the `.gitignore` files that apply in a folder, each with its own folder, deepest last.

    Paths are whole here, with forward slashes; that of a folder has one at its end.
    """

    patterns: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def and_those_of(self, folder: Path, name: str = ".gitignore") -> _Ignored:
        file = folder / name
        try:
            if not stat.S_ISREG(file.lstat().st_mode):
                return self
            text = file.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return self
        return _Ignored((*self.patterns, (_prefix(folder), _patterns(text))))

    def covers(self, path: str) -> bool:
        for folder, patterns in reversed(self.patterns):
            if path == folder or not path.startswith(folder):
                continue  # of a folder, patterns in it say nothing
            found = patterns.check_file(path.removeprefix(folder)).include
            if found is not None:
                return found
        return False


def _patterns(text: str) -> GitIgnoreSpec:
    """The patterns of a file without those that cannot be read, which git passes over too."""
    from pathspec import GitIgnoreSpec

    good: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `re`, about a pattern that means what git means by it
        for line in text.removeprefix("\ufeff").splitlines():
            try:
                GitIgnoreSpec.from_lines([line])
            except (ValueError, re.error):
                continue
            good.append(line)
        return GitIgnoreSpec.from_lines(good)


def _ignored_above(root: Path) -> _Ignored:
    """What applies in `root` (resolved) from outside it: the repository's own patterns and folders in between."""
    above: list[Path] = []
    if not (root / ".git").exists():
        above = list(root.parents)
        repository = next((n for n, one in enumerate(above) if (one / ".git").exists()), None)
        if repository is None:
            return _Ignored()
        above = above[: repository + 1]
    top = above[-1] if above else root
    found = _Ignored()
    if (top / ".git/info/exclude").is_file():
        text = (top / ".git/info/exclude").read_text(encoding="utf-8", errors="surrogateescape")
        found = _Ignored(((_prefix(top), _patterns(text)),))
    for folder in reversed(above):
        found = found.and_those_of(folder)
    # A folder that is ignored itself, and was asked for by name, is read all the same.
    asked = any(
        found.covers(_prefix(one)) for one in (root, *root.parents) if one.is_relative_to(top) and one != top
    )  # fmt: skip
    return _Ignored() if asked else found
