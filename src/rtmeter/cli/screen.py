"""A running cell on a terminal: where the run stands, the distribution so far, what the machine does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from rtmeter.cli.output import microseconds
from rtmeter.live.run import RunState
from rtmeter.live.seen import CellSeen
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import Ints

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_ROWS = 12
_BAR = 40  # characters of the fullest row
_NAMES = 3  # cells to come that are named


def screen(state: RunState, console: Console) -> RenderableType:
    """All of it; in ASCII where the terminal has no more. Lines of words go on in the next one where the
    terminal is too narrow; bars are cut."""
    from rich.console import Group
    from rich.text import Text

    bar = "█" if _has_blocks(console) else "#"
    lines = [Text(line, overflow="fold") for line in _lines(state, bar)]
    if state.seen is not None:
        rows = histogram(state.seen.counts, bar)
        lines += [Text(row, overflow="crop", no_wrap=True) for row in rows]
        if machine := machine_words(state.seen.machine):
            lines.append(Text(f"machine: {machine}", overflow="fold"))
        lines += [Text(f"warning: {doubt}", style="yellow", overflow="fold") for doubt in state.seen.doubts]
    return Group(*lines)


def _has_blocks(console: Console) -> bool:
    """Whether the terminal shows more than ASCII. Python writes UTF-8 also where LC_ALL asks for C."""
    plain = os.environ.get("LC_ALL", "") in ("C", "POSIX")
    return console.encoding.lower().startswith("utf") and not plain


def _lines(state: RunState, bar: str) -> Iterator[str]:
    tally = Counter(sorted(state.done.values()))
    done = ", ".join(f"{count} {outcome}" for outcome, count in tally.items())
    total = len(state.done) + len(state.to_come) + len(state.begun)
    yield f"{state.name}: {len(state.done)} of {total} cells done{f' ({done})' if done else ''}{_left(state)}"
    if state.to_come:
        yield f"to come: {_named(state.to_come)}"
    if state.beside:
        yield f"measured at the same time: {_named(state.beside)}"
    if state.running is None:
        return
    seen = state.seen
    if seen is None:
        yield f"{state.running}: starts"
        return
    if not seen.planned:
        yield f"{state.running}: {seen.settled:,} releases so far"
        yield from _values(seen)
        return
    filled = round(24 * seen.share)
    empty = " " if bar == "#" else "░"
    yield f"{state.running}: [{bar * filled}{empty * (24 - filled)}] {seen.share:.0%} of {seen.planned:,}"
    yield from _values(seen)


def _values(seen: CellSeen) -> Iterator[str]:
    values = {"now": seen.last_ns, "p99.9": seen.p99_9_ns, "max": seen.max_ns}
    words = "  ".join(f"{name} {microseconds(value)}" for name, value in values.items())
    yield f"{seen.quantity.replace('_', ' ')}, us, as served: {words}"
    ends = {"served": seen.served, "skipped": seen.skipped, "lost": seen.lost}
    words = "  ".join(f"{name} {count:,}" for name, count in ends.items())
    if seen.late is not None and seen.deadline_ns is not None:
        words += f"  later than {microseconds(seen.deadline_ns)} us: {seen.late:,}"
    yield words


def histogram(counts: Ints, bar: str) -> Iterator[str]:
    """A line for each of at most a dozen stretches of equal ratio, from the lowest value to the highest:
    where it begins in us, how many values, and a bar by the logarithm of that."""
    occupied = np.flatnonzero(counts)
    if not len(occupied):
        return
    first, last = int(occupied[0]), int(occupied[-1])
    edges = np.unique(np.linspace(first, last + 1, min(_ROWS, last - first + 1) + 1).round().astype(int))
    sums = np.add.reduceat(counts[: last + 1], edges[:-1])
    lengths = np.log10(np.maximum(sums, 1)) + (sums > 0)
    scale = _BAR / max(float(lengths.max()), 1.0)
    for edge, count, length in zip(edges[:-1], sums, lengths, strict=True):
        at = microseconds(int(bins.FIRST_NS[edge]))
        yield f"{at:>12} {count:>12,} {bar * round(length * scale)}".rstrip()


def machine_words(machine: Mapping[str, float]) -> str:
    """The last sample of the machine in a line; empty without one."""
    busy = [value for name, value in machine.items() if name.endswith("_busy")]
    words = [f"CPUs busy {' '.join(f'{value:.0%}' for value in busy)}"] if busy else []
    for name, title in (("psi_cpu_some", "waiting for CPU"), ("psi_io_some", "waiting for disks")):
        if machine.get(name, 0) >= 0.005:
            words.append(f"{title} {machine[name]:.0%}")
    if "running" in machine:
        words.append(f"{machine['running']:.0f} running")
    for name, title in (("load_workers", "load workers"), ("traffic_streams", "traffic streams")):
        if name in machine:
            words.append(f"{machine[name]:.0f} {title}")
    return ", ".join(words)


def _named(cells: tuple[str, ...]) -> str:
    more = len(cells) - _NAMES
    return ", ".join(cells[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _left(state: RunState) -> str:
    return "" if state.left_ns is None else f", {timedelta(seconds=round(state.left_ns / 1e9))} left"


def line(state: RunState) -> str:
    """The same in one line, for where there is no terminal."""
    begun = len(state.done) + len(state.begun)
    place = f"[{begun}/{begun + len(state.to_come)}]"  # as `rtmeter run` counts them
    if state.running is None:
        how = "done" if not state.to_come else "ended" if state.ended else "nothing runs"
        return f"{place} {state.name}: {how}"
    if state.beside:
        return f"{place} measured: {_named(state.begun)}"
    if state.seen is None:
        return f"{place} {state.running}: starts"
    seen = state.seen
    late = "" if seen.late is None else f", {seen.late:,} late"
    ends = "".join(f", {n:,} {end}" for end, n in (("lost", seen.lost), ("skipped", seen.skipped)) if n)
    share = f"{seen.share:.0%}" if seen.planned else f"{seen.settled:,} releases"
    rest = _left(state) if seen.planned else ""
    words = f"{share}, max {microseconds(seen.max_ns)} us{late}{ends}{rest}"
    return "; ".join((f"{place} {state.running}: {words}", *seen.doubts))
