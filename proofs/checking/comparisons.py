"""T4: on any number of axes, the checker's comparisons of normal forms take the place of those of amounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.form_needs import FormNeeds
from proofs.checking.matching import Read, Where
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.symbols import MOMENT, WEIGHT, ZERO, indicator
from proofs.claim import claim
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import occurs
from proofs.trusted.terms import And, If, Implies, IntVal, Not


class Comparisons(FormNeeds):
    """What the checker compares by place, all devices have."""

    def _as_forms(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """The comparison of the form of value s, as device d and device i are to element j."""
        l = self.l
        on = l.on_device(l.d)
        q = l.mesh.sources(FALSE, l.d, l.i, l.j)
        return self.as_needed(t, b, l.s, on["f"], on["p"], q, state, u)

    def _known(self) -> Theorem:
        """Where a form compares equal, nothing that is not known is there."""
        l, k, t, b, d, i, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.i, self.l.j
        ...

    def as_amounts(self, name: str, t: Any, b: Any, state: Any, u: Any) -> Theorem:
        """Where a form compares equal the amounts do."""
        ...
