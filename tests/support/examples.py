"""How many examples a property draws, and which cases a quick run has: as large a part of each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import settings

Case = TypeVar("Case")
WHOLE = 100  # of a hundred; a quick run draws fewer


def examples(count: int) -> settings:
    """Settings that draw `count` examples, or, in a quick run, the same part of them as everywhere."""
    return settings(max_examples=part(count))


def part(count: int) -> int:
    """`count`, or, in a quick run, the same part of it as of examples."""
    return -(-count * settings.default.max_examples // WHOLE)


def few(cases: Iterable[Case]) -> list[Case]:
    """All cases, or, in a quick run, as many of them as of examples, from the first to the last."""
    return [*cases][:: WHOLE // settings.default.max_examples]


def slow_but(quick: Iterable, cases: Iterable) -> list:
    """Cases for a parametrised test, slow but for some."""
    quick = [*quick]
    slow = partial(pytest.param, marks=pytest.mark.slow)
    apart = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*case) if case in quick or case[0] in quick else slow(*case) for case in apart]
