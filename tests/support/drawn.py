"""Formulas of certificates, drawn at random, of all sorts."""

from hypothesis import strategies as st

from psem_check.terms import BOOL, INT, REAL, Symbol, Terms

THING = ("Sort", "Thing")
MODE = ("Values", "Mode", ("R", "S", "M"))
ROW = ("Array", INT, THING)
SYMBOLS = [
    *(Symbol(f"p{i}", (), BOOL) for i in range(2)),
    *(Symbol(name, (), THING) for name in "abc"),
    *(Symbol(name, (), INT) for name in "mn"),
    *(Symbol(name, (), REAL) for name in "xy"),
    *(Symbol(name, (), MODE) for name in "st"),
    *(Symbol(name, (), ROW) for name in "uv"),
    Symbol("f", (THING,), THING),
    Symbol("g", (INT, MODE), INT),
    Symbol("h", (BOOL, THING), BOOL),
    Symbol("i", (REAL,), REAL),
]

ALL = (BOOL, THING, INT, REAL, MODE, ROW)


class Drawn:
    """Terms of any sort, and formulas that are often about the same few of them."""

    def __init__(self, draw, sorts):
        self.draw = draw
        self.sorts = sorts
        self.terms = Terms()
        self.terms.symbols = SYMBOLS

    def one(self, sort, depth):
        terms = self.terms
        known = [i for i, s in enumerate(SYMBOLS) if s.sort == sort and (depth or not s.arguments)]
        known = [i for i in known if {*SYMBOLS[i].arguments} <= {*self.sorts}]
        kinds = ["symbol", "symbol", *self.others(sort, depth)]
        kind = self.draw(st.sampled_from(kinds))
        if kind == "symbol":
            chosen = self.draw(st.sampled_from(known))
            return terms.make(chosen, *(self.one(s, depth - 1) for s in SYMBOLS[chosen].arguments))
        if kind == "number":
            return terms.number(self.draw(st.integers(-2, 2)), sort)
        if kind == "value":
            return terms.make((sort, self.draw(st.integers(0, 2))))
        if kind == "ite":
            return terms.make(kind, self.formula(depth - 1), *(self.one(sort, depth - 1) for _ in "ab"))
        if kind == "select":
            return terms.make(kind, self.one(ROW, depth - 1), self.one(INT, depth - 1))
        if kind == "store":
            return terms.make(kind, *(self.one(of, depth - 1) for of in (ROW, INT, THING)))
        if kind == "to_real":
            return terms.make(kind, self.one(INT, depth - 1))
        if kind == "half":
            return terms.make("/", self.one(sort, depth - 1), terms.number(2, REAL))
        count = 1 if kind == "neg" else 2
        return terms.make(kind, *(self.one(sort, depth - 1) for _ in range(count)))

    def others(self, sort, depth):
        plain = {INT: ["number"], REAL: ["number"], MODE: ["value"]}.get(sort, [])
        if not depth:
            return plain
        whole = ["div", "mod"] if sort == INT else ["to_real", "half"]
        numbers = ["+", "-", "*", "neg", *whole] if sort in (INT, REAL) else []
        arrays = {THING: ["select"], ROW: ["store"]}.get(sort, []) if ROW in self.sorts else []
        return [*plain, *numbers, *arrays, "ite"]

    def formula(self, depth):
        terms = self.terms
        if depth and self.draw(st.integers(0, 2)) == 0:
            head = self.draw(st.sampled_from(("not", "and", "or", "=>")))
            return terms.make(
                head, *(self.formula(depth - 1) for _ in range(1 if head == "not" else 2))
            )
        sort = self.draw(st.sampled_from(self.sorts))
        if sort == BOOL:
            return self.one(BOOL, depth)
        heads = ("=", "=", "<", ">=") if sort in (INT, REAL) else ("=",)
        sides = [self.one(sort, depth) for _ in "ab"]
        said = terms.make(self.draw(st.sampled_from(heads)), *sides)
        return terms.negation(said) if self.draw(st.integers(0, 3)) == 0 else said


@st.composite
def drawn_formulas(draw, depth, count, sorts=ALL):
    drawn = Drawn(draw, sorts)
    return drawn.terms, [drawn.formula(depth) for _ in range(draw(st.integers(2, count)))]
