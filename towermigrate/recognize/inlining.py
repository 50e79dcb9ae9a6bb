"""A program whose graph is built in one function and run in others, as one function.

`train` calls `build`, which makes the towers and returns what is to be run, and runs it itself or hands it to `run`.
Read as one function, with the bodies of the others in place of their calls, it is a program like any other: it
means the same, as each of them is called once, by a statement of its own, and no name of one is another's. What is
written for that text is taken apart again by `emit.parting`, at the marks that are left here: bare texts, which mean
nothing where they stand.
"""

from __future__ import annotations

import ast
import io
import re
import symtable
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Generic, TypeVar

from towermigrate.findings import Finding, with_places
from towermigrate.program import Span, TowerProgram
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.source import Tree

_MARK = "towermigrate part"
_LINE = re.compile(r"\bline (\d+)(?: of ([\w./-]+))?")
# They see, or change, names that no table of names tells of.
_REFLECTIVE = frozenset("locals globals vars eval exec dir super __class__ getattr_static".split())
# Ways to reach a function of a module by its name.
_BY_NAME = re.compile(r"\bglobals\(|\bsys\.modules\b|\b__dict__\b|\b__import__\b|\bimportlib\b")
_Described = TypeVar("_Described")


@dataclass(frozen=True)
class Part:
    """A function whose body stands in place of its call.

    `definition` is its own text, `call` that of the statement that calls it. `returned` are the names it returns,
    `targets` what the caller calls them; `given` are its parameters with the texts of their arguments. `renamed`
    are names of its body that stand under another one in the joined text, by that. `column` is where the call began,
    `globals` are the names of its module that it reads, `defaults` the parameters that are not given.
    """

    number: int
    path: str
    name: str
    definition: str
    call: str
    returned: tuple[str, ...]
    targets: tuple[str, ...]
    given: tuple[tuple[str, str], ...]
    renamed: Mapping[str, str]
    column: int
    globals: frozenset[str]
    defaults: tuple[tuple[str, str], ...]

    def mark(self, what: str) -> str:
        """The bare text that stands at a place of it: `begin`, `body`, `end`, or `def` for its definition."""
        return f'"{_MARK} {self.number} {what}"'


class _Pieces:
    """A new text, made of pieces of the author's and others; tells where each of its characters comes from."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.length = 0
        self.origins: list[tuple[int, int, str, int]] = []  # start, end, path, start in that file

    def own(self, path: str, text: str, start: int, end: int) -> None:
        """The author's characters from `start` to `end`."""
        if end > start:
            self.origins.append((self.length, self.length + end - start, path, start))
            self._add(text[start:end])

    def new(self, text: str, path: str, start: int) -> None:
        """Others, that stand for what begins at `start`."""
        if text:
            self.origins.append((self.length, self.length, path, start))
            self._add(text)

    def _add(self, text: str) -> None:
        self.texts.append(text)
        self.length += len(text)


