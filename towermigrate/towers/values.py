"""What is known of a value of a tower program: a term of Python's, an array, a scope that variables are named by."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from towermigrate.flow.values import (
    HELD,
    Cells,
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Made,
    Many,
    MayGive,
    Method,
    Module,
    Perhaps,
    Row,
    Table,
    Unknown,
    Value,
    read,
)

Key = Hashable
"""What two values have in common where they are the same: that of an unknown value is its own."""


@dataclass(frozen=True)
class Term(Value):
    """What an operation gives that is not run: the same operation of the same values gives the same term.

    `may_be` are the functions and objects that it may be one of, `marks` says what it goes by: the tower's index, a flag.
    `whole` where it is one of `may_be` for certain.
    """

    number: int
    marks: frozenset[str] = field(compare=False)
    may_be: tuple[Value, ...] = field(default=(), compare=False, repr=False)
    whole: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Tensor(Value):
    """What TensorFlow gives. Of a tensor Python sees the shape and the type, which are those of all towers' tensors.

    They are not where the tower's index says what they are: then `by` is its key. A `variable` has the name that the
    program gives it, other tensors have names of their tower's own.
    """

    by: Key = None
    variable: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class VariableScope(Value):
    """A scope that variables are named by, to be opened or opened."""

    path: tuple[Key, ...]


@dataclass(frozen=True)
class NameScope(Value):
    """A scope that operations are named by."""

    name: Key


@dataclass(eq=False)
class ArgScope(Value):
    """What functions are given by `arg_scope`, each by its key.

    `given` are arguments by their names, `stars` what may hold more of them, or may be for that function.
    """

    given: Mapping[Key, Mapping[str, Value]] = field(default_factory=dict)
    stars: Mapping[Key, tuple[Value, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Template(Value):
    """What `tf.make_template` gives: a function that is called with what it was given."""

    function: Value


def is_list(value: Value) -> bool:
    """Whether it is a list, or one of several lists for certain."""
    return isinstance(value, Items) or isinstance(value, Term) and value.whole


TENSOR = Tensor()
_NOTHING: frozenset[str] = frozenset()
_TOWER = frozenset({"tower"})
GROWN = ("grown",)
"""Where a list or a table of unknown length holds what the towers added to it."""
EACH_TIME = "each time"
"""The mark of what need not be the same for all towers."""


class Terms:
    """All terms of a run, each made once, and what tells values apart."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[Key, ...]], Term] = {}
        self._kept: dict[int, Unknown] = {}
        self._marked: dict[int, frozenset[str]] = {}
        """What terms go by, by their numbers, where that is anything."""
        self._of_sets: dict[frozenset[Key], frozenset[str]] = {}
        self.changed: Cells = {}
        """What was done, by methods, to what values stand for of which no more is known."""
        self.stands_for: dict[int, Key] = {}
        """Keys of objects that stand for values of which no more is known."""
        self.first = self._made("first tower", (), _TOWER, ())
        self.tower = self._made("other tower", (), _TOWER, ())
        each_time = frozenset({EACH_TIME})
        self.once = self._made("what the first tower gets", (), each_time, ())
        self.again = self._made("what another tower gets", (), each_time, ())
        """What need not be the same each time that it is asked for."""
        self.flag = self._made("flag", (), frozenset({"flag"}), ())
        """What is False or None for the first tower and True for others."""

    def of(
        self, operation: str, parts: Iterable[Value | str | Key], may_be: tuple[Value, ...] = ()
    ) -> Term:
        """The term of an operation on values, or on keys of values."""
        keys = tuple(self.key(each) if isinstance(each, Value) else each for each in parts)
        known = self._known.get((operation, keys))
        if known is not None:
            return Term(known.number, known.marks, may_be) if may_be != known.may_be else known
        return self._made(operation, keys, self.marks(keys), may_be)

    def _made(
        self,
        operation: str,
        keys: tuple[Key, ...],
        marks: frozenset[str],
        may_be: tuple[Value, ...],
    ) -> Term:
        made = Term(len(self._known), marks, may_be)
        self._known[(operation, keys)] = made
        if marks:
            self._marked[made.number] = marks
        return made

    def marks(self, key: Key) -> frozenset[str]:
        """What a key goes by."""
        if isinstance(key, tuple):
            if len(key) == 2 and key[0] == "term" and type(key[1]) is int:
                return self._marked.get(key[1], _NOTHING)
            found = _NOTHING
            for each in key:
                if type(each) is not str:  # most parts are, and go by nothing
                    own = self.marks(each)
                    found = found | own if found and own else found or own
            return found
        if isinstance(key, frozenset):
            # What was asked on the way, which is looked at for each value that is joined.
            known = self._of_sets.get(key)
            if known is None:
                known = self._of_sets[key] = _NOTHING.union(*map(self.marks, key))
            return known
        if isinstance(key, Tensor):
            return _NOTHING if key.by is None else self.marks(key.by) or _TOWER
        return _NOTHING

    def key(self, value: Value, depth: int = 2) -> Key:
        match value:
            case Const():
                return ("const", type(value.value).__name__, repr(value.value))
            case Term():
                return self._own("term", value.number)
            case External():
                return self._own("library", value.name)
            case Perhaps():
                return ("perhaps", self.key(value.value, depth), value.by)
            case Unknown():
                self._kept[id(value)] = value
                return self._own("unknown", id(value))
            case MayGive():
                return ("perhaps", value.name, self.key(value.value, depth))
            case Row():
                return tuple(self.key(each, depth) for each in value.entries)
            case Many():
                return ("many", None if value.entry is None else self.key(value.entry, depth))
            case Method():
                return ("method", self.key(value.owner, depth), value.name)
            case Function():
                bound = None if value.bound is None else self.key(value.bound, 0)
                return ("function", id(value.node), bound)
            case Module():
                return ("module", value.path)
            case Class():
                return ("class", value.place)
            case Items():
                held = value.cells.get(HELD) if depth > 0 else None
                grown = value.cells.get(GROWN)
                own = () if grown is None else (self.key(grown, 0),)
                return (
                    value.kind,
                    value.place if held is None else self.key(held, depth - 1),
                    *own,
                )
            case Instance() if id(value) in self.stands_for:
                return self.stands_for[id(value)]
            case Table() | Instance():
                kind = value.kind.place if isinstance(value, Instance) else None
                return (type(value).__name__, value.place, kind, self._inside(value, depth))
            case Template():
                return ("template", self.key(value.function, depth))
            case VariableScope():
                return ("scope", value.path)
            case ArgScope():
                given = [(of, self._of_each(each)) for of, each in value.given.items()]
                stars = [(of, tuple(map(self.key, each))) for of, each in value.stars.items()]
                return ("arg scope", tuple(given), tuple(stars))
        return value

    def _own(self, *own: str | int) -> Key:
        changed = self.changed.get(own) if self.changed else None
        return own if changed is None else (*own, self.key(read(changed)))

    def change(self, value: Term | Unknown | External) -> tuple[str, int | str]:
        """Where it is noted what is done to what a value stands for."""
        if isinstance(value, Term):
            return ("term", value.number)
        if isinstance(value, External):
            return ("library", value.name)
        self._kept[id(value)] = value
        return ("unknown", id(value))

    def _of_each(self, values: Mapping[str, Value]) -> Key:
        return tuple((name, self.key(each)) for name, each in values.items())

    def _of_object(self, value: Value, depth: int) -> Key:
        found = self.key(value, depth)
        return EACH_TIME if EACH_TIME in self.marks(found) else found

    def _inside(self, value: Made, depth: int) -> Key:
        """What an object or a table holds, one level deep: objects in it by where they were made.

        That an object has numbers that are drawn, as the first values of variables are, says nothing of its names.
        """
        if depth <= 0:
            return None
        key = self._of_object if isinstance(value, Instance) else self.key
        return tuple(
            (name, key(held, 0))
            for name, held in sorted(value.cells.items(), key=lambda each: repr(each[0]))
            if name != HELD
        )
