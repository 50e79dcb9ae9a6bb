"""Run TensorFlow's functions: those of the list give tensors, all others are reasons."""

from __future__ import annotations

import ast
from dataclasses import replace

from towermigrate.flow.values import NONE, Const, External, Unknown, Value
from towermigrate.recognize.proof import cells, library, scaling
from towermigrate.recognize.proof.asked import place_of_bias
from towermigrate.recognize.proof.calls import Calls
from towermigrate.recognize.proof.effects import (
    ASSERTED,
    CALLS,
    CHECKED,
    TESTS,
    effect,
    of_gradients,
)
from towermigrate.recognize.proof.frames import Frame, Tag
from towermigrate.recognize.proof.machine import is_python
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.values import (
    NOTHING,
    SHARED,
    Class,
    Collected,
    Differs,
    Either,
    Foreign,
    Function,
    Index,
    Instance,
    Items,
    Made,
    Method,
    Object,
    Partial,
    Plain,
    Setting,
    Super,
    Tensor,
    Text,
    needs_of,
    text_of,
)

_VARIABLE_KEYS = {
    "tf.GraphKeys.TRAINABLE_VARIABLES", "tf.GraphKeys.TRAINABLE_RESOURCE_VARIABLES",
    "tf.GraphKeys.GLOBAL_VARIABLES", "trainable_variables", "variables",
}  # fmt: skip
_KEYS = {"tf.GraphKeys.SUMMARIES": "summaries", "tf.GraphKeys.LOSSES": "losses"}
"""Collections that a program may fill by TensorFlow's name or by the text that it stands for."""


