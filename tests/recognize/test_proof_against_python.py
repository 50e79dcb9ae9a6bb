"""The proof looks wherever Python comes: random programs are run by both, and no draw that Python makes may be missed."""

from __future__ import annotations

import ast
import random
import sys
from typing import Any

import pytest

from tests.recognize.containers import program
from towermigrate.recognize.proof.code import Codes
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import OutOfSteps
from towermigrate.recognize.proof.statements import Statements
from towermigrate.recognize.proof.values import Setting
from towermigrate.recognize.source import Tree


def looked_at(text: str) -> tuple[set[int], set[str]]:
    """The lines of the draws of `moved` that the proof comes to, and what else it has to say of it."""
    codes = Codes(Tree({"p.py": text}))
    code = codes.code("p.py")
    assert code is not None
    machine = Statements(codes)
    machine.home = code
    around = next(n for n in code.definitions if n.name == "program")
    moved = next(n for n in code.definitions if n.name == "moved")
    scope = Frame.of(code, around, machine.module(code), moved=False)
    scope.names |= {"p": Setting(plain=True), "q": Setting(plain=True)}
    machine.scope = scope
    frame = Frame.of(code, moved, scope, moved=True)
    frame.names |= {"p": Setting(plain=True), "q": Setting(plain=True)}
    try:
        for statement in around.body[:-1]:
            machine.statement(statement, scope)
        with machine.mode(True):
            machine.block(moved.body, frame)
    except OutOfSteps:
        return set(), {"too large"}
    found = machine.findings.values()
    draws = {each.line for each in found if "`random.random` is drawn anew" in each.message}
    return draws, {each.message for each in found if "`random.random` is drawn" not in each.message}


def drawn(text: str, seed: int) -> set[int]:
    """The lines of the draws of `moved` that Python makes for some arguments."""
    found: set[int] = set()
    tree = ast.parse(text)
    moved = next(n for n in ast.walk(tree) if getattr(n, "name", "") == "moved")

    def note() -> float:
        line = sys._getframe(1).f_lineno
        if moved.lineno <= line <= (moved.end_lineno or 0):  # type: ignore[attr-defined]
            found.add(line)
        return 0.5

    steps = 0

    def bound(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > 3000 or any(
            isinstance(v, list) and len(v) > 500 for v in frame.f_locals.values()
        ):
            raise OverflowError
        return bound

    names: dict[str, Any] = {}
    chance = random.Random(seed)
    real, random.random = random.random, note
    tracing = sys.gettrace()
    sys.settrace(bound)
    try:
        exec(compile(text, "p.py", "exec"), names)
        names["program"](chance.choice([0, 1, 2]), chance.choice([0, 1]))
    except (Exception, RecursionError):  # a program may fail: what it drew before counts
        pass
    finally:
        sys.settrace(tracing)
        random.random = real
    return found


def missed(seed: int) -> tuple[set[int], bool]:
    """The draws of a program that the proof does not come to, and whether it understands the program."""
    text = program(seed)
    seen, others = looked_at(text)
    if others:  # the program is refused, whatever stands elsewhere in it
        return set(), False
    return set().union(*(drawn(text, each) for each in range(6))) - seen, True


@pytest.mark.parametrize("first", range(0, 600, 200))
def test_the_proof_comes_wherever_python_does(first: int) -> None:
    found = {seed: missed(seed)[0] for seed in range(first, first + 200)}
    assert {seed: lines for seed, lines in found.items() if lines} == {}


@pytest.mark.full
@pytest.mark.parametrize("first", range(10_000, 60_000, 5000))
def test_the_proof_comes_wherever_python_does_in_many_programs(first: int) -> None:
    found = {seed: missed(seed)[0] for seed in range(first, first + 5000)}
    assert {seed: lines for seed, lines in found.items() if lines} == {}


def test_many_programs_are_understood() -> None:
    """A proof that refuses everything misses nothing."""
    assert sum(missed(seed)[1] for seed in range(100)) > 60
