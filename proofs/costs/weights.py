"""A1-A3: how many weights models have, worked out layer by layer from their products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from proofs.language.programs import DEEPSEEK, GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And
from spec.costs.model_costs import active, further_elements, largest_part, parameters
from spec.models.custom import Custom
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK, realised_parts
from spec.models.transformer import DENSE, INDICES, STRAIGHT, USUAL, Transformer
from spec.models.values import Role
from spec.numbers.arithmetic import Number
from spec.plans.model_strategies import MODEL_AXES


@dataclass(frozen=True)
class _OfAnyNumber(Transformer):
    """A model that has some words, and perhaps places that are learned: any number of them."""

    words: Number = 0
    places: Number = 0

    def sizes(self, micro_batch: Number, sequence: Number) -> dict[str, Number]:
        return super().sizes(micro_batch, sequence) | {"v": self.words, "w": self.places}


def model_has_weights(
    k: Kernel, shape: Transformer, layer: Any, ends: Any, places: Number = 0
) -> Theorem:
    """Any number of layers, each of so many weights, and an embedding and a head of so many.

    If the head's words are the embedding's, so many fewer.
    """
    layers, words = k.reals("layers"), shape.vocabulary
    some = vars(replace(shape, layers=layers, vocabulary=1))
    apart = _OfAnyNumber(**some, words=words, places=places)
    all_apart, all_tied = (
        sum(parameters(model).values()) for model in (apart, replace(apart, tied=True))
    )
    weights = layers * layer + ends
    claim = And(all_apart == weights, all_tied == weights - words * shape.hidden)
    return k.prove("the_model_has_so_many_weights", claim)


def largest_are_found(k: Kernel) -> None:
    """Raise KernelError unless the largest part is a layer or, of many words, the embedding."""
    h, places = GPT.hidden, GPT.positions
    for words, expected in ((GPT.vocabulary, 12 * h**2 + 13 * h), (1000, (1000 + places) * h)):
        has = largest_part(replace(GPT, vocabulary=words))
        if has != expected:
            raise KernelError(f"{k.claim}: the largest part has {has} weights, not {expected}")
    several = replace(LLAMA, vocabulary=1000, kinds=(frozenset({STRAIGHT}), USUAL))
    if largest_part(several) != 1000 * LLAMA.hidden + LLAMA.hidden:
        raise KernelError(f"{k.claim}: of two kinds of layers the head is not the largest part")


def own_model_is_alike(k: Kernel) -> None:
    """Raise KernelError unless a model of one's own, of GPT's parts, has GPT's indices and weights.

    And has weights with positions if one of its weights has an index that is another name of theirs.
    """
    shape, samples, positions = replace(GPT, layers=3), 2, 7
    sizes = shape.sizes(samples, positions)
    others = {index: size for index, size in sizes.items() if index not in "bs"}
    lengths = {**others, "u": "s"}
    own = Custom(parts(shape), shape.layers, tuple(lengths.items()))
    as_places = Custom(own.parts, own.layers, tuple({**lengths, "w": "u"}.items()))
    if own.sizes(samples, positions) != sizes or parameters(own) != parameters(shape):
        raise KernelError(f"{k.claim}: a model of GPT's parts has other weights than GPT")
    of_words, more = replace(as_places, parts=own.parts[:1]), (positions - 1) * shape.hidden
    for has in (largest_part, lambda model, *length: sum(parameters(model, *length).values())):
        if has(of_words, positions) - has(of_words) != more:
            raise KernelError(f"{k.claim}: there are not as many weights as for each position")
    others_too = {"w": "b"}, {"w": "u"}, {"f": "u"}  # another name of samples, and of positions
    named = [replace(own, lengths=tuple({**lengths, **other}.items())) for other in others_too]
    named.append(replace(of_words, lengths=tuple({**lengths, "h": "u"}.items())))
    named.append(replace(as_places, parts=own.parts[::-1]))
    if [model.weighs_positions for model in (own, *named)] != [False, False, *[True] * 4]:
        raise KernelError(f"{k.claim}: which weights have positions is not so")
    if own.layers_of(1, 3) != shape.layers_of(1, 3) or not own.has_index("v") or own.has_index("e"):
        raise KernelError(f"{k.claim}: a model of GPT's parts has other layers, or indices, than GPT")


def opaque_is_as_said(k: Kernel) -> None:
    """Raise KernelError unless all parameters of a model of which nothing is known are one weight.

    It has an index of samples, and what it computes no size.
    """
    model = Opaque(7)
    (part,) = parts(model)
    sizes, (line,) = model.sizes(3), part.operations
    elements = [prod(sizes[index] for index in value.indices) for value in (*line.reads, line.makes)]
    width = sum(value.width for value in (*line.reads[1:], line.makes))
    is_written = realised_parts(model, TEXTBOOK, 2) == parts(model) and not width
    if (
        [*parameters(model).values()] != [7]
        or elements != [7, 3 * 7, 3]
        or part.takes
        or part.gives.role is not Role.STREAM
        or model.layers
        or not is_written
    ):
        raise KernelError(f"{k.claim}: an opaque model has other sizes")


def experts_weights_are_counted(k: Kernel, model: Transformer) -> tuple[Theorem, Theorem]:
    """A token passes as many weights as without experts, in an MLP as wide as those it chooses.

    And the router's; of a model that has experts. Each module that predicts further tokens has those
    of a last layer, what joins two of a token's features, and three norms.
    """
    layers, further = k.reals("layers further")
    several = replace(model, layers=layers)
    wide = replace(several, feed_forward=model.chosen * model.feed_forward, experts=0, chosen=0)
    h, all_of_wide = model.hidden, sum(parameters(wide).values())
    passed = And(
        active(several) == all_of_wide + layers * h * model.experts, active(wide) == all_of_wide
    )
    unlike = replace(model, dense=8, kinds=(frozenset({DENSE}), USUAL), further=further)
    of_both, dense_last = (replace(unlike, layers=2, kinds=unlike.kinds[::n]) for n in (1, -1))
    two, one = (sum(parameters(replace(unlike, layers=n)).values()) for n in (2, 1))
    has = further_elements(replace(unlike, layers=2))
    return (
        k.prove("a_token_passes_so_many_weights", And(passed, active(of_both) == active(dense_last))),
        k.prove("further_modules_have", has == further * (two - one + 2 * h * h + 3 * h)),
    )


def mlps_are_cut(k: Kernel) -> None:
    """Raise KernelError unless tensor parallelism cuts each weight that has features inside an MLP."""
    inside = {index for index, words in INDICES.items() if words.startswith("features inside the MLP")}
    for part in (part for model in (GPT, LLAMA, DEEPSEEK) for part in parts(model)):
        for weight in part.weights:
            cut = MODEL_AXES["tp"].rest(weight, part).index
            if inside & {*weight.indices} and cut not in inside:
                raise KernelError(f"{k.claim}: {weight.name} is cut along {cut or 'nothing'}")
