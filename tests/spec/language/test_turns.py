"""Rings: the layout rule along turns, loops, and derived programs with any one thing wrong."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.language.programs import GPT, LLAMA
from spec.checking.programs import check_program, on_whole_values, types_of
from spec.costs.lifetimes import arriving, live
from spec.costs.model_costs import elements_moved, fullest_moment, kept_bytes, messages
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, program_of
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.language.moves import Axis, Move
from spec.language.programs import result
from spec.language.turns import arranged
from spec.meaning.terms import Terms, differentiated
from spec.models.parts import layer
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value
from spec.plans.model_strategies import MODEL_AXES

RING = MODEL_AXES["cp"]
OTHER = replace(RING, name="other")
TURNS = Axis("turns", in_time=True)
MESHES = [(RING,), (MODEL_AXES["tp+sp"], RING), (RING, MODEL_AXES["tp"]), (RING, OTHER)]
RECOMPUTED = [NOTHING, PAIRS, EVERYTHING, FROM_SLICES]


def of(*indices):
    return Value("value", indices)


def operation(does, *reads, makes, **more):
    return Operation(does, tuple(of(*r) for r in reads), of(*makes), **more)


def softmax(*reads, backward=False):
    return operation(
        Does.NORMALISE, *reads, makes="su", function="softmax", over="u", backward=backward
    )


SHARES = result(softmax("su"), TURNS, along("u"))
TOTAL = result(
    operation(Does.NORMALISE, "su", makes="s", function=LOG_TOTAL, over="u"), TURNS, along("u")
)
TERM = result(operation(Does.CONTRACT, "su", "ud", makes="sd"), TURNS, SHARES, along("u"))


# ------------------------------------------------------------------------------- the rule
def test_what_is_linear_in_each_turns_shares_is_right_once_merged():
    mask = operation(Does.CONTRACT, "su", "su", makes="su")
    assert SHARES == result(mask, TURNS, SHARES, along("u")) != along("u")
    assert (TERM.plain, TERM.shares_of) == (PARTIAL, SHARES.shares_of)
    assert TERM._replace(log_total=True) == TOTAL
    assert result(operation(Does.CONTRACT, "sd", "sd", makes="sd"), TURNS, TERM, WHOLE) == TERM


@pytest.mark.parametrize(
    ("wrong", "lies"),
    [
        (operation(Does.APPLY, "su", makes="su", function="exp"), [SHARES]),
        (operation(Does.ADD, "su", "su", makes="su"), [SHARES, SHARES]),
        (operation(Does.CONTRACT, "su", "ru", makes="sr"), [SHARES, SHARES]),
        (operation(Does.CONTRACT, "su", "su", makes="u"), [SHARES, along("u")]),  # rows are summed
        (operation(Does.CONTRACT, "sd", "dh", makes="sh"), [TERM, WHOLE]),  # not merged
        (operation(Does.RENAME, "su", makes="ru", renamed=(("s", "r"),)), [SHARES]),
        (softmax("su", "su", backward=True), [along("u"), SHARES]),  # of the turn's keys alone
        (operation(Does.APPLY, "s", makes="s", function="exp"), [TOTAL]),
        (operation(Does.CONTRACT, "s", "s", makes="s"), [TOTAL, WHOLE]),  # of a log, no multiple
    ],
)
def test_anything_else_of_each_turns_shares_is_refused(wrong, lies):
    with pytest.raises(LayoutError):
        result(wrong, TURNS, *lies)


def test_a_softmax_with_its_log_sum_exp_needs_no_other_turn():
    assert result(softmax("su", "s"), TURNS, along("u"), WHOLE) == along("u")
    backward = softmax("su", "su", "s", backward=True)
    assert result(backward, TURNS, along("u"), along("u"), WHOLE) == along("u")
    for wrong in (PARTIAL, TOTAL, along("s")):
        with pytest.raises(LayoutError):
            result(softmax("su", "s"), TURNS, along("u"), wrong)
    with pytest.raises(LayoutError, match="u is needed whole"):
        result(softmax("su", "su", backward=True), TURNS, along("u"), along("u"))


def test_along_devices_a_softmax_of_slices_is_refused_as_ever():
    for reads, lies in ((("su",), [along("u")]), (("su", "s"), [along("u"), WHOLE])):
        with pytest.raises(LayoutError):
            result(softmax(*reads), RING, *lies)


# --------------------------------------------------------------------------------- loops
@st.composite
def rings(draw, again=RECOMPUTED):
    model = draw(st.sampled_from([GPT, LLAMA]))
    return program_of(layer(model), draw(st.sampled_from(MESHES)), draw(st.sampled_from(again)))


@given(rings())
def test_attention_is_one_loop_forward_and_one_backward(program):
    for turns in program.turns:
        lines, made_again = program.backward, len(program.kept) == 1
        assert len(program.loops(program.forward, turns)) == 1
        assert len(program.loops(lines, turns)) == 1 + made_again
    check_program(program)


@given(rings())
def test_lines_that_are_arranged_stay_as_they_are(program):
    assert tuple(arranged(program.forward, program.lies, program.turns)) == program.forward


@given(rings())
def test_no_value_of_pairs_is_kept_or_there_but_for_a_slice_of_it(program):
    pairs = {v for moment in live(program) for v in moment if {"s", "u"} <= {*v.indices}}
    assert pairs
    for value in pairs:
        assert value not in program.kept
        assert all(program.lies[value][turns].index == "u" for turns in program.turns)


def with_lines(program, phase, change):
    lines = [*getattr(program, phase)]
    change(lines)
    return replace(program, **{phase: tuple(lines)})


def test_what_a_loop_sums_is_not_read_before_its_last_turn():
    program = program_of(layer(LLAMA), (RING,))

    def early(lines):
        at = next(i for i, line in enumerate(lines) if line.makes.name == "output")
        merge = next(i for i, line in enumerate(lines) if getattr(line, "by", None)) + 1
        lines.insert(merge, lines.pop(at))

    with pytest.raises(LayoutError, match="is not there in these context turns"):
        check_program(with_lines(program, "forward", early))


def test_a_sum_over_turns_is_whole_only_after_the_last():
    """The gradient of keys, from that of queries in their place."""
    program = program_of(layer(LLAMA), (RING,))
    (total,) = (move for move in program.moves if move.collective == "accumulate")

    def early(lines):
        lines.remove(total)
        _, at = (i for i, line in enumerate(lines) if line.reads[0].name == "query_turned")
        lines[at:at] = [total]
        lines[at + 1] = replace(lines[at + 1], reads=(total.makes, lines[at + 1].reads[1]))

    with pytest.raises(LayoutError, match="is whole only after the last of the context turns"):
        check_program(with_lines(program, "backward", early))


def test_what_is_there_in_one_turn_is_neither_kept_nor_given():
    program = program_of(layer(LLAMA), (RING,))
    slice_of_keys = next(move.makes for move in program.moves if move.collective == "ring_gather")
    with pytest.raises(LayoutError, match="is of one turn of forward, which is over"):
        check_program(replace(program, kept=(*program.kept, slice_of_keys)))


def test_an_inner_loop_is_not_around_an_outer_one():
    program = program_of(layer(LLAMA), (RING, OTHER))
    with pytest.raises(LayoutError, match="is not there in these context turns"):
        check_program(replace(program, axes=(OTHER, RING)))


def test_only_a_ring_moves_what_devices_have_at_different_turns():
    program = program_of(layer(LLAMA), (RING,))
    home = next(move for move in program.moves if move.collective == "ring_reduce")
    at_once = replace(home, in_turns=False)
    moved = with_lines(program, "backward", lambda lines: lines.__setitem__(lines.index(home), at_once))
    with pytest.raises(LayoutError, match="devices along context have other slices"):
        check_program(moved)


# ------------------------------------------------------------------------ wrong programs
def accepted(program):
    try:
        check_program(program)
    except LayoutError:
        return False
    return True


@given(rings([NOTHING]), st.data())
def test_a_line_of_turns_that_reads_another_value_is_rejected(program, data):
    """Of the same indices, made before; unless it is the same by another name."""
    lines = [
        (phase, number, place)
        for phase in ("forward", "backward")
        for body in program.loops(getattr(program, phase), program.turns[0])
        for number in body
        for place in range(len(getattr(program, phase)[number].reads))
    ]
    phase, number, place = data.draw(st.sampled_from(lines))
    line = getattr(program, phase)[number]
    value = line.reads[place]
    made = {v for other in program.lines for v in (*other.reads, other.makes)}
    alike = {v for v in made if {*v.indices} == {*value.indices} and v != value}
    others = sorted(alike, key=str)
    if not others:
        return
    other = data.draw(st.sampled_from(others))
    if isinstance(line, Move):
        wrong = replace(line, **{"value" if place == 0 else "by": other})
    else:
        reads = [*line.reads]
        reads[place] = other
        wrong = replace(line, reads=tuple(reads))
    damaged = with_lines(program, phase, lambda lines: lines.__setitem__(number, wrong))
    terms = Terms()
    alone = differentiated(program.part, terms)
    if accepted(damaged):
        assert on_whole_values(damaged, terms) == alone
        assert value.role is Role.CONSTANT or value.plain_name == other.plain_name


def operations(program):
    return [line for line in program.backward if isinstance(line, Operation)]


def with_operation(program, line, reads):
    """The program whose operation reads other values."""
    number = program.backward.index(line)
    wrong = replace(line, reads=reads)
    return with_lines(program, "backward", lambda lines: lines.__setitem__(number, wrong))


def test_a_softmax_by_another_number_for_each_row_is_rejected():
    """Its log-sum-exp is known by what it is made of, and so is the product with its cotangent."""
    program = program_of(layer(LLAMA), (RING,))
    again, derivative = (line for line in operations(program) if line.function == "softmax")
    for line, other in ((again, derivative), (derivative, again)):
        damaged = with_operation(program, line, (*line.reads[:-1], other.reads[-1]))
        types_of(damaged, Terms())
        with pytest.raises(LayoutError, match="the chain rule gives no such term"):
            check_program(damaged)


def test_a_product_of_another_output_is_rejected():
    """Of queries and the output's cotangent: the indices are right, the sum is not."""
    program = program_of(layer(replace(LLAMA, positions=4)), (RING,))
    (line,) = (line for line in operations(program) if line.makes.name.startswith("product of"))
    query = next(value for value in program.kept if value.name == "query")
    damaged = with_operation(program, line, (line.reads[0], query))
    types_of(damaged, Terms())
    with pytest.raises(LayoutError, match="the chain rule gives no such term"):
        check_program(damaged)