@dataclass(frozen=True)
class Joined:
    """The tree with a program's functions joined.

    `path` is the file of the caller (None where that is the module itself), `line` that of the tower loop; `texts` are
    the files that are other ones now, `befores` what they were.
    """

    tree: Tree
    path: str
    line: int
    caller: str | None
    parts: tuple[Part, ...]
    texts: Mapping[str, str]
    befores: Mapping[str, str]
    _origins: Sequence[tuple[int, int, str, int]]

    def own_name(self, name: str) -> str:
        """A name of the joined text as the function's author has it."""
        return next((each.renamed[name] for each in self.parts if name in each.renamed), name)

    def original(self, finding: Finding) -> Finding:
        """A finding of the joined text as one of the author's."""

        def said(found: re.Match[str]) -> str:
            own = found[2] == self.path if found[2] else finding.path == self.path
            if not own:
                return found[0]
            path, line = self._place(int(found[1]), 0)[:2]
            told = found[0].replace(found[1], str(line), 1)
            return told if path == finding.path or found[2] else f"line {line} of {path}"

        def placed(line: int) -> str:
            path, own = self._place(line, 0)[:2]
            return f"{path}:{own}"

        message = with_places(_LINE.sub(said, finding.message), self.path, placed)
        for part in self.parts:
            for new, own in part.renamed.items():
                message = re.sub(rf"\b{new}\b", own, message)
        if finding.path != self.path:
            return replace(finding, message=message)
        path, line, column = self._place(finding.line, finding.column)
        return replace(finding, path=path, line=line, column=column, message=message)

    def program(self, program: TowerProgram, function: str | None, line: int) -> TowerProgram:
        """What is known of the joined program, with the places of the author's text."""
        path = self.span(program.loop.statement).path
        told = replace(self._described(program), path=path, function=function, line=line)
        own = {new: old for part in self.parts for new, old in part.renamed.items()}
        inputs = tuple(
            replace(each, names=tuple(own.get(name, name) for name in each.names))
            for each in told.inputs
        )
        return replace(told, inputs=inputs)

    def span(self, span: Span) -> Span:
        """The author's stretch for one of the joined text."""
        if span.path != self.path:
            return span
        path, line, column = self._place(span.line, span.column)
        # The end is behind the last character, which tells where that is.
        _, end_line, end_column = self._place(span.end_line, span.end_column, end=True)
        return Span(path, line, column, end_line, end_column)

    def _described(self, value: _Described) -> _Described:
        if isinstance(value, Span):
            return self.span(value)  # type: ignore[return-value]
        if isinstance(value, tuple):
            return tuple(self._described(each) for each in value)  # type: ignore[return-value]
        if is_dataclass(value):
            changed = {
                each.name: self._described(getattr(value, each.name)) for each in fields(value)
            }
            return replace(value, **changed)  # type: ignore[type-var]
        return value

    def _place(self, line: int, column: int, end: bool = False) -> tuple[str, int, int]:
        text = self.texts[self.path]
        at = min(_starts(text)[line - 1] + column, len(text)) if line <= text.count("\n") + 1 else 0
        wanted = at - 1 if end else at
        path, own = self.path, 0
        for start, stop, source, begin in self._origins:
            if start > wanted:
                break
            path, own = source, begin + min(wanted - start, max(stop - start, 0))
        own += end
        before = self.befores[path]
        row = before.count("\n", 0, own)
        return path, row + 1, own - (before.rfind("\n", 0, own) + 1)


def _starts(text: str) -> list[int]:
    return [0, *(i + 1 for i, each in enumerate(text) if each == "\n")]


class _Unjoined(Exception):
    """The functions cannot be read as one."""


_Scope = TypeVar("_Scope", ast.FunctionDef, ast.Module)


@dataclass
class _Block(Generic[_Scope]):
    """The statements of a function, or of a module, and the names they use."""

    path: str
    text: str
    node: _Scope
    starts: list[int]
    names: symtable.SymbolTable

    @property
    def locals(self) -> set[str]:
        """Names that are its own, parameters too."""
        own = self.names.get_type() != "module"
        return {
            each.get_name()
            for each in self.names.get_symbols()
            if (
                each.is_local()
                if own
                else each.is_assigned() or each.is_imported() or each.is_namespace()
            )
        }

    @property
    def globals(self) -> set[str]:
        """Names of the module that it reads, in functions of its own too; for a module, those that its functions read."""
        return self._globals(frozenset())

    def _globals(self, without: frozenset[str]) -> set[str]:
        found: set[str] = set()
        of_module = self.names.get_type() == "module"
        waiting = list(self.names.get_children()) if of_module else [self.names]
        waiting = [each for each in waiting if each.get_name() not in without]
        while waiting:
            table = waiting.pop()
            found.update(each.get_name() for each in table.get_symbols() if each.is_global())
            waiting.extend(table.get_children())
        return found

    def outside(self, names: frozenset[str]) -> set[str]:
        """`globals`, those of the functions of these names aside."""
        return self._globals(names if self.names.get_type() == "module" else frozenset())

    @property
    def inner(self) -> set[str]:
        """Names that functions and comprehensions in it bind for themselves."""
        found: set[str] = set()
        if self.names.get_type() == "module":
            return found
        waiting = list(self.names.get_children())
        while waiting:
            table = waiting.pop()
            found.update(each.get_name() for each in table.get_symbols() if each.is_local())
            waiting.extend(table.get_children())
        return found

    def offset(self, line: int, byte: int) -> int:
        row = self.text[self.starts[line - 1] :].split("\n", 1)[0]
        return self.starts[line - 1] + len(row.encode()[:byte].decode())

    def start(self, node: ast.stmt | ast.expr) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)


