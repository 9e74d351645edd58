"""The laws of the operators in a term, by name, with the terms that they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from psem_check.terms import Term, Terms

Law = tuple[str, Sequence[Term]]


def laws_of(terms: Terms, term: Term) -> Iterator[Law]:
    """Those of a term's own operator, or of its sort."""
    head, arguments, sort = terms.heads[term], terms.arguments[term], terms.sorts[term]
    if head == "/":
        yield "quotient", arguments
    elif head in ("div", "mod"):
        yield "division", arguments
    elif head == "select" and terms.heads[arguments[0]] == "store":
        yield "read", (*terms.arguments[arguments[0]], arguments[1])
    if isinstance(sort, tuple) and sort[0] == "Values":
        yield "value", (term,)


def all_laws(terms: Terms, formulas: Iterable[Term]) -> Iterator[Law]:
    """Those of all operators, and of each index at which a changed array may be read.

    But for those of enumerations, of which few are needed.
    """
    there = terms.below(formulas)
    selects = [terms.arguments[term] for term in there if terms.heads[term] == "select"]
    for term in there:
        yield from (law for law in laws_of(terms, term) if law[0] not in ("value", "read"))
        if terms.heads[term] == "store":
            _, at, _ = changed = terms.arguments[term]
            indices = {i for _, i in selects if terms.sorts[i] == terms.sorts[at]}
            yield from (("read", (*changed, i)) for i in sorted(indices))
