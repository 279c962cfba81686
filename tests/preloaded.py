"""``rtmeter`` as a process that has nothing to import or to compile: a server, which has all of it, forks it.

A start of Python and of what rtmeter imports takes a second of processor time, of which the tests would spend
half an hour. What is forked is a process like any other: arguments, environment, folder, streams, signals and
exit code are its own (test_preloaded.py compares both). It differs in its parent, which is the server, in its
command line in /proc, and in what was read at the start of Python (``PYTHON...``, the locale).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from asker import NUMBER, ask, number_of
from leftovers import SESSION

_CLONE_NEWNET, _CLONE_NEWNS = 0x40000000, 0x00020000
_MS_SLAVE, _MS_REC, _MNT_DETACH = 1 << 19, 1 << 14, 2
_LARGEST = 1 << 17  # bytes of arguments and environment
_MAIN = Path(__file__).parents[1] / "src" / "rtmeter" / "__main__.py"


class Preloaded(subprocess.Popen[str]):
    """``Preloaded(arguments, cwd=..., env=..., stdout=...)``: a Popen of ``rtmeter ARGUMENTS``.

    With ``namespace`` as ``ip netns exec NAMESPACE rtmeter ARGUMENTS``."""

    def __init__(self, args: Sequence[str], *, namespace: str = "", **how: Any) -> None:
        self._namespace = namespace
        super().__init__(args, **how)

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:
        cwd, env = given[4:6]
        pipes = given[9:15]  # p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
        streams = [own if own != -1 else number for number, own in enumerate((pipes[0], pipes[3], pipes[5]))]
        environment = os.environ if env is None else env
        self._told = ask(server(), args, str(cwd or Path.cwd()), environment, streams, self._namespace)
        self._close_pipe_fds(*pipes)
        self.pid = number_of(self._told)
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = number_of(self._told)
        os.close(self._told)
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


@cache
def server() -> socket.socket:
    """Of this process; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(theirs.fileno())]
    null = subprocess.DEVNULL
    environment = {name: value for name, value in os.environ.items() if name != SESSION}  # no test's
    process = subprocess.Popen(command, env=environment, stdin=null, stdout=null, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours


def _serve(channel: socket.socket) -> bool:
    """Forks until nobody asks any more. True: this is a process that was asked for."""
    asking = select.poll()
    asking.register(channel, select.POLLIN)
    running: dict[int, tuple[int, int]] = {}
    while True:
        for number, _ in asking.poll():
            if number in running:
                asking.unregister(number)
                pid, tells = running.pop(number)
                _tell(tells, os.waitpid(pid, 0)[1])
                os.close(tells)
                os.close(number)
                continue
            request, streams, *_ = socket.recv_fds(channel, _LARGEST, 4)
            if not request:
                return False
            pid = os.fork()
            if not pid:
                channel.detach()
                _become(json.loads(request), streams)
                return True
            *streams, tells = streams
            for stream in streams:
                os.close(stream)
            _tell(tells, pid)
            ending = os.pidfd_open(pid)
            running[ending] = pid, tells
            asking.register(ending, select.POLLIN)


def _tell(where: int, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(where, NUMBER.pack(number))


def _become(asked: Mapping[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked.get("namespace"):
        _enter(asked["namespace"])
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.sched_setaffinity(0, asked["affinity"])
    os.umask(asked["umask"])
    sys.argv[:] = [str(_MAIN), *asked["arguments"]]


def _enter(namespace: str) -> None:
    """The network, and /sys as it shows it, in mounts of this process's own."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")

    with Path("/run/netns", namespace).open() as network:
        call("setns", network.fileno(), _CLONE_NEWNET)
    call("unshare", _CLONE_NEWNS)
    call("mount", b"", b"/", b"none", ctypes.c_ulong(_MS_SLAVE | _MS_REC), None)
    call("umount2", b"/sys", _MNT_DETACH)
    call("mount", namespace.encode(), b"/sys", b"sysfs", ctypes.c_ulong(0), None)


def _below(base: type) -> Iterator[Any]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def _command_lines() -> None:
    """Makes them all, to their options' types."""
    from rtmeter.cli import COMMANDS, command_line

    for name in COMMANDS:
        waiting = [command_line(name)]
        while waiting:
            command = waiting.pop()
            waiting += getattr(command, "commands", {}).values()
            for option in command.params:
                getattr(option, "get_runtime_param", bool)()


def _end(main: Callable[[], None]) -> None:
    """Runs it and ends as Python does, but takes nothing apart of what was imported: that would be most of
    all that is done here, since each page that this shares with the server is copied when it is written to.
    """
    try:
        main()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        code = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it: Python says what it says then
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for file in sorted(_MAIN.parent.rglob("[a-z]*.py")):
        import_module(".".join(["rtmeter", *file.relative_to(_MAIN.parent).with_suffix("").parts]))
    import_module("typer.rich_utils")  # what shows help
    templates = import_module("rtmeter.report.page").environment()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)
    for model in _below(import_module("pydantic").BaseModel):  # which each would build when it needs them
        model.model_rebuild()
    _command_lines()
    gc.collect()
    gc.freeze()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        from rtmeter.cli import main

        _end(main)
