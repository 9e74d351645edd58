"""Parts of a step fit each other, and a layer itself."""

from dataclasses import replace

import pytest

from psem_model.reading.products import parse
from spec.checking.steps import check_step
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.models.parts import parts
from spec.models.transformer import Transformer


def test_a_layer_that_does_not_take_what_it_gives_is_rejected():
    """It may be there many times, though the part after it takes what it gives."""
    derived = derive(parse("dp").product, parts(Transformer(2, 8, 2, 2, 4, 32, 20)))
    embedding, layer, head = derived.programs
    check_step(derived)
    renamed = replace(head, part=replace(head.part, name="last_layer"))
    with pytest.raises(LayoutError, match="last_layer does not take what it gives"):
        check_step(replace(derived, programs=(embedding, layer, renamed)))
