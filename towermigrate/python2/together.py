"""The files that ran together with Python 2 ones: what one process runs, one Python runs.

A file that both Pythons parse may still be Python 2. It is where a file that only Python 2 parses imports it, or is
imported by what imports it; names that Python 3 does not have then settle it. And in a package such files could import
each other without a dot, which Python 3 takes for modules of another place.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.python2.port import Ported, port, python3_only
from towermigrate.python2.unbound import divided, python2_names
from towermigrate.symbols.edits import Edit, Text, splice
from towermigrate.tree import (
    import_closure,
    import_graph,
    is_script,
    may_be_script,
    modules_named,
    parse_python,
)

_Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Together:
    """What became of the files that ran with Python 2 ones: new texts, and findings of the others, by path."""

    ported: Mapping[str, Ported]
    findings: Mapping[str, tuple[Finding, ...]]


_Said = tuple[Ported | None, tuple[Finding, ...]]
"""What became of a file, None where it stays as it is; and what is to be said of it."""
_Any = TypeVar("_Any")


class _Spread(Protocol):
    def __call__(
        self, sizes: Mapping[str, int], work: Callable[[str], _Any], /
    ) -> Mapping[str, _Any]: ...


def _in_turn(sizes: Mapping[str, int], work: Callable[[str], _Any], /) -> dict[str, _Any]:
    return {path: work(path) for path in sizes}


def ported_together(
    texts: Mapping[str, str],
    ported: Mapping[str, Ported],
    graph: Mapping[str, Collection[str]],
    spread: _Spread = _in_turn,
) -> Together:
    """Bring the rest of a Python 2 tree to Python 3.

    Args:
        texts: the files of the tree that Python 3 parses, by path; those of `ported` as they are now.
        ported: the files that only Python 2 parses.
        graph: the files of the tree that each file imports.
        spread: gives what a function gives for each path, given the sizes of the files; see `Readings.spread`.
    """
    graph = _with_packages(graph)
    sizes = {path: len(texts[path]) for path in _ran_together(ported, graph) if path in texts}
    ages = spread(sizes, lambda path: _age(texts[path]))
    sizes = {path: size for path, size in sizes.items() if ages[path] is not None}
    modern = {path for path in sizes if path not in ported and ages[path] == 3}
    if modern:  # these, and what only they lead to, are of another time
        rest = {path: files for path, files in graph.items() if path not in modern}
        together = _ran_together(ported, rest) - modern
        sizes = {path: size for path, size in sizes.items() if path in together}
    found: dict[str, Ported] = {}
    findings: dict[str, tuple[Finding, ...]] = {}
    places = _Places(texts, graph)

    def work(path: str) -> _Said:
        try:
            return _one(path, texts[path], ported.get(path), places)
        except Exception as error:
            return None, (fault(path, error),)

    for path, (one, said) in spread(sizes, work).items():
        if one is not None:
            found[path] = one
        if said:
            findings[path] = said
    return Together(found, findings)


def in_python3(sources: Mapping[str, str]) -> dict[str, str]:
    """The texts, those of Python 2 and those that ran with them in Python 3, as a rewrite brings them over.

    So Python 3 can run the originals of a tree.
    """
    ported: dict[str, Ported] = {}
    texts: dict[str, str] = {}
    for path, text in sources.items():
        try:
            parse_python(text)
            texts[path] = text
        except SyntaxError:
            result = port(text, path)
            if isinstance(result, Ported):
                ported[path] = result
                texts[path] = result.text
        except (ValueError, RecursionError):
            pass
    if ported:
        graph = import_graph(texts, {path: modules_named(text) for path, text in texts.items()})
        ported.update(ported_together(texts, ported, graph).ported)
    return {**sources, **{path: each.text for path, each in ported.items()}}


def _age(text: str) -> int | None:
    """3 of a text that only Python 3 parses, 2 of one that both may, None of one that Python 3 does not."""
    try:
        return 2 if python3_only(parse_python(text)) is None else 3
    except (SyntaxError, ValueError):
        return None


def _one(path: str, text: str, ported: Ported | None, places: _Places) -> _Said:
    before = ported
    findings: tuple[Finding, ...] = ()
    if ported is None:
        result = port(text, path) if python2_names(path, text) else None
        if isinstance(result, Ported):
            ported = result
        else:
            findings = divided(path, text)
    now = text if ported is None else ported.text
    new, said = _explicit_imports(path, now, places)
    if new != now:
        lines = tuple(range(1, now.count("\n") + 2))
        was = Finding("TM121", path, 1, 0, "was Python 2 and is now Python 3")
        ported = Ported(now, (was,), lines) if ported is None else ported
        ported = Ported(new, ported.findings, ported.lines)
    return None if ported is before else ported, (*findings, *said)


def _with_packages(graph: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """The graph with the `__init__.py` of every package that an import goes through, which runs too."""
    found: dict[str, set[str]] = {}
    for path, imported in graph.items():
        found[path] = set(imported)
        for other in imported:
            folder = posixpath.dirname(other)
            while folder and not path.startswith(f"{folder}/"):
                found[path] |= {f"{folder}/__init__.py"} & graph.keys()
                folder = posixpath.dirname(folder)
    return found


def _ran_together(ported: Collection[str], graph: Mapping[str, Collection[str]]) -> set[str]:
    """The files that one Python ran: those that lead to Python 2 files, and all that they lead to."""
    importers: dict[str, set[str]] = {}
    for path, imported in graph.items():
        for other in imported:
            importers.setdefault(other, set()).add(path)
    whole = {path: (*graph.get(path, ()),) for path in {*graph, *importers, *ported}}
    back = {path: importers.get(path, set()) for path in whole}
    known = [path for path in ported if path in whole]
    return import_closure({}, import_closure({}, known, back), whole)


class _Places:
    """From where the files of a tree are imported: as parts of a package, or by scripts beside them."""

    def __init__(self, texts: Mapping[str, str], graph: Mapping[str, Collection[str]]) -> None:
        self._paths = texts.keys() | graph.keys()
        self._fiddled = any("sys.path" in text for text in texts.values())
        beside: dict[str, list[str]] = {path: [] for path in self._paths}
        entered: set[str] = set()
        for path, imported in graph.items():
            for other in imported:
                folder = posixpath.dirname(other)
                if folder == posixpath.dirname(path):
                    beside[path].append(other)
                elif not path.startswith(f"{folder}/"):
                    entered.add(other)
        self._in_package = import_closure({}, entered & self._paths, beside)
        self._texts, self._beside = texts, beside

    @cached_property
    def _run_beside(self) -> set[str]:
        texts = self._texts.items()
        scripts = {path for path, text in texts if may_be_script(text) and is_script(text)}
        return import_closure({}, scripts, self._beside)

    def is_in_package(self, path: str) -> bool:
        """Whether a file in another folder leads to this one, which is then a part of its package."""
        return "/" in path and path in self._in_package

    def is_run_beside(self, path: str) -> bool:
        """Whether a script in its own folder runs it, or some file changes where modules are looked for."""
        return self._fiddled or path in self._run_beside

    def beside(self, path: str, module: str) -> bool:
        """Whether a module stands in the folder of a file."""
        stem = posixpath.join(posixpath.dirname(path), *module.split("."))
        return path != f"{stem}.py" and (
            f"{stem}.py" in self._paths or f"{stem}/__init__.py" in self._paths
        )


def _explicit_imports(path: str, source: str, places: _Places) -> tuple[str, tuple[Finding, ...]]:
    """A text with a dot in the imports that Python 2 looked up beside the file; findings where that is not sure."""
    if not places.is_in_package(path):
        return source, ()
    if not any(places.beside(path, module) for level, module in modules_named(source) if not level):
        return source, ()
    tree = parse_python(source)
    text = Text(source)
    edits: list[Edit] = []
    findings: list[Finding] = []
    for node, modules in _implicit(tree, path, places):
        new = _with_dot(text, node, modules)
        if new is not None and not places.is_run_beside(path):
            edits.append(Edit(*text.span(node), new))
        else:
            message = f"Python 3 does not look for `{modules[0]}` beside the file, as a part of the package: write `from . import` where it runs as one"
            findings.append(Finding("TM128", path, node.lineno, node.col_offset, message))
    return splice(source, edits), tuple(findings)


def _implicit(tree: ast.Module, path: str, places: _Places) -> Iterator[tuple[_Import, list[str]]]:
    """The imports that mean modules beside the file without saying so, with these modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" and any(a.name == "absolute_import" for a in node.names):
                return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names if places.beside(path, alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found = [node.module] if places.beside(path, node.module) else []
        else:
            continue
        if found:
            yield node, found


def _with_dot(text: Text, node: _Import, modules: list[str]) -> str | None:
    """The import with the dot, on as many lines; None where it cannot be written so."""
    old = text.of(node)
    if isinstance(node, ast.ImportFrom):
        return old.replace(modules[0], f".{modules[0]}", 1)
    if "\\" in old or any("." in module for module in modules):
        return None  # `import a.b` binds `a`, and loads `a.b` too
    near = [text.of(alias) for alias in node.names if alias.name in modules]
    far = [text.of(alias) for alias in node.names if alias.name not in modules]
    return "; ".join(
        [f"from . import {', '.join(near)}", *([f"import {', '.join(far)}"] if far else ())]
    )
