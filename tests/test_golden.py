"""Every fixture's `before/` becomes its `after/`, to the byte, and a second rewrite changes nothing.

In session style every one can be written, and nothing else of it changes.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from towermigrate.emit import emit_tree
from towermigrate.recognize import recognize_tree
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


CONVERTED = [(name, style) for style in ("loop", "session") for name in names(style)]


@pytest.mark.parametrize(("name", "style"), CONVERTED)
def test_before_becomes_after(name: str, style: str) -> None:
    before = sources(FIXTURES / name / "before")
    report = rewrite_tree(before)
    told = re.search(r"^loops = (\d+)$", (FIXTURES / name / "fixture.toml").read_text(), re.M)
    loops = int(told[1]) if told else 1
    assert [(p.status, p.style) for p in report.programs] == [("converted", style)] * loops
    assert {**before, **report.texts} == sources(FIXTURES / name / "after")


@pytest.mark.parametrize(("name", "style"), CONVERTED)
def test_a_second_rewrite_changes_nothing(name: str, style: str) -> None:
    report = rewrite_tree(sources(FIXTURES / name / "after"))
    assert report.texts == {}
    assert report.programs == []


class _Plain(ast.NodeTransformer):
    """Takes out of a program what session style changes: where a loop goes over, devices, calls of the helpers."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = ast.unparse(node.func)
        if called == "tm.towers":
            return node.args[0]
        return ast.Name("device") if called in ("tm.device", "tf.device") else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, [one for each in value for one in self._kept(each)])
        return node

    def _kept(self, node: ast.stmt) -> list[ast.stmt]:
        text = ast.unparse(node)
        if (
            "towermigrate" in text
            and isinstance(node, ast.Import)
            or "tm.mirror_variables(" in text
        ):
            if isinstance(node, ast.Import | ast.Expr):
                return []
        if text.endswith("disable_v2_behavior()") and isinstance(node, ast.Expr):
            return []
        if isinstance(node, ast.With):
            node.items = [i for i in node.items if ast.unparse(i.context_expr) != "device"]
            return node.body if not node.items else [node]
        return [node]


def plain(text: str) -> str:
    return ast.unparse(_Plain().visit(ast.parse(text)))


TOWERS = [name for style in ("loop", "session", "refused") for name in names(style)]


@pytest.mark.parametrize("name", TOWERS)
def test_session_style_changes_nothing_else(name: str) -> None:
    before = sources(FIXTURES / name / "before")
    emission = emit_tree(before, recognize_tree(before), style="session")
    assert {result.style for result in emission.results} == {"session"}
    for path, text in emission.sources.items():
        assert plain(text) == plain(before[path])
        assert "tm." in text and "tm." not in plain(text)
