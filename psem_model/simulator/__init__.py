"""A simulator of distributed training: real buffers, messages and arithmetic, on simulated devices.

    run = simulate(schedule, {"batch": 4}, psi=1000, steps=3)
    run.matches, run.divergence   beside the same training on a single device
    run.resting, run.peak         bytes in each device's memory
    run.sent, run.messages        what the devices send to one another

It knows no formula of any cost, and nothing of how schedules are judged: it executes operations on
every device's own arrays, counts what is allocated and what is sent, and compares.
"""

from psem_model.simulator.arithmetic import Arithmetic, Floating, Modular
from psem_model.simulator.mlp import Mlp
from psem_model.simulator.models import Model, Polynomial
from psem_model.simulator.run import Run, simulate

__all__ = [
    "Arithmetic",
    "Floating",
    "Mlp",
    "Model",
    "Modular",
    "Polynomial",
    "Run",
    "simulate",
]
