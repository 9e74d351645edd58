"""Stages: which layers they have, what they send and sum; and pipelines executed beside one device."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spec.devices.layouts import PARTIAL, WHOLE, LayoutError
from spec.models.parts import WORD_WEIGHT
from spec.models.transformer import (
    DROPPED,
    EMBEDDING,
    HEAD,
    LAYER,
    STRAIGHT,
    USUAL,
    Transformer,
    is_layer,
    layer_name,
)
from spec.pipelines import idle_and_held
from spec.pipelines.pipeline import Half, Order, Pipeline, virtual_stage, works_of_stage
from spec.pipelines.stages import (
    NO_LAYER,
    alike,
    check_stages,
    ends,
    gradient_lie,
    may_update,
    parts_of,
    pieces,
    sends,
    to_sum,
)
from spec.pipelines.timeline import timeline
from tests.support.pipes import boundary_sends, chunks_of, enough, of_stages

STRAIGHT_ONES = frozenset({STRAIGHT})
PRIME = 10_007  # values are whole numbers modulo a prime: exact, and small


def transformer(layers, vocabulary=16, tied=False):
    return Transformer(
        layers, 8, 2, 2, 4, 16, vocabulary, tied=tied, dropout=DROPPED if tied else frozenset()
    )


@st.composite
def pipelines(draw, kinds=tuple(Order), most_stages=4):
    kind = draw(st.sampled_from(kinds))
    stages, some = draw(st.integers(1, most_stages)), draw(st.integers(1, 3))
    interleaved = kind is Order.INTERLEAVED
    micro_batches = some * stages if interleaved else enough(kind, stages, some)
    return Pipeline(kind, stages, micro_batches, chunks_of(kind, draw(st.integers(1, 3))))


@st.composite
def placements(draw, most_stages=4, evenly=False):
    """A pipeline, and a model in pieces: of at least one layer for each chunk of each stage, or as many
    as are listed: the first and the last may have words alone.
    """
    pipe = draw(pipelines(most_stages=most_stages))
    layers = pipe.virtual_stages + draw(st.integers(0, 6))
    vocabulary = draw(st.sampled_from((0, 16)))
    if not evenly and draw(st.booleans()):
        ends = {0, pipe.virtual_stages - 1} if vocabulary else ()
        numbers = range(pipe.virtual_stages)
        counts = [draw(st.integers(int(number not in ends), 3)) for number in numbers]
        assume(any(counts))
        pipe, layers = replace(pipe, layers=tuple(counts)), sum(counts)
    model = transformer(layers, vocabulary, draw(st.booleans()) and vocabulary > 0)
    return pipe, model, pieces(model, pipe)


def layers_of(placed):
    return [piece for piece in placed if piece.part.name == LAYER]


# ------------------------------------------------------------------------------- where layers are
@given(placements(evenly=True))
def test_every_layer_is_on_the_virtual_stage_that_is_as_far(drawn):
    pipe, model, placed = drawn
    assert [piece.layer for piece in layers_of(placed)] == list(range(model.layers))
    for piece in layers_of(placed):
        virtual = virtual_stage(pipe, piece.stage, piece.chunk)
        assert virtual == piece.layer * pipe.virtual_stages // model.layers


@given(pipelines(), st.lists(st.sampled_from([USUAL, STRAIGHT_ONES]), max_size=3), st.integers(0, 6))
def test_a_layer_is_of_its_kind_wherever_it_is(pipe, kinds, more):
    layers = pipe.virtual_stages + more
    model = replace(transformer(layers), kinds=tuple(kinds[:layers]))
    found = [p.part.name for p in pieces(model, pipe) if is_layer(p.part.name)]
    assert found == [layer_name(model.layer_kind(number)) for number in range(layers)]


@pytest.mark.parametrize("stages", range(2, 18))
def test_stages_over_which_a_gradient_is_summed_are_in_order_whatever_that_of_pieces(stages):
    placed = pieces(transformer(stages, tied=True), of_stages(stages))
    assert to_sum(placed) == to_sum(reversed(placed)) == {(WORD_WEIGHT, NO_LAYER): (0, stages - 1)}


@given(placements(evenly=True))
def test_layers_are_spread_evenly(drawn):
    pipe, model, placed = drawn
    counts = Counter((piece.stage, piece.chunk) for piece in layers_of(placed))
    each = model.layers // pipe.virtual_stages
    assert len(counts) == pipe.virtual_stages
    assert set(counts.values()) <= {each, each + 1}


@given(placements())
def test_a_model_begins_on_the_first_stage_and_ends_on_the_last_or_in_a_v_on_the_first(drawn):
    pipe, model, placed = drawn
    ends = [(piece.stage, piece.chunk) for piece in (placed[0], placed[-1])]
    assert ends == [(0, 0), (0 if pipe.is_folded else pipe.stages - 1, pipe.chunks - 1)]
    if model.vocabulary:
        assert [(placed[i].part.name, placed[i].layer) for i in (0, -1)] == [
            (EMBEDDING, NO_LAYER),
            (HEAD, NO_LAYER),
        ]


@given(placements())
def test_what_is_counted_is_what_is_listed(drawn):
    pipe, model, placed = drawn
    for stage in range(pipe.stages):
        listed = [
            Counter(p.part.name for p in placed if (p.stage, p.chunk) == (stage, chunk))
            for chunk in range(pipe.chunks)
        ]
        assert parts_of(model, stage, pipe) == listed
    assert ends(model, pipe) == tuple(p for p in placed if p.layer == NO_LAYER)


def layered(layers, stages, chunks):
    model = transformer(layers)
    pipe = Pipeline(Order.INTERLEAVED, stages, stages, chunks)
    return pipe, model, pieces(model, pipe)


@given(placements(most_stages=6))
@example(layered(11, 4, 2))  # as many layers on stages 1 and 2, in other chunks
def test_stages_are_alike_if_their_chunks_have_as_many_layers_and_none_is_an_end(drawn):
    pipe, model, placed = drawn
    kinds = {}
    for stage in range(pipe.stages):
        layers = Counter(p.chunk for p in layers_of(placed) if p.stage == stage)
        at_end = (stage == 0, stage == pipe.stages - 1)
        kinds.setdefault((at_end, *sorted(layers.items())), []).append(stage)
    found = alike(model, pipe)
    assert found == [*kinds.values()]


@given(placements())
def test_layers_are_in_order_on_as_many_as_are_listed(drawn):
    pipe, model, placed = drawn
    counts = Counter(virtual_stage(pipe, p.stage, p.chunk) for p in layers_of(placed))
    assert [counts[virtual] for virtual in range(len(pipe.layers))] == [*pipe.layers]
    assert [piece.layer for piece in layers_of(placed)] == [*range(model.layers)]


# -------------------------------------------------------------------- what is sent, and summed
@given(placements())
def test_stages_send_what_their_order_of_work_needs(drawn):
    pipe, _, placed = drawn
    sent = Counter()
    for before, after in sends(placed):
        sent[before.stage] += pipe.micro_batches  # what it gives
        sent[after.stage] += pipe.micro_batches  # its cotangent
    for stage in range(pipe.stages):
        assert sent[stage] == boundary_sends(pipe, stage)


@given(placements())
def test_each_boundary_is_crossed_once_and_by_one_stage_alone_never(drawn):
    pipe, _, placed = drawn
    assert len(sends(placed)) == (idle_and_held.boundaries(pipe) if pipe.stages > 1 else 0)


@given(placements())
def test_only_words_of_two_stages_are_summed(drawn):
    pipe, model, placed = drawn
    two = pipe.stages > 1 and not pipe.is_folded  # a V has both uses on its first stage
    shared = {(WORD_WEIGHT, NO_LAYER): (0, pipe.stages - 1)} if model.tied and two else {}
    assert to_sum(placed) == shared


@given(st.sets(st.integers(0, 9), min_size=1))
def test_a_gradient_is_partial_over_the_stages_that_use_the_weight(used_on):
    assert gradient_lie(used_on) == (WHOLE if len(used_on) == 1 else PARTIAL)


@given(placements())
def test_what_is_derived_is_accepted(drawn):
    _, _, placed = drawn
    check_stages(placed, sends(placed), to_sum(placed))


@given(placements(), st.data())
def test_a_missing_send_is_rejected(drawn, data):
    _, _, placed = drawn
    sent = sends(placed)
    assume(sent)
    before, after = sent.pop(data.draw(st.integers(0, len(sent) - 1)))
    with pytest.raises(LayoutError) as told:
        check_stages(placed, sent, to_sum(placed))
    assert str(told.value) == (
        f"{after} on stage {after.stage} reads what {before} gives, "
        f"on stage {before.stage}: it is not sent"
    )


@given(placements(), st.data())
def test_pieces_out_of_order_are_no_model(drawn, data):
    _, _, placed = drawn
    assume(len(placed) > 1)
    wrong = data.draw(st.permutations(placed))
    assume(wrong != [*placed])
    with pytest.raises(LayoutError, match=r"in the order|does not go on"):
        check_stages(wrong, sends(wrong), to_sum(wrong))


@given(st.integers(1, 4), st.integers(1, 3))
def test_a_layer_after_the_head_is_no_model(layers, stages):
    *before, last, head = pieces(transformer(layers), of_stages(stages))
    with pytest.raises(LayoutError, match=rf"{last} comes after {head}, and does not go on"):
        check_stages([*before, head, last], [], [])


@given(placements(), st.data())
def test_a_layer_twice_or_left_out_is_no_model(drawn, data):
    _, _, placed = drawn
    layers = [i for i, piece in enumerate(placed) if piece.part.name == LAYER]
    i = data.draw(st.sampled_from(layers))
    wrong = [(*placed[: i + 1], *placed[i:])]
    wrong += [(*placed[:i], *placed[i + 1 :])] if i != layers[-1] else []
    for other in wrong:
        with pytest.raises(LayoutError, match="layers are in the order"):
            check_stages(other, sends(other), to_sum(other))


@given(st.integers(2, 5), st.integers(1, 3))
def test_words_that_are_not_summed_are_rejected(stages, chunks):
    pipe = Pipeline(Order.INTERLEAVED, stages, stages, chunks)
    placed = pieces(transformer(stages * chunks, tied=True), pipe)
    with pytest.raises(
        LayoutError, match=rf"gradient of {WORD_WEIGHT} is in terms over stages \(0, {stages - 1}\)"
    ):
        check_stages(placed, sends(placed), [])


# --------------------------------------------------------------- pipelines beside one device
def gives(weight, x):
    return (weight * x + x * x + weight) % PRIME


def derivatives(weight, x):
    """With respect to the weight, and to x."""
    return x + 1, weight + 2 * x


def weights_of(placed):
    """A number for each piece's weight: the embedding's and the head's are the same."""
    return [
        (piece.part.name if piece.part.name == LAYER else WORD_WEIGHT, piece.layer) for piece in placed
    ]


