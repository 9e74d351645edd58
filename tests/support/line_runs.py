"""T4's run of lines, on numbers; and a schedule run by it and by the checker beside it."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from proofs.checking import lines
from proofs.checking.form_needs import ACTIVATIONS, KEPT, OLD_MOMENT, OLD_WEIGHT, VIEW, WHOLE
from proofs.checking.lines import FIRST, MOVES, NAMED, OPERATORS, OWNER, UNKNOWN, Checker
from proofs.checking.operation_lines import NotCovered, Places
from proofs.checking.symbolic_checker import by_place
from proofs.checking.symbols import PLACES
from proofs.trusted.terms import TRUE, Implies, RealVal
from spec.checking.forms import LACKING, Forms, OtherElements, Rejected
from spec.checking.verdict import SETTLED_WITHIN, check, require_agreed
from spec.checking.words import Symbol
from spec.derivation.derive import derive
from spec.devices.operators import KEEP, OTHER
from spec.meaning.semantics import execute, initial
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault
from tests.support.schedules import PIECES

LINES = {move.name: move for move in MOVES}
NOT_KNOWN = {(UNKNOWN, (KEEP,)): 1}


def merged(form):
    """A form of which all that is not known is one symbol, without what cancels."""
    found = {}
    for (symbol, word), amount in form.items():
        term = symbol if symbol.known else UNKNOWN, word
        found[term] = found.get(term, 0) + amount
    return {term: amount for term, amount in found.items() if amount != 0}


def said(formula):
    """Whether a formula without variables holds."""
    return formula is TRUE


@cache
def compared(need, n, first, symbol, amounts):
    """The checker's comparison of one symbol, by place."""
    found = need.said(n, first, symbol, list(amounts))
    return {place: said(formula) for place, formula in found.items()}


@cache
def only_at(place, first, n):
    """The numbers by which the proof writes what devices at a place have."""
    found = by_place(lambda p: RealVal(int(PLACES[place] == p)), first)
    return [Fraction(amount.of) for amount in found]


class LineRun:
    """The forms of places after lines, along an axis of n devices, by where the first device is.

    `met`, `lost`: of lines that compute, as in `proofs.checking.symbolic_checker`, by first device
    and place.
    """

    def __init__(self, n, micro_steps, contributions, starts):
        self.n, self.starts = Fraction(n), starts
        self.micro_steps, self.contributions = micro_steps, contributions
        self.firsts = (OWNER, FIRST) if n > 1 else (OWNER,)
        self.forms = {}
        self.met, self.lost = {}, {}

    def right(self, number):
        """Whether the comparisons of a line come out equal everywhere, if it computes."""
        return all(met for (line, *_), met in self.met.items() if line == number)

    def there_are(self, first):
        """The places where there are devices."""
        return (*NAMED[first], *([OTHER] if self.n > len(NAMED[first]) else []))

    def form(self, place, first):
        """What is in a place."""
        if (place, first) not in self.forms:
            start = self.starts.get(place)
            found = lines.started(start, self.n, first) if start else NOT_KNOWN
            self.forms[place, first] = merged(found)
        return self.forms[place, first]

    def run(self, number, line):
        """Run a line of some number."""
        if line.shift:
            raise NotCovered("shifts")
        if line.kind in LINES:
            for first in self.firsts:
                source, target = (
                    self.form(place, first) if place >= 0 else {}
                    for place in (line.source, line.target)
                )
                after = LINES[line.kind].after(source, target, self.n, first, Fraction(line.factor))
                self.forms[line.target, first] = merged(after)
        elif line.kind == lines.BACKWARD.name:
            self._backward(number, line)
        else:
            self._update(number, line)

    def passes(self, need, place, first, step):
        """By place, whether what is there compares equal, and whether it is known."""
        form, checker = self.form(place, first), Checker(self.n, first, lines.schedule())
        needed = [] if need.state is None else [need.state]
        if need is WHOLE:
            needed = [Symbol("gradient", lines.NOW, m) for m in range(self.contributions)]
        symbols = {symbol for symbol, _ in form if symbol.known}
        back = {symbol._replace(step=symbol.step - step): symbol for symbol in symbols}
        equal = dict.fromkeys(self.there_are(first), True)
        for symbol in {*back, *needed}:
            own = back.get(symbol)
            amounts = tuple(Fraction(form.get((own, (op,)), 0)) for op in OPERATORS)
            if symbol.kind == "gradient" and symbol.step == lines.NOW:
                symbol = symbol._replace(which=0)  # as those of other micro-steps
            said_at = compared(need, self.n, first, symbol, amounts)
            equal = {p: equal[p] and said_at.get(p, True) for p in equal}
        of_unknown = {term: amount for term, amount in form.items() if not term[0].known}
        found = {}
        for p, same in equal.items():
            seen = checker.sees(of_unknown, p)
            known = all(said(Implies(there, amount == 0)) for there, amount in seen)
            found[p] = same and (known or (need.of_slices and p != OWNER)), known
        return found

    def _is_unknown(self, form):
        """Whether anything is not known of a form; on one device every operator is the identity."""
        amounts = [amount for (symbol, _), amount in form.items() if not symbol.known]
        return sum(amounts) != 0 if self.n == 1 else bool(amounts)

    def _backward(self, number, line):
        reads = (VIEW, line.source), (ACTIVATIONS, line.second)
        wrong, lost = False, False
        for first in self.firsts:
            found = [self.passes(need, place, first, line.step) for need, place in reads]
            if not wrong and not all(equal for each in found for equal, _ in each.values()):
                wrong = True
                lost = any(self._is_unknown(self.form(place, first)) for _, place in reads)
        self.met[number, OWNER, OWNER] = not wrong
        self.lost |= {(number, first, OWNER): lost for first in self.firsts}
        of_second_use = line.micro_step >= self.micro_steps
        symbol = Symbol("gradient", line.step, line.micro_step)
        if wrong:
            symbol = wrong_one(number, "tied" if of_second_use else "gradient")
        for first in self.firsts:
            self.forms[line.second, first] = NOT_KNOWN
            made = {(symbol, (KEEP,)): 1}
            self.forms[line.target, first] = made | NOT_KNOWN if lost else made

    def _update(self, number, line):
        reads = (OLD_WEIGHT, line.source), (OLD_MOMENT, line.second), (WHOLE, line.third)
        after = {}
        for first in self.firsts:
            found = [self.passes(need, place, first, line.step) for need, place in reads]
            for target, kind in ((line.target, "weight"), (line.second, "moment")):
                right, wrong = Symbol(kind, line.step + 1), wrong_one(number, kind)
                form = {}
                for p in (*NAMED[first], OTHER):
                    met = all(each[p][0] for each in found if p in each)
                    lost = not all(each[p][1] for each in found if p in each)
                    self.met[number, first, p], self.lost[number, first, p] = met, lost
                    for op, amount in zip(OPERATORS, only_at(p, first, self.n), strict=True):
                        for symbol in (right if met else wrong, *([UNKNOWN] if lost else [])):
                            form[symbol, (op,)] = form.get((symbol, (op,)), 0) + amount
                after[target, first] = merged(form)
        self.forms |= after

    def kept(self, kept_as, step):
        """Whether every kept copy compares equal at the end of a step."""
        return all(
            equal
            for place, start in kept_as.items()
            for first in self.firsts
            for equal, _ in self.passes(KEPT[start], place, first, step).values()
        )


