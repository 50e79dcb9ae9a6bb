"""Every fixture's `before/` becomes its `after/`, to the byte, and a second rewrite changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from towermigrate.rewrite import rewrite_tree

FIXTURES = Path(__file__).parent.parent / "fixtures"


def sources(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*.py"))}


def names(style: str) -> list[str]:
    return [
        p.parent.name
        for p in sorted(FIXTURES.glob("*/fixture.toml"))
        if f'style = "{style}"' in p.read_text()
    ]


@pytest.mark.parametrize("name", names("loop"))
def test_before_becomes_after(name: str) -> None:
    before = sources(FIXTURES / name / "before")
    report = rewrite_tree(before)
    assert [(p.status, p.style) for p in report.programs] == [("converted", "loop")]
    assert {**before, **report.texts} == sources(FIXTURES / name / "after")


@pytest.mark.parametrize("name", names("loop"))
def test_a_second_rewrite_changes_nothing(name: str) -> None:
    report = rewrite_tree(sources(FIXTURES / name / "after"))
    assert report.texts == {}
    assert report.programs == []
