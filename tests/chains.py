"""Chains in plain loops: random graphs, what their stages must log, and every path told one sample at a time.

Knows nothing of rtmeter's own arithmetic. A delay of None is a message that never comes.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = tuple[int, int, int, int | None, int | None, str]
"""way, sample, its release, received, sent, status."""

Delay = Callable[[str, str, int], int | None]
"""By publisher, hearer and sequence number of the message."""


@dataclass
class Spec:
    """A stage: kind (event, sampled, fusion), inputs, period and offset."""

    name: str
    kind: str
    inputs: tuple[str, ...] = ()
    period_ns: int | None = None
    offset_ns: int = 0


@dataclass
class _State:
    newest: dict[str, Any] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    sequence: int = 0
    rows: list[Row] = field(default_factory=list)


def ways_of(specs: list[Spec]) -> dict[str, list[tuple[str, ...]]]:
    """Every way to each stage, as the names on it; specs are in order."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for spec in specs:
        found[spec.name] = [(*way, spec.name) for name in spec.inputs for way in found[name]] or [
            (spec.name,)
        ]
    return found


def simulate(
    specs: list[Spec], delay: Delay, t0_ns: int, samples: int, until_ns: int
) -> dict[str, list[Row]]:
    """The rows of each stage. Sources stop after ``samples``; other stages' releases go on up to
    ``until_ns``. At one instant messages come before releases, and releases in the order of the stages."""
    by_name = {spec.name: spec for spec in specs}
    order = {spec.name: at for at, spec in enumerate(specs)}
    hearers = {spec.name: [s.name for s in specs if spec.name in s.inputs] for spec in specs}
    ways = ways_of(specs)
    states = {spec.name: _State() for spec in specs}
    events: list[tuple[int, int, int, int, Any]] = []
    count = 0

    def push(at: int, kind: int, rank: int, what: Any) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (at, kind, rank if kind else count, count, what))

    def send(name: str, now: int, carried: list[tuple[int, int, int | None] | None]) -> None:
        state = states[name]
        for way, one in enumerate(carried):
            if one is not None:
                state.rows.append((way, one[0], one[1], one[2], now, "served"))
        body = [None if one is None else one[:2] for one in carried]
        for hearer in hearers[name]:
            after = delay(name, hearer, state.sequence)
            if after is not None:
                push(now + after, 0, 0, (name, hearer, state.sequence, body))
        state.sequence += 1

    def row_of(name: str, source: str, message: Any, status: str) -> None:
        first = ways[name].index((*ways[source][0], name))
        for way, one in enumerate(message["body"]):
            if one is not None:
                states[name].rows.append((first + way, *one, message["at"], None, status))

    def merged(name: str, only: set[str]) -> list[tuple[int, int, int | None] | None]:
        carried: list[tuple[int, int, int | None] | None] = []
        for source in by_name[name].inputs:
            message = states[name].newest.get(source) if source in only else None
            body = [None] * len(ways[source]) if message is None else message["body"]
            carried += [None if one is None else (*one, message["at"]) for one in body]
        return carried

    for spec in specs:
        if spec.period_ns is not None:
            push(t0_ns + spec.offset_ns, 1, order[spec.name], (spec.name, 0))
    while events and events[0][0] <= until_ns:
        now, kind, _, _, what = heapq.heappop(events)
        if kind == 1:
            name, k = what
            spec = by_name[name]
            if not spec.inputs:
                send(name, now, [(k, now, None)])
            else:
                carried = merged(name, set(spec.inputs))
                if any(one is not None for one in carried):
                    send(name, now, carried)
                for message in states[name].newest.values():
                    message["used"] = True
            if spec.inputs or k + 1 < samples:
                push(now + (spec.period_ns or 0), 1, order[name], (name, k + 1))
            continue
        source, name, sequence, body = what
        spec, state = by_name[name], states[name]
        message = {"sequence": sequence, "body": body, "at": now, "used": False}
        if spec.kind == "event":
            state.newest = {source: message}
            send(name, now, merged(name, {source}))
            continue
        old = state.newest.get(source)
        if old is not None and old["sequence"] > sequence:
            row_of(name, source, message, "skipped")
            continue
        if old is not None and not old["used"]:
            row_of(name, source, old, "skipped")
        state.newest[source] = message
        if spec.kind == "fusion":
            state.fresh.add(source)
            if state.fresh == set(spec.inputs):
                state.fresh.clear()
                send(name, now, merged(name, set(spec.inputs)))
                for used in state.newest.values():
                    used["used"] = True
    for spec in specs:
        if spec.kind != "event" and spec.inputs:
            for source in spec.inputs:
                message = states[spec.name].newest.get(source)
                if message is not None and not message["used"]:
                    row_of(spec.name, source, message, "in_flight")
    return {name: state.rows for name, state in states.items()}


