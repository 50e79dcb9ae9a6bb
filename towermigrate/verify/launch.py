"""Start one program in its scratch folder with the probe beside it, and read what it recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from towermigrate.verify import probe
from towermigrate.verify.children import ChildFailed, Ended, end_of, lacked, last_words, run_child
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.fence import asks_guardian, refused_paths
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.probe.recording import read_meta
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.worker_traces import merge
from towermigrate.verify.workers import environment as environment_of_workers
from towermigrate.verify.workers import failed_worker, folder_of
from towermigrate.verify.xla import dump_flags

_START = (
    "import sys\n\nfrom towermigrate_probe.{module} import main\n\n\n"
    'if __name__ == "__main__":\n    main(sys.argv[1])\n'
)

_MISSING = re.compile(
    r"No such file or directory: '(?P<python>[^'\n]+)'"
    r"|(?<![^\s;:'\"])(?P<tensorflow>[^\s;:'\"]+); No such file or directory"
    r"|(?<![^\s:'\"])(?P<numpy>[^\s:'\"]+) not found\."
)

_OF_LIBRARIES = {".keras", ".cache", ".config", "__pycache__"}
_OF_DRIVERS = "/dev/char/"  # names of the devices, which NVIDIA's driver wants to make

# On GPUs each program would else choose among the kernels of cuDNN by their speed, other ones each time, round to the 10
# bits of TF32, and take all of the memory from the one beside it.
_ON_GPUS = {
    "NVIDIA_TF32_OVERRIDE": "0",
    "TF_CUDNN_DETERMINISTIC": "1",
    "TF_CUDNN_USE_AUTOTUNE": "0",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


class Launcher:
    """Starts the programs of one `verify`, each in a folder of its own below `scratch`."""

    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.started = False
        self.asked = True
        self.kept_out: dict[str, None] = {}

    def tree(self, folder: Path, worker: int | None = None) -> Path:
        """Where the scratch copy of a run, or of one of its workers, is: under the tree's own name, with nothing of
        verify's beside it."""
        within = folder / "tree" if worker is None else folder / "tree" / f"worker-{worker}"
        return within / (self.options.root.resolve().name or "root")

    def write_probe(self, folder: Path, module: str) -> Path:
        """The script that runs a program under the probe; `module` of the probe's package has its `main`."""
        # Under its own folder: Python puts a script's folder first on its path.
        script = folder / "probe" / "run.py"
        copy = script.parent / "towermigrate_probe"
        shutil.copytree(
            Path(probe.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
        )
        script.write_text(_START.format(module=module), encoding="utf-8")
        return script

    def config(
        self, tree: Path, folder: Path, spec: DeviceSpec, entry: str | None
    ) -> dict[str, object]:
        """What every program's probe is told."""
        return {
            "tree": str(tree),
            "entry": str(tree / (entry or "")),
            "arguments": list(self.options.arguments),
            "towers": spec.replicas,
            "xla": spec.kind == "xla",
            "steps": self.options.steps,
            "trace": str(folder / "trace"),
            "python_path": [_package_root()],
        }

    def run(
        self,
        command: list[str],
        tree: Path,
        folder: Path,
        config: dict[str, object],
        spec: DeviceSpec,
        what: str,
    ) -> Trace:
        """Run `command` with its configuration in `tree`. It can change files in the scratch folder only.

        Raises:
            ChildFailed: it failed, left no recording, or wanted to change files that are not its own.
        """
        self.options.progress(f"{what} trains")
        own = [folder / name for name in ("tree", "trace", "tmp")]
        for each in own:
            each.mkdir(exist_ok=True)
        folders = [*own, *self.options.allow_write]
        compiled = self.scratch / "cuda"
        if spec.kind == "gpu":
            # What the driver compiles in one run serves the next one.
            compiled.mkdir(exist_ok=True)
            folders.append(compiled)
        # Where the kernel asks the guardian, that knows what was refused, and Python need not be told.
        config = {**config, "fence": None if asks_guardian() else [str(each) for each in folders]}
        path = folder / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        temporary = folder / "tmp"
        environment = {
            "PYTHONHASHSEED": "0",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "MPLBACKEND": "Agg",
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(temporary),
            "MPLCONFIGDIR": str(temporary),
            **spec.environment,
        }
        if spec.kind == "gpu":
            environment.update((k, v) for k, v in _ON_GPUS.items() if k not in os.environ)
            environment["CUDA_CACHE_PATH"] = str(compiled)
        if spec.kind == "xla":
            environment["XLA_FLAGS"] = dump_flags(folder / "trace")
        workers = spec.replicas if spec.kind == "workers" and "workers" in config else 0
        if workers:
            environment.update(environment_of_workers())
        if "-m" in command:
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, [_package_root(), os.environ.get("PYTHONPATH")])
            )
        log = folder / "output.txt"
        ended = Ended()
        try:
            ended = run_child(
                [*command, str(path)],
                tree,
                log,
                environment,
                self.options.timeout_s,
                what,
                folders=folders,
                scratch=self.scratch,
            )
            if workers or (folder / "trace" / "meta.json").is_file():
                self._note(folders, ended)
                if workers:
                    return merge(folder / "trace", workers, _within(what))
                return read_trace(folder / "trace")
            failure = f"{what} ended without a recording: it left by os._exit, or removed it."
            failure += lacked(log) + last_words(log)
        except ChildFailed as problem:
            ended = problem.ended
            failure = _failure(problem, what, folder / "trace", log)
        self._note(folders, ended)
        output = end_of(log)
        refused = refused_paths(output, folders, ended.refused)
        missing = missing_paths(output, tree, self.options.root)
        raise ChildFailed(
            _kept_out(what, refused, self.scratch, self.options.allow_write, output)
            + _not_copied(what, missing)
            + failure
        )

    def _note(self, folders: Sequence[Path], ended: Ended) -> None:
        """Keep for the report what held this program, and what it was kept from though it went on."""
        self.started = True
        self.asked = self.asked and ended.asked
        self.kept_out.update(
            dict.fromkeys(_programs_own(refused_paths("", folders, ended.refused)))
        )


