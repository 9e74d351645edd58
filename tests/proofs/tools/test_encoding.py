"""The SMT encoding of modes and collectives agrees with the specification it is made from."""

from proofs.tools import encoding
from proofs.trusted.oracle import ask
from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, Const
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.devices.collectives import COLLECTIVES
from spec.models.states import State
from spec.plans.modes import Mode
from spec.plans.placement import BATCH

STATES = [Const(state.value, encoding.ModeSort) for state in State]


def chosen(modes):
    return [term == encoding.MODES[mode] for term, mode in zip(STATES, modes, strict=True)]


def test_realisable_is_the_verdict_for_each_of_the_625_placements():
    constraint = encoding.realisable(STATES)
    for modes, placement in encoding.placements().items():
        pairs = [(t, encoding.MODES[m]) for t, m in zip(STATES, modes, strict=True)]
        value = substitute(constraint, *pairs)
        assert (value is TRUE) == check(schedule_of(placement), {BATCH: 5}).accepted


def test_one_query_finds_a_realisable_placement_and_none_with_sharded_parameters():
    constraint = encoding.realisable(STATES)
    assert ask([constraint]).said == "sat"
    assert ask([constraint, STATES[0] == encoding.MODES[Mode.SHARDED]]).said == "unsat"


def test_layouts_of_collectives_are_encoded():
    term = Const("c", encoding.CollectiveSort)
    for name, collective in COLLECTIVES.items():
        for side in ("before", "after"):
            pair = (term, encoding.COLLECTIVE_TERMS[name])
            value = substitute(encoding.layout(term, side), pair)
            assert value is encoding.LAYOUTS[getattr(collective, side)]


def test_one_query_decides_which_collectives_chain_into_an_all_reduce():
    first, second = (Const(name, encoding.CollectiveSort) for name in ("first", "second"))
    whole = encoding.COLLECTIVE_TERMS["all_reduce"]
    chained = [
        encoding.layout(first, "before") == encoding.layout(whole, "before"),
        encoding.layout(first, "after") == encoding.layout(second, "before"),
        encoding.layout(second, "after") == encoding.layout(whole, "after"),
    ]
    found = ask(chained)
    assert found.said == "sat"
    assert found.values["first"] is encoding.COLLECTIVE_TERMS["reduce_scatter"]
    assert found.values["second"] is encoding.COLLECTIVE_TERMS["all_gather"]
    assert ask([*chained, first != found.values["first"]]).said == "unsat"
