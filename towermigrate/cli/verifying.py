"""`verify`: train the original and the rewritten program, and compare them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from towermigrate.cli.common import (
    FAILED,
    JSON,
    PATHS,
    WELL,
    finished,
    progress_line,
    terminal,
    unexpected,
)

_DEVICES = re.compile(r"(cpu|gpu|tpu|xla|workers|tpu-compile)(:[\w,.\-]+)?")


class _VerifyCommand(click.Command):
    """Takes what follows `--` aside for the programs; click would make it paths."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            split = args.index("--")
            ctx.meta["program_args"] = tuple(args[split + 1 :])
            args = args[:split]
        # `--devices` with nothing after it, or only another option, means the best that is there.
        given: list[str] = []
        for index, arg in enumerate(args):
            given.append(arg)
            following = args[index + 1] if index + 1 < len(args) else None
            if arg == "--devices" and (following is None or not _DEVICES.fullmatch(following)):
                given.append(best_devices())
        return super().parse_args(ctx, given)


@click.command(cls=_VerifyCommand)
@PATHS
@click.option(
    "--devices",
    multiple=True,
    metavar="[SPEC]",
    help="Where to run the rewritten program, and with how many towers: cpu:4 (4 virtual CPUs), gpu:4, "
    "gpu:0,1. None: the best that is here. May be given several times. Not there yet: tpu, xla:8, "
    "tpu-compile:v5e, workers:2.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Updates to compare of every stage, or as many as the program makes.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="FLOAT",
    help="How far apart equal is, relative to the size of what is compared: a loss, a gradient, a step's "
    "change of a variable. 0 is bitwise.  [default: 1e-6, and 1e-5 with --tf1-python, whose kernels are "
    "others]",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="For each run of a program. There are three for each device spec, and up to three more where they differ.",
)
@click.option(
    "--tf1-python",
    metavar="PYTHON",
    help="A Python interpreter that has TensorFlow 1.x, to run the original. Without it the original runs "
    "under tf.compat.v1.",
)
@click.option(
    "--synthetic",
    is_flag=True,
    help="Feed random inputs of the same shapes and types in place of the program's own.",
)
@click.option(
    "--entry",
    type=click.Path(path_type=Path),
    help="The script that runs the program, where PATH has several.",
)
@click.option(
    "--allow-write",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="A folder in which the programs may write, rename and delete files, besides their scratch copies. May "
    "be given several times.",
)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep what the original recorded there, for --reference.",
)
@click.option(
    "--reference",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Compare with what --save kept there, in place of running the original.",
)
@click.option(
    "--self-test",
    is_flag=True,
    help="Plant one fault of each kind that fits into the rewritten program, and show that each is found.",
)
@JSON
@click.pass_context
def verify(
    ctx: click.Context,
    paths: tuple[Path, ...],
    devices: tuple[str, ...],
    steps: int,
    tolerance: float | None,
    timeout_s: float,
    tf1_python: str | None,
    synthetic: bool,
    entry: Path | None,
    allow_write: tuple[Path, ...],
    save: Path | None,
    reference: Path | None,
    self_test: bool,
    json_file: Path | None,
) -> None:
    """Train the original and the rewritten program and compare them.

    Before `towermigrate rewrite`, what it would write with the settings of pyproject.toml is compared; after it,
    what is there with the kept originals. Both train on the same data, from the same variables, with the same
    random draws, in scratch copies, outside of which they can change no file (see --allow-write). Losses, averaged gradients, variables and optimizer slots are compared at
    every update, and what both print and the files and checkpoints that they write. Arguments after `--` go to the programs.

    Free-running, roundings add up. So what is apart by more than --tolerance is run once more with the state
    reset before every step: the programs are equal if every single step is equal within --tolerance, and the
    free-running ones are within --tolerance times the updates made so far. Where rounding decides (a ReLU, a
    max-pooling), the limit is what the original itself does when its weights move by --tolerance.

    With --self-test: exit code 0 only if the program passes and every planted fault is found, 1 if not.

    Exit code 0: equal; 1: a difference, or something was not compared; 3: a program could not be run.
    """
    for spec in devices:
        if not _DEVICES.fullmatch(spec):
            raise click.BadParameter(
                f"{spec!r} is no device spec; see --help", param_hint="--devices"
            )
    sys.exit(
        _verify(
            paths or (Path("."),),
            devices=devices or (best_devices(),),
            steps=steps,
            tolerance=tolerance,
            timeout_s=timeout_s,
            tf1_python=tf1_python,
            synthetic=synthetic,
            entry=None if entry is None else str(entry),
            arguments=ctx.meta.get("program_args", ()),
            allow_write=allow_write,
            save=save,
            reference=reference,
            self_test=self_test,
            json_file=json_file,
        )
    )


def _verify(
    paths: tuple[Path, ...], *, json_file: Path | None, self_test: bool, **options: Any
) -> int:
    import importlib.util

    if importlib.util.find_spec("tensorflow") is None:
        error = "verify needs TensorFlow: pip install 'towermigrate[tf]'"
        return finished(json_file, no_verdict(error), error, FAILED)
    from towermigrate.config import ConfigError
    from towermigrate.verify import VerifyOptions, check_options, print_report, run_verify

    try:
        for path in paths:
            check_options(VerifyOptions(path, **options))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if self_test:
        from towermigrate.cli.self_testing import self_test as run_self_test

        try:
            return run_self_test(paths, json_file, options)
        except ConfigError as failure:
            raise click.UsageError(str(failure)) from failure
    document = no_verdict("")
    document.update(equal=True, error=None)
    code = WELL
    for path in paths:
        try:
            with progress_line() as progress:
                report = run_verify(VerifyOptions(path, progress=progress, **options))
        except ConfigError as failure:
            raise click.UsageError(str(failure)) from failure
        except Exception as failure:  # exit code 1 would claim a difference
            message = unexpected(failure)
            return finished(json_file, no_verdict(message), message, FAILED)
        print_report(report, terminal(), error=False)
        code = max(code, report.exit_code)
        found = report.to_json()
        document["equal"] = document["equal"] and found["equal"]
        document["error"] = document["error"] or found["error"]
        document["reference"] = found["reference"]
        for key in ("not_compared", "nondeterministic", "runs"):
            document[key] += found[key]
    return finished(json_file, document, document["error"], code)


def best_devices() -> str:
    """The devices of this machine that a bare `--devices` takes: all GPUs, one GPU split in two, or two CPUs."""
    cards = sorted(path.name[6:] for path in Path("/dev").glob("nvidia[0-9]*"))
    if len(cards) > 1:
        return f"gpu:{','.join(cards)}"
    return "gpu:2" if cards else "cpu:2"


def no_verdict(error: str) -> dict[str, Any]:
    """The JSON document of a verify that compared nothing."""
    return {
        "equal": False,
        "error": error,
        "not_compared": [],
        "nondeterministic": [],
        "reference": {"tensorflow": None, "python": None, "mode": None},
        "runs": [],
    }
