"""Angles are read where transformers makes them, and refused by name where it makes none."""

from __future__ import annotations

import pytest

from psem_model.reading.angles import PARTIAL
from psem_model.text.errors import BadInput


def test_a_number_by_which_angles_are_made_may_be_null_beside_another(shape):
    angles = {"rope_type": "default", "rope_theta": 1e4}
    assert shape("llama-2-7b", rope_theta=None, rope_parameters=angles) == shape("llama-2-7b")


SCALED = {
    "rope_theta": 1e4,
    "factor": 8.0,
    "original_max_position_embeddings": 4096,
    "mscale_all_dim": 1.0,
    **{"low_freq_factor": 1.0, "high_freq_factor": 4.0},
    **{"long_factor": [1.0] * 64, "short_factor": [1.0] * 64},
}


@pytest.mark.parametrize(
    ("name", "kind", "refused", "taken"),  # as transformers 5.23 refuses and takes them
    [
        ("llama-2-7b", "default", ("rope_theta", "rope_type"), ("factor", "partial_rotary_factor")),
        ("llama-2-7b", "linear", ("factor", "partial_rotary_factor", "rope_theta"), ("beta_fast",)),
        ("qwen3-8b", "dynamic", ("factor", "rope_type"), ("attention_factor",)),
        ("llama-2-7b", "llama3", ("factor", "high_freq_factor", "low_freq_factor"), ("mscale",)),
        ("gpt-oss-20b", "yarn", ("original_max_position_embeddings",), ("factor", "truncate")),
        ("deepseek-v3", "yarn", ("factor", "rope_theta"), ("beta_fast", "beta_slow", "mscale_all_dim")),
        ("phi-4", "longrope", ("long_factor", "short_factor"), ("original_max_position_embeddings",)),
        ("pythia-160m", "default", ("partial_rotary_factor", "rope_theta"), ("factor",)),
    ],
)
@pytest.mark.parametrize("where", ["rope_parameters", "rope_scaling"])
def test_null_is_refused_in_angles_where_they_cannot_be_computed(
    shape, where, name, kind, refused, taken
):
    def given(field):
        return {
            "rope_parameters": None,
            "rope_scaling": None,
            where: {"rope_type": kind, **SCALED, field: None},
        }

    for field in refused:
        with pytest.raises(BadInput, match=f"{where}, {field}: given null; expected a value"):
            shape(name, **given(field))
    for field in taken:
        assert shape(name, **given(field)) == shape(name)


@pytest.mark.parametrize(
    ("beside", "within", "where"),
    [({"rope_theta": 1.0}, {}, "rope_theta"), ({}, {"rope_theta": 1.0}, "rope_scaling, rope_theta")],
)
def test_yarn_takes_no_base_of_which_the_logarithm_is_zero(shape, beside, within, where):
    yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64, **within}
    with pytest.raises(BadInput, match=rf"{where}: given 1\.0; expected another number"):
        shape("llama-2-7b", rope_parameters=None, rope_scaling=yarn, **beside)
    shape("llama-2-7b", rope_parameters=None, rope_scaling=yarn | {"rope_theta": 2.0}, **beside)


def test_angles_are_of_the_first_object_that_is_not_empty_and_of_each_kind_of_layers(shape):
    wrong, right = {"rope_type": "linear", "factor": None}, {"rope_type": "default", "rope_theta": 1e4}
    assert shape("llama-2-7b", rope_scaling=right, rope_parameters=wrong) == shape("llama-2-7b")
    with pytest.raises(BadInput, match="rope_scaling, factor: given null"):
        shape("llama-2-7b", rope_scaling=wrong, rope_parameters=right)
    of_kinds = {"full_attention": wrong, "sliding_attention": right}
    with pytest.raises(BadInput, match="rope_parameters, full_attention, factor: given null"):
        shape("gemma-3-1b-pt", rope_parameters=of_kinds)
    none = shape("gemma-3-1b-pt", rope_parameters=of_kinds | {"full_attention": None})
    assert none == shape("gemma-3-1b-pt")


LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 8.0, "partial_rotary_factor": 1.0}
DEFAULT = {"rope_type": "default", "rope_theta": 1e4}


