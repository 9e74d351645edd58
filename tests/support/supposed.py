"""What a claim supposes of runs, evaluated all at once, of a few devices, weights and steps."""

import random
import sys
from abc import abstractmethod
from collections import Counter
from contextlib import contextmanager

from proofs.premises import hypotheses, variables
from proofs.trusted.theorem import read
from tests.support.interpreted import Array, Interpreted
from tests.support.mesh_values import LinesOfARun
from tests.support.proved import proved

ELEMENTS = range(3)
TRAINING = "training"  # a run; others are made for what is wrong
KINDS = ("Weight", "Moment", "Gradient", "Wrong", "Whole_norm", "Tokens", "Wrong_moment")
OF_MICRO_STEPS = ("Gradient", "Tokens")
NUMBERS = [-1, 0, 2]  # values of variables that a run has none for
TRIED = 60  # values of what a hypothesis speaks of, with which its premises hold
MOST = 1000  # values that are tried for a premise that holds
OF_LINES = ("kind", "factor", "target", "source", "second", "third", "fourth", "fifth", "normed")
OF_DEVICES = (
    *("axis", "devices_along", "along", "moved", "apart", "owner_along"),
    *("norm_group_size", "norm_member", "norm_owner"),
)
OF_STEPS = ("step", "micro_step", "kept_as", "named")


def row(values):
    return Array(dict(enumerate(values)))


def by_axis(entry):
    """An array, of its entries; those where there is no axis are all the same."""
    return Array({0: entry(0)}, entry(1))


class RunThatIsSupposed(LinesOfARun):
    """Lines of a run, and what else the functions of a claim are. `last`: of how many lines it is."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.last, self.micro_steps = 0, 0

    def name_values(self):
        """Numbers for what there is before the run and after each line."""
        self.names = [
            (kind, time, which)
            for kind in KINDS
            for time in range(self.last + 1)
            for which in range(self.micro_steps if kind in OF_MICRO_STEPS else 1)
        ]
        self.numbers = {name: number for number, name in enumerate(self.names)}

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

    def of_any_run(self):
        """The functions of lines, devices, steps and elements; and those that take a name apart."""
        parts = ("what", "time", "which")
        return {
            **{name: getattr(self, name) for name in (*OF_LINES, *OF_DEVICES, *OF_STEPS)},
            **{part: lambda s, i=i: self.original(s)[i] for i, part in enumerate(parts)},
            **{"element": lambda e: e if e in ELEMENTS else 0, "number_of": lambda j: j},
        }

    @abstractmethod
    def constants(self):
        """Numbers, and truths."""

    @abstractmethod
    def functions(self):
        """Those that no hypothesis gives."""

    @abstractmethod
    def over(self):
        """Values of variables, by their names."""


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
    "amounts_begin",
    "amounts_run_the_lines",
    "unknowns_begin",
    "unknowns_run_the_lines",
    "it_is_there_at_first",
    "it_is_there_after_lines",
    "it_is_another_value_at_first",
    "it_is_another_value_after_lines",
    "current_is_what_keepers_have",
    "current_moments_is_what_keepers_have",
]


@contextmanager
def supposed_by(claim):
    """The kernel of a claim, and its hypotheses by name."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # what a line leaves is made of what was there before it
    theorems = proved(claim).theorems
    kernel = read(theorems[0]).kernel
    yield kernel, {said.name: said for said in hypotheses(theorems) if read(said).kernel is kernel}
    sys.setrecursionlimit(before)


def world_of(run, kernel, said):
    """The functions of a kernel, of a run: what hypotheses say they are, or what the run does."""
    known = {**run.constants(), **OF_TRAINING, **run.functions()}
    world = Interpreted(kernel, known, run.over())
    for name in filter(said.__contains__, GIVEN):
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
    world.known |= dict.fromkeys(("amount", "unknowns", "has_it"), lambda *of: 0)  # before the run
    world.known["has_otherwise"] = lambda *of: Array({})
    return world


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
