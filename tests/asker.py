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

ASKS = "RTMETER_ASKS"
"""An environment variable: the number of the socket's file."""


def main() -> int:
    told, tells = os.pipe()
    asked = {
        "arguments": sys.argv[1:],
        "cwd": os.getcwd(),  # noqa: PTH109 (pathlib takes long to import)
        "environment": dict(os.environ),
        "affinity": list(os.sched_getaffinity(0)),
        "umask": umask(),
    }
    server = socket.socket(fileno=int(os.environ[ASKS]))
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2, tells])
    os.close(tells)
    pid = number_of(told)
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, lambda number, _: os.kill(pid, number))
    code = os.waitstatus_to_exitcode(number_of(told))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def number_of(told: int) -> int:
    answer = os.read(told, 4)
    if not answer:
        sys.exit("the server that forks rtmeter has ended")
    return int(struct.unpack("i", answer)[0])


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


if __name__ == "__main__":
    sys.exit(main())
