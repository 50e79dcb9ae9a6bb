"""Put one tower loop and everything that hangs on it together into a TowerProgram, or say why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

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
from towermigrate.recognize.body import Body, BodyReader, Compute, loop_index
from towermigrate.recognize.count import tower_count
from towermigrate.recognize.kinds import IN_GRAPH, OPS, Kind, Kinds, Traits, collection_key
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.refusal import Refused, refuse
from towermigrate.recognize.scope import (
    Item,
    bare_call,
    flatten,
    opened_sessions,
    run_calls,
)
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    calls,
    changes,
    code,
    elements,
    integer,
    reads,
    small,
    walk,
)


@dataclass
class Placeholder:
    """A `tf.placeholder` of the scope."""

    name: str
    item: Item
    dtype: cst.BaseExpression
    shape: cst.BaseExpression | None


@dataclass
class StageParts:
    """One stage: the tower's gradients, how they are averaged and where they are applied."""

    compute: Compute
    average: cst.Call
    average_item: Item
    averaged: str | None
    apply: cst.Call
    apply_item: Item
    name: str
    none_policy: str


@dataclass
class Run:
    """One `sess.run`: its fetched names (None for a fetch that is no plain name) and its feeds."""

    call: cst.Call
    item: Item
    fetches: list[str]
    single: bool
    feeds: dict[str, cst.BaseExpression]
    feed_name: str | None = None
    trains: list[int] = field(default_factory=list)


@dataclass
class Analysis:
    """A recognised program with its nodes: what the emitter works on."""

    tree: Tree
    candidate: Candidate
    kinds: Kinds
    before: list[Item]
    loop_item: Item
    after: list[Item]
    body: Body
    splits: dict[str, str]
    placeholders: dict[str, Placeholder]
    stages: list[StageParts]
    runs: list[Run]
    sparse: bool
    feed_dicts: dict[str, cst.Assign]
    tower_functions: list[tuple[SourceFile, cst.FunctionDef]]
    program: TowerProgram | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def file(self) -> SourceFile:
        return self.candidate.file


