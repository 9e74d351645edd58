"""Parts of a few lines, which show what no layer of a model has."""

from __future__ import annotations

from dataclasses import replace

from spec.models.values import LOG_TOTAL, TRANSPOSED, Builder, Does, Operation, Part, Role, Value


def projection() -> Part:
    """Two products: what goes in and out is needed as it is to lie by nothing but the end."""
    takes, up, down = (
        Value(name, indices, role)
        for name, indices, role in (
            ("takes", ("b", "s", "h"), Role.STREAM),
            ("up", ("h", "f"), Role.WEIGHT),
            ("down", ("f", "h"), Role.WEIGHT),
        )
    )
    part = Builder("projection", takes)
    wide = part.contract(takes, up, Value("wide", ("b", "s", "f")))
    return part.part(part.contract(wide, down, replace(takes, name="gives")))


def used_twice() -> Part:
    """Two products with one matrix, the one added twice to the other, and one with another matrix."""
    two = projection()
    up, down = two.operations
    takes, matrix = up.reads
    squares = Operation(Does.CONTRACT, (takes, takes), Value("squares", takes.indices))
    other = up.on((squares.makes, matrix), replace(up.makes, name="other"))
    once = Operation(Does.ADD, (up.makes, other.makes), replace(up.makes, name="once"))
    twice = Operation(Does.ADD, (up.makes, once.makes), replace(up.makes, name="twice"))
    last = down.on((twice.makes, down.reads[1]), down.makes)
    return replace(two, name="used_twice", operations=(up, squares, other, once, twice, last))


def turned(part: Part) -> Part:
    """A part, with the operands of each product in the other order."""
    order = {op: -1 if op.does is Does.CONTRACT else 1 for op in part.operations}
    operations = (op.on(op.reads[:: order[op]], op.makes) for op in part.operations)
    return replace(part, operations=tuple(operations))


def of_rows(index: str = "f") -> Part:
    """Two products, and between them a softmax over an index that weights are cut along."""
    takes, wide = Value("takes", ("b", "s", "h"), Role.STREAM), Value("wide", ("b", "s", index))
    part = Builder("of_rows", takes)
    part.contract(takes, Value("up", ("h", index), Role.WEIGHT), wide)
    odds = part.normalise("softmax", index, wide, replace(wide, name="odds"))
    down = Value("down", (index, "h"), Role.WEIGHT)
    return part.part(part.contract(odds, down, replace(takes, name="gives")))


def renamed() -> Part:
    """Two products, and between them two scales; what they scale, and the first, is renamed before. The
    second is itself scaled.
    """
    two = projection()
    up, down = two.operations
    part = Builder("renamed", two.takes)
    wide = part.contract(up.reads[0], up.reads[1], up.makes)
    other = part.rename(wide, Value("other", ("b", "s", "g")), ("f", "g"))
    scales = (Value(f"{index}_scale", (index,), Role.WEIGHT) for index in "fg")
    first = part.rename(next(scales), Value("first", ("g",)), ("f", "g"))
    twos = Value("twos", ("g",), Role.CONSTANT, 0)
    second = part.contract(next(scales), twos, Value("second", ("g",)))
    for by in (first, second):
        other = part.contract(other, by, replace(other, name=f"other_{by.name}"))
    last = part.rename(other, replace(wide, name="last"), ("g", "f"))
    return part.part(part.contract(last, down.reads[1], down.makes))


def renamed_at_once() -> Part:
    """Two products, and between them a rename of two indices at once, which moves them, too."""
    two = projection()
    up, down = two.operations
    part = Builder("renamed_at_once", two.takes)
    matrix = replace(up.reads[1], indices=("h", "f", "g"))
    wide = part.contract(up.reads[0], matrix, replace(up.makes, indices=("b", "s", "f", "g")))
    pairs, both = (("f", "i"), ("g", "t")), Value("both", ("b", "s", "i", "t"))
    part.rename(wide, both, *pairs, function=TRANSPOSED)
    last = replace(down.reads[1], indices=("i", "t", "h"))
    return part.part(part.contract(both, last, down.makes))


def ends_in_odds(over: str = "h") -> Part:
    """Two products, and a softmax of what they give: its backward reads its result."""
    two = projection()
    given = two.operations[-1].makes
    odds = Operation(Does.NORMALISE, (given,), replace(given, name="odds"), "softmax", over)
    return replace(two, name="ends_in_odds", operations=(*two.operations, odds), gives=odds.makes)