_Origin = tuple[str | None, str]  # the file of the tree, None for a library's, and the name there
_Definition = _Block[ast.FunctionDef]
_Caller = _Block[ast.FunctionDef] | _Block[ast.Module]


class _Module:
    """One file, parsed by Python itself."""

    def __init__(self, path: str, text: str) -> None:
        if "\r" in text or "\f" in text or _MARK in text or _BY_NAME.search(text):
            raise _Unjoined
        try:
            self.tree = ast.parse(text)
            table = symtable.symtable(text, path, "exec")
        except (SyntaxError, ValueError, RecursionError) as error:
            raise _Unjoined from error
        self.path, self.text = path, text
        self.starts = _starts(text)
        self.block = _Block(path, text, self.tree, self.starts, table)
        self.tables = {each.get_name(): each for each in table.get_children()}
        self.symbols = {each.get_name(): each for each in table.get_symbols()}

    def definition(self, name: str) -> _Definition:
        """The one function of a name among the file's own statements."""
        found = [
            each
            for each in self.tree.body
            if isinstance(each, ast.FunctionDef) and each.name == name
        ]
        bound = sum(
            name in _bound(each) for each in self.tree.body if not isinstance(each, ast.ClassDef)
        )
        table = self.tables.get(name)
        if len(found) != 1 or bound != 1 or not isinstance(table, symtable.Function):
            raise _Unjoined
        if any(isinstance(each, ast.Global) and name in each.names for each in ast.walk(self.tree)):
            raise _Unjoined
        return _Definition(self.path, self.text, found[0], self.starts, table)

    def uses(self, name: str) -> list[ast.Name]:
        """Where a name is read."""
        return [
            each for each in ast.walk(self.tree) if isinstance(each, ast.Name) and each.id == name
        ]

    def declares_global(self, name: str) -> bool:
        """Whether a function of the file may bind a name of the module anew."""
        return any(
            isinstance(each, ast.Global) and name in each.names for each in ast.walk(self.tree)
        )

    def uses_of_import(self, module: str, name: str) -> bool:
        """Whether this file may use a function of another one, whose last name is `module`."""
        called = {module}
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Import):
                called.update(
                    a.asname for a in each.names if a.asname and a.name.split(".")[-1] == module
                )
            elif isinstance(each, ast.ImportFrom):
                called.update(a.asname for a in each.names if a.asname and a.name == module)
                if any(a.name == name or a.name == "*" for a in each.names):
                    if (each.module or module).split(".")[-1] == module:
                        return True
        return any(
            isinstance(each, ast.Attribute)
            and each.attr == name
            and ast.unparse(each.value).split(".")[-1] in called
            for each in ast.walk(self.tree)
        )


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module binds, in the blocks that it holds too."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        waiting.extend(ast.iter_child_nodes(node))
    return found


def joined(tree: Tree, candidate: Candidate) -> Joined | None:
    """The program around a tower loop as one function; None where that cannot be told to mean the same.

    Args:
        candidate: a tower loop in a function that one other function calls, and that runs nothing itself.
    """
    if candidate.turns is not None or candidate.written is not None:
        return None
    if candidate.qualified is not None and "." in candidate.qualified:
        return None
    try:
        return _Join(tree, candidate).made()
    except (_Unjoined, RecursionError):
        return None


@dataclass(frozen=True)
class _Placed:
    """A part, its function, the statement that calls it, and the names of it that change."""

    part: Part
    function: _Definition
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


