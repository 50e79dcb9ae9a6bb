"""Whether the tower's index gets into the names of variables: then every tower has variables of its own.

`tf.variable_scope('tower_%d' % i)` and `tf.get_variable('w_%d' % i)` are such names, wherever they stand: in the
loop, in a function that is called with the index or with a text made from it, in a method of an object that
keeps either. What a branch or a loop binds that goes by the index is such a text too: it is not the same in
all towers. A name scope, a summary's name or a device may have the index; no variable is named by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.kinds import IN_GRAPH, Kind, Kinds
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.reach import reached
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import (
    argument,
    binds,
    children,
    code,
    dotted,
    elements,
    parameters,
    reads,
    statements,
    walk,
)

_NAMES: dict[str, tuple[tuple[int | None, str], ...]] = {
    "tf.variable_scope": ((0, "name_or_scope"), (1, "default_name")),
    "tf.variable_op_scope": ((1, "name_or_scope"), (2, "default_name")),
    "tf.get_variable": ((0, "name"),),
    "tf.get_local_variable": ((0, "name"),),
    "tf.make_template": ((0, "name_"), (None, "unique_name_")),
    "tf.contrib.framework.variable": ((0, "name"),),
    "tf.contrib.framework.model_variable": ((0, "name"),),
    "tf.contrib.slim.variable": ((0, "name"),),
    "tf.contrib.slim.model_variable": ((0, "name"),),
}
"""The arguments, by position and keyword, that name variables."""

_LAYERS = (
    "tf.layers.", "tf.keras.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.contrib.rnn.",
    "tf.nn.rnn_cell.", "tf.nn.dynamic_rnn", "tf.nn.bidirectional_dynamic_rnn", "tf.nn.static_rnn",
    "tf.nn.static_bidirectional_rnn",
)  # fmt: skip
"""Functions whose `name` or `scope` names the variables they make."""

_NO_VARIABLES = re.compile(
    r"pool|flatten|dropout|(?<!spatial_)softmax|regularizer|summar|\.losses\.|\.(?:unit_norm|one_hot_encoding|maxout)$"
    r"|\.keras\.layers\.(?:Input|InputLayer|Activation|Reshape|Permute|RepeatVector|Masking|ReLU|LeakyReLU|ELU"
    r"|ThresholdedReLU|Add|Subtract|Multiply|Average|Maximum|Minimum|Concatenate|Dot|GaussianNoise"
    r"|(?:Cropping|UpSampling|ZeroPadding)[123]D)$",
    re.I,
)
"""The ones among them that make none."""


_TENSORS = (*IN_GRAPH, Kind.SPLITS, Kind.PLACEHOLDER, Kind.PIPELINE)
_SAME = {"shape", "get_shape", "dtype", "get_next", "dequeue"}
"""What is asked of a tower's inputs: tensors, and what is the same of all towers' tensors."""


def check_variable_names(kinds: Kinds, candidate: Candidate) -> None:
    """Raise `Refused` where a variable of the towers has a name that differs between them.

    Args:
        kinds: those of the names that are bound before the loop.
        candidate: the tower loop.
    """
    names = set(_targets(candidate.loop.target))
    follower = _Follower(kinds, candidate, names)
    place = _Place(candidate.file, candidate.qualified)
    follower.block(place, statements(candidate.loop.body), names)


@dataclass
class _Place:
    """The function, or module (`function` None), whose statements are followed.

    `chosen` says whether the statements at hand are run, or run as often, in some towers only; `left` whether
    the loop at hand may be left, or go on, in some towers only; `returns` whether a value that is returned
    differs between the towers.
    """

    file: SourceFile
    function: str | None
    chosen: bool = False
    left: bool = False
    returns: bool = False


class _Follower:
    """Follows what differs between the towers, through statements and the functions that they call.

    `names` are always the names, and attributes as `self.scope`, whose values differ at that point.
    """

    def __init__(self, kinds: Kinds, candidate: Candidate, names: set[str]) -> None:
        self.kinds = kinds
        self.tree = kinds.traits.tree
        self.candidate = candidate
        # What a loop at module level binds, every function of the module can read.
        self.global_names = names if candidate.function is None else set()
        self.attributes: dict[tuple[str, str], set[str]] = {}
        # By function: parameters whose defaults differ.
        self.defaults: dict[int, set[str]] = {}
        self.done: dict[tuple[int, frozenset[str]], bool] = {}

    # -- statements

    def block(self, place: _Place, block: Iterable[cst.BaseStatement], names: set[str]) -> None:
        for node in block:
            if isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    self._small(place, small, names)
            elif isinstance(node, cst.FunctionDef):
                defaults = self._defaults(place, node.params, names)
                self.defaults[id(node)] = defaults
                # It may be called later, by a name or as an argument: what it reads from here it reads then.
                inside = _Place(place.file, _nested(place.function, node))
                self.block(inside, statements(node.body), names - _own(node) | defaults)
                self._bind(place, node.name, False, names)
            elif not isinstance(node, cst.ClassDef):
                self._compound(place, node, names)

    def _small(self, place: _Place, node: cst.BaseSmallStatement, names: set[str]) -> None:
        self._calls(place, node, names)
        if isinstance(node, cst.Return) and node.value is not None:
            place.returns |= place.chosen or self._differs(place, node.value, names)
        elif isinstance(node, cst.Break | cst.Continue):
            place.left |= place.chosen
        elif isinstance(node, cst.AugAssign):
            if place.chosen or self._differs(place, node.value, names):
                self._bind(place, node.target, True, names)
        elif isinstance(node, cst.Assign):
            differs = self._differs(place, node.value, names)
            for target in node.targets:
                self._bind(place, target.target, differs, names)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            self._bind(place, node.target, self._differs(place, node.value, names), names)

    def _compound(self, place: _Place, node: cst.BaseStatement, names: set[str]) -> None:
        if isinstance(node, cst.With):
            for item in node.items:
                self._calls(place, item.item, names)
                if item.asname is not None:
                    differs = self._differs(place, item.item, names)
                    self._bind(place, item.asname.name, differs, names)
            self.block(place, statements(node.body), names)
        elif isinstance(node, cst.For | cst.While):
            self._loop(place, node, names)
        else:
            outer, before = place.chosen, set(names)
            for test in _tests(node):
                if self._asked(place, test, names):
                    place.chosen = True
                    # `if k == i:` what equals the index in some tower is that tower's.
                    before |= _equated(test)
            for suite in _suites(node):
                # Where a branch is not taken, what was there before it stays; a `finally` comes after its `try`.
                inside = set(before if isinstance(node, cst.If) else names)
                self.block(place, statements(suite), inside)
                names |= inside
            place.chosen = outer

    def _loop(self, place: _Place, node: cst.For | cst.While, names: set[str]) -> None:
        outer = place.chosen, place.left
        place.left = over = False
        bound: list[tuple[cst.CSTNode, bool]] = []
        if isinstance(node, cst.For):
            over = self._asked(place, node.iter, names) and not self._counted(
                place, node.iter, names
            )
            bound = [
                (target, over or self._differs(place, value, names))
                for target, value in _columns(place.file, node.target, node.iter)
            ]
            names.difference_update(_targets(node.target))
        while True:  # until a round finds nothing new
            inside, left = set(names), place.left
            place.chosen = outer[0] or over or left
            for target, differs in bound:
                self._bind(place, target, differs, inside)
            if isinstance(node, cst.While):
                place.chosen |= self._asked(place, node.test, inside)
            self.block(place, statements(node.body), inside)
            if inside <= names and place.left == left:
                break
            names |= inside
        if node.orelse is not None:
            self.block(place, statements(node.orelse.body), names)
        place.chosen, place.left = outer

    def _counted(self, place: _Place, node: cst.BaseExpression, names: set[str]) -> bool:
        """Whether there are as many values in all towers to go over, though they may be others."""
        if isinstance(node, cst.List | cst.Tuple):
            return not any(isinstance(each, cst.StarredElement) for each in node.elements)
        if _is_builtin(place.file, node, ("zip", "enumerate", "reversed")):
            assert isinstance(node, cst.Call)
            return all(not arg.star and self._counted(place, arg.value, names) for arg in node.args)
        return not self._differs(place, node, names)

    def _asked(self, place: _Place, node: cst.BaseExpression, names: set[str]) -> bool:
        """Whether what a statement goes over or asks differs."""
        self._calls(place, node, names)
        return self._differs(place, node, names)

    def _bind(self, place: _Place, target: cst.CSTNode, differs: bool, names: set[str]) -> None:
        for name in _targets(target):
            if not (differs or place.chosen):
                if not isinstance(target, cst.Subscript):
                    names.discard(name)
                continue
            names.add(name)
            if name.startswith("self.") and place.function is not None:
                owner = (place.file.path, place.function.rpartition(".")[0])
                self.attributes.setdefault(owner, set()).add(name)

    # -- expressions

    def _calls(self, place: _Place, node: cst.CSTNode, names: set[str]) -> None:
        """Refuse a variable's name that differs; follow the functions that are called."""
        if isinstance(node, cst.Call):
            self._call(place, node, names)
        elif isinstance(node, cst.BaseComp):
            names = self._comprehended(place, node, names)
        elif isinstance(node, cst.Lambda):
            own = {p.name.value for p in _parameters(node.params)}
            names = names - own | self._defaults(place, node.params, names)
        for child in children(node):
            self._calls(place, child, names)
        if isinstance(node, cst.NamedExpr):
            self._bind(place, node.target, self._differs(place, node.value, names), names)

    def _call(self, place: _Place, call: cst.Call, names: set[str]) -> None:
        name = place.file.tf(call.func)
        if name is None:
            self._called(place, call, names)
            return
        for value in _variable_names(name, call):
            if self._differs(place, value, names):
                raise refuse(
                    "TM218", place.file, call,
                    f"`{code(value)}` in `{code(call.func)}` differs between the towers: each has variables "
                    "of its own name",
                )  # fmt: skip

    def _comprehended(self, place: _Place, node: cst.BaseComp, names: set[str]) -> set[str]:
        """What differs inside a comprehension: its own names do where what it goes over or asks does."""
        inside = set(names)
        part: cst.CompFor | None = node.for_in
        while part is not None:
            targets = set(_targets(part.target))
            over = self._differs(place, part.iter, inside)
            inside = inside | targets if over else inside - targets
            if any(self._differs(place, test.test, inside) for test in part.ifs):
                inside |= targets
            part = part.inner_for_in
        return inside

    def _defaults(self, place: _Place, params: cst.Parameters, names: set[str]) -> set[str]:
        """The parameters whose defaults differ."""
        found = set()
        for param in _parameters(params):
            if param.default is not None and self._asked(place, param.default, names):
                found.add(param.name.value)
        return found

    def _differs(self, place: _Place, node: cst.CSTNode, names: set[str]) -> bool:
        """Whether the value of an expression differs between the towers as a name would; tensors do not count."""
        if isinstance(node, cst.Name):
            return node.value in names
        if isinstance(node, cst.Attribute):
            if node.attr.value in _SAME:
                return False
            return dotted(node) in names or self._differs(place, node.value, names)
        if isinstance(node, cst.Subscript):
            parts = [each.slice for each in node.slice]
            if len(parts) > 1 and any(isinstance(each, cst.Slice) for each in parts):
                return False  # a tensor or an array: no list, and no dict, is asked so
            if place.function == self.candidate.qualified:
                if self.kinds.of(node.value) in _TENSORS:
                    return False
        if isinstance(node, cst.Arg):
            return self._differs(place, node.value, names)
        if isinstance(node, cst.Call):
            name = place.file.tf(node.func)
            if name is not None and name not in ("tf.name_scope", "tf.op_scope"):
                return False
            returned = None if name is not None else self._called(place, node, names)
            if returned is not None:
                return returned
        if isinstance(node, cst.BaseComp):
            names = self._comprehended(place, node, names)
        return any(self._differs(place, child, names) for child in children(node))

    def _called(self, place: _Place, call: cst.Call, names: set[str]) -> bool | None:
        """Follow what a call reaches; whether its result differs, None where nothing is known of it."""
        functions = reached(self.tree, place.file, call)
        if not functions:
            return None
        differing = [n for n, arg in enumerate(call.args) if self._differs(place, arg, names)]
        callee = (dotted(call.func) or "").split(".")[-1]
        made = [f for f in functions if f.qualified.split(".")[:-1] == [callee]]
        if made:  # an object: its methods find on it what its `__init__` was given
            for function in sorted(made, key=lambda f: not f.qualified.endswith(".__init__")):
                own = function.qualified.endswith(".__init__")
                self._function(function, set(_given(function, call, differing)) if own else set())
            return bool(differing)
        found = False
        for function in functions:
            given = set(_given(function, call, differing))
            if function.qualified.startswith(f"{place.function}.<locals>."):
                given |= names - _own(function.node)
            found = self._function(function, given) or found
        # A function that a branch chose; or a method that was found by its name only, of an object that may have
        # been made with the index.
        chosen = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        return found or self._differs(place, chosen, names)

    def _function(self, function: Function, given: set[str]) -> bool:
        names = given | self.defaults.get(id(function.node), set())
        owner = (function.file.path, function.qualified.rpartition(".")[0])
        names |= self.attributes.get(owner, set())
        if function.file is self.candidate.file:
            names |= self.global_names - _own(function.node)
        key = (id(function.node), frozenset(names))
        if not names or key in self.done:
            return self.done.get(key, False)
        self.done[key] = False  # for a function that calls itself
        inside = _Place(function.file, function.qualified)
        self.block(inside, statements(function.node.body), names)
        self.done[key] = inside.returns
        return inside.returns


