"""Start one program in its scratch folder with the probe beside it, and read what it recorded."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from towermigrate.verify import probe
from towermigrate.verify.children import ChildFailed, last_words, run_child
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.fence import fenced, refused_paths
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.trace import Trace, read_trace
from towermigrate.verify.xla import dump_flags

_START = (
    "import sys\n\nfrom towermigrate_probe.{module} import main\n\n\n"
    'if __name__ == "__main__":\n    main(sys.argv[1])\n'
)


class Launcher:
    """Starts the programs of one `verify`, each in a folder of its own below `scratch`."""

    def __init__(self, options: VerifyOptions, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch

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
        folders = [self.scratch, *self.options.allow_write]
        config = {**config, "fence": [str(folder) for folder in folders]}
        path = folder / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            "PYTHONHASHSEED": "0",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "MPLBACKEND": "Agg",
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(temporary),
            "MPLCONFIGDIR": str(temporary),
            **spec.environment,
        }
        if spec.kind == "xla":
            environment["XLA_FLAGS"] = dump_flags(folder)
        if "-m" in command:
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, [_package_root(), os.environ.get("PYTHONPATH")])
            )
        log = folder / "output.txt"
        whole = fenced([*command, str(path)], folders)
        try:
            run_child(whole, tree, log, environment, self.options.timeout_s, what)
            return read_trace(folder / "trace")
        except FileNotFoundError:
            raise ChildFailed(f"{what} ended without a recording.{last_words(log)}") from None
        except ChildFailed as failure:
            output = log.read_text(encoding="utf-8", errors="replace")
            refused = refused_paths(output, folders)
            raise ChildFailed(_kept_out(what, refused) + str(failure)) from None


def _kept_out(what: str, paths: list[str]) -> str:
    if not paths:
        return ""
    return (
        f"{what} was kept from changing {', '.join(paths)}: outside of its scratch copy, verify lets a program "
        "change no file. Give the program a folder of its own (arguments after --), a relative one, or allow "
        f"this one with --allow-write {paths[0]}. "
    )


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])
