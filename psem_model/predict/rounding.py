"""What a plan's types round on the way."""

from __future__ import annotations

from psem_model.predict.plan import Plan
from psem_model.predict.said import one
from spec.numbers.arithmetic import Number


def rounded(plan: Plan) -> tuple[tuple[str, Number, Number], ...]:
    """What its step rounds, each once, and from how many bytes to how many."""
    named = ((f"{r.what} of {one(r.of[0])}" if r.group is None else r.what, r) for r in plan.rounding)
    return tuple(dict.fromkeys((what, r.has, r.to) for what, r in named))


def data(plan: Plan) -> list[dict[str, str | float]]:
    """The same for a program."""
    return [{"what": what, "from": float(has), "to": float(to)} for what, has, to in rounded(plan)]


def in_words(plan: Plan) -> list[str]:
    """The same, what is rounded alike together."""
    alike: dict[tuple[Number, Number], list[str]] = {}
    for what, has, to in rounded(plan):
        alike.setdefault((has, to), []).append(what)
    return [f"from {float(a):g} bytes to {float(b):g}: {'; '.join(of)}" for (a, b), of in alike.items()]
