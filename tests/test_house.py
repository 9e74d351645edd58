"""The house: which package and which room may import which, and how large a module may grow."""

import ast
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.registry import ROOT
from proofs.specification import READING

ALLOWED = {
    "spec": {"spec"},
    "proofs": {"spec", "proofs", "z3"},
    "psem_model": {
        *("spec", "proofs", "psem_check", "psem_model"),
        *("z3", "sympy", "numpy", "click", "jinja2", "markupsafe"),
    },
    "psem_check": {"psem_check"},
    "conformance": {"spec", "psem_model", "conformance"},
}
OURS_OR_HEAVY = {*ALLOWED, "z3", "sympy", "numpy", "click", "torch", "tests"}
RECORDERS = sorted((ROOT / "conformance" / "record").glob("*.py"))  # of PyTorch
FILES = [path for package in ALLOWED for path in sorted((ROOT / package).rglob("*.py"))]
FILES = [path for path in FILES if path not in RECORDERS]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SIMULATOR = sorted((ROOT / "psem_model" / "simulator").glob("*.py"))
CHECKER = sorted((ROOT / "psem_check").glob("*.py"))
LOW = ["text", "reading", "check", "predict", "space"]
ROOMS = [*LOW, "measure", "published", "tables", "audit", "certify", "pages", "commands", "notebooks"]


def name_of(path):
    """A module's name, as it is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


PLAIN = re.compile(r"spec\.\w+\.\w+$|spec\.assumptions$")
NAMES = {name_of(path) for path in FILES}
MODEL = {name for name in NAMES if name.startswith("psem_model.")}


@cache
def modules(path):
    """The modules that a file imports, also inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= below & NAMES or {node.module}
    return found


def public(path):
    """The names that a module defines for others."""
    for node in ast.parse(path.read_text()).body:
        named = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        parts = (part for target in targets if target for part in ast.walk(target))
        named += [part.id for part in parts if isinstance(part, ast.Name)]
        yield from (name for name in named if not name.startswith("_"))


# words of which several public names of spec/ are forms: a type and its values, a class and the
# function that makes one, a name and the table by it, or what its room tells apart
FORMS = """
    assumption axisorder closedform collective cost costform device divergence divisible embedding
    everywhere exact exponential factor frozen head indice layer layerkind levelmove lie microstep
    model number offset opaque operator owner padding parameter part phase piece pipeline
    regime relative resting result sample slice taker timeline total transfer type unit unknown
    value
"""


def word(name):
    """A name without what tells a class from a constant, or one from several."""
    return name.lower().replace("_", "").removesuffix("s")


def test_a_public_name_of_the_specification_has_one_meaning():
    names = [
        name for path in FILES if path.relative_to(ROOT).parts[0] == "spec" for name in {*public(path)}
    ]
    assert not {name for name, times in Counter(names).items() if times > 1}
    words = Counter(map(word, names))
    assert {each for each, times in words.items() if times > 1} == {*FORMS.split()}


def members(path):
    """The names that the classes of a module give their members."""
    for node in ast.parse(path.read_text()).body:
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            named = getattr(each, "name", None) or getattr(getattr(each, "target", None), "id", "_")
            yield from [] if named.startswith("_") else [named]


# names of functions of spec/ that members of classes have, all of one meaning: the rule that a domain
# follows, of a pipeline what of its timeline, what is made of it, or that it is
ALIKE = """
    add bubble contract elements in_flight is_in_turns is_sent layer loops makespan messages owners
    padding parts resting scale sliced taker takes_room zero
"""


