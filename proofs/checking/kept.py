"""T2: where what is kept differs. A value that an update got wrong, and that is passed on, is wrong.

In the run an update passes on what it reads wrong: its weight is off by as much as one of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.content import moving
from proofs.checking.lines import MOVES
from proofs.checking.symbols import (
    CONTRIBUTION,
    INT,
    KINDS,
    MOMENT,
    NORM,
    NORM_OF,
    ONE,
    REAL,
    TOKENS,
    UPDATE,
    WEIGHT,
    ZERO,
    Element,
    cases,
)
from proofs.checking.two_choices import TwoChoices
from proofs.checking.wrong_norms import WrongNorms
from proofs.claim import claim
from proofs.tools.sums import partition, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or

READ = ("read_weight", "read_moment", "read_whole", "read_norm", "read_count")
NORMS = ("what_compares_unequal", "a_wrong_view")  # of which some norm is another one
PASSES_ON = ("all_gather", "broadcast", "copy", "keep")  # lines that leave a value as it is


class Kept(WrongNorms):
    """The run in which an update that is the first to read something unequal leaves another weight."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, d, j = self.k, l.t, l.b, l.d, l.j
        self.off_by = self._optimizer()
        self.off_line, self.off_device = (
            l.closing.unwritten_constant(name, INT) for name in ("wrong_line", "wrong_on")
        )
        self.norm_line, self.norm_on = k.integers("norm_line norm_on")
        self.norm_element = k.constant("norm_element", Element)
        self.passed_on, self.none_at_first, self.passed_on_next = k.recursion(
            "is_passed_on",
            [b, d, j],
            t,
            BoolVal(False),
            lambda prev: self._passed_on(lambda place, device: prev(place, device, j)),
        )

    def _optimizer(self) -> Theorem:
        """The optimizer follows the schedule, and is off by what one operand is."""
        l, u, j = self.l, self.l.u, self.l.j
        read = self.k.reals(" ".join(READ))
        right = (l.theta(u)[j], l.applied_moment(u), l.single_gradient(u, j), *l.applied(u))
        *off, of_norm, of_count = (has - needs for has, needs in zip(read, right, strict=True))
        by_operand = dict(zip((WEIGHT, MOMENT, CONTRIBUTION, TOKENS), (*off, of_count), strict=True))
        return self.in_made_run.suppose(
            "the_optimizer_passes_on_what_is_off",
            [u, j, *read],
            l.next_weight(u, j, *read) == l.theta(u + 1)[j] + cases(self.operand, by_operand, of_norm),
        )

    def _passed_on(self, before: Any) -> Bool:
        """Whether device d has in place b after line t what the update of wrong_line made."""
        l, t, b = self.l, self.l.t, self.l.b
        moved = {
            KINDS[move.name]: l.moved_on(move, moving(before, ZERO, ONE))
            for move in MOVES
            if move.name in PASSES_ON
        }
        later = If(
            b == l.target(t),
            cases(l.kind(t), moved, BoolVal(False)),
            And(l.untouched(b), before(b, l.d)),
        )
        return If(t == self.off_line, And(b == l.target(t), l.d == self.off_device), later)

    @property
    def _operands(self) -> tuple[tuple[Any, Any, Any, Any], ...]:
        """What an update reads: of which kind, from which place; what is needed; whether it does."""
        l, t, always = self.l, self.l.t, BoolVal(True)
        now = l.step(t)
        return (
            (WEIGHT, l.source(t), l.state(WEIGHT, now), always),
            (MOMENT, l.second(t), l.state(MOMENT, now), l.reads_moment),
            (CONTRIBUTION, l.third(t), None, always),
            (NORM, l.fourth(t), l.state(NORM, now), l.reads_norm),
            (TOKENS, l.fifth(t), TOKENS, l.reads_count),
        )

    def _writes_another(self) -> Theorem:
        """An update of which an operand is another one makes another weight."""
        l, k, t, d, j = self.l, self.in_made_run, self.l.t, self.l.d, self.l.j
        now, target = l.step(t), l.target(t)
        off = (
            And(self.operand == kind, read, l.has(t, place, d)[j] != self.right_value(kind, now))
            for kind, place, _, read in self._operands
        )
        return k.prove(
            "an_update_of_what_is_off_makes_another_weight",
            And(l.has(t + 1, target, d)[j] != l.theta(now + 1)[j], Not(l.gone(target, t + 1))),
            [
                *(t >= 0, l.kind(t) == UPDATE, target != l.second(t)),
                Or(*off),
            ],
            [
                l.runs.at(b=target),
                l.gone_next.at(b=target),
                l.update_alike(t, d)[0],
                self.off_by.at(u=now, **dict(zip(READ, l.read_by_update(t, d)[2:], strict=True))),
            ],
        )

    def _of_unequal(self, makes: Theorem, exact: Sequence[Theorem]) -> Theorem:
        """An update whose operand is the first to compare unequal makes another weight."""
        l, t, now = self.l, self.l.t, self.l.step(self.l.t)
        unequal = (
            And(
                self.operand == kind, self.knows(t, place), read, *self.is_unequal(t, place, state, now)
            )
            for kind, place, state, read in self._operands
        )
        return self.in_made_run.prove(
            "an_update_of_what_compares_unequal_makes_another_weight",
            makes.goal,
            [
                *(*makes.given[:-1], t <= l.last, *self.on_a_device),
                *(self.odd >= 0, self.odd < l.bound),
                *(self.all_equal(l.j, t), Or(*unequal)),
            ],
            [
                *(makes, l.numbered),
                *(
                    each.at(b=place, u=now)
                    for each, (_, place, _, _) in zip(exact, self._operands, strict=True)
                ),
            ],
        )

    def _of_a_wrong_view(self, makes: Theorem, views: Theorem) -> Theorem:
        """An update of a contribution at a wrong view makes another weight."""
        l, t = self.l, self.l.t
        applied = [substitute(each, (l.b, l.third(t))) for each in views.given]
        return self.in_made_run.prove(
            "an_update_of_what_reads_a_wrong_view_makes_another_weight",
            makes.goal,
            [
                *(*makes.given[1:-1], self.operand == CONTRIBUTION),
                *(l.step(t) == l.step(self.curved), *applied),
            ],
            [makes, views.at(b=l.third(t))],
        )

    @property
    def of_norm(self) -> tuple[tuple[Any, Any], ...]:
        """Terms of a norm: its line, a device that computes it; the weight, and the element, that it
        gets wrong.
        """
        l, of = self.l, (self.among, self.norm_element)
        return (l.t, self.norm_line), (l.d, self.norm_on), *zip((l.weight, l.j), of, strict=True)

    @property
    def clips_by_it(self) -> list[Bool]:
        """That the update of line t on device d reads the norm that norm_line makes on norm_on."""
        l, t = self.l, self.l.t
        read = substitute(self.passed_on(l.b, l.d, l.j, t), (l.b, l.fourth(t)))
        made = (self.off_line, self.norm_line), (self.off_device, self.norm_on)
        return [l.reads_norm, l.step(t) == l.step(self.norm_line), substitute(read, *made)]

    def _of_a_norm(self, name: str, makes: Theorem, same: Theorem, norm: Theorem) -> Theorem:
        """An update that is clipped by another norm makes another weight."""
        l, t, line = self.l, self.l.t, self.norm_line
        at = {str(variable): term for variable, term in self.of_norm}
        there = {"t": line, "d": self.norm_on, "b": l.target(line)}
        clips = [l.kind(line) == NORM_OF, self.operand == NORM, *self.clips_by_it]
        return self.in_made_run.prove(
            f"an_update_clipped_by_a_norm_of_{name}_makes_another_weight",
            makes.goal,
            [*makes.given[:-1], *clips, *(substitute(each, *self.of_norm) for each in norm.given)],
            [
                *(makes, norm.at(**at), l.runs.at(**there), l.gone_next.at(t=line, b=there["b"])),
                same.at(b=l.fourth(t), wrong_line=line, wrong_on=self.norm_on),
            ],
        )

    def _is_passed_on(self) -> Theorem:
        """What is passed on is known, and what the update of wrong_line made."""
        l, k, t, b, d, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j
        line, device, source = self.off_line, self.off_device, self.l.source(self.l.t)
        made = l.has(line + 1, l.target(line), device)[j]
        return k.induct(
            "what_is_passed_on_is_the_same",
            t,
            Implies(
                self.passed_on(b, d, j, t),
                And(line < t, l.has(t, b, d)[j] == made, Not(l.gone(b, t))),
            ),
            [Not(l.gone(l.target(line), line + 1))],
            base=[self.none_at_first],
            step=[self.passed_on_next, l.runs, l.gone_next],
            at=[
                {},
                {"b": source},
                {"b": source, "d": l.mesh.member(t, d, l.mesh.owner(t, d, j))},
                {"b": source, "d": l.mesh.member(t, d, IntVal(0))},
            ],
        )

    def kept_differ(self, exact: Sequence[Theorem], always: Theorem) -> tuple[Theorem, ...]:
        """Wherever that weight is passed on to, it is not the single device's."""
        l, k, t, b, d, j = self.l, self.in_made_run, self.l.t, self.l.b, self.l.d, self.l.j
        line, device = self.off_line, self.off_device
        makes, same = self._writes_another(), self._is_passed_on()
        views = self.wrong_view_differs(exact, always)

        def kept(name: str, wrong: Theorem) -> Theorem:
            said = [substitute(g, (t, line), (d, device)) for g in wrong.given]
            return k.prove(
                name,
                l.has(t, b, d)[j] != l.theta(l.step(line) + 1)[j],
                [*said, t >= 0, self.passed_on(b, d, j, t)],
                [same, wrong.at(t=line, d=device)],
            )

        return (
            kept("what_is_kept_differs", self._of_unequal(makes, exact)),
            kept("what_is_kept_of_a_wrong_view_differs", self._of_a_wrong_view(makes, views)),
            *(
                kept(
                    f"what_is_kept_of_a_norm_of_{name}_differs",
                    self._of_a_norm(name, makes, same, norm),
                )
                for name, norm in zip(NORMS, self.norms_of_another(exact, views), strict=True)
            ),
        )


