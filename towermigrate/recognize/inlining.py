"""A program whose graph is built in one function and run in others, as one function.

`train` calls `build`, which makes the towers and returns what is to be run, and runs it itself or hands it to `run`.
Read as one function, with the bodies of the others in place of their calls, it is a program like any other: it
means the same, as each of them is called once, by a statement of its own, and no name of one is another's. What is
written for that text is taken apart again by `emit.parting`, at the marks that are left here: bare texts, which mean
nothing where they stand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from towermigrate.recognize.joined import MARK, Joined, Part, Pieces
from towermigrate.recognize.lending import Files
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.python_scopes import (
    Caller,
    Definition,
    Unjoined,
    bound_by,
    call_of,
    calls_in,
    given_by,
    header_end,
    last_of,
    line_at,
    lines_in_texts,
    only_plain,
    opened_by,
    own_nodes,
    plain_calls,
    rates_of,
    renamed_places,
    returned_by,
    scopes,
    targets_of,
    times_bound,
)
from towermigrate.recognize.source import Tree


def inlined(tree: Tree, candidate: Candidate, joined: Collection[str] = ()) -> Joined | None:
    """The program around a tower loop as one function; None where that cannot be told to mean the same.

    Args:
        candidate: a tower loop in a function that one other function calls, and that runs nothing itself.
        joined: files in which functions were joined before.
    """
    if candidate.turns is not None or candidate.written is not None:
        return None
    if candidate.qualified is not None and "." in candidate.qualified:
        return None
    try:
        return _Join(tree, candidate, joined).made()
    except (Unjoined, RecursionError):
        return None


MAKERS = re.compile(r"tf\.placeholder|tf\.train\.(\w+_decay|piecewise_constant)")
"""What makes parts of a graph in front of the towers, in functions too."""


@dataclass(frozen=True)
class _Placed:
    """A part, its function, the statement that calls it, and the names of it that change."""

    part: Part
    function: Definition
    statement: ast.stmt
    renames: Mapping[str, str]


def _free_name(name: str, number: int, texts: str) -> str:
    names = (f"{name}_{number + 1}{'_' * more}" for more in range(100))
    return next(each for each in names if not re.search(rf"\b{each}\b", texts))


def _shared(placed: _Placed) -> set[str]:
    """Names that a part and its caller have for the same."""
    part, new = placed.part, placed.renames
    names = {new.get(own, own) for own in part.returned} & set(part.targets)
    return names | {new.get(own, own) for own, text in part.given if new.get(own, own) == text}


def _only_by_names(function: Definition, own: str) -> None:
    """A name that is to be another one must not be bound by what is no name: an import, a function, a handler."""
    by_name = sum(
        isinstance(node, ast.Name) and node.id == own and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(function.node)
    )
    if by_name != times_bound(function.node, own):
        raise Unjoined


def _is_written_out(value: ast.expr | None) -> bool:
    """Whether a default is a list of constants; the function is called once, so that no other call has the same list."""
    return isinstance(value, ast.List | ast.Tuple) and all(
        isinstance(each, ast.Constant) for each in value.elts
    )


def _makes_parts(function: Definition) -> bool:
    """Whether a function makes what the towers are fed, or a learning rate: what it makes is the graph's."""
    return any(
        isinstance(each, ast.Call) and MAKERS.fullmatch(ast.unparse(each.func))
        for each in own_nodes(function.node)
    )


