"""Run a drawn program on towers and on one device, and say how they compare."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tests.helpers.differential.model import trained_alone
from tests.helpers.differential.on_towers import OnTowers
from tests.helpers.differential.program import Program, drawn

# Of float32: sums in another order, through two updates; a clipped or normalised gradient keeps its size.
_RELATIVE, _ABSOLUTE = 2e-4, 2e-5
# What refuses says so in one of these; anything else that is raised is a crash.
_REFUSALS = (ValueError, TypeError, tf.errors.InvalidArgumentError)
# Words of which each refusal of ours has one: it says what to write.
_WAY_FORWARD = re.compile(
    r"\b(write|give|take|leave|make|call|split|list|clip what|say how many|expected|let global_batch_loss|unset)\b|"
    r"strategy=|number of examples",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Outcome:
    """`equal`, `refused`, `wrong` (another number and no error) or `crash`, and what was said."""

    seed: int
    kind: str
    mistake: str
    said: str


def outcome(seed: int) -> Outcome:
    """What becomes of the program of a seed."""
    program = drawn(seed)
    before = os.environ.get("TOWERMIGRATE_CHECKS")
    os.environ["TOWERMIGRATE_CHECKS"] = "1" if program.checks else "0"
    try:
        kind, said = _compared(program)
    finally:
        os.environ["TOWERMIGRATE_CHECKS"] = before or "0"
    return Outcome(seed, kind, program.mistake, said)


def _compared(program: Program) -> tuple[str, str]:
    expected, losses = trained_alone(program)
    try:
        found, reported = OnTowers(program).train()
    except (*_REFUSALS, IndexError) as error:
        text = str(error)
        known = _WAY_FORWARD.search(text)
        return ("refused" if known else "crash"), f"{type(error).__name__}: {text[:300]}"
    except Exception as error:
        return "crash", f"{type(error).__name__}: {str(error)[:300]}"
    names = ("table", "kernel", "other", "average of table", "average of kernel")
    for name, one, other in zip(names[: len(expected)], found, expected, strict=True):
        copies = [np.asarray(copy) for copy in getattr(one, "values", (one,))]
        if any(not np.array_equal(copies[0], copy) for copy in copies[1:]):
            return "wrong", f"the copies of {name} differ"
        if not _near(copies[0], other):
            return "wrong", f"{name}: {copies[0].ravel()[:4]}, on one device {other.ravel()[:4]}"
    if program.mistake != "vector loss" and not _near(np.array(reported), np.array(losses)):
        return "wrong", f"losses {reported}, on one device {losses}"
    return "equal", ""


def _near(found: Any, expected: Any) -> bool:
    return bool(np.allclose(found, expected, rtol=_RELATIVE, atol=_ABSOLUTE))
