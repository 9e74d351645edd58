"""Operations are lines of T4: the checker's forms and its verdict are what T4 has of these lines."""

from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.checking import lines
from proofs.checking.axis_tables import UNKNOWN, words
from proofs.checking.beside import judged
from proofs.checking.line_run import LineRun
from proofs.checking.lines import NOW, OPERATORS
from proofs.checking.operation_lines import LineAt, NotCovered
from proofs.checking.symbolic_checker import CheckedLanguage
from proofs.checking.symbols import BACKWARD, KINDS, MOMENT, PLACES, UPDATE, WEIGHT, WRONG, WRONG_MOMENT
from proofs.checking.whole_runs import PlacesOfARun
from proofs.trusted.kernel import Kernel
from proofs.trusted.oracle import ask
from proofs.trusted.terms import FALSE, TRUE, Distinct, IntVal, Or, Store
from spec.checking.symbols import Symbol
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM, POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support import by_hand
from tests.support.broken import notices
from tests.support.by_hand import MICRO, RESET, SUM, B, K, op, written
from tests.support.damage import damaged
from tests.support.examples import examples
from tests.support.line_runs import (
    CLIPS,
    PLAIN_PIECES,
    agree_on_faults,
    agree_on_named_strategies,
)
from tests.support.schedules import (
    PIECES,
    cancelled,
    made_up,
    placements,
    training,
    with_tied_parameters,
)

N, T = 3, 5  # devices, and the number of a line
KINDS_OF = {**KINDS, lines.BACKWARD.name: BACKWARD, lines.UPDATE.name: UPDATE}
SOURCE, SECOND, THIRD, TARGET = range(4)


# ------------------------------------------------------------- whole schedules
@pytest.mark.slow
def test_named_strategies_are_accepted_as_lines():
    agree_on_named_strategies()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dp", "zero1", "zero2", "zero3", "fsdp", "zero-offload"])
def test_single_faults_are_judged_as_lines(name):
    agree_on_faults([name])


@st.composite
def covered(draw):
    """A schedule on one axis or two, perhaps damaged, mostly of what T4 covers."""
    policy = POLICIES[draw(st.sampled_from(["mixed-adam", "fp32-adam", "fp32-sgd"]))]
    source = draw(st.sampled_from(["derived", "derived", "made up", "cancelled"]))
    if source == "derived":
        placement = draw(st.one_of(placements(), st.just(STRATEGIES["hsdp"])))
        schedule = PIECES[draw(st.sampled_from(PLAIN_PIECES))](schedule_of(placement))
        schedule = draw(st.sampled_from(CLIPS))(schedule)
        schedule = draw(damaged(schedule)) if draw(st.integers(0, 3)) else schedule
    else:
        schedule = draw(made_up() if source == "made up" else cancelled())
        schedule = training(schedule, clip=False, statistics=None)
    mesh = {axis: draw(st.integers(1, 4)) for axis in schedule.axes}
    return schedule, mesh, draw(st.integers(1, 3)), policy


@pytest.mark.slow
@examples(150)
@given(covered())
def test_forms_and_verdicts_are_those_of_lines(case):
    try:
        judged(*case)
    except NotCovered:
        return


SHIFTED = op(K.KEEP, B.FRESH, within=("d",), shift=1)
SHARED = (
    op(K.FORWARD, B.PARAMETERS, B.ACTIVATIONS),
    op(K.BACKWARD, B.PARAMETERS, B.GRADIENTS, ("d",)),
)
CLIP = (
    op(K.SQUARE_NORM, B.GRADIENTS, B.NORM, within=("d",)),
    op(K.ALL_REDUCE, B.NORM, axes=("d",)),
    op(K.CLIP, B.GRADIENTS, by=B.NORM),
)
UNMEANT = written(MICRO, (SUM, *CLIP, by_hand.UPDATE, RESET))
TWICE = training(written(MICRO, (SUM, *CLIP[:2], *CLIP[1:], by_hand.UPDATE, RESET)), clip=True)
NOT_COVERED = [
    ("clips in training that does not clip", UNMEANT, MIXED_ADAM),
    ("sums of norms of whole gradients, or of norms that are summed already", TWICE, MIXED_ADAM),
    (
        "counts of tokens beside tied parameters",
        with_tied_parameters(PIECES["token mean"](schedule_of(STRATEGIES["dp"]))),
        MIXED_ADAM,
    ),
    ("statistics", PIECES["mean statistics"](schedule_of(STRATEGIES["dp"])), MIXED_ADAM),
    ("shifts", written((*MICRO[:2], SHIFTED, *MICRO[2:]), (SUM, by_hand.UPDATE, RESET)), MIXED_ADAM),
    ("samples that several devices share", written(SHARED, (by_hand.UPDATE, RESET)), MIXED_ADAM),
]


