"""T4's hypotheses hold together: of three steps of three micro-steps, on two devices.

Two weights are clipped by one norm, and all is kept by each device; the same in slices, divided by a
count; and one weight, which is rejected, as its gradients are not summed.
"""

import random
import sys
from collections import Counter

import pytest

from proofs.checking.operation_lines import NOWHERE, LineAt
from proofs.premises import hypotheses, variables
from proofs.trusted.theorem import read
from tests.support.interpreted import Array, Interpreted
from tests.support.mesh_values import LinesOfARun
from tests.support.proved import proved

pytestmark = pytest.mark.slow

DEVICES, ELEMENTS, MICRO_STEPS, STEPS = map(range, (2, 3, 3, 3))
NORM, TOKENS, TOTAL = range(97, 100)
# of two weights; a backward drops the second of what it reads
PARAMETERS, VIEW, ACTIVATIONS, FRESH, SUM, MOMENTS = ((each, each + 10) for each in range(6))
PLACES = [*PARAMETERS, *VIEW, *ACTIVATIONS, *FRESH, *SUM, *MOMENTS, NORM, TOKENS, TOTAL, NOWHERE]
TRAINING = "training"  # a run; others are made for what is wrong
KINDS = ("Weight", "Moment", "Gradient", "Wrong", "Whole_norm", "Tokens", "Wrong_moment")
OF_MICRO_STEPS = ("Gradient", "Tokens")
OWNER = 0  # a place


def row(values):
    return Array(dict(enumerate(values)))


def by_axis(entry):
    """An array, of its entries; those where there is no axis are all the same."""
    return Array({0: entry(0)}, entry(1))


