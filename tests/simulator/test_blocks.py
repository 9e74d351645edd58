"""What runs of transformers are made of: functions, the tape, slices, moves, routes, kept values."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.simulator.arithmetic import PRIME
from psem_model.simulator.distributed import DistributedModel
from psem_model.simulator.functions import BY_RESULT, Real, Residues
from psem_model.simulator.lines import Devices
from psem_model.simulator.moves import move
from psem_model.simulator.network import Network
from psem_model.simulator.routes import to_slots, to_tokens
from psem_model.simulator.slices import Grid, Slices, cut
from psem_model.simulator.tables import Cell, Moment, TransformerTables, route
from psem_model.simulator.tape import Node, Tape
from psem_model.simulator.transformer import Forward, SingleTransformer
from spec.checking.programs import check_program
from spec.derivation.programs import program_of
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.language.moves import Axis, Move
from spec.models.parts import layer, parts
from spec.models.states import MIXED_ADAM
from spec.models.transformer import (
    CAPPED,
    DENSE,
    DROPPED,
    NORMS,
    STRAIGHT,
    USUAL,
    USUAL_NORMS,
    Latent,
    Transformer,
)
from spec.models.values import FROM_RESULT, Builder, Role, Value
from spec.plans.model_strategies import MODEL_AXES
from tests.support.examples import examples
from tests.support.transformers import Plan, replicated

PLAIN = Transformer(1, 4, 2, 1, 4, 4, 7)
ALL_STRAIGHT = (frozenset({STRAIGHT}),)
DENSE_FIRST = (frozenset({DENSE}), USUAL)
VARIANTS = [
    PLAIN,
    replace(PLAIN, positions=3, tied=True, dropout=DROPPED, kv_heads=2),
    replace(PLAIN, gated=True, function="silu", norm="rms_norm", biases=frozenset()),
    replace(PLAIN, experts=3, chosen=2, dropout=DROPPED),
    replace(PLAIN, experts=2, chosen=1, gated=True, biases=frozenset({"qkv"}), tied=True),
    replace(PLAIN, norms=frozenset(NORMS), norm="rms_norm", capped=CAPPED),
    replace(PLAIN, norms=frozenset(NORMS), parallel=True, distances=True, angles=False, windows=(2,)),
    replace(PLAIN, norms=frozenset({"attention"}), parallel=True, positions=3, spare=2),
    replace(PLAIN, kv_heads=2, latent=Latent(3, 5, 1, 3), norm="rms_norm", biases=frozenset()),
    replace(PLAIN, layers=2, experts=3, chosen=2, odds="sigmoid", shared=2, dense=5, kinds=DENSE_FIRST),
    replace(PLAIN, gated=True, clamped=True, function="clamped_silu", sinks=True),
    replace(PLAIN, norms=USUAL_NORMS | {"turned"}, tempered=True, windows=(2,), chunked=True),
    replace(PLAIN, experts=3, chosen=2, weighed_first=True, tempered=True, kinds=ALL_STRAIGHT),
    replace(PLAIN, experts=3, chosen=1, biases=frozenset({"router", "mlp"})),
    replace(PLAIN, latent=Latent(2, 0, 3, 1), experts=3, chosen=1, shared=2, gated=True),
]
NORMALISED = ["softmax", "layer_norm", "rms_norm"]
SMALL = 46337  # its square is less than PRIME


class Jets(Residues):
    """Residues modulo a prime's square: a step of the prime moves a function by its derivative."""

    def alone(self, x):
        """What is its own derivative: a step of the prime times a number multiplies by 1 + that."""
        low = x % SMALL
        return self.reduce(super().alone(low) * (1 + x - low) % SMALL**2)

    def reciprocal(self, values):
        q = SMALL**2
        return np.asarray(np.frompyfunc(lambda v: pow(int(v), -1, q), 1, 1)(values), np.int64)


