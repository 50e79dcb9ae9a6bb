"""The state of a proof, and how it finds what a name means: by Python's scopes, over the files of the tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from towermigrate.findings import Finding
from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import Const, External, Unknown, Value, same
from towermigrate.recognize.proof import library, special
from towermigrate.recognize.proof.asked import AskedFor
from towermigrate.recognize.proof.code import BUILTINS, Code, Codes, root_of
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.frames import Entered, Frame, Read, Tag
from towermigrate.recognize.proof.stars import all_brought, brought
from towermigrate.recognize.proof.values import (
    Class,
    Either,
    Foreign,
    Function,
    Index,
    Items,
    Made,
    Module,
    Object,
    OutOfSteps,
    Partial,
    Plain,
    Python,
    Setting,
    Tensor,
    are_variables,
    join_all,
)
from towermigrate.recognize.proof.written import settled
from towermigrate.tree import imported_files, modules_in

STEPS = 60_000
"""Expressions that one proof may look at; a program that takes more is not proved."""
DEPTH = 30
EVALUATION = "an evaluation"
_ONLY_READ = frozenset(
    "len range str int float print sum min max any all repr bool isinstance".split()
)
"""Builtins that change nothing that they are given, and give back no list of theirs."""
MAY_DESCRIBE = (ast.Call, ast.Name, ast.Attribute, ast.Lambda)
"""What may give a descriptor, that of a property for instance, to an attribute of a class."""


class Machine:
    """What all parts of a proof share.

    `strict` says that the code at hand moves into a tower or a step: only there is anything reported, and only
    there are values from around it noted as read. `branched` says that TensorFlow calls it within the graph. `maybe` counts the branches and loops around the statement
    that may not run. `placing` says that the expression at hand names a device of the tower's own, which goes: it
    may differ between the towers, but have no effect.
    """

    def __init__(self, codes: Codes) -> None:
        self.codes = codes
        self.findings: dict[tuple[str, str, int, int], Finding] = {}
        self.reads: list[Read] = []
        self.strict = False
        self.branched = False
        self.maybe = 0
        self.steps = STEPS
        self.stack: list[ast.AST] = []
        self.where = "a tower"
        self.line = 0
        self.behind = False  # the towers have been run
        self.staying = False  # the statement at hand stays behind them
        self.scope: Frame | None = None
        self.made_variables = 0
        self.weights: set[str] = (
            set()
        )  # names of the program's scope for what it makes in front, for the towers
        self.makes_weights: set[int] = set()  # the nodes of the statements that make it
        self.asked = AskedFor()
        self.lists_read: list[tuple[Code, ast.AST, int]] = []
        self.random: list[tuple[Code, ast.AST, str]] = []
        self.seeds: set[object] = set()
        self.unscoped: dict[str, tuple[Code, ast.AST]] = {}
        self.collections: dict[str, list[tuple[Value, bool]]] = {}
        self.scopes: list[Entered] = []
        self.numbered: list[tuple[ast.With, Finding]] = []
        """What TF1 counts in a scope that is the only one around it in its tower, with that."""
        self.tags: list[Tag] = []
        self.named_blocks = 0  # the scopes around that name what is made in them
        self.of_number: dict[str, list[tuple[Value, bool]]] = {}
        """What a tower keeps in collections that are called after its number, by the form of their names."""
        self.read_by_number: list[tuple[Code, ast.Call]] = []
        self.effects: list[tuple[Code, ast.Call]] = []
        """What the tower checks, prints or calls of Python, which all runs must need."""
        self.waits: frozenset[str] = frozenset()
        """What a tensor waits for that is made now, of those."""
        self.members: set[str] = set()  # names of methods that were looked up in classes
        self.values_of_classes: set[str] = set()
        self._escaped: set[int] = set()
        self._defaults: dict[tuple[int, int], Value] = {}
        self.repeated = 0  # rounds of loops that stand for all of them
        self.placing = False
        self.decays: set[int] = set()  # the calls that make the decay of a weight
        self.scaled = False  # a tower's tensor by what may be a count of all towers' examples
        self.no_updates = False
        self.merges: frozenset[tuple[str, int, int]] = frozenset()
        self.of_means: frozenset[tuple[str, int, int]] = frozenset()
        self.of_variables: frozenset[tuple[str, int, int]] = frozenset()
        self.assumed: str | None = None  # a test of the program's scope that is taken to hold
        self.home: Code | None = None
        self._modules: dict[str, Frame] = {}
        self._changed: dict[str, frozenset[str]] = {}
        self._evaluating: set[tuple[str, str]] = set()
        self._listed: dict[str, bool] = {}

    @property
    def evaluates(self) -> bool:
        """Whether the code at hand builds the model once more behind the towers, to look at it."""
        return self.strict and self.where == EVALUATION

    @property
    def unsure(self) -> bool:
        """Whether the expression at hand may not run."""
        return bool(self.maybe or self.asked.unsure)

    def held(self, value: Value) -> Value:
        """What a list or an object is given to hold: in a round that stands for all of a loop no number is known."""
        number = self.repeated and isinstance(value, Const) and value.value is not None
        return Plain() if number else value

    @contextmanager
    def perhaps(self, unsure: bool = True) -> Iterator[None]:
        """What runs inside may ask for variables that are then not sure to be there."""
        self.asked.unsure += unsure
        try:
            yield
        finally:
            self.asked.unsure -= unsure

    # -- reports

    def report(self, rule: str, code: Code, node: ast.AST, message: str) -> Value:
        """Say why the code at hand may not move; gives the value of which nothing more is said."""
        if self.strict:
            finding = code.finding(rule, node, message)
            self.findings.setdefault((rule, finding.path, finding.line, finding.column), finding)
        return Unknown()

    def counted(self, code: Code, node: ast.AST, what: str, by_name: bool) -> None:
        """Report what TF1 numbers over all towers, as no scope around it in its tower begins to count anew.

        Args:
            what: what is so numbered, in the words of the finding.
            by_name: whether only a scope with a name of its own will do.
        """
        message = f"`{code.said(node)}` has no name: TF1 counts such {what} over all towers, so they share nothing"
        around = [each for each in self.scopes if each.counts]
        if not any(each.named or not by_name for each in around):
            self.report("TM218", code, node, message)
        elif self.strict and not self.evaluates and len(around) == 1 and around[0].statement:
            finding = code.finding("TM218", node, message)
            self.numbered.append((around[0].statement, finding))

    def always(self, rule: str, code: Code, node: ast.AST, message: str) -> None:
        """Report, whether the code at hand moves or not."""
        with self.mode(True):
            self.report(rule, code, node, message)

    @contextmanager
    def mode(self, strict: bool) -> Iterator[None]:
        before, self.strict = self.strict, strict
        try:
            yield
        finally:
            self.strict = before

    def tick(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise OutOfSteps

    # -- names

    def module(self, code: Code) -> Frame:
        """The frame of a file's module level; its names are looked at when they are asked for."""
        if code.path not in self._modules:
            self._modules[code.path] = Frame.of(code, code.tree, None, moved=False)
        return self._modules[code.path]

    def lookup(
        self, name: str, frame: Frame, node: ast.AST, code: Code, chain: tuple[str, ...] = ()
    ) -> Value:
        """The value of a name as code in `frame` sees it."""
        current: Frame | None = frame
        while current is not None:
            if name in current.own or name in current.names:
                break
            current = current.parent
        if current is None:
            return self._builtin(name, frame, node, code)
        if current.moved or name in current.homes:
            value = current.names.get(name)
            if isinstance(value, Made) and value.done and self.staying:
                self.always(
                    "TM210", code, node,
                    f"`{name}`, an object of the last tower, is used by what stays behind the towers",
                )  # fmt: skip
            if value is None:
                return self.report(
                    "TM206", code, node,
                    f"`{name}` is read before {self.where} has set it: the value of the tower before",
                )  # fmt: skip
            return value
        value = self.outer(name, current)
        if self.strict:
            line = self.line if current is self.scope else 0
            self.reads.append(Read(current, name, chain, node, code, line))
            given = current.own.get(name, [None])[0] is current.node
            if isinstance(value, Made):
                value.seen_as = (current, name)
            if current is self.scope and name in self.weights and not given:
                if are_variables(value):
                    return value
                return self.report(
                    "TM217", code, node,
                    f"`{name}` may hold more than variables that are made once before the tower loop",
                )  # fmt: skip
            if isinstance(value, Tensor) and (current is not self.scope or given):
                return self.report(
                    "TM217", code, node,
                    f"`{name}` is a tensor made once before the tower loop and shared by the towers",
                )  # fmt: skip
            if isinstance(value, Foreign):
                return self.report(
                    "TM222", code, node,
                    f"what `{name}` holds, made before and read in {self.where}, is not known",
                )  # fmt: skip
            return settled(value, name, current, self.files)
        return value

    @cached_property
    def files(self) -> list[Code]:
        """The files that may run in a process with the program."""
        if self.home is None:
            return []
        beside = files_beside(self.codes, self.home.path)
        return self.codes.closure(self.home.path) if beside is None else beside

    def outer(self, name: str, frame: Frame) -> Value:
        """The value of a name of a scope that stays."""
        if name in frame.names:
            return frame.names[name]
        if not frame.is_module:
            if frame is self.scope:
                return Foreign(name)
            bound = [n.value for n in frame.own.get(name, ()) if isinstance(n, ast.Assign)]
            made = [self.bound_in(n, self.module(frame.code)) for n in bound]
            return next((v for v in made if isinstance(v, Foreign | Tensor)), Setting())
        key = (frame.code.path, name)
        if key in self._evaluating:
            return Unknown()
        self._evaluating.add(key)
        try:
            with self.mode(False):
                found = [self.bound_by(name, node, frame) for node in frame.own[name]]
                stars = all_brought(self.codes, name, frame.code)
                by_star = [self.outer(name, self.module(one)) for one in stars]
        finally:
            self._evaluating.discard(key)
        if by_star and not all(isinstance(v, External) and same(v, found[0]) for v in by_star):
            return Foreign(name)
        value = join_all(found) if len(found) > 1 else found[0]
        if name in frame.code.shared_names:
            value = Setting() if all(_is_python(v) for v in found) else Foreign(name)
        if isinstance(value, Either | Python) and len(found) > 1:
            number = all(isinstance(v, Python) for v in found)
            value = Setting(own=number) if all(_is_python(v) for v in found) else Foreign(name)
        if isinstance(value, Items) and value.mutable and _is_python(value):
            beside = self.codes.closure(self.home.path) if self.home is not None else []
            if any(name in self._changed_in_place(code) for code in {*beside, frame.code}):
                value = Setting()
        if isinstance(value, Items):
            value.outer = True
            value.name = name
        elif isinstance(value, Unknown):
            value = Foreign(name)
        frame.names[name] = value
        return value

    def _changed_in_place(self, code: Code) -> frozenset[str]:
        """Names of lists and dicts that a file may change somewhere: what they hold when they are read is not known."""
        if code.path not in self._changed:
            found: set[str] = set()
            for node in code.nodes:
                changes = isinstance(node, ast.Attribute) and node.attr in library.MUTATORS
                changes |= isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
                root: ast.AST = node.target if isinstance(node, ast.AugAssign) else node
                if isinstance(node, ast.Name) or not (changes or root is not node):
                    continue
                while isinstance(root, ast.Attribute | ast.Subscript):
                    found |= {root.attr} if isinstance(root, ast.Attribute) else set()
                    root = root.value
                found |= {root.id} if isinstance(root, ast.Name) else set()
            for node in own_nodes(code.tree.body):
                if not (isinstance(node, ast.Call) and self._only_reads(node.func, code)):
                    found |= {each.id for each in _handed_on(node) if isinstance(each, ast.Name)}
            self._changed[code.path] = frozenset(found)
        return self._changed[code.path]

    def _only_reads(self, func: ast.expr, code: Code) -> bool:
        """Whether a function is a library's that changes no list that it is given, and gives back no list of it."""
        bound = code.bindings.get(root_of(func) or "", [])
        if code.star_imports or not all(self._of_library(node, code) for node in bound):
            return False
        with self.mode(False):
            value = self.value(func, self.module(code)) if root_of(func) else None
        name = value.name if isinstance(value, External) else ""
        if name.startswith("builtins."):
            return name.rpartition(".")[2] in _ONLY_READ
        return name.startswith((*library.QUIET_LIBRARIES, "tf.")) and not name.endswith(
            library.CHANGERS
        )

    def _of_library(self, node: ast.AST, code: Code) -> bool:
        """Whether a statement imports from no file of the tree."""
        modules = modules_in([node])
        return bool(modules) and not imported_files(self.codes.tree.sources, code.path, modules)

    def bound_in(self, node: ast.expr, module: Frame) -> Value:
        """What an expression of a function gives, as far as its file's names tell: what is of the graph is Foreign."""
        with self.mode(False):
            value = self.value(node, module)
        if isinstance(value, Unknown) and module.code.mentions_tensorflow(node):
            return Foreign()
        return value

    @cached_property
    def running(self) -> frozenset[str]:
        """Names of attributes, `__getitem__` and its kin among them, that run code of the program's classes when they are read."""
        found: set[str] = set()
        for code in self.codes.closure(self.home.path) if self.home is not None else ():
            for node in code.nodes:
                # `Config.__float__ = …`, `setattr(Config, "__float__", …)`, `type("Config", (), {"__float__": …})`.
                if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                    found |= {node.attr} & special.ALL
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= {node.value} & special.ALL
                if not isinstance(node, ast.ClassDef):
                    continue
                for own in node.body:
                    if isinstance(own, ast.FunctionDef):
                        if own.decorator_list or own.name.startswith("__"):
                            found.add(own.name)
                    elif isinstance(own, ast.Assign) and isinstance(own.value, MAY_DESCRIBE):
                        found |= {t.id for t in own.targets if isinstance(t, ast.Name)}
        return frozenset(found)

    def bound_by(self, name: str, node: ast.AST, frame: Frame) -> Value:
        """What one statement of a module binds a name to."""
        code = frame.code
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.decorated(node, frame)
        if isinstance(node, ast.ClassDef):
            return Class(node, code)
        if isinstance(node, ast.Import):
            return self.imported(code, name, node)
        if isinstance(node, ast.ImportFrom):
            return self.imported_from(code, name, node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                part = _part_for(name, target, node.value)
                if part is not None:
                    return self.value(part, frame)
            made = self.value(node.value, frame)
            return Setting() if _is_python(made) else Foreign(name)
        if isinstance(node, ast.For) and _is_python(self.value(node.iter, frame)):
            return Setting()
        if isinstance(node, ast.AugAssign) and _is_python(self.value(node.value, frame)):
            return Setting()
        return Foreign(name)

    def imported(self, code: Code, name: str, node: ast.Import) -> Value:
        for alias in node.names:
            if alias.asname == name or alias.asname is None and alias.name.split(".")[0] == name:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                target = self.codes.imported(code.path, whole)
                return Module(target) if target is not None else named(whole)
        return Unknown()

    def imported_from(self, code: Code, name: str, node: ast.ImportFrom) -> Value:
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if (alias.asname or alias.name) != name:
                continue
            below = f"{base}.{alias.name}" if not base.endswith(".") else base + alias.name
            target = self.codes.imported(code.path, below)
            if target is not None:
                return Module(target)
            target = self.codes.imported(code.path, base)
            if target is not None:
                inner = self.module(target)
                if alias.name in inner.own:
                    return self.outer(alias.name, inner)
                star = brought(self.codes, alias.name, target)
                if star is not None and star.code is not None:
                    return self.outer(alias.name, self.module(star.code))
                return Foreign(name)
            return Foreign(name) if node.level else named(below)
        return Unknown()

    def _builtin(self, name: str, frame: Frame, node: ast.AST, code: Code) -> Value:
        origin = frame
        while origin.parent is not None:
            origin = origin.parent
        star = brought(self.codes, name, origin.code)
        if star is not None and star.code is not None:
            return self.lookup(name, self.module(star.code), node, code)
        if star is not None:
            return self.report(
                "TM229", code, node,
                f"`{name}` may come from `from {star.module} import *`, and what it then is is not known",
            )  # fmt: skip
        if name in BUILTINS:
            return External("builtins." + name)
        return self.report("TM222", code, node, f"`{name}` is bound nowhere that could be seen")

    def all_towers(self, needs: frozenset[str]) -> None:
        """Report the collections of all towers that something depends on which is trained or fetched."""
        for need in sorted(needs & self.unscoped.keys()):
            code, node = self.unscoped[need]
            self.always(
                "TM219", code, node,
                f"`{code.said(node)}` without the name scope of its tower also sees what the towers before put there",
            )  # fmt: skip

    # -- parts

    def decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Value:
        raise NotImplementedError

    def value(self, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def call(self, function: Value, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def enter(
        self, function: Function, given: list[Value], named: dict[str, Value], node: ast.AST, code: Code
    ) -> Value:  # fmt: skip
        raise NotImplementedError


def _part_for(name: str, target: ast.expr, value: ast.expr) -> ast.expr | None:
    """What a target binds a name to: all of a value, or its part where both are written out (`a, b = 1, 2`)."""
    if isinstance(target, ast.Name):
        return value if target.id == name else None
    written = ast.Tuple | ast.List
    if not isinstance(target, written) or not isinstance(value, written):
        return None
    if len(target.elts) != len(value.elts):
        return None
    if any(isinstance(each, ast.Starred) for each in [*target.elts, *value.elts]):
        return None
    parts = [_part_for(name, *pair) for pair in zip(target.elts, value.elts, strict=True)]
    return next((each for each in reversed(parts) if each is not None), None)


def _handed_on(node: ast.AST) -> list[ast.expr]:
    """What is given another name or to other code where a module is run, which may change it by that."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.Starred():
            return [node.value] if node.value is not None else []
        case ast.Tuple() | ast.List() | ast.Set():
            return node.elts
        case ast.Dict():
            return node.values
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp():
            return node.values
        case ast.Call():
            return [*node.args, *(each.value for each in node.keywords)]
    return []


def named(full: str) -> External:
    """The library name of a dotted import, TensorFlow's in TF1's spelling."""
    full = library.SIX.get(full, full)
    if full == "tf_slim" or full.startswith("tf_slim."):
        full = "tensorflow.contrib.slim" + full[len("tf_slim") :]
    for prefix in ("tensorflow.compat.v1", "tensorflow"):
        if full == prefix or full.startswith(prefix + "."):
            return External("tf" + full[len(prefix) :])
    if full in ("np", "numpy") or full.startswith("numpy."):
        return External(full)
    return External(full)


def _is_python(value: Value) -> bool:
    """Whether a value surely does not belong to a graph."""
    if isinstance(value, Items):
        return all(_is_python(v) for v, _ in value.values)
    if isinstance(value, Either):
        return all(_is_python(v) for v in value.values)
    if isinstance(value, Partial):
        parts = (value.function, *value.given, *(v for _, v in value.named))
        return all(_is_python(v) for v in parts)
    return isinstance(value, Python | Setting | External | Function | Class | Module | Index)


is_python = _is_python
__all__ = ["Machine", "OutOfSteps", "is_python", "named", "Object", "Tensor"]