class _Join:
    def __init__(self, tree: Tree, candidate: Candidate) -> None:
        self.tree = tree
        self.candidate = candidate
        self.modules: dict[str, _Module] = {}
        self.path = candidate.file.path
        self.caller: _Caller = self.module(self.path).block

    def module(self, path: str) -> _Module:
        if path not in self.modules:
            self.modules[path] = _Module(path, self.tree.sources[path])
        return self.modules[path]

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
                if not any(each is done for each in _plain_calls(self.caller.node)):
                    raise _Unjoined  # more than once
                self.path = self.caller.path
                parts.append(self._part(0, builder, done, frozenset()))
                handed = {*parts[0].part.targets, *_opened(self.caller.node)}
            if isinstance(self.caller.node, ast.FunctionDef):
                name = self.caller.node.name
        for each in _calls_in(self.caller.node):
            given = _given(each)
            if each is done or not given & set(handed) and (given or name is not None):
                continue
            function = self._function(each)
            if function is None:
                continue
            if done is None and ".run(" not in ast.unparse(function.node):
                continue
            again, own = self._called(function)
            if own is not each or again.node is not self.caller.node:
                raise _Unjoined
            parts.append(self._part(len(parts), function, each, frozenset(handed)))
        if not parts:
            raise _Unjoined
        parts = self._with_own_names(parts)
        self._apart(parts)
        return self._written(name, parts)

    # ---- the functions ---------------------------------------------------------------------------

    def _function(self, statement: ast.stmt) -> _Definition | None:
        call = _call_of(statement)
        if call is None or not isinstance(call.func, ast.Name | ast.Attribute):
            return None
        module = self.module(self.caller.path)
        if isinstance(call.func, ast.Name):
            symbol = module.symbols.get(call.func.id)
            if symbol is not None and symbol.is_namespace():
                return module.definition(call.func.id)
        for other in self.tree.imports.get(self.caller.path, set()) - {self.caller.path}:
            name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
            if any(each is call.func for each in self._uses_in(self.caller.path, other, name)):
                return self.module(other).definition(name)
        return None

    def _uses_in(self, user: str, path: str, name: str) -> list[ast.expr]:
        """Where a file reads a function of another one; raises where that cannot be told."""
        if user == path:
            return list(self.module(path).uses(name))
        file = self.tree.file(user)
        if file is None or name not in file.text:
            return []
        module = self.module(user)
        last = re.sub(r"(/__init__)?\.py$", "", path).rsplit("/", 1)[-1]
        if not module.uses_of_import(last, name):
            return []
        if file.star_imports:
            raise _Unjoined
        called = {
            local
            for local, origin in file.imports.items()
            if self._origin(user, origin) == (path, name)
        }
        modules = {
            local
            for local, origin in file.imports.items()
            if self.tree.module_path(user, origin) == path
        }
        if called - {name}:
            raise _Unjoined
        found: list[ast.expr] = []
        for each in ast.walk(module.tree):
            if isinstance(each, ast.Name) and each.id in called:
                found.append(each)
            elif isinstance(each, ast.Attribute) and each.attr == name:
                root, _, rest = ast.unparse(each.value).partition(".")
                whole = f"{file.imports.get(root, root)}.{rest}"
                if root in modules and not rest or self.tree.module_path(user, whole) == path:
                    found.append(each)
        return found

    def _origin(self, user: str, origin: str) -> _Origin:
        """The file of the tree, and the name in it, that an imported name comes from."""
        module, _, name = origin.rpartition(".")
        if not module.strip("."):
            module = f"{module}."
        return self.tree.module_path(user, module) if module != "." else None, name

    def _called(self, function: _Definition) -> tuple[_Caller, ast.stmt]:
        """The function (or module) whose own statement is the only call of one, and that statement."""
        name = function.node.name
        users = sorted(self.tree.users.get(function.path, set()) | {function.path})
        uses = [
            (user, each)
            for user in users
            if user in self.tree.sources
            for each in self._uses_in(user, function.path, name)
        ]
        if len(uses) != 1:
            raise _Unjoined
        user, use = uses[0]
        module = self.module(user)
        for scope in _scopes(module.tree):
            for statement in () if scope is function.node else _calls_in(scope):
                call = _call_of(statement)
                if call is None or call.func is not use:
                    continue
                if isinstance(scope, ast.Module):
                    return module.block, statement
                return module.definition(scope.name), statement
        raise _Unjoined

    def _lent(self, placed: _Placed) -> list[str]:
        """Imports that give the caller's file what a function of another file reads of its own module."""
        lent: list[str] = []
        for name, origin, theirs in self._borrowed(placed.function):
            local = placed.renames.get(name, name)
            if local != name or not self._has(name, origin, theirs):
                lent.append(self._import_of(name, local, origin, theirs))
        return lent

    def _borrowed(self, function: _Definition) -> list[tuple[str, str | None, _Origin]]:
        """Names of its own module that a function of another file reads: how it imports them, where they are made."""
        if function.path == self.path:
            return []
        there, module = self.tree.file(function.path), self.module(function.path)
        if there is None or there.star_imports:
            raise _Unjoined
        found: list[tuple[str, str | None, _Origin]] = []
        for name in sorted(function.globals):
            times = sum(name in _bound(each) for each in module.tree.body)
            if not times:  # a built-in name, which it must be for the caller as well
                if name in self.caller_names(self.module(self.path)):
                    raise _Unjoined
                continue
            if times > 1 or module.declares_global(name):
                raise _Unjoined
            origin = there.imports.get(name)
            own: _Origin = (function.path, name)
            theirs = own if origin is None else self._origin(function.path, origin)
            found.append((name, origin, theirs))
        return found

    def _has(self, name: str, origin: str | None, theirs: _Origin) -> bool:
        """Whether the caller's file has the same by this name; raises where it has something else."""
        here = self.tree.file(self.path)
        known = None if here is None else here.imports.get(name)
        if known is None:
            if name in self.caller_names(self.module(self.path)):
                raise _Unjoined
            return False
        given = self._origin(self.path, known)
        if given != theirs or given[0] is None and known != origin:
            raise _Unjoined
        return True

    @staticmethod
    def caller_names(module: _Module) -> set[str]:
        return {name for each in module.tree.body for name in _bound(each)}

    def _import_of(self, name: str, local: str, origin: str | None, theirs: _Origin) -> str:
        if theirs[0] is None:  # of a library
            assert origin is not None
            base, _, last = origin.rpartition(".")
            if not base:
                return f"import {origin}" + ("" if origin == local else f" as {local}")
            return f"from {base} import {last}" + ("" if last == local else f" as {local}")
        same = "" if theirs[1] == local else f" as {local}"
        for each in self.module(self.path).tree.body:
            if isinstance(each, ast.ImportFrom) and each.module:
                origin = "." * each.level + each.module
                if self.tree.module_path(self.path, origin) == theirs[0]:
                    return f"from {origin} import {theirs[1]}{same}"
            elif isinstance(each, ast.Import):
                for alias in each.names:
                    if self.tree.module_path(self.path, alias.name) == theirs[0]:
                        return f"from {alias.name} import {theirs[1]}{same}"
        raise _Unjoined

    def _part(
        self,
        number: int,
        function: _Definition,
        statement: ast.stmt,
        crossing: frozenset[str],
    ) -> _Placed:
        """What is to be put in place of a call, and the names of it that change."""
        node, call = function.node, _call_of(statement)
        assert call is not None
        if node.decorator_list or node.args.vararg or node.args.kwarg or node.returns:
            raise _Unjoined
        if node.body[0].lineno == node.lineno:
            raise _Unjoined
        _only_plain(node)
        returned = _returned(node)
        targets = _targets(statement)
        if targets is not None and (returned is None or len(targets) != len(returned)):
            raise _Unjoined
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if any(each.annotation for each in parameters):
            raise _Unjoined
        if len(call.args) > len(node.args.posonlyargs) + len(node.args.args):
            raise _Unjoined
        given: dict[str, ast.expr] = {}
        for parameter, value in zip(parameters, call.args, strict=False):
            given[parameter.arg] = value
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in given:
                raise _Unjoined
            given[keyword.arg] = keyword.value
        if any(isinstance(value, ast.Starred) for value in given.values()):
            raise _Unjoined
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
                if _times_bound(node, name):
                    raise _Unjoined
        for own, target in zip(returned or (), targets or (), strict=False):
            if own != target:
                if own in renames or own in given:
                    raise _Unjoined
                renames[own] = target
        if set(renames) & function.inner or set(renames.values()) & (
            function.locals | function.globals | function.inner
        ):
            raise _Unjoined
        start = function.starts[node.lineno - 1]
        assert node.end_lineno is not None
        end = function.end(node)
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
        )
        return _Placed(part, function, statement, renames)

    def _defaults(
        self, function: _Definition, given: Collection[str]
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
            raise _Unjoined
        module = self.module(function.path)
        found: list[tuple[str, str]] = []
        for name in every:
            if name in given:
                continue
            value = known.get(name)
            if isinstance(value, ast.Name):
                once = sum(value.id in _bound(each) for each in module.tree.body) == 1
                if not once or module.declares_global(value.id) or function.path != self.path:
                    raise _Unjoined
            elif not isinstance(value, ast.Constant):
                raise _Unjoined
            found.append((name, ast.unparse(value)))
        return tuple(found)

    def _with_own_names(self, placed: Sequence[_Placed]) -> list[_Placed]:
        """Names of a part that another function has for something else become new ones."""
        texts = "".join(
            self.module(path).text for path in {self.path, *(p.part.path for p in placed)}
        )
        made: list[_Placed] = []
        for number, each in enumerate(placed):
            others: list[_Caller] = [self.caller, *(p.function for p in placed if p is not each)]
            taken = {name for other in others for name in other.locals | other.globals}
            renames = dict(each.renames)
            for own in sorted(each.function.locals & taken):
                if own in renames or own in _shared(each):
                    continue
                if own in each.part.returned:
                    raise _Unjoined  # a name that the others have as well
                new = _free_name(own, number, texts)
                by_name = sum(
                    isinstance(node, ast.Name)
                    and node.id == own
                    and not isinstance(node.ctx, ast.Load)
                    for node in ast.walk(each.function.node)
                )
                if own in each.function.inner or by_name != _times_bound(each.function.node, own):
                    raise _Unjoined
                renames[own] = new
            for own, origin, theirs in self._borrowed(each.function):
                try:
                    self._has(own, origin, theirs)
                except _Unjoined:
                    if own in each.function.inner | each.function.locals:
                        raise
                    renames[own] = _free_name(own, number, texts)
            part = replace(each.part, renamed={new: own for own, new in renames.items()})
            made.append(replace(each, part=part, renames=renames))
        return made

    def _apart(self, placed: Sequence[_Placed]) -> None:
        """No name of one function may be another's, but for what is handed over under it."""
        shared = [set(), *map(_shared, placed)]
        functions: list[_Caller] = [self.caller, *(each.function for each in placed)]
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
                    raise _Unjoined
        for each in placed:  # what a part gives is bound by nobody else
            for target in each.part.targets:
                if _times_bound(self.caller.node, target) != 1:
                    raise _Unjoined

    # ---- the text --------------------------------------------------------------------------------

    def _written(self, name: str | None, parts: Sequence[_Placed]) -> Joined:
        path, text = self.path, self.module(self.path).text
        others: dict[str, str] = {}
        cuts: list[tuple[int, int, str | _Placed]] = []
        for each in parts:
            start = each.function.starts[each.function.node.lineno - 1]
            end = each.function.end(each.function.node)
            if each.part.path == path:
                cuts.append((start, end, each.part.mark("def")))
            else:  # on as many lines, so that all others of its file stay where they are
                own = self.module(each.part.path).text
                if each.part.path in others:
                    raise _Unjoined
                empty = "\n" * own.count("\n", start, end)
                others[each.part.path] = own[:start] + each.part.mark("def") + empty + own[end:]
            at = self.caller.starts[each.statement.lineno - 1]
            cuts.append((at, self.caller.end(each.statement), each))
            lent = self._lent(each)
            if lent:
                place = self._place_of_imports()
                rows = [each.part.mark("import"), *lent, each.part.mark("imported"), ""]
                cuts.append((place, place, "\n".join(rows)))
        cuts.sort(key=lambda cut: cut[:2])
        pieces = _Pieces()
        done = 0
        for start, end, what in cuts:
            if start < done:
                raise _Unjoined
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
            Tree({**self.tree.sources, **made}, self.tree.imports),
            path,
            self._line(own, pieces),
            name,
            tuple(each.part for each in parts),
            made,
            {each: self.module(each).text for each in made},
            pieces.origins,
        )

    def _place_of_imports(self) -> int:
        """In front of the caller."""
        node = self.caller.node
        if isinstance(node, ast.Module):
            raise _Unjoined
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return self.caller.starts[first - 1]

    def _line(self, path: str, pieces: _Pieces) -> int:
        """The tower loop's line of the joined text."""
        where = self.candidate.file.span(self.candidate.loop)
        at = self.module(path).starts[where.line - 1] + where.column
        for start, end, source, begin in pieces.origins:
            if source == path and begin <= at < begin + end - start:
                return "".join(pieces.texts).count("\n", 0, start + at - begin) + 1
        raise _Unjoined

    def _region(self, pieces: _Pieces, placed: _Placed) -> None:
        """The body of a function in place of its call: the statement's line up to its end."""
        part, function, statement = placed.part, placed.function, placed.statement
        caller, text, renames = self.caller, function.text, placed.renames
        at = caller.start(statement)
        margin = caller.text[caller.starts[statement.lineno - 1] : at]
        if margin.strip() or caller.text[caller.end(statement) :].split("\n", 1)[0].strip():
            raise _Unjoined
        pieces.new(f"{margin}{part.mark('begin')}\n", caller.path, at)
        for name, argument in (*part.given, *part.defaults):
            used = renames.get(name, name)
            if used != argument:
                pieces.new(f"{margin}{used} = {argument}\n", caller.path, at)
        pieces.new(f"{margin}{part.mark('body')}\n", caller.path, at)
        body = function.node.body
        first = _header_end(function)
        last = body[-1]
        while isinstance(last, ast.With):
            last = last.body[-1]
        end = function.end(body[-1])
        gone = end
        if isinstance(last, ast.Return):
            gone = function.starts[last.lineno - 1]
            if text[gone : function.start(last)].strip():
                raise _Unjoined
        own = text[function.starts[body[0].lineno - 1] : function.start(body[0])]
        if own.strip() or "\t" in own or "\t" in margin:
            raise _Unjoined
        tokens = _renamed_places(function, renames)
        inside = _in_texts(text)
        position = first
        while position < gone:
            stop = text.find("\n", position, gone)
            stop = gone if stop < 0 else stop
            row = text[position:stop]
            line = _line_of(function.starts, position)
            start = position
            if row.strip() and line not in inside and len(margin) != len(own):
                kept = len(row) - len(row.lstrip(" "))
                if len(margin) > len(own):
                    pieces.new(" " * (len(margin) - len(own)), function.path, position)
                else:
                    less = len(own) - len(margin)
                    if kept < less:
                        raise _Unjoined
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


