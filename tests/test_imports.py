"""The modules of the package import each other in one direction."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import towermigrate


def test_no_module_imports_itself_through_others() -> None:
    root = Path(towermigrate.__file__).parents[1]
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (root / "towermigrate").rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = graph.setdefault(name, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                origin = (
                    ".".join([*above, node.module or ""]).strip(".") if node.level else node.module
                )
                inner = {f"{origin}.{each.name}" for each in node.names} & modules.keys()
                found |= inner or {str(origin)}
        found &= modules.keys() - {name}
    graphlib.TopologicalSorter(graph).prepare()  # a CycleError names the circle
