"""The scope that builds the graph and runs it, as one flat list of statements.

TF1 programs wrap their statements in `with tf.Graph().as_default()`, `with tf.device('/cpu:0')`,
`with tf.Session() as sess`: blocks that mean nothing once the strategy places things and sessions are gone.
They dissolve here; every statement then stands in one list, in order, with the comments of the headers
that dissolved in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.recognize.kinds import UPDATES, Kind, Kinds, collection_key
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    binds,
    calls,
    changes,
    code,
    elements,
    reads,
    small,
    statements,
)


@dataclass
class Item:
    """One statement of the flattened scope.

    `lead` holds comment lines of dissolved headers that stood in front of it. `kind` is the kind of what it
    binds, `reads`/`binds`/`changes` the names it uses, assigns and alters in place. `updates` says that it reads
    UPDATE_OPS, or waits for what is read of it.
    """

    node: cst.BaseStatement
    kind: Kind = Kind.PYTHON
    lead: list[cst.EmptyLine] = field(default_factory=list)
    reads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    ordered_after: frozenset[str] = frozenset()
    updates: bool = False

    @classmethod
    def of(cls, node: cst.BaseStatement, lead: Sequence[cst.EmptyLine] = ()) -> Item:
        return cls(
            node,
            lead=list(lead),
            reads=frozenset(reads(node)),
            binds=frozenset(binds(node)),
            changes=frozenset(changes(node)),
        )


def comments(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines from the first comment on; leading blank lines alone mean nothing."""
    for index, line in enumerate(lines):
        if line.comment is not None:
            return list(lines[index:])
    return []


def leading(node: cst.BaseStatement) -> list[cst.EmptyLine]:
    lines = getattr(node, "leading_lines", ())
    return list(lines)


def header_comment(node: cst.With | cst.For | cst.If) -> list[cst.EmptyLine]:
    """The comment at the end of a compound statement's header line, as a line of its own."""
    body = node.body
    if isinstance(body, cst.IndentedBlock) and body.header.comment is not None:
        return [cst.EmptyLine(comment=body.header.comment)]
    return []


def footer(node: cst.BaseSuite) -> list[cst.EmptyLine]:
    """Comment lines after the last statement of a block."""
    if isinstance(node, cst.IndentedBlock):
        return comments(node.footer)
    return []


def dissolves(item: cst.WithItem, file: SourceFile) -> bool:
    """Whether a `with` item means nothing in a rewritten program."""
    node = item.item
    if not isinstance(node, cst.Call):
        return False
    name = file.tf(node.func)
    if name in ("tf.device", "tf.Session", "tf.InteractiveSession"):
        return True
    if name == "tf.control_dependencies":
        # Names only: an operation made in the list itself would be lost with it.
        waits = node.args[0].value if len(node.args) == 1 else None
        if isinstance(waits, cst.Call):  # where there are any, that is a reason of its own
            return reads_updates(file, waits)
        inside = elements(waits) if waits is not None else None
        return isinstance(waits, cst.Name) or (
            inside is not None and all(isinstance(i, cst.Name) for i in inside)
        )
    if name == "tf.name_scope":
        return item.asname is None
    if name == "tf.variable_scope":
        return is_root_scope(node, file)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_default":
        return True
    return False


def _waits_for(node: cst.With, file: SourceFile) -> frozenset[str]:
    """Names that `with tf.control_dependencies([…])` waits for; a step runs in program order anyway."""
    found: set[str] = set()
    for item in node.items:
        call = item.item
        if isinstance(call, cst.Call) and file.tf(call.func) == "tf.control_dependencies":
            for arg in call.args:
                if not isinstance(arg.value, cst.Call):
                    found |= set(reads(arg))
    return frozenset(found)


def _waits_for_updates(item: cst.WithItem, file: SourceFile) -> bool:
    """`with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))`."""
    call = item.item
    return isinstance(call, cst.Call) and any(
        isinstance(arg.value, cst.Call) and reads_updates(file, arg.value) for arg in call.args
    )


def _is_device(item: cst.WithItem, file: SourceFile) -> bool:
    """`with tf.device(…)`: a comment on it speaks of placement, which is gone."""
    return isinstance(item.item, cst.Call) and file.tf(item.item.func) == "tf.device"


def is_root_scope(call: cst.Call, file: SourceFile) -> bool:
    """`tf.variable_scope(tf.get_variable_scope()[, reuse=…])`."""
    if not call.args or not isinstance(call.args[0].value, cst.Call):
        return False
    if file.tf(call.args[0].value.func) != "tf.get_variable_scope":
        return False
    rest = [a.keyword.value if a.keyword else None for a in call.args[1:]]
    return rest in ([], ["reuse"])


def flatten(
    block: Sequence[cst.BaseStatement], file: SourceFile, lead: Sequence[cst.EmptyLine] = ()
) -> list[Item]:
    """The statements of a block with every meaningless `with` dissolved, in order."""
    items: list[Item] = []
    pending = list(lead)
    for node in block:
        if isinstance(node, cst.With) and all(dissolves(i, file) for i in node.items):
            before = list(pending)
            if not all(_is_device(i, file) for i in node.items):
                before += leading(node) + header_comment(node)
            inner = flatten(statements(node.body), file, before)
            after = _waits_for(node, file)
            updates = any(_waits_for_updates(item, file) for item in node.items)
            for item in inner:
                item.ordered_after |= after
                item.updates = item.updates or updates
            items.extend(inner)
            pending = footer(node.body)
            continue
        items.append(Item.of(node, pending))
        pending = []
    return items


def opened_sessions(block: Sequence[cst.BaseStatement], file: SourceFile) -> dict[str, Kind]:
    """Names that dissolved `with` headers bind: `with tf.Session() as sess`, `with g.as_default() as g`."""
    found: dict[str, Kind] = {}
    for node in block:
        if not isinstance(node, cst.With) or not all(dissolves(i, file) for i in node.items):
            continue
        for item in node.items:
            if item.asname is not None and isinstance(item.asname.name, cst.Name):
                call = item.item
                name = file.tf(call.func) if isinstance(call, cst.Call) else None
                is_session = name in ("tf.Session", "tf.InteractiveSession")
                found[item.asname.name.value] = Kind.SESSION if is_session else Kind.GRAPH
        found.update(opened_sessions(statements(node.body), file))
    return found


def is_run(call: cst.Call, kinds: Kinds) -> bool:
    """Whether a call is `session.run(…)`."""
    return (
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "run"
        and kinds.of(call.func.value) is Kind.SESSION
    )


def run_calls(node: cst.CSTNode, kinds: Kinds) -> list[cst.Call]:
    return [c for c in calls(node) if is_run(c, kinds)]


def bare_call(node: cst.BaseStatement) -> cst.Call | None:
    """The call of a statement that is nothing but a call."""
    inner = small(node)
    if isinstance(inner, cst.Expr) and isinstance(inner.value, cst.Call):
        return inner.value
    return None


def literal_default(node: cst.BaseExpression) -> str | None:
    """`False`, `True` or `None` of a name node."""
    written = code(node)
    return written if written in ("True", "False", "None") else None


def reads_updates(file: SourceFile, call: cst.Call) -> bool:
    """`tf.get_collection(tf.GraphKeys.UPDATE_OPS)`."""
    return file.tf(call.func) == "tf.get_collection" and collection_key(file, call) in UPDATES
