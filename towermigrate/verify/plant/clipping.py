"""Faults in clipping: none, another norm, each gradient by itself, before the mean in place of after it."""

from __future__ import annotations

from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument


def faults(source: Source) -> Iterator[Fault]:
    for call in source.calls("clip_by_global_norm"):
        listed, norm = argument(call, 0, "t_list"), argument(call, 1, "clip_norm")
        if listed is None or norm is None:
            continue
        what, size = source.code(listed), source.code(norm)
        yield from source.fault(
            "clipping: missing",
            "the gradients are not clipped",
            call,
            source.replace(call, f"(lambda parts: (parts, tf.linalg.global_norm(parts)))({what})"),
        )
        yield from source.fault(
            "clipping: other norm",
            "the gradients are clipped at half the norm",
            call,
            source.replace(norm, f"({size}) * 0.5"),
        )
        yield from source.fault(
            "clipping: each by itself",
            "each gradient is clipped by its own norm",
            call,
            source.replace(
                call,
                f"(lambda parts: ([tf.clip_by_norm(g, {size}) for g in parts], "
                f"tf.linalg.global_norm(parts)))({what})",
            ),
        )
        for computed in list(source.calls("compute_gradients"))[:1]:
            yield from source.fault(
                "clipping: before the mean",
                "each tower's gradients are clipped, and their mean is not",
                call,
                source.wrap(
                    computed,
                    f"(lambda pairs: list(zip(tf.clip_by_global_norm([g for g, _ in pairs], {size})[0], "
                    "[v for _, v in pairs])))(",
                    ")",
                ),
                source.replace(
                    call, f"(lambda parts: (parts, tf.linalg.global_norm(parts)))({what})"
                ),
            )
    for call in source.calls("clip_by_value"):
        if len(call.args) == 3:
            yield from source.fault(
                "clipping: other bounds",
                "values are clipped at nine tenths of the bounds",
                call,
                source.wrap(call.args[1], "(", ") * 0.9"),
                source.wrap(call.args[2], "(", ") * 0.9"),
            )
            yield from source.fault(
                "clipping: weights not clipped",
                "values are not clipped",
                call,
                source.replace(call, source.code(call.args[0])),
            )
