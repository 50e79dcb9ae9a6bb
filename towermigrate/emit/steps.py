"""The step functions: one for every distinct set of fetches and feeds of the program's `sess.run`s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.emit.behind import Behind
from towermigrate.emit.evaluations import Evaluation, Evaluations
from towermigrate.emit.expressions import in_step, replace
from towermigrate.emit.templates import (
    Templates,
    call_text,
    lead_of,
    spaced,
    strip_blank,
    with_comments_of,
    with_lead,
)
from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Analysis, Run, StageParts, backward_slice
from towermigrate.recognize.kinds import OPS, Kind
from towermigrate.recognize.refusal import Reasons, note, refuse
from towermigrate.recognize.scope import Item, comments
from towermigrate.recognize.settings import needing
from towermigrate.recognize.syntax import assigned, binds, code, elements, reads, walk
from towermigrate.recognize.tower import Compute, Input

_VARIABLES = {Kind.VARIABLE, Kind.LISTED}


@dataclass
class Names:
    """Names the rewrite brings in, chosen so that they collide with none of the author's."""

    strategy: str
    variables: str
    tower: str
    tower_input: str
    batches: str


@dataclass
class Step:
    """One step function: what it computes, in which order, and what it gives back.

    `moves` says that it makes the batch-norm updates; `behind` is what it makes of its towers' values when all have run.
    `under` are the settings that its runs stand under, where what they fetch was proved for these only; None is a run that
    was proved for all.
    """

    name: str
    picked: list[Item]
    wanted: list[str]
    fed: list[Input]
    trains: list[StageParts]
    fetches: list[str]
    moves: bool = False
    behind: Sequence[Item] = ()
    under: set[str | None] = field(default_factory=set)

    @property
    def made_behind(self) -> set[str]:
        return {name for item in self.behind for name in item.binds}


