"""What runs fetch, draw and give back, and what savers and writers are asked: as a plain loop can give it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from towermigrate.flow.values import External, Unknown, Value
from towermigrate.recognize.analysis import Run
from towermigrate.recognize.kinds import OPS, Kind
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.effects import effect
from towermigrate.recognize.proof.inner import callers_of, runs_as_written
from towermigrate.recognize.proof.services import Services, argument
from towermigrate.recognize.proof.towers import TowerProof, place_of
from towermigrate.recognize.proof.values import (
    NOTHING,
    Differs,
    Index,
    Items,
    Python,
    Setting,
    Static,
    Tensor,
    Text,
    needs_of,
)
from towermigrate.recognize.scope import Item

_NO_TENSORS = (Items, Text, Python, Setting, Static, Index, Differs)
_OBJECTS = {Kind.OPTIMIZER, Kind.EMA, Kind.SCHEDULE, Kind.VARIABLE}


class SessionCheck:
    """Looks at the statements that stay, in the order in which the proof runs them."""

    def __init__(self, proof: TowerProof, runs: Sequence[Run]) -> None:
        self.proof = proof
        self.code = proof.code
        self.kinds = proof.facts.kinds
        self.services = Services(proof)
        self.required = self._required()
        self.runs: dict[tuple[int, int], list[Run]] = {}
        for run in runs:
            self.runs.setdefault(proof_place(proof, run), []).append(run)
        started = [*proof.facts.started.values(), *proof.facts.restarts]
        self.starts = {place_of(proof.facts.file, call) for call in started}
        self.ran: ast.AST | None = None
        # Runs that are not shown to need all that a step draws, by their identity: each with its call and what to say.
        self.short: dict[int, tuple[ast.Call, Run | None, str]] = {}

    def _required(self) -> frozenset[str]:
        """The draws that every step makes, since it is given all inputs of all towers."""
        proof = self.proof
        needs: frozenset[str] = frozenset(f"all {atom}" for atom in proof.draws.values())
        body = proof.body
        needs |= {f"all {effect(k + 1)}" for k in range(len(proof.effects))}
        needs |= {f"all {each}" for made in proof.made_inputs.values() for each in made}
        for given in body.inputs if body is not None else []:
            if (
                given.kind in ("queue", "iterator", "own")
                or given.source in proof.facts.placeholders
            ):
                continue
            value = proof.top.names.get(given.source.split(".")[0], Unknown())
            needs |= needs_of(value)
        return needs

    def say_short(self, settled: Collection[int]) -> None:
        """Report the runs that may not need all that a step draws, those of `settled` aside."""
        for key, (call, _, message) in self.short.items():
            if key not in settled:
                self._say("TM225", call, message)

    # -- statements that stay

    def graph(self, item: Item, nodes: list[ast.stmt]) -> None:
        """A statement that moves into steps."""
        if self.ran is not None and nodes:
            self._say(
                "TM234", nodes[0],
                f"`{self.code.said(nodes[0])}` adds to the graph after a run (line {self.ran.lineno})",  # type: ignore[attr-defined]
            )  # fmt: skip

    def stays(self, item: Item, nodes: list[ast.stmt]) -> None:
        """A statement that stays, before it is run."""
        if item.kind is Kind.TABLE:  # its values are looked at where a run picks them
            return
        for node in nodes:
            inside: set[int] = set()
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and self.services.is_run(call):
                    fetched = argument(call, 0, "fetches")
                    if fetched is not None:
                        inside |= {id(n) for n in ast.walk(fetched)}
                    self._run(call, node)
            self._uses(item, node, inside)

    # -- runs

    def _run(self, call: ast.Call, statement: ast.stmt) -> None:
        fetches = argument(call, 0, "fetches")
        if fetches is None:
            return
        nodes = fetches.elts if isinstance(fetches, ast.List | ast.Tuple) else [fetches]
        if nodes and all(self._kind(n) is Kind.INIT for n in nodes):
            return
        if self.code.place(call) in self.starts:
            return
        self.ran = self.ran or call
        self._place(call, statement)
        self._form(call, fetches, nodes, statement)
        runs = self.runs.get(self.code.place(call), [])
        if not any(run.table for run in runs):
            self._one_run(call, statement, nodes, runs[0] if runs else None)
        for run in runs:
            if run.table is not None:
                self._one_run(call, statement, [ast.Name(n, ast.Load()) for n in run.fetches], run)

    def _one_run(
        self, call: ast.Call, statement: ast.stmt, nodes: Sequence[ast.expr], run: Run | None
    ) -> None:
        kinds = [self._kind(n) for n in nodes]
        if kinds == [Kind.LISTED] or self._sets_listed(nodes):
            return
        self._rebinds(nodes, statement)
        self._fetched(call, nodes, kinds, run)
        if all(k is Kind.VARIABLE for k in kinds) and argument(call, 1, "feed_dict") is None:
            return
        needs = NOTHING
        for node in nodes:
            if isinstance(node, ast.Name):
                needs |= needs_of(self.proof.top.names.get(node.id, Unknown()))
        self.proof.all_towers(needs)
        evaluates = run is not None and run.evaluates
        if evaluates and self._is_caught(call):
            self._say(
                "TM209", call,
                f"`{self.code.said(call)}` stands in a `try` for what a wrong feed raises, which is another error in loop style",
            )  # fmt: skip
        if evaluates and needs:
            self._say("TM225", call, f"`{self.code.said(call)}` may draw of an input pipeline")
        missing = self.required - needs
        if missing and not evaluates:
            self.short[id(run)] = (call, run, self._missing(call, missing))
        if run is not None and len(run.trains) > 1:
            updates = [f"`{n}`" for n in run.fetches if self.kinds.of_name(n) in OPS]
            named = f" ({' and '.join(updates)})" if len(updates) > 1 else ""
            self._say(
                "TM233", call,
                f"`{self.code.said(call)}` makes {len(run.trains)} updates in one run{named}, which TF1 orders as it likes: "
                "gradients for one may read variables before or after another has moved them",
            )  # fmt: skip

    def _is_caught(self, call: ast.Call) -> bool:
        """Whether a call stands in a `try` that names the errors of a feed of the wrong shape."""
        inner: ast.AST | None = call
        while (inner := self.code.parents.get(id(inner))) is not None:
            inside = {id(each) for each in ast.walk(inner)}
            callers = [c for c in callers_of(self.proof, inner) if id(c) not in inside]
            if any(map(self._is_caught, callers)):
                return True
            for handler in inner.handlers if isinstance(inner, ast.Try) else ():
                caught = ast.unparse(handler.type) if handler.type is not None else ""
                if "ValueError" in caught or "TypeError" in caught:
                    return True
        return False

    def _sets_listed(self, nodes: Sequence[ast.expr]) -> bool:
        """`v.assign(value)` of a variable that a list holds."""
        match nodes:
            case [ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="assign"))]:
                return self.kinds.of_name(name) is Kind.LISTED
        return False

    def _kind(self, node: ast.expr) -> Kind:
        if isinstance(node, ast.Name):
            return self.kinds.of_name(node.id)
        if isinstance(node, ast.Call):
            with self.proof.mode(False):
                function = self.proof.value(node.func, self.proof.top)
            if isinstance(function, External) and "initializer" in function.name:
                return Kind.INIT
        return Kind.PYTHON

    def _missing(self, call: ast.Call, missing: frozenset[str]) -> str:
        said = self.code.said(call)
        for number, (code, node) in enumerate(self.proof.effects, 1):
            if f"all {effect(number)}" in missing:
                return f"it is not shown that `{said}` needs `{code.said(node)}` in every tower, and a step runs it"
        if all(m.startswith("all tower:") for m in missing):
            return f"it is not shown that `{said}` needs the inputs of every tower; a step draws for all of them"
        return f"it is not shown that `{said}` needs all inputs of the pipeline; a step draws each of them"

    def _place(self, call: ast.Call, statement: ast.stmt) -> None:
        inner = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.GeneratorExp
        for node in ast.walk(statement):
            if isinstance(node, inner) and any(n is call for n in ast.walk(node)):
                if isinstance(node, ast.GeneratorExp):
                    # What the outermost `for` goes over is computed where the generator is made.
                    if any(n is call for n in ast.walk(node.generators[0].iter)):
                        continue
                if not runs_as_written(self.proof, call, statement):
                    self._say(
                        "TM205", call,
                        f"`{self.code.said(call)}` stands in an inner function, which may run at any time",
                    )  # fmt: skip
                return

    def _form(
        self, call: ast.Call, fetches: ast.expr, nodes: list[ast.expr], statement: ast.stmt
    ) -> None:
        if isinstance(fetches, ast.Name):
            value = self.proof.top.names.get(fetches.id)
            if isinstance(value, Items) and fetches.id not in self.proof.facts.lists:
                self._say(
                    "TM231",
                    call,
                    f"`{fetches.id}` is a list of fetches, and a run gives a list for it",
                )
            return
        if isinstance(fetches, ast.Tuple) and not self._taken_apart(call, len(nodes), statement):
            self._say(
                "TM231", call,
                f"`{self.code.said(call)}` gives a tuple, as it fetches one, and the tuple is used whole",
            )  # fmt: skip
        if isinstance(fetches, ast.Dict | ast.DictComp) or any(
            isinstance(n, ast.List | ast.Tuple | ast.Dict) for n in nodes
        ):
            self._say(
                "TM231",
                call,
                f"`{self.code.said(call)}` fetches a nested structure and gives one back",
            )

    def _fetched(
        self, call: ast.Call, nodes: Sequence[ast.expr], kinds: list[Kind], run: Run | None
    ) -> None:
        names = [n.id for n in nodes if isinstance(n, ast.Name)]
        if len(set(names)) < len(names):
            self._say("TM231", call, f"`{self.code.said(call)}` fetches one value twice")
        for name, kind in zip(names, kinds, strict=False):
            value = self.proof.top.names.get(name)
            if name in self.proof.facts.lists:
                value = _one_of(value)
            looks = kind is Kind.EVALUATION and not isinstance(value, Tensor)
            if kind not in OPS and isinstance(value, _NO_TENSORS) or looks:
                self._say(
                    "TM209", call,
                    f"`{name}`, which is fetched, is no tensor: a run finds what a text names, and gives lists for lists",
                )  # fmt: skip
            if isinstance(value, Tensor) and value.summary and not self._written(call, name):
                self._say(
                    "TM231", call,
                    f"what `{name}` gives goes elsewhere than to `add_summary`; a step's summaries are written by the "
                    "helpers' writer only",
                )  # fmt: skip
            if isinstance(value, Tensor) and value.variable and kind is not Kind.VARIABLE:
                if run is None or run.trains:
                    self._say(
                        "TM209", call,
                        f"`{name}`, a variable of the towers, is fetched beside its update, which TF1 orders as it likes",
                    )  # fmt: skip

    def _written(self, call: ast.Call, name: str) -> bool:
        """Whether the summary that a run gives only goes to `writer.add_summary(…)`, or into a message that does."""
        scope = self.proof.function[0] if self.proof.function else self.code.tree
        adds = [
            c
            for c in ast.walk(scope)
            if isinstance(c, ast.Call)
            and isinstance(c.func, ast.Attribute)
            and c.func.attr == "add_summary"
            and isinstance(c.func.value, ast.Name)
            and self.kinds.of_name(c.func.value.id) is Kind.WRITER
        ]
        written = {id(argument(c, 0, "summary")) for c in adds}
        firsts = written | {id(each) for each in _parsed(self.code, scope, written)}
        if id(call) in firsts:
            return True
        fetches = argument(call, 0, "fetches")
        nodes = fetches.elts if isinstance(fetches, ast.List | ast.Tuple) else [fetches]
        for node in ast.walk(scope):
            if isinstance(node, ast.Expr) and node.value is call:
                return True
            if not (isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1):
                continue
            target: ast.AST | None = node.targets[0]
            if isinstance(fetches, ast.List | ast.Tuple):
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
                at = [k for k, n in enumerate(nodes) if isinstance(n, ast.Name) and n.id == name]
                target = parts[at[0]] if at and len(parts) == len(nodes) else None
            if not isinstance(target, ast.Name):
                return False
            reads = [
                n
                for n in ast.walk(scope)
                if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
            ]
            return all(id(n) in firsts for n in reads)
        return False

    def _taken_apart(self, call: ast.Call, count: int, statement: ast.stmt) -> bool:
        for node in ast.walk(statement):
            if isinstance(node, ast.Expr) and node.value is call:
                return True
            if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == count:
                    return True
        return False

    def _rebinds(self, nodes: Sequence[ast.expr], statement: ast.stmt) -> None:
        fetched = {n.id for n in nodes if isinstance(n, ast.Name)}
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and node.id in fetched
            ):
                self._say(
                    "TM209", node, f"`{node.id}` is fetched and bound anew by the same statements"
                )
                return

    # -- uses of the graph's names

    def _uses(self, item: Item, statement: ast.stmt, fetched: set[int]) -> None:
        allowed = set(fetched)
        for call in ast.walk(statement):
            if isinstance(call, ast.Call):
                self.services.asked(item, call, allowed)
        allowed |= self._fed(statement) | self._loaded(statement)
        top = self.proof.top
        asked = {id(c.func) for c in ast.walk(statement) if isinstance(c, ast.Call)}
        owners = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
        for node in ast.walk(statement):
            self.services.attribute(node, asked)
            if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
                continue
            if isinstance(node.ctx, ast.Del) and self.kinds.of_name(node.id) is not Kind.PYTHON:
                self._say("TM210", node, f"`{node.id}`, of which a step knows nothing, is deleted")
            if id(node) in allowed:
                continue
            kind = self.kinds.of_name(node.id)
            if node.id in top.homes and kind is not Kind.PYTHON:
                self._say(
                    "TM210",
                    node,
                    f"`{node.id}`, which only a step computes, is used outside `sess.run`",
                )
            elif kind is Kind.PLACEHOLDER and item.kind is Kind.PYTHON:
                self._say(
                    "TM210", node, f"`{node.id}`, a placeholder, is asked for more than to be fed"
                )
            elif kind is Kind.SESSION:
                self._say(
                    "TM205",
                    node,
                    f"the session `{node.id}` is handed on or asked for more than runs",
                )
            elif kind in (Kind.SAVER, Kind.WRITER) and id(node) not in owners:
                self._say(
                    "TM231",
                    node,
                    f"`{node.id}`, a {kind.value}, is handed on or asked for what it is",
                )
            elif kind in _OBJECTS and item.kind is Kind.PYTHON:
                self._say(
                    "TM210",
                    node,
                    f"`{node.id}` ({kind.value}) is used among the statements of the session",
                )

    def _loaded(self, statement: ast.stmt) -> set[int]:
        """The variable and the session of `lr.load(rate, sess)`, a statement of its own."""
        found: set[int] = set()
        for node in ast.walk(statement):
            call = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            variable, given = call.func.value, call.args
            if call.func.attr != "load" or len(given) != 2 or call.keywords:
                continue
            if isinstance(variable, ast.Name) and isinstance(given[1], ast.Name):
                kinds = self.kinds.of_name(variable.id), self.kinds.of_name(given[1].id)
                if kinds == (Kind.VARIABLE, Kind.SESSION):
                    found |= {id(variable), id(given[1])}
        return found

    def _fed(self, statement: ast.stmt) -> set[int]:
        """The placeholders in the dicts that runs are fed, where they stand as keys."""
        feeds: list[ast.expr | None] = []
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and self.services.is_run(node):
                feeds.append(argument(node, 1, "feed_dict"))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id in self.proof.facts.feed_dicts:
                    feeds.append(node.value)
        keys: set[int] = set()
        for feed in feeds:
            if isinstance(feed, ast.Dict):
                keys |= {id(key) for key in feed.keys}
            elif isinstance(
                feed, ast.Call
            ):  # of lists: `RunReader` knows where their names may stand
                keys |= {id(node) for node in ast.walk(feed)}
        return keys

    def _say(self, rule: str, node: ast.AST, message: str) -> None:
        self.proof.always(rule, self.code, node, message)


def proof_place(proof: TowerProof, run: Run) -> tuple[int, int]:
    where = proof.facts.file.span(run.call)
    return where.line, where.column


def _one_of(value: Value | None) -> Value | None:
    """What a list over the towers holds of each; what it is itself where that is no one tensor."""
    if isinstance(value, Items) and len(value.values) == 1:
        one = value.values[0][0]
        if isinstance(one, Tensor) and not one.summary:
            return one
    return value


def _parsed(code: Code, scope: ast.AST, written: set[int]) -> Iterator[ast.expr]:
    """What is read into messages, `summary.ParseFromString(value)`, to which only more values come before they are written."""
    others: set[str] = {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)}
    messages: set[str] = set()
    found: list[tuple[str, ast.expr]] = []
    for each in ast.walk(scope):
        if not isinstance(each, ast.Name) or id(each) in written:
            continue
        above = code.parents.get(id(each))
        further = code.parents.get(id(above))
        last = code.parents.get(id(further))
        match above, further, last:
            case ast.Assign(value=ast.Call(func=func, args=[], keywords=[])), _, _ if (
                not isinstance(each.ctx, ast.Load) and ast.unparse(func) == "tf.Summary"
            ):
                messages.add(each.id)
            case ast.Attribute(attr="ParseFromString"), ast.Call(
                args=[value], keywords=[]
            ), ast.Expr():
                found.append((each.id, value))
            case ast.Attribute(attr="value"), ast.Attribute(attr="add"), ast.Call(func=called) if (
                called is further
            ):
                pass
            case _:
                others.add(each.id)
    for name, value in found:
        if name in messages - others - code.shared_names:
            yield value
