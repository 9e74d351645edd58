"""Widths of what is shown."""

import pytest

from psem_model.text import lines as text_lines


@pytest.fixture
def wide(monkeypatch):
    """wide(n): lines of n columns, as on a terminal."""
    return lambda columns: monkeypatch.setattr(text_lines, "PIPE", columns)
