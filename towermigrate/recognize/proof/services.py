"""Sessions, savers, writers and what else TensorFlow 1 did around a graph: what of it a plain loop has."""

from __future__ import annotations

import ast
import re

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External, Unknown
from towermigrate.recognize.kinds import Kind, builds_graph
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.saved_lists import trained_and_more
from towermigrate.recognize.scope import Item
from towermigrate.tree import all_nodes

_SAVES = {"save": (3, {"sess", "save_path", "global_step"}), "restore": (2, {"sess", "save_path"})}
_READ = {"last_checkpoints"}
_WRITES = {"add_summary", "flush", "close"}
_SESSIONS = ("tf.Session", "tf.InteractiveSession")
_BROAD = ("Exception", "BaseException", "tf.errors.OpError")
_DRAWS = re.compile(r"\bget_next\(|\bdequeue|\.train\.\w*batch(_join)?\(")
_RUNS = re.compile(r"\.run\(|\.eval\(")


class Services:
    """What the statements of the session ask of TensorFlow's objects; `allowed` gathers the nodes that may name the graph."""

    def __init__(self, proof: TowerProof) -> None:
        self.proof = proof
        self.code = proof.code
        self.kinds = proof.facts.kinds

    def scope(self, node: ast.AST) -> None:
        """Sessions that run the graph somewhere else, or are asked when they are closed; names that others read."""
        self._closed(node)
        self._of_errors(self.code.tree)  # functions around it catch what it raises
        self._declared(node)
        for call in all_nodes(node):
            if not isinstance(call, ast.Call):
                continue
            with self.proof.mode(False):
                value = self.proof.value(call.func, self.proof.top)
            if isinstance(value, External) and value.name in _SESSIONS:
                keywords = {k.arg for k in call.keywords}
                if call.args or not keywords <= {"config", "graph"}:
                    self.say(
                        "TM231", call, f"`{self.code.said(call)}` runs the graph somewhere else"
                    )

    def _closed(self, scope: ast.AST) -> None:
        """Sessions that are used behind the `with` that closes them."""
        inside: dict[str, set[int]] = {}
        for node in all_nodes(scope):
            for entered in node.items if isinstance(node, ast.With) else ():
                target = entered.optional_vars
                if isinstance(target, ast.Name) and self.kinds.of_name(target.id) is Kind.SESSION:
                    inside.setdefault(target.id, set()).update(id(each) for each in all_nodes(node))
        closed: dict[str, int] = {}
        for node in all_nodes(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if node.func.attr == "close" and isinstance(owner, ast.Name):
                    if self.kinds.of_name(owner.id) is Kind.SESSION:
                        closed.setdefault(owner.id, node.end_lineno or node.lineno)
        closing = {
            id(node.value)
            for node in all_nodes(scope)
            if isinstance(node, ast.Attribute) and node.attr == "close"
        }
        for node in all_nodes(scope):
            if not isinstance(node, ast.Name) or id(node) in closing:
                continue
            later = node.lineno > closed.get(node.id, node.lineno)
            if later or id(node) not in inside.get(node.id, {id(node)}):
                self.say(
                    "TM205", node,
                    f"the session `{node.id}` is used where it is closed, or outside of its `with`",
                )  # fmt: skip

    def _of_errors(self, scope: ast.AST) -> None:
        """What an error is asked for the operation of the graph that raised it; at the end of the data, for anything else."""
        for handler in all_nodes(scope):
            if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
                continue
            for node in all_nodes(handler):
                if isinstance(node, ast.Attribute) and node.attr in ("op", "node_def"):
                    if isinstance(node.value, ast.Name) and node.value.id == handler.name:
                        self.say(
                            "TM231", node,
                            f"`{self.code.said(node)}` asks an error for its operation, and a step's errors have none",
                        )  # fmt: skip
            if not self._asks_the_end(handler):
                continue
            self.say(
                "TM231", handler,
                f"`{handler.name}`, the end of the data, is asked what it is or says, which is another one in loop style",
            )  # fmt: skip
        for tried in all_nodes(scope):
            if not isinstance(tried, ast.Try):
                continue
            for handler in tried.handlers:
                caught = "" if handler.type is None else ast.unparse(handler.type)
                if "StopIteration" in caught and "OutOfRange" not in caught and self._runs(tried):
                    self.say(
                        "TM231", handler,
                        f"`except {caught}` stands around a run: in loop style the end of the data is a StopIteration too",
                    )  # fmt: skip

    def _asks_the_end(self, handler: ast.ExceptHandler) -> bool:
        """Whether a handler that the end of the data reaches does more with the error than to hand it on."""
        caught = "" if handler.type is None else ast.unparse(handler.type)
        ends = "OutOfRange" in caught
        if not ends and (caught not in _BROAD or not _DRAWS.search(self.code.text)):
            return False
        for node in all_nodes(handler):
            if not isinstance(node, ast.Name) or node.id != handler.name:
                continue
            user = self.code.parents.get(id(node))
            match user:
                case ast.Raise() | ast.Attribute(attr="error_code"):
                    continue
                case ast.Call(func=ast.Attribute(attr="request_stop")):
                    continue
                case ast.Call(func=ast.Name(id="type" | "isinstance")):
                    return True
                case ast.Attribute(attr="message" | "__class__" | "args"):
                    return True
            if ends:
                return True
        return False

    def _runs(self, tried: ast.Try) -> bool:
        """Whether what is tried runs something, or calls a function of the file that does."""
        text = "".join(ast.unparse(each) for each in tried.body)
        running = {
            each.name
            for each in self.code.nodes
            if isinstance(each, ast.FunctionDef) and _RUNS.search(ast.unparse(each))
        }
        called = {
            each.func.id
            for one in tried.body
            for each in all_nodes(one)
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        }
        return bool(_RUNS.search(text) or running & called)

    def _declared(self, scope: ast.AST) -> None:
        """Names of the graph, and of the tower loop, that the function binds for all: a step keeps them for itself."""
        loop = {
            each.id
            for each in all_nodes(self.proof.loop)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        for node in own_nodes(getattr(scope, "body", [])):
            for name in node.names if isinstance(node, ast.Global | ast.Nonlocal) else ():
                if name in loop or self.kinds.of_name(name) is not Kind.PYTHON:
                    self.say(
                        "TM210", node,
                        f"`{name}`, which a step keeps for itself, is bound for other functions too",
                    )  # fmt: skip

    def attribute(self, node: ast.AST, allowed: set[int]) -> None:
        """What is read of savers and writers without a call."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            kind = self.kinds.of_name(node.value.id)
            if kind is Kind.SAVER and node.attr in _READ and isinstance(node.ctx, ast.Load):
                return
            if kind in (Kind.SAVER, Kind.WRITER) and id(node) not in allowed:
                said = self.code.said(node)
                self.say(
                    "TM231", node, f"`{said}` asks for more than the helpers' {kind.value} has"
                )

    def asked(self, item: Item, call: ast.Call, allowed: set[int]) -> None:
        func = call.func
        with self.proof.mode(False):
            value = self.proof.value(func, self.proof.top) if not self.is_run(call) else Unknown()
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
            self.say(
                "TM231",
                call,
                f"`{self.code.said(call)}` asks more of a summary writer than to write summaries",
            )
        elif kind is Kind.COORDINATOR:
            allowed |= {id(n) for n in all_nodes(call)}

    def _saver(self, call: ast.Call, func: ast.Attribute, allowed: set[int]) -> None:
        most, keywords = _SAVES.get(func.attr, (0, set()))
        given = {k.arg for k in call.keywords}
        if (
            len(call.args) > most
            or not given <= keywords
            or any(isinstance(a, ast.Starred) for a in call.args)
        ):
            self.say(
                "TM231", call,
                f"`{self.code.said(call)}` asks more of a saver than to save or restore all it holds",
            )  # fmt: skip
            return
        session = argument(call, 0, "sess")
        step = argument(call, 2, "global_step")
        for node in (session, step):
            if node is not None:
                allowed |= {id(n) for n in all_nodes(node)}

    def _tf_call(self, item: Item, call: ast.Call, name: str, allowed: set[int]) -> None:
        last = name.rpartition(".")[2]
        keywords = {k.arg for k in call.keywords}
        if last in ("FileWriter", "SummaryWriter"):
            if (
                not keywords <= {"logdir", "graph", "graph_def", "flush_secs", "max_queue"}
                or len(call.args) > 2
            ):
                self.say(
                    "TM231",
                    call,
                    f"`{self.code.said(call)}` sets more than the folder of a summary writer",
                )
            allowed |= {id(n) for n in all_nodes(call)}
        elif last == "Saver":
            allowed |= {id(n) for n in all_nodes(call)}
            if (
                not keywords
                <= {"var_list", "max_to_keep", "keep_checkpoint_every_n_hours", "sharded"}
                or len(call.args) > 1
                or not self._whole(argument(call, 0, "var_list"))
            ):
                self.say(
                    "TM231",
                    call,
                    f"`{self.code.said(call)}` sets more of a saver than what it holds and keeps",
                )
        elif last in ("start_queue_runners", "Coordinator"):
            allowed |= {id(n) for n in all_nodes(call)}
        elif name in _SESSIONS:
            allowed |= {id(n) for n in all_nodes(call)}
        elif name in library.LISTS or name in ("tf.get_collection", "tf.get_collection_ref"):
            self._in_another_graph(call)
            describes = id(item.node) in self.proof.facts.described
            if not describes and not self._in_saver(call) and not self._in_loop_over(call):
                self.say(
                    "TM210",
                    call,
                    f"`{self.code.said(call)}` lists variables among the statements of the session",
                )
        elif name == "tf.get_default_graph" and self._is_given_to(
            call, "FileWriter", "SummaryWriter"
        ):
            return  # The helpers' writer writes no graph, which a notice says.
        elif name.startswith(
            (
                "tf.get_default_",
                "tf.import_",
                "tf.train.export",
                "tf.train.write_graph",
                "tf.saved_model",
            )
        ):
            self.say(
                "TM210",
                call,
                f"`{self.code.said(call)}` asks for the graph, of which there is none in a step",
            )
        elif item.kind is Kind.PYTHON and builds_graph(name) and "initialize" not in last:
            if self._clips_listed(call):
                return
            self.say(
                "TM210",
                call,
                f"`{self.code.said(call)}` adds to the graph among the statements of the session",
            )

    def _whole(self, node: ast.expr | None) -> bool:
        """Whether a saver holds all variables, or such of those that are trained as can be listed again."""
        if node is None or isinstance(node, ast.Constant) and node.value is None:
            return True
        trained, beside = trained_and_more(ast.unparse(node))
        if trained:
            return all(self.kinds.of_name(each) is Kind.VARIABLE for each in beside)
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return False
        with self.proof.mode(False):
            value = self.proof.value(node.func, self.proof.top)
        return isinstance(value, External) and value.name in library.LISTS

    def _in_another_graph(self, call: ast.Call) -> None:
        """What lists of the default graph where that is not the one that the towers are built in: none of theirs."""
        entered = [each for each in self._around(self.proof.loop) if self._enters_graph(each)]
        around = self._around(call)
        changing = [
            each for each in around if self._enters_graph(each) or self._enters_session(each)
        ]
        if not changing and not entered:
            return
        if changing and (changing[0] in entered or self._enters_session(changing[0])):
            return
        again = {name for each in entered for name in self._graphs(each)}
        if changing and again & set(self._graphs(changing[0])):
            return
        self.say(
            "TM210", call,
            f"`{self.code.said(call)}` asks the graph that is the default one there, which is not that of the towers",
        )  # fmt: skip

    @staticmethod
    def _graphs(statement: ast.With) -> list[str]:
        """The names of what a `with` makes the default one."""
        return [name for each in statement.items for name in _named_graphs(each.context_expr)]

    def _around(self, node: ast.AST) -> list[ast.With]:
        """The `with` statements around a node, in its function."""
        found: list[ast.With] = []
        each = self.code.parents.get(id(node))
        while each is not None and not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(each, ast.With):
                found.append(each)
            each = self.code.parents.get(id(each))
        return found

    def _enters_graph(self, statement: ast.With) -> bool:
        """`with graph.as_default():`; what a session does under that name makes no graph the default one."""
        for each in statement.items:
            match each.context_expr:
                case ast.Call(func=ast.Attribute(value=owner, attr="as_default")):
                    if not self._is_session(owner):
                        return True
        return False

    def _enters_session(self, statement: ast.With) -> bool:
        """`with tf.Session(graph=graph) as sess:`, in which the session's graph is the default one."""
        return any(self._is_session(each.context_expr) for each in statement.items)

    def _is_session(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.kinds.of_name(node.id) is Kind.SESSION
        if not isinstance(node, ast.Call):
            return False
        with self.proof.mode(False):
            value = self.proof.value(node.func, self.proof.top)
        return isinstance(value, External) and value.name in _SESSIONS

    def _in_loop_over(self, call: ast.Call) -> bool:
        """Whether it lists the variables that a loop, or a comprehension, only reads."""
        return any(
            isinstance(node, ast.For | ast.comprehension)
            and node.iter is call
            and isinstance(node.target, ast.Name)
            and self.kinds.of_name(node.target.id) is Kind.LISTED
            for node in self.code.nodes
        )

    def _clips_listed(self, call: ast.Call) -> bool:
        """`tf.clip_by_value(v, low, high)` of `sess.run(v.assign(tf.clip_by_value(v, low, high)))`, of a variable of a list."""
        match self.code.parents.get(id(call)), call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="assign"), args=[only]
            ) as update, ast.Call(func=ast.Attribute(attr="clip_by_value"), args=[first, _, _]):
                run = self.code.parents.get(id(update))
                return (
                    only is call
                    and isinstance(first, ast.Name)
                    and first.id == name
                    and self.kinds.of_name(name) is Kind.LISTED
                    and isinstance(run, ast.Call)
                    and self.is_run(run)
                )
        return False

    def _in_saver(self, call: ast.Call) -> bool:
        return self._is_given_to(call, "Saver")

    def _is_given_to(self, call: ast.Call, *makers: str) -> bool:
        for node in self.code.nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in makers
            ):
                if any(n is call for n in all_nodes(node)):
                    return True
        return False

    def is_run(self, call: ast.Call) -> bool:
        func = call.func
        return (
            isinstance(func, ast.Attribute)
            and func.attr == "run"
            and isinstance(func.value, ast.Name)
            and self.kinds.of_name(func.value.id) is Kind.SESSION
        )

    def say(self, rule: str, node: ast.AST, message: str) -> None:
        self.proof.always(rule, self.code, node, message)


def _named_graphs(node: ast.expr) -> list[str]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="as_default")):
            return [name]
    return []


def argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[position] if position < len(call.args) else None
