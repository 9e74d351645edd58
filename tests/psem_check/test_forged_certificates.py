"""Steps with something changed: what is concluded of those that are accepted holds in a model.

Their proofs are searched again: what is accepted is not only what proofs of something else show.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from psem_check.check import _read, graph_of
from psem_check.terms import Rejected, named
from psem_check.tree import RULES, Part, Theorem
from psem_model.certify.questions import question
from psem_model.certify.search import search
from tests.support.certificates import all_rules, changed, made
from tests.support.examples import part
from tests.support.models import OPERATORS, Model, TooFar

WORDS = [*OPERATORS, *RULES, "apply", "constant"]
FIXED = ("name", "statement", "id", "proof")
found_once = cache(search)


def places_of(given, path=()):
    """Where something stands in terms and steps."""
    inside = given.items() if isinstance(given, dict) else enumerate(given)
    for key, each in inside:
        if key not in FIXED:
            yield *path, key
            if isinstance(each, dict | list):
                yield from places_of(each, (*path, key))


def forge(document, choose, paths):
    """Change one to three places."""
    for path in choose.sample(paths, choose.choice([1, 1, 2, 3])):
        here = document
        try:
            for key in path[:-1]:
                here = here[key]
            here[path[-1]] = another(here[path[-1]], choose, len(document["terms"]))
        except (LookupError, TypeError):  # it is not there any more
            continue


def another(given, choose, terms):
    if isinstance(given, str):
        return choose.choice(WORDS)
    if isinstance(given, bool):
        return not given
    if isinstance(given, int):
        return choose.choice([given + 1, given - 1, choose.randrange(terms), choose.randrange(12)])
    if not isinstance(given, list) or not given:
        return [choose.randrange(terms)]
    several = [*given]
    which = choose.randrange(len(several))
    way = choose.randrange(4)
    if way == 0:
        choose.shuffle(several)
    elif way == 1:
        del several[which]
    else:
        several[which : which + (way == 3)] = [choose.choice(given)]
    return several


@dataclass
class Stepped(Part):
    """A part whose proofs are searched, and whose steps that are rejected say nothing."""

    went: Counter = field(default_factory=Counter)
    taken: list = field(default_factory=list)  # steps

    def impossible(self, facts, proof):
        if "missing" in found_once(question(self.terms, facts)):
            raise Rejected("no proof is found")

    def go(self, graph, step):
        before = len(self.theorems)
        try:
            with named("a step"):
                self.take(**{key: _read(graph, key, value) for key, value in step.items()})
            self.went["accepted"] += 1
            self.taken.append(step)
        except Rejected:
            self.went["rejected"] += 1
            count = 2 if step.get("name") in ("total", "even") else 1
            self.theorems[before:] = [Theorem("nothing", "prove", (), self.terms.true)] * count


def fails(document):
    """A theorem that does not hold where all hypotheses do; in how many models these did; the part."""
    graph, models = graph_of(document), 0
    (given,) = document["claims"][0]["parts"]
    part = Stepped(graph, frozenset(given["variables"]), frozenset(given["symbols"]))
    for step in given["steps"]:
        part.go(graph, step)
    for seed in range(12):
        model = Model(part, graph, part.taken, seed)
        try:
            if any(
                t.rule in ("suppose", "axiom") and model.fails(t) is not None for t in part.theorems
            ):
                continue
            models += 1
            for theorem in part.theorems:
                if theorem.rule != "refute" and (at := model.fails(theorem)) is not None:
                    return (theorem, at), models, part
        except (TooFar, RecursionError):
            continue
    return None, models, part


def test_what_is_accepted_of_forged_steps_holds():
    document = made(all_rules)
    wrong, models, _ = fails(document)
    assert wrong is None
    assert models > 2
    steps = document["claims"][0]["parts"][0]["steps"]
    paths = [("claims", 0, "parts", 0, "steps", *path) for path in places_of(steps) if len(path) > 1]
    choose, came = random.Random(1), Counter()
    for _ in range(part(1000)):
        forged = changed(document)
        forge(forged, choose, paths)
        wrong, _, stepped = fails(forged)
        assert wrong is None
        came += stepped.went
    assert came["rejected"] > part(500)
    assert came["accepted"] > part(4000)
