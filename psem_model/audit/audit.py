"""The audit of the proofs: what z3 said, looked at in every way that does not rest on its word.

Every claim is proved twice and its obligations are written to files; cvc5 decides each file again.
What does not fit is a finding, in one line; a claim without findings is agreed.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from proofs.registry import ROOT, Claim, claims, registration
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED
from psem_model.audit import cvc5_solver as audit_cvc5
from psem_model.audit.cvc5_solver import Answer, decide, digest_of
from psem_model.audit.evaluate import CannotEvaluate, holds
from psem_model.audit.obligations import ASKED
from psem_model.audit.processes import MEMORY
from psem_model.audit.refutations import executed, name_of
from psem_model.audit.run import SEEDS, twice, works
from psem_model.text.errors import BadInput
from psem_model.text.files import write_atomically
from psem_model.text.progress import ticker
from spec.assumptions import ASSUMPTIONS

Entry: TypeAlias = dict[str, Any]  # what audit_run.entry makes
KERNEL = ROOT / "proofs" / "trusted"
CLAIM = re.compile(r"[A-Z]+\d+")  # a claim's id
SAME = ("verdict", "failure", "axioms", "rules")  # in every run
SAME_OF_EACH = ("name", "expected", "text")  # obligation


def require_cvc5() -> None:
    """Raise BadInput, in one line, now rather than after the proofs."""
    expected = "the package, as by pip install -c constraints.txt cvc5"
    try:
        import cvc5

        cvc5.TermManager()
    except ModuleNotFoundError:
        raise BadInput(f"the second solver: cvc5 is not installed; expected: {expected}") from None
    except Exception as error:  # it is there and broken, in whatever way
        why = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"the second solver: cvc5 cannot be used: {why}; expected: {expected}") from None


def audit(selected: Sequence[Claim], folder: Path) -> dict[str, Any]:
    """Audit claims, with their obligations written under a folder: the report."""
    ids = [claim.id for claim in selected]
    with ticker("z3", works(ids)) as tell:
        runs = twice(ids, tell)
    paths = export(folder, runs)
    answers = {}
    with ticker("cvc5", len(paths)) as tell:
        for done, (path, answer) in enumerate(decide(paths), 1):
            answers[Path(path).relative_to(folder).as_posix()] = answer
            tell(done)
    runs_of = execute(selected, runs)
    found = [judged(claim, runs[claim.id], answers, runs_of) for claim in selected]
    whole = len(selected) == len(claims())
    return {
        "claims": found,
        "findings": registration() if whole else [],
        "solvers": solvers(),
        "runs": {"hash_seeds": SEEDS, "orders": ["as registered", "reversed"]},
        "closest": closest(found),
        "trusted": trusted(found),
    }


# ---------------------------------------------------------------------------------------- files
def export(folder: Path, runs: Mapping[str, Sequence[Entry]]) -> list[str]:
    """Write every obligation, and values of which its facts are true; remove what is older."""
    written = []
    for name, (first, second) in runs.items():
        texts = {}
        for run in (first, second):
            for o in run.get("obligations", ()):
                texts[o["file"]] = o["text"]
                if o.get("witness"):
                    texts[facts_of(o["file"])] = o["witness"]
            texts |= {p["file"]: p["witness"] for p in run.get("premises", ()) if p["witness"]}
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            write_atomically(folder / file, text)
        for path in sorted((folder / name).glob("*.smt2")):
            if f"{name}/{path.name}" not in texts:
                path.unlink(missing_ok=True)
        _remove(folder / name, "*.part")
        written += [str(folder / file) for file in texts]
    _remove_claims_that_are_no_more(folder)
    return written


def _remove_claims_that_are_no_more(folder: Path) -> None:
    known = {claim.id for claim in claims()}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and CLAIM.fullmatch(path.name) and path.name not in known:
            _remove(path, "*.smt2", "*.part")
            if not any(path.iterdir()):
                path.rmdir()


def _remove(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)


def facts_of(file: str) -> str:
    """The file of the facts alone, beside that of an obligation."""
    return file.replace(".smt2", "-facts.smt2")


# ------------------------------------------------------------------------------------- verdicts
def refutations(claim: Claim, runs: Sequence[Entry]) -> dict[str, Mapping[str, str]]:
    """The counterexamples that a refuted claim rests on, each of which is to be run: their values."""
    if claim.expected != "refuted":
        return {}
    found = (o for o in runs[0].get("obligations", ()) if o["values"] is not None)
    return {name_of(claim.id, o["name"]): o["values"] for o in found}


def execute(selected: Sequence[Claim], runs: Mapping[str, Sequence[Entry]]) -> dict[str, list[str]]:
    """By counterexample of these claims, what is wrong with its runs in the simulator, in words."""
    every = [refutations(claim, runs[claim.id]) for claim in selected]
    return {name: executed(name, values) for of in every for name, values in of.items()}


def judged(
    claim: Claim,
    runs: Sequence[Entry],
    answers: Mapping[str, Answer],
    runs_of: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The report's entry of a claim, with what is found to be wrong."""
    first, second = runs
    if not first or not second:
        findings = ["a run ended before it"]
        return {"claim": claim.id, "findings": findings, "premises": [], "obligations": []}
    findings = []
    if first["verdict"] != claim.expected:
        findings.append(f"{first['verdict']}, expected {claim.expected}: {first['failure']}")
    findings += differences(first, second)
    # one of the runs has asked about the facts
    pairs = [{**a, **b} for a, b in zip(first["obligations"], second["obligations"], strict=False)]
    rows = [_row(o, answers, findings) for o in pairs]
    findings += [f"unused: {fact}" for run in runs for fact in run["unused"]]
    premises = [_premises(each, answers, findings) for run in runs for each in run.get("premises", ())]
    names = list(refutations(claim, runs))
    if claim.expected == "refuted" and not names:
        findings.append("simulator: nothing is run, since no counterexample refutes it")
    findings += [f"simulator: the run of {name} {wrong}" for name in names for wrong in runs_of[name]]
    return {
        **{key: first[key] for key in ("claim", "verdict", "axioms", "rules")},
        "findings": findings,
        "executed_runs": sum(not runs_of[name] for name in names),
        "premises": premises,
        "obligations": rows,
    }