@pytest.fixture
def jets(monkeypatch):
    for module in ("arithmetic", "functions", "tables"):
        monkeypatch.setattr(f"psem_model.simulator.{module}.PRIME", SMALL**2)
    return Jets()


def rise(numbers, function, x, direction):
    """The derivative of a function of an array in a direction."""
    if isinstance(numbers, Real):
        h = 1e-5
        return (function(x + h * direction) - function(x - h * direction)) / (2 * h)
    change = numbers.reduce(function(x + SMALL * direction) - function(x))
    assert not (change % SMALL).any()
    return change // SMALL


def agree(numbers, found, expected):
    if isinstance(numbers, Real):
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-7)
    else:
        assert np.array_equal(found % SMALL, expected % SMALL)


def test_what_is_known_from_a_result_is_known_from_it_in_the_simulator_too():
    assert BY_RESULT == FROM_RESULT


def drawn(numbers, rng, *shape):
    if isinstance(numbers, Real):
        return rng.uniform(0.1, 2, shape)
    return rng.integers(1, SMALL, size=shape)


@pytest.mark.parametrize("name", sorted({*Real.elementwise} - {"log", "clamp"}))
def test_what_stands_in_for_a_function_is_zero_of_zero_if_that_is(name):
    """As features that fill slices are."""
    real = Real().apply(name, np.zeros(1))
    if real == 0:
        assert Residues().apply(name, np.zeros(1, dtype=np.int64)) == 0


@pytest.mark.parametrize("kind", ["real", "jets"])
@pytest.mark.parametrize("name", [*Real.elementwise, *NORMALISED])
def test_what_goes_backward_is_the_derivative_of_what_goes_forward(name, kind, jets):
    numbers, rng = (Real() if kind == "real" else jets), np.random.default_rng(1)
    x, direction, cotangent = (drawn(numbers, rng, 3, 4, 2) for _ in range(3))
    if name in NORMALISED:
        y = numbers.normalise(name, x, 1)
        known = y if name in BY_RESULT else x
        pulled = numbers.normalise_backward(name, cotangent, known, 1)
        change = rise(numbers, lambda v: numbers.normalise(name, v, 1), x, direction)
        assert np.abs(change - numbers.mul(direction, cotangent)).any()
    else:
        known = numbers.apply(name, x) if name in BY_RESULT else x
        pulled = numbers.apply_backward(name, cotangent, known)
        change = rise(numbers, lambda v: numbers.apply(name, v), x, direction)
    together = tuple(range(3))
    there = numbers.total(numbers.mul(cotangent, change), together)
    agree(numbers, numbers.total(numbers.mul(pulled, direction), together), there)


@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize("numbers", [Real(), Residues()], ids=["real", "residues"])
def test_what_normalises_depends_on_all_elements_along_its_index(name, numbers):
    x = drawn(numbers, np.random.default_rng(2), 1, 5)
    moved = x.copy()
    moved[0, 0] += 1
    differs = numbers.normalise(name, x, 1) != numbers.normalise(name, moved, 1)
    assert differs.all()


@pytest.mark.parametrize("products", [1, 2, 3, 500])
def test_sums_of_products_of_residues_are_those_of_whole_numbers(products):
    rng = np.random.default_rng(3)
    left, right = (rng.integers(0, PRIME, size=(2, products, 3)) for _ in range(2))
    left[0], right[0] = PRIME - 1, PRIME - 1
    found = Residues().einsum("Dka,Dkb->Dab", left, right)
    exact = np.einsum("Dka,Dkb->Dab", left.astype(object), right.astype(object))
    assert np.array_equal(found, exact % PRIME)


# ---------------------------------------------------------------------------- one device
def single_device(model, numbers):
    """A device that has made all its weights."""
    single = SingleTransformer(TransformerTables(numbers, model, 2, 3), 2)
    Forward(single, Moment(0, 0)).loss()
    return single


# in residues a log-sum-exp is a sum: its derivative stands for the softmax, and is none
DERIVED = [(m, kind) for m in VARIANTS for kind in ("real", "jets") if kind == "real" or not m.sinks]


