"""A source tree on disk: find its TensorFlow files, read, write atomically, keep originals, undo."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towermigrate.findings import Finding

STATE = ".towermigrate"
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_NEEDLE = b"tensorflow"


class ProjectError(Exception):
    """Something on disk is not as it must be; the text says which file, what was found and what to do."""


@dataclass(frozen=True)
class SourceFile:
    """One file that mentions TensorFlow.

    `text` keeps its line ends and has no byte order mark; it is None where `problem` says why the bytes
    could not be read as text. `encoding` writes it back, byte order mark included.
    """

    path: str
    raw: bytes
    text: str | None
    encoding: str = "utf-8"
    problem: Finding | None = None

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file; raises UnicodeEncodeError where its encoding lacks a character."""
        return text.encode(self.encoding)


def python_files(root: Path) -> Iterator[str]:
    """Paths of the Python files under `root`, relative to it with forward slashes, sorted.

    Hidden folders, virtual environments, caches and `node_modules` are skipped, and so is every symlink:
    a link inside the tree leads to a file that is found anyway, one that leads out is not ours to write.
    """
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = sorted(
            name
            for name in names
            if not name.startswith(".")
            and name not in _SKIPPED
            and not (here / name / "pyvenv.cfg").exists()
            and not (here / name).is_symlink()
        )
        for name in sorted(files):
            if name.endswith(".py") and not (here / name).is_symlink():
                yield (here / name).relative_to(root).as_posix()


