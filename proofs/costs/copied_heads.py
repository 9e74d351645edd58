"""X9: what tensor parallelism sends over more devices than there are key-value heads."""

from __future__ import annotations

from itertools import product

from proofs.claim import claim
from proofs.costs.model_symbols import MODELS, Symbols, sums
from proofs.costs.reciprocals import divisor
from proofs.language.programs import GPT
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.costs.model_costs import elements_moved
from spec.derivation.programs import program_of
from spec.language.moves import Move
from spec.language.schedule import Rest
from spec.models.parts import layer, parts
from spec.models.states import State
from spec.models.transformer import Transformer
from spec.plans.compose import factor, with_copies
from spec.plans.model_strategies import MODEL_AXES, copies_within

SHAPE = Transformer(4, 8, 4, 2, 2, 32, 16, experts=4, chosen=2, shared=8)
COPIES = copies_within(factor("tp+sp", "tensor").cuts or MODEL_AXES["tp+sp"]).name


@claim("X9")
def copied_heads_send_what_heads_of_their_own_do(k: Kernel) -> tuple[Theorem, ...]:
    """On n times m devices, m for each slice of key-value heads, X6's volumes of as many devices.

    Key-value heads are cut n ways, and the heads that share one m ways within. Gradients of keys' and
    values' weights are all-reduced over the m copies of a slice. (Claim X9; the layout rule)
    """
    _require_copies(k)
    _require_all_else_is_cut(k)
    found: list[Theorem] = []
    for name, model in MODELS:
        for strategy in ("tp", "tp+sp"):
            words = strategy.replace("+", "_")
            x = Symbols(k.part(f"{name}_{words}"), model)
            m = divisor(x.k, "m")
            axes = (MODEL_AXES[strategy], copies_within(MODEL_AXES[strategy]))
            program = program_of(layer(x.shape), axes)
            mesh = dict(zip((axis.name for axis in axes), (x.n, m), strict=True))
            # what moves along both axes, one after the other, is as along one of all devices
            given = [m * m.reciprocal == 1] if strategy == "tp+sp" else []
            devices = x.n * m
            twice = 4 * ((devices - 1) / devices) * (x.b * x.s * x.h)
            backward = twice if strategy == "tp" else twice + twice / 2
            for phase, lines, volume in (
                ("forward", program.forward, twice),
                ("backward", program.backward, backward),
            ):
                moves = [line for line in lines if isinstance(line, Move)]
                sent = sum(elements_moved(move, program, x.sizes, mesh) for move in moves)
                found.append(x.k.prove(f"{phase}_sends", sent == volume, given))
            offsets = 1 if model is GPT else 0
            of_copies = [move for move in sums(program) if move.value.indices[-2:] == ("g", "d")]
            over = {move.axis for move in of_copies}
            sent = sum(elements_moved(move, program, x.sizes, mesh) for move in of_copies)
            weights = 2 * (x.h + offsets) * (x.kv * x.d) / x.n
            summed = 2 * ((m - 1) / m) * weights
            if over != {axes[1].name}:
                raise KernelError(f"{k.claim}: gradients of keys and values are summed over {over}")
            found.append(x.k.prove("gradients_of_keys_and_values_send", sent == summed))
    return tuple(found)


