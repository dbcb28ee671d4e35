"""Plots as SVG, written by hand: lines, steps, stacks, bars and points on axes with round numbers. Equal data give equal bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH: Final = 720
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 44
COLOURS: Final = ("#3b6ea5", "#d1782f", "#4b8b3b", "#9a4f96", "#b0413e", "#5b5b5b", "#3d9a9a", "#a58f2e")
_MOST: Final = 1500
"""Points of a line; more cannot be told apart."""

Point = tuple[float, float]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One line, stack or cloud of points, with the name that the legend shows."""

    name: str
    points: list[Point]
    colour: str
    dashed: bool = False


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """What an axis shows, how its numbers are written, and whether equal steps mean equal factors."""

    label: str
    logarithmic: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()


class Plot:
    """A plot under construction."""

    def __init__(self, title: str, x: Axis, y: Axis, *, bounds: tuple[float, float, float, float]) -> None:
        self._title = title
        self._x, self._y = x, y
        self._low_x, self._high_x, self._low_y, self._high_y = bounds
        self._parts: list[str] = []
        self._legend: list[tuple[str, str]] = []

    def _at(self, point: Point) -> str:
        across = _place(point[0], self._low_x, self._high_x, logarithmic=self._x.logarithmic)
        up = _place(point[1], self._low_y, self._high_y, logarithmic=self._y.logarithmic)
        return f"{LEFT + across * (WIDTH - LEFT - RIGHT):.1f},{HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM):.1f}"

    def line(self, series: Series, *, stepped: bool = False) -> None:
        """Draw a line, or steps that keep their height until the next point."""
        points = stairs(series.points) if stepped else series.points
        dash = ' stroke-dasharray="5 4"' if series.dashed else ""
        path = " ".join(dict.fromkeys(self._at(point) for point in points))
        self._parts.append(f'<polyline fill="none" stroke="{series.colour}" stroke-width="1.6"{dash} points="{path}"/>')
        self._legend.append((series.name, series.colour))

    def area(self, series: Series, base: Sequence[Point]) -> None:
        """Fill what lies between two lines of steps."""
        path = [self._at(point) for point in stairs(series.points)]
        path += [self._at(point) for point in reversed(stairs(base))]
        self._parts.append(f'<polygon fill="{series.colour}" fill-opacity="0.75" points="{" ".join(path)}"/>')
        self._legend.append((series.name, series.colour))

    def bars(self, series: Series, place: int, places: int) -> None:
        """Draw a bar at each whole number, beside those of other series."""
        width = 0.8 / places
        for position, height in series.points:
            left = position - 0.4 + place * width
            corner, foot = self._at((left, max(height, self._low_y))), self._at((left + width * 0.92, self._low_y))
            x, y = map(float, corner.split(","))
            right, bottom = map(float, foot.split(","))
            self._parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}" fill="{series.colour}"/>'
            )
        self._legend.append((series.name, series.colour))

    def dots(self, series: Series) -> None:
        """Draw points."""
        for point in dict.fromkeys(self._at(point) for point in series.points):
            x, y = point.split(",")
            self._parts.append(f'<circle cx="{x}" cy="{y}" r="2" fill="{series.colour}" fill-opacity="0.5"/>')
        self._legend.append((series.name, series.colour))

    def __str__(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="sans-serif" font-size="11" role="img" aria-label="{escape(self._title)}">'
        )
        title = f'<text x="{LEFT}" y="14" font-size="13" font-weight="bold">{escape(self._title)}</text>'
        background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        return "\n".join([head, background, title, *self._axes(), *self._parts, *self._key(), "</svg>\n"])

    def _axes(self) -> list[str]:
        found = []
        for value in self._ticks(self._x, self._low_x, self._high_x):
            x, _ = self._at((value, self._low_y)).split(",")
            found.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
            label = self._x.names[int(value)] if self._x.names else short(value, percent=self._x.percent)
            found.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{escape(label)}</text>')
        for value in self._ticks(self._y, self._low_y, self._high_y):
            _, y = self._at((self._low_x, value)).split(",")
            found.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#e4e4e4"/>')
            text = short(value, percent=self._y.percent)
            found.append(f'<text x="{LEFT - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{escape(text)}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        found.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self._x.label)}</text>')
        turned = f'transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})"'
        found.append(
            f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" {turned}>{escape(self._y.label)}</text>'
        )
        return found

    def _ticks(self, axis: Axis, low: float, high: float) -> list[float]:
        if axis.names:
            return [float(index) for index in range(len(axis.names))]
        return decades(low, high) if axis.logarithmic else ticks(low, high)

    def _key(self) -> list[str]:
        found, x = [], float(LEFT)
        for name, colour in dict.fromkeys(self._legend):
            found.append(f'<rect x="{x:.0f}" y="20" width="10" height="8" fill="{colour}"/>')
            found.append(f'<text x="{x + 14:.0f}" y="28">{escape(name)}</text>')
            x += 24 + 6.2 * len(name)
        return found


def _place(value: float, low: float, high: float, *, logarithmic: bool) -> float:
    if logarithmic:
        value, low, high = (math.log10(max(each, 1e-9)) for each in (max(value, low), low, high))
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0


def ticks(low: float, high: float) -> list[float]:
    """Return four to nine round numbers between two."""
    if not high > low:
        return [low]
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten between two numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**exponent for exponent in range(first, last + 1)]


def short(value: float, *, percent: bool = False) -> str:
    """Write a number of an axis."""
    if percent:
        return f"{100 * value:g} %"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if abs(value) >= 1e4 else f"{value:g}"


def stairs(points: Sequence[Point]) -> list[Point]:
    """Turn levels into corners."""
    found: list[Point] = []
    for x, y in points:
        if found:
            found.append((x, found[-1][1]))
        found.append((x, y))
    return found


def thinned(points: Sequence[Point], pick: Callable[[Sequence[Point]], Point] = lambda part: part[-1]) -> list[Point]:
    """Leave out points that could not be told apart: of each part of the axis, one stays."""
    if len(points) <= _MOST:
        return list(points)
    low, high = points[0][0], points[-1][0]
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(int((point[0] - low) / (high - low or 1) * (_MOST - 1)), []).append(point)
    return [pick(part) for part in parts.values()]
