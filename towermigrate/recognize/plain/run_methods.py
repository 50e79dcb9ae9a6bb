"""Methods that run something and are called several times, or in the midst of expressions: functions of where they are called, which see the object.

`def evaluate(self, sess, data)` of the class that trains, which `train` calls as `self.evaluate(sess, valid)` in each epoch and
as `self.evaluate(sess, test)` behind the last one, is `def evaluate(data)` in `train`, in front of its first call: there it sees
`self` and `sess`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from towermigrate.recognize.plain.attributes import holder_of, plain_classes
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.run_functions import RunFunction
from towermigrate.recognize.python_scopes import Unjoined, only_plain, own_nodes

_RUNS = re.compile(r"\.(run|restore|save)\(")
_LOOKS = re.compile(r"\b[hg]etattr\b|\bhasattr\b|\bsetattr\b|\bdelattr\b|__dict__|\bvars\(")


def run_methods(several: bool, file: PlainFile) -> list[Change]:
    """A method of the class that builds towers, called by one function of the file: one at a time.

    Args:
        several: only methods that are called several times.
    """
    if ".run(" not in file.text or _LOOKS.search(file.text) or file.finds_names_by_text:
        return []
    for node, methods in plain_classes(file):
        for method in methods.values():
            if not _RUNS.search(file.of(method)) or method.name.startswith("__"):
                continue
            if len(methods) < 3 or method.name in file.words_of_users:
                continue
            for where, scope, holder in _holders(file, node, methods):
                if scope is method:
                    continue
                try:
                    made = RunMethod(file, scope, node, method, holder, where)
                    if len(made.calls) > several:
                        return made.changes()
                except Unjoined:
                    continue
    return []


def _holders(
    file: PlainFile, node: ast.ClassDef, methods: Mapping[str, ast.FunctionDef]
) -> Iterator[tuple[str, Scope, str]]:
    """The functions that have an object of a class by a name that they bind once, with the outermost one's name."""
    for method in methods.values():
        yield node.name, method, holder_of(method)
    for where, scope in file.scopes:
        if isinstance(scope, ast.FunctionDef) and scope not in file.tree.body:
            continue
        for each in own_nodes(scope):
            match each:
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=made))
                ) if made == node.name and bindings(scope, name) == 1:
                    yield where, scope, name


