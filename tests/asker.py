"""``rtmeter ARGUMENTS`` in a shell that has the server's socket (preloaded.py) as an open file.

Asks for the process, hands on the signals that end it, and ends as it does. It imports little, since it is
started for each command.
"""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

ASKS = "RTMETER_ASKS"
"""An environment variable: the number of the socket's file."""

NUMBER = struct.Struct("i")


def main() -> int:
    server = socket.socket(fileno=int(os.environ[ASKS]))
    told = ask(server, sys.argv[1:], os.getcwd(), os.environ, [0, 1, 2])  # noqa: PTH109 (pathlib imports long)
    pid = number_of(told)
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, lambda number, _: os.kill(pid, number))
    code = os.waitstatus_to_exitcode(number_of(told))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def ask(
    server: socket.socket,
    arguments: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    streams: Sequence[int],
    namespace: str = "",
) -> int:
    """The file that tells the process's id, then, once it has ended, its status (number_of). With a namespace
    it is there as ``ip netns exec`` would start it.
    """
    told, tells = os.pipe()
    asked = {
        "arguments": list(arguments),
        "cwd": cwd,
        "environment": dict(environment),
        "affinity": list(os.sched_getaffinity(0)),
        "umask": umask(),
        "namespace": namespace,
    }
    socket.send_fds(server, [json.dumps(asked).encode()], [*streams, tells])
    os.close(tells)
    return told


def number_of(told: int) -> int:
    answer = os.read(told, NUMBER.size)
    if not answer:
        sys.exit("the server that forks rtmeter has ended")
    return int(NUMBER.unpack(answer)[0])


def umask() -> int:
    """Read without setting it, which other threads would see."""
    with open("/proc/self/status") as status:  # noqa: PTH123 (as above)
        return int(next(line for line in status if line.startswith("Umask:")).split()[1], 8)


if __name__ == "__main__":
    sys.exit(main())
