"""What statements do to the names of a scope. Both branches of an `if` are taken, and joined."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import assumptions
from towermigrate.distribute_scan import values as v
from towermigrate.distribute_scan.arithmetic import join
from towermigrate.distribute_scan.expressions import entry, evaluate, item
from towermigrate.distribute_scan.scopes import Scope, canonical
from towermigrate.tree import module_file

if TYPE_CHECKING:
    from towermigrate.distribute_scan.interpret import Interpreter


def execute(reader: Interpreter, statements: Iterable[ast.stmt], scope: Scope) -> bool:
    """Read statements; False where control does not come out at the end."""
    for statement in statements:
        reader.statements_left -= 1
        if not _statement(reader, statement, scope):
            return False
    return True


def _statement(reader: Interpreter, node: ast.stmt, scope: Scope) -> bool:
    match node:
        case ast.Expr():
            evaluate(reader, node.value, scope)
        case ast.Assign():
            value = evaluate(reader, node.value, scope)
            for target in node.targets:
                bind(reader, target, value, scope)
        case ast.AnnAssign(value=ast.expr() as assigned):
            bind(reader, node.target, evaluate(reader, assigned, scope), scope)
        case ast.AugAssign():
            _augment(reader, node, scope)
        case ast.Return():
            reader.returned(evaluate(reader, node.value, scope) if node.value else v.Nothing())
            return False
        case ast.Raise() | ast.Continue() | ast.Break():
            return False
        case ast.If():
            evaluate(reader, node.test, scope)
            return _branches(reader, node.body, node.orelse, scope)
        case ast.For() | ast.AsyncFor():
            bind(reader, node.target, entry(evaluate(reader, node.iter, scope)), scope)
            _branches(reader, [*node.body, *node.orelse], [], scope)
        case ast.While():
            evaluate(reader, node.test, scope)
            _branches(reader, [*node.body, *node.orelse], [], scope)
        case ast.With() | ast.AsyncWith():
            return _with(reader, node, scope)
        case ast.Try():
            going = execute(reader, [*node.body, *node.orelse], scope)
            for handler in node.handlers:
                _branches(reader, handler.body, [], scope)
            return execute(reader, node.finalbody, scope) and (going or bool(node.handlers))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            function = v.Function(node, scope, scope.path, node.lineno)
            reader.queue.append(function)
            known = all(_harmless(reader, d, scope) for d in node.decorator_list)
            scope.names[node.name] = function if known else v.unknown()
        case ast.ClassDef():
            _class(reader, node, scope)
        case ast.Import() | ast.ImportFrom():
            _import(reader, node, scope)
    return True


def _branches(
    reader: Interpreter, body: list[ast.stmt], orelse: list[ast.stmt], scope: Scope
) -> bool:
    before = dict(scope.names)
    first_goes = execute(reader, body, scope)
    first = scope.names
    scope.names = before
    second_goes = execute(reader, orelse, scope)
    second = scope.names
    if first_goes and second_goes:
        joined = {
            name: value if value is second[name] else join(value, second[name])
            for name, value in first.items()
            if name in second
        }
        scope.names = {**second, **first, **joined}
    elif first_goes:
        scope.names = first
    return first_goes or second_goes


def _with(reader: Interpreter, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
    mode = reader.mode
    for entered in node.items:
        value = evaluate(reader, entered.context_expr, scope)
        if entered.optional_vars is not None:
            bind(reader, entered.optional_vars, value, scope)
        match entered.context_expr:
            case ast.Call(func=ast.Attribute(attr="scope", value=receiver)) if mode == "plain":
                strategy = assumptions.strategy(receiver, evaluate(reader, receiver, scope))
                if strategy is not None and strategy.sure:
                    mode = "cross"
    with reader.in_mode(mode):
        return execute(reader, node.body, scope)


def _augment(reader: Interpreter, node: ast.AugAssign, scope: Scope) -> None:
    load = ast.copy_location(_as_load(node.target), node.target)
    expression = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
    bind(reader, node.target, evaluate(reader, expression, scope), scope)


def _as_load(node: ast.expr) -> ast.expr:
    match node:
        case ast.Name():
            return ast.Name(node.id, ast.Load())
        case ast.Attribute():
            return ast.Attribute(node.value, node.attr, ast.Load())
        case ast.Subscript():
            return ast.Subscript(node.value, node.slice, ast.Load())
    return node


def bind(reader: Interpreter, target: ast.expr, value: v.Value, scope: Scope) -> None:
    """Assign a value to a name, or to each of several, to an attribute or to an entry."""
    match target:
        case ast.Name():
            scope.names[target.id] = value
        case ast.Tuple() | ast.List():
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    bind(reader, element.value, v.unknown(), scope)
                else:
                    bind(reader, element, item(value, index), scope)
        case ast.Attribute():
            owner = evaluate(reader, target.value, scope)
            if isinstance(owner, v.Instance):
                held = owner.kind.attributes
                old = held.get(target.attr)
                held[target.attr] = value if old is None else join(old, value)
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            owner = evaluate(reader, target.value, scope)
            if isinstance(owner, v.Table):
                owner.values[key] = value


def _class(reader: Interpreter, node: ast.ClassDef, scope: Scope) -> None:
    inside = Scope(scope.path, parent=scope)
    bases = [evaluate(reader, base, scope) for base in node.bases]
    methods: dict[str, v.Function] = {}
    attributes: dict[str, v.Value] = {}
    kind = v.ClassRef(
        scope.path, node.lineno, methods, attributes,
        tuple(base for base in bases if isinstance(base, v.ClassRef)),
    )  # fmt: skip
    queued = len(reader.queue)
    execute(reader, node.body, inside)
    for name, value in inside.names.items():
        if isinstance(value, v.Function) and value.scope is inside:
            # Methods do not see the names of the class body.
            methods[name] = replace(value, scope=scope, owner=kind)
        else:
            attributes[name] = value
    reader.queue[queued:] = [
        replace(f, scope=scope, owner=kind) if f.scope is inside else f
        for f in reader.queue[queued:]
    ]
    scope.names[node.name] = kind


def _import(reader: Interpreter, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            first = alias.name if alias.asname else alias.name.split(".")[0]
            scope.names[alias.asname or first] = _named(reader, scope.path, 0, first)
        elif alias.name != "*":
            dotted = ".".join(part for part in (node.module, alias.name) if part)
            value = _named(reader, scope.path, node.level, dotted)
            if isinstance(value, v.External) and node.module is not None:
                module = _named(reader, scope.path, node.level, node.module)
                if isinstance(module, v.ModuleRef):
                    value = reader.module(module.path).names.get(alias.name) or v.unknown()
            scope.names[alias.asname or alias.name] = value


def _named(reader: Interpreter, path: str, level: int, dotted: str) -> v.Value:
    found = module_file(reader.sources, path, level, dotted)
    return v.ModuleRef(found) if found not in (None, path) else v.External(canonical(dotted))


def _harmless(reader: Interpreter, decorator: ast.expr, scope: Scope) -> bool:
    """Whether a decorator leaves a function's meaning alone."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    value = evaluate(reader, decorator, scope)
    return (isinstance(value, v.External) and value.name.startswith("tensorflow")) or (
        isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod")
    )
