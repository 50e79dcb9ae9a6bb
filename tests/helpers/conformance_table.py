"""Writes `towermigrate/helpers/CONFORMANCE.md` from the rows: `python -m tests.helpers.conformance_table`."""

from pathlib import Path

import towermigrate.helpers as tm
from tests.helpers.conformance import MODES, NOT_PROMISED, TF1, TPU, Case
from tests.helpers.conformance_rows import CASES

DOCUMENT = Path(tm.__file__).parent / "CONFORMANCE.md"

_HEAD = """\
# Which helper works where

Generated from the rows of `tests/helpers/conformance_rows`, which a test runs cell by cell; do not edit. A cell
that says *yes* gives the exact numbers that the row expects. A number in brackets is the reason why the cell cannot
be; the test uses the helper there all the same, and it must fail in the way that the reason says. *TPU* cells run
where TensorFlow finds a TPU, and are skipped elsewhere; no run of them is recorded.
"""


def table(cases: list[Case]) -> str:
    """The whole document."""
    reasons: dict[str, int] = {}

    def cell(case: Case, mode: str) -> str:
        if mode in case.cannot:
            reason = case.cannot[mode].reason
        elif mode == TF1 and not case.tf1:
            reason = NOT_PROMISED
        else:
            return "skip" if mode == TPU else "yes"
        return f"[{reasons.setdefault(reason, len(reasons) + 1)}]"

    rows = [f"| {case.row} | {' | '.join(cell(case, mode) for mode in MODES)} |" for case in cases]
    lines = [
        _HEAD,
        *(f"- **{mode}**: {meaning}" for mode, meaning in MODES.items()),
        "",
        f"| | {' | '.join(MODES)} |",
        f"|---|{'---|' * len(MODES)}",
        *rows,
        "",
        *(f"{number}. {reason}." for reason, number in reasons.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(table(CASES), encoding="utf-8")
