"""Run both programs on every device spec and put the comparison together."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from towermigrate.keeping import original_texts
from towermigrate.program import TowerProgram
from towermigrate.project import ProjectError
from towermigrate.python2 import in_python3
from towermigrate.rewrite import rewrite_tree
from towermigrate.symbols import rewrite_symbols
from towermigrate.vendor import check_copy, copy_beside
from towermigrate.verify import probe_tf1
from towermigrate.verify.children import ChildFailed, ended_by_signals, last_words, run_child
from towermigrate.verify.compare import Comparison, Difference, compare, disagreement
from towermigrate.verify.count import CountNotSet, with_count
from towermigrate.verify.devices import DevicesNotSupported, DeviceSpec, parse_devices
from towermigrate.verify.diagnose import diagnose
from towermigrate.verify.probes import before_update, probed, trained_together
from towermigrate.verify.report import DeviceReport, Reference, VerifyReport
from towermigrate.verify.rounding import jumps, may_be_rounding, moved_by
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.tree import NothingToVerify, choose_program, copy_tree, read_sources

# compat.v1 runs the very kernels that the rewritten program runs; what is left is the order of a sum over
# towers: 1.2e-7 after 20 steps (FACTS 5). TF 1.15 has other kernels: 2.4e-7 in 20 steps, 1.4e-6 in a gradient.
COMPAT_TOLERANCE = 1e-6
TF1_TOLERANCE = 1e-5

# Beyond this part of its size, a value that differs between two runs of the original was not compared.
_TOO_FREE = 0.01


@dataclass(frozen=True)
class VerifyOptions:
    """What `run_verify` compares, and how.

    `path` is the tree, or one script in it. `rewritten` names the folder of the rewritten program where
    that is not the tree itself; `tolerance` None takes the default for the reference.
    """

    path: Path
    devices: tuple[str, ...] = ("cpu:2",)
    rewritten: Path | None = None
    steps: int = 5
    entry: str | None = None
    arguments: tuple[str, ...] = ()
    tf1_python: str | None = None
    synthetic: bool = False
    tolerance: float | None = None
    timeout_s: float = 600.0
    python: str = field(default=sys.executable)
    keep: Path | None = None
    progress: Callable[[str], None] = field(default=lambda _: None, compare=False)


def check_options(options: VerifyOptions) -> None:
    """See that there is something to do.

    Raises:
        ValueError: a device spec is not understood, or a number is out of range (bad usage).
    """
    for text in options.devices:
        with contextlib.suppress(DevicesNotSupported):
            parse_devices(text)
    if not options.devices or options.steps < 1:
        raise ValueError("verify needs at least one device spec and at least one step.")
    if options.tolerance is not None and not 0 <= options.tolerance < math.inf:
        raise ValueError(f"--tolerance {options.tolerance} is no number that is at least 0.")
    if not options.timeout_s > 0:
        raise ValueError(f"--timeout {options.timeout_s} is no number of seconds above 0.")


def run_verify(options: VerifyOptions) -> VerifyReport:
    """Run the original and the rewritten program side by side and compare the training.

    Raises:
        ValueError: the options are not usable (see `check_options`). Everything else that goes wrong is in
            the report's `error`.
    """
    check_options(options)
    try:
        specs = [parse_devices(text) for text in options.devices]
    except DevicesNotSupported as error:
        return VerifyReport(False, str(error))
    scratch = Path(tempfile.mkdtemp(prefix="towermigrate-verify-"))
    try:
        with ended_by_signals():
            return _Verification(options, scratch).report(specs)
    finally:
        if options.keep is not None:
            shutil.copytree(scratch, options.keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class _Recorded:
    """The original's two recordings for one tower count, and what they say about it."""

    first: Trace
    second: Trace
    program: TowerProgram
    rewritten: dict[str, str]
    reference: Reference
    free: dict[str, float]
    towers: int
    originals: dict[str, str]
    again: dict[str, object]