def decode(path: str, raw: bytes) -> SourceFile:
    """Read bytes as Python does: PEP 263 cookie, byte order mark, else UTF-8. Line ends stay as they are."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
        if text.encode(encoding) != raw:
            raise UnicodeError(f"writing it back as {encoding} would change bytes")
    except (SyntaxError, UnicodeError, LookupError) as error:
        return SourceFile(path, raw, None, problem=Finding("TM102", path, 1, 0, str(error)))
    return SourceFile(path, raw, text, encoding)


def read_tree(root: Path) -> dict[str, SourceFile]:
    """Every Python file under `root` that contains the bytes `tensorflow`, by relative path."""
    found: dict[str, SourceFile] = {}
    for path in python_files(root):
        try:
            raw = (root / path).read_bytes()
        except OSError as error:
            problem = Finding("TM105", path, 1, 0, f"cannot be read: {error.strerror}")
            found[path] = SourceFile(path, b"", None, problem=problem)
            continue
        if _NEEDLE in raw:
            found[path] = decode(path, raw)
    return found


def write_atomically(path: Path, raw: bytes, mode: int | None = None) -> None:
    """Write `raw` so that a reader, or a killed process, sees the old bytes or the new ones, never a mix.

    Args:
        path: the file; its folder must exist. An existing file keeps its mode unless `mode` is given.
        raw: all bytes of the file.
        mode: permission bits of the file.
    """
    if mode is None:
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _inside(root: Path, path: str) -> Path:
    """The file `path` names under `root`; raises ProjectError where a link leads out of the tree."""
    target = root / path
    if target.is_symlink() or not target.resolve().is_relative_to(root.resolve()):
        raise ProjectError(f"{target}: leads out of {root}; it was not touched")
    return target


def _manifest(root: Path) -> dict[str, dict[str, str]]:
    path = root / STATE / "manifest.json"
    if not path.exists():
        return {}
    try:
        loaded: Any = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, dict[str, str]] = loaded["files"]
        return {str(name): dict(entry) for name, entry in files.items()}
    except (ValueError, KeyError, AttributeError, TypeError, OSError) as error:
        raise ProjectError(
            f"{path}: cannot be read ({error}); the originals are in {path.parent / 'originals'}"
        ) from error


def _write_manifest(root: Path, files: Mapping[str, Mapping[str, str]]) -> None:
    text = json.dumps({"version": 1, "files": files}, indent=1, sort_keys=True) + "\n"
    write_atomically(root / STATE / "manifest.json", text.encode())


def _keep(root: Path, path: str, raw: bytes, part: str) -> None:
    target = root / STATE / part / path
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, raw)


def save(root: Path, changes: Mapping[str, bytes], expected: Mapping[str, bytes]) -> None:
    """Write a rewrite: originals first, then the manifest, then each file.

    Args:
        root: the tree.
        changes: new bytes by relative path.
        expected: the bytes each file must still have; raises ProjectError, before anything is written,
            where one was edited since it was read.

    A file that was rewritten before keeps its first original. One that was edited since then gets its edited
    form as the original, and the earlier original moves to `.towermigrate/earlier/`.
    """
    if not changes:
        return
    for path in changes:
        if _inside(root, path).read_bytes() != expected[path]:
            raise ProjectError(
                f"{root / path}: was edited while towermigrate read it; run it again"
            )
    state = root / STATE
    if state.is_symlink():
        raise ProjectError(
            f"{state}: is a link; remove it, originals are kept inside the tree only"
        )
    state.mkdir(exist_ok=True)
    if not (state / ".gitignore").exists():
        write_atomically(state / ".gitignore", b"*\n")
    files = _manifest(root)
    for path, raw in changes.items():
        old = expected[path]
        entry = files.get(path)
        if entry is not None and entry["after"] == _digest(old):
            entry["after"] = _digest(raw)
            continue
        if entry is not None and entry["before"] != _digest(old):
            earlier = (state / "originals" / path).read_bytes()
            _keep(root, f"{path}.{entry['before'][:12]}", earlier, "earlier")
        _keep(root, path, old, "originals")
        files[path] = {"before": _digest(old), "after": _digest(raw)}
    _write_manifest(root, files)
    for path, raw in changes.items():
        write_atomically(root / path, raw)


def originals(root: Path) -> dict[str, bytes]:
    """The bytes each rewritten file had before, by relative path; empty where nothing was rewritten."""
    found: dict[str, bytes] = {}
    for path, entry in _manifest(root).items():
        kept = root / STATE / "originals" / path
        try:
            raw = kept.read_bytes()
        except OSError as error:
            raise ProjectError(f"{kept}: the original cannot be read: {error.strerror}") from error
        if _digest(raw) != entry["before"]:
            raise ProjectError(
                f"{kept}: is not the original of {path} any more (its checksum differs)"
            )
        found[path] = raw
    return found


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


def undo(root: Path, *, force: bool = False) -> Undone:
    """Put the originals back, byte for byte.

    A file that was edited (or deleted) after the rewrite is left alone and named in the result; with `force`
    it is put back too, and its edited form is kept in `.towermigrate/earlier/`.
    """
    kept = originals(root)
    files = _manifest(root)
    restored: list[str] = []
    edited: list[str] = []
    for path, raw in kept.items():
        target = _inside(root, path)
        now = target.read_bytes() if target.exists() else None
        if now == raw:
            files.pop(path)
            continue
        untouched = now is not None and _digest(now) == files[path]["after"]
        if not untouched and not force:
            edited.append(path)
            continue
        if not untouched and now is not None:
            _keep(root, f"{path}.{_digest(now)[:12]}", now, "earlier")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, raw)
        restored.append(path)
        files.pop(path)
    state = root / STATE
    if kept:
        _write_manifest(root, files)
        for path in kept.keys() - files.keys():
            (state / "originals" / path).unlink(missing_ok=True)
        if not files and not (state / "earlier").exists():
            shutil.rmtree(state)
    return Undone(tuple(restored), tuple(edited))


def write_copy(root: Path, out: Path, changes: Mapping[str, bytes]) -> None:
    """Write the tree's Python files to `out`, with `changes` applied; `root` is not touched.

    `out` gets the originals of what changed too, so `verify` and `undo` work there. Raises ProjectError,
    before anything is written, where a file of another content is there already.
    """
    copies = {path: (root / path).read_bytes() for path in python_files(root)}
    fresh = {**copies, **changes}
    for path, raw in fresh.items():
        target = out / path
        if target.exists() and target.read_bytes() not in (raw, copies[path]):
            raise ProjectError(f"{target}: exists with other content; give --out an empty folder")
    for path, raw in copies.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_inside(out, path), raw, (root / path).stat().st_mode & 0o7777)
    save(out, changes, {path: copies[path] for path in changes})
