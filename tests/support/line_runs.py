"""T4's run of lines, on numbers; and a schedule run by it and by the checker beside it."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

from proofs.checking import lines
from proofs.checking.axis_tables import EVERYBODY, counts, entries, moved, only
from proofs.checking.lines import AXIS, FACTOR, FIRST, MOVES, NAMED, OPERATORS, OWNER
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, NotCovered
from spec.checking.forms import LACKING, Forms, OtherElements, Rejected
from spec.checking.symbols import Symbol
from spec.checking.verdict import SETTLED_WITHIN, check, require_agreed
from spec.derivation.derive import derive
from spec.devices.operators import OTHER
from spec.meaning.semantics import execute, initial
from spec.models.states import MIXED_ADAM
from spec.models.training import PLAIN, Loss
from spec.numbers.any_size import Polynomial
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault
from tests.support.schedules import PIECES, with_clipping
from tests.support.whole_runs import PlacesOfARun

LINES = {move.name: move for move in MOVES}
UNKNOWN = Symbol("unknown", 0, made_of="it is not known")
SAME_ON_ALL = ("weight", "moment", NORM)


def merged(form):
    """A form of which all that is not known is one symbol, without what cancels."""
    found = {}
    for (symbol, word), amount in form.items():
        term = symbol if symbol.known else UNKNOWN, word
        found[term] = found.get(term, 0) + amount
    return {term: amount for term, amount in found.items() if amount != 0}


def number(amount, size, factor=1):
    """A number of a table, for an axis of some size."""
    if not isinstance(amount, Polynomial):
        return Fraction(amount)
    value = {AXIS: size, FACTOR: factor}
    return sum(times * prod(value[name] ** e for name, e in powers) for powers, times in amount.terms)


@cache
def row(kind, first, of_target, size, factor):
    """operator -> what a line makes of it along its axis."""
    found = {}
    for ((made,), (read,)), amount in moved(LINES[kind], (first,), of_target).items():
        found.setdefault(read, []).append((made, number(amount, size, factor)))
    return found


@cache
def entry(first, place, source, operator, size):
    """How much of a source's value a device at a place has by an operator."""
    return number(entries((first,)).get(((place,), (source,), (operator,)), 0), size)


@cache
def sources(first, place, size):
    """Whose values a device at a place can see, of those that there are."""
    found = {s: number(n, size) for ((p,), (s,)), n in counts((first,)).items() if p == place}
    return tuple(source for source, count in found.items() if count > 0)


@cache
def spread(firsts, places):
    """The form of what devices at a place have, and no others."""
    per_axis = [
        [(o, Fraction(c)) for ((p,), (o,)), c in only((first,)).items() if p == place]
        for first, place in zip(firsts, places, strict=True)
    ]
    found = {}
    for terms in product(*per_axis):
        word = tuple(o for o, _ in terms)
        found[word] = found.get(word, 0) + prod(c for _, c in terms)
    return found


