"""Where layers are: on virtual stages in order and evenly, and so how often a sample is sent on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.pipelines.listed_stages import stages_have_what_is_listed
from proofs.pipelines.stage_runs import INT, on_stage
from proofs.tools.sums import closed_form, products, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, If, IntVal, Or
from spec.pipelines.idle_and_held import boundaries
from spec.pipelines.pipeline import Order, Pipeline, virtual_stage
from spec.pipelines.stages import has_layer, is_sent


def layers_are_placed_in_order(k: Kernel) -> Sequence[Theorem]:
    """Layers are on virtual stages 0 to p v - 1 in turn: as many on each, or one more.

    So each of the p v - 1 boundaries is crossed once: by a message if p >= 2, else by none.
    """
    stages_have_what_is_listed(k)
    placing = Placing(k)
    return (
        placing.everywhere,
        placing.unique,
        placing.among,
        placing.following,
        placing.ends,
        *placing.evenly(),
        placing.crossed(*_on_next_stage(k, placing)),
    )


class Placing:
    """p v virtual stages, and at least as many layers; each layer where the rule says."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.i, self.s, other = k.integers("layer virtual other")
        self.layers, self.virtual, self.p = (
            k.fixed(name, INT) for name in ("layers", "virtual_stages", "p")
        )
        i, s, layers, virtual = self.i, self.s, self.layers, self.virtual
        self.sizes = sizes = k.suppose(
            "a_layer_for_each_virtual_stage",
            [],
            And(virtual >= 1, virtual <= layers),
        )
        has, self.rule = k.define("has", [s, i], And(*has_layer(s, i, layers, virtual)))
        rule = self.rule
        self.products = laws = products(k)
        by, upto = laws.rule.at(unit=virtual), laws.rule.at(unit=layers)
        self.between = between = k.prove(
            "a_virtual_stage_has_layers_from_its_start_to_the_next",
            has(s, i) == And(self.starts(s) <= self.scaled(i), self.scaled(i) < self.starts(s + 1)),
            uses=[rule, by.at(multiple=i), upto.at(multiple=s), upto.at(multiple=s + 1)],
        )
        placed, self.at, shown, self.found = k.choose("is_placed", [i], s, has(s, i))
        here, next_ = self.at(i), self.at(i) + 1
        self.everywhere = k.induct(
            "every_layer_is_on_a_virtual_stage",
            i,
            placed(i),
            base=[shown.at(layer=0, virtual=0), rule.at(layer=0, virtual=0), sizes],
            step=[
                *(self.found, rule.at(virtual=here), sizes),
                *(fact.at(layer=i + 1, virtual=at) for fact in (rule, shown) for at in (here, next_)),
            ],
        )
        self.unique = k.prove(
            "no_layer_is_on_two",
            s == other,
            given=[has(s, i), has(other, i)],
            uses=[rule, rule.at(virtual=other)],
        )
        self.among = k.prove(
            "virtual_stages_are_among_all",
            And(s >= 0, s < virtual),
            given=[i >= 0, i < layers, has(s, i)],
            uses=[rule, sizes],
        )
        self.following = k.prove(
            "the_next_layer_is_there_or_on_the_next",
            Or(other == s, other == s + 1),
            given=[has(s, i), has(other, i + 1)],
            uses=[
                *(between, between.at(virtual=other, layer=i + 1), sizes),
                *(laws.next.at(unit=layers, multiple=other), laws.next.at(unit=virtual, multiple=i)),
                laws.in_order.at(unit=layers, multiple=other, larger=s),
                laws.in_order.at(unit=layers, multiple=s + 1, larger=other),
            ],
        )
        self.ends = k.prove(
            "the_first_and_the_last_layer",
            And(has(0, 0), has(virtual - 1, layers - 1)),
            uses=[rule.at(virtual=0, layer=0), rule.at(virtual=virtual - 1, layer=layers - 1), sizes],
        )
        self.has = has

    def scaled(self, layer: Any) -> Any:
        """A layer's number, in units of which a layer takes p v, and a virtual stage L."""
        return self.products.times(layer, self.virtual)

    def starts(self, stage: Any) -> Any:
        """Where a virtual stage starts, in the same units."""
        return self.products.times(stage, self.layers)

    def evenly(self) -> tuple[Theorem, Theorem, Theorem]:
        """A virtual stage has layers from its first up to the next one's first: L/(p v) or one more."""
        k, i, s, layers, virtual = self.k, self.i, self.s, self.layers, self.virtual
        first, next_first, each = k.integers("first next_first each")
        scaled, starts, laws = self.scaled, self.starts, self.products
        by, one_more = laws.in_order.at(unit=virtual), laws.next.at(unit=layers, multiple=s)

        def begins(layer: Any, stage: Any) -> tuple[Bool, Bool]:
            return scaled(layer) >= starts(stage), scaled(layer) < starts(stage) + virtual

        here, next_ = begins(first, s), begins(next_first, s + 1)
        a_run, size = [*here, *next_], next_first - first
        run = k.prove(
            "the_layers_of_a_virtual_stage_are_a_run",
            self.has(s, i) == And(first <= i, i < next_first),
            given=a_run,
            uses=[
                self.between,
                *(by.at(multiple=i, larger=at) for at in (first, next_first)),
                *(by.at(multiple=at, larger=i) for at in (first, next_first)),
            ],
        )
        some = k.prove(
            "no_virtual_stage_is_empty",
            first < next_first,
            given=[here[1], next_[0]],
            uses=[self.sizes, one_more, by.at(multiple=next_first, larger=first)],
        )
        evenly = k.prove(
            "layers_are_spread_evenly",
            Or(size == each, size == each + 1),
            given=[*a_run, scaled(each) <= layers, layers < scaled(each + 1)],
            uses=[
                *(one_more, laws.sums.at(multiple=first, larger=size, unit=virtual)),
                by.at(multiple=size, larger=each),
                by.at(multiple=each + 1, larger=size),
            ],
        )
        return run, some, evenly

    def crossed(self, stage: Any, crosses: Theorem) -> Theorem:
        """Messages between layers, counted from the first to the last."""
        k, i, p, at, layers = self.k, self.i, self.p, self.at, self.layers
        sent = is_sent(on_stage(stage(at(i))), on_stage(stage(at(i + 1))))
        messages = total(k, "messages", [], i, If(sent, IntVal(1), IntVal(0)))
        stands = [self.found, self.everywhere]
        counted = closed_form(
            k,
            "messages_up_to_a_layer",
            messages,
            If(p >= 2, at(i), IntVal(0)),
            base=[
                *(fact.at(layer=0) for fact in stands),
                *(self.ends, self.unique.at(layer=0, virtual=at(0), other=0)),
            ],
            uses=[
                *(*stands, *(fact.at(layer=i + 1) for fact in stands)),
                *(self.following.at(virtual=at(i), other=at(i + 1)), crosses.at(virtual=at(i))),
            ],
        )
        last, pipe = layers - 1, Pipeline(Order.INTERLEAVED, p, 1, k.fixed("v", INT))
        chunks = k.suppose("chunks_of_each_stage", [], self.virtual == pipe.virtual_stages)
        return k.prove(
            "one_message_for_each_boundary",
            messages(last) == If(p >= 2, boundaries(pipe), IntVal(0)),
            uses=[
                *(fact.at(layer=last) for fact in (counted, *stands)),
                *(self.ends, self.sizes, chunks),
                self.unique.at(layer=last, virtual=at(last), other=self.virtual - 1),
            ],
        )


