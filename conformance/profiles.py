"""PyTorch's profile in words: what it does otherwise than the textbook, and where that shows."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.cases import Case
from conformance.figures import Figure

SHARDED = ("fsdp2", "hsdp", "fsdp2 x tp", "fsdp2 x tp+sp")
TENSOR = ("tp", "tp+sp", "fsdp2 x tp", "fsdp2 x tp+sp")
SEQUENCE = ("tp+sp", "fsdp2 x tp+sp")


ROWS = "each weight is cut by rows of its first dimension, and padded to as many on each rank"
ROOT = "the root's weights are not released after forward, unless told to"
CAST = "what rests is fp32, and is cast to bf16 before it is gathered: there is no other copy"
OWNERS = "gradients are summed whole, and each weight has one owner, which sends it to the others"
APART = "each weight that reads a value sums its cotangent alone: three of attention, two of the MLP"
LOGITS = "logits are gathered, or of each token the maximum, the sum and the loss are summed"
NORMS = "gradients of norms stay terms: each use by the optimizer sums them, of which Adam has three"


@dataclass(frozen=True)
class Way:
    """One thing that PyTorch does otherwise.

    `figures`: what it shows in. `axes`: along which; none: of what rests. `mixed`: in mixed precision.
    """

    strategies: tuple[str, ...]
    figures: tuple[str, ...]
    axes: tuple[str, ...]
    words: str
    mixed: bool = False


WEIGHTS = ("batch", "shard")  # axes that weights are cut along, to be gathered
WAYS = (
    Way(SHARDED, ("all_gather", "reduce_scatter"), WEIGHTS, ROWS),
    Way(SHARDED, ("parameters", "gradients", "waiting"), (), ROWS),
    Way(SHARDED, ("all_gather",), WEIGHTS, ROOT),
    Way(SHARDED, ("moments",), (), "each rank's own rows, without padding"),
    Way(("fsdp2", "hsdp"), ("parameters", "moments"), (), CAST, mixed=True),
    Way(("hsdp",), ("all_reduce",), ("replica",), "slices of a layer's weights are summed together"),
    Way(("ddp", "cp"), ("all_reduce",), WEIGHTS, "each bucket is summed, and padded, on its own"),
    Way(("zero redundancy",), ("all_reduce", "reduce_scatter", "all_gather"), WEIGHTS, OWNERS),
    Way(("tp", "fsdp2 x tp"), ("all_reduce",), ("tensor",), APART),
    Way(TENSOR, ("all_gather", "all_reduce", "reduce_scatter"), ("tensor",), LOGITS),
    Way(SEQUENCE, ("all_gather",), ("tensor",), "what is gathered in forward is kept for backward"),
    Way(("tp+sp",), ("all_reduce",), ("tensor",), NORMS),
    Way(
        ("fsdp2 x tp+sp",),
        ("all_reduce",),
        ("tensor",),
        "gradients of norms are summed, then cut",
    ),
    Way(
        ("cp",),
        ("permute",),
        ("context",),
        "keys and values travel as copies for each head",
    ),
    Way(("cp",), ("permute", "all_gather"), ("context",), "rotate all-gather gathers them at once"),
)


def why(case: Case, figure: Figure) -> str:
    """Why a figure of a case is not the textbook's; "" if nothing is known of it."""
    ways = (
        way.words
        for way in WAYS
        if case.strategy in way.strategies
        and figure.what in way.figures
        and figure.axis in (way.axes or ("",))
        and case.mixed >= way.mixed
    )
    return "; ".join(ways)
