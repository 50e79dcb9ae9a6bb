"""`verify`: train the original and the rewritten program, and compare them."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from dataclasses import dataclass
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
    write_report,
)

_DEVICES = re.compile(r"(cpu|gpu|xla|workers|tpu-compile)(:[\w,.\-]+)?|tpu(:\S+)?")


_LEVELS = (
    "structure", "initial", "input", "forward", "gradient", "update", "trajectory", "output",
)  # fmt: skip


def _steps(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """A number of updates, or `all`."""
    from towermigrate.verify.options import ALL_STEPS

    if value == "all":
        return ALL_STEPS
    if not value.isdigit() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a number of updates nor `all`.", ctx, param)
    return int(value)


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
    help="Where to run the rewritten program, and with how many towers: cpu:4 (4 virtual CPUs), xla:4 "
    "(the same, its steps compiled by XLA; loop style), workers:4 (4 processes under MultiWorkerMirroredStrategy; loop "
    "style), gpu:4, gpu:0,1; tpu, tpu:NAME, tpu:local (loop style; one tower a core); tpu-compile:v5e compiles each step "
    "for that TPU, without one, and compares no numbers (loop style; needs the extra tpu-compile). None: the best that is "
    "here. May be given several times.",
)
@click.option(
    "--steps",
    callback=_steps,
    metavar="N|all",
    default="5",
    show_default=True,
    help="Updates to compare of every stage, or as many as the program makes; all: run it to its end.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="FLOAT",
    help="How far apart equal is, relative to the size of what is compared: a loss, a gradient, a step's "
    "change of a variable. 0 is bitwise.  [default: 1e-6; 1e-5 with --tf1-python, 1e-4 on xla:N, whose "
    "kernels are others, and 1e-2 on tpu, which multiplies as bfloat16]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Excuse nothing: neither roundings that decide (ReLU, max-pooling) or add up, nor what the original itself "
    "leaves open.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="For each run of a program. There are three for each device spec, one more where they differ, and up to twelve where roundings may decide.",
)
@click.option(
    "--tf1-python",
    metavar="PYTHON",
    help="A Python interpreter that has TensorFlow 1.x, to run the original. Without it the original runs "
    "under tf.compat.v1.",
)
@click.option(
    "--tpu-python",
    metavar="PYTHON",
    help="A Python interpreter that has jax and libtpu, for tpu-compile: devices. Without it that is the one that runs "
    "towermigrate.",
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
    "--link-over",
    default="8M",
    show_default=True,
    metavar="SIZE",
    help="Larger files are not copied for each run, but linked: programs can read them and not write them. Where "
    "the system cannot see to that, all are copied.",
)
@click.option(
    "--max-copy",
    default="4G",
    show_default=True,
    metavar="SIZE",
    help="The most to copy for each run.",
)
@click.option(
    "--rewritten",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of the rewritten program, or of one written by hand, where PATH holds the original only. Its files "
    "have the names of the original's.",
)
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the outcome there as JUnit XML, for CI servers.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the outcome there as one HTML page: the verdict of each level, losses and differences step by step.",
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
    strict: bool,
    timeout_s: float,
    tf1_python: str | None,
    tpu_python: str | None,
    synthetic: bool,
    entry: Path | None,
    allow_write: tuple[Path, ...],
    link_over: str,
    max_copy: str,
    rewritten: Path | None,
    junit_file: Path | None,
    html_file: Path | None,
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
    free-running ones are within --tolerance times the updates made so far. Where a rounding decides (a ReLU, a
    max-pooling), one array at one step may be excused: if the original jumps at that step in the same elements when
    its weights move by --tolerance, if the difference is no factor and no drift, and if most steps and most arrays are
    within the tolerance. Against TensorFlow 1 (--tf1-python) and on xla:N, whose kernels round otherwise, what the
    original determines no better (the gradient of a bias before batch norm) is excused at any step, as far as the
    original moves itself there when its weights move by --tolerance. Each excuse stands in the JSON report with its
    numbers; --strict excuses nothing.

    With --self-test: exit code 0 only if the program passes and every planted fault is found, 1 if not.

    Exit code 0: equal (or, where only tpu-compile: was asked for, compiled); 1: a difference, or something was not compared or
    does not compile; 3: a program could not be run; 129, 130 and
    143: ended by SIGHUP, SIGINT and SIGTERM.
    """
    for spec in devices:
        if not _DEVICES.fullmatch(spec):
            raise click.BadParameter(
                f"{spec!r} is no device spec; see --help", param_hint="--devices"
            )
    code = _verify(
        paths or (Path("."),),
        devices=devices or (best_devices(),),
        steps=steps,
        tolerance=tolerance,
        strict=strict,
        timeout_s=timeout_s,
        tf1_python=tf1_python,
        tpu_python=tpu_python,
        synthetic=synthetic,
        entry=None if entry is None else str(entry),
        arguments=ctx.meta.get("program_args", ()),
        allow_write=allow_write,
        sizes={"link_over": link_over, "max_copy": max_copy},
        rewritten=rewritten,
        files=_Files(json_file, junit_file, html_file, _name_of(paths)),
        save=save,
        reference=reference,
        self_test=self_test,
    )
    sys.exit(code)


