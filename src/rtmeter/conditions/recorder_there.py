"""Records the kernel's events of another machine, which has nothing but a shell.

A script there moves the whole pages into files of its own, twice a second. Those of a long run that no chosen
release needs are removed there while it is measured (spool_there.py); the others come here when it has ended.
The end of the connection ends it, with its files and its tracefs instance.
"""

from __future__ import annotations

import errno
import re
import time
from contextlib import suppress
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from rtmeter.conditions.companion import Companion
from rtmeter.conditions.spool_there import LIMIT_S, SpoolThere, followed
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError, Shell
from rtmeter.results.store import CLIENT_LOG
from rtmeter.trace.of_threads import ThreadsRecorder
from rtmeter.trace.recorder import Recorder

_STARTS_S, _ENDS_S = 30, 90
_LOOK_EVERY_S = 0.02
_SETTLE_EVERY_S = 1
_LOG_BYTES = 1 << 20
"""That come at once."""

_THERE = r"""
instance={instance} page={page} most={most_pages} a_piece={piece_pages} ends={ends}
total=0 gone=0 pages=0 piece=0 failed=
trap "" PIPE
{keep_off}
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/rtmeter-XXXXXX") || exit
cd "$instance/per_cpu" || exit
exec 3<&0
{{ while read -r _; do :; done; : >"$folder/cut"; }} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
echo "folder $folder"
now() {{ sed -n 's/^now ts: *//p' cpu0/stats; }}
move() {{
  total=$((total + $2)) pages=$((pages + $2))
  said=$(timeout 9 dd bs="$page" count="$2" if="$1/trace_pipe_raw" 2>&1 >>"$folder/$1") && return
  case $? in 124 | 143) return;; esac
  failed=$(echo "$said" | grep -m 1 '^dd: ' || echo "dd failed")
  echo 0 >../tracing_on
}}
whole() {{
  left=$1
  set -- $(grep -H '^bytes:' cpu*/stats)
  while test $# -gt 1 && test -z "$failed"; do
    count=$(($2 / page))
    test "$count" -le "$left" || count=$left
    left=$((left - count))
    test "$count" -lt 1 || move "${{1%%/*}}" "$count"
    shift 2
  done
}}
end_piece() {{
  set -- "$folder"/cpu[0-9]*
  test -e "$1" || return
  place=$(printf '%s/piece.%06d' "$folder" "$piece")
  if said=$(mkdir "$place" 2>&1 && mv "$@" "$place" 2>&1); then
    echo "piece $piece $pages $(now)"
    piece=$((piece + 1)) pages=0
  else
    failed=$said
    echo 0 >../tracing_on
  fi
}}
while test -d . && ! test -e "$folder/end" && ! test -e "$folder/cut"; do
  test ! -e "$folder/gone" || read -r gone <"$folder/gone"
  if test -z "$failed" && test "$((total - gone))" -lt "$most"; then
    left=$((most - total + gone))
    test "$left" -le "$((a_piece - pages))" || left=$((a_piece - pages))
    whole "$left"
    if test "$ends" && test "$total" -ge "$most"; then
      echo 0 >../tracing_on
      echo "cut $(now)"
    fi
    test "$pages" -lt "$a_piece" || {{ end_piece; continue; }}
  fi
  sleep 0.5 2>/dev/null || sleep 1
done
if test -e "$folder/end"; then
  for _ in 1 2 3 4; do whole "$((1 << 30))"; done
  for cpu in cpu*; do
    for _ in 1 2 3 4; do
      test -z "$failed" && test "$(sed -n 's/^bytes: *//p' "$cpu/stats")" -gt 0 || break
      move "$cpu" 1
    done
  done
  end_piece
  test -z "$failed" || echo "failed ${{failed##*: }}"
  exec 3<&-
  kill "$watcher"
  exit 0
fi
echo 0 >../tracing_on
cd /
rm -rf "$folder" || {{ sleep 1; rm -rf "$folder"; }}
rmdir "$instance"
"""
"""What a CPU has is counted without the heads of its pages, so as many pages are whole; one that is being
filled would be filled by its own reading. A page that was counted and is not there is not waited for (timeout
says 124, that of busybox 143). Where there is no room until some is made, the kernel's own buffer loses what
is oldest, and counts it; a recording without a choice is over (``ends``). At the end all comes that it still
has, counted anew: what is free in many pages is as much as several. What dd says goes through no file:
there may be no room for one. Nobody may hear what is said at the end, which must not end it before it has
cleaned up, also where pages were just being removed."""

