"""Are a run's stamps in the order in which things happen, and of the threads that its config says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtmeter.model import ABSENT, SERVED
from rtmeter.samples import read_log
from rtmeter.selftest.adapter.running import ProbeRun, RunConfig
from rtmeter.statistics.quantities import Columns

Wrong = tuple[str, str]
"""What is wrong, and what to do."""

_STAMP = "call on_fire, on_message and on_reply first thing in the middleware's own callback, once for each"
_REPORT = (
    "pass on what the middleware reports, by CLOCK_MONOTONIC where reports_monotonic says so; else RTM_ABSENT"
)
_CYCLE = ("release", "start", "request_sent", "request_received", "response_sent", "response_received")
_SENT = ("release", "sent", "received")
_ERRAND = ("sent", "first_feedback", "received")


def stamped(run: ProbeRun, threads: Sequence[Mapping[str, Any]], config: RunConfig) -> Wrong | None:
    """What is wrong with the stamps of a complete run; of a client with those of its server too."""
    log = read_log(run.log)
    columns = {name: np.asarray(values) for name, values in log.columns.items()}
    wrong = next(disorder(columns, log.meta, config), None)
    if wrong is None and run.server is not None:
        heard = {name: np.asarray(values) for name, values in read_log(run.server.log).columns.items()}
        wrong = unheard(columns, heard) or received_elsewhere(threads, config)
    return wrong


def disorder(columns: Columns, meta: Mapping[str, Any], config: RunConfig) -> Iterator[Wrong]:
    """Of the rows that were served: what comes before what it follows."""
    k = np.flatnonzero((columns["status"] & 15) == SERVED)
    rows = {name: values[k] for name, values in columns.items()}
    yield from _STAMPS[config["measurement"]](rows, meta, config)


def unheard(columns: Columns, heard: Columns) -> Wrong | None:
    """Whether the server heard each message that was answered, between its sending and its answer."""
    k = np.flatnonzero((columns["status"] & 15) == SERVED)
    by_sequence = np.argsort(heard["sequence"], kind="stable")
    where = np.searchsorted(heard["sequence"], k, sorter=by_sequence)
    known = where < len(by_sequence)
    known[known] = heard["sequence"][by_sequence[where[known]]] == k[known]
    if not known.all():
        return f"{(~known).sum()} answers are to messages that the server never had", _STAMP
    at = by_sequence[where]
    order = columns["sent_ns"][k], heard["server_received_ns"][at], heard["server_sent_ns"][at]
    return next(_in_order(("sent", "server_received", "server_sent", "received"), order, columns, k), None)


def received_elsewhere(threads: Sequence[Mapping[str, Any]], config: RunConfig) -> Wrong | None:
    """Whether replies came on another thread than the way to receive says (spec/probe.md)."""
    receive = config.get("receive")
    apart = receive == "spin" or (receive == "spin_once" and config.get("in_flight") == "open")
    expected = (
        "the middleware's" if receive == "listener" else "rtm-receiver" if apart else "the measured one"
    )
    found = {_kind(thread) for thread in threads if thread["stamps"]}
    if found == {expected}:
        return None
    return (
        f"replies were received by {' and '.join(sorted(found)) or 'no thread'}, not {expected}",
        f"list in receives only what holds: {receive} is not how they are received",
    )


def _kind(thread: Mapping[str, Any]) -> str:
    if thread["role"] == "middleware":
        return "the middleware's"
    return "rtm-receiver" if thread["name"] == "rtm-receiver" else "the measured one"


def _in_order(
    names: Sequence[str], first: Sequence[NDArray[np.int64]], columns: Columns, k: NDArray[np.int64]
) -> Iterator[Wrong]:
    values = [*first, *(columns[f"{name}_ns"][k] for name in names[len(first) :])]
    for (earlier, before), (later, after) in pairwise(zip(names, values, strict=True)):
        if (early := int((after < before).sum())) > 0:
            yield f"{later} comes before {earlier} {early} times", _STAMP


def _ordered(rows: Columns, *names: str) -> Iterator[Wrong]:
    yield from _in_order(names, (), rows, np.arange(len(rows["status"])))


def _wakeup(rows: Columns, meta: Mapping[str, Any], config: RunConfig) -> Iterator[Wrong]:
    yield from _ordered(rows, "release", "wake")


def _timer(rows: Columns, meta: Mapping[str, Any], config: RunConfig) -> Iterator[Wrong]:
    """Reported times stand on the stamps' clock where the adapter says so."""
    one_shot = config.get("mode") == "one_shot"
    if one_shot:
        yield from _ordered(rows, "armed_before", "armed_after", "callback")
    if meta["adapter"].get("reported_clock", "monotonic") != "monotonic":
        return
    expected, actual = rows["reported_expected_ns"], rows["reported_actual_ns"]
    told = expected != ABSENT
    if one_shot:
        first, last = (rows[f"armed_{when}_ns"] + config["timeout_ns"] for when in ("before", "after"))
        if (other := int(((expected < first) | (expected > last))[told].sum())) > 0:
            yield f"{other} shots were reported for another time than they were armed for", _REPORT
    elif meta["grid"]["t0_from"] == "reported" and (other := int((expected != rows["release_ns"]).sum())) > 0:
        yield f"{other} callbacks were reported for another time than their release", _REPORT
    for name, early in (
        ("it was reported to be due", told & (rows["callback_ns"] < expected)),
        ("it was reported to come", (actual != ABSENT) & (rows["callback_ns"] < actual)),
    ):
        if early.any():
            yield f"{int(early.sum())} callbacks came before {name}", _REPORT
    if (early := int((told & (actual != ABSENT) & (actual < expected)).sum())) > 0:
        yield f"{early} callbacks were reported to come before they were due", _REPORT


def _exchange(rows: Columns, meta: Mapping[str, Any], config: RunConfig) -> Iterator[Wrong]:
    yield from _ordered(rows, *_SENT)
    if config["measurement"] != "request":
        return
    accepted, told = rows["accepted_ns"] != ABSENT, rows["first_feedback_ns"] != ABSENT
    if config.get("interface") != "action":
        if (accepted | told).any():
            yield "a service has told RTM_ACCEPTED or RTM_FEEDBACK", "a service tells its reply alone"
        return
    may_drop = "feedback" in meta["adapter"].get("may_drop", ())
    if not accepted.all() or not (told.any() or may_drop):
        yield (
            f"of {len(accepted)} goals {accepted.sum()} were accepted, and {told.sum()} had feedback",
            "tell RTM_ACCEPTED and RTM_FEEDBACK as they come, by the sequence number of the goal",
        )
    for names, which in ((("sent", "accepted", "received"), accepted), (_ERRAND, told)):
        yield from _in_order(names, (), rows, np.flatnonzero(which))


def _cycle(rows: Columns, meta: Mapping[str, Any], config: RunConfig) -> Iterator[Wrong]:
    """An inferred grid is an estimate: a later callback may come before the release that it stands for."""
    yield from _ordered(rows, *_CYCLE[meta["grid"]["t0_from"] == "inferred" :])


_STAMPS: dict[str, Callable[[Columns, Mapping[str, Any], RunConfig], Iterator[Wrong]]] = {
    "wakeup": _wakeup,
    "timer": _timer,
    "roundtrip": _exchange,
    "request": _exchange,
    "cycle": _cycle,
}
