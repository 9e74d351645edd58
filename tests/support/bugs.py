"""Schedules with one bug: an edit of one that is accepted, and the lines that may be named for it.

The line to name is the edited one:

    changed, added, repeated   that line; of two equal lines the second
    moved                      that line; where two neighbours are swapped, either of them
    removed                    the line before it, or the nearest one, before it or after, that reads
                               or writes what it wrote
"""

from dataclasses import replace
from fractions import Fraction

from proofs.registry import ROOT
from psem_model.check.edits import touched, writes
from psem_model.reading.schedules import read
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

B, PARTS = Buffer, ("micro_step", "finish")
M, F = PARTS


def right(name):
    """A strategy's schedule, an example's, or that of a placement's four modes."""
    if name in STRATEGIES:
        return schedule_of(STRATEGIES[name])
    if " " in name:
        return schedule_of(on_batch(*name.split()))
    return read(str(ROOT / "examples" / f"{name}.toml"))


# ------------------------------------------------------------------------ edits
def changed(part, index, **fields):
    """A line with other fields."""

    def edit(schedule):
        ops = list(getattr(schedule, part))
        ops[index] = replace(ops[index], **fields)
        return replace(schedule, **{part: tuple(ops)}), {(part, index)}

    return edit


def added(part, index, op):
    """A line more, before the one that stands there."""

    def edit(schedule):
        ops = getattr(schedule, part)
        return replace(schedule, **{part: (*ops[:index], op, *ops[index:])}), {(part, index)}

    return edit


def repeated(part, index, again):
    """A line once more."""
    return lambda schedule: added(part, again, getattr(schedule, part)[index])(schedule)


def removed(part, index):
    """A line less."""

    def edit(schedule):
        ops = getattr(schedule, part)
        wrong = replace(schedule, **{part: (*ops[:index], *ops[index + 1 :])})
        lines = [(p, i, op) for p in PARTS for i, op in enumerate(getattr(wrong, p))]
        gap = index + (len(schedule.micro_step) if part == F else 0)
        near = [n for n, (*_, op) in enumerate(lines) if writes(ops[index]) & touched(op)]
        nearest = {max((n for n in near if n < gap), default=None)}
        nearest |= {min((n for n in near if n >= gap), default=None), gap - 1}
        return wrong, {lines[n][:2] for n in nearest if n is not None and n >= 0}

    return edit


def moved(part, index, to_part, to):
    """A line elsewhere: there it is the one of index `to`."""

    def edit(schedule):
        op = getattr(schedule, part)[index]
        wrong, _ = added(to_part, to, op)(removed(part, index)(schedule)[0])
        swapped = part == to_part and abs(index - to) == 1
        return wrong, {(to_part, to)} | ({(part, index)} if swapped else set())

    return edit


def scale(number=1, source=B.GRADIENTS, **sizes):
    return Op(Kind.SCALE, Phase.UPDATE, source, by=Monomial(Fraction(number), tuple(sizes.items())))


BATCH, BOTH = ("batch",), ("replica", "shard")
PER_DEVICE = Monomial(powers=(("batch", -1),))

