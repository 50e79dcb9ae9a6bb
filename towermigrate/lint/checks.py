"""The rules TM401 to TM410, asked where a value is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.flow import Call
from towermigrate.flow.values import Place, Value
from towermigrate.lint.noting import noting
from towermigrate.lint.values import (
    Gradients,
    LocalSum,
    Loss,
    LossObject,
    Part,
    Reduced,
    Tensor,
    Variables,
    unknown,
)


def applied(found: Call, gradients: Value | None) -> None:
    """TM401, TM402, TM408, TM409: a loss whose gradients an optimizer sums over the replicas."""
    if noting(found).mode != "replica" or not isinstance(gradients, Gradients):
        return
    switched_off = any(
        keyword.arg in ("experimental_aggregate_gradients", "skip_gradients_aggregation")
        for keyword in found.node.keywords
    )
    # Without the optimizer's own sum, the gradients must have been summed before; with both, it is not followed.
    if switched_off != gradients.reduced:
        return
    parts = gradients.loss.parts
    where = _there(gradients.place)
    for part in sorted(parts, key=lambda p: (p.place.path, p.place.line, p.place.column)):
        if part.form == "mean" and part.excess == 1:
            noting(found).report(
                "TM401", part.place,
                f"a mean over this replica's own values; its gradients ({where}) are summed over the replicas",
            )  # fmt: skip
        elif part.form == "tokens" and part.excess in (0, 1):
            noting(found).report(
                "TM402", part.place,
                f"divided by this replica's own count of tokens; its gradients ({where}) are summed over the "
                "replicas",
            )  # fmt: skip
        elif part.form == "regularizer" and part.excess == 1:
            if any(p.excess == 0 and p.form != "regularizer" for p in parts):
                noting(found).report(
                    "TM408", part.place,
                    f"every replica adds it to its share of the loss ({where}), so it counts once per replica",
                )  # fmt: skip
    twice_divided(found, gradients.loss)


def twice_divided(found: Call, loss: Value | None) -> None:
    if noting(found).mode != "replica" or not isinstance(loss, Loss):
        return
    for part in loss.parts:
        if part.excess < 0:
            noting(found).report(
                "TM409", part.place,
                f"already this replica's share, and divided by the number of replicas again before "
                f"{_there(found.place)}",
            )  # fmt: skip


def _there(place: Place) -> str:
    return f"line {place.line}"


def _is_share(parts: frozenset[Part]) -> bool:
    return any(part.excess <= 0 for part in parts)


def mean_of_shares(found: Call, value: Value) -> Value:
    """TM403. The finding is dropped if the result is multiplied by the number of replicas."""
    if not isinstance(value, Loss) or not _is_share(value.parts):
        return unknown()
    made = min(
        (part.place for part in value.parts if part.excess <= 0), key=lambda p: (p.path, p.line)
    )
    noting(found).report(
        "TM403", found.place,
        f"the mean over replicas of a loss that is each replica's share already ({_there(made)})",
    )  # fmt: skip
    return Reduced(found.place)


def all_variables(found: Call, sources: Value | None) -> None:
    """TM404."""
    if noting(found).mode == "replica" and isinstance(sources, Variables) and sources.all:
        trainable = re.sub(r"(variables|weights)$", r"trainable_\1", sources.text)
        noting(found).report(
            "TM404",
            found.place,
            f"`{sources.text}` has variables that are not trained: `{trainable}`",
        )


def mean_metric(found: Call) -> Value:
    """TM405."""
    value = found.get(0, "values")
    if noting(found).mode == "replica" and isinstance(value, Loss) and _is_share(value.parts):
        noting(found).report(
            "TM405", found.place,
            "a Mean over all replicas and steps is given this replica's share of the loss",
        )  # fmt: skip
    return unknown()


def keras_loss(found: Call, loss: LossObject) -> Value:
    """TM410, and what a Keras loss returns."""
    if loss.reduction == "sum":
        tensor = unknown()
        assert isinstance(tensor, Tensor)
        return LocalSum(tensor)
    if loss.reduction == "default" and noting(found).mode == "replica":
        noting(found).report(
            "TM410", found.place, f"`{loss.name}` reduces its result by itself in a replica"
        )
        return Loss(frozenset({Part("share", 0, found.place)}))
    return unknown()


def cross_replica(found: Call) -> None:
    """TM407."""
    func = found.node.func
    if noting(found).mode == "cross" and (found.args or found.keywords):
        assert isinstance(func, ast.Attribute)
        noting(found).report(
            "TM407",
            found.place,
            f"`{ast.unparse(func)}` is called in `strategy.scope()`, outside `strategy.run`",
        )


_OLD_RUN = ("experimental_run_v2", "experimental_run")


def old_runs(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """TM406: calls of `run` by its old names that no check of TensorFlow's version stands before."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, guarded = waiting.pop()
        match node:
            case ast.Call(func=ast.Attribute(attr=name, value=receiver)) if name in _OLD_RUN:
                strategy = re.search(r"strategy|distribution|mirrored", ast.unparse(receiver), re.I)
                if not guarded and (name == "experimental_run_v2" or strategy):
                    yield node, name
        below = guarded or _asks_version(node)
        waiting.extend((child, below) for child in ast.iter_child_nodes(node))


def _asks_version(node: ast.AST) -> bool:
    """An `if` or a `try` that has another branch for newer versions, which calls `run`."""
    if not isinstance(node, ast.If | ast.IfExp | ast.Try):
        return False
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == "run"
        or isinstance(n, ast.Name)
        and n.id in ("hasattr", "LooseVersion", "AttributeError")
        for n in ast.walk(node)
    )
