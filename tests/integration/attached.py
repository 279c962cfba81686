"""Programs to attach to, and what the tests of that share."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from rtmeter.host.root import Root
from rtmeter.trace.ebpf.btf import UnavailableError
from rtmeter.trace.ebpf.recorder import RingsRecorder

here = pytest.mark.skipif(
    os.geteuid() != 0
    or "tracefs" not in Path("/proc/filesystems").read_text().split()
    or shutil.which("cc") is None,
    reason="attaching takes root, tracefs and a C compiler",
)


def takes_programs() -> bool:
    """Whether this kernel takes programs of ours."""
    try:
        RingsRecorder(Root(), [1]).stop()
    except UnavailableError:
        return False
    return True


SOURCES = Path(__file__).parent


def compiled(name: str, folder: Path, *flags: str) -> Path:
    """A program of ``<name>.c``."""
    program = folder / name
    subprocess.run(
        ["cc", "-O1", *flags, "-o", program, SOURCES / f"{name}.c", "-pthread"], check=True, timeout=120
    )
    return program


def names_of(pid: int) -> dict[str, int]:
    """Its threads by name."""
    return {
        (task / "comm").read_text().strip(): int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()
    }


def switches(pid: int, tid: int) -> int:
    """How often the thread has left its CPU, once a sleep at least."""
    status = Path(f"/proc/{pid}/task/{tid}/status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def records(front: subprocess.Popen[str]) -> bool:
    """Whether rtmeter, attached to something, has begun to record, by programs in the kernel or by tracefs,
    and waits now: before it has begun it does not sleep with either in its hands."""
    for file in Path(f"/proc/{front.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if any(kind in str(file.readlink()) for kind in ("bpf_link", "bpf_raw_tp", "trace_pipe_raw")):
                return "nanosleep" in Path(f"/proc/{front.pid}/wchan").read_text()
    return False


def left_instances() -> list[str]:
    """Trace instances of attaching."""
    return [name for name in _seen("ls {at}/instances").split() if name.startswith("rtmeter-attach-")]


def left_probes() -> list[str]:
    """Probes of programs' functions."""
    return [line for line in _seen("cat {at}/uprobe_events").splitlines() if "rtmeter_attach_" in line]


def _seen(command: str) -> str:
    """In tracefs, looked at where nobody else sees it."""
    at = "/sys/kernel/tracing"
    look = f"[ -d {at}/instances ] || mount -t tracefs tracefs {at}; {command.format(at=at)}"
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", look],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
