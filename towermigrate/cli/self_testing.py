"""`verify --self-test`: show that faults in this very program would be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from towermigrate.cli.common import finished, progress_line, terminal


def self_test(paths: tuple[Path, ...], json_file: Path | None, options: dict[str, Any]) -> int:
    """The exit code of `verify --self-test`.

    Raises:
        click.UsageError: there are several trees; each has a report of its own.
    """
    import click

    from towermigrate.verify import VerifyOptions, print_report
    from towermigrate.verify.self_test import print_self_test, run_self_test

    if len(paths) != 1:
        raise click.UsageError("--self-test tests one program: give one PATH.")
    with progress_line() as progress:
        report = run_self_test(VerifyOptions(paths[0], progress=progress, **options))
    print_report(report.unchanged, terminal(), error=False)
    print_self_test(report, terminal())
    document = report.to_json()
    return finished(json_file, document, document["error"], report.exit_code)
