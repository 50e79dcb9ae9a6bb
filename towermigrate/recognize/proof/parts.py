"""Run attributes, subscripts and comprehensions: the parts of values, and values made of values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from towermigrate.flow.values import Const, External, Unknown, Value
from towermigrate.recognize.proof import library, special
from towermigrate.recognize.proof.asks import Asks
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.listed_settings import is_listed
from towermigrate.recognize.proof.machine import MAY_DESCRIBE
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
    Made,
    Method,
    Module,
    Object,
    Plain,
    Python,
    Record,
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

_BY_TEXT = re.compile(r"\bsetattr\b|__dict__|\bvars\(")
"""What may set attributes that it does not spell."""
UNROLL = 40
"""Rounds of a loop over a known list that are run one by one."""


class Parts(Asks):
    """Evaluates what takes values apart and puts them together."""

    # -- parts of values

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        chain: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            chain.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name):
            value = self.lookup(root.id, frame, root, frame.code, tuple(reversed(chain)))
        else:
            value = self.value(root, frame)
        for name in reversed(chain):
            value = self.attribute(value, name, node, frame)
        if isinstance(value, External) and value.name.startswith(library.BATCH_NORM):
            self.report(
                "TM207",
                frame.code,
                node,
                f"batch normalisation in the towers: `{frame.code.said(node)}`",
            )
        return value

    def attribute(self, value: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        """`value.name`."""
        code = frame.code
        if isinstance(value, External):
            if value.name.endswith("flags.FLAGS"):
                return Setting(flag=True)
            full = f"{value.name}.{name}"
            return External("tf" if full == "tf.compat.v1" else full)
        if isinstance(value, Module):
            return self.lookup(name, self.module(value.code), node, code)
        if isinstance(value, Setting) and value.plain:
            return Object("array." + name)
        if isinstance(value, Instance):
            return self._of_instance(value, name, node, frame)
        if isinstance(value, Setting) and self.running & {name, "__getattr__", "__getattribute__"}:
            return self._runs_code(node, frame)
        if isinstance(value, Setting) and value.told and self._may_be_set(name):
            return Setting()
        if isinstance(value, Setting):
            return replace(value, called=name)
        if isinstance(value, Foreign):
            return value
        if isinstance(value, Record) and name in value.fields:
            return value.fields[name]
        if isinstance(value, Python | Text | Items | Static):
            return self._of_python(value, name, node, frame)
        if isinstance(value, Tensor):
            return self._of_tensor(value, name, node, frame)
        if isinstance(value, Object):
            if value.kind == "variable scope" and name == "name":
                return Plain()
            if value.kind in ("operation", "tensor's operation") and name == "name":
                return Text("name" if value.kind == "operation" else "tensor")
            if value.kind == "variable scope" and name == "reuse":
                return self.report(
                    "TM214", code, node,
                    f"`{code.said(node)}` is False in the first tower and True in the others",
                )  # fmt: skip
            return Object(f"{value.kind}.{name}", value.needs)
        if isinstance(value, Either):
            return join_all([self.attribute(v, name, node, frame) for v in value.values])
        if isinstance(value, Made):
            return self.of_made(value, name, node, frame)
        if isinstance(value, Super):
            return self.of_super(value, name, node, frame)
        if isinstance(value, Class):
            return self.of_class(value, name, node, frame)
        if isinstance(value, Function | Method):
            return self.report(
                "TM222", code, node, f"`{code.said(node)}`: what the attribute holds is not known"
            )
        return self._part_of(value, node, frame)

    def of_made(self, value: Made, name: str, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def of_super(self, value: Super, name: str, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def of_class(self, value: Class, name: str, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def _runs_code(self, node: ast.AST, frame: Frame) -> Value:
        return self.report(
            "TM222", frame.code, node,
            f"`{frame.code.said(node)}` may run code of the program's own, once in TF1 and at every trace of {self.where}",
        )  # fmt: skip

    def _of_instance(self, value: Instance, name: str, node: ast.expr, frame: Frame) -> Value:
        """A plain attribute of an object; properties and methods may do anything."""
        made = value.made_of.node
        plain = all(isinstance(b, ast.Name) and b.id == "object" for b in made.bases)
        own = {n.name for n in ast.walk(made) if isinstance(n, ast.FunctionDef)}
        own |= {
            t.id
            for n in made.body
            if isinstance(n, ast.Assign) and isinstance(n.value, MAY_DESCRIBE)
            for t in n.targets
            if isinstance(t, ast.Name)
        }
        if not plain or made.keywords or own & {name, "__getattr__", "__getattribute__"}:
            return self.report(
                "TM222", frame.code, node,
                f"what reading `{frame.code.said(node)}` of an object of `{made.name}` does is not known",
            )  # fmt: skip
        return Setting(own=self._only_numbers(name, made), called=name)

    def _only_numbers(self, name: str, made: ast.ClassDef) -> bool:
        """Whether numbers or texts are all that an attribute of a class's objects is set to, wherever one of its name is."""
        constants = _given_constants(made.body)
        inside = [n for each in made.body for n in ast.walk(each) if isinstance(n, ast.Name)]
        own = [each for each in inside if each.id == name]
        if not all(id(each) in constants for each in own) or self._may_be_set(name):
            return False
        return bool(own) or any(name in code.stored_attributes for code in self.files)

    def _may_be_set(self, name: str) -> bool:
        """Whether an attribute of a name may be set to anything but a number or a text, of whatever object."""
        return self._sets_any or name in self._set_otherwise

    @cached_property
    def _sets_any(self) -> bool:
        return any(_BY_TEXT.search(code.text) for code in self.files)

    @cached_property
    def _set_otherwise(self) -> frozenset[str]:
        """The attributes that the program sets, in some place, to what is no number or text as it is written."""
        return frozenset(
            node.attr
            for code in self.files
            for constants in [_given_constants(code.nodes)]
            for node in code.nodes
            if isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and id(node) not in constants
        )

    def _of_python(self, value: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Static):
            if name in ("value", "ndims", "dims", "rank"):
                whole = value.shape and not value.rank
                return Static(shape=name == "dims", rank=whole and name in ("ndims", "rank"))
            return Object("static." + name)
        if isinstance(value, Items):
            return Object("items." + name, needs_of(value), of=value)
        if isinstance(value, Text):
            return Object("text." + name)
        return Object("python." + name, of=value)

    def names_variables(self, node: ast.expr, frame: Frame) -> bool:
        """Whether `v.op.name`, or what is asked of `v.name`, is written here with the helpers' `op_name(v)`."""
        return False

    def _of_tensor(self, value: Tensor, name: str, node: ast.expr, frame: Frame) -> Value:
        if name == "shape":
            return Static(shape=True)
        if name == "dtype" and value.variable:
            return self.report(
                "TM227", frame.code, node,
                f"`{frame.code.said(node)}`: a variable of TF1 has a dtype of its own (`float32_ref`), a replica's has not",
            )  # fmt: skip
        if name in ("dtype", "base_dtype", "as_numpy_dtype"):
            return Plain()
        if name in ("op", "name") and value.given:
            return self.report(
                "TM227", frame.code, node,
                f"`{frame.code.said(node)}` asks for the name of an input, which no operation of a step makes",
            )  # fmt: skip
        if name == "op":
            if value.variable and not self.names_variables(node, frame):
                return self.report(
                    "TM227", frame.code, node,
                    f"`{frame.code.said(node)}` asks a variable for its operation, which replicas' variables do not have",
                )  # fmt: skip
            return Object("operation" if value.variable else "tensor's operation", NOTHING)
        if name == "name":
            asked = {id(node), id(getattr(node, "value", None))} & frame.code.asked_names
            if value.variable and asked and self.names_variables(node, frame):
                return Plain()
            if value.variable:
                return self.report(
                    "TM227", frame.code, node,
                    f"`{frame.code.said(node)}` is another text in the replicas: of a copy of `w` it is `w/replica_1:0`",
                )  # fmt: skip
            return Text("tensor")
        return Object("tensor." + name, value.needs, of=value)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        key = self.value(node.slice, frame)
        return self._told(self.subscript(value, key, node, frame), node, frame)

    def _told(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """A part of a list, unless what is not followed may have put it there."""
        parts = value.values if isinstance(value, Either) else (value,)
        if self.strict and any(isinstance(one, Foreign) for one in parts):
            return self.report(
                "TM222", frame.code, node,
                f"what `{frame.code.said(node)}` gives is not known: code that is not followed may have changed it",
            )  # fmt: skip
        return value

    def subscript(self, value: Value, key: Value, node: ast.Subscript, frame: Frame) -> Value:
        if isinstance(key, Instance | Made):
            return self.own_object(key, node, frame)
        if self.may_act(key, special.VALUES):
            return self._runs_code(node, frame)
        if isinstance(value, Tensor):
            for part in [v for v, _ in key.values] if isinstance(key, Items) else [key]:
                self._differs(part, node, frame)
            return Tensor(
                value.needs | needs_of(key), gradient=value.gradient, constant=value.constant
            )
        if isinstance(value, Static):
            return Static(shape=isinstance(node.slice, ast.Slice))
        if isinstance(value, Items):
            numbers = all(
                isinstance(v, Const) and type(v.value) in (int, float) for v, _ in value.values
            )
            if self.may_differ and isinstance(key, Index) and value.exact and numbers:
                return Differs()
            self._differs(key, node, frame)
            if holds_tensor(key):
                return self._hashed(node, frame)
            if isinstance(node.slice, ast.Slice):
                return Items([(v, False) for v, _ in value.values], False, not self.strict)
            if value.exact and isinstance(key, Const) and isinstance(key.value, int):
                if -len(value.values) <= key.value < len(value.values):
                    return value.values[key.value][0]
            by_key, text = keyed(value), text_of(key)
            if by_key is not None and text in by_key:
                return by_key[text]
            return value.held()
        if isinstance(value, Text):
            return Text("index" if value.of == "scope" else value.of)
        if self.may_act(value, special.PARTS):
            return self._runs_code(node, frame)
        if isinstance(value, Python | Setting):
            self._differs(key, node, frame)
            return Plain() if isinstance(value, Python) else replace(value, called="")
        if isinstance(value, Either):
            return join_all([self.subscript(v, key, node, frame) for v in value.values])
        return self._part_of(value, node, frame)

    def _part_of(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """A part of a value that has none that are known."""
        if isinstance(value, Foreign) or isinstance(value, Unknown):
            return value
        if isinstance(value, Collected):
            if self.strict:
                self.all_towers(needs_of(value))
            return Unknown()
        if isinstance(value, Object | External) and not self.strict:
            return Foreign()
        return self.report(
            "TM222",
            frame.code,
            node,
            f"what is a part of `{frame.code.said(node)}` is not understood",
        )

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [self.value(p, frame) for p in (node.lower, node.upper, node.step) if p is not None]
        if any(self.may_act(part, special.VALUES) for part in parts):
            return self._runs_code(node, frame)
        for part in parts:
            if isinstance(part, Index | Differs):
                return Differs()
        return Items([(p, True) for p in parts], False, mutable=False)

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """What iterating over a value gives each time."""
        if isinstance(value, Items):
            return self._told(value.element(), node, frame)
        if isinstance(value, Tensor):
            return Tensor(value.needs)
        if isinstance(value, Static):
            return Static()
        if isinstance(value, Python):
            return Plain()
        if isinstance(value, Setting):
            if value.plain or value.flag:
                return value
            if not self.is_listed(value.called):
                self.report(
                    "TM222", frame.code, node,
                    f"`{frame.code.said(node)}` was made before; if it is an iterator, the first tower uses it up",
                )  # fmt: skip
            return Setting()
        if isinstance(value, Either):
            return join_all([self.element(v, node, frame) for v in value.values])
        return self._part_of(value, node, frame)

    def is_listed(self, name: str) -> bool:
        """Whether the program writes out lists for all that it calls so."""
        if name not in self._listed:
            files = files_beside(self.codes, self.home.path) if name and self.home else None
            self._listed[name] = files is not None and is_listed(files, name)
        return self._listed[name]

    # -- comprehensions

    def _listcomp(self, node: ast.ListComp, frame: Frame) -> Value:
        return self._comprehension(node, [node.elt], frame)

    def _setcomp(self, node: ast.SetComp, frame: Frame) -> Value:
        return self._comprehension(node, [node.elt], frame)

    def _generatorexp(self, node: ast.GeneratorExp, frame: Frame) -> Value:
        if not self.strict:
            self._comprehension(node, [node.elt], frame)
            return Foreign()
        return self._comprehension(node, [node.elt], frame)

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Value:
        return self._comprehension(node, [node.key, node.value], frame)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        parts: list[ast.expr],
        frame: Frame,
    ) -> Value:
        own: dict[str, list[ast.AST]] = {}
        inner = Frame(frame.code, None, frame, self.strict, own)
        made: list[tuple[Value, bool]] = []
        keys: list[Value] = []

        def run(position: int, sure: bool, exact: bool) -> bool:
            if position == len(node.generators):
                for part in parts[:-1]:
                    keys.append(self.value(part, inner))
                    if holds_tensor(keys[-1]):
                        self._hashed(part, inner)
                made.append((self.value(parts[-1], inner), sure))
                return exact
            one = node.generators[position]
            source = self.value(one.iter, frame if position == 0 else inner)
            if isinstance(source, Items) and source.exact and len(source.values) <= UNROLL:
                rounds = list(source.values)
            else:
                rounds, exact = [(self.element(source, one.iter, frame), False)], False
                self.maybe += 1
                self.repeated += 1
            for value, there in rounds:
                self.bind(one.target, value, inner)
                for name in _targets(one.target):
                    own.setdefault(name, [node])
                kept = True
                for test in one.ifs:
                    known = self.truth(self.value(test, inner), test, inner)
                    exact = exact and known is not None
                    kept = kept and known is not False
                if kept:
                    exact = run(position + 1, sure and there and exact, exact) and exact
            if not exact and not (isinstance(source, Items) and source.exact):
                self.maybe = max(0, self.maybe - 1)
                self.repeated -= 1
            return exact

        before = self.maybe
        with self.perhaps(any(one.ifs for one in node.generators)):
            exact = run(0, True, True)
        self.maybe = before
        key = join_all(keys) if isinstance(node, ast.DictComp) else None
        ordered = exact and not isinstance(node, ast.SetComp)
        return Items(made, ordered, outer=not self.strict, key=key)

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        raise NotImplementedError


def _targets(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _given_constants(nodes: Iterable[ast.AST]) -> set[int]:
    """The targets, by their identity, of statements among some nodes that give them a number or a text."""
    return {
        id(target)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
