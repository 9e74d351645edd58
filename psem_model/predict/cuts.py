"""A model on the axes of a mesh: what is cut is there, and cut evenly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from psem_model.reading.products import Expression
from psem_model.text.figures import counted
from spec.devices.mesh import group_size
from spec.language.steps import Step
from spec.models.custom import Custom
from spec.models.parts import parts
from spec.models.profiles import Profile
from spec.models.transformer import Transformer, is_layer
from spec.numbers.arithmetic import Number
from spec.plans.compose import with_copies
from spec.plans.model_strategies import EXPERTS, HEADS_OF_A_GROUP, INSIDE_MLPS, KV_HEADS, copies_within

NAMES = {
    "g": "the key-value heads",
    "f": "the features inside the MLP",
    "i": "the features inside the MLP of layers without experts",
    "t": "the features inside the MLP that all tokens share",
    "s": "the tokens of a sample",
    "e": "the experts",
}


def copied(
    found: Expression, sizes: Mapping[str, int], model: Transformer | Custom, profile: Profile
) -> tuple[Expression, dict[str, int]]:
    """With copies of key-value heads, where tensor parallelism has more devices than there are.

    A model of one's own has none: its indices are cut as they are. So are heads by some profiles.
    """
    if isinstance(model, Custom) or not profile.copies_heads:
        return found, dict(sizes)
    heads, copies = int(model.kv_heads), {copies_within(axis).name: axis for axis in found.product.cuts}
    product, sizes = with_copies(found.product, sizes, heads, int(model.heads) // heads)
    starts, places = iter(found.starts), dict(found.places)
    begins: list[int] = []
    for factor in product.factors:
        axis = copies.get(factor.axes[0])
        begins.append(begins[-1] if axis else next(starts))
        if axis and axis.name in places:
            places[factor.axes[0]] = places[axis.name]
    return replace(found, product=product, starts=tuple(begins), places=places), sizes


def require_placed(found: Expression, step: Step) -> None:
    """Raise BadInput for a strategy of states along an axis that no gradient is summed over."""
    summed = {axis for group in step.groups for axis in group.schedule.axes}
    for number, factor in enumerate(found.product.factors):
        if factor.states and not summed.intersection(factor.axes):
            raise found.wrong_factor(
                number, f"an axis that some gradient is summed over, not {factor.axes[0]}"
            )


def named(model: Transformer | Custom) -> Mapping[str, str]:
    """The indices of a model that are cut evenly, in words."""
    if isinstance(model, Transformer):
        return NAMES
    return {index: f"the values of {index}" for index in model.sizes(1, 1)}


def require_experts(found: Expression, experts: Number, expected: str = "a model with experts") -> None:
    """What cuts experts needs some."""
    for number, factor in enumerate(found.product.factors):
        if factor.cuts and EXPERTS in factor.cuts.weight_indices and not experts:
            raise found.wrong_factor(number, expected)


def require_cut_there(found: Expression, model: Transformer | Custom) -> None:
    """What a strategy cuts of a model of one's own is there, and so are layers for its stages."""
    if isinstance(model, Transformer):
        return
    there = {index for part in model.parts for index in part.indices}
    for number, factor in enumerate(found.product.factors):
        axis = factor.cuts
        for cut in ({*axis.weight_indices}, {axis.stream} - {""}) if axis else ():
            if cut and not cut & there:
                raise found.wrong_factor(number, f"a model with values of {' or '.join(sorted(cut))}")
    if found.product.pipe and not model.layers:
        number = next(n for n, f in enumerate(found.product.factors) if found.product.pipe in f.axes)
        raise found.wrong_factor(number, "a model with a part whose name ends in layer")


def require_layers(
    found: Expression, model: Transformer | Custom, stages: int, chunks: int = 1
) -> None:
    """Every chunk of every stage has a layer, but the last one may have a head alone."""
    most, expected = most_chunks(model)
    if stages * chunks > most:
        given = f"{stages} stages, of {counted(chunks, 'chunk')} each"
        raise found.wrong_size(found.product.pipe or "", given, expected)


def most_chunks(model: Transformer | Custom) -> tuple[int, str]:
    """How many chunks there are at most, if layers are spread evenly over them, in number and words."""
    last = parts(model)[-1].name
    has_one = not is_layer(last)
    more, most = f", and one for the {last}" * has_one, model.layers + has_one
    return most, f"at most {most:,} in all, one for each layer{more}"


def may_be_uneven(profile: Profile) -> tuple[str, ...]:
    """The indices that need not be cut evenly."""
    return INSIDE_MLPS if profile.uneven else ()


def require_even(
    found: Expression,
    sizes: Mapping[str, int],
    indices: Mapping[str, Number],
    profile: Profile,
    sliced: bool = False,
    names: Mapping[str, str] = NAMES,
) -> None:
    """What is cut is cut evenly, but for words, which are padded, and for what a profile cuts unevenly.

    `sliced`: what layers take is kept in slices of the tokens, where it is not cut otherwise.
    """
    cut: dict[str, list[str]] = {}
    for axis in found.product.cuts:
        tokens = ["s"] if sliced and not axis.stream else []
        some = [*axis.weight_indices, axis.stream, *(index for _, index in axis.brought), *tokens]
        for index in dict.fromkeys(i for i in some if i in names and i in indices):
            if index in may_be_uneven(profile):
                continue
            axes = cut.setdefault(index, [])
            axes.append(axis.name)
            devices, size = group_size(sizes, axes), indices[index]
            if size % devices:
                in_slices = ", kept in slices" if index == "s" and sliced else ""
                heads = (
                    size * indices.get(HEADS_OF_A_GROUP, 1)
                    if index == KV_HEADS and KV_HEADS in axis.weight_indices
                    else size
                )
                copied = f", or a multiple of them that divides {heads:,}, all heads" * (heads > size)
                if heads > size and not profile.copies_heads:
                    copied = f", of which {profile.name} makes no copies"
                raise found.wrong_size(
                    axis.name,
                    f"{devices} along {' x '.join(axes)}",
                    f"a divisor of {size:,}, {names[index]}{in_slices}{copied}",
                )


def require_cut(
    found: Expression, sizes: Mapping[str, int], model: Transformer | Custom, profile: Profile
) -> None:
    """A model's weights and layers are cut evenly; of samples and tokens nothing is known."""
    of_weights: tuple[str, ...] = (KV_HEADS, HEADS_OF_A_GROUP, *INSIDE_MLPS, EXPERTS)
    one = model.sizes(1, 1)
    if isinstance(model, Custom):  # but for samples and positions
        of_weights = tuple(index for index, n in model.sizes(2, 2).items() if n == one.get(index))
    weights = {name: size for name, size in one.items() if name in of_weights}
    require_even(found, sizes, weights, profile, names=named(model))
    if found.product.pipe:
        require_layers(found, model, sizes[found.product.pipe])
