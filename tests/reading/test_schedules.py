"""Schedules as TOML: what is written is read back, and what cannot be used is named with its line."""

import re
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.schedule_keys import default_span
from psem_model.reading.schedules import dumps, loads, read
from psem_model.reading.toml_lines import locate
from psem_model.text.errors import BadInput
from psem_model.text.files import LARGEST_FILE
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    BY,
    COLLECTIVE_KINDS,
    REDUCTIONS,
    TAKES,
    Buffer,
    Kind,
    MisfitError,
    Monomial,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.models.states import State
from spec.models.training import Loss, Statistics, Training
from spec.plans.modes import Mode
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

SYMBOLS = [mode.value for mode in Mode]
PLACEMENTS = [on_batch(*modes) for modes in product(SYMBOLS, repeat=4)]
PLACEMENTS += [on_batch("S*", *modes, hold=True) for modes in product(SYMBOLS, repeat=3)]
ZERO2 = dumps(schedule_of(STRATEGIES["zero2"]), "zero2")


# ----------------------------------------------------------------- round trips
def test_every_derived_schedule_is_read_back_as_it_was():
    for placement in [*PLACEMENTS, *STRATEGIES.values()]:
        schedule = schedule_of(placement)
        assert loads(dumps(schedule, "a title"), "x.toml") == schedule


@st.composite
def factors(draw, axes):
    names = draw(st.lists(st.sampled_from([*axes, "micro_steps"]), unique=True))
    powers = st.integers(-3, 3).filter(bool)
    number = draw(st.fractions(-1000, 1000, max_denominator=1000))
    return Monomial(number, tuple((name, draw(powers)) for name in names))


@st.composite
def operations(draw, axes):
    """Any operation that the specification takes."""
    kind = draw(st.sampled_from(Kind))
    sources, targets = draw(st.sampled_from(TAKES[kind]))
    source = draw(st.sampled_from(sources))
    in_place = not targets or source in targets
    target = draw(st.sampled_from([*([None, source] if in_place else []), *targets]))
    some = st.lists(st.sampled_from(axes), unique=True)
    along = draw(some) if kind in (*COLLECTIVE_KINDS, Kind.BACKWARD, Kind.COUNT) else []
    within = [a for a in draw(some) if a not in along]
    by = draw(st.sampled_from(BY[kind])) if BY.get(kind) else None
    fields = {
        "axes": tuple(along),
        "within": tuple(within),
        "span": draw(st.sampled_from(Span)),
        "mean": kind in REDUCTIONS and draw(st.booleans()),
        "shift": draw(st.sampled_from([0, 0, 1, -2])),
        "by": draw(factors(axes)) if kind is Kind.SCALE else by,
    }
    while True:
        try:
            return Op(kind, draw(st.sampled_from(Phase)), source, target, **fields)
        except MisfitError as error:  # a field that is not for this kind of operation
            if error.field == "span":
                fields["span"] = default_span(kind, source, target)
            else:
                del fields[error.field]


@st.composite
def schedules(draw):
    """Any schedule whose buffers are there."""
    axes = draw(st.sampled_from([("batch",), ("replica", "shard"), ("a", "b", "tokens")]))
    micro_step = draw(st.lists(operations(axes), min_size=1, max_size=8))
    finish = draw(st.lists(operations(axes), max_size=5))
    used = {b for op in micro_step + finish for b in (op.source, op.target)}
    needed = {State.PARAMETERS: Buffer.PARAMETERS, State.GRADIENTS: Buffer.GRADIENTS}
    rests = tuple(
        (
            state,
            Rest(
                tuple(draw(st.lists(st.sampled_from(axes), unique=True))),
                needed.get(state) in used or draw(st.booleans()),
                draw(st.booleans()),
            ),
        )
        for state in State
    )
    training = Training(
        draw(st.sampled_from(Loss)),
        draw(st.booleans()),
        Buffer.TIED in used or draw(st.booleans()),
        draw(st.sampled_from(Statistics if Buffer.STATISTICS in used else [None, *Statistics])),
    )
    return Schedule(axes, rests, tuple(micro_step), tuple(finish), training)


@given(schedules(), st.text())
def test_any_schedule_is_read_back_as_it_was_under_any_title(schedule, title):
    assert loads(dumps(schedule, title), "x.toml") == schedule


@pytest.mark.slow
@given(schedules())
def test_each_operation_is_on_a_line_of_its_own(schedule):
    text = dumps(schedule, "a title")
    for part, ops in (("micro_step", schedule.micro_step), ("finish", schedule.finish)):
        for index, op in enumerate(ops):
            line = text.split("\n")[locate(text, ("step", part, index)) - 1]
            assert line.startswith(f'  {{ op = "{op.kind.value}", source = "{op.source.value}"')
            assert line.endswith(" },")


