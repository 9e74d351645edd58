"""A schedule as a symbol: its lines are functions of which nothing is said, and so are its runs.

Lines are those of the flat run, over all micro-steps and steps, on any mesh: of the devices of a
line's groups nothing is said. Declared are what a single device does, what the devices do, the values
that theirs are made of, and how often they have each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.checking import lines
from proofs.checking.content import Content
from proofs.checking.groups import Mesh
from proofs.checking.lines import MOVES, Line
from proofs.checking.norm_symbols import NormSymbols
from proofs.checking.symbols import (
    BACKWARD,
    CONTRIBUTION,
    COUNT_OF,
    INT,
    KINDS,
    MOMENT,
    NORM,
    NORM_OF,
    NOTHING,
    ORIGINALS,
    REAL,
    ROW,
    STARTS,
    TOKENS,
    UPDATE,
    WEIGHT,
    ZERO,
    Element,
    KindSort,
    Run,
    StartSort,
    WhatSort,
    cases,
)
from proofs.tools.closing import Closing
from proofs.tools.sums import total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or
from spec.assumptions import DETERMINISM, LINEARITY


class Symbols(NormSymbols):
    """The symbols, and what is supposed of them. Variables are named by letters:

    t a line, b a place, s an original value, d and i devices, c a coordinate in a group, u a step, m a
    micro-step, j an element.
    """

    def __init__(self, k: Kernel) -> None:
        self.closing = Closing(k)
        self.k = k = self.closing.as_kernel
        self.run = self.closing.unwritten_constant("run", Run)
        self.weight = self.closing.unwritten_constant("weight", INT)
        self.t, self.b, self.s, self.d, self.i, self.u = k.integers("t b s d i u")
        self.m, self.c = k.integers("m c")
        self.j, self.w = k.constant("j", Element), k.constant("w", WhatSort)
        self.n, self.last, self.bound, self.micro_steps = (
            k.fixed(name, INT) for name in ("n", "last", "bound", "micro_steps")
        )
        self.mesh = self._mesh()
        self._lines()
        self._norms()
        self._moments()
        self._counts()
        self._single_device()
        self._devices()
        self._originals()

    def of_run(self, name: str, *sorts: Any) -> Any:
        """A function of what is in a run, of a weight: of its model, its optimizer, or its memory."""
        return self.closing.function_of([self.run, self.weight], name, *sorts)

    def of_all_weights(self, name: str, *sorts: Any) -> Any:
        """A function of what is in a run, of all weights at once: of its data, or of its norms."""
        return self.closing.function_of([self.run], name, *sorts)

    def of_weight(self, name: str, *sorts: Any) -> Any:
        """A function of a weight, in every run."""
        return self.closing.function_of([self.weight], name, *sorts)

    def _mesh(self) -> Any:
        at = self.n, self.t, self.b, self.d, self.c, self.j
        return Mesh(self.k, self.of_weight, *at)

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
        self.ends, self.kept = k.function("ends", INT, INT), k.function("kept_as", INT, StartSort)
        m = self.micro(t)
        self.numbered = k.suppose(
            "lines_are_of_steps",
            [t],
            And(self.step(t) >= 0, self.step(t) < self.last, m >= 0, m < self.micro_steps),
        )

    @property
    def sources(self) -> tuple[Any, ...]:
        """The places that lines read, as functions of the line."""
        return self.source, self.second, self.third, self.fourth, self.fifth

    def writes_second(self, b: Any) -> Bool:
        """Whether line t is an update, and b the place of the moments."""
        return And(self.kind(self.t) == UPDATE, b == self.second(self.t))

    def drops(self, b: Any) -> Bool:
        """Whether line t is a backward, and b the place of its activations."""
        return And(self.kind(self.t) == BACKWARD, b == self.second(self.t))

    def untouched(self, b: Any) -> Bool:
        """Whether line t leaves a place as it is."""
        return Not(Or(b == self.target(self.t), self.writes_second(b), self.drops(b)))

    def written(self, b: Any, moment: Any, value: Any, dropped: Any, before: Any) -> Any:
        """What is in place b after line t."""
        kept = If(self.drops(b), dropped, before)
        return If(self.writes_second(b), moment, If(b == self.target(self.t), value, kept))

    # --------------------------------------------------------------- a single device
    def _single_device(self) -> None:
        k, u, m, i, j = self.k, self.u, self.m, self.i, self.j
        self.theta, self.omega = (self.of_run(name, INT, ROW) for name in ("theta", "omega"))
        update = INT, Element, *[REAL] * 5, REAL
        self.next_weight, self.next_moment = (
            self.of_run(name, *update) for name in ("next_weight", "next_moment")
        )
        # the gradient of a device's samples, at the weights that backward and forward read
        self.gradient = self.of_run("gradient", ROW, ROW, INT, INT, INT, ROW)
        self.weights = k.constant("weights", ROW)
        here = self.gradient(self.weights, self.weights, u, m, i)[j]
        self.batch = total(k, "batch", [self.weights, u, m, j], i, here)
        self.whole = total(
            k, "whole", [self.weights, u, j], m, self.batch(self.weights, u, m, j, self.n)
        )
        self._whole_gradient()
        self._norm_of_whole()
        moment = self.applied_moment(u)
        before = self.theta(u)[j], moment, self.single_gradient(u, j), *self.applied(u)
        self.trains = k.suppose(
            "the_single_device_trains",
            [u, j],
            And(
                self.theta(u + 1)[j] == self.next_weight(u, j, *before),
                self.omega(u + 1)[j] == self.next_moment(u, j, *before),
            ),
        )

    def _whole_gradient(self) -> None:
        """The gradient of a step's loss is the sum of those of all samples: an assumption."""
        k, u = self.k, self.u
        self.whole_gradient = whole = self.of_run("whole_gradient", ROW, INT, ROW)
        in_step, self.in_step_are = k.define("micro_steps_in", [u], self.micro_steps)
        self.linear = k.axiom(
            "the_whole_gradient_is_the_sum",
            LINEARITY,
            *(whole.symbol, self.whole.symbol.symbol, in_step),
            *(*whole.unwritten, self.weights, u, self.j),
        )

    def applied(self, u: Any) -> tuple[Any, Any]:
        """The norm and the count that the single device's optimizer reads."""
        return self.applied_norm(u), self.applied_count(u)

    def single_gradient(self, u: Any, j: Any) -> Any:
        """The gradient that the single device applies in a step, of an element."""
        return self.whole_gradient(self.theta(u), u)[j]

    # ------------------------------------------------------------------- the devices
    def _devices(self) -> None:
        k, t, b, d, c, j = self.k, self.t, self.b, self.d, self.c, self.j
        self.has = self.of_run("has", INT, INT, INT, ROW)
        self.junk = self.of_run("junk", INT, INT, INT, Element, REAL)
        member = self.mesh.member(t, d, c)
        self.everyone = total(k, "everyone", [t, b, d, j], c, self.has(t, b, member)[j])
        self._norm_of_devices()
        false, true = BoolVal(False), BoolVal(True)
        self.gone, self.gone_start, self.gone_next = k.recursion(
            "gone",
            [b],
            t,
            self.start(b) == NOTHING,
            lambda prev: self.written(b, false, self.kind(t) == KINDS["release"], true, prev(b)),
        )
        first = self.has(0, b, d)[j]
        states = self.theta(0)[j], self.omega(0)[j], self.junk(0, b, d, j)
        self.begin = k.suppose(
            "devices_begin_alike",
            [b, d, j],
            Implies(Not(self.gone(b, 0)), first == self.begun(*states, first)),
        )
        self.same_function = self._computed_alike()
        self.runs = k.suppose(
            "devices_run_the_lines",
            [t, b, d, j],
            Implies(Not(self.gone(b, t + 1)), self.has(t + 1, b, d)[j] == self.ran(self.content)),
        )

    @property
    def content(self) -> Content:
        """What devices have before a line, and what they compute in it."""
        t, d, j = self.t, self.d, self.j
        update = d, *self.read_by_update(t, d)
        return Content(
            lambda b, e: self.has(t, b, e)[j],
            self.everyone(t, self.source(t), d, j, self.mesh.size(t)),
            self.junk(t, self.b, d, j),
            self.factor(t),
            self.computed_gradient(t, d)[j],
            self.next_weight_on(*update),
            self.next_moment_on(*update),
            ZERO,
            self.computed_norm(t, d),
            self.tokens(self.step(t), self.micro(t), d),
        )

    def _computed_alike(self) -> tuple[Theorem, Theorem, Theorem]:
        """Each device computes the same functions: an assumption. Of gradients, weights and moments."""
        k, d, u, m, i, j = self.k, self.d, self.u, self.m, self.i, self.j
        view, activations = (k.constant(name, ROW) for name in ("view", "activations"))
        read = k.reals("old_weight old_moment applied clipped_by divided_by")

        def alike(name: str, function: Any, *given: Any) -> tuple[Any, Theorem]:
            read = *function.unwritten, *given
            on = k.function(f"{name}_on", INT, *(each.sort for each in read), function.gives)
            same = f"{name}s_are_computed_alike"
            alike = k.axiom(same, DETERMINISM, on, function.symbol, d, *read)
            return lambda device, *given: on(device, *function.unwritten, *given), alike

        self.gradient_on, gradients = alike("gradient", self.gradient, view, activations, u, m, i)
        self.next_weight_on, weights = alike("next_weight", self.next_weight, u, j, *read)
        self.next_moment_on, moments = alike("next_moment", self.next_moment, u, j, *read)
        return gradients, weights, moments

    def begun(self, weight: Any, moment: Any, junk: Any, nothing: Any, holds: Any = None) -> Any:
        """What device d has of element j in place b at first. `holds`: whether slices there have it."""
        holds = self.mesh.holds(self.b, self.d, self.j) if holds is None else holds
        elsewhere = If(holds, IntVal(0), IntVal(1))
        at_first = {
            STARTS[name]: lines.started_on(name, elsewhere, IntVal(0), weight, moment, junk)
            for name in STARTS
        }
        return cases(self.start(self.b), at_first, nothing)

    def ran(self, content: Content) -> Any:
        """What device d has of element j in place b after line t."""
        made = {KINDS[m.name]: self.moved_on(m, content) for m in MOVES}
        made |= {BACKWARD: content.gradient, UPDATE: content.weight}
        made |= {NORM_OF: content.norm, COUNT_OF: content.count}
        before = content.at(self.b, self.d)
        return self.written(
            self.b, content.moment, cases(self.kind(self.t), made, ZERO), content.dropped, before
        )

    def moved_on(self, line: Line, content: Content) -> Any:
        """What device d has of element j in the target of line t, of a kind that moves values."""
        t, d, j = self.t, self.d, self.j
        here = self.mesh.coordinate(t, d)

        def of(b: Any) -> Callable[[Any], Any]:
            def at(c: Any) -> Any:
                if c is lines.ANYONE:
                    return c
                own = c is here
                return content.at(b, d if own else self.mesh.member(t, d, c))

            return at

        return line.value(
            here,
            self.mesh.owner(t, d, j),
            of(self.source(t)),
            of(self.target(t)),
            content.in_group,
            content.junk,
            content.factor,
        )

    def computed_gradient(self, t: Any, d: Any) -> Any:
        """What backward computes in a line: a row."""
        read = self.has(t, self.source(t), d), self.has(t, self.second(t), d)
        return self.gradient_on(d, *read, self.step(t), self.micro(t), d)

    def gradient_alike(self, t: Any, d: Any) -> Theorem:
        """What backward computes on a device is what any device would."""
        read = {"view": self.has(t, self.source(t), d), "activations": self.has(t, self.second(t), d)}
        return self.same_function[0].at(d=d, i=d, u=self.step(t), m=self.micro(t), **read)

    def update_alike(self, t: Any, d: Any) -> list[Theorem]:
        """What an update computes likewise: weight and moment."""
        _, _, *values = self.read_by_update(t, d)
        names = ("old_weight", "old_moment", "applied", "clipped_by", "divided_by")
        read = dict(zip(names, values, strict=True))
        return [alike.at(d=d, u=self.step(t), **read) for alike in self.same_function[1:]]

    def read_by_update(self, t: Any, d: Any) -> tuple[Any, ...]:
        """What an update is of: its step, element j; weight, moment and gradient there; norm, count."""
        weight, gradient = (self.has(t, b(t), d)[self.j] for b in (self.source, self.third))
        numbers = self.norm_read(t, d), self.count_read(t, d)
        return self.step(t), self.j, weight, self.moment_read(t, d), gradient, *numbers

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
        few = If(self.is_contributed(w), self.micro_steps, 1)
        self.names = k.suppose(
            "names_are_of_original_values",
            [w, u, m],
            Implies(
                And(u >= 0, u <= self.last, m >= 0, m < few),
                And(
                    found >= 0,
                    found < self.bound,
                    self.what(found) == w,
                    self.time(found) == u,
                    self.which(found) == m,
                ),
            ),
        )
        zero = IntVal(0)
        self.finite = k.prove(
            "original_values_are_finitely_many",
            self.bound >= 0,
            uses=[self.numbered, self.names.at(w=WEIGHT, u=zero, m=zero)],
        )
        at, of = self.time(s), self.which(s)
        computed = {BACKWARD: self.computed_gradient(at, d)[j], NORM_OF: self.computed_norm(at, d)}
        new_weight = self.next_weight_on(d, *self.read_by_update(at, d))
        wrong = cases(self.kind(at), computed, new_weight)
        own = self.gradient(self.theta(at), self.theta(at), at, of, d)[j]
        tokens = self.tokens(at, of, d)
        values = (self.theta(at)[j], self.omega(at)[j], own, wrong, self.single_norm(at), tokens)
        wrong_moment = self.next_moment_on(d, *self.read_by_update(at, d))
        found = cases(self.what(s), dict(zip(ORIGINALS, values, strict=False)), wrong_moment)
        self.original, self.original_is = k.define(
            "original", [s, d, j], If(And(self.is_state(s), Not(d == 0)), ZERO, found)
        )
        self.all = total(k, "all", [s, j], i, self.original(s, i, j))

    def is_state(self, s: Any) -> Bool:
        """Whether an original value is a state, or a norm: it is the same on all devices."""
        return Or(*(self.what(s) == what for what in (WEIGHT, MOMENT, NORM)))

    def is_device(self, d: Any) -> Bool:
        """Whether there is such a device."""
        return And(d >= 0, d < self.n)

    def whose(self, s: Any, d: Any) -> Any:
        """Whose value s is, that device d has: its own, or the first device's if all have the same."""
        return If(self.is_state(s), IntVal(0), d)

    def state(self, what: Any, u: Any) -> Any:
        """The name of a state at a step."""
        return self.named(what, u, IntVal(0))

    def contribution(self, t: Any) -> Any:
        """The name of what backward computes in a line, if it is right."""
        return self.named(CONTRIBUTION, self.step(t), self.micro(t))

    def is_contributed(self, what: Any) -> Bool:
        """Whether each device has a value of a kind in each micro-step."""
        return Or(what == CONTRIBUTION, what == TOKENS)

    def is_of_step(self, s: Any, u: Any, what: Any = CONTRIBUTION) -> Bool:
        """Whether a value is a contribution to a step's gradient, or its count."""
        m = self.which(s)
        return And(self.what(s) == what, self.time(s) == u, m >= 0, m < self.micro_steps)