def wrong_one(number, what):
    """What a line got wrong."""
    return Symbol("wrong", 0, number, what)


class PlacesOfT4(Places):
    """Places of values that T4 covers: without norms."""

    def square_norm(self, *_):
        raise NotCovered("norms")

    clip = square_norm


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
    (axis,) = schedule.axes
    others, every = OtherElements(news=True), {}
    while others.news:
        others.news = False
        for first in firsts:
            forms = Observed(
                schedule, mesh, micro_steps, policy, None, {axis: first}, True, others=others
            )
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
    if len(schedule.axes) != 1:
        raise NotCovered("several axes")
    places = PlacesOfT4(schedule, mesh, micro_steps, policy)
    (axis,) = schedule.axes
    store = places.initial()
    run = LineRun(mesh[axis], micro_steps, places.contributions, places.starts)
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
                mine = as_checked(run.form(store[slot][1], first), forms, wrong)
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
        equal.append(there_is_one and run.kept(places.kept_as, step))  # one to continue from
    ends = zip(*(ends for *_, ends in every.values()), strict=True)
    return Beside([all(end) for end in ends], equal)


def as_checked(form, forms, wrong):
    """T4's form with the checker's names for what lines got wrong."""
    found = {}
    for (symbol, axis_word), amount in form.items():
        word = axis_word if forms.axes else ()  # of one device every operator is the identity
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
    if schedule.training.clip:
        raise NotCovered("clips")
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


PLAIN_PIECES = ("plain", "mean", "loss scale", "tied parameters")


def agree_on_named_strategies():
    """Named strategies along one axis, and real training in them, are accepted both ways."""
    for placement in STRATEGIES.values():
        schedule = derive(placement)
        for piece in PLAIN_PIECES if len(schedule.axes) == 1 and schedule.finish else ():
            for devices in (1, 2, 3):
                mesh = dict.fromkeys(schedule.axes, devices)
                made = PIECES[piece](schedule)
                assert agree_on_lines(made, mesh, 2, MIXED_ADAM, 2).accepted, (piece, devices)


def agree_on_faults(names):
    """Each single fault in named strategies is judged alike."""
    for name in names:
        for faulty in with_one_fault(derive(STRATEGIES[name])):
            with suppress(NotCovered):
                agree_on_lines(faulty, dict.fromkeys(faulty.axes, 3), 2, MIXED_ADAM, 3)


if __name__ == "__main__":
    agree_on_named_strategies()
    agree_on_faults(["zero1", "zero3"])
