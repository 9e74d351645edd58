"""T4: what it supposes of steps is so of the checker's runs."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from proofs.checking.all_steps import AllSteps
from proofs.checking.axis_tables import UNKNOWN
from proofs.checking.beside import Observed, as_checked, seen
from proofs.checking.line_run import LineRun
from proofs.checking.lines import FIRST, OPERATORS, OWNER
from proofs.checking.operation_lines import LineAt
from proofs.checking.representation import Represented
from proofs.plans.listing import listing
from proofs.trusted.kernel import Kernel
from spec.checking.symbols import Symbol
from spec.checking.verdict import UNSETTLED
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few
from tests.support.mesh_values import LinesOfARun

STEPS, MICRO_STEPS, SETTLED, FEW = 4, 5, 1, 1
KINDS = {"Weight": "weight", "Moment": "moment", "Gradient": "gradient"}
WHOLE = {"Weight_slices": -1, "Moment_slices": -2}  # places that slices are cut from


class FormsOfARun(LinesOfARun):
    """A listed schedule's run over some steps: the forms in places before each line."""

    def __init__(self, name, devices, extra=(), of_micro_steps=()):
        schedule = schedule_of(STRATEGIES[name])
        super().__init__(*(devices for _ in schedule.axes))
        listed = listing(schedule)
        self.axes = schedule.axes
        starts = {p: s for p, s in listed.starts.items() if s in ("Weights", "Moments")}
        starts |= {WHOLE["Weight_slices"]: "Weights", WHOLE["Moment_slices"]: "Moments"}
        run = LineRun(dict.fromkeys(self.axes, devices), MICRO_STEPS, MICRO_STEPS, starts)
        for place, start in listed.starts.items():
            if start in WHOLE:
                for number, axis in enumerate(listed.slices[place]):
                    assert number == 0
                    run.run(-1, LineAt("keep", place, WHOLE[start], axis=axis))
            elif "Zero" in start:
                run.run(-1, LineAt("zero", place))
        body = [*listed.lines[: listed.body], *of_micro_steps]
        finish = [*listed.lines[listed.body :], *extra]
        self.lines = [
            replace(line, step=u, micro_step=m)
            for u in range(STEPS)
            for m, lines in [*((m, body) for m in range(MICRO_STEPS)), (MICRO_STEPS - 1, finish)]
            for line in lines
        ]
        self.forms_before = []
        for number, line in enumerate(self.lines):
            self.forms_before.append(dict(run.forms))
            run.run(number, line)
        self.forms_before.append(run.forms)
        self.run, self.places = run, {*listed.starts}
        self.length, self.span = len(self.lines) // STEPS, len(body)
        self.names = [
            *((what, u, 0) for what in ("Weight", "Moment") for u in range(STEPS + 1)),
            *(("Gradient", u, m) for u in range(STEPS) for m in range(MICRO_STEPS)),
        ]
        self.fixed = {
            **{"settled": SETTLED, "length": self.length, "closes": self.length},
            **{"last": len(self.lines), "micro_steps": MICRO_STEPS},
            **{"turns": MICRO_STEPS, "span": self.span, "few": FEW},
        }

    def line(self, t):
        return self.lines[t] if 0 <= t < len(self.lines) else self.lines[0]

    def axis(self, t):
        return self.axes.index(self.line(t).axis) if self.line(t).axis else 0

    def begins(self, u):
        return u * self.length

    def opens(self, u, m):
        return self.begins(u) + m * self.span

    def turn(self, t):
        return self.line(t).micro_step

    def ends(self, u):
        return self.begins(u + 1)

    def step(self, t):
        return self.line(t).step

    def micro_step(self, t):
        return self.line(t).micro_step

    def what(self, s):
        return self.names[s][0]

    def time(self, s):
        return self.names[s][1]

    def which(self, s):
        return self.names[s][2]

    def named(self, what, u, m):
        return self.names.index((what, u, m)) if (what, u, m) in self.names else 0

    def earlier(self, s, steps, lines):
        return self.named(self.what(s), self.time(s) - steps, self.which(s))

    def had(self, s, steps, lines):
        return steps == 0 or self.time(s) >= steps

    def of_micro_steps(self, known, u, s):
        return known and self.what(s) == "Gradient" and self.time(s) == u

    def before(self, known, u, s):
        moved = self.of_micro_steps(known, u, s)
        return self.named(self.what(s), self.time(s), self.which(s) - 1) if moved else s

    def has_before(self, known, u, s):
        return not self.of_micro_steps(known, u, s) or self.which(s) > 0

    def coefficient(self, known, b, s, word, f, t):
        what, u, m = self.names[s]
        symbol = Symbol(KINDS[what], u, m) if known else UNKNOWN
        firsts = tuple(f(a) for a in range(len(self.sizes)))
        words = tuple(word(a) for a in range(len(self.sizes)))
        form = self.forms_before[t].get(
            (b, firsts), self.run.form(b, firsts) if b in self.run.starts else {}
        )
        return form.get((symbol, words), Fraction(0))

    def all_forms(self):
        """Values for the variables of a form."""
        axes = range(len(self.sizes))
        words = product(range(8), repeat=len(axes))
        for b, s, word, firsts, known in product(
            sorted(self.places), range(len(self.names)), words, self.run.firsts, (True, False)
        ):
            yield {
                **{"b": b, "s": s, "is_known": known},
                **{"word": word.__getitem__, "f": firsts.__getitem__},
            }


