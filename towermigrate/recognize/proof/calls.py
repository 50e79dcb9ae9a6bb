"""Run the calls of a tower or a step: functions of the tree are followed, others must be on the list."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from towermigrate.flow.scopes import bound_in, parameters, yields
from towermigrate.flow.values import NONE, External, Unknown, Value
from towermigrate.recognize.proof import cells, library, special
from towermigrate.recognize.proof.code import Code, last_name
from towermigrate.recognize.proof.effects import of_gradients
from towermigrate.recognize.proof.expressions import form_of, formed, spelled
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import DEPTH, is_python
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.objects import Objects
from towermigrate.recognize.proof.values import (
    NOTHING,
    Class,
    Either,
    Foreign,
    Function,
    Instance,
    Items,
    Keywords,
    Made,
    Method,
    Object,
    Partial,
    Plain,
    Record,
    RecordClass,
    Setting,
    Static,
    Super,
    Tensor,
    Text,
    holds_tensor,
    join_all,
    keyed,
    needs_of,
    text_of,
)

_FOLDS = ("functools.reduce", "builtins.reduce")


class Calls(Objects):
    """Evaluates calls."""

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if self.asks_how_a_name_begins(node, frame):
            return Plain()
        function = self.value(node.func, frame)
        return self.call(function, node, frame)

    def call(self, function: Value, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        args = self._arguments(node, frame)
        if isinstance(function, Either):
            with self.perhaps():
                made = [self._called(f, args, node, frame) for f in function.values]
            return join_all(made)
        if args.starred and not isinstance(function, External):
            if not self.strict:
                self.escapes([function, *args.all()])
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
        if isinstance(function, Partial):
            return self._called(function.function, self.completed(function, args), node, frame)
        if isinstance(function, External):
            asked = special.asked_by(function.name) if self.strict else frozenset[str]()
            if any(self.may_act(value, asked) for value in args.all()):
                return self._runs_code(node, frame)
            folded = self._folded(args, node, frame) if function.name in _FOLDS else None
            return folded or self.library_call(function.name, args, node, frame)
        if isinstance(function, Class):
            return self._made(function, args, node, frame)
        if isinstance(function, RecordClass):
            return self._record(function, args, node, frame)
        object_ = self.called_object(function, args, node, frame)
        if object_ is not None:
            return object_
        if isinstance(function, Object):
            return self.method(function, args, node, frame)
        if isinstance(function, Setting | Foreign):
            if not self.strict:
                self.escapes(args.all())
                python = isinstance(function, Setting) and all(is_python(v) for v in args.all())
                told = last_name(node.func) == "parse_args"
                return Setting(told=told) if python else Foreign()
            return self._unknown(node, frame)
        if not self.strict:
            self.escapes([function, *args.all()])
        if isinstance(function, Unknown):
            return Unknown()
        return self._unknown(node, frame)

    def _folded(self, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        """`functools.reduce(lambda a, b: a + b, losses)`; None where that is no tensor of a known list."""
        function, *given = args.given or [Unknown()]
        listed = given[0] if given else None
        known = isinstance(function, Function) or (
            isinstance(function, External) and function.name in library.PURE - library.SUMMARIES
        )
        if (
            not known
            or args.starred
            or args.named
            or not isinstance(listed, Items)
            or len(given) > 2
        ):
            return None
        values = [*given[1:], *(value for value, _ in listed.values)]
        whole = listed.exact and listed.key is None and all(sure for _, sure in listed.values)
        if not whole or not values or not all(isinstance(value, Tensor) for value in values):
            return None
        made, *others = values
        for value in others:
            pair = Arguments()
            pair.given = [made, value]
            made = self._called(function, pair, node, frame)
        return made

    def _record(
        self, function: RecordClass, args: Arguments, node: ast.Call, frame: Frame
    ) -> Value:
        """A named tuple of what it is given."""
        given = dict(zip(function.fields, args.given, strict=False))
        whole = {**given, **args.named}
        right = len(args.given) == len(given) and not given.keys() & args.named.keys()
        if not right or whole.keys() != set(function.fields):
            return self._unknown(node, frame)
        return Record({name: whole[name] for name in function.fields}, not self.strict)

    def _made(self, function: Class, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        builds = function.code.mentions_tensorflow(function.node)
        python = all(is_python(v) for v in args.all())
        plain = not self.strict and python and not builds
        made = None if plain else self.made_of(function, args, node, frame)
        if made is not None:
            return made
        if not self.strict:
            self.escapes(args.all())
            return Instance(function) if plain else Foreign()
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
                if self.may_act(value, special.CONTAINERS):
                    self._runs_code(node, frame)
                if isinstance(value, Items) and value.exact:
                    args.given.extend(v for v, _ in value.values)
                else:
                    args.given.append(value)
                    args.starred = True
            else:
                args.given.append(self.value(one, frame))
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            spread = keyed(value) if keyword.arg is None else None
            if spread is not None and not spread.keys() & args.named.keys():
                args.named.update(spread)
            elif keyword.arg is None and isinstance(value, Keywords) and value.unchanged:
                args.named.update(value.given)
            elif keyword.arg is None:
                args.starred = True
                args.given.append(value)
            else:
                args.named[keyword.arg] = value
        return args

    def escapes(self, values: Iterable[Value]) -> None:
        """Code that is not followed is given values: what they hold may be anything from now on.

        Of functions, what they see: they may be called. Not what the towers made: the readers of the session look at what
        becomes of it.
        """
        for value in values:
            of = value.of if isinstance(value, Object) else value
            if isinstance(of, Items) and not (self.behind and holds_tensor(of)):
                self.escapes([one for one, _ in of.values])
                if of.mutable:
                    of.loosen()
                    of.grow([(Foreign(), False)], False, Plain())
            elif isinstance(of, Made | Method | Super):
                held = of if isinstance(of, Made) else of.of
                if not held.lost:
                    held.lost = True
                    self.escapes(held.kept.values())
            elif isinstance(of, Either):
                self.escapes(of.values)
            elif isinstance(of, Partial):
                self.escapes([of.function, *of.given, *(v for _, v in of.named)])
            elif isinstance(of, Function) and id(of.node) not in self._escaped:
                self._escaped.add(id(of.node))
                names = {n.id for n in ast.walk(of.node) if isinstance(n, ast.Name)}
                self.escapes([self.seen(name, of.frame) for name in sorted(names)])
                self._escaped.discard(id(of.node))

    def seen(self, name: str, frame: Frame) -> Value:
        """What a name holds as code of a frame sees it, as far as that was looked at."""
        current: Frame | None = frame
        while current is not None and name not in current.names:
            current = current.parent
        return Unknown() if current is None else current.names[name]

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
        value = self._entered_function(function, given, named, node, code)
        if value is None and not self.strict:
            self.escapes([function, *given, *named.values()])
        return Unknown() if value is None else value

    def _entered_function(
        self,
        function: Function,
        given: list[Value],
        named: dict[str, Value],
        node: ast.AST,
        code: Code,
    ) -> Value | None:
        """What a function gives; None where it could not be run, which is reported."""
        made = function.node
        if yields(made):
            return self._gives_up(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` makes a generator, which runs when it is asked",
            )
        if self.stack.count(made) > 2 or len(self.stack) > DEPTH:
            return self._gives_up(
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
            and not function.plain
        ):
            return self._gives_up(
                "TM222",
                function.code,
                made,
                f"`{name}` is decorated; what a call does is not known",
            )
        frame = Frame.of(function.code, made, function.frame, self.strict)
        frame.owner = function.owner
        names = [a.arg for a in [*args.posonlyargs, *args.args]]
        if len(given) > len(names) and args.vararg is None:
            return self._gives_up(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` passes more arguments than `{name}` takes",
            )
        frame.names.update(zip(names, given, strict=False))
        more: dict[str, Value] = {}
        named_parameters = {a.arg for a in [*args.args, *args.kwonlyargs]}
        for keyword, value in named.items():
            if args.kwarg is not None and keyword not in named_parameters:
                more[keyword] = value
            else:
                frame.names[keyword] = value
        if args.vararg is not None:
            rest = [(value, True) for value in given[len(names) :]]
            frame.names[args.vararg.arg] = Items(rest, True, not self.strict, False)
        if args.kwarg is not None:
            frame.names[args.kwarg.arg] = Keywords(more, not self.strict)
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
            return self._gives_up(
                "TM222", code, node, f"`{code.said(node)}` does not give all arguments of `{name}`"
            )
        self.stack.append(made)
        unsure = self.asked.unsure  # a branch that returns leaves what follows it unsure
        try:
            if isinstance(made, ast.Lambda):
                return self.value(made.body, frame)
            ends = self.block(made.body, frame)
        finally:
            self.stack.pop()
            self.asked.unsure = unsure
        if ends:
            frame.returned.append(NONE)
        return join_all(frame.returned) if frame.returned else NONE

    def _gives_up(self, rule: str, code: Code, node: ast.AST, message: str) -> Value | None:
        self.report(rule, code, node, message)
        return None

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        raise NotImplementedError

    def _default(self, node: ast.expr, function: Function) -> Value:
        own = frozenset() if function.owner is None else bound_in(function.owner.node.body)
        if any(isinstance(n, ast.Name) and n.id in own for n in ast.walk(node)):
            return self.report(
                "TM222", function.code, node,
                f"the default `{function.code.said(node)}` reads a name of its class",
            )  # fmt: skip
        key = (id(node), id(function.frame))
        made = dict(function.defaults).get(id(node))
        if made is None and key not in self._defaults:  # one value for all calls
            with self.mode(False):
                self._defaults[key] = self.value(node, function.frame)
        value = self._defaults[key] if made is None else made
        if self.strict and isinstance(value, Object) and value.kind == "initializer":
            value = self.value(node, function.frame)  # with its seed
        if isinstance(value, Items) and value.mutable:
            value.outer = True
            value.name = "the default of an argument"
        name = value.name if isinstance(value, External) else ""
        if name.startswith(library.BATCH_NORM):
            self._batch_norm(node, function.code)
        if isinstance(value, Unknown) or isinstance(value, Foreign):
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

    # -- methods

    def method(self, function: Object, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """A method of a known kind of object."""
        kind, _, name = function.kind.partition(".")
        code = frame.code
        if (nothing := self.no_init(function, args)) is not None:
            return nothing
        if kind == "static":
            return (
                Items([(Static(), True)], False, not self.strict) if name == "as_list" else Static()
            )
        if kind == "text" or kind == "python":
            asked = special.TEXTS | special.VALUES | ({"__iter__"} if name == "join" else set())
            if self.strict and any(self.may_act(value, asked) for value in args.all()):
                return self._runs_code(node, frame)
            if name in library.READING_METHODS:
                if kind == "text":
                    return Text("index")
                written = self._text(args.all(), node, frame)
                if name == "format" and function.of is not None and not args.named:
                    parts = [function.of, *args.given]
                    outer = text_of(function.of) or ""
                    if isinstance(written, Text) and len(args.given) == 1:
                        once = outer.count("{") == outer.count("}") == outer.count("{}") == 1
                        inner = form_of(args.given[0]) if once else None
                        return formed(written, inner and outer.replace("{}", inner))
                    return spelled(written, parts, lambda text, *given: text.format(*given))
                return written
            if name in library.MUTATORS or kind == "text":
                return self._unknown(node, frame)
            return Plain() if not self.strict else self._unknown(node, frame)
        if kind == "items" and self.strict:
            if any(self.may_act(value, special.VALUES) for value in args.all()):
                return self._runs_code(node, frame)
        if kind == "items" and isinstance(function.of, Items):
            made = self._of_items(function.of, name, args)
            if made is not None:
                return made
            if not self.strict:
                self.escapes([function.of, *args.all()])
        if kind == "array" and (name in library.ARRAY_METHODS or not self.strict):
            if name == "tolist" or name not in library.MUTATORS:
                return Setting(plain=True)
        if kind == "tensor":
            return self._tensor_method(function, name, args, node, frame)
        if kind == "variable scope" and name == "reuse_variables":
            return NONE
        if kind == cells.CELL and self.strict:
            made = cells.of_method(function, name, args)
            if made is not None:
                return made
        if kind in ("optimizer", "moving average") and self.evaluates:
            return self.report(
                "TM220", code, node, f"`{code.said(node)}` trains in what only looks at the model"
            )
        minimizes = name == "minimize" and (code.path, *code.place(node)) in self.of_means
        if kind == "optimizer" and (
            name in ("compute_gradients", "apply_gradients") or minimizes and not self.stack
        ):
            if name == "apply_gradients":
                return Object("update", args.needs())
            loss = args.get(0, "loss")
            listed = args.get(2 if minimizes else 1, "var_list")
            if listed is None or listed == NONE:
                # It lists the variables that are there: in the first tower not those that are made later.
                self.lists_read.append((code, node, self.made_variables))
            self.all_towers(needs_of(loss) if loss is not None else NOTHING)
            needs = self.gradient_needs(args.needs())
            if minimizes:
                return Object("update", needs)
            gradient = Tensor(needs if loss is not None else NOTHING, gradient=True)
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

    def gradient_needs(self, needs: frozenset[str]) -> frozenset[str]:
        """What gradients need of what their loss needs."""
        return of_gradients(needs)

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
        # What is known of its shape is known from here on, in every trace as in TF1's graph.
        if name == "set_shape" and not (isinstance(function.of, Tensor) and function.of.variable):
            return NONE
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
