"""A plugin of pytest for the audit: which tests passed, and whether the simulator sent anything.

A test that is expected to fail, is left out or runs nothing in the simulator shows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from psem_model.simulator.network import Network

OPTION = "--audit-record"
_networks: list[Network] = []  # those of the test that runs
_sent: dict[str, bool] = {}
_executed: dict[str, bool] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, help="the file to write: by test, whether it ran and passed")


def pytest_configure() -> None:
    made = Network.__init__

    @wraps(made)
    def noted(self: Network, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        _networks.append(self)

    setattr(Network, "__init__", noted)  # noqa: B010


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    _networks.clear()
    yield
    _sent[item.nodeid] = any(network.messages for network in _networks)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    passed = report.passed and not hasattr(report, "wasxfail")
    if report.when == "call":
        passed = passed and _sent.get(report.nodeid, False)
    _executed[report.nodeid] = _executed.get(report.nodeid, True) and passed


def pytest_sessionfinish(session: pytest.Session) -> None:
    Path(session.config.getoption(OPTION)).write_text(json.dumps(_executed), encoding="utf-8")