@pytest.mark.parametrize(("model", "kind"), DERIVED, ids=range(len(DERIVED)))
def test_a_single_devices_gradients_are_the_derivatives_of_its_loss(model, kind, jets):
    numbers, rng = (Real() if kind == "real" else jets), np.random.default_rng(4)
    single = single_device(model, numbers)
    start = dict(single.weights)
    directions = {key: drawn(numbers, rng, *w.shape) for key, w in start.items()}

    def loss(by):
        other = single_device(model, numbers)
        other.weights = {k: numbers.reduce(w + by * directions[k]) for k, w in start.items()}
        other.gradients(0)
        return numbers.total(np.stack(other.losses), (0, 1, 2))

    change = rise(
        numbers, lambda by: loss(by[0]), np.zeros(1, numbers.dtype), np.ones(1, numbers.dtype)
    )
    gradients = single.gradients(0)
    assert gradients.keys() == start.keys()
    terms = [numbers.mul(gradients[k], directions[k]).sum() for k in start]
    agree(numbers, np.array(sum(terms)), change)


def test_the_tapes_operations_broadcast_pick_and_add_up(jets):
    rng = np.random.default_rng(5)
    a, b, c = drawn(jets, rng, 4, 3), drawn(jets, rng, 3), drawn(jets, rng, 2, 1, 3)
    places = np.array([[0, 2], [2, 1]])

    def run(arrays):
        tape, nodes = Tape(jets), [Node(array) for array in arrays]
        x = tape.add(tape.multiply(nodes[0], nodes[1]), nodes[2])
        x = tape.multiply(tape.pick(x, places, 2), tape.pick(nodes[1], places))
        return tape, tape.add(x, x), nodes

    tape, out, nodes = run((a, b, c))
    cotangent = drawn(jets, rng, *out.value.shape)
    tape.backward(out, cotangent)
    for i, node in enumerate(nodes):
        direction = drawn(jets, rng, *node.value.shape)

        def moved(value, i=i):
            return run([value if j == i else other for j, other in enumerate((a, b, c))])[1].value

        change = rise(jets, moved, node.value, direction)
        agree(jets, jets.mul(node.gradient, direction).sum(), jets.mul(cotangent, change).sum())


@pytest.mark.parametrize("model", VARIANTS, ids=range(len(VARIANTS)))
def test_the_single_device_has_the_weights_of_the_specified_model(model):
    single = single_device(model, Residues())
    outside, layers = (parts(model)[0], parts(model)[-1]), range(model.layers)
    weights = {i: layer(model, model.layer_kind(i)).weights for i in layers}
    specified = {(i, w.name): w.indices for i in layers for w in weights[i]}
    specified |= {(-1, w.name): w.indices for part in outside for w in part.weights}
    shapes = {key: single.tables.shape(indices) for key, indices in specified.items()}
    assert {key: weight.shape for key, weight in single.weights.items()} == shapes


# ------------------------------------------------------------------------ slices and moves
AXES = ("x", "y", "z")


class Cuts:
    """What a grid asks of programs, for values of any lies."""

    def __init__(self, axes, *lies):
        self.axes = [Axis(name) for name in axes]
        self.lies = dict(enumerate(lies))
        self.part = Builder("of no operations").part(None)


