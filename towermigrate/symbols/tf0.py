"""TensorFlow 0.x: names that 1.0 renamed, and calls whose arguments it reordered.

Arguments that stand by position are given their names where they are (`tf.concat(1, parts)` becomes
`tf.concat(axis=1, values=parts)`), so nothing moves and a second run finds nothing to do. Where the old order is
not certain, a finding says so. Sources: the TensorFlow 1.0 migration guide and `tf_upgrade.py` of that release.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from towermigrate.symbols.bindings import Use
from towermigrate.symbols.edits import Edit
from towermigrate.symbols.tables import load_names, prefix_in
from towermigrate.symbols.work import Pass


@dataclass(frozen=True)
class Renamed:
    """Where a function went. A call may have `positional` arguments by position and keywords from `keywords`.

    `keywords` maps old to new names; None stands for any number, and for no keyword that changed.
    """

    new: str
    positional: int | None = None
    keywords: Mapping[str, str] = field(default_factory=dict)


_SUMMARY = {"tags": "name", "tag": "name", "values": "tensor", "collections": "collections"}
_SCALAR = Renamed("summary.scalar", 2, _SUMMARY)
_HISTOGRAM = Renamed("summary.histogram", 2, {**_SUMMARY, "values": "values"})
_IMAGE = Renamed("summary.image", 3, {**_SUMMARY, "tensor": "tensor", "max_images": "max_outputs"})
_AUDIO = Renamed("summary.audio", 4, {**_SUMMARY, "tensor": "tensor", "max_outputs": "max_outputs"})

RENAMED: dict[str, Renamed] = {
    **{
        old: Renamed(new)
        for old, new in {
            "concat_v2": "concat",
            "complex_abs": "abs",
            "image.per_image_whitening": "image.per_image_standardization",
            "inv": "reciprocal",
            "list_diff": "setdiff1d",
            "listdiff": "setdiff1d",
            "merge_all_summaries": "summary.merge_all",
            "merge_summary": "summary.merge",
            "mul": "multiply",
            "neg": "negative",
            "nn.bidirectional_rnn": "nn.static_bidirectional_rnn",
            "nn.rnn": "nn.static_rnn",
            "nn.state_saving_rnn": "nn.static_state_saving_rnn",
            "pack": "stack",
            "sub": "subtract",
            "train.SummaryWriter": "summary.FileWriter",
            "unpack": "unstack",
            "batch_cholesky": "cholesky",
            "batch_cholesky_solve": "cholesky_solve",
            "batch_fft": "fft",
            "batch_fft2d": "fft2d",
            "batch_fft3d": "fft3d",
            "batch_ifft": "ifft",
            "batch_ifft2d": "ifft2d",
            "batch_ifft3d": "ifft3d",
            "batch_matrix_band_part": "matrix_band_part",
            "batch_matrix_determinant": "matrix_determinant",
            "batch_matrix_diag": "matrix_diag",
            "batch_matrix_diag_part": "matrix_diag_part",
            "batch_matrix_inverse": "matrix_inverse",
            "batch_matrix_set_diag": "matrix_set_diag",
            "batch_matrix_solve": "matrix_solve",
            "batch_matrix_solve_ls": "matrix_solve_ls",
            "batch_matrix_transpose": "matrix_transpose",
            "batch_matrix_triangular_solve": "matrix_triangular_solve",
            "batch_self_adjoint_eig": "self_adjoint_eig",
            "batch_self_adjoint_eigvals": "self_adjoint_eigvals",
            "batch_svd": "svd",
        }.items()
    },
    "batch_matmul": Renamed(
        "matmul", 2, {"x": "a", "y": "b", "adj_x": "adjoint_a", "adj_y": "adjoint_b"}
    ),
    "select": Renamed("where", 3, {"condition": "condition", "t": "x", "e": "y", "name": "name"}),
    "scalar_summary": _SCALAR,
    "histogram_summary": _HISTOGRAM,
    "image_summary": _IMAGE,
    "audio_summary": _AUDIO,
    "contrib.deprecated.scalar_summary": _SCALAR,
    "contrib.deprecated.histogram_summary": _HISTOGRAM,
    "contrib.deprecated.image_summary": _IMAGE,
    "contrib.deprecated.audio_summary": _AUDIO,
    "contrib.deprecated.merge_summary": Renamed("summary.merge"),
    "contrib.deprecated.merge_all_summaries": Renamed("summary.merge_all"),
}
NAMES = frozenset(RENAMED)

_CONCAT = ("axis", "values", "name")
_SPLIT = ("axis", "num_or_size_splits", "value", "name")
_CROSS_ENTROPY = {
    "nn.softmax_cross_entropy_with_logits",
    "nn.sigmoid_cross_entropy_with_logits",
    "nn.sparse_softmax_cross_entropy_with_logits",
}
_OLD_KEYWORDS: dict[str, dict[str, str]] = {
    "concat": {"concat_dim": "axis"},
    "split": {"split_dim": "axis", "num_split": "num_or_size_splits"},
    "nn.sigmoid_cross_entropy_with_logits": {"targets": "labels"},
}
# Calls that 1.0 still accepts in the old order, with another meaning: a finding where the file is 0.x otherwise.
_SILENT = {
    "concat": (2, "which argument is the axis is not certain"),
    "split": (3, "which argument is the axis is not certain"),
    "nn.nce_loss": (4, "1.0 put the labels before the inputs"),
    "nn.sampled_softmax_loss": (4, "1.0 put the labels before the inputs"),
    "nn.weighted_cross_entropy_with_logits": (2, "1.0 put the targets before the logits"),
    "image.resize_images": (3, "1.0 takes the new size as one argument"),
}
ORDERED = _CROSS_ENTROPY | _OLD_KEYWORDS.keys() | _SILENT.keys()


def rename(work: Pass, use: Use, name: str) -> bool:
    """Change a use whose name is of 0.x only; False where it is no such name."""
    old = prefix_in(name, NAMES)
    if old is None:
        return False
    work.is_tf0 = True
    to = RENAMED[old]
    call = work.calls.get(id(use.chain)) if old == name else None
    if use.meaning != "tensorflow":
        problem = "is imported under a name of its own"
    elif to.positional is not None and call is None:
        problem = "is used without a call"
    else:
        problem = _why_not(to, call)
    if problem:
        work.find("TM118", use.chain, f"`tf.{old}` became `tf.{to.new}`; here it {problem}")
        return True
    begin = work.text.span(use.root)[1]
    end = work.text.span(use.links[old.count(".")])[1]
    new = ("compat.v1." if prefix_in(to.new, load_names().renamed) else "") + to.new
    if work.replace(begin, end, f".{new}", use.chain) and call is not None:
        _rename_keywords(work, call, to.keywords)
    work.uses_keras(to.new)
    return True


def _why_not(to: Renamed, call: ast.Call | None) -> str:
    if to.positional is None or call is None:
        return ""
    if len(call.args) > to.positional or any(isinstance(a, ast.Starred) for a in call.args):
        return "has arguments by position that changed their place"
    if any(keyword.arg not in to.keywords for keyword in call.keywords):
        return "has keyword arguments that changed their meaning"
    if to.new.startswith("summary.") and call.args and isinstance(call.args[0], ast.List):
        return "is given several tags"
    return ""


def order_arguments(work: Pass, name: str, call: ast.Call) -> None:
    """Give names to arguments of `call`, a call of `tf.<name>`, that stand in the order of 0.x."""
    if name not in ORDERED:
        return
    old_keywords = _OLD_KEYWORDS.get(name, {})
    used = {keyword.arg for keyword in call.keywords}
    by_keyword = bool(used & old_keywords.keys())
    if name in _CROSS_ENTROPY and call.args and _is_none(call.args[0]):
        _drop_sentinel(work, name, call)
        return
    if name in _CROSS_ENTROPY:
        names: tuple[str, ...] = ("logits", "labels")
        # From 1.0 on these calls took no argument by position but a None before all others.
        certain = bool(call.args) and not used & {"labels", "logits"}
    elif name in ("concat", "split"):
        names = _CONCAT if name == "concat" else _SPLIT
        certain = bool(call.args) and (_is_int(call.args[0]) or _values_second(name, call))
    else:
        names, certain = (), False
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if certain and (starred or len(call.args) > len(names)):
        work.find("TM118", call, f"the arguments of `tf.{name}` stand in the order of 0.x")
        return
    if certain:
        work.is_tf0 = True
        _name_arguments(work, name, call, names)
    elif name in _SILENT and not by_keyword and len(call.args) >= _SILENT[name][0]:
        work.doubtful.append((call, f"`tf.{name}` in a program of 0.x: {_SILENT[name][1]}"))
    if by_keyword:
        work.is_tf0 = True
        _rename_keywords(work, call, old_keywords)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _drop_sentinel(work: Pass, name: str, call: ast.Call) -> None:
    """Take away the None that stands for `_sentinel`, which not all of these have in TensorFlow 2; name what follows."""
    text = work.text.text
    start = work.text.span(call.args[0])[0]
    edits: list[Edit] = []
    for argument, keyword in zip(call.args[1:], ("labels", "logits", None, None), strict=False):
        at = work.text.span(argument)[0]
        between = r"None\s*,\s*" if not edits else r"[\s)]*,\s*"
        if keyword is None or not re.fullmatch(between, text[start:at]):
            work.find("TM118", call, f"the arguments of `tf.{name}` have no names")
            return
        edits.append(Edit(at if edits else start, at, f"{keyword}="))
        start = work.text.span(argument)[1]
    if not edits and call.keywords:
        first = call.keywords[0]
        end = work.text.offset(first.lineno, first.col_offset)
        if re.fullmatch(r"None\s*,\s*", text[start:end]):
            edits.append(Edit(start, end, ""))
    work.edits += edits


def _is_int(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _values_second(name: str, call: ast.Call) -> bool:
    """`tf.concat(axis, [a, b])`: from 1.0 on a list in the second place would be no axis."""
    lists = (ast.List, ast.Tuple, ast.ListComp)
    return (
        name == "concat"
        and len(call.args) > 1
        and isinstance(call.args[1], lists)
        and isinstance(call.args[0], ast.Name | ast.Attribute)
    )


def _name_arguments(work: Pass, name: str, call: ast.Call, names: tuple[str, ...]) -> None:
    previous = work.text.span(call.func)[1]
    edits: list[Edit] = []
    for index, argument in enumerate(call.args):
        start, end = work.text.span(argument)
        opening = r"\s*\(\s*" if index == 0 else r"[\s)]*,\s*"
        before = re.match(opening, work.text.text[previous:start])
        rest = work.text.text[previous + (before.end() if before else 0) : start]
        if before is None or rest.strip("( \t\r\n"):
            work.find("TM118", call, f"the arguments of `tf.{name}` stand in the order of 0.x")
            return
        at = previous + before.end()
        edits.append(Edit(at, at, f"{names[index]}="))
        previous = end
    work.edits += edits


def _rename_keywords(work: Pass, call: ast.Call, keywords: Mapping[str, str]) -> None:
    for keyword in call.keywords:
        if keyword.arg is not None and keywords.get(keyword.arg, keyword.arg) != keyword.arg:
            start = work.text.offset(keyword.lineno, keyword.col_offset)
            work.edits.append(Edit(start, start + len(keyword.arg), keywords[keyword.arg]))
