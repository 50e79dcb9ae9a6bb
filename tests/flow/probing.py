"""What the interpreter says of a program against what Python does: calls of `show` are noted on both sides.

A program may call `show(value)`, `flip()` (true or false, nobody knows which) and `opaque(values…)`, a library's
function that is not followed.
"""

from __future__ import annotations

import random
import sys
import types
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from towermigrate.flow import Call, Domain, Interpreter
from towermigrate.flow.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Many,
    Row,
    Table,
    Value,
    read,
)

HEAD = "from probe import flip, opaque, show\n"


class Anything:
    """A part of which nothing is claimed."""

    def __repr__(self) -> str:
        return "?"


ANYTHING = Anything()


class ListOf:
    """A list of unknown length, each entry of which is like `entry`."""

    def __init__(self, entry: Any) -> None:
        self.entry = entry

    def __repr__(self) -> str:
        return f"[{self.entry!r}...]"


class Probe(Domain):
    """Notes what is shown, by line."""

    def __init__(self) -> None:
        self.shown: dict[int, list[Any]] = defaultdict(list)

    def function(self, call: Call) -> Value | None:
        if call.name == "probe.show":
            self.note(call.node.lineno, call.args[0] if call.args else None)
            return Const(None)
        if call.name == "probe.flip":
            return call.unknown("a coin")
        return None

    def note(self, line: int, value: Value | None) -> None:
        noted = self.shown[line]
        if not any(each is ANYTHING for each in noted):
            noted.append(ANYTHING if value is None or len(noted) > _MOST else claim(value))


_MOST = 500
"""A line that is shown more often claims nothing."""


def claim(value: Value) -> Any:
    """What is claimed of a value, as Python's own with `ANYTHING` in it."""
    return _claim(value, 6, [_LARGEST])


def _claim(value: Value, depth: int, left: list[int]) -> Any:
    """Lists of lists that are one list may be huge when they are written out: of what is past `left` nothing is claimed."""
    left[0] -= 1
    if depth == 0 or left[0] < 0:
        return ANYTHING
    match value:
        case Const():
            return value.value
        case Items() if value.wild:
            return ANYTHING
        case Items(held=Row(entries=entries), kind="list"):
            return [_claim(each, depth - 1, left) for each in entries]
        case Items(held=Row(entries=entries), kind="tuple"):
            return tuple(_claim(each, depth - 1, left) for each in entries)
        case Items(held=Many(entry=entry), kind="list"):
            return ListOf(ANYTHING if entry is None else _claim(entry, depth - 1, left))
        case Table() if value.ordered and not value.wild:
            return {key: _claim(read(each), depth - 1, left) for key, each in value.known()}
        case Function() | Class() | Instance():
            return ANYTHING
    return ANYTHING


def covers(claimed: Any, real: Any) -> bool:
    """Whether what Python has is among what is claimed."""
    if claimed is ANYTHING:
        return True
    if isinstance(claimed, ListOf):
        return isinstance(real, list) and all(covers(claimed.entry, each) for each in real)
    if type(claimed) is not type(real):
        return False
    if isinstance(claimed, list | tuple):
        return len(claimed) == len(real) and all(map(covers, claimed, real))
    if isinstance(claimed, dict):
        return list(claimed) == list(real) and all(covers(claimed[k], real[k]) for k in claimed)
    return repr(claimed) == repr(real)


def interpreted(*texts: str, **others: str) -> dict[int, list[Any]]:
    """What the interpreter shows of a program, by line. Past its limits it need not know that a line is reached."""
    probe = Probe()
    files = {"main.py": HEAD + "".join(texts), **{f"{k}.py": v for k, v in others.items()}}
    interpreter = Interpreter(files, probe)
    interpreter.module("main.py", main=True)
    if interpreter.exhausted:
        return defaultdict(lambda: [ANYTHING], probe.shown)
    return dict(probe.shown)


def run(text: str, seed: int) -> dict[int, list[Any]]:
    """What Python shows of a program, by line, for one way that the coins fall."""
    found: dict[int, list[Any]] = defaultdict(list)
    coins = random.Random(seed)
    steps = [0]
    parts = [0]

    def show(value: Any) -> None:
        # Lists of lists that are one list may be huge when they are written out, and shown again and again.
        parts[0] += _size(value)
        if parts[0] > 10 * _LARGEST:
            raise TooLong
        found[sys._getframe(1).f_lineno].append(_copy(value))

    def flip() -> bool:
        return coins.random() < 0.5

    def opaque(*values: Any) -> Any:
        """Changes what it is given, and gives back some of it."""
        for value in values:
            if isinstance(value, list):
                value.append(coins.randint(50, 99))
            elif isinstance(value, dict):
                value["opaque"] = coins.randint(50, 99)
            elif hasattr(value, "__dict__") and not callable(value):
                value.x = coins.randint(50, 99)
        return coins.choice([*values, 7]) if values else 7

    class TooLong(BaseException):
        """No program may catch it."""

    def tick(frame: Any, event: str, arg: Any) -> Any:
        steps[0] += 1
        if steps[0] > 20_000 or _grown(frame.f_locals) or _grown(frame.f_globals):
            raise TooLong
        return tick

    module = types.ModuleType("probe")
    module.__dict__.update(show=show, flip=flip, opaque=opaque)
    before = sys.modules.get("probe")
    sys.modules["probe"] = module
    tracing = sys.gettrace()
    sys.settrace(tick)
    try:
        exec(compile(HEAD + text, "main.py", "exec"), {"__name__": "__main__"})
    except (Exception, TooLong):  # a program may fail: what it showed before counts
        pass
    finally:
        sys.settrace(tracing)
        if before is None:
            del sys.modules["probe"]
        else:
            sys.modules["probe"] = before
    return found


_LARGEST = 2000


def _grown(names: Mapping[str, object]) -> bool:
    """Whether a name holds a list that a loop makes longer and longer."""
    return any(isinstance(each, list) and len(each) > _LARGEST for each in names.values())


def _size(value: Any, depth: int = 6) -> int:
    """How many parts a value has as it is written out; more than `_LARGEST` are not counted."""
    if depth == 0 or not isinstance(value, list | tuple | dict):
        return 1
    found = 1
    for each in value.values() if isinstance(value, dict) else value:
        found += _size(each, depth - 1)
        if found > _LARGEST:
            break
    return found


def _copy(value: Any, depth: int = 6) -> Any:
    if depth == 0:
        return ANYTHING
    if isinstance(value, list):
        return [_copy(each, depth - 1) for each in value]
    if isinstance(value, tuple):
        return tuple(_copy(each, depth - 1) for each in value)
    if isinstance(value, dict):
        return {key: _copy(each, depth - 1) for key, each in value.items()}
    return value


def wrong(text: str, runs: int = 6) -> list[str]:
    """Where Python showed what the interpreter says cannot be."""
    claimed = interpreted(text)
    found: list[str] = []
    for seed in range(runs):
        for line, values in run(text, seed).items():
            try:
                claims = claimed[line]
            except KeyError:
                claims = []
            for value in values:
                if not any(covers(each, value) for each in claims):
                    found.append(f"line {line}: {value!r} of {claims or 'never run'!r}")
    return found


def known(text: str) -> tuple[int, int]:
    """How many shows of a program are known whole, and of how many."""
    claimed = interpreted(text)
    whole = sum(len(values) == 1 and "?" not in repr(values) for values in claimed.values())
    return whole, len(claimed)
