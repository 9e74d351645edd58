"""What a claim says and how it is proved, on two screens: conclusions, and the tops of their trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofs.registry import Result
from proofs.trusted.infix import beginning
from proofs.trusted.kernel import Bool, Theorem
from psem_model.audit.explanation import assumed, title, values_of
from psem_model.audit.formulas import parts, source
from psem_model.text.figures import counted
from psem_model.text.lines import width, wrapped

LINES = 96  # two screens
NOT_SHOWN = ("definition", "hypothesis", "axiom")


def outline_of(result: Result) -> list[str]:
    """The outline of a claim: as many levels of its trees as there is room for."""
    lines = list(title(result, brief=True))
    if not result.theorems:
        return [*lines, "", *wrapped(result.failure)]
    rests = list[str]()
    for kind in ("hypothesis", "axiom"):
        names = ", ".join(part.name for part in assumed(result, kind))
        rests += [*wrapped(names, f"{kind}: ", "  "), ""] if names else []
    levels, fits = 1, _trees(result, 1)
    taken = len(lines) + len(rests) + len(fits) + 2
    lines += next((said for said in _conclusions(result) if taken + len(said) <= LINES), [""])
    lines += rests
    while len(found := _trees(result, levels + 1)) > len(fits):
        if len(lines) + len(found) + 2 > LINES:
            break
        levels, fits = levels + 1, found
    made = counted(len(result.obligations), "obligation")
    more = wrapped(f"all of it, in full: psem explain {result.claim.id}")
    return [*lines, *wrapped(f"how it is proved: {made}"), *fits, *more]


def _conclusions(result: Result) -> Iterator[list[str]]:
    """What a claim concludes, from long to short: at last the names of its theorems alone."""
    for rows in (3, 2, 1, 0):
        said, apart = [_concluded(theorem, rows) for theorem in result.theorems], [""] * (rows > 1)
        lines = [line for each in said for line in (*each, *apart)]
        yield ["", *lines, *([] if apart else [""])]
    names = ", ".join(dict.fromkeys(theorem.name for theorem in result.theorems))
    yield ["", *wrapped(names, f"{counted(len(result.theorems), 'theorem')}: ", "  "), ""]


def _concluded(theorem: Theorem, rows: int) -> list[str]:
    """What a theorem concludes, in so many rows, and under which conditions: in none, how many there
    are. Or which values refute what.
    """
    if theorem.counterexample is not None:
        (asked,) = theorem.obligations
        said = [f"not always: {_brief([asked.goal], 2)}", f"counterexample: {values_of(theorem)}"]
        lines = [line for each in said for line in wrapped(each, "    ")]
        return [*wrapped(theorem.name, "  "), *lines]
    conditions, goals = parts(theorem)
    if not rows:
        when = f"if {counted(len(conditions), 'condition')}, then " if conditions else ""
        more = len(", and 10 more") * (len(goals) > 1)
        brief = f"{when}{_brief(goals, 1, len(when) + more)}"
        return [*wrapped(theorem.name, "  "), *wrapped(brief, "    ")]
    given = [f"if {_brief(conditions, min(rows, 2))}"] if conditions else []
    said = [*given, f"{'then ' * bool(given)}{_brief(goals, rows)}"]
    return [*wrapped(theorem.name, "  "), *(line for each in said for line in wrapped(each, "    "))]


def _brief(formulas: Sequence[Bool], lines: int, taken: int = 0) -> str:
    """As many formulas as some lines have room for, and how many more; a long one cut at a space."""
    most = lines * (width() - 8) - taken
    said = [beginning(formula, most) for formula in formulas]
    fits = [n for n in range(1, len(said) + 1) if len(", ".join(said[:n])) <= most]
    kept = max(fits, default=1)
    first = ", ".join(said[:kept])
    short = first if len(first) <= most else f"{first[: most - 4].rpartition(' ')[0]} ..."
    return short + f", and {len(said) - kept} more" * (kept < len(said))


def _trees(result: Result, levels: int) -> list[str]:
    shown: set[int] = set()
    return [line for theorem in result.theorems for line in _tree(theorem, 1, levels, shown)]


def _tree(theorem: Theorem, depth: int, levels: int, shown: set[int]) -> Iterator[str]:
    """A theorem and what it is made from, some levels down, each once."""
    theorem = source(theorem)
    if theorem.rule in NOT_SHOWN or id(theorem) in shown or depth > levels:
        return
    shown.add(id(theorem))
    yield from wrapped(f"{theorem.name}  by {theorem.rule}", " " * (2 * depth))
    for part in theorem.parts:
        yield from _tree(part, depth + 1, levels, shown)
