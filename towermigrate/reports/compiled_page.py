"""The part of verify's page, and of its JUnit file, that is about compiling for a TPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from towermigrate.reports.page import html_text

_COLUMNS = ("total", "arguments", "outputs", "temporaries")


def split_runs(
    document: Mapping[str, Any],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The runs of a verify document that compare numbers, and those that only compile."""
    runs = document["runs"]
    compiled = [run for run in runs if run.get("compiled") is not None]
    return [run for run in runs if run.get("compiled") is None], compiled


def blocker_said(blocker: Mapping[str, Any]) -> str:
    """What stands in the way of compiling, as one line."""
    where = "" if blocker["file"] is None else f"{blocker['file']}:{blocker['line']}: "
    operation = "" if blocker["operation"] is None else f"{blocker['operation']}: "
    return f"{where}{operation}{blocker['why']}"


def compiled_sections(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A section for each device spec: a row for each step, and what stands in the way of those that do not compile."""
    for run in runs:
        found = run["compiled"]
        verdict = "Compiles" if found["compiles"] else "Does not compile"
        yield (
            f"<section>\n<h2>{verdict} for {html_text(found['tpu'])}</h2>\n<p><small>One replica's step, on one core, as "
            "the TPU compiler has it. No TPU ran, and no numbers were compared.</small></p>\n"
            "<div class=wide><table class=facts>\n<tr><th>step</th><th>verdict</th><th>HBM bytes</th><th>arguments</th>"
            "<th>outputs</th><th>temporaries</th><th>FLOPs</th><th>seconds to compile</th></tr>\n"
        )
        for step in found["steps"]:
            yield _row(step)
        yield "</table></div>\n"
        for step in found["steps"]:
            for blocker in step["blockers"]:
                yield f"<p>{html_text(step['step'])}: {html_text(blocker_said(blocker))}</p>\n"
                if blocker["source"]:
                    yield f"<pre>{html_text(blocker['source'])}</pre>\n"
        yield "</section>\n"


def _row(step: Mapping[str, Any]) -> str:
    kind, verdict = ("equal", "compiles") if step["compiles"] else ("different", "does not compile")
    sizes = step["hbm_bytes"]
    figures = [None if sizes is None else sizes[name] for name in _COLUMNS] + [step["flops"]]
    cells = ["-" if figure is None else f"{figure:,.0f}" for figure in figures]
    cells.append("-" if step["seconds"] is None else f"{step['seconds']:.1f}")
    place = html_text(f"{step['file']}:{step['line']}")
    return (
        f"<tr><td><code>{html_text(step['step'])}</code><small>{place}</small></td><td class={kind}>{verdict}</td>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>\n"
    )
