"""What moved statements read from around them must be, when a step is traced, what it was when TF1 built the graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from towermigrate.flow.scopes import body_of, names_of, own_nodes, parameters
from towermigrate.flow.values import Const, External, Value
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code, last_name, root_of
from towermigrate.recognize.proof.frames import Frame, Read
from towermigrate.recognize.proof.numbers import holds_number
from towermigrate.recognize.proof.stars import all_brought
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.proof.values import (
    Class,
    Either,
    Function,
    Items,
    Module,
    Object,
    Partial,
    Python,
    Setting,
    Tensor,
    Text,
)
from towermigrate.tree import all_nodes, imported_files, modules_in

_SCALAR_OPS = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COPIES = {
    "int",
    "float",
    "str",
    "len",
    "bool",
    "sum",
    "min",
    "max",
    "abs",
    "range",
    "xrange",
    "round",
    "print",
}
"""Builtins whose results hold nothing of their argument."""
_LIBRARIES = ("numpy.", "math.", "os.", "random.", "logging.", "datetime.", "sys.")
"""Libraries that run nothing of the program's where they are given numbers and texts."""
_DEEP = 4
"""How many calls inside of calls are looked into for what changes an object."""
_OF_FUNCTIONS = frozenset({"__code__", "__defaults__", "__kwdefaults__"})
"""What a function is made of, and may be made of something else by."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass
class _Watched:
    """One value that moved statements read: the attributes read of it, and the first and last reads."""

    frame: Frame
    name: str
    reads: list[Read] = field(default_factory=list)

    @property
    def first(self) -> Read:
        return self.reads[0]

    @property
    def line(self) -> int:
        return min(r.line for r in self.reads)

    @property
    def attributes(self) -> set[str]:
        return {part for r in self.reads for part in r.chain}

    @property
    def immutable(self) -> bool:
        value = self.frame.names.get(self.name)
        return isinstance(value, Python | External | Function | Partial | Class | Module | Text)


def check_reads(proof: TowerProof) -> None:
    """Report every value from around the moved statements that may change after the graph was built."""
    watched: dict[tuple[int, str], _Watched] = {}
    for read in proof.reads:
        key = (id(read.frame), read.name)
        watched.setdefault(key, _Watched(read.frame, read.name)).reads.append(read)
    checker = _Settled(proof)
    for one in watched.values():
        checker.check(one)
    open_ = [one for one in watched.values() if not checker.is_fixed(one)]
    if open_:
        proof.facts.reads_mutable = True
        checker.check_window(open_[0])


class _Settled:
    def __init__(self, proof: TowerProof) -> None:
        self.proof = proof
        self.closure = proof.codes.closure(proof.code.path)
        self.scope_node: ast.AST = proof.function[0] if proof.function else proof.code.tree
        self.moved = {id(n) for statement in proof.moved_nodes for n in all_nodes(statement)}
        self._stores = list(self._attribute_stores())
        self._by_name = list(self._set_by_name())
        self._inside = frozenset(id(n) for n in own_nodes(body_of(self.scope_node)))
        self._imported: dict[str, frozenset[int]] = {}

    def check(self, one: _Watched) -> None:
        if self._rebound(one) or self._holds_number(one):
            return
        value = one.frame.names.get(one.name)
        if one.immutable or isinstance(value, Tensor | Object):
            flags = isinstance(value, External) and "flags" in f"{value.name} {one.attributes}"
            # What changes a class is looked for in `classes`.
            if not (flags or isinstance(value, Function | Object)) or not one.attributes:
                return
        self._changed(one)

    def is_fixed(self, one: _Watched) -> bool:
        """Whether nothing can change a value but binding its name anew: a number, a text, a function, a module."""
        value = one.frame.names.get(one.name)
        if isinstance(value, Tensor | Object | Text | Module):
            return True
        if isinstance(value, External | Function | Partial):
            return not one.attributes or isinstance(value, External) and "flags" not in value.name
        if isinstance(value, Const):
            return True
        return not one.attributes and (self._scalar_default(one) or self._holds_number(one))

    def _holds_number(self, one: _Watched) -> bool:
        return not one.attributes and holds_number(self.closure, one.frame, one.name)

    def check_window(self, one: _Watched) -> None:
        """Report what stands between the towers and the last of the graph and may change what the towers have read.

        The steps are traced behind that: what comes later changes nothing that a step does.
        """
        for node in self.proof.window:
            for inner in all_nodes(node):
                if self._may_do_anything(inner):
                    self._say(
                        one, self.proof.code, node, "may be changed before the steps are traced"
                    )
                    return

    def _may_do_anything(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute | ast.Subscript):
            return isinstance(node.ctx, ast.Store | ast.Del) and not self._is_configuration(node)
        if isinstance(node, ast.AugAssign | ast.Delete | ast.Yield | ast.YieldFrom | ast.Await):
            return True
        if self._runs_unseen(node):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name) and node.func.id in _COPIES | {
            "isinstance",
            "type",
            "list",
            "tuple",
        }:
            return False
        if self._is_run(self.proof.code, node):
            return False
        with self.proof.mode(False):
            function = self.proof.value(node.func, self.proof.top)
        if not isinstance(function, External):
            return True
        if function.name.startswith(("tf.", "time.", "os.path.")):
            return False
        # A library changes what it is given.
        given = [*node.args, *(each.value for each in node.keywords)]
        return not function.name.startswith(_LIBRARIES) or not all(map(self._is_number, given))

    def _is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number or a text, or what a command line gives."""
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_number, node.elts))
        with self.proof.mode(False):
            value = self.proof.value(node, self.proof.top)
        if isinstance(value, Setting):
            return value.told or value.flag or value.own
        return isinstance(value, Const | Text)

    def _is_configuration(self, node: ast.expr) -> bool:
        """Whether a place is one of a session's configuration, which nothing else holds: `config.gpu_options.allow_growth`."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        with self.proof.mode(False):
            bound = self.proof.top.own.get(node.id, [])
            made = [each.value for each in bound if isinstance(each, ast.Assign)]
            called = [each.func for each in made if isinstance(each, ast.Call)]
            return len(called) == len(bound) == 1 and _name_of(
                self.proof.value(called[0], self.proof.top)
            ).endswith(".ConfigProto")

    def _runs_unseen(self, node: ast.AST) -> bool:
        """Whether a node may run code of the program's without a call: of its iterators, operators and properties."""
        if isinstance(node, ast.Attribute):
            return node.attr in self.proof.running and not isinstance(node.value, ast.Call)
        if not self._unseen:
            return False
        asked: list[ast.expr] = []
        match node:
            case ast.For() | ast.comprehension():
                asked = [node.iter]
            case ast.Starred() | ast.FormattedValue():
                asked = [node.value]
            case ast.With():
                asked = [item.context_expr for item in node.items]
            case ast.Assign() if any(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
                asked = [node.value]
            case ast.Compare():
                asked = [node.left, *node.comparators]
            case ast.BinOp():
                asked = [node.left, node.right]
            case ast.UnaryOp():
                asked = [node.operand]
            case ast.BoolOp():
                asked = node.values
            case ast.If() | ast.IfExp():
                asked = [node.test]
            case ast.Subscript():
                asked = [node.value]
            case ast.Call() if isinstance(node.func, ast.Name):
                asked = [*node.args, *(each.value for each in node.keywords)]
        with self.proof.mode(False):
            values = [self.proof.value(each, self.proof.top) for each in asked]
        return not all(_runs_nothing(value) for value in values)

    @cached_property
    def _unseen(self) -> bool:
        """Whether the program has iterators, operators or such of its own."""
        special = any(name.startswith("__") and name != "__init__" for name in self.proof.running)
        return special or any(
            isinstance(node, ast.Yield | ast.YieldFrom | ast.GeneratorExp)
            for code in self.closure
            for node in code.nodes
        )

    def _say(self, one: _Watched, code: Code, node: ast.AST, how: str) -> None:
        read = one.first
        self.proof.always(
            "TM224", code, node,
            f"`{'.'.join([one.name, *read.chain])}`, which moved statements read (line {read.code.place(read.node)[0]}"
            f"{'' if read.code is code else ' of ' + read.code.path}), {how}",
        )  # fmt: skip

    # -- bound anew

    def _rebound(self, one: _Watched) -> bool:
        frame, name = one.frame, one.name
        for code in self.closure:
            if code is not frame.code:
                continue
            for declared in code.declarations:
                if name in declared.names:
                    if frame.is_module or isinstance(declared, ast.Nonlocal):
                        self._say(one, code, declared, "is set by a function")
                        return True
        nodes = frame.own.get(name, [])
        if frame is self.proof.top:
            for node in nodes:
                if node.lineno > one.line and id(node) not in self.moved:  # type: ignore[attr-defined]
                    self._say(one, frame.code, node, "is bound anew after the graph was built")
                    return True
        elif not frame.is_module and not frame.moved and len(nodes) > 1:
            self._say(one, frame.code, nodes[1], "is bound more than once in the function around")
            return True
        if frame.is_module:
            for code, target in self._stores:
                if target.attr == name and (self._handed_on or self._is_module(code, target)):
                    self._say(one, code, target, "is set as an attribute of its module")
                    return True
            set_there = (
                (c, n) for c in self.closure for n in self._setters(c) if self._sets(c, n, name)
            )
            for code, node in (*self._by_name, *set_there):
                self._say(one, code, node, f"may be set by its name: `{code.said(node)}`")
                return True
        return False

    def _sets(self, code: Code, call: ast.Call, name: str) -> bool:
        """Whether `setattr` may set a name of a module: one that is spelled, of whatever, or any of what is imported."""
        given = call.args[1] if len(call.args) > 1 else None
        if isinstance(given, ast.Constant):
            return given.value == name
        return bool(call.args) and self._is_module(code, call.args[0])

    @cached_property
    def _handed_on(self) -> bool:
        """Whether a module of the tree may have a name that its import does not give it: as an argument, of a library."""
        for code in self.closure:
            if re.search(r"\bimport_module\b|__import__", code.text):
                return True
            for node in code.nodes:
                if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                    continue
                if isinstance(code.parents.get(id(node)), ast.Attribute):
                    continue
                for one in code.bindings.get(node.id, []):
                    modules = (
                        modules_in([one]) if isinstance(one, ast.Import | ast.ImportFrom) else ()
                    )
                    named = {
                        (k, m)
                        for k, m in modules
                        if m.rpartition(".")[2] == node.id or isinstance(one, ast.Import)
                    }
                    if imported_files(self.proof.codes.tree.sources, code.path, named):
                        return True
        return False

    def _is_module(self, code: Code, target: ast.expr) -> bool:
        nodes = code.bindings.get(root_of(target) or "", [])
        if any(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes):
            return True
        if not isinstance(target, ast.Attribute) or not nodes:
            return False
        with self.proof.mode(False):
            return isinstance(self.proof.value(target.value, self.proof.module(code)), Module)

    def _set_by_name(self) -> Iterator[tuple[Code, ast.AST]]:
        """Every place that may set names of modules without spelling them."""
        for code in self.closure:
            for node in code.nodes:
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    name = node.func.id
                    if (
                        name in ("globals", "exec", "eval", "reload")
                        or name == "vars"
                        and all(self._is_module(code, each) for each in node.args)
                    ):
                        yield code, node
                elif isinstance(node, ast.Attribute):
                    if node.attr == "__dict__" and self._is_module(code, node.value):
                        yield code, node
                    if node.attr in _OF_FUNCTIONS and not isinstance(node.ctx, ast.Load):
                        yield code, node
                    if node.attr == "__globals__":
                        yield code, node
                    whole = f"{root_of(node)}.{node.attr}"
                    if whole in ("sys.modules", "importlib.reload", "imp.reload"):
                        yield code, node

    def _attribute_stores(self) -> Iterator[tuple[Code, ast.Attribute]]:
        """Every place of the program that sets an attribute, `self.x` in constructors left out."""
        for code in self.closure:
            made: set[int] = set()
            for node in code.nodes:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    for inner in all_nodes(node):
                        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
                            if inner.value.id == "self":
                                made.add(id(inner))
            for node in code.nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                    if id(node) not in made:
                        yield code, node

    # -- changed in place

    def _changed(self, one: _Watched) -> None:
        attributes = one.attributes
        for code, target in self._stores:
            if target.attr in attributes and not self._early(one, code, target):
                self._say(one, code, target, f"is changed by `{code.said(target)} = …`")
                return
        for code in self.closure:
            for call in self._setters(code):
                if not self._early(one, code, call):
                    if attributes or call.func.id in ("exec", "eval"):  # type: ignore[attr-defined]
                        self._say(one, code, call, f"may be changed by `{code.said(call)}`")
                        return
        if isinstance(one.frame.names.get(one.name), Object):
            return
        for code, region, name in self._regions(one):
            if self._harmed(one, code, region, name):
                return

    def _setters(self, code: Code) -> list[ast.Call]:
        """The calls by which a file may set attributes, or anything, without spelling them."""
        found = [
            call
            for name in ("setattr", "exec", "eval", "delattr")
            for call in code.calls.get(name, ())
            if isinstance(call.func, ast.Name)
        ]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))

    def _early(self, one: _Watched, code: Code, node: ast.AST) -> bool:
        """Whether a place is run once, before the graph reads the value."""
        if code is not self.proof.code:
            return id(node) in self._top_level(code)
        if id(node) in self._inside:
            line = getattr(node, "lineno", self.proof.loop.lineno + 1)
            return bool(line <= (one.line or self.proof.loop.lineno)) and id(node) not in self.moved
        return bool(self.proof.function) and id(node) in self._top_level(code)

    def _top_level(self, code: Code) -> frozenset[int]:
        """The nodes of a file that run when it is imported."""
        if code.path not in self._imported:
            self._imported[code.path] = frozenset(id(n) for n in own_nodes(code.tree.body))
        return self._imported[code.path]

    def _regions(self, one: _Watched) -> Iterator[tuple[Code, ast.AST, str]]:
        """Where the value can be reached by a name: its scope, and functions that see it."""
        frame = one.frame
        if not frame.is_module or frame is self.proof.top:
            if frame.node is not None:
                yield frame.code, frame.node, one.name
        if frame.is_module:
            for code in self.closure:
                for name in self._names_in(code, one):
                    for node in code.definitions:
                        if name not in code.bound_in(node) and name not in parameters(node):
                            yield code, node, name

    def _names_in(self, code: Code, one: _Watched) -> list[str]:
        if code is one.frame.code:
            return [one.name]
        found = []
        for name, nodes in code.bindings.items():
            for node in nodes:
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        if alias.name == one.name and (alias.asname or alias.name) == name:
                            found.append(name)
        if one.frame.code in all_brought(self.proof.codes, one.name, code):
            found.append(one.name)
        return found

    def _harmed(self, one: _Watched, code: Code, region: ast.AST, name: str) -> bool:
        """Whether something in a region may change the object of a name; aliases count as the name."""
        names = {name}
        whole = list(all_nodes(region))
        for _ in range(3):
            for node in whole:
                value = node.value if isinstance(node, ast.Assign) else None
                if id(node) not in self.moved and not self._is_run(code, value):
                    names |= _aliases(node, names)
        scalar = any(_shows_scalar(n, name) for n in whole) or self._scalar_default(one)
        for node in whole:
            if not isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
                continue
            if id(node) in self.moved or self._early(one, code, node):
                continue
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(
                node.ctx, ast.Store | ast.Del
            ):
                if root_of(node) in names:
                    self._say(one, code, node, f"is changed by `{code.said(node)} = …`")
                    return True
            if not isinstance(node, ast.Call):
                continue
            func = node.func
            if isinstance(func, ast.Attribute) and root_of(func) in names:
                if func.attr not in library.READING_METHODS and not self._is_library(code, func):
                    self._say(one, code, node, f"may be changed by `{code.said(node)}`")
                    return True
            elif self._writes(code, node, names):
                self._say(one, code, node, f"is changed by `{code.said(node)}`")
                return True
            elif not scalar and not one.attributes:
                for arg in [*node.args, *(k.value for k in node.keywords)]:
                    if (
                        isinstance(arg, ast.Name)
                        and arg.id in names
                        and self._may_change(code, node)
                    ):
                        self._say(one, code, node, f"may be changed by `{code.said(node)}`")
                        return True
        return False

    def _writes(self, code: Code, call: ast.Call, names: set[str]) -> bool:
        """Whether a call of a library writes into an array that it is given."""
        outs = [k.value for k in call.keywords if k.arg == "out"]
        if any(root_of(v) in names for v in outs):
            return True
        last = last_name(call.func)
        return last in library.WRITERS and any(root_of(a) in names for a in call.args)

    def _scalar_default(self, one: _Watched) -> bool:
        """Whether a parameter's default is a number or a text."""
        node = one.frame.node
        if not isinstance(node, _FUNCTIONS):
            return False
        args = [*node.args.posonlyargs, *node.args.args]
        pairs = list(zip(reversed(args), reversed(node.args.defaults), strict=False))
        pairs += [
            (a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d
        ]
        for argument, default in pairs:
            if argument.arg == one.name and isinstance(default, ast.Constant):
                return default.value is not None
        return False

    def _is_library(self, code: Code, func: ast.Attribute) -> bool:
        return any(
            isinstance(n, ast.Import | ast.ImportFrom)
            for n in code.bindings.get(root_of(func) or "", [])
        )

    def _changes_own(self, code: Code, node: ast.AST, own: set[str], deep: int) -> bool:
        """Whether a node of a function may change what one of its own names holds."""
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            return root_of(node) in own
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in library.MUTATORS:
            if root_of(node.func) in own:
                return True
        given = [*node.args, *(each.value for each in node.keywords)]
        if not any(isinstance(each, ast.Name) and each.id in own for each in given):
            return False
        return deep > _DEEP or self._may_change(code, node, deep + 1)

    def _is_run(self, code: Code, node: ast.AST | None) -> bool:
        """Whether a session is run, which changes nothing that it is given and gives arrays of its own."""
        func = node.func if isinstance(node, ast.Call) and code is self.proof.code else None
        return (
            isinstance(func, ast.Attribute)
            and func.attr == "run"
            and isinstance(func.value, ast.Name)
            and self.proof.facts.kinds.of_name(func.value.id) is Kind.SESSION
        )

    def _may_change(self, code: Code, call: ast.Call, deep: int = 0) -> bool:
        """Whether a call may change an object that it is given; of one in a function of the tree, where that is seen."""
        if self._is_run(code, call):
            return False
        frame = self.proof.module(code)
        with self.proof.mode(False):
            function = self.proof.value(call.func, frame)
        if isinstance(function, External):
            known = function.name.startswith((*library.QUIET_LIBRARIES, "tf."))
            return not (known or deep) or function.name.endswith(library.CHANGERS)
        if isinstance(function, Function):
            own = set(parameters(function.node)) - {"self"}
            inside = list(all_nodes(function.node))
            for _ in range(3):
                own |= {name for node in inside for name in _aliases(node, own)}
            return any(self._changes_own(function.code, node, own, deep) for node in inside)
        return not deep and not isinstance(function, Object)


def _name_of(value: Value) -> str:
    return value.name if isinstance(value, External) else ""


def _runs_nothing(value: Value) -> bool:
    """Whether going over a value, or comparing it, runs no code of the program's."""
    if isinstance(value, Either):
        return all(_runs_nothing(one) for one in value.values)
    return isinstance(value, Items | Python | Tensor | External | Object | Function | Text)


def _aliases(node: ast.AST, names: set[str]) -> set[str]:
    """The names that a node binds to what may be, or hold, or be a view of the object of one of the names."""
    pairs: list[tuple[ast.AST | None, ast.expr]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.comprehension):
        # What a list holds is another object than the list, unless the list was made of the object.
        gone_over = _gone_over(node.iter)
        pairs = [(node.target, each) for each in gone_over if not isinstance(each, ast.Name)]
    elif isinstance(node, ast.With):
        pairs = [(item.optional_vars, item.context_expr) for item in node.items]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        args = [*node.args.posonlyargs, *node.args.args]
        given = list(zip(reversed(args), reversed(node.args.defaults), strict=False))
        given += [
            (a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d
        ]
        return {argument.arg for argument, default in given if _holds(default, names)}
    found: set[str] = set()
    for target, value in pairs:
        if target is not None and _holds(value, names):
            found |= set(names_of(target))
    return found


def _gone_over(node: ast.expr) -> list[ast.expr]:
    """The lists whose entries a loop over something gives: `zip(a, b)` those of both."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("zip", "enumerate", "reversed", "sorted") and not node.keywords:
            return [one for each in node.args for one in _gone_over(each)]
    return [node]


def _holds(node: ast.expr, names: set[str]) -> bool:
    """Whether a value is, or holds, or may be a view of the object of one of the names."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice | ast.Tuple) and _holds(node.value, names)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _COPIES:
            return False
        given = [*node.args, *(k.value for k in node.keywords)]
        receiver = isinstance(node.func, ast.Attribute) and _holds(node.func.value, names)
        return receiver or any(_holds(a, names) for a in given)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_holds(e, names) for e in node.elts)
    if isinstance(node, ast.Dict):
        return any(_holds(v, names) for v in node.values)
    if isinstance(node, ast.IfExp):
        return _holds(node.body, names) or _holds(node.orelse, names)
    if isinstance(node, ast.BoolOp):
        return any(_holds(v, names) for v in node.values)
    return isinstance(node, ast.Starred) and _holds(node.value, names)


def _shows_scalar(node: ast.AST, name: str) -> bool:
    """Whether a node uses a name as only a number can be used."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SCALAR_OPS):
        return any(isinstance(s, ast.Name) and s.id == name for s in (node.left, node.right))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("range", "xrange")
    ):
        return any(isinstance(a, ast.Name) and a.id == name for a in node.args)
    if isinstance(node, ast.Compare) and any(isinstance(o, _ORDER) for o in node.ops):
        return any(isinstance(s, ast.Name) and s.id == name for s in (node.left, *node.comparators))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return any(isinstance(s, ast.Name) and s.id == name for s in (node.left, node.right))
    return False
