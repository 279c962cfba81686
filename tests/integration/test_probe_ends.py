"""A probe ends, and says why, also where it has few files or threads, and where nobody reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from probe_runs import Config, probe

from waiting import until

RUN: Config = {"measurement": "wakeup", "samples": 20}
USER = 61_234  # who has no other processes
STARTS = {"files": ("--nofile", 5), "threads": ("--nproc", 1)}
"""Limits, and the least with which a program starts at all."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the user can reach and write to."""
    with tempfile.TemporaryDirectory() as made:
        if os.geteuid() == 0:
            os.chown(made, USER, USER)
        yield Path(made)


@pytest.mark.parametrize("what", STARTS)
def test_of_too_few_files_or_threads_it_says_what_to_raise(folder: Path, what: str) -> None:
    option, least = STARTS[what]
    as_user = [] if os.geteuid() else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    if what == "threads" and not as_user:
        pytest.skip("needs root, whom this limit does not concern, to become another user")
    codes = []
    for limit in range(least, least + 12):
        (folder / "single.rtlog").unlink(missing_ok=True)
        with probe(folder, RUN | {"inside": [*as_user, "prlimit", f"{option}={limit}"]}) as one:
            codes.append(one.end())
        errors = [event for event in one.events if event["event"] == "error"]
        assert codes[-1] == (1 if errors else 0), one.events
        assert all("ulimit -" in error["remedy"] for error in errors), errors
    assert codes == sorted(codes, reverse=True) and {*codes} == {0, 1}


def test_what_it_said_before_anyone_listened_is_heard_to_the_end(tmp_path: Path) -> None:
    """The listener of the tests themselves: a run may be over before they ask for its beginning."""
    with probe(tmp_path, RUN) as one:
        until(lambda: one.process.poll() is not None)
        one.until("ready")
        assert one.end() == 0
        assert one.events[-1]["event"] == "end"


def fill(output: int) -> None:
    """Fills a pipe by an end of its own, so that the probe's stays as it is."""
    end = os.open(f"/proc/self/fd/{output}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(end, b" " * 4096)
    except BlockingIOError:
        os.close(end)


def test_what_nobody_reads_is_left_out_where_it_is_said_again(tmp_path: Path) -> None:
    with probe(tmp_path, RUN | {"samples": 1_000}) as one:
        assert one.process.stdout is not None
        end = os.open(f"/proc/self/fd/{one.process.stdout.fileno()}", os.O_WRONLY)
        os.write(end, b"\n" * 40_000)
        os.close(end)
        until(lambda: one.process.poll() is not None)
        said = [line for line in one.process.stdout.read().splitlines() if line]
    assert one.process.returncode == 0
    assert '"end"' in said[-1]
    assert not any('"progress"' in line for line in said)


def test_it_ends_though_nobody_reads(tmp_path: Path) -> None:
    with probe(tmp_path, RUN | {"samples": 1_000_000}) as one:
        assert one.process.stdout is not None
        one.until("progress")
        fill(one.process.stdout.fileno())
        one.process.terminate()
        assert one.process.wait(120) == 4
