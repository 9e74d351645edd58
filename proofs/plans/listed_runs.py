"""A run of the checker leaves a theorem: schedules that are listed match a single device.

For every number of devices along each axis, of micro-steps and of steps. What the checker finds in
places before a line, written as amounts, is what devices have there: each line is shown to lead from
what it finds before to what it finds after, so by induction over the lines of the flat run it is so
always. So the comparisons that T2 supposes come out equal, and what T2 concludes holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proofs.checking.every_line import EveryLine
from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.matching import Read, Where
from proofs.checking.operation_lines import NORM
from proofs.checking.symbols import MOMENT, NORM_OF, TOKENS
from proofs.checking.symbols import NORM as WHOLE_NORM
from proofs.plans.findings import Findings
from proofs.plans.listed_language import KIND, ListedLanguage, WhyListed
from proofs.plans.listed_run import ListedRun
from proofs.plans.listing import Listing
from proofs.plans.rows import Rows
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import TRUE, And, Implies, Not


class ListedRuns(EveryLine):
    """Runs of listed schedules. The comparisons of T2 are proved of them.

    `why`: why the schedule is one of them, if that is not supposed.
    """

    l: ListedLanguage

    def __init__(
        self,
        k: Kernel,
        schedules: Mapping[str, Listing],
        why: WhyListed | None = None,
    ) -> None:
        sliced = sorted(set().union(*(each.sliced for each in schedules.values())))
        tied = any(each.tied for each in schedules.values())
        clips = any(each.clips for each in schedules.values())
        counts = any(each.counts for each in schedules.values())
        self.moments = all(each.moments for each in schedules.values())
        super().__init__(ListedLanguage(k, len(schedules), sliced, tied, clips, counts, why))
        self.run = ListedRun(self.l, Findings(self.l), Rows(schedules))

    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
        kept: str = "",
    ) -> Theorem:
        """What is read, or kept, compares equal: of each row, or of schedules that begin alike."""
        l, t, b, d, j, run = self.l, self.l.t, self.l.b, self.l.d, self.l.j, self.run
        where = Where(l.is_right(t, d), l.is_met(t, d, j), l.mesh.holds(b, d, j))
        given = [each for each in when(where) if each is not TRUE] + self.on_a_device
        compares = And(*(self.compares(*each) for each in reads))
        about = [self.compared(*each) for each in reads]
        if kept:
            found = [
                self._compared(
                    "",
                    f"{name}_of_{begun.name}",
                    compares,
                    [run.is_one_of(begun), *given],
                    [*run.kept_at_the_end(begun, kept), *about],
                )
                for begun in run.listed.begun
                if begun.keeps(kept)
            ]
            without = [each for each in run.listed.begun if not each.keeps(kept)]
            told = (fact for each in without for fact in run.rests(each))
            rests = {id(fact): fact for fact in told}.values()
            return self.k.prove(name, Implies(And(*given), compares), (), [*found, *rests, l.is_listed])
        update = l.kind(t) == KIND[UPDATE.name]
        updates = any(each is update for each in given)
        kind = UPDATE.name if updates else BACKWARD.name
        state = reads[0][2] if updates and len(reads) == 1 else None
        what = state if state is None or state is TOKENS else state.args[0]
        implied = where.met, l.kind(t) == KIND[kind], l.reads_moment
        here = [each for each in given if not any(each is known for known in implied)]

        def compared(r: int) -> Theorem:
            row, is_it = run.listed.rows[r].about, l.line_of(t) == r
            if what is MOMENT and not row.moments:
                said = [run.program, *run.lines.at(r)]
                return self.k.prove(
                    f"line_{r}_reads_no_moment", Not(l.reads_moment), [*l.line, is_it], said
                )
            has = {WHOLE_NORM: row.clips, TOKENS: row.counts}.get(what, True)
            facts = run.compared(r, what) if has else [run.program, *run.lines.at(r)]
            met = run.met(r, what) if updates else []
            return self._compared(
                kind, f"{name}_in_line_{r}", compares, [is_it, *here, *met], [*facts, *about]
            )

        return self._joined(name, kind, Implies(And(*given), compares), compared)

    def _joined(self, name: str, kind: str, goal: Bool, each: Callable[[int], Theorem]) -> Theorem:
        """What is proved of each row of a kind is so of all lines of it."""
        found = [each(r) for r in self.run.listed.of_kind(kind)]
        return self.k.prove(name, goal, (), [*found, self.run.of_kind(kind)])

    def _compared(self, kind: str, *what: Any) -> Theorem:
        """That what lines of a kind read, or what is kept, compares equal."""
        try:
            return self.k.prove(*what)
        except KernelError as why:
            these = f"what each {kind} reads" if kind else "what is kept after a step"
            raise KernelError(f"z3 has not proved that a single device has {these}") from why

    def _number_read(self, met: list[Bool], name: str, place: Any, what: Any, reads: Bool) -> Theorem:
        """What an update reads of a moment, and of a norm and a count if a schedule has any."""
        if what is MOMENT and self.moments:  # it compares equal whether it is read or not
            return super()._number_read(met, name, place, what, TRUE)
        if {WHOLE_NORM: self.l.clips, TOKENS: self.l.counts}.get(what, True):
            return super()._number_read(met, name, place, what, reads)
        return self.k.prove(f"no_line_reads_a_{name}", Not(reads), self.l.line, [self.run.program])

    def read_by_norms(self) -> tuple[list[Bool], list[Theorem], list[dict[str, Any]]]:
        """No norm reads anything, if no schedule has any."""
        return super().read_by_norms() if self.l.clips else ([], [], [])

    def _norm(self) -> Theorem:
        """What a norm leaves right, if a schedule has any."""
        if self.l.clips:
            return super()._norm()
        none = Not(self.l.kind(self.l.t) == NORM_OF)
        return self.k.prove("no_line_is_a_norm", none, self.l.line, [self.run.program])

    def all_equal_in(
        self, name: str, variables: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """What a norm is of compares equal on the owners of elements: of each row."""
        run, asks = self.run, variables[-1]
        given = [each for each in given if each is not TRUE] + self.on_a_device
        compares = And(*(self.compares(*each) for each in reads))
        about = [self.compared(*each) for each in reads]

        def compared(r: int) -> Theorem:
            facts = [*run.compared(r), *run.of_owners(r, asks), *about]
            is_it = self.l.line_of(self.l.t) == r
            return self._compared(NORM, f"{name}_in_line_{r}", compares, [is_it, *given], facts)

        return self._joined(name, NORM, Implies(And(*given), compares), compared)
