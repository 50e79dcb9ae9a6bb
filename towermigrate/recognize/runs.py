"""Read every `sess.run`: what it fetches and feeds, and which stages it trains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.acting import may_act
from towermigrate.recognize.analysis import (
    Run,
    ScopeReader,
    StageParts,
    backward_slice,
    evaluated,
)
from towermigrate.recognize.kinds import IN_GRAPH, OPS, READ, Kind
from towermigrate.recognize.listed import fed_of
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.scope import (
    Item,
    bare_call,
    run_calls,
)
from towermigrate.recognize.syntax import (
    argument,
    binds,
    calls,
    changes,
    code,
    elements,
    reads,
    small,
    statements,
    walk,
)
from towermigrate.recognize.tables import Table, picked_key, set_by


class RunReader(ScopeReader):
    """Reads the runs of the statements after the loop."""

    def runs(self, after: Sequence[Item]) -> list[Run]:
        runs: list[Run] = []
        self._one_session()
        self._as_in_tables(after)
        for item in after:
            for call in run_calls(item.node, self.kinds):
                if self._sets_listed(call):
                    continue
                found: list[Run] = []
                known = len(self.reasons.findings)
                with self.reasons.collected():
                    found = self._runs_of(call, item)
                if found:
                    runs += found
                elif len(self.reasons.findings) > known or call in self.scope.restarts:
                    continue
                elif runs or self._restored(item, call) or _inside_loop(item.node, call):
                    what = (
                        "the variables are initialised again; the rewritten program makes them once"
                    )
                    if call in self.scope.started.values():
                        what = "the input pipeline is started again, or behind a run"
                    self.reasons.say("TM209", self.file, call, what)
        self._fed_by_one_name(after)
        if not runs and not self.reasons.findings:
            self.reasons.say(
                "TM205", self.file, self.candidate.loop, "no `sess.run` fetches the towers"
            )
        return runs

    def _restored(self, item: Item, initialise: cst.Call) -> bool:
        """Whether a checkpoint was restored, or a variable set, before an initialiser runs, which undid it."""
        line = self.file.line(initialise)
        return any(
            self.file.line(c) < line
            and (
                self.kinds.is_load(c)
                or self._sets_listed(c)
                or isinstance(c.func, cst.Attribute)
                and c.func.attr.value == "restore"
                and self.kinds.of(c.func.value) is Kind.SAVER
                and not isinstance(item.node, cst.If)
            )
            for c in calls(self.candidate.function or self.file.module)
        )

    def _sets_listed(self, call: cst.Call) -> bool:
        """Whether a run sets a variable of a list, `sess.run(v.assign(value))`."""
        update = set_by(call, self.kinds)
        return (
            update is not None
            and isinstance(update.func, cst.Attribute)
            and self.kinds.of(update.func.value) is Kind.LISTED
        )

    def _one_session(self) -> None:
        """A second session would start from the initial values again."""
        scope = self.candidate.function or self.file.module
        opened = [c for c in calls(scope) if self.kinds.of(c) is Kind.SESSION]
        if len(opened) > 1:
            self.reasons.say(
                "TM205", self.file, opened[1], "the program opens more than one session"
            )
        for call in opened:
            if may_act(self.file, call):
                self.reasons.say(
                    "TM223", self.file, call,
                    f"what `{code(call.func)}` is given is made by a function that does more, and goes with the session",
                )  # fmt: skip

    def _as_in_tables(self, after: Sequence[Item]) -> None:
        """What a table holds must be what its names mean where a run picks of it."""
        held: dict[str, str] = {}
        runs = {id(call) for item in after for call in run_calls(item.node, self.kinds)}
        for table in self.scope.tables.values():
            for call in table.calls:
                if id(call) not in runs:
                    self.reasons.say(
                        "TM210",
                        self.file,
                        call,
                        f"`{code(call.func)}` picks of `{table.name}` and is no run",
                    )
        for item in after:
            for name in sorted(item.binds & held.keys()):
                self.reasons.say(
                    "TM210",
                    self.file,
                    item.node,
                    f"`{name}`, which `{held[name]}` holds, is bound anew",
                )
            if item.kind is Kind.TABLE:
                for table in (self.scope.tables[n] for n in item.binds if n in self.scope.tables):
                    held.update(dict.fromkeys(table.names.values(), table.name))

    def _runs_of(self, call: cst.Call, item: Item) -> list[Run]:
        """The runs of one call: several where it picks what it fetches of tables; none where it initialises."""
        picks = self._picks(call)
        if not picks:
            run = self._run(call, item, {})
            return [] if run is None else [run]
        updates = self._updates_of(call, picks)
        runs: list[Run] = []
        for key in updates.names:
            run = self._run(call, item, {id(n): table.names[key] for n, table, _ in picks})
            if run is not None:
                run.table, run.key, run.picked = updates, key, picks[0][2]
                runs.append(run)
        if len({tuple(self.kinds.of_name(n) in OPS for n in run.fetches) for run in runs}) > 1:
            raise refuse(
                "TM209", self.file, call,
                f"what this run gives is a value for some keys of `{updates.name}` and None for others",
            )  # fmt: skip
        return runs

    def _picks(self, call: cst.Call) -> list[tuple[cst.BaseExpression, Table, str]]:
        """What a run fetches of tables, each with its table and the text of its key."""
        fetches = argument(call, 0, "fetches")
        nodes = elements(fetches) if fetches is not None else None
        found: list[tuple[cst.BaseExpression, Table, str]] = []
        for node in nodes if nodes is not None else [fetches] if fetches is not None else []:
            key = picked_key(node)
            if key is not None and isinstance(node, cst.Subscript):
                table = self.scope.tables.get(code(node.value))
                if table is not None:
                    found.append((node, table, code(key)))
        return found

    def _updates_of(
        self, call: cst.Call, picks: Sequence[tuple[cst.BaseExpression, Table, str]]
    ) -> Table:
        """The table that holds the updates of a run; all others have the same keys."""
        tables = {table.name: table for _, table, _ in picks}
        updates = [
            t
            for t in tables.values()
            if all(self.kinds.of_name(n) in OPS for n in t.names.values())
        ]
        if len(updates) != 1 or len({key for *_, key in picks}) > 1:
            raise refuse(
                "TM209", self.file, call,
                "this run picks of several tables of updates, of none, or by several keys",
            )  # fmt: skip
        for table in tables.values():
            asked = table.is_asked and table is not updates[0]
            if asked or table.names.keys() != updates[0].names.keys():
                raise refuse(
                    "TM209", self.file, call,
                    f"`{table.name}` has other keys than `{updates[0].name}`, or is asked for them",
                )  # fmt: skip
        return updates[0]

    def _run(self, call: cst.Call, item: Item, picked: dict[int, str]) -> Run | None:
        """One run; `picked` are the names of what is fetched of tables."""
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
        nodes = [
            cst.Name(picked[id(n)]) if id(n) in picked else n
            for n in (listed if listed is not None else [fetches])
        ]
        if all(self.kinds.of(n) is Kind.INIT or self._iterator(n) for n in nodes):
            self._starts(call, item, nodes, feed)
            return None
        names: list[str] = []
        read = all(isinstance(n, cst.Name) and self.kinds.of(n) in READ for n in nodes)
        for node in nodes:
            if not isinstance(node, cst.Name):
                raise refuse(
                    "TM209", self.file, call, f"`{code(node)}` is fetched without a name of its own"
                )
            kind = self.kinds.of(node)
            taken = kind in IN_GRAPH or kind in READ or kind is Kind.EVALUATION
            if not taken or kind is Kind.SCHEDULE and not read:
                raise refuse(
                    "TM209",
                    self.file,
                    call,
                    f"`{node.value}` is fetched and not understood ({kind.value})",
                )
            if node.value in self.kinds.updates:
                said = f"`{node.value}`, a list of batch-norm updates, is fetched"
                raise refuse("TM209", self.file, call, said)
            whole = kind is Kind.TOWER_LIST and node.value in self.scope.lists
            if kind in (Kind.TOWER_LIST, Kind.GRADIENTS, Kind.AVERAGED, Kind.VARLIST) and not whole:
                raise refuse("TM209", self.file, call, f"`{node.value}` ({kind.value}) is fetched")
            names.append(node.value)
        feed_name = feed.value if isinstance(feed, cst.Name) else None
        feeds = self._feeds(call, feed)
        run = Run(call, item, names, listed is None, feeds, feed_name if feeds else None)
        run.evaluates = self._evaluates(call, names)
        return run

    def _iterator(self, node: cst.BaseExpression) -> str | None:
        """The iterator of the input pipeline that `iterator.initializer` starts."""
        if not isinstance(node, cst.Attribute) or node.attr.value != "initializer":
            return None
        name = code(node.value)
        return name if name in self.scope.iterators else None

    def _starts(
        self,
        call: cst.Call,
        item: Item,
        nodes: Sequence[cst.BaseExpression],
        feed: cst.BaseExpression | None,
    ) -> None:
        """The input starts by itself, before its first element: one run must do that, once and for all, where it is not
        started anew in each turn of a loop, or with what it is fed."""
        alone = all(map(self._iterator, nodes)) and len(self.scope.iterators) == 1
        if alone and feed is not None and _stands_alone(item.node, call):
            self._starts_fed(call, feed)
            return
        if alone and not self.scope.fed_inputs and feed is None and _alone_in_loop(item.node, call):
            self.scope.restarts.append(call)
            return
        for name in filter(None, map(self._iterator, nodes)):
            again = name in self.scope.started or bool(self.scope.fed_inputs)
            if again or feed is not None or bare_call(item.node) is not call:
                how = (
                    "again"
                    if again
                    else "with what it is fed"
                    if feed is not None
                    else "in the middle of others"
                )
                raise refuse("TM209", self.file, call, f"the iterator `{name}` is started {how}")
            self.scope.started[name] = call

    def _starts_fed(self, call: cst.Call, feed: cst.BaseExpression) -> None:
        """Starts the input with what its placeholders are fed, which every start must do, in one order."""
        names = tuple(self._feeds(call, feed))
        if not isinstance(feed, cst.Dict) or not names:
            raise refuse(
                "TM209", self.file, call,
                f"`{code(feed)}` is fed to start an iterator; only a dict display is understood there",
            )  # fmt: skip
        earlier = [*self.scope.started, *self.scope.restarts]
        if earlier and names != self.scope.fed_inputs:
            raise refuse(
                "TM209", self.file, call,
                f"`{code(call)}` feeds other placeholders than another start of the iterator, or in another order",
            )  # fmt: skip
        self.scope.fed_inputs = names
        self.scope.restarts.append(call)

    def _fed_by_one_name(self, after: Sequence[Item]) -> None:
        """What starts the input must be the same placeholders each time: their names are bound once."""
        for name in self.scope.fed_inputs:
            bound = [item for item in (*self.scope.front, *after) if name in item.binds]
            if len(bound) != 1:
                self.reasons.say(
                    "TM209", self.file, self.scope.restarts[0],
                    f"`{name}`, by which an iterator is fed, has several values",
                )  # fmt: skip

    def _evaluates(self, call: cst.Call, names: Sequence[str]) -> bool:
        """Whether a run fetches values of evaluations only."""
        looks = [self.kinds.of_name(name) is Kind.EVALUATION for name in names]
        if any(looks) and not all(looks):
            raise refuse(
                "TM209", self.file, call,
                f"`{names[looks.index(True)]}`, which an evaluation gives, is fetched together with "
                f"`{names[looks.index(False)]}` of the towers",
            )  # fmt: skip
        return any(looks)

    def _check_fed(self, run: Run, after: Sequence[Item]) -> None:
        """An evaluation is fed what it reads and nothing else."""
        read: set[str] = set()
        for item in evaluated(after, set(run.fetches)):
            read |= item.reads & self.scope.placeholders.keys()
        for name in sorted(read ^ run.feeds.keys()):
            how = "needs and is not given" if name in read else "is given and does not need"
            self.reasons.say(
                "TM209", self.file, run.call, f"`{code(run.call.func)}` of an evaluation {how} `{name}`"
            )  # fmt: skip

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
        display = len(bound) == 1 and fed_of(bound[0].value) is not None
        if not display or altered or len(bound[0].targets) != 1:
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
        inside = set(reads(bound[0].value)) - self._filled_before(bound[0].value, scope)
        # What settings are fed is evaluated where the run is.
        inside -= {
            code(value)
            for key, value, _ in fed_of(bound[0].value) or []
            if isinstance(value, cst.Name) and self.kinds.of(key) is Kind.VARIABLE
        }
        if any(of_lists for _, _, of_lists in fed_of(bound[0].value) or []):
            # What lists hold for the towers is taken where the dict is bound; all else is kept until the runs.
            for statement in self.candidate.block:
                if inside & set(changes(statement)):
                    raise refuse(
                        "TM209", self.file, call, f"what `{name}` feeds is changed in place"
                    )
            self._fed_as_bound(name, bound[0], scope)
        self.scope.feed_dicts[name] = bound[0]
        return bound[0].value

    def _fed_to_all(self, run: Run, runs: Sequence[Run]) -> None:
        """What feeds lists of placeholders must feed all of them, which is known where it feeds an update."""
        listed = sorted(run.feeds.keys() & self.kinds.listed)
        alike = [
            each
            for each in runs
            if each is run
            or run.feed_name
            and each.feed_name == run.feed_name
            or all(_as_many(run.feeds[name], each.feeds.get(name)) for name in listed)
            and _comes_first(self.candidate.block, each.call, run.call)
        ]
        if listed and all(self._filled_for_all(run.feeds[name]) for name in listed):
            return
        if listed and not any(each.trains for each in alike):
            self.reasons.say(
                "TM209", self.file, run.call,
                f"`{listed[0]}` may be fed for some of the towers only, which a step does not take",
            )  # fmt: skip

    def _filled_for_all(self, fed: cst.CSTNode) -> bool:
        """Whether a list that is fed was filled by a loop that goes over what the towers' loop goes over, a turn for each."""
        over = self.candidate.loop.iter
        scope = self.candidate.function or self.file.module
        if not isinstance(fed, cst.Name) or not code(over).startswith(("range(", "xrange(")):
            return False
        names = [node.value for node in walk(scope) if isinstance(node, cst.Name)]
        if names.count(fed.value) != 3:  # it is made, filled and fed
            return False
        counted = set(reads(over)) - {"range", "xrange"}
        binding = cst.Assign | cst.AnnAssign | cst.AugAssign
        times = Counter(n for node in walk(scope) if isinstance(node, binding) for n in binds(node))
        targets = [node.target for node in walk(scope) if isinstance(node, cst.For | cst.CompFor)]
        times.update(name for target in targets for name in reads(target))
        if any(times[name] > 1 for name in counted) or len(calls(over)) != 1:
            return False
        return any(
            isinstance(loop, cst.For)
            and code(loop.iter) == code(over)
            and not any(isinstance(n, cst.Break | cst.Continue | cst.Return) for n in walk(loop))
            and any(
                code(each).strip().startswith(f"{fed.value}.append(")
                for each in statements(loop.body)
                if isinstance(each, cst.SimpleStatementLine)
            )
            for loop in walk(scope)
        )

    def _filled_before(self, feed: cst.CSTNode, scope: cst.CSTNode) -> set[str]:
        """Lists that are made, filled by one call and fed, and named nowhere else, so that nothing changes them later."""
        lists = {
            value.value
            for _, value, of_lists in fed_of(feed) or []
            if of_lists and isinstance(value, cst.Name)
        }
        names = [node.value for node in walk(scope) if isinstance(node, cst.Name)]
        appended = {
            code(call.func).removesuffix(".append")
            for call in calls(scope)
            if code(call.func).endswith(".append")
        }
        return {name for name in lists & appended if names.count(name) == 3}

    def _fed_as_bound(self, name: str, bound: cst.Assign, scope: cst.CSTNode) -> None:
        """What a dict of feeds holds is dealt out where it is bound: no call behind that may change it."""
        held: set[str] = set()
        for _, fed, _ in fed_of(bound.value) or []:
            several = [e.value for e in fed.elements] if isinstance(fed, cst.List) else [fed]
            value: cst.CSTNode
            for value in several:
                while isinstance(value, cst.Subscript | cst.Attribute):
                    value = value.value
                held |= {value.value} if isinstance(value, cst.Name) else set()
        where = self.file.span(bound)
        for call in calls(scope):
            given = sorted({code(a.value) for a in call.args} & held)
            place = self.file.span(call)
            behind = (place.line, place.column) >= (where.end_line, where.end_column)
            if given and behind and code(call.func) not in ("len", "print", "float", "int"):
                raise refuse(
                    "TM209", self.file, call,
                    f"`{code(call.func)}` is given `{given[0]}` between the binding of `{name}` and its run, and may change it",
                )  # fmt: skip

    def _feeds(
        self, call: cst.Call, feed: cst.BaseExpression | None
    ) -> dict[str, cst.BaseExpression]:
        if feed is None or code(feed) == "None":
            return {}
        if isinstance(feed, cst.Name):
            feed = self._named_feed(call, feed.value)
        pairs = fed_of(feed)
        if pairs is None:
            raise refuse(
                "TM209",
                self.file,
                call,
                f"`{code(feed)}` is fed; only a dict display is understood",
            )
        feeds: dict[str, cst.BaseExpression] = {}
        for key, value, of_lists in pairs:
            if not isinstance(key, cst.Name):
                raise refuse("TM209", self.file, call, f"`{code(key)}` is fed and not understood")
            if key.value not in self.scope.placeholders:
                raise refuse(
                    "TM209",
                    self.file,
                    call,
                    f"`{key.value}` is fed and is no placeholder of this scope",
                )
            if of_lists != (key.value in self.kinds.listed):
                raise refuse(
                    "TM209", self.file, call,
                    f"`{key.value}` is fed as {'a list' if of_lists else 'one'}, and is {'one' if of_lists else 'a list'}",
                )  # fmt: skip
            if key.value in feeds:
                raise refuse("TM209", self.file, call, f"`{key.value}` is fed twice")
            feeds[key.value] = value
        return feeds

    def trains(self, runs: list[Run], after: Sequence[Item], stages: list[StageParts]) -> None:
        for run in runs:
            if run.evaluates:
                self._check_fed(run, after)
                continue
            picked = backward_slice(after, set(run.fetches))
            run.trains = [i for i, s in enumerate(stages) if s.apply_item in picked]
            places = [
                k
                for i in run.trains
                for k, item in enumerate(after)
                if item is stages[i].average_item
            ]
            if places != sorted(places):
                self.reasons.say(
                    "TM204",
                    self.file,
                    run.call,
                    "one run makes several updates whose averages stand in another order than the updates",
                )
        for run in runs:
            self._fed_to_all(run, runs)
        if runs and not any(run.trains for run in runs) and not self.reasons.findings:
            self.reasons.say(
                "TM205", self.file, self.candidate.loop, "no `sess.run` fetches an update"
            )


