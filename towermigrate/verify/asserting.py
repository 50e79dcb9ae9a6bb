"""`assert_equivalent`: verify in a test of one's own."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.report import VerifyReport, print_report
from towermigrate.verify.run import run_verify


class NotEquivalent(AssertionError):
    """The rewritten program does not train as the original does, or not all of it was compared; `report` says where."""

    def __init__(self, report: VerifyReport) -> None:
        super().__init__(said(report))
        self.report = report


class NotVerified(RuntimeError):
    """A program could not be run, so nothing is known; `report` says why."""

    def __init__(self, report: VerifyReport) -> None:
        super().__init__(said(report))
        self.report = report


def assert_equivalent(
    path: str | Path,
    rewritten: str | Path | None = None,
    *,
    devices: str | Sequence[str] = "cpu:2",
    **options: Any,
) -> VerifyReport:
    """Train the original and the rewritten program, and fail where they differ.

    Args:
        path: the tree of the original, or its script; with no `rewritten` as `towermigrate verify` takes it: before a
            rewrite what one would write is compared, after it what is there with the kept originals.
        rewritten: the folder of the rewritten program, or of one that was written by hand, where it is another one. Its
            files have the names of the original's.
        devices: one device spec or several, `cpu:4`.
        options: those of `VerifyOptions`: `steps`, `tolerance`, `entry`, `arguments`, `tf1_python`, `timeout_s`, …

    Returns:
        The report, whose `equal` is True.

    Raises:
        NotEquivalent: an AssertionError; its text is the report of the command.
        NotVerified: a program could not be run.
        ValueError: an option cannot be meant.

    Example:
        >>> from towermigrate.verify import assert_equivalent
        >>> def test_the_migration():  # doctest: +SKIP
        ...     assert_equivalent("legacy/train.py", rewritten="src", devices=["cpu:1", "cpu:4"], steps=20)
    """
    specs = (devices,) if isinstance(devices, str) else tuple(devices)
    where = None if rewritten is None else Path(rewritten)
    report = run_verify(VerifyOptions(Path(path), devices=specs, rewritten=where, **options))
    if report.error is not None:
        raise NotVerified(report)
    if not report.equal:
        raise NotEquivalent(report)
    return report


def said(report: VerifyReport) -> str:
    """The report as the command prints it, without colours."""
    from rich.console import Console

    text = io.StringIO()
    print_report(report, Console(file=text, width=120, color_system=None))
    return text.getvalue().strip()
