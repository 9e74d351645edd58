"""M8: how many times less memory ZeRO-3 rests in depends on the number of devices."""

from __future__ import annotations

from fractions import Fraction

from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.audit.refutations.two_devices import DP, ZERO3
from psem_model.simulator import Run, simulate
from spec.placement import BATCH
from spec.states import custom_policy


@refutes("M8", "not_eight_times_less")
def zero3_on_that_many_devices_does_not_rest_in_an_eighth(values: Values) -> Shown:
    n, policy = int(values["n"]), custom_policy(Fraction(2), Fraction(2), values["k"])

    def runs_on(devices: int) -> tuple[Run, Run]:
        # a number of parameters that the devices divide
        psi = values["psi"] * values["psi"].denominator * devices
        both = (
            simulate(schedule, {BATCH: devices}, int(psi), policy=policy) for schedule in (DP, ZERO3)
        )
        whole, sharded = both
        return whole, sharded

    def is_an_eighth(whole: Run, sharded: Run) -> bool:
        return bool(sum(whole.resting.values()) == 8 * sum(sharded.resting.values()))

    found = runs_on(n)
    return Shown(
        sum(run.messages for run in found),
        {
            "it is of a whole number of devices": n == values["n"],
            "ZeRO-3 does not rest in an eighth there": not is_an_eighth(*found),
            "it does on 8 devices": is_an_eighth(*runs_on(8)),
        },
    )
