"""Compare lines of text: words exactly, numbers as closely as their digits tell, but for what the original leaves open.

The measure are the original's own two runs: a number that differs between them is not compared, one that they have alike is.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

# Free-running programs drift apart by roundings, and what they print is rounded itself: a number may be off by
# this part of it at most, and by less where the arrays of training are nearer. Whether they train alike was compared more
# closely before.
PRINTED = 1e-3
# Where kernels round otherwise at every step, what is made of excused variables may be off by so much: a bias that is next
# to nothing is off by more.
MOST_PRINTED = 0.1
# How far apart, in parts of their sizes, numbers of programs are at least taken to be that round alike.
LEAST_DRIFT = 1e-6
# A date so many days from that of a run may be the run's, in another zone or over midnight.
_NEAR_DAYS = 2
# Numbers with fewer digits that are the same twice may be durations that happened to be near.
_DIGITS = 4
# A place whose numbers change this often from line to line and are the same in both originals shows no duration.
_SETTLED = 3
# So many numbers flipping in their last digit are chance in one of so many programs, and not more.
_CHANCE = 1e-3
# Where so many are expected, chance keeps within four of their standard deviations.
_MANY = 500
# As many flips that all go one way are no roundings.
_ONE_WAY = 8
# So many different numbers that end in other places than another program's do so as they are asked to: of one in ten each, by chance.
_ENOUGH = 4
# More digits behind the point than this are not asked for.
_ASKED = 6
# Where roundings are excused that numbers are made of, they may go so many times as far as the original's own do when its
# weights move by roundings: as far as arrays may that are excused.
MOVED = 4.0

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)?|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# One of another length, as of a checksum, is a number of the program's.
_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]+\b|\b0x[0-9a-fA-F]{9,15}\b")
# Lines of an array: what one is indented by depends on numbers of others.
_OF_ARRAY = re.compile(r"[\[\]]|^\s+[-+\d.]")
_NUMPY_2 = re.compile(r"\bnp\.\w+\(([^()]*)\)")
# Units may stand right behind a number: `0.0123s`, `12ms/step`, `10k`.
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?(?=[A-Za-z]{0,7}\b)|(?:nan|inf)(?!\w))"
)
# Log lines say where they were written; a rewritten file has other line numbers.
_PLACE = re.compile(r"(\.py\"?(?:, line |:))\d+")

_UNITS = r"(?:[mun]?s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)"
_PER = r"(?:[mun]?s|secs?|seconds?|min|minutes?|h|hours?)"
# `0.5 s`, `3 min`, `0.2 sec/batch`, `560 examples/sec`, `12 steps per second`; not the name of what follows (`0.5 min 0.1`).
_UNIT_OF_TIME = re.compile(
    rf"\s*(?:{_UNITS}(?:\s?(?:/|per)\s?\w+)?|\w+\s?(?:/|per )\s?{_PER})\b(?!\s*[:=]?\s*[-+.]?\d)",
    re.I,
)
_DURATION = re.compile(
    r"\s*(s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b(?!\s*/|\s?per\b)", re.I
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# One run of a program may be as many times as long as another.
_LONGER = 3.0
# `took 3`, `Elapsed time: 3`, `time (s) = 3`, `sec/batch: 0.2`, `time per step: 0.2`
_OF_TIME = re.compile(
    rf"\b(?:time|took|takes|elapsed|duration|speed|secs?|seconds)\b(?:\s?(?:/|per )\s?\w+)?"
    rf"(?:\s+(?:taken|used|spent|elapsed|is|was|of|so far|left))?\s*(?:[(\[]\s*{_UNITS}\s*[)\]])?\s*[:=]?\s*$",
    re.I,
)  # fmt: skip


class Unlike(NamedTuple):
    """The first place where lines differ: the number of the line from 1, and both."""

    line: int
    expected: str
    actual: str


def cut(expected: str, actual: str, most: int = 200) -> tuple[str, str]:
    """Two lines, long ones from a bit before the place where they first differ."""
    if max(len(expected), len(actual)) <= most:
        return expected, actual
    at = len(os.path.commonprefix([expected, actual]))
    begin = max(0, at - most // 4)
    one, other = (
        ("…" if begin else "")
        + each[begin : begin + most]
        + ("…" if len(each) > begin + most else "")
        for each in (expected, actual)
    )
    return one, other


def normalised(line: str, day: date | None = None) -> str:
    """A line without what is another one in each run or version: times, addresses, line numbers, NumPy's types.

    `day` is that of the run, where it is known: other dates are the program's own.
    """
    # NumPy 2 says the types of the numbers in a list, NumPy 1 does not.
    line = _NUMPY_2.sub(r"\1", line)
    return _PLACE.sub(
        r"\1#", _ADDRESS.sub("0x", _TIME.sub(lambda match: _without_time(match, day), line))
    )


def _without_time(match: re.Match[str], day: date | None) -> str:
    dated = _DATE.match(match.group())
    if dated is None or day is None:
        return "TIME"
    try:
        days = abs((date.fromisoformat(dated.group()) - day).days)
    except ValueError:  # no day of the calendar
        return match.group()
    return "TIME" if days <= _NEAR_DAYS else match.group()


def words(line: str) -> str:
    """A line without its numbers, and without the spaces that arrays are padded with.

    Tabs part columns, and what a word is indented by may be what it belongs to.
    """
    indent = len(line) - len(line.lstrip(" "))
    begins = line[indent : indent + 1].isalpha() or line[indent : indent + 2] == "- "
    return (" " * indent if begins else "") + re.sub(
        r"[^\S\t]+", "", _NUMBER.sub("#", line)
    ).rstrip()


def same_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two runs have the same lines but for numbers."""
    return [words(line) for line in first] == [words(line) for line in second]


