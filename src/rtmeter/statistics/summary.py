"""The summary of a cell: counts, identities and every quantity in its views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtmeter.model import SERVED, TWO_ENDS
from rtmeter.statistics.corrected import describe_corrected
from rtmeter.statistics.counts import COUNT_NAMES, REPLY_COUNTERS, Tally, check_identities
from rtmeter.statistics.order import Maximum, Values, count_above, describe, shifted
from rtmeter.statistics.quantities import Chunks, Columns, Quantity, quantities
from rtmeter.statistics.views import all_served, as_served, per_release


def summarise(meta: Mapping[str, Any], chunks: Chunks) -> dict[str, Any]:
    """Counts, identities and quantities of one cell (docs/method.md).

    ``meta`` has measurement, mode, period_ns, warm_up and, where they matter, timeout_ns, deadline_ns
    (round trip and request: None is one period), in_flight and counters. ``chunks`` is called once for each
    quantity: eight bytes a release are held at a time. The result's ``problems`` are violated
    identities and rows that are missing or lack a stamp: they make a cell invalid.
    """
    tally = Tally(meta)
    views: dict[str, dict[str, Any]] = {}
    late: dict[str, int] = {}
    for quantity in quantities(meta):
        if tally.columns and not tally.columns.issuperset(quantity.columns):
            continue  # the server's log was not joined
        source = chunks() if views else tally.watch(chunks())
        views[quantity.name], late[quantity.name] = _views(meta, quantity, source)
    counts = _counts(meta, tally.counts(), views, late)
    identity, broken = check_identities(meta, counts)
    summary = {
        "counts": counts,
        "identity": identity,
        "quantities": views,
        "problems": tally.problems() + _without_stamps(meta, counts, views) + broken,
    }
    if meta["measurement"] == "cycle":
        _normalise_cycle_delay(summary)
    return summary


def deadline_ns(meta: Mapping[str, Any]) -> int | None:
    """The configured deadline in nanoseconds; a round trip or request without one has its period."""
    deadline = meta.get("deadline_ns")
    if deadline is None and meta["measurement"] in TWO_ENDS:
        deadline = meta["period_ns"]
    return None if deadline is None else int(deadline)


def _views(
    meta: Mapping[str, Any], quantity: Quantity, chunks: Iterable[Columns]
) -> tuple[dict[str, Any], int]:
    """The quantity's three views, and how many of its widest one lie above the configured deadline."""
    corrected = quantity.name == "round_trip" and meta.get("in_flight") != "open"
    served, others = (Values(narrow=not corrected) for _ in range(2))
    served_maximum, maximum = Maximum(), Maximum()
    stream = per_release if quantity.per_release else as_served
    for block in stream(meta, quantity, chunks):
        maximum.see(block.k, block.value)
        if all_served(block.outcome):
            served_maximum.see(block.k, block.value)
            served.append(block.value)
        else:
            ran = block.outcome == SERVED
            served_maximum.see(block.k[ran], block.value[ran])
            served.append(block.value[ran])
            others.append(block.value[~ran])
    views: dict[str, Any] = {"per_release": None, "as_served": describe(served.array, served_maximum.k)}
    if corrected:
        views["corrected"] = describe_corrected(served.array, int(meta["period_ns"]), served_maximum.k)
    else:
        views["corrected"] = None
    if quantity.per_release:
        served.append(others.array)
        views["per_release"] = describe(served.array, maximum.k) if len(others) else dict(views["as_served"])
    deadline = deadline_ns(meta)
    return views, 0 if deadline is None else count_above(served.array, deadline)


def _counts(
    meta: Mapping[str, Any],
    counts: dict[str, int],
    views: Mapping[str, Mapping[str, Any]],
    late: Mapping[str, int],
) -> dict[str, int]:
    if meta["measurement"] in TWO_ENDS:
        counters = meta.get("counters") or {}
        counts["missed"] = late["round_trip"]
        counts["replied_in_time"] = views["round_trip"]["as_served"]["n"] - late["round_trip"]
        counts["missed_response"] = late["response"]
        counts |= {name: int(counters.get(name, 0)) for name in REPLY_COUNTERS}
    return {name: counts[name] for name in COUNT_NAMES if name in counts}


def _without_stamps(
    meta: Mapping[str, Any], counts: Mapping[str, int], views: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Rows left out of a view over every release because a stamp is absent that their outcome needs."""
    in_flight = counts.get("in_flight", 0)
    if in_flight and meta["measurement"] in TWO_ENDS:
        return []  # skipped releases that wait for a ping in flight are left out as well
    settled = counts.get("armed", counts.get("released", 0)) - in_flight
    return [
        f"{name}: {settled - view['per_release']['n']} of {settled} settled releases lack a stamp"
        for name, view in views.items()
        if view["per_release"] and view["per_release"]["n"] != settled
    ]


def _normalise_cycle_delay(summary: dict[str, Any]) -> None:
    """States tau_min, the least cycle delay as served, and the delay counted from it (source 002)."""
    delay = summary["quantities"]["cycle_delay"]["as_served"]
    tau_min = delay["min_ns"]
    summary["tau_min_ns"] = tau_min
    summary["quantities"]["cycle_delay_normalised"] = {
        "per_release": None,
        "as_served": shifted(delay, -tau_min) if delay["n"] else dict(delay),
        "corrected": None,
    }
