"""X6-X8, A1-A3: what the derived programs of the model axes send and keep, in closed form.

The specification's costs, evaluated on symbols: b samples and s positions of a micro-batch, h features,
a heads, kv key heads, d features of a head, f features inside the MLP, v words, n devices along the
axis. Volumes are elements that one device sends; activations are bytes that one device keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from proofs.claim import claim
from proofs.costs.own_parts import (
    own_parts_are_all,
    own_parts_of_layers_are_all,
    own_rows_are_all,
    stored_beside,
)
from proofs.costs.reciprocals import divisor
from proofs.costs.weights import (
    experts_weights_are_counted,
    largest_are_found,
    mlps_are_cut,
    model_has_weights,
)
from proofs.language.programs import GPT, LLAMA
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import RealVal
from spec.costs.model_costs import elements_moved, kept_bytes, weights
from spec.derivation.distribute import EVERYTHING, NOTHING, PAIRS, distribute
from spec.devices.layouts import PARTIAL, WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.parts import embedding, head, layer
from spec.models.transformer import Transformer
from spec.models.values import Part
from spec.plans.model_strategies import EXPERTS, MODEL_AXES

Volumes = Mapping[str, tuple[Program, Iterable[Line], Any]]
Activations = Mapping[str, tuple[Program, Any]]
MODELS = (("gpt", GPT), ("llama", LLAMA))


class Symbols:
    """A model of any sizes, on n devices, as real variables: the divisible case.

    `square`: a key for every head, heads that share the h features, and an MLP 4h wide.
    """

    def __init__(self, k: Kernel, model: Transformer, square: bool = False) -> None:
        self.k = k
        self.b, self.s, self.d, self.v = k.reals("b s d v")
        self.n, self.kv = divisor(k, "n"), k.reals("kv")
        each = RealVal(1) if square else k.reals("each")  # heads that share a key
        self.a = self.kv * each
        if square:
            self.h = self.a * self.d
            self.f = 4 * self.h
        else:
            self.h, self.f = k.reals("h f")
        self.shape = replace(
            model,
            hidden=self.h,
            heads=self.a,
            kv_heads=self.kv,
            head_dim=self.d,
            feed_forward=self.f,
            vocabulary=self.v,
        )
        self.sizes: dict[str, Any] = self.shape.sizes(self.b, self.s) | {"r": each}
        self.passed = (self.n - 1) / self.n  # of a value, what each device sends round a ring

    def program(
        self, strategy: str, again: str = NOTHING, held: bool = False, part: Part | None = None
    ) -> Program:
        """The derived program of a layer, or of another part; of one device without a strategy."""
        axes = (replace(MODEL_AXES[strategy], held=held),) if strategy else ()
        return distribute(part or layer(self.shape), axes, again)

    def mesh(self, program: Program) -> dict[str, Any]:
        return {axis.name: self.n for axis in program.axes}

    def sent(self, program: Program, lines: Iterable[Line]) -> Any:
        """Elements that a device sends in some lines of a program."""
        mesh = self.mesh(program)
        moves = (line for line in lines if isinstance(line, Move))
        return sum(elements_moved(move, program, self.sizes, mesh) for move in moves)

    def gradients(self, program: Program, but: str = "") -> Any:
        """What all-reducing the gradients of all weights sends, but of those cut along an index."""
        found = weights(program, self.sizes, self.mesh(program))
        return 2 * self.passed * sum(e for w, e in found.items() if but not in w.indices)

    def kept(self, program: Program) -> Any:
        """Bytes that a device keeps from forward to backward."""
        return kept_bytes(program, self.sizes, self.mesh(program))

    def sends(self, volumes: Volumes, *given: Bool) -> list[Theorem]:
        """In these lines of these programs a device sends so many elements."""
        return [
            self.k.prove(name, self.sent(program, lines) == volume, given)
            for name, (program, lines, volume) in volumes.items()
        ]

    def keeps(self, activations: Activations) -> tuple[Theorem, ...]:
        """A device keeps so many bytes for backward in these programs."""
        return tuple(
            self.k.prove(f"{name}_keeps", self.kept(program) == size)
            for name, (program, size) in activations.items()
        )


def sums(program: Program) -> tuple[Move, ...]:
    """The all-reduces that make every weight's gradient whole where it comes out in terms."""
    return tuple(
        Move(axis, gradient, gradient, PARTIAL, WHOLE)
        for weight, gradient in program.gradients.items()
        for axis in program.summed(weight)
    )


