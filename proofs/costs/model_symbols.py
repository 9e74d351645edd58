"""Models of any sizes, as symbols, and what their derived programs send and keep (X6-X9, A1-A3, A6).

The specification's costs, evaluated on symbols: b samples and s positions of a micro-batch, h features,
a heads, kv key heads, d features of a head, f features inside the MLP, v words, n devices along the
axis. Volumes are elements that one device sends; activations are bytes that one device keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from proofs.costs.reciprocals import divisor
from proofs.language.programs import GPT, LLAMA
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import RealVal
from spec.costs.model_costs import elements_moved, kept_bytes, weight_elements
from spec.derivation.programs import NOTHING, program_of
from spec.devices.layouts import PARTIAL, WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.parts import layer
from spec.models.transformer import Latent, Transformer
from spec.models.values import Part
from spec.plans.model_strategies import MODEL_AXES

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
        return program_of(part or layer(self.shape), axes, again)

    def mesh(self, program: Program) -> dict[str, Any]:
        return {axis.name: self.n for axis in program.axes}

    def sent(self, program: Program, lines: Iterable[Line]) -> Any:
        """Elements that a device sends in some lines of a program."""
        mesh = self.mesh(program)
        moves = (line for line in lines if isinstance(line, Move))
        return sum(elements_moved(move, program, self.sizes, mesh) for move in moves)

    def gradients(self, program: Program, but: str = "") -> Any:
        """What all-reducing the gradients of all weights sends, but of those cut along an index."""
        found = weight_elements(program, self.sizes, self.mesh(program))
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
        for axis in program.summed_over(weight)
    )


def with_experts(k: Kernel) -> tuple[Symbols, Any, Any]:
    """A Llama-like layer with experts; how many there are, and to how many a token is sent."""
    x = Symbols(k, replace(LLAMA, experts=4, chosen=2))
    experts, chosen, samples = k.reals("experts chosen samples")  # samples for each expert
    x.b, slots = experts * samples, samples * x.s * chosen
    x.sizes |= {"b": x.b, "j": experts, "e": experts, "c": slots}
    return x, experts, chosen


class LatentLayer(NamedTuple):
    """A layer whose queries, keys and values are made from few features of each token, and how many.

    `few`: those of keys and values; `of_queries`: those of queries; `straight`: features of a head that
    are not turned; `of_values`: of its values.
    """

    part: Part
    few: Any
    of_queries: Any
    straight: Any
    of_values: Any


def latent_layer(x: Symbols) -> LatentLayer:
    """Such a layer of a model of any sizes, which has these sizes then, too."""
    few, of_queries, straight, of_values = x.k.reals("few of_queries straight of_values")
    shape = replace(x.shape, latent=Latent(few, of_queries, straight, of_values))
    x.sizes |= {**shape.sizes(x.b, x.s), "r": x.sizes["r"]}
    part = layer(replace(LLAMA, latent=Latent(4, 4, 2, 2)))
    return LatentLayer(part, few, of_queries, straight, of_values)
