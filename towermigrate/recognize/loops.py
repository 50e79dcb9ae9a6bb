"""Find every loop that copies a model per device, wherever it stands and however it is spelled.

A tower loop picks a device for each of its values and builds a model there, in its own body, through a
context manager or in a function that it calls, or it computes one list of gradients per value. Loops that
only place something beside a variable (`with tf.device(v.device)`), work on gradients that are there
already, or place some of a model's layers, each of which takes what the layer before gave, are no towers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.hints import DEPTH, OVER_DEVICES
from towermigrate.recognize.layer_loops import places_layer
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import (
    binds,
    calls,
    children,
    code,
    dotted,
    elements,
    extent,
    reads,
    statements,
    walk,
)
from towermigrate.recognize.while_loops import as_for
from towermigrate.tree import HELPERS_COPY

_OVER_GRADIENTS = re.compile(r"grad", re.IGNORECASE)
_MODEL = (
    "tf.get_variable", "tf.Variable", "tf.layers.", "tf.keras.", "tf.nn.", "tf.losses.", "tf.gradients",
    "tf.variable_scope", "tf.name_scope", "tf.op_scope", "tf.contrib.layers.", "tf.contrib.slim.",
    "tf.contrib.rnn.", "tf.contrib.losses.",
)  # fmt: skip
_PLAIN = {
    "append", "extend", "insert", "update", "add", "pop", "get", "items", "keys", "values", "format", "join",
    "split", "replace", "range", "xrange", "len", "str", "int", "float", "min", "max", "zip", "enumerate", "print",
    "isinstance", "list", "tuple", "dict", "set", "sorted", "sum", "info", "warning", "warn", "debug", "error",
}  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A loop that looks like a tower loop, the function it stands in and that function's statements.

    `loop` stands for what is written where that is no `for`: `turns` is the `while`, `written` the comprehension or
    the call of `map` that it stands for.
    """

    file: SourceFile
    loop: cst.For
    function: cst.FunctionDef | None
    qualified: str | None
    block: Sequence[cst.BaseStatement]
    turns: cst.While | None = None
    written: cst.BaseExpression | None = None


