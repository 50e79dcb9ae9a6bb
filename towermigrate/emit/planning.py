"""What the steps are: one for every distinct set of fetches and feeds of the program's `sess.run`s, and what each computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from towermigrate.emit.behind import Behind
from towermigrate.emit.evaluations import Evaluation, Evaluations
from towermigrate.emit.expressions import is_plain
from towermigrate.emit.templates import (
    Templates,
)
from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Analysis, Run, StageParts, backward_slice
from towermigrate.recognize.kinds import OPS, READ, Kind
from towermigrate.recognize.refusal import Reasons, note
from towermigrate.recognize.scope import Item
from towermigrate.recognize.settings import needing
from towermigrate.recognize.syntax import binds, code, reads
from towermigrate.recognize.tower import Compute, Input


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


class StepPlanner:
    """Plans the steps of a program.

    `of_run` has what each run calls, by the run's `id`; `taken` are the names that the program has already.
    """

    def __init__(self, analysis: Analysis, templates: Templates, reasons: Reasons) -> None:
        self.a = analysis
        self.reasons = reasons
        self.steps: list[Step] = []
        self.evaluations = Evaluations(analysis, templates)
        self.behind = Behind(analysis)
        self.of_run: dict[int, Step | Evaluation] = {}
        self.findings: list[Finding] = []
        self._keys: dict[tuple[object, ...], Step] = {}
        self.taken: set[str] = set()

    def plan(self, taken: set[str]) -> None:
        self.taken = taken
        self._order_inputs()
        for run in self.a.runs:
            with self.reasons.collected():
                self._plan_run(run)
        self.evaluations.name(taken)

    def _order_inputs(self) -> None:
        """The towers take what is fed in the order of the first dict whose values are computed in it."""
        for run in self.a.runs:
            order = list(run.feeds)
            if sum(not is_plain(value) for value in run.feeds.values()) < 2:
                continue
            places = [k for k, i in enumerate(self.a.body.inputs) if i.source in order]
            fed = [self.a.body.inputs[k] for k in places]
            fed.sort(key=lambda each: order.index(each.source))
            for k, each in zip(places, fed, strict=True):
                self.a.body.inputs[k] = each
            return

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
            and {a.kinds.of_name(f) for f in run.fetches} <= READ
        ):
            self._set_before(run, [])
            # Variables and rates alone are read where they are; no step, no draw of the inputs.
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
        needed |= {self.of_tower(name) for name in self.behind.lists(behind)}
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
        for name in sorted(
            (set(a.body.lists) & needed) - averaged_lists | (lists - averaged_lists)
        ):
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
            if any(self.of_tower(name) in item.binds for item in picked):
                self.reasons.say(
                    "TM203", a.file, a.candidate.loop,
                    f"`{self.of_tower(name)}`, which `{name}` lists of each tower, is bound anew behind the towers",
                )  # fmt: skip
        whole |= {n for item in named for n in item.reads | item.binds}
        return whole - {n for item in picked if item not in named for n in self._reads(item)}

    def of_tower(self, name: str) -> str:
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
            | {self.of_tower(f) for f in fetches}
            | set(fetches)
            | {self.of_tower(name) for name in self.behind.lists(behind)}
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
        joined = self.a.joined
        own = {f: f if joined is None else joined.own_name(f) for f in run.fetches}
        ops = [own[f] for f in run.fetches if self.a.kinds.of_name(f) in OPS]
        source = ops if trains and ops else list(own.values())
        parts = [p.removesuffix("_op").removesuffix("_step").strip("_") for p in source]
        base = "_".join(dict.fromkeys(p for p in parts if p)) or "fetch"
        candidates = [base + "_step"]
        # An update that is named for what it does is a good name for its step.
        if trains and len(ops) == 1 and not ops[0].endswith("_op"):
            candidates.insert(0, ops[0])
        if trains and len(run.fetches) > len(ops):
            rest = [f.removesuffix("_op").strip("_") for f in own.values() if f not in ops]
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
