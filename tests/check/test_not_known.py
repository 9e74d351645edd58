"""What a device does not hold is not known: schedules that rely on zeros there, and right twins."""

import pytest

from psem_model.check.schedules import OF_STATISTICS, check_schedule
from psem_model.check.words import reason
from psem_model.reading.schedules import dumps, loads
from psem_model.text.places import EXAMPLES
from spec.checking.verdict import check
from spec.meaning.reference import first_divergence, primes
from spec.models.states import POLICIES
from spec.models.training import Statistics
from tests.support.crosscheck import agree_on_the_verdict

SLICES = """
axes = ["dp"]
[rest]
parameters = { sharded = ["dp"] }
optimizer = { sharded = ["dp"] }
gradients = { sharded = ["dp"] }
[step]
micro_step = [
  FETCH
  { op = "forward", source = "view", into = "activations" },
  { op = "backward", source = "view", into = "fresh gradients" },
  { op = "release", source = "view" },
  { op = "reduce_scatter", source = "fresh gradients", axes = ["dp"] },
  { op = "accumulate", source = "fresh gradients", into = "gradients", within = ["dp"] },
  { op = "release", source = "fresh gradients" },
]
finish = [
  AGAIN
  { op = "update", source = "gradients", into = "optimizer", within = ["dp"] },
  { op = "reset", source = "gradients" },
]
"""
GATHER = '{ op = "all_gather", source = "parameters", into = "view", axes = ["dp"] },'
OWN = '{ op = "keep", source = "parameters", into = "view", within = ["dp"] },'
SUMMED = '{ op = "all_reduce", source = "view", axes = ["dp"] },'
ZEROS = '{ op = "zero", source = "view" },'

WHOLE = """
axes = ["dp"]
REST
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },
  EACH
]
finish = [
  LAST
  { op = "reset", source = "gradients" },
]
"""
ZERO1 = '[rest]\noptimizer = { sharded = ["dp"] }'
SCATTER = '{ op = "reduce_scatter", source = "gradients", axes = ["dp"] },'
ALL_REDUCE = '{ op = "all_reduce", source = "gradients", axes = ["dp"] },'
UPDATE_SLICE = """{ op = "update", source = "gradients", into = "optimizer", within = ["dp"] },
  { op = "all_gather", source = "parameters", axes = ["dp"] },"""

EXPERTS = """
axes = ["ep", "dp"]
[rest]
parameters = { sharded = ["ep"] }
optimizer = { sharded = ["ep"] }
gradients = { sharded = ["ep"] }
[step]
micro_step = [
  { op = "all_gather", source = "parameters", into = "view", axes = ["ep"] },
  { op = "forward", source = "view", into = "activations" },
  { op = "backward", source = "view", into = "fresh gradients" },
  { op = "release", source = "view" },
  { op = "reduce_scatter", source = "fresh gradients", axes = ["ep"] },
  { op = "accumulate", source = "fresh gradients", into = "gradients", within = ["ep"] },
  { op = "release", source = "fresh gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["dp"], within = ["ep"] },
  AGAIN
  { op = "update", source = "gradients", into = "optimizer", within = ["ep"] },
  { op = "reset", source = "gradients" },
]
"""
WHOLE_GROUP = """
axes = ["dp"]
[rest]
activations = { sharded = ["dp"] }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  GATHER
  { op = "backward", source = "parameters", into = "gradients", axes = ["dp"] },
]
finish = [
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
"""


def slices(fetch, again=""):
    return SLICES.replace("FETCH", fetch).replace("AGAIN", again)


def whole(each, *last, rest=ZERO1):
    text = WHOLE.replace("REST", rest).replace("EACH", each)
    return text.replace("LAST", "\n  ".join(last))