def test_what_is_as_when_left_out_is_not_written():
    assert "span" not in ZERO2.split("[step]")[1]
    assert "stored" not in ZERO2
    assert ZERO2.count('phase = "') == 2  # the all_gather after the update publishes, not reset
    assert "into" not in next(line for line in ZERO2.split("\n") if "reduce_scatter" in line)


def test_states_and_tables_that_are_left_out_have_their_defaults():
    step = '[step]\nmicro_step = [{op = "forward", source = "parameters", into = "activations"}]'
    schedule = loads(f'axes = ["batch"]\n{step}\n', "x.toml")
    assert dict(schedule.rests) == dict.fromkeys(State, Rest())
    assert (schedule.training, schedule.finish) == (Training(), ())
    assert schedule.micro_step[0].phase is Phase.FORWARD


@pytest.mark.parametrize(
    ("text", "number", "sizes"),
    [
        ('"1/2"', Fraction(1, 2), ()),
        ("2", Fraction(2), ()),
        ('"batch"', Fraction(1), (("batch", 1),)),
        ('"1/batch/batch"', Fraction(1), (("batch", -2),)),
        ('"3/2*batch/micro_steps"', Fraction(3, 2), (("batch", 1), ("micro_steps", -1))),
        ('"batch/batch*-1"', None, None),
        ('"-1/batch"', Fraction(-1), (("batch", -1),)),
    ],
)
def test_factors_are_numbers_times_sizes(text, number, sizes):
    given_ = ZERO2.replace('op = "reset",', f'op = "scale", by = {text},')
    if number is None:
        with pytest.raises(BadInput, match=r"finish 3, by: given 'batch/batch\*-1'; expected a factor"):
            loads(given_, "x.toml")
    else:
        assert loads(given_, "x.toml").finish[-1].by == Monomial(number, sizes)


# ---------------------------------------------------------------------- errors
def error(text, name="my.toml"):
    with pytest.raises(BadInput) as caught:
        loads(text, name)
    message = str(caught.value)
    assert "\n" not in message
    return message


