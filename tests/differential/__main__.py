"""`python -m tests.differential --seeds 0:3000`: try many programs, print what became of them."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from tests.differential import running, table, trying
from tests.differential.grammar import Choices
from tests.differential.program import choices_of, each_alone, settled
from tests.differential.trying import Verdict, Wish
from tests.tf1_env import tf1_python


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    arguments.add_argument("--seeds", default="0:100", help="FIRST:LAST+1, or one seed")
    arguments.add_argument(
        "--each", action="store_true", help="each option and idiom alone instead"
    )
    arguments.add_argument("--choices", action="append", help="try these choices instead")
    arguments.add_argument("--style", choices=("auto", "loop", "session"), default="auto")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--keep", type=Path, help="a folder for programs that fail, made small")
    arguments.add_argument("--run-refused", action="store_true", help="run their originals too")
    arguments.add_argument("--tf1", action="store_true", help="run originals under TensorFlow 1")
    arguments.add_argument("--log", type=Path, help="a file for one line of JSON per program")
    arguments.add_argument("--small", type=int, default=2, help="made small per kind of failure")
    wanted = arguments.parse_args()
    wish = Wish(wanted.style, wanted.run_refused, tf1_python() if wanted.tf1 else None)
    if wanted.tf1 and wish.tf1_python is None:
        arguments.error("no Python with TensorFlow 1 can be had: see tests/tf1_env.py")
    programs = each_alone() if wanted.each else _programs(wanted.choices, wanted.seeds)
    started = time.monotonic()
    verdicts: dict[str, Verdict] = {}
    with ProcessPoolExecutor(
        wanted.jobs, multiprocessing.get_context("spawn"), initializer=running.prepare
    ) as pool:
        jobs = {
            pool.submit(trying.try_choices, str(one), wish): name for name, one in programs.items()
        }
        for done in as_completed(jobs):
            name = jobs[done]
            verdict = verdicts[name] = done.result()
            _told(name, programs[name], verdict, wanted.log)
        spent = time.monotonic() - started
        if wanted.small:
            _made_small(pool, programs, verdicts, wish, wanted.keep, wanted.small)
    print(table.summary(programs, verdicts))
    print(f"{len(verdicts)} programs in {spent:.0f} s, {len(verdicts) / spent:.2f} a second")
    return int(any(one.failed for one in verdicts.values()))


def _programs(choices: list[str] | None, seeds: str) -> dict[str, Choices]:
    if choices:
        return {f"choices{n}": settled(Choices.parse(text)) for n, text in enumerate(choices)}
    first, _, last = seeds.partition(":")
    numbers = range(int(first), int(last) if last else int(first) + 1)
    return {str(seed): choices_of(seed) for seed in numbers}


def _told(name: str, choices: Choices, verdict: Verdict, log: Path | None) -> None:
    if log:
        row = {"name": name, "choices": str(choices), **asdict(verdict)}
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    if verdict.outcome not in (trying.LOOP, trying.SESSION, trying.REFUSED, trying.NOT_FOUND):
        print(f"{name}: {verdict.outcome} {verdict.style} [{choices}]", flush=True)
        print("    " + verdict.cause[-500:].replace("\n", "\n    "), flush=True)


def _made_small(
    pool: ProcessPoolExecutor,
    programs: Mapping[str, Choices],
    verdicts: Mapping[str, Verdict],
    wish: Wish,
    keep: Path | None,
    most: int,
) -> None:
    """Make some failures of each kind small, those of few choices first."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for name, verdict in verdicts.items():
        if verdict.failed:
            kind = (verdict.outcome, trying.kind_of(verdict.cause))
            kinds.setdefault(kind, []).append(name)
    jobs = {}
    for names in kinds.values():
        names.sort(key=lambda name: len(str(programs[name])))
        for name in names[:most]:
            to = None if keep is None else keep / name
            job = (str(programs[name]), wish, verdicts[name], to)
            jobs[pool.submit(trying.reduce_choices, *job)] = name
    for done in as_completed(jobs):
        print(f"{jobs[done]}: {verdicts[jobs[done]].outcome}, small: {done.result()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
