"""Run what Python and other libraries than TensorFlow give: builtins, NumPy, methods of lists and dicts."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from towermigrate.flow.values import NONE, Const, Unknown, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.asks import ASKS
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.expressions import form_of, formed, spelled
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import is_python
from towermigrate.recognize.proof.parts import Parts
from towermigrate.recognize.proof.values import (
    NOTHING,
    Collected,
    Differs,
    Foreign,
    Index,
    Instance,
    Items,
    Made,
    Method,
    Object,
    Plain,
    RecordClass,
    Setting,
    Static,
    Super,
    Tensor,
    Text,
    holds_tensor,
    join_all,
    may_run,
    needs_of,
    text_of,
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
_NUMBERS = ("int", "float", "bool", "complex", "abs", "round", "ord")
"""What gives a number, whatever it is given; what an object's own methods do there was asked before."""
_ASK_ONLY = frozenset({"type", "isinstance", "id", "callable"})
"""Builtins that run no code of what they are given."""
_GATHER = {
    "dict",
    "enumerate",
    "len",
    "list",
    "range",
    "reversed",
    "slice",
    "tuple",
    "xrange",
    "zip",
}
"""Builtins that call nothing of what they are given a list of."""


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


def _record_class(args: Arguments) -> RecordClass | None:
    """`namedtuple("Name", "a b")`, `namedtuple("Name", ["a", "b"])`; None where its fields are not known."""
    if args.starred or args.named or len(args.given) != 2:
        return None
    listed = args.given[1]
    text = text_of(listed)
    if text is not None:
        names: list[str | None] = [*text.replace(",", " ").split()]
    elif isinstance(listed, Items) and listed.exact:
        names = [text_of(value) for value, _ in listed.values]
    else:
        return None
    fields = tuple(name for name in names if name is not None)
    return RecordClass(fields) if len(fields) == len(names) == len(set(fields)) else None


def _may_change(value: Value) -> bool:
    """Whether what is given a value may change a list by it: a function, or the method of a list."""
    return may_run(value) or isinstance(value, Object) and value.of is not None


