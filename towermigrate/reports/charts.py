"""Charts as SVG that stands in a page: no script, no request, colours by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 660, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 10, 30


@dataclass(frozen=True)
class Series:
    """One line or cloud of a chart: points, the name in the legend, and its class in the style sheet."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str
    dots: bool = False


def line_chart(
    series: Sequence[Series],
    title: str,
    *,
    log: bool = False,
    limit: tuple[str, Sequence[tuple[float, float]]] | None = None,
) -> str:
    """Lines over steps.

    Args:
        series: what to draw; points that are no finite numbers are left out, and with `log` those that are not above 0.
        title: says what the chart shows, for screen readers and when it is pointed at.
        log: a logarithmic scale.
        limit: the name and the points of a line not to be crossed.
    """

    def drawn(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x, y) for x, y in points if math.isfinite(y) and (y > 0 or not log)]

    every = [drawn(each.points) for each in series]
    bound = drawn(limit[1]) if limit is not None else []
    flat = [point for points in [*every, bound] for point in points]
    if not any(every):
        return ""
    up = math.log10 if log else float
    xs, ys = [x for x, _ in flat], [up(y) for _, y in flat]
    low, high = min(ys), max(ys)
    if log:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
    margin = 0.0 if log else (high - low or abs(high) or 1.0) * 0.06
    across = _scale(min(xs), max(xs), _LEFT, WIDTH - _RIGHT)
    along = _scale(low - margin, high + margin, HEIGHT - _BOTTOM, _TOP)

    def place(point: tuple[float, float]) -> str:
        return f"{across(point[0]):.1f},{along(up(point[1])):.1f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>']
    for value, text in _ticks_log(low, high) if log else _ticks(low - margin, high + margin):
        y = along(value)
        parts.append(f'<path class=grid d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(f"<text class=tick x={_LEFT - 6} y={y + 4:.1f} text-anchor=end>{text}</text>")
    for x in _whole(min(xs), max(xs)):
        parts.append(
            f"<text class=tick x={across(x):.1f} y={HEIGHT - 12} text-anchor=middle>{x}</text>"
        )
    if bound:
        parts.append(f'<polyline class="limit" points="{" ".join(map(place, bound))}"/>')
    for each, points in zip(series, every, strict=True):
        if each.dots:
            for point in points:
                cx, _, cy = place(point).partition(",")
                parts.append(f'<circle class="{each.style}" cx={cx} cy={cy} r=3></circle>')
        else:
            parts.append(
                f'<polyline class="{each.style}" points="{" ".join(map(place, points))}"/>'
            )
    return "".join([*parts, "</svg>", *_legend(series, limit)])


def _legend(
    series: Sequence[Series], limit: tuple[str, Sequence[tuple[float, float]]] | None
) -> Iterator[str]:
    named: dict[str, Series] = {}
    for each in series:
        named.setdefault(each.name, each)
    entries = [(name, each.style, each.dots) for name, each in named.items()]
    entries += [] if limit is None else [(limit[0], "limit", False)]
    yield "<p class=legend>"
    for name, style, dots in entries:
        mark = "<circle cx=9 cy=5 r=3 /></svg>" if dots else '<path d="M0 5H18"/></svg>'
        mark = mark.replace("<circle", f'<circle class="{style}"').replace(
            "<path", f'<path class="{style}"'
        )
        yield f'<span><svg class=mark viewBox="0 0 18 10">{mark} {escape(name)}</span> '
    yield "</p>"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    size = high - low
    if size == 0:
        return lambda value: (start + end) / 2
    return lambda value: start + (value - low) / size * (end - start)


def _ticks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """About four round values between two."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough)
    value = math.ceil(low / step) * step
    while value <= high:
        yield value, f"{0.0 if abs(value) < step / 1e6 else value:.4g}"
        value += step


def _ticks_log(low: float, high: float) -> Iterator[tuple[float, str]]:
    step = max(1, round((high - low) / 5))
    for power in range(int(low), int(high) + 1, step):
        yield power, f"1e{power}"


def _whole(low: float, high: float) -> list[int]:
    """About eight whole numbers between two."""
    step = max(1, math.ceil((high - low) / 8))
    return list(range(math.ceil(low), math.floor(high) + 1, step))


@dataclass(frozen=True)
class Cells:
    """One row of a heat map: the name, and by column a value, None where there is none."""

    name: str
    values: Sequence[float | None]


_ROW, _NAMES, _CELLS = 15, 440, 560
_LETTERS = 62  # of a name, as many as there is room for
BANDS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Upper ends of the colours, in units of the limit; the last colour has none."""


def heat_map(rows: Sequence[Cells], title: str) -> str:
    """Values by row and column in colours, by what part of a limit they are; 1 is the limit."""
    columns = max((len(row.values) for row in rows), default=0)
    if not columns:
        return ""
    width = min(18.0, _CELLS / columns)
    total = _NAMES + width * columns + 4
    height = _ROW * len(rows) + 2
    parts = [
        f'<svg class=heat viewBox="0 0 {total:.0f} {height}" style="width:{total:.0f}px" role="img">'
        f"<title>{escape(title)}</title>"
    ]
    for number, row in enumerate(rows):
        y = number * _ROW
        shown = row.name if len(row.name) <= _LETTERS else "…" + row.name[1 - _LETTERS :]
        most = max((value for value in row.values if value is not None), default=0.0)
        parts.append(
            f"<g><title>{escape(row.name)}: at most {most:.2g} of the tolerance</title>"
            f"<text class=tick x={_NAMES - 8} y={y + 11} text-anchor=end>{escape(shown)}</text>"
        )
        for first, count, band in _runs(row.values):
            parts.append(
                f"<rect class=h{band} x={_NAMES + first * width:.1f} y={y + 1} width={count * width - 0.5:.1f} "
                f"height={_ROW - 2} />"
            )
        parts.append("</g>")
    return "".join([*parts, "</svg>"])


def heat_legend() -> str:
    """What the colours of `heat_map` mean."""
    names = [
        "bitwise equal",
        "≤ 0.001",
        "≤ 0.01",
        "≤ 0.1",
        "≤ 1 × tolerance",
        "≤ 10",
        "≤ 100",
        "more",
    ]
    marks = "".join(
        f'<span><svg class=mark viewBox="0 0 18 10"><rect class=h{band} width=18 height=10 /></svg> {name}</span> '
        for band, name in enumerate(names)
    )
    return f"<p class=legend>{marks}</p>"


def _runs(values: Sequence[float | None]) -> Iterator[tuple[int, int, int]]:
    """Neighbours of one colour: the first column, how many, the colour."""
    first, last = 0, None
    for column, value in enumerate([*values, None]):
        band = None if value is None else _band(value)
        if band != last:
            if last is not None:
                yield first, column - first, last
            first, last = column, band


def _band(value: float) -> int:
    return next((band for band, end in enumerate(BANDS) if value <= end), len(BANDS))