class TensorFlow(Calls):
    """Evaluates calls of TensorFlow."""

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if not self.strict:
            return self._outside(name, args, node, frame)
        code = frame.code
        for value in args.all():
            if isinstance(value, External) and value.name.startswith(library.BATCH_NORM):
                return self._batch_norm(node, code)
        if name.startswith(library.BATCH_NORM):
            return self._batch_norm(node, code)
        if args.starred:
            return self.report(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` passes arguments that could not be followed",
            )
        if self.placing and name in library.DEVICES:
            return Object("device")
        denied = self._denied(name, args, node, frame)
        if denied is not None:
            return denied
        made = self._special(name, args, node, frame)
        if made is not None:
            return made
        looks = self.where == "a tower" and not self.evaluates
        if looks and (name in TESTS or name in CHECKED or name == CALLS):
            return self._looked(name, args, node, frame)
        if name in library.CELLS or name in library.RNNS:
            found = self._recurrent(name, args, node, frame)
            if found is not None:
                return found
        if name in library.PURE:
            made = self._pure(name, args, node, frame)
            if looks and name in ASSERTED and isinstance(made, Tensor):
                self.effects.append((frame.code, node))
                return replace(made, needs=made.needs | {effect(len(self.effects))})
            if name == "tf.identity" and isinstance(made, Tensor):
                return replace(made, needs=made.needs | self.waits)
            return made
        return self._refused(name, node, frame)

    def _recurrent(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        """A recurrent cell, or what calls it; None where that is not understood."""
        if self.evaluates or self.where != "a tower":
            return None
        if name in library.CELLS:
            if name.endswith("DropoutWrapper"):
                kind = "seeded" if "seed" in args.named else "dropout"
                self.random.append((frame.code, node, kind))
            return cells.made_of(name, args)
        made = cells.ran(name, args)
        if made is not None:
            self.made_variables += 1
            self.random.append((frame.code, node, "initializer"))
        return made

    def _looked(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """A check, a print or a function of Python, which all runs must need."""
        counts = args.get(3, "first_n") if name == "tf.Print" else None
        stays = args.get(3, "stateful") if name == CALLS else None
        if counts is not None or stays is not None:
            return self._refused(name, node, frame)
        self.effects.append((frame.code, node))
        needs = args.needs() | {effect(len(self.effects))}
        if name in TESTS:
            return Object("operation", needs)
        given = args.get(2, "Tout") if name == CALLS else None
        if isinstance(given, Items):
            made: list[tuple[Value, bool]] = [(Tensor(needs), True) for _ in given.values]
            return Items(made, given.exact) if given.exact else self._refused(name, node, frame)
        return Tensor(needs)

    def _denied(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        code = frame.code
        for keyword, value in args.named.items():
            rule = library.DENIED_KEYWORDS.get(keyword)
            none = value == NONE
            if keyword == "collections" and self._number_of(name, value) is not None:
                continue
            if keyword.endswith("regularizer") and self._regularizes(keyword, value, node, frame):
                continue
            if rule is not None and not none:
                said = {
                    "TM219": "registers in a collection, once in TF1 and in every replica of a step",
                    "TM207": "is batch normalisation or another function whose effects are not known",
                    "TM222": "changes how variables are made",
                }[rule]
                return self.report(
                    rule, code, node, f"`{keyword}=` of `{code.said(node.func)}` {said}"
                )
        most = library.POSITIONAL.get(name, library.DEFAULT_POSITIONAL)
        if len(args.given) > most:
            return self.report(
                "TM222", code, node,
                f"`{code.said(node.func)}` is given {len(args.given)} arguments by position; {most} are understood",
            )  # fmt: skip
        for value in args.all():
            if isinstance(value, External):
                self._function_given(value, node, frame)
        return None

    def _regularizes(self, keyword: str, value: Value, node: ast.Call, frame: Frame) -> bool:
        """Whether an argument is a regulariser that makes a loss of its variable and does nothing else."""
        if keyword == "activity_regularizer":
            return False
        if isinstance(value, Function):
            with self.perhaps():
                made = self.enter(value, [Tensor(variable=True)], {}, node, frame.code)
            return isinstance(made, Tensor)
        return isinstance(value, Object) and value.kind == "regularizer"

    def _function_given(self, value: External, node: ast.Call, frame: Frame) -> None:
        """A function handed on must itself be on the list."""
        name = value.name
        fine = (
            name in library.PURE
            or name in library.CONSTANTS
            or name in library.INITIALIZERS
            or name in library.NUMPY_CONSTANTS
            or name in library.OTHERS
            or name.startswith(("tf.GraphKeys.", "numpy."))
            or name in library.PYTHON
        )
        if not fine:
            self.report(
                "TM222", frame.code, node,
                f"`{name}` is handed to `{frame.code.said(node.func)}`; what it does there is not known",
            )  # fmt: skip

    def _special(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        code = frame.code
        if name == "tf.get_variable":
            return self._variable(args, node, frame)
        if name in library.INITIALIZERS:
            seed = args.get(9, "seed") if name in library.DRAWN_INITIALIZERS else NONE
            if isinstance(seed, Const):
                return Object("initializer", seed=seed.value)
            if seed is None and name in library.DRAWN_INITIALIZERS:
                self.random.append((code, node, "initializer"))
                return Object("initializer")
            return Object("initializer", seed=True)
        if name == "tf.get_variable_scope":
            return Object("variable scope")
        if name in library.LISTS or name == "tf.get_collection":
            return self._collection(name, args, node, frame)
        if name == "tf.add_to_collection":
            key = args.get(0, "name")
            value = args.get(1, "value") or Unknown()
            text = _KEYS.get(key.name) if isinstance(key, External) else text_of(key)
            if text is None:
                return self.report(
                    "TM219",
                    code,
                    node,
                    f"`{code.said(node)}` adds to a collection that is no plain text",
                )
            self.collections.setdefault(text, []).append((value, not self.maybe))
            return NONE
        if name in library.OPTIMIZERS or name == "tf.train.ExponentialMovingAverage":
            if self.evaluates:
                return self.report(
                    "TM220", code, node,
                    f"`{code.said(node)}` is made in what only looks at the model",
                )  # fmt: skip
            return Object("optimizer" if name in library.OPTIMIZERS else "moving average")
        if name == "tf.gradients":
            return self._gradients(args, node, frame)
        if name in ("tf.clip_by_global_norm",):
            given = args.get(0, "t_list") or Unknown()
            many = Items([(Tensor(needs_of(given), gradient=True), True)], False)
            return Items([(many, True), (Tensor(args.needs()), True)], True, False, False)
        if name == "tf.group":
            return Object("update", args.needs())
        if name in library.MERGE_ALL and (code.path, *code.place(node)) in self.merges:
            needs = needs_of(Items(list(self.collections.get("summaries", [])), False))
            return Tensor(needs, summary=True)
        if name in library.SUMMARIES:
            return self._summary(name, args, node, frame)
        return None

    def _variable(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        self.made_variables += 1
        self._asks("tf.get_variable", args.get(0, "name"), args, node, frame)
        if self.evaluates:
            return Tensor(variable=True)
        initializer = args.get(3, "initializer")
        known = isinstance(initializer, Tensor) and initializer.constant and not initializer.needs
        if isinstance(initializer, Tensor | Items) and not (known and args.get(1, "shape") is None):
            self.report(
                "TM222",
                code,
                node,
                f"`{code.said(node)}` starts from a tensor, not from an initializer",
            )
        self._own_initializer(initializer, node, frame)
        if initializer is None:
            self.random.append((code, node, "initializer"))
        self._seeded(initializer, node, frame)
        shape = args.get(1, "shape")
        for size in [v for v, _ in shape.values] if isinstance(shape, Items) else [shape]:
            if size is not None:
                self._differs(size, node, frame)
        if isinstance(args.get(0, "name"), Text | Index | Differs):
            self.report("TM218", code, node, f"`{code.said(node)}` names a variable for its tower")
        return Tensor(variable=True)

    def _asks(
        self, kind: str, name: Value | None, args: Arguments, node: ast.Call, frame: Frame
    ) -> None:
        """Note the variables that a call of a tower asks for; report those of an evaluation that no tower has."""
        bias = args.get(place_of_bias(kind), "use_bias") or Const(True)
        named = text_of(name) or None
        known = isinstance(bias, Const) and (name is None or named is not None)
        more = (bias.value,) if isinstance(bias, Const) else ()
        self.asks_for(kind, named, more, known, node, frame)

    def asks_for(
        self,
        kind: str,
        named: str | None,
        more: tuple[object, ...],
        known: bool,
        node: ast.Call,
        frame: Frame,
    ) -> object:
        """Note variables by what makes them, their name, and what else decides which they are, if that is known; gives all that."""
        with self.perhaps(not known or bool(self.maybe)):
            key = self.asked.key(kind, named, more)
            key = key if known else None
            if self.where == "a tower":
                self.asked.note(key)
        if self.evaluates and not self.asked.has(key):
            self.report(
                "TM211", frame.code, node,
                f"it is not shown that the towers make what `{frame.code.said(node)}` asks for behind them",
            )  # fmt: skip
        return key

    def _own_initializer(self, initializer: Value | None, node: ast.Call, frame: Frame) -> None:
        """A function of the program's own runs once in TF1, and here when the variable is made."""
        if isinstance(initializer, Function | Instance | Made | Method) or (
            isinstance(initializer, Setting) and not initializer.plain
        ):
            self.report(
                "TM222", frame.code, node,
                f"`{frame.code.said(node)}` starts from an initializer of the program's own",
            )  # fmt: skip

    def _seeded(self, initializer: Value | None, node: ast.Call, frame: Frame) -> None:
        """Two variables that start from one seed: in TF1 each draws from the start, in TF2 the second goes on.

        Those of towers do as in TF1: the helpers see to that.
        """
        if not isinstance(initializer, Object) or initializer.seed is None:
            return
        if self.where == "a tower":
            return
        if initializer.seed in self.seeds:
            self.report(
                "TM232", frame.code, node,
                f"`{frame.code.said(node)}` starts from a seed that another variable starts from",
            )  # fmt: skip
        self.seeds.add(initializer.seed)

    def _collection(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        if name in library.LISTS:
            key, scope = name.removeprefix("tf."), args.get(0, "scope")
            variables = True
        else:
            given = args.get(0, "key")
            key = given.name if isinstance(given, External) else text_of(given) or ""
            scope = args.get(1, "scope")
            variables = key in _VARIABLE_KEYS
            if isinstance(given, Text) and given.of == "index" and len(args.all()) == 1:
                found = self._of_number(given.form, node, frame)
                if found is not None:
                    return found
        if self.no_updates and key in ("tf.GraphKeys.UPDATE_OPS", "update_ops"):
            return Items([], mutable=False)
        if self.evaluates:
            return self.report(
                "TM219", code, node,
                f"`{code.said(node)}` reads a collection of the whole graph behind the towers",
            )  # fmt: skip
        if isinstance(scope, Text) and scope.of != "scope" or isinstance(scope, Index | Differs):
            return self.report(
                "TM219", code, node,
                f"`{code.said(node)}` reads a collection by a text for its tower; a replica's scopes are called "
                "otherwise",
            )  # fmt: skip
        if variables and not key.lower().startswith(("trainable", "tf.graphkeys.trainable")):
            if self.where == "a tower":
                return self.report(
                    "TM219",
                    code,
                    node,
                    f"`{code.said(node)}` lists variables of the whole graph in a tower",
                )
        if variables:
            self.lists_read.append((code, node, self.made_variables))
            return Items([(Tensor(variable=True), True)], False)
        if not isinstance(scope, Text):
            line, column = code.place(node)
            need = f"{SHARED}{code.path}:{line}:{column}"
            self.unscoped[need] = code, node
            return Collected(need)
        key = _KEYS.get(key, key)
        there = self.collections.get(key, [])
        return Items([*there, (Tensor(), False)], False)

    def _of_number(self, form: str | None, node: ast.Call, frame: Frame) -> Value | None:
        """What a tower has kept in a collection that is called after its number."""
        kept = self.of_number.get(form or "")
        if not kept or self.where != "a tower" or not any(sure for _, sure in kept):
            return None
        self.read_by_number.append((frame.code, node))
        return Items(list(kept), False)

    def _gradients(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        given = args.get(1, "xs")
        code = frame.code
        if (code.path, *code.place(node)) in self.of_variables and not self.stack:
            needs = needs_of(args.get(0, "ys") or Unknown())
            self.all_towers(needs)
            return Items([(Tensor(of_gradients(needs), gradient=True), True)], False)
        wanted = given.values if isinstance(given, Items) else [(given or Unknown(), True)]
        if any(not isinstance(v, Tensor) or v.variable or v.placeholder for v, _ in wanted):
            return self.report(
                "TM202", frame.code, node,
                f"`{frame.code.said(node)}` takes gradients for more than tensors of the tower",
            )  # fmt: skip
        needs = of_gradients(args.needs())
        made: list[tuple[Value, bool]] = [(Tensor(needs), s) for _, s in wanted]
        return Items(made, not isinstance(given, Items) or given.exact)

    def _summary(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        made = Tensor(args.needs(), summary=True)
        if self.evaluates:
            return self.report(
                "TM231", frame.code, node,
                f"`{frame.code.said(node)}` makes a summary of what only looks at the model",
            )  # fmt: skip
        if not name.endswith(("merge", "merge_summary")):
            given = args.get(3 if name == "tf.summary.image" else 2, "collections")
            number = None if given is None else self._number_of(name, given)
            if number is not None:
                self.of_number.setdefault(number, []).append((made, not self.maybe))
            elif given is None or given == NONE or self.where != "a tower":
                self.collections.setdefault("summaries", []).append((made, not self.maybe))
            tag = args.get(0, "name") or args.get(0, "tags")
            step, named = self.where == "a step", bool(self.named_blocks)
            self.tags.append(Tag(tag, frame.code, node, step, number is not None, named))
        return made

    def _number_of(self, name: str, given: Value) -> str | None:
        """The form of the one collection, called after the tower's number, that a summary is kept in."""
        if self.where != "a tower" or self.evaluates or name not in library.SUMMARIES:
            return None
        if not isinstance(given, Items) or not given.exact or len(given.values) != 1:
            return None
        (key, sure) = given.values[0]
        return key.form if sure and isinstance(key, Text) and key.of == "index" else None

    def _pure(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        if scaling.is_decay(name, args.given):
            self.decays.add(id(node))
        if scaling.of_call(name, node, args.given, args.named, self.decays):
            self.scaled = True
        if name in library.RANDOM:
            kind = "dropout" if name.endswith("dropout") else "draw"
            seed = args.named.get("seed")
            fixed = seed is not None and seed != NONE
            self.random.append((code, node, "seeded" if fixed else kind))
        if name in library.WITH_VARIABLES:
            self._asks(name, args.named.get("name"), args, node, frame)
        if name in library.WITH_VARIABLES and not self.evaluates:
            self.made_variables += 1
            starts = [v for k, v in args.named.items() if k.endswith("_initializer")]
            if not {"kernel_initializer", "depthwise_initializer"} & args.named.keys():
                self.random.append((code, node, "initializer"))
            for start in starts:
                self._own_initializer(start, node, frame)
                self._seeded(start, node, frame)
            if "name" not in args.named:
                self.counted(code, node, "layers", True)
        says_reuse = None
        for keyword in node.keywords if name in library.WITH_VARIABLES else ():
            if keyword.arg == "reuse" and (
                name != "tf.get_variable" or self.for_first_tower(keyword.value)
            ):
                says_reuse = args.named.get("reuse")
        for value in args.all():
            if value is says_reuse and isinstance(value, Index | Differs):
                continue
            if self.may_differ and isinstance(value, Index | Differs):
                if value in args.given[: library.BY_ELEMENT.get(name, 0)]:
                    continue
            for one in [v for v, _ in value.values] if isinstance(value, Items) else [value]:
                self._given(one, node, frame)
        needs = NOTHING if name in library.NO_VALUES else args.needs()
        constant = name in scaling.CONSTANTS and scaling.is_constant(args.given[:1])
        return Tensor(needs, many=name in library.MANY, constant=constant)

    def for_first_tower(self, node: ast.expr) -> bool:
        """Whether the first tower's value is written instead of what says that variables are reused."""
        return False

    def _given(self, value: Value, node: ast.Call, frame: Frame) -> None:
        """An argument of a pure function."""
        code = frame.code
        if isinstance(value, Instance | Made):
            self.own_object(value, node, frame)
        if isinstance(value, Either):
            for one in value.values:
                self._given(one, node, frame)
        elif isinstance(value, Function):
            arguments = [Tensor() for _ in value.node.args.args]
            with self.perhaps():
                self.enter(value, list(arguments), {}, node, code)
        elif isinstance(value, Method):
            more = [Tensor() for _ in value.function.node.args.args[1:]]
            with self.perhaps():
                self.enter(value.function, [value.of, *more], {}, node, code)
        elif isinstance(value, Class | Partial | Super):
            self._unknown(node, frame)
        elif isinstance(value, Index | Differs):
            self.report(
                "TM227",
                code,
                node,
                f"`{code.said(node)}` computes with the tower's index, so the towers differ",
            )
        elif isinstance(value, Text) and value.of == "index":
            self.report(
                "TM227", code, node,
                f"`{code.said(node)}` is given a text for its tower, which a replica names otherwise",
            )  # fmt: skip

    def _refused(self, name: str, node: ast.Call, frame: Frame) -> Value:
        code = frame.code
        if name == "tf.Variable":
            return self.report(
                "TM218", code, node, "`tf.Variable` in a tower makes a copy for each tower"
            )
        if name.startswith(library.REGULARIZERS):
            return self.report(
                "TM219", code, node,
                f"`{code.said(node)}` reads or adds to collections of all towers (losses, regularisers)",
            )  # fmt: skip
        if name.startswith(library.EFFECTS):
            return self.report(
                "TM220", code, node,
                f"`{code.said(node.func)}` has an effect that TF1 has only in runs that need it",
            )  # fmt: skip
        return self.report(
            "TM222", code, node,
            f"`{code.said(node.func)}` is not on the list of functions that are known to mean the same in a step",
        )  # fmt: skip

    # -- code that stays

    def _outside(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """What a call gives in code that stays: draws of the pipeline matter, reasons do not."""
        last = name.rpartition(".")[2]
        place = "draw@{}:{}:{}".format(frame.code.path, *frame.code.place(node))
        if name in library.DRAWS:
            given = args.get(0, "tensors", "tensors_list", "tensor_list")
            drawn = Tensor(frozenset({place}))
            if isinstance(given, Items) and given.exact:
                lone = len(given.values) == 1 and name in library.BATCHES
                if lone and not isinstance(given.values[0][0], Items):
                    return drawn  # of one tensor they give it, and no list of one
                return Items([(drawn, True) for _ in given.values], True, True, False)
            if isinstance(given, Items | Value) and not isinstance(given, Tensor):
                return Items([(drawn, True)], False, True, False)
            return drawn
        if last == "prefetch_queue" or last.endswith("Queue"):
            return Object("queue", frozenset({place}))
        if last in ("placeholder", "placeholder_with_default"):
            return Tensor(placeholder=True)
        if name in library.OPTIMIZERS or last.endswith("Optimizer"):
            return Object("optimizer")
        if last == "ExponentialMovingAverage":
            return Object("moving average")
        if name in library.INITIALIZERS:
            return Object("initializer")
        if name.startswith(library.QUIET_LIBRARIES):
            return Object("python") if not all(is_python(v) for v in args.all()) else Setting()
        if name in library.CONSTANTS:
            return Plain()
        if name in library.PURE or name.startswith(("tf.image.", "tf.nn.")):
            return Tensor(NOTHING if name in library.NO_VALUES else args.needs())
        if "global_step" in last or last in ("Variable", "get_variable"):
            return Tensor(variable=True)
        return Foreign()
