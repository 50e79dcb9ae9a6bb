"""One file of arrays: a `.npz`, in which large arrays stand as they are in memory, so that a step does not wait for them.

A zip archive wants a checksum of all that it holds, which takes longer than to write it. So the archive holds the small
arrays, and `__large__.npy`, a text that says where each of the large ones is: between the last member and the archive's
directory, where archives may have anything. `numpy.load` opens the file, and gives the small ones and that text.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `dict[str, int]`.)

import json
import struct
import zipfile
from typing import Any, Dict, List

import numpy as np

LARGE = 2**20
"""Arrays of so many bytes are large: they are mapped, not read."""
_INDEX = "__large__"
_ALIGNED = 64
# The function as it is at the start: the program may replace it.
_open = open


def write_file(path: str, arrays: Dict[str, Any]) -> None:
    """Write arrays of plain types into a new file."""
    large = {k: v for k, v in arrays.items() if v.nbytes >= LARGE and v.dtype.kind in "fiubc"}
    parts: List[Any] = []
    index: List[Any] = []
    at = 0
    places = {key: place for place, key in enumerate(arrays)}
    for key, value in large.items():
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        part = np.ascontiguousarray(value.T if turned else value)
        parts.append(part)
        index.append([places[key], key, part.dtype.str, list(part.shape), bool(turned), at])
        at += -(-part.nbytes // _ALIGNED) * _ALIGNED
    small = {k: v for k, v in arrays.items() if k not in large}
    if large:
        small[_INDEX] = np.array(json.dumps(index))
    with _open(path, "wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for key, value in small.items():
                with archive.open(key + ".npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)
            begin = -(-file.tell() // _ALIGNED) * _ALIGNED
            for part, (*_, offset) in zip(parts, index):  # noqa: B905 (Python 3.6)
                file.seek(begin + offset)
                file.write(part.reshape(-1).view(np.uint8).data)
            archive.start_dir = file.tell()


def read_file(path: str) -> Dict[str, Any]:
    """The arrays of a file. Large ones are mapped; a change of them stays in this process.

    Raises:
        ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError: it is damaged.
    """
    with _open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        found = {
            member.filename[: -len(".npy")]: _read_member(path, file, archive, member)
            for member in archive.infolist()
        }
        if _INDEX not in found:
            return found
        index = json.loads(str(found.pop(_INDEX)))
        # Behind the last member, of which the local header has 30 bytes, then the lengths of a name and of extras.
        last = max(archive.infolist(), key=lambda member: member.header_offset)
        end = _begin_of(file, last) + last.compress_size
        begin = -(-end // _ALIGNED) * _ALIGNED
        items = list(found.items())
        for place, key, dtype, shape, turned, offset in index:
            mapped: Any = np.memmap(
                path, dtype=dtype, mode="c", offset=begin + offset, shape=tuple(shape)
            )
            plain = (mapped.T if turned else mapped).view(np.ndarray)
            items.insert(place, (key, plain))
    return dict(items)


def _begin_of(file: Any, member: zipfile.ZipInfo) -> int:
    """Where a member's data begins: its local header has 30 bytes, then the lengths it gives last of a name and of extras."""
    file.seek(member.header_offset + 26)
    name, extras = struct.unpack("<HH", file.read(4))
    return int(member.header_offset + 30 + name + extras)


def _read_member(path: str, file: Any, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    if member.file_size < LARGE or member.compress_type != zipfile.ZIP_STORED:
        with archive.open(member) as opened:
            return np.lib.format.read_array(opened, allow_pickle=False)
    # What versions before wrote.
    file.seek(_begin_of(file, member))
    version = np.lib.format.read_magic(file)
    read_header: Any = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    order: Any = "F" if is_fortran else "C"
    mapped = np.memmap(path, dtype=dtype, mode="c", offset=file.tell(), shape=shape, order=order)
    return mapped.view(np.ndarray)
