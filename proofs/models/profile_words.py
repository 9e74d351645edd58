"""K5: what follows from what a profile says, of each word alone and with those that it goes with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from proofs.language.programs import GPT, WITH_EXPERTS
from proofs.trusted.kernel import KernelError
from spec.models.parts import BESIDE_OPERATIONS, BESIDE_ROUTES, MASK, PRODUCTS_IN_FULL, head
from spec.models.profiles import TEXTBOOK, Padding, Profile, Samples, Units, realised
from spec.models.states import POLICIES, State
from spec.models.values import FULL

BY_SLICES = Padding.ELEMENT, Padding.ROW  # of each unit: others have owners
NO, YES = False, True
BOTH = NO, YES


def require_words_mean() -> None:
    """Raise KernelError unless what follows from a profile's words is what is listed."""
    for what, found, listed in (*_of_units(), *_of_plans(), *_of_models()):
        if found != listed:
            raise KernelError(f"profiles: {what}: {found}, not {listed}")


def of(**says: Any) -> Profile:
    return replace(TEXTBOOK, **says)


def _of_units() -> Iterator[tuple[str, Any, Any]]:
    """What has owners, units, sums of chunks, and arrays."""
    found: dict[str, set[Any]] = {"owners": set(), "units": set(), "chunks": set(), "no arrays": set()}
    for each in product(Units, Padding, BOTH):
        units, padding, also = each
        says = of(units=units, padding=padding, waits_whole=also, step_counts=also)
        found["owners"] |= {padding} if says.owners else set()
        found["units"] |= {(units, padding)} if says.has_units else set()
        found["chunks"] |= {each} if says.sums_by_chunk else set()
        found["no arrays"] |= set() if says.tells_arrays else {each}
    alike, no_buckets = {*product((Units.LARGEST,), BY_SLICES)}, {*Units} - {Units.BUCKET}
    yield "owners", found["owners"], {*Padding} - {*BY_SLICES}
    yield "units", found["units"], {*product(Units, Padding)} - alike
    yield "chunks", found["chunks"], {*product(no_buckets, BY_SLICES, (YES,))}
    flat = Padding.ELEMENT, Padding.VECTOR
    yield "no arrays", found["no arrays"], {*product({*Units} - {Units.PARAMETER}, flat, (NO,))}


def _of_plans() -> Iterator[tuple[str, Any, Any]]:
    """What follows from a plan's optimizer, from stages, and of types."""
    one = frozenset({"one"})
    for like in BOTH:
        wholes = dict.fromkeys((State.GRADIENTS, State.OPTIMIZER)[: 1 + like], one)
        yield "wholes", of(whole_gradients=one, like_gradients=like).wholes, wholes
    said: tuple[dict[str, Any], ...] = (
        {},
        {"policy": "one"},
        {"gathered": 2},
        {"reduced": 2},
        {"quantised": 2},
    )
    yield "says types", [of(**each).says_types for each in said], [bool(each) for each in said]
    for (name, policy), staged, waits in product(POLICIES.items(), BOTH, BOTH):
        says = of(
            uses=3, like_gradients=YES, each=YES, stays=YES, waits_staged=waits, samples=Samples.GIVEN
        ).in_plan(policy, staged)
        yield f"uses, {name}", says.uses, 3 if "adam" in name else 1
        yield f"like gradients, {name}", says.like_gradients, "momentum" in name
        waiting = waits and staged
        yield "in stages", (says.stays, says.each, says.waits_whole), (staged, not waiting, waiting)
        yield "samples", says.samples, Samples.STEP if staged else Samples.MICRO_BATCH
        yield "samples as said", TEXTBOOK.in_plan(policy, staged).samples, Samples.NONE
        for sums, waits in product(BOTH, BOTH):
            whole = of(waits_whole=waits, sums_whole=sums).in_plan(policy, NO).waits_whole
            yield "summed whole", whole, waits and not sums
        in_terms = [of(sums_first=first).in_terms(policy, "a").as_they_are for first in BOTH]
        yield "terms as they are", in_terms, [frozenset(), frozenset("a")]
        for back, size in product(BOTH, (None, 1)):
            types = of(adds_back=back, gathered=size, reduced=5, quantised=3).types(policy)
            yield "types", (types.gathered, types.reduced, types.quantised), (size, 5, 3)
            yield "added", types.added, (size or policy.g) if back else 0
    copied = {
        units for units in Units if of(copies=YES, units=units).types(POLICIES["fp32-sgd"]).copied
    }
    yield "copied", copied, {*Units} - {Units.BUCKET}


def _of_models() -> Iterator[tuple[str, Any, Any]]:
    """What a model's own code does."""
    kernel, rows = frozenset({"scores", "keys", "other"}), frozenset({"softmax", "rms_norm"})
    for masked, numbered, alike, inside in product(BOTH, BOTH, BOTH, (kernel, frozenset[str]())):
        model = replace(GPT, masked=masked, numbered_heads=numbered)
        says = of(heads_alike=alike, inside=inside, masks=masked).in_model(model)
        composed = bool(inside and alike and numbered and not masked)
        yield "kernels", of(inside=inside).has_kernel, bool(inside)
        yield "masks", MASK in says.inside, not (inside and masked)
        yield "inside", says.inside - {MASK}, (kernel - {*PRODUCTS_IN_FULL}) if composed else inside
        yield "products", says.widths, tuple((n, FULL) for n in PRODUCTS_IN_FULL if composed)
    whole = frozenset({"head_weight", "logits"})
    for words in (whole, whole - {"head_weight"}):
        yield (
            "whole",
            realised(head(GPT), of(whole=words), 2).whole,
            words - ({"logits"} if words == whole else set()),
        )
    for one, routes in product(BOTH, BOTH):
        own: dict[str, Any] = {
            "plain_softmax": one,
            "scales_in_full": one,
            "chosen_in_full": one,
            "of_chosen": one,
        }
        says = of(in_full=rows, routes=routes, composes=one)
        found = says.in_model(replace(WITH_EXPERTS[0], **own))
        in_full = rows - ({"softmax"} if one else set()) | ({"choices"} if one and routes else set())
        beside = {*(BESIDE_ROUTES if routes else ()), *(BESIDE_OPERATIONS if one else ())}
        yield "in full", (found.in_full, found.scales_in_full), (in_full, one)
        yield (
            "merged, stored",
            (found.merged, found.stores),
            ({"odds"} if one and routes else set(), beside),
        )
        within = replace(GPT, weighed_within=one)
        shape = of(weighs_within=routes, routes=one, composes=routes).computed(within)
        yield "within", shape, replace(GPT, weighed_within=one or routes, routed=one, in_steps=routes)