def _is_builtin(file: SourceFile, node: cst.CSTNode, names: Sequence[str]) -> bool:
    """Whether an expression calls one of Python's own functions, which nothing in the file goes by the name of."""
    name = dotted(node.func) if isinstance(node, cst.Call) else None
    if name not in names:
        return False
    origin = file.imports.get(name or "")
    if origin is not None:
        return origin.startswith(("six.moves", "builtins"))
    return name not in binds(file.module) and name not in file.functions


def _columns(
    file: SourceFile, target: cst.BaseExpression, over: cst.BaseExpression
) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
    """What a loop binds, each with what it takes the values from: `a, b` of `zip(x, y)` are of `x` and of `y`."""
    parts = elements(target)
    if parts is not None and isinstance(over, cst.Call) and not any(arg.star for arg in over.args):
        values = [arg.value for arg in over.args]
        if _is_builtin(file, over, ("zip",)) and len(parts) == len(values):
            return list(zip(parts, values, strict=True))
        if _is_builtin(file, over, ("enumerate",)) and len(parts) == 2 and len(values) == 1:
            return [(parts[0], cst.Integer("0")), *_columns(file, parts[1], values[0])]
    return [(target, over)]


def _equated(test: cst.BaseExpression) -> set[str]:
    """The names that a test compares with something for being the same."""
    return {
        name
        for node in walk(test)
        if isinstance(node, cst.Comparison)
        and any(isinstance(each.operator, cst.Equal | cst.In | cst.Is) for each in node.comparisons)
        for name in reads(node)
    }


