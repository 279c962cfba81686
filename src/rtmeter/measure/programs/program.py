"""A running program as /proc shows it: whether it can be attached to, and which of its threads is meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtmeter.conditions.processes import Process, everyone
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, read_task, read_tasks
from rtmeter.model import Doubt

ENDED, REPLACED = "program_ended", "program_replaced"
CUT_SHORT = (ENDED, REPLACED)
"""Types of the doubts that end a measurement before its time."""

_FEW = 5
_ELF_CLASS, _32_BIT = 4, 1


@dataclass(frozen=True, slots=True)
class Program:
    """``exe``: the file that it runs; ``debugged``: another process traces it; ``is_32_bit``: its system
    calls have other numbers than this kernel's own; ``user``: whose it is."""

    pid: int
    start: int
    exe: str
    debugged: bool
    is_32_bit: bool
    user: int


def program_of(pid: int, root: Root) -> Program:
    """Raises RtmeterError if it cannot be attached to: not there, ended, stopped, a thread, the kernel's."""
    task = read_task(root, pid)
    if task is None:
        raise _wrong(pid, "is no process here", _where_it_is(pid, root))
    if task.pid != pid:
        raise _wrong(pid, f"is a thread of process {task.pid}", f"give --pid {task.pid} --thread {pid}")
    if task.is_kernel:
        raise _wrong(pid, f"is the kernel's own thread {task.name}", "give a program's process")
    if task.state in "ZX":
        raise _wrong(pid, "has ended", "start it again")
    status = _status(pid, root)
    tracer = int(status.get("TracerPid", "0"))
    if task.state in "Tt":
        by = f"; process {tracer} traces it" if tracer else ""
        raise _wrong(pid, f"is stopped{by}", f"let it go on first: kill -CONT {pid}, or end its debugger")
    return Program(
        pid=pid,
        start=task.start,
        exe=exe_of(pid, root),
        debugged=tracer != 0,
        is_32_bit=_is_32_bit(pid, root),
        user=int(status.get("Uid", "0").split()[0]),
    )


def exe_of(pid: int, root: Root) -> str:
    """The file that it runs; empty if it has ended."""
    return root.link(f"/proc/{pid}/exe")


def threads_of(pid: int, root: Root) -> list[Task]:
    """Those that it has now, by id."""
    found = (read_task(root, int(path.rsplit("/", 1)[1])) for path in root.glob(f"/proc/{pid}/task/[0-9]*"))
    return sorted((task for task in found if task is not None and task.pid == pid), key=lambda task: task.tid)


def started_by(pid: int, root: Root) -> list[Process]:
    """The processes that a program started, as a launcher does, and those that these did."""
    there, found, parents = everyone(root), list[Process](), {pid}
    while born := [process for process in there if process.parent in parents]:
        found += born
        parents = {process.pid for process in born}
    return found


def meant_words(started: Sequence[Process]) -> str:
    """Of programs that are another's, and may be what is meant: what to do, for a remedy; empty of none."""
    if not started:
        return ""
    names = ", ".join(f"{one.name} ({one.pid})" for one in started[:_FEW])
    return f"it started {names}: if that is meant, start it itself, or give --pid of one that runs"


def thread_of(pid: int, name: str, root: Root) -> Task:
    """The program's thread of that id or name. Raises RtmeterError as chosen() does, with the process that it
    started and that has one."""
    threads = threads_of(pid, root)
    if not any(name in (task.name, str(task.tid)) for task in threads):
        for one in started_by(pid, root):
            if any(name in (task.name, str(task.tid)) for task in threads_of(one.pid, root)):
                message = f"is no thread of the program, but of {one.name}, which it started"
                raise RtmeterError(message, field="thread", value=name, remedy=meant_words([one]))
    return chosen(threads, name)


def chosen(threads: Iterable[Task], name: str) -> Task:
    """The thread of that id or name. Raises RtmeterError if there is none, or more than one."""
    threads = list(threads)
    found = [task for task in threads if str(task.tid) == name] or [
        task for task in threads if task.name == name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(task.tid) for task in found)
        message = f"is the name of {len(found)} threads"
        raise RtmeterError(message, field="thread", value=name, remedy=f"give the id of one: {ids}")
    there = ", ".join(dict.fromkeys(f"{task.name} ({task.tid})" for task in threads[:12]))
    message = "is no thread of the program"
    raise RtmeterError(message, field="thread", value=name, remedy=f"choose one of {there or 'none'}")


def is_there(task: Task, root: Root) -> bool:
    """Whether it is still the same thread: ids are used again."""
    now = read_task(root, task.tid)
    return now is not None and now.start == task.start and now.pid == task.pid and now.state not in "ZX"


def ended_doubt(who: str) -> Doubt:
    return Doubt(ENDED, f"{who} ended in mid-run: what it did until then was measured", "")


def replaced_doubt(how: str) -> Doubt:
    message = f"{how} in mid-run: what came after is not measured"
    return Doubt(REPLACED, message, "attach to it again")


def _status(pid: int, root: Root) -> dict[str, str]:
    lines = (root.read(f"/proc/{pid}/status") or "").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _is_32_bit(pid: int, root: Root) -> bool:
    head = root.head(f"/proc/{pid}/exe", _ELF_CLASS + 1)
    return head.startswith(b"\x7fELF") and head[_ELF_CLASS:] == bytes([_32_BIT])


def _where_it_is(pid: int, root: Root) -> str:
    """A process of a container has another id here."""
    for task in read_tasks(root):
        if task.pid == task.tid:
            ids = _status(task.pid, root).get("NSpid", "").split()
            if len(ids) > 1 and ids[-1] == str(pid):
                return f"in its container {task.name} has this id; here it is --pid {task.pid}"
    return "see `ps -e`; of a container's process give the id that it has here, on the host"


def _wrong(pid: int, message: str, remedy: str) -> RtmeterError:
    return RtmeterError(message, field="pid", value=str(pid), remedy=remedy)
