"""The named strategies: each is a placement, and nothing more."""

from __future__ import annotations

from spec.models.states import State
from spec.plans.modes import GATHERED, Mode, R, S
from spec.plans.placement import Placement, on_batch, place_states


def _replica_and_shard(parameters: Mode, optimizer: Mode, gradients: Mode) -> Placement:
    """Replicated along one batch axis, placed as given along the other."""
    modes = zip(State, (parameters, optimizer, gradients, S), strict=True)
    replica = dict(zip(State, (R, R, R, S), strict=True))
    return place_states(
        ("replica", "shard"), {s: {"replica": replica[s], "shard": mode} for s, mode in modes}
    )


STRATEGIES: dict[str, Placement] = {
    #                        Theta Omega  G      A
    "dp": on_batch("R", "R", "R", "S"),
    "zero1": on_batch("R", "S", "R", "S"),
    "zero2": on_batch("R", "S", "S", "S"),
    "zero3": on_batch("S*", "S", "S", "S"),
    "fsdp": on_batch("S*", "S", "S", "S"),
    "fsdp-hold": on_batch("S*", "S", "S", "S", hold=True),
    "hsdp": _replica_and_shard(GATHERED, S, S),
    "zero-offload": on_batch("R", "S+O", "S+O", "S"),
    "fused-update": on_batch("R", "R", "M", "S"),
}

STRATEGY_MEANING: dict[str, str] = {
    "dp": "data parallelism: everything replicated, the batch split",
    "zero1": "ZeRO stage 1: optimizer sharded",
    "zero2": "ZeRO stage 2: optimizer and gradients sharded",
    "zero3": "ZeRO stage 3: parameters too, gathered for each use",
    "fsdp": "fully sharded data parallelism, reshard_after_forward=True",
    "fsdp-hold": "fully sharded data parallelism, reshard_after_forward=False",
    "hsdp": "fully sharded inside a group, replicated across groups",
    "zero-offload": "ZeRO stage 2 with optimizer and gradients in host memory",
    "fused-update": "the update runs as each gradient is produced; none is kept",
}
