"""A transformer on one device, written out: nothing of it is placed, cut or derived.

Attention is not scaled: that is a factor of the query's weight. Grouped queries: arXiv 2305.13245.
Positions by angles: arXiv 2104.09864, section 3.4.2. Gated MLP: arXiv 2002.05202, section 2.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.single_model import Pass, SingleModel
from psem_model.simulator.tables import OUTSIDE, Moment, TransformerTables
from psem_model.simulator.tape import Node
from spec.models.transformer import DENSE, STRAIGHT, LayerKind


class SingleTransformer(SingleModel):
    """It trains a transformer. Losses are of each token (samples, positions)."""

    tables: TransformerTables

    def forward(self, moment: Moment) -> Forward:
        return Forward(self, moment)


class Forward(Pass):
    """One micro-batch's way through a transformer."""

    def __init__(self, device: SingleTransformer, moment: Moment) -> None:
        super().__init__(device, moment)
        self.tables, self.model = device.tables, device.tables.model
        self.layer = OUTSIDE

    @property
    def kind(self) -> LayerKind:
        """How the layer differs from most."""
        return frozenset() if self.layer == OUTSIDE else self.model.layer_kind(self.layer)

    def weight(self, name: str, indices: str) -> Node:
        """A weight of the layer; in the name is how the layer differs from most."""
        key = (self.layer, "".join(f"{each}_" for each in sorted(self.kind)) + name)
        return self.leaf(key, indices)

    def product(self, x: Node, name: str, subscripts: str) -> Node:
        """A sum of products with a weight, the second operand."""
        indices = subscripts.partition(",")[2].partition("->")[0]
        return self.tape.einsum(subscripts, x, self.weight(f"{name}_weight", indices))

    def dropped(self, place: str, x: Node, name: str, indices: str = "bsh") -> Node:
        if place not in self.model.dropout:
            return x
        mask = self.tables.mask(f"{name}_mask", indices, self.layer, self.moment)
        return self.tape.multiply(x, Node(mask, fixed=True))

    def loss(self) -> Node:
        """Of each token (samples, positions): minus the log of the share of the next word."""
        tape, words = self.tape, self.tables.words(self.moment)
        x = self.embedded(words[:, :-1])
        for layer in range(self.model.layers):
            self.layer = layer
            x = self.one_layer(x)
        self.layer = OUTSIDE
        y, of_word = x if self.model.unnormed else self.norm("final", x), "h"
        if self.model.word_features:
            y, of_word = self.product(y, "narrowing", "bsh,ho->bso"), "o"
        name = "word" if self.model.tied else "head"
        logits = self.product(y, name, f"bs{of_word},v{of_word}->bsv")
        logits = self.capped("logits", logits)
        ones = np.ones(logits.value.shape[-1], np.int64)
        total = tape.einsum("bsv,v->bs", tape.apply("exp", logits), self.fixed(ones))
        is_next = words[:, 1:, None] == np.arange(self.model.vocabulary)
        own = tape.einsum("bsv,bsv->bs", logits, self.fixed(-is_next.astype(np.int64)))
        return tape.add(tape.apply("log", total), own)

    def fixed(self, integers: Array) -> Node:
        return Node(self.tables.numbers.count(integers), fixed=True)

    def embedded(self, words: Array) -> Node:
        of_word = "o" if self.model.word_features else "h"
        x, name = self.tape.pick(self.weight("word_weight", f"v{of_word}"), words), "words"
        if self.model.word_features:
            x, name = self.product(x, "widening", "bso,oh->bsh"), "widened"
        if self.model.positions:
            places = np.arange(words.shape[1]) + self.model.spare
            name = "embedded"
            x = self.tape.add(x, self.tape.pick(self.weight("place_weight", "wh"), places))
        if "words" in self.model.norms:
            x, name = self.norm("word", x), self.named("word_norm")
        return self.dropped("words", x, name)

    def norm(self, name: str, x: Node, over: str = "h") -> Node:
        return self.scaled(name, self.tape.normalise(self.model.norm, x), over)

    def scaled(self, name: str, unit: Node, over: str) -> Node:
        y = self.tape.multiply(unit, self.weight(f"{name}_norm_scale", over))
        biased = self.model.norm == "layer_norm"
        return self.tape.add(y, self.weight(f"{name}_norm_bias", over)) if biased else y

    def named(self, norm: str) -> str:
        """What the result of a norm is called, for its mask."""
        return f"{norm}_biased" if self.model.norm == "layer_norm" else norm

    def norm_of_heads(self, name: str, x: Node) -> Node:
        """x (samples, positions, ..., features), by the root of the sum of a token's squares."""
        tape, indices = self.tape, "grd" if name == "query" else "gd"
        ones = self.fixed(np.ones(x.value.shape[2:], np.int64))
        total = tape.einsum(f"bs{indices},{indices}->bs", tape.apply("square", x), ones)
        inverse = tape.apply("inverse_root", total)
        unit = tape.einsum(f"bs{indices},bs->bs{indices}", x, inverse)
        return self.scaled(f"{name}_heads", unit, indices)

    def capped(self, name: str, x: Node) -> Node:
        return self.tape.apply("cap", x) if name in self.model.capped else x

    def one_layer(self, x: Node) -> Node:
        norms, parallel = self.model.norms, self.model.parallel
        before = self.norm("attention", x) if "attention" in norms else x
        attended, name = self.attention(before), "output"
        if "output" in self.model.biases:
            name = "output_biased"
        attended = self.given("attention", attended, name)
        middle = x if parallel else self.after("attention", self.tape.add(x, attended))
        y = before if parallel else middle
        if "mlp" in norms:
            y = self.norm("mlp", middle)
        if self.model.experts and DENSE not in self.kind:
            mixed, name = self.experts(y), "mixed" if self.model.shared else "returned"
        else:
            mixed, name = self.mlp(y), "down_biased" if "mlp" in self.model.biases else "down"
        mixed = self.given("mlp", mixed, name)
        mixed = self.tape.add(attended, mixed) if parallel else mixed
        return self.after("mlp", self.tape.add(middle, mixed))

    def after(self, block: str, x: Node) -> Node:
        """A sum, normalised where the model does so."""
        return self.norm(f"{block}_sum", x) if f"{block}_sum" in self.model.norms else x

    def given(self, block: str, x: Node, name: str) -> Node:
        """What attention or the MLP gives, normalised and dropped where the model does so."""
        if f"{block}_out" in self.model.norms:
            x, name = self.norm(f"{block}_out", x), self.named(f"{block}_out_norm")
        return self.dropped("output", x, name)

    def projected(self, y: Node, name: str, subscripts: str) -> Node:
        x, of_token = self.product(y, name, subscripts), subscripts.partition("->bs")[2]
        if "qkv" in self.model.biases:
            x = self.tape.add(x, self.weight(f"{name}_bias", of_token))
        if name == "value":
            return x
        x = self.norm_of_heads(name, x) if "heads" in self.model.norms else x
        return self.norm(name, x, "d") if "head" in self.model.norms else x

    @property
    def turns(self) -> bool:
        """Whether this layer's queries and keys are turned by their positions."""
        return self.model.turned and STRAIGHT not in self.kind

    def turned(self, x: Node) -> Node:
        """Features i and i + half of queries or keys (samples, positions, ..., features), turned.

        Those after the turned ones stay: their cosine is 1, and their sine is 0.
        """
        if not self.turns:
            return x
        numbers, size = self.tables.numbers, x.value.shape[-1]
        between = (1,) * (x.value.ndim - 3)
        cos, sin = (t.reshape(len(t), *between, -1) for t in self.tables.turns())
        half = cos.shape[-1]
        still = (*cos.shape[:-1], size - 2 * half)
        ones = numbers.count(np.ones(still, np.int64))
        along = Node(np.concatenate((cos, cos, ones), -1), fixed=True)
        zeros = numbers.zeros(still)
        across = Node(np.concatenate((numbers.reduce(-sin), sin, zeros), -1), fixed=True)
        of_pairs = (np.arange(2 * half) + half) % max(1, 2 * half)
        others = np.concatenate((of_pairs, np.arange(2 * half, size)))
        other = self.tape.pick(x, others, x.value.ndim - 1)
        return self.tape.add(self.tape.multiply(x, along), self.tape.multiply(other, across))

    def attention(self, y: Node) -> Node:
        tape, biased = self.tape, "output" in self.model.biases
        query, key, value = self.latent(y) if self.model.latent else self.from_tokens(y)
        scores = self.capped("scores", tape.einsum("bsgrd,bugd->bgrsu", query, key))
        seen = tape.add(scores, Node(self.tables.causal(self.layer), fixed=True))
        shares = self.dropped("shares", tape.normalise("softmax", seen), "shares", "bgrsu")
        context = tape.einsum("bgrsu,bugd->bsgrd", shares, value)
        if self.model.sinks:
            total, sinks = tape.log_total(seen), self.weight("sink_weight", "gr")
            each = self.fixed(np.ones(total.value.shape[-1], np.int64))
            spread = tape.einsum("gr,s->grs", sinks, each)
            left = tape.apply("sigmoid", tape.add(total, spread))
            context = tape.einsum("bsgrd,bgrs->bsgrd", context, left)
        of_head = "y" if self.model.latent else "d"
        out = self.product(context, "output", f"bsgr{of_head},gr{of_head}h->bsh")
        return tape.add(out, self.weight("output_bias", "h")) if biased else out

    def from_tokens(self, y: Node) -> tuple[Node, Node, Node]:
        tape, model = self.tape, self.model
        query = self.turned(self.projected(y, "query", "bsh,hgrd->bsgrd"))
        key = self.turned(self.projected(y, "key", "bsh,hgd->bsgd"))
        if self.turns and "turned" in model.norms:
            query, key = (tape.normalise(model.norm, x) for x in (query, key))
        if model.tempered and not self.turns:
            scales = Node(self.tables.temperatures(), fixed=True)
            query = tape.einsum("bsgrd,s->bsgrd", query, scales)
        return query, key, self.projected(y, "value", "bsh,hgd->bsgd")

    def latent(self, y: Node) -> tuple[Node, Node, Node]:
        """Queries, keys and values from few features of each token; every head has the turned key."""
        tape, latent = self.tape, self.model.latent
        x, few = y, "h"
        if latent and latent.queries:
            few = "m"
            x = self.norm("query_latent", self.product(y, "query_latent", "bsh,hm->bsm"), few)
        straight = self.product(x, "query_straight", f"bs{few},{few}grn->bsgrn")
        turned = self.turned(self.product(x, "query", f"bs{few},{few}grd->bsgrd"))
        query = tape.join(straight, turned)
        x = self.norm("key_latent", self.product(y, "key_latent", "bsh,hl->bsl"), "l")
        straight = self.product(x, "key_straight", "bsl,lgn->bsgn")
        turned = self.turned(self.product(y, "key", "bsh,hd->bsd"))
        every = self.fixed(np.ones(straight.value.shape[2], np.int64))
        key = tape.join(straight, tape.einsum("bsd,g->bsgd", turned, every))
        return query, key, self.product(x, "value", "bsl,lgy->bsgy")

    def mlp(self, y: Node, chosen: Array | None = None, of: str = "") -> Node:
        """Of each token; `chosen` (samples, positions): each token's expert, whose weights it gets."""
        tape, model = self.tape, self.model
        expert, of_token = ("", "") if chosen is None else ("e", "bs")
        inside = "t" if of else "i" if model.experts and chosen is None else "f"

        def mine(name: str, indices: str) -> Node:
            weight = self.weight(of + name, expert + indices)
            return weight if chosen is None else tape.pick(weight, chosen)

        def product(x: Node, name: str, before: str, after: str) -> Node:
            subscripts = f"bs{before},{of_token}{before}{after}->bs{after}"
            out = tape.einsum(subscripts, x, mine(f"{name}_weight", before + after))
            return tape.add(out, mine(f"{name}_bias", after)) if "mlp" in model.biases else out

        up = product(y, "up", "h", inside)
        gate = product(y, "gate", "h", inside) if model.gated else up
        inner = tape.apply(model.function, gate)
        up = tape.apply("clamp", up) if model.clamped else up
        inner = tape.multiply(inner, up) if model.gated else inner
        return product(inner, "down", inside, "h")

    def experts(self, y: Node) -> Node:
        """The sum of what each token's experts make of it, as its odds weigh them.

        What the MLP that all tokens share makes of it is added.
        """
        tape, softmax = self.tape, self.model.odds == "softmax"
        logits = self.product(y, "router", "bsh,hj->bsj")
        if "router" in self.model.biases:
            logits = tape.add(logits, self.weight("choices_bias", "j"))
        odds = tape.normalise("softmax", logits) if softmax else tape.apply(self.model.odds, logits)
        choices = self.tables.slots(self.layer, self.moment).choices
        terms = [self.mlp(y, of="shared_")] if self.model.shared else []
        for chosen in np.moveaxis(choices, -1, 0):
            is_chosen = self.fixed(
                (chosen[..., None] == np.arange(self.model.experts)).astype(np.int64)
            )
            own = tape.einsum("bsj,bsj->bs", odds, is_chosen)
            if self.model.weighed_first:
                terms.append(self.mlp(tape.einsum("bs,bsh->bsh", own, y), chosen))
            else:
                terms.append(tape.einsum("bs,bsh->bsh", own, self.mlp(y, chosen)))
        return reduce(tape.add, terms)
