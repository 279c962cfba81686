"""A probe that behaves as its option ``behave`` says: to test what the front does about it.

It follows spec/probe.md but measures nothing: its rows are made up. ``rtmeter-probe-fake`` runs it, hundreds
of times: it imports neither NumPy nor Arrow, which would take ten times as long as all the rest.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from log_frames import frame, headers, json_frame
from zstandard import compress

FACTS = {"name": "fake", "version": "1", "middleware": "none", "middleware_version": "0"}
DESCRIPTION = FACTS | {"measures": ["wakeup", "timer.periodic", "roundtrip", "chain"]}
DESCRIPTION |= {"option": {"behave": "what it does", "endpoint": "where its server is"}}
ABSENT = -(2**63)
COLUMNS = {
    "single": ("release_ns", "wake_ns", "free_ns", "status"),
    "client": ("release_ns", "sent_ns", "received_ns", "free_ns", "status"),
    "server": ("sequence", "server_received_ns", "server_sent_ns", "status"),
}
WARM_UP = 3  # as in sample_logs
ROWS_A_FRAME = 10


def counts(released: int, of: int) -> dict[str, int]:
    """What a progress says besides its largest."""
    return {"released": released, "of": of, "warm_up": WARM_UP, "lost": 0, "skipped": 0}


def planes_of(column: Sequence[int]) -> bytes:
    """The byte planes of a column's zigzag deltas (spec/sample-log.md)."""
    deltas = [value - before for before, value in zip([0, *column], column, strict=False)]
    codes = [((delta << 1) ^ (delta >> 63)) & (2**64 - 1) for delta in deltas]
    return bytes(code >> 8 * place & 255 for place in range(8) for code in codes)


