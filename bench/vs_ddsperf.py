"""rtmeter's Cyclone DDS round trip beside `ddsperf ping` and `pong`, in interleaved pairs.

Both: 512 bytes on the wire's sample (500 of payload), best effort, keep last 1, UDP over loopback by the
same CYCLONEDDS_URI, wait-set or listener alike, client and server on one CPU each, all threads fifo. ddsperf
prints half of its round trips, per second, by the wall clock: they are doubled here, and rtmeter's quantiles
are taken per second too; a run's figure is the median over its seconds, the first one left out.
Pairs are added until both bounds are shown or the limit is reached (see vs_cyclictest.py).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from common import Ratio, machine_line, save

BOUNDS = {"p50": 1.05, "p99": 1.05}
SHARES = {"p50": 0.50, "p99": 0.99}
DDSPERF_LINE = re.compile(r"50% (?P<p50>[\d.]+)us .*99% (?P<p99>[\d.]+)us .*cnt (?P<count>\d+)")
SAMPLE_BYTES, PAYLOAD_BYTES = 512, 500  # ddsperf counts its sequence number, key and length too
SETTINGS = '<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>'
ENVIRONMENT = os.environ | {"CYCLONEDDS_URI": SETTINGS}
Quantiles = dict[str, float]


def per_run(seconds: list[Quantiles]) -> Quantiles:
    """The median over the seconds of a run, the first left out."""
    return {name: float(np.median([second[name] for second in seconds[1:]])) for name in SHARES}


def of_ddsperf(args: argparse.Namespace) -> Quantiles:
    """One run of ddsperf: its round trips in nanoseconds."""
    common = ["chrt", "--fifo", str(args.priority), "ddsperf", "-i", "83", "-u"]
    pong = [
        "taskset",
        "--cpu-list",
        str(args.server_cpu),
        *common,
        "-D",
        str(args.seconds + 4),
        "pong",
        args.receive,
    ]
    ping = ["taskset", "--cpu-list", str(args.cpu), *common, "-D", str(args.seconds + 1)]
    ping += ["ping", f"{args.rate_hz}Hz", "size", str(SAMPLE_BYTES), args.receive]
    with subprocess.Popen(pong, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as server:
        try:
            done = subprocess.run(ping, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        finally:
            server.terminate()
    found = [match for line in done.stdout.splitlines() if (match := DDSPERF_LINE.search(line))]
    return per_run([{name: 2_000 * float(match[name]) for name in SHARES} for match in found])


def of_rtmeter(args: argparse.Namespace) -> Quantiles:
    """One run of rtmeter: its round trips in nanoseconds."""
    options = {
        "adapter": "cyclonedds",
        "option": f"receive={args.receive}",
        "period": f"{1e6 / args.rate_hz:.0f}us",
        "duration": f"{args.seconds}s",
        "warm-up": "0",
        "payload": f"{PAYLOAD_BYTES}B",
        "scheduling": f"fifo:{args.priority}",
        "affinity": str(args.cpu),
        "server-affinity": str(args.server_cpu),
    }
    with tempfile.TemporaryDirectory() as folder:
        cell = Path(folder) / "cell"
        command = [str(Path(sys.executable).parent / "rtmeter"), "measure", "roundtrip", "--wait"]
        command += ["--out", str(cell)]
        command += [part for key, value in options.items() for part in (f"--{key}", value)]
        subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
        rows = pq.read_table(cell / "samples.parquet", columns=["release_ns", "sent_ns", "received_ns"])
    release, sent, received = (rows[name].to_numpy(zero_copy_only=False) for name in rows.column_names)
    seconds = (release - release[0]) // 1_000_000_000
    trips = [(received - sent)[(seconds == k) & np.isfinite(received)] for k in range(args.seconds)]
    return per_run(
        [{n: float(np.quantile(t, p, method="inverted_cdf")) for n, p in SHARES.items()} for t in trips]
    )


def print_table(args: argparse.Namespace, judged: dict[str, Ratio]) -> None:
    print(f"\n\n{machine_line()}")
    print(f"{args.receive}, fifo:{args.priority}, {args.rate_hz} Hz, {args.seconds} s a run\n")
    print("| round trip | rtmeter, us | ddsperf, us | ratio | 95 % interval | bound | pairs | |")
    print("|---|---|---|---|---|---|---|---|")
    for name, r in judged.items():
        figures = f"{r.ours / 1e3:.1f} | {r.theirs / 1e3:.1f} | {r.ratio:.3f} | {r.low:.3f} to {r.high:.3f}"
        print(f"| {name} | {figures} | {r.bound} | {r.pairs} | {r.outcome} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=6, help="a run")
    parser.add_argument("--rate-hz", type=int, default=1000)
    parser.add_argument("--receive", choices=["waitset", "listener"], default="waitset")
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--cpu", type=int, default=1, help="the client's")
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--least-pairs", type=int, default=20)
    parser.add_argument("--most-pairs", type=int, default=100)
    args = parser.parse_args()

    pairs: list[tuple[Quantiles, Quantiles]] = []
    judged: dict[str, Ratio] = {}
    shown = False
    while len(pairs) < args.most_pairs and not (shown and len(pairs) >= args.least_pairs):
        if len(pairs) % 2 == 0:
            ours, theirs = of_rtmeter(args), of_ddsperf(args)
        else:
            theirs, ours = of_ddsperf(args), of_rtmeter(args)
        pairs.append((ours, theirs))
        judged = {n: Ratio.of([(o[n], t[n]) for o, t in pairs], BOUNDS[n]) for n in SHARES}
        shown = all(ratio.outcome == "shown" for ratio in judged.values())
        so_far = ", ".join(f"{name} {r.ratio:.3f} ({r.high:.3f})" for name, r in judged.items())
        print(f"\rpair {len(pairs)}: {so_far}", end="", flush=True)
    print_table(args, judged)
    ratios = {name: r.to_json() for name, r in judged.items()}
    print(f"\n{save('vs_ddsperf', {'settings': vars(args), 'ratios': ratios, 'pairs': pairs})}")


if __name__ == "__main__":
    main()
