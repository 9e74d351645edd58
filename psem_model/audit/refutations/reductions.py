"""R4 and F5: functions of terms, and blocks of keys, reduced as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.simulator import Arithmetic
from psem_model.simulator.arithmetic import Array
from psem_model.simulator.layout import Cluster
from psem_model.simulator.network import Network, all_reduce
from spec.models.online_softmax import PartialResult, Reals, merge, of_block
from spec.plans.placement import BATCH

DEVICES = 2


def reduced(terms: Array, network: Network) -> Array:
    """Each device's row (devices, elements), after an all-reduce along the ring."""
    group = Cluster(((BATCH, DEVICES),)).group((BATCH,))
    network.serve(("finish", 0))
    padded = np.pad(terms, ((0, 0), (0, terms.shape[1] % DEVICES)))
    chunks = padded.reshape(1, DEVICES, DEVICES, -1)
    found = all_reduce(chunks, group, Arithmetic().add, network).reshape(padded.shape)
    return found[:, : terms.shape[1]]


@refutes("R4", "squares_of_terms", lambda x: x * x)
@refutes("R4", "rectified_terms", lambda x: np.maximum(x, 0))
@refutes("R4", "products_of_terms", lambda x: x[:, :1] * x[:, 1:])
def a_function_of_terms_reduces_to_another_value(
    values: Values, function: Callable[[Array], Array]
) -> Shown:
    network = Network(DEVICES)
    rows = [[v for name, v in values.items() if name.endswith(d)] for d in "01"]
    terms = np.array(rows, object)  # each device's
    whole = reduced(terms, network)
    of_terms = reduced(function(terms), network)
    return Shown(
        network.messages,
        {
            "the terms reduce to their sum": bool((whole == terms.sum(0)).all()),
            "the function of the terms reduces to another value than that of the sum": bool(
                (of_terms != function(whole)).any()
            ),
        },
    )


Scores = Sequence[int]
Sent = Callable[[PartialResult], list[Any]]


@refutes("F5", "sums_without_rescaling", [0], [1], lambda block: [block.total, block.weighted_sum])
@refutes("F5", "averages_of_outputs", [0], [0, 0], lambda block: [Fraction(1, 2), block.output / 2])
def blocks_of_keys_reduced_as_they_are(
    values: Values, first: Scores, second: Scores, sent: Sent
) -> Shown:
    reals, network = Reals(lambda power: values["base"] ** power, max), Network(DEVICES)
    keys = [[values["v0"]] * len(first), [values["v1"]] * len(second)]
    blocks = of_block(first, keys[0], reals), of_block(second, keys[1], reals)
    merged = merge(*blocks, reals).output
    together = of_block([*first, *second], [*keys[0], *keys[1]], reals).output
    total, weighted = reduced(np.array([sent(block) for block in blocks], object), network)[0]
    return Shown(
        network.messages,
        {
            "merged blocks give the output of all keys": merged == together,
            "reduced blocks give another": weighted / total != together,
        },
    )