SCATTER = '{ op = "reduce_scatter", source = "fresh gradients", axes = ["batch"] }'
RELEASE = '{ op = "release", source = "fresh gradients" }'
PUBLISH = '{ op = "all_gather", source = "parameters", axes = ["batch"], phase = "publish" }'


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("[step]", "[step", "TOML", "given '[step'; expected valid TOML"),
        ("[rest]", "[rests]", "rests", "given the key 'rests'; expected one of the keys axes"),
        ("[rest]", "[rest]\nhost = {}", "rest.host", "given the key 'host'; expected one of the keys"),
        ('loss = "sum"', 'los = "sum"', "training.los", "nearest: loss"),
        ('loss = "sum"', 'loss = "summ"', "training.loss", "'summ'; expected one of sum, mean"),
        ('loss = "sum"', "clip = 1", "training.clip", "given 1; expected true or false"),
        ("sharded = []", 'sharded = "batch"', "rest.parameters.sharded", "expected an array"),
        ("sharded = []", 'sharded = ["bach"]', "rest.parameters.sharded", "nearest: batch"),
        ("sharded = []", "hots = true", "rest.parameters.hots", "nearest: host"),
        ("sharded = []", 'stored = "no"', "rest.parameters.stored", "given 'no'; expected true"),
        ("{ sharded = [] }", "3", "rest.parameters", "given 3; expected a table"),
        ('axes = ["batch"]', "axes = 3", "axes", "given 3; expected an array"),
        ('axes = ["batch"]', "axes = []", "axes", "given none; expected at least one"),
        ('axes = ["batch"]', "axes = [1]", "axes", "given 1; expected a name in quotes"),
        ('axes = ["batch"]', 'axes = ["host"]', "axes", "not host, micro_steps or weights"),
        ('axes = ["batch"]', 'axes = ["micro_steps"]', "axes", "not host, micro_steps or weights"),
        ('axes = ["batch"]', 'axes = ["a b"]', "axes", "expected a name such as batch"),
        ('axes = ["batch"]', 'axes = ["batch", "batch"]', "axes", "'batch' twice"),
        ("[step]", "[[step]]", "step", "expected a table"),
        ("finish = [", "finsh = [", "step.finsh", "nearest: finish"),
        ("micro_step = [", "micro_steps = [", "step.micro_steps", "nearest: micro_step"),
        ("micro_step = [", "x = 3\nmicro_step = [", "step.x", "expected one of the keys"),
        (SCATTER, '"reduce_scatter"', "micro_step 3", "'reduce_scatter'; expected a table"),
        (SCATTER, SCATTER.replace("op =", "opp ="), "micro_step 3, opp", "nearest: op"),
        (SCATTER, SCATTER.replace("scatter", "scater"), "micro_step 3, op", "nearest: reduce_scatter"),
        (SCATTER, SCATTER.replace("fresh", "frsh"), "micro_step 3, source", "nearest: fresh gradients"),
        (SCATTER, SCATTER.replace('"batch"', '"host"'), "micro_step 3, axes", "expected one of batch"),
        (SCATTER, SCATTER.replace(", axes", ', phase = "foward", axes'), "phase", "nearest: forward"),
        (SCATTER, SCATTER.replace(", axes", ', span = "hole", axes'), "span", "nearest: whole"),
        (PUBLISH, PUBLISH.replace(", axes", ', within = ["batch"], axes'), "within", "not in axes"),
        (SCATTER, RELEASE.replace(" }", ', within = ["batch"] }'), "within", "have no slices"),
        (
            SCATTER,
            SCATTER.replace(", axes", f", shift = {10**20}, axes"),
            "shift",
            "at most 1,000,000,000",
        ),
        (SCATTER, SCATTER.replace(", axes", ', into = "view", axes'), "into", "fresh gradients"),
        (SCATTER, SCATTER.replace(", axes", ", mean = 1, axes"), "mean", "true or false"),
        (SCATTER, SCATTER.replace(", axes", ", shift = true, axes"), "shift", "a whole number"),
        (SCATTER, SCATTER.replace(", axes", ', by = "1/2", axes'), "by", "no by, for reduce_scatter"),
        (SCATTER, SCATTER.replace(', axes = ["batch"]', ""), "micro_step 3", "given no axes"),
        (SCATTER, SCATTER.replace('op = "reduce_scatter", ', ""), "micro_step 3", "given no op"),
        (SCATTER, '{ op = "release" }', "micro_step 3", "given no source"),
        (SCATTER, '{ op = "forward", source = "view" }', "micro_step 3", "given no into"),
        (SCATTER, '{ op = "scale", source = "gradients" }', "micro_step 3", "given no by"),
        (SCATTER, '{ op = "scale", source = "gradients", by = 0.5 }', "by", "a factor such as"),
        (SCATTER, '{ op = "scale", source = "gradients", by = "1/0" }', "by", "division by 0"),
        (SCATTER, '{ op = "scale", source = "gradients", by = "1/bach" }', "by", "nearest: batch"),
        (SCATTER, '{ op = "clip", source = "gradients", by = "nrm" }', "by", "nearest: norm"),
        (SCATTER, '{ op = "update", source = "view", into = "optimizer" }', "source", "gradients"),
        (
            SCATTER,
            '{ op = "update", source = "gradients", axes = ["batch"] }',
            "micro_step 3",
            "optimizer",
        ),
        (SCATTER, SCATTER.replace("fresh", "tied"), "micro_step 3, source", "tied = true"),
        (
            SCATTER,
            '{ op = "all_reduce", source = "statistics", axes = ["batch"] }',
            "source",
            "statistics = true",
        ),
    ],
)
def test_an_error_names_file_line_key_what_is_given_and_what_is_expected(old, new, key, words):
    assert old in ZERO2
    text = ZERO2.replace(old, new, 1)
    changed = zip(ZERO2.split("\n"), text.split("\n"), strict=False)
    line = next(i for i, (before, after) in enumerate(changed, 1) if before != after)
    message = error(text)
    assert re.match(rf"my\.toml, line {line}, ", message), message
    assert f"{key}: given " in message or f"{key}: " in message
    assert words in message
    assert "; expected " in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1, axes: given nothing"),
        ('axes = ["batch"]\n', "step: given nothing; expected a table [step]"),
        ('axes = ["batch"]\n\n[step]\nfinish = []\n', "line 3, step: given no micro_step"),
        ('axes = ["batch"]\n\n[step]\n\nmicro_step = []\n', "line 5, step.micro_step: given no operat"),
        ("axes = [", "line 1, TOML: given 'axes ['; expected valid TOML".replace("s [", "s = [")),
        ("axes = " + "[" * 100_000, "too many brackets"),
        ("shift = " + "9" * 5000, "line 1, TOML"),
        ("x = '''\n" * 3, "TOML"),
    ],
)
def test_what_is_missing_or_no_toml_at_all_is_named(text, words):
    assert words in error(text)


