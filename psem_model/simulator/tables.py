"""What a model is given, whole: weights to start from, and constants.

Of a transformer these are samples, masks, angles, and routes; of another model, any numbers.

All of it depends on a seed and on where it is in the model and in training, never on a mesh; but for
routes, which are balanced: each device's tokens are spread as evenly as can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psem_model.simulator.arithmetic import PRIME, Array, Floating, integers
from psem_model.simulator.functions import Functions
from spec.models.transformer import Transformer

OUTSIDE = -1  # the layer of what is in no layer
Key = tuple[int, str]  # a weight: its layer, or OUTSIDE, and its name


@dataclass(frozen=True)
class Cell:
    """The tokens that one device has: their samples and positions.

    `before`: how many cells come first of those whose tokens meet at the experts of a device.
    """

    samples: Array
    positions: Array
    before: int = 0

    @property
    def tokens(self) -> int:
        return len(self.samples) * len(self.positions)


@dataclass(frozen=True)
class Moment:
    """One micro-batch of one step."""

    step: int
    micro_batch: int


@dataclass(frozen=True)
class Slots:
    """The experts that tokens are sent to.

    `choices` (samples, positions, chosen): each token's experts. `sample`, `position` (experts, slots):
    the token in each slot. Slots of the first device's tokens come first, then the next one's. `filled`
    (experts, slots): where there is a token; of an empty slot another one of the device is named.
    """

    choices: Array
    sample: Array
    position: Array
    filled: Array


def route(
    cells: Sequence[Cell], experts: int, chosen: int, rng: np.random.Generator, devices: int = 1
) -> Slots:
    """Each cell's tokens in a random order, dealt to the experts in turn: some may have one more.

    The next cell's go on where those before it stopped, so that all that meet are as even. Experts are
    on so many devices: those of the first come first, so that no device gets more.
    """
    ends = [cell.samples for cell in cells], [cell.positions for cell in cells]
    shape = (1 + max(int(each.max()) for each in of) for of in ends)
    choices = np.zeros((*shape, chosen), np.int64)
    order = rng.permuted(np.arange(experts).reshape(devices, -1), axis=1).ravel()
    blocks = []
    for cell in cells:
        grid = np.stack(np.meshgrid(cell.samples, cell.positions, indexing="ij"), -1)
        tokens = rng.permutation(grid.reshape(-1, 2))
        count = len(tokens) * chosen
        turns = cell.before * count + np.arange(count)
        dealt = order[turns % experts].reshape(-1, chosen)
        choices[tokens[:, 0], tokens[:, 1]] = dealt
        own = [np.flatnonzero((dealt == expert).any(1)) for expert in range(experts)]
        slots = -(-count // experts)
        found = [np.pad(of, (0, slots - len(of))) for of in own]
        filled = [np.arange(slots) < len(of) for of in own]
        blocks.append(np.concatenate([tokens[np.stack(found)], np.stack(filled)[..., None]], -1))
    sample, position, filled_ = np.moveaxis(np.concatenate(blocks, 1), -1, 0)
    return Slots(choices, sample, position, filled_.astype(bool))


class Tables:
    """A model's weights and constants, whole: random numbers. `sizes`: of each index.

    `cells`: each device's tokens, for routes to experts on so many `devices`, if there are some;
    `takes_each`: how many experts take a token.
    """

    def __init__(
        self,
        numbers: Functions,
        sizes: dict[str, int],
        seed: int = 0,
        cells: Sequence[Cell] = (),
        devices: int = 1,
        takes_each: int = 1,
    ) -> None:
        self.numbers, self.sizes, self.seed = numbers, sizes, seed
        self.cells, self.devices, self.takes_each = cells, devices, takes_each
        if cells:  # each cell has as many slots of each expert
            each = (cell.tokens * takes_each for cell in cells)
            self.sizes["c"] = sum(-(-choices // sizes["e"]) for choices in each)
        self._last: tuple[int, Moment, Slots] | None = None

    def of(self, what: str, *where: int) -> tuple[int, ...]:
        """The seed of what is there."""
        return (self.seed, *what.encode(), *(w + 1 for w in where))

    def shape(self, indices: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in indices)

    def random(self, seed: tuple[int, ...], shape: tuple[int, ...]) -> Array:
        return self.numbers.of(integers(seed, shape, 1, PRIME))

    def weight(self, name: str, indices: Sequence[str], layer: int) -> Array:
        """What a weight is before the first step: in floating point small, as products grow."""
        found = self.random(self.of(name, layer), self.shape(indices))
        return found / np.sqrt(found.size) if isinstance(self.numbers, Floating) else found

    def constant(self, name: str, indices: tuple[str, ...], layer: int, moment: Moment) -> Array:
        """A constant, whole: ones, if that is its name, or others in each micro-batch."""
        if name == "ones":
            return self.numbers.count(np.ones(self.shape(indices), np.int64))
        return self.random(self.of(name, layer, moment.step, moment.micro_batch), self.shape(indices))

    def slots(self, layer: int, moment: Moment) -> Slots:
        """The routes of a layer's tokens; those asked for last are kept.

        Raises ValueError where none are sent to experts.
        """
        if not self.cells:
            raise ValueError(f"layer {layer}: tokens are sent to experts in a transformer alone")
        if self._last is None or self._last[:2] != (layer, moment):
            rng = np.random.default_rng(self.of("slots", layer, moment.step, moment.micro_batch))
            found = route(self.cells, self.sizes["e"], self.takes_each, rng, self.devices)
            self._last = layer, moment, found
        return self._last[2]


class TransformerTables(Tables):
    """Those of a transformer. `cells`: each device's tokens, for routes to experts on `devices`."""

    def __init__(
        self,
        numbers: Functions,
        model: Transformer,
        micro_batch: int,
        sequence: int,
        seed: int = 0,
        cells: Sequence[Cell] | None = None,
        devices: int = 1,
    ) -> None:
        everything = Cell(np.arange(micro_batch), np.arange(sequence))
        cells = ([everything] if cells is None else cells) if model.experts else ()
        sizes = model.sizes(micro_batch, sequence)
        super().__init__(numbers, sizes, seed, cells, devices, model.takes_each)
        self.model = model

    def weight(self, name: str, indices: Sequence[str], layer: int) -> Array:
        """What a weight is before the first step."""
        return self.random(self.of(name, layer), self.shape(indices))

    def words(self, moment: Moment) -> Array:
        """Word numbers (samples, positions + 1): each position's word is the next of that before it."""
        seed, (b, s) = self.of("words", moment.step, moment.micro_batch), self.shape("bs")
        return integers(seed, (b, s + 1), 0, self.sizes["v"])

    def mask(self, name: str, indices: Sequence[str], layer: int, moment: Moment) -> Array:
        """0 or 2 with equal odds: a dropout of one half."""
        seed = self.of(name, layer, moment.step, moment.micro_batch)
        return self.numbers.count(2 * integers(seed, self.shape(indices), 0, 2))

    def turns(self) -> tuple[Array, Array]:
        """Cosines and sines (positions, half of a head's turned features); in residues any numbers.

        Angles: position / 10000^(2 i / d) (arXiv 2104.09864, section 3.2.2).
        """
        s, half = self.sizes["s"], int(self.model.turned_features) // 2
        if not isinstance(self.numbers, Floating):
            return self.random(self.of("cos"), (s, half)), self.random(self.of("sin"), (s, half))
        angles = np.arange(s)[:, None] / 10000.0 ** (np.arange(half) / half)
        return np.cos(angles), np.sin(angles)

    def temperatures(self) -> Array:
        """By which queries are scaled at each position; in residues any numbers.

        1 + log(1 + floor((position + 1) / 8192)) / 10 (transformers, Llama4TextAttention); here of 4.
        """
        s = self.sizes["s"]
        if not isinstance(self.numbers, Floating):
            return self.random(self.of("temperatures"), (s,))
        return 1 + np.log1p((np.arange(s) + 1) // 4) / 10

    def causal(self, layer: int) -> Array:
        """What is added to scores ([groups, heads of a group,] positions, positions of keys).

        Far less than 0 for later keys, and for those before the layer's window, or chunk; where
        distances are told, less the further the key is, by a slope of each head (arXiv 2108.12409,
        section 3).
        In residues, which have no order, any numbers.
        """
        heads = self.shape("gr") if self.model.distances else ()
        s, window = self.sizes["s"], self.model.window(layer)
        if not isinstance(self.numbers, Floating):
            return self.random(self.of("causal", *filter(None, (window,))), (*heads, s, s))
        back = np.arange(s)[:, None] - np.arange(s)
        window = window or s
        chunk = np.arange(s) // window
        far = chunk[:, None] != chunk if self.model.chunked else back >= window
        hidden = (back < 0) | far
        slopes = 2.0 ** (-8 * np.arange(1, np.prod(heads, dtype=int) + 1) / np.prod(heads))
        falling = slopes.reshape(*heads, 1, 1) * back if heads else 0 * back
        return np.where(hidden, -1e5, -falling)

    def constant(self, name: str, indices: tuple[str, ...], layer: int, moment: Moment) -> Array:
        """A constant of `spec.models.parts`, whole. Raises ValueError for an unknown name."""
        shape = self.shape(indices)
        if name.endswith("_mask"):
            return self.mask(name, indices, layer, moment)
        match name:
            case "ones":
                found = np.ones(shape, np.int64)
            case "tokens":
                found = _one_hot(self.words(moment)[:, :-1], shape[-1])
            case "next_words":
                found = -_one_hot(self.words(moment)[:, 1:], shape[-1])
            case "places":
                found = _one_hot(
                    np.broadcast_to(np.arange(shape[1]) + self.model.spare, shape[:2]), shape[-1]
                )
            case "angles":
                return self._angles(shape)
            case "temperatures":
                return self.temperatures()
            case "straight_places":
                found = np.eye(shape[0], shape[1], dtype=np.int64)
            case "turned_places":
                *_, turned, every = shape
                places = np.eye(turned, every, every - turned, dtype=np.int64)
                found = np.broadcast_to(places, shape)
            case "causal" | "mask_of_pairs":
                return np.broadcast_to(self.causal(layer), shape)
            case _:
                raise ValueError(f"{name}: not a constant of a transformer")
        return self.numbers.count(found)

    def _angles(self, shape: tuple[int, ...]) -> Array:
        """Matrices (positions, features, turned features) that turn feature i with i + half.

        Features after those that are turned stay as they are.
        """
        cos, sin = self.turns()
        half = cos.shape[1]
        found, first = self.numbers.zeros(shape), np.arange(half)
        others = np.arange(2 * half, shape[-1])
        found[:, others, others] = self.numbers.count(np.ones(len(others), np.int64))
        found[:, first, first] = found[:, first + half, first + half] = cos
        found[:, first, first + half] = sin
        found[:, first + half, first] = self.numbers.reduce(-sin)
        return found


def _one_hot(places: Array, size: int) -> Array:
    return np.asarray(places[..., None] == np.arange(size), np.int64)
