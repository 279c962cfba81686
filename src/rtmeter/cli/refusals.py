"""Options that would do nothing: each is refused, with what helps."""

from __future__ import annotations

from collections.abc import Mapping

from rtmeter.errors import RtmeterError


def refuse(options: Mapping[str, object], message: str, remedy: str) -> None:
    """Raises RtmeterError for the first of these options that was given."""
    for option, value in options.items():
        if value is None or value is False or value == []:
            continue
        said = ", ".join(value) if isinstance(value, list) else None if value is True else str(value)
        raise RtmeterError(message, field=option, value=said, remedy=remedy)
