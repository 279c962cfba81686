"""Timers that a plant arms expire at once, also where arming them takes longer than was thought."""

from __future__ import annotations

import struct
from itertools import repeat
from typing import Any

import pytest

from rtmeter.selftest import disturber

TIMERS, MS = 10, 1_000_000


class Kernel:
    """Its clock moves when it is looked at, and while a timer is armed, which ``takes_ns``."""

    def __init__(self, takes_ns: int) -> None:
        self.takes_ns, self.now_ns = takes_ns, 0
        self.expiries: list[int] = []

    def monotonic_ns(self) -> int:
        self.now_ns += 1000
        return self.now_ns

    def timer_create(self, *_: Any) -> int:
        return 0

    def timer_settime(self, _timer: Any, _how: int, expiry: bytes, _old: None) -> int:
        seconds, ns = struct.unpack("4q", expiry)[2:]
        self.expiries.append(seconds * 10**9 + ns)
        self.now_ns += self.takes_ns
        return 0

    def timer_gettime(self, *_: Any) -> int:
        return 0


@pytest.mark.parametrize(("takes_ns", "rounds"), [(0, 1), (9 * MS, 1), (50 * MS, 4), (10_000 * MS, 5)])
def test_they_are_armed_further_ahead_until_that_is_in_time(
    takes_ns: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(takes_ns)
    monkeypatch.setattr(disturber, "TIMERS", TIMERS)
    monkeypatch.setattr(disturber, "LIBC", kernel)
    monkeypatch.setattr(disturber.time, "monotonic_ns", kernel.monotonic_ns)
    for module, name in ((disturber.signal, "pthread_sigmask"), (disturber.resource, "setrlimit")):
        monkeypatch.setattr(module, name, lambda *_: None)
    began_ns = disturber.timers()(20 * MS)
    assert len(kernel.expiries) == rounds * TIMERS
    assert kernel.expiries[-TIMERS:] == [*repeat(kernel.expiries[-1], TIMERS)]
    assert began_ns == kernel.expiries[0], "some of the first round may have been in time for it"
