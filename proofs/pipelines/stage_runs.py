"""A step of training on the stages of a pipeline, and on one device, in symbols: what E11 is about.

Pieces are numbered through the model: value i is what piece i reads, and value i + 1 what it gives.
Values are those of any one sample; gradients, those of any one element of a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.meaning.runs import implied
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import (
    TRUE,
    And,
    BoolSort,
    DeclareSort,
    If,
    Implies,
    IntSort,
    Not,
    Or,
    RealSort,
    RealVal,
)
from spec.assumptions import DETERMINISM
from spec.meaning import conditions
from spec.models.values import Part, Role, Value
from spec.pipelines.stages import Piece, is_sent, may_update

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
Stream, Weights = DeclareSort("Stream"), DeclareSort("Weights")
ANY_PART = Part("any", (), None, Value("any", (), Role.STREAM))


def on_stage(stage: Any) -> Piece:
    """A piece of which nothing but the stage is known."""
    return Piece(ANY_PART, 0, stage, 0)


class Step:
    """One step: each stage does its works in any order, `units` of them for gradients of weights."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.i, self.x, self.stage, self.work = k.integers("piece sample stage work")
        self.n, self.p, self.works, self.units, self.samples = (
            k.fixed(name, INT) for name in ("pieces", "stages", "works", "units", "samples")
        )
        self.inside = And(self.i >= 0, self.i < self.n)
        self.sizes = k.suppose("sizes", [], And(self.n >= 1, self.p >= 1, self.samples >= 0))
        self.at = k.function("stage_of", INT, INT)
        self.weights = k.function("weights", INT, Weights)  # the current ones, that one device has
        self.fresh = self._fresh()
        # which of its works a stage does for a sample's forward through a piece, for its cotangent in
        # backward, and for gradients: one work for both, or two
        self.when = {
            name: k.function(f"{name}_work", INT, INT, INT)
            for name in ("forward", "backward", "gradient")
        }
        self.counted = {
            name: k.suppose(
                f"{name}s_are_of_this_step",
                [self.i, self.x],
                And(when(self.i, self.x) >= 0, when(self.i, self.x) < self.works),
            )
            for name, when in self.when.items()
        }
        self.uses = k.function("uses", INT, BOOL)  # whether a piece reads the weight in question
        self.sends = k.function("sends", INT, BOOL)  # whether what a piece gives is sent to the next
        self.sums = k.function("sums", INT, BOOL)  # whether a stage's terms of its gradient are summed
        self.accepted = self._accepted()
        self.forward, self.gives = self._forward()
        self.backward = self._backward()

    # ------------------------------------------------------------------- acceptance
    def asked(self) -> Bool:
        """What the checker asks of a piece: what the next one reads is there, its uses are summed."""
        here, next_ = (on_stage(self.at(i)) for i in (self.i, self.i + 1))
        there = Implies(And(self.i + 1 < self.n, is_sent(here, next_)), self.sends(self.i))
        return And(there, Implies(self.uses(self.i), self.sums(self.at(self.i))))

    def _accepted(self) -> Theorem:
        """What is asked is so of each piece, where the checker accepts them all."""
        k, i, other = self.k, self.i, self.k.integers("other")
        self.is_accepted, self.accepted_is = k.define("is_accepted", [i], self.asked())
        self.are_accepted, self.accepted_first, self.accepted_next = k.recursion(
            "pieces_before_are_accepted",
            [],
            i,
            TRUE,
            lambda before: And(before(), self.is_accepted(i)),
        )
        self.all_accepted = [self.are_accepted(self.n)]
        said = [self.are_accepted(i), other >= 0, other < i]
        each = k.induct(
            "each_piece_before_is_accepted",
            i,
            Implies(And(*said), self.is_accepted(other)),
            step=[self.accepted_next],
        )
        return k.prove(
            "what_is_asked_is_so_of_each_piece",
            self.asked(),
            [*self.all_accepted, self.inside],
            [each.at(piece=self.n, other=i), self.accepted_is],
        )

    # ------------------------------------------------------------------- freshness
    def _fresh(self) -> Theorem:
        """Until the flush, every work of a stage reads the parameters that the step began with."""
        k, stage, work, i = self.k, self.stage, self.work, self.i
        self.view = k.function("view", INT, INT, INT, Weights)
        updates = k.function("updates", INT, INT, BOOL)  # a stage, after so many works
        begins = k.suppose(
            "stages_begin_with_current_weights", [i], self.view(self.at(i), 0, i) == self.weights(i)
        )
        stays = k.suppose(
            "weights_stay_until_an_update",
            [stage, work, i],
            Or(updates(stage, work + 1), self.view(stage, work + 1, i) == self.view(stage, work, i)),
        )
        flush = k.suppose(
            "updates_wait_for_the_flush",
            [stage, work],
            Implies(updates(stage, work), may_update(work, self.works)),
        )
        here = {"stage": self.at(i)}
        return k.induct(
            "every_read_is_fresh",
            work,
            implied(
                conditions.freshness(
                    Not(may_update(work, self.works)),
                    self.view(self.at(i), work, i),
                    self.weights(i),
                )
            ),
            base=[begins],
            step=[stays.at(**here), flush.at(**here, work=work + 1)],
        )

    # ---------------------------------------------------------- forward and backward
    def _function(self, name: str, *sorts: Any) -> tuple[Any, Callable[..., tuple[Any, Theorem]]]:
        """Any function of a piece and of values, and what a stage makes of it: the same.

        A stage evaluates it with the weights that it reads at one of its works.
        """
        k, i = self.k, self.i
        one, local = k.function(name, INT, *sorts), k.function(f"stages_{name}", INT, INT, *sorts)
        given = [k.constant(f"{name}_{j}", sort) for j, sort in enumerate(sorts[:-1])]
        alike = k.axiom(f"{name}_alike", DETERMINISM, local, one, self.stage, i, *given)

        def evaluated(when: Any, *values: Any) -> tuple[Any, Theorem]:
            values = self.view(self.at(i), when, i), *values
            terms = {str(v): value for v, value in zip(given, values, strict=True)}
            return local(self.at(i), i, *values), alike.at(stage=self.at(i), **terms)

        return one, evaluated

    def _forward(self) -> tuple[Theorem, Theorem]:
        """Each stage has what its pieces read, and what they give, as one device has it.

        What a stage has, it keeps until its backward is done, in all parts.
        """
        k, i, x, at = self.k, self.i, self.x, self.at
        first = k.function("first_value", INT, Stream)
        f, evaluated = self._function("forward", Weights, Stream, Stream)
        self.stream, begins, goes_on = k.recursion(
            "stream", [x], i, first(x), lambda before: f(i, self.weights(i), before(x))
        )
        self.has = has = k.function("has", INT, INT, INT, Stream)  # a stage, a value, a sample
        enters = k.suppose("samples_enter", [x], has(at(0), 0, x) == first(x))
        when = self.when["forward"](i, x)
        value, alike = evaluated(when, has(at(i), i, x))
        computes = k.suppose(
            "stages_run_their_pieces",
            [i, x],
            Implies(self.inside, has(at(i), i + 1, x) == value),
        )
        arrives = k.suppose(
            "what_is_sent_arrives",
            [i, x],
            Implies(And(self.inside, self.sends(i)), has(at(i + 1), i + 1, x) == has(at(i), i + 1, x)),
        )
        runs = [computes, alike, self.fresh.at(work=when), self.counted["forward"], goes_on]
        reads = k.induct(
            "pieces_read_what_one_device_reads",
            i,
            has(at(i), i, x) == self.stream(x, i),
            given=[i < self.n, *self.all_accepted],
            base=[enters, begins],
            step=[*runs, arrives, self.accepted],
        )
        gives = k.prove(
            "pieces_give_what_one_device_gives",
            has(at(i), i + 1, x) == self.stream(x, i + 1),
            given=[self.inside, *self.all_accepted],
            uses=[reads, *runs],
        )
        return reads, gives

    def _backward(self) -> Theorem:
        """Each stage has the cotangent of what its pieces give, as one device has it.

        By induction from the last piece: `back` pieces before it.
        """
        k, i, x, at, has, n = self.k, self.i, self.x, self.at, self.has, self.n
        loss = k.function("loss_cotangent", INT, Stream, Stream)
        b, evaluated = self._function("backward", Weights, Stream, Stream, Stream)
        back = k.integers("back")
        here = n - 1 - back
        self.cotangent, begins, goes_on = k.recursion(
            "cotangent",
            [x],
            back,
            loss(x, self.stream(x, n)),
            lambda after: b(here, self.weights(here), self.stream(x, here), after(x)),
        )
        self.gets = gets = k.function("gets", INT, INT, INT, Stream)  # the cotangent of a value
        starts = k.suppose(
            "the_loss_starts", [x], gets(at(n - 1), n, x) == loss(x, has(at(n - 1), n, x))
        )
        when = self.when["backward"](i, x)
        value, alike = evaluated(when, has(at(i), i, x), gets(at(i), i + 1, x))
        computes = k.suppose(
            "stages_run_their_pieces_back", [i, x], Implies(self.inside, gets(at(i), i, x) == value)
        )
        returns = k.suppose(
            "what_is_sent_back_arrives",
            [i, x],
            Implies(
                And(self.inside, self.sends(i)), gets(at(i), i + 1, x) == gets(at(i + 1), i + 1, x)
            ),
        )
        runs = [computes, alike, self.fresh.at(work=when), self.counted["backward"], self.forward]
        return k.induct(
            "cotangents_are_those_of_one_device",
            back,
            gets(at(here), here + 1, x) == self.cotangent(x, back),
            given=[back < n, *self.all_accepted],
            base=[starts, begins, self.gives.at(piece=n - 1)],
            step=[
                *(fact.at(piece=here) for fact in runs),
                *(fact.at(piece=here - 1) for fact in (returns, self.accepted)),
                goes_on,
            ],
        )

    # ------------------------------------------------------------------- gradients
    def terms(self) -> tuple[Any, Any, Theorem, Theorem]:
        """What a sample adds to the gradient by way of a piece: on its stage, and on one device."""
        k, i, x = self.k, self.i, self.x
        g, evaluated = self._function("gradient", Weights, Stream, Stream, REAL)
        when, zero = self.when["gradient"](i, x), RealVal(0)
        value, alike = evaluated(when, self.has(self.at(i), i, x), self.gets(self.at(i), i + 1, x))
        own, owned = k.define("own_term", [i, x], If(self.uses(i), value, zero))
        single = g(i, self.weights(i), self.stream(x, i), self.cotangent(x, self.n - 1 - i))
        term, termed = k.define("term", [i, x], If(self.uses(i), single, zero))
        runs = [alike, self.fresh.at(work=when), self.counted["gradient"]]
        same = k.prove(
            "terms_are_those_of_one_device",
            own(i, x) == term(i, x),
            given=[self.inside, *self.all_accepted],
            uses=[owned, termed, *runs, self.forward, self.backward.at(back=self.n - 1 - i)],
        )
        return own(i, x), term(i, x), same, owned
