"""Write to a source tree: atomically, with the originals kept, and undo.

How a rewrite is written, so that whatever happens in between (a kill, a full disk, an editor) every file holds
its old bytes or its new ones, and `undo` finds the old ones: the originals go to `.towermigrate/originals`, the
new files to `.towermigrate/new`, then the manifest says what is to be expected, and only then the new files are
renamed over the old ones, each after a last look at what it replaces. `undo` goes the same way back. A run that
was killed leaves nothing behind but in `.towermigrate`, and the next run clears that up.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import posixpath
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towermigrate.listing import COPY_MARK, STATE, python_files
from towermigrate.project import ProjectError, decode

_ORIGINALS, _EARLIER, _NEW = "originals", "earlier", "new"


def write_atomically(
    path: Path, raw: bytes, mode: int | None = None, *, scratch: Path | None = None
) -> None:
    """Write `raw` so that a reader, or a killed process, sees the old bytes or the new ones, never a mix.

    Args:
        path: the file; its folder must exist. An existing file keeps its mode unless `mode` is given.
        raw: all bytes of the file.
        mode: permission bits of the file.
        scratch: the folder for the temporary file, on the same file system; by default that of `path`.
    """
    if mode is None:
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=scratch or path.parent, prefix=f"{STATE}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        _replace(Path(name), path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync([path.parent])


def _replace(fresh: Path, target: Path) -> None:
    try:
        os.replace(fresh, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Another file system is mounted inside the tree.
        write_atomically(target, fresh.read_bytes(), fresh.stat().st_mode & 0o7777)
        fresh.unlink()


def _sync(paths: Iterable[Path]) -> None:
    """Let the disk have what was written to files, and what was renamed in folders."""

    def sync(some: Iterable[Path]) -> None:
        for path in some:
            try:
                handle = os.open(path, os.O_RDONLY)
            except OSError:  # Windows does not open folders
                continue
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    every = list(paths)
    # The disk takes many at once in a tenth of the time that it takes for one after the other.
    at_once = min(len(every), 16)
    if at_once < 2:
        return sync(every)
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(sync, (every[number::at_once] for number in range(at_once))))


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _inside(root: Path, paths: Iterable[str]) -> dict[str, Path]:
    """The files that `paths` name under `root`; raises ProjectError where one is no file, or a link is in the way.

    Neither may it lead to another place of the tree: an original would be written over a file.
    """
    top = os.path.realpath(root)
    folders: dict[str, bool] = {}
    targets: dict[str, Path] = {}
    for path in paths:
        target = root / path
        folder = posixpath.dirname(path)
        if folder not in folders:
            plain = os.path.normpath(os.path.join(top, folder))
            straight = os.path.normcase(os.path.realpath(plain)) == os.path.normcase(plain)
            folders[folder] = straight and os.path.commonpath([plain, top]) == top
        try:
            kind = os.lstat(target).st_mode
        except (FileNotFoundError, NotADirectoryError):
            kind = stat.S_IFREG
        if stat.S_ISLNK(kind) or not folders[folder]:
            raise ProjectError(
                f"{target}: is a link, leads out of {root} or is reached by a link; it was not touched"
            )
        if not stat.S_ISREG(kind):
            raise ProjectError(f"{target}: is not a regular file; it was not touched")
        targets[path] = target
    return targets


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep a second towermigrate from writing in `root` meanwhile. The lock ends with the process."""
    if sys.platform == "win32":  # cannot lock a folder: there the last look before a rename is all
        yield
        return
    import fcntl

    handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProjectError(
                f"{root}: another towermigrate is writing there; run this again when it has finished"
            ) from None
        except OSError:  # a network file system without locks
            pass
        yield
    finally:
        os.close(handle)


def _manifest(root: Path) -> dict[str, dict[str, str]]:
    """What was rewritten, by path: digests of the original (`before`) and of what replaced it (`after`), and the
    original's `mode`. While a file that was rewritten before is rewritten again, `until` is what stands there."""
    path = root / STATE / "manifest.json"
    if not path.exists():
        return {}
    try:
        loaded: Any = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, dict[str, str]] = loaded["files"]
        return {str(name): dict(entry) for name, entry in files.items()}
    except (ValueError, KeyError, AttributeError, TypeError, OSError) as error:
        raise ProjectError(
            f"{path}: cannot be read ({error}); the originals are in {path.parent / _ORIGINALS}"
        ) from error


def _write_manifest(root: Path, files: Mapping[str, Mapping[str, str]]) -> None:
    text = json.dumps({"version": 1, "files": files}, indent=1, sort_keys=True) + "\n"
    state = root / STATE
    write_atomically(state / "manifest.json", text.encode(), scratch=state / _NEW)


