"""One of two workers: runs every row of the conformance table, and writes what came out.

    TF_CONFIG=… python -m tests.helpers.conformance_worker FOLDER RESULTS

Both are started with the same FOLDER, a disk that the workers share, and run the same rows in the
same order: they meet in every reduction.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.conformance import WORKERS, Runner, run_cell
from tests.helpers.conformance_rows import CASES


def main(folder: Path, results: Path) -> None:
    """Write `{row: {name: values}}`; null for a cell that failed as its reason says, text for one
    that failed otherwise."""
    rows: dict[str, Any] = {}
    for number, case in enumerate(CASES):
        own = folder / str(number)
        own.mkdir(exist_ok=True)
        try:
            found = run_cell(case, Runner(WORKERS, own))
        except Exception:
            rows[case.row] = traceback.format_exc()
            break  # the workers are no longer in step
        rows[case.row] = found and {
            name: np.asarray(value).tolist() for name, value in found.items()
        }
    results.write_text(json.dumps(rows))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
