"""A day at 1 kHz through the null adapter: the probe's memory, and the size of its log.

Real wake-up delays are measured first (posix, two minutes by default) and replayed as the script, so that
the log holds what a real day would. Bounds: resident memory flat after the start and at most 64 MiB; at
most 3 bytes a value in the log of the real run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from common import ROOT, machine_line, save

BIN = Path(sys.executable).parent
DAY = 86_400_000
COLUMNS = 4  # of a wake-up log: release, wake, free, status


def find_probe(name: str) -> Path:
    """The probe that `rtmeter` itself would start."""
    listed = subprocess.run(
        [BIN / "rtmeter", "adapters", "--json"], check=True, capture_output=True, text=True
    )
    probes = {adapter["name"]: adapter["path"] for adapter in json.loads(listed.stdout)["adapters"]}
    return Path(probes[name])


def real_delays(folder: Path, seconds: int, script: Path) -> float:
    """Measures wake-ups on posix, writes their delays as a script, and returns the log's bytes a value."""
    cell = folder / "real"
    command = [BIN / "rtmeter", "measure", "wakeup", "--adapter", "posix", "--period", "1ms"]
    command += ["--duration", f"{seconds}s", "--warm-up", "0", "--keep-log", "--out", cell]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=seconds + 60)
    rows = pq.read_table(cell / "samples.parquet")
    delays = rows["wake_ns"].to_numpy() - rows["release_ns"].to_numpy()
    script.write_text("wake_delay_ns\n" + "\n".join(map(str, delays)) + "\n")
    return (cell / "probe.rtlog").stat().st_size / (rows.num_rows * COLUMNS)


def resident_kib(pid: int) -> int | None:
    """VmRSS of a process, None once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) if lines else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=DAY)
    parser.add_argument("--real-seconds", type=int, default=120)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        folder = Path(name)
        script, log, config = folder / "delays.csv", folder / "day.rtlog", folder / "config.json"
        real_bytes_a_value = real_delays(folder, args.real_seconds, script)
        settings = {"measurement": "wakeup", "period_ns": 1_000_000, "samples": args.samples}
        settings |= {"version": 1, "log": str(log), "options": {"script": str(script)}}
        config.write_text(json.dumps(settings))

        start = time.monotonic()
        command = [find_probe("null"), "--config", config]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as probe:
            resident: list[int] = []
            while probe.poll() is None:
                kib = resident_kib(probe.pid)
                resident += [] if kib is None else [kib]
                time.sleep(0.1)
        seconds = time.monotonic() - start
        assert probe.returncode == 0, f"the probe ended with {probe.returncode}"
        day_bytes_a_value = log.stat().st_size / (args.samples * COLUMNS)

    warm = resident[len(resident) // 10 :]  # the first tenth is the start
    result = {
        "samples": args.samples,
        "seconds": seconds,
        "resident_after_start_kib": warm[0],
        "resident_max_kib": max(resident),
        "resident_growth_kib": max(warm) - warm[0],
        "bytes_a_value_day": day_bytes_a_value,
        "bytes_a_value_real": real_bytes_a_value,
    }
    print(machine_line())
    print(f"\n{args.samples:,} releases from the null adapter in {seconds:.0f} s\n")
    print("| figure | value | bound |\n|---|---|---|")
    print(f"| resident memory, largest | {max(resident) / 1024:.1f} MiB | 64 MiB |")
    print(f"| growth after the first tenth of the run | {max(warm) - warm[0]} KiB | flat |")
    print(f"| log, a value, real wake-ups | {real_bytes_a_value:.2f} B | 3 B |")
    print(f"| log, a value, the day | {day_bytes_a_value:.2f} B | 3 B |")
    print(f"\n{save('probe_24h', result)}")


if __name__ == "__main__":
    main()
