"""What is asked of a plan, as it was typed, and what may not be asked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_model.reading import words
from psem_model.reading.shapes import SHAPE, Typed, is_own, is_shape, own
from psem_model.text.errors import BadInput, quoted
from psem_model.text.figures import counted
from spec.models.profiles import TEXTBOOK, Profile
from spec.models.states import BytePolicy
from spec.plans.model_strategies import POSITIONS

OF_PIPELINES = ("order", "chunks", "stage_layers")
USUAL, USUAL_POLICY = "common", "mixed-adam"  # profile and policy, where none is asked for
# of a step, not of the model
STEP = ("sequence", "micro_batch", "recompute", "offload_activations", *OF_PIPELINES)
OF_MODELS = ("config", *SHAPE, "block", *STEP)
SPELLED = {"config": "--config, --model"}  # of an option with two names, either


@dataclass(frozen=True)
class Asked:
    """The options of a plan. What is None, empty or false was not typed.

    `model`: the shape of a model and of its step, by the names of the options.
    """

    command: str
    strategy: str | None = None
    placement: str | None = None
    schedule: str | None = None
    devices: str | None = None
    psi: str | None = None
    mlp: str | None = None
    accumulate: str | None = None
    policy: str | None = None
    profile: str | None = None
    unit: str | None = None
    hold: bool = False
    divisible: bool = False
    model: Mapping[str, str | bool | None] = field(default_factory=dict)

    @property
    def shape(self) -> Typed:
        """What was typed of the model, but for switches."""
        return {name: value for name, value in self.model.items() if not isinstance(value, bool)}

    @property
    def has_samples(self) -> bool:
        """Whether the model's shape and its samples are given, so that activations have a size."""
        if not is_shape(self.shape):
            return False
        return self.shape.get("sequence") is not None or self._is_without_positions

    @property
    def _is_without_positions(self) -> bool:
        """Whether it is a model of one's own of which a sample is one token."""
        return is_own(self.shape) and not own(self.shape).has_index(POSITIONS)

    @property
    def realises(self) -> Profile:
        """The profile; if none was typed, `common` for a model with samples, else the textbook.

        A model of one's own computes what it says.
        """
        if self.profile is None and (not self.has_samples or is_own(self.shape)):
            return TEXTBOOK
        from psem_model.reading.profiles import read

        return read(self.profile or USUAL)

    @property
    def bytes(self) -> BytePolicy:
        """The types of states. Raises BadInput where parameters would be quantised to more bytes."""
        profile = self.realises
        found = profile.types(words.policy(self.policy or profile.policy or USUAL_POLICY))
        if found.bytes_sent > found.computed:
            raise BadInput(
                f"--profile, --bytes: given {quoted(profile.name)}, which gathers in "
                f"{counted(int(found.bytes_sent), 'byte')} an element what is computed with in "
                f"{found.computed}; expected as many bytes or fewer"
            )
        return found

    def count_of_steps(self, what: str = "micro-steps") -> int:
        return words.count("--accumulate", self.accumulate or "1", what)

    def samples(self) -> int:
        """Of a micro-batch, on each device that has samples of its own."""
        return words.count("--micro-batch", self.shape.get("micro_batch") or "1", "samples")

    def tokens(self) -> int:
        """Of a sample."""
        sequence = self.shape.get("sequence")
        if sequence is None and self._is_without_positions:
            return 1
        if sequence is None:
            raise BadInput("--sequence: missing; expected the tokens of a sample, such as 4096")
        return words.count("--sequence", sequence, "tokens")

    def unit_of(self, psi: int) -> int | None:
        """Elements gathered and reduced at a time, of so many in all. None: not said."""
        if self.unit is None:
            return None
        found = words.parameters("--unit", self.unit, "elements")
        if found > psi:
            expected = f"at most {psi:,}, all parameters"
            raise BadInput(f"--unit: given {found:,} elements; expected {expected}")
        return found

    def typed(self, name: str) -> bool:
        """Whether an option was typed."""
        value = self.model.get(name, getattr(self, name, None))
        return value not in (None, False)

    def refuse(self, names: Iterable[str], given: str, expected: str) -> None:
        """Raise BadInput for the first of some options that was typed where it changes nothing."""
        for name in names:
            if self.typed(name):
                option = SPELLED.get(name, f"--{name.replace('_', '-')}")
                raise BadInput(f"{option}: given {given}; expected {expected}")


def asked(command: str, given: Mapping[str, Any], **more: Any) -> Asked:
    """What was typed of a plan: a model's shape and its step are apart from the rest."""
    model = {name: value for name, value in given.items() if name in OF_MODELS}
    others = {name: value for name, value in given.items() if name not in OF_MODELS}
    return Asked(command, **others, **more, model=model)
