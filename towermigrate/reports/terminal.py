"""What a person reads: programs first, then findings by rule, then the numbers; long lists are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from towermigrate.findings import RULES, Finding
from towermigrate.outcome import ProgramReport, TreeReport
from towermigrate.program import TowerProgram
from towermigrate.reports import place
from towermigrate.rule import Severity

# How much of a list is printed; the reports that are written to files hold all of it.
PROGRAMS, PLACES, MESSAGE = 20, 3, 160
# How many lines tell what keeps programs from loop style: of one program, and of all of them.
REASONS, ALL_REASONS = 5, 40
_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "info": "cyan"}
_ORDER: Sequence[Severity] = ("error", "warning", "info")


def show_tree(console: Console, root: Path, report: TreeReport, verb: str) -> None:
    """Print the programs with their stages, the findings by rule, and a summary.

    Args:
        console: where to.
        root: the tree as the user wrote it; it stands before every path.
        report: what became of the tree.
        verb: what happened to the files that changed.
    """
    programs = [(file.path, program) for file in report.files for program in file.programs]
    # What was converted is what a person must look at; what was refused stays as it was.
    programs.sort(key=lambda pair: pair[1].status == "refused")
    shown = programs[:PROGRAMS]
    told_why = sum(bool(reasons_against_loop(program)) for _, program in shown)
    most = max(1, min(REASONS, ALL_REASONS // max(told_why, 1)))
    cut = False
    for path, program in shown:
        where = place(root / path, program.line, program.cell)
        cut |= _show_program(console, root, where, program, most)
    if len(programs) > PROGRAMS:
        cut = True
        left = programs[PROGRAMS:]
        refused = sum(program.status == "refused" for _, program in left)
        _print(console, f"… and {len(left):,} more programs, {refused:,} of them refused")
    told = {finding for _, program in programs[:PROGRAMS] for finding in _reasons(program)}
    cut |= _show_findings(console, root, all_findings(report), told)
    if cut:
        _print(
            console,
            "All of it, with explanations and changes: --html FILE; for programs: --json FILE",
        )
    _show_summary(console, root, report, verb)


def all_findings(report: TreeReport) -> list[Finding]:
    """Every finding of a tree: by file, those of its programs first."""
    return [
        finding
        for file in report.files
        for findings in (*(program.findings for program in file.programs), file.findings)
        for finding in findings
    ]


def reasons_against_loop(program: ProgramReport) -> tuple[Finding, ...]:
    """What keeps a converted program from loop style, most important first: reasons, and no faults."""
    return program.not_loop if program.style == "session" else ()


def _reasons(program: ProgramReport) -> list[Finding]:
    """Why a program was refused: shown with it, and not again by rule."""
    return [finding for finding in program.findings if finding.severity == "error"]


def _print(console: Console, text: str, *, markup: bool = False) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=markup)


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE else message[: MESSAGE - 1] + "…"


def _placed(root: Path, finding: Finding, message: str) -> str:
    where = place(root / finding.path, finding.line, finding.cell, finding.column + 1)
    return f"{where}{'' if finding.cell is None else ':'} {message}"


def _show_findings(
    console: Console, root: Path, findings: Sequence[Finding], told: set[Finding]
) -> bool:
    """Print the findings that were not told with their programs; whether some places were left out."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding not in told:
            groups.setdefault(finding.rule, []).append(finding)
    cut = False
    for rule in sorted(groups, key=lambda id: (_ORDER.index(RULES[id].severity), id)):
        group = groups[rule]
        severity = RULES[rule].severity
        files = len({finding.path for finding in group})
        number = f"{len(group):,} in {files:,} files" if files > 1 else f"{len(group):,}"
        title = f"[{_COLOURS[severity]}]{severity}[/] {rule} {escape(RULES[rule].title)}: {number}"
        _print(console, title, markup=True)
        # One more is shown rather than the line that says so.
        shown = group if len(group) == PLACES + 1 else group[:PLACES]
        for finding in shown:
            _print(console, f"  {_placed(root, finding, _short(finding.message))}")
        if len(shown) < len(group):
            cut = True
            _print(console, f"  … and {len(group) - len(shown):,} more")
    return cut


def _show_summary(console: Console, root: Path, report: TreeReport, verb: str) -> None:
    programs = report.programs
    refused = sum(program.status == "refused" for program in programs)
    unread = sum(file.status == "unparsable" for file in report.files)
    _print(
        console,
        f"{report.tensorflow_files:,} TensorFlow files, {len(report.texts):,} {verb}"
        + (f", {unread:,} could not be read" if unread else "")
        + f"; {len(programs):,} tower programs, {len(programs) - refused:,} converted, {refused:,} refused.",
    )
    if report.left_out:
        shown = ", ".join(f"{root / one.path} ({one.reason})" for one in report.left_out[:PLACES])
        more = (
            f" and {len(report.left_out) - PLACES:,} more" if len(report.left_out) > PLACES else ""
        )
        _print(console, f"Not read: {shown}{more}.")
    rules = Counter(f.rule for f in all_findings(report) if f.severity == "error")
    if rules:
        _print(console, f"Why and what to do: towermigrate explain {rules.most_common(1)[0][0]}")


def _show_program(
    console: Console, root: Path, where: str, program: ProgramReport, most: int
) -> bool:
    """Print a program, and at most so many reasons against loop style; whether some were left out."""
    becomes = f"{program.style} style" if program.status == "converted" else "refused"
    colour = "green" if program.status == "converted" else "red"
    place = f"in {program.function}" if program.function else "at module level"
    title = f"[bold]{escape(where)}[/] towers {escape(place)}: [{colour}]{becomes}[/]"
    _print(console, title, markup=True)
    if program.recognised is not None:
        for line in loop_lines(program.recognised):
            _print(console, f"  {line}")
    for stage in program.stages:
        over = f", variables {stage.var_list}" if stage.var_list else ""
        _print(
            console,
            f"  stage {stage.name}: loss {stage.loss}, optimizer {stage.optimizer}{over}",
        )
    against = reasons_against_loop(program)
    told = against if len(against) == most + 1 else against[:most]
    for finding in told:
        why = f"not loop: {finding.rule} {_placed(root, finding, _short(finding.message))}"
        _print(console, f"  [dim]{escape(why)}[/]", markup=True)
    if len(told) < len(against):
        _print(console, f"  [dim]… and {len(against) - len(told):,} more[/]", markup=True)
    for finding in _reasons(program):
        line = f"  [red]error[/] {finding.rule} {escape(_placed(root, finding, finding.message))}"
        _print(console, line, markup=True)
    return len(told) < len(against)


def loop_lines(program: TowerProgram) -> list[str]:
    """The towers and what each of them is given, a line each."""
    count = program.loop.count
    number = f" = {count.value}" if count.value is not None and count.name else ""
    shared = (
        f", variables shared by {', '.join(program.loop.sharing)}" if program.loop.sharing else ""
    )
    lines = [f"towers {count.expression}{number} ({count.kind}){shared}"]
    for given in program.inputs:
        lines.append(f"input {', '.join(given.names)} from {given.source} ({given.kind})")
    return lines
