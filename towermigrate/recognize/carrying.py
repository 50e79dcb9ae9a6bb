"""A program that builds its graph in a method of an object and runs it in others, as one function.

`Trainer().train()`: what `__init__` and `build` set (`self.train_op = …`), `train` reads. Of one object that nobody else
sees (`recognize.one_instance`), attributes mean what names of one function would mean; so the bodies of its methods stand in
place of their calls, and names in place of `self.train_op`. What is written for that text is taken apart again by
`emit.carrying`, at the marks that are left here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from towermigrate.recognize.carried import Alias, Body, Carried, Parameter, Site
from towermigrate.recognize.joined import MARK, Pieces
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.one_instance import PlainClass, accesses, plain_class, stores_in
from towermigrate.recognize.python_scopes import (
    Definition,
    Module,
    Unjoined,
    bound_by,
    calls_in,
    header_end,
    last_of,
    lines_in_texts,
    only_plain,
    own_nodes,
    plain_calls,
    returned_by,
    times_bound,
)
from towermigrate.recognize.source import Tree

_Place = tuple[int, int]  # where some of the author's text begins and ends
_ENTRY = "entry"


def carried(tree: Tree, candidate: Candidate) -> Carried | None:
    """The program around a tower loop in a method as one function; None where that cannot be told to mean the same."""
    name = candidate.qualified
    if name is None or candidate.turns is not None or candidate.written is not None:
        return None
    if name.count(".") != 1:
        return None
    try:
        return _Carrying(tree, candidate, *name.split(".")).made()
    except (Unjoined, RecursionError):
        return None


@dataclass
class _Region:
    """A function whose body is to stand in place of its call; the entry, which is not called, has no number.

    `once` says that it surely runs once, `names` are the joined names of its own.
    """

    number: int | None
    function: Definition
    holder: str | None
    once: bool
    parameters: list[Parameter] = field(default_factory=list)
    given: dict[str, ast.expr] = field(default_factory=dict)
    sites: list[_Called] = field(default_factory=list)
    parent: _Region | None = None
    called: _Called | None = None
    call: int = 0
    names: dict[str, str] = field(default_factory=dict)
    attributes: list[ast.Attribute] = field(default_factory=list)

    @property
    def node(self) -> ast.FunctionDef:
        return self.function.node


@dataclass
class _Called:
    """A statement that calls functions whose bodies are to stand in its place."""

    number: int
    statement: ast.stmt
    regions: list[_Region]


class _Carrying:
    def __init__(self, tree: Tree, candidate: Candidate, class_name: str, method: str) -> None:
        self.tree = tree
        self.candidate = candidate
        self.path = candidate.file.path
        self.text = tree.sources[self.path]
        self.method = method
        self.opened: str | None = None
        module = Module(self.path, self.text)
        self.known: PlainClass = plain_class(tree, module, class_name)
        self.module = self._with_entry(module)
        if self.module is not module:
            self.known = plain_class(tree, self.module, class_name)
        self.regions: list[_Region] = []
        self.sites: list[_Called] = []
        self.inlined: set[str] = set()
        self.attributes: dict[str, str] = {}  # by the author's names
        self.lifted: dict[str, str] = {}
        self.aliases: dict[int, Alias] = {}  # by the statement's identity
        self.taken: set[str] = set()
        self.one_name: set[int] = set()

    def made(self) -> Carried:
        entry = self._entry()
        self._plan(entry)
        if self.method not in self.inlined:
            raise Unjoined
        self._lift()
        self._attributes(entry)
        self._name(entry)
        return self._written(entry)

    # ---- the functions ---------------------------------------------------------------------------

    def _with_entry(self, module: Module) -> Module:
        """The file with what it does as a program as a function, where the object is made there."""
        for each in module.tree.body:
            if not isinstance(each, ast.If) or not any(n is self.known.made for n in ast.walk(each)):
                continue
            start, end = module.block.start(each), module.block.start(each.body[0])
            header = module.text[start:end]
            if ast.unparse(each.test) != "__name__ == '__main__'" or each.orelse:
                raise Unjoined
            line = header.split("\n", 1)[0].rstrip()
            if header.count("\n") != 1 or not line.endswith(":"):
                raise Unjoined
            self._bound_by_nobody_else(module, each)
            self.opened = line
            name = _ENTRY.ljust(len(line) - len("def ():"), "_")
            if re.search(rf"\b{name}\b", module.text):
                raise Unjoined
            text = module.text[:start] + f"def {name}():" + module.text[start + len(line) :]
            return Module(module.path, text)
        return module

    def _bound_by_nobody_else(self, module: Module, entry: ast.If) -> None:
        """What the file binds as a program is read by nothing else of it."""
        bound = bound_by(entry)
        inside = {id(each) for each in ast.walk(entry)}
        for each in ast.walk(module.tree):
            if isinstance(each, ast.Name) and each.id in bound and id(each) not in inside:
                table = module.symbols.get(each.id)
                if table is not None:
                    raise Unjoined
            if isinstance(each, ast.Global) and bound & set(each.names):
                raise Unjoined

    def _entry(self) -> _Region:
        """The function that makes the object."""
        for each in self.module.tree.body:
            if isinstance(each, ast.FunctionDef):
                if any(node is self.known.made for node in ast.walk(each)):
                    function = self.module.definition(each.name)
                    only_plain(each)
                    return _Region(None, function, None, True)
        raise Unjoined

    def _plan(self, region: _Region) -> None:
        """The calls of a region whose bodies are to stand in their place, and theirs."""
        plain = {id(each) for each in plain_calls(region.node)}
        statements = sorted(calls_in(region.node), key=lambda each: (each.lineno, each.col_offset))
        for statement in statements:
            found = self._called_by(region, statement)
            if not found:
                continue
            once = region.once and id(statement) in plain
            called = _Called(len(self.sites), statement, [])
            self.sites.append(called)
            region.sites.append(called)
            calls = _calls_of(statement)
            for call, function, holder in found:
                number = next(n for n, each in enumerate(calls) if each is call)
                inner = _Region(len(self.regions), function, holder, once, parent=region)
                inner.called, inner.call = called, number
                self.regions.append(inner)
                called.regions.append(inner)
                self._give(inner, call)
                self._plan(inner)

    def _called_by(
        self, region: _Region, statement: ast.stmt
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        """The calls of a statement, in their order, the functions and what they call the object."""
        call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        if not isinstance(call, ast.Call):
            return []
        if any(node is self.known.made for node in ast.walk(statement)):
            if not any(each is statement for each in plain_calls(region.node)):
                raise Unjoined
            return self._making(region, statement, call)
        if isinstance(statement, ast.Assign) or region.holder is None:
            return []
        func = call.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id == region.holder and func.attr in self.known.methods:
                return self._method(call, func.attr)
        if isinstance(func, ast.Name):
            return self._function(call, lambda each: _is_name(each, region.holder))
        return []

    def _making(
        self, region: _Region, statement: ast.stmt, call: ast.Call
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        """`Trainer()`, `model = Trainer()`, `Trainer().train()`, `run(Trainer())`."""
        made = self.known.made
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
                more = self._method(call, func.attr)
            elif isinstance(func, ast.Name):
                others = [*call.args, *(each.value for each in call.keywords)]
                if any(not isinstance(e, ast.Name | ast.Constant) for e in others if e is not made):
                    raise Unjoined  # computed before the object is made
                more = self._function(call, lambda each: each is made)
            if not more:
                raise Unjoined
            found += more
        return found

    def _method(
        self, call: ast.Call, name: str
    ) -> list[tuple[ast.Call, Definition, str | None]]:
        method = self.known.methods.get(name)
        if method is None:
            raise Unjoined
        if name in self.inlined:
            raise Unjoined  # called again
        holders = {each.node.args.args[0].arg for each in self.known.methods.values()}
        uses = sum(
            isinstance(each, ast.Attribute)
            and each.attr == name
            and (each is call.func or isinstance(each.value, ast.Name) and each.value.id in holders)
            for each in ast.walk(self.module.tree)
        )
        where = self.candidate.file.span(self.candidate.loop)
        if uses != 1 or where.line < call.lineno <= where.end_line:
            return []  # of the towers, or of several: a function by itself
        if any(isinstance(each, ast.Return) for each in own_nodes(method.node)):
            return []
        only_plain(method.node, of_class=True)
        self.inlined.add(name)
        return [(call, method, method.node.args.args[0].arg)]

    def _function(self, call: ast.Call, holds: object) -> list[tuple[ast.Call, Definition, str | None]]:
        """A function of the file that is given the object and called once."""
        assert isinstance(call.func, ast.Name) and callable(holds)
        given = [n for n, each in enumerate(call.args) if holds(each)]
        if not given:
            return []
        function = self.module.definition(call.func.id)
        args = function.node.args
        if len(self.module.uses(call.func.id)) != 1 or len(given) != 1 or args.posonlyargs:
            raise Unjoined
        for user in self.tree.users.get(self.path, set()) - {self.path}:
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

    def _give(self, region: _Region, call: ast.Call) -> None:
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
            if not isinstance(default, ast.Constant) and not self._is_fixed(default):
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
                self._source(given[each.arg]) if each.arg in given else None,
                ast.unparse(defaults[each.arg]) if each.arg in defaults else None,
                False,
                each.arg == region.holder,
            )
            for each in every
        ]

    def _is_fixed(self, value: ast.expr | None) -> bool:
        """Whether a value is a name that the file binds once."""
        if not isinstance(value, ast.Name) or self.module.declares_global(value.id):
            return False
        return sum(value.id in bound_by(each) for each in self.module.tree.body) == 1

    def _source(self, node: ast.expr) -> str:
        block = self.module.block
        return self.module.text[block.start(node) : block.end(node)]

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
            self.lifted[name] = name

    def _attributes(self, entry: _Region) -> None:
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

    def _handed(self, region: _Region) -> set[int]:
        """Where a region makes the object, or hands it on."""
        found: set[int] = set()
        for called in region.sites:
            statement = called.statement
            if isinstance(statement, ast.Assign):
                found.add(id(statement.targets[0]))
            for inner in called.regions:
                method = inner.function in self.known.methods.values()
                call = _calls_of(statement)[inner.call]
                if not method:
                    found.update(id(a) for a in call.args if _is_name(a, region.holder))
        return found

    def _is_site(self, region: _Region, func: ast.Attribute) -> bool:
        return any(
            _calls_of(called.statement)[inner.call].func is func
            for called in region.sites
            for inner in called.regions
        )

    # ---- names -----------------------------------------------------------------------------------

    def _name(self, entry: _Region) -> None:
        """One name for each attribute and each name of a function, none of them another's."""
        module = self.module
        every = [entry, *self.regions]
        self.taken = {name for each in module.tree.body for name in bound_by(each)}
        self.taken.discard(self.known.node.name)
        for method in self.known.methods.values():
            self.taken |= method.globals | method.inner
        for each in module.tree.body:
            if isinstance(each, ast.FunctionDef):
                self.taken |= module.definition(each.name).globals if each is entry.node else set()
        for region in every:
            self.taken |= region.function.globals | region.function.inner
        for name in self.lifted:
            self.lifted[name] = self._fresh(name)
        self._parameters(entry)
        for region in every:
            for name in sorted(region.function.locals):
                if name == region.holder:
                    continue
                if name not in region.names:
                    region.names[name] = self._local(region, name)
        self._aliases(every)
        for region in every:
            for each in region.attributes:
                if each.attr not in self.attributes and each.attr not in self.known.methods:
                    self.attributes[each.attr] = self._fresh(each.attr)

    def _fresh(self, name: str) -> str:
        names = [name, *(f"{name}_{number}{'_' * (number // 9)}" for number in range(1, 50))]
        for each in names:
            if each not in self.taken and (
                each == name or not re.search(rf"\b{each}\b", self.module.text)
            ):
                self.taken.add(each)
                return each
        raise Unjoined

    def _local(self, region: _Region, name: str) -> str:
        """The name of a function's own, which is a new one where others have it as well."""
        if name == "_" and not any(
            _is_name(each, name) and isinstance(each.ctx, ast.Load)  # type: ignore[attr-defined]
            for each in ast.walk(region.node)
        ):
            return name  # what nobody reads may be everybody's
        new = self._fresh(name) if name not in region.function.inner else name
        if name in region.function.inner:
            if sum(name in each.function.locals for each in self.regions) > 1:
                raise Unjoined
            return name
        if new != name:
            by_name = len(stores_in(region.node, name))
            every = [*region.node.args.args, *region.node.args.kwonlyargs]
            parameter = any(each.arg == name for each in every)
            if by_name != times_bound(region.node, name) or parameter and region.number is None:
                raise Unjoined
        return new

    def _parameters(self, entry: _Region) -> None:
        """Parameters that are given a name and never bound are that name."""
        for name in sorted(entry.function.locals):
            if name != entry.holder:
                entry.names[name] = self._local(entry, name)
        for region in self.regions:
            parent = region.parent
            assert parent is not None
            parameters: list[Parameter] = []
            for each in region.parameters:
                value = region.given.get(each.name)
                same = (
                    isinstance(value, ast.Name)
                    and value.id != parent.holder
                    and value.id in parent.function.locals
                    and not times_bound(region.node, each.name)
                    and each.name not in region.function.inner
                    and (not _captured(region, each.name) or self._fixed(parent, value.id, region))
                )
                if each.holds:
                    joined = each.name
                elif same and isinstance(value, ast.Name):
                    if value.id not in parent.names:
                        parent.names[value.id] = self._local(parent, value.id)
                    joined = region.names[each.name] = parent.names[value.id]
                else:
                    joined = region.names[each.name] = self._local(region, each.name)
                parameters.append(
                    Parameter(each.name, joined, each.argument, each.default, same, each.holds)
                )
            region.parameters = parameters

    def _fixed(self, parent: _Region, name: str, region: _Region) -> bool:
        """Whether a name is bound no more from a call on that surely runs once."""
        assert region.called is not None
        stores = stores_in(parent.node, name)
        if times_bound(parent.node, name) != len(stores):
            return False
        first = region.called.statement.lineno
        if not region.once or any(each.lineno >= first for each in stores):
            return False
        given = parent.given.get(name)
        if given is None or parent.parent is None:
            return True
        return isinstance(given, ast.Name) and self._fixed(parent.parent, given.id, parent)

    def _aliases(self, every: list[_Region]) -> None:
        """`self.a = b`, each bound no more: one name for both."""
        stored: dict[str, int] = {}
        for region in every:
            for each in region.attributes:
                if not isinstance(each.ctx, ast.Load):
                    stored[each.attr] = stored.get(each.attr, 0) + 1
        merged: set[str] = set()
        for region in self.regions:
            for statement in _plain_statements(region.node):
                found = _as_alias(statement, region)
                if found is None:
                    continue
                attribute, value = found
                joined = region.names.get(value)
                if joined is None or joined in merged or stored.get(attribute.attr) != 1:
                    continue
                if value in region.function.inner or not region.once:
                    continue
                stores = stores_in(region.node, value)
                parameter = next((p for p in region.parameters if p.name == value), None)
                if times_bound(region.node, value) != len(stores):
                    continue
                if parameter is not None:
                    given = region.given.get(value)
                    if stores or not parameter.same or not isinstance(given, ast.Name):
                        continue
                    if region.parent is None or not self._fixed(region.parent, given.id, region):
                        continue
                if any(each.lineno >= statement.lineno for each in stores):
                    continue
                merged.add(joined)
                self.attributes[attribute.attr] = joined
                behind = [
                    each
                    for each in ast.walk(region.node)
                    if isinstance(each, ast.Name | ast.Attribute) and each.lineno > statement.lineno
                ]
                by_attribute = any(
                    isinstance(each, ast.Attribute)
                    and each.attr == attribute.attr
                    and _is_name(each.value, region.holder)
                    for each in behind
                )
                by_name = any(_is_name(each, value) for each in behind)
                assert region.number is not None
                block = self.module.block
                self.aliases[id(statement)] = Alias(
                    len(self.aliases),
                    joined,
                    attribute.attr,
                    self.module.text[block.start(statement) : block.end(statement)],
                    region.number,
                    by_attribute and not by_name,
                )

    # ---- the text --------------------------------------------------------------------------------

    def _written(self, entry: _Region) -> Carried:
        text, module = self.module.text, self.module
        cuts: list[tuple[int, int, object]] = []
        start = module.block.start(self.known.node)
        end = module.block.end(self.known.node)
        cuts.append((start, end, "class"))
        for region in self.regions:
            if region.function not in self.known.methods.values():
                at = module.starts[region.node.lineno - 1]
                cuts.append((at, module.block.end(region.node), f'"{MARK} {region.number} def"'))
        at = module.starts[entry.node.lineno - 1]
        cuts.append((at, module.block.end(entry.node), entry))
        cuts.sort(key=lambda cut: cut[0])
        pieces = Pieces()
        done = 0
        for first, last, what in cuts:
            if first < done:
                raise Unjoined
            pieces.own(self.path, text, done, first)
            if what == "class":
                self._class(pieces)
            elif isinstance(what, str):
                pieces.new(what, self.path, first)
            else:
                body = header_end(entry.function)
                pieces.own(self.path, text, first, body)
                own = module.starts[entry.node.body[0].lineno - 1]
                margin = text[own : module.block.start(entry.node.body[0])]
                self._body(pieces, entry, margin)
            done = last
        pieces.own(self.path, text, done, len(text))
        made = "".join(pieces.texts)
        methods = {
            name: (module.starts[each.node.lineno - 1] - start, module.block.end(each.node) - start)
            for name, each in self.known.methods.items()
        }
        return Carried(
            Tree({**self.tree.sources, self.path: made}, self.tree.imports),
            self.path,
            self._line(pieces),
            entry.node.name,
            (),
            {self.path: made},
            {self.path: self.text},
            pieces.origins,
            tuple(self._told(each) for each in self.regions),
            tuple(
                Site(
                    self._statement(called.statement),
                    called.statement.col_offset,
                    tuple(each.number for each in called.regions if each.number is not None),
                    region.number,
                )
                for called, region in sorted(
                    ((c, r) for r in [entry, *self.regions] for c in r.sites),
                    key=lambda pair: pair[0].number,
                )
            ),
            tuple(self.aliases.values()),
            {new: own for own, new in self.attributes.items()},
            entry.holder,
            {new: own for own, new in entry.names.items()},
            text[start:end],
            methods,
            {new: own for own, new in self.lifted.items()},
            self.opened,
        )

    def _statement(self, statement: ast.stmt) -> str:
        block = self.module.block
        return self.module.text[block.start(statement) : block.end(statement)]

    def _told(self, region: _Region) -> Body:
        assert region.number is not None and region.called is not None
        start = self.module.starts[region.node.lineno - 1]
        return Body(
            region.number,
            region.node.name,
            self.module.text[start : self.module.block.end(region.node)],
            region.holder,
            region.called.number,
            region.call,
            tuple(region.parameters),
            {new: own for own, new in region.names.items()},
        )

    def _line(self, pieces: Pieces) -> int:
        """The tower loop's line of the joined text."""
        where = self.candidate.file.span(self.candidate.loop)
        at = self.module.starts[where.line - 1] + where.column
        for start, end, _, begin in pieces.origins:
            if begin <= at < begin + end - start:
                return "".join(pieces.texts).count("\n", 0, start + at - begin) + 1
        raise Unjoined

    def _class(self, pieces: Pieces) -> None:
        """In place of the class: a mark, and the methods that stay functions."""
        block, text = self.module.block, self.module.text
        pieces.new(f'"{MARK} class"', self.path, block.start(self.known.node))
        for name, new in self.lifted.items():
            method = self.known.methods[name]
            node = method.node
            start = block.start(node)
            pieces.new(f'\n\n\n"{MARK} method {new}"\n', self.path, start)
            holder = node.args.args[0]
            gone = block.offset(holder.lineno, holder.col_offset)
            comma = re.compile(r"\w+\s*(,\s*)?").match(text, gone)
            assert comma is not None
            tokens = [(gone, comma.end() - gone, "")]
            at = start + len("def ")
            if not text.startswith(name, at):
                raise Unjoined
            tokens.append((at, len(name), new))
            for each in accesses(node, holder.arg):
                place = block.start(each)
                tokens.append((place, block.end(each) - place, self.lifted[each.attr]))
            depth = node.col_offset
            self._rows(pieces, start - depth, block.end(node), -depth, sorted(tokens), [], "")

    def _body(self, pieces: Pieces, region: _Region, margin: str) -> None:
        """The body of a function in place of its call, or where it stands."""
        block, text, node = self.module.block, self.module.text, region.node
        first = header_end(region.function)
        end = block.end(node)
        last = last_of(node)
        if isinstance(last, ast.Return) and region.number is not None:
            raise Unjoined
        own = text[self.module.starts[node.body[0].lineno - 1] : block.start(node.body[0])]
        if own.strip() or "\t" in own or "\t" in margin:
            raise Unjoined
        cuts: list[tuple[int, int, _Called | Alias]] = []
        for called in region.sites:
            cuts.append((*self._whole_lines(called.statement), called))
        for statement in ast.walk(node):
            alias = self.aliases.get(id(statement))
            if alias is not None and isinstance(statement, ast.stmt):
                cuts.append((*self._whole_lines(statement), alias))
        cuts.sort(key=lambda cut: cut[0])
        tokens = sorted(self._tokens(region))
        self._rows(pieces, first, end, len(margin) - len(own), tokens, cuts, margin)

    def _whole_lines(self, statement: ast.stmt) -> _Place:
        """From the begin of a statement's first line to its end, where no other stands there."""
        block, text = self.module.block, self.module.text
        start = self.module.starts[statement.lineno - 1]
        if text[start : block.start(statement)].strip():
            raise Unjoined
        end = block.end(statement)
        if text[end:].split("\n", 1)[0].strip():
            raise Unjoined
        return start, end

    def _tokens(self, region: _Region) -> Iterator[tuple[int, int, str]]:
        """Where other names stand in a region: the place, the length, the new text."""
        block, text = self.module.block, self.module.text
        for each in ast.walk(region.node):
            if isinstance(each, ast.Name) and region.names.get(each.id, each.id) != each.id:
                place = block.start(each)
                if not text.startswith(each.id, place):
                    raise Unjoined  # in a text, of which older Pythons do not tell
                yield place, len(each.id), region.names[each.id]
        for attribute in region.attributes:
            place, end = block.start(attribute), block.end(attribute)
            if attribute.attr in self.inlined:
                continue
            if not re.fullmatch(rf"{region.holder}\.{attribute.attr}", text[place:end]):
                raise Unjoined
            new = self.lifted.get(attribute.attr) or self.attributes[attribute.attr]
            yield place, end - place, new

    def _rows(
        self,
        pieces: Pieces,
        first: int,
        end: int,
        by: int,
        tokens: list[tuple[int, int, str]],
        cuts: list[tuple[int, int, _Called | Alias]],
        margin: str,
    ) -> None:
        """The author's lines, moved to the right or to the left, with other names and with bodies for calls."""
        text = self.module.text
        inside = lines_in_texts(text)
        position = first
        while position < end:
            cut = next((each for each in cuts if each[0] == position), None)
            line = text.count("\n", 0, position) + 1
            stop = text.find("\n", position, end)
            stop = end if stop < 0 else stop
            if cut is not None:
                kept = len(text[position:stop]) - len(text[position:stop].lstrip(" "))
                here = " " * (kept + by)
                self._cut(pieces, cut[2], here, position)
                stop = cut[1]
            else:
                start = position
                row = text[position:stop]
                if row.strip() and line not in inside and by:
                    kept = len(row) - len(row.lstrip(" "))
                    if by > 0:
                        pieces.new(" " * by, self.path, position)
                    elif kept < -by:
                        raise Unjoined
                    else:
                        start = position - by
                for where, length, new in tokens:
                    if start <= where < stop:
                        pieces.own(self.path, text, start, where)
                        pieces.new(new, self.path, where)
                        start = where + length
                pieces.own(self.path, text, start, stop)
            if stop < end:
                pieces.new("\n", self.path, stop)
            position = stop + 1

    def _cut(self, pieces: Pieces, what: _Called | Alias, margin: str, at: int) -> None:
        if isinstance(what, Alias):
            pieces.new(f"{margin}{what.mark}", self.path, at)
            return
        for number, region in enumerate(what.regions):
            told = self._told(region)
            pieces.new(f"{margin}{told.mark('begin')}\n", self.path, at)
            for each in region.parameters:
                if each.holds or each.same:
                    continue
                value = self._argument(region, each)
                if value != each.joined:
                    pieces.new(f"{margin}{each.joined} = {value}\n", self.path, at)
            pieces.new(f"{margin}{told.mark('body')}\n", self.path, at)
            self._body(pieces, region, margin)
            pieces.new(f"\n{margin}{told.mark('end')}", self.path, at)
            if number + 1 < len(what.regions):
                pieces.new("\n", self.path, at)

    def _argument(self, region: _Region, parameter: Parameter) -> str:
        """What a parameter is given, in the joined text's names."""
        value = region.given.get(parameter.name)
        if value is None:
            assert parameter.default is not None
            return parameter.default
        assert region.parent is not None
        block = self.module.block
        start, end = block.start(value), block.end(value)
        text, done = "", start
        for where, length, new in sorted(self._tokens(region.parent)):
            if start <= where < end:
                text += self.module.text[done:where] + new
                done = where + length
        text += self.module.text[done:end]
        if "\n" in text:
            raise Unjoined
        return text


def _captured(region: _Region, name: str) -> bool:
    """Whether a function in a function reads a name of it."""
    waiting = list(region.function.names.get_children())
    while waiting:
        table = waiting.pop()
        if any(each.get_name() == name and each.is_free() for each in table.get_symbols()):
            return True
        waiting.extend(table.get_children())
    return False


def _calls_of(statement: ast.stmt) -> list[ast.Call]:
    """The calls of a statement, by where they begin, shorter ones first."""
    found = [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
    return sorted(
        found,
        key=lambda c: (c.lineno, c.col_offset, c.end_lineno or 0, c.end_col_offset or 0),
    )


def _is_name(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _plain_statements(node: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Statements that run once where the function does."""
    waiting: list[ast.stmt] = list(reversed(node.body))
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, ast.With):
            waiting.extend(reversed(each.body))


def _as_alias(statement: ast.stmt, region: _Region) -> tuple[ast.Attribute, str] | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or not _is_name(target.value, region.holder):
        return None
    return (target, statement.value.id) if isinstance(statement.value, ast.Name) else None
