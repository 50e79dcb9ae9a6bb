"""Read the recordings that the child processes leave: arrays by key, per training run.

Keys are `input/TOWER/NAME`, `loss/STAGE/TOWER`, `gradient/STAGE/VARIABLE` (averaged),
`tower_gradient/STAGE/TOWER/VARIABLE`, `state/variable/NAME`, `state/slot/STAGE/SLOT[/VARIABLE]`.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from towermigrate.verify.children import ChildFailed
from towermigrate.verify.probe.recording import of_recorded, read_arrays, read_meta

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Run:
    """One training run: its index among all of them, and the stages it updated.

    `replicas_differ` are the variables of which a replica holds another value than the first one: the replica, and
    both values. `as_recorded` are arrays that stand only in the recording that the run repeated: they had its bits.
    """

    index: int
    stages: tuple[int, ...]
    updates: int | None = None
    replicas_differ: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    own_missing: tuple[str, ...] = ()
    as_recorded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """One recording. `meta` is the child's own description of it."""

    folder: Path
    meta: dict[str, Any]
    runs: tuple[Run, ...]

    def arrays(self, run: Run) -> Arrays:
        """What was recorded of `run`.

        Raises:
            ChildFailed: it is not there, or damaged.
        """
        name = f"run_{run.index:05d}"
        if not (self.folder / f"{name}.npz").is_file():
            raise _damaged(self.folder, f"{name}.npz is missing")
        try:
            found = read_arrays(str(self.folder), name)
            if run.as_recorded:
                recorded = read_arrays(str(self.folder / self.meta["replays"]), name)
                found.update({key: recorded[of_recorded(key)] for key in run.as_recorded})
            return found
        except (ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
            raise _damaged(self.folder, f"{name}.npz cannot be read ({error})") from None

    def initial(self) -> Arrays:
        return read_arrays(str(self.folder), "initial")

    def before(self, run: Run) -> Arrays:
        """The state before `run`, where it was read because the run before it was not recorded."""
        return read_arrays(str(self.folder), f"before_{run.index:05d}")

    def outputs(self, run: Run) -> dict[str, str]:
        """What the program fetched in `run`, by number."""
        return next(
            each.get("outputs", {}) for each in self.meta["runs"] if each["index"] == run.index
        )

    @property
    def day(self) -> date | None:
        """When it was made; None for one of an older version."""
        said = self.meta.get("day")
        return date.fromisoformat(said) if isinstance(said, str) else None

    def variables(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.meta["variables"]
        return found


def read_trace(folder: Path) -> Trace:
    """The recording in `folder`.

    Raises:
        FileNotFoundError: the child wrote none.
        ChildFailed: it is damaged.
    """
    try:
        meta = read_meta(str(folder))
        runs = tuple(
            Run(
                run["index"],
                tuple(run["stages"]),
                run.get("updates"),
                {key: tuple(at) for key, at in run.get("replicas_differ", {}).items()},
                tuple(run.get("own_missing", ())),
                tuple(run.get("as_recorded", ())),
            )
            for run in meta["runs"]
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, f"meta.json cannot be read ({error})") from None
    return Trace(folder, meta, runs)


def _damaged(folder: Path, why: str) -> ChildFailed:
    return ChildFailed(
        f"The recording in {folder.parent.name} is damaged: {why}. Only the program that was recorded could change it."
    )