@claim("X6")
def tensor_parallelism_moves_eight_of_a_layer(k: Kernel) -> tuple[Theorem, ...]:
    """Tensor parallelism moves 4bsh(n-1)/n forward and as much backward, per layer and micro-batch.

    With sequence parallelism the same if what is gathered is held, and 2bsh(n-1)/n more backward if
    it is gathered again. Recomputing everything adds a forward, recomputing attention nothing. Of
    gradients, nothing without sequence parallelism; with it those of what is on every device: norms'
    scales and shifts, and the offsets after the two row-parallel products. (Claim X6; Megatron-LM
    1909.08053 section 3, 2205.05198 section 4.2.2)
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
    return tuple(found)


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
        at_once = distribute(layer(x.shape), (replace(MODEL_AXES["cp"], at_once=True),))
        all_keys = 2 * x.b * x.s * x.kv * x.d
        keys = x.passed * all_keys
        both = x.passed * (x.b * x.s / x.n) * (2 * x.a * x.d + 2 * x.kv * x.d)
        volumes = {
            "ring_forward": (ring, ring.forward, keys),
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
        is_reciprocal = x.n * x.n.reciprocal == 1
        backward = {"ring_backward": (ring, ring.backward, keys + all_keys)}
        found += x.sends(backward, is_reciprocal)
        all_to_all = {
            "all_to_all_forward": (swap, swap.forward, both),
            "all_to_all_backward": (swap, swap.backward, both),
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
    return tuple(found)


def _with_experts(k: Kernel) -> tuple[Symbols, Any, Any]:
    """A Llama-like layer with experts; how many there are, and to how many a token is sent."""
    x = Symbols(k, replace(LLAMA, experts=4, chosen=2))
    experts, chosen, samples = k.reals("experts chosen samples")  # samples for each expert
    x.b, slots = experts * samples, samples * x.s * chosen
    x.sizes |= {"b": x.b, "j": experts, "e": experts, "c": slots}
    return x, experts, chosen


@claim("X8")
def expert_parallelism_moves_tokens_twice(k: Kernel) -> tuple[Theorem, ...]:
    """Two all-to-alls forward and two backward, each of (b/n)s chosen h(n-1)/n elements.

    Each token is sent to `chosen` experts: the slots of all experts are b s chosen. Gradients of all
    weights but the experts' are all-reduced, once a step. Where tensor and sequence parallelism cut
    each expert instead, slots are gathered and scattered in place of tokens: 2bsh(1 + chosen)(n-1)/n
    forward. (Claim X8; GShard 2006.16668 section 3.2)
    """
    x, _, chosen = _with_experts(k)
    ep, cut = x.program("ep"), x.program("tp+sp")
    each = x.passed * (x.b / x.n) * x.s * chosen * x.h
    volumes = {
        "tokens_forward": (ep, ep.forward, 2 * each),
        "tokens_backward": (ep, ep.backward, 2 * each),
        "cut_experts_forward": (cut, cut.forward, 2 * x.passed * x.b * x.s * x.h * (1 + chosen)),
        "gradients": (ep, sums(ep), x.gradients(ep, but=EXPERTS)),
    }
    return tuple(x.sends(volumes))


@claim("A1")
def layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """A layer keeps sbh(34 + 5as/h) bytes, and sbh(10 + 24/n + 5as/(hn)) with tensor parallelism.

    With sequence parallelism an n-th of the whole; without attention's pairs, sbh(10 + 24/n) and
    34sbh/n; recomputing everything, 2sbh and 2sbh/n. Gathered features that are held are whole:
    sbh(4 + 30/n) of 34sbh/n. The embedding keeps its mask, sbh, or with sequence parallelism an n-th.
    The head keeps 4sbh, 4sbv and 4sb, of which tensor parallelism divides the words' by n, and sequence
    parallelism all. (Claim A1; 2205.05198 sections 4.1-4.3, 5, table 2)
    """
    x = Symbols(k, GPT, square=True)
    sbh, pairs, n = x.s * x.b * x.h, 5 * x.a * x.s * x.s * x.b, x.n
    tokens, words = x.s * x.b, x.s * x.b * x.v
    first, last = embedding(x.shape), head(x.shape)
    rows = {
        "one_device": (x.program(""), 34 * sbh + pairs),
        "attention_again": (x.program("", PAIRS), 34 * sbh),
        "all_again": (x.program("", EVERYTHING), 2 * sbh),
        "tp": (x.program("tp"), sbh * (10 + 24 / n) + pairs / n),
        "tp_attention_again": (x.program("tp", PAIRS), sbh * (10 + 24 / n)),
        "tp_all_again": (x.program("tp", EVERYTHING), 2 * sbh),
        "tp_sp": (x.program("tp+sp"), (34 * sbh + pairs) / n),
        "tp_sp_held": (x.program("tp+sp", held=True), sbh * (4 + 30 / n) + pairs / n),
        "tp_sp_attention_again": (x.program("tp+sp", PAIRS), 34 * sbh / n),
        "tp_sp_all_again": (x.program("tp+sp", EVERYTHING), 2 * sbh / n),
        "embedding": (x.program("tp", part=first), sbh),
        "tp_sp_embedding": (x.program("tp+sp", part=first), sbh / n),
        "head": (x.program("", part=last), 4 * sbh + 4 * words + 4 * tokens),
        "tp_head": (x.program("tp", part=last), 4 * sbh + 4 * words / n + 4 * tokens),
        "tp_sp_head": (
            x.program("tp+sp", part=last),
            (4 * sbh + 4 * words + 4 * tokens) / n,
        ),
    }
    largest_are_found(k)
    own_parts_are_all(k)
    own_rows_are_all(k)
    stored_beside(k)
    own_parts_of_layers_are_all(k)
    places = k.reals("places")
    weights_of_layer, ends = 12 * x.h * x.h + 13 * x.h, (2 * x.v + places + 2) * x.h
    return *x.keeps(rows), model_has_weights(k, x.shape, weights_of_layer, ends, places)


@claim("A2")
def gated_layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """A Llama-like layer keeps bs(8h + 4d(a + kv) + 8f + 2as) bytes.

    By hand, of 2 bytes each: what the two norms take and give, 4 of bsh; queries, turned, and what
    attention gives the output product, 2 of bs ad; keys, turned, and values, 2 of bs kv d; the shares,
    bas^2; what silu takes and gives, what that gates, and their product, 4 of bsf. Norms are made
    again, from what they take; turning needs angles alone. Tensor parallelism cuts heads and f, and
    with sequence parallelism also tokens, but for what norms gave where it is gathered and held.
    Without attention's pairs there are no shares; recomputing everything leaves what the layer takes.
    (Claim A2; the same rule as A1)
    """
    x = Symbols(k, LLAMA)
    tokens, n = x.b * x.s, x.n
    bsh, shares = tokens * x.h, 2 * tokens * x.a * x.s
    inner = tokens * (4 * x.d * (x.a + x.kv) + 8 * x.f)
    rows = {
        "one_device": (x.program(""), 8 * bsh + inner + shares),
        "attention_again": (x.program("", PAIRS), 8 * bsh + inner),
        "all_again": (x.program("", EVERYTHING), 2 * bsh),
        "tp": (x.program("tp"), 8 * bsh + (inner + shares) / n),
        "tp_attention_again": (x.program("tp", PAIRS), 8 * bsh + inner / n),
        "tp_all_again": (x.program("tp", EVERYTHING), 2 * bsh),
        "tp_sp": (x.program("tp+sp"), (8 * bsh + inner + shares) / n),
        "tp_sp_held": (x.program("tp+sp", held=True), 4 * bsh + (4 * bsh + inner + shares) / n),
        "tp_sp_attention_again": (x.program("tp+sp", PAIRS), (8 * bsh + inner) / n),
        "tp_sp_all_again": (x.program("tp+sp", EVERYTHING), 2 * bsh / n),
    }
    heads = 2 * x.h * x.d * (x.a + x.kv)
    weights_of_layer, ends = heads + 3 * x.h * x.f + 2 * x.h, (2 * x.v + 1) * x.h
    return *x.keeps(rows), model_has_weights(k, x.shape, weights_of_layer, ends)


@claim("A3")
def expert_layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """With `chosen` of E experts, bs(8h + 4d(a + kv) + 2as + 4E + chosen (4h + 8f + 4)) bytes.

    By hand: attention and norms as without experts. The odds of all experts, for their softmax's
    backward, and of those chosen, which weigh what these give, take 4 bytes. In each of bs chosen
    slots: what an expert takes and gives, 2 of h, and 4 of f as in a gated MLP, of 2 bytes. Expert
    parallelism cuts samples, and slots by experts: an n-th of all. Where tensor parallelism cuts each
    expert, heads and f are cut alone, and with sequence parallelism also tokens and slots.
    (Claim A3; the same rule as A1)
    """
    x, experts, chosen = _with_experts(k)
    tokens, slots, n = x.b * x.s, x.b * x.s * chosen, x.n
    whole = tokens * (8 * x.h + 4 * experts) + slots * (4 * x.h + 4)
    inner = tokens * 4 * x.d * (x.a + x.kv) + slots * 8 * x.f
    shares = 2 * tokens * x.a * x.s
    rows = {
        "one_device": (x.program(""), whole + inner + shares),
        "attention_again": (x.program("", PAIRS), whole + inner),
        "all_again": (x.program("", EVERYTHING), 2 * tokens * x.h),
        "ep": (x.program("ep"), (whole + inner + shares) / n),
        "ep_attention_again": (x.program("ep", PAIRS), (whole + inner) / n),
        "ep_all_again": (x.program("ep", EVERYTHING), 2 * tokens * x.h / n),
        "tp": (x.program("tp"), whole + (inner + shares) / n),
        "tp_sp": (x.program("tp+sp"), (whole + inner + shares) / n),
    }
    experts_weights_are_counted(k)
    mlps_are_cut(k)
    return x.keeps(rows)
