"""Take a tower loop's body apart: what stays in the tower, its inputs, its gradients, and what goes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import libcst as cst

from towermigrate.recognize.body_checks import BodyChecks
from towermigrate.recognize.inputs import InputReader
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.own_gradients import OwnGradients, of_variables, roots
from towermigrate.recognize.refusal import Reasons, refuse
from towermigrate.recognize.reuse import drop_tail_reuse, is_reuse
from towermigrate.recognize.scope import (
    Item,
    bare_call,
    comments,
    header_comment,
    is_root_scope,
    leading,
)
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    binds,
    calls,
    code,
    counted_by,
    dotted,
    elements,
    reads,
    statements,
    text,
    walk,
)
from towermigrate.recognize.tower import Body, Compute, makes_variables


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
    if name in ("range", "xrange") and isinstance(target, cst.Name):
        if counted_by(iterated) is not None:
            return target.value
    if name == "enumerate" and len(iterated.args) == 1:
        items = elements(target)
        if items and len(items) == 2 and all(isinstance(i, cst.Name) for i in items):
            if isinstance(iterated.args[0].value, cst.Name | cst.Attribute):
                return code(items[0])
    raise refuse(
        "TM201", file, loop,
        f"the tower loop goes over `{code(iterated)}`; range(n), xrange(n), enumerate(devices) and "
        "zip of devices and of what is as long are understood",
    )  # fmt: skip


def _without_number(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


class BodyReader:
    """Reads one loop body; says everything that it does not understand."""

    def __init__(
        self,
        file: SourceFile,
        kinds: Kinds,
        loop: cst.For,
        before: Sequence[Item],
        splits: dict[str, str],
        reasons: Reasons,
        flags: Mapping[str, str],
    ) -> None:
        self.reasons = reasons
        self.file = file
        self.kinds = kinds
        self.loop = loop
        self.before = before
        self.body = Body(loop, None, flags=dict(flags))
        self.inputs = InputReader(file, kinds, self.body, splits)
        self.own = OwnGradients(file, kinds, self.body)

    def read(self) -> Body:
        body = self.body
        with self.reasons.collected():
            body.index = loop_index(self.file, self.loop)
        if body.flags:
            body.sharing.append("flag")
        body.kept = self._block(statements(self.loop.body), [])
        drop_tail_reuse(self.file, self.kinds, body)
        for node in body.kept:
            body.bound |= set(binds(node))
        with self.reasons.collected():
            self.inputs.made()
            self.inputs.same()
        BodyChecks(
            self.file, self.kinds, self.loop, self.before, body, self.own.of, self.reasons
        ).check()
        return body

    # -- statements

    def _block(
        self, block: Sequence[cst.BaseStatement], lead: list[cst.EmptyLine]
    ) -> list[cst.BaseStatement]:
        kept: list[cst.BaseStatement] = []
        pending = list(lead)
        for node in block:
            result: list[cst.BaseStatement] | None = [node]
            with self.reasons.collected():
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
        if found is not None and id(found[1]) in self.kinds.updates_taken:
            self._updates(node, found[0][0])
            return None
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
        again = sorted(set(binds(node)) & set(self.own.of))
        if again:
            raise refuse(
                "TM211", self.file, node, f"`{again[0]}`, a tower's gradients, is bound anew in it"
            )
        self.inputs.inline(node)
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
            self.inputs.inline(item)
        return [changed]

    def _scope_matters(self, node: cst.With, item: cst.WithItem) -> bool:
        """Whether a tower's name scope is used: captured and read, put in front of summaries' names, or of names like these.

        A summary behind the towers would get a number where an operation of a tower has its name in the step.
        """
        if item.asname is not None and isinstance(item.asname.name, cst.Name):
            name = item.asname.name.value
            if any(name in self._reads(s) for s in statements(node.body)):
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
        return any(self._is_like_a_tag(each) for each in walk(node.body))

    def _is_like_a_tag(self, node: cst.CSTNode) -> bool:
        """Whether a text, or one that is put together for a name, may be the tag of a summary."""
        if isinstance(node, cst.SimpleString) and self._tags:
            return _without_number((text(node) or "").lower()) in self._tags
        if not isinstance(node, cst.Call) or not self._tags:
            return False
        named = [argument(node, None, each) for each in ("name", "scope", "name_or_scope")]
        if (self.file.tf(node.func) or "").endswith("_scope") and node.args:
            named.append(node.args[0].value)
        return any(each is not None and text(each) is None for each in named)

    @cached_property
    def _tags(self) -> frozenset[str]:
        """The tags of all summaries of the program that are written out, without case and number, and their last parts."""
        tree = self.kinds.traits.tree
        found: set[str] = set()
        for file in tree.near(self.file):
            if ".summary." not in file.text:
                continue
            for call in calls(file.module):
                name = file.tf(call.func) or ""
                tag = argument(call, 0, "name") if name.startswith("tf.summary.") else None
                if tag is not None:
                    whole = _without_number((text(tag) or "").lower())
                    found |= {whole, _without_number(whole.rpartition("/")[2])}
        return frozenset(found)

    def _reads(self, node: cst.CSTNode) -> list[str]:
        """What a statement of the tower reads, batch-norm updates left out, which go."""
        if isinstance(node, cst.SimpleStatementLine):
            found = assigned(node)
            gone = found is not None and id(found[1]) in self.kinds.updates_taken
            return [] if gone else reads(node)
        if not self.kinds.updates_taken:
            return reads(node)
        return [name for child in node.children for name in self._reads(child)]

    def _if(self, node: cst.If, lead: list[cst.EmptyLine]) -> list[cst.BaseStatement] | None:
        index = self.body.index
        test = code(node.test)
        inside = statements(node.body)
        if index is not None and node.orelse is None:
            if test in (f"{index} > 0", f"{index} != 0", f"{index} >= 1", index) and all(
                is_reuse(s) for s in inside
            ):
                self.body.sharing.append("reuse_variables")
                self.body.dropped.append(node)
                return None
            if test in (f"{index} == 0", f"not {index}", f"{index} < 1"):
                if all(is_reuse(s) for s in inside) or any(self._has_effects(s) for s in inside):
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
        self.inputs.inline(node)
        return [self._with_lead(node, lead)]

    def _has_effects(self, node: cst.BaseStatement) -> bool:
        """Whether a statement does more than bind names to values of graph operations."""
        return assigned(node) is None or any(
            (self.file.tf(c.func) or "").startswith(("tf.summary.", "tf.add_to_collection"))
            for c in calls(node)
        )

    def _updates(self, node: cst.BaseStatement, name: str) -> None:
        """A statement that reads the batch-norm updates: those of the last tower, or of the first."""
        self.kinds.env[name] = Kind.OP
        self.kinds.updates.add(name)
        item = Item.of(node)
        item.kind, item.updates = Kind.OP, True
        self.body.updates.append(item)
        self.body.first_updates = name in self.body.firsts
        self.body.dropped.append(node)

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
        return False

    def _bare_call(
        self, node: cst.BaseStatement, call: cst.Call, lead: list[cst.EmptyLine]
    ) -> bool:
        if not isinstance(call.func, cst.Attribute):
            return False
        method = call.func.attr.value
        if method == "reuse_variables":
            # Whether it matters is known only when the rest has been read: see drop_tail_reuse.
            return False
        if method == "append" and isinstance(call.func.value, cst.Name) and len(call.args) == 1:
            name = call.func.value.value
            if self.kinds.of_name(name) is not Kind.TOWER_LIST:
                return False
            value = call.args[0].value
            compute = self.own.one_of(value)
            taken = roots(value, self.kinds, self.file)
            if len(taken) == 1 and compute is None:
                compute = self._compute(node, taken[0], None, lead)
            elif taken or compute is not None and compute.list_name:
                raise refuse(
                    "TM211", self.file, node, f"`{name}` gets gradients of more than one loss"
                )
            if compute is not None:
                self.own.appended(value, compute)
            if compute is not None and not isinstance(value, cst.Name):
                compute.list_name = name
                return True
            if isinstance(value, cst.Name):
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
        if self.inputs.bound(node, names, value, lead):
            return True
        if self._own_gradients(node, value, lead):
            return True
        if len(names) != 1:
            return False
        kind = self.kinds.of(value)
        if kind is Kind.GRADIENTS and isinstance(value, cst.Call):
            self.own.of[names[0]] = self._compute(node, value, names[0], lead)
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

    def _own_gradients(
        self, node: cst.BaseStatement, value: cst.BaseExpression, lead: list[cst.EmptyLine]
    ) -> bool:
        """Whether an assignment makes something of the tower's gradients, or takes them in it."""
        taken = roots(value, self.kinds, self.file)
        compute = self.own.one_of(value)
        direct = len(taken) == 1 and taken[0] is value
        if direct and self.file.tf(taken[0].func) != "tf.gradients" or not taken and not compute:
            return False
        if taken:
            if len(taken) > 1 or compute is not None:
                raise refuse(
                    "TM211", self.file, node, "gradients of two losses are put together in the tower"
                )  # fmt: skip
            compute = self._compute(node, taken[0], None, [])
            compute.lead = []  # the statement itself moves, with its comments
        assert compute is not None
        self.own.changed(node, compute, lead)
        return True

    def _compute(
        self, node: cst.BaseStatement, call: cst.Call, target: str | None, lead: list[cst.EmptyLine]
    ) -> Compute:
        if self.file.tf(call.func) == "tf.gradients":
            compute = Compute(call, None, *of_variables(self.file, call), None, node)
            compute.lead = [*comments(lead), *comments(leading(node))]
            self.body.computes.append(compute)
            return compute
        assert isinstance(call.func, cst.Attribute)
        loss = argument(call, 0, "loss")
        if loss is None:
            raise refuse("TM202", self.file, call, "compute_gradients without a loss")
        if makes_variables(self.kinds, self.file, loss) or any(
            self.file.tf(inner.func) is None for inner in calls(loss)
        ):
            # It would be made in the step, not in the tower that owns the variables.
            raise refuse(
                "TM202", self.file, call,
                f"`{code(loss)}` is computed in the call of compute_gradients; give it a name first",
            )  # fmt: skip
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
        item.kind = Kind.VARLIST
        self.body.step_items.append(item)

    def _reads_step_names(self, node: cst.BaseStatement) -> bool:
        used = set(reads(node))
        compute = self.own.one_of(node)
        if compute is not None:
            self.own.changed(node, compute, [])  # which says that it is no assignment
        return any(self.kinds.of_name(n) is Kind.VARLIST for n in used) and not self._model(node)

    def _model(self, node: cst.CSTNode) -> bool:
        return any(self.kinds.in_graph(c) for c in calls(node))