def all_steps():
    language = Represented(Kernel("steps"))
    language.follows()
    return AllSteps(language)


@pytest.fixture(scope="module")
def checker():
    return all_steps()


def assert_supposed(checker, run):
    """That what is supposed of steps is so of a run."""
    alike = [{"u": u, "h": h} for u in range(STEPS + 1) for h in range(-1, run.length + 1)]
    turns = [{"u": u, "m": m} for u in range(STEPS) for m in range(-1, MICRO_STEPS + 1)]
    of_turns = [at | {"h": h} for at in turns for h in range(-1, run.span + 1)]
    steps = [at | {"u": u} for at in run.all_forms() for u in (0, SETTLED)]
    for supposed, values in (
        (checker.follow, [{"u": u} for u in range(STEPS)]),
        (checker.there_is_one, [{}]),
        (checker.numbers, [{"t": t} for t in range(-1, len(run.lines) + 2)]),
        (checker.same_lines, alike),
        (checker.repeats, run.all_forms()),
        (checker.there_are_some, [{}]),
        (checker.one_by_one, turns),
        (checker.in_turns, [{"t": t} for t in range(-1, len(run.lines) + 2)]),
        (checker.same_in_turns, of_turns),
        (checker.adds_the_same, steps),
        (checker.in_their_turns, [{"t": t} for t in range(-1, len(run.lines) + 2)]),
    ):
        for value in values:
            assert run.value(supposed.goal, value), (supposed.name, value)


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "name"), few(product([1, 3], ["dp", "zero1", "zero3"])))
def test_what_is_supposed_of_steps_is_so_of_a_run(name, devices, checker):
    assert_supposed(checker, FormsOfARun(name, devices))


DOUBLED = LineAt("accumulate", 0, 0)


@pytest.mark.slow
def test_a_run_that_does_not_repeat_is_not_supposed_to(checker):
    run = FormsOfARun("dp", 3, (DOUBLED,))
    assert not all(run.value(checker.repeats.goal, value) for value in run.all_forms())


@pytest.mark.slow
def test_of_a_run_that_ends_before_nothing_is_supposed_to_repeat(checker):
    run = FormsOfARun("dp", 3, (DOUBLED,))
    run.fixed["settled"] = STEPS
    assert_supposed(checker, run)


@pytest.mark.slow
def test_a_micro_step_that_adds_more_than_the_one_before_is_not_supposed_to_add_the_same(checker):
    run = FormsOfARun("dp", 3, of_micro_steps=(DOUBLED,))
    said = checker.adds_the_same.goal
    assert not all(run.value(said, at | {"u": 0}) for at in run.all_forms())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dp", "zero3"])
def test_what_is_proved_of_micro_steps_is_so_of_a_run(name, checker):
    run = FormsOfARun(name, 2)
    opened = [run.opens(0, m) for m in range(MICRO_STEPS + 1)]
    spared = 0
    for at in (each for each in run.all_forms() if each["is_known"]):
        for theorem, values in (
            (checker.unborn, [{"t": t} for t in opened]),
            (checker.left, [{"u": 0, "m": m} for m in range(MICRO_STEPS + 1)]),
            (checker.stays, [{"u": 0, "more": m} for m in range(MICRO_STEPS + 1)]),
            (checker.after_alike, [{"t": t} for t in (opened[-1], run.length)]),
        ):
            for value in values:
                given = all(run.value(each, at | value) for each in theorem.given)
                assert not given or run.value(theorem.goal, at | value), (theorem.name, at, value)
                spared += given and theorem is checker.after_alike
    assert spared


PLACE, OTHER = 5, 6  # what is given up in part, and what is written there instead


@pytest.mark.parametrize("of_owners", [False, True])
@pytest.mark.parametrize("name", ["zero1", "hsdp"])
def test_what_the_checker_gives_up_lines_release(name, of_owners):
    """On owners along an axis, or on all others: as lines that release and keep leave it."""
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict.fromkeys(schedule.axes, 3)
    run = LineRun(mesh, MICRO_STEPS, MICRO_STEPS, {})
    axis, number = schedule.axes[0], 0
    for first, operator in product(run.firsts, range(len(OPERATORS))):
        if FIRST in OPERATORS[operator] and first[number] == OWNER:
            continue  # the first device is the owner
        roots = dict(zip(schedule.axes, first, strict=True))
        forms = Observed(schedule, mesh, MICRO_STEPS, MIXED_ADAM, None, roots, True)
        word = tuple(operator if other == axis else 0 for other in schedule.axes)
        value = {(Symbol("gradient", 0, 0), word): Fraction(1)}
        given_up = as_checked(value, forms, run.axes, {})
        for position in forms.device_kinds():
            if (position[number] == OWNER) is of_owners:
                given_up = forms.with_at(given_up, forms.unknown(UNSETTLED), position)
        run.forms |= {(PLACE, each): value for each in run.firsts}
        if of_owners:
            lines = [LineAt("release", OTHER), LineAt("keep", PLACE, OTHER, axis=axis)]
        else:
            copy, release = LineAt("copy", OTHER, PLACE), LineAt("release", PLACE)
            lines = [copy, release, LineAt("keep", PLACE, OTHER, axis=axis)]
        for line in lines:
            run.run(-1, line)
        assert seen(as_checked(run.form(PLACE, first), forms, run.axes, {}), forms) == seen(
            given_up, forms
        )
