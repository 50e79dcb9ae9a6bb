"""What stays of a scope must not need what goes: check it before anything is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import (
    Scope,
    ScopeReader,
)
from towermigrate.recognize.first_reads import first_reads
from towermigrate.recognize.kinds import IN_GRAPH, Kind
from towermigrate.recognize.scope import (
    Item,
    run_calls,
)
from towermigrate.recognize.source import Function
from towermigrate.recognize.syntax import (
    binds,
    reads,
    walk,
)
from towermigrate.recognize.tower import Body


def check_remains(
    scope: Scope,
    after: Sequence[Item],
    body: Body,
    before: Sequence[Item],
    functions: Sequence[Function],
) -> None:
    """Say where a statement that stays reads a value of the graph or of the tower loop."""
    checker = _Remains(scope)
    checker.left_over(after, body)
    checker.objects_once([*before, *body.hoisted, *after])
    checker.used_elsewhere(after)
    checker.late_bindings(after, body, functions)


class _Remains(ScopeReader):
    def late_bindings(
        self, after: Sequence[Item], body: Body, functions: Sequence[Function]
    ) -> None:
        """A step is traced at its first run: a name that is bound anew by then has another value.

        TF1 read Python values where the graph was built. So what the towers and the graph statements read must
        not be set by a later statement, the session loop included.
        """
        own = body.bound | set(body.parameters) | set(body.flags) | {body.index or ""}
        own |= {n for compute in body.computes for item in compute.items for n in item.binds}
        watched: dict[str, str] = {}
        read: list[cst.CSTNode] = [*body.kept, *(i.node for i in body.step_items)]
        for compute in body.computes:
            read.append(compute.loss)
            read.extend(item.node for item in compute.items)
            read.extend([compute.appended] if compute.appended is not None else [])
            if compute.var_list is not None:
                read.append(compute.var_list)
        for node in read:
            watched.update(dict.fromkeys(set(reads(node)) - own, "the towers"))
        for given in body.inputs:
            for name in re.findall(r"[A-Za-z_]\w*", given.size or ""):
                watched[name] = "the towers"
        if self.candidate.function is None:
            # At module level the towers' functions read the same names.
            for function in functions:
                if function.file is self.file:
                    for name in reads(function.node):
                        watched.setdefault(name, "functions of the towers")
        self._globals(set(watched), functions)
        for item in after:
            if item.kind in IN_GRAPH or item.kind is Kind.EVALUATION:
                for name in item.reads - own:
                    watched.setdefault(name, "the graph")
                continue
            late = {
                n
                for n in (item.binds | item.changes) & set(watched)
                if self.kinds.of_name(n) is Kind.PYTHON
            }
            if late and item.kind is Kind.PYTHON:
                name = sorted(late)[0]
                self.reasons.say(
                    "TM210",
                    self.file,
                    item.node,
                    f"`{name}`, which {watched[name]} read, is set anew after they were built",
                )

    def _globals(self, watched: set[str], functions: Sequence[Function]) -> None:
        """Names that the towers or the functions they call read, and some function sets as `global`."""
        files = {self.file.path: self.file, **{f.file.path: f.file for f in functions}}
        for function in functions:
            watched = watched | set(reads(function.node))
        for file in files.values():
            for node in walk(file.module):
                if isinstance(node, cst.Global):
                    names = {n.name.value for n in node.names} & watched
                    if names:
                        self.reasons.say(
                            "TM206",
                            file,
                            node,
                            f"`{sorted(names)[0]}`, which the towers read, is set by a function",
                        )

    def objects_once(self, items: Sequence[Item]) -> None:
        """Optimizers, schedules and averages move into the scope: each name must mean one of them."""
        seen: dict[str, Item] = {}
        for item in items:
            if item.kind in (Kind.OPTIMIZER, Kind.SCHEDULE, Kind.EMA, Kind.VARIABLE):
                for name in item.binds:
                    if name in seen:
                        self.reasons.say(
                            "TM211", self.file, item.node, f"`{name}` is bound to two objects"
                        )
                    seen[name] = item
        for item in items:
            for name in item.binds & set(seen):
                if seen[name] is not item:
                    self.reasons.say("TM211", self.file, item.node, f"`{name}` is bound anew")

    def left_over(self, after: Sequence[Item], body: Body) -> None:
        """Statements that stay must not read what only the tower loop bound."""
        hoisted = {name for item in body.hoisted for name in item.binds}
        gone = ({*binds(body.node)} | body.bound) - hoisted
        bound: set[str] = set()
        for item in after:
            if item.kind is Kind.PYTHON:
                for name in sorted(self._first_read(item) & gone - bound):
                    self.reasons.say(
                        "TM210",
                        self.file,
                        item.node,
                        f"`{name}`, bound by the tower loop, is used outside `sess.run`",
                    )
                bound |= item.binds

    def _first_read(self, item: Item) -> frozenset[str]:
        """What a statement reads before it sets it, but for what its runs are given, which the step knows."""
        runs = set(run_calls(item.node, self.kinds))
        if not runs:
            return first_reads(item.node)

        class Without(cst.CSTTransformer):
            def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
                return cst.Name("None") if original in runs else updated

        without = item.node.visit(Without())
        assert isinstance(without, cst.BaseStatement)
        return first_reads(without)

    def used_elsewhere(self, after: Sequence[Item]) -> None:
        """Graph values at module level that functions of the module read cannot be taken away."""
        if self.candidate.function is not None:
            for node in walk(self.candidate.function.body):
                if isinstance(node, cst.Return) and node.value is not None:
                    if any(
                        self.kinds.of_name(n) in IN_GRAPH
                        or self.kinds.of_name(n) in (Kind.SESSION, Kind.EVALUATION)
                        for n in reads(node.value)
                    ) and not _inside_function(self.candidate.function, node):
                        self.reasons.say(
                            "TM205", self.file, node, "the function returns values of its graph"
                        )
            return
        inside = {id(n) for item in after for n in walk(item.node)}
        tree = self.kinds.traits.tree
        users = tree.users.get(self.file.path, set()) - {self.file.path}
        texts = [tree.sources.get(each, "") for each in users]
        others = {word for each in texts for word in re.findall(r"\w+", each)}
        for function in self.file.functions.values():
            if id(function.node) in inside and function.node.name.value not in others:
                continue  # what stands behind the towers is looked at as it is in a function
            for name in reads(function.node):
                if self.kinds.of_name(name) in IN_GRAPH or self.kinds.of_name(name) in (
                    Kind.PLACEHOLDER, Kind.SESSION, Kind.EVALUATION,
                ):  # fmt: skip
                    self.reasons.say(
                        "TM210", self.file, function.node,
                        f"function `{function.qualified}` reads `{name}` of the module's graph",
                    )  # fmt: skip


def _inside_function(outer: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Whether a node belongs to a function nested in `outer`."""
    for inner in walk(outer.body):
        if isinstance(inner, cst.FunctionDef | cst.Lambda) and any(n is node for n in walk(inner)):
            return True
    return False
