"""The run of a schedule that is listed, as functions: what each line is, and what devices keep."""

from tests.support.supposed import ELEMENTS, KINDS, TRAINING, RunThatIsSupposed, row


class ListedDevices(RunThatIsSupposed):
    """A listed schedule's run on a mesh: what each line is, and where there are slices.

    `number`: of the schedule among those that are listed; `rows`: those of its lines.
    """

    def __init__(self, listed, micro_steps, steps, *sizes, number=0, rows=None):
        super().__init__(*sizes)
        self.listed, self.steps = listed, steps
        self.rows = rows or [*range(len(listed.lines))]
        self.micro_steps = micro_steps if listed.body < len(listed.lines) else 1
        micro_steps = self.micro_steps
        self.at, self.stops = [], {}
        for step in range(steps):
            for m in range(micro_steps):
                self.at += [(r, m, step) for r in range(listed.body)]
            self.at += [(r, m, step) for r in range(listed.body, len(listed.lines))]
            self.stops[step] = len(self.at)
        self.last = len(self.at)
        self.at.append((0, 0, steps))
        self.name_values()
        self.fixed = self.constants() | {"schedule": number, "first_row": self.rows[0]}

    def now(self, t):
        return self.at[t] if 0 <= t <= self.last else (0, 0, 0)

    def line(self, t):
        return self.listed.lines[self.now(t)[0]]

    def line_of(self, t):
        return self.rows[self.now(t)[0]]

    def micro_step(self, t):
        return self.now(t)[1]

    def step(self, t):
        return self.now(t)[2]

    def ends(self, u):
        return self.stops.get(u, -1)

    def axis(self, t):
        return self.listed.axes.index(self.line(t).axis) if self.line(t).axis else 0

    def updates_slices(self, t, a):
        return 0 <= a < len(self.listed.axes) and self.listed.axes[a] in self.line(t).axes

    def is_cut(self, b, a):
        cut = 0 <= a < len(self.listed.axes) and b in self.listed.slices
        return cut and self.listed.axes[a] in self.listed.slices[b]

    def start(self, b):
        return self.listed.starts.get(b, "Nothing")

    def kept_as(self, b):
        start = self.start(b)
        return "Nothing" if "Zero" in start else start

    def constants(self):
        return {
            **{"n": len(self.all), "axes": len(self.sizes), "elements": len(ELEMENTS)},
            **{"all_weights": 1, "micro_steps": self.micro_steps, "turns": self.micro_steps},
            **{"last": self.last, "bound": len(self.names)},
            **{
                "reads_moment": self.listed.moments,
                "reads_norm": self.listed.clips,
                "reads_count": False,
            },
        }

    def functions(self):
        own = {name: getattr(self, name) for name in OF_LISTS}
        return {**self.of_any_run(), **own, **self.fixed}

    def over(self):
        devices, micro_steps = range(-1, len(self.all) + 1), range(-1, self.micro_steps + 1)
        rows = [row([1, 2, 3]), row([0, -1, 0])]
        return {
            **{"t": range(-1, self.last + 2), "u": range(-1, self.steps + 1), "m": micro_steps},
            **{"b": range(-2, 30), "s": range(-2, len(self.names) + 1), "j": ELEMENTS},
            **dict.fromkeys("cdi", devices),
            **dict.fromkeys("ax", range(-1, 3)),
            **{"weight": range(-1, 2), "w": KINDS, "run": [TRAINING]},
            **dict.fromkeys(("view", "activations", "weights"), rows),
        }


OF_LISTS = ("line_of", "ends", "updates_slices", "is_cut", "start")
