"""The steps of a certificate in a model of integers: functions are tables, or as they are defined."""

import random
from itertools import product
from typing import Any

NEAR = sorted(range(-6, 8), key=abs)  # where a witness is looked for
MOST = 40  # steps of a recursion


class TooFar(Exception):
    """A recursion of more steps than are gone."""


class Model:
    """One part: its free symbols are drawn by a seed, the others are what its steps say."""

    def __init__(self, part, graph, steps, seed):
        self.part, self.terms, self.seed = part, part.terms, seed
        self._means = {}
        self._known = {}
        for step in steps:
            said = {key: self._read(graph, step[key]) for key in ("params", "body") if key in step}
            one = {key: graph.term(step[key]) for key in ("index", "base", "witness") if key in step}
            if step["rule"] in ("define", "recursion", "choose"):
                self._means[step["symbol"]] = (step["rule"], {**said, **one})
            if step["rule"] == "choose":
                self._means[step["found"]] = ("found", {**said, **one})

    def _read(self, graph, given):
        return [*map(graph.term, given)] if isinstance(given, list) else graph.term(given)

    def _drawn(self, *of):
        """Small numbers; of every other seed none is negative."""
        return random.Random(str((self.seed, *of))).choice(
            [1, 1, 2, 3, *([0, -1, -2] * (self.seed % 2))]
        )

    def applied(self, symbol, arguments):
        key = symbol, arguments
        if key not in self._known:
            self._known[key] = self._applied(symbol, arguments)
        return self._known[key]

    def _applied(self, symbol, arguments):
        rule, said = self._means.get(symbol, ("", {}))
        if not rule:
            return self._drawn(symbol, arguments)
        at = dict(zip(said["params"], arguments, strict=rule != "recursion"))
        if rule == "define":
            return self.worth(said["body"], at)
        if rule == "recursion":
            before = arguments[-1] - 1
            if before > MOST:
                raise TooFar
            if before < -1:
                return self._drawn(symbol, arguments)
            return self.worth(said["base" if before < 0 else "body"], {**at, said["index"]: before})
        serve = (n for n in NEAR if self.worth(said["body"], {**at, said["witness"]: n}))
        found = next(serve, None)
        return found is not None if rule == "choose" else found or 0

    def worth(self, term, at):
        """What a term is, where constants are what `at` says."""
        if term in at:
            return at[term]
        head, arguments = self.terms.heads[term], self.terms.arguments[term]
        if isinstance(head, tuple):
            return head[1]
        values = tuple(self.worth(argument, at) for argument in arguments)
        return self.applied(head, values) if isinstance(head, int) else OPERATORS[head](*values)

    def fails(self, theorem):
        """Values of the variables, if there are small ones, for which a theorem does not hold."""
        symbols = sorted(self.terms.symbols_in(theorem.formulas) & self.part.variables)
        variables = [self.terms.make(symbol) for symbol in symbols]
        for row in product(range(-1, 4), repeat=len(variables)):
            at = dict(zip(variables, row, strict=True))
            if all(self.worth(given, at) for given in theorem.given) and not self.worth(
                theorem.goal, at
            ):
                return at
        return None


def _product(*factors):
    whole = 1
    for factor in factors:
        whole *= factor
    return whole


OPERATORS: dict[str, Any] = {
    "not": lambda a: not a,
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "=>": lambda a, b: not a or b,
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda *a: sum(a),
    "*": _product,
    "-": lambda a, b: a - b,
    "neg": lambda a: -a,
    "ite": lambda a, b, c: b if a else c,
}
