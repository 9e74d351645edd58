"""Norms and counts, as symbols: numbers that an update reads beside the gradient; moments, if it does.

A norm is any function of a sum over weights and their elements, of any function of each. In one line a
device adds up its own slice of each weight's gradient, and groups their devices. A count is the sum of
what each device's samples have of anything, such as tokens, in each micro-step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from proofs.checking.symbols import BOOL, INT, REAL, ZERO, Element
from proofs.tools.sums import partition, total
from proofs.trusted.kernel import Kernel
from proofs.trusted.terms import And, If


class NormSymbols(ABC):
    """What norms and counts are of, on a single device and on many. e is the number of an element, y a
    sum. normed(t): the place in which norm t finds the gradient of a weight.
    """

    k: Kernel
    t: Any
    d: Any
    c: Any
    u: Any
    m: Any
    weight: Any
    i: Any
    j: Any
    n: Any
    micro_steps: Any
    mesh: Any
    source: Any
    second: Any
    omega: Any
    step: Any
    has: Any

    def _norms(self) -> None:
        k = self.k
        self.e, self.y = k.integers("e"), k.reals("y")
        self.elements, self.all_weights = (k.fixed(name, INT) for name in ("elements", "all_weights"))
        self.is_a_weight = And(self.weight >= 0, self.weight < self.all_weights)
        self.normed = self.of_weight("normed", INT, INT)
        self.element = k.function("element", INT, Element)
        self.number_of = k.function("number_of", Element, INT)
        number = self.number_of(self.j)
        self.counted = k.suppose(
            "elements_and_weights_are_counted",
            [self.j],
            And(
                *(number >= 0, number < self.elements, self.element(number) == self.j),
                self.all_weights >= 0,
            ),
        )
        self.reads_norm = k.fixed("reads_norm", BOOL)
        self.fourth = k.function("fourth", INT, INT)
        self.part_of_norm = self.of_run("part_of_norm", INT, REAL, REAL)
        self.norm = self.of_all_weights("norm", INT, REAL, REAL)

    def _counts(self) -> None:
        """tokens(u, m, i): how many device i's samples have in micro-step m of step u."""
        k, u, m, i = self.k, self.u, self.m, self.i
        self.reads_count = k.fixed("reads_count", BOOL)
        self.fifth = k.function("fifth", INT, INT)
        self.tokens = self.of_all_weights("tokens", INT, INT, INT, REAL)
        self.of_batch = total(k, "tokens_of_a_batch", [u, m], i, self.tokens(u, m, i))
        self.of_step = total(k, "tokens_of_a_step", [u], m, self.of_batch(u, m, self.n))

    def _moments(self) -> None:
        self.reads_moment = self.k.fixed("reads_moment", BOOL)

    def applied_moment(self, u: Any) -> Any:
        """The moment that the single device's optimizer reads, if it has any."""
        return If(self.reads_moment, self.omega(u)[self.j], ZERO)

    def moment_read(self, t: Any, d: Any) -> Any:
        """The moment that an update reads."""
        return If(self.reads_moment, self.has(t, self.second(t), d)[self.j], ZERO)

    def single_count(self, u: Any) -> Any:
        """The tokens of all samples of a step."""
        return self.of_step(u, self.micro_steps)

    def applied_count(self, u: Any) -> Any:
        """The count that the single device's optimizer reads."""
        return If(self.reads_count, self.single_count(u), ZERO)

    def count_read(self, t: Any, d: Any) -> Any:
        """The count that an update reads."""
        return If(self.reads_count, self.has(t, self.fifth(t), d)[self.j], ZERO)

    @abstractmethod
    def of_run(self, name: str, *sorts: Any) -> Any:
        """A function of what is in a run, of a weight."""

    @abstractmethod
    def of_all_weights(self, name: str, *sorts: Any) -> Any:
        """A function of what is in a run, of all weights."""

    @abstractmethod
    def of_weight(self, name: str, *sorts: Any) -> Any:
        """A function of a weight."""

    @abstractmethod
    def single_gradient(self, u: Any, j: Any) -> Any:
        """The gradient that the single device applies in a step, of an element."""

    def _norm_of_whole(self) -> None:
        u, x = self.u, self.element(self.e)
        part = self.part_of_norm(u, self.single_gradient(u, x))
        self.of_whole = total(self.k, "parts_of_the_single_norm", [u], self.e, part)
        self.of_wholes = total(
            self.k, "weights_in_the_single_norm", [u], self.weight, self.of_whole(u, self.elements)
        )

    def single_norm(self, u: Any) -> Any:
        """The norm of a step's whole gradients, of all weights."""
        return self.norm(u, self.of_wholes(u, self.all_weights))

    def applied_norm(self, u: Any) -> Any:
        """The norm that the single device's optimizer reads."""
        return If(self.reads_norm, self.single_norm(u), ZERO)

    def _norm_of_devices(self) -> None:
        t, d, groups = self.t, self.d, self.mesh.of_norms

        def owner(e: Any) -> Any:
            return groups.owner(t, d, self.element(e))

        x = self.element(self.e)
        read = self.has(t, self.normed(t), groups.with_element(t, d, x))[x]
        part = self.part_of_norm(self.step(t), read)
        placed, size = groups.inside.at(j=x), groups.size(t)
        found = partition(self.k, "parts_of_norms", self.c, self.e, owner, placed, size, part, [t, d])
        _, of_group, self.of_elements, self.group_is_of_elements = found
        of_weight = of_group(t, d, self.elements, size)
        self.of_groups = total(self.k, "weights_in_norms", [t, d], self.weight, of_weight)

    def computed_norm(self, t: Any, d: Any) -> Any:
        """What a norm is in a line."""
        return self.norm(self.step(t), self.of_groups(t, d, self.all_weights))

    def norm_read(self, t: Any, d: Any) -> Any:
        """The norm that an update reads."""
        return If(self.reads_norm, self.has(t, self.fourth(t), d)[self.j], ZERO)
