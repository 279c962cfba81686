"""Instructions and system calls on the measured path: a release of rtmeter's beside one of cyclictest's, a
round trip beside one of ddsperf's and of the direct programs (bench/direct/). Counted: noise hides nothing.

Each program runs twice, short and long, under valgrind (callgrind, thread by thread) and under strace; what
the longer run took more, over the releases or round trips that it had more, is the cost of one. rtmeter's own
service threads (writer, supervisor) are left out; ddsperf's printing, once a second, is not: it is in its
main thread. Times mean nothing under either tool: none is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from common import machine_line, save
from rtmeter.measure.probe.probes import find_probes
from vs_ddsperf import ENVIRONMENT, SAMPLE_BYTES
from vs_direct import MIDDLEWARES, adapter_of, daemon, program_of, receive_of

PERIOD_NS = 10_000_000
SHORT, LONG = 100, 500

Command = list[str]
"""How to start a program."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to count: its command, and that of the other end of a round trip (None: it has none)."""

    name: str
    command: Callable[[int, Path], Command]
    server: Callable[[Path], Command] | None = None
    environment: Mapping[str, str] | None = None


def _ready(process: subprocess.Popen[str], name: str) -> str | None:
    """Waits until a server of rtmeter's is ready: its endpoint. Others are waited for by their clients."""
    if not name.startswith("rtmeter"):
        return None
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "ready":
            return str(event["endpoint"]) if event["endpoint"] else None
    raise RuntimeError("the server ended before it was ready")


def run(program: Program, n: int, folder: Path, under: Sequence[str]) -> None:
    """One run of the program under a tool; its server runs bare."""
    environment = dict(program.environment or os.environ)
    with ExitStack() as at_end:
        if program.server is not None:
            server = subprocess.Popen(
                program.server(folder),
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                stdin=subprocess.PIPE,
            )
            at_end.callback(server.wait)
            at_end.callback(server.send_signal, signal.SIGTERM)
            endpoint = _ready(server, program.name)
            (folder / "endpoint").write_text(endpoint or "")
        subprocess.run(
            [*under, *program.command(n, folder)],
            env=environment,
            check=True,
            capture_output=True,
            timeout=600,
        )


def instructions(program: Program, n: int) -> int:
    """Instructions of all threads but rtmeter's service threads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = f"--callgrind-out-file={folder / 'callgrind'}"
        run(
            program,
            n,
            folder,
            ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--fair-sched=yes", out],
        )
        texts = [path.read_text(errors="replace") for path in folder.glob("callgrind-*")]
        measured = [text for text in texts if "rtmeter::ServiceThread::enter(" not in text]
        return sum(int(found) for text in measured for found in re.findall(r"^totals: (\d+)", text, re.M))


def system_calls(program: Program, n: int) -> Counter[str]:
    """System calls by name of all threads but rtmeter's service threads, whose names their creator writes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(program, n, folder, ["strace", "-ff", "--quiet=all", "-o", str(folder / "calls")])
        texts = {path.suffix[1:]: path.read_text(errors="replace") for path in folder.glob("calls.*")}
        named = r'/task/(\d+)/comm", .*\n\w+\(\d+, "rtm-(?:writer|supervisor)"'
        service = {tid for text in texts.values() for tid in re.findall(named, text)}
        counts: Counter[str] = Counter()
        for tid, text in texts.items():
            if tid not in service:
                counts.update(re.findall(r"^(\w+)\(", text, re.M))
        return counts


def probe_config(folder: Path, measurement: str, **more: object) -> str:
    role = str(more.get("role", "single"))
    config = {
        "version": 1,
        "measurement": measurement,
        "period_ns": PERIOD_NS,
        "log": str(folder / f"{role}.rtlog"),
    }
    config |= {"session": "bench-counts", "warm_up": 10, "loss_timeout_ns": 500_000_000} | more
    path = folder / f"{role}.json"
    path.write_text(json.dumps(config))
    return str(path)


