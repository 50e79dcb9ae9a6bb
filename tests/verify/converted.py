"""The whole programs of `fixtures/` that the rewrite converts: there is something to probe and to compare."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"
CONVERTED = sorted(
    path.parent.name
    for path in FIXTURES.glob("*/fixture.toml")
    if 'style = "loop"' in path.read_text(encoding="utf-8")
)
