"""What FSDP2 was recorded to have at once is at most what psem says passes."""

from fractions import Fraction

from conformance.cases import cases
from conformance.logs import log_of
from conformance.plans import Planned

RECORDED = [(case, log_of(case)) for case in cases() if case.strategy.startswith(("fsdp2", "hsdp"))]
REDUCED = [(case, log) for case, log in RECORDED if case.each and "pipe" not in case.sizes]
AS_USUAL = [(case, log) for case, log in REDUCED if case.reshard is None]


def shares(case, log):
    """What was there at once, as a share of what psem says, rank by rank."""
    planned = Planned(case, log.shapes)
    for number, rank in log.ranks.items():
        yield Fraction(rank.passing, planned.stage(planned.profile, number).transient["states"])


def test_every_case_of_fsdp2_has_it_recorded():
    assert all(rank.passing for _, log in RECORDED for rank in log.ranks.values())
    assert len(AS_USUAL) > len(RECORDED) // 2


def test_no_case_has_more_at_once_than_psem_says():
    """Nor less than half: of what psem has of a turn the gradients are there with all before they are
    summed, and with their copy then.
    """
    for case, log in AS_USUAL:
        assert all(Fraction(1, 2) <= share <= 1 for share in shares(case, log)), case.name
