"""A command that is forked of a process that has imported everything is the command that a user starts."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from preloaded import Preloaded
from waiting import until
from wakeups import late_at, write_wakeups

Start = Callable[..., "subprocess.Popen[str]"]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def afresh(arguments: list[str], **how: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "rtmeter", *arguments], **how)  # type: ignore[call-overload]


def both(arguments: list[str], **how: object) -> list[tuple[int, str, str]]:
    """Exit code, standard output and error of both kinds of start."""
    found = []
    for start in (afresh, Preloaded):
        with start(arguments, **PIPES, **how) as process:
            out, err = process.communicate(how.get("input"))
            found.append((process.returncode, out, err))
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_wakeups(folder / "a", late_at(*range(1000, 19_000, 200)))
    return folder


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--version", 0),
        ("verdict --help", 0),
        ("verdict a --deadline 1ms", 2),
        ("verdict a --deadline 9ms --miss-ratio 1e-9 --json", 3),
        ("verdict a --deadline", 1),
        ("summary nowhere --json", 1),
    ],
)
def test_both_say_the_same(words: str, code: int, results: Path) -> None:
    fresh, forked = both(words.split(), cwd=results)
    assert forked == fresh and forked[0] == code
    assert forked[1] + forked[2]


def test_both_have_the_environment_of_who_started_them(results: Path) -> None:
    narrow, wide = (both(["--help"], env=os.environ | {"COLUMNS": columns}) for columns in ("60", "120"))
    assert narrow[0] == narrow[1] != wide[0] == wide[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_both_are_in_the_network_namespace_with_its_devices(tmp_path: Path) -> None:
    name = f"rtm{secrets.token_hex(3)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        inside = subprocess.run(["ip", "netns", "exec", name, "ls", "/sys/class/net"], **PIPES, check=True)
        asked = tmp_path / "campaign.yaml"
        os.mkfifo(asked)
        with Preloaded(["run", str(asked)], namespace=name, **PIPES) as process:
            try:
                until(lambda: is_read(asked), of=process)
                own = Path(f"/proc/{process.pid}/ns/net").stat().st_ino
                assert own == Path("/run/netns", name).stat().st_ino
                devices = Path(f"/proc/{process.pid}/root/sys/class/net").iterdir()
                assert sorted(one.name for one in devices) == inside.stdout.split()
            finally:
                process.kill()
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_forked_one_has_the_umask_of_the_moment(tmp_path: Path) -> None:
    asked = tmp_path / "campaign.yaml"
    os.mkfifo(asked)
    for mask in (0o022, 0o007):
        before = os.umask(mask)
        try:
            with Preloaded(["run", str(asked)], **PIPES) as process:
                try:
                    until(lambda: is_read(asked), of=process)
                    status = Path(f"/proc/{process.pid}/status").read_text()
                    assert f"Umask:\t{mask:04o}\n" in status
                finally:
                    process.kill()
        finally:
            os.umask(before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_both_alike(number: signal.Signals, tmp_path: Path) -> None:
    asked = tmp_path / "campaign.yaml"
    os.mkfifo(asked)
    ends = []
    for start in (afresh, Preloaded):
        with start(["run", str(asked)], **PIPES) as process:
            try:
                until(lambda: is_read(asked), of=process)
                assert process.poll() is None
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(timeout=0.01)
            except BaseException:
                process.kill()
                raise
            process.send_signal(number)
            ends.append((*process.communicate(), process.wait(), process.poll()))
    assert ends[0] == ends[1]


def is_read(fifo: Path) -> bool:
    """Whether somebody has opened it to read; who then waits for a writer reads on."""
    try:
        writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    os.set_inheritable(writer, False)
    WRITERS.append(writer)  # stays open: nothing comes, and no end
    return True


WRITERS: list[int] = []


def test_one_that_is_forked_has_no_file_of_another(tmp_path: Path) -> None:
    asked = tmp_path / "campaign.yaml"
    os.mkfifo(asked)
    with Preloaded(["--help"], **PIPES), Preloaded(["run", str(asked)], **PIPES) as process:
        try:
            until(lambda: is_read(asked), of=process)
            files = Path(f"/proc/{process.pid}/fd")
            until(lambda: (files / "3").exists(), of=process)  # the campaign's
            assert {file.name for file in files.iterdir()} == {"0", "1", "2", "3"}
        finally:
            process.kill()
