"""What `rtmeter explain --self-test` plants on this machine, and what it makes of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtmeter.explain.causes import Cause, Explained, Explanation, Release
from rtmeter.explain.segments import Key
from rtmeter.machine import Intent
from rtmeter.selftest.blamed import PERIOD_NS, blame, blamed, plants, unplanted
from rtmeter.values import Scheduling

MS = 1_000_000
HOG = Key("displaced", "rtm-hog", "above")


@pytest.fixture
def traceable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if os.geteuid() != 0 or "tracefs" not in Path("/proc/filesystems").read_text().split():
        pytest.skip("needs root and tracefs")
    if str(Path("/proc/self/ns/pid").readlink()) != "pid:[4026531836]":
        pytest.skip("in a PID namespace")
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    yield


def test_each_plant_is_named(traceable: None) -> None:
    found = {one.name: one for one in blame(Intent(scheduling=Scheduling("fifo", 80)), times=2)}
    for name in ("above", "equal", "stopped"):
        assert found[name].planted == 2 and found[name].first >= 1, found[name]
    for name in ("interrupt", "softirq"):
        assert (found[name].planted, found[name].first) == (1, 1), found[name]
    assert found["throttled"].hit <= 1
    assert found["syscall"].first == found["syscall"].hit  # none on a kernel that can be pre-empted there


def late(release_ns: int, late_ns: int, key: Key) -> Explained:
    return Explained(Release(0, release_ns, release_ns + late_ns, True), (), 0, Cause(key, 1.0))


def test_the_latest_release_of_each_time_decides() -> None:
    above = plants(80)[0]
    assert above.expected == HOG
    other = Key("outside")
    planted = [
        (above, (1000 * MS, 1020 * MS)),
        (above, (2000 * MS, 2020 * MS)),
        (above, (3000 * MS, 3020 * MS)),
    ]
    releases = (
        late(1000 * MS - PERIOD_NS, 20 * MS, HOG),
        late(1002 * MS, 18 * MS, other),
        late(2001 * MS, 12 * MS, HOG),
        late(2002 * MS, 19 * MS, other),
        late(2500 * MS, 30 * MS, other),
        late(2600 * MS, 30 * MS, HOG),
    )
    found = Explanation(releases, (), 0)
    result = blamed(above, planted, found)
    assert (result.planted, result.hit, result.first, result.others) == (3, 2, 1, (other,))
    assert result.outcome == "not named"
    assert blamed(above, planted[:1], found).outcome == "named"
    assert blamed(above, planted[2:], found).outcome == "not planted"
    elsewhere = unplanted(plants(80), planted, found)
    assert (elsewhere.hit, elsewhere.first, elsewhere.outcome) == (2, 1, "blamed")
    assert unplanted(plants(80), planted, Explanation(releases[:5], (), 0)).outcome == "not blamed"
    short = late(2500 * MS, 5 * MS, HOG)
    assert unplanted(plants(80), planted, Explanation((short,), (), 0)).hit == 0
