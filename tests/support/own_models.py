"""Random models of given parts, of sizes that two devices along an axis divide."""

from __future__ import annotations

from hypothesis import strategies as st

from psem_model.predict.plan import Plan
from psem_model.reading.products import parse
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING
from spec.models.custom import Custom
from spec.models.parts import parts
from spec.models.values import LOG_TOTAL, Builder, Role, Value
from spec.pipelines.pipeline import Order, Pipeline

CUT = {"f": 4, "t": 2, "g": 2}  # by tensor parallelism
PLANS = (
    "zero1(2) * tp(2)",
    "zero3(2) * tp+sp(2)",
    "fsdp(2) * cp(2)",
    "tp(2) * cp-all-gather(2)",
    "zero2+all(2) * tp+sp(2)",
    "dp(2) * tp(2) * pp(2)",
    "hsdp(2,2) * tp+sp(2)",
    "cp-all-to-all(2) * tp(2)",
    "zero1+all(2) * tp+sp(2) * cp(2)",
)
FUNCTIONS = ("gelu", "silu", "square", "tanh", "relu", "cap")


def weight(name, *indices):
    return Value(name, indices, Role.WEIGHT)


def constant(name, *indices):
    return Value(name, indices, Role.CONSTANT, 0)


class Drawn:
    """A part while it is drawn: `now` is [b s h]."""

    def __init__(self, draw, name, takes=None):
        self.draw, self.part, self.now, self.count = draw, Builder(name, takes), takes, 0
        self.whole = ("b", "s", "h")

    def named(self, what):
        self.count += 1
        return f"{self.part.name}_{what}_{self.count}"

    def value(self, what, indices=None):
        return Value(self.named(what), tuple(self.draw(st.permutations(indices or self.whole))))

    def contract(self, left, right, indices=None):
        return self.part.contract(left, right, self.value("product", indices))

    def norm(self):
        by = self.draw(st.sampled_from(["rms_norm", "layer_norm", "softmax"]))
        self.now = self.part.normalise(by, "h", self.now, self.value("norm"))

    def scale(self):
        self.now = self.contract(self.now, weight(self.named("scale"), "h"))

    def bias(self):
        spread = self.contract(weight(self.named("bias"), "h"), constant("ones", "b", "s"))
        self.now = self.part.add(self.now, spread, self.value("biased"))

    def mask(self):
        self.now = self.contract(self.now, constant(self.named("mask"), *self.whole))

    def product(self):
        """With a function of itself, or with itself."""
        other = self.now if self.draw(st.booleans()) else self.applied(self.now)
        self.now = self.contract(self.now, other)

    def log_total(self):
        """A log-sum-exp, beside what it is of."""
        rows = self.value("total", ("b", "s"))
        total = self.part.normalise(LOG_TOTAL, "h", self.now, rows)
        spread = self.contract(total, constant("every", "h"))
        self.now = self.part.add(self.now, spread, self.value("sum"))

    def applied(self, value):
        function = self.draw(st.sampled_from(FUNCTIONS))
        return self.part.apply(function, value, self.value("applied", value.indices))

    def mlp(self):
        inside = self.draw(st.sampled_from([*CUT, "k"]))
        shape = self.draw(st.permutations(["h", inside]))
        up = self.contract(self.now, weight(self.named("up"), *shape), ("b", "s", inside))
        down = weight(self.named("down"), inside, "h")
        self.given(self.contract(self.applied(up), down))

    def mixing(self):
        inside = self.draw(st.sampled_from(["t", "k"]))
        every = self.part.rename(self.now, self.value("every", ("b", "u", "h")), ("s", "u"))
        mixed = self.contract(every, weight(self.named("mix"), "u", inside), ("b", inside, "h"))
        self.given(self.contract(self.applied(mixed), weight(self.named("back"), inside, "s")))

    def attention(self):
        mixes, scales, scales_shares = (self.draw(st.booleans()) for _ in range(3))
        heads = "k" if mixes else "g"

        def of_heads(name, heads):
            made = weight(self.named(name), "h", heads, "d")
            return self.contract(self.now, made, ("b", "s", heads, "d"))

        def of_keys(name, heads):
            every = self.value("every", ("b", "u", heads, "d"))
            return self.part.rename(of_heads(name, heads), every, ("s", "u"))

        def scaled(x, by):
            return self.contract(x, weight(self.named(by), heads), x.indices) if by else x

        query, key, value = of_heads("q", "g"), of_keys("k", "g"), of_keys("v", heads)
        scores = self.contract(query, key, ("b", "g", "s", "u"))
        if mixes:
            scores = self.contract(scores, weight(self.named("mix"), "g", "k"), ("b", "k", "s", "u"))
        scores = scaled(scores, "scale" * scales)
        shares = self.part.normalise("softmax", "u", scores, self.value("shares", scores.indices))
        shares = scaled(shares, "share" * scales_shares)
        context = self.contract(shares, value, ("b", "s", heads, "d"))
        self.given(self.contract(context, weight(self.named("out"), heads, "d", "h")))

    def of_weights(self):
        """A weight that is made of others: a product of two, a function, or a constant's multiple."""
        shape, name = ("h", "f"), self.named
        match self.draw(st.sampled_from(["product", "function", "multiple", "norm"])):
            case "product":
                found = self.contract(
                    weight(name("low"), "h", "k"), weight(name("rank"), "k", "f"), shape
                )
            case "function":
                found = self.applied(weight(name("raw"), *shape))
            case "norm":
                raw = weight(name("raw"), *shape)
                found = self.part.normalise("rms_norm", "h", raw, self.value("unit", shape))
            case _:
                found = self.contract(weight(name("raw"), *shape), constant(name("kernel"), "h"), shape)
        inside = self.contract(self.now, found, ("b", "s", "f"))
        self.given(self.contract(self.applied(inside), weight(name("down"), "f", "h")))

    def given(self, found):
        """Beside what was there, or in its place."""
        if self.draw(st.booleans()):
            found = self.part.add(self.now, found, self.value("sum"))
        self.now = found

    def through(self, most):
        does = [self.norm, self.scale, self.bias, self.mask, self.product]
        does += [self.mlp, self.mixing, self.attention, self.of_weights, self.log_total]
        for _ in range(self.draw(st.integers(1, most))):
            self.draw(st.sampled_from(does))()

    def done(self):
        """What is given lies as what was taken."""
        last = Value(self.named("given"), self.whole)
        return self.part.part(self.part.apply("gelu", self.now, last))