def _name_of(paths: tuple[Path, ...]) -> str:
    """What is verified, as a report's heading says it: the folder's name for the one that is worked in."""
    return ", ".join(str(path) for path in paths if path != Path(".")) or Path.cwd().name


@dataclass(frozen=True)
class _Files:
    """The files that the outcome is written to; `name` is what was verified."""

    json: Path | None
    junit: Path | None
    html: Path | None
    name: str

    def finished(self, document: dict[str, Any], error: str | None, code: int) -> int:
        if self.junit is not None:
            from towermigrate.reports.junit import verify_junit

            code = max(code, write_report(self.junit, verify_junit(document, self.name)))
        if self.html is not None:
            from towermigrate.reports.verify_page import verify_page

            command = shlex.join(["towermigrate", *sys.argv[1:]])
            code = max(code, write_report(self.html, verify_page(document, self.name, command)))
        return finished(self.json, document, error, code)


def _verify(
    paths: tuple[Path, ...],
    *,
    files: _Files,
    sizes: dict[str, str],
    self_test: bool,
    **options: Any,
) -> int:
    import importlib.util

    from towermigrate.verify.scratch import parse_size

    for name, text in sizes.items():
        try:
            options[name] = parse_size(text)
        except ValueError:
            raise click.UsageError(
                f"--{name.replace('_', '-')} {text} is no size, as 500M or 20G."
            ) from None

    if importlib.util.find_spec("tensorflow") is None:
        error = "verify needs TensorFlow: pip install 'towermigrate[tf]'"
        return files.finished(no_verdict(error), error, FAILED)
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
            return run_self_test(paths, files.json, options)
        except ConfigError as failure:
            raise click.UsageError(str(failure)) from failure
    document = no_verdict("")
    document.update(equal=True, error=None, levels=None)
    code = WELL
    for path in paths:
        try:
            with progress_line(piped=True) as progress:
                report = run_verify(VerifyOptions(path, progress=progress, **options))
        except ConfigError as failure:
            raise click.UsageError(str(failure)) from failure
        except SystemExit as ended:  # by a signal: what waits for a report gets one that says so
            if isinstance(ended.code, int) and ended.code > 128:
                message = f"verify was ended by {signal.Signals(ended.code - 128).name}"
                files.finished(no_verdict(message), message, ended.code)
            raise
        except Exception as failure:  # exit code 1 would claim a difference
            message = unexpected(failure)
            return files.finished(no_verdict(message), message, FAILED)
        print_report(report, terminal(), error=False)
        code = max(code, report.exit_code)
        found = report.to_json()
        document["equal"] = document["equal"] and found["equal"]
        document["error"] = document["error"] or found["error"]
        document["reference"] = found["reference"]
        document["protection"] = found["protection"]
        document["levels"] = _worse(document["levels"], found["levels"])
        for key in ("not_compared", "nondeterministic", "excuses", "runs", "kept_out"):
            document[key] += found[key]
    return files.finished(document, document["error"], code)


def _worse(one: dict[str, str] | None, other: dict[str, str]) -> dict[str, str]:
    order = ("equal", "not compared", "different")
    if one is None:
        return other
    return {level: max(one[level], verdict, key=order.index) for level, verdict in other.items()}


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
        "levels": dict.fromkeys(_LEVELS, "not compared"),
        "excuses": [],
        "reference": {"tensorflow": None, "python": None, "mode": None},
        "runs": [],
        "protection": None,
        "kept_out": [],
    }
