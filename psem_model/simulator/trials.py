"""Devices that train, beside a single device that does the same steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from psem_model.simulator.arithmetic import Arithmetic
from spec.meaning.match import Copies, Divergence, first_difference


class Trial(ABC):
    """Devices and a single device, step by step.

    `divergence`: the first, if what they keep differs after a step. `told`: called when some work of
    the devices is done.
    """

    def __init__(self, numbers: Arithmetic) -> None:
        self.numbers, self.steps = numbers, 0
        self.divergence: Divergence | None = None
        self.told: Callable[[], None] = lambda: None

    def step(self) -> None:
        """One step of the devices, of which what is sent is counted, and of the single device."""
        self.train()
        self.steps += 1
        self.divergence = self.divergence or first_difference(self.beside(), self.numbers.unequal)

    @abstractmethod
    def train(self) -> None:
        """The step, of both."""

    @abstractmethod
    def beside(self) -> Iterator[Copies]:
        """What the devices keep after the last step, beside the single device's."""
