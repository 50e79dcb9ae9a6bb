"""Functions inside of the one that trains: one that runs what it is given in place of its call, others behind the initialiser.

`def run(ops)` stands where `_, value = run([train_op, loss])` calls it. `def evaluate()`, which stands in front of the run that
initialises the variables, stands behind that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, bindings, blocks
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.moved import Edit, at_margin
from towermigrate.recognize.python_scopes import Unjoined, own_nodes

_UPDATES = ("apply_gradients", "minimize", "group")


def inner_steps(file: PlainFile) -> list[Change]:
    """The functions of functions that run the update which they are given, called once each, by a statement."""
    found: list[Change] = []
    for where, scope in _training(file):
        updates = {
            target.id
            for each in own_nodes(scope)
            if isinstance(each, ast.Assign) and _updates(each.value)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        for function in _functions(scope):
            try:
                found += _Inner(file, scope, function, updates, where).changes()
            except Unjoined:
                continue
    return found


def later_functions(file: PlainFile) -> list[Change]:
    """The functions of functions that run something, behind the run of an initialiser."""
    found: list[Change] = []
    for where, scope in _training(file):
        for function in _functions(scope):
            try:
                found += _later(file, scope, function, where)
            except Unjoined:
                continue
    return found


def _training(file: PlainFile) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that open a session and have functions in them."""
    if ".run(" not in file.text or "Session(" not in file.text or file.finds_names_by_text:
        return
    for where, scope in file.scopes:
        if isinstance(scope, ast.FunctionDef):
            own = [each for each in own_nodes(scope) if isinstance(each, ast.Call)]
            if any(ast.unparse(each.func).endswith("Session") for each in own):
                yield where, scope


def _functions(scope: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    for each in once_in(scope):
        if isinstance(each, ast.FunctionDef) and ".run(" in ast.unparse(each):
            yield each


def _updates(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _UPDATES
    )


def _plain(file: PlainFile, scope: ast.FunctionDef, function: ast.FunctionDef) -> list[ast.Name]:
    """Where a function in a scope is called; raises where it is more than that, or may be another one."""
    spec, name = function.args, function.name
    if function.decorator_list or spec.vararg or spec.kwarg or spec.posonlyargs or spec.kwonlyargs:
        raise Unjoined
    if function.returns or any(each.annotation for each in spec.args):
        raise Unjoined
    if not all(isinstance(each, ast.Constant) for each in spec.defaults):
        raise Unjoined
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        raise Unjoined
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
    called = {id(each.func) for each in ast.walk(scope) if isinstance(each, ast.Call)}
    inside = {id(each) for each in ast.walk(function)}
    if not uses or any(id(each) not in called or id(each) in inside for each in uses):
        raise Unjoined
    return uses


# ---- behind the initialiser ---------------------------------------------------------------------------


def _later(
    file: PlainFile, scope: ast.FunctionDef, function: ast.FunctionDef, where: str
) -> Iterator[Change]:
    uses = _plain(file, scope, function)
    inits = [
        each
        for each in once_in(scope)
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.value.func).endswith(".run")
        and "initializer" in ast.unparse(each)
        and each.lineno > function.lineno
    ]
    if not inits:
        return
    last = inits[-1]
    body = next(body for body, _ in blocks(scope) if any(each is last for each in body))
    at = next(n for n, each in enumerate(body) if each is last) + 1
    if at == len(body) or any(file.start(each) < file.start(body[at]) for each in uses):
        return
    old, new = file.alone(function), file.alone(body[at])
    own = next(body for body, _ in blocks(scope) if any(each is function for each in body))
    if old is None or new is None or len(own) < 2:
        return
    first = file.above(function)
    end = file.block.end_of_line(function)
    text = at_margin(file, first, end, old, new)
    place = file.above(body[at])
    yield Change(first, _behind(file, end), (), where)
    yield Change(place, place, ("\n", *text, "\n\n"), where)


def _behind(file: PlainFile, end: int) -> int:
    """Behind a function and the empty lines that part it from what follows."""
    stop = end
    while stop < len(file.text):
        line = file.text.find("\n", stop)
        if line < 0 or file.text[stop:line].strip():
            break
        stop = line + 1
    return stop


# ---- a step in place of its call ----------------------------------------------------------------------


