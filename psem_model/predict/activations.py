"""What a device of a pipeline's stage keeps for backward, at its fullest moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from psem_model.predict.parts import PartCosts
from spec.costs.model_costs import Numbers, given_bytes, numbers_of
from spec.derivation.programs import NOTHING, PAIRS
from spec.models.parts import Model
from spec.models.profiles import Profile, Samples
from spec.models.transformer import Transformer, is_layer
from spec.numbers.arithmetic import Number
from spec.pipelines.idle_and_held import (
    fullest,
    fullest_in_order,
    fullest_in_two_parts,
    in_flight,
    waiting_beside,
)
from spec.pipelines.pipeline import Pipeline
from spec.pipelines.stages import before_layers, layers_of_chunk


@dataclass(frozen=True)
class Activations:
    """Those of a stage: `chunks` of so many of each part. `place`: of the device along each axis.

    `again`: what layers make again for it.
    """

    costs: Mapping[str, PartCosts]
    chunks: Sequence[Mapping[str, int]]
    model: Model
    pipe: Pipeline
    number: int
    profile: Profile
    place: Mapping[str, int]
    again: str

    @property
    def in_flight(self) -> Number:
        """Micro-batches, each of one chunk, whose activations are kept at the fullest moment."""
        return in_flight(self.pipe, self.number)

    @property
    def waiting(self) -> Number:
        """Those beside them that wait for the second part of their backward."""
        return waiting_beside(self.pipe, self.number)

    def kept(self, *names: str) -> Number:
        """Bytes that parts keep for backward, at their fullest moment.

        Of some parts; all, if none is named.
        """
        sizes = self._of_chunks(*names)
        return self._fullest(sizes, [0 for _ in sizes], *names)

    def with_numbers(self, model: Transformer, width: Number, offload: bool) -> Number:
        """That of all parts, where they are not on the host, and numbers of samples."""
        of_parts = [0 for _ in self.chunks] if offload else self._of_chunks()
        numbers = [self._numbers(chunk, model, width) for chunk in range(len(self.chunks))]
        if self.profile.samples is not Samples.STEP:
            return self._fullest(of_parts, [each.places + each.tokens for each in numbers])
        of_step = [self.pipe.micro_batches * each.tokens for each in numbers]
        places = [each.places for each in numbers]
        if len(self.chunks) == 1:
            return of_step[0] + self._fullest(of_parts, places)
        return self._fullest(of_parts, places, once=of_step)

    def _numbers(self, chunk: int, model: Transformer, width: Number) -> Numbers:
        """Those of the parts of a chunk, which are of the same sizes, on the same mesh."""
        programs = [each.program for name, each in self.costs.items() if self.chunks[chunk][name]]
        of, numbers = next(iter(self.costs.values())), self._layers(chunk)
        found = numbers_of(programs, model, of.indices, of.mesh, width, model.sets_of_angles(*numbers))
        layer = next((program for program in programs if is_layer(program.part.name)), None)
        if layer is None or not keeps_given(self.profile, self.again):
            return found
        is_kernel = self.profile.has_kernel
        windows = (
            model.windows_of(*numbers) if self.profile.masks or not is_kernel else frozenset[Number]()
        )
        how = width, windows, is_kernel
        given = given_bytes(layer, model, of.indices, of.mesh, *how)
        return replace(found, places=found.places + given)

    def _layers(self, chunk: int) -> tuple[int, int]:
        """The first layer of a chunk, and the first one after it."""
        return layers_of_chunk(self.model, self.number, chunk, self.pipe)

    def _fullest(
        self,
        sizes: Sequence[Number],
        beside: Sequence[Number],
        *names: str,
        once: Sequence[Number] = (),
    ) -> Number:
        """The most that is kept at once of what each chunk keeps of a micro-batch, and beside it.

        `once`: what a chunk keeps as long as it keeps anything.
        """
        of_chunks = [size + more for size, more in zip(sizes, beside, strict=True)]
        if not self.pipe.in_two_parts and once:
            nothing = [0 for _ in of_chunks]
            return fullest_in_order(self.pipe, self.number, of_chunks, nothing, of_chunks, once)
        if not self.pipe.in_two_parts:
            return fullest(self.pipe, self.number, of_chunks)
        halfway = zip(self._halfway(*names), beside, strict=True)
        waiting, passing = zip(
            *([size + more for size in sizes] for sizes, more in halfway), strict=True
        )
        if self.pipe.is_folded:
            return fullest_in_order(self.pipe, self.number, of_chunks, waiting, passing, once)
        return fullest_in_two_parts(self.pipe, self.number, *of_chunks, *waiting, *passing)

    def _of_chunks(self, *names: str) -> list[Number]:
        """Bytes that some parts of each chunk keep of a micro-batch; all, if none is named."""
        kept = {name: self.costs[name].kept(self.profile, self.place) for name in self._some(*names)}
        return [sum(chunk[name] * size for name, size in kept.items()) for chunk in self.chunks]

    def _some(self, *names: str) -> list[str]:
        return [name for name in names or self.costs if name in self.costs]

    def _halfway(self, *names: str) -> list[tuple[Number, Number]]:
        """Of each chunk, bytes kept of a micro-batch after the first part of its backward, and at most
        during it.

        Backward goes from the last part to the first, and what each keeps becomes what waits.
        """
        found, of = [], (self.profile, self.place)
        for number, (size, chunk) in enumerate(zip(self._of_chunks(*names), self.chunks, strict=True)):
            costs = {name: self.costs[name] for name in self._some(*names) if chunk[name]}
            more = {name: each.waiting(*of) - each.kept(*of) for name, each in costs.items()}
            backward = _backward(more, chunk, self.model, self._layers(number))
            changes = [0, *accumulate(count * more[name] for name, count in backward)]
            found.append((size + changes[-1], size + max(changes)))
        return found


def keeps_given(profile: Profile, again: str) -> bool:
    """Whether what layers are given is kept: something is made again of it, and in no kernel."""
    return profile.keeps_given and again not in ({NOTHING, PAIRS} if profile.has_kernel else {NOTHING})


def _backward(
    more: dict[str, Number], chunk: Mapping[str, int], model: Model, numbers: tuple[int, int]
) -> Iterator[tuple[str, int]]:
    """The parts of a chunk from the last on, and how many in a row; layers of one sign in any order."""
    layers = {name: size for name, size in more.items() if is_layer(name)}
    first_ones = [part.name for part in before_layers(model)]
    yield from ((name, 1) for name in reversed(more) if name not in (*layers, *first_ones))
    if min(layers.values(), default=0) < 0 < max(layers.values(), default=0):
        for number in reversed(range(*numbers)):
            yield from ((name, 1) for name in model.layers_of(number, number + 1) if name in layers)
    else:
        yield from ((name, chunk[name]) for name in layers)
    yield from ((name, 1) for name in reversed(more) if name in first_ones)
