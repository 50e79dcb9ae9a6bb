"""The number of towers as a program writes it, and where in the program it is known."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.emit.blocks import Scope, around, has_line, lines_of, suites_of
from towermigrate.emit.inherited import of_its_class, of_self, of_super
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import (
    argument,
    binds,
    counted_by,
    dotted,
    elements,
    parameters,
    reads,
    walk,
)

_COUNTED = frozenset({"split", "strip"})
_CHOOSES = frozenset({"max", "min"})


@dataclass(frozen=True)
class TowerCount:
    """The number of towers as an expression, and the scope whose names it reads."""

    tree: Tree
    expression: cst.BaseExpression
    scope: Scope

    def at(self, callee: Scope, caller: Scope, call: cst.Call) -> TowerCount | None:
        """The number as the caller of a function gives it; None where that is not plain.

        Args:
            callee: the function that is called, whose names the number reads, or the attributes of its object.
            caller: the function that calls it, or a module.
            call: the call.
        """
        function = callee.function
        if function is None or self.scope.function is None:
            return self
        counted = self._as_made(callee)
        function = counted.scope.function
        assert function is not None
        names = set(reads(counted.expression)) & {*parameters(function), *binds(function.body)}
        if not names or (names == {"self"} and of_its_class(call)):
            return counted
        if names & set(binds(function.body)) or any(arg.star for arg in call.args):
            return None
        args = list(call.args)
        if of_its_class(call) and not of_self(call) and not of_super(call):
            args = args[1:]  # `Base.__init__(self, n)`
        given: dict[str, cst.BaseExpression] = {}
        positions = [name for name in parameters(function) if name != "self"]
        for name in names:
            position = positions.index(name) if name in positions else None
            value = argument(call.with_changes(args=args), position, name) or _default(function, name)  # fmt: skip
            if name == "self":
                value = cst.Name("self") if of_its_class(call) else None
            if value is None:
                return None
            given[name] = value
        changed = counted.expression.visit(_Names(given))
        assert isinstance(changed, cst.BaseExpression)
        return TowerCount(self.tree, changed, caller)

    def _as_made(self, callee: Scope) -> TowerCount:
        """The number in terms of what `__init__` is given, where that is what it keeps."""
        function = callee.function
        if function is None or function.name.value != "__init__":
            return self
        given = set(parameters(function)) - {"self", *binds(function.body)}
        values: dict[str, cst.BaseExpression] = {}
        for node in walk(self.expression):
            chain = dotted(node) or ""
            if not isinstance(node, cst.Attribute) or not chain.startswith("self."):
                continue
            if chain.count(".") == 1:
                kept = [
                    value
                    for owner in dict.fromkeys(map(_class_around, (callee, self.scope)))
                    for value in _values_in(owner, chain)
                ]
                if len(kept) != 1 or not _is_plain(kept[0]) or not set(reads(kept[0])) <= given:
                    return self
                if not _attribute_bound_before(callee, function, chain, sys.maxsize):
                    return self
                values[chain] = kept[0]
        if not values:
            return self
        changed = self.expression.visit(_Attributes(values))
        assert isinstance(changed, cst.BaseExpression)
        return TowerCount(self.tree, changed, callee)

    def known_at(self, scope: Scope, block: Sequence[cst.CSTNode], place: int) -> str | None:
        """The number of towers, where all that it reads is known in front of `block[place]`."""
        if not _is_plain(self.expression):
            return None
        counted = self.expression
        line = scope.file.line(block[place])
        for name in reads(counted):
            if name == "len":
                continue
            if name in _CHOOSES:
                if self._is_bound(scope, name):
                    return None
                continue
            known = self._self_is_known if name == "self" else self._is_known
            if not known(scope, name, line):
                return None
        for node in walk(counted):
            if isinstance(node, cst.Call) and dotted(node.func) == "len":
                if not self._has_length(node.args[0].value):
                    return None
        return cst.Module(body=[]).code_for_node(counted)

    def _is_bound(self, scope: Scope, name: str) -> bool:
        """Whether a name of Python's may mean another thing in the files that the number is, or was, written in."""
        functions = [each for each in (self.scope.function, scope.function) if each is not None]
        return (
            self._owner(name) is not None
            or any(
                name in each.bound or name in each.imports or each.star_imports
                for each in (self.scope.file, scope.file)
            )
            or any(name in (*parameters(each), *binds(each.body)) for each in functions)
        )

    def _kept_before(self, scope: Scope, counted: cst.BaseExpression, line: int) -> bool:
        """Whether `self.num_gpus` was set before a line of another method of the same class."""
        own, other = self.scope, scope.function
        if own.file is not scope.file or other is None or own.function is None:
            return False
        named = {each.node: qualified for qualified, each in scope.file.functions.items()}
        classes = [named.get(each, "").rpartition(".")[0] for each in (own.function, other)]
        if classes[0] != classes[1] or not classes[0]:
            return False
        wanted = {dotted(each) for each in walk(counted) if isinstance(each, cst.Attribute)}
        return all(
            any(
                isinstance(each, cst.Assign)
                and scope.file.span(each).end_line < line
                and any(dotted(target.target) == name for target in each.targets)
                for each in walk(other.body)
            )
            for name in wanted
            if name is not None and name.startswith("self.")
        )

    def _is_known(self, scope: Scope, name: str, line: int) -> bool:
        function = scope.function
        if scope.file is not self.scope.file:
            return self._is_everywhere(scope, name, line)
        own = self._owner(name)
        if own is not None and function is own:
            if name in parameters(own) and name not in binds(own.body):
                return True
            return _bound_before(scope, own.body, name, line)
        if own is not None or (
            function is not None and name in (*parameters(function), *binds(function.body))
        ):
            return False  # another value of that name
        if function is None:
            return _bound_before(scope, scope.file.module, name, line)
        return name in binds(scope.file.module)

    def _is_everywhere(self, scope: Scope, name: str, line: int) -> bool:
        """Whether a name means the same in another file: one module, or the flags of the program."""
        own = self.scope
        if any(
            each is not None and name in (*parameters(each), *binds(each.body))
            for each in (own.function, scope.function)
        ):
            return False
        modules = [
            self.tree.module_path(file.path, file.imports[name])
            for file in (own.file, scope.file)
            if name in file.imports
        ]
        if len(modules) == 2:
            return modules[0] is not None and modules[0] == modules[1]
        values = [_module_values(file, name) for file in (own.file, scope.file)]
        flags = all(
            len(found) == 1 and (file.tf(found[0]) or "").endswith("flags.FLAGS")
            for found, file in zip(values, (own.file, scope.file), strict=True)
        )
        return flags and (
            scope.function is not None or _bound_before(scope, scope.file.module, name, line)
        )

    def _owner(self, name: str) -> cst.FunctionDef | None:
        """The innermost function around what reads the number whose own name this is; None where it is global."""
        scope = self.scope
        while scope.function is not None:
            if name in (*parameters(scope.function), *binds(scope.function.body)):
                return scope.function
            scope = around(scope)
        return None

    def _self_is_known(self, scope: Scope, name: str, line: int) -> bool:
        """Whether the attributes of `self` that the number reads have their values in front of a line."""
        function = scope.function
        if function is not None and function is not self.scope.function:
            return self._kept_before(scope, self.expression, line)
        if function is None:
            return False
        wanted = {
            chain
            for node in walk(self.expression)
            if isinstance(node, cst.Attribute)
            and (chain := dotted(node) or "").startswith("self.")
            and chain.count(".") == 1
        }
        return name in parameters(function) and all(
            _attribute_bound_before(scope, function, chain, line) for chain in wanted
        )

    def _has_length(self, node: cst.BaseExpression) -> bool:
        """Whether `len` of it is certainly allowed: a list, and no iterator."""
        if isinstance(node, cst.Call):
            return isinstance(node.func, cst.Attribute) and node.func.attr.value == "split"
        file = self.scope.file
        root, _, name = (dotted(node) or "").rpartition(".")
        if root:
            path = self.tree.module_path(file.path, file.imports.get(root, ""))
            other = self.tree.file(path) if path and root in file.imports else None
            if other is None:
                return False
            file = other
        values = _module_values(file, name) if root else _values(file, name)
        return bool(values) and all(_is_list(value) for value in values)


