"""What is looked for in a program of ROS 2: functions that every build of rcl and its middleware have.

Arguments are read as the functions declare them (rcl, rmw: public headers), and two fields of a timer that
only rcl knows; what they come to is checked before it is believed (attach/callbacks.py).
"""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.model import LOCAL
from rtmeter.trace.symbols import offsets_of

PREFIX = "rtmeter_probe_"
"""Of the names of such events."""

_LIBRARY = re.compile(r"rcl|rmw|tracetools")
_MAKES_NODES = ("librcl.so*", "librmw_*_cpp.so*")
_REGISTERS = {"x86_64": ("di", "si", "dx", "cx"), "aarch64": ("x0", "x1", "x2", "x3")}
_PERIOD, _DUE, _NAME = 40, 56, 16
"""Offsets: of rcl's timer, its period and when it is due next; of rmw's subscription, service and client, the
name of its topic or service."""


@dataclass(frozen=True)
class Uprobe:
    """``what`` its event marks."""

    what: str
    function: str
    arguments: str = ""
    returns: bool = False


def _takes(what: str, function: str, rmw: str) -> tuple[Uprobe, ...]:
    """What came is taken, from what, and whether there was something."""
    return (
        Uprobe(what, function, "handle=%{0}:x64"),
        Uprobe("resource", rmw, f"name=+0(+{_NAME}(%{{0}})):ustring"),
        Uprobe("took", function, "result=$retval:s32", returns=True),
    )


_TIMER = f"timer=%{{0}}:x64 period=+{_PERIOD}(+0(%{{0}})):s64 due=+{_DUE}(+0(%{{0}})):s64"

PROBES = (
    Uprobe("call", "rcl_timer_call", _TIMER),
    Uprobe("call_with_info", "rcl_timer_call_with_info", _TIMER),
    *_takes("take", "rcl_take", "rmw_take_with_info"),
    *_takes("take", "rcl_take_serialized_message", "rmw_take_serialized_message_with_info"),
    *_takes("take", "rcl_take_loaned_message", "rmw_take_loaned_message_with_info"),
    *_takes("take_request", "rcl_take_request_with_info", "rmw_take_request"),
    *_takes("take_response", "rcl_take_response_with_info", "rmw_take_response"),
    Uprobe("wait", "rcl_wait"),
    Uprobe("end", "ros_trace_callback_end"),
    Uprobe("end", "_ZN6rclcpp13AnyExecutableD1Ev"),
)
"""While callbacks are measured. The last is rclcpp::AnyExecutable's destructor: an executor's thread has done
what it was given, and then may wait for the executor's lock, which those that wait in rcl_wait hold."""

_MADE = "handle=%{0}:x64 node=%{1}:x64"

NAMING = (
    Uprobe("node", "rcl_node_init", "node=%{0}:x64 name=+0(%{1}):ustring space=+0(%{2}):ustring"),
    Uprobe("named", "rmw_create_node", "name=+0(%{1}):ustring space=+0(%{2}):ustring"),
    Uprobe("made", "rcl_subscription_init", _MADE),
    Uprobe("made", "rcl_service_init", _MADE),
    Uprobe("made", "rcl_client_init", _MADE),
    Uprobe("timer", "rcl_timer_init2", "timer=%{0}:x64 period=%{3}:s64"),
)
"""While a program starts: who timers, subscriptions, services and clients belong to."""

LACKING = {
    "rcl_timer_call": "its timers are not told",
    "rcl_take": "its subscriptions are not told",
    "rcl_take_request_with_info": "its services are not told",
    "rcl_take_response_with_info": "its clients are not told",
    "rmw_take_with_info": "its subscriptions have no topic's name",
    "rmw_take_request": "its services have no name",
    "rmw_take_response": "its clients have no service's name",
    "rcl_wait": "its callbacks count until their thread sleeps, or the next one begins",
}
_EITHER = {"rcl_timer_call": "rcl_timer_call_with_info"}


def libraries_of(pid: int, root: Root) -> dict[str, str]:
    """The files of ROS 2 that a process has mapped as code, and the program itself: how the kernel reaches
    each, wherever it lies and whatever its name is."""
    found: dict[str, str] = {}
    exe = root.link(f"/proc/{pid}/exe")
    for line in (root.read(f"/proc/{pid}/maps") or "").splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and "x" in words[1] and (words[5] == exe or _is_of_ros(words[5])):
            span = "-".join(f"{int(end, 16):x}" for end in words[0].split("-"))
            found.setdefault(words[5], f"/proc/{pid}/map_files/{span}")
    return found


