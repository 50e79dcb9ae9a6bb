"""Run a tower program once, as TF1 did, and collect what keeps its statements from moving into steps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import libcst as cst

from towermigrate.flow.scopes import bindings, names_of
from towermigrate.flow.values import Unknown, Value
from towermigrate.recognize import source
from towermigrate.recognize.analysis import Scope
from towermigrate.recognize.kinds import IN_GRAPH, Kind
from towermigrate.recognize.proof.code import Code, Codes
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.front_seeds import with_one_seed
from towermigrate.recognize.proof.machine import EVALUATION
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.statements import Statements
from towermigrate.recognize.proof.values import (
    NOTHING,
    Differs,
    Either,
    Foreign,
    Function,
    Index,
    Instance,
    Items,
    Made,
    Object,
    Python,
    Setting,
    Tensor,
    Text,
    needs_of,
)
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import assigned, calls, walk
from towermigrate.recognize.tower import Body
from towermigrate.tree import all_nodes

Place = tuple[int, int]


def place_of(file: SourceFile, node: cst.CSTNode) -> Place:
    where = file.span(node)
    return where.line, where.column


class TowerProof(Statements):
    """The run of one program: what stands before its towers, one tower, what stands behind them."""

    def __init__(
        self,
        codes: Codes,
        scope: Scope,
        code: Code,
        body: Body | None,
        averages: Mapping[Place, source.Function | None],
    ) -> None:
        super().__init__(codes)
        self.facts = scope
        self.no_updates = scope.kinds.no_updates
        around = scope.candidate.function or scope.file.module
        taken = [call for call in calls(around) if id(call) in scope.kinds.updates_taken]
        self.updates = frozenset(place_of(scope.file, call) for call in taken)
        self.merges = frozenset((code.path, *place_of(scope.file, call)) for call in scope.merges)
        self.code = self.home = code
        self.body = body
        self.averages = averages
        computes = body.computes if body is not None else []
        self.of_variables = frozenset(
            (code.path, *place_of(scope.file, compute.call))
            for compute in computes
            if compute.optimizer is None
        )
        self.index = body.index if body is not None else None
        self.loop = self._find_loop()
        self.function = self._find_function()
        self.pieces, self.draws = self._inputs()
        # What each tower's own pipelines give, each value of them a draw: no two of them are known to be one.
        self.made_inputs = self._made_inputs()
        self.top = self._frame()
        self.scope = self.top
        self.lists: dict[str, Items] = {}
        self.made_in_tower = 0
        # Statements that stay, between the towers and the last of the graph.
        self.window: list[ast.stmt] = []
        self.step_lines = [
            (where.line, where.end_line)
            for item in _moved_items(body)
            for where in [scope.file.span(item.node)]
        ]
        self.moved_nodes: list[ast.stmt] = list(self.loop.body)
        self.tower = Frame(code, self.loop, self.top, True, bindings(self.loop.body))

    # -- where things are

    def _find_loop(self) -> ast.For:
        wanted = place_of(self.facts.file, self.facts.candidate.loop)
        for node in self.code.nodes:
            if isinstance(node, ast.For) and self.code.place(node) == wanted:
                return node
        raise LookupError("the tower loop is not where it was")

    def _find_function(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions around the loop, innermost first."""
        found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        for node in self.code.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if any(inner is self.loop for inner in all_nodes(node)):
                    found.append(node)
        return list(reversed(found))

    def _frame(self) -> Frame:
        frame = self.module(self.code)
        for node in reversed(self.function):
            frame = Frame.of(self.code, node, frame, moved=False)
        if self.function:
            innermost = self.function[0]
            for name in frame.own:
                if frame.own[name][0] is innermost:
                    frame.names[name] = self._argument(innermost, name)
        return frame

    def _argument(self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Value:
        """What a parameter of the scope is given: a setting, unless a call is seen that gives it another thing."""
        names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
        position = names.index(name) if name in names else len(names)
        numbers = [] if name in names else [False]
        for code in self.codes.closure(self.code.path):
            for call in code.calls.get(function.name, ()):
                if not self._may_call(call, function, code):
                    continue
                given = [k.value for k in call.keywords if k.arg == name]
                given += call.args[position : position + 1]
                numbers.append(bool(given))
                for node in given:
                    value = self._given_by(node, call, code)
                    if isinstance(value, Instance | Made | Tensor | Function | Foreign):
                        return value
                    numbers.append(isinstance(value, Python))
        return Setting(own=bool(numbers) and all(numbers), called=name)

    def _may_call(self, call: ast.Call, function: ast.AST, code: Code) -> bool:
        """Whether a call may be of a function: `sess.run(…)` is no call of a function `run`, unless that is a method."""
        root: ast.expr = call.func
        if isinstance(root, ast.Name) or isinstance(
            self.code.parents.get(id(function)), ast.ClassDef
        ):
            return True
        while isinstance(root, ast.Attribute):
            root = root.value
        bound = code.bindings.get(root.id, ()) if isinstance(root, ast.Name) else ()
        return any(isinstance(each, ast.Import | ast.ImportFrom) for each in bound)

    def _given_by(self, node: ast.expr, call: ast.Call, code: Code) -> Value:
        """An argument of a call, also one that the function around the call has bound by one plain statement."""
        frame = self.module(code)
        with self.mode(False):
            if isinstance(node, ast.Name):
                containing = {id(each) for each in code.around(call)}
                for around in code.definitions:
                    inside = id(around) in containing
                    bound = code.bound_in(around).get(node.id, []) if inside else []
                    plain = [n for n in bound if isinstance(n, ast.Assign)]
                    if plain and len(bound) == 1 and len(plain[0].targets) == 1:
                        return self.bound_in(plain[0].value, frame)
            return self.bound_in(node, frame)

    def _inputs(self) -> tuple[set[Place], dict[Place, str]]:
        """Places of the expressions that give a tower its input, and of those that draw it."""
        pieces: set[Place] = set()
        draws: dict[Place, str] = {}
        file = self.facts.file
        for given in self.body.inputs if self.body is not None else []:
            if given.statement is None:
                continue
            for node in walk(given.statement):
                if isinstance(node, cst.Subscript):
                    pieces.add(place_of(file, node))
                elif isinstance(node, cst.Call) and given.kind in ("queue", "iterator"):
                    line, column = place_of(file, node)
                    draws[line, column] = f"tower:{line}:{column}"
        for node in self.body.inline if self.body is not None else {}:
            pieces.add(place_of(file, node))
        return pieces, draws

    def _made_inputs(self) -> dict[Place, tuple[str, ...]]:
        """Places of the expressions that make a tower's own input pipelines, with the draws that their values are."""
        found: dict[Place, tuple[str, ...]] = {}
        for given in self.body.inputs if self.body is not None else []:
            parts = assigned(given.statement) if given.statement is not None else None
            if given.kind == "own" and parts is not None:
                line, column = place_of(self.facts.file, parts[1])
                found[line, column] = tuple(f"tower:{line}:{column}:{name}" for name in given.names)
        return found

    def nodes_of(self, item: Item) -> list[ast.stmt]:
        """The statements of the syntax tree that an item of the scope stands for."""
        where = self.facts.file.span(item.node)
        start, end = (where.line, where.column), (where.end_line, where.end_column)
        found: list[ast.stmt] = []
        ends: tuple[int, int] = (0, 0)
        for place, node in self._statements:
            if start <= place < end and place >= ends:
                found.append(node)
                ends = (node.end_lineno or 0, 10**6 if _is_compound(node) else place[1] + 1)
        return found

    @cached_property
    def _statements(self) -> list[tuple[Place, ast.stmt]]:
        """Every statement of the scope with its place, in source order."""
        root: ast.AST = self.function[0] if self.function else self.code.tree
        nodes = [n for n in all_nodes(root) if isinstance(n, ast.stmt)]
        return sorted(((self.code.place(n), n) for n in nodes), key=lambda pair: pair[0])

    # -- before

    def before(self, items: Iterable[Item]) -> None:
        self.strict = False
        made: list[ast.AST] = []
        for item in items:
            if item.kind is Kind.VARLIST:
                for node in self.nodes_of(item):
                    self.always(
                        "TM230", self.code, node,
                        f"`{self.code.said(node)}` lists variables before the towers make theirs",
                    )  # fmt: skip
            nodes = self.nodes_of(item)
            if item.kind is Kind.VARIABLE:
                made += [each for node in nodes for each in all_nodes(node)]
            self.line = nodes[0].lineno if nodes else 0
            self.stays(item, nodes)
        for call in with_one_seed(made):
            self.always(
                "TM232", self.code, call,
                f"`{self.code.said(call)}` may start from a seed that another variable in front of the towers starts from",
            )  # fmt: skip

    def stays(self, item: Item, nodes: list[ast.stmt]) -> None:
        """Run statements that stay where they are; only what they bind matters."""
        self.staying = self.behind
        with self.mode(False):
            for node in nodes:
                self.statement(node, self.top)
        self.staying = False
        if item.kind is Kind.WEIGHTS:
            self.weights |= item.binds | item.changes
            self.makes_weights |= {id(each) for node in nodes for each in all_nodes(node)}
            self.made_variables += 1
        for name in item.binds:
            self.top.homes.discard(name)
            value = self._of_kind(item.kind, name, self.top.names.get(name))
            if value is not None:
                self.top.names[name] = value
            elif isinstance(self.top.names.get(name, Unknown()), Unknown):
                self.top.names[name] = Foreign(name)

    def _of_kind(self, kind: Kind, name: str, value: Value | None) -> Value | None:
        """What the readers of the scope know of a name, where the run alone does not."""
        if kind is Kind.PLACEHOLDER:
            return Tensor(placeholder=True)
        if kind is Kind.VARIABLE:
            return Tensor(variable=True)
        if kind is Kind.SCHEDULE:
            return Tensor()
        if kind is Kind.OPTIMIZER:
            return Object("optimizer")
        if kind is Kind.EMA:
            return Object("moving average")
        if kind is Kind.TOWER_LIST:
            made = Items([], False, outer=True, name=name)
            self.lists[name] = made
            return made
        if kind is Kind.VARLIST:
            return Items([(Tensor(variable=True), True)], False, outer=True, name=name)
        if kind is Kind.SPLITS:
            needs = needs_of(value) if value is not None else NOTHING
            return Items([(Tensor(needs), True)], False, outer=True, name=name)
        if kind is Kind.PIPELINE and isinstance(value, Items):
            return Items(value.values, value.exact, True, False, name, key=value.key)
        if kind is Kind.PIPELINE and not isinstance(value, Tensor | Object | Made):
            return Tensor(frozenset({f"unknown:{name}"}))
        if kind is Kind.QUEUE and isinstance(value, Foreign | Unknown):
            return Object("queue")  # an iterator that each tower asks for what comes next
        return None

    # -- the tower

    def run_tower(self) -> None:
        """Run the loop's body once."""
        self.strict, self.where, self.line = True, "a tower", self.loop.lineno
        frame = self.tower
        flags = set(self.body.flags) if self.body is not None else set()
        for name in names_of(self.loop.target):
            frame.own.setdefault(name, [self.loop])
            frame.names[name] = Text("index")
        if self.index is not None:
            frame.names[self.index] = Index()
        for name in flags:
            frame.names[name] = Differs()
        before = self.made_variables
        self.block(self.loop.body, frame)
        if self.made_variables > before and self.weights and not (self.body and self.body.sharing):
            self.always(
                "TM218", self.code, self.loop,
                "nothing says that the towers share the variables that they make beside those in front of them",
            )  # fmt: skip
        self.made_in_tower = self.made_variables
        self.strict = False
        for name, value in frame.names.items():
            self.top.names[name] = value
            self.top.homes.add(name)
            for one in value.values if isinstance(value, Either) else (value,):
                if isinstance(one, Made):
                    one.finish()
        for name, held in self.lists.items():
            every = [(_of_all(v), s) for v, s in held.values]
            self.top.names[name] = Items(every, False, outer=True, name=name)

    def collects(self, holder: Items, method: str, args: Arguments) -> bool:
        if method != "append" or len(args.given) != 1 or self.stack:
            return False
        if self.lists.get(holder.name) is not holder or self.body is None:
            return False
        holder.grow([(args.given[0], True)])
        return True

    def subscript(self, value: Value, key: Value, node: ast.Subscript, frame: Frame) -> Value:
        if self.code.place(node) in self.pieces and frame.code is self.code and not self.stack:
            return Tensor(needs_of(value), given=True)
        return super().subscript(value, key, node, frame)

    def call(self, function: Value, node: ast.Call, frame: Frame) -> Value:
        if frame.code is self.code and not self.stack:
            place = self.code.place(node)
            atom = self.draws.get(place)
            if atom is not None and self.strict:
                return Tensor(frozenset({atom}), given=True)
            made = self.made_inputs.get(place)
            if made is not None and self.strict:
                given = [Tensor(frozenset({each}), given=True) for each in made]
                if len(given) == 1:
                    return given[0]
                return Items([(each, True) for each in given], True) if given else Object("queue")
            if self.strict and place in self.averages and isinstance(function, Function):
                if not _is_one(function, self.averages[place]):
                    return self.report(
                        "TM203", frame.code, node,
                        f"`{frame.code.said(node.func)}` is another function here than the one of its name",
                    )  # fmt: skip
                return self._averaged(node, frame)
        return super().call(function, node, frame)

    def _averaged(self, node: ast.Call, frame: Frame) -> Value:
        """The mean over the towers: one pair for each variable."""
        args = self._arguments(node, frame)
        gradient = Tensor(self.averaged_needs(args.needs()), gradient=True)
        pair = Items([(gradient, True), (Tensor(variable=True), True)], True, False, False)
        return Items([(pair, True)], False)

    def names_variables(self, node: ast.expr, frame: Frame) -> bool:
        owner = node.value if isinstance(node, ast.Attribute) else None
        plain = isinstance(owner, ast.Name) or (
            isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name)
        )
        if not plain or frame.code is not self.code or self.stack:
            return False
        return self.where == "a step" or any(
            start <= node.lineno <= end for start, end in self.step_lines
        )

    def for_first_tower(self, node: ast.expr) -> bool:
        if self.stack or self.body is None:
            return False
        if isinstance(node, ast.Name):
            return node.id in self.body.flags
        return ast.unparse(node) in (f"{self.index} > 0", f"{self.index} != 0")

    def goes(self, device: ast.Call) -> bool:
        return not self.stack and id(device) in self._devices

    @cached_property
    def _devices(self) -> frozenset[int]:
        """What the loop's own `with` statements enter, as far as only such are around them."""
        found: set[int] = set()
        waiting: list[ast.stmt] = list(self.loop.body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.With):
                found |= {id(item.context_expr) for item in node.items}
                waiting.extend(node.body)
        return frozenset(found)

    def only_reuse(self, node: ast.If) -> bool:
        inside = not self.stack and any(n is node for n in all_nodes(self.loop))
        return inside and self.body is not None or super().only_reuse(node)

    # -- behind

    def after(
        self,
        items: Iterable[Item],
        moves: Callable[[Item, list[ast.stmt]], None],
        stays: Callable[[Item, list[ast.stmt]], None],
    ) -> None:
        """Run what stands behind the towers: statements of the graph move, all others stay."""
        self.behind = True
        pending: list[ast.stmt] = []
        of_towers = set(self.facts.lists)
        for item in items:
            nodes = self.nodes_of(item)
            if not nodes:
                continue
            self.line = nodes[0].lineno
            if item.kind in IN_GRAPH or item.kind is Kind.EVALUATION:
                self.window, pending = [*self.window, *pending], []
                self.moved_nodes.extend(nodes)
                moves(item, nodes)
                before, scaled = self._held(), self.scaled
                self.strict = True
                self.where = EVALUATION if item.kind is Kind.EVALUATION else "a step"
                for node in nodes:
                    self.statement(node, self.top)
                self._only_named(item, nodes[0], before)
                self._no_operation(item, nodes[0])
                self._only_tensors(item, nodes[0])
                self.strict = False
                over = bool(item.reads & of_towers)
                of_towers |= item.binds if over else set()
                if over or item.kind is Kind.TOWER_MEAN or self._trains_mean(nodes):
                    self.scaled = scaled  # what is divided is no loss of one tower
                self._waits(item)
            else:
                stays(item, nodes)
                self.stays(item, nodes)
                pending += nodes if item.kind is Kind.PYTHON else []

    def _trains_mean(self, nodes: list[ast.stmt]) -> bool:
        """Whether a statement takes the gradients of a mean over the towers."""
        return any(
            isinstance(node, ast.Call) and (self.code.path, *self.code.place(node)) in self.of_means
            for statement in nodes
            for node in all_nodes(statement)
        )  # fmt: skip

    def _held(self) -> dict[str, tuple[Items, object]]:
        """What the lists of the scope hold now."""
        return {
            name: (value, value.state)
            for name, value in self.top.names.items()
            if isinstance(value, Items)
        }

    def _only_named(
        self,
        item: Item,
        node: ast.stmt,
        before: dict[str, tuple[Items, object]],
    ) -> None:
        """Report a list that a statement changes without showing it: a step is given what its names show."""
        for name, (value, held) in before.items():
            if name in item.changes or value.state == held:
                continue
            self.report(
                "TM206", self.code, node,
                f"`{self.code.said(node)}` changes `{name}` in place, which it does not show",
            )  # fmt: skip

    def _no_operation(self, item: Item, node: ast.stmt) -> None:
        """Report an operation that the readers of the scope take for a tensor: a step gives no operation back."""
        if item.kind not in (Kind.TENSOR, Kind.TOWER, Kind.TOWER_MEAN):
            return
        for name in sorted(item.binds):
            value = self.top.names.get(name)
            for one in value.values if isinstance(value, Either) else (value,):
                if isinstance(one, Object) and one.kind in ("operation", "update"):
                    self.report(
                        "TM220", self.code, node,
                        f"`{name}` is an operation, which a step runs and does not give back",
                    )  # fmt: skip

    def _only_tensors(self, item: Item, node: ast.stmt) -> None:
        """Report a list that may hold more of a tower than a tensor: a step has each part of a tuple by itself.

        A variable would be read when the step is over.
        """
        for name in sorted(item.reads & self.facts.lists.keys()):
            held = self.lists.get(self.facts.lists[name])
            values = [value for value, _ in held.values] if held is not None else []
            plain = [isinstance(v, Tensor) and not v.many and not v.variable for v in values]
            if not plain or not all(plain):
                self.report(
                    "TM203", self.code, node,
                    f"`{self.code.said(node)}` reads `{name}`, which may hold more of each tower than one tensor",
                )  # fmt: skip

    def _waits(self, item: Item) -> None:
        """What stands under control dependencies needs what they need."""
        needs = NOTHING
        for name in item.ordered_after:
            needs |= needs_of(self.top.names.get(name, Unknown()))
        for name in item.binds:
            value = self.top.names.get(name)
            if isinstance(value, Tensor):
                self.top.names[name] = replace(value, needs=value.needs | needs)
            elif isinstance(value, Object):
                self.top.names[name] = Object(value.kind, value.needs | needs)


