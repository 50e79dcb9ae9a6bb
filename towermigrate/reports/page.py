"""The report as one HTML page that needs nothing else: no script, no request, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from towermigrate import __version__
from towermigrate.findings import RULES, Finding
from towermigrate.migrate import Migration
from towermigrate.outcome import FileReport, ProgramReport
from towermigrate.program import TowerProgram
from towermigrate.reports import place
from towermigrate.reports.sides import Fold, Row, side_by_side
from towermigrate.reports.style import STYLE
from towermigrate.reports.terminal import all_findings, reasons_against_loop
from towermigrate.rule import Severity

_ORDER: Sequence[Severity] = ("error", "warning", "info")
# Places of one rule that stand open on the page; the others are one click away.
_OPEN_PLACES = 12
# Control characters, and those that turn the direction of text and so hide what code says.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")  # fmt: skip
_AVERAGING = {"mean": "mean over the towers", "sum": "sum over the towers", "none": "none"}
_NONE = {
    "crash": "the original crashes; zeros",
    "skip": "left out",
    "pass": "passed on",
    "zeros": "zeros",
}
_INPUTS = {
    "slice": "a slice for every tower",
    "split": "split over the towers",
    "queue": "a queue",
    "iterator": "an iterator",
    "same": "the same for every tower",
    "per_tower": "one for every tower",
    "own": "a pipeline of every tower's own",
}


def tree_page(migrations: Mapping[str, Migration], verb: str, error: str | None) -> str:
    """The page for a run.

    Args:
        migrations: by the PATH that the user wrote.
        verb: what happened to the files that changed: `rewritten` or `would change`.
        error: what could not be read or written, None when everything could.
    """
    return "".join(_page(migrations, verb, error))


def _page(migrations: Mapping[str, Migration], verb: str, error: str | None) -> Iterator[str]:
    title = ", ".join(migrations)
    yield html_head(title, STYLE)
    places = _Places(migrations)
    yield from _header(migrations, title, verb, error)
    yield "<main>\n"
    yield from _programs(migrations, places)
    yield from _findings(migrations, places)
    yield from _files(migrations, places, verb)
    yield f"</main>\n<footer>towermigrate {__version__}</footer>\n</body>\n</html>\n"


def html_head(title: str, style: str) -> str:
    """The page up to the beginning of its body."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # The page holds text from the tree: nothing in it may run or be fetched, whatever it is.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>towermigrate: {html_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


class _Places:
    """The id that every file has on the page, and links to it."""

    def __init__(self, migrations: Mapping[str, Migration]) -> None:
        self.ids: dict[tuple[Path, str], str] = {}
        for migration in migrations.values():
            for file in migration.report.files:
                self.ids[migration.root, file.path] = f"f{len(self.ids)}"

    def link(self, root: Path, path: str, line: int, cell: int | None) -> str:
        text = f"<code>{html_text(place(root / path, line, cell))}</code>"
        there = self.ids.get((root, path))
        return text if there is None else f'<a href="#{there}">{text}</a>'


def html_text(text: str) -> str:
    """Text as HTML; characters that cannot be seen are named."""
    if _UNSEEN.search(text):
        parts = re.split(f"({_UNSEEN.pattern})", text)
        return "".join(
            f"<i>U+{ord(part):04X}</i>" if index % 2 else escape(part)
            for index, part in enumerate(parts)
        )
    return escape(text)


