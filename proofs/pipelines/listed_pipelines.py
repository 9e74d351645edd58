"""E11: a run of the checker leaves a theorem, of pipelines that are listed.

Where pieces are, what is sent of what they give, and over which stages gradients of their weights are
summed, are formulas; that each piece is accepted is proved of these, and so what all of them compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proofs.pipelines.stage_runs import INT, Step
from proofs.trusted.kernel import Bool, KernelError, Theorem
from proofs.trusted.terms import And, BoolVal, Implies, IntVal, Or
from spec.devices.layouts import LayoutError
from spec.models.transformer import Transformer
from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import Piece, check_stages, pieces, sends, to_sum

TIED = Transformer(4, 8, 2, 2, 4, 32, 16, positions=4, tied=True)
TWO = Pipeline(Order.ONE_F_ONE_B, 2, 2)
PIPELINES = {  # of which words, and which stages
    "words_of_two_stages": (TIED, TWO),
    "words_of_one_stage": (replace(TIED, tied=False), TWO),
    "layers_as_listed": (TIED, Pipeline(Order.GPIPE, 4, 4, layers=(1, 2, 0, 1))),
    "two_chunks": (TIED, Pipeline(Order.INTERLEAVED, 2, 2, 2)),
    "a_v": (TIED, Pipeline(Order.DUALPIPE_V, 2, 4, 2)),
}


@dataclass(frozen=True)
class ListedPipeline:
    """The pieces of a model, in order, and how many stages they are on; it is accepted."""

    placed: tuple[Piece, ...]
    stages: int

    def __post_init__(self) -> None:
        """Raises KernelError if it is not accepted."""
        try:
            check_stages(self.placed, sends(self.placed), to_sum(self.placed))
        except LayoutError as error:
            raise KernelError(f"a pipeline that is listed is not accepted: {error}") from None

    @cached_property
    def sent(self) -> list[bool]:
        """Whether what a piece gives is sent to the next."""
        sent = sends(self.placed)
        return [pair in sent for pair in zip(self.placed, self.placed[1:], strict=False)]

    @cached_property
    def weights(self) -> list[tuple[frozenset[int], frozenset[Number]]]:
        """The pieces that use a weight, and the stages over which its gradient is summed: each once.

        A gradient that is not summed is that of the stage of the first use.
        """
        summed, users = to_sum(self.placed), dict[tuple[str, Number], list[int]]()
        for number, piece in enumerate(self.placed):
            for weight in piece.part.weights:
                users.setdefault(piece.identity_of(weight), []).append(number)
        found = dict[tuple[frozenset[int], frozenset[Number]], None]()
        for identity, used in users.items():
            over = summed.get(identity, (self.placed[used[0]].stage,))
            found[frozenset(used), frozenset(over)] = None
        return [*found]

    @cached_property
    def listed(self) -> object:
        """All that is said of it."""
        return self.stages, [piece.stage for piece in self.placed], self.sent, {*self.weights}


def listed_pipelines() -> dict[str, ListedPipeline]:
    """Two stages; four, one of them without layers; two chunks on each of two; and a V."""
    return {
        name: ListedPipeline(pieces(model, pipe), int(pipe.stages))
        for name, (model, pipe) in PIPELINES.items()
    }


class ListedPipelines:
    """Which pipeline, and which of its weights, a step is of."""

    def __init__(self, step: Step, listed: Mapping[str, ListedPipeline]) -> None:
        self.step, self.k = step, step.k
        names = "pipeline_number", "weight_number"
        self.number, self.weight = (self.k.fixed(name, INT) for name in names)
        self.is_listed = [self.number >= 0, self.number < len(listed)]
        defined = [
            self.k.define(f"is_{name}", [], self._is_so(pipeline)) for name, pipeline in listed.items()
        ]
        said = [Implies(self.number == q, is_so()) for q, (is_so, _) in enumerate(defined)]
        facts = self.k.suppose("pipelines_are_as_they_are_listed", [], And(*said))
        self.all_accepted = self.k.prove(
            "pieces_of_listed_pipelines_are_accepted",
            And(*step.all_accepted),
            self.is_listed,
            [
                self._accepted(q, name, pipeline, [facts, defined[q][1]])
                for q, (name, pipeline) in enumerate(listed.items())
            ],
        )

    def compute(self, theorems: Sequence[Theorem]) -> Theorem:
        """What accepted pipelines compute, these do."""
        given = dict.fromkeys(g for theorem in theorems for g in theorem.given)
        return self.k.prove(
            "what_listed_pipelines_compute",
            And(*(theorem.goal for theorem in theorems)),
            [*self.is_listed, *(g for g in given if g not in self.step.all_accepted)],
            [self.all_accepted, *theorems],
        )

    def _is_so(self, pipeline: ListedPipeline) -> Bool:
        """Where pieces are, what of them is sent, which use the weight, where its terms are summed."""
        step, placed, weights = self.step, pipeline.placed, pipeline.weights
        said = [step.n == len(placed), step.p == pipeline.stages]
        said += [self.weight >= 0, self.weight < len(weights)]
        for i, piece in enumerate(placed):
            using = [self.weight == w for w, (users, _) in enumerate(weights) if i in users]
            said += [step.at(IntVal(i)) == piece.stage, step.uses(IntVal(i)) == Or(*using)]
        said += [step.sends(IntVal(i)) == BoolVal(sent) for i, sent in enumerate(pipeline.sent)]
        for stage in range(pipeline.stages):
            summing = [self.weight == w for w, (_, over) in enumerate(weights) if stage in over]
            said.append(step.sums(IntVal(stage)) == Or(*summing))
        return And(*said)

    def _accepted(
        self, number: int, name: str, pipeline: ListedPipeline, facts: Sequence[Theorem]
    ) -> Theorem:
        """All pieces of a pipeline are accepted: each by what is asked of it."""
        step, is_it = self.step, [self.number == number]
        every = range(len(pipeline.placed))
        each = [
            self.k.prove(
                f"piece_{i}_of_{name}_is_accepted",
                step.is_accepted(IntVal(i)),
                is_it,
                [*facts, step.accepted_is.at(piece=IntVal(i))],
            )
            for i in every
        ]
        following = (step.accepted_next.at(piece=IntVal(i)) for i in every)
        return self.k.prove(
            f"pieces_of_{name}_are_accepted",
            And(*step.all_accepted),
            is_it,
            [*each, *facts, step.accepted_first, *following],
        )
