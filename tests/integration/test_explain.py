"""`rtmeter measure --explain` and `rtmeter explain` on this machine's kernel."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from front import rtmeter, running
from rtmeter.judge.explained import explained
from rtmeter.results.cells import find_cells
from waiting import until

INITIAL_PID_NAMESPACE = "pid:[4026531836]"


def instances() -> set[str]:
    """The tracefs instances of rtmeter that are there."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "tracefs"]
    return {path.name for root in roots for path in (root / "instances").glob("rtmeter-*")}


@pytest.fixture(autouse=True)
def _traceable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if os.geteuid() != 0 or "tracefs" not in Path("/proc/filesystems").read_text().split():
        pytest.skip("needs root and tracefs")
    if str(Path("/proc/self/ns/pid").readlink()) != INITIAL_PID_NAMESPACE:
        pytest.skip("in a PID namespace")
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    yield


def measured(cell: Path, *more: str) -> tuple[str, ...]:
    options = ("--period=2ms", "--samples=300", "--warm-up=20ms", "--deadline=1us", "--explain", *more)
    return ("measure", "wakeup", "--adapter=posix", *options, f"--out={cell}")


def test_a_cell_keeps_its_events_and_every_lateness_is_whole(tmp_path: Path) -> None:
    before, cell = instances(), tmp_path / "cell"
    done = rtmeter(*measured(cell))
    assert (cell / "trace.parquet").is_file(), done.out + done.err
    assert sorted(path.name for path in cell.glob("trace*")) == ["trace.parquet"]
    left = instances() - before  # those of tests beside this one end, too
    until(lambda: not left & instances())
    traced = json.loads((cell / "cell.json").read_text())["conditions"]["achieved"]["trace"]
    assert traced["events"] > 300 * 4
    found = rtmeter("explain", cell, "--json").json
    assert len(found["releases"]) == 300
    for release in found["releases"]:
        assert sum(one["end_ns"] - one["start_ns"] for one in release["segments"]) == release["lateness_ns"]
        assert release["cause"] is not None
    assert sum(cause["releases"] for cause in found["causes"]) == 300
    served = [one for each in found["releases"] for one in each["segments"][-1:] if one["category"] == "own"]
    assert len(served) > 150, "the stamp is taken in the thread's own code"
    kept = cell / "explanation.json"
    written_ns = kept.stat().st_mtime_ns
    assert "of 300 late releases" in done.out, "measure says why, and keeps what it found"
    assert "why              of 300 late releases" in rtmeter("verdict", cell).out
    assert kept.stat().st_mtime_ns == written_ns
    assert "\nwhy " not in rtmeter("verdict", cell, "--deadline=1h").out
    said = rtmeter("explain", cell, "--top", "1").out
    assert "late: beyond the deadline of 1us" in said and "300 of 300 releases are late" in said


def test_late_releases_are_compared_with_some_in_time_and_a_release_asked_for_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = tmp_path / "cell"
    rtmeter(*(option for option in measured(cell, "--deadline=1h") if option != "--deadline=1us"))
    (stored,) = find_cells(cell)
    everyone = explained(stored)
    assert (everyone.in_time, everyone.unserved, len(everyone.found.releases)) == (300, 0, 300)
    monkeypatch.setattr("rtmeter.judge.explained.MOST_IN_TIME", 40)
    some = explained(stored)
    assert some.in_time == 300 and len(some.found.releases) == 40
    assert some.found.releases == explained(stored).found.releases, "always the same ones"
    ks = {each.release.k for each in some.found.releases}
    asked = next(each.release.k for each in everyone.found.releases if each.release.k not in ks)
    assert {each.release.k for each in explained(stored, asked).found.releases} == {*ks, asked}
    by_k = {each.release.k: each.segments for each in everyone.found.releases}
    assert all(by_k[each.release.k] == each.segments for each in some.found.releases)


def killed(cell: Path, journal: Path) -> str:
    """The tracing instance that a cell which kill -9 ended has left; its name is in the journal."""
    options = measured(cell, "--samples=100000000")
    with running(*(option for option in options if option != "--samples=300")) as front:
        until(lambda: any(cell.parent.glob(f"{cell.name}.partial/trace.cpu*")), of=front)
        front.kill()
        front.wait()
    (own,) = set(re.findall(r"rtmeter-[0-9]+-[0-9a-f]{12}", journal.read_text()))
    return str(own)


def test_after_kill_9_restore_takes_the_instance_away(tmp_path: Path) -> None:
    """Unless another rtmeter has begun to trace meanwhile, which has swept it away."""
    journal = tmp_path / "state" / "journal"
    for attempt in range(5):
        own = killed(tmp_path / f"cell{attempt}", journal)
        done = rtmeter("restore")
        assert done.code == 0 and own not in instances() and not journal.exists(), done.out + done.err
        if f"{own}: taken away" in done.out:
            return
        assert f"{own}: was not there" in done.out, done.out + done.err
    pytest.fail("others have swept it away five times")


def test_a_cell_without_a_trace_says_how_to_get_one(tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    rtmeter(*(option for option in measured(cell) if option != "--explain"))
    done = rtmeter("explain", cell)
    assert done.code == 1 and "has no record of the kernel's events; measure it with --explain" in done.err


CONTAINER = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    "umount --lazy --all-targets tracefs 2>/dev/null; umount --lazy /sys/kernel/tracing 2>/dev/null;"
    ' exec setpriv --bounding-set=-sys_admin "$@"',
    "sh",
)
"""Root without CAP_SYS_ADMIN, and no tracefs: as docker run has it."""


def test_in_a_container_without_tracefs_it_is_refused_and_the_remedy_named(tmp_path: Path) -> None:
    done = rtmeter(*measured(tmp_path / "cell"), inside=CONTAINER)
    assert done.code == 1 and "explain = 'yes'" in done.err, done.err
    assert "as in a container without --privileged" in done.err
    assert not (tmp_path / "cell" / "trace.parquet").exists()