BUGS = {
    # data parallelism
    "gradients are not summed": ("dp", removed(F, 0)),
    "gradients are summed twice": ("dp", repeated(F, 0, 1)),
    "a sum is summed again with each micro-step": ("dp", moved(F, 0, M, 2)),
    "gradients are summed after the update": ("dp", moved(F, 0, F, 1)),
    "gradients are never reset": ("dp", removed(F, 2)),
    "gradients are reset before the update": ("dp", moved(F, 2, F, 1)),
    "a mean where the loss is a sum": ("dp", changed(F, 0, mean=True)),
    "updated twice": ("dp", repeated(F, 1, 2)),
    "the first device's gradients for all": ("dp", changed(F, 0, kind=Kind.BROADCAST)),
    "a sum where the loss is a mean": ("ddp_mean", changed(F, 0, mean=False)),
    "a mean and a scale by the devices": ("ddp_mean", added(F, 1, scale(batch=-1))),
    "micro-steps are not averaged": ("ddp_mean", removed(M, 2)),
    "micro-steps are averaged twice": ("ddp_mean", added(F, 1, scale(micro_steps=-1))),
    # ZeRO-1
    "ZeRO-1 gathers nothing": ("zero1", removed(F, 2)),
    "ZeRO-1 gathers before it updates": ("zero1", moved(F, 2, F, 1)),
    "ZeRO-1 reduces nothing": ("zero1", removed(F, 0)),
    "ZeRO-1 reduces the next slice": ("zero1", changed(F, 0, shift=1)),
    # ZeRO-2
    "ZeRO-2 reduces nothing": ("zero2", removed(M, 2)),
    "ZeRO-2 takes a mean of a sum": ("zero2", changed(M, 2, mean=True)),
    "ZeRO-2 adds to the next slice": ("zero2", changed(M, 3, shift=1)),
    "ZeRO-2 reduces after it has added": ("zero2", moved(M, 2, M, 3)),
    "ZeRO-2 gathers before it updates": ("zero2", moved(F, 1, F, 0)),
    "ZeRO-2 gathers with each micro-step": ("zero2", moved(F, 1, M, 5)),
    "ZeRO-2 updates the next slice": ("zero2", changed(F, 0, shift=1)),
    # ZeRO-3 and FSDP
    "ZeRO-3 does not gather for forward": ("zero3", removed(M, 0)),
    "ZeRO-3 does not gather for backward": ("zero3", removed(M, 3)),
    "ZeRO-3 releases before backward": ("zero3", moved(M, 5, M, 4)),
    "ZeRO-3 reduces nothing": ("zero3", removed(M, 6)),
    "ZeRO-3 gathers at the end of the step": ("zero3", moved(M, 0, F, 2)),
    "FSDP does not gather": ("fsdp-hold", removed(M, 0)),
    "FSDP releases what backward reads": (
        "fsdp-hold",
        added(M, 2, Op(Kind.RELEASE, Phase.FORWARD, B.VIEW)),
    ),
    # HSDP
    "replicas are not summed": ("hsdp", removed(F, 0)),
    "replicas are summed along the other axis": (
        "hsdp",
        changed(F, 0, axes=("shard",), within=()),
    ),
    "replicas are summed over all devices": ("hsdp", changed(F, 0, axes=BOTH, within=())),
    "replicas are summed with each micro-step": ("hsdp", moved(F, 0, M, 8)),
    "gathered along the replicas": ("hsdp", changed(M, 3, axes=("replica",))),
    # offload
    "the updated weights stay on the host": ("zero-offload", removed(F, 1)),
    "gradients are not offloaded": ("zero-offload", removed(M, 3)),
    "gathered before they are fetched": ("zero-offload", moved(F, 2, F, 1)),
    # clipping and loss scales
    "clipped by each slice's own norm": ("clip_by_global_norm", removed(F, 1)),
    "not clipped": ("clip_by_global_norm", removed(F, 2)),
    "norms are summed after the clip": ("clip_by_global_norm", moved(F, 1, F, 2)),
    "clipped while still scaled": ("loss_scale_and_clip", moved(F, 1, F, 3)),
    "not scaled back": ("loss_scale", removed(F, 1)),
    # means over tokens
    "tokens are not summed": ("token_mean", removed(F, 1)),
    "tokens are never reset": ("token_mean", removed(F, 5)),
    "tokens are not added up": ("token_mean", removed(M, 1)),
    "not divided by tokens": ("token_mean", removed(F, 2)),
    "a mean over devices, too": ("token_mean", changed(F, 0, mean=True)),
    "tokens are summed along one axis": (
        "safe_tokens_of_both_axes",
        changed(F, 2, axes=BATCH),
    ),
    # tied parameters, statistics
    "the second use is forgotten": ("tied_embeddings", removed(M, 2)),
    "the second use is released too early": ("tied_embeddings", moved(M, 2, M, 3)),
    "statistics differ": ("synchronised_statistics", removed(M, 1)),
    # two axes
    "not summed along the second axis": ("safe_two_reductions", removed(F, 1)),
    "summed along the first axis twice": ("safe_two_reductions", changed(F, 1, axes=BATCH)),
    "not gathered along the first axis": ("safe_sharded_along_both_axes", removed(F, 5)),
}