def test_a_function_and_a_member_of_a_class_that_are_named_alike_have_one_meaning():
    spec = [path for path in FILES if path.relative_to(ROOT).parts[0] == "spec"]
    functions = {
        node.name
        for path in spec
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert functions & {name for path in spec for name in members(path)} == {*ALIKE.split()}


def height(module):
    """The room of a module of psem_model, from below."""
    room = module.split(".")[1]
    return len(ROOMS) if room == "__main__" else -1 if room == "simulator" else ROOMS.index(room)


def test_imports_point_one_way():
    for path in FILES:
        allowed = ALLOWED[path.relative_to(ROOT).parts[0]]
        names = {module.split(".")[0] for module in modules(path)}
        assert names & OURS_OR_HEAVY <= allowed, path


@given(st.none())
def test_a_property_is_tried_after_every_module_is_imported(nothing):
    """Hypothesis draws constants of modules that are: of all, so that other tests change nothing."""
    assert {name for name in NAMES if not name.endswith("__main__")} <= {*sys.modules}


@pytest.mark.parametrize("path", RECORDERS, ids=lambda p: p.stem)
def test_recorders_know_the_cases_and_where_logs_go_and_no_rule(path):
    ours = {m for m in modules(path) if m.split(".")[0] in OURS_OR_HEAVY - {"torch"}}
    others = {m for m in ours if not m.startswith("conformance.record.")}
    assert others <= {f"conformance.{name}" for name in ("case", "cases", "counts", "logs", "shapes")}


@pytest.mark.parametrize("path", CHECKER, ids=lambda p: p.stem)
def test_the_checker_of_certificates_needs_the_standard_library_only(path):
    names = {module.split(".")[0] for module in modules(path)}
    assert names <= {"psem_check", *sys.stdlib_module_names}
    assert not names & {"importlib", "subprocess", "ctypes"}


def test_packages_that_are_imported_are_those_that_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["plot"], *extras["audit"]]
    imported = {module.split(".")[0] for path in FILES for module in modules(path)}
    others = imported - sys.stdlib_module_names - ALLOWED.keys()
    assert others == {re.match(r"\w+", each)[0] for each in declared}


@cache
def imports():
    """Which of our modules imports which."""
    return {(name_of(path), module) for path in FILES for module in modules(path) if module in NAMES}


def test_rooms_import_lower_rooms_only():
    ours = {(name, m) for name, m in imports() if name in MODEL and m in MODEL}
    assert not {(name, m) for name, m in ours if height(name) < height(m)}


def test_rooms_of_the_specification_use_only_those_before_them_and_files_likewise():
    order = [f"spec.{room}.{name}" for room, names in READING.items() for name in names]
    assert sorted([*order, "spec.assumptions"]) == sorted(n for n in NAMES if PLAIN.match(n))
    place = {name: i for i, name in enumerate(order)}
    used = {(name, m) for name, m in imports() if name in place and m in place}
    assert not {(name, m) for name, m in used if place[name] <= place[m]}


def test_rooms_of_the_proofs_are_those_of_the_specification():
    rooms = {
        name.split(".")[1] for name in NAMES if name.startswith("proofs.") and name.count(".") == 2
    }
    assert rooms - {"trusted", "tools"} <= READING.keys()


def test_tests_mirror_the_packages_and_their_rooms():
    rooms = {
        package: {each.parent.name for each in (ROOT / package).glob("*/*.py")} for package in ALLOWED
    }
    folders = {
        path.parent.relative_to(ROOT / "tests").parts for path in TESTS if "support" not in path.parts
    }
    assert {folder[0] for folder in folders if folder} <= {*rooms, *rooms["psem_model"]}
    within = {folder for folder in folders if len(folder) > 1}
    assert all(room in rooms[package] for package, room in within)


def test_modules_import_each_other_in_no_circle():
    graph = {name: set() for name in NAMES}
    for name, module in imports():
        graph[name].add(module)
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("path", SIMULATOR, ids=lambda p: p.stem)
def test_the_simulator_knows_the_languages_of_schedules_and_programs_and_no_rule(path):
    ours = {m for m in modules(path) if m.split(".")[0] in OURS_OR_HEAVY - {"numpy"}}
    language = {
        "spec.language.schedule",
        "spec.language.programs",
        "spec.language.moves",
        "spec.devices.layouts",
    }
    language |= {
        f"spec.models.{name}" for name in ("states", "training", "values", "transformer", "custom")
    }
    language |= {"spec.meaning.match", "spec.pipelines.pipeline"}
    assert {m for m in ours if not m.startswith("psem_model.simulator")} <= language


def test_the_language_of_schedules_and_of_match_imports_no_rule_of_what_is_held_or_moved():
    for name in ("language/schedule", "models/states", "models/training", "meaning/match"):
        ours = {m for m in modules(ROOT / "spec" / f"{name}.py") if m.startswith("spec.")}
        assert ours <= {"spec.numbers.arithmetic", "spec.models.states", "spec.models.training"}


def test_modules_stay_small():
    assert not [path for path in (*FILES, *TESTS) if len(path.read_text().splitlines()) > 450]


def test_what_tests_share_is_in_support_and_no_test_imports_another():
    for path in TESTS:
        ours = [m for m in modules(path) if m.split(".")[0] == "tests"]
        assert all(m.startswith("tests.support") for m in ours), path


def test_kernel_guards_are_raised_not_asserted():
    for name in ("kernel", "smtlib"):
        tree = ast.parse((ROOT / "proofs" / "trusted" / f"{name}.py").read_text())
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
