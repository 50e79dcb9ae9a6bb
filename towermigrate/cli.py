"""The commands. Argument handling only: all work is done by `migrate`, `project`, `verify` and `demo`."""

from __future__ import annotations

import io
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

_STDIN = Path("-")
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


_Targets = tuple[tuple[Path, str | None], ...]


def _targets(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> _Targets:
    """Each PATH as a path and the function that it names: a folder, a file, or `train.py:main`."""
    from towermigrate.choice import ChoiceError, parse_target

    found: list[tuple[Path, str | None]] = []
    if "-" in given:
        if len(given) > 1:
            raise click.BadParameter("- takes no other PATH beside it", ctx, param)
        return ((_STDIN, None),)
    for text in given or (".",):
        try:
            path, function = parse_target(text)
        except ChoiceError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        if not path.exists():
            raise click.BadParameter(f"{path} does not exist", ctx, param)
        found.append((path, function))
    return tuple(found)


def _tree_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `scan` and `rewrite` have in common: the trees, what is told of them, and where to."""
    file = click.Path(dir_okay=False, path_type=Path)
    options = (
        click.argument("targets", nargs=-1, callback=_targets, metavar="[PATH]..."),
        click.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Leave these files and folders as they are: a name at any depth, or a path in PATH. Repeatable.",
        ),
        click.option(
            "--gitignore/--no-gitignore",
            default=None,
            help="Whether to leave out what .gitignore files name.  [default: --gitignore]",
        ),
        click.option(
            "--py2",
            type=click.Choice(["auto", "never"]),
            help="What to do with files that only Python 2 parses: bring them to Python 3 first, or leave them as "
            "they are (exit code 3).  [default: auto]",
        ),
        click.option(
            "--select",
            multiple=True,
            metavar="RULES",
            help="Report only these findings: ids or beginnings of ids, TM118,TM4. Refusals are always reported.",
        ),
        click.option(
            "--ignore",
            multiple=True,
            metavar="RULES",
            help="Do not report these findings. The longer of two beginnings that fit wins.",
        ),
        _JSON,
        click.option(
            "--sarif",
            "sarif_file",
            type=file,
            help="Write the findings there as SARIF 2.1.0, for code hosts and editors.",
        ),
        click.option(
            "--html",
            "html_file",
            type=file,
            help="Write one page there with programs, findings and changes side by side.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Take TensorFlow 1 tower programs to tf.distribute, and prove that the training did not change."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the names of files can be any bytes
            stream.reconfigure(errors="backslashreplace")


@main.command()
@_tree_options
def scan(targets: _Targets, **options: Any) -> None:
    """Say what tower programs are in PATH and what would become of each.

    PATH is a folder, a Python file or notebook, one program of a file (`train.py:main`), or - for a file from
    standard input.
    In code that uses tf.distribute already, it looks for the classic mistakes (rules TM401 to TM410).
    Writes nothing. Exit code 1: a program would be refused; 3: a file could not be read.
    """
    code = _over_trees(
        "would change",
        lambda migrations, console: WELL,
        targets=targets,
        standard_input=_standard_input(targets),
        distribution=True,
        **options,
    )
    sys.exit(code)


@main.command()
@_tree_options
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
    help="What to do with the file of a refused program: keep it as it is, or change its TF1 names.  "
    "[default: keep]",
)
@click.option(
    "--style",
    type=click.Choice(["auto", "loop", "session"]),
    help="The form of rewritten programs: loop (plain Python loops around tf.functions) is what auto takes; "
    "session (a graph in a session) is not there yet.  [default: auto]",
)
def rewrite(
    targets: _Targets, show_diff: bool, check: bool, out: Path | None, **options: Any
) -> None:
    """Rewrite the tower programs in PATH, and TF1 names in all its files.

    PATH is a folder, a Python file or notebook, one program of a file (`train.py:main`), or - for a file from
    standard input, whose rewritten form then goes to standard output and all else to standard error. The originals are kept in
    PATH/.towermigrate; `towermigrate undo` puts them back. A program whose form is not understood stays as it
    was, with a finding that says why. Exit code 1: a program was refused, or --check found something to
    change; 3: a file could not be read or written.
    """

    given = _standard_input(targets)
    if given is not None and out is not None:
        raise click.UsageError(
            "what comes from standard input goes to standard output, not to --out"
        )
    result = given

    def finish(migrations: dict[str, Migration], console: Console) -> int:
        nonlocal result
        from towermigrate.git import uncommitted
        from towermigrate.reports.document import diff

        if show_diff:
            for migration in migrations.values():
                for path, text in migration.report.texts.items():
                    before = migration.files[path].text or ""
                    click.echo(diff(path, before, text), nl=False)
        if show_diff or check:
            pending = [
                migration.root / path
                for migration in migrations.values()
                for path in migration.report.texts
            ]
            if check and not show_diff:
                for file in pending:
                    click.echo(f"would change {file.as_posix()}")
            return DIFFERENT if check and pending else WELL
        if given is not None:
            for migration in migrations.values():
                result = next(iter(migration.changes.values()), given)
            return WELL
        for prefix, migration in migrations.items():
            target = (
                None
                if out is None
                else out
                if len(migrations) == 1
                else out / Path(prefix.split(":")[0]).name
            )
            left = uncommitted(migration.root) if target is None and migration.report.texts else 0
            if left:
                click.echo(
                    f"towermigrate: {migration.root}: git does not hold {left} changed or new "
                    "file(s); the originals are kept in .towermigrate",
                    err=True,
                )
            migration.apply(target)
            for command in migration.commands(target):
                console.print(f"Run it: {command}", highlight=False, soft_wrap=True, markup=False)
        return WELL

    verb = "would change" if show_diff or check else "rewritten"
    code = _over_trees(
        verb,
        finish,
        targets=targets,
        standard_input=given,
        quiet_tables=show_diff or given is not None,
        **options,
    )
    # Whatever went wrong: what came in goes out, so that a pipe loses nothing.
    if result is not None and not (show_diff or check):
        sys.stdout.buffer.write(result)
    sys.exit(code)


def _standard_input(targets: _Targets) -> bytes | None:
    return sys.stdin.buffer.read() if (_STDIN, None) in targets else None


def _over_trees(
    verb: str,
    finish: Callable[[dict[str, Migration], Console], int],
    *,
    targets: _Targets,
    standard_input: bytes | None,
    json_file: Path | None,
    sarif_file: Path | None,
    html_file: Path | None,
    quiet_tables: bool = False,
    distribution: bool = False,
    **options: Any,
) -> int:
    """Plan every tree, show it, let `finish` write, write the reports, and give the exit code."""
    from towermigrate.choice import ChoiceError
    from towermigrate.config import ConfigError
    from towermigrate.project import ProjectError
    from towermigrate.reports.document import tree_json
    from towermigrate.reports.terminal import show_tree

    console = _console(stderr=quiet_tables)
    migrations: dict[str, Migration] = {}
    error: str | None = None
    code = WELL
    try:
        with _progress() as progress:
            migrations = _plan_all(targets, standard_input, distribution, options, progress)
        for migration in migrations.values():
            show_tree(console, migration.root, migration.report, verb)
        code = finish(migrations, console)
    except (ConfigError, ChoiceError) as failure:
        raise click.UsageError(str(failure)) from failure
    except (ProjectError, OSError) as failure:
        error = str(failure)
        code = FAILED
    except click.UsageError:
        raise
    except Exception as failure:  # exit code 1 would claim a result, and the report must be written
        error = _unexpected(failure)
        code = FAILED
    reports = [(migration.root, migration.report) for migration in migrations.values()]
    if any(report.refused for _, report in reports):
        code = max(code, DIFFERENT)
    unread = [f"{file.path}: {file.findings[0].message}" for _, report in reports for file in report.files
              if file.status == "unparsable"]  # fmt: skip
    if unread:
        code = FAILED
        error = error or "; ".join(unread)
    if sarif_file is not None:
        from towermigrate.reports.sarif import tree_sarif

        code = max(code, _write(sarif_file, json.dumps(tree_sarif(migrations, error), indent=1)))
    if html_file is not None:
        from towermigrate.reports.page import tree_page

        code = max(code, _write(html_file, tree_page(migrations, verb, error)))
    return _finish(json_file, tree_json(reports, error), error, code)


def _plan_all(
    targets: _Targets,
    standard_input: bytes | None,
    distribution: bool,
    given: dict[str, Any],
    progress: Callable[[str], None],
) -> dict[str, Migration]:
    """The plan for every target, by the text that names it, with only the findings to be reported."""
    from dataclasses import replace

    from towermigrate.config import excluded, read_config, settings
    from towermigrate.migrate import plan, plan_text
    from towermigrate.reports import reported

    files = [path.resolve() for path, function in targets if function is not None]
    for file in files:
        if files.count(file) > 1:
            raise click.UsageError(f"{file}: give one program of a file at a time")
    migrations: dict[str, Migration] = {}
    for path, function in targets:
        config, base = read_config(Path() if path == _STDIN else path)
        wanted = settings(config, given)
        if wanted.style == "session":
            raise click.BadParameter(
                "the session style is not there yet; take loop, or auto (which takes loop)",
                param_hint="--style",
            )
        if standard_input is not None:
            migration = plan_text(
                standard_input,
                refused=wanted.refused,
                distribution=distribution,
                py2=wanted.py2,
                progress=progress,
            )
            report = reported(migration.report, wanted.select, wanted.ignore)
            return {"-": replace(migration, report=report)}
        migration = plan(
            path,
            refused=wanted.refused,
            distribution=distribution,
            function=function,
            exclude=excluded(path, config, base, given["exclude"]),
            gitignore=wanted.gitignore,
            py2=wanted.py2,
            progress=progress,
        )
        report = reported(migration.report, wanted.select, wanted.ignore)
        name = str(path) if function is None else f"{path}:{function}"
        migrations[name] = replace(migration, report=report)
    return migrations


def _write(file: Path, text: str) -> int:
    """Write a report; the exit code, with a message where it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as failure:
        click.echo(f"towermigrate: {file}: cannot be written: {failure.strerror}", err=True)
        return FAILED
    return WELL


def _finish(json_file: Path | None, document: dict[str, Any], error: str | None, code: int) -> int:
    if error is not None:
        click.echo(f"towermigrate: {error}", err=True)
    if json_file is not None:
        code = max(code, _write(json_file, json.dumps(document, indent=1) + "\n"))
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
@click.option("--dry-run", is_flag=True, help="Say what would be put back, write nothing.")
@_JSON
def undo(paths: tuple[Path, ...], force: bool, dry_run: bool, json_file: Path | None) -> None:
    """Put the originals back, byte for byte.

    PATH is a tree as it was given to `rewrite`, or one file of it. Exit code 3: a file was edited after the rewrite and left alone, or could not be written.
    """
    from towermigrate.keeping import rewritten_in
    from towermigrate.keeping import undo as put_back
    from towermigrate.project import ProjectError

    restored: list[str] = []
    edited: list[str] = []
    error: str | None = None
    for path in paths or (Path("."),):
        try:
            root, only = path, None
            if path.is_file():
                root = rewritten_in(path.parent, path.name)
                only = path.resolve().relative_to(root.resolve()).as_posix()
            done = put_back(root, only=only, force=force, dry_run=dry_run)
        except (ProjectError, OSError) as failure:
            error = str(failure)
            continue
        restored += [(root / name).as_posix() for name in done.restored]
        edited += [(root / name).as_posix() for name in done.edited]
    for name in restored:
        click.echo(f"{'would put back' if dry_run else 'put back'} {name}")
    if not restored and not edited and error is None:
        click.echo("nothing to undo")
    if edited and error is None:
        error = (
            f"edited after the rewrite, left alone (--force puts them back): {', '.join(edited)}"
        )
    document = {"error": error, "restored": restored, "edited": edited}
    sys.exit(_finish(json_file, document, error, FAILED if error else WELL))


@main.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--tf1",
    is_flag=True,
    help="Copy one file for TensorFlow 1.3 to 1.15 and Python 3.5 or later, DIR/towermigrate_tf1.py, with "
    "average_gradients, filter_gradients and trainable_variables. Nothing else changes.",
)
@click.option(
    "--force", is_flag=True, help="Overwrite copies that were edited; the edited form is kept."
)
@_JSON
def vendor(folder: Path, tf1: bool, force: bool, json_file: Path | None) -> None:
    """Let the programs in DIR run without towermigrate.

    The helpers go to DIR/towermigrate_helpers, and imports of `towermigrate.helpers` in DIR's files then name the copy.
    Run it again after an update of towermigrate, or after another rewrite. `towermigrate undo` still puts the
    originals back; it leaves the copy.

    Exit code 1: an import could not be changed; 3: a copy was edited, or a file could not be read or written.
    """
    from towermigrate.project import ProjectError
    from towermigrate.tree import HELPERS_COPY, TF1_COPY
    from towermigrate.vendor import vendor_helpers, vendor_tf1

    document: dict[str, Any] = {"error": None, "copied": [], "removed": [], "imports": []}
    document.update(left=[], notes=[])
    try:
        plan = vendor_tf1(folder) if tf1 else vendor_helpers(folder)
        plan.write(force=force)
    except (ProjectError, OSError) as failure:
        document["error"] = str(failure)
        sys.exit(_finish(json_file, document, document["error"], FAILED))
    removed = [path for path, raw in plan.copies.items() if raw is None]
    copied = [path for path in plan.copies if path not in removed]
    document.update(copied=copied, removed=removed, imports=list(plan.imports))
    document.update(left=list(plan.left), notes=list(plan.notes))
    copy = folder / (TF1_COPY if tf1 else HELPERS_COPY)
    if copied or removed:
        gone = f", removed {len(removed)}" if removed else ""
        click.echo(f"{copy.as_posix()}: copied {len(copied)} of towermigrate's files{gone}")
    for path in plan.imports:
        click.echo(f"imports changed in {(folder / path).as_posix()}")
    for line in plan.left:
        click.echo(f"not changed: {folder / line}")
    for line in plan.notes:
        click.echo(f"note: {line}")
    if not plan.copies and not plan.imports:
        click.echo("nothing to do")
    sys.exit(_finish(json_file, document, None, DIFFERENT if plan.left else WELL))


@main.command()
@click.argument("rule", required=False)
def explain(rule: str | None) -> None:
    """Say why a finding was raised.

    And what to do about it, with an example. RULE is an id, TM203, or the beginning of some: TM2. Without it,
    all rules are listed.
    """
    from towermigrate.findings import RULES
    from towermigrate.reports.catalogue import explanation, listing

    if rule is None:
        click.echo(listing())
        return
    found = [known for id, known in sorted(RULES.items()) if id.startswith(rule.upper())]
    if not found or not rule:
        raise click.BadParameter(
            f"there is no rule {rule}; `towermigrate explain` lists them", param_hint="RULE"
        )
    click.echo("\n\n\n".join(map(explanation, found)))


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