class Probe:
    """One run."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.behave = config["options"].get("behave", "complete")
        self.total = config.get("samples", 10**9) + WARM_UP
        self.rows = 0
        self.log = os.open(config["log"], os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        self.stop = False
        signal.signal(signal.SIGTERM, self.on_term)

    def on_term(self, *_: object) -> None:
        self.stop = self.behave != "deaf"

    def say(self, event: str, **rest: Any) -> None:
        with suppress(BrokenPipeError):  # nobody reads any more: standard input has ended, too
            print(json.dumps({"event": event} | rest), flush=True)

    def write(self, *pieces: bytes) -> None:
        os.write(self.log, b"".join(pieces))

    def begin(self) -> None:
        role = self.config["role"]
        names = COLUMNS["server" if self.behave == "alien" else role]
        columns = [{"name": name, "unit": "ns"} for name in names]
        about = {"role": role, "columns": columns, "measurement": self.config["measurement"]}
        self.write(*headers(config=self.config, adapter=FACTS, **about))
        self.say("ready", role=role, endpoint="there" if role == "server" else None)

    def frame(self) -> None:
        count = 0 if self.behave == "stuck" and self.rows else min(ROWS_A_FRAME, self.total - self.rows)
        if self.config["role"] != "server":
            numbers = range(self.rows, self.rows + count)
            release = [k * 1_000_000 for k in numbers]
            drawn = random.Random(self.rows)
            received = [at + round(drawn.lognormvariate(11, 0.25)) for at in release]
            sent = [release] if self.config["role"] == "client" else []
            status = [129 if k < WARM_UP else 1 for k in numbers]
            columns = (release, *sent, received, [ABSENT] * count, status)
            planes = b"".join(map(planes_of, columns))
            self.write(frame(b"R", self.rows, compress(planes), count))
        self.rows += count
        largest = None if self.rows <= WARM_UP else 100_000 + self.rows
        self.say("progress", max_ns=largest, **counts(self.rows, self.total))

    def end(self, outcome: str) -> None:
        lost = 7 if self.behave == "overflow" else 0
        content = {"outcome": outcome, "counters": {"overflow": lost}, "warnings": []}
        self.write(json_frame(b"E", self.rows, content))
        self.say("end", outcome=outcome)

    def slowly(self) -> None:
        """Until it is stopped, or standard input ends."""
        while not self.stop and self.rows < self.total:
            if self.behave == "silent":
                time.sleep(0.05)
                continue
            self.frame()
            if select.select([sys.stdin], [], [], 0.05)[0] and not sys.stdin.read(1):
                self.stop = True

    def deafen(self) -> None:
        """Says by a file that no signal but SIGKILL ends it from now on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        Path(self.config["log"]).with_name("deaf").touch()

    def deaf_for_ever(self) -> None:
        self.deafen()
        planned, self.total = self.config["samples"] + WARM_UP, 10**12
        while True:
            self.rows += ROWS_A_FRAME if self.behave == "beyond" and self.rows <= planned else 0
            self.rows ^= self.behave == "see_saw"
            self.say("progress", **counts(self.rows, planned), max_ns=None)
            time.sleep(0.01)

    def kept(self) -> int:
        """A client, which has said its end, stays until the server b has ended; an error if it is asked to
        end before, or for long."""
        ended = Path(self.config["log"]).with_name("b.ended")
        if self.config["role"] == "server":
            ended.touch()
            return 0
        for _ in range(1500):
            if ended.exists() or self.stop:
                break
            time.sleep(0.02)
        return 0 if ended.exists() and not self.stop else 1

    def child_that_stays(self) -> None:
        if os.fork() == 0:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                time.sleep(60)

    def __call__(self) -> int:
        if self.behave == "refuse":
            self.say("error", field="cpus", value="9", message="CPU 9 does not exist", remedy="choose 0-1")
            self.end("failed")
            return 1
        if self.behave == "refuse_itself":
            said = {"field": "option behave", "value": self.behave, "message": "is wrong"}
            self.say("error", **said, remedy="choose die")
            return 1
        if self.behave == "refuse_slack":  # by the key of the probe config, which nobody has typed
            said = {"field": "timer_slack_ns", "value": "1500000", "message": "is too much"}
            self.say("error", **said, remedy="choose less")
            self.end("failed")
            return 1
        if self.behave == "never_ready":
            time.sleep(60)
        if self.behave == "mute":  # neither a word nor an ear
            self.deafen()
            while True:
                time.sleep(60)
        if self.behave == "flood":  # faster than anybody reads, and no end
            self.begin()
            self.deafen()
            line = {"event": "progress", "max_ns": 1} | counts(5, self.total)
            while True:
                os.write(1, (json.dumps(line) + "\n").encode() * 500)
        if self.behave == "pipe":
            self.say("ready", role=self.config["role"], endpoint=None)
            Path(self.config["log"]).unlink()
            os.mkfifo(self.config["log"])
            self.say("end", outcome="complete")
            return 0
        if self.behave == "careless":  # numbers that are none, or not there
            self.begin()
            self.say("progress", released="5", of=9, warm_up=3, lost=0, skipped=0)
            self.say("progress", released=float("nan"), of=-1, warm_up=3, lost=0, skipped=0)
            self.say("progress", released=5, of=self.total, warm_up=3, max_ns=None)
            self.end("complete")
            return 0
        if self.behave == "bracketed":  # deeper in brackets, and larger, than anybody reads
            self.begin()
            os.write(1, b"[" * 100_000 + b"\n" + b'{"event":' * 100_000 + b"\n")
            self.say("progress", **counts(5, self.total), max_ns=10**400)
            self.say("progress", **counts(5, 10**400), max_ns=None)
            self.end("complete")
            return 0
        if self.behave == "inarticulate":  # an error whose words are none
            self.say("error", field={"a": 1}, value=[1], message=None, remedy=7)
            return 1
        if self.behave == "printing":  # more than anybody reads, and on
            os.write(2, b"first\n")
            self.begin()
            os.write(2, b"again and again\n" * 1000)
            while os.fstat(2).st_size > 10_000:  # until it was cut
                self.say("progress", **counts(0, self.total), max_ns=None)
                time.sleep(0.01)
            os.write(2, b"last\n")
        if self.behave == "talkative":  # more than is kept, and then why it ends
            self.begin()
            os.write(1, b'{"event": "hello"}\n' * 5000)
            self.say("error", field="cpus", value="9", message="CPU 9 does not exist", remedy="choose 0-1")
            return 1
        if self.behave in ("beyond", "see_saw"):  # beyond its end, and no end; or to and fro
            self.begin()
            self.deaf_for_ever()
        if self.behave == "closed":  # nobody is left to talk to
            self.begin()
            os.close(0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            self.deaf_for_ever()
        if self.behave == "parent":  # leaves a child that holds every pipe
            self.child_that_stays()
        if self.behave == "burn":  # at real-time priority, on every CPU that it may have
            if self.config["role"] != "client":
                self.begin()
            self.deafen()
            os.sched_setaffinity(0, self.config["cpus"])
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
            while True:
                pass
        if self.behave == "chatty":
            print("this is no status line", flush=True)
            print('["neither is this"]', flush=True)
            print("middleware says hello", file=sys.stderr)
        if self.behave != "printing":
            self.begin()
        if self.behave == "deaf":
            self.deafen()
        if self.behave in ("slow", "silent", "stuck", "deaf") or self.config["role"] == "server":
            self.slowly()
        while not self.stop and self.rows < self.total:
            self.frame()
            if self.behave in ("die", "die_aloud") and self.rows >= self.total // 2:
                os.write(2, b"it hurts\n" * (self.behave == "die_aloud"))
                os.kill(os.getpid(), signal.SIGKILL)
        self.end("interrupted" if self.stop else "complete")
        if self.behave == "keeper":
            return self.kept()
        return 4 if self.stop and self.config["role"] != "server" else 0


def server_that_dies(probe: Probe) -> int:
    """Ready, and gone once the client has measured something."""
    probe.begin()
    client = Path(probe.config["log"]).with_name("probe.rtlog")
    for _ in range(3000):
        if client.exists() and client.stat().st_size > 5000:
            break
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def server_that_refuses(probe: Probe) -> int:
    """Says why once it is listened to (file ``heard``), and is gone."""
    while not Path(probe.config["log"]).with_name("heard").exists():
        time.sleep(0.001)
    probe.behave = "refuse"
    return probe()


def main(arguments: list[str]) -> int:
    probe = Probe(json.loads(Path(arguments[1]).read_text()))
    if probe.behave == "server_refuses" and probe.config["role"] == "server":
        return server_that_refuses(probe)
    if probe.behave == "server_dies" and probe.config["role"] == "server":
        return server_that_dies(probe)
    if probe.behave == "server_dies":
        probe.behave = "slow"
    return probe()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