def random_graph(draw: random.Random, most: int, period_ns: int) -> list[Spec]:
    """2 to ``most`` stages, the first a source; at most 64 paths."""
    while True:
        specs = [Spec("s0", "sampled", (), period_ns)]
        for number in range(1, draw.randint(2, most)):
            kind = draw.choice(("event", "event", "sampled", "fusion"))
            if draw.random() < 0.15:
                specs.append(
                    Spec(f"s{number}", "sampled", (), period_ns * draw.randint(1, 3), draw.randint(0, 9))
                )
                continue
            inputs = draw.sample(
                [spec.name for spec in specs], min(len(specs), draw.choice((1, 1, 1, 2, 2, 3)))
            )
            if kind == "fusion" and len(inputs) < 2:
                kind = "event"
            timed = kind == "sampled"
            period = draw.randint(period_ns // 2, 3 * period_ns) if timed else None
            offset = draw.randint(0, period_ns) if timed else 0
            specs.append(Spec(f"s{number}", kind, tuple(inputs), period, offset))
        if sum(len(ways) for ways in ways_of(specs).values()) <= 64:
            return specs


def accounted(
    specs: list[Spec],
    rows: dict[str, list[Row]],
    warm_up: int,
    loss_timeout_ns: int,
    ended_ns: int,
    overdue_ns: int,
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Each path to a stage that nobody hears: its counts, ages and reactions, sample by sample."""
    heard = {name for spec in specs for name in spec.inputs}
    ways = ways_of(specs)
    by_name = {spec.name: spec for spec in specs}
    found = {}
    for path in (way for spec in specs if spec.name not in heard for way in ways[spec.name]):
        of_path = [
            [row for row in rows[name] if row[0] == ways[name].index(path[: at + 1])]
            for at, name in enumerate(path)
        ]
        period_ns = by_name[path[0]].period_ns
        assert period_ns is not None
        counts = dict.fromkeys(("released", "arrived", "overtaken", "lost", "in_flight"), 0)
        outputs = [row for row in of_path[-1] if row[5] == "served"]
        reactions: dict[int, int | None] = {}
        outcomes: dict[int, str] = {}
        for _, k, *_ in of_path[0]:
            outcome = "arrived"
            for before, here in itertools.pairwise(of_path):
                of_k = [row for row in here if row[1] == k]
                states = {row[5] for row in of_k}
                if "served" in states:
                    continue
                sent = max(row[4] or 0 for row in before if row[1] == k and row[5] == "served")
                gone = "in_flight" if sent + loss_timeout_ns > ended_ns else "lost"
                outcome = (
                    "in_flight" if "in_flight" in states else "overtaken" if "skipped" in states else gone
                )
                break
            outcomes[k] = outcome
            if k >= warm_up:
                counts["released"] += 1
                counts[outcome] += 1
        last_ns = ended_ns  # a fusion passes on nothing more once a source that it waits for has ended
        for name in (name for name in path if by_name[name].kind == "fusion"):
            for source, *_ in ways[name]:
                every_ns = by_name[source].period_ns or 0
                last_ns = min(last_ns, rows[source][-1][2] + every_ns if rows[source] else 0)
        for _, k, release, _, _, _ in of_path[0]:
            later = [row[4] for row in outputs if row[1] >= k and row[4] is not None]
            waits = any(outcome == "in_flight" for j, outcome in outcomes.items() if j >= k)
            waits = waits and last_ns - (release - period_ns) <= overdue_ns
            if k >= warm_up and (later or not waits):
                reactions[k] = min(later) - (release - period_ns) if later else None
        end = of_path[0][-1][2] + period_ns if of_path[0] else 0
        ages = []
        for _, k, release, _, stamp, _ in outputs:
            first = min(row[4] or 0 for row in outputs if row[1] == k)
            if stamp is not None and k >= warm_up and (stamp < end or stamp == first):
                ages.append((k, stamp - release))
        found[path] = {"counts": counts, "ages": ages, "reactions": reactions}
    return found
