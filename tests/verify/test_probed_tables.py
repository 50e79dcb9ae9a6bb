"""`verify` finds its places in every program of the tables: with its probes taken out again, a program is what it was."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential.loop_programs import program
from tests.verify.test_probes import WithoutProbes
from towermigrate.recognize import recognize_tree
from towermigrate.verify.probes import probed

TABLES = sorted(Path(__file__).parents[1].joinpath("differential").glob("test_*.py"))
_EVERY = 24
"""Of so many rows one is asked in the fast tier."""


def _rows() -> Iterator[tuple[str, Callable[..., Any], Any]]:
    for path in TABLES:
        module = importlib.import_module(f"tests.differential.{path.stem}")
        of = getattr(module, "program", program)
        for row in getattr(module, "TAKEN", ()):
            if hasattr(row, "values") and len(row.values) == 1:
                yield f"{path.stem}: {row.id}", of, row.values[0]


def _misplaced(rows: list[tuple[str, Callable[..., Any], Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    looked = 0
    for name, of, changes in rows:
        try:
            sources = dict(of(*changes))
        except (TypeError, ValueError, AssertionError):  # a table whose programs are made otherwise
            continue
        for each in recognize_tree(sources):
            if each.program is None:
                continue
            looked += 1
            for path, text in probed(sources, each.program).items():
                try:
                    without = ast.dump(WithoutProbes().visit(ast.parse(text)))
                except SyntaxError as error:
                    found[name] = str(error)
                    continue
                if without != ast.dump(ast.parse(sources[path])):
                    found[name] = f"{path} is another program"
    assert looked > 0.8 * len(rows)
    return found


def test_probes_leave_programs_of_the_tables_as_they_are() -> None:
    assert _misplaced(list(_rows())[::_EVERY]) == {}


@pytest.mark.full
def test_probes_leave_all_programs_of_the_tables_as_they_are() -> None:
    assert _misplaced(list(_rows())) == {}
