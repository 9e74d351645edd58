"""Byte policies: sizes follow from types, and of no state there is no copy."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.models.states import POLICIES, BytePolicy, State, custom_policy

SIZE = st.fractions(0, 16, max_denominator=4)
KEPT = (State.PARAMETERS, State.GRADIENTS, State.OPTIMIZER)
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_what_a_state_consists_of_is_named_with_its_type_and_adds_up(policy):
    for state, parts in zip(KEPT, policy.sources, strict=True):
        assert [size for size, _ in parts] == [BYTES[what.split()[0]] for _, what in parts]
        assert sum(size for size, _ in parts) == policy.of(state)
        assert all(what in policy.provenance(state) for _, what in parts)


@given(SIZE, SIZE, SIZE)
def test_a_policy_has_the_sizes_that_it_is_given_and_of_nothing_no_copy(w, g, k):
    for policy in (custom_policy(w, g, k), BytePolicy(w, g, k)):
        assert tuple(map(policy.of, KEPT)) == (w, g, k)
        assert policy.master is (k > 0)
        assert {policy.provenance(state) for state in KEPT if policy.of(state)} <= {"as given"}
        assert {policy.provenance(state) for state in KEPT if not policy.of(state)} <= {"nothing kept"}


@given(st.integers(0, 16).map(Fraction))
def test_whole_numbers_of_bytes_stay_whole(size):
    found = custom_policy(size, size, size)
    assert [type(found.of(state)) for state in KEPT] == [int] * 3
