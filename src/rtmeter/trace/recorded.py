"""What a recording leaves: pages, and what is needed to read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rtmeter.explain.marks import Mark
from rtmeter.trace.formats import Format, PageForm


@dataclass(frozen=True)
class Recorded:
    """``cpus``: the pages of each, None where some were left out; ``kernel_threads``: their names by id,
    which others may have had before or since; ``calls``: names of system calls by number;
    ``realtime_offset_ns``: the wall clock's time less the monotonic one's; ``cut_ns``: where the recording
    broke off, if it did. ``functions``: of a recording of some threads only, names of timers' functions by
    address: timers are then named by them, with the time that was asked for (without slack), and no switch
    is missed. ``offsets_ns``: what other clocks show more than the monotonic one. ``marks`` are filled in as
    the pages are read."""

    form: PageForm
    formats: Sequence[Format]
    cpus: Mapping[int, Iterable[bytes | None]]
    kernel_threads: Mapping[int, Collection[str]]
    calls: Sequence[str]
    realtime_offset_ns: int
    cut_ns: int | None = None
    functions: Mapping[int, str] | None = None
    offsets_ns: Sequence[int] = ()
    marks: list[Mark] = field(default_factory=list)
