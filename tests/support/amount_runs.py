"""T2 in numbers: how often devices have original values, on few devices, beside the verdict."""

from collections import defaultdict
from fractions import Fraction
from itertools import product

from proofs.checking import lines
from proofs.checking.operation_lines import COUNT, NORM, NotCovered
from proofs.checking.whole_runs import PlacesOfARun
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.meaning.semantics import execute
from spec.models.states import MIXED_ADAM
from spec.models.training import Loss
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault
from tests.support.line_runs import CLIPS, PLAIN_PIECES
from tests.support.schedules import PIECES, with_clipping

WRONG = "wrong"
ALIKE = ("weight", "moment", NORM)  # values that are the same on all devices


class TakenForOne(NotCovered):
    """The checker accepts where something wrong was computed: it takes two equal values for one."""


class AmountRun:
    """How often a device has device i's value s of an element, for each owner that it may have.

    amounts[place][owner, device][s, i]; unknowns[place][owner, device]. An axis is by its index.
    """

    def __init__(self, axes, mesh, starts, training, moments):
        self.axes, self.training, self.moments = axes, training, moments
        self.devices = [*product(*(range(mesh[axis]) for axis in axes))]
        self.each = [*product(self.devices, self.devices)]  # owner and device
        self.amounts, self.unknowns = {}, {}
        for place, start in starts.items():
            state = start.removesuffix("s").lower(), 0
            self.amounts[place] = {(o, d): {(state, d): 1} for o, d in self.each}
            self.unknowns[place] = dict.fromkeys(self.each, 0)

    def _of(self, place):
        nothing = {at: {} for at in self.each}
        return self.amounts.get(place, nothing), self.unknowns.get(place, dict.fromkeys(self.each, 1))

    def run(self, number, line, micro_steps):
        """Run a line, as T2 has it. Whether it computes, and something wrong."""
        computed = {
            lines.BACKWARD.name: self._backward,
            lines.UPDATE.name: self._update,
            NORM: self._norm,
            COUNT: self._count,
        }
        if line.kind in computed:
            return computed[line.kind](number, line, micro_steps)
        kind, factor = line.kind, Fraction(line.factor)
        axis = self.axes.index(line.axis) if line.axis else 0
        (source, unknown), (target, unknown_there) = self._of(line.source), self._of(line.target)
        after, not_known = {}, {}
        for o, d in self.each:
            group = [e for e in self.devices if all(e[a] == d[a] for a in range(len(d)) if a != axis)]
            taker = (o[axis] - line.shift) % len(group)
            owner, first = (next(e for e in group if e[axis] == c) for c in (taker, 0))
            if kind == "zero":
                read, factor = [], Fraction(1)
            elif kind == "all_reduce":
                read = [(source, unknown, e) for e in group]
            elif kind in ("all_gather", "broadcast"):
                read = [(source, unknown, owner if kind == "all_gather" else first)]
            elif kind == "keep":
                read = [(source, unknown, d) if d == owner else (target, unknown_there, d)]
            elif kind == "accumulate":
                read = [(target, unknown_there, d), (source, unknown, d)]
            else:
                assert kind in ("copy", "scale")
                read = [(source, unknown, d)]
            found = defaultdict(Fraction)
            for of, _, e in read:
                for term, amount in of[o, e].items():
                    found[term] += amount * (factor if kind == "scale" else 1)
            after[o, d] = {term: amount for term, amount in found.items() if amount}
            not_known[o, d] = sum(of[o, e] for _, of, e in read)
        self.amounts[line.target], self.unknowns[line.target] = after, not_known
        return False

    def equal(self, place, at, needed):
        """Whether what is there compares equal: `needed` of the states once, or of contributions."""
        amounts, unknowns = self._of(place)
        seen = defaultdict(Fraction)
        for (s, i), amount in amounts[at].items():
            seen[(s, None) if s[0] in ALIKE else (s, i)] += amount
        states = all(s[0] in ALIKE for s in needed)
        wanted = {(s, i): 1 for s in needed for i in ([None] if states else self.devices)}
        return not unknowns[at] and {term: a for term, a in seen.items() if a} == wanted

    def _count(self, _, line, __):
        self._compute(line.target, lambda _: (COUNT, line.step, line.micro_step))
        return False

    def _backward(self, number, line, _):
        weight = [("weight", line.step)]
        reads = line.source, line.second
        right = all(self.equal(place, at, weight) for place in reads for at in self.each)
        made = ("gradient", line.step, line.micro_step) if right else (WRONG, number, "gradient")
        self._compute(line.target, lambda _: made)
        self.amounts.pop(line.second, None)
        self.unknowns.pop(line.second, None)
        return not right

    def _norm(self, number, line, micro_steps):
        """A norm is right on a device if all slices of its group compare equal to the gradient."""
        whole = [("gradient", line.step, m) for m in range(micro_steps)]
        along = [self.axes.index(axis) for axis in line.axes]

        def right(d):
            def owner(o):
                return tuple(o[a] if a in along else d[a] for a in range(len(d)))

            return all(self.equal(line.source, (o, owner(o)), whole) for o in self.devices)

        met = {d: right(d) for d in self.devices}
        made = {True: (NORM, line.step), False: (WRONG, number, NORM)}
        self._compute(line.target, lambda at: made[met[at[1]]])
        return not all(met.values())

    def _update(self, number, line, micro_steps):
        whole = [("gradient", line.step, m) for m in range(micro_steps)]
        weight, moment = ([(kind, line.step)] for kind in ("weight", "moment"))
        needs = [(line.source, weight), (line.third, whole)]
        needs += [(line.second, moment)] if self.moments else []
        if self.training.clip:
            needs.append((line.fourth, [(NORM, line.step)]))
        if self.training.loss is Loss.TOKEN_MEAN:
            needs.append((line.fifth, [(COUNT, line.step, m) for m in range(micro_steps)]))
        met = {at: all(self.equal(place, at, needed) for place, needed in needs) for at in self.each}
        for place, kind in ((line.target, "weight"), (line.second, "moment")):
            right, wrong = (kind, line.step + 1), (WRONG, number, kind)
            self._compute(place, lambda at, right=right, wrong=wrong: right if met[at] else wrong)
        return not all(met.values())

    def _compute(self, place, made):
        self.amounts[place] = {at: {(made(at), at[1]): 1} for at in self.each}
        self.unknowns[place] = dict.fromkeys(self.each, 0)

    def kept(self, kept_as, axes, step):
        """Whether every kept copy compares equal at the end of a step, where it is kept."""
        found = True
        for place, start in kept_as.items():
            state = "moment" if "Moment" in start else "weight"
            cut = [self.axes.index(axis) for axis in axes[place]]
            holders = [(o, d) for o, d in self.each if all(o[a] == d[a] for a in cut)]
            found &= all(self.equal(place, at, [(state, step + 1)]) for at in holders)
        return found