def tower_count_of(over: cst.BaseExpression) -> cst.BaseExpression | None:
    """The number of towers that a loop's iterable says, as an expression; None where it says none.

    Example:
        >>> counted = tower_count_of(cst.parse_expression("enumerate(zip(devices, parts))"))
        >>> cst.Module([]).code_for_node(counted)
        'len(devices)'
    """
    while isinstance(over, cst.Call) and over.args and isinstance(over.func, cst.Name):
        name, first = over.func.value, over.args[0].value
        if name in ("range", "xrange"):
            return counted_by(over)
        if name not in ("enumerate", "zip", "list", "tuple", "sorted", "reversed"):
            return None
        if over.args[0].star:
            return None
        over = first
    if isinstance(over, cst.Call):  # six.moves.xrange(n), six.moves.range(n)
        name = (dotted(over.func) or "").rpartition(".")[2]
        return counted_by(over) if name in ("range", "xrange") else None
    shown = elements(over)
    if shown is not None:
        return cst.Integer(str(len(shown)))
    if isinstance(over, cst.Name | cst.Attribute):
        return cst.Call(cst.Name("len"), [cst.Arg(over)])
    return None


def _default(function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """The number that a parameter has where a call does not give it."""
    for each in (*function.params.params, *function.params.kwonly_params):
        if each.name.value == name and isinstance(each.default, cst.Integer):
            return each.default
    return None


class _Names(cst.CSTTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, given: Mapping[str, cst.BaseExpression]) -> None:
        self.given = given

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.given.get(original_node.value, updated_node)


class _Attributes(cst.CSTTransformer):
    """Puts expressions in the place of attributes of `self`."""

    def __init__(self, given: Mapping[str, cst.BaseExpression]) -> None:
        self.given = given

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return self.given.get(dotted(original_node) or "", updated_node)


def _class_around(scope: Scope) -> cst.CSTNode:
    """The class that a method is one of; the file of a function."""
    return next(
        (
            node
            for node in scope.file.module.body
            if isinstance(node, cst.ClassDef) and any(each is scope.function for each in walk(node))
        ),
        scope.file.module,
    )


def _values(file: SourceFile, name: str) -> list[cst.BaseExpression]:
    """Everything that is assigned to a name anywhere in a file."""
    return _values_in(file.module, name)


def _values_in(node: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """Everything that is assigned to a name below a node."""
    return [
        found.value
        for found in walk(node)
        if isinstance(found, cst.Assign)
        and any(dotted(target.target) == name for target in found.targets)
    ]


def _module_values(file: SourceFile, name: str) -> list[cst.BaseExpression]:
    """What is assigned to a name of a module, at its outermost level; nothing where a function does it too."""
    outermost = [
        each.value
        for line in file.module.body
        if isinstance(line, cst.SimpleStatementLine)
        for each in line.body
        if isinstance(each, cst.Assign)
        and any(dotted(target.target) == name for target in each.targets)
    ]
    return outermost if len(outermost) == len(_values(file, name)) else []


def _is_plain(node: cst.CSTNode) -> bool:
    """Whether an expression may be written once more, elsewhere: names, attributes, numbers, lengths of them."""
    if isinstance(node, cst.Call):
        if dotted(node.func) in ("len", "int"):
            return len(node.args) == 1 and _is_plain(node.args[0].value)
        if dotted(node.func) in _CHOOSES:
            return len(node.args) > 1 and all(
                arg.keyword is None and not arg.star and _is_plain(arg.value) for arg in node.args
            )
        return (
            isinstance(node.func, cst.Attribute)
            and node.func.attr.value in _COUNTED
            and _is_plain(node.func.value)
            and all(isinstance(arg.value, cst.SimpleString) for arg in node.args)
        )
    if isinstance(node, cst.BinaryOperation):
        return _is_plain(node.left) and _is_plain(node.right)
    return isinstance(node, cst.Integer) or dotted(node) is not None


def _is_list(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.List | cst.Tuple | cst.ListComp):
        return True
    if isinstance(node, cst.BinaryOperation):
        return _is_list(node.left) or _is_list(node.right)
    return (
        isinstance(node, cst.Call)
        and (dotted(node.func) in ("list", "sorted") or re.search(r"\.r?split$", _callee(node)) is not None)
    )  # fmt: skip


def _callee(call: cst.Call) -> str:
    return f".{call.func.attr.value}" if isinstance(call.func, cst.Attribute) else ""


def _bound_before(scope: Scope, block: cst.BaseSuite | cst.Module, name: str, line: int) -> bool:
    """Whether a name is bound, once, by a statement that ends before a line and surely runs."""
    found: list[int] = []

    def visit(lines: Iterable[cst.CSTNode], *, sure: bool) -> None:
        for each in lines:
            if isinstance(each, cst.FunctionDef | cst.ClassDef):
                if each.name.value == name:
                    found.append(sys.maxsize)
            elif isinstance(each, cst.SimpleStatementLine | cst.SimpleStatementSuite):
                if name in binds(each):
                    found.append(scope.file.span(each).end_line if sure else sys.maxsize)
            elif isinstance(each, cst.With):
                if any(item.asname is not None and name in binds(item) for item in each.items):
                    found.append(sys.maxsize)
                visit(lines_of(each.body), sure=sure)
            elif has_line(scope.file, each, line):
                for suite in suites_of(
                    each
                ):  # whoever comes to the line comes from above it in its block
                    inside = lines_of(suite)
                    here = any(has_line(scope.file, one, line) for one in inside)
                    visit(inside, sure=sure and here)
            elif name in binds(each):
                # Bound in a branch or loop: surely bound behind it only where each way binds it.
                found.append(
                    scope.file.span(each).end_line if _both_bind(each, name) else sys.maxsize
                )

    visit(lines_of(block), sure=True)
    return bool(found) and all(end < line for end in found)


def _attribute_bound_before(scope: Scope, function: cst.FunctionDef, name: str, line: int) -> bool:
    """Whether `self.x` has its value in front of a line: from an earlier call, or set by a statement that surely runs."""
    found = [
        node
        for node in walk(function.body)
        if isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign)
        and name in map(dotted, _targets(node))
    ]
    if not found:
        return function.name.value != "__init__"
    sure = [
        small
        for each in lines_of(function.body)
        if isinstance(each, cst.SimpleStatementLine)
        for small in each.body
    ]
    return all(scope.file.span(node).end_line < line for node in found) and any(
        node is each for node in found for each in sure
    )


def _targets(node: cst.Assign | cst.AnnAssign | cst.AugAssign) -> list[cst.CSTNode]:
    if not isinstance(node, cst.Assign):
        return [node.target]
    return [
        each for target in node.targets for each in (elements(target.target) or [target.target])
    ]


def _both_bind(node: cst.CSTNode, name: str) -> bool:
    if not isinstance(node, cst.If) or node.orelse is None:
        return isinstance(node, cst.Try)
    other = node.orelse
    rest = _both_bind(other, name) if isinstance(other, cst.If) else name in binds(other.body)
    return name in binds(node.body) and rest
