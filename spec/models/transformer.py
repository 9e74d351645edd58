"""The shape of a transformer: its sizes, and what its layers have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import lcm

from spec.numbers.arithmetic import Number, per, quotient

EMBEDDING, LAYER, HEAD = "embedding", "layer", "head"
INDICES = {
    "b": "samples",
    "s": "positions",
    "u": "positions of keys",
    "h": "features",
    "g": "groups of heads",
    "r": "heads of a group",
    "d": "features of a head",
    "x": "turned features of a head",
    "n": "features of a head that are not turned",
    "z": "features of a head, turned or not",
    "y": "features of a head's values",
    "m": "features that queries are made from",
    "l": "features that keys and values are made from",
    "f": "features inside the MLP",
    "i": "features inside the MLP of layers without experts",
    "t": "features inside the MLP that all tokens share",
    "v": "words",
    "o": "features of words, where they are others than those of layers",
    "w": "learned places",
    "j": "experts to choose from",
    "e": "experts",
    "c": "slots of an expert",  # a token takes one in each expert that it is sent to
}

NORMS = {
    "words": "of the embedding",
    "attention": "of what attention reads",
    "attention_out": "of what attention gives",
    "mlp": "of what the MLP reads",
    "mlp_out": "of what the MLP gives",
    "head": "of the queries and keys of each head",
    "heads": "of the queries and keys of all heads together",
    "turned": "of the queries and keys of each head, after they are turned: without weights",
    "attention_sum": "of what a layer takes and attention gives, added up",
    "mlp_sum": "of that and what the MLP gives, added up",
}
USUAL_NORMS = frozenset({"attention", "mlp"})
CAPPED = frozenset({"scores", "logits"})
DROPPED = frozenset({"words", "shares", "output"})  # of the embedding, of attention, of each block
DENSE, FLAT, MASKED, STRAIGHT = "dense", "flat", "masked", "straight"
LAYER_KINDS = {
    DENSE: "in a model with experts, a layer without",
    FLAT: "of modules whose attention is one kernel: heads of groups are put together for it",
    MASKED: "of modules whose attention is one kernel: it is given a mask of pairs of tokens",
    STRAIGHT: "queries and keys are not turned: they know no positions",
}
LayerKind = frozenset[str]  # of `LAYER_KINDS`: how a layer differs from most
USUAL: LayerKind = frozenset()


OF_QKV = ("query_weight", "key_weight", "value_weight"), ("query_bias", "key_bias", "value_bias")
OF_MLP = ("gate_weight", "up_weight"), ("gate_bias", "up_bias")
OF_LATENT = (
    ("query_straight_weight", "query_weight"),
    ("key_latent_weight", "key_weight"),
    ("key_straight_weight", "value_weight"),
)
# weights that may be one array, beside each other along what they make
JOINED = {"qkv": OF_QKV, "heads": OF_QKV, "mlp": OF_MLP, "experts": OF_MLP, "latent": OF_LATENT}
BY_HEADS = {"heads", "latent"}  # of these, whose arrays have head after head


@dataclass(frozen=True)
class Latent:
    """Attention whose queries, keys and values are made from few features of each token.

    `keys`: those of keys and values; `queries`: those of queries, 0: all that attention reads.
    `straight`: features of a head that are not turned, beside those that are; `values`: of its values.
    The turned features of a key are those of all heads. (arXiv 2405.04434, section 2.1)
    """

    keys: Number
    queries: Number
    straight: Number
    values: Number


@dataclass(frozen=True)
class Transformer:
    """The shape of a model. Numbers of layers, features, heads and so on."""

    layers: Number
    hidden: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    feed_forward: Number
    vocabulary: Number
    gated: bool = False
    function: str = "gelu"
    norm: str = "layer_norm"  # with an offset; or "rms_norm", without
    scales_in_full: bool = False  # norms that are computed in fp32 are scaled before they are rounded
    angles_in_full: bool = False  # cosines and sines are in fp32, whatever they turn
    plain_softmax: bool = False  # that of scores is in their own type, where others are in fp32
    norms: frozenset[str] = USUAL_NORMS  # of `NORMS`
    unnormed: bool = False  # there is no norm after the last layer
    word_features: Number = 0  # features of words, from and to which products lead; 0: as of layers
    parallel: bool = False  # attention and MLP both read what the layer takes
    biases: frozenset[str] = frozenset({"qkv", "output", "mlp"})
    positions: Number = 0  # learned ones
    spare: Number = 0  # learned places before that of the first token
    rotary: Number | None = None  # features of a head that are turned, the first ones; none: all
    angles: bool = True  # where none are learned, queries and keys are turned by their position
    angles_of_windows: bool = False  # layers with a window turn by other angles than those without
    unread_angles: bool = False  # cosines and sines are made, though nothing is turned by them
    distances: bool = False  # scores fall with the distance of the key (ALiBi)
    windows: tuple[Number, ...] = ()  # of the layers in turn: latest tokens that one sees; 0: all
    chunked: bool = False  # windows are chunks of a sample: a token sees those of its own
    tempered: bool = False  # queries that are not turned are scaled by their position
    capped: frozenset[str] = frozenset()  # of `CAPPED`: by tanh
    sinks: bool = False  # a learned score of each head, which takes a share beside those of keys
    clamped: bool = False  # what the gate is multiplied by, is brought between two bounds
    tied: bool = False  # the head's words are the embedding's
    dropout: frozenset[str] = frozenset()  # of `DROPPED`
    experts: Number = 0  # 0: one MLP for all tokens
    chosen: Number = 0  # experts that a token is sent to
    odds: str = "softmax"  # or "sigmoid": of a token's choices, by which it weighs what they give
    weighed_first: bool = False  # or what they read
    weighed_within: bool = False  # or what their last product reads, if they have no biases
    shared: Number = 0  # features inside the MLP that all tokens pass, beside experts; 0: none
    dense: Number = 0  # features inside the MLP of a dense layer
    kinds: tuple[LayerKind, ...] = ()  # of the layers in turn
    latent: Latent | None = None
    joined: frozenset[str] = frozenset()  # of `JOINED`: weights that are one array
    reads_first: bool = False  # rows of a layer's weights are what products read, not what they make
    normed: bool = False  # odds of a token's experts are divided by their sum
    of_chosen: bool = False  # the softmax of choices is of the chosen experts alone
    plain_odds: bool = False  # odds of its experts are in the type computed with, not in fp32
    chosen_in_full: bool = False  # choices are computed in fp32, from copies
    of_groups: bool = False  # experts are chosen from few groups: odds of others are masked
    paired_angles: bool = False  # cosines and sines are there once for the two features of a pair
    offset_scales: bool = False  # a norm is scaled by one more than its weight
    scaled_words: bool = False  # words are multiplied by a number
    numbered_heads: bool = False  # heads of keys and of values are taken by their numbers: copies
    put_together: bool = False  # queries, head by head: so lies what attention gives, and is copied
    spread_keys: bool = False  # keys are turned for each head, and not for each group
    masked: bool = False  # a kernel of attention is given a mask, whatever the window
    shares_mask: bool = False  # one mask for all layers: pairs of tokens of each head
    routed: bool = False  # what choosing experts keeps is told, and who `takes_each`
    in_steps: bool = False  # what is several operations is told
    further: Number = 0  # modules that predict further tokens: the published model has them besides

    @property
    def takes_each(self) -> Number:
        """Experts that take a token: those that it is sent to; or all, if odds weigh what they read."""
        return self.experts if self.routed and self.weighed_first else self.chosen

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel of attention takes its heads: not one of keys, by number, for several."""
        return self.masked or not self.numbered_heads

    @property
    def turned(self) -> bool:
        """Whether queries and keys are turned by the angles of their positions, features in pairs."""
        return self.angles and not self.positions

    @property
    def turned_features(self) -> Number:
        """How many features of a head are turned."""
        return self.head_dim if self.rotary is None else self.rotary

    def is_given_mask(self, window: Number, tokens: Number) -> bool:
        """Whether a kernel of attention is given a mask by layers of that window, which share it.

        A window has no more tokens than a sample; or whatever it is, of heads taken by their numbers.
        (transformers, masking_utils.py: _ignore_causal_mask_sdpa; models/falcon/modeling_falcon.py:
        FalconModel)
        """
        return self.masked or self.numbered_heads or 0 < window <= tokens

    def window(self, layer: int) -> Number:
        """How many of the latest tokens a token sees, itself included; 0: all of them.

        A mask, as that of later tokens is: scores of all pairs are there.
        """
        return self.windows[layer % len(self.windows)] if self.windows else 0

    def sets_of_angles(self, first: int, after: int) -> int:
        """How many sets of cosines and sines layers have together, from `first` to `after`."""
        if not self.angles_of_windows:
            return 1
        return len({window == 0 for window in self.windows_of(first, after)})

    def windows_of(self, first: int, after: int) -> frozenset[Number]:
        """The windows that layers have, from `first` to `after`."""
        return frozenset(map(self.window, range(first, after)))

    def layer_kind(self, layer: int) -> LayerKind:
        """How a layer differs from most."""
        return self.kinds[layer % len(self.kinds)] if self.kinds else USUAL

    def layers_of(self, first: int, after: int) -> Counter[str]:
        """How many layers there are of each kind, by the name of its part, from `first` to `after`."""
        if not self.kinds:
            return Counter({LAYER: after - first})
        rounds, rest = divmod(after - first, len(self.kinds))
        found = Counter(layer_name(self.layer_kind(number)) for number in range(first, first + rest))
        for kind in self.kinds if rounds else ():
            found[layer_name(kind)] += rounds
        return found

    def arrays(self, has_experts: bool) -> tuple[tuple[str, ...], ...]:
        """The weights of a layer that are one array. `has_experts`: whether its MLPs are experts'."""
        others = {
            "mlp" if has_experts else "experts",
            *(("qkv", "heads") if self.latent else ("latent",)),
        }
        found = (names for key in sorted(self.joined - others) for names in JOINED[key])
        return tuple(dict.fromkeys(found))

    def sizes(self, micro_batch: Number, sequence: Number) -> dict[str, Number]:
        """How many values each index has. Slots: the mean of the experts, which may be a fraction."""
        sent = micro_batch * sequence * self.takes_each
        slots = per(sent, self.experts) if self.experts else 0
        latent = self.latent or Latent(0, 0, 0, 0)
        return {
            "b": micro_batch,
            "s": sequence,
            "u": sequence,
            "h": self.hidden,
            "g": self.kv_heads,
            "r": quotient(self.heads, self.kv_heads),
            "d": self.head_dim,
            "x": self.head_dim,
            "n": latent.straight,
            "z": latent.straight + self.head_dim,
            "y": latent.values,
            "m": latent.queries,
            "l": latent.keys,
            "f": self.feed_forward,
            "i": self.dense,
            "t": self.shared,
            "v": self.vocabulary,
            "o": self.word_features,
            "w": self.positions + self.spare,
            "j": self.experts,
            "e": self.experts,
            "c": slots,
        }


