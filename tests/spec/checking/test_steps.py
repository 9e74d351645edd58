"""Parts of a step fit each other, and a layer itself."""

from dataclasses import replace

import pytest

from psem_model.predict.programs import step
from psem_model.reading.products import parse
from spec.checking.steps import check_step
from spec.devices.layouts import LayoutError


def test_a_layer_that_does_not_take_what_it_gives_is_rejected():
    """It may be there many times, though the part after it takes what it gives."""
    derived = step(parse("dp"), False, "llama", False, None)
    embedding, layer, head = derived.programs
    check_step(derived)
    renamed = replace(head, part=replace(head.part, name="last_layer"))
    with pytest.raises(LayoutError, match="last_layer does not take what it gives"):
        check_step(replace(derived, programs=(embedding, layer, renamed)))