def open_lines(first: Sequence[str], second: Sequence[str]) -> set[int] | None:
    """The places of lines that have other words in a second run; None where most have, or it has more lines or fewer."""
    if len(first) != len(second):
        return None
    pairs = zip(first, second, strict=True)
    found = {place for place, (one, other) in enumerate(pairs) if words(one) != words(other)}
    return found if 2 * len(found) < len(first) or not found else None


def without(lines: Sequence[str], places: set[int]) -> list[str]:
    """Lines, but for some, which are empty."""
    return ["" if place in places else line for place, line in enumerate(lines)]


def unlike(
    wanted: Sequence[str],
    again: Sequence[str],
    made: Sequence[str],
    *,
    within: float | None,
    drift: float,
    moved: Sequence[Sequence[str]] = (),
    clock: float = math.inf,
) -> Unlike | None:
    """The first line of a program that is not the original's; None where all are.

    Args:
        wanted: the original's lines.
        again: those of its second run, with the same words.
        made: the rewritten program's.
        within: how far numbers may be off, relative to them; None where roundings are excused that they are made of.
        moved: the original's lines when its weights moved, which then say how far each number may be off; where there
            are none, or they have other words, only words are compared. With the most that `within` can be, they
            say of which numbers it is not enough.
        drift: how far apart the two programs' numbers really are, relative to them, so that it is known how often a
            last digit may flip.
        clock: how long the program ran (seconds), 0 where it never asks how late it is: no duration of it is longer.
    """
    numbers = _Numbers(wanted, again, within, drift, comparable(wanted, moved), clock)
    for place, line in enumerate(wanted):
        if place >= len(made):
            return Unlike(place + 1, line, "nothing")
        if words(line) != words(made[place]) or not numbers.alike(place, line, made[place]):
            return Unlike(place + 1, line, made[place])
        if line == again[place] and _is_spaced_otherwise(line, made[place]):
            return Unlike(place + 1, repr(line), repr(made[place]))
    if len(made) > len(wanted):
        return Unlike(len(wanted) + 1, "nothing", made[len(wanted)])
    written = _written_otherwise(wanted, again, made)
    if written is not None:
        return Unlike(written + 1, wanted[written], made[written])
    flipped = numbers.flipped_too_often()
    return None if flipped is None else Unlike(flipped + 1, wanted[flipped], made[flipped])


def _is_spaced_otherwise(wanted: str, made: str) -> bool:
    """Whether lines of the same words and the very same numbers have other spaces between them."""
    if wanted.rstrip() == made.rstrip() or _OF_ARRAY.search(wanted):
        return False
    return _NUMBER.findall(wanted) == _NUMBER.findall(made)


