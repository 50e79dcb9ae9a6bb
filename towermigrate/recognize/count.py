"""How many towers a loop makes, and the literal that says so."""

from __future__ import annotations

import libcst as cst

from towermigrate.program import Count
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import (
    argument,
    code,
    counted_by,
    dotted,
    integer,
    statements,
    text,
    walk,
)


def tower_count(
    tree: Tree, file: SourceFile, loop: cst.For, function: cst.FunctionDef | None
) -> Count:
    """The tower count of `range(n)` or `enumerate(devices)`, with the literal behind it when there is one."""
    assert isinstance(loop.iter, cst.Call)
    name = (dotted(loop.iter.func) or "").split(".")[-1]
    expression = counted_by(loop.iter) or loop.iter.args[-1].value
    if name == "enumerate":
        return Count(f"len({code(expression)})", "devices", dotted(expression))
    value = integer(expression)
    if value is not None:
        return Count(code(expression), "constant", None, file.span(expression), value)
    chain = dotted(expression)
    if chain is None:
        return Count(code(expression), "unknown")
    root, _, attribute = chain.partition(".")
    if not attribute:
        local = _assigned_literal(function, chain) if function is not None else None
        if local is None and function is not None:
            found = _parameter(tree, file, function, chain)
            if found is not None:
                return found
        literal = local if local is not None else _assigned_literal(file.module, chain)
        if literal is not None:
            return Count(chain, "constant", chain, file.span(literal), integer(literal))
        return Count(chain, "unknown", chain)
    flag = attribute.split(".")[-1]
    return _flag(tree, chain, flag) or Count(chain, "attribute", flag)


def _flag(tree: Tree, expression: str, flag: str) -> Count | None:
    """The count as a command-line flag of the tree: `DEFINE_integer('num_gpus', 1)`, `--num_gpus`."""
    for path in sorted(tree.sources):
        source = tree.sources[path]
        if "DEFINE_integer" not in source and "add_argument" not in source:
            continue
        if flag not in source.replace("-", "_"):
            continue
        other = tree.file(path)
        if other is None:
            continue
        for node in walk(other.module):
            if isinstance(node, cst.Call):
                literal = _flag_default(node, flag)
                if literal is not None:
                    return Count(expression, "flag", flag, other.span(literal), integer(literal))
    return None


def _flag_default(call: cst.Call, flag: str) -> cst.Integer | None:
    method = (dotted(call.func) or "").split(".")[-1]
    if method == "DEFINE_integer" and call.args and text(call.args[0].value) == flag:
        default = argument(call, 1, "default") or argument(call, None, "default_value")
        return default if isinstance(default, cst.Integer) else None
    if method == "add_argument":
        names = [text(a.value) for a in call.args if a.keyword is None]
        if any(n and n.lstrip("-").replace("-", "_") == flag for n in names):
            default = argument(call, None, "default")
            return default if isinstance(default, cst.Integer) else None
    return None


def _assigned_literal(scope: cst.Module | cst.FunctionDef, name: str) -> cst.Integer | None:
    """The integer of the only assignment `name = 4` of a scope."""
    body = scope if isinstance(scope, cst.Module) else scope.body
    found: list[cst.BaseExpression] = []

    def visit(block: cst.Module | cst.BaseSuite) -> None:
        for statement in statements(block):
            if isinstance(statement, cst.SimpleStatementLine):
                for node in statement.body:
                    if isinstance(node, cst.Assign):
                        for target in node.targets:
                            if isinstance(target.target, cst.Name) and target.target.value == name:
                                found.append(node.value)
            elif isinstance(statement, cst.With):
                visit(statement.body)

    visit(body)
    return found[0] if len(found) == 1 and isinstance(found[0], cst.Integer) else None


def _parameter(tree: Tree, file: SourceFile, function: cst.FunctionDef, name: str) -> Count | None:
    """The count given as an argument: the literal of the only call, else the parameter's default."""
    params = [*function.params.params, *function.params.kwonly_params]
    positions = [p.name.value for p in params]
    if name not in positions:
        return None
    position = positions.index(name)
    given: list[tuple[SourceFile, cst.BaseExpression]] = []
    for path in sorted(tree.sources):
        if function.name.value not in tree.sources[path]:
            continue
        other = tree.file(path)
        if other is None:
            continue
        for node in walk(other.module):
            if isinstance(node, cst.Call):
                target = tree.resolve(other, node.func)
                if target is not None and target.node is function:
                    value = argument(node, position, name)
                    if value is not None:
                        given.append((other, value))
    if len(given) == 1:
        where, value = given[0]
        if isinstance(value, cst.Integer):
            return Count(name, "argument", name, where.span(value), integer(value))
        chain = dotted(value)
        if chain is not None and "." in chain:
            # `train(args.num_gpus)`: the flag is what a user sets.
            return _flag(tree, name, chain.split(".")[-1]) or Count(name, "unknown", name)
        if chain is not None:
            literal = _assigned_literal(where.module, chain)
            if literal is not None:
                return Count(name, "constant", chain, where.span(literal), integer(literal))
        return Count(name, "unknown", name)
    default = params[position].default
    if not given and isinstance(default, cst.Integer):
        return Count(name, "argument", name, file.span(default), integer(default))
    return Count(name, "unknown", name)
