"""Models' steps as files."""

from __future__ import annotations

from psem_model.predict.programs import step as derived
from psem_model.reading.products import parse


def text_of(strategy, block="llama", recompute=None, hold=False, clip=False):
    found = parse(strategy)
    return derived(found, hold, block, "ep" in strategy.split(" * "), recompute, clip)
