"""A family of models: what its fields are called, what absent ones are, what its code fixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_model.reading.fields import Fields

QKV, OUTPUT, MLP = frozenset({"qkv"}), frozenset({"output"}), frozenset({"mlp"})
ROUTER = frozenset({"router"})
ATTENTION, EVERYWHERE = QKV | OUTPUT, QKV | OUTPUT | MLP
SHARES, RESULTS, WORDS = frozenset({"shares"}), frozenset({"output"}), frozenset({"words"})
Places = frozenset[str]
Has = Mapping[str, Any]  # fields of a model, or of a configuration


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
    its own that change neither weights nor work.
    """

    architecture: str
    fields: Mapping[str, str] = field(default_factory=dict)
    has: Has = field(default_factory=dict)
    functions: tuple[str, ...] = ("hidden_act",)
    function: str = "silu"
    kv_heads: int | None = None
    null_kv_heads: bool = True  # may be null, for all heads
    all_kv_heads: bool = False  # there is no field for them
    head_dim: int | None = None
    no_head_dim: bool = False  # there is no field for it
    even: bool = False  # heads divide the hidden size, also where head_dim is given
    wide: bool = False  # the MLP is four times the hidden size, if that is absent or null
    tied: bool = False
    biases: Mapping[str, tuple[bool, Places]] = field(default_factory=dict)
    dropout: Mapping[str, tuple[float, Places]] = field(
        default_factory=lambda: {"attention_dropout": (0.0, SHARES)}
    )
    windows: Windows | None = None
    experts: str = ""  # what the MLP of an expert is wide, if there are experts
    only: Has = field(default_factory=dict)
    more: Callable[[Fields], Has] = lambda fields: {}
    harmless: frozenset[str] = frozenset()
