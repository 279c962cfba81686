"""What a program's own functions tell, beside the kernel's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Mark:
    """A function was called, or returned: ``what``; ``values``: what it was given, or gave."""

    time_ns: int
    tid: int
    what: str
    values: Mapping[str, int | str] = field(default_factory=dict)
