"""A6: what a layer holds between the two parts of its backward, in closed form."""

from __future__ import annotations

from itertools import product

from proofs.claim import claim
from proofs.costs.model_costs import Symbols
from proofs.costs.value_lives import value_lives
from proofs.language.programs import GPT, LLAMA
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.checking.programs import check_program
from spec.costs.lifetimes import live
from spec.costs.model_costs import waiting_bytes
from spec.derivation.distribute import EVERYTHING, NOTHING, PAIRS, distribute
from spec.derivation.two_parts import in_two_parts
from spec.language.programs import Program
from spec.models.parts import layer
from spec.plans.model_strategies import MODEL_AXES

MESHES = ((), ("tp+sp",), ("cp",), ("cp", "tp+sp"))


@claim("A6")
def layers_hold_these_values_for_gradients_that_wait(k: Kernel) -> tuple[Theorem, ...]:
    """A GPT-like layer holds 32sbh bytes, sbh(8 + 24/n) with tensor parallelism.

    By hand, of 2 bytes each: what its matrices multiply, sbh three times and 4sbh, and the cotangents
    of what they make, sbh five times and 4sbh. Tensor parallelism cuts these but for what the two
    column-parallel products read and the cotangents of what the two row-parallel ones make; sequence
    parallelism cuts the former, too. A Llama-like layer holds bs(8h + 4d(a + kv) + 6f).
    (Claim A6; Qi et al., 2401.10241, table 1; the same rule as A1)
    """
    gpt = Symbols(k.part("gpt"), GPT, square=True)
    llama = Symbols(k.part("llama"), LLAMA)
    sbh, bsh, tokens = gpt.s * gpt.b * gpt.h, llama.b * llama.s * llama.h, llama.b * llama.s
    inner = tokens * (4 * llama.d * (llama.a + llama.kv) + 6 * llama.f)
    rows = (
        (gpt, "", 32 * sbh),
        (gpt, "tp", sbh * (8 + 24 / gpt.n)),
        (gpt, "tp+sp", sbh * (4 + 28 / gpt.n)),
        (llama, "", 8 * bsh + inner),
        (llama, "tp", 8 * bsh + inner / llama.n),
        (llama, "tp+sp", 4 * bsh + (4 * bsh + inner) / llama.n),
    )
    found = []
    for symbols, strategy, size in rows:
        program = check_program(in_two_parts(symbols.program(strategy)))
        held = waiting_bytes(program, symbols.sizes, symbols.mesh(program))
        name = f"{strategy.replace('+', '_') or 'one_device'}_holds"
        found.append(symbols.k.prove(name, held == size))
    for axis in MODEL_AXES:
        check_program(in_two_parts(gpt.program(axis)))
    for model, names, again in product((GPT, LLAMA), MESHES, (NOTHING, PAIRS, EVERYTHING)):
        _require_lives(k, distribute(layer(model), tuple(MODEL_AXES[name] for name in names), again))
    return tuple(found)


def _require_lives(k: Kernel, program: Program) -> None:
    """Raise KernelError unless what is there while lines run is what they still use, turn by turn."""
    for each in (program, in_two_parts(program)):
        if live(each) != value_lives(each):
            raise KernelError(f"{k.claim}: other values live on {[axis.name for axis in each.axes]}")
