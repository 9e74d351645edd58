"""`psem predict` says what the rules of published values derive."""

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from psem_model.published.entries import SYMBOLS, form, published, same
from psem_model.published.reproduce import reproduce
from tests.support.command import exact, predicted
from tests.support.examples import examples

PSI, N = SYMBOLS["Psi"], SYMBOLS["N"]
BY = {"profile": "textbook"}  # published values are the textbook's
SMALL = {"layers": 8, "hidden": 1024, "heads": 16, "sequence": 1024}
SMALL_MESH = {"dp": 1, "pp": 4, "tp": 8, "tp+sp": 8, "tp+sp*pp": "2x4"}


# ------------------------------------------------------------------------ asking psem predict
def at_rest(entry, psi, devices, **more):
    """Bytes of model states between steps."""
    found = predicted(entry.plan, psi=psi, devices=devices, **more)
    return exact(found["memory"]["resting"]["total"])


def divisible(entry):
    """A strategy's step as if N divided Psi."""
    return predicted(entry.plan, psi=64, devices=64, divisible=None)


def of_collective(entry):
    """What one operation sends, in Psi."""
    operations = divisible(entry)["communication"]["operations"]
    (sent,) = (o["elements"]["formula"] for o in operations if o["operation"] == entry.collective)
    return (form(sent) / PSI).subs(N, form(str(entry.inputs["n"])))


def formulas(entry, part="layer", **more):
    """A plan's closed forms, of a small model."""
    plan = entry.plan or "pp"
    found = predicted(plan, devices=SMALL_MESH[plan], recompute=entry.recompute, **BY, **SMALL, **more)
    return {name: form(text) for name, text in found["formulas"][part].items()}


def of_model(entry):
    """A plan for the model of an entry."""
    i = entry.inputs
    shape = {"layers": i["L"], "hidden": i["h"], "heads": i["a"], "sequence": i["s"]}
    mesh = {"dp": 1, "tp": i["t"], "tp+sp": i["t"]}.get(entry.plan, f"{i['t']}x{i['p']}")
    pipe = {"chunks": i["m"], "accumulate": 8 * i["p"]} if i.get("m") else {}
    again = {"micro-batch": i["b"], "recompute": entry.recompute}
    return predicted(entry.plan, devices=mesh, **BY, **shape, **again, **pipe)


def parameters(entry):
    """Parameters of a GPT with an entry's sizes."""
    i = entry.inputs
    shape = {"layers": i["l"], "hidden": i["h"], "heads": 1, "vocabulary": i["V"], "sequence": i["s"]}
    return predicted("dp", devices=1, **shape)["inputs"]["psi"]


def of_one(e):
    """Parameters in 1e9 that fit in a device; where several have a model, as they are printed."""
    one = 32 * 64 / at_rest(e, 64, 64)
    return one if e.inputs["devices of a model"] == 1 else sympy.Rational(round(10 * one), 10)


SAID = {  # by rule
    "bytes_at_rest": lambda e: at_rest(e, repr(e.inputs["psi"]), e.inputs["N"]) / 10**9,
    "largest_model": lambda e: of_one(e) * e.inputs["devices of a model"],
    "bytes_per_parameter": lambda e: at_rest(e, 6400, e.inputs.get("d", 1), bytes=e.policy) / 6400,
    "passes_over_parameters": lambda e: (
        form(divisible(e)["formulas"]["elements"], m=1) / PSI * N / (N - 1)
    ),
    "sent_by_collective": of_collective,
    "layer_activations": lambda e: formulas(e)["activations"],
    "layer_activation_bytes": lambda e: exact(of_model(e)["parts"]["layer"]["activations"]) / 2**30,
    "activation_bytes": lambda e: exact(of_model(e)["memory"]["activations_of_layers"]) / 2**30,
    "sent_in_layer": lambda e: formulas(e)["forward"] + formulas(e)["backward"],
    "handed_on": lambda e: formulas(e, "pipeline")["sent"],
    "idle_share": lambda e: formulas(e, "pipeline", accumulate=8)["bubble_of_ideal"],
    "idle_share_of_chunks": lambda e: formulas(e, "pipeline", accumulate=8, chunks=2)[
        "bubble_of_ideal"
    ],
    "gpt_parameter_count": lambda e: sympy.Rational(parameters(e), 10**9),
}


@pytest.mark.parametrize("rule", SAID)
@examples(6)
@given(data=st.data())
def test_psem_predict_says_what_the_rules_derive(rule, data):
    entry = data.draw(st.sampled_from([entry for entry in published() if entry.rule == rule]))
    assert same(SAID[rule](entry), reproduce(entry).predicted)
