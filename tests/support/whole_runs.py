"""Places of a whole run: what they hold at first, and what is compared after every step."""

from proofs.checking.operation_lines import Places
from spec.checking.verdict import kept_copies
from spec.meaning.semantics import initial


class PlacesOfARun(Places):
    """`starts`: what places hold at first, by `lines.STARTS`. `kept_as`: what is compared after every
    step, likewise; `kept_axes`: along which axes it is cut.
    """

    def __init__(self, schedule, mesh, micro_steps, policy):
        super().__init__(schedule, mesh, micro_steps, policy)
        self.policy = policy
        self.starts, self.kept_as, self.kept_axes = {}, {}, {}

    def initial(self):
        """The store before the first step."""
        return initial(self.schedule, self, self._started("Weights"), self._started("Moments"))

    def _started(self, start):
        place = self._place()
        self.starts[place] = start
        return place

    def end_step(self, store):
        """Copy what is kept to where it is compared after every step."""
        kept = kept_copies(self, store, self.schedule, self.policy)
        if not self.kept_as:
            for state, kind, _ in kept:
                name = kind.capitalize()
                slices = self.schedule.rest(state).sharded
                place = self._place()
                self.kept_as[place] = f"{name}_slices" if slices else f"{name}s"
                self.kept_axes[place] = slices
        for place, (_, _, value) in zip(self.kept_as, kept, strict=True):
            self._write("copy", value, place)
