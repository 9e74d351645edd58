"""Tensor, sequence, context and expert parallelism: what each cuts. Their collectives are derived.

Pipeline parallelism cuts the layers themselves, between operations: see `pipeline`.
"""

from __future__ import annotations

from dataclasses import replace

from spec.language.moves import VOCABULARY, Axis

KV_HEADS, EXPERTS = "g", "e"  # indices that weights are cut along
HEADS_OF_A_GROUP = "r"  # of heads that share a key and a value
SLOTS = "c"  # that tokens take in experts
INSIDE_MLPS = ("f", "i", "t")  # those inside MLPs
KEYS = "u"  # the index that goes round a ring
SAMPLES, POSITIONS = "b", "s"  # indices that the stream is cut along

TENSOR = (KV_HEADS, *INSIDE_MLPS, VOCABULARY)
ATTENTION_BY_HEADS = (("scores", KV_HEADS), ("sinks", KV_HEADS))

MODEL_AXES: dict[str, Axis] = {
    "dp": Axis("batch", stream=SAMPLES),
    "tp": Axis("tensor", TENSOR),
    "tp+sp": Axis("tensor", TENSOR, POSITIONS),
    "cp": Axis("context", stream=POSITIONS, ring=KEYS),
    "cp-all-gather": Axis("context", stream=POSITIONS),
    "cp-all-to-all": Axis("context", stream=POSITIONS, brought=ATTENTION_BY_HEADS),
    "ep": Axis("expert", (EXPERTS,), SAMPLES),
}
MODEL_MEANING: dict[str, str] = {
    "dp": "data parallelism: samples cut",
    "tp": "tensor parallelism: heads, MLP features and words cut; tokens on every device",
    "tp+sp": "tensor parallelism, with sequence parallelism: tokens cut where features are not",
    "cp": "context parallelism by ring attention: tokens cut, keys and values sent around a ring",
    "cp-all-gather": "context parallelism: tokens cut, keys gathered",
    "cp-all-to-all": "context parallelism by all-to-all: tokens cut, for attention heads instead",
    "ep": "expert parallelism: experts cut, samples cut; tokens sent to their experts and back",
    "pp": "pipeline parallelism: layers cut in stages",
}


def copies_within(axis: Axis) -> Axis:
    """What cuts a model along devices that have copies of the same key-value heads.

    The heads that share them are cut, and all else that tensor parallelism cuts. So a key's weight is
    replicated along these devices, and what they find of its gradient is summed over them.
    """
    weights = tuple(HEADS_OF_A_GROUP if index == KV_HEADS else index for index in axis.weight_indices)
    return replace(axis, name=f"{axis.name}_copies", weight_indices=weights, copies_of=axis.name)
