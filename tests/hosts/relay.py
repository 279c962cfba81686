"""A cable between two hosts that does to round-trip messages what a script says: a relay in this process
between two TAP devices. It knows a message by the fixed pattern of its body
(core/src/measure/payload.hpp), and its number by where the middleware puts it."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

CHECKSUM_BYTES = 4
BODY = bytes((i * 131 + (i >> 8)) & 0xFF for i in range(CHECKSUM_BYTES, 36))
"""How the body of a message begins, after the checksum."""

PING, PONG = "ping", "pong"
DIRECTIONS = {0: PING, 1: PONG}  # by the end that a frame comes from
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_ETHERNET = 14
_LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class Hold:
    """Kept back until message ``until`` of its direction has passed, and ``least_s`` seconds at least."""

    until: int
    least_s: float = 0


DROP, TWICE, CORRUPT = "drop", "twice", "corrupt"
Script = dict[tuple[str, int], str | Hold]
"""What to do with a message, by direction and number."""


@dataclass
class _Held:
    end: int
    frame: bytes
    what: Hold
    since_s: float


@dataclass
class Relay:
    """Two ends; frames that hold no message, or one that no script speaks of, pass at once."""

    names: tuple[str, str]
    ends: tuple[int, int]
    script: Script = field(default_factory=dict)
    number_before: int = 0  # bytes from a message's number to its payload
    passed: dict[str, set[int]] = field(default_factory=dict)  # by direction: the messages seen
    done: Counter[str] = field(default_factory=Counter)  # by what was done
    dropped: set[int] = field(default_factory=set)  # messages of either direction
    _held: list[_Held] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @classmethod
    def between(cls, hosts: tuple[str, str], device: str) -> Relay:
        """A cable from one network namespace to the other; ``device``: its name in both."""
        ends = []
        for host in hosts:
            name = f"{host}r"
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
            subprocess.run(["ip", "link", "set", name, "netns", host, "name", device], check=True)
            ends.append(end)
        relay = cls(hosts, (ends[0], ends[1]))
        relay._thread = threading.Thread(target=relay._run, daemon=True)
        relay._thread.start()
        return relay

    def play(self, script: Script, number_before: int) -> None:
        """From now on this is done; what was seen is forgotten."""
        self.passed, self.done, self.dropped = {PING: set(), PONG: set()}, Counter(), set()
        self.script, self.number_before = script, number_before

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for end in self.ends:
            os.close(end)

    def _run(self) -> None:
        while not self._stop.is_set():
            ready, _, _ = select.select(self.ends, [], [], _LOOK_EVERY_S)
            for end in ready:
                self._arrived(self.ends.index(end), os.read(end, 65536))
            self._let_go()

    def _arrived(self, end: int, frame: bytes) -> None:
        number = self._number(frame)
        action = self.script.get((DIRECTIONS[end], number)) if number is not None else None
        if isinstance(action, Hold):
            self._held.append(_Held(end, frame, action, time.monotonic()))
            return
        if action == CORRUPT:
            frame = _corrupted(frame)
        if action is not None:
            self.done[action] += 1
        if action == DROP and number is not None:
            self.dropped.add(number)
        if action != DROP:
            self._forward(end, frame)
        if action == TWICE:
            self._forward(end, frame)
        if number is not None:
            self.passed.setdefault(DIRECTIONS[end], set()).add(number)

    def _let_go(self) -> None:
        now_s = time.monotonic()
        for held in list(self._held):
            passed = max(self.passed[DIRECTIONS[held.end]], default=-1)
            if passed >= held.what.until and now_s - held.since_s >= held.what.least_s:
                self._held.remove(held)
                self._forward(held.end, held.frame)
                self.done["hold"] += 1

    def _forward(self, end: int, frame: bytes) -> None:
        try:
            os.write(self.ends[1 - end], frame)
        except OSError:  # the other end is down
            self.done["refused"] += 1

    def _number(self, frame: bytes) -> int | None:
        """That of the message in the frame; None where there is none, or it asks for the server."""
        at = frame.find(BODY) - CHECKSUM_BYTES - self.number_before
        if not self.number_before or at < _ETHERNET:
            return None
        (number,) = struct.unpack_from("<Q", frame, at)
        return int(number) if number < 2**63 else None


def _corrupted(frame: bytes) -> bytes:
    """One byte of the body changed, and the UDP checksum, which need not be given, taken out."""
    changed = bytearray(frame)
    changed[frame.find(BODY)] ^= 0xFF
    udp = _ETHERNET + 4 * (frame[_ETHERNET] & 0x0F)
    changed[udp + 6 : udp + 8] = bytes(2)
    return bytes(changed)
