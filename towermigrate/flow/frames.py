"""What is under way: the functions that were entered, the loops that they run, and how much may still be read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from towermigrate.flow.store import Changes
from towermigrate.flow.values import Cells, Function, Value


@dataclass(frozen=True)
class Limits:
    """How much is followed: enough for any real program, and an end for a hostile one.

    Args:
        steps: expressions and statements in all; then no call is entered and no loop unrolled.
        cells: cells of the state that are written, compared, joined or undone in all; then the same. A program of few
            statements may change much at each of many branches.
        calls: calls of functions in all.
        depth: calls inside of calls.
        recursion: how often a function may be entered while it runs.
        turns: turns of one loop that are run one by one.
        entries: entries of one list that are told apart.
    """

    steps: int = 400_000
    cells: int = 2_500_000
    calls: int = 20_000
    depth: int = 60
    recursion: int = 3
    turns: int = 64
    entries: int = 2000


@dataclass
class Loop:
    """A loop that is run: the ways that left a turn early, each with what it changed since `mark`."""

    mark: int
    breaks: list[Changes] = field(default_factory=list)
    continues: list[Changes] = field(default_factory=list)


@dataclass
class Frame:
    """A function that was entered: the ways that returned, each with what it changed since `mark`, and what it yields."""

    mark: int
    node: ast.AST | None = None
    returns: list[tuple[Changes, Value]] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    yielded: list[Value] = field(default_factory=list)
    branching: int = 0
    """How many branches stand around the statement that is run, each of which may not be taken."""
    left_early: bool = False
    """Whether some way has left the function, or a turn of a loop, before what stands behind."""
    function: Function | None = None
    cells: Cells | None = None
    """The function's own names."""
    many: bool = False
    """Whether it may yield another number of values than is in `yielded`."""
