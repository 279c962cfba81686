"""The key ``conditions`` of a cell.json in a few words, for beside its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtmeter.model import Doubt
from rtmeter.results.record import CellRecord
from rtmeter.values import format_duration

_MBIT = 1e6
BY_ROUND_TRIPS = "round_trips"
"""By what two clocks are compared, where no shared one was asked for."""

_OF_KERNEL = {
    "send_path": ("client",),
    "receive_path": ("client",),
    "server_send_path": ("server",),
    "server_receive_path": ("server",),
    "wire_ping": ("client", "server"),
    "wire_pong": ("client", "server"),
}
"""Whose stamps of the kernel's a quantity rests on."""

_ONE_WAY = ("ping", "pong", "request", "respond", "wire_ping", "wire_pong")
"""Quantities of both ends' stamps."""


EMULATED = "qemu-tcg"
"""A virtual machine whose processor is software."""


def unfit(kind: object) -> str | None:
    """What numbers from a virtual machine of this kind (``machine.virtual_machine`` of a cell.json) are
    unfit for; None if it is none."""
    if kind in (None, False, "", "none"):
        return None
    if kind == EMULATED:
        return f"emulated processor ({EMULATED}): its timing means nothing"
    return f"virtual machine ({'of unknown kind' if kind is True else kind}): unfit for absolute claims"


def middleware(facts: Mapping[str, Any]) -> str:
    """What an adapter's facts name, with its version; empty if nothing."""
    return " ".join(str(facts[key]) for key in ("middleware", "middleware_version") if facts.get(key))


def server(record: CellRecord) -> str:
    """Whose server answered, where that is another adapter, or of another middleware; else empty."""
    own, theirs = middleware(record.adapter_facts), middleware(record.server_adapter_facts or {})
    if record.server_adapter not in (None, record.adapter):
        return f"server {record.server_adapter}" + (f" ({theirs})" if theirs else "")
    return f"server of {theirs}" if theirs not in ("", own) else ""


def which_cells(names: Sequence[str], of: int, things: str = "cells") -> str:
    """Some of ``of`` cells, or other ``things``, by name; beyond three, how many more."""
    if len(names) == of > 1:
        return f"all {of} {things}"
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


_VARIES = re.compile(r"^as in \S+: |\([^()]*\)|\d[\d.,]*")


def told_once(doubts: Iterable[tuple[str, Doubt]]) -> list[tuple[Doubt, list[str]]]:
    """Doubts of named cells, in their order, with those that have them: once where several cells have the
    like, where only numbers and what stands in brackets differ; the words are those of the first, named."""
    groups: dict[tuple[str, str], list[tuple[str, Doubt]]] = {}
    for name, doubt in doubts:
        groups.setdefault((doubt.type, _VARIES.sub("", doubt.message)), []).append((name, doubt))
    once: list[tuple[Doubt, list[str]]] = []
    for having in groups.values():
        distinct = list(dict.fromkeys(doubt for _, doubt in having))
        (first, doubt), names = having[0], list(dict.fromkeys(name for name, _ in having))
        if len(names) == 1:
            once += ((one, names) for one in distinct)
        elif len(distinct) == 1 or doubt.message.startswith("as in "):
            once.append((doubt, names))
        else:
            once.append((replace(doubt, message=f"as in {first}: {doubt.message}"), names))
    return once


def in_words(conditions: object, beside: Iterable[object] = ()) -> list[str]:
    """Settings, load, traffic and recording that were asked for, with what they achieved; nothing if not
    known. ``beside``: what was asked alike, for how busy the CPUs were at least and at most."""
    found = _mapping(conditions)
    asked, achieved = _mapping(found.get("asked")), _mapping(found.get("achieved"))
    settings = _settings(_mapping(asked.get("settings")), _mapping(found.get("left_out")))
    busy = [_number(_machine(one).get("busy")) for one in (found, *beside)]
    load = _load(_mapping(asked.get("load")), [share for share in busy if share is not None])
    traffic = _traffic(_mapping(asked.get("traffic")), _mapping(achieved.get("traffic")))
    recorded = ["the kernel's events recorded"] if asked.get("explain") else []
    return [*settings, *load, *traffic, *recorded, *_server(_mapping(found.get("server")))]


