"""Files that are installed with the packages: without them there is an error, and no empty answer."""

import pytest

from proofs import registry
from psem_model.reading import schedules
from psem_model.tables import evidence


@pytest.mark.parametrize("command", ["prove", "explain", "audit"])
def test_claims_that_are_not_there_cannot_be_read(command, psem, monkeypatch, tmp_path):
    missing = tmp_path / "claims.toml"
    monkeypatch.setattr(registry, "REGISTRY", missing)
    code, out, err = psem(command, "C1")
    assert (code, out) == (2, "")
    assert err == f"psem: cannot read the claims, {missing}: No such file or directory\n"


@pytest.mark.parametrize("table", ["schedules", "compositions"])
def test_a_gallery_without_schedules_is_no_table(table, psem, monkeypatch, tmp_path):
    monkeypatch.setattr(schedules, "EXAMPLES", tmp_path)
    monkeypatch.setattr(evidence, "_gallery", evidence._gallery.__wrapped__)  # nothing is remembered
    code, out, err = psem("tables", table, "--format", "csv")
    assert (code, out) == (2, "")
    assert err.startswith(f"psem: cannot read {tmp_path}: it has no schedule; expected ")
