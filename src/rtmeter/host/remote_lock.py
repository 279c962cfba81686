"""The lock of another machine (machine_lock), held there by a shell."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from shlex import quote
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.host import lock as machine_lock
from rtmeter.host import state
from rtmeter.host.remote_shell import Shell

_LOOK_EVERY_S = 1.0
_HELD, _PLANTED = 75, 76
_TAKE = """
lock=/tmp/{file}
if test -n "${given}"; then lock=${given}/{file}; ( umask 022; mkdir -p -- "${given}" 2>/dev/null )
else case "$(ls -ldL /run/lock 2>/dev/null)" in d???????w*) lock=/run/lock/{file};; esac
fi
test -e "$lock" || test -L "$lock" || ( set -C; umask 0; : >"$lock" ) 2>/dev/null
set -- $(ls -ld "$lock")
if test -L "$lock" || ! test -f "$lock" || test "$2" != 1
then echo "$lock"; ( exit {planted} )
else
  if test -O "$lock"; then exec 9>>"$lock"; else exec 9<"$lock"; fi
  if flock -n 9
  then test ! -O "$lock" || printf %s {about} >"$lock"
  else head -c 4096 "$lock"; command -v flock >/dev/null && ( exit {held} )
  fi
fi
"""
"""Where host.state.lock_folder() has it there. What others may have put in its place is looked at, and
nothing is written but to a file of one's own, which nobody else can replace in a sticky folder."""


class NoLockError(RtmeterError):
    """The machine cannot be locked until somebody has seen to it: to wait is in vain."""


def take(shell: Shell, say: Callable[[str], None] | None = None) -> None:
    """Holds the lock until the shell ends. Raises RtmeterError, also if somebody else holds it; with ``say``
    that one is waited for, and said. NoLockError if nobody can hold it there."""
    about = quote(machine_lock.about(f"rtmeter on {socket.gethostname()}"))
    names = {"file": machine_lock.FILE, "given": state.VARIABLE}
    script = _TAKE.format(**names, about=about, held=_HELD, planted=_PLANTED)
    code, said = shell.run(script)
    if code == _HELD and say is not None:
        say(f"waiting for {machine_lock.holder(said)}")
        while code == _HELD:
            time.sleep(_LOOK_EVERY_S)
            code, said = shell.run(script)
    if code == _HELD:
        message = f"is measured already, by {machine_lock.holder(said)}"
        cut = "where its link was cut, the sshd there ends it once it notices (ClientAliveInterval 5)"
        raise shell.ssh.error(message, f"wait until that has ended, or end it; {cut}")
    at: dict[str, Any] = {"field": shell.ssh.field, "value": shell.ssh.target}
    if code == _PLANTED:
        message = f"has no file of its own at {said.decode(errors='replace').strip()} to be locked"
        raise NoLockError(message, **at, remedy="see who put there what is there, and remove it")
    if code != 0:
        raise NoLockError("lacks the program flock", **at, remedy="install util-linux there")
