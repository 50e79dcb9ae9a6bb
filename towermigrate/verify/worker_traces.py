"""Make one recording of what the workers of a program recorded, and compare them with each other.

Worker k holds tower k: its losses, its own gradients and the inputs it would have had come from its recording. Gradients
that are summed when they are applied are added up in the workers' order. What all workers must hold or be given alike
(mirrored variables, results of steps) is the chief's, worker 0's; where another worker has something else, that is
kept in the description as a difference of that worker.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from towermigrate.verify.children import ChildFailed
from towermigrate.verify.comparison import Difference, describe_key
from towermigrate.verify.probe.recording import first_that_differs, read_arrays, same
from towermigrate.verify.probe.stored import write_file
from towermigrate.verify.trace import Array, Arrays, Trace, read_trace
from towermigrate.verify.workers import folder_of

# What a tower has for itself.
_OF_TOWER = ("loss", "tower_gradient", "own")


def merge(trace: Path, workers: int, what: str) -> Trace:
    """Write the recording of all workers below `trace` there, and read it.

    Raises:
        ChildFailed: a worker left none, a damaged one, or one that is no part of the others' training.
    """
    parts = [_part(trace, number, what) for number in range(workers)]
    return _Merger(trace, parts, what).merge()


def _part(trace: Path, number: int, what: str) -> Trace:
    try:
        return read_trace(folder_of(trace, number))
    except FileNotFoundError:
        raise ChildFailed(f"Worker {number} of {what} ended without a recording.") from None


class _Merger:
    def __init__(self, folder: Path, parts: list[Trace], what: str) -> None:
        self.folder = folder
        self.parts = parts
        self.what = what
        self.described = [part.variables() for part in parts]
        # What a worker has otherwise than the chief.
        self.apart: list[dict[str, Any]] = []

    def merge(self) -> Trace:
        self._check_towers()
        meta = dict(self.parts[0].meta)
        meta["notes"] = [note for part in self.parts for note in part.meta["notes"]]
        meta["runs"] = [self._run(place) for place in range(len(meta["runs"]))]
        self._variables()
        self._initial()
        for name in ("events", "checkpoints"):
            path = self.parts[0].folder / f"{name}.npz"
            if path.is_file():
                shutil.copyfile(path, self.folder / path.name)
        written = self.parts[0].folder / "written"
        if written.is_dir():
            shutil.copytree(written, self.folder / "written", dirs_exist_ok=True)
        meta["files_of_workers"] = {
            str(number): part.meta["files"] for number, part in enumerate(self.parts) if number
        }
        meta["workers_apart"] = self.apart
        (self.folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return read_trace(self.folder)

    def _write(self, name: str, arrays: Arrays) -> None:
        """Write arrays of the whole recording; of those of the workers none is needed any more."""
        write_file(str(self.folder / f"{name}.npz"), arrays)
        for part in self.parts:
            (part.folder / f"{name}.npz").unlink(missing_ok=True)

    def _check_towers(self) -> None:
        """Every worker trained its own tower, in the same training runs."""
        wanted = [run["index"] for run in self.parts[0].meta["runs"]]
        for number, part in enumerate(self.parts):
            for run in part.meta["runs"]:
                if run["replicas"] != [number]:
                    towers = ", ".join(map(str, run["replicas"]))
                    raise ChildFailed(
                        f"Worker {number} of {self.what} trained tower {towers} and not tower {number} of "
                        f"{len(self.parts)}: its strategy is not the one of the cluster. tower_strategy(num_towers), "
                        "with no devices named, takes it from TF_CONFIG."
                    )
            found = [run["index"] for run in part.meta["runs"]]
            if found != wanted:
                raise ChildFailed(
                    f"Worker {number} of {self.what} made {len(found)} training runs that were recorded, and "
                    f"worker 0 {len(wanted)}: the workers do not train together."
                )

    def _run(self, place: int) -> dict[str, Any]:
        """Write the arrays of one training run, and describe it."""
        runs = [part.meta["runs"][place] for part in self.parts]
        index: int = runs[0]["index"]
        name = f"run_{index:05d}"
        arrays = [part.arrays(part.runs[place]) for part in self.parts]
        left_out = ("incoming/", "own_part/")
        merged = {k: value for k, value in arrays[0].items() if not k.startswith(left_out)}
        for own in arrays[1:]:
            merged.update({key: value for key, value in own.items() if _of_tower(key)})
        merged.update(_summed(arrays))
        merged.update(_put_together(arrays))
        differ: dict[str, list[Any]] = {}
        for number, own in enumerate(arrays[1:], 1):
            for key in sorted(arrays[0].keys() | own.keys()):
                if key.startswith("state/") and self._mirrored(key[len("state/") :]):
                    self._note_state(differ, number, key, arrays[0].get(key), own.get(key), index)
                elif key.startswith("output/"):
                    self._note("output", number, key, arrays[0].get(key), own.get(key), index)
        self._between(index)
        self._write(name, merged)
        return {
            **runs[0],
            "as_recorded": [],
            "updates": max(run["updates"] for run in runs),
            "replicas": list(range(len(runs))),
            "replicas_differ": {**runs[0].get("replicas_differ", {}), **differ},
        }

    def _note_state(
        self,
        differ: dict[str, list[Any]],
        number: int,
        key: str,
        first: Array | None,
        own: Array | None,
        index: int,
    ) -> None:
        if first is None or own is None or first.shape != own.shape:
            self._note("update", number, key, first, own, index)
        elif not same(first, own):
            _, *values = first_that_differs([first, own])
            differ.setdefault(key[len("state/") :], [number, *values])

    def _between(self, index: int) -> None:
        """What the host did to variables before this run, on every worker alike."""
        name = f"before_{index:05d}"
        found = [read_arrays(str(part.folder), name) for part in self.parts]
        if found[0]:
            self._write(name, found[0])
        for number, own in enumerate(found[1:], 1):
            for key in sorted(found[0].keys() | own.keys()):
                if self._mirrored(key):
                    self._note(
                        "update", number, f"between/{key}", found[0].get(key), own.get(key), index
                    )

    def _initial(self) -> None:
        found = [part.initial() for part in self.parts]
        self._write("initial", found[0])
        for number, own in enumerate(found[1:], 1):
            for key in sorted(found[0].keys() | own.keys()):
                index = self.parts[0].meta["first_seen"].get(key, 0)
                if index and not self._mirrored(key):
                    continue  # Training had moved it before it was seen.
                self._note(
                    "initial", number, f"initial/{key}", found[0].get(key), own.get(key), index
                )

    def _variables(self) -> None:
        for number, own in enumerate(self.described[1:], 1):
            for key in sorted(self.described[0].keys() | own.keys()):
                first, other = self.described[0].get(key), own.get(key)
                if first != other:
                    self._apart(
                        "structure", number, f"state/{key}", _described(first), _described(other), 0
                    )

    def _mirrored(self, key: str) -> bool:
        return any(each.get(key, {}).get("mirrored", True) for each in self.described)

    def _note(
        self, level: str, number: int, key: str, first: Array | None, own: Array | None, index: int
    ) -> None:
        """Keep that a worker has another array than the chief, or one of them none."""
        if (
            first is None
            and own is None
            or first is not None
            and own is not None
            and same(first, own)
        ):
            return
        if (
            first is None
            or own is None
            or first.shape != own.shape
            or first.dtype.kind not in "fiub"
        ):
            self._apart(level, number, key, _said(first), _said(own), index)
        else:
            _, *values = first_that_differs([first, own])
            self._apart(level, number, key, values[0], values[1], index)

    def _apart(
        self, level: str, number: int, key: str, first: float | str, own: float | str, index: int
    ) -> None:
        self.apart.append(
            {"level": level, "worker": number, "key": key, "chief": first, "own": own, "run": index}
        )


def _of_tower(key: str) -> bool:
    return key.partition("/")[0] in _OF_TOWER


def _put_together(arrays: list[Arrays]) -> Arrays:
    """Rows of which each worker was given some, in the workers' order."""
    found: Arrays = {}
    for key in arrays[0]:
        kind, _, rest = key.partition("/")
        if kind == "own_part":
            name = rest.partition("/")[2]
            parts = [own.get(f"own_part/{worker}/{name}") for worker, own in enumerate(arrays)]
            if all(part is not None for part in parts):
                found[f"own/{name}"] = np.concatenate([part for part in parts if part is not None])
    return found


