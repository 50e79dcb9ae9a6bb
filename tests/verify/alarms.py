"""Look for false alarms: every program of the planted suite and every fixture that the tool converts, with other seeds,
on several devices.

    python -m tests.verify.alarms --seeds 0:20 --devices cpu:1 cpu:2 cpu:4 cpu:8 --log FILE

A seed changes all numbers that the program draws from: those of NumPy's generators, of TensorFlow's and of its inputs. Each
outcome is a line of JSON; once more goes on where it ended. `--tf1-python` compares with a real TensorFlow 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from tests.verify.converted import CONVERTED, FIXTURES
from tests.verify.planted.programs import PROGRAMS as PLANTED
from tests.verify.planted.programs import Program
from tests.verify.planted.quick import python_of
from towermigrate.verify import VerifyOptions, run_verify

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SEED = re.compile(r"((?:RandomState|set_random_seed|default_rng)\(|\bseed=)(\d+)(?=[,)])")
_STEPS = 8


def _fixture(name: str) -> Program:
    """A whole program of `fixtures/`, run as its description says."""
    folder = FIXTURES / name
    facts = tomllib.loads((folder / "fixture.toml").read_text(encoding="utf-8"))
    return Program(name, folder / "before", folder / "after", facts["entry"], tuple(facts["args"]))


PROGRAMS = {**{name: _fixture(name) for name in CONVERTED}, **PLANTED}


@dataclass(frozen=True)
class Outcome:
    """What `verify` said of one program with one seed on one device spec; `alarm` None where it could not run."""

    program: str
    seed: int
    devices: str
    alarm: bool | None
    excuses: int
    said: str


def reseeded(text: str, seed: int) -> str:
    """A program's text with other seeds; seed 0 leaves it as it is."""
    return _SEED.sub(lambda found: f"{found[1]}{int(found[2]) + 1000 * seed}", text)


def lay_out(program: Program, seed: int, folder: Path) -> Path:
    """The original's tree with another seed, below a folder."""
    original = program.original(folder / "original")
    tree = folder / "tree"
    for path in sorted(original.rglob("*")):
        target = tree / path.relative_to(original)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif path.suffix == ".py":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(reseeded(path.read_text(encoding="utf-8"), seed), encoding="utf-8")
        else:
            target.write_bytes(path.read_bytes())
    return tree


def outcomes(
    program: Program, seed: int, devices: tuple[str, ...], python: str | None, tf1: str | None
) -> Iterator[Outcome]:
    """Verify a program with one seed on several device specs: the original runs once for each number of towers."""
    with tempfile.TemporaryDirectory() as folder:
        options = VerifyOptions(
            lay_out(program, seed, Path(folder)),
            devices=devices,
            steps=_STEPS,
            entry=program.entry,
            arguments=program.arguments,
            tf1_python=tf1,
            timeout_s=240,
        )
        if python is not None:
            options = replace(options, python=python)
        report = run_verify(options)
    if len(devices) > 1 and len(report.runs) < len(devices):  # one of them cannot run it
        for each in devices:
            yield from outcomes(program, seed, (each,), python, tf1)
        return
    if not report.runs:
        (only,) = devices
        yield Outcome(program.name, seed, only, None, 0, (report.error or "")[-600:])
    for run in report.runs:
        alarm = not run.equal or bool(report.not_compared)
        said = f"{run.first_difference} {[each.cause for each in run.diagnosis]}" if alarm else ""
        yield Outcome(program.name, seed, run.devices, alarm, len(run.excuses), said[-600:])


def _groups(name: str, devices: tuple[str, ...], done: list[Outcome]) -> list[tuple[str, ...]]:
    """Device specs to verify together; one that could not run with another seed keeps none from running with this one."""
    could_not = {each.devices for each in done if each.program == name and each.alarm is None}
    together = tuple(each for each in devices if each not in could_not)
    return [each for each in (together, *((d,) for d in devices if d in could_not)) if each]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verify.alarms", description=__doc__)
    parser.add_argument("--seeds", default="0:2", help="from and to, which is not in it")
    parser.add_argument("--devices", nargs="+", default=["cpu:2"])
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="a program")
    parser.add_argument("--tf1-python", help="the original runs with this Python's TensorFlow 1")
    parser.add_argument("--log", type=Path, required=True)
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition(":")
    done: list[Outcome] = []
    if asked.log.exists():
        done = [Outcome(**json.loads(line)) for line in asked.log.read_text().splitlines()]
    known = {(each.program, each.seed, each.devices) for each in done}
    with tempfile.TemporaryDirectory() as folder, python_of(Path(folder)) as command:
        for seed in range(int(first), int(last)):
            for name in asked.only or PROGRAMS:
                left = tuple(d for d in asked.devices if (name, seed, d) not in known)
                for each in chain.from_iterable(
                    outcomes(PROGRAMS[name], seed, together, command, asked.tf1_python)
                    for together in _groups(name, left, done)
                ):
                    done.append(each)
                    with asked.log.open("a") as log:
                        log.write(json.dumps(asdict(each)) + "\n")
                    if each.alarm is not False:
                        print("ALARM" if each.alarm else "cannot run", each, flush=True)
    ran = [each for each in done if each.alarm is not None]
    alarms = [each for each in ran if each.alarm]
    print(f"{len(ran)} comparisons, {len(alarms)} alarms, {len(done) - len(ran)} not run")
    return 1 if alarms else 0


if __name__ == "__main__":
    raise SystemExit(main())
