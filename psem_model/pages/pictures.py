"""The pictures of the report: each from what the other rooms compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from psem_model.pages.charts import (
    LINE,
    Bar,
    Chart,
    Dot,
    Label,
    Picture,
    Scale,
    Stroke,
    beside,
    heading,
    placed,
    under,
)
from psem_model.predict.closed import PSI, K, closed_form, mesh_symbols
from psem_model.predict.gpt import gpt
from psem_model.predict.parts import PartCosts
from psem_model.published.measured import Row as Measured
from psem_model.published.measured import rows as measured_rows
from psem_model.space.placements import Row, Space
from psem_model.text import files
from spec.costs.memory import MODEL_STATES
from spec.costs.model_costs import elements
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM
from spec.models.transformer import LAYER
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.timeline import timeline
from spec.plans.strategies import STRATEGIES

WIDTH, BROAD = 340.0, 720.0  # of a chart beside others or on a phone, and of one alone
BASE, LEFT = 190.0, 34.0  # of a chart: where its axis is, what is left of it
TITLE, NARROWEST = 20, 8.4  # units above a timeline; of a bar with a number in it
DEVICES = (1, 2, 4, 8, 16, 32, 64)
STAGES, MICRO_BATCHES, CHUNKS = 3, 6, 2
IN_CHUNKS = (Order.INTERLEAVED, Order.DUALPIPE_V)
LAYER_OF = {"h": 4096, "a": 32, "s": 4096}
CUT = 8  # devices along the tensor axis
REPLICAS = 2  # groups of devices, of strategies that shard inside one


def pictures() -> list[Picture]:
    """All of them."""
    return [memory(), frontier(), pipelines(), activations(), measured()]


def _both(drawn: Callable[[float], Chart]) -> Chart:
    """A chart alone, and the same for a phone."""
    return replace(drawn(BROAD), narrow=drawn(WIDTH))


# ------------------------------------------------------------------------------------ memory
def memory() -> Picture:
    """Bytes of the model states by state, over the number of devices; alike strategies together."""
    alike: dict[Resting, list[str]] = {}
    for name in STRATEGIES:
        alike.setdefault(_resting(name), []).append(name)
    return Picture(
        "memory",
        "Memory by state over the number of devices",
        "Bytes that rest on a device for each parameter, with mixed-precision Adam; what the host "
        f"keeps is not drawn (zero-offload). hsdp: {REPLICAS} groups, sharded inside each.",
        [_states(", ".join(names), found) for found, names in alike.items()],
        [(state.value, state.value) for state in MODEL_STATES],
    )


Resting = tuple[tuple[float, ...], ...]  # for each number of devices, bytes of each state


def _resting(name: str) -> Resting:
    """Bytes that rest for each parameter."""
    found = closed_form(schedule_of(STRATEGIES[name]), MIXED_ADAM, False)
    *outer, inner = mesh_symbols(STRATEGIES[name].axes).values()
    sizes: list[tuple[float, ...]] = []
    for devices in DEVICES:
        groups = {axis: min(REPLICAS, devices) for axis in outer}
        at = {**groups, inner: devices // prod(groups.values()), K: MIXED_ADAM.k}
        sizes.append(tuple(float((found.resting[s] / PSI).subs(at)) for s in MODEL_STATES))
    return tuple(sizes)


def _states(name: str, found: Resting) -> Chart:
    high = float(MIXED_ADAM.w + MIXED_ADAM.g + MIXED_ADAM.k)
    up, step = Scale(0, high, BASE, 36), (WIDTH - LEFT) / len(DEVICES)
    bars, rows, labels = [], [], [Label(LEFT, 12, name, kind="strong")]
    for i, devices in enumerate(DEVICES):
        below, cells = 0.0, []
        for state, each in zip(MODEL_STATES, found[i], strict=True):
            top = up.at(below + each)
            title = f"{name}, N = {devices}: {state.value} {each:.4g} bytes a parameter"
            bars.append(
                Bar(
                    LEFT + i * step + 4, top, step - 8, round(up.at(below) - top, 1), state.value, title
                )
            )
            below += each
            cells.append(f"{each:.4g}")
        labels.append(Label(LEFT + (i + 0.5) * step, BASE + 15, str(devices), "middle"))
        labels.append(
            Label(LEFT + (i + 0.5) * step, up.at(below) - 3, f"{below:.3g}", "middle", "small")
        )
        rows.append([str(devices), *cells, f"{below:.4g}"])
    strokes = [Stroke([(LEFT, BASE), (WIDTH, BASE)])]
    labels += beside(up, LEFT)
    labels.append(Label(WIDTH, BASE + 30, "devices N", "end", "small"))
    heads = ("N", *(state.value for state in MODEL_STATES), "in all")
    says = f"{name}: bytes that rest for each parameter, for N from 1 to 64"
    return Chart(name, says, WIDTH, BASE + 36, bars, (), strokes, labels, heads, rows)


# ---------------------------------------------------------------------------------- frontier
def frontier() -> Picture:
    """The placements of a batch axis: bytes that rest against bytes that are sent."""
    space = Space(8, MIXED_ADAM, 1)
    chart = _both(lambda width: _frontier(space, width))
    return Picture(
        "frontier",
        "The frontier of placements",
        f"{chart.says}. 8 devices, mixed-precision Adam, one micro-step (claims P1, P2).",
        [chart],
        [
            ("class", "a class of placements, on the device"),
            ("offloaded", "a class that uses the host"),
            ("best", "best of those on the device"),
            ("strategy", "a named strategy"),
        ],
    )


def _frontier(space: Space, width: float) -> Chart:
    height, left = 380.0, 40.0
    known = [*space.rows, *space.strategies]
    across = Scale(0, max(float(r.cost.sent) for r in known) * 1.05, left, width - 10)
    up = Scale(0, max(float(r.cost.resting) for r in known) * 1.05, height - 40, 30)

    def at(row: Row) -> tuple[float, float]:
        return across.at(float(row.cost.sent)), up.at(float(row.cost.resting))

    def says(row: Row) -> str:
        cost = row.cost
        host = f", {float(cost.host):.4g} over the host link" if cost.host else ""
        return f"{row.name}: rests {float(cost.resting):.4g}, sends {float(cost.sent):.4g}{host}"

    best = sorted(
        (r for r in space.rows if not r.cost.host and r.better is None), key=lambda r: r.cost.sent
    )
    corners: list[tuple[float, float]] = []
    for row in best:
        x, y = at(row)
        corners += [(x, corners[-1][1]), (x, y)] if corners else [(x, y)]
    named: dict[tuple[float, float], list[str]] = {}
    for row in space.strategies:
        named.setdefault(at(row), []).append(row.name)
    dots = [Dot(*at(r), "offloaded" if r.cost.host else "class", says(r)) for r in space.rows]
    dots += [Dot(*at(r), "best", says(r)) for r in best]
    dots += [Dot(*at(r), "strategy", says(r)) for r in space.strategies]
    strokes = [
        Stroke([(left, 24), (left, height - 40), (width - 10, height - 40)]),
        Stroke(corners, "frontier"),
    ]
    least = min(x for x, _ in named)  # left of these points there is room
    labels = placed(
        [
            Label(x + 7, y - 5, ", ".join(names), kind="strong")
            for (x, y), names in named.items()
            if x > least
        ],
        dots,
    )
    labels += [
        Label(x - 8, y + 4 + LINE * number, name, "end", "strong")
        for (x, y), names in named.items()
        if x == least
        for number, name in enumerate(names)
    ]
    labels += [*beside(up, left), *under(across, height - 24)]
    labels.append(
        Label(width - 10, height - 6, "bytes sent, per device, step and parameter", "end", "small")
    )
    labels.append(Label(0, 12, "bytes resting, per device and parameter", kind="small"))
    rows = [
        [
            r.name,
            f"{float(r.cost.resting):.4g}",
            f"{float(r.cost.sent):.4g}",
            f"{float(r.cost.host):.4g}",
        ]
        for r in [*space.strategies, *best]
    ]
    counts = space.counts
    return Chart(
        "Placements of a batch axis on 8 devices",
        f"{counts['realisable']} realisable placements of {counts['placements']}, in "
        f"{counts['classes']} classes of equal cost: bytes that rest against bytes that are sent",
        width,
        height,
        (),
        dots,
        strokes,
        labels,
        ("placement", "rests", "sends", "host link"),
        rows,
    )


# --------------------------------------------------------------------------------- pipelines
def pipelines() -> Picture:
    """Orders of work of a pipeline, as they run."""
    pipes = [
        Pipeline(kind, STAGES, MICRO_BATCHES, CHUNKS if kind in IN_CHUNKS else 1) for kind in Order
    ]
    longest = max(float(timeline(p).makespan) / float(p.chunks) for p in pipes)
    return Picture(
        "pipelines",
        "Pipelines as timelines",
        f"{STAGES} stages, {MICRO_BATCHES} micro-batches; a backward takes twice as long as a forward, "
        "and the number of the micro-batch stands where there is room. "
        f"{', '.join(kind.value for kind in IN_CHUNKS)}: {CHUNKS} chunks of layers on each stage "
        "(claims B1 to B10).",
        [_both(partial(_timeline, pipe, longest)) for pipe in pipes],
        [
            ("forward", "forward of a micro-batch"),
            ("backward", "backward of it, or its first part"),
            ("weights", "the second part: gradients of matrices"),
        ],
    )


def _timeline(pipe: Pipeline, longest: float, width: float) -> Chart:
    found, left, high = timeline(pipe), 52.0, 22.0
    chunks = int(pipe.chunks)
    across = Scale(0, longest * chunks, left, width - 6)
    idle = float(found.bubble(0) / found.makespan)
    title = f"{pipe.order.value}: each stage idle {idle:.1%} of the step"
    bars, labels, rows = [], [Label(0, 12, title, kind="strong")], []
    for stage, starts in enumerate(found.starts):
        y = TITLE + stage * (high + 4)
        labels.append(Label(left - 6, y + 15, f"stage {stage}", "end"))
        for work, start in starts.items():
            x = across.at(float(start))
            end = across.at(float(start + found.durations[work.half]))
            kind = work.half.value
            chunk = f", chunk {work.chunk}" if chunks > 1 else ""
            bars.append(
                Bar(
                    x,
                    y,
                    round(end - x - 0.8, 1),
                    high,
                    kind,
                    f"{kind} of micro-batch {work.micro_batch + 1}{chunk}",
                )
            )
            if end - x > NARROWEST:
                middle = (x + end) / 2
                labels.append(Label(middle, y + 15, str(work.micro_batch + 1), "middle", "in"))
        rows.append(
            [str(stage), str(found.makespan), str(found.bubble(stage)), str(found.in_flight(stage))]
        )
    says = f"{title}; it takes {found.makespan} times a forward of a chunk"
    heads = ("stage", "span", "idle", "held at once")
    return Chart(
        pipe.order.value,
        says,
        width,
        TITLE + pipe.stages * (high + 4),
        bars,
        (),
        (),
        labels,
        heads,
        rows,
    )


# ------------------------------------------------------------------------------- activations
def activations() -> Picture:
    """What a layer keeps for backward, value by value, as strategies cut it."""
    plans = {
        "dp": gpt("dp", **LAYER_OF),
        **{name: gpt(name, t=CUT, **LAYER_OF) for name in ("tp", "tp+sp")},
    }
    found = {name: dict(_kept(plan.costs[LAYER])) for name, plan in plans.items()}
    values = list(dict.fromkeys(value for kept in found.values() for value in kept))
    values.sort(key=lambda v: -found["dp"].get(v, 0))
    high = max(size for kept in found.values() for size in kept.values())
    return Picture(
        "activations",
        "Activation memory by value of a layer",
        f"MiB that a device keeps for backward of one GPT layer and one sample: {LAYER_OF['s']:,} "
        f"tokens, {LAYER_OF['h']:,} features, {LAYER_OF['a']} heads; tp and tp+sp over {CUT} devices "
        "(claims A1, A2).",
        [_kept_chart(name, found[name], values, high) for name in found],
        [],
    )


def _kept(costs: PartCosts) -> Iterator[tuple[str, float]]:
    program, kept = costs.program, files.beside(__file__, "words.toml")["kept"]
    for value in program.kept:
        size = elements(value, program.lies[value], costs.indices, costs.mesh) * value.width
        yield kept[value.name.partition("|")[0]], float(size) / 2**20


def _kept_chart(name: str, kept: dict[str, float], values: Sequence[str], high: float) -> Chart:
    left, row = 140.0, 17.0
    across = Scale(0, high, left, WIDTH - 52)
    total = sum(kept.values())
    bars, labels = [], [Label(0, 12, f"{name}: {total:,.1f} MiB in all", kind="strong")]
    for i, value in enumerate(values):
        y, size = 20 + i * row, kept.get(value, 0.0)
        end = across.at(size)
        title = f"{name}: {value} {size:,.2f} MiB"
        bars.append(Bar(left, y, round(max(end - left, 0.5), 1), row - 4, "parameters", title))
        labels.append(Label(left - 5, y + 11, value, "end", "small"))
        labels.append(Label(end + 4, y + 11, f"{size:,.4g}", kind="small"))
    rows = [[value, f"{kept.get(value, 0.0):,.4g}"] for value in values]
    says = f"{name}: {total:,.1f} MiB kept for backward, by value"
    return Chart(
        name, says, WIDTH, 24 + len(values) * row, bars, (), (), labels, ("value", "MiB"), rows
    )


# ---------------------------------------------------------------------------------- measured
def measured() -> Picture:
    """Memory that others measured, beside the bracket that is predicted."""
    found = measured_rows()
    by_model: dict[str, list[Measured]] = {}
    for row in found:
        by_model.setdefault(row.what, []).append(row)
    within = sum(row.within for row in found)
    return Picture(
        "measured",
        "Measured memory beside the predicted bracket",
        "GiB of the fullest device: from what is kept to the peak, and what others measured; "
        f"{within} of {len(found)} measurements lie in the bracket. docs/MEASURED.md has the sources "
        "and the commands.",
        [_both(partial(_brackets, what, rows)) for what, rows in by_model.items()],
        [
            ("bracket", "predicted, from kept to peak"),
            ("measured", "measured"),
            ("outside", "measured, outside"),
        ],
    )


def _brackets(what: str, found: Sequence[Measured], width: float) -> Chart:
    row_height, left = 40.0, 10.0
    high = max(max(row.peak, row.measured) for row in found) * 1.05
    across = Scale(0, high, left, width - 20)
    strokes, dots, rows = [], [], []
    labels = heading(what, width)
    top = 28 + LINE * len(labels)
    for i, row in enumerate(found):
        y = top + i * row_height
        strokes.append(Stroke([(across.at(row.kept), y), (across.at(row.peak), y)], "bracket"))
        kind = "measured" if row.within else "outside"
        stage = f", stage {row.stage}" * (row.predicted.pipe.stages > 1)
        of = f"{row.plan}{stage}, {row.sequence:,} tokens"
        said = f"{of}: kept {row.kept:.2f}, measured {row.measured}, peak {row.peak:.2f} GiB"
        dots.append(Dot(across.at(row.measured), y, kind, said))
        outside = "" if row.within else " (outside)"
        labels.append(Label(left, y - 9, of + outside, kind="small"))
        rows.append(
            [row.plan, f"{row.sequence:,}", f"{row.kept:.2f}", f"{row.measured}", f"{row.peak:.2f}"]
        )
    bottom = top + len(found) * row_height - 12
    strokes.append(Stroke([(left, bottom), (width - 20, bottom)]))
    labels += under(across, bottom + 15)
    heads = ("plan", "tokens", "kept", "measured", "peak")
    says = f"{what}: kept, measured and peak memory in GiB"
    return Chart(what, says, width, bottom + 22, (), dots, strokes, labels, heads, rows)
