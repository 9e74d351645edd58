"""Cases: a strategy of PyTorch, a model, ranks, and how the step is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.case import Case, on
from conformance.combined import combined
from conformance.shapes import (
    ALONE,
    BY_NUMBER,
    DEEP,
    EVEN,
    FALCONS,
    FEW,
    FUSED,
    FUSED_GROUPED,
    GIVEN_MASKS,
    GPT,
    GROUPED,
    IN_A_KERNEL,
    JOINED,
    LARGE,
    LATENT,
    NORMED_AFTER,
    ODD,
    PLAIN,
    SMALL,
    TOKENS,
    TURNED_OTHERWISE,
    UNEVEN,
    WIDE,
    WITH_A_MASK,
    WITH_EXPERTS,
    Decoder,
    Mlp,
)


def _states() -> Iterator[Case]:
    """Data parallelism, and states that are sharded over it."""
    for n in (2, 4, 8):
        for model in (EVEN, ODD, SMALL) if n < 8 else (ODD, GROUPED):
            yield Case("ddp", model, on(batch=n))
            yield Case("zero redundancy", model, on(batch=n))
            for reshard in (None, True, False):
                yield Case("fsdp2", model, on(batch=n), reshard=reshard)
            yield Case("fsdp2", model, on(batch=n), mixed=True)
    for model in (ODD, PLAIN):
        yield Case("ddp", model, on(batch=4), views=True)
        yield Case("ddp", model, on(batch=4), bucket=400)
        yield Case("ddp", model, on(batch=4), bucket=400, views=True, optimizer="momentum")
        yield Case("ddp", model, on(batch=4), mixed=True)
        yield Case("zero redundancy", model, on(batch=4), optimizer="momentum")
        yield Case("zero redundancy", model, on(batch=4), views=True)
        for strategy in ("ddp", "fsdp2"):
            yield Case(strategy, model, on(batch=4), optimizer="sgd")
            for each in (True, False):
                yield Case(strategy, model, on(batch=4), micro_steps=3, each=each)
        yield Case("fsdp2", model, on(batch=4), reshard=False, micro_steps=2)
        yield Case("fsdp2", model, on(batch=4), mixed=True, micro_steps=2, each=False)
        yield Case("fsdp2", model, on(batch=4), offload=True)
    for replica, shard in ((2, 2), (2, 4), (4, 2)):
        for model in (EVEN, ODD, GROUPED):
            yield Case("hsdp", model, on(replica=replica, shard=shard))
        yield Case("hsdp", PLAIN, on(replica=replica, shard=shard), reshard=False, micro_steps=2)
        yield Case("hsdp", ODD, on(replica=replica, shard=shard), mixed=True)
    for n in (16, 64):
        for model in (ODD, PLAIN, GROUPED):
            yield Case("fsdp2", model, on(batch=n), fake=True)
        yield Case("hsdp", GROUPED, on(replica=n // 8, shard=8), fake=True)
    yield Case("ddp", LARGE, on(batch=2))
    yield Case("ddp", LARGE, on(batch=3), views=True)


def _on_host() -> Iterator[Case]:
    """States on the host, of devices beside it."""
    on_host = replace(Case("fsdp2", ODD, on(batch=8)), offload=True, fake=True)
    for model in (ODD, PLAIN):
        here = replace(on_host, model=model)
        for n in (2, 8):
            yield replace(here, mesh=on(batch=n))
            yield replace(here, mesh=on(batch=n), mixed=True)
        yield replace(here, micro_steps=3)
        yield replace(here, optimizer="momentum")
        yield replace(here, reshard=False)
    for decoder in (SMALL, GROUPED, GPT):
        here = replace(on_host, model=decoder)
        yield replace(here, mesh=on(batch=4))
        yield replace(here, mesh=on(batch=16), reshard=True, micro_steps=2)
        yield replace(here, strategy="hsdp", mesh=on(replica=2, shard=4))


def _gpt() -> Iterator[Case]:
    """The same of models whose head and embedding share their words."""
    for n in (2, 4):
        for gpt in (GPT, replace(GPT, fused=True, hidden=24, layers=3)):
            yield Case("ddp", gpt, on(batch=n))
            yield Case("ddp", gpt, on(batch=n), bucket=800, micro_steps=2, each=False)
            yield Case("zero redundancy", gpt, on(batch=n))
            yield Case("fsdp2", gpt, on(batch=n))
            yield Case("fsdp2", gpt, on(batch=n), mixed=True, reshard=True)
    yield Case("hsdp", GPT, on(replica=2, shard=2))


def _tensors() -> Iterator[Case]:
    """What cuts each layer."""
    for strategy in ("tp", "tp+sp"):
        for n, models in ((2, (SMALL, GROUPED, FUSED)), (4, (SMALL, WIDE)), (8, (WIDE,))):
            for model in models:
                if strategy == "tp" or model.sequence % n == 0:
                    for cut_loss in (False, True):
                        yield Case(strategy, model, on(tensor=n), cut_loss=cut_loss)
        yield Case(strategy, WIDE, on(tensor=2), micro_steps=2, optimizer="momentum")
        yield Case(strategy, WIDE, on(tensor=4), optimizer="sgd")
        for batch, tensor in ((2, 2), (2, 4), (4, 2)):
            yield Case(f"fsdp2 x {strategy}", WIDE, on(batch=batch, tensor=tensor))
            if tensor == 2:
                yield Case(f"fsdp2 x {strategy}", GROUPED, on(batch=batch, tensor=tensor))
        yield Case(f"fsdp2 x {strategy}", WIDE, on(batch=8, tensor=8), fake=True)
        yield Case(strategy, UNEVEN, on(tensor=4))
        yield Case(strategy, UNEVEN, on(tensor=4), cut_loss=True)


def _stages() -> Iterator[Case]:
    """Pipelines."""
    for n in (2, 4):
        for micro_steps in (4, 8):
            for order in ("gpipe", "1f1b"):
                yield Case("pp", DEEP, on(pipe=n), order=order, micro_steps=micro_steps)
            yield Case("pp", DEEP, on(pipe=n), order="interleaved", chunks=2, micro_steps=micro_steps)
    yield Case("pp", DEEP, on(pipe=8), order="1f1b", micro_steps=8)
    yield Case("pp", GROUPED, on(pipe=2), order="1f1b", micro_steps=4)  # stages of two layers and one


def _rings() -> Iterator[Case]:
    """Context parallelism by ring attention."""
    for n in (2, 4, 8):
        for rotate in ("all-to-all", "all-gather"):
            yield Case("cp", FUSED, on(context=n), rotate=rotate)
            yield Case("cp", FUSED_GROUPED, on(context=n), rotate=rotate)


def _aside() -> Iterator[Case]:
    """Shapes, ranks and options that no formula was written by."""
    tall, flat = Mlp((9, 17, 11, 3)), Mlp((5, 6), biases=False)
    odd, even = Decoder(2, 20, 5, 5, 28, 33, 6), Decoder(4, 36, 6, 3, 30, 42, 12)
    five = Decoder(5, 20, 5, 5, 30, 33, 10)  # neither words by ranks nor layers by stages
    for n in (3, 6):
        for model in (tall, flat, odd, even):
            yield Case("ddp", model, on(batch=n), views=True)
            yield Case("ddp", model, on(batch=n), bucket=300, micro_steps=2)
            yield Case("zero redundancy", model, on(batch=n))
            yield Case("fsdp2", model, on(batch=n), samples=1)
            yield Case("fsdp2", model, on(batch=n), mixed=True, reshard=False)
            yield Case("fsdp2", model, on(batch=n), micro_steps=2, each=False, optimizer="momentum")
    gpt = replace(five, gpt=True)
    for n in (3, 6):
        yield Case("ddp", gpt, on(batch=n), samples=3)
        yield Case("fsdp2", replace(gpt, fused=True), on(batch=n), reshard=False, micro_steps=2)
        yield Case("zero redundancy", gpt, on(batch=n), optimizer="momentum")
    for model in (tall, even):
        yield Case("hsdp", model, on(replica=2, shard=3))
        yield Case("hsdp", model, on(replica=3, shard=2), micro_steps=2, each=False)
        yield Case("hsdp", model, on(replica=6, shard=8), fake=True)
        yield Case("fsdp2", model, on(batch=24), reshard=False, fake=True)
    for strategy in ("tp", "tp+sp"):
        for cut_loss in (False, True):
            yield Case(strategy, even, on(tensor=3), cut_loss=cut_loss, samples=3)
        yield Case(f"fsdp2 x {strategy}", even, on(batch=2, tensor=3), samples=1)
    for order, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2)):
        yield Case("pp", replace(even, layers=6), on(pipe=3), order=order, chunks=chunks, micro_steps=6)
    for strategy in ("tp", "tp+sp"):
        for cut_loss in (False, True):
            yield Case(strategy, five, on(tensor=5), cut_loss=cut_loss, optimizer="momentum")
        yield Case(strategy, replace(even, vocabulary=43), on(tensor=3), micro_steps=2, cut_loss=True)
        yield Case(f"fsdp2 x {strategy}", replace(even, layers=2), on(batch=16, tensor=3), fake=True)
    for order in ("gpipe", "1f1b"):
        yield Case("pp", five, on(pipe=3), order=order, micro_steps=5)
        yield Case("pp", five, on(pipe=4), order=order, micro_steps=5, optimizer="sgd")
    yield Case("pp", replace(five, layers=7), on(pipe=2), order="interleaved", chunks=3, micro_steps=4)
    for rotate in ("all-to-all", "all-gather"):
        yield Case("cp", replace(even, fused=True), on(context=3), rotate=rotate)
        yield Case("cp", replace(even, fused=True), on(context=6), rotate=rotate, samples=1)


def _later() -> Iterator[Case]:
    """Shapes, ranks and options that no profile was written by."""
    tall, flat = Mlp((11, 6, 19, 19, 2)), Mlp((3, 33, 3), biases=False)
    odd, even = Decoder(3, 28, 7, 7, 56, 37, 9), Decoder(2, 48, 8, 2, 36, 29, 14)
    fives = Decoder(4, 40, 10, 5, 45, 45, 10)
    gpt, fused = replace(odd, gpt=True), replace(even, gpt=True, kv_heads=8, fused=True)
    for n, models in ((5, (flat, odd, fused)), (7, (tall, even, gpt))):
        for model in models:
            yield Case("ddp", model, on(batch=n), bucket=700, micro_steps=3, each=False)
            yield Case("ddp", model, on(batch=n), views=True, bucket=500, micro_steps=2)
            yield Case("zero redundancy", model, on(batch=n), micro_steps=2, views=True)
            yield Case("zero redundancy", model, on(batch=n), optimizer="momentum", bucket=600)
            yield Case("fsdp2", model, on(batch=n), micro_steps=3)
            yield Case("fsdp2", model, on(batch=n), reshard=True, micro_steps=2, each=False)
            yield Case("fsdp2", model, on(batch=n), mixed=True, micro_steps=2, reshard=False)
            yield Case("fsdp2", model, on(batch=n), optimizer="sgd", samples=3)
    for model in (tall, even, gpt):
        yield Case("hsdp", model, on(replica=3, shard=2), reshard=True)
        yield Case("hsdp", model, on(replica=2, shard=3), mixed=True, micro_steps=3, each=False)
        yield Case("hsdp", model, on(replica=2, shard=4), reshard=False, optimizer="momentum")
        yield Case("hsdp", model, on(replica=5, shard=7), fake=True)
        yield Case("fsdp2", model, on(batch=40), fake=True, reshard=True)
        on_host = Case("fsdp2", model, on(batch=12), offload=True, fake=True)
        yield on_host
        yield replace(on_host, mesh=on(batch=5), mixed=True, micro_steps=2)
        yield replace(on_host, strategy="hsdp", mesh=on(replica=2, shard=5), micro_steps=2)
    for strategy in ("tp", "tp+sp"):
        for cut_loss in (False, True):
            yield Case(strategy, replace(odd, sequence=14), on(tensor=7), cut_loss=cut_loss, samples=1)
            yield Case(strategy, fives, on(tensor=5), cut_loss=cut_loss, micro_steps=3)
            yield Case(strategy, even, on(tensor=2), cut_loss=cut_loss, optimizer="momentum", samples=3)
            yield Case(strategy, replace(fives, fused=True), on(tensor=5), cut_loss=cut_loss)
        yield Case(f"fsdp2 x {strategy}", even, on(batch=3, tensor=2), samples=1)
        yield Case(f"fsdp2 x {strategy}", fives, on(batch=7, tensor=5), fake=True)
    yield from _whole_words()
    yield from _uneven()
    yield from combined()
    yield from _compressed()
    yield from _kernels()
    yield from _configured()
    yield from _eager()
    for order, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2)):
        yield Case(
            "pp", replace(fives, layers=10), on(pipe=5), order=order, chunks=chunks, micro_steps=5
        )
        yield Case(
            *("pp", replace(odd, layers=9), on(pipe=3), 1),
            order=order,
            chunks=chunks,
            micro_steps=6,
        )
    for model, n in ((replace(SMALL, layers=1), 2), (GROUPED, 4)):  # the last stage has the head alone
        for order in ("gpipe", "1f1b"):
            yield Case("pp", model, on(pipe=n), order=order, micro_steps=5)
    for rotate in ("all-to-all", "all-gather"):
        yield Case("cp", replace(odd, fused=True, sequence=15), on(context=5), rotate=rotate)
        yield Case("cp", replace(even, fused=True), on(context=7), rotate=rotate, samples=1)


def _compressed() -> Iterator[Case]:
    """Buckets of which copies are summed in 2 bytes: copies of gradients, or these themselves."""
    for model, n in ((GROUPED, 2), (Mlp((5, 1, 38, 19)), 3)):
        here = Case("ddp", model, on(batch=n), mixed=True, micro_steps=2)
        yield here
        yield replace(here, views=True)
        yield replace(here, bucket=600, each=False)


def _kernels() -> Iterator[Case]:
    """FSDP2 of models whose attention is one kernel, in fp32 and in bf16 mixed precision."""
    odd = Decoder(3, 20, 5, 5, 27, 31, 7, fused=True)  # features and words that no ranks divide
    for model, n in ((FUSED, 2), (FUSED_GROUPED, 4), (odd, 3)):
        for mixed in (False, True):
            for reshard in (None, True, False):
                yield Case("fsdp2", model, on(batch=n), mixed=mixed, reshard=reshard)
    for model in (FUSED_GROUPED, odd):
        yield Case("fsdp2", model, on(batch=32), mixed=True, fake=True)
        yield Case("hsdp", model, on(replica=2, shard=2), mixed=True)
        yield Case("fsdp2", model, on(batch=4), mixed=True, micro_steps=2, each=False)


def _configured() -> Iterator[Case]:
    """FSDP2 of transformers' own modules, some of whose weights are one array."""
    for model in JOINED:
        for n in (2, 3):
            yield Case("fsdp2", model, on(batch=n))
        yield Case("fsdp2", model, on(batch=4), mixed=True, reshard=True)
        yield Case("hsdp", model, on(replica=2, shard=2))
        yield Case("ddp", model, on(batch=3))
        yield Case("zero redundancy", model, on(batch=3))
        yield Case("fsdp2", model, on(batch=24), mixed=True, fake=True)
    for model in WITH_EXPERTS:
        for n in (2, 5):
            yield Case("fsdp2", model, on(batch=n))
        yield Case("fsdp2", model, on(batch=4), mixed=True)
        yield Case("zero redundancy", model, on(batch=3))


