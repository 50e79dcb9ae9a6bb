"""What the proof knows of a value: a Python value, a tensor and what it draws, a list, a function.

The proof runs a tower's Python once on these. `needs` of a tensor are the draws of the input pipeline that
computing it is sure to make; where it cannot be said, there are none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

from towermigrate.flow.values import NONE, Const, External, Unknown, Value, same

if TYPE_CHECKING:
    from towermigrate.recognize.proof.code import Code
    from towermigrate.recognize.proof.frames import Frame

NOTHING: Final[frozenset[str]] = frozenset()
SHARED: Final = "collection of all towers "


class OutOfSteps(Exception):
    """The program is too large for a proof."""


_FOLLOWED = 1000
"""How many values of one list are told apart."""


@dataclass(eq=False)
class Plain(Value):
    """An immutable Python value of which no more is known."""


Python = Const | Plain
"""An immutable Python value."""


@dataclass(eq=False)
class Present(Plain):
    """Whether a gradient is not None, which is so for at least one of a list of gradients."""


@dataclass(eq=False)
class Setting(Value):
    """A Python value made before the towers that may be mutable: an argument, a flag, an array.

    `plain` ones are surely arrays or collections of Python's own, whose methods are known; `flag` ones are what a command
    line gives, and are computed of that: no objects of the program's own. `own` ones are numbers or texts, or are made
    anew wherever they are computed, so that nothing else holds them. `told` ones are what a parser of the command line
    gives: numbers and texts, and lists where it says so. `called` is the name of the attribute, or of the parameter, that
    it was read by.
    """

    plain: bool = False
    flag: bool = False
    own: bool = False
    told: bool = False
    called: str = ""


@dataclass(eq=False)
class Foreign(Value):
    """A value made before the towers of which it is not known whether it belongs to the graph."""

    name: str = ""


@dataclass(eq=False)
class Tensor(Value):
    """A tensor or a variable. `given` is an input of a tower, which a step is given: no operation makes it there.

    `many` says that it may be a list or a tuple of tensors, which one function gives; `constant` that it is made of
    numbers of the program's own.
    """

    needs: frozenset[str] = NOTHING
    variable: bool = False
    gradient: bool = False
    placeholder: bool = False
    summary: bool = False
    given: bool = False
    many: bool = False
    constant: bool = False


@dataclass(eq=False)
class Static(Value):
    """A static shape or one of its sizes, which TF1 may not have known: `x.get_shape()[0].value`.

    `rank` is how many sizes a shape has.
    """

    shape: bool = False
    rank: bool = False


@dataclass(eq=False)
class Text(Value):
    """A text made in the tower. `of` is "index" (the tower's number), "scope" (its name scope) or "name".

    `form` is what stands around the tower's number, for which it has `{}`; None where that is not known.
    """

    of: str
    form: str | None = field(default=None, kw_only=True)


@dataclass(eq=False)
class Index(Value):
    """The number of a tower."""


@dataclass(eq=False)
class Differs(Value):
    """A Python value that differs between the towers: `i > 0`, a reuse flag."""


class Items(Value):
    """A list, tuple, set or dict: its values and whether each is surely there. `exact` knows the order.

    Args:
        outer: it was made outside of the code that moves.
        key: what stands for the keys of a dict, None for all that is no dict.
        keys: the keys of a dict as it was written; it may have been changed since.
        parts: what it is one of. It holds what any of them holds, now and later, and what changes it changes one of them.
    """

    def __init__(
        self,
        values: Sequence[tuple[Value, bool]] = (),
        exact: bool = True,
        outer: bool = False,
        mutable: bool = True,
        name: str = "",
        *,
        key: Value | None = None,
        keys: tuple[str, ...] = (),
        parts: tuple[Items, ...] = (),
    ) -> None:
        self._values = list(values)
        self._exact = exact and key is None
        self._key = key
        self.outer, self.mutable, self.name = outer, mutable, name
        self.keys, self.parts = keys, parts
        self._few()

    @property
    def exact(self) -> bool:
        return self._of_parts()[1] if self.parts else self._exact

    @property
    def values(self) -> Sequence[tuple[Value, bool]]:
        return self._of_parts()[0] if self.parts else self._values

    def _of_parts(self) -> tuple[list[tuple[Value, bool]], bool]:
        one = self.parts[0]
        values, exact = list(one.values), one.exact
        for other in self.parts[1:]:
            exact = exact and other.exact and len(values) == len(other.values)
            if exact:
                pairs = zip(values, other.values, strict=True)
                values = [(join(x, y), s and t) for (x, s), (y, t) in pairs]
            else:
                values = [(v, False) for v, _ in [*values, *other.values]]
        return values, exact

    @property
    def key(self) -> Value | None:
        keys = [part.key for part in self.parts] or [self._key]
        return join_all([key for key in keys if key is not None]) if None not in keys else None

    def held(self) -> Value:
        """One value that stands for all."""
        return join_all([value for value, _ in self.values])

    def entries(self) -> list[tuple[Value, bool]]:
        """What going over it gives, and whether surely: the keys of a dict."""
        key = self.key
        return list(self.values) if key is None else [(key, any(sure for _, sure in self.values))]

    def element(self) -> Value:
        """One value that stands for all that going over it gives."""
        return self.held() if self.key is None else join_all([one for one, _ in self.entries()])

    def grow(
        self, more: Sequence[tuple[Value, bool]], exact: bool = True, key: Value | None = None
    ) -> None:
        """Add values behind the others, or, where the order is not `exact`, somewhere."""
        if any(one is self for value, _ in more for one in _inside(value)):
            raise OutOfSteps  # a list that holds itself
        for part in self.parts:
            part.grow([(value, False) for value, _ in more], False, key)
        if self.parts:
            return
        self._exact = self._exact and exact
        if self._key is not None and key is not None:
            self._key = join(self._key, key)
        self._values.extend(more)
        self._few()

    def _few(self) -> None:
        """One value stands for all where there are too many to follow."""
        if len(self._values) > _FOLLOWED:
            self._values = [(self.held(), any(sure for _, sure in self._values))]
            self._exact = False

    @property
    def state(self) -> object:
        """What tells whether it was changed."""
        own = [(id(value), sure) for value, sure in self._values]
        return own, self._exact, [part.state for part in self.parts]

    def loosen(self) -> None:
        """Any of its values may be gone, and their order may be another."""
        for part in self.parts:
            part.loosen()
        self._values = [(value, False) for value, _ in self._values]
        self._exact = False


def _inside(value: Value) -> Iterator[Items]:
    """The lists that a value is, may be or holds."""
    if isinstance(value, Items):
        yield value
        for part in value.parts:
            yield from _inside(part)
        for one, _ in () if value.parts else value.values:
            yield from _inside(one)
    elif isinstance(value, Either):
        for one in value.values:
            yield from _inside(one)


class Keywords(Items):
    """The dict of what a call gave by names that are no parameters: `**kwargs`."""

    def __init__(self, given: dict[str, Value], outer: bool) -> None:
        super().__init__([(v, True) for v in given.values()], outer=outer, key=Plain())
        self.given = given

    @property
    def unchanged(self) -> bool:
        """Whether the dict is as the call made it."""
        held = self.values
        same = len(held) == len(self.given) and all(sure for _, sure in held)
        return same and all(v is one for (v, _), one in zip(held, self.given.values(), strict=True))


class Record(Items):
    """A named tuple."""

    def __init__(self, fields: dict[str, Value], outer: bool) -> None:
        super().__init__([(v, True) for v in fields.values()], outer=outer, mutable=False)
        self.fields = fields


@dataclass(eq=False)
class RecordClass(Value):
    """What `collections.namedtuple` gives: a class whose objects are tuples with names for their values."""

    fields: tuple[str, ...]


@dataclass(eq=False)
class Function(Value):
    """A function or lambda of the tree with the frame it was made in.

    `plain` says that a call runs its body, whatever decorators it has: what they make of it was followed.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    code: Code
    frame: Frame
    plain: bool = False
    owner: Class | None = None
    """The class that it is a method of."""
    defaults: tuple[tuple[int, Value], ...] = ()
    """What its defaults, by the identity of their nodes, were where it was made; of others it is looked up."""


@dataclass(eq=False)
class Partial(Value):
    """A function with some of its arguments: `functools.partial(function, …)`."""

    function: Value
    given: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...]


