"""The commands. Argument handling only: all work is done by `migrate`, `project`, `verify` and `demo`."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from towermigrate import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from towermigrate.migrate import Migration

# What each exit code means; the highest that applies wins.
WELL, DIFFERENT, BAD_USAGE, FAILED = 0, 1, 2, 3

_DEVICES = re.compile(r"(cpu|gpu|tpu|xla|workers|tpu-compile)(:[\w,.\-]+)?")

_PATHS = click.argument(
    "paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]..."
)
_JSON = click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the outcome there for programs to read, on every exit code but 2 (bad usage).",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Take TensorFlow 1 tower programs to tf.distribute, and prove that the training did not change."""


@main.command()
@_PATHS
@_JSON
def scan(paths: tuple[Path, ...], json_file: Path | None) -> None:
    """Say what tower programs are in PATH and what would become of each.

    Writes nothing. Exit code 1: a program would be refused; 3: a file could not be read.
    """
    sys.exit(
        _over_trees(paths, json_file, "keep", "would change", lambda migrations, console: WELL)
    )


@main.command()
@_PATHS
@click.option("--diff", "show_diff", is_flag=True, help="Print the changes, write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if something would change.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Leave PATH as it is, and write a copy of its Python files there, rewritten.",
)
@click.option(
    "--refused",
    type=click.Choice(["keep", "symbols"]),
    default="keep",
    help="What to do with the file of a refused program: keep it as it is, or change its TF1 names.",
)
@click.option(
    "--style",
    type=click.Choice(["auto", "loop", "session"]),
    default="auto",
    help="The form of rewritten programs: loop (plain Python loops around tf.functions) is what auto takes; "
    "session (a graph in a session) is not there yet.",
)
@_JSON
def rewrite(
    paths: tuple[Path, ...],
    show_diff: bool,
    check: bool,
    out: Path | None,
    refused: str,
    style: str,
    json_file: Path | None,
) -> None:
    """Rewrite the tower programs in PATH, and TF1 names in all its files.

    The originals are kept in PATH/.towermigrate; `towermigrate undo` puts them back. A program whose form is
    not understood stays as it was, with a finding that says why. Exit code 1: a program was refused, or
    --check found something to change; 3: a file could not be read or written.
    """
    if style == "session":
        raise click.BadParameter(
            "the session style is not there yet; take loop, or auto (which takes loop)",
            param_hint="--style",
        )

    def finish(migrations: dict[str, Migration], console: Console) -> int:
        from towermigrate.report import diff

        if show_diff:
            for migration in migrations.values():
                for path, text in migration.report.texts.items():
                    before = migration.files[path].text or ""
                    click.echo(diff(path, before, text), nl=False)
        if show_diff or check:
            pending = any(migration.report.texts for migration in migrations.values())
            return DIFFERENT if check and pending else WELL
        for prefix, migration in migrations.items():
            target = (
                None if out is None else out if len(migrations) == 1 else out / Path(prefix).name
            )
            migration.apply(target)
            for command in migration.commands(target):
                console.print(f"Run it: {command}", highlight=False, soft_wrap=True, markup=False)
        return WELL

    verb = "would change" if show_diff or check else "rewritten"
    sys.exit(_over_trees(paths, json_file, refused, verb, finish, quiet_tables=show_diff))


def _over_trees(
    paths: tuple[Path, ...],
    json_file: Path | None,
    refused: Any,
    verb: str,
    finish: Callable[[dict[str, Migration], Console], int],
    quiet_tables: bool = False,
) -> int:
    """Plan every tree, show it, let `finish` write, write the JSON report, and give the exit code."""
    from towermigrate.migrate import plan
    from towermigrate.project import ProjectError
    from towermigrate.report import show_tree, tree_json

    console = _console(stderr=quiet_tables)
    migrations: dict[str, Migration] = {}
    error: str | None = None
    code = WELL
    try:
        with _progress() as progress:
            for path in paths or (Path("."),):
                migrations[str(path)] = plan(path, refused=refused, progress=progress)
        for migration in migrations.values():
            show_tree(console, migration.root, migration.report, verb)
        code = finish(migrations, console)
    except (ProjectError, OSError) as failure:
        error = str(failure)
        code = FAILED
    except Exception as failure:  # exit code 1 would claim a result, and the report must be written
        error = _unexpected(failure)
        code = FAILED
    reports = {prefix: migration.report for prefix, migration in migrations.items()}
    if any(report.refused for report in reports.values()):
        code = max(code, DIFFERENT)
    unread = [f"{file.path}: {file.findings[0].message}" for r in reports.values() for file in r.files
              if file.status == "unparsable"]  # fmt: skip
    if unread:
        code = FAILED
        error = error or "; ".join(unread)
    return _finish(json_file, tree_json(reports, error), error, code)


def _finish(json_file: Path | None, document: dict[str, Any], error: str | None, code: int) -> int:
    if error is not None:
        click.echo(f"towermigrate: {error}", err=True)
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        except OSError as failure:
            click.echo(
                f"towermigrate: {json_file}: cannot be written: {failure.strerror}", err=True
            )
            return FAILED
    return code


