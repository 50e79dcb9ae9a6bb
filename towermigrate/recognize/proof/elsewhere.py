"""The graph of a program, asked for outside of the function that builds it: loop style has none there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External, Value
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.switched import (
    calls_of_tensorflow,
    makes_tensors,
    read_at_once,
)
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.proof.values import Module
from towermigrate.tree import all_nodes

_ASKS = library.LISTS | {
    "tf.get_collection", "tf.get_collection_ref", "tf.get_default_graph", "tf.get_default_session",
    "tf.local_variables", "tf.model_variables", "tf.moving_average_variables", "tf.summary.merge_all",
    "tf.merge_all_summaries", "tf.get_variable_scope", "tf.global_variables_initializer",
    "tf.local_variables_initializer", "tf.initialize_all_variables",
}  # fmt: skip
_NEEDS_A_GRAPH = frozenset({
    "tf.placeholder", "tf.Session", "tf.InteractiveSession", "tf.train.Saver", "tf.summary.FileWriter",
    "tf.train.SummaryWriter",
})  # fmt: skip
_LAST = frozenset(name.rpartition(".")[2] for name in _ASKS | _NEEDS_A_GRAPH)
_DEPTH = 4
"""Files that hand a name on."""
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def check_elsewhere(proof: TowerProof) -> None:
    """Report what other functions, and code around the program's, ask of its graph."""
    builder: ast.AST = proof.function[0] if proof.function else proof.code.tree
    moved = {id(n) for statement in proof.moved_nodes for n in all_nodes(statement)}
    its_own = [*own_nodes(getattr(builder, "body", []))]
    own = moved | {id(n) for n in [*its_own, *_chosen_from(its_own)]}
    staying = _Staying(proof, builder, moved)
    for code in proof.files:
        for call, name in _names(proof, code):
            if id(call) in own or id(call) in proof.moved_calls or not staying.runs(code, call):
                continue
            if name in _ASKS:
                said = "asks for the graph outside of the function that builds it; loop style has none there"
            elif id(call) not in proof.staying_calls and (
                name in _NEEDS_A_GRAPH or makes_tensors(name) and staying.is_beside(code, call)
            ):
                said = "stands outside of the function that builds the towers, where loop style has no graph"
            else:
                continue
            if not _has_its_own_graph(code, call):
                proof.always("TM210", code, call, f"`{code.said(call)}` {said}")


