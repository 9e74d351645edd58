"""A case: a strategy of PyTorch, a model, ranks, and how the step is done."""

from __future__ import annotations

from dataclasses import dataclass, fields

from conformance.shapes import Configured, Decoder, Mlp


@dataclass(frozen=True)
class Case:
    """One run of PyTorch.

    `mesh`: axes and ranks along each. `samples`: of a micro-batch, on each rank that has its own.
    `mixed`: bf16 weights to compute with, fp32 ones to update; of DDP, gradients in 2 bytes on
    their way. `each`: gradients are reduced in each micro-step; else in the last alone (no_sync).
    `reshard`: of FSDP2, what its option says; None is its default. `held`: layers, by their numbers,
    of which it is said to be False. `shared_words`: those of the embedding and the head are one
    unit, and what else these have are others. `views`: of DDP, gradients are views of buckets.
    `bucket`: bytes of a bucket. `cut_loss`: loss_parallel. `whole_words`: the embedding and the head
    are in no plan of tensor parallelism. `order`, `chunks`: of pipelines.
    `rotate`: of ring attention, how keys and values travel. `offload`: FSDP2's states are on the host;
    with `fake`, of a device beside it, else of one that is the host itself. `aside`: not looked at
    while formulas of what PyTorch does were first written.
    `later`: recorded when the profiles were written, to see whether they hold.
    Of `eager`, one process with a model of transformers, all is in bf16 if it is `mixed`. `again`: its
    layers are checkpointed.
    `fake`: the fake backend, without other processes, so no numbers; DDP fails on it.
    """

    strategy: str
    model: Mlp | Decoder | Configured
    mesh: tuple[tuple[str, int], ...]
    samples: int = 2
    optimizer: str = "adam"
    mixed: bool = False
    micro_steps: int = 1
    each: bool = True
    reshard: bool | None = None
    held: tuple[int, ...] = ()
    shared_words: bool = False
    offload: bool = False
    views: bool = False
    bucket: int = 0
    cut_loss: bool = False
    whole_words: bool = False
    order: str = ""
    chunks: int = 1
    rotate: str = ""
    again: bool = False
    fake: bool = False
    aside: bool = False
    later: bool = False

    @property
    def ranks(self) -> int:
        product = 1
        for _, size in self.mesh:
            product *= size
        return product

    @property
    def has_numbers(self) -> bool:
        """Whether its parameters are those of one process: all is computed, and in float64."""
        return not (self.mixed or self.fake or isinstance(self.model, Configured))

    @property
    def is_beside(self) -> bool:
        """Whether the device's memory is not the host's."""
        return self.offload and self.fake

    @property
    def is_uneven(self) -> bool:
        """Whether ranks cut features inside MLPs that they do not divide."""
        of = self.model.feed_forward if isinstance(self.model, Decoder) else 0
        return of % self.sizes.get("tensor", 1) != 0

    @property
    def sizes(self) -> dict[str, int]:
        return dict(self.mesh)

    @property
    def name(self) -> str:
        """All that differs from the defaults, in words; no two cases have the same."""
        mesh = " x ".join(f"{axis} {size}" for axis, size in self.mesh)
        plain = ("strategy", "model", "mesh", "aside", "later", "fake")
        told = [f for f in fields(self) if f.name not in plain and getattr(self, f.name) != f.default]
        options = [_told(f.name, getattr(self, f.name)) for f in told]
        return ", ".join((self.strategy, str(self.model), mesh, *options))


def _told(name: str, value: object) -> str:
    if name == "each":
        return "no_sync"
    words = name.replace("_", " ")
    return words if value is True else f"no {words}" if value is False else f"{words} {value}"


def on(**mesh: int) -> tuple[tuple[str, int], ...]:
    """A mesh, axis by axis."""
    return tuple(mesh.items())
