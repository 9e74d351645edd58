"""Random terms of the kernel, whose parts occur several times."""

from __future__ import annotations

import operator
from fractions import Fraction

from hypothesis import strategies as st

from proofs.trusted.terms import (
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    Const,
    DeclareSort,
    Distinct,
    EnumSort,
    Float64,
    FPBits,
    FPVal,
    Function,
    If,
    Implies,
    IntSort,
    IntVal,
    Not,
    Or,
    RealSort,
    RealVal,
    Store,
    ToReal,
    fp,
)

BOOL, INT, REAL, FLOAT = BoolSort(), IntSort(), RealSort(), Float64()
TABLE = ArraySort(INT, INT)
COLOUR, COLOURS = EnumSort("Colour", ["Red", "Green", "Blue"])
THING = DeclareSort("Thing")
ARITHMETIC = (BOOL, INT, REAL, TABLE)
ALL = (*ARITHMETIC, COLOUR, THING, FLOAT)
NUMBERS = [-7, -2, -1, 0, 1, 2, 3]
VARIABLES = {
    sort: [Const(f"{letter}{i}", sort) for i in range(2)]
    for letter, sort in zip("bnratcu", (BOOL, INT, REAL, TABLE, THING, COLOUR, FLOAT), strict=True)
}
LEAVES = {
    sort: [*found, *{BOOL: [BoolVal(True), BoolVal(False)], COLOUR: COLOURS}.get(sort, [])]
    for sort, found in VARIABLES.items()
}
LEAVES[INT] += map(IntVal, NUMBERS)
LEAVES[REAL] += [*map(RealVal, NUMBERS), RealVal(Fraction(-3, 2)), RealVal(Fraction(1, 3))]
LEAVES[FLOAT] += [FPVal(0.0), FPVal(-0.0), FPVal(0.1), FPBits(0x7FF8000000000000), FPVal(1e308)]
f, g, p = Function("f", INT, INT), Function("g", INT, REAL, REAL), Function("p", THING, COLOUR, BOOL)
at = operator.getitem

# an operation, the sorts that it takes, and the one that it gives
OPERATIONS = [
    *[(of, (sort, sort), sort) for of in (operator.add, operator.sub) for sort in (INT, REAL)],
    *[(of, (sort, sort), BOOL) for of in (operator.lt, operator.ge) for sort in (INT, REAL)],
    *[(of, (sort, sort), BOOL) for of in (operator.eq, operator.ne) for sort in ALL],
    *[(If, (BOOL, sort, sort), sort) for sort in ALL],
    *[(Distinct, (sort,) * 3, BOOL) for sort in (INT, COLOUR, THING)],
    *[(of, (BOOL,) * count, BOOL) for of in (And, Or) for count in (1, 2, 3)],
    *[(operator.neg, (sort,), sort) for sort in (INT, REAL)],
    (Not, (BOOL,), BOOL),
    (Implies, (BOOL, BOOL), BOOL),
    (ToReal, (INT,), REAL),
    (at, (TABLE, INT), INT),
    (Store, (TABLE, INT, INT), TABLE),
    (f, (INT,), INT),
    (g, (INT, REAL), REAL),
    (p, (THING, COLOUR), BOOL),
    *[(lambda x, y, op=op: fp(op, x, y), (FLOAT, FLOAT), BOOL) for op in ("fp.eq", "fp.lt", "fp.gt")],
    (lambda x, y: fp("fp.add", x, y), (FLOAT, FLOAT), FLOAT),
]
for _by in NUMBERS:
    OPERATIONS += [(lambda x, by=_by: by * x, (sort,), sort) for sort in (INT, REAL)]
    if _by:
        OPERATIONS += [(lambda x, by=_by: x / by, (sort,), sort) for sort in (INT, REAL)]
        OPERATIONS.append((lambda x, by=_by: x % by, (INT,), INT))


@st.composite
def terms(draw, sort=BOOL, sorts=ARITHMETIC, steps=12, but=()):
    """A term made in steps, each of what was made before; without the operations `but`."""
    made = {each: list(LEAVES[each]) for each in sorts}
    known = [o for o in OPERATIONS if {*o[1], o[2]} <= {*sorts} and o[0] not in but]
    for _ in range(draw(st.integers(1, steps))):
        of, takes, gives = draw(st.sampled_from(known))
        recent = [made[each][-8:] if draw(st.booleans()) else made[each] for each in takes]
        made[gives].append(of(*[draw(st.sampled_from(found)) for found in recent]))
    return made[sort][-1]
