"""What a claim says and how it is proved: conclusions, then what they rest on, then the tree."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofs.kernel import Obligation, Theorem
from proofs.premises import conjuncts, hypotheses
from proofs.registry import ROOT, Result
from proofs.theorem import read
from psem_model.audit.formulas import implication, in_general, parts, statement, text
from psem_model.text.errors import BadInput, or_nearest
from psem_model.text.lines import wrapped


def lines_of(result: Result) -> list[str]:
    """The explanation of a claim, as text."""
    lines = list(_head(result))
    if result.failure:
        lines += ["", *wrapped(result.failure)]
    if result.theorems:
        lines += ["", "what is concluded" if result.verdict == "proved" else "what is shown"]
    for theorem in result.theorems:
        lines += _conclusion(theorem)
    for kind in ("hypothesis", "axiom"):
        found = _assumed(result, kind)
        if found:
            lines += ["", f"what it rests on: {'hypotheses' if kind == 'hypothesis' else 'axioms'}"]
        for part in found:
            lines += [*wrapped(f"{part.name}  {in_general(part)}", "  "), *statement(part, 4)]
    if result.theorems:
        lines += ["", "how it is proved"]
    shown: set[int] = set()
    for theorem in result.theorems:
        lines += tree(theorem, 1, shown)
    return lines


def _head(result: Result) -> Iterator[str]:
    claim = result.claim
    yield from wrapped(claim.statement, f"{claim.id:<4}")
    rows = {"formula": claim.formula, "verdict": _verdict(result), "caveat": claim.caveat}
    rows |= {"source": claim.source, "axioms": ", ".join(result.axioms) or "none"}
    for title, said in rows.items():
        yield from wrapped(said, f"    {title:<8} ")
    for said in claim.scope:
        yield from wrapped(said, "    scope    ")
    for said in claim.checked:
        yield from wrapped(said, "    checked  by running: ", " " * 13)
    try:
        where = place(result)
    except Exception:  # no function is marked with its id, as its failure says
        return
    yield from wrapped(f"{where['file']}:{where['line']} ({where['function']})", "    proved   ")
    for said in where["says"].split("\n\n"):
        yield ""
        yield from wrapped(said, "    ")


def _verdict(result: Result) -> str:
    return result.verdict + (
        ", as expected" if result.as_expected else f", expected {result.claim.expected}"
    )


def place(result: Result) -> dict[str, Any]:
    """Where a claim is proved, and what is said there."""
    function = result.claim.function()
    file = Path(inspect.getsourcefile(function) or "")
    return {
        "file": file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file),
        "line": inspect.getsourcelines(function)[1],
        "function": function.__name__,
        "says": inspect.cleandoc(function.__doc__ or ""),
    }


def _conclusion(theorem: Theorem) -> list[str]:
    """What one theorem says: if these hold then these, under hypotheses."""
    lines = wrapped(f"{theorem.name}  {_part(theorem)}", "  ")
    if theorem.counterexample is not None:
        (asked,) = theorem.obligations
        lines += ["    not for all values:", *implication(asked.facts, conjuncts(asked.goal), 6)]
        return [*lines, *wrapped(f"counterexample: {_values(theorem)}", "    ", "      ")]
    lines += statement(theorem, 4)
    names = ", ".join(sorted(theorem.hypotheses))
    return [*lines, *wrapped(names, "    under ")] if names else lines


def _part(theorem: Theorem) -> str:
    """Which part of its claim it is of, such as a strategy's name; nothing if it is of no part."""
    part = read(theorem).kernel.claim.partition("/")[2]
    return part and f"({part})"


def _assumed(result: Result, kind: str) -> list[Theorem]:
    """The hypotheses or axioms of a claim, by name; those of its parts are alike, and listed once."""
    found = [part for part in hypotheses(result.theorems) if part.rule == kind]
    said = {(part.name, text(part.goal)): part for part in found}
    return [said[key] for key in sorted(said)]


def _values(theorem: Theorem) -> str:
    return ", ".join(f"{name} = {value}" for name, value in (theorem.counterexample or {}).items())


def _cost(o: Obligation) -> str:
    return f"{o.seconds * 1e3:.1f} ms, {o.resources} resources"


def tree(
    theorem: Theorem, depth: int, shown: set[int], note: Callable[[Obligation], str] = _cost
) -> list[str]:
    """A theorem, its obligations with a note on each, and what it was made from."""
    while theorem.rule == "instance":
        (theorem,) = theorem.parts
    pad = "  " * depth
    if id(theorem) in shown:
        return [f"{pad}{theorem.name} (above)"]
    shown.add(id(theorem))
    lines = [f"{pad}{theorem.name}  by {theorem.rule}"]
    if theorem.rule == "definition":
        lines += statement(theorem, len(pad) + 4)
    for o in theorem.obligations:
        lines.append(f"{pad}  - {o.name}: {o.rule}, {o.expected}, {note(o)}")
    if theorem.counterexample is not None:
        lines += wrapped(f"counterexample: {_values(theorem)}", f"{pad}  ", f"{pad}    ")
    for part in theorem.parts:
        lines += tree(part, depth + 1, shown, note)
    return lines


def json_of(result: Result) -> dict[str, Any]:
    """The explanation of a claim, as data: the entry of the report, theorems, and what they rest on."""
    assumed = [
        {"name": part.name, "rule": kind, "says": text(part.goal), "for_all": in_general(part)}
        for kind in ("hypothesis", "axiom")
        for part in _assumed(result, kind)
    ]
    return {
        **result.json(),
        "theorems": [_theorem(theorem) for theorem in result.theorems],
        "assumed": assumed,
        "made_from": [_theorem(theorem) for theorem in result.listed],
        "proved_in": None if result.failure else place(result),
    }


def _theorem(theorem: Theorem) -> dict[str, Any]:
    conditions, goals = parts(theorem)
    found: dict[str, Any] = {
        "name": theorem.name,
        "part": read(theorem).kernel.claim.partition("/")[2],
        "rule": theorem.rule,
        "if": [text(each) for each in conditions],
        "then": [text(each) for each in goals],
        "hypotheses": sorted(theorem.hypotheses),
        "axioms": sorted(theorem.axioms),
        "made_from": [part.name for part in theorem.parts],
        "obligations": [
            {"name": o.name, "rule": o.rule, "answer": o.expected, "resources": o.resources}
            for o in theorem.obligations
        ],
    }
    if theorem.counterexample is not None:
        (asked,) = theorem.obligations
        found["counterexample"] = dict(theorem.counterexample)
        found["refuted"] = {"if": [text(each) for each in asked.facts], "then": [text(asked.goal)]}
    return found


def smt_of(result: Result, name: str) -> str:
    """The SMT-LIB text of one obligation. Raises BadInput, with the nearest name."""
    texts = {o.name: o.text for o in result.obligations}
    if not texts:
        raise BadInput(f"{result.claim.id} has no obligations: {result.failure}")
    if name not in texts:
        raise BadInput(
            f"obligation of {result.claim.id}: given {name!r}; expected one that "
            f"`psem explain {result.claim.id}` lists{or_nearest(name, texts)}"
        )
    return texts[name].rstrip()