def _prose(text: str) -> str:
    """Text of a rule or a message: what stands in backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return html_text(text)
    return "".join(
        f"<code>{html_text(part)}</code>" if index % 2 else html_text(part)
        for index, part in enumerate(parts)
    )


def _many(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _header(
    migrations: Mapping[str, Migration], title: str, verb: str, error: str | None
) -> Iterator[str]:
    files = [file for m in migrations.values() for file in m.report.files]
    programs = [program for file in files for program in file.programs]
    converted = sum(program.status == "converted" for program in programs)
    numbers = [
        (sum(m.report.tensorflow_files for m in migrations.values()), "TensorFlow files"),
        (sum(len(m.report.texts) for m in migrations.values()), verb),
        (sum(file.status == "unparsable" for file in files), "could not be read"),
        (converted, "programs converted"),
        (len(programs) - converted, "programs refused"),
    ]
    yield f"<header>\n<h1>{html_text(title)}</h1>\n<ul class=numbers>\n"
    for number, name in numbers:
        yield f"<li><b>{number:,}</b> {name}</li>\n"
    yield "</ul>\n"
    if error is not None:
        yield f"<p class=error>{html_text(error)}</p>\n"
    yield (
        '<nav><a href="#programs">Programs</a> <a href="#findings">Findings</a> '
        '<a href="#files">Files</a></nav>\n</header>\n'
    )


def _programs(migrations: Mapping[str, Migration], places: _Places) -> Iterator[str]:
    yield "<section id=programs>\n<h2>Tower programs</h2>\n"
    found = [
        (migration, file, program)
        for migration in migrations.values()
        for file in migration.report.files
        for program in file.programs
    ]
    if not found:
        yield "<p>There are none.</p>\n"
    for migration, file, program in sorted(found, key=lambda one: one[2].status == "refused"):
        yield from _program(migration, file, program, places)
    yield "</section>\n"


def _program(
    migration: Migration, file: FileReport, program: ProgramReport, places: _Places
) -> Iterator[str]:
    name = f"<code>{html_text(program.function)}</code>" if program.function else "at module level"
    becomes = f"{program.style} style" if program.status == "converted" else "refused"
    link = places.link(migration.root, file.path, program.line, program.cell)
    yield (
        f"<article class={program.status}>\n<h3>{name} <small>{link}</small> "
        f"<span class=badge>{becomes}</span></h3>\n"
    )
    if program.recognised is not None:
        yield from _recognised(program.recognised)
    yield from _finding_list(migration.root, program.findings, places)
    yield from _against_loop(migration.root, reasons_against_loop(program), places)
    yield "</article>\n"


def _recognised(program: TowerProgram) -> Iterator[str]:
    loop = program.loop
    count = f"<code>{html_text(loop.count.expression)}</code>"
    if loop.count.value is not None and loop.count.expression != str(loop.count.value):
        count += f" = {loop.count.value}"
    facts = [("Towers", f"{count} ({loop.count.kind})")]
    if loop.sharing:
        facts.append(("Variables shared by", _codes(loop.sharing)))
    if loop.device:
        facts.append(("Devices", f"<code>{html_text(loop.device)}</code>"))
    if loop.name_scope:
        facts.append(("Name scope", f"<code>{html_text(loop.name_scope)}</code>"))
    for extra in program.extras:
        order = "in a fixed order" if extra.ordered else "in no fixed order"
        stage = html_text(program.stages[extra.stage].name)
        facts.append(
            ("With the update", f"{extra.kind.replace('_', ' ')}, {order}, in <code>{stage}</code>")
        )
    facts.append(
        (
            "Session runs",
            f"{len(program.runs)}, of which {sum(bool(run.trains) for run in program.runs)} train",
        )
    )
    services = (*program.services.savers, *program.services.writers, *program.services.coordinators)
    if services:
        facts.append(("Savers, writers, coordinators", _codes(services)))
    if program.tower_files:
        facts.append(("Towers call functions of", _codes(program.tower_files)))
    yield "<dl>\n"
    for name, value in facts:
        yield f"<dt>{name}</dt><dd>{value}</dd>\n"
    yield "</dl>\n"
    yield from _table(
        "Stages",
        ("Stage", "Loss", "Optimizer", "Variable list", "Averaging", "None gradients", "Then"),
        [
            (
                _codes([stage.name]),
                _codes([stage.loss]),
                _codes([stage.optimizer])
                + (f" ({html_text(stage.optimizer_class)})" if stage.optimizer_class else ""),
                _codes([stage.var_list]) if stage.var_list else "all",
                _AVERAGING[stage.averaging],
                _NONE[stage.none_policy],
                _codes(stage.post),
            )
            for stage in program.stages
        ],
    )
    yield from _table(
        "Inputs of a tower",
        ("Input", "From", "How"),
        [
            (_codes(given.names), _codes([given.source]), _INPUTS[given.kind])
            for given in program.inputs
        ],
    )


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(f"<code>{html_text(text)}</code>" for text in texts)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table without the columns that are empty in every row; nothing where there are no rows."""
    if not rows:
        return
    columns = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    yield f"<div class=wide><table class=facts><caption>{title}</caption>\n<tr>"
    yield "".join(f"<th scope=col>{heads[index]}</th>" for index in columns) + "</tr>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{row[index]}</td>" for index in columns) + "</tr>\n"
    yield "</table></div>\n"


