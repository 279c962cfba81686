"""What an archive of a fleet costs: a made-up one of `rigs` x `days` cells, its size, how long answers take.

    bench/fleet.py --rigs 1000 --days 200 [--keep FOLDER]

Each cell has 60,000 releases in some 250 bins, drawn anew. A new kernel on day `days - 10` makes one rig of a
hundred slower by 10 %; another tenth of the rigs gets it too, and nothing comes of it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import betaincinv

from rtmeter.archive.schema import CELLS, DISTRIBUTIONS, MAXIMA, SCHEMAS
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.statistics.fixed_bins import bin_numbers, edges

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
N, DAYS_A_BATCH = 60_000, 10
NEW, OLD = "6.12.9", "6.12.8"
PERCENTS = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p99_9_ns": 0.999, "p99_99_ns": 0.9999}


def shares() -> tuple[np.ndarray, np.ndarray]:
    """Bins of a skewed body and a heavy tail, and the share of each."""
    random = np.random.default_rng(1)
    body = random.lognormal(np.log(50_000), 0.25, 2_000_000)
    tail = 100_000 * (1 + random.pareto(3, 10_000))
    bins, counts = np.unique(bin_numbers(np.r_[body, tail].astype(np.int64)), return_counts=True)
    return bins, counts / counts.sum()


def write(archive: Archive, rigs: int, days: int) -> None:
    """The cells, ten days a commit."""
    random = np.random.default_rng(2)
    bins, share = shares()
    offset = random.integers(-32, 32, rigs)  # a rig is up to 1.4 times as slow as another
    archive.make()
    for first in range(0, days, DAYS_A_BATCH):
        part = range(first, min(first + DAYS_A_BATCH, days))
        batch(archive, random, bins, share, offset, list(part), days)


def batch(archive, random, bins, share, offset, part, days) -> None:  # type: ignore[no-untyped-def]
    rigs, own = len(offset), uuid.uuid4().hex
    rig, day = np.repeat(np.arange(rigs), len(part)), np.tile(part, rigs)
    counts = random.multinomial(N, share, size=len(rig))
    newer = (day >= days - 10) & (rig % 10 == 0)
    slower = np.where((day >= days - 10) & (rig % 100 == 0), 9, 0)  # 64 log2(1.1)
    shift = offset[rig] + slower
    there = counts > 0
    sizes = there.sum(axis=1)
    numbers = (bins[None, :] + shift[:, None])[there].astype(np.int32)
    reached = np.cumsum(counts, axis=1)
    lower = np.array([edges(int(number))[0] for number in range(bins[0] - 64, bins[-1] + 66)])

    def at(places: np.ndarray) -> np.ndarray:
        found = bins[places] + shift - (bins[0] - 64)
        low, high = lower[found], lower[found + 1]
        return (low + (high - low) * random.random(len(low)) * 0.999).astype(np.int64)

    last = counts.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    values = {name: at((reached < np.ceil(p * N)[None]).sum(axis=1)) for name, p in PERCENTS.items()}
    values |= {"p99_999_ns": at(last), "min_ns": at(np.argmax(there, axis=1)), "max_ns": at(last)}
    values["max_ns"] = np.maximum(values["max_ns"], values["p99_999_ns"])
    measured = [FIRST + timedelta(days=int(d)) for d in day]
    size = len(rig)
    identity = [uuid.UUID(bytes=random.bytes(16)).hex for _ in range(size)]
    settings = json.dumps({"cpus": [1], "scheduling": {"policy": "fifo", "priority": 80}, "drive": "spin"})
    same = {"batch": own, "campaign": "nightly", "name": "loop", "id": "loop", "status": "complete"}
    same |= {"measurement": "wakeup", "adapter": "posix", "quantity": "latency", "cpu_model": "Cortex-A72"}
    same |= {"middleware": "Linux", "middleware_version": "1", "rtmeter": "0.1.0", "settings": settings}
    same |= {"valid": True, "repeat": 1, "period_ns": 10**6, "deadline_ns": 10**6, "miss_ratio": 1e-3}
    same |= {"confidence": 0.95, "horizon": 10.0, "criticality": "firm", "n": N, "lost": 0}
    same |= {"design_effect": 1.0, "skipped": 0, "causes": 0, "findings": 0}
    same |= {"blocks": 1, "block": 0, "reason": "0 of 60,000 releases missed the deadline of 1 ms on latency"}
    columns: dict[str, object] = {name: pa.array([value] * size) for name, value in same.items()}
    columns |= {name: pa.array(of) for name, of in values.items()}
    columns |= {"cell": pa.array(identity), "rig": pa.array([f"rig-{one:04}" for one in rig])}
    columns |= {"measured": measured, "started": measured, "added": measured, "bins": pa.array(sizes)}
    columns |= {"kernel": pa.array(np.where(newer, NEW, OLD).tolist()), "max_at_k": pa.array(last)}
    columns["labels"] = pa.array(
        [[("site", f"s{one % 7}")] for one in rig], SCHEMAS[CELLS].field("labels").type
    )
    late = bins[None, :] + shift[:, None] > bin_numbers(np.array([10**6]))[0]
    misses = (counts * late).sum(axis=1)
    lower, upper = betaincinv(misses, N - misses + 1, 0.05), betaincinv(misses + 1, N - misses, 0.95)
    outcomes = np.select([lower > 1e-3, upper <= 1e-3], ["fail", "pass"], "inconclusive")
    columns |= {"late": pa.array(misses), "misses": pa.array(misses), "upper": pa.array(upper)}
    columns["outcome"] = pa.array(outcomes.tolist())
    times = counts[there]
    pairs = pa.StructArray.from_arrays([pa.array(numbers), pa.array(times)], ["bin", "count"])
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
    columns["counts"] = pa.ListArray.from_arrays(pa.array(offsets), pairs)
    for name in (DISTRIBUTIONS, MAXIMA, CELLS):
        schema = SCHEMAS[name]
        nothing = pa.nulls(size)
        parts = [
            pa.array(columns.get(f.name, nothing)).cast(f.type)
            if f.name != "counts"
            else columns[f.name].cast(f.type)
            for f in schema
        ]
        archive.append(name, pa.table(parts, schema=schema))


def timed(what: str, call: Callable[[], object]) -> object:
    began, used = time.monotonic(), time.process_time()
    found = call()
    took = f"{time.monotonic() - began:.1f} s, {time.process_time() - used:.1f} s of processor time"
    print(f"{what}: {took}", flush=True)
    return found


def command(what: str, *words: str) -> None:
    """A command in a process of its own, with its time and its memory."""
    program = "import resource, sys\nfrom rtmeter import cli\ncode = cli.invoke(sys.argv[1:])\n"
    program += "used = resource.getrusage(resource.RUSAGE_SELF)\n"
    program += "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program, "archive", *words], capture_output=True, text=True)
    *_, processor, kibibytes = done.stderr.split()
    took = f"{time.monotonic() - began:.1f} s, {float(processor):.1f} s of processor time"
    beside = f"load average {os.getloadavg()[0]:.1f}"
    print(f"{what}: {took}, {int(kibibytes) // 1024:,} MiB; {beside}", flush=True)
    for line in done.stdout.splitlines()[:4]:
        print(f"    {line[:150]}")


def results(folder: Path, cells: int) -> None:
    """Results of so many cells on disk, of 2,000 releases each."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from synthetic import Made, usual, write_cell

    one = write_cell(folder.parent / "one", Made(id="one", samples=2_000, delays=usual(1, 50)))
    record = json.loads((one / "cell.json").read_text())
    for number in range(cells):
        copy = folder / f"cell{number}"
        copy.mkdir(parents=True)
        shutil.copy(one / "samples.parquet", copy)
        (copy / "cell.json").write_text(json.dumps(record | {"id": f"cell{number}"}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rigs", type=int, default=1000)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.keep or Path(made)
        archive = archive_at(folder / "archive")
        cells = asked.rigs * asked.days
        if not (folder / "archive").exists():
            timed(f"{cells:,} cells written", lambda: write(archive, asked.rigs, asked.days))
        size = sum(file.stat().st_size for file in Path(archive.url).rglob("*") if file.is_file())
        print(f"on disk: {size / 2**20:,.0f} MiB, {size / cells:,.0f} bytes a cell")
        since = f"{(FIRST + timedelta(days=max(0, asked.days - 365))):%Y-%m-%d}"
        command("trend", "trend", archive.url)
        command("regressions", "regressions", archive.url)
        command(
            "a year of one site's kernel",
            "merge",
            archive.url,
            "--by",
            "kernel",
            "--where",
            "label:site=s3",
            "--since",
            since,
        )
        command(
            "a year of ten rigs",
            "sql",
            "SELECT rig, count(*), max(max_ns) FROM cells WHERE rig < 'rig-0010' "
            f"AND measured >= '{since}' GROUP BY rig",
            archive.url,
        )
        results(Path(made) / "results", 1000)
        command("1,000 cells added", "add", str(Path(made) / "results"), "--to", archive.url)
        command("1,000 cells added again", "add", str(Path(made) / "results"), "--to", archive.url)
        samples = ["--to", archive.url, "--with-samples"]
        command("their samples taken along", "add", str(Path(made) / "results"), *samples)
        command("check", "check", archive.url)
        command("prune", "prune", archive.url)
    print(f"generator: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB")


if __name__ == "__main__":
    main()
