"""Compare what stands in the files that both programs wrote: arrays, text, pickles (never loaded), other bytes.

The measure are the original's own two runs. What cannot be compared is named, and why.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from towermigrate.verify.lines_compare import (
    cut,
    normalised,
    open_lines,
    too_many_flips,
    unlike,
    without,
)
from towermigrate.verify.trace import Array, Trace

# The arrays of one file take no more memory than this (bytes).
_MOST = 256 * 2**20
# The largest number of arrays of programs may be off by this part of it, as in checkpoints.
SAVED = 1e-3
# Opcodes that only say where a pickle keeps what it has already read, which is another place in another version.
_NO_VALUE = {
    "PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET", "MARK", "STOP",
}  # fmt: skip
_NEWER_NAMES = {"numpy._core": "numpy.core"}


@dataclass(frozen=True)
class Unequal:
    """A file that holds something else, and both in words."""

    name: str
    expected: str
    actual: str


@dataclass(frozen=True)
class Closeness:
    """How close what two programs wrote is to be.

    `within` is how far numbers may be off, relative to them, None where roundings were excused that leave them open;
    `drift` how far apart the programs' numbers are; `bitwise` whether they are the same to the last bit, so that files
    that cannot be read are to be the same too. `moved` are recordings of the original when its weights moved by roundings:
    where roundings were excused, they say how far printed numbers may be off. `saved` is how far a tensor of a checkpoint
    may be off, of its largest number. `clock` is how long the original ran (seconds), 0 where it never asks
    how late it is.
    """

    within: float | None
    drift: float
    bitwise: bool = False
    moved: Sequence[Trace] = ()
    saved: float = SAVED
    clock: float = math.inf


# Which files hold something else, and which were not compared.
FilesCompared = tuple[list[Unequal], list[str]]


def file_differences(first: Trace, second: Trace, made: Trace, close: Closeness) -> FilesCompared:
    """Which files hold something else, and which were not compared."""
    wanted, again, ours = (trace.meta.get("contents", {}) for trace in (first, second, made))
    # Another Python pickles and compresses otherwise.
    same_python = _version(first) == _version(made)
    found: list[Unequal] = []
    left: list[str] = []
    for name in sorted(wanted):
        if name not in again or name not in ours:
            continue  # told by its name
        numbers = [each[name] for each in (wanted, again, ours)]
        why = next((each for each in numbers if isinstance(each, str)), None)
        if why is not None:
            left.append(f"what the file {name} holds: {why}")
            continue
        texts = [
            (trace.folder / "written" / f"{number:05d}").read_bytes()
            for trace, number in zip((first, second, made), numbers, strict=True)
        ]
        outcome = _compared(name, texts, (first, second, made), close, same_python)
        if isinstance(outcome, Unequal):
            found.append(outcome)
        elif outcome is not None:
            left.append(f"what the file {name} holds: {outcome}")
    return found, left


def _version(trace: Trace) -> list[str]:
    return str(trace.meta.get("python", "")).split(".")[:2]


def _compared(
    name: str,
    data: list[bytes],
    traces: tuple[Trace, Trace, Trace],
    close: Closeness,
    same_python: bool,
) -> Unequal | str | None:
    """What is unequal, why it was not compared, or None where the files are alike."""
    if data[0] == data[1] == data[2]:
        return None
    arrays = [_arrays(each) for each in data]
    if None not in arrays:
        return _of_arrays(name, [each for each in arrays if each is not None], close)
    lines = [_lines(each, trace) for each, trace in zip(data, traces, strict=True)]
    if None not in lines:
        return _of_lines(name, [each for each in lines if each is not None], close)
    pickles = [_pickled(each) for each in data]
    if None not in pickles:
        protocols = [each[1] for each in data]  # behind the opcode that says it is one
        if same_python and protocols[0] == protocols[1] != protocols[2]:
            theirs, ours = (f"a pickle of protocol {protocols[k]}" for k in (0, 2))
            return Unequal(name, theirs, ours)
        said = _of_pickles(name, [each for each in pickles if each is not None], close)
        return "another Python writes it" if said is not None and not same_python else said
    if data[0] != data[1]:
        return "two runs of the original write other bytes"
    if not close.bitwise or not same_python:
        return "other bytes, as roundings or another version make them too"
    return Unequal(name, f"{len(data[0])} bytes", f"{len(data[2])} bytes, other ones")


# ---- text ----------------------------------------------------------------------------------------


def _lines(data: bytes, trace: Trace) -> list[str] | None:
    """The lines of a text file, without those of libraries' log records; None where it is no text."""
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    noise = tuple(trace.meta.get("of_libraries", ()))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [normalised(line, trace.day) for line in lines if not (noise and line.endswith(noise))]


