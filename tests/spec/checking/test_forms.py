"""What training makes of normal forms: what is wrong of other elements is found once."""

from dataclasses import replace

from spec.checking.forms import Forms, OtherElements
from spec.checking.verdict import _check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase, Span
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES

DP, MESH = schedule_of(STRATEGIES["dp"]), {"batch": 3}


def test_of_elements_of_all_owners_there_is_nothing_new_at_the_second_look():
    """A gradient of parameters that were summed is wrong, and is dropped."""
    view, phase = Buffer.VIEW, Phase.BACKWARD
    beside = (
        Op(Kind.ALL_REDUCE, phase, Buffer.PARAMETERS, view, ("batch",), span=Span.UNIT),
        Op(Kind.FORWARD, phase, view, Buffer.ACTIVATIONS),
        Op(Kind.BACKWARD, phase, view, Buffer.FRESH, span=Span.UNIT),
        Op(Kind.RELEASE, phase, view),
        Op(Kind.RELEASE, phase, Buffer.FRESH),
    )
    schedule, others = replace(DP, micro_step=(*DP.micro_step, *beside)), OtherElements()
    news = []
    for _ in range(3):
        others.news = False
        for first in (0, 1):
            forms = Forms(schedule, MESH, 1, MIXED_ADAM, None, {"batch": first}, True, others=others)
            assert _check(schedule, forms).accepted
        news.append(others.news)
    assert others.wrong and news == [True, False, False]