UPDATE = '{ op = "update", source = "gradients", into = "optimizer" },'
RIGHT = {
    "gathered": slices(GATHER),
    "its own slice among zeros is summed": slices(ZEROS + OWN + SUMMED),
    "reduced once": whole("", SCATTER, UPDATE_SLICE),
    "experts": EXPERTS.replace("AGAIN", ""),
    "activations of the group are gathered": WHOLE_GROUP.replace(
        "GATHER", '{ op = "all_gather", source = "activations", axes = ["dp"] },'
    ),
    "each device does all samples": WHOLE_GROUP.replace("GATHER", "").replace(
        '["dp"] }\n[step]', "[] }\n[step]"
    ),
}
WRONG = {
    "a slice is fetched by a sum over what others hold": (slices(OWN + SUMMED), "fresh", "mixes"),
    "slices are summed once more": (slices(GATHER, ALL_REDUCE), "whole", "mixes"),
    "slices are summed once more, as slices": (
        slices(GATHER, ALL_REDUCE.replace('["dp"]', '["dp"], within = ["dp"]')),
        "whole",
        "mixes different elements",
    ),
    "slices of experts are summed with those of others": (
        EXPERTS.replace("AGAIN", ALL_REDUCE.replace("dp", "ep")),
        "whole",
        "mixes",
    ),
    "reduced in place in every micro-step": (whole(SCATTER, SCATTER, UPDATE_SLICE), "whole", "mixes"),
    "reduced in place, then summed": (
        whole(SCATTER, ALL_REDUCE, UPDATE, rest=""),
        "whole",
        "mixes",
    ),
    "a view that was released is read": (
        slices(GATHER).replace(
            '{ op = "forward"', '{ op = "release", source = "view" },\n  { op = "forward"'
        ),
        "fresh",
        "released",
    ),
    "the group's activations are not there": (WHOLE_GROUP.replace("GATHER", ""), "fresh", "its own"),
    "whole gradients go where slices rest": (
        slices(GATHER)
        .replace("reduce_scatter", "all_reduce")
        .replace(
            ', within = ["dp"] },\n  { op = "release", source = "fresh',
            ' },\n  { op = "release", source = "fresh',
        ),
        "room",
        "slices along dp",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_relies_on_nothing_unknown_is_accepted_and_matches(name):
    schedule = loads(RIGHT[name], name)
    for devices in (1, 2, 3):
        for micro_steps in (1, 2):
            assert agree_on_the_verdict(schedule, dict.fromkeys(schedule.axes, devices), micro_steps)


@pytest.mark.parametrize("name", WRONG)
def test_what_relies_on_zeros_that_are_not_there_is_rejected_and_diverges(name):
    text, rule, words = WRONG[name]
    schedule = loads(text, name)
    for devices in (2, 3):
        for micro_steps in (1, 2):
            mesh = dict.fromkeys(schedule.axes, devices)
            verdict = check(schedule, mesh, micro_steps)
            assert (verdict.accepted, verdict.rule) == (False, rule)
            assert words in reason(verdict)
            if rule != "room":  # the language refuses that; a run cuts
                assert not agree_on_the_verdict(schedule, mesh, micro_steps)
                assert first_divergence(schedule, mesh, micro_steps=micro_steps, steps=3)


UPDATE_ONLY, PUBLISH = UPDATE_SLICE.split("\n")


def test_activations_that_are_not_kept_are_made_again():
    lost = WHOLE_GROUP.replace("GATHER", "").replace('sharded = ["dp"]', "stored = false")
    assert "its activations are not known" in reason(check(loads(lost, ""), {"dp": 2}))
    assert not agree_on_the_verdict(loads(lost, ""), {"dp": 2}, 1)
    again = '{ op = "recompute", source = "parameters", into = "activations" },'
    made = lost.replace('{ op = "backward"', f'{again}\n  {{ op = "backward"')
    assert agree_on_the_verdict(loads(made, ""), {"dp": 2}, 1)


def test_an_optimizer_state_without_a_copy_has_no_room_for_weights():
    through = """
  { op = "all_gather", source = "parameters", into = "optimizer view", axes = ["dp"] },
  { op = "keep", source = "optimizer view", into = "view" },"""
    schedule = loads(slices(through), "")
    for devices in (1, 2):
        assert agree_on_the_verdict(schedule, {"dp": devices}, 1)
        assert not agree_on_the_verdict(schedule, {"dp": devices}, 1, POLICIES["fp32-adam"])


WORKING = whole("", SCATTER, UPDATE_ONLY).replace("micro_step = [\n", f"micro_step = [\n{PUBLISH}\n")
DECLARED = WORKING.replace("[rest]", "[rest]\nparameters = { working = true }")


def test_a_working_copy_is_current_where_it_is_read_and_old_between_steps_if_it_says_so():
    mesh = {"dp": 2}
    assert check(loads(WORKING, ""), mesh).rule == "agreed"
    assert agree_on_the_verdict(loads(DECLARED, ""), mesh, 2)
    stale = DECLARED.replace(PUBLISH, "")
    assert check(loads(stale, ""), mesh).rule == "fresh"
    assert not agree_on_the_verdict(loads(stale, ""), mesh, 2)


def test_a_working_copy_is_no_copy_to_continue_from():
    alone = DECLARED.replace('optimizer = { sharded = ["dp"] }', "optimizer = { stored = false }")
    assert "no copy" in reason(check(loads(alone, ""), {"dp": 2}))


NEXT = slices("", "").replace('axes = ["dp"]\n', 'axes = ["dp"]\nstart = ["view"]\n', 1)
PREFETCHED = NEXT.replace('  { op = "release", source = "view" },\n', "").replace(
    "finish = [\n", 'finish = [\n  { op = "release", source = "view" },\n'
)


def test_a_view_gathered_for_the_next_step_is_there_at_its_start():
    reset = '{ op = "reset", source = "gradients" },\n'
    gathered = PREFETCHED.replace(reset, reset + "  " + GATHER + "\n")
    schedule = loads(gathered, "")
    assert loads(dumps(schedule, "a title"), "") == schedule
    assert agree_on_the_verdict(schedule, {"dp": 3}, 2)
    for forgotten in (PREFETCHED, gathered.replace('start = ["view"]\n', "")):
        assert check(loads(forgotten, ""), {"dp": 3}).rule == "fresh"
        assert not agree_on_the_verdict(loads(forgotten, ""), {"dp": 3}, 2)


STATISTICS = """
axes = ["dp"]
[training]
statistics = "WHOSE"
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  SAME
  { op = "backward", source = "parameters", into = "gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["dp"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
"""
MEAN = '{ op = "all_reduce", source = "statistics", axes = ["dp"], mean = true },'
TOTAL = '{ op = "all_reduce", source = "statistics", axes = ["dp"] },'
FIRST = '{ op = "broadcast", source = "statistics", axes = ["dp"] },'
FORWARD = '{ op = "forward", source = "parameters", into = "activations" },'


@pytest.mark.parametrize(
    ("whose", "same", "right"),
    [
        ("all samples", MEAN, True),
        ("all samples", MEAN + MEAN, True),
        ("first device", FIRST, True),
        ("all samples", FIRST, False),
        ("all samples", TOTAL, False),
        ("all samples", MEAN + TOTAL, False),
        ("all samples", FORWARD + MEAN, False),
        ("all samples", "", False),
        ("first device", MEAN, False),
        ("first device", FORWARD + FIRST, False),
        ("first device's copy", FIRST, True),
        ("first device's copy", "", True),
        ("first device's copy", MEAN, False),
        ("first device's copy", FORWARD, False),
    ],
)
def test_statistics_are_a_single_devices_of_the_samples_that_move_them(whose, same, right):
    text = STATISTICS.replace("WHOSE", whose).replace("SAME", same)
    schedule = loads(text, "")
    for devices in (2, 3):
        assert agree_on_the_verdict(schedule, {"dp": devices}, 2) is right
        assert (first_divergence(schedule, {"dp": devices}, steps=3) is None) is right


def test_statistics_sent_by_the_first_device_before_forward_are_its_copy():
    sent_first = STATISTICS.replace("SAME", "").replace("micro_step = [", f"micro_step = [\n  {FIRST}")
    for whose, right in (("first device's copy", True), ("first device", False)):
        schedule = loads(sent_first.replace("WHOSE", whose), "")
        for devices in (2, 3):
            assert agree_on_the_verdict(schedule, {"dp": devices}, 2) is right
            assert (first_divergence(schedule, {"dp": devices}, steps=3) is None) is right
    rejected = check_schedule(loads(sent_first.replace("WHOSE", "first device"), ""), {}, None)
    assert rejected.declaration == OF_STATISTICS[Statistics.COPY]


def test_statistics_of_the_first_device_that_are_said_to_be_of_all_are_told_how_to_say_it():
    text = (EXAMPLES / "safe_statistics_of_both_axes.toml").read_text()
    of_all = loads(text.replace('statistics = "first device"', "statistics = true"), "")
    assert check_schedule(of_all, {}, None).declaration == OF_STATISTICS[Statistics.FIRST]


def test_a_reset_within_slices_leaves_what_is_outside():
    within = whole("", ALL_REDUCE, UPDATE, rest="").replace(
        'op = "reset", source = "gradients"', 'op = "reset", source = "gradients", within = ["dp"]'
    )
    assert agree_on_the_verdict(loads(within, ""), {"dp": 1}, 1)
    assert not agree_on_the_verdict(loads(within, ""), {"dp": 2}, 1)


def test_the_norm_of_what_rests_as_slices_is_that_of_the_devices_own():
    clipped = slices(
        GATHER,
        """{ op = "square_norm", source = "gradients", into = "norm" },
  { op = "all_reduce", source = "norm", axes = ["dp"] },
  { op = "clip", source = "gradients", by = "norm" },""",
    ).replace("[rest]", "[training]\nclip = true\n[rest]")
    for devices in (1, 2, 3):
        assert agree_on_the_verdict(loads(clipped, ""), {"dp": devices}, 2)


OFF_ITSELF = """
  { op = "keep", source = "fresh gradients", into = "tied gradients" },
  { op = "keep", source = "tied gradients", into = "fresh gradients" },
  { op = "scale", source = "fresh gradients", by = "-1" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  TAKEN
  { op = "release", source = "fresh gradients" },
  { op = "release", source = "tied gradients" },
"""
TAKEN = '{ op = "accumulate", source = "tied gradients", into = "gradients" },'


@pytest.mark.parametrize(("taken", "matches"), [(TAKEN, True), ("", False)])
def test_what_is_not_known_and_taken_off_from_itself_is_rejected_though_it_does_no_harm(taken, matches):
    """T4: what is not known may cancel; the checker lets it never."""
    last = f"{ALL_REDUCE}\n{OFF_ITSELF.replace('TAKEN', taken)}\n{UPDATE}"
    added = f'{TAKEN} {{ op = "release", source = "tied gradients" }},'
    text = WHOLE.replace("REST", "[training]\ntied = true").replace("EACH", added)
    schedule = loads(text.replace("LAST", last), "off.toml")

    def any_numbers(what, *index):
        return 5 + sum(map(hash, index)) % 97 if what == "unknown" else primes(what, *index)

    assert check(schedule, {"dp": 2}).rule == "whole"
    assert (first_divergence(schedule, {"dp": 2}, data=any_numbers) is None) is matches


def never_reset(each, *last):
    return whole(each, *last, rest="").replace('  { op = "reset", source = "gradients" },\n', "")


ADDED = '{ op = "accumulate", source = "gradients", into = "fresh gradients" },'
TURNED = '{ op = "scale", source = "fresh gradients", by = -1 },'
OLD = f'{{ op = "zero", source = "fresh gradients", span = "whole" }}, {ADDED} {TURNED}'  # taken off
APPLIED = ALL_REDUCE.replace("grad", "fresh grad"), UPDATE.replace('"grad', '"fresh grad')
SIGN = '{ op = "scale", source = "gradients", by = -1, within = ["dp"] },'
SQUARES = '{ op = "square_norm", source = "gradients", into = "norm" },'
CLIP = '{ op = "clip", source = "gradients", by = "norm" },'
NORM = whole("", ALL_REDUCE, SIGN, SQUARES, SIGN, CLIP, UPDATE, rest="[training]\nclip = true")


@pytest.mark.parametrize(("text", "steps"), [(never_reset("", ADDED, *APPLIED, OLD), 12), (NORM, 2)])
def test_what_cancels_in_sums_that_never_end_or_in_squares_is_rejected_though_it_matches(text, steps):
    """T4 names both; a rejection without a run that diverges says so."""
    schedule = loads(text, "mine.toml")
    found = check_schedule(schedule, {"dp": 2, "micro_steps": 1}, None)
    assert not found.verdict.accepted
    assert first_divergence(schedule, {"dp": 2}, steps=steps) is None
    assert "not all that is rejected does" in found.sections()[0].notes[-1]


def test_a_run_that_diverges_has_the_micro_steps_that_are_given():
    """Of two, what is applied is the last one's gradient alone; with one all matches."""
    text = never_reset(ADDED, *APPLIED).replace('{ op = "backward"', f'{OLD} {{ op = "backward"')
    schedule = loads(text, "mine.toml")
    one, two = (check_schedule(schedule, {"micro_steps": n}, None) for n in (1, 2))
    assert one.run is None
    assert two.run.case.micro_steps == 2
