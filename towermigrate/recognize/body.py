"""Take a tower loop's body apart: what stays in the tower, its inputs, its gradients, and what goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.program import InputKind
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.scope import (
    Item,
    bare_call,
    comments,
    header_comment,
    is_root_scope,
    leading,
    literal_default,
)
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    binds,
    calls,
    changes,
    code,
    dotted,
    elements,
    integer,
    reads,
    statements,
    walk,
)


@dataclass
class Compute:
    """One `compute_gradients` call of the loop body and the list over towers it ends in."""

    call: cst.Call
    optimizer: cst.BaseExpression
    loss: cst.BaseExpression
    var_list: cst.BaseExpression | None
    target: str | None
    statement: cst.BaseStatement
    list_name: str | None = None
    lead: list[cst.EmptyLine] = field(default_factory=list)


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
    the tower parameter that replaces them.
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

    @property
    def parameters(self) -> list[str]:
        return [name for item in self.inputs for name in item.names]


def loop_index(file: SourceFile, loop: cst.For) -> str | None:
    """The name that numbers the towers, from 0; refuses loops that are no plain count."""
    target = loop.target
    iterated = loop.iter
    if not isinstance(iterated, cst.Call) or not isinstance(
        iterated.func, cst.Name | cst.Attribute
    ):
        raise refuse(
            "TM201", file, loop,
            f"the tower loop goes over `{code(iterated)}`; range, xrange and enumerate are understood",
        )  # fmt: skip
    name = (dotted(iterated.func) or "").split(".")[-1]
    if name in ("range", "xrange") and len(iterated.args) == 1 and isinstance(target, cst.Name):
        return target.value
    if name == "enumerate" and len(iterated.args) == 1:
        items = elements(target)
        if items and len(items) == 2 and all(isinstance(i, cst.Name) for i in items):
            if isinstance(iterated.args[0].value, cst.Name | cst.Attribute):
                return code(items[0])
    raise refuse(
        "TM201", file, loop,
        f"the tower loop goes over `{code(iterated)}`; range(n), xrange(n) and enumerate(devices) "
        "are understood",
    )  # fmt: skip


class BodyReader:
    """Reads one loop body; raises `Refused` at the first thing it does not understand."""

    def __init__(
        self,
        file: SourceFile,
        kinds: Kinds,
        loop: cst.For,
        before: Sequence[Item],
        splits: dict[str, str],
    ) -> None:
        self.file = file
        self.kinds = kinds
        self.loop = loop
        self.before = before
        self.splits = splits
        self.body = Body(loop, None)
        self.grads: dict[str, Compute] = {}

    def read(self) -> Body:
        body = self.body
        body.index = loop_index(self.file, self.loop)
        self._find_flags()
        body.kept = self._block(statements(self.loop.body), [])
        self._drop_tail_reuse()
        for node in body.kept:
            body.bound |= set(binds(node))
        self._same_inputs()
        self._check_flow()
        self._check_loss_kept()
        self._check()
        self._check_firsts()
        self._check_carried(body.kept, set())
        return body

    # -- the loop's own line

    def _find_flags(self) -> None:
        """Names set to False/None before the loop and to True in it: reuse flags."""
        starts: dict[str, str] = {}
        for item in self.before:
            found = assigned(item.node)
            if found and len(found[0]) == 1:
                value = literal_default(found[1])
                if value is not None:
                    starts[found[0][0]] = value
                else:
                    starts.pop(found[0][0], None)
        for node in walk(self.loop.body):
            if isinstance(node, cst.SimpleStatementLine):
                found = assigned(node)
                if found and len(found[0]) == 1 and found[0][0] in starts:
                    if literal_default(found[1]) == "True":
                        self.body.flags[found[0][0]] = starts[found[0][0]]
        if self.body.flags:
            self.body.sharing.append("flag")

    # -- statements

    def _block(
        self, block: Sequence[cst.BaseStatement], lead: list[cst.EmptyLine]
    ) -> list[cst.BaseStatement]:
        kept: list[cst.BaseStatement] = []
        pending = list(lead)
        for node in block:
            result = self._statement(node, pending)
            if result is None:
                pending = []
                continue
            pending = []
            kept.extend(result)
        return kept

    def _with_lead(self, node: cst.BaseStatement, lead: list[cst.EmptyLine]) -> cst.BaseStatement:
        lines = comments(lead)
        if not lines:
            return node
        # The blank line in front of a comment belongs to it.
        blank = [line for line in lead[:1] if line.comment is None]
        return node.with_changes(leading_lines=[*blank, *lines, *leading(node)])

    def _statement(
        self, node: cst.BaseStatement, lead: list[cst.EmptyLine]
    ) -> list[cst.BaseStatement] | None:
        """What of a statement stays in the tower; None where it goes elsewhere or away."""
        if isinstance(node, cst.With):
            return self._with(node, lead)
        if isinstance(node, cst.If):
            return self._if(node, lead)
        call = bare_call(node)
        if call is not None and self._bare_call(node, call, lead):
            return None
        found = assigned(node)
        if found is not None and self._assignment(node, found[0], found[1], lead):
            return None
        if self._reads_step_names(node):
            self._step_item(node, lead)
            return None
        lists = [n for n in binds(node) if self.kinds.of_name(n) is Kind.VARLIST]
        if lists:
            raise refuse(
                "TM211", self.file, node, f"the variable list `{lists[0]}` is changed in the tower"
            )
        self._inline_inputs(node)
        return [self._with_lead(node, lead)]

    def _with(self, node: cst.With, lead: list[cst.EmptyLine]) -> list[cst.BaseStatement] | None:
        before = [*lead, *leading(node), *header_comment(node)]
        stay: list[cst.WithItem] = []
        for item in node.items:
            call = item.item
            name = self.file.tf(call.func) if isinstance(call, cst.Call) else None
            if name == "tf.device" and isinstance(call, cst.Call):
                if self.body.device is None and call.args:
                    self.body.device = code(call.args[0].value)
                continue
            if (
                name == "tf.variable_scope"
                and isinstance(call, cst.Call)
                and is_root_scope(call, self.file)
            ):
                if argument(call, None, "reuse") is not None:
                    self.body.sharing.append("scope reuse")
                continue
            if name in ("tf.name_scope", "tf.op_scope") and isinstance(call, cst.Call):
                if self.body.index in reads(call):
                    self.body.name_scope = self.body.name_scope or code(call.args[0].value)
                    if not self._scope_matters(node, item):
                        continue
            stay.append(item)
        if not stay:
            kept = self._block(statements(node.body), before)
            return kept or None
        inner = self._block(statements(node.body), [])
        if not inner:
            return None
        items = list(stay)
        items[-1] = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        body = node.body
        new_body = (
            body.with_changes(body=inner)
            if isinstance(body, cst.IndentedBlock)
            else cst.IndentedBlock(inner)
        )
        changed = node.with_changes(
            items=items, body=new_body, leading_lines=[*comments(lead), *leading(node)]
        )
        for item in items:
            self._inline_inputs(item)
        return [changed]

    def _scope_matters(self, node: cst.With, item: cst.WithItem) -> bool:
        """Whether a tower's name scope is used: captured and read, or put in front of summaries' names."""
        if item.asname is not None and isinstance(item.asname.name, cst.Name):
            name = item.asname.name.value
            if any(name in reads(s) for s in statements(node.body)):
                return True
        for call in calls(node.body):
            name_ = self.file.tf(call.func)
            if name_ and name_.startswith("tf.summary."):
                return True
            function = self.kinds.traits.tree.resolve(self.file, call.func)
            if function is not None and any(
                c.startswith("tf.summary.") for c in self.kinds.traits.called(function)
            ):
                return True
        return False

    def _if(self, node: cst.If, lead: list[cst.EmptyLine]) -> list[cst.BaseStatement] | None:
        index = self.body.index
        test = code(node.test)
        inside = statements(node.body)
        if index is not None and node.orelse is None:
            if test in (f"{index} > 0", f"{index} != 0", f"{index} >= 1", index) and all(
                self._is_reuse(s) for s in inside
            ):
                self.body.sharing.append("reuse_variables")
                self.body.dropped.append(node)
                return None
            if test in (f"{index} == 0", f"not {index}", f"{index} < 1"):
                if all(self._is_reuse(s) for s in inside) or any(
                    self._has_effects(s) for s in inside
                ):
                    raise refuse(
                        "TM214", self.file, node,
                        f"`if {test}:` does more than compute values of the first tower",
                    )  # fmt: skip
                for statement in inside:
                    self.body.firsts |= set(binds(statement))
                kept = self._block(inside, [*lead, *leading(node), *header_comment(node)])
                return kept or None
        if index is not None and index in reads(node):
            raise refuse(
                "TM214", self.file, node,
                f"the towers differ: `if {test}:` depends on the tower's index `{index}`"
                if index in reads(node.test)
                else f"the towers may differ: what stands under `if {test}:` reads the tower's index `{index}`",
            )  # fmt: skip
        if any(self.kinds.of_name(n) is Kind.VARLIST for n in binds(node)):
            raise refuse("TM211", self.file, node, "a variable list is chosen under a condition")
        if self._machinery_inside(node):
            raise refuse(
                "TM211", self.file, node,
                "gradients are computed or collected under a condition inside the tower loop",
            )  # fmt: skip
        self._inline_inputs(node)
        return [self._with_lead(node, lead)]

    def _has_effects(self, node: cst.BaseStatement) -> bool:
        """Whether a statement does more than bind names to values of graph operations."""
        return assigned(node) is None or any(
            (self.file.tf(c.func) or "").startswith(("tf.summary.", "tf.add_to_collection"))
            for c in calls(node)
        )

    def _is_reuse(self, node: cst.BaseStatement) -> bool:
        call = bare_call(node)
        return (
            call is not None
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "reuse_variables"
        )

    def _machinery_inside(self, node: cst.CSTNode) -> bool:
        for call in calls(node):
            if isinstance(call.func, cst.Attribute):
                method = call.func.attr.value
                if method in (
                    "compute_gradients",
                    "apply_gradients",
                    "minimize",
                    "reuse_variables",
                ):
                    return True
                if method == "append" and self.kinds.of(call.func.value) is Kind.TOWER_LIST:
                    return True
            if self.file.tf(call.func) == "tf.gradients":
                continue
        return False

    def _bare_call(
        self, node: cst.BaseStatement, call: cst.Call, lead: list[cst.EmptyLine]
    ) -> bool:
        if not isinstance(call.func, cst.Attribute):
            return False
        method = call.func.attr.value
        if method == "reuse_variables":
            # Whether it matters is known only when the rest has been read: see _drop_tail_reuse.
            return False
        if method == "append" and isinstance(call.func.value, cst.Name) and len(call.args) == 1:
            name = call.func.value.value
            if self.kinds.of_name(name) is not Kind.TOWER_LIST:
                return False
            value = call.args[0].value
            if isinstance(value, cst.Call) and self.kinds.of(value) is Kind.GRADIENTS:
                self._compute(node, value, None, lead).list_name = name
                return True
            if isinstance(value, cst.Name):
                compute = self.grads.get(value.value)
                if name in self.body.lists or compute is not None and compute.list_name:
                    raise refuse(
                        "TM211", self.file, node, f"`{name}` gets more than one value a tower"
                    )
                if compute is not None:
                    compute.list_name = name
                self.body.lists[name] = value.value
                self.body.dropped.append(node)
                return True
            raise refuse(
                "TM211", self.file, node,
                f"`{code(value)}` is collected over the towers without a name; give it one first",
            )  # fmt: skip
        return False

    def _assignment(
        self,
        node: cst.BaseStatement,
        names: list[str],
        value: cst.BaseExpression,
        lead: list[cst.EmptyLine],
    ) -> bool:
        if len(names) == 1 and names[0] in self.body.flags:
            self.body.dropped.append(node)
            return True
        if self._input(node, names, value, lead):
            return True
        if len(names) != 1:
            return False
        kind = self.kinds.of(value)
        if kind is Kind.GRADIENTS and isinstance(value, cst.Call):
            self.grads[names[0]] = self._compute(node, value, names[0], lead)
            return True
        if kind is Kind.OPTIMIZER:
            if self.body.index in reads(value):
                raise refuse(
                    "TM214", self.file, node, "each tower makes an optimizer of its own settings"
                )
            self.body.hoisted.append(Item.of(node, lead))
            self.body.hoisted[-1].kind = Kind.OPTIMIZER
            self.kinds.env[names[0]] = Kind.OPTIMIZER
            return True
        if kind is Kind.VARLIST:
            self.kinds.env[names[0]] = Kind.VARLIST
            self._step_item(node, lead)
            return True
        return False

    def _compute(
        self, node: cst.BaseStatement, call: cst.Call, target: str | None, lead: list[cst.EmptyLine]
    ) -> Compute:
        assert isinstance(call.func, cst.Attribute)
        loss = argument(call, 0, "loss")
        if loss is None:
            raise refuse("TM202", self.file, call, "compute_gradients without a loss")
        known = {"loss", "var_list", "colocate_gradients_with_ops", "gate_gradients",
                 "aggregation_method", None}  # fmt: skip
        for arg in call.args:
            if arg.star or (arg.keyword.value if arg.keyword else None) not in known:
                raise refuse(
                    "TM202", self.file, call, f"argument `{code(arg)}` of compute_gradients"
                )
        if self.kinds.of(call.func.value) is not Kind.OPTIMIZER:
            raise refuse(
                "TM202", self.file, call,
                f"`{code(call.func.value)}` is not bound to an optimizer by one plain statement of this function",
            )  # fmt: skip
        var_list = argument(call, 1, "var_list")
        compute = Compute(
            call, call.func.value, loss, None if var_list is None or code(var_list) == "None" else var_list,
            target, node, lead=[*comments(lead), *comments(leading(node))],
        )  # fmt: skip
        self.body.computes.append(compute)
        return compute

    def _step_item(self, node: cst.BaseStatement, lead: list[cst.EmptyLine]) -> None:
        item = Item.of(node, lead)
        item.kind = Kind.GRADIENTS if self._reads_grads(node) else Kind.VARLIST
        self.body.step_items.append(item)

    def _reads_grads(self, node: cst.CSTNode) -> bool:
        return bool(set(self.grads) & set(reads(node)))

    def _reads_step_names(self, node: cst.BaseStatement) -> bool:
        used = set(reads(node))
        if used & set(self.grads):
            raise refuse(
                "TM211", self.file, node,
                "one tower's gradients are changed before they are averaged; only averaged ones can be",
            )  # fmt: skip
        return any(self.kinds.of_name(n) is Kind.VARLIST for n in used) and not self._model(node)

    def _model(self, node: cst.CSTNode) -> bool:
        return any(self.kinds.in_graph(c) for c in calls(node))

    # -- inputs

    def _input(
        self,
        node: cst.BaseStatement,
        names: list[str],
        value: cst.BaseExpression,
        lead: list[cst.EmptyLine],
    ) -> bool:
        parts = elements(value)
        if parts is not None and len(parts) == len(names) and len(names) > 1:
            pieces = [self._piece(p) for p in parts]
            if all(p is not None for p in pieces):
                for name, piece in zip(names, pieces, strict=True):
                    assert piece is not None
                    self.body.inputs.append(
                        Input((name,), piece[0], piece[1], node, piece[2], lead)
                    )
                return True
            return False
        if len(names) == 1:
            piece = self._piece(value)
            if piece is not None:
                self.body.inputs.append(
                    Input((names[0],), piece[0], piece[1], node, piece[2], lead)
                )
                return True
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            receiver = self.kinds.of(value.func.value)
            method = value.func.attr.value
            if receiver in (Kind.QUEUE, Kind.PIPELINE) and method in ("dequeue", "get_next"):
                kind: InputKind = "queue" if method == "dequeue" else "iterator"
                self.body.inputs.append(
                    Input(tuple(names), kind, code(value.func.value), node, None, lead)
                )
                return True
        return False

    def _piece(self, value: cst.CSTNode) -> tuple[InputKind, str, str | None] | None:
        """`(kind, source, size)` of `x[i * b:(i + 1) * b]` or `splits[i]`."""
        index = self.body.index
        if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Name):
            return None
        source = value.value.value
        first = value.slice[0].slice
        kind = self.kinds.of_name(source)
        if kind is Kind.SPLITS and len(value.slice) == 1 and isinstance(first, cst.Index):
            if code(first.value) == index:
                return "split", self.splits[source], None
            return None
        if kind is Kind.PLACEHOLDER and isinstance(first, cst.Slice) and index in reads(value):
            rest = [code(s.slice) for s in value.slice[1:]]
            if any(r not in (":", "...") for r in rest):
                return None
            size = _slice_size(first, index)
            if size is not None:
                return "slice", source, size
        return None

    def _inline_inputs(self, node: cst.CSTNode) -> None:
        for inner in walk(node):
            piece = self._piece(inner)
            if piece is not None:
                name = self._parameter(piece[1])
                self.body.inline[inner] = name
                if name not in self.body.parameters:
                    self.body.inputs.append(Input((name,), piece[0], piece[1], None, piece[2]))

    def _parameter(self, source: str) -> str:
        """A name for a slice that the author left without one: its source's, which nothing else reads."""
        return source

    def _check_inline(self) -> None:
        """A parameter named like its source must not hide the source from other readers."""
        inline = {i.source for i in self.body.inputs if i.statement is None and i.kind != "same"}
        for node in self.body.kept:
            whole = inline & set(_outer_reads(node, self.body.inline))
            if whole:
                raise refuse(
                    "TM208", self.file, self.loop,
                    f"the towers read both a part and the whole of `{', '.join(sorted(whole))}`",
                )  # fmt: skip
        if inline & self.body.bound:
            raise refuse("TM208", self.file, self.loop, "an input is bound anew in the tower")

    def _same_inputs(self) -> None:
        """Placeholders and pipeline tensors that the body reads whole: every tower gets the same."""
        self._check_inline()
        taken = set(self.body.parameters)
        for node in self.body.kept:
            for name in _outer_reads(node, self.body.inline):
                kind = self.kinds.of_name(name)
                if name in taken or name in self.body.bound and kind is Kind.PYTHON:
                    continue
                if kind in (Kind.PLACEHOLDER, Kind.PIPELINE):
                    self.body.inputs.append(Input((name,), "same", name))
                    taken.add(name)
                elif kind is Kind.SPLITS:
                    raise refuse(
                        "TM208",
                        self.file,
                        node,
                        f"`{name}` is used other than as `{name}[{self.body.index}]`",
                    )

    # -- afterwards

    def _drop_tail_reuse(self) -> None:
        """Drop `reuse_variables()` where nothing after it in the tower makes variables."""
        self.body.kept = self._without_reuse(self.body.kept, False)[0]

    def _without_reuse(
        self, block: list[cst.BaseStatement], model_after: bool
    ) -> tuple[list[cst.BaseStatement], bool]:
        kept: list[cst.BaseStatement] = []
        for node in reversed(block):
            if self._is_reuse(node) and not model_after:
                self.body.sharing.append("reuse_variables")
                self.body.dropped.append(node)
                continue
            if isinstance(node, cst.With) and isinstance(node.body, cst.IndentedBlock):
                inner, model_after = self._without_reuse(list(statements(node.body)), model_after)
                if inner:
                    kept.append(node.with_changes(body=node.body.with_changes(body=inner)))
                continue
            if self._makes_variables(node):
                model_after = True
            kept.append(node)
        return list(reversed(kept)), model_after

    def _makes_variables(self, node: cst.CSTNode) -> bool:
        traits = self.kinds.traits
        for call in calls(node):
            name = self.file.tf(call.func)
            if name is not None:
                if name == "tf.get_variable" or name.startswith(("tf.layers.", "tf.contrib.")):
                    return True
                continue
            function = traits.tree.resolve(self.file, call.func)
            if function is not None:
                made = traits.called(function)
                if any(
                    m == "tf.get_variable" or m.startswith(("tf.layers.", "tf.contrib."))
                    for m in made
                ):
                    return True
            elif isinstance(call.func, cst.Name) or dotted(call.func) is None:
                return True
            elif isinstance(call.func, cst.Attribute) and call.func.attr.value not in (
                "append", "reuse_variables", "format", "get_shape",
            ):  # fmt: skip
                return True
        return False

    def _check(self) -> None:
        body = self.body
        if not body.computes:
            raise refuse(
                "TM202", self.file, self.loop,
                "no `optimizer.compute_gradients(loss)` stands in the tower loop itself",
            )  # fmt: skip
        for compute in body.computes:
            if compute.list_name is None:
                raise refuse(
                    "TM202", self.file, compute.call,
                    "these gradients are not appended to a list over the towers",
                )  # fmt: skip
        lists = [c.list_name for c in body.computes]
        if len(set(lists)) != len(lists):
            raise refuse(
                "TM211", self.file, self.loop, "two kinds of gradients are appended to one list"
            )
        graph_names = {
            name for name, kind in self.kinds.env.items()
            if kind in (Kind.TENSOR, Kind.APPLY, Kind.EXTRA, Kind.OP)
        }  # fmt: skip
        for node in body.kept:
            for name in _outer_reads(node, body.inline):
                if name in graph_names and name not in body.bound:
                    part = f"{name}[{body.index}]"
                    places = [n for n in walk(node) if isinstance(n, cst.Subscript)]
                    place = next((n for n in places if code(n) == part), None)
                    if place is not None:
                        raise refuse(
                            "TM208", self.file, place,
                            f"`{part}` is a part of a tensor that is not understood as an input "
                            "(placeholder, queue, reader, dataset)",
                        )  # fmt: skip
                    raise refuse(
                        "TM217", self.file, self.loop,
                        f"`{name}` is a tensor made once before the tower loop and shared by the towers",
                    )  # fmt: skip
                if name in self.grads:
                    raise refuse(
                        "TM211", self.file, self.loop, f"the tower uses its gradients `{name}`"
                    )
        if not body.inputs:
            raise refuse(
                "TM208", self.file, self.loop,
                "no input of the towers was found (slice, split, dequeue, get_next, placeholder)",
            )  # fmt: skip
        self._check_outer_changes()
        self._check_lists()

    def _check_flow(self) -> None:
        """`continue`, `break` and `return` of the tower loop itself have no loop to act on any more."""

        def visit(node: cst.CSTNode, looped: bool) -> None:
            if isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                return
            if (
                isinstance(node, cst.Return)
                or not looped
                and isinstance(node, cst.Break | cst.Continue)
            ):
                raise refuse("TM211", self.file, node, f"`{code(node)}` in the tower loop")
            for child in node.children:
                visit(child, looped or isinstance(node, cst.For | cst.While))

        for child in self.loop.body.children:
            visit(child, False)

    def _check_loss_kept(self) -> None:
        """A loss that is bound anew after its gradients were computed is not the one that trains."""
        for compute in self.body.computes:
            names = set(reads(compute.loss))
            seen = False
            for node in walk(self.loop.body):
                if node is compute.statement:
                    seen = True
                elif seen and isinstance(node, cst.SimpleStatementLine):
                    if names & set(binds(node)) and not self._inside(compute.statement, node):
                        raise refuse(
                            "TM211", self.file, node,
                            f"`{', '.join(sorted(names & set(binds(node))))}` is bound anew after its gradients "
                            "were computed",
                        )  # fmt: skip

    def _inside(self, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
        return any(n is node for n in walk(outer))

    def _check_lists(self) -> None:
        """`tf.trainable_variables()` in a tower sees what is there by then: it must be everything."""
        for index, node in enumerate(self.body.kept):
            reading = self._reads_variable_list(node)
            if reading is None:
                continue
            later = any(self._makes_variables(n) for n in self.body.kept[index + 1 :])
            if later or not self._list_comes_last(reading):
                raise refuse(
                    "TM219", self.file, node,
                    "`tf.trainable_variables()` is read in the tower before all of its variables are made",
                )  # fmt: skip

    def _reads_variable_list(self, node: cst.CSTNode) -> tuple[SourceFile, cst.CSTNode] | None:
        """Where below a statement, or in a function it calls, the list of variables is read."""
        seen: set[int] = set()

        def visit(file: SourceFile, root: cst.CSTNode) -> tuple[SourceFile, cst.CSTNode] | None:
            for call in calls(root):
                if file.tf(call.func) == "tf.trainable_variables":
                    return file, root
                function = self.kinds.traits.tree.resolve(file, call.func)
                if function is not None and id(function.node) not in seen:
                    seen.add(id(function.node))
                    found = visit(function.file, function.node)
                    if found is not None:
                        return found
            return None

        return visit(self.file, node)

    def _list_comes_last(self, place: tuple[SourceFile, cst.CSTNode]) -> bool:
        """Whether nothing in the function that reads the list makes a variable behind that place."""
        file, root = place
        read = max(file.line(c) for c in calls(root) if file.tf(c.func) == "tf.trainable_variables")
        made = [
            file.line(c)
            for c in calls(root)
            if (file.tf(c.func) or "").startswith(("tf.get_variable", "tf.layers.", "tf.contrib."))
        ]
        return not made or max(made) < read

    def _check_firsts(self) -> None:
        """Values of `if i == 0:` must be the first tower's alone: no other tower may have had one."""
        inside: set[int] = set()
        for node in walk(self.loop.body):
            if isinstance(node, cst.If) and code(node.test) in self._first_tests():
                inside |= {id(n) for n in walk(node)}
        if not inside:
            return
        for node in walk(self.loop.body):
            if id(node) in inside or not isinstance(node, cst.Name):
                continue
            if node.value in self.body.firsts:
                raise refuse(
                    "TM214", self.file, node,
                    f"`{node.value}` is set for the first tower and used for every tower",
                )  # fmt: skip
        before = {name for item in self.before for name in item.binds}
        if before & self.body.firsts:
            raise refuse(
                "TM214", self.file, self.loop,
                f"`{', '.join(sorted(before & self.body.firsts))}` has a value before the first tower sets it",
            )  # fmt: skip

    def _first_tests(self) -> set[str]:
        index = self.body.index
        return {f"{index} == 0", f"not {index}", f"{index} < 1"}

    def _check_carried(self, block: Sequence[cst.BaseStatement], bound: set[str]) -> None:
        """A value that one tower hands to the next (`total = total + loss`) has no place in replicas."""
        for node in block:
            if isinstance(node, cst.With | cst.If | cst.For | cst.While | cst.Try):
                heads: list[cst.CSTNode] = []
                if isinstance(node, cst.With):
                    heads.extend(i.item for i in node.items)
                elif isinstance(node, cst.For):
                    heads.append(node.iter)
                elif isinstance(node, cst.If | cst.While):
                    heads.append(node.test)
                for head in heads:
                    self._carried(head, bound)
                if isinstance(node, cst.With):
                    for item in node.items:
                        if item.asname is not None:
                            bound |= set(_target_names(item.asname.name))
                if isinstance(node, cst.For):
                    bound |= set(_target_names(node.target))
                self._check_carried(statements(node.body), bound)
                orelse = getattr(node, "orelse", None)
                if isinstance(orelse, cst.If):
                    self._check_carried([orelse], bound)
                elif orelse is not None:
                    self._check_carried(statements(orelse.body), bound)
                bound |= set(binds(node))
                continue
            self._carried(node, bound)
            bound |= set(binds(node))

    def _carried(self, node: cst.CSTNode, bound: set[str]) -> None:
        for name in _outer_reads(node, self.body.inline):
            if name in self.body.bound and name not in bound:
                if name in self.body.parameters:
                    continue
                raise refuse(
                    "TM206", self.file, self.loop,
                    f"a tower reads `{name}` before it sets it: the value of the tower before",
                )  # fmt: skip

    def _check_outer_changes(self) -> None:
        """A tower is traced several times: what it changes outside itself would be changed too often."""
        for node in self.body.kept:
            outer = set(changes(node)) - self.body.bound - set(self.file.imports)
            if outer:
                raise refuse(
                    "TM206", self.file, self.loop,
                    f"the tower changes `{', '.join(sorted(outer))}`, which lives outside it",
                )  # fmt: skip
            for inner in walk(node):
                if isinstance(inner, cst.Assign):
                    for target in inner.targets:
                        root: cst.CSTNode = target.target
                        if isinstance(root, cst.Attribute | cst.Subscript):
                            raise refuse(
                                "TM206", self.file, self.loop,
                                f"the tower stores a value in `{code(root)}`; it can only return values",
                            )  # fmt: skip
                if isinstance(inner, cst.AugAssign) and isinstance(inner.target, cst.Name):
                    if inner.target.value not in _first_binds(self.body.kept, inner):
                        raise refuse(
                            "TM206", self.file, self.loop,
                            f"`{code(inner)}` adds up over the towers",
                        )  # fmt: skip
                if (
                    isinstance(inner, cst.Call)
                    and isinstance(inner.func, cst.Attribute)
                    and inner.func.attr.value in ("append", "extend", "update")
                ):
                    root = inner.func.value
                    while isinstance(root, cst.Attribute | cst.Subscript):
                        root = root.value
                    if isinstance(root, cst.Name) and root.value not in self.body.bound:
                        raise refuse(
                            "TM206", self.file, self.loop,
                            f"the tower changes `{root.value}`, which lives outside it: `{code(inner)}`",
                        )  # fmt: skip


def _target_names(target: cst.CSTNode) -> list[str]:
    """Names bound by a target: `a`, `(a, b)`."""
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        return [n for e in target.elements for n in _target_names(e.value)]
    return []


def _first_binds(kept: Sequence[cst.BaseStatement], before: cst.CSTNode) -> set[str]:
    """Names plainly assigned in the tower before a node."""
    names: set[str] = set()
    for statement in kept:
        for node in walk(statement):
            if node is before:
                return names
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    if isinstance(target.target, cst.Name):
                        names.add(target.target.value)
    return names


def _outer_reads(node: cst.CSTNode, inline: dict[cst.CSTNode, str]) -> list[str]:
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


def _slice_size(node: cst.Slice, index: str | None) -> str | None:
    """`b` of `i * b:(i + 1) * b` in any order of the factors."""
    if node.lower is None or node.upper is None or node.step is not None:
        return None
    low, high = node.lower, node.upper
    if not isinstance(low, cst.BinaryOperation) or not isinstance(low.operator, cst.Multiply):
        return None
    if not isinstance(high, cst.BinaryOperation) or not isinstance(high.operator, cst.Multiply):
        return None
    for a, size in ((low.left, low.right), (low.right, low.left)):
        if code(a) != index:
            continue
        for b, other in ((high.left, high.right), (high.right, high.left)):
            if _bare(size) == _bare(other) and _is_next(b, index):
                return code(size)
    return None


def _bare(node: cst.CSTNode) -> str:
    """Text of an expression without blanks and outer parentheses, to compare spellings."""
    return code(node).replace(" ", "").strip("()")


def _is_next(node: cst.CSTNode, index: str | None) -> bool:
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Add)
        and (
            (code(node.left) == index and integer(node.right) == 1)
            or (code(node.right) == index and integer(node.left) == 1)
        )
    )
