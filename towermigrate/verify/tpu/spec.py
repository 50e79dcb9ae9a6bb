"""Run what `tpu-compile:TYPE` asks for: lower the rewritten program's steps, then compile them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from towermigrate.vendor import copy_beside
from towermigrate.verify.children import ChildFailed, run_child
from towermigrate.verify.count import CountNotSet
from towermigrate.verify.devices import TPU_TYPES, DeviceSpec, TpuType, parse_devices
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.programs import Prepared, Programs
from towermigrate.verify.tpu import compiler
from towermigrate.verify.tpu.report import Blocker, CompileReport, StepCompiled
from towermigrate.verify.trace import Trace
from towermigrate.verify.tree import choose_program, copy_tree

_NEEDED = ("jax", "libtpu")
_FIND = (
    "import importlib.util as u, sys; print(*(n for n in sys.argv[1:] if u.find_spec(n) is None))"
)
_PLACE = re.compile(r"(?P<file>[^\s:\"']+):(?P<line>\d+)")
# Of the time that a program has, the child leaves so much for what it is doing when it stops by itself.
_OF_TIME = 0.9


class NoTpuCompiler(RuntimeError):
    """jax and libtpu are not there; the message says how to install them."""


def check_compiler(options: VerifyOptions) -> None:
    """See that there is a TPU compiler.

    Raises:
        NoTpuCompiler: the Python that is to have jax and libtpu has them not, or is none.
    """
    python = options.tpu_python or options.python
    install = (
        "pip install 'towermigrate[tpu-compile]' (libtpu is 200 MB to fetch), or name with --tpu-python a Python that "
        "has both; it need not have TensorFlow. Nothing was compared."
    )
    try:
        found = subprocess.run(
            [python, "-c", _FIND, *_NEEDED], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise NoTpuCompiler(f"tpu-compile cannot use {python} ({problem}): {install}") from None
    if found.returncode != 0:
        raise NoTpuCompiler(f"tpu-compile cannot use {python}: it is no Python 3. {install}")
    missing = found.stdout.split()
    if missing:
        raise NoTpuCompiler(
            f"tpu-compile needs {' and '.join(missing)}, which {python} does not have: {install}"
        )


class TpuCompiles:
    """The `tpu-compile` specs of one verify; the program is lowered once for all of them."""

    def __init__(self, programs: Programs, options: VerifyOptions, scratch: Path) -> None:
        self.programs = programs
        self.options = options
        self.scratch = scratch
        self._lowered: tuple[Trace, int] | None = None

    def compiled(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> tuple[CompileReport, list[str]]:
        """The report on one spec, and what of the program was not compiled.

        Raises:
            NothingToVerify, CountNotSet, ChildFailed: as where programs are compared.
        """
        if self._lowered is None:
            self._lowered = self._lower(originals, rewritten, spec)
        trace, stages = self._lowered
        steps: list[dict[str, Any]] = trace.meta["steps"]
        if not steps:
            raise ChildFailed("Nothing was compiled: the rewritten program made no training step.")
        outcome = self._compile(trace, spec)
        report = report_of(spec, steps, outcome)
        updates = sum(len(step["updates"]) for step in steps)
        missing = []
        if updates < stages:
            why = "ended" if trace.meta["ended"] == "program" else "was ended (--timeout)"
            missing.append(
                f"{stages - updates} of {stages} stages: the program {why} before they trained"
            )
        return report, missing

    def _lower(
        self, originals: dict[str, str], rewritten: dict[str, str], spec: DeviceSpec
    ) -> tuple[Trace, int]:
        """The program's steps on one replica, with the shapes that one of its own number of towers has."""
        program, _ = choose_program(originals, rewritten, self.programs.entry)
        towers = program.loop.count.value or 1
        shapes: list[dict[str, Any]] = []
        if towers > 1:
            several = parse_devices(f"cpu:{towers}")
            prepared = self.programs.prepared(originals, rewritten, several)
            what = f"The rewritten program on {towers} replicas, to see what each takes,"
            # If it cannot run so, it may on one, with shapes of its own.
            with contextlib.suppress(ChildFailed):
                seen = self._run(prepared, several, what, "shapes", {"only_shapes": True})
                shapes = seen.meta["steps"]
        prepared = self.programs.prepared(originals, rewritten, spec)
        if prepared.unset is not None:
            raise CountNotSet(prepared.unset)
        what = "The rewritten program on one replica, to be lowered for a TPU,"
        more = {"shapes": shapes, "towers_of_shapes": towers}
        try:
            return self._run(prepared, spec, what, "lowered", more), len(program.stages)
        except ChildFailed as problem:
            if not self.options.arguments:
                raise
            said = "tpu-compile runs it with one tower, so what is passed after -- must not ask for others. "
            raise ChildFailed(said + str(problem)) from None

    def _run(
        self, prepared: Prepared, spec: DeviceSpec, what: str, name: str, more: dict[str, object]
    ) -> Trace:
        launcher = self.programs.launcher
        folder = self.scratch / name
        tree = launcher.tree(folder)
        root = self.options.rewritten or self.options.root
        copy_tree(root, tree, prepared.rewritten, self.options.link_over)
        copy = copy_beside(tree, prepared.entry)
        assert prepared.program is not None
        config = {
            **launcher.config(tree, folder, spec, prepared.entry),
            "helpers": None if copy is None else str(copy),
            "stages": len(prepared.program.stages),
            "seconds": self.options.timeout_s * _OF_TIME,
            "only_shapes": False,
            "shapes": [],
            "towers_of_shapes": 1,
            **more,
        }
        command = [self.options.python, "-m", "towermigrate.verify.tpu.lower_tf2"]
        return launcher.run(command, tree, folder, config, spec, what)

    def _compile(self, trace: Trace, spec: DeviceSpec) -> dict[str, Any]:
        assert spec.tpu is not None
        texts = [str(trace.folder / step["text"]) for step in trace.meta["steps"] if step["text"]]
        if not texts:
            return {"steps": []}
        self.options.progress(f"The TPU compiler compiles for {spec.tpu}")
        folder = self.scratch / f"compiled-{spec.tpu}"
        folder.mkdir(exist_ok=True)
        # In a folder of its own: Python puts a script's folder first on its path.
        script = Path(shutil.copy(compiler.__file__, folder))
        kind = TPU_TYPES[spec.tpu]
        outcome = folder / "outcome.json"
        job = {"topology": kind.topology, "texts": texts, "outcome": str(outcome)}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        run_child(
            [self.options.tpu_python or self.options.python, str(script), str(folder / "job.json")],
            folder,
            folder / "output.txt",
            compiler_environment(kind, folder),
            self.options.timeout_s,
            "The TPU compiler",
            folders=[folder],
            scratch=self.scratch,
        )
        found: dict[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
        return found


def compiler_environment(kind: TpuType, folder: Path) -> dict[str, str]:
    """What the compiler's process finds in its environment, so that it looks for no TPU and writes in `folder` only."""
    return {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": kind.accelerator,
        "TPU_WORKER_HOSTNAMES": "localhost",
        # No TPU is taken, so that no other process has to be kept from it.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_LOG_DIR": str(folder),
        "TMPDIR": str(folder),
        "TPU_MIN_LOG_LEVEL": "3",
        "TPU_STDERR_LOG_LEVEL": "3",
    }


def report_of(
    spec: DeviceSpec, steps: list[dict[str, Any]], outcome: dict[str, Any]
) -> CompileReport:
    """What was lowered, put together with what the compiler made of it."""
    assert spec.tpu is not None
    compiled = iter(outcome["steps"])
    made = []
    for step in steps:
        came = next(compiled) if step["text"] else None
        blockers = [Blocker(**each) for each in step["blockers"]]
        if came is not None and not came["compiles"]:
            blockers = of_compiler(came["said"], step.get("places", []))
        fine = came is not None and came["compiles"]
        made.append(
            StepCompiled(
                step["step"],
                step["file"],
                step["line"],
                tuple(step["updates"]),
                tuple(step["inputs"]),
                step["towers"],
                tuple(step["left_out"]),
                fine,
                came["seconds"] if came is not None and fine else None,
                came["hbm_bytes"] if came is not None and fine else None,
                came["flops"] if came is not None and fine else None,
                tuple(blockers),
            )
        )
    versions = {name: str(value) for name, value in outcome.items() if name != "steps"}
    return CompileReport(spec.text, spec.tpu, tuple(made), versions)


def of_compiler(said: str, places: list[list[Any]]) -> list[Blocker]:
    """What the TPU compiler says, at the program's lines that it names; `places` are file, line and text of all of them."""
    why = " ".join(said.split())[:500]
    known = {(file, line): source for file, line, source in places}
    named = dict.fromkeys((match["file"], int(match["line"])) for match in _PLACE.finditer(said))
    at = [place for place in named if place in known]
    return [Blocker(why, file=file, line=line, source=known[file, line]) for file, line in at] or [
        Blocker(why)
    ]