@claim("T2")
def what_compares_equal_matches(k: Kernel) -> tuple[Theorem, ...]:
    """On any mesh, until one is not, known values are right in all runs if and only if equal.

    The schedule is a symbol: its lines, and the groups of devices that they are along, are functions
    of which nothing is said. amount(t, b, s, d, i, j) is how often device d has device i's value s:
    it runs the lines, as values do. Equal: of a needed state there is one, of others none; of a whole
    gradient there is each device's contribution once; of all else nothing. What is equal, in any place,
    is right in every run; so what is kept is the single device's after every step, where all is equal.
    Of a value s there is a run, with a loss that is linear in its weights, or has a square of them, and
    an optimizer and norms that follow a schedule, in which what is known is right if and only if it has
    s as is needed, until one is unequal. If an update reads the first that is, or what a backward makes
    of it, another weight is kept, wherever lines pass it on. Of what is not known: one of two runs has
    something else, unless it cancels. (Claim T2)
    """
    matching = Kept(Language(k))
    always = matching.always()
    exact = matching.exact(always)
    equal = matching.at_the_end(always), matching.any_right(always)
    halves = *equal, *exact, *matching.kept_differ(exact, always)
    return (
        *halves,
        TwoChoices(matching.l).theorem(),
        _each_sample_is_contributed_once(k.part("samples")),
    )


