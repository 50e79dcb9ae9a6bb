"""TensorFlow's names that a file gets from other files of its tree: `from ops import *` brings `tf` where `ops` has it.

Such a file may not mention TensorFlow at all. Only files from which another one takes something are looked into.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from towermigrate.symbols.bindings import Brought, Given, is_tensorflow
from towermigrate.symbols.scopes import file_names
from towermigrate.tree import Module, module_file, parse_python

# A line that takes names from a module: `from a.b import c, d`, also in brackets and over lines.
_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.+(?:\w[\w.]*)?|\w[\w.]*)[ \t]+import\b[ \t]*"
    r"(\*|\((?:[^()#]|#[^\n]*\n)*\)|(?:\\\r?\n|[^#\n;])*)",
    re.MULTILINE,
)
# A module under another name: what took all of TensorFlow's names by a star may go by `tf`.
_RENAMED = re.compile(r"^[ \t]*import[ \t]+(\w[\w.]*)[ \t]+as[ \t]+\w", re.MULTILINE)
_ALL_OF_TENSORFLOW = re.compile(r"^[ \t]*from[ \t]+tensorflow[ \t]+import[ \t]+\*", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?:[ \t\r\n]+as[ \t\r\n]+\w+)?")
_BLOCK = re.compile(r"^(?:def|class|@|for|while)\b", re.MULTILINE)
_OWN_IMPORT = re.compile(
    r"^[ \t]*((?:import|from)[ \t][^\n(]*\b(?:tensorflow|tf_slim)\b[^\n(]*)$", re.M
)
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class _Taken:
    """What one statement of a file takes from a module; no names is a star."""

    module: Module
    names: frozenset[str]


def brought(sources: Mapping[str, str]) -> dict[str, Given]:
    """What the files of a tree get of TensorFlow from others, by path; only those that get something.

    Args:
        sources: texts of all files of the tree that import anything, by path.

    Example:
        >>> given = brought({"ops.py": "import tensorflow as tf\\n", "net.py": "from ops import *\\n"})
        >>> given["net.py"][0, "ops"].star
        {'tf': 'tensorflow'}
    """
    return _Search(sources).found()


class _Search:
    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._taken = {
            path: taken for path, text in sources.items() if (taken := list(_taken(text)))
        }
        self._with_all = {
            path
            for path, text in sources.items()
            if "tensorflow import" in text and _ALL_OF_TENSORFLOW.search(text)
        }
        self._renamed: dict[str, list[str]] = {}
        for path, text in sources.items() if self._with_all else ():
            if " as " in text and (modules := _RENAMED.findall(text)):
                self._renamed[path] = modules
        self._given: dict[str, Given] = {}
        self._exported: dict[str, Brought] = {}
        self._busy: set[str] = set()

    def found(self) -> dict[str, Given]:
        paths = dict.fromkeys([*self._taken, *self._renamed])
        given = {path: self._given_to(path) for path in paths}
        return {path: each for path, each in given.items() if each}

    def _given_to(self, path: str) -> Given:
        """What a file gets, by the modules as it names them."""
        if path not in self._given:
            found: dict[Module, Brought] = {}
            for taken in self._taken.get(path, ()):
                file = module_file(self._sources, path, *taken.module)
                if file is None or file == path or not self._may_give(file, taken.names):
                    continue
                has = self._exports(file)
                if has.star if not taken.names else taken.names & has.names.keys():
                    found[taken.module] = has
            for module in self._renamed.get(path, ()):
                file = module_file(self._sources, path, 0, module)
                if file in self._with_all and file != path:
                    found[0, module] = Brought()
            if path in self._busy:  # files that import each other: the outer call has the rest
                return found
            self._given[path] = found
        return self._given[path]

    def _may_give(self, path: str, names: Collection[str]) -> bool:
        """Whether it is worth parsing a file: it binds one of the names otherwise than as a function, or has a star."""
        if not names or any(not taken.names for taken in self._taken.get(path, ())):
            return True
        text = self._sources[path]
        return any(name in text and _bound(name).search(text) for name in names)

    def _exports(self, path: str) -> Brought:
        """What a file of the tree gives to those that import from it."""
        if path in self._exported:
            return self._exported[path]
        text = self._sources[path]
        if path in self._busy or not (
            "tensorflow" in text or "tf_slim" in text or path in self._taken
        ):
            return Brought()
        self._busy.add(path)
        given = self._given_to(path)
        self._busy.discard(path)
        if not given and "tensorflow" not in text and "tf_slim" not in text:
            found = Brought()
        else:
            found = _exports_of(text, given)
        self._exported[path] = found
        return found


@cache
def _bound(name: str) -> re.Pattern[str]:
    """Finds a name where a statement may bind it: nothing is called, taken from it or looked up in it there."""
    return re.compile(rf"{name}(?<![\w.]{name})\b(?![ \t]*[.(\[])")


def _taken(text: str) -> Iterable[_Taken]:
    if "import" not in text:
        return
    for start, names in _FROM.findall(text):
        module = start.lstrip(".")
        if is_tensorflow(module):
            continue
        starred = names.startswith("*") or names.strip("( \t\r\n)") == "*"
        found = frozenset() if starred else frozenset(_NAME.findall(names))
        if starred or found:
            yield _Taken((len(start) - len(module), module), found)


def _exports_of(text: str, given: Given) -> Brought:
    """The names of TensorFlow that a module has, and those of them that a star takes."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):  # Python 2 perhaps: its imports at the top tell enough
        tree = _imports_of(text)
    names = file_names(tree, given)
    has = {
        name: meaning
        for name, meanings in names.module.bound.items()
        if len(meanings) == 1 and is_tensorflow(meaning := next(iter(meanings)))
    }
    listed = _listed(tree)
    public = {
        name: meaning
        for name, meaning in has.items()
        if (name in listed if listed is not None else not name.startswith("_"))
    }
    return Brought(public, has)


def _imports_of(text: str) -> ast.Module:
    """The imports before the first function or class of a text that cannot be parsed, as a module of their own."""
    block = _BLOCK.search(text)
    head = text[: block.start() if block else len(text)]
    found: list[ast.stmt] = []
    for line in _OWN_IMPORT.findall(head):
        try:
            found += parse_python(line.strip()).body
        except (SyntaxError, ValueError):
            continue
    for start, names in _FROM.findall(head):
        if names.startswith("*"):
            found += parse_python(f"from {start} import *").body
    return ast.Module(found, [])


def _listed(tree: ast.Module) -> frozenset[str] | None:
    """The names in `__all__`; None where there is none, or it is not a plain list."""
    names: set[str] = set()
    there = False
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=value)
                | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
            ):
                if not isinstance(value, ast.List | ast.Tuple):
                    return None
                there = True
                names.update(
                    each.value
                    for each in value.elts
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                )
    return frozenset(names) if there else None