class StepBuilder:
    """Plans the steps of a program and writes them."""

    def __init__(
        self, analysis: Analysis, templates: Templates, names: Names, reasons: Reasons
    ) -> None:
        self.a = analysis
        self.reasons = reasons
        self.t = templates
        self.names = names
        self.steps: list[Step] = []
        self.evaluations = Evaluations(analysis, templates)
        self.behind = Behind(analysis)
        self.of_run: dict[int, Step | Evaluation] = {}
        self.commented: set[int] = set()
        self.findings: list[Finding] = []
        self._keys: dict[tuple[object, ...], Step] = {}
        self.taken: set[str] = set()

    # -- planning

    def plan(self, taken: set[str]) -> None:
        self.taken = taken
        for run in self.a.runs:
            with self.reasons.collected():
                self._plan_run(run)
        self.evaluations.name(taken)

    def _set_before(self, run: Run, items: Sequence[Item]) -> None:
        """A run must be fed the settings that it needs; without one the original fails."""
        needed = {*run.fetches, *(name for item in items for name in item.reads)}
        for name, names in needing([*self.a.settings], self.a.before).items():
            if needed & names and name not in run.feeds:
                self.reasons.say(
                    "TM209", self.a.file, run.call, f"`{name}` is needed here and is not fed"
                )

    def _plan_run(self, run: Run) -> None:
        a = self.a
        if (
            not run.feeds.keys() - a.settings.keys()
            and {a.kinds.of_name(f) for f in run.fetches} <= _VARIABLES
        ):
            self._set_before(run, [])
            # Variables alone are read where they are; no step, no draw of the inputs.
            return
        if run.evaluates:
            self.of_run[id(run)] = self.evaluations.plan(run)
            return
        fed_names = set(run.feeds)
        known = {i.source for i in a.body.inputs}
        for name in run.feeds:
            if name not in known and name not in a.settings:
                self.reasons.say(
                    "TM209",
                    a.file,
                    run.call,
                    f"`{name}` is fed, and the towers do not read it as an input",
                )
        fed = [i for i in a.body.inputs if i.source not in a.placeholders or i.source in fed_names]
        picked, behind = self._slice(run.fetches, fed)
        self._set_before(run, [*picked, *behind])
        fetches = [f for f in run.fetches if a.kinds.of_name(f) not in OPS]
        key = (
            tuple(id(i) for i in [*picked, *behind]), tuple(run.fetches), run.single, tuple(id(i) for i in fed)
        )  # fmt: skip
        step = self._keys.get(key)
        if step is None:
            wanted = self._wanted(picked, fetches, behind)
            trains = [s for s in a.stages if s.apply_item in picked]
            step = Step(
                self._name(run, trains), picked, wanted, fed, trains, list(run.fetches),
                self._moves(picked, run.fetches), behind,
            )  # fmt: skip
            self._keys[key] = step
            self.steps.append(step)
        step.under.add(run.under)
        self.of_run[id(run)] = step
        if run.table is not None and run.table.steps.setdefault(run.key, step.name) != step.name:
            self.reasons.say(
                "TM209", a.file, run.call,
                f"`{run.table.name}` is picked of by runs that fetch or feed different things",
            )  # fmt: skip

    def _moves(self, picked: list[Item], fetches: Sequence[str]) -> bool:
        """Whether what a run fetches waits for the batch-norm updates."""
        of_tower = {name for item in self.a.body.updates for name in item.binds}
        waited = {n for item in picked for n in item.ordered_after | item.reads} | set(fetches)
        return any(item.updates for item in picked) or bool(waited & of_tower)

    def _slice(self, fetches: Sequence[str], fed: Sequence[Input]) -> tuple[list[Item], list[Item]]:
        """Graph statements the fetches need: those after the loop with what they need of it; those behind all towers."""
        a = self.a
        picked = backward_slice(a.after, set(fetches))
        behind = self.behind.of(picked, fetches)
        picked = [item for item in picked if not any(item is each for each in behind)]
        for item, said in self.behind.problems(behind, picked, fed):
            self.reasons.say("TM203", a.file, item.node, said)
        needed = set(fetches) - {name for item in behind for name in item.binds}
        needed |= {self._of_tower(name) for name in self.behind.lists(behind)}
        for item in picked:
            needed |= self._reads(item)
        for item in picked:
            for compute in self._computes(item):
                needed |= set(reads(compute.loss))
                for own in compute.items:
                    needed |= own.reads
                if compute.appended is not None:
                    needed |= set(reads(compute.appended))
                if compute.var_list is not None:
                    needed |= set(reads(compute.var_list))
        lists = {n for n in needed if a.kinds.of_name(n) is Kind.TOWER_LIST}
        averaged_lists = {c.list_name for c in a.body.computes}
        averaged_lists |= self._whole_lists(fetches, picked)
        self._check_means(fetches, picked)
        for name in (set(a.body.lists) & needed) - averaged_lists | (lists - averaged_lists):
            self.reasons.say(
                "TM203", a.file, a.candidate.loop,
                f"`{name}`, a list over the towers, is used other than by averaging gradients",
            )  # fmt: skip
        for item in picked:
            for name in item.reads:
                if a.kinds.of_name(name) in (Kind.PLACEHOLDER, Kind.PIPELINE, Kind.SPLITS):
                    self.reasons.say(
                        "TM211",
                        a.file,
                        item.node,
                        f"the input `{name}` is read behind the towers",
                    )
        early = backward_slice(a.body.step_items, needed)
        picked = [item for item in picked if item.kind is not Kind.TOWER_LIST]
        return self._ordered(early + picked), behind

    def _whole_lists(self, fetches: Sequence[str], picked: list[Item]) -> set[str]:
        """The names of lists over the towers that are fetched as they are, and used for nothing else by a step."""
        a = self.a
        named = [item for item in picked if item.kind is Kind.TOWER_LIST]
        whole = {f for f in fetches if f in a.scope.lists}
        for name in sorted(whole):
            if any(self._of_tower(name) in item.binds for item in picked):
                self.reasons.say(
                    "TM203", a.file, a.candidate.loop,
                    f"`{self._of_tower(name)}`, which `{name}` lists of each tower, is bound anew behind the towers",
                )  # fmt: skip
        whole |= {n for item in named for n in item.reads | item.binds}
        return whole - {n for item in picked if item not in named for n in self._reads(item)}

    def _of_tower(self, name: str) -> str:
        """The value of one tower that a fetched list over the towers holds; any other name is its own."""
        listed = self.a.scope.lists.get(name)
        return name if listed is None else self.a.body.lists[listed]

    def _reads(self, item: Item) -> set[str]:
        """What a statement of a step reads; not the lists of which it makes a mean, nor means whose gradients it takes."""
        known = self.a.scope
        if item.kind is Kind.TOWER_MEAN:
            return {n for n in item.reads if self.a.kinds.of_name(n) is not Kind.TOWER_LIST}
        if any(s.mean is not None and s.average_item is item for s in self.a.stages):
            return set(item.reads) - set(known.lists) - set(known.means)
        return set(item.reads)

    def _check_means(self, fetches: Sequence[str], picked: list[Item]) -> None:
        """Means over the towers are fetched, or their gradients taken; a step uses them for nothing else."""
        a = self.a
        trained = [s.average_item for s in a.stages if s.mean is not None]
        losses = {code(s.compute.loss) for s in a.stages}
        for place, item in enumerate(picked):
            if item.kind is not Kind.TOWER_MEAN:
                continue
            behind = [other for other in picked[place + 1 :] if other.kind is not Kind.TOWER_MEAN]
            for name in item.binds:
                last = not any(name in other.binds for other in picked[place + 1 :])
                listed = a.scope.means.get(name)
                values = a.body.lists.get(listed) if listed is not None else None
                used = name in fetches and last and values not in losses
                used |= any(name in other.reads and other not in trained for other in behind)
                if used or any(values in other.binds for other in behind):
                    self.reasons.say(
                        "TM203", a.file, a.candidate.loop,
                        f"`{name}`, a mean over the towers, is more than the mean loss that a run fetches",
                    )  # fmt: skip

    def _computes(self, item: Item) -> list[Compute]:
        return [s.compute for s in self.a.stages if s.average_item is item]

    def _ordered(self, picked: list[Item]) -> list[Item]:
        """Moving averages without a fixed order go before the update (measured order of the original)."""
        updates = [i for i, item in enumerate(picked) if item.kind is Kind.APPLY]
        if not updates:
            return picked
        # The rate of this step, as the update has it; behind that the global step is the next one.
        behind = picked[updates[0] + 1 :]
        rated = [item for item in behind if self._reads_schedule(item)]
        for item in reversed(behind):
            if item not in rated and any(item.binds & other.reads for other in rated):
                rated.append(item)
        if any(item.kind is not Kind.TENSOR or self._after_update(item) for item in rated):
            self.reasons.say(
                "TM210", self.a.file, rated[0].node,
                "a schedule is read behind the update, in an order that a step does not keep",
            )  # fmt: skip
        moved = [item for item in behind if item in rated]
        rest = [item for item in behind if item not in rated]
        picked = [*picked[: updates[0]], *moved, picked[updates[0]], *rest]
        updates = [i for i, item in enumerate(picked) if item.kind is Kind.APPLY]
        early = [
            item for i, item in enumerate(picked)
            if item.kind is Kind.EXTRA and i > updates[0] and not self._after_update(item)
        ]  # fmt: skip
        for item in early:
            found = note(
                "TM302", self.a.file, item.node,
                "the moving average and the update had no fixed order; the average now comes first",
            )  # fmt: skip
            if found not in self.findings:
                self.findings.append(found)
        rest = [item for item in picked if item not in early]
        first = next(i for i, item in enumerate(rest) if item.kind is Kind.APPLY)
        return [*rest[:first], *early, *rest[first:]]

    def _reads_schedule(self, item: Item) -> bool:
        if item.kind is not Kind.TENSOR or self._after_update(item):
            return self._of_kind(item, Kind.SCHEDULE)
        return self._of_kind(item, Kind.SCHEDULE) or self._of_kind(item, Kind.VARIABLE)

    def _of_kind(self, item: Item, kind: Kind) -> bool:
        return any(self.a.kinds.of_name(n) is kind for n in item.reads)

    def _after_update(self, item: Item) -> bool:
        return any(self.a.kinds.of_name(n) in OPS for n in item.ordered_after)

    def _wanted(self, picked: list[Item], fetches: list[str], behind: Sequence[Item]) -> list[str]:
        """Values of the tower that a step reads, in the order the tower makes them."""
        a = self.a
        made = {name for item in behind for name in item.binds}
        fetches = [f for f in fetches if f not in made]
        means = [a.scope.means[f] for f in fetches if f in a.scope.means]
        used = (
            {a.body.lists[each] for each in means}
            | {self._value(f) for f in fetches}
            | {self._of_tower(f) for f in fetches}
            | set(fetches)
            | {self._of_tower(name) for name in self.behind.lists(behind)}
        )
        for item in picked:
            used |= item.reads
            for compute in self._computes(item):
                used |= set(reads(compute.loss))
        rebound: set[str] = set()
        for item in picked:
            rebound |= item.binds if item.kind is not Kind.TOWER_MEAN else set()
        order: list[str] = []
        for node in a.body.kept:
            for name in binds(node):
                if name not in order:
                    order.append(name)
        return [
            n for n in order
            if n in used and (n not in rebound or n in self._read_first(picked, n, fetches))
        ]  # fmt: skip

    def _read_first(self, picked: list[Item], name: str, fetches: list[str]) -> set[str]:
        """`{name}` if the step reads the tower's value of it before binding the name anew."""
        for item in picked:
            if item.kind is Kind.TOWER_MEAN:
                continue
            loss_reads: set[str] = set()
            for compute in self._computes(item):
                loss_reads |= set(reads(compute.loss))
            if name in loss_reads or name in item.reads and name not in item.binds:
                return {name}
            if name in item.binds:
                return {name} if name in item.reads and item.kind is not Kind.AVERAGED else set()
        return set()

    def _name(self, run: Run, trains: list[StageParts]) -> str:
        ops = [f for f in run.fetches if self.a.kinds.of_name(f) in OPS]
        source = ops if trains and ops else list(run.fetches)
        parts = [p.removesuffix("_op").removesuffix("_step").strip("_") for p in source]
        base = "_".join(dict.fromkeys(p for p in parts if p)) or "fetch"
        candidates = [base + "_step"]
        # An update that is named for what it does is a good name for its step.
        if trains and len(ops) == 1 and not ops[0].endswith("_op"):
            candidates.insert(0, ops[0])
        if trains and len(run.fetches) > len(ops):
            rest = [f.removesuffix("_op").strip("_") for f in run.fetches if f not in ops]
            candidates.append(base + "_with_" + "_and_".join(rest) + "_step")
        for candidate in [*candidates, *(f"{base}_step_{n}" for n in range(2, 99))]:
            if candidate not in self.taken:
                self.taken.add(candidate)
                return candidate
        raise AssertionError("no free name for a step")

    def returned(self) -> list[str]:
        """What the tower function returns: everything some step wants, in order."""
        order: list[str] = []
        for node in self.a.body.kept:
            for name in binds(node):
                if name not in order and any(name in s.wanted for s in self.steps):
                    order.append(name)
        return order

    # -- writing

    def write(self) -> list[cst.BaseStatement]:
        returned = self.returned()
        made: list[cst.BaseStatement] = []
        for step in self.steps:
            with self.reasons.collected():
                made.append(self._function(step, returned))
        return made

    def lead(self, item: Item) -> list[cst.EmptyLine]:
        """A statement's own comments, the first time it is written."""
        if id(item) in self.commented:
            return []
        self.commented.add(id(item))
        return [*comments(item.lead), *lead_of(item.node)]

    def _function(self, step: Step, returned: list[str]) -> cst.BaseStatement:
        tower = self.names.tower
        params = [n for i in step.fed for n in i.names]
        lead: list[cst.EmptyLine] = []
        for item in step.picked:
            if item.kind in (Kind.OP, Kind.TOWER_MEAN):
                lead.extend(strip_blank(self.lead(item)))
        values = [f for f in step.fetches if self.a.kinds.of_name(f) not in OPS]
        inner: list[cst.BaseStatement] = []
        whole = self._plain(step, values)
        given = self._given(step, values)
        if step.behind and not step.picked and len(step.fed) == len(self.a.body.inputs):
            whole = list(given) == returned
        if not whole:
            gives = list(given) if step.behind else [self._value(v) for v in values]
            inner = self._inner(step, returned, gives)
        args = "(" + ", ".join(params) + ("," if len(params) == 1 else "") + ")"
        called = tower if whole else self.inner
        run = f"{self.names.strategy}.run({called}, args={args})"
        outer: list[cst.BaseStatement] = []
        if inner:
            outer.append(self.t.block(f"def {self.inner}({', '.join(params)}):", inner))
        if step.behind:
            results = self._results_behind(step, values, run, given)
        else:
            results = self._results(step, values, run, whole, returned)
        if self.a.normalizes and not step.moves:
            # A run that does not wait for the updates of batch normalisation leaves its moving averages as they are.
            results = [self.t.block(f"with {self.names.variables}.looking():", results)]
        outer.extend(results)
        depth = 2 if self.a.candidate.function is None else 1
        return self.t.block(
            f"@{self.tf}.function(autograph=False)\ndef {step.name}({', '.join(params)}):",
            outer,
            spaced(lead, depth),
        )

    @property
    def tf(self) -> str:
        for name, origin in self.a.file.imports.items():
            if origin == "tensorflow":
                return name
        return "tf"

    def _plain(self, step: Step, values: list[str]) -> bool:
        """A step that only looks at values of the tower, with every input fed, runs the tower itself."""
        inside = [self._of_tower(value) for value in values]
        return (
            not step.picked
            and not step.behind
            and len(step.fed) == len(self.a.body.inputs)
            and len(set(inside)) == len(inside)
            and all(self.a.kinds.of_name(v) is Kind.TOWER for v in inside)
        )

    def _given(self, step: Step, values: list[str]) -> dict[str, str]:
        """What the replicas' function returns, and the name of each in the step; lists have their values' own names."""
        made = step.made_behind
        named = {self._value(v): self._bound(v) for v in values if v not in made}
        listed = [self._of_tower(name) for name in self.behind.lists(step.behind)]
        return {**named, **{value: value for value in listed}}

    def _results_behind(
        self, step: Step, values: list[str], run: str, given: dict[str, str]
    ) -> list[cst.BaseStatement]:
        """The lists over the towers, and the author's statements that read them."""
        lists = self.behind.lists(step.behind)
        inside = [given[self._of_tower(name)] for name in lists]
        told = {v: given[self._value(v)] for v in values if v not in step.made_behind}
        listed = ", ".join(lists)
        made: list[cst.BaseStatement] = []
        line = f"{listed} = tm.each_tower({run})"
        alike = inside == list(given.values()) and not told
        if alike and self.fit(line) == line:
            made.append(self.t.statement(line))
        else:
            made.append(self.t.statement(f"{', '.join(given.values())} = {run}"))
            several = f"({', '.join(inside)})" if len(inside) > 1 else inside[0]
            made.append(self.t.statement(f"{listed} = tm.each_tower({several})"))
        for part, whole_input in self.behind.inputs(step.behind, step.fed):
            made.append(self.t.statement(f"{whole_input} = tm.concat_towers({part})"))
        new = in_step(self.a, self.t, self.names.variables)
        direct: dict[str, str] = {}
        for item in step.behind:
            node = replace(item.node, new)
            assert isinstance(node, cst.BaseStatement)
            lead = self.lead(item)
            name, text = self._unnamed(step, item, node)
            if text and values.count(name) == 1 and not lead:
                direct[name] = text
            else:
                made.append(with_lead(node, lead))
        gives = [
            f"{self._picker(v)}({told[v]})" if v in told and v not in lists else direct.get(v, v)
            for v in values
        ]
        return [*made, self.t.statement(f"return {', '.join(gives)}")]

    def _unnamed(self, step: Step, item: Item, node: cst.BaseStatement) -> tuple[str, str]:
        """The name and the text of a value that the author gave no name of a variable, but that of an attribute."""
        found = assigned(node)
        if found is None or len(found[0]) != 1 or self.a.joined is None:
            return "", ""
        (name,) = found[0]
        plain = name in self.a.joined.own_names and not {"#", "\n"} & set(code(node).strip())
        read = any(name in each.reads for each in step.behind if each is not item)
        return (name, code(found[1])) if plain and not read else ("", "")

    def _results(
        self, step: Step, values: list[str], run: str, whole: bool, returned: list[str]
    ) -> list[cst.BaseStatement]:
        if not values:
            return [self.t.statement(run)]
        pick = {v: self._picker(v) for v in values}
        inside = [self._of_tower(v) for v in values]
        if whole and returned != inside:
            if len(returned) == 1:
                return [self.t.statement(f"return {pick[values[0]]}({run})")]
            targets = ", ".join(r if r in inside else "_" for r in returned)
            made = [self.t.statement(f"{targets} = {run}")]
            gives = ", ".join(f"{pick[v]}({of})" for v, of in zip(values, inside, strict=True))
            return [*made, self.t.statement(f"return {gives}")]
        if len(set(pick.values())) == 1:
            return [self.t.statement(f"return {pick[values[0]]}({run})")]
        bound = {v: self._bound(v) for v in values}
        made = [self.t.statement(f"{', '.join(bound.values())} = {run}")]
        gives = ", ".join(f"{pick[v]}({bound[v]})" for v in values)
        return [*made, self.t.statement(f"return {gives}")]

    def _bound(self, name: str) -> str:
        """The name of a value in a step function; not a variable's own, which the replicas' function reads."""
        if self.a.kinds.of_name(name) is not Kind.VARIABLE:
            return name
        names = [f"{name}_value", *(f"{name}_value_{k}" for k in range(2, 99))]
        return next(each for each in names if each not in self.taken)

    def _picker(self, name: str) -> str:
        """Which tower a fetched value is read from: the first where only the first one had it."""
        if name in self.a.scope.means:
            return "tm.mean_over_towers"
        if name in self.a.scope.lists:
            return "tm.each_tower"
        body = self.a.body
        used = {name} & body.bound
        for item in backward_slice(self.a.after, {name}):
            used |= item.reads & body.bound
        if used & body.firsts:
            if used - body.firsts:
                raise refuse(
                    "TM214",
                    self.a.file,
                    self.a.candidate.loop,
                    f"`{name}` mixes values of the first and of the last tower",
                )
            return "tm.first_tower"
        return "tm.last_tower"

    def _inner(self, step: Step, returned: list[str], given: list[str]) -> list[cst.BaseStatement]:
        body: list[cst.BaseStatement] = []
        if step.wanted or step.trains or not step.picked:
            args = ", ".join(
                name if item in step.fed else self._unfed(item)
                for item in self.a.body.inputs
                for name in item.names
            )
            call = f"{self.names.tower}({args})"
            if returned:
                targets = ", ".join(r if r in step.wanted else "_" for r in returned)
                call = f"{targets} = {call}"
            body.append(self.t.statement(call))
        for item in step.picked:
            made = self._item(step, item)
            if made and len(body) == 1:
                made[0] = with_lead(made[0], strip_blank(lead_of(made[0])))
            body.extend(made)
        if given:
            body.append(self.t.statement(f"return {', '.join(given)}"))
        return body

    def _unfed(self, item: Input) -> str:
        """What a tower gets where a run does not feed an input: its default, or what fails when it is used."""
        holder = self.a.placeholders.get(item.source)
        if holder is None or holder.default is None:
            return f"tm.unfed({self.part_of(item)})"
        return f"{self.tf}.constant({code(holder.default)})"

    def part_of(self, item: Input) -> str:
        """The spec of one tower's part of an input: not that of the whole, where that has so many rows."""
        shape = self.a.placeholders[item.source].shape
        sizes = elements(shape) if shape is not None else None
        if item.kind in ("same", "per_tower") or not sizes or code(sizes[0]) == "None":
            return item.source
        assert self.a.program is not None
        whole = (
            code(sizes[0])
            if isinstance(sizes[0], cst.Name | cst.Integer)
            else f"({code(sizes[0])})"
        )
        rows = item.size or f"{whole} // {self.a.program.loop.count.expression}"
        rest = ", ".join([rows, *(code(size) for size in sizes[1:])])
        dtype = code(self.a.placeholders[item.source].dtype)
        return f"{self.tf}.TensorSpec([{rest}], {dtype})"

    def _value(self, name: str) -> str:
        if name in self.a.scope.means:
            listed = self.a.scope.means[name]
            value = self.a.body.lists[listed]
            whole = name in self.a.scope.whole_means and not self._is_scalar(value)
            return f"{self.tf}.reduce_mean({value})" if whole else value
        if name in self.a.scope.lists:
            return self._of_tower(name)
        if self.a.kinds.of_name(name) is Kind.VARIABLE:
            return f"{self.tf}.identity({name})"
        return name

    def _is_scalar(self, name: str) -> bool:
        """Whether it shows in the tower that a value has no dimensions; a mean of such a value is itself."""
        made: cst.CSTNode | None = None
        for node in self.a.body.kept:
            for inner in walk(node):
                if isinstance(inner, cst.SimpleStatementLine) and name in binds(inner):
                    found = assigned(inner)
                    made = found[1] if found is not None and found[0] == [name] else None
        called = self.a.file.tf(made.func) if isinstance(made, cst.Call) else None
        plain = called in ("tf.reduce_mean", "tf.reduce_sum", "tf.nn.l2_loss")
        return plain and isinstance(made, cst.Call) and len(made.args) == 1

    def _item(self, step: Step, item: Item) -> list[cst.BaseStatement]:
        if item.kind in (Kind.OP, Kind.TOWER_MEAN):
            return []
        found = assigned(item.node)
        if found is not None and isinstance(found[1], cst.Name):
            if self.a.kinds.of_name(found[1].value) in OPS:
                return []
        new = in_step(self.a, self.t, self.names.variables)
        stages = [s for s in self.a.stages if item in (s.average_item, s.apply_item)]
        if not stages:
            if item.kind is Kind.EXTRA and found is not None:
                return [self._expression_of(item, replace(found[1], new))]
            node = replace(item.node, new)
            assert isinstance(node, cst.BaseStatement)
            return [with_lead(node, self.lead(item))]
        stage = stages[0]
        share = self._is_share(step, stage)
        made: list[cst.BaseStatement] = []
        if item is stage.average_item:
            name = self.gradients_name(stage)
            made.extend(self._own_gradients(stage))
            text = f"{name} = {self._gradients(stage, share)}"
            line = self.t.statement(self.fit(text), self._gradient_lead(stage, item))
            made.append(with_comments_of(item.node, line))
        if item is stage.apply_item and stage in step.trains:
            made.append(self._apply(stage, share, item))
        return made

    def gradients_name(self, stage: StageParts) -> str:
        """For gradients the author averaged inside the call that applies them."""
        return stage.averaged or stage.compute.target or "grads"

    @property
    def inner(self) -> str:
        """The name of the function that runs on every replica; nothing in it may mean another `step`."""
        used: set[str] = set()
        for step in self.steps:
            used |= set(step.wanted) | {n for i in step.fed for n in i.names}
            for item in step.picked:
                used |= item.reads | item.binds
        if self.a.joined is not None:  # under the names that they will have
            used = {self.a.joined.own_name(name) for name in used}
            used |= {*self.a.joined.own_names.values()}
        return "replica_step" if "step" in used else "step"

    def fit(self, text: str, depth: int = 2) -> str:
        """A new line, its call's arguments on a line of their own where it would be too long."""
        column = self.a.file.span(self.a.candidate.block[0]).column + depth * len(self.t.indent)
        function, _, rest = text.partition("(")
        return call_text(function, rest.removesuffix(")"), 100 - column)

    def _expression_of(self, item: Item, value: cst.CSTNode) -> cst.BaseStatement:
        """`op = call` as the bare call; what it gave was an operation, which has no use in a step."""
        assert isinstance(value, cst.BaseExpression)
        line = cst.SimpleStatementLine(body=[cst.Expr(value)])
        if isinstance(item.node, cst.SimpleStatementLine):
            line = line.with_changes(trailing_whitespace=item.node.trailing_whitespace)
        return with_comments_of(item.node, with_lead(line, self.lead(item)))

    def _gradient_lead(self, stage: StageParts, item: Item) -> list[cst.EmptyLine]:
        lead = self.lead(item)
        if id(stage.compute) not in self.commented:
            self.commented.add(id(stage.compute))
            own = list(stage.compute.lead)
            blanks = [line for line in lead if line.comment is None][:1]
            lead = [*blanks, *own, *strip_blank(lead)]
        return lead

    def _is_share(self, step: Step, stage: StageParts) -> bool:
        """Whether nothing in the step reads the averaged gradients but the update."""
        if not stage.compute.plain:
            return False
        if stage.averaged is None:
            return True
        seen = False
        for item in step.picked:
            if item is stage.average_item:
                seen = True
            elif seen and stage.averaged in item.reads and item is not stage.apply_item:
                return False
        return stage in step.trains

    def _loss_and_variables(self, stage: StageParts) -> tuple[str, str]:
        """What the gradients of a stage are of, as a step has it."""
        loss = code(stage.compute.loss)
        if stage.mean is not None and stage.mean.whole and not self._is_scalar(loss):
            loss = f"{self.tf}.reduce_mean({loss})"
        if stage.compute.var_list is None:
            return loss, f"{self.names.variables}.trainable()"
        new = in_step(self.a, self.t, self.names.variables)
        return loss, code(replace(stage.compute.var_list, new))

    def _in_own(self, stage: StageParts) -> Callable[[cst.CSTNode], cst.CSTNode | None]:
        """What changes in statements that make something of one tower's gradients."""
        new = in_step(self.a, self.t, self.names.variables)

        def changed(node: cst.CSTNode) -> cst.CSTNode | None:
            if node is stage.compute.call and stage.compute.optimizer is not None:
                loss, variables = self._loss_and_variables(stage)
                optimizer = code(stage.optimizer)
                return self.t.expression(f"{optimizer}.compute_gradients({loss}, {variables})")
            return new(node)

        return changed

    def _own_gradients(self, stage: StageParts) -> list[cst.BaseStatement]:
        """The tower's own statements that make something of its gradients before they are averaged."""
        made: list[cst.BaseStatement] = []
        compute = stage.compute
        parts = [*(item.node for item in compute.items), compute.appended or compute.loss]
        if not compute.plain and not any(n is compute.call for part in parts for n in walk(part)):
            loss, variables = self._loss_and_variables(stage)
            text = (
                f"{compute.target} = {code(stage.optimizer)}.compute_gradients({loss}, {variables})"
            )
            self.commented.add(id(compute))
            made.append(self.t.statement(self.fit(text), list(compute.lead)))
        for item in compute.items:
            node = replace(item.node, self._in_own(stage))
            assert isinstance(node, cst.BaseStatement)
            made.append(with_lead(node, self.lead(item)))
        return made

    def _gradients(self, stage: StageParts, share: bool) -> str:
        optimizer, (loss, variables) = code(stage.optimizer), self._loss_and_variables(stage)
        none = ', none="skip"' if stage.none_policy in ("skip", "pass") else ""
        # Stacking the towers' gradients made IndexedSlices dense, and optimizers treat the two differently.
        # The gradient of a mean leaves them sparse too, and so does helpers/tf1.py, the one averaging that gives zeros.
        dense = self.a.sparse and stage.none_policy != "zeros" and stage.mean is None
        none += ', sparse="dense"' if dense else ""
        # The helpers take a loss divided by a count of all towers' examples for a slip; TF1 averaged it like others.
        none += ", share=False" if self.a.scaled else ""
        if share:
            return f"tm.tower_gradients({optimizer}, {loss}, {variables}{none})"
        if stage.compute.appended is not None:
            own = code(replace(stage.compute.appended, self._in_own(stage)))
            return f"tm.average_gradients({own}{none})"
        return f"tm.average_gradients({optimizer}.compute_gradients({loss}, {variables}){none})"

    def _apply(self, stage: StageParts, share: bool, item: Item) -> cst.BaseStatement:
        new = in_step(self.a, self.t, self.names.variables)

        def gradients(node: cst.CSTNode) -> cst.CSTNode | None:
            return cst.Name(self.gradients_name(stage)) if node is stage.average else new(node)

        call = replace(stage.written or stage.apply, gradients)
        assert isinstance(call, cst.Call)
        if not share:
            optimizer = cst.Arg(
                stage.optimizer, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            )
            kept = [a for a in call.args if a.keyword is None or a.keyword.value != "name"]
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            call = call.with_changes(
                func=self.t.expression("tm.apply_averaged"), args=[optimizer, *kept]
            )
        return self._expression_of(item, call)
