"""Closed or full streams, and signals: one line where it can be written, and nothing is left behind."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import gettempdir

import pytest

from psem_model.audit.proving import interruptible
from psem_model.predict import read
from psem_model.tables import files

COMMANDS = [
    "predict zero3 --psi 9 --devices 8",
    "derive zero2",
    "check zero2 --json",
    "prove S1",
    "--help",
]
FULL = Path("/dev/full")
FULL_OUTPUT = "psem: cannot write the output: No space left on device\n"


def run(command, streams):
    """What a shell runs, with buffers as usual: exit code, output and errors if they are open."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    script = f"exec {sys.executable} -m psem_model {command} {streams}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=usual)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_output_is_one_line(command):
    assert run(command, f">{FULL}") == (2, "", FULL_OUTPUT)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_where_nothing_can_be_told_the_exit_code_tells_it():
    assert run("predict zero9", f"2>{FULL}") == (2, "", "")
    assert run("predict zero9", ">&- 2>&-") == (2, "", "")


@pytest.mark.parametrize("command", ["prove S1", "simulate zero3 --psi 9 --devices 2"])
def test_a_command_works_without_a_stream_for_errors(command):
    code, out, _ = run(command, "2>&-")
    assert code == 0
    assert out


def test_a_closed_output_is_one_line():
    error = "psem: cannot write the output: it is closed\n"
    assert run("predict zero3 --psi 9 --devices 8", ">&-") == (2, "", error)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "out of memory; expected smaller sizes, or more memory"),
        (
            MemoryError("no 977 MiB"),
            "out of memory: no 977 MiB; expected smaller sizes, or more memory",
        ),
        (OSError(errno.EMFILE, "Too many open files"), "the system: Too many open files"),
        (OSError(errno.EAGAIN, "No more processes"), "the system: No more processes"),
    ],
)
def test_what_the_system_has_too_little_of_is_one_line(error, told, psem, monkeypatch):
    def fails(*_):
        raise error

    monkeypatch.setattr(read, "read", fails)
    assert psem("predict", "zero3", "--psi", 9, "--devices", 8) == (2, "", f"psem: {told}\n")


def test_a_file_that_cannot_be_written_is_named(psem, monkeypatch, tmp_path):
    def full(path, _):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(files, "TABLES", {"collectives": files.TABLES["collectives"]})
    for command in (
        ["space", "--plot", tmp_path / "memory.svg"],
        ["tables", "--all", "--folder", tmp_path],
    ):
        code, _, err = psem(*command)
        assert (code, err.count("\n")) == (2, 1)
        # with LaTeX, the tables are typeset in a folder of their own first
        assert err.startswith(
            (f"psem: cannot write {command[-1]}", f"psem: cannot write {gettempdir()}")
        )


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_processes_that_prove_end_with_the_one_that_began_them(number):
    """What they write to is a pipe, which ends when none of them has it."""
    of_two = ["S1", "T4", "--jobs", "2", "--no-cache"]  # the second takes longer than is waited
    heeded = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # also where nohup runs the tests
    code = f"import runpy, signal; {heeded}; runpy.run_module('psem_model', run_name='__main__')"
    args = [sys.executable, "-c", code, "prove", *of_two]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout and running.stdout.readline()  # they have begun
        running.send_signal(number)
        running.communicate(timeout=4)
    assert running.returncode == -number


def test_an_interrupt_is_not_raised_in_a_thread_that_watches():
    raised = []

    def watch(check):
        try:
            check()
        except KeyboardInterrupt:
            raised.append("in a thread")

    with pytest.raises(KeyboardInterrupt), interruptible() as check:
        signal.raise_signal(signal.SIGINT)
        watcher = threading.Thread(target=watch, args=(check,))
        watcher.start()
        watcher.join()
        check()
    assert raised == []
