"""What a transformer computes, token by token, by the equations of its architecture.

Scores are not divided by the root of a head's features, which is a factor of a weight. Angles, masks
and words are any numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import exp, log

from proofs.models.executed import FUNCTIONS, normalised, number
from spec.models.transformer import DENSE, STRAIGHT, Latent, LayerKind, Transformer

Token = tuple[int, int]  # sample, position
Features = dict[tuple[int, ...], float]  # of a token: by feature, or by group, head and feature
Tokens = dict[Token, Features]


def plus(*all_of: Features) -> Features:
    return {at: sum(x[at] for x in all_of) for at in all_of[0]}


def by(factor: float, x: Features) -> Features:
    return {at: factor * value for at, value in x.items()}


def row(name: str, token: Token, count: int) -> Features:
    return {(n,): number(name, (*token, n)) for n in range(count)}


class Equations:
    """Those of a model. `chosen`: each token's experts.

    `read`: which elements of weights; `inputs`: over how many indices of a matrix is summed.
    """

    def __init__(self, model: Transformer, chosen: Mapping[Token, Sequence[int]]) -> None:
        self.model, self.chosen = model, chosen
        self.of, self.turns = "", False  # what names of a layer's weights begin with, and what it turns
        self.read, self.inputs = dict[tuple[str, tuple[int, ...]], float](), dict[str, int]()
        self.groups, self.each = model.kv_heads, model.heads // model.kv_heads

    def weight(self, name: str, *at: int) -> float:
        key = f"{self.of}{name}", at
        return self.read.get(key) or self.read.setdefault(key, number(*key))

    def times(self, name: str, x: Features, *makes: int, of: tuple[int, ...] = ()) -> Features:
        """Features, times a matrix. `of`: of which expert it is."""
        self.inputs[f"{self.of}{name}"] = len(next(iter(x)))
        every = product(*map(range, makes))
        return {at: sum(v * self.weight(name, *of, *i, *at) for i, v in x.items()) for at in every}

    def biased(self, which: str, name: str, x: Features, of: tuple[int, ...] = ()) -> Features:
        has = which in self.model.biases
        return {at: v + self.weight(f"{name}_bias", *of, *at) for at, v in x.items()} if has else x

    def unit(self, x: Features) -> Features:
        """Normalised over the last index, head by head."""
        heads = [[at for at in x if at[:-1] == head] for head in dict.fromkeys(at[:-1] for at in x)]
        units = [
            zip(of, normalised(self.model.norm, [x[at] for at in of]), strict=True) for of in heads
        ]
        return {at: value for unit in units for at, value in unit}

    def scaled(self, name: str, x: Features, indices: int = 1) -> Features:
        """By a number for each feature; layer norms are shifted, too."""
        y = {at: v * self.weight(f"{name}_scale", *at[-indices:]) for at, v in x.items()}
        shifts = self.model.norm == "layer_norm"
        return {
            at: v + (self.weight(f"{name}_bias", *at[-indices:]) if shifts else 0)
            for at, v in y.items()
        }

    def normed(self, which: str, x: Features, name: str = "") -> Features:
        has = which in self.model.norms
        return self.scaled(name or f"{which}_norm", self.unit(x)) if has else x

    def dropped(self, where: str, x: Features, *place: int, mask: int = 0) -> Features:
        """`mask`: which of a part's."""
        has, name = where in self.model.dropout, f"mask {mask}"
        return {at: v * number(name, (*place, *at)) for at, v in x.items()} if has else x

    # --------------------------------------------------------------------- the ends of a model
    def embedding(self, token: Token) -> Features:
        m = self.model
        words = row("tokens", token, m.vocabulary)
        x = self.times("word_weight", words, m.word_features or m.hidden)
        x = self.times("widening_weight", x, m.hidden) if m.word_features else x
        if m.positions:
            places = row("places", token, m.positions + m.spare)
            x = plus(x, self.times("place_weight", places, m.hidden))
        return self.dropped("words", self.normed("words", x, "word_norm"), *token)

    def loss(self, token: Token, x: Features) -> float:
        m = self.model
        y = x if m.unnormed else self.scaled("final_norm", self.unit(x))
        y = self.times("narrowing_weight", y, m.word_features) if m.word_features else y
        words = "word_weight" if m.tied else "head_weight"
        logits = [sum(v * self.weight(words, n, *i) for i, v in y.items()) for n in range(m.vocabulary)]
        logits = [*map(FUNCTIONS["cap"], logits)] if "logits" in m.capped else logits
        lost = sum(x * number("next_words", (*token, n)) for n, x in enumerate(logits))
        return log(sum(map(exp, logits))) + lost

    # ----------------------------------------------------------------------------- a layer
    def layer(self, kind: LayerKind, x: Tokens) -> Tokens:
        m, found = self.model, Tokens()
        self.of = "".join(f"{word}_" for word in sorted(kind))
        self.turns = m.angles and STRAIGHT not in kind and not m.positions
        read = {token: self.normed("attention", of) for token, of in x.items()}
        masks = int("shares" in m.dropout)
        for token, of in self.attention(read).items():
            attended = self.dropped("output", self.normed("attention_out", of), *token, mask=masks)
            middle = x[token] if m.parallel else self.normed("attention_sum", plus(x[token], attended))
            is_shared = m.parallel and "mlp" not in m.norms
            y = read[token] if is_shared else self.normed("mlp", middle)
            mixed = self.experts(token, y) if m.experts and DENSE not in kind else self.mlp("", y)
            mixed = self.dropped("output", self.normed("mlp_out", mixed), *token, mask=masks + 1)
            mixed = plus(attended, mixed) if m.parallel else mixed
            found[token] = self.normed("mlp_sum", plus(middle, mixed))
        self.of = ""
        return found

    def attention(self, y: Tokens) -> Tokens:
        """Of each token with all of its sample: a mask hides others."""
        found, m = Tokens(), self.model
        made = {t: (self.from_few if m.latent else self.heads)(t, x) for t, x in y.items()}
        for (sample, s), (queries, *_) in made.items():
            context, tokens = Features(), [made[t][1:] for t in made if t[0] == sample]
            for g, r in product(range(self.groups), range(self.each)):
                here, raised = (sample, g, r, s), list[float]()
                for u, (keys, _) in enumerate(tokens):
                    score = sum(v * queries[g, r, d] for (of, d), v in keys.items() if of == g)
                    score = FUNCTIONS["cap"](score) if "scores" in m.capped else score
                    raised.append(exp(score + number("causal", (*here, u))))
                total = sum(raised) + (exp(-self.weight("sink_weight", g, r)) if m.sinks else 0)
                divided: Features = {(u,): x / total for u, x in enumerate(raised)}
                shares = self.dropped("shares", divided, *here)
                of_each = [by(shares[u,], values) for u, (_, values) in enumerate(tokens)]
                context |= {(g, r, d): v for (of, d), v in plus(*of_each).items() if of == g}
            out = self.times("output_weight", context, m.hidden)
            found[sample, s] = self.biased("output", "output", out)
        return found

    def heads(self, token: Token, y: Features) -> tuple[Features, ...]:
        """Queries, keys and values of a token."""
        m = self.model
        sizes = {"query": (self.groups, self.each, m.head_dim), "key": (self.groups, m.head_dim)}
        found = []
        for name, makes in (*sizes.items(), ("value", sizes["key"])):
            x = self.biased("qkv", name, self.times(f"{name}_weight", y, *makes))
            if "heads" in m.norms and name != "value":
                inverse = sum(v * v for v in x.values()) ** -0.5
                x = self.scaled(f"{name}_heads_norm", by(inverse, x), len(makes))
            if name != "value":
                x = self.turned(token, self.normed("head", x, f"{name}_norm"))
                x = self.unit(x) if self.turns and "turned" in m.norms else x
            if name == "query" and m.tempered and not self.turns:
                x = by(number("temperatures", token[1:]), x)
            found.append(x)
        return tuple(found)

    def turned(self, token: Token, x: Features) -> Features:
        """By the angles of a position."""
        if not self.turns:
            return x

        def feature(head: Sequence[int], to: int) -> float:
            return sum(x[*head, d] * number("angles", (token[1], d, to)) for d in features)

        features = range(self.model.head_dim)
        return {(*head, to): feature(head, to) for *head, to in x}

    def from_few(self, token: Token, y: Features) -> tuple[Features, ...]:
        """From few features; turned features of keys are those of all heads. (2405.04434, 2.1)"""
        m, of, g, r = self.model, self.model.latent or Latent(0, 0, 0, 0), self.groups, self.each

        def few(name: str, count: int) -> Features:
            return self.scaled(f"{name}_norm", self.unit(self.times(f"{name}_weight", y, count)))

        of_queries, of_keys = (
            few("query_latent", of.queries) if of.queries else y,
            few("key_latent", of.keys),
        )
        queries = self.times("query_straight_weight", of_queries, g, r, of.straight)
        keys = self.times("key_straight_weight", of_keys, g, of.straight)
        turned = self.turned(token, self.times("query_weight", of_queries, g, r, m.head_dim))
        queries |= {(*head, of.straight + d): v for (*head, d), v in turned.items()}
        turned = self.turned(token, self.times("key_weight", y, m.head_dim))
        keys |= {(group, of.straight + d): v for (d,), v in turned.items() for group in range(g)}
        return queries, keys, self.times("value_weight", of_keys, g, of.values)

    def mlp(
        self, name: str, y: Features, inside: int = 0, of: tuple[int, ...] = (), within: float = 1
    ) -> Features:
        """`within`: what its last product reads is weighed by it."""
        m = self.model
        inside = inside or (m.dense if m.experts else m.feed_forward)

        def wide(which: str) -> Features:
            x = self.times(f"{name}{which}_weight", y, inside, of=of)
            return self.biased("mlp", f"{name}{which}", x, of)

        function, x = FUNCTIONS[m.function], wide("up")
        if m.gated:
            x = {at: FUNCTIONS["clamp"](v) for at, v in x.items()} if m.clamped else x
            x = {at: function(v) * x[at] for at, v in wide("gate").items()}
        else:
            x = {at: function(v) for at, v in x.items()}
        out = self.times(f"{name}down_weight", by(within, x), m.hidden, of=of)
        return self.biased("mlp", f"{name}down", out, of)

    def experts(self, token: Token, y: Features) -> Features:
        """Those that a token is sent to, as it weighs them, and the MLP of all tokens."""
        m = self.model
        choices = self.biased("router", "choices", self.times("router_weight", y, m.experts))
        row, function = [*choices.values()], FUNCTIONS["sigmoid"]
        odds = normalised("softmax", row) if m.odds == "softmax" else [*map(function, row)]
        found = [self.mlp("shared_", y, m.shared)] if m.shared else []
        for e in self.chosen[token]:
            first = m.weighed_first
            within = m.weighed_within and not first and "mlp" not in m.biases
            read, inner = by(odds[e] if first else 1, y), odds[e] if within else 1
            gives = self.mlp("", read, m.feed_forward, (e,), inner)
            found.append(by(1 if first or within else odds[e], gives))
        return plus(*found)
