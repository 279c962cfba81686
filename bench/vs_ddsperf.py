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

from pairs import Figures, compare
from round_trips import BOUNDS, QUANTILES, add_options, of_rtmeter, per_run, settings

DDSPERF_LINE = re.compile(r"50% (?P<p50>[\d.]+)us .*99% (?P<p99>[\d.]+)us .*cnt (?P<count>\d+)")
SAMPLE_BYTES = 512  # of which 500 are payload: ddsperf counts its sequence number, key and length too
RECEIVE = {"waitset": "spin", "listener": "listener"}
"""ddsperf's words, and rtmeter's: in ddsperf too a thread of its own waits in the wait-set."""
SETTINGS = '<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>'
ENVIRONMENT = os.environ | {"CYCLONEDDS_URI": SETTINGS}


def of_ddsperf(args: argparse.Namespace) -> Figures:
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
    return per_run([{name: 2_000 * float(match[name]) for name in QUANTILES} for match in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--receive", choices=list(RECEIVE), default="waitset")
    add_options(parser)
    args = parser.parse_args()
    compare(
        "vs_ddsperf",
        args,
        BOUNDS,
        lambda: of_rtmeter(args, "cyclonedds", ENVIRONMENT, {}, "--receive", RECEIVE[args.receive]),
        lambda: of_ddsperf(args),
        their_name="ddsperf",
        what="round trip",
        settings=f"{args.receive}, {settings(args)}",
    )


if __name__ == "__main__":
    main()
