"""What goes wrong with real probes, and what the user then sees and keeps."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from front import ended, probes_of, rows_of, rtmeter, running, sleeps_of, stopped
from rtmeter import cli
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.measure.by_probes import probes_for
from rtmeter.measure.probe import given_options
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import Probe, find_probes
from rtmeter.results import store
from stored import cell_json
from waiting import until

NOBODY = 65534
RING_ROWS = 32_768
WAKEUP = ["measure", "wakeup", "--adapter", "posix", "--warm-up", "0s"]


@pytest.fixture
def out() -> Iterator[Path]:
    """A folder that other users can reach; pytest's are private."""
    folder = Path(tempfile.mkdtemp(prefix="rtmeter-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def unprivileged(out: Path) -> Iterator[dict[str, str]]:
    """The environment in which the posix probe runs as an ordinary user who may lock 64 KiB."""
    probe = find_probes()["posix"].resolve()
    drop = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups -- " if os.geteuid() == 0 else ""
    copied = out / "probes" / "real"
    copied.mkdir(parents=True)
    shutil.copy(probe, copied / "probe")
    wrapper = out / "probes" / "rtmeter-probe-posix"
    wrapper.write_text(f'#!/bin/sh\nexec {drop}prlimit --memlock=65536:65536 -- {copied}/probe "$@"\n')
    wrapper.chmod(0o755)
    old = os.umask(0)  # the probe writes into a folder of the front's
    yield {"RTMETER_PROBE_PATH": str(wrapper.parent)}
    os.umask(old)


@pytest.mark.parametrize(
    ("options", "field", "limit"),
    [
        (["--scheduling", "fifo:80"], "--scheduling", "RLIMIT_RTPRIO"),
        (["--scheduling", "rr:1"], "--scheduling", "RLIMIT_RTPRIO"),
        (["--scheduling", "deadline:100us/1ms/1ms"], "--scheduling", "CAP_SYS_NICE"),
        (["--lock-memory"], "--lock-memory", "RLIMIT_MEMLOCK"),
        (["--cpu-dma-latency"], "--cpu-dma-latency", "/dev/cpu_dma_latency"),
    ],
)
def test_no_privilege_is_an_error_that_names_the_limit(
    out: Path, unprivileged: dict[str, str], options: list[str], field: str, limit: str
) -> None:
    done = rtmeter(*WAKEUP, "--samples", "10", *options, "--out", out / "cell", **unprivileged)
    assert done.code == 1
    assert f"rtmeter: {field}" in done.err
    assert limit in done.err
    assert "; " in done.err  # what to do about it
    assert done.out == ""
    assert not (out / "cell").exists()


def test_an_ordinary_user_can_measure(out: Path, unprivileged: dict[str, str]) -> None:
    done = rtmeter(*WAKEUP, "--samples", "50", "--out", out / "cell", **unprivileged)
    assert done.code == 0, done.err
    assert cell_json(out / "cell")["valid"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--cpus", "4095"], "--cpus"),
        (["--option", "colour=blue"], "option colour"),
        (["--drive", "spin"], "--drive"),
    ],
)
def test_what_is_refused_is_named(tmp_path: Path, options: list[str], field: str) -> None:
    done = rtmeter(*WAKEUP, "--samples", "10", *options, "--out", tmp_path / "cell")
    assert done.code == 1
    assert field in done.err
    assert not (tmp_path / "cell").exists()


@pytest.mark.parametrize(
    ("measurement", "option", "value", "said"),
    [
        ("roundtrip", "--option", "colour=blue", "has no such option; choose one of timer, transport"),
        ("roundtrip", "--option", "dscp=64", "is no number from 0 to 63"),
        ("roundtrip", "--server-option", "transport=udb", "no such choice; choose one of udp, unix"),
        ("roundtrip", "--receive", "listener", "receives the messages of a roundtrip by spin"),
        ("roundtrip", "--server-receive", "listener", "receives the messages of a roundtrip by spin"),
        ("request", "--option", "colour=blue", "has no such option"),
        ("cycle", "--receive", "listener", "receives the messages of a cycle by spin"),
        ("chain", "--option", "colour=blue", "has no such option"),
        ("discovery", "--option", "colour=blue", "has no such option"),
    ],
)
def test_what_an_adapter_has_not_is_refused_before_anything_is_started(
    measurement: str,
    option: str,
    value: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def started(*given: object) -> None:
        raise AssertionError("a probe was started")

    monkeypatch.setattr(ProbeProcess, "__init__", started)
    (tmp_path / "g.yaml").write_text("stages:\n  a: {period: 10ms}\n")
    graph = ["--graph", str(tmp_path / "g.yaml")] if measurement == "chain" else []
    asked = ["measure", measurement, "--adapter", "posix", "--samples", "10", *graph, option, value]
    assert cli.invoke([*asked, "--out", str(tmp_path / "cell")]) == 1
    name, _, _ = value.rpartition("=")
    told = capsys.readouterr().err
    assert told.startswith(f"rtmeter: {option} {name}".rstrip()) and said in told
    assert not list(tmp_path.glob("cell*"))


def test_an_adapter_without_options_says_so(tmp_path: Path) -> None:
    asked = {"measurement": "wakeup", "adapter": "bare", "options": {"colour": "blue"}}
    probe, cell = Probe("bare", tmp_path, {}), cell_from(settle(asked), "cell", {})
    with pytest.raises(RtmeterError, match="this adapter has no such option") as refused:
        given_options.check(cell, probe, None)
    assert refused.value.remedy == "leave it out: it has none"


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [
        ("wake_delay_ns\n1000\nsoon\n", 3, "wake_delay_ns"),
        ("wake_dealy_ns\n1000\n", 1, "wake_dealy_ns"),
        ("wake_delay_ns\n", 1, ""),
        ("wake_delay_ns\n1\n2,3\n", 3, ""),
    ],
)
def test_a_malformed_script_is_an_error_with_its_line(
    tmp_path: Path, script: str, line: int, column: str
) -> None:
    path = tmp_path / "delays.csv"
    path.write_text(script)
    command = ["measure", "wakeup", "--adapter", "null", "--samples", "10", "--script", path]
    done = rtmeter(*command, "--out", tmp_path / "cell")
    assert done.code == 1
    assert f"{path}" in done.err
    assert str(line) in done.err
    assert column in done.err


def test_memory_is_not_shared_with_another_host(tmp_path: Path) -> None:
    command = ["measure", "roundtrip", "--adapter", "iceoryx", "--samples", "10"]
    done = rtmeter(*command, "--host", "component=ssh://robot", "--out", tmp_path / "cell")
    assert done.code == 1
    assert "--host component = 'ssh://robot': is out of reach of the adapter iceoryx" in done.err
    assert not (tmp_path / "cell").exists()


@pytest.mark.parametrize(
    ("adapter", "transport"),
    [
        *(("posix", transport) for transport in ("unix", "shm_futex", "shm_poll")),
        *(("fastdds", transport) for transport in ("shm", "data_sharing")),
        ("cyclonedds", "shm"),
    ],
)
@pytest.mark.parametrize("option", ["options", "server_options"])
def test_a_transport_within_one_host_is_not_taken_for_two(adapter: str, transport: str, option: str) -> None:
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    given = {"measurement": "roundtrip", "adapter": adapter, option: {"transport": transport}}
    probes_for(cell_from(settle(given), "cell", {}))  # on one host it is taken
    given["hosts"] = {"component": "ssh://robot"}
    with pytest.raises(RtmeterError, match="does not reach another host") as raised:
        probes_for(cell_from(settle(given), "cell", {}))
    assert (raised.value.field, raised.value.value) == (f"{option}.transport", transport)
    assert str(raised.value.remedy).startswith("choose udp")


def test_a_null_adapter_has_no_server(tmp_path: Path) -> None:
    command = ["measure", "roundtrip", "--adapter", "null", "--server-adapter", "posix", "--samples", "10"]
    done = rtmeter(*command, "--out", tmp_path / "cell")
    assert done.code == 1
    assert "--server-adapter = 'posix': means nothing for the adapter null" in done.err


def test_a_full_ring_makes_the_result_invalid(tmp_path: Path) -> None:
    """The writer stands still until the measured thread, the probe's first, has slept for more releases than
    the ring holds."""
    options = ["--period", "100us", "--duration", "14s", "--deadline", "1h", "--json"]
    with running(*WAKEUP, *options, "--out", tmp_path / "cell") as front:
        until(lambda: rows_of(tmp_path / "cell.partial" / store.CLIENT_LOG) > 100, of=front)
        (probe,) = probes_of(front.pid)
        threads = Path(f"/proc/{probe}/task").iterdir()
        (writer,) = (int(t.name) for t in threads if (t / "comm").read_text().strip() == "rtm-writer")
        with stopped(writer):
            enough = sleeps_of(probe) + RING_ROWS + 1_000
            until(lambda: sleeps_of(probe) > enough, of=front)
        done = ended(front)
    assert cell_json(tmp_path / "cell")["counters"]["overflow"] > 0
    assert done.code == 1
    assert (done.json["status"], done.json["valid"]) == ("complete", False)
    assert "ring_overflow" in [doubt["type"] for doubt in done.json["warnings"]]
    assert done.json["verdict"]["outcome"] == "error"


@pytest.mark.parametrize("overrun", ["catch_up", "skip"])
@pytest.mark.parametrize("measurement", ["wakeup", "timer", "cycle"])
def test_a_period_shorter_than_the_work_loses_no_release(
    tmp_path: Path, measurement: str, overrun: str
) -> None:
    command = ["measure", measurement, "--adapter", "posix", "--warm-up", "0s", "--period", "200ns"]
    done = rtmeter(*command, "--overrun", overrun, "--samples", "20000", "--json", "--out", tmp_path / "cell")
    counts = done.json["counts"]
    assert (done.code, done.json["valid"]) == (0, True)
    assert counts["released"] == 20_000
    assert counts["released"] == counts["served"] + counts["skipped"] + counts.get("lost", 0)
    assert (counts["skipped"] > 0) == (overrun == "skip")


@contextmanager
def measuring(folder: Path, measurement: str) -> Iterator[subprocess.Popen[str]]:
    """A long run that has measured for a while."""
    command = ["measure", measurement, "--adapter", "posix", "--period", "1ms", "--warm-up", "10ms"]
    with running(*command, "--duration", "10min", "--out", folder / "cell") as front:
        until(lambda: rows_of(folder / "cell.partial" / store.CLIENT_LOG) > 100, of=front)
        yield front


def test_a_server_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    with measuring(tmp_path, "roundtrip") as front:
        (server,) = probes_of(front.pid, "server")
        os.kill(server, signal.SIGKILL)
        done = ended(front)
    assert done.code == 1
    assert "server = 'posix': died in mid-run (killed by SIGKILL)" in done.err
    record = cell_json(tmp_path / "cell")
    assert (record["status"], record["valid"]) == ("failed", False)
    assert record["summary"]["counts"]["replied_in_time"] > 0


@pytest.mark.parametrize(
    ("measurement", "number"),
    [
        ("wakeup", signal.SIGINT),
        ("wakeup", signal.SIGTERM),
        ("timer", signal.SIGTERM),
        ("roundtrip", signal.SIGINT),
        ("cycle", signal.SIGTERM),
    ],
)
def test_a_signal_ends_the_run_and_every_release_is_accounted_for(
    tmp_path: Path, measurement: str, number: signal.Signals
) -> None:
    with measuring(tmp_path, measurement) as front:
        front.send_signal(number)
        done = ended(front)
    record = cell_json(tmp_path / "cell")
    assert done.code == 1
    assert (record["status"], record["valid"], record["error"]) == ("interrupted", True, None)
    assert 90 < record["summary"]["counts"]["released"] < 600_000


@pytest.fixture
def small_disk(out: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = out / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield disk
    until(lambda: subprocess.run(["umount", disk], capture_output=True).returncode == 0)


def test_a_full_disk_is_an_error_and_leaves_nothing_that_looks_whole(small_disk: Path) -> None:
    done = rtmeter(*WAKEUP, "--period", "10us", "--duration", "10min", "--out", small_disk / "cell")
    assert done.code == 1
    assert "no space left on device" in done.err.lower()
    assert f"rtmeter recover {small_disk / 'cell.partial' / store.CLIENT_LOG}" in done.err
    assert [path.name for path in small_disk.iterdir()] == ["cell.partial"]
    assert not list(small_disk.rglob(store.CELL)) and not list(small_disk.rglob(store.SAMPLES))
    assert rows_of(small_disk / "cell.partial" / store.CLIENT_LOG) > 1000
