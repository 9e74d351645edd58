"""Tables of models: packaged ones; what their axes send and keep, pipelines, products of strategies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from psem_model.check.steps import check_product
from psem_model.predict.closed import AXIS_SYMBOLS, LEGEND, per_token, shortest, symbol
from psem_model.predict.gpt import gpt, in_flight, plan
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts
from psem_model.reading.configurations import packaged, read
from psem_model.reading.products import parse
from psem_model.tables.table import Style, table
from psem_model.text.report import Cell, Column, Note, Section, note
from spec.costs.model_costs import parameters
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.models.states import MIXED_ADAM
from spec.models.transformer import HEAD, LAYER
from spec.pipelines.idle_and_held import bubble_of_ideal, bubble_of_makespan
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import OVER_ALL, PIPELINE
from spec.plans.model_strategies import MODEL_AXES
from spec.plans.strategies import STRATEGIES

OF_MODELS = {**LEGEND, **{letter: f"devices along {axis}" for axis, letter in AXIS_SYMBOLS.items()}}


def _model() -> Note:
    """What the model is."""
    features = plan("dp").transformer.feed_forward
    said = "A GPT-like model: layer norms, offsets, dropout, a key for each head, an MLP of"
    return note(said, features, "features.")


def lies_of(strategy: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How the weights of a layer lie along the axis, and what backward reads of it."""
    program = plan(strategy).costs[LAYER].program
    (axis,) = program.axes
    weights, kept = (
        tuple(dict.fromkeys(str(program.lies[value][axis.name]) for value in values))
        for values in (program.part.weights, program.kept)
    )
    return weights, kept


def packaged_models(style: Style) -> Section:
    """Models that --model takes by name, with their sizes, family by family."""
    rows = []
    for name, path in packaged().items():
        family, model, *_ = read(str(path))
        sizes = (model.layers, model.hidden, sum(parameters(model).values()))
        rows.append((family, name, *(f"{size:,}" for size in sizes)))
    titles = ("layers", "hidden", "parameters")
    return table(
        "models",
        "Packaged models",
        (Column("family", 1), Column("model", 1.5), *(Column(title, 1) for title in titles)),
        sorted(rows),
        [note("Parameters: elements of weights, tied words once.", columns=["parameters"])],
        long=True,
        headed=True,
    )


# --------------------------------------------------------------------------------- communication
def layers(style: Style) -> Section:
    """What a layer sends forward, backward, and to have again what it did not keep."""
    rows: list[tuple[Cell, ...]] = []
    widths: set[int] = set()
    held_rows: list[str] = []
    for strategy in MODEL_AXES:
        costs = plan(strategy).costs[LAYER]
        rows += _sent(strategy, costs)
        widths |= {t.move.value.width for t in costs.traffic if t.phase in PHASES}
        held = plan(strategy, held=True).costs[LAYER]
        if held.sent(*PHASES) != costs.sent(*PHASES):
            rows += _sent(f"{strategy}, held", held)
            held_rows.append(f"{strategy}, held")
    piped = plan(PIPELINE)
    sent, width = piped.costs[LAYER].handed_on, piped.costs[LAYER].program.gives.width
    widths.add(width)
    for phase in (FORWARD, BACKWARD):
        rows.append((PIPELINE, piped.product.pipe, phase, "send", sent, sent * width))
    return table(
        "layers",
        "Communication of a transformer layer, per device and micro-batch",
        (
            Column("strategy"),
            Column("along"),
            Column("when"),
            Column("collectives", 1),
            Column("elements"),
            Column("bytes"),
        ),
        tuple(rows),
        (
            _model(),
            note("ep: with experts.", rows=["ep"]),
            note(
                f"Sent are activations, of {_listed(widths)} bytes an element, whatever weights have.",
                columns=["elements", "bytes"],
            ),
            note("Held: what is gathered forward stays for backward.", rows=held_rows),
            note(f"{PIPELINE}: between stages.", rows=[PIPELINE]),
            note("Sizes divide what they cut.", columns=["elements", "bytes"]),
            note("A ring has two devices at least.", rows=["cp"], columns=["elements", "bytes"]),
        ),
        OF_MODELS,
    )


def _listed(widths: set[int]) -> str:
    return ", ".join(map(str, sorted(widths - {0})))


