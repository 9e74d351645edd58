"""K5: what follows from what a profile says, of each word alone and with those that it goes with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from proofs.language.programs import GPT, LLAMA, WITH_EXPERTS
from proofs.language.small_parts import log_totals
from proofs.trusted.kernel import KernelError
from spec.models.parts import (
    BESIDE_OPERATIONS,
    BESIDE_ROUTES,
    MASK,
    PRODUCTS_IN_FULL,
    head,
    layer,
    parts,
)
from spec.models.profiles import TEXTBOOK, Padding, Profile, Samples, Units, realised, rows_of
from spec.models.states import MIXED_ADAM, POLICIES, State, custom_policy
from spec.models.transformer import MASKED
from spec.models.values import FULL, LOG_TOTAL, WRITTEN, Builder, Does, Operation, Role, Value

BY_SLICES = Padding.ELEMENT, Padding.ROW  # of each unit: others have owners
NO, YES = False, True
BOTH = NO, YES
ONE = frozenset({"one"})


def require_words_mean() -> None:
    """Raise KernelError unless what follows from a profile's words is what is listed."""
    for what, found, listed in (*_of_units(), *_of_plans(), *_of_models(), *_of_parts()):
        if found != listed:
            raise KernelError(f"profiles: {what}: {found}, not {listed}")


def of(**says: Any) -> Profile:
    return replace(TEXTBOOK, **says)


def _of_units() -> Iterator[tuple[str, Any, Any]]:
    """What has owners, or none of units, sums of chunks, and arrays."""
    every = [*product(Units, Padding, BOTH)]
    says = {
        each: of(units=each[0], padding=each[1], waits_whole=each[2], step_counts=each[2])
        for each in every
    }
    flat, others = (Padding.ELEMENT, Padding.VECTOR), {*Units} - {Units.PARAMETER}
    chunks = {*product({*Units} - {Units.BUCKET}, BY_SLICES, (YES,))}
    by_slices = {*product(Units, BY_SLICES, BOTH)}
    yield "owners", {each for each in every if not says[each].owners}, by_slices
    alike = {*product((Units.LARGEST,), BY_SLICES, BOTH)}
    yield "units", {each for each in every if not says[each].has_units}, alike
    yield "chunks", {each for each in every if says[each].sums_by_chunk}, chunks
    no_arrays = {*product(others, flat, (NO,))}
    yield "arrays", {each for each in every if not says[each].tells_arrays}, no_arrays
    copied = [
        has for has in product(BOTH, Units) if of(copies=has[0], units=has[1]).types(MIXED_ADAM).copied
    ]
    yield "copied", copied, [(YES, units) for units in Units if units is not Units.BUCKET]
    yield "a kernel of shares", of(inside=frozenset({"shares"})).has_kernel, NO
    book = TEXTBOOK.units, TEXTBOOK.copies_heads, TEXTBOOK.words_a_device, TEXTBOOK.elements_a_device
    yield "the textbook", book, (Units.LARGEST, YES, 1, 1)
    yield "made again", TEXTBOOK.again, {"layer_norm", "rms_norm"}


def _of_plans() -> Iterator[tuple[str, Any, Any]]:
    """What follows from a plan's optimizer, from stages, and of types."""
    said: list[dict[str, Any]] = [{"gathered": 2}, {"reduced": 2}, {"quantised": 2}, {"policy": "one"}]
    yield "says types", [of(**each).says_types for each in [{}, *said]], [NO, YES, YES, YES, YES]
    always = of(uses=3, like_gradients=YES, each=YES, stays=YES, samples=Samples.GIVEN)
    policies = {**POLICIES, "in three sizes": custom_policy(*map(Fraction, (2, 2, 12)))}
    for (name, policy), staged, waits, like in product(policies.items(), BOTH, BOTH, BOTH):
        says = replace(always, waits_staged=waits).in_plan(policy, staged)
        waiting, samples = waits and staged, Samples.STEP if staged else Samples.MICRO_BATCH
        yield f"uses, {name}", says.uses, 3 if "adam" in name else 1
        yield f"like gradients, {name}", says.like_gradients, "momentum" in name
        yield "in stages", (says.stays, says.each, says.waits_whole), (staged, not waiting, waiting)
        yield "samples", says.samples, samples
        yield "what is not said", TEXTBOOK.in_plan(policy, staged), TEXTBOOK
        late = replace(says, each=NO, waits_whole=NO).in_plan(policy, staged)
        yield "late in stages", late.waits_whole, waiting
        fixed = of(samples=Samples.STEP, waits_staged=YES, sums_whole=YES).in_plan(policy, staged)
        yield "as it says", (fixed.samples, fixed.waits_whole), (Samples.STEP, NO)
        whole = of(waits_whole=waits, sums_whole=like).in_plan(policy, NO).waits_whole
        yield "summed whole", whole, waits and not like
        terms = of(sums_first=like).in_terms(policy, "a").as_they_are
        yield "terms as they are", terms, {*"a" * like}
        size = 1 if waits else None
        types = of(adds_back=like, gathered=size, reduced=5, quantised=3).types(policy)
        added = (size or policy.g) if like else 0
        found = types.gathered, types.reduced, types.quantised, types.added
        yield "types", found, (size, 5, 3, added)
        wholes = of(whole_gradients=ONE, like_gradients=like).wholes
        yield "wholes", wholes, dict.fromkeys((State.GRADIENTS, State.OPTIMIZER)[: 1 + like], ONE)


