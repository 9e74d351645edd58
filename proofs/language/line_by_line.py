"""What is so of a line if it is of the lines that it reads is so of every line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, And, Implies, Or


def read_earlier(first: Bool, line: Any, reads: Sequence[Any]) -> Bool:
    """A line reads earlier ones. `first`: whether it reads none."""
    return Or(first, And(*(And(read >= 0, read < line) for read in reads)))


def so_of_every_line(
    k: Kernel,
    line: Any,
    said: Bool,
    reads: Sequence[Any],
    facts: Sequence[Theorem],
    given: Sequence[Bool] = (),
) -> tuple[Any, Theorem]:
    """A variable `other`, and the theorem that it is so of any other line before a line.

    By induction over lines; `facts`: among them, that a line reads earlier ones; `given` of the lines
    before a line.
    """
    other = k.integers("other")
    alike, start, then = k.recursion("so_far", [], line, TRUE, lambda so_far: And(so_far(), said))
    so, before = substitute(said, (line, other)), [other >= 0, other < line]
    one = k.induct("one_of_those", line, Implies(And(alike(line), *before), so), step=[then])
    of_reads = [one.at(other=read) for read in reads]
    every = k.induct("all_before_are_so", line, alike(line), given, [start], [then, *of_reads, *facts])
    return other, k.prove("an_earlier_line_is_so", so, [*given, *before], [every, one])
