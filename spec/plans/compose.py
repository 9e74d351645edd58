"""Composition: a strategy over several axes is a product of strategies, each on axes of its own.

A factor says how the training states are placed along its axes, or what it cuts of the model, or that
it cuts the layers. The product says all of it. A weight's gradient is summed along the axes along which
it comes out partial: so every axis that cuts samples or tokens, and not a weight, is to that weight's
states what data parallelism is. They are replicated there; or, with a strategy over all axes such as
`zero1+all`, placed as along that strategy's own axis. The states of a layer rest on its stage; where a
gradient comes out whole, as that of a norm does along `tp`, the states are on every device. A factor of
states may name an axis that another factor cuts, `zero1 * cp * zero1(context)`: there alone the states
of every weight that it does not cut are placed so, also where gradients come out whole.

The order of factors matters in one way: shards are nested in it, the first axis outermost, so another
order gives a device another slice. Modes, costs and verdicts are the same in any order (claim K8). The
order in which levels are reduced is no part of a product: it changes what each level sends, as
`hierarchy` says (claim C7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spec.devices.mesh import HOST
from spec.language.moves import Axis
from spec.models.states import State
from spec.plans.model_strategies import KV_HEADS, MODEL_AXES, copies_within
from spec.plans.modes import Mode, R, S
from spec.plans.placement import Placement, place_states
from spec.plans.strategies import STRATEGIES

PIPELINE = "pp"
DATA_PARALLEL = dict(zip(State, (R, R, R, S), strict=True))  # the batch cut, everything else replicated
# strategies that shard states, over every axis along which gradients are summed: `zero1+all`
OVER_ALL = {
    f"{name}+all": name for name, placed in STRATEGIES.items() if placed.rest(State.OPTIMIZER).sharded
}


class OverlapError(ValueError):
    """Two factors on one axis that both place states along it, or both cut."""

    def __init__(self, axis: str, factor: int) -> None:
        super().__init__(f"axis {axis} is in two factors")
        self.axis, self.factor = axis, factor  # the second of the two, counted from 0


class HoldError(ValueError):
    """Of two factors that gather parameters, one holds them to backward and one releases them."""

    def __init__(self, other: Factor, factor: int) -> None:
        does = "holds" if other.holds else "releases"
        self.expected = f"one that {does} the parameters it gathers, as {other.name} does"
        super().__init__(f"factor {factor + 1}: expected {self.expected}")
        self.factor = factor  # the second of the two, counted from 0


class OverAllError(ValueError):
    """Two factors say how states are placed along all other axes."""

    def __init__(self, other: Factor, factor: int) -> None:
        self.expected = f"one strategy over every axis, as {other.name} is"
        super().__init__(f"factor {factor + 1}: expected {self.expected}")
        self.factor = factor  # the second of the two, counted from 0


@dataclass(frozen=True)
class Factor:
    """One strategy on axes of its own: of the training states, of the model, or of the layers.

    `over_all`: states are placed alike, as along its last axis, along all axes that gradients are
    summed along and that no factor places states on.
    """

    name: str
    axes: tuple[str, ...]
    states: Placement | None = None
    cuts: Axis | None = None
    over_all: bool = False

    @property
    def places_states(self) -> tuple[bool, ...]:
        """Whether it places states (or else cuts the model); a pipeline does both along its axis."""
        return (True, False) if self.name == PIPELINE else (self.states is not None,)

    @property
    def holds(self) -> bool | None:
        """Whether it holds the parameters it gathers; None if it gathers none."""
        if self.states is None or not self.states.gathered_axes(State.PARAMETERS):
            return None
        return self.states.hold

    def __mul__(self, other: Factor | Product) -> Product:
        return Product((self,)) * other


@dataclass(frozen=True)
class Product:
    """Strategies on different axes. Raises OverlapError if they are not.

    What is gathered along several axes is one view, held or released: raises HoldError if factors
    differ in that; OverAllError if two are over all axes.
    """

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        taken: set[tuple[str, bool]] = set()
        for number, factor in enumerate(self.factors):
            for axis in factor.axes:
                new = {(axis, places) for places in factor.places_states}
                if new & taken:
                    raise OverlapError(axis, number)
                taken |= new
        gathering = [f for f in self.factors if f.holds is not None]
        for factor in gathering:
            if factor.holds != gathering[0].holds:
                raise HoldError(gathering[0], self.factors.index(factor))
        over_all = [f for f in self.factors if f.over_all]
        if len(over_all) > 1:
            raise OverAllError(over_all[0], self.factors.index(over_all[1]))

    def __mul__(self, other: Factor | Product) -> Product:
        more = (other,) if isinstance(other, Factor) else other.factors
        return Product(self.factors + more)

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(axis for factor in self.factors for axis in factor.axes))

    @property
    def batch_axes(self) -> tuple[str, ...]:
        """The axes of which nothing is said but where states are: they cut samples."""
        cut = [axis.name for axis in self.cuts]
        return tuple(axis for axis in self.states.axes if axis not in cut)

    @property
    def states(self) -> Placement:
        """How the training states are placed along the axes that some factor places them on."""
        return combined(factor.states for factor in self.factors if factor.states)

    @property
    def cuts(self) -> tuple[Axis, ...]:
        return tuple(factor.cuts for factor in self.factors if factor.cuts)

    @property
    def cuts_weights(self) -> tuple[str, ...]:
        """The axes that weights are cut along."""
        return tuple(axis.name for axis in self.cuts if axis.weight_indices)

    @property
    def pipe(self) -> str | None:
        """The axis along which layers are cut."""
        return next((factor.axes[0] for factor in self.factors if factor.name == PIPELINE), None)

    def states_of(self, summed: tuple[str, ...], whole: tuple[str, ...] = ()) -> Placement:
        """The placement of weights whose gradients come out partial along `summed`, and batch axes.

        And whole along others: of these along those on which a factor places states.
        """
        whole = tuple(axis for axis in whole if axis in self.states.axes)
        along = (*self.batch_axes, *summed, *whole)
        placed = (restricted(f.states, along) for f in self.factors if f.states)
        others = (axis for axis in summed if axis not in self.states.axes)
        return with_all_samples(combined((*placed, *map(self._elsewhere, others))), whole)

    def _elsewhere(self, axis: str) -> Placement:
        """Along an axis on which no factor places the states: replicated, if none is over all axes."""
        alike = next((f.states for f in self.factors if f.over_all), None)
        if alike is None or axis == self.pipe:
            return _along(axis, DATA_PARALLEL)
        return _along(axis, {state: dict(found)[alike.axes[-1]] for state, found in alike.modes})


def with_copies(
    product: Product, sizes: Mapping[str, int], heads: int, group: int
) -> tuple[Product, dict[str, int]]:
    """Of a model's key-value heads, copies on each of the devices that are too many for them.

    `heads`: of keys and values; `group`: heads that share one. An axis that cuts heads, and has a
    multiple of those that are left to cut, becomes two: so many devices as there are, and copies
    within. States that are placed along the one are placed so along both. As it is, where a group is
    not cut evenly.
    """
    found: list[Factor] = []
    names: dict[str, tuple[str, ...]] = {}
    sizes = dict(sizes)
    for factor in product.factors:
        found.append(factor)
        axis = factor.cuts
        if axis is None or KV_HEADS not in axis.weight_indices:
            continue
        size = sizes[axis.name]
        if size > heads and size % heads == 0 and group % (size // heads) == 0:
            copies = copies_within(axis)
            found.append(Factor(factor.name, (copies.name,), cuts=copies))
            names[axis.name] = axis.name, copies.name
            sizes |= {axis.name: heads, copies.name: size // heads}
            group //= size // heads
        heads = max(1, heads // size)
    along = tuple(name for axis in product.axes for name in names.get(axis, (axis,)))
    return Product(tuple(_on_each(f, names) for f in found)), {axis: sizes[axis] for axis in along}


def _on_each(factor: Factor, names: Mapping[str, tuple[str, ...]]) -> Factor:
    """A factor; of states, with some of its axes as several."""
    if factor.states is None:
        return factor
    axes = tuple(name for axis in factor.axes for name in names.get(axis, (axis,)))
    modes = {
        state: {name: mode for axis, mode in found for name in names.get(axis, (axis,))}
        for state, found in factor.states.modes
    }
    return replace(factor, axes=axes, states=place_states(axes, modes, factor.states.hold))


def combined(placements: Iterable[Placement]) -> Placement:
    """Placements on different axes, as one: each state has its modes along each axis.

    Those that gather parameters hold them alike, as those of a Product do.
    """
    axes: tuple[str, ...] = ()
    modes: dict[State, dict[str, Mode]] = {state: {} for state in State}
    hold = False
    for placement in placements:
        axes += placement.axes
        hold = hold or placement.hold
        for state, found in placement.modes:
            modes[state] |= dict(found)
    return place_states(axes, modes, hold)


def restricted(placed: Placement, axes: tuple[str, ...]) -> Placement:
    """The placement along some of its axes alone; on the host, if it is along any."""
    kept = tuple(axis for axis in placed.axes if axis in axes)
    on = {*kept, HOST} if kept else set[str]()
    modes = {state: {a: mode for a, mode in found if a in on} for state, found in placed.modes}
    return place_states(kept, modes, placed.hold)


def with_all_samples(placed: Placement, whole: tuple[str, ...]) -> Placement:
    """The placement, where along some axes each device has all samples, and gradients are whole."""
    modes = {state: dict(found) for state, found in placed.modes}
    modes[State.ACTIVATIONS] |= dict.fromkeys(whole, R)
    return replace(place_states(placed.axes, modes, placed.hold), whole=whole)


def _along(axis: str, modes: Mapping[State, Mode]) -> Placement:
    """States in these modes along an axis."""
    return place_states((axis,), {state: {axis: mode} for state, mode in modes.items()})


def factor(name: str, *axes: str) -> Factor:
    """A named strategy on these axes, or on axes of its usual names. Raises KeyError, ValueError."""
    if name in OVER_ALL:
        return replace(factor(OVER_ALL[name], *axes), name=name, over_all=True)
    if name == PIPELINE:
        return Factor(name, _named(name, axes, ("pipe",)))
    if name in STRATEGIES:
        placement = STRATEGIES[name]
        named = _named(name, axes, placement.axes)
        return Factor(name, named, _on(placement, dict(zip(placement.axes, named, strict=True))))
    cuts = MODEL_AXES[name]
    (axis,) = _named(name, axes, (cuts.name,))
    return Factor(name, (axis,), cuts=replace(cuts, name=axis))


def _named(name: str, given: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
    if given and len(given) != len(usual):
        raise ValueError(f"{name} has {len(usual)} axes, not {len(given)}")
    return given or usual


def _on(placement: Placement, names: Mapping[str, str]) -> Placement:
    """The same placement on axes of other names."""
    modes = {
        state: {names.get(axis, axis): mode for axis, mode in found} for state, found in placement.modes
    }
    return place_states(tuple(names[axis] for axis in placement.axes), modes, placement.hold)