class _Verification:
    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.root = options.path if options.path.is_dir() else options.path.parent
        self.entry = options.entry
        if self.entry is None and options.path.is_file():
            self.entry = options.path.name
        elif self.entry is not None and not (self.root / self.entry).is_file():
            given, root = Path(self.entry).resolve(), self.root.resolve()
            if given.is_relative_to(root):
                self.entry = given.relative_to(root).as_posix()
        elif self.entry is not None and Path(self.entry).is_absolute():
            given, root = Path(self.entry).resolve(), self.root.resolve()
            if given.is_relative_to(root):  # else it is not found, and that is said
                self.entry = given.relative_to(root).as_posix()
        self.recorded: dict[int, _Recorded] = {}
        usual = TF1_TOLERANCE if options.tf1_python else COMPAT_TOLERANCE
        self.tolerance = usual if options.tolerance is None else options.tolerance

    def report(self, specs: list[DeviceSpec]) -> VerifyReport:
        runs: list[DeviceReport] = []
        not_compared: list[str] = []
        nondeterministic: list[str] = []
        reference = Reference()
        error = None
        try:
            originals, rewritten = self._trees()
            for spec in specs:
                if spec.replicas not in self.recorded:
                    self.recorded[spec.replicas] = self._record(originals, rewritten, spec)
                recorded = self.recorded[spec.replicas]
                reference = recorded.reference
                run, missing, loose = self._compare(recorded, spec)
                runs.append(run)
                not_compared += [f"{spec.text}: {item}" for item in missing]
                nondeterministic += [item for item in loose if item not in nondeterministic]
        except (NothingToVerify, CountNotSet, ChildFailed, ProjectError, OSError) as problem:
            error = str(problem)
        equal = error is None and bool(runs) and not not_compared and all(run.equal for run in runs)
        return VerifyReport(
            equal, error, tuple(not_compared), tuple(nondeterministic), reference, tuple(runs)
        )

    def _trees(self) -> tuple[dict[str, str], dict[str, str]]:
        here = in_python3(read_sources(self.root))
        if self.options.rewritten is not None:
            return here, read_sources(self.options.rewritten)
        kept = in_python3(original_texts(self.root))
        if kept:
            return {**here, **kept}, here
        return here, rewritten_in_memory(here)

    # ---- the original ----------------------------------------------------------------------------

    def _record(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> _Recorded:
        program, entry = choose_program(originals, self.entry)
        originals, rewritten = with_count(originals, rewritten, program, spec.replicas)
        # The positions again: a count of two digits moves what follows it.
        program, entry = choose_program(originals, self.entry)
        self.entry = entry
        copy = copy_beside(self.options.rewritten or self.root, entry)
        if copy is not None:
            check_copy(copy)
        name = f"original-{spec.replicas}"
        compat = self.options.tf1_python is None
        mode = "compat.v1" if compat else "TensorFlow 1"
        try:
            first = self._run_original(originals, program, spec, name, {})
        except ChildFailed as problem:
            if not self._none_crash(name, program):
                raise
            try:
                first = self._run_original(
                    originals, program, spec, name + "-repaired", {"repair_none": True}
                )
            except ChildFailed:
                raise problem from None
            mode += (
                "; its averaging crashes on None gradients, so only that was repaired (zeros in their "
                "place); otherwise it cannot run"
            )
        if not first.runs:
            raise ChildFailed(
                "The original ended without one training run that could be recorded; nothing was compared."
            )
        repaired = {"repair_none": "repaired" in mode}
        again: dict[str, object] = {**repaired, "replay": str(first.folder)}
        second = self._run_original(originals, program, spec, name + "-again", again)
        free = disagreement(first, second, self.tolerance)
        reference = Reference(first.meta["tensorflow"], first.meta["python"], mode)
        return _Recorded(
            first, second, program, rewritten, reference, free, spec.replicas, originals, again
        )

    def _none_crash(self, name: str, program: TowerProgram) -> bool:
        try:
            meta = probe_tf1.read_meta(str(self.scratch / name / "trace"))
        except OSError:
            return False
        return bool(meta.get("none_gradients")) and not meta["runs"] and meta["ended"] == "error"

    def _run_original(
        self,
        originals: dict[str, str],
        program: TowerProgram,
        spec: DeviceSpec,
        name: str,
        more: dict[str, object],
    ) -> Trace:
        folder = self.scratch / name
        tree = folder / "tree"
        sources = {**originals, **probed(originals, program)}
        compat = self.options.tf1_python is None
        if compat:
            sources = {
                path: rewrite_symbols(text.removeprefix("\ufeff"), path).text
                for path, text in sources.items()
            }
        copy_tree(self.root, tree, sources)
        # Under its own folder: Python puts a script's folder first on its path.
        script = folder / "probe" / "probe_tf1.py"
        script.parent.mkdir()
        shutil.copy(probe_tf1.__file__, script)
        config = {
            **self._config(tree, folder, spec),
            "compat": compat,
            "stages": len(program.stages),
            "together": trained_together(program),
            "before_update": before_update(program),
            "synthetic": self.options.synthetic,
            "tower_gradients": True,
            **more,
        }
        python = self.options.tf1_python or self.options.python
        again = ", a second time" if "replay" in more else ""
        again = ", its weights moved" if "rounding" in more else again
        what = f"The original ({'compat.v1' if compat else 'TensorFlow 1'}, {spec.replicas} towers{again})"
        return self._child([python, str(script)], tree, folder, config, spec, what)

    # ---- the rewritten program -------------------------------------------------------------------

    def _run_rewritten(self, recorded: _Recorded, spec: DeviceSpec, lockstep: bool) -> Trace:
        folder = self.scratch / f"rewritten-{spec.text}{'-lockstep' if lockstep else ''}"
        tree = folder / "tree"
        root = self.options.rewritten or self.root
        copy_tree(root, tree, recorded.rewritten)
        copy = copy_beside(tree, self.entry or "")
        config = {
            **self._config(tree, folder, spec),
            "helpers": None if copy is None else str(copy),
            "replay": str(recorded.first.folder),
            "lockstep": lockstep,
            "tower_gradients": lockstep,
        }
        command = [self.options.python, "-m", "towermigrate.verify.replay_tf2"]
        what = f"The rewritten program on {spec.text}{' in lock-step' if lockstep else ''}"
        return self._child(command, tree, folder, config, spec, what)

    def _config(self, tree: Path, folder: Path, spec: DeviceSpec) -> dict[str, object]:
        return {
            "tree": str(tree),
            "entry": str(tree / (self.entry or "")),
            "arguments": list(self.options.arguments),
            "towers": spec.replicas,
            "steps": self.options.steps,
            "trace": str(folder / "trace"),
            "python_path": [_package_root()],
        }

    def _child(
        self,
        command: list[str],
        tree: Path,
        folder: Path,
        config: dict[str, object],
        spec: DeviceSpec,
        what: str,
    ) -> Trace:
        self.options.progress(f"{what} trains")
        path = folder / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        environment = {
            "PYTHONHASHSEED": "0",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "MPLBACKEND": "Agg",
            "PYTHONUNBUFFERED": "1",
            **spec.environment,
        }
        if "-m" in command:
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, [_package_root(), os.environ.get("PYTHONPATH")])
            )
        log = folder / "output.txt"
        run_child([*command, str(path)], tree, log, environment, self.options.timeout_s, what)
        try:
            return read_trace(folder / "trace")
        except FileNotFoundError:
            raise ChildFailed(f"{what} ended without a recording.{last_words(log)}") from None

    # ---- the comparison --------------------------------------------------------------------------

    def _compare(
        self, recorded: _Recorded, spec: DeviceSpec
    ) -> tuple[DeviceReport, list[str], list[str]]:
        stages = tuple(stage.name for stage in recorded.program.stages)
        made = self._run_rewritten(recorded, spec, lockstep=False)
        result = self._compared(recorded, made, stages)
        shown = result
        if result.differences:
            made, shown = self._in_lockstep(recorded, spec, stages, result, made)
        if result.compared == 0 and not result.differences:
            raise ChildFailed("Nothing was compared: the rewritten program made no training run.")
        first = shown.first()
        equal = first is None
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
            diagnosis=tuple(diagnose(recorded.first, made, shown, stages, spec.replicas)),
            note=note,
        )
        loose = [
            _said(key, stages) for key in sorted(recorded.free) if not key.startswith("tower_")
        ]
        if len(recorded.second.runs) != len(recorded.first.runs):
            loose.append(
                f"the number of training runs: {len(recorded.first.runs)} in one run of the original, "
                f"{len(recorded.second.runs)} in another"
            )
        if not self.options.synthetic:
            loose += _inputs_not_compared(recorded)
        missing = [*result.not_compared, *shown.not_compared, *_too_free(recorded, stages)]
        return report, list(dict.fromkeys(missing)), loose

    def _compared(
        self,
        recorded: _Recorded,
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
            inputs = _own_inputs(recorded, made)
            if inputs:
                result.differences += inputs
                result.max_error = float("inf")
        return result

    def _in_lockstep(
        self,
        recorded: _Recorded,
        spec: DeviceSpec,
        stages: tuple[str, ...],
        free: Comparison,
        made: Trace,
    ) -> tuple[Trace, Comparison]:
        """The same again with the state reset before each step: where it begins, or that nothing does."""
        try:
            again = self._run_rewritten(recorded, spec, lockstep=True)
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
        self, recorded: _Recorded, spec: DeviceSpec, stages: tuple[str, ...], *, adds_up: bool
    ) -> dict[str, float]:
        """What moving the original's weights does to it; nothing is excused where that cannot be told."""
        if self.tolerance == 0:
            return {}
        name = f"original-{spec.replicas}-moved{'-freely' if adds_up else ''}"
        trace = self.scratch / name / "trace"
        if trace.is_dir():
            moved = read_trace(trace)
        else:
            size = moved_by(self.tolerance, adds_up=adds_up)
            more = {**recorded.again, "rounding": size, "rounding_adds_up": adds_up}
            try:
                moved = self._run_original(recorded.originals, recorded.program, spec, name, more)
            except ChildFailed:
                return {}
        return jumps(recorded.first, moved, stages, self.tolerance, adds_up=adds_up)


