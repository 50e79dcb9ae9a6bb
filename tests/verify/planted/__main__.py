"""Plant all faults and verify each: `python -m tests.verify.planted --log FILE`; once more goes on where it ended."""

from __future__ import annotations

import argparse
import concurrent.futures
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.verify.planted.programs import PROGRAMS
from tests.verify.planted.quick import python_of
from tests.verify.planted.suite import (
    Case,
    Outcome,
    cases,
    from_log,
    record,
    summary,
    to_line,
    verified,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verify.planted", description=__doc__)
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="a program")
    parser.add_argument("--kind", action="append", help="the beginning of a kind")
    parser.add_argument("--most", type=int, help="so many faults of each program")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time")
    parser.add_argument("--log", type=Path, required=True, help="a line of JSON for each fault")
    parser.add_argument("--list", action="store_true", help="say what would be planted")
    asked = parser.parse_args()
    chosen = [
        case
        for case in cases()
        if (not asked.only or case.program in asked.only)
        and (not asked.kind or case.fault.kind.startswith(tuple(asked.kind)))
    ]
    if asked.most is not None:
        programs = [case.program for case in chosen]
        places = [programs[:number].count(program) for number, program in enumerate(programs)]
        chosen = [case for case, place in zip(chosen, places, strict=True) if place < asked.most]
    if asked.list:
        for case in chosen:
            print(f"{case.name}: {case.fault.said}")
        print(len(chosen))
        return 0
    names = {case.name for case in chosen}
    done = [outcome for outcome in from_log(asked.log) if outcome.name in names]
    left = [case for case in chosen if case.name not in {outcome.name for outcome in done}]
    with asked.log.open("a", encoding="utf-8") as log:
        for outcome in run(left, Path(f"{asked.log}.references"), asked.jobs):
            log.write(to_line(outcome) + "\n")
            log.flush()
            done.append(outcome)
            verdict = {True: "found", False: "MISSED", None: "cannot run"}[outcome.found]
            print(f"{len(done)}/{len(chosen)} {verdict}: {outcome.name}", flush=True)
    print("\n".join(summary(done)))
    return 0 if all(outcome.found for outcome in done) else 1


def run(left: Iterable[Case], folder: Path, jobs: int) -> Iterator[Outcome]:
    """Verify faults, each program's original recorded once below `folder`."""
    by_program: dict[str, list[Case]] = {}
    for case in left:
        by_program.setdefault(case.program, []).append(case)
    with (
        python_of(folder / "quick") as python,
        concurrent.futures.ProcessPoolExecutor(jobs) as pool,
    ):
        for name, mine in by_program.items():
            pool.submit(record, PROGRAMS[name], folder, python).result()
            futures = [pool.submit(verified, case, folder, python) for case in mine]
            yield from (each.result() for each in concurrent.futures.as_completed(futures))


if __name__ == "__main__":
    raise SystemExit(main())