def _sent(strategy: str, costs: PartCosts) -> Iterator[tuple[Cell, ...]]:
    for phase in PHASES:
        found = [t for t in costs.traffic if t.phase == phase]
        names = [t.collective for t in found]
        counted = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
        elements, sent = sum(t.elements for t in found), sum(t.bytes for t in found)
        if found:
            along = " x ".join(found[0].axes)
            yield strategy, along, phase, counted, shortest(elements), shortest(sent)


# ----------------------------------------------------------------------------------- activations
def activations(style: Style) -> Section:
    """Bytes that a layer keeps for backward, by what is made again; and those of the head."""
    rows: list[tuple[Cell, ...]] = []
    widths: set[int] = set()
    for part, agains in ((LAYER, (NOTHING, PAIRS, EVERYTHING, FROM_SLICES)), (HEAD, (NOTHING,))):
        for strategy in MODEL_AXES:
            seen = []
            for again in agains:
                costs = plan(strategy, again).costs[part]
                if costs.activations not in seen:  # slices of what is not cut are no other thing
                    rows.append((part, strategy, again, per_token(costs.activations).expression))
                seen.append(costs.activations)
                widths |= {value.width for value in costs.program.kept}
    return table(
        "activations",
        "Activation memory: bytes that a device keeps for backward, of one micro-batch",
        (Column("part"), Column("strategy"), Column("made again"), Column("bytes")),
        tuple(rows),
        (
            _model(),
            note("ep: with experts."),
            note(
                f"Elements have {_listed(widths)} bytes: masks, values, what the loss and the choice "
                "of experts are computed from, whatever weights have.",
                columns=["bytes"],
            ),
        ),
        OF_MODELS,
    )


# ------------------------------------------------------------------------- pipelines and products
def pipelines(style: Style) -> Section:
    """Idle time, and micro-batches whose activations a stage keeps."""
    p, m, v, stage = (symbol(name) for name in "pmvi")
    rows = []
    for kind in Order:
        pipe = Pipeline(kind, p, m, {Order.INTERLEAVED: v, Order.DUALPIPE_V: 2}.get(kind, 1))
        idle = shortest(bubble_of_ideal(pipe)), shortest(bubble_of_makespan(pipe))
        rows.append((kind.value, *idle, in_flight(pipe, stage)))
    return table(
        "pipelines",
        "Pipeline schedules: idle time, and micro-batches in flight",
        (
            Column("schedule"),
            Column("idle, of the work"),
            Column("idle, of the step"),
            Column("in flight on stage i"),
        ),
        tuple(rows),
        (
            note(
                "In flight: micro-batches, each of one chunk, whose forward has started and whose "
                "backward has not ended, at most.",
                columns=["in flight on stage i"],
            ),
        ),
        {**OF_MODELS, "i": "the stage, from 0 on"},
    )


def products(style: Style) -> Section:
    """The verdict on each strategy of the training states times each that cuts the model."""
    factors = (*(name for name in MODEL_AXES if name not in STRATEGIES), PIPELINE, f"tp+sp*{PIPELINE}")
    rows: list[tuple[Cell, ...]] = []
    notes: list[Note | str] = ["yes: accepted; no: rejected."]
    known = (*STRATEGIES, *OVER_ALL)
    for done, states in enumerate(known):
        style.tell(done / len(known))
        verdicts = [_verdict(f"{states}*{factor}") for factor in factors]
        if {*verdicts} == {IN_ONE}:
            notes.append(note(f"{states}: {IN_ONE} only.", rows=[states]))
            verdicts = ["yes"] * len(verdicts)
        rows.append((states, *verdicts))
    return table(
        "products",
        "Products of strategies: verdicts",
        (Column("times"), *(Column(factor) for factor in factors)),
        tuple(rows),
        (
            *notes,
            f"Checked on {SMALL} devices along each axis, with {SMALL} micro-steps, or else with one. "
            "Claim K5 is of all sizes, and of all of these strategies but fused-update.",
        ),
    )


SMALL = 2
IN_ONE = "with one micro-step"


@cache
def _verdict(text: str) -> str:
    found = parse(text)
    model, mesh = gpt(text, V=16).transformer, dict.fromkeys(found.product.axes, SMALL)
    for micro_steps, verdict in ((SMALL, "yes"), (1, IN_ONE)):
        if check_product(text, found.product, model, mesh, micro_steps, MIXED_ADAM).accepted:
            return verdict
    return "no"
