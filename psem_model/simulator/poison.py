"""What a device's memory holds where nothing is known of it: random numbers, others at each read."""

from __future__ import annotations

import numpy as np

from psem_model.simulator.arithmetic import PRIME, Arithmetic, Array


class Poison:
    """A run's source of what is not known. `drawn`: how many numbers the run has read of it.

    What never reads any is right whatever the memory holds; another seed is another memory.
    """

    def __init__(self, seed: int, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.drawn = arithmetic, 0
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> Array:
        """Numbers of which nothing is known."""
        found = self._random.integers(1, PRIME, shape).astype(self.arithmetic.dtype)
        self.drawn += found.size
        return found