def _unexpected(failure: Exception) -> str:
    traceback.print_exc()
    kind = type(failure).__name__
    return f"{kind}: {failure}. This is a fault of towermigrate: please report it."


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


@main.command(cls=_VerifyCommand)
@_PATHS
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
@_JSON
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
    json_file: Path | None,
) -> None:
    """Train the original and the rewritten program and compare them.

    Before `towermigrate rewrite`, what it would write is compared; after it, what is there with the kept
    originals. Both train on the same data, from the same variables, with the same random draws, in scratch
    copies. Losses, averaged gradients, variables and optimizer slots are compared at every update. Arguments
    after `--` go to the programs.

    Free-running, roundings add up. So what is apart by more than --tolerance is run once more with the state
    reset before every step: the programs are equal if every single step is equal within --tolerance, and the
    free-running ones are within --tolerance times the updates made so far. Where rounding decides (a ReLU, a
    max-pooling), the limit is what the original itself does when its weights move by --tolerance.

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
            json_file=json_file,
        )
    )


def _verify(paths: tuple[Path, ...], *, json_file: Path | None, **options: Any) -> int:
    import importlib.util

    if importlib.util.find_spec("tensorflow") is None:
        error = "verify needs TensorFlow: pip install 'towermigrate[tf]'"
        return _finish(json_file, no_verdict(error), error, FAILED)
    from towermigrate.verify import VerifyOptions, check_options, print_report, run_verify

    try:
        for path in paths:
            check_options(VerifyOptions(path, **options))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    document = no_verdict("")
    document.update(equal=True, error=None)
    code = WELL
    for path in paths:
        try:
            with _progress() as progress:
                report = run_verify(VerifyOptions(path, progress=progress, **options))
        except Exception as failure:  # exit code 1 would claim a difference
            message = _unexpected(failure)
            return _finish(json_file, no_verdict(message), message, FAILED)
        print_report(report, _console(), error=False)
        code = max(code, report.exit_code)
        found = report.to_json()
        document["equal"] = document["equal"] and found["equal"]
        document["error"] = document["error"] or found["error"]
        document["reference"] = found["reference"]
        for key in ("not_compared", "nondeterministic", "runs"):
            document[key] += found[key]
    return _finish(json_file, document, document["error"], code)


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


@main.command()
@_PATHS
@click.option(
    "--force", is_flag=True, help="Also put back files that were edited after the rewrite."
)
@_JSON
def undo(paths: tuple[Path, ...], force: bool, json_file: Path | None) -> None:
    """Put the originals back, byte for byte.

    Exit code 3: a file was edited after the rewrite and left alone, or could not be written.
    """
    from towermigrate.project import ProjectError
    from towermigrate.project import undo as put_back

    restored: list[str] = []
    edited: list[str] = []
    error: str | None = None
    for path in paths or (Path("."),):
        root = path.parent if path.is_file() else path
        try:
            done = put_back(root, force=force)
        except (ProjectError, OSError) as failure:
            error = str(failure)
            continue
        restored += [(root / name).as_posix() for name in done.restored]
        edited += [(root / name).as_posix() for name in done.edited]
    for name in restored:
        click.echo(f"put back {name}")
    if not restored and not edited and error is None:
        click.echo("nothing to undo")
    if edited and error is None:
        error = (
            f"edited after the rewrite, left alone (--force puts them back): {', '.join(edited)}"
        )
    document = {"error": error, "restored": restored, "edited": edited}
    sys.exit(_finish(json_file, document, error, FAILED if error else WELL))


@main.command()
@click.argument("rule", required=False)
def explain(rule: str | None) -> None:
    """Say why a finding was raised.

    And what to do about it, with an example. Without RULE, list all rules.
    """
    from towermigrate.findings import RULES

    if rule is None:
        for known in sorted(RULES.values(), key=lambda r: r.id):
            click.echo(f"{known.id}  {known.severity:8}{known.title}")
        return
    found = RULES.get(rule.upper())
    if found is None:
        raise click.BadParameter(
            f"there is no rule {rule}; `towermigrate explain` lists them", param_hint="RULE"
        )
    click.echo(
        f"{found.id} ({found.severity}): {found.title}\n\nWhy: {found.why}\n\nWhat to do: {found.advice}\n"
    )
    click.echo("Example:\n" + "\n".join(f"    {line}" for line in found.example.splitlines()))


@main.command()
@click.option(
    "--devices",
    default="cpu:2",
    show_default=True,
    help="Where to run the rewritten program: cpu:N, gpu:N or gpu:0,1.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Updates to compare of every stage.",
)
def demo(devices: str, steps: int) -> None:
    """See it work on a built-in program.

    A GAN that is trained in three stages is scanned, rewritten and verified in a scratch folder.
    """
    from towermigrate.demo import run_demo

    sys.exit(run_demo(_console(), devices=devices, steps=steps))


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # In a pipe rich takes 80 columns and would cut tables short.
    return Console(stderr=stderr, width=None if stream.isatty() else 120)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, and for how long; silent where nobody watches."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as line:
        task = line.add_task("starting", total=None)

        def update(text: str) -> None:
            line.update(task, description=text)

        yield update