def one_device(placed, weights, samples):
    """The gradient of each weight, over all samples."""
    gradient = Counter()
    for x in samples:
        kept = []
        for name in weights_of(placed):
            kept.append((name, x))
            x = gives(weights[name], x)
        cotangent = 1
        for name, x in reversed(kept):
            of_weight, of_x = derivatives(weights[name], x)
            gradient[name] = (gradient[name] + cotangent * of_weight) % PRIME
            cotangent = cotangent * of_x % PRIME
    return gradient


class Devices:
    """Stages with copies of their weights, each doing its work in its order."""

    def __init__(self, placed, pipe, weights, samples, sent):
        self.placed, self.pipe, self.names, self.sent = placed, pipe, weights_of(placed), sent
        self.copies = {
            (p.stage, name): weights[name] for p, name in zip(placed, self.names, strict=True)
        }
        self.gradient = Counter()  # of a copy
        self.has = {(placed[0].stage, 0, b): x for b, x in enumerate(samples)}
        end = placed[-1].stage, len(placed)
        self.gets = {(*end, b): 1 for b in range(pipe.micro_batches)}
        self.done = Counter()

    def run(self, after_work=lambda devices, stage: None):
        starts = [
            (start, stage, work)
            for stage, started in enumerate(timeline(self.pipe).starts)
            for work, start in started.items()
        ]
        for _, stage, work in sorted(starts, key=lambda found: found[:2]):
            self.do(stage, work)
            self.done[stage] += 1
            after_work(self, stage)

    def do(self, stage, work):
        mine = [i for i, p in enumerate(self.placed) if (p.stage, p.chunk) == (stage, work.chunk)]
        if work.half is Half.FORWARD:
            for i in mine:
                x = self.has[stage, i, work.micro_batch]
                self.give(self.has, gives(self.copies[stage, self.names[i]], x), i, i + 1, i + 1, work)
        else:
            for i in reversed(mine):
                copy = stage, self.names[i]
                cotangent = self.gets[stage, i + 1, work.micro_batch]
                x = self.has[stage, i, work.micro_batch]
                of_weight, of_x = derivatives(self.copies[copy], x)
                if work.half is self.pipe.halves[-1]:
                    self.gradient[copy] = (self.gradient[copy] + cotangent * of_weight) % PRIME
                if work.half is Half.BACKWARD:
                    self.give(self.gets, cotangent * of_x % PRIME, i, i - 1, i, work)

    def give(self, values, value, piece, to, number, work):
        """To the piece's own stage, and to that of its neighbour if it is sent."""
        values[self.placed[piece].stage, number, work.micro_batch] = value
        if not 0 <= to < len(self.placed):
            return
        pair = tuple(self.placed[i] for i in sorted((piece, to)))
        if pair in self.sent:
            values[self.placed[to].stage, number, work.micro_batch] = value

    def sum_over_stages(self, summed):
        for name, users in summed.items():
            whole = sum(self.gradient[stage, name] for stage in users) % PRIME
            for stage in users:
                self.gradient[stage, name] = whole


