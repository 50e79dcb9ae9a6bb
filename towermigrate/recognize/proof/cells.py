"""Run recurrent cells: objects of a tower that make their variables when they are called, and what calls them."""

from __future__ import annotations

from towermigrate.flow.values import Const, External, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.values import (
    NOTHING,
    Either,
    Items,
    Object,
    Plain,
    Setting,
    Tensor,
)

CELL = "cell"


def is_cell(value: Value | None) -> bool:
    """Whether a value is a cell that the tower has made, or one of several."""
    if isinstance(value, Either):
        return all(map(is_cell, value.values))
    return isinstance(value, Object) and value.kind == CELL


def made_of(name: str, args: Arguments) -> Object | None:
    """The cell that a call of a class makes; None where it is given what is not understood."""
    if name not in library.CELLS or args.starred:
        return None
    for value in args.all():
        for one in [each for each, _ in value.values] if isinstance(value, Items) else [value]:
            plain = isinstance(one, Const | Setting | Plain | Tensor | External)
            if not plain and not is_cell(one) and not _initializes(one):
                return None
    if "reuse" in args.named or "_reuse" in args.named:
        return None
    return Object(CELL, args.needs())


def _initializes(value: Value) -> bool:
    return isinstance(value, Object) and value.kind == "initializer"


def ran(name: str, args: Arguments) -> Items | None:
    """What a function gives that calls cells for each step: outputs and states; None where no cell is known."""
    forward = args.get(0, "cell" if "bidirectional" not in name else "cell_fw")
    cells = [forward]
    if "bidirectional" in name:
        cells.append(args.get(1, "cell_bw"))
    if not all(map(is_cell, cells)):
        return None
    needs = args.needs()

    def made() -> Value:
        return Tensor(needs, many=True)

    def pair() -> Value:
        return Items([(made(), True), (made(), True)], True, mutable=False)

    if name.endswith("bidirectional_dynamic_rnn"):
        return Items([(pair(), True), (pair(), True)], True, mutable=False)
    count = 3 if "bidirectional" in name else 2
    return Items([(made(), True) for _ in range(count)], True, mutable=False)


def of_method(function: Object, name: str, args: Arguments) -> Value | None:
    """What a method of a cell gives; None for one that is not understood."""
    if name == "zero_state" and not args.starred:
        return Tensor(NOTHING, many=True)
    return None
