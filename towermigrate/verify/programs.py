"""Run the original and the rewritten program, each in a process and a scratch copy, and read what they recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from towermigrate.program import TowerProgram
from towermigrate.symbols import with_own_names
from towermigrate.vendor import check_copy, copy_beside
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.compare import disagreement
from towermigrate.verify.count import CountNotSet, with_count
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.launch import Launcher
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.probe.recording import read_meta
from towermigrate.verify.probes import (
    before_update,
    last_tower_first,
    probed,
    trained_together,
)
from towermigrate.verify.report import Reference
from towermigrate.verify.rounding import Trial
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.tree import choose_program, copy_tree
from towermigrate.verify.workers import COMMAND, config_of_workers, with_free_ports


@dataclass(frozen=True)
class Recorded:
    """The original's two recordings for one tower count, and what they say about it.

    `can_run` is False where they were kept from another TensorFlow than the one that would run it now.
    """

    first: Trace
    second: Trace
    program: TowerProgram | None
    stages: tuple[str, ...]
    rewritten: dict[str, str]
    reference: Reference
    free: dict[str, float]
    towers: int | None
    originals: dict[str, str]
    again: dict[str, object]
    can_run: bool = True


@dataclass(frozen=True)
class Prepared:
    """Both trees with as many towers as a device spec has, the script that runs them, and the program found.

    `unset` says why the number of towers could not be set, where that is known only when the program runs.
    """

    originals: dict[str, str]
    rewritten: dict[str, str]
    entry: str
    program: TowerProgram | None = None
    unset: str | None = None


class Programs:
    """The two programs of one `verify`.

    Args:
        options: what was asked.
        scratch: an empty folder for copies and recordings.
    """

    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.root = options.root
        self.entry = entry_asked(options, self.root)
        self.launcher = Launcher(options, scratch)
        self.more: dict[str, object] = {}

    @property
    def script(self) -> str:
        """The script that is run, once the program was found."""
        return self.entry or ""

    # ---- the original ----------------------------------------------------------------------------

    def prepared(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> Prepared:
        """Both trees with the tower count of `spec`, and why it could not be set, where it could not.

        Raises:
            NothingToVerify: see `choose_program`.
        """
        program, entry = choose_program(originals, rewritten, self.entry)
        unset = None
        try:
            originals, rewritten = with_count(originals, rewritten, program, spec.replicas)
        except CountNotSet as problem:  # it may make so many towers by itself
            unset = str(problem)
        # The positions again: a count of two digits moves what follows it.
        program, entry = choose_program(originals, rewritten, self.entry)
        self.entry = entry
        copy = copy_beside(self.options.rewritten or self.root, entry)
        if copy is not None:
            check_copy(copy)
        return Prepared(originals, rewritten, entry, program, unset)

    def record(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> Recorded:
        """Train the original twice with the tower count of `spec`.

        Raises:
            NothingToVerify: see `choose_program`.
            CountNotSet: it makes another number of towers, and that cannot be set.
            ChildFailed: the original cannot be run, or trained nothing.
        """
        prepared = self.prepared(originals, rewritten, spec)
        originals, rewritten, program = prepared.originals, prepared.rewritten, prepared.program
        assert program is not None
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
        if prepared.unset is not None and first.meta["towers"] != spec.replicas:
            raise CountNotSet(f"{prepared.unset} It makes {first.meta['towers']} by itself.")
        repaired = {"repair_none": "repaired" in mode}
        again: dict[str, object] = {**repaired, "replay": str(first.folder)}
        second = self._run_original(originals, program, spec, name + "-again", again)
        free = disagreement(first, second, self.options.limit)
        reference = Reference(first.meta["tensorflow"], first.meta["python"], mode)
        return Recorded(
            first,
            second,
            program,
            tuple(stage.name for stage in program.stages),
            rewritten,
            reference,
            free,
            spec.replicas,
            originals,
            again,
        )

    def run_moved(self, recorded: Recorded, spec: DeviceSpec, trial: Trial) -> Trace | None:
        """The original once more with its weights moved (`rounding.py`), None where that cannot be run."""
        name = f"original-{spec.replicas}-{trial.name}"
        trace = self.scratch / name / "trace"
        if trace.is_dir():
            return read_trace(trace)
        if not recorded.can_run:
            return None
        more = {**recorded.again, **trial.config()}
        assert recorded.program is not None
        try:
            return self._run_original(recorded.originals, recorded.program, spec, name, more)
        except ChildFailed:
            return None

    def _none_crash(self, name: str, program: TowerProgram) -> bool:
        try:
            meta = read_meta(str(self.scratch / name / "trace"))
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
        tree = self.launcher.tree(folder)
        sources = {**originals, **probed(originals, program)}
        compat = self.options.tf1_python is None
        if compat:
            sources = {
                path: with_own_names(text.removeprefix("\ufeff"), path)
                for path, text in sources.items()
            }
        copy_tree(self.root, tree, sources, self.options.link_over)
        script = self.launcher.write_probe(folder, "probe")
        config = {
            **self.launcher.config(tree, folder, spec, self.entry),
            "compat": compat,
            "stages": len(program.stages),
            "together": trained_together(program),
            "before_update": before_update(program),
            "last_tower_first": last_tower_first(program),
            "synthetic": self.options.synthetic,
            "tower_gradients": True,
            **more,
        }
        python = self.options.tf1_python or self.options.python
        again = ", a second time" if "replay" in more else ""
        again = ", its weights moved" if "rounding" in more else again
        what = f"The original ({'compat.v1' if compat else 'TensorFlow 1'}, {spec.replicas} towers{again})"
        return self.launcher.run([python, str(script)], tree, folder, config, spec, what)

    # ---- the rewritten program -------------------------------------------------------------------

    def run_rewritten(
        self, recorded: Recorded, spec: DeviceSpec, lockstep: bool, *, again: bool = False
    ) -> Trace:
        """Train the rewritten program on what was recorded; `again` is another run of the same."""
        folder = self.scratch / f"rewritten-{spec.text.replace('/', '_')}{which(lockstep, again)}"
        if spec.kind == "workers":
            return with_free_ports(
                lambda: self._on_workers(folder, recorded, spec, lockstep), folder
            )
        tree = self.launcher.tree(folder)
        root = self.options.rewritten or self.root
        copy_tree(root, tree, recorded.rewritten, self.options.link_over)
        copy = copy_beside(tree, self.entry or "")
        config = {
            **self.launcher.config(tree, folder, spec, self.entry),
            "helpers": None if copy is None else str(copy),
            "replay": str(recorded.first.folder),
            "lockstep": lockstep,
            "tower_gradients": lockstep,
            **self.more,
        }
        module = "on_tpu" if spec.kind == "tpu" else "replay_tf2"
        command = [self.options.python, "-m", f"towermigrate.verify.{module}"]
        what = name_of_rewritten(spec, lockstep, again)
        return self.launcher.run(command, tree, folder, config, spec, what)

    def _on_workers(
        self, folder: Path, recorded: Recorded, spec: DeviceSpec, lockstep: bool
    ) -> Trace:
        trees = [self.launcher.tree(folder, number) for number in range(spec.replicas)]
        for tree in trees:
            copy_tree(
                self.options.rewritten or self.root,
                tree,
                recorded.rewritten,
                self.options.link_over,
            )
        workers = config_of_workers(folder, trees, self.entry or "")
        config = {
            **self.launcher.config(trees[0], folder, spec, self.entry),
            **workers,
            "replay": str(recorded.first.folder),
            "lockstep": lockstep,
            "tower_gradients": lockstep,
            **self.more,
        }
        command = [self.options.python, *COMMAND]
        return self.launcher.run(
            command, trees[0], folder, config, spec, name_of_rewritten(spec, lockstep)
        )


def which(lockstep: bool, again: bool) -> str:
    """What the folder of a rewritten program's run has behind its devices."""
    return f"{'-lockstep' if lockstep else ''}{'-again' if again else ''}"


def name_of_rewritten(spec: DeviceSpec, lockstep: bool, again: bool = False) -> str:
    """What a rewritten program's run is called in messages."""
    how = f"{' in lock-step' if lockstep else ''}{', a second time' if again else ''}"
    return f"The rewritten program on {spec.text}{how}"


def entry_asked(options: VerifyOptions, root: Path) -> str | None:
    """The script to run, relative to the root as the sources are named; None where it was not said."""
    if options.entry is None:
        return options.path.name if options.path.is_file() else None
    given = Path(options.entry)
    if given.is_absolute() or not (root / given).is_file():
        given, top = given.resolve(), root.resolve()
        if given.is_relative_to(top):  # else it is not found, and that is said
            return given.relative_to(top).as_posix()
    return options.entry