# written before any of them was tried, and not looked at when repairs are ranked
KEPT_ASIDE = {
    "reset with each micro-step": ("dp", moved(F, 2, M, 0)),
    "scaled by the other number": ("ddp_mean", changed(M, 2, by=PER_DEVICE)),
    "ZeRO-1 gathers the next slice": ("zero1", changed(F, 2, shift=1)),
    "ZeRO-2 sums its slices": (
        "zero2",
        added(F, 0, Op(Kind.ALL_REDUCE, Phase.REDUCE, B.GRADIENTS, axes=BATCH)),
    ),
    "forward reads the slices": ("zero3", changed(M, 1, source=B.PARAMETERS)),
    "FSDP reduces again at the end": (
        "fsdp-hold",
        added(F, 0, Op(Kind.REDUCE_SCATTER, Phase.REDUCE, B.GRADIENTS, axes=BATCH)),
    ),
    "reduced over all devices, and over replicas": ("hsdp", changed(M, 6, axes=BOTH)),
    "replicas are summed twice": ("hsdp", repeated(F, 0, 1)),
    "fetched before the update": ("zero-offload", moved(F, 1, F, 0)),
    "only the last micro-step is added": ("zero2", moved(M, 3, F, 0)),
    "the norm of a device's own gradient": ("loss_scale_and_clip", moved(F, 2, F, 0)),
    "scaled back by half": ("loss_scale", changed(F, 1, by=Monomial(Fraction(1, 512)))),
    "divided by the last micro-step's tokens": ("token_mean", changed(F, 2, by=B.TOKENS)),
    "tokens are summed with each micro-step": ("token_mean", moved(F, 1, M, 2)),
    "the second use is added twice": ("tied_embeddings", repeated(M, 2, 3)),
    "statistics are sent along one axis": ("safe_statistics_of_both_axes", removed(M, 2)),
    "gathered in the wrong order": ("safe_sharded_along_both_axes", moved(F, 6, F, 5)),
    "scattered along the other axis": ("safe_reduce_once", changed(F, 0, axes=("replica",))),
    "a sum along one of two axes": ("safe_means_along_both_axes", changed(F, 0, mean=False)),
    "backward runs on the device's own samples": ("safe_expert_copies", changed(M, 3, axes=())),
}


def instead(part, index, at, *ops):
    """Lines in a micro-step in place of one of the schedule's; the last of them is to be named."""

    def edit(schedule):
        wrong, _ = removed(part, index)(schedule)
        for i, op in enumerate(ops):
            wrong, named = added(M, at + i, op)(wrong)
        return wrong, named

    return edit


def each_clips(part, index, count, at, within=()):
    """The norm and the clip of each micro-step, in place of `count` lines that end with the sum's."""

    def edit(schedule):
        for i in range(1, count):
            schedule, _ = removed(part, index - i)(schedule)
        norm = Op(Kind.SQUARE_NORM, Phase.UPDATE, B.FRESH, B.NORM, within=within)
        whole = Op(Kind.ALL_REDUCE, Phase.UPDATE, B.NORM, axes=within)
        clip = Op(Kind.CLIP, Phase.UPDATE, B.FRESH, within=within, by=B.NORM)
        made = (norm, whole, clip) if within else (norm, clip)
        return instead(part, index - count + 1, at, *made)(schedule)

    return edit