@pytest.mark.parametrize("field", ["factor", "rope_theta", "partial_rotary_factor", "rope_type"])
def test_of_gemma_3_null_is_refused_in_angles_of_a_kind_of_layers_alone(shape, field):
    """What transformers 5.23 was seen to refuse, and not to read."""
    wrong = LINEAR | {field: None}
    path = f"{field}: given null; expected a value"
    for where, of in (
        ("rope_scaling", {"rope_scaling": wrong}),
        ("rope_parameters, full_attention", {"rope_parameters": {"full_attention": wrong}}),
        ("rope_parameters, sliding_attention", {"rope_parameters": {"sliding_attention": wrong}}),
    ):
        with pytest.raises(BadInput, match=f"{where}, {path}"):
            shape("gemma-3-1b-pt", **of)
    of_kinds = {"full_attention": wrong, "sliding_attention": DEFAULT}
    unread = (
        {"rope_scaling": of_kinds},
        {"rope_parameters": wrong},
        {"rope_parameters": of_kinds, "rope_scaling": LINEAR},
    )
    for angles in unread:
        assert shape("gemma-3-1b-pt", **angles) == shape("gemma-3-1b-pt")
    assert shape("llama-2-7b", rope_parameters=of_kinds) == shape("llama-2-7b")  # no kinds of layers


FULL, WINDOWED = {"full_attention": DEFAULT}, {"sliding_attention": DEFAULT}
NO_KIND, NO_BASE = {"rope_type": None}, {"rope_type": "default"}
ALL_FULL, ALL_WINDOWED = ({"layer_types": [f"{kind}_attention"] * 26} for kind in ("full", "sliding"))


@pytest.mark.parametrize(
    (
        "name",
        "given",
        "where",
    ),  # as transformers 5.23 was seen to refuse, or, of no place, to take them
    [
        ("gemma-3-1b-pt", {"rope_theta": None}, "rope_theta"),
        ("gemma-3-1b-pt", {"rope_theta": None, "rope_parameters": WINDOWED}, "rope_theta"),
        ("gemma-3-1b-pt", {"rope_theta": None, "rope_parameters": FULL}, ""),
        ("gemma-3-1b-pt", {"rope_theta": None, "rope_scaling": DEFAULT}, ""),
        ("gemma-3-1b-pt", {"rope_local_base_freq": None}, "rope_local_base_freq"),
        ("gemma-3-1b-pt", {"rope_local_base_freq": None, "rope_parameters": WINDOWED}, ""),
        ("gemma-3-1b-pt", ALL_FULL | {"rope_local_base_freq": None}, ""),
        ("gemma-3-1b-pt", ALL_WINDOWED | {"rope_theta": None}, ""),
        ("gemma-3-1b-pt", ALL_WINDOWED | {"rope_scaling": NO_KIND}, ""),
        ("gemma-3-1b-pt", ALL_FULL | {"rope_parameters": {"sliding_attention": NO_KIND}}, ""),
        ("gemma-3-1b-pt", {"num_hidden_layers": 5, "rope_scaling": NO_KIND}, ""),
        ("falcon-rw-1b", {"rope_parameters": NO_KIND}, "rope_parameters, rope_type"),
        ("falcon-rw-1b", {"rope_theta": None}, "rope_theta"),
        ("falcon-rw-1b", {"rope_theta": None, "rope_parameters": DEFAULT}, ""),
        ("llama-2-7b", {"rope_theta": None, "rope_scaling": NO_BASE}, "rope_theta"),
        (
            "llama-2-7b",
            {"rope_theta": None, "rope_scaling": NO_BASE, "rope_parameters": DEFAULT},
            "rope_theta",
        ),
        ("llama-2-7b", {"rope_theta": None, "rope_scaling": {}, "rope_parameters": DEFAULT}, ""),
        ("pythia-160m", {"rotary_emb_base": None}, "rotary_emb_base"),
        ("pythia-160m", {"rotary_emb_base": None, "rope_parameters": DEFAULT}, ""),
        ("pythia-160m", {"rope_theta": None}, ""),
        ("pythia-160m", {"rotary_pct": None}, "rotary_pct"),
        ("pythia-160m", {"rotary_pct": None, "rope_parameters": {PARTIAL: 0.25}}, ""),
        ("phi-4", {PARTIAL: None}, PARTIAL),
        ("phi-4", {PARTIAL: None, "rope_parameters": LINEAR | NO_BASE}, ""),
    ],
)
def test_null_beside_angles_is_refused_where_no_object_that_counts_says_what_it_is(
    shape, name, given, where
):
    if where:
        with pytest.raises(BadInput, match=f", {where}: given null; expected a value"):
            shape(name, **given)
    else:
        kept = {key: given[key] for key in given if not key.startswith(("rope", "rotary", PARTIAL))}
        assert shape(name, **given) == shape(name, **kept)


def test_a_length_that_phi_3_has_beside_its_angles_is_never_null(shape):
    length = "original_max_position_embeddings"
    with pytest.raises(BadInput, match=f"{length}: given null"):
        shape("phi-4", **{length: None, "rope_parameters": DEFAULT | {length: 4096}})


