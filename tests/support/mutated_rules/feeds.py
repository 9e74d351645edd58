"""Which rules each claim uses: the lines of spec/ that run while it is proved."""

import json
import multiprocessing
import sys
import time
from dataclasses import dataclass

from proofs.registry import ROOT, broken_modules, claims, prove

IMPORT = "import"
SPEC = str(ROOT / "spec") + "/"
OURS = (SPEC, str(ROOT / "proofs") + "/")


@dataclass(frozen=True)
class Feed:
    """What ran while a claim was proved."""

    seconds: float
    lines: dict[str, list[int]]  # by the file, as in checking/algebra.py
    names: list[str]  # that what ran refers to
    room: str = ""  # in which it is proved


class Trace:
    """Lines of spec/ that run, and names that functions of ours refer to."""

    def __init__(self):
        self.lines, self.names, self.seen = {}, set(), set()

    def __call__(self, frame, event, _):
        code = frame.f_code
        if code not in self.seen and code.co_filename.startswith(OURS):
            self.seen.add(code)
            self.names |= referred(code)
        if not code.co_filename.startswith(SPEC):
            return None
        ran = self.lines.setdefault(code.co_filename.removeprefix(SPEC), set())
        ran.add(frame.f_lineno)

        def line(frame, *_):
            ran.add(frame.f_lineno)
            return line

        return line

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


def referred(code):
    inner = (referred(each) for each in code.co_consts if hasattr(each, "co_names"))
    return set(code.co_names).union(*inner)


def _fed(claim):
    with Trace() as trace:
        prove(claim)
    lines = {file: sorted(ran) for file, ran in trace.lines.items()}
    return claim.id, lines, sorted(trace.names)


def _timed(claim):
    start = time.process_time()
    prove(claim)
    return claim.id, time.process_time() - start


def _imported(_):
    with Trace() as trace:
        broken_modules()
    return {file: sorted(ran) for file, ran in trace.lines.items()}


def feeds():
    """By the claim's id, what ran, in a process of its own; by IMPORT, what ran before."""
    context, found = multiprocessing.get_context("fork"), {}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found[IMPORT] = Feed(0, pool.apply(_imported, (None,)), [])
    broken_modules()
    rooms = {claim.id: claim.function().__module__.split(".")[1] for claim in claims()}
    with context.Pool(1, maxtasksperchild=1) as pool:
        seconds = dict(pool.imap(_timed, claims()))
        for id, lines, names in pool.imap(_fed, claims()):
            found[id] = Feed(seconds[id], lines, names, rooms[id])
    return found


def users(place, fed, parts):
    """The claims that a place feeds: those that are proved in its room first, then the quickest.

    `parts`: by a name that a module defines as a value, the values that it is part of. What runs when
    modules are imported may feed any claim.
    """
    names = set().union(*(parts.get(name, ()) for name in place.names))
    everyones = ran(place, fed[IMPORT]) and not place.names
    used = [
        id
        for id, feed in fed.items()
        if id != IMPORT and (everyones or ran(place, feed) or not names.isdisjoint(feed.names))
    ]
    return sorted(used, key=lambda id: (fed[id].room != place.room, fed[id].seconds))


def ran(place, feed):
    first, last = place.lines
    return any(first <= n <= last for n in feed.lines.get(place.file, ()))


def kept(path, digest):
    """What was recorded of the same sources; none if of others."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if document.get("digest") != digest:
        return None
    return {id: Feed(**feed) for id, feed in document["feeds"].items()}


def keep(path, digest, fed):
    path.parent.mkdir(exist_ok=True)
    feeds_ = {id: vars(feed) for id, feed in fed.items()}
    path.write_text(json.dumps({"digest": digest, "feeds": feeds_}))
