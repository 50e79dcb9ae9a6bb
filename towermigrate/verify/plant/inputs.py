"""Faults in what the towers read: the same rows for all, rows of others, rows left out, other data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.plant.source import Source, is_number


def faults(source: Source) -> Iterator[Fault]:
    for call in source.calls("shard_batch"):
        yield from _sharded(source, call)
    for old, new, said in (
        ("per_tower_batches", "same_batches", "every tower gets the same batch"),
        ("same_batches", "per_tower_batches", "every tower gets a batch of its own"),
    ):
        for call in source.calls(old):
            kind = "inputs: same batch for all" if new == "same_batches" else "inputs: not the same"
            function = source.code(call.func).replace(old, new)
            yield from source.fault(kind, said, call, source.replace(call.func, function))
    if not source.loop:
        yield from _parts(source)
        yield from _fed(source)
    for call in source.calls("RandomState"):
        # What stands in an initial value is another subject.
        inside = any("initializer" in source.code(each) for each in _around(source, call))
        if call.args and is_number(call.args[0]) and not inside:
            yield from source.fault(
                "inputs: other data",
                "the data is drawn with another seed",
                call,
                source.wrap(call.args[0], "", " + 100"),
            )


def _sharded(source: Source, call: ast.Call) -> Iterator[Fault]:
    towers = source.towers
    if not call.args or any(isinstance(each, ast.Starred) for each in call.args):
        return

    def each(kind: str, said: str, text: str, only: int | None = None) -> Iterator[Fault]:
        edits = [
            source.replace(value, f"(lambda rows: {text})(np.asarray({source.code(value)}))")
            for number, value in enumerate(call.args)
            if only in (None, number)
        ]
        yield from source.fault(kind, said, call, *edits)

    yield from each(
        "inputs: same batch for all",
        "every tower gets the rows of the first",
        f"np.concatenate([rows[:len(rows) // {towers}]] * {towers})",
    )
    yield from each("inputs: rows shifted", "all rows move on by one", "np.roll(rows, 1, axis=0)")
    yield from each(
        "inputs: rows of one input shifted",
        "the rows of the first input move on by one",
        "np.roll(rows, 1, axis=0)",
        only=0,
    )
    yield from each(
        "inputs: towers swapped",
        "the first tower gets the rows of the last",
        f"np.roll(rows, len(rows) // {towers}, axis=0)",
    )
    yield from each(
        "replica: rows of one reversed",
        "the rows of the last tower come in reverse",
        f"np.concatenate([rows[:-(len(rows) // {towers})], rows[-(len(rows) // {towers}):][::-1]])",
    )
    if not any(keyword.arg == "batch_size" for keyword in call.keywords):
        yield from each(
            "inputs: remainder dropped",
            f"the last {towers} rows are left out",
            f"rows[:-{towers}]",
        )


def _parts(source: Source) -> Iterator[Fault]:
    """`rows[i]` in the loop over the towers."""
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.For)
            and "towers(range(" in source.code(node.iter).replace(" ", "")
            and isinstance(node.target, ast.Name)
        ):
            picked = [
                each
                for each in ast.walk(node)
                if isinstance(each, ast.Subscript)
                and isinstance(each.slice, ast.Name)
                and each.slice.id == node.target.id
            ]
            if picked:
                index = node.target.id
                yield from source.fault(
                    "inputs: same batch for all",
                    "every tower gets the rows of the first",
                    picked[0],
                    *(source.replace(each.slice, "0") for each in picked),
                )
                yield from source.fault(
                    "inputs: towers swapped",
                    "the towers get each other's rows",
                    picked[0],
                    *(source.replace(each.slice, f"-1 - {index}") for each in picked),
                )


def _fed(source: Source) -> Iterator[Fault]:
    """A dictionary of what is fed."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Dict) or not node.values or None in node.keys:
            continue
        fed = isinstance(node.keys[0], (ast.Attribute, ast.Name)) and not isinstance(
            node.values[0], (ast.Lambda, ast.List)
        )
        if fed and "np" in source.text:
            yield from source.fault(
                "inputs: rows of one input shifted",
                "the rows of the first input move on by one",
                node,
                source.wrap(node.values[0], "np.roll(", ", 1, axis=0)"),
            )


def _around(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    for each in source.above(node):
        if isinstance(each, (ast.stmt, ast.Module)):
            function = source.function(node)
            if function is not None and len(function.body) < 4:
                yield function
            yield each
            return