def _scopes(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.Module]:
    yield tree
    yield from (each for each in tree.body if isinstance(each, ast.FunctionDef))


def _own_nodes(node: ast.FunctionDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes in it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(each))


def _only_plain(node: ast.FunctionDef) -> None:
    for each in _own_nodes(node):
        if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal):
            raise _Unjoined
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in _REFLECTIVE | {node.name}:
            raise _Unjoined


def _returned(node: ast.FunctionDef) -> tuple[str, ...] | None:
    """The names that a function returns at its end, where it returns nowhere else; None where it returns nothing."""
    found = [each for each in _own_nodes(node) if isinstance(each, ast.Return)]
    if not found:
        return None
    last: ast.stmt = node.body[-1]
    while isinstance(last, ast.With):
        last = last.body[-1]
    if found != [last]:
        raise _Unjoined
    value = found[0].value
    if isinstance(value, ast.Name):
        return (value.id,)
    if isinstance(value, ast.Tuple):
        names = [each.id for each in value.elts if isinstance(each, ast.Name)]
        if len(names) == len(value.elts) == len(set(names)) and names:
            return tuple(names)
    raise _Unjoined


def _call_of(statement: ast.stmt) -> ast.Call | None:
    if isinstance(statement, ast.If):
        statement = statement.body[0]
        return _call_of(statement) if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Assign | ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    return None


