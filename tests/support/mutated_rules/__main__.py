"""`python -m tests.support.mutated_rules [TEXT]`: try mutants, those whose place has the text, or all; write the page.

Results are kept in build/mutants.json: after Ctrl-C, or where all else is the same, what is done is not
done again. All of them, if none is selected, become tests/mutants/log.json and docs/MUTANTS.md.
"""

import sys
import tempfile
from pathlib import Path

from proofs.registry import ROOT
from psem_model.audit.remembered import key
from psem_model.text.progress import ticked
from tests.support.mutated_rules.feeds import feeds, keep, kept, users
from tests.support.mutated_rules.page import LOG, PAGE, logged, page
from tests.support.mutated_rules.places import parts, places
from tests.support.mutated_rules.run import PENDING, Results, by_claims, by_tests, copy, tests_of, tried

BUILD = ROOT / "build"


def main(text=""):
    fed = kept(BUILD / "feeds.json", key())
    if fed is None:
        fed = feeds()
        keep(BUILD / "feeds.json", key(), fed)
    results = Results(BUILD / "mutants.json", key())
    every, values = places(), parts()
    selected = [place for place in every if text in place.key]
    with tempfile.TemporaryDirectory() as folder:
        here = copy(Path(folder))
        for place in ticked("claims")([p for p in selected if p.key not in results.known]):
            ids = users(place, fed, values)
            results.add(place, tried(place, here, lambda ids=ids: by_claims(here, ids)))
        left = [p for p in selected if results.known[p.key].by == PENDING]
        for place in ticked("tests")(left):
            files, before = tests_of(place.room), results.known[place.key].who
            run = lambda f=files, b=before: by_tests(here, f, b)  # noqa: E731
            results.add(place, tried(place, here, run))
    for place in selected if text else ():
        result = results.known[place.key]
        print(place.key, result.by, result.who, sep=" | ")
    if not text:
        LOG.write_text(logged(every, results.known))
        PAGE.write_text(page())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("mutants: interrupted; what is done is kept")