def _failure(problem: ChildFailed, what: str, trace: Path, log: Path) -> str:
    """What to say of a program that failed: of several workers which one, and in its own words where it has some."""
    ended = problem.ended
    failed = failed_worker(trace)
    if failed is not None and ended.cause is None:
        worker, how = failed
        what, trace = f"Worker {worker} of {_within(what)}", folder_of(trace, worker)
        ended = how
        failure = f"{how.said(what) or f'{what} ended without a recording.'}{lacked(log)}{last_words(log)}"
    else:
        failure = str(problem)
    said = _own_error(trace)
    if said is not None and ended.code is not None and ended.cause is None:
        failure = f"{what} failed: {said}.{lacked(log)}{last_words(log)}"
    return failure


def _within(what: str) -> str:
    """A name of a run as it stands within a sentence."""
    return what[0].lower() + what[1:]


def _own_error(trace: Path) -> str | None:
    """What the probe says of the program's end."""
    try:
        error = read_meta(str(trace))["error"]
    except (OSError, ValueError, KeyError):
        return None
    return str(error) if error else None


def _kept_out(
    what: str, paths: list[str], scratch: Path, allowed: Sequence[Path], output: str
) -> str:
    # Drivers go on without these names: they are not what a program failed of.
    paths = [path for path in paths if not path.startswith(_OF_DRIVERS)]
    if not paths:
        return ""
    users = [path for path in paths if not Path(path).is_relative_to(scratch.resolve())]
    users = _programs_own(users) or users
    # What it speaks of first: the rest it may have got over.
    users.sort(key=lambda path: path not in output)
    if not users:
        return f"{what} was kept from changing what is verify's own: {', '.join(paths[:10])}. "
    shared = any(path.startswith("/dev/shm") for path in users)
    return (
        f"{what} was kept from changing {', '.join(users[:10])}: outside of its scratch copy, verify lets a program "
        "change no file. Give the program a folder of its own (arguments after --), a relative one, or allow "
        f"this one with --allow-write {_to_allow(Path(users[0]), allowed)}. "
        + ("Shared memory of other programs stays as it is. " if shared else "")
    )


def _programs_own(paths: list[str]) -> list[str]:
    """Without what libraries keep for themselves, which they do without."""
    return [
        path
        for path in paths
        if not _OF_LIBRARIES & set(Path(path).parts) and not path.startswith(_OF_DRIVERS)
    ]


def _to_allow(path: Path, allowed: Sequence[Path]) -> Path:
    """What to allow, so that `path` can be changed: what is not there yet is made in its folder."""
    while not path.exists() and path != path.parent:
        path = path.parent
    # To remove and make a folder again is to change the one that it is in.
    return path.parent if any(path == each.resolve() for each in allowed) else path


def missing_paths(output: str, tree: Path, root: Path) -> list[Path]:
    """What a program did not find in its scratch copy, `tree`, and what is there beside the user's tree, `root`."""
    found: dict[Path, None] = {}
    for match in _MISSING.finditer(output):
        name = next(group for group in match.groups() if group)
        inside = os.path.relpath(os.path.normpath(tree / name), tree)
        path = Path(os.path.normpath(root.resolve() / inside))
        if path.exists() and not os.path.lexists(tree / inside):
            found[path] = None
    return list(found)


def _not_copied(what: str, paths: list[Path]) -> str:
    if not paths:
        return ""
    return (
        f"{what} looks for {', '.join(map(str, paths[:5]))}, which is not copied, as it is not below PATH. Name the "
        "folder that holds both as PATH, with the script in --entry, or pass the program an absolute path "
        "(arguments after --). "
    )


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])
