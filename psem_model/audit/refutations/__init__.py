"""The runs that the counterexamples of refuted claims describe, executed by the simulator.

Each takes the values that a proof found, puts them into a schedule, a model and an optimizer, and
says what it shows. The audit gives them the values of the proof that it audits.
"""

from psem_model.audit.refutations import compositions as compositions
from psem_model.audit.refutations import conditions as conditions
from psem_model.audit.refutations import levels as levels
from psem_model.audit.refutations import memory as memory
from psem_model.audit.refutations import optimizers as optimizers
from psem_model.audit.refutations import reductions as reductions
from psem_model.audit.refutations import rounding as rounding
from psem_model.audit.refutations.registry import REGISTERED as REGISTERED
from psem_model.audit.refutations.registry import Shown as Shown
from psem_model.audit.refutations.registry import executed as executed
from psem_model.audit.refutations.registry import name_of as name_of
