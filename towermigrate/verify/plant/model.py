"""Faults in the model: batch norm, regularisers, dropout and noise, precision, the loss of one replica."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument, last_name, on_replica

_DRAWS = ("random_uniform", "random_normal", "truncated_normal")
_RANDOM = "tf.random."


def faults(source: Source) -> Iterator[Fault]:
    yield from _batch_norm(source)
    yield from _regularisers(source)
    yield from _chance(source)
    yield from _precision(source)
    yield from _losses(source)


def _batch_norm(source: Source) -> Iterator[Fault]:
    for call in source.calls("batch_normalization", "batch_norm"):
        for name in ("training", "is_training"):
            flag = argument(call, 99, name)
            if isinstance(flag, ast.Constant) and flag.value is True:
                yield from source.fault(
                    "batch norm: training flag",
                    "the moving averages are used in training",
                    call,
                    source.replace(flag, "False"),
                )
        for name in ("momentum", "decay"):
            momentum = argument(call, 99, name)
            if momentum is not None:
                yield from source.fault(
                    "batch norm: momentum",
                    f"the {name} is multiplied by 0.9",
                    call,
                    source.wrap(momentum, "(", ") * 0.9"),
                )
    for call in source.calls("get_collection"):
        if call.args and "UPDATE_OPS" in source.code(call.args[0]):
            yield from source.fault(
                "batch norm: updates dropped",
                "the moving averages are not updated",
                call,
                source.replace(call, "[]"),
            )


def _regularisers(source: Source) -> Iterator[Fault]:
    for call in source.calls("l2_loss"):
        for kind, said, factor in (
            (
                "regulariser: counted N times",
                "the weight decay counts once for each tower",
                f"{source.towers}.0",
            ),
            ("regulariser: left out", "the weight decay is left out", "0.0"),
        ):
            yield from source.fault(kind, said, call, source.wrap(call, f"({factor} * ", ")"))
        if source.loop and source.towers > 1:
            yield from source.fault(
                "regulariser: on the first tower only",
                "the weight decay is left out on all towers but the first",
                call,
                source.wrap(call, f"({on_replica(0, '1.0', '0.0')} * ", ")"),
            )


def _chance(source: Source) -> Iterator[Fault]:
    for call in source.calls("dropout"):
        rate = argument(call, 1, "rate") or argument(call, 1, "keep_prob")
        if rate is None:
            continue
        yield from source.fault(
            "dropout: rate",
            "the rate is multiplied by 0.9",
            call,
            source.wrap(rate, "(", ") * 0.9"),
        )
        yield from source.fault(
            "dropout: none",
            "nothing is dropped",
            call,
            source.replace(call, source.code(call.args[0])),
        )
    for call in source.calls(*_DRAWS, "uniform", "normal"):
        if last_name(call.func) not in _DRAWS and not source.code(call.func).startswith(_RANDOM):
            continue
        if source.loop and source.function(call) is None:
            continue
        yield from source.fault(
            "noise: size", "the noise is multiplied by 1.1", call, source.wrap(call, "(1.1 * ", ")")
        )
        yield from source.fault(
            "noise: drawn once more",
            "the noise is the sum of a half of two draws",
            call,
            source.replace(call, f"(0.5 * {source.code(call)} + 0.5 * {source.code(call)})"),
        )


def _precision(source: Source) -> Iterator[Fault]:
    for call in list(source.calls("matmul", "conv2d"))[:4]:
        if "layers" in source.code(call.func):
            kernel = "float16"
        else:
            kernel = "bfloat16"
        yield from source.fault(
            "precision: a layer",
            f"the layer's output is rounded to {kernel}",
            call,
            source.wrap(call, "tf.cast(tf.cast(", f", tf.{kernel}), tf.float32)"),
        )


def _losses(source: Source) -> Iterator[Fault]:
    """A loss that is a mean over examples: that of one replica, or in another precision."""
    for call in source.calls("reduce_mean"):
        # The mean of the towers' losses stands outside of the towers.
        if (
            len(call.args) != 1
            or "stack" in source.code(call.args[0])
            or "losses" in source.code(call)
        ):
            continue
        if source.function(call) is None:
            continue
        if source.towers > 1:
            yield from source.fault(
                "replica: loss of one scaled",
                "a mean over examples is multiplied by 1.05 on tower 1",
                call,
                source.wrap(call, f"({on_replica(1, '1.05', '1.0')} * ", ")"),
            )
        yield from source.fault(
            "precision: a mean",
            "a mean over examples is rounded to float16",
            call,
            source.wrap(call, "tf.cast(tf.cast(", ", tf.float16), tf.float32)"),
        )
        yield from source.fault(
            "loss: sum for mean",
            "a mean over examples is a sum",
            call,
            source.replace(call.func, source.code(call.func).replace("reduce_mean", "reduce_sum")),
        )
