"""`python -m tests.support.mutated_rules.trial S1 C1`: the first claim that notices a changed rule.

It is run in a copy of the project that has the change.

A claim notices by a verdict that is not the expected one, or by a refusal of the kernel or of a rule of
the specification. By any other exception it could not be stated: that the program broke, not what is
wrong.
"""

import json
import re
import sys

from proofs.registry import broken_modules, prove, select
from spec.devices.layouts import Layout

REFUSALS = (
    *("LayoutError", "MisfitError", "OverlapError", "HoldError", "OverAllError"),
    *("NotCovered", "Undecided", "UserError"),
)
KIND = re.compile(r"(?:\w+ could not be stated: )?(\w+): ")  # of an exception, as a failure begins
NO_COLLECTIVE = f"KeyError: (<{Layout.__name__}"  # a pair of layouts is the key of a collective


def crashed(failure):
    """The kind of an exception that says nothing of what is wrong; empty if it does."""
    kind = KIND.match(failure)
    if not kind or not re.search(r"(Error|Exception|Covered|Undecided|Iteration)$", kind[1]):
        return ""
    return "" if kind[1] in REFUSALS or NO_COLLECTIVE in failure else kind[1]


def noticed(ids):
    """(claim, "") for the one that notices, or (what first could not be stated, by which exception)."""
    first = "", ""
    for broken in broken_modules():
        module, _, failure = broken.partition(" cannot be imported: ")
        if not crashed(failure):
            return module, ""
        first = first if any(first) else (module, crashed(failure))
    for id in () if any(first) else ids:
        (claim,) = select([id])
        result = prove(claim)
        if not result.as_expected:
            kind = crashed(result.failure)
            if not kind:
                return id, ""
            first = first if any(first) else (id, kind)
    return first


if __name__ == "__main__":
    print(json.dumps(noticed(sys.argv[1:])))
