"""The table of the programs, read: records of each CPU that are whole, and how many were lost."""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmeter.host.root import Root
from rtmeter.trace.ebpf.kernel import make_table
from rtmeter.trace.ebpf.programs import LINE_BYTES, NUMBER, TIME, Table, cpus_of

MOST_BYTES = 256 << 20
RECORDS = 1 << 16
"""For each CPU, unless that is too much together: some ten seconds of a loop of 1 kHz, if the reader is held
up."""

_FEWEST = 1 << 8
WORDS = LINE_BYTES // 8
"""Of a record."""

Records = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Read:
    """Records of a CPU, a row of eight words each; ``lost`` before the first; ``until_ns``: none with an
    earlier time is still to come."""

    cpu: int
    records: Records
    lost: int
    until_ns: int


class Rings:
    """Raises UnavailableError where the kernel gives no such table."""

    def __init__(self, root: Root, records: int = RECORDS) -> None:
        self._cpus = _possible(root)
        rooms = cpus_of(self._cpus)
        while rooms * records * LINE_BYTES > MOST_BYTES and records > _FEWEST:
            records //= 2
        size = Table(-1, rooms, records).size_bytes
        self.table = Table(make_table(size), rooms, records)
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(self.table.descriptor, pages, mmap.MAP_SHARED, mmap.PROT_READ)
        words = np.frombuffer(self._map, np.uint64, size // 8)
        lines = rooms * WORDS
        self._made = words[:lines].reshape(rooms, WORDS)[:, 0]
        self._rings = words[lines:].reshape(rooms, records, WORDS)
        self._read = [0] * self._cpus

    def read(self) -> list[Read]:
        """What has come since, of each CPU."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        return [self._of(cpu, now_ns) for cpu in range(self._cpus)]

    def _of(self, cpu: int, now_ns: int) -> Read:
        room, ring = self.table.records, self._rings[cpu]
        began = self._read[cpu]
        made = int(self._made[cpu])
        first = max(began, made - room)
        numbers = np.arange(first, made, dtype=np.uint64)
        places = numbers & np.uint64(room - 1)
        here = ring[places, NUMBER // 8] == numbers + np.uint64(1)
        records = ring[places]
        safe = int(self._made[cpu]) - room  # what has another turn now may be torn
        overwritten = max(safe - first, 0)
        records, here = records[overwritten:], here[overwritten:]
        whole = len(records) if here.all() else int(here.argmin())
        records = records[:whole]
        self._read[cpu] = first + overwritten + whole
        until_ns = now_ns
        if whole < len(here):  # one is being written; if nothing before it was read, its time is not known
            until_ns = int(records[-1, TIME // 8]) if whole else -1
        return Read(cpu, records, first + overwritten - began, until_ns)

    def close(self) -> None:
        """The table goes with the programs."""
        del self._made, self._rings
        self._map.close()
        os.close(self.table.descriptor)


def _possible(root: Root) -> int:
    """How many CPUs there could be."""
    told = (root.read("/sys/devices/system/cpu/possible") or "0").strip()
    return int(told.replace(",", "-").split("-")[-1]) + 1
