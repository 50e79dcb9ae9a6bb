"""Run the original and the rewritten program of session style, both under the same probe.

Neither is known from its source: the probe watches what they build and run (`probe/session.py`). The original is
run once more first where it leaves an order open that every run of it has (stages or moving averages in one
`sess.run`), so that this order can be fixed in all that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from towermigrate.symbols import with_own_names
from towermigrate.vendor import check_copy, copy_beside
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.compare import disagreement
from towermigrate.verify.count import CountNotSet
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.launch import Launcher
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.programs import Prepared, Recorded, name_of_rewritten, which
from towermigrate.verify.report import Reference
from towermigrate.verify.rounding import Trial
from towermigrate.verify.session_choice import SessionProgram, with_towers
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.tree import copy_tree


class SessionPrograms:
    """The two programs of one `verify` in session style; what `programs.Programs` is for loop style."""

    of_original: Mapping[str, object] = MappingProxyType({})
    """What the original's probe is told besides."""

    def __init__(self, options: VerifyOptions, scratch: Path, program: SessionProgram) -> None:
        self.options = options
        self.scratch = scratch
        self.program = program
        self.launcher = Launcher(options, scratch)

    @property
    def script(self) -> str:
        """The script that is run."""
        return self.program.entry

    def prepared(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> Prepared:
        """Both trees with the tower count of `spec`, and why it could not be set, where it could not."""
        originals, rewritten, unset = with_towers(originals, rewritten, self.program, spec.replicas)
        copy = copy_beside(self.options.rewritten or self.options.root, self.program.entry)
        if copy is not None:
            check_copy(copy)
        return Prepared(originals, rewritten, self.program.entry, unset=unset)

    def record(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> Recorded:
        """Train the original twice with the tower count of `spec`.

        Raises:
            CountNotSet: it makes another number of towers, and that cannot be set.
            ChildFailed: the original cannot be run, or trained nothing.
        """
        prepared = self.prepared(originals, rewritten, spec)
        originals, rewritten = prepared.originals, prepared.rewritten
        name = f"original-{spec.replicas}"
        first = self._run_original(originals, spec, name, {})
        check_recorded(first, prepared.unset, spec)
        order = _open_order(first)
        if order:
            first = self._run_original(originals, spec, name + "-ordered", order)
        again: dict[str, object] = {**order, "replay": str(first.folder)}
        second = self._run_original(originals, spec, name + "-again", again)
        free = disagreement(first, second, self.options.limit)
        mode = "compat.v1" if self.options.tf1_python is None else "TensorFlow 1"
        reference = Reference(first.meta["tensorflow"], first.meta["python"], mode)
        stages = names_of_stages(first)
        return Recorded(
            first, second, None, stages, rewritten, reference, free, None, originals, again
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
        try:
            return self._run_original(recorded.originals, spec, name, more)
        except ChildFailed:
            return None

    def _run_original(
        self, originals: dict[str, str], spec: DeviceSpec, name: str, more: dict[str, object]
    ) -> Trace:
        folder = self.scratch / name
        tree = self.launcher.tree(folder)
        compat = self.options.tf1_python is None
        sources = originals
        if compat:
            sources = {
                path: with_own_names(text.removeprefix("\ufeff"), path)
                for path, text in originals.items()
            }
        copy_tree(self.options.root, tree, sources, self.options.link_over)
        script = self.launcher.write_probe(folder, "session")
        config = {
            **self.launcher.config(tree, folder, spec, self.program.entry),
            "compat": compat,
            "synthetic": self.options.synthetic,
            **self.of_original,
            **more,
        }
        python = self.options.tf1_python or self.options.python
        again = ", a second time" if "replay" in more else ", in a fixed order" if more else ""
        again = ", its weights moved" if "rounding" in more else again
        mode = "compat.v1" if compat else "TensorFlow 1"
        what = f"The original ({mode}, {spec.replicas} towers{again})"
        return self.launcher.run([python, str(script)], tree, folder, config, spec, what)

    def run_rewritten(
        self, recorded: Recorded, spec: DeviceSpec, lockstep: bool, *, again: bool = False
    ) -> Trace:
        """Train the rewritten program on what was recorded; `again` is another run of the same."""
        folder = self.scratch / f"rewritten-{spec.text}{which(lockstep, again)}"
        tree = self.launcher.tree(folder)
        root = self.options.rewritten or self.options.root
        copy_tree(root, tree, recorded.rewritten, self.options.link_over)
        script = self.launcher.write_probe(folder, "session")
        config = {
            **self.launcher.config(tree, folder, spec, self.program.entry),
            **recorded.again,
            "rewritten": True,
            "lockstep": lockstep,
        }
        what = name_of_rewritten(spec, lockstep, again)
        command = [self.options.python, str(script)]
        return self.launcher.run(command, tree, folder, config, spec, what)


def check_recorded(first: Trace, unset: str | None, spec: DeviceSpec) -> None:
    """See that the original trained, and on as many devices as `spec` has.

    Raises:
        ChildFailed: it trained nothing.
        CountNotSet: it made another number of towers, and that could not be set.
    """
    if not first.runs:
        raise ChildFailed(
            "The original ended without one training run that could be recorded; nothing was compared."
        )
    made = len(first.meta["devices"])
    if unset is not None and made != spec.replicas:
        raise CountNotSet(
            f"{unset}; the original puts operations on {made} devices, and {spec.text} is for "
            f"{spec.replicas} towers. Pass what makes it {spec.replicas} to the program, after `--`."
        )


def _open_order(first: Trace) -> dict[str, object]:
    """What every run of the original does at once, in an order that is left to chance."""
    together = {
        str(stage["number"]): stage["together"]
        for stage in first.meta["stages"]
        if len(stage["together"]) > 1
    }
    order = {
        "together": together,
        "averages": first.meta["averages"],
        "writes": first.meta["writes"],
        "reads": first.meta["reads"],
    }
    return {key: value for key, value in order.items() if value}


def names_of_stages(first: Trace) -> tuple[str, ...]:
    """The stages as a person tells them apart: a number is added where two have one name."""
    names = [stage["name"] for stage in first.meta["stages"]]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[: number + 1].count(name)})"
        for number, name in enumerate(names)
    )