class _Inner:
    """A function that makes a step, and the one statement that calls it."""

    def __init__(
        self,
        file: PlainFile,
        scope: ast.FunctionDef,
        function: ast.FunctionDef,
        updates: set[str],
        where: str,
    ) -> None:
        self.file, self.scope, self.function, self.where = file, scope, function, where
        uses = _plain(file, scope, function)
        calls = [
            each
            for each in own_nodes(scope)
            if isinstance(each, ast.Assign | ast.Expr)
            and isinstance(each.value, ast.Call)
            and each.value.func is uses[0]
        ]
        if len(uses) != 1 or len(calls) != 1 or file.start(calls[0]) < file.start(function):
            raise Unjoined
        (self.statement,) = calls
        assert isinstance(self.statement.value, ast.Call)
        self.call = self.statement.value
        body = list(function.body)
        if ast.get_docstring(function) is not None:
            body = body[1:]
        returns = [each for each in ast.walk(function) if isinstance(each, ast.Return)]
        self.returned: ast.expr | None = None
        if body and isinstance(body[-1], ast.Return):
            self.returned = body[-1].value
            body = body[:-1]
            returns = returns[:-1] if len(returns) == 1 else returns
        if returns:
            raise Unjoined
        self.body = body
        asked: list[ast.expr] = [self.call]
        if isinstance(self.returned, ast.Call) and ast.unparse(self.returned.func).endswith(".run"):
            asked.append(self.returned)  # all that a run gives
        named = [e.id for one in asked for e in ast.walk(one) if isinstance(e, ast.Name)]
        if not updates & set(named):
            raise Unjoined
        self._only_simple()

    def _only_simple(self) -> None:
        for each in ast.walk(self.function):
            if each is self.function:
                continue
            if isinstance(
                each,
                ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda | ast.Global
                | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await | ast.alias
                | ast.ExceptHandler | ast.NamedExpr | ast.Delete | ast.GeneratorExp,
            ):  # fmt: skip
                raise Unjoined

    def changes(self) -> list[Change]:
        file, statement = self.file, self.statement
        margin = file.alone(statement)
        if margin is None or file.commented(*file.span(statement)):
            raise Unjoined
        new = self._names()
        parts: list[Part] = []
        for name, value in self.bound:
            parts += [f"{name} = ", value, f"\n{margin}"]
        if self.body:
            inner = file.alone(self.body[0])
            if inner is None:
                raise Unjoined
            start = file.starts[self.body[0].lineno - 1]
            end = file.block.end_of_line(self.body[-1])
            rows = at_margin(file, start, end, inner, margin, self._edits(self.body, new))
            parts += [*rows[1:]] if rows[0] == margin else rows
        if self.left is not None:
            returned = self._renamed(self.left, new)
            given = [f"{self._targets()} = "] if isinstance(statement, ast.Assign) else []
            parts += [f"\n{margin}" if self.body else "", *given, *returned]
        start, end = file.span(statement)
        first = file.above(self.function)
        gone = _behind(file, file.block.end_of_line(self.function))
        own = next(
            body for body, _ in blocks(self.scope) if any(each is self.function for each in body)
        )
        if len(own) < 2 or file.alone(self.function) is None:
            raise Unjoined
        return [
            Change(first, gone, (), self.where),
            Change(start, end, tuple(parts), self.where),
        ]

    def _targets(self) -> str:
        assert isinstance(self.statement, ast.Assign)
        return self.file.text[
            self.file.start(self.statement.targets[0]) : self.file.end(self.statement.targets[0])
        ]

    def _names(self) -> Mapping[str, str | tuple[int, int]]:
        """What stands for each name of the function's own where it is called.

        `bound` are names that are given their values there, `left` is what is left of what it returns.
        """
        file = self.file
        parameters = [each.arg for each in self.function.args.args]
        given = self._given(parameters)
        stored = {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        own = stored | set(parameters)
        inside = {id(each) for each in ast.walk(self.function)}
        outside = {
            each.id
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Name) and id(each) not in inside
        } | {
            each.arg
            for each in ast.walk(self.scope)
            if isinstance(each, ast.arg) and id(each) not in inside
        }
        read = {
            each.id
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        }
        new: dict[str, str | tuple[int, int]] = {}
        self.bound: list[tuple[str, tuple[int, int]]] = []
        in_call = {each.id for each in ast.walk(self.call) if isinstance(each, ast.Name)}
        theirs = self._returned_to(stored, parameters, in_call)
        new.update(theirs)
        for name in sorted(own - theirs.keys()):
            value = given.get(name)
            if value is not None and name not in stored and self._is_fixed(name, value, theirs):
                new[name] = file.span(value)
                continue
            fresh = name
            if name in outside and name in read or name in theirs.values():
                fresh = file.fresh(f"{self.function.name}_{name}")
            new[name] = fresh
            if value is not None:
                self.bound.append((fresh, file.span(value)))
        self.bound.sort(key=lambda one: one[1][0])
        return new

    def _is_fixed(self, name: str, value: ast.expr, theirs: Mapping[str, str]) -> bool:
        """Whether an argument is the same wherever its parameter stands: a name that nothing binds, or what is only run."""
        for each in ast.walk(value):
            if not isinstance(each, ast.Name | ast.Constant | ast.List | ast.Tuple | ast.Load):
                return False
            if isinstance(each, ast.Name):
                if each.id in theirs.values() or each.id in self.file.shared_between_functions:
                    return False
        if not isinstance(value, ast.List | ast.Tuple):
            return True
        run = [
            id(each.args[0])
            for each in ast.walk(self.function)
            if isinstance(each, ast.Call) and each.args and ast.unparse(each.func).endswith(".run")
        ]
        reads = [e for e in ast.walk(self.function) if isinstance(e, ast.Name) and e.id == name]
        return all(id(each) in run for each in reads) and not self.file.commented(
            *self.file.span(value)
        )

    def _given(self, parameters: list[str]) -> dict[str, ast.expr]:
        call, defaults = self.call, self.function.args.defaults
        if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(
            parameters
        ):
            raise Unjoined
        given: dict[str, ast.expr] = dict(zip(parameters, call.args, strict=False))
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in given or keyword.arg not in parameters:
                raise Unjoined
            given[keyword.arg] = keyword.value
        missing = parameters[len(parameters) - len(defaults) :] if defaults else []
        for name, value in zip(missing, defaults, strict=True):
            given.setdefault(name, value)
        if set(given) != set(parameters):
            raise Unjoined
        return given

    def _returned_to(
        self, stored: set[str], parameters: list[str], in_call: set[str]
    ) -> dict[str, str]:
        """The names of the caller for what the function returns by a name of its own."""
        self.left = self.returned
        if self.returned is None:
            if isinstance(self.statement, ast.Assign):
                raise Unjoined
            return {}
        if not isinstance(self.statement, ast.Assign):
            if isinstance(self.returned, ast.Name | ast.Constant):
                self.left = None
            return {}
        if len(self.statement.targets) != 1:
            raise Unjoined
        targets = _names_in(self.statement.targets[0])
        values = _names_in(self.returned)
        if targets is None or values is None or len(targets) != len(values):
            return {}
        if len(set(values)) != len(values) or len(set(targets)) != len(targets):
            return {}
        inside = {each.id for each in ast.walk(self.function) if isinstance(each, ast.Name)}
        for value, target in zip(values, targets, strict=True):
            if value not in stored or value in parameters or target in in_call:
                return {}
            if target != value and target in inside:
                return {}
        if any(isinstance(each, ast.Try) for each in ast.walk(self.scope)) and len(self.body) > 1:
            return {}
        self.left = None
        return dict(zip(values, targets, strict=True))

    def _edits(self, nodes: list[ast.stmt], new: Mapping[str, str | tuple[int, int]]) -> list[Edit]:
        found: list[Edit] = []
        for node in nodes:
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and each.id in new and new[each.id] != each.id:
                    found.append(self._edit(each, new[each.id]))
        return found

    def _edit(self, node: ast.Name, new: str | tuple[int, int]) -> Edit:
        start = self.file.start(node)
        if not self.file.text.startswith(node.id, start):
            raise Unjoined  # in a text, of which older Pythons do not tell
        text = new if isinstance(new, str) else self.file.text[new[0] : new[1]]
        if "\n" in text:
            raise Unjoined
        return start, start + len(node.id), text

    def _renamed(self, node: ast.expr, new: Mapping[str, str | tuple[int, int]]) -> list[Part]:
        start, end = self.file.span(node)
        if self.file.commented(start, end) or "\n" in self.file.text[start:end]:
            raise Unjoined
        parts: list[Part] = []
        edits = [
            self._edit(each, new[each.id])
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and each.id in new
        ]
        for where, till, text in sorted(edits):
            parts += [(start, where), text]
            start = till
        return [*parts, (start, end)]


def _names_in(node: ast.expr) -> list[str] | None:
    """`['a', 'b']` of `a, b`, `['a']` of `a`."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Tuple):
        names = [each.id for each in node.elts if isinstance(each, ast.Name)]
        return names if len(names) == len(node.elts) else None
    return None


__all__ = ["inner_steps", "later_functions"]
