"""Shapes of models from their published configurations.

A configuration is a Hugging Face config.json. What a field is called, what it is when it is absent
and what a family's code fixes: transformers, src/transformers/models/*/configuration_*.py and
modeling_*.py. Fields that change no shape (windows, scaled angles, token ids) are not looked at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psem_model.reading.words import LARGEST, MOST_LAYERS
from psem_model.text.errors import BadInput, choose, nearest, quoted, shortened
from psem_model.text.files import named, read_text
from psem_model.text.places import EXAMPLES
from spec.transformer import Transformer

FORM = "a model's config.json"
FUNCTIONS = {"silu": "silu", "gelu": "gelu", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu"}
SAME = {  # two names of one field
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
    "num_local_experts": "num_experts",
}
# what else would change a shape, and what it is where it does not
PLAIN: Mapping[str, Any] = {
    "add_cross_attention": False,
    "auto_map": None,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": None,
    **dict.fromkeys(("decoder", "generator", "text_config", "text_encoder")),  # a model within
}


@dataclass(frozen=True)
class Fields:
    """The fields of a configuration; each is checked when it is read."""

    path: str
    given: Mapping[str, Any]

    def wrong(self, name: str, expected: str) -> BadInput:
        """What to raise for a field that is not as it should be."""
        given = shortened(json.dumps(self.given[name]))
        return BadInput(f"{named(self.path)}, {name}: given {given}; expected {expected}")

    def missing(self, name: str, expected: str) -> BadInput:
        """What to raise for a field that should be there."""
        near = nearest(name, self.given)
        close = f"; nearest: {quoted(near)}" if near else ""
        return BadInput(f"{named(self.path)}: {name} is missing; expected {expected}{close}")

    def size(self, name: str) -> int:
        """A whole number of at least 1."""
        expected = f"a whole number, at least 1, below 1e{LARGEST}"
        other = SAME.get(name, name)
        if name not in self.given:
            if other not in self.given:
                raise self.missing(name, expected)
            name = other
        value = self.given[name]
        if type(value) is not int or not 1 <= value < 10**LARGEST:
            raise self.wrong(name, expected)
        if self.given.get(other, value) != value:
            raise self.wrong(other, f"{value}, as {name} is")
        return value

    def layers(self, name: str) -> int:
        """A number of layers."""
        layers = self.size(name)
        if layers > MOST_LAYERS:
            raise self.wrong(
                name if name in self.given else SAME[name], f"at most {MOST_LAYERS:,} layers"
            )
        return layers

    def size_or(self, name: str, otherwise: Callable[[], int]) -> int:
        """A size that may be null or absent."""
        return otherwise() if self.given.get(name) is None else self.size(name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.given.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def drops(self, name: str, default: float) -> bool:
        """Whether a probability of dropout is above 0."""
        value = self.given.get(name, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise self.wrong(name, "a probability, below 1")
        return bool(value > 0)

    def choice(self, name: str, value: object, names: Iterable[str]) -> str:
        """One of some names: the value of a field, or one that the field lists."""
        if not isinstance(value, str):
            raise self.wrong(name, f"one of {', '.join(names)}")
        return choose(f"{named(self.path)}, {name}", value, names)

    def function(self, name: str, default: str) -> str:
        """The function of the MLP."""
        return FUNCTIONS[self.choice(name, self.given.get(name, default), FUNCTIONS)]

    def divided(self, name: str, by: str) -> int:
        """One size over another that divides it."""
        whole, divisor = self.size(name), self.size(by)
        if whole % divisor:
            raise self.wrong(by if by in self.given else SAME[by], f"a divisor of {name}, {whole}")
        return whole // divisor

    def only(self, name: str, value: object) -> None:
        """Refuse any other value of a field than this one, null or none."""
        if self.given.get(name) not in (None, value):
            expected = "none" if value in (None, {}) else json.dumps(value)
            raise self.wrong(name, f"{expected}: no other shape is known")


@dataclass(frozen=True)
class Family:
    """One architecture: its class with a language-model head, how its fields are read, its defaults."""

    architecture: str
    shape: Callable[[Fields, Family], Transformer]
    kv_heads: int | None = None  # if absent; none: all heads
    null_kv_heads: bool = True  # may be null, for all heads
    even: bool = False  # heads divide the hidden size, also where head_dim is given
    biases: frozenset[str] = frozenset({"qkv", "output"})  # what `attention_bias` adds
    fixed: Mapping[str, bool] = field(default_factory=dict)
    experts: bool = False


def _kv_heads(fields: Fields, family: Family, heads: int) -> int:
    name, expected = "num_key_value_heads", f"a divisor of num_attention_heads, {heads}"
    if name in fields.given:
        absent = fields.given[name] is None and family.null_kv_heads
        kv_heads = heads if absent else fields.size(name)
        if heads % kv_heads:
            raise fields.wrong(name, expected)
    else:
        kv_heads = family.kv_heads or heads
        if heads % kv_heads:
            raise fields.missing(name, f"{expected} (absent, it is {kv_heads})")
    return kv_heads


def _rotary(fields: Fields, family: Family) -> Transformer:
    """Gated MLPs, RMS norms, positions as angles: llama and what follows it."""
    if fields.drops("attention_dropout", 0.0):
        raise fields.wrong("attention_dropout", "0: dropout of attention alone is not known")
    heads = fields.size("num_attention_heads")
    attention = fields.flag("attention_bias", family.fixed.get("attention_bias", False))
    mlp = fields.flag("mlp_bias", False)
    experts = fields.size("num_local_experts") if family.experts else 0
    chosen = fields.size("num_experts_per_tok") if family.experts else 0
    if chosen > experts:
        raise fields.wrong("num_experts_per_tok", f"at most num_local_experts, {experts}")
    if family.even:
        fields.divided("hidden_size", "num_attention_heads")
    return Transformer(
        layers=fields.layers("num_hidden_layers"),
        hidden=fields.size("hidden_size"),
        heads=heads,
        kv_heads=_kv_heads(fields, family, heads),
        head_dim=fields.size_or(
            "head_dim", lambda: fields.divided("hidden_size", "num_attention_heads")
        ),
        feed_forward=fields.size("intermediate_size"),
        vocabulary=fields.size("vocab_size"),
        gated=True,
        function=fields.function("hidden_act", "silu"),
        norm="rms_norm",
        biases=(family.biases if attention else frozenset()) | ({"mlp"} if mlp else set()),
        tied=fields.flag("tie_word_embeddings", False),
        experts=experts,
        chosen=chosen,
    )


def _gpt2(fields: Fields, family: Family) -> Transformer:
    """Learned positions, biases everywhere, layer norms, dropout in three places or in none."""
    dropped = {name: fields.drops(name, 0.1) for name in ("embd_pdrop", "attn_pdrop", "resid_pdrop")}
    if len(set(dropped.values())) > 1:
        rates = ", ".join(f"{name} {'above 0' if is_ else '0'}" for name, is_ in dropped.items())
        raise BadInput(f"{named(fields.path)}: given {rates}; expected all above 0, or all 0")
    heads, hidden = fields.size("n_head"), fields.size("n_embd")
    return Transformer(
        layers=fields.layers("n_layer"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=fields.divided("n_embd", "n_head"),
        feed_forward=fields.size_or("n_inner", lambda: 4 * hidden),
        vocabulary=fields.size("vocab_size"),
        function=fields.function("activation_function", "gelu_new"),
        positions=fields.size("n_positions"),
        angles=False,
        tied=fields.flag("tie_word_embeddings", True),
        dropout=dropped["resid_pdrop"],
    )


UNBIASED = {"attention_bias": False, "mlp_bias": False}
FAMILIES = {
    "llama": Family("LlamaForCausalLM", _rotary, even=True),
    "mistral": Family("MistralForCausalLM", _rotary, kv_heads=8, null_kv_heads=False, fixed=UNBIASED),
    "qwen2": Family(
        "Qwen2ForCausalLM",
        _rotary,
        kv_heads=32,
        biases=frozenset({"qkv"}),
        fixed=UNBIASED | {"attention_bias": True},
    ),
    "mixtral": Family(
        "MixtralForCausalLM", _rotary, kv_heads=8, null_kv_heads=False, fixed=UNBIASED, experts=True
    ),
    "gpt2": Family("GPT2LMHeadModel", _gpt2),
}


def packaged() -> dict[str, Path]:
    """The configurations that are packaged, by their names."""
    return {path.stem: path for path in sorted((EXAMPLES / "configurations").glob("*.json"))}


def read(path: str) -> tuple[str, Transformer]:
    """The architecture family and the shape that a config.json describes.

    `path`: a file, or the name of a packaged one, such as llama-3-70b. Raises BadInput with one line.
    """
    shipped = packaged().get(path.removesuffix(".json"))
    fields = Fields(path, _content(path if shipped is None or Path(path).exists() else str(shipped)))
    name = _family(fields)
    family = FAMILIES[name]
    for other, value in {**PLAIN, **family.fixed}.items():
        fields.only(other, value)
    return name, family.shape(fields, family)


def _content(path: str) -> dict[str, Any]:
    def wrong(given: str) -> BadInput:
        return BadInput(f"{named(path)}: given {given}; expected {FORM}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise wrong(f"the key {quoted(key)} {'twice' if times == 2 else f'{times:,} times'}")
        return dict(pairs)

    text = read_text(path, FORM)
    try:
        content = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise wrong("too many brackets in each other") from None
    except ValueError as error:
        raise wrong(f"text that is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise wrong("JSON that is no object")
    return content


def _family(fields: Fields) -> str:
    """The name of the family, from `model_type` or else from `architectures`, which must agree."""
    by_class = {family.architecture: name for name, family in FAMILIES.items()}
    named, classes = fields.given.get("model_type"), fields.given.get("architectures")
    if named is not None:
        named = fields.choice("model_type", named, FAMILIES)
        expected = [FAMILIES[named].architecture]
        if classes not in (None, expected):
            raise fields.wrong("architectures", f"{json.dumps(expected)}, of {named}")
        return named
    if classes is None:
        raise fields.missing("model_type", f"one of {', '.join(FAMILIES)}")
    if not isinstance(classes, list) or len(classes) != 1:
        raise fields.wrong("architectures", f"a list of one of {', '.join(by_class)}")
    return by_class[fields.choice("architectures", classes[0], by_class)]