@pytest.mark.parametrize(("name", "schedule", "policy"), NOT_COVERED, ids=[n for n, *_ in NOT_COVERED])
def test_what_is_not_covered_is_named(name, schedule, policy):
    with pytest.raises(NotCovered) as no:
        judged(schedule, dict.fromkeys(schedule.axes, 2), 1, policy, 1)
    assert str(no.value) == name


# ------------------------------------------------------------------- one by one
@pytest.mark.parametrize("line", lines.MOVES, ids=lambda line: line.name)
def test_a_line_done_to_places_is_that_line(line):
    places = PlacesOfARun(written((), ()), {"d": N, lines.FACTOR: 2}, 1, MIXED_ADAM)
    found = line.of(places, SOURCE, TARGET)
    done = [each for each in places.lines if each.kind != "copy"]
    if line.name == "copy":
        assert (done, found) == ([], SOURCE)
    elif line.name == "release":
        assert (done, found in places.starts) == ([], False)
    else:
        reads = () if line.name == "zero" else (SOURCE,)
        assert [(each.kind, each.source) for each in done] == [(line.name, *(reads or (-1,)))]
        before = [each for each in places.lines if each not in done]
        assert all((each.source, each.target) == (TARGET, found) for each in before)


ON_TWO = {"d": 3, "e": 2}  # devices along two axes


