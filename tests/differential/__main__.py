"""`python -m tests.differential --seeds 0:3000`: try many programs, print what became of them."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.differential import running, trying
from tests.differential.grammar import Choices
from tests.differential.program import choices_of, files_of, settled


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    arguments.add_argument("--seeds", default="0:100", help="FIRST:LAST+1, or one seed")
    arguments.add_argument("--choices", action="append", help="try these choices instead")
    arguments.add_argument("--style", choices=("auto", "loop", "session"), default="auto")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--keep", type=Path, help="a folder for the programs that fail")
    arguments.add_argument("--run-refused", action="store_true")
    arguments.add_argument("--log", type=Path, help="a file for one line of JSON per program")
    wanted = arguments.parse_args()
    if wanted.choices:
        programs = {str(n): settled(Choices.parse(text)) for n, text in enumerate(wanted.choices)}
    else:
        first, _, last = wanted.seeds.partition(":")
        numbers = range(int(first), int(last) if last else int(first) + 1)
        programs = {str(seed): choices_of(seed) for seed in numbers}
    if wanted.keep:
        wanted.keep.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    verdicts: dict[str, trying.Verdict] = {}
    log = open(wanted.log, "a") if wanted.log else None
    with ProcessPoolExecutor(
        wanted.jobs, multiprocessing.get_context("spawn"), initializer=running.prepare
    ) as pool:
        jobs = {}
        for name, choices in programs.items():
            keep = None if wanted.keep is None else str(wanted.keep / name)
            jobs[pool.submit(trying.try_choices, (str(choices), wanted.style, wanted.run_refused, keep))] = name
        for done in as_completed(jobs):
            name = jobs[done]
            verdict, small = done.result()
            verdicts[name] = verdict
            if log:
                log.write(json.dumps({"name": name, "choices": str(programs[name]), "small": small, "outcome": verdict.outcome, "style": verdict.style, "cause": verdict.cause, "seconds": verdict.seconds}) + "\n")
                log.flush()
            if verdict.failed or verdict.outcome in (trying.BAD, trying.RACY):
                print(f"{name}: {verdict.outcome} [{small}]\n    {verdict.cause[-600:]}", flush=True)
    spent = time.monotonic() - started
    print(f"{len(verdicts)} programs in {spent:.0f} s, {len(verdicts) / spent:.2f} a second")
    for outcome, count in Counter(one.outcome for one in verdicts.values()).most_common():
        print(f"{outcome:18} {count:5}")
    return int(any(one.failed for one in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
