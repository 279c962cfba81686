"""Does a round trip of any length take the same memory? Resident memory of client, server and front while
it runs, after the first fifth and at its largest. Twelve hours at 10 ms are 4,320,000 pings.

    .venv/bin/python bench/trip_memory.py --seconds 120 fastdds cyclonedds posix
    .venv/bin/python bench/trip_memory.py --option transport=udp ecal
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from common import ROOT, machine_line, processes_of, save
from probe_24h import resident_kib

PERIOD_US = 500


def watch(adapter: str, seconds: int, options: list[str]) -> dict[str, list[int]]:
    """Role → resident memory in KiB, twice a second while pings are sent."""
    seen: dict[str, list[int]] = {"client": [], "server": [], "front": []}
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        command = [sys.executable, "-m", "rtmeter", "measure", "roundtrip", "--adapter", adapter]
        command += ["--period", f"{PERIOD_US}us", "--duration", f"{seconds}s", "--out", f"{name}/cell"]
        command += [part for option in options for part in ("--option", option)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ) as front:
            while front.poll() is None:
                probes = processes_of(front.pid)
                if len(probes) == 2:
                    for role, pid in (probes | {"front": front.pid}).items():
                        kib = resident_kib(pid)
                        seen[role] += [] if kib is None else [kib]
                time.sleep(0.5)
        assert front.returncode == 0, f"it ended with {front.returncode}"
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("adapters", nargs="*", default=["fastdds", "cyclonedds", "posix"])
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--option", action="append", default=[], help="of the adapters, KEY=VALUE")
    args = parser.parse_args()
    print(machine_line())
    print(f"\n{args.seconds * 1_000_000 // PERIOD_US:,} pings every {PERIOD_US} us", *args.option, end="\n\n")
    print("| adapter | process | after the first fifth | largest | growth |\n|---|---|---|---|---|")
    result = {}
    for adapter in args.adapters:
        for role, kib in watch(adapter, args.seconds, args.option).items():
            warm = kib[len(kib) // 5 :]
            result[f"{adapter} {role}"] = {"warm_kib": warm[0], "max_kib": max(warm)}
            growth = f"{max(warm) - warm[0]} KiB"
            print(
                f"| {adapter} | {role} | {warm[0] / 1024:.1f} MiB | {max(warm) / 1024:.1f} MiB | {growth} |"
            )
    print(f"\n{save('trip_memory', result)}")


if __name__ == "__main__":
    main()
