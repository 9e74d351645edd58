"""The language of schedules that are listed, on axes; what a line of each kind leaves of amounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from proofs.checking import symbols
from proofs.checking.amounts import Language
from proofs.checking.content import Content
from proofs.checking.coordinates import Coordinates
from proofs.checking.lines import BACKWARD, MOVES, UPDATE
from proofs.checking.operation_lines import COUNT, NORM
from proofs.checking.symbols import BOOL, CONTRIBUTION, INT, KINDS, ONE, REAL, TOKENS, ZERO
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, RealVal, ToReal
from spec.language.schedule import MICRO_STEPS
from spec.numbers.any_size import Polynomial

KIND = {
    **KINDS,
    BACKWARD.name: symbols.BACKWARD,
    UPDATE.name: symbols.UPDATE,
    NORM: symbols.NORM_OF,
    COUNT: symbols.COUNT_OF,
}


# a theorem that a number is that of a schedule which is listed
WhyListed = Callable[[Kernel, Any, Bool], Theorem]


class SlicedAxes(Coordinates):
    """Devices on axes, and places with slices. is_cut(b, a): whether place b is cut along axis a."""

    def __init__(self, l: Any, sliced: Sequence[int]) -> None:
        super().__init__(l)
        self.sliced = [IntVal(x) for x in sliced]
        self.is_cut = self.k.function("is_cut", INT, INT, BOOL)
        self.holds, self.holds_is = self.k.define(
            "holds", [l.b, l.d, l.j], self.owns(lambda x: self.is_cut(l.b, x), l.d, l.j)
        )

    def owns(self, along: Callable[[Any], Bool], d: Any, j: Any) -> Bool:
        """Whether device d owns element j along each axis of which that is said."""
        own = ((x, self.along(d, x) == self.owner_along(x, j)) for x in self.sliced)
        return And(*(Implies(along(x), owns) for x, owns in own))


class ListedLanguage(Language):
    """The language, of schedules that are listed.

    schedule: which of them it is. line_of(t): which row line t is; turn(t): of which micro-step, of as
    many as there are turns. first_row: that with which a step begins. updates_slices(t, a): whether an
    update is of slices along axis a. `sliced`: the axes along which anything is, in any. `why`: why the
    schedule is one of them, if that is not supposed.
    """

    mesh: SlicedAxes

    def __init__(
        self,
        k: Kernel,
        schedules: int,
        sliced: Sequence[int],
        tied: bool,
        clips: bool,
        counts: bool,
        why: WhyListed | None,
    ) -> None:
        self.sliced, self.clips, self.counts = sliced, clips, counts
        self.names_of_axes: tuple[str, ...] = ()  # of the schedule that is spoken of
        self.inverses: dict[str, tuple[Any, Theorem]] = {}
        super().__init__(k)
        t, d, i, u, end = self.t, self.d, self.i, self.u, self.ends(self.u)
        self.turn, self.turns, self.bounds = self._turns(tied)
        self.line = [t >= 0, t < self.last]
        self.on_devices = [d >= 0, d < self.n, i >= 0, i < self.n]
        self.first_row = k.fixed("first_row", INT)
        self.begins = k.suppose(
            "the_run_begins_with_the_first_line",
            [],
            And(self.line_of(0) == self.first_row, self.turn(0) == 0, self.step(0) == 0),
        )
        self.steps_end = k.suppose(
            "a_step_ends_where_the_next_begins",
            [u],
            Implies(
                And(u >= 0, end >= 0, end <= self.last),
                And(self.line_of(end) == self.first_row, self.step(end) == u + 1),
            ),
        )
        listed = And(self.number >= 0, self.number < schedules)
        self.is_listed = (
            why(k, self.number, listed) if why else k.suppose("the_schedule_is_listed", [], listed)
        )
        self.known_leaves: dict[str, Theorem] = {}
        self.untouched_places: dict[int, Theorem] = {}

    def _turns(self, tied: bool) -> tuple[Any, Any, list[Theorem]]:
        """Micro-steps; if none contributes twice, those of T2."""
        if not tied:
            return self.micro, self.micro_steps, [self.numbered]
        k, t = self.k, self.t
        turn, turns = k.function("turn", INT, INT), k.fixed("turns", INT)
        said = And(turn(t) >= 0, turn(t) < turns)
        return turn, turns, [self.numbered, k.suppose("turns_are_counted", [t], said)]

    def real(self, value: Any) -> Any:
        """A coefficient as a real term, of sizes of axes and the number of micro-steps."""
        if not isinstance(value, Polynomial):
            return RealVal(str(value))
        found: Any = ZERO
        for powers, times in value.terms:
            part: Any = RealVal(str(times))
            for name, exponent in powers:
                size = self.over(name) if exponent < 0 else self._size(name)
                for _ in range(abs(exponent)):
                    part = size if part is ONE else part * size
            found = part if found is ZERO else found + part
        return found

    def _size(self, name: str) -> Any:
        if name == MICRO_STEPS:
            return ToReal(self.turns)
        return self.mesh.size_of(IntVal(self.names_of_axes.index(name)))

    def over(self, name: str) -> Any:
        """One over a size."""
        if name not in self.inverses:
            word = (
                "micro_steps"
                if name == MICRO_STEPS
                else f"devices_along_{self.names_of_axes.index(name)}"
            )
            one = self.k.fixed(f"one_over_{word}", REAL)
            is_one = self.k.suppose(f"one_over_{word}_is", [], one * self._size(name) == 1)
            self.inverses[name] = one, is_one
        return self.inverses[name][0]

    def _mesh(self) -> SlicedAxes:
        k = self.k
        self.number, self.line_of = k.fixed("schedule", INT), k.function("line_of", INT, INT)
        self.updates_slices = k.function("updates_slices", INT, INT, BOOL)
        return SlicedAxes(self, self.sliced)

    @property
    def sources(self) -> tuple[Any, ...]:
        """Without clips no update reads a norm; without counts none reads one."""
        numbers = [*([self.fourth] if self.clips else []), *([self.fifth] if self.counts else [])]
        return self.source, self.second, self.third, *numbers

    def of_weight(self, name: str, *sorts: Any) -> Any:
        """All weights have the same lines."""
        return self.k.function(name, *sorts)

    def _norm_of_devices(self) -> None:
        self.normed = self.source
        if self.clips:
            super()._norm_of_devices()

    def computed_norm(self, t: Any, d: Any) -> Any:
        """Without clips no line is a norm."""
        return super().computed_norm(t, d) if self.clips else ZERO

    def is_right(self, t: Any, d: Any) -> Bool:
        return BoolVal(True)

    def where_right(self, t: Any, d: Any) -> list[Bool]:
        return []

    def is_met(self, t: Any, d: Any, j: Any) -> Bool:
        """An update is, of what a device owns along the axes along which it is of slices."""
        return self.mesh.owns(lambda x: self.updates_slices(t, x), d, j)

    def is_lost(self, t: Any, d: Any, j: Any) -> Bool:
        return Not(self.is_met(t, d, j))

    # ------------------------------------------------------------------ what lines leave
    def leaves(self, kind: str) -> Theorem:
        """What a line of a kind leaves in its target; an update, in the place of the moments."""
        if kind not in self.known_leaves:
            t, second = self.t, self.second(self.t)
            made: dict[str, Callable[[Content], Any]] = {
                BACKWARD.name: lambda content: content.gradient,
                UPDATE.name: lambda content: content.weight,
                "moments": lambda content: content.moment,
                NORM: lambda content: content.norm,
                COUNT: lambda content: content.count,
            }
            made |= {
                move.name: lambda content, move=move: self.moved_on(move, content)  # type: ignore[misc]
                for move in MOVES
            }
            of = UPDATE.name if kind == "moments" else kind
            other = [self.target(t) != second] if kind == UPDATE.name else []
            place = second if kind == "moments" else self.target(t)
            given = [self.kind(t) == KIND[of], *other]
            self.known_leaves[kind] = self._after(kind, place, made[kind], given)
        return self.known_leaves[kind]

    @cached_property
    def _elsewhere(self) -> Theorem:
        b, d = self.b, self.d
        return self._after("elsewhere", b, lambda content: content.at(b, d), [self.untouched(b)])

    def elsewhere(self, place: int) -> Theorem:
        """What a line leaves in a place that it does not touch."""
        if place not in self.untouched_places:
            self.untouched_places[place] = self._elsewhere.at(b=IntVal(place))
        return self.untouched_places[place]

    def _after(
        self, name: str, place: Any, made: Callable[[Content], Any], given: Sequence[Bool]
    ) -> Theorem:
        t, s, d, i, j = self.t, self.s, self.d, self.i, self.j
        goal = And(
            self.amount(t + 1, place, s, d, i, j) == made(self.of_amounts),
            self.unknowns(t + 1, place, d, j) == made(self.of_unknowns),
        )
        runs = [self.amounts_run.at(b=place), self.unknowns_run.at(b=place)]
        return self.k.prove(f"amounts_after_{name}", goal, [t >= 0, *self.on_devices, *given], runs)

    @cached_property
    def members(self) -> Theorem:
        """Where the members of a group are."""
        t, d, c, mesh = self.t, self.d, self.c, self.mesh
        axis, x = mesh.axis(t), mesh.x
        return self.k.prove(
            "members_of_a_group_differ_along_its_axis",
            mesh.along(mesh.member(t, d, c), x) == If(x == axis, c, mesh.along(d, x)),
            [d >= 0, d < self.n, c >= 0, c < mesh.size(t)],
            [mesh.member_is, mesh.moves.at(a=axis), mesh.on_axes, mesh.size_is],
        )

    @property
    def contribution_is(self) -> Theorem:
        """What the name of line t's contribution is of."""
        return self._named_in_line(CONTRIBUTION)

    @property
    def count_is(self) -> Theorem:
        """What the name of line t's count is of."""
        return self._named_in_line(TOKENS)

    def _named_in_line(self, what: Any) -> Theorem:
        return self.names.at(w=what, u=self.step(self.t), m=self.micro(self.t))

    def state_is(self, what: Any, u: Any) -> Theorem:
        """What the name of a state of a step is of."""
        return self.names.at(w=what, u=u, m=IntVal(0))
