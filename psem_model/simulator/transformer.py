"""A transformer on one device, written out: nothing of it is placed, cut or derived.

Attention is not scaled: that is a factor of the query's weight. Grouped queries: arXiv 2305.13245.
Positions by angles: arXiv 2104.09864, section 3.4.2. Gated MLP: arXiv 2002.05202, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.tables import OUTSIDE, Moment, Tables
from psem_model.simulator.tape import Node, Tape
from spec.transformer import Transformer

Key = tuple[int, str]  # a weight: its layer, or OUTSIDE, and its name


def shapes(model: Transformer) -> dict[Key, str]:
    """The indices of each weight, named as in `spec.transformer`."""
    norm = {"scale": "h", "bias": "h"} if model.norm == "layer_norm" else {"scale": "h"}
    of_layer = {"query_weight": "hgrd", "key_weight": "hgd", "value_weight": "hgd"}
    of_layer["output_weight"] = "grdh"
    of_layer |= {f"{name}_norm_{k}": v for name in ("attention", "mlp") for k, v in norm.items()}
    if "qkv" in model.biases:
        of_layer |= {"query_bias": "grd", "key_bias": "gd", "value_bias": "gd"}
    if "output" in model.biases:
        of_layer["output_bias"] = "h"
    e = "e" if model.experts else ""
    if e:
        of_layer["router_weight"] = "hj"
    for name, width in ({"up": "hf", "down": "fh"} | ({"gate": "hf"} if model.gated else {})).items():
        of_layer[f"{name}_weight"] = e + width
        if "mlp" in model.biases:
            of_layer[f"{name}_bias"] = e + width[1]
    found = {(layer, name): at for layer in range(model.layers) for name, at in of_layer.items()}
    outside = {"word_weight": "vh"} | {f"final_norm_{k}": v for k, v in norm.items()}
    outside |= {} if model.tied else {"head_weight": "vh"}
    outside |= {"place_weight": "wh"} if model.positions else {}
    return found | {(OUTSIDE, name): at for name, at in outside.items()}


class SingleDevice:
    """Trains all of a model on whole samples.

    `losses`: of each step, (micro-batches, samples, positions). `gradients`: of the last one.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables, self.numbers = tables, tables.numbers
        weights = {
            key: tables.weight(key[1], indices, key[0]) for key, indices in shapes(tables.model).items()
        }
        self.weights = dict(weights)
        kept = self.numbers.moments
        self.moments = {key: self.numbers.zeros((kept, *w.shape)) for key, w in weights.items()}
        self.gradients: dict[Key, Array] = {}
        self.losses: list[Array] = []

    def step(self, micro_batches: int) -> None:
        """One step, on the summed loss of all tokens of its micro-batches."""
        step = len(self.losses)
        self.gradients = {}
        losses = []
        for micro_batch in range(micro_batches):
            work = _Forward(self.tables, self.weights, Moment(step, micro_batch))
            loss = work.loss()
            losses.append(loss.value)
            work.tape.backward(loss, self.numbers.count(np.ones(loss.value.shape, np.int64)))
            for key, node in work.leaves.items():
                had, found = self.gradients.get(key), node.gradient
                if found is not None:
                    self.gradients[key] = found if had is None else self.numbers.add(had, found)
        self.losses.append(np.stack(losses))
        for key, gradient in self.gradients.items():
            moved = self.numbers.next(self.weights[key], self.moments[key], gradient, step)
            self.weights[key], self.moments[key] = moved