@dataclass(eq=False)
class Class(Value):
    """A class of the tree."""

    node: ast.ClassDef
    code: Code


@dataclass(eq=False)
class Instance(Value):
    """An object of a class of the tree, made before the towers: only its plain attributes may be read."""

    made_of: Class


class Made(Value):
    """An object of a class of the tree that is followed: `kept` are its attributes, `sure` those that it surely has.

    Args:
        outer: it was made outside of the code that moves.
        several: it stands for several objects of one place, so that nothing that one of them kept is forgotten.

    `lost` says that what is not followed may have changed it, `done` that the towers which made it are over; `seen_as`
    is the name that moved code reads it by.
    """

    def __init__(self, made_of: Class, *, outer: bool, several: bool) -> None:
        self.made_of, self.outer, self.several = made_of, outer, several
        self.kept: dict[str, Value] = {}
        self.sure: set[str] = set()
        self.lost = False
        self.done = False
        self.seen_as: tuple[Frame, str] | None = None

    def finish(self) -> None:
        """The code that made it is over: what reads it from now on may not change it, nor the lists that it keeps."""
        waiting: list[Value] = [self]
        seen: set[int] = set()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, Made):
                one.done = True
                waiting.extend(one.kept.values())
            elif isinstance(one, Items):
                one.outer = True
                waiting.extend(value for value, _ in one.values)
            elif isinstance(one, Either):
                waiting.extend(one.values)
            elif isinstance(one, Method):
                waiting.append(one.of)

    def keep(self, name: str, value: Value, sure: bool) -> None:
        before = self.kept.get(name)
        forgets = before is None or sure and not self.several
        self.kept[name] = value if forgets or before is None else join(before, value)
        if sure:
            self.sure.add(name)


