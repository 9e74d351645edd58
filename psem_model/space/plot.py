"""A plot of the placement space: bytes that rest against bytes that are sent, per parameter."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from psem_model.space.placements import PLACEMENTS, Row, Space
from psem_model.text.errors import BadInput
from psem_model.text.files import file_to_write, write_atomically

SUFFIXES = (".svg", ".png", ".pdf")
UNDATED: dict[str, dict[str, None]] = {  # the same plot is the same file
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
BEST, NAMED = "tab:blue", "tab:red"
LABEL = {"textcoords": "offset points", "fontsize": 8}


def draw(space: Space, name: str) -> None:
    """Write the plot to a file, whole or not at all. Raises BadInput with one line."""
    path = file_to_write("--plot", name, SUFFIXES, "space")
    suffix = path.suffix.lower()
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise BadInput(
            "--plot: the package matplotlib is missing; expected: pip install matplotlib"
        ) from None
    drawn = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "psem"}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        _fill(figure.add_subplot(), space)
        figure.savefig(drawn, format=suffix[1:], metadata=UNDATED[suffix], dpi=150)
    write_atomically(path, drawn.getvalue())


def _fill(axes: Any, space: Space) -> None:
    """Classes, the best of those that stay off the host link, and the strategies."""
    groups = (
        ("offloaded", "x", [r for r in space.rows if r.cost.host]),
        ("on the device", "o", [r for r in space.rows if not r.cost.host]),
    )
    for words, marker, rows in groups:
        if rows:
            axes.scatter(*_points(rows), marker=marker, color="0.7", label=f"class, {words}")
    best = sorted((r for r in groups[1][2] if r.better is None), key=lambda r: r.cost.sent)
    axes.step(
        *_points(best),
        where="post",
        color=BEST,
        marker="o",
        label=f"best of the {PLACEMENTS}, on the device",
    )
    for row in best:
        axes.annotate(row.name, _at(row), xytext=(-6, -3), ha="right", va="top", color=BEST, **LABEL)
    named: dict[tuple[float, float], list[str]] = {}
    for row in space.strategies:
        named.setdefault(_at(row), []).append(row.name)
    axes.plot(*zip(*named, strict=True), "D", color=NAMED, markersize=4, label="strategy")
    for at, names in named.items():
        axes.annotate("\n".join(names), at, xytext=(6, 3), color=NAMED, **LABEL)
    p, steps = space.policy, space.micro_steps
    axes.set_title(f"N = {space.devices}, w = {p.w}, g = {p.g}, K = {p.k}, m = {steps}")
    axes.set_xlabel("bytes sent per device, step and parameter")
    axes.set_ylabel("bytes resting per device and parameter")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.12)
    axes.legend()


def _at(row: Row) -> tuple[float, float]:
    return float(row.cost.sent), float(row.cost.resting)


def _points(rows: list[Row]) -> tuple[list[float], list[float]]:
    return [_at(row)[0] for row in rows], [_at(row)[1] for row in rows]
