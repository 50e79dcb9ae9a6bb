"""What a rule of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Rule:
    """One rule of the catalogue. `error` refuses a program, `warning` and `info` go beside a rewrite."""

    id: str
    title: str
    severity: Severity
    why: str
    advice: str
    example: str