def test_parameters_and_gradients_that_do_not_rest_cannot_be_written():
    for state in ("parameters", "gradients"):
        text = re.sub(rf"^{state} = .*$", f"{state} = {{ stored = false }}", ZERO2, flags=re.MULTILINE)
        assert f"or stored = true for {state} in [rest]" in error(text)


def as_tables(text):
    """The same file with a table for each operation, its keys on lines of their own."""
    schedule = loads(text, "x")
    out = text.split("[step]")[0]
    for part, ops in (("micro_step", schedule.micro_step), ("finish", schedule.finish)):
        for index, _ in enumerate(ops):
            line = text.split("\n")[locate(text, ("step", part, index)) - 1]
            fields = re.findall(r"(\w+ = (?:\[[^]]*\]|[^,]*?))(?:, | \})", line)
            spread = "\n".join(f.replace("[", "[\n  # along\n  ") for f in fields)
            out += f"\n# one more\n[[step.{part}]]\n{spread}\n"
    return out


NAMED = ("op", "source", "into", "axes", "within", "phase", "span")


@pytest.mark.slow
@given(st.sampled_from([*PLACEMENTS, *STRATEGIES.values()]), st.data())
def test_a_misspelt_value_of_an_operation_is_named_with_the_operations_line(placement, data):
    schedule = schedule_of(placement)
    text = dumps(schedule, "a title")
    assert loads(as_tables(text), "x") == schedule
    part = data.draw(st.sampled_from([p for p in ("micro_step", "finish") if getattr(schedule, p)]))
    index = data.draw(st.integers(0, len(getattr(schedule, part)) - 1))
    line = locate(text, ("step", part, index))
    lines = text.split("\n")
    keys = [key for key in NAMED if f"{key} = " in lines[line - 1]]
    key = data.draw(st.sampled_from(keys))
    lines[line - 1] = re.sub(rf'({key} = \[?"\w)', r"\1q", lines[line - 1])
    message = error("\n".join(lines))
    assert message.startswith(f"my.toml, line {line}, {part} {index + 1}, {key}: given ")
    assert "; nearest: " in message
    # where each key has its line, that is the one
    spread = as_tables(text).split("\n")
    start = locate("\n".join(spread), ("step", part, index)) - 1
    assert spread[start] == f"[[step.{part}]]"
    at = next(i for i in range(start, len(spread)) if spread[i].startswith(f"{key} = "))
    value = next(i for i in range(at, len(spread)) if '"' in spread[i])
    spread[value] = re.sub(r'"(\w)', r'"\1q', spread[value], count=1)
    assert error("\n".join(spread)).startswith(f"my.toml, line {at + 1}, {part} {index + 1}, {key}: ")


def test_operations_are_found_however_the_file_is_laid_out():
    text = (
        'axes = [\n  "batch"\n]\n'
        'step = { finish = [{ op = "reset", source = "gradients" }], micro_step = [\n'
        "  # the first\n"
        '  { op = "forward", source = "parameters", into = "activations" }, { op = "backward",'
        ' source = "parameters", into = "gradients", axes = [\n'
        '    "batch"\n'
        "  ] },\n"
        '  { op = """\nrelease""", source = "view" } ] }\n'
    )
    assert len(loads(text, "x").micro_step) == 3
    assert [locate(text, ("step", "micro_step", i)) for i in range(3)] == [6, 6, 9]
    assert locate(text, ("step", "finish", 0)) == 4
    assert locate(text, ("axes",)) == 1
    assert locate(text, ("nothing", "there")) == 1


# ----------------------------------------------------------------------- files
def test_a_file_is_read_with_either_line_end_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbf" + ZERO2.replace("\n", "\r\n").encode())
    assert read(str(path)) == schedule_of(STRATEGIES["zero2"])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    utf16, large = tmp_path / "16.toml", tmp_path / "large.toml"
    utf16.write_bytes(ZERO2.encode("utf-16"))
    large.write_text("#" * (LARGEST_FILE + 1))
    cases = {
        str(tmp_path / "none.toml"): "cannot read it: No such file",
        str(tmp_path): "cannot read it: Is a directory",
        "a\0b": "cannot read it",
        str(utf16): "line 1: given bytes that are not UTF-8 text",
        str(large): "given more than",
    }
    for path, words in cases.items():
        with pytest.raises(BadInput) as caught:
            read(path)
        assert words in str(caught.value)
        assert "psem derive zero2" in str(caught.value)