def numbers(data, count):
    return data.draw(st.lists(st.integers(1, PRIME - 1), min_size=count, max_size=count))


def trained(data, drawn):
    pipe, _, placed = drawn
    names = sorted(set(weights_of(placed)))
    weights = dict(zip(names, numbers(data, len(names)), strict=True))
    samples = numbers(data, pipe.micro_batches)
    return Devices(placed, pipe, weights, samples, sends(placed)), one_device(placed, weights, samples)


@given(placements(), st.data())
def test_every_copy_gets_the_gradient_of_one_device(drawn, data):
    _, model, placed = drawn
    devices, single = trained(data, drawn)
    devices.run()
    if model.vocabulary:  # both ends read one weight
        devices.sum_over_stages({(WORD_WEIGHT, NO_LAYER): {placed[0].stage, placed[-1].stage}})
    assert {copy: single[copy[1]] for copy in devices.copies} == dict(devices.gradient)


@given(placements(), st.data())
def test_terms_of_a_tied_weight_add_up_to_its_gradient(drawn, data):
    _, model, placed = drawn
    assume(model.vocabulary and placed[0].stage != placed[-1].stage)
    devices, single = trained(data, drawn)
    devices.run()
    terms = [
        devices.gradient[stage, (WORD_WEIGHT, NO_LAYER)]
        for stage in (placed[0].stage, placed[-1].stage)
    ]
    assert sum(terms) % PRIME == single[WORD_WEIGHT, NO_LAYER]