@pytest.fixture(scope="module")
def language():
    return CheckedLanguage(Kernel("on numbers"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"),
    [(k, seed) for k in KINDS_OF for seed in ((2, 3) if k in KINDS else (0, 1, 2))],
)
def test_a_line_on_numbers_is_the_proofs(kind, seed, language):
    random = Random(seed)
    run = LineRun(ON_TWO, 2, 2, {})
    factor = Fraction(random.randint(-3, 3), 2)
    axis = random.choice([*ON_TWO])
    line = LineAt(kind, TARGET, SOURCE, SECOND, THIRD, factor, axis=axis)
    gradient = Symbol("gradient", NOW, 0)
    right = {SOURCE: Symbol("weight", NOW), SECOND: Symbol("moment", NOW)}
    if kind == lines.BACKWARD.name:
        right[SECOND] = Symbol("weight", NOW)
    for place, firsts in product(range(4), run.firsts):
        form = {}
        for symbol in (gradient, UNKNOWN) if kind not in ("backward", "update") or seed == 2 else ():
            for word in random.sample([*words(firsts)], 8):
                form[symbol, word] = Fraction(random.randint(0, 3))
        if place in right and seed < 2:
            form[right[place], run.alone] = Fraction(1 + seed)
        run.forms[place, firsts] = {term: c for term, c in form.items() if c}
    before = dict(run.forms)
    run.run(T, line)
    for firsts, known in product(random.sample(run.firsts, 1), (TRUE, FALSE)):
        _same_as_recursion(language, run, before, line, firsts, known, random)


def _same_as_recursion(l, run, before, line, firsts, known, random):
    """The coefficients after a line are those of the recursion that T4 is about."""
    where = dict(zip((l.source, l.second, l.third, l.target), range(4), strict=True))
    mesh, axis = l.mesh, run.axes.index(line.axis)
    f = _array(l.f, firsts)
    facts = [l.n == 6, l.kind(T) == KINDS_OF[line.kind], l.step(T) == NOW, l.micro(T) == 0]
    facts += [mesh.axes == 2, mesh.axis(T) == axis]
    facts += [mesh.devices(i) == n for i, n in enumerate(run.sizes)]
    facts += [at(T) == place for at, place in where.items()]
    facts += [l.factor(T) == lines.real(line.factor), l.right(T) == run.right(T)]
    facts.append(l.spoils(f, T) == run.lost.get((T, firsts), False))
    for places in product((*PLACES,), repeat=2):
        for said, table in ((l.met, run.met), (l.lost, run.lost)):
            at_place = table.get((T, firsts, places), said is l.met)
            facts.append(said(f, _spread_at(l, places), T) == at_place)
    gradient = Symbol("gradient", NOW, 0)
    names = {
        gradient: l.contribution(IntVal(T)),
        Symbol("weight", NOW + 1): l.named(WEIGHT, NOW + 1, 0),
        Symbol("moment", NOW + 1): l.named(MOMENT, NOW + 1, 0),
        Symbol("wrong", 0, T, "weight"): l.named(WRONG, T, 0),
        Symbol("wrong", 0, T, "moment"): l.named(WRONG_MOMENT, T, 0),
    }
    facts.append(Distinct(*names.values()))
    if line.kind in KINDS:
        names = {gradient: names[gradient]}
    if line.kind == lines.BACKWARD.name:
        names[Symbol("wrong", 0, T, "gradient")] = names.pop(Symbol("wrong", 0, T, "weight"))
    for symbol, s in names.items() if known is TRUE else ((UNKNOWN, IntVal(0)),):
        after = {word for place in (SECOND, TARGET) for _, word in run.forms[place, firsts]}
        for word in {*random.sample(sorted(after), min(2, len(after))), (0, 5)}:
            told, wrong = [], []
            for place in (SECOND, TARGET):
                has = run.forms[place, firsts].get((symbol, word), 0)
                found = l.coefficient(known, place, s, _array(l.word, word), f, T + 1)
                wrong.append(found != lines.real(has))
                told += _told(l, run, before, place, firsts, known, symbol, s, word, axis, f)
            assert _said(*facts, *told) == "sat"
            assert _said(*facts, *told, Or(*wrong)) == "unsat", (symbol, firsts, word)


def _said(*formulas):
    return ask(formulas, values=False).said


def _array(base, numbers):
    """An array of numbers by axis."""
    for i, each in enumerate(numbers):
        base = Store(base, i, IntVal(each))
    return base


def _spread_at(l, places):
    """A place, as the proof writes it when it spreads a value over axes: the first axis first."""
    array = l.mesh.nowhere
    for i, place in enumerate(places):
        array = l.mesh.put(array, l.mesh.axes - 1 - (1 - i), IntVal(PLACES[place]))
    return array


def _told(l, run, before, b, firsts, known, symbol, s, word, axis, f):
    """What a coefficient after a line is said to be, and all that this is made of."""
    at = {"is_known": known, "s": s, "f": f, "word": _array(l.word, word), "t": T}
    w = at["word"]

    def coefficient(place, term, numbers):
        has = before[place, firsts].get((symbol, numbers), 0)
        return l.coefficient(known, place, s, term, f, T) == lines.real(has)

    told = [l.coefficient_next.at(b=b, **at).goal, coefficient(b, w, word)]
    for of_target, place in ((False, l.source), (True, l.target)):
        rows, has = [], []
        for q in range(len(OPERATORS)):
            row = {"o": w[l.mesh.axis(T)], "r": q, "at_f": f[l.mesh.axis(T)]}
            is_ = l.row_is[of_target].at(is_known=known, t=T, **row)
            told.append(is_.goal)
            rows.append(is_.goal.args[0])
            stored = l.mesh.put(w, l.mesh.axis(T), IntVal(q))
            has.append(l.coefficient(known, place(T), s, stored, f, T))
            of = TARGET if of_target else SOURCE
            moved = (*word[:axis], q, *word[axis + 1 :])
            told += [coefficient(of, stored, moved), stored == _array(l.word, moved)]
        columns = dict(zip(map(str, [*l.left, *l.right_one]), rows + has, strict=True))
        told.append(l.mixed_is.at(**columns).goal)
        told += [l.repeat_is.at(x0=x, z0=z).goal for x, z in zip(rows, has, strict=True)]
    numbers = [*PLACES.values()]
    for wrapped in (1, 0):
        x = l.mesh.axes - 1 - wrapped
        alone = [l.alone_is.at(at_p=p, o=w[x], at_f=f[x]) for p in numbers]
        told += [each.goal for each in alone]
        for places in product((*PLACES,), repeat=1 - wrapped):
            p = _spread_at(l, places)
            spread = l.spread_next.at(level=wrapped, p=p, b=b, **at).goal
            inner = [
                l.spread(known, T, b, s, w, f, l.mesh.put(p, x, IntVal(q)), wrapped) for q in numbers
            ]
            values = [*(each.goal.args[0] for each in alone), *inner]
            names = map(str, [*l.three[0], *l.three[1]])
            told += [spread, l.chosen_is.at(**dict(zip(names, values, strict=True))).goal]
            products = zip(values[:3], values[3:], strict=True)
            told += [l.repeat_is.at(x0=c, z0=y).goal for c, y in products]
    for places in product((*PLACES,), repeat=2):
        p = _spread_at(l, places)
        told.append(l.spread_none.at(p=p, b=b, **at).goal)
        told.append(l.placed_is.at(is_known=known, t=T, b=b, s=s, f=f, p=p).goal)
    return told


# ---------------------------------------------------------------------- mutants
MUTANTS = [
    # (what is wrong, folder, file, the rule, the broken rule)
    (
        "what is added to is forgotten",
        "proofs",
        "operation_lines.py",
        'return self._write("accumulate", other, self._copy(value))',
        'return self._write("accumulate", other, self.zero)',
    ),
    (
        "an update leaves the moments it read",
        "proofs",
        "operation_lines.py",
        "return made, moments",
        "return made, moment",
    ),
    (
        "a backward drops the parameters beside its activations",
        "proofs",
        "operation_lines.py",
        "second=self._copy(activations)",
        "second=activations",
    ),
    (
        "what is not known is zero",
        "proofs",
        "operation_lines.py",
        "return self._place()  # never written",
        "return self.zero",
    ),
    (
        "outside its slice a device has what is new",
        "proofs",
        "operation_lines.py",
        'self._write("keep", new, self._copy(old), axis=axis, shift=shift)',
        'self._write("keep", old, self._copy(new), axis=axis, shift=shift)',
    ),
    (
        "the second use is the first",
        "proofs",
        "operation_lines.py",
        "of = micro_step + self.micro_steps if tied else micro_step",
        "of = micro_step",
    ),
    (
        "a mean loss is a sum",
        "proofs",
        "operation_lines.py",
        "if self.schedule.training.loss is not Loss.MEAN:",
        "if True:",
    ),
    (
        "slices are compared everywhere",
        "proofs",
        "whole_runs.py",
        "self.kept_axes[place] = slices",
        "self.kept_axes[place] = ()",
    ),
    (
        "an accumulation overwrites",
        "spec",
        "semantics.py",
        "domain.add(read(target, host), fitting(read(source, host), cut(target)))",
        "fitting(read(source, host), cut(target))",
    ),
    (
        "a mean multiplies by n",
        "spec",
        "semantics.py",
        "tuple((axis, -1) for axis in along_devices(op.axes))",
        "tuple((axis, 1) for axis in along_devices(op.axes))",
    ),
    (
        "moments begin as the weights",
        "spec",
        "semantics.py",
        "{CONTENT: content, MOMENT: extra}",
        "{CONTENT: content, MOMENT: content}",
    ),
    (
        "an update that is wrong somewhere is wrong everywhere",
        "spec",
        "forms.py",
        "if all(reasons.values()) and not spoiled:",
        "if True:",
    ),
    (
        "what is wrong is known",
        "spec",
        "forms.py",
        "return add(fault, self.unknown(GOT_WRONG)) if not_known else fault",
        "return fault",
    ),
    (
        "a gradient may be of stale activations",
        "spec",
        "forms.py",
        'self._fresh(read, "its activations are", "those of "),\n        )\n        computed',
        'self._fresh(view, "its activations are", "those of "),\n        )\n        computed',
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "folder", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_t4_notices_a_broken_rule(wrong, folder, file, rule, broken):
    whole = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
    assert notices(*whole, file, rule, broken, folder=folder), wrong
