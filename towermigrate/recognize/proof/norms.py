"""Run batch normalisation, and tell whose updates of its moving averages a program runs.

In TF1 a layer only puts the updates on UPDATE_OPS; a run makes those that it waits for. In a replica every update is made
that is not held back, and the helpers keep those of one tower. Both are the same where the updates that a run waits for
are all of one tower's, or all that there are, and each moving average has one update in a tower.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from towermigrate.flow.values import Const, External, Unknown, Value
from towermigrate.recognize.proof.code import Code, Codes
from towermigrate.recognize.proof.collected import may_add
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.slim import Slim, is_none
from towermigrate.recognize.proof.values import (
    Items,
    Object,
    Python,
    Setting,
    Tensor,
    Text,
    holds_tensor,
    text_of,
)

_KEYS = ("tf.GraphKeys.UPDATE_OPS", "update_ops")
_OF_LAYERS = (
    "inputs axis momentum epsilon center scale beta_initializer gamma_initializer moving_mean_initializer "
    "moving_variance_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint training "
    "trainable name reuse"
).split()
_MORE_OF_LAYERS = {"fused"}
_UNDERSTOOD_OF_SLIM = frozenset(
    "inputs decay center scale epsilon activation_fn updates_collections is_training reuse trainable fused data_format "
    "scope".split()
)
_LISTS = ("tf.global_variables", "tf.all_variables", "tf.GraphKeys.GLOBAL_VARIABLES", "variables")


@dataclass(frozen=True)
class _Norm:
    """One normalisation that a tower has made, by what tells its variables from others."""

    key: object
    code: Code
    node: ast.AST


@dataclass(eq=False)
class ScopeText(Text):
    """The name of a name scope. `first` is the number of the first normalisation in it, `last` of the first behind it."""

    first: int = 0
    last: int | None = None


class Norms(Slim):
    """Evaluates batch normalisation.

    `norms` are those of a tower. `updates` are the places where the readers took UPDATE_OPS of one tower for what it is.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__(codes)
        self.norms: list[_Norm] = []
        self.updates: frozenset[tuple[int, int]] = frozenset()
        self.updates_read: list[tuple[Code, ast.Call, Value | None, int]] = []
        self.lists_of_all: list[tuple[Code, ast.Call]] = []
        self.left_root = False  # a name scope that is not below the tower's was entered
        # Normalisations of evaluations that may train: what reads the updates of all has theirs, too.
        self.trains_elsewhere: list[_Norm] = []

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if self.strict and self.where != "a tower" and _lists_all(name, args):
            self._of_all(node, frame)
        if not self.strict or self.no_updates:
            return super().tf_call(name, args, node, frame)
        if name == "tf.get_collection":
            key = args.get(0, "key")
            text = key.name if isinstance(key, External) else text_of(key)
            if text in _KEYS:
                return self._updates(args, node, frame)
        if name == "tf.group" and args.starred and _groups_updates(args):
            return Object("update", args.needs())
        if name == "tf.layers.batch_normalization" and not args.starred:
            if len(args.given) <= len(_OF_LAYERS):
                return self._of_layers(args, node, frame)
        return super().tf_call(name, args, node, frame)

    def _of_all(self, node: ast.Call, frame: Frame) -> None:
        """A list of all variables behind the towers: what is made around these is none of a step's."""
        self.lists_of_all.append((frame.code, node))
        self.report(
            "TM219", frame.code, node,
            f"`{frame.code.said(node)}` lists what the optimizer keeps, and what is made in front of the towers, too",
        )  # fmt: skip

    def _updates(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """UPDATE_OPS, which only the readers of the scope may take for updates."""
        here = frame.code is self.home and not self.stack
        if not here or frame.code.place(node) not in self.updates:
            return self.report(
                "TM207", frame.code, node,
                f"`{frame.code.said(node)}` reads batch-norm updates, which a step makes with the tower",
            )  # fmt: skip
        behind = len(self.norms) if self.where == "a tower" else -1
        self.updates_read.append((frame.code, node, args.get(1, "scope"), behind))
        return Items([(Object("update"), True)], False, mutable=False)

    def _of_layers(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        bound = Arguments()
        bound.named = dict(zip(_OF_LAYERS, args.given, strict=False)) | args.named
        known = bound.named.keys() <= {*_OF_LAYERS, *_MORE_OF_LAYERS}
        if not known or any(
            not is_none(value)
            for name, value in bound.named.items()
            if name.endswith(("regularizer", "constraint"))
        ):
            return self._batch_norm(node, frame.code)
        return self._norm(
            "tf.layers.batch_normalization", "name", "training", bound, node, frame
        )  # fmt: skip

    def slim_norm(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`slim.batch_norm`, by itself or as what normalises a layer."""
        bound = args.named
        known = {k for k, v in bound.items() if not is_none(v)} <= _UNDERSTOOD_OF_SLIM
        where = bound.get("updates_collections")
        default = where is None or isinstance(where, External) and where.name == _KEYS[0]
        default = default or text_of(where) == _KEYS[1]
        if not known or not default:
            return self._batch_norm(node, frame.code)
        return self._norm("slim.batch_norm", "scope", "is_training", args, node, frame)

    def _norm(
        self, kind: str, name: str, training: str, bound: Arguments, node: ast.Call, frame: Frame
    ) -> Value:
        code = frame.code
        trains = bound.named.get(training)
        decided = kind == "tf.layers.batch_normalization" and isinstance(trains, Tensor)
        if (
            trains is not None
            and not decided
            and (holds_tensor(trains) or not isinstance(trains, Python | Setting))
        ):
            return self.report(
                "TM207", code, node,
                f"`{code.said(node)}` decides by a value of the graph or of the tower whether it trains",
            )  # fmt: skip
        named = self.layer_name(bound.named.get(name), node, frame)
        more = [
            bound.named.get(one, Const(kind != "slim.batch_norm" or one == "center"))
            for one in ("center", "scale")
        ]
        known = named is not None and all(isinstance(v, Const) for v in more)
        flags = tuple(v.value for v in more if isinstance(v, Const))
        key = self.asks_for(kind, named or None, flags, known, node, frame)
        for value in bound.named.values():
            for one in [v for v, _ in value.values] if isinstance(value, Items) else [value]:
                self._given(one, node, frame)
        if not self.evaluates:
            self.made_variables += 1
            for given in bound.named:
                if given.endswith("initializer"):
                    self._own_initializer(bound.named[given], node, frame)
                    self._seeded(bound.named[given], node, frame)
            self.norms.append(_Norm(key, code, node))
        if self.evaluates and not _surely_still(kind, trains):
            self.trains_elsewhere.append(_Norm(key, code, node))
        return Tensor(bound.needs())

    # -- name scopes

    def name_scope(self, args: Arguments) -> Text:
        """A name scope is entered."""
        first = args.get(0, "name")
        text = text_of(first)
        below = isinstance(first, Text) or text and not text.endswith("/")
        if self.where == "a tower" and not below:
            named = is_none(first or Unknown()) and args.get(1, "default_name") is not None
            self.left_root = self.left_root or not named
        return ScopeText("scope", len(self.norms))

    def left_scope(self, value: Value) -> None:
        """A scope is left."""
        if isinstance(value, ScopeText):
            value.last = len(self.norms)


def _surely_still(kind: str, trains: Value | None) -> bool:
    """Whether a normalisation surely makes no updates."""
    if trains is None:
        return kind != "slim.batch_norm"
    return isinstance(trains, Const) and not trains.value


def _lists_all(name: str, args: Arguments) -> bool:
    """Whether a function gives all variables of the graph."""
    if name != "tf.get_collection":
        return name in _LISTS
    key = args.get(0, "key")
    return (key.name if isinstance(key, External) else text_of(key)) in _LISTS


def check_norms(proof: Norms) -> None:
    """Report normalisations whose updates may not be one tower's, one for each moving average."""
    seen: set[object] = set()
    for norm in proof.norms:
        if norm.key in seen:
            proof.always(
                "TM207", norm.code, norm.node,
                f"`{norm.code.said(norm.node)}` may be a second update of the same moving averages in a tower, in no order",
            )  # fmt: skip
        seen.add(norm.key)
    if proof.norms:
        for code, node in proof.lists_of_all:
            proof.always(
                "TM207", code, node,
                f"`{code.said(node)}` lists the moving averages of batch normalisation in a step that may move them",
            )  # fmt: skip
    if proof.collections.keys() & {*_KEYS}:
        for code, call, _, _ in proof.updates_read:
            proof.always(
                "TM207", code, call, f"`{code.said(call)}` also reads what the towers add to it"
            )
    for code, call, scope, behind in proof.updates_read:
        if scope is None and behind == -1:
            for norm in proof.trains_elsewhere[:1]:
                proof.always(
                    "TM207", code, call,
                    f"`{code.said(call)}` also reads what `{norm.code.said(norm.node)}` in an evaluation may add",
                )  # fmt: skip
            made = {norm.code.path for norm in proof.norms}
            for other in [each for each in may_add(proof.codes, code.path) if each not in made][:1]:
                proof.always(
                    "TM207", code, call,
                    f"`{code.said(call)}` also reads what {other} may add to it",
                )  # fmt: skip
            continue
        all_of_them = (
            isinstance(scope, ScopeText)
            and scope.first == 0
            and not proof.left_root
            and scope.last == len(proof.norms)
            and behind in (-1, len(proof.norms))
        )
        if not all_of_them:
            proof.always(
                "TM207", code, call,
                f"`{code.said(call)}` is not shown to give all batch-norm updates of one tower and no others",
            )  # fmt: skip


def _groups_updates(args: Arguments) -> bool:
    named = args.named.get("name")
    others = [each for each in args.all() if each is not named]
    return all(map(_only_updates, others)) and (named is None or text_of(named) is not None)


def _only_updates(value: Value) -> bool:
    if isinstance(value, Items):
        return all(_only_updates(one) for one, _ in value.values)
    return isinstance(value, Object) and value.kind in ("update", "operation")
