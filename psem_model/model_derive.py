"""A derived program as text: each operation, how its result lies, and where it is moved."""

from __future__ import annotations

from psem_model.expressions import Expression
from psem_model.figures import table
from psem_model.inputs import BadInput, choose
from psem_model.model_inputs import RECOMPUTE
from psem_model.model_predict import plain_name
from spec.distribute import distribute
from spec.layouts import WHOLE
from spec.programs import Line, Move, Program
from spec.transformer import EMBEDDING, HEAD, LAYER, Transformer, parts
from spec.values import Role, Value

PARTS = (EMBEDDING, LAYER, HEAD)


def program(
    found: Expression, block: str, experts: bool, part: str, recompute: str, moves: bool
) -> list[str]:
    """The derived program of one part of a model on the axes of a product such as tp or cp*tp.

    `moves`: only where values are moved.
    """
    axes = found.product.cuts
    if not axes or len(axes) < len(found.product.factors):
        raise BadInput(
            f"derive: given {found.text!r}; expected strategies that cut the model, such as tp: what "
            "places the training states is derived alone, and pp leaves each part as it is"
        )
    again = RECOMPUTE[choose("--recompute", recompute, RECOMPUTE)]
    of_name = {found.name: found for found in parts(shape(block, experts))}
    chosen = of_name[choose("--part", part, PARTS)]
    derived = distribute(chosen, axes, again if part == LAYER else RECOMPUTE["none"])
    out = [
        f"{found.text}, {part}: " + "; ".join(found.meanings),
        "R whole on each device, S(i) cut along i, P a term of a sum",
        "b samples, s positions, u those of keys, h features, g r d heads, f the MLP's, v words",
    ]
    for title, lines in (
        ("forward", derived.forward),
        ("backward", derived.backward),
        ("finish, once a step", derived.finish),
    ):
        rows = [_row(derived, line) for line in lines if isinstance(line, Move) or not moves]
        if rows:
            out += ["", title, *table(rows)]
    if moves:
        return out
    kept = [f"{_shown(value)} {_lies(derived, value)}".rstrip() for value in derived.kept]
    return [*out, "", "kept for backward", *(f"  {line}" for line in kept)]


def shape(block: str, experts: bool) -> Transformer:
    """A model of some kind; how large it is makes no difference to what is derived."""
    llama = choose("--block", block, ("gpt", "llama")) == "llama"
    return Transformer(
        layers=4,
        hidden=8,
        heads=2,
        kv_heads=2,
        head_dim=4,
        feed_forward=32,
        vocabulary=16,
        gated=llama,
        function="silu" if llama else "gelu",
        norm="rms_norm" if llama else "layer_norm",
        biases=frozenset() if llama else frozenset({"qkv", "output", "mlp"}),
        positions=0 if llama else 4,
        tied=not llama,
        dropout=not llama,
        experts=4 if experts else 0,
        chosen=2 if experts else 0,
    )


def _lies(found: Program, value: Value) -> str:
    """How a value lies along the axes along which it is not whole."""
    lies = {**found.lies.get(value, {})}
    return ", ".join(f"{axis} {lie}" for axis, lie in lies.items() if lie != WHOLE)


def _shown(value: Value) -> str:
    return f"{plain_name(value)}[{' '.join(value.indices)}]"


def _row(found: Program, line: Line) -> tuple[str, ...]:
    if isinstance(line, Move):
        moved = f"{line.collective} over {line.axis}"
        return f"> {_shown(line.value)}", moved, f"{line.before} -> {line.after}"
    reads = ", ".join(plain_name(v) for v in line.reads if not _is_free(v))
    does = " ".join(w for w in (line.does.value, line.function, "backward" * line.backward) if w)
    return f"  {_shown(line.makes)}", f"{does}({reads})", _lies(found, line.makes) or "R"


def _is_free(value: Value) -> bool:
    return value.role is Role.CONSTANT and value.name.startswith("ones")
