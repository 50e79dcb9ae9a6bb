"""Functions that the one that builds the towers is given: called there by their own names.

`train(model_fn, input_fn, optimizer)`, called once as `train(model, lambda: iterator.get_next(), optimizer)`, is
`train(iterator, optimizer)`, in which the towers call `model` and take their inputs from the iterator.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, bindings, stores
from towermigrate.recognize.plain.collected import is_tower_loop
from towermigrate.recognize.plain.handed_on import functions_of
from towermigrate.recognize.plain.one_call import OneCall, changed_together
from towermigrate.recognize.python_scopes import Unjoined, bound_by, own_nodes
from towermigrate.recognize.source import Tree


def given_functions(
    tree: Tree, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """The changes of the tower loop's file; none where a function that they belong to stays as it is."""
    return changed_together(
        tree, where, file, _builds, lambda function: _Given(tree, file, function).changes()
    )


def _builds(function: ast.FunctionDef) -> bool:
    names = {each.arg for each in function.args.args}
    loops = [
        each for each in own_nodes(function) if isinstance(each, ast.For) and is_tower_loop(each)
    ]
    called = {
        each.func.id
        for loop in loops
        for each in ast.walk(loop)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    handed = {
        one.id
        for loop in loops
        for each in ast.walk(loop)
        if isinstance(each, ast.Call)
        for one in each.args
        if isinstance(one, ast.Name)
    }
    return bool(names & (called | handed))


@dataclass(frozen=True)
class _Reads:
    """A function that only asks an iterator for its next batch: the iterator's name, how it asks, and its definition, if any."""

    iterator: str
    asking: ast.expr
    definition: ast.FunctionDef | None


class _Given(OneCall):
    def changes(self) -> list[Change]:
        names: dict[str, str] = {}
        readers: dict[str, _Reads] = {}
        for parameter in self.function.args.args:
            own = parameter.arg
            value = self.given.get(own)
            if value is None or bindings(self.function, own) != 1 or parameter.annotation:
                continue
            if not self._only_own(own):
                continue
            if self._is_function(value):
                assert isinstance(value, ast.Name)
                names[own] = value.id
            elif (reads := self._reads_iterator(value)) is not None:
                readers[own] = reads
        if not names and not readers:
            raise Unjoined
        return [*self._renamed(names), *self._read(names, readers), *self._handed(names, readers)]

    def _loads(self, name: str) -> list[ast.Name]:
        return [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]

    def _only_own(self, name: str) -> bool:
        """Whether a parameter is read by the function itself only."""
        inside = {id(each) for each in own_nodes(self.function)}
        loads = self._loads(name)
        return bool(loads) and all(id(each) in inside for each in loads)

    # ---- what the function is given

    def _is_function(self, value: ast.expr) -> bool:
        """Whether an argument is a function of the module, by a name that always has it and means it in both functions."""
        if not isinstance(value, ast.Name):
            return False
        name = value.id
        if bindings(self.caller, name) or bindings(self.function, name):
            return False
        if name in self.file.shared_between_functions or self.is_set_elsewhere(name):
            return False
        binding = [each for each in self.file.tree.body if name in bound_by(each)]
        inside = len(stores(self.file.tree, name))
        if len(binding) != 1 or inside:
            return False
        (only,) = binding
        if isinstance(only, ast.FunctionDef):
            return only.name == name
        if not isinstance(only, ast.ImportFrom):
            return False
        try:
            return any(True for _ in functions_of(self.tree, self.file, value))
        except (Unjoined, SyntaxError):
            return False

    def _reads_iterator(self, value: ast.expr) -> _Reads | None:
        """What an argument reads: `iterator.get_next`, `lambda: iterator.get_next()`, or a function in the caller of that form."""
        definition: ast.FunctionDef | None = None
        asked: ast.expr | None = None
        match value:
            case ast.Attribute(value=ast.Name(), attr="get_next"):
                asked = ast.Call(value, [], [])
            case ast.Lambda(
                args=ast.arguments(args=[], posonlyargs=[], kwonlyargs=[], vararg=None, kwarg=None),
                body=body,
            ):
                asked = body
            case ast.Name(id=name):
                definition = self._definition(name)
                asked = None if definition is None else _returned(definition)
        match asked:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=iterator), attr="get_next"),
                args=[],
                keywords=[],
            ) if bindings(self.caller, iterator) == 1:
                # bound before, once, so that it is the same at the call as whenever the function is called
                bound = [
                    each.lineno
                    for each in self.caller.body
                    if isinstance(each, ast.Assign)
                    for target in each.targets
                    if isinstance(target, ast.Name) and target.id == iterator
                ]
                if bound and bound[0] < self.call.lineno:
                    return _Reads(
                        iterator, value if isinstance(value, ast.Attribute) else asked, definition
                    )
        return None

    def _definition(self, name: str) -> ast.FunctionDef | None:
        found = [
            each
            for each in self.caller.body
            if isinstance(each, ast.FunctionDef) and each.name == name
        ]
        uses = [
            each for each in ast.walk(self.caller) if isinstance(each, ast.Name) and each.id == name
        ]
        if len(found) != 1 or bindings(self.caller, name) != 1 or len(uses) != 1:
            return None
        return None if found[0].decorator_list or self.file.alone(found[0]) is None else found[0]

    # ---- what stands there instead

    def _renamed(self, names: Mapping[str, str]) -> list[Change]:
        """The functions' own names where the parameters were read."""
        return [
            Change(*self.file.span(each), (new,), self.function.name)
            for own, new in names.items()
            for each in self._loads(own)
        ]

    def _read(self, names: Mapping[str, str], readers: Mapping[str, _Reads]) -> list[Change]:
        """The iterator's next batch where a function that gives it was called, or handed to a model that calls it."""
        found: list[Change] = []
        own = self.function.name
        taken: set[str] = set()
        for parameter, reads in readers.items():
            iterator = reads.iterator
            if bindings(self.function, iterator) or self._loads(iterator) or iterator in taken:
                raise Unjoined
            taken.add(iterator)
            waiting = self._loads(parameter)
            for each in own_nodes(self.function):
                if isinstance(each, ast.Call) and each.func in waiting:
                    if each.args or each.keywords:
                        raise Unjoined
                    waiting.remove(each.func)
                    span = self.file.span(each)
                    found.append(Change(*span, self._asked(reads), own))
            for each in own_nodes(self.function):
                if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
                    given = [one for one in each.value.args if one in waiting]
                    if len(given) == 1 and self._calls_first(each.value, given[0], names):
                        waiting.remove(given[0])
                        found += self._asked_before(each, given[0], reads)
            if waiting:
                raise Unjoined
        return found

    def _asked_before(self, statement: ast.Assign, given: ast.expr, reads: _Reads) -> list[Change]:
        margin = self.file.alone(statement)
        assert isinstance(statement.value, ast.Call)
        others = [*statement.value.args, *(each.value for each in statement.value.keywords)]
        plain = all(isinstance(each, ast.Name | ast.Constant) for each in others)
        if margin is None or not plain or self.file.commented(*self.file.span(statement)):
            raise Unjoined
        name = self.file.free(self.function, "batch", "inputs")
        at, own = self.file.above(statement), self.function.name
        return [
            Change(at, at, (f"{margin}{name} = ", *self._asked(reads), "\n"), own),
            Change(*self.file.span(given), (f"lambda: {name}",), own),
        ]

    def _asked(self, reads: _Reads) -> tuple[Part, ...]:
        """The author's words for the next batch, so that it is known where they stand."""
        span = self.file.span(reads.asking)
        return (span, "()") if isinstance(reads.asking, ast.Attribute) else (span,)

    def _calls_first(self, call: ast.Call, given: ast.expr, names: Mapping[str, str]) -> bool:
        """Whether the function that is called begins by calling what it is given, and reads it nowhere else."""
        if not isinstance(call.func, ast.Name):
            return False
        name = ast.Name(names.get(call.func.id, call.func.id), ast.Load())
        if call.func.id not in names and bindings(self.function, name.id):
            return False
        for _, node in functions_of(self.tree, self.file, name):
            place = call.args.index(given)
            spec = node.args
            if node.decorator_list or spec.vararg or spec.posonlyargs or place >= len(spec.args):
                return False
            own = spec.args[place].arg
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            uses = [
                each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == own
            ]
            match body[0] if body else None:
                case ast.Assign(value=ast.Call(func=ast.Name() as func, args=[], keywords=[])):
                    return len(uses) == 1 and func is uses[0]
        return False

    def _handed(self, names: Mapping[str, str], readers: Mapping[str, _Reads]) -> list[Change]:
        """The parameters and the arguments, and what of the caller nobody needs any more."""
        found: list[Change] = []
        parameters = self.function.args.args
        texts = dict.fromkeys(names) | {own: each.iterator for own, each in readers.items()}
        start = self.file.block.offset
        spans = [
            (
                start(each.lineno, each.col_offset),
                start(each.end_lineno or 0, each.end_col_offset or 0),
            )
            for each in parameters
        ]
        defaults = self.function.args.defaults
        behind = [*spans[: len(spans) - len(defaults)]]
        behind += [
            (a, self.file.end(d)) for (a, _), d in zip(spans[len(behind) :], defaults, strict=True)
        ]
        found += self._listed(
            [(each.arg, span) for each, span in zip(parameters, behind, strict=True)],
            texts,
            self.function.name,
        )
        of = {id(value): own for own, value in self.given.items()}
        items = [(of[id(each)], self.file.span(each)) for each in self.call.args]
        for keyword in self.call.keywords:
            at = start(keyword.lineno, keyword.col_offset)
            items.append((keyword.arg or "", (at, self.file.end(keyword.value))))
        keys = {each.arg for each in self.call.keywords}
        given = {
            own: f"{text}={text}" if own in keys and text is not None else text
            for own, text in texts.items()
        }
        found += self._listed(items, given, self.caller.name)
        for each in readers.values():
            if each.definition is not None:
                found.append(self._without(each.definition))
        return found

    def _listed(
        self,
        items: list[tuple[str, tuple[int, int]]],
        texts: Mapping[str, str | None],
        where: str,
    ) -> list[Change]:
        """A list between brackets with some of its items gone or other ones."""
        if not items or self.file.commented(items[0][1][0], items[-1][1][1]):
            raise Unjoined
        found: list[Change] = []
        closing = self.file.text[items[-1][1][1] :].lstrip()
        kept = [n for n, (own, _) in enumerate(items) if texts.get(own, "") is not None]
        if not kept and closing.startswith(","):
            raise Unjoined
        for n, (own, (begin, end)) in enumerate(items):
            text = texts.get(own, "")
            if text:
                found.append(Change(begin, end, (text,), where))
            elif text is None and n + 1 < len(items):
                found.append(Change(begin, items[n + 1][1][0], (), where))
            elif text is None:
                # with the comma before it, and with those before it that go as well
                first = kept[-1] + 1 if kept else 0
                found = [each for each in found if each.start < items[first][1][0]]
                since = items[kept[-1]][1][1] if kept else items[0][1][0]
                found.append(Change(since, end, (), where))
        return found

    def _without(self, definition: ast.FunctionDef) -> Change:
        """A function's lines, with the empty ones behind it."""
        last = self.file.block.end_of_line(definition) + 1
        behind = last + len(self.file.text[last:]) - len(self.file.text[last:].lstrip("\n"))
        return Change(self.file.starts[definition.lineno - 1], behind, (), self.caller.name)


def _returned(function: ast.FunctionDef) -> ast.expr | None:
    """What a function without parameters returns, where it does nothing else; it may say on which device."""
    spec = function.args
    if spec.args or spec.posonlyargs or spec.kwonlyargs or spec.vararg or spec.kwarg:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.With(items=[ast.withitem(context_expr=around, optional_vars=None)], body=inner)]:
            match around:
                case ast.Call(func=func, args=[ast.Constant()], keywords=[]) if (
                    ast.unparse(func) == "tf.device"
                ):
                    body = inner
    match body:
        case [ast.Return(value=value)]:
            return value
    return None


__all__ = ["given_functions"]
