"""The loss over the steps as a small SVG. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    Point = tuple[float, float]

WIDTH, HEIGHT, MARGIN = 640, 240, 40
_COLOURS = {"loss": "#2563eb", "evalLoss": "#dc2626"}


def loss_picture(losses: Sequence[dict[str, Any]]) -> str:
    """One line for the training loss and one for the held-out rows' loss."""
    series = {name: [(row["step"], row[name]) for row in losses if row.get(name) is not None] for name in _COLOURS}
    points = [point for line in series.values() for point in line]
    lines = [_line(name, line, points) for name, line in series.items() if line]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f"{''.join(lines)}{_labels(points)}</svg>\n"
    )


def _line(name: str, line: list[Point], points: list[Point]) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_place(point, points) for point in line))
    style = f'fill="none" stroke="{_COLOURS[name]}" stroke-width="2"'
    return f'<polyline points="{places}" {style}><title>{escape(name)}</title></polyline>'


def _place(point: Point, points: list[Point]) -> Point:
    (left, right), (low, high) = _range([x for x, _ in points]), _range([y for _, y in points])
    x = MARGIN + (point[0] - left) / (right - left) * (WIDTH - 2 * MARGIN)
    y = HEIGHT - MARGIN - (point[1] - low) / (high - low) * (HEIGHT - 2 * MARGIN)
    return x, y


def _range(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low, low + 1)


def _labels(points: list[Point]) -> str:
    if not points:
        return f'<text x="{MARGIN}" y="{HEIGHT // 2}">No losses were recorded.</text>'
    (left, right), (low, high) = _range([x for x, _ in points]), _range([y for _, y in points])
    return (
        f'<text x="4" y="{MARGIN}">{high:.2f}</text><text x="4" y="{HEIGHT - MARGIN}">{low:.2f}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 16}">step {left:g}</text>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 16}" text-anchor="end">step {right:g}</text>'
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle">loss (blue), held-out loss (red)</text>'
    )
