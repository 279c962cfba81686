"""Records the kernel's events of another machine, which has nothing but a shell.

A script there moves the whole pages into files of its own, twice a second; they come here when it has ended.
The end of the connection ends it, with its files and its tracefs instance.
"""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress
from shlex import quote
from typing import Any

from rtmeter.conditions.companion import Companion
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.trace.of_threads import ThreadsRecorder
from rtmeter.trace.recorder import Recorder

_STARTS_S, _ENDS_S = 30, 90
_LOOK_EVERY_S = 0.02

_THERE = r"""
instance={instance} page={page} most={most_pages} total=0 failed=
trap "" PIPE
{keep_off}
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/rtmeter-XXXXXX") || exit
cd "$instance/per_cpu" || exit
exec 3<&0
{{ while read -r _; do :; done; : >"$folder/cut"; }} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
echo "$folder"
move() {{
  total=$((total + $2))
  said=$(timeout 9 dd bs="$page" count="$2" if="$1/trace_pipe_raw" 2>&1 >>"$folder/$1") && return
  case $? in 124 | 143) return;; esac
  failed=$(echo "$said" | grep -m 1 '^dd: ' || echo "dd failed")
  echo 0 >../tracing_on
}}
whole() {{
  set -- $(grep -H '^bytes:' cpu*/stats)
  while test $# -gt 1 && test -z "$failed"; do
    test "$(($2 / page))" -lt 1 || move "${{1%%/*}}" "$(($2 / page))"
    shift 2
  done
}}
while test -d . && ! test -e "$folder/end" && ! test -e "$folder/cut"; do
  if test -z "$failed" && test "$total" -lt "$most"; then
    whole
    if test "$total" -ge "$most"; then
      echo 0 >../tracing_on
      echo "cut $(sed -n 's/^now ts: *//p' cpu0/stats)"
    fi
  fi
  sleep 0.5 2>/dev/null || sleep 1
done
if test -e "$folder/end"; then
  whole
  for cpu in cpu*; do
    for _ in 1 2 3 4; do
      test -z "$failed" && test "$(sed -n 's/^bytes: *//p' "$cpu/stats")" -gt 0 || break
      move "$cpu" 1
    done
  done
  test -z "$failed" || echo "failed ${{failed##*: }}"
  exec 3<&-
  kill "$watcher"
  exit 0
fi
echo 0 >../tracing_on
cd /
rm -rf "$folder"
rmdir "$instance"
"""
"""What a CPU has is counted without the heads of its pages, so as many pages are whole; one that is being
filled would be filled by its own reading. A page that was counted and is not there is not waited for (timeout
says 124, that of busybox 143). What dd says goes through no file: there may be no room for one. Nobody may
hear what is said at the end, which must not end it before it has cleaned up."""

_CLOCKS = ("grep", "-m", "5", "-e", "now at", "-e", "offset:", "/proc/timer_list")
"""The monotonic clock, and by how much those of a CPU show more: itself, real time, boot time, TAI."""


