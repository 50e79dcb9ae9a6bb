"""Functions that may run: those that are mentioned by what runs, from the module levels on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from towermigrate.recognize.proof.code import Code, Codes


def live_functions(codes: Codes, files: Sequence[Code]) -> frozenset[tuple[str, str]]:
    """The files and names of functions that anything mentions which may run.

    A name means a function of its own file, or of one that a star takes all of; an attribute, a text and an imported name
    may mean one of any file.
    """
    bodies: dict[tuple[str, str], list[ast.AST]] = {}
    waiting: list[tuple[Code, ast.AST]] = []
    for code in files:
        waiting += [(code, n) for n in code.tree.body if not _is_function(n)]
        for made in code.definitions:
            bodies.setdefault((code.path, made.name), []).append(made)
            if made.name.startswith("__"):
                waiting.append((code, made))
    by_path = {code.path: code for code in files}
    seen_by = {code.path: _starred(codes, code) for code in files}
    found: set[tuple[str, str]] = set()
    while waiting:
        code, node = waiting.pop()
        for name, anywhere in _mentions(node):
            for path in by_path if anywhere else seen_by[code.path]:
                key = path, name
                if key not in found:
                    found.add(key)
                    waiting += [(by_path[path], each) for each in bodies.get(key, ())]
    return frozenset(found)


def is_dead(code: Code, node: ast.AST, live: frozenset[tuple[str, str]]) -> bool:
    """Whether a node stands in a function that nothing mentions which runs."""
    return any(
        (code.path, made.name) not in live
        and not made.name.startswith("__")
        and any(n is node for n in ast.walk(made))
        for made in code.definitions
    )


def _starred(codes: Codes, code: Code) -> list[str]:
    """A file and those whose names it has by `from … import *`, of which some may have theirs so."""
    found: list[str] = []
    waiting = [code]
    while waiting:
        one = waiting.pop()
        if one.path in found:
            continue
        found.append(one.path)
        for star in one.star_imports:
            target = codes.imported(one.path, "." * star.level + (star.module or ""))
            if target is not None:
                waiting.append(target)
    return found


def _mentions(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that code mentions, and whether each may be of any file; functions that it defines run when they are named."""
    inside: list[ast.AST] = [node]
    while inside:
        one = inside.pop()
        if isinstance(one, ast.Name):
            yield one.id, False
        elif isinstance(one, ast.Attribute):
            yield one.attr, True
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value, True
        elif isinstance(one, ast.alias):
            yield one.name.rpartition(".")[2], True
        if one is not node and _is_function(one):
            inside += getattr(one, "decorator_list", [])
            continue
        inside += ast.iter_child_nodes(one)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
