"""TF1's meaning as a domain: what its calls give to Python, and what they do to the graph, as events in order.

TensorFlow's tensors are of no interest here; what is told apart is what Python does with the values that a program has
besides: texts, numbers, flags. What is not run of it is a term, the same of the same values, so that one tower's values
can be compared with another's.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from towermigrate.flow import Call, Domain
from towermigrate.flow.python import FUNCTIONS
from towermigrate.flow.values import (
    NONE,
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
    Place,
    Scope,
    Table,
    Unknown,
    Value,
    read,
)
from towermigrate.towers.arg_scopes import TAKES, applied, key_of, named
from towermigrate.towers.each_time import (
    CHANGED_BY,
    GRAPH,
    GRAPHS_OWN,
    VARIABLES,
    gives_iterator,
    gives_the_same,
    method_gives_the_same,
)
from towermigrate.towers.meanings import MEANINGS, PYTHON
from towermigrate.towers.values import (
    EACH_TIME,
    TENSOR,
    ArgScope,
    Key,
    NameScope,
    Template,
    Tensor,
    Term,
    Terms,
    VariableScope,
    is_list,
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

_VARIABLES = {"tf.Variable", *(each for each in _NAMES if each.endswith("variable"))}
"""The functions that give variables."""

_LAYERS = (
    "tf.layers.", "tf.keras.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.contrib.rnn.",
    "tf.nn.rnn_cell.", "tf.nn.dynamic_rnn", "tf.nn.bidirectional_dynamic_rnn", "tf.nn.static_rnn",
    "tf.nn.static_bidirectional_rnn",
)  # fmt: skip
"""Functions whose `name` or `scope` names the variables they make."""

_NO_VARIABLES = re.compile(
    r"pool|flatten|dropout|(?<!spatial_)softmax|regularizer|summar|arg_scope|\.losses\."
    r"|\.(?:unit_norm|one_hot_encoding|maxout)$"
    r"|\.keras\.layers\.(?:Input|InputLayer|Activation|Reshape|Permute|RepeatVector|Masking|ReLU|LeakyReLU|ELU"
    r"|ThresholdedReLU|Add|Subtract|Multiply|Average|Maximum|Minimum|Concatenate|Dot|GaussianNoise"
    r"|(?:Cropping|UpSampling|ZeroPadding)[123]D)$",
    re.I,
)
"""The ones among them that make none."""

_NO_SHAPE = {"name", "scope", "reuse", "seed", "collections", "family"}
"""Arguments of operations that have nothing to do with the shape of what they give."""

_LOOKS = {"tf.slice": 1, "tf.gather": 1}
"""Which argument only says where to look."""

_CHANGES = {
    **dict.fromkeys(
        "append appendleft discard extend extendleft insert pop popitem popleft remove reverse rotate send "
        "subtract".split(),
        True,
    ),
    **dict.fromkeys("clear fill itemset put resize setdefault sort update".split(), False),
}
"""Methods of Python's containers that change them, and whether they do so each time that they are called."""

_LOOKS_ONLY = set(
    "copy count get has_key index items iteritems iterkeys itervalues keys values".split()
)
"""Methods of Python's containers that change nothing."""

_SAME = {"shape", "get_shape", "dtype", "get_next", "dequeue"}
"""What is asked of a tower's inputs: tensors, and what is the same of all towers' tensors."""

_SPELLINGS = [
    (re.compile(r"^tf_slim(?=\.|$)"), "tf.contrib.slim"),
    (re.compile(r"^tensorflow(?=\.|$)"), "tf"),
    (re.compile(r"^tf\.compat\.v1(?=\.|$)"), "tf"),
    (re.compile(r"^six\.moves\.(?=x?range$|zip$)"), "builtins."),
]

FLAG = object()
"""A constant that stands for a flag."""


@lru_cache(4096)
def _spelled(name: str) -> str:
    for pattern, spelling in _SPELLINGS:
        name = pattern.sub(spelling, name)
    return name


