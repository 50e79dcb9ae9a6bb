"""Names of files that say when a program ran: `runs/20261127-183955` is another name in each run, and the same folder."""

# ruff: noqa: B905, UP006, UP035
# (Python 3.6 has neither `list[int]` nor `zip(strict=)`.)

import os
import re
import time
from datetime import datetime, timedelta
from typing import Dict, Iterator, List, Tuple

CLOCK = "<clock>"
_STRETCH = re.compile(r"\d+(?:[-_.:T ,]\d+)*")
# How numbers of a name are read: from the year, the month, the day or the hour on.
_ORDERS = ("YmdHMSf", "YmdHMS", "YmdHM", "ymdHMS", "ymdHM", "mdHMS", "mdHM", "dHMS", "HMSf", "HMS")
_DIGITS = (
    ("YmdHMSf", "4222226"), ("YmdHMS", "422222"), ("YmdHM", "42222"), ("ymdHMS", "222222"),
    ("ymdHM", "22222"), ("mdHMS", "22222"), ("mdHM", "2222"), ("HMSf", "2226"), ("HMS", "222"),
)  # fmt: skip
# A clock that is read a moment before or after the program's own.
_NEAR = timedelta(seconds=3)


def named_by_clock(
    files: List[str], began: float, ended: float
) -> Tuple[Dict[str, str], Dict[str, str]]:
    """What files are called that are named after the time between `began` and `ended` (seconds since the epoch).

    Returns:
        Names without the time by the file's own, of all files; and what stands in place of each part of a path that
        the time stands in.
    """
    plain: Dict[str, str] = {}
    parts: Dict[str, str] = {}
    taken: Dict[str, str] = {}
    for path in sorted(files):
        pieces: List[str] = []
        for piece in path.split("/"):
            new = piece if "tfevents" in piece else _without_clock(piece, began, ended)
            if new != piece:
                # Two folders of one run stay two: the later is the second.
                number, name = 1, "/".join([*pieces, new])
                own = "/".join([*pieces, piece])
                while taken.setdefault(name, own) != own:
                    number += 1
                    again = new.replace(CLOCK, "%s %d>" % (CLOCK[:-1], number))
                    name = "/".join([*pieces, again])
                new = name.rpartition("/")[2]
                parts[piece] = new
            pieces.append(new)
        plain[path] = "/".join(pieces)
    return plain, parts


def _without_clock(name: str, began: float, ended: float) -> str:
    return _STRETCH.sub(
        lambda found: CLOCK if _is_clock(found.group(), began, ended) else found.group(), name
    )


def _is_clock(text: str, began: float, ended: float) -> bool:
    """Whether numbers are a time between two others, here or at Greenwich, or the day of it."""
    digits = re.sub(r"\D", "", text)
    # `time.time()`, its fraction cut or not.
    if text[:10].isdigit() and len(digits) <= 19 and began - 3 <= int(digits[:10]) <= ended + 3:
        return True
    zones = [datetime.fromtimestamp, datetime.utcfromtimestamp]
    for zone in zones:
        first, last = zone(began), zone(ended)
        for numbers, order in _readings(text, digits):
            if _is_between(dict(zip(order, numbers)), first - _NEAR, last + _NEAR):
                return True
        if digits in (first.strftime("%Y%m%d"), last.strftime("%Y%m%d")):
            return True
    return False


def _readings(text: str, digits: str) -> Iterator[Tuple[List[int], str]]:
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    for order in _ORDERS:
        if len(order) == len(numbers):
            yield numbers, order
    for order, sizes in _DIGITS:
        if sum(map(int, sizes)) == len(digits):
            found, at = [], 0
            for size in map(int, sizes):
                found.append(int(digits[at : at + size]))
                at += size
            yield found, order


def _is_between(said: Dict[str, int], first: datetime, last: datetime) -> bool:
    """Whether some moment between two has all that is said of it."""
    year = said.get("Y", 2000 + said["y"] if "y" in said else first.year)
    try:
        begins = datetime(
            year,
            said.get("m", first.month),
            said.get("d", first.day),
            said["H"],
            said["M"],
            said.get("S", 0),
        )
    except (ValueError, OverflowError):
        return False
    lasts = timedelta(seconds=1 if "S" in said else 60)
    return begins <= last and begins + lasts > first


def asks_the_time(tree: str) -> bool:
    """Whether something in the Python files of a tree may ask how late it is; so where one cannot be read."""
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.endswith(".py"):
                continue
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    if _ASKS.search(file.read()):
                        return True
            except OSError:
                return True
    return False


_ASKS = re.compile(
    r"\bimport\b[^\n]*\b(?:time|datetime|timeit)\b|\bfrom\s+(?:time|datetime|timeit)\b|tqdm|[Pp]rogbar|[Tt]imer|timestamp|"
    r"StepCounterHook|ProfilerHook|perf_counter|\bclock\(|RunMetadata|os\.times|import_module|__import__|Session\w*Hook"
)


def now() -> float:
    """The time of day, which a program may replace later."""
    return _time()


_time = time.time
