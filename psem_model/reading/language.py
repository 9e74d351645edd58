"""The language of schedules, in words: what the files of `psem check` may say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psem_model.reading.schedule_keys import REST_KEYS
from psem_model.text.report import Column, Report, Section, rows
from spec.language.schedule import BY, COLLECTIVE_KINDS, MICRO_STEPS, TAKES, Buffer, Kind, Phase, Span
from spec.models.states import State
from spec.models.training import Loss, Statistics

TABLES = (
    ("axes", 'the axes of the mesh of devices: axes = ["batch"]. Must be there'),
    (
        "start",
        'start = ["view"]: the step before left a view of the current parameters. Default: []',
    ),
    (
        "[training]",
        f"what a single device does, which the schedule must match. May be left out, as may each "
        f'key. loss = {{losses}} (default "{Loss.SUM.value}"): the sum, the mean over devices and '
        f"{MICRO_STEPS}, or the mean over all tokens; clip = true: the gradient is clipped by its "
        "norm; tied = true: some parameters are used in two places, and backward leaves the second "
        "one's gradient in 'tied gradients'; statistics = {statistics}: forward adds to a state "
        'that is not trained (true: "all samples", the mean over devices of what each adds; "first '
        'device": of its samples, on every device; "first device\'s copy": other copies may be old, as '
        "where a broadcast before forward makes them new). Default of the three: false",
    ),
    (
        "[rest]",
        f"where {{states}} are between steps. May be left out, as may each state and each of the keys "
        f"{', '.join(REST_KEYS)}: sharded = [axes] along which a device keeps only its slice (default "
        "[]: all of it; of activations, those of its own samples); stored = false: nothing is kept "
        "(default true); host = true: in the host's memory (default false); working = true, of "
        "parameters: a working copy, current wherever it is read and old between steps, perhaps",
    ),
    (
        "[step]",
        "micro_step = [...], once for each micro-batch: must be there; then finish = [...], once: may "
        "be left out. Each is an array of operations, an operation a table { op = ..., ... }",
    ),
)

BUFFERS = {
    Buffer.PARAMETERS: "where the parameters rest",
    Buffer.VIEW: "the parameters as forward and backward read them, where that is not where they rest",
    Buffer.OPTIMIZER: "where the optimizer's state rests, with the master weights if --bytes has some",
    Buffer.OPTIMIZER_VIEW: "a working copy of it",
    Buffer.GRADIENTS: "where gradients rest: accumulated over the micro-steps",
    Buffer.FRESH: "of one micro-step, as backward produces them",
    Buffer.TIED: "of one micro-step, from the second place: each backward overwrites them, also where "
    "it adds the first place's into gradients; with tied = true only",
    Buffer.ACTIVATIONS: "what forward keeps for backward, which uses them up",
    Buffer.STATISTICS: "running means and the like; with statistics in [training] only",
    Buffer.TOKENS: "how many there are in the samples of a micro-step: one number",
    Buffer.TOTAL_TOKENS: "accumulated over the micro-steps: one number",
    Buffer.NORM: "the square of the gradient's norm: one number",
}

DOES = {
    Kind.ALL_GATHER: "each device takes the slices of their owners along the axes",
    Kind.REDUCE_SCATTER: "sum along the axes, of which each device keeps its own slice",
    Kind.ALL_REDUCE: "sum along the axes, on each device",
    Kind.BROADCAST: "each device takes what the first along the axes has",
    Kind.FETCH: "from the host to the device",
    Kind.OFFLOAD: "from the device to the host",
    Kind.RECOMPUTE: "produce again what was not kept: parameters, or activations from parameters",
    Kind.FORWARD: "run the model on the samples; with statistics, adds to them",
    Kind.BACKWARD: "the samples' gradients at the parameters it reads, with the activations kept; into "
    "gradients they are added, into fresh gradients written. Along its axes each device has the "
    "samples of the whole group and computes the gradient of all of them; without, of its own",
    Kind.COUNT: "the tokens in the micro-step's samples: a device's own, or along the axes, all of the "
    "group's",
    Kind.ACCUMULATE: "add what it reads to what it writes",
    Kind.SCALE: 'multiply by a factor: a whole number, or text of numbers, axes and "micro_steps" with '
    '* and /, such as "1/2", "-1/batch", "3/2*batch/micro_steps", where an axis is its number of '
    "devices",
    Kind.DIVIDE: "divide by a count of tokens; over zero, nothing is known",
    Kind.SQUARE_NORM: "the sum of squares of what a device has: all of it, or with within, its own "
    "slice only, so that a sum along those axes is the whole norm's square",
    Kind.CLIP: "clip by the norm whose square is in by: times 1/(1 + norm^2) in exact and modular "
    "arithmetic, which have no roots; times min(1, 1/norm) in float64. The verdict holds for any "
    "function of the norm",
    Kind.UPDATE: "the optimizer applies the gradient it reads to weights and state, and to the resting "
    "parameters beside them; with within, in each device's slice only",
    Kind.KEEP: "copy, within: each device its own slice",
    Kind.RESET: "set to zero, for a sum that starts again",
    Kind.ZERO: "a buffer of zeros, with its room; with within, in each device's slice only",
    Kind.RELEASE: "drop the buffer: a later read finds nothing there",
}

KEYS = (
    ("op", "what it does; must be there"),
    ("source", "the buffer it reads; must be there"),
    ("into", "the buffer it writes. Left out: the same, where the operation may work in place"),
    ("by", "what it scales, divides or clips by; must be there for these, and for no other operation"),
    (
        "axes",
        "the axes it acts along: {collectives} must name them, backward and count may, for the samples "
        "of a whole group; other operations have none",
    ),
    (
        "within",
        "the axes along which a device has, reads and writes only its slice, before and after; what it "
        "has outside is left alone. Not an axis that is in axes (a sum along an axis of slices mixes "
        "different elements: nothing is known of it). What rests as slices is given slices only: of a "
        "whole value, within says which; what is known in its slice alone is one. Left out: none",
    ),
    (
        "span",
        "the room that its result takes for itself until its last use: {spans} (none; that of one "
        'unit at a time; that of all units at once). Left out: "nothing" in place (but for all_gather '
        "and fetch), where a place for the result is there already, and for operations that make "
        'nothing; else "unit"',
    ),
    (
        "phase",
        "the part of the step that it serves, for reading only: {phases}. Left out: its name's for "
        "forward, backward and update, else that of the operation before (the first one: forward in "
        "micro_step, reduce in finish)",
    ),
    ("mean", "true: a reduction divides the sum by the number of devices. Left out: false"),
    (
        "shift",
        "a device takes the slice of the one that many places further on, around the end, for its own; "
        "negative: further back. Of operations with within, all_gather and reduce_scatter. "
        "Left out: 0",
    ),
)


STEP_TABLES = (
    (
        "parts",
        'the model\'s parts in order, as ["embedding", "layer", "head"], each a table of that name; a '
        "layer may be there many times",
    ),
    ("stages", "the axis that cuts the layers, if one does: what several parts use is summed along it"),
    (
        "[cuts]",
        'what each axis cuts, as batch = { stream = "b" }, tensor = { weights = ["g", "f", "v"], '
        'stream = "s" }: weights along these indices, what parts hand on along that one; and with '
        'ring = "u", slices of which index go round it, in turns',
    ),
    (
        "[order]",
        's = ["context", "tensor"]: of an index that several axes cut, the outer one first; left out: '
        "as in axes. A device has one contiguous chunk, of values and constants alike: a move is along "
        "the inner one of the axes that cut a value",
    ),
    (
        "[a part]",
        'takes = "layer_in[b s h]", weights and constants: values that are there, with their indices '
        '(a slice of a constant is there too: "causal(tensor g)", or in turns, "causal(context turns '
        'u)"); '
        "forward = [...], and gives, the value it hands on; backward = [...], from cotangent, that of "
        "what it gives, to returns, that of what it takes; and in [a part.gradients], each weight's",
    ),
    (
        "[[states]]",
        "weights = [...], and a schedule of their states: axes, [states.rest], [states.step]. It sums "
        "over the axes along which their gradients come out in terms. With clip = true in [training], "
        "gradients are clipped by the norm of all: each schedule sums the square of its weights' norm "
        "over the axes that cut them too, and last over weights, those of all schedules. The norm of "
        "what several stages have is broadcast over these",
    ),
)
STEP_LINES = (
    ("into", "the new value: name and indices of what an operation makes, the name of what is moved"),
    ("contract", "the sum of products of two values over the indices that the result lacks"),
    ("add", "the sum of two values"),
    ("apply", "a function, by, of each element"),
    (
        "normalise",
        "a function, by, of all elements along the index over: softmax, norms; by log_sum_exp, one "
        "number for each row of others. A softmax may read that, too, and needs no other element then",
    ),
    ("rename", 'the same elements under other names of indices, names = ["s -> u"]'),
    (
        "backward",
        "true: the function's derivative, from a cotangent, and from what the function was computed "
        "from (softmax: from its result, and perhaps from what both sum to as a product, by rows). "
        "Others are made of the same operations",
    ),
    ("all_reduce", 'one value over one axis, as axes = ["tensor"]: terms, summed on every device'),
    ("reduce_scatter", "terms, summed, each device its slice along an index: along"),
    ("all_gather", "slices along an index, on every device"),
    ("all_to_all", "slices along one index become slices along another: along = [from, to]"),
    ("slice", "each device keeps its slice along an index of what is whole: nothing is sent"),
    (
        "ring_gather",
        "slices along an index, one in each turn on every device. Lines on what is not the same in "
        "each turn are a loop: what they make is there in that turn only, but for sums over turns",
    ),
    ("ring_reduce", "terms of such slices, summed as they go round, each device its slice in the end"),
    ("accumulate", "a term in each turn of the axis's ring, summed"),
    (
        "merge",
        "partial results of a softmax of each turn's keys alone, merged by their log_sum_exp, the "
        "second source; or that itself, if it is the only one",
    ),
)


def report() -> Report:
    """All of it."""
    words = {
        "losses": _or(f'"{loss.value}"' for loss in Loss),
        "statistics": _or(f'"{kind.value}"' for kind in Statistics),
        "states": ", ".join(state.value for state in State),
        "collectives": ", ".join(kind.value for kind in COLLECTIVE_KINDS),
        "spans": _or(f'"{span.value}"' for span in Span),
        "phases": _or(phase.value for phase in Phase),
    }
    named = {
        "Tables": ((name, _filled(text, words)) for name, text in TABLES),
        "Keys of an operation": ((name, _filled(text, words)) for name, text in KEYS),
        "Buffers": ((buffer.value, BUFFERS[buffer]) for buffer in Buffer),
        "Operations: what they do, what they read -> what they write": (
            row for kind in Kind for row in _operation(kind)
        ),
        "A model's step: tables, beside axes and [training]": STEP_TABLES,
        "A model's step: lines of a part": STEP_LINES,
    }
    columns = (Column("name"), Column("meaning", 1))
    sections = tuple(Section(title, columns, rows(cells)) for title, cells in named.items())
    title = (
        "A schedule is one training step, in TOML; `psem derive zero2` prints one. A model's step has "
        'its parts as well; `psem derive "zero1 * tp+sp"` prints one.'
    )
    return Report("derive", title, sections=sections)


def _operation(kind: Kind) -> Iterator[tuple[str, str]]:
    yield kind.value, DOES[kind]
    for sources, targets in TAKES[kind]:
        same = "any of these" if targets == sources else "in place"
        writes = same if targets in ((), sources) else _or(b.value for b in targets)
        yield "", f"{_or(b.value for b in sources)} -> {writes}"
    if BY.get(kind):
        yield "", f"by {_or(b.value for b in BY[kind])}"


def _filled(text: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _or(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} or {last}" if first else last
