"""Compare the two programs on every device spec and put the report together."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from towermigrate.project import ProjectError
from towermigrate.verify.children import ChildFailed, ended_by_signals
from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import Comparison, Difference
from towermigrate.verify.count import CountNotSet
from towermigrate.verify.devices import DevicesNotSupported, DeviceSpec, parse_devices
from towermigrate.verify.diagnose import Diagnosis, diagnose
from towermigrate.verify.doings_compare import doing_cause, doing_differences
from towermigrate.verify.drawn import drawn_differences
from towermigrate.verify.inputs import inputs_not_compared, own_inputs
from towermigrate.verify.loop_compare import loop_differences
from towermigrate.verify.options import VerifyOptions, check_options
from towermigrate.verify.programs import Programs, Recorded, entry_asked
from towermigrate.verify.references import (
    ReferenceDoesNotFit,
    recall_reference,
    save_reference,
    with_limit_of,
)
from towermigrate.verify.report import DeviceReport, Reference, VerifyReport
from towermigrate.verify.rounding import jumps, may_be_rounding, moved_by
from towermigrate.verify.session_choice import session_program
from towermigrate.verify.session_compare import (
    session_differences,
    starts_not_compared,
    without_losses,
)
from towermigrate.verify.session_programs import SessionPrograms
from towermigrate.verify.trace import Trace
from towermigrate.verify.tree import NothingToVerify, original_and_rewritten

# Beyond this part of its size, a value that differs between two runs of the original was not compared.
_TOO_FREE = 0.01


def run_verify(options: VerifyOptions) -> VerifyReport:
    """Run the original and the rewritten program side by side and compare the training.

    Raises:
        ValueError: the options are not usable (see `check_options`).
        ConfigError: the tree's settings cannot be meant. Everything else that goes wrong is in the report's
            `error`.
    """
    check_options(options)
    try:
        options = with_limit_of(options)
        specs = [parse_devices(text) for text in options.devices]
    except DevicesNotSupported as error:
        return VerifyReport(False, f"{error}{_style_said(options)}")
    except ReferenceDoesNotFit as error:
        return VerifyReport(False, str(error))
    scratch = Path(tempfile.mkdtemp(prefix="towermigrate-verify-"))
    try:
        with ended_by_signals():
            return _Verification(options, scratch).report(specs)
    finally:
        if options.keep is not None:
            shutil.copytree(scratch, options.keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)


class _Verification:
    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.tolerance = options.limit
        self.scratch = scratch
        self.programs: Programs | SessionPrograms = Programs(options, scratch)
        self.recorded: dict[int, Recorded] = {}

    def report(self, specs: list[DeviceSpec]) -> VerifyReport:
        runs: list[DeviceReport] = []
        not_compared: list[str] = []
        nondeterministic: list[str] = []
        reference = Reference()
        error = None
        try:
            originals, rewritten = original_and_rewritten(
                self.options.root, self.options.rewritten, self.options.progress
            )
            session = session_program(
                originals, rewritten, entry_asked(self.options, self.options.root)
            )
            if session is not None:
                self.programs = SessionPrograms(self.options, self.scratch, session)
            for spec in specs:
                if spec.replicas not in self.recorded:
                    self.recorded[spec.replicas] = self._of_original(originals, rewritten, spec)
                recorded = self.recorded[spec.replicas]
                reference = recorded.reference
                run, missing, loose = self._compare(recorded, spec)
                runs.append(run)
                not_compared += [f"{spec.text}: {item}" for item in missing]
                nondeterministic += [item for item in loose if item not in nondeterministic]
        except (
            NothingToVerify,
            CountNotSet,
            ChildFailed,
            ProjectError,
            ReferenceDoesNotFit,
            OSError,
        ) as problem:
            error = str(problem)
        equal = error is None and bool(runs) and not not_compared and all(run.equal for run in runs)
        return VerifyReport(
            equal, error, tuple(not_compared), tuple(nondeterministic), reference, tuple(runs)
        )

    def _of_original(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> Recorded:
        """What the original recorded, now or earlier (`references.py`)."""
        kept = self.options.reference
        if kept is not None:
            return recall_reference(kept, self.programs, originals, rewritten, spec)
        recorded = self.programs.record(originals, rewritten, spec)
        if self.options.save is not None:
            save_reference(recorded, self.programs, originals, spec, self.options.save)
        return recorded

    def _compare(
        self, recorded: Recorded, spec: DeviceSpec
    ) -> tuple[DeviceReport, list[str], list[str]]:
        stages = recorded.stages
        made = free_running = self.programs.run_rewritten(recorded, spec, lockstep=False)
        result = self._compared(recorded, made, stages)
        shown = result
        if result.differences:
            made, shown = self._in_lockstep(recorded, spec, stages, result, made)
        if result.compared == 0 and not result.differences:
            raise ChildFailed("Nothing was compared: the rewritten program made no training run.")
        doings, open_doings = doing_differences(
            recorded.first, recorded.second, free_running, numbers=not shown.excused
        )
        first = shown.first()
        equal = first is None and not doings
        largest = max(result.max_error, shown.max_error) if result.differences else result.max_error
        note = None
        if equal and result.differences:
            largest = shown.max_error
            note = (
                "every single step is equal from the original's state; free-running, roundings add up, "
                "and stay below the tolerance times the updates made so far"
            )
            if shown.excused:
                note = _jumps_said(shown.excused, stages, moved_by(self.tolerance, adds_up=True))
        if first is None and doings:
            first, largest = doings[0], math.inf
        report = DeviceReport(
            devices=spec.text,
            replicas=spec.replicas,
            equal=equal,
            steps=result.steps,
            updates_per_step=_updates_per_step(made),
            max_abs=dict(result.max_abs),
            tolerance=self.tolerance,
            smallest_tolerance=largest if math.isfinite(largest) else None,
            first_difference=first,
            stage=None
            if first is None or first.stage is None or first.stage >= len(stages)
            else stages[first.stage],
            diagnosis=tuple(diagnose(recorded.first, made, shown, stages, spec.replicas))
            or _of_doing(first),
            note=note,
        )
        loose = [
            _said(key, stages) for key in sorted(recorded.free) if not key.startswith("tower_")
        ]
        loose += open_doings
        if len(recorded.second.runs) != len(recorded.first.runs):
            loose.append(
                f"the number of training runs: {len(recorded.first.runs)} in one run of the original, "
                f"{len(recorded.second.runs)} in another"
            )
        if not self.options.synthetic:
            loose += inputs_not_compared(recorded)
        loose += starts_not_compared(recorded)
        missing = [*result.not_compared, *shown.not_compared, *_too_free(recorded, stages)]
        return report, list(dict.fromkeys(missing)), loose

    def _compared(
        self,
        recorded: Recorded,
        made: Trace,
        stages: tuple[str, ...],
        *,
        lockstep: bool = False,
        growing: bool = False,
        rounding: Mapping[str, float] | None = None,
    ) -> Comparison:
        result = compare(
            recorded.first,
            made,
            stages,
            self.tolerance,
            recorded.second,
            recorded.free,
            towers=recorded.towers,
            lockstep=lockstep,
            growing=growing,
            rounding=rounding,
        )
        if not self.options.synthetic:
            inputs = own_inputs(recorded, made)
            if isinstance(self.programs, Programs):
                inputs += drawn_differences(recorded, made)
            if inputs:
                result.differences += inputs
                result.max_error = float("inf")
        if isinstance(self.programs, Programs):
            around = loop_differences(
                recorded, made, self.tolerance, lockstep=lockstep, growing=growing
            )
            result.differences += around
            result.max_error = max([result.max_error, *(each.error for each in around)])
        if isinstance(self.programs, SessionPrograms):
            around = session_differences(
                recorded, made, self.tolerance, lockstep=lockstep, growing=growing
            )
            without = without_losses(recorded)
            result.not_compared = [each for each in result.not_compared if each not in without]
            result.differences += around
            result.max_error = max([result.max_error, *(each.error for each in around)])
        return result

    def _in_lockstep(
        self,
        recorded: Recorded,
        spec: DeviceSpec,
        stages: tuple[str, ...],
        free: Comparison,
        made: Trace,
    ) -> tuple[Trace, Comparison]:
        """The same again with the state reset before each step: where it begins, or that nothing does."""
        try:
            again = self.programs.run_rewritten(recorded, spec, lockstep=True)
        except ChildFailed:
            return made, free
        result = self._compared(recorded, again, stages, lockstep=True)
        if result.differences and may_be_rounding(result, adds_up=False):
            allowed = self._jumps(recorded, spec, stages, adds_up=False)
            result = self._compared(recorded, again, stages, lockstep=True, rounding=allowed)
        if result.differences:
            return again, result
        if result.compared < free.compared:
            return made, free
        grown = self._compared(recorded, made, stages, growing=True)
        if grown.differences and may_be_rounding(grown, adds_up=True):
            allowed = self._jumps(recorded, spec, stages, adds_up=True)
            grown = self._compared(recorded, made, stages, growing=True, rounding=allowed)
        grown.excused.update(result.excused)
        grown.max_error = max(grown.max_error, result.max_error)
        grown.differences = [
            replace(difference, level="trajectory") for difference in grown.differences
        ]
        return made, grown

    def _jumps(
        self, recorded: Recorded, spec: DeviceSpec, stages: tuple[str, ...], *, adds_up: bool
    ) -> dict[str, float]:
        """What moving the original's weights does to it; nothing is excused where that cannot be told."""
        if self.tolerance == 0:
            return {}
        moved = self.programs.run_moved(recorded, spec, adds_up=adds_up)
        if moved is None:
            return {}
        return jumps(recorded.first, moved, stages, self.tolerance, adds_up=adds_up)


