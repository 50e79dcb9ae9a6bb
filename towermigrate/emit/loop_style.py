"""Loop style: the tower loop becomes a tower function, its sessions a plain loop over step functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from towermigrate.emit.carrying import top_of_builder, top_of_method
from towermigrate.emit.count_changes import CountChanges
from towermigrate.emit.expressions import in_tower, replace
from towermigrate.emit.notes import notes
from towermigrate.emit.owned import Owned, in_scopes, is_marked, with_weights
from towermigrate.emit.planning import Names, StepPlanner
from towermigrate.emit.runs import RunRewriter, saver
from towermigrate.emit.settings import rate, variable
from towermigrate.emit.steps import StepWriter
from towermigrate.emit.templates import (
    Templates,
    lead_of,
    shift,
    spaced,
    strip_blank,
    with_comments_of,
    with_lead,
)
from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.carried import Carried
from towermigrate.recognize.host_effects import effects_of
from towermigrate.recognize.kinds import IN_GRAPH, OPS, Kind, builds_graph
from towermigrate.recognize.optimizers import made_by
from towermigrate.recognize.proof.library import MATH, NN, SUMMARIES
from towermigrate.recognize.refusal import STRUCTURE, Reasons, note, refuse
from towermigrate.recognize.scope import Item, bare_call, comments, run_calls
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    calls,
    code,
    dotted,
    reads,
    small,
    walk,
)

_OBJECTS = {Kind.VARIABLE, Kind.SCHEDULE, Kind.OPTIMIZER, Kind.EMA}
"""What is made once, in the strategy's scope."""

_OWNED = {**dict.fromkeys(_OBJECTS, Owned.OBJECT), Kind.WEIGHTS: Owned.WEIGHTS}

_GONE = {
    Kind.SESSION, Kind.CONFIG, Kind.INIT, Kind.THREADS, Kind.TOWER_LIST, Kind.SPLITS, Kind.GRAPH,
}  # fmt: skip
"""Machinery that has no counterpart."""

_LISTS = {
    "tf.trainable_variables", "tf.global_variables", "tf.all_variables", "tf.get_collection",
}  # fmt: skip
"""Variable lists, which `TowerVariables` gives outside of steps too."""

_MAKE_VARIABLES = {"apply_gradients", "apply", "minimize"}
_INPUTS = {Kind.PIPELINE, Kind.QUEUE}
_CALL_RATES = {
    f"{name}Optimizer"
    for name in ("Adadelta", "Adagrad", "Adam", "GradientDescent", "Momentum", "RMSProp")
}
"""Optimizers that call a schedule, which gives a function outside of graphs, in each step."""


