"""The lock of another machine (machine_lock), held there by a shell."""

from __future__ import annotations

import socket
from shlex import quote

from rtmeter import machine_lock
from rtmeter.remote_shell import Shell

_HELD = 75
_TAKE = """
lock=/tmp/{file}
case "$(ls -ldL /run/lock 2>/dev/null)" in d???????w*) lock=/run/lock/{file};; esac
( umask 0; : >>"$lock" ) 2>/dev/null
if ( : >>"$lock" ) 2>/dev/null; then exec 9>>"$lock"; elif test -r "$lock"; then exec 9<"$lock"; fi
if flock -n 9
then ( printf %s {about} >"$lock" ) 2>/dev/null || :
else cat "$lock"; command -v flock >/dev/null && ( exit {held} )
fi
"""


def take(shell: Shell) -> None:
    """Holds the lock until the shell ends. Raises RtmeterError, also if somebody else holds it."""
    about = quote(machine_lock.about(f"rtmeter on {socket.gethostname()}"))
    code, said = shell.run(_TAKE.format(file=machine_lock.FILE, about=about, held=_HELD))
    if code == _HELD:
        message = f"is measured already, by {machine_lock.told(said)}"
        raise shell.ssh.error(message, "wait until that has ended, or end it")
    if code != 0:
        raise shell.ssh.error("lacks the program flock", "install util-linux there")
