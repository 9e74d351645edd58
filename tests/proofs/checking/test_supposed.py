"""The hypotheses of T2 and of T4 hold together: of three steps of three micro-steps, on two devices.

Two weights are clipped by one norm, and all is kept by each device; the same in slices, divided by a
count; and one weight, which is rejected, as its gradients are not summed.
"""

from collections import Counter

import pytest

from proofs.checking.operation_lines import NOWHERE, LineAt
from tests.support.interpreted import Array
from tests.support.supposed import (
    ELEMENTS,
    KINDS,
    TRAINING,
    RunThatIsSupposed,
    by_axis,
    looked_at,
    row,
    supposed_by,
    world_of,
)

pytestmark = pytest.mark.slow

DEVICES, MICRO_STEPS, STEPS = map(range, (2, 3, 3))
NORM, TOKENS, TOTAL = range(97, 100)
# of two weights; a backward drops the second of what it reads
PARAMETERS, VIEW, ACTIVATIONS, FRESH, SUM, MOMENTS = ((each, each + 10) for each in range(6))
PLACES = [*PARAMETERS, *VIEW, *ACTIVATIONS, *FRESH, *SUM, *MOMENTS, NORM, TOKENS, TOTAL, NOWHERE]
OWNER = 0  # a place


class Steps(RunThatIsSupposed):
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
        self.last, self.micro_steps = self.length * len(STEPS), len(MICRO_STEPS)
        self.name_values()

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
            **self.of_any_run(),
            **{name: getattr(self, name) for name in OF_WEIGHTS},
            "firsts": lambda j: by_axis(super(Steps, self).firsts(j)),
            "sources": lambda *of: by_axis(super(Steps, self).sources(*of)),
            "begins": lambda u: self.length * u,
            "ends": lambda u: self.length * (u + 1),
            "weight_of_copy": lambda b: int(b in (PARAMETERS[1], MOMENTS[1]) and len(self.weights) > 1),
            "start": self.kept_as,
            "copy": lambda weight: PARAMETERS[weight] if weight in self.weights else NOWHERE,
            "copy_of_moments": lambda weight: MOMENTS[weight] if weight in self.weights else NOWHERE,
            "keeper": lambda weight, j: self.owner_along(0, j) if self.slices else 0,
            "is_cut": lambda b, a: self.slices and a == 0 and b in (*PARAMETERS, *MOMENTS),
            **dict.fromkeys(FIRST_OF, lambda t: 0),
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

    def over(self):
        """Values of variables, by their names."""
        made = [
            ("run_made_for", self.named(odd, 1, which), i, t, 1 - i, i == 0, odd)
            for odd, which in (("Weight", 0), ("Gradient", 2))
            for i, t in enumerate((self.opens(0, 0), self.opens(1, 1)))
        ]
        times, devices = range(-1, self.last + 2), range(-1, len(DEVICES) + 1)
        of_first_steps = [n for (_, time, _), n in self.numbers.items() if time <= len(STEPS)]
        values = [*of_first_steps, *range(0, len(self.names), 97), -2, -1, len(self.names)]
        rows = [row([1, 2, 3]), row([0, -1, 0])]
        return {
            **dict.fromkeys(("t", "h", "curved_line", "wrong_line"), times),
            "u": range(-1, len(STEPS) + 1),
            "b": PLACES,
            **dict.fromkeys(("c", "d", "e", "i", "reader", "contributor", "wrong_on"), devices),
            "m": range(-1, len(MICRO_STEPS) + 1),
            **dict.fromkeys(("s", "odd"), values),
            "j": ELEMENTS,
            "weight": range(-1, len(self.weights) + 1),
            **dict.fromkeys(("a", "x", "level"), range(-1, 3)),
            "f": arrays(2),
            **dict.fromkeys("pq", arrays(3)),
            "word": arrays(6),
            **dict.fromkeys(("w", "operand"), KINDS),
            "run": [TRAINING, *made],
            **dict.fromkeys(("alike", "is_known", "reads_its_view"), (False, True)),
            **dict.fromkeys(("view", "activations", "weights", "read_view", "read_activations"), rows),
        }


