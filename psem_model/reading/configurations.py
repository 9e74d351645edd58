"""Shapes of models from their published configurations.

A configuration is a Hugging Face config.json. Each of its fields is read, or known to change neither
weights nor work, or refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from os.path import exists
from pathlib import Path
from typing import Any, NamedTuple

from psem_model.reading.angles import require_angles, turned
from psem_model.reading.families import FAMILIES, OTHERS, WHOLE, Family, Windows
from psem_model.reading.fields import (
    ATTENTION,
    BYTES_OF,
    HARMLESS,
    MOST_LISTED,
    NEVER_NULL,
    PLAIN,
    Fields,
)
from psem_model.text.errors import TOO_DEEP, TOO_MANY_DIGITS, BadInput, nearest, quoted
from psem_model.text.files import named, read_text
from psem_model.text.places import EXAMPLES
from spec.models.transformer import STRAIGHT, USUAL, Transformer

FORM = "a model's config.json"
KERNEL = re.compile(r"[\w.-]+/[\w.:@|-]+", re.ASCII)  # of a hub


def shape(fields: Fields, family: Family) -> Transformer:
    """The model that the fields describe, as the family's code reads them. Raises BadInput."""

    def name(standard: str, usual: str) -> str:
        return family.fields.get(standard, usual)

    hidden = fields.size(name("hidden", "hidden_size"))
    heads = fields.size(name("heads", "num_attention_heads"))
    layers = fields.layers(name("layers", "num_hidden_layers"))
    if family.even:
        _divided(fields, family)
    feed_forward = name("feed_forward", family.experts or "intermediate_size")
    of_experts = name("experts", "num_local_experts")
    experts = fields.size(of_experts) if family.experts else 0
    chosen = fields.size("num_experts_per_tok") if family.experts else 0
    if chosen > experts:
        raise fields.wrong("num_experts_per_tok", f"at most {of_experts}, {experts}")
    biases = (at for name, (is_, at) in family.biases.items() if fields.flag(name, is_))
    dropout = (at for name, (odds, at) in family.dropout.items() if fields.drops(name, odds))
    found: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads if family.all_kv_heads else _kv_heads(fields, family, heads),
        "head_dim": (of_head := _head_dim(fields, family)),
        "rotary": turned(fields, family, of_head),
        "feed_forward": fields.size_or(feed_forward, lambda: 4 * hidden)
        if family.wide
        else fields.size(feed_forward),
        "vocabulary": fields.size("vocab_size"),
        "function": fields.function(family.functions, family.function),
        "tied": fields.flag("tie_word_embeddings", family.tied),
        "dropout": frozenset[str]().union(*dropout),
        "windows": _windows(fields, family, family.windows, layers) if family.windows else (),
        "experts": experts,
        "chosen": chosen,
    }
    found |= family.has
    found["biases"] = frozenset[str](found.get("biases", ())).union(*biases)
    model = Transformer(**{**found, **family.more(fields)})
    _require_pairs(fields, family, model)
    return model


def _require_pairs(fields: Fields, family: Family, model: Transformer) -> None:
    """Raise BadInput where features of a head are turned, and are no pairs."""
    turned, heads = model.turned_features, family.fields.get("heads", "num_attention_heads")
    is_turned = model.turned and any(STRAIGHT not in kind for kind in model.kinds or (USUAL,))
    if is_turned and turned % 2:
        names = "qk_rope_head_dim", "head_dim", heads
        name = next(name for name in names if fields.get(name) is not None)
        raise fields.wrong(name, f"an even number of features to turn in each head, not {turned}")


def _divided(fields: Fields, family: Family) -> int:
    hidden = family.fields.get("hidden", "hidden_size")
    return fields.divided(hidden, family.fields.get("heads", "num_attention_heads"))


def _head_dim(fields: Fields, family: Family) -> int:
    if family.no_head_dim:
        return _divided(fields, family)
    if family.head_dim:  # then it is a number, not null
        return fields.size("head_dim") if "head_dim" in fields.given else family.head_dim
    return fields.size_or("head_dim", lambda: _divided(fields, family))


def _kv_heads(fields: Fields, family: Family, heads: int) -> int:
    name, expected = "num_key_value_heads", f"a divisor of num_attention_heads, {heads}"
    if name in fields.given:
        absent = fields.get(name) is None and family.null_kv_heads
        kv_heads = heads if absent else fields.size(name)
        if heads % kv_heads:
            raise fields.wrong(name, expected)
    else:
        kv_heads = family.kv_heads or heads
        if heads % kv_heads:
            raise fields.missing(name, f"{expected} (absent, it is {kv_heads})")
    return kv_heads


def _windows(fields: Fields, family: Family, rule: Windows, layers: int) -> tuple[int, ...]:
    """How many of the latest tokens each of the layers sees, in turn; 0: all."""
    size = fields.size_or("sliding_window", lambda: 0)
    if "sliding_window" not in fields.given:
        size = rule.size or 0
    if rule.switched and not fields.flag("use_sliding_window", False):
        size = 0
    first = fields.count("max_window_layers", 28) if rule.first else 0
    every = fields.size_or(rule.pattern, lambda: rule.every) if rule.pattern else rule.every
    if every > MOST_LISTED:
        raise fields.wrong(rule.pattern, f"at most {MOST_LISTED:,}")
    if family.windowed and fields.get("layer_types") is not None:
        return _listed(fields, family.windowed, size, layers)
    if not size or first >= layers or every == 1:
        return ()
    if every:
        return (*[size] * (every - 1), 0)
    if first and layers > MOST_LISTED:
        raise fields.wrong("max_window_layers", f"0 in a model of {layers:,} layers")
    return (*[0] * first, *[size] * (layers - first)) if first else (size,)