def wakeup(n: int, folder: Path) -> Command:
    config = probe_config(folder, "wakeup", samples=n, overrun="catch_up")
    return [str(find_probes()["posix"]), "--config", config]


def cyclictest(n: int, _: Path) -> Command:
    return ["cyclictest", "--quiet", f"--interval={PERIOD_NS // 1000}", f"--loops={n}", "--threads=1"]


def of_adapter(adapter: str, environment: Mapping[str, str], **options: str) -> Program:
    """rtmeter's round trip over the adapter, received as the direct program does."""
    probe = str(find_probes()[adapter])

    def server(folder: Path) -> Command:
        return [probe, "--config", probe_config(folder, "roundtrip", role="server", options=options)]

    def client(n: int, folder: Path) -> Command:
        endpoint = (folder / "endpoint").read_text()
        asked = options | ({"endpoint": endpoint} if endpoint else {})
        more = {"samples": n, "options": asked, "receive": receive_of(adapter)}
        config = probe_config(folder, "roundtrip", role="client", **more)
        return [probe, "--config", config]

    return Program("rtmeter", client, server, environment)


def ddsperf() -> Program:
    common = ["ddsperf", "-i", "85", "-u", "-D"]
    rate_hz = 1_000_000_000 // PERIOD_NS
    return Program(
        "ddsperf",
        lambda n, _: [
            *common,
            str(n / rate_hz),
            "ping",
            f"{rate_hz}Hz",
            "size",
            str(SAMPLE_BYTES),
            "waitset",
        ],
        lambda _: [*common, "600", "pong", "waitset"],
        ENVIRONMENT,
    )


def direct(middleware: str, environment: Mapping[str, str]) -> Program:
    program = str(program_of(middleware))
    return Program(
        "direct program",
        lambda n, _: [program, "ping", str(PERIOD_NS), str(n)],
        lambda _: [program, "pong"],
        environment,
    )


def beside(what: str, ours: Program, theirs: Program) -> dict[str, object]:
    """Counts both, prints a line for each, and tells whether ours are no more."""
    figures: dict[str, object] = {}
    for program in (ours, theirs):
        more = LONG - SHORT
        per_one = (instructions(program, LONG) - instructions(program, SHORT)) / more
        calls = system_calls(program, LONG)
        calls.subtract(system_calls(program, SHORT))
        often = {name: round(count / more, 2) for name, count in calls.most_common() if count / more >= 0.05}
        figures[program.name] = {"instructions": per_one, "system_calls": often, "calls": sum(often.values())}
        by_name = ", ".join(f"{name} {count:g}" for name, count in often.items())
        print(
            f"| {what} | {program.name} | {per_one:,.0f} | {sum(often.values()):.2f} | {by_name} |",
            flush=True,
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    known = ("wakeup", "cyclonedds", *MIDDLEWARES)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(known)}; all when left out")
    args = parser.parse_args()
    if unknown := set(args.what) - set(known):
        parser.error(f"{', '.join(unknown)}: choose of {', '.join(known)}")
    print(machine_line())
    print("| of one | | instructions | system calls | which |\n|---|---|---|---|---|")
    found: dict[str, object] = {}
    for what in args.what or known:
        if what == "wakeup":
            found[what] = beside("release", Program("rtmeter", wakeup), Program("cyclictest", cyclictest))
        elif what == "cyclonedds":
            found[what] = beside("round trip, Cyclone DDS", of_adapter(what, ENVIRONMENT), ddsperf())
        elif not program_of(what).exists():
            print(f"{what}: left out, its direct program is not built here")
        else:
            with daemon(what) as environment:
                ours = of_adapter(adapter_of(what), environment, **MIDDLEWARES[what])
                found[what] = beside(f"round trip, {what}", ours, direct(what, environment))
    print(
        f"\nwritten to {save('counts', {'period_ns': PERIOD_NS, 'releases': [SHORT, LONG], 'found': found})}"
    )


if __name__ == "__main__":
    main()