def meanwhile(conditions: object) -> list[str]:
    """What the machine did while a cell was measured that its own probes and load did not; empty if that is
    not known."""
    machine = _machine(conditions)
    known = _number(machine.get("others")) is not None or _number(machine.get("steal")) is not None
    others = _taken(machine) or (["nobody else took 1% of the CPUs"] if known else [])
    return [
        *others,
        *_took(machine, "kernel_work", "interrupts and threads of the kernel"),
        *_slowed(machine),
        *_dropped(machine),
    ]


def taken_much(conditions: object) -> tuple[float, str]:
    """The share that others and the hypervisor took, and in words where it is more than an idle machine's."""
    machine = _machine(conditions)
    share = sum(_number(machine.get(name)) or 0.0 for name in ("others", "steal"))
    return share, " and ".join(_taken(machine)) if share > IDLE_MOST else ""


def _machine(conditions: object) -> Mapping[str, Any]:
    """What a watch saw of the machine; nothing of one too short to tell."""
    machine = _mapping(_mapping(_mapping(conditions).get("achieved")).get("machine"))
    seconds = _number(machine.get("seconds"))
    return {} if seconds is not None and seconds < SHORTEST_S else machine


def _taken(machine: Mapping[str, Any]) -> list[str]:
    """What others and the hypervisor took of the CPUs."""
    return [*_took(machine, "others", "others"), *_took(machine, "steal", "the hypervisor")]


def _took(machine: Mapping[str, Any], key: str, who: str) -> Iterator[str]:
    """Their share under that key, and of whom it is; nothing below a hundredth."""
    share = _number(machine.get(key)) or 0.0
    if share >= _WORTH_A_WORD:
        most = [most_of(machine.get(f"{key}_most"))]
        for unknown, why in _NAMELESS.items():
            if (part := _number(machine.get(f"{key}_{unknown}")) or 0.0) >= _WORTH_A_WORD:
                most.append(f"{part:.0%} by processes that {why}")
        of_whom = ", ".join(filter(None, most))
        yield f"{who} took {share:.0%} of the CPUs" + (f" ({of_whom})" if of_whom else "")


def most_of(others: object) -> str:
    """Who took most, by name."""
    named = [_mapping(one) for one in others] if isinstance(others, list) else []
    known = ((one.get("name"), _number(one.get("share"))) for one in named)
    return ", ".join(f"{name} {share:.0%}" for name, share in known if share and share >= _WORTH_A_WORD)


def _slowed(machine: Mapping[str, Any]) -> Iterator[str]:
    for key, by in (("quota_throttles", "a CPU quota"), ("thermal_throttles", "heat")):
        if count := _number(machine.get(key)):
            yield f"throttled by {by} {'once' if count == 1 else f'{count:.0f} times'}"
    least = [_number(value) for name, value in machine.items() if name.endswith("_mhz_min")]
    most = [_number(value) for name, value in machine.items() if name.endswith("_mhz_max")]
    low, high = ([value for value in ends if value is not None] for ends in (least, most))
    if low and high:
        yield f"CPUs at {_between(min(low) / 1000, max(high) / 1000, '.2g')} GHz"
    ends = [_number(machine.get(f"temperature_c_{when}")) for when in ("begin", "end")]
    if felt := [end for end in ends if end is not None]:
        yield f"{_between(min(felt), max(felt), '.0f')} °C"