@pytest.mark.parametrize("scaling", [{}, DEFAULT])
@pytest.mark.parametrize("kinds", [{}, DEFAULT, WINDOWED, {"full_attention": None}])
def test_of_gemma_3_scaling_is_put_into_an_object_that_is_there(shape, scaling, kinds):
    with pytest.raises(BadInput, match=r"full_attention.* expected an object: rope_scaling is put"):
        shape("gemma-3-1b-pt", rope_scaling=scaling, rope_parameters=kinds)
    assert shape("gemma-3-1b-pt", rope_parameters=kinds) == shape("gemma-3-1b-pt")
    assert shape("gemma-3-1b-pt", rope_scaling=scaling) == shape("gemma-3-1b-pt")


@pytest.mark.parametrize("field", ["factor", "type"])
def test_of_gemma_3_a_type_of_angles_has_one_name_in_scaling(shape, field):
    """By its older name it is not read: angles are the default's."""
    old = {"type": "linear", "rope_theta": 1e4, "factor": 8.0, field: None}
    assert shape("gemma-3-1b-pt", rope_scaling=old) == shape("gemma-3-1b-pt")
    with pytest.raises(BadInput, match=f"{field}: given null"):
        shape("llama-2-7b", rope_scaling=old)


LENGTH = "original_max_position_embeddings"
YARN = {"rope_type": "yarn", "factor": 4.0}
LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG = {"long_factor": [1.5] * 64, "short_factor": [1.0] * 64}
LONG_ROPE = {"rope_type": "longrope"} | LONG
ONE_ROPE = {"rope_type": "longrope", "long_factor": [1.5], "short_factor": [1.0]}
INNER = {"full_attention": DEFAULT}
CHUNKED = {"chunked_attention": DEFAULT}
NO_FACTOR = {"rope_type": "linear"}


@pytest.mark.parametrize(
    ("name", "angles", "words"),  # as transformers 5.23 was seen to refuse, or, of no words, to take
    [
        # objects of kinds of layers that there are: what is beside them counts, and is given nothing
        ("qwen2-7b", INNER, "rope_type is missing"),
        ("qwen3-8b", INNER, "rope_type is missing"),
        ("gemma-2-2b", INNER, "rope_type is missing"),
        ("gpt-oss-20b", {"sliding_attention": None}, "rope_type is missing"),
        ("llama-4-scout", CHUNKED, "rope_type is missing"),
        ("llama-4-scout", {"sliding_attention": DEFAULT}, ""),
        ("qwen2-7b", {"sliding_attention": DEFAULT}, ""),
        ("qwen2-7b", INNER | {"type": "default", "rope_theta": 1e4}, "rope_type is missing"),
        ("qwen2-7b", INNER | {"rope_type": "default"}, "rope_theta is missing"),
        ("qwen2-7b", INNER | DEFAULT, ""),
        ("qwen2-7b", INNER | YARN | {"rope_theta": 1e4}, f"{LENGTH} is missing"),
        ("qwen2-7b", INNER | YARN | {"rope_theta": 1e4, LENGTH: 4096}, ""),
        # and they are compared
        ("qwen2-7b", {"full_attention": NO_FACTOR} | DEFAULT, "full_attention: factor is missing"),
        ("qwen2-7b", {"full_attention": NO_FACTOR | {"factor": None}} | DEFAULT, ""),
        ("qwen2-7b", {"full_attention": YARN | {LENGTH: None}} | DEFAULT, f"{LENGTH}: given null"),
        ("qwen2-7b", {"full_attention": {"rope_type": None}} | DEFAULT, ""),
        ("qwen2-7b", {"full_attention": 3} | DEFAULT, "full_attention: given 3; expected an object"),
        ("gemma-3-1b-pt", {"full_attention": NO_FACTOR}, "full_attention: factor is missing"),
        # what a type needs
        ("llama-2-7b", NO_FACTOR, "factor is missing"),
        ("llama-2-7b", {"rope_type": "yarn"}, "factor is missing"),
        ("llama-2-7b", YARN, ""),  # its length is put there
        ("llama-2-7b", LLAMA_3 | {"low_freq_factor": ...}, "low_freq_factor is missing"),
        ("llama-2-7b", LLAMA_3, ""),
        ("llama-2-7b", LLAMA_3 | {"factor": "a"}, 'factor: given "a"; expected a number above 0'),
        ("llama-2-7b", {"rope_type": "proportional"}, ""),
        ("llama-2-7b", {"rope_type": "proportional", "factor": None}, "factor: given null"),
        ("llama-2-7b", {"rope_type": "longrope"}, "long_factor is missing"),
        ("llama-2-7b", LONG_ROPE | {"short_factor": [1.0] * 63}, "a list of 1 or 64 numbers"),
        ("llama-2-7b", LONG_ROPE | {"short_factor": [1.0]}, ""),
        ("llama-2-7b", {"rope_type": "axial"}, "rope_type: given 'axial'; expected one of"),
        ("llama-2-7b", {"rope_type": "lama3"}, "nearest: llama3"),
        ("llama-2-7b", {"type": ["yarn"]}, 'type: given ["yarn"]; expected one of'),
        ("mixtral-8x7b-v0.1", YARN, "head_dim is missing"),
        ("mixtral-8x7b-v0.1", NO_FACTOR | {"factor": 2.0}, ""),
        ("deepseek-v3", ONE_ROPE | {"mscale_all_dim": 1.0}, "factor is missing; expected a value, be"),
        # Phi-3 knows a default and lists
        ("phi-4", YARN, "long_factor is missing"),
        ("phi-4", {"rope_type": "yarn"} | LONG, ""),
        ("phi-4", {"type": "su"} | LONG, f"{LENGTH} is missing"),
        ("phi-4", {"type": "su", LENGTH: 4096} | LONG, ""),
        ("phi-4", NO_FACTOR | {"factor": 2.0}, "rope_type: given 'linear'; expected one of default"),
        ("phi-4", LONG_ROPE | {"long_factor": [1.0]}, "a list of 64 numbers"),
        ("phi-4", {"long_factor": [1.0]}, "a list of 64 numbers"),
        ("phi-4", {"long_factor": "a"}, "a list of numbers"),
    ],
)
@pytest.mark.parametrize("where", ["rope_parameters", "rope_scaling"])
def test_angles_are_refused_where_transformers_makes_none(shape, where, name, angles, words):
    if name == "gemma-3-1b-pt":
        where = "rope_parameters"
    given = {
        "rope_parameters": None,
        "rope_scaling": None,
        where: {key: value for key, value in angles.items() if value is not ...},
    }
    if words:
        with pytest.raises(BadInput) as refused:
            shape(name, **given)
        assert words in str(refused.value)
    else:
        assert shape(name, **given) == shape(name)


