"""A tree of sources, parsed once: functions, imports, positions and TensorFlow's names in each file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import libcst as cst

from towermigrate.program import Span
from towermigrate.recognize.places import Place, places_of
from towermigrate.recognize.syntax import binds, calls, children, dotted, walk
from towermigrate.tree import (
    import_closure,
    import_graph,
    importers,
    module_file,
    modules_named,
    parse_python,
)

_PART = re.compile(r"contrib\.[a-z_]\w*")
"""The parts of TensorFlow 1 that modules give names of their own."""


@dataclass(frozen=True)
class Function:
    """A function of the tree: where it is and its node. `qualified` is dotted, `Class.method` for methods."""

    file: SourceFile
    node: cst.FunctionDef
    qualified: str

    @property
    def is_method(self) -> bool:
        return "." in self.qualified


class Parsed:
    """The syntax of one text."""

    def __init__(self, text: str) -> None:
        self.module = cst.parse_module(text)

    @cached_property
    def places(self) -> Mapping[cst.CSTNode, Place]:
        """Where each node stands."""
        return places_of(self.module)


class Common:
    """What trees have in common of which some are made from others: most of their files.

    A file is known by its path and its text: two files of one text have nodes of their own.
    """

    def __init__(self) -> None:
        self._parsed: dict[tuple[str, str], Parsed] = {}
        self._trees: dict[tuple[str, str], ast.Module] = {}
        # Of what is made of files by modules that import this one, which alone know its types.
        self.codes: dict[tuple[str, str], Any] = {}
        """Files as proofs read them (`proof.code.Code`)."""
        self.modules: dict[tuple[str, str, bool], Any] = {}
        """Files as Python reads them (`python_scopes.Module`), and whether functions were joined in them before."""
        self.turns: dict[Any, Any] = {}
        """What the towers of loops do (`towers.twice.TurnsKnown`)."""

    def parsed(self, path: str, text: str) -> Parsed:
        """A file, parsed by libcst; raises what that raises."""
        found = self._parsed.get((path, text))
        if found is None:
            found = self._parsed[path, text] = Parsed(text)
        return found

    def python(self, path: str, text: str) -> ast.Module:
        """A file, parsed by Python, of which nothing may be changed; raises SyntaxError or ValueError."""
        found = self._trees.get((path, text))
        if found is None:
            found = self._trees[path, text] = parse_python(text)
        return found


@dataclass
class SourceFile:
    """One parsed file. `module` is the tree every node of the analysis belongs to."""

    path: str
    text: str
    _parsed: Parsed = field(repr=False)
    tree: Tree | None = field(default=None, repr=False)
    _following_stars: bool = field(default=False, repr=False)
    _of_tensorflow: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, path: str, text: str, tree: Tree | None = None) -> SourceFile:
        """Parse a file; raises `libcst.ParserSyntaxError` (a SyntaxError in spirit) where it cannot."""
        parsed = Parsed(text) if tree is None else tree.common.parsed(path, text)
        return cls(path, text, parsed, tree)

    @property
    def module(self) -> cst.Module:
        return self._parsed.module

    @property
    def places(self) -> Mapping[cst.CSTNode, Place]:
        """Where each node of the file stands."""
        return self._parsed.places

    def span(self, node: cst.CSTNode) -> Span:
        where = self.places.get(node)
        if where is None:
            # A statement that was rebuilt without some of its parts stands where its first old part does.
            where = next(self.places[n] for n in walk(node) if n in self.places)
        return Span(self.path, *where)

    def line(self, node: cst.CSTNode) -> int:
        return self.span(node).line

    @cached_property
    def _import_statements(self) -> list[cst.Import | cst.ImportFrom]:
        return [
            small
            for line in _lines(self.module)
            for small in line.body
            if isinstance(small, cst.Import | cst.ImportFrom)
        ]

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local name -> dotted origin, for every import anywhere in the file."""
        found: dict[str, str] = {}
        for node in self._import_statements:
            if isinstance(node, cst.Import):
                for alias in node.names:
                    origin = dotted(alias.name) or ""
                    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                        found[alias.asname.name.value] = origin
                    else:
                        root = origin.split(".")[0]
                        found.setdefault(root, root)
            elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
                base = "." * len(node.relative) + (dotted(node.module) or "" if node.module else "")
                for alias in node.names:
                    name = dotted(alias.name) or ""
                    local = name
                    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                        local = alias.asname.name.value
                    found[local] = f"{base}.{name}" if not base.endswith(".") else base + name
        found.update(self._parts_of(found))
        return {**self._handed_on(), **found}

    def _parts_of(self, imported: Mapping[str, str]) -> dict[str, str]:
        """Names that the module itself gives to parts of TensorFlow, once: `slim = tf.contrib.slim`."""
        if "tf.contrib." not in self.text or self.star_imports:
            return {}
        found: dict[str, str] = {}
        for line in self.module.body:
            match line:
                case cst.SimpleStatementLine(
                    body=[
                        cst.Assign(
                            targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value
                        )
                    ]
                ):
                    root, _, rest = (dotted(value) or "").partition(".")
                    part = _PART.fullmatch(rest)
                    if part and imported.get(root) == "tensorflow" and self._names_a_module(name):
                        found[name] = f"tensorflow.{rest}"
        return found

    def _names_a_module(self, name: str) -> bool:
        """Whether a name that is bound once is only asked for attributes: nothing binds it anew, or hands it on."""
        nodes = list(walk(self.module))
        asked = {
            id(part) for n in nodes if isinstance(n, cst.Attribute) for part in (n.value, n.attr)
        }
        asked |= {id(n.keyword) for n in nodes if isinstance(n, cst.Arg)}
        others = [
            n for n in nodes if isinstance(n, cst.Name) and n.value == name and id(n) not in asked
        ]
        return len(others) == 1

    def _handed_on(self) -> dict[str, str]:
        """What files that are imported by a star call TensorFlow and its parts: `from ops import *`."""
        found: dict[str, str] = {}
        if self.tree is None or self._following_stars:
            return found
        self._following_stars = True
        for star in self.star_imports:
            path = self.tree.module_path(self.path, star)
            other = self.tree.file(path) if path and path != self.path else None
            if other is not None and "import" in other.text:
                found.update(
                    (name, origin)
                    for name, origin in other.imports.items()
                    if origin.partition(".")[0] in ("tensorflow", "tf_slim")
                )
        self._following_stars = False
        return found

    @cached_property
    def starred_words(self) -> frozenset[str]:
        """Every word of the files of the tree that are imported by a star: any may be a name of this file too."""
        found: set[str] = set()
        paths = [self.path]
        for path in paths:
            file = self if path == self.path else self.tree.file(path) if self.tree else None
            for star in file.star_imports if file is not None else ():
                other = self.tree.module_path(path, star) if self.tree is not None else None
                if other and other not in paths:
                    paths.append(other)
                    shown = self.tree.file(other) if self.tree is not None else None
                    found |= set(re.findall(r"[A-Za-z_]\w*", shown.text)) if shown else set()
        return frozenset(found)

    @cached_property
    def star_imports(self) -> list[str]:
        found = []
        for node in self._import_statements:
            if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
                found.append(
                    "." * len(node.relative) + (dotted(node.module) or "" if node.module else "")
                )
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function of the file by qualified name; nested functions as `outer.<locals>.inner`."""
        found: dict[str, Function] = {}

        def visit(node: cst.CSTNode, prefix: str) -> None:
            for child in children(node):
                if isinstance(child, cst.FunctionDef):
                    name = prefix + child.name.value
                    found.setdefault(name, Function(self, child, name))
                    visit(child, name + ".<locals>.")
                elif isinstance(child, cst.ClassDef):
                    visit(child, prefix + child.name.value + ".")
                elif not isinstance(child, cst.SimpleStatementLine | cst.BaseExpression):
                    visit(child, prefix)

        visit(self.module, "")
        return found

    @cached_property
    def handed_on_by(self) -> list[tuple[cst.Import | cst.ImportFrom, str]]:
        """The imports through which TensorFlow's names are used that a module of the tree took all of by a star."""
        found: list[tuple[cst.Import | cst.ImportFrom, str]] = []
        for node in self._import_statements:
            for alias in node.names if isinstance(node, cst.Import) else ():
                module = dotted(alias.name) or ""
                if alias.asname is not None and self._hands_on(module) is not None:
                    name = dotted(alias.asname.name)
                    if any(
                        isinstance(each, cst.Attribute)
                        and dotted(each.value) == name
                        and self._is_handed_on(module, each.attr.value)
                        for each in walk(self.module)
                    ):
                        found.append((node, module))
        return found

    def _hands_on(self, module: str) -> SourceFile | None:
        if self.tree is None or module.startswith("tensorflow") or not module.strip("."):
            return None
        path = self.tree.module_path(self.path, module)
        if path is None or path == self.path or "tensorflow" not in self.tree.sources[path]:
            return None
        other = self.tree.file(path)
        return other if other is not None and "tensorflow" in other.star_imports else None

    def _is_handed_on(self, module: str, name: str) -> bool:
        """Whether `module.name` is TensorFlow's: a module of the tree that says `from tensorflow import *`."""
        key = (module, name)
        if key not in self._of_tensorflow:
            other = self._hands_on(module)
            self._of_tensorflow[key] = (
                other is not None
                and other.tree is not None
                and name not in other.imports
                and not any(name in near.bound for near in other.tree.near(other))
            )
        return self._of_tensorflow[key]

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the file itself binds at its outermost level, imports left out."""
        return frozenset(binds(self.module))

    @cached_property
    def methods(self) -> dict[str, list[tuple[bool, Function]]]:
        """The methods by each name that a call of them may have: that of their class, then True, or their own."""
        found: dict[str, list[tuple[bool, Function]]] = {}
        for qualified, function in self.functions.items():
            parts = qualified.split(".")
            if len(parts) == 2:
                found.setdefault(parts[0], []).append((True, function))
                if parts[1] != parts[0]:
                    found.setdefault(parts[1], []).append((False, function))
        return found

    def tf(self, node: cst.CSTNode) -> str | None:
        """The TF1 name a name chain stands for: `tf.train.Saver`, whatever TensorFlow was imported as.

        `tf.compat.v1.` is stripped; `slim.` of any import becomes `tf.contrib.slim.`.
        """
        name = dotted(node)
        if name is None:
            return None
        root, _, rest = name.partition(".")
        origin = self.imports.get(root)
        if origin is None:
            return None
        if rest and self._is_handed_on(origin, rest.partition(".")[0]):
            origin = "tensorflow"
        full = f"{origin}.{rest}" if rest else origin
        if full.startswith("tf_slim"):
            full = "tensorflow.contrib.slim" + full[len("tf_slim") :]
        if full != "tensorflow" and not full.startswith("tensorflow."):
            return None
        full = "tf" + full[len("tensorflow") :]
        if full.startswith("tf.compat.v1."):
            full = "tf." + full[len("tf.compat.v1.") :]
        return full


class Tree:
    """All sources of a run, parsed on demand; resolves a call to the function of the tree it names.

    `imports` are the files of the tree that each file imports, where these are known already; `like` is the tree that
    it is made from.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        imports: Mapping[str, set[str]] | None = None,
        like: Tree | None = None,
    ) -> None:
        self.sources = sources
        self.common: Common = Common() if like is None else like.common
        self._imports = imports
        self._files: dict[str, SourceFile | None] = {}
        self._calls: dict[str, dict[str, list[cst.Call]]] = {}
        self._near: dict[str, list[SourceFile]] = {}

    @cached_property
    def imports(self) -> Mapping[str, set[str]]:
        """The files of the tree that each file imports."""
        if self._imports is not None:
            return self._imports
        modules = {path: modules_named(text) for path, text in self.sources.items()}
        return import_graph(self.sources, modules)

    def file(self, path: str) -> SourceFile | None:
        """The parsed file, None where there is none or it cannot be parsed."""
        if path not in self._files:
            parsed: SourceFile | None = None
            if path in self.sources:
                try:
                    parsed = SourceFile.parse(path, self.sources[path], self)
                except (cst.ParserSyntaxError, RecursionError, ValueError):
                    parsed = None
            self._files[path] = parsed
        return self._files[path]

    def near(self, file: SourceFile) -> list[SourceFile]:
        """A file and those of the tree that it imports by name."""
        if file.path not in self._near:
            files = [file]
            for origin in dict.fromkeys(file.imports.values()):
                for module in (origin, origin.rpartition(".")[0]):
                    path = self.module_path(file.path, module) if module.strip(".") else None
                    other = self.file(path) if path else None
                    if other is not None and other not in files:
                        files.append(other)
            self._near[file.path] = files
        return self._near[file.path]

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """The files of the tree that import each file, directly or through others, and the file itself."""
        direct = importers(self.imports)
        return {path: import_closure({}, [path], direct) for path in direct}

    def calls_of(self, path: str, name: str) -> list[cst.Call]:
        """The calls in a file whose callee's last name is `name`, in source order."""
        if path not in self._calls:
            index: dict[str, list[cst.Call]] = {}
            file = self.file(path)
            for call in [] if file is None else calls(file.module):
                last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
                if isinstance(last, cst.Name):
                    index.setdefault(last.value, []).append(call)
            self._calls[path] = index
        return self._calls[path].get(name, [])

    def module_path(self, importer: str, dotted_name: str) -> str | None:
        """The path of module `dotted_name` as seen from file `importer`, None when it is not in the tree."""
        dotted = dotted_name.lstrip(".")
        return module_file(self.sources, importer, len(dotted_name) - len(dotted), dotted)

    def resolve(self, file: SourceFile, func: cst.CSTNode) -> Function | None:
        """The function of the tree that the callee `func` of a call in `file` names."""
        name = dotted(func)
        if name is None:
            return None
        if "." not in name and name in file.functions:
            return file.functions[name]
        root, _, rest = name.partition(".")
        if root == "self" and rest and "." not in rest:
            for qualified, function in file.functions.items():
                if qualified.split(".")[-1] == rest and function.is_method:
                    return function
            return None
        origin = file.imports.get(root)
        if origin is not None:
            found = self._imported(file.path, f"{origin}.{rest}" if rest else origin)
            if found is not None:
                return found
        if not rest:
            found = self._by_star(file, name)
            if found is not None:
                return found
            for qualified, function in file.functions.items():
                if qualified.endswith(".<locals>." + name):
                    return function
        return None

    def _by_star(
        self, file: SourceFile, name: str, through: frozenset[str] = frozenset()
    ) -> Function | None:
        """The function that the last star brings which brings a name; a file that takes all of another's hands them on."""
        for star in reversed(file.star_imports):
            found = self._imported(file.path, f"{star}.{name}" if star.strip(".") else star + name)
            if found is not None:
                return found
            path = self.module_path(file.path, star) if star.strip(".") else None
            other = self.file(path) if path is not None and path not in through else None
            if other is not None and name not in other.bound:
                found = self._by_star(other, name, through | {file.path})
            if found is not None or other is not None and name in other.bound:
                return found
        return None

    def _imported(self, importer: str, full: str) -> Function | None:
        module, _, name = full.rpartition(".")
        if not module.strip("."):
            return None
        path = self.module_path(importer, module)
        target = self.file(path) if path else None
        if target is None:
            return None
        if name in target.functions:
            return target.functions[name]
        origin = target.imports.get(name)
        if origin is not None and origin != full:
            return self._imported(target.path, origin)
        return None


def _lines(node: cst.CSTNode) -> Iterator[cst.SimpleStatementLine | cst.SimpleStatementSuite]:
    """Every line of simple statements, in source order; expressions, which hold none, are not walked."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            yield current
        elif not isinstance(current, cst.BaseExpression):
            waiting.extend(reversed(children(current)))
