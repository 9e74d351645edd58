"""The simulator's models: the perceptron, the polynomial and the data they are given."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from psem_model.simulator import Floating, Mlp, simulate
from psem_model.simulator.arithmetic import FEW, PRIME, Arithmetic, Modular, integers
from psem_model.simulator.layout import Cluster
from psem_model.simulator.models import Data, Polynomial
from psem_model.simulator.single import SingleOpaque
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Span
from spec.models.training import PLAIN, Loss, Training
from spec.plans.strategies import STRATEGIES
from tests.support.by_hand import BACKWARD, DROP, FORWARD, MICRO, B, K, op, written


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("arithmetic", ["modular", "float64"])
def test_a_perceptron_matches_under_every_strategy(name, arithmetic):
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict(zip(schedule.axes, (3, 2), strict=False))
    options = {"steps": 2, "unit": 12, "arithmetic": arithmetic, "model": Mlp(3)}
    assert simulate(schedule, mesh, 36, **options).matches


def test_a_perceptron_matches_in_fractions():
    schedule = schedule_of(STRATEGIES["zero3"])
    assert simulate(schedule, {"batch": 2}, 12, unit=6, arithmetic="exact", model=Mlp(2)).matches


def test_a_perceptrons_gradients_are_those_of_its_loss_by_finite_differences():
    cluster, width, layers = Cluster((("d", 2),)), 3, 3
    model, data = Mlp(width), Data(5, cluster, Floating())
    model.start(data, [width * (width + 1)] * layers, 2, tied=False)
    weights = [data.random("weights", (1, width * (width + 1)), u) for u in range(layers)]

    def loss():
        total = 0.0
        for m in range(2):
            hidden, targets, shares = model.batch(0, m)
            for unit, row in enumerate(weights):
                matrix, bias = row[0, : width**2].reshape(width, width), row[0, width**2 :]
                sums = hidden @ matrix + bias
                hidden = np.tanh(sums) if unit < layers - 1 else sums
            total += float((shares * (hidden - targets) ** 2).sum() / 2)
        return total

    for unit, gradient in enumerate(model.whole(weights, 0)):
        for j in range(gradient.shape[1]):
            was, h = weights[unit][0, j], 1e-5
            weights[unit][0, j] = was + h
            above = loss()
            weights[unit][0, j] = was - h
            below = loss()
            weights[unit][0, j] = was
            assert gradient[0, j] == pytest.approx((above - below) / (2 * h), rel=1e-6, abs=1e-8)


def test_a_perceptron_refuses_what_does_not_go_through_its_layers_in_order():
    backward_first = written((BACKWARD, FORWARD, DROP), ())
    with pytest.raises(ValueError, match="without its forward"):
        simulate(backward_first, {"d": 1}, 12, unit=6, model=Mlp(2))
    in_one_pass = op(K.KEEP, B.PARAMETERS, B.VIEW, span=Span.UNIT)
    micro_step = in_one_pass, *MICRO, op(K.KEEP, B.VIEW, B.PARAMETERS)
    with pytest.raises(ValueError, match="forward of layer 1 does not follow"):
        simulate(written(micro_step, ()), {"d": 1}, 12, unit=6, model=Mlp(2))
    with pytest.raises(ValueError, match="a layer has 6"):
        simulate(written(MICRO, ()), {"d": 1}, 12, unit=5, model=Mlp(2))
    with pytest.raises(ValueError, match="no tied parameters"):
        simulate(written(MICRO, (), Training(tied=True)), {"d": 1}, 12, unit=6, model=Mlp(2))


@pytest.mark.parametrize(
    "training",
    [PLAIN, Training(Loss.MEAN, clip=True), Training(Loss.TOKEN_MEAN, tied=True)],
)
def test_a_single_device_in_residues_is_the_one_in_fractions_modulo_the_prime(training):
    cluster, lengths, found = Cluster((("d", 2),)), [3, 2], []
    for arithmetic in (Arithmetic(), Modular()):
        data, model = Data(3, cluster, arithmetic), Polynomial()
        model.start(data, lengths, 2, training.tied)
        weights = [data.random("weights", (1, n), u) for u, n in enumerate(lengths)]
        moments = [data.moments(u, n, True) for u, n in enumerate(lengths)]
        single = SingleOpaque(training, model, data, weights, moments, 2)
        single.step(0)
        single.step(1)
        found.append(
            np.concatenate([v.ravel() for v in (*single.weights.values(), *single.moments.values())])
        )
    fractions = [Fraction(f) for f in found[0]]
    residues = [f.numerator * pow(f.denominator, -1, PRIME) % PRIME for f in fractions]
    assert residues == list(found[1])


def test_data_do_not_depend_on_how_many_devices_there_are():
    few, many = (Data(1, Cluster((("d", n),)), Modular()) for n in (2, 5))
    assert np.array_equal(few.tokens(1, 2), many.tokens(1, 2)[:2])
    assert np.array_equal(few.statistic(1, 2), many.statistic(1, 2)[:2])
    models = []
    for data in (few, many):
        models.append(Polynomial())
        models[-1].start(data, [4], 1, tied=True)
    few_sums, many_sums = (m.coefficients(0, 0) for m in models)
    assert np.array_equal(few_sums, many_sums[:2])


@pytest.mark.parametrize("size", [5, 5 * FEW])
def test_integers_of_a_seed_are_the_same_whatever_was_drawn_before(size):
    expected = np.random.default_rng((1, 2)).integers(3, 99, size=(size,))
    integers((1, 2), (size,), 3, 98)
    for _ in range(2):
        found = integers((1, 2), (size,), 3, 99)
        assert np.array_equal(found, expected)
        assert not found.flags.writeable