class LoopFinder:
    """Finds the tower loops of a tree's files; what functions do is looked up once."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._picks: dict[tuple[int, int], frozenset[str]] = {}
        self._computes: dict[tuple[int, int], bool] = {}

    def loops(self, file: SourceFile) -> list[Candidate]:
        """Outermost tower loops of a file, in source order."""
        found: list[Candidate] = []
        scopes: list[tuple[str | None, cst.FunctionDef | None, Sequence[cst.BaseStatement]]] = [
            (None, None, statements(file.module))
        ]
        for qualified, function in file.functions.items():
            scopes.append((qualified, function.node, statements(function.node.body)))
        for qualified_name, node, block in scopes:
            whole = file.module if node is None else node.body
            for loop in self._tower_loops(file, block):
                turns = loop if isinstance(loop, cst.While) else None
                stands_for = as_for(loop, whole) if isinstance(loop, cst.While) else loop
                found.append(Candidate(file, stands_for, node, qualified_name, block, turns))
        found.sort(key=lambda c: extent(file.module, c.turns or c.loop) or (0, 0))
        return found

    def spreads(self, file: SourceFile) -> list[Candidate]:
        """Comprehensions, and calls of `map`, that build a tower for each value, as the loops they stand for."""
        found: list[Candidate] = []
        if not any(word in file.text for word in ("for ", "map(")):
            return found
        scopes: list[tuple[str | None, cst.FunctionDef | None, cst.CSTNode]]
        scopes = [(None, None, file.module)]
        scopes += [(name, each.node, each.node.body) for name, each in file.functions.items()]
        for qualified, function, block in scopes:
            for node in walk(block, into_functions=False):
                loop = _as_loop(file, node)
                if loop is not None and self._picks_device(file, loop):
                    assert isinstance(node, cst.BaseExpression)
                    found.append(Candidate(file, loop, function, qualified, (), written=node))
        return found

    def _tower_loops(
        self, file: SourceFile, block: Iterable[cst.CSTNode]
    ) -> Iterator[cst.For | cst.While]:
        """Tower loops of one scope; a loop over epochs is looked into, a tower loop is not."""
        for node in block:
            if isinstance(node, cst.For):
                if _is_rewritten(file, node):
                    continue
                inner = list(self._tower_loops(file, children(node.body)))
                if _has_rewritten(file, node):
                    yield from inner
                elif self._picks_device(file, node) or not inner and self._collects(file, node):
                    yield node
                else:
                    yield from inner
            elif isinstance(node, cst.While):
                inner = list(self._tower_loops(file, _suites(node)))
                turn = as_for(node)
                if not inner and not _has_rewritten(file, node):
                    if self._picks_device(file, turn) or self._collects(file, turn):
                        inner = [node]
                yield from inner
            elif isinstance(node, cst.BaseCompoundStatement) and not isinstance(
                node, cst.FunctionDef | cst.ClassDef
            ):
                yield from self._tower_loops(file, _suites(node))
            elif isinstance(node, cst.BaseSuite):
                yield from self._tower_loops(file, children(node))

    def _picks_device(self, file: SourceFile, loop: cst.For) -> bool:
        """Whether each value of the loop gets a device of its own and a model on it."""
        values = _derived(loop.body, _bound_by(loop.target))
        if any(_runs_session(c) for c in calls(loop.body)):
            return False
        header = f"{code(loop.target)} {code(loop.iter)}"
        over_devices = OVER_DEVICES.search(header) is not None
        over_gradients = _OVER_GRADIENTS.search(header) is not None
        for inner in walk(loop.body):
            if isinstance(inner, cst.With):
                for item in inner.items:
                    if isinstance(item.item, cst.Call) and self._device(
                        file, item.item, values, DEPTH
                    ):
                        if self._computes_gradients(file, loop.body, DEPTH):
                            return True
                        beside = not over_devices and not _picks(item.item, values)
                        beside = beside or not over_devices and places_layer(loop, inner, values)
                        if not over_gradients and not beside and _builds(file, loop.body):
                            return True
            elif isinstance(inner, cst.Call) and not over_gradients:
                function = self.tree.resolve(file, inner.func)
                if function is None:
                    continue
                if self._decides(inner, values, function, DEPTH) and _builds(
                    function.file, function.node.body
                ):
                    return True
                if over_devices and self._computes_gradients(function.file, function.node, DEPTH):
                    return True
        return False

    def _collects(self, file: SourceFile, loop: cst.For) -> bool:
        """Whether the loop computes gradients for each of its values and puts them on a list."""
        if OVER_DEVICES.search(f"{code(loop.target)} {code(loop.iter)}"):
            return any(_computes(file, c) for c in calls(loop.body))
        made: set[str] = set()
        for inner in walk(loop.body):
            if isinstance(inner, cst.Assign):
                if any(_computes(file, c, collected=True) for c in calls(inner.value)):
                    made |= set(binds(inner))
            elif (
                isinstance(inner, cst.Call)
                and isinstance(inner.func, cst.Attribute)
                and inner.func.attr.value == "append"
            ):
                for arg in inner.args:
                    if made & set(reads(arg)) or any(
                        _computes(file, c, collected=True) for c in calls(arg)
                    ):
                        return True
        return False

    def _device(self, file: SourceFile, call: cst.Call, values: set[str], depth: int) -> bool:
        """Whether entering the call as a context opens a device that depends on one of the values."""
        if not values & set(reads(call)):
            return False
        if is_device(file, call):
            return True
        function = self.tree.resolve(file, call.func) if depth else None
        return function is not None and bool(self._opens_device(function, depth - 1))

    def _decides(self, call: cst.Call, values: set[str], function: Function, depth: int) -> bool:
        """Whether a call gives one of the values to a parameter of the function that decides on a device in it."""
        given = [number for number, arg in enumerate(call.args) if _picks(arg.value, values)]
        of_its_own = function.is_method and _picks(call.func, values)
        if not given and not of_its_own:
            return False
        wanted = self._opens_device(function, depth)
        parameters = _parameters_in_order(function.node)
        for number in given:
            arg = call.args[number]
            if arg.star or any(each.star for each in call.args[:number]):
                return bool(wanted)
            if arg.keyword is not None:
                if arg.keyword.value in wanted or arg.keyword.value not in parameters:
                    return bool(wanted)
                continue
            place = number + _is_bound(call, function)
            if place >= len(parameters):
                return bool(wanted)
            if parameters[place] in wanted:
                return True
        return of_its_own and bool(parameters) and parameters[0] in wanted

    def _opens_device(self, function: Function, depth: int) -> frozenset[str]:
        """The parameters of a function of the tree that decide on a device which it opens."""
        key = (id(function.node), depth)
        if key in self._picks:
            return self._picks[key]
        self._picks[key] = frozenset()
        names = _parameter_names(function.node)
        if self._opens_by(function, names, depth):
            self._picks[key] = frozenset(
                name for name in names if self._opens_by(function, {name}, depth)
            )
        return self._picks[key]

    def _opens_by(self, function: Function, names: set[str], depth: int) -> bool:
        """Whether a function opens a device that depends on some of its parameters."""
        given = _derived(function.node.body, names)
        if "device" in function.file.text and any(
            isinstance(inner, cst.With)
            and any(
                isinstance(i.item, cst.Call)
                and _picks(i.item, given)
                and self._device(function.file, i.item, given, depth)
                for i in inner.items
            )
            for inner in walk(function.node.body)
        ):
            return True
        return depth > 0 and any(
            other is not None and self._decides(call, given, other, depth - 1)
            for call in calls(function.node.body)
            if _picks(call, given)
            for other in [self.tree.resolve(function.file, call.func)]
        )

    def _computes_gradients(self, file: SourceFile, node: cst.CSTNode, depth: int) -> bool:
        """Whether gradients are computed below a node, in the functions of the tree it calls too."""
        key = (id(node), depth)
        if key in self._computes:
            return self._computes[key]
        self._computes[key] = False
        inside = calls(node)
        found = any(_computes(file, c) for c in inside)
        if not found and depth:
            for call in inside:
                function = self.tree.resolve(file, call.func)
                if function is not None and function.node is not node:
                    if self._computes_gradients(function.file, function.node, depth - 1):
                        found = True
                        break
        self._computes[key] = found
        return found


def _is_rewritten(file: SourceFile, loop: cst.For) -> bool:
    """Whether a loop goes over `tm.towers(…)` already, as session style writes it."""
    name = dotted(loop.iter.func) if isinstance(loop.iter, cst.Call) else None
    if name is None:
        return False
    root, _, rest = name.partition(".")
    helpers = ("towermigrate.helpers", HELPERS_COPY)
    return rest == "towers" and (file.imports.get(root) in helpers or root == HELPERS_COPY)


def _has_rewritten(file: SourceFile, loop: cst.For | cst.While) -> bool:
    """Whether the towers of a loop over epochs or attempts are written in session style already."""
    return "towers(" in file.text and any(
        isinstance(node, cst.For) and _is_rewritten(file, node) for node in walk(loop.body)
    )


def _as_loop(file: SourceFile, node: cst.CSTNode) -> cst.For | None:
    """The loop that a comprehension or a call of `map` stands for; its parts are the author's own nodes."""
    if isinstance(node, cst.ListComp | cst.SetComp | cst.GeneratorExp):
        part, body = node.for_in, node.elt
        if part.inner_for_in is not None or part.asynchronous is not None:
            return None
        target, over = part.target, part.iter
    elif isinstance(node, cst.Call) and dotted(node.func) == "map" and len(node.args) > 1:
        if any(arg.star or arg.keyword for arg in node.args):
            return None
        given = node.args[0].value
        target, over = cst.Name("_tower"), node.args[1].value
        body = _partly_given(file, given) or cst.Call(given, [cst.Arg(cst.Name("_tower"))])
        if isinstance(given, cst.Lambda):
            if len(given.params.params) != 1:
                return None
            target, body = given.params.params[0].name, given.body
    else:
        return None
    if not any(isinstance(each, cst.Call) for each in walk(body)):
        return None
    line = cst.SimpleStatementLine([cst.Expr(body)])
    loop = cst.For(target, over, cst.IndentedBlock([line]))
    return None if _is_rewritten(file, loop) else loop


