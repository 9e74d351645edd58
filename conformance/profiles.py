"""The profile of a case: a packaged one, with what a user would change; and what it does, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.case import Case
from conformance.figures import Figure
from conformance.shapes import Configured, Decoder, Mlp
from psem_model.reading.profiles import changed, read
from spec.models.profiles import Profile

OWNED = ("zero redundancy", "zero redundancy x pp")
REPLICATED = ("ddp", "cp", "ddp x pp", *OWNED)
BESIDE_SP = ("fsdp2 x tp+sp", "fsdp2 x tp+sp x pp")
BESIDE_TP = ("fsdp2 x tp", "fsdp2 x tp x pp")
STAGED = ("fsdp2 x pp", "fsdp2 x tp x pp", "fsdp2 x tp+sp x pp")
IN_CONTEXT = ("fsdp2 x cp", "hsdp x cp")
SHARDED = ("fsdp2", "hsdp", "fsdp2 x pp", *IN_CONTEXT, *BESIDE_TP, *BESIDE_SP)
TENSOR = ("tp", "tp+sp", *BESIDE_TP, *BESIDE_SP)
SEQUENCE = ("tp+sp", *BESIDE_SP)
NAMES = dict.fromkeys(REPLICATED, "ddp") | dict.fromkeys(OWNED, "zero-redundancy")
NAMES |= dict.fromkeys(SHARDED, "fully-shard") | dict.fromkeys(("tp", "tp+sp"), "parallelize")


ROWS = "each weight is cut by rows of its first dimension, and padded to as many on each rank"
OWN_ROWS = "each rank's own rows, without padding"
ROOT = "the root's weights are not released after forward, unless told to"
HELD = "nor are those of layers of which reshard_after_forward=False is said"
CAST = "what rests is fp32, and is cast to bf16 before it is gathered: there is no other copy"
OWNERS = "each weight has one owner, which updates it and sends it to the others"
BUCKETED = "gradients are summed whole, each bucket padded on its own"
EACH = "in each micro-step, without no_sync"
KEEPS = "operations keep what norms scale, copied keys and values, logits, places and tokens"
APART = "each weight that reads a value sums its cotangent alone: three of attention, two of the MLP"
WORDS = "the gradient of the embedding's words is whole on each rank"
OWN_WORDS = "each rank's own words, without padding"
COPY = "momentum, if that is the optimizer's, begins as a copy of the gradient"
TERMS = "gradients of norms stay terms: each use by the optimizer sums them, of which Adam has three"
WHOLE_WORDS = "all words are on each rank: the embedding and the head are in no plan"
OWN_FEATURES = "each rank's own features inside the MLP, without padding"
OWN_COLUMNS = "slices of columns are copies without padding"
FIRST = "gradients of norms are summed whole, as they are, then cut"
IN_BF16 = "logits are in bf16, and so gathered"
LOGITS = "logits are gathered, or of each token the maximum, the sum and the loss are summed"
COMPRESSED = "the hook compresses gradients to 2 bytes"
FILLED = "who has no weights sends an element"
LEFT = "gradients that wait whole for the last micro-step leave slices"
AT_ONCE = "rotate all-gather gathers keys and values at once"
OF_MODULES = "operations keep what they read: norms and softmax copies in fp32, functions each step"
GIVEN = "checkpoints keep all that layers are given: masks, numbers of places, distances"
STAYS = "what backward gathers in a pipeline stays until the next forward has used it"
ONCE = "a pipeline's gradients are summed once a step"
EVERY = (*REPLICATED, *SHARDED, "tp", "tp+sp", "pp")


def name_of(case: Case) -> str:
    """What a user types as `--profile` for a case: a packaged profile, and what is added to it."""
    return "+".join((base_of(case), *_additions(case)))


def base_of(case: Case) -> str:
    """The packaged profile of a case."""
    if case.strategy == "eager":
        return "eager"
    if case.is_beside:
        return "fully-shard-offload"
    if case.mixed and is_fused(case) and case.strategy in SHARDED:
        return "fsdp2"
    return NAMES.get(case.strategy, "pytorch")


def is_fused(case: Case) -> bool:
    """Whether attention is one kernel; of a perceptron nothing is known that it would change."""
    return "context" in case.sizes or not isinstance(case.model, Decoder) or case.model.fused


def _additions(case: Case) -> Iterator[str]:
    """What the options of a case add."""
    if case.strategy == "eager":
        yield from ("fused",) * (isinstance(case.model, Configured) and case.model.fused)
        yield from ("cpu",) * case.mixed
        return
    is_sharded, decoder = case.strategy in SHARDED, isinstance(case.model, Decoder) and case.model
    if is_fused(case) and not isinstance(case.model, Mlp) and base_of(case) != "fsdp2":
        yield "fused"
    if case.mixed and base_of(case) != "fsdp2":
        yield "bf16" if is_sharded else "fp16-hook"
    if case.mixed and is_sharded and decoder and decoder.gpt and not case.is_beside:
        yield "cpu"
    if not case.each:
        yield "no-sync"
    if case.views:
        yield f"{'parameters' if case.strategy in OWNED else 'gradient'}-as-bucket-view"
    if is_sharded and case.reshard:
        yield "reshard"
    if case.rotate == "all-to-all":
        yield "all-to-all-rotate"
    if case.cut_loss:
        yield "loss-parallel"
    if case.whole_words:
        yield "whole-words"


def changes(case: Case) -> dict[str, Any]:
    """What no name says: keys of a file that is `like` the profile, and their values."""
    buckets = {"buckets": [case.bucket, case.bucket]} if case.bucket else {}
    outside = [] if case.reshard or case.shared_words else ["root"]
    units = {"units": "layer"} if case.shared_words else {}
    held = {"held_units": [*outside, *case.held]} if case.held or units else {}
    return buckets | units | held


def by_name(case: Case) -> Profile:
    """The profile of a case by its name alone."""
    return read(name_of(case))


def profile_of(case: Case) -> Profile:
    """What `psem predict --profile` takes for a case: a name, or a file that is like it."""
    return changed(by_name(case), changes(case))


@dataclass(frozen=True)
class Way:
    """One thing that PyTorch does otherwise.

    `figures`: what it shows in. `axes`: along which; none: of what rests. `when`: in which cases.
    """

    strategies: tuple[str, ...]
    figures: tuple[str, ...]
    axes: tuple[str, ...]
    words: str
    when: Callable[[Case], bool] = lambda case: True


def cuts_words(case: Case) -> bool:
    """Whether tensor parallelism cuts the embedding and the head."""
    return not case.whole_words


OF_OWN = ("gradients", "waiting", "moments")  # of what a rank has itself
WEIGHTS = (
    "batch",
    "shard",
    "replica",
    "batch x context",
)  # axes that weights are copied, or cut, along
WAYS = (
    Way(SHARDED, ("all_gather", "reduce_scatter"), WEIGHTS, ROWS),
    Way(SHARDED, ("parameters", "gradients", "waiting"), (), ROWS),
    Way(SHARDED, ("all_gather",), WEIGHTS, ROOT, lambda case: not case.shared_words),
    Way(SHARDED, ("all_gather",), WEIGHTS, HELD, lambda case: bool(case.held)),
    Way(SHARDED, ("moments", "host"), (), OWN_ROWS),
    Way(SHARDED, ("offload",), ("host",), OWN_ROWS),
    Way(SHARDED, ("fetch",), ("host",), f"{ROWS}; {ROOT}"),
    Way(SHARDED, ("fetch", "offload"), ("host",), CAST, lambda case: case.mixed),
    Way(STAGED, ("all_gather",), WEIGHTS, STAYS),
    Way((*STAGED, "ddp x pp"), ("all_reduce", "reduce_scatter"), (*WEIGHTS, "tensor"), ONCE),
    Way((*STAGED, "ddp x pp"), ("gradients", "waiting"), (), ONCE),
    Way(("hsdp",), ("fetch", "offload"), ("host",), f"slices are summed; {EACH}"),
    Way(SHARDED, ("pinned",), (), "parameters and gradients on the host are page-locked"),
    Way(("fsdp2", "hsdp"), ("parameters", "moments", "host"), (), CAST, lambda case: case.mixed),
    Way(("hsdp", "hsdp x cp"), ("all_reduce",), (*WEIGHTS, "context"), f"slices are summed; {EACH}"),
    Way(REPLICATED, ("all_reduce",), (*WEIGHTS, "context"), f"{BUCKETED}; {EACH}"),
    Way(("ddp",), ("all_reduce",), WEIGHTS, COMPRESSED, lambda case: case.mixed),
    Way(("fsdp2", "hsdp"), ("gradients",), (), LEFT, lambda case: not case.each),
    Way(
        ("cp", *IN_CONTEXT),
        ("all_gather", "permute"),
        ("context",),
        AT_ONCE,
        lambda case: case.rotate == "all-gather",
    ),
    Way(REPLICATED, ("buckets",), (), "buckets are copies of gradients"),
    Way(OWNED, ("all_reduce", "reduce_scatter"), WEIGHTS, f"{BUCKETED}; {EACH}"),
    Way(OWNED, ("all_gather", "broadcast"), WEIGHTS, OWNERS),
    Way(OWNED, ("broadcast",), WEIGHTS, FILLED, lambda case: case.views),
    Way(OWNED, ("moments",), (), OWNERS),
    Way(("tp", *BESIDE_TP), ("all_reduce",), ("tensor",), APART),
    Way(
        TENSOR,
        ("all_gather", "all_reduce", "reduce_scatter"),
        ("tensor",),
        LOGITS,
        cuts_words,
    ),
    Way(SHARDED, ("all_gather",), ("tensor",), IN_BF16, lambda case: case.mixed),
    Way(("tp+sp",), ("all_reduce",), ("tensor",), TERMS),
    Way(BESIDE_SP, ("all_reduce",), ("tensor",), FIRST),
    Way(("tp", "tp+sp"), ("gradients", "waiting"), (), WORDS, cuts_words),
    Way(("tp", "tp+sp"), OF_OWN, (), OWN_WORDS, cuts_words),
    Way(("tp", "tp+sp"), OF_OWN, (), OWN_FEATURES, lambda case: case.is_uneven),
    Way(("tp", "tp+sp"), ("moments",), (), COPY),
    Way(TENSOR, ("parameters", *OF_OWN), (), WHOLE_WORDS, lambda case: case.whole_words),
    Way(("tp", "tp+sp"), ("parameters",), (), OWN_COLUMNS, lambda case: case.is_uneven),
    Way(SEQUENCE, ("all_gather",), ("tensor",), "what is gathered in forward is kept for backward"),
    Way(
        ("cp", *IN_CONTEXT),
        ("permute",),
        ("context",),
        "keys and values travel as copies for each head",
    ),
    Way(EVERY, ("counts",), (), "Adam counts the steps of each weight: 4 bytes"),
    Way(EVERY, ("kept",), (), KEEPS),
    Way(("eager",), ("kept",), (), OF_MODULES, lambda case: not case.again),
    Way(("eager",), ("kept",), (), GIVEN, lambda case: case.again),
)


def why(case: Case, figure: Figure) -> str:
    """Why a figure of a case is not the textbook's; "" if nothing is known of it."""
    ways = (
        way.words
        for way in WAYS
        if case.strategy in way.strategies
        and figure.what in way.figures
        and figure.axis in (way.axes or ("",))
        and way.when(case)
    )
    return "; ".join(dict.fromkeys(ways))