def _is_ours(entry: Mapping[str, str], raw: bytes) -> bool:
    """Whether a rewrite wrote these bytes, so that nothing of the user's is in them."""
    return _digest(raw) in (entry["after"], entry.get("until"))


def _original(root: Path, path: str, entry: Mapping[str, str]) -> bytes:
    """The bytes of a file before its first rewrite; raises ProjectError where they are not there any more."""
    kept = root / STATE / _ORIGINALS / path
    # A run that was killed while it exchanged one original for another left the first one here.
    spare = root / STATE / _EARLIER / _earlier_name(path, entry["before"])
    for candidate in (kept, spare):
        try:
            raw = candidate.read_bytes() if candidate.is_file() or candidate == kept else b""
        except OSError as error:
            raise ProjectError(f"{kept}: the original cannot be read: {error.strerror}") from error
        if _digest(raw) == entry["before"]:
            return raw
    raise ProjectError(f"{kept}: is not the original of {path} any more (its checksum differs)")


def _earlier_name(path: str, digest: str) -> str:
    """Where in `earlier/` a form of a file is kept, within the 255 bytes that a name may have."""
    folder, _, name = path.rpartition("/")
    short = os.fsdecode(os.fsencode(name)[:240])
    return f"{folder}/{short}.{digest[:12]}" if folder else f"{short}.{digest[:12]}"


def _keep(root: Path, staged: Mapping[str, Path]) -> None:
    """Rename staged files to their places, relative to `.towermigrate`."""
    targets = _inside(root, [f"{STATE}/{path}" for path in staged]).values()
    for folder in {target.parent for target in targets}:
        folder.mkdir(parents=True, exist_ok=True)
    for fresh, target in zip(staged.values(), targets, strict=True):
        os.replace(fresh, target)
    _sync({target.parent for target in targets})