def talking_heads(*others: str, of_samples: bool = False) -> Part:
    """Attention whose scores a weight mixes, head by head, before their softmax (arXiv 2003.02436), and
    whose result a gate scales: queries that the same weight mixes.

    What it takes is odds before. So on a ring a weight, and queries, are used in each turn, and before
    any; and their gradients are sums over turns, and more. `others`: indices of the keys of further
    attention, one after the other. Of samples no cotangent is returned; there are neither odds nor a
    gate, values have one number for each head, and what is summed over turns is read by products alone.
    """
    role = Role.CONSTANT if of_samples else Role.STREAM
    takes = Value("takes", ("b", "s", "h"), role)
    part, gives = Builder("talking_heads", None if of_samples else takes), takes
    if part.takes:
        gives = part.normalise("softmax", "h", takes, replace(takes, name="odds"))
    for number, keys in enumerate(("u", *others)):
        gives = _talking_heads(part, gives, keys, str(number) if number else "")
    return part.part(gives)


def _talking_heads(part: Builder, takes: Value, keys: str, number: str) -> Value:
    def weight(name: str, *indices: str) -> Value:
        return Value(f"{name}{number}", indices, Role.WEIGHT)

    def of_heads(name: str, *indices: str) -> Value:
        makes = Value(f"{name}{number}_of", ("b", "s", *indices))
        return part.contract(takes, weight(name, "h", *indices), makes)

    def of_keys(value: Value) -> Value:
        makes = Value(f"all_{value.name}", ("b", keys, *value.indices[2:]))
        return part.rename(value, makes, ("s", keys))

    features = ("d",) if part.takes else ()
    queries, key = of_heads("query", "g", "d"), of_heads("key", "g", "d")
    value = of_heads("value", "r", *features)
    mix, gate = weight("mix", "g", "r"), Value(f"gate{number}", ("b", "s", "r"))
    if part.takes:
        part.contract(queries, mix, gate)
    scores = Value(f"scores{number}", ("b", "s", keys, "g"))
    mixed = Value(f"mixed{number}", ("b", "s", keys, "r"))
    part.contract(queries, of_keys(key), scores)
    part.contract(scores, mix, mixed)
    shares = part.normalise("softmax", keys, mixed, replace(mixed, name=f"shares{number}"))
    context = Value(f"context{number}", ("b", "s", "r", *features))
    part.contract(shares, of_keys(value), context)
    if part.takes:
        context = part.contract(context, gate, replace(context, name=f"gated{number}"))
    gives = Value(f"gives{number}", takes.indices, Role.STREAM)
    return part.contract(context, weight("output", "r", *features, "h"), gives)


def log_totals() -> Part:
    """A log-sum-exp of rows, read twice, of which no softmax is there; and one of other rows, whose
    squares, summed over tokens, are what it gives.
    """
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    part = Builder("log_totals", takes)
    every = Value("every", ("h",), Role.CONSTANT, 0)
    gives = takes
    for n in range(2):
        total = part.normalise(LOG_TOTAL, "h", takes, Value(f"total_{n}", ("b", "s")))
        spread = part.contract(total, every, replace(takes, name=f"spread_{n}"))
        gives = part.add(gives, spread, replace(takes, name=f"with_{spread.name}"))
    odds = part.normalise("softmax", "h", gives, replace(takes, name="odds"))
    return part.part(part.contract(odds, odds, Value("gives", ("b", "h"), Role.STREAM)))


def many_uses() -> Part:
    """A value that two products with weights that are cut read, two with whole ones, and its square.

    What it gives is twice their sum.
    """
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    part = Builder("many_uses", takes)
    gives = part.contract(takes, takes, replace(takes, name="squares"))
    for n in range(2):
        up, down, scale = (
            Value(f"{name}_{n}", indices, Role.WEIGHT)
            for name, indices in (("up", ("h", "f")), ("down", ("f", "h")), ("scale", ("h",)))
        )
        wide = part.contract(takes, up, Value(f"wide_{n}", ("b", "s", "f")))
        for found in (
            part.contract(wide, down, replace(takes, name=f"narrow_{n}")),
            part.contract(takes, scale, replace(takes, name=f"scaled_{n}")),
        ):
            gives = part.add(gives, found, replace(takes, name=f"with_{found.name}"))
    return part.part(part.add(gives, gives, replace(takes, name="twice")))


