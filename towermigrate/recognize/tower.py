"""A tower loop's body taken apart, as data, and what is asked of its statements."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from towermigrate.program import InputKind
from towermigrate.recognize.kinds import Kinds
from towermigrate.recognize.scope import (
    Item,
)
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    calls,
    dotted,
    reads,
)


@dataclass
class Compute:
    """One `compute_gradients` call of the loop body and the list over towers it ends in.

    `items` are the statements of the tower that take or change its gradients otherwise than by that call alone, and
    `appended` is what goes on the list then. `tf.gradients` has no `optimizer`.
    """

    call: cst.Call
    optimizer: cst.BaseExpression | None
    loss: cst.BaseExpression
    var_list: cst.BaseExpression | None
    target: str | None
    statement: cst.BaseStatement
    list_name: str | None = None
    lead: list[cst.EmptyLine] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    appended: cst.BaseExpression | None = None

    @property
    def plain(self) -> bool:
        """Whether what is averaged is what the call gives."""
        return not self.items and self.appended is None


@dataclass(frozen=True)
class Mean:
    """A mean over the towers of a list's values; of all their elements where it is `whole`."""

    listed: str
    whole: bool


@dataclass
class Input:
    """One input of a tower: the names it binds in the body and where they come from."""

    names: tuple[str, ...]
    kind: InputKind
    source: str
    statement: cst.BaseStatement | None = None
    size: str | None = None
    lead: list[cst.EmptyLine] = field(default_factory=list)


@dataclass
class Body:
    """A tower loop's body, taken apart.

    `kept` is what becomes the tower function; `step_items` what moves into the steps (variable lists, work
    on one tower's gradients); `hoisted` what is made once in the strategy's scope (optimizers).
    `lists` maps a list over towers to the name of the value appended to it. `firsts` are values only tower 0
    had. `flags` are reuse flags with their value for the first tower. `inline` maps expressions of `kept` to
    the tower parameter that replaces them. `updates` read the batch-norm updates, of the first tower where
    `first_updates`.
    """

    node: cst.For
    index: str | None
    kept: list[cst.BaseStatement] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    computes: list[Compute] = field(default_factory=list)
    step_items: list[Item] = field(default_factory=list)
    hoisted: list[Item] = field(default_factory=list)
    lists: dict[str, str] = field(default_factory=dict)
    firsts: set[str] = field(default_factory=set)
    flags: dict[str, str] = field(default_factory=dict)
    inline: dict[cst.CSTNode, str] = field(default_factory=dict)
    dropped: list[cst.BaseStatement] = field(default_factory=list)
    sharing: list[str] = field(default_factory=list)
    name_scope: str | None = None
    device: str | None = None
    bound: set[str] = field(default_factory=set)
    updates: list[Item] = field(default_factory=list)
    first_updates: bool = False

    @property
    def parameters(self) -> list[str]:
        return [name for item in self.inputs for name in item.names]


def makes_variables(kinds: Kinds, file: SourceFile, node: cst.CSTNode) -> bool:
    """Whether a statement may make variables: a layer, `get_variable`, or a call that is not known."""
    traits = kinds.traits
    for call in calls(node):
        name = file.tf(call.func)
        if name is not None:
            if name == "tf.get_variable" or name.startswith(("tf.layers.", "tf.contrib.")):
                return True
            continue
        function = traits.tree.resolve(file, call.func)
        if function is not None:
            made = traits.called(function)
            if any(
                m == "tf.get_variable" or m.startswith(("tf.layers.", "tf.contrib.")) for m in made
            ):
                return True
        elif isinstance(call.func, cst.Name) or dotted(call.func) is None:
            return True
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value not in (
            "append", "reuse_variables", "format", "get_shape",
        ):  # fmt: skip
            return True
    return False


def outer_reads(node: cst.CSTNode, inline: dict[cst.CSTNode, str]) -> list[str]:
    """Names a tower statement reads, those inside replaced input expressions left out."""
    if not inline:
        return reads(node)

    class Blank(cst.CSTTransformer):
        def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
            if original in inline:
                return cst.Name("_")
            return updated

    blanked = node.visit(Blank())
    assert isinstance(blanked, cst.CSTNode)
    return [n for n in reads(blanked) if n != "_"]
