"""Faults in what variables begin with: spread, constants, seeds, another initializer, a restore that is left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, argument


def faults(source: Source) -> Iterator[Fault]:
    for call in source.calls(
        "truncated_normal_initializer", "random_normal_initializer", "RandomNormal"
    ):
        stddev = argument(call, 1, "stddev")
        edit = (
            source.add_argument(call, "stddev=0.9")
            if stddev is None
            else source.wrap(stddev, "(", ") * 1.1")
        )
        yield from source.fault("initial: stddev", "the spread is 10 % off", call, edit)
    for name, other in (
        ("zeros_initializer", "tf.compat.v1.constant_initializer(0.01)"),
        ("ones_initializer", "tf.compat.v1.constant_initializer(1.01)"),
    ):
        for call in source.calls(name):
            yield from source.fault(
                "initial: constant",
                f"{other} in place of {name}",
                call,
                source.replace(call, other),
            )
    for call in source.calls("constant_initializer"):
        if call.args:
            yield from source.fault(
                "initial: constant",
                "the constant is 0.01 more",
                call,
                source.wrap(call.args[0], "(", ") + 0.01"),
            )
    for call in source.calls("set_random_seed"):
        if call.args:
            yield from source.fault(
                "initial: seed of the graph",
                "the seed is one more",
                call,
                source.wrap(call.args[0], "(", ") + 1"),
            )
    for call in source.calls("truncated_normal_initializer", "random_normal_initializer"):
        seed = argument(call, 2, "seed")
        if seed is not None:
            yield from source.fault(
                "initial: seed of a variable",
                "the seed is one more",
                call,
                source.wrap(seed, "(", ") + 1"),
            )
    for call in source.calls("dense", "conv2d"):
        layers = source.code(call.func).endswith(("layers.dense", "layers.conv2d"))
        if layers and argument(call, 99, "kernel_initializer") is None:
            yield from source.fault(
                "initial: another initializer",
                "a normal one in place of the layer's uniform one",
                call,
                source.add_argument(
                    call, "kernel_initializer=tf.compat.v1.glorot_normal_initializer()"
                ),
            )
    for call in source.calls("restore"):
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and source.can_stand_beside(statement):
            yield from source.fault(
                "initial: restore dropped",
                "nothing is restored",
                call,
                source.replace(statement, "pass"),
            )
