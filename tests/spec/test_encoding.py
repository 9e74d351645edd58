"""The SMT encoding of modes and collectives agrees with the specification it is made from."""

import z3

from proofs.tools import encoding
from proofs.trusted.parts import substitute
from proofs.trusted.terms import Const
from spec.checking.verdict import check
from spec.derivation.derive import derive
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
        value = z3.simplify(substitute(constraint, *pairs))
        assert z3.is_true(value) == check(derive(placement), {BATCH: 5}).accepted


def test_one_query_finds_a_realisable_placement_and_none_with_sharded_parameters():
    solver = z3.Solver()
    solver.add(encoding.realisable(STATES))
    assert solver.check() == z3.sat
    solver.add(STATES[0] == encoding.MODES[Mode.SHARDED])
    assert solver.check() == z3.unsat


def test_layouts_of_collectives_are_encoded():
    term = Const("c", encoding.CollectiveSort)
    for name, collective in COLLECTIVES.items():
        for side in ("before", "after"):
            pair = (term, encoding.COLLECTIVE_TERMS[name])
            value = z3.simplify(substitute(encoding.layout(term, side), pair))
            assert value.eq(encoding.LAYOUTS[getattr(collective, side)])


def test_one_query_decides_which_collectives_chain_into_an_all_reduce():
    first, second = z3.Consts("first second", encoding.CollectiveSort)
    whole = encoding.COLLECTIVE_TERMS["all_reduce"]
    solver = z3.Solver()
    solver.add(
        encoding.layout(first, "before") == encoding.layout(whole, "before"),
        encoding.layout(first, "after") == encoding.layout(second, "before"),
        encoding.layout(second, "after") == encoding.layout(whole, "after"),
    )
    assert solver.check() == z3.sat
    model = solver.model()
    assert model[first].eq(encoding.COLLECTIVE_TERMS["reduce_scatter"])
    assert model[second].eq(encoding.COLLECTIVE_TERMS["all_gather"])
    solver.add(first != model[first])
    assert solver.check() == z3.unsat