@dataclass(eq=False)
class Method(Value):
    """A method of an object that is followed."""

    function: Function
    of: Made


@dataclass(eq=False)
class Super(Value):
    """What `super()` gives: an object as the classes above one see it."""

    of: Made
    behind: Class


@dataclass(eq=False)
class Module(Value):
    """A module of the tree."""

    code: Code


@dataclass(eq=False)
class Object(Value):
    """An object of TensorFlow that is no tensor: an optimizer, an initializer, a variable scope.

    `seed` is that of an initializer, True where it is one that is not known.
    """

    kind: str
    needs: frozenset[str] = NOTHING
    seed: object = None
    of: Value | None = None


@dataclass(eq=False)
class Collected(Value):
    """What a collection holds of all towers built so far; `need` stands for it in the needs of tensors."""

    need: str


@dataclass(eq=False)
class Either(Value):
    """One of several values; which one, Python decides."""

    values: tuple[Value, ...]


def text_of(value: Value | None) -> str | None:
    """The text that a value is, where it is known to be one."""
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def keyed(value: Value) -> dict[str, Value] | None:
    """The values of a dict of moved code by their keys; None where they are not known."""
    if not isinstance(value, Items) or value.outer or not value.keys:
        return None
    if len(value.keys) != len(value.values):
        return None
    if not all(sure for _, sure in value.values) or len(set(value.keys)) != len(value.keys):
        return None
    return {key: one for key, (one, _) in zip(value.keys, value.values, strict=True)}


def needs_of(value: Value) -> frozenset[str]:
    """The draws that computing a value is sure to make."""
    if isinstance(value, Tensor | Object):
        return value.needs
    if isinstance(value, Collected):
        return frozenset({value.need})
    if isinstance(value, Items):
        found: frozenset[str] = NOTHING
        for one, sure in value.values:
            found |= needs_of(one) if sure else shared(needs_of(one))
        return found
    if isinstance(value, Either):
        return _of_both([needs_of(v) for v in value.values])
    return NOTHING


def shared(needs: frozenset[str]) -> frozenset[str]:
    """The needs that stand for collections of all towers, which one branch alone brings in."""
    return frozenset(need for need in needs if need.startswith(SHARED))


def _of_both(parts: list[frozenset[str]]) -> frozenset[str]:
    return frozenset.intersection(*parts) | shared(frozenset.union(*parts))


def may_run(value: Value) -> bool:
    """Whether calling a value may run code of the program's, or it holds what does."""
    if isinstance(value, Items):
        return any(may_run(v) for v, _ in value.values)
    if isinstance(value, Either):
        return any(may_run(v) for v in value.values)
    return isinstance(value, Function | Partial | Class | Instance | Made | Method | Super)


def holds_tensor(value: Value) -> bool:
    """Whether a value is a tensor or has one in it."""
    if isinstance(value, Items):
        return any(holds_tensor(v) for v, _ in value.values)
    if isinstance(value, Either):
        return any(holds_tensor(v) for v in value.values)
    return isinstance(value, Tensor)


def holds_static(value: Value) -> bool:
    """Whether a value is a static shape or size, may be one, or has one in it."""
    if isinstance(value, Items):
        return any(holds_static(v) for v, _ in value.values)
    if isinstance(value, Either):
        return any(holds_static(v) for v in value.values)
    return isinstance(value, Static)


