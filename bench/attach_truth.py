"""`rtmeter attach` beside what programs record of themselves, unmodified: is each release found, how far is
its wake-up from the program's own stamp, and does a verdict come out the same?

cyclictest in its modes, and rtmeter's own probe of every adapter that is here, whose wake-ups sleep once the
middleware is initialised. Each run: the program starts, is attached to for as long as is asked, and ends; the
programs in turn until so many runs are made. What is judged is the latency over the releases that both know,
once by attach's wake-ups and once by the program's own stamps, against a deadline drawn anew for each run
from among its own latencies or above them, one in a hundred allowed to miss. Needs root.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common import machine_line, processes_of, save
from rtmeter.judge.verdict import judge
from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import SERVED, Requirement
from rtmeter.results import store
from rtmeter.results.cells import StoredCell

Ints = np.ndarray
Columns = dict[str, Ints]

PERIOD_NS = 1_000_000
BOUND_NS = 3_000
MISS_RATIO = 0.01
SETTLES_S, LIMIT_S = 0.5, 60.0
CYCLICTEST: Mapping[str, tuple[str, ...]] = {
    "cyclictest fifo:90": ("-p", "90"),
    "cyclictest": (),
    "cyclictest fifo:90 --posix_timers": ("-p", "90", "--posix_timers"),
    "cyclictest fifo:90 --relative": ("-p", "90", "--relative"),
}


@dataclass
class Told:
    """Of a program, over its runs: attach's wake-up less the program's own, ns, and what was counted."""

    apart_ns: list[Ints] = field(default_factory=list)
    runs: int = 0
    failed: int = 0
    equal: int = 0
    unknown: int = 0
    not_found: int = 0


def until(holds: Callable[[], object], what: str, of: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + LIMIT_S
    while not holds():
        if of.poll() is not None:
            raise RuntimeError(f"{what}: {of.args} ended with exit code {of.returncode}")
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {LIMIT_S:g} s")
        time.sleep(0.05)


@contextmanager
def started(command: list[str], out: Path) -> Iterator[subprocess.Popen[bytes]]:
    with out.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            yield process
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT_S)
        finally:
            process.kill()
            process.wait()


def attached(pid: int, tid: int, seconds: float, folder: Path) -> StoredCell:
    asked = f"--pid {pid} --thread {tid} --duration {seconds}s --warm-up 0s --period 1ms --judge latency"
    command = ["rtmeter", "attach", *asked.split(), "--out", str(folder / "attached")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S + seconds)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return StoredCell(folder / "attached", store.read_cell(folder / "attached"))


def rows_of(cell: Path) -> Columns:
    chunks = list(store.chunks(cell)())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def of_cyclictest(options: tuple[str, ...], seconds: float, folder: Path) -> tuple[StoredCell, Columns]:
    """Its values, cycle by cycle, have no release: beside attach's where the two are least apart, so that
    nothing is told of releases that were not found."""
    asked = ["--verbose", "--nsecs", "--threads=1", f"--interval={PERIOD_NS // 1000}"]
    command = ["cyclictest", *asked, *options]
    with started(command, folder / "own.txt") as process:
        tasks = Path(f"/proc/{process.pid}/task")
        until(lambda: len(list(tasks.iterdir())) == 2, "cyclictest's thread", process)
        [tid] = {int(path.name) for path in tasks.iterdir()} - {process.pid}
        time.sleep(SETTLES_S)
        cell = attached(process.pid, tid, seconds, folder)
    cycles = re.findall(r"^ *0: *(\d+): *(\d+)$", (folder / "own.txt").read_text(), re.M)
    if len({number for number, _ in cycles}) < len(cycles):
        raise RuntimeError("cyclictest ran ahead of its own timer, and shows what is below nothing as 0")
    own_ns = np.array([int(value) for _, value in cycles])
    rows = rows_of(cell.folder)
    served = rows["status"] == SERVED
    releases, latency = rows["release_ns"][served], (rows["wake_ns"] - rows["release_ns"])[served]
    windows = np.lib.stride_tricks.sliding_window_view(own_ns, len(latency))
    at = int(np.argmin(np.abs(windows - latency).mean(axis=1)))
    return cell, {"release_ns": releases, "wake_ns": releases + windows[at]}


def of_probe(adapter: str, seconds: float, folder: Path) -> tuple[StoredCell, Columns]:
    own = folder / "own"
    before = "none" if adapter == "posix" else "init"
    asked = f"wakeup --adapter {adapter} --before {before} --period 1ms --duration 1h --warm-up 0s"
    command = ["rtmeter", "measure", *asked.split(), "--scheduling", "fifo:80", "--monitor", "0"]
    with started([*command, "--out", str(own)], folder / "own.txt") as front:
        until(lambda: processes_of(front.pid), f"the probe of {adapter}", front)
        until((folder / "own.partial" / store.CLIENT_LOG).exists, f"the log of {adapter}", front)
        time.sleep(SETTLES_S)
        (probe,) = processes_of(front.pid).values()
        cell = attached(probe, probe, seconds, folder)
    return cell, rows_of(own)


def compare(told: Told, cell: StoredCell, own: Columns, draw: random.Random) -> None:
    rows = rows_of(cell.folder)
    known = np.isin(rows["release_ns"], own["release_ns"])
    inside = (own["release_ns"] >= rows["release_ns"][0]) & (own["release_ns"] <= rows["release_ns"][-1])
    told.runs += 1
    told.unknown += int(cell.record.counters["unknown"])
    told.not_found += int((~np.isin(own["release_ns"][inside], rows["release_ns"])).sum())
    stamps = dict(zip(own["release_ns"].tolist(), own["wake_ns"].tolist(), strict=True))
    served = known & (rows["status"] == SERVED)
    wakes = np.array([stamps[int(release)] for release in rows["release_ns"][served]])
    told.apart_ns.append(wakes - rows["wake_ns"][served])
    latencies = wakes - rows["release_ns"][served]
    deadline_ns = int(np.quantile(latencies, draw.uniform(0.5, 1)) * draw.choice((1, 1, 2, 5)))
    requirement = Requirement(deadline_ns=deadline_ns, miss_ratio=MISS_RATIO, confidence=0.95)
    verdicts = []
    for stamped in (rows["wake_ns"][served], wakes):
        columns = {name: values[served] for name, values in rows.items()} | {"wake_ns": stamped}
        verdicts.append(judge(cell.record.meta, lambda columns=columns: iter([columns]), requirement).outcome)
    told.equal += verdicts[0] == verdicts[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("only", nargs="*", help="names as in the table; all when left out")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    programs: dict[str, Callable[[Path], tuple[StoredCell, Columns]]] = {
        name: lambda folder, options=options: of_cyclictest(options, args.seconds, folder)
        for name, options in CYCLICTEST.items()
    }
    for adapter in sorted(find_probes().keys() - {"null"}):
        programs[adapter] = lambda folder, adapter=adapter: of_probe(adapter, args.seconds, folder)
    if unknown := set(args.only) - programs.keys():
        parser.error(f"{', '.join(unknown)}: choose of {', '.join(programs)}")
    programs = {name: run for name, run in programs.items() if name in (args.only or programs)}
    found = {name: Told() for name in programs}
    for number in range(args.runs):
        name = list(programs)[number % len(programs)]
        print(f"\rrun {number + 1} of {args.runs}: {name:40}", end="", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                compare(found[name], *programs[name](Path(folder)), draw)
            except RuntimeError as error:
                found[name].failed += 1
                print(f"\n{name}: {error}")
    print(f"\n\n{machine_line()}, load average {os.getloadavg()[0]:.1f}")
    print(
        "| program | runs | equal | n | p50, us | p99 of the size, us | largest, us | unknown | not found |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, told in found.items():
        if told.failed:
            print(f"| {name} | {told.failed} failed |" + " |" * 7)
        if told.runs:
            apart = np.concatenate(told.apart_ns)
            size = np.abs(apart)
            p99 = np.quantile(size, 0.99)
            figures = f"{np.median(apart) / 1e3:.2f} | {p99 / 1e3:.2f} | {size.max() / 1e3:.1f}"
            counts = f"{told.unknown} | {told.not_found}"
            print(f"| {name} | {told.runs} | {told.equal} | {len(apart):,} | {figures} | {counts} |")
    counts_of = {n: {"runs": t.runs, "equal": t.equal, "unknown": t.unknown} for n, t in found.items()}
    print(f"\nbound: p99 {BOUND_NS / 1e3:g} us")
    print(save("attach_truth", {"settings": vars(args), "found": counts_of}))


if __name__ == "__main__":
    main()
