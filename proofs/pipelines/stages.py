"""E11: a pipeline computes what one device does, whatever its pieces compute."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from proofs.claim import claim
from proofs.meaning.runs import implied
from proofs.pipelines.listed_pipelines import ListedPipelines, listed_pipelines
from proofs.pipelines.stage_placing import layers_are_placed_in_order
from proofs.pipelines.stage_runs import INT, Step
from proofs.tools.sums import closed_form, equal_terms, of_sums, partition, total
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, BoolVal, If, Not, Or, RealVal
from spec.devices.layouts import PARTIAL, WHOLE
from spec.meaning import conditions
from spec.models.training import sgd
from spec.pipelines.pipeline import Order, Pipeline, backward_unit
from spec.pipelines.stages import gradient_lie


@claim("E11")
def pipelines_compute_what_one_device_does(k: Kernel) -> tuple[Theorem, ...]:
    """Each weight gets the sum of its gradients over all samples, once, at current parameters.

    For any pieces on any stages, with what is sent and summed as the specification says, updates
    after a flush, and backwards in any order: with E1, a match. Layers are placed in order and
    evenly over p v virtual stages. Words of two stages need their sum. (Claim E11; GPipe
    1811.06965 section 2.2, 2104.04473 section 2.2)
    """
    step = Gradients(k)
    summed = step.integrity()
    listed = ListedPipelines(step, listed_pipelines())
    return (
        summed,
        step.integrity_of_one(summed),
        listed.compute([step.forward, step.backward, summed]),
        step.fresh,
        step.forward,
        step.backward,
        *layers_are_placed_in_order(k.part("placing")),
        *_backwards_are_numbered(k.part("orders")),
        *_copies_need_their_sum(k.part("copies")),
    )


class Gradients(Step):
    """What the terms of a step add up to."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        self.whole = self._gradients()

    def _gradients(self) -> Theorem:
        """Stages add up their pieces' terms, backward by backward; all stages together, the gradient.

        `of_stage`: what a stage has after all backwards, whatever their order. `gradient`: that of
        one device, over all pieces of each sample.
        """
        k, i, x, at_end = self.k, self.i, self.x, {"sample": self.samples}
        own, term, same, owned = self.terms()
        # which of a stage's backwards takes a sample through a piece
        unit, passes = k.function("unit", INT, INT, INT), k.integers("passes")
        once = k.suppose(
            "every_sample_comes_back_once",
            [i, x],
            And(unit(i, x) >= 0, unit(i, x) < self.units),
        )
        _, accumulated, of_piece, added = partition(
            k, "backwards", passes, x, lambda x: unit(i, x), once, self.units, own, [i]
        )
        result = accumulated(i, self.samples, self.units)
        among = k.suppose("pieces_have_a_stage", [i], And(self.at(i) >= 0, self.at(i) < self.p))
        self.of_stage, self.over_stages, of_pieces, summed = partition(
            k, "uses", self.stage, i, self.at, among, self.p, result
        )
        nothing = closed_form(
            k, "pieces_without_a_use", of_piece, RealVal(0), [Not(self.uses(i))], [owned]
        )
        self.unused = k.prove(
            "pieces_without_a_use_add_nothing",
            result == 0,
            given=[Not(self.uses(i))],
            uses=[added.at(**at_end), nothing.at(**at_end), self.sizes],
        )
        _, self.gradient, by_piece, pieces, exchanged = of_sums(k, "gradient", x, i, term, [])
        given = [self.inside, *self.all_accepted]
        same = equal_terms(k, "pieces_sums_are_alike", of_piece, by_piece, same, given)
        whole = k.induct(
            "gradients_of_all_pieces",
            i,
            of_pieces(i) == pieces(self.samples, i),
            given=[i <= self.n, *self.all_accepted],
            base=[of_pieces.start, pieces.start.at(**at_end)],
            step=[
                *(of_pieces.next, pieces.next.at(**at_end)),
                *(added.at(**at_end), same.at(**at_end), self.sizes),
            ],
        )
        every = {"piece": self.n}
        return k.prove(
            "all_stages_have_the_gradient",
            self.over_stages(self.n, self.p) == self.gradient(self.n, self.samples),
            given=self.all_accepted,
            uses=[summed.at(**every), whole.at(**every), exchanged.at(**every, **at_end), self.sizes],
        )

    def integrity(self) -> Theorem:
        """Summed over the stages that are said to be, its gradient is every sample's, once.

        Terms of other stages are zero: no accepted piece there uses the weight.
        """
        k, i, stage, so_far = self.k, self.i, self.stage, [self.i <= self.n, *self.all_accepted]
        nothing = closed_form(
            k,
            "others_have_no_terms",
            self.of_stage,
            RealVal(0),
            given=[Not(self.sums(stage)), *so_far],
            uses=[self.accepted, self.unused],
        )
        term = If(self.sums(stage), self.of_stage.upto(i), RealVal(0))
        self.group = total(k, "over_users", [i], stage, term)
        same = equal_terms(
            k,
            "others_add_nothing",
            self.group,
            self.over_stages,
            given=[i >= 0, *so_far],
            uses=[nothing],
        )
        return k.prove(
            "summed_gradients_are_whole",
            implied(
                conditions.gradient_integrity(
                    BoolVal(True),
                    self.group(self.n, self.p),
                    self.gradient(self.n, self.samples),
                )
            ),
            given=self.all_accepted,
            uses=[self.whole, same.at(piece=self.n, stage=self.p), self.sizes],
        )

    def integrity_of_one(self, summed: Theorem) -> Theorem:
        """A weight of one stage has its whole gradient there."""
        k, i, stage, only = self.k, self.i, self.stage, self.k.fixed("only", INT)
        there = k.suppose("there_is_one", [], And(only >= 0, only < self.p))
        itself = k.suppose("its_own_terms_are_summed", [stage], self.sums(stage) == (stage == only))
        alone = closed_form(
            k,
            "one_stage_has_every_term",
            self.group,
            If(only < stage, self.of_stage(only, i), RealVal(0)),
            base=[there],
            uses=[itself],
        )
        return k.prove(
            "a_weight_of_one_stage_needs_no_sum",
            self.of_stage(only, self.n) == self.gradient(self.n, self.samples),
            given=self.all_accepted,
            uses=[summed, alone.at(piece=self.n, stage=self.p), there],
        )


