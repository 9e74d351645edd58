"""Plans by profiles: drawn, or of a small model and a profile that is written."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from psem_model.predict.asked import Asked
from psem_model.predict.model_plans import require_owners
from psem_model.predict.plan import Plan
from psem_model.predict.read import read
from psem_model.text.errors import BadInput
from spec.models.layers import HeldUnits, Layers
from spec.models.opaque import Opaque
from spec.models.profiles import Padding, Units
from spec.models.states import POLICIES
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import Product, factor
from spec.plans.strategies import STRATEGIES
from tests.support.products import plans
from tests.support.profiles import profiles

SHAPE = {"layers": 1, "hidden": 64, "heads": 4, "block": "llama", "feed_forward": 128}
MODEL = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}


def profiled_as(text, tmp_path, strategy, **options):
    file = tmp_path / "mine.toml"
    file.write_text(f'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{text}\n')
    model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
    return read(Asked("predict", strategy, model=model, profile=str(file), **options))


def anywhere(name, tmp_path):
    """The file of a profile that is like another, for states wherever they are."""
    path = tmp_path / f"{name}-anywhere.toml"
    path.write_text(f'title = "t"\nlike = "{name}"\nplaces = {{}}\n')
    return str(path)


def with_owners(plan):
    """The plan, with owners, or slices of one vector, where there may be, if its profile has them."""
    if plan.profile.padding is Padding.WEIGHT:
        plan = replace(plan, unit=None)
    if not plan.profile.owners:
        return plan
    try:
        require_owners(plan)
    except BadInput:
        return replace(plan, profile=replace(plan.profile, padding=Padding.ELEMENT))
    return plan


@st.composite
def profiled(draw, *states):
    """Any plan, or of some strategies of states, by any profile; with owners where there may be."""
    plan, profile = draw(plans(states=states) if states else plans()), draw(profiles())
    if profile.uneven:  # features may be cut in slices that are not alike
        more = plan.model.feed_forward + draw(st.integers(0, 2))
        functions = st.sampled_from(["gelu", "gelu_new", "silu", "relu"])
        plan = replace(plan, model=replace(plan.model, feed_forward=more, function=draw(functions)))
    return with_owners(replace(plan, profile=profile, policy=profile.types(plan.policy)))


def owns(padding):
    """Whether a plan's profile has some padding."""
    return lambda plan: plan.profile.padding is padding


WITH_OWNERS = profiled("zero1", "dp", "zero1+all").filter(owns(Padding.WEIGHT))
OF_ONE_VECTOR = profiled("zero1", "zero2", "zero-offload", "zero1+all", "zero2+all").filter(
    owns(Padding.VECTOR)
)


@st.composite
def gathered_ahead(draw):
    """Plans that gather parameters in units of their own sizes, some before their turn."""
    plan = draw(profiled("zero3", "fsdp", "hsdp", "zero3+all"))
    units = st.sampled_from([units for units in Units if units is not Units.LARGEST])
    own = {"units": draw(units), "prefetch": draw(st.integers(1, 3))}
    own["padding"] = draw(st.sampled_from((Padding.ELEMENT, Padding.ROW)))
    return replace(plan, unit=None, profile=replace(plan.profile, **own))


@st.composite
def held(draw):
    """Plans that gather parameters, some of which hold the weights of some layers."""
    plan = draw(profiled("zero3", "fsdp", "hsdp", "zero3+all"))
    numbers = st.frozensets(st.integers(-plan.model.layers, plan.model.layers - 1), min_size=1)
    units = HeldUnits(plan.profile.held_units.names, Layers(draw(numbers), others=False))
    return replace(plan, profile=replace(plan.profile, held_units=units))


SHAPES = st.lists(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple), min_size=1, max_size=4),
    max_size=4,
).map(lambda layers: tuple(map(tuple, layers)))


@st.composite
def opaque(draw, *states):
    """Of an opaque model, with weights of known shapes or not, in units of a size or of a profile.

    Of any strategy, or of some; with owners where there may be.
    """
    given, profile = draw(st.sampled_from(states or [*STRATEGIES]).map(factor)), draw(profiles())
    shapes = draw(SHAPES)
    psi = sum(prod(shape) for of in shapes for shape in of) if shapes else draw(st.integers(1, 60))
    product = Product((given,))
    micro_batches = 1 if given.name == "fused-update" else draw(st.integers(1, 3))
    model, pipe = Opaque(psi, shapes), Pipeline(Order.ONE_F_ONE_B, 1, micro_batches)
    mesh = {axis: draw(st.integers(1, 3)) for axis in product.axes}
    needs_copy = given.name in ("zero-offload", "fused-update")
    policies = [name for name, policy in POLICIES.items() if policy.master or not needs_copy]
    policy = POLICIES[draw(st.sampled_from(policies))]
    unit = draw(st.none() | st.integers(1, psi))
    found = Plan(model, product, mesh, pipe=pipe, policy=profile.types(policy), unit=unit)
    return with_owners(replace(found, profile=profile))


OPAQUE_WITH_OWNERS = opaque("zero1", "dp").filter(owns(Padding.WEIGHT))
OPAQUE_OF_ONE_VECTOR = opaque("zero1", "zero2", "zero-offload", "fused-update").filter(
    owns(Padding.VECTOR)
)
