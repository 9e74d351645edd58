"""Which run executes which counterexample, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from psem_model.simulator.network import Network

Values = Mapping[str, Fraction]  # of a counterexample, by the name of its unknown


@dataclass(frozen=True)
class Shown:
    """What a run showed.

    `messages`: how many the simulator's devices sent to each other in what diverges. `said`: what the
    counterexample says of the run, in words, and whether it is so.
    """

    messages: int
    said: Mapping[str, bool]

    def wrong(self, carried: int) -> list[str]:
        """Why it does not execute the counterexample, in words; nothing if it does.

        `carried`: how many messages the simulator has carried in the run.
        """
        sent = [] if self.messages else ["sends nothing"]
        if self.messages > carried:
            sent = [f"says that it sends {self.messages} messages, and the simulator carried {carried}"]
        said = [] if self.said else ["shows nothing"]
        wrong = [f"does not show that {words}" for words, is_so in self.said.items() if not is_so]
        return sent + said + wrong


Run = Callable[..., Shown]
AnyRun = TypeVar("AnyRun", bound=Run)
REGISTERED: dict[str, list[Callable[[Values], Shown]]] = {}


def name_of(claim: str, theorem: str) -> str:
    """How a counterexample is called: that of a theorem of a claim."""
    return f"{claim}-{theorem}"


def refutes(claim: str, theorem: str, *case: Any) -> Callable[[AnyRun], AnyRun]:
    """The run executes the counterexample of a theorem of a claim: `run(values, *case)`."""

    def register(run: AnyRun) -> AnyRun:
        runs = REGISTERED.setdefault(name_of(claim, theorem), [])
        runs.append(lambda values: run(values, *case))
        return run

    return register


def executed(name: str, texts: Mapping[str, str]) -> list[str]:
    """Execute the counterexample of this name: what is wrong with its runs, in words.

    `texts`: its values, as the kernel records them.
    """
    values = {unknown: Fraction(text) for unknown, text in texts.items()}
    if name not in REGISTERED:
        return ["is not registered"]
    found = []
    for run in REGISTERED[name]:
        try:
            before = Network.carried
            shown = run(values)
            found += shown.wrong(Network.carried - before)
        except Exception as error:  # a run that breaks down shows nothing
            found.append(f"breaks down: {type(error).__name__}: {' '.join(str(error).split())}")
    return found
