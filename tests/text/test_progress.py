"""Bars, as a terminal sees them: a pseudo-terminal reads what a command writes to it."""

import json
import os
import re
import subprocess
import sys
import threading

import pytest

from proofs.registry import ROOT, select
from psem_model.check import claims as proved
from psem_model.text import places

pty = pytest.importorskip("pty")

LEFT = re.compile(r"\d+%  00:00:0\d")  # how far, and the time that is left
BARS = """
import time
from psem_model.text.progress import ticker
with ticker("waiting", 20, patience={patience}) as tell:
    for done in (5, 10, 15):
        tell(done)
        time.sleep(0.55)  # a bar tells the time that is left when it has been there for a second
print("done")
"""


def run(*args, at_a_terminal):
    """(what goes to the standard output, a pipe; what goes to the standard error)"""
    command = [sys.executable, *args]
    if not at_a_terminal:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        return done.stdout.decode(), done.stderr.decode()
    terminal, end = pty.openpty()
    said = bytearray()

    def listen():
        try:
            while chunk := os.read(terminal, 4096):
                said.extend(chunk)
        except OSError:  # nobody has the other end
            pass

    listener = threading.Thread(target=listen)
    of_terminal = os.environ | {"TERM": "xterm"}  # whatever the tests are started from
    with subprocess.Popen(
        command, cwd=ROOT, env=of_terminal, stdout=subprocess.PIPE, stderr=end
    ) as process:
        os.close(end)
        listener.start()
        out = process.stdout.read()
    listener.join()
    os.close(terminal)
    return out.decode(), said.decode()


def test_a_bar_tells_the_time_that_is_left_and_is_gone_in_the_end():
    out, shown = run("-c", BARS.format(patience=0), at_a_terminal=True)
    assert out == "done\n"
    assert "waiting" in shown
    assert LEFT.search(shown)
    assert shown.endswith("\033[A\033[K")


def test_no_bar_is_shown_in_a_pipe_or_of_what_does_not_take_long():
    assert run("-c", BARS.format(patience=0), at_a_terminal=False) == ("done\n", "")
    assert run("-c", BARS.format(patience=60), at_a_terminal=True) == ("done\n", "")


def test_a_bar_is_there_before_anything_is_told():
    waits = "with ticker('waiting', 1, patience=0.1) as tell: time.sleep(0.5)"
    code = f"import time; from psem_model.text.progress import ticker\n{waits}"
    assert "waiting" in run("-c", code, at_a_terminal=True)[1]


def test_the_bar_moves_while_one_claim_is_proved(tmp_path, monkeypatch):
    claims = [{"id": "A1", "obligations": 15, "seconds": 0.5}]
    (tmp_path / "report.json").write_text(json.dumps({"claims": claims}))
    monkeypatch.setattr(places, "BUILD", tmp_path)
    monkeypatch.setattr(proved, "POLL", 0.001)
    told = []
    (result,) = proved.results(select(["A1"]), told.append)
    assert result.as_expected
    assert told == sorted(told)
    assert len(set(told)) > 2
    assert max(told) <= 501


@pytest.mark.parametrize("command", [["prove", "S1", "M8"], ["explain", "S1", "M8"]], ids=" ".join)
def test_proving_shows_a_bar_at_a_terminal_and_the_same_output(command):
    words = ("-m", "psem_model", *command)
    (out, shown), (same, silent) = (run(*words, at_a_terminal=each) for each in (True, False))
    assert "proving" in shown
    assert "%" in shown
    assert silent == ""
    assert "proving" not in out
    times = re.compile(r" +\d+ ms|[\d.]+ s;")
    assert times.sub("", out) == times.sub("", same)
