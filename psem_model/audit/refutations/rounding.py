"""E8: floating-point sums in another order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from psem_model.audit.refutations.noted import BitForBit, Noted
from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.audit.refutations.two_devices import APPLIES, DP, is_right, run


@refutes("E8", "sums_depend_on_their_order")
def floating_point_sums_in_another_order(values: Values) -> Shown:
    g, zeros, notes = float(values["g"]), [[0.0], [0.0]], BitForBit(0.0)
    order = [[1.0], [g]], [[0.0], [g]]  # the first device's second sample adds exactly nothing
    ran = run(DP, [[(zeros, offsets) for offsets in order]], notes)
    found = ran.divergence
    last_bit = found is not None and abs(found.has - found.single) == np.spacing(1.0)
    exactly = [[([[0], [0]], [[Fraction(x)] for (x,) in offsets]) for offsets in order]]
    return Shown(
        ran.messages,
        {
            "it diverges in the last bit": last_bit,
            APPLIES: notes.applied == [[[1.0 + (g + g)]] * 2] and notes.whole == [[[1.0 + g + g]]],
            "in fractions it matches, and is accepted": is_right(DP, exactly, Noted(Fraction(0))),
        },
    )
