"""What tests leave behind of the machine: segments of shared memory, tracing instances, cgroups, network
namespaces and processes. The end of a session tells what, and which files may have; with ``LEFTOVERS=fail``
it fails. A session may run beside another one, whose leftovers look like its own.

Only what came while the session ran and what no process uses any more counts: others use the machine too.
A process that is killed cannot remove its segments: whoever kills a participant does (``remove_segments``).
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SHARED = Path("/dev/shm")
SEGMENTS = (
    *("fastdds_*", "fastrtps_*", "sem.fastdds_*", "sem.fastrtps_*"),
    *("iceoryx_*", "iox*", "ecal_*", "rtmeter*"),
)
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "shared memory": (str(SHARED), SEGMENTS),
    "tracing instance": ("/sys/kernel/tracing/instances", ("rtmeter*",)),
    "cgroup": ("/sys/fs/cgroup", ("rtmeter*", "*/rtmeter*", "*/*/rtmeter*")),
    "network namespace": ("/run/netns", ("rtm*",)),
}

SESSION = "TESTS_SESSION"
"""An environment variable of what tests start: which session, and which of its files."""
YOUNG_S = 1.0  # who made a segment may be about to map it
ENDS_WITHIN_S = 20.0  # a process that was told to end, on a busy machine


def present() -> dict[Path, str]:
    """Everything of these kinds, and its kind."""
    return {
        path: kind
        for kind, (folder, patterns) in KINDS.items()
        for pattern in patterns
        for path in Path(folder).glob(pattern)
    }


def begin() -> bool:
    """Whether a session begins here, and not within another one's (a worker's, or a test's)."""
    begins = SESSION not in os.environ
    if begins:
        os.environ[SESSION] = f"{secrets.token_hex(8)}:"
    return begins


def name_file(file: str) -> None:
    """What is started from here on is the file's."""
    os.environ[SESSION] = f"{os.environ[SESSION].partition(':')[0]}:{file}"


@dataclass(eq=False)  # hashable, as pytest has its plugins
class Leftovers:
    """Of one session, from when this is made: a plugin of pytest."""

    before: dict[Path, str] = field(default_factory=present)
    ran: dict[str, tuple[float, float]] = field(default_factory=dict)  # each file of tests, in epoch seconds
    left: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        first, last = self.ran.get(file, (report.start, report.stop))
        self.ran[file] = min(first, report.start), max(last, report.stop)

    @pytest.hookimpl(trylast=True)  # the workers have ended
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        end = time.monotonic() + ENDS_WITHIN_S
        while (left := self.told()) and time.monotonic() < end:
            time.sleep(0.1)
        self.left = left
        if left and session.exitstatus == 0 and os.environ.get("LEFTOVERS") == "fail":
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.left:
            terminalreporter.section("left behind")
            for line in self.left:
                terminalreporter.write_line(line)

    def told(self) -> list[str]:
        """A line for each thing that was left."""
        came = {path: kind for path, kind in present().items() if path not in self.before}
        used = in_use() if came else ""
        lines = [
            f"{kind} {path}: by {self._at(made)}"
            for path, kind in came.items()
            if (made := _made(path)) is not None and not _used(path, used)
        ]
        return lines + [f"process {pid} ({name}): by {file}" for pid, name, file in processes()]

    def _at(self, made: float) -> str:
        """The files that ran then; a process of theirs may have outlived them."""
        ran = [file for file, (first, last) in self.ran.items() if first - 1 <= made <= last + 1]
        return " or ".join(ran) or "none that ran then"


def _made(path: Path) -> float | None:
    with suppress(OSError):
        return path.stat().st_ctime
    return None  # it has just gone


def _used(path: Path, used: str) -> bool:
    name = path.name.removeprefix("sem.").removesuffix("_mutex").removesuffix("_el")
    with suppress(OSError):
        if (path / "cgroup.procs").read_text():
            return True
    with suppress(OSError):
        if f"net:[{path.stat().st_ino}]" in used:
            return True
    maker = re.fullmatch(r"rtm(\d+)-\w+", name)  # a namespace is named after its process
    listed = re.search(rf"/{re.escape(name)}(_el)?(/.*| \(deleted\))?$", used, re.MULTILINE)
    return listed is not None or bool(maker and Path(f"/proc/{maker[1]}").exists())


def in_use() -> str:
    """What processes have open or mapped, and the network namespaces that they are in, one a line."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError), (process / "maps").open(errors="replace") as lines:
            found |= {line.split(None, 5)[5] for line in lines if f"{SHARED}/" in line}
        with suppress(OSError):
            found.add(str((process / "ns" / "net").readlink()))
        with suppress(OSError):
            for file in (process / "fd").iterdir():
                with suppress(OSError):
                    found.add(str(file.readlink()))
    return "\n".join(line.rstrip("\n") for line in found)


def processes() -> list[tuple[int, str, str]]:
    """Those that this session's tests started and that live: id, name, and the file of tests."""
    session = f"{SESSION}={os.environ[SESSION].partition(':')[0]}:"
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "environ").read_text(errors="replace").split("\0")
            file = next((word.removeprefix(session) for word in words if word.startswith(session)), "")
            if file and (process / "cmdline").read_text():  # a zombie has none
                found.append((int(process.name), (process / "comm").read_text().strip(), file))
    return found


def remove_segments() -> None:
    """The segments of Fast DDS's participants that were killed: those whose lock nobody holds any more, or is
    about to hold and has open, and ports without one, which count a reader that is gone, that nobody has
    mapped; eCAL's likewise."""
    locks = [*SHARED.glob("fastdds_*_el"), *SHARED.glob("fastrtps_*_el")]
    opened = in_use().splitlines() if locks else []
    for lock in locks:
        if str(lock) in opened:
            continue
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(SHARED / lock.name.removesuffix("_el"))
            lock.unlink(missing_ok=True)
    ports = [path for path in SHARED.glob("fast*_port*") if not path.name.endswith("_el")]
    ports += SHARED.glob("ecal_*")
    used = in_use() if ports else ""
    for port in ports:
        made = _made(port)
        young = made is None or time.time() - made < YOUNG_S
        if not young and not _used(port, used) and not port.with_name(f"{port.name}_el").exists():
            _remove(port)


def _remove(segment: Path) -> None:
    for path in (segment, segment.with_name(f"sem.{segment.name}_mutex")):
        path.unlink(missing_ok=True)