# --------------------------------------------------------------------------------- costs
def test_a_ring_of_one_device_sends_nothing_and_has_no_second_slice():
    program, sizes = program_of(layer(LLAMA), (RING,)), LLAMA.sizes(1, 8)
    assert all(elements_moved(move, program, sizes, {"context": 1}) == 0 for move in program.moves)
    assert any(arriving(program))


@given(st.integers(2, 5), st.integers(2, 5))
def test_a_ring_in_a_ring_is_passed_round_in_every_turn_of_the_outer_one(outer, inner):
    program, mesh = program_of(layer(LLAMA), (RING, OTHER)), {"context": outer, "other": inner}
    found = {(m.axis, m.collective): messages(m, program, mesh) for m in program.moves if m.is_sent}
    assert found == {
        ("context", "ring_gather"): outer - 1,
        ("other", "ring_gather"): (inner - 1) * outer,
        ("context", "ring_reduce"): outer,
        ("other", "ring_reduce"): inner * outer,
    }


@given(st.integers(1, 4), st.sampled_from([2, 4, 8]))
def test_what_a_ring_keeps_by_hand(samples, n):
    """All that is kept without pairs, and in fp32 a number for each query of each head."""
    ring, gathered = (
        program_of(layer(LLAMA), (MODEL_AXES[name],), PAIRS) for name in ("cp", "cp-all-gather")
    )
    sizes, mesh = LLAMA.sizes(samples, 8 * n), {"context": n}
    log_totals = 4 * samples * 8 * LLAMA.heads
    assert kept_bytes(ring, sizes, mesh) == kept_bytes(gathered, sizes, mesh) + log_totals


def test_the_fullest_moment_of_a_ring_by_hand():
    """Where pairs are nearly all there is: three slices of them, shares and two cotangents."""
    for n in (2, 4):
        program, s = program_of(layer(LLAMA), (RING,)), 4096
        block = 2 * LLAMA.heads * (s // n) ** 2
        found = fullest_moment(program, LLAMA.sizes(1, s), {"context": n})
        assert 3 * block <= found < 3.2 * block
