"""What an expression of Python 2 holds: an integer, a float, a tensor, or nobody knows.

It is worked out from everything that the file binds to a name in its scope, or to an attribute of `self` in its
class: if all of that is an integer, the name is.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from towermigrate.python2.flags import Kind, flags_of
from towermigrate.python2.source import Function, Source, dotted

_Scope = ast.Module | ast.ClassDef | Function
_FLOAT_MODULES = frozenset({"math", "time", "random"})
_FLOAT_FUNCTIONS = frozenset(
    "mean average std var sqrt exp log log2 log10 sin cos tan arctan2 tanh float32 float64 linspace random rand "
    "randn normal uniform standard_normal random_sample".split()
)
_FLOAT_OPS = frozenset(
    "to_float to_double random_normal random_uniform truncated_normal sqrt rsqrt exp log sigmoid tanh "
    "softmax l2_loss softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits "
    "sigmoid_cross_entropy_with_logits".split()
)
_INT_FUNCTIONS = ("len", "int", "long", "ord", "id", "hash")
_BINDING: tuple[type[ast.AST], ...] = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.withitem, ast.arg,
    ast.ExceptHandler, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Subscript, ast.Call,
)  # fmt: skip
_INT_METHODS = frozenset({"randint", "randrange", "getrandbits", "factorial", "trunc"})
_NUMERIC = ast.Div | ast.Mult | ast.Add | ast.Sub | ast.Pow
_CHANGES_LIST = frozenset({"append", "extend", "insert"})


@dataclass(frozen=True)
class _Binding:
    """What is bound to a name: the value itself, an element of it, or what `operator` makes of it."""

    value: ast.expr | None
    element: bool = False
    kind: Kind | None = None
    augmented: ast.AugAssign | None = None


@dataclass
class Kinds:
    """What every name of a file is bound to, scope by scope, and what kind that makes it.

    What is bound to an attribute of `self` stands under its class and the name with a dot before it.
    """

    source: Source
    scopes: dict[ast.AST, _Scope] = field(default_factory=dict)
    bindings: dict[tuple[_Scope, str], list[_Binding]] = field(default_factory=dict)
    kinds: dict[tuple[_Scope, str], Kind] = field(default_factory=dict)
    declared_global: set[tuple[_Scope, str]] = field(default_factory=set)
    flags: dict[str, Kind] = field(default_factory=dict)
    holders: set[str] = field(default_factory=set)
    tensorflow: set[str] = field(default_factory=set)
    attributes: list[tuple[ast.Attribute, _Binding]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    """Attributes that are set on something else than the `self` of a class that is known whole."""
    open_classes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._place(self.source.tree, self.source.tree)
        for node in self.source.all(ast.Global):
            self.declared_global.update((self.scopes[node], name) for name in node.names)
        for kind in _BINDING:
            for binding in self.source.all(kind):
                self._bind(binding)
        self.open_classes = self._open_classes()
        self._bind_attributes()
        self.holders, self.flags = flags_of(self.source)
        self.kinds = dict.fromkeys(self.bindings, "unset")
        changed = True
        while changed:
            changed = False
            for key, bindings in self.bindings.items():
                new = _join([self._bound_kind(key[0], key[1], binding) for binding in bindings])
                if new not in (self.kinds[key], "unset") and self.kinds[key] != "unknown":
                    # Downwards only, so that this ends.
                    down = self.kinds[key] == "unset" or new == "tensor"
                    self.kinds[key] = new if down else "unknown"
                    changed = True

    def _place(self, node: ast.AST, scope: _Scope) -> None:
        """Say of every node in which scope it stands. A comprehension's names are those around it, as they were."""
        self.scopes[node] = scope
        if isinstance(node, Function | ast.ClassDef):
            inside: list[ast.AST] = []
            inside += node.body if isinstance(node.body, list) else [node.body]
            for child in ast.iter_child_nodes(node):
                inner = child in inside or isinstance(child, ast.arguments)
                self._place(child, node if inner else scope)
            return
        for child in ast.iter_child_nodes(node):
            self._place(child, scope)

    def _add(self, node: ast.AST, name: str, binding: _Binding) -> None:
        scope = self.scopes[node]
        if (scope, name) in self.declared_global:
            scope = self.source.tree
        self.bindings.setdefault((scope, name), []).append(binding)

    def _bind(self, node: ast.AST) -> None:
        unknown = _Binding(None, kind="unknown")
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, _Binding(value))
            case ast.AugAssign(target=ast.Name(id=name)):
                self._add(node, name, _Binding(None, augmented=node))
            case ast.AugAssign(target=target):
                self._bind_target(target, _Binding(None, augmented=node))
            case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
                self._bind_target(target, unknown)
            case (
                ast.For(target=target, iter=iterable)
                | ast.comprehension(target=target, iter=iterable)
            ):
                self._bind_loop(target, iterable)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._bind_target(target, unknown)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                self._add(node, name, unknown)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                scope = self.scopes[node]
                self.bindings.setdefault((scope, name), []).append(unknown)
            case ast.Import(names=names):
                for alias in names:
                    self._add(node, alias.asname or alias.name.split(".")[0], unknown)
                    if alias.name in ("tensorflow", "tensorflow.compat.v1"):
                        self.tensorflow.add(alias.asname or alias.name.split(".")[0])
            case ast.ImportFrom(names=names):
                if names[0].name == "*":
                    self._hide_above(node.lineno)
                for alias in names:
                    self._add(node, alias.asname or alias.name, unknown)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                self._add(node, name, unknown)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                if attr in _CHANGES_LIST:
                    self._add(node, name, unknown)

    def _hide_above(self, line: int) -> None:
        """A star import may bind anew what the module bound before it."""
        for node in self.source.tree.body:
            if node.lineno < line:
                for part in ast.walk(node):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        self._add(self.source.tree, part.id, _Binding(None, kind="unknown"))

    def _bind_target(self, target: ast.expr, binding: _Binding) -> None:
        if isinstance(target, ast.Name):
            self._add(target, target.id, binding)
        elif isinstance(target, ast.Attribute):
            self.attributes.append((target, binding))
        elif isinstance(target, ast.Tuple | ast.List):
            value = binding.value
            for index, part in enumerate(target.elts):
                if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                    self._bind_target(part, _Binding(value.elts[index]))
                else:
                    known: Kind | None = (
                        None if value is not None and not binding.element else "unknown"
                    )
                    self._bind_target(part, _Binding(value, element=True, kind=known))

    def _bind_loop(self, target: ast.expr, iterable: ast.expr) -> None:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(iterable, ast.Call)
            and self.source.is_builtin(iterable.func, "enumerate")
            and len(target.elts) == 2
            and iterable.args
        ):
            start_is_given = len(iterable.args) > 1 or bool(iterable.keywords)
            index = _Binding(None, kind="unknown" if start_is_given else "int")
            self._bind_target(target.elts[0], index)
            self._bind_target(target.elts[1], _Binding(iterable.args[0], element=True))
        else:
            self._bind_target(target, _Binding(iterable, element=True))

    def _bind_attributes(self) -> None:
        for target, binding in self.attributes:
            owner = self._class_of_self(target)
            if owner is None:
                self.foreign.add(target.attr)
            else:
                self.bindings.setdefault((owner, f".{target.attr}"), []).append(binding)

    def _open_classes(self) -> set[str]:
        """Classes whose instances may get attributes that their own code does not set."""
        classes = self.source.all(ast.ClassDef)
        if any(name in self.source.text.text for name in ("setattr", "__dict__", "vars(")):
            return {node.name for node in classes}
        return {(dotted(base) or "").rsplit(".", 1)[-1] for node in classes for base in node.bases}

    def _class_of_self(self, node: ast.Attribute) -> ast.ClassDef | None:
        """The class whose instance `self` is in `self.name`, where that is certain and it derives from nothing."""
        if not isinstance(node.value, ast.Name):
            return None
        name = node.value.id
        scope = self.scopes[node]
        while not isinstance(scope, ast.Module) and (scope, name) not in self.bindings:
            scope = self.scopes[scope]
        if not isinstance(scope, ast.FunctionDef) or len(self.bindings[scope, name]) != 1:
            return None
        owner = self.scopes[scope]
        first = scope.args.args[0].arg if scope.args.args else None
        static = any(
            dotted(each) in ("staticmethod", "classmethod") for each in scope.decorator_list
        )
        if first != name or static or not isinstance(owner, ast.ClassDef):
            return None
        whole = all(self.source.is_builtin(base, "object") for base in owner.bases)
        changed = owner.decorator_list or owner.keywords or owner.name in self.open_classes
        return owner if whole and not changed else None

    def _bound_kind(self, scope: _Scope, name: str, binding: _Binding) -> Kind:
        if binding.kind is not None:
            return binding.kind
        if binding.augmented is not None:
            node = binding.augmented
            return _operated(
                node.op, self.name_kind(scope, name), self.kind(node.value), node.value
            )
        assert binding.value is not None
        kind = self.kind(binding.value)
        if not binding.element or kind in ("unset", "tensor"):
            return kind
        return "int" if kind == "ints" else "unknown"

    def name_kind(self, scope: _Scope, name: str) -> Kind:
        """The kind of what a name holds, seen from a scope."""
        here: _Scope | None = scope
        while here is not None:
            visible = not isinstance(here, ast.ClassDef) or here is scope
            if visible and (here, name) in self.kinds and (here, name) not in self.declared_global:
                return self.kinds[here, name]
            here = None if isinstance(here, ast.Module) else self.scopes[here]
        return "unknown"

    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression, as Python 2 computed it."""
        match node:
            case ast.Constant(value=bool()):
                return "unknown"
            case ast.Constant(value=int()):
                return "int"
            case ast.Constant(value=float()):
                return "float"
            case ast.Name(id=name):
                return self.name_kind(self.scopes[node], name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.kind(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _operated(op, self.kind(left), self.kind(right), right)
            case ast.IfExp(body=body, orelse=orelse):
                return _join([self.kind(body), self.kind(orelse)])
            case ast.BoolOp(values=values):
                return _join([self.kind(value) for value in values])
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                joined = _join([self.kind(part) for part in parts])
                return {"int": "ints", "unset": "unset", "tensor": "tensor"}.get(joined, "unknown")  # type: ignore[return-value]
            case ast.ListComp(elt=element):
                return "ints" if self.kind(element) == "int" else "unknown"
            case ast.Subscript(value=value, slice=index):
                inner = self.kind(value)
                if inner == "ints":
                    return "ints" if isinstance(index, ast.Slice) else "int"
                return inner if inner in ("unset", "tensor") else "unknown"
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
        return "unknown"

    def _attribute(self, node: ast.Attribute) -> Kind:
        if isinstance(node.value, ast.Name) and node.value.id in self.holders:
            return self.flags.get(node.attr, "unknown")
        if node.attr not in self.foreign and (owner := self._class_of_self(node)) is not None:
            named = [(owner, name) for name in (node.attr, f".{node.attr}")]
            kinds = [self.kinds[key] for key in named if key in self.kinds]
            if kinds:
                # A list may be changed by any other name that it has.
                return "unknown" if "ints" in kinds else _join(kinds)
        if node.attr == "shape":
            return "ints"
        if node.attr in ("ndim", "ndims"):
            return "int"
        if node.attr == "value" and isinstance(node.value, ast.Subscript):
            return "int" if self.kind(node.value) == "int" else "unknown"
        return "float" if dotted(node) in ("math.pi", "math.e", "np.pi", "numpy.pi") else "unknown"

    def _call(self, node: ast.Call) -> Kind:
        func = node.func
        arguments = [self.kind(argument) for argument in node.args]
        if self.source.is_builtin(func, *_INT_FUNCTIONS):
            return "int"
        if self.source.is_builtin(func, "float", "round"):
            return "float"
        if self.source.is_builtin(func, "range", "xrange"):
            return "ints"
        if self.source.is_builtin(func, "list", "tuple", "sorted", "reversed") and arguments:
            return arguments[0] if arguments[0] in ("ints", "unset") else "unknown"
        if self.source.is_builtin(func, "abs", "min", "max", "sum") and not node.keywords:
            joined = _join(arguments)
            if joined == "ints":
                return "int"
            return joined if joined in ("int", "float", "unset", "tensor") else "unknown"
        if not isinstance(func, ast.Attribute):
            return "unknown"
        if func.attr in ("get_shape", "as_list"):
            return "ints"
        if func.attr == "num_elements":
            return "int"
        if func.attr == "astype" and node.args:
            return "float" if "float" in ast.unparse(node.args[0]) else "unknown"
        name = dotted(func) or ""
        root, _, rest = name.partition(".")
        if root in self.tensorflow:
            return self._op(node, rest)
        if root in _FLOAT_MODULES:
            if root in self._locals() or func.attr in ("choice", "sample"):
                return "unknown"
            return "int" if func.attr in _INT_METHODS else "float"
        if root in ("np", "numpy") and func.attr in _FLOAT_FUNCTIONS:
            return "float"
        return "unknown"

    def _locals(self) -> set[str]:
        """Names of the file that are bound to something else than a module."""
        return {name for (_, name), kinds in self.bindings.items()
                if any(binding.value is not None for binding in kinds)}  # fmt: skip

    def _op(self, node: ast.Call, name: str) -> Kind:
        if name.startswith(("app.", "flags.", "test.", "gfile.", "train.get_", "__")):
            return "unknown"
        if name == "cast" and len(node.args) + len(node.keywords) > 1:
            target = node.args[1] if len(node.args) > 1 else node.keywords[0].value
            return "float" if "float" in ast.unparse(target) else "tensor"
        return "float" if name.rsplit(".", 1)[-1] in _FLOAT_OPS else "tensor"


def _operated(op: ast.operator, left: Kind, right: Kind, exponent: ast.expr) -> Kind:
    """The kind of `left op right` in Python 2."""
    both = {left, right}
    if "unknown" in both and not ("float" in both and isinstance(op, _NUMERIC)):
        return "unknown"
    if "float" in both:
        return "unknown" if "ints" in both else "float"
    if "tensor" in both:
        return "tensor"
    if "unset" in both:
        return "unset"
    if both == {"int"}:
        if isinstance(op, ast.Pow):
            counted = isinstance(exponent, ast.Constant)
            return "int" if counted else "unknown"
        return "int" if not isinstance(op, ast.MatMult) else "unknown"
    if both == {"ints"}:
        return "ints" if isinstance(op, ast.Add) else "unknown"
    return "ints" if isinstance(op, ast.Mult) else "unknown"


def _join(kinds: list[Kind]) -> Kind:
    known = {kind for kind in kinds if kind != "unset"}
    if not known:
        return "unset" if kinds else "unknown"
    if len(known) == 1:
        return known.pop()
    return "tensor" if "tensor" in known else "unknown"
