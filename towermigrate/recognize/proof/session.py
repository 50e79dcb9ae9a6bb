"""What runs fetch, draw and give back, and what savers and writers are asked: as a plain loop can give it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External, Unknown, Value
from towermigrate.recognize.analysis import Run
from towermigrate.recognize.kinds import OPS, Kind, builds_graph
from towermigrate.recognize.proof import library
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

_SAVES = {"save": (3, {"sess", "save_path", "global_step"}), "restore": (2, {"sess", "save_path"})}
_WRITES = {"add_summary", "flush", "close"}
_NO_TENSORS = (Items, Text, Python, Setting, Static, Index, Differs)
_SESSIONS = ("tf.Session", "tf.InteractiveSession")
_OBJECTS = {Kind.OPTIMIZER, Kind.EMA, Kind.SCHEDULE, Kind.VARIABLE}


class SessionCheck:
    """Looks at the statements that stay, in the order in which the proof runs them."""

    def __init__(self, proof: TowerProof, runs: Sequence[Run]) -> None:
        self.proof = proof
        self.code = proof.code
        self.kinds = proof.facts.kinds
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
                if isinstance(call, ast.Call) and self._is_run(call):
                    fetched = _argument(call, 0, "fetches")
                    if fetched is not None:
                        inside |= {id(n) for n in ast.walk(fetched)}
                    self._run(call, node)
            self._uses(item, node, inside)

    def _is_run(self, call: ast.Call) -> bool:
        func = call.func
        return (
            isinstance(func, ast.Attribute)
            and func.attr == "run"
            and isinstance(func.value, ast.Name)
            and self.kinds.of_name(func.value.id) is Kind.SESSION
        )

    # -- runs

    def _run(self, call: ast.Call, statement: ast.stmt) -> None:
        fetches = _argument(call, 0, "fetches")
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
        if kinds == [Kind.LISTED]:
            return
        self._rebinds(nodes, statement)
        self._fetched(call, nodes, kinds, run)
        if all(k is Kind.VARIABLE for k in kinds) and _argument(call, 1, "feed_dict") is None:
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
            self._say(
                "TM233", call,
                f"`{self.code.said(call)}` makes {len(run.trains)} updates in one run, which TF1 orders as it likes",
            )  # fmt: skip

    def _is_caught(self, call: ast.Call) -> bool:
        """Whether a call stands in a `try` that names the errors of a feed of the wrong shape."""
        inner: ast.AST | None = call
        while (inner := self.code.parents.get(id(inner))) is not None:
            for handler in inner.handlers if isinstance(inner, ast.Try) else ():
                caught = ast.unparse(handler.type) if handler.type is not None else ""
                if "ValueError" in caught or "TypeError" in caught:
                    return True
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
        if all(m.startswith("all tower:") for m in missing):
            return f"it is not shown that `{said}` needs the inputs of every tower; a step draws for all of them"
        return f"it is not shown that `{said}` needs all inputs of the pipeline; a step draws each of them"

    def _place(self, call: ast.Call, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(
                node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.GeneratorExp
            ):
                if any(n is call for n in ast.walk(node)):
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
        """Whether the summary that a run gives only goes to `writer.add_summary(…)`."""
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
        firsts = {id(_argument(c, 0, "summary")) for c in adds}
        if id(call) in firsts:
            return True
        fetches = _argument(call, 0, "fetches")
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
                self._service(item, call, allowed)
        allowed |= self._fed(statement) | self._loaded(statement)
        top = self.proof.top
        asked = {id(c.func) for c in ast.walk(statement) if isinstance(c, ast.Call)}
        owners = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
        for node in ast.walk(statement):
            self._asked(node, asked)
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
            if isinstance(node, ast.Call) and self._is_run(node):
                feeds.append(_argument(node, 1, "feed_dict"))
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

    def _asked(self, node: ast.AST, allowed: set[int]) -> None:
        """What is read of savers and writers without a call."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            kind = self.kinds.of_name(node.value.id)
            if kind in (Kind.SAVER, Kind.WRITER) and id(node) not in allowed:
                said = self.code.said(node)
                self._say(
                    "TM231", node, f"`{said}` asks for more than the helpers' {kind.value} has"
                )

    def scope(self, node: ast.AST) -> None:
        """Sessions that run the graph somewhere else, or are asked when they are closed; names that others read."""
        self._closed(node)
        self._of_errors(node)
        self._declared(node)
        for call in ast.walk(node):
            if not isinstance(call, ast.Call):
                continue
            with self.proof.mode(False):
                value = self.proof.value(call.func, self.proof.top)
            if isinstance(value, External) and value.name in _SESSIONS:
                keywords = {k.arg for k in call.keywords}
                if call.args or not keywords <= {"config", "graph"}:
                    self._say(
                        "TM231", call, f"`{self.code.said(call)}` runs the graph somewhere else"
                    )

    def _closed(self, scope: ast.AST) -> None:
        """Sessions that are used behind the `with` that closes them."""
        inside: dict[str, set[int]] = {}
        for node in ast.walk(scope):
            for entered in node.items if isinstance(node, ast.With) else ():
                target = entered.optional_vars
                if isinstance(target, ast.Name) and self.kinds.of_name(target.id) is Kind.SESSION:
                    inside.setdefault(target.id, set()).update(id(each) for each in ast.walk(node))
        closed: dict[str, int] = {}
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if node.func.attr == "close" and isinstance(owner, ast.Name):
                    if self.kinds.of_name(owner.id) is Kind.SESSION:
                        closed.setdefault(owner.id, node.end_lineno or node.lineno)
        closing = {
            id(node.value)
            for node in ast.walk(scope)
            if isinstance(node, ast.Attribute) and node.attr == "close"
        }
        for node in ast.walk(scope):
            if not isinstance(node, ast.Name) or id(node) in closing:
                continue
            later = node.lineno > closed.get(node.id, node.lineno)
            if later or id(node) not in inside.get(node.id, {id(node)}):
                self._say(
                    "TM205", node,
                    f"the session `{node.id}` is used where it is closed, or outside of its `with`",
                )  # fmt: skip

    def _of_errors(self, scope: ast.AST) -> None:
        """What an error is asked for the operation of the graph that raised it."""
        for handler in ast.walk(scope):
            if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
                continue
            for node in ast.walk(handler):
                if isinstance(node, ast.Attribute) and node.attr in ("op", "node_def"):
                    if isinstance(node.value, ast.Name) and node.value.id == handler.name:
                        self._say(
                            "TM231", node,
                            f"`{self.code.said(node)}` asks an error for its operation, and a step's errors have none",
                        )  # fmt: skip

    def _declared(self, scope: ast.AST) -> None:
        """Names of the graph, and of the tower loop, that the function binds for all: a step keeps them for itself."""
        loop = {
            each.id
            for each in ast.walk(self.proof.loop)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        for node in own_nodes(getattr(scope, "body", [])):
            for name in node.names if isinstance(node, ast.Global | ast.Nonlocal) else ():
                if name in loop or self.kinds.of_name(name) is not Kind.PYTHON:
                    self._say(
                        "TM210", node,
                        f"`{name}`, which a step keeps for itself, is bound for other functions too",
                    )  # fmt: skip

    def _service(self, item: Item, call: ast.Call, allowed: set[int]) -> None:
        func = call.func
        with self.proof.mode(False):
            value = self.proof.value(func, self.proof.top) if not self._is_run(call) else Unknown()
        if isinstance(value, External) and value.name.startswith("tf."):
            self._tf_call(item, call, value.name, allowed)
            return
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return
        kind = self.kinds.of_name(func.value.id)
        if kind is Kind.SESSION and func.attr in ("run", "close", "as_default"):
            if func.attr != "as_default":
                allowed.add(id(func.value))
        elif kind is Kind.SAVER:
            self._saver(call, func, allowed)
        elif kind is Kind.WRITER and func.attr not in _WRITES:
            self._say(
                "TM231",
                call,
                f"`{self.code.said(call)}` asks more of a summary writer than to write summaries",
            )
        elif kind is Kind.COORDINATOR:
            allowed |= {id(n) for n in ast.walk(call)}

    def _saver(self, call: ast.Call, func: ast.Attribute, allowed: set[int]) -> None:
        most, keywords = _SAVES.get(func.attr, (0, set()))
        given = {k.arg for k in call.keywords}
        if (
            len(call.args) > most
            or not given <= keywords
            or any(isinstance(a, ast.Starred) for a in call.args)
        ):
            self._say(
                "TM231", call,
                f"`{self.code.said(call)}` asks more of a saver than to save or restore all it holds",
            )  # fmt: skip
            return
        session = _argument(call, 0, "sess")
        step = _argument(call, 2, "global_step")
        for node in (session, step):
            if node is not None:
                allowed |= {id(n) for n in ast.walk(node)}

    def _tf_call(self, item: Item, call: ast.Call, name: str, allowed: set[int]) -> None:
        last = name.rpartition(".")[2]
        keywords = {k.arg for k in call.keywords}
        if last in ("FileWriter", "SummaryWriter"):
            if (
                not keywords <= {"logdir", "graph", "graph_def", "flush_secs", "max_queue"}
                or len(call.args) > 2
            ):
                self._say(
                    "TM231",
                    call,
                    f"`{self.code.said(call)}` sets more than the folder of a summary writer",
                )
            allowed |= {id(n) for n in ast.walk(call)}
        elif last == "Saver":
            allowed |= {id(n) for n in ast.walk(call)}
            if (
                not keywords
                <= {"var_list", "max_to_keep", "keep_checkpoint_every_n_hours", "sharded"}
                or len(call.args) > 1
                or not self._whole(_argument(call, 0, "var_list"))
            ):
                self._say(
                    "TM231",
                    call,
                    f"`{self.code.said(call)}` sets more of a saver than what it holds and keeps",
                )
        elif last in ("start_queue_runners", "Coordinator"):
            allowed |= {id(n) for n in ast.walk(call)}
        elif name in _SESSIONS:
            allowed |= {id(n) for n in ast.walk(call)}
        elif name in library.LISTS or name in ("tf.get_collection", "tf.get_collection_ref"):
            describes = id(item.node) in self.proof.facts.described
            if not describes and not self._in_saver(call) and not self._in_loop_over(call):
                self._say(
                    "TM210",
                    call,
                    f"`{self.code.said(call)}` lists variables among the statements of the session",
                )
        elif name.startswith(
            (
                "tf.get_default_",
                "tf.import_",
                "tf.train.export",
                "tf.train.write_graph",
                "tf.saved_model",
            )
        ):
            self._say(
                "TM210",
                call,
                f"`{self.code.said(call)}` asks for the graph, of which there is none in a step",
            )
        elif item.kind is Kind.PYTHON and builds_graph(name) and "initialize" not in last:
            self._say(
                "TM210",
                call,
                f"`{self.code.said(call)}` adds to the graph among the statements of the session",
            )

    def _whole(self, node: ast.expr | None) -> bool:
        """Whether a saver holds all variables, or all that are trained."""
        if node is None or isinstance(node, ast.Constant) and node.value is None:
            return True
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return False
        with self.proof.mode(False):
            value = self.proof.value(node.func, self.proof.top)
        return isinstance(value, External) and value.name in library.LISTS

    def _in_loop_over(self, call: ast.Call) -> bool:
        """Whether it lists the variables that a loop, or a comprehension, only reads."""
        return any(
            isinstance(node, ast.For | ast.comprehension)
            and node.iter is call
            and isinstance(node.target, ast.Name)
            and self.kinds.of_name(node.target.id) is Kind.LISTED
            for node in self.code.nodes
        )

    def _in_saver(self, call: ast.Call) -> bool:
        for node in self.code.nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "Saver"
            ):
                if any(n is call for n in ast.walk(node)):
                    return True
        return False

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


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[position] if position < len(call.args) else None