class LoopStyle:
    """Writes one program in loop style. `statements()` gives the new statements of its scope."""

    def __init__(self, analysis: Analysis) -> None:
        self.a = analysis
        self.t = Templates(analysis.file.module)
        self.reasons = Reasons()
        self.names = self._choose_names()
        self.planned = StepPlanner(analysis, self.t, self.reasons)
        self.steps = StepWriter(analysis, self.t, self.names, self.reasons, self.planned)
        self.findings: list[Finding] = list(analysis.findings)
        self.depth = 2 if analysis.candidate.function is None else 1
        self.removed_items: list[Item] = []
        self._extra: list[cst.BaseStatement] = []

    def _choose_names(self) -> Names:
        taken = self._taken()
        if "tm" in taken:
            self.reasons.say(
                "TM211",
                self.a.file,
                self.a.candidate.loop,
                "the file uses the name `tm`, which rewritten programs give to the helpers",
            )

        def free(*names: str) -> str:
            chosen = next((n for n in names if n not in taken), names[-1] + "_")
            taken.add(chosen)
            return chosen

        return Names(
            strategy=free("strategy", "tower_strategy"),
            variables=free("variables", "tower_variables"),
            tower=free("tower", "tower_fn", "tower_forward"),
            tower_input=free("tower_input", "tower_input_fn"),
            batches=free("batches", "tower_batches"),
        )

    def _taken(self) -> set[str]:
        """Names the author uses where new ones will stand."""
        gone = self._names_of_updates()
        found = set(self.a.file.starred_words)
        for node in walk(self.a.file.module):
            if isinstance(node, cst.Name) and id(node) not in gone:
                found.add(node.value)
        if self.a.joined is not None:  # under the names that they will have
            found |= {self.a.joined.own_name(name) for name in found}
        if isinstance(self.a.joined, Carried):
            found |= self.a.joined.methods.keys()
        return found

    def _names_of_updates(self) -> set[int]:
        """Where updates called `train_step` are bound and fetched: their names go, and their steps have them."""
        found: set[int] = set()
        for run in self.a.runs if self.a.joined is None else ():
            ops = {name for name in run.fetches if self.a.kinds.of_name(name) in OPS}
            ops = {name for name in ops if name.endswith("_step")}
            bound = [item.node for item in self.a.after if item.binds <= ops]
            targets = [
                target.target
                for node in bound
                for each in walk(node)
                if isinstance(each, cst.Assign)
                for target in each.targets
            ]
            fetched = argument(run.call, 0, "fetches")
            for part in [*targets, *([] if fetched is None else [fetched])]:
                found |= {id(n) for n in walk(part) if isinstance(n, cst.Name) and n.value in ops}
        return found

    def _column(self, node: cst.CSTNode) -> int:
        return self.a.file.span(node).column

    @property
    def _base(self) -> int:
        """The column of the scope's own statements."""
        return self._column(self.a.candidate.block[0])

    # -- the parts

    def statements(self) -> list[cst.BaseStatement]:
        """The new statements of the program's scope; raises `Unwritten` with every reason against them."""
        made: list[cst.BaseStatement] = []
        with self.reasons.collected():
            made = self._statements()
        self.reasons.settle()
        return made

    def _statements(self) -> list[cst.BaseStatement]:
        taken = self._taken() | {self.names.tower, "step"}
        self.planned.plan(taken)
        before = self._before()
        tower = self._tower()
        steps = self.steps.write()
        self.findings.extend(self.planned.findings)
        after = self._after()
        self.findings.extend(notes(self.a))
        return [*before, tower, *steps, *after]

    def _pipeline_items(self) -> list[Item]:
        """Statements before the loop that build the input pipeline."""
        a = self.a
        needed = {
            i.source.split(".")[0]
            for i in a.body.inputs
            if i.source not in a.placeholders and i.kind != "own"
        }
        picked: list[Item] = []
        for item in reversed(a.before):
            if not item.binds & needed and not (item.changes & needed):
                continue
            if item.kind in _INPUTS or item.kind is Kind.TENSOR:
                for name in item.reads:
                    if name in a.scope.fed_inputs:
                        continue
                    if a.kinds.of_name(name) in (Kind.VARIABLE, Kind.SCHEDULE, Kind.PLACEHOLDER):
                        self.reasons.say(
                            "TM208",
                            a.file,
                            item.node,
                            f"the input pipeline reads `{name}` of the graph",
                        )
                picked.append(item)
                needed |= item.reads
        picked.reverse()
        return picked

    def _before(self) -> list[cst.BaseStatement]:
        """Everything before the tower: settings, the strategy with what it owns, the inputs."""
        a = self.a
        pipeline = self._pipeline_items()
        in_pipeline = {id(i) for i in pipeline}
        flags = set(a.body.flags)
        made: list[cst.BaseStatement] = []
        stay: list[tuple[Item, cst.BaseStatement]] = []
        carry: list[cst.EmptyLine] = []
        self.loop_lead: list[cst.EmptyLine] = []
        pipeline_lead: dict[int, list[cst.EmptyLine]] = {}
        for item in a.before:
            carry.extend(comments(item.lead))
            if id(item) in in_pipeline:
                pipeline_lead[id(item)] = [*carry, *strip_blank(lead_of(item.node))]
                carry = []
                continue
            node: cst.BaseStatement | None = None
            with self.reasons.collected():
                node = self._stays_before(item, flags)
            if node is None:
                if item.kind is Kind.TOWER_LIST:
                    self.loop_lead.extend(strip_blank(lead_of(item.node)))
                self.removed_items.append(item)
                continue
            if carry:
                node = with_lead(
                    node, [*lead_of(node)[:0], *spaced(carry), *strip_blank(lead_of(node))]
                )
                carry = []
            stay.append((item, shift(node, self._column(item.node) - self._base)))
        self._in_order(pipeline, [item for item, _ in stay])
        self.loop_lead = [*carry, *self.loop_lead]
        objects = [k for k, (item, _) in enumerate(stay) if item.kind in _OWNED]
        hoisted = self._hoisted()
        if objects:
            first, last = objects[0], objects[-1] + 1
        else:
            first = last = len(stay)
        head, count = self._strategy_index(stay, first)
        strategy = f"{self.names.strategy} = tm.tower_strategy({count})"
        made.extend(node for _, node in stay[:head])
        blank = spaced([]) if made and not _only_docstring(made) else []
        if a.candidate.function is None and head < first and blank:
            # Behind a function, as far from it as what stood there before.
            lines = lead_of(stay[head][1])
            apart = len(lines) - len(strip_blank(lines))
            if apart > 1:
                blank = spaced([], apart)
                stay[head] = (stay[head][0], with_lead(stay[head][1], spaced(lines)))
        if a.anew and self._makes_global_step():
            made.append(self.t.statement("tf.compat.v1.reset_default_graph()", blank))
            blank = []
        made.append(self.t.statement(strategy, blank))
        between = [node for _, node in stay[head:first]]
        made.extend(between)
        made.extend(self._owned(stay[first:last], hoisted, spaced([]) if between else []))
        following = [node for _, node in stay[last:]]
        if following:
            following[0] = with_lead(following[0], spaced(lead_of(following[0])))
        made.extend(following)
        made.extend(self._inputs(pipeline, pipeline_lead))
        return made

    def _owned(
        self,
        stay: Sequence[tuple[Item, cst.BaseStatement]],
        hoisted: Sequence[cst.BaseStatement],
        lead: Sequence[cst.EmptyLine],
    ) -> list[cst.BaseStatement]:
        """What the strategy owns, in its scope, and the weights that the towers share, in the order of the program."""
        a, names = self.a, self.names
        policy = ""
        if a.normalizes and (a.kinds.updates_of_all or a.body.first_updates):
            policy = f'batch_norm="{"all" if a.kinds.updates_of_all else "first"}"'
        variables = self.t.statement(f"{names.variables} = tm.TowerVariables({policy})")

        def scoped(body: Sequence[cst.BaseStatement]) -> cst.BaseStatement:
            return self.t.block(f"with {names.strategy}.scope():", body, [])

        def shared(body: Sequence[cst.BaseStatement]) -> cst.BaseStatement:
            apart = spaced([]) if lead_of(body[0]) else []
            return self.t.block(f"with {names.variables}.shared():", body, apart)

        if any(item.kind is Kind.WEIGHTS for item, _ in stay):
            if any(is_marked(node) for _, node in stay):
                self.reasons.say(
                    "TM217", a.file, a.candidate.loop,
                    "weights in front of the towers are made where several functions are read as one",
                )  # fmt: skip
            made = with_weights(
                [(node, _OWNED.get(item.kind)) for item, node in stay],
                variables,
                hoisted,
                scoped,
                shared,
            )
        else:
            made = in_scopes([*(node for _, node in stay), *hoisted, variables], scoped)
        made[0] = with_lead(made[0], [*lead])
        return made

    def _in_order(self, pipeline: list[Item], stay: list[Item]) -> None:
        """The pipeline is made behind all statements in front of the towers that stay: they must not notice."""
        a = self.a
        places = {id(item): place for place, item in enumerate(a.before)}
        effects = {id(item): effects_of(a.kinds, item.node) for item in pipeline}
        for later in stay:
            earlier = [item for item in pipeline if places[id(item)] < places[id(later)]]
            if not earlier:
                continue
            own = effects_of(a.kinds, later.node)
            for item in earlier:
                why = effects[id(item)].out_of_order(own)
                if why is not None:
                    self.reasons.say(
                        "TM208", a.file, later.node,
                        f"this and the input pipeline in front of it would change places: {why}",
                    )  # fmt: skip
                    break

    def _makes_global_step(self) -> bool:
        """Whether TensorFlow keeps a global step, which a graph of each run's own began anew."""
        steps = ("get_or_create_global_step", "create_global_step", "get_global_step")
        return any(
            (self.a.file.tf(call.func) or "").endswith(steps)
            for item in [*self.a.before, *self.a.after]
            for call in calls(item.node)
        )

    def _strategy_index(
        self, stay: list[tuple[Item, cst.BaseStatement]], first: int
    ) -> tuple[int, str]:
        """Where the strategy is made, and of how many towers: at the top of a function (devices are set up before any operation

        runs), behind what the tower count needs; at module level right before its scope.
        """
        assert self.a.program is not None
        counted = self.a.program.loop.count.expression
        needed = self._counted_by(stay, counted)
        if needed and needed[-1] >= first:
            said = self._count_is(stay, counted)
            early = self._counted_by(stay, said) if said is not None else needed
            if said is not None and (not early or early[-1] < first):
                counted, needed = said, early
        if needed and needed[-1] >= first:
            self.reasons.say(
                "TM211",
                self.a.file,
                stay[needed[-1]][0].node,
                "the tower count is set after the first variable or optimizer is made",
            )
        if self.a.candidate.function is None:
            specs = [k for k, (item, _) in enumerate(stay) if item.kind is Kind.PLACEHOLDER]
            return max(needed[-1] + 1 if needed else 0, min([first, *specs])), counted
        top = 1 if stay and _only_docstring([stay[0][1]]) else 0
        if isinstance(self.a.joined, Carried):  # at the top of the method that needs it
            specs = [k for k, (item, _) in enumerate(stay) if item.kind is Kind.PLACEHOLDER]
            top = max(top, top_of_method([code(node) for _, node in stay[: min([first, *specs])]]))
        elif self.a.joined is not None:
            top = top_of_builder([code(node) for _, node in stay[:first]], top)
        return max(top, needed[-1] + 1 if needed else 0), counted

    def _counted_by(self, stay: list[tuple[Item, cst.BaseStatement]], counted: str) -> list[int]:
        """The statements that a number of towers is made by, or may be changed by."""
        changes = CountChanges(self.a.tree, self.a.file.path, counted)
        names = set(reads(self.t.expression(counted))) | changes.asked
        return [
            k
            for k, (item, _) in enumerate(stay)
            if item.binds & names or changes.may_be_by(item.node)
        ]

    def _count_is(self, stay: list[tuple[Item, cst.BaseStatement]], counted: str) -> str | None:
        """`config.num_gpus` where the number is `n = config.num_gpus`."""
        found = [item for item in self.a.before if counted in item.binds]
        if len(found) != 1 or not any(item is found[0] for item, _ in stay):
            return None
        bound = assigned(found[0].node)
        if bound is None or bound[0] != [counted] or not isinstance(bound[1], cst.Attribute):
            return None
        return dotted(bound[1])

    def _stays_before(self, item: Item, flags: set[str]) -> cst.BaseStatement | None:
        a = self.a
        if item.kind is Kind.PLACEHOLDER:
            return self._spec(item)
        if item.kind in _GONE or item.binds & flags:
            return None
        if self._only_machinery(item):
            return None
        call = bare_call(item.node)
        if call is not None and a.file.tf(call.func) == "tf.reset_default_graph":
            return None
        if any(a.file.tf(c.func) == "tf.reset_default_graph" for c in calls(item.node)):
            raise refuse("TM211", a.file, item.node, "the graph is reset under a condition")
        if item.kind in _OBJECTS:
            setting = next((a.settings[name] for name in item.binds if name in a.settings), None)
            if setting is not None:
                return self._in_place(item, variable(a, setting, self.steps.tf))
            if item.binds & a.rates:
                return self._in_place(item, rate(a, item))
            self._settings_only(item)
            return item.node
        if item.kind is Kind.WEIGHTS:
            return item.node
        if item.kind in (Kind.SAVER, Kind.WRITER):
            raise refuse(
                "TM210", a.file, item.node, f"a {item.kind.value} is made before the towers are"
            )
        if (self._is_summary(item) or self._is_unread(item)) and self._dead(item):
            return None
        if item.kind in IN_GRAPH or item.kind in _INPUTS:
            raise refuse(
                "TM211", a.file, item.node,
                "this builds a part of the graph before the towers that neither they nor their inputs use",
            )  # fmt: skip
        return item.node

    def _settings_only(self, item: Item) -> None:
        """An optimizer or schedule must be made of settings: a tensor would be frozen at its first value."""
        found = assigned(item.node)
        for call in calls(item.node):
            made = (self.a.file.tf(call.func) or "").rpartition(".")[2]
            inline = found is not None and call is not found[1]
            if made in ("get_or_create_global_step", "create_global_step") and inline:
                self.reasons.say(
                    "TM211", self.a.file, call,
                    f"`{code(call)}` makes a variable in the call that makes `{', '.join(item.binds)}`; give it a name first",
                )  # fmt: skip
        for name in item.reads:
            kind = self.a.kinds.of_name(name)
            if kind in IN_GRAPH or kind in (Kind.PLACEHOLDER, Kind.PIPELINE):
                self.reasons.say(
                    "TM211", self.a.file, item.node,
                    f"`{name}` ({kind.value}) is used to make `{', '.join(item.binds)}`",
                )  # fmt: skip
        scheduled = {n for n in item.reads if self.a.kinds.of_name(n) is Kind.SCHEDULE}
        scheduled |= {
            code(c) for c in calls(item.node)
            if self.a.kinds.of(c) is Kind.SCHEDULE and (found is None or c is not found[1])
        }  # fmt: skip
        maker = found[1] if found is not None and isinstance(found[1], cst.Call) else None
        makers = made_by(item.node, self.a.file) if found is None else [maker] if maker else []
        names = [self.a.file.tf(one.func) or "" for one in makers] or [""]
        called = next((n for n in names if n.rpartition(".")[2] not in _CALL_RATES), None)
        if scheduled and called is not None:
            self.reasons.say(
                "TM211", self.a.file, item.node,
                f"`{sorted(scheduled)[0]}`, a schedule, is given to `{called or code(item.node)}`, which does not call it",
            )  # fmt: skip
        if item.kind in (Kind.OPTIMIZER, Kind.SCHEDULE):
            for one in makers:
                for arg in one.args:
                    if isinstance(arg.value, cst.Name | cst.Attribute):
                        continue
                    if self.a.kinds.of(arg.value) in (Kind.SCHEDULE, Kind.VARIABLE):
                        continue
                    if self.a.kinds.in_graph(arg.value):
                        self.reasons.say(
                            "TM211", self.a.file, item.node,
                            f"`{code(arg.value)}` is computed in the graph; only schedules of tf.train are "
                            "understood",
                        )  # fmt: skip

    def _spec(self, item: Item) -> cst.BaseStatement | None:
        """`X = tf.placeholder(dtype, shape)` -> `X = tf.TensorSpec(shape, dtype)`."""
        found = assigned(item.node)
        assert found is not None
        holder = self.a.placeholders[found[0][0]]
        shape = "None" if holder.shape is None else code(holder.shape)
        text = f"{holder.name} = {self.steps.tf}.TensorSpec({shape}, {code(holder.dtype)})"
        fed = holder.name in self.a.scope.fed_inputs
        used = fed or any(i.source == holder.name for i in self.a.body.inputs)
        if not used and not self.planned.evaluations.reads(holder.name):
            raise refuse(
                "TM209", self.a.file, item.node,
                f"the placeholder `{holder.name}` is used outside the towers (a fed learning rate?)",
            )  # fmt: skip
        return self._in_place(item, text)

    def _in_place(self, item: Item, text: str) -> cst.BaseStatement:
        """A statement for one of the author's, with the comments of that one."""
        node = self.t.statement(text, lead_of(item.node))
        return with_comments_of(item.node, node)

    def _hoisted(self) -> list[cst.BaseStatement]:
        """Objects made in the loop or after it that are made once in the scope."""
        a = self.a
        later: set[str] = set()
        made: list[cst.BaseStatement] = []
        for item in a.body.hoisted:
            self._settings_only(item)
            made.append(with_lead(item.node, [*comments(item.lead), *lead_of(item.node)]))
        for item in a.after:
            if item.kind not in _OBJECTS:
                if item.kind is Kind.PYTHON and not run_calls(item.node, a.kinds):
                    later |= item.binds
                continue
            if item.kind is Kind.VARIABLE:
                self.reasons.say("TM211", a.file, item.node, "a variable is made after the towers")
            if item.reads & later:
                self.reasons.say(
                    "TM211", a.file, item.node,
                    f"`{', '.join(sorted(item.reads & later))}` is set after the towers and needed before",
                )  # fmt: skip
            self._settings_only(item)
            made.append(with_lead(item.node, [*comments(item.lead), *lead_of(item.node)]))
        return made

    def _inputs(
        self, pipeline: list[Item], lead: dict[int, list[cst.EmptyLine]]
    ) -> list[cst.BaseStatement]:
        a = self.a
        sources = [i for i in a.body.inputs if i.source not in a.placeholders]
        if not sources:
            return []
        kinds = {i.kind for i in sources}
        inside: list[cst.BaseStatement] = []
        outer_lead: list[cst.EmptyLine] = []
        for position, item in enumerate(pipeline):
            lines = lead[id(item)]
            if position == 0:
                outer_lead = lines
                lines = []
            inside.append(with_lead(item.node, lines))
        seen: set[int] = set()
        for given in sources:
            if given.statement is not None and given.kind in ("queue", "iterator", "own"):
                if id(given.statement) not in seen:
                    seen.add(id(given.statement))
                    own = [*comments(given.lead), *strip_blank(lead_of(given.statement))]
                    inside.append(with_lead(given.statement, own))
        legacy, parameter = "tm.legacy_input", ""
        if kinds == {"own"}:
            gives = [n for i in sources for n in i.names]
            helper = "tm.per_tower_batches"
            legacy, parameter = "tm.legacy_inputs", a.body.index or "_"
        elif kinds <= {"queue", "iterator"}:
            gives = [n for i in sources for n in i.names]
            helper = "tm.per_tower_batches"
        elif kinds == {"same"}:
            gives = [i.source for i in sources]
            helper = "tm.same_batches"
            self.findings.append(
                note(
                    "TM306",
                    a.file,
                    a.candidate.loop,
                    f"every tower gets the same {' and '.join(gives)}; the rewrite keeps that",
                )  # fmt: skip
            )
        elif kinds == {"split"}:
            gives = [i.source for i in sources]
            helper = ""
        else:
            self.reasons.say(
                "TM208", a.file, a.candidate.loop, "the towers mix several kinds of input"
            )
            return []
        if a.with_inputs:  # the summaries' tags begin with their tower's
            scope = f"with {self.steps.tf}.name_scope({a.body.name_scope}):"
            inside = [self.t.block(scope, inside)]
        returned = ", ".join(gives) + ("," if len(gives) == 1 else "")
        inside.append(self.t.statement(f"return {returned}"))
        more = ", summaries=True" if a.with_inputs else ""
        if a.scope.restarts:
            more += ", prefetch=0"  # nothing is drawn that a step does not take
        if a.scope.fed_inputs and parameter:
            self.reasons.say(
                "TM208", a.file, a.candidate.loop,
                "each tower makes an input of its own, which is started with what it is fed",
            )  # fmt: skip
        elif a.scope.fed_inputs:
            parameter = ", ".join(a.scope.fed_inputs)
            more += f", fed=({parameter}{',' if len(a.scope.fed_inputs) == 1 else ''})"
        made = [
            self.t.block(
                f"def {self.names.tower_input}({parameter}):",
                inside,
                spaced(outer_lead, self.depth),
            )
        ]
        source = f"{legacy}({self.names.tower_input}{more})"
        wrapped = f"{helper}({source})" if helper else source
        made.append(self.t.statement(f"{self.names.batches} = {wrapped}", spaced([], self.depth)))
        return made

    def _tower(self) -> cst.BaseStatement:
        a = self.a
        new = in_tower(a, self.t)
        body: list[cst.BaseStatement] = []
        returned = self.planned.returned()
        for node in a.body.kept:
            if self._only_told_sharing(node, returned):
                continue
            changed = replace(node, new)
            assert isinstance(changed, cst.BaseStatement)
            body.append(changed)
        if returned:
            body.append(self.t.statement(f"return {', '.join(returned)}"))
        loop = a.loop_item
        lead = [*self.loop_lead, *comments(loop.lead), *strip_blank(lead_of(loop.node))]
        params = ", ".join(a.body.parameters)
        return self.t.block(
            f"@{self.names.variables}.tower\ndef {self.names.tower}({params}):",
            body,
            spaced(lead, self.depth),
        )

    def _only_told_sharing(self, node: cst.BaseStatement, returned: Sequence[str]) -> bool:
        """Whether a statement makes what said that variables are reused, by the tower's number, and nobody reads it now."""
        found = assigned(node)
        if self.a.candidate.function is None:
            return False  # a function may read it
        if found is None or len(found[0]) != 1 or "#" in code(node):
            return False
        (name,), value = found
        index = self.a.body.index
        if not isinstance(value, cst.IfExp | cst.Comparison) or name in returned:
            return False
        if list(calls(value)) or set(reads(value)) - {index, "True", "False", "None"}:
            return False
        return not any(name in reads(each) for each in self.a.body.kept) and not any(
            name in item.reads for item in self.a.after
        )

    def _after(self) -> list[cst.BaseStatement]:
        a = self.a
        rewriter = RunRewriter(a, self.t, self.names, self.planned)
        made: list[cst.BaseStatement] = []
        carry: list[cst.EmptyLine] = []
        early = a.scope.reads_mutable
        evaluations = self.planned.evaluations
        created = not early and not any(self._needs_variables(item) for item in a.after)
        created = created and not evaluations.planned
        # TF1 read Python's values where the graph was built: a step is traced where the last of it stood.
        graph = [*IN_GRAPH, Kind.EVALUATION]
        built = max((k for k, item in enumerate(a.after) if item.kind in graph), default=-1)
        traced = not early
        functions: set[int] = set()
        apart = False  # A blank line stood in front of a statement that is gone.
        for index, item in enumerate(a.after):
            if item.kind in (Kind.EVALUATION, Kind.PLACEHOLDER):
                written = self._looking(item)
                functions |= {id(node) for node in written if isinstance(node, cst.FunctionDef)}
                made.extend(written)
                continue
            apart = apart or _is_apart(item)
            if id(item) not in self.steps.commented and item.kind not in _OBJECTS:
                carry.extend(comments(item.lead))  # those of the others are written with them
            if item.kind in IN_GRAPH:
                # Where a run could not be planned, what it needs is not known.
                known = not any(one.rule in STRUCTURE for one in self.reasons.findings)
                if id(item) not in self.steps.commented and known and not self._dead(item):
                    self.reasons.say(
                        "TM211", a.file, item.node,
                        "this part of the graph is never fetched by a `sess.run`",
                    )  # fmt: skip
                continue
            if item.kind in _OBJECTS:
                continue
            machinery = False
            with self.reasons.collected():
                machinery = item.kind in _GONE or self._only_machinery(item)
            if machinery:
                self.removed_items.append(item)
                continue
            if item.kind is Kind.COORDINATOR and not rewriter.keep_coordinator:
                self.removed_items.append(item)
                continue
            runs = run_calls(item.node, a.kinds)
            early_listing = id(item.node) in a.scope.described and index < built
            if early_listing and not self._is_complete(index, built):
                self.reasons.say(
                    "TM230", a.file, item.node,
                    f"`{code(item.node).strip().splitlines()[0]}` lists variables before the last of the graph is built",
                )  # fmt: skip
            rewriter.position = index
            if not created and (early and index > built or self._needs_variables(item) or runs):
                created = apart = True
                made.extend(self._create())
            if not traced and index > built:
                traced = True
                for one in evaluations.planned:
                    made.append(self.t.statement(f"{one.name}.get_concrete_function()"))
            node: cst.BaseStatement | None = None
            with self.reasons.collected():
                node = self._after_node(index, item, rewriter)
            if node is None:
                self.removed_items.append(item)
                continue
            if carry:
                node = with_lead(node, [*spaced(carry), *strip_blank(lead_of(node))])
                carry = []
            elif apart and run_calls(item.node, a.kinds):
                node = with_lead(node, spaced(lead_of(node)))
            apart = False
            made.append(node)
            made.extend(self._extra)
            self._extra = []
        for k, before in enumerate(made[:-1]):
            if id(before) in functions:
                made[k + 1] = with_lead(made[k + 1], spaced(lead_of(made[k + 1]), self.depth))
        if made:
            # What follows the steps starts after a blank line.
            made[0] = with_lead(made[0], spaced(lead_of(made[0]), self.depth))
        return made

    def _looking(self, item: Item) -> list[cst.BaseStatement]:
        """What a statement of an evaluation, or a placeholder behind the towers, becomes."""
        evaluations = self.planned.evaluations
        if item.kind is Kind.PLACEHOLDER:
            if not any(evaluations.reads(name) for name in item.binds):
                self.removed_items.append(item)
                return []
            spec = self._spec(item)
            return [] if spec is None else [shift(spec, self._column(item.node) - self._base)]
        if not evaluations.needs(item):
            self._dead(item)
        return evaluations.behind(
            item, self.steps.tf, self.names.variables, self.steps.lead, self.depth
        )

    def _dead(self, item: Item) -> bool:
        """A graph statement that no run needs: it is proved to do nothing but make tensors, so it goes.

        One that makes variables, such as an update's slots, would be missed in checkpoints.
        """
        if item.kind is Kind.OP or item.kind is Kind.TOWER_LIST:
            return True
        if item.kind not in (Kind.TENSOR, Kind.VARLIST, Kind.TOWER_MEAN, Kind.EVALUATION) or any(
            isinstance(c.func, cst.Attribute) and c.func.attr.value in _MAKE_VARIABLES
            for c in calls(item.node)
        ):
            return False
        said = f"`{code(item.node).splitlines()[0]}` makes tensors that no run fetches"
        self.findings.append(note("TM313", self.a.file, item.node, said))
        self.removed_items.append(item)
        return True

    def _is_summary(self, item: Item) -> bool:
        """`tf.summary.scalar('rate', rate)`, bound to nothing: what merges all that were made is refused where it stands.

        Another that may have its tag would lose the number that TF1 gives it, so that there must be none.
        """
        call = bare_call(item.node)
        if call is None or self.a.file.tf(call.func) not in SUMMARIES or len(calls(item.node)) > 1:
            return False
        tag = call.args[0].value if call.args and call.args[0].keyword is None else None
        if not isinstance(tag, cst.SimpleString) or "/" in tag.value:
            return False
        own = re.sub(r"[^\w.]", "_", str(tag.evaluated_value)).lower()
        texts = "\n".join(self.a.tree.sources.values())
        said = [
            re.sub(r"[^\w./]", "_", each).lower()
            for each in re.findall(r"['\"]([^'\"\n]*)['\"]", texts)
        ]
        if sum(own in each.split("/") for each in said) != 1:
            return False
        made = r"summary\.(?:scalar|histogram|image|audio|text)|(?:scalar|histogram|image|audio)_summary"
        computed = re.findall(rf"(?:{made})\((?!\s*['\"])[^\n]*", texts)
        return all("/" in each for each in computed)

    def _is_unread(self, item: Item) -> bool:
        """Whether a statement only makes tensors, of TensorFlow's own functions, and nothing of the function reads them."""
        function, made = self.a.candidate.function, assigned(item.node)
        if function is None or made is None or len(made[0]) != 1 or item.kind is not Kind.TENSOR:
            return False
        if any(self.a.file.tf(each.func) not in MATH | NN for each in calls(item.node)):
            return False
        names = (node.value for node in walk(function) if isinstance(node, cst.Name))
        return bool(calls(item.node)) and sum(name == made[0][0] for name in names) == 1

    def _only_machinery(self, item: Item) -> bool:
        """A change of a session's configuration, a `sess.close()`, and nothing else."""
        touched = [
            n for n in item.changes if self.a.kinds.of_name(n) in (Kind.CONFIG, Kind.SESSION)
        ]
        if not touched or run_calls(item.node, self.a.kinds):
            return False
        if small(item.node) is None or set(item.changes) != set(touched):
            raise refuse(
                "TM211",
                self.a.file,
                item.node,
                f"`{touched[0]}` is changed in the middle of other statements",
            )
        return True

    def _needs_variables(self, item: Item) -> bool:
        if item.kind is Kind.SAVER:
            return True
        return any(self.a.file.tf(c.func) in _LISTS for c in calls(item.node))

    def _is_complete(self, index: int, built: int) -> bool:
        """Whether the steps can be traced in front of a statement, though parts of the graph stand behind it."""
        a = self.a
        between = a.after[index : built + 1]
        if any(item.kind is Kind.EVALUATION for item in between):
            return False
        stay = [item for item in between if item.kind not in IN_GRAPH | _OBJECTS]
        runs = [item for item in stay if item.kind not in (Kind.SAVER, Kind.WRITER, Kind.INIT)]
        if a.scope.reads_mutable and any(id(i.node) not in a.scope.described for i in runs):
            return False  # which may change what the steps read
        made = {name for item in stay for name in (*item.binds, *item.changes)}
        if a.candidate.function is None and made:
            return False  # functions may read them
        return not any(made & item.reads for item in between if item.kind in IN_GRAPH)

    def _create(self) -> list[cst.BaseStatement]:
        """`tm.create_variables(step, *specs)` for every step that trains, and for others that may read another value later."""
        made: list[cst.BaseStatement] = []
        for step in sorted(self.planned.steps, key=lambda step: not step.trains):
            makes = step.trains or any(item.kind is Kind.EXTRA for item in step.picked)
            if not makes and not self.a.scope.reads_mutable:
                continue
            specs: list[str] = []
            piped = False
            for item in step.fed:
                if item.source in self.a.placeholders:
                    specs.append(self.steps.part_of(item))
                elif not piped:
                    piped = True
                    specs.append(f"*{self.names.batches}.element_spec")
            inside = ", ".join([step.name, *specs])
            call = self.t.statement(self.steps.fit(f"tm.create_variables({inside})", 0))
            # What is made under a setting may not be complete without it.
            (setting,) = step.under if len(step.under) == 1 else (None,)
            made.append(call if setting is None else self.t.block(f"if {setting}:", [call]))
        return made

    def _after_node(
        self, index: int, item: Item, rewriter: RunRewriter
    ) -> cst.BaseStatement | None:
        a = self.a
        found = assigned(item.node)
        if item.kind is Kind.SAVER and found is not None:
            value = saver(a, self.names, index, self.t)
            if value is None:
                raise refuse(
                    "TM210", a.file, item.node, "which variables this saver holds is not understood"
                )
            sharded = (
                argument(found[1], None, "sharded") if isinstance(found[1], cst.Call) else None
            )
            if sharded is not None and code(sharded) != "False":
                whole = f"`{found[0][0]}` writes every variable once"
                self.findings.append(note("TM314", a.file, item.node, whole))
            text = self.steps.fit(f"{found[0][0]} = {value}", 0)
            return with_comments_of(item.node, self.t.statement(text, lead_of(item.node)))
        if item.kind is Kind.WRITER and found is not None and isinstance(found[1], cst.Call):
            folder = argument(found[1], 0, "logdir")
            if folder is None:
                raise refuse("TM210", a.file, item.node, "a summary writer without a folder")
            if len(found[1].args) > 1:
                self.findings.append(
                    note(
                        "TM304",
                        a.file,
                        item.node,
                        "the session's graph is not written to the event file",
                    )
                )
            made = self.t.statement(
                f"{found[0][0]} = tm.summary_writer({code(folder)})", lead_of(item.node)
            )
            return with_comments_of(item.node, made)
        if item.kind is Kind.TABLE:
            return self._table(item)
        self._no_graph(item)
        rewriter.moved = self._column(item.node) - self._base
        changed = item.node.visit(rewriter)
        if isinstance(changed, cst.FlattenSentinel) and id(item.node) in rewriter.set_before:
            first, *rest = [n for n in changed if isinstance(n, cst.BaseStatement)]
            self._extra = [shift(n, rewriter.moved) for n in rest]
            return shift(first, rewriter.moved)
        if isinstance(changed, cst.FlattenSentinel):
            # A dissolved `try`: its statements, in a row.
            nodes = [n for n in changed if isinstance(n, cst.BaseStatement)]
            self._extra = [shift(n, rewriter.moved + len(self.t.indent)) for n in nodes[1:]]
            return shift(nodes[0], rewriter.moved + len(self.t.indent))
        if not isinstance(changed, cst.BaseStatement):
            return None
        if isinstance(changed, cst.SimpleStatementLine) and not changed.body:
            return None
        return shift(changed, rewriter.moved)

    def _table(self, item: Item) -> cst.BaseStatement | None:
        """A table of updates holds the steps that make them; one of what else they give is not needed any more."""
        found = assigned(item.node)
        table = self.a.scope.tables[found[0][0]] if found is not None else None
        if table is None or not table.steps:
            return None
        elements = [
            element.with_changes(value=cst.Name(step))
            for element, step in zip(table.display.elements, table.steps.values(), strict=True)
        ]
        display = table.display.with_changes(elements=elements)
        made = replace(item.node, lambda node: display if node is table.display else None)
        assert isinstance(made, cst.BaseStatement)
        return shift(made, self._column(item.node) - self._base)

    def _no_graph(self, item: Item) -> None:
        """What stays must not add to a graph: savers, summaries and assignments made on the fly."""
        inside_runs = {id(c) for run in run_calls(item.node, self.a.kinds) for c in calls(run)}
        for call in calls(item.node):
            name = self.a.file.tf(call.func)
            if name is None or id(call) in inside_runs or not builds_graph(name):
                continue
            if name in _LISTS or self.a.kinds.of(call) is Kind.COORDINATOR:
                continue
            self.reasons.say(
                "TM210",
                self.a.file,
                call,
                f"`{code(call.func)}` stands among the statements of the session loop",
            )


def _is_apart(item: Item) -> bool:
    """Whether a blank line stands in front of a statement, or of the block around it that is gone."""
    return any(line.comment is None for line in [*item.lead[:1], *lead_of(item.node)[:1]])


def _only_docstring(made: Sequence[cst.BaseStatement]) -> bool:
    return len(made) == 1 and code(made[0]).startswith(('"', "'"))
