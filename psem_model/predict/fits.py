"""Whether a plan fits in the memory of a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from psem_model.reading import words
from psem_model.text.report import BYTES, Cell, Quantity, Row
from spec.numbers.arithmetic import Number

LEFT, OVER = "left", "over_by"  # keys: what a plan leaves of it, or by how much it is over it
WITHOUT = "without activations, which need --sequence"  # of plans of which no samples are known


@dataclass(frozen=True)
class Room:
    """The memory of a device, as it was typed, and its bytes."""

    text: str
    bytes: Number

    def beside(self, peak: Number) -> tuple[str, Quantity]:
        """What a plan with such a peak leaves, or by how much it is over it."""
        left = self.bytes - peak
        return (LEFT, Quantity(left, BYTES)) if left >= 0 else (OVER, Quantity(-left, BYTES))

    def said(self, key: str) -> str:
        """What is beside the peak, in words."""
        return f"left of {self.text}" if key == LEFT else f"over {self.text} by"


def room(given: str | None) -> Room | None:
    """What was typed of --memory. Raises BadInput."""
    return None if given is None else Room(given, words.memory("--memory", given))


def rows(of: Room, peaks: Iterable[Number], computes: bool) -> list[Row]:
    """A row for plans that fit, and one for those that do not. `computes`: activations are in them."""
    found = [of.beside(peak) for peak in peaks]
    made = []
    for key in (LEFT, OVER):
        if any(other == key for other, _ in found):
            cells: list[Cell] = [size if other == key else "" for other, size in found]
            said = of.said(key) + ("" if computes else f", {WITHOUT}")
            made.append(Row((said, *cells), marked=key == OVER))
    return made
