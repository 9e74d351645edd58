"""Formulas of the placement space as text, and when one class dominates another, in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from spec.choosing.regimes import Regime
from spec.choosing.space import WIDTHS, ClosedForm, CostForm

Factor = Mapping[tuple[bool, bool], int]  # coefficients by (times m, over N)
MANY = 10**6


def sum_text(form: ClosedForm) -> str:
    """A formula: "K/N + w"."""
    words = [
        f"{'' if n == 1 else n}{'m' if term.repeated else ''} {term.width}".strip()
        + ("/N" if term.sliced else "")
        for term, n in sorted(form.terms, key=lambda item: WIDTHS.index(item[0].width))
    ]
    return " + ".join(words) or "0"


def unless(rival: CostForm, mine: CostForm, regime: Regime) -> str:
    """When a rival dominates: the inequalities that do not always hold."""
    pairs = [(rival.resting, mine.resting), (rival.sent, mine.sent), (rival.host, mine.host)]
    compared = [_Comparison(a, b, regime) for a, b in pairs if a != b]
    open_ = [c for c in compared if not c.always]
    texts = list(dict.fromkeys(c.text("<=") for c in open_))
    if any(c.strictly for c in compared):
        return " and ".join(texts)
    return open_[0].text("<") if len(texts) == 1 else " and ".join(texts) + ", not all equal"


class _Comparison:
    """That one formula is at most another: what has one sign at all sizes goes to its side."""

    def __init__(self, less: ClosedForm, more: ClosedForm, regime: Regime) -> None:
        factors: dict[str, dict[tuple[bool, bool], int]] = {width: {} for width in WIDTHS}
        for form, sign in ((more, 1), (less, -1)):
            for term, n in form.terms:
                factor, key = factors[term.width], (term.repeated, term.sliced)
                factor[key] = factor.get(key, 0) + sign * n
        self.sliced = any(n and over for f in factors.values() for (_, over), n in f.items())
        steps = (2, MANY) if regime.several else (1,)
        self.left, self.right, lowest = [], [], []
        for width, factor in factors.items():
            # linear in m and in 1/N: the extremes are at the corners
            corners = [_value(factor, n, m) for n, m in product((2, MANY), steps)]
            lowest.append(min(corners))
            if max(corners) > 0:
                self.right.append(self._product(width, factor, 1))
            elif min(corners) < 0:
                self.left.append(self._product(width, factor, -1))
        self.always = not self.left and min(lowest) >= 0
        self.strictly = self.always and max(lowest) > 0

    def text(self, relation: str) -> str:
        """Such as "K (N - 1) <= w N"."""
        return f"{' + '.join(self.left) or '0'} {relation} {' + '.join(self.right) or '0'}"

    def _product(self, width: str, factor: Factor, sign: int) -> str:
        parts = []
        for (repeated, over), n in sorted(factor.items(), reverse=True):
            letters = f"{'m' if repeated else ''}{'N' if self.sliced and not over else ''}"
            if n:
                parts.append((sign * n, letters))
        parts.sort(key=lambda part: (part[0] < 0, -len(part[1])))
        words = ""
        for n, letters in parts:
            size = f"{abs(n)}{letters}" if abs(n) != 1 or not letters else letters
            words += (" - " if n < 0 else " + " if words else "") + size
        if words == "1":
            return width
        return f"({words}) {width}" if len(parts) > 1 else f"{words} {width}"


def _value(factor: Factor, devices: int, micro_steps: int) -> float:
    return sum(
        n * (micro_steps if repeated else 1) / (devices if over else 1)
        for (repeated, over), n in factor.items()
    )