def product_of_weights() -> Part:
    """Two products, and between them one with that of two weights, each cut along its own index.

    And one with what two constants make, which is inside a kernel.
    """
    two = projection()
    up, down = two.operations
    work = Builder("product_of_weights", two.takes)
    inner, outer = (Value(n, i, Role.WEIGHT) for n, i in (("inner", ("f", "g")), ("outer", ("g", "n"))))
    both = work.contract(inner, outer, Value("both", ("f", "n")))
    wide = work.contract(up.reads[0], up.reads[1], up.makes)
    ones, others = (Value(name, ("f",), Role.CONSTANT) for name in ("ones", "others"))
    of_ones = work.contract(ones, others, Value("of_ones", ("f",)))
    squares = work.apply("square", of_ones, replace(of_ones, name="squares", width=0))
    wide = work.contract(wide, squares, replace(wide, name="scaled"))
    narrow = work.contract(wide, both, Value("narrow", ("b", "s", "n")))
    last = replace(down.reads[1], indices=("n", "h"))
    return work.part(work.contract(narrow, last, down.makes))


def odds_of_weights() -> Part:
    """Two products, and between them one with the odds of weights over an index that axes cut: they are
    gathered, and the gradients of what is gathered are terms.
    """
    two = projection()
    up, down = two.operations
    part = Builder("odds_of_weights", two.takes)
    up_of_both = replace(up.reads[1], indices=("h", "f", "v"))
    wide = part.contract(up.reads[0], up_of_both, replace(up.makes, indices=("b", "s", "f", "v")))
    given = Value("given", ("v", "k"), Role.WEIGHT)
    odds = part.normalise("softmax", "v", given, Value("odds", given.indices))
    chosen = part.contract(wide, odds, Value("chosen", ("b", "s", "f", "k")))
    down_of_both = replace(down.reads[1], indices=("f", "k", "h"))
    return part.part(part.contract(chosen, down_of_both, down.makes))


def kernels() -> Part:
    """Values that lines in a kernel read, which make values of no width: what the part takes, and x and
    xy; and others, of a width: y, of which a line of backward makes one of none.
    """
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    part, gives = Builder("kernels", takes), takes
    made: list[Value] = []
    for name, width in (("x", 0), ("xy", 0), ("y", 2), ("none", 0)):
        wide = Value(name, ("b", "s", "f"), width=width if name == "none" else 2)
        wide = part.contract(takes, Value(f"up_{name}", ("h", "f"), Role.WEIGHT), wide)
        made.append(part.apply("silu", wide, replace(wide, name=f"open_{name}", width=width)))
        opened = made[-2] if name == "y" else made[-1]
        both = part.contract(wide, opened, replace(wide, name=f"both_{name}", width=2))
        down = Value(f"down_{name}", ("f", "h"), Role.WEIGHT)
        more = part.contract(both, down, replace(takes, name=f"{name}_more"))
        gives = part.add(gives, more, replace(takes, name=f"with_{name}"))
    return part.part(gives)


def spread(of_samples: bool, constant_first: bool) -> Part:
    """A number of each token, or sample, that constants spread over two indices that weights are cut
    along: over `wide`, and then `wider`. The tokens of constants that come first are keys meanwhile.
    """
    token = ("b",) if of_samples else ("b", "s")
    takes = Value("takes", (*token, "h"), Role.STREAM)
    part = Builder("spread", takes)

    def over(value: Value, index: str, name: str) -> Value:
        both = value, Value(f"every_{index}", (index,), Role.CONSTANT, 0)
        left, right = both[::-1] if constant_first else both
        return part.contract(left, right, Value(name, (*value.indices, index)))

    row = part.contract(takes, Value("rows", ("h",), Role.WEIGHT), Value("row", token))
    are_keys = constant_first and not of_samples
    if are_keys:
        row = part.rename(row, Value("keys", ("b", "u")), ("s", "u"))
    wider = over(over(row, "f", "wide"), "g", "wider")
    if are_keys:
        wider = part.rename(wider, Value("tokens", ("b", "s", "f", "g")), ("u", "s"))
    down = Value("down", ("f", "g", "h"), Role.WEIGHT)
    return part.part(part.contract(wider, down, replace(takes, name="gives")))