def _of_lines(name: str, lines: list[list[str]], close: Closeness) -> Unequal | str | None:
    wanted, again, made = lines
    places = open_lines(wanted, again)
    if places is None:
        return "two runs of the original write other lines"
    lines = [without(each, places) for each in lines]
    said = unlike(*lines, within=close.within, drift=close.drift, clock=close.clock)
    if said is None:
        return (
            f"{len(places)} lines: two runs of the original write other words" if places else None
        )
    where = f"line {said.line}: "
    theirs, ours = cut(said.expected, said.actual)
    return Unequal(name, where + theirs, where + ours)


# ---- arrays --------------------------------------------------------------------------------------


def _arrays(data: bytes) -> dict[str, Array] | None:
    """The arrays of a `.npy` or `.npz` file; None where it is none, or holds objects."""
    try:
        if data.startswith(b"\x93NUMPY"):
            return {"": np.load(io.BytesIO(data), allow_pickle=False)}
        if not data.startswith(b"PK"):
            return None
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            size = sum(each.file_size for each in members)
            if size > _MOST or not all(each.filename.endswith(".npy") for each in members):
                return None
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            return {key: loaded[key] for key in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError):
        return None


def _of_arrays(name: str, files: list[dict[str, Array]], close: Closeness) -> Unequal | str | None:
    wanted, again, made = files
    if wanted.keys() != again.keys():
        return "two runs of the original write other arrays"
    if wanted.keys() != made.keys():
        said = [", ".join(sorted(each)) for each in (wanted, made)]
        return Unequal(name, f"arrays {said[0]}", f"arrays {said[1]}")
    open_arrays = []
    for key, array in wanted.items():
        what = f"array {key}: " if key else ""
        one, other = again[key], made[key]
        if array.shape != one.shape or array.dtype != one.dtype:
            open_arrays.append(key)
        elif array.shape != other.shape or array.dtype.str[1:] != other.dtype.str[1:]:
            sizes = [f"{what}{each.dtype}{list(each.shape)}" for each in (array, other)]
            return Unequal(name, *sizes)
        else:
            at = _far(array, one, other, close.within)
            if at is not None and _only_flipped(array, one, other, close):
                continue
            if at is not None:
                return Unequal(name, f"{what}{array.ravel()[at]}", f"{what}{other.ravel()[at]}")
    if open_arrays:
        return f"two runs of the original write other shapes of {', '.join(open_arrays[:3])}"
    return None


def _far(wanted: Array, again: Array, made: Array, within: float | None) -> int | None:
    """The first place where an array is too far off, but for those where two originals differ; None if there is none."""
    flat, other = wanted.ravel(), made.ravel()
    if wanted.dtype.kind not in "fc":
        off = (flat != other) & (flat == again.ravel())
    elif within is None:
        return None
    else:
        finite = np.isfinite(flat)
        size = float(np.abs(flat[finite]).max(initial=0.0))
        settled = (flat == again.ravel()) | (~finite & ~np.isfinite(again.ravel()))
        with np.errstate(invalid="ignore"):
            # An array of columns of several sizes: each number by its own, or by that of the largest.
            apart = np.abs(flat - other) > within * np.maximum(np.abs(flat), SAVED * size)
        off = settled & ((finite & (apart | ~np.isfinite(other))) | (~finite & np.isfinite(other)))
    places = np.flatnonzero(off)
    return int(places[0]) if places.size else None


