"""Expressions as they read inside a tower and inside a step."""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst

from towermigrate.emit.templates import Templates
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.kinds import Kind, collection_key
from towermigrate.recognize.proof.expressions import in_copies_only
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import argument, code, reads, walk


class _Replace(cst.CSTTransformer):
    """Replace nodes by what a function says of the original, outermost first."""

    def __init__(self, replacement: Callable[[cst.CSTNode], cst.CSTNode | None]) -> None:
        self.replacement = replacement
        self.found: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        new = self.replacement(node)
        if new is not None:
            self.found[node] = new
            return False
        return True

    def on_leave(  # type: ignore[override]
        self, original: cst.CSTNode, updated: cst.CSTNode
    ) -> cst.CSTNode:
        return self.found.get(original, updated)


def replace(
    node: cst.CSTNode, replacement: Callable[[cst.CSTNode], cst.CSTNode | None]
) -> cst.CSTNode:
    result = node.visit(_Replace(replacement))
    assert isinstance(result, cst.CSTNode)
    return result


def parenthesized_like(original: cst.CSTNode, new: cst.BaseExpression) -> cst.BaseExpression:
    """The new expression in the parentheses of the old."""
    lpar = getattr(original, "lpar", ())
    return (
        new.with_changes(lpar=list(lpar), rpar=list(getattr(original, "rpar", ()))) if lpar else new
    )


def variable_lists(
    file: SourceFile, templates: Templates, variables: str
) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    """`tf.trainable_variables(s)` and its kin -> `variables.trainable(s)`."""

    def is_resource(node: cst.CSTNode) -> bool:
        return (
            isinstance(node, cst.Call)
            and file.tf(node.func) in ("tf.get_collection", "tf.get_collection_ref")
            and collection_key(file, node) == "TRAINABLE_RESOURCE_VARIABLES"
        )

    def new(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            # TF1 lists resource variables in both collections' sum; `trainable` knows both kinds.
            if is_resource(node.right):
                left = replace(node.left, new)
                assert isinstance(left, cst.BaseExpression)
                return parenthesized_like(node, left)
            if is_resource(node.left):
                right = replace(node.right, new)
                assert isinstance(right, cst.BaseExpression)
                return parenthesized_like(node, right)
        if not isinstance(node, cst.Call):
            return None
        name = file.tf(node.func)
        scope: cst.BaseExpression | None = None
        if name in ("tf.trainable_variables", "tf.global_variables", "tf.all_variables"):
            method = "trainable" if name == "tf.trainable_variables" else "all"
            scope = argument(node, 0, "scope")
        elif name in ("tf.get_collection", "tf.get_collection_ref"):
            key = collection_key(file, node)
            if key in (
                "TRAINABLE_VARIABLES",
                "TRAINABLE_RESOURCE_VARIABLES",
                "trainable_variables",
            ):
                method = "trainable"
            elif key in ("GLOBAL_VARIABLES", "variables"):
                method = "all"
            else:
                return None
            scope = argument(node, 1, "scope")
        else:
            return None
        inside = "" if scope is None else code(scope)
        return templates.expression(f"{variables}.{method}({inside})")

    return new


def in_step(
    analysis: Analysis, templates: Templates, variables: str
) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    """What changes in a graph statement that moves into a step."""
    lists = variable_lists(analysis.file, templates, variables)
    kinds = analysis.kinds

    def new(node: cst.CSTNode) -> cst.CSTNode | None:
        changed = lists(node)
        if changed is not None:
            return changed
        name = _asked_name(node)
        if name is not None and kinds.of_name(name) is not Kind.TOWER:
            return _ask(node, templates.expression(f"tm.op_name({name})"))
        if isinstance(node, cst.Attribute):
            if (
                node.attr.value == "name"
                and isinstance(node.value, cst.Attribute)
                and node.value.attr.value == "op"
                and isinstance(node.value.value, cst.Name)
                and kinds.of_name(node.value.value.value) is not Kind.TOWER
            ):
                return templates.expression(f"tm.op_name({node.value.value.value})")
            # Only the value of a chain is an expression; the attribute names are not.
            if (
                isinstance(node.value, cst.Name)
                and kinds.of_name(node.value.value) is Kind.SCHEDULE
            ):
                return None
        if isinstance(node, cst.Name) and kinds.of_name(node.value) is Kind.SCHEDULE:
            return templates.expression(f"tm.value({node.value})")
        return None

    return _expressions_only(new)


def _asked_name(node: cst.CSTNode) -> str | None:
    """`v` of `'d/' in v.name` and `v.name.startswith('d')`; with `:0` behind it the name says the same."""
    told: cst.CSTNode | None = None
    asked: cst.CSTNode | None = None
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        target = node.comparisons[0]
        if isinstance(target.operator, cst.In | cst.NotIn):
            asked, told = node.left, target.comparator
            text = asked.evaluated_value if isinstance(asked, cst.SimpleString) else None
            if isinstance(text, str) and not in_copies_only(text):
                return None  # the copies of a variable say the same
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "startswith" and len(node.args) == 1:
            asked, told = node.args[0].value, node.func.value
    plain = isinstance(told, cst.Attribute) and told.attr.value == "name"
    text = asked.evaluated_value if isinstance(asked, cst.SimpleString) else None
    if not plain or not isinstance(text, str) or ":" in text or text == "0":
        return None
    assert isinstance(told, cst.Attribute)
    return told.value.value if isinstance(told.value, cst.Name) else None


def _ask(node: cst.CSTNode, name: cst.BaseExpression) -> cst.CSTNode:
    """The same question of another name."""
    if isinstance(node, cst.Comparison):
        (target,) = node.comparisons
        return node.with_changes(comparisons=[target.with_changes(comparator=name)])
    assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.with_changes(func=node.func.with_changes(value=name))


def in_tower(
    analysis: Analysis, templates: Templates
) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    """What changes in a statement that stays in the tower: the loop's index, reuse flags, inline inputs."""
    body = analysis.body

    def new(node: cst.CSTNode) -> cst.CSTNode | None:
        name = body.inline.get(node)
        if name is not None:
            return cst.Name(name)
        if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "reuse":
            first = _for_first_tower(node.value, body.index)
            if first is not None:
                return node.with_changes(value=templates.expression(first))
            if body.index is not None and body.index in reads(node.value):
                raise refuse(
                    "TM214", analysis.file, node,
                    f"`{code(node)}` decides by the tower's index whether variables are reused, and more",
                )  # fmt: skip
        if isinstance(node, cst.Name):
            if node.value == body.index:
                return templates.expression("tm.tower_index()")
            if node.value in body.flags:
                return cst.Name(body.flags[node.value])
        return None

    return _expressions_only(new)


_OF_THE_INDEX = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not,
    ast.IfExp, ast.Call,
)  # fmt: skip
"""What says by the tower's index alone whether variables are reused."""


