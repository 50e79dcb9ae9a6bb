"""verify's outcome as one HTML page that needs nothing else: no script, no request, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from towermigrate import __version__
from towermigrate.reports.charts import Cells, Series, heat_legend, heat_map, line_chart
from towermigrate.reports.compiled_page import compiled_sections, split_runs
from towermigrate.reports.page import html_head, html_text
from towermigrate.reports.style import STYLE

_OPEN_ROWS = 40
"""Rows of a heat map that stand open; the others are one click away."""
_MOST_EXCUSES = 10
_MOST_ITEMS = 200
_STYLE = """
svg { max-width: 100%; height: auto; display: block; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 1rem 2rem; }
.charts figure, figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; margin: .5rem 0 .25rem; }
polyline, .mark path { fill: none; stroke-width: 2; }
.grid { stroke: var(--line); stroke-width: 1; } .tick { fill: var(--dim); font-size: 11px; }
.heat .tick { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.expected { stroke: var(--blue); } circle.actual { fill: none; stroke: var(--amber); stroke-width: 1.5; }
polyline.limit, path.limit { stroke: var(--red); stroke-dasharray: 6 4; stroke-width: 1.5; }
.forward { stroke: var(--blue); } .gradient { stroke: var(--amber); } .update { stroke: var(--green); }
.legend { color: var(--dim); font-size: .85rem; margin: .1rem 0 .6rem; }
.legend span { white-space: nowrap; margin-right: .9rem; }
.mark { display: inline-block; width: 18px; height: 10px; }
.h0 { fill: var(--card); stroke: var(--line); } .h1 { fill: #cfe8d3; } .h2 { fill: #9dd3a8; } .h3 { fill: #5db06f; }
.h4 { fill: #2b7d3e; } .h5 { fill: #f0b429; } .h6 { fill: #e06c2c; } .h7 { fill: #b3261e; }
@media (prefers-color-scheme: dark) { .h1 { fill: #1d3324; } .h2 { fill: #23522f; } .h3 { fill: #2f7d45; } .h4 { fill: #5cc27a; }
  .h5 { fill: #d9a520; } .h6 { fill: #d9662b; } .h7 { fill: #ff6b60; } }
.verdict { font-size: 1.15rem; } .verdict b { font-size: 1.35rem; color: var(--mark); margin-right: .5rem; }
td.equal { color: var(--green); } td.different { color: var(--red); font-weight: 600; } td.missing { color: var(--amber); }
.facts td small { display: block; }
"""
_MOST_OUTPUTS = 20
_SAID = {
    "equal": ("converted", "Equal", "The rewritten program trains as the original does."),
    "different": (
        "refused",
        "Different",
        "The rewritten program does not train as the original does.",
    ),
    "outputs": (
        "refused",
        "Different",
        "The rewritten program trains as the original does, but prints, writes or returns something else.",
    ),
    "open": ("warning", "No pass", "Nothing differs, but not everything could be compared."),
    "error": ("refused", "No verdict", "A program could not be run."),
    "compiled": (
        "converted",
        "Compiles",
        "The steps compile for a TPU. Numbers were not compared: add --devices cpu:N.",
    ),
    "not compiled": (
        "refused",
        "No pass",
        "Not all steps compile for a TPU. Nothing that was compared differs.",
    ),
}


def verify_page(document: Mapping[str, Any], title: str, command: str) -> str:
    """The page of one verify.

    Args:
        document: its JSON document; what a run has of `levels` and `figures` is drawn.
        title: what was verified.
        command: what repeats it.
    """
    return "".join(_page(document, title, command))


def _page(document: Mapping[str, Any], title: str, command: str) -> Iterator[str]:
    yield html_head(f"verify: {title}", STYLE + _STYLE)
    yield f"<header>\n<h1>{html_text(title)}</h1>\n"
    runs, compiled = split_runs(document)
    document = {**document, "runs": runs}
    yield from _verdict(document, compiled)
    yield "</header>\n<main>\n"
    yield from _levels(document)
    yield from _differences(document)
    yield from compiled_sections(compiled)
    yield from _not_checked(document)
    for run in document["runs"]:
        yield from _figures(run)
    yield from _repeat(document, command)
    yield f"</main>\n<footer>towermigrate {__version__}</footer>\n</body>\n</html>\n"


def _verdict(
    document: Mapping[str, Any], compiled: Sequence[Mapping[str, Any]] = ()
) -> Iterator[str]:
    runs = document["runs"]
    kind = "equal" if document["equal"] else "error" if document["error"] else "different"
    if kind == "different" and runs and all(run["equal"] for run in runs):
        kind = "open"
    found = [run for run in runs if run["first_difference"]]
    if kind == "different" and found and all(map(_trains_alike, found)):
        kind = "outputs"
    if kind in ("open", "different", "outputs") and compiled and all(run["equal"] for run in runs):
        done = all(run["compiled"]["compiles"] for run in compiled)
        if not done:
            kind = "not compiled"
        elif not runs:
            kind = "open" if document["not_compared"] else "compiled"
    mark, word, sentence = _SAID[kind]
    yield f'<article class="{mark} verdict"><p><b>{word}</b> {sentence}{_stopped(runs)}</p>'
    if document["error"]:
        yield f"<p class=error>{html_text(document['error'])}</p>"
    reference = document["reference"]
    if reference["tensorflow"]:
        yield (
            f"<p><small>The original ran under TensorFlow {html_text(reference['tensorflow'])}, Python "
            f"{html_text(reference['python'] or '?')}, {html_text(reference['mode'] or '')}.</small></p>"
        )
    yield "</article>\n"
    if runs:
        yield "<ul class=numbers>\n"
        steps = min(run["steps"] for run in runs)
        numbers = [
            (", ".join(run["devices"] for run in runs), "devices"),
            (
                str(steps),
                "updates compared of every stage"
                if steps != 1
                else "update compared of every stage",
            ),
            (", ".join(dict.fromkeys(f"{run['tolerance']:g}" for run in runs)), "tolerance"),
        ]
        for number, name in numbers:
            yield f"<li><b>{html_text(number)}</b> {name}</li>\n"
        yield "</ul>\n"


def _stopped(runs: Sequence[Mapping[str, Any]]) -> str:
    """Where the programs were stopped, as the verdict's second sentence."""
    counts = [
        max(run["updates_compared"].values(), default=0) for run in runs if run.get("stopped")
    ]
    if not counts:
        return ""
    return (
        f" It was stopped after {max(counts)} updates; <code>--steps all</code> runs it to its end."
    )


def _trains_alike(run: Mapping[str, Any]) -> bool:
    """Whether nothing differs but outputs: what a run gives back may differ in a step before training does."""
    levels = run.get("levels") or {}
    trained = [level["verdict"] for name, level in levels.items() if name != "output"]
    return bool(run["first_difference"]["level"] == "output" and set(trained) <= {"equal"})


def _levels(document: Mapping[str, Any]) -> Iterator[str]:
    runs = [run for run in document["runs"] if run.get("levels")]
    if not document["runs"]:
        return
    yield "<section>\n<h2>What was compared</h2>\n<div class=wide><table class=facts>\n<tr><th>devices</th>"
    names = list(dict.fromkeys(level for run in runs for level in run["levels"])) or ["training"]
    yield "".join(f"<th>{html_text(name)}</th>" for name in names) + "</tr>\n"
    for run in document["runs"]:
        yield f"<tr><td><code>{html_text(run['devices'])}</code></td>"
        for name in names:
            level = (run.get("levels") or {}).get(name)
            yield _level_cell(run, level)
        yield "</tr>\n"
    yield "</table></div>\n</section>\n"


def _level_cell(run: Mapping[str, Any], level: Mapping[str, Any] | None) -> str:
    if level is None:
        verdict = "equal" if run["equal"] else "different"
        return f"<td class={verdict}>{verdict}</td>"
    verdict = level["verdict"]
    kind = {"equal": "equal", "different": "different"}.get(verdict, "missing")
    said = []
    if level.get("arrays"):
        said.append(f"{level['arrays']:,} arrays")
    if level.get("steps"):
        said.append(f"{level['steps']:,} runs")
    if level.get("largest") is not None:
        said.append("bitwise" if level["largest"] == 0 else f"at most {_number(level['largest'])}")
    if level.get("excused"):
        said.append(f"{level['excused']} excused")
    if level.get("why") and kind == "missing":
        said.append(str(level["why"]))
    return f"<td class={kind}>{html_text(verdict)}<small>{html_text('; '.join(said))}</small></td>"


def _differences(document: Mapping[str, Any]) -> Iterator[str]:
    for run in document["runs"]:
        first = run["first_difference"]
        if first is None:
            continue
        yield f"<section>\n<h2>First difference on {html_text(run['devices'])}</h2>\n<article class=refused>\n<dl>"
        facts = [
            ("step", first["step"]), ("stage", first["stage"]), ("level", first["level"]), ("what", first["name"]),
            ("tower", first["replica"]), ("expected", first["expected"]), ("got", first["actual"]),
        ]  # fmt: skip
        for name, value in facts:
            if value is not None or name in ("expected", "got"):
                yield f"<dt>{name}</dt><dd><code>{html_text(_number(value))}</code></dd>"
        yield "</dl>\n"
        others = run.get("more_outputs", ())
        if others:
            yield "<p><b>Other outputs that differ:</b></p>\n<ul>\n"
            for each in others[:_MOST_OUTPUTS]:
                values = [html_text(_number(each[key])) for key in ("expected", "actual")]
                yield (
                    f"<li>{html_text(each['name'])}: expected <code>{values[0]}</code>, got <code>{values[1]}</code></li>\n"
                )
            left = len(others) - _MOST_OUTPUTS
            yield "</ul>\n" + (f"<p>{left} more are in the JSON report.</p>\n" if left > 0 else "")
        for cause in run["diagnosis"]:
            yield f"<p><b>Likely:</b> {html_text(cause['cause'])}. {html_text(cause['evidence'])}</p>\n"
        least = run["smallest_tolerance"]
        yield (
            "<p>No tolerance would pass.</p>\n"
            if least is None
            else f"<p>The smallest tolerance that would pass is {_number(least)}.</p>\n"
        )
        yield "</article>\n</section>\n"


def _not_checked(document: Mapping[str, Any]) -> Iterator[str]:
    notes = [f"{run['devices']}: {run['note']}" for run in document["runs"] if run["note"]]
    # Of several devices most say the same.
    left_out = [item for run in document["runs"] for item in run.get("left_out", ())]
    left_out = list(dict.fromkeys(left_out))
    lists = [
        ("Not compared", "warning", document["not_compared"]),
        ("What the original does not determine itself", "info", document["nondeterministic"]),
        ("What could not be held against the original", "info", left_out),
        ("Notes", "reason", notes),
    ]
    excuses = document.get("excuses", ())
    if not excuses and not any(items for _, _, items in lists):
        return
    yield "<section>\n<h2>What the verdict is not about</h2>\n"
    for name, mark, items in lists:
        if items:
            yield f"<h3>{name}</h3>\n<ul class=findings>\n"
            for item in items[:_MOST_ITEMS]:
                yield f"<li class={mark}>{html_text(item)}</li>\n"
            yield "</ul>\n"
            if len(items) > _MOST_ITEMS:
                yield f"<p>{len(items) - _MOST_ITEMS:,} more stand in the JSON report.</p>\n"
    if excuses:
        yield from _excuses(excuses)
    yield "</section>\n"


def _excuses(excuses: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The worst excused arrays of single steps as a table, the others in one that is opened."""
    yield "<h3>Excused: roundings that decide, or what the original determines no better</h3>\n"
    yield (
        "<p>Each is one array at one step, of single steps or of the free run. The original was run once more from that step with its weights moved by "
        "the tolerance: what it is off by is to be no more than twice what the original moves itself. The parts are of the size "
        "of the array.</p>\n"
    )
    worst = sorted(excuses, key=lambda each: -float(each["error"]))
    yield _excuses_table(worst[:_MOST_EXCUSES])
    if rest := worst[_MOST_EXCUSES:_MOST_ITEMS]:
        yield f"<details>\n<summary>{len(rest):,} more</summary>\n{_excuses_table(rest)}</details>\n"
    if len(worst) > _MOST_ITEMS:
        yield f"<p>{len(worst) - _MOST_ITEMS:,} more stand in the JSON report.</p>\n"


def _excuses_table(excuses: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for each in excuses:
        evidence = dict(each["evidence"])
        cells = [
            each["devices"],
            f"{each['level']} of {each['name']}",
            each["step"],
            _part(each["error"]),
            _part(evidence.pop("off_by", None)),
            _part(evidence.pop("original_moves", None)),
            ", ".join(
                f"{name.replace('_', ' ')} {_number(value)}" for name, value in evidence.items()
            ),
        ]
        rows.append(
            "<tr>" + "".join(f"<td>{html_text(str(cell))}</td>" for cell in cells) + "</tr>\n"
        )
    heads = (
        "devices",
        "what",
        "step",
        "error",
        "off by",
        "the original moves by",
        "further evidence",
    )
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<div class=wide><table class=facts>\n<tr>{head}</tr>\n{''.join(rows)}</table></div>\n"


def _figures(run: Mapping[str, Any]) -> Iterator[str]:
    figures = run.get("figures")
    if not figures or not (figures["losses"] or figures["arrays"]):
        return
    yield f"<section>\n<h2>Step by step on {html_text(run['devices'])}</h2>\n<div class=charts>\n"
    for stage in dict.fromkeys(loss["stage"] for loss in figures["losses"]):
        yield _losses(stage, [loss for loss in figures["losses"] if loss["stage"] == stage])
    yield _largest(figures["arrays"], run["tolerance"])
    yield "</div>\n"
    yield from _heat(figures["arrays"], run["tolerance"])
    yield "</section>\n"


def _losses(stage: str | None, losses: Sequence[Mapping[str, Any]]) -> str:
    series: list[Series] = []
    for tower in sorted({loss["tower"] for loss in losses}):
        own = [loss for loss in losses if loss["tower"] == tower]
        series.append(
            Series("original", [(o["step"], _float(o["expected"])) for o in own], "expected")
        )
        series.append(
            Series(
                "rewritten", [(o["step"], _float(o["actual"])) for o in own], "actual", dots=True
            )
        )
    towers = len({loss["tower"] for loss in losses})
    title = f"Loss of {stage or 'the training'}, {towers} tower{'' if towers == 1 else 's'}"
    return _figure(title, line_chart(series, title))


def _largest(arrays: Sequence[Mapping[str, Any]], tolerance: float) -> str:
    series: list[Series] = []
    runs: set[int] = set()
    for level in ("forward", "gradient", "update"):
        largest: dict[int, float] = {}
        for array in arrays:
            if array["level"] == level:
                for number, error in array["errors"]:
                    largest[number] = max(largest.get(number, 0.0), _float(error))
        runs |= largest.keys()
        if largest:
            series.append(Series(level, sorted(largest.items()), level))
    limit = [(float(number), tolerance) for number in sorted(runs)]
    title = "Largest difference of each training run (0 is not drawn)"
    chart = line_chart(series, title, log=True, limit=("tolerance", limit))
    return _figure(title, chart or "<p>All runs are bitwise equal.</p>")


def _heat(arrays: Sequence[Mapping[str, Any]], tolerance: float) -> Iterator[str]:
    runs = sorted({number for array in arrays for number, _ in array["errors"]})
    column = {number: place for place, number in enumerate(runs)}
    rows: list[tuple[float, Cells]] = []
    for array in arrays:
        values: list[float | None] = [None] * len(runs)
        for number, error in array["errors"]:
            size = _float(error)
            values[column[number]] = (
                size / tolerance if tolerance else float("inf") if size else 0.0
            )
        stage = "" if array["stage"] is None else f" ({array['stage']})"
        most = max((value for value in values if value is not None), default=0.0)
        rows.append((most, Cells(f"{array['level']} {array['name']}{stage}", values)))
    rows.sort(key=lambda row: (-row[0], row[1].name))
    cells = [row for _, row in rows]
    if not cells:
        return
    yield (
        f"<figure><figcaption>Differences by array and training run, the largest first "
        f"<small>{len(cells):,} arrays, {len(runs):,} runs</small></figcaption>\n{heat_legend()}"
        f"<div class=wide>{heat_map(cells[:_OPEN_ROWS], 'Differences by array and training run')}</div>\n"
    )
    if len(cells) > _OPEN_ROWS:
        yield (
            f"<details><summary>{len(cells) - _OPEN_ROWS:,} more arrays</summary>\n<div class=wide>"
            f"{heat_map(cells[_OPEN_ROWS:], 'Differences of the other arrays')}</div></details>\n"
        )
    yield "</figure>\n"


def _figure(title: str, chart: str) -> str:
    return f"<figure><figcaption>{html_text(title)}</figcaption>\n{chart}</figure>\n"


def _repeat(document: Mapping[str, Any], command: str) -> Iterator[str]:
    yield f"<section>\n<h2>To repeat it</h2>\n<pre>{html_text(command)}</pre>\n"
    sources = document.get("sources") or {}
    if sources:
        yield "<details><summary>Sources that were compared, by SHA-256</summary>\n<table class=facts>\n"
        for path, digest in list(sources.items())[:_MOST_ITEMS]:
            yield f"<tr><td><code>{html_text(path)}</code></td><td><code>{html_text(digest)}</code></td></tr>\n"
        yield "</table></details>\n"
    yield "</section>\n"


def _float(value: float | str | None) -> float:
    return float("nan") if value is None else float(value)


def _part(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _number(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