def _on_next_stage(k: Kernel, placing: Placing) -> tuple[Any, Theorem]:
    """The stage of a virtual stage; that of the next one is another, unless there is only one."""
    s, p = placing.s, placing.p
    on, chunk, other_on, other_chunk = k.integers("on chunk other_on other_chunk")
    pipe = Pipeline(Order.INTERLEAVED, p, 1)
    number, rule = k.define("number", [on, chunk], virtual_stage(pipe, on, chunk))
    other = {"on": other_on, "chunk": other_chunk}
    within = k.prove(
        "a_chunk_is_on_one_stage_after_another",
        number(on, chunk) == number(0, chunk) + on,
        uses=[rule, rule.at(on=0)],
    )
    laws = placing.products
    start = k.prove(
        "a_chunk_starts_after_a_round_for_each_before",
        number(0, chunk) == laws.times(chunk, p),
        uses=[rule.at(on=0), laws.rule.at(multiple=chunk, unit=p)],
    )
    later = k.prove(
        "later_chunks_come_later",
        number(on, chunk) < number(other_on, other_chunk),
        given=[chunk < other_chunk, on < p, other_on >= 0, p >= 1],
        uses=[
            *(within, within.at(**other), start, start.at(**other)),
            laws.in_order.at(multiple=chunk, larger=other_chunk, unit=p),
        ],
    )
    same = k.prove(
        "a_virtual_stage_is_on_one_stage",
        on == other_on,
        given=[
            number(on, chunk) == number(other_on, other_chunk),
            *(on >= 0, on < p, other_on >= 0, other_on < p),
        ],
        uses=[
            *(within, within.at(**other), later),
            later.at(**other, other_on=on, other_chunk=chunk),
        ],
    )
    in_turn = k.prove(
        "stages_take_turns",
        And(
            number(on + 1, chunk) == number(on, chunk) + 1,
            number(0, chunk + 1) == number(p - 1, chunk) + 1,
        ),
        uses=[
            *(rule, rule.at(on=on + 1), rule.at(on=p - 1)),
            rule.at(on=0, chunk=chunk + 1),
        ],
    )
    stage, chunk_of = (k.function(name, INT, INT) for name in ("stage", "chunk_of"))
    stands = k.suppose(
        "every_virtual_stage_has_its_place",
        [s],
        And(number(stage(s), chunk_of(s)) == s, stage(s) >= 0, stage(s) < p),
    )
    there = {"other_on": stage(s + 1), "other_chunk": chunk_of(s + 1)}
    crosses = k.prove(
        "the_next_virtual_stage_needs_a_message",
        is_sent(on_stage(stage(s)), on_stage(stage(s + 1))) == (p >= 2),
        uses=[
            *(stands, stands.at(virtual=s + 1), in_turn.at(on=stage(s), chunk=chunk_of(s))),
            same.at(on=stage(s) + 1, chunk=chunk_of(s), **there),
            same.at(on=0, chunk=chunk_of(s) + 1, **there),
        ],
    )
    return stage, crosses