def _for_first_tower(node: cst.BaseExpression, index: str | None) -> str | None:
    """The value of a `reuse=` argument that depends on the tower's index, for the first tower."""
    if index is None:
        return None
    if isinstance(node, cst.IfExp):
        chosen = _for_first_tower(node.test, index)
        if chosen in ("True", "False"):
            return code(node.body if chosen == "True" else node.orelse)
        return None
    try:
        tree = ast.parse(code(node), mode="eval")
    except SyntaxError:
        return None  # over several lines
    asked = [each for each in ast.walk(tree) if not isinstance(each, _OF_THE_INDEX)]
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    if asked or index not in names or names - {index, "bool"}:
        return None
    value = eval(compile(tree, "reuse", "eval"), {"__builtins__": {}, "bool": bool, index: 0})
    return repr(value) if value is None or value is True else "False" if not value else None


def _expressions_only(
    new: Callable[[cst.CSTNode], cst.CSTNode | None],
) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
    """Leave names alone that are no values: attributes, keywords, assignment targets, parameters."""
    skip: set[int] = set()

    def guarded(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.Attribute):
            skip.add(id(node.attr))
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            skip.add(id(node.keyword))
        elif isinstance(node, cst.AssignTarget):
            _skip_names(node.target, skip)
        elif isinstance(node, cst.Param):
            skip.add(id(node.name))
        if id(node) in skip:
            return None
        return new(node)

    return guarded


def _skip_names(node: cst.CSTNode, skip: set[int]) -> None:
    if isinstance(node, cst.Name):
        skip.add(id(node))
    elif isinstance(node, cst.Tuple | cst.List):
        for element in node.elements:
            _skip_names(element.value, skip)


def is_plain(node: cst.CSTNode) -> bool:
    """Whether it is the same whenever an expression is evaluated: a name, a number, a text."""
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    return isinstance(node, cst.Name | cst.Integer | cst.Float | cst.SimpleString)


def may_act(node: cst.CSTNode) -> bool:
    """Whether to evaluate an expression may do more than to give a value: a call, a property."""
    return any(
        isinstance(each, cst.Call | cst.Attribute | cst.Await | cst.Yield) for each in walk(node)
    )