@given(placements(), st.data())
def test_without_a_send_the_next_stage_has_nothing_to_read(drawn, data):
    devices, _ = trained(data, drawn)
    assume(devices.sent)
    devices.sent = devices.sent[:-1]
    with pytest.raises(KeyError):
        devices.run()


def test_copies_of_a_tied_weight_part_without_their_sum():
    placed = pieces(transformer(2), of_stages(2))
    pipe = Pipeline(Order.GPIPE, 2, 1)
    weights = dict.fromkeys(weights_of(placed), 3)
    devices = Devices(placed, pipe, weights, [5], sends(placed))
    devices.run()
    words = [devices.gradient[stage, (WORD_WEIGHT, NO_LAYER)] for stage in (0, 1)]
    assert words[0] != words[1]
    assert one_device(placed, weights, [5])[WORD_WEIGHT, NO_LAYER] not in words


def update(devices, stage):
    """A stage applies the gradients that it has."""
    for copy in devices.copies:
        if copy[0] == stage:
            devices.copies[copy] = (devices.copies[copy] - devices.gradient.pop(copy, 0)) % PRIME


def test_an_update_before_the_last_backward_makes_stale_reads():
    placed = pieces(transformer(2, vocabulary=0), of_stages(2))
    pipe = Pipeline(Order.ONE_F_ONE_B, 2, 3)
    weights, samples = {(LAYER, 0): 3, (LAYER, 1): 4}, [5, 6, 7]

    def after_batches(*batches):
        """One device's weights, updated after each."""
        trained = weights
        for batch in batches:
            gradient = one_device(placed, trained, batch)
            trained = {name: (trained[name] - gradient[name]) % PRIME for name in trained}
        return trained

    def flushed(devices, stage):
        if may_update(devices.done[stage], pipe.works):
            update(devices, stage)

    def at_once(devices, stage):
        if devices.done[stage] > 1:  # as soon as there is a gradient
            update(devices, stage)

    found = {}
    for rule in (flushed, at_once):
        devices = Devices(placed, pipe, weights, samples, sends(placed))
        devices.run(rule)
        found[rule] = {name: value for (_, name), value in devices.copies.items()}
    assert found[flushed] == after_batches(samples)
    # neither one step nor three
    assert found[at_once] not in (after_batches(samples), after_batches(*([x] for x in samples)))


def test_stages_of_a_kind_have_layers_with_as_many_sets_of_angles():
    model = replace(transformer(8), windows=(3, 3, 3, 0))
    assert alike(model, of_stages(4)) == [[0], [1, 2], [3]]
    assert alike(replace(model, angles_of_windows=True), of_stages(4)) == [[0], [1], [2], [3]]
    assert alike(model, of_stages(4), by_windows=True) == [[0], [1], [2], [3]]


@given(pipelines())
def test_a_stage_may_update_after_all_its_work_and_not_before(pipe):
    for stage in range(pipe.stages):
        works = len(works_of_stage(pipe, stage))
        assert [may_update(done, pipe.works) for done in range(works + 1)] == [False] * works + [True]
