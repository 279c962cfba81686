"""Beside the two ends of a round trip: does a further subscriber hear every ping that the server hears, and
does it hear a further publisher, and is a node there that does nothing?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from rtmeter.model import SKIPPED
from rtmeter.samples import read_log
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, passed
from rtmeter.selftest.adapter.running import (
    LOSS_NS,
    PERIOD_NS,
    RUN_S,
    SAMPLES,
    CheckedProbe,
    ProbeRun,
    RunConfig,
    counted,
)
from rtmeter.statistics.views import OUTCOME_BITS

_REMEDY = (
    "a topic with several subscribers, in several processes, brings each its own copy; the client publishes "
    "RTM_SEQUENCE_HELLO until all have heard one. Else take subscribers from beside"
)

_PUBLISHER_REMEDY = (
    "a topic with several publishers, in several processes, brings its subscribers the messages of each. "
    "Else take publishers from beside"
)

_NODE_REMEDY = (
    "a node that nobody talks to waits until it is asked to end. Else take background_nodes from beside"
)


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One for each of what the adapter puts beside."""
    for entry in subject.facts.get("beside", ()):
        what, _, needs = entry.partition(" ")
        check = {"subscribers": _heard, "publishers": _answered, "background_nodes": _there}[what]
        yield Check(f"beside.{what}", partial(check, subject, _options(needs)))


def _options(needs: str) -> dict[str, str]:
    key, equals, value = needs.partition("=")
    return {key: value} if equals else {}


def _crowded(subject: CheckedProbe, options: dict[str, str], what: dict[str, int]) -> RunConfig:
    """Of a round trip of which nothing need be lost."""
    config: RunConfig = {
        "measurement": "roundtrip",
        "session": f"check-{time.monotonic_ns():x}",
        "options": options,
        "period_ns": PERIOD_NS,
        "samples": SAMPLES,
        "loss_timeout_ns": LOSS_NS,
        "connect_timeout_ns": 20_000_000_000,
        "beside": what,
    }
    if subject.probe.scripted or options:
        return config
    return config | {"reliability": "reliable", "history_depth": 50 * SAMPLES}


def _answered(subject: CheckedProbe, options: dict[str, str]) -> CheckOutcome:
    """The server hears a further publisher whole, and answers the client alone."""
    config = _crowded(subject, options, {"publishers": 2})
    with ExitStack() as stack:
        peers: list[ProbeRun] = []
        if not subject.one_process:
            further = {"as": "publisher", "number": 2}
            config |= _with_peers(subject, stack, config, peers, further)
        client = stack.enter_context(subject.run(config | {"role": "client"}))
        for one in peers[1:]:
            one.until("greeted")
            peers[0].tell("go 1\n")
            client.tell("go 1\n")
        ended = client.end(RUN_S)
        for one in peers[:1]:
            one.tell("go -1\n")
        if ended != 0 or any(one.finish() != 0 for one in reversed(peers)):
            return failed(f"a process failed: {client.last_words()}", _PUBLISHER_REMEDY)
        if not peers:
            return passed("the client ran beside a publisher on its clock")
        sent, (heard,) = peers[0].frame()["published"]["sent"], peers[1].frame()["heard_of"]
        corrupted = client.frame()["counters"]["corrupted"]
    if heard["received"] != sent or heard["duplicate"] or heard["corrupted"] or corrupted:
        counts = ", ".join(f"{name} {heard[name]}" for name in ("received", "duplicate", "corrupted"))
        reason = f"of {sent} messages of a further publisher the server has: {counts}; the client {corrupted}"
        return failed(reason, _PUBLISHER_REMEDY)
    return passed(f"the server heard all {sent} of a further publisher, and answered the client alone")


def _heard(subject: CheckedProbe, options: dict[str, str]) -> CheckOutcome:
    config = _crowded(subject, options, {"subscribers": 2})
    with ExitStack() as stack:
        peers: list[ProbeRun] = []
        if not subject.one_process:
            config |= _with_peers(subject, stack, config, peers)
        client = stack.enter_context(subject.run(config | {"role": "client"}))
        for one in peers[:1]:
            one.until("greeted")
            client.tell("go 1\n")
        if client.end(RUN_S) != 0 or any(one.finish() != 0 for one in peers):
            return failed(f"a process failed: {client.last_words()}", _REMEDY)
        (heard,) = (peers[0] if peers else client).frame()["heard"]
        sent = int(((read_log(client.log).columns["status"] & OUTCOME_BITS) != SKIPPED).sum())
    if heard["received"] != sent or heard["duplicate"] or heard["corrupted"]:
        counts = ", ".join(f"{name} {heard[name]}" for name in ("received", "duplicate", "corrupted"))
        return failed(f"of {sent} pings a further subscriber has: {counts}", _REMEDY)
    return passed(f"a further subscriber heard all {sent} pings")


def _there(subject: CheckedProbe, options: dict[str, str]) -> CheckOutcome:
    """The client finds the node, where its middleware tells; both ends run as without it."""
    config = counted({"measurement": "roundtrip", "session": f"check-{time.monotonic_ns():x}"})
    config |= {"options": options, "connect_timeout_ns": 20_000_000_000, "beside": {"background_nodes": 1}}
    with ExitStack() as stack:
        peers: list[ProbeRun] = []
        if not subject.one_process:
            config |= _with_peers(subject, stack, config, peers, {"as": "node", "number": 1})
        client = stack.enter_context(subject.run(config | {"role": "client"}))
        if client.end(RUN_S) != 0 or any(one.finish() != 0 for one in peers):
            return failed(f"a process failed: {client.last_words()}", _NODE_REMEDY)
    return passed("the ends ran beside a node that does nothing")


_FURTHER = {"as": "subscriber", "number": 2}


def _with_peers(
    subject: CheckedProbe,
    stack: ExitStack,
    config: RunConfig,
    peers: list[ProbeRun],
    what: dict[str, Any] = _FURTHER,
) -> dict[str, Any]:
    """Starts the further process and the server, in this order in ``peers``; what the client is told."""
    server = {key: value for key, value in config.items() if key != "samples"} | {"role": "server"}
    ends = stack.enter_context(subject.run(server))
    endpoint = ends.until("ready")["endpoint"]
    told = config["options"] | ({} if endpoint is None else {"endpoint": endpoint})
    further = {"role": "beside", "beside": what, "options": told}
    peers += [stack.enter_context(subject.run(config | further)), ends]
    peers[0].until("ready")
    return {"options": told}
