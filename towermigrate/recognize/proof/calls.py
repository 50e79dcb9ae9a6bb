"""Run the calls of a tower or a step: functions of the tree are followed, others must be on the list."""

from __future__ import annotations

import ast

from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code, parameters
from towermigrate.recognize.proof.expressions import Expressions
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import DEPTH, is_python
from towermigrate.recognize.proof.values import (
    NOTHING,
    Class,
    Collected,
    Differs,
    Either,
    Foreign,
    Function,
    Index,
    Instance,
    Items,
    Library,
    Object,
    Python,
    Setting,
    Static,
    Tensor,
    Text,
    Value,
    holds_tensor,
    join,
    join_all,
    needs_of,
)

_ONCE = {"zip", "map", "filter", "reversed", "enumerate", "iter", "open", "next", "input"}
"""Builtins that give iterators, which the first tower would use up."""
_GOES_OVER = {
    "sum",
    "min",
    "max",
    "list",
    "tuple",
    "set",
    "frozenset",
    "dict",
    "sorted",
    "any",
    "all",
} | _ONCE
"""Builtins that go over their argument."""


class Arguments:
    """The arguments of one call, evaluated."""

    def __init__(self) -> None:
        self.given: list[Value] = []
        self.named: dict[str, Value] = {}
        self.starred = False

    def all(self) -> list[Value]:
        return [*self.given, *self.named.values()]

    def get(self, position: int, *names: str) -> Value | None:
        for name in names:
            if name in self.named:
                return self.named[name]
        return self.given[position] if position < len(self.given) else None

    def needs(self) -> frozenset[str]:
        found: frozenset[str] = NOTHING
        for value in self.all():
            found |= needs_of(value)
        return found


