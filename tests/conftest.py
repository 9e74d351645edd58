"""What the tests share: the command line in this process, and deterministic Hypothesis profiles."""

from __future__ import annotations

import gc
import json
import os

import pytest
from hypothesis import settings

from proofs.trusted.kernel import Kernel
from psem_model.commands.cli import main
from tests.support.imported import import_all
from tests.support.proved import all_proved

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.load_profile("ci")
os.environ["PSEM_JOBS"] = "1"  # what a test replaces is replaced in this process
os.environ["PSEM_NO_CACHE"] = "1"


def pytest_collection_modifyitems(items):
    """Tests that show all claims are neighbours: in one process, which proves these once."""
    items.sort(key=lambda item: "proved_once" not in item.fixturenames)


def pytest_collection_finish(session):
    """A property draws the same examples alone as after all other tests.

    Terms stay, and so do tests: Python's collector looks at them seldom, which saves a sixth.
    """
    if any(item.get_closest_marker("hypothesis") for item in session.items):
        import_all()
    gc.freeze()
    gc.set_threshold(100_000, 20)


@pytest.fixture
def psem(capsys):
    """psem("predict", ...) -> (exit code, stdout, stderr)."""

    def run(*args):
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in args])
        out, err = capsys.readouterr()
        return stopped.value.code, out, err

    return run


@pytest.fixture
def proved_once(monkeypatch):
    """Commands show claims that are proved once for all tests."""
    monkeypatch.setattr("psem_model.audit.proving.results", all_proved)


@pytest.fixture
def predicted(psem):
    """predicted("zero3", psi=..., devices=...) -> the JSON of psem predict."""

    def run(strategy, **options):
        given = ((f"--{key}", value) for key, value in options.items())
        args = [x for pair in given for x in pair if x is not None]
        code, out, err = psem("predict", strategy, "--json", *args)
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def written(psem, tmp_path):
    """written("zero2", lambda text: ...) -> the path of a strategy's schedule, perhaps changed."""

    def write(strategy, change=lambda text: text):
        code, out, err = psem("derive", strategy)
        assert (code, err) == (0, "")
        path = tmp_path / f"{strategy}.toml"
        path.write_text(change(out))
        return path

    return write


@pytest.fixture
def k():
    """A kernel to attack."""
    return Kernel("attack")


@pytest.fixture
def x(k):
    """A variable of it."""
    return k.integers("x")


@pytest.fixture
def theorem(k, x):
    """A theorem of it."""
    return k.prove("less_is_at_most", x <= 5, given=[x < 5])