def _variable_names(name: str, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """The arguments of a call of TensorFlow that name variables."""
    places: Sequence[tuple[int | None, str]] = _NAMES.get(name, ())
    if not places and name.startswith(_LAYERS) and not _NO_VARIABLES.search(name):
        places = ((None, "name"), (None, "scope"))
    for position, keyword in places:
        value = argument(call, position, keyword)
        if value is not None:
            yield value


def _given(function: Function, call: cst.Call, differing: Sequence[int]) -> Iterator[str]:
    """The parameters that the arguments at some places of a call are given to."""
    params = function.node.params
    plain = [p.name.value for p in (*params.posonly_params, *params.params)]
    if function.is_method and plain[:1] == ["self"]:
        plain = plain[1:]
    every = parameters(function.node)
    for index in differing:
        arg = call.args[index]
        if arg.star:
            yield from every
        elif arg.keyword is not None and arg.keyword.value in every:
            yield arg.keyword.value
        elif arg.keyword is not None and isinstance(params.star_kwarg, cst.Param):
            yield params.star_kwarg.name.value
        elif arg.keyword is None and index < len(plain):
            yield plain[index]
        elif arg.keyword is None and isinstance(params.star_arg, cst.Param):
            yield params.star_arg.name.value


def _own(function: cst.FunctionDef) -> set[str]:
    """Names that a function does not take from around it."""
    return set(binds(function.body)) | set(parameters(function))


def _targets(target: cst.CSTNode) -> Iterator[str]:
    """What an assignment binds: names, and attributes of names."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _targets(element.value)
    else:
        name = dotted(target.value if isinstance(target, cst.Subscript) else target)
        if name is not None:
            yield name


def _nested(outer: str | None, function: cst.FunctionDef) -> str:
    """The qualified name of a function that another defines."""
    return function.name.value if outer is None else f"{outer}.<locals>.{function.name.value}"


def _parameters(params: cst.Parameters) -> tuple[cst.Param, ...]:
    """The parameters that may have defaults."""
    return (*params.posonly_params, *params.params, *params.kwonly_params)


def _tests(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What an `if` asks, in each `elif` too."""
    if isinstance(node, cst.If):
        yield node.test
        if node.orelse is not None:
            yield from _tests(node.orelse)


def _suites(node: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """The blocks of a compound statement, those of `else`, `except` and `finally` too."""
    for child in children(node):
        if isinstance(child, cst.BaseSuite):
            yield child
        elif not isinstance(child, cst.BaseExpression):
            yield from _suites(child)
