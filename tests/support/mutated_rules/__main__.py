"""`python -m tests.support.mutated_rules [TEXT]`: change each rule of spec/ in one place; what notices?

TEXT: only changes of which file, rule or code have it; what noticed them is printed. `--unnoticed`:
only those that no claim noticed, or that the log lacks; of the others the log's results are kept.

Kept in build/mutants.json: after Ctrl-C, or if sources are the same, nothing is tried
again. Unless TEXT selects, they become the log, log.json, and docs/MUTANTS.md, also after Ctrl-C.
"""

import sys
import tempfile
from pathlib import Path

from proofs.registry import ROOT
from psem_model.audit.remembered import key
from psem_model.text.progress import ticker
from tests.support.mutated_rules.feeds import feeds, keep, kept, users
from tests.support.mutated_rules.page import LOG, PAGE, key_of, logged, page, read_log
from tests.support.mutated_rules.places import parts, places
from tests.support.mutated_rules.run import (
    CLAIM,
    Result,
    Results,
    by_claims,
    by_tests,
    copy,
    tests_of,
    tried,
)

BUILD = ROOT / "build"


def known_feeds():
    """What each claim uses, of the sources as they are."""
    path = BUILD / "feeds.json"
    fed = kept(path, key())
    if fed is None:
        fed = feeds()
        keep(path, key(), fed)
    return fed


def try_all(selected, results):
    """Try changes that have no result yet: claims first, then tests for what no claim notices."""
    left = [place for place in selected if results.pending(place)]
    if not left:
        return
    fed, values = known_feeds(), parts()
    with tempfile.TemporaryDirectory() as folder:
        here = copy(Path(folder))
        for place in told("claims", [p for p in left if p.key not in results.known]):
            ids = users(place, fed, values)
            results.add(place, tried(place, here, lambda ids=ids: by_claims(here, ids)))
        for place in told("tests", [p for p in left if results.pending(p)]):
            files, crash = tests_of(place.room), results.known[place.key].who
            work = lambda files=files, crash=crash: by_tests(here, files, crash)  # noqa: E731
            results.add(place, tried(place, here, work))


def told(label, places):
    """Places one by one, with a bar."""
    with ticker(label, len(places)) as tell:
        for done, place in enumerate(places, 1):
            yield place
            tell(done)


def main(text=""):
    """Try what TEXT selects; raises KeyboardInterrupt once the page has what was tried until then."""
    results, every = Results(BUILD / "mutants.json", key()), places()
    if text == "--unnoticed":
        text, log = "", read_log()
    else:
        log = []
    noticed = {key_of(entry): Result(entry.by, entry.who) for entry in log if entry.by == CLAIM}
    selected = [place for place in every if text in place.key and place.key not in noticed]
    try:
        try_all(selected, results)
    finally:
        if not text:
            LOG.write_text(logged(every, results.known | noticed), encoding="utf-8")
            PAGE.write_text(page(), encoding="utf-8")
    for place in selected if text else ():
        print(place.key, *vars(results.known[place.key]).values(), sep=" | ")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("mutants: interrupted; what is done is kept")
