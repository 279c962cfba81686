"""What the null adapter's script must lead to, by the definitions alone: an independent simulator.

Shares no code with the probe or the package. Times are integers in nanoseconds; a script is a list of rows
by column name, None where the cell is empty; row k is for release k, from the start again when it ends.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

Row = dict[str, Any]
Script = list[dict[str, Any]]


def simulate(config: dict[str, Any], script: Script, anchor: int) -> tuple[list[Row], dict[str, int]]:
    """The rows of a run that nothing interrupts, and its reply counters.

    ``anchor``, which no definition fixes, is the first release; for one-shot timers the moment the first
    shot is armed, for periodic ones that nobody sleeps for the first callback.
    """
    config = config | {"overrun": overrun_of(config)}
    inputs = [script[k % len(script)] for k in range(config["warm_up"] + config["samples"])]
    counters = Counter(dict.fromkeys(("late_after_lost", "duplicate", "out_of_order", "corrupted"), 0))
    if config["measurement"] in ("roundtrip", "request"):
        rows, counters = round_trips(config, inputs, anchor)
    elif config.get("mode") == "one_shot":
        rows = one_shots(config, inputs, anchor)
    elif config.get("mode") == "periodic":
        rows = periodic(config, script, anchor)
    else:
        rows = grid(config, inputs, anchor)
    for k, row in enumerate(rows):
        row |= {"k": k, "warm_up": k < config["warm_up"]}
    return rows, dict(counters)


def overrun_of(config: dict[str, Any]) -> str:
    """The policy asked for, or the default: skip with one message in flight."""
    return str(config["overrun"] or ("skip" if config.get("in_flight") == "one" else "catch_up"))


def one_shots(config: dict[str, Any], inputs: Script, t0: int) -> list[Row]:
    rows, armed, timeout = [], t0, config["timeout_ns"]
    patience = 10 * timeout + 1_000_000_000
    for given in inputs:
        row: Row = {"armed_before_ns": armed, "armed_after_ns": armed, "status": "lost"}
        end = armed + patience
        if given["fire_delay_ns"] is not None and timeout + given["fire_delay_ns"] <= patience:
            end = armed + timeout + given["fire_delay_ns"]
            row |= {"callback_ns": end, "status": "served"}
        rows.append(row)
        armed = end
    return rows


def grid(config: dict[str, Any], inputs: Script, t0: int) -> list[Row]:
    """wakeup and cycle: one release after the other on one thread; but a cycle that the middleware's timer
    starts (``spin``) does not wait for the response of the one before."""
    rows: list[Row] = []
    by_timer = config["measurement"] == "cycle" and config["drive"] != "sleep_then_spin_some"
    free: int | None = None  # the moment the work of the release before ended
    for k, given in enumerate(inputs):
        release = t0 + k * config["period_ns"]
        row: Row = {"release_ns": release}
        rows.append(row)
        if config["overrun"] == "skip" and free is not None and release < free:
            row |= {"status": "skipped", "free_ns": free}
            continue
        row["status"] = "served"
        wake = free = no_earlier(release + given["fire_delay_ns" if by_timer else "wake_delay_ns"], free)
        if config["measurement"] == "wakeup":
            row["wake_ns"] = wake
            continue
        row |= {"start_ns": wake, "request_sent_ns": wake}
        request, respond = given["request_delay_ns"], given["respond_delay_ns"]
        end = wake + config["loss_timeout_ns"]
        if request is None or respond is None or wake + request + respond > end:
            row["status"] = "lost"
        else:
            end = wake + request + respond
            row |= {
                "request_received_ns": wake + request,
                "response_sent_ns": wake + request,
                "response_received_ns": end,
            }
        free = wake if by_timer else end
    return rows


def fires(config: dict[str, Any], script: Script) -> Iterator[tuple[int, int]]:
    """Number and time of the ticks that come, from the release of tick 0."""
    if config["drive"] == "sleep_then_spin_some":
        yield from fires_after_sleeps(config, script)
        return
    free: int | None = None
    for tick in count():
        release, delay = tick * config["period_ns"], script[tick % len(script)]["fire_delay_ns"]
        passed_over = config["overrun"] == "skip" and free is not None and release < free
        if delay is not None and not passed_over:
            free = no_earlier(release + delay, free)
            yield tick, free


def fires_after_sleeps(config: dict[str, Any], script: Script) -> Iterator[tuple[int, int]]:
    """Each sleep is followed by one look at the timer, which waits for the tick that is due by then, if one
    is; a sleep to what has passed takes no time."""
    period, delays = config["period_ns"], [row["fire_delay_ns"] for row in script]
    sleeps, now, tick = count(), 0, -1
    while True:
        over = now if config["overrun"] == "skip" else 0
        tick = next(
            later
            for later in count(tick + 1)
            if delays[later % len(delays)] is not None and later * period >= over
        )
        for sleep in sleeps:
            now = max(now, sleep * period + sleep_offset_of(config))
            if tick * period <= now:
                break
        now = max(now, tick * period + delays[tick % len(delays)])
        yield tick, now


def ticks_of(config: dict[str, Any]) -> str:
    """What the adapter declares of a timer that reports nothing."""
    default = "jumps" if overrun_of(config) == "skip" else "every_tick"
    return str(config.get("options", {}).get("ticks", default))


def sleep_offset_of(config: dict[str, Any]) -> int:
    """How far the sleeps lie behind the ticks: what is asked, or half a period."""
    asked = config.get("sleep_offset_ns")
    return int(config["period_ns"] // 2 if asked is None else asked)


def periodic(config: dict[str, Any], script: Script, anchor: int) -> list[Row]:
    """Which release each callback serves, by what the timer reports or by what is declared of it."""
    releases, warm_up, period = config["warm_up"] + config["samples"], config["warm_up"], config["period_ns"]
    jumps = ticks_of(config) == "jumps"
    slept = config["drive"] == "sleep_then_spin_some"
    reported = config.get("options", {}).get("report") != "none"
    first_tick, first_fire = next(fires(config, script))
    # When tick 0 is due.
    origin = anchor - sleep_offset_of(config) if slept else anchor - first_fire
    t0_tick = 0 if slept else first_tick  # the tick that release 0 is, if it is reported
    t0 = anchor if slept else origin + t0_tick * period if reported else anchor
    rows: list[Row] = []
    free: int | None = None
    for tick, fire in fires(config, script):
        callback = origin + fire
        if reported:
            k = tick - t0_tick
        elif jumps and callback >= t0 + (len(rows) + 1) * period:
            k = (callback - t0) // period
        else:
            k = len(rows)
        if not reported and not slept and k < warm_up:
            t0 = min(t0, callback - k * period)
        while len(rows) < min(k, releases):
            release = t0 + len(rows) * period
            since = free if free is not None and free > release else callback
            rows.append({"release_ns": release, "status": "skipped", "free_ns": since})
        if len(rows) == k < releases:
            rows.append({"release_ns": t0 + k * period, "status": "served", "callback_ns": callback})
        if len(rows) == releases:
            return rows
        free = callback
    raise AssertionError("ticks never end")


def no_earlier(at: int, free: int | None) -> int:
    return at if free is None else max(at, free)


def round_trips(config: dict[str, Any], inputs: Script, t0: int) -> tuple[list[Row], Counter[str]]:
    """First every ping is sent, then the replies are met in the order of their arrival.

    That can be told apart because what frees the sender is known when it sends: in ``open`` the send
    itself, with one in flight the reply's arrival or the loss timeout. A call that blocks is held up by a
    reply that comes after that, too. What an action tells before its result is known of those served.
    """
    loss, closed = config["loss_timeout_ns"], config["in_flight"] == "one"
    rows: list[Row] = []
    arrivals: list[tuple[int, int, int, str]] = []  # (time, k, copy, fate)
    free: int | None = None
    settled = t0
    for k, given in enumerate(inputs):
        release = t0 + k * config["period_ns"]
        if config["overrun"] == "skip" and free is not None and release < free:
            rows.append({"release_ns": release, "status": "skipped", "free_ns": free})
            continue
        sent = no_earlier(release + given["wake_delay_ns"], free)
        rows.append({"release_ns": release, "sent_ns": sent, "status": "lost"})
        delay, fate = given["reply_delay_ns"], given["fate"]
        replied = delay is not None and fate != "corrupt" and delay <= loss
        if delay is not None:
            for copy in range(2 if fate == "duplicate" else 1):
                heapq.heappush(arrivals, (sent + delay, k, copy, fate))
        blocked = delay if config["receive"] == "call" and delay is not None else 0
        free = sent if not closed else sent + (delay if replied else max(loss, blocked))
        settled = max(settled, sent + (delay if replied else max(loss, blocked)))
        if replied:
            rows[-1] |= {"status": "served", "received_ns": sent + delay}
        if replied and config.get("interface") == "action":
            for name, on_the_way in (
                ("accepted_ns", given["accept_delay_ns"]),
                ("first_feedback_ns", given["feedback_delay_ns"]),
            ):
                if on_the_way is not None and on_the_way <= delay:
                    rows[-1][name] = sent + on_the_way
    return rows, count_replies(config, rows, arrivals, settled)


def count_replies(
    config: dict[str, Any], rows: list[Row], arrivals: list[tuple[int, int, int, str]], settled: int
) -> Counter[str]:
    """Late, double, overtaken and corrupted replies to measured pings, until every release is settled."""
    counters = Counter(late_after_lost=0, duplicate=0, out_of_order=0, corrupted=0)
    newest = -1
    while arrivals:
        time, k, copy, fate = heapq.heappop(arrivals)
        if time > settled:
            break
        measured = k >= config["warm_up"]
        if fate == "corrupt":
            counters["corrupted"] += measured
        elif copy:
            counters["duplicate"] += measured
        elif rows[k]["status"] == "lost":
            counters["late_after_lost"] += measured
        else:
            counters["out_of_order"] += measured and k < newest
            newest = max(newest, k)
    return counters


def report(config: dict[str, Any], rows: list[Row]) -> list[Row]:
    """Adds what the null adapter reports of its timers: when each should have fired, and when it did."""
    reports = config["measurement"] == "timer" and config.get("options", {}).get("report") != "none"
    slept = config.get("drive") == "sleep_then_spin_some"
    ahead = sleep_offset_of(config) if slept else 0  # of a sleep's end its tick is due
    for row in rows:
        if reports and row["status"] == "served":
            armed = row.get("armed_before_ns")
            due = row["release_ns"] - ahead if armed is None else armed + config["timeout_ns"]
            row |= {"reported_expected_ns": due, "reported_actual_ns": row["callback_ns"]}
    return rows