class RecorderThere(Recorder):
    """As Recorder, of the machine that ``root`` reaches; all is kept, until there is no more room."""

    field = "explain"
    """What it is recorded for."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        assert isinstance(self._root, RemoteRoot)
        self._there = self._root
        self._script: Companion | None = None
        self._their_folder = ""

    def _open_switch(self) -> None:
        """There is nothing to be held open."""

    def _switch(self, *, on: bool) -> None:
        self._write("tracing_on", "1" if on else "0")

    def _begin(self) -> None:
        script = _THERE.format(
            instance=quote(self._instance),
            page=self._form.size,
            most_pages=self.most_bytes // self._form.size,
            keep_off=self._keep_off(),
        )
        self._script = Companion(self._there.shell.ssh.command(script), field=self.field, held=True)
        try:
            self._their_folder = self._first_line(self._script)
            self._switch(on=True)
        except BaseException:
            self._close()
            raise

    def _first_line(self, script: Companion) -> str:
        """The folder of its files. Raises RtmeterError if it does not start."""
        limit = time.monotonic() + _STARTS_S
        while "\n" not in (said := script.stdout()):
            if script.exit_code is not None or time.monotonic() > limit:
                message = f"the recording there did not start: {script.how_it_ended}"
                raise self._there.shell.ssh.error(message, "free space in its /tmp, or set TMPDIR there")
            time.sleep(_LOOK_EVERY_S)
        return said.partition("\n")[0]

    def _keep_off(self) -> str:
        rest = set(self._there.cpus()) - self._avoid
        return f"taskset -p {sum(1 << cpu for cpu in rest):x} $$ >/dev/null" if rest else ""

    def stop(self) -> None:
        """Ends the recording and brings its pages; parts() tells what went wrong."""
        if self._script is None:
            return
        try:
            self._switch(on=False)
            self._there.do(f": >{quote(self._their_folder)}/end")
            self._script.wait(_ENDS_S)
            self._heed(self._script)
            if self._failed is None:
                self._bring()
        except OSError as error:
            self._failed = error
        except RtmeterError as error:
            self._failed = OSError(errno.EIO, error.message)
        finally:
            if self._spool is not None:
                self._spool.end()
            self._close()

    def _heed(self, script: Companion) -> None:
        """What it said while it ran."""
        if script.exit_code != 0:
            ended = "did not end" if script.exit_code is None else f"ended: {script.how_it_ended}"
            raise OSError(errno.EIO, f"the recording there {ended}")
        for word, _, said in (line.partition(" ") for line in script.stdout().splitlines()[1:]):
            if word == "failed":
                self._failed = OSError(errno.EIO, said.lower())
            elif word == "cut":
                self._cut_ns = round(float(said) * 1e6) * 1000

    def _bring(self) -> None:
        """All files in one go, one after the other."""
        assert self._spool is not None
        folder = quote(self._their_folder)
        code, said = self._there.shell.run(f"cd {folder} && wc -c cpu[0-9]*")
        sizes = {int(cpu): int(size) for size, cpu in re.findall(r"^ *(\d+) cpu(\d+)$", said.decode(), re.M)}
        if code != 0 or not sizes:
            raise OSError(errno.EIO, f"its files are not there: {said.decode(errors='replace').strip()}")
        pages = self._folder / "trace.cpu.brought"
        names = " ".join(f"cpu{cpu}" for cpu in sizes)
        with pages.open("wb+") as file:
            self._there.shell.ssh.run(f"cd {folder} && cat {names}", limit_s=600, into=file)
            file.seek(0)
            for cpu, size in sizes.items():
                while size and (part := file.read(min(size, 1 << 20))):
                    done = os.write(self._spool.files[cpu], part)
                    file.seek(done - len(part), os.SEEK_CUR)
                    self._bytes, size = self._bytes + done, size - done
                if size:
                    raise OSError(errno.EIO, f"the last {size:,} bytes of CPU {cpu} did not come")
        pages.unlink()

    def _close(self) -> None:
        """Ends what is left of it there."""
        script, self._script = self._script, None
        if script is not None:
            script.end()
            script.close()
        if self._their_folder:
            with suppress(ConnectionLostError):  # then the script there removes it
                self._there.shell.run(f"rm -rf -- {quote(self._their_folder)}")

    def _why(self, error: OSError) -> RtmeterError:
        said = error.strerror or str(error)
        message = f"the trace of {self._there.host} cannot be had: {said}"
        remedy = "free space in its /tmp, or set TMPDIR there"
        return RtmeterError(message, field=self.field, remedy=remedy if "space" in said else "measure again")

    def _architecture(self) -> str:
        return self._there.run(["uname", "-m"])[1].strip()

    def _offsets_ns(self) -> tuple[int, ...]:
        return self._clocks()[1:] or (0, 0, 0)

    def anchors(self) -> dict[str, int]:
        """What the clocks there showed at one time, ns; empty if that cannot be told."""
        if not (found := self._clocks()):
            return {}
        now, realtime, boottime, _ = found
        return {"monotonic_ns": now, "realtime_ns": now + realtime, "boottime_ns": now + boottime}

    def _clocks(self) -> tuple[int, ...]:
        """The monotonic one, and by how much real time, boot time and TAI show more; or nothing."""
        found = [
            int(number) for number in re.findall(r"(?:at|offset:) *(\d+) nsecs", self._there.run(_CLOCKS)[1])
        ]
        return (found[0], *found[2:]) if len(found) == 5 else ()


class ThreadsRecorderThere(RecorderThere, ThreadsRecorder):
    """As ThreadsRecorder, of threads of the machine that ``root`` reaches."""

    field, most_bytes = "attach", 1 << 30
