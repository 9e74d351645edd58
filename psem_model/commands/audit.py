"""The command for the audit, and what it prints."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from psem_model.commands.help import Command
from psem_model.commands.options import CLAIMS, JSON, ticker
from psem_model.text.errors import REJECTED
from psem_model.text.report import VERSION

if TYPE_CHECKING:
    from proofs.kernel import Obligation
    from proofs.registry import Claim
    from psem_model.audit.audit import Tell

Found = Mapping[str, Any]
REPORT = "audit.json"
IDLE = "unused: theorem"


@click.command(cls=Command, examples=["psem audit C1"])
@CLAIMS
@JSON
def audit(ids: Sequence[str], as_json: bool) -> None:
    """Decide the obligations of claims (all, or those named) again by cvc5, and audit their facts.

    Of one claim the theorem tree is printed, with both solvers' answers and times. The obligations
    are in build/smt2; of all claims, the report is in build/audit.json. Exit code 1 if anything is
    found.
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
    with _progress() as tell:
        report = audits.audit(selected, places.BUILD / "smt2", tell)
    report["seconds"] = round(time.monotonic() - start, 3)
    report = {"report": "audit", "version": VERSION, **report}
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        tree = _tree(selected[0], report["claims"][0]) if ids and len(selected) == 1 else []
        for line in (*tree, *(line_of(found) for found in report["claims"]), *totals(report, whole)):
            click.echo(line)
    if whole:
        write_atomically(places.BUILD / REPORT, json.dumps(report, indent=2) + "\n")
    sys.exit(REJECTED if findings(report) else 0)


@contextmanager
def _progress() -> Iterator[Tell]:
    """A bar for each thing that is done, one after the other."""
    with ExitStack() as stack:
        bars: dict[str, Any] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in bars:
                stack.close()
                bars[what] = stack.enter_context(ticker(what, of))
            bars[what](done)

        yield tell


def findings(report: Found) -> list[str]:
    """All that is wrong."""
    of_claims = [f"{c['claim']}: {each}" for c in report["claims"] for each in c["findings"]]
    return [*report["findings"], *of_claims]


def line_of(found: Found) -> str:
    """One claim's line, and what is found under it."""
    rows = found["obligations"]
    facts = [row["facts"] for row in rows if "facts" in row]
    z3, cvc5 = (1e3 * sum(row[solver]["seconds"] for row in rows) for solver in ("z3", "cvc5"))
    agreed = "NOT AGREED" if found["findings"] else "agreed"
    line = (
        f"{found['claim']:<3} {agreed:<10} {len(rows):>4} obligations  z3 {z3:>6.0f} ms  "
        f"cvc5 {cvc5:>6.0f} ms  {sum(f['number'] for f in facts):>4} facts"
    )
    return "\n".join([line, *(f"    {each}" for each in found["findings"])])


def totals(report: Found, whole: bool) -> list[str]:
    """The closing lines."""
    rows = [row for claim in report["claims"] for row in claim["obligations"]]
    facts = [row["facts"] for row in rows if "facts" in row]
    shown = [row["counterexample"]["holds"] for row in rows if "counterexample" in row]
    agreed = sum(row["cvc5"]["answer"] == row["expected"] for row in rows)
    held = sum((f["z3"], f["cvc5"]) == ("sat", "sat") for f in facts)
    of_claims = [each for claim in report["claims"] for each in claim["findings"]]
    unused = sum(each.startswith("unused: ") and not each.startswith(IDLE) for each in of_claims)
    solvers, trusted = report["solvers"], report["trusted"]
    runs = sum(claim.get("executed_runs", 0) for claim in report["claims"])
    premises = [each for claim in report["claims"] for each in claim.get("premises", ())]
    possible = sum((each["z3"], each["cvc5"]) == ("sat", "sat") for each in premises)
    generals = [c["claim"] for c in report["claims"] if any(p["for_all_values"] for p in c["premises"])]
    lines = [
        "",
        f"cvc5 {solvers['cvc5']['version']} and z3 {solvers['z3']['version']} agree on {agreed} of "
        f"{len(rows)} obligations of {len(report['claims'])} claims",
        f"facts: those of {held} of {len(facts)} obligations can hold, in both solvers; {unused} of "
        f"{sum(f['number'] for f in facts)}, or parts of them, are unused",
        f"premises: those of {possible} of {len(premises)} theorems can hold together; {len(generals)} "
        "claims have hypotheses for all values, by instances",
        f"counterexamples: {sum(shown)} of {len(shown)} evaluated without a solver; the runs of {runs} "
        "refutations executed in the simulator",
        f"two runs, hash seeds {' and '.join(report['runs']['hash_seeds'])}, in opposite order: "
        + ("NOT the same" if _differ(report) else "the same answers, texts and resource counts"),
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
    lines += [f"psem: {each}" for each in report["findings"]]
    lines.append(f"{len(wrong)} findings" if wrong else "nothing found")
    return lines


def _differ(report: Found) -> bool:
    return any("not reproducible: " in each for each in findings(report))


def _tree(claim: Claim, found: Found) -> list[str]:
    """The theorem tree of a claim, with both solvers' answers and times."""
    from psem_model.audit.explanation import tree
    from psem_model.audit.proving import proved

    result = proved(claim)
    rows = {
        id(obligation): row
        for obligation, row in zip(result.obligations, found["obligations"], strict=False)
    }

    def note(obligation: Obligation) -> str:
        row = rows.get(id(obligation))
        if row is None:
            return "not audited"
        return f"{row['file']}, " + ", ".join(
            f"{solver} {row[solver]['answer']} {row[solver]['seconds'] * 1e3:.1f} ms"
            for solver in ("z3", "cvc5")
        )

    lines, shown = [f"{claim.id}  {claim.statement}"], set[int]()
    for theorem in result.theorems:
        lines += ["", *tree(theorem, 1, shown, note)]
    return [*lines, ""]
