"""Does every way that it lists run, do counts add up, do messages come back whole, and only its own?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from rtmeter.model import LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.samples import read_log
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, not_applicable, passed
from rtmeter.selftest.adapter.running import (
    RUN_S,
    SAMPLES,
    WARM_UP,
    CheckedProbe,
    ProbeRun,
    RunConfig,
    counted,
    ways,
)
from rtmeter.selftest.adapter.stamps import stamped
from rtmeter.statistics.quantities import Ints

_SIZES = (8, 1_000, 60_000)
_OPEN: RunConfig = {"in_flight": "open", "history_depth": WARM_UP + SAMPLES}
"""Nobody waits for a reply, and none is replaced."""
_TRIES = 3
_DOMAIN = "84"
"""Of both sessions, where there is an option for it: they are kept apart all the same."""


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One for every measurement and drive, round trips in open loop too, for payloads, and for two sessions
    at once."""
    for way in ways(subject.facts):
        yield Check(f"echo.{way.name}", partial(_runs, subject, way.config))
        if way.measurement == "roundtrip" and way.config["receive"] != "poll":
            yield Check(f"echo.{way.name}.open", partial(_runs, subject, way.config | _OPEN))
    yield Check("echo.payloads", partial(_payloads, subject))
    yield Check("isolation.sessions", partial(_isolated, subject))
    yield Check("drives.unlisted", partial(_unlisted, subject))


def _runs(subject: CheckedProbe, config: RunConfig) -> CheckOutcome:
    again: set[int] | None = None
    for _ in range(_TRIES):
        frame, run = subject.complete(config)
        again = _lost(run) if again is None else again & _lost(run)
        if _tells(run):
            break
    return _judged(frame, run, config, again)


def _tells(run: ProbeRun) -> bool:
    """Whether nothing was lost, and most served. Else the machine may have been too busy, or stood still: a
    reply came after the run's time, or one that came too late passed over all the others."""
    skipped, lost = _ends(run)[2:]
    return lost == 0 and 2 * skipped <= SAMPLES


def _lost(run: ProbeRun) -> set[int]:
    """Which releases were: what is lost by a fault is lost again, what a busy machine loses is another each
    time."""
    return set(np.flatnonzero(_outcomes(run) == LOST).tolist())


def _outcomes(run: ProbeRun) -> Ints:
    """Of the measured releases."""
    status: Ints = read_log(run.log).columns["status"]
    return np.asarray(status[(status & WARM_UP_FLAG) == 0] & 15)


def _ends(run: ProbeRun) -> tuple[int, int, int, int]:
    """How many releases were measured, and of them served, skipped and lost."""
    measured = _outcomes(run)
    served, skipped, lost = (int((measured == code).sum()) for code in (SERVED, SKIPPED, LOST))
    return len(measured), served, skipped, lost


def _judged(frame: dict[str, Any], run: ProbeRun, config: RunConfig, again: set[int] | None) -> CheckOutcome:
    """``again``: the releases that were lost in every try."""
    released, served, skipped, lost = _ends(run)
    counts = f"released {released} = served {served} + skipped {skipped} + lost {lost}"
    if released != SAMPLES or served + skipped + lost != SAMPLES:
        return failed(
            f"{counts}, of {SAMPLES}",
            "call on_fire and on_message once for each tick and message, also if they are late",
        )
    counters = frame["counters"]
    doubled = {key: counters[key] for key in ("corrupted", "duplicate", "extra_callbacks") if counters[key]}
    if doubled:
        return failed(
            ", ".join(f"{key}: {number}" for key, number in doubled.items()),
            "give each message back once, with its bytes and its sequence number as they were published",
        )
    if counters["refused_calls"]:
        return failed(
            f"{counters['refused_calls']} calls on the measured path were refused",
            "return 0 where the middleware took the call; take from describe what it cannot do",
        )
    if again or (lost and 2 * served < SAMPLES):
        return failed(
            f"messages are lost, also when it runs again: {counts}",
            "see whether every message reaches its subscriber, and whether a queue is too short",
        )
    if served == 0:
        return failed(f"nothing was served: {counts}", "see whether callbacks are reached with this drive")
    asked, effective = config.get("drive"), frame["effective"]["drive"]
    if asked is not None and asked != effective:
        return failed(f"driven by {effective}, not {asked}", "see drives in describe")
    wrong = stamped(run, frame["threads"], config)
    return failed(*wrong) if wrong else passed(counts)


