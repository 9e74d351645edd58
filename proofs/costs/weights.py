"""A1-A3: how many weights models have, worked out layer by layer from their products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proofs.language.programs import DEEPSEEK, GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.costs.model_costs import active, further, largest_part, parameters
from spec.models.parts import parts
from spec.models.transformer import DENSE, INDICES, USUAL, Transformer
from spec.plans.model_strategies import MODEL_AXES


def model_has_weights(k: Kernel, shape: Transformer, layer: Any, ends: Any) -> Theorem:
    """Any number of layers, each of so many weights, and an embedding and a head of so many."""
    layers = k.reals("layers")
    found = parameters(replace(shape, layers=layers, vocabulary=GPT.vocabulary))
    return k.prove("the_model_has_so_many_weights", sum(found.values()) == layers * layer + ends)


def tied_words_are_counted_once(k: Kernel) -> None:
    """Raise KernelError unless a model whose head has the embedding's words has so many fewer."""
    tied, apart = (sum(parameters(replace(GPT, tied=tied)).values()) for tied in (True, False))
    if apart - tied != GPT.vocabulary * GPT.hidden:
        raise KernelError(f"{k.claim}: tied words are counted otherwise: {tied}, {apart} apart")


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
    routers = model.layers * model.hidden * model.experts
    h = model.hidden
    for shape, passed in ((model, sum(parameters(wide).values()) + routers), (wide, None)):
        expected = sum(parameters(shape).values()) if passed is None else passed
        if active(shape) != expected:
            raise KernelError(f"{k.claim}: a token passes {active(shape)} weights, not {expected}")
    several = replace(model, dense=8, kinds=(frozenset({DENSE}), USUAL), further=2)
    two, one = (sum(parameters(replace(several, layers=n)).values()) for n in (2, 1))
    expected = several.further * (two - one + 2 * h**2 + 3 * h)
    if further(replace(several, layers=2)) != expected:
        raise KernelError(f"{k.claim}: further modules have other weights than {expected}")


def mlps_are_cut(k: Kernel) -> None:
    """Raise KernelError unless tensor parallelism cuts each weight that has features inside an MLP."""
    inside = {index for index, words in INDICES.items() if words.startswith("features inside the MLP")}
    for part in (part for model in (GPT, LLAMA, DEEPSEEK) for part in parts(model)):
        for weight in part.weights:
            cut = MODEL_AXES["tp"].rest(weight, part).index
            if inside & {*weight.indices} and cut not in inside:
                raise KernelError(f"{k.claim}: {weight.name} is cut along {cut or 'nothing'}")
