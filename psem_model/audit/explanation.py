"""What a claim says and how it is proved: conclusions, then what they rest on, then the tree."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofs.glossary import words_of
from proofs.premises import conjuncts, hypotheses
from proofs.registry import ROOT, Result
from proofs.trusted.infix import text
from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.terms import symbols
from proofs.trusted.theorem import read
from psem_model.audit.formulas import block, implication, in_general, parts, source, statement
from psem_model.audit.obligations import exported
from psem_model.text.errors import BadInput, listed, or_nearest, quoted, refused
from psem_model.text.figures import counted
from psem_model.text.lines import width, wrapped

SHORT = 300  # characters of a definition that is printed beside what is concluded
MANY = 40  # definitions that are printed there


def lines_of(result: Result, with_tree: bool = False) -> list[str]:
    """The explanation of a claim, as text; the tree of its theorems, or how large it is."""
    lines = list(title(result))
    if result.failure:
        lines += ["", *wrapped(result.failure)]
    words = spoken_of(result)
    if words:
        lines += ["", "what it speaks of"]
    for name, says in words.items():
        lines += wrapped(says if says.startswith(name) else f"{name}: {says}", "  ", "      ")
    found = defined(result)
    if found:
        lines += ["", "what is defined"]
    inner = _inner(result, found)
    found = [part for part in found if _head(part)[1] not in inner]
    for part in found[:MANY]:
        said = _definition(part, inner) if _is_short(part) else ["    long: see --tree"]
        name = part.name if read(part).step.rule != "choose" else _head(part)[1]
        lines += [*wrapped(f"{name}  {_part(part)}", "  "), *said]
    lines += wrapped(f"and {len(found) - MANY} more: see --tree", "  ") if found[MANY:] else []
    if result.theorems:
        lines += ["", "what is concluded" if result.verdict == "proved" else "what is shown"]
    for n, theorem in enumerate(result.theorems):
        lines += _conclusion(theorem, result.theorems[:n])
    for kind in ("hypothesis", "axiom"):
        found = assumed(result, kind)
        if found:
            lines += ["", f"what it rests on: {'hypotheses' if kind == 'hypothesis' else 'axioms'}"]
        for part in found:
            lines += [*wrapped(f"{part.name}  {in_general(part)}", "  "), *statement(part, 4)]
    return [*lines, *_proof(result, with_tree)] if result.theorems else lines


def _proof(result: Result, with_tree: bool) -> list[str]:
    """The tree of a claim's theorems, or how large it is."""
    shown: set[int] = set()
    lines = [line for theorem in result.theorems for line in tree(theorem, 1, shown)]
    if not with_tree:
        theorems = counted(len(shown), "theorem")
        size = f"{counted(len(result.obligations), 'obligation')}, a tree of {theorems}"
        lines = wrapped(f"{size}: psem explain {result.claim.id} --tree", "  ")
    return ["", "how it is proved", *lines]


def spoken_of(result: Result) -> dict[str, str]:
    """What the symbols of a claim's conclusions and hypotheses stand for, of those in the glossary."""
    said = [*result.theorems, *defined(result), *assumed(result, "hypothesis")]
    said += assumed(result, "axiom")
    names = {name for part in said for _, name in _symbols(part)}
    return {name: says for name, says in words_of(result.claim.id).items() if name in names}


def defined(result: Result) -> list[Theorem]:
    """The definitions of what a claim's conclusions and what they rest on speak of, and those: in the
    order in which they are spoken of.
    """
    by_name: dict[tuple[int, str], dict[tuple[str, str], Theorem]] = {}
    for part in result.listed:
        if part.rule == "definition" and (head := _head(part))[1]:
            by_name.setdefault(head, {}).setdefault((part.name, text(part.goal)), part)
    said = [*result.theorems, *assumed(result, "hypothesis"), *assumed(result, "axiom")]
    found: dict[tuple[int, str], None] = {}
    for theorem in said:
        pending = [theorem]
        for part in pending:
            new = [name for name in sorted(_symbols(part)) if name in by_name and name not in found]
            found |= dict.fromkeys(new)
            pending += (each for name in new for each in by_name[name].values())
    return [part for name in found for part in by_name[name].values()]


def _definition(part: Theorem, inner: Mapping[str, Theorem]) -> list[str]:
    """A definition, as lines; of a choice, which witnesses there must be, and what is so of them."""
    step = read(part).step
    if step.rule != "choose":
        return statement(part, 4)
    witnesses = [step.given["witness"]]
    while (body := step.given["body"]).op == "apply" and body.of.name in inner:
        step = read(inner[body.of.name]).step
        witnesses.append(step.given["witness"])
    there_are = f"{text(part.goal)} if and only if, for some {', '.join(map(str, witnesses))},"
    return [*wrapped(there_are, "    "), *block("", conjuncts(body), 6)]


