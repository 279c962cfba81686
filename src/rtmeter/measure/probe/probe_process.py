"""One running probe: its config in, its status lines out, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.host.ending import REAP_S, STARTED, kill_group, reap
from rtmeter.measure.probe.places import Place
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import Doubt
from rtmeter.values import from_json

_LONGEST_LINE = 4 * 1024 * 1024
_MOST_AT_ONCE = 8 * 1024 * 1024
"""Bytes that are read before anything else is seen to: a flood has no end."""
MOST_PRINTED_BYTES, FIRST_PRINTED_BYTES = 64 << 20, 1 << 20
"""Of probe.stderr: beyond the former all but the latter is let go."""
_KEPT = ("ready", "greeted", "silent", "end", "error")  # the first of each kind
_COUNTS = ("released", "of", "warm_up", "lost", "skipped")  # of a progress
_WORDS = ("field", "value", "message", "remedy")  # of an error
_BEYOND = 2**63  # what a log has a place for is less


class ProbeProcess:
    """A probe in a session of its own, so that a terminal's Ctrl-C reaches the front alone.

    It ends by itself when the front dies: it watches the pipe that is its standard input.
    """

    def __init__(self, probe: Probe, config: dict[str, Any], folder: Path, place: Place) -> None:
        """Starts it at ``place``. ``config`` is whole (spec/probe.md)."""
        self.probe, self.role = probe, str(config["role"])
        self._said: dict[str, dict[str, Any]] = {}
        self._malformed = 0
        self._stderr, self._cut = folder / "probe.stderr", False
        self.heard_at = self.advanced_at = time.monotonic()
        self._settled = -1  # the most releases that it has said it has settled
        self.silent = False  # once its standard output is closed
        self._rest, self._asked = b"", False
        self._place = place
        self._left_there: list[Doubt] = []
        try:
            command = place.command(probe, config, folder)
        except RtmeterError:
            with contextlib.suppress(RtmeterError):
                place.collect()
            raise
        with self._stderr.open("ab") as stderr:
            try:
                self._popen = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise RtmeterError(
                    f"its probe {probe.path} cannot be started: {error.strerror}",
                    field="adapter",
                    value=probe.name,
                    remedy="build it again",
                ) from None
        STARTED.add(self._popen.pid)
        assert self._popen.stdout is not None
        os.set_blocking(self._popen.stdout.fileno(), False)
        self.exited_fd = os.pidfd_open(self._popen.pid)  # readable once the process has ended

    @property
    def pid(self) -> int:
        """Also the number of its process group; of a probe on another host, that of the connection."""
        return self._popen.pid

    @property
    def status_fd(self) -> int:
        """Readable when a status line has come, and at its end."""
        assert self._popen.stdout is not None
        return self._popen.stdout.fileno()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    @property
    def ended_well(self) -> bool:
        """Complete (0) or interrupted (4); or SIGTERM came before the probe could heed it."""
        return self.exit_code in (0, 4) or (self._asked and self.exit_code == -signal.SIGTERM)

    def read_events(self) -> list[dict[str, Any]]:
        """The status lines that have come since, in order; see ``event``."""
        self._cut_printed()
        got = bytearray(self._rest)
        while len(got) < _MOST_AT_ONCE:
            try:
                data = os.read(self.status_fd, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                self.silent = True
                break
            self.heard_at = time.monotonic()
            got += data
        self._rest = bytes(got)
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        fresh = [event for line in lines if line.strip() and (event := self._parse(line)) is not None]
        for event in fresh:
            if event["event"] in _KEPT:
                self._said.setdefault(event["event"], event)
        settled = max((e["released"] for e in fresh if e["event"] == "progress"), default=-1)
        if settled > self._settled or (self._settled < 0 and any(e["event"] == "ready" for e in fresh)):
            self._settled, self.advanced_at = max(settled, 0), self.heard_at
        return fresh

    def _cut_printed(self) -> None:
        """However much it prints, it fills no disk. It goes on at the file's end, wherever that is."""
        with contextlib.suppress(OSError):
            if self._stderr.stat().st_size > MOST_PRINTED_BYTES:
                os.truncate(self._stderr, FIRST_PRINTED_BYTES)
                self._cut = True

    def doubts(self) -> list[Doubt]:
        """About what it said, and what of it stays where it ran."""
        found = list(self._left_there)
        if self._malformed:
            message = f"{self._malformed} status lines of the {self.role} probe could not be read"
            hint = "does something else write to the probe's standard output?"
            found.append(Doubt("malformed_status", message, hint))
        if self._cut:
            most = f"{MOST_PRINTED_BYTES >> 20} MiB"
            message = f"the {self.role} probe printed more than {most}: its first words and its last are kept"
            found.append(Doubt("printed_too_much", message, "have the middleware log less"))
        return found

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        try:
            event = from_json(line)
        except ValueError:
            event = None
        if isinstance(event, dict) and isinstance(event.get("event"), str) and _is_whole(event):
            return event
        self._malformed += 1
        return None

    def event(self, kind: str) -> dict[str, Any] | None:
        """The first event of that kind, but progress, if it came."""
        return self._said.get(kind)

    def tell(self, line: str) -> None:
        """A line on its standard input; one that has ended does not hear it."""
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):
            os.write(self._popen.stdin.fileno(), line.encode())

    def ask_to_end(self) -> None:
        """It keeps what it measured."""
        if self.exit_code is None:
            self._asked = True
            self._place.ask_to_end(self._popen)

    def kill(self) -> None:
        """SIGKILL to it and to all that it has started in its session, also if it has ended itself."""
        kill_group(self._popen.pid)

    def close(self) -> None:
        """Kills what is left of it, reaps it, and brings its log.

        Raises RtmeterError if that fails, or if the kernel does not let it go.
        """
        self.kill()
        gone = reap(self._popen)
        self.read_events()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        os.close(self.exited_fd)
        STARTED.remove(self._popen.pid)
        if not gone:
            raise RtmeterError(
                f"was killed and is still there after {REAP_S} s (process {self._popen.pid})",
                field="probe",
                value=self.probe.name,
                remedy="see what it waits for in /proc/PID/stack; the machine may have to be booted anew",
            )
        self._left_there = self._place.collect()


def _is_whole(event: dict[str, Any]) -> bool:
    """Whether a progress has the numbers that a progress has, an error its words, and a silent its time; of
    others, yes."""
    if event["event"] == "error":
        return all(isinstance(event.get(name), str | None) for name in _WORDS)
    if event["event"] == "silent":
        return type(event.get("since_ns")) is int
    if event["event"] != "progress":
        return True
    counts, largest = [event.get(name) for name in _COUNTS], event.get("max_ns")
    whole = all(type(count) is int and 0 <= count < _BEYOND for count in counts)
    return whole and (largest is None or (type(largest) is int and -_BEYOND <= largest < _BEYOND))