def _targets(statement: ast.stmt) -> tuple[str, ...] | None:
    """The names that a statement binds to what a call returns; None where that is dropped."""
    if not isinstance(statement, ast.Assign):
        return None
    if len(statement.targets) != 1:
        raise _Unjoined
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Tuple):
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) == len(target.elts) == len(set(names)):
            return tuple(names)
    raise _Unjoined


def _plain_calls(node: ast.FunctionDef | ast.Module) -> Iterator[ast.stmt]:
    """Statements that are a call, or bind what it returns, and that run once: in no block but a `with`.

    What a module does where it is the program may be one call, which then is the whole `if`.
    """
    waiting: list[ast.stmt] = list(reversed(node.body))
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.With):
            waiting.extend(reversed(each.body))
        elif isinstance(each, ast.If):
            if isinstance(node, ast.Module) and _is_entry(each) and _call_of(each) is not None:
                yield each
        elif _call_of(each) is not None:
            yield each


def _calls_in(node: ast.FunctionDef | ast.Module) -> Iterator[ast.stmt]:
    """`_plain_calls`, and those of a function that run in other blocks of it, in a loop say."""
    plain = list(_plain_calls(node))
    yield from plain
    if isinstance(node, ast.FunctionDef):
        for each in _own_nodes(node):
            if isinstance(each, ast.Assign | ast.Expr) and _call_of(each) is not None:
                if not any(each is known for known in plain):
                    yield each