def join_all(values: list[Value]) -> Value:
    """What is true of all of some values."""
    if not values:
        return Unknown()
    first = values[0]
    others = list(dropwhile(lambda value: value is first, values))
    if not others:
        return first
    parts = _Parts()
    # What `join` gives of the first ones has no two of a kind, so that the next need not go through them again.
    for value in (first, *others):
        parts.add(value)
    if not parts.moved:
        return parts.joined()
    joined = first
    for value in values[1:]:
        joined = join(joined, value)
    return joined


def join(a: Value, b: Value) -> Value:
    """What is true of a value that is one of two."""
    if a is b:
        return a
    parts = _Parts()
    parts.add(a)
    parts.add(b)
    return parts.joined()


class _Parts:
    """What a value may be one of: one for those of a kind, others by themselves.

    `moved` says that one became another kind's, which may be there already.
    """

    def __init__(self) -> None:
        self.moved = False
        self._parts: list[Value] = []
        self._of_kinds: list[int] = []
        self._alone: set[int] = set()

    def add(self, value: Value) -> None:
        for one in value.values if isinstance(value, Either) else (value,):
            if not isinstance(one, _OF_KINDS):
                if id(one) not in self._alone:
                    self._alone.add(id(one))
                    self._parts.append(one)
                continue
            for at in self._of_kinds:
                part = self._parts[at]
                made = _merged(part, one)
                if made is not None:
                    self.moved |= isinstance(made, Text) and type(made) is not type(part)
                    self._parts[at] = made
                    break
            else:
                self._of_kinds.append(len(self._parts))
                self._parts.append(one)

    def joined(self) -> Value:
        return self._parts[0] if len(self._parts) == 1 else Either(tuple(self._parts))


def _merged(a: Value, b: Value) -> Value | None:
    """One value for two of a kind; None where they are of different kinds."""
    if a is b:
        return a
    if type(a) is not type(b):  # most of the many that are asked for
        of_one_kind = isinstance(a, Python) and isinstance(b, Python)
        if not of_one_kind and not (isinstance(a, Items) and isinstance(b, Items)):
            return None
    if isinstance(a, Python) and isinstance(b, Python):
        if same(a, b):
            return a
        return None if (a == NONE) != (b == NONE) else Plain()
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        needs = _of_both([a.needs, b.needs])
        return Tensor(
            needs, a.variable or b.variable, a.gradient or b.gradient, many=a.many or b.many
        )
    if isinstance(a, Setting) and isinstance(b, Setting):
        kept, own, told = a if b.plain else b, a.own and b.own, a.told and b.told
        if a.plain or b.plain or a.called == b.called and a.flag == b.flag:
            return Setting(kept.plain, kept.flag, own, told, kept.called)
        return Setting(flag=a.flag and b.flag, own=own, told=told)
    if isinstance(a, Static) and isinstance(b, Static):
        return Static(a.shape, a.rank and b.rank)
    if type(a) is type(b) and isinstance(a, Index | Differs):
        return a
    if isinstance(a, Text) and isinstance(b, Text) and a.of == b.of:
        return a if a.form == b.form else Text(a.of)
    if isinstance(a, External) and same(a, b):
        return a
    if isinstance(a, Object) and isinstance(b, Object) and a.kind == b.kind:
        seed = a.seed if a.seed == b.seed else True
        return Object(a.kind, _of_both([a.needs, b.needs]), seed, a.of if a.of is b.of else None)
    if isinstance(a, Items) and isinstance(b, Items) and (a.key is None) is (b.key is None):
        each = dict.fromkeys(part for one in (a, b) for part in one.parts or (one,))
        outer = a.outer or b.outer
        return Items(outer=outer, mutable=a.mutable or b.mutable, name=a.name, parts=tuple(each))
    return None


_OF_KINDS = (
    Const, Plain, Tensor, Setting, Static, Index, Differs, Text, External, Object, Items,
)  # fmt: skip
"""What there may be one value for two of."""


def are_variables(value: Value) -> bool:
    """Whether a value is a variable, or lists and dicts of variables and what is plain, and surely nothing else."""
    if isinstance(value, Either):
        return all(are_variables(one) for one in value.values)
    if isinstance(value, Items):
        return all(are_variables(one) or isinstance(one, Const) for one, _ in value.values)
    return isinstance(value, Tensor) and value.variable
