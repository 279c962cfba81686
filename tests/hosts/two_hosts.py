"""Two hosts: network namespaces joined by a veth pair, a real sshd in the second."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from front import rows_of
from rtmeter.results.store import CLIENT_LOG
from waiting import until

NEAR_ADDRESS, ADDRESS, PORT, DEVICE = "10.83.0.1", "10.83.0.2", 2222, "wire"
PLANTED_NS = 100_000 * 10**9
"""By how much the monotonic clock of the second host is ahead."""

BOOT_ID = "5ec0d3b0-0000-4000-8000-00000000b007"
"""Of the second host, where it is to pass for another machine; it then has its own locks too."""

_ANOTHER_MACHINE = """
mount --bind {boot_id} /proc/sys/kernel/random/boot_id
mount -t tmpfs -o mode=1777 locks /run/lock
exec "$@"
"""


def _run(*command: object) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


@dataclass
class Hosts:
    """Names of the namespaces; files of the daemon and of who may log in."""

    folder: Path
    near: str = field(default_factory=lambda: f"rtm{secrets.token_hex(3)}a")
    far: str = field(default_factory=lambda: f"rtm{secrets.token_hex(3)}b")
    daemon: subprocess.Popen[bytes] | None = None
    cable: Callable[[tuple[str, str], str], Any] | None = None  # lays one of its own; None: a veth pair
    relay: Any = None  # what it returned
    login: str = ""  # what runs in the place of each command there, which is in SSH_ORIGINAL_COMMAND
    _daemon: list[object] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The second host as a campaign names it."""
        return f"ssh://root@{ADDRESS}:{PORT}"

    @property
    def boot_id(self) -> Path:
        """Of the second host, where it passes for another machine."""
        return self.folder / "boot_id"

    @property
    def temporary(self) -> Path:
        """Where carried probes lie on the second host."""
        return self.folder / "temporary"

    @property
    def state(self) -> Path:
        """Where the second host keeps a journal of its own, as a target."""
        return self.folder / "state"

    def ssh(self, *, key: str = "key", known: str = "known") -> str:
        """What RTMETER_SSH is set to."""
        files = f"-i {self.folder / key} -oUserKnownHostsFile={self.folder / known}"
        return f"ssh -F none {files} -oGlobalKnownHostsFile=/dev/null -oIdentitiesOnly=yes"

    def near_end(self, **ssh: str) -> dict[str, Any]:
        """What makes front.rtmeter() run on the first host."""
        return {"inside": ["ip", "netns", "exec", self.near], "RTMETER_SSH": self.ssh(**ssh)}

    def sessions(self) -> list[int]:
        """What logins left running on the second host, by pid."""
        pids = _run("ip", "netns", "pids", self.far).split()
        return [int(pid) for pid in pids if self.daemon is not None and int(pid) not in self._of_daemon()]

    def connections(self) -> list[int]:
        """The daemon's own processes of logins, by pid, where both hosts are one machine."""
        assert self.daemon is not None
        return [pid for pid in self._of_daemon() if pid != self.daemon.pid]

    def programs(self) -> list[str]:
        """The names of what logins run on the second host."""
        return [name for pid in self.sessions() if (name := name_of(pid))]

    def logs(self) -> set[Path]:
        """Of the probes there; of cells that were killed they stay."""
        return set(self.temporary.glob(f"*/{CLIENT_LOG}"))

    def wait_for_samples(self, left: set[Path], process: subprocess.Popen[str]) -> None:
        """Until the probe there, whose log is none of those ``left``, has measured: it is connected then."""
        until(lambda: any(rows_of(log) > 100 for log in self.logs() - left), of=process)

    def wait_until_ended(self) -> None:
        """Until nothing of a login runs on the second host any more."""
        until(lambda: not self.sessions())

    def kill(self, program: str) -> None:
        """Kills all of that name that logins run on the second host."""
        for pid in self.sessions():
            if name_of(pid) == program:
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(pid, 9)

    def qdiscs(self) -> list[str]:
        """What queues the packets that each host sends."""
        return [_run("tc", "-n", host, "qdisc", "show", "dev", DEVICE) for host in (self.near, self.far)]

    def _of_daemon(self) -> set[int]:
        assert self.daemon is not None
        children = Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text().split()
        return {self.daemon.pid, *map(int, children)}  # unshare, and the sshd it became the parent of

    def up(self, *, another_machine: bool) -> None:
        """Makes both; another machine has other clocks (by PLANTED_NS), another boot and other locks."""
        for name in (self.near, self.far):
            _run("ip", "netns", "add", name)
        if self.cable is None:
            peer = ("type", "veth", "peer", DEVICE, "netns", self.far)
            _run("ip", "-n", self.near, "link", "add", DEVICE, *peer)
        else:
            self.relay = self.cable((self.near, self.far), DEVICE)
        for name, address in ((self.near, NEAR_ADDRESS), (self.far, ADDRESS)):
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
            for up in (DEVICE, "lo"):
                _run("ip", "-n", name, "link", "set", up, "up")
        for name in ("host", "key", "stranger"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
        public = (self.folder / "host.pub").read_text().split()[:2]
        (self.folder / "known").write_text(f"[{ADDRESS}]:{PORT} {' '.join(public)}\n")
        (self.folder / "empty").touch()
        Path("/run/sshd").mkdir(exist_ok=True)
        settings = ["StrictModes=no", "PermitRootLogin=yes", "UsePAM=no", f"Port={PORT}", "LogLevel=DEBUG1"]
        settings += [f"AuthorizedKeysFile={self.folder / 'key.pub'}", "PasswordAuthentication=no"]
        self.temporary.mkdir()
        home = self.folder / "home"  # an empty one: what a login does here besides costs more than a cell
        home.mkdir()
        settings += [f"SetEnv=TMPDIR={self.temporary} RTMETER_STATE_DIR={self.state} HOME={home}"]
        settings += ["KexAlgorithms=curve25519-sha256"]  # a fifth of the processor time of the default one
        settings += [f"ForceCommand={self.login}"] if self.login else []
        settings += [f"ListenAddress={ADDRESS}", "KbdInteractiveAuthentication=no", "PidFile=none"]
        command: list[object] = ["ip", "netns", "exec", self.far]
        if another_machine:
            self.boot_id.write_text(BOOT_ID + "\n")
            command += ["sh", "-ec", _ANOTHER_MACHINE.format(boot_id=self.boot_id), "sh"]
            command += [
                "unshare",
                "--time",
                "--monotonic",
                str(PLANTED_NS // 10**9),
                "--fork",
                "--kill-child",
            ]
        command += [shutil.which("sshd", path="/usr/sbin:/sbin") or "sshd", "-D", "-e", "-f", "/dev/null"]
        self._daemon = [*command, "-h", self.folder / "host", *(f"-o{setting}" for setting in settings)]
        self._listen()

    def boot_anew(self) -> None:
        """The second host, which passes for another machine, loses its power in the middle of whatever it
        does, says nothing of it, and is up again: what its kernel kept is forgotten, as is its /tmp."""
        _run("ip", "-n", self.far, "link", "set", DEVICE, "down")
        self._end()
        for path in self.temporary.iterdir():
            shutil.rmtree(path)
        subprocess.run(["tc", "-n", self.far, "qdisc", "del", "dev", DEVICE, "root"], capture_output=True)
        self.boot_id.write_text(f"{uuid.uuid4()}\n")
        _run("ip", "-n", self.far, "link", "set", DEVICE, "up")
        self._listen()

    def _listen(self) -> None:
        log = (self.folder / "sshd.log").open("ab")
        self.daemon = subprocess.Popen(list(map(str, self._daemon)), stderr=log)
        listening = ("ip", "netns", "exec", self.far, "ss", "-Hltn")
        try:
            until(lambda: f":{PORT}" in _run(*listening), of=self.daemon)
        except AssertionError as error:
            raise AssertionError((self.folder / "sshd.log").read_text()) from error

    def down(self) -> None:
        if self.relay is not None:
            self.relay.close()
        self._end()
        for name in (self.near, self.far):
            _kill_all_in(name)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _end(self) -> None:
        if self.daemon is not None:
            self.daemon.kill()  # unshare heeds no other signal; its child goes with it
            self.daemon.wait(20)
        _kill_all_in(self.far)


def _kill_all_in(namespace: str) -> None:
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
    for pid in map(int, listed.stdout.split()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
