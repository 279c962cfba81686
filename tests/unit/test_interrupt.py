"""Whatever the front waits for, it ends: some time after the first signal, and at the second."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import front
from rtmeter import cli
from rtmeter.cli import exit_codes, interrupt
from rtmeter.errors import RtmeterError
from rtmeter.host import ending
from rtmeter.host.ending import Killed
from rtmeter.measure.probe.supervise import Stop
from rtmeter.model import TARGET
from rtmeter.results import store
from waiting import until

WAITING = """
import subprocess, sys, time
from types import SimpleNamespace
from rtmeter.cli import interrupt
from rtmeter.host.ending import STARTED, Killed
interrupt.PATIENCE_S = {patience_s}
cells = [SimpleNamespace(config={{}}, hosts={{"target": on}}) for on in {targets}]
with interrupt.stopping(cells) as stop:
    stop.keeping = {keeping}
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    STARTED.add(child.pid)
    try:
        print("waits", flush=True)
        time.sleep({waits_s})
    except Killed:
        print("killed", child.wait(60), flush=True)
print("went on", flush=True)
child.kill()
"""


@contextmanager
def waiting(
    patience_s: float, waits_s: float = 600, *, keeping: bool = False, targets: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    code = WAITING.format(patience_s=patience_s, waits_s=waits_s, keeping=keeping, targets=targets)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_by_force_if_it_has_not_ended_in_time(number: signal.Signals) -> None:
    with waiting(patience_s=0.2) as process:
        process.send_signal(number)
        out, err = process.communicate()  # its child holds the pipe, so this would wait for it
    assert (process.returncode, out) == (1, "")
    assert "ending" in err and "rtmeter: killed" in err and "elsewhere" not in err


@pytest.mark.timeout(120)
def test_what_it_may_leave_on_other_machines_is_told_where_it_ends_by_force() -> None:
    with waiting(patience_s=0.2, targets=["ssh://b", "ssh://a", "ssh://b"]) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    commands = "`rtmeter restore --on ssh://a`, `rtmeter restore --on ssh://b`"
    assert f"or by `rtmeter restore`; elsewhere by {commands}\n" in err


@pytest.mark.parametrize("ends", [Killed, RtmeterError("fails"), None])
def test_what_a_killed_run_left_elsewhere_is_told_with_its_error(
    ends: type[BaseException] | BaseException | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ending, "LEFT", left := {"labgrid-client -p shelf release": None})
    monkeypatch.setattr(interrupt, "LEFT", left)
    cells = [SimpleNamespace(config={}, hosts={TARGET: "ssh://a"}), SimpleNamespace(config={}, hosts={})]

    def measure(_path: Path) -> bool:
        with interrupt.stopping(cells):  # type: ignore[arg-type]
            assert "rtmeter restore --on ssh://a" in left
            if ends is not None:
                raise ends
        raise Killed

    monkeypatch.setattr(store, "is_cell", measure)
    assert cli.invoke(["summary"]) == exit_codes.ERROR
    said = capsys.readouterr().err
    assert ("--on ssh://a" in said) == (ends is Killed)
    assert ("elsewhere by `labgrid-client -p shelf release`" in said) == (not isinstance(ends, RtmeterError))


def test_a_hangup_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with interrupt.stopping([]), interrupt.ending():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.timeout(120)
def test_the_second_signal_ends_any_wait_and_kills_what_was_started() -> None:
    with waiting(patience_s=600) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        process.stderr.readline(), process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    assert (process.returncode, out) == (0, "killed -9\nwent on\n")


@pytest.mark.timeout(120)
def test_what_was_measured_is_stored_however_long_that_takes() -> None:
    with waiting(patience_s=0.1, waits_s=1, keeping=True) as process:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "went on\n")
    assert "rtmeter: killed" not in err


MEASURE = ["measure", "wakeup", "--adapter", "fake", "--samples", "1000000", "--warm-up", "3ms", "--deadline"]
MEASURE += ["1s", "--out", "cell", "--option", "behave=slow"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_until_then_is_kept_and_said(
    tmp_path: Path, fake_probe: Path, number: signal.Signals
) -> None:
    with front.running(*MEASURE, cwd=tmp_path, RTMETER_PROBE_PATH=str(fake_probe.parent)) as process:
        log = tmp_path / "cell.partial" / store.CLIENT_LOG
        until(lambda: log.is_file() and log.stat().st_size > 3000, of=process)
        process.send_signal(number)
        done = front.ended(process)
    assert done.code == exit_codes.ERROR
    record = store.read_cell(tmp_path / "cell")
    assert record.status == "interrupted" and record.summary is not None
    released = record.summary.counts["released"]
    assert released > 0
    kept = "what was measured is kept, and judged as far as it goes"
    said = f"interrupted after {released:,} of 1,000,000 releases: {kept}\nstored in cell\n"
    assert done.out.endswith(said)


@pytest.mark.usefixtures("fake_probe")
@pytest.mark.parametrize(
    "command", [["measure", "roundtrip", *MEASURE[2:]], ["run", "campaign.yaml", "--out", "results"]]
)
def test_one_that_came_before_anything_was_measured_says_that(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And does not name a folder that is not there. A round trip's server was started, no client."""

    @contextmanager
    def asked_at_once(_cells: object) -> Iterator[Stop]:
        stop = Stop()
        stop.ask()
        yield stop

    monkeypatch.setattr(interrupt, "stopping", asked_at_once)
    monkeypatch.chdir(tmp_path)
    Path("campaign.yaml").write_text("cells: [{measurement: wakeup, adapter: fake, samples: 10}]")
    assert cli.invoke(command) == exit_codes.ERROR
    printed = capsys.readouterr()
    assert "rtmeter: interrupted before anything was measured" in printed.err
    assert "stored in" not in printed.out and not (tmp_path / "cell").exists()
