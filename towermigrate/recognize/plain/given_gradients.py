"""Functions that give a tower's gradients, with its loss or of one: the tower takes them itself, of the loss that it is given.

`loss, grads = tower_loss(opt, x, y)`, where the last that the function does is `opt.compute_gradients(loss)`, is
`loss = tower_loss(x, y)` and `grads = opt.compute_gradients(loss)`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    OF_TOWERS,
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
)
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.source import Tree


def given_gradients(
    tree: Tree, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """The changes of a file with such functions."""
    del tree
    if "compute_gradients" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for outer, scope, loop in loops_of_towers(file):
        for statement in ast.walk(loop):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            given = _Given.of(file, scope, statement, statement.value)
            made = given.changes(outer) if given is not None else []
            allowed = None if where is None else where.get(file.path, ())
            if allowed is None or all(one.scope in allowed for one in made):
                found += made
    return found


@dataclass(frozen=True)
class _Given:
    """A call of a function that takes gradients and does nothing behind that.

    `taken` is the call that takes them, `place` which of the function's results they are; `values` are what its
    parameters are given.
    """

    file: PlainFile
    scope: Scope
    statement: ast.Assign
    call: ast.Call
    targets: Sequence[str]
    function: ast.FunctionDef
    taken: ast.Call
    place: int
    results: Sequence[ast.expr]
    values: Mapping[str, ast.expr]

    @classmethod
    def of(
        cls, file: PlainFile, scope: Scope, statement: ast.Assign, call: ast.Call
    ) -> _Given | None:
        targets = _targets(statement)
        function = _function(file, scope, call)
        if targets is None or function is None or file.alone(statement) is None:
            return None
        values = _values(function, call)
        last = function.body[-1]
        if values is None or not isinstance(last, ast.Return) or last.value is None:
            return None
        if sum(isinstance(each, ast.Return) for each in ast.walk(function)) > 1:
            return None
        results = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        if len(results) != len(targets):
            return None
        for place, each in enumerate(results):
            taken = _taken(file, function, each)
            if taken is not None:
                return cls(
                    file, scope, statement, call, targets, function, taken, place, results, values
                )
        return None

    def changes(self, outer: str) -> list[Change]:
        loss = self.taken.args[0] if self.taken.args else None
        written = self._written_here()
        if not isinstance(loss, ast.Name) or written is None:
            return []
        if bindings(self.function, loss.id) != 1:
            return []
        margin = self.file.alone(self.statement) or ""
        target = self.targets[self.place]
        if loss.id in self.values:
            return self._alone(outer, loss, target, written)
        names = [each.id if isinstance(each, ast.Name) else "" for each in self.results]
        targets = [*self.targets]
        parts: list[Part] = []
        if loss.id in names:
            of = targets[names.index(loss.id)]
            del targets[self.place]
        else:
            of = targets[self.place] = self.file.free(self.scope, "loss", "tower_loss")
        for number, each in enumerate(self.results):
            if number != self.place:
                parts += [", "] * bool(parts) + [self.file.span(each)]
            elif loss.id not in names:
                parts += [", "] * bool(parts) + [loss.id]
        optimizer = ast.unparse(self.taken.func).partition(".")[0]
        if len(set(self.targets)) != len(self.targets) or target == optimizer:
            return []
        inside, own = OF_TOWERS + self.function.name, self.file
        result = self.function.body[-1]
        assert isinstance(result, ast.Return) and result.value is not None
        if own.commented(*own.span(result.value)):
            return []
        found = [Change(*own.span(result.value), tuple(parts), inside)]
        bound = self.function.body[-2] if isinstance(self.results[self.place], ast.Name) else None
        if bound is not None:
            if own.alone(bound) is None or own.commented(*own.without(bound)):
                return []
            found.append(Change(*own.without(bound), (), inside))
        head = f"{', '.join(targets)} = "
        taken = own.span(self.taken.func)  # the author's own words, at which `verify` looks
        behind: tuple[Part, ...] = (f"\n{margin}{target} = ", taken, f"({of}{written})")
        found += self._without_unread(inside, outer, head, behind)
        return found

    def _alone(self, outer: str, loss: ast.Name, target: str, written: str) -> list[Change]:
        """A function that does nothing else: what it is given is what it takes the gradients of."""
        given = self.values[loss.id]
        body = [each for each in self.function.body if not _says(each)]
        if len(self.results) != 1 or not isinstance(given, ast.Name):
            return []
        if len(body) > 2 or len(body) == 2 and not isinstance(self.results[0], ast.Name):
            return []
        taken = self.file.span(self.taken.func)
        parts: tuple[Part, ...] = (f"{target} = ", taken, f"({given.id}{written})")
        made = Change(*self.file.span(self.statement), parts, outer)
        if len(body) < len(self.function.body) or self.file.commented(
            *self.file.span(self.function)
        ):
            return [made]
        start, end = self.file.start(self.function), self.file.end(self.function)
        if self.file.above(self.function) != self.file.starts[self.function.lineno - 1]:
            return [made]
        rest = self.file.text[end:]
        stop = end + len(rest) - len(rest.lstrip("\n"))
        return [made, Change(start, stop, (), OF_TOWERS + self.function.name)]

    def _written_here(self) -> str | None:
        """What the call is given behind the loss, as the tower would write it; None where it, or the optimizer, has another name there."""
        func = self.taken.func
        assert isinstance(func, ast.Attribute)
        if not isinstance(func.value, ast.Name) or self._here(func.value) != func.value.id:
            return None
        if self.file.of(func) != ast.unparse(func):
            return None
        rest = ""
        for each in self.taken.args[1:]:
            text = self._here(each)
            if text is None:
                return None
            rest += f", {text}"
        for keyword in self.taken.keywords:
            text = self._here(keyword.value)
            if keyword.arg is None or text is None:
                return None
            rest += f", {keyword.arg}={text}"
        return rest

    def _here(self, node: ast.expr) -> str | None:
        """An expression of the function as the tower would write it; None where it cannot."""
        if isinstance(node, ast.Name) and node.id in self.values:
            given = self.values[node.id]
            plain = isinstance(given, ast.Name) or isinstance(given, ast.Constant)
            return ast.unparse(given) if plain and bindings(self.function, node.id) == 1 else None
        for each in ast.walk(node):
            if isinstance(each, ast.Lambda | ast.NamedExpr | ast.ListComp | ast.GeneratorExp):
                return None
            if isinstance(each, ast.Name):
                if bindings(self.function, each.id):
                    return None
                if any(bindings(around, each.id) for around in self._functions_around()):
                    return None
        return ast.unparse(node)

    def _functions_around(self) -> list[ast.FunctionDef]:
        """The function of the tower loop and those around it, which may have another object under a name of the module."""
        return [
            each
            for each in self.file.nodes
            if isinstance(each, ast.FunctionDef) and any(n is self.scope for n in ast.walk(each))
        ]

    def _without_unread(
        self, inside: str, outer: str, head: str, behind: tuple[Part, ...]
    ) -> list[Change]:
        """The call, and the function's parameters, without those that nothing reads any more."""
        file, spec = self.file, self.function.args
        gone = {id(each) for each in ast.walk(self.taken)}
        read = {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and id(each) not in gone
        }
        unread = {each.arg for each in spec.args} - read
        of_call = {each.id for each in ast.walk(self.taken) if isinstance(each, ast.Name)}
        unread &= of_call & self.values.keys()
        call: tuple[Part, ...] = (head, file.span(self.call), *behind)
        start, end = file.span(self.statement)
        if not unread or len(unread) == len(spec.args) or file.commented(start, end):
            return [Change(start, end, call, outer)]
        final = spec.defaults[-1] if spec.defaults else None
        last = file.end(final) if final is not None else _end(file, spec.args[-1])
        if file.commented(_start(file, spec.args[0]), last):
            return [Change(start, end, call, outer)]
        shift = len(spec.args) - len(spec.defaults)
        kept: list[Part] = []
        for number, each in enumerate(spec.args):
            default = spec.defaults[number - shift] if number >= shift else None
            if each.arg not in unread:
                stop = file.end(default) if default is not None else _end(file, each)
                kept += [", "] * bool(kept) + [(_start(file, each), stop)]
        handed: list[Part] = []
        for number, value in enumerate(self.call.args):
            if spec.args[number].arg not in unread:
                handed += [", "] * bool(handed) + [file.span(value)]
        for keyword in self.call.keywords:
            if keyword.arg not in unread:
                handed += [", "] * bool(handed) + [f"{keyword.arg}=", file.span(keyword.value)]
        name = file.span(self.call.func)
        return [
            Change(_start(file, spec.args[0]), last, tuple(kept), inside),
            Change(start, end, (head, name, "(", *handed, ")", *behind), outer),
        ]


