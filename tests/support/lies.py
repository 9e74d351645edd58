"""Objects that lie to the kernel: texts that are said to be others, what is equal to all there is."""

from __future__ import annotations


def constants(k, names, sort):
    return [k.constant(name, sort) for name in names]


class Lying(str):
    """A text that is said to be another, to Python and in what is written."""

    said = "Int"

    def __eq__(self, other):
        return other == self.said

    def __hash__(self):
        return hash(self.said)

    def __format__(self, _):
        return "Int) (assert false"


class Everything:
    """Equal to all there is."""

    def __eq__(self, _):
        return True

    def __hash__(self):
        return 0


def mutable(found):
    """Parts of a value that Python may change in place, wherever they are."""
    if isinstance(found, tuple):
        return [part for each in found for part in mutable(each)]
    return [] if type(found) in (str, int, bool, type(None)) else [found]
