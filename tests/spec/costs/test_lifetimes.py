"""What is there while a program's lines run: from what makes it to what reads it last."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from proofs.language.programs import GPT, LLAMA
from spec.costs.lifetimes import arriving, live
from spec.costs.model_costs import elements, fullest_moment
from spec.derivation.programs import EVERYTHING, NOTHING, PAIRS, program_of
from spec.devices.layouts import WHOLE
from spec.models.parts import layer, parts
from spec.models.transformer import DROPPED
from spec.models.values import Role
from spec.plans.model_strategies import MODEL_AXES
from tests.support.examples import examples

RING = MODEL_AXES["cp"]
OTHER = replace(RING, name="other")
MODELS = st.sampled_from([replace(model, dropout=DROPPED) for model in (GPT, LLAMA)])
AGAIN = st.sampled_from([NOTHING, PAIRS, EVERYTHING])


@st.composite
def programs(draw):
    """Parts on axes without a ring."""
    axes = draw(st.sampled_from([(), (MODEL_AXES["tp+sp"],), (MODEL_AXES["cp-all-to-all"],)]))
    return program_of(draw(st.sampled_from(parts(draw(MODELS)))), axes, draw(AGAIN))


@st.composite
def rings(draw):
    axes = draw(st.sampled_from([(RING,), (RING, OTHER)]))
    return program_of(layer(draw(MODELS)), axes, draw(AGAIN))


def halves(program):
    """Forward and backward: lines, what is there before them, what is to be there after them."""
    yield program.forward, program.part.takes, program.gives
    yield program.backward, program.seed, program.returns


@given(programs())
def test_a_value_is_there_from_the_line_that_makes_it_to_the_last_that_reads_it(program):
    there = iter(live(program))
    for lines, first, last in halves(program):
        touched = [{line.makes, *line.reads} for line in lines]
        ends = {}
        for number, values in enumerate(touched):
            for value in values:
                ends[value] = (min(ends.get(value, (number,))[0], number), number)
        if first in ends:
            ends[first] = (0, ends[first][1])
        if last in ends:
            ends[last] = (ends[last][0], len(lines) - 1)
        for number in range(len(lines)):
            assert next(there) == {v for v, (a, b) in ends.items() if a <= number <= b}


@given(rings())
def test_through_a_loop_there_is_what_it_reads_in_every_turn_and_of_a_turn_what_is_drawn(program):
    there, start = live(program), 0
    for lines, *_ in halves(program):
        for turns in program.turns:
            for body in program.loops(lines, turns):
                here = [lines[number] for number in body]
                made = {line.makes for line in here}
                for value in {v for line in here for v in line.reads} - made:
                    reading = [number for number in body if value in lines[number].reads]
                    inner = [t for t in program.turns if program.lies[value][t] != WHOLE]
                    if not inner:
                        assert all(value in there[start + number] for number in body)
                    elif value.role is Role.CONSTANT and inner[-1] == turns:
                        between = range(reading[0], reading[-1] + 1)
                        found = [number for number in body if value in there[start + number]]
                        assert found == [*between]
        start += len(lines)


@examples(30)
@given(rings(), st.integers(1, 3))
def test_of_what_goes_round_a_ring_of_several_devices_there_are_two_slices(program, devices):
    mesh = {axis.name: devices for axis in program.axes}
    along = mesh | {axis.turns: devices for axis in program.axes}
    sizes = (LLAMA if "gate_weight" in str(program.part) else GPT).sizes(1, 12)
    apart = {*program.part.weights, *program.gradients.values(), *program.kept}

    def size(values):
        return sum(v.width * elements(v, program.lies[v], sizes, along) for v in values)

    moments = zip(live(program), arriving(program), strict=True)
    found = [size(here - apart) + (devices > 1) * size(second) for here, second in moments]
    assert fullest_moment(program, sizes, mesh) == max(found)
