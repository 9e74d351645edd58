"""Published values of training states and collectives: what predicts each."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP
from fractions import Fraction
from typing import Any

import sympy

from psem_model.predict.symbolic import Closed
from psem_model.published.entries import (
    SYMBOLS,
    Entry,
    Reproduced,
    form,
    gpt,
    predicted,
    resting,
    rounded,
    same,
)
from spec.communication import elements_sent
from spec.derive import derive
from spec.memory import Sizes
from spec.schedule import Buffer, Kind, Op, Phase
from spec.states import MIXED_ADAM
from spec.strategies import STRATEGIES

PSI, N, K = (SYMBOLS[name] for name in ("Psi", "N", "K"))
# ------------------------------------------------------------------------------ training states
STAGES = {"dp": "dp", "os": "zero1", "os+g": "zero2", "os+g+p": "zero3"}
BASELINES = {"DP all-reduce": "dp", "ZeRO-3 baseline": "zero3"}
MEGATRON = {"20": "mixed-adam-fp32-copy", "18": "mixed-adam-fp32-gradients", "16": "fp32-adam"}


def stage(entry: Entry) -> str:
    """The strategy that a source names."""
    return BASELINES.get(entry.strategy) or STAGES[entry.strategy.split()[1]]


def _memory(entry: Entry) -> Reproduced:
    # the 7.5B column rounds half up; the 1T column is truncated, as its 4187(.5) and 15.6(25) show
    psi, devices = entry.inputs["psi"], entry.inputs["N"]
    gigabytes = resting(stage(entry), psi=repr(psi), devices=devices) / 10**9
    rounding = ROUND_DOWN if psi == 1e12 else ROUND_HALF_UP
    return Reproduced(gigabytes, entry.rounds_to(gigabytes, rounding))


def largest_model(strategy: str) -> Fraction:
    """Parameters, in 1e9, that fit 32 GB on 64 devices."""
    return Fraction(32) / (resting(strategy, psi=64, devices=64) / 64)


def _largest(entry: Entry) -> Reproduced:
    # rows of model parallelism are MP times the ROUNDED value of one device; 512B is printed 0.5T
    one, mp = largest_model(stage(entry)), entry.inputs["mp"]
    value = mp * rounded(one, 0.1, ROUND_HALF_UP)
    return Reproduced(mp * one, value == entry.printed or (value, entry.value) == (512, 500))


def _divisible(strategy: str, *keys: str) -> Any:
    """A closed form of one micro-step, as if N divided Psi."""
    found = predicted(strategy, psi=64, devices=64, divisible=None)["formulas"]
    return sum(form(found[key], m=1) for key in keys)


def _passes(entry: Entry) -> Reproduced:
    passes = sympy.simplify(_divisible(stage(entry), "elements") / (PSI * (N - 1) / N))
    return Reproduced(passes, same(passes, entry.value))


def _ratio(entry: Entry) -> Reproduced:
    ratio = sympy.simplify(_divisible("zero3", "elements") / _divisible("dp", "elements"))
    return Reproduced(ratio, same(ratio, sympy.Rational(entry.value)))


def _reduction(entry: Entry) -> Reproduced:
    ratio = _divisible("dp", "resting") / _divisible(stage(entry), "resting")
    at = sympy.oo if entry.inputs["N"] == "inf" else entry.inputs["N"]
    found = sympy.limit(ratio.subs(K, entry.inputs["K"]), N, at)
    return Reproduced(found, same(found, entry.value))


def _per_parameter(entry: Entry) -> Reproduced:
    devices = entry.inputs.get("dp")
    strategy, policy = "zero1" if devices else "dp", MEGATRON[entry.id.split(".")[2]]
    found = resting(strategy, psi=6400, devices=devices or 1, bytes=policy) / 6400
    return Reproduced(found, found == Fraction(entry.value))


# ---------------------------------------------------------------------------------- collectives
SENT_BY = {"all_reduce": "dp", "all_gather": "zero1", "reduce_scatter": "zero1"}
NCCL = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}


def _bus_factor(entry: Entry) -> Reproduced:
    found = predicted(SENT_BY[NCCL[entry.strategy]], psi=64, devices=64, divisible=None)
    operations = found["communication"]["operations"]
    (sent,) = (o["formula"] for o in operations if o["operation"] == NCCL[entry.strategy])
    return _factor(entry, form(sent) / PSI)


def _factor(entry: Entry, found: Any) -> Reproduced:
    """What is sent of a value, for the devices of an entry."""
    factor = sympy.simplify(found.subs(N, form(str(entry.inputs["n"]))))
    return Reproduced(factor, same(factor, form(str(entry.value))))


def _exchanged(entry: Entry) -> Reproduced:
    sent, own = one_all_to_all()
    return _factor(entry, (sent / own).subs(SYMBOLS["c"], N))


def one_all_to_all() -> tuple[Any, Any]:
    """What a device sends of a layer's queries, and how much of them it has."""
    found = gpt("cp-all-to-all", 8)
    moves = found["parts"]["layer"]["moves"]
    times = [move["phase"] for move in moves if move["operation"] == "all_to_all"].count("forward")
    b, s, h, c = (SYMBOLS[name] for name in "bshc")
    return form(found["formulas"]["layer"]["forward"]) / times, b * s * h / c


def _chain(entry: Entry) -> Reproduced:
    op = Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.PARAMETERS, axes=("batch",))
    n = entry.inputs["n"]
    devices = 2 + sympy.Symbol("more", nonnegative=True) if n == "n" else sympy.Integer(n)
    sizes = Sizes(PSI, {"batch": devices}, MIXED_ADAM, None, Closed(padded=False))
    factor = elements_sent(op, derive(STRATEGIES["dp"]), sizes) / PSI  # no strategy broadcasts
    return Reproduced(factor, same(factor, form(str(entry.value))))


RULES = {  # by how an entry's name begins
    "zero.fig1": _memory,
    "zero.table1": _memory,
    "zero.table2": _largest,
    "zero.comm.dp": _passes,
    "zero.comm.os": _passes,
    "zpp.base": _passes,
    "zero.comm.ratio": _ratio,
    "zero.reduction": _reduction,
    "megatron.distopt": _per_parameter,
    "nccl.factor": _bus_factor,
    "nccl.factor.AlltoAll": _exchanged,
    "nccl.factor.Broadcast": _chain,
    "nccl.factor.Reduce": _chain,  # a broadcast with every message the other way
    "nccl.factor.ReduceScatter": _bus_factor,
}