def _eager() -> Iterator[Case]:
    """What one process keeps of transformers' modules, operation by operation."""
    for model in (*ALONE, *BY_NUMBER, *NORMED_AFTER):
        tokens = [TOKENS]
        if "num_experts_per_tok" in dict(model.fields):  # whose choices are a multiple of them, or not
            tokens = [2 * TOKENS, TOKENS - 2]
        for mixed in (False, True):
            yield Case("eager", model, on(batch=1), mixed=mixed)
            for each in tokens:
                yield Case("eager", model.but(sequence=each), on(batch=1), samples=1, mixed=mixed)
    for model in (*FEW, TURNED_OTHERWISE):
        for samples in (1, 2):
            yield Case("eager", model, on(batch=1), samples=samples)
    yield Case("eager", TURNED_OTHERWISE, on(batch=1), samples=3, mixed=True)
    yield Case("eager", LATENT.but(sequence=1), on(batch=1), samples=2)
    for model in IN_A_KERNEL:
        # of one sample experts would have a share of a token
        for samples in (2,) if "num_experts_per_tok" in dict(model.fields) else (1, 2, 3):
            yield Case("eager", model, on(batch=1), samples=samples)
    for model in (IN_A_KERNEL[2], *IN_A_KERNEL[-6:]):
        yield Case("eager", model, on(batch=1), mixed=True)
    yield from _masked()
    for model in GIVEN_MASKS:
        for samples, mixed in ((3, False), (1, True)):
            yield Case("eager", model, on(batch=1), samples=samples, mixed=mixed, again=True)