def test_the_length_beside_angles_counts_before_their_own(shape):
    for angles in YARN, LLAMA_3, LONG_ROPE:
        with pytest.raises(BadInput, match=f"config.json, {LENGTH}: given null"):
            shape("llama-2-7b", rope_scaling=angles, **{LENGTH: None})
    assert shape("llama-2-7b", rope_scaling=LINEAR, **{LENGTH: None}) == shape("llama-2-7b")
    own = LONG_ROPE | {LENGTH: None}
    assert shape("llama-2-7b", rope_scaling=own, **{LENGTH: 4096}) == shape("llama-2-7b")
    with pytest.raises(BadInput, match=f"rope_scaling, {LENGTH}: given null"):
        shape("llama-2-7b", rope_scaling=YARN | {LENGTH: None}, **{LENGTH: 4096})


def test_gpt_oss_has_angles_of_its_own_unless_an_empty_object_is_given(shape):
    given = {"rope_scaling": None, LENGTH: None}
    with pytest.raises(BadInput, match=f"config.json, {LENGTH}: given null"):
        shape("gpt-oss-20b", **given)
    assert shape("gpt-oss-20b", rope_parameters={}, **given) == shape("gpt-oss-20b")


def test_a_share_is_that_of_the_object_that_counts(shape):
    """As many columns as transformers' cosines have."""
    half = {PARTIAL: 0.5}
    assert shape("phi-4", rope_parameters=half).rotary == 64
    assert shape("phi-4", rope_parameters=half, rope_scaling=DEFAULT).rotary is None
    assert shape("pythia-160m", rope_scaling={"rope_type": "proportional"}).rotary is None


@pytest.mark.parametrize(
    "name", ["mistral-7b-v0.1", "mixtral-8x7b-v0.1", "phi-3-mini-4k-instruct", "qwen3-30b-a3b"]
)
def test_kinds_of_layers_are_refused_in_families_that_do_not_read_them(shape, name):
    layers = int(shape(name).layers)
    with pytest.raises(BadInput, match=r"layer_types: given .* expected no such field"):
        shape(name, layer_types=["full_attention"] * layers)


def test_of_two_features_that_are_turned_one_factor_is_expected(shape):
    with pytest.raises(BadInput, match=r"expected a list of 1 number$"):
        shape("llama-2-7b", head_dim=2, rope_parameters=LONG_ROPE | {"short_factor": [1.0] * 2})