class Natives(Parts):
    """Evaluates calls of builtins and of libraries."""

    # -- libraries

    def library_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if name == "tf" or name.startswith("tf."):
            return self.tf_call(name, args, node, frame)
        if name.startswith("builtins."):
            return self._builtin_call(name, args, node, frame)
        if name == "collections.namedtuple":
            record = _record_class(args)
            if record is not None:
                return record
        if name == "collections.OrderedDict":
            return self.builtin("dict", args, node, frame)
        if name == "functools.partial":
            partial = self.partial(args, node, frame)
            if partial is not None:
                return partial
        if name in library.CLOCKS and _is_unread(node, frame.code):
            return Plain()
        if any(holds_tensor(v) for v in args.all()) and self.strict:
            return self.report(
                "TM222", frame.code, node, f"`{frame.code.said(node)}` gives a tensor to `{name}`"
            )
        known = name in library.NUMPY or name in library.OTHERS
        if len(args.given) > library.OUT_PLACES.get(name, len(args.given)) or "out" in args.named:
            known = False  # it writes to an array
        if self.strict and (not known or any(may_run(value) for value in args.all())):
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
        quiet = name.startswith(library.QUIET_LIBRARIES) and not name.endswith(library.CHANGERS)
        quiet = (quiet or known) and not name.startswith("operator.")
        if not quiet or args.starred or any(_may_change(value) for value in args.all()):
            self.escapes(args.all())
        if name in ("functools.reduce", "copy.deepcopy"):
            return Setting()
        if known:
            anew = self.strict and name not in library.VIEWS and "copy" not in args.named
            return Setting(plain=True, own=anew) if name in library.NUMPY else Plain()
        if not quiet:
            self.escapes(args.all())
        if name.startswith(library.QUIET_LIBRARIES) and all(is_python(v) for v in args.all()):
            return Setting()
        return Foreign()

    def _builtin_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        short = name.removeprefix("builtins.")
        if short == "super":
            return self.super_of(args, node, frame)
        if self.strict and short in ASKS and not args.starred:
            asked = self.asks(short, args.given, node, frame)
            if asked is not None:
                return asked
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
            self.escapes(args.all())
            return Foreign()
        if len(values) == 1 and name in _GOES_OVER and isinstance(values[0], Setting):
            self.element(values[0], node.args[0], frame)
        for value in args.all():
            of_its_own = isinstance(value, Instance | Made | Method | Super)
            if of_its_own or name not in _GATHER and may_run(value):
                if not self.strict and name not in _ASK_ONLY:
                    self.escapes(args.all())
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
            numbers = [v.value for v in values if isinstance(v, Const) and isinstance(v.value, int)]
            if len(numbers) == len(values) and numbers and len(span := range(*numbers)) <= 64:
                return Items([(Const(k), True) for k in span], True, fresh, False)
            return Items([(Plain(), False)], False, fresh, False)
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
            if isinstance(inner, Items) and inner.exact and len(args.all()) == 1:
                pairs = [
                    Items([(Const(k), True), (v, s)], True, fresh, False)
                    for k, (v, s) in enumerate(inner.values)
                ]
                return Items([(p, True) for p in pairs], True, fresh, False)
            pair = Items(
                [(Plain(), True), (self.element(inner, node, frame), True)], True, fresh, False
            )
            return Items([(pair, False)], False, fresh, False)
        if name == "dict":
            return self._dict_of(args, node, frame)
        if name in ("list", "tuple", "reversed", "sorted", "set", "frozenset"):
            if not values:
                return Items([], True, fresh)
            if isinstance(values[0], Items):
                made = values[0].entries()
                if name == "reversed":
                    made.reverse()
                kept = values[0].exact and name in ("list", "tuple", "reversed")
                return Items(made, kept, fresh, name not in ("tuple", "frozenset"))
            return Items([(self.element(values[0], node, frame), False)], False, fresh)
        if name == "len" and values:
            if isinstance(values[0], Items) and values[0].exact:
                return Const(len(values[0].values))
            return Plain()
        if name in ("int", "float") and values and isinstance(values[0], Static):
            return Plain()
        if name in _NUMBERS and values and isinstance(values[0], Setting):
            return Setting(plain=True, own=True)
        if name in ("str", "repr", "unicode", "slice") or name == "format":
            text = self._text(values, node, frame)
            if isinstance(text, Text) and name == "str" and len(args.all()) == 1:
                return formed(text, form_of(values[0]))
            return spelled(text, values, str) if name == "str" and len(values) == 1 else text
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
        return Setting() if any(isinstance(v, Setting) for v in values) else Plain()

    def _dict_of(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`dict(pairs, name=value)`."""
        values: list[tuple[Value, bool]] = [(value, True) for value in args.named.values()]
        keys: list[Value] = [Plain()] if values else []
        for given in args.given:
            if isinstance(given, Items) and given.key is not None:
                values.extend(given.values)
                keys.append(given.key)
                continue
            pairs = given.values if isinstance(given, Items) else [(Unknown(), False)]
            for pair, _ in pairs:
                if not (isinstance(pair, Items) and pair.exact and len(pair.values) == 2):
                    return self._unknown(node, frame)
                keys.append(pair.values[0][0])
                values.append((pair.values[1][0], False))
        return Items(values, outer=not self.strict, key=join_all(keys) if keys else Plain())

    def escapes(self, values: Iterable[Value]) -> None:
        raise NotImplementedError

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def super_of(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def partial(self, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        raise NotImplementedError

    def _of_items(self, holder: Items, name: str, args: Arguments) -> Value | None:
        """A method of a list or dict that changes nothing."""
        fresh = not self.strict
        key = holder.key
        if name == "get":
            default = args.get(1, "default") or NONE
            return join_all([*([holder.held()] if holder.values else []), default])
        if name == "copy":
            return Items(holder.values, holder.exact, fresh, key=key, keys=holder.keys)
        if name == "values":
            return Items(holder.values, False, fresh)
        if name == "keys":
            return Items(holder.entries(), False, fresh)
        if name == "items":
            pair = Items([(key or Plain(), True), (holder.held(), True)], True, fresh, False)
            return Items([(pair, False)], False, fresh)
        return Plain() if name in ("index", "count") else None

    def _unknown(self, node: ast.Call, frame: Frame) -> Value:
        return self.report(
            "TM222", frame.code, node,
            f"what `{frame.code.said(node.func)}` does is not known, and {self.where} is run several times in Python",
        )  # fmt: skip


def _is_unread(node: ast.Call, code: Code) -> bool:
    """Whether a function binds a name to what a call gives, and reads it nowhere."""
    statement = code.parents.get(id(node))
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            pass
        case _:
            return False
    scope: ast.AST | None = statement
    while scope is not None and not isinstance(scope, ast.FunctionDef | ast.ClassDef | ast.Lambda):
        scope = code.parents.get(id(scope))
    if not isinstance(scope, ast.FunctionDef):
        return False
    return not any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        or isinstance(each, ast.Global | ast.Nonlocal) and name in each.names
        for each in ast.walk(scope)
    )  # fmt: skip
