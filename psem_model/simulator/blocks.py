"""Programs, executed: a part of a model on a mesh of devices, each with its own slices and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from psem_model.simulator.arithmetic import Number
from psem_model.simulator.lines import Devices, Lines, Values, there
from psem_model.simulator.slices import Slices
from psem_model.simulator.tables import Moment
from spec.language.programs import Program
from spec.models.values import Value

EMPTY: set[Value] = set()


class Block:
    """One part: an embedding, one of the layers, or a head.

    `fullest`: bytes that each device computes with at the fullest moment of forward or backward, beside
    weights, what is kept between the two or takes its place, and gradients.
    """

    def __init__(self, program: Program, layer: int, devices: Devices) -> None:
        self.program, self.layer, self.devices = program, layer, devices
        self.apart = {*program.part.weights, *program.kept, *program.gradients.values()}
        self.apart |= program.overwriting
        self.fullest: Number = 0

    @property
    def name(self) -> str:
        return self.program.part.name

    def forward(
        self, weights: Mapping[Value, Slices], takes: Slices | None, moment: Moment
    ) -> tuple[Slices, Values]:
        """What the part gives, and what is kept for backward: nothing but that."""
        has = dict(weights)
        if self.program.part.takes and takes:
            has[self.program.part.takes] = takes
        every = range(len(self.program.forward))
        self.run("forward", every, has, moment, (*self.program.kept, self.program.gives))
        kept = {value: there(value, "backward", has) for value in self.program.kept}
        return there(self.program.gives, "what follows", has), kept

    def backward(
        self, weights: Mapping[Value, Slices], kept: Values, cotangent: Slices, moment: Moment
    ) -> tuple[Values, Slices | None, Values]:
        """Gradients of weights, from what was kept, and the cotangent of what the part takes.

        And what is held for those that wait: all there is of a second part.
        """
        program = self.program
        has, returns = {**weights, **kept, program.seed: cotangent}, program.returns
        first, _ = program.parts_of_backward
        leaves = (*([returns] if returns else []), *program.held_between)
        gradients = self.gradients(range(len(first)), has, moment, leaves)
        held = {value: there(value, "what waits", has) for value in program.held_between}
        return gradients, there(returns, "what comes before", has) if returns else None, held

    def second_part(self, held: Values, moment: Moment) -> Values:
        """The gradients that waited: nothing is there but what was held for them."""
        first, second = self.program.parts_of_backward
        lines = range(len(first), len(first) + len(second))
        return self.gradients(lines, dict(held), moment, (), {*held})

    def gradients(
        self,
        numbers: range,
        has: Values,
        moment: Moment,
        leaves: tuple[Value, ...],
        apart: set[Value] = EMPTY,
    ) -> Values:
        """Those that some lines of backward make."""
        made = {self.program.backward[number].makes for number in numbers}
        left = {weight: value for weight, value in self.program.gradients.items() if value in made}
        self.run("backward", numbers, has, moment, (*left.values(), *leaves), apart)
        return {weight: there(value, "the update", has) for weight, value in left.items()}

    def over_host_link(self, kept: Values, offload: bool) -> Values:
        """What is kept, each array on the other side of its device's link to the host."""
        network, found, way = self.devices.network, {}, "offload" if offload else "fetch"
        for number, (value, slices) in enumerate(kept.items()):
            if value in self.program.stored:
                network.serve((f"{self.name} {way}", number), width=slices.width)
                network.to_host(slices.elements)
            found[value] = replace(slices, array=slices.array.copy())
        return found

    def bytes_kept(self, kept: Values) -> Number:
        """Bytes on each device of what is kept in room of its own."""
        return sum(kept[value].bytes for value in self.program.stored)

    def bytes_held(self, held: Values) -> Number:
        """Bytes on each device of what is held between two parts of backward, likewise."""
        return sum(held[value].bytes for value in self.program.stored_between)

    def run(
        self,
        phase: str,
        numbers: range,
        has: Values,
        moment: Moment,
        leaves: tuple[Value, ...],
        apart: set[Value] = EMPTY,
    ) -> None:
        """Execute lines of a phase on what the devices have; only what it leaves stays after its use.

        What is `apart` is counted elsewhere.
        """
        lines = Lines(self.program, self.layer, self.devices, phase, has, moment, self.apart | apart)
        lines.execute(numbers, leaves)
        self.fullest = max(self.fullest, lines.fullest)
