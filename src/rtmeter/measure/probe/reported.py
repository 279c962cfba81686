"""What a probe said was wrong, by the option that was given and a value as it is written."""

from __future__ import annotations

from typing import Any

from rtmeter.campaign.options import KNOWN
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.values import format_duration


def reported_error(process: ProbeProcess) -> RtmeterError | None:
    """The error in the probe's own words, if it said any."""
    event = process.event("error")
    if event is None:
        return None
    field, value = as_given(event.get("field"), event.get("value"))
    return RtmeterError(
        str(event.get("message")),
        field=field or None,
        value=None if value in (None, "") else value,
        remedy=event.get("remedy") or None,
    )


def as_given(field: Any, value: Any) -> tuple[Any, Any]:
    """``payload_bytes``, 1000 → ``payload``, ``1000B``: a key of the probe config that is no option's name,
    and its value, which has the unit then; all else as it is."""
    name = _OPTION_OF.get(str(field))
    if name is None:
        return field, value
    number = str(value)
    if number.isdecimal():
        return name, format_duration(int(number)) if str(field).endswith("_ns") else f"{number}B"
    return name, value


def _key(name: str, alias: str) -> str:
    group, dot, _ = name.rpartition(".")
    return group + dot + alias


_OPTION_OF = {
    _key(name, info.serialization_alias): name for name, info in KNOWN.items() if info.serialization_alias
}