def _earlier(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Forms of files, by the path relative to `.towermigrate` where they are kept."""
    return {
        f"{_EARLIER}/{_earlier_name(path, _digest(raw))}": raw for path, raw in contents.items()
    }


def _keep_earlier(root: Path, contents: Mapping[str, bytes]) -> None:
    kept = _earlier(contents)
    _keep(root, dict(zip(kept, _stage(root, kept.values()), strict=True)))


def _link_in(state: Path) -> Path | None:
    """What of `.towermigrate` is a link: behind it is nothing of ours to write or to remove."""
    parts = (state, *(state / part for part in (_ORIGINALS, _EARLIER, _NEW)))
    return next((part for part in parts if part.is_symlink()), None)


def _open_state(root: Path) -> None:
    """Make the folder that keeps the originals where it is not there, and an empty `new` in it."""
    state = root / STATE
    link = _link_in(state)
    if link is not None:
        raise ProjectError(f"{link}: is a link; remove it, originals are kept inside the tree only")
    shutil.rmtree(state / _NEW, ignore_errors=True)
    state.mkdir(parents=True, exist_ok=True)
    (state / _NEW).mkdir(mode=0o700)  # until they have the modes of what they replace
    if not (state / ".gitignore").exists():
        write_atomically(state / ".gitignore", b"*\n", scratch=state / _NEW)


def _close_state(root: Path) -> None:
    """Remove what no rewrite needs any more, the folder itself where nothing is kept in it.

    An original that the manifest does not name goes only where the tree's file holds the same bytes.
    """
    state = root / STATE
    if not state.is_dir() or _link_in(state) is not None:
        return
    files = _manifest(root)
    shutil.rmtree(state / _NEW, ignore_errors=True)
    for folder, _, names in os.walk(state / _ORIGINALS, topdown=False):
        for kept in (Path(folder, name) for name in names):
            path = kept.relative_to(state / _ORIGINALS).as_posix()
            there = root / path
            if path in files or there.is_symlink() or not there.is_file():
                continue
            if there.read_bytes() == kept.read_bytes():
                kept.unlink()
        if not os.listdir(folder):
            os.rmdir(folder)
    if not files and not (state / _ORIGINALS).exists():
        (state / "manifest.json").unlink(missing_ok=True)
        if not (state / _EARLIER).exists() and not (root / COPY_MARK).exists():
            shutil.rmtree(state, ignore_errors=True)


def _check_writable(targets: Iterable[Path]) -> None:
    """Raises ProjectError, naming them all, where files or their folders are read-only."""
    locked: list[str] = []
    for target in targets:
        # The superuser may write to any file; one that was made read-only was made so for a reason.
        if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
            locked.append(f"{target}: is read-only")
        elif target.parent.exists() and not os.access(target.parent, os.W_OK | os.X_OK):
            locked.append(f"{target}: its folder is read-only")
    if locked:
        raise ProjectError(
            f"{'; '.join(locked)}. Nothing was changed: make it writable, or leave it out"
        )


def _stage(root: Path, contents: Iterable[bytes]) -> list[Path]:
    """Write files to `.towermigrate/new` and on to the disk."""
    folder = root / STATE / _NEW
    staged: list[Path] = []
    for number, raw in enumerate(contents, start=len(os.listdir(folder))):
        fresh = folder / str(number)
        fresh.write_bytes(raw)
        staged.append(fresh)
    # All are written before the first is synced: what takes that one to the disk takes the others along.
    _sync(staged)
    return staged


def _exchange(
    root: Path,
    staged: Mapping[str, Path],
    expected: Mapping[str, bytes | None],
    modes: Mapping[str, int],
) -> None:
    """Rename staged files over those of the tree, which must hold what is expected to the last moment.

    They take the mode and owner of what they replace; where nothing is there, `modes` tells.
    """
    targets = _inside(root, staged)
    for path, fresh in staged.items():
        target = targets[path]
        if target.exists():
            there = target.stat()
            fresh.chmod(there.st_mode & 0o7777)
            if sys.platform != "win32" and os.geteuid() == 0:
                os.chown(fresh, there.st_uid, there.st_gid)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.chmod(modes[path])
        if _now(target) != expected[path]:
            raise ProjectError(
                f"{target}: was edited meanwhile and left alone; files before it were written. Run it again"
            )
        _replace(fresh, target)
    _sync({(root / path).parent for path in staged})


def _now(target: Path) -> bytes | None:
    return target.read_bytes() if target.exists() else None


def save(
    root: Path,
    changes: Mapping[str, bytes],
    expected: Mapping[str, bytes],
    *,
    keep_first: bool = False,
) -> None:
    """Write a rewrite: originals first, then the manifest, then each file.

    Args:
        root: the tree.
        changes: new bytes by relative path.
        expected: the bytes each file must still have; raises ProjectError, before anything is written,
            where one was edited since it was read, or is read-only.
        keep_first: a file that was edited since it was rewritten keeps its first original, and `undo` goes on
            to call it edited.

    A file that was rewritten before keeps its first original. One that was edited since then gets its edited
    form as the original, and the earlier original moves to `.towermigrate/earlier/`.
    """
    if changes:
        with _alone(root):
            _save(root, changes, expected, keep_first)


def _save(
    root: Path, changes: Mapping[str, bytes], expected: Mapping[str, bytes], keep_first: bool
) -> None:
    for path, target in _inside(root, changes).items():
        if _now(target) != expected[path]:
            raise ProjectError(f"{target}: was edited while towermigrate read it; run it again")
    _check_writable(root / path for path in changes)
    files = _manifest(root)
    first: dict[str, bytes] = {}
    earlier: dict[str, bytes] = {}
    for path, raw in changes.items():
        old, entry = expected[path], files.get(path)
        if entry is not None and _is_ours(entry, old):
            entry.update(after=_digest(raw), until=_digest(old))
            continue
        if entry is not None and entry["before"] != _digest(old):
            if keep_first:
                continue
            earlier[path] = _original(root, path, entry)
        first[path] = old
        mode = (root / path).stat().st_mode & 0o7777
        files[path] = {"before": _digest(old), "after": _digest(raw), "mode": f"{mode:o}"}
    try:
        _open_state(root)
        kept = {**_earlier(earlier), **{f"{_ORIGINALS}/{path}": raw for path, raw in first.items()}}
        fresh = _stage(root, [*kept.values(), *changes.values()])
        for path, original in zip(first, fresh[len(earlier) : len(kept)], strict=True):
            if not int(files[path]["mode"], 8) & 0o044:
                original.chmod(0o600)  # what only its owner may read
        _keep(root, dict(zip(kept, fresh[: len(kept)], strict=True)))
        staged = dict(zip(changes, fresh[len(kept) :], strict=True))
        _write_manifest(root, files)
        _exchange(root, staged, expected, {})
    finally:
        _close_state(root)


def write_own(root: Path, files: Mapping[str, bytes | None], keep: Collection[str] = ()) -> None:
    """Write files that are towermigrate's own, not the user's; None removes one.

    What the files in `keep` hold goes to `.towermigrate/earlier/` first. Raises ProjectError, before anything
    is written, where a link leads out of the tree.
    """
    targets = _inside(root, files)
    _check_writable(targets.values())
    with _alone(root):
        try:
            _open_state(root)
            _keep_earlier(root, {path: targets[path].read_bytes() for path in keep})
            for path, new in files.items():
                if new is None:
                    targets[path].unlink()
                else:
                    targets[path].parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(targets[path], new, scratch=root / STATE / _NEW)
        finally:
            _close_state(root)


def rewritten_in(root: Path, path: str) -> Path:
    """The folder whose `.towermigrate` holds the original of `root / path`; `root` where none does."""
    target = (root / path).resolve()
    for folder in target.parents:
        if (folder / STATE / "manifest.json").exists():
            if target.relative_to(folder).as_posix() in _manifest(folder):
                return folder
    return root


def originals(root: Path) -> dict[str, bytes]:
    """The bytes each rewritten file had before, by relative path; empty where nothing was rewritten."""
    return {path: _original(root, path, entry) for path, entry in _manifest(root).items()}


def original_texts(root: Path) -> dict[str, str]:
    """`originals` as texts, line ends as they are, without byte order marks."""
    return {
        path: file.text
        for path, raw in originals(root).items()
        if (file := decode(path, raw)).text is not None
    }


@dataclass(frozen=True)
class Undone:
    """What `undo` did: files put back, and files it left alone because they were edited."""

    restored: tuple[str, ...]
    edited: tuple[str, ...]


def undo(
    root: Path, *, only: str | None = None, force: bool = False, dry_run: bool = False
) -> Undone:
    """Put the originals back, byte for byte; with `only`, that of this file.

    A file that was edited (or deleted) after the rewrite is left alone and named in the result; with `force`
    it is put back too, and its edited form is kept in `.towermigrate/earlier/`. With `dry_run` nothing is
    written, and the result says what would be.
    """
    if dry_run or not (root / STATE).is_dir():
        return _undo(root, only, force, dry_run=True)
    with _alone(root):
        return _undo(root, only, force, dry_run=False)


def _undo(root: Path, only: str | None, force: bool, dry_run: bool) -> Undone:
    files = _manifest(root)
    wanted: dict[str, bytes] = {}
    now: dict[str, bytes | None] = {}
    edited: list[str] = []
    left = dict(files)
    for path, target in _inside(root, [path for path in files if only in (None, path)]).items():
        entry = files[path]
        raw = _original(root, path, entry)
        now[path] = there = _now(target)
        if there == raw:
            del left[path]
        elif force or (there is not None and _is_ours(entry, there)):
            wanted[path] = raw
            del left[path]
        else:
            edited.append(path)
    done = Undone(tuple(wanted), tuple(edited))
    if dry_run:
        return done
    if not files:
        _close_state(root)  # of a run that was killed before it changed a file
        return done
    _check_writable(root / path for path in wanted)
    overwritten = {
        path: there
        for path in wanted
        if (there := now[path]) is not None and not _is_ours(files[path], there)
    }
    try:
        _open_state(root)
        _keep_earlier(root, overwritten)
        modes = {path: int(files[path].get("mode", "644"), 8) for path in wanted}
        staged = dict(zip(wanted, _stage(root, wanted.values()), strict=True))
        _exchange(root, staged, now, modes)
        _write_manifest(root, left)
    finally:
        _close_state(root)
    return done


def write_copy(root: Path, out: Path, changes: Mapping[str, bytes]) -> None:
    """Write the tree's Python files to `out`, with `changes` applied; `root` is not touched.

    `out` gets the originals of what changed too, so `verify` and `undo` work there. Raises ProjectError,
    before anything is written, where a file of another content is there already.
    """
    if out.resolve() == root.resolve():
        raise ProjectError(f"{out}: is the tree itself; give --out another folder")
    # What .gitignore names comes along: a program may import what was generated.
    paths = {*python_files(root, vendored=True, gitignore=False), *changes}
    copies = {path: (root / path).read_bytes() for path in paths}
    fresh = {**copies, **changes}
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        for path, target in _inside(out, fresh).items():
            if _now(target) not in (None, fresh[path], copies[path]):
                raise ProjectError(
                    f"{target}: exists with other content; give --out an empty folder"
                )
        try:
            _open_state(out)
            write_atomically(out / COPY_MARK, b"", scratch=out / STATE / _NEW)
            for path, raw in copies.items():
                target = out / path
                target.parent.mkdir(parents=True, exist_ok=True)
                mode = (root / path).stat().st_mode & 0o7777
                write_atomically(target, raw, mode, scratch=out / STATE / _NEW)
        finally:
            _close_state(out)
        if changes:
            _save(out, changes, {path: copies[path] for path in changes}, keep_first=False)
