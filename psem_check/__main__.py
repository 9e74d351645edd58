"""`python -m psem_check build/certificate.json.xz`: check a certificate, and print what it shows."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from psem_check.check import check, in_a_line
from psem_check.printing import lines_of
from psem_check.reader import read
from psem_check.terms import Rejected

MEMORY = 4 << 30  # bytes
SECONDS = 1800  # of processor time


def main(arguments: list[str]) -> int:
    """0 if all is checked; 1 if it is not; 2 if there is no certificate."""
    parser = argparse.ArgumentParser(prog="psem_check", description=__doc__)
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--brief", action="store_true", help="one line for each claim")
    given = parser.parse_args(arguments)
    start = time.perf_counter()
    try:
        document = read(given.certificate)
    except Rejected as error:
        print(f"psem_check: {in_a_line(f'{given.certificate}: {error}')}", file=sys.stderr)
        return 2
    count = obligations = 0
    try:
        for claim in check(document):
            count += 1
            obligations += claim.obligations
            for line in lines_of(claim, given.brief):
                print(line)
        if not count:
            raise Rejected("it has no claim")
    except Rejected as error:
        print(f"REJECTED: {in_a_line(str(error))}")
        return 1
    except MemoryError:
        print(f"REJECTED: after {count} claims it needs more memory than it may have")
        return 1
    seconds = time.perf_counter() - start
    print(f"{count} claims, {obligations:,} obligations: checked; {seconds:.0f} s")
    return 0


def _bound() -> None:
    """A bound on memory and time for all of a certificate, where the system has one."""
    try:
        import resource
        import signal
    except ImportError:  # on Windows
        return

    def ends(*_: object) -> None:
        raise Rejected(f"it takes more than {SECONDS:,} seconds of processor time")

    signal.signal(signal.SIGXCPU, ends)
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS)):
        soft, hard = resource.getrlimit(kind)
        given = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min([most, *given]), hard))


def _run(arguments: list[str]) -> int:
    """The same, where output may end early, or a key be pressed."""
    _bound()
    try:
        code = main(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is left to be written at the end
        print(f"psem_check: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return code


def command() -> None:
    """The command, as it is installed."""
    sys.exit(_run(sys.argv[1:]))


if __name__ == "__main__":
    command()
