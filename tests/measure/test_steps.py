"""Models' steps of files, simulated: as derived ones are, and diverging where they are rejected."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from psem_model.check.files import check_file
from psem_model.check.placements import NotRealisable
from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.programs import step as derived
from psem_model.predict.read import read
from psem_model.predict.report import predicted
from psem_model.reading.products import parse
from psem_model.reading.schedules import dumps
from psem_model.text.errors import BadInput
from spec.derivation.schedules import schedule_of
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few

SHAPE = {
    "layers": "1",
    "hidden": "8",
    "heads": "4",
    "vocabulary": "6",
    "sequence": "4",
    "block": "llama",
}
ONCE = Run(1, "modular", 0)
SUMMED = '"reduce_scatter", source = "down 1"'


def text_of(strategy):
    return derived(parse(strategy), False, "llama", False, None)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file of a text."""
    path = tmp_path_factory.mktemp("steps") / "step.toml"

    def written(text):
        path.write_text(text)
        return str(path)

    return written


def run_of(path, devices):
    return measured(read(Asked("simulate", schedule=path, devices=devices, model=SHAPE)), ONCE)


@pytest.mark.parametrize(
    ("strategy", "sizes"),
    [
        ("zero1 * tp+sp", "2x2"),
        ("fsdp * cp", "2x2"),
        ("zero1+all * tp * cp", "2x2x2"),
        ("dp * tp * pp", "2x2x1"),
    ],
)
def test_a_file_is_simulated_as_the_product_that_it_is_derived_from(strategy, sizes, file):
    asked = Asked("simulate", strategy, devices=sizes, model=SHAPE, profile="textbook")
    one, other = measured(read(asked), ONCE), run_of(file(text_of(strategy)), sizes)
    assert one.stages == other.stages
    assert other.as_predicted
    assert other.divergence is None


TEXT = text_of("zero1 * tp+sp")
LINES = TEXT.splitlines()
SUMMED_AT = next(number for number, line in enumerate(LINES, 1) if SUMMED in line)
NAMES = sorted({*re.findall(r'"([a-z_]+(?: [0-9])?)"', TEXT)})


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_what_is_accepted_of_a_changed_file_trains_as_one_device(data, file):
    """A name in place of another, or a line less; where files are rejected, runs need not diverge."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 2))):
        number = data.draw(st.integers(13, len(lines) - 1))
        found = re.findall(r'"[^"]*"', lines[number])
        if not found or data.draw(st.booleans()):
            del lines[number]
        else:
            name = data.draw(st.sampled_from(NAMES))
            lines[number] = lines[number].replace(data.draw(st.sampled_from(found)), f'"{name}"')
    path = file("\n".join(lines))
    try:
        assume(check_file(path, None, None, None).accepted)
        divergence = run_of(path, "2x2").divergence
    except BadInput:
        assume(False)
    assert divergence is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["d gated", "up"]', '["d gated", "gate"]'),
        ('axes = ["tensor"], within = ["batch"]', 'axes = ["batch"]'),
        ('returns = "d layer_in 2"', 'returns = "d layer_in 1"'),
        ('mlp_norm_scale = "d mlp_norm_scale"', 'mlp_norm_scale = "d attention_norm_scale"'),
    ],
)
def test_a_wrong_line_makes_a_run_diverge(old, new, file):
    assert old in TEXT
    path = file(TEXT.replace(old, new))
    assert not check_file(path, None, None, None).accepted
    run = run_of(path, "2x2")
    assert run.divergence is not None
    assert run.no is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("down_weight", "other_weight"), "given a model that"),
        (TEXT.replace('"gate_open", "up"', '"gate_open", "layer_in"'), "expected"),
        (TEXT.replace('"silu"', '"gelu"'), "given a forward of layer that computes something else"),
        (TEXT.replace(SUMMED, SUMMED.replace("reduce_scatter", "all_gather")), f"line {SUMMED_AT}:"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_in_one_line(text, words, file):
    with pytest.raises(BadInput) as error:
        run_of(file(text), "2x2")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("strategy", ["zero1 * tp+sp", "zero3 * cp * tp"])
def test_what_a_file_needs_and_moves_is_predicted_as_of_its_product(strategy, file):
    sizes = "4x2x2" if strategy.count("*") > 1 else "4x2"
    asked = Asked("predict", strategy, devices=sizes, model=SHAPE, profile="textbook")
    one = predicted(read(asked))
    path = file(text_of(strategy))
    other = predicted(read(Asked("predict", schedule=path, devices=sizes, model=SHAPE)))

    def tables(report):
        return [[row.cells for row in section.rows] for section in report.sections]

    assert tables(one) == tables(other)


def test_what_is_rejected_is_not_predicted(file):
    wrong = file(TEXT.replace('["d gated", "up"]', '["d gated", "gate"]'))
    with pytest.raises(NotRealisable, match="the chain rule"):
        predicted(read(Asked("predict", schedule=wrong, devices="2x2", model=SHAPE)))
    schedule = file(dumps(replace(schedule_of(STRATEGIES["dp"]), finish=()), "dp"))
    with pytest.raises(NotRealisable, match="at the end of the step"):
        predicted(read(Asked("predict", schedule=schedule, devices="2", psi="1000")))


@pytest.mark.parametrize(("strategy", "sizes"), [("zero1 * tp+sp", "2x2"), ("tp+sp * cp", "2x2")])
def test_a_file_is_told_of_as_the_product_that_it_is_derived_from(strategy, sizes, file):
    one = Asked("predict", strategy, devices=sizes, model=SHAPE, profile="textbook")
    other = Asked("predict", schedule=file(text_of(strategy)), devices=sizes, model=SHAPE)
    told, of_file = (predicted(read(asked)).data for asked in (one, other))
    for name, part in told["parts"].items():
        assert sorted(part.pop("kept")) == sorted(of_file["parts"][name].pop("kept"))
    assert {**told, "strategy": ""} == {**of_file, "strategy": ""}


@pytest.mark.parametrize(
    "options",
    few(
        [
            {"order": "gpipe"},
            {"order": "zb-h1"},
            {"order": "zb-h2"},
            {"order": "dualpipev"},
            {"order": "interleaved", "chunks": "2"},
            {"stage_layers": "2,3"},
            {"offload_activations": True},
        ]
    ),
    ids=str,
)
def test_a_file_runs_in_the_order_and_on_the_stages_that_are_asked_for(options, file):
    model = SHAPE | {"layers": "5"} | options
    asked = Asked("simulate", devices="2x2", accumulate="6", model=model)
    one = replace(asked, strategy="tp * pp", profile="textbook")
    other = replace(asked, schedule=file(text_of("tp * pp")))
    planned, of_file = (measured(read(each), ONCE) for each in (one, other))
    assert planned.stages == of_file.stages
    assert of_file.as_predicted


@pytest.mark.parametrize("options", [{"order": "gpipe"}, {"chunks": "2"}, {"stage_layers": "1"}])
def test_a_file_without_stages_is_told_that_an_order_changes_nothing(options, file):
    asked = Asked("predict", schedule=file(TEXT), devices="2x2", model=SHAPE | options)
    with pytest.raises(BadInput, match="given without pp"):
        read(asked)
