"""stress-ng running: on this machine, or on another one for as long as the connection holds."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from shlex import join

from rtmeter.conditions.companion import Companion, require_program
from rtmeter.conditions.processes import children, processor_s
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root

_FIELD = "load"
_REPORT = "report.yaml"
_GRACE_S = 15  # over a network, and for a machine under load
_BEAT_S, _SILENCE_S = 5, 60

_THERE = """
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/rtmeter-XXXXXX") || exit
exec 3<&0
setsid {command} --temp-path "$folder" --yaml "$folder/{report}" >&2 3<&- &
load=$!
echo "$load"
{{
  while test -n "$(timeout {silence_s} head -c 1 <&3)"; do :; done
  kill -TERM "$load"
  n=0
  while kill -0 "$load" && test "$n" -lt 50; do sleep 0.1; n=$((n + 1)); done
  kill -0 "$load" && kill -KILL "-$load"
}} >/dev/null 2>&1 &
wait "$load"
code=$?
kill -KILL "-$load" 2>/dev/null
cat "$folder/{report}" 2>/dev/null
rm -rf "$folder"
exit "$code"
"""
"""The end of standard input, and so of the connection, ends it, with its children and files; so does silence:
where a machine or a network fails, nobody closes the connection."""


class StressNg:
    """It runs from the beginning with these arguments, on ``cpus`` (None: any), until end()."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, cpus: Sequence[int] | None, root: Root
    ) -> None:
        """``folder``: to be made, for its own files if it runs here. Raises RtmeterError if it is missing."""
        require_program("stress-ng", _FIELD, root)
        self._root, self._folder = root, folder
        self._done = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="rtmeter-load", daemon=True)
        command = ["stress-ng", *arguments, "--timeout", "0", "--metrics"]
        if isinstance(root, RemoteRoot):
            pinned = [] if cpus is None else ["taskset", f"{sum(1 << cpu for cpu in cpus):x}"]
            command = [*pinned, *command]
            script = _THERE.format(command=join(command), report=_REPORT, silence_s=_SILENCE_S)
            self._process = Companion(root.shell.ssh.command(script), field=_FIELD, held=True)
            self._beating.start()
        else:
            folder.mkdir()
            command += ["--temp-path", str(folder), "--yaml", str(folder / _REPORT)]
            self._process = Companion(command, field=_FIELD, cpus=cpus)

    @property
    def death(self) -> str | None:
        """How it ended; None while it runs."""
        return None if self._process.exit_code is None else self._process.how_it_ended

    def workers(self) -> int:
        """How many of its workers live."""
        return 0 if self.death or self._pid is None else children(self._pid, self._root)

    def processor_s(self) -> float:
        """Processor time that it and its workers took so far, in seconds."""
        return 0 if self._pid is None else processor_s(self._pid, self._root)

    def end(self) -> str:
        """Ends it and its workers, and removes its files; returns its report (YAML), if it made one."""
        if isinstance(self._root, RemoteRoot):
            self._done.set()
            self._beating.join(_GRACE_S)  # it may hang in a connection that the end of its program ends
            self._process.end(grace_s=_GRACE_S)
            report = self._process.stdout().partition("\n")[2]
        else:
            self._process.end(grace_s=_GRACE_S)  # its disk workers may have much to write still
            report = _text(self._folder / _REPORT)
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process.close()
        return report

    def _beat(self) -> None:
        while not self._done.wait(_BEAT_S):
            self._process.beat()

    @property
    def _pid(self) -> int | None:
        """Its process on the machine that it runs on; None if that is not known yet."""
        if not isinstance(self._root, RemoteRoot):
            return self._process.pid
        first, end, _ = self._process.stdout().partition("\n")
        return int(first) if end and first.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