def with_masks(model: Transformer, tokens: Number) -> Transformer:
    """The model, in which layers whose window has no more tokens than a sample are `MASKED`.

    Or all are; or share one mask, if heads tell distances by it. (transformers, masking_utils.py:
    _ignore_causal_mask_sdpa; models/falcon/modeling_falcon.py: FalconModel, _split_heads)
    """
    shares = model.masked and model.distances
    has_groups = model.spread_keys and 1 not in (model.kv_heads, quotient(model.heads, model.kv_heads))

    def more(window: Number) -> set[str]:
        is_masked = (model.masked and not shares) or 0 < window <= tokens
        return {*[MASKED] * is_masked, *[FLAT] * has_groups}

    windows, kinds = model.windows or (0,), model.kinds or (USUAL,)
    count = lcm(len(kinds), len(windows))
    of_each = islice(zip(cycle(kinds), cycle(map(more, windows)), strict=False), count)
    found = tuple(frozenset(kind | more) for kind, more in of_each)
    return replace(model, kinds=found if any(found) else (), shares_mask=shares)


def layer_name(kind: LayerKind) -> str:
    """The name of the part of a layer."""
    return "_".join((*sorted(kind), LAYER))


def is_layer(name: str) -> bool:
    """Whether a part of this name is a layer, of whatever kind."""
    return name.endswith(LAYER)


def is_turned(name: str) -> bool:
    """Whether a part of this name is a layer whose queries and keys know their positions."""
    return is_layer(name) and STRAIGHT not in name.split("_")
