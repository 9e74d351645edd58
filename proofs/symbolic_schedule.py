"""A schedule as a symbol: its lines are functions of which nothing is said, and so are its runs.

Lines are those of the flat run, over all micro-steps and steps; one axis of any number of devices.
Declared are what a single device does, what the devices do, and the values that forms are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Kernel
from proofs.lines import FIRST, MOVES, OWNER, Line
from proofs.sums import total
from spec.operators import OTHER, Offset

INT, REAL, BOOL = z3.IntSort(), z3.RealSort(), z3.BoolSort()
Element = z3.DeclareSort("Element")
ROW = z3.ArraySort(Element, REAL)
KindSort, _kinds = z3.EnumSort(
    "LineKind", [*(m.name.capitalize() for m in MOVES), "Backward", "Update"]
)
KINDS = dict(zip((m.name for m in MOVES), _kinds, strict=False))
BACKWARD, UPDATE = _kinds[-2:]
WhatSort, ORIGINALS = z3.EnumSort("Original", ["Weight", "Moment", "Gradient", "Wrong", "Wrong_moment"])
WEIGHT, MOMENT, CONTRIBUTION, WRONG, WRONG_MOMENT = ORIGINALS
StartSort, _starts = z3.EnumSort("Start", [*lines.STARTS, "Nothing"])
STARTS = dict(zip(lines.STARTS, _starts, strict=False))
NOTHING = _starts[-1]
PLACES: dict[Offset, int] = {OWNER: 0, FIRST: 1, OTHER: 2}  # a device's place as a number
FIRSTS = (OWNER, FIRST)  # where the first device may be
ZERO, ONE = z3.RealVal(0), z3.RealVal(1)


def cases(term: Any, table: dict[Any, Any], otherwise: Any) -> Any:
    """The value that a table has for a term."""
    for key, value in reversed(table.items()):
        otherwise = z3.If(term == key, value, otherwise)
    return otherwise


def either(first: Any, table: Mapping[int, Any]) -> Any:
    """The value by where the first device is."""
    return z3.If(first == OWNER, table[OWNER], table[FIRST])


def place_of(device: Any, owner: Any) -> Any:
    """A device's place, seen from an element's owner."""
    elsewhere = z3.If(device == 0, z3.IntVal(PLACES[FIRST]), z3.IntVal(PLACES[OTHER]))
    return z3.If(device == owner, z3.IntVal(PLACES[OWNER]), elsewhere)


def first_of(owner: Any) -> Any:
    """The first device's place, likewise."""
    return z3.If(owner == 0, z3.IntVal(OWNER), z3.IntVal(FIRST))


