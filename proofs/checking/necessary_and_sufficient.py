"""T4: the theorem, and its parts: a schedule is accepted if and only if every run of it matches."""

from __future__ import annotations

from proofs.checking.halves import Halves
from proofs.checking.judged_schedules import require_judged
from proofs.checking.micro_steps import any_number_of_micro_steps
from proofs.checking.repetition import require_repetition
from proofs.checking.representation import Represented
from proofs.checking.single_runs import injective_updates
from proofs.claim import claim
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import IntVal


@claim("T4")
def what_is_accepted_matches(k: Kernel) -> tuple[Theorem, ...]:
    """A schedule is accepted if and only if every run of it matches: of any length, on any mesh.

    The schedule is a symbol: its lines are functions of which nothing is said, and each is along one
    axis of a mesh of any number of them. Weights are any number, and a norm is of all. The checker's
    run of it and its comparisons are what the specification makes of normal forms with any
    coefficients; what is not known is arbitrary. They are the amounts of T2. A run is a value: of its
    model, its data, its optimizer and its memory. Accepted: in the steps that are run every copy that
    is kept compares equal. Every run then matches: what is kept is the single device's after every
    step. If some copy does not compare equal there is a run, made for it, that does not match. Of the
    fragment: copies that are kept are known, and what comes out unequal first is passed on to one.
    Every run matches if and only if every run has both halves, said of it alone: what updates apply is
    the whole gradient at its weights (gradient integrity); what is read is current, copies agree, and
    what is current next is what an update left (state consistency). A run has both if and only if it
    matches, and so do its lines: by induction over steps. Of a line that compares unequal some run
    lacks a half, passed on or not.
    The steps that are run: up to the end of one that leaves the forms that it found, one step later,
    where all later steps have the same lines.
    Of a step's micro-steps, any number of them, few are compared, and after them few contributions:
    where one adds what the one before added, one micro-step later, so does each that follows.
    Micro-steps that each make T x + D(m) of what is there, x, do so, and leave after n of them what the
    specification adds up, if T^(k + 1) D = T^k D. What E2 and E3 say of single runs is so of lines: an
    injective update, and gradient descent, that match have applied the whole gradient. (Claim T4)
    """
    require_repetition()
    require_judged()
    language = Represented(k)
    language.follows()
    checker = Halves(language)
    always = checker.always()
    kept = checker.at_the_end(always)
    equal = kept, checker.any_right(always)
    injective = injective_updates(checker, always)
    exact = checker.exact_forms(always)
    micro_steps = any_number_of_micro_steps(k.part("micro_steps"))
    made_for_it = [each.at(i=IntVal(0)) for each in exact]
    differ = checker.kept_differ(made_for_it, always)
    both = checker.of_halves(*checker.if_and_only_if(always, kept, made_for_it, differ))
    return *both, *equal, injective, checker.any_exact(exact), micro_steps
