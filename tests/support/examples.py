"""How many examples a property draws."""

from __future__ import annotations

from hypothesis import settings

WHOLE = 100  # of a hundred; a quick run draws fewer


def examples(count: int) -> settings:
    """Settings that draw `count` examples, or, in a quick run, the same part of them as everywhere."""
    return settings(max_examples=-(-count * settings.default.max_examples // WHOLE))
