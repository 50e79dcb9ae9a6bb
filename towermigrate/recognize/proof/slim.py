"""Run slim: its layers, and the scopes that give them arguments.

`with slim.arg_scope([slim.conv2d], padding='VALID'):` holds for every call that is made inside of it, also in other
functions. The proof enters and leaves such scopes as Python does, so a layer's arguments are known where it is called.
`tf.contrib.slim`, `tf.contrib.layers` and `tf_slim` are one library here, as one took the place of the others.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from towermigrate.flow.values import NONE, Const, External, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code, Codes, last_name
from towermigrate.recognize.proof.frames import Entered, Frame
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.so_far import SoFar
from towermigrate.recognize.proof.values import (
    Differs,
    Function,
    Index,
    Items,
    Object,
    Python,
    Setting,
    Tensor,
    Text,
    holds_tensor,
    keyed,
    text_of,
)

_WHERE = ("tf.contrib.slim.", "tf.contrib.layers.", "tf.contrib.framework.")
_LAST = (
    "activation_fn normalizer_fn normalizer_params weights_initializer weights_regularizer biases_initializer "
    "biases_regularizer reuse variables_collections outputs_collections trainable scope"
)
_LAYERS = {
    "convolution2d": f"inputs num_outputs kernel_size stride padding data_format rate {_LAST}",
    "convolution2d_transpose": f"inputs num_outputs kernel_size stride padding data_format {_LAST}",
    "fully_connected": f"inputs num_outputs {_LAST}",
}
"""Layers with variables, each with its arguments in order."""
_OTHERS: dict[str, str] = {
    "batch_norm": (
        "inputs decay center scale epsilon activation_fn param_initializers param_regularizers updates_collections "
        "is_training reuse variables_collections outputs_collections trainable batch_weights fused data_format "
        "zero_debias_moving_mean scope renorm renorm_clipping renorm_decay adjustment"
    ),
    "avg_pool2d": "inputs kernel_size stride padding data_format outputs_collections scope",
    "dropout": "inputs keep_prob noise_shape is_training outputs_collections scope seed",
    "flatten": "inputs outputs_collections scope",
    "max_pool2d": "inputs kernel_size stride padding data_format outputs_collections scope",
    "one_hot_encoding": "labels num_classes on_value off_value outputs_collections scope",
    "softmax": "logits scope",
}
"""Layers without weights."""
_ALIASES = {
    "conv2d": "convolution2d",
    "conv2d_transpose": "convolution2d_transpose",
}
_BY_THEMSELVES = frozenset(
    "conv2d_in_plane conv3d convolution2d_in_plane convolution3d layer_norm max_pool3d avg_pool3d separable_conv2d "
    "separable_convolution2d spatial_softmax unit_norm".split()
)
"""Layers that no other layer calls: what a scope gives them is given to them alone, and they are not understood."""
_MANY = {"repeat", "stack"}
"""What makes several layers, each in a scope that is numbered."""
_NAMED_ALIKE = frozenset(
    name.rpartition(".")[2] for name in library.INITIALIZERS if name.startswith("tf.contrib.")
)
"""Initializers, which both libraries have."""
REGULARIZERS = frozenset({"l1_regularizer", "l2_regularizer", "l1_l2_regularizer"})
_UNDERSTOOD: Final = {layer: tuple(names.split()) for layer, names in (_LAYERS | _OTHERS).items()}

Defaults = dict[str, dict[str, Value]]
"""The arguments that scopes give, by layer and name."""


@dataclass(eq=False)
class ArgScope(Value):
    """What `with slim.arg_scope(…) as scope:` binds: what holds there for each layer."""

    defaults: Defaults = field(default_factory=dict)


def is_none(value: Value) -> bool:
    return value == NONE


def slim_name(name: str) -> str | None:
    """The name that slim has for a function, None for one of another library."""
    for start in _WHERE:
        if name.startswith(start):
            short = name[len(start) :]
            return _ALIASES.get(short, short)
    return None


class Slim(SoFar):
    """Evaluates calls of slim.

    `defaults` are what the scopes around the statement at hand give; `arg_scopes` are the scopes that moved code enters,
    by the identity of their calls. `layered` says that moved code has layers of slim.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__(codes)
        self.defaults: Defaults = {}
        self.arg_scopes: set[int] = set()
        self.layered = False

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        short = slim_name(name)
        if short is None or not self.strict:
            return super().tf_call(name, args, node, frame)
        if short in _NAMED_ALIKE:
            return super().tf_call(f"tf.contrib.layers.{short}", args, node, frame)
        if args.starred or short not in _UNDERSTOOD and short not in _MANY | REGULARIZERS:
            return super().tf_call(name, args, node, frame)
        if short in REGULARIZERS:
            return self._regularizer(args, node, frame)
        if short in _MANY:
            return self._several(short, args, node, frame)
        return self.layer(short, args, node, frame)

    # -- scopes of arguments

    def arg_scope(self, node: ast.Call, frame: Frame) -> ArgScope | None:
        """The scope that a `with` of moved code enters; None where the call is none, or is not understood."""
        if not self.strict:
            return None
        function = self.value(node.func, frame)
        if not isinstance(function, External) or slim_name(function.name) != "arg_scope":
            return None
        args = self._arguments(node, frame)
        self.arg_scopes.add(id(node))
        first = args.given[0] if len(args.given) == 1 else None
        if isinstance(first, ArgScope) and not args.named and not args.starred:
            return first
        if args.starred or not isinstance(first, Items) or not first.exact:
            return None
        made = {layer: dict(given) for layer, given in self.defaults.items()}
        for value, _ in first.values:
            layer = slim_name(value.name) if isinstance(value, External) else None
            if layer in _BY_THEMSELVES:
                continue
            if layer not in _UNDERSTOOD or not args.named.keys() <= set(_UNDERSTOOD[layer]):
                return None
            made.setdefault(layer, {}).update(args.named)
        if any(holds_tensor(value) for value in args.named.values()):
            return None
        return ArgScope(made)

    # -- layers

    def layer(self, layer: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """A call of a layer, with what the scopes around it give."""
        code = frame.code
        self.layered = True
        names = _UNDERSTOOD[layer]
        if len(args.given) > len(names):
            return self._unknown(node, frame)
        given = dict(zip(names, args.given, strict=False)) | args.named
        bound = Arguments()
        bound.named = self.defaults.get(layer, {}) | given
        if not bound.named.keys() <= set(names):
            return self._unknown(node, frame)
        checked = Arguments()
        checked.named = dict(bound.named)
        if layer in _LAYERS and self._normalized(bound, node, frame):
            checked.named.pop("normalizer_fn", None)
            checked.named.pop("normalizer_params", None)
        denied = self._denied(f"tf.contrib.slim.{layer}", checked, node, frame)
        if denied is not None:
            return denied
        if layer == "batch_norm":
            return self.slim_norm(bound, node, frame)
        if layer in _LAYERS:
            self._weights(layer, bound, node, frame)
        elif layer == "dropout":
            seed = bound.named.get("seed")
            plain = seed is None or seed == NONE
            self.random.append((code, node, "dropout" if plain else "seeded"))
        for name, value in bound.named.items():
            if name == "is_training" and holds_tensor(value):
                self.report(
                    "TM222", code, node,
                    f"`{code.said(node)}` decides by a tensor whether it trains",
                )  # fmt: skip
            for one in [v for v, _ in value.values] if isinstance(value, Items) else [value]:
                self._given(one, node, frame)
        return Tensor(bound.needs())

    def _weights(self, layer: str, bound: Arguments, node: ast.Call, frame: Frame) -> None:
        """The variables of a layer: how they are called, and what they start from."""
        named = self.layer_name(bound.named.get("scope"), node, frame)
        bias = bound.named.get("biases_initializer", Const(True))
        no_bias = bias == NONE
        known = named is not None and (no_bias or isinstance(bias, Object | Python))
        normalizer = bound.named.get("normalizer_fn")
        normal = normalizer is not None and not is_none(normalizer)
        self.asks_for(f"slim.{layer}", named or None, (not no_bias, normal), known, node, frame)
        if self.evaluates:
            return
        self.made_variables += 1
        if "weights_initializer" not in bound.named:
            self.random.append((frame.code, node, "initializer"))
        for name in ("weights_initializer", "biases_initializer"):
            start = bound.named.get(name)
            self._own_initializer(start, node, frame)
            self._seeded(start, node, frame)

    def layer_name(self, scope: Value | None, node: ast.Call, frame: Frame) -> str | None:
        """What a layer is called: "" where TF1 names it, None where that is not known."""
        code = frame.code
        if isinstance(scope, Text | Index | Differs):
            self.report("TM218", code, node, f"`{code.said(node)}` names variables for their tower")
        elif scope is not None and not isinstance(scope, Python | Setting):
            self.report(
                "TM222", code, node, f"`{code.said(node)}` enters a scope that was made elsewhere"
            )
        if scope is None or is_none(scope):
            self.counted(code, node, "layers", True)
            return ""
        return text_of(scope) or None

    def _normalized(self, bound: Arguments, node: ast.Call, frame: Frame) -> bool:
        """Whether what normalises a layer, if anything does, is batch normalisation that is understood; makes it."""
        function = bound.named.get("normalizer_fn")
        if function is None or is_none(function):
            return True
        given = bound.named.get("normalizer_params")
        named = None if given is None or is_none(given) else keyed(given)
        plain = isinstance(function, External) and slim_name(function.name) == "batch_norm"
        if not plain or named is None and given is not None and not is_none(given):
            return False
        one = Arguments()
        one.named = self.defaults.get("batch_norm", {}) | (named or {})
        scope = bound.named.get("scope")
        self.asked.enter(text_of(scope) or None, not self.maybe)
        self.scopes.append(Entered(True, True))
        self.slim_norm(one, node, frame)
        self.scopes.pop()
        self.asked.leave(1)
        return True

    def slim_norm(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`slim.batch_norm`, its arguments by name."""
        raise NotImplementedError

    def _several(self, short: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`slim.repeat(x, 2, slim.conv2d, 64, [3, 3], scope='conv1')`, `slim.stack(x, slim.fully_connected, [32, 64])`."""
        where = 2 if short == "repeat" else 1
        function = args.given[where] if len(args.given) > where else None
        layer = slim_name(function.name) if isinstance(function, External) else None
        scope = args.named.get("scope")
        name = text_of(scope)
        if layer not in _UNDERSTOOD or name is None:
            return self._unknown(node, frame)
        one = Arguments()
        one.named = dict(args.named)
        if short == "repeat":
            count = args.given[1]
            if not isinstance(count, Const) or not isinstance(count.value, int):
                return self._unknown(node, frame)
            one.given = [args.given[0], *args.given[3:]]
            rounds = [list(one.given) for _ in range(min(count.value, _ROUNDS + 1))]
        else:
            sizes = args.given[2] if len(args.given) == 3 else None
            if not isinstance(sizes, Items) or not sizes.exact:
                return self._unknown(node, frame)
            each = [v.values if isinstance(v, Items) else [(v, True)] for v, _ in sizes.values]
            rounds = [[args.given[0], *(v for v, _ in values)] for values in each]
        if not 1 <= len(rounds) <= _ROUNDS:
            return self._unknown(node, frame)
        self.asked.enter(name, not self.maybe)
        self.scopes.append(Entered(True, True))
        made: Value = args.given[0]
        for number, given in enumerate(rounds, 1):
            turn = Arguments()
            turn.given = [made, *given[1:]]
            turn.named = {**args.named, "scope": Const(f"{name}_{number}")}
            made = self.layer(layer, turn, node, frame)
        self.scopes.pop()
        self.asked.leave(1)
        return made

    def _regularizer(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        for value in args.all():
            self._given(value, node, frame)
            if isinstance(value, Function) or holds_tensor(value):
                return self._unknown(node, frame)
        return Object("regularizer")


_ROUNDS = 40


def check_arg_scopes(proof: Slim, home: Code, functions: Sequence[ast.AST]) -> None:
    """Report scopes of arguments that may be around all of a program, which its layers then would be given too.

    Args:
        proof: the run of the program.
        home: its file.
        functions: those around its tower loop.
    """
    if not proof.layered:
        return
    codes = proof.codes.closure(home.path)
    names = {str(getattr(one, "name", "")) for one in functions} | {"run"}
    growing = True
    while growing:  # who calls, or names, who builds the towers
        growing = False
        for code in codes:
            for made in code.definitions:
                if made.name not in names and names & _names_in(made):
                    names.add(made.name)
                    growing = True
    for code in codes:
        entered = {
            id(item.context_expr): node
            for node in code.nodes
            if isinstance(node, ast.With)
            for item in node.items
        }
        for node in code.nodes:
            if not isinstance(node, ast.Call) or id(node) in proof.arg_scopes:
                continue
            if last_name(node.func) not in ("arg_scope", "add_arg_scope"):
                continue
            block = entered.get(id(node))
            if block is None or any(names & _names_in(each) for each in block.body):
                proof.always(
                    "TM222", code, node,
                    f"what `{code.said(node)}` gives may hold for layers of the towers",
                )  # fmt: skip


def _names_in(node: ast.AST) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
