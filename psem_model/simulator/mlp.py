"""A multi-layer perceptron, with its forward and backward pass written out. Each layer is a unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.models import SAMPLES, Backward, Data, Model

Batch = tuple[Array, Array, Array]  # inputs, targets (devices, samples, width), weights (..., 1)


class Mlp(Model):
    """Layers of `width` by `width` weights, then `width` biases, on random data.

    Activations are a layer's sums before its nonlinear function; the last layer has none. The loss
    is half the squared error, times the sample's weight. Forward keeps each layer's inputs, from
    which `recompute` produces its sums again. Raises ValueError where a schedule does not go through
    the layers in order.
    """

    def __init__(self, width: int) -> None:
        self.width = width

    def start(self, data: Data, lengths: Sequence[int], micro_steps: int, tied: bool) -> None:
        size = self.width * (self.width + 1)
        if tied:
            raise ValueError("a perceptron has no tied parameters")
        if any(n != size for n in lengths):
            raise ValueError(f"units have {lengths[0]} or {lengths[-1]} elements; a layer has {size}")
        super().start(data, lengths, micro_steps, tied)
        self.arithmetic, self.micro_steps, self.layers = data.arithmetic, micro_steps, len(lengths)
        self._inputs: dict[int, tuple[int, int, Array]] = {}
        self._forward: tuple[tuple[int, int], int, Array] | None = None
        self._backward: tuple[tuple[int, int], int, Array] | None = None

    def batch(self, step: int, micro_step: int) -> Batch:
        """Each device's samples in one micro-step."""
        shape = (self.data.cluster.devices, SAMPLES, 2 * self.width + 1)
        drawn = self.data.random("sample", shape, step, micro_step)
        return drawn[..., : self.width], drawn[..., self.width : -1], drawn[..., -1:]

    def sums(self, view: Array, inputs: Array) -> Array:
        """A layer's sums (devices, samples, width) of its inputs."""
        square = self.width**2
        weights = view[:, :square].reshape(-1, self.width, self.width)
        return self.arithmetic.add(self.arithmetic.matmul(inputs, weights), view[:, None, square:])

    def outputs(self, unit: int, sums: Array) -> Array:
        """What the next layer has as its inputs."""
        return sums if unit == self.layers - 1 else self.arithmetic.activation(sums)[0]

    def error(self, sums: Array, targets: Array, weights: Array) -> Array:
        """The loss's gradient by the last layer's sums."""
        return self.arithmetic.mul(self.arithmetic.reduce(sums - targets), weights)

    def through(self, sums: Array, flow: Array) -> Array:
        """The gradient by a layer's sums, from that by its outputs."""
        return self.arithmetic.mul(flow, self.arithmetic.activation(sums)[1])

    def gradients(self, view: Array, inputs: Array, change: Array) -> tuple[Array, Array]:
        """The sums of gradients by a layer's parameters (devices, size), and that by its inputs."""
        weights = view[:, : self.width**2].reshape(-1, self.width, self.width)
        by_weights = self.arithmetic.matmul(inputs.swapaxes(1, 2), change)
        by_biases = self.arithmetic.total(change, 1)
        by_inputs = self.arithmetic.matmul(change, weights.swapaxes(1, 2))
        return np.concatenate((by_weights.reshape(len(change), -1), by_biases), 1), by_inputs

    def forward(self, unit: int, view: Array, step: int, micro_step: int) -> Array:
        if unit == 0:
            inputs = self.batch(step, micro_step)[0]
        elif self._forward is None or self._forward[:2] != ((step, micro_step), unit - 1):
            raise ValueError(f"forward of layer {unit} does not follow that of layer {unit - 1}")
        else:
            inputs = self._forward[2]
        self._inputs[unit] = step, micro_step, inputs
        sums = self.sums(view, inputs)
        self._forward = (step, micro_step), unit, self.outputs(unit, sums)
        return sums

    def recompute(self, unit: int, view: Array, step: int, micro_step: int) -> Array:
        return self.sums(view, self._kept(unit, (step, micro_step)))

    def _kept(self, unit: int, when: tuple[int, int]) -> Array:
        """A layer's inputs, as forward kept them."""
        step, micro_step, inputs = self._inputs.get(unit, (-1, -1, np.empty(0)))
        if (step, micro_step) != when:
            raise ValueError(f"layer {unit} goes backward, or is recomputed, without its forward")
        return inputs

    def backward(self, of: Backward) -> list[Array]:
        inputs = self._kept(of.unit, of.when)
        sums = self.data.unknown(*inputs.shape) if of.activations is None else of.activations
        owners = self.data.cluster.group(of.everyones).members
        actors = self._actors(owners, [a for a in of.everyones if a in of.gathered])
        inputs, sums = self._of(actors, inputs), self._of(actors, sums)
        if of.unit == self.layers - 1:
            _, targets, weights = self.batch(*of.when)
            change = self.error(sums, self._of(owners, targets), self._of(owners, weights))
        elif self._backward is None or self._backward[:2] != (of.when, of.unit + 1):
            raise ValueError(f"backward of layer {of.unit} does not follow that of layer {of.unit + 1}")
        else:
            change = self.through(sums, self._backward[2])
        found, flow = self.gradients(of.view, inputs, change)
        self._backward = of.when, of.unit, flow
        return [found]

    def _of(self, devices: Array, values: Array) -> Array:
        """The samples of some devices (devices, how many) together, on each."""
        picked = values[devices]
        return picked.reshape(len(devices), -1, values.shape[-1])

    def _actors(self, owners: Array, gathered: Sequence[str]) -> Array:
        """Whose activations serve for each owner's samples: the owner's, where gathered."""
        cluster = self.data.cluster
        own = np.arange(cluster.devices)[:, None]
        places = tuple(cluster.coordinates[a][owners if a in gathered else own] for a in cluster.names)
        where = np.broadcast_arrays(owners, *places)[1:]
        return np.ravel_multi_index(where, cluster.shape) if where else owners

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        batches = [self.batch(step, m) for m in range(self.micro_steps)]
        hidden, targets, shares = (
            np.concatenate(part).reshape(1, -1, part[0].shape[-1])
            for part in zip(*batches, strict=True)
        )
        inputs, sums = [], []
        for unit, view in enumerate(weights):
            inputs.append(hidden)
            sums.append(self.sums(view, hidden))
            hidden = self.outputs(unit, sums[unit])
        change = self.error(sums[-1], targets, shares)
        found = []
        for unit in reversed(range(self.layers)):
            gradient, flow = self.gradients(weights[unit], inputs[unit], change)
            found.append(gradient)
            change = self.through(sums[unit - 1], flow) if unit else flow
        return found[::-1]