def _payloads(subject: CheckedProbe) -> CheckOutcome:
    """Each size comes back whole, or is refused by name before anything is measured."""
    way = next((w for w in ways(subject.facts) if w.measurement in ("roundtrip", "cycle")), None)
    if way is None:
        return not_applicable("it sends no messages")
    sizes = []
    for size in _SIZES:
        outcome = _carried(subject, counted(way.config | {"payload_bytes": size}))
        if outcome[0] == "fail":
            return failed(f"{size} bytes: {outcome[1]}", str(outcome[2]))
        sizes.append(f"{size}: {outcome[1]}")
    return passed(", ".join(sizes))


def _carried(subject: CheckedProbe, config: RunConfig) -> CheckOutcome:
    again: set[int] | None = None
    for _ in range(_TRIES):
        with subject.pair(config) as (one, server):
            code = one.end(RUN_S)
            error = one.error()
            if code == 1 and error is not None and error["field"] == "payload_bytes" and error["remedy"]:
                return passed("refused")
            if code != 0:
                return failed(
                    one.last_words(),
                    "refuse what the middleware cannot carry in setup, with payload_bytes as the field",
                )
            if server is not None:
                server.finish()
        again = _lost(one) if again is None else again & _lost(one)
        if _tells(one):
            break
    outcome = _judged(one.frame(), one, config, again)
    return outcome if outcome[0] == "fail" else passed("whole")


def _isolated(subject: CheckedProbe) -> CheckOutcome:
    """Two sessions at once; the second sends twice as many, so that its numbers tell who was heard."""
    way = next((w for w in ways(subject.facts) if w.measurement == "roundtrip"), None)
    way = way or next((w for w in ways(subject.facts) if w.measurement == "cycle"), None)
    if way is None:
        return not_applicable("it sends no messages")
    remedy = "derive topics, ports and domains from run.session, all of it"
    domain = {"options": {"domain": _DOMAIN}} if "domain" in subject.facts.get("option", {}) else {}
    first = counted(way.config) | domain
    second = first | {"samples": 2 * SAMPLES}
    with subject.pair(first) as (one, server), subject.pair(second) as (other, other_server):
        for run in (one, other):
            if run.end(RUN_S) != 0:
                return failed(f"beside another session: {run.last_words()}", remedy)
        for served_by in (server, other_server):
            if served_by is not None:
                served_by.finish()
        heard_twice = {
            key: number
            for run in (one, other)
            for key, number in run.frame()["counters"].items()
            if key in ("duplicate", "corrupted") and number
        }
        if heard_twice:
            return failed(f"a client heard what was not for it: {heard_twice}", remedy)
        if server is None:
            return passed("two processes at once, each heard its own messages alone")
        heard = read_log(server.log).columns["sequence"]
        if len(heard) > len(np.unique(heard)) or (len(heard) and heard.max() >= SAMPLES + WARM_UP):
            return failed(
                f"the server of one session heard the client of another ({len(heard)} messages)", remedy
            )
        return passed(f"the server of each session heard its own client alone ({len(heard)} messages)")


def _unlisted(subject: CheckedProbe) -> CheckOutcome:
    """A drive that is not listed is refused, not replaced."""
    lists = subject.facts.get("drives", {})
    for way in ways(subject.facts):
        for drive in ("spin", "sleep_then_spin_some", "poll"):
            if way.measurement in lists and drive not in lists[way.measurement]:
                config = {k: v for k, v in counted(way.config).items() if k != "receive"} | {"drive": drive}
                with subject.run(config) as one:
                    code, error = one.end(RUN_S), one.error()
                    if code != 1 or error is None or error["field"] != "drive":
                        return failed(
                            f"{drive} for {way.measurement}: {one.last_words()}", "list it or refuse it"
                        )
                return passed(f"{drive} for {way.measurement} is refused")
    return not_applicable("it lists every drive of what it measures")
