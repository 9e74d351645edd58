"""Published values of training states and their collectives: what predicts each."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP
from fractions import Fraction
from functools import cache
from typing import Any

import sympy

from psem_model.predict.closed import Closed, closed_form
from psem_model.predict.states import Prediction, predict
from psem_model.published.entries import SYMBOLS, Entry, Reproduced, compared, form, rounded
from spec.costs.communication import elements_sent
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy
from spec.plans.strategies import STRATEGIES

PSI, N, K = (SYMBOLS[name] for name in ("Psi", "N", "K"))
ROUNDING = {"truncated": ROUND_DOWN}  # else half up


@cache
def closed(plan: str) -> Prediction:
    """A strategy's step of one micro-step in symbols, as if N divided Psi."""
    return closed_form(schedule_of(STRATEGIES[plan]), MIXED_ADAM, padded=False, micro_steps=1)


def of_each_parameter(plan: str, devices: int, policy: BytePolicy = MIXED_ADAM) -> Fraction:
    """Bytes of model states between steps, per parameter and device."""
    return Fraction(predict(plan, devices, devices, policy).total, devices)


# ------------------------------------------------------------------------------ training states
def bytes_at_rest(entry: Entry) -> Reproduced:
    """GB of model states between steps, on one device."""
    psi, devices = int(entry.inputs["psi"]), entry.inputs["N"]
    gigabytes = Fraction(predict(entry.plan, psi, devices).total, 10**9)
    rounding = ROUNDING.get(entry.rounding, ROUND_HALF_UP)
    return Reproduced(gigabytes, entry.rounds_to(gigabytes, rounding))


def largest_model(entry: Entry) -> Reproduced:
    """Parameters, in 1e9, that fit; with MP devices for a model, MP times what is printed for one."""
    memory, devices, mp = (entry.inputs[name] for name in ("GB of a device", "N", "devices of a model"))
    one = memory / of_each_parameter(entry.plan, devices)
    whole = Fraction(mp * rounded(one, 0.1, ROUND_HALF_UP)) / entry.printed_in
    printed = entry.printed_in * rounded(whole, 0.1, ROUND_HALF_UP)
    return Reproduced(one if mp == 1 else whole * entry.printed_in, printed == entry.printed)


def memory_ratio(entry: Entry) -> Reproduced:
    """How many times as much data parallelism holds."""
    ratio = closed("dp").total / closed(entry.plan).total
    at = sympy.oo if entry.inputs["N"] == "inf" else entry.inputs["N"]
    found = sympy.limit(ratio.subs(K, entry.inputs["K"]), N, at)
    return compared(entry, found)


def bytes_per_parameter(entry: Entry) -> Reproduced:
    """Bytes of model states between steps, per parameter."""
    found = of_each_parameter(entry.plan, entry.inputs.get("d", 1), POLICIES[entry.policy])
    return Reproduced(found, found == Fraction(entry.value))


def passes_over_parameters(entry: Entry) -> Reproduced:
    """Elements sent in a step, in Psi, without the (N - 1)/N."""
    passes = sympy.simplify(closed(entry.plan).elements / (PSI * (N - 1) / N))
    return compared(entry, passes)


def traffic_ratio(entry: Entry) -> Reproduced:
    """How many times as much as data parallelism it sends."""
    ratio = sympy.simplify(closed(entry.plan).elements / closed("dp").elements)
    return compared(entry, ratio)


# ---------------------------------------------------------------------------------- collectives
def factor(entry: Entry, found: Any) -> Reproduced:
    """What is sent of a value, for the devices of an entry."""
    return compared(entry, sympy.simplify(found.subs(N, form(str(entry.inputs["n"])))))


def sent_by_collective(entry: Entry) -> Reproduced:
    """What a device sends of a value, in a collective of a strategy's step."""
    moves = closed(entry.plan).moves
    (sent,) = (move.elements for move in moves if move.op.kind.value == entry.collective)
    return factor(entry, sent / PSI)


def sent_by_chain(entry: Entry) -> Reproduced:
    """What a device sends of a value in a broadcast; a reduce has every message the other way."""
    op = Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.PARAMETERS, axes=("batch",))
    n = entry.inputs["n"]
    devices = 2 + sympy.Symbol("more", nonnegative=True) if n == "n" else sympy.Integer(n)
    sizes = Sizes(PSI, {"batch": devices}, MIXED_ADAM, None, Closed(padded=False))
    sent = elements_sent(op, schedule_of(STRATEGIES["dp"]), sizes)  # no strategy broadcasts
    return factor(entry, sent / PSI)
