"""That there are some: predicates that say so of several variables at once, and what is found then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import name_of, substitute
from proofs.trusted.terms import Term


@dataclass(frozen=True)
class Some:
    """holds: that some witnesses make the body true; found: such ones. shown: what makes it true shows
    it; serves: what is found makes it true.
    """

    holds: Bool
    found: tuple[Any, ...]
    shown: Theorem
    serves: Theorem


def some(k: Kernel, name: str, params: Sequence[Term], witnesses: Sequence[Term], body: Bool) -> Some:
    """Declare the predicate: one choice for each witness, the last first."""
    said, choices = body, []
    for n in reversed(range(len(witnesses))):
        given = [*params, *witnesses[:n]]
        called = "_".join([name, *("of", *map(name_of, witnesses[:n]))]) if n else name
        holds, witness, shown, serves = k.choose(called, given, witnesses[n], said)
        said = holds(*given)
        choices.append((witness, shown, serves))
    found: list[Any] = []
    for witness, _, _ in reversed(choices):
        found.append(witness(*params, *found))
    at = {name_of(each): term for each, term in zip(witnesses, found, strict=True)}
    pairs = list(zip(witnesses, found, strict=True))
    return Some(
        said,
        tuple(found),
        k.prove(f"{name}_if_any", said, [body], [shown for _, shown, _ in choices]),
        k.prove(
            f"{name}_here",
            substitute(body, *pairs),
            [said],
            [
                serves.at(**dict(list(at.items())[: len(witnesses) - 1 - m]))
                for m, (_, _, serves) in enumerate(choices)
            ],
        ),
    )
