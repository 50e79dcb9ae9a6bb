"""Run the statements of a tower or a step: assignments, branches, loops and scopes; everything else is a reason."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from towermigrate.flow.scopes import bound_in, own_nodes
from towermigrate.flow.values import NONE, Const, External, Unknown, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.asked import SAME
from towermigrate.recognize.proof.effects import effects_in
from towermigrate.recognize.proof.frames import Entered, Frame
from towermigrate.recognize.proof.machine import is_python
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.parts import UNROLL
from towermigrate.recognize.proof.placers import is_heard
from towermigrate.recognize.proof.slim import ArgScope, is_none
from towermigrate.recognize.proof.stops import Stops
from towermigrate.recognize.proof.values import (
    Differs,
    Either,
    Foreign,
    Function,
    Index,
    Items,
    Made,
    Object,
    Plain,
    Present,
    Python,
    Setting,
    Tensor,
    Text,
    holds_tensor,
    join,
    join_all,
    may_run,
    text_of,
)
from towermigrate.tree import all_nodes

_NO_SCOPE = "no scope"
"""Stands for no variable scope: no part of a name."""
_TOLD_LISTS = re.compile(
    r"nargs\s*=|['\"]append['\"]|DEFINE_(?:multi|list|spaceseplist)|\btype\s*=\s*(?!(?:int|float|str|bool|None)\b)\w"
)
_ROUNDS = 6
_ONCE = {
    "Try": "a `try`", "While": "a `while` loop", "Global": "`global`",
    "Nonlocal": "`nonlocal`", "Delete": "a `del`", "ClassDef": "a class", "AsyncFunctionDef": "an `async` function",
    "AsyncFor": "an `async` loop", "AsyncWith": "an `async` scope", "Match": "a `match`", "Break": "a `break`",
    "Continue": "a `continue`", "TryStar": "a `try`",
}  # fmt: skip


class Statements(Stops):
    """Runs statements."""

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Run statements in order; whether the end can be reached."""
        return all(self.statement(node, frame) for node in body)

    def statement(self, node: ast.stmt, frame: Frame) -> bool:
        """Run one statement; whether what follows it can be reached."""
        self.tick()
        if isinstance(node, ast.Assign):
            value = self.value(node.value, frame)
            for target in node.targets:
                self.bind(target, value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.bind(node.target, self.value(node.value, frame), frame)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, frame)
        elif isinstance(node, ast.Expr):
            self._expression(node, frame)
        elif isinstance(node, ast.Return):
            frame.returned.append(self.value(node.value, frame) if node.value else NONE)
            return False
        elif isinstance(node, ast.If):
            return self._branch(node, frame)
        elif isinstance(node, ast.For):
            return self._loop(node, frame)
        elif isinstance(node, ast.With):
            return self._with(node, frame)
        elif isinstance(node, ast.FunctionDef):
            self.bind_name(node.name, self.decorated(node, frame), frame)
        elif isinstance(node, ast.ClassDef) and frame.is_module and not self.strict:
            self.bind_name(node.name, self.bound_by(node.name, node, frame), frame)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self.bind_name(name, self.imported(frame.code, name, node), frame)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                self.bind_name(name, self.imported_from(frame.code, name, node), frame)
        elif isinstance(node, ast.Assert | ast.Raise):
            return self.stops(node, frame)
        elif not isinstance(node, ast.Pass):
            if not self.strict:
                self.not_run(node, frame)
            said = _ONCE.get(type(node).__name__, f"`{type(node).__name__}`")
            self.report(
                "TM223", frame.code, node,
                f"{said} in {self.where}: Python runs it once in TF1 and at every trace of a step",
            )  # fmt: skip
            return not isinstance(node, ast.Break | ast.Continue)
        return True

    # -- binding

    def not_run(self, node: ast.stmt, frame: Frame) -> None:
        """What a statement of code that stays binds or changes, which is not run, is not known."""
        graph = frame is self.scope or frame.code.mentions_tensorflow(node)
        for name in bound_in([node]):
            if not self.behind or is_python(frame.names.get(name, Plain())):
                frame.names[name] = Foreign(name) if graph else Setting()
        if any(isinstance(each, ast.Return) for each in own_nodes([node])):
            frame.returned.append(Foreign() if graph else Setting())
            self.asked.unsure += 1
        for each in all_nodes(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                self.escapes([self.seen(each.id, frame)])

    def bind_name(self, name: str, value: Value, frame: Frame) -> None:
        if not self.strict and name in frame.code.shared_names and is_python(value):
            self.escapes([value])
            value = Setting()  # a function may bind it anew
        frame.names[name] = value
        if self.strict:
            frame.homes.add(name)
        else:
            frame.homes.discard(name)

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            self.bind_name(target.id, value, frame)
        elif isinstance(target, ast.Tuple | ast.List):
            for part, one in zip(target.elts, self._parts(target, value, frame), strict=True):
                self.bind(part.value if isinstance(part, ast.Starred) else part, one, frame)
        elif isinstance(target, ast.Subscript):
            self._store(target, self.value(target.value, frame), value, frame)
        elif isinstance(target, ast.Attribute):
            if self.stored(self.value(target.value, frame), target, value, frame):
                return
            if not self.strict:
                self.escapes([value])
            self.report(
                "TM206", frame.code, target,
                f"{self.where} stores a value in `{frame.code.said(target)}`; it can only return values",
            )  # fmt: skip

    def _parts(self, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> list[Value]:
        """What each of several targets is given."""
        stars = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        if isinstance(value, Items) and value.exact:
            held = [one for one, _ in value.values]
            behind = len(target.elts) - 1 - stars[0] if len(stars) == 1 else 0
            if not stars and len(held) == len(target.elts):
                return held
            if len(stars) == 1 and len(held) >= len(target.elts) - 1:
                end = len(held) - behind
                middle = Items([(one, True) for one in held[stars[0] : end]], True, not self.strict)
                return [*held[: stars[0]], middle, *held[end:]]
        inner = value if isinstance(value, Tensor) else self.element(value, target, frame)
        return [
            Items([(inner, False)], False, not self.strict)
            if isinstance(part, ast.Starred)
            else inner
            for part in target.elts
        ]

    def _store(self, target: ast.Subscript, holder: Value, value: Value, frame: Frame) -> None:
        key = self.value(target.slice, frame)
        if holds_tensor(key):
            self._hashed(target, frame)
        if isinstance(holder, Items) and not (holder.outer and self.strict) and not self.branched:
            if isinstance(target.slice, ast.Slice):
                holder.loosen()
                holder.grow([(self.element(value, target, frame), False)], False)
            else:
                holder.grow([(self.held(value), not self.unsure)], False, key)
            return
        if not self.strict:
            self.escapes([value])
        self._changes(holder, target, frame)

    def _changes(self, holder: Value, node: ast.AST, frame: Frame) -> None:
        """Something that was made outside of the moved code is changed in it."""
        if not self.strict:
            return
        root: ast.AST = node
        while isinstance(root, ast.Call | ast.Attribute | ast.Subscript | ast.AugAssign):
            if isinstance(root, ast.AugAssign):
                root = root.target
            else:
                root = root.func if isinstance(root, ast.Call) else root.value
        name = holder.name if isinstance(holder, Items) and holder.name else frame.code.said(root)
        self.report(
            "TM206",
            frame.code,
            node,
            f"`{frame.code.said(node)}` in {self.where} changes `{name}`, which was made outside of it and would "
            "be changed at every trace",
        )

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        if not isinstance(node.target, ast.Name):
            holder = (
                self.value(node.target.value, frame)
                if isinstance(node.target, ast.Subscript | ast.Attribute)
                else Unknown()
            )
            if isinstance(node.target, ast.Subscript):
                self._store(node.target, holder, value, frame)
            elif isinstance(node.target, ast.Attribute) and isinstance(holder, Made):
                self._added(node, node.target, holder, value, frame)
            else:
                self._changes(Unknown(), node, frame)
            return
        name = node.target.id
        home: Frame | None = frame
        while home is not None and name not in home.names and name not in home.own:
            home = home.parent
        if self.strict and home is not None and not home.moved and name not in home.homes:
            self.report(
                "TM206", frame.code, node,
                f"`{frame.code.said(node)}` in {self.where} adds to `{name}`, which was made outside of it",
            )  # fmt: skip
            return
        before = self.value(ast.copy_location(ast.Name(name, ast.Load()), node), frame)
        if not self._extended(node, before, value, frame):
            made = self.operator(node, before, value, frame)
            if self._may_be_array(before, value):
                self._changes(before, node, frame)
            self.bind_name(name, made, frame)

    def _extended(self, node: ast.AugAssign, before: Value, value: Value, frame: Frame) -> bool:
        """`list += more` and its kin, which change the list itself; whether they do."""
        if not isinstance(before, Items) or not before.mutable:
            return False
        if (before.outer and self.strict) or self.branched:
            self._changes(before, node, frame)
            return True
        if isinstance(node.op, ast.Add):
            given = value.entries() if isinstance(value, Items) else [(Unknown(), False)]
            sure = not self.unsure
            exact = isinstance(value, Items) and value.exact and sure
            before.grow([(self.held(v), s and sure) for v, s in given], exact)
            return True
        more = value.entries() if isinstance(value, Items) else before.entries()
        before.loosen()
        before.grow(
            [(v, False) for v, _ in more], False, value.key if isinstance(value, Items) else None
        )
        return True

    def _added(
        self, node: ast.AugAssign, target: ast.Attribute, holder: Made, value: Value, frame: Frame
    ) -> None:
        """`self.name += value`."""
        before = self.attribute(holder, target.attr, target, frame)
        if self._extended(node, before, value, frame):
            return
        made = self.operator(node, before, value, frame)
        if self._may_be_array(before, value) or not self.stored(holder, target, made, frame):
            self._changes(Unknown(), node, frame)

    def _may_be_array(self, before: Value, value: Value) -> bool:
        """Whether `before += value` may change an array, or a list, that something else holds: it is not bound anew then."""
        if holds_tensor(value) or not self.strict:
            return False  # an array takes none: it is a number
        lists = isinstance(value, Items) or self._tells_lists
        held = before.values if isinstance(before, Either) else (before,)
        return any(
            isinstance(one, Items)
            and one.outer
            and one.mutable
            or isinstance(one, Setting)
            and not one.own
            and (lists or not (one.flag or one.told))
            for one in held
        )

    @cached_property
    def _tells_lists(self) -> bool:
        """Whether the command line may give lists, or what the program makes of its words."""
        return any(_TOLD_LISTS.search(code.text) for code in self.files)

    # -- expressions as statements

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            func = node.value.func
            if func.attr in library.MUTATORS and self._mutates(node.value, func, frame):
                return
        self.value(node.value, frame)

    def _mutates(self, call: ast.Call, func: ast.Attribute, frame: Frame) -> bool:
        """`x.append(…)` and its kin; whether `x` is a list or a dict."""
        holder = self.value(func.value, frame)
        if isinstance(holder, Setting) and self.strict:
            self._changes(holder, call, frame)
            return True
        if not isinstance(holder, Items):
            return False
        args: Arguments = self._arguments(call, frame)
        if (holder.outer or self.branched) and self.strict:
            if self.branched or not self.collects(holder, func.attr, args):
                self._changes(holder, call, frame)
            return True
        if func.attr == "sort" and any(may_run(value) for value in args.all()):
            self._unknown(call, frame)
        given = args.given[0] if len(args.given) == 1 and not args.named else None
        sure = not self.unsure
        if func.attr == "append" and given is not None:
            holder.grow([(self.held(given), sure)], sure)
        elif func.attr == "extend" and given is not None:
            entries = (
                given.entries()
                if isinstance(given, Items)
                else [(self.element(given, call, frame), False)]
            )
            exact = isinstance(given, Items) and given.exact
            holder.grow([(self.held(v), s and sure) for v, s in entries], exact and sure)
        elif func.attr == "insert" and len(args.given) == 2:
            holder.grow([(self.held(args.given[1]), sure)], False)
        else:
            holder.loosen()
            key = join_all(args.given) if args.given else None
            if func.attr == "update" and isinstance(given, Items) and given.key is not None:
                holder.grow([(v, False) for v, _ in given.values], False, given.key)
            else:
                holder.grow([(v, False) for v in args.all()], False, key)
        return True

    def collects(self, holder: Items, method: str, args: Arguments) -> bool:
        """Whether a change of an outer list is the tower loop's own collecting, which goes with it."""
        return False

    # -- control flow

    def _branch(self, node: ast.If, frame: Frame) -> bool:
        test = self.value(node.test, frame)
        known = self.truth(test, node.test, frame)
        if isinstance(test, Index | Differs) and not self.only_reuse(node):
            self.report(
                "TM214", frame.code, node,
                f"`if {frame.code.said(node.test)}:` decides by the tower's index: the towers differ",
            )  # fmt: skip
        if (
            known is None
            and self.assumed is not None
            and not self.stack
            and frame.code is self.home
        ):
            known = ast.unparse(node.test) == self.assumed or None
        if known is not None:
            return self.block(node.body if known else node.orelse, frame)
        before = dict(frame.names)
        unsure = 0 if isinstance(test, Present) else 1
        self.maybe += unsure
        first_ends = self.block(node.body, frame)
        after, frame.names = frame.names, dict(before)
        second_ends = self.block(node.orelse, frame)
        self.maybe -= unsure
        if first_ends != second_ends:
            self.asked.unsure += 1
        if first_ends and second_ends:
            frame.names = _joined(after, frame.names)
        elif first_ends:
            frame.names = after
        return first_ends or second_ends

    def only_reuse(self, node: ast.If) -> bool:
        """Whether a branch does nothing but say that variables are reused."""
        return not node.orelse and all(
            isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Call)
            and isinstance(s.value.func, ast.Attribute)
            and s.value.func.attr == "reuse_variables"
            for s in node.body
        )

    def _loop(self, node: ast.For, frame: Frame) -> bool:
        source = self.value(node.iter, frame)
        if holds_tensor(source) and isinstance(source, Tensor):
            self.report(
                "TM226",
                frame.code,
                node,
                f"`for` goes over the tensor `{frame.code.said(node.iter)}`",
            )
        if isinstance(source, Index | Differs):
            self.report("TM227", frame.code, node, "a loop runs as often as the tower's index says")
        jumps = not self.strict and _jumps(node)  # Its rounds may end before their last statement.
        known = isinstance(source, Items) and source.exact and len(source.values) <= UNROLL
        if isinstance(source, Items) and known and not jumps:
            before = source.state
            for value, _ in list(source.values):
                self.bind(node.target, value, frame)
                if not self.block(node.body, frame):
                    return False  # it returned: what jumps in moved code is a reason
            if source.state != before:  # it has grown while it was gone over
                self._rounds(node, source, frame, sure=False)
            return self.block(node.orelse, frame)
        # A list that is not exact has at least its sure values: the body runs for one of them, and perhaps again.
        sure = isinstance(source, Items) and any(s for _, s in source.values) and not jumps
        self._rounds(node, source, frame, sure)
        if any(isinstance(n, ast.Return) for each in node.body for n in all_nodes(each)):
            self.asked.unsure += 1
        if not jumps:
            return self.block(node.orelse, frame)
        names = dict(frame.names)
        self.maybe += 1
        self.block(node.orelse, frame)
        self.maybe -= 1
        frame.names = _joined(frame.names, names)
        return True

    def _rounds(self, node: ast.For, source: Value, frame: Frame, sure: bool) -> None:
        """Run the body of a loop for what stands for all items, until what it binds stays as it is."""
        bound = sorted(bound_in(node.body))
        seen: object = None
        for number in range(_ROUNDS):
            before = dict(frame.names)
            perhaps = number > 0 or not sure
            self.maybe += perhaps
            self.repeated += 1
            self.bind(node.target, self.element(source, node.iter, frame), frame)
            self.block(node.body, frame)
            self.maybe -= perhaps
            self.repeated -= 1
            frame.names = _joined(frame.names, before) if perhaps else frame.names
            for name in bound:  # in the next round it is another number
                value = frame.names.get(name)
                if isinstance(value, Const) and value != NONE:
                    frame.names[name] = Plain()
            kinds = [(name, _kind(frame.names.get(name))) for name in bound]
            if number and kinds == seen:
                return
            seen = kinds

    def _with(self, node: ast.With, frame: Frame) -> bool:
        entered = scopes = inside = 0
        values: list[Value] = []
        defaults = self.defaults
        for item in node.items:
            self._part = _NO_SCOPE
            value = self._entered(item.context_expr, frame)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, frame)
            values.append(value)
            if isinstance(value, ArgScope):
                self.defaults = value.defaults
            named = isinstance(value, Object) and value.kind == "variable scope" and self._named
            self.scopes.append(Entered(bool(named) or self._part == SAME, bool(named), node))
            names = _names_operations(item.context_expr)
            self.named_blocks += names
            inside += names
            entered += 1
            if self._part != _NO_SCOPE:
                self.asked.enter(self._part, not self.maybe)
                scopes += 1
        waits = self.waits
        for value in values:
            if isinstance(value, Object) and value.kind == "control":
                self.waits |= value.needs
        ends = self.block(node.body, frame)
        self.waits = waits
        self.named_blocks -= inside
        del self.scopes[-entered:]
        self.asked.leave(scopes)
        self.defaults = defaults
        for value in values:
            self.left_scope(value)
        return ends

    _named = False
    _part: str | None = None

    def goes(self, device: ast.Call) -> bool:
        """Whether a device that is entered goes with the loop, as the replicas have theirs."""
        return False

    def _entered(self, node: ast.expr, frame: Frame) -> Value:
        """The value of a scope; only those of the list may be entered."""
        code = frame.code
        self.ran(node)
        scope = self.arg_scope(node, frame) if isinstance(node, ast.Call) else None
        if scope is not None:
            return scope
        function = self.value(node.func, frame) if isinstance(node, ast.Call) else None
        if not isinstance(function, External) or function.name not in library.SCOPES:
            if isinstance(node, ast.Call):
                given = self._arguments(node, frame)
                if not self.strict:
                    self.escapes([function or Unknown(), *given.all()])
            return self.report(
                "TM223",
                code,
                node,
                f"`with {code.said(node)}` is no scope that is known to mean the same in a step",
            )
        assert isinstance(node, ast.Call)
        name = function.name
        self.placing = name == "tf.device" and self.goes(node)
        args = self._arguments(node, frame)
        self.placing = False
        if name == "tf.device":
            for value in args.all():
                one = [*value.values] if isinstance(value, Either) else [value]
                if any(isinstance(each, Function) and is_heard(each.node) for each in one):
                    self.report(
                        "TM223", code, node,
                        f"`{code.said(node)}` does more than place operations, in TF1 for each of them; no step asks it",
                    )  # fmt: skip
            return Object("device")
        denied = (
            self._denied(name, args, node, frame) if name != "tf.control_dependencies" else None
        )
        if denied is not None:
            return denied
        if name == "tf.control_dependencies":
            return Object("control", effects_in(args.needs()))
        if name in ("tf.name_scope", "tf.op_scope"):
            return self.name_scope(args)
        first = args.get(0, "name_or_scope")
        starts = args.named.get("initializer")
        if isinstance(starts, Object) and starts.seed is not None and self.where != "a tower":
            self.report(
                "TM232", code, node,
                f"`{code.said(node)}` starts all of its variables from one seed",
            )  # fmt: skip
        self._part = self._part_of_name(name, node, first, frame)
        unnamed = first is None or is_none(first)
        self._named = isinstance(first, Python | Setting) and not unnamed
        if unnamed and name == "tf.variable_scope":
            self.counted(code, node, "scopes", False)
        if isinstance(first, Text | Index | Differs):
            self.report(
                "TM218", code, node,
                f"`{code.said(node)}` names variables for their tower: the towers share nothing",
            )  # fmt: skip
        return Object("variable scope")

    def _part_of_name(
        self, name: str, node: ast.Call, first: Value | None, frame: Frame
    ) -> str | None:
        """What a variable scope adds to the names of variables; None where it is not known."""
        if name != "tf.variable_scope" or not node.args:
            return None
        made = node.args[0]
        if isinstance(made, ast.Call) and not made.args and isinstance(first, Object):
            function = self.value(made.func, frame)
            if isinstance(function, External) and function.name == "tf.get_variable_scope":
                return SAME
        return text_of(first) or None


def _kind(value: Value | None) -> object:
    """What is told of a value by its kind alone."""
    if isinstance(value, Either):
        return frozenset(_kind(one) for one in value.values)
    if isinstance(value, Const):
        return value.value is None
    if isinstance(value, Tensor):
        return value.variable, value.gradient, value.many
    return type(value)


def _jumps(loop: ast.For) -> bool:
    """Whether a round of a loop may end before its last statement, or be the last."""
    return any(
        isinstance(node, ast.Break | ast.Continue | ast.Return)
        for each in loop.body
        for node in all_nodes(each)
    )


def _joined(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value]:
    made = dict(a)
    for name, value in b.items():
        made[name] = join(made[name], value) if name in made else value
    return made


def _names_operations(node: ast.expr) -> bool:
    """Whether what a `with` enters may give operations another name."""
    made = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    quiet = made.endswith((".device", "arg_scope", ".control_dependencies", ".colocate_with"))
    root = made.endswith("variable_scope") and "get_variable_scope()" in ast.unparse(node)
    return not quiet and not root