def _each_sample_is_contributed_once(k: Kernel) -> Theorem:
    """Whoever computes which samples: contributions of devices in micro-steps are those of all samples.

    A device's contribution is the sum over the samples it computes in a micro-step, as a summed loss
    has it; a whole gradient is the sum over the batch.
    """
    x, m, i = k.integers("x m i")
    devices, micro_steps = k.fixed("devices", INT), k.fixed("micro_steps", INT)
    device_of, micro_of = k.function("device_of", INT, INT), k.function("micro_step_of", INT, INT)
    placed = [
        k.suppose(f"each_sample_has_one_{name}", [x], And(of(x) >= 0, of(x) < count))
        for name, of, count in (
            ("device", device_of, devices),
            ("micro_step", micro_of, micro_steps),
        )
    ]
    sample = k.function("sample_gradient", INT, REAL)
    share, in_steps, whole, by_steps = partition(
        k, "micro_step", m, x, micro_of, placed[1], micro_steps, sample(x)
    )
    mine = If(micro_of(x) == m, sample(x), ZERO)
    _, of_devices, step, by_devices = partition(
        k, "device", i, x, device_of, placed[0], devices, mine, [m]
    )
    same = k.induct(
        "a_micro_steps_samples",
        x,
        step(m, x) == share(m, x),
        base=[step.start, share.start],
        step=[step.next, share.next],
    )
    contributed = total(k, "contributed", [x], m, of_devices(m, x, devices))
    every = k.induct(
        "contributions_of_all",
        m,
        contributed(x, m) == in_steps(x, m),
        [x >= 0],
        base=[contributed.start, in_steps.start],
        step=[contributed.next, in_steps.next, by_devices, same],
    )
    return k.prove(
        "each_sample_is_contributed_once",
        contributed(x, micro_steps) == whole(x),
        [x >= 0],
        [every.at(m=micro_steps), by_steps, placed[1]],
    )
