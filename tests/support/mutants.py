"""Steps of proofs with something changed: what the checker still accepts must be valid all the same.

`python -m tests.support.mutants 200000` changes so many steps of a certificate that `make certify` has
made, drawn among all its proofs.
"""

import json
import random
import sys
from collections import Counter

from psem_check.proofs import LAWS, Steps
from psem_check.reader import read
from psem_check.terms import BOOL, NUMBERS, Rejected
from psem_model.certify.certificate import kept, questions
from psem_model.certify.questions import asked, key_of
from psem_model.text.places import BUILD
from tests.support.certificates import Solver

ALIKE = [
    ("<", "<=", ">", ">=", "="),
    ("and", "or", "=>", "="),
    ("+", "*", "-"),
    ("div", "mod"),
]


class Mutants:
    """The steps of one proof, and changed ones."""

    def __init__(self, text, proof, choose):
        self.choose = choose
        graph, self.facts = asked(text)
        graph.read([], [], proof["terms"])
        self.steps = Steps(graph, self.facts)
        self.terms = graph.terms
        self.known = []  # (rule, premises, conclusion, more)
        for rule, *given in proof["steps"]:
            self.steps.take(rule, *given)
            premises, more = [], given
            if rule == "follows":
                premises, more = [self.steps.conclusions[p] for p in given[1]], []
            elif rule == "products":
                summands = [[graph.term(multiplier), by] for multiplier, by in given[1]]
                premises, more = [graph.term(number) for number in given[0]], summands
            self.known.append((rule, premises, self.steps.conclusions[-1], more))
        self.solver = Solver(self.terms)

    def other(self, term):
        """Another term of the same sort."""
        sort = self.terms.sorts[term]
        few = [self.choose.randrange(len(self.terms.heads)) for _ in range(20)]
        return next((t for t in few if self.terms.sorts[t] == sort and t != term), term)

    def changed(self, term):
        """The term with one change, somewhere in it."""
        terms = self.terms
        arguments = list(terms.arguments[term])
        if arguments and self.choose.random() < 0.7:
            which = self.choose.randrange(len(arguments))
            arguments[which] = self.changed(arguments[which])
            return terms.make(terms.heads[term], *arguments)
        return self.choose.choice([self.other, self.with_another_head, self.rearranged])(term)

    def with_another_head(self, term):
        head, arguments = self.terms.heads[term], self.terms.arguments[term]
        if isinstance(head, tuple) and head[0] in NUMBERS:
            return self.terms.make((head[0], head[1] + self.choose.choice([-1, 1])))
        heads = [other for group in ALIKE if head in group for other in group]
        if heads:
            return self.terms.make(self.choose.choice(heads), *arguments)
        return self.terms.negation(term) if self.terms.sorts[term] == BOOL else self.other(term)

    def rearranged(self, term):
        arguments = list(self.terms.arguments[term])
        if not arguments:
            return self.other(term)
        if len(arguments) > 2 and self.choose.random() < 0.5:
            del arguments[self.choose.randrange(len(arguments))]
        self.choose.shuffle(arguments)
        return self.terms.make(self.terms.heads[term], *arguments)

    def perturbed(self, given):
        """Lists of numbers with one of them changed."""
        if isinstance(given, str):
            return self.choose.choice([*LAWS])
        if isinstance(given, list) and given:
            which = self.choose.randrange(len(given))
            return [*given[:which], self.perturbed(given[which]), *given[which + 1 :]]
        if isinstance(given, bool):
            return not given
        return given + self.choose.choice([-1, 1]) if isinstance(given, int) else given

    def with_another_summand(self, summands):
        which = self.choose.randrange(len(summands))
        multiplier, by = summands[which]
        other = [self.changed(multiplier), by] if self.choose.random() < 0.5 else None
        return [*summands[:which], other or [multiplier, self.perturbed(by)], *summands[which + 1 :]]

    def mutant(self, step, rules):
        rule, premises, conclusion, more = step
        said = "conclusion" if rule == "follows" else "premise" if premises else "more"
        kind = self.choose.choice([said, said, "premise", "rule", "more"])
        if kind == "premise" and premises:
            which = self.choose.randrange(len(premises))
            same = self.other(premises[which])
            new = self.changed(premises[which]) if self.choose.random() < 0.5 else same
            return rule, [*premises[:which], new, *premises[which + 1 :]], conclusion, more
        if kind == "more" and more:
            other = self.with_another_summand if rule == "products" else self.perturbed
            return rule, premises, conclusion, other(more)
        if kind == "rule":
            return self.choose.choice(rules), premises, conclusion, more
        return rule, premises, self.changed(conclusion), more

    def taken(self, rule, premises, conclusion, more):
        """What a step concludes. Raises Rejected."""
        graph = self.steps.graph
        steps = Steps(graph, premises)
        steps.forms = self.steps.forms
        given = more
        if rule == "follows":
            given = [self.number(conclusion), list(range(len(premises))), *more]
        elif rule == "products":
            given = [
                [self.number(premise) for premise in premises],
                [[self.number(multiplier), by] for multiplier, by in more],
            ]
        steps.take(rule, *given)
        return steps.conclusions[-1]

    def number(self, term):
        """By which a step refers to a term."""
        self.steps.graph.numbers.append(term)
        return len(self.steps.graph.numbers) - 1

    def tried(self, step, rules):
        """What came of a mutant: rejected, valid, INVALID or unknown."""
        try:
            rule, premises, conclusion, more = self.mutant(step, rules)
            if self.terms.sorts[conclusion] != BOOL or (rule, premises, conclusion, more) == step:
                return "same"
            conclusion = self.taken(rule, premises, conclusion, more)
        except (Rejected, ValueError, TypeError, LookupError):
            return "rejected"
        valid = self.solver.follows(premises if rule == "follows" else [], conclusion)
        return {True: "valid", False: f"INVALID {rule}", None: "unknown"}[valid]


def tried(proofs, count, seed):
    """What came of so many mutants, as many of each rule; `proofs`: questions and their proofs."""
    choose = random.Random(seed)
    made = [Mutants(text, proof, choose) for text, proof in proofs]
    by_rule = {}
    for each in made:
        for step in each.known:
            by_rule.setdefault(step[0], []).append((each, step))
    rules = sorted(by_rule)
    found = Counter()
    for _ in range(count):
        each, step = choose.choice(by_rule[choose.choice(rules)])
        found[each.tried(step, rules)] += 1
    return found, rules


DRAWN, EACH = 120, 2500  # proofs at a time, and changes of their steps


def of_certificate(count):
    """What came of so many mutants of a certificate's proofs, those that change nothing left out."""
    asked_for = questions(read(BUILD / "certificate.json.xz"))[1]
    paths = {text: kept() / f"{key_of(text)}.json" for _, text in asked_for}
    choose, total = random.Random(0), Counter()
    while total.total() - total["same"] < count:
        few = [(text, json.loads(paths[text].read_text())) for text in choose.sample([*paths], DRAWN)]
        total += tried(few, EACH, choose.random())[0]
        print(dict(total), flush=True)
    return total


if __name__ == "__main__":
    made = of_certificate(int(sys.argv[1]))
    sys.exit(any(what.startswith("INVALID") for what in made))
