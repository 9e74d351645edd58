"""E4 and E7: each condition fails alone, and the schedule alone does not decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psem_model.audit.refutations.noted import Noted
from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.audit.refutations.two_devices import (
    APPLIES,
    DIVERGES,
    DP,
    READS,
    REJECTED,
    TWIN,
    ZERO1,
    early_view,
    fault,
    is_right,
    moved_first,
    run,
    sample,
    scaled,
)
from spec.language.schedule import Kind
from spec.plans.placement import BATCH


@refutes("E4", "whole_sums_of_stale_gradients")
def whole_sums_of_gradients_at_stale_parameters(values: Values) -> Shown:
    notes, steps, stale = Noted(values["seen"]), moved_first(values), early_view(BATCH)
    ran = run(stale, steps, notes)
    return Shown(
        ran.messages,
        {
            DIVERGES: ran.divergence is not None and ran.divergence.step == 1,
            REJECTED: fault(stale) == "fresh",
            READS: notes.seen[1] == [[values["start"]], [values["seen"]]],
            APPLIES: notes.applied[1] == [[values["applied"]]] * 2,
            TWIN: is_right(early_view(), steps, Noted(values["seen"])),
        },
    )


@refutes("E4", "whole_sums_applied_on_one_device_only")
def an_update_on_one_device_that_is_not_published(values: Values) -> Shown:
    wrong = replace(ZERO1, finish=tuple(o for o in ZERO1.finish if o.kind is not Kind.ALL_GATHER))
    notes, steps = Noted(values["start"]), [sample(**values)]
    ran = run(wrong, steps, notes)
    found = ran.divergence
    one_only = found is not None and (found.place.device, found.has) == ((1,), values["start"])
    return Shown(
        ran.messages,
        {
            "the second device keeps the parameter that it had": one_only,
            REJECTED: fault(wrong) == "agreed",
            READS: notes.seen == [[[values["start"]]] * 2],
            APPLIES: notes.applied[0][0] == notes.whole[0][0] == [values["applied"]],
            TWIN: is_right(ZERO1, steps, Noted(values["start"])),
        },
    )


@refutes("E4", "fresh_equal_copies_of_a_wrong_sum")
def equal_copies_that_apply_a_wrong_sum(values: Values) -> Shown:
    whole = sum(values[f"slope{d}"] * values["start"] + values[f"offset{d}"] for d in (0, 1))
    wrong, steps, notes = scaled(values["applied"] / whole), [sample(**values)], Noted(values["start"])
    ran = run(wrong, steps, notes)
    return Shown(
        ran.messages,
        {
            DIVERGES: not ran.matches,
            REJECTED: fault(wrong) == "whole",
            READS: notes.seen == [[[values["start"]]] * 2],
            APPLIES: notes.applied == [[[values["applied"]]] * 2] and notes.whole == [[[whole]]],
            TWIN: is_right(scaled(1), steps, Noted(values["start"])),
        },
    )


@refutes("E7", "consistent_from_another_start")
def the_same_accepted_schedule_from_another_start(values: Values) -> Shown:
    notes, steps = Noted(values["start"]), [sample(**values)]
    ran = run(DP, steps, notes, begin=lambda row: np.full_like(row, values["copy"]))
    return Shown(
        ran.messages,
        {
            DIVERGES: not ran.matches,
            READS: notes.seen == [[[values["copy"]]] * 2],
            APPLIES: notes.applied == [[[values["applied"]]] * 2],
            "from the same start it matches, and is accepted": is_right(
                DP, steps, Noted(values["start"])
            ),
        },
    )
