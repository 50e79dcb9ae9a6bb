"""Recordings made of arrays, and what `verify` takes for the original's two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from towermigrate.verify.programs import Recorded
from towermigrate.verify.report import Reference
from towermigrate.verify.trace import Trace, read_trace


def trace(folder: Path, arrays: Mapping[str, Mapping[str, Any]], **meta: Any) -> Trace:
    """A recording with these arrays by file (`initial`, `run_00000`, …), of runs of one stage."""
    folder.mkdir(parents=True)
    runs = sorted(int(name[4:]) for name in arrays if name.startswith("run_"))
    document = {
        "runs": [{"index": index, "stages": [0]} for index in runs],
        "variables": {},
        **meta,
    }
    (folder / "meta.json").write_text(json.dumps(document))
    for name, values in arrays.items():
        np.savez(folder / f"{name}.npz", **{key: np.asarray(v) for key, v in values.items()})
    return read_trace(folder)


def recorded(first: Trace, second: Trace) -> Recorded:
    return Recorded(first, second, None, ("train",), {}, Reference(), {}, None, {}, {})