class StepsOfGroups(Steps):
    """The same, as T2's functions: of groups of devices in place of axes."""

    def functions(self):
        return {
            **super().functions(),
            "group_size": lambda t: len(DEVICES),
            "member": lambda t, d, c: c if c in DEVICES else 0,
            "owner": lambda t, d, j: self.owner_along(0, j),
            "coordinate": lambda t, d: d,
            "holds": lambda b, d, j: self.owner_along(0, j) == d,
            "right": lambda t, d: self.right(t),
            "met": lambda t, d, j: self.accepted and not self.is_lost(t, d, j),
            "lost": self.is_lost,
        }

    def constants(self):
        emptied = {"empty_at": 5, "empty_place": VIEW[0], "empty_on": 1}
        return {**super().constants(), **emptied, "until": self.last}

    def is_lost(self, t, d, j):
        """Whether an update on a device is of an element of which it has no slice."""
        return self.lost((d != self.owner_along(0, j),), t)


OF_WEIGHTS = ("adds_along", "opens", "turn", "weight_of_line", "right", "unequal_value")
FIRST_OF = (  # where something compares unequal, or is passed on: the first device, weight, element
    *("unequal_element", "unequal_on", "unequal_weight", "applied_on", "kept_on"),
    *("clipped_element", "normed_by", "normed_on", "normed_weight"),
)


def arrays(entries):
    return [by_axis(lambda _, entry=entry: entry) for entry in range(entries)]


ALL = {
    "whole": {"weights": 2, "clips": True},
    "slices": {"weights": 2, "clips": True, "counts": True, "slices": True},
    "rejected": {"weights": 1, "sums": False},
}
STEPS_OF = {"T2": StepsOfGroups, "T4": Steps}
NEVER = {"T4": {"the_optimizer_is_jointly_injective"}}  # of these: any that is not says nothing


@pytest.fixture(scope="module", params=STEPS_OF)
def supposed(request):
    """The claim; its kernel, and hypotheses by name."""
    with supposed_by(request.param) as found:
        yield request.param, found


def test_all_that_is_supposed_is_so_of_some_steps_at_once(supposed):
    claim, told = supposed
    steps = {name: STEPS_OF[claim](**of) for name, of in ALL.items()}
    found = {name: looked_at(world_of(each, *told), told[1]) for name, each in steps.items()}
    assert {name: wrong for name, (wrong, _) in found.items() if wrong} == {}
    held = sum((held for _, held in found.values()), Counter())
    assert {*told[1]} - {*held} == NEVER.get(claim, set())


def of_no_sum(steps_of):
    """Gradients that are not summed are said to be accepted."""
    steps = steps_of(weights=1, sums=False)
    steps.accepted = True
    return steps, {}


def of_one_weight(steps_of):
    """No line is of the second weight."""
    return steps_of(weights=2), {"weight_of_line": lambda t: 0}


def of_another_keeper(steps_of):
    """One device is said to keep all elements, of which it has slices."""
    return steps_of(weights=1, slices=True), {"keeper": lambda weight, j: 0}


def of_other_slices(steps_of):
    """A device is said to have the slices of the other."""
    return steps_of(weights=1, slices=True), {"holds": lambda b, d, j: (j + d) % len(DEVICES) == 1}


@pytest.mark.parametrize(
    ("supposed", "broken", "name"),
    [
        ("T2", of_no_sum, "a_met_update_compares_equal"),
        ("T2", of_other_slices, "copies_kept_as_weight_slices_compare_equal"),
        ("T4", of_no_sum, "a_met_update_compares_equal_for_integrity_as_run_of_few"),
        ("T4", of_one_weight, "every_element_is_updated"),
        ("T4", of_another_keeper, "every_state_has_a_device_that_keeps_it"),
    ],
    indirect=["supposed"],
)
def test_of_other_steps_it_is_not_so(broken, name, supposed):
    claim, told = supposed
    steps, other = broken(STEPS_OF[claim])
    world = world_of(steps, *told)
    world.known |= other
    assert [*looked_at(world, {name: told[1][name]})[0]] == [name]