def _of_models() -> Iterator[tuple[str, Any, Any]]:
    """What a model's own code does."""
    kernel, rows = frozenset({"scores", "keys", "other"}), frozenset({"softmax", "rms_norm"})
    for masked, numbered, alike, inside in product(BOTH, BOTH, BOTH, (kernel, frozenset[str]())):
        model = replace(GPT, masked=masked, numbered_heads=numbered)
        says = of(heads_alike=alike, inside=inside, masks=masked).in_model(model)
        composed = PRODUCTS_IN_FULL if inside and alike and numbered and not masked else ()
        yield (
            "masks",
            (MASK in says.inside, of(inside=inside).has_kernel),
            (not (inside and masked), bool(inside)),
        )
        yield "inside", says.inside - {MASK}, inside - {*composed} if "keys" in inside else inside
        yield "products", says.widths, tuple((name, FULL) for name in composed)
    for whole in ({"head_weight", "logits"}, {"logits"}):
        found = realised(head(GPT), of(whole=frozenset(whole)), 2).whole
        yield "whole", found, {"head_weight"} & whole or whole
    norms = frozenset({"layer_norm"})
    alone = {"in_full": norms, "rows": norms, "repeats": YES, "maximum": YES, "composes": YES}
    written = parts(replace(GPT, function="gelu_new"))
    for word, said in alone.items():
        made = [realised(part, of(**{word: said}), 2).operations for part in written]
        yield f"changed by {word}", made != [part.operations for part in written], YES
    plain = realised(layer(GPT), of(composes=YES), 2).operations
    yield "one operation", plain, layer(GPT).operations
    of_softmax, sinks = frozenset({"softmax"}), layer(replace(LLAMA, sinks=True))
    totals = log_totals()
    others = replace(totals.gives, name="others")
    softmax = Operation(Does.NORMALISE, (totals.gives,), others, "softmax", "h")
    two = replace(totals, operations=(*totals.operations, softmax))
    for part, named in ((totals, ""), (two, "odds"), (two, "others"), (sinks, ""), (sinks, "shares")):
        some = realised(part, of(in_full=of_softmax, inside=frozenset({named})), 2).operations
        reads = {line.reads[0].width for line in some if line.function == LOG_TOTAL}
        yield "log-sum-exp", reads, {WRITTEN if named == "shares" else FULL}
    words = "plain_softmax", "scales_in_full", "chosen_in_full", "of_chosen", "weighed_within"
    for one, routes in product(BOTH, BOTH):
        own: dict[str, Any] = dict.fromkeys(words, one)
        model = replace(WITH_EXPERTS[0], **own)
        says = of(in_full=rows, routes=routes, composes=one, weighs_within=routes)
        in_full = rows - {*["softmax"] * one} | {*["choices"] * (one and routes)}
        beside = {*BESIDE_ROUTES * routes, *BESIDE_OPERATIONS * one}
        does, merged = says.in_model(model), {*["odds"] * (one and routes)}
        yield "in full", (does.in_full, does.scales_in_full), (in_full, one)
        yield "merged, stored", (does.merged, does.stores), (merged, beside)
        shape = replace(model, weighed_within=one or routes, routed=routes, in_steps=one)
        yield "computed", says.computed(model), shape