class LineRun:
    """The forms of places after lines, on axes of some sizes, by where the first device is on each.

    A word is of numbers of operators. `met`, `lost`: of lines that compute, as in
    `proofs.checking.symbolic_checker`, by the first device and by place.
    """

    def __init__(self, mesh, micro_steps, contributions, starts, training=PLAIN):
        self.axes, self.sizes, self.starts = tuple(mesh), tuple(mesh.values()), starts
        self.micro_steps, self.contributions = micro_steps, contributions
        self.training = training
        self.firsts = [*product(*((OWNER, FIRST) if n > 1 else (OWNER,) for n in self.sizes))]
        self.alone = (0,) * len(self.axes)  # the word of what each device has itself
        self.not_known = {(UNKNOWN, self.alone): Fraction(1)}
        self.forms = {}
        self.met, self.lost = {}, {}

    def right(self, line):
        """Whether the comparisons of a line come out equal everywhere, if it computes."""
        return all(met for (number, *_), met in self.met.items() if number == line)

    def there_are(self, firsts):
        """The places where there are devices."""
        return product(
            *(
                (*NAMED[first], *([OTHER] if n > len(NAMED[first]) else []))
                for first, n in zip(firsts, self.sizes, strict=True)
            )
        )

    def form(self, place, firsts):
        """What is in a place."""
        start = self.starts.get(place)
        kind = start and {"Weights": "weight", "Moments": "moment"}[start]
        begun = {(Symbol(kind, lines.NOW), self.alone): Fraction(1)} if start else self.not_known
        return self.forms.get((place, firsts), begun)

    def run(self, number, line):
        """Run a line of some number."""
        if line.shift:
            raise NotCovered("shifts")
        if line.kind in LINES:
            for firsts in self.firsts:
                self.forms[line.target, firsts] = merged(self._moved(line, firsts))
        elif line.kind == lines.BACKWARD.name:
            self._backward(number, line)
        elif line.kind == NORM:
            self._norm(number, line)
        elif line.kind == COUNT:
            made = {(Symbol("tokens", line.step, line.micro_step), self.alone): Fraction(1)}
            self.forms |= {(line.target, firsts): made for firsts in self.firsts}
        else:
            self._update(number, line)

    def _moved(self, line, firsts):
        """What a line makes of what is in its source and its target."""
        if line.kind == "release":
            return self.not_known
        a = self.axes.index(line.axis) if line.axis else 0
        found = {}
        for of_target, place in ((False, line.source), (True, line.target)):
            before = self.form(place, firsts) if place >= 0 else {}
            for (symbol, word), amount in before.items():
                factor = Fraction(line.factor) if symbol.known else 1
                made = row(line.kind, firsts[a], of_target, self.sizes[a], factor)
                for operator, times in made.get(word[a], ()):
                    term = symbol, (*word[:a], operator, *word[a + 1 :])
                    found[term] = found.get(term, 0) + times * amount
        return found

    def seen(self, form, firsts, places, symbol, from_):
        """How often a device sees a value of a source."""
        here = [*zip(firsts, places, from_, self.sizes, strict=True)]
        return sum(
            amount * prod(entry(f, p, q, o, n) for (f, p, q, n), o in zip(here, word, strict=True))
            for (of, word), amount in form.items()
            if of == symbol
        )

    def passes(self, place, firsts, needed):
        """By place, whether what is there compares equal with what is needed, and is known."""
        form, found = self.form(place, firsts), {}
        for places in self.there_are(firsts):
            here = zip(firsts, places, self.sizes, strict=True)
            who = [*product(*(sources(f, p, n) for f, p, n in here))]
            known = all(self.seen(form, firsts, places, UNKNOWN, each) == 0 for each in who)
            equal = True
            for symbol in {*needed, *(symbol for symbol, _ in form if symbol.known)}:
                everybody = [(EVERYBODY,) * len(self.axes)]
                of = everybody if symbol.kind in SAME_ON_ALL else who
                wanted = int(symbol in needed)
                equal &= all(self.seen(form, firsts, places, symbol, q) == wanted for q in of)
            found[places] = equal and known, known
        return found

    def _is_unknown(self, form):
        """Whether anything is not known of a form, on any device."""
        few = [i for i, n in enumerate(self.sizes) if n > 1]  # of one device all operators are one
        found = {}
        for (symbol, word), amount in form.items():
            if not symbol.known:
                of = tuple(word[i] for i in few)
                found[of] = found.get(of, 0) + amount
        return any(found.values())

    def _backward(self, number, line):
        needed, wrong, lost = [Symbol("weight", line.step)], False, False
        for firsts in self.firsts:
            reads = line.source, line.second
            found = [self.passes(place, firsts, needed) for place in reads]
            if not wrong and not all(equal for each in found for equal, _ in each.values()):
                wrong = True
                lost = any(self._is_unknown(self.form(place, firsts)) for place in reads)
        self.met[number,] = not wrong
        self.lost |= {(number, firsts): lost for firsts in self.firsts}
        symbol = Symbol("gradient", line.step, line.micro_step)
        if wrong:
            of_second_use = line.micro_step >= self.micro_steps
            symbol = wrong_one(number, "tied" if of_second_use else "gradient")
        for firsts in self.firsts:
            self.forms[line.second, firsts] = self.not_known
            made = {(symbol, self.alone): Fraction(1)}
            self.forms[line.target, firsts] = made | self.not_known if lost else made

    def _whole(self, line):
        """The contributions to a whole gradient."""
        return [Symbol("gradient", line.step, m) for m in range(self.contributions)]

    def _norm(self, number, line):
        """A norm is right if on the owners of its slices all compares equal. It is not known if any of
        them is not, or if they are otherwise where the first device is elsewhere.
        """
        along = [self.axes.index(axis) for axis in line.axes]
        right, lost = True, False
        for firsts in self.firsts:
            for places, (equal, known) in self.passes(line.source, firsts, self._whole(line)).items():
                right &= equal or any(places[x] != OWNER for x in along)
                lost |= not known
        slices = [self.form(line.source, firsts) for firsts in self.firsts]
        lost |= any(form != slices[0] for form in slices)
        self.met[number,] = right
        symbol = Symbol(NORM, line.step) if right else wrong_one(number, NORM)
        made = {(symbol, self.alone): Fraction(1)} | (self.not_known if lost else {})
        self.forms |= {(line.target, firsts): made for firsts in self.firsts}

    def _is_zero(self, place, firsts, places):
        """Whether a device at a place has nothing there, not even what is not known."""
        here = zip(firsts, places, self.sizes, strict=True)
        who = [*product(*(sources(f, p, n) for f, p, n in here)), (EVERYBODY,) * len(self.axes)]
        form = self.form(place, firsts)
        return not any(self.seen(form, firsts, places, s, of) for s, _ in form for of in who)

    def _update(self, number, line):
        counts = [Symbol("tokens", line.step, m) for m in range(self.micro_steps)]
        counted = self.training.loss is Loss.TOKEN_MEAN
        reads = (
            (line.source, [Symbol("weight", line.step)]),
            (line.second, [Symbol("moment", line.step)]),
            (line.third, self._whole(line)),
            *([(line.fourth, [Symbol(NORM, line.step)])] if self.training.clip else []),
            *([(line.fifth, counts)] if counted else []),
        )
        numbers = [read for read in reads[3:] if read[0] != NOWHERE]
        after = {}
        for firsts in self.firsts:
            found = [self.passes(place, firsts, needed) for place, needed in reads]
            for target, kind in ((line.target, "weight"), (line.second, "moment")):
                right, wrong = Symbol(kind, line.step + 1), wrong_one(number, kind)
                form = {}
                for places in product(*((*NAMED[first], OTHER) for first in firsts)):
                    met = all(each[places][0] for each in found if places in each)
                    lost = not all(each[places][1] for each in found[:3] if places in each)
                    divides = line.fifth != NOWHERE
                    lost |= divides and not self.form(line.fifth, firsts)  # nothing is known over zero
                    if not self._is_zero(line.third, firsts, places):
                        of = [self.passes(place, firsts, needed) for place, needed in numbers]
                        lost |= not all(each[places][1] for each in of if places in each)
                    self.met[number, firsts, places] = met
                    self.lost[number, firsts, places] = lost
                    for word, amount in spread(firsts, places).items():
                        for symbol in (right if met else wrong, *([UNKNOWN] if lost else [])):
                            form[symbol, word] = form.get((symbol, word), 0) + amount
                after[target, firsts] = merged(form)
        self.forms |= after

    def kept(self, kept_as, kept_axes, step):
        """Whether every kept copy compares equal at the end of a step, where it is kept."""
        return all(
            equal
            for place, start in kept_as.items()
            for firsts in self.firsts
            for places, (equal, _) in self.passes(
                place, firsts, [Symbol("moment" if "Moment" in start else "weight", step + 1)]
            ).items()
            if all(places[self.axes.index(axis)] == OWNER for axis in kept_axes[place])
        )