def _chosen_from(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What stands in the lambdas that `tf.cond` and `tf.case` choose from: a part of their statement."""
    for each in nodes:
        if isinstance(each, ast.Call) and ast.unparse(each.func) in ("tf.cond", "tf.case"):
            for one in all_nodes(each):
                if isinstance(one, ast.Lambda) and not ast.unparse(one.args):
                    yield from all_nodes(one)


class _Staying:
    """The functions that code which stays may call: that of files as they are read, and of the builder around the towers."""

    def __init__(self, proof: TowerProof, builder: ast.AST, moved: set[int]) -> None:
        self.proof = proof
        self.files = {code.path: code for code in proof.files}
        # Where each takes all names of others, the ways to a name are many.
        self._known_names: dict[tuple[str, str, int], list[tuple[Code, ast.AST]]] = {}
        # All functions by name, and for a class its methods: what an unknown object may have under that name.
        self.anywhere: dict[str, list[tuple[Code, ast.AST]]] = {}
        for code in proof.files:
            for name, found in code.named.items():
                self.anywhere.setdefault(name, []).extend((code, each) for each in found)
        self.at_once: set[int] = set()
        self.known: set[int] = set()
        waiting: list[tuple[Code, Sequence[ast.AST]]] = []
        for code in proof.files:
            nodes = list(own_nodes(read_at_once(proof, code)))
            self.at_once |= {id(n) for n in nodes}
            waiting.append((code, nodes))
        staying = [n for n in all_nodes(builder) if id(n) not in moved]
        waiting.append((proof.code, staying))
        self.known.add(id(builder))
        for code in proof.files:  # `tf.app.run()` calls the `main` of the script
            if "app.run(" in code.text:
                for where, one in self._defined(code, "main"):
                    self.known.add(id(one))
                    waiting.append((where, where.mentions(one)))
        self._follow(waiting, self.known, moved)
        self.of_builder: set[int] = set()
        self._follow([(proof.code, list(all_nodes(builder)))], self.of_builder, set())

    def _follow(
        self, waiting: list[tuple[Code, Sequence[ast.AST]]], known: set[int], moved: set[int]
    ) -> None:
        """Add the functions that nodes may call, directly or not."""
        while waiting:
            code, nodes = waiting.pop()
            for node in nodes:
                if id(node) in moved or self._for_another_graph(code, node):
                    continue
                for where, one in self._named(code, node):
                    if id(one) not in known:
                        known.add(id(one))
                        waiting.append((where, where.mentions(one)))

    def _for_another_graph(self, code: Code, node: ast.AST) -> bool:
        """Whether what a name is called for has to do with a graph that was made for it: `with tf.Graph().as_default():`."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(
            call := code.parents.get(id(node)), ast.Call
        ):
            return False
        return call.func is node and _stands_in_new_graph(code, call)

    def _named(self, code: Code, node: ast.AST) -> list[tuple[Code, ast.AST]]:
        """The functions of the tree that a name or an attribute may be."""
        if not isinstance(node, ast.Attribute):
            return self._defined(code, node.id) if isinstance(node, ast.Name) else []
        root: ast.expr = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        value = self._imported(code, root.id) if isinstance(root, ast.Name) else None
        if (
            isinstance(root, ast.Name)
            and self.proof.facts.kinds.of_name(root.id) is not Kind.PYTHON
        ):
            return []  # `sess.run`, `saver.save`
        if isinstance(value, Module) and root is node.value:
            return self._defined(value.code, node.attr)
        return [] if isinstance(value, External) else self.anywhere.get(node.attr, [])

    def _imported(self, code: Code, name: str) -> Value | None:
        """What an import of a file binds a name to; None where none does."""
        for bound in code.bindings.get(name, ()):
            if isinstance(bound, ast.Import | ast.ImportFrom):
                with self.proof.mode(False):
                    return self.proof.value(ast.Name(name, ast.Load()), self.proof.module(code))
        return None

    def _defined(self, code: Code, name: str, depth: int = 0) -> list[tuple[Code, ast.AST]]:
        """The functions that a name of a file may be, those of files that it imports the name from among them."""
        key = code.path, name, depth
        if key not in self._known_names:
            self._known_names[key] = self._found(code, name, depth)
        return self._known_names[key]

    def _found(self, code: Code, name: str, depth: int) -> list[tuple[Code, ast.AST]]:
        found = [(code, each) for each in code.named.get(name, ())]
        if depth == _DEPTH:
            return found
        named, stars = code.names_from.get(name, []), code.names_from.get("*", [])
        for statement, own in named + [(each, name) for each, _ in stars]:
            module = "." * statement.level + (statement.module or "")
            file = self.proof.codes.imported(code.path, module)
            if file is not None and file.path in self.files:
                found += self._defined(file, own, depth + 1)
        return found

    def runs(self, code: Code, node: ast.AST) -> bool:
        """Whether code that stays may come to a place."""
        around = [each for each in _around(code, node) if isinstance(each, _DEFINITION)]
        functions = [each for each in around if not isinstance(each, ast.Lambda)]
        if not functions:
            return bool(around) or id(node) in self.at_once
        return any(id(each) in self.known for each in functions)

    def is_beside(self, code: Code, node: ast.AST) -> bool:
        """Whether a place is in a function that runs in front of the builder, or behind it, and not for it."""
        functions = [each for each in _around(code, node) if isinstance(each, _DEFINITION)]
        return any(id(each) in self.known - self.of_builder for each in functions)


def _names(proof: TowerProof, code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Where a file calls one of these functions, or hands it on, with its name."""
    called = {id(call.func) for call, _ in calls_of_tensorflow(proof, code)}
    yield from calls_of_tensorflow(proof, code)
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _LAST and id(node) not in called:
            with proof.mode(False):
                value = proof.value(node, proof.module(code))
            if isinstance(value, External):
                yield node, value.name


def _around(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    inner: ast.AST | None = node
    while (inner := code.parents.get(id(inner))) is not None:
        yield inner


def _stands_in_new_graph(code: Code, call: ast.AST) -> bool:
    """Whether a call stands in `with tf.Graph().as_default():`, in no function of that."""
    for each in _around(code, call):
        if isinstance(each, _DEFINITION):
            return False
        if isinstance(each, ast.With):
            return _opens_graph(each)
    return False


@lru_cache(maxsize=1024)
def _opens_graph(node: ast.With) -> bool:
    return ast.unparse(node.items[0].context_expr).endswith(".Graph().as_default()")


def _has_its_own_graph(code: Code, call: ast.AST) -> bool:
    """Whether a call stands in `with tf.Graph().as_default():`, or in the like."""
    return any(
        isinstance(each, ast.With)
        and any("as_default" in ast.unparse(item.context_expr) for item in each.items)
        for each in _around(code, call)
    )