def _is_short(part: Theorem) -> bool:
    """Whether a definition is printed beside what is concluded: as a choice is."""
    return read(part).step.rule == "choose" or len(text(part.goal)) <= SHORT


def _inner(result: Result, found: Sequence[Theorem]) -> dict[str, Theorem]:
    """Choices of one witness more: all that speaks of them is the body of another choice."""
    chosen = {_head(part)[1]: part for part in found if read(part).step.rule == "choose"}
    said = [_symbols(part) for part in (*result.theorems, *assumed(result, "hypothesis"))]
    said += [_symbols(part) - {_head(part)} for part in found]
    speak = Counter(name for symbols_of in said for _, name in symbols_of)
    bodies = [read(part).step.given["body"] for part in chosen.values()]
    names = {body.of.name for body in bodies if body.op == "apply"}
    return {name: chosen[name] for name in chosen if name in names and speak[name] == 1}


def _symbols(theorem: Theorem) -> set[tuple[int, str]]:
    """What a theorem speaks of: symbols by kernel and name."""
    record = read(theorem)
    return {(id(record.kernel), symbol.name) for symbol in symbols(*record.given, record.goal)}


def _head(definition: Theorem) -> tuple[int, str]:
    """The symbol that a definition defines; of what a choice finds, which is so besides, none."""
    record, goal = read(definition), definition.goal
    if record.step.rule == "choose":
        symbol = record.step.given["symbol"]
        is_it = goal.op == "apply" and goal.of is symbol
        return id(record.kernel), symbol.name if is_it else ""
    sides = goal.args if goal.op == "=" else [goal]
    named = [side.of.name for side in sides if side.op == "apply"]
    return id(record.kernel), named[0] if named else definition.name


def title(result: Result, brief: bool = False) -> Iterator[str]:
    """A claim and what is said of it; in brief without where it is proved."""
    claim = result.claim
    yield from wrapped(claim.statement, f"{claim.id:<4}")
    rows = {"formula": claim.formula, "verdict": _verdict(result), "caveat": claim.caveat}
    rows |= {"source": claim.source, "axioms": ", ".join(result.axioms) or "none"}
    for title, said in rows.items():
        yield from wrapped(said, f"    {title:<8} ")
    if brief:
        return
    for word, sentences in (("decided", claim.decided), ("watched", claim.watched)):
        for said in sentences:
            yield from wrapped(said, f"    {word}  by running: ", " " * 13)
    try:
        where = place(result)
    except Exception:  # no function is marked with its id, as its failure says
        return
    yield from wrapped(f"{where['file']}:{where['line']} ({where['function']})", "    proved   ")
    for said in where["says"].split("\n\n"):
        yield ""
        yield from wrapped(said, "    ")


def _verdict(result: Result) -> str:
    claim = result.claim
    expected = ", as expected" if result.as_expected else f", expected {claim.expected}"
    return f"{result.verdict}{expected}{claim.part}"


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


def _conclusion(theorem: Theorem, before: Sequence[Theorem] = ()) -> list[str]:
    """What one theorem says: if these hold then these, under hypotheses; after those `before` it."""
    lines = wrapped(f"{theorem.name}  {_part(theorem)}", "  ")
    if theorem.counterexample is not None:
        (asked,) = theorem.obligations
        lines += ["    not for all values:", *implication(asked.facts, conjuncts(asked.goal), 6)]
        return [*lines, *wrapped(f"counterexample: {values_of(theorem)}", "    ", "      ")]
    lines += statement(theorem, 4)
    names = _under(theorem.hypotheses, before)
    return [*lines, *wrapped(names, "    under ")] if names else lines


def _under(names: frozenset[str], before: Sequence[Theorem]) -> str:
    """The names of hypotheses: by those of a theorem that was shown before, if that is shorter."""
    said = ", ".join(sorted(names))
    for each in before if names else ():
        without = ", ".join(sorted(each.hypotheses - names))
        more = ", ".join(sorted(names - each.hypotheses))
        as_before = f"those of {each.name}"
        as_before += f", without {without}" * bool(without) + f", with {more}" * bool(more)
        said = min(said, as_before, key=len)
    return said


def _part_of(theorem: Theorem) -> str:
    """Which part of its claim it is of, such as a strategy's name; nothing if it is of no part."""
    return str(read(theorem).kernel.claim.partition("/")[2])


