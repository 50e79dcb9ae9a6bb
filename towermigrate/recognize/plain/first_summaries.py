"""Summaries that only the first tower makes: `if i == 0:`, or where a flag says that nothing is reused yet.

Made by every tower, of which the first one's are taken, they are the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from towermigrate.recognize.plain.changes import Part, PlainFile, Scope, bindings, blocks

_Test = Callable[[ast.expr], bool]


def first_blocks(
    file: PlainFile, scope: Scope, loop: ast.For, is_summary: Callable[[ast.AST], bool]
) -> list[ast.If]:
    """The conditions of a tower, and of functions that it calls, under which it makes summaries, as the first one only."""
    found: list[ast.If] = []
    own = _tests(scope, loop)
    for each in ast.walk(loop):
        if isinstance(each, ast.If) and any(test(each.test) for test in own):
            found.append(each)
    functions = {e.name: e for e in file.tree.body if isinstance(e, ast.FunctionDef)}
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        function = functions.get(call.func.id)
        if function is None or len(file.uses(function.name)) != 1:
            continue
        for parameter, test in _given(scope, loop, function, call):
            if bindings(function, parameter) == 1:
                found += [e for e in ast.walk(function) if isinstance(e, ast.If) and test(e.test)]
    return [
        each
        for each in found
        if not each.orelse
        and all(isinstance(one, ast.Expr) and is_summary(one.value) for one in each.body)
    ]


def without_condition(file: PlainFile, block: ast.If) -> tuple[int, int, tuple[Part, ...]] | None:
    """The change that leaves an `if` away, and moves what stands in it to where it stood."""
    margin, inner = file.alone(block), file.alone(block.body[0])
    if margin is None or inner is None or len(inner) <= len(margin):
        return None
    start, end = file.starts[block.lineno - 1], file.end(block)
    head = file.text[start : file.starts[block.body[0].lineno - 1]]
    if (
        "#" in head
        or head.count("\n") != 1
        or any(
            isinstance(each, ast.Constant | ast.JoinedStr) and each.lineno != each.end_lineno
            for one in block.body
            for each in ast.walk(one)
            if isinstance(each, ast.expr)
        )
    ):
        return None
    parts: list[Part] = []
    at = file.starts[block.body[0].lineno - 1]
    while at < end:
        stop = file.text.find("\n", at)
        stop = end if stop < 0 or stop >= end else stop + 1
        line = file.text[at:stop]
        skipped = len(inner) - len(margin) if line[: len(inner)].strip() == "" else 0
        parts.append((at + skipped, stop))
        at = stop
    return start, end, tuple(parts)


def _tests(scope: Scope, loop: ast.For) -> list[_Test]:
    """What is true in the first turn of a loop only."""
    index, flag = _index(loop), _flag(scope, loop)
    found: list[_Test] = []
    if index is not None:
        found.append(lambda node: _is_zero(node, index))
    if flag is not None:
        name, initial = flag
        found.append(lambda node: _is_unset(node, name, initial))
    return found


def _given(
    scope: Scope, loop: ast.For, function: ast.FunctionDef, call: ast.Call
) -> Iterator[tuple[str, _Test]]:
    """The parameters of a function that tell the first tower, and what they are asked."""
    index, flag = _index(loop), _flag(scope, loop)
    names = [each.arg for each in function.args.args]
    pairs = list(zip(names, call.args, strict=False))
    pairs += [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    for parameter, value in pairs:
        if not isinstance(value, ast.Name):
            continue
        if value.id == index:
            yield parameter, lambda node, p=parameter: _is_zero(node, p)  # type: ignore[misc]
        elif flag is not None and value.id == flag[0]:
            yield parameter, lambda node, p=parameter, i=flag[1]: _is_unset(node, p, i)  # type: ignore[misc]


def _index(loop: ast.For) -> str | None:
    match loop:
        case ast.For(
            target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[_])
        ):
            return name
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]),
        ):
            return name
    return None


def _flag(scope: Scope, loop: ast.For) -> tuple[str, object] | None:
    """The name that is None, or False, in front of a loop, and True behind the first turn; and which of the two."""
    inside = {id(each) for each in ast.walk(loop)}
    for body, _ in blocks(scope):
        for each in body:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=True)) if (
                    id(each) in inside and bindings(scope, name) == 2
                ):
                    begun = [
                        one.value.value
                        for always, once in blocks(scope)
                        for one in always
                        if once
                        and isinstance(one, ast.Assign)
                        and one.lineno < loop.lineno
                        and isinstance(one.value, ast.Constant)
                        and any(isinstance(t, ast.Name) and t.id == name for t in one.targets)
                    ]
                    last = max(
                        (
                            e.lineno
                            for e in ast.walk(loop)
                            if isinstance(e, ast.Name)
                            and e.id == name
                            and isinstance(e.ctx, ast.Load)
                        ),
                        default=0,
                    )
                    if len(begun) == 1 and begun[0] in (None, False) and last < each.lineno:
                        if _is_plain(loop, each):
                            return name, begun[0]
    return None


def _is_plain(loop: ast.For, statement: ast.stmt) -> bool:
    """Whether every turn of a loop runs a statement of it: one of its own, or of a `with`."""
    waiting = list(loop.body)
    while waiting:
        each = waiting.pop()
        if each is statement:
            return True
        if isinstance(each, ast.With):
            waiting += each.body
    return False


def _is_zero(node: ast.expr, name: str) -> bool:
    return ast.unparse(node) in (f"{name} == 0", f"0 == {name}", f"not {name}")


def _is_unset(node: ast.expr, name: str, initial: object) -> bool:
    asked = {f"not {name}"}
    if initial is None:
        asked |= {f"{name} is None", f"{name} == None"}
    else:
        asked |= {f"{name} is False", f"{name} == False"}
    return ast.unparse(node) in asked


__all__ = ["first_blocks", "without_condition"]