def wrong_one(number, what):
    """What a line got wrong."""
    return Symbol("wrong", 0, number, what)


class Observed(Forms):
    """The checker, whose faults are remembered, by the operation that made them."""

    def __init__(self, *args, **others):
        super().__init__(*args, **others)
        self.faults = {}

    def _fault(self, reason, what, identity, made_of):
        form = super()._fault(reason, what, identity, made_of)
        ((symbol, _),) = form
        self.faults[self.step, self.op_index, what] = symbol
        return form


@dataclass
class Beside:
    """At the end of each step: whether the checker is content, whether T4's comparisons are equal."""

    accepted: list[bool]
    equal: list[bool]


def stepped(schedule, domain, store, micro_steps, step):
    """The operations of a step, each executed over a domain."""
    domain.step, domain.updated = step, False
    for index, (micro_step, op) in enumerate(schedule.flat(micro_steps)):
        domain.micro_step, domain.op_index, domain.op = micro_step, index, op
        execute(op, schedule, domain, store, micro_step)
        yield step, index
    domain.op_index, domain.op, domain.updated = -1, None, True


def checked(schedule, mesh, micro_steps, policy, firsts, steps):
    """The checker's stores after each operation, and whether each step's end is right."""
    others, every = OtherElements(news=True), {}
    while others.news:
        others.news = False
        for first in firsts:
            roots = dict(zip(schedule.axes, first, strict=True))
            forms = Observed(schedule, mesh, micro_steps, policy, None, roots, True, others=others)
            store = initial(schedule, forms, forms.symbol("weight", 0), forms.symbol("moment", 0))
            stores, ends = {(-1, 0): dict(store)}, []
            for step in range(steps):
                for at in stepped(schedule, forms, store, micro_steps, step):
                    stores[at] = dict(store)
                try:
                    require_agreed(forms, store, schedule)
                    ends.append(True)
                except Rejected:
                    ends.append(False)
            every[first] = forms, stores, ends
        others.news &= len(firsts) > 1
    return every


