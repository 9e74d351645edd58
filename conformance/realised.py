"""How PyTorch realises what cuts a model: its collectives, and what it keeps for backward."""

from __future__ import annotations

from conformance.cases import Case, Decoder
from conformance.figures import Figure
from conformance.plans import LOSS, STATES, Cut, Sent, add, sent_of
from conformance.states import Shapes
from psem_model.predict.moved import Moved
from psem_model.predict.plan import StageCosts
from spec.devices.collectives import COLLECTIVES
from spec.models.transformer import EMBEDDING, HEAD
from spec.numbers.arithmetic import Number, ceil_div
from spec.pipelines.pipeline import fullest

WIDTH, INDEX = 4, 8  # bytes of a value, and of a token's number
APART = {"d attention_norm": 3, "d mlp_norm": 2}  # of each weight that reads it, on its own
USES = {"adam": 3, "momentum": 1, "sgd": 1}  # of a gradient by the optimizer
MAXIMUM_SUM_AND_LOST = 3  # numbers of each token that a loss over cut words needs
COLUMNS = ("attention.wo.weight", "mlp.w2.weight")  # weights that tensor parallelism cuts by columns
NORM = "norm"


def local_shapes(case: Case, shapes: Shapes) -> Shapes:
    """Shapes of weights as tensor parallelism cuts them."""
    t = case.sizes.get("tensor", 1)
    found = {}
    for name, shape in shapes.items():
        columns = name.endswith(COLUMNS)
        cut = (shape[0], shape[1] // t) if columns else (ceil_div(shape[0], t), *shape[1:])
        found[name] = shape if NORM in name else cut
    return found


# ------------------------------------------------------------------------------------ collectives
def sent_between(cut: Cut, stage: StageCosts) -> Sent:
    """What a rank sends, by psem's moves, as often as PyTorch makes them."""
    case = cut.case
    kinds = {"ring_gather": "all_gather"} if case.rotate == "all-gather" else {}
    return sent_of(stage.moved, lambda move: _times(cut, move), kinds)


def sent_in_all(cut: Cut, stage: StageCosts) -> Sent:
    """And what psem has no moves for: logits, what a loss over cut words needs, gradients of norms."""
    of_model = [m for m in stage.moved if m.what not in STATES and m.what not in LOSS]
    between = sent_of(of_model, lambda move: _times(cut, move))
    return add(between, _of_head(cut), _of_norms(cut))


def _times(cut: Cut, move: Moved) -> Number:
    """How often PyTorch does what psem does once: by weight that reads it, or by head."""
    case, shape = cut.case, cut.shape
    if "context" in move.axes and move.what not in STATES:
        return shape.heads // shape.kv_heads  # keys and values are copied before they travel
    whole = "tensor" in move.axes and not case.strategy.endswith("sp")
    return APART.get(move.what, 1) if whole else 1


def _of_head(cut: Cut) -> Sent:
    """Logits are gathered; or of each token the maximum, the sum and the loss are summed."""
    case, t = cut.case, cut.case.sizes.get("tensor", 1)
    if t == 1:
        return {}
    words = ceil_div(cut.shape.vocabulary, t)
    if case.cut_loss:
        numbers = COLLECTIVES["all_reduce"].volume(t, ceil_div(cut.tokens, t))
        kind, elements = "all_reduce", MAXIMUM_SUM_AND_LOST * numbers
    else:
        kind, elements = "all_gather", COLLECTIVES["all_gather"].volume(t, cut.tokens * words)
    sent = case.micro_steps * elements
    return {Figure(kind, "tensor"): (sent, WIDTH * sent)}


def _of_norms(cut: Cut) -> Sent:
    """Gradients of norms whose tokens are cut: whole weights, for each use by the optimizer.

    FSDP2 sums them before it cuts them in slices, in each micro-step.
    """
    case, t = cut.case, cut.case.sizes.get("tensor", 1)
    if not case.strategy.endswith("sp"):
        return {}
    uses = USES[case.optimizer] if case.strategy == "tp+sp" else case.micro_steps
    norms = 2 * cut.shape.layers + 1
    sent = uses * norms * COLLECTIVES["all_reduce"].volume(t, ceil_div(cut.shape.hidden, t))
    return {Figure("all_reduce", "tensor"): (sent, WIDTH * sent)}


# ------------------------------------------------------------------------------------ activations
def kept_of(cut: Cut, rank: int) -> Number:
    """Bytes that PyTorch keeps for backward, at most: psem's, and what its operations keep besides."""
    stage = cut.stage(cut.profile, rank)
    costs = stage.plan.costs
    of_chunks = [
        sum(n * (costs[name].activations + besides(cut, name, rank)) for name, n in chunk.items())
        + places(cut)
        for chunk in stage.chunks
    ]
    return fullest(stage.plan.pipe, stage.number, of_chunks) + samples(cut, stage)


def besides(cut: Cut, part: str, rank: int) -> Number:
    """Bytes that a part keeps on a rank in PyTorch, and not by psem's count."""
    shape, case, tokens, width = cut.shape, cut.case, cut.tokens, width_of(cut)
    t = case.sizes.get("tensor", 1)
    stream = tokens // t if case.strategy.endswith("sp") else tokens
    norm = stream * of_norm(shape, width)
    if part == EMBEDDING:
        return 0
    if part == HEAD:
        words = cut.words(rank) if case.cut_loss else shape.vocabulary
        logits = WIDTH * tokens * (words - ceil_div(shape.vocabulary, t))
        return norm + logits - WIDTH * stream + WIDTH
    heads = shape.heads // t
    copies = 2 * width * tokens * (heads - shape.kv_heads // t) * (shape.hidden // shape.heads)
    is_apart = shape.fused and case.strategy != "cp"  # a ring's log-sum-exp of each row psem counts
    total = WIDTH * tokens * heads if is_apart else 0
    return 2 * norm + copies + total


def width_of(cut: Cut) -> int:
    """Bytes of what is computed, but for sums."""
    return 2 if cut.in_bf16 else WIDTH


def of_norm(shape: Decoder, width: int) -> int:
    """Bytes that a norm keeps of a token: its root, and what is scaled, with a copy in fp32 if that is
    bf16; a kernel its mean and its root.
    """
    if shape.gpt:
        return 2 * width
    copy = WIDTH * shape.hidden if width < WIDTH else 0
    return WIDTH + width * shape.hidden + copy


def samples(cut: Cut, stage: StageCosts) -> Number:
    """Numbers of the tokens that the embedding reads, and of those that the loss does.

    Of a pipeline, those of all micro-batches: each is a view of the whole.
    """
    ends = sum(name in stage.counts for name in (EMBEDDING, HEAD))
    return ends * INDEX * cut.tokens * (cut.case.micro_steps if "pipe" in cut.case.sizes else 1)


def places(cut: Cut) -> Number:
    """The places of all tokens: their numbers, or cosines and sines, once for all layers of a stage."""
    shape = cut.shape
    if shape.gpt:
        return INDEX * shape.sequence
    return 2 * width_of(cut) * shape.sequence * shape.hidden // shape.heads
