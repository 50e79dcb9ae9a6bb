"""Run the expressions of a tower or a step: what each gives, and what in it keeps it from moving."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from towermigrate.flow.operators import folded
from towermigrate.flow.values import NONE, Const, External, Unknown, Value
from towermigrate.recognize.proof import library, scaling, special
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import Machine, is_python
from towermigrate.recognize.proof.values import (
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
    Plain,
    Present,
    Python,
    Setting,
    Static,
    Tensor,
    Text,
    holds_static,
    holds_tensor,
    join,
    join_all,
    needs_of,
    text_of,
)

_COPY_ENDS = ["replica_"[k:] for k in range(len("replica_"))]
_MANY = 40
"""Items of a repeated list that are told apart."""
_LONG = 1000
"""Characters of a text that is still followed."""
_IDENTITY = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


class Expressions(Machine):
    """Evaluates expressions."""

    def value(self, node: ast.expr, frame: Frame) -> Value:
        self.tick()
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            return self.report(
                "TM223", frame.code, node,
                f"`{frame.code.said(node)}` is not known to mean the same in {self.where} that is traced again",
            )  # fmt: skip
        made = method(node, frame)
        assert isinstance(made, Value)
        return made

    # -- plain

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return Const(node.value)

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        value = self.lookup(node.id, frame, node, frame.code)
        if isinstance(value, External) and value.name.startswith(library.BATCH_NORM):
            self.report(
                "TM207", frame.code, node, f"batch normalisation in the towers: `{node.id}`"
            )
        return value

    def _joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts = [self.value(_formatted(v), frame) for v in node.values]
        made = self._text(parts, node, frame)
        if any(isinstance(v, ast.FormattedValue) and _is_formatted(v) for v in node.values):
            return made
        return spelled(made, parts, lambda *given: "".join(map(str, given)))

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        return self._display(node.elts, frame, mutable=False)

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return self._display(node.elts, frame, mutable=True)

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        made = self._display(node.elts, frame, mutable=True)
        if holds_tensor(made):
            return self._hashed(node, frame)
        made.loosen()
        return made

    def _hashed(self, node: ast.expr, frame: Frame) -> Value:
        return self.report(
            "TM226", frame.code, node,
            f"`{frame.code.said(node)}` looks a tensor or variable up by its identity; in TF2 it cannot be hashed",
        )  # fmt: skip

    def _display(self, nodes: list[ast.expr], frame: Frame, mutable: bool) -> Items:
        made: list[tuple[Value, bool]] = []
        exact = True
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.value(node.value, frame)
                if isinstance(inner, Items) and inner.exact:
                    made.extend(inner.values)
                else:
                    exact = False
                    made.append((self.element(inner, node.value, frame), False))
            else:
                made.append((self.value(node, frame), True))
        return Items(made, exact, outer=not self.strict, mutable=mutable)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        made: list[tuple[Value, bool]] = []
        keys: list[Value] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                spread = self.value(value, frame)
                keys.append(self.element(spread, value, frame))
                inside = spread.values if isinstance(spread, Items) else [(spread, False)]
                made.extend((one, False) for one, _ in inside)
                continue
            keys.append(self.value(key, frame))
            if holds_tensor(keys[-1]):
                self._hashed(key, frame)
            made.append((self.value(value, frame), True))
        texts = [text for text in map(text_of, keys) if text is not None]
        known = tuple(texts) if len(texts) == len(made) == len(node.keys) else ()
        of_all = join_all(keys) if keys else Plain()
        return Items(made, outer=not self.strict, key=of_all, keys=known)

    def _namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        if self.strict:
            return self.report(
                "TM223", frame.code, node,
                f"`{frame.code.said(node)}` is not known to mean the same in {self.where} that is traced again",
            )  # fmt: skip
        while frame.node is None and frame.parent is not None:
            frame = frame.parent
        before = frame.names.get(node.target.id)
        unsure = self.unsure and before is not None
        frame.names[node.target.id] = join(before, value) if unsure and before else value
        return value

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return Function(node, frame.code, frame, defaults=self.defaults_of(node, frame))

    def defaults_of(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame
    ) -> tuple[tuple[int, Value], ...]:
        """The defaults of a function that is made in a function, where it is made."""
        if frame.is_module:
            return ()
        given = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        return tuple((id(default), self.value(default, frame)) for default in given)

    # -- operators

    def _binop(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self.operator(node, left, right, frame)

    def may_act(self, value: Value, asked: frozenset[str]) -> bool:
        """Whether a value may be an object of the program's own that has one of some special methods."""
        if isinstance(value, Either):
            return any(self.may_act(each, asked) for each in value.values)
        if isinstance(value, Items):
            return bool(self.running & asked) and any(
                self.may_act(each, asked) for each, _ in value.values
            )
        if not isinstance(value, Setting) or value.plain or value.flag:
            return False
        return bool(self.running & asked)

    def operator(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """The value of a binary operation."""
        op = getattr(node, "op", None)
        if self.strict and scaling.of_operator(node, left, right, self.decays):
            self.scaled = True
        for side in (left, right):
            if isinstance(side, Instance | Made):
                return self.own_object(side, node, frame)
            if self.may_act(side, special.VALUES):
                return self._runs_code(node, frame)
        if holds_tensor(left) or holds_tensor(right):
            if isinstance(left, Items) and isinstance(right, Items):
                return self._added_up(left, right)
            if isinstance(left, Items) and isinstance(op, ast.Mult):
                self._differs(right, node, frame)
                return self._repeated(left, right)
            for side in (left, right):
                if not self.may_differ or not isinstance(op, _ARITHMETIC):
                    self._differs(side, node, frame)
            return Tensor(needs_of(left) | needs_of(right))
        if isinstance(op, ast.Mod) and (_is_text(left)):
            parts = [v for v, _ in right.values] if isinstance(right, Items) else [right]
            made = self._text([left, *parts], node, frame)
            listed = isinstance(right, Items) and right.mutable
            if isinstance(made, Text):
                return formed(made, None if listed else written_into(left, parts))
            tuple_ = isinstance(right, Items) and right.exact and not right.mutable
            if tuple_ or isinstance(right, Python):
                return spelled(made, [left, *parts], lambda text, *given: text % given)
            return made
        if isinstance(op, ast.Add) and any(isinstance(v, Text) for v in (left, right)):
            made = self._text([left, right], node, frame)
            return formed(made, joined_forms([left, right]))
        for side in (left, right):
            if isinstance(side, Index | Differs):
                return Differs()
        if isinstance(left, Static) or isinstance(right, Static):
            return Static()
        if isinstance(left, Items) and isinstance(right, Items):
            return self._added_up(left, right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Items) and isinstance(op, ast.Mult) and is_python(other):
                return self._repeated(one, other)
        if isinstance(left, Const) and isinstance(right, Const):
            return _folded(op, left, right)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Unknown()
        if is_python(left) and is_python(right):
            settings = [v for v in (left, right) if isinstance(v, Setting)]
            if not settings:
                return Plain()
            plain = all(v.plain for v in settings)
            return Setting(plain, all(v.plain or v.flag for v in settings), self.strict)
        return self._mixed(node, left, right, frame)

    def _added_up(self, left: Items, right: Items) -> Items:
        exact = left.exact and right.exact
        return Items([*left.values, *right.values], exact, not self.strict, left.mutable)

    def _repeated(self, one: Items, times: Value) -> Items:
        """`[0] * n`, which may be empty."""
        count = times.value if isinstance(times, Const) else None
        if one.exact and type(count) is int and 0 <= count * len(one.values) <= _MANY:
            return Items(list(one.values) * count, True, not self.strict, one.mutable)
        return Items([(v, False) for v, _ in one.values], False, not self.strict, one.mutable)

    # What follows is defined with the parts of values.

    def attribute(self, value: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        raise NotImplementedError

    def _part_of(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        raise NotImplementedError

    def _runs_code(self, node: ast.AST, frame: Frame) -> Value:
        raise NotImplementedError

    def own_object(self, value: Instance | Made, node: ast.AST, frame: Frame) -> Value:
        """An object of the program's own where it may do anything."""
        return self.report(
            "TM222", frame.code, node,
            f"what `{frame.code.said(node)}` does with an object of `{value.made_of.node.name}` is not known",
        )  # fmt: skip

    def _mixed(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        for side in (left, right):
            if isinstance(side, Foreign):
                return side
            if isinstance(side, Collected):
                self.all_towers(needs_of(side))
                return Unknown()
        return self.report(
            "TM222", frame.code, node, f"what `{frame.code.said(node)}` gives is not understood"
        )

    def _differs(self, value: Value, node: ast.AST, frame: Frame) -> None:
        if isinstance(value, Index | Differs) and not self.placing:
            rows = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
            hint = "; parts of `tf.split` are known to be a tower's rows" if rows else ""
            self.report(
                "TM227", frame.code, node,
                f"`{frame.code.said(node)}` computes with the tower's index, so the towers differ{hint}",
            )  # fmt: skip

    @property
    def may_differ(self) -> bool:
        """Whether tensors may be computed with the tower's index: each replica is traced with an index of its own."""
        return self.strict and self.where == "a tower"

    def _one_by_index(self, values: list[Value], node: ast.AST, frame: Frame) -> Value:
        """One of some values, which the tower's index decides."""
        if any(not is_python(v) and not isinstance(v, Differs) for v in values):
            return self.report(
                "TM214", frame.code, node,
                f"`{frame.code.said(node)}` decides by the tower's index: the towers differ",
            )  # fmt: skip
        return Differs()

    def _text(self, parts: list[Value], node: ast.AST, frame: Frame) -> Value:
        for part in parts:
            if isinstance(part, Items):
                inner = self._text([v for v, _ in part.values], node, frame)
                if isinstance(inner, Text):
                    return inner
            if isinstance(part, Instance | Made):
                return self.own_object(part, node, frame)
            if self.may_act(part, special.TEXTS):
                return self._runs_code(node, frame)
            if isinstance(part, Index | Differs):
                return Text("index")
            if isinstance(part, Text):
                return Text("index" if part.of == "scope" else part.of)
            if holds_static(part):
                return self.report(
                    "TM228", frame.code, node,
                    f"`{frame.code.said(node)}` writes a static shape into a text; a step may know one that the graph "
                    "did not",
                )  # fmt: skip
            if holds_tensor(part):
                return self.report(
                    "TM223", frame.code, node,
                    f"`{frame.code.said(node)}` writes a tensor into a text; its name differs in a step",
                )  # fmt: skip
        return Plain()

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = self.truth(value, node.operand, frame)
            if isinstance(value, Index | Differs):
                return Differs()
            return Plain() if known is None else Const(not known)
        if self.may_act(value, special.VALUES):
            return self._runs_code(node, frame)
        if isinstance(value, Const) and not isinstance(node.op, ast.UAdd):
            negated = isinstance(node.op, ast.USub)  # `~x` is `-1 - x`
            return _folded(ast.Sub(), Const(0 if negated else -1), value)
        return value

    def truth(self, value: Value, node: ast.AST, frame: Frame) -> bool | None:
        """Whether a value is true where Python asks; None where the program decides when it runs."""
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, Made | Method):
            return True
        if holds_static(value) and not isinstance(value, Items):
            self.report(
                "TM228", frame.code, node,
                f"`{frame.code.said(node)}` asks whether a static shape is known; a step knows shapes that "
                "the graph did not",
            )  # fmt: skip
        elif isinstance(value, Tensor):
            self.report(
                "TM226",
                frame.code,
                node,
                f"`{frame.code.said(node)}` asks for the truth of a tensor",
            )
        elif isinstance(value, Text):
            self._asked_text(value, node, frame)
        elif isinstance(value, Collected):
            self._part_of(value, node, frame)
        elif isinstance(value, Instance):
            self.own_object(value, node, frame)
        elif isinstance(value, Setting) and self.running & {"__bool__", "__nonzero__", "__len__"}:
            self._runs_code(node, frame)
        elif isinstance(value, Either) and any(holds_tensor(v) for v in value.values):
            self.report(
                "TM226",
                frame.code,
                node,
                f"`{frame.code.said(node)}` may ask for the truth of a tensor",
            )
        elif isinstance(value, Items) and value.exact and not value.outer:
            return bool(value.values)
        return None

    def _asked_text(self, value: Text, node: ast.AST, frame: Frame) -> None:
        self.report(
            "TM227", frame.code, node,
            f"`{frame.code.said(node)}` decides by a text that differs between the towers or in a step",
        )  # fmt: skip

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        made: list[Value] = []
        for part in node.values[:-1]:
            with self.perhaps(bool(made)):
                value = self.value(part, frame)
            known = self.truth(value, part, frame)
            if known is not None and known is isinstance(node.op, ast.Or):
                return join(made[0], value) if made else value
            if known is None:
                made.append(value)
        with self.perhaps(bool(made)):
            made.append(self.value(node.values[-1], frame))
        if len(made) > 1 and any(isinstance(v, Differs | Index) for v in made):
            return self._one_by_index(made, node, frame)
        return join_all(made)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        if self._asks_a_name(node, frame):
            return Plain()
        values = [self.value(n, frame) for n in [node.left, node.comparators[0]]]
        for each in node.comparators[1:]:  # only where all before them hold
            with self.perhaps():
                values.append(self.value(each, frame))
        made = [
            self._compared(node, op, left, right, frame)
            for op, left, right in zip(node.ops, values, values[1:], strict=False)
        ]
        if len(made) == 1:
            return made[0]
        known = [self.truth(value, node, frame) for value in made]
        if any(isinstance(value, Differs | Index) for value in made):
            return Differs()
        return Plain() if None in known else Const(all(known))

    def _asks_a_name(self, node: ast.Compare, frame: Frame) -> bool:
        """Whether a variable's name is asked for a text that the name of a replica's copy has or lacks as well."""
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return False
        if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
            return False
        names_one = self._names_a_variable(node.comparators[0], frame)
        return names_one and not in_copies_only(node.left.value)

    def asks_how_a_name_begins(self, node: ast.Call, frame: Frame) -> bool:
        """Whether `v.name.startswith('gen')` is asked, and the name of a replica's copy of any variable begins alike."""
        asked = node.func
        if not isinstance(asked, ast.Attribute) or asked.attr != "startswith":
            return False
        if len(node.args) != 1 or node.keywords or not isinstance(node.args[0], ast.Constant):
            return False
        text = node.args[0].value
        if not isinstance(text, str) or not self._names_a_variable(asked.value, frame):
            return False
        return not begins_copies_only(text)

    def _names_a_variable(self, asked: ast.expr, frame: Frame) -> bool:
        if not isinstance(asked, ast.Attribute) or asked.attr != "name":
            return False
        if not isinstance(asked.value, ast.Name):
            return False
        of = self.value(asked.value, frame)
        return isinstance(of, Tensor) and of.variable

    def _compared(
        self, node: ast.Compare, op: ast.cmpop, left: Value, right: Value, frame: Frame
    ) -> Value:
        code = frame.code
        for side in (left, right):
            if isinstance(side, Collected):
                return self._part_of(side, node, frame)
            if isinstance(side, Instance | Made):
                return self.own_object(side, node, frame)
            if not isinstance(op, ast.Is | ast.IsNot) and self.may_act(side, special.VALUES):
                return self._runs_code(node, frame)
        if isinstance(op, ast.In | ast.NotIn) and self.may_act(right, special.CONTAINERS):
            return self._runs_code(node, frame)
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, Setting):
            self.element(right, node, frame)
        if isinstance(op, ast.Is | ast.IsNot):
            return self._identity(node, op, left, right, frame)
        tensors = holds_tensor(left) or holds_tensor(right)
        if tensors and isinstance(op, _IDENTITY):
            return self.report(
                "TM226", code, node,
                f"`{code.said(node)}` compares tensors or variables: by identity in TF1, by value in TF2",
            )  # fmt: skip
        if tensors:
            return Tensor(needs_of(left) | needs_of(right))
        if holds_static(left) or holds_static(right):
            return self.report(
                "TM228", code, node,
                f"`{code.said(node)}` asks for a static shape; a step may know one that the graph did not",
            )  # fmt: skip
        for side in (left, right):
            if isinstance(side, Index | Differs):
                return Differs()
            if isinstance(side, Text) and side.of in ("index", "scope", "tensor"):
                self._asked_text(side, node, frame)
                return Plain()
        if isinstance(left, Const) and isinstance(right, Const):
            return _folded(op, left, right)
        for side in (left, right):
            unsure = isinstance(side, Object | Either) and not is_python(side)
            if unsure and isinstance(op, _IDENTITY) or isinstance(side, Foreign):
                return self.report(
                    "TM226", code, node,
                    f"`{code.said(node)}` may compare tensors or variables, by identity in TF1, by value in TF2",
                )  # fmt: skip
        return Plain()

    def _identity(
        self, node: ast.Compare, op: ast.cmpop, left: Value, right: Value, frame: Frame
    ) -> Value:
        negated = isinstance(op, ast.IsNot)
        for one, other in ((left, right), (right, left)):
            if other != NONE:
                continue
            if holds_static(one):
                return self.report(
                    "TM228", frame.code, node,
                    f"`{frame.code.said(node)}` asks whether a static shape is known; a step knows shapes that "
                    "the graph did not",
                )  # fmt: skip
            if isinstance(one, Const):
                return Const((one.value is None) is not negated)
            if isinstance(one, Tensor) and not one.gradient:
                return Const(negated)
            if isinstance(one, Items | Function | Method | Made | External | Object | Text | Index):
                return Const(negated)
            return Present() if negated and isinstance(one, Tensor) else Plain()
        for one, other in ((left, right), (right, left)):
            plain = isinstance(other, Python | Setting) and not self.may_act(other, special.VALUES)
            if isinstance(one, Tensor) and not one.gradient and not one.many and plain:
                return Const(negated)
        if holds_tensor(left) or holds_tensor(right):
            return self.report(
                "TM226", frame.code, node,
                f"`{frame.code.said(node)}` asks whether two tensors or variables are one",
            )  # fmt: skip
        return Plain()

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.value(node.test, frame)
        known = self.truth(test, node.test, frame)
        if known is not None:
            return self.value(node.body if known else node.orelse, frame)
        self.maybe += 1
        made = join(self.value(node.body, frame), self.value(node.orelse, frame))
        self.maybe -= 1
        if isinstance(test, Index | Differs):
            return self._one_by_index([made], node, frame)
        return made


def spelled(made: Value, parts: Sequence[Value], write: Callable[..., str]) -> Value:
    """A text that is made of texts and whole numbers: what it is where they are known.

    Args:
        made: what else is known of it.
        parts: what it is made of.
        write: makes it of their values.
    """
    known = [p.value for p in parts if isinstance(p, Const) and type(p.value) in (str, int)]
    if not isinstance(made, Plain) or len(known) < len(parts):
        return made
    try:
        text = write(*known)
    except (TypeError, ValueError, LookupError, AttributeError):
        return made
    return Const(text) if len(text) < _LONG else made


def formed(made: Value, form: str | None) -> Value:
    """A text that is made of the tower's number, with its form."""
    return Text("index", form=form) if isinstance(made, Text) and made.of == "index" else made


def form_of(value: Value) -> str | None:
    """What a value is in a text, with `{}` for the tower's number."""
    if isinstance(value, Index):
        return "{}"
    if isinstance(value, Text):
        return value.form
    text = text_of(value)
    return None if text is None or "{" in text or "}" in text else text


def joined_forms(parts: Sequence[Value]) -> str | None:
    """The form of texts one after the other, of which one has the tower's number."""
    forms = [None if isinstance(part, Index) else form_of(part) for part in parts]
    known = [form for form in forms if form is not None]
    form = "".join(known)
    return form if len(known) == len(parts) and form.count("{}") == 1 else None


def written_into(text: Value, parts: Sequence[Value]) -> str | None:
    """The form of `"model_%d" % i`, or of `"%s_%d" % (name, i)`."""
    outer = text_of(text)
    if outer is None or not re.fullmatch(r"(?:[^%{}]|%[ds])*", outer):
        return None
    fields = re.findall("%[ds]", outer)
    forms = [form_of(part) for part in parts]
    numbers = [isinstance(part, Index) for part in parts]
    if len(fields) != len(parts) or any(form is None for form in forms):
        return None
    if any(field == "%d" and not number for field, number in zip(fields, numbers, strict=True)):
        return None
    inner = iter(form or "" for form in forms)
    form = re.sub("%[ds]", lambda _: next(inner), outer)
    return form if form.count("{}") == 1 else None


def _formatted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.FormattedValue) else node


def _is_formatted(node: ast.FormattedValue) -> bool:
    return node.format_spec is not None or node.conversion != -1


def in_copies_only(text: str) -> bool:
    """Whether a text may stand in `w/replica_1:0`, the name of a copy, for more than its part that is in `w:0`.

    Without a slash and a colon it stands within one part of the name: in what both have, or in `replica_1`.
    """
    return (
        "/" in text or ":" in text or re.fullmatch(r"\d+", text) is not None or text in "replica_"
        or any(re.fullmatch(end + r"\d+", text) is not None for end in _COPY_ENDS)
    )  # fmt: skip


def begins_copies_only(text: str) -> bool:
    """Whether `w/replica_1:0`, the name of some variable's copy, may begin with a text that `w:0` does not begin with."""
    of_copy = text.rpartition("/")[2] if "/" in text else None
    return ":" in text or (
        of_copy is not None
        and ("replica_".startswith(of_copy) or re.fullmatch(r"replica_\d+", of_copy) is not None)
    )


def _is_text(value: Value) -> bool:
    return text_of(value) is not None or isinstance(value, Text)


def _folded(op: object, left: Const, right: Const) -> Value:
    """What an operator gives of two values that are known."""
    found = folded(op, left.value, right.value)
    return found if isinstance(found, Const) else Plain()
