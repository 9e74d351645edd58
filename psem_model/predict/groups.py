"""Weights of a stage by the schedule of their states, in the units that a profile says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from psem_model.predict.parts import PartCosts
from psem_model.predict.states import Prediction, predict_schedule
from psem_model.predict.units import Owned, Weights, owned, units_of, weights_of, weights_of_shapes
from spec.costs.memory import MODEL_STATES, Sizes
from spec.devices.mesh import group_size
from spec.language.schedule import Schedule
from spec.models.opaque import PARAMETERS, Shapes
from spec.models.profiles import COUNT_BYTES, Profile, Units
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import DIVISIBLE, EXACT, Number


@dataclass(frozen=True)
class Group:
    """Weights of a stage whose gradients are summed over the same axes: one schedule."""

    weights: tuple[str, ...]
    costs: Prediction
    step_counts: Number  # bytes: of each weight that the device updates, one count of steps
    buckets: Number  # bytes of copies of gradients, in which they are reduced
    waiting: Number  # bytes of gradients before the last micro-step
    largest: str = field(compare=False)  # the part that has most of them


@dataclass(frozen=True)
class StageWeights:
    """What the states of a stage's weights depend on.

    `counts`: how many of each part there are; `shapes`: of an opaque model's weights. `place`: of the
    device, along each axis.
    """

    costs: Mapping[str, PartCosts]
    counts: Mapping[str, int]
    shapes: Shapes
    profile: Profile
    policy: BytePolicy
    unit: Number | None
    padded: bool
    micro_steps: Number
    place: Mapping[str, int]

    def group(self, schedule: Schedule, weights: Iterable[str], mesh: Mapping[str, Number]) -> Group:
        """Those of some weights that are here, and what their schedule needs and moves."""
        names, sums = dict[str, None](), dict[str, Number]()
        for part in self.counts:
            of_part = self.costs[part].parameters
            # tied words, if both of their uses are here, are one weight: the embedding's
            here = [name for name in weights if name in of_part and name not in names]
            names |= dict.fromkeys(here)
            sums[part] = sum(of_part[name] for name in here)
        psi = sum(self.counts[part] * size for part, size in sums.items())
        largest = max(sums, key=lambda part: sums[part])
        known = self._known(names)
        has_units = self.unit is None and self.profile.units is not Units.LARGEST
        units = units_of(known, self.profile, self.policy.g) if has_units else ()
        own, fillers = self._owned(schedule, known, mesh)
        sizes = Sizes(
            psi,
            mesh,
            self.policy,
            min(psi, sums[largest] if self.unit is None else self.unit),
            EXACT if self.padded else DIVISIBLE,
            units=units,
            ahead=self.profile.prefetch if units else 0,
            unpadded=self.profile.unpadded,
            place=self.place,
            owned=own.elements if own else None,
            fillers=fillers if self.profile.fills else 0,
            beside=self._beside(names),
        )
        costs = predict_schedule(schedule, sizes, self.micro_steps)
        count = own.count if own else sum(of.times * len(of.vectors) for of in known)
        is_known = PARAMETERS.name not in names or bool(self.shapes)
        is_counted = self.profile.step_counts and self.policy.counts_steps and is_known
        counts = COUNT_BYTES * count if is_counted else 0
        copied = self.policy.summed * psi if schedule.axes and self._is_copied else 0
        waiting = costs.resting[State.GRADIENTS]
        left = schedule.left if self.profile.waits_whole else ()
        if left:
            slices = costs.sizes.at_rest(State.GRADIENTS, left) * self.policy.of(State.GRADIENTS)
            costs = replace(costs, resting={**costs.resting, State.GRADIENTS: slices})
        return Group(tuple(names), costs, counts, copied, waiting, largest)

    def _beside(self, names: Iterable[str]) -> dict[State, Number]:
        """Elements of states of some weights that the device has beyond their padded slices."""
        left, found = {*names}, dict[State, Number]()
        for part, times in self.counts.items():
            here = [name for name in self.costs[part].parameters if name in left]
            left -= {*here}
            for state in MODEL_STATES:
                of = (self.costs[part].beside(n, state, self.profile, self.place) for n in here)
                found[state] = found.get(state, 0) + times * sum(of)
        return {state: more for state, more in found.items() if more != 0}

    @property
    def _is_copied(self) -> bool:
        """Whether gradients are copied to be reduced: so they are, if that is in another type."""
        in_buckets = self.profile.units is Units.BUCKET
        return in_buckets and (self.profile.copies or self.policy.summed != self.policy.g)

    def _known(self, names: Iterable[str]) -> tuple[Weights, ...]:
        """The weights that have some names; or all, of which only shapes are known."""
        padding = self.profile.padding
        if self.shapes:
            return weights_of_shapes(self.shapes, padding)
        return weights_of(names, self.counts, self.costs, padding)

    def _owned(
        self, schedule: Schedule, known: tuple[Weights, ...], mesh: Mapping[str, Number]
    ) -> tuple[Owned | None, int]:
        """The weights that the device alone updates, and how many devices have none.

        Those of who has most, if no place is said.
        """
        axes = schedule.rest(State.OPTIMIZER).sharded
        if not self.profile.owners or not axes:
            return None, 0
        found = owned(known, int(group_size(mesh, axes)))
        empty = sum(not own.count for own in found)
        if not self.place:
            return max(found, key=lambda own: own.elements), empty
        number = 0
        for axis in axes:
            number = number * int(mesh[axis]) + self.place[axis]
        return found[number], empty
