"""`while` loops over towers, as the `for` loops that they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from towermigrate.recognize.syntax import (
    binds,
    calls,
    changes,
    dotted,
    integer,
    reads,
    statements,
    walk,
)

_TAKES = frozenset({"next", "pop", "popleft", "get", "get_nowait", "readline"})
_SEES_ITS_FUNCTION = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})


def as_for(loop: cst.While, scope: cst.CSTNode | None = None) -> cst.For:
    """The `for` that a `while` stands for; its parts are the author's own nodes, as far as there are such.

    Args:
        loop: the `while`.
        scope: the block of the function, or the module, that it stands in. With it, a loop that counts from 0 goes
            over `range(n)`; without it, and else, over its condition.
    """
    names = [cst.Name(name) for name in counters(loop)]
    target: cst.BaseAssignTargetExpression = cst.Tuple([cst.Element(name) for name in names])
    if len(names) == 1:
        target = names[0]
    most = _counted_to(loop, scope) if scope is not None else None
    over = loop.test if most is None else cst.Call(cst.Name("range"), [cst.Arg(most)])
    return cst.For(target, over, loop.body)


def counters(loop: cst.While) -> list[str]:
    """The names that tell one turn of a loop from the next."""
    body = loop.body
    found = [name for name in reads(loop.test) if name in {*binds(body), *changes(body)}]
    for node in walk(body, into_functions=False):
        if isinstance(node, cst.AugAssign):
            found += binds(node)
        elif isinstance(node, cst.Assign):
            taken = any((dotted(c.func) or "").rpartition(".")[2] in _TAKES for c in calls(node))
            own = set(reads(node.value))
            found += [name for name in binds(node) if taken or name in own]
    return list(dict.fromkeys(found))


def tied_to_its_function(test: cst.BaseExpression) -> str | None:
    """What in a condition would mean something else in a function of its own; None where nothing would."""
    for node in walk(test):
        if isinstance(node, cst.NamedExpr):
            return "it binds a name"
        if isinstance(node, cst.Yield | cst.Await):
            return "it waits or yields"
        if isinstance(node, cst.CompFor) and node.asynchronous is not None:
            return "it waits or yields"
        if isinstance(node, cst.Call) and dotted(node.func) in _SEES_ITS_FUNCTION:
            return f"it calls `{dotted(node.func)}`"
    return None


def _counted_to(loop: cst.While, scope: cst.CSTNode) -> cst.BaseExpression | None:
    """The `n` of `i = 0` … `while i < n:` … `i += 1`."""
    test = loop.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator, most = test.comparisons[0].operator, test.comparisons[0].comparator
    if not isinstance(test.left, cst.Name) or not isinstance(operator, cst.LessThan | cst.NotEqual):
        return None
    name = test.left.value
    found = [node for node in _bindings(scope) if name in binds(node)]
    steps = [node for node in _bindings(loop.body) if name in binds(node)]
    starts = [node for node in found if node not in steps]
    if len(starts) != 1 or len(steps) != 1 or not isinstance(starts[0], cst.Assign):
        return None
    return most if integer(starts[0].value) == 0 and _adds_one(steps[0], name) else None


def counted_steps(loop: cst.While) -> list[cst.CSTNode]:
    """The `i += 1` of a loop that counts by one name."""
    names = counters(loop)
    steps = [node for node in _bindings(loop.body) if set(names) & set(binds(node))]
    return [node for node in steps if len(names) == 1 and _adds_one(node, names[0])]


def _adds_one(node: cst.CSTNode, name: str) -> bool:
    """`i += 1`, `i = i + 1`."""
    if isinstance(node, cst.AugAssign):
        return isinstance(node.operator, cst.AddAssign) and integer(node.value) == 1
    value = node.value if isinstance(node, cst.Assign) else None
    return (
        isinstance(value, cst.BinaryOperation)
        and isinstance(value.operator, cst.Add)
        and dotted(value.left) == name
        and integer(value.right) == 1
    )


def _bindings(scope: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The innermost nodes of a scope that bind names."""
    lines = statements(scope) if isinstance(scope, cst.BaseSuite | cst.Module) else [scope]
    for line in lines:
        for node in walk(line, into_functions=False):
            if isinstance(node, cst.BaseSmallStatement | cst.NamedExpr | cst.CompFor):
                yield node
            elif isinstance(node, cst.For):
                yield node.target
            elif isinstance(node, cst.With):
                yield from (item for item in node.items if item.asname is not None)
