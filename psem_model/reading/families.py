"""Families of models: what their fields are called, what absent ones are, what their code fixes.

`families.toml` has them; here is what their code makes of several fields together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_model.reading.fields import Fields
from psem_model.text.files import beside
from spec.models.transformer import DENSE, STRAIGHT, USUAL, USUAL_NORMS, Latent, LayerKind

Places = frozenset[str]
WHOLE = "full_attention"  # what `layer_types` calls a layer without a window
Has = Mapping[str, Any]  # fields of a model, or of a configuration


def _nothing(fields: Fields) -> Has:
    return {}


@dataclass(frozen=True)
class Windows:
    """How a family says which of the latest tokens a layer sees.

    `size`: of `sliding_window`, if absent. `switched`: only with `use_sliding_window`. `first`: the
    layers below `max_window_layers` see all. `every`: of so many layers the last sees all; if absent,
    where a field, `pattern`, says it.
    """

    size: int | None = None
    switched: bool = False
    first: bool = False
    every: int = 0
    pattern: str = ""


@dataclass(frozen=True)
class Family:
    """One architecture: its class with a language-model head, its fields, and what its code fixes.

    `fields`: what its fields are called, where not as in llama. `functions`: fields of the MLP's
    function, of which the first that is given counts. `function`, `kv_heads`, `head_dim`, `tied`: what
    they are if absent; no `kv_heads`: all heads; no `head_dim`: hidden / heads. `has`: of the model,
    whatever the fields say. `biases`, `dropout`: by their fields, what each is if absent, and where it
    puts them. `only`: fields that have no other value. `more`: what else is read. `harmless`: fields of
    its own that change neither weights nor work. `never_null`: fields that may be absent, but not null
    (transformers, configuration_utils.py: strict; those that are declared without None, or that fail
    where they are read). `pads`: its embedding leaves out the word of `pad_token_id`, which is one.
    """

    architecture: str
    fields: Mapping[str, str] = field(default_factory=dict)
    has: Has = field(default_factory=dict)
    functions: Iterable[str] = ("hidden_act",)
    function: str = "silu"
    kv_heads: int | None = None
    null_kv_heads: bool = True  # may be null, for all heads
    all_kv_heads: bool = False  # there is no field for them
    head_dim: int | None = None
    no_head_dim: bool = False  # there is no field for it
    base: str = "rope_theta"  # the field of the base of its angles, if it computes any
    rotary: str = ""  # the field of the share of a head's features that is turned, if it may be part
    rotary_share: float = 1.0  # that, if absent
    even: bool = False  # heads divide the hidden size, also where head_dim is given
    wide: bool = False  # the MLP is four times the hidden size, if that is absent or null
    tied: bool = False
    biases: Mapping[str, tuple[bool, Places]] = field(default_factory=dict)
    dropout: Mapping[str, tuple[float, Places]] = field(
        default_factory=lambda: {"attention_dropout": (0.0, frozenset({"shares"}))}
    )
    windows: Windows | None = None
    windowed: str = ""  # what `layer_types` calls a layer with a window, if there is such a field
    angles: Has = field(default_factory=dict)  # what its object of angles is, if there is none
    types_of_angles: Mapping[str, str] = field(default_factory=dict)  # if it knows no others
    types_of_head_dim: frozenset[str] = frozenset()  # types of angles that need `head_dim`
    experts: str = ""  # what the MLP of an expert is wide, if there are experts
    only: Has = field(default_factory=dict)
    more: Callable[[Fields], Has] = _nothing
    harmless: frozenset[str] = frozenset()
    never_null: frozenset[str] = frozenset()
    pads: bool = True


def _capped(scores: float | None, logits: float | None) -> Callable[[Fields], Has]:
    """Scores and logits are capped unless their bound is null; what bounds are, if absent."""
    bounds = (
        ("attn_logit_softcapping", "scores", scores),
        ("final_logit_softcapping", "logits", logits),
    )

    def read(fields: Fields) -> Has:
        return {"capped": frozenset(at for name, at, bound in bounds if fields.bound(name, bound))}

    return read


def _falcon(fields: Fields) -> Has:
    """Parallel blocks with a norm or two, keys of one head or some, distances or angles."""
    new, distances = fields.flag("new_decoder_architecture", False), fields.flag("alibi", False)
    parallel, one_key = fields.flag("parallel_attn", True), fields.flag("multi_query", True)
    heads = fields.size("num_attention_heads")
    norms = fields.get("num_ln_in_parallel_attn")
    if new and not parallel:
        raise fields.wrong("new_decoder_architecture", "false where parallel_attn is")
    if norms is not None and (type(norms) is not int or norms not in ((1, 2) if new else (1,))):
        raise fields.wrong("num_ln_in_parallel_attn", "1 or 2" if new else "1")
    if new:
        kv_heads = fields.size_or("num_kv_heads", lambda: heads)
        if heads % kv_heads:
            raise fields.wrong("num_kv_heads", f"a divisor of num_attention_heads, {heads}")
    else:
        kv_heads = 1 if one_key else heads
        fields.only("num_kv_heads", kv_heads, heads)  # not looked at
    two = not parallel or (new and norms != 1)
    return {
        "kv_heads": kv_heads,
        "parallel": parallel,
        "norms": USUAL_NORMS if two else frozenset({"attention"}),
        "distances": distances,
        "angles": not distances,
        "unread_angles": distances,
        "numbered_heads": new or one_key,
        "spread_keys": new,
        "masked": new or kv_heads == heads,
    }


def _opt(fields: Fields) -> Has:
    """As many learned places as there are positions, and two more; norms of blocks, or of sums."""
    hidden, before = fields.size("hidden_size"), fields.flag("do_layer_norm_before", True)
    features = fields.size_or("word_embed_proj_dim", lambda: hidden)
    ends = not fields.flag("_remove_final_layer_norm", False)
    return {
        "positions": fields.size("max_position_embeddings"),
        "spare": 2,
        "norms": USUAL_NORMS if before else frozenset({"attention_sum", "mlp_sum"}),
        "unnormed": not (before and ends),
        "word_features": 0 if features == hidden else features,
    }


def _bloom(fields: Fields) -> Has:
    """The MLP is four times as wide as the layers, whatever else it is said to be."""
    fields.only("n_inner", 4 * fields.size("n_embed"))
    return {}


def _gpt2(fields: Fields) -> Has:
    return {"positions": fields.size("n_positions")}


def _neox(fields: Fields) -> Has:
    return {"parallel": fields.flag("use_parallel_residual", True)}


def _of_kinds(layers: int, dense: int, kind: Callable[[int], LayerKind]) -> Has:
    """Layers of some kinds, by their numbers; those without experts have an MLP of `dense` features."""
    kinds = tuple(map(kind, range(layers)))
    has: dict[str, Any] = {}
    if all(DENSE in each for each in kinds):
        kinds = tuple(each - {DENSE} for each in kinds)
        has = {"experts": 0, "chosen": 0, "shared": 0, "feed_forward": dense}
    elif any(DENSE in each for each in kinds):
        has = {"dense": dense}
    return has | {"kinds": kinds if any(kinds) else ()}


def _groups(fields: Fields, of_each: int = 1, groups: int = 0, best: int | None = None) -> None:
    """Raise BadInput unless experts are in groups, and those of some of the groups are chosen from.

    `of_each`: of how many experts' odds a group has its own. `groups`, `best`: how many there are, and
    are chosen from, if absent.
    """
    experts = fields.size("n_routed_experts")
    count = groups if groups and "n_group" not in fields.given else fields.size("n_group")
    if experts % count or experts // count < of_each:
        each = f", with {of_each} of them or more for each group" if of_each > 1 else ""
        raise fields.wrong("n_group", f"a divisor of n_routed_experts, {experts}{each}")
    if fields.count("topk_group", best) > count:
        raise fields.wrong("topk_group", f"at most n_group, {count}")


def _of_groups(fields: Fields, odds: str) -> bool:
    """Whether odds of experts that are in other groups are masked, and not only while some are chosen.

    (transformers: DeepseekV2TopkRouter, DeepseekV3TopkRouter)
    """
    if odds == "sigmoid":
        _groups(fields, of_each=2, groups=8, best=4)
        return False
    ways = "greedy", "group_limited_greedy"
    masked = fields.choice("topk_method", fields.get("topk_method", ways[0]), ways) == ways[1]
    if masked:
        _groups(fields)
    return masked


def _deepseek(odds: str, first: int, shared: int) -> Callable[[Fields], Has]:
    """Latent attention; experts, some of them shared, but in the first layers.

    `first`, `shared`: what two fields are, if absent.
    """

    def read(fields: Fields) -> Has:
        straight, turned = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
        fields.only("head_dim", turned)
        fields.only("qk_head_dim", straight + turned)
        heads = fields.size("num_attention_heads")
        fields.only("num_key_value_heads", heads)
        if "q_lora_rank" not in fields.given:
            raise fields.missing("q_lora_rank", "a whole number, or null")
        queries = fields.size_or("q_lora_rank", lambda: 0)
        values = fields.size("v_head_dim")
        fields.only("scoring_func", odds)
        more = fields.count("num_nextn_predict_layers", 0)
        layers = fields.listed("num_hidden_layers")
        without = fields.count("first_k_dense_replace", first)
        if fields.count("n_shared_experts", shared) == 0:
            raise fields.wrong("n_shared_experts", "at least 1: an MLP of no features is not modelled")

        def kind(layer: int) -> LayerKind:
            return frozenset({DENSE}) if layer < without else USUAL

        fields.stored("fp8")
        return {
            "head_dim": turned,
            "latent": Latent(fields.size("kv_lora_rank"), queries, straight, values),
            "odds": odds,
            "normed": odds == "sigmoid" and fields.flag("norm_topk_prob", True),
            "shared": fields.count("n_shared_experts", shared) * fields.size("moe_intermediate_size"),
            "of_groups": without < layers and _of_groups(fields, odds),
            "further": more,
            **_of_kinds(layers, fields.size("intermediate_size"), kind),
        }

    return read


def _llama4(fields: Fields) -> Has:
    """Layers without experts, and layers whose queries and keys are not turned, among others."""
    layers = fields.listed("num_hidden_layers")
    step = fields.size_or("interleave_moe_layer_step", lambda: 1)
    with_experts = fields.numbers("moe_layers", layers)
    if with_experts is None:
        with_experts = [*range(step - 1, layers, step)]
    every = fields.size_or("no_rope_layer_interval", lambda: 4)
    turned = fields.numbers("no_rope_layers", 2)
    turned = turned or [int((layer + 1) % every != 0) for layer in range(layers)]
    if len(turned) != layers:
        raise fields.wrong("no_rope_layers", f"a list of {layers:,} of 0 and 1")
    types = ["chunked_attention" if each else "full_attention" for each in turned]
    fields.only("layer_types", types)
    tuning = fields.get("attn_temperature_tuning", True)
    if not isinstance(tuning, int):
        raise fields.wrong("attn_temperature_tuning", "true or false, or a whole number")
    chunk = fields.size("attention_chunk_size") if "attention_chunk_size" in fields.given else 8192
    norms = {"turned"} if fields.flag("use_qk_norm", True) else set()

    def kind(layer: int) -> LayerKind:
        differs = {DENSE: layer not in with_experts, STRAIGHT: not turned[layer]}
        return frozenset(name for name, does in differs.items() if does)

    return {
        "odds": "sigmoid",
        "weighed_first": True,
        "shared": fields.size("intermediate_size"),
        "norms": USUAL_NORMS | norms,
        "windows": tuple(chunk * each for each in turned),
        "chunked": True,
        "tempered": bool(tuning),
        **_of_kinds(layers, fields.size("intermediate_size_mlp"), kind),
    }


def _qwen3_moe(fields: Fields) -> Has:
    return {"normed": fields.flag("norm_topk_prob", False)}


def _gpt_oss(fields: Fields) -> Has:
    """What else a field is called, and how weights are stored."""
    fields.only("experts_per_token", fields.size("num_experts_per_tok"))
    fields.stored("mxfp4")
    return {}


MORE: dict[str, Callable[[Fields], Has]] = {
    "gemma2": _capped(50.0, 30.0),
    "gemma3_text": _capped(None, None),
    "gpt2": _gpt2,
    "gpt_neox": _neox,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "llama4_text": _llama4,
    "gpt_oss": _gpt_oss,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek("softmax", 0, 2),
    "deepseek_v3": _deepseek("sigmoid", 3, 1),
}


def _family(name: str, table: Mapping[str, Any]) -> Family:
    """A family as `families.toml` has it. Raises TypeError for a key that is none of a family's."""
    given = {key: _sets(value) for key, value in table.items() if key != "like"}
    for key in {"biases", "dropout"} & given.keys():
        given[key] = {field_: (of["absent"], of["at"]) for field_, of in given[key].items()}
    if "windows" in given:
        given["windows"] = Windows(**given["windows"])
    lists = {key: table[key] for key in ("functions", "only") if key in table}
    return Family(**{**given, **lists, "more": MORE.get(name, _nothing)})


def _sets(value: Any) -> Any:
    """A value of a file, with its lists as sets."""
    if isinstance(value, dict):
        return {key: _sets(each) for key, each in value.items()}
    return frozenset(value) if isinstance(value, list) else value


TABLES = beside(__file__, "families.toml")
FAMILIES = {name: _family(name, TABLES.get(of.get("like", ""), {}) | of) for name, of in TABLES.items()}
# what is known not to be one of them, and why
OTHERS = {
    "gemma3": "an encoder of images is not modelled; its text model alone is, as gemma3_text",
    "llama4": "an encoder of images is not modelled; its text model alone is, as llama4_text",
    "qwen2_moe": "a gate of the expert that all tokens share is not modelled",
}
