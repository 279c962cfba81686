"""Numbers and settings as a report writes them: nanoseconds come in, microseconds go out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rtmeter.statistics.quantities import ON_THE_GRID, grid_inferred, judged_quantity, kind
from rtmeter.values import Scheduling, format_duration

if TYPE_CHECKING:
    from rtmeter.model import Verdict
    from rtmeter.results.record import WasBeside

NONE = "–"

QUANTITIES = {
    "wakeup/latency": "wake-up latency",
    "own_loop/latency": "wake-up latency",
    "own_loop/completion": "completion (release to the end of the work)",
    "loop/latency": "wake-up latency",
    "loop/completion": "completion (release to the next sleep)",
    "busy": "time on a CPU",
    "interval": "from wake-up to wake-up",
    "timer/latency": "timer latency",
    "measured": "lateness, measured",
    "measured_after": "lateness, from after arming",
    "reported": "lateness, reported",
    "difference": "reported less measured",
    "difference_after": "reported less that from after arming",
    "dispatch": "dispatch of the callback",
    "response": "response (release to reply)",
    "round_trip": "round trip (send to reply)",
    "ping": "ping (client to server)",
    "pong": "pong (server to client)",
    "send_path": "send path (send to the driver)",
    "wire_ping": "wire, ping (driver to driver)",
    "server_receive_path": "server's receive path (driver to callback)",
    "server_send_path": "server's send path (send to the driver)",
    "wire_pong": "wire, pong (driver to driver)",
    "receive_path": "receive path (driver to callback)",
    "completion": "completion (release to response)",
    "cycle_delay": "cycle delay",
    "cycle_delay_normalised": "cycle delay less its minimum",
    "request": "request",
    "respond": "respond",
    "accepted": "accepted (release to the goal's acceptance)",
    "first_feedback": "first feedback (release to it)",
    "time_to_first": "time to first (start to a message over every pair)",
    "time_to_matched": "time to matched (start to all ends matched)",
    "start_delay": "start delay (release to the last start)",
    "result": "result (release to the action's result)",
}

VIEWS = {"per_release": "per release", "as_served": "as served", "corrected": "corrected"}

OF_ALL_RUNS = "Of several runs all together, but for the quantiles: the worst is the largest of theirs."
"""Of a table of conditions (record.summary.of_all_runs())."""

MEASUREMENTS = {
    "wakeup": "wake-up",
    "timer/periodic": "periodic timer",
    "timer/one_shot": "one-shot timer",
    "roundtrip": "round trip",
    "request": "request",
    "cycle": "request–respond cycle",
    "chain": "chain of stages",
    "discovery": "discovery",
    "own_loop": "own loop",
    "loop": "loop of a program",
    "imported": "data",
}


def measurement(meta: Mapping[str, Any]) -> str:
    """What was measured."""
    return MEASUREMENTS[kind(meta)]


def quantity(meta: Mapping[str, Any], name: str) -> str:
    """A quantity in words; one that is not known keeps its name, and another tool's has that tool's. One
    without the delay that all callbacks share says so."""
    if meta.get("quantity"):
        return str(meta["quantity"])
    known = QUANTITIES.get(f"{meta['measurement']}/{name}") or QUANTITIES.get(name, name)
    return f"{known}, on an inferred grid" if name in ON_THE_GRID and grid_inferred(meta) else known


def judged(meta: Mapping[str, Any]) -> str:
    """The judged quantity in words."""
    return quantity(meta, judged_quantity(meta).name)


DRIVES = {
    "spin": "started by its own trigger",
    "sleep_then_spin_some": "started by a sleep, then spin_some",
    "poll": "polled",
}

COMPONENTS = {
    "one_thread": "both components on one thread",
    "two_threads": "each component on its thread",
    "middleware_threads": "components on threads of the middleware's",
}


def shape(meta: Mapping[str, Any], effective: Mapping[str, Any]) -> list[str]:
    """What starts a timer's callbacks or a cycle, on which threads, and what its grid lacks, in words. A
    one-shot has no trigger: each is armed anew."""
    drive = DRIVES.get(str(effective.get("drive"))) if meta["measurement"] in ("timer", "cycle") else None
    if meta.get("mode") == "one_shot" and effective.get("drive") == "spin":
        drive = None
    threads = COMPONENTS.get(str(effective.get("components")))
    grid = "grid inferred: constant delays are not seen" if grid_inferred(meta) else None
    return [one for one in (drive, threads, grid) if one]


def traced(instrument: Mapping[str, Any], counters: Mapping[str, int]) -> list[str]:
    """What looking at a program from outside cost it, and what was not seen."""
    if "events_per_job" not in instrument:
        return []
    cost = instrument.get("traced_ns_per_job")
    about = "at an unknown cost" if cost is None else f"at about {us(cost)} us a job"
    lost = counters.get("events_lost", 0)
    return [f"attached: traced {about}, {lost:,} events lost, {counters.get('unknown', 0):,} jobs unknown"]


def crowd(config: Mapping[str, Any]) -> list[str]:
    """How many there are beside a round trip's ends, where there are any: ``4 subscribers``."""
    names = ("subscribers", "publishers", "background_nodes")
    return [f"{config[name]:,} {label(name)}" for name in names if config.get(name)]


def nodes(found: WasBeside | None) -> str:
    """Which background nodes were there to the end, and what the client knew of others."""
    if found is None or not found.background_nodes:
        return ""
    most = max(one.threads for one in found.background_nodes)
    knew = "" if found.knew is None else f"; the client knew {found.knew:,} others"
    count = len(found.background_nodes)
    return f"{count:,} there to the end, up to {most:,} threads of the middleware's each{knew}"