def _is_of_ros(file: str) -> bool:
    return bool(_LIBRARY.search(PurePosixPath(file).name))


@dataclass(frozen=True)
class ProbeLines:
    """``lines`` to be written into uprobe_events, without their group; ``lacking``: functions that the
    program has not got."""

    lines: tuple[str, ...]
    lacking: tuple[str, ...]


def environment_of(root: Root) -> Mapping[str, str]:
    """Of what is started on a machine."""
    if root.host == LOCAL:
        return os.environ
    words = (root.read(f"/proc/{root.own_pid()}/environ") or "").split("\0")
    return {name: value for name, equals, value in (word.partition("=") for word in words) if equals}


def loaded_by(program: str, environment: Mapping[str, str], root: Root) -> list[str]:
    """The files of ROS 2 that a program will load, known before it runs: those that an executable says, and
    itself; of a script, or of an interpreter, those that lie where its loader looks."""
    path = _where(program, environment, root)
    if path is None:
        return []
    files = [word for line in _told_by_ldd(path, environment, root) for word in line.split()]
    files = [word for word in files if word.startswith("/") and _is_of_ros(word)]
    return [root.real_path(path), *files] if files else _lying_in(_folders(path, environment), root)


def _where(program: str, environment: Mapping[str, str], root: Root) -> str | None:
    if root.host == LOCAL:
        found = shutil.which(program, path=environment.get("PATH"))
        return found and str(Path(found).absolute())
    code, said = root.run(["command", "-v", program])
    return said.strip() if code == 0 else None


def _told_by_ldd(program: str, environment: Mapping[str, str], root: Root) -> list[str]:
    looks_in = "LD_LIBRARY_PATH"
    given = ["env", f"{looks_in}={environment[looks_in]}"] if looks_in in environment else []
    try:
        return root.run([*given, "ldd", program])[1].splitlines()
    except OSError:
        return []


def _folders(program: str, environment: Mapping[str, str]) -> list[str]:
    """What is sourced, and what is installed beside an interpreter, or its virtual environment."""
    sourced = [f"{one}/lib" for one in environment.get("AMENT_PREFIX_PATH", "").split(":") if one]
    given = [one for one in environment.get("LD_LIBRARY_PATH", "").split(":") if one]
    return [*given, *sourced, str(PurePosixPath(program).parent.parent / "lib")]


def _lying_in(folders: Iterable[str], root: Root) -> list[str]:
    """One of each file, however many names it has."""
    patterns = [f"{glob.escape(folder)}/{name}" for folder in folders for name in _MAKES_NODES]
    return list(dict.fromkeys(root.real_path(file) for pattern in patterns for file in root.glob(pattern)))


def found_in(pid: int, root: Root) -> ProbeLines:
    """Of a process. Raises RtmeterError if it has nothing of ROS 2, or the machine's calls are not known."""
    found = found_among(libraries_of(pid, root).values(), PROBES, root)
    if found is None:
        message = f"finds nothing of ROS 2 in process {pid}: it has loaded no file of rcl"
        remedy = "give a node's process; one that is linked statically must keep its symbols"
        raise RtmeterError(message, field="--ros2", remedy=remedy)
    return found


def found_among(files: Iterable[str], probes: Sequence[Uprobe], root: Root) -> ProbeLines | None:
    """Of files of the machine; None if they have nothing of ROS 2. Raises RtmeterError if its calls are not
    known."""
    machine = platform.machine() if root.host == LOCAL else root.run(["uname", "-m"])[1].strip()
    registers = _REGISTERS.get(machine)
    if registers is None:
        message = f"does not know how functions are called on {machine}"
        raise RtmeterError(message, field="--ros2", remedy=f"it does on {' and '.join(_REGISTERS)}")
    functions = {probe.function for probe in probes}
    lines: list[str] = []
    here: set[str] = set()
    for path in files:
        offsets = offsets_of(root.read_bytes(path) or b"", functions)
        here |= offsets.keys()
        for probe in probes:
            if (offset := offsets.get(probe.function)) is not None:
                arguments = probe.arguments.format(*registers)
                kind, number = "r" if probe.returns else "p", len(lines)
                lines.append(
                    f"{kind}:{{group}}/{PREFIX}{probe.what}_{number} {path}:{offset:#x} {arguments}".rstrip()
                )
    if not here:
        return None
    lacking = tuple(one for one in LACKING if not {one, _EITHER.get(one, one)} & here)
    return ProbeLines(tuple(lines), lacking)


def what_of(event: str) -> str:
    """What an event of that name marks."""
    return event.removeprefix(PREFIX).rpartition("_")[0]