def _partly_given(file: SourceFile, given: cst.BaseExpression) -> cst.Call | None:
    """The call of `f` that `functools.partial(f, opt)` makes of a tower."""
    if not isinstance(given, cst.Call) or not given.args or given.args[0].star:
        return None
    name = dotted(given.func) or ""
    root, _, rest = name.partition(".")
    if ".".join(filter(None, [file.imports.get(root, root), rest])) != "functools.partial":
        return None
    function, *others = given.args
    first = [each for each in others if each.keyword is None and not each.star]
    last = [each for each in others if each not in first]
    tower = cst.Arg(cst.Name("_tower"))
    return cst.Call(function.value, [*first, tower, *last])


def is_device(file: SourceFile, call: cst.Call) -> bool:
    """`tf.device(…)`, also of a module that hands TensorFlow's names on (`tfv1.device(…)`)."""
    name = file.tf(call.func)
    if name is not None:
        return name == "tf.device"
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "device":
        return False
    origin = file.imports.get((dotted(call.func) or "").split(".")[0])
    return origin is not None and not origin.startswith("torch")


def _computes(file: SourceFile, call: cst.Call, *, collected: bool = False) -> bool:
    """Whether a call computes gradients; `collected` ones can only be a list of pairs."""
    if not collected and file.tf(call.func) == "tf.gradients":
        return True
    return isinstance(call.func, cst.Attribute) and (
        call.func.attr.value == "compute_gradients"
        or not collected
        and call.func.attr.value == "minimize"
    )


