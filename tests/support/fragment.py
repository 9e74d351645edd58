"""T4's fragment: of which schedules it says that they are accepted if and only if every run matches."""

from proofs.checking.beside import Beside
from proofs.checking.judged_schedules import DEVICES, STEPS
from proofs.checking.line_run import LineRun
from proofs.checking.lines import OWNER, UPDATE
from proofs.checking.operation_lines import NORM
from spec.models.states import MIXED_ADAM


def sizes_of(schedule):
    """Those on which lines are run."""
    return dict(zip(schedule.axes, DEVICES[len(schedule.axes)], strict=True))


def wrong_and_known(run):
    """The lines that compute something known of what compares unequal."""
    at = run.run
    lost = {number for (number, *_), is_lost in at.lost.items() if is_lost}
    alone = {number for (number,) in (key for key in at.met if len(key) == 1)}
    found = {number for number in alone if not at.met[number,] and number not in lost}
    for number, firsts, places in (key for key in at.met if len(key) == 3):
        there = places in [*at.there_are(firsts)]
        if there and not at.met[number, firsts, places] and not at.lost[number, firsts, places]:
            found.add(number)
    return found


class Replayed:
    """The lines of a schedule once more: which lines' wrong values are in places."""

    def __init__(self, schedule, micro_steps):
        mesh = sizes_of(schedule)
        self.beside = run = Beside(schedule, mesh, micro_steps, MIXED_ADAM, STEPS)
        self.lines, self.kept_as = run.places.lines, run.places.kept_as
        about = run.places.contributions, run.places.starts, schedule.training, run.places.moments
        self.run = LineRun(mesh, micro_steps, *about)
        self.ends, self.applied, self.clipped_by, self.norm_of = [], {}, {}, {}
        for number, line in enumerate(self.lines):
            if line.kind == UPDATE.name:
                self.applied[number] = self.wrong(line.third)
                self.clipped_by[number] = self.wrong(line.fourth)
            if line.kind == NORM:
                self.norm_of[number] = self.wrong(line.source)
            self.run.run(number, line)
            if number + 1 == len(self.lines) or self.lines[number + 1].step > line.step:
                known = all(known for place in self.kept_as for known in self.known(place))
                self.ends.append((known, {one for place in self.kept_as for one in self.wrong(place)}))

    def wrong(self, place):
        """The lines whose wrong values are in a place."""
        forms = (self.run.form(place, firsts) for firsts in self.run.firsts)
        return {symbol.which for form in forms for symbol, _ in form if symbol.kind == "wrong"}

    def known(self, place):
        """Whether what is in a copy is known, on each kind of device that keeps it."""
        run, cut = self.run, [self.run.axes.index(a) for a in self.beside.places.kept_axes[place]]
        for firsts in run.firsts:
            for places, (_, known) in run.passes(place, firsts, []).items():
                if all(places[axis] == OWNER for axis in cut):
                    yield known

    @property
    def first(self):
        """The line that is the first to compute something known of what compares unequal, if any."""
        return min(wrong_and_known(self.beside), default=None)

    @property
    def keeps_what_is_known(self):
        """Whether there is a copy to continue from, and all that is in copies is known."""
        return self.beside.places.keeps_weights and all(is_known for is_known, _ in self.ends)

    @property
    def is_of_the_fragment(self):
        """Whether T4 says of it that it is accepted if and only if every run matches."""
        return self.keeps_what_is_known and self.passes_it_on

    @property
    def passes_it_on(self):
        """Whether what compares unequal first is a copy that is kept, or is passed on to one."""
        first = self.first
        if first is None or not all(self.beside.equal[: self.lines[first].step]):
            return True
        _, kept = self.ends[self.lines[first].step]
        kind, of_it = self.lines[first].kind, {first}
        norms = of_it if kind == NORM else {n for n, wrong in self.norm_of.items() if wrong == of_it}
        applied = {number for number, wrong in self.applied.items() if wrong == of_it}
        clipped_by = {n for n, wrong in self.clipped_by.items() if len(wrong) == 1 and wrong <= norms}
        updates = {UPDATE.name: of_it, NORM: clipped_by}.get(kind, applied | clipped_by)
        return bool(kept & updates)