def _dropped(machine: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (
        ("udp_buffer_drops", "datagrams dropped, the receive buffer full"),
        ("ip_reassembly_failures", "packets dropped, fragments missing"),
    ):
        if count := _number(machine.get(key)):
            yield f"{count:,.0f} {what}"


def _between(low: float, high: float, form: str) -> str:
    ends = [format(low, form), format(high, form)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


NOT_IDLE = "load_not_idle"
"""The warning that others worked where an idle machine was asked."""

IDLE_MOST = 0.1
"""Share of all CPUs that others and the hypervisor may take of an idle machine: a desktop's own is less."""

SHORTEST_S = 0.5
"""Of a shorter time no share is told: the kernel counts processor time in ticks of 10 ms."""

_WORTH_A_WORD = 0.01

_NAMELESS = {
    "unnamed": "ended too soon to be named",
    "unseen": "ended too soon, or are not seen from here",
}
"""Of what nobody can be named for, why."""

_WAYS = {"udp": "UDP", "tcp": "TCP", "unix": "Unix sockets", "other": "sockets of another kind",
         "shared_memory": "shared memory"}  # fmt: skip


def carried(path: object) -> list[str]:
    """Which way the messages went (``path`` of a cell.json); nothing if that is not known."""
    ways: dict[str, list[str]] = {}
    for end, name in (("client", "requests"), ("server", "replies")):
        way = _mapping(_mapping(path).get(end)).get("carried_by")
        if way not in (None, "unknown"):
            ways.setdefault(str(way), []).append(name)
    words = []
    for way, names in ways.items():
        how = "within the process" if way == "process" else f"by {_WAYS.get(way, way)}"
        words.append(f"{'messages' if len(ways) == 1 else names[0]} {how}")
    return words


def beside_the_network(path: object) -> bool:
    """Whether messages are known to have gone by memory alone."""
    ways = {_mapping(one).get("carried_by") for one in _mapping(path).values()}
    return bool(ways) and ways <= {"shared_memory", "process"}


def uncertainty(quantity: str, clock_offset: object, kernel_stamps: object = None) -> str:
    """What is to stand behind the name of a quantity whose stamps are of several clocks (``clock_offset`` and
    ``kernel_stamps`` of a cell.json): how well it is known; nothing behind others."""
    facts, ends = _mapping(clock_offset), _OF_KERNEL.get(quantity, ())
    errors = [_number(_mapping(_mapping(kernel_stamps).get(end)).get("error_ns")) for end in ends]
    by = ""
    if quantity in _ONE_WAY and (offset_ns := _number(facts.get("error_ns"))) is not None:
        errors.append(offset_ns)
        by = "" if facts.get("by", BY_ROUND_TRIPS) == BY_ROUND_TRIPS else f" by {facts['by']}"
    known = [error for error in errors if error is not None]
    return f" ±{format_duration(round(sum(known)))}{by}" if known else ""


def _server(found: Mapping[str, Any]) -> Iterator[str]:
    """The host of the server, if that is another one than the client's."""
    if found:
        words = ["another part of this machine"] if found.get("same_machine") else []
        words += in_words(found)
        yield f"server on {found.get('host')}" + (f" ({'; '.join(words)})" if words else "")


def _settings(asked: Mapping[str, Any], left_out: Mapping[str, Any]) -> Iterator[str]:
    without = {name for names in left_out for name in names.split(", ")}
    for name, value in asked.items():
        if name != "unavailable":
            yield f"{name} {_value(value)}{' (left out: not to be had)' if name in without else ''}"


def _load(asked: Mapping[str, Any], busy: Sequence[float]) -> Iterator[str]:
    named = asked.get("preset") or " ".join(f"{kind}={_value(value)}" for kind, value in asked.items())
    words = f"load {named}" if named else "no load"
    if busy:
        yield f"{words} (CPUs {_between(min(busy), max(busy), '.0%')} busy)"
    elif named:
        yield words


def _traffic(asked: Mapping[str, Any], achieved: Mapping[str, Any]) -> Iterator[str]:
    for direction, key in (("forward", "rate"), ("reverse", "reverse_rate")):
        rate, carried = _number(asked.get(key)), _mapping(achieved.get(direction))
        if not rate:
            continue
        seen, lost = _number(carried.get("rate")), _number(carried.get("lost_ratio"))
        words = f"traffic {rate / _MBIT:g} Mbit/s {asked.get('protocol', '')} {direction}"
        if seen is None:
            yield words
            continue
        said = [f"{seen / _MBIT:.3g} {'sent' if carried.get('seen_by') == 'sender' else 'arrived'}"]
        said += [f"{lost:.2%} lost"] if lost else []
        said += ["loss unknown"] if lost is None and asked.get("protocol") == "udp" else []
        yield f"{words} ({', '.join(said)})"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(part)}" for key, part in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
