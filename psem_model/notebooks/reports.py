"""What the commands report, as functions.

Options have the names and the values of the command line's: `psi="70B"`, `devices=64`, `hold=True`,
`micro_batch=2`, `bytes="fp32-adam"`. All raise BadInput for what the command line refuses. A report
shows itself in a notebook; `print` has it as text, `.document()` as what `--json` prints.
"""

from __future__ import annotations

from proofs.trusted.infix import text
from psem_model.audit.explanation import values_of
from psem_model.audit.formulas import parts
from psem_model.audit.proving import proved
from psem_model.commands import check as checking
from psem_model.commands import compare as comparing
from psem_model.commands import predict as predicting
from psem_model.commands import simulate as simulating
from psem_model.commands.tables import tables as TABLES
from psem_model.notebooks.options import Value, typed, word
from psem_model.predict.verdicts import verdict
from psem_model.reading.claims import named
from psem_model.reading.words import policy as policy_of
from psem_model.tables import chosen
from psem_model.tables import symbols as own
from psem_model.tables.files import build, known
from psem_model.tables.table import Style
from psem_model.text import papers, terminal
from psem_model.text.report import Column, Report, Section, rows


class Shown(Report):
    """A report that a notebook shows as tables, and `print` as text."""

    def _repr_html_(self) -> str:
        return papers.report(self, "html")

    def __str__(self) -> str:
        return terminal.text(self)


def _shown(report: Report) -> Shown:
    return Shown(**vars(report))


def _if_given(strategy: str | None) -> dict[str, str]:
    return {} if strategy is None else {"strategy": strategy}


def predict(strategy: str | None = None, **options: Value) -> Shown:
    """What a plan needs in memory and moves, per device. Raises NotRealisable."""
    given = typed(predicting.predict, _if_given(strategy), options)
    return _shown(predicting.report_of(**given))


def compare(*strategies: str, **options: Value) -> Shown:
    """Plans side by side: memory, what is sent, verdict."""
    words = {f"strategy {number}": each for number, each in enumerate(strategies, 1)}
    return _shown(comparing.report_of(**typed(comparing.compare, words, options)))


def check(file_or_strategy: str, **options: Value) -> Shown:
    """Whether a step in a file, or a strategy, does what a single device does."""
    given = typed(checking.check, {"file_or_strategy": file_or_strategy}, options)
    prove = given.pop("prove")
    return _shown(checking.reported(verdict(**given), prove))


def simulate(strategy: str | None = None, **options: Value) -> Shown:
    """A run on simulated devices, beside what is predicted and a single device."""
    given = typed(simulating.simulate, _if_given(strategy), options)
    return _shown(simulating.report_of(**given))


def table(name: str, **options: Value) -> Shown:
    """One of the tables that `psem tables` lists."""
    given = typed(TABLES, {"table": name}, options)
    style = Style(given["exact"], own.typed(given["symbols"]), policy_of(given["policy"]))
    part = chosen.chosen(given["rows"], given["columns"], given["caption"], given["label"])
    made = build(known(name), style, part)
    return Shown("tables", "", (), (made,), {"tables": [name]})


def explain(claim: str) -> Shown:
    """A claim, proved now: its verdict, and what each of its theorems says, with counterexamples."""
    (result,) = proved(named([word("claim", claim)]))
    verdict = f"{result.verdict}{result.claim.part}"
    facts = [f"{verdict}; axioms: {', '.join(result.axioms) or 'none'}", result.claim.caveat]
    sections = []
    for theorem in result.theorems:
        given, then = parts(theorem)
        lines = [("if", text(each)) for each in given] + [("then", text(each)) for each in then]
        if theorem.counterexample is not None:
            (refuted,) = theorem.obligations
            lines = [("if", text(each)) for each in refuted.facts]
            lines += [("not always", text(refuted.goal)), ("counterexample", values_of(theorem))]
        sections.append(Section(theorem.name, (Column(""), Column("", 1)), rows(lines)))
    title = f"{result.claim.id}: {result.claim.statement}"
    return Shown(
        "explain", title, tuple(filter(None, facts)), tuple(sections), right=result.as_expected
    )
