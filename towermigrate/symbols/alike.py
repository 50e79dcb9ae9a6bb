"""Calls that mean the same in TensorFlow 1 and 2, so that nothing need be written in them, or a shorter name may.

`tf.reduce_mean` of TensorFlow 2 is another function than that of TensorFlow 1: it has no `reduction_indices`. Called with
what both have, it makes the same operation of the same name. `names.txt` has what only goes by another name now:
`tf.log` is the very function that is `tf.math.log`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class _Alike:
    """What may be given to both functions: so many arguments by position, and these by name.

    `renamed` are names of TensorFlow 1 alone and what TensorFlow 2 calls the same argument. `fits` says whether the
    values are such that both mean the same, `now` is the name in TensorFlow 2 where that is another one.
    """

    places: int
    names: frozenset[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    fits: Callable[[ast.Call], bool] = lambda _: True
    now: str | None = None

    def holds(self, call: ast.Call) -> bool:
        if any(isinstance(each, ast.Starred) for each in call.args) or not self.fits(call):
            return False
        named = [self.renamed.get(each.arg or "", each.arg) for each in call.keywords]
        # One argument under both of its names is an error in TensorFlow 1 already.
        return (
            len(call.args) <= self.places
            and self.names.issuperset(named)
            and len(named) == len(set(named))
        )


def _of(
    places: int,
    names: str,
    renamed: str = "",
    fits: Callable[[ast.Call], bool] = lambda _: True,
    now: str | None = None,
) -> _Alike:
    pairs = (pair.partition(">") for pair in renamed.split())
    both = {old: new for old, _, new in pairs}
    return _Alike(places, frozenset(names.split()), both, fits, now)


def _texts(call: ast.Call) -> bool:
    return all(map(_is_text, [*call.args, *(keyword.value for keyword in call.keywords)]))


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a text whatever its names mean: `"tower_%d" % i`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _is_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "format" and _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _of_one_number(call: ast.Call) -> bool:
    """Whether a constant is one number, or has no shape: of several, TensorFlow 1 repeats the last to fill a shape."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if len(call.args) < 3 and "shape" not in named:
        return True
    value = call.args[0] if call.args else named.get("value")
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float))


def _moves_by_strides(call: ast.Call) -> bool:
    """Whether a convolution says its strides, which TensorFlow 1 may go without."""
    return len(call.args) > 2 or any(keyword.arg == "strides" for keyword in call.keywords)


_REDUCTION = _of(2, "input_tensor axis keepdims name", "keep_dims>keepdims reduction_indices>axis")
_SOFTMAX = _of(2, "logits axis name", "dim>axis")
_CONVOLUTION = "input filters strides padding data_format dilations name"

ALIKE: dict[str, _Alike] = {
    **{f"{module}reduce_{each}": _REDUCTION for module in ("", "math.") for each in "all any logsumexp max mean min prod sum".split()},
    **{f"{module}{each}": _of(2, "axis output_type name", "dimension>axis") for module in ("", "math.") for each in ("argmax", "argmin")},
    **{f"nn.{each}": _SOFTMAX for each in ("softmax", "log_softmax")},
    **{f"gfile.{old}": _of(1, "", now=f"io.gfile.{new}") for old, new in {
        "DeleteRecursively": "rmtree", "Exists": "exists", "Glob": "glob", "IsDirectory": "isdir", "ListDirectory": "listdir",
        "MakeDirs": "makedirs", "MkDir": "mkdir", "Remove": "remove", "Stat": "stat",
    }.items()},
    **{f"gfile.{old}": _of(3, "overwrite", now=f"io.gfile.{new}") for old, new in (("Copy", "copy"), ("Rename", "rename"))},
    "boolean_mask": _of(2, "tensor mask axis name"),
    "constant": _of(3, "value dtype shape name", fits=_of_one_number),
    "convert_to_tensor": _of(2, "value dtype name"),
    "device": _of(1, "", fits=_texts),  # TensorFlow 2 takes no function, and no None
    "expand_dims": _of(2, "input axis name", "dim>axis"),
    "name_scope": _of(1, "name", fits=_texts),  # of None, TensorFlow 2 makes no scope
    "gather": _of(2, "params indices axis batch_dims name"),
    "nn.conv2d": _of(4, _CONVOLUTION, "filter>filters", _moves_by_strides),
    "nn.moments": _of(2, "x axes shift keepdims name", "keep_dims>keepdims"),
    "nn.sigmoid_cross_entropy_with_logits": _of(0, "labels logits name"),
    "nn.sparse_softmax_cross_entropy_with_logits": _of(0, "labels logits name"),
    "norm": _of(3, "tensor ord axis keepdims name", "keep_dims>keepdims"),
    "pad": _of(3, "tensor paddings mode constant_values name"),
    "shape": _of(1, "input out_type name"),
    "size": _of(1, "input out_type name"),
    "squeeze": _of(2, "input axis name", "squeeze_dims>axis"),
    "transpose": _of(2, "a perm conjugate name"),
    "zeros_like": _of(2, "dtype name"),  # that of ones makes other operations
    "where": _of(1, "condition name"),  # with values, TensorFlow 1 does not broadcast
}  # fmt: skip
"""Names without `tf.`. A call that gives more, or gives it otherwise, stays one of `tf.compat.v1`."""


def alike(name: str, call: ast.Call | None) -> _Alike | None:
    """What `tf.<name>`, called so, is in both; None where it is not the same, as of a function that is handed on."""
    found = ALIKE.get(name)
    return found if found is not None and call is not None and found.holds(call) else None