@st.composite
def moves(draw):
    """A move along x, of a value of two indices that x, y and z cut somehow."""
    collective = draw(
        st.sampled_from(["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "slice"])
    )
    before, after = {
        "all_gather": (along("b"), WHOLE),
        "reduce_scatter": (PARTIAL, along("b")),
        "all_reduce": (PARTIAL, WHOLE),
        "all_to_all": (along("b"), along("h")),
        "slice": (WHOLE, along("b")),
    }[collective]
    mesh = {axis: draw(st.integers(1, 3)) for axis in AXES}
    others = {axis: draw(st.sampled_from([WHOLE, along("b"), along("h")])) for axis in "yz"}
    order = draw(st.permutations(AXES))
    sizes = {i: prod(mesh.values()) * draw(st.integers(1, 2)) for i in "bh"}
    sizes |= dict.fromkeys("suc", 1)
    value = Value("value", ("b", "h"))
    line = Move("x", value, replace(value, name="moved"), before, after)
    return line, order, mesh, others, sizes, draw(st.integers(0, 2**32))


@given(moves())
def test_a_move_keeps_the_value_and_changes_how_it_lies(drawn_move):
    line, order, mesh, others, sizes, seed = drawn_move
    rng, numbers = np.random.default_rng(seed), Residues()
    before, after = {**others, "x": line.before}, {**others, "x": line.after}
    programs: list = [Cuts(order, before, after)]
    grid = Grid(programs, mesh, sizes)
    table = rng.integers(0, PRIME, size=(sizes["b"], sizes["h"]))
    value = cut(table, "bh", grid.where("bh", before))
    if line.before == PARTIAL:
        terms = rng.integers(0, PRIME, size=(mesh["x"], *table.shape))
        terms[0] = (table - terms[1:].sum(0)) % PRIME
        places = cut(np.arange(table.size).reshape(table.shape), "bh", value.where).array
        own = grid.cluster.coordinates["x"][:, None, None]
        value = replace(value, array=terms.reshape(mesh["x"], -1)[own, places])
    value = replace(value, width=3)
    network = Network(grid.cluster.devices)
    network.serve(("move", 0))
    found = move(line, (line.axis,), value, grid, numbers, network)
    expected = cut(table, "bh", grid.where("bh", after))
    assert np.array_equal(found.array, expected.array)
    assert all(np.array_equal(found.where[i], expected.where[i]) for i in "bh")
    assert found.width == 3


def test_a_move_that_sends_elements_of_two_widths_is_refused():
    network = Network(2)
    network.serve(("move", 0), width=2)
    network.serve(("move", 1), width=4)
    with pytest.raises(ValueError, match="sends 2 bytes an element, and 4"):
        network.serve(("move", 0), width=4)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 6), st.data())
