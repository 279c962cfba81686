"""The boards that the tests of this folder run on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from board import MACHINES, ROOT, Board

from hosts.two_hosts import Hosts
from rtmeter.host.ssh import PROGRAM


def entries() -> list[str]:
    """Of binfmt_misc, looked at where nobody else sees it."""
    at = "/proc/sys/fs/binfmt_misc"
    look = f"[ -e {at}/status ] || mount -t binfmt_misc binfmt_misc {at}; ls {at}"
    private = ["unshare", "--mount", "sh", "-c", look]
    return subprocess.run(private, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def mounted(folder: Path) -> list[str]:
    """What is mounted below the folder, as this machine sees it."""
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]


@pytest.fixture(scope="module", params=list(MACHINES))
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """One of each architecture, for which there are probes."""
    if not (ROOT / "build" / f"cross-{request.param}" / "adapters" / "posix").is_dir():
        pytest.skip(f"no probes for {request.param}: make cross")
    board = Board(request.param, "glibc", tmp_path_factory.mktemp(request.param))
    try:
        board.up()
        yield board
    finally:
        board.down()
    assert board.name not in entries() and mounted(board.own) == []


@pytest.fixture(scope="module")
def url(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where sshd answers, each of whose logins is on the board."""
    hosts = Hosts(tmp_path_factory.mktemp("hosts"), login=str(board.login))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROGRAM, f"ip netns exec {hosts.near} {hosts.ssh()}")
        try:
            hosts.up(another_machine=False)
            yield hosts.url
            hosts.wait_until_ended()
        finally:
            hosts.down()
