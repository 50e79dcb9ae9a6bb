"""Keep what an original recorded (`--save`), and take it in place of running the original again (`--reference`).

A folder holds one reference for each tower count, `towers-2/`: the recordings of both runs (`first/`, `second/`) and
`reference.json` with what they were made with. Arrays are `.npz` files without pickle. The original's sources have
to be there still: a reference fits the very program that it was made of.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from towermigrate import __version__
from towermigrate.tree import import_closure
from towermigrate.verify.compare import disagreement
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.options import TF1_TOLERANCE, VerifyOptions
from towermigrate.verify.programs import Prepared, Programs, Recorded
from towermigrate.verify.report import Reference
from towermigrate.verify.session_programs import SessionPrograms, check_recorded, names_of_stages
from towermigrate.verify.trace import read_trace

# Of the format, and of what makes a recording fit a rewritten run: keys, draws, what is recorded at all. Another
# version is refused.
VERSION = 3

_ABOUT = "reference.json"
_TRACES = ("first", "second")


class ReferenceDoesNotFit(ValueError):
    """What is kept cannot stand for the original; the message says why and what to do."""


def place_of_reference(folder: Path, spec: DeviceSpec) -> Path:
    """Where what is kept for the tower count of `spec` goes. Raises ReferenceDoesNotFit where something else is there."""
    target = folder / f"towers-{spec.replicas}"
    if target.exists() and not (target / _ABOUT).is_file():
        raise ReferenceDoesNotFit(f"{target} is there already and holds no reference.")
    return target


def save_reference(
    recorded: Recorded,
    programs: Programs | SessionPrograms,
    originals: Mapping[str, str],
    spec: DeviceSpec,
    folder: Path,
) -> None:
    """Keep the original's recordings for the tower count of `spec` in `folder`, in place of such that are there.

    Args:
        programs: what recorded them.
        originals: the original's sources as they were read, before a tower count was set in them.
    """
    target = place_of_reference(folder, spec)
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    options = programs.options
    for name, trace in zip(_TRACES, (recorded.first, recorded.second), strict=True):
        shutil.copytree(trace.folder, target / name)
    about = {
        "version": VERSION,
        "towermigrate": __version__,
        "towers": spec.replicas,
        **_made_with(options, originals, programs.script),
        "style": "session" if recorded.program is None else "loop",
        "tf1": options.tf1_python is not None,
        "mode": recorded.reference.mode,
        "again": {key: value for key, value in recorded.again.items() if key != "replay"},
    }
    (target / _ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def recall_reference(
    folder: Path,
    programs: Programs | SessionPrograms,
    originals: dict[str, str],
    rewritten: dict[str, str],
    spec: DeviceSpec,
) -> Recorded:
    """What was kept in `folder` for the tower count of `spec`, as if it had been recorded now.

    Raises:
        ReferenceDoesNotFit: there is none, or it was made of something else.
        NothingToVerify, CountNotSet: as for a recording.
    """
    kept = folder.resolve() / f"towers-{spec.replicas}"  # the children run elsewhere
    about = _about(folder, kept, spec)
    prepared = programs.prepared(originals, rewritten, spec)
    style = "loop" if isinstance(programs, Programs) else "session"
    made_with = _made_with(programs.options, originals, prepared.entry)
    _check(kept, about, {**made_with, "style": style})
    try:
        first, second = (read_trace(kept / name) for name in _TRACES)
    except (OSError, ValueError, KeyError) as problem:
        raise ReferenceDoesNotFit(f"{kept}: the recording cannot be read ({problem}).") from None
    if isinstance(programs, SessionPrograms):
        check_recorded(first, prepared.unset, spec)
    return _recorded(first, second, prepared, about, programs.options, spec)


def with_limit_of(options: VerifyOptions) -> VerifyOptions:
    """The options with the tolerance for real TensorFlow 1 where the reference was made under it."""
    if options.reference is None or options.tolerance is not None:
        return options
    for path in sorted(options.reference.glob(f"towers-*/{_ABOUT}")):
        if _read(path).get("tf1"):
            return replace(options, tolerance=TF1_TOLERANCE)
    return options


def _recorded(
    first: Any,
    second: Any,
    prepared: Prepared,
    about: Mapping[str, Any],
    options: VerifyOptions,
    spec: DeviceSpec,
) -> Recorded:
    program = prepared.program
    stages = (
        names_of_stages(first) if program is None else tuple(each.name for each in program.stages)
    )
    return Recorded(
        first,
        second,
        program,
        stages,
        prepared.rewritten,
        Reference(first.meta["tensorflow"], first.meta["python"], f"{about['mode']}, kept"),
        disagreement(first, second, options.limit),
        None if program is None else spec.replicas,
        prepared.originals,
        {**about["again"], "replay": str(first.folder)},
        # What moves when its weights are moved is measured on the very kernels that it was recorded with.
        can_run=bool(about["tf1"]) == (options.tf1_python is not None),
    )


def _made_with(options: VerifyOptions, originals: Mapping[str, str], entry: str) -> dict[str, Any]:
    """What the recordings depend on, besides the tower count."""
    paths = import_closure(dict(originals), [entry])
    return {
        "entry": entry,
        "arguments": list(options.arguments),
        "steps": options.steps,
        "synthetic": options.synthetic,
        "sources": {
            path: hashlib.sha256(originals[path].encode("utf-8", "surrogatepass")).hexdigest()
            for path in sorted(paths)
        },
    }


def _about(folder: Path, kept: Path, spec: DeviceSpec) -> dict[str, Any]:
    if not (kept / _ABOUT).is_file():
        there = sorted(path.parent.name[7:] for path in folder.glob(f"towers-*/{_ABOUT}"))
        said = f"one for {', '.join(there)} towers" if there else "no reference"
        raise ReferenceDoesNotFit(
            f"--reference {folder} holds {said}, and {spec.text} needs one for {spec.replicas} towers; "
            "`towermigrate verify --save` makes one."
        )
    about = _read(kept / _ABOUT)
    if about.get("version") != VERSION:
        raise ReferenceDoesNotFit(
            f"{kept / _ABOUT} has version {about.get('version')!r} (towermigrate "
            f"{about.get('towermigrate', 'unknown')}), and this is version {VERSION} (towermigrate "
            f"{__version__}): make it again with --save."
        )
    return about


def _read(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ReferenceDoesNotFit(f"{path} cannot be read: {problem}") from None
    if not isinstance(about, dict):
        raise ReferenceDoesNotFit(f"{path} is no reference.")
    return about


def _check(kept: Path, about: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """See that the reference was made of the program that is there, and as it is asked for now."""
    sources, ours = about.get("sources", {}), now["sources"]
    other = sorted(
        path for path in sources.keys() | ours.keys() if sources.get(path) != ours.get(path)
    )
    if other:
        raise ReferenceDoesNotFit(
            f"{kept} was made of other sources: {', '.join(other[:5])}"
            f"{' and more' if len(other) > 5 else ''}. Make it again with --save."
        )
    for key, said in (
        ("entry", "another script"),
        ("style", "another style of output"),
        ("arguments", "other arguments"),
        ("steps", "another number of --steps"),
        ("synthetic", "another choice of --synthetic"),
    ):
        if about.get(key) != now[key]:
            raise ReferenceDoesNotFit(
                f"{kept} was made with {said}: {about.get(key)!r}, and now it is {now[key]!r}."
            )
