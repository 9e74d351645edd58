"""Costs of derived programs: the proved forms in numbers, and broken rules that X6-X8, A1-A3 notice."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs.costs.exchanges import even_choices
from proofs.costs.model_symbols import MODELS, Symbols
from proofs.language.programs import GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.model_costs import elements, elements_moved, is_at_most, kept_bytes, weight_elements
from spec.derivation.programs import EVERYTHING, NOTHING, PAIRS, program_of
from spec.devices.layouts import along
from spec.language.moves import RANKS, Move
from spec.models.parts import layer
from spec.models.transformer import Transformer
from spec.models.values import Value
from spec.plans.model_strategies import MODEL_AXES
from tests.support.broken import notices
from tests.support.examples import few

counts = st.integers(1, 6)


@st.composite
def sizes(draw, /, **kind):
    """A model, a micro-batch and a number of devices that divides whatever is cut; as fractions."""
    n, b, s, r, d, h, f = (draw(counts) for _ in range(7))
    kv, sequence, batch = n * draw(counts), n * s, n * b
    numbers = (1, h, kv * r, kv, d, n * f, n * draw(counts))
    exact: list = [Fraction(number) for number in numbers]
    return replace(Transformer(*exact), **kind), Fraction(batch), Fraction(sequence), Fraction(n)


def sent(program, lines, indices, n):
    mesh = {axis.name: n for axis in program.axes}
    moves = [line for line in lines if isinstance(line, Move)]
    return sum(elements_moved(move, program, indices, mesh) for move in moves)


def layer_on(model, strategy, again=NOTHING):
    return program_of(layer(model), (MODEL_AXES[strategy],), again)


@given(sizes())
def test_ulysses_sends_an_nth_of_what_sequence_parallelism_gathers_and_scatters(drawn):
    model, b, s, n = drawn
    model = replace(model, kv_heads=model.heads, hidden=model.heads * model.head_dim)
    indices = model.sizes(b, s)
    swap, tp_sp = layer_on(model, "cp-all-to-all"), layer_on(model, "tp+sp")
    assert n * sent(swap, swap.forward, indices, n) == sent(tp_sp, tp_sp.forward, indices, n)


@given(sizes(), st.sampled_from(["tp", "tp+sp"]))
def test_whole_numbers_that_divide_give_the_closed_form(drawn, strategy):
    model, b, s, n = drawn
    program = layer_on(model, strategy)
    assume(not int(b * s * model.hidden) % int(n))
    whole = {index: int(size) for index, size in model.sizes(b, s).items()}
    found = sent(program, program.forward, whole, int(n))
    assert found == 4 * b * s * model.hidden * (n - 1) / n


@given(sizes(gated=True, norm="rms_norm", biases=frozenset(), experts=6, chosen=2))
def test_experts_have_a_slot_for_each_token_they_are_chosen_for(drawn):
    model, b, s, n = drawn
    indices = model.sizes(b, s)
    assert indices["e"] * indices["c"] == b * s * 2
    program = layer_on(model, "ep")
    each = b * s * 2 * model.hidden / n * (n - 1) / n
    assert sent(program, program.forward, indices, n) == 2 * each


@given(st.integers(1, 12), st.integers(1, 12), st.permutations(["a", "b"]), st.integers(1, 4))
def test_every_position_is_in_one_devices_own_slice(features, words, order, devices):
    value, mesh = Value("x", ("h", "s")), {"a": 2, "b": devices}
    for cut in ({"a": "h", "b": "h"}, {"a": "h", "b": "s"}):
        lies = {axis: along(cut[axis]) for axis in order}
        places = [{"a": i, "b": j} for i in range(2) for j in range(devices)]
        own = [elements(value, lies, {"h": features, "s": words}, mesh, place) for place in places]
        assert sum(own) == features * words
        assert max(own) <= elements(value, lies, {"h": features, "s": words}, mesh)


@given(sizes())
def test_one_device_sends_nothing(drawn):
    model, b, s, _ = drawn
    for strategy in MODEL_AXES:
        program = layer_on(model, strategy)
        assert sent(program, program.lines, model.sizes(b, s), Fraction(1)) == 0


@given(sizes(), st.sampled_from(sorted(MODEL_AXES)))
def test_recomputing_more_keeps_less(drawn, strategy):
    model, b, s, n = drawn
    indices, mesh = model.sizes(b, s), {MODEL_AXES[strategy].name: n}
    kept = [
        kept_bytes(layer_on(model, strategy, again), indices, mesh)
        for again in (NOTHING, PAIRS, EVERYTHING)
    ]
    # with a ring, pairs are made again turn by turn anyway
    assert kept[0] == kept[1] if strategy == "cp" else kept[0] > kept[1]
    assert kept[1] > kept[2]


@given(sizes())
def test_tensor_parallelism_cuts_all_weights_but_those_of_the_features_alone(drawn):
    model, b, s, n = drawn
    program = layer_on(model, "tp")
    indices = model.sizes(b, s)
    on_one, on_many = (weight_elements(program, indices, {"tensor": at}) for at in (Fraction(1), n))
    for weight, size in on_one.items():
        assert on_many[weight] == (size if weight.indices == ("h",) else size / n)


# ------------------------------------------------- what devices exchange for experts, at most
@pytest.mark.parametrize(("devices", "each"), few([(2, 1), (2, 2), (3, 1), (2, 3), (3, 2), (4, 1)]))
def test_devices_exchange_for_experts_as_much_as_even_choices_can_make_one_send(devices, each):
    """By all choices: tokens go where their experts are, and what those make comes back."""
    experts, hidden = devices * each, 3
    for count in range(1, experts + 1):
        model = Transformer(1, hidden, 1, 1, 1, 2, 4, experts=experts, chosen=1)
        program = program_of(layer(model), (MODEL_AXES["ep"],))
        indices, mesh = model.sizes(devices * count, 1), {"expert": devices}
        there, back = (line for line in program.forward if isinstance(line, Move))
        most = [0, 0]
        for chosen in even_choices(devices, experts, count):
            to = [[sum(of[i * each : (i + 1) * each]) for i in range(devices)] for of in chosen]
            for i in range(devices):
                most[0] = max(most[0], sum(to[i]) - to[i][i])
                most[1] = max(most[1], sum(of[i] for of in to) - to[i][i])
        sent = [elements_moved(move, program, indices, mesh) for move in (there, back)]
        assert sent == [hidden * slots for slots in most]
        uneven = count % experts != 0
        assert [is_at_most(move, program, indices, mesh) for move in (there, back)] == [uneven] * 2


# ------------------------------------------------------- what is moved along two axes, by hand
def sent_along(axes, b, s, h, k, sizes):
    """What one layer with experts sends along each axis, forward, backward and again."""
    model = Transformer(1, h, 4, 4, 4, 8, 0, experts=4, chosen=k)
    program = program_of(layer(model), tuple(MODEL_AXES[name] for name in axes))
    indices = model.sizes(b, s)
    found = dict.fromkeys(sizes, 0)
    for line in program.forward + program.backward:
        if isinstance(line, Move):
            found[line.axis] += elements_moved(line, program, indices, sizes)
    return found


def by_hand(b, s, h, k, t, e):
    """Of tp+sp * ep: a device has A = bsh/(te) of what layers hand on, and kA of what experts take.

    Tensor: attention gathers A forward, and again for backward, and its output's cotangent; it reduces
    and scatters to A its output, and the cotangent of what it took: 5 times (t - 1) A. Experts do the
    same with kA, of which they have had the tokens' all-to-all before they gather, and have not before
    they reduce and scatter: 5 times (t - 1) kA. Expert: tokens go to experts and come back, forward and
    backward, each time kA of which 1/e stays: 4 (e - 1)/e kA.
    """
    has = b * s * h // (t * e)
    return {"tensor": 5 * (t - 1) * (1 + k) * has, "expert": 4 * (e - 1) * k * has // e}


@given(counts, counts, counts, st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_tokens_go_to_their_experts_before_they_are_gathered(b, s, h, t, e):
    b, s, h, k = 4 * e * b, 4 * t * s, h, 2
    for axes in permutations(("tp+sp", "ep")):
        found = sent_along(axes, b, s, h, k, {"tensor": t, "expert": e})
        assert found == by_hand(b, s, h, k, t, e)


LATE = [order for order in permutations(RANKS) if order.index("all_gather") < order.index("all_to_all")]


@pytest.fixture
def derived_anew():
    """Programs are derived once, whatever the order of moves: none of another order is kept."""
    program_of.cache_clear()
    yield
    program_of.cache_clear()


@pytest.mark.parametrize("order", LATE[::7])
@pytest.mark.usefixtures("derived_anew")
def test_gathered_first_tokens_go_to_their_experts_several_times(order, monkeypatch):
    monkeypatch.setattr("spec.language.moves.RANKS", order)
    found = sent_along(("tp+sp", "ep"), 8, 8, 4, 2, {"tensor": 2, "expert": 2})
    assert found["expert"] > by_hand(8, 8, 4, 2, 2, 2)["expert"]


# ------------------------------------------------------------------- formulas that are not
@pytest.mark.parametrize(
    ("strategy", "formula"),
    [
        ("tp", lambda x: 4 * x.b * x.s * x.h),  # without (n - 1)/n
        ("tp", lambda x: 2 * x.passed * x.b * x.s * x.h),  # all-reduces of one ring
        ("tp+sp", lambda x: 4 * x.passed * x.b * x.s * x.h / x.n),  # slices of slices
        ("cp", lambda x: 2 * x.passed * x.b * x.s * x.a * x.d),  # keys for every head
        ("cp-all-to-all", lambda x: 4 * x.passed * x.b * x.s * x.h / x.n),  # a key for every head
    ],
)
def test_a_wrong_volume_is_not_proved(strategy, formula):
    for name, model in MODELS:
        x = Symbols(Kernel(f"twin_{name}"), model)
        program = x.program(strategy)
        with pytest.raises(KernelError, match="not proved"):
            x.sends({"wrong": (program, program.forward, formula(x))})


@pytest.mark.parametrize(
    "formula",
    [
        lambda sbh, pairs, n: sbh * (10 + 24 / n) + pairs,  # pairs on every device
        lambda sbh, pairs, n: (34 * sbh + pairs) / n,  # norms' inputs cut
        lambda sbh, pairs, n: sbh * (8 + 24 / n) + pairs / n,  # no masks
    ],
)
def test_a_wrong_size_of_activations_is_not_proved(formula):
    x = Symbols(Kernel("twin"), GPT, square=True)
    sbh, pairs = x.s * x.b * x.h, 5 * x.a * x.s * x.s * x.b
    with pytest.raises(KernelError, match="not proved"):
        x.k.prove("wrong", x.kept(x.program("tp")) == formula(sbh, pairs, x.n))


# -------------------------------------------------------------------------------- mutants
TENSOR, CONTEXT, EXPERT, KEPT = (
    "tensor_parallelism_moves_eight_of_a_layer",
    "context_parallelism_moves_keys_or_heads",
    "expert_parallelism_moves_tokens_twice",
    "layers_keep_these_activations",
)
MUTANTS = [
    # (what is wrong, file, the rule, the broken rule, claims that must notice)
    (
        "a collective sends one chunk",
        "model_costs.py",
        "return count * (has",
        "return 1 * (has",
        f"{TENSOR} {CONTEXT} {EXPERT}",
    ),
    (
        "a chunk is all that a device has",
        "model_costs.py",
        "(has if is_own else quotient(has, n))",
        "has",
        f"{TENSOR} {CONTEXT} {EXPERT}",
    ),
    (
        "slices are as large as the whole",
        "model_costs.py",
        "devices = devices * mesh[axis]",
        "devices = 1",
        f"{TENSOR} {CONTEXT} {EXPERT} {KEPT}",
    ),
    (
        "every element takes two bytes",
        "model_costs.py",
        "value.width * _elements",
        "2 * _elements",
        KEPT,
    ),
    (
        "masks are not kept",
        "derivation/programs.py",
        "elif value.role is not Role.CONSTANT or (",
        "elif value.role is not Role.CONSTANT and (",
        KEPT,
    ),
    (
        "norms are kept",
        "derivation/programs.py",
        "named = not self.names.isdisjoint((line.function, line.makes.name))",
        "named = False",
        KEPT,
    ),
    (
        "a turn has all slices",
        "model_costs.py",
        "{**mesh, **turns}",
        "{**mesh, **dict.fromkeys(turns, 1)}",
        CONTEXT,
    ),
    (
        "a ring's sums are home after its last turn",
        "collectives.py",
        "lambda n: 0 if n == 1 else n,",
        "ring_steps,",
        CONTEXT,
    ),
    (
        "what is gathered is always held",
        "derivation/programs.py",
        "not held and value.plain_name not in self.part.held",
        "False",
        f"{TENSOR} {CONTEXT} {KEPT}",
    ),
    (
        "heads are not brought",
        "needs.py",
        "if brought:",
        "if False:",
        CONTEXT,
    ),
    (
        "what layers hand on is on every device",
        "moves.py",
        "names = part.names_of(self.stream)",
        "names = ()",
        f"{TENSOR} {CONTEXT} {EXPERT} {KEPT}",
    ),
    (
        "slots lie on every device",
        "moves.py",
        "names = part.names_of(self.stream)",
        "names = (self.stream,)",
        EXPERT,
    ),
    (
        "heads stay whole",
        "model_strategies.py",
        "TENSOR = (KV_HEADS, *INSIDE_MLPS, VOCABULARY)",
        "TENSOR = (*INSIDE_MLPS, VOCABULARY)",
        f"{TENSOR} {KEPT}",
    ),
    (
        "experts are on every device",
        "model_strategies.py",
        '"ep": Axis("expert", (EXPERTS,), SAMPLES)',
        '"ep": Axis("expert", (), SAMPLES)',
        EXPERT,
    ),
    (
        "a mask takes two bytes",
        "parts.py",
        "*x.indices, width=1)",
        "*x.indices, width=2)",
        KEPT,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "file", "rule", "broken", "claims"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, claims):
    for function in claims.split():
        module = "activations" if function == KEPT else "model_costs"
        assert notices(f"proofs.costs.{module}", function, file, rule, broken), function


# -------------------------------------------------------------- what layers keep, tensor by tensor
# name: bytes of an element, and the index that tensor parallelism cuts; with sequence parallelism,
# or expert parallelism, the index that is cut
OF_ATTENTION = {
    "layer_in": (2, "", "s"),
    "values": (2, "g", "g"),
    "keys": (2, "g", "g"),
    "shares": (2, "g", "g"),
    "context": (2, "g", "g"),
    "middle": (2, "", "s"),
}
OF_GPT = OF_ATTENTION | {
    "attention_norm_biased": (2, "", "s"),
    "query_biased": (2, "g", "g"),
    "shares_mask": (1, "g", "g"),
    "shares_dropped": (2, "g", "g"),
    "output_biased_mask": (1, "", "s"),
    "mlp_norm_biased": (2, "", "s"),
    "up_biased": (2, "f", "f"),
    "active": (2, "f", "f"),
    "down_biased_mask": (1, "", "s"),
}
OF_LLAMA = OF_ATTENTION | {
    "attention_norm": (2, "", "s"),
    "query_turned": (2, "g", "g"),
    "mlp_norm": (2, "", "s"),
    "gate": (2, "f", "f"),
    "gate_open": (2, "f", "f"),
    "up": (2, "f", "f"),
    "gated": (2, "f", "f"),
}
OF_EXPERTS = OF_LLAMA | {
    "odds": (4, "", "s"),
    "slot_odds": (4, "", "c"),
    "sent": (2, "", "c"),
    "down": (2, "", "c"),
}
BY_EXPERTS = dict.fromkeys(OF_EXPERTS, "b") | {
    "slot_odds": "c",  # with the samples whose slots they weigh
    "sent": "e",
    **dict.fromkeys(("gate", "gate_open", "up", "gated"), "e"),
    "down": "c",
}
MIXTRAL = replace(LLAMA, experts=4, chosen=2)
BY_HAND = [
    (GPT, "tp", {name: (width, cut) for name, (width, cut, _) in OF_GPT.items()}),
    (GPT, "tp+sp", {name: (width, cut) for name, (width, _, cut) in OF_GPT.items()}),
    (LLAMA, "tp", {name: (width, cut) for name, (width, cut, _) in OF_LLAMA.items()}),
    (LLAMA, "tp+sp", {name: (width, cut) for name, (width, _, cut) in OF_LLAMA.items()}),
    (MIXTRAL, "tp", {name: (width, cut) for name, (width, cut, _) in OF_EXPERTS.items()}),
    (MIXTRAL, "tp+sp", {name: (width, cut) for name, (width, _, cut) in OF_EXPERTS.items()}),
    (MIXTRAL, "ep", {name: (OF_EXPERTS[name][0], cut) for name, cut in BY_EXPERTS.items()}),
]


@pytest.mark.parametrize(
    ("model", "strategy", "by_hand"), BY_HAND, ids=[f"{m.function}-{s}-{len(k)}" for m, s, k in BY_HAND]
)
def test_a_layer_keeps_these_tensors_and_no_others(model, strategy, by_hand):
    program, axis = layer_on(model, strategy), MODEL_AXES[strategy].name
    found = {v.plain_name: (v.width, program.lies[v][axis].index) for v in program.kept}
    assert found == by_hand
    assert len(found) == len(program.kept)


@pytest.mark.parametrize(
    ("strategy", "formula"),
    [
        ("", lambda x: x.b * x.s * (8 * x.h + 8 * x.d * x.a + 8 * x.f + 2 * x.a * x.s)),  # a key a head
        ("", lambda x: x.b * x.s * (8 * x.h + 4 * x.d * (x.a + x.kv) + 6 * x.f + 2 * x.a * x.s)),
        (
            "tp",  # norms' arguments cut
            lambda x: x.b * x.s * (8 * x.h + 4 * x.d * (x.a + x.kv) + 8 * x.f + 2 * x.a * x.s) / x.n,
        ),
    ],
)
def test_a_wrong_size_of_a_gated_layers_activations_is_not_proved(strategy, formula):
    x = Symbols(Kernel("twin"), LLAMA)
    with pytest.raises(KernelError, match="not proved"):
        x.keeps({"wrong": (x.program(strategy), formula(x))})