def rewritten_in_memory(sources: dict[str, str]) -> dict[str, str]:
    """What `towermigrate rewrite` would make of these files.

    Raises:
        NothingToVerify: a program was refused, and so are its reasons said.
    """
    report = rewrite_tree(sources)
    refused = [
        f"{finding.path}:{finding.line}: {finding.rule} {finding.message}"
        for program in report.programs
        if program.status == "refused"
        for finding in program.findings
    ]
    if refused and not any(program.status == "converted" for program in report.programs):
        raise NothingToVerify(
            "The program was refused, so there is nothing to compare: " + "; ".join(refused)
        )
    return {**sources, **report.texts}


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])


def _updates_per_step(made: Trace) -> float | None:
    counts = [run.updates / len(run.stages) for run in made.runs if run.updates is not None]
    return max(counts, key=lambda count: abs(count - 1)) if counts else None


def _own_inputs(recorded: _Recorded, made: Trace) -> list[Difference]:
    """Inputs that the rewritten towers would have had by themselves, where the original determines them."""
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    by_index = {run.index: run for run in made.runs}
    updates: dict[int, int] = {}
    for run in recorded.first.runs:
        step = {stage: updates.get(stage, 0) for stage in run.stages}
        for stage in run.stages:
            updates[stage] = updates.get(stage, 0) + 1
        if run.index not in by_index:
            break
        wanted = recorded.first.arrays(run)
        found = made.arrays(by_index[run.index])
        differences = []
        for key, sure in agreed.items():
            own = found.get("own/" + key)
            if not sure or own is None or key not in wanted or probe_tf1.same(own, wanted[key]):
                continue
            _, tower, name = key.split("/", 2)
            others = [
                other
                for other in wanted
                if other.startswith("input/")
                and other.endswith("/" + name)
                and probe_tf1.same(own, wanted[other])
            ]
            stage = run.stages[0]
            differences.append(
                Difference(
                    step=step[stage],
                    stage=stage,
                    level="forward",
                    name=f"input {name}",
                    replica=int(tower),
                    expected=f"the rows of tower {tower}",
                    actual=f"the rows of tower {others[0].split('/')[1]}"
                    if others
                    else "other rows",
                    error=float("inf"),
                    key=key,
                    run=run.index,
                )
            )
        if differences:
            return differences
    return []


def _inputs_not_compared(recorded: _Recorded) -> list[str]:
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    drawn = {
        key.split("/", 2)[2]
        for run in recorded.first.runs[:1]
        for key in recorded.first.arrays(run)
        if key.startswith("input/") and key not in agreed
    }
    other = {key.split("/", 2)[2] for key, same in agreed.items() if not same}
    return [
        f"input {name}: drawn from a queue or an iterator, in an order that is not fixed; the recorded "
        "rows were given to both programs"
        for name in sorted(drawn)
    ] + [
        f"input {name}: two runs of the original feed different rows; the recorded ones were given to "
        "both programs"
        for name in sorted(other)
    ]


def _too_free(recorded: _Recorded, stages: tuple[str, ...]) -> list[str]:
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
