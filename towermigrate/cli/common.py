"""What the commands share: exit codes, the options of all, and how they speak to people and programs."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

# What each exit code means; the highest that applies wins.
WELL, DIFFERENT, BAD_USAGE, FAILED = 0, 1, 2, 3

PATHS = click.argument(
    "paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]..."
)
JSON = click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the outcome there for programs to read, on every exit code but 2 (bad usage).",
)


def write_report(file: Path, text: str) -> int:
    """Write a report; the exit code, with a message where it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as failure:
        click.echo(f"towermigrate: {file}: cannot be written: {failure.strerror}", err=True)
        return FAILED
    return WELL


def finished(json_file: Path | None, document: dict[str, Any], error: str | None, code: int) -> int:
    if error is not None:
        click.echo(f"towermigrate: {error}", err=True)
    if json_file is not None:
        code = max(code, write_report(json_file, json.dumps(document, indent=1) + "\n"))
    return code


def unexpected(failure: Exception) -> str:
    traceback.print_exc()
    kind = type(failure).__name__
    return f"{kind}: {failure}. This is a fault of towermigrate: please report it."


def terminal(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # In a pipe rich takes 80 columns and would cut tables short.
    return Console(stderr=stderr, width=None if stream.isatty() else 120)


@contextmanager
def progress_line(piped: bool = False) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, and for how long.

    Where nobody watches it is silent, or with `piped` says each thing on a line of its own.
    """
    console = terminal(stderr=True)
    if not console.is_terminal:
        yield (
            (lambda text: click.echo(f"towermigrate: {text}", err=True))
            if piped
            else lambda _: None
        )
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as line:
        task = line.add_task("starting", total=None)

        def update(text: str) -> None:
            line.update(task, description=text)

        yield update
