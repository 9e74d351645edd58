"""Formulas about devices on axes, evaluated on a mesh of some devices."""

from abc import ABC, abstractmethod
from itertools import product
from math import prod

from tests.support.interpreted import OPERATORS

READ = OPERATORS | {
    "and": lambda *all_of: all(all_of),
    "or": lambda *any_of: any(any_of),
    "ite": lambda said, then, otherwise: then if said else otherwise,
    "select": lambda array, index: array(index),
}


class Devices:
    """Devices of a mesh, as their coordinates; along axes that there are not, there is one."""

    def __init__(self, *sizes):
        self.sizes = sizes
        self.fixed, self.defined = {}, {}  # constants; definitions, as functions of the variables
        self._read = {}  # terms that were evaluated, as functions of the variables
        self.all = [*product(*map(range, sizes))]

    def devices_along(self, a):
        return self.sizes[a] if 0 <= a < len(self.sizes) else 1

    def along(self, d, a):
        inside = 0 <= a < len(self.sizes) and 0 <= d < len(self.all)
        return self.all[d][a] if inside else 0

    def moved(self, d, a, c):
        inside = 0 <= d < len(self.all) and 0 <= a < len(self.sizes)
        if not (inside and 0 <= c < self.devices_along(a)):
            return d
        return self.all.index((*self.all[d][:a], c, *self.all[d][a + 1 :]))

    def apart(self, d, i):
        return next((a for a in range(len(self.sizes)) if self.along(d, a) != self.along(i, a)), 0)

    def owner_along(self, a, j):
        return j % self.devices_along(a)

    def firsts(self, j):
        return lambda x: int(self.owner_along(x, j) != 0)

    def sources(self, alike, d, i, j):
        def at(x):
            here = self.along(i, x)
            others = 2 if here == self.along(d, x) else 3
            return 4 if alike else 0 if here == self.owner_along(x, j) else 1 if here == 0 else others

        return at

    def axis(self, t):
        return t % len(self.sizes)

    def adds_along(self, weight, t, a):
        return bool((t + weight) >> max(a, 0) & 1) and a >= 0

    def norm_group(self, weight, t, d):
        """The devices that differ along the axes of a norm, of a weight."""
        axes = range(len(self.sizes))
        alike = [a for a in axes if not self.adds_along(weight, t, a)]
        every = range(len(self.all))
        return [e for e in every if all(self.along(e, a) == self.along(d, a) for a in alike)]

    def norm_group_size(self, weight, t):
        return len(self.norm_group(weight, t, 0))

    def norm_member(self, weight, t, d, c):
        inside = 0 <= d < len(self.all) and 0 <= c < self.norm_group_size(weight, t)
        return self.norm_group(weight, t, d)[c] if inside else d

    def norm_owner(self, weight, t, d, j):
        axes = [a for a in range(len(self.sizes)) if self.adds_along(weight, t, a)]
        for c, e in enumerate(self.norm_group(weight, t, d) if 0 <= d < len(self.all) else []):
            if all(self.along(e, a) == self.owner_along(a, j) for a in axes):
                return c
        return 0

    def value(self, term, variables):
        """What a term is, of these devices."""
        return self.read(term)(variables)

    def read(self, term):
        """A term as a function of its variables; each is taken apart once."""
        if id(term) not in self._read:
            self._read[id(term)] = self._taken_apart(term), term  # of a term that stays
        return self._read[id(term)][0]

    def _taken_apart(self, term):
        if term.op in ("number", "bool"):
            number = int(term.of) if term.op == "number" else term.of
            return lambda variables: number
        if term.op == "value":
            constant = term.sort.parts[term.of]
            return lambda variables: constant
        args = [self.read(each) for each in term.args]
        if term.op == "=>":
            given, said = args
            return lambda variables: not given(variables) or said(variables)
        if term.op == "apply":
            return self._applied(term.of.name, args)
        operator = READ[term.op]
        return lambda variables: operator(*[arg(variables) for arg in args])

    def _applied(self, name, args):
        if name in self.defined:
            applied, body = self.defined[name].goal.args
            names, said = [variable.of.name for variable in applied.args], self.read(body)
            return lambda variables: said({n: a(variables) for n, a in zip(names, args, strict=True)})
        if args:
            function = getattr(self, name)
            return lambda variables: function(*[arg(variables) for arg in args])
        known = {"n": prod(self.sizes), "axes": len(self.sizes), "weight": 0, "all_weights": 1}

        def constant(variables):
            return next(each[name] for each in (self.fixed, variables, known) if name in each)

        return constant


class LinesOfARun(Devices, ABC):
    """Devices, and the functions that say what line(t) of a run is; a kind of run says its lines."""

    @abstractmethod
    def line(self, t):
        """Line number t."""

    def kind(self, t):
        return self.line(t).kind.capitalize()

    def factor(self, t):
        return self.line(t).factor

    def target(self, t):
        return self.line(t).target

    def source(self, t):
        return self.line(t).source

    def second(self, t):
        return self.line(t).second

    def third(self, t):
        return self.line(t).third

    def fourth(self, t):
        return self.line(t).fourth

    def fifth(self, t):
        return self.line(t).fifth

    def normed(self, weight, t):
        """Runs are of weight 0 alone: no other has a place."""
        return self.line(t).source if weight == 0 else -9
