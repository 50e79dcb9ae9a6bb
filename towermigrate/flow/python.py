"""What Python's builtins and a few modules of its library give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from towermigrate.flow.domain import Call
from towermigrate.flow.values import (
    HELD,
    NONE,
    REST,
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Perhaps,
    Row,
    Table,
    Value,
    named,
    read,
)


def _turns(call: Call, value: Value) -> Sequence[Value] | None:
    return call.interpreter.turns(value)


def _entry(call: Call, value: Value) -> Value:
    return call.interpreter.entry(value, call.node, call.scope)


def _range(call: Call) -> Value:
    numbers = [each.value for each in call.args if isinstance(each, Const)]
    if len(numbers) == len(call.args) and 1 <= len(numbers) <= 3 and not call.keywords:
        try:
            found = range(*numbers)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            return call.unknown("no range")
        if len(found) <= call.interpreter.limits.entries:
            return call.interpreter.items([Const(each) for each in found], call.place, "tuple")
    return call.interpreter.items(None, call.place, "tuple", call.unknown("a number of a range"))


def _enumerate(call: Call) -> Value:
    if not 1 <= len(call.args) <= 2 or call.keywords.keys() - {"start"}:
        return call.unknown("an enumeration")
    start = call.get(1, "start") or Const(0)
    turns = _turns(call, call.args[0])
    make = call.interpreter.items
    if turns is not None and isinstance(start, Const) and isinstance(start.value, int):
        pairs = [
            make((Const(start.value + k), each), call.place, "tuple")
            for k, each in enumerate(turns)
        ]
        return make(pairs, call.place, "iterator")
    pair = make((call.unknown("a count"), _entry(call, call.args[0])), call.place, "tuple")
    return make(None, call.place, "iterator", pair)


def _zip(call: Call) -> Value:
    if call.keywords:
        return call.unknown("a zip")
    make = call.interpreter.items
    columns = [_turns(call, each) for each in call.args]
    if all(column is not None for column in columns):
        rows = zip(*(column for column in columns if column is not None), strict=False)
        return make([make(row, call.place, "tuple") for row in rows], call.place, "iterator")
    row = [
        call.interpreter.any_of(column) if column else _entry(call, each)
        for column, each in zip(columns, call.args, strict=True)
    ]
    return make(None, call.place, "iterator", make(row, call.place, "tuple"))


def _list(kind: str) -> Callable[[Call], Value]:
    def made(call: Call) -> Value:
        make = call.interpreter.items
        if call.keywords or len(call.args) > 1:
            return call.unknown(f"a {kind}")
        if not call.args:
            return make((), call.place, kind)
        turns = _turns(call, call.args[0])
        if turns is not None and kind != "set":
            return make(turns, call.place, kind)
        return make(None, call.place, kind, _entry(call, call.args[0]))

    return made


def _reversed(call: Call) -> Value:
    turns = _turns(call, call.args[0]) if len(call.args) == 1 else None
    if turns is not None:
        return call.interpreter.items(turns[::-1], call.place, "iterator")
    return call.interpreter.items(None, call.place, "iterator", _entry(call, call.args[0]))


def _sorted(call: Call) -> Value:
    if len(call.args) != 1:
        return call.unknown("a sorted list")
    turns = _turns(call, call.args[0])
    consts = [each.value for each in turns or () if isinstance(each, Const)]
    backwards = call.keywords.get("reverse", Const(False))
    if (
        turns is not None
        and len(consts) == len(turns)
        and "key" not in call.keywords
        and isinstance(backwards, Const)
    ):
        try:
            found = sorted(consts, reverse=bool(backwards.value))  # type: ignore[type-var]
        except TypeError:
            return call.unknown("TypeError")
        return call.interpreter.items([Const(each) for each in found], call.place)
    key = call.keywords.get("key")
    one = call.interpreter.any_of(turns) if turns else _entry(call, call.args[0])
    if key is not None:
        call.interpreter.call_with(key, [one], call.node, call.scope)
    return call.interpreter.items(None, call.place, "list", one)


def _map(call: Call) -> Value:
    if len(call.args) < 2 or call.keywords:
        return call.unknown("a map")
    function, *over = call.args
    run = call.interpreter.call_with
    columns = [_turns(call, each) for each in over]
    if all(column is not None for column in columns):
        rows = zip(*(column for column in columns if column is not None), strict=False)
        found = [run(function, row, call.node, call.scope) for row in rows]
        return call.interpreter.items(found, call.place, "iterator")
    row = [
        call.interpreter.any_of(column) if column else _entry(call, each)
        for column, each in zip(columns, over, strict=True)
    ]
    call.interpreter.generic += 1
    try:
        one = run(function, row, call.node, call.scope)
    finally:
        call.interpreter.generic -= 1
    return call.interpreter.items(None, call.place, "iterator", one)


def _dict(call: Call) -> Value:
    made = call.interpreter.table({}, call.place)
    if len(call.args) == 1:
        pairs = None if isinstance(call.args[0], Table) else _turns(call, call.args[0])
        if pairs is None:
            call.interpreter.update(made, call.args[0], call.place)
        for pair in pairs or ():
            parts = _turns(call, pair)
            if parts is None or len(parts) != 2:
                call.interpreter.escape([made], call.unknown("entries that are not known"))
                break
            call.interpreter.set_entry(made, parts[0], parts[1], call.place)
    for key, value in call.keywords.items():
        call.interpreter.set_entry(made, Const(key), value, call.place)
    return made


def _len(call: Call) -> Value:
    value = call.get(0)
    if isinstance(value, Items) and value.kind in ("list", "tuple") and value.entries is not None:
        return Const(len(value.entries))
    if isinstance(value, Table) and value.exact and not value.wild:
        return Const(len(list(value.known())))
    if isinstance(value, Const) and isinstance(value.value, str | bytes):
        return Const(len(value.value))
    return call.unknown("a length")


def _plain(function: Callable[..., object]) -> Callable[[Call], Value]:
    """A builtin on constants."""

    def called(call: Call) -> Value:
        values = [each.value for each in call.args if isinstance(each, Const)]
        if len(values) == len(call.args) and not call.keywords:
            try:
                return Const(function(*values))
            except Exception as error:
                return call.unknown(type(error).__name__)
        return call.unknown(f"{function.__name__} of what is not known")

    return called


def _of_all(function: Callable[..., object]) -> Callable[[Call], Value]:
    """`sum`, `min` and `max` of constants."""

    def called(call: Call) -> Value:
        values: Sequence[Value] | None = call.args
        if len(call.args) == 1:
            values = _turns(call, call.args[0])
        consts = [each.value for each in values or () if isinstance(each, Const)]
        if values is not None and len(consts) == len(values) and not call.keywords:
            if function is not sum or len(call.args) == 1:
                try:
                    return Const(function(consts))
                except Exception as error:
                    return call.unknown(type(error).__name__)
        return call.unknown(f"{function.__name__} of what is not known")

    return called


def _bool(call: Call) -> Value:
    if not call.args:
        return Const(False)
    known = call.interpreter.truth(call.args[0])
    return call.unknown("whether it is true") if known is None else Const(known)


def _getattr(call: Call) -> Value | None:
    match call.args:
        case [Instance() as owner, Const(value=str() as name), *_]:
            found = owner.cells.get(named(name))
            special = call.interpreter.of_class(owner.kind, name)
            if found is not None and not isinstance(special, Function):
                return read(found)
    return None


def _setattr(call: Call) -> Value | None:
    match call.args:
        case [owner, Const(value=str() as name), value]:
            call.interpreter.set_attribute(owner, name, value, call.place)
            return NONE
    return None


def _isinstance(call: Call) -> Value:
    match call.args:
        case [Instance(kind=kind), Class() as wanted]:
            if wanted in kind.line():
                return Const(True)
            if kind.whole:
                return Const(False)
        case [Const() | Items() | Table() as value, wanted] if not call.keywords:
            kinds = wanted.entries if isinstance(wanted, Items) else [wanted]
            found = [_is_of(value, each) for each in kinds or ()]
            if any(found):
                return Const(True)
            if found and None not in found:
                return Const(False)
    return call.unknown("what kind of value it is")


def _hasattr(call: Call) -> Value:
    match call.args:
        case [Instance() as owner, Const(value=str() as name)]:
            special = [
                call.interpreter.of_class(owner.kind, e)
                for e in ("__getattr__", "__getattribute__")
            ]
            held = owner.cells.get(named(name))
            of_class = call.interpreter.of_class(owner.kind, name)
            computed = isinstance(of_class, Function) and of_class.form == "property"
            if special == [None, None] and not computed and not owner.wild:
                if of_class is not None or held is not None and not isinstance(held, Perhaps):
                    return Const(True)
                if held is None and REST not in owner.cells and owner.kind.whole:
                    return Const(False)
    return call.unknown("whether it has an attribute")


def _is_of(value: Value, kind: Value) -> bool | None:
    """Whether a constant, a list or a table is of a kind; None where that is not known."""
    name = kind.name if isinstance(kind, External) else ""
    if name not in _KINDS:
        return None
    match value:
        case Const():
            return isinstance(value.value, _KINDS[name])
        case Items() if value.kind != "iterator":
            return name.rpartition(".")[2] == value.kind
        case Table():
            # It may be of a kind of dictionary, which `dict` is none of.
            return True if name == "builtins.dict" else False if _KINDS[name] != (dict,) else None
    return None


_KINDS: dict[str, tuple[type, ...]] = {
    **{f"builtins.{kind.__name__}": (kind,) for kind in (str, int, float, bool, dict, list, tuple, set)},
    "builtins.basestring": (str,),
    **dict.fromkeys(("tf.Tensor", "tf.Variable", "tf.Operation", "tf.SparseTensor"), ()),
}  # fmt: skip


def _partial(call: Call) -> Value:
    match call.args:
        case [Function() as function, *rest]:
            first, fixed = function.given
            given = ((*first, *rest), (*fixed, *call.keywords.items()))
            return replace(function, given=given, names=[])
    return call.unknown("a partial")


def _next(call: Call) -> Value:
    match call.args:
        case [Items(kind="iterator") as owner, *_]:
            entries = owner.entries
            if entries and not owner.repeated:
                call.interpreter.change(owner, HELD, Row(entries[1:]))
                return entries[0]
            return (
                call.interpreter.join(_entry(call, owner), call.args[1])
                if len(call.args) > 1
                else _entry(call, owner)
            )
    return call.unknown("the next of what is not known")


def _nothing(call: Call) -> Value:
    return NONE


def _iter(call: Call) -> Value:
    if len(call.args) != 1:
        return call.unknown("an iterator")
    if isinstance(call.args[0], Items) and call.args[0].kind == "iterator":
        return call.args[0]
    turns = _turns(call, call.args[0])
    if turns is not None:
        return call.interpreter.items(turns, call.place, "iterator")
    return call.interpreter.items(None, call.place, "iterator", _entry(call, call.args[0]))


def _lost(call: Call) -> Value:
    """`exec`, `eval`, `globals`, `locals`: names are in the hands of others from here on."""
    why = call.unknown("code that is made while the program runs")
    call.interpreter.lose(call.scope, why)
    return why


FUNCTIONS: dict[str, Callable[[Call], Value | None]] = {
    "builtins.range": _range,
    "builtins.xrange": _range,
    "six.moves.xrange": _range,
    "six.moves.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "six.moves.zip": _zip,
    "builtins.list": _list("list"),
    "builtins.tuple": _list("tuple"),
    "builtins.set": _list("set"),
    "builtins.iter": _iter,
    "builtins.next": _next,
    "builtins.reversed": _reversed,
    "builtins.sorted": _sorted,
    "builtins.map": _map,
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.len": _len,
    "builtins.int": _plain(int),
    "builtins.float": _plain(float),
    "builtins.str": _plain(str),
    "builtins.abs": _plain(abs),
    "builtins.round": _plain(round),
    "builtins.bool": _bool,
    "builtins.sum": _of_all(sum),
    "builtins.min": _of_all(min),
    "builtins.max": _of_all(max),
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.hasattr": _hasattr,
    "builtins.isinstance": _isinstance,
    "builtins.print": _nothing,
    "builtins.object.__init__": _nothing,
    "functools.partial": _partial,
    "builtins.exec": _lost,
    "builtins.eval": _lost,
    "builtins.globals": _lost,
    "builtins.locals": _lost,
    "builtins.vars": _lost,
}
