"""The command for the audit, and what it prints."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from psem_model.commands.help import Command
from psem_model.commands.options import CLAIMS, FORM
from psem_model.commands.output import ended, written
from psem_model.text.figures import counted
from psem_model.text.report import Column, Report, Section, listed, rows

if TYPE_CHECKING:
    from proofs.registry import Claim

Found = Mapping[str, Any]
REPORT = "audit.json"
SOLVERS = ("z3", "cvc5")
IDLE = "unused: theorem"
SHORT = 1000  # characters, which are soon read


@click.command(cls=Command, examples=["psem audit S1"])
@CLAIMS
@FORM
def audit(ids: Sequence[str], form: str) -> None:
    """Decide the obligations of claims (all, or those named) again by cvc5, and audit their facts.

    Of one claim the obligations are printed, with both solvers' answers and times. The obligations are
    in build/smt2; of all claims, the report is in build/audit.json. Exit code 1 if anything is found.
    """
    from proofs.registry import claims
    from psem_model.audit import audit as audits
    from psem_model.reading.claims import named
    from psem_model.text import places
    from psem_model.text.files import require_writable, write_atomically

    selected = named(ids)
    audits.require_cvc5()
    whole = len(selected) == len(claims())
    require_writable(places.BUILD / "smt2")
    require_writable(places.BUILD, *([REPORT] if whole else []))
    start = time.monotonic()
    report = audits.audit(selected, places.BUILD / "smt2")
    report["seconds"] = round(time.monotonic() - start, 3)
    printed = report_of(report, selected, whole)
    if whole:
        write_atomically(places.BUILD / REPORT, written(printed, "json"))
    ended(printed, form)


def findings(report: Found) -> list[str]:
    """All that is wrong."""
    of_claims = [f"{c['claim']}: {each}" for c in report["claims"] for each in c["findings"]]
    return [*report["findings"], *of_claims]


def report_of(found: Found, selected: Sequence[Claim], whole: bool) -> Report:
    """What is printed: of one claim its obligations, then a row for each claim, and all in all."""
    wrong, each = findings(found), len(selected) == 1
    sections = (
        *([_obligations(found["claims"][0])] if each else []),
        _claims(found),
        *([listed("findings", wrong)] if wrong else []),
        Section("", notes=tuple(totals(found, whole))),
    )
    title = f"{counted(len(selected), 'claim')} audited"
    if each:
        title = f"{selected[0].id}  {selected[0].statement}"
    return Report("audit", title, sections=sections, data=found, right=not wrong)


def _obligations(found: Found) -> Section:
    """Both solvers' answers and times."""
    cells = (
        (row["name"], f"by {row['rule']}", row["file"], *(c for s in SOLVERS for c in _said(row, s)))
        for row in found["obligations"]
    )
    heads = ("obligation", "", "file", "z3", "ms", "cvc5", "ms")
    columns = tuple(Column(head, right=head == "ms") for head in heads)
    return Section("obligations", columns, rows(cells))


def _said(row: Found, solver: str) -> tuple[str, str]:
    return f"{solver} {row[solver]['answer']}", f"{row[solver]['seconds'] * 1e3:.1f} ms"


def _claims(report: Found) -> Section:
    """Whether both solvers agree on each claim, on how much, and how long it took them."""
    cells = []
    for found in report["claims"]:
        asked = found["obligations"]
        facts = sum(row["facts"]["number"] for row in asked if "facts" in row)
        times = (f"{s} {1e3 * sum(row[s]['seconds'] for row in asked):.0f} ms" for s in SOLVERS)
        agreed = "NOT AGREED" if found["findings"] else "agreed"
        numbers = counted(len(asked), "obligation"), *times, counted(facts, "fact")
        cells.append((found["claim"], agreed, *numbers))
    heads = ("claim", "agreed", "obligations", *SOLVERS, "facts")
    columns = tuple(Column(head, right=number > 1) for number, head in enumerate(heads))
    return Section("claims", columns, rows(cells))


def totals(report: Found, whole: bool) -> list[str]:
    """The closing lines."""
    asked = [row for claim in report["claims"] for row in claim["obligations"]]
    facts = [row["facts"] for row in asked if "facts" in row]
    shown = [row["counterexample"]["holds"] for row in asked if "counterexample" in row]
    agreed = sum(row["cvc5"]["answer"] == row["expected"] for row in asked)
    held = sum((f["z3"], f["cvc5"]) == ("sat", "sat") for f in facts)
    of_claims = [each for claim in report["claims"] for each in claim["findings"]]
    unused = sum(each.startswith("unused: ") and not each.startswith(IDLE) for each in of_claims)
    solvers, trusted = report["solvers"], report["trusted"]
    runs = sum(claim.get("executed_runs", 0) for claim in report["claims"])
    premises = [each for claim in report["claims"] for each in claim.get("premises", ())]
    possible = sum((each["z3"], each["cvc5"]) == ("sat", "sat") for each in premises)
    generals = [c["claim"] for c in report["claims"] if any(p["for_all_values"] for p in c["premises"])]
    short = sum(row["characters"] < SHORT for row in asked)
    lines = [
        f"cvc5 {solvers['cvc5']['version']} and z3 {solvers['z3']['version']} agree on {agreed} of "
        f"{len(asked)} obligations of {len(report['claims'])} claims",
        f"texts: {short} of {len(asked)} obligations have less than {SHORT:,} characters, without what "
        "is known in general",
        f"facts: those of {held} of {len(facts)} obligations can hold, in both solvers; {unused} of "
        f"{sum(f['number'] for f in facts)}, or parts of them, are unused",
        f"premises: those of {possible} of {len(premises)} theorems can hold together; {len(generals)} "
        "claims have hypotheses for all values, by instances",
        f"counterexamples: {sum(shown)} of {len(shown)} evaluated without a solver; the runs of {runs} "
        "refutations executed in the simulator",
        f"two runs, hash seeds {' and '.join(report['runs']['hash_seeds'])}, in opposite order: "
        + ("NOT the same" if _differ(report) else "the same answers and texts"),
    ]
    for solver, most in report["closest"].items():
        share, where = f"{100 * most['share']:.1f} %", f"{most['name']} ({most['file']})"
        lines.append(f"closest to its resource bound in {solver}: {where}, {share}")
    if whole:
        sizes = ", ".join(f"{name} {lines_}" for name, lines_ in trusted["lines"].items())
        lines.append(f"trusted: lines of {sizes}")
        lines.append("rules: " + ", ".join(f"{rule} {n}" for rule, n in trusted["rules"].items()))
        for axiom in trusted["axioms"]:
            on = (
                f"{len(axiom['claims'])} claims"
                if len(axiom["claims"]) > 8
                else ", ".join(axiom["claims"])
            )
            lines.append(f"axiom {axiom['name']} ({on}): {axiom['reason']}")
    wrong = findings(report)
    lines.append(f"{len(wrong)} findings" if wrong else "nothing found")
    return lines


def _differ(report: Found) -> bool:
    return any("not reproducible: " in each for each in findings(report))
