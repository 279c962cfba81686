"""Where a probe runs: here, or on another host that has nothing but a shell and sshd."""

from __future__ import annotations

import json
import math
import shlex
import signal
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import Ssh
from rtmeter.measure.probe.elf import HEAD_BYTES, MAGIC, machines_of, system_of
from rtmeter.measure.probe.images import image_for, libc_words
from rtmeter.measure.probe.probes import PREFIX, Probe, describe, find_probes
from rtmeter.model import Doubt
from rtmeter.values import from_json


class Place(Protocol):
    """Where one probe runs, from before its start until its log is here."""

    def command(self, probe: Probe, config: dict[str, Any], folder: Path) -> list[str]:
        """What starts the probe with that config, which names its log in ``folder``. Raises RtmeterError."""

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        """Lets it end and keep what it measured."""

    def collect(self) -> list[Doubt]:
        """Brings its log and leaves nothing behind, or says what stays; it has ended. Raises RtmeterError if
        the log could not be brought, which is still where it was."""


class Here:
    """This machine; ``through`` is a command that becomes the probe."""

    def __init__(self, through: Sequence[str] = ()) -> None:
        self._through = through
        self._config: Path | None = None

    def command(self, probe: Probe, config: dict[str, Any], folder: Path) -> list[str]:
        name = Path(config["log"]).stem if config["role"] == "beside" else config["role"]
        self._config = folder / f"{name}.config.json"
        self._config.write_text(json.dumps(config, indent=1), encoding="utf-8")
        return [*self._through, str(probe.path), "--config", str(self._config)]

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)

    def collect(self) -> list[Doubt]:
        if self._config is not None:
            self._config.unlink(missing_ok=True)
        return []


_LOOK = """
uname -m
echo $(od -An -tx1 -N{head_bytes} /bin/sh 2>/dev/null)
command -v {name} || echo
"""
_MAKE_FOLDER = """
folder=$(mktemp -d "${TMPDIR:-/tmp}/rtmeter-XXXXXX") && echo "$folder"
"""

_GRACE_S = 15  # besides the loss timeout; longer than the front waits
_WAITED_FOR = """\
watcher=$!
chrt -f -p 99 "$watcher" >/dev/null 2>&1
exec 3<&-
wait "$probe"
code=$?
kill "$watcher"
exit "$code"
"""
_WATCHED = """
exec 3<&0
setsid {command} <&3 3<&- &
probe=$!
{{
  while read -r _; do :; done
  n=0
  while kill -0 "$probe" && test "$n" -lt {grace_s}; do sleep 1; n=$((n + 1)); done
  kill -KILL "-$probe"
}} <&3 3<&- >/dev/null 2>&1 &
{rest}"""
"""The probe ends when standard input does, and with it the connection; one that does not is killed. Who sees
to that sleeps, and is above what may keep the CPUs to itself."""


_TOLD = """
exec 3<&0
mkfifo {fifo} || exit
setsid {command} <{fifo} 3<&- &
probe=$!
{{
  while read -r line; do echo "$line"; done
  exec >/dev/null
  n=0
  while kill -0 "$probe" && test "$n" -lt {grace_s}; do sleep 1; n=$((n + 1)); done
  kill -KILL "-$probe"
}} <&3 3<&- >{fifo} 2>/dev/null &
{rest}"""
"""The same of a probe that is told something: every line is handed on to it."""


