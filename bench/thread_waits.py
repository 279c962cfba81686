"""Does the measured thread wait for the middleware's threads? Counts it, release by release, from the
kernel's own record of who ran: nothing is timed, so that a busy or a virtual machine tells it too.

    sudo .venv/bin/python bench/thread_waits.py [--adapter rcl] [--policy rr] [--nodes 30]

A probe wakes up beside a node (`before: init_and_node`) while other nodes come and go in its domain, which
gives the middleware's threads work. docs/middleware-threads.md says what the counts mean.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import machine_line
from kernel_trace import Trace, UnavailableError, Waits, waits_in
from rtmeter.measure.probe.probes import find_probes

PERIOD_NS = 250_000
STAY_NS = 100_000_000
"""How long a node stays."""
PRIORITY, BELOW = 80, 70

Config = dict[str, Any]


def variants(policy: str, cpu: int, other: int) -> dict[str, Config]:
    """What the middleware's threads run as; the measured thread is the same in all, on CPU ``cpu``."""
    measured: Config = {"scheduling": {"policy": policy, "priority": PRIORITY}, "cpus": [cpu]}
    inherited = measured | {"apply": "before_init"}
    return {
        f"{policy}:{PRIORITY}, as it": inherited,
        f"{policy}:{BELOW}": inherited | {"child_threads": {"policy": policy, "priority": BELOW}},
        "other": measured | {"apply": "after_init"},
        f"{policy}:{PRIORITY}, another CPU": inherited | {"child_cpus": [other]},
    }


def start(probe: Path, config: Config, stem: Path) -> subprocess.Popen[str]:
    """A probe of spec/probe.md."""
    settings = stem.with_suffix(".json")
    settings.write_text(json.dumps({"version": 1, "log": str(stem.with_suffix(".rtlog"))} | config))
    return subprocess.Popen([probe, "--config", settings], stdout=subprocess.PIPE, text=True)


@contextmanager
def measuring(probe: Path, config: Config, stem: Path) -> Iterator[Config]:
    """A probe that measures until it is told to end; gives what it says when it begins."""
    with start(probe, config, stem) as measured:
        assert measured.stdout is not None
        rest = threading.Thread(target=measured.stdout.read)
        try:
            events = (json.loads(line) for line in measured.stdout)
            ready = next((e for e in events if e["event"] in ("ready", "error")), {"event": "no word"})
            if ready["event"] != "ready":
                raise RuntimeError(f"the probe does not begin: {ready}")
            rest.start()
            yield ready
        finally:
            measured.terminate()  # it takes its shared memory with it
            try:
                measured.wait(60)
            except subprocess.TimeoutExpired:
                measured.kill()
            if rest.is_alive():
                rest.join()


def count(adapter: str, variant: Config, other: int, nodes: int) -> tuple[Waits, list[Config]]:
    """The counts of one run while so many nodes come and go, and the middleware's threads."""
    probe = find_probes()[adapter]
    with_node = {"measurement": "wakeup", "before": "init_and_node", "session": f"waits-{uuid.uuid4()}"}
    measured = with_node | variant | {"period_ns": PERIOD_NS, "samples": 10**8}
    passing = with_node | {"period_ns": STAY_NS, "samples": 1, "cpus": [other]}
    with tempfile.TemporaryDirectory() as name, Trace() as trace:
        folder = Path(name)
        with measuring(probe, measured, folder / "measured") as ready:
            threads = [thread for thread in ready["threads"] if thread["role"] == "middleware"]
            tids = [thread["tid"] for thread in threads]
            trace.record(ready["pid"], tids)
            waits = Waits()
            for number in range(nodes):
                with start(probe, passing, folder / f"node-{number}") as node:
                    node.communicate()
                if node.returncode != 0:
                    raise RuntimeError(f"a node ended with {node.returncode}")
                waits += waits_in(trace.events(), ready["pid"], tids, variant["cpus"][0])
    return waits, threads


def two_cpus() -> tuple[int, int]:
    """One to measure on and one for everything else."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise UnavailableError("two CPUs are needed: one to measure on, one for everything else")
    return usable[-1], usable[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adapter", default="rcl", choices=["rcl", "ros2"])
    parser.add_argument("--policy", default="rr", choices=["rr", "fifo"])
    parser.add_argument("--nodes", type=int, default=30, help="how many come and go in each run")
    args = parser.parse_args()
    if args.adapter not in find_probes():
        sys.exit(f"the adapter {args.adapter} is not built here: see rtmeter adapters")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that tracefs is left as it was
    print(machine_line())
    print(
        f"\n{args.adapter}, {args.nodes} nodes come and go; the measured thread is {args.policy}:{PRIORITY}"
    )
    print("\n| its middleware's threads | releases | pre-empted | slept | ran on | came to run elsewhere |")
    print("|---|---:|---:|---:|---:|---:|")
    try:
        cpu, other = two_cpus()
        for name, variant in variants(args.policy, cpu, other).items():
            waits, _ = count(args.adapter, variant, other, args.nodes)
            numbers = (waits.releases, waits.preempted, waits.slept, waits.ran_on, waits.elsewhere)
            row = " | ".join([name, *(f"{number:,}" for number in numbers)])
            gaps = f" {waits.gaps} gaps in the record" if waits.gaps else ""
            print(f"| {row} |{gaps}", flush=True)
    except (UnavailableError, RuntimeError) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