class Assembler:
    """Reads the scope around one tower loop; raises `Refused` at what it does not understand."""

    def __init__(self, tree: Tree, traits: Traits, candidate: Candidate) -> None:
        self.tree = tree
        self.candidate = candidate
        self.file = candidate.file
        self.kinds = Kinds(candidate.file, traits)
        self.placeholders: dict[str, Placeholder] = {}
        self.splits: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.feed_dicts: dict[str, cst.Assign] = {}

    def analyse(self) -> Analysis:
        file, loop = self.file, self.candidate.loop
        self._scope_is_function()
        loop_index(file, loop)
        if loop.orelse is not None:
            raise refuse("TM201", file, loop, "the tower loop has an `else:`")
        items = flatten(self.candidate.block, file)
        for name, kind in opened_sessions(self.candidate.block, file).items():
            self.kinds.env[name] = kind
        where = next((i for i, item in enumerate(items) if item.node is loop), None)
        if where is None:
            raise refuse(
                "TM201",
                file,
                loop,
                "the tower loop stands inside another block (if, for, try, with)",
            )
        before, loop_item, after = items[:where], items[where], items[where + 1 :]
        appended = _appended(loop)
        for item in before:
            self._before(item, appended)
        self._needs_runs(after, loop)
        reader = BodyReader(file, self.kinds, loop, before, self.splits)
        body = reader.read()
        for name in body.bound:
            self.kinds.env[name] = Kind.TOWER
        for name in body.lists:
            self.kinds.env[name] = Kind.TOWER_LIST
        functions = hazards.tower_functions(self.tree, file, body.kept)
        self._update_ops(loop)
        hazards.check(self.tree, self.kinds.traits, self.candidate, body, functions)
        for item in after:
            self._after(item)
        hazards.check_after(self.kinds.traits, file, after)
        stages = self._stages(after, body)
        runs = self._runs(after)
        self._trains(runs, after, stages)
        self._left_over(before, after, body)
        self._objects_once([*before, *body.hoisted, *after])
        self._used_elsewhere()
        analysis = Analysis(
            self.tree, self.candidate, self.kinds, before, loop_item, after, body, self.splits,
            self.placeholders, stages, runs, hazards.may_be_sparse(file, body, functions),
            self.feed_dicts,
            [(f.file, f.node) for f in functions],
            findings=self.findings,
        )  # fmt: skip
        analysis.program = self._program(analysis)
        return analysis

    # -- the scope

    def _scope_is_function(self) -> None:
        function = self.candidate.function
        if function is None:
            return
        if "." in (self.candidate.qualified or "") and "self" in reads(self.candidate.loop):
            raise refuse(
                "TM206", self.file, self.candidate.loop,
                "the tower loop stands in a method and uses `self`, where other methods may keep parts of the graph",
            )  # fmt: skip
        if function.asynchronous is not None:
            raise refuse("TM201", self.file, self.candidate.loop, "the tower loop is asynchronous")
        for node in walk(function.body):
            if isinstance(node, cst.Yield):
                raise refuse("TM201", self.file, self.candidate.loop, "the function is a generator")

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
        for node in walk(self.file.module):
            if isinstance(node, cst.Call):
                name = self.file.tf(node.func) or ""
                if name.endswith((".Supervisor", "MonitoredTrainingSession", ".Estimator")):
                    raise refuse(
                        "TM212",
                        self.file,
                        loop,
                        f"the towers are run by `{name}`, not by a plain session",
                    )
        raise refuse(
            "TM205", self.file, loop,
            "no `sess.run` stands in the scope that builds the towers: graph and session are apart",
        )  # fmt: skip

    def _before(self, item: Item, appended: set[str]) -> None:
        found = _assignments(item.node)
        if found is None:
            if self._statement_in_graph(item):
                item.kind = Kind.TENSOR
                for name in item.binds:
                    self.kinds.env[name] = Kind.TENSOR
            else:
                for name in item.binds:
                    self.kinds.env[name] = Kind.PYTHON
            return
        for names, value in found:
            if isinstance(value, cst.List) and not value.elements and set(names) & appended:
                kind = Kind.TOWER_LIST
            else:
                kind = self.kinds.of(value)
            item.kind = kind
            for name in names:
                self.kinds.env[name] = kind
            if kind is Kind.VARIABLE:
                self._own_variable(item, value)
            if kind is Kind.PLACEHOLDER:
                self._placeholder(item, names, value)
            elif kind is Kind.SPLITS:
                self._split(item, names, value)

    def _own_variable(self, item: Item, value: cst.BaseExpression) -> None:
        """A variable made outside the towers is no part of `variables.trainable()`."""
        if not isinstance(value, cst.Call) or "global_step" in code(value.func):
            return
        trainable = argument(value, None, "trainable")
        if trainable is None or code(trainable) != "False":
            raise refuse(
                "TM217",
                self.file,
                item.node,
                f"`{', '.join(item.binds)}` is a trainable variable made outside the towers",
            )

    def _statement_in_graph(self, item: Item) -> bool:
        node = item.node
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return False
        call = bare_call(node)
        if call is not None and self.file.tf(call.func) in (
            "tf.set_random_seed", "tf.random.set_random_seed", "tf.reset_default_graph",
            "tf.logging.set_verbosity",
        ):  # fmt: skip
            return False
        inner = small(node)
        if isinstance(inner, cst.Import | cst.ImportFrom | cst.Pass | cst.Global):
            return False
        return self.kinds.in_graph(node)

    def _placeholder(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        if len(names) != 1 or not isinstance(value, cst.Call):
            raise refuse(
                "TM208", self.file, item.node, "a placeholder is bound to one name at a time"
            )
        if self.file.tf(value.func) not in ("tf.placeholder",):
            raise refuse(
                "TM208", self.file, item.node, f"`{code(value.func)}` is not understood as an input"
            )
        dtype = argument(value, 0, "dtype")
        if dtype is None:
            raise refuse("TM208", self.file, item.node, "a placeholder without a dtype")
        self.placeholders[names[0]] = Placeholder(
            names[0], item, dtype, argument(value, 1, "shape")
        )

    def _split(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        assert isinstance(value, cst.Call)
        axis = argument(value, 2, "axis")
        source = argument(value, 0, "value")
        if source is not None and integer(source) == 0:
            source, axis = argument(value, 2, "value"), source
        if axis is not None and integer(axis) != 0:
            raise refuse(
                "TM208", self.file, item.node, "the inputs are split along an axis other than 0"
            )
        if len(names) != 1 or not isinstance(source, cst.Name):
            raise refuse("TM208", self.file, item.node, "what is split must be a plain name")
        count = argument(value, 1, "num_or_size_splits") or argument(value, None, "num_split")
        if argument(value, 0, "value") is not None and integer(argument(value, 0, "value")) == 0:
            count = argument(value, 1, "num_split")
        if count is None or code(count) != self._count():
            raise refuse(
                "TM208",
                self.file,
                item.node,
                f"the inputs are split into `{code(count) if count else '?'}` parts, the loop makes "
                f"`{self._count()}` towers",
            )
        self.splits[names[0]] = source.value

    def _count(self) -> str:
        """The text of the tower count: `n` of `range(n)`, `len(d)` of `enumerate(d)`."""
        iterated = self.candidate.loop.iter
        if not isinstance(iterated, cst.Call) or not iterated.args:
            return ""
        inside = code(iterated.args[0].value)
        return f"len({inside})" if code(iterated.func) == "enumerate" else inside

    def _update_ops(self, node: cst.CSTNode) -> None:
        scope = self.candidate.function or self.file.module
        for call in calls(scope):
            if self.file.tf(call.func) in ("tf.get_collection", "tf.get_collection_ref"):
                if collection_key(self.file, call) in ("UPDATE_OPS", "update_ops"):
                    raise refuse(
                        "TM207", self.file, call,
                        "batch-norm updates (UPDATE_OPS) of the towers are run by hand",
                    )  # fmt: skip

    def _after(self, item: Item) -> None:
        node = item.node
        if run_calls(node, self.kinds):
            item.kind = Kind.PYTHON
            for name in item.binds:
                self.kinds.env[name] = Kind.PYTHON
            return
        found = _assignments(node)
        if found is None:
            call = bare_call(node)
            if call is not None and self._service_call(item, call):
                return
            if self._statement_in_graph(item):
                item.kind = Kind.TENSOR
                for name in item.binds:
                    if self.kinds.of_name(name) not in IN_GRAPH:
                        self.kinds.env[name] = Kind.TENSOR
            return
        for names, value in found:
            kind = self.kinds.of(value)
            if kind is Kind.OP and isinstance(value, cst.Call):
                self._only_known_operations(value)
            item.kind = kind
            for name in names:
                self.kinds.env[name] = kind

    def _only_known_operations(self, call: cst.Call) -> None:
        """`tf.group(a, b)` goes, so nothing but updates bound to names may stand in it."""
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "name":
                continue
            inside = elements(arg.value)
            for node in inside if inside is not None else [arg.value]:
                if not isinstance(node, cst.Name) or self.kinds.of(node) not in OPS:
                    raise refuse(
                        "TM204",
                        self.file,
                        call,
                        f"`{code(node)}` in `{code(call.func)}` is no update that was bound to a name before",
                    )

    def _service_call(self, item: Item, call: cst.Call) -> bool:
        name = self.file.tf(call.func)
        if name is not None and name.endswith("start_queue_runners"):
            item.kind = Kind.THREADS
            return True
        if isinstance(call.func, cst.Attribute):
            receiver = self.kinds.of(call.func.value)
            if receiver in (Kind.SAVER, Kind.WRITER, Kind.COORDINATOR):
                item.kind = Kind.PYTHON
                return True
            if receiver is Kind.SESSION and call.func.attr.value == "close":
                item.kind = Kind.SESSION
                return True
            if receiver in (Kind.TOWER, Kind.TENSOR) and call.func.attr.value == "append":
                item.kind = Kind.TENSOR
                return True
        return False

    # -- stages

    def _stages(self, after: Sequence[Item], body: Body) -> list[StageParts]:
        by_list = {c.list_name: c for c in body.computes}
        averaged: list[tuple[Compute, cst.Call, Item, str]] = []
        rebound: set[str] = set()
        stages: list[StageParts] = []
        for item in after:
            for call in calls(item.node):
                found = self._average(call, by_list)
                if found is not None:
                    if found[0].list_name in rebound:
                        raise refuse(
                            "TM203",
                            self.file,
                            call,
                            f"`{found[0].list_name}` is changed before it is averaged",
                        )
                    averaged.append((found[0], call, item, found[1]))
            for call in calls(item.node):
                if (
                    isinstance(call.func, cst.Attribute)
                    and call.func.attr.value == "apply_gradients"
                ):
                    stages.append(self._stage(item, call, after, averaged))
            rebound |= item.binds | item.changes
        for position, stage in enumerate(stages):
            if any(stage.average is other.average for other in stages[:position]):
                raise refuse(
                    "TM204", self.file, stage.apply, "the same averaged gradients are applied twice"
                )
        used = {id(s.compute) for s in stages}
        for compute in body.computes:
            if id(compute) not in used:
                raise refuse(
                    "TM204", self.file, compute.call,
                    f"the gradients collected in `{compute.list_name}` are not averaged by one call and "
                    "applied by one `apply_gradients`",
                )  # fmt: skip
        return stages

    def _average(
        self, call: cst.Call, by_list: dict[str | None, Compute]
    ) -> tuple[Compute, str] | None:
        """The gradients that a call averages, and its None policy; None for any other call."""
        if self.file.tf(call.func) is not None:
            return None
        function = self.tree.resolve(self.file, call.func)
        lists = [code(a.value) for a in call.args if code(a.value) in by_list]
        if function is None or not lists:
            return None
        how = self.kinds.traits.averaging(function)
        if how is None:
            raise refuse(
                "TM203",
                self.file,
                call,
                f"`{code(call.func)}` is not understood as an average over the towers",
            )
        if len(call.args) != 1:
            raise refuse("TM203", self.file, call, "the averaging takes more than the list")
        return by_list[lists[0]], how.none_policy

    def _stage(
        self,
        item: Item,
        call: cst.Call,
        after: Sequence[Item],
        averaged: list[tuple[Compute, cst.Call, Item, str]],
    ) -> StageParts:
        found = assigned(item.node)
        if found is None or found[1] is not call or len(found[0]) != 1:
            raise refuse("TM204", self.file, call, "the update is not bound to a name of its own")
        grads = argument(call, 0, "grads_and_vars")
        sources = [a for a in averaged if a[2] is item]
        if not sources and grads is not None:
            earlier = after[: next(k for k, other in enumerate(after) if other is item)]
            reached = backward_slice(earlier, set(reads(grads)))
            sources = [a for a in averaged if a[2] in reached]
            for step in reached:
                self._not_random(step)
        if len(sources) == 1:
            self._same_loss(after, sources[0][0], sources[0][2])
        if len(sources) != 1:
            raise refuse(
                "TM204",
                self.file,
                call,
                f"`{code(grads) if grads else ''}` is applied, which does not come from one average over "
                "the towers",
            )
        compute, average, average_item, policy = sources[0]
        assert isinstance(call.func, cst.Attribute)
        if code(call.func.value) != code(compute.optimizer):
            raise refuse(
                "TM204",
                self.file,
                call,
                f"gradients of `{code(compute.optimizer)}` are applied by `{code(call.func.value)}`",
            )
        target = assigned(average_item.node)
        name = target[0][0] if target and target[1] is average else None
        return StageParts(compute, average, average_item, name, call, item, found[0][0], policy)

    def _same_loss(self, after: Sequence[Item], compute: Compute, average: Item) -> None:
        """The loss a step differentiates is the tower's own: nothing may bind its name anew before."""
        names = set(reads(compute.loss))
        for other in after:
            if other.binds & names and other.kind in IN_GRAPH:
                raise refuse(
                    "TM211",
                    self.file,
                    other.node,
                    f"`{', '.join(sorted(other.binds & names))}`, whose gradients are computed, is bound anew",
                )
            if other is average:
                return

    def _not_random(self, item: Item) -> None:
        """Noise on averaged gradients would be drawn anew, and differently, on every replica."""
        for call in calls(item.node):
            name = self.file.tf(call.func) or ""
            function = None if name else self.tree.resolve(self.file, call.func)
            names = self.kinds.traits.called(function) if function is not None else [name]
            if any(
                n.startswith(("tf.random", "tf.truncated_normal", "tf.nn.dropout")) for n in names
            ):
                raise refuse(
                    "TM204",
                    self.file,
                    call,
                    f"`{code(call.func)}` draws random numbers for the averaged gradients",
                )

    # -- runs

    def _runs(self, after: Sequence[Item]) -> list[Run]:
        runs: list[Run] = []
        self._one_session()
        for item in after:
            for call in run_calls(item.node, self.kinds):
                run = self._run(call, item)
                if run is not None:
                    runs.append(run)
                elif runs or self._restored(item, call) or _inside_loop(item.node, call):
                    raise refuse(
                        "TM209",
                        self.file,
                        call,
                        "the variables are initialised again; the rewritten program makes them once",
                    )
        if not runs:
            raise refuse(
                "TM205", self.file, self.candidate.loop, "no `sess.run` fetches the towers"
            )
        return runs

    def _restored(self, item: Item, initialise: cst.Call) -> bool:
        """Whether a checkpoint was restored before an initialiser runs, which undid it."""
        line = self.file.line(initialise)
        return any(
            isinstance(c.func, cst.Attribute)
            and c.func.attr.value == "restore"
            and self.kinds.of(c.func.value) is Kind.SAVER
            and self.file.line(c) < line
            and not isinstance(item.node, cst.If)
            for c in calls(self.candidate.function or self.file.module)
        )

    def _one_session(self) -> None:
        """A second session would start from the initial values again."""
        scope = self.candidate.function or self.file.module
        opened = [c for c in calls(scope) if self.kinds.of(c) is Kind.SESSION]
        if len(opened) > 1:
            raise refuse("TM205", self.file, opened[1], "the program opens more than one session")

    def _run(self, call: cst.Call, item: Item) -> Run | None:
        fetches = argument(call, 0, "fetches")
        feed = argument(call, 1, "feed_dict")
        if fetches is None or any(
            (a.keyword.value if a.keyword else None) not in (None, "fetches", "feed_dict")
            for a in call.args
        ):
            raise refuse(
                "TM209", self.file, call, "this sess.run has arguments that are not understood"
            )
        listed = elements(fetches)
        nodes = listed if listed is not None else [fetches]
        if all(self.kinds.of(n) is Kind.INIT for n in nodes):
            return None
        names: list[str] = []
        for node in nodes:
            if not isinstance(node, cst.Name):
                raise refuse(
                    "TM209", self.file, call, f"`{code(node)}` is fetched without a name of its own"
                )
            kind = self.kinds.of(node)
            if kind not in IN_GRAPH and kind is not Kind.VARIABLE:
                raise refuse(
                    "TM209",
                    self.file,
                    call,
                    f"`{node.value}` is fetched and not understood ({kind.value})",
                )
            if kind in (Kind.TOWER_LIST, Kind.GRADIENTS, Kind.AVERAGED, Kind.VARLIST):
                raise refuse("TM209", self.file, call, f"`{node.value}` ({kind.value}) is fetched")
            names.append(node.value)
        feed_name = feed.value if isinstance(feed, cst.Name) else None
        feeds = self._feeds(call, feed)
        return Run(call, item, names, listed is None, feeds, feed_name if feeds else None)

    def _named_feed(self, call: cst.Call, name: str) -> cst.BaseExpression:
        """The dict display bound to a name that a run feeds; it must be the name's only value."""
        scope = self.candidate.function or self.file.module
        bound = [
            node
            for node in walk(scope)
            if isinstance(node, cst.Assign)
            and any(isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets)
        ]
        altered = any(name in changes(statement) for statement in self.candidate.block)
        if len(bound) != 1 or altered or len(bound[0].targets) != 1:
            raise refuse(
                "TM209",
                self.file,
                call,
                f"`{name}` is fed, and it is not bound to one dict display only",
            )
        places = sum(isinstance(n, cst.Name) and n.value == name for n in walk(scope))
        fed = sum(
            isinstance(a.value, cst.Name) and a.value.value == name
            for c in calls(scope)
            if run_calls(c, self.kinds)[:1] == [c]
            for a in c.args
        )
        keywords = sum(
            a.keyword is not None and a.keyword.value == name for c in calls(scope) for a in c.args
        )
        if places - keywords != 1 + fed:
            raise refuse("TM209", self.file, call, f"`{name}` is used for more than feeding runs")
        inside = set(reads(bound[0].value))
        for statement in self.candidate.block:
            if inside & set(changes(statement)):
                raise refuse("TM209", self.file, call, f"what `{name}` feeds is changed in place")
        self.feed_dicts[name] = bound[0]
        return bound[0].value

    def _feeds(
        self, call: cst.Call, feed: cst.BaseExpression | None
    ) -> dict[str, cst.BaseExpression]:
        if feed is None or code(feed) == "None":
            return {}
        if isinstance(feed, cst.Name):
            feed = self._named_feed(call, feed.value)
        if not isinstance(feed, cst.Dict):
            raise refuse(
                "TM209",
                self.file,
                call,
                f"`{code(feed)}` is fed; only a dict display is understood",
            )
        feeds: dict[str, cst.BaseExpression] = {}
        for element in feed.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.Name):
                raise refuse(
                    "TM209", self.file, call, f"`{code(element)}` is fed and not understood"
                )
            if element.key.value not in self.placeholders:
                raise refuse(
                    "TM209",
                    self.file,
                    call,
                    f"`{element.key.value}` is fed and is no placeholder of this scope",
                )
            if element.key.value in feeds:
                raise refuse("TM209", self.file, call, f"`{element.key.value}` is fed twice")
            feeds[element.key.value] = element.value
        return feeds

    def _trains(self, runs: list[Run], after: Sequence[Item], stages: list[StageParts]) -> None:
        for run in runs:
            picked = backward_slice(after, set(run.fetches))
            run.trains = [i for i, s in enumerate(stages) if s.apply_item in picked]
        if not any(run.trains for run in runs):
            raise refuse("TM205", self.file, self.candidate.loop, "no `sess.run` fetches an update")

    def _objects_once(self, items: Sequence[Item]) -> None:
        """Optimizers, schedules and averages move into the scope: each name must mean one of them."""
        seen: dict[str, Item] = {}
        for item in items:
            if item.kind in (Kind.OPTIMIZER, Kind.SCHEDULE, Kind.EMA, Kind.VARIABLE):
                for name in item.binds:
                    if name in seen:
                        raise refuse(
                            "TM211", self.file, item.node, f"`{name}` is bound to two objects"
                        )
                    seen[name] = item
        for item in items:
            for name in item.binds & set(seen):
                if seen[name] is not item:
                    raise refuse("TM211", self.file, item.node, f"`{name}` is bound anew")

    def _left_over(self, before: Sequence[Item], after: Sequence[Item], body: Body) -> None:
        """Statements that stay must not read what only the tower loop bound."""
        gone = set(body.bound) | ({body.index} if body.index else set())
        bound: set[str] = set()
        for item in after:
            if item.kind is Kind.PYTHON:
                fetched = {n for c in run_calls(item.node, self.kinds) for n in reads(c)}
                for name in (item.reads & gone) - bound - item.binds:
                    if name not in fetched or self._reads_outside_runs(item, name):
                        raise refuse(
                            "TM210",
                            self.file,
                            item.node,
                            f"`{name}`, bound by the tower loop, is used outside `sess.run`",
                        )
                bound |= item.binds

    def _reads_outside_runs(self, item: Item, name: str) -> bool:
        inside = {
            id(n)
            for c in run_calls(item.node, self.kinds)
            for n in walk(c)
            if isinstance(n, cst.Name)
        }
        return any(
            isinstance(n, cst.Name) and n.value == name and id(n) not in inside
            for n in walk(item.node)
        )

    def _used_elsewhere(self) -> None:
        """Graph values at module level that functions of the module read cannot be taken away."""
        if self.candidate.function is not None:
            for node in walk(self.candidate.function.body):
                if isinstance(node, cst.Return) and node.value is not None:
                    if any(
                        self.kinds.of_name(n) in IN_GRAPH or self.kinds.of_name(n) is Kind.SESSION
                        for n in reads(node.value)
                    ) and not _inside_function(self.candidate.function, node):
                        raise refuse(
                            "TM205", self.file, node, "the function returns values of its graph"
                        )
            return
        for function in self.file.functions.values():
            for name in reads(function.node):
                if self.kinds.of_name(name) in IN_GRAPH or self.kinds.of_name(name) in (
                    Kind.PLACEHOLDER, Kind.SESSION,
                ):  # fmt: skip
                    raise refuse(
                        "TM210", self.file, function.node,
                        f"function `{function.qualified}` reads `{name}` of the module's graph",
                    )  # fmt: skip

    # -- the result

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
        for item in body.inputs:
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
                    optimizer=code(part.compute.optimizer),
                    optimizer_class=self._optimizer_class(a, code(part.compute.optimizer)),
                    var_list=None if part.compute.var_list is None else code(part.compute.var_list),
                    compute=file.span(part.compute.call.func),
                    average=file.span(part.average),
                    apply=file.span(part.apply.func),
                    none_policy=part.none_policy,  # type: ignore[arg-type]
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

    def _optimizer_class(self, a: Analysis, name: str) -> str | None:
        for item in [*a.before, *a.body.hoisted, *a.after]:
            found = assigned(item.node)
            if found and found[0] == [name] and isinstance(found[1], cst.Call):
                return (self.file.tf(found[1].func) or code(found[1].func)).split(".")[-1]
        return None


def backward_slice(items: Sequence[Item], wanted: set[str]) -> list[Item]:
    """The graph statements that the wanted names need, in source order."""
    needed = set(wanted)
    picked: list[Item] = []
    for item in reversed(items):
        if item.kind not in IN_GRAPH:
            continue
        if not (item.binds | item.changes) & needed:
            continue
        picked.append(item)
        if assigned(item.node) is not None and not item.changes:
            needed -= item.binds
        needed |= item.reads | item.ordered_after
    picked.reverse()
    return picked


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


def _assignments(
    node: cst.BaseStatement,
) -> list[tuple[list[str], cst.BaseExpression]] | None:
    """Every `(names, value)` of an assignment; `a, b = x, y` and `a = b = x` taken apart."""
    inner = small(node)
    if not isinstance(inner, cst.Assign):
        return None
    found: list[tuple[list[str], cst.BaseExpression]] = []
    for target in inner.targets:
        if isinstance(target.target, cst.Name):
            found.append(([target.target.value], inner.value))
            continue
        items = elements(target.target)
        if items is None or not all(isinstance(i, cst.Name) for i in items):
            return None
        names = [i.value for i in items if isinstance(i, cst.Name)]
        values = elements(inner.value)
        if values is not None and len(values) == len(names):
            found.extend(([n], v) for n, v in zip(names, values, strict=True))
        else:
            found.append((names, inner.value))
    return found


def _inside_loop(statement: cst.BaseStatement, call: cst.Call) -> bool:
    """Whether a call stands in a loop, a comprehension or a function below a statement."""
    for node in walk(statement):
        if isinstance(node, cst.For | cst.While | cst.BaseComp | cst.FunctionDef | cst.Lambda):
            if any(n is call for n in walk(node)):
                return True
    return False


def _inside_function(outer: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Whether a node belongs to a function nested in `outer`."""
    for inner in walk(outer.body):
        if isinstance(inner, cst.FunctionDef | cst.Lambda) and any(n is node for n in walk(inner)):
            return True
    return False


def _body_ends(file: SourceFile, loop: cst.For) -> tuple[Span, Span]:
    body = [s for s in loop.body.body if isinstance(s, cst.CSTNode)]
    return file.span(body[0]), file.span(body[-1])


def analyse(tree: Tree, traits: Traits, candidate: Candidate) -> Analysis | Finding:
    """The analysis of one tower loop, or the first finding that keeps it from being understood."""
    try:
        return Assembler(tree, traits, candidate).analyse()
    except Refused as refusal:
        return refusal.finding
