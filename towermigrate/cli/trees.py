"""`scan` and `rewrite`: plan every tree that was named, show it, write."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from towermigrate.cli.common import (
    DIFFERENT,
    FAILED,
    JSON,
    WELL,
    finished,
    progress_line,
    terminal,
    unexpected,
    write_report,
)
from towermigrate.collector import without_collector

if TYPE_CHECKING:
    from rich.console import Console

    from towermigrate.migrate import Migration

_STDIN = Path("-")
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
        JSON,
        click.option(
            "--sarif",
            "sarif_file",
            type=file,
            help="Write the findings there as SARIF 2.1.0, for code hosts and editors. What a comment hides is left "
            "out.",
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


@click.command()
@_tree_options
def scan(targets: _Targets, **options: Any) -> None:
    """Say what tower programs are in PATH and what would become of each.

    PATH is a folder, a Python file or notebook, one program of either (`train.py:main`), or - for a file from
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


@click.command()
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
    help="The form of rewritten programs: loop (eager: plain Python loops around tf.functions, ready for TPUs and "
    "several workers), session (the graph and its session stay, on mirrored variables), or auto: loop where it is "
    "proved to be right, else session.  [default: auto]",
)
def rewrite(
    targets: _Targets, show_diff: bool, check: bool, out: Path | None, **options: Any
) -> None:
    """Rewrite the tower programs in PATH, and TF1 names in all its files.

    PATH is a folder, a Python file or notebook, one program of either (`train.py:main`), or - for a file from
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


@without_collector(freeze=True)
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

    console = terminal(stderr=quiet_tables)
    migrations: dict[str, Migration] = {}
    error: str | None = None
    code = WELL
    try:
        with progress_line() as progress:
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
        error = unexpected(failure)
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

        code = max(
            code, write_report(sarif_file, json.dumps(tree_sarif(migrations, error), indent=1))
        )
    if html_file is not None:
        from towermigrate.reports.page import tree_page

        code = max(code, write_report(html_file, tree_page(migrations, verb, error)))
    return finished(json_file, tree_json(reports, error), error, code)


def _plan_all(
    targets: _Targets,
    standard_input: bytes | None,
    distribution: bool,
    given: dict[str, Any],
    progress: Callable[[str], None],
) -> dict[str, Migration]:
    """The plan for every target, by the text that names it."""
    from towermigrate.migrate import plan_configured

    files = [path.resolve() for path, function in targets if function is not None]
    for file in files:
        if files.count(file) > 1:
            raise click.UsageError(f"{file}: give one program of a file at a time")
    return {
        str(path) if function is None else f"{path}:{function}": plan_configured(
            Path() if path == _STDIN else path,
            given,
            raw=standard_input,
            function=function,
            distribution=distribution,
            progress=progress,
        )
        for path, function in targets
    }