class Steps(LinesOfARun):
    """Steps of some weights: what T4's functions are.

    Gradients are clipped, divided by a count, summed; each state is kept in slices.
    """

    def __init__(self, weights, clips=False, counts=False, sums=True, slices=False):
        super().__init__(len(DEVICES))
        self.weights, self.accepted, self.slices = range(weights), sums, slices
        self.clips, self.counts, self.moments = clips, counts, sums
        micro_step = [
            lambda w: LineAt("all_gather" if slices else "copy", VIEW[w], PARAMETERS[w]),
            lambda w: LineAt("copy", ACTIVATIONS[w], VIEW[w]),
            lambda w: LineAt("backward", FRESH[w], VIEW[w], ACTIVATIONS[w]),
            lambda w: LineAt("accumulate", SUM[w], FRESH[w]),
        ]
        counted = [
            (0, LineAt("count", TOKENS), None),
            (0, LineAt("accumulate", TOTAL, TOKENS), None),
        ]
        summed = [lambda w: LineAt("all_reduce", SUM[w], SUM[w])] if sums else []
        update = [
            lambda w: LineAt(
                *("update", PARAMETERS[w], PARAMETERS[w], MOMENTS[w], SUM[w]), fourth=NORM, fifth=TOTAL
            )
        ]
        self.first = self.of_each([lambda w: LineAt("zero", SUM[w])])
        self.first += [(0, LineAt("zero", TOTAL), 0)] if counts else []
        self.body = []
        for m in MICRO_STEPS:
            self.body += self.of_each(micro_step, m)
            self.body += [(w, line, m) for w, line, _ in counted] if counts else []
        last = self.of_each(summed)
        last += [(0, LineAt("all_reduce", TOTAL, TOTAL), 0)] if counts else []
        last += [(0, LineAt("norm", NORM), 0)] if clips else []
        self.lines = [*self.first, *self.body, *last, *self.of_each(update)]
        self.length, self.span = len(self.lines), len(self.body) // len(MICRO_STEPS)
        self.last = self.length * len(STEPS)
        self.names = [
            (kind, time, which)
            for kind in KINDS
            for time in range(self.last + 1)
            for which in (MICRO_STEPS if kind in OF_MICRO_STEPS else (0,))
        ]
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def of_each(self, lines, micro_step=0):
        """Each line of each weight."""
        return [(w, line(w), micro_step) for line in lines for w in self.weights]

    def at(self, t):
        """The weight, line and micro-step of line t."""
        inside = 0 <= t < self.last
        return self.lines[t % self.length] if inside else (0, LineAt("release", NOWHERE), 0)

    def line(self, t):
        return self.at(t)[1]

    def micro_step(self, t):
        return self.at(t)[2]

    def weight_of_line(self, t):
        return self.at(t)[0]

    def step(self, t):
        return t // self.length if 0 <= t < self.last else 0

    def opens(self, u, m):
        return self.length * u + len(self.first) + self.span * m

    def turn(self, t):
        opened = self.opens(self.step(t), 0)
        return (t - opened) // self.span if opened <= t < opened + len(self.body) else 0

    def original(self, s):
        """What a name is of: those that are no names are of times after the run."""
        if 0 <= s < len(self.names):
            return self.names[s]
        after = 2 * (s - len(self.names)) if s > 0 else 2 * (-s - 1) + 1
        return "Wrong", self.last + 1 + after, 0

    def named(self, what, time, which):
        after = time - self.last - 1
        if what == "Wrong" and after >= 0:
            return -(after // 2) - 1 if after % 2 else len(self.names) + after // 2
        return self.numbers.get((what, time, which), 0)

    def right(self, t):
        """Where gradients are not summed, all is wrong after the first update."""
        return self.accepted or self.step(t) == 0

    def unequal_value(self, t):
        """What is not there where a line compares unequal: a contribution, or a weight."""
        what = "Gradient" if self.at(t)[1].kind == "update" else "Weight"
        return self.named(what, self.step(t), 0)

    def constants(self):
        return {
            **{"n": len(DEVICES), "elements": len(ELEMENTS), "all_weights": len(self.weights)},
            **{"micro_steps": len(MICRO_STEPS), "turns": len(MICRO_STEPS), "few": 1, "axes": 1},
            **{"span": self.span, "length": self.length, "closes": self.length, "settled": 1},
            **{"last": self.last, "bound": len(self.names), "accepted": self.accepted},
            **{"reads_moment": self.moments, "reads_norm": self.clips, "reads_count": self.counts},
            **{"nowhere": Array({}), "any_word": Array({}), "everybody": Array({}, 4)},
            **dict.fromkeys(("rejected_element", "rejected_on", "rejected_step"), 0),
            **{"rejected_place": PARAMETERS[0], "rejected_value": self.named("Weight", 1, 0)},
        }

    def adds_along(self, weight, t, a):
        return self.slices and a == 0

    def normed(self, weight, t):
        return SUM[weight] if weight in self.weights else NOWHERE

    def functions(self):
        return {
            **{name: getattr(self, name) for name in (*OF_LINES, *OF_DEVICES, *OF_STEPS)},
            "firsts": lambda j: by_axis(super(Steps, self).firsts(j)),
            "sources": lambda *of: by_axis(super(Steps, self).sources(*of)),
            "element": lambda e: e if e in ELEMENTS else 0,
            "number_of": lambda j: j,
            "begins": lambda u: self.length * u,
            "ends": lambda u: self.length * (u + 1),
            "weight_of_copy": lambda b: int(b in (PARAMETERS[1], MOMENTS[1]) and len(self.weights) > 1),
            "start": self.kept_as,
            "copy": lambda weight: PARAMETERS[weight] if weight in self.weights else NOWHERE,
            "copy_of_moments": lambda weight: MOMENTS[weight] if weight in self.weights else NOWHERE,
            "keeper": lambda weight, j: self.owner_along(0, j) if self.slices else 0,
            "is_cut": lambda b, a: self.slices and a == 0 and b in (*PARAMETERS, *MOMENTS),
            "what": lambda s: self.original(s)[0],
            "time": lambda s: self.original(s)[1],
            "which": lambda s: self.original(s)[2],
            # what compares equal, and what does not
            "met": lambda f, p, t: self.accepted and not self.lost(p, t),
            "lost": lambda f, p, t: self.lost(p, t),
            "spoils": lambda f, t: False,
            "unequal_view": lambda t: True,
            "kept_in": lambda t: PARAMETERS[0],
            "applied_by": lambda t: self.length * (self.step(t) + 1) - 1,
        }

    def lost(self, p, t):
        """Whether an update reads what is not known at a place: slices of others."""
        return self.slices and self.at(t)[1].kind == "update" and p[0] != OWNER

    def kept_as(self, b):
        """Which state place b keeps."""
        state = "Weight" if b in PARAMETERS[: len(self.weights)] else ""
        state = "Moment" if self.moments and b in MOMENTS[: len(self.weights)] else state
        return "Nothing" if not state else f"{state}_slices" if self.slices else f"{state}s"


OF_LINES = ("kind", "factor", "target", "source", "second", "third", "fourth", "fifth", "normed")
OF_DEVICES = (
    *("axis", "devices_along", "along", "moved", "apart", "owner_along", "adds_along"),
    *("norm_group_size", "norm_member", "norm_owner"),
)
OF_STEPS = (
    *("step", "micro_step", "opens", "turn", "weight_of_line", "kept_as", "named", "right"),
    "unequal_value",
)
FIRST_OF = (  # where something compares unequal, or is passed on: the first device, weight, element
    *("unequal_element", "unequal_on", "unequal_weight", "applied_on", "kept_on"),
    *("clipped_element", "normed_by", "normed_on", "normed_weight"),
)


def gradient(run, weight, view, activations, u, m, i):
    return row(
        (i + 1) * view[j] + 2 * activations[(j + 1) % len(ELEMENTS)] + 7 * u + 5 * m + 3 * i + weight
        for j in ELEMENTS
    )


OF_TRAINING = {  # of runs that are made for something wrong hypotheses say all but the next moment
    "run_made_for": lambda *of: ("run_made_for", *of),
    "theta": lambda run, weight, u: row(10 * weight + j + 1 for j in ELEMENTS),
    "omega": lambda run, weight, u: row(4 + j for j in ELEMENTS),
    "junk": lambda run, weight, t, b, d, j: 13 * t + 11 * b + 7 * d + j,
    "gradient": gradient,
    "part_of_norm": lambda run, weight, u, y: y * y,
    "norm": lambda run, u, total: total,
    "tokens": lambda run, u, m, i: 1 + i,
    "is_jointly_injective": lambda run, weight: False,
}
GIVEN = [  # what says what functions are; of runs that are made for something before that of any
    "the_optimizer_follows_a_schedule",
    "the_loss_is_quadratic",
    "the_optimizer_passes_on_what_is_off",
    "norms_are_off_by_what_is_counted",
    "norms_count_what_is_another_gradient",
    "nobody_else_has_tokens",
    "gradients_are_computed_alike",
    "next_weights_are_computed_alike",
    "next_moments_are_computed_alike",
    "the_whole_gradient_is_the_sum",
    "the_single_device_trains",
    "devices_begin_alike",
    "devices_run_the_lines",
    "current_is_what_keepers_have",
    "current_moments_is_what_keepers_have",
]


def arrays(entries):
    return [by_axis(lambda _, entry=entry: entry) for entry in range(entries)]


def over(steps):
    """Values of variables, by their names."""
    made = [
        ("run_made_for", steps.named(odd, 1, which), i, t, 1 - i, i == 0, odd)
        for odd, which in (("Weight", 0), ("Gradient", 2))
        for i, t in enumerate((steps.opens(0, 0), steps.opens(1, 1)))
    ]
    times, devices = range(-1, steps.last + 2), range(-1, len(DEVICES) + 1)
    of_first_steps = [n for (_, time, _), n in steps.numbers.items() if time <= len(STEPS)]
    values = [*of_first_steps, *range(0, len(steps.names), 97), -2, -1, len(steps.names)]
    rows = [row([1, 2, 3]), row([0, -1, 0])]
    return {
        **dict.fromkeys(("t", "h", "curved_line", "wrong_line"), times),
        "u": range(-1, len(STEPS) + 1),
        "b": PLACES,
        **dict.fromkeys(("c", "d", "e", "i", "reader", "contributor", "wrong_on"), devices),
        "m": range(-1, len(MICRO_STEPS) + 1),
        **dict.fromkeys(("s", "odd"), values),
        "j": ELEMENTS,
        "weight": range(-1, len(steps.weights) + 1),
        **dict.fromkeys(("a", "x", "level"), range(-1, 3)),
        "f": arrays(2),
        **dict.fromkeys("pq", arrays(3)),
        "word": arrays(6),
        **dict.fromkeys(("w", "operand"), KINDS),
        "run": [TRAINING, *made],
        **dict.fromkeys(("alike", "is_known", "reads_its_view"), (False, True)),
        **dict.fromkeys(("view", "activations", "weights", "read_view", "read_activations"), rows),
    }


NUMBERS = [-1, 0, 2]  # values of all other variables
TRIED = 60  # values of what a hypothesis speaks of, with which its premises hold


@pytest.fixture(scope="module")
def supposed():
    """The kernel, and its hypotheses by name."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # what a line leaves is made of what was there before it
    theorems = proved("T4").theorems
    kernel = read(theorems[0]).kernel
    found = hypotheses(theorems)
    yield kernel, {said.name: said for said in found if read(said).kernel is kernel}
    sys.setrecursionlimit(before)


def world_of(steps, kernel, said):
    first = dict.fromkeys(FIRST_OF, lambda t: 0)
    known = {**steps.constants(), **steps.functions(), **OF_TRAINING, **first}
    world = Interpreted(kernel, known, over(steps))
    for name in GIVEN:
        world.give(said[name].goal)

    def next_weight(run, weight, u, j, old_weight, old_moment, applied, clipped_by, divided_by):
        before = u < 0  # the first step
        found = old_weight - old_moment - applied * (1 + clipped_by % 7) + divided_by
        return world.apply("theta", run, weight, u + 1)[j] if before else found

    def next_moment(run, weight, u, j, old_weight, old_moment, *others):
        as_said = u < 0 or run != TRAINING  # of a run that is made, whatever is read
        return world.apply("omega", run, weight, u + 1)[j] if as_said else old_moment + sum(others)

    def has(run, weight, t, b, d):  # what is not there; before the first line it is as at the first
        return world.apply("has", run, weight, 0, b, d) if t < 0 else Array({})

    world.known |= {"next_weight": next_weight, "next_moment": next_moment, "has": has}
    return world


ALL = {
    "whole": Steps(weights=2, clips=True),
    "slices": Steps(weights=2, clips=True, counts=True, slices=True),
    "rejected": Steps(weights=1, sums=False),
}
NEVER = {"the_optimizer_is_jointly_injective"}  # of these: any that is not says nothing
MOST = 1000  # values that are tried for a premise that holds


def looked_at(world, said):
    """Of hypotheses, by name: values with which one is not so; how often the premises have held."""
    choose, wrong, held = random.Random(0), {}, Counter()
    for name, hypothesis in said.items():
        goal, names = hypothesis.goal, [v.of.name for v in variables(hypothesis)]
        for _ in range(MOST):
            values = {variable: choose.choice(world.over.get(variable, NUMBERS)) for variable in names}
            if goal.op != "=>" or world.value(goal.args[0], values):
                held[name] += 1
                if not world.value(goal, values):
                    wrong[name] = values
            if held[name] == TRIED or name in wrong:
                break
    return wrong, held


def test_all_that_is_supposed_is_so_of_some_steps_at_once(supposed):
    found = {name: looked_at(world_of(steps, *supposed), supposed[1]) for name, steps in ALL.items()}
    assert {name: wrong for name, (wrong, _) in found.items() if wrong} == {}
    held = sum((held for _, held in found.values()), Counter())
    assert {*supposed[1]} - {*held} == NEVER


def of_no_sum():
    """Gradients that are not summed are said to be accepted."""
    steps = Steps(weights=1, sums=False)
    steps.accepted = True
    return steps, {}


def of_one_weight():
    """No line is of the second weight."""
    return Steps(weights=2), {"weight_of_line": lambda t: 0}


def of_another_keeper():
    """One device is said to keep all elements, of which it has slices."""
    return Steps(weights=1, slices=True), {"keeper": lambda weight, j: 0}


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (of_no_sum, "a_met_update_compares_equal_for_integrity_as_run_of_few"),
        (of_one_weight, "every_element_is_updated"),
        (of_another_keeper, "every_state_has_a_device_that_keeps_it"),
    ],
)
def test_of_other_steps_it_is_not_so(broken, name, supposed):
    steps, other = broken()
    world = world_of(steps, *supposed)
    world.known |= other
    assert [*looked_at(world, {name: supposed[1][name]})[0]] == [name]
