"""What the clocks of another machine say: how far off its day is, and its time since boot."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rtmeter.conditions.target import clock_doubt, monotonic_ns, uptime_shift_ns
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.ssh import Ssh


class Told:
    """A shell that answers what is planted, by a word of the question; nothing else is there."""

    ssh = Ssh("ssh://board", "on")

    def __init__(self, **said: str) -> None:
        self._said = said

    def run(self, script: str) -> tuple[int, bytes]:
        found = next((text for word, text in self._said.items() if word in script), None)
        return (1, b"") if found is None else (0, found.encode())


def board(**said: str) -> RemoteRoot:
    shell: Any = Told(**said)
    return RemoteRoot(shell=shell)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("10060", None),
        ("9940", None),
        ("10061", ": it is 61 s ahead"),
        ("9939", ": it is 61 s behind"),
        ("17300", ": it is 2 h ahead"),
        ("nothing", ""),
    ],
)
def test_a_clock_is_off_by_more_than_a_minute(
    monkeypatch: pytest.MonkeyPatch, there: str, said: str | None
) -> None:
    monkeypatch.setattr(time, "time", lambda: 10_000.0)
    doubt = clock_doubt(board(date=there))
    message = f"the time of day of ssh://board is not the one here{said}"
    assert (doubt and doubt.message) == (None if said is None else message)


@pytest.mark.parametrize(
    ("offsets", "at_ns"),
    [
        ("", 5_000_000_000),
        ("monotonic           -3         500000000\nboottime            -9         0", 2_500_000_000),
        ("monotonic            7         250000000\nboottime             9         0", 12_250_000_000),
    ],
)
def test_the_clock_of_a_time_namespace_is_ahead_by_what_the_kernel_says(offsets: str, at_ns: int) -> None:
    root = board(timer_list="now at 5000000000 nsecs", timens_offsets=offsets)
    assert monotonic_ns(root) == at_ns


def test_a_clock_that_is_not_told_is_roots_to_tell() -> None:
    with pytest.raises(RtmeterError, match="/proc/timer_list is root's alone; log in there as root"):
        monotonic_ns(board())


@pytest.mark.parametrize(("uptime", "shift_ns"), [("12.34 5.00", 11_340_000_000), ("", None), ("x", None)])
def test_the_time_since_boot_there_is_told_beside_the_clock_here(
    monkeypatch: pytest.MonkeyPatch, uptime: str, shift_ns: int | None
) -> None:
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1_000_000_000)
    assert uptime_shift_ns(board(uptime=uptime)) == shift_ns
