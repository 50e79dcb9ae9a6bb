"""The step functions, written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from towermigrate.emit.expressions import in_step, replace
from towermigrate.emit.planning import Names, Step, StepPlanner
from towermigrate.emit.templates import (
    Templates,
    call_text,
    lead_of,
    spaced,
    strip_blank,
    with_comments_of,
    with_lead,
)
from towermigrate.recognize.analysis import Analysis, StageParts, backward_slice
from towermigrate.recognize.kinds import OPS, Kind
from towermigrate.recognize.refusal import Reasons, refuse
from towermigrate.recognize.scope import Item, comments
from towermigrate.recognize.slices import counted_rows
from towermigrate.recognize.syntax import assigned, binds, code, elements, reads, walk
from towermigrate.recognize.tower import Input


class StepWriter:
    """Writes the steps that were planned."""

    def __init__(
        self,
        analysis: Analysis,
        templates: Templates,
        names: Names,
        reasons: Reasons,
        planned: StepPlanner,
    ) -> None:
        self.a = analysis
        self.reasons = reasons
        self.t = templates
        self.names = names
        self.planned = planned
        self.commented: set[int] = set()

    def write(self) -> list[cst.BaseStatement]:
        returned = self.planned.returned()
        made: list[cst.BaseStatement] = []
        for step in self.planned.steps:
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
        taken = [self._untagged(name) for name in params]
        args = "(" + ", ".join(taken) + ("," if len(params) == 1 else "") + ")"
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
            f"@{self.tf}.function(autograph=False)\ndef {step.name}({', '.join(taken)}):",
            outer,
            spaced(lead, depth),
        )

    def _untagged(self, name: str) -> str:
        """A parameter of a step: its name is one of the step's graph, where a summary of that tag would get a number."""
        if name.lower() not in self.a.tags:
            return name
        words = set(re.findall(r"\w+", self.a.file.text))
        others = (f"{name}_{more}" for more in ("batch", "input", *range(2, 99)))
        return next(n for n in others if n not in words and n.lower() not in self.a.tags)

    @property
    def tf(self) -> str:
        for name, origin in self.a.file.imports.items():
            if origin == "tensorflow":
                return name
        return "tf"

    def _plain(self, step: Step, values: list[str]) -> bool:
        """A step that only looks at values of the tower, with every input fed, runs the tower itself."""
        inside = [self.planned.of_tower(value) for value in values]
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
        listed = [self.planned.of_tower(name) for name in self.planned.behind.lists(step.behind)]
        listed += self.planned.behind.handed(step.behind)
        return {**named, **{value: value for value in listed}}

    def _results_behind(
        self, step: Step, values: list[str], run: str, given: dict[str, str]
    ) -> list[cst.BaseStatement]:
        """The lists over the towers, and the author's statements that read them."""
        lists = self.planned.behind.lists(step.behind)
        inside = [given[self.planned.of_tower(name)] for name in lists]
        handed = self.planned.behind.handed(step.behind)
        apart = {*step.made_behind, *handed}
        told = {v: given[self._value(v)] for v in values if v not in apart}
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
        for name in handed:
            made.append(self.t.statement(f"{name} = {self._picker(name)}({name})"))
        for part, whole_input in self.planned.behind.inputs(step.behind, step.fed):
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
        inside = [self.planned.of_tower(v) for v in values]
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
        return next(each for each in names if each not in self.planned.taken)

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
        missing = [item for item in self.a.body.inputs if item not in step.fed]
        asked = {name for item in missing for name in item.names} & set(given)
        if asked:
            raise refuse(
                "TM209",
                self.a.file,
                self.a.candidate.loop,
                f"a run asks for `{min(asked)}` and does not feed it",
            )
        if step.wanted or step.trains or step.moves or not step.picked:
            args = ", ".join(
                name if item in step.fed else self._unfed(item)
                for item in self.a.body.inputs
                for name in item.names
            )
            call = f"{self.names.tower}({args})"
            if returned and (step.wanted or step.trains or not step.moves):
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
        if item.kind in ("same", "per_tower") or shape is None or code(shape) == "None":
            return item.source
        assert self.a.program is not None
        if self._has_any_rows(shape):
            return item.source
        if sizes is None:  # a shape that another expression gives
            known, dtype = f"{item.source}.shape", code(self.a.placeholders[item.source].dtype)
            count = self.a.program.loop.count.expression
            rows = self._counted(item, f"{known}[0]") or f"{known}[0] and {known}[0] // {count}"
            return f"{self.tf}.TensorSpec([{rows}, *{known}[1:]], {dtype})"
        if not sizes or code(sizes[0]) == "None":
            return item.source
        whole = (
            code(sizes[0])
            if isinstance(sizes[0], cst.Name | cst.Integer)
            else f"({code(sizes[0])})"
        )
        count = self.a.program.loop.count.expression
        rows = self._counted(item, whole) or f"{whole} // {count}"
        rest = ", ".join([rows, *(code(size) for size in sizes[1:])])
        if self._of_function(sizes[1:]):
            rest = f"{rows}, *{item.source}.shape[1:]"
        dtype = code(self.a.placeholders[item.source].dtype)
        return f"{self.tf}.TensorSpec([{rest}], {dtype})"

    def _counted(self, item: Input, whole: str) -> str | None:
        """The rows of a slice, of an input that has so many; None where its size is not said."""
        counted = counted_rows(item.size or "")
        if counted is None:
            return item.size
        source, parts = counted
        if source == item.source:
            return f"{whole} // {parts}"
        raise refuse(
            "TM208", self.a.file, self.a.candidate.loop,
            f"`{item.size}`, the rows of a tower, are those of another input than `{item.source}`, which has its own",
        )  # fmt: skip

    def _of_function(self, sizes: Sequence[cst.BaseExpression]) -> bool:
        """Whether sizes are written with what a function is given that is a function by itself in the author's text."""
        joined = self.a.joined
        parts = joined.parts if joined is not None else ()
        given = {name for part in parts for name, _ in (*part.given, *part.defaults)}
        given = {new for part in parts for new, own in part.renamed.items() if own in given} | given
        return bool(given & {name for size in sizes for name in reads(size)})

    def _has_any_rows(self, shape: cst.BaseExpression) -> bool:
        """Whether it shows that a shape begins with None: `[None] + shape`, or a name of that."""
        if isinstance(shape, cst.Name):
            binding = [item for item in self.a.before if shape.value in item.binds]
            found = assigned(binding[0].node) if len(binding) == 1 else None
            if found is None or found[0] != [shape.value]:
                return False
            shape = found[1]
        while isinstance(shape, cst.BinaryOperation):
            shape = shape.left
        rows = elements(shape)
        return bool(rows) and rows is not None and code(rows[0]) == "None"

    def _value(self, name: str) -> str:
        if name in self.a.scope.means:
            listed = self.a.scope.means[name]
            value = self.a.body.lists[listed]
            whole = name in self.a.scope.whole_means and not self._is_scalar(value)
            return f"{self.tf}.reduce_mean({value})" if whole else value
        if name in self.a.scope.lists:
            return self.planned.of_tower(name)
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
        for step in self.planned.steps:
            used |= set(step.wanted) | {n for i in step.fed for n in i.names}
            for item in step.picked:
                used |= item.reads | item.binds
        if self.a.joined is not None:  # under the names that they will have
            used |= {self.a.joined.own_name(name) for name in used}
            used |= {*self.a.joined.own_names, *self.a.joined.own_names.values()}
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
        how = stage.how
        none = ', none="skip"' if how.none_policy in ("skip", "pass") else ""
        # Stacking the towers' gradients made IndexedSlices dense, and optimizers treat the two differently.
        none += ', sparse="dense"' if self.a.sparse and not how.keeps else ""
        none += ', reduce="sum"' if how.reduce == "sum" else ""
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
