"""M8: how many times less memory ZeRO-3 rests in depends on the number of devices."""

from __future__ import annotations

from fractions import Fraction

from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.audit.refutations.two_devices import DP, ZERO3
from psem_model.simulator import Run, simulate
from spec.language.schedule import Schedule
from spec.models.states import custom_policy
from spec.plans.placement import BATCH


@refutes("M8", "not_eight_times_less")
def zero3_on_that_many_devices_does_not_rest_in_an_eighth(values: Values) -> Shown:
    n, policy = int(values["n"]), custom_policy(Fraction(2), Fraction(2), values["k"])

    def on(schedule: Schedule, devices: int) -> Run:
        # a number of parameters that the devices divide
        psi = values["psi"] * values["psi"].denominator * devices
        return simulate(schedule, {BATCH: devices}, int(psi), policy=policy)

    def is_an_eighth(sharded: Run, whole: Run) -> bool:
        return bool(8 * sum(sharded.resting.values()) == sum(whole.resting.values()))

    sharded, whole = on(ZERO3, n), on(DP, n)
    return Shown(
        sharded.messages + whole.messages,
        {
            "it is of a whole number of devices": n == values["n"],
            "ZeRO-3 does not rest in an eighth there": not is_an_eighth(sharded, whole),
            "it does on 8 devices": is_an_eighth(on(ZERO3, 8), on(DP, 8)),
        },
    )
