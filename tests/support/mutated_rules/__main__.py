"""`python -m tests.support.mutated_rules [TEXT]`: change each rule of spec/ in one place; what notices?

TEXT: only changes of which file, rule or code have it; what noticed them is printed. `--unnoticed`:
only those that no claim noticed, or that the log lacks; of the others the log's results are kept.
`--unexplained`: only those that the log lacks, or of which it says neither what noticed them nor why
nothing can; the latter meet tests alone. `--again`: as that, and those that the claim of the log does
not notice any more.

Kept in build/mutants.json: after Ctrl-C, or if sources are the same, nothing is tried
again. Unless TEXT selects, they become the log, log.json, and docs/MUTANTS.md, also after Ctrl-C.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from proofs.registry import ROOT
from psem_model.audit.sources import at_first
from psem_model.text.progress import ticker
from tests.support.mutated_rules.feeds import feeds, keep, kept, users
from tests.support.mutated_rules.page import (
    LOG,
    PAGE,
    UNTRIED,
    explained,
    key_of,
    logged,
    page,
    read_log,
)
from tests.support.mutated_rules.places import parts, places
from tests.support.mutated_rules.run import (
    CLAIM,
    NOTHING,
    PENDING,
    Result,
    Results,
    by_claims,
    by_tests_and_crosscheck,
    copy,
    tried,
)

BUILD = ROOT / "build"
AGAIN = ("--unnoticed", "--unexplained", "--again")


def known_feeds():
    """What each claim uses, of the sources as they are."""
    path = BUILD / "feeds.json"
    fed = kept(path, at_first())
    if fed is None:
        fed = feeds()
        keep(path, at_first(), fed)
    return fed


def try_all(selected, results):
    """Try changes that have no result yet: claims first, then tests for what no claim notices."""
    left = [place for place in selected if results.pending(place)]
    if not left:
        return
    new = [place for place in left if place.key not in results.known]
    fed, values = (known_feeds(), parts()) if new else ({}, {})
    with tempfile.TemporaryDirectory() as folder:
        here = copy(Path(folder))
        for place in told("claims", new):
            ids = users(place, fed, values)
            results.add(place, tried(place, here, lambda ids=ids: by_claims(here, ids)))
        for place in told("tests", [p for p in left if results.pending(p)]):
            work = partial(by_tests_and_crosscheck, here, place)
            results.add(place, tried(place, here, work))


def is_settled(entry, text):
    """Whether the log's result of a change is kept."""
    if text == "--unnoticed":
        return entry.by == CLAIM
    return entry.by not in (UNTRIED, PENDING) and (entry.by != NOTHING or entry.change in explained())


def forgotten(every, settled):
    """Changes that the claim which noticed them, by the log, notices no more."""
    noticed = [p for p in every if getattr(settled.get(p.key), "by", "") == CLAIM]
    with tempfile.TemporaryDirectory() as folder:
        here = copy(Path(folder))
        for place in told("again", noticed):
            who = settled[place.key].who
            if "." not in who and tried(place, here, lambda who=who: by_claims(here, [who])).who != who:
                yield place.key


def told(label, places):
    """Places one by one, with a bar."""
    with ticker(label, len(places)) as tell:
        for done, place in enumerate(places, 1):
            yield place
            tell(done)


def main(text=""):
    """Try what TEXT selects; raises KeyboardInterrupt once the page has what was tried until then."""
    results, every = Results(BUILD / "mutants.json", at_first()), places()
    log = read_log() if text in AGAIN else []
    settled = {key_of(entry): Result(entry.by, entry.who) for entry in log if is_settled(entry, text)}
    if text == "--again":
        settled = {key: settled[key] for key in settled.keys() - {*forgotten(every, settled)}}
    elif text == "--unexplained":  # claims were asked before
        asked = {key_of(entry) for entry in log if entry.by in (NOTHING, PENDING)} - settled.keys()
        unknown = {key for key in asked if results.known.get(key, Result(NOTHING)).by == NOTHING}
        results.known |= dict.fromkeys(unknown, Result(PENDING))
    text = "" if text in AGAIN else text
    selected = [place for place in every if text in place.key and place.key not in settled]
    try:
        try_all(selected, results)
    finally:
        if not text:
            LOG.write_text(logged(every, results.known | settled), encoding="utf-8")
            PAGE.write_text(page(), encoding="utf-8")
    for place in selected if text else ():
        print(place.key, *vars(results.known[place.key]).values(), sep=" | ")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("mutants: interrupted; what is done is kept")