def _start(file: PlainFile, node: ast.arg) -> int:
    return file.starts[node.lineno - 1] + _column(file, node.lineno, node.col_offset)


def _end(file: PlainFile, node: ast.arg) -> int:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return file.starts[node.end_lineno - 1] + _column(file, node.end_lineno, node.end_col_offset)


def _column(file: PlainFile, line: int, column: int) -> int:
    """A column in characters, which Python counts in bytes."""
    text = file.text[file.starts[line - 1] :].split("\n", 1)[0]
    return len(text.encode()[:column].decode())


def _says(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _targets(statement: ast.Assign) -> list[str] | None:
    if len(statement.targets) != 1:
        return None
    (target,) = statement.targets
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [each.id for each in parts if isinstance(each, ast.Name)]
    return names if len(names) == len(parts) else None


def _function(file: PlainFile, scope: Scope, call: ast.Call) -> ast.FunctionDef | None:
    """The function of the file that a call calls, and nothing else does."""
    if not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    made = [
        each for each in file.tree.body if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    if len(made) != 1 or bindings(file.tree, name) != 1 or name in file.words_of_users:
        return None
    if [id(each) for each in file.uses(name)] != [id(call.func)] or made[0].decorator_list:
        return None
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom,
             ast.Global, ast.Nonlocal)  # fmt: skip
    (only,) = made
    if only is scope or only.body[0].lineno == only.lineno:
        return None
    return None if any(isinstance(e, inner) and e is not only for e in ast.walk(only)) else only


def _values(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """What each parameter is given; None where that does not show."""
    spec = function.args
    if spec.vararg or spec.kwarg or spec.posonlyargs or spec.kwonlyargs:
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if len(call.args) > len(spec.args):
        return None
    found = {own.arg: value for own, value in zip(spec.args, call.args, strict=False)}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in found:
            return None
        found[keyword.arg] = keyword.value
    return found


def _taken(file: PlainFile, function: ast.FunctionDef, result: ast.expr) -> ast.Call | None:
    """The call of `compute_gradients` that a result is, as the last that the function does."""
    value: ast.expr = result
    if isinstance(result, ast.Name):
        bound = function.body[-2] if len(function.body) > 1 else None
        if not isinstance(bound, ast.Assign) or len(bound.targets) != 1:
            return None
        (target,) = bound.targets
        if not isinstance(target, ast.Name) or target.id != result.id:
            return None
        uses = [e for e in ast.walk(function) if isinstance(e, ast.Name) and e.id == result.id]
        if len(uses) != 2:
            return None
        value = bound.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if value.func.attr != "compute_gradients" or file.commented(*file.span(value)):
        return None
    return value


__all__ = ["given_gradients"]
