"""Which functions of a program stand as one: those through which its one object goes, from where it is made on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from towermigrate.recognize.carried import Parameter
from towermigrate.recognize.lending import Files
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.one_instance import Access, PlainClass, accesses
from towermigrate.recognize.python_scopes import (
    Definition,
    Module,
    Unjoined,
    bound_by,
    calls_in,
    only_plain,
    own_nodes,
    plain_calls,
    times_bound,
)
from towermigrate.recognize.source import Tree

_ENTRY = "entry"
Inlined = list[tuple[ast.Call, Definition, str | None]]
"""Calls of one statement, in their order, the functions and what they call the object."""


@dataclass
class Region:
    """A function whose body is to stand in place of its call; the entry, which is not called, has no number.

    `once` says that it surely runs once, `names` are the joined names of its own. `returned` is its last statement
    where the statement that calls it binds what it returns.
    """

    number: int | None
    function: Definition
    holder: str | None
    once: bool
    parameters: list[Parameter] = field(default_factory=list)
    given: dict[str, ast.expr] = field(default_factory=dict)
    sites: list[CalledAt] = field(default_factory=list)
    parent: Region | None = None
    called: CalledAt | None = None
    call: int = 0
    names: dict[str, str] = field(default_factory=dict)
    attributes: list[Access] = field(default_factory=list)
    returned: ast.Return | None = None

    @property
    def node(self) -> ast.FunctionDef:
        return self.function.node


@dataclass
class Literal:
    """The dict that carries the values: the statement that makes or returns it, its keys and what they are.

    `returned` is the statement that returns it, where that is another one.
    """

    statement: ast.Assign | ast.Return
    region: Region
    entries: list[tuple[str, ast.expr]]
    returned: ast.Return | None


@dataclass
class CalledAt:
    """A statement that calls functions whose bodies are to stand in its place."""

    number: int
    statement: ast.stmt
    regions: list[Region]


class Plan(Files):
    """The functions that are read as one, each with what it is given.

    `path` is the file of the entry, the function that makes the object by the call `object`; `of_towers` that of the
    tower loop. `opened` is the author's line that opens the entry where that is no function but what the file does
    as a program. `methods` are those of the object's class.
    """

    item = False  # whether its values are had by `carrier['name']`, not by `carrier.name`

    def __init__(self, tree: Tree, candidate: Candidate) -> None:
        super().__init__(tree, candidate.file.path)
        self.candidate = candidate
        self.of_towers = candidate.file.path
        self.opened: str | None = None
        self.methods: dict[str, Definition] = {}
        self.object: ast.Call | None = None
        self.regions: list[Region] = []
        self.sites: list[CalledAt] = []
        self.inlined: set[str] = set()
        self.lifted: list[str] = []
        self.known: PlainClass | None = None
        self.literal: Literal | None = None
        self.entry: Region

    def _begin(self, path: str, made: Callable[[], ast.Call]) -> None:
        """Find the entry, around the call that makes the object; that is asked for again where the file is read anew."""
        self.path = path
        entry = self._with_entry(self.module(path), made())
        if entry is not None:
            self.modules[path] = entry
        self.object = made()
        self.entry = self._entry()

    # ---- the functions ---------------------------------------------------------------------------

    def _with_entry(self, module: Module, made: ast.AST) -> Module | None:
        """The file with what it does as a program as a function, where a node stands in that."""
        for each in module.tree.body:
            if not isinstance(each, ast.If) or not any(n is made for n in ast.walk(each)):
                continue
            start, end = module.block.start(each), module.block.start(each.body[0])
            header = module.text[start:end]
            if ast.unparse(each.test) != "__name__ == '__main__'" or each.orelse:
                raise Unjoined
            whole = header.split("\n", 1)[0].rstrip()
            line = whole.partition("#")[0].rstrip()
            if "\n" not in header or not line.endswith(":"):
                raise Unjoined
            others = [other for other in module.tree.body if other is not each]
            bound = bound_by(each)
            own = {n.name for n in ast.walk(each) if isinstance(n, ast.FunctionDef)}
            inner = frozenset(own - {name for other in others for name in _defined_by(other)})
            if (
                bound & module.block.outside(inner)
                or bound & _read_at_once(others)
                or any(map(module.declares_global, bound))
            ):
                raise Unjoined  # others read what it binds
            self.opened = whole
            name = _ENTRY.ljust(len(line) - len("def ():"), "_")
            if re.search(rf"\b{name}\b", module.text):
                raise Unjoined
            text = module.text[:start] + f"def {name}():" + module.text[start + len(line) :]
            return Module(module.path, text)
        return None

    def _entry(self) -> Region:
        """The function that makes the object."""
        module = self.module(self.path)
        for each in module.tree.body:
            if isinstance(each, ast.FunctionDef):
                if any(node is self.object for node in ast.walk(each)):
                    function = module.definition(each.name)
                    only_plain(each)
                    return Region(None, function, None, True)
        raise Unjoined

    def _plan(self, region: Region) -> None:
        """The calls of a region whose bodies are to stand in their place, and theirs."""
        plain = {id(each) for each in plain_calls(region.node)}
        statements = sorted(calls_in(region.node), key=lambda each: (each.lineno, each.col_offset))
        for statement in statements:
            found = self._called_by(region, statement)
            if not found:
                continue
            once = region.once and id(statement) in plain
            called = CalledAt(len(self.sites), statement, [])
            self.sites.append(called)
            region.sites.append(called)
            calls = calls_of(statement)
            for call, function, holder in found:
                number = next(n for n, each in enumerate(calls) if each is call)
                inner = Region(len(self.regions), function, holder, once, parent=region)
                inner.called, inner.call = called, number
                inner.returned = self._result(statement, call, function, holder)
                self.regions.append(inner)
                called.regions.append(inner)
                self._give(inner, call)
                self._plan(inner)

    def _called_by(self, region: Region, statement: ast.stmt) -> Inlined:
        """The calls of a statement, in their order, the functions and what they call the object."""
        call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        if not isinstance(call, ast.Call):
            return []
        if self.object is not None and any(n is self.object for n in ast.walk(statement)):
            if not any(each is statement for each in plain_calls(region.node)):
                raise Unjoined
            return self._making(region, statement, call)
        if region.holder is None:
            return []
        func = call.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id == region.holder and func.attr in self.methods:
                if isinstance(statement, ast.Assign):
                    method = self.methods[func.attr]
                    holder = method.node.args.args[0].arg
                    if self._result(statement, call, method, holder) is None:
                        return []
                return self._method(region, call, func.attr)
        if isinstance(func, ast.Name):
            holds = lambda each: is_name(each, region.holder)  # noqa: E731
            bound = statement if isinstance(statement, ast.Assign) else None
            return self._function(region, call, holds, bound)
        return []

    def _result(
        self, statement: ast.stmt, call: ast.Call, function: Definition, holder: str | None
    ) -> ast.Return | None:
        """The last statement of a function, where that is its only `return` and names are bound to what it gives.

        Args:
            holder: what the function calls the object.
        """
        if not isinstance(statement, ast.Assign) or call is self.object or holder is None:
            return None
        if statement.value is not call:
            return None
        last = function.node.body[-1]
        returns = [each for each in own_nodes(function.node) if isinstance(each, ast.Return)]
        if not isinstance(last, ast.Return) or returns != [last] or last.value is None:
            return None
        if not self._needs_object(function, holder, ()):
            return None  # a function like any other
        (target, *others) = statement.targets
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = {each.id for each in parts if isinstance(each, ast.Name)}
        return last if not others and len(names) == len(parts) else None

    def _needs_object(
        self, function: Definition, holder: str, above: tuple[Definition, ...]
    ) -> bool:
        """Whether a function, or a method that it calls, uses more of the object than its methods."""
        keys = {each.key for each in accesses(function.node, holder, (), self.item)}
        called = [self.methods[each] for each in sorted(keys & self.methods.keys())]
        return bool(keys - self.methods.keys()) or any(
            self._needs_object(each, each.node.args.args[0].arg, (*above, function))
            for each in called
            if each not in (*above, function)
        )

    def _making(self, region: Region, statement: ast.stmt, call: ast.Call) -> Inlined:
        """The calls of the statement that makes the object."""
        raise Unjoined

    def _method(self, region: Region, call: ast.Call, name: str) -> Inlined:
        raise Unjoined

    def _function(
        self,
        region: Region,
        call: ast.Call,
        holds: Callable[[ast.expr], bool],
        bound: ast.Assign | None = None,
    ) -> Inlined:
        """A function of the file that is given the object and called once.

        Args:
            bound: the statement that binds names to what it returns, where one does.
        """
        assert isinstance(call.func, ast.Name)
        given = [n for n, each in enumerate(call.args) if holds(each)]
        if not given:
            return []
        function = self._definition(region.function.path, call.func)
        args, path, name = function.node.args, function.path, function.node.name
        users = sorted(self.tree.users.get(path, set()) | {path})
        known = [user for user in users if user in self.tree.sources]
        uses = sum(len(self.uses_in(user, path, name)) for user in known)
        if uses != 1 or len(given) != 1 or args.posonlyargs:
            raise Unjoined
        only_plain(function.node)
        if function.node.decorator_list or given[0] >= len(args.args):
            raise Unjoined
        holder = args.args[given[0]].arg
        if holder in function.inner or times_bound(function.node, holder):
            raise Unjoined
        if bound is not None:
            if self._result(bound, call, function, holder) is None:
                raise Unjoined
        elif any(isinstance(each, ast.Return) for each in own_nodes(function.node)):
            raise Unjoined
        return [(call, function, holder)]

    def _definition(self, path: str, called: ast.Name) -> Definition:
        """The function that a name of a file is."""
        module = self.module(path)
        symbol = module.symbols.get(called.id)
        if symbol is not None and symbol.is_namespace():
            return module.definition(called.id)
        for other in sorted(self.tree.imports.get(path, set()) - {path}):
            if any(each is called for each in self.uses_in(path, other, called.id)):
                return self.module(other).definition(called.id)
        raise Unjoined

    def _give(self, region: Region, call: ast.Call) -> None:
        """What the parameters of a region are given."""
        node, args = region.node, region.node.args
        if args.vararg or args.kwarg or args.posonlyargs or node.returns:
            raise Unjoined
        returns = [each for each in own_nodes(node) if isinstance(each, ast.Return)]
        if node.body[0].lineno == node.lineno or returns != self._returns(region):
            raise Unjoined
        every = [*args.args, *args.kwonlyargs]
        if any(each.annotation for each in every):
            raise Unjoined
        defaults = {
            each.arg: value
            for each, value in [
                *zip(args.args[len(args.args) - len(args.defaults) :], args.defaults, strict=True),
                *zip(args.kwonlyargs, args.kw_defaults, strict=True),
            ]
            if value is not None
        }
        method = region.function in self.methods.values()
        plain = args.args[1:] if method else args.args
        if len(call.args) > len(plain) or any(isinstance(a, ast.Starred) for a in call.args):
            raise Unjoined
        given = {each.arg: value for each, value in zip(plain, call.args, strict=False)}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in given:
                raise Unjoined
            given[keyword.arg] = keyword.value
        if not set(given) <= {each.arg for each in every} or region.holder in given and method:
            raise Unjoined
        for each in every:
            if each.arg in given or each.arg == region.holder:
                continue
            default = defaults.get(each.arg)
            if not isinstance(default, ast.Constant) and not self._is_fixed(region, default):
                raise Unjoined
        order = [each.arg for each in every if each.arg in given]
        written = sorted(given, key=lambda name: (given[name].lineno, given[name].col_offset))
        if order != written and any(
            isinstance(node, ast.Call) for value in given.values() for node in ast.walk(value)
        ):
            raise Unjoined  # computed in another order
        region.given = given
        region.parameters = [
            Parameter(
                each.arg,
                each.arg,
                self._source(region, given[each.arg]) if each.arg in given else None,
                ast.unparse(defaults[each.arg]) if each.arg in defaults else None,
                False,
                each.arg == region.holder,
            )
            for each in every
        ]

    def _returns(self, region: Region) -> list[ast.Return]:
        """The statements by which a function may return: the one that returns the object, if it makes that."""
        if region.returned is not None:
            return [region.returned]
        if self.literal is None or self.literal.region.node is not region.node:
            return []
        last = self.literal.returned or self.literal.statement
        return [last] if isinstance(last, ast.Return) else []

    def _is_fixed(self, region: Region, value: ast.expr | None) -> bool:
        """Whether a value is a name that the file binds once."""
        module = self.module(region.function.path)
        if not isinstance(value, ast.Name) or module.declares_global(value.id):
            return False
        return sum(value.id in bound_by(each) for each in module.tree.body) == 1

    def _source(self, region: Region, node: ast.expr) -> str:
        """The text of an argument, which its caller has."""
        assert region.parent is not None
        function = region.parent.function
        return function.text[function.start(node) : function.end(node)]

    # ---- methods that stay functions, attributes ------------------------------------------------------

    def _attributes(self, entry: Region) -> None:
        """Every use of the object is one of an attribute, or a call of a method."""
        for region in [entry, *self.regions]:
            if region.holder is None:
                continue
            binds = self.literal is not None and self.literal.region is region
            if region.number is not None and times_bound(region.node, region.holder) > binds:
                raise Unjoined
            calls = {id(c.func) for c in ast.walk(region.node) if isinstance(c, ast.Call)}
            own = {id(node) for node in own_nodes(region.node)}
            for each in accesses(region.node, region.holder, self._handed(region), self.item):
                node = each.node
                if each.key in self.methods:
                    if each.stored or id(node) not in calls:
                        raise Unjoined
                    if each.key in self.inlined and not self._is_site(region, node):
                        raise Unjoined
                elif each.stored and id(node) not in own:
                    raise Unjoined  # in a function of its own
                region.attributes.append(each)

    def _handed(self, region: Region) -> set[int]:
        """Where a region makes the object, or hands it on."""
        found: set[int] = set()
        literal = self.literal
        if literal is not None and literal.region is region:
            if isinstance(literal.statement, ast.Assign):
                found.add(id(literal.statement.targets[0]))
            if literal.returned is not None:
                found.add(id(literal.returned.value))
        for called in region.sites:
            statement = called.statement
            if isinstance(statement, ast.Assign):
                found.add(id(statement.targets[0]))
            for inner in called.regions:
                method = inner.function in self.methods.values()
                call = calls_of(statement)[inner.call]
                if not method and region.holder is not None:
                    found.update(id(a) for a in call.args if is_name(a, region.holder))
        return found

    def _is_site(self, region: Region, func: ast.expr) -> bool:
        return any(
            calls_of(called.statement)[inner.call].func is func
            for called in region.sites
            for inner in called.regions
        )


def captured(region: Region, name: str) -> bool:
    """Whether a function in a function reads a name of it."""
    waiting = list(region.function.names.get_children())
    while waiting:
        table = waiting.pop()
        if any(each.get_name() == name and each.is_free() for each in table.get_symbols()):
            return True
        waiting.extend(table.get_children())
    return False


def calls_of(statement: ast.stmt) -> list[ast.Call]:
    """The calls of a statement, by where they begin, shorter ones first."""
    found = [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
    return sorted(
        found,
        key=lambda c: (c.lineno, c.col_offset, c.end_lineno or 0, c.end_col_offset or 0),
    )


def is_name(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _defined_by(statement: ast.stmt) -> set[str]:
    """The names that a statement gives to functions and classes, however deep."""
    return {
        each.name
        for each in ast.walk(statement)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def _read_at_once(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that some statements of a file use outside of functions."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend([node.args, *getattr(node, "decorator_list", [])])
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        waiting.extend(ast.iter_child_nodes(node))
    return found
