"""T4's weights exist: what is supposed of them is so of two weights under one norm, on two devices."""

from itertools import product

from proofs.checking.halves import Halves
from proofs.checking.operation_lines import NOWHERE, LineAt
from proofs.checking.representation import Represented
from proofs.trusted.kernel import Kernel
from proofs.trusted.parts import constants
from proofs.trusted.theorem import read
from tests.support.mesh_values import LinesOfARun

NORM = 99
PARAMETERS, VIEW, GRADIENT, MOMENT = ((each, each + 10) for each in range(4))  # places of both weights


OF_EACH = [
    lambda w: LineAt("copy", VIEW[w], PARAMETERS[w]),
    lambda w: LineAt("backward", GRADIENT[w], PARAMETERS[w], VIEW[w]),
    lambda w: LineAt("all_reduce", GRADIENT[w], GRADIENT[w]),
    lambda w: LineAt("update", PARAMETERS[w], PARAMETERS[w], MOMENT[w], GRADIENT[w], fourth=NORM),
]
LINES = [(w, line(w)) for line in OF_EACH for w in (0, 1)]  # each of a weight
LINES.insert(-2, (0, LineAt("norm", NORM)))


class TwoWeights(LinesOfARun):
    """A step of two weights on devices that each keep all: one norm, by which both are clipped."""

    def __init__(self, devices):
        super().__init__(devices)
        length = len(LINES)
        reads = {"reads_moment": False, "reads_norm": True, "reads_count": False}
        steps = {"last": length, "length": length, "closes": length, "settled": 0, "micro_steps": 1}
        self.fixed = {"all_weights": 2, "elements": 3, "bound": 50, **reads, **steps}

    def line(self, t):
        return LINES[t][1] if 0 <= t < len(LINES) else LineAt("release", NOWHERE)

    def weight_of_line(self, t):
        return LINES[t][0] if 0 <= t < len(LINES) else 0

    def weight_of_copy(self, b):
        return int(b in (PARAMETERS[1], MOMENT[1]))

    def normed(self, weight, t):
        return GRADIENT[weight] if weight in (0, 1) else NOWHERE

    def step(self, t):
        return self.line(t).step

    def micro_step(self, t):
        return self.line(t).micro_step

    def ends(self, u):
        return len(LINES) * (u + 1)

    def begins(self, u):
        return len(LINES) * u

    def kept_as(self, b):
        return "Weights" if b in PARAMETERS else "Nothing"

    def copy(self, weight):
        return PARAMETERS[weight] if weight in (0, 1) else NOWHERE

    def copy_of_moments(self, weight):
        return NOWHERE

    def keeper(self, weight, j):
        return 0

    def element(self, e):
        return e

    def number_of(self, j):
        return j

    def is_cut(self, b, a):
        return False

    def holds(self, b, d, j):
        return True

    def some_line_updates_it(self, weight, u, j):
        return u == 0 and any(w == weight and line.kind == "update" for w, line in LINES)


SUPPOSED = {
    *(
        "elements_and_weights_are_counted",
        "lines_and_copies_are_of_weights",
        "norm_groups_are_of_devices",
    ),
    *(
        "slices_of_norms_are_owners",
        "every_state_has_a_device_that_keeps_it",
        "every_element_is_updated",
    ),
    *("steps_end_one_after_the_other", "moments_that_are_kept_are_read", "lines_are_of_steps"),
    *("steps_follow_each_other", "there_is_a_step", "lines_are_in_their_steps"),
    *("steps_have_the_same_lines", "devices_and_owners_are_on_axes"),
}
VALUES = {
    "weight": range(-1, 4),
    **dict.fromkeys("th", range(-1, len(LINES) + 2)),
    **dict.fromkeys("dc", range(-1, 3)),
    **{"u": range(-1, 4), "b": [*range(4), *range(10, 14), NORM], "j": range(3), "a": [0], "x": [0]},
}


def test_what_is_supposed_of_weights_is_so_of_two_that_one_norm_clips():
    k = Kernel("T4")
    language = Represented(k)
    language.follows()
    Halves(language)
    run, found = TwoWeights(2), set()
    for said in map(read, k.theorems):
        if said.rule == "hypothesis" and said.name in SUPPOSED:
            found.add(said.name)
            names = [name for name in constants(said.goal) if name in VALUES]
            for values in product(*(VALUES[name] for name in names)):
                variables = dict(zip(names, values, strict=True))
                assert run.value(said.goal, variables), (said.name, variables)
    assert found == SUPPOSED
