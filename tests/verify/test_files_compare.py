"""What stands in the files that programs write is compared by what it is: arrays, text, pickles that are never loaded."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from towermigrate.verify.files_compare import Closeness, file_differences
from towermigrate.verify.probe.contents import flush_files, keep_contents
from towermigrate.verify.trace import Trace, read_trace

CLOSE = Closeness(1e-3, 1e-6)
HISTORY = [[1, 2.3044, 0.25], [2, 2.2796, 0.1875]]


def _trace(folder: Path, data: bytes, **meta: Any) -> Trace:
    (folder / "written").mkdir(parents=True)
    (folder / "written" / "00000").write_bytes(data)
    document = {"runs": [], "variables": {}, "python": "3.11.1", "contents": {"x": 0}, **meta}
    (folder / "meta.json").write_text(json.dumps(document))
    return read_trace(folder)


def _compared(
    folder: Path, files: tuple[bytes, bytes, bytes], close: Closeness = CLOSE, **meta: Any
) -> tuple[list[str], list[str]]:
    traces = [_trace(folder / str(k), data, **meta) for k, data in enumerate(files)]
    found, left = file_differences(traces[0], traces[1], traces[2], close)
    return [f"{each.expected} {each.actual}" for each in found], left


def _npy(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _csv(rows: list[list[float]]) -> bytes:
    return "".join(",".join(map(str, row)) + "\r\n" for row in rows).encode()


def _changed(row: int, column: int, by: float) -> list[list[float]]:
    rows: list[list[float]] = [list(each) for each in HISTORY]
    rows[row][column] += by
    return rows


ALIKE, OFF, COUNT = _changed(1, 1, 1e-6), _changed(1, 1, 0.1), _changed(0, 0, 1)
KINDS = {
    "json": lambda rows: json.dumps({"history": rows}).encode(),
    "csv": _csv,
    "npy": lambda rows: _npy(np.array(rows)),
    "npz": lambda rows: _npz(history=np.array(rows)),
    "pickle": lambda rows: pickle.dumps({"history": rows}),
    "pickled arrays": lambda rows: pickle.dumps(np.array(rows, np.float32)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_files(kind: str, tmp_path: Path) -> None:
    write = KINDS[kind]
    wanted = write(HISTORY)
    assert _compared(tmp_path / "same", (wanted, wanted, wanted)) == ([], [])
    assert _compared(tmp_path / "alike", (wanted, wanted, write(ALIKE))) == ([], [])
    for name, rows in (("off", OFF), ("count", COUNT)):
        found, left = _compared(tmp_path / name, (wanted, wanted, write(rows)))
        assert len(found) == 1 and not left


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_two_originals_have_otherwise_are_open(kind: str, tmp_path: Path) -> None:
    write = KINDS[kind]
    files = (write(_changed(0, 1, 0.5)), write(_changed(0, 1, 0.7)), write(_changed(0, 1, 0.9)))
    if kind != "pickled arrays":
        assert _compared(tmp_path / "open", files) == ([], [])
        more = _changed(0, 1, 0.9)
        more[1][1] += 1.0
        found, _ = _compared(tmp_path / "another", (*files[:2], write(more)))
        assert bool(found) == (kind not in ("csv",)), found


def test_words_in_text_files(tmp_path: Path) -> None:
    text = b"batch_size 16, gpus 2\n"
    assert len(_compared(tmp_path / "a", (text, text, text.replace(b"16", b"32")))[0]) == 1
    assert len(_compared(tmp_path / "b", (text, text, text.replace(b"gpus", b"cpus")))[0]) == 1
    found, left = _compared(tmp_path / "c", (text, b"other\n", b"more\n"))
    assert not found and "two runs of the original write other lines" in left[0]


def test_lines_of_libraries_in_a_log_file_are_left_out(tmp_path: Path) -> None:
    meta = {"of_libraries": ["The name tf.Session is deprecated."]}
    own = b"INFO step 1\n"
    noise = b"WARNING The name tf.Session is deprecated.\n"
    assert _compared(tmp_path / "a", (noise + own, noise + own, own), **meta) == ([], [])
    assert _compared(tmp_path / "b", (noise + own, noise + own, noise), **meta)[0]


def test_other_bytes(tmp_path: Path) -> None:
    one, other = b"\x00\xff\x01", b"\x00\xff\x02"
    bitwise = Closeness(1e-3, 1e-6, bitwise=True)
    assert _compared(tmp_path / "a", (one, one, other), bitwise)[0]
    found, left = _compared(tmp_path / "b", (one, other, other), bitwise)
    assert not found and "two runs of the original" in left[0]
    found, left = _compared(tmp_path / "c", (one, one, other))
    assert not found and "roundings" in left[0]


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "loaded",))

    wanted, made = pickle.dumps([1.0, Hostile()]), pickle.dumps([2.0, Hostile()])
    objects = _npy(np.array([Hostile()], object))
    assert _compared(tmp_path / "a", (wanted, wanted, made))[0]
    assert _compared(tmp_path / "b", (objects, objects, objects + b"x"))[1]
    assert not (tmp_path / "loaded").exists()


def test_arrays_of_other_names_types_and_shapes(tmp_path: Path) -> None:
    wanted = _npz(a=np.zeros(3, np.float32))
    for k, made in enumerate(
        (_npz(b=np.zeros(3, np.float32)), _npz(a=np.zeros(4, np.float32)), _npz(a=np.zeros(3)))
    ):
        assert len(_compared(tmp_path / str(k), (wanted, wanted, made))[0]) == 1
    nan = _npz(a=np.float32([np.nan, 1, 2]))
    assert _compared(tmp_path / "nan", (nan, nan, nan)) == ([], [])
    assert _compared(tmp_path / "no", (nan, nan, _npz(a=np.float32([0, 1, 2]))))[0]


def test_what_is_kept_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text(f"in {tree}\n")
    (tree / "model.ckpt.index").write_bytes(b"x")
    (tree / "large").write_bytes(b"x" * 10000)
    monkeypatch.setattr("towermigrate.verify.probe.contents._MOST_OF_ONE", 5000)
    with (tree / "open.txt").open("w") as file:
        file.write("half")
        flush_files()
        kept = keep_contents(
            str(tmp_path / "kept"),
            ["a.txt", "model.ckpt.index", "large", "open.txt"],
            lambda name: str(tree / name),
            lambda text: text.replace(str(tree), "."),
        )
    assert kept == {"a.txt": 0, "large": "it is too large", "open.txt": 1}
    assert (tmp_path / "kept" / "00000").read_text() == "in .\n"
    assert (tmp_path / "kept" / "00001").read_text() == "half"
    texts = tuple(_trace(tmp_path / name, b"", contents=kept) for name in "123")
    for each in texts:
        for number in range(2):
            (each.folder / "written" / f"{number:05d}").write_text("")
    assert file_differences(*texts, CLOSE) == ([], ["what the file large holds: it is too large"])


def _picture(*changes: tuple[int, int]) -> np.ndarray[Any, Any]:
    made = np.arange(30000) * 37 % 254 + 1
    for place, by in changes:
        made[place] += by
    return made


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32])
@pytest.mark.parametrize(
    ("changes", "close", "alike"),
    [
        pytest.param([(3, 1)], CLOSE, True, id="one"),
        pytest.param([(3, 1), (70, -1), (900, 1)], CLOSE, True, id="as many as roundings flip"),
        pytest.param([(k, 1 - 2 * (k % 2)) for k in range(1, 60)], CLOSE, False, id="too many"),
        pytest.param([(3, 2)], CLOSE, False, id="by two"),
        pytest.param([(k, 1) for k in range(1, 12)], CLOSE, False, id="all one way"),
        pytest.param([(3, 1)], Closeness(1e-3, 1e-6, True), False, id="trained bitwise"),
    ],
)
def test_points_of_a_picture_that_roundings_flip(
    tmp_path: Path, changes: list[tuple[int, int]], close: Closeness, alike: bool, kind: Any
) -> None:
    wanted, made = (_npy(_picture(*each).astype(kind)) for each in ([], changes))
    if kind == np.float32 and not alike:
        close = Closeness(1e-6, close.drift, close.bitwise)
    found, left = _compared(tmp_path, (wanted, wanted, made), close)
    assert (not found, left) == (alike, [])


def test_a_count_among_few_is_no_picture(tmp_path: Path) -> None:
    wanted, made = _npy(np.array([10, 20])), _npy(np.array([10, 21]))
    assert len(_compared(tmp_path, (wanted, wanted, made))[0]) == 1
