"""Damage to steps of several groups of weights: to a line of a norm, or to a line of a file."""

import re
from dataclasses import replace

from hypothesis import strategies as st

from proofs.plans.norms import axes_of
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.schedule import Buffer, Kind, Op, Phase

MOVED = (Kind.ALL_REDUCE, Kind.BROADCAST)


def is_of_norm(op):
    """Whether a line has to do with a norm."""
    return Buffer.NORM in (op.source, op.target, op.by)


@st.composite
def with_another_norm(draw, step):
    """A step that clips, with a line of a norm left out, repeated, elsewhere, or changed."""
    number = draw(st.sampled_from(range(len(step.groups))))
    schedule = step.groups[number].schedule
    finish = list(schedule.finish)
    norms = [at for at, op in enumerate(finish) if is_of_norm(op)]
    at = draw(st.sampled_from(norms))
    action = draw(st.sampled_from(("drop", "repeat", "swap", "early", "lose", "change")))
    if action == "repeat":
        finish.insert(draw(st.sampled_from(norms)), finish[at])
    elif action == "swap":
        other = draw(st.sampled_from(norms))
        finish[at], finish[other] = finish[other], finish[at]
    elif action == "lose":
        kind = draw(st.sampled_from((Kind.RELEASE, Kind.RESET)))
        finish.insert(at, Op(kind, Phase.REDUCE, Buffer.NORM))
    elif action == "change":
        finish[at] = draw(st.sampled_from([*_others(draw, finish[at], axes_of(step))]))
    else:
        del finish[at]
    if action == "early":
        micro_step = (*schedule.micro_step, schedule.finish[at])
        schedule = replace(schedule, micro_step=micro_step)
    group = replace(step.groups[number], schedule=replace(schedule, finish=tuple(finish)))
    return replace(step, groups=(*step.groups[:number], group, *step.groups[number + 1 :]))


def _others(draw, op, every):
    """The line along other axes, as a mean, or of other slices."""
    yield op
    some = st.lists(st.sampled_from([*every, ALL_WEIGHTS]), min_size=1, unique=True)
    if op.kind in MOVED:
        yield replace(op, axes=tuple(draw(some)))
        yield replace(op, kind=next(kind for kind in MOVED if kind is not op.kind))
    if op.kind is Kind.ALL_REDUCE:
        yield replace(op, mean=True)
    if op.kind is Kind.SQUARE_NORM:
        yield replace(op, within=op.within[1:])


AXES = re.compile(r'axes = \["([a-z]+)"\]')
MAKES = re.compile(r'into = "([^"\[]+)(\[[^\]]*\])?"')
MOVES = re.compile(r'op = "(all_\w+|reduce_scatter|slice)", source = "([^"]+)"')
TABLE = re.compile(r"\[+[a-z]+\]")
READ = re.compile(r'"([A-Za-z_][^"\[(]*?)"')


@st.composite
def changed_lines(draw, text):
    """The text of a step with another line: a move forgotten, along another axis, or a line that reads
    another value with the same indices; of gradients, another weight's.
    """
    lines = text.splitlines()
    axes = next(line for line in lines if line.startswith("axes = "))
    first = next(number for number, line in enumerate(lines) if line == "[embedding]")
    action = draw(st.sampled_from(("forget", "turn", "read", "read")))
    able = {"forget": MOVES, "turn": AXES, "read": READ}[action]
    number = draw(st.sampled_from([i for i in range(first, len(lines)) if able.search(lines[i])]))
    start = max(i for i in range(number + 1) if TABLE.match(lines[i]))
    end = next((i for i in range(number + 1, len(lines)) if TABLE.match(lines[i])), len(lines))
    if action == "forget":
        made, source = MAKES.search(lines[number]), MOVES.search(lines[number])[2]
        del lines[number]
        for at in range(start, end - 1) if made else ():
            lines[at] = lines[at].replace(f'"{made[1]}"', f'"{source}"')
    elif action == "turn":
        axis = draw(st.sampled_from(re.findall('"([a-z]+)"', axes)))
        lines[number] = AXES.sub(f'axes = ["{axis}"]', lines[number])
    else:
        found = draw(st.sampled_from(READ.findall(lines[number])))
        indices = dict(re.findall(r'"([^"\[(]+)(\[[^"\]]*\])"', "\n".join(lines[start:number])))
        other = [name for name, of in indices.items() if of == indices.get(found)] or [found]
        lines[number] = lines[number].replace(f'"{found}"', f'"{draw(st.sampled_from(other))}"')
    return "\n".join(lines)