def _written_otherwise(
    wanted: Sequence[str], again: Sequence[str], made: Sequence[str]
) -> int | None:
    """The first line whose numbers are written in another way: a count as a fraction, or more or fewer digits.

    Roundings change digits, not how many are asked for: where all numbers of a place are written with as many, or enough of
    them with the most of few, so are those of another program.
    """
    places: dict[tuple[str, int], list[tuple[int, str, str]]] = {}
    for line, (one, two, other) in enumerate(zip(wanted, again, made, strict=True)):
        numbers = (_NUMBER.findall(each) for each in (one, two, other))
        for place, (theirs, again_, ours) in enumerate(zip(*numbers, strict=True)):
            if theirs == again_:
                places.setdefault((words(one), place), []).append((line, theirs, ours))
    for found in places.values():
        for line, theirs, ours in found:
            counts = [each.lstrip("+-").isdigit() for each in (theirs, ours)]
            if counts[0] != counts[1] and float(theirs) == float(ours):
                return line
        if _other_digits([each[1] for each in found], [each[2] for each in found]):
            return next(line for line, one, other in found if _decimals(one) != _decimals(other))
    return None


def _other_digits(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Whether one of two programs writes the numbers of a place with more digits behind the point than the other."""
    digits = [[_decimals(each) for each in numbers] for numbers in (theirs, ours)]
    most = [max(each) for each in digits]
    if most[0] == most[1] or len(theirs) < _ENOUGH or min(most) < 1:
        return False
    scientific = all("e" in each.lower() for each in (*theirs, *ours))
    if max(most) > _ASKED and not scientific:
        return False  # as many as tell the number from its neighbours
    longer = theirs if most[0] > most[1] else ours
    return len({each for each in longer if _decimals(each) == max(most)}) >= _ENOUGH


def _decimals(number: str) -> int:
    return len(number.lower().partition("e")[0].partition(".")[2])


@dataclass
class _Numbers:
    """The numbers of one text: which are open, and in how many the last digit flipped."""

    wanted: Sequence[str]
    again: Sequence[str]
    within: float | None
    drift: float
    moved: Sequence[Sequence[str]] = ()
    clock: float = math.inf
    flips: list[tuple[int, float]] = field(default_factory=list)
    expected: float = 0.0

    def __post_init__(self) -> None:
        self.open_places = _open_places(self.wanted, self.again)
        self.settled = _settled_places(self.wanted, self.open_places)

    def alike(self, line: int, wanted: str, made: str) -> bool:
        """Whether the numbers of a line with the same words are alike, but for last digits, which are counted."""
        if self.within is None and not self.moved:
            return True
        pairs = zip(_NUMBER.finditer(wanted), _NUMBER.findall(made), strict=True)
        for place, (match, other) in enumerate(pairs):
            at = words(wanted), place
            if at in self.open_places or (
                at not in self.settled and _is_of_time(wanted, match, self.clock)
            ):
                continue
            theirs = [_NUMBER.findall(lines[line])[place] for lines in self.moved]
            if self.within is not None and self._alike(line, match.group(), other):
                continue
            if self.within is not None and not (theirs and self.within >= MOST_PRINTED):
                return False
            if not _as_far(match.group(), other, theirs):
                return False
        return True

    def _alike(self, line: int, expected: str, actual: str) -> bool:
        assert self.within is not None
        if not _exact(expected, actual):
            unit, size = min(_last_digit(expected), _last_digit(actual)), abs(float(expected))
            if unit > self.within * size:  # else it is one that may be off by as much anyway
                self.expected += min(1.0, self.drift * size / unit)
        if expected == actual:
            return True
        if not alike(expected, actual, self.within):
            return False
        one, other = float(expected), float(actual)
        if abs(one - other) > self.within * max(abs(one), abs(other)):
            self.flips.append((line, other - one))
        return True

    def flipped_too_often(self) -> int | None:
        """The line of the first number that is off by one in its last digit, where more are than roundings flip.

        A number that is off by a part d of it shows another last digit in `d * number / unit` of all cases.
        """
        if too_many_flips([off for _, off in self.flips], self.expected):
            return self.flips[0][0]
        return None


def too_many_flips(flips: Sequence[float], expected: float) -> bool:
    """Whether more numbers flip in their last digit, or more of them one way, than roundings make of so many."""
    one_way = len({math.copysign(1.0, off) for off in flips}) == 1
    return (
        len(flips) >= _ONE_WAY
        and one_way
        or bool(flips)
        and _at_least(len(flips), expected) < _CHANCE
    )


def _at_least(count: int, mean: float) -> float:
    """The chance of `count` or more events where `mean` are expected (Poisson)."""
    if mean > _MANY:
        return 1.0 if count <= mean + 4 * math.sqrt(mean) else 0.0
    term, below = math.exp(-mean), 0.0
    for k in range(count):
        below += term
        term *= mean / (k + 1)
    # The first term that is left is all that counts where the sum is 1 but for roundings.
    return max(1.0 - below, term)


def _is_of_time(line: str, match: re.Match[str], clock: float) -> bool:
    """Whether a number is a duration or a speed by its unit, which two runs may have alike by chance."""
    number = match.group()
    if _digits(number) >= _DIGITS or number.startswith("-") or not clock:
        return False
    unit = _DURATION.match(line, match.end())
    if unit is not None and float(number) * _SECONDS[unit.group(1)[0].lower()] > _LONGER * clock:
        return False
    return bool(_UNIT_OF_TIME.match(line, match.end()) or _OF_TIME.search(line, 0, match.start()))


def _open_places(wanted: Iterable[str], again: Iterable[str]) -> set[tuple[str, int]]:
    """Where two originals print other numbers: the words of a line, and the number's place in it.

    A duration may be the same twice, so one line of a kind speaks for all of them.
    """
    found = set()
    for one, two in zip(wanted, again, strict=True):
        numbers = zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=True)
        for place, (number, other) in enumerate(numbers):
            few = number != other and _digits(number) < _DIGITS
            if few or not alike(number, other):
                found.add((words(one), place))
    return found


def _settled_places(
    wanted: Iterable[str], open_places: set[tuple[str, int]]
) -> set[tuple[str, int]]:
    """Where the numbers change from line to line, and each is the same in both originals: chance does not do that."""
    seen: dict[tuple[str, int], set[str]] = {}
    for line in wanted:
        for place, number in enumerate(_NUMBER.findall(line)):
            seen.setdefault((words(line), place), set()).add(number)
    return {
        place
        for place, values in seen.items()
        if len(values) >= _SETTLED and place not in open_places
    }


def comparable(wanted: Sequence[str], moved: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """What the original printed when its weights moved; nothing where it then printed other lines."""
    return moved if all(same_words(wanted, lines) for lines in moved) else ()


def _as_far(expected: str, actual: str, moved: Sequence[str]) -> bool:
    """Whether a number is as near as the original's own are when its weights move."""
    if expected == actual:
        return True
    numbers = [float(expected), float(actual), *map(float, moved)]
    if not all(map(math.isfinite, numbers)):
        return not all(math.isfinite(each) for each in numbers[2:])
    one, other, *theirs = numbers
    reach = MOVED * max(abs(each - one) for each in theirs)
    unit = 0.0 if _exact(expected, actual) else _last_digit(expected)
    return alike(expected, actual) or abs(one - other) <= reach + unit


def _digits(number: str) -> int:
    return len(re.sub(r"\D", "", number).lstrip("0"))


def _exact(expected: str, actual: str) -> bool:
    """Whether two numbers are counts, or no numbers at all."""
    if expected.lstrip("+-").isdigit() and actual.lstrip("+-").isdigit():
        return True
    return not (math.isfinite(float(expected)) and math.isfinite(float(actual)))


def alike(expected: str, actual: str, within: float = PRINTED) -> bool:
    """Whether two printed numbers may be one: a part of it off, and one in the last digit."""
    if expected == actual:
        return True
    if _exact(expected, actual):
        return False
    one, other = float(expected), float(actual)
    # A zero in the last place may not be printed, so that the shorter one tells less of the digits than the longer one.
    return abs(one - other) <= within * max(abs(one), abs(other)) + min(
        _last_digit(expected), _last_digit(actual)
    )


def _last_digit(number: str) -> float:
    """A bit more than one in the last digit of a number that is printed so."""
    mantissa, _, exponent = number.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 1.01 * 10.0 ** (int(exponent or 0) - digits)
