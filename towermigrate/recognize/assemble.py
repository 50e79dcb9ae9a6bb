"""Put one tower loop and everything that hangs on it together into a TowerProgram, or say why not."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.faults import what_failed
from towermigrate.findings import Finding
from towermigrate.program import (
    Extra,
    RunSite,
    Services,
    Span,
    Stage,
    TowerInput,
    TowerLoop,
    TowerProgram,
)
from towermigrate.recognize import hazards
from towermigrate.recognize.analysis import (
    Analysis,
    Scope,
    StageParts,
)
from towermigrate.recognize.body import BodyReader
from towermigrate.recognize.count import tower_count
from towermigrate.recognize.graph import GraphReader
from towermigrate.recognize.input_summaries import merged_with_inputs
from towermigrate.recognize.kinds import OPS, UPDATES, Kind, Kinds, Traits, collection_key
from towermigrate.recognize.listed import used_otherwise
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.own_gradients import check_own
from towermigrate.recognize.own_names import check_own_names
from towermigrate.recognize.own_variables import check_variable_names, turns_of
from towermigrate.recognize.proof import Codes, prove
from towermigrate.recognize.proof.collected import no_updates, summary_makers
from towermigrate.recognize.rates import rates
from towermigrate.recognize.reach import tower_functions
from towermigrate.recognize.refusal import STRUCTURE, Refused, by_importance, note
from towermigrate.recognize.remains import check_remains
from towermigrate.recognize.runs import RunReader
from towermigrate.recognize.scope import (
    Item,
    flatten,
    opened_sessions,
)
from towermigrate.recognize.settings import check_settings, settings
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.stages import StageReader
from towermigrate.recognize.summaries import merged_by_name
from towermigrate.recognize.syntax import (
    assigned,
    calls,
    code,
    reads,
    walk,
)
from towermigrate.recognize.tower import Body
from towermigrate.recognize.updates import check_updates, updates_of_towers


class Assembler:
    """Reads the scope around one tower loop; says everything in it that keeps it from loop style."""

    def __init__(self, tree: Tree, traits: Traits, codes: Codes, candidate: Candidate) -> None:
        self.tree = tree
        self.codes = codes
        self.candidate = candidate
        self.file = candidate.file
        self.kinds = Kinds(candidate.file, traits)
        if any(key in candidate.file.text for key in UPDATES):
            self.kinds.no_updates = no_updates(codes, candidate.file.path)
        self.scope = Scope(tree, candidate, self.kinds)
        self.has_runs = True

    def analyse(self) -> Analysis:
        file, loop, reasons = self.file, self.candidate.loop, self.scope.reasons
        self._scope_is_function()
        if loop.orelse is not None:
            reasons.say("TM201", file, loop, "the tower loop has an `else:`")
        if not self.kinds.no_updates:
            taken, of_all = updates_of_towers(self.candidate, file)
            self.kinds.updates_taken, self.kinds.updates_of_all = taken, of_all
        items = flatten(self.candidate.block, file)
        for name, kind in opened_sessions(self.candidate.block, file).items():
            self.kinds.env[name] = kind
        where = self._position(items)
        before, loop_item, after = items[:where], items[where], items[where + 1 :]
        if any(word in file.text for word in ("merge_all", "merge_all_summaries")):
            makers = summary_makers(self.codes, file.path)
            before, after = merged_by_name(self.scope, before, loop, after, makers)
        graph = GraphReader(self.scope)
        appended = _appended(loop)
        self.scope.front = before
        for item in before:
            graph.before(item, appended)
        self._needs_runs(after, loop)
        check_variable_names(reasons, self.kinds.traits, self.candidate)
        check_own_names(reasons, self.candidate)
        flags = turns_of(self.kinds.traits, self.candidate).flags
        body = BodyReader(file, self.kinds, loop, before, self.scope.splits, reasons, flags).read()
        fed = settings(self.scope, before, body)
        computed = rates(self.scope, before, loop)
        for name in body.bound:
            self.kinds.env[name] = Kind.TOWER
        gradients = {each.list_name for each in body.computes}
        for name in body.lists:
            self.kinds.env[name] = Kind.TOWER_LIST
            if name not in gradients:
                self.scope.lists[name] = name
        functions = tower_functions(self.tree, file, body.kept)
        self._update_ops()
        hazards.check(
            reasons, self.tree, self.kinds.traits, self.candidate, body, functions, before
        )
        for item in after:
            graph.after(item)
        hazards.check_after(reasons, self.kinds, file, after)
        if not self.kinds.no_updates:
            check_updates(self.scope, body, after)
        looks = [item.node for item in after if item.kind is Kind.EVALUATION]
        known = {id(f.node) for f in functions}
        evaluating = [f for f in tower_functions(self.tree, file, looks) if id(f.node) not in known]
        self._own_names(after, body)
        self._listed(body)
        with reasons.collected():
            check_own(self.kinds, file, body, after)
        sparse = hazards.may_be_sparse(file, body, functions)
        controlled = sparse and hazards.has_control_flow(file, body, functions)
        stages = StageReader(self.scope, sparse, controlled).stages(after, body)
        runner = RunReader(self.scope)
        runs = runner.runs(after) if self.has_runs else []
        runner.trains(runs, after, stages)
        check_settings(self.scope, fed, before, after, runs)
        check_remains(self.scope, after, body, before, [*functions, *evaluating])
        analysis = Analysis(
            scope=self.scope,
            before=before,
            loop_item=loop_item,
            after=after,
            body=body,
            stages=stages,
            runs=runs,
            sparse=sparse,
            tower_functions=[(f.file, f.node) for f in [*functions, *evaluating]],
        )
        proved = prove(self.codes, self.scope, before, after, body, stages, runs)
        reasons.findings += proved.findings
        analysis.with_inputs = merged_with_inputs(self.scope, body, after, runs, functions)
        analysis.settings, analysis.rates = fed, computed
        analysis.scaled = proved.scaled
        analysis.normalizes = proved.normalizes
        analysis.tags = proved.tags
        analysis.numbered = proved.numbered
        analysis.sums, analysis.scoped = proved.sums, proved.scoped
        self._sums(analysis)
        if not any(one.rule in STRUCTURE for one in reasons.findings):
            analysis.program = self._program(analysis)
        return analysis

    def _sums(self, a: Analysis) -> None:
        """Where a tower's loss counts those of the towers before, its gradients must be averaged as they are."""
        for part in a.stages if a.sums else ():
            averaged = part.mean is not None or part.how.none_policy in ("crash", "zeros", "filled")
            if not part.compute.plain or part.compute.optimizer is None or not averaged:
                self.scope.reasons.say(
                    "TM219", self.file, part.compute.call,
                    f"`{code(part.compute.loss)}` counts the losses of the towers before, and its gradients are not averaged as they are",
                )  # fmt: skip

    def _position(self, items: Sequence[Item]) -> int:
        """Where the loop stands among the statements of its scope, itself or the block that holds it."""
        loop = self.candidate.loop
        for position, item in enumerate(items):
            if item.node is loop:
                return position
        self.scope.reasons.say(
            "TM201", self.file, loop,
            "the tower loop stands inside another block (if, for, try, with)",
        )  # fmt: skip
        holding = (k for k, item in enumerate(items) if any(n is loop for n in walk(item.node)))
        return next(holding, len(items) - 1)

    def _scope_is_function(self) -> None:
        function = self.candidate.function
        if function is None:
            return
        if "." in (self.candidate.qualified or "") and "self" in reads(self.candidate.loop):
            self.scope.reasons.say(
                "TM206", self.file, self.candidate.loop,
                "the tower loop stands in a method and uses `self`, where other methods may keep parts of the graph",
            )  # fmt: skip
        if function.asynchronous is not None:
            self.scope.reasons.say(
                "TM201", self.file, self.candidate.loop, "the tower loop is asynchronous"
            )
        for node in walk(function.body, into_functions=False):
            if isinstance(node, cst.Yield):
                self.scope.reasons.say(
                    "TM201", self.file, self.candidate.loop, "the function is a generator"
                )

    def _needs_runs(self, after: Sequence[Item], loop: cst.For) -> None:
        names = {n for n, k in self.kinds.env.items() if k is Kind.SESSION}
        for item in after:
            found = assigned(item.node)
            if found and isinstance(found[1], cst.Call):
                if self.kinds.of(found[1]) is Kind.SESSION:
                    names.add(found[0][0])
        for item in after:
            for call in calls(item.node):
                func = call.func
                if isinstance(func, cst.Attribute) and func.attr.value == "run":
                    if code(func.value) in names:
                        return
        self.has_runs = False
        for node in walk(self.file.module):
            if isinstance(node, cst.Call):
                name = self.file.tf(node.func) or ""
                if name.endswith((".Supervisor", "MonitoredTrainingSession", ".Estimator")):
                    self.scope.reasons.say(
                        "TM212",
                        self.file,
                        loop,
                        f"the towers are run by `{name}`, not by a plain session",
                    )
                    return
        self.scope.reasons.say(
            "TM205", self.file, loop,
            "no `sess.run` stands in the scope that builds the towers: graph and session are apart",
        )  # fmt: skip

    def _listed(self, body: Body) -> None:
        """A list of placeholders becomes what one of them is: nothing else may be asked of it."""
        whole = self.candidate.function or self.file.module
        for name in sorted(self.kinds.listed):
            where = used_otherwise(whole, self.candidate.loop, body.index, name)
            if where is not None:
                self.scope.reasons.say(
                    "TM210", self.file, where,
                    f"`{name}`, a list of placeholders, is used for more than to give each tower its own and to feed them",
                )  # fmt: skip

    def _own_names(self, after: Sequence[Item], body: Body) -> None:
        """An evaluation must read nothing that goes with the tower loop."""
        gone = {*body.flags, *body.bound} | ({body.index} if body.index else set())
        for item in after:
            if item.kind is Kind.EVALUATION and item.reads & gone:
                self.scope.reasons.say(
                    "TM211", self.file, item.node,
                    f"an evaluation reads `{sorted(item.reads & gone)[0]}`, which the tower loop leaves behind",
                )  # fmt: skip

    def _update_ops(self) -> None:
        if self.kinds.no_updates:
            return
        scope = self.candidate.function or self.file.module
        for call in calls(scope):
            if self.file.tf(call.func) in ("tf.get_collection", "tf.get_collection_ref"):
                if (
                    collection_key(self.file, call) in UPDATES
                    and id(call) not in self.kinds.updates_taken
                ):
                    self.scope.reasons.say(
                        "TM207", self.file, call,
                        "batch-norm updates (UPDATE_OPS) of the towers are run by hand",
                    )  # fmt: skip

    def _program(self, a: Analysis) -> TowerProgram:
        file, body = self.file, a.body
        first, last = _body_ends(file, a.candidate.loop)
        loop = TowerLoop(
            statement=file.span(a.candidate.loop),
            body=Span(file.path, first.line, first.column, last.end_line, last.end_column),
            index=body.index,
            count=tower_count(self.tree, file, a.candidate.loop, a.candidate.function),
            device=body.device,
            name_scope=body.name_scope,
            sharing=tuple(dict.fromkeys(body.sharing)),
        )
        inputs = []
        for item in (each for each in body.inputs if each.names):
            places = tuple(file.span(n) for n, name in body.inline.items() if name in item.names)
            inputs.append(
                TowerInput(
                    item.names,
                    item.kind,
                    item.source,
                    file.span(item.statement) if item.statement is not None else None,
                    item.size,
                    places if item.statement is None else (),
                )  # fmt: skip
            )
        stages = []
        for part in a.stages:
            stages.append(
                Stage(
                    name=part.name,
                    loss=code(part.compute.loss),
                    optimizer=code(part.optimizer),
                    optimizer_class=self._optimizer_class(a, code(part.optimizer)),
                    var_list=None if part.compute.var_list is None else code(part.compute.var_list),
                    compute=file.span(part.compute.call.func),
                    average=file.span(part.average),
                    apply=file.span(part.apply.func),
                    averaging=part.how.reduce,
                    none_policy="zeros"
                    if part.how.none_policy == "filled"
                    else part.how.none_policy,
                    tower_loss=self._tower_loss(a, part),
                    whole_mean=part.mean is not None and part.mean.whole,
                )
            )
        extras: list[Extra] = []
        for after_item in a.after:
            found = assigned(after_item.node)
            if (
                after_item.kind is Kind.EXTRA
                and found is not None
                and isinstance(found[1], cst.Call)
            ):
                after = set(after_item.ordered_after)
                ordered = any(self.kinds.of_name(n) in OPS for n in after)
                extras.append(Extra("moving_average", file.span(found[1]), 0, ordered))
        if a.normalizes and self.kinds.updates_of_all:
            extras += [
                Extra("update_ops", file.span(call), 0)
                for call in calls(self.candidate.function or file.module)
                if id(call) in self.kinds.updates_of_all
            ]
        runs = tuple(
            RunSite(
                file.span(r.call), tuple(r.fetches),
                tuple((k, code(v)) for k, v in r.feeds.items()), tuple(r.trains),
            )
            for r in a.runs
        )  # fmt: skip
        names = {k: [n for n, kind in self.kinds.env.items() if kind is k] for k in Kind}
        return TowerProgram(
            path=file.path,
            function=a.candidate.qualified,
            line=file.line(a.candidate.loop),
            loop=loop,
            inputs=tuple(inputs),
            stages=tuple(stages),
            extras=tuple(extras),
            runs=runs,
            services=Services(
                tuple(names[Kind.SAVER]), tuple(names[Kind.WRITER]), tuple(names[Kind.COORDINATOR])
            ),
            tower_files=tuple(
                sorted({f.path for f, _ in a.tower_functions if f.path != file.path})
            ),
        )

    def _tower_loss(self, a: Analysis, part: StageParts) -> Span | None:
        """What each tower adds to the list whose mean is trained."""
        if part.mean is None:
            return None
        for call in calls(a.candidate.loop):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value == "append":
                if code(func.value) == part.mean.listed:
                    return self.file.span(call.args[0].value)
        return None

    def _optimizer_class(self, a: Analysis, name: str) -> str | None:
        for item in [*a.before, *a.body.hoisted, *a.after]:
            found = assigned(item.node)
            if found and found[0] == [name] and isinstance(found[1], cst.Call):
                return (self.file.tf(found[1].func) or code(found[1].func)).split(".")[-1]
        return None


def _appended(loop: cst.For) -> set[str]:
    """Names that the loop appends to."""
    found = set()
    for call in calls(loop):
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "append"
            and isinstance(call.func.value, cst.Name)
        ):
            found.add(call.func.value.value)
    return found


def _body_ends(file: SourceFile, loop: cst.For) -> tuple[Span, Span]:
    body = [s for s in loop.body.body if isinstance(s, cst.CSTNode)]
    return file.span(body[0]), file.span(body[-1])


def analyse(
    tree: Tree, traits: Traits, codes: Codes, candidate: Candidate
) -> tuple[Analysis | None, list[Finding]]:
    """The analysis of one tower loop, and everything that keeps it from loop style, most important first."""
    assembler = Assembler(tree, traits, codes, candidate)
    analysis: Analysis | None = None
    found = assembler.scope.reasons.findings
    try:
        analysis = assembler.analyse()
    except Refused as refusal:
        found.append(refusal.finding)
    except RecursionError:
        raise  # whoever asked looks for the file that nests too deeply
    except Exception as error:  # one program's fault is no other's
        found.append(note("TM290", candidate.file, candidate.loop, what_failed(error)))
    return analysis, by_importance(found, candidate.file.path)
