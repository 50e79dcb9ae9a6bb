"""A program written by hand with `tf.distribute`, beside an original of which only its graph and its session are known.

The original is watched as for session style, from outside (`probe/session.py`); the other side runs as loop style does
(`replay_tf2.py`). Random draws are the same where each tower makes them in the same order: the original's towers are told
apart by their devices. Inputs are the program's own, and are held against what the original was fed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.source import Tree
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.programs import Programs, Recorded
from towermigrate.verify.session_choice import SessionProgram, chosen
from towermigrate.verify.session_programs import SessionPrograms
from towermigrate.verify.trace import Trace
from towermigrate.verify.tree import NothingToVerify, choose_program


class HandWrittenPrograms(SessionPrograms):
    """The original, watched from outside, and a program that trains in `tf.function`s."""

    of_original: Mapping[str, object] = MappingProxyType({"by_tower": True})

    def __init__(self, options: VerifyOptions, scratch: Path, program: SessionProgram) -> None:
        super().__init__(options, scratch, program)
        self._of_rewritten = Programs(options, scratch)
        self._of_rewritten.entry = program.entry
        self._of_rewritten.launcher = self.launcher
        self._of_rewritten.more = {"hand_written": True}

    def run_rewritten(
        self, recorded: Recorded, spec: DeviceSpec, lockstep: bool, *, again: bool = False
    ) -> Trace:
        """Train the program that was written by hand, from the original's variables."""
        return self._of_rewritten.run_rewritten(recorded, spec, lockstep, again=again)


def hand_written(
    originals: dict[str, str], rewritten: dict[str, str], entry: str | None
) -> SessionProgram | None:
    """The original's script and tower files, where no program of it is known from its source; else None.

    Raises:
        NothingToVerify: several, or no script to run it with.
    """
    try:
        choose_program(originals, rewritten, entry)
    except NothingToVerify:
        tree = Tree(originals)
        finder = LoopFinder(tree)
        files = {path: tree.file(path) for path in sorted(originals)}
        holding = [p for p, file in files.items() if file is not None and list(finder.loops(file))]
        holding = [path for path in holding if rewritten.get(path) != originals[path]]
        return chosen(originals, holding, entry) if holding else None
    return None


def inputs_without_argument(recorded: Recorded, made: Trace) -> list[str]:
    """What the original's runs took that no argument of the steps beside them is like: it was not compared."""
    by_index = {run.index: run for run in made.runs}
    missing: dict[str, None] = {}
    for run in recorded.first.runs:
        if run.index in by_index:
            found = made.arrays(by_index[run.index])
            for key in recorded.first.arrays(run):
                if key.startswith("input/") and f"own/{key}" not in found:
                    missing[key] = None
    return [
        f"input {key.split('/', 2)[2]}: no argument of the steps has its shape, so that it cannot be held against one"
        for key in missing
    ]