class _Forward:
    """One micro-batch's way through the model."""

    def __init__(self, tables: Tables, weights: Mapping[Key, Array], moment: Moment) -> None:
        self.tables, self.model, self.moment = tables, tables.model, moment
        self.tape, self.weights = Tape(tables.numbers), weights
        self.leaves: dict[Key, Node] = {}
        self.layer = OUTSIDE

    def weight(self, name: str) -> Node:
        key = (self.layer, name)
        return self.leaves.setdefault(key, Node(self.weights[key]))

    def dropped(self, x: Node, name: str, indices: str) -> Node:
        if not self.model.dropout:
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
        y = self.norm("final_norm", x)
        logits = tape.einsum(
            "bsh,vh->bsv", y, self.weight("word_weight" if self.model.tied else "head_weight")
        )
        ones = np.ones(logits.value.shape[-1], np.int64)
        total = tape.einsum("bsv,v->bs", tape.apply("exp", logits), self.fixed(ones))
        is_next = words[:, 1:, None] == np.arange(self.model.vocabulary)
        own = tape.einsum("bsv,bsv->bs", logits, self.fixed(-is_next.astype(np.int64)))
        return tape.add(tape.apply("log", total), own)

    def fixed(self, integers: Array) -> Node:
        return Node(self.tables.numbers.count(integers), fixed=True)

    def embedded(self, words: Array) -> Node:
        x = self.tape.pick(self.weight("word_weight"), words)
        if not self.model.positions:
            return self.dropped(x, "words", "bsh")
        places = self.tape.pick(self.weight("place_weight"), np.arange(words.shape[1]))
        return self.dropped(self.tape.add(x, places), "embedded", "bsh")

    def norm(self, name: str, x: Node) -> Node:
        unit = self.tape.normalise(self.model.norm, x)
        y = self.tape.multiply(unit, self.weight(f"{name}_scale"))
        return self.tape.add(y, self.weight(f"{name}_bias")) if self.model.norm == "layer_norm" else y

    def one_layer(self, x: Node) -> Node:
        x = self.tape.add(x, self.attention(self.norm("attention_norm", x)))
        y = self.norm("mlp_norm", x)
        biased = "_biased" if "mlp" in self.model.biases else ""
        if self.model.experts:
            mixed = self.dropped(self.experts(y), "returned", "bsh")
        else:
            mixed = self.dropped(self.mlp(y), f"down{biased}", "bsh")
        return self.tape.add(x, mixed)

    def projected(self, y: Node, name: str, subscripts: str) -> Node:
        x = self.tape.einsum(subscripts, y, self.weight(f"{name}_weight"))
        return self.tape.add(x, self.weight(f"{name}_bias")) if "qkv" in self.model.biases else x

    def turned(self, x: Node) -> Node:
        """Features i and i + half of queries or keys (samples, positions, ..., features), turned."""
        if self.model.positions or not self.model.angles:
            return x
        numbers, size = self.tables.numbers, x.value.shape[-1]
        between = (1,) * (x.value.ndim - 3)
        cos, sin = (t.reshape(len(t), *between, -1) for t in self.tables.turns())
        along = Node(np.concatenate((cos, cos), -1), fixed=True)
        across = Node(np.concatenate((numbers.reduce(-sin), sin), -1), fixed=True)
        other = self.tape.pick(x, (np.arange(size) + size // 2) % size, x.value.ndim - 1)
        return self.tape.add(self.tape.multiply(x, along), self.tape.multiply(other, across))

    def attention(self, y: Node) -> Node:
        tape, biased = self.tape, "output" in self.model.biases
        query = self.turned(self.projected(y, "query", "bsh,hgrd->bsgrd"))
        key = self.turned(self.projected(y, "key", "bsh,hgd->bsgd"))
        value = self.projected(y, "value", "bsh,hgd->bsgd")
        scores = tape.einsum("bsgrd,bugd->bgrsu", query, key)
        seen = tape.add(scores, Node(self.tables.causal(), fixed=True))
        shares = self.dropped(tape.normalise("softmax", seen), "shares", "bgrsu")
        context = tape.einsum("bgrsu,bugd->bsgrd", shares, value)
        out = tape.einsum("bsgrd,grdh->bsh", context, self.weight("output_weight"))
        out = tape.add(out, self.weight("output_bias")) if biased else out
        return self.dropped(out, "output_biased" if biased else "output", "bsh")

    def mlp(self, y: Node, chosen: Array | None = None) -> Node:
        """Of each token; `chosen` (samples, positions): each token's expert, whose weights it gets."""
        tape, model = self.tape, self.model

        def mine(name: str) -> Node:
            weight = self.weight(name)
            return weight if chosen is None else tape.pick(weight, chosen)

        def product(x: Node, name: str, before: str, after: str) -> Node:
            of_token = "" if chosen is None else "bs"
            subscripts = f"bs{before},{of_token}{before}{after}->bs{after}"
            out = tape.einsum(subscripts, x, mine(f"{name}_weight"))
            return tape.add(out, mine(f"{name}_bias")) if "mlp" in model.biases else out

        up = product(y, "up", "h", "f")
        gate = product(y, "gate", "h", "f") if model.gated else up
        inner = tape.apply(model.function, gate)
        inner = tape.multiply(inner, up) if model.gated else inner
        return product(inner, "down", "f", "h")

    def experts(self, y: Node) -> Node:
        """The sum of what each token's experts make of it, as its odds weigh them."""
        tape = self.tape
        odds = tape.normalise("softmax", tape.einsum("bsh,hj->bsj", y, self.weight("router_weight")))
        choices = self.tables.slots(self.layer, self.moment).choices
        terms = []
        for chosen in np.moveaxis(choices, -1, 0):
            is_chosen = self.fixed(
                (chosen[..., None] == np.arange(self.model.experts)).astype(np.int64)
            )
            own = tape.einsum("bsj,bsj->bs", odds, is_chosen)
            terms.append(tape.einsum("bs,bsh->bsh", own, self.mlp(y, chosen)))
        return reduce(tape.add, terms)