def test_choices_of_each_device_and_of_all_that_meet_are_even_and_the_first_device_has_most(
    devices, each, tokens, data
):
    experts = devices * each
    chosen = data.draw(st.integers(1, experts))
    cells = [Cell(np.array([i]), np.arange(tokens), i) for i in range(devices)]
    slots = route(cells, experts, chosen, np.random.default_rng(tokens), devices)
    counts = np.array([np.bincount(of.ravel(), minlength=experts) for of in slots.choices])
    for of in (*counts, *np.cumsum(counts, 0)):
        assert of.max() - of.min() < 2
    on_device = counts.sum(0).reshape(devices, each).sum(1)
    assert on_device[0] == on_device.max()


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 9),
    st.data(),
)
def test_tokens_go_evenly_to_slots_and_come_back_once_for_each_expert_they_chose(
    sample_cells, position_cells, chosen, samples, data
):
    """As evenly as can be: of an expert, a slot of each device may be empty."""
    experts = data.draw(st.integers(chosen, 4))
    cells = [
        Cell(np.arange(i * samples, (i + 1) * samples), np.arange(2 * j, 2 * j + 2))
        for i in range(sample_cells)
        for j in range(position_cells)
    ]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    slots = route(cells, experts, chosen, rng)
    assert all(len(set(token)) == chosen for token in slots.choices.reshape(-1, chosen))
    where = {
        "b": np.stack([cell.samples for cell in cells]),
        "s": np.stack([cell.positions for cell in cells]),
    }
    devices = len(cells)
    shape = (devices, samples, 2)
    for last in "hj":
        size = 3 if last == "h" else experts
        at = {**where, last: np.broadcast_to(np.arange(size), (devices, size))}
        tokens = Slices(("b", "s", last), rng.integers(1, PRIME, size=(*shape, size)), at)
        there = to_slots(tokens, ("e", "c", "h") if last == "h" else ("e", "c"), slots)
        count = prod(shape[1:]) * chosen
        assert there.where["c"].shape == (devices, -(-count // experts))
        of_slot = 3 if last == "h" else 1
        assert replace(there, slots=slots).elements == count * of_slot
        assert [np.count_nonzero(array) for array in there.array] == [count * of_slot] * devices
        there = replace(
            there, array=np.where(there.array == 0, 5, there.array)
        )  # what is empty is left
        back = to_tokens(there, tokens.indices, slots, Residues())
        assert all(np.array_equal(back.where[i], at[i]) for i in tokens.indices)
        if last == "h":
            assert np.array_equal(back.array, tokens.array * chosen % PRIME)
        else:
            own = slots.choices[at["b"][:, :, None], at["s"][:, None]]
            is_chosen = (own[..., None] == np.arange(experts)).any(-2)
            assert np.array_equal(back.array, np.where(is_chosen, tokens.array, 0))


# ------------------------------------------------------------------------ what is kept
def programs(model, axes, again="none"):
    """The parts, distributed; an embedding takes nothing from which it could be made again."""
    axes = tuple(MODEL_AXES[a] if isinstance(a, str) else a for a in axes)
    return tuple(program_of(part, axes, again if part.takes else "none") for part in parts(model))


@examples(40)
@given(
    st.sampled_from(VARIANTS),
    st.sampled_from(["dp", "tp", "cp"]),
    st.sampled_from(["none", "attention", "all", "sliced"]),
    st.data(),
)
def test_backward_cannot_run_without_anything_that_is_kept(model, axis, again, data):
    model = replace(model, hidden=2, feed_forward=2, kv_heads=2, heads=2, experts=0)
    found = list(programs(model, [axis], again))
    number = data.draw(st.sampled_from([i for i, program in enumerate(found) if program.kept]))
    program = found[number]
    lost = data.draw(st.sampled_from(program.kept))
    found[number] = replace(program, kept=tuple(v for v in program.kept if v != lost))
    if lost.role is not Role.CONSTANT:
        with pytest.raises(LayoutError, match="is not there"):
            check_program(found[number])
    mesh = {program.axes[0].name: 2}
    plan = Plan(model, found[0].axes, mesh, again, 2, 2)
    sizes = (mesh, 2, 2, Residues())
    run = DistributedModel(model, tuple(found), *sizes, replicated(plan), MIXED_ADAM)
    with pytest.raises(ValueError, match=r"not there|not kept"):
        run.step()


def test_a_table_that_is_the_same_along_an_index_takes_room_once_and_no_other_may_be():
    axis, value = MODEL_AXES["dp"], Value("mask", ("b", "g"), Role.CONSTANT, 2, repeats=("g",))
    tables = TransformerTables(Residues(), PLAIN, 4, 2)
    grid = Grid([program_of(layer(PLAIN), (axis,))], {axis.name: 2}, tables.sizes | {"g": 3})
    devices, lies = Devices(grid, tables, Network(2)), {axis.name: along("b")}
    placed = devices.place(value, lies, np.tile(np.arange(4)[:, None], 3))
    assert (placed.array.shape, placed.bytes) == ((2, 2, 3), 2 * 2)
    with pytest.raises(ValueError, match="not the same along g"):
        devices.place(value, lies, np.arange(12).reshape(4, 3))


def test_the_moments_of_training_have_samples_of_their_own():
    tables = TransformerTables(Residues(), VARIANTS[1], 2, 3)
    moments = [Moment(0, 0), Moment(0, 1), Moment(1, 0)]
    words = [tables.words(moment).tobytes() for moment in moments]
    masks = [tables.mask("a_mask", "bsh", layer, m).tobytes() for m in moments for layer in (0, 1)]
    assert len(set(words)) == len(words)
    assert len(set(masks)) == len(masks)