class Language:
    """The symbols, and what is supposed of them. Variables are named by letters:

    t a line, b a place, s an original value, d and i devices, u a step, m a micro-step, j an element,
    p the place of a device, f that of the first device.
    """

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.t, self.b, self.s, self.d, self.i, self.u = k.integers("t b s d i u")
        self.m, self.f, self.p, self.op = k.integers("m f p op")
        self.j, self.w = k.constant("j", Element), k.constant("w", WhatSort)
        self.n, self.last, self.bound, self.micro_steps = (
            k.fixed(name, INT) for name in ("n", "last", "bound", "micro_steps")
        )
        self.size, self.size_ = z3.ToReal(self.n), k.reals("size")
        self.owner = k.function("owner", Element, INT)
        owner = self.owner(self.j)
        self.owned = k.suppose(
            "each_element_has_an_owner", [self.j], z3.And(owner >= 0, owner < self.n)
        )
        self.some = k.prove("there_are_devices", self.n >= 1, uses=[self.owned])
        self._lines()
        self._single_device()
        self._devices()
        self._originals()

    # ---------------------------------------------------------------- the schedule
    def _lines(self) -> None:
        k, t = self.k, self.t
        self.kind = k.function("kind", INT, KindSort)
        self.source, self.second, self.third, self.target, self.step, self.micro = (
            k.function(name, INT, INT)
            for name in ("source", "second", "third", "target", "step", "micro_step")
        )
        self.factor = k.function("factor", INT, REAL)
        self.start = k.function("start", INT, StartSort)
        m = self.micro(t)
        self.numbered = k.suppose(
            "lines_are_of_steps",
            [t],
            z3.And(self.step(t) >= 0, self.step(t) < self.last, m >= 0, m < self.micro_steps),
        )

    def writes_second(self, b: Any) -> Bool:
        """Whether line t is an update, and b the place of the moments."""
        return z3.And(self.kind(self.t) == UPDATE, b == self.second(self.t))

    def drops(self, b: Any) -> Bool:
        """Whether line t is a backward, and b the place of its activations."""
        return z3.And(self.kind(self.t) == BACKWARD, b == self.second(self.t))

    def untouched(self, b: Any) -> Bool:
        """Whether line t leaves a place as it is."""
        return z3.Not(z3.Or(b == self.target(self.t), self.writes_second(b), self.drops(b)))

    def written(self, b: Any, moment: Any, value: Any, dropped: Any, before: Any) -> Any:
        """What is in place b after line t."""
        kept = z3.If(self.drops(b), dropped, before)
        return z3.If(self.writes_second(b), moment, z3.If(b == self.target(self.t), value, kept))

    # --------------------------------------------------------------- a single device
    def _single_device(self) -> None:
        k, u, m, i, j = self.k, self.u, self.m, self.i, self.j
        self.theta, self.omega = (k.function(name, INT, ROW) for name in ("theta", "omega"))
        self.next_weight, self.next_moment = (
            k.function(name, INT, Element, REAL, REAL, REAL, REAL)
            for name in ("next_weight", "next_moment")
        )
        # the gradient of a device's samples, at the weights that backward and forward read
        self.gradient = k.function("gradient", ROW, ROW, INT, INT, INT, ROW)
        here = self.gradient(self.theta(u), self.theta(u), u, m, i)[j]
        self.batch = total(k, "batch", [u, m, j], i, here)
        self.whole = total(k, "whole", [u, j], m, self.batch(u, m, j, self.n))
        before = self.theta(u)[j], self.omega(u)[j], self.whole(u, j, self.micro_steps)
        self.trains = k.suppose(
            "the_single_device_trains",
            [u, j],
            z3.And(
                self.theta(u + 1)[j] == self.next_weight(u, j, *before),
                self.omega(u + 1)[j] == self.next_moment(u, j, *before),
            ),
        )

    # ------------------------------------------------------------------- the devices
    def _devices(self) -> None:
        k, t, b, d, i, j = self.k, self.t, self.b, self.d, self.i, self.j
        self.has = k.function("has", INT, INT, INT, ROW)
        self.junk = k.function("junk", INT, INT, INT, Element, REAL)
        self.everyone = total(k, "everyone", [t, b, j], i, self.has(t, b, i)[j])
        false, true = z3.BoolVal(False), z3.BoolVal(True)
        self.gone, self.gone_start, self.gone_next = k.recursion(
            "gone",
            [b],
            t,
            self.start(b) == NOTHING,
            lambda prev: self.written(b, false, self.kind(t) == KINDS["release"], true, prev(b)),
        )
        junk, owner = self.junk(t, b, d, j), self.owner(j)
        at_first = {
            STARTS[name]: lines.started_on(
                name, d, owner, self.theta(0)[j], self.omega(0)[j], self.junk(0, b, d, j)
            )
            for name in STARTS
        }
        first = self.has(0, b, d)[j]
        self.begin = k.suppose(
            "devices_begin_alike",
            [b, d, j],
            z3.Implies(z3.Not(self.gone(b, 0)), first == cases(self.start(b), at_first, first)),
        )
        after = {KINDS[m.name]: self.moved_on(m, d, junk) for m in MOVES}
        after[BACKWARD] = self.computed_gradient(t, d)[j]
        after[UPDATE] = self.next_weight(*self.read_by_update(t, d))
        self.runs = k.suppose(
            "devices_run_the_lines",
            [t, b, d, j],
            z3.Implies(
                z3.Not(self.gone(b, t + 1)),
                self.has(t + 1, b, d)[j]
                == self.written(
                    b,
                    self.next_moment(*self.read_by_update(t, d)),
                    cases(self.kind(t), after, ZERO),
                    ZERO,
                    self.has(t, b, d)[j],
                ),
            ),
        )

    def moved_on(self, line: Line, d: Any, junk: Any) -> Any:
        """What device d has of element j in the target of line t, of a kind that moves values."""
        t, j = self.t, self.j

        def at(b: Any) -> Callable[[Any], Any]:
            return lambda e: e if e is lines.ANYONE else self.has(t, b, e)[j]

        whole = self.everyone(t, self.source(t), j, self.n)
        return line.value(
            d, self.owner(j), at(self.source(t)), at(self.target(t)), whole, junk, self.factor(t)
        )

    def computed_gradient(self, t: Any, d: Any) -> Any:
        """What backward computes in a line: a row."""
        read = self.has(t, self.source(t), d), self.has(t, self.second(t), d)
        return self.gradient(*read, self.step(t), self.micro(t), d)

    def read_by_update(self, t: Any, d: Any) -> tuple[Any, ...]:
        """What an update is of: its step, element j, the weight, the moment and the gradient there."""
        read = (self.has(t, b(t), d)[self.j] for b in (self.source, self.second, self.third))
        return self.step(t), self.j, *read

    # -------------------------------------------------------------- original values
    def _originals(self) -> None:
        k, s, d, i, j, u, m, w = self.k, self.s, self.d, self.i, self.j, self.u, self.m, self.w
        self.what = k.function("what", INT, WhatSort)
        self.time, self.which = (k.function(name, INT, INT) for name in ("time", "which"))
        self.named = k.function("named", WhatSort, INT, INT, INT)
        self.name_is_its_own = k.suppose(
            "original_values_have_names",
            [s],
            self.named(self.what(s), self.time(s), self.which(s)) == s,
        )
        found = self.named(w, u, m)
        few = z3.If(w == CONTRIBUTION, self.micro_steps, 1)
        self.names = k.suppose(
            "names_are_of_original_values",
            [w, u, m],
            z3.Implies(
                z3.And(u >= 0, u <= self.last, m >= 0, m < few),
                z3.And(
                    found >= 0,
                    found < self.bound,
                    self.what(found) == w,
                    self.time(found) == u,
                    self.which(found) == m,
                ),
            ),
        )
        zero = z3.IntVal(0)
        self.finite = k.prove(
            "original_values_are_finitely_many",
            self.bound >= 0,
            uses=[self.numbered, self.names.at(w=WEIGHT, u=zero, m=zero)],
        )
        at, of = self.time(s), self.which(s)
        wrong = z3.If(
            self.kind(at) == BACKWARD,
            self.computed_gradient(at, d)[j],
            self.next_weight(*self.read_by_update(at, d)),
        )
        own = self.gradient(self.theta(at), self.theta(at), at, of, d)[j]
        values = (self.theta(at)[j], self.omega(at)[j], own, wrong)
        wrong_moment = self.next_moment(*self.read_by_update(at, d))
        self.original, self.original_is = k.define(
            "original",
            [s, d, j],
            cases(self.what(s), dict(zip(ORIGINALS, values, strict=False)), wrong_moment),
        )
        self.all = total(k, "all", [s, j], i, self.original(s, i, j))

    def views(self, s: Any, d: Any, j: Any) -> tuple[Any, ...]:
        """What device d can have of an original value: its own, the sum, the owner's, the first's."""
        own, owners, firsts = (self.original(s, e, j) for e in (d, self.owner(j), z3.IntVal(0)))
        return own, self.all(s, j, self.n), owners, firsts

    def state(self, what: Any, u: Any) -> Any:
        """The name of a state at a step."""
        return self.named(what, u, z3.IntVal(0))

    def contribution(self, t: Any) -> Any:
        """The name of what backward computes in a line, if it is right."""
        return self.named(CONTRIBUTION, self.step(t), self.micro(t))

    def is_of_step(self, s: Any, u: Any) -> Bool:
        """Whether a value is a contribution to a step's gradient."""
        m = self.which(s)
        return z3.And(self.what(s) == CONTRIBUTION, self.time(s) == u, m >= 0, m < self.micro_steps)
