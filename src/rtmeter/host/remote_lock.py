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
_HELD, _PLANTED, _REFUSED, _LACKING = 75, 76, 77, 127  # the last is the shell's
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
  flock -n 9
  case $? in
  0) test ! -O "$lock" || printf %s {about} >"$lock" || true;;
  1) head -c 4096 "$lock"; ( exit {held} );;
  {lacking}) ( exit {lacking} );;
  *) echo "$lock"; ( exit {refused} );;
  esac
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
    codes = {"held": _HELD, "planted": _PLANTED, "refused": _REFUSED, "lacking": _LACKING}
    script = _TAKE.format(**names, **codes, about=about)
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
    if code == _LACKING:
        raise NoLockError("lacks the program flock", **at, remedy="install util-linux there")
    if code != 0:
        message = f"refuses to lock {said.decode(errors='replace').strip() or machine_lock.FILE}"
        remedy = f"see whether its file system has locks; {state.VARIABLE}, set there, names another folder"
        raise NoLockError(message, **at, remedy=remedy)