def _finding_list(root: Path, findings: Sequence[Finding], places: _Places) -> Iterator[str]:
    """Findings with their explanation behind each."""
    if not findings:
        return
    yield "<ul class=findings>\n"
    for finding in sorted(findings, key=lambda f: _ORDER.index(f.severity)):
        rule = RULES[finding.rule]
        yield (
            f"<li class={rule.severity}><details><summary><b>{rule.id}</b> {rule.severity} "
            f"{places.link(root, finding.path, finding.line, finding.cell)} {_prose(finding.message)}</summary>\n"
            f"<p>{_prose(rule.title)}. {_prose(rule.why)}</p><p><b>What to do:</b> {_prose(rule.advice)}</p>"
            "</details></li>\n"
        )
    yield "</ul>\n"


def _against_loop(root: Path, reasons: Sequence[Finding], places: _Places) -> Iterator[str]:
    """What keeps a program from loop style, most important first."""
    if not reasons:
        return
    yield f"<details open><summary>Not in loop style: {_many(len(reasons), 'reason')}</summary>\n"
    yield "<ul class=findings>\n"
    for finding in reasons:
        rule = RULES[finding.rule]
        yield (
            f"<li class=reason><details><summary><b>{rule.id}</b> "
            f"{places.link(root, finding.path, finding.line, finding.cell)} {_prose(finding.message)}</summary>\n"
            f"<p>{_prose(rule.title)}. {_prose(rule.why)}</p><p><b>For loop style:</b> {_prose(rule.advice)}</p>"
            "</details></li>\n"
        )
    yield "</ul></details>\n"


def _findings(migrations: Mapping[str, Migration], places: _Places) -> Iterator[str]:
    yield "<section id=findings>\n<h2>Findings by rule</h2>\n"
    groups: dict[str, list[tuple[Path, Finding]]] = {}
    for migration in migrations.values():
        for finding in all_findings(migration.report):
            groups.setdefault(finding.rule, []).append((migration.root, finding))
    if not groups:
        yield "<p>There are none.</p>\n"
    for id in sorted(groups, key=lambda id: (_ORDER.index(RULES[id].severity), id)):
        rule, found = RULES[id], groups[id]
        files = len({(root, finding.path) for root, finding in found})
        yield (
            f"<article class={rule.severity}>\n<h3><b>{rule.id}</b> {_prose(rule.title)} "
            f"<span class=badge>{rule.severity}</span> <small>{_many(len(found), 'place')} in "
            f"{_many(files, 'file')}</small></h3>\n<p>{_prose(rule.why)}</p>\n"
            f"<p><b>What to do:</b> {_prose(rule.advice)}</p>\n"
            f"<details><summary>Example</summary><pre>{html_text(rule.example)}</pre></details>\n"
        )
        lines = [
            f"<li>{places.link(root, finding.path, finding.line, finding.cell)} {_prose(finding.message)}</li>\n"
            for root, finding in found
        ]
        yield f"<ul class=places>\n{''.join(lines[:_OPEN_PLACES])}</ul>\n"
        if lines[_OPEN_PLACES:]:
            more = _many(len(lines) - _OPEN_PLACES, "more place")
            yield f"<details><summary>{more}</summary><ul class=places>\n"
            yield "".join(lines[_OPEN_PLACES:]) + "</ul></details>\n"
        yield "</article>\n"
    yield "</section>\n"


