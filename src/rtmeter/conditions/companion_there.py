"""A program that runs beside the probes on another machine, for as long as the connection holds."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Sequence
from shlex import join

from rtmeter.conditions.companion import Companion
from rtmeter.host.ssh import Ssh

GRACE_S = 15  # over a network, and for a machine under load
_BEAT_S, _SILENCE_S = 5, 60

_THERE = """
{before}
exec 3<&0
setsid {command} 3<&- &
program=$!
echo "$program"
{{
  while test -n "$(timeout {silence_s} head -c 1 <&3)"; do :; done
  kill -TERM "$program"
  n=0
  while kill -0 "$program" && test "$n" -lt 50; do sleep 0.1; n=$((n + 1)); done
  kill -0 "$program" && kill -KILL "-$program"
}} >/dev/null 2>&1 &
wait "$program"
code=$?
kill -KILL "-$program" 2>/dev/null
{after}
exit "$code"
"""
"""The end of standard input, and so of the connection, ends it, with its children; so does silence: where a
machine or a network fails, nobody closes the connection."""


class CompanionThere(Companion):
    """As Companion, on the machine that ``ssh`` reaches."""

    def __init__(
        self,
        ssh: Ssh,
        command: Sequence[str],
        *,
        field: str,
        cpus: Sequence[int] | None = None,
        more: str = "",
        before: str = ":",
        after: str = ":",
    ) -> None:
        """``more``: further words of the command, as a shell there reads them; ``before``, ``after``: what
        that runs before it, and when it has ended."""
        pinned = [] if cpus is None else ["taskset", f"{sum(1 << cpu for cpu in cpus):x}"]
        words = f"{join([*pinned, *command])} {more}"
        script = _THERE.format(command=words, before=before, after=after, silence_s=_SILENCE_S)
        super().__init__(ssh.command(script), field=field, held=True)
        self._done = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="rtmeter-companion", daemon=True)
        self._beating.start()

    @property
    def program_pid(self) -> int | None:
        found = self._told()
        return None if found is None else int(found[1])

    def stdout(self) -> str:
        found = self._told()
        return "" if found is None else found.string[found.end() :]

    def end(self, how: signal.Signals = signal.SIGTERM, grace_s: float = GRACE_S) -> None:
        self._done.set()
        self._beating.join(GRACE_S)  # it may hang in a connection that the end of its program ends
        super().end(how, grace_s)

    def _told(self) -> re.Match[str] | None:
        """Where its pid is: a login shell may have spoken before."""
        return re.search(r"^(\d+)\n", super().stdout(), re.MULTILINE)

    def _beat(self) -> None:
        while not self._done.wait(_BEAT_S):
            self.beat()
