"""Nodes stand where libcst says that they stand."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from towermigrate.recognize.places import places_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
ODD = [
    "",
    "x = 1",
    "# only a comment\r\n\r\n",
    "if a:\r\n    b = (\r\n        1,\r\n        2)  # c\r\nelse: pass; c = 3\r\n",
    "@d\n# between\nclass A (B, metaclass = C) :\n\n  '''doc\n  string'''\n\n  async def f(self, /, a, *b, c=1, **d) -> int:\n    return (yield)\n",
    "with (a as b, c): x = f'{a!r:>{w}}' \\\n  'b'\ntry:\n  pass\nexcept* E as e:\n  raise\nfinally:\n  del x\n",
    "x = [\n  i for i in (\n    yield_) if i if not (\n  i)\n]; y = {**a, 'b': lambda *, c: c}\n",
    "match a:\n  case {'x': [1, *_], **rest} if b: pass\n  case A(b=1) | None:\n    pass\n",
]


def _sources() -> list[str]:
    return [*ODD, *(path.read_text() for path in sorted(FIXTURES.glob("*/*/*.py")))]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_ones(number: int) -> None:
    _check(ODD[number])


def test_the_fixtures() -> None:
    sources = _sources()
    assert len(sources) > len(ODD) + 20
    for text in sources:
        _check(text)


def _check(text: str) -> None:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    known = wrapper.resolve(PositionProvider)
    found = places_of(wrapper.module)
    assert found.keys() == known.keys()
    for node, where in known.items():
        start, end = where.start, where.end
        assert found[node] == (start.line, start.column, end.line, end.column), node