def _files(migrations: Mapping[str, Migration], places: _Places, verb: str) -> Iterator[str]:
    yield f"<section id=files>\n<h2>Files that {'were rewritten' if verb == 'rewritten' else verb}</h2>\n"
    quiet: list[str] = []
    for migration in migrations.values():
        for file in migration.report.files:
            there = places.ids[migration.root, file.path]
            name = html_text((migration.root / file.path).as_posix())
            text = migration.report.texts.get(file.path)
            if text is None:
                found = len(file.findings) + sum(len(p.findings) for p in file.programs)
                told = f", {_many(found, 'finding')}" if found else ""
                quiet.append(f"<li id={there}><code>{name}</code> {file.status}{told}</li>\n")
                continue
            converted = any(program.status == "converted" for program in file.programs)
            rows = side_by_side(migration.files[file.path].text or "", text)
            gone = sum(isinstance(r, Row) and r.changed and r.old is not None for r in rows)
            come = sum(isinstance(r, Row) and r.changed and r.new is not None for r in rows)
            yield (
                f"<details class=file{' open' if converted else ''}><summary><code>{name}</code> "
                f"<span class=minus>−{gone:,}</span> <span class=plus>+{come:,}</span></summary>\n"
                # Inside: browsers open what they follow a link into.
                f"<div id={there}>\n"
            )
            # A converted program is read as a whole; where only names changed, the changes are enough.
            yield from _diff(rows, whole=converted)
            yield "</div></details>\n"
    yield "</section>\n"
    for migration in migrations.values():
        for one in migration.report.left_out:
            name = html_text((migration.root / one.path).as_posix())
            quiet.append(f"<li><code>{name}</code> not read: {html_text(one.reason)}</li>\n")
    if quiet:
        yield f"<section>\n<h2>Files that stay as they are</h2>\n<ul class=places>\n{''.join(quiet)}</ul>\n</section>\n"


def _diff(rows: Sequence[Row | Fold], *, whole: bool) -> Iterator[str]:
    """The table of a file; folded stretches hold their lines only in a `whole` one."""
    opened = False
    for row in rows:
        if isinstance(row, Row):
            if not opened:
                yield "<table class=diff><colgroup><col class=n><col><col class=n><col></colgroup>\n"
                opened = True
            yield _row(row)
            continue
        if opened:
            yield "</table>\n"
            opened = False
        unchanged = _many(len(row.rows), "unchanged line")
        if whole:
            yield f"<details class=fold><summary>{unchanged}</summary>"
            yield from _diff(row.rows, whole=True)
            yield "</details>\n"
        else:
            yield f"<p class=fold>{unchanged}</p>\n"
    if opened:
        yield "</table>\n"


def _row(row: Row) -> str:
    if not row.changed:
        assert row.old is not None
        text = html_text(row.old[0][0])
        return f"<tr><td>{row.old_number}<td>{text}<td>{row.new_number}<td>{text}\n"
    left = (
        "<td><td class=x>"
        if row.old is None
        else f"<td>{row.old_number}<td class=o>{_marked(row.old)}"
    )
    right = (
        "<td><td class=x>"
        if row.new is None
        else f"<td>{row.new_number}<td class=w>{_marked(row.new)}"
    )
    return f"<tr>{left}{right}\n"


def _marked(pieces: Iterable[tuple[str, bool]]) -> str:
    return "".join(
        f"<b>{html_text(text)}</b>" if differs else html_text(text) for text, differs in pieces
    )
