"""From the logs of what was beside a round trip's ends to what became of the pings at each subscriber."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.measure.probe import beside
from rtmeter.model import ABSENT, WARM_UP_FLAG, Cell, Doubt
from rtmeter.results import store
from rtmeter.results.record import NodeSeen, PublisherSeen, SubscriberSeen, WasBeside
from rtmeter.samples import LogReader
from rtmeter.samples.meta import LogMeta


def counted(cell: Cell, client: LogMeta, server: LogMeta | None, folder: Path) -> WasBeside | None:
    """What was there, and what each subscriber received of the pings of samples.parquet, from what the two
    ends said and what lies in ``folder``; None if nothing further was asked for, or where one did not come
    to say it. Raises RtmeterError for a log that cannot be read."""
    members = beside.members(cell.config)
    if not members:
        return None
    others = client.adapter.get("others")
    knew = int(others) if isinstance(others, str) and others.isdecimal() else None
    if client.clock.get("id") == "scripted":
        return told(_of_the_ends(folder)[0], [], client.heard) if client.heard else None
    logs = {one: one.log(folder) for one in members}
    metas = {one: LogMeta.of(LogReader(log).meta, log) for one, log in logs.items() if log.is_file()}
    if any(one not in metas or metas[one].outcome != "complete" for one in members):
        return None
    nodes = [
        NodeSeen(name=one.name, threads=sum(thread["role"] == "middleware" for thread in meta.threads))
        for one, meta in metas.items()
        if one.as_ == "node"
    ]
    hearers = [meta.heard_of for meta in (server, *metas.values()) if meta is not None and meta.heard_of]
    publishers = [published(meta.published, hearers) for meta in metas.values() if meta.published]
    heard = [each for meta in metas.values() for each in meta.heard]
    if not heard:
        return WasBeside(publishers=publishers, background_nodes=nodes, knew=knew)
    sent, at_server = _of_the_ends(folder)
    seen = [] if server is None else [_seen(sent, {"name": "server", "received": at_server})]
    return told(sent, seen, heard).changed(publishers=publishers, background_nodes=nodes, knew=knew)


def told(sent: int, ends: list[SubscriberSeen], heard: list[dict[str, Any]]) -> WasBeside:
    """With the identity that they hold: each ping counts once for each subscriber."""
    seen = [*ends, *(_seen(sent, one) for one in heard)]
    received, lost = sum(one.received for one in seen), sum(one.lost for one in seen)
    return WasBeside(sent=sent, subscribers=seen, identity=_identity(sent, len(seen), received, lost))


def _identity(sent: int, hearers: int, received: int, lost: int) -> str:
    of = f"{hearers:,} subscriber{'' if hearers == 1 else 's'}"
    return f"sent {sent:,} x {of} = received {received:,} + lost {lost:,}"


def published(said: dict[str, Any], hearers: list[list[dict[str, Any]]]) -> PublisherSeen:
    """What a further publisher said that it sent, beside what each of the ``hearers`` has of it."""
    name, sent = str(said["name"]), int(said["sent"])
    seen = [one for heard in hearers for one in heard if one["name"] == name]
    received, again, damaged = (
        sum(int(one[what]) for one in seen) for what in ("received", "duplicate", "corrupted")
    )
    lost = sent * len(seen) - received
    return PublisherSeen(
        name=name,
        sent=sent,
        received=received,
        lost=lost,
        duplicate=again,
        corrupted=damaged,
        identity=_identity(sent, len(seen), received, lost),
    )


def problems(found: WasBeside | None) -> list[str]:
    """What cannot be: more different messages were received than were sent."""
    if found is None:
        return []
    at_one = [
        f"{one.name} received {one.received:,} different pings of {found.sent:,}"
        for one in found.subscribers
        if one.lost < 0
    ]
    at_all = [f"{one.name} {one.identity}" for one in found.publishers if one.lost < 0]
    return at_one + at_all


def doubts(found: WasBeside | None) -> list[Doubt]:
    """That further subscribers did not receive all, or subscribers not all of further publishers."""
    if found is None:
        return []
    hint = "the deadline is judged by the server's replies alone"
    lossy = [one for one in found.subscribers if one.lost > 0 and one.name != "server"]
    said = []
    if lossy:
        worst = max(lossy, key=lambda one: one.lost)
        who = f"{len(lossy)} further subscribers" if len(lossy) > 1 else worst.name
        message = f"{who} did not receive every ping: {worst.name} lost {worst.lost:,} of {found.sent:,}"
        said.append(Doubt("subscribers_lost", message, hint))
    if unheard := [one for one in found.publishers if one.lost > 0]:
        most = max(unheard, key=lambda one: one.lost)
        of = f"{len(unheard)} further publishers" if len(unheard) > 1 else most.name
        message = f"not every message of {of} was received: {most.name} {most.identity}"
        said.append(Doubt("publications_lost", message, hint))
    return said


def _seen(sent: int, heard: dict[str, Any]) -> SubscriberSeen:
    received = int(heard["received"])
    return SubscriberSeen(
        name=str(heard["name"]),
        received=received,
        lost=sent - received,
        duplicate=heard.get("duplicate"),
        corrupted=heard.get("corrupted"),
    )


def _of_the_ends(folder: Path) -> tuple[int, int]:
    """How many measured pings were sent, and how many of these the server has stamped."""
    sent = received = 0
    for columns in store.chunks(folder)():
        was_sent = (columns["sent_ns"] != ABSENT) & ((columns["status"] & WARM_UP_FLAG) == 0)
        sent += int(np.count_nonzero(was_sent))
        if "server_received_ns" in columns:
            received += int(np.count_nonzero(was_sent & (columns["server_received_ns"] != ABSENT)))
    return sent, received
