"""A schedule's run of some steps, over a domain of values; and the places of such a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proofs.checking.operation_lines import Places
from spec.checking.verdict import kept_copies
from spec.devices.mesh import Axes
from spec.language.schedule import Schedule
from spec.meaning.semantics import Store, execute, initial
from spec.models.states import BytePolicy
from spec.numbers.arithmetic import Number

At = tuple[int, int]  # a step, and an operation of it


def stepped(schedule: Schedule, domain: Any, store: Store, micro_steps: int, step: int) -> Iterator[At]:
    """The operations of a step, each executed over a domain."""
    domain.step, domain.updated = step, False
    for index, (micro_step, op) in enumerate(schedule.flat(micro_steps)):
        domain.micro_step, domain.op_index, domain.op = micro_step, index, op
        execute(op, schedule, domain, store, micro_step)
        yield step, index
    domain.op_index, domain.op, domain.updated = -1, None, True


class PlacesOfARun(Places):
    """`starts`: what places hold at first, by `lines.STARTS`. `kept_as`: what is compared after every
    step, likewise; `kept_axes`: along which axes it is cut.
    """

    def __init__(
        self, schedule: Schedule, mesh: Mapping[str, Number], micro_steps: int, policy: BytePolicy
    ) -> None:
        super().__init__(schedule, mesh, micro_steps, policy)
        self.policy = policy
        self.starts: dict[int, str] = {}
        self.kept_as: dict[int, str] = {}
        self.kept_axes: dict[int, Axes] = {}

    def initial(self) -> Store:
        """The store before the first step."""
        return initial(self.schedule, self, self._started("Weights"), self._started("Moments"))

    def _started(self, start: str) -> int:
        place = self._place()
        self.starts[place] = start
        return place

    def end_step(self, store: Store) -> None:
        """Copy what is kept to where it is compared after every step."""
        kept = kept_copies(self, store, self.schedule, self.policy)
        if not self.kept_as:
            for state, kind, _ in kept:
                name = kind.capitalize()
                slices = self.schedule.rest(state).sharded
                place = self._place()
                self.kept_as[place] = f"{name}_slices" if slices else f"{name}s"
                self.kept_axes[place] = slices
        for place, (_, _, value) in zip(self.kept_as, kept, strict=True):
            self._write("copy", value, place)

    @property
    def keeps_weights(self) -> bool:
        """Whether there is a copy to continue from."""
        return any(name.startswith("Weight") for name in self.kept_as.values())
