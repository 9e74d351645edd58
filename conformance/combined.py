"""Cases of several strategies at once, and of gradients that wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.case import Case, on
from conformance.shapes import (
    DEEP,
    FUSED,
    FUSED_GROUPED,
    GPT,
    GROUPED,
    ODD,
    SMALL,
    UNEVEN,
    WIDE,
    Decoder,
    Mlp,
)


def combined() -> Iterator[Case]:
    """All of them."""
    yield from _beside_tensors()
    yield from _waiting()
    yield from _held()
    yield from _shared_words()
    yield from _contexts()
    yield from _cut_losses()
    yield from _staged_states()


def _beside_tensors() -> Iterator[Case]:
    """FSDP2 beside tensor parallelism, in mixed precision, and where gradients wait."""
    odd = Decoder(3, 20, 5, 5, 27, 35, 10)  # features and words that do not divide
    for strategy in ("fsdp2 x tp", "fsdp2 x tp+sp"):
        for model, batch, tensor in ((WIDE, 2, 4), (GROUPED, 2, 2), (replace(odd, fused=True), 2, 5)):
            here = Case(strategy, model, on(batch=batch, tensor=tensor), mixed=True)
            yield here
            yield replace(here, micro_steps=3, each=False)
            yield replace(here, micro_steps=2, reshard=True)
            waits = replace(here, micro_steps=3, each=False, mixed=False)
            yield waits
            yield replace(waits, reshard=False, optimizer="momentum")
        yield replace(waits, model=odd, mesh=on(batch=3, tensor=5), mixed=True, fake=True)
        yield Case(strategy, GROUPED, on(batch=4, tensor=2), mixed=True, micro_steps=2, reshard=False)
        yield Case(strategy, WIDE, on(batch=2, tensor=2), micro_steps=2, optimizer="sgd")
    words = Case("fsdp2 x tp", GROUPED, on(batch=2, tensor=2), mixed=True, whole_words=True)
    yield replace(words, micro_steps=3, each=False)


def _waiting() -> Iterator[Case]:
    """Gradients that wait whole: of owners, and for the host."""
    for model in (ODD, SMALL, GROUPED):
        for n in (2, 4):
            here = Case("zero redundancy", model, on(batch=n), micro_steps=3, each=False)
            yield here
            yield replace(here, views=True, optimizer="momentum")
        on_host = Case("fsdp2", model, on(batch=4), offload=True, fake=True)
        on_host = replace(on_host, micro_steps=3, each=False)
        yield on_host
        yield replace(on_host, mesh=on(batch=8), mixed=True, micro_steps=2)
        yield replace(on_host, strategy="hsdp", mesh=on(replica=2, shard=4), reshard=True)
        yield replace(on_host, reshard=False, optimizer="momentum")
    held = Case("fsdp2", Mlp((6, 30, 6)), on(batch=2), reshard=False, micro_steps=2, each=False)
    yield held
    yield replace(held, model=Mlp((20, 20, 20, 20)))
    yield replace(held, model=replace(GPT, layers=1))
    one = Decoder(1, 24, 6, 3, 26, 38, 12)
    yield replace(
        held, strategy="fsdp2 x tp", model=replace(WIDE, layers=1), mesh=on(batch=2, tensor=2)
    )
    on_host = Case("fsdp2", one, on(batch=8), offload=True, fake=True, optimizer="sgd")
    yield replace(on_host, micro_steps=2, each=False, reshard=True)


def _held() -> Iterator[Case]:
    """FSDP2 with some layers that stay gathered from forward to backward."""
    deep, wide = replace(DEEP, layers=4), replace(GROUPED, layers=3)
    for model, held in ((deep, (-1,)), (deep, (-2, -1)), (deep, (0,)), (wide, (0, 2)), (wide, (1,))):
        for n in (2, 4):
            here = Case("fsdp2", model, on(batch=n), held=held, later=True)
            yield here
            yield replace(here, micro_steps=2, optimizer="momentum")
        yield replace(here, mixed=True, micro_steps=2, each=False)
        yield replace(here, strategy="hsdp", mesh=on(replica=2, shard=2))
        yield replace(here, strategy="fsdp2 x tp", mesh=on(batch=2, tensor=2))
        yield replace(here, reshard=True)
        yield replace(here, mesh=on(batch=24), fake=True)


def _shared_words() -> Iterator[Case]:
    """FSDP2 of words that the embedding and the head share, many or few, as a unit or in the root."""
    many = replace(GPT, layers=3, hidden=16, vocabulary=301)
    for model, n in ((many, 2), (many, 3), (replace(GPT, fused=True), 4)):
        for shared in (True, False):
            here = Case("fsdp2", model, on(batch=n), shared_words=shared, later=True)
            yield replace(here, samples=3)
            yield replace(here, mixed=True, reshard=True, micro_steps=2)
            yield replace(here, reshard=False, optimizer="momentum")
            yield replace(here, micro_steps=3, each=False)
    for shared in (True, False):
        here = Case("hsdp", many, on(replica=2, shard=2), shared_words=shared, later=True)
        yield here
        yield replace(here, strategy="fsdp2", mesh=on(batch=24), mixed=True, fake=True)


def _contexts() -> Iterator[Case]:
    """FSDP2 over ranks that have other tokens: as over others, or with copies of slices."""
    for model, n in ((FUSED, 2), (FUSED_GROUPED, 2), (FUSED_GROUPED, 4)):
        here = Case("fsdp2 x cp", model, on(batch=2, context=n), rotate="all-to-all")
        copies = replace(here, strategy="hsdp x cp", mesh=on(context=n, batch=2))
        for each in (here, copies):
            yield each
            if model is FUSED:
                yield replace(each, micro_steps=3, reshard=True, rotate="all-gather")
                yield replace(each, micro_steps=2, each=False, optimizer="momentum")
            if model is FUSED_GROUPED and n == 2:
                mixed = replace(each, mixed=True)
                yield mixed
                yield replace(mixed, micro_steps=3, each=False)
                yield replace(mixed, rotate="all-gather", micro_steps=2)
                yield replace(mixed, rotate="all-gather", micro_steps=2, each=False, reshard=False)


def _cut_losses() -> Iterator[Case]:
    """FSDP2 beside tensor parallelism with loss_parallel."""
    for strategy in ("fsdp2 x tp", "fsdp2 x tp+sp"):
        for model, tensor in ((WIDE, 2), (UNEVEN, 4), (FUSED, 2)):
            here = Case(strategy, model, on(batch=2, tensor=tensor), cut_loss=True)
            yield here
            yield replace(here, mixed=True, micro_steps=2)
        yield replace(here, micro_steps=3, each=False, reshard=True)


def _staged_states() -> Iterator[Case]:
    """States beside pipelines."""
    sharded = Case("fsdp2 x pp", DEEP, on(pipe=2, batch=2), micro_steps=4, order="gpipe")
    for here in (
        sharded,
        replace(sharded, model=GROUPED, order="1f1b"),
        replace(sharded, order="interleaved", chunks=2),
    ):
        for reshard in (None, True, False):
            yield replace(here, reshard=reshard)
    wide = replace(sharded, mesh=on(pipe=4, batch=2), micro_steps=8, order="1f1b")
    yield wide
    yield replace(wide, mesh=on(pipe=2, batch=4), order="gpipe", micro_steps=3, optimizer="momentum")
    yield replace(wide, order="interleaved", chunks=2, mixed=True, reshard=True)
    yield replace(wide, mesh=on(pipe=2, batch=2), micro_steps=3, mixed=True)
    few = replace(sharded, model=replace(DEEP, layers=5), order="interleaved", chunks=2, micro_steps=2)
    for reshard in (None, False):  # as few micro-batches as stages
        yield replace(few, reshard=reshard)
        yield replace(few, reshard=reshard, mixed=True)
    yield replace(few, model=DEEP, mesh=on(pipe=4, batch=2), micro_steps=4, reshard=True)
    for strategy in ("ddp x pp", "zero redundancy x pp"):  # DDP fails where no forward is in between
        here = replace(wide, strategy=strategy, mesh=on(pipe=2, batch=2), micro_steps=3)
        yield replace(here, model=GROUPED)
        yield replace(here, bucket=800, optimizer="momentum")
        yield replace(here, views=True)
        yield replace(here, mesh=on(pipe=4, batch=2), micro_steps=5)
        chunks = replace(here, order="interleaved", chunks=2, micro_steps=6)
        yield chunks
        yield replace(chunks, model=replace(GROUPED, layers=5), bucket=800, views=True)
    for strategy in ("fsdp2 x tp x pp", "fsdp2 x tp+sp x pp"):
        three = Case(strategy, GROUPED, on(pipe=2, batch=2, tensor=2), micro_steps=3, order="1f1b")
        yield three
        yield replace(three, mixed=True, reshard=True)