def _summed(arrays: list[Arrays]) -> Arrays:
    """The gradients that the workers' replicas apply together: each worker recorded its own share."""
    found: Arrays = {}
    for number, own in enumerate(arrays):
        for key in sorted(own):
            if not key.startswith("incoming/"):
                continue
            _, stage, replica, name = key.split("/", 3)
            target = f"gradient/{stage}/{name}"
            if replica == str(number):
                found[target] = found[target] + own[key] if target in found else own[key]
    return found


def worker_differences(made: Trace) -> Iterator[Difference]:
    """Where a worker holds or is given something else than the chief, which nothing of the original's could be."""
    steps: dict[int, int] = {}
    begun: dict[int, tuple[int, int]] = {}
    for run in made.runs:
        stage = run.stages[0]
        begun[run.index] = stage, steps.get(stage, 0)
        steps.update((each, steps.get(each, 0) + 1) for each in run.stages)
    for each in made.meta.get("workers_apart", ()):
        stage, step = begun.get(each["run"], (0, 0))
        key = each["key"]
        yield Difference(
            step=step,
            stage=None if each["level"] in ("initial", "structure") else stage,
            level=each["level"],
            name=f"{_name(key)}, which worker {each['worker']} has otherwise than the chief",
            replica=each["worker"],
            expected=each["chief"],
            actual=each["own"],
            error=float("inf"),
            key=f"worker/{each['worker']}/{key}",
            run=each["run"],
        )


def _name(key: str) -> str:
    kind, _, rest = key.partition("/")
    if kind == "output":
        return "a value that the training run gives back"
    name = describe_key(f"state/{rest}" if kind != "state" else key)[1]
    return {"between": f"{name}, between two training runs"}.get(kind, name)


def _said(array: Array | None) -> str:
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"


def _described(variable: dict[str, Any] | None) -> str:
    if variable is None:
        return "no such variable"
    return f"{variable['dtype']}{variable['shape']}{', trainable' if variable['trainable'] else ''}"