def agree_on_amounts(schedule, mesh, micro_steps, policy, steps=5):
    """The verdict is what comparisons of amounts say. Returns it; raises AssertionError, NotCovered.

    Where something wrong is computed the checker may take two values for one, and amounts do not:
    then the verdict may accept what amounts do not.
    """
    places = PlacesOfARun(schedule, mesh, micro_steps, policy)
    store = places.initial()
    run = AmountRun(schedule.axes, mesh, places.starts, schedule.training, places.moments)
    verdict = check(schedule, mesh, micro_steps, policy)
    done, wrong, equal = 0, False, []

    def go_on():
        nonlocal done, wrong
        for number, line in enumerate(places.lines[done:], done):
            wrong |= run.run(number, line, places.contributions)
        done = len(places.lines)

    go_on()
    for step in range(steps):
        places.step = step
        for micro_step, op in schedule.flat(micro_steps):
            execute(op, schedule, places, store, micro_step)
        places.end_step(store)
        go_on()
        there_is_one = any(name.startswith("Weight") for name in places.kept_as.values())
        equal.append(there_is_one and run.kept(places.kept_as, places.kept_axes, step))
    if verdict.accepted and not all(equal) and wrong:
        raise TakenForOne("wrong values that the checker takes for one")
    if not verdict.accepted and verdict.rule == "room":
        raise NotCovered("whole values in a place for slices")
    assert verdict.accepted == all(equal)
    return verdict


NAMED = ("dp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "zero-offload")


def agree_on_named_strategies(names=NAMED):
    """Named strategies, and real training in them, are accepted by amounts."""
    for name, piece, clips in product(names, PLAIN_PIECES, CLIPS):
        schedule = clips(PIECES[piece](schedule_of(STRATEGIES[name])))
        mesh = dict(zip(schedule.axes, (2, 3), strict=False))
        assert agree_on_amounts(schedule, mesh, 2, MIXED_ADAM, 2).accepted, (name, piece)


def agree_on_faults(schedule, devices=2):
    """Each single fault in a schedule is judged alike, and none makes two equal wrong values.

    Returns how many were judged.
    """
    judged = 0
    for faulty in with_one_fault(schedule):
        try:
            agree_on_amounts(faulty, dict.fromkeys(faulty.axes, devices), 1, MIXED_ADAM, 3)
            judged += 1
        except TakenForOne as no:
            raise AssertionError(faulty) from no
        except NotCovered:
            continue
    return judged


def agree():
    """A quick look, for where a rule is broken."""
    agree_on_named_strategies()
    agree_on_faults(with_clipping(schedule_of(STRATEGIES["zero1"])))