def adapters_there(url: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Those of this machine's adapters; of one that a target cannot run, why: ``error``. Raises RtmeterError
    if the target cannot be reached."""
    ssh = Ssh(url, "--on")
    ssh.run(":")
    found: list[dict[str, Any]] = []
    for name, path in find_probes().items():
        if name not in names:
            continue
        entry: dict[str, Any] = {"name": name}
        try:
            found.append(entry | There(ssh).tried(describe(name, path)))
        except RtmeterError as error:
            found.append(entry | {"error": error.to_json()})
    return found


def _read_script(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise RtmeterError(message, field="script", value=path, remedy="see the path") from None


def _bytes(told: str) -> bytes:
    """As od(1) tells them; none if it told something else."""
    try:
        return bytes.fromhex(told)
    except ValueError:
        return b""


class _OtherLibcError(RtmeterError):
    """The probe cannot be loaded there."""


class There:
    """Another host; ``through`` is a command there that becomes the probe.

    The probe is carried over if there is one here for that machine, and used if its libc can load it; else
    the one in the PATH there is used, which must say the same of itself.
    """

    def __init__(self, ssh: Ssh, through: Sequence[str] = (), *, told: bool = False) -> None:
        """``told``: lines on the probe's standard input are for it."""
        self._ssh, self._through, self._told = ssh, through, told
        self._folder = ""  # there
        self._log: Path | None = None  # here
        self._image: bytes | None = None  # of the probe, if it was carried over

    def look(self, probe: Probe) -> None:
        """Changes nothing there. Raises RtmeterError if the host cannot be reached, or is of an architecture
        for which it has no probe, or none of the same version."""
        machine, installed, _ = self._looked(probe)
        if image_for(probe, machine) is None:
            self._check(probe, self._executable(probe, machine, installed))

    def _looked(self, probe: Probe, then: str = "echo") -> tuple[str, str, str]:
        """For which machines its programs are, the path of the probe that is there, and what ``then`` says;
        each empty if nothing is said."""
        look = _LOOK.format(name=shlex.quote(PREFIX + probe.name), head_bytes=HEAD_BYTES)
        said = self._ssh.run(look + then).decode(errors="replace").splitlines()
        kernel, shell, installed, folder = (*said[-4:], "", "", "", "")[:4]
        return system_of(kernel, _bytes(shell)), installed, folder

    def tried(self, probe: Probe) -> dict[str, Any]:
        """What the probe says of itself there. Raises RtmeterError if it does not run there, or stays."""
        try:
            facts = self._found(probe)[1]
        finally:
            left = self.collect()
        for doubt in left:
            raise self._ssh.error(doubt.message, doubt.hint)
        return facts

    def _found(self, probe: Probe) -> tuple[str, dict[str, Any]]:
        """The probe's path there, in a folder of its own if it is carried over; what it says of itself."""
        machine, installed, self._folder = self._looked(probe, _MAKE_FOLDER)
        path = self._executable(probe, machine, installed)
        try:
            return path, self._check(probe, path)
        except _OtherLibcError:
            if installed in ("", path):
                raise
        self._image = None
        return installed, self._check(probe, installed)

    def command(self, probe: Probe, config: dict[str, Any], folder: Path) -> list[str]:
        path, _ = self._found(probe)
        self._log = Path(config["log"])
        carried = config | {"log": f"{self._folder}/{self._log.name}"}
        if probe.scripted and (script := config.get("options", {}).get("script")):
            self._ssh.run(f"cat >{self._in('script')}", _read_script(script))
            carried["options"] = config["options"] | {"script": f"{self._folder}/script"}
        self._ssh.run(f"cat >{self._in('config.json')}", json.dumps(carried).encode())
        command = [*self._through, path, "--config", f"{self._folder}/config.json"]
        grace_s = _GRACE_S + math.ceil(config.get("loss_timeout_ns", 0) / 1e9)
        script = _TOLD if self._told else _WATCHED
        words = {"command": shlex.join(command), "grace_s": grace_s, "rest": _WAITED_FOR}
        return self._ssh.command(script.format(fifo=self._in("fifo"), **words))

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        process.stdin.close()  # what a signal to ssh would not say there

    def collect(self) -> list[Doubt]:
        if not self._folder:
            return []
        folder, self._folder = self._folder, ""
        if self._log is not None:
            self._bring(folder, self._log)
        try:
            self._ssh.run(f"rm -rf {shlex.quote(folder)}")
        except RtmeterError as error:
            message = f"the folder {folder} stays on {self._ssh.target}: {error.message}"
            return [Doubt("folder_not_removed", message, "remove it there")]
        return []

    def _bring(self, folder: str, log: Path) -> None:
        theirs = shlex.quote(f"{folder}/{log.name}")
        try:
            with log.open("wb") as file:
                self._ssh.run(f"test ! -e {theirs} || cat {theirs}", limit_s=600, into=file)
        except RtmeterError as error:
            error.remedy = f"its log stays there, in {folder}; {error.remedy}"
            raise
        if not log.stat().st_size:  # it never came to that
            log.unlink()

    def _in(self, name: str) -> str:
        return shlex.quote(f"{self._folder}/{name}")

    def _executable(self, probe: Probe, machine: str, installed: str) -> str:
        """The probe's path there, carried over if need be."""
        self._image = image = image_for(probe, machine)
        if image is not None:
            path = f"{self._folder}/{PREFIX}{probe.name}"
            self._ssh.run(f"cat >{shlex.quote(path)} && chmod 700 {shlex.quote(path)}", image, limit_s=600)
            return path
        if installed:
            head = self._ssh.run(f"head -c {HEAD_BYTES} {shlex.quote(installed)}")
            if head.startswith(MAGIC) and machine not in (built_for := machines_of(head, machine)):
                message = f"has a {installed} for another architecture ({built_for[-1]}, and it is {machine})"
                raise self._ssh.error(message, f"put one there that was built for {machine}")
            return installed
        runs_on = machines_of(probe.path.read_bytes(), "another")
        raise self._ssh.error(
            f"is a machine of another architecture ({machine}; the probe of {probe.name} here is for "
            f"{runs_on[-1]})",
            f"put {PREFIX}{probe.name}, built for {machine}, into the PATH there, or name its folder in "
            "RTMETER_PROBE_PATH here (docs/targets.md)",
        )

    def _check(self, probe: Probe, path: str) -> dict[str, Any]:
        """What it says of itself there, where it is of the same version."""
        try:
            facts: dict[str, Any] = from_json(self._described(probe, path))
        except ValueError:
            raise self._ssh.error(
                f"has a {path} that does not describe itself", "put the same probe there"
            ) from None
        for key, what in (("name", "adapter"), ("rtmeter", "version"), ("version", "version")):
            theirs, ours = facts.get(key), probe.facts.get(key)
            if theirs != ours:
                message = f"has a {path} of another {what}: {theirs}, and here is {ours}"
                raise self._ssh.error(message, "put the same probe there")
        return facts

    def _described(self, probe: Probe, path: str) -> bytes:
        """What it says of itself. Raises RtmeterError, in other words where its libc is another one."""
        try:
            return self._ssh.run(f"{shlex.quote(path)} --describe")
        except RtmeterError as error:
            words = libc_words(self._image or b"", error.message)
            if words is None:
                raise
            remedy = f"put {PREFIX}{probe.name}, built for that system, into the PATH there"
            raise _OtherLibcError(words, **self._ssh.error(words, remedy).about) from None
