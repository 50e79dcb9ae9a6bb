"""What a program asks of its checkpoints that those of loop style have not: the graph's own file, variables without a name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof.code import Code, last_name
from towermigrate.recognize.proof.towers import TowerProof

_LISTS = frozenset({
    "listdir", "scandir", "glob", "iglob", "walk", "iterdir", "rglob", "Glob", "ListDirectory", "Walk",
})  # fmt: skip
_EVERYWHERE = frozenset(
    {
        "os",
        "join",
        "format",
        "str",
        "FLAGS",
        "flags",
        "args",
        "self",
        "config",
        "tf",
        "app",
        "np",
        "",
    }
)
_COMMON = frozenset(
    "path root dir dirs folder file files filename name names data f d p x i k step epoch out directory".split()
)
"""Names that say nothing of which folder is meant; what they are bound to does."""
_META = re.compile(r"\.meta(?![\w.])")
_DEPTH = 4
"""From a name to what it was bound to, and on from there."""


def check_saved(proof: TowerProof) -> None:
    """Report what asks for more of a checkpoint than its values, and variables that its saver would not hold."""
    savers = {name for name, kind in proof.facts.kinds.env.items() if kind is Kind.SAVER}
    if not savers:
        return
    words = _Words(proof.files)
    saves = [
        call
        for call in proof.code.nodes
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "save"
        and last_name(call.func.value) in savers
    ]
    written = {
        word
        for call in saves
        for given in [*call.args, *(each.value for each in call.keywords)]
        for word in words.of(given)
    }
    written -= savers | {"sess", "session", *_EVERYWHERE}
    for code in proof.files:
        lists = _LISTS | {
            alias.asname or alias.name
            for node in code.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name in _LISTS
        }
        for node in code.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = _META.search(node.value) or node.value == "meta"
                if named and not isinstance(code.parents.get(id(node)), ast.Expr):
                    proof.always(
                        "TM231", code, node,
                        f"`{code.said(node)}` names the file of the graph, which the helpers' saver does not write",
                    )  # fmt: skip
            elif isinstance(node, ast.Call) and last_name(node.func) in lists:
                asked = words.of(node) - lists - set(_EVERYWHERE)
                if asked & written or not asked:
                    proof.always(
                        "TM231", code, node,
                        f"`{code.said(node)}` may list the checkpoints, which the helpers' saver writes without the graph's file",
                    )  # fmt: skip
    _nameless(proof)


_Key = tuple[object, str]


class _Words:
    """What paths are made of, in the files of a process: names, attributes, parts of texts, and what those are bound to."""

    def __init__(self, files: list[Code]) -> None:
        self.bound: dict[_Key, list[ast.AST]] = {}
        self.scope: dict[int, object] = {}
        self.file: dict[int, str] = {}
        functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for code in files:
            self.file.update((id(node), code.path) for node in code.nodes)
            for function in code.definitions:  # outer ones first
                functions.setdefault(function.name, []).append(function)
                self.scope.update((id(node), id(function)) for node in ast.walk(function))
        for code in files:
            for node in code.nodes:
                self._bind(node, functions)

    def _bind(
        self, node: ast.AST, functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]
    ) -> None:
        for target, value in _bindings(node):
            for each in ast.walk(target):
                if isinstance(each, ast.Attribute):
                    self._add(("attribute", each.attr), [value])
                elif isinstance(each, ast.Name):
                    where = self.scope.get(id(each), self.file.get(id(each)))
                    self._add((where, each.id), [value])
        if isinstance(node, ast.Call):
            for function in functions.get(last_name(node.func), ()):
                for each in [*function.args.args, *function.args.kwonlyargs]:
                    given = [one.value for one in node.keywords if one.arg == each.arg]
                    self._add((id(function), each.arg), [*node.args, *given])
            for one in node.keywords:
                self._add(("attribute", one.arg or ""), [one.value])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.args.args:
                self._add((id(node), each.arg), node.args.defaults)
            given_back = (n.value for n in ast.walk(node) if isinstance(n, ast.Return))
            self._add(("call", node.name), [n for n in given_back if n])

    def _add(self, key: _Key, values: Iterable[ast.AST]) -> None:
        self.bound.setdefault(key, []).extend(values)

    def of(self, node: ast.AST) -> set[str]:
        found: set[str] = set()
        seen: set[_Key] = set()
        waiting: list[tuple[ast.AST, int]] = [(node, _DEPTH)]
        while waiting:
            each, depth = waiting.pop()
            if isinstance(each, ast.Attribute) and ast.unparse(each) == "os.path":
                continue
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                found.update(each.value.strip("./").split("/"))
            keys: list[_Key] = []
            if isinstance(each, ast.Name):
                own = (self.scope.get(id(each)), each.id)
                keys = [own if own in self.bound else (self.file.get(id(each)), each.id)]
            elif isinstance(each, ast.Attribute):
                keys = [("attribute", each.attr)]
            elif isinstance(each, ast.Call):
                keys = [("call", last_name(each.func))]
            for key in keys:
                if key[0] != "call" and key[1] not in _EVERYWHERE | _COMMON:
                    found.add(key[1])
                if key not in seen and key[1] not in _EVERYWHERE and depth:
                    seen.add(key)
                    waiting += [(one, depth - 1) for one in self.bound.get(key, ())]
            waiting += [(one, depth) for one in ast.iter_child_nodes(each)]
        return found


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What a statement or an expression binds, each with what it is bound to."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _nameless(proof: TowerProof) -> None:
    """Report variables that the function makes and gives no name: a saver is handed those that it can name."""
    builder: ast.AST = proof.function[0] if proof.function else proof.code.tree
    moved = {id(n) for statement in proof.moved_nodes for n in ast.walk(statement)}
    for node in own_nodes(getattr(builder, "body", [])):
        if not isinstance(node, ast.Call) or id(node) in moved | proof.makes_weights:
            continue
        if last_name(node.func) not in ("Variable", "get_variable"):
            continue
        if isinstance(proof.code.parents.get(id(node)), ast.Assign | ast.AnnAssign | ast.Attribute):
            continue
        with proof.mode(False):
            value = proof.value(node.func, proof.top)
        if isinstance(value, External) and value.name in ("tf.Variable", "tf.get_variable"):
            proof.always(
                "TM231", proof.code, node,
                f"`{proof.code.said(node)}` makes a variable without a name of its own, which the saver would not hold",
            )  # fmt: skip
