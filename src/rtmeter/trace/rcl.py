"""What is looked for in a program of ROS 2: functions that every build of rcl and its middleware have.

Arguments are read as the functions declare them (rcl, rmw: public headers), and two fields of a timer that
only rcl knows; what they come to is checked before it is believed (attach/callbacks.py).
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.trace.symbols import offsets_of

PREFIX = "rtmeter_probe_"
"""Of the names of such events."""

_LOADS_S = 10
_LIBRARY = re.compile(r"rcl|rmw|tracetools")
_MAKES_NODES = ("librcl.so*", "librmw_*_cpp.so*")
_REGISTERS = {"x86_64": ("di", "si", "dx", "cx"), "aarch64": ("x0", "x1", "x2", "x3")}
_PERIOD, _DUE, _TOPIC = 40, 56, 16
"""Offsets: of rcl's timer, its period and when it is due next; of rmw's subscription, its topic's name."""


@dataclass(frozen=True)
class Uprobe:
    function: str
    arguments: str = ""
    returns: bool = False


_TIMER = f"timer=%{{0}}:x64 period=+{_PERIOD}(+0(%{{0}})):s64 due=+{_DUE}(+0(%{{0}})):s64"

PROBES = {
    "call": Uprobe("rcl_timer_call", _TIMER),
    "call_with_info": Uprobe("rcl_timer_call_with_info", _TIMER),
    "take": Uprobe("rcl_take", "subscription=%{0}:x64"),
    "topic": Uprobe("rmw_take_with_info", f"topic=+0(+{_TOPIC}(%{{0}})):ustring"),
    "took": Uprobe("rcl_take", "result=$retval:s32", returns=True),
    "wait": Uprobe("rcl_wait"),
    "end": Uprobe("ros_trace_callback_end"),
}
"""While callbacks are measured."""

NAMING = {
    "node": Uprobe("rcl_node_init", "node=%{0}:x64 name=+0(%{1}):ustring space=+0(%{2}):ustring"),
    "named": Uprobe("rmw_create_node", "name=+0(%{1}):ustring space=+0(%{2}):ustring"),
    "subscribe": Uprobe("rcl_subscription_init", "subscription=%{0}:x64 node=%{1}:x64"),
    "timer": Uprobe("rcl_timer_init2", "timer=%{0}:x64 period=%{3}:s64"),
}
"""While a program starts: who a timer and a subscription belong to."""

LACKING = {
    "rcl_timer_call": "its timers are not told",
    "rcl_take": "its subscriptions are not told",
    "rmw_take_with_info": "its subscriptions have no topic's name",
    "rcl_wait": "its callbacks count until their thread sleeps, or the next one begins",
}
_EITHER = {"rcl_timer_call": "rcl_timer_call_with_info"}


def libraries_of(pid: int) -> dict[str, Path]:
    """The files of ROS 2 that a process has mapped as code, and the program itself: how the kernel reaches
    each, wherever it lies and whatever its name is."""
    found: dict[str, Path] = {}
    try:
        exe = str(Path(f"/proc/{pid}/exe").readlink())
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        words = line.split(maxsplit=5)
        if len(words) == 6 and "x" in words[1] and (words[5] == exe or _LIBRARY.search(Path(words[5]).name)):
            span = "-".join(f"{int(end, 16):x}" for end in words[0].split("-"))
            found.setdefault(words[5], Path(f"/proc/{pid}/map_files/{span}"))
    return found


@dataclass(frozen=True)
class ProbeLines:
    """``lines`` to be written into uprobe_events, without their group; ``lacking``: functions that the
    program has not got."""

    lines: tuple[str, ...]
    lacking: tuple[str, ...]


def loaded_by(program: str, environment: Mapping[str, str]) -> dict[str, Path]:
    """The files of ROS 2 that a program will load, known before it runs: those that an executable says, and
    itself; of a script, or of an interpreter, those that lie where its loader looks."""
    path = shutil.which(program, path=environment.get("PATH"))
    if path is None:
        return {}
    words = [word for line in _told_by_ldd(path, environment) for word in line.split() if word[0] == "/"]
    files = {word: Path(word) for word in words if _LIBRARY.search(Path(word).name)}
    return {path: Path(path).resolve(), **files} if files else _lying_in(_folders(path, environment))


def _told_by_ldd(program: str, environment: Mapping[str, str]) -> list[str]:
    try:
        said = subprocess.run(
            ["ldd", program], capture_output=True, text=True, timeout=_LOADS_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return said.stdout.splitlines()


def _folders(program: str, environment: Mapping[str, str]) -> list[Path]:
    """What is sourced, and what is installed beside an interpreter, or its virtual environment."""
    sourced = [Path(one, "lib") for one in environment.get("AMENT_PREFIX_PATH", "").split(":") if one]
    given = [Path(one) for one in environment.get("LD_LIBRARY_PATH", "").split(":") if one]
    return [*given, *sourced, Path(program).parent.parent / "lib"]


def _lying_in(folders: Iterable[Path]) -> dict[str, Path]:
    """One of each file, however many names it has."""
    files = (file for folder in folders for name in _MAKES_NODES for file in sorted(folder.glob(name)))
    return {str(real): real for real in (file.resolve() for file in files)}


def found_in(pid: int, probes: Mapping[str, Uprobe] = PROBES) -> ProbeLines:
    """Of a process. Raises RtmeterError if it has nothing of ROS 2, or the machine's calls are not known."""
    found = found_among(libraries_of(pid).values(), probes)
    if found is None:
        message = f"finds nothing of ROS 2 in process {pid}: it has loaded no file of rcl"
        remedy = "give a node's process; one that is linked statically must keep its symbols"
        raise RtmeterError(message, field="--ros2", remedy=remedy)
    return found


def found_among(files: Iterable[Path], probes: Mapping[str, Uprobe]) -> ProbeLines | None:
    """Of files; None if they have nothing of ROS 2. Raises RtmeterError if the machine's calls are not
    known."""
    registers = _REGISTERS.get(platform.machine())
    if registers is None:
        message = f"does not know how functions are called on {platform.machine()}"
        raise RtmeterError(message, field="--ros2", remedy=f"it does on {' and '.join(_REGISTERS)}")
    functions = {probe.function for probe in probes.values()}
    lines: list[str] = []
    here: set[str] = set()
    for path in files:
        offsets = _offsets(path, functions)
        here |= offsets.keys()
        for what, probe in probes.items():
            if (offset := offsets.get(probe.function)) is not None:
                arguments = probe.arguments.format(*registers)
                kind, number = "r" if probe.returns else "p", len(lines)
                lines.append(
                    f"{kind}:{{group}}/{PREFIX}{what}_{number} {path}:{offset:#x} {arguments}".rstrip()
                )
    if not here:
        return None
    lacking = tuple(one for one in LACKING if not {one, _EITHER.get(one, one)} & here)
    return ProbeLines(tuple(lines), lacking)


def _offsets(path: Path, functions: Collection[str]) -> dict[str, int]:
    try:
        return offsets_of(path, functions)
    except OSError:
        return {}


def what_of(event: str) -> str:
    """What an event of that name marks."""
    return event.removeprefix(PREFIX).rpartition("_")[0]
