"""The opaque model: Psi parameters, and any function of them and of the samples.

Of its gradient one thing is known: it is the sum over the samples of what each contributes. So it is
partial along every axis that cuts samples, by the layout rule; nothing cuts its parameters, and what it
keeps for backward is not known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spec.models.values import Builder, Part, Role, Value
from spec.numbers.arithmetic import Number

MODEL = "model"
PARAMETERS = Value("parameters", ("p",), Role.WEIGHT)

Shapes = tuple[tuple[tuple[int, ...], ...], ...]  # of the weights of each layer


@dataclass(frozen=True)
class Opaque:
    """A model of `psi` parameters. `shapes`: of each layer those of its weights, if they are known."""

    psi: Number
    shapes: Shapes = ()
    layers = 0  # none that are told apart

    def layers_of(self, first: int, after: int) -> Counter[str]:
        """None."""
        return Counter()

    def sizes(self, micro_batch: Number, sequence: Number = 1) -> dict[str, Number]:
        """How many values each index has."""
        return {"p": self.psi, "b": micro_batch}


def opaque() -> Part:
    """Near its parameters, each sample's loss is linear in them; what is computed has no size."""
    part = Builder(MODEL)
    contributions = Value("contributions", ("b", "p"), Role.CONSTANT, 0)
    loss = Value("loss", ("b",), Role.STREAM, 0)
    return part.part(part.contract(PARAMETERS, contributions, loss))
