"""Reading a part of a model's step: its values, and its lines forward and backward."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from psem_model.reading.toml_lines import File, Path, locate, shown
from psem_model.text.errors import nearest
from spec.devices.layouts import PARTIAL, WHOLE, Layout, Lies, along
from spec.language.moves import COLLECTIVE, IN_TURNS, Axis, Move, turns_of, with_turns
from spec.language.programs import Line, Program
from spec.language.turns import is_in_turns
from spec.models.transformer import is_layer
from spec.models.values import LOG_TOTAL, OPERANDS, WRITTEN, Does, Operation, Part, Role, Value, misfit

PART = (
    "takes",
    "gives",
    "cotangent",
    "returns",
    "weights",
    "constants",
    "forward",
    "backward",
    "bytes",
    "gradients",
)
FORWARD = ("takes", "gives", "weights", "constants", "forward", "bytes")  # of a model on one device
LINE = ("op", "source", "into", "by", "over", "names", "backward", "axes", "along")
MERGE = "merge"
# how a value lies before and after each move
LAYOUTS = {name: layouts for known in (COLLECTIVE, IN_TURNS) for layouts, name in known.items()}
LAYOUTS[MERGE] = Layout.PARTIAL, Layout.REPLICATED
UNCUT = {Layout.PARTIAL: PARTIAL, Layout.REPLICATED: WHOLE}
DOES = {does.value: does for does in Does}
USED_BY = {  # keys of some operations alone
    "by": (Does.APPLY, Does.NORMALISE),
    "over": (Does.NORMALISE,),
    "names": (Does.RENAME,),
}
NAME = re.compile(r"([A-Za-z][\w .+-]*?)\s*\[([\w ]*)\]")
NUMBER = re.compile(r" [0-9]+$")  # of constants of one name, with other indices
CUT = re.compile(r"(.*?)\s*\(([^()]*)\)")  # a constant's name, and along what it is cut
A_VALUE = 'a name and its indices, such as "query[b s g r d]"'


@dataclass
class PartReader:
    """A part, and the values that are there so far: of forward, or given; of backward."""

    file: File
    places: dict[Any, Path]  # where each line and gradient is
    name: str
    axes: tuple[Axis, ...]
    forward: dict[str, Value] = field(default_factory=dict)
    backward: dict[str, Value] = field(default_factory=dict)
    roots: dict[Value, Value] = field(default_factory=dict)  # what a moved value was
    lies: dict[Value, Lies] = field(default_factory=dict)  # of constants
    widths: dict[str, int] = field(default_factory=dict)  # bytes of an element, where they are given

    def part(self) -> Part:
        """A part as one device does it: forward alone."""
        table = self.table(FORWARD)
        takes, _, lines = self.to_forward(table)
        operations = tuple(line for line in lines if isinstance(line, Operation))
        self.require_widths()
        return Part(self.name, operations, takes, self.given_on(table, lines))

    def program(self) -> Program:
        """The whole part."""
        table = self.table(PART)
        takes, weights, lines = self.to_forward(table)
        gives = self.given_on(table, lines)
        cotangent = self.text(
            (self.name, "cotangent"), table, "the cotangent that backward starts from"
        )
        width = self.widths.get(cotangent, WRITTEN)
        seed = _named(cotangent, gives.indices, Role.ACTIVATION, width)
        self.backward[cotangent] = seed
        back = self.lines(table, "backward", self.backward)
        self.require_widths()
        returns = self.one(table, "returns", self.backward) if takes else None
        gradients = self.gradients(table, weights)
        does = [self.whole(line) for line in lines if isinstance(line, Operation)]
        read = {self.root(gives), *(value for line in does for value in line.reads)}
        # a log-sum-exp that nothing is computed of is how a softmax is made again, not what
        operations = tuple(line for line in does if line.function != LOG_TOTAL or line.makes in read)
        part = Part(self.name, operations, takes, self.root(gives))
        made, kept = {seed, *weights}, dict[Value, None]()
        for line in back:
            free = {v for v in line.reads if v.role is Role.CONSTANT and self.is_free(v, line in lines)}
            kept |= {value: None for value in line.reads if value not in made | free}
            made |= {line.makes, *line.reads}
        kept |= dict.fromkeys(v for v in gradients.values() if v not in made)
        return Program(
            part, self.axes, lines, back, gives, seed, returns, gradients, tuple(kept), self.lies
        )

    def table(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """The part's table, which has no other keys."""
        table = self.file.table((self.name,), self.file.content[self.name], keys)
        for name, width in self.file.table((self.name, "bytes"), table.get("bytes", {}), None).items():
            self.widths[name] = self.file.typed((self.name, "bytes", name), width, int)
        return table

    def require_widths(self) -> None:
        """Raise BadInput for bytes of what is no value, or a weight, whose are those of its states."""
        known = {n: v for n, v in (self.forward | self.backward).items() if v.role is not Role.WEIGHT}
        for name, width in self.widths.items():
            path = (self.name, "bytes", name)
            self.file.choose(path, name, known)
            if width < 0:
                raise self.file.wrong(path, shown(width), "0, inside a kernel, or more")

    def to_forward(
        self, table: Mapping[str, Any]
    ) -> tuple[Value | None, tuple[Value, ...], tuple[Line, ...]]:
        """What it takes, its weights, and the lines of forward."""
        takes = None
        if "takes" in table:
            takes = self.value((self.name, "takes"), table["takes"], Role.STREAM)
            self.places[self.name, "takes"] = (self.name, "takes")
        weights = self.given(table, "weights", Role.WEIGHT)
        constants = self.given(table, "constants", Role.CONSTANT)
        for value in (*([takes] if takes else []), *weights):
            self.forward[value.name] = value
        given = [*([takes] if takes else []), *weights, *constants]
        self.file.once((self.name,), [value.name for value in given], "name")
        named = [replace(value, name=NUMBER.sub("", value.name)) for value in constants]
        for value, plain in zip(constants, named, strict=True):
            one = replace(plain, form_of="") if named.count(plain) == 1 else value
            self.forward[value.name] = one
            self.lies[one] = {axis.name: WHOLE for axis in with_turns(self.axes)}
        lines = self.lines(table, "forward", self.forward)
        for weight in weights:
            if not any(weight in line.reads for line in lines):
                raise self.file.wrong(
                    (self.name, "weights"), shown(weight.name), "weights that it reads"
                )
        return takes, weights, lines

    def given_on(self, table: Mapping[str, Any], lines: Iterable[Line]) -> Value:
        """What the part gives: a line makes it."""
        return self.one(table, "gives", {line.makes.name: line.makes for line in lines}, made=True)

    def is_free(self, constant: Value, again: bool) -> bool:
        """Whether a constant need not be kept: it takes no room, or is drawn again."""
        turns = [axis.turns for axis in self.axes if axis.ring]
        return again or not constant.width or is_in_turns(self.lies[constant], turns)

    # ------------------------------------------------------------------- values
    def value(self, path: Path, text: Any, role: Role) -> Value:
        """A new value, from its name and indices."""
        found = NAME.fullmatch(self.file.typed(path, text, str))
        if not found:
            raise self.file.wrong(path, shown(text), A_VALUE)
        indices = self.file.once(path, found[2].split(), "index")
        width = self.widths.get(found[1], 0 if role is Role.CONSTANT else WRITTEN)
        return _named(found[1], indices, role, width)

    def given(self, table: Mapping[str, Any], key: str, role: Role) -> tuple[Value, ...]:
        """Weights, or constants."""
        path = (self.name, key)
        texts = self.file.typed(path, table.get(key, []), list)
        found = tuple(self.value(path, text, role) for text in texts)
        self.file.once(path, [value.name for value in found], "name")
        return found

    def text(self, path: Path, table: Mapping[str, Any], what: str) -> str:
        """A name that must be there."""
        key = str(path[-1])
        if key not in table:
            raise self.file.missing(path[:-1], key, f"{key} = ...: {what}")
        return self.file.typed(path, table[key], str)

    def one(
        self, table: Mapping[str, Any], key: str, known: Mapping[str, Value], made: bool = False
    ) -> Value:
        """A value that is there; one that is made, if that is asked for."""
        path = (self.name, key)
        self.places[path] = path
        text = self.text(path, table, "the name of a value")
        if made and text not in known:
            raise self.file.wrong(path, shown(text), "a value that forward makes", nearest(text, known))
        return self.there(path, text, known)

    def there(self, path: Path, name: Any, known: Mapping[str, Value]) -> Value:
        """A value by its name: backward has those of forward as well."""
        text = self.file.typed(path, name, str)
        cut = CUT.fullmatch(text)
        if cut:
            return self.slice(path, self.there(path, cut[1], known), cut[2])
        found = known.get(text) or self.forward.get(text)
        if found is None:
            names = {**self.forward, **known}
            expected = "a value that is given or made before"
            raise self.file.wrong(path, shown(text), expected, nearest(text, names))
        return found

    def slice(self, path: Path, value: Value, cut: str) -> Value:
        """A constant as it lies: every device has, or makes, its slice of it."""
        if value.role is not Role.CONSTANT:
            raise self.file.wrong(path, shown(f"{value.name}({cut})"), "a constant, where it is cut so")
        lies = dict(self.lies[value])
        for text in cut.split(","):
            axis, _, index = text.strip().rpartition(" ")
            if not axis:
                expected = "axes, each with the index it cuts, such as causal(tensor g)"
                raise self.file.wrong(path, shown(cut), expected)
            self.file.choose(path, axis, lies)
            lies[axis] = along(self.file.choose(path, index, value.indices))
        where = ",".join(f"{axis}:{lie}" for axis, lie in lies.items() if lie != WHOLE)
        found = replace(value, name=f"{value.name}|{where}", form_of=value.name)
        self.lies[found] = lies
        self.roots[found] = value
        return found

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def whole(self, operation: Operation) -> Operation:
        """An operation of forward, on the values before they were moved."""
        return replace(operation, reads=tuple(map(self.root, operation.reads)))

    def gradients(self, table: Mapping[str, Any], weights: Iterable[Value]) -> dict[Value, Value]:
        """The gradient of each weight."""
        path = (self.name, "gradients")
        given = self.file.table(path, table.get("gradients", {}), [w.name for w in weights])
        found = {}
        for weight in weights:
            if weight.name not in given:
                expected = f"{weight.name} = ...: the name of its gradient"
                raise self.file.missing(path if given else (self.name,), weight.name, expected)
            at = (*path, weight.name)
            self.places[self.name, weight.name] = at
            found[weight] = self.there(at, given[weight.name], self.backward)
            if {*found[weight].indices} != {*weight.indices}:
                raise self.file.wrong(at, str(found[weight]), f"the indices of {weight}")
        return found

    # -------------------------------------------------------------------- lines
    def lines(self, table: Mapping[str, Any], key: str, made: dict[str, Value]) -> tuple[Line, ...]:
        """Forward or backward."""
        if key not in table:
            raise self.file.missing((self.name,), key, f"{key} = [...]: its lines")
        found: list[Line] = []
        for number, value in enumerate(self.file.typed((self.name, key), table[key], list)):
            path = (self.name, key, number)
            line = self.line(path, self.file.table(path, value, LINE), made)
            name, spot = line.makes.name, (self.name, line)
            gathered = isinstance(line, Move) and line.makes.role is Role.STREAM  # what it takes
            again = made is self.backward and (spot in self.places or gathered)
            if name in made or (name in self.forward and not again):
                raise self.file.wrong((*path, "into"), shown(name), self.its_own(name, made))
            made[name] = line.makes
            self.places.setdefault(spot, path)
            found.append(line)
        return tuple(found)

    def its_own(self, name: str, made: Mapping[str, Value]) -> str:
        """What is expected of a line whose name another line has, which it is not."""
        own, value = "a name of its own", made.get(name) or self.forward[name]
        spots = (spot for spot in self.places if spot[0] == self.name)
        other = next((s for s in spots if getattr(s[1], "makes", None) == value), None)
        if other is None:
            return own
        line = locate(self.file.text, self.file.prefix + self.places[other])
        return f"{own}: line {line} makes it{'' if name in made else f'; or line {line} again'}"

    def line(self, path: Path, table: Mapping[str, Any], known: Mapping[str, Value]) -> Line:
        """One line: a move or an operation."""
        known_ops = (*DOES, *LAYOUTS) if self.axes else (*DOES,)
        op = self.file.choose((*path, "op"), self.text((*path, "op"), table, "what it does"), known_ops)
        if "source" not in table:
            raise self.file.missing(path, "source", "source = ...: the value, or values, it reads")
        texts = table["source"] if isinstance(table["source"], list) else [table["source"]]
        reads = tuple(self.there((*path, "source"), text, known) for text in texts)
        into = self.text((*path, "into"), table, "the name of what it makes")
        of_other = ("axes", "along") if op in DOES else ("by", "over", "names", "backward")
        for key in of_other:
            if key in table:
                raise self.file.wrong((*path, key), shown(table[key]), f"no {key}, for {op}")
        if op in LAYOUTS:
            return self.move(path, table, op, reads, into)
        return self.operation(path, table, DOES[op], reads, into)

    def move(
        self, path: Path, table: Mapping[str, Any], op: str, reads: tuple[Value, ...], into: str
    ) -> Move:
        """A value, brought to lie otherwise along one axis."""
        axes = self.file.typed((*path, "axes"), table.get("axes", []), list)
        names = [axis.name for axis in self.axes]
        for axis in axes:
            self.file.choose((*path, "axes"), axis, names)
        if len(axes) != 1 or not 1 <= len(reads) <= 1 + (op == MERGE):
            raise self.file.missing(path, "axes", f'{op} of one value over one axis, axes = ["tensor"]')
        value, at = reads[0], (*path, "along")
        given = table.get("along", [])
        cut = [self.file.typed(at, i, str) for i in (given if isinstance(given, list) else [given])]
        layouts = LAYOUTS[op]
        count = layouts.count(Layout.SHARDED)
        if len(cut) != count:
            expected = ("no along", "one index", "two indices, from and to")[count]
            raise self.file.wrong(at, shown(given), f"{expected}, for {op}")
        for index in cut:
            self.file.choose(at, index, value.indices)
        lies = iter(map(along, cut))
        before, after = (next(lies) if each is Layout.SHARDED else UNCUT[each] for each in layouts)
        named = NAME.fullmatch(into)
        name = named[1] if named else into
        root = self.root(value)
        makes = replace(value, name=name, role=Role.ACTIVATION, form_of=root.name)
        there = self.forward.get(name)
        if there and self.root(there) == root:  # made again
            makes = there
        else:
            self.roots[makes] = root
        over = axes[0] if op in COLLECTIVE.values() or cut else turns_of(axes[0])
        by = reads[-1] if op == MERGE else None
        return Move(over, value, makes, before, after, op not in COLLECTIVE.values(), by)

    def operation(
        self, path: Path, table: Mapping[str, Any], does: Does, reads: tuple[Value, ...], into: str
    ) -> Operation:
        """An operation of the model, or of its derivative."""
        makes = self.value((*path, "into"), into, Role.ACTIVATION)
        backward = self.file.typed((*path, "backward"), table.get("backward", False), bool)
        derived = does in (Does.APPLY, Does.NORMALISE)
        if backward and (path[1] == "forward" or not (derived or does is Does.RENAME)):
            expected = f"no backward, for {does.value} in {path[1]}"
            raise self.file.wrong((*path, "backward"), "true", expected)
        derived = derived and backward
        count = OPERANDS[does] + derived
        if len(reads) != count and (len(reads) != count + 1 or table.get("by") != "softmax"):
            expected = f"{count} value{'s' * (count > 1)}, for {does.value}{' backward' * backward}"
            raise self.file.wrong((*path, "source"), shown([v.name for v in reads]), expected)
        for key, ops in USED_BY.items():
            if key in table and does not in ops:
                raise self.file.wrong((*path, key), shown(table[key]), f"no {key}, for {does.value}")
        function = over = ""
        if does in (Does.APPLY, Does.NORMALISE):
            function = self.text((*path, "by"), table, "the function's name")
            if not function.isidentifier():
                raise self.file.wrong((*path, "by"), shown(function), "a function's name, such as gelu")
        if does is Does.NORMALISE:
            over = self.text((*path, "over"), table, "the index of which it needs all")
            self.file.choose((*path, "over"), over, reads[0].indices)
        renamed = self.renamed(path, table) if does is Does.RENAME else ()
        found = Operation(does, reads, makes, function, over, renamed, backward)
        wrong = misfit(found)
        if wrong:
            raise self.file.wrong((*path, "into"), str(makes), wrong)
        return found

    def renamed(self, path: Path, table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """Pairs of indices, from and to."""
        at = (*path, "names")
        found = []
        for text in self.file.typed(at, table.get("names", []), list):
            pair = self.file.typed(at, text, str).split(" -> ")
            if len(pair) != 2:
                raise self.file.wrong(at, shown(text), 'an index and its new name, such as "s -> u"')
            found.append((pair[0], pair[1]))
        if not found:
            raise self.file.missing(path, "names", 'names = ["s -> u"]: the indices it renames')
        return tuple(found)


def require_own_weights(file: File, parts: Iterable[Part]) -> None:
    """Raise BadInput for a weight of a layer that another part has: of which layer is not said."""
    known: dict[str, str] = {}
    for part in parts:
        for weight in part.weights:
            other = known.setdefault(weight.name, part.name)
            if other != part.name and (is_layer(part.name) or is_layer(other)):
                expected = f"a name of its own: {other} has {weight.name}"
                raise file.wrong((part.name, "weights"), shown(weight.name), expected)


def _named(name: str, indices: tuple[str, ...], role: Role, width: int) -> Value:
    """A value; those whose names end in a number are forms of one."""
    of = NUMBER.sub("", name)
    return Value(name, indices, role, width, "" if of == name else of)