_CLOCKS = ("grep", "-m", "5", "-e", "now at", "-e", "offset:", "/proc/timer_list")
"""The monotonic clock, and by how much those of a CPU show more: itself, real time, boot time, TAI."""


class RecorderThere(Recorder):
    """As Recorder, of the machine that ``root`` reaches, which is asked for more of the log that ``releases``
    reads (spool_there.followed()), once that must be known."""

    field = "explain"
    """What it is recorded for."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        assert isinstance(self._root, RemoteRoot)
        self._there = self._root
        self._script: Companion | None = None
        self._their_folder = ""
        self._old_logs: set[str] = set()
        self._log: str | None = None
        self._shell: Shell | None = None
        """For the pages alone: what is done there by another one waits for none of it."""
        self._pieces = 0
        """That have ended."""

    def _open_switch(self) -> None:
        """There is nothing to be held open."""

    def _switch(self, *, on: bool) -> None:
        self._write("tracing_on", "1" if on else "0")

    def _new_spool(self) -> SpoolThere:
        pages = self._form.size
        self._pages_there = SpoolThere(self._folder, self._cpus, pages, self._chooser, self.most_bytes)
        return self._pages_there

    def _begin(self) -> None:
        pages, spool = self._form.size, self._pages_there
        script = _THERE.format(
            instance=quote(self._instance),
            page=pages,
            most_pages=self.most_bytes // pages,
            piece_pages=self.most_bytes if self._chooser is None else max(spool.piece_bytes // pages, 1),
            ends="" if self._chooser else "yes",
            keep_off=self._keep_off(),
        )
        self._script = Companion(self._there.shell.ssh.command(script), field=self.field, held=True)
        try:
            self._their_folder = self._begun(self._script)
            self._shell = Shell(self._there.shell.ssh)
            spool.begin(self._their_folder, self._shell)
            self._old_logs = set(self._logs())
            self._switch(on=True)
            if self._chooser is not None:
                self._thread.start()
        except BaseException:
            self._close()
            raise

    def _run(self) -> None:
        """Looks for pieces that have ended, which asks nothing there, and makes room where that is due."""
        try:
            while not self._done.wait(_SETTLE_EVERY_S):
                self._heed_pieces()
                if self._pages_there.is_crowded:
                    self._settle()
        except (OSError, RtmeterError) as error:
            self._failed = _as_os_error(error)
            with suppress(OSError, RtmeterError):
                self._switch(on=False)

    def _settle(self) -> None:
        self._follow()
        if self._chooser is not None and self._releases is not None:
            self._chooser.add(self._releases() or ())
        self._pages_there.settle()

    def _follow(self) -> None:
        """What has come of the log there. There is none before a probe has begun one, nor once it has come
        here as a whole."""
        if self._log is None and (new := sorted(set(self._logs()) - self._old_logs)):
            self._log = new[0]
        if self._log is None:
            return
        assert self._shell is not None
        with followed(self._folder).open("ab") as file:
            more = _LOG_BYTES
            while more == _LOG_BYTES:
                rest = f"tail -c +{file.tell() + 1} {quote(self._log)} 2>/dev/null | head -c {_LOG_BYTES}"
                more = file.write(self._shell.run(rest)[1])

    def _logs(self) -> list[str]:
        """Of probes there, those of killed runs too."""
        return self._there.glob(f"{PurePosixPath(self._their_folder).parent}/rtmeter-??????/{CLIENT_LOG}")

    def _begun(self, script: Companion) -> str:
        """The folder of its files. Raises RtmeterError if it does not start."""
        limit = time.monotonic() + _STARTS_S
        while not (said := self._said("folder")):
            if script.exit_code is not None or time.monotonic() > limit:
                message = f"the recording there did not start: {script.how_it_ended}"
                raise self._there.shell.ssh.error(message, "free space in its /tmp, or set TMPDIR there")
            time.sleep(_LOOK_EVERY_S)
        return said[0]

    def _keep_off(self) -> str:
        rest = set(self._there.cpus()) - self._avoid
        return f"taskset -p {sum(1 << cpu for cpu in rest):x} $$ >/dev/null" if rest else ""

    def stop(self) -> None:
        """Ends the recording and brings its pages; parts() tells what went wrong."""
        if self._script is None:
            return
        try:
            self._done.set()
            if self._thread.ident is not None:
                self._thread.join()
            self._switch(on=False)
            self._there.do(f": >{quote(self._their_folder)}/end")
            self._script.wait(_ENDS_S)
            self._heed(self._script)
            if self._failed is None:
                self._heed_pieces()
                if self._pages_there.is_crowded or not self._pages_there.whole:
                    self._settle()
                self._pages_there.end()
                self._pages_there.bring()
        except (OSError, RtmeterError) as error:
            self._failed = self._failed or _as_os_error(error)
        finally:
            self._bytes = self._pages_there.bytes
            self._close()

    def _heed_pieces(self) -> None:
        """Those that have ended since it was called last."""
        for said in self._said("piece")[self._pieces :]:
            if (told := re.fullmatch(r"(\d+) (\d+) (\d+\.\d+)", said)) is None:
                raise OSError(errno.EIO, f"the recording there says: piece {said}")
            self._pages_there.ended(int(told[1]), int(told[2]), _ns(told[3]) + 1000)
            self._pieces += 1

    def _heed(self, script: Companion) -> None:
        """How it ended."""
        if script.exit_code != 0:
            ended = "did not end" if script.exit_code is None else f"ended: {script.how_it_ended}"
            raise OSError(errno.EIO, f"the recording there {ended}")
        for said in self._said("failed"):
            self._failed = OSError(errno.EIO, said.lower())
        for said in self._said("cut"):
            self._cut_ns = _ns(said)

    def _said(self, what: str) -> list[str]:
        """The script's whole lines that begin so, without that; a login shell may have spoken before."""
        assert self._script is not None
        lines = (line.partition(" ") for line in self._script.stdout().split("\n")[:-1])
        return [said for word, _, said in lines if word == what]

    def _close(self) -> None:
        """Ends what is left of it there."""
        script, self._script = self._script, None
        if script is not None:
            script.end()
            script.close()
        if self._shell is not None:
            with suppress(ConnectionLostError):  # then the script there removes it
                self._shell.run(f"rm -rf -- {quote(self._their_folder)}", LIMIT_S)
            self._shell.close()
            self._shell = None

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


def _ns(seconds: str) -> int:
    """As the kernel's ``now ts`` has them, down to the microsecond."""
    return round(float(seconds) * 1e6) * 1000


def _as_os_error(error: OSError | RtmeterError) -> OSError:
    return error if isinstance(error, OSError) else OSError(errno.EIO, error.message)


class ThreadsRecorderThere(RecorderThere, ThreadsRecorder):
    """As ThreadsRecorder, of threads of the machine that ``root`` reaches."""

    field, most_bytes = "attach", 1 << 30

    def stop(self) -> None:
        """Ends the recording and brings its pages; parts() tells what went wrong."""
        with suppress(OSError, RtmeterError):  # which ending it finds too
            self.end_ns = next(iter(self._clocks()), None)
        super().stop()