def _listed(fields: Fields, windowed: str, size: int, layers: int) -> tuple[int, ...]:
    types, expected = fields.get("layer_types"), f"a list of {layers:,} of {WHOLE} and {windowed}"
    if not isinstance(types, list) or len(types) != layers:
        raise fields.wrong("layer_types", expected)
    if any(each not in (WHOLE, windowed) for each in types):
        raise fields.wrong("layer_types", expected)
    if not size and windowed in types:
        raise fields.wrong("layer_types", f"{WHOLE} alone, as there is no sliding_window")
    found = tuple(size if each == windowed else 0 for each in types)
    return found if any(found) else ()


def packaged() -> dict[str, Path]:
    """The configurations that are packaged, by their names."""
    return {path.stem: path for path in sorted((EXAMPLES / "configurations").glob("*.json"))}


class Configuration(NamedTuple):
    """An architecture family, a shape; the type in which weights are stored, if that is said, and by
    what attention is computed.
    """

    family: str
    model: Transformer
    stored: str | None
    attention: str | None


def read(path: str) -> Configuration:
    """What a config.json describes.

    `path`: a file, or the name of a packaged one, such as llama-3-70b. Raises BadInput with one line.
    """
    shipped = packaged().get(path.removesuffix(".json"))
    where = str(shipped) if shipped and not exists(path) else path
    near = nearest(path, packaged()) if where == path and not exists(path) else ""
    if near:
        raise BadInput(
            f"{named(path)}: neither a file nor a packaged model; expected {FORM}, or the name of a "
            f"packaged one; nearest: {near}"
        )
    fields = Fields(path, _content(where, FORM))
    name = _family(fields)
    family = FAMILIES[name]
    for other, value in family.only.items():
        fields.only(other, value)
    for other, value in PLAIN.items():
        if other not in family.harmless:
            fields.only(other, value)
    for other in (types := ("torch_dtype", "dtype")):
        fields.only(other, *BYTES_OF)
    said = [*filter(None, map(fields.get, types))]
    if len({*said}) > 1:
        raise fields.wrong("torch_dtype", f'what dtype says: "{said[1]}"')
    model = shape(fields, family)
    for field in sorted(NEVER_NULL | family.never_null):
        fields.require_value(field)
    if family.base:
        require_angles(fields, family, model)
    if family.pads:
        _require_pad(fields, int(model.vocabulary))
    _require_known(fields, family)
    quantised = fields.get("quantization_config")  # of a family that has such weights: of its kind
    stored = quantised["quant_method"] if quantised else said[0] if said else None
    return Configuration(name, model, stored, _attention(fields))


def _attention(fields: Fields) -> str | None:
    """By what transformers computes attention, if that is said. (It sets the private name last.)"""
    public, private = "attn_implementation", "_attn_implementation"
    for name in (public, private):
        by = fields.get(name)
        if by is not None and by.removeprefix("paged|") not in ATTENTION and not KERNEL.fullmatch(by):
            said = " or ".join(f'"{each}"' for each in ATTENTION)
            raise fields.wrong(name, f"{said}, or the name of a kernel, as owner/name")
    by = fields.get(private if private in fields.given else public)
    return None if by is None else by.removeprefix("paged|")


def _require_pad(fields: Fields, words: int) -> None:
    """Raise BadInput for a word that is left out, and is none. (torch.nn.Embedding: padding_idx)"""
    given = fields.get("pad_token_id")
    if given is not None and (type(given) is not int or not -words <= given < words):
        raise fields.wrong("pad_token_id", f"the number of one of {words:,} words, or null")


def _require_known(fields: Fields, family: Family) -> None:
    """Raise BadInput for a field that was not read, is not null, and may change something."""
    known = fields.read | HARMLESS | family.harmless
    for name, value in fields.given.items():
        if name in known and name not in fields.read and value is not None:
            fields.require_type(name)
        if name not in known and value is not None:
            near = nearest(name, known)
            close = f"; nearest: {quoted(near)}" if near else ""
            raise fields.wrong(name, f"no such field: what it changes is not known{close}")


def _content(path: str, expected: str) -> dict[str, Any]:
    def wrong(given: str) -> BadInput:
        return BadInput(f"{named(path)}: given {given}; expected {FORM}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise wrong(f"the key {quoted(key)} {'twice' if times == 2 else f'{times:,} times'}")
        return dict(pairs)

    text = read_text(path, expected)
    try:
        content = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise wrong(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise wrong(f"text that is not JSON: {error}") from None
    except ValueError:  # of a number
        raise wrong(TOO_MANY_DIGITS) from None
    if not isinstance(content, dict):
        raise wrong("JSON that is no object")
    return content


def _family(fields: Fields) -> str:
    """The name of the family, from `model_type` or else from `architectures`, which must agree."""
    by_class = {family.architecture: name for name, family in FAMILIES.items()}
    named, classes = fields.get("model_type"), fields.get("architectures")
    if named is not None:
        if isinstance(named, str) and named in OTHERS:
            raise fields.wrong("model_type", f"another model: {OTHERS[named]}")
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