def _masked() -> Iterator[Case]:
    """The same where a kernel of attention is given a mask."""
    for model in WITH_A_MASK:
        for samples in (3,) if "num_experts_per_tok" in dict(model.fields) else (1, 3):
            yield Case("eager", model, on(batch=1), samples=samples)
    for model in (*WITH_A_MASK[:3], *WITH_A_MASK[-4:-2]):
        yield Case("eager", model, on(batch=1), mixed=True)
    for model in FALCONS:
        for samples, mixed in ((1, False), (3, False), (1, True), (2, True)):
            yield Case("eager", model, on(batch=1), samples=samples, mixed=mixed)


def _whole_words() -> Iterator[Case]:
    """The embedding and the head in no plan of tensor parallelism; words that divide, or do not."""
    five, three = Decoder(5, 20, 5, 5, 30, 33, 10), Decoder(4, 36, 6, 3, 30, 43, 12)
    for n, models in (
        (2, (SMALL, GROUPED, FUSED, GPT)),
        (3, (three,)),
        (4, (WIDE, UNEVEN)),
        (5, (five,)),
    ):
        for model in models:
            yield Case("tp", model, on(tensor=n), whole_words=True)
    yield Case("tp", WIDE, on(tensor=2), whole_words=True, micro_steps=2, optimizer="momentum")
    yield Case("tp", WIDE, on(tensor=8), whole_words=True, samples=3, optimizer="sgd")
    for model, batch, tensor in ((WIDE, 2, 2), (GROUPED, 3, 2), (UNEVEN, 2, 4)):
        yield Case("fsdp2 x tp", model, on(batch=batch, tensor=tensor), whole_words=True)
    yield Case("fsdp2 x tp", WIDE, on(batch=8, tensor=8), whole_words=True, fake=True)


def _uneven() -> Iterator[Case]:
    """Features inside MLPs that ranks do not divide; of 9 the last of 4 has none."""
    some, few = replace(SMALL, sequence=8, feed_forward=30), replace(SMALL, sequence=8, feed_forward=9)
    for strategy in ("tp", "tp+sp"):
        for model in (some, few, replace(GROUPED, feed_forward=41)):
            yield Case(strategy, model, on(tensor=model.kv_heads))
        yield Case(strategy, some, on(tensor=4), micro_steps=2, optimizer="momentum", cut_loss=True)
        yield Case(f"fsdp2 x {strategy}", some, on(batch=2, tensor=4))
        yield Case(f"fsdp2 x {strategy}", few, on(batch=2, tensor=2))
    yield Case("tp", some, on(tensor=4), whole_words=True)


def cases() -> tuple[Case, ...]:
    """All of them, by strategy; those put aside, and those of later, last."""
    written = (*_states(), *_on_host(), *_gpt(), *_tensors(), *_stages(), *_rings())
    aside = (replace(case, aside=True) for case in _aside())
    return *written, *aside, *(replace(case, later=True) for case in _later())
