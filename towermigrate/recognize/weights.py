"""The weights of programs that make them in front of the tower loop, once: `weights = {'out': tf.Variable(…)}`.

Such a statement stays as it is, in a block in which variables are those of the towers. So nothing of its graph may matter but
what variables start from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Scope
from towermigrate.recognize.initializers import INITIALIZERS
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.refusal import note
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import argument, calls, code, dotted, integer, text, walk

_MAKERS = frozenset({"tf.Variable", "tf.get_variable"})
_DRAWS = frozenset(
    "tf.random_normal tf.truncated_normal tf.random_uniform tf.random.normal tf.random.truncated_normal "
    "tf.random.uniform".split()
)
_STARTS = _DRAWS | frozenset(
    "tf.zeros tf.ones tf.constant tf.fill tf.to_float tf.float32 tf.variable_scope tf.name_scope tf.device".split()
)
"""What variables start from, and the scopes that name them."""
_FIXED = ("constant", "Constant", "zeros", "Zeros", "ones", "Ones", "name_scope", "variable_scope")
_PYTHON = frozenset(
    "len range xrange int float str list tuple dict zip enumerate sum min max abs round sorted bool".split()
)
_METHODS = frozenset(
    "append extend format items keys values astype reshape copy index T transpose".split()
)
_OF_VARIABLE = frozenset({"initial_value", "trainable", "name", "dtype", "validate_shape"})
_OF_GET_VARIABLE = frozenset({"name", "shape", "dtype", "initializer", "trainable", "regularizer"})
_GRAPH = frozenset(Kind) - {Kind.PYTHON, Kind.WEIGHTS}
_NO_PART = (
    cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.Return, cst.Yield, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal,
    cst.Try, cst.Del, cst.Await,
)  # fmt: skip
_CALLED = re.compile(r"\.(\w+)\(")
_DEEP = 6


def makes_weights(kinds: Kinds, item: Item) -> bool:
    """Whether a statement in front of the towers makes variables, itself or by functions of the tree."""
    if isinstance(item.node, cst.FunctionDef | cst.ClassDef):
        return False
    for call in calls(item.node):
        name = kinds.file.tf(call.func)
        if name in _MAKERS:
            return True
        function = None if name else kinds.traits.tree.resolve(kinds.file, call.func)
        if function is not None and kinds.traits.called(function) & _MAKERS:
            return True
    return False


def against(scope: Scope, item: Item) -> Finding | None:
    """Why a statement that makes variables cannot stay in front of the towers; None where it can."""
    return _Reader(scope, item).against()


class _Reader:
    def __init__(self, scope: Scope, item: Item) -> None:
        self.scope = scope
        self.item = item
        self.kinds = scope.kinds
        self.tree = scope.tree
        self.names: set[str] = set()
        self.texts: set[str] = set()
        self.unnamed = False

    def against(self) -> Finding | None:
        item, file = self.item, self.scope.file
        what = f"`{', '.join(sorted(item.binds)) or code(item.node).strip().splitlines()[0]}`"
        said = f"{what} is a trainable variable made outside the towers"
        why = self._against(file, item.node, _DEEP)
        if why is None:
            why = self._named_by_others() or self._named_as_operation() or self._in_name_scope()
        if why is None:
            for name in item.reads:
                kind = self.kinds.of_name(name)
                if kind in _GRAPH and not self._is_start(name):
                    why = f"it reads `{name}` ({kind.value})"
        return None if why is None else note("TM217", file, item.node, f"{said}, and {why}")

    def _is_start(self, name: str) -> bool:
        return name in self.kinds.starts

    def _against(self, file: SourceFile, node: cst.CSTNode, deep: int) -> str | None:
        for each in walk(node):
            if isinstance(each, cst.SimpleString):
                self.texts.add(text(each) or "")
            if isinstance(each, cst.WithItem) and each.asname is not None:
                return f"`{code(each)}` is not followed there"
            if isinstance(each, cst.AssignTarget) and isinstance(each.target, cst.Attribute):
                return f"`{code(each.target)}` is not followed there"
            if isinstance(each, _NO_PART):
                if isinstance(each, cst.FunctionDef) and each is node:
                    continue
                if isinstance(each, cst.Return) and isinstance(node, cst.FunctionDef):
                    continue
                return f"`{code(each).strip().splitlines()[0]}` is not followed there"
            why = self._call(file, each, deep) if isinstance(each, cst.Call) else None
            if why is not None:
                return why
        return None

    def _call(self, file: SourceFile, call: cst.Call, deep: int) -> str | None:
        name = file.tf(call.func)
        said = f"`{code(call.func)}` is more than what variables start from"
        if name is not None:
            if name in _MAKERS:
                return self._maker(file, call, name)
            if name == "tf.variable_scope":
                fine = all(arg.keyword is None or arg.keyword.value == "reuse" for arg in call.args)
                return None if fine and len(call.args) <= 2 else said
            if name in INITIALIZERS or name in _STARTS:
                return self._drawn(file, call, name)
            return said
        chain = dotted(call.func)
        if chain is None:
            fine = isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS
            return None if fine else said
        root, _, rest = chain.partition(".")
        if file.imports.get(root, "").partition(".")[0] in ("numpy", "math"):
            return None
        function = self.tree.resolve(file, call.func)
        if function is not None:
            return self._function(function, deep) if deep and "." not in chain else said
        if not rest and root in _PYTHON and root not in file.functions:
            return None
        return None if rest.rpartition(".")[2] in _METHODS else said

    def _function(self, function: Function, deep: int) -> str | None:
        node = function.node
        if node.decorators or function.is_method or node.asynchronous is not None:
            return f"`{node.name.value}` is not followed there"
        return self._against(function.file, node, deep - 1)

    def _maker(self, file: SourceFile, call: cst.Call, name: str) -> str | None:
        """Why a call that makes a variable is not understood."""
        known, most = (_OF_VARIABLE, 1) if name == "tf.Variable" else (_OF_GET_VARIABLE, 4)
        given = [arg.keyword.value if arg.keyword else None for arg in call.args]
        if any(arg.star for arg in call.args) or given.count(None) > most:
            return f"`{code(call)}` is given more than is understood"
        for keyword in given:
            if keyword is not None and keyword not in known:
                return f"`{keyword}=` of `{code(call.func)}` is not understood"
        regularizer = argument(call, None, "regularizer")
        if regularizer is not None and code(regularizer) != "None":
            return "its regulariser makes a loss in front of them"
        called = argument(call, None if name == "tf.Variable" else 0, "name")
        if called is None:
            self.unnamed = True
        else:
            literal = text(called)
            self.names.add("" if literal is None else literal)
        if name == "tf.get_variable":
            start, shape = argument(call, 3, "initializer"), argument(call, 1, "shape")
            if start is None and self._seeds:
                return "a seed of the whole graph fixes what it starts from"
            if shape is None and not (start is not None and _is_float(file, start)):
                return f"`{code(call)}` takes its shape from a value that is not understood"
        return None

    def _drawn(self, file: SourceFile, call: cst.Call, name: str) -> str | None:
        """Why a random start cannot stay: TF1 numbers the operations of the whole graph for it."""
        if name.rpartition(".")[2].startswith(_FIXED) or name in _STARTS - _DRAWS:
            return None
        seed = argument(call, None, "seed")
        if self._seeds and (seed is None or integer(seed) is None):
            return f"a seed of the whole graph fixes what `{code(call)}` draws"
        return None

    @cached_property
    def _seeds(self) -> bool:
        return any("set_random_seed" in source for source in self.tree.sources.values())

    def _named_by_others(self) -> str | None:
        """TF1 gives a name once: what else of the front has one could take that of a variable."""
        for other in self._others():
            for call in calls(other):
                name = self.scope.file.tf(call.func)
                if name is None:
                    continue
                if name == "tf.Variable" and self.unnamed:
                    if argument(call, None, "name") is None:
                        return f"`{code(call)}` has no name either: TF1 numbers the two"
                called = argument(call, None, "name") or (
                    argument(call, 0, "name") if name == "tf.get_variable" else None
                )
                if called is None:
                    continue
                literal = text(called)
                if literal is None or literal in self.names or "" in self.names:
                    return f"`{code(call)}` may have the name of one of them"
        return None

    def _named_as_operation(self) -> str | None:
        """An operation without a name is called after its kind: `tf.placeholder` makes a `Placeholder`."""
        sources = self.tree.sources.values()
        for name in sorted(self.texts):
            bare = name.partition("/")[0].replace("_", "").lower()
            if any(bare in _called(source) for source in sources):
                return f"an operation may be called `{name}`, too"
        return None

    def _others(self) -> Iterator[cst.CSTNode]:
        """The statements in front of the towers that make no variables of the towers."""
        for each in self.scope.front:
            if each is not self.item and not makes_weights(self.kinds, each):
                yield each.node
            elif each is not self.item and not may_train(self.scope.file, each.node):
                yield each.node

    def _in_name_scope(self) -> str | None:
        for each in walk(self.scope.candidate.function or self.scope.file.module):
            if not isinstance(each, cst.With) or not any(n is self.item.node for n in walk(each)):
                continue
            for one in each.items:
                if isinstance(one.item, cst.Call):
                    if self.scope.file.tf(one.item.func) == "tf.name_scope":
                        return f"`{code(one.item)}` around it is a part of its name"
        return None


@lru_cache(maxsize=4096)
def _called(text: str) -> frozenset[str]:
    """What a text calls of something, without case and underscores, as operations are called."""
    return frozenset(word.replace("_", "").lower() for word in _CALLED.findall(text))


def may_train(file: SourceFile, node: cst.CSTNode) -> bool:
    """Whether a statement makes other variables than one that is said not to be trained."""
    made = [call for call in calls(node) if file.tf(call.func) in _MAKERS]
    if not made:
        return True
    return not all(
        (said := argument(call, None, "trainable")) is not None and code(said) == "False"
        for call in made
    )


def _is_float(file: SourceFile, start: cst.BaseExpression) -> bool:
    """Whether a variable starts from a tensor of 32-bit floats, which alone `get_variable` is sure to take without a shape."""
    if not isinstance(start, cst.Call) or file.tf(start.func) not in _STARTS:
        return False
    name = file.tf(start.func) or ""
    return name in _DRAWS | {"tf.zeros", "tf.ones"} and argument(start, None, "dtype") is None