def _part(theorem: Theorem) -> str:
    return (part := _part_of(theorem)) and f"({part})"


def name_of(theorem: Theorem, obligation: Obligation) -> str:
    """What an obligation is called, once in a claim: its name, after the part it is of, if any."""
    return "/".join(filter(None, (_part_of(theorem), obligation.name)))


def assumed(result: Result, kind: str) -> list[Theorem]:
    """The hypotheses or axioms of a claim, by name; those of its parts are alike, and listed once."""
    found = [part for part in hypotheses(result.theorems) if part.rule == kind]
    said = {(part.name, text(part.goal)): part for part in found}
    return [said[key] for key in sorted(said)]


def values_of(theorem: Theorem) -> str:
    """The values of a counterexample, in a line."""
    return ", ".join(f"{name} = {value}" for name, value in (theorem.counterexample or {}).items())


def tree(theorem: Theorem, depth: int, shown: set[int]) -> list[str]:
    """A theorem, its obligations and what each took, and what it was made from."""
    theorem = source(theorem)
    pad = " " * min(2 * depth, width() // 4)
    if id(theorem) in shown:
        return wrapped(f"{theorem.name} (above)", pad)
    shown.add(id(theorem))
    lines = wrapped(f"{theorem.name}  by {theorem.rule}", pad)
    if theorem.rule == "definition":
        lines += statement(theorem, len(pad) + 4)
    for o in theorem.obligations:
        took = f"{o.seconds * 1e3:.1f} ms, {o.resources} resources"
        said = f"{name_of(theorem, o)}: {o.rule}, {o.expected}, {took}"
        lines += wrapped(said, f"{pad}  - ", f"{pad}      ")
    if theorem.counterexample is not None:
        lines += wrapped(f"counterexample: {values_of(theorem)}", f"{pad}  ", f"{pad}    ")
    for part in theorem.parts:
        lines += tree(part, depth + 1, shown)
    return lines


def json_of(result: Result) -> dict[str, Any]:
    """The explanation of a claim, as data: the entry of the report, theorems, and what they rest on."""
    rests_on = [
        {"name": part.name, "rule": kind, "says": text(part.goal), "for_all": in_general(part)}
        for kind in ("hypothesis", "axiom")
        for part in assumed(result, kind)
    ]
    return {
        **result.outcome.json(),
        "speaks_of": spoken_of(result),
        "theorems": [_theorem(theorem) for theorem in result.theorems],
        "assumed": rests_on,
        "made_from": [_theorem(theorem) for theorem in result.listed],
        "proved_in": None if result.failure else place(result),
    }


def _theorem(theorem: Theorem) -> dict[str, Any]:
    conditions, goals = parts(theorem)
    found: dict[str, Any] = {
        "name": theorem.name,
        "part": _part_of(theorem),
        "rule": theorem.rule,
        "if": [text(each) for each in conditions],
        "then": [text(each) for each in goals],
        "hypotheses": sorted(theorem.hypotheses),
        "axioms": sorted(theorem.axioms),
        "made_from": [part.name for part in theorem.parts],
        "obligations": [
            {
                "name": name_of(theorem, o),
                "rule": o.rule,
                "answer": o.expected,
                "resources": o.resources,
            }
            for o in theorem.obligations
        ],
    }
    if theorem.counterexample is not None:
        (asked,) = theorem.obligations
        found["counterexample"] = dict(theorem.counterexample)
        found["refuted"] = {"if": [text(each) for each in asked.facts], "then": [text(asked.goal)]}
    return found


def smt_of(result: Result, name: str) -> str:
    """The SMT-LIB text of one obligation, by its name, or part/name where several have that name.

    Raises BadInput, with the nearest name.
    """
    asked = [(theorem, o) for theorem in result.listed for o in theorem.obligations]
    found = {name_of(*each): each for each in asked}
    if not found:
        raise BadInput(f"{result.claim.id} has no obligations: {result.failure}")
    meant = [known for known, (_, o) in found.items() if name in (known, o.name)]
    if len(meant) > 1:
        raise BadInput(
            f"obligation of {result.claim.id}: given {quoted(name)}, which {len(meant)} are called; "
            f"expected one of {listed(meant, 8)}"
        )
    if not meant:
        near = or_nearest(name, found) or f"; such as {listed(found, 3)}"
        expected = f"one that `psem explain {result.claim.id} --tree` lists{near}"
        raise refused(f"obligation of {result.claim.id}", name, expected)
    return exported(*found[meant[0]]).rstrip()