@dataclass(frozen=True)
class Event:
    """Something that a call of TensorFlow does to the graph.

    `names` is one that says what variables are called: `key` is the name, `node` where it is written, `path` the names of
    the scopes around it and the name; `each_time` where it goes by what need not be the same each time. `decides` is one that goes by a reuse flag and is no reuse.
    """

    what: Literal["names", "decides"]
    place: Place
    written: ast.AST
    key: Key = None
    path: tuple[Key, ...] = ()
    node: ast.expr | None = None
    each_time: bool = False

    @property
    def site(self) -> Key:
        return (self.what, self.place, None if self.node is None else self.node.col_offset)


class Towers(Domain):
    """The domain. `events` are in the order in which the calls were read."""

    def __init__(self) -> None:
        self.terms = Terms()
        self.index: Value = self.terms.first
        """The index of the tower that is read."""
        self.turns = 0
        """How many towers were begun."""
        self.events: list[Event] = []
        self.scopes: tuple[Key, ...] = ()
        self.names: tuple[Key, ...] = ()
        self.asked: frozenset[Key] = frozenset()
        """What was asked, and left open, on the way to what is read."""
        self.without_class: Callable[[Value, str], Sequence[Instance]] = lambda owner, name: ()
        """The objects that a value may be whose method of that name is called, where nothing else is known of it."""
        self.has_code: Callable[[Instance], bool] = lambda each: False
        """Whether the class of an object has code of its own for what Python does with it."""
        self.note_change: Callable[[Term | Unknown | External, Value], None] = (
            lambda owner, change: None
        )
        """Notes what is done to what a value stands for of which no more is known."""
        self.lost = False
        """Whether something is run that cannot be followed: code that is made then, calls that nest too deeply."""
        self.flagged = False
        """Whether a flag stands for what says whether variables are reused."""
        self.arg_scope = ArgScope()
        """What functions are given besides their arguments."""
        self.dictionaries: dict[Key, Value] = {}
        """Whose attributes the terms stand for that are tables of attributes."""
        self.iterators: set[int] = set()
        """The terms that stand for iterators that were there before the towers."""
        self._whys: dict[int, Unknown] = {}
        self._takes: set[Key] = set()
        """The functions that are."""
        self._named: dict[Key, Value | None] = {}
        self._around: list[tuple[tuple[Key, ...], tuple[Key, ...], ArgScope]] = []
        self.set_elsewhere: Cells = {}
        """What was set on values that are no objects of the tree."""

    def turn(self) -> None:
        """Another tower begins."""
        self._named = {}
        self.turns += 1

    def spelled(self, name: str) -> str:
        return _spelled(name)

    def name(self, name: str, value: Value) -> Value:
        if isinstance(value, External) and self.set_elsewhere:
            return read(self.set_elsewhere.get(("library", value.name), value))
        if isinstance(value, Unknown) and value.reason.startswith(f"{name} "):
            return self.terms.of("name", (name,))  # bound nowhere that can be seen
        return value

    def constant(self, value: object) -> Value | None:
        return self.terms.flag if value is FLAG else None

    # ---- calls -----------------------------------------------------------------------------------

    def function(self, call: Call) -> Value | None:
        name = call.name
        if not name.startswith("tf.") and name != "tf":
            return self._of_python(call)
        if GRAPH.match(name):
            self._run_given(call)
            self._goes_by(call)
            return replace(self._of_the_graph(), variable=bool(VARIABLES.search(name)))
        told = named(self.arg_scope, call, key_of(External(name)))
        for place, value in self._naming(told):
            key = self.terms.key(value)
            path = value.path if isinstance(value, VariableScope) else (*self.scopes, key)
            open_ = EACH_TIME in self.terms.marks(path)
            self.events.append(Event("names", call.place, call.node, key, path, place, open_))
        others = [value for each, value in call.keywords.items() if each != "reuse"]
        self.decides(call.node, call.place, *call.args, *others)
        meaning = MEANINGS.get(name)
        if meaning is not None:
            return meaning(self, call)
        self._run_given(call)
        found = self._computed(call)
        return replace(found, variable=True) if name in _VARIABLES else found

    def _computed(self, call: Call) -> Tensor:
        """What an operation gives, whose shape goes by what it is given but for names, seeds and where it looks."""
        keywords = {name: each for name, each in call.keywords.items() if name not in _NO_SHAPE}
        beside = _LOOKS.get(call.name)
        args = [each for number, each in enumerate(call.args) if number != beside]
        given = [*args, *keywords.values(), *call.stars]
        of_tensors = self.tensor_of(each for each in given if not self._is_of_the_graph(each))
        if of_tensors is TENSOR and any(
            "tower" in self.terms.marks(self.terms.key(each)) for each in given
        ):
            return Tensor(self.terms.key(self.index))
        return of_tensors

    def _is_of_the_graph(self, value: Value) -> bool:
        """How many there are says nothing of the shape of what is computed of them."""
        return isinstance(value, Tensor) and EACH_TIME in self.terms.marks(value)

    def tensor_of(self, values: Iterable[Value]) -> Tensor:
        """What is computed of some values: of the shape that is the tower's own where one of theirs is."""
        return next((e for e in values if isinstance(e, Tensor) and e.by is not None), TENSOR)

    def _naming(self, call: Call) -> Iterator[tuple[ast.expr | None, Value]]:
        """The arguments of a call that name variables, with where they are written."""
        places: Sequence[tuple[int | None, str]] = _NAMES.get(call.name, ())
        if not places and call.name.startswith(_LAYERS) and not _NO_VARIABLES.search(call.name):
            places = ((None, "name"), (None, "scope"))
        for position, keyword in places:
            value = call.get(len(call.args) if position is None else position, keyword)
            if value is not None:
                written = next((e.value for e in call.node.keywords if e.arg == keyword), None)
                if written is None and position is not None and position < len(call.node.args):
                    written = call.node.args[position]
                yield written, value
        given_by_name = {keyword for _, keyword in places}
        perhaps = [e for e in call.stars if isinstance(e, MayGive) and e.name in given_by_name]
        if places and not call.known and (perhaps or not _only_names(call.stars)):
            told = self._are_told_apart(call.stars)
            given = self.terms.of("given", (len(call.args), *call.stars)) if told else None
            yield None, given or call.unknown("arguments that are not known")

    def _of_python(self, call: Call) -> Value | None:
        self._note_changes(call)
        own = PYTHON.get(call.name)
        if own is not None:
            found = own(self, call)
            if found is not None:
                return found
        meaning = FUNCTIONS.get(call.name)
        if meaning is not None and call.known:
            found = meaning(call)
            if found is not None and not isinstance(found, Unknown) or call.name == "builtins.next":
                if found is None or "flag" not in self.terms.marks(self.terms.key(found)):
                    self._goes_by(call)
                return found
        if meaning is None and not call.name.startswith(("builtins.", "functools.", "contextlib.")):
            self._run_given(call)
        return self._opaque(call, call.name)

    def _note_changes(self, call: Call) -> None:
        """A function of Python's changes what it is given, or a method of something of a module's does that."""
        owner, _, method = call.name.rpartition(".")
        done = (call.name, *call.args, *call.keywords.values())
        if owner and method in _CHANGES:
            before = (External(owner),) if _CHANGES[method] else ()
            self.note_change(External(owner), self.terms.of("changed", (*before, *done)))
        if call.name in CHANGED_BY and call.args:
            changed = call.args[CHANGED_BY[call.name]]
            if isinstance(changed, Term | Unknown):
                self.note_change(changed, self.terms.of("changed", done))
            else:
                why = self.why("done", done, call.unknown("it may be changed"))
                call.interpreter.escape([changed], why)

    def _opaque(self, call: Call, of: Value | str, same: bool = True) -> Value:
        """What a call gives that is not followed, the `same` each time where nothing else is known."""
        self._goes_by(call)
        if not call.known and not self._are_told_apart(call.stars):
            return call.unknown("a call whose arguments are not known")
        named = [part for name, value in call.keywords.items() for part in (name, value)]
        stars = () if call.known else ("*", *call.stars)
        anew = () if same and self._gives_the_same(call, of) else self._each_time()
        owner = External(of.rpartition(".")[0]) if isinstance(of, str) else None
        if owner is not None and self.terms.change(owner) in self.terms.changed:
            anew = (owner, *anew)
        self._used_up(call)
        found = self.terms.of("call", (of, *call.args, *named, *stars, *anew))
        if isinstance(of, str) and gives_iterator(of) and not self.turns:
            self.iterators.add(found.number)
        return found

    def _used_up(self, call: Call) -> None:
        """Iterators that were there before the towers have fewer values left once something has read them."""
        for each in (*call.args, *call.keywords.values()):
            self.use_up(each)

    def use_up(self, value: Value) -> None:
        if self.turns and isinstance(value, Term) and value.number in self.iterators:
            self.note_change(value, self.terms.of("rest of", (value,)))

    def _gives_the_same(self, call: Call, of: Value | str) -> bool:
        given = (*call.args, *call.keywords.values())
        if any(isinstance(each, Instance) and self.has_code(each) for each in given):
            return False
        if isinstance(of, str):
            return gives_the_same(of)
        return True

    def _each_time(self) -> tuple[Value, ...]:
        """What tells what one tower gets from what another does; nothing before the towers."""
        if not self.turns:
            return ()
        return (self.terms.once if self.turns == 1 else self.terms.again,)

    def _by_code(self, operands: Sequence[Value]) -> tuple[Value, ...]:
        coded = any(isinstance(each, Instance) and self.has_code(each) for each in operands)
        return self._each_time() if coded else ()

    def _of_the_graph(self) -> Tensor:
        """What goes by what is in the graph by then."""
        by = self._each_time()
        return Tensor(self.terms.key(by[0])) if by else TENSOR

    def _are_told_apart(self, stars: Sequence[Value]) -> bool:
        """Whether what stars are given is the same where its key is: a list's, or a table's, may hold more by then."""
        return bool(stars) and all(map(self._is_told_apart, stars))

    def _is_told_apart(self, value: Value) -> bool:
        if isinstance(value, Items):
            held = value.held
            if value.kind != "tuple" or not isinstance(held, Many) or held.entry is None:
                return False
            return self._is_told_apart(held.entry)
        if isinstance(value, MayGive):
            return not isinstance(value.value.value, Made)
        if isinstance(value, Made):
            return False
        own = self.terms.key(value)
        return not any(cell[0] == "entry" and cell[1] == own for cell in self.set_elsewhere)

    def given(
        self, name: str, position: int | None, default: Value | None, stars: Sequence[Value]
    ) -> Value | None:
        stars = [each for each in stars if not isinstance(each, MayGive) or each.name == name]
        if not stars or not self._are_told_apart(stars):
            return (None if stars else default) or Unknown("an argument that is not known")
        values = (default, *(each.value.value for each in stars if isinstance(each, MayGive)))
        may_be = tuple(each for each in values if isinstance(each, Made | External))
        return self.terms.of("given", (name, position, default or "none", *stars), may_be)

    def _goes_by(self, call: Call) -> None:
        self.decides(call.node, call.place, *call.args, *call.keywords.values())

    def _run_given(self, call: Call) -> None:
        """A call that is not followed may call the functions that it is given."""
        for value in (*call.args, *call.keywords.values()):
            for each in (value.entries or ()) if isinstance(value, Items) else (value,):
                if isinstance(each, Function):
                    self._call(call, each)

    def _call(self, call: Call, function: Function) -> Value:
        spec = function.node.args
        count = len(spec.posonlyargs) + len(spec.args) - (function.bound is not None)
        return call.interpreter.call_with(function, [TENSOR] * max(count, 0), call.node, call.scope)

    def method(self, call: Call, owner: Value, receiver: ast.expr) -> Value | None:
        if isinstance(owner, Items | Table):
            return None
        if isinstance(owner, Instance) and call.name in _CHANGES:
            done = (owner, call.name, *call.args, *call.keywords.values())
            call.interpreter.escape(
                [owner], self.why("done", done, call.unknown("it may be changed"))
            )
        if isinstance(owner, VariableScope):
            return NONE if call.name == "reuse_variables" else self._opaque(call, owner)
        if isinstance(owner, Tensor) or call.name in _SAME:
            self._run_given(call)
            self._goes_by(call)
            if call.name in GRAPHS_OWN:
                return self._of_the_graph()
            return (
                self._computed(call)
                if self.tensor_of([owner]) is TENSOR
                else self.tensor_of([owner])
            )
        if isinstance(owner, Term | Unknown):
            self._goes_by(call)
            if call.name in _CHANGES:
                self.note_change(owner, self._changed(call, owner))
            if call.name not in _LOOKS_ONLY:
                changed = [each for each in owner.may_be if isinstance(each, Items | Table)]
                done = (owner, call.name, *call.args, *call.keywords.values())
                why = self.why("done", done, call.unknown("it may be changed"))
                call.interpreter.escape(changed, why)
            kinds = {self.terms.key(e): e for e in owner.may_be if isinstance(e, Instance)}
            found = self._of_one(call, list(kinds.values()), owner) or self._by_name(call, owner)
            if found is not None:
                return found
        self._run_given(call)
        same = not isinstance(owner, Term | Unknown) or method_gives_the_same(
            call.name, len(call.args)
        )
        return self._opaque(call, self.terms.of("attribute", (owner, call.name)), same)

    def why(self, operation: str, given: Sequence[Value | str | Key], why: Unknown) -> Unknown:
        """Why nothing is known of what is changed: the same where the same is done to the same."""
        return self._whys.setdefault(self.terms.of(operation, (self.asked, *given)).number, why)

    def _changed(self, call: Call, owner: Value) -> Value:
        """What a method does to what a value stands for: some do it each time, some once for all."""
        before = (owner,) if _CHANGES[call.name] else ()
        return self.terms.of("changed", (*before, call.name, *call.args, *call.keywords.values()))

    def _of_one(self, call: Call, objects: Sequence[Instance], owner: Value) -> Value | None:
        """What a method gives that one of several objects has; None where none has it."""
        found: list[Value] = []
        assert isinstance(call.node.func, ast.Attribute)
        functions = [
            function
            for each in objects
            for function in [call.interpreter.attribute(each, call.node.func, call.scope)]
            if isinstance(function, Function)
        ]
        call.interpreter.ways([_running(call, function, found) for function in functions])
        if not found:
            return None
        value = call.interpreter.any_of(found)
        if isinstance(value, Const | Term | External):
            return self.terms.of("call", (owner, call.name, value))
        return value

    def _by_name(self, call: Call, owner: Value) -> Value | None:
        """What the methods of a name give that an object may have of which nothing is known, given what goes by the tower."""
        keys = tuple(self.terms.key(e) for e in (owner, *call.args, *call.keywords.values()))
        if not self.terms.marks(keys):
            return None
        if (call.name, keys) not in self._named:
            self._named[(call.name, keys)] = None  # for one that calls itself
            found = self._of_one(call, self.without_class(owner, call.name), owner)
            self._named[(call.name, keys)] = found
        return self._named[(call.name, keys)]

    def called(self, call: Call, value: Value) -> Value | None:
        match value:
            case Method():
                self._goes_by(call)
                if value.name in ("count", "has_key", "index") and not call.keywords and call.known:
                    return self.terms.of("call", (value, *call.args))
                return None
            case Tensor():
                self._run_given(call)
                self._goes_by(call)
                return self._computed(call) if value.by is None else value
            case Template():
                return call.interpreter.invoke(value.function, call)
            case Instance():
                written = ast.copy_location(ast.Attribute(call.node, "call", ast.Load()), call.node)
                function = call.interpreter.attribute(value, written, call.scope)
                if isinstance(function, Function):
                    return call.interpreter.invoke(function, call)
        may_be = value.may_be if isinstance(value, Term | Unknown) else ()
        functions = [each for each in may_be if isinstance(each, Function | Class | External)]
        self._goes_by(call)
        if functions:
            found: list[Value] = []
            call.interpreter.ways([_running(call, each, found) for each in functions])
            return call.interpreter.any_of(found)
        self._run_given(call)
        return self._opaque(call, value)

    def changes(self, call: Call, values: Sequence[Value]) -> bool:
        """Libraries do nothing to what they are given that names go by; methods of Python's own containers do."""
        self.decides(call.node, call.place, *values)
        return any(
            isinstance(each, Method) and isinstance(each.owner, Items | Table) for each in values
        )

    def decorated(self, decorator: Value, node: ast.expr, function: Value) -> Value | None:
        if isinstance(decorator, External) and decorator.name in TAKES:
            self._takes.add(key_of(function))
        return function

    def entered(self, call: Call, function: Value) -> Value | None:
        if not isinstance(function, Function) or key_of(function) not in self._takes:
            return None
        more = applied(self.arg_scope, call, key_of(function))
        return None if more is None else call.interpreter.call(function, more)

    def decides(self, node: ast.AST, place: Place, *values: Value) -> None:
        """Note that something other than what is reused goes by some values, where one of them goes by a flag."""
        if self.flagged and any("flag" in self.terms.marks(self.terms.key(e)) for e in values):
            self.events.append(Event("decides", place, node))

    # ---- parts of values -------------------------------------------------------------------------

    def attribute(self, owner: Value, node: ast.Attribute, place: Place) -> Value | None:
        name = node.attr
        if self.set_elsewhere:
            found = self.set_elsewhere.get(("attribute", self.terms.key(owner), name))
            if found is not None:
                return read(found)
        if isinstance(owner, Tensor) and name == "op":
            return owner
        if isinstance(owner, Tensor) and name == "name":
            if owner.variable:
                return TENSOR
            return self._of_the_graph() if owner.by is None else owner
        if isinstance(owner, Tensor) or name in _SAME:
            return self.tensor_of([owner])
        if isinstance(owner, VariableScope) and name == "name":
            return self.scope_name(owner.path)
        return self.terms.of("attribute", (owner, name))

    def dictionary(self, owner: Value) -> Value:
        """The attributes of something as a table."""
        found = self.terms.of("attribute", (owner, "__dict__"), (owner,))
        self.dictionaries[self.terms.key(found)] = owner
        return found

    def is_set(self, owner: Value, name: str) -> bool:
        """Whether the program sets an attribute of something that is no object of the tree."""
        if isinstance(owner, External):
            return ("library", self.spelled(f"{owner.name}.{name}")) in self.set_elsewhere
        return ("attribute", self.terms.key(owner), name) in self.set_elsewhere

    def scope_name(self, path: tuple[Key, ...]) -> Value:
        texts = [_text(each) for each in path]
        known = [each for each in texts if each is not None]
        return Const("/".join(known)) if len(known) == len(path) else self.terms.of("path", path)

    def subscript(
        self, owner: Value, key: Value, node: ast.Subscript, place: Place
    ) -> Value | None:
        if self.set_elsewhere:
            cell = ("entry", self.terms.key(owner), self.terms.key(key))
            if cell in self.set_elsewhere:
                return read(self.set_elsewhere[cell])
        if not isinstance(owner, Tensor):
            return self.terms.of("entry", (owner, key))
        if owner is TENSOR and isinstance(key, Items):
            # Which rows it takes a tower may say, but not what it takes of each.
            of_each = [self.terms.key(each) for each in (key.entries or ())[1:]]
            if "tower" in self.terms.marks(tuple(of_each)):
                return Tensor(self.terms.key(self.index))
        return owner

    def entry(self, value: Value) -> Value | None:
        return value if isinstance(value, Tensor) else self.terms.of("turn", (value,))

    def unpacked(self, value: Value, count: int) -> Sequence[Value] | None:
        if isinstance(value, Tensor):
            return [value] * count
        return [self.terms.of("entry", (value, Const(number))) for number in range(count)]

    # ---- operators -------------------------------------------------------------------------------

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        if isinstance(node, ast.Compare) and len(operands) == 2:
            known = self._compared(node.ops[0], operands[0], operands[1])
            if known is not None:
                return Const(known)
        if any(isinstance(each, Tensor) for each in operands):
            if all(isinstance(each, Tensor) or _is_number(each) for each in operands):
                return self.tensor_of(operands)
        written = getattr(node, "ops", [getattr(node, "op", None)])
        kinds = [type(each).__name__ for each in written]
        return self.terms.of(type(node).__name__, (*kinds, *operands, *self._by_code(operands)))

    def _compared(self, op: ast.cmpop, first: Value, second: Value) -> bool | None:
        """What is true of the index of the first tower, which is 0, or of another, which is 1 or more."""
        indices = (self.terms.first, self.terms.tower)
        compare = _COMPARISONS.get(type(op))
        if second in indices:
            first, second = second, first
            compare = _COMPARISONS.get(_TURNED.get(type(op), type(op)))
        if first not in indices or not isinstance(second, Const) or type(second.value) is not int:
            return None
        if compare is None:
            return None
        number = second.value
        if first is self.terms.first:
            return compare(0, number)
        # The same of all numbers from 1 on, where it is of 1, of the next one and of one that is larger than both.
        found = {compare(each, number) for each in (1, 2, number, number + 1) if each >= 1}
        return found.pop() if len(found) == 1 else None

    def truth(self, value: Value) -> bool | None:
        if value is self.terms.first or value is self.terms.tower:
            return value is self.terms.tower
        return None

    def join(self, first: Value, second: Value) -> Value | None:
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            return self.tensor_of((first, second))
        if NONE in (first, second):  # a module that may not be there
            other = second if first == NONE else first
            if isinstance(other, External):
                return other
        parts: list[Value] = []
        for value in (first, second):
            if isinstance(value, Unknown | Term):
                parts += value.may_be
            elif isinstance(value, Made | External):
                parts.append(value)
        found = self.terms.of("either", (self.asked, first, second), tuple(parts[:40]))
        lists = all(map(is_list, (first, second)))
        return replace(found, whole=True) if lists and len(parts) <= 40 else found

    # ---- scopes ----------------------------------------------------------------------------------

    def entering(self, value: Value, node: ast.withitem, scope: Scope) -> Value | None:
        self._around.append((self.scopes, self.names, self.arg_scope))
        if isinstance(value, ArgScope):
            self.arg_scope = value
            return value
        if isinstance(value, VariableScope):
            self.scopes = value.path
            return value
        if isinstance(value, NameScope):
            self.names = (*self.names, value.name)
            return self.terms.of("name scope", (*self.names, *self._each_time()))
        if isinstance(value, Unknown):
            return self.terms.of("context", (value,), value.may_be)
        return value if isinstance(value, Term | Tensor) else None

    def leaving(self, value: Value, node: ast.withitem, scope: Scope) -> None:
        self.scopes, self.names, self.arg_scope = self._around.pop()


def _running(call: Call, target: Value, found: list[Value]) -> Callable[[], bool]:
    def run() -> bool:
        one = call
        if isinstance(target, External):
            one = replace(call, name=target.name)
        found.append(call.interpreter.invoke(target, one))
        return True

    return run


def _only_names(stars: Sequence[Value]) -> bool:
    return bool(stars) and all(isinstance(each, MayGive) for each in stars)


def _text(key: Key) -> str | None:
    """The text that a key stands for."""
    match key:
        case ("const", "str", str() as written):
            return str(ast.literal_eval(written))
    return None


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, int | float)


_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.Is: operator.eq,
    ast.NotEq: operator.ne,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
}
