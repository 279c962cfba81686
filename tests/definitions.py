"""The summary and the misses of a cell by the letter of the definitions: plain loops over rows.

Written from the definitions alone, to compare the package with; shares no code with it. A row is a dict of
times in nanoseconds (None: absent) with ``k``, ``status`` (a name) and ``warm_up``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

Row = dict[str, Any]

LOST = math.inf
"""What a lost release counts: later than anything measured."""

SHARES = {
    "p50_ns": Fraction("0.5"),
    "p90_ns": Fraction("0.9"),
    "p99_ns": Fraction("0.99"),
    "p99_9_ns": Fraction("0.999"),
    "p99_99_ns": Fraction("0.9999"),
    "p99_999_ns": Fraction("0.99999"),
}


def view(pairs: list[tuple[int, float]]) -> dict[str, Any]:
    """Statistics of (k, value) pairs in the order of k."""
    n = len(pairs)
    result: dict[str, Any] = {"n": n}
    ordered = sorted(value for _, value in pairs)
    some_lost = LOST in ordered
    result["min_ns"] = word(ordered[0]) if n else None
    result["mean_ns"] = None if not n or some_lost else float(Fraction(sum(map(int, ordered)), n))
    result["stddev_ns"] = None if n < 2 or some_lost else deviation(list(map(int, ordered)))
    for name, share in SHARES.items():
        result[name] = None
        for i, value in enumerate(ordered):
            if Fraction(i + 1, n) >= share:
                result[name] = word(value)
                break
    result["max_ns"] = word(ordered[-1]) if n else None
    result["max_at_k"] = next((k for k, value in pairs if value == ordered[-1]), None)
    return result


def deviation(values: list[int]) -> float:
    n = len(values)
    return math.sqrt(Fraction(n * sum(v * v for v in values) - sum(values) ** 2, n * (n - 1)))


def word(value: float) -> int | str:
    return "lost" if value == LOST else int(value)


def minus(row: Row, end: str, start: str, less: int = 0) -> int | None:
    if row.get(end) is None or row.get(start) is None:
        return None
    return int(row[end] - row[start] - less)


def quantity(name: str, row: Row, meta: dict[str, Any]) -> int | None:
    """A quantity of a served row; None if a column of it is absent."""
    timeout = meta.get("timeout_ns") or 0
    if name == "latency":
        return minus(row, "wake_ns" if meta["measurement"] == "wakeup" else "callback_ns", "release_ns")
    if name.startswith("difference"):
        reported = quantity("reported", row, meta)
        measured = quantity(name.replace("difference", "measured"), row, meta)
        return None if reported is None or measured is None else reported - measured
    return {
        "measured": lambda: minus(row, "callback_ns", "armed_before_ns", timeout),
        "measured_after": lambda: minus(row, "callback_ns", "armed_after_ns", timeout),
        "reported": lambda: minus(row, "reported_actual_ns", "reported_expected_ns"),
        "dispatch": lambda: minus(row, "callback_ns", "reported_actual_ns"),
        "round_trip": lambda: minus(row, "received_ns", "sent_ns"),
        "response": lambda: minus(row, "received_ns", "release_ns"),
        "ping": lambda: minus(row, "server_received_ns", "sent_ns"),
        "pong": lambda: minus(row, "received_ns", "server_sent_ns"),
        "request": lambda: minus(row, "request_received_ns", "request_sent_ns"),
        "respond": lambda: minus(row, "response_received_ns", "response_sent_ns"),
        "accepted": lambda: minus(row, "accepted_ns", "release_ns"),
        "first_feedback": lambda: minus(row, "first_feedback_ns", "release_ns"),
        "result": lambda: minus(row, "received_ns", "release_ns"),
        "cycle_delay": lambda: minus(row, "start_ns", "release_ns"),
        "completion": lambda: minus(row, "response_received_ns", "release_ns"),
    }[name]()


NAMES = {
    "wakeup": ["latency"],
    "one_shot": ["measured", "measured_after", "reported", "difference", "difference_after", "dispatch"],
    "periodic": ["latency", "dispatch"],
    "roundtrip": ["round_trip", "response", "ping", "pong"],
    "request": ["response", "round_trip", "accepted", "first_feedback", "result"],
    "cycle": ["request", "respond", "cycle_delay", "completion"],
}
REPLIED = ("roundtrip", "request")
PER_RELEASE = {"latency", "measured", "response", "cycle_delay", "completion"}
JUDGED = {
    "wakeup": "latency",
    "one_shot": "measured",
    "periodic": "latency",
    "roundtrip": "response",
    "request": "response",
    "cycle": "completion",
}


def kind(meta: dict[str, Any]) -> str:
    return str(meta["mode"] or meta["measurement"])


def as_served(name: str, rows: list[Row], meta: dict[str, Any]) -> list[tuple[int, float]]:
    pairs = [(row["k"], quantity(name, row, meta)) for row in rows if row["status"] == "served"]
    return [(k, value) for k, value in pairs if value is not None]


def per_release(name: str, rows: list[Row], meta: dict[str, Any]) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []
    for i, row in enumerate(rows):
        value: float | None
        if row["status"] == "served":
            value = quantity(name, row, meta)
        elif row["status"] == "lost":
            value = LOST
        elif row["status"] == "in_flight":
            value = None
        elif meta["measurement"] not in REPLIED:
            value = row["free_ns"] - row["release_ns"]
        else:
            ping = next((other for other in rows[i + 1 :] if other["status"] != "skipped"), None)
            if ping is None or ping["status"] == "lost":
                value = LOST
            elif ping["status"] == "in_flight":
                value = None
            else:
                value = ping["received_ns"] - row["release_ns"]
        if value is not None:
            pairs.append((row["k"], value))
    return pairs


def corrected(pairs: list[tuple[int, float]], interval: int) -> dict[str, Any]:
    values = list(pairs)
    for k, value in pairs:
        further = value - interval
        while value > interval and further >= interval:
            values.append((k, further))
            further -= interval
    return view(values)


def summary(meta: dict[str, Any], all_rows: list[Row]) -> dict[str, Any]:
    """``counts`` and ``quantities`` as ``rtmeter summary --json`` states them."""
    rows = [row for row in all_rows if not row["warm_up"]]
    quantities: dict[str, Any] = {}
    for name in NAMES[kind(meta)]:
        if name in ("accepted", "first_feedback", "result") and meta.get("interface") != "action":
            continue
        if name in ("ping", "pong") and all_rows and "server_sent_ns" not in all_rows[0]:
            continue
        served = as_served(name, rows, meta)
        closed_loop = name == "round_trip" and meta["in_flight"] == "one"
        quantities[name] = {
            "per_release": view(per_release(name, rows, meta)) if name in PER_RELEASE else None,
            "as_served": view(served),
            "corrected": corrected(served, meta["period_ns"]) if closed_loop else None,
        }
    return {"counts": counts(meta, all_rows), "quantities": quantities}


def counts(meta: dict[str, Any], all_rows: list[Row]) -> dict[str, int]:
    rows = [row for row in all_rows if not row["warm_up"]]
    of = {
        name: sum(row["status"] == name for row in rows)
        for name in ("served", "skipped", "lost", "in_flight")
    }
    result = {"warm_up": len(all_rows) - len(rows)}
    if kind(meta) == "one_shot":
        named = {"armed": len(rows), "fired": of["served"], "lost": of["lost"], "in_flight": of["in_flight"]}
        return result | named
    result |= {"released": len(rows), "served": of["served"], "skipped": of["skipped"]}
    if meta["measurement"] in ("wakeup", "timer"):
        return result
    result |= {"lost": of["lost"], "in_flight": of["in_flight"]}
    if meta["measurement"] in REPLIED:
        deadline = meta["period_ns"] if meta["deadline_ns"] is None else meta["deadline_ns"]
        trips = [value for _, value in as_served("round_trip", rows, meta)]
        result["missed"] = sum(value > deadline for value in trips)
        result["replied_in_time"] = sum(value <= deadline for value in trips)
        responses = [value for _, value in per_release("response", rows, meta)]
        result["missed_response"] = sum(value > deadline for value in responses)
        result |= meta["counters"]
    return result


def misses(meta: dict[str, Any], all_rows: list[Row], deadline: int) -> dict[str, int]:
    """n and the misses by kind of the judged quantity."""
    rows = [row for row in all_rows if not row["warm_up"]]
    status = {row["k"]: row["status"] for row in rows}
    found = {"n": 0, "late": 0, "skipped": 0, "lost": 0}
    for k, value in per_release(JUDGED[kind(meta)], rows, meta):
        found["n"] += 1
        if status[k] == "skipped" and meta["measurement"] not in REPLIED:
            found["skipped"] += 1
        elif value == LOST:
            found["lost"] += 1
        elif value > deadline:
            found["late"] += 1
    return found