class _Join(Files):
    def __init__(self, tree: Tree, candidate: Candidate, joined: Collection[str] = ()) -> None:
        super().__init__(tree, candidate.file.path, joined)
        self.candidate = candidate
        self._shared: set[str] = set()
        self.caller: Caller = self.module(self.path).block

    def made(self) -> Joined:
        name: str | None = None
        parts: list[_Placed] = []
        handed: Collection[str] = self.caller.locals
        done: ast.stmt | None = None
        if self.candidate.qualified is not None:
            builder = self.module(self.path).definition(self.candidate.qualified)
            if any(word in ast.unparse(builder.node) for word in (".run(", "Session")):
                self.caller = builder  # it runs, and hands its session on
                handed = builder.locals
            else:
                self.caller, done = self._called(builder)
                if not any(each is done for each in plain_calls(self.caller.node)):
                    raise Unjoined  # more than once
                self.path = self.caller.path
                parts.append(self._part(self._marks(), builder, done, frozenset()))
                handed = {*parts[0].part.targets, *opened_by(self.caller.node)}
            if isinstance(self.caller.node, ast.FunctionDef):
                name = self.caller.node.name
        for each in calls_in(self.caller.node):
            if each is done:
                continue
            given = given_by(each)
            if not given & set(handed) and (given or name is not None):
                function = self._maker(each)
            else:
                function = self._function(each)
                if function is not None and done is None and not self._runs(function):
                    function = self._maker(each)
            if function is None:
                continue
            again, own = self._called(function)
            if own is not each or again.node is not self.caller.node:
                raise Unjoined
            number = len(parts) + self._marks()
            parts.append(self._part(number, function, each, frozenset(handed)))
        if not parts:
            raise Unjoined
        parts = self._with_own_names(parts)
        self._apart(parts)
        return self._written(name, parts)

    def _marks(self) -> int:
        """The first number that is free for a part, where functions were joined before."""
        texts = (self.tree.sources[path] for path in self.joined)
        found = re.findall(rf"{MARK} (\d+) def", "".join(texts))
        return 1 + max(map(int, found), default=-1)

    # ---- the functions ---------------------------------------------------------------------------

    def _function(self, statement: ast.stmt) -> Definition | None:
        call = call_of(statement)
        if call is None or not isinstance(call.func, ast.Name | ast.Attribute):
            return None
        module = self.module(self.caller.path)
        root = ast.unparse(call.func).partition(".")[0]
        if isinstance(self.caller.node, ast.FunctionDef) and root in self.caller.locals:
            return None  # what the caller binds itself
        if isinstance(call.func, ast.Name):
            symbol = module.symbols.get(call.func.id)
            if symbol is not None and symbol.is_namespace():
                makes = any(
                    isinstance(one, ast.ClassDef) and one.name == call.func.id
                    for one in module.tree.body
                )
                return None if makes else module.definition(call.func.id)
        if isinstance(call.func, ast.Name):
            file = self.tree.file(self.caller.path)
            origin = None if file is None else file.imports.get(call.func.id)
            other, name = (None, "") if origin is None else self._origin(self.caller.path, origin)
            others = set() if other is None else {other}
        else:
            name = call.func.attr
            others = set(self.tree.imports.get(self.caller.path, set()))
            for each in others.copy():
                others |= self.tree.imports.get(each, set())  # which a package may hand on
        for other in sorted(others - {self.caller.path}):
            if any(each is call.func for each in self.uses_in(self.caller.path, other, name)):
                return self.module(other).definition(name)
        return None

    def _maker(self, statement: ast.stmt) -> Definition | None:
        """The function that a statement calls, where that makes placeholders or a rate, and is not called elsewhere."""
        if not isinstance(statement, ast.Assign):
            return None
        try:
            function = self._function(statement)
            if function is None:
                return None
            if not _makes_parts(function) and not self._makes_a_rate(function, statement):
                return None
            self._called(function)
        except Unjoined:
            return None  # which is no matter of a function that stays as it is
        return function

    def _makes_a_rate(self, function: Definition, statement: ast.Assign) -> bool:
        """Whether a function computes what the optimizers of its caller are made of."""
        names = [each.id for each in statement.targets if isinstance(each, ast.Name)]
        if len(names) != len(statement.targets) or "tf." not in ast.unparse(function.node):
            return False
        return any(
            isinstance(rate, ast.Name) and rate.id in names
            for each in own_nodes(self.caller.node)
            for rate in rates_of(each)
        )

    def _runs(self, function: Definition, depth: int = 3) -> bool:
        """Whether a function runs something, or one that it calls does."""
        if ".run(" in ast.unparse(function.node):
            return True
        module = self.module(function.path)
        there = self.tree.file(function.path)
        for each in calls_in(function.node) if depth else ():
            call = call_of(each)
            if call is None or not isinstance(call.func, ast.Name):
                continue
            name = call.func.id
            origin = there.imports.get(name) if there is not None else None
            path = function.path if origin is None else self._origin(function.path, origin)[0]
            if path is None:
                continue
            try:
                inner = (module if path == function.path else self.module(path)).definition(name)
            except Unjoined:
                continue
            if self._runs(inner, depth - 1):
                return True
        return False

    def _called(self, function: Definition) -> tuple[Caller, ast.stmt]:
        """The function (or module) whose own statement is the only call of one, and that statement."""
        name = function.node.name
        users = sorted(self.tree.users.get(function.path, set()) | {function.path})
        uses = [
            (user, each)
            for user in users
            if user in self.tree.sources
            for each in self.uses_in(user, function.path, name)
        ]
        if len(uses) != 1 or self.told_elsewhere(function.path, name, [use for _, use in uses]):
            raise Unjoined
        user, use = uses[0]
        module = self.module(user)
        for scope in scopes(module.tree):
            for statement in () if scope is function.node else calls_in(scope):
                call = call_of(statement)
                if call is None or call.func is not use:
                    continue
                if isinstance(scope, ast.Module):
                    return module.block, statement
                return module.definition(scope.name), statement
        raise Unjoined

    def _part(
        self,
        number: int,
        function: Definition,
        statement: ast.stmt,
        crossing: frozenset[str],
    ) -> _Placed:
        """What is to be put in place of a call, and the names of it that change."""
        node, call = function.node, call_of(statement)
        assert call is not None
        if node.decorator_list or node.args.vararg or node.args.kwarg or node.returns:
            raise Unjoined
        if node.body[0].lineno == node.lineno:
            raise Unjoined
        only_plain(node, shares=function.path == self.path)
        self._only_shared_by(function)
        targets = targets_of(statement)
        returned, is_expression = returned_by(node, targets)
        if is_expression and {*(returned or ())} & (
            function.locals | function.globals | function.inner
        ):
            raise Unjoined
        if targets is not None and (returned is None or len(targets) != len(returned)):
            raise Unjoined
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if any(each.annotation for each in parameters):
            raise Unjoined
        if len(call.args) > len(node.args.posonlyargs) + len(node.args.args):
            raise Unjoined
        given: dict[str, ast.expr] = {}
        for parameter, value in zip(parameters, call.args, strict=False):
            given[parameter.arg] = value
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in given:
                raise Unjoined
            given[keyword.arg] = keyword.value
        if any(isinstance(value, ast.Starred) for value in given.values()):
            raise Unjoined
        defaults = self._defaults(function, given)
        caller = self.caller
        arguments = {
            name: caller.text[caller.start(value) : caller.end(value)]
            for name, value in given.items()
        }
        renames: dict[str, str] = {}
        for name, value in given.items():
            own = value.id if isinstance(value, ast.Name) else None
            if own is not None and own != name and own in crossing:
                renames[name] = own
            if own == name or name in renames:
                # One value under one name: nobody may bind it anew on one side.
                if times_bound(node, name):
                    raise Unjoined
        for own, target in zip(returned or (), targets or (), strict=False):
            if own != target:
                if own in renames or own in given:
                    raise Unjoined
                renames[own] = target
        for target in sorted(set(renames.values()) & function.locals - renames.keys()):
            # A value of the function's own has the name that its caller gives to what is returned.
            if target in given or target in function.inner or target in (returned or ()):
                raise Unjoined
            _only_by_names(function, target)
            texts = function.text + caller.text
            renames[target] = _free_name(target, number, texts)
        if set(renames) & function.inner or set(renames.values()) & (
            (function.locals - renames.keys()) | function.globals | function.inner
        ):
            raise Unjoined
        start = function.starts[node.lineno - 1]
        assert node.end_lineno is not None
        end = function.end_of_line(node)
        part = Part(
            number,
            function.path,
            node.name,
            function.text[start:end],
            caller.text[caller.start(statement) : caller.end(statement)],
            returned or (),
            targets or (),
            tuple(arguments.items()),
            {new: old for old, new in renames.items()},
            statement.col_offset,
            frozenset(function.globals),
            defaults,
            is_expression,
        )
        return _Placed(part, function, statement, renames)

    def _only_shared_by(self, function: Definition) -> None:
        """A name of the module that a function binds is no name of the caller, where it would be declared too late."""
        shared = {
            name
            for each in own_nodes(function.node)
            if isinstance(each, ast.Global)
            for name in each.names
        }
        if not shared:
            return
        if not isinstance(self.caller.node, ast.FunctionDef):
            raise Unjoined
        named = {each.id for each in ast.walk(self.caller.node) if isinstance(each, ast.Name)}
        if shared & (named | self.caller.locals | self._shared):
            raise Unjoined
        self._shared |= shared

    def _defaults(
        self, function: Definition, given: Collection[str]
    ) -> tuple[tuple[str, str], ...]:
        """What the parameters are that are not given: constants, or names that are bound once."""
        spec = function.node.args
        plain = [*spec.posonlyargs, *spec.args]
        values: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True),
            *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
        ]
        known = {each.arg: value for each, value in values if value is not None}
        every = [each.arg for each in (*plain, *spec.kwonlyargs)]
        if not set(given) <= set(every):
            raise Unjoined
        module = self.module(function.path)
        found: list[tuple[str, str]] = []
        for name in every:
            if name in given:
                continue
            value = known.get(name)
            if isinstance(value, ast.Name):
                once = sum(value.id in bound_by(each) for each in module.tree.body) == 1
                if not once or module.declares_global(value.id) or function.path != self.path:
                    raise Unjoined
            elif not isinstance(value, ast.Constant) and not _is_written_out(value):
                raise Unjoined
            assert value is not None
            found.append((name, ast.unparse(value)))
        return tuple(found)

    def _with_own_names(self, placed: Sequence[_Placed]) -> list[_Placed]:
        """Names of a part that another function has for something else become new ones."""
        texts = "".join(
            self.module(path).text for path in {self.path, *(p.part.path for p in placed)}
        )
        made: list[_Placed] = []
        for number, each in enumerate(placed):
            others: list[Caller] = [self.caller, *(p.function for p in placed if p is not each)]
            taken = {name for one in others for name in one.locals | one.globals | one.inner}
            renames = dict(each.renames)
            for own in sorted(each.function.locals & taken):
                if own in renames or own in _shared(each):
                    continue
                if own in each.part.returned:
                    raise Unjoined  # a name that the others have as well
                new = _free_name(own, number, texts)
                if own in each.function.inner:
                    raise Unjoined
                _only_by_names(each.function, own)
                renames[own] = new
            for own, origin, theirs in self.borrowed(each.function):
                try:
                    self.has(own, origin, theirs)
                except Unjoined:
                    if own in each.function.inner | each.function.locals:
                        raise
                    renames[own] = _free_name(own, number, texts)
            part = replace(each.part, renamed={new: own for own, new in renames.items()})
            made.append(replace(each, part=part, renames=renames))
        return made

    def _apart(self, placed: Sequence[_Placed]) -> None:
        """No name of one function may be another's, but for what is handed over under it."""
        shared = [set(), *map(_shared, placed)]
        functions: list[Caller] = [self.caller, *(each.function for each in placed)]
        bound = [
            self.caller.locals,
            *({each.renames.get(own, own) for own in each.function.locals} for each in placed),
        ]
        names_of_parts = frozenset(each.part.name for each in placed)
        new: list[Mapping[str, str]] = [{}, *(each.renames for each in placed)]
        reads = [
            {own.get(name, name) for name in each.outside(names_of_parts)}
            for each, own in zip(functions, new, strict=True)
        ]
        inner = [each.inner for each in functions]
        of_module = isinstance(self.caller.node, ast.Module)
        for i in range(len(functions)):
            for k in range(len(functions)):
                if i == k:
                    continue
                # Of two parts, what both have from the caller or give to it.
                common = shared[i] & shared[k] if i and k else shared[max(i, k)]
                read = reads[i] if k or not of_module else set()
                if (
                    bound[i] & bound[k] - common
                    or (read & bound[k]) - common
                    or inner[i] & bound[k]
                ):
                    raise Unjoined
        for each in placed:  # what a part gives is bound by nobody else
            for target in each.part.targets:
                if times_bound(self.caller.node, target) != 1:
                    raise Unjoined

    # ---- the text --------------------------------------------------------------------------------

    def _written(self, name: str | None, parts: Sequence[_Placed]) -> Joined:
        path, text = self.path, self.module(self.path).text
        others: dict[str, str] = {}
        cuts: list[tuple[int, int, str | _Placed]] = []
        for each in parts:
            start = each.function.starts[each.function.node.lineno - 1]
            end = each.function.end_of_line(each.function.node)
            if each.part.path == path:
                cuts.append((start, end, each.part.mark("def")))
            else:  # on as many lines, so that all others of its file stay where they are
                own = self.module(each.part.path).text
                if each.part.path in others:
                    raise Unjoined
                empty = "\n" * own.count("\n", start, end)
                others[each.part.path] = own[:start] + each.part.mark("def") + empty + own[end:]
            at = self.caller.starts[each.statement.lineno - 1]
            cuts.append((at, self.caller.end(each.statement), each))
            lent = self.lent(each.function, each.renames)
            if lent:
                place = self._place_of_imports()
                rows = [each.part.mark("import"), *lent, each.part.mark("imported"), ""]
                cuts.append((place, place, "\n".join(rows)))
        cuts.sort(key=lambda cut: cut[:2])
        pieces = Pieces()
        done = 0
        for start, end, what in cuts:
            if start < done:
                raise Unjoined
            pieces.own(path, text, done, start)
            if isinstance(what, str):
                pieces.new(what, path, start)
            else:
                self._region(pieces, what)
            done = end
        pieces.own(path, text, done, len(text))
        made = {**others, path: "".join(pieces.texts)}
        own = self.candidate.file.path
        return Joined(
            Tree({**self.tree.sources, **made}, self._imports(), self.tree),
            path,
            self._line(own, pieces),
            name,
            tuple(each.part for each in parts),
            made,
            {each: self.module(each).text for each in made},
            pieces.origins,
        )

    def _imports(self) -> Mapping[str, set[str]]:
        """The files that each file imports, with those that something is lent from."""
        known = self.tree.imports
        return {**known, self.path: known.get(self.path, set()) | self.lent_from}

    def _place_of_imports(self) -> int:
        """In front of the caller."""
        node = self.caller.node
        if isinstance(node, ast.Module):
            raise Unjoined
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return self.caller.starts[first - 1]

    def _line(self, path: str, pieces: Pieces) -> int:
        """The tower loop's line of the joined text."""
        where = self.candidate.file.span(self.candidate.loop)
        at = self.module(path).starts[where.line - 1] + where.column
        for start, end, source, begin in pieces.origins:
            if source == path and begin <= at < begin + end - start:
                return "".join(pieces.texts).count("\n", 0, start + at - begin) + 1
        raise Unjoined

    def _region(self, pieces: Pieces, placed: _Placed) -> None:
        """The body of a function in place of its call: the statement's line up to its end."""
        part, function, statement = placed.part, placed.function, placed.statement
        caller, text, renames = self.caller, function.text, placed.renames
        at = caller.start(statement)
        margin = caller.text[caller.starts[statement.lineno - 1] : at]
        behind = caller.text[caller.end(statement) :].split("\n", 1)[0].strip()
        if margin.strip() or behind and not behind.startswith("#"):
            raise Unjoined
        pieces.new(f"{margin}{part.mark('begin')}\n", caller.path, at)
        for name, argument in (*part.given, *part.defaults):
            used = renames.get(name, name)
            if used != argument:
                pieces.new(f"{margin}{used} = {argument}\n", caller.path, at)
        pieces.new(f"{margin}{part.mark('body')}\n", caller.path, at)
        body = function.node.body
        first = header_end(function)
        last = last_of(function.node)
        end = function.end_of_line(body[-1])
        gone = end
        tokens = renamed_places(function, renames)
        if isinstance(last, ast.Return) and part.returns_expression:
            (name,) = part.returned
            tokens = sorted([*tokens, (function.start(last), len("return"), f"{name} =")])
        elif isinstance(last, ast.Return):
            gone = function.starts[last.lineno - 1]
            if text[gone : function.start(last)].strip():
                raise Unjoined
        own = text[function.starts[body[0].lineno - 1] : function.start(body[0])]
        if own.strip() or "\t" in own or "\t" in margin:
            raise Unjoined
        inside = lines_in_texts(text)
        position = first
        while position < gone:
            stop = text.find("\n", position, gone)
            stop = gone if stop < 0 else stop
            row = text[position:stop]
            line = line_at(function.starts, position)
            start = position
            if row.strip() and line not in inside and len(margin) != len(own):
                kept = len(row) - len(row.lstrip(" "))
                if len(margin) > len(own):
                    pieces.new(" " * (len(margin) - len(own)), function.path, position)
                else:
                    less = len(own) - len(margin)
                    if kept < less:
                        raise Unjoined
                    start = position + less
            for where, length, new in tokens:
                if start <= where < stop:
                    pieces.own(function.path, text, start, where)
                    pieces.new(new, function.path, where)
                    start = where + length
            pieces.own(function.path, text, start, stop)
            pieces.new("\n", function.path, stop)
            position = stop + 1
        pieces.new(f"{margin}{part.mark('end')}", caller.path, caller.end(statement))


# ---- of Python's own trees -----------------------------------------------------------------------