def _of_doing(first: Difference | None) -> tuple[Diagnosis, ...]:
    """The cause that what was printed or written otherwise says by itself."""
    cause = None if first is None else doing_cause(first)
    return () if cause is None else (Diagnosis(*cause),)


def _style_said(options: VerifyOptions) -> str:
    """Which style would run on devices that session style cannot run on."""
    try:
        trees = original_and_rewritten(options.root, options.rewritten, options.progress)
        session = session_program(*trees, entry_asked(options, options.root))
    except (NothingToVerify, ProjectError, OSError):
        return ""
    if session is None:
        return ""
    return (
        f" The program of {session.entry} is in session style, which is for cpu: and gpu: only; loop style is "
        "the one for TPUs, XLA and several workers, and `towermigrate scan` says what keeps it from that."
    )


def _updates_per_step(made: Trace) -> float | None:
    counts = [run.updates / len(run.stages) for run in made.runs if run.updates is not None]
    return max(counts, key=lambda count: abs(count - 1)) if counts else None


def _too_free(recorded: Recorded, stages: tuple[str, ...]) -> list[str]:
    """What two runs of the original leave so open that no rewritten program could be told from another."""
    variables = recorded.first.variables()
    return [
        f"{_said(key, stages)}: two runs of the original are apart by {error:.0%} themselves"
        for key, error in sorted(recorded.free.items())
        if error > _TOO_FREE
        and not key.startswith("tower_")
        and variables.get(key.partition("state/")[2], {"trainable": True})["trainable"]
    ]


def _jumps_said(excused: dict[str, float], stages: tuple[str, ...], size: float) -> str:
    worst = sorted(excused, key=lambda key: -excused[key])
    return (
        f"equal up to decisions that rounding makes (ReLU, max-pooling): {len(excused)} values are farther "
        f"apart than the tolerance, {_said(worst[0], stages)} by most ({excused[worst[0]]:.1g} of its size), "
        f"but the original itself moves as far when its weights move by {size:g} of their size"
    )


def _said(key: str, stages: tuple[str, ...]) -> str:
    parts = key.split("/")
    if parts[0] in ("loss", "gradient", "tower_gradient") and int(parts[1]) < len(stages):
        return f"{parts[0]} of {stages[int(parts[1])]}: {'/'.join(parts[2:])}"
    return "/".join(parts[1:])
