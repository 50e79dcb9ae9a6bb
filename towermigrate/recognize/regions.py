"""Which functions of a program stand as one: those through which its one object goes, from where it is made on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from towermigrate.recognize.carried import Parameter
from towermigrate.recognize.lending import Files
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.one_instance import PlainClass, accesses, plain_class
from towermigrate.recognize.python_scopes import (
    Definition,
    Module,
    Unjoined,
    bound_by,
    calls_in,
    only_plain,
    own_nodes,
    plain_calls,
    returned_by,
    times_bound,
)
from towermigrate.recognize.source import Tree

_ENTRY = "entry"


@dataclass
class Region:
    """A function whose body is to stand in place of its call; the entry, which is not called, has no number.

    `once` says that it surely runs once, `names` are the joined names of its own.
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
    attributes: list[ast.Attribute] = field(default_factory=list)

    @property
    def node(self) -> ast.FunctionDef:
        return self.function.node


@dataclass
class CalledAt:
    """A statement that calls functions whose bodies are to stand in its place."""

    number: int
    statement: ast.stmt
    regions: list[Region]


class Plan(Files):
    """The functions that are read as one, each with what it is given.

    `path` is the file of the entry, the function that makes the object; `of_class` that of the class. `opened` is the
    author's line that opens the entry where that is no function but what the file does as a program.
    """

    def __init__(self, tree: Tree, candidate: Candidate, class_name: str, method: str) -> None:
        super().__init__(tree, candidate.file.path)
        self.candidate = candidate
        self.of_class = candidate.file.path
        self.method = method
        self.opened: str | None = None
        users = sorted(tree.users.get(self.of_class, set()) | {self.of_class})
        uses = [
            (user, each)
            for user in users
            if user in tree.sources
            for each in self.uses_in(user, self.of_class, class_name)
        ]
        if len(uses) != 1:
            raise Unjoined
        self.path, use = uses[0]
        self.known: PlainClass = plain_class(self.module(self.of_class), class_name)
        made = self._call(use.lineno, use.col_offset)
        entry = self._with_entry(self.module(self.path), made)
        if entry is not None:
            self.modules[self.path] = entry
            if self.path == self.of_class:
                self.known = plain_class(entry, class_name)
            made = self._call(use.lineno, use.col_offset)
        self.object = made
        self.regions: list[Region] = []
        self.sites: list[CalledAt] = []
        self.inlined: set[str] = set()
        self.lifted: list[str] = []
        self.entry = self._entry()
        self._plan(self.entry)
        if self.method not in self.inlined:
            raise Unjoined
        self._lift()
        self._attributes(self.entry)

    def _call(self, line: int, column: int) -> ast.Call:
        """The call that makes the object, by where the class is named."""
        for each in ast.walk(self.module(self.path).tree):
            if isinstance(each, ast.Call):
                if (each.func.lineno, each.func.col_offset) == (line, column) and not isinstance(
                    each.func, ast.Call
                ):
                    if ast.unparse(each.func).split(".")[-1] == self.known.node.name:
                        return each
        raise Unjoined

    # ---- the functions ---------------------------------------------------------------------------

    def _with_entry(self, module: Module, made: ast.Call) -> Module | None:
        """The file with what it does as a program as a function, where the object is made there."""
        for each in module.tree.body:
            if not isinstance(each, ast.If) or not any(n is made for n in ast.walk(each)):
                continue
            start, end = module.block.start(each), module.block.start(each.body[0])
            header = module.text[start:end]
            if ast.unparse(each.test) != "__name__ == '__main__'" or each.orelse:
                raise Unjoined
            line = header.split("\n", 1)[0].rstrip()
            if header.count("\n") != 1 or not line.endswith(":"):
                raise Unjoined
            others = [other for other in module.tree.body if other is not each]
            bound = bound_by(each)
            if (
                bound & module.block.globals
                or bound & _read_at_once(others)
                or any(map(module.declares_global, bound))
            ):
                raise Unjoined  # others read what it binds
            self.opened = line
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
                self.regions.append(inner)
                called.regions.append(inner)
                self._give(inner, call)
                self._plan(inner)

    def _called_by(
        self, region: Region, statement: ast.stmt
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        """The calls of a statement, in their order, the functions and what they call the object."""
        call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        if not isinstance(call, ast.Call):
            return []
        if any(node is self.object for node in ast.walk(statement)):
            if not any(each is statement for each in plain_calls(region.node)):
                raise Unjoined
            return self._making(region, statement, call)
        if isinstance(statement, ast.Assign) or region.holder is None:
            return []
        func = call.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id == region.holder and func.attr in self.known.methods:
                return self._method(region, call, func.attr)
        if isinstance(func, ast.Name):
            return self._function(region, call, lambda each: is_name(each, region.holder))
        return []

    def _making(
        self, region: Region, statement: ast.stmt, call: ast.Call
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        """`Trainer()`, `model = Trainer()`, `Trainer().train()`, `run(Trainer())`."""
        made = self.object
        if region.number is not None:
            raise Unjoined
        found: list[tuple[ast.Call, Definition, str | None]] = []
        init = self.known.methods.get("__init__")
        if init is not None:
            found.append((made, init, init.node.args.args[0].arg))
            self.inlined.add("__init__")
        elif made.args or made.keywords:
            raise Unjoined
        if isinstance(statement, ast.Assign):
            (target, *others) = statement.targets
            if call is not made or others or not isinstance(target, ast.Name):
                raise Unjoined
            if times_bound(region.node, target.id) != 1 or target.id in region.function.inner:
                raise Unjoined
            region.holder = target.id
            if not found:
                raise Unjoined
        elif call is not made:
            func = call.func
            more: list[tuple[ast.Call, Definition, str | None]] = []
            if isinstance(func, ast.Attribute) and func.value is made:
                more = self._method(region, call, func.attr)
            elif isinstance(func, ast.Name):
                others = [*call.args, *(each.value for each in call.keywords)]
                if any(not isinstance(e, ast.Name | ast.Constant) for e in others if e is not made):
                    raise Unjoined  # computed before the object is made
                more = self._function(region, call, lambda each: each is made)
            if not more:
                raise Unjoined
            found += more
        return found

    def _method(
        self, region: Region, call: ast.Call, name: str
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        method = self.known.methods.get(name)
        if method is None:
            raise Unjoined
        if name in self.inlined:
            raise Unjoined  # called again
        holders = {each.node.args.args[0].arg for each in self.known.methods.values()}
        uses = {
            id(each)
            for each in [*ast.walk(self.known.node), *ast.walk(region.node)]
            if isinstance(each, ast.Attribute)
            and each.attr == name
            and (each is call.func or isinstance(each.value, ast.Name) and each.value.id in holders)
        }
        where = self.candidate.file.span(self.candidate.loop)
        of_towers = region.function.path == self.of_class
        of_towers = of_towers and where.line < call.lineno <= where.end_line
        if len(uses) != 1 or of_towers:
            return []  # of the towers, or of several: a function by itself
        if any(isinstance(each, ast.Return) for each in own_nodes(method.node)):
            return []
        only_plain(method.node, of_class=True)
        self.inlined.add(name)
        return [(call, method, method.node.args.args[0].arg)]

    def _function(
        self, region: Region, call: ast.Call, holds: Callable[[ast.expr], bool]
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        """A function of the file that is given the object and called once."""
        assert isinstance(call.func, ast.Name)
        given = [n for n, each in enumerate(call.args) if holds(each)]
        if not given:
            return []
        path = region.function.path
        module = self.module(path)
        function = module.definition(call.func.id)
        args = function.node.args
        if len(module.uses(call.func.id)) != 1 or len(given) != 1 or args.posonlyargs:
            raise Unjoined
        for user in self.tree.users.get(path, set()) - {path}:
            file = self.tree.file(user)
            if file is None or call.func.id in file.text:
                raise Unjoined
        only_plain(function.node)
        if function.node.decorator_list or given[0] >= len(args.args):
            raise Unjoined
        holder = args.args[given[0]].arg
        if holder in function.inner or times_bound(function.node, holder):
            raise Unjoined
        if any(isinstance(each, ast.Return) for each in own_nodes(function.node)):
            raise Unjoined
        return [(call, function, holder)]

    def _give(self, region: Region, call: ast.Call) -> None:
        """What the parameters of a region are given."""
        node, args = region.node, region.node.args
        if args.vararg or args.kwarg or args.posonlyargs or node.returns:
            raise Unjoined
        if node.body[0].lineno == node.lineno or returned_by(node, None)[0] is not None:
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
        method = region.function in self.known.methods.values()
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

    def _lift(self) -> None:
        """Methods that use nothing of the object but one another may be functions."""
        for name, method in self.known.methods.items():
            if name in self.inlined:
                continue
            holder = method.node.args.args[0].arg
            used = {each.attr for each in accesses(method.node, holder)}
            if name == "__init__" or not used <= self.known.methods.keys() - self.inlined:
                raise Unjoined
            if times_bound(method.node, holder):
                raise Unjoined
            self.lifted.append(name)

    def _attributes(self, entry: Region) -> None:
        """Every use of the object is one of an attribute, or a call of a method."""
        for region in [entry, *self.regions]:
            if region.holder is None:
                continue
            if region.number is not None and times_bound(region.node, region.holder):
                raise Unjoined
            calls = {id(c.func) for c in ast.walk(region.node) if isinstance(c, ast.Call)}
            handed = self._handed(region)
            for each in accesses(region.node, region.holder, handed):
                if each.attr in self.known.methods:
                    stored = not isinstance(each.ctx, ast.Load)
                    if stored or id(each) not in calls:
                        raise Unjoined
                    if each.attr in self.inlined and not self._is_site(region, each):
                        raise Unjoined
                    region.attributes.append(each)
                    continue
                if not isinstance(each.ctx, ast.Load) and not any(
                    node is each for node in own_nodes(region.node)
                ):
                    raise Unjoined  # in a function of its own
                region.attributes.append(each)

    def _handed(self, region: Region) -> set[int]:
        """Where a region makes the object, or hands it on."""
        found: set[int] = set()
        for called in region.sites:
            statement = called.statement
            if isinstance(statement, ast.Assign):
                found.add(id(statement.targets[0]))
            for inner in called.regions:
                method = inner.function in self.known.methods.values()
                call = calls_of(statement)[inner.call]
                if not method:
                    found.update(id(a) for a in call.args if is_name(a, region.holder))
        return found

    def _is_site(self, region: Region, func: ast.Attribute) -> bool:
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
