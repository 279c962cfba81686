"""Samples what the machine does while a cell is measured, off the measured CPUs and seldom."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rtmeter.conditions import drops
from rtmeter.conditions.counters import NOTHING, Counters, ReadFiles, look, spent
from rtmeter.conditions.monitor_table import MonitorRow, MonitorTable
from rtmeter.conditions.others import Others
from rtmeter.conditions.throttling import QUOTA, THERMAL
from rtmeter.host.affinity import keep_off
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.model import Doubt
from rtmeter.results.condition_words import SHORTEST_S

FILE, SERVER_FILE = "monitor.parquet", "server_monitor.parquet"
NOW = "now.json"
"""The last row, while the cell is measured, for who looks on; removed at its end."""

_NEW = ".new"
_LAST_ROW_S = 40  # for the last look: longer than another machine is given to answer
_RATES = ("context_switches", "interrupts", "faults", "major_faults", "disk_read_bytes", "disk_written_bytes")
_TIMES = (QUOTA, THERMAL, *drops.NAMES)

Gauge = Callable[[], float | None]
"""Something else to note with every sample, called in the sampling thread."""


class Monitor:
    """From start() to stop(), a row of ``folder``/``file`` (spec/results.md) every ``interval_ns``.

    With an interval of 0 there is one row, at the end. ``more_files``: as in counters.look;
    ``others`` are looked at with each row.
    """

    def __init__(
        self,
        folder: Path,
        read: ReadFiles,
        interval_ns: int,
        measured_cpus: set[int],
        gauges: Mapping[str, Gauge] | None = None,
        file: str = FILE,
        more_files: Sequence[str] = (),
        others: Others | None = None,
    ) -> None:
        self._look = partial(look, read, more_files)
        self._interval_s, self._table = interval_ns / 1e9, MonitorTable(folder / file)
        self._now = folder / NOW if interval_ns and file == FILE else None
        self._avoid, self._gauges = measured_cpus, dict(gauges or {})
        self._others = others
        self._first = self._last = self._look()
        self._seen: dict[str, list[float]] = {}  # of momentary values: sum, count, least, largest
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtmeter-monitor", daemon=True)

    def start(self) -> None:
        """Begins to sample."""
        self._first = self._last = self._look()
        if self._others is not None:
            self._others.look(NOTHING)
        self._thread.start()

    def stop(self) -> None:
        """Takes the last sample and closes the file, if it was begun."""
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join(_LAST_ROW_S)
            if self._thread.is_alive():  # it ends with this process
                self._table.broken = f"the machine could not be looked at for {_LAST_ROW_S} s"
        if self._now is not None:
            for file in (self._now, self._now.with_suffix(_NEW)):
                file.unlink(missing_ok=True)

    def doubts(self) -> Iterator[Doubt]:
        """``monitor_incomplete``, if its rows could not be had or written."""
        if self._table.broken is not None:
            message = f"{self._table.name} lacks rows: {self._table.broken}"
            yield Doubt("monitor_incomplete", message, "see to that, and measure again")

    def least(self, gauge: str) -> float | None:
        """The smallest value that a gauge, or a momentary counter, had; None if it was never seen."""
        return self._seen[gauge][2] if gauge in self._seen else None

    def achieved(self) -> dict[str, Any]:
        """Means over the whole time, JSON-ready (spec/results.md)."""
        elapsed_s = (self._last.at_ns - self._first.at_ns) / 1e9
        if elapsed_s <= 0:
            return {}
        grown = self._grown()
        per_s = {name: more / elapsed_s for name, more in grown.items()}
        cpus = shares(self._first, self._last)
        found: dict[str, Any] = {"seconds": round(elapsed_s, 3)}
        if cpus:
            busy, steal = (sum(cpu[i] for cpu in cpus.values()) / len(cpus) for i in (0, 1))
            found |= {"busy": round(busy, 4), "steal": round(steal, 4)}
            found["busy_cpus"] = {str(number): round(cpu[0], 4) for number, cpu in cpus.items()}
            if self._others is not None and elapsed_s >= SHORTEST_S:
                found |= self._others.found(elapsed_s * len(cpus), spent(self._first, self._last))
        found |= {name: round(per_s[name], 4) for name in per_s if name.startswith("psi_")}
        found |= {f"{name}_per_s": round(per_s[name], 1) for name in _RATES if name in per_s}
        found |= {name: int(grown[name]) for name in _TIMES if name in grown}
        for name, (total, count, least, largest) in self._seen.items():
            found |= {f"{name}_mean": round(total / count, 2), f"{name}_max": largest}
            if name.endswith("_mhz"):
                found[f"{name}_min"] = least
        return found

    def _grown(self) -> dict[str, float]:
        before, after = self._first.totals, self._last.totals
        return {name: after[name] - before[name] for name in after if name in before}

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the CPUs left over may have gone offline
            keep_off(self._avoid)
        try:
            while not self._done.wait(self._interval_s or None):
                row = self._row()
                self._table.add(row)
                self._tell(row)
            self._table.add(self._row())
        except ConnectionLostError as error:
            self._table.broken = str(error)
        except Exception as error:  # what other machines say may be anything
            self._table.broken = f"what the machine says cannot be read ({error!r})"
        finally:
            self._table.close()

    def _tell(self, row: MonitorRow) -> None:
        """Nobody depends on it: what cannot be written is left out."""
        if self._now is None:
            return
        with contextlib.suppress(OSError):
            partial = self._now.with_suffix(_NEW)
            partial.write_text(json.dumps(row), encoding="utf-8")
            partial.replace(self._now)

    def _row(self) -> MonitorRow:
        before, self._last = self._last, self._look()
        if self._others is not None:
            self._others.look(spent(before, self._last))
        span_s = max(self._last.at_ns - before.at_ns, 1) / 1e9
        row: MonitorRow = {"at_ns": self._last.at_ns, "interval_ns": round(span_s * 1e9)}
        for number, (busy, steal) in shares(before, self._last).items():
            row |= {f"cpu{number}_busy": busy, f"cpu{number}_steal": steal}
        for name, total in self._last.totals.items():
            grown = total - before.totals.get(name, total)
            row[name] = min(grown / span_s, 1.0) if name.startswith("psi_") else grown
        momentary = dict(self._last.now) | {name: gauge() for name, gauge in self._gauges.items()}
        for name, value in momentary.items():
            if value is not None:
                self._note(name, value)
        return row | momentary

    def _note(self, name: str, value: float) -> None:
        total, count, least, largest = self._seen.get(name, [0, 0, value, value])
        self._seen[name] = [total + value, count + 1, min(least, value), max(largest, value)]


def shares(before: Counters, after: Counters) -> dict[int, tuple[float, float]]:
    """Of each CPU that was there both times: the share of the time between that it was busy, and stolen.

    The kernel counts in ticks of 10 ms, so a share may be off by that over the time between.
    """
    span_s = max(after.at_ns - before.at_ns, 1) / 1e9
    return {
        cpu: (
            min((after.busy_s[cpu] - before.busy_s[cpu]) / span_s, 1.0),
            min((after.steal_s[cpu] - before.steal_s[cpu]) / span_s, 1.0),
        )
        for cpu in after.busy_s
        if cpu in before.busy_s
    }
