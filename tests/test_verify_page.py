"""verify's page: whole, safe, readable with many arrays, and true to the document that it shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from towermigrate.reports.charts import BANDS, Cells, Series, heat_map, line_chart
from towermigrate.reports.verify_page import verify_page

_VOID = {"meta", "path", "rect", "circle", "br"}


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> _Checker:
    checker = _Checker()
    checker.feed(page)
    assert [tag for tag in checker.open if tag not in ("p", "tr", "td", "th", "li")] == []
    return checker


def run(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "devices": "cpu:2", "replicas": 2, "equal": True, "steps": 3, "updates_per_step": 1.0, "max_abs": {},
        "tolerance": 1e-6, "smallest_tolerance": 0.0, "first_difference": None, "diagnosis": [], "note": None,
    }  # fmt: skip
    return {**plain, **changes}


def document(*runs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "equal": all(each["equal"] for each in runs) and bool(runs), "error": None, "not_compared": [],
        "nondeterministic": [], "reference": {"tensorflow": "1.15.5", "python": "3.7.17", "mode": "TensorFlow 1"},
        "runs": list(runs),
    }  # fmt: skip
    return {**plain, **changes}


DIFFERENT = run(
    devices="xla:4",
    equal=False,
    smallest_tolerance=None,
    first_difference={
        "step": 4, "stage": "gen", "level": "gradient", "name": "w<script>", "replica": 1, "expected": 0.125,
        "actual": "nan",
    },
    diagnosis=[{"cause": "summed", "evidence": "2.00 times"}],
)  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "word"),
    [
        (document(run()), "Equal"),
        (document(run(), DIFFERENT), "Different"),
        (document(run(), equal=False, not_compared=["cpu:2: stage x"]), "No pass"),
        (document(error="the original <ended>"), "No verdict"),
    ],
)
def test_the_verdict_stands_first(shown: dict[str, Any], word: str) -> None:
    page = verify_page(shown, "src", "towermigrate verify src")
    words = ("Equal", "Different", "No pass", "No verdict")
    assert [each for each in words if f"<b>{each}</b>" in page] == [word]
    text = read(page).text
    for item in [*shown["not_compared"], shown["error"] or ""]:
        assert item in text
    assert "towermigrate verify src" in text


def test_a_difference_is_shown_with_both_values_and_its_cause() -> None:
    text = read(verify_page(document(run(), DIFFERENT), "src", "")).text
    for part in (
        "First difference on xla:4",
        "gen",
        "w<script>",
        "0.125",
        "nan",
        "summed. 2.00 times",
        "No tolerance",
    ):
        assert part in text


def test_the_verdict_says_where_the_programs_were_stopped() -> None:
    stopped = run(stopped=True, updates_compared={"critic": 5, "generator": 1})
    text = read(verify_page(document(stopped), "src", "")).text
    assert "It was stopped after 5 updates" in text
    assert "stopped after" not in read(verify_page(document(run()), "src", "")).text


def test_what_several_devices_leave_out_is_said_once() -> None:
    runs = [run(left_out=["which rows go together"]) for _ in range(3)]
    text = read(verify_page(document(*runs), "src", "")).text
    assert text.count("which rows go together") == 1


def test_what_is_only_shown_otherwise_is_said_and_all_of_it_listed() -> None:
    first = {**DIFFERENT["first_difference"], "level": "output", "name": "printed line 1"}
    others = [{"name": f"file {k}.csv", "expected": "a<b", "actual": 0.5} for k in range(22)]
    shown = run(equal=False, first_difference=first, more_outputs=others)
    text = read(verify_page(document(run(), shown), "src", "")).text

    assert "trains as the original does, but prints, writes or returns something else" in text
    assert "file 19.csv: expected a<b, got 0.5" in text
    assert "file 20.csv" not in text
    assert "2 more are in the JSON report" in text
    assert "does not train" not in text
    assert "does not train" in read(verify_page(document(shown, DIFFERENT), "src", "")).text
    # The value that a run gives back is off before the training that it shows is.
    levels = {"update": {"verdict": "different"}, "output": {"verdict": "different"}}
    later = {**shown, "levels": levels}
    assert "does not train" in read(verify_page(document(later), "src", "")).text


def test_nothing_of_the_program_runs_or_is_fetched() -> None:
    evil = "</title><script>alert(1)</script>\u202e<img src=http://x>"
    shown = document(
        run(note=evil, figures=figures(2, 2, name=evil)),
        not_compared=[evil],
        nondeterministic=[evil],
        error=evil,
    )
    checker = read(verify_page(shown, evil, evil))
    assert {tag for tag, _ in checker.seen} & {"script", "img", "link", "iframe", "object"} == set()
    for _, attributes in checker.seen:
        assert not any(name.startswith("on") or name in ("src", "href") for name in attributes)
    assert "\u202e" not in verify_page(shown, evil, evil).partition("<svg")[0]


def figures(
    arrays: int, runs: int, error: float = 1e-7, name: str = "layer/kernel"
) -> dict[str, Any]:
    return {
        "losses": [
            {"run": r, "stage": "gen", "step": r, "tower": t, "expected": 1.0 / (r + 1), "actual": 1.0 / (r + 1)}
            for r in range(runs)
            for t in range(2)
        ],
        "arrays": [
            {"level": "gradient", "stage": "gen", "name": f"{name}_{n}", "errors": [[r, error] for r in range(runs)]}
            for n in range(arrays)
        ],
    }  # fmt: skip


def test_a_thousand_arrays_are_a_page_that_a_browser_opens() -> None:
    page = verify_page(document(run(figures=figures(1000, 40))), "src", "")
    assert len(page) < 1_500_000
    read(page)
    # The first forty stand open, the others are one click away.
    assert page.index("960 more arrays") < page.index("layer/kernel_999")


def test_the_largest_differences_come_first() -> None:
    shown = figures(3, 2)
    shown["arrays"][1]["errors"][1][1] = 1e-3
    page = verify_page(document(run(figures=shown)), "src", "")
    first = re.search(r"<g><title>([^<]*)</title>", page)
    assert first is not None
    assert first[1] == "gradient layer/kernel_1 (gen): at most 1e+03 of the tolerance"


def test_levels_are_a_table() -> None:
    levels = {
        "forward": {
            "verdict": "equal",
            "arrays": 4,
            "steps": 3,
            "largest": 0.0,
            "excused": 0,
            "why": None,
        },
        "initial": {
            "verdict": "not compared",
            "arrays": 0,
            "steps": 0,
            "largest": None,
            "excused": 0,
            "why": "no <b>",
        },
    }
    text = read(verify_page(document(run(levels=levels)), "src", "")).text
    assert "4 arrays; 3 runs; bitwise" in text and "no <b>" in text


def test_a_line_is_drawn_where_its_values_are() -> None:
    chart = line_chart([Series("a", [(0, 1.0), (1, 3.0), (2, float("nan"))], "expected")], "t")
    (points,) = re.findall(r'<polyline class="expected" points="([^"]*)"', chart)
    (x0, y0), (x1, y1) = (map(float, each.split(",")) for each in points.split())
    assert x0 < x1 and y0 > y1  # y grows downwards


def test_a_logarithmic_chart_leaves_zero_out_and_shows_the_limit() -> None:
    chart = line_chart(
        [Series("a", [(0, 0.0), (1, 1e-8), (2, 1e-4)], "update")], "t", log=True, limit=("tolerance", [(0, 1e-6), (2, 1e-6)])
    )  # fmt: skip
    (points,) = re.findall(r'<polyline class="update" points="([^"]*)"', chart)
    assert len(points.split()) == 2
    (limit,) = re.findall(r'<polyline class="limit" points="([^"]*)"', chart)
    heights = [float(each.split(",")[1]) for each in points.split()]
    assert heights[0] > float(limit.split()[0].split(",")[1]) > heights[1]
    assert line_chart([Series("a", [(0, 0.0)], "update")], "t", log=True) == ""


def test_a_cell_has_the_colour_of_its_size() -> None:
    values = [0.0, *(end * 0.99 for end in BANDS[1:]), 1e9, float("inf")]
    chart = heat_map([Cells("x", values)], "t")
    assert re.findall(r"<rect class=h(\d)", chart) == [
        *map(str, range(len(BANDS))),
        str(len(BANDS)),
    ]
    assert heat_map([Cells("x", [None, None])], "t").count("<rect") == 0


def test_the_worst_excuses_come_first_and_many_are_opened_by_who_wants_them() -> None:
    excuses = [
        {
            "devices": "cpu:2", "level": "gradient", "name": f"<w{number}>", "step": number, "error": number * 1e-5,
            "evidence": {"off_by": 2e-5, "original_moves": 3e-4, "trials": 2},
        }
        for number in range(300)
    ]  # fmt: skip
    page = verify_page(document(run(), excuses=excuses), "src", "")
    shown, _, hidden = page.partition("<details>")
    numbers = [int(each) for each in re.findall(r"gradient of &lt;w(\d+)&gt;", shown)]
    assert numbers == list(range(299, 289, -1))
    assert "190 more</summary>" in hidden and "100 more stand in the JSON report" in hidden
    assert "2e-05</td><td>0.0003</td><td>trials 2" in shown
    read(page)