def differences(first: Entry, second: Entry) -> list[str]:
    """What is not the same in two runs."""
    found = [f"not reproducible: {key}" for key in SAME if first[key] != second[key]]
    if len(first["obligations"]) != len(second["obligations"]):
        found.append("not reproducible: the number of obligations")
    for a, b in zip(first["obligations"], second["obligations"], strict=False):
        found += [f"not reproducible: {key} of {a['name']}" for key in SAME_OF_EACH if a[key] != b[key]]
    return found


def _row(o: Entry, answers: Mapping[str, Answer], findings: list[str]) -> dict[str, Any]:
    """The report's entry of an obligation."""
    z3, cvc5 = o.get("z3", "not asked"), _heard(answers, o["file"], o["text"])
    where = f"{o['name']} ({o['file']}): expected {o['expected']}"
    if z3 != o["expected"]:
        findings.append(f"z3: {where}: {z3}")
    if cvc5.answer != o["expected"]:
        findings.append(f"cvc5: {where}: {cvc5.answer}")
    row = {key: o[key] for key in ("file", "name", "theorem", "rule", "expected")}
    row["characters"] = len(ASKED + o["text"].rpartition(ASKED)[-1])
    row["z3"] = {"answer": z3, "seconds": o["seconds"], "resources": o["resources"]}
    row["cvc5"] = asdict(cvc5)
    if o.get("facts"):
        row["facts"] = _facts(o, answers, findings)
    if o["values"] is not None:
        row["counterexample"] = {"values": o["values"], "holds": _evaluated(o, findings)}
    return row


def _heard(answers: Mapping[str, Answer], file: str, text: str) -> Answer:
    """The answer to a file, if what was read is what was written."""
    answer = answers.get(file, Answer("not asked"))
    if answer.is_known and answer.digest != digest_of(text.encode()):
        return replace(answer, answer="another text was read than was written")
    return answer


def _facts(o: Entry, answers: Mapping[str, Answer], findings: list[str]) -> dict[str, Any]:
    can_hold = _can_hold(facts_of(o["file"]), o["witness"], answers)
    if set(can_hold.values()) != {"sat"}:
        findings.append(f"vacuous: the facts of {o['name']}: {_both(can_hold)}")
    return {"number": o["facts"], **can_hold}


def _premises(of: Entry, answers: Mapping[str, Answer], findings: list[str]) -> dict[str, Any]:
    can_hold = _can_hold(of["file"], of["witness"], answers)
    if set(can_hold.values()) != {"sat"}:
        findings.append(f"vacuous: all that {of['name']} is proved from: {_both(can_hold)}")
    return {**{key: of[key] for key in ("file", "name", "number", "for_all_values")}, **can_hold}


def _can_hold(file: str, witness: str | None, answers: Mapping[str, Answer]) -> dict[str, str]:
    """What both solvers say of formulas with values of which they are true."""
    cvc5 = _heard(answers, file, witness or "")
    return {"z3": "sat" if witness else "not sat", "cvc5": cvc5.answer}


def _both(said: Mapping[str, str]) -> str:
    return ", ".join(f"{solver} {answer}" for solver, answer in said.items())


def _evaluated(o: Entry, findings: list[str]) -> bool:
    """Whether a counterexample's values make all true that its file asserts, by plain arithmetic."""
    try:
        if holds(o["text"], o["values"]):
            return True
        findings.append(f"counterexample: {o['name']}: its values do not satisfy {o['file']}")
    except CannotEvaluate as error:
        findings.append(f"counterexample: {o['name']}: {error}")
    return False


# ----------------------------------------------------------------------------- the trusted base
def solvers() -> dict[str, Any]:
    """Versions and options."""
    from proofs.trusted.oracle import VERSION

    return {
        "python": platform.python_version(),
        "z3": {
            "version": VERSION,
            "options": {"rlimit": RESOURCE_LIMIT, "random_seed": SEED},
        },
        "cvc5": {
            "version": metadata.version("cvc5"),
            "options": audit_cvc5.options(),
            "killed_after_seconds": audit_cvc5.SECONDS,
            "killed_above_bytes": MEMORY,
        },
    }


def trusted(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The kernel's size, the rules in use, and what is assumed, with the claims that rest on it."""
    rules: Counter[str] = Counter()
    for entry in found:
        rules.update(entry.get("rules", {}))
    return {
        "lines": {
            path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
            for path in sorted(KERNEL.glob("[!_]*.py"))
        },
        "rules": dict(rules.most_common()),
        "axioms": [
            {
                "name": axiom.name,
                "reason": axiom.reason,
                "claims": [e["claim"] for e in found if axiom.name in e.get("axioms", ())],
            }
            for axiom in ASSUMPTIONS.values()
        ],
    }


def closest(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By solver, the obligation closest to its resource bound."""
    bounds = {"z3": RESOURCE_LIMIT, "cvc5": audit_cvc5.RESOURCES}
    rows = [row for entry in found for row in entry["obligations"]]
    return {
        solver: {"file": most["file"], "name": most["name"], "share": most[solver]["resources"] / bound}
        for solver, bound in bounds.items()
        for most in sorted(rows, key=lambda row: row[solver]["resources"])[-1:]
    }
