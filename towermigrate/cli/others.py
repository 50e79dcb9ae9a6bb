"""`undo`, `vendor`, `explain` and `demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from towermigrate.cli.common import DIFFERENT, FAILED, JSON, PATHS, WELL, finished, terminal


@click.command()
@PATHS
@click.option(
    "--force", is_flag=True, help="Also put back files that were edited after the rewrite."
)
@click.option("--dry-run", is_flag=True, help="Say what would be put back, write nothing.")
@JSON
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
    sys.exit(finished(json_file, document, error, FAILED if error else WELL))


@click.command()
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
@JSON
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
        sys.exit(finished(json_file, document, document["error"], FAILED))
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
    sys.exit(finished(json_file, document, None, DIFFERENT if plan.left else WELL))


@click.command()
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


@click.command()
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

    sys.exit(run_demo(terminal(), devices=devices, steps=steps))
