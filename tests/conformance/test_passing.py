"""What FSDP2 was recorded to have at once is at most what psem says passes."""

from fractions import Fraction

from conformance.cases import cases
from conformance.logs import log_of
from conformance.plans import planned
from tests.support.examples import few


def recorded():
    """The cases of FSDP2, each with its log."""
    return [(case, log_of(case)) for case in cases() if case.strategy.startswith(("fsdp2", "hsdp"))]


def waits(case):
    """Whether gradients wait whole for the last micro-step."""
    return not case.each or "pipe" in case.sizes


def shares(case, log):
    """What was there at once, as a share of what psem says, rank by rank."""
    of = planned(case)
    for number, rank in log.ranks.items():
        stage = of.stage(of.profile, number)
        whole = stage.before_the_last if waits(case) else 0
        passing = stage.transient["states"] + stage.transient["copied"] + whole
        yield Fraction(rank.passing, passing)


def test_every_case_of_fsdp2_has_it_recorded():
    assert all(rank.passing for _, log in recorded() for rank in log.ranks.values())


def test_no_case_has_more_at_once_than_psem_says():
    """Nor far less: units are not alike, and not all of a turn, or of what waits, is there together.

    Of layers that are held, and of others, what passes is added up.
    """
    for case, log in few(recorded()):
        least = Fraction(2 if waits(case) else 3, 5) - Fraction(1, 10) * bool(case.held)
        assert all(least <= share <= 1 for share in shares(case, log)), case.name