class Calls(Expressions):
    """Evaluates calls."""

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        function = self.value(node.func, frame)
        return self.call(function, node, frame)

    def call(self, function: Value, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        args = self._arguments(node, frame)
        if isinstance(function, Either):
            made = [self._called(f, args, node, frame) for f in function.values]
            return join_all(made)
        if args.starred and not isinstance(function, Library):
            return self.report(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` passes arguments that could not be followed",
            )
        return self._called(function, args, node, frame)

    def _called(self, function: Value, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        if isinstance(function, Function):
            return self.enter(function, args.given, args.named, node, code)
        if isinstance(function, Library):
            return self.library_call(function.name, args, node, frame)
        if isinstance(function, Class):
            return self._made(function, args, node, frame)
        if isinstance(function, Object):
            return self.method(function, args, node, frame)
        if isinstance(function, Setting | Foreign):
            if not self.strict:
                python = isinstance(function, Setting) and all(is_python(v) for v in args.all())
                return Setting() if python else Foreign()
            return self._unknown(node, frame)
        if type(function) is Value:
            return Value()
        return self._unknown(node, frame)

    def _unknown(self, node: ast.Call, frame: Frame) -> Value:
        return self.report(
            "TM222", frame.code, node,
            f"what `{frame.code.said(node.func)}` does is not known, and {self.where} is run several times in Python",
        )  # fmt: skip

    def _made(self, function: Class, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if not self.strict:
            builds = _mentions_graph(function.node, function.code)
            python = all(is_python(v) for v in args.all())
            return Foreign() if builds or not python else Instance(function)
        return self.report(
            "TM222", frame.code, node,
            f"`{frame.code.said(node)}` makes an object of `{function.node.name}` in {self.where}; what it keeps is "
            "not followed",
        )  # fmt: skip

    def _arguments(self, node: ast.Call, frame: Frame) -> Arguments:
        args = Arguments()
        for one in node.args:
            if isinstance(one, ast.Starred):
                value = self.value(one.value, frame)
                if isinstance(value, Items) and value.exact:
                    args.given.extend(v for v, _ in value.values)
                else:
                    args.given.append(value)
                    args.starred = True
            else:
                args.given.append(self.value(one, frame))
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is None:
                args.starred = True
                args.given.append(value)
            else:
                args.named[keyword.arg] = value
        return args

    # -- functions of the tree

    def enter(
        self,
        function: Function,
        given: list[Value],
        named: dict[str, Value],
        node: ast.AST,
        code: Code,
    ) -> Value:
        """Run a function of the tree on values."""
        made = function.node
        if self.stack.count(made) > 2 or len(self.stack) > DEPTH:
            return self.report(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` calls itself more deeply than is followed",
            )
        args = made.args
        name = "lambda" if isinstance(made, ast.Lambda) else made.name
        if (
            isinstance(made, ast.AsyncFunctionDef)
            or not isinstance(made, ast.Lambda)
            and made.decorator_list
        ):
            return self.report(
                "TM222",
                function.code,
                made,
                f"`{name}` is decorated; what a call does is not known",
            )
        frame = Frame.of(function.code, made, function.frame, self.strict)
        names = [a.arg for a in [*args.posonlyargs, *args.args]]
        if len(given) > len(names) and args.vararg is None:
            return self.report(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` passes more arguments than `{name}` takes",
            )
        frame.names.update(zip(names, given, strict=False))
        more: list[tuple[Value, bool]] = []
        for keyword, value in named.items():
            if args.kwarg is not None and keyword not in frame.own:
                more.append((value, True))
            else:
                frame.names[keyword] = value
        if args.vararg is not None:
            rest = [(value, True) for value in given[len(names) :]]
            frame.names[args.vararg.arg] = Items(rest, True, not self.strict, False)
        if args.kwarg is not None:
            frame.names[args.kwarg.arg] = Items(more, False, not self.strict)
        defaults = list(zip(reversed(names), reversed(args.defaults), strict=False))
        defaults += [
            (a.arg, d)
            for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if d is not None
        ]
        for parameter, default in defaults:
            if parameter not in frame.names:
                frame.names[parameter] = self._default(default, function)
        if any(p not in frame.names for p in parameters(made)):
            return self.report(
                "TM222", code, node, f"`{code.said(node)}` does not give all arguments of `{name}`"
            )
        self.stack.append(made)
        try:
            if isinstance(made, ast.Lambda):
                return self.value(made.body, frame)
            ends = self.block(made.body, frame)
        finally:
            self.stack.pop()
        if ends:
            frame.returned.append(Python(None))
        return join_all(frame.returned) if frame.returned else Python(None)

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        raise NotImplementedError

    def _default(self, node: ast.expr, function: Function) -> Value:
        with self.mode(False):
            value = self.value(node, function.frame)
        if isinstance(value, Items) and value.mutable:
            value.outer = True
            value.name = "the default of an argument"
        name = value.name if isinstance(value, Library) else ""
        if name.startswith(library.BATCH_NORM):
            self._batch_norm(node, function.code)
        if type(value) is Value or isinstance(value, Foreign):
            return self.report(
                "TM222",
                function.code,
                node,
                f"the default `{function.code.said(node)}` is not understood",
            )
        return value

    def _batch_norm(self, node: ast.AST, code: Code) -> Value:
        return self.report(
            "TM207", code, node, f"batch normalisation in the towers: `{code.said(node)}`"
        )

    # -- libraries

    def library_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if name == "tf" or name.startswith("tf."):
            return self.tf_call(name, args, node, frame)
        if name.startswith("builtins."):
            return self._builtin_call(name, args, node, frame)
        if any(holds_tensor(v) for v in args.all()) and self.strict:
            return self.report(
                "TM222", frame.code, node, f"`{frame.code.said(node)}` gives a tensor to `{name}`"
            )
        known = name in library.NUMPY or name in library.OTHERS
        if not known and self.strict:
            if name.startswith(("numpy.random.", "random.")):
                return self.report(
                    "TM206", frame.code, node,
                    f"`{frame.code.said(node.func)}` is drawn anew by every trace of {self.where}",
                )  # fmt: skip
            return self._unknown(node, frame)
        for value in args.all():
            if isinstance(value, Index | Differs):
                return Differs()
            if isinstance(value, Text):
                return Text("name" if value.of in ("name", "tensor") else "index")
            if isinstance(value, Static):
                return Static()
        if known:
            return Setting(plain=True) if name in library.NUMPY else Python()
        if name.startswith(library.QUIET_LIBRARIES) and all(is_python(v) for v in args.all()):
            return Setting()
        return Foreign()

    def _builtin_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        short = name.removeprefix("builtins.")
        if self.strict and name not in library.IN_STEP:
            if short in (
                "print",
                "input",
                "raw_input",
                "open",
                "exec",
                "eval",
                "setattr",
                "delattr",
                "next",
                "iter",
            ):
                return self.report(
                    "TM223", frame.code, node,
                    f"`{frame.code.said(node)}` has an effect in Python, once in TF1 and at every trace of {self.where}",
                )  # fmt: skip
            return self._unknown(node, frame)
        return self.builtin(short, args, node, frame)

    def builtin(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """A builtin of the list."""
        values = args.given
        if not self.strict and name in _ONCE:
            return Foreign()
        if len(values) == 1 and name in _GOES_OVER and isinstance(values[0], Setting):
            self.element(values[0], node.args[0], frame)
        for value in args.all():
            if isinstance(value, Instance):
                return self._unknown(node, frame)
            if isinstance(value, Collected):
                return self._part_of(value, node, frame)
            if isinstance(value, Text) and name not in ("str", "repr", "unicode", "format"):
                self._asked_text(value, node, frame)
        fresh = not self.strict
        if name in ("range", "xrange"):
            for value in values:
                if isinstance(value, Index | Differs):
                    self._differs(value, node, frame)
            numbers = [
                v.constant for v in values if isinstance(v, Python) and isinstance(v.constant, int)
            ]
            if len(numbers) == len(values) and numbers and len(span := range(*numbers)) <= 64:
                return Items([(Python(k), True) for k in span], True, fresh, False)
            return Items([(Python(), False)], False, fresh, False)
        if (
            name == "zip"
            and values
            and not args.starred
            and all(isinstance(v, Items) and v.exact for v in values)
        ):
            columns = [[v for v, _ in value.values] for value in values if isinstance(value, Items)]
            rows = [
                Items([(v, True) for v in row], True, fresh, False)
                for row in zip(*columns, strict=False)
            ]
            return Items([(row, True) for row in rows], True, fresh, False)
        if name == "zip":
            row = Items(
                [(self.element(v, node, frame), True) for v in values],
                not args.starred,
                fresh,
                False,
            )
            return Items([(row, False)], False, fresh, False)
        if name == "enumerate" and values:
            inner = values[0]
            if isinstance(inner, Items) and inner.exact and len(values) == 1:
                pairs = [
                    Items([(Python(k), True), (v, s)], True, fresh, False)
                    for k, (v, s) in enumerate(inner.values)
                ]
                return Items([(p, True) for p in pairs], True, fresh, False)
            pair = Items(
                [(Python(), True), (self.element(inner, node, frame), True)], True, fresh, False
            )
            return Items([(pair, False)], False, fresh, False)
        if name in ("list", "tuple", "reversed", "sorted", "set", "frozenset", "dict"):
            if not values:
                return Items([], True, fresh)
            if isinstance(values[0], Items):
                made = list(values[0].values)
                if name == "reversed":
                    made.reverse()
                kept = values[0].exact and name in ("list", "tuple", "reversed")
                return Items(made, kept, fresh, name not in ("tuple", "frozenset"))
            return Items([(self.element(values[0], node, frame), False)], False, fresh)
        if name == "len" and values:
            if isinstance(values[0], Items) and values[0].exact:
                return Python(len(values[0].values))
            return Python()
        if name in ("int", "float") and values and isinstance(values[0], Static):
            return Python()
        if name in ("str", "repr", "unicode", "slice") or name == "format":
            return self._text(values, node, frame)
        if name == "sum" and values and holds_tensor(values[0]):
            return Tensor(needs_of(values[0]))
        if any(holds_tensor(v) for v in values):
            if name == "abs":
                return Tensor(needs_of(values[0]))
            return self.report(
                "TM226",
                frame.code,
                node,
                f"`{frame.code.said(node)}` compares or converts tensors in Python",
            )
        for value in values:
            if isinstance(value, Index | Differs):
                return Differs()
            if isinstance(value, Static):
                return Static()
        return Setting() if any(isinstance(v, Setting) for v in values) else Python()

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    # -- methods

    def method(self, function: Object, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """A method of a known kind of object."""
        kind, _, name = function.kind.partition(".")
        code = frame.code
        if kind == "static":
            return (
                Items([(Static(), True)], False, not self.strict) if name == "as_list" else Static()
            )
        if kind == "text" or kind == "python":
            if name in library.READING_METHODS:
                if kind == "text":
                    return Text("index")
                return self._text(args.all(), node, frame)
            if name in library.MUTATORS or kind == "text":
                return self._unknown(node, frame)
            return Python() if not self.strict else self._unknown(node, frame)
        if kind == "items" and isinstance(function.of, Items):
            made = self._of_items(function.of, name, args)
            if made is not None:
                return made
        if kind == "array" and (name in library.ARRAY_METHODS or not self.strict):
            if name == "tolist" or name not in library.MUTATORS:
                return Setting(plain=True)
        if kind == "tensor":
            return self._tensor_method(function, name, args, node, frame)
        if kind == "variable scope" and name == "reuse_variables":
            return Python(None)
        if kind == "optimizer" and name in ("compute_gradients", "apply_gradients"):
            if name == "apply_gradients":
                return Object("update", args.needs())
            loss = args.get(0, "loss")
            self.all_towers(needs_of(loss) if loss is not None else NOTHING)
            gradient = Tensor(needs_of(loss) if loss is not None else NOTHING, gradient=True)
            pair = Items(
                [(gradient, True), (Tensor(variable=True), True)], True, not self.strict, False
            )
            return Items([(pair, True)], False, not self.strict)
        if kind == "moving average" and name == "apply":
            return self._average(args, node, frame)
        return self.report(
            "TM222", code, node,
            f"what `{code.said(node.func)}` does in {self.where} is not known to be without effect",
        )  # fmt: skip

    def _of_items(self, holder: Items, name: str, args: Arguments) -> Value | None:
        """A method of a list or dict that changes nothing."""
        fresh = not self.strict
        if name == "get":
            default = args.get(1, "default") or Python(None)
            return join_all([*([holder.element()] if holder.values else []), default])
        if name in ("values", "copy"):
            return Items(list(holder.values), holder.exact and name == "copy", fresh)
        if name == "keys":
            return Items([(Python(), False)], False, fresh)
        if name == "items":
            pair = Items([(Python(), True), (holder.element(), True)], True, fresh, False)
            return Items([(pair, False)], False, fresh)
        return Python() if name in ("index", "count") else None

    def _average(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        given = args.get(0, "var_list")
        variables = given is not None and _only_variables(given)
        if not variables:
            self.report(
                "TM220", frame.code, node,
                f"`{frame.code.said(node)}` keeps moving averages of more than a list of variables",
            )  # fmt: skip
        return Object("operation")

    def _tensor_method(
        self, function: Object, name: str, args: Arguments, node: ast.Call, frame: Frame
    ) -> Value:
        if name == "get_shape":
            return Static(shape=True)
        if name in (
            "assign",
            "assign_add",
            "assign_sub",
            "scatter_update",
            "load",
            "scatter_add",
            "scatter_sub",
        ):
            return self.report(
                "TM220",
                frame.code,
                node,
                f"`{frame.code.said(node.func)}` assigns a variable in {self.where}",
            )
        return self.report(
            "TM222",
            frame.code,
            node,
            f"`{frame.code.said(node.func)}` is not known to mean the same in TF2",
        )


def _only_variables(value: Value) -> bool:
    if isinstance(value, Items):
        return all(isinstance(v, Tensor) and v.variable for v, _ in value.values)
    return False


def _mentions_graph(node: ast.AST, code: Code) -> bool:
    """Whether a class or function mentions TensorFlow: then what it makes may belong to a graph."""
    roots = {
        (a.asname or a.name).split(".")[0]
        for n in ast.walk(code.tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
        if "tensorflow" in (a.name + (getattr(n, "module", "") or "")) or "tf_slim" in a.name
    }
    return any(isinstance(n, ast.Name) and n.id in roots for n in ast.walk(node))


mentions_graph = _mentions_graph
__all__ = ["Arguments", "Calls", "join", "mentions_graph"]