def _backwards_are_numbered(k: Kernel) -> tuple[Theorem, ...]:
    """Two orders: each micro-batch in turn, and, interleaved, in turn through each chunk.

    Each backward has its own number among those of the step. (2104.04473, section 2.2)
    """
    p, m, v, groups = k.reals("p m v groups")
    group, chunk, place, later_group, later_place = k.reals("group chunk place later_group later_place")
    pipe, plain = Pipeline(Order.INTERLEAVED, p, m, v), Pipeline(Order.ONE_F_ONE_B, p, m)
    unit = backward_unit(pipe, group, chunk, place)
    places = [place >= 0, place <= p - 1]
    return (
        k.prove(
            "the_backwards_of_a_chunk_are_in_increasing_order",
            unit + 1 <= backward_unit(pipe, later_group, chunk, later_place),
            given=[
                *(place <= p - 1, later_place >= 0, v >= 1, p >= 1),
                Or(
                    group + 1 <= later_group,
                    And(group == later_group, place + 1 <= later_place),
                ),
            ],
        ),
        k.prove(
            "all_backwards_are_of_the_step",
            And(unit >= 0, unit <= pipe.forwards - 1),
            given=[
                *places,
                *(chunk >= 0, chunk <= v - 1, group >= 0, group <= groups - 1, m == groups * p),
            ],
        ),
        k.prove(
            "with_one_chunk_backwards_are_in_the_order_of_micro_batches",
            backward_unit(plain, group, 0, place) == group * p + place,
        ),
    )


def _copies_need_their_sum(k: Kernel) -> tuple[Theorem, ...]:
    """Two copies of a weight that learn from their own terms only: right if the other's is zero.

    And a counterexample to copies that agree without the sum.
    """
    if (gradient_lie((0,)), gradient_lie((0, 1))) != (WHOLE, PARTIAL):
        raise KernelError(f"{k.claim}: other gradients are summed")
    weight, rate, own, others = k.reals("weight rate own others")
    right = k.prove(
        "a_copy_is_right_alone_only_if_the_others_term_is_zero",
        (sgd(weight, own, rate) == sgd(weight, own + others, rate)) == (others == 0),
        given=[rate != 0],
    )

    def agree(weight: Any, own: Any, others: Any) -> Any:
        return sgd(weight, own, 1) == sgd(weight, others, 1)

    def replay(**values: Fraction) -> bool:
        return bool(agree(**values))

    part = k.part("unsummed")
    terms = part.reals("weight own others")
    return right, part.refute("copies_agree_without_the_sum", agree(*terms), terms, replay)