def _only_flipped(wanted: Array, again: Array, made: Array, close: Closeness) -> bool:
    """Whether whole numbers are off by one in places, as those are that numbers with roundings are cut to (the points of a picture).

    A number that is off by a part d of it is cut to another one in `d * number` of all cases.
    """
    if close.bitwise or wanted.dtype.kind not in "iuf" or wanted.size == 0:
        return False
    theirs, others, ours = (each.astype(np.float64).ravel() for each in (wanted, again, made))
    if not all(np.array_equal(each, np.rint(each)) for each in (theirs, others, ours)):
        return False
    off = (ours - theirs)[theirs == others]
    if np.abs(off).max(initial=0.0) > 1:
        return False
    flips = off[off != 0]
    expected = len(off) * min(1.0, close.drift * float(np.abs(theirs).max()))
    return not too_many_flips(flips.tolist(), expected)


# ---- pickles -------------------------------------------------------------------------------------


def _pickled(data: bytes) -> list[tuple[str, Any]] | None:
    """What a pickle is built of, read without building it; None where it is no pickle."""
    if not data.startswith(b"\x80"):
        return None
    try:
        return [
            (opcode.name, argument)
            for opcode, argument, _ in pickletools.genops(data)
            if opcode.name not in _NO_VALUE
        ]
    except Exception:  # pickletools raises what its readers run into
        return None


def _of_pickles(
    name: str, pickles: list[list[tuple[str, Any]]], close: Closeness
) -> Unequal | str | None:
    wanted, again, made = pickles
    if [each[0] for each in wanted] != [each[0] for each in again]:
        return "two runs of the original write other objects"
    if [each[0] for each in wanted] != [each[0] for each in made]:
        return Unequal(name, f"{len(wanted)} values", f"other values, {len(made)}")
    # The types of arrays stand in a pickle as text.
    kinds = [f"<{kind}" for kind in ("f4", "f8") if any(each[1] == kind for each in wanted)]
    for (_, one), (_, two), (_, other) in zip(wanted, again, made, strict=True):
        if one == two and not _same_value(one, other, close.within, kinds):
            return Unequal(name, str(one)[:100], str(other)[:100])
    return None


def _same_value(wanted: Any, made: Any, within: float | None, kinds: list[str]) -> bool:
    if wanted == made:
        return True
    if isinstance(wanted, float) and isinstance(made, float):
        if within is None or (wanted != wanted and made != made):
            return True
        return abs(wanted - made) <= within * max(abs(wanted), abs(made))
    if isinstance(wanted, str) and isinstance(made, str):
        for new, old in _NEWER_NAMES.items():
            wanted, made = wanted.replace(new, old), made.replace(new, old)
        return bool(wanted == made)
    if isinstance(wanted, bytes) and isinstance(made, bytes) and len(wanted) == len(made):
        return any(_same_numbers(wanted, made, kind, within) for kind in kinds)
    return False


def _same_numbers(wanted: bytes, made: bytes, kind: str, within: float | None) -> bool:
    """Whether bytes are the same numbers of a type, but for roundings."""
    if not wanted or len(wanted) % np.dtype(kind).itemsize:
        return False
    one, other = (np.frombuffer(each, kind).astype(np.float64) for each in (wanted, made))
    # Of another type, bytes make sizes that no program computes with.
    usual = np.isfinite(one) & ((one == 0) | ((np.abs(one) > 1e-20) & (np.abs(one) < 1e20)))
    if not usual.all():
        return False
    return _far(one, one, other, within) is None