def publications(found: WasBeside | None) -> list[str]:
    """Of each further publisher of a round trip's topic the identity that what it sent holds."""
    return [] if found is None else [f"{one.name} {one.identity}" for one in found.publishers]


def beside(found: WasBeside | None) -> Iterator[str]:
    """What each subscriber of a round trip's pings received of them, and the identity that it holds."""
    if found is None or found.identity is None:
        return
    each = []
    for one in found.subscribers:
        besides = {"lost": one.lost, "again": one.duplicate, "damaged": one.corrupted}
        counts = [f"{count:,} {what}" for what, count in besides.items() if count]
        each.append(f"{one.name} {one.received:,}" + (f" ({', '.join(counts)})" if counts else ""))
    yield f"pings received: {', '.join(each)}"
    yield found.identity


def us(ns: float | str | None) -> str:
    """Microseconds with as many decimals as say something: 0.312, 54.31, 1,234.5; what is not known is a
    dash, and what is later than anything measured was lost."""
    if ns is None or ns != ns:
        return NONE
    if isinstance(ns, str):
        return ns
    if math.isinf(ns):
        return "lost" if ns > 0 else "-lost"
    value = ns / 1000
    decimals = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:,.{decimals}f}"


def round_us(ns: float) -> str:
    """Microseconds without needless decimals, for deadlines: 1,000, 0.5."""
    return f"{ns / 1000:,.3f}".rstrip("0").rstrip(".")


def us_beside(ns: float, limit_ns: int) -> str:
    """Microseconds beside a limit: with decimals enough that what is later does not read as the limit."""
    short = us(ns)
    return round_us(ns) if ns > limit_ns and short == us(limit_ns) else short


def count(number: float | None) -> str:
    """A count with thousands set apart."""
    return NONE if number is None else f"{number:,}"


def ratio(share: float | None, digits: int = 3) -> str:
    """A share, 0.002; one below 0.0001 as a power of ten: 4.99 × 10⁻⁵, 10⁻⁶."""
    if share is None:
        return NONE
    if share == 0 or share >= 1e-4:
        return f"{share:.{digits}g}"
    mantissa, exponent = f"{share:.{digits - 1}e}".split("e")
    kept = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    times = "" if kept == "1" else f"{kept} × "
    return f"{times}10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def share(part: float, digits: int = 3) -> str:
    """A share in per cent: 41.9 %, 0.1 %, 0.002 %; never 0 % of what is more, nor 100 % of what is less.
    Of NaN a dash."""
    if math.isnan(part):
        return "-"
    percent = f"{100 * part:.{digits}g}"
    if percent == "100" and part < 1:
        percent = f"{100 * math.floor(part * 1e6) / 1e6:.10g}" if part <= 1 - 1e-6 else "99.9999"
    return f"{percent} %" if "e" not in percent else ratio(part, digits)


def digits_beside(limit: float, *parts: float) -> int:
    """How many digits shares need, three at least, so that none reads as the limit that it is above or
    below."""
    other = [part for part in parts if part != limit]
    return next((n for n in range(3, 17) if share(limit, n) not in [share(one, n) for one in other]), 17)


def missed_share(verdict: Verdict) -> str:
    """The share that missed; of data without single values between which: ``0.01 % to 0.12 %``."""
    least, most = verdict.misses_between or (verdict.misses,) * 2
    return between(least / verdict.n, most / verdict.n)


def between(least: float, most: float) -> str:
    """A share of which the least and the most are known: ``0.01 % to 0.12 %``."""
    ends = share(least), share(most)
    return ends[1] if ends[0] == ends[1] else " to ".join(ends)


TELLING = 0.01
"""A lower bound below this share of the upper one says no more than that something was missed."""


def share_between(lower: float, upper: float, digits: int = 3) -> str:
    """Two bounds of a share: ``at least 0.2 %, at most 1 %``; without a lower one that says nothing."""
    least = f"at least {share(lower, digits)}, " if lower > TELLING * upper else ""
    return f"{least}at most {share(upper, digits)}"


def one_in(share: float) -> str:
    """A share of things that are counted: 1 in 1,000, 0.3 in 100, 2.5 in 10,000."""
    of = 10 ** math.ceil(-math.log10(share) - 1e-9)
    whole = round(1 / share)
    if abs(share * whole - 1) < 1e-9:
        return f"1 in {whole:,}"
    return f"{share * of:.3g} in {of:,}"


def span(seconds: float) -> str:
    """How long something takes, roughly: 40 s, 50 min, 35 days."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 2 else f"{seconds:.2g} s"


def setting(name: str, value: object) -> str:
    """A setting as people write it: fifo:80, 1ms, yes, 0, 2."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and "policy" in value:
        return str(Scheduling.from_probe(value))
    if isinstance(value, int) and name.endswith("_ns"):
        return format_duration(value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return size(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} = {setting(str(key), part)}" for key, part in value.items()) or NONE
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(bytes_: int) -> str:
    """A size: 500 B, 128 KiB, 8 MiB."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if bytes_ and bytes_ % factor == 0:
            return f"{bytes_ // factor:,} {unit}"
    return f"{bytes_:,} B"


def label(name: str) -> str:
    """The name of a setting as campaigns write it: period_ns → period, since values carry their unit."""
    return name.removesuffix("_ns").removesuffix("_bytes")