def _runs_session(call: cst.Call) -> bool:
    return (
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "run"
        and any(a.keyword is not None and a.keyword.value == "feed_dict" for a in call.args)
    )


def _suites(node: cst.BaseCompoundStatement) -> list[cst.CSTNode]:
    """The blocks of a compound statement, `elif` and handlers included."""
    return [
        child
        for child in children(node)
        if isinstance(
            child, cst.BaseSuite | cst.If | cst.Else | cst.ExceptHandler | cst.Finally | cst.Try
        )
        for child in ([child] if isinstance(child, cst.BaseSuite | cst.If) else children(child))
    ]


def _bound_by(target: cst.CSTNode) -> set[str]:
    """Names that an assignment target binds: `a`, `(i, (device, part))`."""
    if isinstance(target, cst.Name):
        return {target.value}
    return {n for element in elements(target) or [] for n in _bound_by(element)}


def _parameter_names(node: cst.FunctionDef) -> set[str]:
    """A function's parameters, `self` among them: a device kept on it is the caller's choice too."""
    return set(_parameters_in_order(node))


def _is_bound(call: cst.Call, function: Function) -> bool:
    """Whether the first parameter of a function is the object that it is called on, or that the call makes."""
    owner = function.qualified.split(".")[-2] if function.is_method else "<locals>"
    if owner == "<locals>" or any(
        dotted(each.decorator) == "staticmethod" for each in function.node.decorators
    ):
        return False
    on = call.func.value if isinstance(call.func, cst.Attribute) else None
    return on is None or (dotted(on) or "").split(".")[-1] != owner


def _parameters_in_order(node: cst.FunctionDef) -> list[str]:
    params = node.params
    named = [*params.posonly_params, *params.params, *params.kwonly_params]
    return [p.name.value for p in named]


def _derived(body: cst.CSTNode, values: set[str]) -> set[str]:
    """The values and every name below that is made of them (`name = '/gpu:%d' % i`).

    How long a list is says nothing of where its entries go: a loop over all of them picks their devices itself.
    """
    found = set(values)
    for inner in walk(body):
        if isinstance(inner, cst.Assign):
            if _picks(inner.value, found):
                found |= set(binds(inner))
        elif isinstance(inner, cst.For):
            if _picks(inner.iter, found) and not _counts(inner.iter):
                found |= _bound_by(inner.target)
        elif isinstance(inner, cst.WithItem) and inner.asname is not None:
            if _picks(inner.item, found):
                found |= _bound_by(inner.asname.name)
    return found


def _counts(node: cst.BaseExpression) -> bool:
    """`range(len(entries))`."""
    return (
        isinstance(node, cst.Call)
        and dotted(node.func) in ("range", "xrange")
        and len(node.args) == 1
        and isinstance(node.args[0].value, cst.Call)
        and dotted(node.args[0].value.func) == "len"
    )


def _picks(node: cst.CSTNode, values: set[str]) -> bool:
    """Whether an expression reads one of the values other than for where it is (`v.device`)."""
    if isinstance(node, cst.Attribute):
        if node.attr.value == "device":
            return False
        return _picks(node.value, values)
    if isinstance(node, cst.Name):
        return node.value in values
    if isinstance(node, cst.Arg):
        return _picks(node.value, values)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        # `tf.device(x)` itself ends in `device` too.
        return _picks(node.func.value, values) or any(_picks(a, values) for a in node.args)
    return any(_picks(child, values) for child in children(node))


def _builds(file: SourceFile, body: cst.CSTNode) -> bool:
    """Whether a block builds (part of) a model: a layer, a scope, or anything of the program's own."""
    for call in calls(body):
        name = file.tf(call.func)
        if name is not None:
            if name.startswith(_MODEL):
                return True
            continue
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "apply_gradients":
            return True
        called = call.func.attr.value if isinstance(call.func, cst.Attribute) else code(call.func)
        root = (dotted(call.func) or "").split(".")[0]
        if called not in _PLAIN and root not in ("np", "os", "time", "logging", "logger"):
            return True
    return False
