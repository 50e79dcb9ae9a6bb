"""The small program that most tests of verify run, and faults to plant in its rewritten form."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "fixtures"
PROGRAM = HERE / "before" / "shared_adam.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that holds the original only."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / PROGRAM.name).write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


@pytest.fixture
def rewritten(tmp_path: Path) -> Callable[..., Path]:
    """A folder with the rewritten program, with one pattern of it replaced."""

    def make(pattern: str = "", by: str = "") -> Path:
        text = (HERE / "after" / PROGRAM.name).read_text(encoding="utf-8")
        changed, count = re.subn(pattern, by, text, count=1) if pattern else (text, 1)
        assert count == 1, f"the rewritten program has no {pattern!r}:\n{text}"
        folder = tmp_path / "rewritten"
        folder.mkdir()
        (folder / PROGRAM.name).write_text(changed, encoding="utf-8")
        return folder

    return make