def run_beside(schedule, mesh, micro_steps, policy, steps):
    """Run a schedule both ways. Raises AssertionError where a form is another; NotCovered, Rejected."""
    places = PlacesOfARun(schedule, mesh, micro_steps, policy)
    store, training = places.initial(), schedule.training
    along = {a: mesh[a] for a in schedule.axes}
    run = LineRun(along, micro_steps, places.contributions, places.starts, training)
    every = checked(schedule, mesh, micro_steps, policy, run.firsts, steps)
    equal, done, wrong = [], 0, {}
    for forms, *_ in every.values():
        if len({*forms.faults.values()}) < len(forms.faults):
            raise NotCovered("wrong values that the checker takes for one")

    def go_on(at):
        nonlocal done
        for number, line in enumerate(places.lines[done:], done):
            run.run(number, line)
            if not run.right(number):
                wrong[number] = at
        done = len(places.lines)

    def compare(at):
        for first, (forms, stores, _) in every.items():
            assert {p: host for p, (host, _) in stores[at].items()} == {
                p: host for p, (host, _) in store.items()
            }
            for slot, (_, form) in stores[at].items():
                if store[slot][1] in places.norms or store[slot][1] in places.applied:
                    continue  # no line makes these
                mine = as_checked(run.form(store[slot][1], first), forms, run.axes, wrong)
                assert seen(form, forms) == seen(mine, forms), (at, slot)

    go_on((-1, 0))
    compare((-1, 0))
    for step in range(steps):
        for at in stepped(schedule, places, store, micro_steps, step):
            go_on(at)
            compare(at)
        places.end_step(store)
        go_on((step, -1))
        there_is_one = any(name.startswith("Weight") for name in places.kept_as.values())
        equal.append(
            there_is_one and run.kept(places.kept_as, places.kept_axes, step)
        )  # one to continue from
    ends = zip(*(ends for *_, ends in every.values()), strict=True)
    return Beside([all(end) for end in ends], equal)


def as_checked(form, forms, axes, wrong):
    """T4's form with the checker's names for what lines got wrong."""
    found = {}
    for (symbol, axis_word), amount in form.items():
        word = tuple(
            OPERATORS[o] for o, a in zip(axis_word, axes, strict=True) if a in forms.axes
        )  # along an axis of one device every operator is the identity
        if symbol.kind == "wrong":
            fault = (*wrong[symbol.which], symbol.made_of)
            assert fault in forms.faults
            symbol = forms.faults[fault]
        elif symbol.kind == "gradient" and symbol.which >= forms.micro_steps:
            symbol = Symbol("tied", symbol.step, symbol.which - forms.micro_steps)
        found[symbol, word] = found.get((symbol, word), 0) + amount
    return found


def seen(form, forms):
    """What a form comes to on each kind of device; of all that is not known, whether there is any."""
    form = merged({term: amount for term, amount in form.items() if term[0].kind != LACKING})
    at = {p: forms.at(form, p) for p in forms.positions()}
    return {
        p: (
            {term: amount for term, amount in found.items() if term[0].known},
            any(not symbol.known for symbol, _ in found),
        )
        for p, found in at.items()
    }


def agree_on_lines(schedule, mesh, micro_steps, policy, steps=6):
    """The checker's forms and its verdict are those that T4 has of the schedule's lines; the verdict.

    Raises AssertionError where they differ, NotCovered.
    """
    verdict = check(schedule, mesh, micro_steps, policy)
    try:
        run = run_beside(schedule, mesh, micro_steps, policy, steps)
    except Rejected:  # before anything is compared
        assert verdict.rule == "room"
        return verdict
    assert run.accepted == run.equal
    if verdict.accepted:
        assert all(run.equal)
    elif verdict.step < SETTLED_WITHIN:  # before what never settles may be anything
        assert run.equal.index(False) == verdict.step
    return verdict


PLAIN_PIECES = ("plain", "mean", "token mean", "loss scale", "tied parameters")
CLIPS = (lambda schedule: schedule), with_clipping


def agree_on_named_strategies():
    """Named strategies, and real training in them, are accepted both ways."""
    for placement in STRATEGIES.values():
        schedule = derive(placement)
        for piece, clips in product(PLAIN_PIECES, CLIPS) if schedule.finish else ():
            for devices in (1, 2, 3):
                mesh = dict.fromkeys(schedule.axes, devices)
                made = clips(PIECES[piece](schedule))
                assert agree_on_lines(made, mesh, 2, MIXED_ADAM, 2).accepted, (piece, devices)


def agree_on_faults(names):
    """Each single fault in named strategies that clip is judged alike."""
    for name in names:
        for faulty in with_one_fault(with_clipping(derive(STRATEGIES[name]))):
            with suppress(NotCovered):
                agree_on_lines(faulty, dict.fromkeys(faulty.axes, 3), 2, MIXED_ADAM, 3)


if __name__ == "__main__":
    agree_on_named_strategies()
    agree_on_faults(["zero1", "zero3"])
