"""`make fuzz`: random plans and schedules, for as long as one likes. Ctrl-C stops it.

Prints its seed; `make fuzz SEED=...` starts from it again. A disagreement is shrunk, printed with the
seed of its round, and ends it with exit code 1.
"""

import random
import sys
import time

from hypothesis import HealthCheck, given, seed, settings

from psem_model.reading.schedules import dumps
from tests.support.crosscheck import accepted, agree_on_costs, agree_on_the_verdict, plans
from tests.support.schedules import schedules

EXAMPLES = 500  # of each kind, in a round


class Round:
    """One round of random examples, of which the last is kept: the smallest, if one fails."""

    def __init__(self, number):
        self.number, self.done, self.last = number, 0, None
        self.settings = settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )

    def search(self, strategy, check):
        @seed(self.number)
        @self.settings
        @given(strategy)
        def test(case):
            self.done, self.last = self.done + 1, case
            check(case)

        test()


def costs(plan):
    if accepted(plan):
        run, _ = agree_on_costs(*plan, steps=2)
        assert run.matches, run.divergence


def main(first):
    """Rounds from a seed on, until a disagreement is raised or Ctrl-C, which is no error."""
    print(f"seed {first}; Ctrl-C stops", flush=True)
    start, total = time.monotonic(), 0
    for number in range(first, sys.maxsize):
        search = Round(number)
        try:
            search.search(plans(), costs)
            search.search(schedules(), lambda case: agree_on_the_verdict(*case))
        except KeyboardInterrupt:
            print(
                f"\n{total + search.done} examples in {time.monotonic() - start:.0f} s, no disagreement"
            )
            return
        except Exception:  # whatever it is, it ends the search; before, the example that shows it
            if search.last is not None:
                schedule, *rest = search.last
                print(f"\n{dumps(schedule, 'a disagreement')}\nwith {rest}", flush=True)
            print(f"seed {number}", flush=True)
            raise
        total += search.done
        print(f"{total} examples in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1] else random.randrange(10**9))
