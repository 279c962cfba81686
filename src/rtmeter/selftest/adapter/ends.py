"""Does a run end in time: when it is interrupted, without a server, and when the server is gone?"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

from rtmeter.model import LOST, TWO_ENDS, WARM_UP_FLAG
from rtmeter.samples import LogReader, read_log
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, not_applicable, passed
from rtmeter.selftest.adapter.running import (
    END_S,
    MS,
    RUN_S,
    CheckedProbe,
    ProbeRun,
    RunConfig,
    counted,
    ways,
)

_HOUR_NS = 3_600_000 * MS
_INTERRUPTED = 4  # the probe's exit code
_HANGS = "has not come back"
_REMEDY = "interrupt() ends the wait or spin under way, from any thread; the destructor waits for nobody"


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One interruption for every way, and the other end's absence."""
    for way in ways(subject.facts):
        yield Check(f"interrupt.{way.name}", partial(_interrupted, subject, way.config))
    for measurement in TWO_ENDS:
        if measurement in subject.facts.get("measures", ()):
            suffix = "" if measurement == "roundtrip" else f".{measurement}"
            yield Check(f"interrupt.server{suffix}", partial(_server, subject, measurement))
            yield Check(f"hangs.no_server{suffix}", partial(_alone, subject, measurement))
            for how in ("killed", "stopped"):
                yield Check(f"hangs.server_{how}{suffix}", partial(_silent, subject, measurement, how))


def _interrupted(subject: CheckedProbe, config: RunConfig) -> CheckOutcome:
    """In the middle of a wait for an hour."""
    if subject.probe.scripted:
        return not_applicable("on a scripted clock an hour is over at once")
    times = {"timeout_ns": _HOUR_NS} if config.get("mode") == "one_shot" else {"period_ns": _HOUR_NS}
    with subject.pair(counted(config) | times | {"samples": 10, "warm_up": 0}) as (one, server):
        one.until("ready")
        one.until("progress")
        one.signal(signal.SIGINT)
        outcome = _ended(one)
        if server is not None:
            server.finish()
        return outcome


def _ended(one: ProbeRun) -> CheckOutcome:
    code = one.end(END_S)
    if code != _INTERRUPTED:
        return failed(f"exit code {code} instead of {_INTERRUPTED}: {one.last_words()}", _REMEDY)
    problems = [*(reader := LogReader(one.log)).problems, *reader.missing]
    if problems:
        return failed(f"its log is not whole: {problems[0]}", _REMEDY)
    return passed("SIGINT ended it, with a whole log")


def _loses_or_stands(reports: list[dict[str, Any]]) -> bool:
    """Whether a client that waits for the answer to some earlier message waits by now: ten were lost since
    the first report, or in the last five, a second, nothing was settled. ``reports``: of after the server
    stood still, for a slow one loses messages, too."""
    seen = [(report["released"], report["lost"]) for report in reports]
    if len(seen) < 2:
        return False
    return seen[-1][1] - seen[0][1] >= 10 or (len(seen) > 5 and len(set(seen[-5:])) == 1)


def _server(subject: CheckedProbe, measurement: str) -> CheckOutcome:
    if subject.one_process:
        return not_applicable("its server is in the client")
    with subject.run({"measurement": measurement, "role": "server", "period_ns": MS}) as one:
        one.until("ready")
        one.signal(signal.SIGINT)
        code = one.end(END_S)
        return (
            passed("SIGINT ended it")
            if code == 0
            else failed(f"exit code {code}: {one.last_words()}", _REMEDY)
        )


def _alone(subject: CheckedProbe, measurement: str) -> CheckOutcome:
    """Told of a server that has gone, or of none."""
    if subject.one_process:
        return not_applicable("its server is in the client")
    config: RunConfig = {"measurement": measurement}
    with subject.run(config | {"role": "server", "period_ns": MS}) as server:
        endpoint = server.until("ready")["endpoint"]
        server.finish()
    options = {} if endpoint is None else {"options": {"endpoint": endpoint}}
    client = counted(config) | options | {"role": "client", "connect_timeout_ns": 500 * MS}
    with subject.run(client) as one:
        code, error = one.end(RUN_S), one.error()
        if code != 1 or error is None:
            return failed(
                f"a client without a server ended with exit code {code}: {one.last_words()}",
                "only a server's answer is an answer; let create_* fail, or messages be lost",
            )
        if not (error["field"] and error["message"] and error["remedy"]):
            return failed(f"the error is not told whole: {error}", "name field, message and remedy")
        return passed(f"{error['field']}: {error['message']}"[:100])


def _silent(subject: CheckedProbe, measurement: str, how: str) -> CheckOutcome:
    """The client counts its messages as lost until it is interrupted, or says that the middleware is gone."""
    if subject.one_process:
        return not_applicable("its server is in the client")
    config = counted({"measurement": measurement}) | {"samples": 1_000_000, "loss_timeout_ns": 20 * MS}
    with subject.pair(config) as (one, server):
        assert server is not None
        one.until("progress", least=("released", 20))
        server.close() if how == "killed" else server.stop_asleep()
        before = one.progresses()
        while one.error() is None and not _loses_or_stands(one.progresses()[len(before) :]):
            one.pause()
        one.signal(signal.SIGINT)
        one.end(END_S)
        if (error := one.error()) is not None and _HANGS not in error["message"]:
            return passed(f"it ended by itself: {error['message']}"[:100])
        outcome = _ended(one)
        if outcome[0] == "fail":
            return outcome
        status = read_log(one.log).columns["status"]
        lost = int(((status & WARM_UP_FLAG == 0) & (status & 15 == LOST)).sum())
        return passed(f"it went on, with {lost} lost, and ended when it was interrupted")
