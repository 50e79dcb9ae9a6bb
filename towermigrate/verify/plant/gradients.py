"""Faults in the averaged gradients: their size, towers that are lost, None, precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument, last_name, on_replica


def faults(source: Source) -> Iterator[Fault]:
    for call in applying(source):
        yield from _of_update(source, call)
    for call in source.calls("tower_gradients"):
        yield from _none(source, call)
    for call in _of_towers(source):
        if not source.loop or any(source.calls("apply_averaged")):
            yield from _one_tower(source, call, call)


def applying(source: Source) -> Iterator[ast.Call]:
    """The calls that apply gradients by an optimizer."""
    for call in source.calls("apply_gradients", "apply_averaged"):
        # An optimizer of the author's own hands on what it got: that is no update of its own.
        function = source.function(call)
        if pairs_of(call) is not None and (function is None or function.name != "apply_gradients"):
            yield call


def pairs_of(call: ast.Call) -> ast.expr | None:
    """The gradients and variables that are applied: `opt.apply_gradients(pairs)`, `apply_averaged(opt, pairs)`."""
    place = 1 if last_name(call.func) == "apply_averaged" else 0
    return call.args[place] if place < len(call.args) else None


def scaled(pairs: str, factor: str) -> str:
    """The pairs with every gradient times `factor`; sparse gradients stay sparse."""
    return f"[(g if g is None else tf.math.scalar_mul({factor}, g), v) for g, v in {pairs}]"


def _of_update(source: Source, call: ast.Call) -> Iterator[Fault]:
    pairs, towers = pairs_of(call), source.towers
    assert pairs is not None
    code = source.code(pairs)

    def times(kind: str, said: str, factor: str) -> Iterator[Fault]:
        yield from source.fault(kind, said, call, source.replace(pairs, scaled(code, factor)))

    yield from times(
        "gradient: sum for mean", f"the gradients are multiplied by {towers}", f"{towers}.0"
    )
    yield from times(
        "gradient: divided twice", f"the gradients are divided by {towers}", f"1.0 / {towers}"
    )
    yield from times("gradient: off by 2 %", "the gradients are multiplied by 1.02", "1.02")
    yield from source.fault(
        "gradient: one variable's",
        "the first variable's gradient is multiplied by 1.5",
        call,
        source.replace(
            pairs,
            "[(g if g is None or k else tf.math.scalar_mul(1.5, g), v) "
            f"for k, (g, v) in enumerate({code})]",
        ),
    )
    yield from source.fault(
        "precision: gradients in bfloat16",
        "the gradients are rounded to bfloat16",
        call,
        source.replace(
            pairs,
            "[(g if g is None else tf.cast(tf.cast(g, tf.bfloat16), v.dtype.base_dtype), v) "
            f"for g, v in {code}]",
        ),
    )
    step = argument(call, 99, "global_step")
    if step is not None:
        yield from times(
            "late: gradients after step 5",
            "from the global step 6 on, the gradients are multiplied by 1.5",
            f"tf.where(tf.cast({source.code(step)}, tf.int64) >= 6, 1.5, 1.0)",
        )
    if source.loop and last_name(call.func) == "apply_gradients":
        yield from _one_tower(source, call, pairs)


def _one_tower(source: Source, call: ast.Call, pairs: ast.expr) -> Iterator[Fault]:
    last, towers = source.towers - 1, source.towers
    if towers < 2:
        return
    # `tf.gradients` gives gradients, an optimizer pairs of them and their variables.
    plain = last_name(call.func) == "gradients"
    for kind, said, factor in (
        (
            "gradient: last tower for mean",
            "only the last tower's gradients count",
            on_replica(last, f"{towers}.0", "0.0"),
        ),
        (
            "replica: contribution lost",
            "the last tower's gradients are zero",
            on_replica(last, "0.0", "1.0"),
        ),
        (
            "replica: gradients of one scaled",
            "the gradients of tower 1 are multiplied by 1.05",
            on_replica(1, "1.05", "1.0"),
        ),
    ):
        code = source.code(pairs)
        text = (
            f"[g if g is None else tf.math.scalar_mul({factor}, g) for g in {code}]"
            if plain
            else scaled(code, factor)
        )
        yield from source.fault(kind, said, call, source.replace(pairs, text))


def _of_towers(source: Source) -> Iterator[ast.Call]:
    """The calls that compute a tower's gradients with respect to variables."""
    for call in source.calls("compute_gradients", "gradients"):
        what = argument(call, 1, "xs")
        if last_name(call.func) == "gradients" and (
            what is None or isinstance(what, ast.List) or "variables" not in source.code(what)
        ):
            continue
        yield call


def _none(source: Source, call: ast.Call) -> Iterator[Fault]:
    """The other way with None, where a stage that is for all variables may not reach some of them."""
    scope = argument(call, 2, "var_list")
    if scope is None or not source.code(scope).endswith("trainable()"):
        return
    if len(list(source.calls("tower_gradients"))) < 2:
        return
    policy = argument(call, 3, "none")
    skips = isinstance(policy, ast.Constant) and policy.value == "skip"
    other = '"zeros"' if skips else '"skip"'
    edit = (
        source.add_argument(call, f"none={other}")
        if policy is None
        else source.replace(policy, other)
    )
    said = "zeros are applied in place of None" if skips else "None is left out in place of zeros"
    yield from source.fault("gradient: None otherwise", said, call, edit)
