"""X6-X8: what the derived programs of the model axes send, in closed form.

Symbols are those of `model_symbols`. Volumes are elements that one device sends.
"""

from __future__ import annotations

from dataclasses import replace

from proofs.claim import claim
from proofs.costs.exchanges import (
    choices_are_sent,
    rings_in_rings_are_one,
    slots_are_chosen,
    sums_are_of_all_slots,
    sums_send_padded_chunks,
    weighed_before_are_sent,
    whole_numbers_are_alike,
)
from proofs.costs.model_symbols import MODELS, Symbols, latent_layer, sums, with_experts
from proofs.language.programs import GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.derivation.programs import EVERYTHING, PAIRS, program_of
from spec.models.parts import layer
from spec.models.profiles import TEXTBOOK, realised
from spec.plans.model_strategies import EXPERTS, MODEL_AXES

WIDTH = 2  # bytes of a weight


@claim("X6")
def tensor_parallelism_moves_eight_of_a_layer(k: Kernel) -> tuple[Theorem, ...]:
    """Tensor parallelism moves 4bsh(n-1)/n forward and as much backward, per layer and micro-batch.

    With sequence parallelism the same if what is gathered is held, and 2bsh(n-1)/n more backward if
    it is gathered again. Recomputing everything adds a forward, recomputing attention nothing. Of
    gradients, nothing without sequence parallelism; with it those of what is on every device: norms'
    scales and shifts, and the offsets after the two row-parallel products. Where queries, keys and
    values are made from few features, backward sums these in place of what attention takes.
    (Claim X6; Megatron-LM 1909.08053 section 3, 2205.05198 section 4.2.2)
    """
    found: list[Theorem] = []
    for name, model in MODELS:
        x = Symbols(k.part(name), model)
        tp, tp_sp, held = x.program("tp"), x.program("tp+sp"), x.program("tp+sp", held=True)
        twice = 4 * x.passed * (x.b * x.s * x.h)  # two all-reduces, or two gathers and two scatters
        on_every_device = (6 if model is GPT else 2) * x.h
        again = {(s, how): x.program(s, how) for s in ("tp", "tp+sp") for how in (PAIRS, EVERYTHING)}
        volumes = {
            "tp_forward": (tp, tp.forward, twice),
            "tp_backward": (tp, tp.backward + sums(tp), twice),
            "tp_sp_forward": (tp_sp, tp_sp.forward, twice),
            "tp_sp_backward": (tp_sp, tp_sp.backward, twice + twice / 2),
            "tp_sp_held_backward": (held, held.backward, twice),
            "tp_sp_gradients": (tp_sp, sums(tp_sp), 2 * x.passed * on_every_device),
        }
        for (strategy, how), program in again.items():
            backward = (
                2 * twice if how == EVERYTHING else volumes[f"{strategy}_backward".replace("+", "_")][2]
            )
            words = f"{strategy}_{how}_again_backward".replace("+", "_")
            volumes[words] = (program, program.backward, backward)
        found += x.sends(volumes)
    sums_send_padded_chunks(k)
    return *found, *_latents_are_summed(k.part("latent"))


def _latents_are_summed(k: Kernel) -> list[Theorem]:
    """Of a layer with latents: what all devices make of each token is summed backward, not its input.

    These are the features of keys and values, those of queries, and the turned ones of keys.
    """
    x = Symbols(k, LLAMA)
    of = latent_layer(x)
    tp, tokens = x.program("tp", part=of.part), x.b * x.s
    features = of.few + of.of_queries + x.d
    return x.sends(
        {
            "latent_forward": (tp, tp.forward, 4 * x.passed * (tokens * x.h)),
            "latent_backward": (tp, tp.backward, 2 * x.passed * (tokens * (x.h + features))),
        }
    )