@st.composite
def losses(draw, end):
    """Of each token, or of each sample: a product, or a sum with its indices in any order."""
    if draw(st.booleans()):
        return end.contract(end.now, weight("last", "s", "h"), ("b",))
    of_token = ("b", "s")
    if draw(st.booleans()):
        total = end.value("total", of_token)
        one = end.part.normalise(LOG_TOTAL, "h", end.now, total)
    else:
        one = end.contract(end.now, weight("last", "h"), of_token)
    other = end.contract(end.now, weight("other", "h"), of_token)
    return end.part.add(one, other, end.value("loss", of_token))


@st.composite
def own_models(draw):
    """A part that begins, a layer, and a part that ends in a loss."""
    begin = Drawn(draw, draw(st.sampled_from(["begin", "embedding"])))
    begin.now = begin.contract(constant("inputs", "b", "s", "n"), weight("first", "n", "h"))
    begin.through(2)
    found = [begin.done()]
    layer = Drawn(draw, "layer", Value("layer_in", begin.whole, Role.STREAM))
    layer.through(3)
    layer.scale()
    found.append(layer.done())
    end = Drawn(draw, draw(st.sampled_from(["end", "head"])), Value("end_in", begin.whole, Role.STREAM))
    end.through(2)
    found.append(end.part.part(draw(losses(end))))
    sizes = {**CUT, "n": 3, "h": draw(st.integers(1, 4)), "k": draw(st.integers(1, 3)), "d": 2}
    there = {index for part in found for index in part.indices}
    lengths = [(index, size) for index, size in sizes.items() if index in there]
    return Custom(tuple(found), 2, (*lengths, *([("u", "s")] if "u" in there else [])))


def as_custom(model):
    """A transformer without experts, as a model of given parts."""
    lengths = [(i, n) for i, n in model.sizes(1, 1).items() if i not in ("b", "s", "u")]
    return Custom(parts(model), model.layers, (*lengths, ("u", "s")))


@st.composite
def own_plans(draw, models=None):
    """Such a model on a product of strategies."""
    model = draw(own_models() if models is None else models)
    found = parse(draw(st.sampled_from(PLANS)))
    stages = found.sizes[found.product.pipe] if found.product.pipe else 1
    kind = draw(st.sampled_from([Order.ONE_F_ONE_B, Order.GPIPE, Order.ZB_H1])) if stages > 1 else None
    pipe = Pipeline(kind or Order.ONE_F_ONE_B, stages, draw(st.integers(2, 4)) if kind else 2)
    again = draw(st.sampled_from([NOTHING, EVERYTHING, FROM_SLICES]))
    return Plan(
        model,
        found.product,
        found.sizes,
        draw(st.integers(1, 2)),
        8,
        pipe,
        again=again,
        text=found.text,
    )
