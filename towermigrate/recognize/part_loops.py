"""Tower loops that go over a part of the devices which another loop of the same graph goes over as a whole.

A GAN may give its critic one half of the GPUs and the gradient penalty the other, with a generator on all of them.
Such a graph trains data-parallel with all its devices, so it converts, and each part keeps its place among the replicas.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.syntax import bound_below, code, dotted, walk

_NUMBERS = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.Call, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div,
)  # fmt: skip
_OF_NUMBERS = ("len", "int")
_BINDING = frozenset({
    cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.Param, cst.FunctionDef, cst.ClassDef,
    cst.AsName, cst.Del,
})  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A part of what other tower loops go over.

    Attributes:
        whole: what it is a part of, as it is written (`devices`, `range(n)`).
        first: the place of its first tower there, as it is written; None where that is the first.
    """

    whole: str
    first: str | None


def part_of(candidate: Candidate) -> Part | None:
    """What a loop goes over a part of; None where it goes over no part, or the text does not say which.

    Args:
        candidate: the tower loop: over a slice, over the only name of one, or over a range that begins behind 0, by
            itself or in `enumerate`.
    """
    over, made = _plain(candidate.loop.iter), None
    if isinstance(over, cst.Name):
        made = _only_assignment(candidate, over.value)
        if made is None:
            return None
        over = _plain(made.value)
    lower: cst.BaseExpression | None
    match over:
        case cst.Subscript(
            value=whole,
            slice=[cst.SubscriptElement(slice=cst.Slice(lower=lower, upper=upper, step=None))],
        ) if dotted(whole) is not None and (lower or upper):
            written = code(whole)
        case cst.Call(
            func=cst.Name(value="range" | "xrange" as name),
            args=[cst.Arg(value=lower), cst.Arg(value=upper)],
        ):
            written = f"{name}({code(upper)})"
        case _:
            return None
    if lower is None or code(lower) == "0":
        return Part(written, None)
    return Part(written, code(lower)) if _can_be_asked_again(candidate, made, lower) else None


def has_whole(candidate: Candidate, part: Part, others: Iterable[Candidate]) -> bool:
    """Whether a loop of the same function goes over all of what a loop goes over a part of."""
    return any(
        other.file is candidate.file
        and other.function is candidate.function
        and code(_plain(other.loop.iter)) == part.whole
        for other in others
    )


def _can_be_asked_again(
    candidate: Candidate, made: cst.Assign | None, lower: cst.BaseExpression
) -> bool:
    """Whether the place of the first tower is the same number at the loop as where the part was made."""
    try:
        number = ast.parse(code(lower), mode="eval").body
    except SyntaxError:
        return False
    for each in ast.walk(number):
        if not isinstance(each, _NUMBERS):
            return False
        if isinstance(each, ast.Call):
            if not isinstance(each.func, ast.Name) or each.func.id not in _OF_NUMBERS:
                return False
    if made is None:
        return True
    file, function = candidate.file, candidate.function
    begins, ends = file.line(made), file.line(candidate.loop)
    if begins > ends:
        return False
    outside = function is not None and not any(each is made for each in walk(function))
    for name in {each.id for each in ast.walk(number) if isinstance(each, ast.Name)}:
        if name in _OF_NUMBERS:
            continue
        if any(name in each for each in _shared(file.module)):
            return False
        if outside and function is not None and _bindings(function, name):
            return False
        scope = file.module if outside or function is None else function
        if any(begins < file.line(each) <= ends for each in _bindings(scope, name)):
            return False
    return True


def _plain(over: cst.BaseExpression) -> cst.BaseExpression:
    """What is gone over, without `enumerate` and brackets that only group."""
    while (
        isinstance(over, cst.Call)
        and isinstance(over.func, cst.Name)
        and over.func.value == "enumerate"
        and len(over.args) == 1
    ):
        over = over.args[0].value
    if isinstance(over, cst.Name | cst.Call | cst.Subscript | cst.Attribute) and over.lpar:
        return over.with_changes(lpar=[], rpar=[])
    return over


def _only_assignment(candidate: Candidate, name: str) -> cst.Assign | None:
    """The only statement that binds a name, in the loop's function or else in the file."""
    for scope in (candidate.function, candidate.file.module):
        bound = [] if scope is None else _bindings(scope, name)
        if bound:
            only = bound[0] if len(bound) == 1 else None
            if isinstance(only, cst.Assign) and len(only.targets) == 1:
                return only if isinstance(only.targets[0].target, cst.Name) else None
            return None
    return None


def _bindings(scope: cst.CSTNode, name: str) -> Sequence[cst.CSTNode]:
    """What binds a name below a node, in inner functions too."""
    return bound_below(scope, _BINDING, _targets).get(name, ())


def _targets(node: cst.CSTNode) -> list[cst.CSTNode]:
    match node:
        case cst.Assign(targets=targets):
            return [each.target for each in targets if not isinstance(each.target, cst.Attribute | cst.Subscript)]  # fmt: skip
        case cst.AugAssign() | cst.AnnAssign() | cst.For() | cst.NamedExpr():
            return [node.target]
        case cst.Param() | cst.FunctionDef() | cst.ClassDef():
            return [node.name]
        case cst.AsName():
            return [node.name]
        case cst.Del():
            return [node.target]
    return []


def _shared(module: cst.Module) -> list[set[str]]:
    """The names of each `global` and `nonlocal` statement."""
    return [
        {item.name.value for item in each.names}
        for each in walk(module)
        if isinstance(each, cst.Global | cst.Nonlocal)
    ]
