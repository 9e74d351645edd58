"""docs/CONFORMANCE.md is what was recorded, beside what psem derives."""

import pytest

from conformance.page import page
from proofs.registry import ROOT


@pytest.mark.slow
def test_the_page_is_generated_from_what_was_recorded():
    assert (ROOT / "docs" / "CONFORMANCE.md").read_text() == page()
