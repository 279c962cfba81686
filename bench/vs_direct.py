"""rtmeter's round trip beside the smallest direct program over the same middleware (bench/direct/), in
interleaved pairs: same payload, rate, QoS, transport, policy and CPUs; both lock their memory.

None of these middlewares' packages ships a latency test: Debian's iceoryx and Fast DDS have none, and the
tools of ROS 1 and ROS 2 time no round trip. iox-roudi and rosmaster are started once, for both. What is not
built is left out, and said: ros2 needs a ROS 2 that is sourced, zenoh a build with RTMETER_ZENOH,
iceoryx2 one with RTMETER_ICEORYX2, ecal one that finds eCAL. eCAL's own latency tool times one way, by the
clock of the day.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from common import ROOT
from pairs import Figures, compare
from round_trips import BOUNDS, add_options, of_rtmeter, per_run, per_second, settings
from rtmeter.measure.probe.probes import find_probes

MIDDLEWARES: dict[str, dict[str, str]] = {
    "ecal": {"transport": "shm"},
    "ecal-udp": {"transport": "udp"},
    "fastdds": {"transport": "udp"},
    "fastdds3": {"transport": "udp"},
    "iceoryx": {},
    "iceoryx2": {},
    "lcm": {},
    "ros1": {"transport": "tcp_nodelay"},
    "ros2": {"executor": "single_threaded"},
    "zenoh": {"transport": "tcp", "via": "peer"},
}
"""The adapter, and after a dash a variant of it; its options, which the direct program has as DIRECT_KEY."""


def adapter_of(middleware: str) -> str:
    return middleware.partition("-")[0]


def receive_of(middleware: str) -> str:
    """A thread of its own that waits, or where there is none to be had the middleware's."""
    return "listener" if adapter_of(middleware) == "ecal" else "spin"


@contextmanager
def daemon(middleware: str) -> Iterator[dict[str, str]]:
    """The environment with the daemon that the middleware needs, running."""
    options = {f"DIRECT_{key.upper()}": value for key, value in MIDDLEWARES[middleware].items()}
    environment = dict(os.environ) | options
    if middleware == "iceoryx":
        command = ["iox-roudi", "--log-level", "error"]
    elif middleware == "ros1":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment |= {"ROS_MASTER_URI": f"http://127.0.0.1:{port}", "ROS_IP": "127.0.0.1"}
        command = ["rosmaster", "--core", "-p", str(port)]
    else:
        yield environment
        return
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment) as process:
        try:
            time.sleep(3)  # neither says when it is ready to a program
            yield environment
        finally:
            process.terminate()


def program_of(middleware: str) -> Path:
    """The direct program, which lies in the build that the adapter's probe is of."""
    adapter = adapter_of(middleware)
    probe = find_probes().get(adapter)
    build = probe.parents[2] if probe else ROOT / "build" / "release"
    return build / "bench" / f"rtmeter-direct-{adapter}"


def of_direct(args: argparse.Namespace, middleware: str, environment: dict[str, str]) -> Figures:
    """One run of the direct program: its round trips in nanoseconds."""
    program = str(program_of(middleware))
    real_time = ["chrt", "--fifo", str(args.priority), "taskset", "--cpu-list"]
    pings = args.seconds * args.rate_hz
    pong = [*real_time, str(args.server_cpu), program, "pong"]
    ping = [*real_time, str(args.cpu), program, "ping", f"{1e9 / args.rate_hz:.0f}", str(pings)]
    with subprocess.Popen(pong, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            done = subprocess.run(
                ping, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=300
            )
        finally:
            server.terminate()
    number, trip = np.loadtxt(done.stdout.splitlines(), dtype=np.int64).T
    return per_run(per_second(number // args.rate_hz, trip.astype(float)))


def beside(middleware: str, args: argparse.Namespace) -> None:
    options, receive = MIDDLEWARES[middleware], receive_of(middleware)
    more = ("--lock-memory", "--receive", receive)
    with daemon(middleware) as environment:
        compare(
            f"vs_direct_{middleware}",
            args,
            BOUNDS,
            lambda: of_rtmeter(args, adapter_of(middleware), environment, options, *more),
            lambda: of_direct(args, middleware, environment),
            their_name="direct program",
            what=f"{middleware} round trip",
            settings=", ".join((*options.values(), f"receive {receive}", settings(args))),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("middlewares", nargs="*", help=f"of {', '.join(MIDDLEWARES)}; all when left out")
    add_options(parser)
    args = parser.parse_args()
    for middleware in args.middlewares or MIDDLEWARES:
        if middleware not in MIDDLEWARES:
            parser.error(f"{middleware} is none of {', '.join(MIDDLEWARES)}")
        if program_of(middleware).exists():
            beside(middleware, args)
        else:
            print(f"{middleware}: left out, its direct program is not built here")


if __name__ == "__main__":
    main()
