"""Is every function that proves a claim registered? Asked of the text of `proofs/`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from proofs import registry

Name: TypeAlias = tuple[str, str]  # a module, and what stands there
Names: TypeAlias = dict[Name, set[Name]]
OF_A_CLAIM = re.compile(r"\(Claim \w+")


def registration() -> list[str]:
    """Functions that prove a claim and are registered under none, or under several."""
    registered = [claim.theorem for claim in registry.claims()]
    found = {".".join(name) for name in _claim_functions({_split(name) for name in registered})}
    return [
        *(f"{name} is registered under no claim" for name in sorted(found - {*registered})),
        *(f"{name} is no function that proves a claim" for name in sorted({*registered} - found)),
        *(
            f"{name} is registered under several claims"
            for name in sorted({n for n in registered if registered.count(n) > 1})
        ),
    ]


def sources() -> dict[str, str]:
    """The modules that prove claims, as text."""
    paths = sorted((registry.ROOT / "proofs").glob("*.py"))
    return {f"proofs.{path.stem}": path.read_text(encoding="utf-8") for path in paths}


def _split(name: str) -> Name:
    module, _, function = name.rpartition(".")
    return module, function


def _claim_functions(registered: set[Name]) -> Iterator[Name]:
    """A docstring names a claim; or it looks like one, and is no part of a claim that is registered."""
    trees = {module: ast.parse(text) for module, text in sources().items()}
    parts = _reached(registered, _uses(trees)) - registered
    for module, tree in trees.items():
        for made in tree.body:
            if isinstance(made, ast.FunctionDef):
                name = module, made.name
                says_so = OF_A_CLAIM.search(ast.get_docstring(made) or "") is not None
                if says_so or (name not in parts and _is_like_one(made)):
                    yield name


def _is_like_one(made: ast.FunctionDef) -> bool:
    """It is public, takes a kernel and nothing else, and returns theorems, as far as it says."""
    taken = [*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs]
    if made.name.startswith("_") or len(taken) != 1:
        return False
    of, returned = taken[0].annotation, made.returns
    takes_a_kernel = of is None or re.search(r"\bKernel\b", ast.unparse(of)) is not None
    return takes_a_kernel and (returned is None or "Theorem" in ast.unparse(returned))


def _reached(names: Iterable[Name], uses: Names) -> set[Name]:
    """These names, what they use, and what that uses."""
    found, pending = set[Name](), list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += uses.get(name, ())
    return found


def _uses(trees: dict[str, ast.Module]) -> Names:
    """By function, class or constant of a module, which others it mentions."""
    found: Names = {}
    for module, tree in trees.items():
        known = _known(module, tree)
        for made in tree.body:
            for name in _made_by(made):
                found.setdefault((module, name), set()).update(_mentioned(made, known, name))
    return found


def _made_by(made: ast.stmt) -> list[str]:
    if isinstance(made, (ast.FunctionDef, ast.ClassDef)):
        return [made.name]
    targets = made.targets if isinstance(made, ast.Assign) else [getattr(made, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _known(module: str, tree: ast.Module) -> dict[str, Name]:
    """What names mean in a module: what it makes or imports. A module is (module, nothing)."""
    known = {name: (module, name) for made in tree.body for name in _made_by(made)}
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.module == "proofs":
            known |= {(a.asname or a.name): (f"proofs.{a.name}", "") for a in each.names}
        elif isinstance(each, ast.ImportFrom) and each.module:
            known |= {(a.asname or a.name): (each.module, a.name) for a in each.names}
    return known


def _mentioned(made: ast.stmt, known: dict[str, Name], own: str) -> Iterator[Name]:
    """The known names in a statement, but for those that are its own variables."""
    inside = list(ast.walk(made))
    variables = {each.arg for each in inside if isinstance(each, ast.arg)}
    variables |= {e.id for e in inside if isinstance(e, ast.Name) and isinstance(e.ctx, ast.Store)}
    for each in inside:
        if isinstance(each, ast.Name) and each.id in known and each.id not in variables - {own}:
            yield known[each.id]
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            module, rest = known.get(each.value.id, ("", ""))
            if module and not rest:
                yield module, each.attr
