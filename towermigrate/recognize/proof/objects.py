"""Run objects of the program's own classes: what they keep is followed, attribute by attribute.

A class is followed where Python does nothing with its objects that its text does not show: one line of bases, all of the
tree, methods without decorators but `staticmethod` and `property`, and no special method but those that make, call and show
an object.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from towermigrate.flow.values import NONE, Const, External, Unknown, Value
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.frames import Frame, Read
from towermigrate.recognize.proof.functions import Functions
from towermigrate.recognize.proof.machine import is_python
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.values import (
    Class,
    Either,
    Foreign,
    Function,
    Items,
    Made,
    Method,
    Object,
    Plain,
    Setting,
    Super,
    Tensor,
    join,
    join_all,
    may_run,
)

_SHOWN = frozenset({"__init__", "__call__", "__repr__", "__str__"})
_DECORATORS = frozenset({"staticmethod", "property"})
_NO_DESCRIPTOR = (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict, ast.Set)
"""What gives no object that Python asks when an attribute of its name is read or set."""
_ROOT = "builtins.object"
_BEHIND = "object of Python.__init__"
"""What `super().__init__` is where no class above has one."""


@dataclass(frozen=True)
class Member:
    """A method or an attribute of a class. `kind` is method, staticmethod, property, value, or open where it is none of them."""

    kind: str
    node: ast.stmt
    of: Class


class Objects(Functions):
    """Evaluates what is made of the program's own classes, and what is asked of it."""

    # -- classes

    def lineage(self, made_of: Class) -> list[Class] | None:
        """A class and those above it, the nearest first; None where an object of it may do what is not seen."""
        found = [made_of]
        while True:
            one = found[-1]
            node = one.node
            if node.keywords or node.decorator_list or len(node.bases) > 1 or len(found) > 8:
                return None
            if not all(_is_plain(each) for each in node.body):
                return None
            if not node.bases:
                return found
            above = self.value(node.bases[0], self.module(one.code))
            if isinstance(above, External) and above.name == _ROOT:
                return found
            if not isinstance(above, Class) or any(above.node is each.node for each in found):
                return None
            found.append(above)

    def member(self, line: list[Class], name: str) -> Member | None:
        """What a name is in the nearest class that has it."""
        for one in line:
            said = [each for each in one.node.body if name in _names(each)]
            if said:
                node = said[-1]
                kind = "value" if isinstance(node, ast.Assign | ast.AnnAssign) else "open"
                if isinstance(node, ast.FunctionDef):
                    kind = "method"
                    if node.decorator_list:
                        (only, *more) = node.decorator_list
                        plain = isinstance(only, ast.Name) and only.id in _DECORATORS and not more
                        kind = only.id if plain and isinstance(only, ast.Name) else "open"
                (self.values_of_classes if kind == "value" else self.members).add(name)
                private = _is_private(name) and len(line) > 1
                return Member("open" if private else kind, node, one)
        return None

    def function_of(self, member: Member) -> Function:
        assert isinstance(member.node, ast.FunctionDef)
        frame = self.module(member.of.code)
        return Function(member.node, member.of.code, frame, plain=True, owner=member.of)

    # -- objects

    def made_of(
        self, function: Class, args: Arguments, node: ast.Call, frame: Frame
    ) -> Value | None:
        """The object that calling a class gives; None where it is not followed."""
        line = self.lineage(function)
        if line is None or args.starred:
            return None
        made = Made(function, outer=not self.strict, several=bool(self.repeated))
        init = self.member(line, "__init__")
        if init is None:
            return made if not args.all() else None
        if init.kind != "method":
            return None
        self.enter(self.function_of(init), [made, *args.given], args.named, node, frame.code)
        return made

    def of_made(self, value: Made, name: str, node: ast.expr, frame: Frame) -> Value:
        """`value.name`: what it keeps by that name, or what its class has."""
        line = self.lineage(value.made_of)
        member = None if line is None else self.member(line, name)
        if line is None or value.lost or member is not None and member.kind == "open":
            return self._not_told(value, node, frame)
        if member is not None and member.kind == "property":
            return self.enter(self.function_of(member), [value], {}, node, frame.code)
        if _is_private(name) and (line[1:] or not self._is_own(value, frame)):
            return self._not_told(value, node, frame)  # Python adds the name of the class around
        kept = value.kept.get(name)
        if kept is not None and (member is None or name in value.sure):
            return self._kept(value, name, kept, node, frame)
        if member is None:
            return self._not_told(value, node, frame)
        own = self._of_class(member, value, node, frame)
        return own if kept is None else join(own, self._kept(value, name, kept, node, frame))

    def _is_own(self, value: Made, frame: Frame) -> bool:
        """Whether code is of a method of an object's own class."""
        current: Frame | None = frame
        while current is not None and current.owner is None:
            current = current.parent
        owner = None if current is None else current.owner
        return isinstance(owner, Class) and owner.node is value.made_of.node

    def _of_class(self, member: Member, of: Made | None, node: ast.expr, frame: Frame) -> Value:
        if member.kind == "staticmethod":
            return self.function_of(member)
        if member.kind == "method":
            function = self.function_of(member)
            return function if of is None else Method(function, of)
        if member.kind == "value" and isinstance(member.node, ast.Assign | ast.AnnAssign):
            with self.mode(False):
                given = member.node.value
                made = (
                    Unknown() if given is None else self.value(given, self.module(member.of.code))
                )
            if isinstance(made, Const):
                return made if made.value is None else Plain()
        return self.report(
            "TM222", frame.code, node,
            f"`{frame.code.said(node)}`: what the attribute of the class holds is not known",
        )  # fmt: skip

    def _not_told(self, value: Made, node: ast.expr, frame: Frame) -> Value:
        if not self.strict:
            return Foreign()
        return self.report(
            "TM222", frame.code, node,
            f"what `{frame.code.said(node)}` of an object of `{value.made_of.node.name}` is could not be followed",
        )  # fmt: skip

    def _kept(self, value: Made, name: str, kept: Value, node: ast.expr, frame: Frame) -> Value:
        """What an object keeps; of one from around the moved code only what is sure to be no part of the graph."""
        if not (self.strict and value.outer):
            return kept
        code = frame.code
        if value.seen_as is not None:
            home, called = value.seen_as
            line = self.line if home is self.scope else 0
            self.reads.append(Read(home, called, (name,), node, code, line))
        elsewhere, written_out = self._set_elsewhere
        found: list[Value] = []
        for one in kept.values if isinstance(kept, Either) else (kept,):
            if isinstance(one, Tensor):
                return self.report(
                    "TM217", code, node,
                    f"`{code.said(node)}` is a tensor made once before the tower loop and shared by the towers",
                )  # fmt: skip
            settled = _settled(one, name not in elsewhere | written_out)
            if value.seen_as is None or settled is None or name in elsewhere:
                return self.report(
                    "TM222", code, node,
                    f"what `{code.said(node)}` holds, made before and read in {self.where}, is not known",
                )  # fmt: skip
            if isinstance(settled, Made):
                settled.seen_as = settled.seen_as or value.seen_as
            found.append(settled)
        return join_all(found)

    @cached_property
    def _set_elsewhere(self) -> tuple[frozenset[str], frozenset[str]]:
        """The attributes that more than constructors set: to what is not known, and to what is written out there."""
        found = [set_outside_constructors(code) for code in self.files]
        return (
            frozenset(name for names, _ in found for name in names),
            frozenset(name for _, names in found for name in names),
        )

    def stored(self, holder: Value, target: ast.Attribute, value: Value, frame: Frame) -> bool:
        """`holder.name = value`, where the holder is an object that is followed; whether that is all there is to it."""
        if isinstance(holder, Either) and any(isinstance(one, Made) for one in holder.values):
            self.maybe += 1
            done = [self.stored(one, target, value, frame) for one in holder.values]
            self.maybe -= 1
            return all(done)
        if not isinstance(holder, Made):
            return False
        if self.strict and (holder.outer or self.branched) or holder.done:
            self.changed_behind(holder, target, frame)
            return False
        line = self.lineage(holder.made_of)
        member = None if line is None else self.member(line, target.attr)
        private = line is not None and len(line) > 1 and _is_private(target.attr)
        if line is None or private or member is not None and member.kind in ("open", "property"):
            holder.lost = True
            return False
        holder.keep(target.attr, self.held(value), not self.unsure)
        return True

    def changed_behind(self, holder: Made, node: ast.AST, frame: Frame) -> None:
        """Report, of code that stays too, what changes an object of a tower that is over."""
        if holder.done:
            self.always(
                "TM206", frame.code, node,
                f"`{frame.code.said(node)}` changes an object of the last tower, behind the towers",
            )  # fmt: skip

    # -- what is called

    def called_object(
        self, function: Value, args: Arguments, node: ast.Call, frame: Frame
    ) -> Value | None:
        """A call of a method, or of an object that can be called; None for all others."""
        if isinstance(function, Method):
            given = [function.of, *args.given]
            return self.enter(function.function, given, args.named, node, frame.code)
        if not isinstance(function, Made):
            return None
        line = self.lineage(function.made_of)
        member = None if line is None else self.member(line, "__call__")
        if member is None or member.kind != "method":
            return None
        given = [function, *args.given]
        return self.enter(self.function_of(member), given, args.named, node, frame.code)

    def super_of(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`super()`, or `super(Name, self)`, in a method of an object that is followed."""
        current: Frame | None = frame
        while current is not None and current.owner is None:
            current = current.parent
        of: Value | None = None
        owner = None if current is None else current.owner
        behind = owner if isinstance(owner, Class) else None
        if current is not None and not args.given and isinstance(current.node, ast.FunctionDef):
            named = [*current.node.args.posonlyargs, *current.node.args.args]
            of = current.names.get(named[0].arg) if named else None
        elif len(args.given) == 2 and isinstance(args.given[0], Class):
            behind, of = args.given[0], args.given[1]
        if isinstance(of, Made) and behind is not None and not args.named:
            return Super(of, behind)
        return self._unknown(node, frame)

    def of_super(self, value: Super, name: str, node: ast.expr, frame: Frame) -> Value:
        line = self.lineage(value.of.made_of) or []
        at = next((k for k, each in enumerate(line) if each.node is value.behind.node), None)
        if at is not None:
            member = self.member(line[at + 1 :], name)
            if member is not None and member.kind in ("method", "staticmethod"):
                return self._of_class(member, value.of, node, frame)
            if member is None and name == "__init__":
                return Object(_BEHIND)
        return self._not_told(value.of, node, frame)

    def of_class(self, value: Class, name: str, node: ast.expr, frame: Frame) -> Value:
        """`Name.attribute`: a method that is called with its object, a static one, a number."""
        line = self.lineage(value)
        member = None if line is None else self.member(line, name)
        if member is None or member.kind in ("open", "property"):
            return self.report(
                "TM222", frame.code, node,
                f"`{frame.code.said(node)}`: what the attribute holds is not known",
            )  # fmt: skip
        return self._of_class(member, None, node, frame)

    def no_init(self, function: Object, args: Arguments) -> Value | None:
        """`super().__init__()` where no class above has one."""
        return NONE if function.kind == _BEHIND and not args.all() else None


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _settled(value: Value, known: bool) -> Value | None:
    """What an object from before is sure to keep: no number is known, as what is not followed may have set another.

    Args:
        known: only its constructor sets what it keeps, so that a function is that function.
    """
    if isinstance(value, Items):
        return Setting(plain=True) if is_python(value) and not may_run(value) else None
    if isinstance(value, Const | Plain):
        return Plain()
    if isinstance(value, Setting):
        return value
    return value if known and (isinstance(value, Made | Method) or is_python(value)) else None


def set_outside_constructors(code: Code) -> tuple[set[str], set[str]]:
    """The attributes that a file sets, but for those of `self` in constructors; with them those that get what is written out."""
    made: set[int] = set()
    written: set[int] = set()
    for node in code.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for each in ast.walk(node):
                if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
                    made.add(id(each))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            if node.value.value is not None:
                written |= {id(target) for target in node.targets}
    open_: set[str] = set()
    plain: set[str] = set()
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if id(node) not in made:
                (plain if id(node) in written else open_).add(node.attr)
    return open_, plain


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _is_plain(node: ast.stmt) -> bool:
    """Whether a statement of a class makes a method or a plain attribute, and nothing that Python asks for by itself."""
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    names = _names(node)
    if isinstance(node, ast.Assign) and len(names) < len(node.targets):
        return False
    return bool(names) and all(_is_allowed(each, node) for each in names)


def _is_allowed(name: str, node: ast.stmt) -> bool:
    special = name.startswith("__") and name.endswith("__")
    if isinstance(node, ast.FunctionDef):
        return not special or name in _SHOWN
    return not special and isinstance(getattr(node, "value", None), _NO_DESCRIPTOR)