def _is_entry(node: ast.If) -> bool:
    """`if __name__ == "__main__":` with one statement and no `else`."""
    asks = ast.unparse(node.test) == "__name__ == '__main__'"
    return asks and len(node.body) == 1 and not node.orelse


def _given(statement: ast.stmt) -> set[str]:
    call = _call_of(statement)
    assert call is not None
    values = [*call.args, *(each.value for each in call.keywords)]
    return {each.id for each in values if isinstance(each, ast.Name)}


def _opened(node: ast.FunctionDef | ast.Module) -> Iterator[str]:
    """Names that a `with` binds: a session, a graph."""
    for each in _own_nodes(node):
        if isinstance(each, ast.withitem) and isinstance(each.optional_vars, ast.Name):
            yield each.optional_vars.id


def _times_bound(node: ast.FunctionDef | ast.Module, name: str) -> int:
    return sum(
        isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
        or isinstance(each, ast.FunctionDef | ast.ClassDef)
        and each.name == name
        or isinstance(each, ast.alias)
        and (each.asname or each.name).partition(".")[0] == name
        or isinstance(each, ast.ExceptHandler)
        and each.name == name
        for each in ast.walk(node)
    )


def _header_end(function: _Definition) -> int:
    """Where the lines behind a function's header begin."""
    rows = function.text.split("\n")
    line = function.node.lineno
    reader = io.StringIO("\n".join(rows[line - 1 :]))
    depth = 0
    for token in tokenize.generate_tokens(reader.readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                return function.starts[line - 1 + token.end[0]]
    raise _Unjoined


def _in_texts(text: str) -> set[int]:
    """Lines that begin inside of a text of several lines."""
    found: set[int] = set()
    kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds and token.end[0] > token.start[0]:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
    return found


def _line_of(starts: Sequence[int], position: int) -> int:
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts[middle] <= position else (low, middle)
    return low + 1


def _renamed_places(
    function: _Definition, renames: Mapping[str, str]
) -> list[tuple[int, int, str]]:
    """Where names stand that change, in order: the place, the length, the new name."""
    found: list[tuple[int, int, str]] = []
    for each in ast.walk(function.node):
        if isinstance(each, ast.Name) and each.id in renames:
            place = function.start(each)
            if not function.text.startswith(
                each.id, place
            ):  # in a text, of which older Pythons do not tell
                raise _Unjoined
            found.append((place, len(each.id), renames[each.id]))
    return sorted(found)
