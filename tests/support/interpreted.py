"""What a kernel was told, of functions of Python: its definitions, and what it supposes.

A function of the kernel is one of Python, or what it is defined to be; or what a hypothesis says that
it is equal to. Then all that is supposed can be evaluated, of values for its variables.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from proofs.trusted.folding import as_number
from proofs.trusted.theorem import Step, read

OPERATORS: dict[str, Callable[..., Any]] = {
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
    "distinct": lambda a, b: a != b,
    "not": lambda said: not said,
    "+": lambda *terms: sum(terms),
    "-": lambda a, b: a - b,
    "neg": lambda a: -a,
    "*": lambda a, b: a * b,
    "to_real": lambda a: a,
    "select": lambda array, index: array[index],
    "store": lambda array, index, value: array.with_at(index, value),
}


class Array:
    """An array of a few entries; all others are the same."""

    def __init__(self, entries: dict[Any, Any], others: Any = 0) -> None:
        self.entries = {i: value for i, value in entries.items() if value != others}
        self.others = others
        self._key = frozenset(self.entries.items()), others

    def __getitem__(self, index: Any) -> Any:
        return self.entries.get(index, self.others)

    def with_at(self, index: Any, value: Any) -> "Array":
        return Array({**self.entries, index: value}, self.others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


Values = dict[str, Any]


class Equation(NamedTuple):
    """What a function is, where all of these formulas hold."""

    left: Any
    right: Any
    where: tuple[Any, ...]


class Interpreted:
    """The functions of a kernel. `known`: those of Python; constants are values.

    `over`: by a variable's name, the values among which something is said to be there.
    """

    def __init__(self, kernel: Any, known: Values, over: dict[str, Any]) -> None:
        self.known, self.over = known, over
        self.steps: dict[str, Any] = {}  # that define functions
        self.given: dict[str, list[Equation]] = {}  # by which functions are given
        self._remembered: dict[Any, Any] = {}
        self._read: dict[int, tuple[Callable[[Values], Any], Any]] = {}
        for record in map(read, kernel.theorems):
            step = record.step if record.kernel is kernel else Step("part")
            if step.rule in ("define", "recursion", "choose"):
                self.steps[step.given["symbol"].name] = step
            if step.rule == "choose":
                self.steps[step.given["found"].name] = step

    def give(self, formula: Any, where: Sequence[Any] = ()) -> None:
        """A function is what an equation says, `where` it says so: of each in a conjunction."""
        if formula.op == "and":
            for part in formula.args:
                self.give(part, where)
        elif formula.op == "=>":
            self.give(formula.args[1], (*where, formula.args[0]))
        else:
            left, right = formula.args
            self.given.setdefault(_head(left).of.name, []).append(Equation(left, right, tuple(where)))

    def value(self, term: Any, values: Values) -> Any:
        """What a term is, of values for its variables."""
        return self._function(term)(values)

    def _function(self, term: Any) -> Callable[[Values], Any]:
        if id(term) not in self._read:
            self._read[id(term)] = self._taken_apart(term), term  # of a term that stays
        return self._read[id(term)][0]

    def _taken_apart(self, term: Any) -> Callable[[Values], Any]:
        if term.op in ("number", "bool"):
            number = _plain(as_number(term))
            return lambda _: number
        if term.op == "value":
            constant = term.sort.parts[term.of]
            return lambda _: constant
        args = [self._function(each) for each in term.args]
        if term.op == "apply":
            name = term.of.name
            if not args:
                return lambda values: values[name] if name in values else self.apply(name)
            return lambda values: self.apply(name, *[arg(values) for arg in args])
        if term.op == "ite":
            said, then, otherwise = args
            return lambda values: then(values) if said(values) else otherwise(values)
        if term.op == "=>":
            given, goal = args
            return lambda values: not given(values) or goal(values)
        if term.op in ("and", "or"):
            joined = all if term.op == "and" else any
            return lambda values: joined(arg(values) for arg in args)
        operator = OPERATORS[term.op]
        return lambda values: operator(*[arg(values) for arg in args])

    def apply(self, name: str, *args: Any) -> Any:
        """A function's value."""
        key = name, args
        if key not in self._remembered:
            self._remembered[key] = self._applied(name, args)
        return self._remembered[key]

    def _applied(self, name: str, args: tuple[Any, ...]) -> Any:
        if name in self.given and (found := self._as_given(name, args)) is not None:
            return found
        if name not in self.steps:
            known = self.known[name]
            return known(*args) if callable(known) else known
        step = self.steps[name]
        params = [p.of.name for p in step.given["params"]]
        if step.rule == "define":
            return self.value(step.given["body"], dict(zip(params, args, strict=True)))
        if step.rule == "recursion":
            *before, index = args
            values = dict(zip(params, before, strict=True))
            if index <= 0:
                return self.value(step.given["base"], values)
            self._begin(name, args, len(before))
            return self.value(step.given["body"], {**values, step.given["index"].of.name: index - 1})
        witness = step.given["witness"].of.name
        values, over = dict(zip(params, args, strict=True)), self.over[witness]
        body = step.given["body"]
        found = next((x for x in over if self.value(body, {**values, witness: x})), None)
        if name == step.given["symbol"].name:
            return found is not None
        return next(iter(over)) if found is None else found

    def _begin(self, name: str, args: tuple[Any, ...], place: int) -> None:
        """A function's values before that at an index, from 0 on: not one inside the other."""
        before, index, after = args[:place], args[place], args[place + 1 :]
        if (name, (*before, index - 1, *after)) not in self._remembered:
            for i in range(index - 1):
                self.apply(name, *before, i, *after)

    def _as_given(self, name: str, args: tuple[Any, ...]) -> Any:
        """What the first equation says that speaks of these arguments; None if none does."""
        for left, right, where in self.given[name]:
            head = _head(left)
            values = _matched(head.args, args)
            if values is None or not all(self.value(each, values) for each in where):
                continue
            for place in (place for place, of in enumerate(head.args) if of.op == "+"):
                self._begin(name, args, place)
            if head is left:
                return self.value(right, values)
            index = left.args[1].of.name
            return Array({x: self.value(right, {**values, index: x}) for x in self.over[index]})
        return None


def _plain(number: Any) -> Any:
    """A whole number as one of Python."""
    whole = type(number) is Fraction and number.denominator == 1
    return int(number) if whole else number


def _head(left: Any) -> Any:
    """The application that an equation is about: of an array that it reads."""
    return left.args[0] if left.op == "select" else left


def _matched(patterns: Any, args: Any) -> Values | None:
    """The variables with which patterns are these values: variables, one more, numbers, tuples."""
    found: Values = {}
    for pattern, arg in zip(patterns, args, strict=True):
        if pattern.op == "number":
            if as_number(pattern) != arg:
                return None
        elif pattern.op == "+":
            if arg < 1:
                return None
            found[pattern.args[0].of.name] = arg - 1
        elif pattern.args:
            if type(arg) is not tuple or arg[0] != pattern.of.name:
                return None
            inner = _matched(pattern.args, arg[1:])
            if inner is None:
                return None
            found |= inner
        else:
            found[pattern.of.name] = arg
    return found