def _of_parts() -> Iterator[tuple[str, Any, Any]]:
    """What is said of a part, beside its lines, and how wide values are."""
    one, arrays = ONE, (("a", "b"),)
    says = of(
        merged=one, apart=YES, overwritten=one, views=YES, held=one, gathers_again=YES, stores=one
    )
    part = layer(GPT)
    named: dict[str, Any] = {"arrays": arrays, "by_heads": YES, "reads_first": YES}
    found = realised(replace(part, **named), says, 2)
    words = "merged", "apart", "overwritten", "views", "held", "gathers_again", "stores"
    yield (
        "said of parts",
        found,
        replace(part, **named, **{word: getattr(says, word) for word in words}),
    )
    copied = realised(replace(part, **named), replace(says, rows=frozenset({"layer_norm"})), 2)
    yield "said of copies", {word: getattr(copied, word) for word in named}, named
    for plain in (part, layer(replace(GPT, function="gelu_new"))):
        yield "said of none", realised(plain, TEXTBOOK, 2), plain
    own = of(
        inside=frozenset({"scores"}), heads_alike=YES, widths=(("scores", 1), ("one", 1)), merged=one
    )
    does = own.in_model(replace(GPT, numbered_heads=YES))
    yield "own widths", {**dict(does.widths)}, {**dict.fromkeys(PRODUCTS_IN_FULL, FULL), "one": 1}
    yield "own merged", (does.merged, replace(own, stores=one).in_model(GPT).stores), (one, one)
    inside = of(inside=frozenset({"gate_open"}), widths=(("gate_open", 4),))
    made = [line.makes for line in realised(layer(LLAMA), inside, 2).operations]
    yield "inside, and wide", {v.width for v in made if v.name == "gate_open"}, {0}
    rows = "mlp_norm_unit_mean", "mlp_norm_unit_root"
    again = frozenset({rows[0], "active_between1"})
    says = of(rows=frozenset({"layer_norm"}), composes=YES, again=again)
    stores = realised(layer(replace(GPT, function="gelu_new")), says, 2).stores
    between = [f"active_between{number}" for number in (1, 2, 3)]
    yield "stored", stores & {*rows, *between}, {rows[1], *between}
    for computes in ("layer_norm", "rms_norm"):
        says = of(rows=frozenset({"layer_norm"}), rows_as_computed=frozenset({computes}))
        made = [line.makes for line in realised(part, says, 2).operations]
        widths = [value.width for value in made if value.name in rows]
        yield "rows", widths, [2 if computes == "layer_norm" else FULL] * 2
    in_one, sums = of(in_full=frozenset({"softmax"})), layer(replace(LLAMA, norms=frozenset({"heads"})))
    made = [line.makes for line in realised(sums, in_one, 2).operations]
    yield "sums", {value.width for value in made if value.name.endswith("_heads_norm_unit")}, {2}
    yield "loss", realised(head(GPT), in_one, 2).operations, head(GPT).operations
    for scales in BOTH:
        says = of(in_full=frozenset({"rms_norm"}), scales_in_full=scales)
        made = [line.makes for line in realised(layer(LLAMA), says, 2).operations]
        scaled = {value.width for value in made if value.name == "attention_norm_unit"}
        yield "scales", scaled, {FULL if scales else 2}
    masked = layer(replace(LLAMA, dropout=frozenset({"output"})), frozenset({MASKED}))
    says = of(widths=(("context", 3), ("context", 1)), inside=frozenset({"scores"}))
    for width, hidden in product((2, 4), BOTH):
        says = replace(says, inside=frozenset({"scores", MASK} if hidden else {"scores"}))
        values = [
            v for line in realised(masked, says, width).operations for v in (*line.reads, line.makes)
        ]
        has = {value.name: value.width for value in values}
        widths = [has[name] for name in ("context", "scores", "shares", "output_mask", MASK)]
        ends = realised(masked, says, width)
        yield "ends", [end.width for end in (ends.takes, ends.gives) if end], [width, width]
        yield "widths", widths, [1, 0, width, 1, width * (not hidden)]
    lines = realised(head(GPT), of(as_computed=frozenset({"raised"})), 2).operations
    (raised,) = (line for line in lines if line.function == "exp")
    yield "as computed", (raised.makes.width, raised.reads[0].width), (2, FULL)
    table, tokens = Value("table", ("v", "h"), Role.WEIGHT), Value("tokens", ("b", "v"), Role.CONSTANT)
    looked_up = Builder("looked_up")
    looked_up.contract(table, tokens, Value("words", ("b", "h")))
    yield "rows", rows_of(table, looked_up.part(table)), ("v",)
