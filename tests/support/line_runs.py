"""Schedules that are judged by T4's lines and by the checker beside them."""

from contextlib import suppress
from itertools import product

from proofs.checking.beside import judged
from proofs.checking.operation_lines import NotCovered
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault
from tests.support.schedules import PIECES, with_clipping

PLAIN_PIECES = ("plain", "mean", "token mean", "loss scale", "tied parameters")
CLIPS = (lambda schedule: schedule), with_clipping


def agree_on_named_strategies():
    """Named strategies, and real training in them, are accepted both ways."""
    for placement in STRATEGIES.values():
        schedule = schedule_of(placement)
        for piece, clips in product(PLAIN_PIECES, CLIPS) if schedule.finish else ():
            for devices in (1, 2, 3):
                mesh = dict.fromkeys(schedule.axes, devices)
                made = clips(PIECES[piece](schedule))
                assert judged(made, mesh, 2, MIXED_ADAM, 2).accepted, (piece, devices)


def agree_on_faults(names):
    """Each single fault in named strategies that clip is judged alike."""
    for name in names:
        for faulty in with_one_fault(with_clipping(schedule_of(STRATEGIES[name]))):
            with suppress(NotCovered):
                judged(faulty, dict.fromkeys(faulty.axes, 3), 2, MIXED_ADAM, 3)
