"""Compare the two programs on every device spec and put the report together."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from towermigrate.project import ProjectError
from towermigrate.signals import ended_by_signals
from towermigrate.verify.amounts import amount_compared
from towermigrate.verify.ask_original import excuse_steps, excuse_trajectory
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import Comparison, Difference, Excuse
from towermigrate.verify.count import CountNotSet
from towermigrate.verify.devices import DeviceSpec, parse_devices
from towermigrate.verify.diagnose import diagnose
from towermigrate.verify.doings_compare import (
    asks_the_time,
    doing_differences,
    doings_left_out,
)
from towermigrate.verify.drawn import drawn_differences
from towermigrate.verify.draws_compare import draws_differences, draws_not_compared
from towermigrate.verify.events_compare import IN_EVENTS, event_differences, summaries_excused
from towermigrate.verify.fence import protection
from towermigrate.verify.files_compare import Closeness, file_differences
from towermigrate.verify.hand_written import (
    HandWrittenPrograms,
    hand_written,
    inputs_without_argument,
)
from towermigrate.verify.inputs import inputs_not_compared, own_inputs
from towermigrate.verify.levels import ladder, levels_not_compared
from towermigrate.verify.loop_compare import loop_differences
from towermigrate.verify.options import VerifyOptions, check_options
from towermigrate.verify.outcome import (
    drift,
    has_other_kernels,
    jumps_said,
    not_excused,
    numbers_within,
    said,
    saved_within,
    too_free,
    updates_per_step,
)
from towermigrate.verify.pairing import pairing
from towermigrate.verify.programs import Programs, Recorded, entry_asked
from towermigrate.verify.references import (
    ReferenceDoesNotFit,
    place_of_reference,
    recall_reference,
    save_reference,
    with_limit_of,
)
from towermigrate.verify.replicas import with_replica
from towermigrate.verify.report import DeviceReport, Reference, VerifyReport
from towermigrate.verify.rounding import Trial, trials
from towermigrate.verify.scratch import TooLarge, check_size, no_space, remove_scratch
from towermigrate.verify.seeds_compare import seed_differences, seeds_left_out
from towermigrate.verify.session_choice import SessionProgram, session_program
from towermigrate.verify.session_compare import (
    session_differences,
    starts_not_compared,
    without_losses,
)
from towermigrate.verify.session_programs import SessionPrograms
from towermigrate.verify.shuffling import asks_for_another_run, shuffling
from towermigrate.verify.tpu.report import CompileReport
from towermigrate.verify.tpu.spec import NoTpuCompiler, TpuCompiles, check_compiler
from towermigrate.verify.tpu_cores import STAND_IN, NoTpu, with_cores
from towermigrate.verify.trace import Trace
from towermigrate.verify.tree import NothingToVerify, original_and_rewritten
from towermigrate.verify.worker_traces import worker_differences
from towermigrate.verify.xla import compiled_said


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
    except ReferenceDoesNotFit as error:
        return VerifyReport(False, str(error))
    with ended_by_signals():
        scratch = Path(tempfile.mkdtemp(prefix="towermigrate-verify-"))
        try:
            return _Verification(options, scratch).report(specs)
        finally:
            if options.keep is not None:
                shutil.copytree(scratch, options.keep, symlinks=True, dirs_exist_ok=True)
            remove_scratch(scratch)


@dataclass(frozen=True)
class _Outcome:
    """What the report shows of one run: the recording, its comparison, and that of the single steps."""

    made: Trace
    shown: Comparison
    single: Comparison


class _Verification:
    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.tolerance = options.limit
        self.moved_freely: list[Trace] = []
        self.scratch = scratch
        self.programs: Programs | SessionPrograms = Programs(options, scratch)
        self.recorded: dict[int, Recorded] = {}
        self.pairings: dict[Path, tuple[list[Difference], list[str]]] = {}
        # Of the device spec that is being compared.
        self.mixed: tuple[list[Difference], list[str]] = ([], [])

    def report(self, specs: list[DeviceSpec]) -> VerifyReport:
        runs: list[DeviceReport] = []
        compiled: list[CompileReport] = []
        not_compared: list[str] = []
        nondeterministic: list[str] = []
        reference = Reference()
        stages: tuple[str, ...] = ()
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
            elif self.options.rewritten is not None:
                entry = entry_asked(self.options, self.options.root)
                by_hand = hand_written(originals, rewritten, entry)
                if by_hand is not None:
                    self.programs = HandWrittenPrograms(self.options, self.scratch, by_hand)
            workers = max([1, *(spec.replicas for spec in specs if spec.kind == "workers")])
            for root in filter(None, (self.options.root, self.options.rewritten)):
                limits = self.options.link_over, self.options.max_copy
                check_size(root, self.scratch, *limits, self.options.progress, workers)
            self._check(specs, session)
            specs = [
                with_cores(spec, self.options) if spec.kind == "tpu" else spec for spec in specs
            ]
            tpu: TpuCompiles | None = None
            for spec in specs:
                if spec.kind == "tpu-compile":
                    if not isinstance(self.programs, Programs):
                        raise NothingToVerify(
                            "tpu-compile: compiles programs whose original is known from its source; of this one only "
                            "the graph and the session are watched."
                        )
                    tpu = tpu or TpuCompiles(self.programs, self.options, self.scratch)
                    made, missing = tpu.compiled(originals, rewritten, spec)
                    compiled.append(made)
                    not_compared += [f"{spec.text}: {item}" for item in missing]
                    continue
                if spec.replicas not in self.recorded:
                    self.recorded[spec.replicas] = self._of_original(
                        originals, rewritten, spec.of_original
                    )
                recorded = self.recorded[spec.replicas]
                reference, stages = recorded.reference, recorded.stages
                run, missing, loose = self._compare(recorded, spec)
                runs.append(run)
                not_compared += [f"{spec.text}: {item}" for item in missing]
                nondeterministic += [item for item in loose if item not in nondeterministic]
        except OSError as problem:
            error = no_space(problem, self.scratch) or str(problem)
        except (
            NothingToVerify,
            CountNotSet,
            ChildFailed,
            ProjectError,
            ReferenceDoesNotFit,
            NoTpu,
            NoTpuCompiler,
            TooLarge,
        ) as problem:
            error = str(problem)
        except MemoryError:
            error = "There was not enough memory to compare the recordings."
        launcher = self.programs.launcher
        equal = error is None and bool(runs) and not not_compared and all(run.equal for run in runs)
        equal = equal and all(each.compiles for each in compiled)
        return VerifyReport(
            equal,
            error,
            tuple(not_compared),
            tuple(nondeterministic),
            reference,
            tuple(runs),
            stages,
            protection=protection(launcher.asked) if launcher.started else None,
            kept_out=tuple(launcher.kept_out),
            compiled=tuple(compiled),
        )

    def _check(self, specs: list[DeviceSpec], session: SessionProgram | None) -> None:
        """See, before anything runs, that all specs can."""
        for spec in specs:
            if spec.for_loop_style and session is not None:
                raise NothingToVerify(
                    f"verify cannot run the program on {spec.text}.{_for_session(session)}"
                )
            if self.options.save is not None and spec.kind != "tpu-compile":
                place_of_reference(self.options.save, spec.of_original)
        if any(spec.kind == "tpu-compile" for spec in specs):
            check_compiler(self.options)

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
        self.tolerance = self.options.limit_on(spec.kind)
        self.moved_freely = []
        free_running = self.programs.run_rewritten(recorded, spec, lockstep=False)
        self.mixed = self._shuffling(recorded, free_running, spec)
        result = self._compared(recorded, free_running, stages)
        outcome = _Outcome(free_running, result, result)
        if result.differences:
            outcome = self._in_lockstep(recorded, spec, stages, result, free_running)
        made, shown = outcome.made, outcome.shown
        if result.compared == 0 and not result.differences:
            raise ChildFailed("Nothing was compared: the rewritten program made no training run.")
        traces = recorded.first, recorded.second, free_running
        bitwise = not result.differences and all(v in (0, None) for v in result.max_abs.values())
        exact = bitwise and not has_other_kernels(recorded.reference, spec)
        apart = drift(result, shown, exact)
        close = Closeness(
            numbers_within(shown.excused, recorded.reference, spec, apart),
            apart,
            bitwise=bitwise,
            moved=tuple(self.moved_freely),
            saved=saved_within(shown.excused, recorded.reference, spec, apart, bitwise),
            clock=asks_the_time(recorded.first),
        )
        alike = not result.differences
        # They are read once: files may be large.
        files = file_differences(*traces, close)
        doings, open_doings = doing_differences(
            *traces, **vars(close), files=files, trained_alike=alike
        )
        first = shown.first()
        summaries: list[Excuse] = []
        if first is None and doings and not self.options.strict and close.within is not None:
            if all(IN_EVENTS in each.name for each in doings):
                summaries = self._excuse_summaries(recorded, spec, traces, close.within)
            if summaries:
                shown = replace(shown, excused=shown.excused + summaries)
                keys = {each.key for each in summaries}
                doings, open_doings = doing_differences(
                    *traces, **vars(close), files=files, summaries=keys, trained_alike=alike
                )
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
                note = jumps_said(shown.excused)
        if equal and note is None and summaries:
            note = jumps_said(shown.excused)
        if spec.kind == "xla":
            compiled = compiled_said(made)
            if compiled is None:
                raise ChildFailed("XLA compiled nothing of the rewritten program's steps.")
            note = compiled if note is None else f"{note}; {compiled}"
        if spec.kind == "tpu" and os.environ.get(STAND_IN):
            told = f"no TPU: {os.environ[STAND_IN]} stood in for one ({STAND_IN})"
            note = told if note is None else f"{note}; {told}"
        # A line may tell of the file; that one is missing has nothing to do with lines.
        doing = next((d for d in doings if d.name.startswith("file ")), next(iter(doings), None))
        if first is None and doing is not None:
            first, largest = doing, math.inf
        more_outputs = tuple(each for each in doings if each is not first)
        if first is not None:
            first = with_replica(first, recorded.first, made, self.tolerance)
        levels = ladder(
            recorded.first,
            free_running,
            result,
            outcome.single,
            shown,
            doings,
            open_doings,
            synthetic=self.options.synthetic,
        )
        report = DeviceReport(
            devices=spec.text,
            replicas=spec.replicas,
            equal=equal,
            steps=result.steps,
            updates_per_step=updates_per_step(made),
            max_abs=dict(result.max_abs),
            tolerance=self.tolerance,
            smallest_tolerance=largest if math.isfinite(largest) else None,
            first_difference=first,
            stage=None
            if first is None or first.stage is None or first.stage >= len(stages)
            else stages[first.stage],
            diagnosis=tuple(
                diagnose(
                    recorded.first,
                    made,
                    shown,
                    stages,
                    spec.replicas,
                    lockstep=made is not free_running,
                    doing=doing,
                )
            ),
            note=note,
            excuses=tuple(shown.excused),
            not_excused=not_excused(shown, stages),
            levels=levels,
            figures=result.figures.to_json(stages),
            amount=amount_compared(recorded.first, result, stages, self.options.steps),
            more_outputs=more_outputs,
            left_out=(
                *doings_left_out(*traces, **vars(close), files=files),
                *self._pairing(recorded, free_running)[1],
                *self.mixed[1],
                *draws_not_compared(recorded, free_running),
                *seeds_left_out(recorded, free_running),
            ),
        )
        loose = [said(key, stages) for key in sorted(recorded.free) if not key.startswith("tower_")]
        loose += open_doings
        if len(recorded.second.runs) != len(recorded.first.runs):
            loose.append(
                f"the number of training runs: {len(recorded.first.runs)} in one run of the original, "
                f"{len(recorded.second.runs)} in another"
            )
        if not self.options.synthetic:
            loose += inputs_not_compared(recorded)
        loose += starts_not_compared(recorded)
        missing = [*result.not_compared, *shown.not_compared, *too_free(recorded, stages)]
        missing += levels_not_compared(levels, synthetic=self.options.synthetic)
        return report, list(dict.fromkeys(missing)), loose

    def _pairing(self, recorded: Recorded, made: Trace) -> tuple[list[Difference], list[str]]:
        """What `pairing` says of a run, asked once of each; nothing where inputs are not the program's own."""
        if self.options.synthetic or isinstance(self.programs, HandWrittenPrograms):
            return [], []
        if made.folder not in self.pairings:
            self.pairings[made.folder] = pairing(recorded, made)
        return self.pairings[made.folder]

    def _shuffling(
        self, recorded: Recorded, made: Trace, spec: DeviceSpec
    ) -> tuple[list[Difference], list[str]]:
        """What `shuffling` says of the rewritten program on these devices, which may run once more for it."""
        if self.options.synthetic:
            return [], []
        again = None
        # Of several workers each records the rows of its own towers.
        if spec.kind != "workers" and asks_for_another_run(recorded, made):
            with contextlib.suppress(ChildFailed):
                again = self.programs.run_rewritten(recorded, spec, lockstep=False, again=True)
        return shuffling(recorded, made, again)

    def _compared(
        self,
        recorded: Recorded,
        made: Trace,
        stages: tuple[str, ...],
        *,
        lockstep: bool = False,
        growing: bool = False,
    ) -> Comparison:
        result = compare(
            recorded.first,
            made,
            stages,
            self.tolerance,
            recorded.second,
            {} if self.options.strict else recorded.free,
            towers=recorded.towers,
            lockstep=lockstep,
            growing=growing,
        )
        result.differences += own_inputs(recorded, made, synthetic=self.options.synthetic)
        result.differences += seed_differences(recorded, made)
        result.differences += self._pairing(recorded, made)[0] + self.mixed[0]
        if not self.options.synthetic:
            result.differences += draws_differences(recorded, made)
        if isinstance(self.programs, HandWrittenPrograms):
            result.differences += loop_differences(
                recorded, made, self.tolerance, lockstep=lockstep, growing=growing
            )
            result.differences += worker_differences(made)
            without = without_losses(recorded)
            result.not_compared = [each for each in result.not_compared if each not in without]
            if not self.options.synthetic:
                result.not_compared += inputs_without_argument(recorded, made)
            return result
        if isinstance(self.programs, Programs):
            if not self.options.synthetic:
                result.differences += drawn_differences(recorded, made)
            result.differences += loop_differences(
                recorded, made, self.tolerance, lockstep=lockstep, growing=growing
            )
            result.differences += worker_differences(made)
        if isinstance(self.programs, SessionPrograms):
            around = session_differences(
                recorded, made, self.tolerance, lockstep=lockstep, growing=growing
            )
            without = without_losses(recorded)
            result.not_compared = [each for each in result.not_compared if each not in without]
            result.differences += around
        return result

    def _in_lockstep(
        self,
        recorded: Recorded,
        spec: DeviceSpec,
        stages: tuple[str, ...],
        free: Comparison,
        made: Trace,
    ) -> _Outcome:
        """The same again with the state reset before each step: where it begins, or that nothing does."""
        try:
            again = self.programs.run_rewritten(recorded, spec, lockstep=True)
        except ChildFailed:
            return _Outcome(made, free, free)
        result = self._compared(recorded, again, stages, lockstep=True)
        if result.differences and not self.options.strict:
            excuse_steps(
                recorded.first,
                again,
                result,
                self.tolerance,
                lambda pair: self._moved(recorded, spec, pair),
                other_kernels=has_other_kernels(recorded.reference, spec),
            )
        if result.differences:
            return _Outcome(again, result, result)
        if result.compared < free.compared:
            return _Outcome(made, free, free)
        grown = free
        if not self.options.strict:
            grown = self._compared(recorded, made, stages, growing=True)
            self.moved_freely = excuse_trajectory(
                recorded.first,
                made,
                grown,
                self.tolerance,
                lambda pair: self._moved(recorded, spec, pair),
            )
        shown = replace(
            grown,
            excused=result.excused + grown.excused,
            within=max(grown.within, result.within),
            differences=[replace(each, level="trajectory") for each in grown.differences],
        )
        return _Outcome(made, shown, result)

    def _excuse_summaries(
        self,
        recorded: Recorded,
        spec: DeviceSpec,
        traces: tuple[Trace, Trace, Trace],
        within: float,
    ) -> list[Excuse]:
        """The histograms that are off where nothing else is, and that the original's own are, too, with its weights moved."""
        tried: list[Trace] = []
        found: list[Excuse] = []
        for pair in trials(self.tolerance, adds_up=True):
            tried += self._moved(recorded, spec, pair)
            found = summaries_excused(*traces, tried, within=within, moved_by=abs(pair[0].size))
            left = event_differences(*traces, within=within, excused={each.key for each in found})
            if not any(left):
                break
        return found

    def _moved(
        self, recorded: Recorded, spec: DeviceSpec, pair: tuple[Trial, Trial]
    ) -> list[Trace]:
        """What moving the original's weights does to it; nothing is excused where that cannot be told."""
        if self.tolerance == 0:
            return []
        made = [self.programs.run_moved(recorded, spec.of_original, trial) for trial in pair]
        return [trace for trace in made if trace is not None]


def _for_session(session: SessionProgram) -> str:
    return (
        f" The program of {session.entry} is in session style, which is for cpu: and gpu: only; loop style is "
        "the one for TPUs, XLA and several workers, and `towermigrate scan` says what keeps it from that."
    )