def by(source, tokens):
    return Op(Kind.DIVIDE, Phase.UPDATE, source, by=tokens)


GATHERED_STATE, ALL_GATHERED = "R S* R S", "S* S* S* S"
ON_THE_HOST, RECOMPUTED = "O O O S", "S* S S M"

# of each kind of line, what hostile readers found, and other strategies and placements
FRESH = {
    "the updated view is not kept": (GATHERED_STATE, removed(F, 3)),
    "nor where all is gathered": (ALL_GATHERED, removed(F, 3)),
    "the view is kept before the update": (GATHERED_STATE, moved(F, 3, F, 2)),
    "the view is gathered at the end": (GATHERED_STATE, moved(F, 1, F, 5)),
    "whole gradients are not gathered": (ALL_GATHERED, removed(F, 0)),
    "backward is forgotten": (ALL_GATHERED, removed(M, 4)),
    "each micro-step's gradient is divided": ("token_mean", instead(F, 2, 4, by(B.FRESH, B.TOKENS))),
    "the sum is divided each time": ("token_mean", instead(F, 2, 5, by(B.GRADIENTS, B.TOKENS))),
    "divided by the count so far": ("token_mean", instead(F, 2, 4, by(B.FRESH, B.TOTAL_TOKENS))),
    "divided each time, on two axes": (
        "safe_tokens_of_both_axes",
        instead(F, 3, 4, by(B.GRADIENTS, B.TOKENS)),
    ),
    "each micro-step's slice is clipped": ("clip_by_global_norm", each_clips(F, 2, 3, 3, BATCH)),
    "each micro-step's gradient is clipped": ("loss_scale_and_clip", each_clips(F, 3, 2, 3)),
    "clipped before it is added": ("clip_by_global_norm", moved(F, 2, M, 3)),
    "forward is forgotten": ("zero2", removed(M, 0)),
    "forward is forgotten between gathers": ("zero3", removed(M, 1)),
    "backward runs before forward": ("synchronised_statistics", moved(M, 2, M, 0)),
    "the update reads fresh gradients": ("zero3", changed(F, 0, source=B.FRESH)),
    "the sum reads fresh gradients": ("dp", changed(F, 0, source=B.FRESH)),
    "another buffer is reset": ("zero3", changed(F, 1, source=B.FRESH)),
    "another buffer is reset where tokens are": ("token_mean", changed(F, 4, source=B.FRESH)),
    "released before it is added": ("hsdp", moved(M, 8, M, 7)),
    "released before it is recomputed": (RECOMPUTED, moved(M, 4, M, 6)),
    "gradients stay on the device": (ON_THE_HOST, removed(M, 7)),
    "reset before it is fetched": (ON_THE_HOST, moved(F, 5, F, 0)),
    "reset in the middle of accumulation": ("hsdp", moved(F, 2, M, 0)),
    "norms are summed with each micro-step": ("safe_sharded_along_both_axes", moved(F, 1, M, 5)),
    "the norm is never taken": ("safe_sharded_along_both_axes", removed(F, 0)),
    "parameters are gathered along one axis only": ("safe_sharded_along_both_axes", removed(F, 6)),
    "experts are not averaged over replicas": ("safe_experts", removed(F, 0)),
    "experts are not scaled": ("safe_experts", removed(F, 1)),
    "replicas take a mean": ("safe_replicas_first", changed(M, 2, mean=True)),
    "the broadcast replaces the sum": ("safe_reduce_once", changed(F, 1, kind=Kind.BROADCAST)),
    "added to the other device's slice": ("safe_reduce_each_micro_batch", changed(M, 3, shift=1)),
    "tied gradients after the sum": ("safe_tied_along_both_axes", moved(M, 2, M, 3)),
    "updates with each micro-step": ("zero2", moved(F, 0, M, 5)),
    "scaled by micro-steps twice": ("safe_means_along_both_axes", repeated(F, 2, 3)),
}