def _moved_items(body: Body | None) -> list[Item]:
    """The tower's statements that move into steps."""
    if body is None:
        return []
    return [*body.step_items, *(item for compute in body.computes for item in compute.items)]


def check_lists(proof: TowerProof) -> None:
    """Report lists of variables that a tower reads before it has made all of them."""
    for code, node, made in proof.lists_read:
        if made < proof.made_in_tower:
            proof.always(
                "TM230", code, node,
                f"`{code.said(node)}` is read before the tower has made all of its variables: the first tower's "
                "list is shorter than the others'",
            )  # fmt: skip


def _of_all(value: Value) -> Value:
    """A value of one tower as it is in every tower: it needs what each of them draws."""
    if isinstance(value, Tensor):
        return Tensor(_everywhere(value.needs), value.variable, value.gradient)
    if isinstance(value, Items):
        made = [(_of_all(v), s) for v, s in value.values]
        return Items(made, value.exact, value.outer, value.mutable, value.name, key=value.key)
    return value


def _everywhere(needs: frozenset[str]) -> frozenset[str]:
    return needs | {f"all {n}" for n in needs if n.startswith("tower:")}


def _is_compound(node: ast.stmt) -> bool:
    """Whether a statement holds statements, which its lines then are."""
    return hasattr(node, "body")


def _is_one(function: Function, read: source.Function | None) -> bool:
    """Whether a function that is called is the one that was read for it."""
    node = function.node
    if read is None or isinstance(node, ast.Lambda) or function.code.path != read.file.path:
        return False
    lines = {node.lineno, *(each.lineno for each in node.decorator_list)}
    return node.name == read.node.name.value and read.file.line(read.node) in lines
