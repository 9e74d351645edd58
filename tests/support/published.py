"""Published numbers as parameters of tests."""

from __future__ import annotations

import pytest

from psem_model.published.entries import published

EVERY = published()


def entries(*prefixes):
    found = [e for e in EVERY if e.id.startswith(prefixes)]
    assert found
    return pytest.mark.parametrize("entry", found, ids=[e.id for e in found])