def _require_copies(k: Kernel) -> None:
    """Raise KernelError unless devices have copies where there are too few heads for a slice each.

    As many devices as heads, times as many as share the heads of a group evenly; or it is one axis.
    """
    plan, outside = factor("zero1+all", "batch") * factor("tp+sp", "tensor"), factor("tp", "outside")
    inside, experts = factor("tp", "inside"), factor("ep", "experts")
    for devices, heads, group in product(range(2, 9), range(1, 5), range(1, 5)):
        copies = [n for n in range(2, group + 1) if n * heads == devices and group % n == 0]
        placed, sizes = with_copies(plan, {"batch": 3, "tensor": devices}, heads, group)
        expected = {"batch": 3, "tensor": devices}
        if copies:
            expected |= {"tensor": heads, COPIES: copies[0]}
        summed = tuple(axis for axis in (COPIES,) if copies)
        cut = placed.states_of(summed).rest(State.OPTIMIZER).sharded
        streams = {f.cuts.stream for f in placed.factors if f.cuts}
        axes = (*expected,)
        cutting = placed.axes == axes and placed.cuts_weights == axes[1:]
        if sizes != expected or not cutting or cut != ("batch", *summed):
            raise KernelError(f"{k.claim}: {devices} devices, {heads} heads: {sizes}, cut along {cut}")
        if streams != {"s"}:
            raise KernelError(f"{k.claim}: copies of {heads} heads cut {streams} of what goes on")
        for name in ("zero1", "fsdp-hold", *(("zero-offload", "zero1+all", "hsdp") if copies else ())):
            several = ("replica",) if name == "hsdp" else ()
            along = factor("tp+sp", "tensor") * factor(name, *several, "tensor")  # cuts heads, states
            sizes = {"tensor": devices, **dict.fromkeys(several, 2)}
            of = with_copies(along, sizes, heads, group)[0].factors[-1]
            rest = of.states.rest(State.OPTIMIZER) if of.states else Rest()
            found = of.axes, rest.sharded, rest.host, of.states and of.states.hold, of.over_all
            says = name == "zero-offload", name == "fsdp-hold", name == "zero1+all"
            if found != ((*several, "tensor", *summed), ("tensor", *summed), *says):
                raise KernelError(f"{k.claim}: {devices} devices, {heads} heads: {name} is {found}")
        of_two = {"outside": 2, "batch": 3, "tensor": devices}  # within an axis that cuts them, too
        if with_copies(outside * plan, of_two, 2 * heads, group)[1] != {"outside": 2, **expected}:
            raise KernelError(f"{k.claim}: {devices} devices within 2, {2 * heads} heads: {of_two}")
        of_experts = {"experts": devices, "batch": 3, "tensor": devices}  # beside one that cuts none
        if with_copies(experts * plan, of_experts, heads, group)[1] != {"experts": devices, **expected}:
            raise KernelError(
                f"{k.claim}: {devices} devices, {heads} heads, beside experts: {of_experts}"
            )
        if copies:  # of one head then: two devices more have copies of it, if two share what is left
            two = {"inside": 1, "inside_copies": 2} if group % (2 * copies[0]) == 0 else {"inside": 2}
            of_both = {"batch": 3, "tensor": devices, "inside": 2}
            within = with_copies(plan * inside, of_both, heads, group)[1]
            if [*within.items()] != [*(expected | two).items()]:
                raise KernelError(f"{k.claim}: 2 devices within {devices}, {heads} heads: not {two}")


def _require_all_else_is_cut(k: Kernel) -> None:
    """Raise KernelError unless weights are cut, and gradients summed, along copies as along their axis,
    but for heads: along those that share a key-value head, if they have these.
    """
    for name, part in product(("tp", "tp+sp"), parts(SHAPE)):
        axes = MODEL_AXES[name], copies_within(MODEL_AXES[name])
        program = program_of(part, axes)
        for weight in part.weights:
            index, within = (each.rest(weight, part).index for each in axes)
            shares = "r" if "r" in weight.indices else ""
            if within != (shares if index == "g" else index):
                raise KernelError(f"{k.claim}: {weight} is cut along {within} within {index}")
            summed = [axis.name in program.summed_over(weight) for axis in axes]
            if name == "tp+sp" and summed != [not index, not within]:
                raise KernelError(f"{k.claim}: the gradient of {weight} is summed over {summed}")
            whole = [axis.name in program.whole_over(weight) for axis in axes]
            if whole != [not (index or summed[0]), not (within or summed[1])]:
                raise KernelError(f"{k.claim}: the gradient of {weight} is whole over {whole}")
