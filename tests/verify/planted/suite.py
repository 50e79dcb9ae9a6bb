"""Choose the faults, verify each, and sum up what came of them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.verify.planted.expected import judged
from tests.verify.planted.hand import by_hand
from tests.verify.planted.programs import PROGRAMS, TOWERS, Program, lay_out
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.plant import Fault, one_of_each_kind, plant, planted

# Of each kind, so many programs have it: all kinds in many programs would be many times the same.
PROGRAMS_OF_A_KIND = 3

# Changes that are none: the training is the same with them, so there is nothing to find.
WITHOUT_EFFECT: dict[tuple[str, str], str] = {
    (
        "cifar_queue",
        "moving average: decay",
    ): "below 1,000 steps the decay is (1 + step) / (10 + step)",
    ("together", "moving average: decay"): "in so few steps the decay is (1 + step) / (10 + step)",
    (
        "cifar_queue",
        "printed: another number",
    ): "the last number is a time, another one at each run of the original too",
    ("cifar_queue", "files: tensors missing"): "plain gradient descent has no slots to save",
}


@dataclass(frozen=True)
class Case:
    """One fault in one program."""

    program: str
    fault: Fault

    @property
    def name(self) -> str:
        return f"{self.program}: {self.fault.kind} ({self.fault.place})"


@dataclass(frozen=True)
class Outcome:
    """What `verify` said. `found` is None where the planted program could not be run at all."""

    name: str
    program: str
    kind: str
    place: str
    said: str
    found: bool | None
    level: str | None
    first: str | None
    diagnosis: list[str]
    error: str | None

    @property
    def cause(self) -> str | None:
        """The cause that is named first."""
        return self.diagnosis[0] if self.diagnosis else None

    @property
    def verdict(self) -> str:
        """Whether what was found is diagnosed `right`, `vague`, `wrong` or with `none`; else `MISSED`, `cannot run`."""
        if self.found is None:
            return "cannot run"
        return judged(self.kind, self.cause) if self.found else "MISSED"


def cases() -> list[Case]:
    """The faults of the suite, in the order of the programs; the same each time."""
    used: Counter[str] = Counter()
    fitting = {name: _fitting(program) for name, program in PROGRAMS.items()}
    chosen: dict[str, list[Case]] = {name: [] for name in PROGRAMS}
    # In turn, each program takes the kind that the fewest have, so that all have about as many.
    while any(fitting.values()):
        for name, faults in fitting.items():
            faults[:] = [fault for fault in faults if used[fault.kind] < PROGRAMS_OF_A_KIND]
            if faults:
                fault = min(faults, key=lambda each: used[each.kind])
                faults.remove(fault)
                used[fault.kind] += 1
                chosen[name].append(Case(name, fault))
    for name, program in PROGRAMS.items():
        chosen[name] += [Case(name, fault) for fault in by_hand(name, program.sources())]
    return [case for name in PROGRAMS for case in chosen[name] if _has_effect(case)]


def of_kinds(program: str, kinds: Collection[str]) -> list[Case]:
    """A fault of each of these kinds in a program, whether or not the suite has it."""
    return [Case(program, fault) for fault in _fitting(PROGRAMS[program]) if fault.kind in kinds]


def _fitting(program: Program) -> list[Fault]:
    return list(one_of_each_kind(plant(program.sources(), TOWERS)))


def _has_effect(case: Case) -> bool:
    return (case.program, case.fault.kind) not in WITHOUT_EFFECT


def against(program: Program, folder: Path, python: str | None) -> VerifyOptions:
    """What compares the rewritten form with what `record` keeps below `folder`."""
    tree = folder / program.name / "original"
    options = program.options(
        tree if tree.is_dir() else program.before, folder / program.name / "rewritten"
    )
    if python is not None:
        options = replace(options, python=python)
    return replace(options, reference=folder / program.name / "reference")


def record(program: Program, folder: Path, python: str | None = None) -> None:
    """Record the original once, below `folder`, and see that the unchanged rewritten form passes.

    Raises:
        AssertionError: it does not.
    """
    program.original(folder / program.name / "original")
    options = against(program, folder, python)
    assert options.rewritten is not None and options.reference is not None
    shutil.rmtree(options.rewritten, ignore_errors=True)
    lay_out(program.sources(), options.rewritten)
    if not options.reference.is_dir():
        report = run_verify(replace(options, reference=None, save=options.reference))
        if report.exit_code != 0:
            shutil.rmtree(options.reference, ignore_errors=True)
        assert report.exit_code == 0, json.dumps(report.to_json(), indent=1)


def verified(case: Case, folder: Path, python: str | None = None) -> Outcome:
    """Verify one planted fault against what was recorded below `folder`."""
    options = against(PROGRAMS[case.program], folder, python)
    assert options.rewritten is not None
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(shutil.copytree(options.rewritten, Path(scratch) / "rewritten"))
        lay_out(planted(PROGRAMS[case.program].sources(), case.fault), tree)
        report = run_verify(replace(options, rewritten=tree))
    run = report.runs[0] if report.runs else None
    first = None if run is None else run.first_difference
    level: str | None = None if first is None else first.level
    if report.exit_code == 1 and first is None:
        level = "not compared"
    return Outcome(
        case.name,
        case.program,
        case.fault.kind,
        case.fault.place,
        case.fault.said,
        None if report.error is not None else report.exit_code == 1,
        level,
        None if first is None else f"{first.name}: {first.expected} {first.actual}"[:200],
        [] if run is None else [each.cause for each in run.diagnosis],
        report.error and report.error[-600:],
    )


def to_line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))


def from_log(log: Path) -> list[Outcome]:
    """What an earlier run wrote into its log."""
    if not log.exists():
        return []
    return [Outcome(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def summary(outcomes: list[Outcome]) -> Iterator[str]:
    """Lines for people: what was missed, what was diagnosed wrongly, and the figures of each program."""
    for verdict in ("MISSED", "wrong", "unknown", "vague", "none", "cannot run"):
        for each in outcomes:
            if each.verdict == verdict:
                more = each.error or f"{each.level}: {each.cause or each.first}"
                said = "" if verdict == "MISSED" else f" -> {more[-300:]}"
                yield f"{verdict:<10} {each.name}: {each.said}{said}"
    for name in [*PROGRAMS, "all"]:
        mine = [each for each in outcomes if name in ("all", each.program)]
        if mine:
            yield f"{name:<20} {figures(mine)}"


def figures(outcomes: list[Outcome]) -> str:
    verdicts = Counter(each.verdict for each in outcomes)
    ran = len(outcomes) - verdicts["cannot run"]
    return (
        f"planted {ran}, found {ran - verdicts['MISSED']}, missed {verdicts['MISSED']}, rightly diagnosed "
        f"{verdicts['right']}, wrongly {verdicts['wrong']}, in other words {verdicts['unknown']}, by its place only {verdicts['vague']}, no cause "
        f"{verdicts['none']}; cannot run {verdicts['cannot run']}"
    )
