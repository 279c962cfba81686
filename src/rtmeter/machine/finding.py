"""What a check says: something found on this machine, or that it cannot be known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Grade = Literal["fatal", "high", "medium", "info", "unknown"]
"""As the kernel's real-time documentation grades (KERNEL_CONFIGURATION), and ``unknown``."""

WORST_FIRST: tuple[Grade, ...] = ("fatal", "high", "unknown", "medium", "info")

KERNEL_CONFIGURATION = "Linux Documentation/core-api/real-time/kernel-configuration.rst"
KERNEL_HARDWARE = "Linux Documentation/core-api/real-time/hardware.rst"
KERNEL_SYSCTL = "Linux Documentation/admin-guide/sysctl/kernel.rst"
KERNEL_PARAMETERS = "Linux Documentation/admin-guide/kernel-parameters.txt"
PER_CPU_KTHREADS = "Linux Documentation/admin-guide/kernel-per-CPU-kthreads.rst"
TUNED_REALTIME = "tuned, profile realtime"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found.

    ``id`` names the kind (docs/check.md lists them), ``value`` is what the machine says, ``why`` it
    matters, by which ``source``, and the command that ``fix``es it ("" if none does). ``items``: the tasks,
    interrupts or cpusets it speaks of. ``at_worst``: the grade that an unknown might have.
    """

    id: str
    grade: Grade
    value: str
    why: str
    source: str
    fix: str
    at_worst: Grade
    items: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As cell.json and ``rtmeter check --json`` have it (spec/results.md)."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists, as JSON holds them
        return plain


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding: everything about it that is the same on every machine."""

    id: str
    grade: Grade
    why: str
    source: str
    fix: str = ""

    def found(
        self,
        value: str,
        *,
        fix: str | None = None,
        grade: Grade | None = None,
        items: tuple[Mapping[str, Any], ...] = (),
    ) -> Finding:
        """It is so here; ``fix`` and ``grade`` replace the usual ones."""
        actual = grade or self.grade
        fix = self.fix if fix is None else fix
        return Finding(self.id, actual, value, self.why, self.source, fix, actual, items)

    def unknown(self, reason: str, *, fix: str = "") -> Finding:
        """Whether it is so cannot be told; ``fix`` is what would let it be."""
        return Finding(self.id, "unknown", reason, self.why, self.source, fix, self.grade)