class RunMethod(RunFunction):
    """One method, by what one function calls the object."""

    def __init__(
        self,
        file: PlainFile,
        scope: Scope,
        node: ast.ClassDef,
        method: ast.FunctionDef,
        holder: str,
        where: str,
    ) -> None:
        self.node, self.holder = node, holder
        self.name = method.name
        super().__init__(file, scope, method, where)

    def _is_outside(self) -> bool:
        return True

    def _goes_with(self, start: int, end: int) -> tuple[int, int]:
        text = self.file.text
        if self.function is not self.node.body[-1]:
            return super()._goes_with(start, end)
        while text[:start].endswith("\n\n"):
            start -= 1
        return start - 1, end

    def _only_plain(self) -> None:
        only_plain(self.function, of_class=True)

    def _parameters(self) -> list[str]:
        return [each.arg for each in self.function.args.args[1:]]

    def _calls(self) -> list[ast.Call]:
        name = self.function.name
        others = self._modules() | self._savers()
        named = [
            each
            for each in self.file.nodes
            if isinstance(each, ast.Attribute)
            and each.attr == name
            and ast.unparse(each.value) not in others
        ]
        calls = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == name
            and isinstance(each.func.value, ast.Name)
            and each.func.value.id == self.holder
        ]
        texts = [
            each
            for each in self.file.nodes
            if isinstance(each, ast.Constant) and each.value == name
        ]
        if texts or {id(each) for each in named} != {id(each.func) for each in calls}:
            raise Unjoined
        if not calls or self._is_read_in_place(calls):
            raise Unjoined
        return calls

    def _is_read_in_place(self, calls: list[ast.Call]) -> bool:
        """Whether a method is called once, by a statement, so that it can be read as a part of the function that calls it."""
        returns = [each for each in own_nodes(self.function) if isinstance(each, ast.Return)]
        if len(calls) > 1 or returns not in ([], [self.function.body[-1]]):
            return False
        return any(_is_plain(each, calls[0]) for each in ast.walk(self.scope))

    def _modules(self) -> set[str]:
        """Names that are those of imported modules alone."""
        names = {
            (each.asname or each.name).partition(".")[0]
            for node in self.file.tree.body
            if isinstance(node, ast.Import)
            for each in node.names
        }
        return {each for each in names if bindings(self.file.tree, each) == 1}

    def _savers(self) -> set[str]:
        """What is bound to a saver of TensorFlow and nothing else: its `save` is no method of the class."""
        bound: dict[str, list[bool]] = {}
        stored: Counter[str] = Counter()
        for each in self.file.nodes:
            if isinstance(each, ast.Assign):
                is_saver = isinstance(each.value, ast.Call) and ast.unparse(each.value.func) == "tf.train.Saver"  # fmt: skip
                for target in each.targets:
                    bound.setdefault(ast.unparse(target), []).append(is_saver)
            if isinstance(each, ast.Name | ast.Attribute) and not isinstance(each.ctx, ast.Load):
                stored[ast.unparse(each)] += 1
            elif isinstance(each, ast.alias):
                stored[(each.asname or each.name).partition(".")[0]] += 1
        return {
            name
            for name, savers in bound.items()
            if all(savers)
            and len(savers) == stored[name]
            and not any(isinstance(each, ast.arg) and each.arg == name for each in self.file.nodes)
        }

    def _always_given(self) -> dict[str, str]:
        return {**super()._always_given(), self.function.args.args[0].arg: self.holder}

    def _taken(self) -> dict[str, str]:
        """New names for those, also of parameters, that several functions around the object have.

        They are read as one, in which a function that stands in it may not have names of others.
        """
        keywords = {each.arg for call in self.calls for each in call.keywords}
        around = [each for each in self._around() if each is not self.function]
        own = {each.arg for each in self.function.args.args[1:]} | _stored(self.function)
        often = {name for name in own if sum(name in _bound_in(one) for one in around) > 1}
        found = super()._taken()
        for name in sorted(often - keywords - found.keys() - {"_"}):
            found[name] = self.file.fresh(name)
        return found

    def _around(self) -> list[ast.FunctionDef]:
        """The methods of the class, and the functions that make an object of it."""
        makers = [
            each
            for each in self.file.tree.body
            if isinstance(each, ast.FunctionDef)
            and any(
                isinstance(one, ast.Name) and one.id == self.node.name for one in ast.walk(each)
            )
        ]
        return [each for each in self.node.body if isinstance(each, ast.FunctionDef)] + makers

    def _renamed_calls(self) -> list[Change]:
        """`self.evaluate(` as `evaluate(`."""
        taken = self._seen_in_scope()
        name = self.function.name
        if name in taken:
            raise Unjoined
        found = []
        for each in self.calls:
            start, end = self.file.span(each.func)
            if "\n" in self.file.text[start:end]:
                raise Unjoined
            found.append(Change(start, end, (name,), self.where))
        return found

    def _seen_in_scope(self) -> set[str]:
        """Names that a scope, or what it sees of the file, has."""
        found = {each.id for each in ast.walk(self.scope) if isinstance(each, ast.Name)}
        found |= {each.id for each in ast.walk(self.function) if isinstance(each, ast.Name)}
        found |= {each.arg for each in ast.walk(self.scope) if isinstance(each, ast.arg)}
        found |= {each.arg for each in ast.walk(self.function) if isinstance(each, ast.arg)}
        found |= {
            each.name
            for each in ast.walk(self.scope)
            if isinstance(each, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and each.name
            if each is not self.scope and each is not self.function
        }
        found |= {
            (each.asname or each.name).partition(".")[0]
            for each in ast.walk(self.scope)
            if isinstance(each, ast.alias)
        }
        if isinstance(self.scope, ast.Module):
            inner = {id(each) for each in self.node.body}
            found |= {
                each.name
                for each in self.file.nodes
                if isinstance(each, ast.FunctionDef) and id(each) not in inner
            }
        return found


def _stored(function: ast.FunctionDef) -> set[str]:
    return {
        each.id
        for each in own_nodes(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }


def _bound_in(function: ast.FunctionDef) -> set[str]:
    return _stored(function) | {each.arg for each in function.args.args}


def _is_plain(node: ast.AST, call: ast.Call) -> bool:
    """Whether a statement is a call, or binds names to what it returns."""
    match node:
        case ast.Expr(value=value):
            return value is call
        case ast.Assign(targets=[ast.Name()], value=value):
            return value is call
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value):
            return value is call and all(isinstance(each, ast.Name) for each in parts)
    return False


__all__ = ["run_methods"]
