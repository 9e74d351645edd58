"""What the commands report, as functions.

Options have the names and the values of the command line's: `psi="70B"`, `devices=64`, `hold=True`,
`micro_batch=2`; `policy` is `--bytes`. All raise BadInput for what the command line refuses. A report
shows itself in a notebook; `print` has it as text, `.document()` as what `--json` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofs.trusted.infix import text
from psem_model.audit.formulas import parts
from psem_model.audit.proving import proved
from psem_model.commands.check import verdict
from psem_model.commands.options import asked
from psem_model.measure.report import measured, run_of
from psem_model.predict import compare as compared
from psem_model.predict.read import read, read_several
from psem_model.predict.report import predicted
from psem_model.reading.claims import named
from psem_model.reading.words import policy as policy_of
from psem_model.tables import chosen
from psem_model.tables.files import build
from psem_model.tables.table import Style
from psem_model.text import papers, terminal
from psem_model.text.report import Column, Report, Section, rows

Value = str | int | float | bool | None


class Shown(Report):
    """A report that a notebook shows as tables, and `print` as text."""

    def _repr_html_(self) -> str:
        return papers.report(self, "html")

    def __str__(self) -> str:
        return terminal.text(self)


def _shown(report: Report) -> Shown:
    return Shown(**vars(report))


def predict(strategy: str | None = None, **options: Value) -> Shown:
    """What a plan needs in memory and moves, per device. Raises NotRealisable."""
    return _shown(predicted(read(asked("predict", _typed(options), strategy=strategy))))


def compare(*strategies: str, global_batch: Value = None, **options: Value) -> Shown:
    """Plans side by side: memory, what is sent, verdict."""
    batch = _word(global_batch)
    plans = read_several(asked("compare", _typed(options)), strategies, batch)
    return _shown(compared.report(plans))


def check(
    file_or_strategy: str,
    devices: Value = None,
    accumulate: Value = None,
    policy: str | None = None,
    **shape: Value,
) -> Shown:
    """Whether a step in a file, or a strategy, does what a single device does."""
    found = verdict(file_or_strategy, _word(devices), _word(accumulate), policy, _typed(shape))
    return _shown(found.report())


def simulate(
    strategy: str | None = None,
    steps: int = 1,
    arithmetic: str = "modular",
    seed: int = 0,
    **options: Value,
) -> Shown:
    """A run on simulated devices, beside what is predicted and a single device."""
    plan = read(asked("simulate", _typed(options), strategy=strategy))
    return _shown(measured(plan, run_of(str(steps), arithmetic, str(seed))).report())


def table(
    name: str, symbols: str = "", exact: bool = True, policy: str = "mixed-adam", rows: str = ""
) -> Shown:
    """One of the tables that `psem tables` lists."""
    style = Style(exact, chosen.symbols(symbols), policy_of(policy))
    made = build(name, style, chosen.chosen(rows, "", "", ""))
    return Shown("tables", "", (), (made,), {"tables": [name]})


def explain(claim: str) -> Shown:
    """A claim, proved now: its verdict, and what each of its theorems says, with counterexamples."""
    (result,) = proved(named([claim]))
    facts = [f"{result.verdict}; axioms: {', '.join(result.axioms) or 'none'}", result.claim.caveat]
    sections = []
    for theorem in result.theorems:
        given, then = parts(theorem)
        lines = [("if", text(each)) for each in given] + [("then", text(each)) for each in then]
        if theorem.counterexample is not None:
            values = ", ".join(f"{name} = {value}" for name, value in theorem.counterexample.items())
            (refuted,) = theorem.obligations
            lines = [("if", text(each)) for each in refuted.facts]
            lines += [("not always", text(refuted.goal)), ("counterexample", values)]
        sections.append(Section(theorem.name, (Column(""), Column("", 1)), rows(lines)))
    title = f"{result.claim.id}: {result.claim.statement}"
    return Shown(
        "explain", title, tuple(filter(None, facts)), tuple(sections), right=result.as_expected
    )


def _typed(options: Mapping[str, Value]) -> dict[str, Any]:
    """Options as they would be typed."""
    return {name: value if isinstance(value, bool) else _word(value) for name, value in options.items()}


def _word(value: Value) -> str | None:
    """A value as it would be typed; 7e9 is a whole number."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)
