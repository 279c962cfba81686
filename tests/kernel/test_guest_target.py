"""A guest as a target: a machine with a kernel of its own behind a real sshd, whose power fails."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from stopping import emulator_of

import boots
from front import ended, rows_of, rtmeter, running
from rtmeter.results.store import CLIENT_LOG
from stored import cell_json
from waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 600

pytestmark = [
    pytest.mark.full_only("boots a kernel in an emulated machine; make test-kernel runs it"),
    pytest.mark.timeout(3 * LIMIT_S),
]


class Guest:
    """Debian's PREEMPT_RT kernel; ``out`` is its disk."""

    def __init__(self, folder: Path) -> None:
        self._out, self._files = folder / "out", folder
        self._out.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        for name in ("host", "key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        public = (folder / "host.pub").read_text().split()[:2]
        (folder / "known").write_text(f"[127.0.0.1]:{self._port} {' '.join(public)}\n")
        for name in ("host", "key.pub"):
            (self._out / name).write_bytes((folder / name).read_bytes())
        self.url = f"ssh://root@127.0.0.1:{self._port}"
        files = f"-i {folder / 'key'} -oUserKnownHostsFile={folder / 'known'}"
        self.ssh = f"ssh -F none {files} -oGlobalKnownHostsFile=/dev/null -oIdentitiesOnly=yes"
        self.journal = self._out / "state" / "journal"

    def boot(self) -> None:
        """Returns once one can log in."""
        command = [ROOT / "tools" / "kernel-guest.sh", "rt", self._out, "bash"]
        command += [ROOT / "tests" / "kernel" / "guest_board.sh", "/out"]
        env = os.environ | {"FORWARD": str(self._port), "LIMIT_S": str(2 * LIMIT_S)}
        with (self._files / "said").open("ab") as said:
            self._machine = subprocess.Popen(command, env=env, stdout=said, stderr=said)
        until(self._answers, LIMIT_S, of=self._machine)

    def cut_power(self) -> None:
        os.kill(emulator_of(self._out), signal.SIGKILL)
        self._machine.wait(60)

    def said(self, script: str) -> str:
        return self._asked(script).stdout.strip()

    def wait_for_samples(self, front: subprocess.Popen[str]) -> None:
        """Until the probe of the cell that is cut measures: the other one has fewer than that."""
        until(
            lambda: any(rows_of(log) > 20 for log in self._out.glob(f"tmp/*/{CLIENT_LOG}")), LIMIT_S, of=front
        )

    def _answers(self) -> bool:
        return self._asked("true").returncode == 0

    def _asked(self, script: str) -> subprocess.CompletedProcess[str]:
        target = ["-p", str(self._port), "-oConnectTimeout=20", "root@127.0.0.1"]
        command = [*self.ssh.split(), *target, script]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    one = Guest(tmp_path)
    one.boot()
    try:
        yield one
    finally:
        one.cut_power()


def test_a_run_goes_on_after_a_machine_lost_its_power_in_the_middle_of_a_cell(
    guest: Guest, tmp_path: Path
) -> None:
    throttled = "cat /proc/sys/kernel/sched_rt_runtime_us"
    before, boot_id = guest.said(throttled), guest.said("cat /proc/sys/kernel/random/boot_id")
    campaign, out = tmp_path / "boots.yaml", tmp_path / "results"
    campaign.write_text(boots.campaign(guest.url, "10ms", "rt_throttling: off", 1500))
    run = ["run", campaign, "--out", out]
    with running(*run, RTMETER_SSH=guest.ssh) as process:
        guest.wait_for_samples(process)
        guest.cut_power()
        done = ended(process)
    assert done.code == 1, done.err
    guest.boot()
    assert guest.said("cat /proc/sys/kernel/random/boot_id") != boot_id
    cells = {name: next(out.glob(f"*/*/*/{name}")) for name in ("whole", "cut")}
    assert cell_json(cells["cut"])["status"] == "failed"
    assert guest.journal.exists()
    again = rtmeter(*run, "--resume", RTMETER_SSH=guest.ssh)
    assert again.code == 0, again.err
    assert "whole: done before" in again.err
    for cell in map(cell_json, cells.values()):
        assert (cell["status"], cell["valid"]) == ("complete", True)
        assert cell["machine"]["kernel"].endswith("-rt-amd64")
    assert (guest.said(throttled), guest.journal.exists()) == (before, False)
