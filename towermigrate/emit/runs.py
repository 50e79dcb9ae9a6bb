"""The session loop: `sess.run` becomes a call of a step, savers and writers their eager forms."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from towermigrate.emit.evaluations import Evaluation
from towermigrate.emit.expressions import in_step, is_plain, replace, variable_lists
from towermigrate.emit.feeds import kept_until_runs
from towermigrate.emit.planning import Names, Step, StepPlanner
from towermigrate.emit.settings import set_before
from towermigrate.emit.templates import (
    Templates,
    call_text,
    lead_of,
    shift,
    strip_blank,
    with_comments_of,
    with_lead,
)
from towermigrate.recognize.analysis import Analysis, Run
from towermigrate.recognize.evaluation import makes_variables
from towermigrate.recognize.kinds import OPS, Kind
from towermigrate.recognize.listed import fed_of
from towermigrate.recognize.plain import NOTHING
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.saved_lists import trained_and_more
from towermigrate.recognize.scope import Item, bare_call, header_comment, is_run
from towermigrate.recognize.slices import counted_rows
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    calls,
    code,
    elements,
    reads,
    statements,
    walk,
)
from towermigrate.recognize.tables import lists_trained, set_by
from towermigrate.recognize.tower import Input


class RunRewriter(cst.CSTTransformer):
    """Rewrites the statements that stay: run sites, savers, writers, variable lists."""

    def __init__(
        self, analysis: Analysis, templates: Templates, names: Names, planned: StepPlanner
    ) -> None:
        self.a = analysis
        self.t = templates
        self.names = names
        self.planned = planned
        # A call that picks of tables is the run of any of their keys: only the names of the steps differ.
        self.runs = {id(r.call): r for r in analysis.runs}
        self.moved = 0
        self.position = 0  # of the statement being rewritten, among those behind the towers
        self.column = 10**6  # of the statement being rewritten; none yet
        self.taken_over: set[int] = set()
        self.set_before = set_before(analysis, planned.reasons)
        self.fed_by_name: dict[str, str] = {}
        self.kept = kept_until_runs(analysis)
        for run in analysis.runs:  # what the towers take in two ways is computed once
            step = planned.of_run.get(id(run))
            if isinstance(step, Step) and run.feed_name is not None and _given_twice(step, run):
                self.kept.add(run.feed_name)
        for run in analysis.runs:
            # Known before the walk: the dict stands in front of the runs that it is fed to.
            if id(run) in planned.of_run:
                with planned.reasons.collected():
                    self.step_call(run)
        self.keep_coordinator = coordinator_matters(analysis)
        self.dicts = {id(node): name for name, node in analysis.feed_dicts.items()}
        self._lists: Callable[[cst.CSTNode], cst.CSTNode | None] = variable_lists(
            analysis.file, templates, names.variables
        )

    # -- run sites

    def step_call(self, run: Run) -> str:
        """`train_step(*tm.shard_batch(x, y, specs=(X, Y)))` for one run site."""
        step = self.planned.of_run[id(run)]
        if isinstance(step, Evaluation):
            return self._evaluation(step, run)
        arguments = self._arguments(step, run)
        called = step.name if run.table is None else f"{run.table.name}[{run.picked}]"
        line = f"{called}({', '.join(arguments)})"
        where = self.a.file.span(run.call)
        # What stands before the call on its line once it has moved, and what closes it after.
        values = self._values(run)
        closing = "" if not values else ".numpy()" if len(values) == 1 else "tm.as_numpy()"
        room = 100 - where.column + self.moved - len(closing)
        pad = " " * (4 + max(0, self._indent(run) + self.moved - self.column))
        if len(line) <= room or len(arguments) != 1 or "(" not in arguments[0]:
            return call_text(called, ", ".join(arguments), room)
        function, _, inside = arguments[0].partition("(")
        if len(inside) > 94 - self._indent(run):
            # The values on one line, how they are dealt out on the next.
            fed, _, rest = inside.partition(", specs=")
            fed, size, rows = fed.partition(", batch_size=")
            inside = f"{fed},\n{pad}{size[2:]}{rows}{', ' if size else ''}specs={rest}"
        return f"{called}({function}(\n{pad}{inside})"

    def _evaluation(self, step: Evaluation, run: Run) -> str:
        """`evaluate(x, y)`."""
        self._in_order(run, step.fed)
        values = ", ".join(code(run.feeds[name]) for name in step.fed)
        if run.feed_name is not None:
            self._fed_by_name(run, f"({values},)" if len(step.fed) == 1 else f"({values})")
            values = f"*{run.feed_name}"
        given = self._values(run)
        closing = ".numpy()" if len(given) == 1 else "tm.as_numpy()"
        room = 100 - self.a.file.span(run.call).column + self.moved - len(closing)
        return call_text(step.name, values, room)

    def _fed_by_name(self, run: Run, fed: str, alone: bool = True) -> None:
        """Remember what a named feed_dict becomes, which must be one thing."""
        assert run.feed_name is not None
        if self.fed_by_name.setdefault(run.feed_name, fed) != fed or not alone:
            raise refuse(
                "TM209",
                self.a.file,
                run.call,
                f"`{run.feed_name}` is fed to runs that take different inputs",
            )

    def _arguments(self, step: Step, run: Run) -> list[str]:
        if run.feed_name in self.kept:
            fed = self._kept_order(step)
            values = ", ".join(self._held(step, run, name) for name in fed)
            self._fed_by_name(run, f"({values},)" if len(fed) == 1 else f"({values})")
        elif run.feed_name is not None:
            alone = all(i.source in self.a.placeholders for i in step.fed)
            self._fed_by_name(run, self._feed_value(step, run), alone)
            return [f"*{run.feed_name}"]
        return self._groups(step, run)

    def _held(self, step: Step, run: Run, name: str) -> str:
        """What a dict of feeds that is kept holds for an input: of a list, what is in it there."""
        value = run.feeds[name]
        listed = any(i.source == name and i.kind == "per_tower" for i in step.fed)
        return f"list({code(value)})" if listed and isinstance(value, cst.Name) else code(value)

    def _kept_order(self, step: Step) -> list[str]:
        """The order of the values in what a dict of feeds becomes that is kept until its runs."""
        return list(dict.fromkeys(i.source for i in step.fed if i.source in self.a.placeholders))

    def _given(self, step: Step, group: list[Input], run: Run) -> str:
        """What the inputs of a group are given: what is fed, or the parts of what is kept."""
        if run.feed_name is None or run.feed_name not in self.kept:
            return ", ".join(code(run.feeds[i.source]) for i in group)
        fed = self._kept_order(step)
        if fed == [i.source for i in group]:
            return f"*{run.feed_name}"
        return ", ".join(f"{run.feed_name}[{fed.index(i.source)}]" for i in group)

    def _feed_value(self, step: Step, run: Run) -> str:
        """What a named feed_dict becomes: the per-replica values in the order the steps take them."""
        groups = self._groups(step, run)
        if len(groups) == 1:
            return groups[0].removeprefix("*")
        return f"({', '.join(groups)})"

    def _in_lines(self, fed: str) -> str:
        """A value of a named feed_dict, on several lines where one would be too long."""
        function, _, inside = fed.partition("(")
        values, _, specs = inside.partition(", specs=")
        if not function or not specs or len(fed) + self.column - self.moved < 90:
            return fed
        pad = " " * 4
        values, size, rows = values.partition(", batch_size=")
        return (
            f"{function}(\n{pad}{values},\n{pad}{size[2:]}{rows}{', ' if size else ''}specs={specs}"
        )

    def _groups(self, step: Step, run: Run) -> list[str]:
        made: list[str] = []
        group: list[Input] = []

        def flush() -> None:
            if group:
                made.append(self._group(step, list(group), run))
                group.clear()

        twice = [] if run.feed_name in self.kept else _given_twice(step, run)
        if twice:
            raise refuse(
                "TM209", self.a.file, run.call,
                f"`{twice[0]}`, which the towers take in two ways, is fed what is computed there",
            )  # fmt: skip
        self._in_order(run, self._kept_order(step))
        for item in step.fed:
            if group and self._group_key(group[-1]) != self._group_key(item):
                flush()
            group.append(item)
        flush()
        if sum(1 for m in made if "next(" in m) > 1:
            raise refuse(
                "TM208", self.a.file, run.call, "inputs of the pipeline and fed inputs alternate"
            )
        return made

    def _in_order(self, run: Run, order: list[str]) -> None:
        """Refuse values that are evaluated in another order than the dict's where that may matter."""
        if order != [n for n in run.feeds if n in order]:
            acting = [n for n, v in run.feeds.items() if not is_plain(v)]
            if len(acting) > 1 or any(_has(v, cst.NamedExpr) for v in run.feeds.values()):
                raise refuse(
                    "TM209",
                    self.a.file,
                    run.call,
                    f"`{', '.join(acting)}` are fed what is computed there, in another order than the towers take it",
                )

    def _group_key(self, item: Input) -> tuple[str, str | None]:
        if item.source not in self.a.placeholders:
            return ("pipeline", None)
        return (item.kind, item.size)

    def _group(self, step: Step, group: list[Input], run: Run) -> str:
        first = group[0]
        if first.source not in self.a.placeholders:
            if all(i.kind == "split" for i in group):
                return f"*tm.shard_batch(*next({self.names.batches}))"
            return f"*next({self.names.batches})"
        values = self._given(step, group, run)
        specs = "(" + ", ".join(i.source for i in group) + ("," if len(group) == 1 else "") + ")"
        if first.kind == "same":
            return f"*tm.same_batch({values}, specs={specs})"
        if first.kind == "per_tower":
            return f"*tm.tower_values({values}, specs={specs})"
        size = f", batch_size={self._rows(first, run)}" if first.kind == "slice" else ""
        return f"*tm.shard_batch({values}{size}, specs={specs})"

    def _rows(self, item: Input, run: Run) -> str:
        """How many rows a tower has of a slice."""
        counted = counted_rows(item.size or "")
        if counted is None:
            return item.size or ""
        source, parts = counted
        fed = run.feeds.get(source)
        if not isinstance(fed, cst.Name) or run.feed_name in self.kept:
            raise refuse(
                "TM209", self.a.file, run.call,
                f"`{item.size}` counts the rows of `{source}`, which is not fed a value with a name here",
            )  # fmt: skip
        for name in re.findall(r"[A-Za-z_]\w*", parts):
            if self.a.kinds.of_name(name) is not Kind.PYTHON:
                raise refuse(
                    "TM209", self.a.file, run.call,
                    f"`{item.size}` takes the rows of `{source}` apart by `{name}`, which is the graph's",
                )  # fmt: skip
        return f"len({fed.value}) // {parts}"

    def _indent(self, run: Run) -> int:
        """The column at which the line of a run will start."""
        line = self.a.file.text.splitlines()[self.a.file.line(run.call) - 1]
        return max(0, len(line) - len(line.lstrip()) - self.moved)

    def _values(self, run: Run) -> list[str]:
        return [f for f in run.fetches if self.a.kinds.of_name(f) not in OPS]

    def _as_array(self, run: Run, call: str) -> str:
        """What a step gives of one value, as `sess.run` gave it: an array, a list of them for a list over towers."""
        (value,) = self._values(run)
        if value in self.a.with_inputs:
            return f"{self.names.batches}.with_summaries({call}.numpy())"
        return f"tm.as_numpy({call})" if value in self.a.scope.lists else f"{call}.numpy()"

    def _as_expression(self, run: Run) -> cst.BaseExpression:
        """A run whose result is used in place: the shape of what `sess.run` gave is kept."""
        values = self._values(run)
        if id(run) not in self.planned.of_run:
            rates = [self.a.kinds.of_name(name) is Kind.SCHEDULE for name in run.fetches]
            read = [
                f"tm.value({name}).numpy()" if is_rate else f"{name}.numpy()"
                for name, is_rate in zip(run.fetches, rates, strict=True)
            ]
            return self.t.expression(read[0] if run.single else f"[{', '.join(read)}]")
        call = self.step_call(run)
        if run.single:
            return self.t.expression(self._as_array(run, call) if values else call)
        if not values:
            return self.t.expression(f"[{call}{', None' * (len(run.fetches) - 1)}]")
        if len(values) == len(run.fetches) > 1:
            return self.t.expression(f"list(tm.as_numpy({call}))")
        if len(run.fetches) == 1:
            return self.t.expression(f"[{self._as_array(run, call)}]")
        raise refuse(
            "TM209", self.a.file, run.call,
            "the list that this sess.run gives holds updates and values and is not taken apart in place",
        )  # fmt: skip

    def visit_Subscript(self, node: cst.Subscript) -> None:
        if self._picked(node) is not None:
            self.taken_over.add(id(node.value))

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        picked = self._picked(original_node)
        if picked is None:
            return self._one_of_list(updated_node)
        run, name = picked
        values, call = self._values(run), self.step_call(run)
        if len(values) == 1:
            return self.t.expression(self._as_array(run, call))
        return self.t.expression(f"tm.as_numpy({call})[{values.index(name)}]")

    def _one_of_list(self, node: cst.Subscript) -> cst.BaseExpression:
        """`[v.numpy() for v in variables.trainable()][0]` as `variables.trainable()[0].numpy()`."""
        made = node.value
        if not isinstance(made, cst.ListComp) or not isinstance(made.for_in.target, cst.Name):
            return node
        name, over = made.for_in.target.value, made.for_in
        if over.ifs or over.inner_for_in or code(made.elt) != f"{name}.numpy()":
            return node
        (element, *more) = node.slice
        if more or not isinstance(over.iter, cst.Call):
            return node
        part = cst.Subscript(over.iter, node.slice)
        if isinstance(element.slice, cst.Index):
            return cst.Call(cst.Attribute(part, cst.Name("numpy")))
        return made.with_changes(for_in=over.with_changes(iter=part))

    def _picked(self, node: cst.Subscript) -> tuple[Run, str] | None:
        """The run, and the value of it, of `sess.run([train_op, loss])[1]`; the updates of the list are none."""
        run = self.runs.get(id(node.value))
        if run is None or run.single or id(run) not in self.planned.of_run or len(node.slice) != 1:
            return None
        index = node.slice[0].slice
        if not isinstance(index, cst.Index) or not isinstance(index.value, cst.Integer):
            return None
        place = int(index.value.value)
        if place >= len(run.fetches) or run.fetches[place] not in self._values(run):
            return None
        return run, run.fetches[place]

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if id(original_node) in self.taken_over:
            return updated_node
        run = self.runs.get(id(original_node))
        if run is not None:
            return self._as_expression(run)
        made = self._service(original_node, updated_node)
        if made is not None:
            return made
        if id(original_node) in self.a.scope.shown:
            return self.t.expression(self._shown(original_node))
        changed = self._lists(original_node)
        if isinstance(changed, cst.BaseExpression):
            return changed
        return updated_node

    def _shown(self, call: cst.Call) -> str:
        """What the helpers show in place of the variables that a call lists: those that TF1 had made by then, in its order."""
        a = self.a
        if lists_trained(call, a.file):
            return f"tm.shown_variables({self.names.variables}.trainable())"
        earlier = a.after[: self.position]
        unnamed = [
            item
            for item in [*a.before, *earlier]
            if not _variables_of(item)
            and any(
                makes_variables(a.kinds, a.file, each)
                or (a.file.tf(each.func) or "").endswith("create_global_step")
                for each in calls(item.node)
            )
        ]
        if unnamed or any(
            len(step.under) == 1 and None not in step.under for step in self.planned.steps
        ):
            raise refuse(
                "TM223", a.file, call,
                f"`{code(call)}` lists variables, and it is not known of all of them when they are made",
            )  # fmt: skip
        parts = [name for item in a.before for name in _variables_of(item)]
        parts.append(self.names.variables)
        for item in earlier:
            parts += _variables_of(item)
            applied = [stage for stage in a.stages if stage.apply_item is item]
            applied.sort(key=lambda stage: _place(a, stage.apply))
            parts += [code(stage.optimizer) for stage in applied]
            average = _average_of(item)
            parts += [] if average is None else [average]
        return f"tm.shown_variables({', '.join(dict.fromkeys(parts))})"

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        name, _, asked = code(original_node).partition(".")
        listed = self.a.kinds.of_name(name) is Kind.LISTED
        if asked == "op.name" and (listed or id(original_node) in self.a.scope.described):
            return self.t.expression(f"tm.op_name({name})")
        return updated_node

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        changed = self._lists(original_node)
        return changed if isinstance(changed, cst.BaseExpression) else updated_node

    def visit_Expr(self, node: cst.Expr) -> None:
        self.taken_over.add(id(node.value))

    def visit_Assign(self, node: cst.Assign) -> None:
        run = self.runs.get(id(node.value))
        if run is None or len(node.targets) != 1 or id(run) not in self.planned.of_run:
            return
        items = elements(node.targets[0].target)
        if items is not None and not run.single and len(items) == len(run.fetches):
            self.taken_over.add(id(node.value))

    def _restart(self, call: cst.Call, new: cst.BaseExpression) -> cst.BaseExpression:
        """What starts the input anew: with what its placeholders are fed, in their order."""
        started = self.t.expression(f"{self.names.batches}.restart()")
        if not self.a.scope.fed_inputs:
            return started
        assert isinstance(new, cst.Call) and isinstance(started, cst.Call)
        pairs = fed_of(argument(new, 1, "feed_dict") or new)
        assert pairs is not None, code(call)
        return started.with_changes(args=[cst.Arg(value) for _, value, _ in pairs])

    def leave_Expr(
        self, original_node: cst.Expr, updated_node: cst.Expr
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        value = original_node.value
        if isinstance(value, cst.Call):
            run = self.runs.get(id(value))
            if run is not None and id(run) in self.planned.of_run:
                return cst.Expr(self.t.expression(self.step_call(run)))
            if value in self.a.scope.restarts:
                return cst.Expr(self._restart(value, updated_node.value))
            update = set_by(value, self.a.kinds)
            if update is not None and isinstance(updated_node.value, cst.Call):
                return updated_node.with_changes(value=updated_node.value.args[0].value)
            if is_run(value, self.a.kinds):
                # What is left of runs here are initialisers; variables exist already.
                return cst.RemoveFromParent()
            made = self._service(value, updated_node.value)
            if made is not None:
                return updated_node.with_changes(value=made)
            func, given = value.func, updated_node.value
            if isinstance(func, cst.Attribute) and func.attr.value == "load":
                if self.a.kinds.of(func.value) is Kind.VARIABLE and isinstance(given, cst.Call):
                    loaded = f"{code(func.value)}.assign({code(given.args[0].value)})"
                    return updated_node.with_changes(value=self.t.expression(loaded))
        return updated_node

    def leave_Assign(
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        value = original_node.value
        fed = self.fed_by_name.get(self.dicts.get(id(original_node), ""))
        if fed is not None:
            return updated_node.with_changes(value=self.t.expression(self._in_lines(fed)))
        run = self.runs.get(id(value)) if isinstance(value, cst.Call) else None
        if run is None or id(run) not in self.planned.of_run:
            return updated_node
        call = self.step_call(run)
        values = self._values(run)
        if len(original_node.targets) == 1:
            target = original_node.targets[0].target
            items = elements(target)
            if items is not None and not run.single and len(items) == len(run.fetches):
                return self._taken_apart(run, items, call, updated_node)
            if run.single and not values and isinstance(target, cst.Name):
                if self._ignored(target):
                    return cst.Expr(self.t.expression(call))
        return updated_node

    def _ignored(self, node: cst.CSTNode) -> bool:
        """A target that nobody reads: `_`, `__`, and what an operation gives in a program read in plain spellings."""
        return isinstance(node, cst.Name) and (set(node.value) == {"_"} or node.value == NOTHING)

    def _taken_apart(
        self, run: Run, items: list[cst.BaseExpression], call: str, updated: cst.Assign
    ) -> cst.BaseSmallStatement:
        pairs = list(zip(items, run.fetches, strict=True))
        kept: list[cst.BaseExpression] = []
        for target, fetch in pairs:
            if self.a.kinds.of_name(fetch) not in OPS:
                kept.append(target)
            elif self._read(target):
                raise refuse(
                    "TM209", self.a.file, run.call,
                    f"`{code(target)}` holds the None that an update gives, and is read",
                )  # fmt: skip
        if not kept:
            return cst.Expr(self.t.expression(call))
        if len(kept) == 1:
            return updated.with_changes(
                targets=[updated.targets[0].with_changes(target=kept[0])],
                value=self.t.expression(self._as_array(run, call)),
            )
        target = self.t.expression(", ".join(code(k) for k in kept))
        assert isinstance(target, cst.Tuple)
        return updated.with_changes(
            targets=[updated.targets[0].with_changes(target=target)],
            value=self.t.expression(f"tm.as_numpy({call})"),
        )

    def _read(self, target: cst.CSTNode) -> bool:
        return (
            any(
                set(reads(target)) & item.reads
                for item in self.a.after
                if isinstance(target, cst.Name)
            )
            and isinstance(target, cst.Name)
            and not self._only_bound(target.value)
        )

    def _only_bound(self, name: str) -> bool:
        return not any(name in item.reads for item in self.a.after)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.column = self.a.file.span(node).column

    def _set_before(
        self, run: Run, line: cst.SimpleStatementLine
    ) -> cst.FlattenSentinel[cst.BaseStatement]:
        """`lr.assign(rate)` before the line of a run that is fed `lr: rate`."""
        settings = [name for name in run.feeds if name in self.a.settings]
        made = [self.t.statement(f"{name}.assign({code(run.feeds[name])})") for name in settings]
        first = with_lead(made[0], list(line.leading_lines))
        return cst.FlattenSentinel([first, *made[1:], line.with_changes(leading_lines=[])])

    # -- coordinators

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        made = self._statement(original_node, updated_node)
        if isinstance(made, cst.BaseStatement):
            return with_comments_of(original_node, made)
        if isinstance(made, cst.FlattenSentinel):
            first, *rest = made
            last = rest[-1] if rest else first
            kept = with_comments_of(original_node, last)
            # They stand before all that the statement became.
            more = lead_of(kept)[len(lead_of(last)) :]
            return cst.FlattenSentinel([with_lead(first, [*lead_of(first), *more]), *rest])
        return made

    def _statement(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        run = self.set_before.get(id(original_node))
        if run is not None:
            return self._set_before(run, updated_node)
        call = bare_call(original_node)
        if call is not None and isinstance(call.func, cst.Attribute):
            if self.a.kinds.of(call.func.value) is Kind.COORDINATOR:
                method = call.func.attr.value
                if not self.keep_coordinator:
                    return cst.RemoveFromParent()
                if method == "join":
                    # The queue runners' threads belong to the input now, which ends them itself.
                    inner = call.with_changes(args=[])
                    return updated_node.with_changes(body=[cst.Expr(inner)])
        if not updated_node.body:
            return cst.RemoveFromParent()
        return updated_node

    def leave_Try(
        self, original_node: cst.Try, updated_node: cst.Try
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        final = updated_node.finalbody
        if final is None or code(final.body) not in ("", "pass"):
            return updated_node
        if updated_node.handlers or updated_node.orelse is not None:
            return updated_node.with_changes(finalbody=None)
        body = list(statements(updated_node.body))
        body[0] = with_lead(body[0], [*lead_of(updated_node), *strip_blank(lead_of(body[0]))])
        return cst.FlattenSentinel(body)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        """Without an `else` of which nothing is left."""
        last, was = updated_node.orelse, original_node.orelse
        if not isinstance(last, cst.Else) or not isinstance(was, cst.Else):
            return updated_node
        if "".join(code(last).split()) != "else:pass" or _is_pass(was.body):
            return updated_node
        return updated_node.with_changes(orelse=None)

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """`with graph.as_default():` around what asks for variables; there is no graph."""
        for each in original_node.items:
            call = each.item
            if each.asname is not None or not isinstance(call, cst.Call) or call.args:
                return updated_node
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "as_default":
                return updated_node
            if self.a.kinds.of(func.value) is not Kind.GRAPH:
                return updated_node
        body = list(statements(updated_node.body))
        inner = statements(original_node.body)
        columns = self.a.file.span(inner[0]).column - self.a.file.span(original_node).column
        body = [shift(each, columns) for each in body]
        lead = [*lead_of(updated_node), *header_comment(original_node)]
        body[0] = with_lead(body[0], [*lead, *strip_blank(lead_of(body[0]))])
        return cst.FlattenSentinel(body)

    # -- services

    def _service(
        self, original: cst.Call, updated: cst.BaseExpression
    ) -> cst.BaseExpression | None:
        if not isinstance(original.func, cst.Attribute) or not isinstance(updated, cst.Call):
            return None
        receiver = self.a.kinds.of(original.func.value)
        if receiver is Kind.SAVER and original.func.attr.value in ("save", "restore"):
            session = argument(original, 0, "sess")
            if session is None or self.a.kinds.of(session) is not Kind.SESSION:
                raise refuse(
                    "TM210",
                    self.a.file,
                    original,
                    "a saver is called with something else than a session",
                )
            rest = [
                a
                for o, a in zip(original.args, updated.args, strict=True)
                if o.value is not session
            ]
            return updated.with_changes(args=rest)
        return None

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.BaseSuite:
        if not updated_node.body:
            return updated_node.with_changes(body=[self.t.statement("pass")])
        return updated_node


def _is_pass(body: cst.BaseSuite) -> bool:
    return code(body).strip() == "pass"


def _given_twice(step: Step, run: Run) -> list[str]:
    """The placeholders that a step takes in several ways, as slices and whole, and that are fed what is computed."""
    sources = [i.source for i in step.fed if i.source in run.feeds]
    several = {each for each in sources if sources.count(each) > 1}
    return sorted(each for each in several if not is_plain(run.feeds[each]))


def _has(node: cst.CSTNode, kind: type[cst.CSTNode]) -> bool:
    return any(isinstance(each, kind) for each in walk(node))


def coordinator_matters(analysis: Analysis) -> bool:
    """Whether a Coordinator does more than end the queue runners' threads.

    `should_stop()` ends the author's loop, and `request_stop(error)` makes `join` raise it again.
    """
    for item in analysis.after:
        for call in calls(item.node):
            if isinstance(call.func, cst.Attribute):
                if analysis.kinds.of(call.func.value) is Kind.COORDINATOR:
                    method = call.func.attr.value
                    if method == "should_stop" or method == "request_stop" and call.args:
                        return True
                    if method not in ("request_stop", "join"):
                        return True
    return False


def saver(analysis: Analysis, names: Names, item_index: int, templates: Templates) -> str | None:
    """The right-hand side for `tf.train.Saver(…)`, None where its variables are not understood."""
    item = analysis.after[item_index]
    found = assigned(item.node)
    if found is None or not isinstance(found[1], cst.Call):
        return None
    call = found[1]
    kinds = analysis.kinds
    var_list = argument(call, 0, "var_list")
    everything = var_list is None or (
        isinstance(var_list, cst.Call)
        and analysis.file.tf(var_list.func) in ("tf.global_variables", "tf.all_variables")
        and not var_list.args
    )
    trainable = (
        isinstance(var_list, cst.Call)
        and analysis.file.tf(var_list.func) == "tf.trainable_variables"
        and not var_list.args
    )
    parts = [names.variables if everything else f"{names.variables}.trainable()"]
    if not everything and not trainable:
        trained, beside = trained_and_more(code(var_list)) if var_list is not None else ("", [])
        known = (
            n for n, k in kinds.env.items() if k is Kind.VARIABLE and n not in analysis.settings
        )
        if var_list is None or not trained or not set(beside) <= set(known):
            return None
        listed = next(n for n in walk(var_list) if code(n) == trained)
        parts = [code(replace(listed, in_step(analysis, templates, names.variables))), *beside]
    if everything:
        parts.extend(
            n for n, k in kinds.env.items() if k is Kind.VARIABLE and n not in analysis.settings
        )
        earlier = analysis.after[:item_index]
        optimizers = list(
            dict.fromkeys(code(s.optimizer) for s in analysis.stages if s.apply_item in earlier)
        )
        averages = [name for i in earlier if (name := _average_of(i)) is not None]
        if optimizers:
            parts.append(f"optimizers=[{', '.join(optimizers)}]")
        if averages:
            parts.append(f"averages=[{', '.join(dict.fromkeys(averages))}]")
    for arg in call.args:
        keyword = arg.keyword.value if arg.keyword else None
        if keyword in ("max_to_keep", "keep_checkpoint_every_n_hours"):
            parts.append(f"{keyword}={code(arg.value)}")
        elif keyword not in (None, "var_list", "sharded"):
            return None
    return f"tm.tf1_saver({', '.join(parts)})"


def _place(analysis: Analysis, call: cst.Call) -> tuple[int, int]:
    where = analysis.file.span(call)
    return where.line, where.column


def _variables_of(item: Item) -> list[str]:
    """The names of TF1's variables that a statement makes: a fed rate is one only in the rewritten program."""
    found = assigned(item.node)
    if item.kind is not Kind.VARIABLE or found is None:
        return []
    made = found[1].func if isinstance(found[1], cst.Call) else found[1]
    return [] if code(made).rpartition(".")[2].startswith("placeholder") else sorted(item.binds)


def _average_of(item: Item) -> str | None:
    """`ema` of a statement `op = ema.apply(…)`."""
    found = assigned(item.node)
    if item.kind is not Kind.EXTRA or found is None or not isinstance(found[1], cst.Call):
        return None
    func = found[1].func
    return code(func.value) if isinstance(func, cst.Attribute) else None
