"""What must hold of a tower loop's body so that the tower function means the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import libcst as cst

from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.refusal import Reasons
from towermigrate.recognize.scope import (
    Item,
    bare_call,
)
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    binds,
    calls,
    changes,
    code,
    reads,
    statements,
    walk,
)
from towermigrate.recognize.tower import Body, makes_variables, outer_reads


class BodyChecks:
    """Checks one loop body that has been taken apart; says everything that would change its meaning."""

    def __init__(
        self,
        file: SourceFile,
        kinds: Kinds,
        loop: cst.For,
        before: Sequence[Item],
        body: Body,
        gradients: Collection[str],
        reasons: Reasons,
    ) -> None:
        self.reasons = reasons
        self.file = file
        self.kinds = kinds
        self.loop = loop
        self.before = before
        self.body = body
        self.gradients = gradients

    def check(self) -> None:
        self._check_inline()
        self._check_inputs_first()
        self._check_flow()
        self._check_sizes()
        self._check_listed()
        self._check_loss_kept()
        self._check_lists_once()
        self._check_flags()
        self._check()
        self._check_firsts()
        self._check_carried(self.body.kept, set())

    def _check(self) -> None:
        body = self.body
        for compute in body.computes:
            if compute.list_name is None:
                self.reasons.say(
                    "TM202", self.file, compute.call,
                    "these gradients are not appended to a list over the towers",
                )  # fmt: skip
        lists = [c.list_name for c in body.computes]
        if len(set(lists)) != len(lists):
            self.reasons.say(
                "TM211", self.file, self.loop, "two kinds of gradients are appended to one list"
            )
        graph_names = {
            name for name, kind in self.kinds.env.items()
            if kind in (Kind.TENSOR, Kind.APPLY, Kind.EXTRA, Kind.OP)
        }  # fmt: skip
        for node in body.kept:
            for name in outer_reads(node, body.inline):
                if name in graph_names and name not in body.bound:
                    part = f"{name}[{body.index}]"
                    places = [n for n in walk(node) if isinstance(n, cst.Subscript)]
                    place = next((n for n in places if code(n) == part), None)
                    if place is not None:
                        self.reasons.say(
                            "TM208", self.file, place,
                            f"`{part}` is a part of a tensor that is not understood as an input "
                            "(placeholder, queue, reader, dataset)",
                        )  # fmt: skip
                    self.reasons.say(
                        "TM217", self.file, self.loop,
                        f"`{name}` is a tensor made once before the tower loop and shared by the towers",
                    )  # fmt: skip
                if self.kinds.of_name(name) is Kind.SCHEDULE:
                    self.reasons.say(
                        "TM211", self.file, node,
                        f"`{name}`, a schedule, is read in the tower: outside of graphs it is a function",
                    )  # fmt: skip
                if name in self.gradients:
                    self.reasons.say(
                        "TM211", self.file, self.loop, f"the tower uses its gradients `{name}`"
                    )
        if not body.inputs:
            self.reasons.say(
                "TM208", self.file, self.loop,
                "no input of the towers was found (slice, split, dequeue, get_next, placeholder)",
            )  # fmt: skip
        self._check_outer_changes()
        self._check_lists()

    def _check_lists_once(self) -> None:
        """A step makes the variable lists of its gradients: each name must stand for one list, of one variable each."""
        bound: set[str] = set()
        read = {
            name for c in self.body.computes if c.var_list is not None for name in reads(c.var_list)
        }
        for item in self.body.step_items:
            read |= item.reads
            for name in sorted(item.binds & bound):
                self.reasons.say(
                    "TM211", self.file, item.node,
                    f"the variable list `{name}` is bound anew in the tower",
                )  # fmt: skip
            bound |= item.binds
        nodes = [c.var_list for c in self.body.computes if c.var_list is not None]
        for node in [*nodes, *(item.node for item in self.body.step_items)]:
            for inner in walk(node):
                if isinstance(inner, cst.BinaryOperation) and isinstance(inner.operator, cst.Add):
                    if self._may_overlap(inner):
                        self.reasons.say(
                            "TM211", self.file, inner,
                            f"`{code(inner)}` may list a variable twice, whose gradient TF1 applied twice",
                        )  # fmt: skip
                        return

    def _may_overlap(self, node: cst.BinaryOperation) -> bool:
        """Whether both sides list variables that may be the same."""
        sides = [node.left, node.right]
        if all(self.kinds.of(side) is not Kind.VARLIST for side in sides):
            return False
        if any("RESOURCE" in code(side) for side in sides):
            return False  # they are those that the other side does not list
        made = {name: item.node for item in self.body.step_items for name in item.binds}
        scopes = []
        for side in sides:
            shown = made.get(side.value, side) if isinstance(side, cst.Name) else side
            texts = [str(n.evaluated_value) for n in walk(shown) if isinstance(n, cst.SimpleString)]
            scopes.append(texts[-1] if len(texts) in (1, 2) else "")
        first, second = scopes
        return not first or not second or first.startswith(second) or second.startswith(first)

    def _check_flags(self) -> None:
        """A flag that is True from some place of the tower on says no more than reuse where nothing reads it behind."""
        for name in self.body.flags:
            set_ = False
            for node in walk(self.loop.body):
                if isinstance(node, cst.Assign) and any(
                    code(t.target) == name for t in node.targets
                ):
                    set_ = True
                elif (
                    set_
                    and isinstance(node, cst.Name)
                    and node.value == name
                    and not _is_target(self.loop, node)
                ):
                    self.reasons.say(
                        "TM214", self.file, node,
                        f"`{name}` is set in the middle of the tower, and what stands behind reads it",
                    )  # fmt: skip
                    break

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
                self.reasons.say("TM211", self.file, node, f"`{code(node)}` in the tower loop")
            for child in node.children:
                visit(child, looped or isinstance(node, cst.For | cst.While))

        for child in self.loop.body.children:
            visit(child, False)

    def _check_sizes(self) -> None:
        """The rows of a slice are dealt out outside the tower, by the size that holds there."""
        inside = set(binds(self.loop.body))
        for item in self.body.inputs:
            names = set(re.findall(r"[A-Za-z_]\w*", item.size or ""))
            if names & inside:
                self.reasons.say(
                    "TM208", self.file, self.loop,
                    f"`{item.size}`, the rows of a tower, is set inside the tower loop",
                )  # fmt: skip

    def _check_listed(self) -> None:
        """A value put on a list and then bound anew is not the one that the tower returns."""
        for node in walk(self.loop.body):
            call = bare_call(node) if isinstance(node, cst.SimpleStatementLine) else None
            if call is None or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
                continue
            name = code(call.args[0].value)
            if self.body.lists.get(code(call.func.value)) != name or name in self.gradients:
                continue
            seen = False
            for other in walk(self.loop.body):
                seen = seen or other is node
                if seen and isinstance(other, cst.SimpleStatementLine) and name in binds(other):
                    self.reasons.say(
                        "TM211", self.file, other,
                        f"`{name}` is bound anew after it was put on a list over the towers",
                    )  # fmt: skip

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
                        self.reasons.say(
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
            later = any(
                makes_variables(self.kinds, self.file, n) for n in self.body.kept[index + 1 :]
            )
            if later or not self._list_comes_last(reading):
                self.reasons.say(
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
                self.reasons.say(
                    "TM214", self.file, node,
                    f"`{node.value}` is set for the first tower and used for every tower",
                )  # fmt: skip
        before = {name for item in self.before for name in item.binds}
        if before & self.body.firsts:
            self.reasons.say(
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
        for name in outer_reads(node, self.body.inline):
            if name in self.body.bound and name not in bound:
                if name in self.body.parameters:
                    continue
                self.reasons.say(
                    "TM206", self.file, self.loop,
                    f"a tower reads `{name}` before it sets it: the value of the tower before",
                )  # fmt: skip

    def _check_outer_changes(self) -> None:
        """A tower is traced several times: what it changes outside itself would be changed too often."""
        for node in self.body.kept:
            outer = set(changes(node)) - self.body.bound - set(self.file.imports)
            if outer:
                self.reasons.say(
                    "TM206", self.file, self.loop,
                    f"the tower changes `{', '.join(sorted(outer))}`, which lives outside it",
                )  # fmt: skip
            for inner in walk(node):
                if isinstance(inner, cst.Assign):
                    for target in inner.targets:
                        root: cst.CSTNode = target.target
                        # What is stored in a list or dict of the tower's own is followed by the proof.
                        if isinstance(root, cst.Subscript) and isinstance(root.value, cst.Name):
                            if root.value.value in _first_binds(self.body.kept, inner):
                                continue
                        if isinstance(root, cst.Attribute | cst.Subscript):
                            self.reasons.say(
                                "TM206", self.file, self.loop,
                                f"the tower stores a value in `{code(root)}`; it can only return values",
                            )  # fmt: skip
                if isinstance(inner, cst.AugAssign) and isinstance(inner.target, cst.Name):
                    if inner.target.value not in _first_binds(self.body.kept, inner):
                        self.reasons.say(
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
                        self.reasons.say(
                            "TM206", self.file, self.loop,
                            f"the tower changes `{root.value}`, which lives outside it: `{code(inner)}`",
                        )  # fmt: skip

    def _check_inputs_first(self) -> None:
        """The tower is given its inputs: what it binds to an input's name in front of the input's own statement would win."""
        inputs: dict[int, set[str]] = {}
        for given in self.body.inputs:
            if given.statement is not None:
                inputs.setdefault(id(given.statement), set()).update(given.names)
        bound: set[str] = set()

        def visit(node: cst.CSTNode) -> None:
            again = sorted(inputs.get(id(node), set()) & bound)
            if again:
                self.reasons.say(
                    "TM208", self.file, node,
                    f"`{again[0]}` is bound in the tower before it is an input",
                )  # fmt: skip
            if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.BaseComp):
                bound.update(binds(node))
                return
            if isinstance(node, cst.SimpleStatementLine | cst.WithItem):
                bound.update(binds(node))
            elif isinstance(node, cst.For):
                bound.update(_target_names(node.target))
            for child in node.children:
                visit(child)

        visit(self.loop.body)

    def _check_inline(self) -> None:
        """A parameter named like its source must not hide the source from other readers."""
        inline = {i.source for i in self.body.inputs if i.statement is None and i.kind != "same"}
        for node in self.body.kept:
            whole = inline & set(outer_reads(node, self.body.inline))
            if whole:
                self.reasons.say(
                    "TM208", self.file, self.loop,
                    f"the towers read both a part and the whole of `{', '.join(sorted(whole))}`",
                )  # fmt: skip
        if inline & self.body.bound:
            self.reasons.say("TM208", self.file, self.loop, "an input is bound anew in the tower")


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


def _is_target(loop: cst.For, name: cst.Name) -> bool:
    """Whether a name is what an assignment of the loop binds."""
    return any(
        t.target is name for n in walk(loop.body) if isinstance(n, cst.Assign) for t in n.targets
    )
