"""Names of Python that a program has for something else, and what tells a function's names: neither fits loop style.

The readers know `range`, `enumerate`, `zip` and their kin by their names; and what moves into a step, or goes, is no name
of the function any more.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.refusal import Reasons
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import binds, calls, code, dotted, parameters, walk

_KNOWN = ("range", "xrange", "enumerate", "zip", "dict", "list", "tuple", "len")
_ALIKE = ("six.moves", "builtins", "past.builtins", "future.builtins")
_COUNTS = ("range", "xrange")
_TELL = ("locals", "dir", "vars")
_FRAMES = ("_getframe", "currentframe")


def check_own_names(reasons: Reasons, candidate: Candidate) -> None:
    """Say every name of Python that the file has for itself, and every question for the names of the program's function."""
    file, loop = candidate.file, candidate.loop
    for name in _KNOWN:
        if name in file.text and _is_own(file, name):
            reasons.say(
                "TM229", file, loop, f"`{name}` is the program's own here, not that of Python"
            )
    over = dotted(loop.iter.func) if isinstance(loop.iter, cst.Call) else None
    if over is not None and "." in over and candidate.turns is None and candidate.written is None:
        root, _, rest = over.partition(".")
        if not f"{file.imports.get(root, '')}.{rest}".startswith(_ALIKE):
            reasons.say("TM229", file, loop, f"`{over}` is not a function of Python")
    for statement in candidate.block:
        for call in calls(statement):
            name = dotted(call.func) or ""
            tells = name in _TELL and not call.args or name.rpartition(".")[2] in _FRAMES
            if tells:
                reasons.say(
                    "TM210", file, call, f"`{code(call)}` tells the names of what a step takes over"
                )


def _is_own(file: SourceFile, name: str) -> bool:
    origin = file.imports.get(name)
    if origin is not None:
        return not origin.startswith(_ALIKE)
    return any(name in own for own in _bound(file, name)) or any(
        _is_brought(each, name) for each in _starred(file)
    )


def _starred(file: SourceFile) -> list[SourceFile]:
    """The files of the tree all of whose names a file has by a star, directly or through others."""
    found: list[SourceFile] = [file]
    for each in found:
        for star in each.star_imports:
            path = file.tree.module_path(each.path, star) if file.tree and star.strip(".") else None
            other = file.tree.file(path) if file.tree is not None and path is not None else None
            if other is not None and other not in found:
                found.append(other)
    return found[1:]


def _is_brought(file: SourceFile, name: str) -> bool:
    """Whether who takes all of a file's names has one of Python's for something else."""
    origin = file.imports.get(name)
    if origin is not None:
        return not origin.startswith(_ALIKE)
    return any(name in own for own in _bound_by_module(file, name))


def _bound(file: SourceFile, name: str) -> Iterator[list[str]]:
    """The names that the file and its functions bind; `xrange = range` binds none."""
    for function in file.functions.values():
        yield parameters(function.node)
        yield binds(function.node.body)
    yield from _bound_by_module(file, name)


def _bound_by_module(file: SourceFile, name: str) -> Iterator[list[str]]:
    other_name = name in _COUNTS and any(
        isinstance(node, cst.Assign) and _is_other_name(node) for node in walk(file.module)
    )
    if not other_name or name in file.functions:
        yield binds(file.module)


def _is_other_name(node: cst.Assign) -> bool:
    targets = [code(each.target) for each in node.targets]
    return set(targets) <= set(_COUNTS) and code(node.value) in _COUNTS
