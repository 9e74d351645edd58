"""A1-A3: how many weights models have, worked out layer by layer from their products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from proofs.language.programs import DEEPSEEK, GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And
from spec.costs.model_costs import active, further_elements, largest_part, parameters
from spec.models.parts import parts
from spec.models.transformer import DENSE, INDICES, USUAL, Transformer
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


def experts_weights_are_counted(k: Kernel) -> None:
    """Raise KernelError unless a token passes as many weights as without experts, in a wider MLP.

    And the router's; and unless each module that predicts further tokens has those of a last layer.
    """
    model = replace(LLAMA, layers=3, experts=4, chosen=2)
    wide = replace(LLAMA, layers=3, feed_forward=model.chosen * model.feed_forward)
    h, all_of_wide = model.hidden, sum(parameters(wide).values())
    routers = model.layers * h * model.experts
    for shape, expected in ((model, all_of_wide + routers), (wide, all_of_wide)):
        if active(shape) != expected:
            raise KernelError(f"{k.claim}: a token passes {active(shape)} weights, not {expected}")
    several = replace(model, dense=8, kinds=(frozenset({DENSE}), USUAL), further=2)
    two, one = (sum(parameters(replace(several, layers=n)).values()) for n in (2, 1))
    expected = several.further * (two - one + 2 * h**2 + 3 * h)
    if further_elements(replace(several, layers=2)) != expected:
        raise KernelError(f"{k.claim}: further modules have other weights than {expected}")


def mlps_are_cut(k: Kernel) -> None:
    """Raise KernelError unless tensor parallelism cuts each weight that has features inside an MLP."""
    inside = {index for index, words in INDICES.items() if words.startswith("features inside the MLP")}
    for part in (part for model in (GPT, LLAMA, DEEPSEEK) for part in parts(model)):
        for weight in part.weights:
            cut = MODEL_AXES["tp"].rest(weight, part).index
            if inside & {*weight.indices} and cut not in inside:
                raise KernelError(f"{k.claim}: {weight.name} is cut along {cut or 'nothing'}")