@claim("X7")
def context_parallelism_moves_keys_or_heads(k: Kernel) -> tuple[Theorem, ...]:
    """Ring attention moves 2bs kv d(n-1)/n elements forward, and 2bs kv d(2n-1)/n backward.

    Backward passes keys and values round again, and their gradients, which are one hop from home after
    the last turn. With keys and values gathered it is twice the forward's, and as much as forward if
    they are held. By all-to-all it is bs(2ad + 2 kv d)(n-1)/n^2, forward and backward: 4bsh(n-1)/n^2
    with a key for each head, an n-th of tensor and sequence parallelism's. All gradients of weights
    are all-reduced, once a step. (Claim X7; Ring Attention 2310.01889, Ulysses 2309.14509 section 3.2)
    """
    found: list[Theorem] = []
    for name, model in MODELS:
        x = Symbols(k.part(name), model)
        gathered, held = (x.program("cp-all-gather", held=held) for held in (False, True))
        ring, swap = x.program("cp"), x.program("cp-all-to-all")
        at_once = program_of(layer(x.shape), (replace(MODEL_AXES["cp"], at_once=True),))
        all_keys = 2 * x.b * x.s * x.kv * x.d
        keys = x.passed * all_keys
        both = x.passed * (x.b * x.s / x.n) * (2 * x.a * x.d + 2 * x.kv * x.d)
        # a copy of keys and values for each head that shares them goes round, where there is one
        repeated = realised(layer(x.shape), replace(TEXTBOOK, repeats=True), WIDTH)
        each_head = program_of(repeated, (MODEL_AXES["cp"],))
        volumes = {
            "ring_forward": (ring, ring.forward, keys),
            "ring_of_a_key_for_each_head": (
                each_head,
                each_head.forward,
                2 * x.passed * x.b * x.s * x.a * x.d,
            ),
            "all_gather_forward": (gathered, gathered.forward, keys),
            "all_gather_backward": (gathered, gathered.backward, 2 * keys),
            "all_gather_held_backward": (held, held.backward, keys),
            "ring_gradients": (ring, sums(ring), x.gradients(ring)),
            "all_to_all_gradients": (swap, sums(swap), x.gradients(swap)),
            "at_once_forward": (at_once, at_once.forward, keys),
        }
        found += x.sends(volumes)
        for program, names in ((ring, {"ring_gather"}), (at_once, {"all_gather"})):
            sent_by = {program.sent_by(move) for move in program.moves if move.turns in program.turns}
            gathers = {name for name in sent_by if name.endswith("gather")}
            if gathers != names or sent_by - names != {"accumulate", "merge", "ring_reduce"}:
                raise KernelError(f"{k.claim}: slices of keys are sent by {sent_by}")
        apart = [replace(move, in_turns=False) for move in at_once.moves]
        apart += [replace(move, axis="another") for move in at_once.moves]
        if any(map(at_once.is_at_once, apart)):
            raise KernelError(f"{k.claim}: what goes round no ring, or another, is gathered before it")
        is_reciprocal = x.n * x.n.reciprocal == 1
        backward = {"ring_backward": (ring, ring.backward, keys + all_keys)}
        found += x.sends(backward, is_reciprocal)
        with_sinks = program_of(layer(replace(x.shape, sinks=True)), (MODEL_AXES["cp-all-to-all"],))
        all_to_all = {
            "all_to_all_forward": (swap, swap.forward, both),
            "all_to_all_backward": (swap, swap.backward, both),
            "all_to_all_with_sinks": (with_sinks, with_sinks.forward, both),
        }
        found += x.sends(all_to_all)
        square = Symbols(k.part(f"{name}_a_key_for_each_head"), model, square=True)
        tp_sp, n = square.program("tp+sp"), square.n
        sent = square.sent(swap, swap.forward)
        few = 4 * (square.b * square.s * square.h) * (n - 1) / (n * n)
        found += [
            square.k.prove("all_to_all_of_all_features", sent == few),
            square.k.prove(
                "an_nth_of_tensor_parallelism", sent == square.sent(tp_sp, tp_sp.forward) / n
            ),
        ]
    rings_in_rings_are_one(k)
    return tuple(found)


@claim("X8")
def expert_parallelism_moves_tokens_twice(k: Kernel) -> tuple[Theorem, ...]:
    """Two all-to-alls forward and two backward, each of (b/n)s chosen h(n-1)/n elements.

    Each token is sent to `chosen` experts: the slots of all experts are b s chosen. Gradients of all
    weights but the experts' are all-reduced, once a step. Where tensor and sequence parallelism cut
    each expert instead, slots are gathered and scattered in place of tokens: 2bsh(1 + chosen)(n-1)/n
    forward. (Claim X8; GShard 2006.16668 section 3.2)
    """
    x, _, chosen = with_experts(k)
    ep, cut = x.program("ep"), x.program("tp+sp")
    each = x.passed * (x.b / x.n) * x.s * chosen * x.h
    volumes = {
        "tokens_forward": (ep, ep.forward, 2 * each),
        "tokens_backward": (ep, ep.backward, 2 * each),
        "cut_experts_forward": (cut, cut.forward, 2 * x.passed * x.b * x.s * x.h * (1 + chosen)),
        "gradients": (ep, sums(ep), x.gradients(ep, but=EXPERTS)),
    }
    choices_are_sent(k)
    sums_are_of_all_slots(k)
    weighed_before_are_sent(k)
    slots_are_chosen(k)
    whole_numbers_are_alike(k)
    return tuple(x.sends(volumes))
