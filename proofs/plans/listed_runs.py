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
from proofs.plans.listed_language import KIND, ListedLanguage
from proofs.plans.listed_run import ListedRun
from proofs.plans.listing import Listing
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import TRUE, And, Implies, Not


class ListedRuns(EveryLine):
    """Runs of listed schedules. The comparisons of T2 are proved of them."""

    l: ListedLanguage

    def __init__(self, k: Kernel, schedules: Mapping[str, Listing]) -> None:
        sliced = sorted(set().union(*(each.sliced for each in schedules.values())))
        tied = any(each.tied for each in schedules.values())
        clips = any(each.clips for each in schedules.values())
        counts = any(each.counts for each in schedules.values())
        super().__init__(ListedLanguage(k, len(schedules), sliced, tied, clips, counts))
        findings = Findings(self.l)
        self.runs = [ListedRun(self.l, findings, q, *each) for q, each in enumerate(schedules.items())]

    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
        kept: str = "",
    ) -> Theorem:
        """What is read, or kept, compares equal: of each schedule."""
        l, t, b, d, j = self.l, self.l.t, self.l.b, self.l.d, self.l.j
        where = Where(l.is_right(t, d), l.is_met(t, d, j), l.mesh.holds(b, d, j))
        given = [each for each in when(where) if each is not TRUE] + self.on_a_device
        compares = And(*(self.compares(*each) for each in reads))
        about = [self.compared(*each) for each in reads]
        update = l.kind(t) == KIND[UPDATE.name]
        updates = any(each is update for each in given)
        kind = UPDATE.name if updates else BACKWARD.name
        state = reads[0][2] if updates and len(reads) == 1 else None
        what = state if state is None or state is TOKENS else state.args[0]

        def has(run: ListedRun) -> bool:
            """Whether it keeps such a copy, or reads such a number."""
            if kept:
                return bool(run.keeps(kept))
            return {WHOLE_NORM: run.listed.clips, TOKENS: run.listed.counts}.get(what, True)

        found = [
            self._compared(
                "" if kept else kind,
                f"{name}_of_{run.name}",
                compares,
                [
                    run.is_it,
                    *(each for each in given if each is not where.met),
                    *(run.met if updates else []),
                ],
                [*(run.kept_at_the_end(kept) if kept else run.compared(kind, what)), *about],
            )
            for run in filter(has, self.runs)
        ]
        others = [run.rests for run in self.runs if not has(run)]
        return self.k.prove(name, Implies(And(*given), compares), (), [*found, *others, l.is_listed])

    def _compared(self, kind: str, *what: Any) -> Theorem:
        """That what lines of a kind read, or what is kept, compares equal."""
        try:
            return self.k.prove(*what)
        except KernelError as why:
            these = f"what each {kind} reads" if kind else "what is kept after a step"
            raise KernelError(f"z3 has not proved that a single device has {these}") from why

    def _number_read(self, met: list[Bool], name: str, place: Any, what: Any, reads: Bool) -> Theorem:
        """What an update reads of a moment, and of a norm and a count if a schedule has any."""
        if what is MOMENT:  # it compares equal whether it is read or not
            return super()._number_read(met, name, place, what, TRUE)
        if {WHOLE_NORM: self.l.clips, TOKENS: self.l.counts}[what]:
            return super()._number_read(met, name, place, what, reads)
        rests = [run.rests for run in self.runs]
        return self.k.prove(f"no_schedule_reads_a_{name}", Not(reads), (), [*rests, self.l.is_listed])

    def read_by_norms(self) -> tuple[list[Bool], list[Theorem], list[dict[str, Any]]]:
        """No norm reads anything, if no schedule has any."""
        return super().read_by_norms() if self.l.clips else ([], [], [])

    def _norm(self) -> Theorem:
        """What a norm leaves right, if a schedule has any."""
        if self.l.clips:
            return super()._norm()
        l, without = self.l, [run.of_kind(NORM) for run in self.runs]
        given = [*l.line, l.is_device(l.d)]
        none = Not(l.kind(l.t) == NORM_OF)
        return self.k.prove("no_line_is_a_norm", none, given, [*without, l.is_listed])

    def all_equal_in(
        self, name: str, variables: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """What a norm is of compares equal on the owners of elements: of each schedule."""
        asks, given = variables[-1], [each for each in given if each is not TRUE] + self.on_a_device
        compares = And(*(self.compares(*each) for each in reads))
        about = [self.compared(*each) for each in reads]
        found = [
            self._compared(
                NORM,
                f"{name}_of_{run.name}",
                compares,
                [run.is_it, *given],
                [*run.compared(NORM), *run.of_owners(asks), *about],
            )
            for run in self.runs
            if run.listed.clips
        ]
        others = [run.of_kind(NORM) for run in self.runs if not run.listed.clips]
        facts = [*found, *others, self.l.is_listed]
        return self.k.prove(name, Implies(And(*given), compares), (), facts)
