"""C7: the order of levels matters to the link between them."""

from __future__ import annotations

from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.simulator import simulate
from spec.devices.collectives import REDUCE_SCATTER
from spec.devices.hierarchy import HIERARCHICAL, INNER, OUTER, OUTER_FIRST, LevelMoves
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule
from spec.models.states import State


def level_by_level(moves: LevelMoves) -> Schedule:
    """Data parallelism on two levels, whose gradients are reduced level by level."""
    levels = (OUTER, INNER)
    ops: list[Op] = []
    cut: tuple[str, ...] = ()
    for level, collective in moves:
        within = tuple(a for a in cut if a != level)
        kind = Kind(collective.name)
        ops.append(Op(kind, Phase.REDUCE, Buffer.GRADIENTS, axes=(level,), within=within))
        cut = (*cut, level) if collective is REDUCE_SCATTER else within
    rests = {state: Rest() for state in State} | {State.ACTIVATIONS: Rest(sharded=levels)}
    micro_step = (
        Op(Kind.FORWARD, Phase.FORWARD, Buffer.PARAMETERS, Buffer.ACTIVATIONS),
        Op(Kind.BACKWARD, Phase.BACKWARD, Buffer.PARAMETERS, Buffer.GRADIENTS),
    )
    update = Op(Kind.UPDATE, Phase.UPDATE, Buffer.GRADIENTS, Buffer.OPTIMIZER)
    reset = Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS)
    return Schedule(levels, tuple(rests.items()), micro_step, (*ops, update, reset))


@refutes("C7", "outside_first_sends_more_outside")
def reduced_outside_first_an_all_reduce_sends_more_outside(values: Values) -> Shown:
    n, m, cell = (int(values[v]) for v in ("n", "m", "cell"))
    runs, sent = [], []
    for moves in (HIERARCHICAL, OUTER_FIRST):
        run = simulate(level_by_level(moves), {OUTER: m, INNER: n}, n * m * cell)
        outside = [i for i, (level, _) in enumerate(moves) if level == OUTER]
        sent.append(sum(int(run.sent_by_operation["finish", i].max()) for i in outside))
        runs.append(run)
    inside_first, outside_first = sent
    return Shown(
        runs[-1].messages,
        {
            "both match": all(run.matches for run in runs),
            "a device sends n times as much outside": outside_first == n * inside_first,
        },
    )
