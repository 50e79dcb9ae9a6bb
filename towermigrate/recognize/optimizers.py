"""Optimizers that settings choose: `if name == "adam": opt = …` and functions that do no more than make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import assigned, calls, code, small, statements

NAMES = frozenset(
    f"tf.train.{name}Optimizer"
    for name in ("Adadelta", "Adagrad", "Adam", "Ftrl", "GradientDescent", "Momentum", "RMSProp")
)
_TEXTS = ("lower", "upper", "strip", "startswith")
"""Methods of texts that a condition may call."""
_SETTINGS = (cst.Name, cst.Attribute, cst.Float, cst.Integer, cst.SimpleString, cst.UnaryOperation)


def chosen(node: cst.BaseStatement, file: SourceFile) -> str | None:
    """The name that every branch of an `if` binds to an optimizer, where it does nothing else."""
    if not isinstance(node, cst.If):
        return None
    names: set[str] = set()
    for statement in _leaves(node):
        if isinstance(small(statement), cst.Raise):
            continue
        found = assigned(statement)
        if found is None or len(found[0]) != 1 or not _is_made(found[1], file):
            return None
        names.add(found[0][0])
    plain = len(names) == 1 and all(_asks_settings(test) for test in _tests(node))
    return next(iter(names)) if plain else None


def made_by(node: cst.CSTNode, file: SourceFile) -> list[cst.Call]:
    """The calls below a node that make an optimizer."""
    return [call for call in calls(node) if file.tf(call.func) in NAMES]


def makes_optimizer(function: Function) -> bool:
    """Whether a function only makes an optimizer of settings and returns it."""
    if function.is_method or function.node.decorators or function.node.asynchronous is not None:
        return False
    names: set[str] = set()
    returns = False
    body = list(_flat(statements(function.node.body)))
    for statement in body:
        inner = small(statement)
        if isinstance(inner, cst.Raise | cst.Pass) or _is_text(inner):
            continue
        if isinstance(inner, cst.Return) and inner.value is not None:
            known = isinstance(inner.value, cst.Name) and inner.value.value in names
            if not known and not _is_made(inner.value, function.file):
                return False
            returns = True
            continue
        found = assigned(statement)
        if found is None or len(found[0]) != 1 or not _is_made(found[1], function.file):
            return False
        names.add(found[0][0])
    tests = [t for s in statements(function.node.body) if isinstance(s, cst.If) for t in _tests(s)]
    return returns and all(_asks_settings(test) for test in tests)


def _is_made(node: cst.BaseExpression, file: SourceFile) -> bool:
    """`tf.train.AdamOptimizer(rate, beta1=0.5)`: one of TensorFlow's own, of settings."""
    if not isinstance(node, cst.Call) or file.tf(node.func) not in NAMES:
        return False
    return all(not arg.star and isinstance(arg.value, _SETTINGS) for arg in node.args)


def _asks_settings(test: cst.BaseExpression) -> bool:
    """Whether a condition calls nothing but methods of texts."""
    return all(
        isinstance(call.func, cst.Attribute) and call.func.attr.value in _TEXTS
        for call in calls(test)
    )


def _is_text(node: cst.BaseSmallStatement | None) -> bool:
    return isinstance(node, cst.Expr) and code(node.value)[:1] in "'\""


def _tests(node: cst.If) -> Iterator[cst.BaseExpression]:
    """The conditions of an `if`, those inside of its branches too."""
    yield node.test
    for branch in (node.body, node.orelse.body if isinstance(node.orelse, cst.Else) else None):
        for statement in statements(branch) if branch is not None else ():
            if isinstance(statement, cst.If):
                yield from _tests(statement)
    if isinstance(node.orelse, cst.If):
        yield from _tests(node.orelse)


def _leaves(node: cst.If) -> Iterator[cst.BaseStatement]:
    yield from _flat(statements(node.body))
    if isinstance(node.orelse, cst.If):
        yield from _leaves(node.orelse)
    elif node.orelse is not None:
        yield from _flat(statements(node.orelse.body))


def _flat(block: Sequence[cst.BaseStatement]) -> Iterator[cst.BaseStatement]:
    for statement in block:
        if isinstance(statement, cst.If):
            yield from _leaves(statement)
        else:
            yield statement
