"""Places of spec/ where one change is made: of every rule one, chosen by a hash of the rule."""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from proofs.registry import ROOT
from proofs.specification import READING
from tests.support.mutated_rules.operators import changes

SHORTEST = 12  # characters of what is shown of a place, if the line has more
SHOWN = (
    "__str__",
    "__repr__",
    "words",
    "_hash",
    "_factor",
    "_and",
    "_in_brackets",
    "_multiple",
)  # to readers
SKIPPED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
FILES = [ROOT / "spec" / room / f"{name}.py" for room, names in READING.items() for name in names]


@dataclass(frozen=True)
class Place:
    """One change of one line. `rule` is a function, a method or a name that a module defines."""

    file: str  # as in checking/algebra.py
    rule: str
    before: str  # an expression or a statement, with as much around it as one recognises
    after: str
    nth: int = 1  # of those in the rule that read the same
    line: int = 0
    start: int = 0  # characters of the line, from the first that is changed
    end: int = 0
    new: str = ""  # what stands there instead
    lines: tuple[int, int] = (0, 0)  # of the statement that is changed
    value: bool = False  # the rule is no function
    likely: bool = True  # to be another program, and not one that breaks down

    @property
    def key(self):
        """What a place is told by when lines move."""
        return " | ".join((self.file, self.rule, self.before, self.after, str(self.nth)))

    @property
    def names(self):
        """What the rule defines, if it is no function: several, if they are given values together."""
        return re.findall(r"\w+", self.rule) if self.value else []

    @property
    def room(self):
        return self.file.partition("/")[0]

    def changed(self, text):
        """The text of the file with the change."""
        lines = text.splitlines(keepends=True)
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: self.start] + self.new + old[self.end :]
        return "".join(lines)


def enumerations():
    """By the name of each enumeration of the specification, its members in order."""
    found = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "Enum" in {ast.unparse(base) for base in node.bases}:
                targets = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                found[node.name] = [name for name in names if not name.startswith("_")]
    return found


def rules(tree):
    """Functions, methods, and what else a module defines: (name, node)."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            yield from ((f"{node.name}.{method.name}", method) for method in methods)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(node.value).partition("[")[0] not in ("Callable", "Mapping", "TypeAlias"):
                yield ast.unparse(target), node


def within(node, above=(), statement=None) -> Iterator[tuple]:
    """The nodes below a rule that may be changed, each with those above it and its statement."""
    if isinstance(node, SKIPPED) or is_text(node) or is_guard(node):
        return
    statement = node if isinstance(node, ast.stmt) else statement
    yield node, above, statement
    kept = {name: value for name, value in ast.iter_fields(node) if name not in not_changed(node)}
    for value in kept.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                if isinstance(node, ast.If | ast.IfExp | ast.While) and child is node.test:
                    vars(child)["decides"] = True
                yield from within(child, (node, *above), statement)


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_guard(node):
    """Whether it only refuses what is never given: zip(..., strict=True)."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def not_changed(node):
    """Fields of a node that no change is made in: annotations, decorators, names that get values."""
    fields = {"annotation", "returns", "decorator_list", "targets", "target", "bases"}
    return fields | ({"slice"} if is_annotation(node) else set())


def is_annotation(node):
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("tuple", "dict", "cast")


def candidates(path, enums):
    """Every change of a file, rule by rule: lists of places."""
    text = path.read_text()
    lines = text.splitlines()
    file = path.relative_to(ROOT / "spec").as_posix()
    for rule, node in rules(ast.parse(text)):
        if rule.rpartition(".")[2] in SHOWN:
            continue
        seen, found, value = {}, [], not isinstance(node, ast.FunctionDef)
        for part, above, statement in within(node):
            if getattr(part, "lineno", 0) != getattr(part, "end_lineno", -1):
                continue
            for new in changes(part, enums):
                place = put(part, new, above, lines, Place(file, rule, "", "", value=value))
                if place:
                    last = statement.end_lineno
                    if getattr(statement, "body", None):
                        last = max(statement.lineno, statement.body[0].lineno - 1)
                    place = replace(
                        place, lines=(statement.lineno, last), likely=likely(part, new, above)
                    )
                    same = (place.before, place.after)
                    seen[same] = seen.get(same, 0) + 1
                    found.append(replace(place, nth=seen[same]))
        yield found


def put(node, new, above, lines, place):
    """A place with what is changed there; none if nothing is."""
    line = lines[node.lineno - 1]
    start, end = (len(line.encode()[:n].decode()) for n in (node.col_offset, node.end_col_offset))
    text = ast.unparse(ast.fix_missing_locations(new))
    if isinstance(new, ast.expr) and not isinstance(new, ast.Constant | ast.Name | ast.Call):
        text = text if isinstance(new, DISPLAY) or not needs_brackets(above) else f"({text})"
    around = node
    for outer in above:
        alone = isinstance(outer, ast.expr | ast.Return | ast.AugAssign | ast.Assign)
        if around.end_col_offset - around.col_offset >= SHORTEST or not alone:
            break
        if outer.lineno != outer.end_lineno:
            break
        around = outer
    first, last = (len(line.encode()[:n].decode()) for n in (around.col_offset, around.end_col_offset))
    before, after = line[first:last], line[first:start] + text + line[end:last]
    if before == after:
        return None
    return replace(place, before=before, after=after, line=node.lineno, start=start, end=end, new=text)


DISPLAY = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Attribute, ast.Subscript)


def needs_brackets(above):
    """Whether an expression stands within another that binds."""
    binds = (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Attribute, ast.Subscript)
    return bool(above) and isinstance(above[0], binds)


def valid(place, text):
    """Whether the changed file is Python, and another program than it was."""
    try:
        return ast.dump(ast.parse(place.changed(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


def likely(node, new, above):
    """Whether a change may well give another value, and neither the same nor none at all."""
    if isinstance(node, ast.Call):
        return not isinstance(new, ast.Call) or ast.dump(new.func) != ast.dump(node.func)
    if isinstance(node, ast.Constant):
        return not (above and isinstance(above[0], ast.Subscript | ast.Slice))
    if isinstance(node, ast.Compare):
        return "None" not in ast.unparse(node)
    if isinstance(node, ast.Tuple):
        return bool(above) and (isinstance(above[0], ast.Compare) or gives_one(above[0]))
    return "isinstance" not in ast.unparse(node)


def gives_one(node):
    """Whether a statement gives one name a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(targets[0], ast.Name)


def weight(place):
    """The order in which changes of a rule are chosen: likely ones first, then by hash."""
    read = " ".join((place.rule, place.before, place.after, str(place.nth)))
    return not place.likely, hashlib.sha256(read.encode()).hexdigest()


def chosen(path, enums):
    """Of every rule of a file the change that comes first."""
    text = path.read_text()
    for found in candidates(path, enums):
        yield from islice((p for p in sorted(found, key=weight) if valid(p, text)), 1)


def places():
    """All places, in reading order."""
    enums = enumerations()
    return [place for path in FILES for place in chosen(path, enums)]


def parts():
    """By a value's name, the names of values that it is part of, its own among them."""
    uses = {}
    for path in FILES:
        for name, node in rules(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                read = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
                uses |= dict.fromkeys(re.findall(r"\w+", name), read)
    found = {name: {name} for name in uses}
    for _ in uses:
        for name, read in uses.items():
            for part in read & found.keys():
                found[part] |= found[name]
    return found


def path_of(place, root=ROOT):
    """The file of a place, in the project or in a copy of it."""
    return Path(root) / "spec" / place.file
