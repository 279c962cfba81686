"""Options that an adapter would refuse, seen by what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import Cell

_CHOICES = re.compile(r"[\w.+-]+(\|[\w.+-]+)+")
_RANGE = re.compile(r"(-?\d+) to (-?\d+)")


def check(cell: Cell, client: Probe, server: Probe | None) -> None:
    """Raises RtmeterError for an option that the adapter of either end does not have, a value that is none
    of its choices or out of its range, or a drive or a way to receive that it does not name. What means
    nothing in this cell only the adapter itself can tell."""
    measurement = cell.config["measurement"]
    _check("options", cell.config.get("options", {}), client)
    _check_way("drive", cell.config.get("drive"), f"drives {measurement} by", measurement, client)
    receives = f"receives the messages of a {measurement} by"
    _check_way("receive", cell.config.get("receive"), receives, measurement, client)
    if server is not None:
        _check("server_options", cell.server_options or {}, server)
        _check_way("server_receive", cell.server_receive, receives, measurement, server)


def _check_way(field: str, way: str | None, does: str, measurement: str, probe: Probe) -> None:
    named = probe.facts.get(f"{field.removeprefix('server_')}s", {}).get(measurement)
    if way is not None and named and way not in named:
        message = f"this adapter {does} {', '.join(named)}"
        raise RtmeterError(message, field=field, value=way, remedy="choose one of these")


def _check(field: str, given: Mapping[str, str], probe: Probe) -> None:
    known: Mapping[str, object] = probe.facts.get("option", {})
    for name, value in given.items():
        at = f"{field}.{name}"
        if name not in known:
            remedy = f"choose one of {', '.join(known)}" if known else "leave it out: it has none"
            raise RtmeterError("this adapter has no such option", field=at, value=value, remedy=remedy)
        values = str(known[name]).partition(":")[0]
        if _CHOICES.fullmatch(values) and value not in values.split("|"):
            remedy = f"choose one of {values.replace('|', ', ')}"
            raise RtmeterError("no such choice", field=at, value=value, remedy=remedy)
        if (bounds := _RANGE.fullmatch(values)) and not _within(value, int(bounds[1]), int(bounds[2])):
            raise RtmeterError(f"is no number from {values}", field=at, value=value, remedy=f"give {values}")


def _within(value: str, least: int, most: int) -> bool:
    return bool(re.fullmatch(r"-?\d+", value)) and least <= int(value) <= most
