"""The value of an expression."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import arithmetic, calls
from towermigrate.distribute_scan import values as v
from towermigrate.distribute_scan.assumptions import hinted, product
from towermigrate.distribute_scan.scopes import Scope, canonical

if TYPE_CHECKING:
    from towermigrate.distribute_scan.interpret import Interpreter


def evaluate(reader: Interpreter, node: ast.expr, scope: Scope) -> v.Value:
    match node:
        case ast.Name():
            bound = scope.lookup(node.id)
            if bound is None and node.id in calls.BUILTINS:
                return v.External(node.id)
            return hinted(node.id, bound or v.unknown())
        case ast.Attribute():
            return attribute(reader, evaluate(reader, node.value, scope), node)
        case ast.Constant():
            return _constant(node.value)
        case ast.Call():
            return calls.call(reader, node, scope)
        case ast.BinOp():
            return _operation(reader, node, scope)
        case ast.UnaryOp():
            value = evaluate(reader, node.operand, scope)
            if isinstance(node.op, ast.USub):
                return arithmetic.negative(value)
            return value if isinstance(node.op, ast.UAdd) else v.unknown()
        case ast.Tuple() | ast.List():
            if any(isinstance(element, ast.Starred) for element in node.elts):
                return v.unknown()
            return v.listed([evaluate(reader, element, scope) for element in node.elts])
        case ast.Dict():
            table: dict[str, v.Value] = {}
            for key, item in zip(node.keys, node.values, strict=True):
                value = evaluate(reader, item, scope)
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    table[key.value] = value
            return v.Table(table)
        case ast.IfExp():
            evaluate(reader, node.test, scope)
            first = evaluate(reader, node.body, scope)
            return arithmetic.join(first, evaluate(reader, node.orelse, scope))
        case ast.Subscript():
            return _subscript(reader, node, scope)
        case ast.Lambda():
            return v.Function(node, scope, scope.path, node.lineno)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return _comprehension(reader, node, scope)
        case ast.NamedExpr():
            value = evaluate(reader, node.value, scope)
            reader.bind(node.target, value, scope)
            return value
        case ast.Await() | ast.Starred():
            return evaluate(reader, node.value, scope)
        case _:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    evaluate(reader, child, scope)
            return v.unknown()


def attribute(reader: Interpreter, owner: v.Value, node: ast.Attribute) -> v.Value:
    """What an attribute is, on an object of this value."""
    return hinted(node.attr, _attribute(reader, owner, node))


def _attribute(reader: Interpreter, owner: v.Value, node: ast.Attribute) -> v.Value:
    name = node.attr
    if name == "num_replicas_in_sync":
        return v.Number(1, 0)
    match owner:
        case v.External():
            return v.External(canonical(f"{owner.name}.{name}"))
        case v.ModuleRef():
            return reader.module(owner.path).names.get(name) or v.unknown()
        case v.Instance(kind=kind) | (v.ClassRef() as kind):
            found = kind.lookup(name)
            if found is not None:
                return found
    if name == "losses" and (v.is_blank(owner) or isinstance(owner, v.Instance)):
        return v.ModelLosses()
    if name in ("variables", "weights", "trainable_variables", "trainable_weights"):
        return v.Variables(not name.startswith("trainable"), ast.unparse(node))
    if name == "shape" and isinstance(owner, v.Tensor):
        return v.Shape()
    return v.unknown()


def _constant(value: object) -> v.Value:
    if value is None:
        return v.Nothing()
    if isinstance(value, str):
        return v.Text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return v.Number(literal=float(value) if abs(value) < 1e300 else None)
    return v.unknown()


def _operation(reader: Interpreter, node: ast.BinOp, scope: Scope) -> v.Value:
    first, second = evaluate(reader, node.left, scope), evaluate(reader, node.right, scope)
    match node.op:
        case ast.Add() | ast.Sub():
            if isinstance(first, v.Items) and isinstance(second, v.Items):
                return v.listed(first.values + second.values)
            return arithmetic.add(first, second)
        case ast.Mult():
            place = reader.place(node, scope)
            return product(reader, place, (first, node.left), (second, node.right))
        case ast.Div():
            return arithmetic.divide(first, second, reader.place(node, scope))
    return v.unknown()


def _subscript(reader: Interpreter, node: ast.Subscript, scope: Scope) -> v.Value:
    value = evaluate(reader, node.value, scope)
    match node.slice:
        case ast.Constant(value=int() as index):
            return item(value, index)
        case ast.Constant(value=str() as key) if isinstance(value, v.Table):
            return hinted(key, value.values.get(key, v.unknown()))
        case _:
            evaluate(reader, node.slice, scope)
    if isinstance(value, v.Many | v.Gradients | v.Variables):
        return value if isinstance(node.slice, ast.Slice) else entry(value)
    return v.unknown()


def _comprehension(
    reader: Interpreter, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope
) -> v.Value:
    inside = Scope(scope.path, parent=scope)
    for generator in node.generators:
        listed = evaluate(reader, generator.iter, inside)
        reader.bind(generator.target, entry(listed), inside)
        for test in generator.ifs:
            evaluate(reader, test, inside)
    element = evaluate(reader, node.elt, inside)
    match element:
        case v.Gradients() | v.Variables():
            return element
        case v.Items(values=(v.Gradients() as gradients, *_)):
            return gradients
    return v.Many(element)


def item(value: v.Value, index: int) -> v.Value:
    """`value[index]`."""
    match value:
        case v.Items(values=values):
            return values[index] if -len(values) <= index < len(values) else v.unknown()
        case v.PerReplica():
            return v.PerReplica(item(value.value, index))
        case v.Shape():
            return v.Count() if index == 0 else v.unknown()
    return entry(value)


def entry(value: v.Value) -> v.Value:
    """What a loop over `value` gives."""
    match value:
        case v.Items(values=(first, *others)):
            found: v.Value = first
            for other in others:
                found = arithmetic.join(found, other)
            return found
        case v.PerReplica():
            return v.PerReplica(entry(value.value))
        case v.Many():
            return value.value
        case v.Gradients() | v.Variables() | v.ModelLosses():
            return value
    return v.unknown()
