"""Beside the two ends of a round trip: does a further subscriber hear every ping that the server hears, and
does it hear a further publisher, and is a node there that does nothing?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
        check = {"subscribers": _all_heard, "publishers": _all_answered, "background_nodes": _there}[what]
        yield Check(f"beside.{what}", partial(check, subject, _options(needs)))


def _options(needs: str) -> dict[str, str]:
    key, equals, value = needs.partition("=")
    return {key: value} if equals else {}


def _crowded(subject: CheckedProbe, options: dict[str, str], what: dict[str, int]) -> RunConfig:
    """Of a round trip of which nothing need be lost."""
    config: RunConfig = {
        "measurement": "roundtrip",
        "options": options,
        "period_ns": PERIOD_NS,
        "samples": SAMPLES,
        "loss_timeout_ns": LOSS_NS,
        "connect_timeout_ns": 20_000_000_000,
        "beside": what,
    }
    return config if subject.probe.scripted else config | _most_patient(subject, config)


def _most_patient(subject: CheckedProbe, config: RunConfig) -> RunConfig:
    """What loses least of what the adapter does not refuse by name."""
    server = {key: value for key, value in config.items() if key != "samples"} | {"role": "server"}
    long: RunConfig = {"history_depth": 50 * SAMPLES}
    for qos in (long | {"reliability": "reliable"}, long):
        with subject.run(server | qos) as one:
            if one.until_either("ready", "error").get("field") not in {*qos}:
                return qos
    return {}


_TRIES = 3
"""Where nobody repeats what is lost while the machine stands still; what is lost by a fault is lost again."""


def _all_answered(subject: CheckedProbe, options: dict[str, str]) -> CheckOutcome:
    config = _crowded(subject, options, {"publishers": 2})
    return _until_whole(lambda: _answered(subject, config), config)


def _all_heard(subject: CheckedProbe, options: dict[str, str]) -> CheckOutcome:
    config = _crowded(subject, options, {"subscribers": 2})
    return _until_whole(lambda: _heard(subject, config), config)


def _until_whole(check: Callable[[], CheckOutcome], config: RunConfig) -> CheckOutcome:
    outcome, left = check(), 0 if config.get("reliability") == "reliable" else _TRIES - 1
    while outcome[0] == "fail" and left:
        outcome, left = check(), left - 1
    return outcome


def _answered(subject: CheckedProbe, config: RunConfig) -> CheckOutcome:
    """The server hears a further publisher whole, and answers the client alone."""
    config = config | _anew()
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
            one.until("silent")
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


def _heard(subject: CheckedProbe, config: RunConfig) -> CheckOutcome:
    config = config | _anew()
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
    config = counted({"measurement": "roundtrip"}) | _anew()
    config |= {"options": options, "connect_timeout_ns": 20_000_000_000, "beside": {"background_nodes": 1}}
    with ExitStack() as stack:
        peers: list[ProbeRun] = []
        if not subject.one_process:
            config |= _with_peers(subject, stack, config, peers, {"as": "node", "number": 1})
        client = stack.enter_context(subject.run(config | {"role": "client"}))
        if client.end(RUN_S) != 0 or any(one.finish() != 0 for one in peers):
            return failed(f"a process failed: {client.last_words()}", _NODE_REMEDY)
    return passed("the ends ran beside a node that does nothing")


def _anew() -> dict[str, str]:
    """A session that all processes of a run share."""
    return {"session": f"check-{time.monotonic_ns():x}"}


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
