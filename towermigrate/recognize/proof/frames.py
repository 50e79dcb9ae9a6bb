"""The scopes of a program while the proof runs it: names by Python's own rules, not by spelling."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from towermigrate.flow.values import Value
from towermigrate.recognize.proof.code import Code, Scope


@dataclass(eq=False)
class Frame:
    """One scope with its values.

    `moved` says that its code moves into a tower or a step; `own` are the names that it binds, with the
    statements that do; `homes` are the names of a scope that stays which moved statements have bound.
    """

    code: Code
    node: Scope | ast.For | None
    parent: Frame | None
    moved: bool
    own: dict[str, list[ast.AST]]
    names: dict[str, Value] = field(default_factory=dict)
    homes: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    owner: Value | None = None
    """The class whose method it is the scope of (`values.Class`)."""

    @classmethod
    def of(cls, code: Code, node: Scope, parent: Frame | None, moved: bool) -> Frame:
        return cls(code, node, parent, moved, code.bound_in(node))

    @property
    def is_module(self) -> bool:
        return isinstance(self.node, ast.Module)


@dataclass(frozen=True)
class Tag:
    """The tag of a summary, where it is made, and whether a step makes it.

    `apart` says that a tower keeps it by the tower's number, and not by its name scope; `named` that it stands in a scope
    that names what is made in it.
    """

    tag: Value | None
    code: Code
    node: ast.Call
    in_step: bool
    apart: bool = False
    named: bool = False


@dataclass(frozen=True)
class Read:
    """A value from around the moved code that it reads: its scope and name, the chain read, where."""

    frame: Frame
    name: str
    chain: tuple[str, ...]
    node: ast.AST
    code: Code
    line: int
    """The line of the scope behind which nothing may change it; 0 where the scope is another's."""


@dataclass(frozen=True)
class Entered:
    """A scope that is entered: whether TF1 counts names anew in it, whether it has a name of its own, and its statement."""

    counts: bool
    named: bool
    statement: ast.With | None = None
