"""The all-to-all's step rule, run on lists, and broken rules that its proof must notice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofs.devices.all_to_all as proof
from proofs.trusted.kernel import Kernel, KernelError
from spec.devices.collectives import ALL_TO_ALL, all_to_all_sends, all_to_all_step, ring_steps


def reader(chunks):
    return lambda d, c: chunks[d][c]


def exchange(sent):
    """Apply the step rule n - 1 times to chunks sent[device][chunk]."""
    n, received = len(sent), sent
    for step in range(ring_steps(n)):
        after = all_to_all_step(
            reader(sent),
            reader(received),
            step,
            lambda a, b: (a - b) % n == 0,
            lambda condition, then, otherwise: then if condition else otherwise,
        )
        received = [[after(d, c) for c in range(n)] for d in range(n)]
    return received


def squares(elements):
    sizes = st.integers(1, 7)
    return sizes.flatmap(
        lambda n: st.lists(st.lists(elements, min_size=n, max_size=n), min_size=n, max_size=n)
    )


@given(squares(st.integers()))
def test_an_all_to_all_transposes_and_a_second_one_undoes_it(sent):
    received = exchange(sent)
    assert received == [list(column) for column in zip(*sent, strict=True)]
    assert exchange(received) == sent


@given(st.integers(1, 50))
def test_in_every_step_all_devices_send_to_different_ones_and_none_to_itself(n):
    for step in range(ring_steps(n)):
        receivers = [all_to_all_sends(device, step) % n for device in range(n)]
        assert sorted(receivers) == list(range(n))
        assert all(receiver != device for device, receiver in enumerate(receivers))


@given(st.integers(1, 50), st.integers(0, 50))
def test_a_device_sends_all_but_one_nth_of_what_it_has(n, chunk):
    assert ALL_TO_ALL.volume(n, chunk) * n == (n - 1) * (n * chunk)


def test_the_proof_holds():
    assert proof.all_to_all_is_a_transpose(Kernel("C4"))


def keeps_its_own(sent, received, step, same, select):
    """What arrives is lost."""
    return lambda device, chunk: received(device, chunk)


def takes_the_wrong_chunk(sent, received, step, same, select):
    """The sender's chunk for itself arrives."""
    return lambda device, chunk: select(
        same(device, all_to_all_sends(chunk, step)), sent(chunk, chunk), received(device, chunk)
    )


def sends_what_came(sent, received, step, same, select):
    """One buffer for both: chunks are overwritten before they are sent."""
    return all_to_all_step(received, received, step, same, select)


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("all_to_all_step", keeps_its_own),
        ("all_to_all_step", takes_the_wrong_chunk),
        ("all_to_all_step", sends_what_came),
        ("ring_steps", lambda n: n - 2),
        ("ring_steps", lambda n: n),
    ],
)
def test_a_broken_rule_is_noticed(rule, broken, monkeypatch):
    monkeypatch.setattr(proof, rule, broken)
    with pytest.raises(KernelError, match="not proved"):
        proof.all_to_all_is_a_transpose(Kernel("C4"))


@pytest.mark.parametrize("further", [0, 2])
def test_a_wrong_receiver_is_noticed(further, monkeypatch):
    monkeypatch.setattr(
        "spec.devices.collectives.all_to_all_sends", lambda device, step: device + further + step
    )
    with pytest.raises(KernelError, match="not proved"):
        proof.all_to_all_is_a_transpose(Kernel("C4"))
