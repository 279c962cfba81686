"""A machine behind a shell reads, writes and refuses as this one does: the shell is one of this machine."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pretended_ssh import no_ssh

from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError, Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.machine import Intent, findings
from waiting import until

HERE = Root()
SHELLS = ["sh", *(["busybox sh"] if shutil.which("busybox") else [])]


@pytest.fixture(params=SHELLS)
def there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[RemoteRoot]:
    """With the usual programs, and with those of busybox."""
    monkeypatch.setenv(
        PROGRAM, no_ssh(tmp_path, f'echo "a profile may talk"; exec {request.param} -c "$last"')
    )
    shell = Shell(Ssh("ssh://there", "hosts.component"))
    yield RemoteRoot(shell=shell)
    shell.close()


def refusal(act: Callable[[], object]) -> int | None:
    """The number of the error, if there is one."""
    try:
        act()
    except OSError as error:
        return error.errno
    return None


@pytest.mark.parametrize("kind", ["not executable", "no program", "not there"])
def test_what_stands_for_ssh_and_cannot_be_run_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind != "not there":
        (tmp_path / "ssh").write_text("this is no program")
        (tmp_path / "ssh").chmod(0o644 if kind == "not executable" else 0o755)
    monkeypatch.setenv(PROGRAM, f"{tmp_path}/ssh -F robot.conf")
    ssh = Ssh("ssh://there", "on")
    why = {"not executable": "permission denied", "no program": "exec format error"}
    said = (
        f"on = 'ssh://there': needs the program {tmp_path}/ssh, which cannot be run: "
        f"{why.get(kind, 'no such file or directory')}; install openssh-client, or set {PROGRAM}"
    )
    for ask in (lambda: ssh.run("true"), lambda: Shell(ssh)):
        with pytest.raises(RtmeterError) as told:
            ask()
        assert str(told.value) == said


def test_it_reads_what_is_there(there: RemoteRoot, tmp_path: Path) -> None:
    (tmp_path / "odd $name").write_bytes(b"\n\x00\xff text\n\n")
    (tmp_path / "empty").touch()
    written = [str(tmp_path / "odd $name"), str(tmp_path / "empty")]
    names = [*written, "/proc/sys/kernel/osrelease", "/proc/cpuinfo", "/proc", "/proc/not there"]
    for name in names:
        assert there.read_bytes(name) == HERE.read_bytes(name)
        assert there.exists(name) == HERE.exists(name)
    files = [name for name in names if name != "/proc"]
    assert there.read_all(files) == HERE.read_all(files)
    assert there.read_all([]) == {}
    for pattern in ("/proc/sys/kernel/ran*/*", f"{tmp_path}/odd*", f"{tmp_path}/[0-9]*", "/sys/class/net/*/"):
        assert there.glob(pattern) == HERE.glob(pattern)
    (tmp_path / "link").symlink_to("empty")
    assert there.real_path(str(tmp_path / "link")) == HERE.real_path(str(tmp_path / "link"))


def test_what_a_file_says_is_never_taken_for_the_next_file(there: RemoteRoot, tmp_path: Path) -> None:
    """As a thread's name, which may hold any bytes."""
    names = [str(tmp_path / name) for name in ("a", "b", "c")]
    for name in names:
        Path(name).write_text(f"1 (\n==> /a <==\n) S\n==> {names[2]} <==\n{name}\n")
    assert there.read_all(names) == HERE.read_all(names)


def test_it_writes_what_is_there(there: RemoteRoot, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("longer than what comes")
    there.write(str(file), "it's $HOME\n")
    assert file.read_text() == "it's $HOME\n"
    there.make_folder(str(tmp_path / "made"))
    assert (tmp_path / "made").is_dir()
    there.remove_folder(str(tmp_path / "made"))
    assert not (tmp_path / "made").exists()


def test_it_sets_threads(there: RemoteRoot) -> None:
    try:
        there.set_policy(os.getpid(), "batch", 0)
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
        one = max(os.sched_getaffinity(0))
        before = os.sched_getaffinity(0)
        there.set_affinity(os.getpid(), [one])
        assert os.sched_getaffinity(0) == {one}
        there.set_affinity(os.getpid(), before)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize(
    "act",
    [
        lambda root: root.write("/tmp/not there", "x"),
        lambda root: root.write("/proc/version", "x"),
        lambda root: root.append("/dev/full", "x"),
        lambda root: root.make_folder("/tmp"),
        lambda root: root.remove_folder("/tmp"),
        lambda root: root.set_policy(4_000_000, "fifo", 1),
        lambda root: root.set_affinity(os.getpid(), [1000]),
    ],
)
def test_it_refuses_as_the_kernel_does(there: RemoteRoot, act: Callable[[Root], object]) -> None:
    expected = refusal(lambda: act(HERE))
    assert expected is not None
    assert refusal(lambda: act(there)) == expected


def test_it_runs_programs(there: RemoteRoot) -> None:
    assert there.has_program("cat")
    assert not there.has_program("no such program")
    assert there.run(["printf", "%s|", "a b", "$c"]) == (0, "a b|$c|")
    code, said = there.run(["cat", "/not there"])
    assert code == 1
    assert os.strerror(errno.ENOENT) in said
    assert there.is_superuser() == HERE.is_superuser()


def test_it_is_looked_at_as_this_machine_is(there: RemoteRoot) -> None:
    def ids(root: Root) -> list[str]:
        return sorted(finding.id for finding in findings(root, Intent()))

    until(lambda: ids(HERE) == ids(there))  # other tests' tasks come and go between both looks


def test_it_says_so_once_it_is_cut_off(there: RemoteRoot) -> None:
    os.kill(there.shell.pid, 9)
    for _ in range(2):
        with pytest.raises(ConnectionLostError, match="the connection is lost"):
            there.read("/proc/version")


def test_a_host_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAM, no_ssh(tmp_path, "echo 'Connection refused' >&2; exit 255"))
    with pytest.raises(Exception, match="cannot be reached: Connection refused; start sshd there"):
        Shell(Ssh("ssh://there", "hosts.component"))


@pytest.mark.parametrize("asked", ["ssh -F 'robot.conf", 'ssh "', "ssh \\"])
def test_a_program_for_ssh_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(PROGRAM, asked)
    with pytest.raises(RtmeterError, match="cannot be read as a command") as caught:
        Ssh("ssh://there", "hosts.component").command("true")
    assert (caught.value.field, caught.value.value) == (PROGRAM, asked)


@pytest.mark.parametrize("asked", ["", " "])
def test_an_empty_program_for_ssh_is_plain_ssh(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(PROGRAM, asked)
    assert Ssh("ssh://there", "hosts.component").command("true")[0] == "ssh"