def _as_many(fed: cst.CSTNode, others: cst.CSTNode | None) -> bool:
    """Whether two displays feed as many placeholders: of another number of towers neither feeds each its own."""
    return (
        isinstance(fed, cst.List)
        and isinstance(others, cst.List)
        and len(fed.elements) == len(others.elements)
    )


def _comes_first(block: Sequence[cst.BaseStatement], first: cst.Call, behind: cst.Call) -> bool:
    """Whether a run that is all that its line does stands in front of another, in the same block or in one around it."""
    inner = [n.body for each in block for n in walk(each) if isinstance(n, cst.IndentedBlock)]
    for inner_block in [block, *inner]:
        began = False
        for each in inner_block:
            line = small(each)
            if isinstance(line, cst.Assign | cst.Expr) and line.value is first:
                began = True
            elif began and any(node is behind for node in walk(each)):
                return True
    return False


def _stands_alone(statement: cst.BaseStatement | cst.Else, call: cst.Call) -> bool:
    """Whether a call is a line of its own of the session, which no function and no `try` holds."""
    if isinstance(statement, cst.For | cst.While | cst.With | cst.If | cst.Else):
        rest = getattr(statement, "orelse", None)
        blocks = [*statements(statement.body), *([rest] if rest is not None else [])]
        return any(_stands_alone(each, call) for each in blocks)
    return isinstance(statement, cst.SimpleStatementLine) and bare_call(statement) is call


def _alone_in_loop(statement: cst.BaseStatement, call: cst.Call) -> bool:
    """Whether a call is a statement of its own in a loop, and runs in each of its turns."""
    looped = False
    waiting: list[tuple[cst.CSTNode, bool]] = [(statement, False)]
    while waiting:
        node, looped = waiting.pop()
        if isinstance(node, cst.For | cst.While | cst.With):
            inner = looped or not isinstance(node, cst.With)
            waiting += [(each, inner) for each in node.body.body]
        elif isinstance(node, cst.SimpleStatementLine) and looped and len(node.body) == 1:
            (only,) = node.body
            if isinstance(only, cst.Expr) and only.value is call:
                return True
    return False


def _inside_loop(statement: cst.BaseStatement, call: cst.Call) -> bool:
    """Whether a call stands in a loop, a comprehension or a function below a statement."""
    for node in walk(statement):
        if isinstance(node, cst.For | cst.While | cst.BaseComp | cst.FunctionDef | cst.Lambda):
            if any(n is call for n in walk(node)):
                return True
    return False
